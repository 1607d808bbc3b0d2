"""Cheap search on one ordered axis: greedy merge down to one part, then local improvement.

The merge is the agglomerative heuristic of the MODL papers, continued to one part with the best remembered;
the improvement repeats the best of split, merge, move (merge two, cut again) and merge three, cut again.
"""

from __future__ import annotations

import numba
import numpy as np

from damier.search.ordered_axis import part_counts
from damier.search.ordered_costs import log_factorial, part_cost

# Cost differences below this are rounding; equal merges are then made from left to right.
_RESOLUTION = 1e-9


@numba.njit(cache=True, nogil=True)
def _settle(heap, place, key, at, size):  # type: ignore[no-untyped-def]
    """Put the heap's entry ``at`` where its key, then its place on the axis, belongs."""
    e = heap[at]
    while at > 0:
        up = (at - 1) // 2
        other = heap[up]
        if key[other] < key[e] or (key[other] == key[e] and other < e):
            break
        heap[at] = other
        place[other] = at
        at = up
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        other = heap[down]
        if down + 1 < size:
            twin = heap[down + 1]
            if key[twin] < key[other] or (key[twin] == key[other] and twin < other):
                down += 1
                other = twin
        if key[e] < key[other] or (key[e] == key[other] and e < other):
            break
        heap[at] = other
        place[other] = at
        at = down
    heap[at] = e
    place[e] = at


@numba.njit(cache=True, nogil=True)
def _joint_cost(counts, a, b, table):  # type: ignore[no-untyped-def]
    """Cost of the elements ``a`` and ``b`` as one part."""
    n_classes = counts.shape[1]
    n = 0
    cost = 0.0
    for j in range(n_classes):
        c = counts[a, j] + counts[b, j]
        n += c
        cost -= log_factorial(table, c)
    return cost + log_factorial(table, n + n_classes - 1) - log_factorial(table, n_classes - 1)


@numba.njit(cache=True, nogil=True)
def merge_greedily(cls, cnt, ptr, n_classes, table, penalty):  # type: ignore[no-untyped-def]
    """Merge the cheapest pair of neighbours down to one part.

    Returns the cuts (as the element to their right) in the order in which they went, and the number of parts
    at which the cost was least; the cuts of that partition are the last ones of the list.
    """
    n = ptr.shape[0] - 1
    counts = part_counts(cls, cnt, ptr, np.arange(n), n_classes)
    cost = np.empty(n, np.float64)
    additive = 0.0
    for e in range(n):
        cost[e] = part_cost(table, counts[e])
        additive += cost[e]
    left = np.arange(-1, n - 1)
    right = np.arange(1, n + 1)
    key = np.empty(n, np.float64)
    heap = np.arange(max(n - 1, 0))
    place = np.arange(n)
    for e in range(n - 1):
        key[e] = np.rint((_joint_cost(counts, e, e + 1, table) - cost[e] - cost[e + 1]) / _RESOLUTION)
    for at in range(n - 1):
        _settle(heap, place, key, at, at + 1)
    removed = np.empty(max(n - 1, 0), np.int64)
    best_parts = n
    best_cost = np.inf
    for parts in range(n, 0, -1):
        if parts <= penalty.shape[0]:
            total = additive + penalty[parts - 1]
            if total <= best_cost + _RESOLUTION:
                best_cost = min(total, best_cost)
                best_parts = parts
        if parts == 1:
            break
        e = heap[0]
        gone = right[e]
        removed[n - parts] = gone
        merged = _joint_cost(counts, e, gone, table)
        additive += merged - cost[e] - cost[gone]
        cost[e] = merged
        for j in range(n_classes):
            counts[e, j] += counts[gone, j]
        right[e] = right[gone]
        size = parts - 2
        # The pair that began at ``gone`` leaves the heap; the pair that begins at ``e`` takes its new key.
        leaving = gone if right[e] < n else e
        if right[e] < n:
            left[right[e]] = e
            key[e] = np.rint(
                (_joint_cost(counts, e, right[e], table) - merged - cost[right[e]]) / _RESOLUTION
            )
        hole = place[leaving]
        if hole < size:
            heap[hole] = heap[size]
            place[heap[hole]] = hole
            _settle(heap, place, key, hole, size)
        if right[e] < n:
            _settle(heap, place, key, place[e], size)
        if left[e] >= 0:
            e = left[e]
            key[e] = np.rint(
                (_joint_cost(counts, e, right[e], table) - cost[e] - cost[right[e]]) / _RESOLUTION
            )
            _settle(heap, place, key, place[e], size)
    return removed, best_parts


