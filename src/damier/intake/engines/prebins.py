"""Numbers counted in bins that adapt to the data, without sorting: whole-number counts that add.

This module needs NumPy and nothing else, not even Damier: engines may ship it to their workers by value.

The key of a number is its 64 bits made to sort as the numbers do. A `Binning` turns keys into bins by a few
table look-ups, one per level, and no search. Without any level the bin is the leading 16 bits of the key.
Each level splits each bin of the one before evenly between a lowest and a highest key, or drops it:

    bin = key >> 48
    for level in levels:   bin = level.base[bin] + ((key - level.low[bin]) >> level.shift[bin])

Three or more scans of a column follow each other, a call of `NumberCounter.add` per batch of rows in each:

1. ``Binning()``: rows by leading bits, `LEADING` bins; the distinct values too as long as they are few.
2. `refined_binning` splits crowded bins more than others: about `BINS` bins by class. A column of few
   distinct values gets `exact_binning`, where each bin is one value.
3. `refined_binning` of the bins around the cuts found, all others dropped (`only_binning`); again until they
   are single values.

Counts of parts of the rows, whatever the parts, add up by `merge`: neither the order of the rows, nor the
size of batches, nor the number of threads or workers changes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LEADING = 1 << 16
"""Bins of a binning without levels."""

BINS = 1 << 13
"""Number of bins that a column is cut into at first, about."""

MOST_VALUES = 1 << 16
"""Columns of at most so many distinct values are counted value by value."""

_SIGN = np.uint64(1 << 63)
_NO_KEY = np.uint64(2**64 - 1)
_WHOLE = np.uint8(63)


DROPPED, UNMET = -1, -2
"""First bins of the next level that are none: rows not to be counted, and rows that there were none of."""

CHANGED = (
    "the table changed while it was read: a scan did not meet the rows that an earlier one did. Fit it "
    "when nothing writes to it, and write a view whose values change from one reading to the next into a "
    "table first."
)


class Level(NamedTuple):
    """How the bins of one level are split.

    Attributes
    ----------
    low : uint64 array
        Lowest key of each bin: no smaller one may be met in it.
    shift : uint8 array
        Bits of ``key - low`` that do not matter.
    base : int64 array
        First bin of the next level; `DROPPED` to leave out the rows of the bin, `UNMET` to refuse them, as
        an earlier scan met none.
    """

    low: Any
    shift: Any
    base: Any


class Binning(NamedTuple):
    """Bins of a numeric column: see the module's docstring."""

    levels: tuple[Level, ...] = ()
    n_bins: int = LEADING


ALL = Binning()
"""Bins by leading bits."""


class Counts(NamedTuple):
    """What was counted of one numeric column.

    Attributes
    ----------
    counts : int64 array of shape (n_bins, n_classes)
        Rows, or their weights, of each bin and class.
    low, high : uint64 arrays of shape (n_bins,)
        Least and greatest key met in each bin; all ones and zero where there is none.
    missing : int64 array of shape (n_classes,)
        Rows without a value.
    values : uint64 array or None
        Sorted keys of the distinct values; None if there are more than `MOST_VALUES`, or none were asked for.
    """

    counts: Any
    low: Any
    high: Any
    missing: Any
    values: Any = None


def keys_of(values: Any) -> Any:
    """Turn numbers (float64, none missing) into keys that sort as they do; both zeros have one key.

    >>> keys_of(np.array([-np.inf, -1.0, 0.0, -0.0, 5e-324])).argsort(kind="stable")
    array([0, 1, 2, 3, 4])
    """
    bits = (np.asarray(values, np.float64) + 0.0).view(np.uint64)
    # All ones for negative numbers, the sign alone for others. In place: large arrays cost more than sums.
    turned = (bits.view(np.int64) >> 63).view(np.uint64)
    turned |= _SIGN
    bits ^= turned
    return bits


