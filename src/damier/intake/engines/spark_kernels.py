"""What Spark's workers run: counts of their rows, and sums of these counts.

This module and :mod:`damier.intake.engines.prebins` are shipped by value: workers need NumPy and pyarrow,
not Damier.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from damier.intake.engines.prebins import (
    CHANGED,
    DROPPED,
    MOST_VALUES,
    UNMET,
    Binning,
    Counts,
    Level,
    count_numbers,
    no_counts,
    parts_of,
)

_ROWS = 1 << 17
# Bytes of a row between workers, about: Spark puts thousands of rows into one batch.
_BYTES = 8192
_MISSING = -1  # the row of a task that says how many values are missing
_BUCKETS = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SIGN = np.uint64(1 << 63)
_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class Packed(NamedTuple):
    """A binning without the bins that no row is in, or goes on from."""

    levels: tuple[tuple[int, Any, Any, Any, Any, Any], ...]
    n_bins: int


def pack_binning(binning: Binning) -> Packed:
    """Leave out the bins that are dropped: most of the leading ones."""
    levels = []
    for level in binning.levels:
        kept = np.flatnonzero(level.base >= 0)
        dropped = np.packbits(level.base == DROPPED)
        levels.append((len(level.base), dropped, kept, level.low[kept], level.shift[kept], level.base[kept]))
    return Packed(tuple(levels), binning.n_bins)


def unpack_binning(packed: Packed) -> Binning:
    """Put the bins that are dropped back."""
    levels = []
    for length, dropped, kept, low, shift, base in packed.levels:
        absent = np.where(np.unpackbits(dropped, count=length), DROPPED, UNMET).astype(np.int64)
        level = Level(np.zeros(length, np.uint64), np.full(length, 63, np.uint8), absent)
        level.low[kept], level.shift[kept], level.base[kept] = low, shift, base
        levels.append(level)
    return Binning(tuple(levels), packed.n_bins)


def signed(keys: Any) -> Any:
    """Turn keys into int64, which Spark has, in the same order."""
    return (keys ^ _SIGN).view(np.int64)


def unsigned(held: Any) -> Any:
    """Turn them back."""
    return np.ascontiguousarray(held, np.int64).view(np.uint64) ^ _SIGN


def counting(
    tasks: Sequence[tuple[int, Packed, int]],
    coders: Sequence[Sequence[tuple[int, Any, bool, int]]],
    weight: int | None,
    values: bool,
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that counts a partition.

    It takes batches of columns, and yields rows ``k`` (which task), ``block`` and ``blob`` for `adding`.

    Parameters
    ----------
    tasks : sequence of (int, Packed, int)
        The column that is counted, its bins, and the number of classes.
    coders : sequence
        How the class of a row is found: for all tasks if there is one, for none if it is empty. Of each axis:
        its column, its bounds or None where the column is the part, whether missing values are alone, and the
        number of parts.
    weight : int or None
        The column of the weights.
    values : bool
        Whether to list distinct values.
    """

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        unpacked = [unpack_binning(packed) for _, packed, _ in tasks]
        counts = [
            no_counts(binning, n_classes, values)
            for binning, (_, _, n_classes) in zip(unpacked, tasks, strict=True)
        ]
        for held in _larger(batches):
            columns = [held.column(j).to_numpy() for j in range(held.num_columns)]
            weights = None if weight is None else columns[weight].astype(np.int64)
            codes = _codes(held, columns, coders[0]) if len(coders) == 1 else None
            for j, (binning, (at, _, _)) in enumerate(zip(unpacked, tasks, strict=True)):
                known = _codes(held, columns, coders[j]) if len(coders) > 1 else codes
                counts[j] = count_numbers(counts[j], columns[at], known, weights, binning)
        for j, one in enumerate(counts):
            yield _batch(j, _blobs(one))

    return count


def _codes(held: Any, columns: Sequence[Any], coder: Sequence[tuple[int, Any, bool, int]]) -> Any:
    """Find the classes of the rows of a batch."""
    found: Any = 0
    for at, bounds, alone, size in coder:
        if bounds is None and held.column(at).null_count:
            raise ValueError(CHANGED)  # a class that was not there
        part = columns[at] if bounds is None else parts_of(columns[at], bounds, alone)
        found = found * size + part.astype(np.int64)
    return found


