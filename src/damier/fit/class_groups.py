"""One variable and the classes partitioned together: the search called, its solutions wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.fit.partitions import partition_of_parts
from damier.intake import Column, NumericColumn, Target
from damier.intake.table import IntArray
from damier.models import Partition


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

    values, elements = column.coded()
    n_classes = target.n_classes
    found = partition_with_classes(
        elements,
        len(values),
        target.codes.astype(np.int64),
        n_classes,
        ordered=isinstance(column, NumericColumn),
        weights=weights,
        n_starts=n_starts,
    )
    partitions = []
    for solution in found:
        n_parts = len(solution.counts)
        keys = solution.parts[elements] * n_classes + target.codes
        counts = np.bincount(keys, weights=weights, minlength=n_parts * n_classes)
        partitions.append(
            partition_of_parts(
                column,
                solution.parts,
                values,
                short_bounds=short_bounds,
                classes=tuple(target.classes.tolist()),
                counts=counts.reshape(n_parts, n_classes).astype(np.int64),
                cost=solution.cost,
                null_cost=solution.null_cost,
                optimal=False,
                class_groups=_groups(solution.class_groups, target),
            )
        )
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
