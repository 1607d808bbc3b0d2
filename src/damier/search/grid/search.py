"""The search for the best grid over any number of variables: starts, then neighbourhoods of the best.

Work is done in rounds of a fixed number of starts. Each start has a seed of its own and sees the best grid
as it was when its round began, so the result for a seed does not depend on how many threads share a round.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from damier.search.axis.alone import Alone, partition_alone
from damier.search.grid.problem import (
    AxisCodes,
    FoundGrid,
    alone_penalty,
    build_problem,
    found_grid,
    in_codes,
    signature,
)
from damier.search.grid.starts import Climber, Start
from damier.search.grid.state import EPSILON, Problem, Solution
from damier.search.kernels import CodeArray, IntArray
from damier.search.run import Run, Stopped

DEFAULT_EFFORT = 4
PAIR_EFFORT = 2
# 2 to this many starts are as good as no end.
_ENDLESS_EFFORT = 40

_ROUND = 6
_FIRST_ROUND = ("single axes", "forward", "screen", "rank one", "halves", "dense")
# Rounds while nothing informative is known, then in turn near the best grid and farther from it.
_ROUND_WITHOUT_GRID = ("rank one", "few", "screen", "rank one", "halves", "dense")
_ROUND_NEAR = ("widen", "drop", "nudge", "widen", "rank one", "nudge")
_ROUND_FAR = ("nudge", "widen", "screen", "drop", "forward", "few")
_DIVERSE = ("forward", "single axes", "few", "dense")
# Parts per variable when a pair is looked at without a search, and rows that a cell then needs.
_BINS = (3, 4, 6, 8)
_ROWS_PER_CELL = 8
_PAIR = ("halves", "few", "screen", "dense", "few", "widen", "nudge")


@dataclass(frozen=True)
class GridSearch:
    """What a search found: the best grid, the distinct local optima met if asked for, and its starts."""

    best: FoundGrid
    null_cost: float
    others: tuple[FoundGrid, ...]
    n_starts: int


@dataclass
class _State:
    best: Solution
    null_cost: float
    n_starts: int = 0
    idle: int = 0
    optima: dict[bytes, Solution] = field(default_factory=dict)

    @property
    def informative(self) -> bool:
        return self.best.cost < self.null_cost - EPSILON


def _better(new: Solution, old: Solution) -> bool:
    """Cheaper, or as cheap with fewer parts."""
    if new.cost < old.cost - EPSILON:
        return True
    return new.cost < old.cost + EPSILON and int(new.n_parts.sum()) < int(old.n_parts.sum())


def _starts_allowed(effort: int) -> int:
    return 1 << min(effort, _ENDLESS_EFFORT)


def _rounds(state: _State, effort: int, seed: int) -> Iterator[list[Start]]:
    """Yield the starts of each round until the search has done enough for its effort.

    Without anything informative found, the search ends after the first round and 2^effort starts more:
    enough for patterns that show at all. With something found it ends after 2^effort starts, and at least a
    round, that did not better it.
    """
    allowed = _starts_allowed(effort)
    for number in itertools.count():
        if number == 0:
            kinds = _FIRST_ROUND
        elif not state.informative:
            kinds = _ROUND_WITHOUT_GRID
        else:
            kinds = _ROUND_NEAR if number % 2 else _ROUND_FAR
        if number > 0 and state.idle >= (allowed if state.informative else allowed + _ROUND):
            return
        starts = []
        for place, kind in enumerate(kinds):
            if kind == "forward":
                amount = 1.0 if number == 0 else 0.5
            elif kind == "screen":
                amount = min(1.0, 0.25 * 2.0 ** min(number, 60)) if not state.informative else 0.125
            elif kind == "rank one":
                amount = min(1.0, 0.5 * 2.0 ** min(number, 60))
            else:
                amount = (1 + (number + place) % 4) / 4
            starts.append(Start(kind, (seed, number, place), state.best, amount))
        yield starts


def _diverse_rounds(state: _State, problem: Problem, n_starts: int, seed: int) -> Iterator[list[Start]]:
    """Yield starts on random subsets of the axes, for grids that differ."""
    usable = np.flatnonzero(problem.n_values > 1)
    rng = np.random.default_rng((seed, n_starts))
    for first in range(0, n_starts, _ROUND):
        starts = []
        for place in range(first, min(n_starts, first + _ROUND)):
            size = max(1, round(usable.size * rng.uniform(0.15, 0.6)))
            only = tuple(rng.choice(usable, size, replace=False).tolist())
            kind = _DIVERSE[place % len(_DIVERSE)]
            starts.append(Start(kind, (seed, 1 << 20, place), state.best, 0.5, only))
        yield starts


def search_grid(
    axes: Sequence[AxisCodes],
    classes: CodeArray,
    n_classes: int,
    *,
    effort: int | None = None,
    seed: int = 0,
    n_diverse: int = 0,
    alone: bool = True,
    run: Run | None = None,
) -> GridSearch:
    """Search for the grid of least cost (Boullé, "Data grid models", formula 3).

    Parameters
    ----------
    axes, classes, n_classes
        The coded variables and classes of the rows.
    effort : int, optional
        The search goes on for 2^effort starts after its last success. By default 4, or, when there is a
        time limit, as long as that allows.
    seed : int
        Same data, same seed, same grid (unless the run is stopped).
    n_diverse : int
        Starts on random subsets of the axes made after the search; if any, the distinct local optima met are
        returned too.
    alone : bool
        False when the search is one of several of the same run, which keeps the clock.
    run : Run, optional
        Threads that share each round of starts, the time limit, and what to do with reports. When it is
        stopped, the best grid found so far is returned.
    """
    run = Run() if run is None else run
    if effort is None:
        effort = DEFAULT_EFFORT if run.time_limit is None else _ENDLESS_EFFORT
    if alone:
        compile_kernels(n_classes, run)
    problem = build_problem(axes, classes, n_classes)
    first = Climber(problem, run.stop)
    null = first.null()
    state = _State(null, null.cost)
    if n_classes > 1 and first.axes.size > 0:
        n_more = min(run.n_threads, _ROUND) - 1
        climbers = [first, *(Climber(problem, run.stop, first.alone) for _ in range(n_more))]
        rounds = itertools.chain(
            _rounds(state, effort, seed), _diverse_rounds(state, problem, n_diverse, seed)
        )
        _run_rounds(state, problem, climbers, rounds, n_diverse > 0, run)
    if alone:
        run.stop_clock()
    others = sorted(
        (one for one in state.optima.values() if one.cost < null.cost - EPSILON),
        key=lambda one: (one.cost, int(one.n_parts.sum())),
    )
    return GridSearch(
        best=found_grid(axes, classes, n_classes, in_codes(problem, axes, state.best)),
        null_cost=found_grid(axes, classes, n_classes, {}).cost,
        others=tuple(found_grid(axes, classes, n_classes, in_codes(problem, axes, one)) for one in others),
        n_starts=state.n_starts,
    )


def compile_kernels(n_classes: int, run: Run) -> None:
    """Compile before the clock of a limited run starts, so that it does not eat the time given."""
    if run.time_limit is not None:
        run.stop_clock()
        _search_tiny_table(min(n_classes, 3))
        run.start_clock()


def _tiny_table() -> tuple[list[AxisCodes], CodeArray]:
    rows = np.arange(32, dtype=np.int32)
    axes = [AxisCodes(rows % 8, 8, False), AxisCodes(rows // 8, 4, True), AxisCodes(rows % 3, 3, False)]
    return axes, ((rows % 8 > 3) ^ (rows // 8 > 1)).astype(np.int32)


def polish_tiny_table() -> None:
    """Compile the largest kernels of a search and no others, for another process to go on without them."""
    climber = Climber(build_problem(*_tiny_table(), 2), np.zeros(1, np.uint8))
    climber.run(Start("halves", (0,), climber.null(), 1.0))


@functools.cache
def _search_tiny_table(n_classes: int) -> None:
    axes, classes = _tiny_table()
    classes[0] = n_classes - 1
    # Kernels of the screen first: those of `polish_tiny_table` may be under way in another process.
    climber = Climber(build_problem(axes, classes, n_classes), np.zeros(1, np.uint8))
    climber.run(Start("screen", (0,), climber.null(), 0.01))
    search_grid(axes, classes, n_classes, effort=3)
    # A column of many values takes other kernels.
    many = np.arange(1100, dtype=np.int32)
    search_alone(AxisCodes(many, len(many), False), many % n_classes, n_classes)


def _run_rounds(
    state: _State,
    problem: Problem,
    climbers: Sequence[Climber],
    rounds: Iterator[list[Start]],
    collect: bool,
    run: Run,
) -> None:
    """Run rounds until the search has done enough or is stopped; keep local optima with `collect`."""
    free: queue.SimpleQueue[Climber] = queue.SimpleQueue()
    for climber in climbers:
        free.put(climber)
    for starts in rounds:
        solutions: list[Solution | None] = [None] * len(starts)

        def climb(place: int, starts: list[Start] = starts, found: list[Solution | None] = solutions) -> None:
            climber = free.get()
            try:
                found[place] = climber.run(starts[place])
            finally:
                free.put(climber)

        with contextlib.suppress(Stopped):  # what was found counts
            run.map(climb, range(len(starts)))
        _take(state, problem, solutions, collect)
        level = max(0.0, 1.0 - state.best.cost / state.null_cost) if state.null_cost else 0.0
        n_selected = int((state.best.n_parts > 1).sum())
        run.report(
            f"{n_selected} variables in the grid", cost=state.best.cost, level=level, done=state.n_starts
        )
        if run.stopped:
            return


def _take(state: _State, problem: Problem, solutions: Sequence[Solution | None], collect: bool) -> None:
    """Take a round's results into account, in the order of its starts."""
    improved = False
    for solution in solutions:
        if solution is None or not math.isfinite(solution.cost):
            continue
        state.n_starts += 1
        if collect:
            state.optima.setdefault(signature(problem, solution), solution)
        if _better(solution, state.best):
            state.best = solution
            improved = True
    state.idle = 0 if improved else state.idle + len(solutions)