def _larger(batches: Iterable[Any]) -> Iterator[Any]:
    """Put batches together: adding counts to counts takes time whatever the number of rows."""
    import pyarrow as pa

    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _batch(k: int, blobs: Sequence[tuple[int, bytes]]) -> Any:
    import pyarrow as pa

    columns = {
        "k": pa.array([k] * len(blobs), pa.int32()),
        "block": pa.array([block for block, _ in blobs], pa.int32()),
        "blob": pa.array([blob for _, blob in blobs], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _blobs(one: Counts) -> list[tuple[int, bytes]]:
    """Cut the counts of one task into blocks of a few kilobytes.

    A block from 0 on has neighbouring bins: rows of the bin, its least and greatest key and its counts.
    Block -1 has the missing values, and whether distinct values are too many or not asked for. Those before
    it have distinct values, a bucket each.
    """
    bins = np.flatnonzero(one.high >= one.low)
    rows = np.column_stack([bins, signed(one.low[bins]), signed(one.high[bins]), one.counts[bins]])
    blocks = bins // _block_size(one.counts.shape[1])
    found = [(_MISSING, np.append(one.values is None, one.missing).astype(np.int64).tobytes())]
    found += [(block, held.tobytes()) for block, held in _runs(blocks, rows)]
    if one.values is not None:
        buckets = ((one.values * _MIX) >> np.uint64(58)).astype(np.int64)
        order = np.argsort(buckets, kind="stable")
        held = _runs(buckets[order], one.values[order])
        found += [(_MISSING - 1 - bucket, keys.tobytes()) for bucket, keys in held]
    return found


def _block_size(n_classes: int) -> int:
    return max(1, _BYTES // (24 + 8 * n_classes))


def _runs(labels: Any, rows: Any) -> Iterator[tuple[int, Any]]:
    """Cut rows where their labels, which ascend, change."""
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    for start, held in zip(starts, np.split(rows, starts[1:]), strict=False):  # one part of no rows
        yield int(labels[start]), held


class _Sum:
    """Counts of one task that grow block by block."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.missing = np.zeros(n_classes, np.int64)
        self.blocks: dict[int, Any] = {}
        self.values: dict[int, Any] | None = {}

    def add(self, block: int, blob: bytes) -> None:
        """Add what `_blobs` made."""
        if block >= 0:
            self._add_block(block, np.frombuffer(blob, np.int64).reshape(-1, 3 + self.n_classes))
        elif block == _MISSING:
            many, *missing = np.frombuffer(blob, np.int64)
            self.missing += missing
            self.values = None if many else self.values
        elif self.values is not None:
            known = self.values.get(block, np.empty(0, np.uint64))
            self.values[block] = np.union1d(known, np.frombuffer(blob, np.uint64))
            if sum(map(len, self.values.values())) > MOST_VALUES:
                self.values = None

    def _add_block(self, block: int, rows: Any) -> None:
        size = _block_size(self.n_classes)
        if block not in self.blocks:
            held = np.zeros((size, 2 + self.n_classes), np.int64)
            held[:, 0], held[:, 1] = _MOST, _LEAST
            self.blocks[block] = held
        held, at = self.blocks[block], rows[:, 0] - block * size
        held[at, 0] = np.minimum(held[at, 0], rows[:, 1])
        held[at, 1] = np.maximum(held[at, 1], rows[:, 2])
        held[at, 2:] += rows[:, 3:]

    def packed(self) -> bytes:
        """Put all into few bytes: see `unpack_counts`."""
        size = _block_size(self.n_classes)
        rows = [np.empty((0, 3 + self.n_classes), np.int64)]
        for block, held in sorted(self.blocks.items()):
            bins = np.flatnonzero(held[:, 1] >= held[:, 0])
            rows.append(np.column_stack([bins + block * size, held[bins]]))
        table = np.concatenate(rows).view(np.uint64)
        # Differences are small, and bytes of one weight side by side compress well.
        table[:, 2] -= table[:, 1]
        table[:, :2] = np.diff(table[:, :2], axis=0, prepend=np.uint64(0))
        values = np.empty(0, np.uint64)
        if self.values:
            values = np.sort(np.concatenate(list(self.values.values())))
        head = np.array([self.values is None, len(values), *self.missing], np.uint64)
        turned = [_turned(held) for held in (*table.T, np.diff(values, prepend=np.uint64(0)))]
        return zlib.compress(head.tobytes() + b"".join(turned), 6)


def adding(classes: Sequence[int]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that adds up the blocks of some tasks, and yields rows ``k`` and ``blob``.

    All blocks of a task must be in one partition. ``classes`` are the numbers of classes of all tasks.
    """

    def add(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        sums: dict[int, _Sum] = {}
        for batch in batches:
            for k, block, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if k not in sums:
                    sums[k] = _Sum(classes[k])
                sums[k].add(block, blob)
        for k, one in sums.items():
            yield pa.RecordBatch.from_pydict(
                {"k": pa.array([k], pa.int32()), "blob": pa.array([one.packed()], pa.binary())}
            )

    return add


def _turned(column: Any) -> bytes:
    return np.ascontiguousarray(np.ascontiguousarray(column).view(np.uint8).reshape(-1, 8).T).tobytes()


def _turned_back(data: Any) -> Any:
    return np.ascontiguousarray(data.reshape(8, -1).T).view(np.uint64).ravel()


def unpack_counts(blob: bytes, binning: Binning, n_classes: int, values: bool) -> Counts:
    """Turn the bytes of a task back into counts."""
    data = np.frombuffer(zlib.decompress(blob), np.uint8)
    split = 8 * (2 + n_classes)
    many, n_values, *missing = data[:split].view(np.int64)
    end = len(data) - 8 * int(n_values)
    bins, low, span, *sums = (_turned_back(held) for held in data[split:end].reshape(3 + n_classes, -1))
    counts = no_counts(binning, n_classes)
    counts.missing[:] = missing
    at, low = np.cumsum(bins, dtype=np.uint64).astype(np.int64), np.cumsum(low, dtype=np.uint64)
    counts.counts[at] = np.column_stack(sums).view(np.int64)
    counts.low[at], counts.high[at] = unsigned(low), unsigned(low + span)
    if not values or many:
        return counts
    return counts._replace(values=np.cumsum(_turned_back(data[end:]), dtype=np.uint64))
