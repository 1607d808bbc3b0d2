"""What the grid search works on: the problem, the grid being searched, and the scratch memory of one thread.

A grid is a partition of every axis. Rows are never given their part one axis at a time; they carry a 64-bit
key, the exclusive or of one word for each (selected axis, part) they fall in, so that changing an axis
touches only the rows that change part, and the cell of a row is found by hashing its key. Two cells share a
key with a probability near N^2 / 2^65; reported costs are recomputed from the counts.

Legend: N rows, K axes, J classes, P the largest number of parts an axis may have, V values of a categorical
axis.
"""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    WordArray,
    bare_kernel,
    inner,
    mix,
)

StopFlag = npt.NDArray[np.uint8]

EPSILON = 1e-6
"""A change must lower the cost by more than this, in nats, to be made: larger than any rounding error."""

TIE = 1e-9
"""Costs closer than this are equal, and the first met is kept."""


class Problem(NamedTuple):
    """The data of a search; read only and shared by all threads.

    ``order[k]`` lists the rows by value on axis k and ``fresh[k, i]`` says whether position i starts a new
    value. A categorical axis k has its values' first positions in ``value_start[first_value[k] + v]``, v =
    0 .. V. ``axis_prior[prior_row[k], i]`` is the cost of cutting axis k into i parts, ``selection[s]``
    that of selecting s axes.
    """

    order: CodeArray
    fresh: BoolArray
    classes: CodeArray
    categorical: BoolArray
    first_value: IntArray
    n_values: IntArray
    value_start: CodeArray
    prior_row: IntArray
    axis_prior: FloatArray
    selection: FloatArray
    logs: FloatArray
    log_factorials: FloatArray
    n_classes: int


class Grid(NamedTuple):
    """The grid under search.

    Part p of a numeric axis k begins at position ``start[k, p]`` and is known to the keys as ``part_id[k,
    p]``. On a categorical axis ``group`` gives the part id of each value and ``part_id[k]`` lists those in
    use. ``tally`` holds the number of selected axes, then whether ``Work.row_slot`` describes the present
    cells, then how many cells these are. ``cost`` has one entry.
    """

    n_parts: IntArray
    start: CodeArray
    part_id: CodeArray
    next_id: IntArray
    group: CodeArray
    key: WordArray
    tally: IntArray
    cost: FloatArray


class Work(NamedTuple):
    """Scratch memory of one thread; ``counts`` and ``sizes`` (a row for each side) are zero between calls."""

    slot_at: CodeArray
    class_at: CodeArray
    row_slot: CodeArray
    table_key: WordArray
    table_stamp: CodeArray
    table_slot: CodeArray
    generation: IntArray
    counts: CodeArray
    sizes: CodeArray
    buffer_slot: CodeArray
    buffer_class: CodeArray
    buffer_fresh: BoolArray
    values: CodeArray
    scores: FloatArray
    side: CodeArray
    kept: CodeArray
    signal: FloatArray
    rng: WordArray
    stop: StopFlag


class Solution(NamedTuple):
    """A grid put aside: the parts of every axis and the cost the search gave it."""

    n_parts: IntArray
    start: CodeArray
    group: CodeArray
    cost: float


def new_grid(problem: Problem) -> Grid:
    """Memory for a grid; load something into it before use."""
    n_axes, n_rows = problem.order.shape
    n_parts = problem.axis_prior.shape[1] - 1
    return Grid(
        n_parts=np.ones(n_axes, dtype=np.int64),
        start=np.zeros((n_axes, n_parts), dtype=np.int32),
        part_id=np.zeros((n_axes, n_parts), dtype=np.int32),
        next_id=np.ones(n_axes, dtype=np.int64),
        group=np.zeros(problem.value_start.shape[0], dtype=np.int32),
        key=np.zeros(n_rows, dtype=np.uint64),
        tally=np.zeros(3, dtype=np.int64),
        cost=np.zeros(1, dtype=np.float64),
    )


def new_work(problem: Problem, stop: StopFlag) -> Work:
    """Scratch memory for one thread; `stop` is shared, and a non-zero entry asks every kernel to return."""
    n_rows = problem.order.shape[1]
    n_table = 1 << max(4, int(2 * n_rows - 1).bit_length())
    n_counts = n_rows * problem.n_classes
    n_values = max(1, problem.value_start.shape[0])
    return Work(
        slot_at=np.zeros(n_rows, dtype=np.int32),
        class_at=np.zeros(n_rows, dtype=np.int32),
        row_slot=np.zeros(n_rows, dtype=np.int32),
        table_key=np.zeros(n_table, dtype=np.uint64),
        table_stamp=np.zeros(n_table, dtype=np.int32),
        table_slot=np.zeros(n_table, dtype=np.int32),
        generation=np.zeros(1, dtype=np.int64),
        counts=np.zeros((2, n_counts), dtype=np.int32),
        sizes=np.zeros((2, n_rows), dtype=np.int32),
        buffer_slot=np.zeros(n_rows, dtype=np.int32),
        buffer_class=np.zeros(n_rows, dtype=np.int32),
        buffer_fresh=np.zeros(n_rows, dtype=np.bool_),
        values=np.zeros(n_values, dtype=np.int32),
        scores=np.zeros(n_values, dtype=np.float64),
        side=np.zeros(n_values, dtype=np.int32),
        kept=np.zeros(n_values, dtype=np.int32),
        signal=np.zeros(n_rows, dtype=np.float64),
        rng=np.zeros(1, dtype=np.uint64),
        stop=stop,
    )


