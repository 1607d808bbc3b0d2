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

from damier.search.grid.scan import best_cut
from damier.search.grid.state import EPSILON, TIE, part_word, prior_step, rekey
from damier.search.kernels import inner, mix, uniform


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
def _cut_values(
    values: Any,
    slot_at: Any,
    class_at: Any,
    slots: Any,
    classes: Any,
    fresh: Any,
    counts: Any,
    sizes: Any,
    value_start: Any,
    base: Any,
    logs: Any,
    n_classes: Any,
    n: Any,
    n_first: Any,
) -> Any:
    """Best cut of the n listed values in their order, as a number of values; and the cost at n_first.

    ``slots``, ``classes`` and ``fresh`` are buffers for the values' rows laid end to end.
    """
    size = np.int64(0)
    current = np.int64(-1)
    for v in range(n):
        if v == n_first:
            current = size
        at = base + values[v]
        lo = np.int64(value_start[at])
        for i in range(lo, np.int64(value_start[at + 1])):
            slots[size] = slot_at[i]
            classes[size] = class_at[i]
            fresh[size] = i == lo
            size += 1
    best, cut, at_current = best_cut(
        slots, classes, fresh, np.int64(0), size, current, counts, sizes, logs, n_classes
    )
    first = np.int64(0)
    while cut > 0:
        at = base + values[first]
        cut -= value_start[at + 1] - value_start[at]
        first += 1
    return best, first, at_current


@inner
def _shift(
    slot_at: Any,
    class_at: Any,
    counts: Any,
    sizes: Any,
    logs: Any,
    n_classes: Any,
    lo: Any,
    hi: Any,
    side: Any,
    step: Any,
) -> Any:
    """Add the rows lo .. hi-1 to a side (step 1) or take them away (-1); returns what adding them cost."""
    cost = 0.0
    for i in range(lo, hi):
        slot = np.int64(slot_at[i])
        cell = slot * n_classes + class_at[i]
        if step > 0:
            cost += logs[sizes[side, slot] + n_classes] - logs[counts[side, cell] + 1]
        sizes[side, slot] += step
        counts[side, cell] += step
    return cost


@inner
def _refine_pair(
    work: Any, value_start: Any, base: Any, logs: Any, n_classes: Any, n: Any, n_first: Any
) -> Any:
    """Improve a division in two of the n listed values, of which the first n_first make up the first side.

    A negative n_first asks for the best cut of the values as listed to begin with. Returns the cells' cost
    relative to one undivided group before and after, and the new n_first; the listed values are rearranged
    to match.
    """
    values, scores, kept, side = work.values, work.scores, work.kept, work.side
    slot_at, class_at, counts, sizes = work.slot_at, work.class_at, work.counts, work.sizes
    slots, classes, fresh = work.buffer_slot, work.buffer_class, work.buffer_fresh
    before, now = 0.0, 0.0
    # Turn -1 cuts the values as listed, turn 0 scores them and cuts them anew in that order; the others move
    # single values while that pays.
    for turn in range(-1, 9):
        improved = False
        if turn >= 0:
            for v in range(n):
                side[v] = 0 if v < n_first else 1
                kept[v] = values[v]
            n_on = n_first
            # pass 0 adds all rows to their sides, pass 1 tries each value on the other one, pass 2 cleans up
            for sweep in range(3):
                for v in range(n):
                    here = np.int64(side[v])
                    if sweep == 1 and turn > 0 and (n_on == 1 if here == 0 else n - n_on == 1):
                        continue
                    at = base + values[v]
                    lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
                    back, there = 0.0, 0.0
                    # trying: away, back (what it costs here), on to the other side (what it costs there), and
                    # off the side that is not better
                    for deed in range(4 if sweep == 1 else 1):
                        on, step = here, np.int64(1)
                        if sweep == 2 or (sweep == 1 and deed == 0):
                            step = np.int64(-1)
                        elif deed == 2:
                            on = 1 - here
                        elif deed == 3:
                            step = np.int64(-1)
                            on = 1 - here
                            if turn == 0:
                                gap = back - there if here == 0 else there - back
                                scores[v] = gap / (hi - lo)
                            elif there < back - EPSILON:
                                now += there - back
                                on = here
                                side[v] = 1 - here
                                n_on += -1 if here == 0 else 1
                                improved = True
                        cost = _shift(slot_at, class_at, counts, sizes, logs, n_classes, lo, hi, on, step)
                        if deed == 1:
                            back = cost
                        elif deed == 2:
                            there = cost
        if turn <= 0:
            if turn == 0:
                _sort_values(values, scores, n)
            best, first, at_first = _cut_values(
                values, slot_at, class_at, slots, classes, fresh, counts, sizes,
                value_start, base, logs, n_classes, n, n_first if turn < 0 else np.int64(-1),
            )  # fmt: skip
            if turn < 0:
                before = best if n_first < 0 else at_first
                now = before
                n_first = first if n_first < 0 else n_first
            elif best < now - TIE:
                now = best
                n_first = first
            else:
                for v in range(n):
                    values[v] = kept[v]
            continue
        place = np.int64(0)
        for wanted in range(2):
            for v in range(n):
                if side[v] == wanted:
                    values[place] = kept[v]
                    place += 1
        n_first = n_on
        if not improved:
            break
    return before, now, n_first


