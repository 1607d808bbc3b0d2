"""Costs of partitions that explain a target: intervals, groups, grids, and groups of classes beside them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from damier.criteria._checks import FloatArray, IntArray, class_counts_table, whole_counts, whole_number
from damier.criteria.combinatorics import log_bell, log_binomial
from damier.criteria.special import gammaln


def part_costs(counts: Any) -> FloatArray:
    """Return the cost of each part, log C(N_i+J-1, J-1) + log(N_i! / prod_j N_ij!).

    Parameters
    ----------
    counts : array-like of shape (n_parts, n_classes)
        Whole counts N_ij. The number of classes J is the number of columns.

    Examples
    --------
    >>> from damier.criteria import part_costs
    >>> part_costs([[1, 1], [0, 0]]).round(6).tolist()  # log 3 + log 2, and nothing
    [1.791759, 0.0]
    """
    table = whole_counts(counts, "counts", ndim=2)
    sizes = table.sum(axis=1)
    costs: FloatArray = _class_prior(sizes, table.shape[1]) + _multinomial(sizes, table)
    return costs


def _class_prior(sizes: IntArray, n_classes: int) -> FloatArray:
    prior: FloatArray = log_binomial(sizes + n_classes - 1, n_classes - 1)
    return prior


def _multinomial(sizes: IntArray, table: IntArray) -> FloatArray:
    logs: FloatArray = gammaln(sizes + 1.0) - gammaln(table + 1.0).sum(axis=1)
    return logs


def _interval_prior(n_instances: int, n_parts: int) -> float:
    return float(np.log(n_instances) + log_binomial(n_instances + n_parts - 1, n_parts - 1))


def _group_prior(n_values: int, n_groups: int) -> float:
    return float(np.log(n_values) + log_bell(n_values, n_groups))


def discretization_cost(counts: Any) -> float:
    """Return the cost of a partition of a numeric variable into intervals.

    `log N + log C(N+I-1, I-1) + sum_i log C(N_i+J-1, J-1) + sum_i log(N_i! / prod_j N_ij!)`, in nats.

    Parameters
    ----------
    counts : array-like of shape (n_intervals, n_classes)
        Whole counts N_ij; the number of classes J is the number of columns.

    Examples
    --------
    >>> from damier.criteria import discretization_cost
    >>> two, one = discretization_cost([[20, 0], [0, 20]]), discretization_cost([[20, 20]])
    >>> round(two, 3), round(one, 3)
    (13.491, 33.052)
    """
    table = class_counts_table(counts)
    return _interval_prior(int(table.sum()), table.shape[0]) + float(part_costs(table).sum())


def grouping_cost(counts: Any, n_values: int) -> float:
    """Return the cost of a partition of the values of a categorical variable into groups.

    `log V + log B(V, I) + sum_i log C(N_i+J-1, J-1) + sum_i log(N_i! / prod_j N_ij!)`, in nats.

    Parameters
    ----------
    counts : array-like of shape (n_groups, n_classes)
        Whole counts N_ij; the number of classes J is the number of columns.
    n_values : int
        Number V of distinct values in the data, at least the number of groups.

    Examples
    --------
    >>> from damier.criteria import grouping_cost
    >>> round(grouping_cost([[20, 0], [0, 20]], n_values=5), 3)
    10.471
    """
    table = class_counts_table(counts)
    n_values = whole_number(n_values, "n_values", at_least=1)
    if n_values < table.shape[0]:
        raise ValueError(f"{table.shape[0]} groups need as many values, but n_values is {n_values}")
    return _group_prior(n_values, table.shape[0]) + float(part_costs(table).sum())


def grid_cost(
    cells: Any,
    n_variables: int,
    numeric_parts: Iterable[int] = (),
    categorical_parts: Iterable[tuple[int, int]] = (),
) -> float:
    """Return the cost of a supervised data grid.

    Parameters
    ----------
    cells : array-like of shape (n_cells, n_classes)
        Class counts of the non-empty cells, in any order.
    n_variables : int
        Number K of variables on offer, selected or not.
    numeric_parts : iterable of int
        Number of intervals of each selected numeric variable.
    categorical_parts : iterable of (int, int)
        Number of values and number of groups of each selected categorical variable.

    Examples
    --------
    Two variables of which neither informs, and an exclusive or of both:

    >>> from damier.criteria import grid_cost
    >>> round(grid_cost([[20, 20]], n_variables=2), 3)
    30.462
    >>> xor = [[10, 0], [0, 10], [0, 10], [10, 0]]
    >>> round(grid_cost(xor, n_variables=2, numeric_parts=[2, 2]), 3)
    26.594
    """
    table = class_counts_table(cells, "cells")
    n_instances = int(table.sum())
    n_variables = whole_number(n_variables, "n_variables", at_least=0)
    intervals = [whole_number(parts, "numeric_parts", at_least=1) for parts in numeric_parts]
    groups = []
    for pair in categorical_parts:
        n_values, n_groups = pair
        groups.append(
            (
                whole_number(n_values, "number of values in categorical_parts", at_least=1),
                whole_number(n_groups, "number of groups in categorical_parts", at_least=1),
            )
        )
    n_cells = 1
    for n_parts in intervals + [n_groups for _, n_groups in groups]:
        if n_parts < 2:
            raise ValueError("a selected variable has two parts or more: leave out those with one")
        n_cells *= n_parts
    n_selected = len(intervals) + len(groups)
    if n_selected > n_variables:
        raise ValueError(f"{n_selected} variables are selected, but n_variables is {n_variables}")
    if table.shape[0] > n_cells:
        raise ValueError(f"{table.shape[0]} cells given, but the parts only make {n_cells}")
    for n_values, n_groups in groups:
        if n_groups > n_values:
            raise ValueError(f"{n_groups} groups need as many values, but there are {n_values}")
    cost = float(np.log(n_variables + 1))
    if n_selected:
        cost += log_binomial(n_variables + n_selected - 1, n_selected)
    cost += sum(_interval_prior(n_instances, n_parts) for n_parts in intervals)
    cost += sum(_group_prior(n_values, n_groups) for n_values, n_groups in groups)
    return cost + float(part_costs(table).sum())


def regression_cost(counts: Any, n_values: int | None = None) -> float:
    """Return the cost of a partition of a variable together with intervals of a numeric target.

    The input is priced by `discretization_cost` or, when `n_values` is given, by `grouping_cost`, with the
    target's intervals as classes; the target adds `log N + sum_j log N_.j!`: the number of its intervals, and
    the ranks of the rows inside each.

    Parameters
    ----------
    counts : array-like of shape (n_parts, n_target_intervals)
        Whole counts N_ij.
    n_values : int, optional
        Number of distinct values of a categorical variable; None for a numeric one.

    Examples
    --------
    >>> from damier.criteria import regression_cost
    >>> two, one = regression_cost([[20, 0], [0, 20]]), regression_cost([[40]])
    >>> round(two, 3), round(one, 3)
    (101.852, 117.698)
    """
    table = class_counts_table(counts)
    cost = discretization_cost(table) if n_values is None else grouping_cost(table, n_values)
    return cost + _target_ranks(table)


def _target_ranks(table: IntArray) -> float:
    """Cost of the number of a numeric target's intervals, and of the ranks of the rows inside each."""
    sizes = table.sum(axis=0)
    return float(np.log(sizes.sum()) + gammaln(sizes + 1.0).sum())


