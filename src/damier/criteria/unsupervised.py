"""Costs of grids without a target: coclusterings of a table, and grids over any variables."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from damier.criteria._checks import IntArray, whole_counts, whole_number
from damier.criteria.combinatorics import log_bell, log_binomial
from damier.criteria.special import gammaln


def coclustering_cost(table: Any, row_labels: Any, column_labels: Any) -> float:
    """Return the cost of a coclustering of a table of counts.

    Parameters
    ----------
    table : sparse array, sparse matrix or array-like of shape (n_rows, n_columns)
        Whole counts; N is their sum. Rows and columns without any instance are not values, and their
        labels are not read.
    row_labels, column_labels : array-like of shape (n_rows,), (n_columns,)
        Cluster of each row and column: whole numbers or anything NumPy can sort.

    Examples
    --------
    >>> import numpy as np
    >>> from damier.criteria import coclustering_cost
    >>> blocks = np.kron(np.eye(2, dtype=int), np.full((5, 5), 4))
    >>> halves = np.repeat([0, 1], 5)
    >>> round(coclustering_cost(blocks, halves, halves), 3)
    836.578
    >>> round(coclustering_cost(blocks, np.zeros(10), np.zeros(10)), 3)
    954.566
    """
    from scipy import sparse

    counts: Any = table if sparse.issparse(table) else np.asarray(table)
    entries: Any = sparse.coo_array(counts)
    if entries.ndim != 2:
        raise ValueError(f"table must have 2 dimensions, got {entries.ndim}")
    weights = whole_counts(entries.data, "table", ndim=1)
    rows, columns = entries.coords
    kept = weights > 0
    weights, rows, columns = weights[kept], rows[kept], columns[kept]
    axes = []
    coordinates = []
    for name, labels, codes, size in (
        ("row_labels", row_labels, rows, entries.shape[0]),
        ("column_labels", column_labels, columns, entries.shape[1]),
    ):
        labels = np.asarray(labels)
        if labels.shape != (size,):
            raise ValueError(f"{name} must have shape ({size},), got {labels.shape}")
        value_counts = np.bincount(codes, weights=weights, minlength=size).astype(np.int64)
        seen = value_counts > 0
        groups = np.zeros(size, dtype=np.int64)
        groups[seen] = np.unique(labels[seen], return_inverse=True)[1]
        axes.append((groups[seen], value_counts[seen]))
        coordinates.append(groups[codes])
    return unsupervised_grid_cost(np.column_stack(coordinates), weights, axes)


def unsupervised_grid_cost(coordinates: Any, counts: Any, axes: Sequence[Any]) -> float:
    """Return the cost of a grid over numeric and categorical variables, without a target.

    Parameters
    ----------
    coordinates : array-like of shape (n_cells, n_variables)
        Part of each variable, from 0, for each cell. Cells may be left out when empty and listed several
        times, so the parts of every instance do as well as the cells.
    counts : array-like of shape (n_cells,)
        Instances of each entry.
    axes : sequence
        One entry per variable: its number of intervals for a numeric variable; for a categorical one the
        pair `(groups, value_counts)`, the group and the number of instances of each of its values.

    Examples
    --------
    A numeric variable in two intervals beside a categorical one of four values in two groups:

    >>> from damier.criteria import unsupervised_grid_cost
    >>> axes = [2, ([0, 0, 1, 1], [5, 5, 5, 5])]
    >>> round(unsupervised_grid_cost([[0, 0], [1, 1]], [10, 10], axes), 3)
    72.131
    >>> round(unsupervised_grid_cost([[0, 0]], [20], [1, ([0, 0, 0, 0], [5, 5, 5, 5])]), 3)
    77.383
    """
    cells = whole_counts(coordinates, "coordinates", ndim=2)
    weights = whole_counts(counts, "counts", ndim=1)
    if cells.shape != (weights.size, len(axes)):
        raise ValueError(
            f"coordinates must have shape ({weights.size}, {len(axes)}), a row per count and a column "
            f"per axis, got {cells.shape}"
        )
    n_instances = int(weights.sum())
    if n_instances == 0:
        raise ValueError("counts holds no instance: a cost needs at least one")
    n_cells = 1
    cost = float(gammaln(n_instances + 1.0))
    for k, axis in enumerate(axes):
        n_parts, variable_cost = _axis_cost(k, axis, cells[:, k], weights, n_instances)
        n_cells *= n_parts
        cost += variable_cost
    cost += float(log_binomial(float(n_instances + n_cells - 1), n_instances))
    sizes = _cell_sizes(cells, weights)
    return cost - float(gammaln(sizes + 1.0).sum())


def _cell_sizes(cells: IntArray, weights: IntArray) -> IntArray:
    """Return the number of instances of each distinct row of `cells`."""
    extents = cells.max(axis=0) + 1
    if np.prod(extents.astype(np.float64)) < 2.0**62:
        # one number a cell: sorting numbers is many times faster than sorting rows
        keys = np.ravel_multi_index(tuple(cells.T), tuple(extents))
        cell = np.unique(keys, return_inverse=True)[1]
    else:
        cell = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    return np.bincount(cell, weights=weights).astype(np.int64)


def _axis_cost(k: int, axis: Any, parts: IntArray, weights: IntArray, n_instances: int) -> tuple[int, float]:
    """Return the number of parts of one variable, and what it costs beyond the cells."""
    if not isinstance(axis, tuple | list):
        n_parts = whole_number(axis, f"axes[{k}]", at_least=1)
        cost = float(np.log(n_instances))
        sizes = _part_sizes(k, parts, weights, n_parts)
    else:
        groups = whole_counts(axis[0], f"the groups of axes[{k}]", ndim=1)
        value_counts = whole_counts(axis[1], f"the value counts of axes[{k}]", ndim=1)
        if groups.shape != value_counts.shape or groups.size == 0:
            raise ValueError(f"axes[{k}] needs one group and one count for each value")
        if value_counts.min() == 0:
            raise ValueError(
                f"axes[{k}] has a value without any instance, which is not a value: leave it out"
            )
        n_parts = int(groups.max()) + 1
        members = np.bincount(groups, minlength=n_parts)
        if members.min() == 0:
            raise ValueError(f"axes[{k}] has an empty group: number the groups 0, 1, 2, ...")
        sizes = _part_sizes(k, parts, weights, n_parts)
        if not np.array_equal(sizes, np.bincount(groups, weights=value_counts, minlength=n_parts)):
            raise ValueError(f"the value counts of axes[{k}] do not add up to those of the cells")
        cost = float(np.log(groups.size) + log_bell(groups.size, n_parts))
        cost += float(
            log_binomial(sizes + members - 1, members - 1).sum() - gammaln(value_counts + 1.0).sum()
        )
    return n_parts, cost + float(gammaln(sizes + 1.0).sum())


def _part_sizes(k: int, parts: IntArray, weights: IntArray, n_parts: int) -> IntArray:
    if parts.max() >= n_parts:
        raise ValueError(f"coordinates names part {parts.max()} of axes[{k}], which has {n_parts}")
    return np.bincount(parts, weights=weights, minlength=n_parts).astype(np.int64)
