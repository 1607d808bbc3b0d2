"""Supervised grids fitted to a table: the search called, its results wrapped into models."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from damier.criteria import discretization_cost, grid_cost, grouping_cost, log_binomial, part_costs
from damier.fit.partitions import partition_column, partition_of_parts
from damier.intake import CategoricalColumn, Column, Table, Target
from damier.intake.table import CodeArray, FloatArray, IntArray
from damier.models import Partition, TargetIntervals
from damier.models.grid import DataGrid, GridCells, GridEnsemble
from damier.search.run import Run, Stopped

if TYPE_CHECKING:
    from damier.search.axis.alone import Alone
    from damier.search.grid.problem import AxisCodes, FoundGrid
    from damier.search.grid.search import FoundPair

# Weights repeat rows; more rows than this are refused.
_MOST_ROWS = 100_000_000
# Rows that draw a cell of a single grid to the whole table: tiny cells promise too much. Among 1/2, 1, 2, 4
# the best on the mean of the tables that benchmarks.classifiers chooses on.
_PRIOR_ROWS = 2.0
# The power of an ensemble's probabilities lies between these.
_POWERS = (0.5, 20.0)


@dataclass(frozen=True)
class FoundGrids:
    """What a search for grids found: the best one, the distinct others if asked for, and its starts.

    ``table`` and ``target`` are the rows it was given, each as often as it counts.
    """

    best: DataGrid
    others: tuple[DataGrid, ...]
    n_starts: int
    table: Table
    target: Target

    def alone(self) -> DataGrid:
        """Return the best grid, its small cells drawn to the class shares of all rows.

        Averages do without: other grids have said already what a tiny cell does not know.
        """
        return replace(self.best, prior_rows=_PRIOR_ROWS).in_library(self.best.library)

    def averaged(self) -> GridEnsemble:
        """Average the others by their levels, or the best one alone where there are none.

        The probabilities are as sharp as makes the classes of the rows most probable, each row judged without
        itself.
        """
        grids = self.others or (self.best,)
        levels = np.array([grid.level for grid in grids])
        total = levels.sum()
        shares = levels / total if total > 0 else np.full(len(grids), 1 / len(grids))
        return GridEnsemble(grids, shares, _best_power(grids, shares, self.table, self.target))


def _best_power(grids: Sequence[DataGrid], shares: FloatArray, table: Table, target: Target) -> float:
    """Find the power of the mean probabilities that makes the classes of the rows most probable.

    Each row is judged by the other rows of its cells. The sum over the rows is convex in the power.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    rows = np.arange(table.n_rows)
    proba = np.zeros((table.n_rows, target.n_classes))
    for grid, share in zip(grids, shares, strict=True):
        # A grid without a variable has one cell.
        cells = grid.find_cells(table) if grid.partitions else np.zeros(table.n_rows, np.int64)
        counts = grid.cells.counts[cells].astype(np.float64)
        counts[rows, target.codes] -= 1.0
        others = counts.sum(axis=1, keepdims=True)
        proba += share * np.where(others > 0, counts / np.maximum(others, 1.0), grid.shares)
    logs = np.log(np.maximum(proba, 0.5 / table.n_rows))

    def loss(power: float) -> float:
        of_rows = logsumexp(power * logs, axis=1) - power * logs[rows, target.codes]
        return float(of_rows.sum())

    found = minimize_scalar(loss, bounds=_POWERS, method="bounded", options={"xatol": 1e-4})
    # Rounded, so that it does not depend on the order in which rows are summed.
    return round(float(found.x), 2)


def fit_grid(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    effort: int | None = None,
    seed: int = 0,
    short_bounds: bool = False,
    run: Run,
) -> DataGrid:
    """Find the grid of least cost.

    Parameters
    ----------
    table, target
        The variables, and classes for all rows.
    weights : int64 array, optional
        How many times each row counts.
    effort : int, optional
        The search ends after 2^effort starts in a row that did not better the grid; 4 by default, or, with a
        time limit, as many as that allows.
    seed : int
        Seed of the starts.
    short_bounds : bool
        Place bounds at the number of fewest digits between two values, rather than in the middle.
    run : Run
        Threads, time limit and reports of the search.

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> x = np.arange(100.0)
    >>> print(fit_grid(read_table({"x": x}), read_target(x > 40), run=Run()))
    grid of x (2): level 0.7482, 2 of 2 cells in use
    """
    found = find_grids(table, target, weights, effort=effort, seed=seed, short_bounds=short_bounds, run=run)
    return found.alone()


