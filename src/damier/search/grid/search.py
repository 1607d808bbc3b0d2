"""The search for the best grid over any number of variables: starts, then neighbourhoods of the best.

Work is done in rounds of a fixed number of starts. Each start has a seed of its own and sees the best grid
as it was when its round began, so the result for a seed does not depend on how many threads share a round.
"""

from __future__ import annotations

import functools
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from damier.search.grid.problem import AxisCodes, FoundGrid, build_problem, exact_cost, in_codes, signature
from damier.search.grid.starts import Climber, Start
from damier.search.grid.state import EPSILON, Problem, Solution

DEFAULT_EFFORT = 4
ENDLESS_EFFORT = 40

_ROUND = 6
_FIRST = ("single axes", "forward", "screen", "rank one", "halves", "dense")
_BLIND = ("rank one", "few", "screen", "rank one", "halves", "dense")
_AROUND = ("widen", "drop", "nudge", "widen", "rank one", "nudge")
_ABROAD = ("nudge", "widen", "screen", "drop", "forward", "few")
_DIVERSE = ("forward", "single axes", "few", "dense")


@dataclass(frozen=True)
class SearchProgress:
    """What is known after a round: the best cost and level so far, its axes, starts run, seconds spent."""

    cost: float
    level: float
    axes: tuple[int, ...]
    n_starts: int
    seconds: float


@dataclass(frozen=True)
class GridSearch:
    """The outcome of a search: the best grid, the distinct local optima met if asked for, and how it went."""

    best: FoundGrid
    null_cost: float
    others: tuple[FoundGrid, ...]
    n_starts: int
    seconds: float
    interrupted: bool


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


def _rounds(state: _State, effort: int, seed: int) -> Iterator[list[Start]]:
    """Yield the starts of each round until the search has done enough for its effort.

    Without anything informative found, the search ends after the first round and 2^effort starts more:
    enough for patterns that show at all. With something found it ends after 2^effort starts, and at least a
    round, that did not better it.
    """
    allowed = 2**effort
    number = 0
    while True:
        if number == 0:
            kinds: tuple[str, ...] = _FIRST
        elif not state.informative:
            kinds = _BLIND
        else:
            kinds = _AROUND if number % 2 else _ABROAD
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
        number += 1


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
    classes: npt.NDArray[np.int32],
    n_classes: int,
    *,
    effort: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    n_threads: int = 1,
    n_diverse: int = 0,
    progress: Callable[[SearchProgress], None] | None = None,
) -> GridSearch:
    """Search for the grid of least cost (Boullé, "Data grid models", formula 3).

    Parameters
    ----------
    axes, classes, n_classes
        The coded variables and classes of the rows.
    effort : int, optional
        The search goes on for 2^effort starts after its last success. By default 4, or, when there is a
        time limit, as long as that allows.
    time_limit : float, optional
        Seconds after which the best grid found so far is returned.
    seed : int
        Same data, same seed, same grid (unless a time limit cuts the search short).
    n_threads : int
        Threads that share each round of starts.
    n_diverse : int
        Starts on random subsets of the axes made after the search; if any, the distinct local optima met are
        returned too.
    progress : callable, optional
        Called after each round.
    """
    if time_limit is not None:
        _compile()
    began = time.monotonic()
    if effort is None:
        effort = DEFAULT_EFFORT if time_limit is None else ENDLESS_EFFORT
    problem = build_problem(axes, classes, n_classes)
    stop = np.zeros(1, dtype=np.uint8)
    climbers: queue.SimpleQueue[Climber] = queue.SimpleQueue()
    first = Climber(problem, stop)
    null = first.null()
    climbers.put(first)
    for _ in range(1, max(1, min(n_threads, _ROUND))):
        climbers.put(Climber(problem, stop, first.alone))
    state = _State(null, null.cost)
    interrupted = False
    timer = threading.Timer(max(0.0, time_limit), stop.fill, [1]) if time_limit is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    if n_classes > 1 and first.axes.size > 0:
        try:
            interrupted = _run_rounds(
                state, problem, climbers, stop, effort, seed, n_diverse, began, progress
            )
        finally:
            stop[0] = 1
            if timer is not None:
                timer.cancel()

    def in_found(solution: Solution) -> FoundGrid:
        parts = in_codes(problem, axes, solution)
        return FoundGrid(exact_cost(axes, classes, n_classes, parts), parts)

    others = sorted(
        (one for one in state.optima.values() if one.cost < null.cost - EPSILON),
        key=lambda one: (one.cost, int(one.n_parts.sum())),
    )
    return GridSearch(
        best=in_found(state.best),
        null_cost=exact_cost(axes, classes, n_classes, {}),
        others=tuple(in_found(one) for one in others),
        n_starts=state.n_starts,
        seconds=time.monotonic() - began,
        interrupted=interrupted,
    )


