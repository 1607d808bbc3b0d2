"""Greedy merges over all axes, down to the null model, the best grid met on the way kept.

The work is done on the non-empty cells. For every pair of parts that may merge (neighbours on a numeric
axis, any two groups on a categorical one) the change of the cells' cost is kept up to date: a merge on one
axis alters only the pairs of cells that touch the merged parts (paper 000, section 5.2), found by hashing.
"""

# Numba infers the types; mypy would have every whole number stay what it was first.
# mypy: disable-error-code="assignment"
from __future__ import annotations

from typing import Any

import numba
import numpy as np

from damier.search.grid_state import inner, load_parts, part_word


@inner
def _find(key: Any, cell_key: Any, alive: Any, table_key: Any, table_cell: Any) -> Any:
    """Return the living cell with this key, or -1; `table_cell` is -1 where the table is empty."""
    mask = table_key.shape[0] - 1
    at = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table_cell[at] >= 0:
        if table_key[at] == key:
            cell = np.int64(table_cell[at])
            if alive[cell] and cell_key[cell] == key:
                return cell
            return np.int64(-1)
        at = (at + 1) & mask
    return np.int64(-1)


@inner
def _store(key: Any, cell: Any, table_key: Any, table_cell: Any) -> Any:
    """Enter a cell under a key; returns 1 when this took an empty place of the table."""
    mask = table_key.shape[0] - 1
    at = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table_cell[at] >= 0:
        if table_key[at] == key:
            table_cell[at] = cell
            return 0
        at = (at + 1) & mask
    table_key[at] = key
    table_cell[at] = cell
    return 1


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
def _add_pairs(
    sign: Any,
    cells: Any,
    n: Any,
    once: Any,
    axis: Any,
    is_categorical: Any,
    parts: Any,
    after: Any,
    before: Any,
    deltas: Any,
    cell_key: Any,
    alive: Any,
    table_key: Any,
    table_cell: Any,
    counts: Any,
    sizes: Any,
    log_factorials: Any,
    n_classes: Any,
) -> None:
    """Add `sign` times what the pairs along one axis of the n listed cells cost to that axis' deltas.

    With `once` a pair is taken from its earlier part alone, as is right when both of its cells are listed;
    without, all pairs of each cell are.
    """
    n_parts = after.shape[0]
    for i in range(n):
        cell = cells[i]
        part = np.int64(parts[cell])
        here = cell_key[cell] ^ part_word(axis, part)
        # a numeric part has two neighbours, a categorical one all other living groups
        n_others = n_parts if is_categorical else np.int64(2)
        for o in range(part + 1 if is_categorical and once else 0, n_others):
            other = np.int64(o)
            if not is_categorical:
                other = np.int64(after[part]) if o == 0 else np.int64(before[part])
                if other < 0 or (once and o == 1):
                    continue
            elif other == part or after[other] == -2:
                continue
            mate = _find(here ^ part_word(axis, other), cell_key, alive, table_key, table_cell)
            if mate >= 0:
                change = sign * _join(cell, mate, counts, sizes, log_factorials, n_classes)
                first = min(part, other)
                deltas[first * n_parts + max(part, other) if is_categorical else first] += change


@inner
def _renumber(problem: Any, grid: Any, axis: Any) -> None:
    """Give the parts of an axis the ids 0 .. n_parts-1; keys are left alone."""
    if problem.categorical[axis]:
        base = problem.first_value[axis]
        for at in range(base, base + problem.n_values[axis]):
            for part in range(grid.n_parts[axis]):
                if grid.part_id[axis, part] == grid.group[at]:
                    grid.group[at] = part
                    break
    for part in range(grid.n_parts[axis]):
        grid.part_id[axis, part] = part