def regression_grid_cost(
    cells: Any,
    n_variables: int,
    numeric_parts: Iterable[int] = (),
    categorical_parts: Iterable[tuple[int, int]] = (),
) -> float:
    """Return the cost of a data grid over several variables together with intervals of a numeric target.

    `grid_cost` with the target's intervals as classes, plus `log N + sum_j log N_.j!`.

    Parameters
    ----------
    cells : array-like of shape (n_cells, n_target_intervals)
        Counts of the non-empty cells, in any order.
    n_variables, numeric_parts, categorical_parts
        As in `grid_cost`.

    Examples
    --------
    >>> from damier.criteria import regression_grid_cost
    >>> xor = [[10, 0], [0, 10], [0, 10], [10, 0]]
    >>> round(regression_grid_cost(xor, n_variables=2, numeric_parts=[2, 2]), 3)
    114.954
    >>> round(regression_grid_cost([[40]], n_variables=2), 3)
    115.108
    """
    cost = grid_cost(cells, n_variables, numeric_parts, categorical_parts)
    return cost + _target_ranks(class_counts_table(cells, "cells"))


def class_grouping_cost(
    counts: Any,
    class_groups: Sequence[Any] | IntArray,
    class_counts: Any,
    n_values: int | None = None,
) -> float:
    """Return the cost of a partition of a variable together with a partition of the classes.

    The input is priced over super-classes, by `discretization_cost` or, when `n_values` is given, by
    `grouping_cost`; the classes add
    `log W + log B(W, J) + sum_j [log C(N_.j+m_j-1, m_j-1) + log N_.j!] - sum_w log n_w!`.

    Parameters
    ----------
    counts : array-like of shape (n_parts, n_super_classes) or (n_parts, n_classes)
        Whole counts per part; counts per class are added up by super-class.
    class_groups : sequence
        The super-class label of each class, or the groups themselves as sequences of class indices.
        Super-classes are in the order of their sorted labels, or of the groups as given.
    class_counts : array-like of shape (n_classes,)
        Instances of each class.
    n_values : int, optional
        Number of distinct values of a categorical variable; None for a numeric one.

    Examples
    --------
    >>> from damier.criteria import class_grouping_cost
    >>> counts = [[9, 11, 0], [0, 0, 20]]
    >>> round(class_grouping_cost(counts, [0, 0, 1], [9, 11, 20]), 3)
    31.052
    >>> round(class_grouping_cost(counts, [[0, 1], [2]], [9, 11, 20]), 3)
    31.052
    """
    sizes = whole_counts(class_counts, "class_counts", ndim=1)
    n_classes = sizes.size
    group_of_class, n_groups = _super_classes(class_groups, n_classes)
    table = class_counts_table(counts)
    group_sizes = np.bincount(group_of_class, weights=sizes, minlength=n_groups).astype(np.int64)
    grouped = _over_super_classes(table, group_of_class, n_groups, sizes, group_sizes)
    members = np.bincount(group_of_class, minlength=n_groups)
    cost = discretization_cost(grouped) if n_values is None else grouping_cost(grouped, n_values)
    cost += _group_prior(n_classes, n_groups)
    cost += float((log_binomial(group_sizes + members - 1, members - 1) + gammaln(group_sizes + 1.0)).sum())
    return cost - float(gammaln(sizes + 1.0).sum())


