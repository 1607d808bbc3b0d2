"""A numeric target cut into intervals, and how it is distributed in each part of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from damier.intake.dates import number_text
from damier.intake.table import FloatArray, IntArray, NumericTarget
from damier.models.bounds import midpoint, shortest
from damier.models.codec import FieldError, Model, check_shape

# Shares of the rows of a part that lie below its quantiles: the least value, ..., the median, ..., the
# greatest.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_MEDIAN = QUANTILES.index(0.5)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TargetIntervals(Model):
    """Intervals of a numeric target, and the target's distribution in each part of a variable.

    Parameters
    ----------
    bounds : tuple of float
        Inner bounds of the target's intervals, ascending; a value goes left of a bound it equals.
    mean : float
        Mean of the target over all training rows.
    overall : array of shape (7,)
        Least value, 5%, 25%, 50%, 75% and 95% quantile, greatest value of the target over all rows.
    means : array of shape (n_parts,)
        Mean of the target in each part.
    quantiles : array of shape (n_parts, 7)
        The same seven quantiles in each part.
    """

    bounds: tuple[float, ...]
    mean: float
    overall: FloatArray
    means: FloatArray
    quantiles: FloatArray

    def _check(self) -> None:
        object.__setattr__(self, "bounds", tuple(float(b) for b in self.bounds))
        if any(not left < right for left, right in zip(self.bounds, self.bounds[1:], strict=False)):
            raise FieldError("bounds", f"the bounds of the target must be ascending, got {self.bounds}")
        check_shape(self, "overall", len(QUANTILES))
        check_shape(self, "quantiles", len(self.means), len(QUANTILES))
        if (np.diff(self.quantiles, axis=1) < 0).any() or (np.diff(self.overall) < 0).any():
            raise FieldError("quantiles", "quantiles must be ascending")

    @property
    def median(self) -> float:
        """Median of the target over all training rows."""
        return float(self.overall[_MEDIAN])

    @property
    def medians(self) -> FloatArray:
        """Median of the target in each part."""
        return self.quantiles[:, _MEDIAN]

    def _described(self) -> str:
        return f"{len(self.bounds) + 1} target intervals, mean {self.mean:.4g}, median {self.median:.4g}"


def interval_labels(bounds: Sequence[float]) -> tuple[str, ...]:
    """Write the intervals of a target for people, no two alike.

    >>> interval_labels([2.5, 10.0])
    (']-inf, 2.5]', ']2.5, 10]', ']10, +inf[')
    """
    texts = [number_text(bound, "number") for bound in bounds]
    if len(set(texts)) < len(texts):
        texts = [repr(float(bound)) for bound in bounds]
    written = [f"]{low}, {high}]" for low, high in zip(["-inf", *texts], texts, strict=False)]
    return (*written, f"]{texts[-1] if texts else '-inf'}, +inf[")


def target_bounds(
    target: NumericTarget, starts: IntArray, *, short_bounds: bool = False
) -> tuple[float, ...]:
    """Place the bounds of a target's intervals, from the first distinct value of each.

    >>> target = NumericTarget(np.array([0, 1, 2], np.int32), np.array([1.0, 2.0, 5.0]))
    >>> target_bounds(target, np.array([0, 2]))
    (3.5,)
    """
    place = shortest if short_bounds else midpoint
    return tuple(
        float(place(float(target.distinct[start - 1]), float(target.distinct[start])))
        for start in starts[1:].tolist()
    )


def distribution_by_part(
    target: NumericTarget, parts: IntArray, n_parts: int, order: IntArray, weights: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and quantiles of a target in each part, a row of weight w counted w times.

    Parameters
    ----------
    target : NumericTarget
    parts : array of shape (n_rows,)
        Part of each row; each part has rows.
    n_parts : int
    order : array of shape (n_rows,)
        The rows by ascending target.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.

    Returns
    -------
    means : array of shape (n_parts,)
    quantiles : array of shape (n_parts, 7)
        At the shares `QUANTILES`, between two rows where a share lies between them, as NumPy does.

    Examples
    --------
    >>> target = NumericTarget(np.array([0, 1, 2], np.int32), np.array([1.0, 2.0, 5.0]))
    >>> means, quantiles = distribution_by_part(target, np.array([0, 1, 1]), 2, np.arange(3))
    >>> means, quantiles[:, 3]
    (array([1. , 3.5]), array([1. , 3.5]))
    """
    in_order = parts[order]
    kind = np.uint16 if n_parts < 1 << 16 else np.int64  # NumPy sorts short integers in linear time
    by_part = order[np.argsort(in_order.astype(kind), kind="stable")]
    codes, its_part = target.codes[by_part], parts[by_part]
    # One entry per part and value: sums do not depend on the order of the rows, nor on how they are weighted.
    first = np.flatnonzero((np.diff(codes, prepend=-1) != 0) | (np.diff(its_part, prepend=-1) != 0))
    values = target.distinct[codes[first]]
    if weights is None:
        held = np.diff(first, append=len(codes))
    else:
        held = np.add.reduceat(weights[by_part], first)
    counted = np.cumsum(held)
    starts = np.flatnonzero(np.diff(its_part[first], prepend=-1))
    rows = np.add.reduceat(held, starts)
    shares = held / np.repeat(rows, np.diff(starts, append=len(held)))
    means = np.add.reduceat(shares * values, starts)
    ends = np.cumsum(rows)
    at = (ends - rows)[:, None] + np.asarray(QUANTILES) * (rows[:, None] - 1.0)
    below = np.floor(at)
    left = values[np.searchsorted(counted, below, side="right")]
    right = values[np.searchsorted(counted, np.ceil(at), side="right")]
    quantiles = np.where(left == right, left, left * (1.0 - (at - below)) + right * (at - below))
    # Rounding may carry a mean beyond the values it is taken of.
    means = np.clip(means, quantiles[:, 0], quantiles[:, -1])
    return means, np.maximum.accumulate(quantiles, axis=1)
