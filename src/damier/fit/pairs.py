"""Pairs of variables whose evidence a naive Bayes adds to that of the variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from damier.criteria import part_costs
from damier.fit.grids import code_column, find_pairs, interactions
from damier.intake import Table, Target
from damier.intake.table import IntArray
from damier.models import PairEvidence, Partition
from damier.search.run import Run

# Columns whose pairs are searched, those of highest level, and rows that they are searched on.
PAIRED_COLUMNS = 40
PAIRED_ROWS = 20_000
# Starts of the search of each pair: it ends with the first one after which the pair pays.
_STARTS = 4
# Cells of a pair that is searched differ more than by chance by this factor.
_BEYOND_CHANCE = 1.5
_RANKED = ("first", "second", "gain", "done")


def fit_pair_evidence(
    table: Table,
    target: Target,
    partitions: Sequence[Partition],
    weights: IntArray | None = None,
    *,
    most: int | None = None,
    run: Run,
) -> tuple[list[PairEvidence], float]:
    """Find the pairs of columns whose grid says more than the two columns do.

    The classes in equal cells of all pairs of at most 40 columns are counted, on at most 20,000 rows. Pairs
    whose cells differ clearly more than they would by chance are searched, two per column at most. A pair is
    taken if what its grid saves beyond both columns pays for choosing it among all pairs. Its cells are then
    counted on all rows.

    Parameters
    ----------
    table, target
        The columns, and classes for all rows.
    partitions : sequence of Partition
        The best partition of each column.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.
    most : int, optional
        Pairs at most; by default as many as there are columns.
    run : Run
        Threads that share the pairs. If it is stopped, the pairs found so far are taken.

    Returns
    -------
    list of PairEvidence
        The best pair first.
    float
        What the choice of one pair costs, in nats.
    """
    named = sorted(partitions, key=lambda partition: -partition.level)[:PAIRED_COLUMNS]
    chosen = {partition.name: partition for partition in named}
    columns = Table(tuple(c for c in table.columns if c.name in chosen), table.n_rows)
    n_pairs = columns.n_columns * (columns.n_columns - 1) // 2
    price = math.log(max(n_pairs, 1))
    if n_pairs == 0:
        return [], price
    rows = _looked_at(columns, target, weights)
    # On some of the rows classes may be missing, and columns have other partitions.
    present, codes = np.unique(target.codes[rows], return_inverse=True)
    if present.size < 2:
        return [], price
    labels = Target(codes.astype(np.int32), target.classes[present])
    whole = rows.size < PAIRED_ROWS or rows.size == table.n_rows
    searched = columns.take(rows)
    promising = _promising(searched, labels)
    if not promising:
        return [], price
    found = find_pairs(
        searched,
        labels,
        partitions=chosen if whole else None,
        n_starts=_STARTS,
        enough=price,
        only=promising,
        run=run,
    )
    taken: list[PairEvidence] = []
    for first, second, gain, done in zip(*(found.ranked[k] for k in _RANKED), strict=True):
        if not done or len(taken) == (columns.n_columns if most is None else most):
            break
        # Cells are numbered alike, and rows dealt to the same folds, whatever the order of the columns.
        parts = sorted(
            found.grids[first, second].partitions, key=lambda p: (-chosen[p.name].level, p.counts.tolist())
        )
        if gain * _null_cost(parts, labels) <= price or min(p.n_parts for p in parts) < 2:
            continue
        counts = _cells(columns, target, parts, weights)
        # A value that the sample lacks is in no part: with many of them a class may have no cell.
        if counts.sum(axis=(0, 1)).min() > 0:
            classes = tuple(target.classes.tolist())
            held = [replace(p, classes=classes, counts=counts.sum(axis=1 - k)) for k, p in enumerate(parts)]
            taken.append(PairEvidence(tuple(held), counts.reshape(-1, target.n_classes)))
    return taken, price


def _promising(table: Table, target: Target) -> list[tuple[int, int]]:
    """Choose pairs whose classes differ clearly more from cell to cell than the best of as many by chance."""
    axes = [code_column(column).axis for column in table.columns]
    pairs = list(itertools.combinations(range(len(axes)), 2))
    differ = np.array(interactions(axes, pairs, target.codes, target.n_classes))
    least = _BEYOND_CHANCE * math.sqrt(2 * math.log(len(pairs)))
    order = np.argsort(-differ, kind="stable")[: 2 * len(axes)]
    return [pairs[i] for i in order if differ[i] > least]


def _null_cost(parts: Sequence[Partition], target: Target) -> float:
    """Cost of two variables of one part each: what the gain of a pair is a share of."""
    classes = np.bincount(target.codes, minlength=target.n_classes)
    return sum(partition.null_cost for partition in parts) - float(part_costs(classes[np.newaxis]).sum())


def _looked_at(table: Table, target: Target, weights: IntArray | None) -> IntArray:
    """Return the rows on which pairs are searched, each as often as it counts: chosen by their content."""
    from damier.search.grid.problem import canonical_rows

    n_rows = table.n_rows
    if weights is None and n_rows <= PAIRED_ROWS:
        return np.arange(n_rows)
    axes = [code_column(column).axis for column in table.columns]
    order = canonical_rows(axes, target.codes, target.n_classes)[0]
    if weights is not None:
        total = int(weights.sum())
        if total <= PAIRED_ROWS:
            return np.repeat(order, weights[order])
        # Every so many rows of those that the weights stand for.
        places = (np.arange(PAIRED_ROWS) * total) // PAIRED_ROWS
        return order[np.searchsorted(np.cumsum(weights[order]), places, side="right")]
    return order[:PAIRED_ROWS]


def _cells(table: Table, target: Target, parts: Sequence[Partition], weights: IntArray | None) -> IntArray:
    """Count the classes of the cells of two partitions: parts of the first, of the second, classes."""
    first, second = (partition.apply(table[partition.name]) for partition in parts)
    known = (first >= 0) & (second >= 0)
    n_cells, n_classes = parts[0].n_parts * parts[1].n_parts, target.n_classes
    flat = (first * parts[1].n_parts + second) * n_classes + target.codes
    times = None if weights is None else weights[known]
    counts = np.bincount(flat[known], times, minlength=n_cells * n_classes)
    return counts.reshape(parts[0].n_parts, -1, n_classes).astype(np.int64)