@functools.cache
def _compile() -> None:
    """Search a tiny table, so that compiling the kernels does not eat the time a search is given."""
    rows = np.arange(32, dtype=np.int32)
    axes = [AxisCodes(rows % 8, 8, False), AxisCodes(rows // 8, 4, True), AxisCodes(rows % 3, 3, False)]
    classes = ((rows % 8 > 3) ^ (rows // 8 > 1)).astype(np.int32)
    search_grid(axes, classes, 2, effort=3)


def _run_rounds(
    state: _State,
    problem: Problem,
    climbers: queue.SimpleQueue[Climber],
    stop: npt.NDArray[np.uint8],
    effort: int,
    seed: int,
    n_diverse: int,
    began: float,
    progress: Callable[[SearchProgress], None] | None,
) -> bool:
    """Run rounds until the search has done enough or is stopped; True if the user interrupted it."""

    def run(start: Start) -> Solution | None:
        if stop[0]:
            return None
        climber = climbers.get()
        try:
            return climber.run(start)
        finally:
            climbers.put(climber)

    # kernels run outside the main thread, which stays free to receive Ctrl-C
    with ThreadPoolExecutor(climbers.qsize()) as pool:
        futures: list[Future[Solution | None]] = []
        try:
            for starts in itertools.chain(
                _rounds(state, effort, seed), _diverse_rounds(state, problem, n_diverse, seed)
            ):
                futures = [pool.submit(run, start) for start in starts]
                solutions = [future.result() for future in futures]
                _take(state, problem, solutions, n_diverse > 0)
                if progress is not None:
                    level = max(0.0, 1.0 - state.best.cost / state.null_cost) if state.null_cost else 0.0
                    selected = tuple(np.flatnonzero(state.best.n_parts > 1).tolist())
                    progress(
                        SearchProgress(
                            state.best.cost, level, selected, state.n_starts, time.monotonic() - began
                        )
                    )
                if stop[0]:
                    break
        except KeyboardInterrupt:
            stop[0] = 1
            _take(state, problem, [future.result() for future in futures], n_diverse > 0)
            return True
    return False


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


@dataclass(frozen=True)
class AloneAxis:
    """What one variable tells alone: its cost as one of two on offer, and the part of each of its values."""

    cost: float
    parts: npt.NDArray[np.int32] | None


def search_alone(
    axis: AxisCodes, classes: npt.NDArray[np.int32], n_classes: int, *, seed: int = 0
) -> AloneAxis:
    """Partition one variable, to be used by `search_pair` for all of its pairs."""
    # a constant companion makes it one of two variables on offer, as in a pair
    companion = AxisCodes(np.zeros_like(axis.codes), 1, False)
    problem = build_problem([axis, companion], classes, n_classes)
    climber = Climber(problem, np.zeros(1, dtype=np.uint8))
    best = null = climber.null()
    for number, kind in enumerate(("single axes", "dense", "dense")):
        found = climber.run(Start(kind, (seed, number), null, 1.0))
        if _better(found, best):
            best = found
    return AloneAxis(best.cost, in_codes(problem, [axis, companion], best).get(0))


def search_pair(
    axes: Sequence[AxisCodes],
    alone: Sequence[AloneAxis],
    classes: npt.NDArray[np.int32],
    n_classes: int,
    *,
    effort: int = 2,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the cost of no variable, and the least cost found with the two given."""
    problem = build_problem(axes, classes, n_classes)
    climber = Climber(problem, np.zeros(1, dtype=np.uint8))
    null = climber.null()
    state = _State(climber.cross([one.parts for one in alone], seed), null.cost)
    kinds = ("halves", "few", "screen", "dense", "few", "widen", "nudge")
    for start in range(10**6):
        kind = kinds[start % len(kinds)]
        solution = climber.run(Start(kind, (seed, 2, start), state.best, 0.5))
        state.idle += 1
        if _better(solution, state.best):
            state.best = solution
            state.idle = 0
        if state.idle >= 2**effort and start + 1 >= len(kinds):
            break
    return null.cost, min(null.cost, state.best.cost, *(one.cost for one in alone))
