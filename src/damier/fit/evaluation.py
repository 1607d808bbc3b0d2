"""How well the averaged naive Bayes predicts rows it has not seen: the scores of the report.

Folds, AUC and log-loss are written here, and not taken from scikit-learn, whose import takes longer than the
whole evaluation of a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.fit.averaged import Evidence, evidence_of_column
from damier.fit.naive_bayes import naive_bayes, weight_with_pairs
from damier.fit.partitions import partition_column
from damier.intake import Table, Target
from damier.intake.table import FloatArray, IntArray
from damier.models import NaiveBayes, Partition
from damier.search.run import Run

# A table of more values is scored on some of its rows, but never on fewer than `_LEAST_ROWS`.
_MOST_VALUES = 1_000_000
_LEAST_ROWS = 5_000


def cross_validated_scores(
    table: Table,
    target: Target,
    *,
    n_folds: int = 5,
    partitions: Sequence[Partition] | None = None,
    curves_of: Sequence[int] = (),
    keep_model: Callable[[NaiveBayes], None] | None = None,
    run: Run,
) -> dict[str, Any]:
    """Score the averaged naive Bayes by cross-validation.

    It is that of ``NaiveBayesClassifier()``: each fold finds its own pairs of variables that act together.

    A large table is scored on a sample of its rows, drawn with a fixed seed. Rare classes come first: each
    class is limited to the same number of rows, and one with fewer is kept whole. Where this changes the
    shares of the classes, probabilities and scores are brought back to the shares of all rows.

    Parameters
    ----------
    table : Table
        The inputs.
    target : Target
        The classes, two or more.
    n_folds : int, default=5
        Folds, stratified by class; at most the number of rows of the largest class.
    partitions : sequence of Partition, optional
        The partitions of all columns, fitted to all rows, if they are known already; else they are searched.
    curves_of : sequence of int
        Places of the classes to return the curves of.
    keep_model : callable, optional
        Called with the naive Bayes fitted to all rows scored, with the class frequencies of the table.
    run : Run
        Columns and folds are shared among its threads.

    Returns
    -------
    dict
        ``accuracy``, ``auc`` (beyond two classes the mean over the classes, each against the rest, weighted
        by frequency), ``log_loss``, and for comparison ``majority`` (accuracy of the most frequent class) and
        ``prior_log_loss`` (of the class frequencies), with ``folds``, ``rows`` (those scored), ``of_rows``
        (those of the table), ``weights``: by name, the weights of the variables fitted to the rows scored,
        ``pairs``: the names of the pairs taken on these rows, and ``curves``, as `class_curves` gives them,
        where they are asked for.

    Raises
    ------
    Stopped
        If the run is stopped before all folds are scored.

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> table = read_table({"size": list(range(100))})
    >>> scores = cross_validated_scores(table, read_target([0] * 50 + [1] * 50), run=Run())
    >>> scores["accuracy"], scores["majority"], list(scores["weights"])
    (0.99, 0.5, ['size'])
    """
    rows = _sample(target, max(_LEAST_ROWS, _MOST_VALUES // table.n_columns))
    kept, codes = table.take(rows), target.codes[rows].astype(np.int64)
    n_folds = max(2, min(n_folds, int(np.bincount(codes).max())))
    fold_of = stratified_folds(codes, n_folds)
    tests = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
    training = [_Rows(kept, target, codes, np.flatnonzero(fold_of != fold)) for fold in range(n_folds)]
    if partitions is None:
        training.append(_Rows(kept, target, codes, np.arange(rows.size)))
    tasks = [(rows, k) for rows in training for k in range(table.n_columns)]
    found = run.map(_partition, tasks, text="Partitioning the folds")
    by_fold = [found[i : i + table.n_columns] for i in range(0, len(found), table.n_columns)]
    if partitions is not None:
        training.append(_Rows(kept, target, codes, np.arange(rows.size)))
        by_fold.append([training[-1].evidence(k, best) for k, best in enumerate(partitions)])

    def weight(fold: int) -> NaiveBayes:
        learned, found = training[fold], by_fold[fold]
        alone = Run()  # threads are shared among the folds, not among the pairs of each
        alone.stop = run.stop
        variables, pairs = alone.call(
            weight_with_pairs, found, learned.table, learned.target, pairs="auto", run=alone
        )
        return naive_bayes(variables, learned.target, pairs=pairs)

    models = run.map(weight, range(n_folds + 1), text="Weighting the folds")
    run.check()
    proba = np.zeros((rows.size, target.n_classes))
    for model, learned, test in zip(models, training, tests, strict=False):
        proba[np.ix_(test, learned.present)] = model.predict_proba(kept.take(test))
    frequency = np.bincount(target.codes, minlength=target.n_classes) / table.n_rows
    # How many rows of the table each row scored stands for, by its class.
    stands_for = frequency * rows.size / np.maximum(np.bincount(codes, minlength=target.n_classes), 1)
    if rows.size < table.n_rows:
        proba *= stands_for
        proba /= proba.sum(axis=1, keepdims=True)
    weights = stands_for[codes]
    if keep_model is not None:
        keep_model(replace(models[-1], class_counts=np.bincount(target.codes)[training[-1].present]))
    return {
        "accuracy": float(np.average(proba.argmax(axis=1) == codes, weights=weights)),
        "auc": area_under_curve(proba, codes, weights),
        "log_loss": _loss(proba, codes, weights),
        "majority": float(frequency.max()),
        "prior_log_loss": float(-np.sum(frequency[frequency > 0] * np.log(frequency[frequency > 0]))),
        "folds": n_folds,
        "rows": int(rows.size),
        "of_rows": table.n_rows,
        "weights": {variable.name: variable.weight for variable in models[-1].variables},
        "pairs": [list(pair.names) for pair in models[-1].pairs],
        **({"curves": class_curves(proba, codes, weights, curves_of)} if curves_of else {}),
    }


class _Rows:
    """Rows to learn from, and the classes that are present among them."""

    def __init__(self, table: Table, target: Target, codes: IntArray, rows: IntArray) -> None:
        self.table = table.take(rows)
        self.present, its_codes = np.unique(codes[rows], return_inverse=True)
        self.target = Target(its_codes.astype(np.int32), target.classes[self.present])

    def evidence(self, k: int, best: Partition | None = None) -> Evidence:
        """Return what a column says about the classes."""
        found = partition_column(self.table.columns[k], self.target) if best is None else best
        return evidence_of_column(self.table, k, self.target, found)


def _partition(task: tuple[_Rows, int]) -> Evidence:
    rows, k = task
    return rows.evidence(k)


def stratified_folds(codes: IntArray, n_folds: int, seed: int = 0) -> IntArray:
    """Return the fold of each row: shuffled, then dealt to the folds class by class.

    Folds differ by at most one row, and by at most one row of each class.

    >>> folds = stratified_folds(np.array([0, 0, 0, 0, 1, 1, 1, 1]), 2)
    >>> np.bincount(folds[:4]), np.bincount(folds[4:])
    (array([2, 2]), array([2, 2]))
    """
    order = np.random.default_rng(seed).permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(codes.size, np.int64)
    fold_of[order] = np.arange(codes.size) % n_folds
    return fold_of


def _sample(target: Target, most: int) -> IntArray:
    """Return at most ``most`` rows: of each class as many as it has, or the same number as other large ones.

    >>> rows = _sample(Target(np.repeat([0, 1, 2], [900, 90, 10]).astype(np.int32), np.arange(3)), 200)
    >>> np.histogram(rows, [0, 900, 990, 1000])[0]
    array([100,  90,  10])
    """
    codes = target.codes
    if codes.size <= most:
        return np.arange(codes.size)
    order = np.random.default_rng(0).permutation(codes.size)
    by_class = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes, minlength=target.n_classes)
    rank = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    # By rank within the class: the first row of every class, then the second of those that have one, ...
    return np.sort(by_class[np.argsort(rank, kind="stable")[:most]])


def area_under_curve(proba: FloatArray, codes: IntArray, weights: FloatArray | None = None) -> float:
    """Area under the ROC curve; beyond two classes the mean of each against the rest, by frequency.

    >>> area_under_curve(np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]), np.array([0, 0, 1, 1]))
    0.875
    """
    weights = np.ones(codes.size) if weights is None else weights
    if proba.shape[1] == 2:
        return _area(proba[:, 1], codes == 1, weights)
    sizes = np.bincount(codes, weights, minlength=proba.shape[1])
    areas = [_area(proba[:, w], codes == w, weights) for w in np.flatnonzero(sizes)]
    return float(np.average(areas, weights=sizes[sizes > 0]))


def _area(score: FloatArray, positive: npt.NDArray[np.bool_], weights: FloatArray) -> float:
    """Share of the pairs of a positive and another row that the score orders well; ties count one half."""
    _, place = np.unique(score, return_inverse=True)
    own = np.bincount(place, weights * positive)
    other = np.bincount(place, weights * ~positive)
    return float(own @ (np.cumsum(other) - other / 2) / (own.sum() * other.sum()))


# Points of a curve of gains: one per percent of the rows. Bins of a curve of calibration.
_PERCENTS = 100
_BINS = 10


def class_curves(
    proba: FloatArray, codes: IntArray, weights: FloatArray, places: Sequence[int]
) -> list[dict[str, Any]]:
    """Return how well probabilities rank the rows of classes, and how true they are.

    Parameters
    ----------
    proba : array of shape (n_rows, n_classes)
        Of rows that the models have not seen.
    codes, weights : array of shape (n_rows,)
        The class of each row, and how many rows it stands for.
    places : sequence of int
        The classes asked for.

    Returns
    -------
    list of dict
        One per class, each against the rest. ``place``; ``auc``; ``captured``, the share of the class among
        the 0, 1, ... 100 percent of the rows that are most probable, equal ones taken in proportion;
        ``calibration``, by tenths of the rows of rising probability: ``predicted``, the mean probability,
        ``observed``, the share of the class, and ``rows``, the share of the rows. A class without a row, or
        with all of them, has no curves.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    >>> (curves,) = class_curves(proba, np.array([0, 0, 1, 1]), np.ones(4), [1])
    >>> curves["auc"], [curves["captured"][percent] for percent in (0, 25, 50, 75, 100)]
    (0.875, [0.0, 0.5, 0.75, 1.0, 1.0])
    >>> [(bin["predicted"], bin["observed"]) for bin in curves["calibration"]]
    [(0.1, 0.0), (0.5, 0.5), (0.8, 1.0)]
    """
    curves: list[dict[str, Any]] = []
    for place in places:
        positive = codes == place
        if not positive.any() or positive.all():
            continue
        scores, at = np.unique(proba[:, place], return_inverse=True)
        own, every = np.bincount(at, weights * positive), np.bincount(at, weights)
        depth, captured = (np.concatenate([[0.0], np.cumsum(n[::-1]) / n.sum()]) for n in (every, own))
        middle = (np.cumsum(every) - every / 2) / every.sum()
        which = np.minimum((middle * _BINS).astype(np.int64), _BINS - 1)
        rows, hits, sums = (np.bincount(which, n, minlength=_BINS) for n in (every, own, every * scores))
        curves.append(
            {
                "place": int(place),
                "auc": _area(proba[:, place], positive, weights),
                "captured": np.interp(np.arange(_PERCENTS + 1) / _PERCENTS, depth, captured)
                .round(6)
                .tolist(),
                "calibration": [
                    {
                        "predicted": round(float(sums[b] / rows[b]), 6),
                        "observed": round(float(hits[b] / rows[b]), 6),
                        "rows": round(float(rows[b] / rows.sum()), 6),
                    }
                    for b in np.flatnonzero(rows).tolist()
                ],
            }
        )
    return curves


def _loss(proba: FloatArray, codes: IntArray, weights: FloatArray) -> float:
    """Mean log-loss; a class that is absent from the rows learned from has the chance of one row in all."""
    own = proba[np.arange(codes.size), codes]
    return float(-np.average(np.log(np.where(own > 0, own, 1.0 / proba.size)), weights=weights))
