"""Grids of a source: searched on a sample of its rows, their cells counted on all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from damier.criteria import discretization_cost, grid_cost, grouping_cost
from damier.fit.grids import FoundGrids, find_grids
from damier.fit.sources import sample_rows_of
from damier.intake.engines.cells import Axis
from damier.intake.engines.source import Labels, Source, categories
from damier.intake.table import IntArray
from damier.models.grid import DataGrid, GridCells
from damier.models.partition import GroupPartition, IntervalPartition, Partition
from damier.search.run import Run

SAMPLE_ROWS = 200_000
"""Rows that grids are searched on, unless there are fewer."""

# Values of a column that are looked at for those that the sample does not have.
_MOST_VALUES = 1_000_000


def find_source_grids(
    source: Source,
    labels: Labels,
    *,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    run: Run,
    **options: Any,
) -> tuple[FoundGrids, int]:
    """Search for grids on a sample of the rows, then count their cells on all rows.

    Parts are those of the sample; cells, marginal counts and costs are those of all rows. A grid that costs
    more than none on all rows is given up. ``options`` are those of `damier.fit.grids.find_grids`.

    Returns
    -------
    FoundGrids
    int
        Rows of the sample.
    """
    run.report("Drawing a sample of the rows")
    table, target, weights = sample_rows_of(source, labels, sample_rows, seed)
    found = find_grids(table, target, weights, seed=seed, run=run, **options)
    grids = [found.best, *found.others]
    run.report("Counting the cells on all rows")
    counted = [recounted(source, labels, grid) for grid in grids]
    best = min(counted, key=lambda grid: grid.cost)
    others = tuple(grid for grid in counted[1:] if grid.partitions) or counted[1:2]
    return replace(found, best=best, others=tuple(others)), table.n_rows


def recounted(source: Source, labels: Labels, grid: DataGrid) -> DataGrid:
    """Count the cells of a grid on all rows of a source, and work out its cost anew."""
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
    for name, partition in grid.partitions.items():
        if isinstance(partition, GroupPartition):
            partitions[name], n_values[name] = _with_all_values(source, labels, partition)
        else:
            partitions[name] = partition
    cells = source.cells([_axis(partition) for partition in partitions.values()], labels)
    # Values beyond those that are listed: rows that no group has.
    known = (cells.parts >= 0).all(axis=1)
    parts, counts = cells.parts[known], cells.counts[known]
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


def _axis(partition: Partition) -> Axis:
    if isinstance(partition, GroupPartition):
        return Axis(partition.name, groups=partition.groups)
    assert isinstance(partition, IntervalPartition)
    return Axis(partition.name, partition.bounds, partition.missing_alone)


def _with_all_values(source: Source, labels: Labels, partition: GroupPartition) -> tuple[GroupPartition, int]:
    """Put the values that the sample does not have into the groups whose classes fit them best."""
    column = next(column for column in source.columns if column.name == partition.name)
    listed = source.listed(partition.name, labels, _MOST_VALUES)
    values = categories(column, listed.values)
    met = {value for group in partition.groups for value in group}
    shares = np.log((partition.counts + 1.0) / (partition.counts + 1.0).sum(axis=1, keepdims=True))
    groups = [list(group) for group in partition.groups]
    for value, counts in zip(values, listed.counts, strict=True):
        if value not in met:
            groups[int(np.argmax(shares @ counts))].append(value)
    return replace(partition, groups=tuple(map(tuple, groups))), len(values)


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
