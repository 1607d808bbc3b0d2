"""The Gabriel graph of a set of points, exact in any dimension.

Points a and b are neighbours when no other point o has ``d(a,o)^2 + d(b,o)^2 < d(a,b)^2``, the sum taken as
smaller only beyond a relative 1e-12: an exact tie blocks nothing, so duplicates keep their edges and both
diagonals of a square are there (a Delaunay triangulation, which holds the Gabriel graph of points in general
position, would drop one of them).

Euclidean points of few dimensions are searched with a k-d tree: seen from a, a point o rules out the whole
half-space ``(x - o).(o - a) > 0``, so the few points nearest to a dismiss most boxes of the tree at once, and
what is left is checked by asking the tree whether any point lies in the ball of diameter ab. More dimensions
and other metrics go through rows of the matrix of distances, a band of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from damier.search.balls.memory import check_memory, returned_array
from damier.search.kernels import FloatArray, IntArray, allocating_inner, inner, kernel
from damier.search.run import Run, Stopped

Metric = str | Callable[[Any, Any], float]

_TOLERANCE = 1e-12
_TREE_DIMENSIONS = 5  # beyond, boxes dismiss too little and rows of distances are faster
_LEAF_SIZE = 12
_CHUNK = 4096  # points between two looks at the run
_RUN = 16
_BLOCK = 16
_BAND_CELLS = 1 << 24
_BYTES_PER_EDGE = 32  # at the peak, while the sparse matrix is put together


class Boxes(NamedTuple):
    """A k-d tree. Nodes come in depth-first order; ``skips[k]`` follows the whole branch of node k.

    Node k holds the points ``starts[k] .. ends[k] - 1``, which lie between ``lows[k]`` and ``highs[k]``.
    """

    starts: IntArray
    ends: IntArray
    lows: FloatArray
    highs: FloatArray
    skips: IntArray


def link_points(points: FloatArray, metric: Metric, run: Run) -> sparse.csr_array:
    """Return the Gabriel graph: symmetric, 1 where two points are neighbours, columns sorted in each row.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        Finite numbers. Euclidean points are scaled by their range, so that no square overflows; what differs
        by less than some 1e-154 of the range is linked as copies are.
    metric : str or callable
        A metric known to :func:`scipy.spatial.distance.cdist`, by name or as a function of two points.
    run : Run
        Only an interrupt stops the graph: a time limit is for the search that follows.

    Raises
    ------
    ValueError
        If the metric gives distances whose squares are not finite.
    MemoryError
        If the graph has more edges than fit into memory.
    """
    n = points.shape[0]
    # Copies of a point have the same neighbours: the search runs on distinct points.
    distinct, site = np.unique(points, axis=0, return_inverse=True)
    site = site.reshape(-1)
    m = distinct.shape[0]
    if m < 2 or points.shape[1] == 0:
        pairs = np.zeros((0, 2), dtype=np.int64)
    elif metric == "euclidean" and points.shape[1] <= _TREE_DIMENSIONS:
        pairs = _pairs_by_tree(scale_by_range(distinct), run)
    else:
        scaled = scale_by_range(distinct) if metric == "euclidean" else distinct
        pairs = _pairs_by_distance(scaled, metric, run)
    copies = np.bincount(site, minlength=m).astype(np.float64)
    n_edges = float(2 * (copies[pairs[:, 0]] @ copies[pairs[:, 1]]) + copies @ copies)
    check_memory(n_edges * _BYTES_PER_EDGE, f"The Gabriel graph, with {n_edges:.2g} edges,")
    one_way = sparse.csr_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(m, m))
    spread = sparse.csr_array((np.ones(n, dtype=np.int8), (np.arange(n), site)), shape=(n, m))
    with_copies = spread @ (one_way + one_way.T + sparse.eye_array(m, dtype=np.int8)) @ spread.T
    graph = sparse.csr_array(with_copies - sparse.eye_array(n, dtype=np.int8))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def scale_by_range(points: FloatArray) -> FloatArray:
    """Divide by the power of two next to the largest range of a column: exact, and no square overflows."""
    half = (points.max(axis=0) / 2 - points.min(axis=0) / 2).max()
    return np.ldexp(points, -np.frexp(half)[1]) if half > 0 else points


def _check_interrupt(run: Run) -> None:
    if run.ended == "interrupted":
        raise Stopped


def _pairs_by_tree(points: FloatArray, run: Run) -> IntArray:
    n, d = points.shape
    order, boxes = _box_tree(points)
    laid_out = np.ascontiguousarray(points[order])
    tree = cKDTree(laid_out)
    n_blockers = min(n - 1, 8 + 4 * d)
    found = []
    for first in range(0, n, _CHUNK):
        _check_interrupt(run)
        blockers = tree.query(laid_out[first : first + _CHUNK], k=n_blockers + 1)[1]
        found.append(_search_pairs(laid_out, np.ascontiguousarray(blockers, dtype=np.int64), boxes, first))
    return np.sort(order[np.concatenate(found)], axis=1)


def _box_tree(points: FloatArray) -> tuple[IntArray, Boxes]:
    """Halve the points along the longest side of their box, over and over; also return their order."""
    order = np.arange(points.shape[0], dtype=np.int64)
    starts: list[int] = []
    ends: list[int] = []
    skips: list[int] = []
    lows: list[FloatArray] = []
    highs: list[FloatArray] = []

    # No function that calls itself: what it holds would wait for the garbage collector.
    waiting = [(0, points.shape[0], -1)]
    while waiting:
        start, end, grown = waiting.pop()
        if grown >= 0:  # the whole branch of this node
            skips[grown] = len(starts)
            continue
        inside = points[order[start:end]]
        low, high = inside.min(axis=0), inside.max(axis=0)
        waiting.append((0, 0, len(starts)))
        starts.append(start)
        ends.append(end)
        lows.append(low)
        highs.append(high)
        skips.append(0)
        if end - start > _LEAF_SIZE:
            middle = (end - start) // 2
            by_side = np.argpartition(inside[:, np.argmax(high - low)], middle)
            order[start:end] = order[start:end][by_side]
            waiting += [(start + middle, end, -1), (start, start + middle, -1)]
    whole = [np.array(numbers, dtype=np.int64) for numbers in (starts, ends, skips)]
    return order, Boxes(whole[0], whole[1], np.array(lows), np.array(highs), whole[2])


@allocating_inner
def _first_pairs(pairs: IntArray, n_pairs: int, room: int) -> IntArray:
    """Copy the first pairs into an array of ``room`` pairs."""
    # A loop: an assignment of slices, and the messages of its errors, would take seconds to compile.
    copied = np.empty((room, 2), dtype=np.int64)
    for i in range(n_pairs):
        copied[i, 0] = pairs[i, 0]
        copied[i, 1] = pairs[i, 1]
    return copied


@inner
def _is_dismissed(
    a: int,
    points: FloatArray,
    blockers: IntArray,
    d2_blocker: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> bool:
    """Whether the half-space behind one of a's blockers holds a whole box.

    The corner of the box nearest to the border is tested, with a margin that leaves close calls to the exact
    test of pairs.
    """
    for k in range(blockers.shape[0]):
        o = blockers[k]
        if o == a:
            continue
        reach = 0.0
        span = 0.0
        for j in range(points.shape[1]):
            step = points[o, j] - points[a, j]
            if step > 0.0:
                reach += (low[j] - points[o, j]) * step
            else:
                reach += (high[j] - points[o, j]) * step
            span += max(abs(low[j] - points[a, j]), abs(high[j] - points[a, j])) ** 2
        if reach > 1e-9 * (span + d2_blocker[k]):
            return True
    return False


@inner
def _is_blocked(
    a: int, b: int, points: FloatArray, blockers: IntArray, d2_blocker: FloatArray, limit: float
) -> bool:
    """Whether one of a's blockers, nearest first, lies between a and b."""
    for k in range(blockers.shape[0]):
        o = blockers[k]
        if o in (a, b):
            continue
        total = d2_blocker[k]
        if total >= limit:
            return False
        for j in range(points.shape[1]):
            total += (points[b, j] - points[o, j]) ** 2
            if total >= limit:
                break
        if total < limit:
            return True
    return False


