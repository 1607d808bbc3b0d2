"""Log factorials for kernels, and what a part and a number of intervals cost."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from damier.search.kernels import kernel, log_factorial

FloatArray = npt.NDArray[np.float64]


@kernel
def part_cost(table, counts):  # type: ignore[no-untyped-def]
    """Cost of one part: log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)]."""
    n_classes = counts.shape[0]
    n = 0
    cost = 0.0
    for j in range(n_classes):
        n += counts[j]
        cost -= log_factorial(table, counts[j])
    return cost + log_factorial(table, n + n_classes - 1) - log_factorial(table, n_classes - 1)


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
