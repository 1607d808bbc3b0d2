"""Greedy merges over all axes, down to the null model, the best grid met on the way kept.

The work is done on the non-empty cells. For every pair of parts that may merge (neighbours on a numeric
axis, any two groups on a categorical one) the change of the cells' cost is kept up to date: a merge on one
axis alters only the pairs of cells that touch the merged parts (Boullé, "Data grid models", section 5.2),
found by hashing.
The axis engine is not used here: a cell of several variables has classes inside, and a merge on one axis
changes what a merge on another one gains, so that all axes must be kept up to date together.
NumPy lays out the cells and makes the merges on the grid; one kernel, which allocates nothing, does the rest.

Tie rule: of merges whose changes lie within `TIE`, the first is made, by axis, then by first part, then by
second part; the merged part keeps the place of the first.
"""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from damier.search.grid.state import TIE, Grid, Problem, StopFlag, Work, load_parts, part_word
from damier.search.kernels import BoolArray, CodeArray, FloatArray, IntArray, WordArray, bare_kernel, inner

# In `Sides.after`: a part that was merged away. Chains end with -1.
_GONE = -2


class Sides(NamedTuple):
    """The S axes in two parts or more, as they are merged; part p of side s is ``first_part[s] + p``.

    ``axis`` (S) are their numbers in the grid, ``categorical`` (S) their kinds, ``n_parts`` (S) the parts
    they have left, ``prior[s, i]`` the cost of i parts. ``after`` and ``before`` link the parts of a side
    that are left. ``change`` holds what the merge of two parts a < b changes in the cells' cost, at
    ``first_change[s] + a * n + b`` for a categorical side with n parts at first, at ``first_change[s] + a``
    for a numeric one.
    """

    axis: IntArray
    categorical: BoolArray
    n_parts: IntArray
    first_part: IntArray
    first_change: IntArray
    prior: FloatArray
    after: CodeArray
    before: CodeArray
    change: FloatArray


class Cells(NamedTuple):
    """The C cells that hold rows; a cell merged into another has size 0.

    ``part_of[s, c]`` is the part of cell c on side s, ``key[c]`` its key, ``sizes[c]`` its rows and
    ``counts[c * n_classes + j]`` those of class j. ``table_key`` and ``table_cell`` (-1: empty place) find a
    cell by its key. ``living`` lists the cells with rows, ``touched`` those of the parts that merge.
    """

    part_of: CodeArray
    key: WordArray
    counts: IntArray
    sizes: IntArray
    table_key: WordArray
    table_cell: CodeArray
    living: IntArray
    touched: IntArray


@inner
def _place(key: np.uint64, table_key: WordArray, table_cell: CodeArray) -> int:
    """Return the place of a key in the table: its own, or the empty one (cell -1) it would take."""
    mask = table_key.shape[0] - 1
    at = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table_cell[at] >= 0 and table_key[at] != key:
        at = (at + 1) & mask
    return at


@inner
def _find(
    key: np.uint64, table_key: WordArray, table_cell: CodeArray, cell_key: WordArray, sizes: IntArray
) -> int:
    """Return the cell that has a key and holds rows, -1 if there is none."""
    cell = np.int64(table_cell[_place(key, table_key, table_cell)])
    if cell < 0 or sizes[cell] == 0 or cell_key[cell] != key:
        return np.int64(-1)
    return cell


@inner
def _join(
    a: int, b: int, counts: IntArray, sizes: IntArray, log_factorials: FloatArray, n_classes: int
) -> float:
    """Return the change of cost when the cells a and b become one."""
    change = (
        log_factorials[sizes[a] + sizes[b] + n_classes - 1]
        + log_factorials[n_classes - 1]
        - log_factorials[sizes[a] + n_classes - 1]
        - log_factorials[sizes[b] + n_classes - 1]
    )
    for j in range(n_classes):
        in_a, in_b = counts[a * n_classes + j], counts[b * n_classes + j]
        if in_a > 0 and in_b > 0:
            change -= log_factorials[in_a + in_b] - log_factorials[in_a] - log_factorials[in_b]
    return change