def search_alone(axis: AxisCodes, classes: CodeArray, n_classes: int) -> Alone:
    """Partition one variable at the cost it has in a grid of two on offer, for `search_pair`."""
    penalty = alone_penalty(axis, classes.shape[0], 2)
    ordered = not axis.categorical
    return partition_alone(axis.codes, axis.n_values, classes, n_classes, penalty, ordered=ordered)


class EqualCut(NamedTuple):
    """A variable cut into parts of about as many rows."""

    parts: IntArray
    """Part of each row."""
    n_parts: int
    log_likelihood: float
    """Of the classes, given the parts."""
    gain: float
    """What the parts add to the log-likelihood of the classes."""


def interaction(first: AxisCodes, second: AxisCodes, classes: CodeArray, n_classes: int) -> float:
    """Measure, without a search, how much classes differ from cell to cell of two variables.

    Both are cut into so many parts of as many rows, for several numbers of parts. What the cells explain of
    the classes beyond the parts of each variable is compared with what they would by chance (the likelihood
    ratio, in standard deviations); the largest is returned.
    """
    x, y = (equal_cuts(axis, classes, n_classes) for axis in (first, second))
    return interaction_of_cuts(x, y, classes, n_classes)


def interaction_of_cuts(
    first: Sequence[EqualCut], second: Sequence[EqualCut], classes: CodeArray, n_classes: int
) -> float:
    """Measure `interaction` for variables that are cut already, by `equal_cuts`."""
    most = -math.inf
    for x, y in zip(first, second, strict=True):
        freedom = (x.n_parts - 1) * (y.n_parts - 1) * (n_classes - 1)
        if freedom == 0:
            continue
        cells = _log_likelihood(x.parts * y.n_parts + y.parts, x.n_parts * y.n_parts, classes, n_classes)
        beyond = cells - x.log_likelihood - y.gain
        most = max(most, (2.0 * beyond - freedom) / math.sqrt(2.0 * freedom))
    return most


