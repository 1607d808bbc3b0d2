"""How well the naive Bayes of a numeric target predicts rows it has not seen: the scores of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.fit.naive_bayes_regression import evidence_for_number, weighted_regression
from damier.fit.numeric_target import order_target
from damier.intake import NumericTarget, Table
from damier.intake.table import FloatArray
from damier.models import NaiveBayesRegression
from damier.search.run import Run

# A table of more values is scored on some of its rows, but never on fewer than `_LEAST_ROWS`.
_MOST_VALUES = 200_000
_LEAST_ROWS = 5_000
COVERAGE = 0.9
# Points of a curve of gains, tenths of a curve of calibration, points of a curve of errors, rows drawn.
_PERCENTS = 100
_BINS = 10
_ERROR_STEPS = 51
_MOST_DRAWN = 400
# Shares whose quantiles are predicted; the first, the middle and the last are those of the 90% interval.
_SHARES = ((1 - COVERAGE) / 2, 0.1, 0.25, 0.5, 0.75, 0.9, (1 + COVERAGE) / 2)


def cross_validated_number(
    table: Table, target: NumericTarget, *, n_folds: int = 5, run: Run
) -> dict[str, Any] | None:
    """Score the averaged naive Bayes of a numeric target by cross-validation.

    Parameters
    ----------
    table : Table
        The inputs.
    target : NumericTarget
        Two distinct values or more.
    n_folds : int, default=5
        Folds of rows shuffled with a fixed seed.
    run : Run
        Columns and folds are shared among its threads.

    Returns
    -------
    dict or None
        ``r2``, ``mae`` (of the predicted median), ``coverage`` (of the 90% intervals) and ``width`` (their
        mean), and for comparison ``plain_mae`` (of the mean of the training targets), ``plain_coverage`` and
        ``plain_width`` (of the interval between their 5% and 95% quantiles), with ``folds``, ``rows`` (those
        scored), ``of_rows`` (those of the table) and ``curves``, as `number_curves` gives them. None where
        the rows of a fold leave a single value.

    Raises
    ------
    Stopped
        If the run is stopped before all folds are scored.

    Examples
    --------
    >>> from damier.intake import read_numbers, read_table
    >>> table = read_table({"size": list(range(200))})
    >>> scores = cross_validated_number(table, read_numbers(np.arange(200.0)), run=Run())
    >>> scores["r2"] > 0.9, scores["mae"] < scores["plain_mae"]
    (True, True)
    """
    most = max(_LEAST_ROWS, _MOST_VALUES // table.n_columns)
    order = np.random.default_rng(0).permutation(table.n_rows)[:most]
    n_folds = max(2, min(n_folds, order.size))
    tests = [np.sort(order[fold::n_folds]) for fold in range(n_folds)]
    training = []
    for fold in range(n_folds):
        rows = np.sort(np.concatenate([test for i, test in enumerate(tests) if i != fold]))
        kept = target.take(rows)
        if kept.n_distinct < 2:
            return None
        training.append((table.take(rows), order_target(kept)))
    tasks = [(fold, k) for fold in range(n_folds) for k in range(table.n_columns)]
    found = run.map(
        lambda task: evidence_for_number(training[task[0]][0].columns[task[1]], training[task[0]][1]),
        tasks,
        text="Partitioning the folds",
    )

    def weigh(fold: int) -> NaiveBayesRegression:
        rows, ordered = training[fold]
        variables = found[fold * table.n_columns : (fold + 1) * table.n_columns]
        return weighted_regression(variables, rows, ordered, run=run)

    models = run.map(weigh, range(n_folds), text="Weighting the folds")
    run.check()
    columns: dict[str, list[Any]] = {}
    low_share, high_share = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
    for model, (_, ordered), test in zip(models, training, tests, strict=True):
        scored_rows, y = table.take(test), target.values[test]
        predicted, quantiles = model.predict(scored_rows), model.predict_quantile(scored_rows, list(_SHARES))
        low, middle, high = (quantiles[:, _SHARES.index(share)] for share in (low_share, 0.5, high_share))
        held = np.sort(ordered.target.values)
        ends = np.quantile(held, [low_share, high_share], method="inverted_cdf")
        scored = {
            "y": y,
            "predicted": predicted,
            "below": y[:, None] <= quantiles,
            "square": (predicted - y) ** 2,
            "plain_square": (held.mean() - y) ** 2,
            "mae": np.abs(middle - y),
            "plain_mae": np.abs(held.mean() - y),
            "coverage": (low <= y) & (y <= high),
            "plain_coverage": (ends[0] <= y) & (y <= ends[1]),
            "width": high - low,
            "plain_width": np.full(y.size, ends[1] - ends[0]),
        }
        for name, values in scored.items():
            columns.setdefault(name, []).append(values)
    every = {name: np.concatenate(values) for name, values in columns.items()}
    y, predicted, below = (every.pop(name) for name in ("y", "predicted", "below"))
    curves = number_curves(y, predicted, every["mae"], every["plain_mae"])
    shares = below.mean(axis=0).round(6).tolist()
    means = {name: float(values.mean()) for name, values in every.items()}
    square, plain_square = means.pop("square"), means.pop("plain_square")
    return {
        "r2": 1.0 - square / plain_square if plain_square > 0 else 0.0,
        **means,
        "folds": n_folds,
        "rows": int(order.size),
        "of_rows": table.n_rows,
        "curves": {**curves, "below": [list(pair) for pair in zip(_SHARES, shares, strict=True)]},
    }


def number_curves(
    y: FloatArray, predicted: FloatArray, errors: FloatArray, plain_errors: FloatArray
) -> dict[str, Any]:
    """Return how well predictions rank the rows by a number, how true they are, and how far they err.

    Parameters
    ----------
    y, predicted : array of shape (n_rows,)
        The numbers, and the means predicted by models that have not seen their rows.
    errors, plain_errors : array of shape (n_rows,)
        Absolute errors of the predictions, and of the mean of all rows.

    Returns
    -------
    dict
        ``means``, of the numbers of the 1, 2, ... 100 percent of the rows predicted highest, equal ones taken
        in proportion; ``captured`` and ``best``, the share of the total that the 0, 1, ... 100 percent
        predicted highest, and truly highest, hold: None where a number is negative or all are zero;
        ``calibration``, by tenths of the rows of rising prediction: ``predicted`` and ``observed``, the
        means, ``quantiles``, 5%, 25%, 50%, 75% and 95% of what is observed, and ``rows``, the share of the
        rows; ``errors`` and ``plain_errors``, quantiles at 0, 2, ... 100 percent; ``drawn``, some rows:
        predicted and observed. `cross_validated_number` adds ``below``: shares, and how many rows lie below
        the quantile that was predicted for that share.

    Examples
    --------
    >>> y = np.array([1.0, 0.0, 2.0, 5.0])
    >>> curves = number_curves(y, np.array([1.0, 1.0, 2.0, 4.0]), np.abs(y - 1), np.abs(y - 2))
    >>> [curves["captured"][percent] for percent in (0, 25, 50, 75, 100)]
    [0.0, 0.625, 0.875, 0.9375, 1.0]
    >>> curves["means"][24], curves["best"][50], [one["observed"] for one in curves["calibration"]]
    (5.0, 0.875, [0.5, 2.0, 5.0])
    """
    _, at = np.unique(predicted, return_inverse=True)
    rows, sums = np.bincount(at), np.bincount(at, y / y.size)
    percents = np.arange(_PERCENTS + 1) / _PERCENTS
    depth, held = (np.concatenate([[0.0], np.cumsum(n[::-1])]) for n in (rows / y.size, sums))
    held = np.interp(percents, depth, held)
    counts = bool(y.min() >= 0 and held[-1] > 0)
    best = np.concatenate([[0.0], np.cumsum(np.sort(y)[::-1] / y.size)])
    best = np.interp(percents, np.arange(y.size + 1) / y.size, best)
    middle = (np.cumsum(rows) - rows / 2) / y.size
    tenth = np.minimum((middle * _BINS).astype(np.int64), _BINS - 1)[at]
    calibration = []
    for b in np.unique(tenth).tolist():
        inside = tenth == b
        calibration.append(
            {
                "predicted": float(predicted[inside].mean()),
                "observed": float(y[inside].mean()),
                "quantiles": np.quantile(y[inside], [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(),
                "rows": round(float(inside.mean()), 6),
            }
        )
    drawn = np.random.default_rng(0).permutation(y.size)[:_MOST_DRAWN]
    steps = np.linspace(0, 1, _ERROR_STEPS)
    return {
        "means": (held[1:] / percents[1:]).tolist(),
        "captured": (held / held[-1]).round(6).tolist() if counts else None,
        "best": (best / held[-1]).round(6).tolist() if counts else None,
        "calibration": calibration,
        "errors": np.quantile(errors, steps).tolist(),
        "plain_errors": np.quantile(plain_errors, steps).tolist(),
        "drawn": np.stack([predicted, y], axis=1)[drawn].tolist(),
    }
