"""A grid over several variables and the intervals of a numeric target, found together.

Two steps take turns: with the target cut into J intervals, the search of a grid against J classes; with the
cells of a grid as parts, the target cut anew.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from damier.criteria import grid_cost, log_binomial, part_costs, regression_grid_cost
from damier.criteria.special import gammaln
from damier.search.axis.alone import Alone
from damier.search.axis.numeric_target import (
    JointPartition,
    TargetAxis,
    counts_by_interval,
    equal_blocks,
    intervals_for_parts,
    labels_of,
    partition_with_target,
)
from damier.search.grid.problem import AxisCodes, FoundGrid, cells_of_rows, count_cells
from damier.search.grid.search import (
    DEFAULT_EFFORT,
    search_alone,
    search_grid,
    search_pair,
)
from damier.search.kernels import CodeArray, IntArray
from damier.search.run import Run

# Numbers of equal-frequency intervals of the target that the turns begin with.
_STARTS = (4, 12)
# Most turns from one start, and without effort.
_MOST_TURNS = 8
_QUICK_TURNS = 2
# Equal-frequency intervals of the target that a pair is searched against, beside those of its variables.
_PAIR_INTERVALS = 4
_LEAST_GAIN = 1e-7


class GridWithTarget(NamedTuple):
    """A grid and the intervals of the target.

    Attributes
    ----------
    grid : FoundGrid
        Its counts are those of the target's intervals.
    target_starts : int64 array of shape (J,)
        First distinct value of each interval of the target.
    cost, null_cost : float
        The criterion of both, and of no variable and one interval.
    n_starts : int
        Starts made by all searches.
    """

    grid: FoundGrid
    target_starts: IntArray
    cost: float
    null_cost: float
    n_starts: int


def search_grid_with_target(
    axes: Sequence[AxisCodes],
    target: TargetAxis,
    first: Sequence[IntArray] = (),
    *,
    effort: int | None = None,
    seed: int = 0,
    run: Run | None = None,
) -> GridWithTarget:
    """Search for the grid and the target's intervals of least cost.

    Parameters
    ----------
    axes : sequence of AxisCodes
        The coded variables.
    target : TargetAxis
        The rows of the target, each counted once.
    first : sequence of int64 arrays
        Intervals of the target to begin with, beside those of equal frequency: the first distinct value of
        each interval.
    effort, seed, run
        As in `search_grid`. Intervals to begin with are tried without effort; the best are searched with it
        (those of equal frequency, where nothing was found), and with ever more where there is a time limit
        but no effort given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 50, 600, dtype=np.int32)
    >>> codes = np.argsort(np.argsort(x + rng.random(600))).astype(np.int32)
    >>> from damier.search.axis.numeric_target import target_axis
    >>> found = search_grid_with_target([AxisCodes(x, 50, False)], target_axis(codes, 600))
    >>> found.grid.counts.shape[1] == len(found.target_starts), found.cost < found.null_cost
    (True, True)
    """
    run = Run() if run is None else run
    efforts: Iterable[int] = (0, DEFAULT_EFFORT if effort is None else effort)
    if effort is None and run.time_limit is not None:
        efforts = itertools.chain(efforts, itertools.count(DEFAULT_EFFORT + 1))
    equal = [equal_blocks(target.sizes, number) for number in _STARTS]
    begins = [*first, *equal]
    best = _grid(axes, target, {}, np.zeros(1, np.int64))
    n_starts = 0
    met: set[tuple[bytes, int]] = set()
    for its_effort in efforts:
        for starts in begins:
            for _ in range(_MOST_TURNS if its_effort > 0 else _QUICK_TURNS):
                key = starts.tobytes(), its_effort
                if len(starts) < 2 or key in met or run.stopped:
                    break
                met.add(key)
                found, starts, made = _turn(axes, target, starts, its_effort, seed, run)
                n_starts += made
                if found.cost >= best.cost - _LEAST_GAIN:
                    break
                best = found
        if run.stopped:
            break
        begins = [best.target_starts] if best.grid.value_parts else equal
    run.stop_clock()
    return best._replace(n_starts=n_starts)


def _turn(
    axes: Sequence[AxisCodes], target: TargetAxis, starts: IntArray, effort: int, seed: int, run: Run
) -> tuple[GridWithTarget, IntArray, int]:
    """Search a grid against the target's intervals, then cut the target against its cells."""
    intervals = labels_of(starts, target.n_values)[target.codes].astype(np.int32)
    found = search_grid(axes, intervals, len(starts), effort=effort, seed=seed, alone=False, run=run)
    parts = found.best.value_parts
    if not parts:
        return _grid(axes, target, {}, np.zeros(1, np.int64)), starts, found.n_starts
    cells, rows = cells_of_rows(axes, parts, len(target.codes))
    cut = intervals_for_parts(target, cells, len(rows), starts)
    return _grid(axes, target, parts, cut), cut, found.n_starts