@numba.njit(cache=True, nogil=True)
def greedy_merge(problem: Any, grid: Any, work: Any) -> None:
    """Merge parts, the cheapest merge first, on to the null model; leave the grid at the best one met."""
    n_axes, n_rows = problem.order.shape
    n_classes = problem.n_classes
    log_factorials = problem.log_factorials
    plus, minus = np.float64(1.0), np.float64(-1.0)
    n_selected = np.int64(grid.tally[0])
    once = n_selected > 0
    if n_selected == 0:
        return
    selected = np.empty(n_selected, dtype=np.int64)
    first_part = np.zeros(n_selected + 1, dtype=np.int64)
    first_delta = np.zeros(n_selected + 1, dtype=np.int64)
    s = 0
    for axis in range(n_axes):
        if grid.n_parts[axis] > 1:
            _renumber(problem, grid, axis)
            selected[s] = axis
            n = grid.n_parts[axis]
            first_part[s + 1] = first_part[s] + n
            first_delta[s + 1] = first_delta[s] + (n * n if problem.categorical[axis] else n)
            s += 1
    load_parts(problem, grid, work)
    n_cells = np.int64(grid.tally[2])
    counts, sizes = work.counts[0], work.sizes[0]
    part_of = np.empty((n_selected, n_cells), dtype=np.int32)
    cell_key = np.empty(n_cells, dtype=np.uint64)
    alive = np.ones(n_cells, dtype=np.bool_)
    for row in range(n_rows):
        cell = np.int64(work.row_slot[row])
        sizes[cell] += 1
        counts[cell * n_classes + problem.classes[row]] += 1
        cell_key[cell] = grid.key[row]
    # doubly linked parts: -1 ends a chain, after == -2 marks a part merged away
    after = np.empty(first_part[n_selected], dtype=np.int32)
    before = np.empty(first_part[n_selected], dtype=np.int32)
    for s in range(n_selected):
        axis = selected[s]
        n = grid.n_parts[axis]
        for part in range(n):
            after[first_part[s] + part] = part + 1 if part + 1 < n else -1
            before[first_part[s] + part] = part - 1
        if problem.categorical[axis]:
            base = problem.first_value[axis]
            for value in range(problem.n_values[axis]):
                for i in range(problem.value_start[base + value], problem.value_start[base + value + 1]):
                    part_of[s, work.row_slot[problem.order[axis, i]]] = grid.group[base + value]
        else:
            for part in range(n):
                hi = np.int64(grid.start[axis, part + 1]) if part + 1 < n else n_rows
                for i in range(np.int64(grid.start[axis, part]), hi):
                    part_of[s, work.row_slot[problem.order[axis, i]]] = part
    n_table = 16
    while n_table < 4 * n_cells:
        n_table *= 2
    table_key = np.empty(n_table, dtype=np.uint64)
    table_cell = np.full(n_table, -1, dtype=np.int32)
    filled = 0
    for cell in range(n_cells):
        filled += _store(cell_key[cell], cell, table_key, table_cell)
    deltas = np.zeros(first_delta[n_selected], dtype=np.float64)
    living = np.arange(n_cells)
    n_living = n_cells
    touched = np.empty(n_cells, dtype=np.int64)
    for s in range(n_selected):
        axis = selected[s]
        _add_pairs(
            plus, living, n_cells, once, axis, problem.categorical[axis], part_of[s],
            after[first_part[s] : first_part[s + 1]], before[first_part[s] : first_part[s + 1]],
            deltas[first_delta[s] : first_delta[s + 1]], cell_key, alive, table_key, table_cell,
            counts, sizes, log_factorials, n_classes,
        )  # fmt: skip

    n_parts = np.empty(n_selected, dtype=np.int64)
    n_merges = 0
    for s in range(n_selected):
        n_parts[s] = grid.n_parts[selected[s]]
        n_merges += n_parts[s] - 1
    merged_axis = np.empty(n_merges, dtype=np.int64)
    merged_keep = np.empty(n_merges, dtype=np.int64)
    merged_drop = np.empty(n_merges, dtype=np.int64)
    cost = grid.cost[0]
    best_cost, best_step = cost, np.int64(0)
    n_open = n_selected
    for step in range(n_merges):
        if work.stop[0] != 0:
            n_merges = step
            break
        # the cheapest merge of all; the first met of equals
        pick, keep, drop = np.int64(-1), np.int64(0), np.int64(0)
        pick_change = np.inf
        for s in range(n_selected):
            if n_parts[s] < 2:
                continue
            axis = selected[s]
            row = problem.prior_row[axis]
            step_prior = problem.axis_prior[row, n_parts[s] - 1] - problem.axis_prior[row, n_parts[s]]
            if n_parts[s] == 2:
                step_prior += problem.selection[n_open - 1] - problem.selection[n_open]
            n = first_part[s + 1] - first_part[s]
            for part in range(n):
                if after[first_part[s] + part] == -2:
                    continue
                if not problem.categorical[axis]:
                    other = np.int64(after[first_part[s] + part])
                    if other >= 0 and deltas[first_delta[s] + part] + step_prior < pick_change - 1e-9:
                        pick_change = deltas[first_delta[s] + part] + step_prior
                        pick, keep, drop = np.int64(s), np.int64(part), other
                    continue
                for other in range(part + 1, n):
                    if after[first_part[s] + other] == -2:
                        continue
                    change = deltas[first_delta[s] + part * n + other] + step_prior
                    if change < pick_change - 1e-9:
                        pick_change = change
                        pick, keep, drop = np.int64(s), np.int64(part), np.int64(other)
        axis = selected[pick]
        n_touched = np.int64(0)
        for i in range(n_living):
            cell = living[i]
            if part_of[pick, cell] == keep or part_of[pick, cell] == drop:
                touched[n_touched] = cell
                n_touched += 1
        for s in range(n_selected):
            if s != pick and n_parts[s] > 1:
                _add_pairs(
                    minus, touched, n_touched, once, selected[s], problem.categorical[selected[s]],
                    part_of[s], after[first_part[s] : first_part[s + 1]],
                    before[first_part[s] : first_part[s + 1]],
                    deltas[first_delta[s] : first_delta[s + 1]], cell_key, alive, table_key, table_cell,
                    counts, sizes, log_factorials, n_classes,
                )  # fmt: skip
        # the dropped part's cells join their mates or take the kept part's name
        change_key = part_word(axis, keep) ^ part_word(axis, drop)
        for i in range(n_touched):
            cell = touched[i]
            if part_of[pick, cell] != drop:
                continue
            key = cell_key[cell] ^ change_key
            mate = _find(key, cell_key, alive, table_key, table_cell)
            if mate >= 0:
                sizes[mate] += sizes[cell]
                sizes[cell] = 0
                for j in range(n_classes):
                    counts[mate * n_classes + j] += counts[cell * n_classes + j]
                    counts[cell * n_classes + j] = 0
                alive[cell] = False
            else:
                cell_key[cell] = key
                part_of[pick, cell] = keep
                filled += _store(key, cell, table_key, table_cell)
                if 3 * filled > 2 * n_table:
                    table_cell[:] = -1
                    filled = 0
                    for other in range(n_cells):
                        if alive[other]:
                            filled += _store(cell_key[other], other, table_key, table_cell)
        kept = 0
        for i in range(n_living):
            if alive[living[i]]:
                living[kept] = living[i]
                kept += 1
        n_living = kept
        kept = np.int64(0)
        for i in range(n_touched):
            if alive[touched[i]]:
                touched[kept] = touched[i]
                kept += 1
        n_touched = kept
        if not problem.categorical[axis]:
            following = np.int64(after[first_part[pick] + drop])
            after[first_part[pick] + keep] = following
            if following >= 0:
                before[first_part[pick] + following] = keep
            deltas[first_delta[pick] + keep] = 0.0
            if before[first_part[pick] + keep] >= 0:
                deltas[first_delta[pick] + before[first_part[pick] + keep]] = 0.0
        else:
            n = first_part[pick + 1] - first_part[pick]
            for other in range(n):
                deltas[first_delta[pick] + min(keep, other) * n + max(keep, other)] = 0.0
        after[first_part[pick] + drop] = -2
        n_parts[pick] -= 1
        if n_parts[pick] == 1:
            n_open -= 1
        for s in range(n_selected):
            if n_parts[s] > 1:
                _add_pairs(
                    plus, touched, n_touched, s != pick, selected[s], problem.categorical[selected[s]],
                    part_of[s], after[first_part[s] : first_part[s + 1]],
                    before[first_part[s] : first_part[s + 1]],
                    deltas[first_delta[s] : first_delta[s + 1]], cell_key, alive, table_key, table_cell,
                    counts, sizes, log_factorials, n_classes,
                )  # fmt: skip
        merged_axis[step], merged_keep[step], merged_drop[step] = pick, keep, drop
        cost += pick_change
        if cost < best_cost - 1e-9:
            best_cost, best_step = cost, np.int64(step + 1)
    for i in range(n_living):
        cell = living[i]
        sizes[cell] = 0
        for j in range(n_classes):
            counts[cell * n_classes + j] = 0
    _replay(problem, grid, work, selected, first_part, merged_axis, merged_keep, merged_drop, best_step)