@inner
def part_word(axis: int, part_id: int) -> np.uint64:
    """Return the word a part contributes to the keys of its rows."""
    return mix((np.uint64(axis) << np.uint64(32)) ^ np.uint64(part_id))


@inner
def slot_of(
    key: np.uint64,
    table_key: WordArray,
    table_stamp: CodeArray,
    table_slot: CodeArray,
    generation: int,
    n_slots: int,
) -> int:
    """Slot of a key: the one it has, or `n_slots`, which it then takes."""
    mask = table_key.shape[0] - 1
    at = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
    while table_stamp[at] == generation:
        if table_key[at] == key:
            return np.int64(table_slot[at])
        at = (at + 1) & mask
    table_stamp[at] = generation
    table_key[at] = key
    table_slot[at] = n_slots
    return np.int64(n_slots)


@inner
def number_cells(grid: Grid, work: Work) -> int:
    """Give each row its cell in ``work.row_slot`` unless that is already done; return how many cells."""
    if grid.tally[1] == 1:
        return grid.tally[2]
    work.generation[0] += 1
    generation = work.generation[0]
    key, row_slot = grid.key, work.row_slot
    table_key, table_stamp, table_slot = work.table_key, work.table_stamp, work.table_slot
    n_slots = np.int64(0)
    for row in range(key.shape[0]):
        slot = slot_of(key[row], table_key, table_stamp, table_slot, generation, n_slots)
        if slot == n_slots:
            n_slots += 1
        row_slot[row] = slot
    grid.tally[1] = 1
    grid.tally[2] = n_slots
    return n_slots


@inner
def rekey(key: WordArray, rows: CodeArray, lo: int, hi: int, word: np.uint64) -> None:
    """Change the keys of the rows listed from lo to hi-1 by a word."""
    for i in range(lo, hi):
        key[rows[i]] ^= word


@inner
def prior_step(
    axis_prior: FloatArray, row: int, selection: FloatArray, selected: int, now: int, n_parts: int
) -> float:
    """Return the change of the prior cost when an axis goes from `now` parts to `n_parts`.

    `row` is the axis' in `axis_prior`, `selected` the number of axes selected before the change.
    """
    change = axis_prior[row, n_parts] - axis_prior[row, now]
    if now == 1 and n_parts > 1:
        change += selection[selected + 1] - selection[selected]
    elif now > 1 and n_parts == 1:
        change += selection[selected - 1] - selection[selected]
    return change


@inner
def piece_of_axis(problem: Problem, grid: Grid, axis: int, piece: int) -> tuple[int, int, np.uint64]:
    """Return where a piece of an axis (a value or a part) lies in its order, and its part's word."""
    if problem.categorical[axis]:
        at = problem.first_value[axis] + piece
        word = part_word(axis, grid.group[at])
        return np.int64(problem.value_start[at]), np.int64(problem.value_start[at + 1]), word
    lo = np.int64(grid.start[axis, piece])
    hi = np.int64(problem.order.shape[1])
    if piece + 1 < grid.n_parts[axis]:
        hi = np.int64(grid.start[axis, piece + 1])
    return lo, hi, part_word(axis, grid.part_id[axis, piece])


@bare_kernel
def load_parts(problem: Problem, grid: Grid, work: Work) -> None:
    """Bring keys, counters and cost in line with ``n_parts``, ``start`` and ``group`` (ids from 0)."""
    n_axes, n_rows = problem.order.shape
    key = grid.key
    for row in range(n_rows):
        key[row] = np.uint64(0)
    selected = 0
    cost = 0.0
    for axis in range(n_axes):
        n_parts = grid.n_parts[axis]
        grid.next_id[axis] = n_parts
        grid.start[axis, 0] = 0
        for part in range(n_parts):
            grid.part_id[axis, part] = part
        n_pieces = n_parts
        if problem.categorical[axis]:
            n_pieces = problem.n_values[axis]
            if n_parts == 1:
                base = problem.first_value[axis]
                for value in range(n_pieces):
                    grid.group[base + value] = 0
        if n_parts == 1:
            continue
        selected += 1
        cost += problem.axis_prior[problem.prior_row[axis], n_parts]
        rows = problem.order[axis]
        for piece in range(n_pieces):
            lo, hi, word = piece_of_axis(problem, grid, axis, piece)
            rekey(key, rows, lo, hi, word)
    grid.tally[0] = selected
    grid.tally[1] = 0
    number_cells(grid, work)
    cost += problem.selection[selected]
    n_classes = problem.n_classes
    counts, sizes, row_slot, classes, logs = (
        work.counts,
        work.sizes,
        work.row_slot,
        problem.classes,
        problem.logs,
    )
    # a cell grows row by row: the n-th row, the c-th of its class, adds log(n + J - 1) - log(c)
    for row in range(n_rows):
        slot = np.int64(row_slot[row])
        cell = slot * n_classes + classes[row]
        cost += logs[sizes[0, slot] + n_classes] - logs[counts[0, cell] + 1]
        sizes[0, slot] += 1
        counts[0, cell] += 1
    for row in range(n_rows):
        slot = np.int64(row_slot[row])
        sizes[0, slot] = 0
        counts[0, slot * n_classes + classes[row]] = 0
    grid.cost[0] = cost
