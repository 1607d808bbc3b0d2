"""What a part costs, and a number of intervals.

With all other axes frozen, every criterion of the family is the sum of three things: a price of the number
of parts, a price f(N, m) of each part of N rows and m values, and minus log T! for each of its cells of T
rows. A cell is a part's rows of one class or, in a grid without a target, of one combination of the other
axes' parts. The engine of one axis is the same for all of them: it is given the price of the number of parts
as an array, and f as a `Price`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from damier.search.kernels import FloatArray, IntArray, inner, log_factorial


class Price(NamedTuple):
    """Price of a part of N rows and m values: log [(N + x)! / x!] with x = ``fixed`` + ``per_value`` m."""

    fixed: int
    per_value: int


def supervised_price(n_classes: int) -> Price:
    """Price of a part whose cells are classes: its class counts are one of C(N + J - 1, J - 1) choices."""
    return Price(n_classes - 1, 0)


# Groups of classes, and clusters of values without a target: the rows of a part are shared among its values.
CLUSTERS = Price(-1, 1)
# Intervals without a target, and those of a numeric target: the ranks of the rows in their interval, log N!.
# Such costs are not concave in the counts of a part: no search that rests on concavity (the exact search, the
# gathering of values around groups) may be given this price.
RANKS = Price(0, 0)


@inner
def part_cost(table: FloatArray, counts: IntArray, extra: int) -> float:
    """Cost of one part: log [(n + x)! / (x! n_1! ... n_J!)], x being ``extra``."""
    n = 0
    cost: float = 0.0
    for j in range(counts.shape[0]):
        n += counts[j]
        cost -= log_factorial(table, counts[j])
    cost += log_factorial(table, n + extra) - log_factorial(table, extra)
    return cost


def interval_penalties(total: int, most: int) -> FloatArray:
    """Cost of I = 1 .. ``most`` intervals over ``total`` rows: log N + log C(N + I - 1, I - 1)."""
    steps = np.arange(1, most, dtype=np.float64)
    penalties = np.empty(most)
    penalties[0] = 0.0
    np.cumsum(np.log1p(total / steps), out=penalties[1:])
    return penalties + math.log(total)


@functools.cache
def least_regret(n_classes: int) -> float:
    """Give the least that a part costs beyond its entropy: that of some rows, all of distinct classes."""
    least = math.inf
    cost = 0.0
    for rows in range(1, n_classes + 1):
        cost += math.log(rows + n_classes - 1)
        least = min(least, cost - rows * math.log(rows))
    return least
