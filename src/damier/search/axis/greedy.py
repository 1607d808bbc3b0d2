"""Cheap search on one ordered axis: greedy merge down to one part, then local improvement.

The merge is the agglomerative heuristic of the MODL papers, continued to one part with the best remembered;
the improvement repeats the best of split, merge, move (merge two, cut again) and merge three, cut again.
Neither needs a concave cost: both take any price of a part (``extra`` is the x of `Price`, which on an
ordered axis does not depend on the number of values) and any price of the number of parts
(``penalty[I - 1]``).

Legend of the kernels: the elements ``cls, cnt, ptr`` of an `Axis`; ``table`` is what `log_factorial` reads.
"""

from __future__ import annotations

import numpy as np

from damier.search.axis.costs import part_cost
from damier.search.axis.rows import Axis
from damier.search.kernels import CodeArray, FloatArray, IntArray, inner, kernel, log_factorial

# Cost differences below this are rounding; equal merges are then made from left to right.
_RESOLUTION = 1e-9
# What a change must gain: more than sums of a million differences can err, also relative to log N!, for
# weights may add up to any N.
_LEAST_GAIN = 1e-7
_LEAST_RELATIVE_GAIN = 1e-13


@inner
def _settle(heap: IntArray, place: IntArray, key: FloatArray, at: int, size: int) -> None:
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


@inner
def _joint_cost(
    cls: CodeArray,
    cnt: IntArray,
    ptr: IntArray,
    stop: IntArray,
    a: int,
    b: int,
    extra: int,
    table: FloatArray,
) -> float:
    """Cost of two parts as one; part ``a`` holds the entries ptr[a] .. stop[a], in the order of classes."""
    n = 0
    cost: float = 0.0
    i, k = ptr[a], ptr[b]
    while i < stop[a] and k < stop[b]:
        j, other = cls[i], cls[k]
        c = 0
        if j <= other:
            c += cnt[i]
            i += 1
        if other <= j:
            c += cnt[k]
            k += 1
        n += c
        cost -= log_factorial(table, c)
    for rest in range(i, stop[a]):
        n += cnt[rest]
        cost -= log_factorial(table, cnt[rest])
    for rest in range(k, stop[b]):
        n += cnt[rest]
        cost -= log_factorial(table, cnt[rest])
    cost += log_factorial(table, n + extra) - log_factorial(table, extra)
    return cost


@inner
def _join(
    cls: CodeArray, cnt: IntArray, ptr: IntArray, stop: IntArray, a: int, b: int, joined: IntArray
) -> None:
    """Write the entries of two neighbouring parts, in the order of classes, where those of ``a`` begin.

    They never need more room than both had. ``joined`` is working space, two numbers for each class.
    """
    i, k, n = ptr[a], ptr[b], 0
    while i < stop[a] or k < stop[b]:
        from_a = i < stop[a] and (k == stop[b] or cls[i] <= cls[k])
        from_b = k < stop[b] and (i == stop[a] or cls[k] <= cls[i])
        joined[n, 1] = 0
        if from_a:
            joined[n, 0] = cls[i]
            joined[n, 1] += cnt[i]
            i += 1
        if from_b:
            joined[n, 0] = cls[k]
            joined[n, 1] += cnt[k]
            k += 1
        n += 1
    stop[a] = ptr[a] + n
    for i in range(n):
        cls[ptr[a] + i] = joined[i, 0]
        cnt[ptr[a] + i] = joined[i, 1]