def numbers_of(keys: Any) -> Any:
    """Turn keys back into numbers.

    >>> numbers_of(keys_of(np.array([-1.5, 0.0, np.inf])))
    array([-1.5,  0. ,  inf])
    """
    keys = np.asarray(keys, np.uint64)
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)


def parts_of(values: Any, bounds: Any, alone: bool = False) -> Any:
    """Find the interval of each number, int32: left of a bound it equals, NaN in the first one.

    Parameters
    ----------
    values : float64 array
    bounds : float64 array
        Inner bounds, ascending.
    alone : bool
        Whether missing values are a part of their own, before all others.

    Examples
    --------
    >>> parts_of(np.array([1.0, np.nan, 2.0, 3.0]), np.array([2.0]), alone=True)
    array([1, 0, 1, 2], dtype=int32)
    """
    found = np.searchsorted(bounds, values, side="left").astype(np.int32)
    absent = np.isnan(values)
    if alone:
        found += 1
    if absent.any():
        found[absent] = 0
    return found


def no_counts(binning: Binning, n_classes: int, values: bool = False) -> Counts:
    """Make empty counts; with ``values``, ready to collect the distinct ones."""
    n_bins = binning.n_bins
    return Counts(
        np.zeros((n_bins, n_classes), np.int64),
        np.full(n_bins, _NO_KEY),
        np.zeros(n_bins, np.uint64),
        np.zeros(n_classes, np.int64),
        np.empty(0, np.uint64) if values else None,
    )


def bins_of(keys: Any, binning: Binning) -> Any:
    """Find the bin of each key, -1 where it is dropped.

    Raises
    ------
    ValueError
        At a key that no bin was made for.
    """
    bins = (keys >> np.uint64(48)).view(np.int64)
    for depth, level in enumerate(binning.levels, 1):
        size = len(binning.levels[depth].low) if depth < len(binning.levels) else binning.n_bins
        base, low = level.base[bins], level.low[bins]
        split = keys - low
        split >>= level.shift[bins]
        split = split.view(np.int64)
        split += base
        outside = keys < low
        outside |= split >= size
        outside |= split < 0
        if base.min(initial=0) < 0 or (depth > 1 and bins.min(initial=0) < 0):
            kept = (bins >= 0) & (base != DROPPED)
            outside |= base == UNMET
            outside &= kept
            split[~kept] = -1
        if outside.any():
            raise ValueError(CHANGED)
        bins = split
    return bins


def count_numbers(
    counts: Counts, values: Any, codes: Any = None, weights: Any = None, binning: Binning = ALL
) -> Counts:
    """Add a batch of rows to counts.

    Parameters
    ----------
    counts : Counts
        Changed in place, but for ``values``.
    values : float64 array of shape (n_rows,)
        NaN is missing.
    codes : int array of shape (n_rows,), optional
        Classes of the rows; all 0 by default.
    weights : int64 array of shape (n_rows,), optional
        How many times each row counts, once by default.
    binning : Binning
        That which ``counts`` was made for.

    Returns
    -------
    Counts

    Examples
    --------
    >>> counts = no_counts(Binning(), 2, values=True)
    >>> counts = count_numbers(counts, np.array([1.0, np.nan, 1.0]), np.array([0, 0, 1]))
    >>> numbers_of(counts.values), counts.counts.sum(axis=0), counts.missing
    (array([1.]), array([1, 1]), array([1, 0]))
    """
    n_bins, n_classes = counts.counts.shape
    codes = np.zeros(len(values), np.int64) if codes is None else codes
    absent = np.isnan(values)
    if absent.any():
        counts.missing[:] += _sums(codes[absent], None if weights is None else weights[absent], n_classes)
        values, codes = values[~absent], codes[~absent]
        weights = None if weights is None else weights[~absent]
    keys = keys_of(values)
    bins = bins_of(keys, binning)
    distinct = None if counts.values is None else _distinct(counts.values, keys)
    kept = bins >= 0
    if not kept.all():
        keys, bins, codes = keys[kept], bins[kept], codes[kept]
        weights = None if weights is None else weights[kept]
    cells = bins if n_classes == 1 else bins * n_classes + codes
    counts.counts[:] += _sums(cells, weights, n_bins * n_classes).reshape(n_bins, -1)
    np.minimum.at(counts.low, bins, keys)
    np.maximum.at(counts.high, bins, keys)
    return counts._replace(values=distinct)


