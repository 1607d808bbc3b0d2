"""Log factorials for kernels, and what a part and a number of intervals cost."""

from __future__ import annotations

import functools
import math

import numba
import numpy as np
import numpy.typing as npt

from damier.criteria import log_factorials

FloatArray = npt.NDArray[np.float64]

# Beyond the table Stirling's series is exact to the last digit, so the table need not grow with the data.
_LARGEST_TABLE = 1 << 21
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def factorial_table(largest: int) -> FloatArray:
    """Give the shared table of log n! up to ``largest``, or up to where Stirling's series takes over."""
    return log_factorials(min(largest, _LARGEST_TABLE))


@numba.njit(cache=True, nogil=True)
def log_factorial(table, n):  # type: ignore[no-untyped-def]
    """Read log n!, from the table where it reaches."""
    if n < table.shape[0]:
        # Unsigned, or each reading would first be tested for counting from the end.
        return table[np.uint64(n)]
    x = float(n)
    return (x + 0.5) * math.log(x) - x + _HALF_LOG_TWO_PI + 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x)


@numba.njit(cache=True, nogil=True)
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