@kernel
def merge_greedily(
    cls: CodeArray,
    cnt: IntArray,
    ptr: IntArray,
    n_classes: int,
    extra: int,
    table: FloatArray,
    penalty: FloatArray,
) -> tuple[IntArray, int]:
    """Merge the cheapest pair of neighbours down to one part.

    Returns the cuts (as the element to their right) in the order in which they went, and the number of parts
    at which the cost was least; the cuts of that partition are the last ones of the list.
    """
    n = ptr.shape[0] - 1
    # Entries, not a count for each class: of many classes a part holds few. The last part is empty.
    cls, cnt = cls.copy(), cnt.copy()
    stop = np.empty(n + 1, np.int64)
    for e in range(n + 1):
        stop[e] = ptr[min(e + 1, n)]
    joined = np.empty((n_classes, 2), np.int64)
    cost = np.empty(n, np.float64)
    additive = 0.0
    for e in range(n):
        cost[e] = _joint_cost(cls, cnt, ptr, stop, e, n, extra, table)
        additive += cost[e]
    left = np.arange(-1, n - 1)
    right = np.arange(1, n + 1)
    key = np.empty(n, np.float64)
    heap = np.arange(max(n - 1, 0))
    place = np.arange(n)
    for e in range(n - 1):
        added = _joint_cost(cls, cnt, ptr, stop, e, e + 1, extra, table) - cost[e] - cost[e + 1]
        key[e] = np.rint(added / _RESOLUTION)
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
        merged = _joint_cost(cls, cnt, ptr, stop, e, gone, extra, table)
        additive += merged - cost[e] - cost[gone]
        cost[e] = merged
        _join(cls, cnt, ptr, stop, e, gone, joined)
        right[e] = right[gone]
        size = parts - 2
        # The pair that began at ``gone`` leaves the heap; the pair that begins at ``e`` takes its new key.
        leaving = gone if right[e] < n else e
        if right[e] < n:
            left[right[e]] = e
        hole = place[leaving]
        if hole < size:
            heap[hole] = heap[size]
            place[heap[hole]] = hole
            _settle(heap, place, key, hole, size)
        for a in (e, left[e]):
            if a >= 0 and right[a] < n:
                added = _joint_cost(cls, cnt, ptr, stop, a, right[a], extra, table) - cost[a] - cost[right[a]]
                key[a] = np.rint(added / _RESOLUTION)
                _settle(heap, place, key, place[a], size)
    return removed, best_parts


@inner
def _best_cut(
    cls: CodeArray,
    cnt: IntArray,
    ptr: IntArray,
    extra: int,
    table: FloatArray,
    first: int,
    low: int,
    high: int,
    stop: int,
    near: IntArray,
    far: IntArray,
) -> tuple[float, int, float]:
    """Cut the elements first .. stop in two at the least cost, the cut between ``low`` and ``high``.

    Returns that cost, the element right of the cut, and the cost of not cutting at all. ``near`` and ``far``
    are working space for the class counts of both sides. Eleven arguments, for it is called for every part.
    """
    n_classes = near.shape[0]
    near[:] = 0
    far[:] = 0
    for i in range(ptr[first], ptr[low]):
        near[cls[i]] += cnt[i]
    for i in range(ptr[low], ptr[stop]):
        far[cls[i]] += cnt[i]
    n_near = n_far = 0
    for j in range(n_classes):
        n_near += near[j]
        n_far += far[j]
    cost = part_cost(table, far, extra)
    if low > first:
        cost += part_cost(table, near, extra)
    least = np.inf
    where = first
    for e in range(low, high):
        for i in range(ptr[e], ptr[e + 1]):
            j, w = cls[i], cnt[i]
            a, b = near[j], far[j]
            cost -= log_factorial(table, a + w) - log_factorial(table, a)
            cost -= log_factorial(table, b - w) - log_factorial(table, b)
            cost += log_factorial(table, n_near + w + extra) - log_factorial(table, n_near + extra)
            cost += log_factorial(table, n_far - w + extra) - log_factorial(table, n_far + extra)
            near[j] += w
            far[j] -= w
            n_near += w
            n_far -= w
        if cost < least - _RESOLUTION:
            least = cost
            where = e + 1
    for j in range(n_classes):
        near[j] += far[j]
    return least, where, part_cost(table, near, extra)