@kernel
def _search_pairs(points: FloatArray, blockers: IntArray, boxes: Boxes, first: int) -> IntArray:
    """Neighbours (a, b), a < b, of the points a from ``first`` on.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The points, laid out along the tree.
    blockers : array of shape (n_sources, n_blockers)
        Points nearest to each a, nearest first; a may be among them.
    boxes : Boxes
        The tree.
    first : int
        The first a.
    """
    d = points.shape[1]
    starts, ends, lows, highs, skips = boxes
    found = np.empty((4 * blockers.shape[0] + 16, 2), dtype=np.int64)
    n_found = np.int64(0)  # not a literal, for which the copying would be compiled again
    d2_blocker = np.empty(blockers.shape[1])
    for i in range(blockers.shape[0]):
        a = first + i
        for k in range(blockers.shape[1]):
            o = blockers[i, k]
            total = 0.0
            for j in range(d):
                total += (points[a, j] - points[o, j]) ** 2
            d2_blocker[k] = total
        node = 0
        while node < starts.shape[0]:
            # Each pair once, from its lower end.
            if ends[node] <= a + 1 or _is_dismissed(
                a, points, blockers[i], d2_blocker, lows[node], highs[node]
            ):
                node = skips[node]
                continue
            is_leaf = skips[node] == node + 1
            for b in range(max(starts[node], a + 1), ends[node] if is_leaf else 0):
                d2_ab = 0.0
                for j in range(d):
                    d2_ab += (points[a, j] - points[b, j]) ** 2
                limit = d2_ab * (1.0 - _TOLERANCE)
                if _is_blocked(a, b, points, blockers[i], d2_blocker, limit) or _any_between(
                    points, a, b, d2_ab, boxes
                ):
                    continue
                if n_found == found.shape[0]:
                    found = _first_pairs(found, n_found, 2 * n_found)
                found[n_found, 0] = a
                found[n_found, 1] = b
                n_found += 1
            node += 1
    pairs: IntArray = _first_pairs(found, n_found, n_found)
    return pairs


