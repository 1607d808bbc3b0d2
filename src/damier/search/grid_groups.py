"""A categorical axis of a grid with the others frozen: redivide two groups, merge them, divide one.

Values have no order of their own, so they are given one: by how much better their rows fit one of two
groups than the other, each value judged without its own rows. The scan of numeric axes then finds the best
cut in that order.
"""

# Numba infers the types; mypy would have every whole number stay what it was first.
# mypy: disable-error-code="assignment"
from __future__ import annotations

from typing import Any

import numpy as np

from damier.search.grid_scan import best_cut
from damier.search.grid_state import EPSILON, TIE, inner, mix, part_word, prior_step, rekey, unit


@inner
def _sort_values(values: Any, scores: Any, n: Any) -> None:
    """Heapsort values by score, then by value, so that equal scores fall in a fixed order."""
    for phase in range(2 * n):
        if phase < n:
            root, size = n - 1 - phase, n
        else:
            root, size = np.int64(0), 2 * n - 1 - phase
            value, score = values[0], scores[0]
            values[0], scores[0] = values[size], scores[size]
            values[size], scores[size] = value, score
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and (
                scores[child] < scores[child + 1]
                or (scores[child] == scores[child + 1] and values[child] < values[child + 1])
            ):
                child += 1
            if scores[root] > scores[child] or (
                scores[root] == scores[child] and values[root] > values[child]
            ):
                break
            value, score = values[root], scores[root]
            values[root], scores[root] = values[child], scores[child]
            values[child], scores[child] = value, score
            root = child


@inner
def _cut_values(work: Any, value_start: Any, logs: Any, n_classes: Any, n: Any, n_first: Any) -> Any:
    """Best cut of the n listed values in their order, as a number of values; and the cost at n_first."""
    values, slot_at, class_at = work.values, work.slot_at, work.class_at
    slots, classes, fresh = work.buffer_slot, work.buffer_class, work.buffer_fresh
    size = np.int64(0)
    current = np.int64(-1)
    for v in range(n):
        if v == n_first:
            current = size
        lo = np.int64(value_start[values[v]])
        for i in range(lo, np.int64(value_start[values[v] + 1])):
            slots[size] = slot_at[i]
            classes[size] = class_at[i]
            fresh[size] = i == lo
            size += 1
    best, at, at_current = best_cut(
        slots, classes, fresh, np.int64(0), size, current, work.counts, work.sizes, logs, n_classes
    )
    first = np.int64(0)
    while at > 0:
        at -= value_start[values[first] + 1] - value_start[values[first]]
        first += 1
    return best, first, at_current


@inner
def _shift(work: Any, value_start: Any, logs: Any, n_classes: Any, value: Any, side: Any, step: Any) -> Any:
    """Add a value's rows to a side (step 1) or take them away (-1); returns what adding them cost."""
    counts, sizes = work.counts[side], work.sizes[side]
    slot_at, class_at = work.slot_at, work.class_at
    cost = 0.0
    for i in range(np.int64(value_start[value]), np.int64(value_start[value + 1])):
        slot = np.int64(slot_at[i])
        cell = slot * n_classes + class_at[i]
        if step > 0:
            cost += logs[sizes[slot] + n_classes] - logs[counts[cell] + 1]
        sizes[slot] += step
        counts[cell] += step
    return cost


@inner
def _refine_pair(work: Any, value_start: Any, logs: Any, n_classes: Any, n: Any, n_first: Any) -> Any:
    """Improve a division in two of the n listed values, of which the first n_first make up the first side.

    A negative n_first asks for the best cut of the values as listed to begin with. Returns the cells' cost
    relative to one undivided group before and after, and the new n_first; the listed values are rearranged
    to match.
    """
    values, scores = work.values, work.scores
    best, first, before = _cut_values(work, value_start, logs, n_classes, n, n_first)
    if n_first < 0:
        before, n_first = best, first
    now = before
    one, minus_one = np.int64(1), np.int64(-1)
    side = np.zeros(n, dtype=np.int64)
    kept = values[:n].copy()
    # round 0 scores the values and cuts them anew in that order; the others move single values while that
    # pays
    for turn in range(9):
        side[:n_first] = 0
        side[n_first:] = 1
        for v in range(n):
            _shift(work, value_start, logs, n_classes, values[v], side[v], one)
        n_on = n_first
        improved = False
        for v in range(n):
            here = side[v]
            lonely = n_on == 1 if here == 0 else n - n_on == 1
            if turn > 0 and lonely:
                continue
            _shift(work, value_start, logs, n_classes, values[v], here, minus_one)
            back = _shift(work, value_start, logs, n_classes, values[v], here, one)
            there = _shift(work, value_start, logs, n_classes, values[v], 1 - here, one)
            leave = here
            if turn == 0:
                gap = back - there if here == 0 else there - back
                scores[v] = gap / (value_start[values[v] + 1] - value_start[values[v]])
                leave = 1 - here
            elif there < back - EPSILON:
                now += there - back
                side[v] = 1 - here
                n_on += -1 if here == 0 else 1
                improved = True
            else:
                leave = 1 - here
            _shift(work, value_start, logs, n_classes, values[v], leave, minus_one)
        for v in range(n):
            _shift(work, value_start, logs, n_classes, values[v], side[v], minus_one)
        if turn == 0:
            _sort_values(values, scores, n)
            best, first, _ = _cut_values(work, value_start, logs, n_classes, n, minus_one)
            if best < now - TIE:
                now = best
                n_first = first
            else:
                values[:n] = kept
            continue
        kept[:] = values[:n]
        at = np.int64(0)
        for wanted in range(2):
            for v in range(n):
                if side[v] == wanted:
                    values[at] = kept[v]
                    at += 1
        n_first = n_on
        if not improved:
            break
    return before, now, n_first


