"""One ordered axis: the rows of a numeric column turned into elements in order, each carrying class counts.

An axis is three arrays. Element ``e`` holds the entries ``ptr[e] .. ptr[e + 1]``; entry ``i`` says that
``cnt[i]`` rows of class ``cls[i]`` have that value. Neighbouring elements made of one and the same class are
merged on the way: an optimal cut never separates them. Only what the data holds is stored, so neither the
number of classes nor the number of values multiplies the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from damier.search.kernels import CodeArray, FloatArray, IntArray, bare_kernel, inner, kernel

Scalar = TypeVar("Scalar", bound=np.generic)

# Above this many classes, sorting rows beats merging one sorted list per class.
_MOST_MERGED_CLASSES = 16
# Largest whole number below which every float64 neighbour is a whole number apart.
_WHOLE_LIMIT = 2.0**52


@dataclass(frozen=True, slots=True)
class Axis:
    """Elements in order with their class counts (see the module's docstring)."""

    cls: CodeArray
    cnt: IntArray
    ptr: IntArray
    n_classes: int
    total: int

    @property
    def n_elements(self) -> int:
        """Number of elements, that is one more than the number of candidate cuts."""
        return int(self.ptr.shape[0]) - 1

    def part_counts(self, starts: IntArray) -> IntArray:
        """Class counts of the parts that begin at the elements ``starts``."""
        counts = np.zeros((starts.shape[0], self.n_classes), np.int64)
        _add_counts(self.cls, self.cnt, self.ptr, starts, counts)
        return counts

    def coarsened(self, starts: IntArray) -> Axis:
        """Axis whose elements are the blocks of this one's that begin at ``starts``."""
        cls, cnt, ptr = _coarsen(self.cls, self.cnt, self.ptr, starts, self.n_classes)
        return Axis(cls, cnt, ptr, self.n_classes, self.total)


@dataclass(frozen=True, slots=True)
class Values:
    """Where the distinct values lie, to name the two neighbours of a cut.

    Either one sorted list per class (``merged``: ``first`` holds the lists end to end, ``last`` is unused and
    the offsets say where each begins), or the first and last value of each element.
    """

    first: FloatArray
    last: FloatArray
    offsets: IntArray
    missing: IntArray
    merged: bool

    def neighbours(self, starts: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Largest value left and smallest value right of each cut; NaN stands for missing values."""
        n_cuts = starts.shape[0] - 1
        if not self.merged:
            return self.last[starts[1:] - 1].copy(), self.first[starts[1:]].copy()
        below = np.full(n_cuts, np.nan)
        above = np.full(n_cuts, np.nan)
        left = np.cumsum(counts[:-1], axis=0) - self.missing
        for j in range(self.offsets.shape[0] - 1):
            lo, hi = self.offsets[j], self.offsets[j + 1]
            if lo == hi:
                continue
            at = left[:, j] + lo
            has_left, has_right = at > lo, at < hi
            np.fmax(below, self.first[np.maximum(at - 1, lo)], out=below, where=has_left)
            np.fmin(above, self.first[np.minimum(at, hi - 1)], out=above, where=has_right)
        return below, above


@bare_kernel
def _whole_range(values: FloatArray) -> tuple[float, float, int]:
    """Least and greatest value if all that are not missing are whole numbers, else (1, 0); missing count."""
    lo, hi, missing = np.inf, -np.inf, 0
    for x in values:
        if x == np.floor(x) and -_WHOLE_LIMIT < x < _WHOLE_LIMIT:
            lo = min(lo, x)
            hi = max(hi, x)
        elif np.isnan(x):
            missing += 1
        else:
            return 1.0, 0.0, missing
    return lo, hi, missing


@bare_kernel
def _count_whole(values: FloatArray, codes: CodeArray, weights: IntArray, lo: float, table: IntArray) -> None:
    """Add the rows to ``table[value - lo + 1, class]``; row 0 is for missing values."""
    weighted = weights.shape[0] > 0
    for i in range(values.shape[0]):
        x = values[i]
        at = 0 if np.isnan(x) else int(x - lo) + 1
        table[at, codes[i]] += weights[i] if weighted else 1


@bare_kernel
def _deal(
    values: FloatArray,
    codes: CodeArray,
    dealt: FloatArray,
    offsets: IntArray,
    missing: IntArray,
    at: IntArray,
) -> None:
    """Deal the values into one list per class, end to end; missing values are only counted.

    Parameters
    ----------
    values, codes
        Value and class of each row.
    dealt
        Room for the values.
    offsets, missing
        Zeros, for the beginning of each list, and for the missing values of each class.
    at
        Room for one number per class.
    """
    n_classes = missing.shape[0]
    for i in range(values.shape[0]):
        if np.isnan(values[i]):
            missing[codes[i]] += 1
        else:
            offsets[codes[i] + 1] += 1
    for j in range(n_classes):
        offsets[j + 1] += offsets[j]
        at[j] = offsets[j]
    for i in range(values.shape[0]):
        if not np.isnan(values[i]):
            j = codes[i]
            dealt[at[j]] = values[i]
            at[j] += 1


@inner
def _refresh(dealt: FloatArray, at: IntArray, offsets: IntArray, live: IntArray, head: FloatArray) -> int:
    """List the classes with values left, in class order, and the least value of each; return how many."""
    n_live = 0
    for j in range(at.shape[0]):
        if at[j] < offsets[j + 1]:
            live[n_live] = j
            head[n_live] = dealt[at[j]]
            n_live += 1
    return n_live


@inner
def _two_least(head: FloatArray, n_live: int) -> tuple[int, float]:
    """Return where the least of the values is, and the least of the others."""
    winner = 0
    second = np.inf
    for a in range(1, n_live):
        if head[a] < head[winner]:
            second = head[winner]
            winner = a
        elif head[a] < second:
            second = head[a]
    return winner, second


@bare_kernel
def _merge(
    dealt: FloatArray,
    offsets: IntArray,
    missing: IntArray,
    at: IntArray,
    live: IntArray,
    head: FloatArray,
    cls: CodeArray,
    cnt: IntArray,
    ptr: IntArray,
) -> tuple[int, int]:
    """Merge one sorted list per class into elements; return the numbers of elements and entries.

    Parameters
    ----------
    dealt, offsets, missing
        The sorted values of all classes end to end, where those of each begin, and its missing values.
    at, live, head
        Room for one number per class.
    cls, cnt, ptr
        Room for the elements, as many as there are rows.
    """
    n_classes = missing.shape[0]
    e = i = 0  # elements and entries so far
    ptr[0] = 0
    for j in range(n_classes):
        if missing[j] > 0:
            cls[i], cnt[i] = j, missing[j]
            i += 1
    if i > 0:
        e = 1
        ptr[1] = i
    pure = cls[0] if i == 1 else -1  # class of the last element if it has but one, else -1
    for j in range(n_classes):
        at[j] = offsets[j]
    n_live = _refresh(dealt, at, offsets, live, head)
    while n_live > 0:
        winner, second = _two_least(head, n_live)
        least = head[winner]
        if n_live == 1 or least < second:
            # A run of one class up to the next value of any other: a pure element, or more of the last one.
            j = live[winner]
            if pure != j:
                cls[i], cnt[i] = j, 0
                i += 1
                e += 1
                ptr[e] = i
                pure = j
            k = at[j]
            while k < offsets[j + 1] and (n_live == 1 or dealt[k] < second):
                k += 1
            cnt[i - 1] += k - at[j]
            at[j] = k
        else:
            # Several classes share the least value: one element, with an entry for each.
            for a in range(n_live):
                if head[a] == least:
                    j = live[a]
                    k = at[j]
                    while k < offsets[j + 1] and dealt[k] == least:
                        k += 1
                    cls[i], cnt[i] = j, k - at[j]
                    i += 1
                    at[j] = k
            e += 1
            ptr[e] = i
            pure = -1
        n_live = _refresh(dealt, at, offsets, live, head)
    return e, i


@inner
def _sort_few(items: CodeArray, lo: int, hi: int) -> None:
    """Sort the items lo .. hi - 1 by insertion."""
    for a in range(lo + 1, hi):
        item = items[a]
        b = a
        while b > lo and items[b - 1] > item:
            items[b] = items[b - 1]
            b -= 1
        items[b] = item


@kernel
def _gather(
    values: FloatArray, codes: CodeArray, weights: IntArray, order: IntArray, n_classes: int
) -> tuple[CodeArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Make elements of rows put in order, missing values first.

    Parameters
    ----------
    values, codes, weights
        Value, class and weight of each row; no weights stand for ones.
    order
        The rows from the least value to the greatest.
    n_classes
        Number of classes.

    Returns
    -------
    cls, cnt, ptr
        The elements.
    first, last
        Least and greatest value of each.
    """
    n = order.shape[0]
    weighted = weights.shape[0] > 0
    cls = np.empty(n, np.int32)
    cnt = np.empty(n, np.int64)
    ptr = np.zeros(n + 1, np.int64)
    first = np.empty(n, np.float64)
    last = np.empty(n, np.float64)
    counts = np.zeros(n_classes, np.int64)
    e = i = 0
    pure = -1
    row = 0
    while row < n:
        # The rows of one value: count its classes, and list them from entry i on.
        x = values[order[row]]
        n_seen = 0
        while row < n and (values[order[row]] == x or (np.isnan(x) and np.isnan(values[order[row]]))):
            j = codes[order[row]]
            w = weights[order[row]] if weighted else 1
            if counts[j] == 0 and w > 0:
                cls[i + n_seen] = j
                n_seen += 1
            counts[j] += w
            row += 1
        if n_seen == 0:
            continue
        _sort_few(cls, i, i + n_seen)
        if n_seen == 1 and cls[i] == pure:
            cnt[i - 1] += counts[pure]
            counts[pure] = 0
        else:
            for a in range(i, i + n_seen):
                cnt[a] = counts[cls[a]]
                counts[cls[a]] = 0
            pure = cls[i] if n_seen == 1 else -1
            first[e] = x
            i += n_seen
            e += 1
            ptr[e] = i
        last[e - 1] = x
    return cls[:i].copy(), cnt[:i].copy(), ptr[: e + 1].copy(), first[:e].copy(), last[:e].copy()


@bare_kernel
def _list_elements(
    table: IntArray, cls: CodeArray, cnt: IntArray, ptr: IntArray, first: IntArray, last: IntArray
) -> tuple[int, int]:
    """List the elements of a dense table of counts as `_from_table` does; return how many, and of entries."""
    n_rows, n_classes = table.shape
    e = i = 0
    ptr[0] = 0
    pure = -1
    for v in range(n_rows):
        begin = i
        for j in range(n_classes):
            if table[v, j] > 0:
                cls[i], cnt[i] = j, table[v, j]
                i += 1
        if i == begin:
            continue
        if i - begin == 1 and cls[begin] == pure:
            cnt[begin - 1] += cnt[begin]
            i = begin
        else:
            pure = cls[begin] if i - begin == 1 else -1
            first[e] = v
            e += 1
        last[e - 1] = v
        ptr[e] = i
    return e, i


def _from_table(table: IntArray) -> tuple[CodeArray, IntArray, IntArray, IntArray, IntArray]:
    """Elements of a dense table of counts, empty rows left out; the table row where each begins and ends."""
    size = int(np.count_nonzero(table))
    most = min(table.shape[0], size)
    cls, cnt = np.empty(size, np.int32), np.empty(size, np.int64)
    ptr, first, last = (np.empty(n, np.int64) for n in (most + 1, most, most))
    e, i = _list_elements(_read_only(table), cls, cnt, ptr, first, last)
    return cls[:i].copy(), cnt[:i].copy(), ptr[: e + 1].copy(), first[:e].copy(), last[:e].copy()


@bare_kernel
def _add_counts(cls: CodeArray, cnt: IntArray, ptr: IntArray, starts: IntArray, counts: IntArray) -> None:
    """Add the class counts of the parts that begin at the elements ``starts``."""
    n_parts = starts.shape[0]
    for p in range(n_parts):
        stop = starts[p + 1] if p + 1 < n_parts else ptr.shape[0] - 1
        for i in range(ptr[starts[p]], ptr[stop]):
            counts[p, cls[i]] += cnt[i]


@kernel
def _coarsen(
    cls: CodeArray, cnt: IntArray, ptr: IntArray, starts: IntArray, n_classes: int
) -> tuple[CodeArray, IntArray, IntArray]:
    """Elements joined into blocks that begin at ``starts``."""
    n_blocks = starts.shape[0]
    out_ptr = np.zeros(n_blocks + 1, np.int64)
    size = 0
    for b in range(n_blocks):
        stop = starts[b + 1] if b + 1 < n_blocks else ptr.shape[0] - 1
        size += min(n_classes, ptr[stop] - ptr[starts[b]])
    out_cls = np.empty(size, np.int32)
    out_cnt = np.empty(size, np.int64)
    counts = np.zeros(n_classes, np.int64)
    at = 0
    for b in range(n_blocks):
        stop = starts[b + 1] if b + 1 < n_blocks else ptr.shape[0] - 1
        for i in range(ptr[starts[b]], ptr[stop]):
            counts[cls[i]] += cnt[i]
        for j in range(n_classes):
            if counts[j] > 0:
                out_cls[at], out_cnt[at] = j, counts[j]
                counts[j] = 0
                at += 1
        out_ptr[b + 1] = at
    return out_cls[:at], out_cnt[:at], out_ptr


@kernel
def block_starts(cnt: IntArray, ptr: IntArray, rows: int) -> IntArray:
    """Elements that begin a block, if blocks close at ``rows`` rows and a heavier element begins its own."""
    n_elements = ptr.shape[0] - 1
    starts = np.empty(n_elements, np.int64)
    n_blocks = 0
    size = rows
    for e in range(n_elements):
        own = 0
        for i in range(ptr[e], ptr[e + 1]):
            own += cnt[i]
        if size >= rows or own >= rows:
            starts[n_blocks] = e
            n_blocks += 1
            size = 0
        size += own
    return starts[:n_blocks].copy()


def _read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Give a read-only view: kernels then meet one type of array, whoever owns it, and compile once."""
    view = array.view()
    view.flags.writeable = False
    return view


def axis_of_counts(counts: IntArray) -> tuple[Axis, IntArray]:
    """Axis of elements that carry counts, and the row of ``counts`` where each element of the axis begins."""
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    cls, cnt, ptr, first, _ = _from_table(counts)
    return Axis(cls, cnt, ptr, counts.shape[1], int(cnt.sum())), first


def axis_of_pairs(codes: npt.NDArray[np.integer], n_values: int, slots: IntArray, n_slots: int) -> Axis:
    """Axis with one element per value, in order, whose classes are ``slots``; every value has rows."""
    keys = codes.astype(np.int64)
    keys *= n_slots
    keys += slots
    keys.sort()
    first = np.concatenate(([True], keys[1:] != keys[:-1]))
    cnt = np.diff(np.flatnonzero(first), append=keys.size)
    keys = keys[first]
    cls = (keys % n_slots).astype(np.int32)
    keys //= n_slots
    ptr = np.searchsorted(keys, np.arange(n_values + 1))
    return Axis(cls, cnt, ptr, n_slots, codes.shape[0])


def axis_in_order(
    values: FloatArray, codes: CodeArray, n_classes: int, weights: IntArray | None
) -> tuple[Axis, FloatArray]:
    """Axis of rows sorted by their values, and the first value of each element.

    >>> axis, first = axis_in_order(np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]), 2, None)
    >>> first, axis.part_counts(np.array([0, 1, 2]))
    (array([0., 1., 2.]), array([[1, 0],
           [1, 1],
           [0, 1]]))
    """
    values = _read_only(np.ascontiguousarray(values, dtype=np.float64))
    codes = _read_only(np.ascontiguousarray(codes, dtype=np.int32))
    each = _read_only(np.ascontiguousarray(() if weights is None else weights, dtype=np.int64))
    cls, cnt, ptr, first, _ = _gather(values, codes, each, np.arange(values.shape[0]), n_classes)
    return Axis(cls, cnt, ptr, n_classes, int(cnt.sum())), first


def axis_of_values(
    values: FloatArray, codes: CodeArray, n_classes: int, weights: IntArray | None
) -> tuple[Axis, Values]:
    """Axis of a numeric column: count when the values are few whole numbers, else sort."""
    values = _read_only(np.ascontiguousarray(values, dtype=np.float64))
    codes = _read_only(np.ascontiguousarray(codes, dtype=np.int32))
    no_weights = np.empty(0, np.int64)
    each = _read_only(no_weights if weights is None else np.ascontiguousarray(weights, dtype=np.int64))
    n = values.shape[0]
    unused = np.empty(0, np.int64)
    lo, hi, n_missing = _whole_range(values)
    if n_missing == n:
        lo = hi = 0.0
    if lo <= hi and (hi - lo + 2) * n_classes <= max(n // 2, 1024):
        table = np.zeros((int(hi - lo) + 2, n_classes), np.int64)
        _count_whole(values, codes, each, lo, table)
        cls, cnt, ptr, first, last = _from_table(table)
        lookup = np.arange(-1, table.shape[0] - 1) + lo
        lookup[0] = np.nan
        spots = Values(lookup[first], lookup[last], unused, unused, merged=False)
        return Axis(cls, cnt, ptr, n_classes, int(cnt.sum())), spots
    if weights is None and n_classes <= _MOST_MERGED_CLASSES:
        offsets, missing = np.zeros(n_classes + 1, np.int64), np.zeros(n_classes, np.int64)
        dealt, at = np.empty(n), np.empty(n_classes, np.int64)
        _deal(values, codes, dealt, offsets, missing, at)
        dealt = dealt[: offsets[-1]]
        for j in range(n_classes):
            dealt[offsets[j] : offsets[j + 1]].sort()
        cls = np.empty(n, np.int32)
        cnt = np.empty(n, np.int64)
        ptr = np.empty(n + 1, np.int64)
        n_elements, n_entries = _merge(
            dealt, offsets, missing, at, np.empty(n_classes, np.int64), np.empty(n_classes), cls, cnt, ptr
        )
        axis = Axis(cls[:n_entries], cnt[:n_entries], ptr[: n_elements + 1], n_classes, n)
        return axis, Values(dealt, dealt, offsets, missing, merged=True)
    # missing values sort last, and belong first
    order = np.roll(np.argsort(values), int(np.count_nonzero(np.isnan(values))))
    cls, cnt, ptr, first, last = _gather(values, codes, each, order, n_classes)
    axis = Axis(cls, cnt, ptr, n_classes, int(cnt.sum()))
    return axis, Values(first, last, unused, unused, merged=False)
