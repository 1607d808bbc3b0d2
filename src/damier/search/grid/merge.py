"""Greedy merges over all axes, down to the null model, the best grid met on the way kept.

The work is done on the non-empty cells. For every pair of parts that may merge (neighbours on a numeric
axis, any two groups on a categorical one) the change of the cells' cost is kept up to date: a merge on one
axis alters only the pairs of cells that touch the merged parts (paper 000, section 5.2), found by hashing.
NumPy lays out the cells and makes the merges on the grid; one kernel, which allocates nothing, does the rest.
"""

# Numba infers the types; mypy would have every whole number stay what it was first.
# mypy: disable-error-code="assignment"
from __future__ import annotations

from typing import Any

import numpy as np

from damier.search.grid.state import Array, Grid, Problem, Work, load_parts, part_word
from damier.search.kernels import inner, kernel


@inner
def _place(key: Any, table_key: Any, table_cell: Any) -> Any:
    """Return the place of a key in the table: its own, or the empty one (cell -1) it would take."""
    mask = table_key.shape[0] - 1
    at = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table_cell[at] >= 0 and table_key[at] != key:
        at = (at + 1) & mask
    return at


@inner
def _join(a: Any, b: Any, counts: Any, sizes: Any, log_factorials: Any, n_classes: Any) -> Any:
    """Return the change of cost when two cells become one."""
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
def _enter(cells: Any, n: Any, cell_key: Any, table_key: Any, table_cell: Any) -> None:
    """Empty the table and enter the n listed cells."""
    for at in range(table_cell.shape[0]):
        table_cell[at] = -1
    for i in range(n):
        at = _place(cell_key[cells[i]], table_key, table_cell)
        table_key[at] = cell_key[cells[i]]
        table_cell[at] = cells[i]


@inner
def _leave_out_empty(cells: Any, n: Any, sizes: Any) -> Any:
    """Move the cells that hold rows, of the n listed, to the front; tell how many they are."""
    kept = np.int64(0)
    for i in range(n):
        if sizes[cells[i]] > 0:
            cells[kept] = cells[i]
            kept += 1
    return kept