def _sums(at: Any, weights: Any, length: int) -> Any:
    # Sums of whole numbers in float64 are exact up to 2^53.
    return np.bincount(at, weights=weights, minlength=length).astype(np.int64)


def _distinct(known: Any, keys: Any) -> Any:
    """Add keys to sorted distinct ones; None if there are too many."""
    keys = _sorted_distinct(keys)  # several times faster than to look all of them up
    if len(known):
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        keys = keys[known[at] != keys]
    if len(known) + len(keys) > MOST_VALUES:
        return None
    return np.sort(np.concatenate([known, keys])) if len(keys) else known


def _sorted_distinct(keys: Any) -> Any:
    """Sort keys, each of them once; `numpy.unique` looks them up one by one."""
    held = np.sort(keys)
    return held[np.append(True, held[1:] != held[:-1])] if len(held) else held


def merge(counts: Sequence[Counts]) -> Counts:
    """Add the counts of parts of the rows, all of one binning.

    >>> one = count_numbers(no_counts(Binning(), 1), np.array([1.0, 2.0]))
    >>> int(merge([one, one]).counts.sum())
    4
    """
    values = None
    if all(part.values is not None for part in counts):
        values = _sorted_distinct(np.concatenate([part.values for part in counts]))
        values = values if len(values) <= MOST_VALUES else None
    return Counts(
        np.sum([part.counts for part in counts], axis=0),
        np.minimum.reduce([part.low for part in counts]),
        np.maximum.reduce([part.high for part in counts]),
        np.sum([part.missing for part in counts], axis=0),
        values,
    )


class NumberCounter:
    """Counts of one numeric column that grow batch by batch.

    Parameters
    ----------
    binning : Binning
    n_classes : int
    values : bool
        Whether to collect the distinct values, as long as they are few.
    """

    def __init__(self, binning: Binning, n_classes: int, values: bool = False) -> None:
        self.binning = binning
        self._counts = no_counts(binning, n_classes, values)

    def add(self, values: Any, codes: Any = None, weights: Any = None) -> None:
        """Add a batch of rows, as `count_numbers`."""
        self._counts = count_numbers(self._counts, values, codes, weights, self.binning)

    def counts(self) -> Counts:
        """Return what was counted."""
        return self._counts


def refined_binning(binning: Binning, counts: Counts, kept: Any = None, n_bins: int = BINS) -> Binning:
    """Split bins evenly between their extremes, the more of them the more rows they hold.

    Parameters
    ----------
    binning : Binning
        The bins that were counted.
    counts : Counts
        What they hold.
    kept : bool array of shape (n_bins,), optional
        Bins to split; all others stay one bin. All of them are split by default.
    n_bins : int
        Number of bins to make of those to split, about: between once and twice as many, and one per bin.

    Returns
    -------
    Binning
        With one level more; its bins are in the order of the keys.
    """
    rows = counts.counts.sum(axis=1)
    met = rows > 0
    kept = met if kept is None else kept & met
    total = max(int(rows[kept].sum()), 1)
    # Each bin of n rows is split into 2^ceil(log2(n K / N)), as far as its keys allow.
    share = np.maximum(rows * (n_bins / total), 1.0)
    parts = np.where(kept, np.ceil(np.log2(share)), 0.0).astype(np.int64)
    span = np.where(met, counts.high - counts.low, np.uint64(0))
    shift = np.maximum(_bit_length(span) - parts, 0)
    made = np.where(met, (span >> shift.astype(np.uint64)).astype(np.int64) + 1, 0)
    return _deeper(binning, counts.low, shift, made, met)