def fit_grid_ensemble(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    n_grids: int = 200,
    effort: int | None = None,
    seed: int = 0,
    run: Run,
) -> GridEnsemble:
    """Average the grids that a search meets, weighted by their levels.

    After the search, as in `fit_grid`, ``n_grids`` starts are made on random subsets of the variables.
    """
    found = find_grids(table, target, weights, effort=effort, seed=seed, n_diverse=n_grids, run=run)
    return found.averaged()


class PairGrid(NamedTuple):
    """The grid over two variables that a pair was judged by: its partitions and the cells that hold rows.

    Of a numeric target, the cells count its intervals, and its distribution in each cell is known.
    """

    partitions: tuple[Partition, Partition]
    cells: GridCells
    target: TargetIntervals | None = None


@dataclass(frozen=True)
class FoundPairs:
    """Pairs ranked, and the grid of each one done, by the names of its variables."""

    ranked: dict[str, list[Any]]
    grids: dict[tuple[str, str], PairGrid]


def fit_pairs(
    table: Table,
    target: Target,
    *,
    partitions: Mapping[str, Partition] | None = None,
    effort: int | None = None,
    n_full: int | None = None,
    seed: int = 0,
    run: Run,
) -> dict[str, list[Any]]:
    """Rank all pairs of variables by what they explain beyond each of the two alone.

    Parameters
    ----------
    effort : int, optional
        The search of a pair ends after 2^effort starts in a row without success; 2 by default.
    table, target, partitions, n_full, seed, run
        As in `find_pairs`.

    Returns
    -------
    dict of lists
        One entry per pair, the largest gain first: ``first``, ``second``, ``level``, ``first_level``,
        ``second_level``, ``gain``, ``done``. A pair that the run did not come to is not done: it comes last,
        its level and gain are NaN.

    Raises
    ------
    ValueError
        If there are fewer than two variables.
    """
    search = _PairSearch(table, target, partitions, effort, seed, False, run)
    search.search_all(n_full)
    return search.ranked()


def find_pairs(
    table: Table,
    target: Target,
    *,
    partitions: Mapping[str, Partition] | None = None,
    n_starts: int | None = None,
    enough: float = math.inf,
    n_full: int | None = None,
    only: Sequence[tuple[int, int]] | None = None,
    seed: int = 0,
    short_bounds: bool = False,
    run: Run,
) -> FoundPairs:
    """Rank all pairs of variables, and return the grid of each.

    The level of a pair is that of the best grid found, of the cross of the two partitions, or of one of the
    variables alone, whichever is highest. None of them pays for choosing variables: all are measured as
    `damier.criteria.discretization_cost` and `damier.criteria.grouping_cost` measure a single variable. The
    grid of a pair is the cheaper of the first two, also where a variable alone is cheaper still.

    Parameters
    ----------
    table, target
        The variables, two at least, and classes for all rows.
    partitions : mapping of str to Partition, optional
        The partition of each variable alone, if known already.
    n_starts : int, optional
        Starts of the search of each pair. By default it ends after four in a row without success, and after
        seven at the earliest.
    enough : float
        What a pair saves beyond both variables, in nats, at which its search ends.
    n_full : int, optional
        How many pairs are searched: those whose classes differ most from cell to cell, a chessboard of two
        columns that say nothing alone among them, and, for a third, those whose crossed partitions have the
        highest level. The others are left with that cross. By default all are searched.
    only : sequence of pairs of int, optional
        Places of the columns of the pairs to search; by default all pairs.
    seed : int
        Seed of the starts.
    short_bounds : bool
        Place bounds at the number of fewest digits between two values, rather than in the middle.
    run : Run
        Threads that share the pairs, time limit and reports.

    Raises
    ------
    ValueError
        If there are fewer than two variables.

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.random((2, 400))
    >>> found = find_pairs(read_table({"a": a, "b": b}), read_target((a > 0.5) ^ (b > 0.5)), run=Run())
    >>> round(found.ranked["gain"][0], 2), found.grids["a", "b"].cells.parts.tolist()
    (0.85, [[0, 0], [0, 1], [1, 0], [1, 1]])
    """
    search = _PairSearch(table, target, partitions, None, seed, short_bounds, run)
    if only is not None:
        search.keep(only)
    search.search_all(n_full, n_starts, enough)
    return FoundPairs(search.ranked(), search.grids())