@inner
def _any_between(points: FloatArray, a: int, b: int, d2_ab: float, boxes: Boxes) -> bool:
    """Whether a point lies strictly inside the ball of diameter ab."""
    d = points.shape[1]
    starts, ends, lows, highs, skips = boxes
    limit = d2_ab * (1.0 - _TOLERANCE)
    outside = 0.25 * d2_ab * (1.0 + 1e-9)
    node = 0
    while node < starts.shape[0]:
        gap = 0.0
        for j in range(d):
            middle = 0.5 * (points[a, j] + points[b, j])
            if middle < lows[node, j]:
                gap += (lows[node, j] - middle) ** 2
            elif middle > highs[node, j]:
                gap += (middle - highs[node, j]) ** 2
            if gap > outside:
                break
        if gap > outside:
            node = skips[node]
            continue
        if skips[node] == node + 1:
            for o in range(starts[node], ends[node]):
                if o in (a, b):
                    continue
                total = 0.0
                for j in range(d):
                    total += (points[a, j] - points[o, j]) ** 2 + (points[b, j] - points[o, j]) ** 2
                    if total >= limit:
                        break
                if total < limit:
                    return True
        node += 1
    return False


def _pairs_by_distance(points: FloatArray, metric: Metric, run: Run) -> IntArray:
    """Neighbours under any metric, from rows of the matrix of squared distances."""
    n = points.shape[0]
    # Points laid out along the tree put near ones side by side, so that runs of them are dismissed together.
    order = _box_tree(points)[0]
    laid_out = np.ascontiguousarray(points[order])
    # A band of rows is kept and the rows of all later points pass by it, a block at a time. Rows are computed
    # again for each band: bands are larger where a row takes calls of a Python function.
    n_rows = min(n // 5, _BAND_CELLS // n) if isinstance(metric, str) else _BAND_CELLS // n
    band = min(n, (n_rows // _BLOCK + 1) * _BLOCK)
    check_memory(8.0 * n * band, f"A band of the distances between {n} points")
    # Two buffers for all rows: fresh arrays of this size would leave the heap in pieces.
    band_room, block_room = returned_array(band, n), np.empty((_BLOCK, n))
    found = []
    n_found = 0
    for first_a in range(0, n, band):
        from_a = _squared_distances(laid_out[first_a : first_a + band], laid_out, metric, band_room)
        blockers = _nearest(from_a, min(n, 64))
        to_blocker = np.take_along_axis(from_a, blockers, axis=1)
        least_a = _least_by_run(from_a)
        for first_b in range(first_a, n, _BLOCK):
            _check_interrupt(run)
            from_b = (
                from_a[first_b - first_a : first_b - first_a + _BLOCK]
                if first_b < first_a + len(from_a)
                else _squared_distances(laid_out[first_b : first_b + _BLOCK], laid_out, metric, block_room)
            )
            found.append(_block_pairs(from_a, least_a, blockers, to_blocker, from_b, first_a, first_b))
            n_found += len(found[-1])
        check_memory(2.0 * n_found * _BYTES_PER_EDGE, f"The Gabriel graph, with more than {n_found} edges,")
        run.report("linking points", done=first_a + len(from_a), total=n)
    return np.sort(order[np.concatenate(found)], axis=1)


def _squared_distances(some: FloatArray, points: FloatArray, metric: Metric, room: FloatArray) -> FloatArray:
    """Squared distances from some points to all, one row per point, in the first rows of ``room``."""
    distances = room[: len(some)]
    if metric == "euclidean":
        cdist(some, points, metric="sqeuclidean", out=distances)
        return distances
    cdist(some, points, metric=metric, out=distances)  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        distances *= distances
    if not np.isfinite(distances).all():
        raise ValueError(
            f"The metric {metric!r} gives distances that are NaN, or so large that their squares overflow: "
            "scale the columns, or choose another metric."
        )
    return distances


def _nearest(distances: FloatArray, k: int) -> IntArray:
    """Columns of the k least values of each row, least first."""
    nearest = np.empty((len(distances), k), dtype=np.int64)
    for first in range(0, len(distances), 64):  # argpartition takes as much memory as its input
        some = distances[first : first + 64]
        least = np.argpartition(some, k - 1, axis=1)[:, :k]
        by_distance = np.argsort(np.take_along_axis(some, least, axis=1), axis=1, kind="stable")
        nearest[first : first + 64] = np.take_along_axis(least, by_distance, axis=1)
    return nearest


@kernel
def _block_pairs(
    from_a: FloatArray,
    least_a: FloatArray,
    blockers: IntArray,
    to_blocker: FloatArray,
    from_b: FloatArray,
    first_a: int,
    first_b: int,
) -> IntArray:
    """Neighbours (a, b), a < b, of a band and a block of points.

    Parameters
    ----------
    from_a, from_b : arrays of shape (n_band, n_points) and (n_block, n_points)
        Squared distances from the points of the band and of the block to all.
    least_a : array of shape (n_band, n_runs)
        The least of each run of ``from_a``.
    blockers, to_blocker : arrays of shape (n_band, n_blockers)
        Points nearest to each a, nearest first, and their squared distances.
    first_a, first_b : int
        The first point of the band and of the block.
    """
    n = from_a.shape[1]
    least_b = _least_by_run(from_b)
    found = np.empty((1024, 2), dtype=np.int64)
    n_found = np.int64(0)
    # The few rows of b stay in the processor's cache while all of a pass by.
    for i in range(from_a.shape[0]):
        a = first_a + i
        for k in range(max(0, a + 1 - first_b), from_b.shape[0]):
            b = first_b + k
            limit = from_a[i, b] * (1.0 - _TOLERANCE)
            blocked = False
            for c in range(blockers.shape[1]):
                if to_blocker[i, c] >= limit:
                    break
                if to_blocker[i, c] + from_b[k, blockers[i, c]] < limit:
                    blocked = True
                    break
            run = 0
            while run < least_b.shape[1] and not blocked:
                if least_a[i, run] + least_b[k, run] < limit:
                    n_between = 0
                    for o in range(run * _RUN, min(n, (run + 1) * _RUN)):
                        n_between += from_a[i, o] + from_b[k, o] < limit
                    blocked = n_between > 0
                run += 1
            if blocked:
                continue
            if n_found == found.shape[0]:
                found = _first_pairs(found, n_found, 2 * n_found)
            found[n_found, 0] = a
            found[n_found, 1] = b
            n_found += 1
    pairs: IntArray = _first_pairs(found, n_found, n_found)
    return pairs


@kernel
def _least_by_run(distances: FloatArray) -> FloatArray:
    """Least value of each run of ``_RUN`` columns, row by row."""
    n = distances.shape[1]
    least = np.empty((distances.shape[0], (n + _RUN - 1) // _RUN))
    for i in range(distances.shape[0]):
        for run in range(least.shape[1]):
            smallest = np.inf
            for o in range(run * _RUN, min(n, (run + 1) * _RUN)):
                smallest = min(smallest, distances[i, o])
            least[i, run] = smallest
    return least