def equal_cuts(axis: AxisCodes, classes: CodeArray, n_classes: int) -> list[EqualCut]:
    """Cut a variable into parts of as many rows, once for each number of parts that has rows enough."""
    none = _log_likelihood(np.zeros(len(classes), np.int64), 1, classes, n_classes)
    cuts = []
    for n_bins in _BINS:
        if n_bins == _BINS[0] or len(axis.codes) >= _ROWS_PER_CELL * n_bins * n_bins:
            parts = _equal_parts(axis, n_bins)
            n_parts = int(parts.max()) + 1
            found = _log_likelihood(parts, n_parts, classes, n_classes)
            cuts.append(EqualCut(parts, n_parts, found, found - none))
    return cuts


def _equal_parts(axis: AxisCodes, n_bins: int) -> IntArray:
    """Cut the values of an axis, in the order of their codes, into parts of about as many rows."""
    sizes = np.bincount(axis.codes, minlength=axis.n_values)
    middle = np.cumsum(sizes) - 0.5 * sizes
    parts = np.unique((middle * (n_bins / len(axis.codes))).astype(np.int64), return_inverse=True)[1]
    return parts.astype(np.int64)[axis.codes]


def _log_likelihood(cell: IntArray, n_cells: int, classes: CodeArray, n_classes: int) -> float:
    """Log-likelihood of the classes, given the cell of each row."""
    counts = np.bincount(cell * n_classes + classes, minlength=n_cells * n_classes)
    totals = counts.reshape(n_cells, n_classes).sum(axis=1)
    return float(np.log(np.maximum(counts, 1)) @ counts - np.log(np.maximum(totals, 1)) @ totals)


