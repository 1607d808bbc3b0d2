"""From codes to a search problem, and from a found grid back to codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from damier.criteria import grid_cost, log_bell_table, log_binomial, log_factorials
from damier.search.grid.state import Grid, Problem, Solution
from damier.search.kernels import scatter

IntArray = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class AxisCodes:
    """One variable of the search: the codes of its rows, 0 .. n_values-1, in order of value when numeric."""

    codes: npt.NDArray[np.int32]
    n_values: int
    categorical: bool


@dataclass(frozen=True)
class FoundGrid:
    """A grid in terms of codes: for each axis with two parts or more, the part of each of its values."""

    cost: float
    value_parts: dict[int, npt.NDArray[np.int32]]


def canonical_rows(
    axes: Sequence[AxisCodes], classes: npt.NDArray[np.int32], n_classes: int
) -> tuple[IntArray, npt.NDArray[np.int32]]:
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


def build_problem(axes: Sequence[AxisCodes], classes: npt.NDArray[np.int32], n_classes: int) -> Problem:
    """Lay out coded variables and classes for the kernels."""
    n_axes, n_rows = len(axes), classes.shape[0]
    rows, renamed = canonical_rows(axes, classes, n_classes)
    order = np.empty((n_axes, n_rows), dtype=np.int32)
    fresh = np.zeros((n_axes, n_rows), dtype=np.bool_)
    first_value = np.zeros(n_axes + 1, dtype=np.int64)
    value_starts: list[npt.NDArray[np.int32]] = []
    most_parts = 2
    # the paper bounds the groups of a start by the root of N (section 5.5); intervals are given a little more
    most_intervals, most_groups = 16 + 2 * math.isqrt(n_rows), 16 + math.isqrt(n_rows)
    for k, axis in enumerate(axes):
        codes = np.ascontiguousarray(axis.codes[rows], dtype=np.int32)
        order[k] = np.argsort(codes, kind="stable")
        ordered = codes[order[k]]
        fresh[k, 1:] = ordered[1:] != ordered[:-1]
        fresh[k, :1] = True
        if axis.categorical:
            value_starts.append(np.searchsorted(ordered, np.arange(axis.n_values + 1)).astype(np.int32))
        first_value[k + 1] = first_value[k] + (axis.n_values + 1 if axis.categorical else 0)
        most_parts = max(most_parts, min(axis.n_values, most_groups if axis.categorical else most_intervals))
    prior_of: dict[int, int] = {}
    priors: list[npt.NDArray[np.float64]] = []
    prior_row = np.zeros(n_axes, dtype=np.int64)
    parts = np.arange(1, most_parts + 1)
    for k, axis in enumerate(axes):
        sort = axis.n_values if axis.categorical else 0
        if sort not in prior_of:
            prior_of[sort] = len(priors)
            prior = np.zeros(most_parts + 1)
            if axis.categorical:
                prior[1:] = math.log(axis.n_values) + log_bell_table(axis.n_values, most_parts)[1:]
            else:
                prior[1:] = math.log(n_rows) + log_binomial(n_rows + parts - 1, parts - 1)
            prior[:2] = 0.0
            priors.append(prior)
        prior_row[k] = prior_of[sort]
    chosen = np.arange(n_axes + 1)
    selection = np.zeros(n_axes + 1)
    if n_axes:
        selection[1:] = log_binomial(n_axes + chosen[1:] - 1, chosen[1:])
    selection += math.log(n_axes + 1)
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
        selection=selection,
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


def _by_first_value(groups: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
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


def in_codes(
    problem: Problem, axes: Sequence[AxisCodes], solution: Solution
) -> dict[int, npt.NDArray[np.int32]]:
    """Part of each value, for each axis in two parts or more; groups are numbered by their first value."""
    parts: dict[int, npt.NDArray[np.int32]] = {}
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
    classes: npt.NDArray[np.int32],
    n_classes: int,
    value_parts: dict[int, npt.NDArray[np.int32]],
) -> tuple[npt.NDArray[np.int32], IntArray]:
    """Return the parts of the non-empty cells, sorted, and their class counts."""
    n_rows = classes.shape[0]
    rows = np.empty((n_rows, len(value_parts)), dtype=np.int32)
    for column, (k, parts) in enumerate(value_parts.items()):
        rows[:, column] = parts[axes[k].codes]
    if not value_parts:
        return np.zeros((1, 0), np.int32), np.bincount(classes, minlength=n_classes)[None, :].astype(np.int64)
    cells, cell_of = np.unique(rows, axis=0, return_inverse=True)
    flat = np.bincount(cell_of.reshape(-1) * n_classes + classes, minlength=cells.shape[0] * n_classes)
    return cells, flat.reshape(cells.shape[0], n_classes).astype(np.int64)


def exact_cost(
    axes: Sequence[AxisCodes],
    classes: npt.NDArray[np.int32],
    n_classes: int,
    value_parts: dict[int, npt.NDArray[np.int32]],
) -> float:
    """Cost of a grid, from scratch."""
    _, counts = count_cells(axes, classes, n_classes, value_parts)
    sizes = {k: int(parts.max()) + 1 for k, parts in value_parts.items()}
    return grid_cost(
        counts,
        len(axes),
        [n for k, n in sizes.items() if not axes[k].categorical],
        [(axes[k].n_values, n) for k, n in sizes.items() if axes[k].categorical],
    )