def only_binning(binning: Binning, kept: Any) -> Binning:
    """Drop the rows of all bins of the level before the last but some.

    Parameters
    ----------
    binning : Binning
        Made by `refined_binning`.
    kept : bool array
        Those of the bins that were refined to count; numbers of bins stay what they are.
    """
    last = binning.levels[-1]
    base = np.where(kept | (last.base == UNMET), last.base, DROPPED)
    return binning._replace(levels=(*binning.levels[:-1], last._replace(base=base)))


def joined_counts(binning: Binning, before: Counts, kept: Any, found: Counts) -> Counts:
    """Put together the counts of bins that were split, and of those that were not.

    Parameters
    ----------
    binning : Binning
        Made by `refined_binning` of the bins of ``before``.
    before : Counts
        Those of the bins that were refined.
    kept : bool array
        Which of them were counted anew.
    found : Counts
        Counts by ``only_binning(binning, kept)``.
    """
    base = binning.levels[-1].base
    other = np.flatnonzero(~kept & (base >= 0))
    for new, old in zip(found[:3], before[:3], strict=True):
        new[base[other]] = old[other]
    return found


def exact_binning(values: Any) -> Binning:
    """Give each of some known keys a bin of its own.

    Parameters
    ----------
    values : uint64 array
        Sorted keys; no others may be met.

    Returns
    -------
    Binning
        Bins in the order of the keys, some without any.

    Examples
    --------
    >>> keys = keys_of(np.array([0.1, 0.2, 0.25, 7.0, 1e300]))
    >>> bool((np.diff(bins_of(keys, exact_binning(keys))) > 0).all())
    True
    """
    binning = Binning()
    while True:
        bins = bins_of(values, binning)
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        met = np.zeros(binning.n_bins, bool)
        met[bins] = True
        low, high = np.zeros((2, binning.n_bins), np.uint64)
        low[bins[first]] = values[first]
        last = np.append(first[1:], len(values)) - 1
        high[bins[first]] = values[last]
        span = high - low
        if binning.levels and not span.any():
            return binning
        # Fine enough for the closest two values, but no finer than eight bins a value.
        gaps = np.full(binning.n_bins, _NO_KEY)
        inside = np.flatnonzero(np.diff(bins) == 0)
        np.minimum.at(gaps, bins[inside], values[inside + 1] - values[inside])
        fine = np.maximum(_bit_length(gaps) - 1, 0)
        held = np.bincount(bins, minlength=binning.n_bins)
        coarse = _bit_length(span) - 3 - _bit_length(held.astype(np.uint64))
        shift = np.minimum(np.maximum(fine, coarse), 63)
        made = np.where(met, (span >> shift.astype(np.uint64)).astype(np.int64) + 1, 0)
        binning = _deeper(binning, low, shift, made, met)


def _deeper(binning: Binning, low: Any, shift: Any, made: Any, met: Any) -> Binning:
    base = np.cumsum(made) - made
    level = Level(
        np.where(met, low, np.uint64(0)),
        np.where(met, np.minimum(shift, 63), _WHOLE).astype(np.uint8),
        np.where(met, base, UNMET).astype(np.int64),
    )
    return Binning((*binning.levels, level), int(made.sum()))


def _bit_length(numbers: Any) -> Any:
    """Count the bits of whole numbers, zero for zero.

    >>> _bit_length(np.array([0, 1, 2, 3, 4, 2**63], np.uint64))
    array([ 0,  1,  2,  2,  3, 64])
    """
    length = np.zeros(len(numbers), np.int64)
    rest = np.asarray(numbers, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >> np.uint64(step) > 0
        length += np.where(large, step, 0)
        rest = np.where(large, rest >> np.uint64(step), rest)
    return length + (rest > 0)