def _grid(
    axes: Sequence[AxisCodes], target: TargetAxis, parts: dict[int, CodeArray], starts: IntArray
) -> GridWithTarget:
    """Count the cells, and price them from scratch."""
    intervals = labels_of(starts, target.n_values)[target.codes].astype(np.int32)
    cells, counts = count_cells(axes, intervals, len(starts), parts)
    sizes = {k: int(of_values.max()) + 1 for k, of_values in parts.items()}
    numeric = [n for k, n in sizes.items() if not axes[k].categorical]
    categorical = [(axes[k].n_values, n) for k, n in sizes.items() if axes[k].categorical]
    cost = regression_grid_cost(counts, len(axes), numeric, categorical)
    null_cost = regression_grid_cost([[target.total]], len(axes))
    return GridWithTarget(FoundGrid(cost, parts, cells, counts), starts, cost, null_cost, 0)


class NumberPair(NamedTuple):
    """What a pair of variables was judged by.

    Attributes
    ----------
    level : float
        Of the grid, or of one of the variables alone where that is higher.
    parts : tuple of two int32 arrays
        Part of each value of both variables in the cheapest grid that crosses them, else alone.
    target_starts : int64 array
        First distinct value of each interval of the target.
    """

    level: float
    parts: tuple[CodeArray, CodeArray]
    target_starts: IntArray