@inner
def _enter(
    listed: IntArray, n: int, cell_key: WordArray, table_key: WordArray, table_cell: CodeArray
) -> None:
    """Empty the table and enter the n listed cells."""
    for at in range(table_cell.shape[0]):
        table_cell[at] = -1
    for i in range(n):
        at = _place(cell_key[listed[i]], table_key, table_cell)
        table_key[at] = cell_key[listed[i]]
        table_cell[at] = listed[i]


@inner
def _leave_out_empty(listed: IntArray, n: int, sizes: IntArray) -> int:
    """Move the cells that hold rows, of the n listed, to the front; return how many they are."""
    kept = np.int64(0)
    for i in range(n):
        if sizes[listed[i]] > 0:
            listed[kept] = listed[i]
            kept += 1
    return kept


@inner
def _cheapest(sides: Sides, selection: FloatArray, n_open: int) -> tuple[float, int, int, int]:
    """Return the change of cost of the cheapest merge, its side, and its two parts.

    ``selection[s]`` is the cost of selecting s axes, of which `n_open` are in two parts or more.
    """
    best = np.inf
    pick, keep, drop = np.int64(-1), np.int64(0), np.int64(0)
    after, changes = sides.after, sides.change
    for s in range(sides.axis.shape[0]):
        now = sides.n_parts[s]
        if now < 2:
            continue
        price = sides.prior[s, now - 1] - sides.prior[s, now]
        if now == 2:
            price += selection[n_open - 1] - selection[n_open]
        base, n = sides.first_part[s], sides.first_part[s + 1] - sides.first_part[s]
        for part in range(n):
            if after[base + part] == _GONE:
                continue
            # all later groups, or the next interval alone
            lo, hi = np.int64(part + 1), np.int64(n)
            at = sides.first_change[s] + part * n
            if not sides.categorical[s]:
                lo, hi = np.int64(after[base + part]), np.int64(after[base + part] + 1)
                at = sides.first_change[s] + part - lo
            for other in range(max(lo, np.int64(0)), hi):
                if after[base + other] == _GONE:
                    continue
                change = changes[at + other] + price
                if change < best - TIE:
                    best = change
                    pick, keep, drop = np.int64(s), np.int64(part), np.int64(other)
    return best, pick, keep, drop


@inner
def _add_pairs(
    sides: Sides,
    cells: Cells,
    log_factorials: FloatArray,
    n_classes: int,
    n_touched: int,
    merged: int,
    sign: float,
) -> None:
    """Add what pairs of touched cells would change by joining, times `sign`, to the changes of the merges.

    Along the side `merged` all pairs of each touched cell are new. Along the others both cells of a pair are
    touched or neither is: the earlier part alone takes it.
    """
    after, before, changes = sides.after, sides.before, sides.change
    key, sizes, table_key, table_cell = cells.key, cells.sizes, cells.table_key, cells.table_cell
    for s in range(sides.axis.shape[0]):
        if sides.n_parts[s] < 2 or (s == merged and sign < 0.0):
            continue
        axis, categorical = sides.axis[s], sides.categorical[s]
        base, n = sides.first_part[s], sides.first_part[s + 1] - sides.first_part[s]
        first_change = sides.first_change[s]
        once = s != merged
        for i in range(n_touched):
            cell = cells.touched[i]
            part = np.int64(cells.part_of[s, cell])
            without = key[cell] ^ part_word(axis, part)
            # an interval has two neighbours, a group all others that are left
            lo = part + 1 if categorical and once else np.int64(0)
            hi = np.int64(n) if categorical else np.int64(1 if once else 2)
            for o in range(lo, hi):
                other = np.int64(o)
                if not categorical:
                    other = np.int64(after[base + part]) if o == 0 else np.int64(before[base + part])
                if other < 0 or other == part or after[base + other] == _GONE:
                    continue
                mate = _find(without ^ part_word(axis, other), table_key, table_cell, key, sizes)
                if mate < 0:
                    continue
                at = first_change + min(part, other)
                if categorical:
                    at = first_change + min(part, other) * n + max(part, other)
                changes[at] += sign * _join(cell, mate, cells.counts, sizes, log_factorials, n_classes)


