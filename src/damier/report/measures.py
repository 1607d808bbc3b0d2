"""Measures of parts that a page shows: certainty of shares, weight of evidence, the price of a cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.criteria import discretization_cost, grouping_cost, part_costs, regression_cost

_Z = 1.959963984540054  # 95% of a normal distribution lie within
# Beyond, prices are not worth their time: a page shows no more parts.
_MOST_PARTS = 60


def wilson(count: int, rows: int) -> tuple[float, float]:
    """Limits of a share at 95% certainty (Wilson, 1927).

    >>> [round(limit, 3) for limit in wilson(5, 10)], wilson(0, 0)
    ([0.237, 0.763], (0.0, 1.0))
    """
    if rows == 0:
        return 0.0, 1.0
    share, z2 = count / rows, _Z * _Z
    middle = share + z2 / (2 * rows)
    half = _Z * math.sqrt(share * (1 - share) / rows + z2 / (4 * rows * rows))
    return max(0.0, (middle - half) / (1 + z2 / rows)), min(1.0, (middle + half) / (1 + z2 / rows))


def weight_of_evidence(counts: Sequence[int], total: int, rows: Sequence[int]) -> list[float]:
    """Weight of evidence of each part for a class against the rest: log P(part | class) / P(part | rest).

    The probabilities are the m-estimates of ``Partition.evidence``; of two classes, it is the difference of
    the evidence for both.

    Parameters
    ----------
    counts, rows : sequence of int
        Rows of the class, and of all classes, in each part.
    total : int
        Rows of the class.

    Examples
    --------
    >>> [round(weight, 3) for weight in weight_of_evidence([40, 10], 50, [50, 50])]
    [1.386, -1.386]
    """
    n = sum(rows)
    return [
        math.log((count + 1 / n) / (total + 2 / n)) - math.log((size - count + 1 / n) / (n - total + 2 / n))
        for count, size in zip(counts, rows, strict=True)
    ]


def information_value(counts: Sequence[int], total: int, rows: Sequence[int]) -> float:
    """Sum over the parts of weight of evidence, times P(part | class) - P(part | rest).

    >>> round(information_value([40, 10], 50, [50, 50]), 3)
    1.662
    """
    n = sum(rows)
    weights = weight_of_evidence(counts, total, rows)
    return sum(
        weight * ((count + 1 / n) / (total + 2 / n) - (size - count + 1 / n) / (n - total + 2 / n))
        for weight, count, size in zip(weights, counts, rows, strict=True)
    )


def merging(partition: Any) -> dict[str, list[Any]]:
    """Say what it costs to do without parts, in nats.

    ``{"cuts": [nats lost if interval i and the next are one, ...]}`` of intervals,
    ``{"merges": [[nats lost if group i and its nearest are one, the nearest], ...]}`` of groups. Nothing
    where the partition has another criterion than those of `damier.criteria`, or very many parts.

    >>> from damier.models import IntervalPartition
    >>> counts = [[20, 0], [0, 20]]
    >>> partition = IntervalPartition(
    ...     name="age", classes=("no", "yes"), counts=counts, cost=discretization_cost(counts),
    ...     null_cost=discretization_cost([[20, 20]]), optimal=True, bounds=(26.0,))
    >>> [round(price, 3) for price in merging(partition)["cuts"]]
    [19.56]
    """
    counts = np.asarray(partition.counts)
    if not 1 < len(counts) <= _MOST_PARTS or getattr(partition, "class_groups", None) is not None:
        return {}
    groups = getattr(partition, "groups", None)
    n_values = None if groups is None else sum(map(len, groups))
    of_number = getattr(partition, "target", None) is not None

    def cost(table: npt.NDArray[Any]) -> float:
        if of_number:
            return regression_cost(table, n_values)
        return discretization_cost(table) if n_values is None else grouping_cost(table, n_values)

    try:
        whole = cost(counts)
    except ValueError:
        return {}
    if abs(whole - float(partition.cost)) > 1e-6 * max(1.0, abs(whole)):
        return {}

    # Merging changes two parts, and the price of the number of parts, which is the same for any two.
    apart = part_costs(counts)
    fewer = np.vstack([counts[0] + counts[1], counts[2:]])
    prior = cost(fewer) - float(part_costs(fewer).sum()) - (whole - float(apart.sum()))
    if groups is None:
        together = part_costs(counts[:-1] + counts[1:])
        return {"cuts": (together - apart[:-1] - apart[1:] + prior).tolist()}
    one, other = np.triu_indices(len(counts), 1)
    prices = np.full((len(counts), len(counts)), np.inf)
    prices[one, other] = part_costs(counts[one] + counts[other]) - apart[one] - apart[other] + prior
    prices = np.minimum(prices, prices.T)
    nearest = prices.argmin(axis=1)
    return {"merges": [[float(prices[i, j]), int(j)] for i, j in enumerate(nearest)]}
