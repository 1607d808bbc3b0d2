"""A categorical axis of a grid with the others frozen: redivide two groups, merge them, divide one.

Values have no order of their own, so they are given one: by how much better their rows fit one of two
groups than the other, each value judged without its own rows. The scan of numeric axes then finds the best
cut in that order.
"""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

import numpy as np

from damier.search.grid.scan import best_cut
from damier.search.grid.state import EPSILON, TIE, Grid, Problem, Work, part_word, prior_step, rekey
from damier.search.kernels import CodeArray, FloatArray, WordArray, inner, mix, uniform

# How often a pair of groups is gone through for single values to move.
_MOST_SWEEPS = 8


@inner
def _sift_down(values: CodeArray, scores: FloatArray, root: int, n: int) -> None:
    """Let the entry at `root` sink to its place in the heap of the first n."""
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and (
            scores[child] < scores[child + 1]
            or (scores[child] == scores[child + 1] and values[child] < values[child + 1])
        ):
            child += 1
        if scores[root] > scores[child] or (scores[root] == scores[child] and values[root] > values[child]):
            return
        values[root], values[child] = values[child], values[root]
        scores[root], scores[child] = scores[child], scores[root]
        root = child


@inner
def _sort_values(values: CodeArray, scores: FloatArray, n: int) -> None:
    """Heapsort the first n values by score, then by value, so that equal scores fall in a fixed order."""
    for root in range(n - 1, -1, -1):
        _sift_down(values, scores, root, n)
    for last in range(n - 1, -1, -1):
        values[0], values[last] = values[last], values[0]
        scores[0], scores[last] = scores[last], scores[0]
        _sift_down(values, scores, np.int64(0), last)


@inner
def _cut_values(problem: Problem, work: Work, base: int, n: int, n_first: int) -> tuple[float, int, float]:
    """Find the best cut of the n listed values in their order, and the cost of the cut after `n_first`.

    Returns the cost of the best cut relative to one undivided group, its number of values, and the cost at
    `n_first`, 0 if that is negative. The values' rows are laid end to end in the buffers of `work`.
    """
    values, slots, classes, fresh = work.values, work.buffer_slot, work.buffer_class, work.buffer_fresh
    value_start = problem.value_start
    size = np.int64(0)
    current = np.int64(-1)
    for v in range(n):
        if v == n_first:
            current = size
        at = base + values[v]
        lo = np.int64(value_start[at])
        for i in range(lo, np.int64(value_start[at + 1])):
            slots[size] = work.slot_at[i]
            classes[size] = work.class_at[i]
            fresh[size] = i == lo
            size += 1
    best, cut, at_current = best_cut(
        slots, classes, fresh, np.int64(0), size, current,
        work.counts, work.sizes, problem.logs, problem.n_classes,
    )  # fmt: skip
    first = np.int64(0)
    while cut > 0:
        at = base + values[first]
        cut -= value_start[at + 1] - value_start[at]
        first += 1
    return best, first, at_current


@inner
def _put(
    slot_at: CodeArray, class_at: CodeArray, counts: CodeArray, sizes: CodeArray, logs: FloatArray,
    n_classes: int, lo: int, hi: int, side: int,
) -> float:  # fmt: skip
    """Add the rows lo .. hi-1 to a side of the two; return what that costs."""
    cost = 0.0
    for i in range(lo, hi):
        slot = np.int64(slot_at[i])
        cell = slot * n_classes + class_at[i]
        cost += logs[sizes[side, slot] + n_classes] - logs[counts[side, cell] + 1]
        sizes[side, slot] += 1
        counts[side, cell] += 1
    return cost


@inner
def _take(
    slot_at: CodeArray, class_at: CodeArray, counts: CodeArray, sizes: CodeArray, n_classes: int,
    lo: int, hi: int, side: int,
) -> None:  # fmt: skip
    """Take the rows lo .. hi-1 away from a side."""
    for i in range(lo, hi):
        slot = np.int64(slot_at[i])
        sizes[side, slot] -= 1
        counts[side, slot * n_classes + class_at[i]] -= 1


