"""Naive Bayes for a numeric target: each column partitioned with the target, then weighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from damier.fit.averaged import Evidence, averaged_evidence, best_evidence, centred
from damier.fit.numeric_target import OrderedTarget, optima_for_number, order_target
from damier.fit.partitions import Search, all_met
from damier.intake import Column, NumericTarget, Table, Target
from damier.intake.table import FloatArray, IntArray
from damier.models import (
    Adjustment,
    GroupPartition,
    IntervalPartition,
    NaiveBayesRegression,
    Partition,
    TargetEvidence,
)
from damier.models.naive_bayes_regression import typical_targets
from damier.models.regressor import target_points
from damier.search.run import Run

Averaging = Literal["convex", "compression"] | None
EvidenceOf = Literal["posterior", "best"]

# Optima of a variable whose level is this share of the best are averaged with it.
_NEAR_THE_BEST = 0.7
# Elementary intervals of the target at most: beyond them, bounds with few rows between them become one.
_MOST_INTERVALS = 256
# Times the square root of 1 / N, the share of a predicted distribution that stays that of all rows. Chosen on
# five tables (autoprice, bodyfat, cleveland, meta, pwlinear). For the best partitions, among 0.5, 0.75, 1 and
# 1.5: 90% intervals of autoprice, 127 rows, cover 80, 83, 86 and 93%; the mean relative CRPS is 0.515, 0.515,
# 0.516 and 0.520. For averaged evidence, among 0, 0.25, 0.5, 0.75 and 1: they cover 92, 93, 94, 94 and 95% in
# the mean, 87, 88, 89, 89 and 90% at least; the CRPS is 0.501, 0.501, 0.502, 0.503 and 0.505.
_RESERVE = {"posterior": 0.5, "best": 1.0}
# Elements that the partitions of a variable are made of, at most, where its evidence is averaged.
_MOST_ELEMENTS = 100
# Distinct rows times intervals that the weights are searched on.
_WEIGHTED_CELLS = 500_000


def fit_naive_bayes_regression(
    table: Table,
    target: NumericTarget,
    weights: IntArray | None = None,
    *,
    averaging: Averaging = "convex",
    evidence: EvidenceOf = "posterior",
    average_starts: bool = True,
    search: Search = "auto",
    run: Run,
) -> NaiveBayesRegression:
    """Partition each column together with the target, and weight them if ``averaging`` is set.

    Parameters
    ----------
    table : Table
        The inputs.
    target : NumericTarget
        Two distinct values or more.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows, each at least one.
    averaging, evidence, average_starts, search
        As in :class:`damier.NaiveBayesRegressor`.
    run : Run
        Columns are shared among its threads. If it is stopped while the columns are weighted, the weights
        are those found so far.

    Returns
    -------
    NaiveBayesRegression

    Raises
    ------
    Stopped
        If the run is stopped before there is a model.

    Examples
    --------
    >>> from damier.intake import read_numbers, read_table
    >>> table = read_table({"size": list(range(40)), "colour": ["red", "green"] * 20})
    >>> model = fit_naive_bayes_regression(table, read_numbers(np.arange(40.0) ** 2), run=Run())
    >>> [variable.weight > 0 for variable in model.variables]
    [True, False]
    """
    ordered = order_target(target, weights)
    found = run.map(
        lambda column: evidence_for_number(
            column, ordered, evidence=evidence, average_starts=average_starts, search=search
        ),
        table.columns,
        text="Partitioning columns",
    )
    return weighted_regression(found, table, ordered, averaging=averaging, run=run)


def evidence_for_number(
    column: Column,
    ordered: OrderedTarget,
    *,
    evidence: EvidenceOf = "posterior",
    average_starts: bool = True,
    search: Search = "auto",
    short_bounds: bool = False,
) -> tuple[Evidence, ...]:
    """Partition a column together with a numeric target.

    Parameters
    ----------
    column : Column
    ordered : OrderedTarget
    evidence, average_starts, search
        As in :class:`damier.NaiveBayesRegressor`.
    short_bounds : bool
        Place bounds at the number of fewest digits between two values, rather than in the middle.

    Returns
    -------
    tuple of Evidence
        Of the best partition, then of the other optima: with the target's intervals as classes.
    """
    least = _NEAR_THE_BEST if average_starts else 1.0
    found = optima_for_number(column, ordered, least, search=search, short_bounds=short_bounds)
    return evidence_of_partitions(found, column, ordered, evidence=evidence)


def evidence_of_partitions(
    partitions: Sequence[Partition],
    column: Column,
    ordered: OrderedTarget,
    *,
    evidence: EvidenceOf = "posterior",
) -> tuple[Evidence, ...]:
    """Return the evidence of partitions of a column and a numeric target that are known already.

    Parameters
    ----------
    partitions : sequence of Partition
        The best first.
    column, ordered
        The rows that they were fitted to, or some of them. Where these lack a value that the partitions list
        or all targets of an interval, and where the best is a single part, the evidence is that of the
        partitions themselves.
    evidence
        As in :class:`damier.NaiveBayesRegressor`.
    """
    best = partitions[0]
    targets = []
    for partition in partitions:
        interval_of = np.searchsorted(partition.target_bounds or (), ordered.target.distinct, side="left")
        classes = np.array(partition.classes, dtype=object)
        targets.append(Target(interval_of.astype(np.int32)[ordered.target.codes], classes))
    met = not isinstance(best, GroupPartition) or all_met(best, column)
    met = met and all(np.unique(target.codes).size == target.n_classes for target in targets)
    if evidence == "best" or best.n_parts == 1 or not met:
        return tuple(best_evidence((partition,)) for partition in partitions)
    return tuple(
        averaged_evidence(column, target, partition, ordered.axis.weights, most_elements=_MOST_ELEMENTS)
        for target, partition in zip(targets, partitions, strict=True)
    )


def weighted_regression(
    found: Sequence[tuple[Evidence, ...]],
    table: Table,
    ordered: OrderedTarget,
    *,
    averaging: Averaging = "convex",
    distribution: tuple[FloatArray, FloatArray, IntArray] | None = None,
    run: Run,
) -> NaiveBayesRegression:
    """Return the model of variables partitioned already.

    Parameters
    ----------
    found : sequence of tuple of Evidence
        Of each column of the table, as `evidence_for_number` returns it.
    table, ordered
        The rows that the variables were fitted to.
    averaging
        As in :class:`damier.NaiveBayesRegressor`.
    distribution : tuple, optional
        Where the rows are a sample: the elementary bounds, and of all rows the distinct values of the target
        and how many rows have each.
    run : Run
        Stops the search of the weights.
    """
    if averaging != "convex":
        found = [tuple(map(centred, optima)) for optima in found]
    variables = [_variable(optima) for optima in found]
    informing = [k for k, variable in enumerate(variables) if variable.partition.n_parts > 1]
    if distribution is None:
        bounds = elementary_bounds([variables[k] for k in informing], ordered.target, ordered.axis.sizes)
        distribution = bounds, ordered.target.distinct, ordered.axis.sizes
    bounds, distinct, sizes = distribution
    every = NumericTarget(np.arange(len(distinct), dtype=np.int32), distinct)
    values, counts = target_points(every, bounds, sizes)
    if averaging is not None:
        weighted = [replace(variable, weight=0.0) for variable in variables]
        if informing:
            columns = [table.columns[k] for k in informing]
            own = [[one.own[:-1] for one in found[k]] for k in informing]
            chosen = [variables[k] for k in informing]
            made = _weighted(chosen, own, columns, ordered, distribution, averaging, run)
            for k, variable in zip(informing, made, strict=True):
                weighted[k] = variable
        variables = weighted
    averaged = any(variable.averaged for variable in variables)
    reserve = _RESERVE["posterior" if averaged else "best"] / float(np.sqrt(counts.sum()))
    return NaiveBayesRegression(bounds, values, counts, tuple(variables), reserve)


def _variable(optima: tuple[Evidence, ...]) -> TargetEvidence:
    """Return what the optima of a variable say together, with the weight 1."""
    held = [one.variable for one in optima]
    averaged = tuple(one.averaged for one in held if one.averaged is not None)
    return TargetEvidence(tuple(one.partition for one in held), averaged=averaged)


def elementary_bounds(
    variables: Sequence[TargetEvidence], target: NumericTarget, sizes: IntArray, most: int = _MOST_INTERVALS
) -> FloatArray:
    """Put together the target bounds of all partitions; of very many, keep some that share out the rows.

    Parameters
    ----------
    variables : sequence of TargetEvidence
    target : NumericTarget
    sizes : array of shape (n_distinct,)
        Rows of each distinct value of the target, weights counted.
    most : int
        Most intervals.
    """
    held = {bound for v in variables for p in v.partitions for bound in p.target_bounds or ()}
    bounds = np.array(sorted(held), dtype=np.float64)
    if len(bounds) < most:
        return bounds
    below = np.cumsum(sizes)[np.searchsorted(target.distinct, bounds, side="right") - 1]
    return bounds[np.unique(below * (most - 1) // sizes.sum(), return_index=True)[1]]


def _weighted(
    variables: Sequence[TargetEvidence],
    own_evidence: Sequence[Sequence[FloatArray]],
    columns: Sequence[Column],
    ordered: OrderedTarget,
    distribution: tuple[FloatArray, FloatArray, IntArray],
    averaging: Averaging,
    run: Run,
) -> list[TargetEvidence]:
    """Weight variables that inform, for each elementary interval, each row judged without itself."""
    from damier.search.adjustments import steps_of
    from damier.search.class_weights import adjusted_weights
    from damier.search.weights import compression_weights

    bounds, distinct, sizes = distribution
    rows = np.bincount(np.searchsorted(bounds, distinct, side="left"), sizes, minlength=len(bounds) + 1)
    typical = typical_targets(distinct, sizes, bounds)
    interval_of = np.searchsorted(bounds, ordered.target.distinct, side="left").astype(np.int32)
    parts = [v.apply(column).astype(np.int32) for v, column in zip(variables, columns, strict=True)]
    tables = [variable.table(typical) for variable in variables]
    own = [variable.table(typical, held) for variable, held in zip(variables, own_evidence, strict=True)]
    intervals, log_prior = interval_of[ordered.target.codes], np.log(rows / rows.sum())
    times = ordered.axis.weights
    if averaging == "compression":
        one_each = compression_weights(
            parts, tables, own, intervals, log_prior, times, max_cells=_WEIGHTED_CELLS, run=run
        )
        return [replace(v, weight=float(w)) for v, w in zip(variables, one_each, strict=True)]
    steps = [
        steps_of(np.bincount(part, times, minlength=v.parts.n_parts).astype(np.float64))
        if v.averaged and isinstance(v.parts, IntervalPartition)
        else None
        for v, part in zip(variables, parts, strict=True)
    ]
    shifts = [np.zeros(table.shape) for table in tables]
    weights, added = adjusted_weights(
        parts, tables, own, shifts, steps, intervals, log_prior, times, max_cells=_WEIGHTED_CELLS, run=run
    )
    weighted = []
    for variable, w, of_parts, scores in zip(variables, weights, steps, added, strict=True):
        held = replace(variable, weight=float(w.mean()), interval_weights=w if w.any() else None)
        if of_parts is not None and scores is not None:
            firsts = np.unique(of_parts, return_index=True)[1]
            held = replace(held, adjustment=Adjustment(firsts, scores))
        weighted.append(held)
    return weighted