@kernel
def _improve(
    cls: CodeArray,
    cnt: IntArray,
    ptr: IntArray,
    n_classes: int,
    extra: int,
    table: FloatArray,
    penalty: FloatArray,
    starts: IntArray,
    widest: int,
    reach: int,
) -> tuple[IntArray, bool]:
    """Improve as ``improve`` does, until nothing gains or the room for new parts is used up; say which."""
    n_elements = ptr.shape[0] - 1
    n_parts = starts.shape[0]
    room = 2 * n_parts + 16
    edge = np.empty(room + 1, np.int64)
    for p in range(n_parts):
        edge[p] = starts[p]
    edge[n_parts] = n_elements
    # For the parts p .. p + width: least cost when cut in two, where to cut, cost uncut; row width - 1.
    cut_cost = np.empty((3, room), np.float64)
    cut_at = np.empty((3, room), np.int64)
    whole = np.empty((3, room), np.float64)
    stale = np.ones((3, room), np.bool_)
    near = np.empty(n_classes, np.int64)
    far = np.empty(n_classes, np.int64)
    total = 0
    for i in range(cnt.shape[0]):
        total += cnt[i]
    least_gain = max(_LEAST_GAIN, _LEAST_RELATIVE_GAIN * log_factorial(table, total))
    # Far more steps than ever gain: should rounding turn in circles after all, it ends here.
    for _ in range(1000 + 4 * n_elements):
        if n_parts >= room:
            break
        for width in range(1, widest + 1):
            for p in range(n_parts - width + 1):
                if not stale[width - 1, p]:
                    continue
                stale[width - 1, p] = False
                first, stop = edge[p], edge[p + width]
                low, high = first, stop - 1
                if width == 2:
                    low, high = max(low, edge[p + 1] - reach), min(high, edge[p + 1] + reach)
                cost, where, uncut = _best_cut(cls, cnt, ptr, extra, table, first, low, high, stop, near, far)
                cut_cost[width - 1, p] = cost
                cut_at[width - 1, p] = where
                whole[width - 1, p] = uncut
        grow = shrink = np.inf
        if n_parts < penalty.shape[0]:
            grow = penalty[n_parts] - penalty[n_parts - 1]
        if n_parts > 1:
            shrink = penalty[n_parts - 2] - penalty[n_parts - 1]
        least = -least_gain
        best = span = 0
        cut = True
        for p in range(n_parts):
            now = whole[0, p]
            if cut_cost[0, p] + grow - now < least:
                least, best, span, cut = cut_cost[0, p] + grow - now, p, 1, True
            if p + 1 < n_parts:
                now += whole[0, p + 1]
                if cut_cost[1, p] - now < least:
                    least, best, span, cut = cut_cost[1, p] - now, p, 2, True
                if whole[1, p] + shrink - now < least:
                    least, best, span, cut = whole[1, p] + shrink - now, p, 2, False
            if p + 2 < n_parts and widest > 2:
                now += whole[0, p + 2]
                if cut_cost[2, p] + shrink - now < least:
                    least, best, span, cut = cut_cost[2, p] + shrink - now, p, 3, True
        if span == 0:
            break
        where = cut_at[span - 1, best]
        # The parts best .. best + span become one, or two when cut; those behind move up or down.
        move = (2 if cut else 1) - span
        for step in range(n_parts + 1 - best - span):
            p = n_parts - step if move > 0 else best + span + step
            edge[p + move] = edge[p]
            if p < n_parts:
                for w in range(3):
                    cut_cost[w, p + move] = cut_cost[w, p]
                    cut_at[w, p + move] = cut_at[w, p]
                    whole[w, p + move] = whole[w, p]
                    stale[w, p + move] = stale[w, p]
        n_parts += move
        if cut:
            edge[best + 1] = where
        for w in range(3):
            for p in range(max(best - w, 0), best + 2):
                if p < room:
                    stale[w, p] = True
            # Groups of parts that now reach the end did not exist before.
            for p in range(max(n_parts - w - 1, 0), n_parts):
                stale[w, p] = True
    return edge[:n_parts].copy(), n_parts < room


def improve(
    axis: Axis,
    extra: int,
    table: FloatArray,
    penalty: FloatArray,
    starts: IntArray,
    *,
    widest: int = 3,
    reach: int | None = None,
) -> IntArray:
    """Repeat the best split, merge, move, or merge of three cut in two, until none gains.

    Parameters
    ----------
    axis : Axis
        Elements in order.
    extra : int
        Price of a part: log [(N + extra)! / extra!], less the log factorials of its class counts.
    table : array
        What `log_factorial` reads.
    penalty : array of shape (most parts,)
        ``penalty[I - 1]`` is the price of I parts.
    starts : array
        First element of each part, to begin with.
    widest : {2, 3}
        2 leaves out the merges of three, on long axes.
    reach : int, optional
        Most elements by which a cut is moved at a time, on long axes.

    Returns
    -------
    array
        First element of each part.
    """
    reach = axis.n_elements if reach is None else reach
    done = False
    while not done:
        starts, done = _improve(
            axis.cls, axis.cnt, axis.ptr, axis.n_classes, extra, table, penalty, starts, widest, reach
        )
    return starts
