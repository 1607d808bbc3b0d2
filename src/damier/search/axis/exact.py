"""Exact search on one ordered axis: dynamic programming at one linear penalty, and the penalties to try.

Why each step loses nothing is shown in ``docs/mathematics.md``, "Searching one ordered axis": supporting
penalties, starts dropped by entropy, starts dropped by convex combination.

It stands apart from the rest of the axis engine, which takes any price of a part: these proofs need costs
that are concave in the class counts. Those against a target are; intervals priced by ranks alone (log N!) are
not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from damier.search.axis.costs import least_regret, part_cost
from damier.search.axis.rows import Axis
from damier.search.kernels import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    allocating_inner,
    bare_kernel,
    factorial_table,
    inner,
    kernel,
    log_factorial,
)

# Starts gathered before they are tested for domination, and such tests between two tests by entropy.
_BLOCK = 24
_ENTROPY_EVERY = 2
# A class that one element in so many holds, or more, has its counts kept by start.
_DENSE = 4
# Number of parts at which the first tangent to the penalty is drawn, and the most tangents.
_FIRST_GUESS = 16
_MOST_TANGENTS = 2
# Most penalties tried before the proof is given up; a handful is usual.
_MOST_PENALTIES = 200
# Slack of the domination tests, in nats: the rounding of costs of a million rows, not more.
_SLACK = 1e-9


@inner
def _chains(
    lo: int, hi: int, total: IntArray, ones: IntArray, upper: IntArray, lower: IntArray
) -> tuple[int, int]:
    """Write the upper and the lower chain of the convex hull of the points lo .. hi; return their lengths."""
    n_up = n_low = 0
    for s in range(lo, hi):
        x, y = total[s], ones[s]
        while n_up >= 2:
            a, b = upper[n_up - 2], upper[n_up - 1]
            if (ones[b] - ones[a]) * (x - total[a]) > (y - ones[a]) * (total[b] - total[a]):
                break
            n_up -= 1
        upper[n_up] = s
        n_up += 1
        while n_low >= 2:
            a, b = lower[n_low - 2], lower[n_low - 1]
            if (ones[b] - ones[a]) * (x - total[a]) < (y - ones[a]) * (total[b] - total[a]):
                break
            n_low -= 1
        lower[n_low] = s
        n_low += 1
    return n_up, n_low


@inner
def _mark_dominated(
    lo: int,
    hi: int,
    total: IntArray,
    ones: IntArray,
    best: FloatArray,
    upper: IntArray,
    lower: IntArray,
    keep: BoolArray,
) -> None:
    """Mark in ``keep`` the starts lo .. hi that no convex combination of the others beats.

    The points (rows, rows of class 1) of the starts form a path. A start inside the hull of that path lies
    between its upper and its lower chain, and goes when its value is no less than theirs, averaged.
    """
    _chains(lo, hi, total, ones, upper, lower)
    # Both chains end at the last start, so neither is read past its end.
    up = low = -1
    next_up = next_low = lo
    y_up = y_low = best_up = best_low = dy_up = dy_low = dbest_up = dbest_low = 0.0
    for s in range(lo, hi):
        keep[s] = s in (next_up, next_low)
        if s == next_up:
            up += 1
            if s + 1 < hi:
                next_up = upper[up + 1]
                step = 1.0 / (total[next_up] - total[s])
                dy_up = (ones[next_up] - ones[s]) * step
                dbest_up = (best[next_up] - best[s]) * step
                y_up = ones[s] - dy_up * total[s]
                best_up = best[s] - dbest_up * total[s]
        if s == next_low:
            low += 1
            if s + 1 < hi:
                next_low = lower[low + 1]
                step = 1.0 / (total[next_low] - total[s])
                dy_low = (ones[next_low] - ones[s]) * step
                dbest_low = (best[next_low] - best[s]) * step
                y_low = ones[s] - dy_low * total[s]
                best_low = best[s] - dbest_low * total[s]
        if not keep[s]:
            x = total[s]
            y = y_low + dy_low * x
            room = y_up + dy_up * x - y
            # Strictly inside by at least 1 / (rows of the block), unless the block is one straight line.
            share = min(max((ones[s] - y) / room, 0.0), 1.0) if room > 1e-9 else 0.5
            f_low = best_low + dbest_low * x
            f_up = best_up + dbest_up * x
            keep[s] = best[s] < f_low + share * (f_up - f_low) - _SLACK


@inner
def _entropy(rows: int, own: int) -> float:
    """Rows times the empirical entropy of two classes."""
    other = rows - own
    if own == 0 or other == 0:
        return 0.0
    return rows * math.log(rows) - own * math.log(own) - other * math.log(other)


@allocating_inner
def _trace(parent: CodeArray, n_elements: int) -> IntArray:
    """Read the starts of the parts backwards from the parent of each end."""
    n_parts = 0
    end = n_elements
    while end > 0:
        end = parent[end]
        n_parts += 1
    starts = np.empty(n_parts, np.int64)
    end = n_elements
    for p in range(n_parts - 1, -1, -1):
        end = parent[end]
        starts[p] = end
    return starts


@kernel
def _solve_two(
    cls: CodeArray, cnt: IntArray, ptr: IntArray, table: FloatArray, penalty: float
) -> tuple[float, IntArray]:
    """Cheapest partition at ``penalty`` a part, two classes: its penalised cost and where its parts start."""
    n_elements = ptr.shape[0] - 1
    parent = np.empty(n_elements + 1, np.int32)
    room = n_elements + 1
    # The starts still in the race, in order: element, rows and rows of class 1 before it, best cost up to it.
    # Few of these places are ever used: few starts survive.
    where = np.empty(room, np.int64)
    total = np.empty(room, np.int64)
    ones = np.empty(room, np.int64)
    best = np.empty(room, np.float64)
    upper = np.empty(room, np.int64)
    lower = np.empty(room, np.int64)
    keep = np.empty(room, np.bool_)
    where[0] = total[0] = ones[0] = 0
    best[0] = 0.0
    n_starts = 1
    fresh = 1
    n_blocks = 0
    n = m = 0
    value = 0.0
    for i in range(cnt.shape[0]):
        n += cnt[i]
    in_table = n + 1 < table.shape[0]
    n = 0
    for end in range(1, n_elements + 1):
        for i in range(ptr[end - 1], ptr[end]):
            n += cnt[i]
            if cls[i] == 1:
                m += cnt[i]
        value = np.inf
        found = 0
        for s in range(n_starts):
            base = best[s] + penalty
            # Best costs grow along the axis, so no later start can win either.
            if base >= value:
                break
            rows = n - total[s]
            own = m - ones[s]
            if in_table:
                base += table[np.uint64(rows + 1)] - (table[np.uint64(own)] + table[np.uint64(rows - own)])
            else:
                base += log_factorial(table, rows + 1)
                base -= log_factorial(table, own) + log_factorial(table, rows - own)
            if base < value:
                value = base
                found = s
        parent[end] = where[found]
        where[n_starts] = end
        total[n_starts] = n
        ones[n_starts] = m
        best[n_starts] = value
        n_starts += 1
        fresh += 1
        if fresh < _BLOCK:
            continue
        # Test the newest starts, then twice as many, up to all: each is tested again and again, ever further
        # from the end, at the scale of its distance.
        width = fresh
        fresh = 0
        while True:
            begin = max(n_starts - width, 0)
            _mark_dominated(begin, n_starts, total, ones, best, upper, lower, keep)
            kept = begin
            for s in range(begin, n_starts):
                if keep[s]:
                    where[kept] = where[s]
                    total[kept] = total[s]
                    ones[kept] = ones[s]
                    best[kept] = best[s]
                    kept += 1
            n_starts = kept
            if begin == 0:
                break
            width *= 2
        n_blocks += 1
        if n_blocks % _ENTROPY_EVERY == 0:
            # A start from which the way here costs no less than the best way here is dropped for good.
            kept = 0
            for s in range(n_starts):
                if s == n_starts - 1 or best[s] + _entropy(n - total[s], m - ones[s]) < value:
                    where[kept] = where[s]
                    total[kept] = total[s]
                    ones[kept] = ones[s]
                    best[kept] = best[s]
                    kept += 1
            n_starts = kept
    return value, _trace(parent, n_elements)


@kernel
def undivided(
    order: CodeArray, fresh: BoolArray, classes: CodeArray, axes: IntArray, table: FloatArray, penalty: float
) -> BoolArray:
    """Say of each of many axes whether one part is cheapest at ``penalty`` a part, two classes.

    Parameters
    ----------
    order, fresh
        For each axis, the rows in the order of its values, and whether a row begins a value.
    classes
        Class of each row.
    axes
        The axes asked for.
    table, penalty
        As in ``_solve_two``.
    """
    n_rows = order.shape[1]
    whole = np.zeros(axes.shape[0], np.bool_)
    cls = np.empty(n_rows, np.int32)
    cnt = np.empty(n_rows, np.int64)
    ptr = np.zeros(n_rows + 1, np.int64)
    for a in range(axes.shape[0]):
        rows, begins = order[axes[a]], fresh[axes[a]]
        e = i = at = 0  # elements, entries and rows so far
        pure = -1  # class of the last element if it has but one, else -1
        while at < n_rows:
            n = ones = 0
            while at < n_rows and (n == 0 or not begins[at]):
                ones += classes[rows[at]]
                n += 1
                at += 1
            own = 0 if ones == 0 else 1 if ones == n else -1
            if own >= 0 and own == pure:
                cnt[i - 1] += n
                continue
            for j in range(2):
                if own in (j, -1):
                    cls[i], cnt[i] = j, ones if j == 1 else n - ones
                    i += 1
            e += 1
            ptr[e] = i
            pure = own
        whole[a] = _solve_two(cls[:i], cnt[:i], ptr[: e + 1], table, penalty)[1].shape[0] == 1
    return whole


@kernel
def hull_corners(cls: CodeArray, cnt: IntArray, ptr: IntArray, block: int) -> IntArray:
    """Elements where the path of two classes turns: corners of its hull, ``block`` elements at a time.

    While no part lies inside a block, an optimal cut is at one of these.
    """
    n_elements = ptr.shape[0] - 1
    corners = np.empty(n_elements + 1, np.int64)
    total = np.zeros(block + 1, np.int64)
    ones = np.zeros(block + 1, np.int64)
    upper = np.empty(block + 1, np.int64)
    lower = np.empty(block + 1, np.int64)
    n_corners = 0
    for first in range(0, n_elements, block):
        stop = min(first + block, n_elements)
        for e in range(first, stop):
            n = total[e - first]
            m = ones[e - first]
            for i in range(ptr[e], ptr[e + 1]):
                n += cnt[i]
                if cls[i] == 1:
                    m += cnt[i]
            total[e - first + 1] = n
            ones[e - first + 1] = m
        _chains(np.int64(0), stop - first + 1, total, ones, upper, lower)
        # Both chains share their ends; the last point is the first of the next block.
        up = low = 0
        while True:
            at = min(upper[up], lower[low])
            if at == stop - first:
                break
            corners[n_corners] = first + at
            n_corners += 1
            up += upper[up] == at
            low += lower[low] == at
    return corners[:n_corners].copy()


@inner
def _open_run(
    start: int,
    j: int,
    here: IntArray,
    end_run: IntArray,
    begins: CodeArray,
    before: IntArray,
    logs: FloatArray,
) -> None:
    """Begin a run of class ``j`` at a start, in place of one that no start has joined."""
    if begins[end_run[j] - 1] < start:
        end_run[j] += 1
    begins[end_run[j] - 1], before[end_run[j] - 1], logs[end_run[j] - 1] = start, here[j], 0.0


@inner
def _drop_runs(
    new_place: CodeArray,
    first_run: IntArray,
    end_run: IntArray,
    begins: CodeArray,
    before: IntArray,
    logs: FloatArray,
) -> None:
    """Drop the runs without a start left; the last of a class stays, for the next start may be in it."""
    for j in range(end_run.shape[0]):
        to = first_run[j]
        for r in range(first_run[j], end_run[j]):
            begin = new_place[begins[r]]
            if to > first_run[j] and begins[to - 1] == begin:
                to -= 1
            begins[to], before[to], logs[to] = begin, before[r], logs[r]
            to += 1
        end_run[j] = to


@kernel
def _solve_many(
    cls: CodeArray, cnt: IntArray, ptr: IntArray, n_classes: int, table: FloatArray, penalty: float
) -> tuple[float, IntArray]:
    """Cheapest partition at ``penalty`` a part, any number of classes: as ``_solve_two``.

    Rows of a class before a start change only at elements that hold the class. Starts between two of these
    share them: a run. A class that many elements hold has a run per start, for long loops are quicker. The
    runs are at most ``_DENSE`` times the entries, where counts by class and start of thousands of classes
    would fill gigabytes.
    """
    n_elements = ptr.shape[0] - 1
    parent = np.empty(n_elements + 1, np.int32)
    room = n_elements + 1
    where = np.zeros(room, np.int64)
    total = np.zeros(room, np.int64)
    best = np.zeros(room, np.float64)
    # Best cost up to the start, less the log factorials of the class counts from there to here.
    partial = np.zeros(room, np.float64)
    bits = np.empty(room, np.float64)
    here = np.zeros(n_classes, np.int64)
    # The runs of class j are those from first_run[j] to end_run[j]: where each begins, its rows before, and
    # the log factorial of those from there to here, which is slower to look up than to keep.
    first_run = np.zeros(n_classes + 1, np.int64)
    for i in range(cls.shape[0]):
        first_run[cls[i] + 1] += 1
    dense = first_run[1:] * _DENSE >= room
    for j in range(n_classes):
        first_run[j + 1] = first_run[j] + (room if dense[j] else first_run[j + 1] + 1)
    end_run = first_run[:-1] + 1
    always = np.flatnonzero(dense)
    begins = np.zeros(first_run[n_classes], np.int32)
    before = np.zeros(first_run[n_classes], np.int64)
    logs = np.zeros(first_run[n_classes], np.float64)
    new_place = np.zeros(room + 1, np.int32)
    constant = penalty - log_factorial(table, n_classes - 1)
    n_starts = 1
    n = 0
    value = 0.0
    next_test = test_step = 32
    for end in range(1, n_elements + 1):
        for i in range(ptr[end - 1], ptr[end]):
            j, w = cls[i], cnt[i]
            n += w
            here[j] += w
            at = here[j]
            first, last = first_run[j], end_run[j] - 1
            if last - first + 1 == n_starts:
                # A run per start.
                column, known = before[first : last + 1], logs[first : last + 1]
                if at < table.shape[0]:
                    for s in range(n_starts):
                        now = table[np.uint64(at - column[s])]
                        partial[s] -= now - known[s]
                        known[s] = now
                    continue
                for s in range(n_starts):
                    now = log_factorial(table, at - column[s])
                    partial[s] -= now - known[s]
                    known[s] = now
                continue
            for r in range(first, last + 1):
                now = log_factorial(table, at - before[r])
                more = now - logs[r]
                logs[r] = now
                for s in range(begins[r], begins[r + 1] if r < last else n_starts):
                    partial[s] -= more
        value = np.inf
        found = 0
        shift = n + n_classes - 1
        for s in range(n_starts):
            cost = partial[s] + log_factorial(table, shift - total[s])
            if cost < value:
                value = cost
                found = s
        value += constant
        parent[end] = where[found]
        if end >= next_test:
            for s in range(n_starts):
                rows = n - total[s]
                bits[s] = rows * math.log(rows)
            for j in range(n_classes):
                last = end_run[j] - 1
                for r in range(first_run[j], last + 1):
                    own = here[j] - before[r]
                    if own > 1:
                        held = own * math.log(own)
                        for s in range(begins[r], begins[r + 1] if r < last else n_starts):
                            bits[s] -= held
            kept = 0
            for s in range(n_starts):
                new_place[s] = kept
                if best[s] + bits[s] < value:
                    where[kept], total[kept] = where[s], total[s]
                    best[kept], partial[kept] = best[s], partial[s]
                    kept += 1
            new_place[n_starts] = kept
            _drop_runs(new_place, first_run, end_run, begins, before, logs)
            # Tests that drop little are made less often: on noise they never pay.
            test_step = 32 if kept < 0.8 * n_starts else 2 * test_step
            next_test = end + test_step
            n_starts = kept
        where[n_starts], total[n_starts], best[n_starts], partial[n_starts] = end, n, value, value
        for each in always:
            _open_run(n_starts, each, here, end_run, begins, before, logs)
        for i in range(ptr[end - 1], ptr[end]):
            if not dense[cls[i]]:
                _open_run(n_starts, cls[i], here, end_run, begins, before, logs)
        n_starts += 1
    return value, _trace(parent, n_elements)


@bare_kernel
def _bounds(
    cls: CodeArray, cnt: IntArray, ptr: IntArray, counts: IntArray, table: FloatArray
) -> tuple[float, float]:
    """Cost of the one-part partition, and the entropy no partition can go below; ``counts`` are zeros."""
    floor = 0.0
    for e in range(ptr.shape[0] - 1):
        rows = 0
        for i in range(ptr[e], ptr[e + 1]):
            counts[cls[i]] += cnt[i]
            rows += cnt[i]
            floor -= cnt[i] * math.log(cnt[i])
        floor += rows * math.log(rows)
    return part_cost(table, counts, counts.shape[0] - 1), floor


class Partition(NamedTuple):
    """Where the parts start, the total cost, and whether no other partition is cheaper."""

    starts: IntArray
    cost: float
    optimal: bool


def search_exact(
    axis: Axis, penalty: FloatArray, *, prove: bool = True, guess: int = _FIRST_GUESS
) -> Partition:
    """Cheapest partition of an axis, proven when the supporting penalties close every number of parts.

    Parameters
    ----------
    axis : Axis
        Elements in order.
    penalty : array of shape (most parts,)
        ``penalty[I - 1]`` is the cost of having I parts, growing and concave in I.
    prove : bool
        False stops after the tangents to the penalty, which as a rule have found the optimum.
    guess : int
        Number of parts at which the first tangent is drawn.
    """
    n_classes = axis.n_classes
    table = factorial_table(axis.total + n_classes)
    most = min(penalty.shape[0], axis.n_elements)
    penalty = penalty[:most]
    one_part, floor = _bounds(axis.cls, axis.cnt, axis.ptr, np.zeros(n_classes, np.int64), table)
    best = Partition(np.zeros(1, np.int64), one_part + float(penalty[0]), True)
    if most == 1:
        return best
    # Least additive cost known for a number of parts on the hull, and a lower bound for every other.
    known = {1: one_part}
    parts = np.arange(1, most + 1)
    lower = floor + parts * least_regret(n_classes) + penalty
    lower[0] = best.cost
    slack = 1e-9 + 1e-13 * abs(best.cost)

    def solve(slope: float) -> int:
        nonlocal best, lower
        if n_classes == 2:
            value, starts = _solve_two(axis.cls, axis.cnt, axis.ptr, table, slope)
        else:
            value, starts = _solve_many(axis.cls, axis.cnt, axis.ptr, n_classes, table, slope)
        found = int(starts.shape[0])
        additive = value - slope * found
        known[found] = min(additive, known.get(found, math.inf))
        np.maximum(lower, penalty + (value - slope * parts), out=lower)
        if found <= most:
            cost = additive + float(penalty[found - 1])
            if cost < best.cost - slack or (cost < best.cost + slack and found < best.starts.shape[0]):
                best = Partition(starts, cost, False)
        return found

    # Tangents to the penalty: the number of parts found at one is where the next is drawn.
    at = min(guess, most - 1)
    for _ in range(_MOST_TANGENTS):
        drawn_at, at = at, solve(float(penalty[at] - penalty[at - 1]))
        # What is one part at a low penalty is one at every higher; and near its own tangent is near enough.
        if at == 1 or at >= most or abs(at - drawn_at) <= drawn_at // 32:
            break
    if not prove:
        return best._replace(optimal=False)
    for _ in range(_MOST_PENALTIES):
        candidates = np.flatnonzero(lower < best.cost - slack)
        if candidates.shape[0] == 0:
            return best._replace(optimal=True)
        slope, chord = _next_slope(candidates + 1, lower, penalty, known, best.cost)
        n_known, n_open = len(known), candidates.shape[0]
        solve(slope)
        if len(known) == n_known and np.count_nonzero(lower < best.cost - slack) == n_open:
            if math.isnan(chord) or chord == slope:
                break
            solve(chord)
            if len(known) == n_known and np.count_nonzero(lower < best.cost - slack) == n_open:
                break
    return best._replace(optimal=False)


def _next_slope(
    candidates: IntArray, lower: FloatArray, penalty: FloatArray, known: dict[int, float], target: float
) -> tuple[float, float]:
    """Penalty most likely to rule out the numbers of parts around the most promising one, and the chord's."""
    promising = int(candidates[np.argmin(lower[candidates - 1])])
    left = max(i for i in known if i <= promising)
    right = min((i for i in known if i >= promising), default=0)
    gap = candidates[(candidates > left) & ((candidates < right) | (right == 0))]
    if gap.shape[0] == 0:
        return float(penalty[min(promising, penalty.shape[0] - 1)] - penalty[promising - 1]), math.nan
    # A line through the left point rules out the whole gap if its slope is at most ``from_left``; one through
    # the right point if at least ``from_right``. Neither is there to be found on the far side of the chord.
    from_left = float(np.min((known[left] + penalty[gap - 1] - target) / (gap - left)))
    if right == 0:
        # A little less than needed, so that what is found instead has its own line close the gap beyond it.
        return max(0.97 * from_left, 0.0), math.nan
    from_right = float(np.max((target - known[right] - penalty[gap - 1]) / (right - gap)))
    chord = (known[left] - known[right]) / (right - left)
    slopes = [slope for slope in (from_left, from_right) if (slope > chord) == (slope == from_left)]
    left_cost = known[left] + penalty[left - 1]
    right_cost = known[right] + penalty[min(right, penalty.shape[0]) - 1]
    if left_cost > right_cost:
        slopes.reverse()
    return (slopes[0] if slopes else chord), chord