@inner
def _replay(
    problem: Any,
    grid: Any,
    work: Any,
    selected: Any,
    first_part: Any,
    merged_axis: Any,
    merged_keep: Any,
    merged_drop: Any,
    n_steps: Any,
) -> None:
    """Make the first n_steps merges on the grid itself."""
    n_selected = selected.shape[0]
    keeper = np.arange(first_part[n_selected])
    for step in range(n_steps - 1, -1, -1):
        base = first_part[merged_axis[step]]
        keeper[base + merged_drop[step]] = base + merged_keep[step]
    for s in range(n_selected):
        axis = selected[s]
        n = grid.n_parts[axis]
        name = np.full(n, -1, dtype=np.int64)
        n_kept = 0
        for part in range(n):
            at = first_part[s] + part
            while keeper[at] != at:
                at = keeper[at]
            root = at - first_part[s]
            if name[root] < 0:
                name[root] = n_kept
                if not problem.categorical[axis]:
                    grid.start[axis, n_kept] = grid.start[axis, part]
                n_kept += 1
            name[part] = name[root]
        if problem.categorical[axis]:
            base = problem.first_value[axis]
            for value in range(problem.n_values[axis]):
                grid.group[base + value] = name[grid.group[base + value]]
        grid.n_parts[axis] = n_kept
    load_parts(problem, grid, work)
