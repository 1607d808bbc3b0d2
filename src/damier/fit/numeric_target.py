"""One variable against a numeric target: both partitioned together, wrapped into a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from damier.fit.partitions import Search, partition_of_parts
from damier.intake import Column, NumericColumn, NumericTarget
from damier.intake.table import FloatArray, IntArray
from damier.models import Partition, TargetIntervals
from damier.models.target_intervals import distribution_by_part, interval_labels, target_bounds


@dataclass(frozen=True, slots=True)
class OrderedTarget:
    """A numeric target whose rows are in order: made once for all columns of a table.

    Attributes
    ----------
    target : NumericTarget
    axis : damier.search.axis.numeric_target.TargetAxis
        What the search reads of it.
    mean : float
        Mean over all rows.
    overall : array of shape (7,)
        Quantiles over all rows, as in `TargetIntervals`.
    """

    target: NumericTarget
    axis: Any
    mean: float
    overall: FloatArray


def order_target(target: NumericTarget, weights: IntArray | None = None) -> OrderedTarget:
    """Put the rows of a numeric target in order.

    Parameters
    ----------
    target : NumericTarget
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows, each at least one.
    """
    from damier.search.axis.numeric_target import target_axis

    axis = target_axis(target.codes, target.n_distinct, weights)
    everywhere = np.zeros(len(target.codes), np.int64)
    means, quantiles = distribution_by_part(target, everywhere, 1, axis.order, weights)
    return OrderedTarget(target, axis, float(means[0]), quantiles[0])


def refuse_classes_only(target: Any, **options: Any) -> None:
    """Refuse options that only classes have, where the target is a number.

    Raises
    ------
    ValueError
        If the target is a number and one of ``options`` is set.
    """
    if not isinstance(target, NumericTarget):
        return
    for name, value in options.items():
        if value:
            raise ValueError(
                f"{name}={value!r} needs a target of classes, and this one is a number: leave it out, or say "
                "target='classes'."
            )


def partition_for_number(
    column: Column, ordered: OrderedTarget, *, search: Search = "auto", short_bounds: bool = False
) -> Partition:
    """Partition a column and a numeric target together.

    Parameters
    ----------
    column : Column
        Numbers are cut into intervals, categories are grouped.
    ordered : OrderedTarget
        The target, as `order_target` returns it.
    search : {"auto", "greedy", "exact"}
        How groups of categories are searched.
    short_bounds : bool
        Place bounds at the number of fewest digits between two values, rather than in the middle.

    Returns
    -------
    Partition
        Its ``target`` holds the intervals of the target, ``classes`` are these intervals as text.

    Examples
    --------
    >>> column = NumericColumn("size", np.arange(60.0))
    >>> target = NumericTarget(np.arange(60, dtype=np.int32), np.linspace(0.0, 59.0, 60) ** 2)
    >>> partition = partition_for_number(column, order_target(target), short_bounds=True)
    >>> partition.labels
    (']-inf, 14]', ']14, 29]', ']29, 44]', ']44, +inf[')
    >>> partition.target_bounds, partition.target.medians
    ((200.0, 870.0, 2000.0), array([  49.,  484., 1369., 2704.]))
    """
    return optima_for_number(column, ordered, 1.0, search=search, short_bounds=short_bounds)[0]


def optima_for_number(
    column: Column,
    ordered: OrderedTarget,
    least: float,
    *,
    search: Search = "auto",
    short_bounds: bool = False,
) -> list[Partition]:
    """Return the optima of a column and a numeric target whose level is near the best, the best first.

    Parameters
    ----------
    column, ordered, search, short_bounds
        As in `partition_for_number`.
    least : float
        Least share of what the best saves.
    """
    from damier.search.axis.numeric_target import optima_with_target

    values, codes = column.coded()
    found = optima_with_target(
        codes, len(values), ordered.axis, ordered=isinstance(column, NumericColumn), search=search
    )
    saved = (found[0].null_cost - found[0].cost) * least
    kept = [one for one in found[1:] if least < 1.0 and one.null_cost - one.cost >= saved]
    partitions = []
    for one in [found[0], *kept]:
        means, quantiles = distribution_by_part(
            ordered.target, one.parts[codes], len(one.counts), ordered.axis.order, ordered.axis.weights
        )
        bounds = target_bounds(ordered.target, one.target_starts, short_bounds=short_bounds)
        partitions.append(
            partition_of_parts(
                column,
                one.parts,
                values,
                short_bounds=short_bounds,
                classes=interval_labels(bounds),
                counts=one.counts,
                cost=one.cost,
                null_cost=one.null_cost,
                optimal=one.optimal,
                target=TargetIntervals(
                    bounds=bounds,
                    mean=ordered.mean,
                    overall=ordered.overall,
                    means=means,
                    quantiles=quantiles,
                ),
            )
        )
    return partitions
