"""One axis of a grid with the others frozen: cut, move a bound, merge; regroup values.

Everything rests on one scan (`best_cut`): rows cross from the right part to the left one in a given order,
and each crossing changes the cost of its slot by four logarithms, whatever the number of classes. On a
numeric axis the order is that of the values; on a categorical one, values are first ordered by how much
they look like one of two groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.search.grid.groups import improve_groups
from damier.search.grid.scan import best_cut
from damier.search.grid.state import (
    EPSILON,
    number_cells,
    part_word,
    piece_of_axis,
    prior_step,
    rekey,
    slot_of,
)
from damier.search.kernels import inner, kernel, uniform


@inner
def _gather(problem: Any, grid: Any, work: Any, axis: Any) -> None:
    """Lay out slots and classes in the order of an axis; a slot is a combination of the other axes' parts."""
    n_rows = grid.key.shape[0]
    order = problem.order[axis]
    slot_at, class_at, classes = work.slot_at, work.class_at, problem.classes
    if grid.n_parts[axis] == 1:
        number_cells(grid, work)
        row_slot = work.row_slot
        for i in range(n_rows):
            row = order[i]
            slot_at[i] = row_slot[row]
            class_at[i] = classes[row]
        return
    work.generation[0] += 1
    generation = work.generation[0]
    key, table_key, table_stamp, table_slot = grid.key, work.table_key, work.table_stamp, work.table_slot
    n_slots = np.int64(0)
    n_pieces = problem.n_values[axis] if problem.categorical[axis] else grid.n_parts[axis]
    for piece in range(n_pieces):
        lo, hi, word = piece_of_axis(problem, grid, axis, piece)
        for i in range(lo, hi):
            row = order[i]
            slot = slot_of(key[row] ^ word, table_key, table_stamp, table_slot, generation, n_slots)
            if slot == n_slots:
                n_slots += 1
            slot_at[i] = slot
            class_at[i] = classes[row]


@inner
def _improve_intervals(problem: Any, grid: Any, work: Any, axis: Any, may_resize: Any) -> Any:
    """Move every bound of a gathered numeric axis to its best place or drop it, then cut parts.

    Returns whether anything changed. All bounds come first, then all parts; `place` is the bound before a
    part, or the part.
    """
    n_rows = np.int64(problem.order.shape[1])
    n_classes = problem.n_classes
    start, ids, fresh, rows = grid.start[axis], grid.part_id[axis], problem.fresh[axis], problem.order[axis]
    key = grid.key
    axis_prior, row, selection = problem.axis_prior, problem.prior_row[axis], problem.selection
    most = axis_prior.shape[1] - 1
    changed = False
    cutting = False
    place = np.int64(1)
    while True:
        n_parts = grid.n_parts[axis]
        if place >= n_parts and not cutting:
            if may_resize == 0:
                break
            cutting = True
            place = np.int64(0)
        if cutting and (place >= n_parts or n_parts >= most):
            break
        # a part to cut is [start[place], end); a bound lies inside [start[place - 1], end)
        lo = np.int64(start[place]) if cutting else np.int64(start[place - 1])
        now = np.int64(-1) if cutting else np.int64(start[place])
        hi = np.int64(start[place + 1]) if place + 1 < n_parts else n_rows
        best, at, at_now = best_cut(
            work.slot_at, work.class_at, fresh, lo, hi, now, work.counts, work.sizes, problem.logs, n_classes
        )
        if cutting:
            change = best + prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts + 1)
            if at < 0 or change >= -EPSILON:
                place += 1
                continue
            if n_parts == 1:
                rekey(key, rows, np.int64(0), n_rows, part_word(axis, ids[0]))
                grid.tally[0] += 1
            new = grid.next_id[axis]
            grid.next_id[axis] = new + 1
            rekey(key, rows, at, hi, part_word(axis, ids[place]) ^ part_word(axis, new))
            for p in range(n_parts, place + 1, -1):
                start[p] = start[p - 1]
                ids[p] = ids[p - 1]
            start[place + 1] = at
            ids[place + 1] = new
            grid.n_parts[axis] = n_parts + 1
            grid.cost[0] += change
            changed = True
            continue
        move = best - at_now
        merge = np.inf
        if may_resize == 1:
            merge = prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts - 1) - at_now
        swap = part_word(axis, ids[place]) ^ part_word(axis, ids[place - 1])
        if merge < -EPSILON and merge <= move:
            rekey(key, rows, now, hi, swap)
            for p in range(place, n_parts - 1):
                start[p] = start[p + 1]
                ids[p] = ids[p + 1]
            grid.n_parts[axis] = n_parts - 1
            if n_parts == 2:
                rekey(key, rows, np.int64(0), n_rows, part_word(axis, ids[0]))
                grid.tally[0] -= 1
            grid.cost[0] += merge
            changed = True
            place = max(np.int64(1), place - 1)
            continue
        if move < -EPSILON:
            rekey(key, rows, min(at, now), max(at, now), swap)
            start[place] = at
            grid.cost[0] += move
            changed = True
        place += 1
    if changed:
        grid.tally[1] = 0
    return changed


@kernel
def polish(problem: Any, grid: Any, work: Any, axes: Any, may_resize: Any, seed: Any) -> None:
    """Improve the listed axes in turn, in random order, until none improves; the list is shuffled in place.

    Bounds and values move; with `may_resize` (1 or 0) parts are also merged and cut.
    """
    work.rng[0] = np.uint64(seed)
    n = axes.shape[0]
    idle = 0
    while idle < n and work.stop[0] == 0:
        for i in range(n - 1, 0, -1):
            j = np.int64(uniform(work.rng) * (i + 1))
            swap = axes[i]
            axes[i] = axes[j]
            axes[j] = swap
        for a in range(n):
            axis = axes[a]
            idle += 1
            if problem.n_values[axis] < 2 or (grid.n_parts[axis] == 1 and may_resize == 0):
                continue
            _gather(problem, grid, work, axis)
            for _ in range(20):
                if problem.categorical[axis]:
                    changed = improve_groups(problem, grid, work, axis, may_resize)
                else:
                    changed = _improve_intervals(problem, grid, work, axis, may_resize)
                if not changed:
                    break
                idle = 0
                if work.stop[0] != 0:
                    break
            if idle >= n or work.stop[0] != 0:
                break