def _super_classes(class_groups: Sequence[Any] | IntArray, n_classes: int) -> tuple[IntArray, int]:
    """Return the super-class index of each class and the number of super-classes."""
    entries = list(class_groups)
    if isinstance(class_groups, np.ndarray) or all(np.ndim(entry) == 0 for entry in entries):
        if len(entries) != n_classes:
            raise ValueError(f"class_groups has {len(entries)} labels for {n_classes} classes")
        labels, group_of_class = np.unique(np.asarray(entries), return_inverse=True)
        return group_of_class.astype(np.int64), labels.size
    group_of_class = np.full(n_classes, -1, dtype=np.int64)
    for group, members in enumerate(entries):
        indices = whole_counts(members, "class_groups", ndim=1)
        if indices.size == 0:
            raise ValueError("class_groups holds an empty group")
        if indices.max() >= n_classes:
            raise ValueError(f"class_groups names class {indices.max()}, but there are {n_classes} classes")
        if (group_of_class[indices] >= 0).any() or np.unique(indices).size < indices.size:
            raise ValueError("class_groups names a class twice")
        group_of_class[indices] = group
    if (group_of_class < 0).any():
        raise ValueError(f"class {int(np.argmin(group_of_class))} is in no group of class_groups")
    return group_of_class, len(entries)


def _over_super_classes(
    table: IntArray, group_of_class: IntArray, n_groups: int, sizes: IntArray, group_sizes: IntArray
) -> IntArray:
    """Return parts x super-classes, whichever of the two layouts was given; totals must agree."""
    totals = table.sum(axis=0)
    if table.shape[1] == sizes.size and np.array_equal(totals, sizes):
        grouped = np.zeros((table.shape[0], n_groups), dtype=np.int64)
        np.add.at(grouped.T, group_of_class, table.T)
        return grouped
    if table.shape[1] == n_groups and np.array_equal(totals, group_sizes):
        return table
    if table.shape[1] not in (sizes.size, n_groups):
        raise ValueError(
            f"counts has {table.shape[1]} columns: neither {sizes.size} classes nor {n_groups} super-classes"
        )
    raise ValueError("the column totals of counts do not agree with class_counts")
