"""A numeric target of a source: counted in bins, then by the parts of columns; its rows are never read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from damier.fit.numeric_target import OrderedTarget, order_target
from damier.intake import NumericTarget, read_numbers
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import ALL, CHANGED, MOST_VALUES, Binning, numbers_of
from damier.intake.engines.source import Labels, Source
from damier.intake.table import FloatArray, IntArray, NumericColumn, Table
from damier.intake.target import classes_look_like_number
from damier.models import TargetIntervals
from damier.models.bounds import midpoint
from damier.models.target_intervals import distribution_by_part
from damier.search.run import Run

if TYPE_CHECKING:
    from damier.search.counted_target import TargetBins

# Bins of the target.
_TARGET_BINS = 1 << 14


class Fine(Protocol):
    """Bins, or pieces, of a numeric target."""

    @property
    def low(self) -> FloatArray:
        """Least value of each."""

    @property
    def high(self) -> FloatArray:
        """Greatest value of each."""


class Pieces(NamedTuple):
    """Intervals of a numeric target with their least and greatest values, near enough."""

    bounds: tuple[float, ...]
    low: FloatArray
    high: FloatArray


class NumberSource(NamedTuple):
    """A source whose target is a number.

    Attributes
    ----------
    source : Source
    name : str
        The target.
    weight : str or None
        The weights.
    bins : TargetBins
        The target, counted.
    mean : float
        Its mean over all rows, from its bins.
    overall : array of shape (7,)
        Its quantiles, as in `TargetIntervals`.
    """

    source: Source
    name: str
    weight: str | None
    bins: TargetBins
    mean: float
    overall: FloatArray

    def labels(self, axes: tuple[Axis, ...], counts: IntArray) -> Labels:
        """Return labels of the cells of columns."""
        return Labels(self.name, np.empty(0), [], counts, self.weight, axes)

    def by_intervals(self, bounds: Sequence[float], counts: IntArray) -> Labels:
        """Return labels of the intervals of the target."""
        return self.labels((Axis(self.name, tuple(bounds)),), counts)

    def by_parts(self, axis: Axis, counts: IntArray) -> Labels:
        """Return labels of the parts of a column."""
        return self.labels((axis,), counts)

    @property
    def block_labels(self) -> Labels:
        """Labels of the blocks of the target."""
        bins = self.bins
        bounds = [midpoint(float(b), float(a)) for b, a in zip(*bins.edges(bins.blocks[1:]), strict=True)]
        return self.by_intervals(bounds, np.add.reduceat(bins.rows, bins.blocks))

    @property
    def points(self) -> NumericTarget:
        """The target at one value per bin."""
        return NumericTarget(np.arange(len(self.bins.rows), dtype=np.int32), self.bins.middle)

    def pieces(self, bounds: Sequence[float]) -> Pieces:
        """Take the blocks of the target apart where one of some bounds lies in them."""
        bins = self.bins
        cuts = np.union1d(self.block_labels.axes[0].bounds, np.asarray(bounds, np.float64))
        left, right = np.append(-np.inf, cuts), np.append(cuts, np.inf)
        # A bin that a bound lies in is taken apart there.
        first = np.minimum(np.searchsorted(bins.high, left, side="right"), len(bins.low) - 1)
        last = np.maximum(np.searchsorted(bins.low, right, side="right") - 1, 0)
        low = np.maximum(bins.low[first], np.nextafter(left, np.inf))
        return Pieces(tuple(cuts.tolist()), low, np.maximum(np.minimum(bins.high[last], right), low))

    def target_in(self, fine: Fine, table: IntArray, bounds: Sequence[float]) -> TargetIntervals:
        """Describe the target in parts, from the rows of each by bins or pieces of the target."""
        means, quantiles = distribution_of(fine, table.T)
        return TargetIntervals(
            bounds=tuple(bounds), mean=self.mean, overall=self.overall, means=means, quantiles=quantiles
        )


def is_number(
    source: Source, target: str, weight: str | None, kind: str, *, many: bool = False, run: Run | None = None
) -> bool:
    """Say whether a target is a number, as `damier.intake.read_any_target` does: fractional ones are.

    Parameters
    ----------
    source, target, weight
        The table, and the names of its target and weights.
    kind : {"auto", "number", "classes"}
        What it is said to be.
    many : bool
        With "auto", whether whole numbers of so many values that they could be either are a number too;
        otherwise they are the business of `refuse_unclear`.
    run : Run, optional
    """
    column = next(c for c in source.columns if c.name == target)
    if kind != "auto" or column.kind != "number":
        return kind == "number"
    words = ("float", "double", "decimal", "real", "numeric")
    if not many and not any(word in column.type.lower() for word in words):
        return False
    counts = _count_alone(source, target, weight, ALL, True, run)
    rows = counts.counts[:, 0]
    keys = np.concatenate([counts.low[rows > 0], counts.high[rows > 0]])
    held = numbers_of(keys if counts.values is None else counts.values)
    held = held[np.isfinite(held)]
    if (held != np.floor(held)).any():
        return True
    n_values = MOST_VALUES if counts.values is None else len(held)
    return many and classes_look_like_number(np.arange(n_values), int(rows.sum())) is not None


def refuse_unclear(labels: Labels) -> None:
    """Refuse whole numbers that could be classes or a number.

    Raises
    ------
    ValueError
    """
    question = classes_look_like_number(labels.classes, labels.total, labels.name)
    if question is not None:
        raise ValueError(f"the target {question}. Say target='number' or target='classes'.")


def _count_alone(
    source: Source, name: str, weight: str | None, binning: Binning, values: bool, run: Run | None
) -> Any:
    from damier.search.counted import KernelCounter

    labels = Labels(name, np.empty(0), [], np.empty(0, np.int64), weight)
    counted = source.count(
        {name: binning}, labels, by_class=False, values=values, counter=KernelCounter, watch=run
    )
    return counted[name]


def read_number(source: Source, target: str, weight: str | None, run: Run) -> NumberSource:
    """Count a target that is a number.

    Raises
    ------
    ValueError
        If it is no number, missing or infinite somewhere, or constant.
    """
    from damier.search.counted import CountedNumber
    from damier.search.counted_target import target_bins

    column = next(c for c in source.columns if c.name == target)
    if column.kind != "number":
        raise ValueError(
            f"the target {target} must be a number: its type is {column.type}. Convert it, or take it for "
            "classes"
        )
    state = CountedNumber(1, n_bins=_TARGET_BINS)
    counts = _count_alone(source, target, weight, ALL, True, run)
    missing = int(counts.missing.sum())
    if missing:
        rows = f"{missing:,} row{'s' if missing > 1 else ''}"
        raise ValueError(f"the target {target} is missing in {rows}: remove those rows")
    met = counts.counts[:, 0] > 0
    if not np.isfinite(numbers_of(np.concatenate([counts.low[met], counts.high[met]]))).all():
        raise ValueError(f"the target {target} contains infinity: remove those rows")
    if not met.any():
        raise ValueError("sample_weight is zero everywhere: at least one row must count")
    state.class_counts = counts.counts.sum(axis=0)
    state.take(counts)
    binning = state.binning
    found = _count_alone(source, target, weight, binning, False, run)
    state.check(found)
    bins = target_bins(binning, found, state.n_distinct)
    if bins.low[0] == bins.high[-1]:
        raise ValueError(
            f"the target {target} is constant, it is {bins.low[0]:g} in all rows ({bins.total} sample(s)): "
            "at least two different numbers are needed"
        )
    means, quantiles = distribution_of(bins, bins.rows[:, None])
    return NumberSource(source, target, weight, bins, float(means[0]), quantiles[0])


def distribution_of(bins: Fine, table: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean and quantiles of the target in parts, from its bins by part; each part has rows."""
    at, part = np.nonzero(table)
    target = NumericTarget(at.astype(np.int32), bins.low + (bins.high - bins.low) / 2.0)
    means, quantiles = distribution_by_part(target, part, table.shape[1], np.arange(len(at)), table[at, part])
    held = table > 0
    quantiles[:, 0] = bins.low[held.argmax(axis=0)]
    quantiles[:, -1] = bins.high[len(table) - 1 - held[::-1].argmax(axis=0)]
    return means, quantiles


