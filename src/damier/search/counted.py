"""Intervals of a number that is counted in bins, never sorted.

`KernelCounter` counts batches of rows, as `damier.intake.engines.prebins.NumberCounter` does and with the
same result. `CountedNumber` is the state of one column between two scans: it says which bins to count next,
and searches on what was counted. Its intervals are those of full resolution around each cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.criteria import discretization_cost, part_costs
from damier.intake.engines.prebins import (
    ALL,
    BINS,
    CHANGED,
    DROPPED,
    MOST_VALUES,
    UNMET,
    Binning,
    Counts,
    NumberCounter,
    exact_binning,
    joined_counts,
    keys_of,
    numbers_of,
    only_binning,
    refined_binning,
)
from damier.search.axis.costs import interval_penalties
from damier.search.axis.ordered import OrderedSolution, Search, partition_ordered, search_blocks, search_near
from damier.search.axis.rows import axis_of_counts
from damier.search.kernels import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    WordArray,
    bare_kernel,
    inner,
    mix,
)

# Bins around a cut that are split, on each side.
_REACH = 4
# Bins that those around all cuts are split into, about.
_WINDOW_BINS = 1 << 15
# Cells of a table of bins by classes: many classes get fewer bins.
_MOST_CELLS = 1 << 20
# Scans that look for better cuts everywhere, and scans in all: each divides the rows near a cut by hundreds.
_ROUNDS = 3
# The last scan after which many classes are searched anew: later ones see the same cuts more closely.
_SEARCHED = 3
_MOST_ROUNDS = 8
# Standard deviations of the cost inside a bin within which a better cut may be found.
_DEVIATIONS = 3.0

# Sweeps over the cuts of an axis of a grid: they gain each time, and few move twice.
_MOST_SWEEPS = 10

_NAN = np.uint64(0x7FF0000000000000)
_SIGN = np.uint64(1 << 63)
_REST = np.uint64((1 << 63) - 1)
_DROPPED = np.uint64(2**64 - 1)
_UNMET = np.uint64(2**64 - 2)
_EMPTY = np.uint64(0)  # the key of a NaN: never met
_BYTE = np.uint64(0xFF)


@inner
def _key(bits: Any) -> Any:
    """Key of the bits of a number; both zeros have one."""
    if bits == _SIGN:
        return _SIGN
    return ~bits if bits & _SIGN else bits | _SIGN


@bare_kernel
def _count(
    bits: WordArray,
    codes: CodeArray,
    weights: IntArray,
    levels: WordArray,
    starts: IntArray,
    ends: IntArray,
    table: WordArray,
    missing: IntArray,
) -> bool:
    """Count a batch of rows; return False at a key that no bin was made for.

    Parameters
    ----------
    bits : array of shape (n_rows,)
        Numbers, as their bits.
    codes, weights : arrays of shape (n_rows,), or empty
        Classes, 0 by default, and frequencies, 1 by default.
    levels : array of shape (n, 2)
        Of each bin of each level, end to end: the lowest key; the first bin of the next level, times 256,
        plus the shift (all ones: dropped; one less: a key that no bin was made for).
    starts, ends : arrays of shape (n_levels,)
        Where each level begins and ends.
    table : array of shape (n_bins, 2 + n_classes)
        Lowest and highest key and class counts of each bin, side by side in memory.
    missing : array of shape (n_classes,)
    """
    coded, weighted, n_levels = codes.shape[0] > 0, weights.shape[0] > 0, starts.shape[0]
    for i in range(bits.shape[0]):
        j = np.int64(codes[i]) if coded else np.int64(0)
        w = weights[i] if weighted else np.int64(1)
        if bits[i] & _REST > _NAN:
            missing[j] += w
            continue
        key = _key(bits[i])
        at = key >> np.uint64(48)
        for level in range(n_levels):
            place = np.uint64(starts[level]) + at
            word = levels[place, 1]
            if word >= _UNMET:
                if word == _UNMET:
                    return False
                at = _DROPPED
                break
            size = ends[level + 1] - starts[level + 1] if level + 1 < n_levels else table.shape[0]
            at = (word >> np.uint64(8)) + ((key - levels[place, 0]) >> (word & _BYTE))
            if key < levels[place, 0] or at >= np.uint64(size):
                return False
        if at == _DROPPED:
            continue
        if key < table[at, 0]:
            table[at, 0] = key
        if key > table[at, 1]:
            table[at, 1] = key
        table[at, 2 + j] += np.uint64(w)
    return True


@bare_kernel
def _collect(bits: WordArray, slots: WordArray, begin: int, n_held: int) -> tuple[int, int]:
    """Add the keys of a batch, from row ``begin`` on, to a set of distinct ones.

    Returns the row where half of the slots were taken, or the number of rows, and how many keys are held.
    """
    mask = np.uint64(slots.shape[0] - 1)
    most = slots.shape[0] // 2
    for i in range(begin, bits.shape[0]):
        if bits[i] & _REST > _NAN:
            continue
        key = _key(bits[i])
        at = mix(key) & mask
        while slots[at] != key and slots[at] != _EMPTY:
            at = (at + np.uint64(1)) & mask
        if slots[at] == _EMPTY:
            if n_held >= most:
                return i, n_held
            slots[at] = key
            n_held += 1
    return bits.shape[0], n_held


class KernelCounter(NumberCounter):
    """Counts of one numeric column that grow batch by batch, by compiled loops.

    Examples
    --------
    >>> counter = KernelCounter(ALL, 2, values=True)
    >>> counter.add(np.array([1.0, np.nan, 1.0]), np.array([0, 0, 1], np.int32))
    >>> counts = counter.counts()
    >>> numbers_of(counts.values), counts.counts.sum(axis=0), counts.missing
    (array([1.]), array([1, 1]), array([1, 0]))
    """

    def __init__(self, binning: Binning, n_classes: int, values: bool = False) -> None:
        self.binning = binning
        sizes = [len(level.low) for level in binning.levels]
        self._starts, self._ends = np.cumsum([0, *sizes])[:-1], np.cumsum(sizes, dtype=np.int64)
        self._levels = np.empty((sum(sizes), 2), np.uint64)
        for start, level in zip(self._starts.tolist(), binning.levels, strict=True):
            packed = self._levels[start : start + len(level.low)]
            packed[:, 0] = level.low
            words = (level.base.astype(np.uint64) << np.uint64(8)) | level.shift.astype(np.uint64)
            packed[:, 1] = np.where(level.base == UNMET, _UNMET, words)
            packed[level.base == DROPPED, 1] = _DROPPED
        self._table = np.zeros((binning.n_bins, 2 + n_classes), np.uint64)
        self._table[:, 0] = _DROPPED
        self._missing = np.zeros(n_classes, np.int64)
        self._slots: WordArray | None = np.zeros(1 << 10, np.uint64) if values else None
        self._n_held = 0

    def add(
        self, values: FloatArray, codes: CodeArray | None = None, weights: IntArray | None = None
    ) -> None:
        """Add a batch of rows."""
        bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
        bits.flags.writeable = False  # so that one compiled version serves all
        held = np.empty(0, np.int32) if codes is None else codes
        each = np.empty(0, np.int64) if weights is None else weights
        if not _count(bits, held, each, self._levels, self._starts, self._ends, self._table, self._missing):
            raise ValueError(CHANGED)
        done = 0
        while self._slots is not None and done < len(bits):
            done, self._n_held = _collect(bits, self._slots, done, self._n_held)
            if done < len(bits):
                self._grow()

    def _grow(self) -> None:
        """Double the slots, or give up when there are more values than are asked for."""
        assert self._slots is not None
        keys = self._slots[self._slots != _EMPTY]
        if self._n_held >= MOST_VALUES:
            self._slots = None
            return
        self._slots = np.zeros(2 * len(self._slots), np.uint64)
        _, self._n_held = _collect(numbers_of(keys).view(np.uint64), self._slots, 0, 0)

    def counts(self) -> Counts:
        """Return what was counted."""
        values = None if self._slots is None else np.sort(self._slots[self._slots != _EMPTY])
        counts = np.ascontiguousarray(self._table[:, 2:]).view(np.int64)
        low, high = self._table[:, 0].copy(), self._table[:, 1].copy()
        return Counts(counts, low, high, self._missing, values)


class CountedNumber:
    """One numeric column between two scans.

    Parameters
    ----------
    n_classes : int
    search : {"auto", "greedy", "exact"}
        As in `damier.search.axis.ordered.discretize`, on what was counted.
    n_bins : int
        About how many bins the column is first cut into.
    class_counts : array of shape (n_classes,), optional
        Rows of each class: a scan that does not find as many is refused.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200_000)
    >>> codes = (x > 0.5).astype(np.int32)
    >>> column = CountedNumber(2)
    >>> while column.solution is None:
    ...     counter = KernelCounter(column.binning, 2 if column.by_class else 1, column.wants_values)
    ...     counter.add(x, codes if column.by_class else None)
    ...     column.take(counter.counts())
    >>> bool(column.solution.below[0] == x[x <= 0.5].max()), column.n_scans
    (True, 3)
    """

    def __init__(
        self,
        n_classes: int,
        search: Search = "auto",
        n_bins: int = BINS,
        class_counts: IntArray | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.class_counts = class_counts
        self.search: Search = search
        self.n_bins = min(n_bins, max(_MOST_CELLS // n_classes, 64))
        self.binning = ALL
        self.n_scans = 0
        self.solution: OrderedSolution | None = None
        self.n_missing = 0
        self.n_distinct: int | None = None
        self._whole = ALL
        self._counts: Counts | None = None
        self._kept: BoolArray | None = None
        self._begun = False
        # Highest key of each element of a search but that of the missing values, which may come first.
        self._tops: WordArray = np.empty(0, np.uint64)
        self._has_missing = False
        # Cuts found last: the highest key below each, and whether missing values are a part before them.
        self._at: WordArray = np.empty(0, np.uint64)
        self._alone = False

    def begin_with(self, binning: Binning, n_missing: int, n_distinct: int | None = None) -> None:
        """Take bins that another column's state was given by its first scan."""
        self.n_scans, self.n_missing, self.n_distinct = 1, n_missing, n_distinct
        self.binning = self._whole = binning
        self._begun = True

    @property
    def by_class(self) -> bool:
        """Whether the next scan counts each class apart."""
        return self.n_scans > 0

    @property
    def wants_values(self) -> bool:
        """Whether the next scan collects distinct values."""
        return self.n_scans == 0

    @property
    def scan_bytes(self) -> int:
        """Memory that the next scan takes, about: a table that is counted in, and another one made of it."""
        n_classes = self.n_classes if self.by_class else 1
        return 16 * self.binning.n_bins * (2 + n_classes)

    def take(self, counts: Counts) -> None:
        """Take what a scan counted by ``binning``; there is a solution, or a new ``binning``, afterwards.

        Raises
        ------
        ValueError
            If an earlier scan met other rows.
        """
        self.n_scans += 1
        self.check(counts)
        if not self._begun:
            self._first(counts)
            return
        if self._kept is not None and self._counts is not None:
            counts = joined_counts(self._whole, self._counts, self._kept, counts)
        self._counts = counts
        self._search(counts)

    def check(self, counts: Counts) -> None:
        """Compare the sums of counts with those of the scan before.

        Raises
        ------
        ValueError
            If they are others.
        """
        missing = int(counts.missing.sum())
        if self._kept is not None and self._counts is not None:
            # Bins that were split hold what they held whole.
            kept = np.flatnonzero(self._kept)
            begins = self._whole.levels[-1].base[kept]
            sums = np.add.reduceat(counts.counts, begins, axis=0) if len(begins) else self._counts.counts[:0]
            same = missing == self.n_missing and np.array_equal(sums, self._counts.counts[kept])
        else:
            same = not self._begun or missing == self.n_missing
            if self.class_counts is not None:
                found = counts.counts.sum(axis=0) + counts.missing
                expected = self.class_counts if counts.counts.shape[1] > 1 else self.class_counts.sum()
                same = same and bool((found == expected).all())
        if not same:
            raise ValueError(CHANGED)

    def _first(self, counts: Counts) -> None:
        self.n_missing = int(counts.missing.sum())
        if counts.values is not None:
            self.n_distinct = len(counts.values)
            self.binning = exact_binning(counts.values) if self.n_distinct else ALL
        else:
            self.binning = refined_binning(ALL, counts, None, self.n_bins)
        self._whole = self.binning
        self._begun = True

    def _search(self, counts: Counts) -> None:
        """Search on the bins, then say which to split, if any."""
        bins = np.flatnonzero(counts.counts.any(axis=1))
        has_missing = bool(counts.missing.any())
        elements = counts.counts[bins]
        if has_missing:
            elements = np.concatenate([counts.missing[None], elements])
        total = int(elements.sum())
        single = np.ones(len(elements), bool)
        single[int(has_missing) :] = counts.low[bins] == counts.high[bins]
        self._tops, self._has_missing = counts.high[bins], has_missing
        starts, optimal = self._starts(elements, total, bool(single.all()))
        self._alone = has_missing and len(starts) > 1 and starts[1] == 1
        self._at = self._tops[starts[1 + self._alone :] - int(has_missing) - 1]
        next_to = np.concatenate([starts[1:] - 1, starts[1:]])
        kept = _promising(elements, starts) & ~single
        settled = single[next_to].all() and (self.n_scans >= _ROUNDS or not kept.any())
        if not settled and self.n_scans < _MOST_ROUNDS:
            self._refine(counts, bins[kept[int(has_missing) :]])
            return
        cuts = starts[1:] - int(has_missing)
        below = np.full(len(cuts), np.nan)
        inside = cuts > 0
        below[inside] = numbers_of(counts.high[bins[cuts[inside] - 1]])
        above = numbers_of(counts.low[bins[cuts]])
        found = np.add.reduceat(elements, starts, axis=0)
        self.solution = OrderedSolution(
            below=below,
            above=above,
            counts=found,
            cost=discretization_cost(found),
            null_cost=discretization_cost(found.sum(axis=0, keepdims=True)),
            optimal=optimal and bool(single.all()),
        )
        self._counts = None

    def _starts(self, elements: IntArray, total: int, exact: bool) -> tuple[IntArray, bool]:
        """Find the parts of elements, and whether no others cost less."""
        penalty = interval_penalties(total, len(elements))
        if exact or self.n_classes == 2 or self.search != "auto":
            starts, _, optimal = partition_ordered(elements, penalty, search=self.search)
            return starts, optimal
        # No proof about bins is worth its time. The first cuts only say where to look closer.
        if self.n_scans == 2:
            starts, _, _ = partition_ordered(elements, penalty, search="greedy")
            if len(starts) > 1:
                return starts, False
        axis, first = axis_of_counts(elements)
        if self.n_scans <= _SEARCHED:
            found = search_blocks(axis, penalty, "auto").starts
        else:
            known = np.searchsorted(first, self._known_starts(len(elements)), side="right") - 1
            known = np.unique(known)
            found = search_near(axis, penalty, known, known)
        starts = first[found]
        starts[0] = 0
        return starts, False

    def _known_starts(self, n_elements: int) -> IntArray:
        """Find the cuts found last among elements that are finer, or others."""
        first = int(self._has_missing)
        found = first + np.searchsorted(self._tops, self._at, side="right")
        starts = np.unique(
            np.concatenate([[0], [1] if first and self._alone else [], found]).astype(np.int64)
        )
        return starts[starts < n_elements]

    def _refine(self, counts: Counts, bins: IntArray) -> None:
        self._kept = np.zeros(len(counts.low), bool)
        self._kept[bins] = True
        most = min(_WINDOW_BINS, max(_MOST_CELLS // self.n_classes, 64))
        self._whole = refined_binning(self._whole, counts, self._kept, most)
        self.binning = only_binning(self._whole, self._kept)


class CountedCuts(CountedNumber):
    """The cuts of one axis of a grid between two scans: moved, the cells of the other axes held still.

    Parameters
    ----------
    n_classes : int
        Classes of the target.
    bounds : sequence of float
        Where the cuts are; missing values alone are a part before them where ``alone`` is set.
    alone : bool
    class_counts : int64 array of shape (n_cells * n_classes,)
        Rows of each cell of the other axes and class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((100_000, 2))
    >>> side, codes = x[:, 1] > 0.5, (x[:, 0] > 0.25) ^ (x[:, 1] > 0.5)
    >>> labels = (2 * side + codes).astype(np.int32)
    >>> cuts = CountedCuts(2, (0.3,), False, np.bincount(labels))
    >>> while cuts.solution is None:
    ...     counter = KernelCounter(cuts.binning, 4 if cuts.by_class else 1, cuts.wants_values)
    ...     counter.add(x[:, 0], labels if cuts.by_class else None)
    ...     cuts.take(counter.counts())
    >>> bool(cuts.solution.below[0] == x[x[:, 0] <= 0.25, 0].max())
    True
    """

    def __init__(self, n_classes: int, bounds: Any, alone: bool, class_counts: IntArray) -> None:
        super().__init__(len(class_counts), class_counts=class_counts)
        self._of_target, self._alone = n_classes, alone
        self._at = keys_of(np.asarray(bounds, np.float64))

    def _starts(self, elements: IntArray, total: int, exact: bool) -> tuple[IntArray, bool]:  # noqa: ARG002
        """Move each cut between its neighbours to where it costs least, until none moves."""
        starts = self._known_starts(len(elements))
        before = np.concatenate([np.zeros((1, elements.shape[1]), np.int64), np.cumsum(elements, axis=0)])
        for _ in range(_MOST_SWEEPS):
            moved = starts.copy()
            for k in range(1, len(starts)):
                begin, end = moved[k - 1], moved[k + 1] if k + 1 < len(moved) else len(elements)
                inside = before[begin + 1 : end]
                costs = self._cost(inside - before[begin]) + self._cost(before[end] - inside)
                moved[k] = begin + 1 + int(np.argmin(costs))
            if (moved == starts).all():
                break
            starts = moved
        return starts, False

    def _cost(self, counts: IntArray) -> FloatArray:
        """Cost of parts whose rows lie so over the cells of the other axes and the classes."""
        rows = counts.reshape(-1, self._of_target)
        cost: FloatArray = part_costs(rows).reshape(len(counts), -1).sum(axis=1)
        return cost


def _promising(elements: IntArray, starts: IntArray) -> BoolArray:
    """Mark the elements inside which a cut may cost less than the nearest one found.

    Moved to the border of an element, a cut costs so much more. Inside, the cost wanders from one border to
    the other, as rows of several classes come in an order that is not known: by chance it falls below both.
    """
    marked = np.zeros(len(elements), bool)
    for k in range(1, len(starts)):
        begin, end = starts[k - 1], starts[k + 1] if k + 1 < len(starts) else len(elements)
        inside = elements[begin:end]
        left = np.cumsum(inside, axis=0)
        whole = left[-1]
        costs = np.full(len(inside) + 1, np.inf)
        costs[1:-1] = _entropy(left[:-1]) + _entropy(whole - left[:-1])
        at = starts[k] - begin
        shares = (left[at - 1] + 1.0) / (left[at - 1] + 1.0).sum()
        others = (whole - left[at - 1] + 1.0) / (whole - left[at - 1] + 1.0).sum()
        gains = np.log(shares / others)
        rows = inside.sum(axis=1)
        mean = inside @ gains / rows
        deviation = np.sqrt(np.maximum(inside @ gains**2 - rows * mean**2, 0.0))
        more = np.minimum(costs[:-1], costs[1:]) - costs[at]
        marked[begin:end] |= more < _DEVIATIONS * deviation
        marked[max(starts[k] - _REACH, 0) : starts[k] + _REACH] = True
    return marked


def _entropy(counts: IntArray) -> FloatArray:
    """Cost of the classes of parts, near enough: entropy times rows."""
    rows = counts.sum(axis=1)
    logs = np.log(np.maximum(counts, 1))
    held: FloatArray = rows * np.log(rows) - (counts * logs).sum(axis=1)
    return held