@numba.njit(cache=True, nogil=True)
def _best_cut(cls, cnt, ptr, table, first, stop, near, far):  # type: ignore[no-untyped-def]
    """Cut the elements first .. stop in two at the least cost: that cost and the element right of the cut."""
    n_classes = near.shape[0]
    near[:] = 0
    far[:] = 0
    n_near = n_far = 0
    for i in range(ptr[first], ptr[stop]):
        far[cls[i]] += cnt[i]
        n_far += cnt[i]
    cost = part_cost(table, far)
    least = np.inf
    where = first
    shift = n_classes - 1
    for e in range(first, stop - 1):
        for i in range(ptr[e], ptr[e + 1]):
            j, w = cls[i], cnt[i]
            a, b = near[j], far[j]
            cost -= log_factorial(table, a + w) - log_factorial(table, a)
            cost -= log_factorial(table, b - w) - log_factorial(table, b)
            cost += log_factorial(table, n_near + w + shift) - log_factorial(table, n_near + shift)
            cost += log_factorial(table, n_far - w + shift) - log_factorial(table, n_far + shift)
            near[j] += w
            far[j] -= w
            n_near += w
            n_far -= w
        if cost < least - _RESOLUTION:
            least = cost
            where = e + 1
    return least, where


@numba.njit(cache=True, nogil=True)
def improve(cls, cnt, ptr, n_classes, table, penalty, starts, widest):  # type: ignore[no-untyped-def]
    """Repeat the best split, merge, move, or merge of three cut in two, until none gains.

    ``widest`` limits what is tried: 2 leaves out the merges of three.
    """
    n_elements = ptr.shape[0] - 1
    n_parts = starts.shape[0]
    room = 2 * n_parts + 16
    edge = np.empty(room + 1, np.int64)
    edge[:n_parts] = starts
    edge[n_parts] = n_elements
    # For each part and width 1, 2, 3: least cost of cutting the parts p .. p + width in two, and where.
    cut_cost = np.empty((3, room), np.float64)
    cut_at = np.empty((3, room), np.int64)
    whole = np.empty((2, room), np.float64)
    stale = np.ones((3, room), np.bool_)
    near = np.empty(n_classes, np.int64)
    far = np.empty(n_classes, np.int64)
    while True:
        least = -1e-7
        kind = best = -1
        grow = np.inf
        if n_parts < min(penalty.shape[0], n_elements):
            grow = penalty[n_parts] - penalty[n_parts - 1]
        shrink = penalty[n_parts - 2] - penalty[n_parts - 1] if n_parts > 1 else np.inf
        for width in range(1, widest + 1):
            for p in range(n_parts - width + 1):
                if stale[width - 1, p]:
                    stale[width - 1, p] = False
                    first, stop = edge[p], edge[p + width]
                    cut_cost[width - 1, p], cut_at[width - 1, p] = _best_cut(
                        cls, cnt, ptr, table, first, stop, near, far
                    )
                    if width < 3:
                        # ``near`` and ``far`` together hold the counts of all the parts.
                        for j in range(n_classes):
                            near[j] += far[j]
                        whole[width - 1, p] = part_cost(table, near)
        for p in range(n_parts):
            gain = cut_cost[0, p] + grow - whole[0, p]
            if gain < least:
                least, kind, best = gain, 1, p
        for p in range(n_parts - 1):
            now = whole[0, p] + whole[0, p + 1]
            gain = cut_cost[1, p] - now
            if gain < least and cut_at[1, p] != edge[p + 1]:
                least, kind, best = gain, 2, p
            gain = whole[1, p] + shrink - now
            if gain < least:
                least, kind, best = gain, 0, p
        if widest > 2:
            for p in range(n_parts - 2):
                gain = cut_cost[2, p] + shrink - whole[0, p] - whole[0, p + 1] - whole[0, p + 2]
                if gain < least:
                    least, kind, best = gain, 3, p
        if kind < 0:
            break
        before = n_parts
        old_span = kind if kind > 0 else 2
        if kind == 1:
            n_parts += 1
        elif kind != 2:
            n_parts -= 1
        shift = n_parts - before
        new_span = old_span + shift
        at = cut_at[kind - 1, best] if kind > 0 else -1
        if n_parts > room - 1:
            extra = room
            room += extra
            edge = np.concatenate((edge, np.empty(extra, np.int64)))
            cut_cost = np.concatenate((cut_cost, np.empty((3, extra), np.float64)), axis=1)
            cut_at = np.concatenate((cut_at, np.empty((3, extra), np.int64)), axis=1)
            whole = np.concatenate((whole, np.empty((2, extra), np.float64)), axis=1)
            stale = np.concatenate((stale, np.ones((3, extra), np.bool_)), axis=1)
        if shift > 0:
            for p in range(before, best + old_span - 1, -1):
                edge[p + 1] = edge[p]
                cut_cost[:, p + 1] = cut_cost[:, p]
                cut_at[:, p + 1] = cut_at[:, p]
                whole[:, p + 1] = whole[:, p]
                stale[:, p + 1] = stale[:, p]
        elif shift < 0:
            for p in range(best + old_span, before + 1):
                edge[p - 1] = edge[p]
                cut_cost[:, p - 1] = cut_cost[:, p]
                cut_at[:, p - 1] = cut_at[:, p]
                whole[:, p - 1] = whole[:, p]
                stale[:, p - 1] = stale[:, p]
        if at >= 0:
            edge[best + 1] = at
        for p in range(max(best - 2, 0), best + new_span):
            stale[:, p] = True
        for p in range(n_parts, room):
            stale[:, p] = True
    return edge[:n_parts].copy()
