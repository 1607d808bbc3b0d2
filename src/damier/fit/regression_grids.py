"""Grids against a numeric target: the search called, its result wrapped into a model."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from damier.criteria import regression_cost
from damier.fit.grids import (
    CodedColumn,
    FoundPairs,
    PairGrid,
    code_column,
    interactions,
    pair_gains,
    ranked_pairs,
    repeated_rows,
)
from damier.fit.numeric_target import OrderedTarget, order_target
from damier.fit.partitions import partition_of_parts
from damier.intake import NumericTarget, Table
from damier.intake.table import CodeArray, FloatArray, IntArray
from damier.models import DataGrid, GridCells, Partition, RegressionGrid, TargetIntervals
from damier.models.regressor import target_points
from damier.models.target_intervals import distribution_by_part, interval_labels, target_bounds
from damier.search.run import Run, Stopped

if TYPE_CHECKING:
    from damier.search.grid.numeric_target import NumberPair
    from damier.search.grid.problem import AxisCodes

# How many of the variables that inform most lend their intervals of the target to begin with.
_MOST_LENT = 2


def fit_regression_grid(
    table: Table,
    target: NumericTarget,
    weights: IntArray | None = None,
    *,
    effort: int | None = None,
    seed: int = 0,
    short_bounds: bool = False,
    target_name: str = "target",
    run: Run,
) -> tuple[RegressionGrid, int]:
    """Find the grid and the target's intervals of least cost.

    Parameters
    ----------
    table, target
        The variables, and a number for each row.
    weights : int64 array, optional
        How many times each row counts.
    effort, seed, short_bounds, run
        As in `damier.fit.grids.fit_grid`.
    target_name : str
        What rules call the target.

    Returns
    -------
    RegressionGrid
    int
        Starts made.

    Examples
    --------
    >>> from damier.intake import read_numbers, read_table
    >>> x = np.arange(100.0)
    >>> grid, _ = fit_regression_grid(read_table({"x": x}), read_numbers((x > 40) * 9 + x % 7), run=Run())
    >>> print(grid)
    grid of x (2): level 0.1304, 2 of 2 cells in use, 2 target intervals
    """
    from damier.search.axis.numeric_target import partition_with_target
    from damier.search.grid.numeric_target import search_grid_with_target
    from damier.search.grid.problem import cells_of_rows
    from damier.search.grid.search import compile_kernels

    library = table.library
    if weights is not None:
        rows = repeated_rows(weights)
        table, target = table.take(rows), dataclasses.replace(target, codes=target.codes[rows])
    coded = [code_column(column) for column in table.columns]
    axes = [one.axis for one in coded]
    ordered = order_target(target)
    compile_kernels(3, run)  # starts the clock: the variables alone are a part of the search

    def alone(one: CodedColumn) -> Any:
        axis = one.axis
        return partition_with_target(axis.codes, axis.n_values, ordered.axis, ordered=not axis.categorical)

    lent: list[IntArray] = []
    with contextlib.suppress(Stopped):
        by_itself = run.map(alone, coded, text="Variables alone")
        informing = sorted(by_itself, key=lambda found: found.cost - found.null_cost)
        lent = [found.target_starts for found in informing[:_MOST_LENT]]
    found = search_grid_with_target(axes, ordered.axis, lent, effort=effort, seed=seed, run=run)
    bounds = target_bounds(target, found.target_starts, short_bounds=short_bounds)
    partitions = {
        coded[k].column.name: _partition(coded[k], ordered, parts, found.target_starts, bounds, short_bounds)
        for k, parts in found.grid.value_parts.items()
    }
    cells, _ = cells_of_rows(axes, found.grid.value_parts, table.n_rows)
    values, counts = target_points(target, np.array(bounds))
    grid = DataGrid(
        partitions=partitions,
        cells=GridCells(found.grid.cells.astype(np.int64), found.grid.counts),
        classes=interval_labels(bounds),
        n_variables=len(coded),
        cost=found.cost,
        null_cost=found.null_cost,
    )
    of_cells = _intervals(ordered, cells, len(found.grid.counts), bounds)
    model = RegressionGrid(grid=grid, target=of_cells, values=values, counts=counts, target_name=target_name)
    return model.in_library(library), found.n_starts


def fit_number_pairs(
    table: Table, target: NumericTarget, *, effort: int | None = None, seed: int = 0, run: Run
) -> dict[str, list[Any]]:
    """Rank all pairs of variables by what they explain of a number beyond each of the two alone.

    Parameters
    ----------
    table, target, effort, seed, run
        As in `find_number_pairs`.

    Returns
    -------
    dict of lists
        As `damier.fit.grids.fit_pairs` returns it.
    """
    search = _NumberPairSearch(table, target, effort, seed, run)
    search.search_all(None)
    return search.ranked()


def find_number_pairs(
    table: Table,
    target: NumericTarget,
    *,
    effort: int | None = None,
    n_full: int | None = None,
    seed: int = 0,
    short_bounds: bool = False,
    run: Run,
) -> FoundPairs:
    """Rank all pairs of variables, and return the grid of each, with the distribution of the target in it.

    The target is cut as each of the two variables has it, and into four intervals of as many rows. The level
    of a pair is that of the best grid found against any of these, of the cross of the two partitions with the
    target cut anew, or of one of the variables alone, whichever is highest. The grid of a pair is the best of
    the former, also where a variable alone has a higher level.

    Parameters
    ----------
    table, target
        The variables, two at least, and a number for each row.
    effort : int, optional
        The search of a pair ends after 2^effort starts in a row without success; 2 by default.
    n_full : int, optional
        How many pairs are searched in full. All of them have one start against four intervals first; then
        come those that gained most by it, and, for a third, those whose targets differ most from cell to
        cell. By default all are.
    seed, short_bounds, run
        As in `damier.fit.grids.find_pairs`.

    Examples
    --------
    >>> from damier.intake import read_numbers, read_table
    >>> rng = np.random.default_rng(0)
    >>> a, b, noise = rng.random((3, 400))
    >>> y = ((a > 0.5) ^ (b > 0.5)) + noise
    >>> found = find_number_pairs(read_table({"a": a, "b": b}), read_numbers(y), run=Run())
    >>> grid = found.grids["a", "b"]
    >>> grid.cells.parts.tolist(), grid.target.medians.round(1)
    ([[0, 0], [0, 1], [1, 0], [1, 1]], array([0.5, 1.5, 1.5, 0.5]))
    """
    search = _NumberPairSearch(table, target, effort, seed, run)
    search.search_all(n_full)
    return FoundPairs(search.ranked(), search.grids(short_bounds))


class _NumberPairSearch:
    """Searches pairs of the columns of a table, as `find_number_pairs` says."""

    def __init__(self, table: Table, target: NumericTarget, effort: int | None, seed: int, run: Run) -> None:
        from damier.search.grid.numeric_target import NumberPairs
        from damier.search.grid.search import PAIR_EFFORT, compile_kernels

        if table.n_columns < 2:
            raise ValueError(f"A pair takes two columns; X has {table.n_columns}.")
        compile_kernels(3, run)
        self.names, self.run = table.names, run
        self.ordered = order_target(target)
        self.coded = [code_column(column) for column in table.columns]
        self.axes = [one.axis for one in self.coded]
        effort = PAIR_EFFORT if effort is None else effort
        self.search = NumberPairs(self.axes, self.ordered.axis, effort, seed, run)
        self.pairs = list(itertools.combinations(range(len(self.axes)), 2))
        self.level = np.full(len(self.pairs), math.nan)
        self.level_alone = np.full(len(self.axes), math.nan)
        self.found: dict[int, NumberPair] = {}

    def search_all(self, n_full: int | None) -> None:
        """Search all pairs, or have a glance at all and search some; those done when time ends are kept."""
        run, places = self.run, range(len(self.pairs))
        with contextlib.suppress(Stopped):  # the pairs done so far are ranked
            run.map(self._alone, range(len(self.axes)), text="Variables alone")
            chosen: Sequence[int] = places
            if n_full is not None and n_full < len(self.pairs):
                run.map(lambda place: self._pair(place, glance=True), places, text="Pairs")
                gains = pair_gains(self.level, self.level_alone, self.pairs)
                chosen = _promising(gains, self.axes, self.pairs, *self.search.quarters(), n_full)
            run.map(self._pair, chosen, text="Pairs")
        run.stop_clock()

    def ranked(self) -> dict[str, list[Any]]:
        """Rank the pairs by their gain."""
        return ranked_pairs(self.names, self.pairs, self.level, self.level_alone)

    def grids(self, short_bounds: bool) -> dict[tuple[str, str], PairGrid]:
        """Return the grid of each pair that was done."""
        grids = {}
        for place, found in sorted(self.found.items()):
            a, b = self.pairs[place]
            grids[self.names[a], self.names[b]] = self._grid(a, b, found, short_bounds)
        return grids

    def _alone(self, k: int) -> None:
        self.level_alone[k] = self.search.alone(k)

    def _pair(self, place: int, *, glance: bool = False) -> None:
        self.found[place] = self.search.pair(*self.pairs[place], glance=glance)
        self.level[place] = self.found[place].level

    def _grid(self, a: int, b: int, found: NumberPair, short_bounds: bool) -> PairGrid:
        from damier.search.axis.numeric_target import counts_by_interval

        ordered, starts = self.ordered, found.target_starts
        bounds = target_bounds(ordered.target, starts, short_bounds=short_bounds)
        first, second = (
            _partition(self.coded[k], ordered, parts, starts, bounds, short_bounds)
            for k, parts in zip((a, b), found.parts, strict=True)
        )
        of_rows = [of[self.axes[k].codes].astype(np.int64) for k, of in zip((a, b), found.parts, strict=True)]
        keys, cells = np.unique(of_rows[0] * second.n_parts + of_rows[1], return_inverse=True)
        counts = counts_by_interval(ordered.axis, cells, keys.size, starts)
        parts = np.stack(np.divmod(keys, second.n_parts), axis=1)
        of_cells = _intervals(ordered, cells, keys.size, bounds)
        return PairGrid((first, second), GridCells(parts, counts), of_cells)


def _intervals(
    ordered: OrderedTarget, parts: IntArray, n_parts: int, bounds: Sequence[float]
) -> TargetIntervals:
    means, quantiles = distribution_by_part(ordered.target, parts, n_parts, ordered.axis.order)
    return TargetIntervals(
        bounds=tuple(bounds), mean=ordered.mean, overall=ordered.overall, means=means, quantiles=quantiles
    )


def _partition(
    coded: CodedColumn,
    ordered: OrderedTarget,
    parts: CodeArray,
    starts: IntArray,
    bounds: Sequence[float],
    short_bounds: bool,
) -> Partition:
    """One axis of a grid as a partition, with the cost it would have alone."""
    from damier.search.axis.numeric_target import counts_by_interval

    of_rows, n_parts = parts[coded.axis.codes].astype(np.int64), int(parts.max()) + 1
    counts = counts_by_interval(ordered.axis, of_rows, n_parts, starts)
    n_values = coded.axis.n_values if coded.axis.categorical else None
    return partition_of_parts(
        coded.column,
        parts,
        coded.values,
        short_bounds=short_bounds,
        classes=interval_labels(bounds),
        counts=counts,
        cost=regression_cost(counts, n_values),
        null_cost=regression_cost([[counts.sum()]], n_values),
        optimal=False,
        target=_intervals(ordered, of_rows, n_parts, bounds),
    )


def _promising(
    gains: FloatArray,
    axes: Sequence[AxisCodes],
    pairs: Sequence[tuple[int, int]],
    classes: CodeArray,
    n_classes: int,
    n: int,
) -> list[int]:
    """Choose pairs for a full search, given what each gained by one start."""
    crossed = interactions(axes, pairs, classes, n_classes)
    gained = np.maximum(gains, 0.0).tolist()
    best = sorted(range(len(pairs)), key=lambda i: (-gained[i], -crossed[i]))[: n - n // 3]
    others = sorted(set(range(len(pairs))) - set(best), key=lambda i: (-crossed[i], i))
    return best + others[: n - len(best)]