class FoundPair(NamedTuple):
    """What the search of a pair found."""

    null_cost: float
    """Cost of no variable."""
    cost: float
    """The least cost found with the two variables."""
    parts: tuple[CodeArray, CodeArray] | None
    """Part of each value of either variable, where the cheapest grid crosses both."""


def search_pair(
    axes: Sequence[AxisCodes],
    alone: Sequence[Alone],
    classes: CodeArray,
    n_classes: int,
    *,
    effort: int = PAIR_EFFORT,
    n_starts: int | None = None,
    enough: float = -math.inf,
    seed: int = 0,
    run: Run | None = None,
) -> FoundPair:
    """Search for the cheapest grid over two variables, or one of them, or none.

    ``alone`` is what `search_alone` found for each of the two. The search ends after ``n_starts``, if given,
    or with the first one after which the cost is below ``enough``.

    Raises
    ------
    Stopped
        If the run is stopped.
    """
    run = Run() if run is None else run
    problem = build_problem(axes, classes, n_classes)
    climber = Climber(problem, run.stop)
    null = climber.null()
    state = _State(climber.cross([one.parts for one in alone], seed), null.cost)
    for start in itertools.count():
        solution = climber.run(Start(_PAIR[start % len(_PAIR)], (seed, 2, start), state.best, 0.5))
        run.check()
        state.idle += 1
        if _better(solution, state.best):
            state.best = solution
            state.idle = 0
        if start + 1 == n_starts or state.best.cost < enough:
            break
        if state.idle >= _starts_allowed(effort) and start + 1 >= len(_PAIR):
            break
    costs_alone = [one.cost for one in alone if len(one.counts) > 1]
    cost = min(null.cost, state.best.cost, *costs_alone)
    crosses = cost == state.best.cost and bool((state.best.n_parts > 1).all())
    parts = in_codes(problem, axes, state.best) if crosses else {}
    crossed = (parts[0], parts[1]) if crosses else None
    return FoundPair(null.cost, cost, crossed)
