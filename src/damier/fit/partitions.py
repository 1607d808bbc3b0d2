"""One variable against the target: the search called, its solution wrapped into a partition."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from damier.intake import CategoricalColumn, Column, NumericColumn, Target, as_categorical
from damier.intake.table import IntArray
from damier.models import GroupPartition, IntervalPartition, Partition

Search = Literal["auto", "greedy", "exact"]
SemiSupervised = Literal["criterion", "bounds"] | None


def partition_column(
    column: Column,
    target: Target,
    weights: IntArray | None = None,
    *,
    search: Search = "auto",
    short_bounds: bool = False,
    semi_supervised: SemiSupervised = None,
) -> Partition:
    """Find the intervals of a numeric column or the groups of a categorical one."""
    if isinstance(column, NumericColumn):
        return discretize_column(
            column,
            target,
            weights,
            search=search,
            short_bounds=short_bounds,
            semi_supervised=semi_supervised,
        )
    return group_column(column, target, weights, search=search)


def discretize_column(
    column: NumericColumn,
    target: Target,
    weights: IntArray | None = None,
    *,
    search: Search = "auto",
    short_bounds: bool = False,
    semi_supervised: SemiSupervised = None,
) -> IntervalPartition:
    """Find the intervals of a numeric column; rows without a label take part as ``semi_supervised`` says."""
    from damier.search.axis.ordered import discretize

    values, bounds = np.ascontiguousarray(column.values), None
    if semi_supervised is None:
        found = discretize(values, target.codes, target.n_classes, weights=weights, search=search)
    else:
        from damier.search.axis.partly_labeled import bounds_between_labels, discretize_partly_labeled

        if semi_supervised == "criterion" or target.n_classes == 0:
            found = discretize_partly_labeled(
                values, target.codes, target.n_classes, weights=weights, search=search
            )
        else:
            known, labeled, its_weights = labeled_rows(target, weights)
            found = discretize(
                values[known], labeled.codes, target.n_classes, weights=its_weights, search=search
            )
            bounds = bounds_between_labels(values, target.codes, found.below, found.above, weights)
    return IntervalPartition.from_cuts(
        found.below,
        found.above,
        short_bounds=short_bounds,
        bounds=bounds,
        kind=column.kind,
        legend=column.legend,
        has_missing=column.n_missing > 0,
        **_fields(column, target, found),
    )


def group_column(
    column: CategoricalColumn,
    target: Target,
    weights: IntArray | None = None,
    *,
    search: Search = "auto",
) -> GroupPartition:
    """Find the groups of the values of a categorical column, from the rows that have a label."""
    from damier.search.axis.unordered import group_values

    known, target, weights = labeled_rows(target, weights)
    if target.n_classes == 0:
        nothing: dict[str, Any] = {"name": column.name, "classes": (), "counts": np.zeros((1, 0))}
        return GroupPartition(groups=(column.categories,), cost=0.0, null_cost=0.0, optimal=True, **nothing)
    if len(known) < len(column.codes):
        column = column.take(known)
    found = group_values(
        column.codes, len(column.categories), target.codes, target.n_classes, weights=weights, search=search
    )
    return GroupPartition.from_codes(
        np.asarray(found.groups), len(found.counts), column.categories, **_fields(column, target, found)
    )


def partition_of_parts(
    column: Column,
    parts: npt.NDArray[np.integer],
    values: Any,
    *,
    short_bounds: bool = False,
    **fields: Any,
) -> Partition:
    """Make a partition of the part of each distinct value.

    Parameters
    ----------
    column
        The column partitioned.
    parts : array of integers
        Part of each of ``values``; those of numbers grow from 0 without gaps.
    values
        The distinct values, as ``column.coded()`` returns them.
    short_bounds : bool
        Place bounds at the number of fewest digits between two values, rather than in the middle.
    fields
        The other fields of the partition: classes, counts, costs.

    Examples
    --------
    >>> column = NumericColumn("age", np.array([30.0, 20.0, 50.0]))
    >>> values, _ = column.coded()
    >>> fields = {"classes": (), "counts": np.zeros((2, 0)), "cost": 0.0, "null_cost": 0.0, "optimal": False}
    >>> partition_of_parts(column, np.array([0, 0, 1]), values, **fields).labels
    (']-inf, 40]', ']40, +inf[')
    """
    if isinstance(column, CategoricalColumn):
        n_groups = int(parts.max()) + 1
        return GroupPartition.from_codes(parts, n_groups, tuple(values), name=column.name, **fields)
    last = np.flatnonzero(np.diff(parts))
    return IntervalPartition.from_cuts(
        values[last],
        values[last + 1],
        short_bounds=short_bounds,
        kind=column.kind,
        legend=column.legend,
        has_missing=bool(np.isnan(values[0])),
        name=column.name,
        **fields,
    )


def labeled_rows(target: Target, weights: IntArray | None = None) -> tuple[IntArray, Target, IntArray | None]:
    """Give the rows that have a label, their target and their weights."""
    known = np.flatnonzero(target.codes >= 0)
    if known.size == target.codes.size:
        return known, target, weights
    return known, Target(target.codes[known], target.classes), None if weights is None else weights[known]


def _fields(column: Column, target: Target, found: Any) -> dict[str, Any]:
    return {
        "name": column.name,
        "classes": tuple(target.classes.tolist()),
        "counts": found.counts,
        "cost": float(found.cost),
        "null_cost": float(found.null_cost),
        "optimal": bool(found.optimal),
    }


def all_met(best: GroupPartition, column: Column) -> bool:
    """Return whether rows hold all values that a partition lists."""
    listed = {value for group in best.groups for value in group}
    return listed <= set(as_categorical(column).categories)