@kernel
def _merge_cells(
    axes: Any,
    is_categorical: Any,
    n_parts: Any,
    first_part: Any,
    first_delta: Any,
    prior: Any,
    selection: Any,
    part_of: Any,
    cell_key: Any,
    counts: Any,
    sizes: Any,
    after: Any,
    before: Any,
    deltas: Any,
    living: Any,
    touched: Any,
    table_key: Any,
    table_cell: Any,
    merges: Any,
    log_factorials: Any,
    n_classes: Any,
    stop: Any,
) -> Any:
    """Merge parts, the cheapest merge first, until one cell is left; return after which step it was cheapest.

    Row t of ``merges`` receives the axis (its place in ``axes``), the part kept and the part dropped in step
    t. ``after`` and ``before`` link the parts of an axis; -1 ends a chain, after == -2 marks a part merged
    away. Cells without rows are dead.
    """
    n_selected = axes.shape[0]
    n_merges = merges.shape[0]
    n_living = living.shape[0]
    n_open = n_selected
    filled = np.int64(n_living)
    _enter(living, n_living, cell_key, table_key, table_cell)
    total, best_total, best_step = 0.0, 0.0, np.int64(0)
    pick, keep, drop = np.int64(-1), np.int64(0), np.int64(0)
    # step -1 merges nothing: it only computes the change each merge would bring
    for step in range(-1, n_merges):
        if stop[0] != 0:
            break
        n_touched = np.int64(0)
        if step >= 0:
            # the cheapest merge of all; the first met of equals
            pick_change = np.inf
            for s in range(n_selected):
                now = n_parts[s]
                if now < 2:
                    continue
                price = prior[s, now - 1] - prior[s, now]
                if now == 2:
                    price += selection[n_open - 1] - selection[n_open]
                base, n = first_part[s], first_part[s + 1] - first_part[s]
                for part in range(n):
                    if after[base + part] == -2:
                        continue
                    lo, hi = np.int64(part + 1), np.int64(n)
                    at = first_delta[s] + part * n
                    if not is_categorical[s]:
                        lo, hi = np.int64(after[base + part]), np.int64(after[base + part] + 1)
                        at = first_delta[s] + part - lo
                    for other in range(max(lo, np.int64(0)), hi):
                        if after[base + other] == -2:
                            continue
                        change = deltas[at + other] + price
                        if change < pick_change - 1e-9:
                            pick_change = change
                            pick, keep, drop = np.int64(s), np.int64(part), np.int64(other)
            total += pick_change
            if total < best_total - 1e-9:
                best_total, best_step = total, np.int64(step + 1)
            merges[step, 0] = pick
            merges[step, 1] = keep
            merges[step, 2] = drop
            for i in range(n_living):
                cell = living[i]
                if part_of[pick, cell] == keep or part_of[pick, cell] == drop:
                    touched[n_touched] = cell
                    n_touched += 1
        else:
            for i in range(n_living):
                touched[i] = living[i]
            n_touched = np.int64(n_living)
        # first the pairs of the touched cells leave the sums, as they were, then they enter again, merged
        for phase in range(0 if step >= 0 else 1, 2):
            if phase == 1 and step >= 0:
                # the dropped part's cells join their mates or take the kept part's name
                change_key = part_word(axes[pick], keep) ^ part_word(axes[pick], drop)
                for i in range(n_touched):
                    cell = touched[i]
                    if part_of[pick, cell] != drop:
                        continue
                    key = cell_key[cell] ^ change_key
                    at = _place(key, table_key, table_cell)
                    mate = np.int64(table_cell[at])
                    if mate >= 0 and sizes[mate] > 0 and cell_key[mate] == key:
                        sizes[mate] += sizes[cell]
                        sizes[cell] = 0
                        for j in range(n_classes):
                            counts[mate * n_classes + j] += counts[cell * n_classes + j]
                        continue
                    cell_key[cell] = key
                    part_of[pick, cell] = keep
                    filled += 1 if mate < 0 else 0
                    table_key[at] = key
                    table_cell[at] = cell
                n_living = _leave_out_empty(living, n_living, sizes)
                n_touched = _leave_out_empty(touched, n_touched, sizes)
                if 2 * filled > table_key.shape[0]:
                    _enter(living, n_living, cell_key, table_key, table_cell)
                    filled = np.int64(n_living)
                base, at = first_part[pick], first_delta[pick]
                if is_categorical[pick]:
                    n = first_part[pick + 1] - base
                    for other in range(n):
                        deltas[at + min(keep, other) * n + max(keep, other)] = 0.0
                else:
                    following, previous = np.int64(after[base + drop]), np.int64(before[base + keep])
                    after[base + keep] = following
                    deltas[at + keep] = 0.0
                    if following >= 0:
                        before[base + following] = keep
                    if previous >= 0:
                        deltas[at + previous] = 0.0
                after[base + drop] = -2
                n_parts[pick] -= 1
                if n_parts[pick] == 1:
                    n_open -= 1
            sign = 1.0 if phase == 1 else -1.0
            for s in range(n_selected):
                if n_parts[s] < 2 or (s == pick and phase == 0):
                    continue
                axis = axes[s]
                base, n = first_part[s], first_part[s + 1] - first_part[s]
                at = first_delta[s]
                # Along the merged axis all pairs of each touched cell are new. Along the others both cells of
                # a pair are touched or neither is: the earlier part alone takes it.
                once = s != pick
                for i in range(n_touched):
                    cell = touched[i]
                    part = np.int64(part_of[s, cell])
                    here = cell_key[cell] ^ part_word(axis, part)
                    # a numeric part has two neighbours, a categorical one all other living groups
                    lo = part + 1 if is_categorical[s] and once else np.int64(0)
                    hi = np.int64(n) if is_categorical[s] else np.int64(1 if once else 2)
                    for o in range(lo, hi):
                        other = np.int64(o)
                        if not is_categorical[s]:
                            other = np.int64(after[base + part]) if o == 0 else np.int64(before[base + part])
                        if other < 0 or other == part or after[base + other] == -2:
                            continue
                        key = here ^ part_word(axis, other)
                        mate = np.int64(table_cell[_place(key, table_key, table_cell)])
                        if mate < 0 or sizes[mate] == 0 or cell_key[mate] != key:
                            continue
                        first = min(part, other)
                        if is_categorical[s]:
                            first = first * n + max(part, other)
                        deltas[at + first] += sign * _join(
                            cell, mate, counts, sizes, log_factorials, n_classes
                        )
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
    n_table = 1 << max(4, (4 * n_cells).bit_length())
    merges = np.empty((int(first_part[-1]) - axes.size, 3), dtype=np.int64)
    n_steps = _merge_cells(
        axes,
        is_categorical,
        n_parts.copy(),
        first_part,
        _running_sum(np.where(is_categorical, n_parts**2, n_parts)),
        problem.axis_prior[problem.prior_row[axes]],
        problem.selection,
        part_of,
        cell_key,
        np.bincount(
            work.row_slot.astype(np.int64) * n_classes + problem.classes, minlength=n_cells * n_classes
        ),
        np.bincount(work.row_slot, minlength=n_cells),
        after,
        (part_in_axis - 1).astype(np.int32),
        np.zeros(int(np.where(is_categorical, n_parts**2, n_parts).sum())),
        np.arange(n_cells),
        np.empty(n_cells, dtype=np.int64),
        np.empty(n_table, dtype=np.uint64),
        np.empty(n_table, dtype=np.int32),
        merges,
        problem.log_factorials,
        n_classes,
        work.stop,
    )
    _replay(problem, grid, axes, merges[:n_steps])
    load_parts(problem, grid, work)


def _running_sum(sizes: Array) -> Array:
    return np.concatenate([[0], np.cumsum(sizes)])


def _renumber_groups(problem: Problem, grid: Grid, axis: int) -> None:
    """Give the groups of an axis the ids 0 .. n_parts-1."""
    values = slice(problem.first_value[axis], problem.first_value[axis] + problem.n_values[axis])
    n_parts = grid.n_parts[axis]
    place = np.empty(grid.next_id[axis], dtype=np.int32)
    place[grid.part_id[axis, :n_parts]] = np.arange(n_parts)
    grid.group[values] = place[grid.group[values]]


def _replay(problem: Problem, grid: Grid, axes: Array, merges: Array) -> None:
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