def count_points(
    number: NumberSource, bounds: FloatArray, run: Run | None = None
) -> tuple[FloatArray, IntArray]:
    """Count the bins of the target by elementary intervals: values, and their rows."""
    bins = number.bins
    if not len(bounds):
        return bins.middle, bins.rows
    table = count_target(number, number.by_intervals(bounds.tolist(), np.empty(0, np.int64)), run)
    at, interval = np.nonzero(table)
    # A bin that a bound lies in is taken apart there.
    low = np.maximum(bins.low[at], np.nextafter(np.append(-np.inf, bounds), np.inf)[interval])
    high = np.minimum(bins.high[at], np.append(bounds, np.inf)[interval])
    return low + (high - low) / 2.0, table[at, interval]


def count_target(number: NumberSource, labels: Labels, run: Run | None = None) -> IntArray:
    """Count the bins of the target by classes."""
    from damier.search.counted import KernelCounter

    binnings = {number.name: number.bins.binning}
    found = number.source.count(binnings, labels, counter=KernelCounter, watch=run)[number.name]
    table: IntArray = found.counts[found.counts.any(axis=1)]
    if not np.array_equal(table.sum(axis=1), number.bins.rows):
        raise ValueError(CHANGED)
    return table


def sample_numbers(number: NumberSource, n_rows: int, seed: int) -> tuple[Table, OrderedTarget]:
    """Draw rows by their hash, all of them if there are no more; those of weight 0 are left out."""
    held = number.source.sample([c.name for c in number.source.columns], n_rows, seed)
    weights = None
    if number.weight is not None:
        numbers = held[number.weight]
        assert isinstance(numbers, NumericColumn)
        weights = numbers.values.astype(np.int64)
        kept = np.flatnonzero(weights)
        held, weights = held.take(kept).drop(number.weight), weights[kept]
    column = held[number.name]
    assert isinstance(column, NumericColumn)
    return held.drop(number.name), order_target(read_numbers(column.values, number.name), weights)
