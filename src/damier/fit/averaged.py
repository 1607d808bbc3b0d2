"""The evidence of one variable averaged over all its partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from damier.fit.partitions import partition_of_parts
from damier.intake import CategoricalColumn, Column, Table, Target
from damier.intake.table import FloatArray, IntArray
from damier.models import AveragedEvidence, IntervalPartition, Partition, VariableEvidence
from damier.models.naive_bayes import posterior_of_elements

# Elements at most: time and memory grow with the square of their number, and with the number of classes.
_MOST_ELEMENTS = 200
_MOST_CELLS = 40_000
_FEWEST_ELEMENTS = 40
# Above this many columns only those whose best partition has several parts are averaged over all partitions.
_MOST_AVERAGED = 500


class Evidence(NamedTuple):
    """A variable's evidence, and how a training row is judged without itself.

    ``own`` is the evidence of each part for a row's own class without the row; ``shift`` what the evidence
    for the other classes gains then, by the class of the row. Both have a last row for values never seen.
    """

    variable: VariableEvidence
    own: FloatArray
    shift: FloatArray


def best_evidence(partitions: tuple[Partition, ...]) -> Evidence:
    """Return the evidence of the best partition, or the mean over some."""
    variable = VariableEvidence(partitions)
    own = variable.table_without_the_row
    return Evidence(variable, own, np.zeros(own.shape))


def evidence_of_column(
    table: Table, k: int, target: Target, best: Partition, weights: IntArray | None = None
) -> Evidence:
    """Return the evidence of a column of a table, averaged over all partitions.

    In a table of more than 500 columns, one whose best partition is a single part has none.
    """
    if target.n_classes < 2 or (best.n_parts == 1 and table.n_columns > _MOST_AVERAGED):
        return best_evidence((best,))
    return averaged_evidence(table.columns[k], target, best, weights)


def averaged_evidence(
    column: Column,
    target: Target,
    best: Partition,
    weights: IntArray | None = None,
    *,
    most_elements: int | None = None,
) -> Evidence:
    """Average the evidence of a column over all its partitions.

    A partition is made of elements: the distinct values, or at most 200 sets of neighbouring ones of about as
    many rows each, never across a bound of the best partition. With more than 200 classes there are fewer.
    Values without an order are put in the order in which their class shares vary most; only neighbours in
    this order are joined.

    Parameters
    ----------
    column : Column
        The variable.
    target : Target
        The classes; each row has one. One that no row has counts as one of a single row.
    best : Partition
        The best partition of the column.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.
    most_elements : int, optional
        Elements at most, in place of 200.

    Returns
    -------
    Evidence

    Examples
    --------
    The step at 20 is certain, its place is not quite.

    >>> from damier.fit.partitions import partition_column
    >>> from damier.intake import read_table, read_target
    >>> column, target = read_table({"size": list(range(40))}).columns[0], read_target([0] * 20 + [1] * 20)
    >>> evidence = averaged_evidence(column, target, partition_column(column, target))
    >>> np.exp(evidence.variable.table[[0, 18, 19, 20, 39], 1]).round(2).tolist()
    [0.16, 0.16, 0.27, 1.73, 1.84]
    """
    values: Any
    values, codes = column.coded()
    n_classes = target.n_classes
    most = max(_FEWEST_ELEMENTS, min(most_elements or _MOST_ELEMENTS, _MOST_CELLS // n_classes))
    counts = np.bincount(codes, weights, minlength=len(values)).astype(np.float64)
    if isinstance(column, CategoricalColumn):
        order = _by_share(codes, target, weights, len(values))
        place = np.empty(len(values), np.int64)
        place[order] = _neighbours(counts[order], most)
        # A value that no row has, for its weights are zero, is not known.
        known = np.flatnonzero(counts > 0)
        _, renumbered = np.unique(place[known], return_inverse=True)
        place[known] = renumbered
    else:
        cuts = _starts_of_parts(values, best)
        place = _neighbours(counts, most, cuts)
        known = np.arange(len(values))
    n_elements = int(place[known].max()) + 1
    table = (
        np.bincount(place[codes] * n_classes + target.codes, weights, minlength=n_elements * n_classes)
        .reshape(n_elements, n_classes)
        .astype(np.int64)
    )
    n_values = np.bincount(place[known], minlength=n_elements)
    posterior = posterior_of_elements(
        table, n_values, ordered=isinstance(best, IntervalPartition), informs=True
    )
    log_prior = np.log(np.maximum(table.sum(axis=0), 1) / table.sum())
    kept = values if len(known) == len(values) else [values[i] for i in known]
    elements = partition_of_parts(
        column,
        place[known],
        kept,
        classes=best.classes,
        counts=table,
        cost=best.cost,
        null_cost=best.null_cost,
        optimal=False,
    )
    averaged = AveragedEvidence(elements, n_values, np.log(posterior.shares) - log_prior)
    neutral = np.zeros((1, n_classes))
    shift = np.log1p(-_inside(posterior.own_shares)) - np.log1p(-_inside(posterior.shares))
    return Evidence(
        VariableEvidence((best,), averaged=averaged),
        np.vstack([np.log(posterior.own_shares) - log_prior, neutral]),
        np.vstack([shift, neutral]),
    )


def centred(evidence: Evidence) -> Evidence:
    """Measure averaged evidence from its mean over the rows, in place of the frequencies of the classes.

    Shares are drawn to equal ones, the more the fewer rows a class has: measured from its frequency, each
    variable speaks for a rare class wherever a row lies, and with weights of one all of them add up. Convex
    weights, of each class and with adjustments, need none of this.
    """
    averaged = evidence.variable.averaged
    if averaged is None:
        return evidence
    counts = averaged.elements.counts
    frequency = counts.sum(axis=1) / counts.sum()
    mean = np.log(frequency @ np.exp(averaged.evidence))
    measured = replace(averaged, evidence=averaged.evidence - mean)
    return Evidence(
        replace(evidence.variable, averaged=measured),
        np.vstack([evidence.own[:-1] - mean, evidence.own[-1:]]),
        evidence.shift,
    )


def _inside(shares: FloatArray) -> FloatArray:
    """Keep shares away from one, whose complement has no logarithm."""
    return np.minimum(shares, 1.0 - 1e-12)


def _neighbours(counts: FloatArray, most: int, cuts: IntArray | None = None) -> IntArray:
    """Put values in order into at most about ``most`` elements of similar numbers of rows."""
    if len(counts) <= most:
        return np.arange(len(counts))
    before = np.cumsum(counts) - counts
    element = np.floor(before * (most / counts.sum()))
    new = np.concatenate([[False], np.diff(element) > 0])
    if cuts is not None:
        new[cuts[cuts < len(new)]] = True
    new[0] = False
    return np.cumsum(new)


def _starts_of_parts(values: FloatArray, best: Partition) -> IntArray:
    """Places of the first value of each part of the best partition; missing values keep to themselves."""
    missing = int(np.isnan(values[0]))
    bounds = np.array(getattr(best, "bounds", ()), np.float64)
    places = missing + np.searchsorted(values[missing:], bounds, side="right")
    return np.concatenate([[missing] if missing else [], places]).astype(np.int64)


def _by_share(codes: IntArray, target: Target, weights: IntArray | None, n_values: int) -> IntArray:
    """Order the values by the direction in which their class shares vary most."""
    n_classes = target.n_classes
    table = np.bincount(codes * n_classes + target.codes, weights, minlength=n_values * n_classes)
    table = table.reshape(n_values, n_classes)
    rows = table.sum(axis=1, keepdims=True)
    frequency = np.maximum(table.sum(axis=0), 1) / table.sum()
    # Shares drawn to the frequency of the class by one row, or a value of one row would be extreme.
    apart = (table + frequency) / (rows + 1) - frequency
    if n_classes > 2:
        apart /= np.sqrt(frequency)
        spread = (apart * rows).T @ apart
        direction = np.linalg.eigh(spread)[1][:, -1]
        direction *= np.sign(direction[np.argmax(np.abs(direction))])
        key = apart @ direction
    else:
        key = apart[:, 0]
    return np.argsort(key.round(12), kind="stable")
