"""The Gabriel graph of a set of points, exact in any dimension.

Points a and b are neighbours when no other point o has ``d(a,o)^2 + d(b,o)^2 < d(a,b)^2``, the sum taken as
smaller only beyond a relative 1e-12: an exact tie blocks nothing, so duplicates keep their edges and both
diagonals of a square are there (a Delaunay triangulation, which holds the Gabriel graph of points in general
position, would drop one of them).

Euclidean points are searched with a k-d tree: seen from a, a point o rules out the whole half-space
``(x - o).(o - a) > 0``, so the few points nearest to a dismiss most boxes of the tree at once, and what is
left is checked by asking the tree whether any point lies in the ball of diameter ab. Other metrics go through
the matrix of distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from damier.search.kernels import kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Metric = str | Callable[[Any, Any], float]

_TOLERANCE = 1e-12
_TREE_DIMENSIONS = 5  # beyond, boxes dismiss too little and rows of distances are faster
_LEAF_SIZE = 12
_RUN = 16
_BLOCK = 16
_BAND_CELLS = 1 << 24


def gabriel_graph(X: npt.ArrayLike, metric: Metric = "euclidean") -> sparse.csr_array:
    """Link the points that have no other point between them.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Finite numbers. Scale the columns first if their units differ.
    metric : str or callable, default="euclidean"
        A metric known to :func:`scipy.spatial.distance.cdist`, by name or as a function of two points.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_points, n_points)
        Symmetric, 1 where two points are neighbours, an empty diagonal, columns sorted in each row.

    Examples
    --------
    >>> from damier import gabriel_graph
    >>> gabriel_graph([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0]]).toarray()
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    points = np.ascontiguousarray(X, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"gabriel_graph wants a table of points, one a row; got {points.ndim} dimension(s).")
    if not np.isfinite(points).all():
        raise ValueError(
            "gabriel_graph wants finite numbers: fill or drop missing and infinite values first."
        )
    n = points.shape[0]
    # Copies of a point have the same neighbours: the search runs on distinct points.
    distinct, site = np.unique(points, axis=0, return_inverse=True)
    site = site.reshape(-1)
    if metric == "euclidean" and distinct.shape[1] <= _TREE_DIMENSIONS:
        pairs = _pairs_by_tree(distinct)
    else:
        pairs = _pairs_by_distance(distinct, metric)
    m = distinct.shape[0]
    one_way = sparse.csr_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(m, m))
    spread = sparse.csr_array((np.ones(n, dtype=np.int8), (np.arange(n), site)), shape=(n, m))
    with_copies = spread @ (one_way + one_way.T + sparse.eye_array(m, dtype=np.int8)) @ spread.T
    graph = sparse.csr_array(with_copies - sparse.eye_array(n, dtype=np.int8))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _pairs_by_tree(points: FloatArray) -> IntArray:
    n, d = points.shape
    if n < 2 or d == 0:
        return np.zeros((0, 2), dtype=np.int64)
    order, starts, ends, lows, highs, skips = _box_tree(points)
    laid_out = np.ascontiguousarray(points[order])
    n_blockers = min(n - 1, 8 + 4 * d)
    blockers = np.ascontiguousarray(cKDTree(laid_out).query(laid_out, k=n_blockers + 1)[1], dtype=np.int64)
    found = _search_pairs(laid_out, blockers, starts, ends, lows, highs, skips)
    return np.sort(order[found], axis=1)


