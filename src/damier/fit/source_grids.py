"""Grids of a source: searched on a sample of its rows, their cells counted on all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from damier.criteria import discretization_cost, grid_cost, grouping_cost
from damier.fit.grids import FoundGrids, find_grids
from damier.fit.sources import MAX_VALUES, sample_rows_of, warn_left_out
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import CHANGED
from damier.intake.engines.source import Labels, Source, categories, check_sums
from damier.intake.table import IntArray
from damier.models.grid import DataGrid, GridCells
from damier.models.partition import GroupPartition, IntervalPartition, Partition
from damier.search.run import Run

SAMPLE_ROWS = 200_000
"""Rows that grids are searched on, unless there are fewer."""

# Values of a column that a grid lists, those that the sample does not have among them.
_MOST_VALUES = MAX_VALUES


def find_source_grids(
    source: Source,
    labels: Labels,
    *,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    run: Run,
    **options: Any,
) -> tuple[FoundGrids, int, dict[str, tuple[int, int]]]:
    """Search for grids on a sample of the rows, then count their cells on all rows.

    Parts are those of the sample; cells, marginal counts and costs are those of all rows. A grid that costs
    more than none on all rows is given up. The rows of values beyond those that a grid lists are counted in
    the group that fits them best, taken together. ``options`` are those of `damier.fit.grids.find_grids`.

    Returns
    -------
    FoundGrids
    int
        Rows of the sample.
    dict of str to (int, int)
        Of columns of more values than a grid lists: values that are not, and their rows.
    """
    run.stop_clock()  # a time limit is for the search
    run.report("Drawing a sample of the rows")
    table, target, weights = sample_rows_of(source, labels, sample_rows, seed)
    run.start_clock()
    found = find_grids(table, target, weights, seed=seed, run=run, **options)
    grids = [found.best, *found.others]
    run.report("Counting the cells on all rows")
    run.stop_clock()
    left_out: dict[str, tuple[int, int]] = {}
    counted = [recounted(source, labels, grid, left_out) for grid in grids]
    warn_left_out(left_out, _MOST_VALUES)
    best = min(counted, key=lambda grid: grid.cost)
    others = tuple(grid for grid in counted[1:] if grid.partitions) or counted[1:2]
    return replace(found, best=best, others=tuple(others)), table.n_rows, left_out


def recounted(
    source: Source, labels: Labels, grid: DataGrid, left_out: dict[str, tuple[int, int]]
) -> DataGrid:
    """Count the cells of a grid on all rows of a source, and work out its cost anew.

    Values that are not listed, and their rows, are added to ``left_out``.
    """
    null_cost = grid_cost(labels.counts[None], grid.n_variables)
    whole = DataGrid(
        partitions={},
        cells=GridCells(np.zeros((1, 0), np.int64), labels.counts[None]),
        classes=grid.classes,
        n_variables=grid.n_variables,
        cost=null_cost,
        null_cost=null_cost,
    )
    if not grid.partitions:
        return whole
    n_values: dict[str, int] = {}
    partitions: dict[str, Partition] = {}
    axes: list[Axis] = []
    for name, partition in grid.partitions.items():
        if isinstance(partition, GroupPartition):
            known = _with_all_values(source, labels, partition)
            partitions[name], n_values[name] = known.partition, known.n_values
            axes.append(Axis(name, groups=known.partition.groups, other=known.other))
            if known.left_out[0]:
                left_out[name] = known.left_out
        else:
            assert isinstance(partition, IntervalPartition)
            partitions[name] = partition
            axes.append(Axis(name, partition.bounds, partition.missing_alone))
    parts, counts = source.cells(axes, labels)
    for k, (name, partition) in enumerate(partitions.items()):
        partitions[name] = _counted(partition, parts[:, k], counts, n_values.get(name))
    groups = [(n_values[name], p.n_parts) for name, p in partitions.items() if name in n_values]
    intervals = [p.n_parts for name, p in partitions.items() if name not in n_values]
    cost = grid_cost(counts, grid.n_variables, intervals, groups)
    if cost >= null_cost:
        return whole
    return replace(
        grid, partitions=partitions, cells=GridCells(parts, counts), cost=cost, null_cost=null_cost
    )


class _AllValues(NamedTuple):
    """Groups of all values of a column: those listed, the group of all others, and how many these are."""

    partition: GroupPartition
    n_values: int
    other: int
    left_out: tuple[int, int]


def _with_all_values(source: Source, labels: Labels, partition: GroupPartition) -> _AllValues:
    """Put the values that the sample does not have into the groups whose classes fit them best."""
    column = next(column for column in source.columns if column.name == partition.name)
    asked = _MOST_VALUES
    while True:
        listed = source.listed(partition.name, labels, asked)
        values = categories(column, listed.values)
        now = set(values)
        groups = [[value for value in group if value in now] for group in partition.groups]
        if all(groups):
            break
        if len(values) < asked:
            raise ValueError(CHANGED)  # values of the sample are gone
        asked *= 2  # a group of rare values alone
    met = {value for group in groups for value in group}
    shares = np.log((partition.counts + 1.0) / (partition.counts + 1.0).sum(axis=1, keepdims=True))
    for value, counts in zip(values, listed.counts, strict=True):
        if value not in met:
            groups[int(np.argmax(shares @ counts))].append(value)
    rest = labels.counts - listed.counts.sum(axis=0)
    n_values = len(values)
    if n_values < asked:
        check_sums(labels, listed.counts)
    else:
        n_values = int(source.profiles(partition.name, labels).n_values.sum())
    kept = replace(partition, groups=tuple(map(tuple, groups)))
    other = int(np.argmax(shares @ rest))
    return _AllValues(kept, n_values, other, (n_values - len(values), int(rest.sum())))


def _counted(partition: Partition, parts: IntArray, counts: IntArray, n_values: int | None) -> Partition:
    """Give a partition its counts and costs on all rows."""
    table = np.zeros((partition.n_parts, counts.shape[1]), np.int64)
    np.add.at(table, parts, counts)
    whole = table.sum(axis=0, keepdims=True)
    if n_values is None:
        cost, null_cost = discretization_cost(table), discretization_cost(whole)
    else:
        cost, null_cost = grouping_cost(table, n_values), grouping_cost(whole, n_values)
    return replace(partition, counts=table, cost=cost, null_cost=null_cost, optimal=False)
