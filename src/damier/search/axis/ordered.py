"""The ordered half of the axis engine: intervals of a number, or any parts of elements in a given order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from damier.criteria import discretization_cost, part_costs
from damier.search.axis.costs import interval_penalties
from damier.search.axis.exact import Partition, hull_corners, search_exact
from damier.search.axis.greedy import improve, merge_greedily
from damier.search.axis.rows import Axis, axis_of_counts, axis_of_values, block_starts
from damier.search.kernels import CodeArray, FloatArray, IntArray, factorial_table

Search = Literal["auto", "greedy", "exact"]

# Cuts of the greedy hierarchy, the last to go, among which the exact search chooses.
_LAST_CUTS = 1000
# ``auto`` is exact up to this many elements with two classes, and this many with more.
_MOST_ELEMENTS_TWO = 1 << 17
_MOST_ELEMENTS_MANY = 1 << 13
# Beyond that: elements between which two classes keep the corners of their path, and blocks of rows that many
# classes start from. Tables of this size never have more parts than the last figure allows.
_STRETCH = 128
_MOST_BLOCKS = 1 << 15
_MOST_PARTS = 1 << 14
# How far the improvement of such tables moves a cut at a time, in elements.
_REACH = 4096


@dataclass(frozen=True, slots=True)
class OrderedSolution:
    """Intervals found on one numeric column.

    Attributes
    ----------
    below, above : float64 arrays of shape (I - 1,)
        Largest training value left, and smallest right, of each cut. ``below`` is NaN where the cut separates
        missing values from the rest.
    counts : int64 array of shape (I, J)
        Rows of each class in each interval.
    cost, null_cost : float
        The criterion of the intervals found, and of one single interval.
    optimal : bool
        True when proven that no other intervals cost less.
    """

    below: FloatArray
    above: FloatArray
    counts: IntArray
    cost: float
    null_cost: float
    optimal: bool


def discretize(
    values: FloatArray,
    codes: CodeArray,
    n_classes: int,
    *,
    weights: IntArray | None = None,
    search: Search = "auto",
) -> OrderedSolution:
    """Cut a numeric column into the intervals that cost least.

    Parameters
    ----------
    values : float64 array of shape (N,)
        The column; NaN is missing and sorts before every number, minus infinity included.
    codes : int32 array of shape (N,)
        Classes, 0 .. ``n_classes - 1``.
    n_classes : int
        Number of classes J.
    weights : int64 array of shape (N,), optional
        How many times each row counts.
    search : {"auto", "greedy", "exact"}
        "exact" proves the optimum. "greedy" merges from the finest intervals, then improves locally. "auto"
        is exact on up to 131,072 elements (pure runs of values) with two classes and 8,192 with more, else
        exact over the last cuts of the greedy hierarchy, then improved at full resolution.

    Returns
    -------
    OrderedSolution
        Cuts, counts and costs.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> solution = discretize(x, (x > 11).astype(np.int32), 2)
    >>> solution.below, solution.above, solution.optimal
    (array([11.]), array([12.]), True)
    >>> solution.counts
    array([[12,  0],
           [ 0,  8]])
    """
    axis, spots = axis_of_values(values, codes, n_classes, weights)
    if axis.total == 0:
        raise ValueError("no rows to discretize: every weight is zero or the column is empty")
    penalty = interval_penalties(
        axis.total, axis.n_elements if search == "exact" else min(axis.n_elements, _MOST_ELEMENTS_TWO)
    )
    found = search_ordered(axis, penalty, search)
    counts = axis.part_counts(found.starts)
    below, above = spots.neighbours(found.starts, counts)
    return OrderedSolution(
        below=below,
        above=above,
        counts=counts,
        cost=discretization_cost(counts),
        null_cost=discretization_cost(counts.sum(axis=0, keepdims=True)),
        optimal=found.optimal,
    )


def partition_ordered(
    counts: IntArray, penalty: FloatArray, *, search: Search = "auto"
) -> tuple[IntArray, float, bool]:
    """Put elements in order into the parts that cost least.

    Parameters
    ----------
    counts : int64 array of shape (V, J)
        Class counts of each element.
    penalty : float64 array of shape (M,)
        ``penalty[I - 1]`` is the cost of having I parts, growing and concave in I; there are at most M parts.
    search : {"auto", "greedy", "exact"}
        As in :func:`discretize`.

    Returns
    -------
    starts : int64 array of shape (I,)
        First element of each part.
    cost : float
        ``penalty[I - 1]`` plus, for each part, log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)].
    optimal : bool
        True when proven that no other parts cost less.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[9, 1], [8, 0], [0, 7], [1, 9]])
    >>> starts, cost, optimal = partition_ordered(counts, np.array([0.0, 2.0, 3.0, 3.5]))
    >>> starts, round(cost, 3), optimal
    (array([0, 2]), 13.558, True)
    """
    axis, first = axis_of_counts(counts)
    penalty = np.ascontiguousarray(penalty, dtype=np.float64)
    if axis.total == 0 or penalty.shape[0] == 0:
        raise ValueError("nothing to partition: no rows, or no number of parts allowed")
    found = search_ordered(axis, penalty, search)
    starts = first[found.starts]
    starts[0] = 0
    cost = float(penalty[starts.shape[0] - 1]) + float(part_costs(axis.part_counts(found.starts)).sum())
    return starts, cost, found.optimal


def search_ordered(axis: Axis, penalty: FloatArray, search: Search) -> Partition:
    """Choose and run the searches; the cost in the answer is only good enough to compare partitions."""
    if search not in ("auto", "greedy", "exact"):
        raise ValueError(f"search must be 'auto', 'greedy' or 'exact', got {search!r}")
    if axis.n_elements == 1 or axis.n_classes == 1 or penalty.shape[0] == 1:
        return Partition(np.zeros(1, np.int64), 0.0, True)
    most_elements = _MOST_ELEMENTS_TWO if axis.n_classes == 2 else _MOST_ELEMENTS_MANY
    if search == "exact" or (search == "auto" and axis.n_elements <= most_elements):
        return search_exact(axis, penalty)
    if search == "auto" and axis.n_classes == 2:
        return _search_corners(axis, penalty)
    return search_blocks(axis, penalty, search)


def _search_corners(axis: Axis, penalty: FloatArray) -> Partition:
    """Two classes: exact search over the corners of short stretches, then all around the cuts it found."""
    penalty = penalty[:_MOST_PARTS]
    corners = hull_corners(axis.cls, axis.cnt, axis.ptr, _STRETCH)
    starts = _search_among(axis, penalty, corners)
    if starts.shape[0] > 1:
        finer = _around(axis, starts, np.arange(-_STRETCH, _STRETCH + 1), corners)
        starts = _search_among(axis, penalty, finer, guess=starts.shape[0])
    return Partition(starts, 0.0, False)


def search_blocks(axis: Axis, penalty: FloatArray, search: Search) -> Partition:
    """Greedy merge of small blocks, exact search over the last cuts to go, improvement at full resolution."""
    table = factorial_table(axis.total + axis.n_classes)
    removed, n_parts, n_blocks = _merge_blocks(axis, penalty, axis.n_classes - 1, table, _MOST_BLOCKS)
    long = n_blocks < axis.n_elements
    if search == "greedy":
        return Partition(_improved(axis, penalty, _last(removed, n_parts - 1), long), 0.0, False)
    starts = _improved(axis, penalty, _search_among(axis, penalty, _last(removed, _LAST_CUTS)), long)
    if starts.shape[0] > 1:
        # Once more, among finer cuts and those ever closer to the ones found: cuts move together.
        starts = search_near(axis, penalty, starts, _last(removed, 4 * _LAST_CUTS), long=long)
    return Partition(starts, 0.0, False)


def search_near(
    axis: Axis, penalty: FloatArray, starts: IntArray, others: IntArray, *, long: bool = True
) -> IntArray:
    """Exact search over ``others`` and cuts ever closer to those of ``starts``, then improvement."""
    steps = np.unique((2.0 ** np.arange(0, 12, 0.25)).astype(np.int64))
    finer = _around(axis, starts, np.concatenate((-steps, [0], steps)), others)
    return _improved(axis, penalty, _search_among(axis, penalty, finer, guess=starts.shape[0]), long)


def _improved(axis: Axis, penalty: FloatArray, starts: IntArray, long: bool) -> IntArray:
    """Improve at full resolution; on long axes, moves are shorter and fewer."""
    widest, reach = (2, _REACH) if long else (3, axis.n_elements)
    table = factorial_table(axis.total + axis.n_classes)
    return improve(axis, axis.n_classes - 1, table, penalty, starts, widest=widest, reach=reach)


def merge_and_improve(
    axis: Axis, penalty: FloatArray, extra: int, most_blocks: int = _MOST_BLOCKS
) -> IntArray:
    """Merge greedily from blocks of elements, then improve at full resolution, for any price of a part.

    Parameters
    ----------
    axis : Axis
        Elements in order.
    penalty : array of shape (most parts,)
        ``penalty[I - 1]`` is the price of I parts, of any shape.
    extra : int
        ``Price.fixed``: J - 1 against J classes, 0 where a part is priced by the ranks of its rows.
    most_blocks : int
        About how many blocks are merged; they hold a count for each class.

    Returns
    -------
    array
        First element of each part.

    Examples
    --------
    >>> axis, _ = axis_of_counts(np.array([[9, 1], [8, 0], [0, 7], [1, 9]]))
    >>> merge_and_improve(axis, np.array([0.0, 2.0, 3.0, 3.5]), 1)
    array([0, 2])
    """
    table = factorial_table(axis.total + max(axis.n_classes, extra))
    removed, n_parts, _ = _merge_blocks(axis, penalty, extra, table, most_blocks)
    return improve(axis, extra, table, penalty, _last(removed, n_parts - 1))


def _merge_blocks(
    axis: Axis, penalty: FloatArray, extra: int, table: FloatArray, most_blocks: int
) -> tuple[IntArray, int, int]:
    """Merge blocks; return the cuts as they went, the best number of parts, that of blocks."""
    blocks = block_starts(axis.cnt, axis.ptr, -(-axis.total // most_blocks))
    coarse = axis if blocks.shape[0] == axis.n_elements else axis.coarsened(blocks)
    removed, n_parts = merge_greedily(
        coarse.cls, coarse.cnt, coarse.ptr, axis.n_classes, extra, table, penalty
    )
    return blocks[removed], n_parts, blocks.shape[0]


def _search_among(axis: Axis, penalty: FloatArray, starts: IntArray, **options: int) -> IntArray:
    """Choose the best of the given starts of parts."""
    return starts[search_exact(axis.coarsened(starts), penalty, prove=False, **options).starts]


def _around(axis: Axis, starts: IntArray, steps: IntArray, others: IntArray) -> IntArray:
    """Add to ``others`` the elements that lie ``steps`` away from a start."""
    near = (starts[1:, None] + steps).ravel()
    return np.union1d(others, near[(near > 0) & (near < axis.n_elements)])


def _last(removed: IntArray, n_cuts: int) -> IntArray:
    """Give the starts of the parts that the last cuts to go make."""
    return np.concatenate((np.zeros(1, np.int64), np.sort(removed[max(0, removed.shape[0] - n_cuts) :])))