@inner
def _assign(
    key: Any,
    rows: Any,
    value_start: Any,
    group: Any,
    base: Any,
    axis: Any,
    values: Any,
    lo: Any,
    hi: Any,
    to: Any,
) -> None:
    """Put the listed values lo .. hi-1 of an axis into the group `to`."""
    for v in range(lo, hi):
        at = base + np.int64(values[v])
        old = np.int64(group[at])
        if old != to:
            word = part_word(axis, old) ^ part_word(axis, to)
            rekey(key, rows, np.int64(value_start[at]), np.int64(value_start[at + 1]), word)
            group[at] = to


@inner
def _list_values(values: Any, group: Any, base: Any, n_values: Any, part_id: Any, at: Any) -> Any:
    """List a group's values from place `at` on; return the place after the last."""
    for value in range(n_values):
        if group[base + value] == part_id:
            values[at] = value
            at += 1
    return at


@inner
def _score_values(
    values: Any,
    scores: Any,
    slot_at: Any,
    class_at: Any,
    value_start: Any,
    base: Any,
    n_classes: Any,
    n: Any,
    by_slot: Any,
    rng: Any,
) -> None:
    """Score the n listed values by the mean of a random contrast of the classes.

    It may change sign at random from slot to slot: the plain contrast sees main effects, the signed one
    interactions with the other axes.
    """
    pivot = np.int64(uniform(rng) * n_classes)
    salt = np.uint64(uniform(rng) * 1e15)
    for v in range(n):
        at = base + values[v]
        lo, hi = np.int64(value_start[at]), np.int64(value_start[at + 1])
        score = 0
        for i in range(lo, hi):
            flip = np.uint64(class_at[i] == pivot)
            if n_classes > 2 and flip == 0:
                flip = mix(salt ^ np.uint64(class_at[i])) & np.uint64(1)
            if by_slot:
                flip ^= mix(salt + np.uint64(slot_at[i])) & np.uint64(1)
            score += np.int64(flip)
        scores[v] = score / (hi - lo)


@inner
def improve_groups(problem: Any, grid: Any, work: Any, axis: Any, may_resize: Any) -> Any:
    """Redivide or merge every pair of groups of a gathered categorical axis, then divide groups.

    Returns whether anything changed. All pairs a < b come first, then the divisions of each group a.
    """
    ids = grid.part_id[axis]
    base, n_values = problem.first_value[axis], problem.n_values[axis]
    value_start, group, values = problem.value_start, grid.group, work.values
    key, rows = grid.key, problem.order[axis]
    logs, n_classes = problem.logs, problem.n_classes
    axis_prior, row, selection = problem.axis_prior, problem.prior_row[axis], problem.selection
    most = min(axis_prior.shape[1] - 1, n_values)
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
        n_first = _list_values(values, group, base, n_values, id_a, zero)
        n = n_first
        if dividing:
            if n < 2:
                a += 1
                continue
            by_slot = (grid.tally[0] > 1 or (n_parts == 1 and grid.tally[0] > 0)) and uniform(work.rng) < 0.5
            _score_values(
                values,
                work.scores,
                work.slot_at,
                work.class_at,
                value_start,
                base,
                n_classes,
                n,
                by_slot,
                work.rng,
            )
            _sort_values(values, work.scores, n)
            n_first = np.int64(-1)
        else:
            n = _list_values(values, group, base, n_values, np.int64(ids[b]), n_first)
        before, best, first = _refine_pair(work, value_start, base, logs, n_classes, n, n_first)
        if dividing:
            change = best + prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts + 1)
            if change >= -EPSILON:
                a += 1
                continue
            if n_parts == 1:
                rekey(key, rows, zero, n_rows, part_word(axis, id_a))
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
                merge = prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts - 1) - before
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
        _assign(key, rows, value_start, group, base, axis, values, zero, first, id_a)
        _assign(key, rows, value_start, group, base, axis, values, first, n, id_b)
        grid.tally[1] = 0
        if grid.n_parts[axis] == 1:
            rekey(key, rows, zero, n_rows, part_word(axis, id_a))
            grid.tally[0] -= 1
        grid.cost[0] += change
        changed = True
    return changed