class _PairSearch:
    """Searches pairs of the columns of a table, as `find_pairs` says."""

    def __init__(
        self,
        table: Table,
        target: Target,
        partitions: Mapping[str, Partition] | None,
        effort: int | None,
        seed: int,
        short_bounds: bool,
        run: Run,
    ) -> None:
        from damier.search.grid.search import PAIR_EFFORT, compile_kernels

        if table.n_columns < 2:
            raise ValueError(f"A pair takes two columns; X has {table.n_columns}.")
        compile_kernels(target.n_classes, run)
        self.table, self.target, self.partitions, self.run = table, target, partitions, run
        self.effort = PAIR_EFFORT if effort is None else effort
        self.seed, self.short_bounds = seed, short_bounds
        self.coded = [code_column(column) for column in table.columns]
        self.axes = [one.axis for one in self.coded]
        self.pairs = list(itertools.combinations(range(len(self.axes)), 2))
        self.level = np.full(len(self.pairs), math.nan)
        self.level_alone = np.full(len(self.axes), math.nan)
        whole = np.bincount(target.codes, minlength=target.n_classes)[None]
        self.whole_cost = float(part_costs(whole).sum())
        # What the search adds to the cost of both variables.
        self.choosing_both = grid_cost(whole, 2) - self.whole_cost + log_binomial(3, 2)
        self.alone: dict[int, Alone] = {}
        self.own: dict[int, Partition] = {}
        self.part_of: dict[int, IntArray] = {}
        # By pair, the part of each value where the grid is not the cross of the two partitions.
        self.parts: dict[int, tuple[CodeArray, CodeArray]] = {}

    def keep(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Search none but some of the pairs."""
        self.pairs = list(pairs)
        self.level = np.full(len(self.pairs), math.nan)

    def search_all(self, n_full: int | None, n_starts: int | None = None, enough: float = math.inf) -> None:
        """Search all pairs, or some and cross the partitions of the others; those done in time are kept."""
        run, places = self.run, range(len(self.pairs))
        with contextlib.suppress(Stopped):  # the pairs done so far are ranked
            paired = sorted({k for pair in self.pairs for k in pair})
            run.map(self._partition, paired, text="Variables alone")
            chosen: Sequence[int] = places
            if n_full is not None and n_full < len(self.pairs):
                run.map(self._judge, places, text="Pairs")
                chosen = self._promising(n_full)
            run.map(lambda place: self._search(place, n_starts, enough), chosen, text="Pairs")
        run.stop_clock()

    def _promising(self, n: int) -> list[int]:
        """Choose pairs whose classes differ most from cell to cell, and, for a third, those of most level."""
        differ = interactions(self.axes, self.pairs, self.target.codes, self.target.n_classes)
        order = sorted(range(len(self.pairs)), key=lambda place: -differ[place])
        best, others = order[: n - n // 3], order[n - n // 3 :]
        return best + sorted(others, key=lambda place: -self.level[place])[: n // 3]

    def ranked(self) -> dict[str, list[Any]]:
        """Rank the pairs by their gain."""
        return ranked_pairs(self.table.names, self.pairs, self.level, self.level_alone)

    def grids(self) -> dict[tuple[str, str], PairGrid]:
        """Return the grid of each pair that was done."""
        names, done = self.table.names, np.flatnonzero(~np.isnan(self.level)).tolist()
        by_names = ((names[a], names[b]) for a, b in (self.pairs[place] for place in done))
        return dict(zip(by_names, map(self._grid, done), strict=True))

    def _partition(self, k: int) -> None:
        from damier.search.grid.search import search_alone

        column = self.table.columns[k]
        self.alone[k] = search_alone(self.axes[k], self.target.codes, self.target.n_classes)
        if self.partitions is None:
            self.own[k] = partition_column(column, self.target, short_bounds=self.short_bounds)
        else:
            self.own[k] = self.partitions[column.name]
        self.part_of[k] = self.own[k].apply(column)
        self.level_alone[k] = self.own[k].level

    def _search(self, place: int, n_starts: int | None, enough: float) -> None:
        from damier.search.grid.search import search_pair

        a, b = self.pairs[place]
        left = 1.0 - float(self.level_alone[a] + self.level_alone[b])
        found = search_pair(
            [self.axes[a], self.axes[b]],
            [self.alone[a], self.alone[b]],
            self.target.codes,
            self.target.n_classes,
            effort=self.effort,
            n_starts=n_starts,
            enough=left * self._null_cost(a, b) + self.choosing_both - enough,
            seed=self.seed,
            run=self.run,
        )
        self._judge(place, found)

    def _judge(self, place: int, found: FoundPair | None = None) -> None:
        """Set the level of a pair by what was found, the cross of both partitions, or one of them alone."""
        a, b = self.pairs[place]
        parts = None if found is None else found.parts
        cost = math.inf if found is None or parts is None else found.cost - self.choosing_both
        crossed = self._cross_cost(a, b) if min(self.level_alone[a], self.level_alone[b]) > 0 else math.inf
        if parts is not None and cost < crossed:
            self.parts[place] = parts
        level = 1.0 - min(cost, crossed) / self._null_cost(a, b)
        self.level[place] = max(self.level_alone[a], self.level_alone[b], level)

    def _null_cost(self, a: int, b: int) -> float:
        return self.own[a].null_cost + self.own[b].null_cost - self.whole_cost

    def _cross_cost(self, a: int, b: int) -> float:
        """Cost of the cross of both partitions, as the search has it but for the choice of the two."""
        priors = sum(self.own[k].cost - float(part_costs(self.own[k].counts).sum()) for k in (a, b))
        return priors + float(part_costs(self._cross(a, b).counts).sum())

    def _cross(self, a: int, b: int) -> GridCells:
        """Count the cells of the cross of both partitions."""
        return self._count(self.part_of[a], self.part_of[b], self.own[b].n_parts)

    def _count(self, first: IntArray, second: IntArray, n_second: int) -> GridCells:
        """Count the cells of the rows' parts."""
        n_classes = self.target.n_classes
        keys, cells = np.unique(first * n_second + second, return_inverse=True)
        flat = np.bincount(cells * n_classes + self.target.codes, minlength=keys.size * n_classes)
        return GridCells(np.stack(np.divmod(keys, n_second), axis=1), flat.reshape(-1, n_classes))

    def _grid(self, place: int) -> PairGrid:
        a, b = self.pairs[place]
        parts = self.parts.get(place)
        if parts is None:
            return PairGrid((self.own[a], self.own[b]), self._cross(a, b))
        first, second = (
            _partition(self.coded[k], self.target, of_values, self.short_bounds)
            for k, of_values in zip((a, b), parts, strict=True)
        )
        of_rows = [of[self.axes[k].codes].astype(np.int64) for k, of in zip((a, b), parts, strict=True)]
        return PairGrid((first, second), self._count(of_rows[0], of_rows[1], second.n_parts))


def ranked_pairs(
    names: Sequence[str], pairs: Sequence[tuple[int, int]], level: FloatArray, level_alone: FloatArray
) -> dict[str, list[Any]]:
    """Rank pairs by their gain, those without a level last."""
    gains = pair_gains(level, level_alone, pairs)
    order = sorted(range(len(pairs)), key=lambda i: (math.isnan(gains[i]), -gains[i], pairs[i]))
    return {
        "first": [names[pairs[i][0]] for i in order],
        "second": [names[pairs[i][1]] for i in order],
        "level": level[order].tolist(),
        "first_level": [float(level_alone[pairs[i][0]]) for i in order],
        "second_level": [float(level_alone[pairs[i][1]]) for i in order],
        "gain": gains[order].tolist(),
        "done": [not math.isnan(level[i]) for i in order],
    }


def pair_gains(level: FloatArray, level_alone: FloatArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    """Return what pairs explain beyond the two variables alone."""
    first, second = np.array(pairs).T
    gains: FloatArray = level - (level_alone[first] + level_alone[second])
    return gains


def interactions(
    axes: Sequence[AxisCodes], pairs: Sequence[tuple[int, int]], classes: CodeArray, n_classes: int
) -> list[float]:
    """Measure of each pair, without a search, how much classes differ from cell to cell."""
    from damier.search.grid.search import equal_cuts, interaction_of_cuts

    cuts = [equal_cuts(axis, classes, n_classes) for axis in axes]
    return [interaction_of_cuts(cuts[a], cuts[b], classes, n_classes) for a, b in pairs]


@dataclass(frozen=True)
class CodedColumn:
    """A column for the search, and its distinct values, NaN or None first."""

    column: Column
    axis: AxisCodes
    values: Any


def code_column(column: Column) -> CodedColumn:
    """Code a column for the search of a grid."""
    from damier.search.grid.problem import AxisCodes

    values, codes = column.coded()
    axis = AxisCodes(codes.astype(np.int32), len(values), isinstance(column, CategoricalColumn))
    return CodedColumn(column, axis, values)


def find_grids(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    effort: int | None = None,
    seed: int = 0,
    n_diverse: int = 0,
    short_bounds: bool = False,
    run: Run,
) -> FoundGrids:
    """Search as `fit_grid` does; with ``n_diverse``, make so many starts more and keep all grids met."""
    from damier.search.grid.search import search_grid

    library = table.library
    if weights is not None:
        table, target = _repeat(table, target, weights)
    coded = [code_column(column) for column in table.columns]
    found = search_grid(
        [one.axis for one in coded],
        target.codes,
        target.n_classes,
        effort=effort,
        seed=seed,
        n_diverse=n_diverse,
        run=run,
    )
    best, *others = (
        _grid(coded, target, one, found.null_cost, short_bounds).in_library(library)
        for one in (found.best, *found.others)
    )
    return FoundGrids(best, tuple(others), found.n_starts, table, target)


def _repeat(table: Table, target: Target, weights: IntArray) -> tuple[Table, Target]:
    """Repeat each row as often as it counts: cells are counted row by row."""
    rows = repeated_rows(weights)
    return table.take(rows), Target(target.codes[rows], target.classes)


def repeated_rows(weights: IntArray) -> IntArray:
    """Return each row as often as it counts, or refuse weights of too many rows."""
    total = int(weights.sum())
    if total > _MOST_ROWS:
        raise ValueError(
            f"sample_weight adds up to {total} rows; grids take {_MOST_ROWS} at most: scale the weights down."
        )
    return np.repeat(np.arange(len(weights)), weights)


def _grid(
    coded: Sequence[CodedColumn], target: Target, found: FoundGrid, null_cost: float, short_bounds: bool
) -> DataGrid:
    """Wrap a grid that the search found."""
    partitions = {
        coded[k].column.name: _partition(coded[k], target, parts, short_bounds)
        for k, parts in found.value_parts.items()
    }
    return DataGrid(
        partitions=partitions,
        cells=GridCells(found.cells.astype(np.int64), found.counts),
        classes=tuple(target.classes.tolist()),
        n_variables=len(coded),
        cost=found.cost,
        null_cost=null_cost,
    )


def _partition(coded: CodedColumn, target: Target, parts: CodeArray, short_bounds: bool) -> Partition:
    """One axis of a grid as a partition, with the cost it would have alone."""
    n_parts, n_classes = int(parts.max()) + 1, target.n_classes
    flat = parts[coded.axis.codes].astype(np.int64) * n_classes + target.codes
    counts = np.bincount(flat, minlength=n_parts * n_classes).reshape(n_parts, n_classes).astype(np.int64)
    whole = counts.sum(axis=0, keepdims=True)
    n_values = coded.axis.n_values
    if coded.axis.categorical:
        cost, null_cost = grouping_cost(counts, n_values), grouping_cost(whole, n_values)
    else:
        cost, null_cost = discretization_cost(counts), discretization_cost(whole)
    return partition_of_parts(
        coded.column,
        parts,
        coded.values,
        classes=tuple(target.classes.tolist()),
        counts=counts,
        cost=cost,
        null_cost=null_cost,
        optimal=False,
        short_bounds=short_bounds,
    )