@inner
def _try_values(
    problem: Problem, work: Work, base: int, n: int, n_first: int, cost: float, move: bool
) -> tuple[float, int, bool]:
    """Try each of the n listed values on the other side, judged without its own rows.

    Side 0 holds the first n_first values. With `move`, a value that is better off on the other side goes
    there, unless it is the last of its own, and `work.side` says who ended where. Without, `work.scores`
    receives how much better a row of the value fits side 1. Returns the cost, given what it was before, the
    size of side 0, and whether any value moved.
    """
    values, side, value_start = work.values, work.side, problem.value_start
    slot_at, class_at, counts, sizes = work.slot_at, work.class_at, work.counts, work.sizes
    logs, n_classes = problem.logs, problem.n_classes
    for v in range(n):
        side[v] = 0 if v < n_first else 1
        at = base + values[v]
        lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
        _put(slot_at, class_at, counts, sizes, logs, n_classes, lo, hi, np.int64(side[v]))
    moved = False
    for v in range(n):
        here = np.int64(side[v])
        if move and (n_first if here == 0 else n - n_first) == 1:
            continue
        at = base + values[v]
        lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
        _take(slot_at, class_at, counts, sizes, n_classes, lo, hi, here)
        back = _put(slot_at, class_at, counts, sizes, logs, n_classes, lo, hi, here)
        there = _put(slot_at, class_at, counts, sizes, logs, n_classes, lo, hi, 1 - here)
        leave = 1 - here
        if not move:
            work.scores[v] = (back - there if here == 0 else there - back) / (hi - lo)
        elif there < back - EPSILON:
            cost += there - back
            moved = True
            leave = here
            side[v] = 1 - here
            n_first += -1 if here == 0 else 1
        _take(slot_at, class_at, counts, sizes, n_classes, lo, hi, leave)
    for v in range(n):
        at = base + values[v]
        lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
        _take(slot_at, class_at, counts, sizes, n_classes, lo, hi, np.int64(side[v]))
    return cost, n_first, moved


@inner
def _refine_pair(problem: Problem, work: Work, base: int, n: int, n_first: int) -> tuple[float, float, int]:
    """Improve a division in two of the n listed values, of which the first n_first make up the first side.

    A negative n_first asks for the best cut of the values as listed to begin with; `base` is where the axis'
    values begin. Returns the cells' cost relative to one undivided group before and after, and the new
    n_first; the listed values are rearranged to match.
    """
    values, kept, side = work.values, work.kept, work.side
    best, first, before = _cut_values(problem, work, base, n, n_first)
    if n_first < 0:
        before, n_first = best, first
    now = before
    # order the values by the side they fit, and cut them anew
    _try_values(problem, work, base, n, n_first, now, np.bool_(False))
    for v in range(n):
        kept[v] = values[v]
    _sort_values(values, work.scores, n)
    best, first, _ = _cut_values(problem, work, base, n, np.int64(-1))
    if best < now - TIE:
        now, n_first = best, first
    else:
        for v in range(n):
            values[v] = kept[v]
    # move single values while that pays
    for _ in range(_MOST_SWEEPS):
        now, n_first, moved = _try_values(problem, work, base, n, n_first, now, np.bool_(True))
        if not moved:
            break
        for v in range(n):
            kept[v] = values[v]
        place = np.int64(0)
        for on in range(2):
            for v in range(n):
                if side[v] == on:
                    values[place] = kept[v]
                    place += 1
    return before, now, n_first


@inner
def _assign(
    key: WordArray, rows: CodeArray, value_start: CodeArray, group: CodeArray, base: int, axis: int,
    values: CodeArray, lo: int, hi: int, to: int,
) -> None:  # fmt: skip
    """Put the listed values lo .. hi-1 of an axis into the group `to`."""
    for v in range(lo, hi):
        at = base + np.int64(values[v])
        old = np.int64(group[at])
        if old != to:
            word = part_word(axis, old) ^ part_word(axis, to)
            rekey(key, rows, np.int64(value_start[at]), np.int64(value_start[at + 1]), word)
            group[at] = to


@inner
def _regroup(
    problem: Problem,
    grid: Grid,
    work: Work,
    axis: int,
    n: int,
    first: int,
    id_a: int,
    id_b: int,
    change: float,
) -> None:
    """Put the first values of the n listed into the group `id_a`, the others into `id_b`."""
    base, rows = problem.first_value[axis], problem.order[axis]
    value_start, group, values = problem.value_start, grid.group, work.values
    _assign(grid.key, rows, value_start, group, base, axis, values, np.int64(0), first, id_a)
    _assign(grid.key, rows, value_start, group, base, axis, values, first, n, id_b)
    grid.cost[0] += change


