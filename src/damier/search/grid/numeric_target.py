"""A grid over several variables and the intervals of a numeric target, found together.

Two steps take turns: with the target cut into J intervals, the search of a grid against J classes; with the
cells of a grid as parts, the target cut anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from damier.criteria import regression_grid_cost
from damier.search.axis.numeric_target import TargetAxis, equal_blocks, intervals_for_parts, labels_of
from damier.search.grid.problem import AxisCodes, FoundGrid, cells_of_rows, count_cells
from damier.search.grid.search import DEFAULT_EFFORT, compile_kernels, search_grid
from damier.search.kernels import CodeArray, IntArray
from damier.search.run import Run

# Numbers of equal-frequency intervals of the target that the turns begin with.
_STARTS = (4, 12)
# Most turns from one start.
_MOST_TURNS = 8
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
        As in `search_grid`. Intervals to begin with are tried with no effort; the best are searched in full.

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
    compile_kernels(3, run)
    if effort is None:
        effort = DEFAULT_EFFORT
    begins = [*first, *(equal_blocks(target.sizes, number) for number in _STARTS)]
    best = _grid(axes, target, {}, np.zeros(1, np.int64))
    n_starts = 0
    met: set[bytes] = set()
    for turns, its_effort in ((2, 0), (_MOST_TURNS, effort)):
        for starts in begins:
            for _ in range(turns):
                if len(starts) < 2 or (starts.tobytes() in met and its_effort < effort) or run.stopped:
                    break
                met.add(starts.tobytes())
                found, starts, made = _turn(axes, target, starts, its_effort, seed, run)
                n_starts += made
                if found.cost >= best.cost - _LEAST_GAIN:
                    break
                best = found
        begins = [best.target_starts]
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
