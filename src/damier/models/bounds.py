"""Where a cut between two neighbouring training values is placed."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from damier.intake.table import FloatArray, NumericKind

_MICROSECONDS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000)


def midpoint(below: float, above: float) -> float:
    """Midpoint of two neighbouring values, such that ``below <= midpoint < above``.

    The left value itself is the bound when the middle rounds onto the right one, which is also what happens
    between a number and plus infinity.

    >>> midpoint(2.0, 3.0), midpoint(1.0, float("inf")), midpoint(float("-inf"), 1.0)
    (2.5, 1.0, -inf)
    """
    middle = 0.5 * (below + above)
    if math.isinf(middle) and math.isfinite(below) and math.isfinite(above):
        middle = 0.5 * below + 0.5 * above
    return middle if below <= middle < above else below


def midpoints(below: FloatArray, above: FloatArray) -> FloatArray:
    """Midpoint of each pair of neighbouring values, under the same rule.

    >>> midpoints(np.array([-np.inf, 2.0, 3.0]), np.array([2.0, 3.0, np.inf]))
    array([-inf,  2.5,  3. ])
    """
    with np.errstate(invalid="ignore"):  # minus and plus infinity have no middle: the left one is the bound
        middle = 0.5 * below + 0.5 * above
    return np.where((below <= middle) & (middle < above), middle, below)


def shortest(below: float, above: float, kind: NumericKind = "number") -> float:
    """Find the number of fewest digits that still separates two neighbouring values.

    Among the equally short, the nearest to the midpoint. For dates and times: the roundest moment.

    >>> shortest(2.4437, 2.4519), shortest(-0.3, 1.2), shortest(1234.0, 1777.0)
    (2.45, 0.0, 1500.0)
    """
    middle = midpoint(below, above)
    if kind == "rank" or not (math.isfinite(below) and math.isfinite(above)):
        return middle
    if kind != "number":
        for unit in _MICROSECONDS:
            moment = math.floor(middle / unit) * float(unit)
            if below <= moment < above:
                return moment
        return middle
    if below <= 0.0 < above:
        return 0.0
    # Digits as printed: the float written 0.1 is 0.1 here.
    low, high, centre = (Decimal(repr(float(x))) for x in (below, above, middle))
    # The largest power of ten with a multiple between both: none can exceed the larger of the two values.
    exponent = max(low.copy_abs(), high.copy_abs()).adjusted()
    for power in range(exponent, exponent - 20, -1):
        step = Decimal(1).scaleb(power)
        first = (low / step).to_integral_value("ROUND_CEILING")
        last = (high / step).to_integral_value("ROUND_CEILING") - 1  # strictly below
        nearest = (centre / step).to_integral_value("ROUND_HALF_EVEN")
        candidate = float(min(max(nearest, first), last) * step)
        if first <= last and below <= candidate < above:
            return candidate
    return middle
