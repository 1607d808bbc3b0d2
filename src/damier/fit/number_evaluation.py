"""How well the naive Bayes of a numeric target predicts rows it has not seen: the scores of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.fit.naive_bayes_regression import evidence_for_number, weighted_regression
from damier.fit.numeric_target import order_target
from damier.intake import NumericTarget, Table
from damier.models import NaiveBayesRegression
from damier.search.run import Run

# A table of more values is scored on some of its rows, but never on fewer than `_LEAST_ROWS`.
_MOST_VALUES = 200_000
_LEAST_ROWS = 5_000
COVERAGE = 0.9


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
        scored) and ``of_rows`` (those of the table). None where the rows of a fold leave a single value.

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
        low, middle, high = model.predict_quantile(scored_rows, [low_share, 0.5, high_share]).T
        held = np.sort(ordered.target.values)
        ends = np.quantile(held, [low_share, high_share], method="inverted_cdf")
        scored = {
            "square": (model.predict(scored_rows) - y) ** 2,
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
    means = {name: float(np.concatenate(values).mean()) for name, values in columns.items()}
    square, plain_square = means.pop("square"), means.pop("plain_square")
    return {
        "r2": 1.0 - square / plain_square if plain_square > 0 else 0.0,
        **means,
        "folds": n_folds,
        "rows": int(order.size),
        "of_rows": table.n_rows,
    }
