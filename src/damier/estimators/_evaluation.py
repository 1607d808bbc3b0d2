"""How well the averaged naive Bayes predicts, by cross-validation: the figures of the report."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from damier.estimators.naive_bayes import NaiveBayesClassifier
from damier.intake import Table, Target
from damier.intake.table import FloatArray, IntArray
from damier.search.run import ProgressCallback, map_in_threads

# Values read at most: the report answers in seconds, and more rows hardly change the figures.
_MOST_VALUES = 1_000_000


def cross_validated_scores(
    table: Table,
    target: Target,
    *,
    n_folds: int = 5,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Score the averaged naive Bayes on rows it has not seen.

    Of a large table a random subset of the rows is scored, with a fixed seed; ``rows`` tells how many.

    Parameters
    ----------
    table : Table
        The inputs.
    target : Target
        The classes, two or more.
    n_folds : int, default=5
        Folds, stratified by class; no more than there are rows of the largest class.
    n_jobs : int, optional
        Threads over the folds.
    progress : callable, optional
        Called with the number of folds done and their total.

    Returns
    -------
    dict
        ``accuracy``, ``auc`` (weighted mean over the classes against the rest when there are more than two;
        None where no fold can tell it), ``log_loss``, and for comparison ``majority`` (accuracy of the most
        frequent class) and ``prior_log_loss`` (of the class frequencies), with ``folds``, ``rows``, and the
        ``weights`` of the variables fitted to all those rows.
    """
    rows = _subset(table, target)
    kept, codes = table.take(rows), target.codes[rows].astype(np.int64)
    labels = [str(label) for label in target.classes.tolist()]
    n_folds = max(2, min(n_folds, int(np.bincount(codes).max())))
    with warnings.catch_warnings():
        # A class with fewer rows than folds is spread over the folds it can reach.
        warnings.simplefilter("ignore", UserWarning)
        folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(codes, codes))
    proba = np.zeros((rows.size, len(labels)))

    def score(fold: tuple[IntArray, IntArray]) -> None:
        train, test = fold
        if np.unique(codes[train]).size < 2:
            proba[test, codes[train][0]] = 1.0
            return
        model = NaiveBayesClassifier(averaging="compression").fit(kept.take(train), codes[train])
        proba[np.ix_(test, model.classes_)] = model.predict_proba(kept.take(test))

    map_in_threads(score, folds, n_jobs, progress)
    frequency = np.bincount(codes, minlength=len(labels)) / rows.size
    whole = NaiveBayesClassifier(averaging="compression", n_jobs=n_jobs).fit(kept, codes)
    return {
        "accuracy": float(np.mean(proba.argmax(axis=1) == codes)),
        "auc": _auc(proba, codes),
        "log_loss": _loss(proba, codes, rows.size),
        "majority": float(frequency.max()),
        "prior_log_loss": float(-np.sum(frequency[frequency > 0] * np.log(frequency[frequency > 0]))),
        "folds": n_folds,
        "rows": int(rows.size),
        "weights": whole.weights_,
    }


def _subset(table: Table, target: Target) -> IntArray:
    """Return the rows that are scored; of each class at least two when it has them."""
    most = max(1000, _MOST_VALUES // table.n_columns)
    if table.n_rows <= most:
        return np.arange(table.n_rows)
    order = np.random.default_rng(0).permutation(table.n_rows)
    codes = target.codes[order]
    by_class = np.argsort(codes, kind="stable")
    rank = np.empty(order.size, np.int64)
    first = np.searchsorted(codes[by_class], np.arange(target.n_classes))
    rank[by_class] = np.arange(order.size) - first[codes[by_class]]
    return np.sort(order[np.argsort(rank >= 2, kind="stable")[:most]])


def _auc(proba: FloatArray, codes: IntArray) -> float | None:
    """Area under the ROC curve; beyond two classes the mean of each against the rest, by frequency."""
    if proba.shape[1] == 2:
        return float(roc_auc_score(codes == 1, proba[:, 1]))
    areas, weights = [], []
    for w in range(proba.shape[1]):
        of_class = codes == w
        if 0 < of_class.sum() < codes.size:
            areas.append(float(roc_auc_score(of_class, proba[:, w])))
            weights.append(int(of_class.sum()))
    return float(np.average(areas, weights=weights)) if areas else None


def _loss(proba: FloatArray, codes: IntArray, n_rows: int) -> float:
    """Mean log-loss; a class no training fold held is given the chance of one row in all."""
    own = proba[np.arange(codes.size), codes]
    return float(-np.mean(np.log(np.where(own > 0, own, 1.0 / (n_rows * proba.shape[1])))))
