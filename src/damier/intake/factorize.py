"""Distinct values and their codes, by whichever library holds the column.

Every function returns ``(codes, categories)`` under one convention: ``None`` first when a value is missing,
then the values in ascending order (booleans, numbers, text by code point), only those that occur. The coding
is thus the same whatever the row order or the library.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import numbers
import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.intake.table import CodeArray

Coding = tuple[CodeArray, tuple[Any, ...]]

# Types of pandas are recognised by name: this package imports no frame library.
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
_WRITTEN_TYPES = {"Interval", "Period"}


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating, decimal.Decimal)) and math.isnan(value)


def canonical(value: Any) -> Any:
    """Python scalar standing for a value among values of several types.

    Equal values must be one category however they are typed, so ``True``, ``1`` and ``1.0`` are all ``1``
    here (a column of booleans alone never comes this way); a date is its ISO text, an interval of
    ``pandas.cut`` the text pandas writes.

    Raises
    ------
    TypeError
        If the value is not a scalar a category can be made of.
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        real = float(value)
        return int(real) if real.is_integer() else real
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (np.datetime64, datetime.timedelta)) or type(value).__name__ in _WRITTEN_TYPES:
        return str(value)
    raise TypeError(type(value).__name__)


def ordered_codes(native: Any) -> tuple[npt.NDArray[Any], list[Any]] | None:
    """Codes (-1 where missing) and values of an ordered category in their order; None for anything else.

    These are the ordered categoricals of pandas, the enums of polars and the ordered dictionaries of pyarrow.
    """
    library = type(native).__module__.partition(".")[0]
    if library == "pandas":
        if not getattr(native.dtype, "ordered", False):
            return None
        return native.cat.codes.to_numpy(), native.cat.categories.tolist()
    if library == "polars":
        import polars as pl

        if not isinstance(native.dtype, pl.Enum):
            return None
        codes = native.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return codes, native.dtype.categories.to_list()
    if library == "pyarrow":
        if not getattr(native.type, "ordered", False):
            return None
        encoded = native.unify_dictionaries()
        if encoded.num_chunks == 0:
            return np.empty(0, np.int64), []
        codes = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
        return np.concatenate(codes), encoded.chunk(0).dictionary.to_pylist()
    return None


