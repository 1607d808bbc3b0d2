"""One variable against the target: the search called, its solution wrapped into a partition."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from damier.intake import CategoricalColumn, Column, NumericColumn, Target
from damier.intake.table import IntArray
from damier.models import GroupPartition, IntervalPartition, Partition

Search = Literal["auto", "greedy", "exact"]


def partition_column(
    column: Column,
    target: Target,
    weights: IntArray | None = None,
    *,
    search: Search = "auto",
    short_bounds: bool = False,
) -> Partition:
    """Find the intervals of a numeric column or the groups of a categorical one."""
    if isinstance(column, NumericColumn):
        return discretize_column(column, target, weights, search=search, short_bounds=short_bounds)
    return group_column(column, target, weights, search=search)


def discretize_column(
    column: NumericColumn,
    target: Target,
    weights: IntArray | None = None,
    *,
    search: Search = "auto",
    short_bounds: bool = False,
) -> IntervalPartition:
    """Find the intervals of a numeric column."""
    from damier.search.ordered import discretize

    values = np.ascontiguousarray(column.values)
    found = discretize(values, target.codes, target.n_classes, weights=weights, search=search)
    return IntervalPartition.from_cuts(
        found.below,
        found.above,
        short_bounds=short_bounds,
        kind=column.kind,
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
    """Find the groups of the values of a categorical column."""
    from damier.search.unordered import group_values

    found = group_values(
        column.codes, len(column.categories), target.codes, target.n_classes, weights=weights, search=search
    )
    return GroupPartition.from_codes(
        np.asarray(found.groups), len(found.counts), column.categories, **_fields(column, target, found)
    )


def _fields(column: Column, target: Target, found: Any) -> dict[str, Any]:
    return {
        "name": column.name,
        "classes": tuple(target.classes.tolist()),
        "counts": found.counts,
        "cost": float(found.cost),
        "null_cost": float(found.null_cost),
        "optimal": bool(found.optimal),
    }
