"""Axes of numbers: where a value stands, and the round numbers on it."""

from __future__ import annotations

import math

# Ticks of an axis, about.
_TICKS = 5
# The axis is logarithmic where its ends are this many times apart, and all numbers positive.
_LOG_FROM = 20.0


class Axis:
    """An axis between two numbers, logarithmic where all are positive and the ends are twenty times apart.

    >>> axis = Axis(0.3, 9.2, least=-1.0)
    >>> axis.ticks(), axis.place(0.3), axis.place(100.0)
    ([2.0, 4.0, 6.0, 8.0], 0.0, 100.0)
    >>> axis = Axis(1.0, 100.0, least=0.5)
    >>> axis.ticks(), axis.place(10.0)
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], 50.0)
    """

    def __init__(self, low: float, high: float, least: float) -> None:
        self.is_log = least > 0 and low > 0 and high >= _LOG_FROM * low
        self.low, self.high = low, high

    def place(self, value: float) -> float:
        """Place of a value on the axis, in percent."""
        if self.is_log:
            value, low, high = (math.log(max(x, self.low / 2)) for x in (value, self.low, self.high))
        else:
            value, low, high = value / 2, self.low / 2, self.high / 2  # halves: differences stay finite
        return min(100.0, max(0.0, 100.0 * (value - low) / (high - low)))

    def ticks(self) -> list[float]:
        """Round numbers on the axis."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(powers) <= _TICKS - 1 else (1,)
            held = [times * 10.0**power for power in powers for times in steps]
            return [tick for tick in held if self.low <= tick <= self.high]
        half = self.high / 2 - self.low / 2
        step = 10.0 ** math.floor(math.log10(half) + math.log10(2 / _TICKS))
        step *= next(n for n in (1, 2, 5, 10) if 2 * (half / n / step) <= _TICKS + 1e-9)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [k * step for k in range(first, last + 1)]


def short(value: float) -> str:
    """Write a round number beside an axis.

    >>> short(250.0), short(-20_000.0), short(1.5e6), short(3e12), short(0.002)
    ('250', '-20k', '1.5M', '3e+12', '0.002')
    """
    for least, unit, sign in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if least <= abs(value) < 1e12:
            return f"{value / unit:.4g}{sign}"
    return f"{value:.4g}"