def _order(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (2, value) if isinstance(value, str) else (1, value)


def sorted_categories(values: Sequence[Any]) -> tuple[npt.NDArray[np.int64], tuple[Any, ...]]:
    """Put distinct values into the order of the convention; return where each comes from, and the values.

    >>> sorted_categories(["b", None, 3, "a"])
    (array([1, 2, 3, 0]), (None, 3, 'a', 'b'))
    """
    order = sorted(range(len(values)), key=lambda i: _order(values[i]))
    return np.array(order, np.int64), tuple(values[i] for i in order)


def first_seen_codes(values: Iterable[Any], n: int) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Code hashable values in the order they are first met."""
    index: defaultdict[Any, int] = defaultdict()
    # The dictionary numbers a new key by its own length: the whole loop then runs in C.
    index.default_factory = index.__len__
    codes = np.fromiter(map(index.__getitem__, values), np.int64, n)
    return codes, list(index)


def recode(codes: npt.NDArray[Any], values: Sequence[Any], *, keep_booleans: bool = False) -> Coding:
    """Bring any coding to the convention: drop what does not occur, unify, sort; code -1 means missing."""
    present = np.zeros(len(values) + 1, dtype=bool)
    present[codes] = True  # -1 lands on the extra last place
    if set(map(type, values)) <= {str, type(None)}:
        recoded = _recode_text(codes, values, present)
        if recoded is not None:
            return recoded
    if keep_booleans:
        tidy = [None if is_missing(v) else bool(v) for v in values]
    else:
        tidy = [canonical(v) for v in values]
    tidy.append(None)
    kept = {tidy[i] for i in np.flatnonzero(present).tolist()}
    categories = tuple(sorted(kept, key=_order))
    position = {value: i for i, value in enumerate(categories)}
    remap = np.fromiter((position.get(v, -1) for v in tidy), np.int32, len(tidy))
    return remap[codes], categories


def _recode_text(
    codes: npt.NDArray[Any], values: Sequence[Any], present: npt.NDArray[np.bool_]
) -> Coding | None:
    """Sort strings without hashing them again: there may be millions. None if they are not distinct."""
    absent = [i for i, value in enumerate(values) if value is None] if None in values else []
    missing = bool(present[-1]) or bool(present[absent].any())
    held = present[:-1].copy()
    held[absent] = False
    order = sorted(np.flatnonzero(held).tolist(), key=values.__getitem__)
    remap = np.zeros(len(values) + 1, dtype=np.int32)  # every missing value is 0
    remap[order] = np.arange(len(order), dtype=np.int32) + int(missing)
    ordered = [values[i] for i in order]
    if any(map(operator.eq, ordered, itertools.islice(ordered, 1, None))):
        return None
    return remap[codes], (None, *ordered) if missing else tuple(ordered)


def factorize_numbers(values: npt.NDArray[np.float64]) -> Coding:
    """Code floats; whole numbers become ints, NaN is missing."""
    distinct, codes = np.unique(values, return_inverse=True)
    missing = bool(len(distinct)) and bool(np.isnan(distinct[-1]))
    found = distinct[:-1] if missing else distinct
    categories = tuple(int(v) if v.is_integer() else v for v in found.tolist())
    coded: CodeArray = codes.reshape(-1).astype(np.int32)
    if not missing:
        return coded, categories
    return np.where(coded == len(found), 0, coded + 1).astype(np.int32), (None, *categories)


def factorize_booleans(values: npt.NDArray[np.bool_]) -> Coding:
    """Code booleans, none missing."""
    return recode(values.astype(np.int8), (False, True), keep_booleans=True)


def factorize_text(values: Sequence[Any] | npt.NDArray[Any]) -> Coding:
    """Code strings and missing values held as Python objects."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    codes, found = first_seen_codes(listed, len(listed))
    return recode(codes, found)


def factorize_arrow(column: Any) -> Coding:
    """Code a pyarrow array or chunked array of strings or of a dictionary type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    if len(chunked) == 0:
        return np.empty(0, np.int32), ()
    encoded = chunked.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # older pyarrow keeps one chunk
        encoded = encoded.chunk(0)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found = encoded.dictionary
    if not (pa.types.is_string(found.type) or pa.types.is_large_string(found.type)):
        return recode(codes, found.to_pylist())
    order = pc.sort_indices(found)
    return _ranked(codes, order.to_numpy(), found.take(order).to_pylist())


def _ranked(codes: npt.NDArray[Any], order: npt.NDArray[Any], ordered: list[Any]) -> Coding:
    """Turn codes into ranks, given the order of the distinct values; code -1 (missing) becomes 0."""
    missing = bool((codes < 0).any())
    remap = np.zeros(len(order) + 1, dtype=np.int32)  # the extra last place answers to -1
    remap[order] = np.arange(len(order), dtype=np.int32) + int(missing)
    return remap[codes], (None, *ordered) if missing else tuple(ordered)


def factorize_polars(column: Any) -> Coding:
    """Code a polars series of strings, categoricals or enums."""
    import polars as pl

    text = column.cast(pl.String)
    found = text.drop_nulls().unique().sort()
    if len(found) == 0:
        return np.zeros(len(text), np.int32), (None,) if len(text) else ()
    ranks = pl.int_range(len(found), eager=True, dtype=pl.Int32)
    codes = text.replace_strict(found, ranks, default=None, return_dtype=pl.Int32)
    missing = text.null_count() > 0
    if missing:
        codes = (codes + 1).fill_null(0)
    listed = found.to_list()
    return np.ascontiguousarray(codes.to_numpy(), np.int32), (None, *listed) if missing else tuple(listed)


def factorize_pandas(column: Any) -> Coding:
    """Code a pandas series of strings or categoricals."""
    dtype = column.dtype
    if dtype == "category":
        return recode(
            column.cat.codes.to_numpy(),
            column.cat.categories.tolist(),
            keep_booleans=column.cat.categories.dtype == bool,
        )
    if getattr(dtype, "storage", None) == "pyarrow":
        return factorize_arrow(column.array.__arrow_array__())
    return factorize_text(column.to_numpy(dtype=object))