def _box_tree(points: FloatArray) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, IntArray]:
    """Halve the points along the longest side of their box, over and over.

    Nodes come in depth-first order; ``skips[k]`` is the node that follows the whole branch of node k.
    """
    order = np.arange(points.shape[0], dtype=np.int64)
    starts: list[int] = []
    ends: list[int] = []
    skips: list[int] = []
    lows: list[FloatArray] = []
    highs: list[FloatArray] = []

    def grow(start: int, end: int) -> None:
        node = len(starts)
        inside = points[order[start:end]]
        low, high = inside.min(axis=0), inside.max(axis=0)
        starts.append(start)
        ends.append(end)
        lows.append(low)
        highs.append(high)
        skips.append(0)
        if end - start > _LEAF_SIZE:
            middle = (end - start) // 2
            by_side = np.argpartition(inside[:, np.argmax(high - low)], middle)
            order[start:end] = order[start:end][by_side]
            grow(start, start + middle)
            grow(start + middle, end)
        skips[node] = len(starts)

    grow(0, points.shape[0])
    return (
        order,
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array(lows),
        np.array(highs),
        np.array(skips, dtype=np.int64),
    )


@kernel
def _first_pairs(pairs: IntArray, n_pairs: int, room: int) -> IntArray:
    """Copy the first pairs into an array of so many."""
    # A loop: an assignment of slices, and the messages of its errors, would take seconds to compile.
    copied = np.empty((room, 2), dtype=np.int64)
    for i in range(n_pairs):
        copied[i, 0] = pairs[i, 0]
        copied[i, 1] = pairs[i, 1]
    return copied


@kernel
def _search_pairs(
    points: FloatArray,
    blockers: IntArray,
    starts: IntArray,
    ends: IntArray,
    lows: FloatArray,
    highs: FloatArray,
    skips: IntArray,
) -> IntArray:
    n, d = points.shape
    n_nodes = starts.shape[0]
    n_blockers = blockers.shape[1]
    found = np.empty((max(16, 4 * n), 2), dtype=np.int64)
    n_found = 0
    d2_blocker = np.empty(n_blockers)
    for a in range(n):
        for k in range(n_blockers):
            o = blockers[a, k]
            total = 0.0
            for j in range(d):
                total += (points[a, j] - points[o, j]) ** 2
            d2_blocker[k] = total
        node = 0
        while node < n_nodes:
            if ends[node] <= a + 1:  # each pair once, from its lower end
                node = skips[node]
                continue
            # A whole box is out when even its farthest corner from the half-space's border is in the
            # half-space, with a margin that leaves close calls to the exact test below.
            dismissed = False
            for k in range(n_blockers):
                o = blockers[a, k]
                if o == a:
                    continue
                reach = 0.0
                span = 0.0
                for j in range(d):
                    step = points[o, j] - points[a, j]
                    if step > 0.0:
                        reach += (lows[node, j] - points[o, j]) * step
                    else:
                        reach += (highs[node, j] - points[o, j]) * step
                    span += max(abs(lows[node, j] - points[a, j]), abs(highs[node, j] - points[a, j])) ** 2
                if reach > 1e-9 * (span + d2_blocker[k]):
                    dismissed = True
                    break
            if dismissed:
                node = skips[node]
                continue
            if skips[node] != node + 1:
                node += 1
                continue
            for b in range(max(starts[node], a + 1), ends[node]):
                d2_ab = 0.0
                for j in range(d):
                    d2_ab += (points[a, j] - points[b, j]) ** 2
                limit = d2_ab * (1.0 - _TOLERANCE)
                blocked = False
                for k in range(n_blockers):
                    o = blockers[a, k]
                    total = d2_blocker[k]
                    if o in (a, b):
                        continue
                    if total >= limit:
                        break
                    for j in range(d):
                        total += (points[b, j] - points[o, j]) ** 2
                        if total >= limit:
                            break
                    if total < limit:
                        blocked = True
                        break
                if blocked or _any_between(points, a, b, d2_ab, starts, ends, lows, highs, skips):
                    continue
                if n_found == found.shape[0]:
                    found = _first_pairs(found, n_found, 2 * n_found)
                found[n_found, 0] = a
                found[n_found, 1] = b
                n_found += 1
            node += 1
    pairs: IntArray = _first_pairs(found, n_found, n_found)
    return pairs