@inner
def _join_cells(
    cells: Cells, n_classes: int, n_touched: int, s: int, keep: int, drop: int, change_of_key: np.uint64
) -> int:
    """Let the touched cells of the part `drop` join those of `keep`, or take its name.

    Returns how many places of the table were taken.
    """
    key, sizes, counts, part_of = cells.key, cells.sizes, cells.counts, cells.part_of[s]
    table_key, table_cell = cells.table_key, cells.table_cell
    taken = np.int64(0)
    for i in range(n_touched):
        cell = cells.touched[i]
        if part_of[cell] != drop:
            continue
        new_key = key[cell] ^ change_of_key
        at = _place(new_key, table_key, table_cell)
        mate = np.int64(table_cell[at])
        if mate >= 0 and sizes[mate] > 0 and key[mate] == new_key:
            sizes[mate] += sizes[cell]
            sizes[cell] = 0
            for j in range(n_classes):
                counts[mate * n_classes + j] += counts[cell * n_classes + j]
            continue
        key[cell] = new_key
        part_of[cell] = keep
        taken += 1 if mate < 0 else 0
        table_key[at] = new_key
        table_cell[at] = cell
    return taken


@inner
def _join_parts(sides: Sides, s: int, keep: int, drop: int) -> None:
    """Take the part `drop` out of the chain, and forget the changes that merges with `keep` would bring."""
    base, at = sides.first_part[s], sides.first_change[s]
    after, before, changes = sides.after, sides.before, sides.change
    if sides.categorical[s]:
        n = sides.first_part[s + 1] - base
        for other in range(n):
            changes[at + min(keep, other) * n + max(keep, other)] = 0.0
    else:
        following, previous = np.int64(after[base + drop]), np.int64(before[base + keep])
        after[base + keep] = following
        changes[at + keep] = 0.0
        if following >= 0:
            before[base + following] = keep
        if previous >= 0:
            changes[at + previous] = 0.0
    after[base + drop] = _GONE
    sides.n_parts[s] -= 1


@bare_kernel
def _merge_cells(
    sides: Sides,
    cells: Cells,
    selection: FloatArray,
    log_factorials: FloatArray,
    n_classes: int,
    merges: IntArray,
    stop: StopFlag,
) -> int:
    """Merge parts, the cheapest merge first, until one cell is left; return after which step it was cheapest.

    Row t of ``merges`` receives the side, the part kept and the part dropped in step t. ``selection[s]`` is
    the cost of selecting s axes. A non-zero ``stop`` ends the merges.
    """
    living, touched = cells.living, cells.touched
    n_living = np.int64(living.shape[0])
    n_open = np.int64(sides.axis.shape[0])
    _enter(living, n_living, cells.key, cells.table_key, cells.table_cell)
    n_taken = n_living
    for i in range(n_living):
        touched[i] = living[i]
    _add_pairs(sides, cells, log_factorials, n_classes, n_living, np.int64(-1), 1.0)
    total, best_total, best_step = 0.0, 0.0, np.int64(0)
    for step in range(merges.shape[0]):
        if stop[0] != 0:
            break
        change, s, keep, drop = _cheapest(sides, selection, n_open)
        merges[step, 0], merges[step, 1], merges[step, 2] = s, keep, drop
        total += change
        if total < best_total - TIE:
            best_total, best_step = total, np.int64(step + 1)
        n_touched = np.int64(0)
        for i in range(n_living):
            part = cells.part_of[s, living[i]]
            if part == keep or part == drop:  # noqa: SIM109 -- no tuples in kernels
                touched[n_touched] = living[i]
                n_touched += 1
        # the pairs of the touched cells leave the sums as they were, and enter again merged
        _add_pairs(sides, cells, log_factorials, n_classes, n_touched, s, -1.0)
        axis = sides.axis[s]
        change_of_key = part_word(axis, keep) ^ part_word(axis, drop)
        n_taken += _join_cells(cells, n_classes, n_touched, s, keep, drop, change_of_key)
        n_living = _leave_out_empty(living, n_living, cells.sizes)
        n_touched = _leave_out_empty(touched, n_touched, cells.sizes)
        if 2 * n_taken > cells.table_key.shape[0]:
            _enter(living, n_living, cells.key, cells.table_key, cells.table_cell)
            n_taken = n_living
        _join_parts(sides, s, keep, drop)
        if sides.n_parts[s] == 1:
            n_open -= 1
        _add_pairs(sides, cells, log_factorials, n_classes, n_touched, s, 1.0)
    return best_step