@inner
def _list_values(values: CodeArray, group: CodeArray, base: int, n_values: int, part_id: int, at: int) -> int:
    """List a group's values from place `at` on; return the place after the last."""
    for value in range(n_values):
        if group[base + value] == part_id:
            values[at] = value
            at += 1
    return at


@inner
def _score_values(problem: Problem, work: Work, base: int, n: int, by_slot: bool) -> None:
    """Score the n listed values by the mean of a random contrast of the classes.

    With `by_slot` it changes sign at random from slot to slot: the plain contrast sees main effects, the
    signed one interactions with the other axes.
    """
    slot_at, class_at, value_start = work.slot_at, work.class_at, problem.value_start
    n_classes = problem.n_classes
    pivot = np.int64(uniform(work.rng) * n_classes)
    salt = np.uint64(uniform(work.rng) * 1e15)
    for v in range(n):
        at = base + work.values[v]
        lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
        score = 0
        for i in range(lo, hi):
            flip = np.uint64(class_at[i] == pivot)
            if n_classes > 2 and flip == 0:
                flip = mix(salt ^ np.uint64(class_at[i])) & np.uint64(1)
            if by_slot:
                flip ^= mix(salt + np.uint64(slot_at[i])) & np.uint64(1)
            score += np.int64(flip)
        work.scores[v] = score / (hi - lo)


@inner
def improve_groups(problem: Problem, grid: Grid, work: Work, axis: int, may_resize: bool) -> bool:
    """Redivide every pair of groups a < b of a gathered categorical axis.

    With `may_resize`, pairs are also merged, and groups then divided in two while that pays. Returns whether
    anything changed.
    """
    ids = grid.part_id[axis]
    base, n_values = problem.first_value[axis], problem.n_values[axis]
    row = problem.prior_row[axis]
    zero, n_rows = np.int64(0), np.int64(grid.key.shape[0])
    most = min(problem.axis_prior.shape[1] - 1, n_values)
    changed = False
    a = zero
    while a + 1 < grid.n_parts[axis]:
        b = a + 1
        while b < grid.n_parts[axis]:
            n_parts = grid.n_parts[axis]
            id_a, id_b = np.int64(ids[a]), np.int64(ids[b])
            n_first = _list_values(work.values, grid.group, base, n_values, id_a, zero)
            n = _list_values(work.values, grid.group, base, n_values, id_b, n_first)
            before, after, first = _refine_pair(problem, work, base, n, n_first)
            change = after - before
            merge = np.inf
            if may_resize:
                step = prior_step(
                    problem.axis_prior, row, problem.selection, grid.tally[0], n_parts, n_parts - 1
                )
                merge = step - before
            if merge < -EPSILON and merge <= change:
                for part in range(b, n_parts - 1):
                    ids[part] = ids[part + 1]
                grid.n_parts[axis] = n_parts - 1
                _regroup(problem, grid, work, axis, n, n, id_a, id_b, merge)
                if n_parts == 2:
                    rekey(grid.key, problem.order[axis], zero, n_rows, part_word(axis, id_a))
                    grid.tally[0] -= 1
                changed = True
                continue
            if change < -EPSILON:
                _regroup(problem, grid, work, axis, n, first, id_a, id_b, change)
                changed = True
            b += 1
        a += 1
    if not may_resize:
        return changed
    a = zero
    while a < grid.n_parts[axis] and grid.n_parts[axis] < most:
        n_parts = grid.n_parts[axis]
        id_a = np.int64(ids[a])
        n = _list_values(work.values, grid.group, base, n_values, id_a, zero)
        if n < 2:
            a += 1
            continue
        interacts = grid.tally[0] > 1 or (n_parts == 1 and grid.tally[0] > 0)
        _score_values(problem, work, base, n, interacts and uniform(work.rng) < 0.5)
        _sort_values(work.values, work.scores, n)
        _, after, first = _refine_pair(problem, work, base, n, np.int64(-1))
        change = after + prior_step(
            problem.axis_prior, row, problem.selection, grid.tally[0], n_parts, n_parts + 1
        )
        if change >= -EPSILON:
            a += 1
            continue
        if n_parts == 1:
            rekey(grid.key, problem.order[axis], zero, n_rows, part_word(axis, id_a))
            grid.tally[0] += 1
        id_b = grid.next_id[axis]
        grid.next_id[axis] = id_b + 1
        ids[n_parts] = id_b
        grid.n_parts[axis] = n_parts + 1
        _regroup(problem, grid, work, axis, n, first, id_a, id_b, change)
        changed = True
    return changed
