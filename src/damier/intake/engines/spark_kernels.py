"""What Spark's workers run: counts of their rows, in rows that Spark adds up.

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

WIDTH = 16
"""Classes counted side by side in one row."""

_ROWS = 1 << 17
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
    width: int,
    values: bool,
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that counts a partition.

    It takes batches of columns, and yields rows ``k`` (which task), ``bin``, ``block`` (which classes),
    ``low``, ``high``, ``n0, n1, ...``. Rows without a value are in bin -1. With ``values``, a distinct value
    of task j is a row of its own with ``k = j + number of tasks`` and the value as its bin; where there are
    too many, one row with ``k = j + 2 * number of tasks`` says so.

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
    width : int
        Classes side by side in a row.
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
        yield from rows_of(counts, width)

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


def rows_of(counts: Sequence[Counts], width: int) -> Iterator[Any]:
    """Yield counts as rows: see `counting`."""
    import pyarrow as pa

    for j, one in enumerate(counts):
        n_classes = one.counts.shape[1]
        bins = np.flatnonzero(one.high >= one.low)
        table = np.vstack([one.missing[None], one.counts[bins]])
        parts: list[Any] = []
        for block, start in enumerate(range(0, n_classes, width)):
            part = np.zeros((len(table), width), np.int64)
            part[:, : table[:, start : start + width].shape[1]] = table[:, start : start + width]
            low = np.append(_MOST, signed(one.low[bins]))
            high = np.append(_LEAST, signed(one.high[bins]))
            parts.append((np.full(len(table), j), np.append(-1, bins), block, low, high, part))
        many = len(counts)
        if one.values is not None:
            distinct = signed(one.values)
            parts.append((np.full(len(distinct), j + many), distinct, 0, distinct, distinct, None))
        else:
            parts.append((np.array([j + 2 * many]), np.zeros(1, np.int64), 0, [_MOST], [_LEAST], None))
        for k, held, block, low, high, part in parts:
            sums = np.zeros((len(k), width), np.int64) if part is None else part
            columns = {
                "k": np.asarray(k, np.int32),
                "bin": np.asarray(held, np.int64),
                "block": np.full(len(k), block, np.int32),
                "low": np.asarray(low, np.int64),
                "high": np.asarray(high, np.int64),
                **{f"n{i}": np.ascontiguousarray(sums[:, i]) for i in range(width)},
            }
            yield pa.RecordBatch.from_pydict(columns)


def packing(width: int, n_columns: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that turns rows added up by Spark into few bytes."""

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        held = [batch for batch in batches if batch.num_rows]
        blobs: list[bytes] = []
        if held:
            table = pa.Table.from_batches(held)
            columns = [table.column(i).to_numpy() for i in range(5 + width)]
            blobs = [pack_rows(columns, n_columns)]
        yield pa.RecordBatch.from_pydict({"blob": pa.array(blobs, pa.binary())})

    return pack


def merging(width: int, n_columns: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that puts the bytes of all partitions into one."""

    def merge(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        blobs = [blob for batch in batches for blob in batch.column(0).to_pylist()]
        held = [unpack_rows(blob, width) for blob in blobs]
        if held:
            columns = [np.concatenate(parts) for parts in zip(*held, strict=True)]
            blobs = [pack_rows(columns, n_columns)]
        yield pa.RecordBatch.from_pydict({"blob": pa.array(blobs, pa.binary())})

    return merge


def pack_rows(columns: Sequence[Any], n_columns: int) -> bytes:
    """Sort rows, leave out distinct values of columns that have too many, and compress."""
    k, bins = columns[0], columns[1]
    sizes = np.bincount(k, minlength=3 * n_columns)
    many = (sizes[2 * n_columns :] > 0) | (sizes[n_columns : 2 * n_columns] > MOST_VALUES)
    dropped = np.zeros(3 * n_columns, bool)
    dropped[n_columns : 2 * n_columns] = many
    chosen = np.flatnonzero(~dropped[k])
    order = chosen[np.lexsort((columns[2][chosen], bins[chosen], k[chosen]))]
    overflown = np.flatnonzero(many & (sizes[2 * n_columns :] == 0)) + 2 * n_columns
    empty = {0: overflown, 3: np.full(len(overflown), _MOST), 4: np.full(len(overflown), _LEAST)}
    none = np.zeros(len(overflown), np.int64)
    held = [
        np.append(column[order].astype(np.int64), empty.get(i, none)).view(np.uint64)
        for i, column in enumerate(columns)
    ]
    # Differences are small, and bytes of one weight side by side compress well.
    held[4] = held[4] - held[3]
    for i in (1, 3):
        held[i] = np.diff(held[i], prepend=np.uint64(0))
    turned = [np.ascontiguousarray(column.view(np.uint8).reshape(-1, 8).T).tobytes() for column in held]
    return zlib.compress(b"".join(turned), 6)


def unpack_rows(blob: bytes, width: int) -> list[Any]:
    """Turn the bytes back into rows."""
    held = np.frombuffer(zlib.decompress(blob), np.uint8).reshape(5 + width, 8, -1)
    columns = [np.ascontiguousarray(part.T).view(np.uint64).ravel() for part in held]
    columns[1] = np.cumsum(columns[1], dtype=np.uint64)
    columns[3] = np.cumsum(columns[3], dtype=np.uint64)
    columns[4] = columns[4] + columns[3]
    return [column.view(np.int64) for column in columns]


def counts_of(
    rows: Sequence[Any], binnings: Sequence[Binning], classes: Sequence[int], width: int, values: bool
) -> list[Counts]:
    """Turn rows that were added up into counts."""
    many = len(binnings)
    k, bins, block, low, high, *sums = rows
    result = []
    for j, (binning, n_classes) in enumerate(zip(binnings, classes, strict=True)):
        counts = no_counts(binning, n_classes)
        for start in range(0, n_classes, width):
            chosen = np.flatnonzero((k == j) & (block == start // width))
            at = bins[chosen]
            met, absent = chosen[at >= 0], chosen[at < 0]
            for i in range(min(width, n_classes - start)):
                counts.counts[bins[met], start + i] = sums[i][met]
                counts.missing[start + i] = sums[i][absent].sum()
            counts.low[bins[met]] = unsigned(low[met])
            counts.high[bins[met]] = unsigned(high[met])
        if values and not (k == j + 2 * many).any():
            found = np.sort(unsigned(bins[k == j + many]))
            counts = counts._replace(values=found if len(found) <= MOST_VALUES else None)
        result.append(counts)
    return result
