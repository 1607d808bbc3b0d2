"""One variable and the classes partitioned together: the search called, its solutions wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.intake import Column, NumericColumn, Target
from damier.intake.table import IntArray
from damier.models import GroupPartition, IntervalPartition, Partition


def joint_partitions(
    column: Column,
    target: Target,
    weights: IntArray | None = None,
    *,
    n_starts: int = 10,
    short_bounds: bool = False,
) -> tuple[Partition, ...]:
    """Partition a column together with the classes; return the distinct optima found, the best first."""
    from damier.search.axis.class_groups import partition_with_classes
    from damier.search.axis.partly_labeled import distinct_values

    ordered = isinstance(column, NumericColumn)
    elements: IntArray
    if isinstance(column, NumericColumn):
        values, elements = distinct_values(column.values)
        n_elements = values.size
    else:
        elements, n_elements = column.codes.astype(np.int64), len(column.categories)
    found = partition_with_classes(
        elements,
        n_elements,
        target.codes.astype(np.int64),
        target.n_classes,
        ordered=ordered,
        weights=weights,
        n_starts=n_starts,
    )
    partitions: list[Partition] = []
    for solution in found:
        n_parts = len(solution.counts)
        keys = solution.parts[elements] * target.n_classes + target.codes
        counts = np.bincount(keys, weights=weights, minlength=n_parts * target.n_classes)
        fields: dict[str, Any] = {
            "name": column.name,
            "classes": tuple(target.classes.tolist()),
            "counts": counts.reshape(n_parts, target.n_classes).astype(np.int64),
            "cost": solution.cost,
            "null_cost": solution.null_cost,
            "optimal": False,
            "class_groups": _groups(solution.class_groups, target),
        }
        if isinstance(column, NumericColumn):
            last = np.flatnonzero(np.diff(solution.parts))
            partitions.append(
                IntervalPartition.from_cuts(
                    values[last],
                    values[last + 1],
                    short_bounds=short_bounds,
                    kind=column.kind,
                    has_missing=column.n_missing > 0,
                    **fields,
                )
            )
        else:
            partitions.append(GroupPartition.from_codes(solution.parts, n_parts, column.categories, **fields))
    return tuple(partitions)


def _groups(labels: IntArray, target: Target) -> tuple[tuple[Any, ...], ...]:
    classes = target.classes.tolist()
    return tuple(
        tuple(classes[w] for w in np.flatnonzero(labels == group).tolist())
        for group in range(labels.max() + 1)
    )


def refuse_grouped_semi_supervision(group_classes: bool, semi_supervised: str | None) -> None:
    """Refuse two settings that have no criterion in common.

    Raises
    ------
    ValueError
        If both ``group_classes`` and ``semi_supervised`` are set.
    """
    if group_classes and semi_supervised is not None:
        raise ValueError(
            "group_classes=True and semi_supervised cannot be combined: no criterion groups the classes of "
            "rows without a label. Choose one of them."
        )