class NumberPairs:
    """Levels of variables and of pairs of variables against a numeric target.

    Parameters
    ----------
    axes : sequence of AxisCodes
        The coded variables.
    target : TargetAxis
        The rows of the target, each counted once.
    effort, seed, run
        As in `damier.search.grid.search.search_pair`.
    """

    def __init__(
        self, axes: Sequence[AxisCodes], target: TargetAxis, effort: int, seed: int, run: Run
    ) -> None:
        self.axes, self.target = axes, target
        self.effort, self.seed, self.run = effort, seed, run
        self.own: dict[int, JointPartition] = {}
        # The target's intervals and their number, the price of both, and the variables alone against them.
        self._against: dict[bytes, tuple[CodeArray, int, float, dict[int, Alone]]] = {}
        self._lock = threading.Lock()

    def alone(self, k: int) -> float:
        """Partition one variable with the target; return its level."""
        axis = self.axes[k]
        found = partition_with_target(axis.codes, axis.n_values, self.target, ordered=not axis.categorical)
        self.own[k] = found
        return max(0.0, 1.0 - found.cost / found.null_cost)

    def pair(self, a: int, b: int, *, glance: bool = False) -> NumberPair:
        """Search a pair, both partitioned alone before.

        At a glance one start is made, against four intervals of the target: those of each variable need it
        partitioned against them first, which takes most of the time.

        Raises
        ------
        Stopped
            If the run is stopped.
        """
        own = self.own[a], self.own[b]
        null = np.array([[self.target.total]])
        # Both variables are priced, the target once; choosing variables is free.
        null_cost = own[0].null_cost + own[1].null_cost - _target_price(null)
        cuts = [] if glance else [one.target_starts for one in own]
        cuts.append(equal_blocks(self.target.sizes, _PAIR_INTERVALS))
        found = [self._crossed(a, b, starts, 1 if glance else None) for starts in _distinct(cuts)]
        alone = [1.0 - one.cost / one.null_cost for one in own]
        if min(len(one.counts) for one in own) > 1:
            found.append(self._cross(a, b, own))
        grids = [one for one in found if one is not None]
        if not grids:
            parts = own[0].parts.astype(np.int32), own[1].parts.astype(np.int32)
            return NumberPair(max(0.0, *alone), parts, own[alone[1] > alone[0]].target_starts)
        cost, parts, starts = min(grids, key=lambda one: one[0])
        return NumberPair(max(0.0, *alone, 1.0 - cost / null_cost), parts, starts)

    def _crossed(
        self, a: int, b: int, starts: IntArray, n_starts: int | None
    ) -> tuple[float, tuple[CodeArray, CodeArray], IntArray] | None:
        """Search the best grid against the target's intervals; None if it does not cross both variables."""
        classes, n_classes, price, alone = self._intervals(starts)
        for k in (a, b):
            if k not in alone:
                alone[k] = search_alone(self.axes[k], classes, n_classes)
        whole = np.bincount(classes, minlength=n_classes)[None]
        found = search_pair(
            [self.axes[a], self.axes[b]],
            [alone[a], alone[b]],
            classes,
            n_classes,
            effort=self.effort,
            n_starts=n_starts,
            seed=self.seed,
            run=self.run,
        )
        choosing = grid_cost(whole, 2) - float(part_costs(whole).sum()) + float(log_binomial(3, 2))
        return None if found.parts is None else (found.cost - choosing + price, found.parts, starts)

    def quarters(self) -> tuple[CodeArray, int]:
        """Return the intervals of as many rows each that every pair is searched against, as classes."""
        classes, n_classes, _, _ = self._intervals(equal_blocks(self.target.sizes, _PAIR_INTERVALS))
        return classes, n_classes

    def _intervals(self, starts: IntArray) -> tuple[CodeArray, int, float, dict[int, Alone]]:
        with self._lock:
            key = starts.tobytes()
            if key not in self._against:
                intervals = labels_of(starts, self.target.n_values)[self.target.codes].astype(np.int32)
                sizes = np.bincount(intervals, minlength=len(starts))[None]
                self._against[key] = intervals, len(starts), _target_price(sizes), {}
            return self._against[key]

    def _cross(
        self, a: int, b: int, own: tuple[JointPartition, JointPartition]
    ) -> tuple[float, tuple[CodeArray, CodeArray], IntArray]:
        """Cross both partitions, the target cut anew."""
        first, second = (one.parts.astype(np.int32) for one in own)
        cells, rows = cells_of_rows(self.axes, {a: first, b: second}, len(self.target.codes))
        starts = intervals_for_parts(self.target, cells, len(rows), own[0].target_starts)
        counts = counts_by_interval(self.target, cells, len(rows), starts)
        priors = sum(
            one.cost - _target_price(one.counts) - float(part_costs(one.counts).sum()) for one in own
        )
        return priors + _target_price(counts) + float(part_costs(counts).sum()), (first, second), starts


def _target_price(counts: IntArray) -> float:
    """Price of the target's intervals: their number, and the ranks of the rows inside each."""
    sizes = counts.sum(axis=0)
    return float(np.log(sizes.sum()) + gammaln(sizes + 1.0).sum())


def _distinct(cuts: Sequence[IntArray]) -> list[IntArray]:
    """Leave out cuts met before, and those that cut nothing."""
    return list({starts.tobytes(): starts for starts in cuts if len(starts) > 1}.values())
