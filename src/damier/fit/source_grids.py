"""Grids of a source: searched on a sample of its rows, their cells counted on all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from damier.criteria import (
    discretization_cost,
    grid_cost,
    grouping_cost,
    regression_cost,
    regression_grid_cost,
)
from damier.fit.grids import FoundGrids, find_grids
from damier.fit.regression_grids import fit_regression_grid
from damier.fit.source_target import Fine, NumberSource, count_points, count_target, sample_numbers
from damier.fit.sources import MAX_VALUES, sample_rows_of, solve, warn_left_out
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import CHANGED
from damier.intake.engines.source import Labels, Source, categories, check_sums
from damier.intake.table import IntArray, NumericTarget
from damier.models.bounds import midpoint
from damier.models.grid import DataGrid, GridCells
from damier.models.partition import GroupPartition, IntervalPartition, Partition
from damier.models.regression_grid import RegressionGrid
from damier.models.regressor import target_points
from damier.models.target_intervals import interval_labels
from damier.search.run import Run, Stopped

SAMPLE_ROWS = 200_000
"""Rows that grids are searched on, unless there are fewer."""

# Cells of the other axes times classes that the cuts of an axis are moved by, and values of categories among
# these axes.
_MOST_CLASSES = 4096
_MOST_NAMED = 10_000
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

    Variables and numbers of parts are those of the sample; cells, marginal counts and costs are those of all
    rows, and the cuts of the best grid are moved to where they cost least on all rows. A grid that costs
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
    unlisted = Unlisted()
    counted = [recounted(source, labels, grid, unlisted) for grid in grids]
    warn_left_out(unlisted.left_out, _MOST_VALUES)
    best = moved(source, labels, min(counted, key=lambda grid: grid.cost), unlisted, run)
    others = tuple(grid for grid in counted[1:] if grid.partitions) or counted[1:2]
    return replace(found, best=best, others=tuple(others)), table.n_rows, unlisted.left_out


@dataclass
class Unlisted:
    """Values that grids do not list, by column: how many there are and in how many rows, and their group."""

    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    group: dict[str, int] = field(default_factory=dict)

    def axis(self, partition: Partition) -> Axis:
        """Return the parts of a partition as an engine finds them."""
        if isinstance(partition, GroupPartition):
            return Axis(partition.name, groups=partition.groups, other=self.group.get(partition.name, 0))
        assert isinstance(partition, IntervalPartition)
        return Axis(partition.name, partition.bounds, partition.missing_alone)


def recounted(source: Source, labels: Labels, grid: DataGrid, unlisted: Unlisted) -> DataGrid:
    """Count the cells of a grid on all rows of a source, and work out its cost anew.

    Values that are not listed, and their rows, are added to ``unlisted``.
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
            unlisted.group[name] = known.other
            if known.left_out[0]:
                unlisted.left_out[name] = known.left_out
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


def moved(source: Source, labels: Labels, grid: DataGrid, unlisted: Unlisted, run: Run) -> DataGrid:
    """Move the cuts of a grid to where they cost least on all rows, one axis after the other.

    Axes whose other ones have very many cells stay as they are, and all of them after Ctrl-C.
    """
    if run.ended == "interrupted":
        return grid
    for name in [n for n, p in grid.partitions.items() if isinstance(p, IntervalPartition) and p.bounds]:
        others = tuple(unlisted.axis(p) for n, p in grid.partitions.items() if n != name)
        partition = grid.partitions[name]
        assert isinstance(partition, IntervalPartition)
        cells = math.prod(axis.n_parts for axis in others)
        if cells * labels.n_classes > _MOST_CLASSES or any(axis.n_values > _MOST_NAMED for axis in others):
            continue
        run.report(f"Moving the cuts of {name}")
        table = np.zeros((*(axis.n_parts for axis in others), labels.n_classes), np.int64)
        rest = [k for k, n in enumerate(grid.partitions) if n != name]
        if rest:
            np.add.at(table, tuple(grid.cells.parts[:, rest].T), grid.cells.counts)
        else:
            table += grid.cells.counts.sum(axis=0)
        of_cells = replace(labels, axes=(*others, *labels.axes), counts=table.ravel())
        try:
            cuts = moved_cuts(source, partition, of_cells, labels.n_classes, run)
        except Stopped:
            return grid
        if cuts is None:
            continue
        tried = recounted(source, labels, replace(grid, partitions={**grid.partitions, name: cuts}), unlisted)
        if tried.cost < grid.cost and tried.partitions:
            grid = tried
    return grid


