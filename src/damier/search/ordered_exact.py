"""Exact search on one ordered axis: dynamic programming at one linear penalty, and the penalties to try.

Why each step loses nothing is shown in ``docs/mathematics.md``, "Searching one ordered axis": supporting
penalties, starts dropped by entropy, starts dropped by convex combination.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from damier.search.ordered_axis import Axis
from damier.search.ordered_costs import factorial_table, least_regret, log_factorial, part_cost

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Starts gathered before they are tested for domination.
_BLOCK = 16
# Most penalties tried before the proof is given up; a handful is usual.
_MOST_PENALTIES = 200
# Slack of the domination tests, in nats: the rounding of costs of a million rows, not more.
_SLACK = 1e-9


@numba.njit(cache=True, nogil=True)
def _mark_dominated(lo, hi, total, ones, best, upper, lower, keep):  # type: ignore[no-untyped-def]
    """Mark in ``keep`` the starts lo .. hi that no convex combination of the others beats.

    The points (rows, rows of class 1) of the starts form a path. A start inside the hull of that path lies
    between its upper and its lower chain, and goes when its value is no less than theirs, averaged.
    """
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
    # Both chains end at the last start, so neither is read past its end.
    up = low = 0
    keep[lo] = True
    for s in range(lo + 1, hi):
        on_chain = False
        if s == upper[up + 1]:
            up += 1
            on_chain = True
        if s == lower[low + 1]:
            low += 1
            on_chain = True
        if not on_chain:
            a, b = upper[up], upper[up + 1]
            share = (total[s] - total[a]) / (total[b] - total[a])
            y_up = ones[a] + share * (ones[b] - ones[a])
            best_up = best[a] + share * (best[b] - best[a])
            a, b = lower[low], lower[low + 1]
            share = (total[s] - total[a]) / (total[b] - total[a])
            y_low = ones[a] + share * (ones[b] - ones[a])
            best_low = best[a] + share * (best[b] - best[a])
            share = 0.5
            if y_up > y_low:
                share = min(max((ones[s] - y_low) / (y_up - y_low), 0.0), 1.0)
            on_chain = best[s] < best_low + share * (best_up - best_low) - _SLACK
        keep[s] = on_chain


@numba.njit(cache=True, nogil=True)
def _entropy(rows, own):  # type: ignore[no-untyped-def]
    """Rows times the empirical entropy of two classes."""
    other = rows - own
    if own == 0 or other == 0:
        return 0.0
    return rows * math.log(rows) - own * math.log(own) - other * math.log(other)


@numba.njit(cache=True, nogil=True)
def _trace(parent, n_elements):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)
def _solve_two(cls, cnt, ptr, table, penalty):  # type: ignore[no-untyped-def]
    """Cheapest partition at ``penalty`` a part, two classes: its penalised cost and where its parts start."""
    n_elements = ptr.shape[0] - 1
    parent = np.empty(n_elements + 1, np.int32)
    room = 1024
    # The starts still in the race, in order: element, rows and rows of class 1 before it, best cost up to it.
    where = np.zeros(room, np.int64)
    total = np.zeros(room, np.int64)
    ones = np.zeros(room, np.int64)
    best = np.zeros(room, np.float64)
    upper = np.empty(room, np.int64)
    lower = np.empty(room, np.int64)
    keep = np.empty(room, np.bool_)
    # Blocks of starts tested together, their sizes falling like the digits of a binary counter.
    begins = np.zeros(64, np.int64)
    levels = np.zeros(64, np.int64)
    n_blocks = 0
    n_starts = 1
    fresh = 1
    n = m = 0
    value = 0.0
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
            base += log_factorial(table, rows + 1)
            base -= log_factorial(table, own) + log_factorial(table, rows - own)
            if base < value:
                value = base
                found = s
        parent[end] = where[found]
        if n_starts == room:
            room *= 2
            where = np.concatenate((where, where))
            total = np.concatenate((total, total))
            ones = np.concatenate((ones, ones))
            best = np.concatenate((best, best))
            upper = np.empty(room, np.int64)
            lower = np.empty(room, np.int64)
            keep = np.empty(room, np.bool_)
        where[n_starts], total[n_starts], ones[n_starts], best[n_starts] = end, n, m, value
        n_starts += 1
        fresh += 1
        if fresh < _BLOCK:
            continue
        begins[n_blocks] = n_starts - fresh
        levels[n_blocks] = 0
        n_blocks += 1
        fresh = 0
        while True:
            begin = begins[n_blocks - 1]
            _mark_dominated(begin, n_starts, total, ones, best, upper, lower, keep)
            kept = begin
            for s in range(begin, n_starts):
                if keep[s]:
                    where[kept], total[kept], ones[kept], best[kept] = where[s], total[s], ones[s], best[s]
                    kept += 1
            n_starts = kept
            if n_blocks == 1 or levels[n_blocks - 1] != levels[n_blocks - 2]:
                break
            n_blocks -= 1
            levels[n_blocks - 1] += 1
        if levels[n_blocks - 1] >= 2:
            # A start whose way to here costs no less than the best way to here is dropped for good.
            kept = 0
            b = 0
            for s in range(n_starts):
                while b < n_blocks and begins[b] == s:
                    begins[b] = kept
                    b += 1
                if s == n_starts - 1 or best[s] + _entropy(n - total[s], m - ones[s]) < value:
                    where[kept], total[kept], ones[kept], best[kept] = where[s], total[s], ones[s], best[s]
                    kept += 1
            n_starts = kept
    return value, _trace(parent, n_elements)


@numba.njit(cache=True, nogil=True)
def _solve_many(cls, cnt, ptr, n_classes, table, penalty):  # type: ignore[no-untyped-def]
    """Cheapest partition at ``penalty`` a part, any number of classes: as ``_solve_two``."""
    n_elements = ptr.shape[0] - 1
    parent = np.empty(n_elements + 1, np.int32)
    room = n_elements + 1
    where = np.zeros(room, np.int64)
    total = np.zeros(room, np.int64)
    before = np.zeros((n_classes, room), np.int64)
    best = np.zeros(room, np.float64)
    # Best cost up to the start, less the log factorials of the class counts from there to here.
    partial = np.zeros(room, np.float64)
    here = np.zeros(n_classes, np.int64)
    constant = penalty - log_factorial(table, n_classes - 1)
    n_starts = 1
    n = 0
    value = 0.0
    next_test = test_step = 32
    for end in range(1, n_elements + 1):
        for i in range(ptr[end - 1], ptr[end]):
            j, w = cls[i], cnt[i]
            n += w
            at = here[j]
            here[j] += w
            column = before[j]
            for s in range(n_starts):
                own = at - column[s]
                partial[s] -= log_factorial(table, own + w) - log_factorial(table, own)
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
            kept = 0
            for s in range(n_starts):
                rows = n - total[s]
                bits = rows * math.log(rows)
                for j in range(n_classes):
                    own = here[j] - before[j, s]
                    if own > 1:
                        bits -= own * math.log(own)
                if best[s] + bits < value:
                    where[kept], total[kept], best[kept], partial[kept] = (
                        where[s],
                        total[s],
                        best[s],
                        partial[s],
                    )
                    for j in range(n_classes):
                        before[j, kept] = before[j, s]
                    kept += 1
            # Tests that drop little are made less often: on noise they never pay.
            test_step = 32 if kept < 0.8 * n_starts else 2 * test_step
            next_test = end + test_step
            n_starts = kept
        where[n_starts], total[n_starts], best[n_starts], partial[n_starts] = end, n, value, value
        for j in range(n_classes):
            before[j, n_starts] = here[j]
        n_starts += 1
    return value, _trace(parent, n_elements)


@numba.njit(cache=True, nogil=True)
def _bounds(cls, cnt, ptr, n_classes, table):  # type: ignore[no-untyped-def]
    """Cost of the one-part partition, and the entropy no partition can go below."""
    counts = np.zeros(n_classes, np.int64)
    floor = 0.0
    for e in range(ptr.shape[0] - 1):
        rows = 0
        for i in range(ptr[e], ptr[e + 1]):
            counts[cls[i]] += cnt[i]
            rows += cnt[i]
            floor -= cnt[i] * math.log(cnt[i])
        floor += rows * math.log(rows)
    return part_cost(table, counts), floor


class Partition(NamedTuple):
    """Where the parts start, the total cost, and whether no other partition is cheaper."""

    starts: IntArray
    cost: float
    optimal: bool


def search_exact(axis: Axis, penalty: FloatArray, *, prove: bool = True) -> Partition:
    """Cheapest partition of an axis, proven when the supporting penalties close every number of parts.

    Parameters
    ----------
    axis : Axis
        Elements in order.
    penalty : array of shape (most parts,)
        ``penalty[I - 1]`` is the cost of having I parts, growing and concave in I.
    prove : bool
        False stops at the first penalty that gives back the number of parts it was drawn from.
    """
    n_classes = axis.n_classes
    table = factorial_table(axis.total + n_classes)
    most = min(penalty.shape[0], axis.n_elements)
    penalty = penalty[:most]
    one_part, floor = _bounds(axis.cls, axis.cnt, axis.ptr, n_classes, table)
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

    at = 1
    tried = set()
    while at not in tried and at < most:
        tried.add(at)
        at = solve(float(penalty[at] - penalty[at - 1]))
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
    # A line through the left point rules out the whole gap if its slope is at most this.
    from_left = float(np.min((known[left] + penalty[gap - 1] - target) / (gap - left)))
    if right == 0:
        return max(from_left, 0.0), math.nan
    chord = (known[left] - known[right]) / (right - left)
    if from_left > chord:
        return from_left, chord
    from_right = float(np.max((target - known[right] - penalty[gap - 1]) / (right - gap)))
    if from_right < chord:
        return from_right, chord
    return chord, chord
