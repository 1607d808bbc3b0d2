"""A number and a numeric target that are counted in bins: both cut together, never sorted.

The two axes take turns, as in `damier.search.axis.numeric_target`: first on bins of the number by blocks of
the target, then each at full resolution with the other one held still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from damier.intake.engines.prebins import Binning, Counts, numbers_of
from damier.search.axis.numeric_target import (
    intervals_for_parts,
    partition_with_target,
    target_axis,
    value_blocks,
)
from damier.search.counted import CountedNumber
from damier.search.kernels import FloatArray, IntArray

BLOCKS = 256
"""Blocks of the target that a number is first counted by."""


class TargetBins(NamedTuple):
    """The bins that a numeric target was counted in, those without rows left out.

    Attributes
    ----------
    binning : Binning
    n_distinct : int or None
        Distinct values, where each bin is one of them.
    low, high : float64 arrays of shape (n_bins,)
        Least and greatest value of each bin.
    rows : int64 array of shape (n_bins,)
    blocks : int64 array
        First bin of each of about `BLOCKS` blocks of bins.
    """

    binning: Binning
    n_distinct: int | None
    low: FloatArray
    high: FloatArray
    rows: IntArray
    blocks: IntArray

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    @property
    def middle(self) -> FloatArray:
        """A value of each bin: its only one, or one in the middle."""
        return self.low + (self.high - self.low) / 2.0

    def edges(self, bins: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the values on both sides of where bins begin."""
        return self.high[bins - 1], self.low[bins]


def target_bins(binning: Binning, counts: Counts, n_distinct: int | None) -> TargetBins:
    """Take what a scan counted of a target."""
    rows = counts.counts[:, 0]
    met = np.flatnonzero(rows)
    low, high = numbers_of(counts.low[met]), numbers_of(counts.high[met])
    return TargetBins(binning, n_distinct, low, high, rows[met], value_blocks(rows[met], BLOCKS))


class CountedTarget(CountedNumber):
    """A numeric target between two scans, counted by the parts of a variable and cut into intervals.

    Parameters
    ----------
    part_counts : int64 array of shape (n_parts,)
        Rows of each part; each has some.
    bins : TargetBins

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(100_000)
    >>> parts = (y > 0.25).astype(np.int32)
    >>> from damier.search.counted import KernelCounter
    >>> first = CountedNumber(1)
    >>> for _ in range(2):
    ...     counter = KernelCounter(first.binning, 1, first.wants_values)
    ...     counter.add(y)
    ...     binning, counts = first.binning, counter.counts()
    ...     first.take(counts)
    >>> target = CountedTarget(np.bincount(parts), target_bins(binning, counts, None))
    >>> while target.solution is None:
    ...     counter = KernelCounter(target.binning, 2)
    ...     counter.add(y, parts)
    ...     target.take(counter.counts())
    >>> bool(target.solution.below[0] == y[y <= 0.25].max())
    True
    """

    def __init__(self, part_counts: IntArray, bins: TargetBins) -> None:
        super().__init__(len(part_counts), class_counts=part_counts)
        self.begin_with(bins.binning, 0, bins.n_distinct)

    def _starts(self, elements: IntArray, total: int, exact: bool) -> tuple[IntArray, bool]:  # noqa: ARG002
        """Find the intervals of least cost, the parts of the variable held still."""
        elements = elements[:, elements.any(axis=0)]
        at, part = np.nonzero(elements)
        axis = target_axis(at.astype(np.int32), len(elements), elements[at, part])
        starts: IntArray = intervals_for_parts(axis, part, elements.shape[1], axis.blocks[:1])
        return starts, False


def begin_together(counts: Counts) -> tuple[IntArray, int]:
    """Cut bins of a number and blocks of the target together.

    Parameters
    ----------
    counts : Counts
        Bins of a number by the blocks of the target.

    Returns
    -------
    target_starts : int64 array
        First block of each interval of the target.
    n_parts : int
        Number of intervals of the number; one, if it does not inform.
    """
    elements = counts.counts[counts.counts.any(axis=1)]
    if counts.missing.any():
        elements = np.concatenate([counts.missing[None], elements])
    starts, labels = partition_counts(elements, ordered=True)
    return starts, int(labels.max()) + 1


def partition_counts(elements: IntArray, *, ordered: bool) -> tuple[IntArray, IntArray]:
    """Partition values of a variable and blocks of the target that were counted.

    Parameters
    ----------
    elements : int64 array of shape (n_values, n_blocks)
        Each value has rows, and so has each block.
    ordered : bool
        Whether the values have an order.

    Returns
    -------
    starts : int64 array
        First block of each interval of the target.
    labels : int64 array of shape (n_values,)
        Part of each value.
    """
    at, block = np.nonzero(elements)
    return partition_cells(at, block, elements[at, block], len(elements), elements.shape[1], ordered=ordered)


def partition_cells(
    values: IntArray, blocks: IntArray, rows: IntArray, n_values: int, n_blocks: int, *, ordered: bool
) -> tuple[IntArray, IntArray]:
    """Partition values and blocks as `partition_counts`, from the cells that hold rows."""
    target = target_axis(blocks.astype(np.int32), n_blocks, rows)
    found = partition_with_target(values.astype(np.int32), n_values, target, ordered=ordered)
    return found.target_starts, found.parts