def _watch(run: Run) -> Run | None:
    """Return the run to report to, and to be stopped by unless it was before: counting is no search."""
    return None if run.stopped else run


def moved_cuts(
    source: Source, partition: IntervalPartition, labels: Labels, n_classes: int, run: Run
) -> IntervalPartition | None:
    """Move the cuts of one axis of a grid; None if there are fewer parts then, or none moved."""
    from damier.search.counted import CountedCuts

    name = partition.name
    state = CountedCuts(n_classes, partition.bounds, partition.missing_alone, labels.counts)
    solve(source, {name: state}, labels, _watch(run))
    assert state.solution is not None
    below, above = state.solution.below, state.solution.above
    alone = len(below) > 0 and bool(np.isnan(below[0]))
    bounds = tuple(
        midpoint(b, a) for b, a in zip(below[alone:].tolist(), above[alone:].tolist(), strict=True)
    )
    if len(bounds) + alone != len(partition.bounds) + partition.missing_alone or bounds == partition.bounds:
        return None
    return replace(
        partition,
        bounds=bounds,
        missing_alone=alone,
        has_missing=partition.has_missing or state.n_missing > 0,
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


# ----- against a number


def fit_source_regression_grid(
    number: NumberSource,
    *,
    effort: int | None = None,
    seed: int = 0,
    sample_rows: int = SAMPLE_ROWS,
    run: Run,
) -> tuple[RegressionGrid, int, int, dict[str, tuple[int, int]]]:
    """Search for a grid against a number on a sample of the rows, then count its cells on all rows.

    The cuts of the variables, then those of the target, are moved to where they cost least on all rows. A
    grid that costs more than none on all rows is given up.

    Returns
    -------
    RegressionGrid
    int
        Starts made.
    int
        Rows of the sample.
    dict of str to (int, int)
        As `find_source_grids`.
    """
    run.stop_clock()  # a time limit is for the search
    run.report("Drawing a sample of the rows")
    table, ordered = sample_numbers(number, sample_rows, seed)
    run.start_clock()
    model, n_starts = fit_regression_grid(
        table, ordered.target, ordered.axis.weights, effort=effort, seed=seed, run=run
    )
    run.stop_clock()
    run.report("Counting the cells on all rows")
    unlisted = Unlisted()
    source, bounds, grid = number.source, model.target_bounds, model.grid
    if grid.partitions:
        labels = _intervals_of(number, bounds)
        grid = moved(source, labels, recounted(source, labels, grid, unlisted), unlisted, run)
    if grid.partitions:
        turned = _moved_target(number, grid, bounds, unlisted, run)
        named = replace(grid, classes=interval_labels(turned))
        tried = recounted(source, _intervals_of(number, turned), named, unlisted)
        if _number_cost(number, tried) < _number_cost(number, grid):
            grid, bounds = tried, turned
    warn_left_out(unlisted.left_out, _MOST_VALUES)
    null_cost = regression_grid_cost([[number.bins.total]], grid.n_variables)
    if _number_cost(number, grid) >= null_cost:
        cells = GridCells(np.zeros((1, 0), np.int64), np.array([[number.bins.total]]))
        grid, bounds = replace(grid, partitions={}, cells=cells, classes=interval_labels(())), ()
    model = _number_grid(number, grid, bounds, null_cost, unlisted)
    return model, n_starts, table.n_rows, unlisted.left_out


def _intervals_of(number: NumberSource, bounds: Sequence[float]) -> Labels:
    """Count the intervals of the target."""
    labels = number.by_intervals(bounds, np.empty(0, np.int64))
    return replace(labels, counts=count_target(number, labels).sum(axis=0))


def _number_cost(number: NumberSource, grid: DataGrid) -> float:
    """Cost of a grid and of the intervals of the target."""
    if not grid.partitions:
        return math.inf
    partitions = grid.partitions.values()
    one = number.by_intervals((), np.array([number.bins.total]))
    groups = [
        (int(number.source.profiles(p.name, one).n_values.sum()), p.n_parts)
        for p in partitions
        if isinstance(p, GroupPartition)
    ]
    intervals = [p.n_parts for p in partitions if not isinstance(p, GroupPartition)]
    return regression_grid_cost(grid.cells.counts, grid.n_variables, intervals, groups)


def _moved_target(
    number: NumberSource, grid: DataGrid, bounds: tuple[float, ...], unlisted: Unlisted, run: Run
) -> tuple[float, ...]:
    """Cut the target anew, on all rows, against the cells of a grid."""
    from damier.search.counted_target import CountedTarget

    axes = tuple(map(unlisted.axis, grid.partitions.values()))
    shape = tuple(axis.n_parts for axis in axes)
    many = math.prod(shape) > _MOST_CLASSES // 4 or any(axis.n_values > _MOST_NAMED for axis in axes)
    if many or run.ended == "interrupted":
        return bounds
    run.report("Moving the cuts of the target")
    sizes = np.zeros(shape, np.int64)
    sizes[tuple(grid.cells.parts.T)] = grid.cells.counts.sum(axis=1)
    labels = replace(number.by_intervals((), sizes.ravel()), axes=axes)
    state = CountedTarget(sizes.ravel(), number.bins)
    solve(number.source, {number.name: state}, labels, None)
    assert state.solution is not None
    edges = zip(state.solution.below.tolist(), state.solution.above.tolist(), strict=True)
    return tuple(midpoint(below, above) for below, above in edges)


def _number_grid(
    number: NumberSource, grid: DataGrid, bounds: tuple[float, ...], null_cost: float, unlisted: Unlisted
) -> RegressionGrid:
    """Wrap a grid counted on all rows, with the distribution of the target in its cells."""
    values, rows = count_points(number, np.array(bounds))
    every = NumericTarget(np.arange(len(values), dtype=np.int32), values)
    values, counts = target_points(every, np.array(bounds), rows)
    fine: Fine = number.bins
    if grid.partitions:
        fine = number.pieces(bounds)
        labels = _intervals_of(number, fine.bounds)
        parts, by_piece = number.source.cells([*map(unlisted.axis, grid.partitions.values())], labels)
        if not np.array_equal(parts, grid.cells.parts):
            raise ValueError(CHANGED)
    else:
        by_piece = number.bins.rows[None]
    partitions: dict[str, Partition] = {}
    for k, (name, partition) in enumerate(grid.partitions.items()):
        table = np.zeros((partition.n_parts, by_piece.shape[1]), np.int64)
        np.add.at(table, grid.cells.parts[:, k], by_piece)
        n_values = None
        if isinstance(partition, GroupPartition):
            one = number.by_intervals((), np.array([number.bins.total]))
            n_values = int(number.source.profiles(name, one).n_values.sum())
        partitions[name] = replace(
            partition,
            classes=interval_labels(bounds),
            cost=regression_cost(partition.counts, n_values),
            null_cost=regression_cost([[number.bins.total]], n_values),
            target=number.target_in(fine, table, bounds),
        )
    cost = _number_cost(number, grid) if grid.partitions else null_cost
    whole = replace(
        grid, partitions=partitions, classes=interval_labels(bounds), cost=cost, null_cost=null_cost
    )
    return RegressionGrid(
        grid=whole,
        target=number.target_in(fine, by_piece, bounds),
        values=values,
        counts=counts,
        target_name=number.name,
    )