def greedy_merge(problem: Problem, grid: Grid, work: Work) -> None:
    """Merge parts, the cheapest merge first, on to the null model; leave the grid at the best one met."""
    axes = np.flatnonzero(grid.n_parts > 1)
    if axes.size == 0:
        return
    for axis in axes[problem.categorical[axes]]:
        _renumber_groups(problem, grid, axis)
    load_parts(problem, grid, work)
    n_parts = grid.n_parts[axes]
    n_cells = int(grid.tally[2])
    n_classes = problem.n_classes
    is_categorical = problem.categorical[axes]
    first_part = _running_sum(n_parts)
    part_of = np.empty((axes.size, n_cells), dtype=np.int32)
    for s, axis in enumerate(axes):
        starts, parts = grid.start[axis, : n_parts[s]], np.arange(n_parts[s], dtype=np.int32)
        if is_categorical[s]:
            base, n_values = problem.first_value[axis], problem.n_values[axis]
            starts, parts = problem.value_start[base : base + n_values], grid.group[base : base + n_values]
        sizes = np.diff(starts, append=problem.order.shape[1])
        part_of[s, work.row_slot[problem.order[axis]]] = np.repeat(parts, sizes)
    cell_key = np.empty(n_cells, dtype=np.uint64)
    cell_key[work.row_slot] = grid.key
    part_in_axis = np.arange(first_part[-1], dtype=np.int32) - np.repeat(first_part[:-1], n_parts)
    after = (part_in_axis + 1).astype(np.int32)
    after[first_part[1:] - 1] = -1
    n_changes = np.where(is_categorical, n_parts**2, n_parts)
    sides = Sides(
        axis=axes,
        categorical=is_categorical,
        n_parts=n_parts.copy(),
        first_part=first_part,
        first_change=_running_sum(n_changes),
        prior=problem.axis_prior[problem.prior_row[axes]],
        after=after,
        before=(part_in_axis - 1).astype(np.int32),
        change=np.zeros(int(n_changes.sum())),
    )
    n_table = 1 << max(4, (4 * n_cells).bit_length())
    slot_and_class = work.row_slot.astype(np.int64) * n_classes + problem.classes
    cells = Cells(
        part_of=part_of,
        key=cell_key,
        counts=np.bincount(slot_and_class, minlength=n_cells * n_classes),
        sizes=np.bincount(work.row_slot, minlength=n_cells),
        table_key=np.empty(n_table, dtype=np.uint64),
        table_cell=np.empty(n_table, dtype=np.int32),
        living=np.arange(n_cells),
        touched=np.empty(n_cells, dtype=np.int64),
    )
    merges = np.empty((int(first_part[-1]) - axes.size, 3), dtype=np.int64)
    n_steps = _merge_cells(
        sides, cells, problem.selection, problem.log_factorials, n_classes, merges, work.stop
    )
    _replay(problem, grid, axes, merges[:n_steps])
    load_parts(problem, grid, work)


def _running_sum(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)])


def _renumber_groups(problem: Problem, grid: Grid, axis: int) -> None:
    """Give the groups of an axis the ids 0 .. n_parts-1."""
    values = slice(problem.first_value[axis], problem.first_value[axis] + problem.n_values[axis])
    n_parts = grid.n_parts[axis]
    place = np.empty(grid.next_id[axis], dtype=np.int32)
    place[grid.part_id[axis, :n_parts]] = np.arange(n_parts)
    grid.group[values] = place[grid.group[values]]


def _replay(problem: Problem, grid: Grid, axes: IntArray, merges: IntArray) -> None:
    """Make the listed merges on the grid itself; kept parts stay in order."""
    for s, axis in enumerate(axes):
        roots = list(range(grid.n_parts[axis]))
        # backwards, so that what a part was merged into already points to where that ended
        for keep, drop in reversed(merges[merges[:, 0] == s, 1:].tolist()):
            roots[drop] = roots[keep]
        kept, name = np.unique(roots, return_inverse=True)
        if problem.categorical[axis]:
            values = slice(problem.first_value[axis], problem.first_value[axis] + problem.n_values[axis])
            grid.group[values] = name[grid.group[values]]
        else:
            grid.start[axis, : kept.size] = grid.start[axis, kept]
        grid.n_parts[axis] = kept.size
