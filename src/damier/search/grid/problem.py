"""From codes to a search problem, and from a found grid back to codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from damier.criteria import grid_cost, log_bell_table, log_binomial, log_factorials
from damier.search.grid.state import Grid, Problem, Solution
from damier.search.kernels import CodeArray, FloatArray, IntArray, scatter

# Keys of cells are numbered anew before they exceed this.
_LARGEST_KEY = 1 << 62


@dataclass(frozen=True)
class AxisCodes:
    """One variable of the search: the codes of its rows, 0 .. n_values-1, in order of value when numeric."""

    codes: CodeArray
    n_values: int
    categorical: bool


@dataclass(frozen=True)
class FoundGrid:
    """A grid in terms of codes: for each axis with two parts or more, the part of each of its values.

    ``cells`` are the parts of the cells that hold rows, in lexicographic order; ``counts`` their classes.
    """

    cost: float
    value_parts: dict[int, CodeArray]
    cells: CodeArray
    counts: IntArray


def canonical_rows(
    axes: Sequence[AxisCodes], classes: CodeArray, n_classes: int
) -> tuple[IntArray, CodeArray]:
    """Return an order of the rows and names of the classes that depend on neither.

    Rows are sorted by a hash of their content, so that the search sees the same arrays however the rows
    came; classes are numbered by falling count, then by a hash of their rows.
    """
    words = np.zeros(classes.shape[0], dtype=np.uint64)
    for axis in axes:
        words = scatter(words ^ axis.codes.astype(np.uint64))
    counts = np.bincount(classes, minlength=n_classes)
    sums = np.zeros(n_classes, dtype=np.uint64)
    np.add.at(sums, classes, scatter(words))
    by_size = sorted(range(n_classes), key=lambda j: (-int(counts[j]), int(sums[j]), j))
    rename = np.empty(n_classes, dtype=np.int32)
    rename[by_size] = np.arange(n_classes, dtype=np.int32)
    renamed = rename[classes]
    rows = np.argsort(scatter(words + renamed.astype(np.uint64)), kind="stable")
    return rows, renamed


def _most_parts(axis: AxisCodes, n_rows: int) -> int:
    """Return how many parts an axis may have."""
    # Boullé bounds the groups of a start by the root of N (section 5.5); intervals are given a little more.
    return min(axis.n_values, 16 + (1 if axis.categorical else 2) * math.isqrt(n_rows))


def _axis_prior(axis: AxisCodes, n_rows: int, most_parts: int) -> FloatArray:
    """Return what 0 .. most_parts parts of an axis cost; one part, the axis left out, is free."""
    parts = np.arange(1, most_parts + 1)
    prior = np.zeros(most_parts + 1)
    if axis.categorical:
        prior[1:] = math.log(axis.n_values) + log_bell_table(axis.n_values, most_parts)[1:]
    else:
        prior[1:] = math.log(n_rows) + log_binomial(n_rows + parts - 1, parts - 1)
    prior[:2] = 0.0
    return prior


def _selection_prior(n_axes: int) -> FloatArray:
    """Return what selecting 0 .. n_axes of the axes costs."""
    chosen = np.arange(n_axes + 1)
    selection = np.zeros(n_axes + 1)
    if n_axes:
        selection[1:] = log_binomial(n_axes + chosen[1:] - 1, chosen[1:])
    return selection + math.log(n_axes + 1)


def alone_penalty(axis: AxisCodes, n_rows: int, n_axes: int) -> FloatArray:
    """Return what 1, 2, ... parts of an axis cost when it is the only one selected of `n_axes`."""
    penalty = _axis_prior(axis, n_rows, max(2, _most_parts(axis, n_rows)))[1:]
    selection = _selection_prior(n_axes)
    penalty[0] += selection[0]
    penalty[1:] += selection[1]
    return penalty[: axis.n_values]


def build_problem(axes: Sequence[AxisCodes], classes: CodeArray, n_classes: int) -> Problem:
    """Lay out coded variables and classes for the kernels."""
    n_axes, n_rows = len(axes), classes.shape[0]
    rows, renamed = canonical_rows(axes, classes, n_classes)
    order = np.empty((n_axes, n_rows), dtype=np.int32)
    fresh = np.zeros((n_axes, n_rows), dtype=np.bool_)
    first_value = np.zeros(n_axes + 1, dtype=np.int64)
    value_starts: list[CodeArray] = []
    most_parts = 2
    for k, axis in enumerate(axes):
        codes = np.ascontiguousarray(axis.codes[rows], dtype=np.int32)
        order[k] = np.argsort(codes, kind="stable")
        ordered = codes[order[k]]
        fresh[k, 1:] = ordered[1:] != ordered[:-1]
        fresh[k, :1] = True
        if axis.categorical:
            value_starts.append(np.searchsorted(ordered, np.arange(axis.n_values + 1)).astype(np.int32))
        first_value[k + 1] = first_value[k] + (axis.n_values + 1 if axis.categorical else 0)
        most_parts = max(most_parts, _most_parts(axis, n_rows))
    prior_of: dict[int, int] = {}
    priors: list[FloatArray] = []
    prior_row = np.zeros(n_axes, dtype=np.int64)
    for k, axis in enumerate(axes):
        kind = axis.n_values if axis.categorical else 0
        if kind not in prior_of:
            prior_of[kind] = len(priors)
            priors.append(_axis_prior(axis, n_rows, most_parts))
        prior_row[k] = prior_of[kind]
    logs = np.zeros(n_rows + n_classes + 1)
    logs[1:] = np.log(np.arange(1, n_rows + n_classes + 1))
    return Problem(
        order=order,
        fresh=fresh,
        classes=np.ascontiguousarray(renamed[rows], dtype=np.int32),
        categorical=np.array([axis.categorical for axis in axes], dtype=np.bool_),
        first_value=first_value,
        n_values=np.array([axis.n_values for axis in axes], dtype=np.int64),
        value_start=np.concatenate([*value_starts, np.zeros(1, dtype=np.int32)]),
        prior_row=prior_row,
        axis_prior=np.array(priors) if priors else np.zeros((1, 3)),
        selection=_selection_prior(n_axes),
        logs=logs,
        log_factorials=np.array(log_factorials(n_rows + n_classes)),
        n_classes=n_classes,
    )


def put_aside(problem: Problem, grid: Grid) -> Solution:
    """Copy what a grid holds; groups are numbered by their first value: equal grids are equal arrays."""
    group = grid.group.copy()
    for k in np.flatnonzero(problem.categorical & (grid.n_parts > 1)):
        values = slice(problem.first_value[k], problem.first_value[k] + problem.n_values[k])
        group[values] = _by_first_value(group[values])
    return Solution(grid.n_parts.copy(), grid.start.copy(), group, float(grid.cost[0]))


def _by_first_value(groups: CodeArray) -> CodeArray:
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int32)


def signature(problem: Problem, solution: Solution) -> bytes:
    """Return bytes that are equal for equal grids."""
    pieces = []
    for k in np.flatnonzero(solution.n_parts > 1):
        n_parts = int(solution.n_parts[k])
        pieces.append(np.array([k, n_parts], dtype=np.int32))
        if problem.categorical[k]:
            base = problem.first_value[k]
            pieces.append(solution.group[base : base + problem.n_values[k]])
        else:
            pieces.append(solution.start[k, :n_parts])
    return np.concatenate(pieces).tobytes() if pieces else b""


def in_codes(problem: Problem, axes: Sequence[AxisCodes], solution: Solution) -> dict[int, CodeArray]:
    """Part of each value, for each axis in two parts or more; groups are numbered by their first value."""
    parts: dict[int, CodeArray] = {}
    for k in np.flatnonzero(solution.n_parts > 1).tolist():
        n_parts, n_values = int(solution.n_parts[k]), axes[k].n_values
        if axes[k].categorical:
            base = int(problem.first_value[k])
            parts[k] = solution.group[base : base + n_values].copy()
        else:
            # every value starts at a fresh position: the values before a start are those left of the bound
            ranks = np.cumsum(problem.fresh[k]) - 1
            bounds = ranks[solution.start[k, 1:n_parts]]
            parts[k] = np.searchsorted(bounds, np.arange(n_values), side="right").astype(np.int32)
    return parts


def count_cells(
    axes: Sequence[AxisCodes],
    classes: CodeArray,
    n_classes: int,
    value_parts: dict[int, CodeArray],
) -> tuple[CodeArray, IntArray]:
    """Return the parts of the non-empty cells, sorted, and their class counts."""
    cell_of, rows = cells_of_rows(axes, value_parts, classes.shape[0])
    cells = np.empty((rows.size, len(value_parts)), dtype=np.int32)
    for column, (k, parts) in enumerate(value_parts.items()):
        cells[:, column] = parts[axes[k].codes[rows]]
    counts = np.bincount(cell_of * n_classes + classes, minlength=rows.size * n_classes)
    return cells, counts.reshape(rows.size, n_classes).astype(np.int64, copy=False)


def cells_of_rows(
    axes: Sequence[AxisCodes], value_parts: dict[int, CodeArray], n_rows: int
) -> tuple[IntArray, IntArray]:
    """Return the cell of each row, numbered in lexicographic order of their parts, and a row of each cell."""
    keys, n_keys = np.zeros(n_rows, dtype=np.int64), 1
    for k, parts in value_parts.items():
        n_parts = int(parts.max()) + 1
        if n_keys > _LARGEST_KEY // n_parts:
            distinct, keys = np.unique(keys, return_inverse=True)
            n_keys = distinct.size
        keys = keys * n_parts + parts[axes[k].codes]
        n_keys *= n_parts
    _, rows, cell_of = np.unique(keys, return_index=True, return_inverse=True)
    return cell_of, rows


def found_grid(
    axes: Sequence[AxisCodes],
    classes: CodeArray,
    n_classes: int,
    value_parts: dict[int, CodeArray],
) -> FoundGrid:
    """Count the cells of a grid, and compute its cost from scratch."""
    cells, counts = count_cells(axes, classes, n_classes, value_parts)
    sizes = {k: int(parts.max()) + 1 for k, parts in value_parts.items()}
    cost = grid_cost(
        counts,
        len(axes),
        [n for k, n in sizes.items() if not axes[k].categorical],
        [(axes[k].n_values, n) for k, n in sizes.items() if axes[k].categorical],
    )
    return FoundGrid(cost, value_parts, cells, counts)