@kernel
def _any_between(
    points: FloatArray,
    a: int,
    b: int,
    d2_ab: float,
    starts: IntArray,
    ends: IntArray,
    lows: FloatArray,
    highs: FloatArray,
    skips: IntArray,
) -> bool:
    """Tell whether a point lies strictly inside the ball of diameter ab."""
    d = points.shape[1]
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


def _pairs_by_distance(points: FloatArray, metric: Metric) -> IntArray:
    """Neighbours under any metric, from rows of the matrix of squared distances, a band of rows at a time."""
    n = points.shape[0]
    if n < 2:
        return np.zeros((0, 2), dtype=np.int64)
    # Points laid out along the tree put near ones side by side, so that runs of them are dismissed together.
    order = _box_tree(points)[0]
    laid_out = np.ascontiguousarray(points[order])
    band = min(n, max(64, _BAND_CELLS // n))
    found = []
    for first_a in range(0, n, band):
        from_a = _squared_distances(laid_out[first_a : first_a + band], laid_out, metric)
        n_blockers = min(n, 64)
        nearest = np.argpartition(from_a, n_blockers - 1, axis=1)[:, :n_blockers]
        by_distance = np.argsort(np.take_along_axis(from_a, nearest, axis=1), axis=1, kind="stable")
        blockers = np.ascontiguousarray(np.take_along_axis(nearest, by_distance, axis=1), dtype=np.int64)
        for first_b in range(first_a, n, band):
            same = first_b == first_a
            from_b = (
                from_a if same else _squared_distances(laid_out[first_b : first_b + band], laid_out, metric)
            )
            found.append(_band_pairs(from_a, from_b, blockers, first_a, first_b))
    return np.sort(order[np.concatenate(found)], axis=1)


def _squared_distances(some: FloatArray, points: FloatArray, metric: Metric) -> FloatArray:
    if metric == "euclidean":
        return np.ascontiguousarray(cdist(some, points, metric="sqeuclidean"))
    distances: FloatArray = cdist(some, points, metric=metric)  # type: ignore[arg-type]
    return np.ascontiguousarray(distances) ** 2


@kernel
def _band_pairs(
    from_a: FloatArray, from_b: FloatArray, blockers: IntArray, first_a: int, first_b: int
) -> IntArray:
    """Neighbours (a, b), a < b, of two bands of points, from the squared distances of each to all."""
    n = from_a.shape[1]
    n_runs = (n + _RUN - 1) // _RUN
    least_a = _least_by_run(from_a, n_runs)
    least_b = _least_by_run(from_b, n_runs)
    to_blocker = np.empty(blockers.shape)
    for i in range(blockers.shape[0]):
        for c in range(blockers.shape[1]):
            to_blocker[i, c] = from_a[i, blockers[i, c]]
    found = np.empty((1024, 2), dtype=np.int64)
    n_found = 0
    n_blocks = (from_b.shape[0] + _BLOCK - 1) // _BLOCK
    for job in range(n_blocks * from_a.shape[0]):
        # A few rows of b stay in the processor's cache while all of a pass by.
        i = job % from_a.shape[0]
        first_k = (job // from_a.shape[0]) * _BLOCK
        a = first_a + i
        for k in range(first_k, min(from_b.shape[0], first_k + _BLOCK)):
            b = first_b + k
            if b <= a:
                continue
            limit = from_a[i, b] * (1.0 - _TOLERANCE)
            blocked = False
            for c in range(blockers.shape[1]):
                if to_blocker[i, c] >= limit:
                    break
                if to_blocker[i, c] + from_b[k, blockers[i, c]] < limit:
                    blocked = True
                    break
            run = 0
            while run < n_runs and not blocked:
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
def _least_by_run(distances: FloatArray, n_runs: int) -> FloatArray:
    n = distances.shape[1]
    least = np.empty((distances.shape[0], n_runs))
    for i in range(distances.shape[0]):
        for run in range(n_runs):
            smallest = np.inf
            for o in range(run * _RUN, min(n, (run + 1) * _RUN)):
                smallest = min(smallest, distances[i, o])
            least[i, run] = smallest
    return least