@inner
def _assign(problem: Any, grid: Any, work: Any, axis: Any, lo: Any, hi: Any, part_id: Any) -> None:
    """Put the listed values lo .. hi-1 into a group."""
    base = problem.first_value[axis]
    for v in range(lo, hi):
        at = base + np.int64(work.values[v])
        old = np.int64(grid.group[at])
        if old != part_id:
            word = part_word(axis, old) ^ part_word(axis, part_id)
            rekey(
                grid.key,
                problem.order[axis],
                np.int64(problem.value_start[at]),
                np.int64(problem.value_start[at + 1]),
                word,
            )
            grid.group[at] = part_id
    grid.tally[1] = 0


@inner
def _list_values(values: Any, group: Any, part_id: Any, at: Any) -> Any:
    """List a group's values from place `at` on; return the place after the last."""
    for value in range(group.shape[0]):
        if group[value] == part_id:
            values[at] = value
            at += 1
    return at


@inner
def _score_values(work: Any, value_start: Any, n_classes: Any, n: Any, by_slot: Any) -> None:
    """Score the n listed values by the mean of a random contrast of the classes.

    It may change sign at random from slot to slot: the plain contrast sees main effects, the signed one
    interactions with the other axes.
    """
    pivot = np.int64(unit(work.rng) * n_classes)
    salt = np.uint64(unit(work.rng) * 1e15)
    for v in range(n):
        lo, hi = np.int64(value_start[work.values[v]]), np.int64(value_start[work.values[v] + 1])
        score = 0
        for i in range(lo, hi):
            flip = np.uint64(work.class_at[i] == pivot)
            if n_classes > 2 and flip == 0:
                flip = mix(salt ^ np.uint64(work.class_at[i])) & np.uint64(1)
            if by_slot:
                flip ^= mix(salt + np.uint64(work.slot_at[i])) & np.uint64(1)
            score += np.int64(flip)
        work.scores[v] = score / (hi - lo)


@inner
def improve_groups(problem: Any, grid: Any, work: Any, axis: Any, may_resize: Any) -> Any:
    """Redivide or merge every pair of groups of a gathered categorical axis, then divide groups.

    Returns whether anything changed. All pairs a < b come first, then the divisions of each group a.
    """
    ids = grid.part_id[axis]
    base, n_values = problem.first_value[axis], problem.n_values[axis]
    value_start = problem.value_start[base : base + n_values + 1]
    group = grid.group[base : base + n_values]
    logs, n_classes = problem.logs, problem.n_classes
    most = min(problem.axis_prior.shape[1] - 1, n_values)
    zero, n_rows = np.int64(0), np.int64(grid.key.shape[0])
    changed = False
    dividing = False
    a, b = np.int64(0), np.int64(1)
    while True:
        n_parts = grid.n_parts[axis]
        if not dividing and b >= n_parts:
            a += 1
            b = a + 1
            if b >= n_parts:
                if may_resize == 0:
                    break
                dividing = True
                a = np.int64(0)
        if dividing and (a >= n_parts or n_parts >= most):
            break
        id_a = np.int64(ids[a])
        n_first = _list_values(work.values, group, id_a, zero)
        n = n_first
        if dividing:
            if n < 2:
                a += 1
                continue
            by_slot = (grid.tally[0] > 1 or (n_parts == 1 and grid.tally[0] > 0)) and unit(work.rng) < 0.5
            _score_values(work, value_start, n_classes, n, by_slot)
            _sort_values(work.values, work.scores, n)
            n_first = np.int64(-1)
        else:
            n = _list_values(work.values, group, np.int64(ids[b]), n_first)
        before, best, first = _refine_pair(work, value_start, logs, n_classes, n, n_first)
        if dividing:
            change = best + prior_step(problem, grid, axis, n_parts + 1)
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
        else:
            id_b = np.int64(ids[b])
            change = best - before
            merge = np.inf
            if may_resize == 1:
                merge = prior_step(problem, grid, axis, n_parts - 1) - before
            if merge < -EPSILON and merge <= change:
                change = merge
                first = n
                for part in range(b, n_parts - 1):
                    ids[part] = ids[part + 1]
                grid.n_parts[axis] = n_parts - 1
            elif change >= -EPSILON:
                b += 1
                continue
            else:
                b += 1
        _assign(problem, grid, work, axis, zero, first, id_a)
        _assign(problem, grid, work, axis, first, n, id_b)
        if grid.n_parts[axis] == 1:
            rekey(grid.key, problem.order[axis], zero, n_rows, part_word(axis, id_a))
            grid.tally[0] -= 1
        grid.cost[0] += change
        changed = True
    return changed
