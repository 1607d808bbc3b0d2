"""One axis of a grid with the others frozen: cut, move a bound, merge; regroup values.

Everything rests on one scan (`best_cut`): rows cross from the right part to the left one in a given order,
and each crossing changes the cost of its slot by four logarithms, whatever the number of classes. On a
numeric axis the order is that of the values; on a categorical one, values are first ordered by how much
they look like one of two groups.
"""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

import numpy as np

from damier.search.grid.groups import improve_groups
from damier.search.grid.scan import best_cut
from damier.search.grid.state import (
    EPSILON,
    Grid,
    Problem,
    Work,
    number_cells,
    part_word,
    piece_of_axis,
    prior_step,
    rekey,
    slot_of,
)
from damier.search.kernels import IntArray, bare_kernel, inner, uniform

# How often one axis is improved before it is the turn of the next.
_MOST_PASSES = 20


@inner
def _gather(problem: Problem, grid: Grid, work: Work, axis: int) -> None:
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
def _improve_intervals(problem: Problem, grid: Grid, work: Work, axis: int, may_resize: bool) -> bool:
    """Move every bound of a gathered numeric axis to its best place.

    With `may_resize`, bounds are also dropped, and parts then cut in two while that pays. Returns whether
    anything changed.
    """
    n_rows = np.int64(problem.order.shape[1])
    start, ids, fresh, rows = grid.start[axis], grid.part_id[axis], problem.fresh[axis], problem.order[axis]
    axis_prior, row, selection = problem.axis_prior, problem.prior_row[axis], problem.selection
    most = axis_prior.shape[1] - 1
    changed = False
    part = np.int64(1)  # the bound is the one before this part
    while part < grid.n_parts[axis]:
        n_parts = grid.n_parts[axis]
        now = np.int64(start[part])
        hi = np.int64(start[part + 1]) if part + 1 < n_parts else n_rows
        best, at, at_now = best_cut(
            work.slot_at, work.class_at, fresh, np.int64(start[part - 1]), hi, now,
            work.counts, work.sizes, problem.logs, problem.n_classes,
        )  # fmt: skip
        move = best - at_now
        merge = np.inf
        if may_resize:
            merge = prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts - 1) - at_now
        swap = part_word(axis, ids[part]) ^ part_word(axis, ids[part - 1])
        if merge < -EPSILON and merge <= move:
            rekey(grid.key, rows, now, hi, swap)
            for p in range(part, n_parts - 1):
                start[p] = start[p + 1]
                ids[p] = ids[p + 1]
            grid.n_parts[axis] = n_parts - 1
            if n_parts == 2:
                rekey(grid.key, rows, np.int64(0), n_rows, part_word(axis, ids[0]))
                grid.tally[0] -= 1
            grid.cost[0] += merge
            changed = True
            part = max(np.int64(1), part - 1)
            continue
        if move < -EPSILON:
            rekey(grid.key, rows, min(at, now), max(at, now), swap)
            start[part] = at
            grid.cost[0] += move
            changed = True
        part += 1
    if not may_resize:
        return changed
    part = np.int64(0)
    while part < grid.n_parts[axis] and grid.n_parts[axis] < most:
        n_parts = grid.n_parts[axis]
        hi = np.int64(start[part + 1]) if part + 1 < n_parts else n_rows
        best, at, _ = best_cut(
            work.slot_at, work.class_at, fresh, np.int64(start[part]), hi, np.int64(-1),
            work.counts, work.sizes, problem.logs, problem.n_classes,
        )  # fmt: skip
        change = best + prior_step(axis_prior, row, selection, grid.tally[0], n_parts, n_parts + 1)
        if at < 0 or change >= -EPSILON:
            part += 1
            continue
        if n_parts == 1:
            rekey(grid.key, rows, np.int64(0), n_rows, part_word(axis, ids[0]))
            grid.tally[0] += 1
        new = grid.next_id[axis]
        grid.next_id[axis] = new + 1
        rekey(grid.key, rows, at, hi, part_word(axis, ids[part]) ^ part_word(axis, new))
        for p in range(n_parts, part + 1, -1):
            start[p] = start[p - 1]
            ids[p] = ids[p - 1]
        start[part + 1] = at
        ids[part + 1] = new
        grid.n_parts[axis] = n_parts + 1
        grid.cost[0] += change
        changed = True
    return changed


@bare_kernel
def polish(problem: Problem, grid: Grid, work: Work, axes: IntArray, may_resize: bool, seed: int) -> None:
    """Improve the listed axes in turn, in random order, until none improves; the list is shuffled in place.

    Bounds and values move; with `may_resize` parts are also merged and cut.
    """
    work.rng[0] = np.uint64(seed)
    n = axes.shape[0]
    idle = 0
    while idle < n and work.stop[0] == 0:
        for i in range(n - 1, 0, -1):
            j = np.int64(uniform(work.rng) * (i + 1))
            axes[i], axes[j] = axes[j], axes[i]
        for a in range(n):
            axis = axes[a]
            idle += 1
            if problem.n_values[axis] < 2 or (grid.n_parts[axis] == 1 and not may_resize):
                continue
            _gather(problem, grid, work, axis)
            for _ in range(_MOST_PASSES):
                if problem.categorical[axis]:
                    changed = improve_groups(problem, grid, work, axis, may_resize)
                else:
                    changed = _improve_intervals(problem, grid, work, axis, may_resize)
                if not changed:
                    break
                idle = 0
                grid.tally[1] = 0
                if work.stop[0] != 0:
                    break
            if idle >= n or work.stop[0] != 0:
                break
