"""What has a bound of its own in naive Bayes: averages of long columns, weights of many classes, noise."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.records import Record
from damier import NaiveBayesClassifier
from damier.fit.averaged import averaged_evidence
from damier.fit.naive_bayes import weight_variables
from damier.fit.partitions import partition_column
from damier.intake import read_table, read_target
from damier.search.run import Run

# Elements at most of the averaged curve, and of one that is nearly exact.
ELEMENTS, MANY_ELEMENTS = 200, 1600


def _cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure_speed(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Measure the averages of long columns, and the weights of many classes."""
    title = "Speed: CPU seconds"
    rng = np.random.default_rng(0)
    _long_column(record, None, 1_000, rng)  # loads the kernels
    for n_rows in (1_000_000, 10_000_000):
        _long_column(record, title, n_rows, rng)
    for n_rows in (500, 80_000):
        y = rng.integers(0, 24, n_rows)
        X = rng.normal(size=(n_rows, 16)) + rng.normal(size=(24, 16))[y]
        table, target = read_table(X), read_target(y)
        found = [averaged_evidence(c, target, partition_column(c, target)) for c in table.columns]
        seconds, _ = _cpu(lambda f=found, t=table, y=target: weight_variables(f, t, y, run=Run()))  # type: ignore[misc]
    record.figure(title, "80,000 rows, 16 columns, 24 classes: weights", f"{seconds:.2f}")
    record.close(
        title,
        "Excess log-loss: what the curve costs per row beyond the probabilities that the classes were drawn "
        "with, and beside it that of the best intervals. The same values have a mean log-loss of about 0.5.",
    )


def _long_column(record: Record, title: str | None, n_rows: int, rng: np.random.Generator) -> None:
    """Average one column, beside the exact search of its best intervals."""
    x = rng.normal(size=n_rows)
    truth = _probability(x)
    target = read_target(rng.random(n_rows) < truth)
    column = read_table({"x": x}).columns[0]
    search, best = _cpu(lambda: partition_column(column, target, search="exact"))
    curve, found = _cpu(lambda: averaged_evidence(column, target, best))
    if title is None:
        return
    rows = f"{n_rows:,} rows, one column"
    proven = "exact search of its intervals" if best.optimal else "search of its intervals, not proven best"
    record.figure(title, f"{rows}: averaged curve", f"{curve:.2f}", f"{search:.2f}, {proven}")
    finer = averaged_evidence(column, target, best, most_elements=MANY_ELEMENTS)
    losses = [_excess(evidence.variable, column, truth, target) for evidence in (found, finer)]
    counts = best.counts
    parts = best.apply(column)
    of_best = _divergence(truth, ((counts[:, 1] + 1) / (counts.sum(axis=1) + 2))[parts])
    record.figure(
        title,
        f"{rows}: excess log-loss of the curve of {ELEMENTS} elements",
        f"{losses[0]:.6f}",
        f"{losses[1]:.6f}, {MANY_ELEMENTS:,} elements; {of_best:.6f}, its best intervals",
    )


def _probability(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-2 * np.sin(3 * x)))


def _excess(variable: Any, column: Any, truth: np.ndarray, target: Any) -> float:
    """Mean divergence of the shares of a curve from the true ones."""
    prior = np.bincount(target.codes) / len(target.codes)
    shares = np.exp(variable.table[:-1]) * prior
    return _divergence(truth, (shares[:, 1] / shares.sum(axis=1))[variable.apply(column)])


def _divergence(truth: np.ndarray, shares: np.ndarray) -> float:
    return float((truth * np.log(truth / shares) + (1 - truth) * np.log((1 - truth) / (1 - shares))).mean())


def measure_noise(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Count the columns of noise that have a weight, and what they cost rows never seen."""
    title = "Noise: 300 rows of two classes, ten draws"
    for n_columns in (1, 20, 200):
        weighted, losses, beside = [], [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, X_new = rng.normal(size=(300, n_columns)), rng.normal(size=(2000, n_columns))
            y, y_new = np.arange(300) % 2, np.arange(2000) % 2
            model = NaiveBayesClassifier().fit(X, y)
            weighted.append(int((model.weights_ > 0).sum()))
            losses.append(_log_loss(model, X_new, y_new))
            beside.append(_log_loss(LogisticRegression().fit(X, y), X_new, y_new))
        record.row(
            title,
            ["columns", "with a weight, mean", "most", "log-loss", "logistic regression"],
            [
                n_columns,
                f"{np.mean(weighted):.1f}",
                max(weighted),
                f"{np.mean(losses):.4f}",
                f"{np.mean(beside):.4f}",
            ],
        )
    record.close(title, f"Log-loss on 2,000 other rows; {np.log(2):.4f} where nothing is known.")


def _log_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())
