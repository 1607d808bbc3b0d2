"""Frames, arrays and dicts of columns read into a table.

What becomes what
-----------------
======================================  ==================================================================
numbers (any width, decimals, nullable)  numeric; integers beyond 2**53 become the nearest float64, but
                                         stay apart where they are taken as names
dates, datetimes, times, durations       numeric, in microseconds (:mod:`damier.intake.dates`)
booleans, text, categoricals             categorical
ordered categoricals, enums of polars    ranks in their order
objects                                  numeric when all are numbers (or all dates), else categorical
None, NaN, NaT, null, masked             missing; a column without any value is numeric
lists, dicts, bytes, complex numbers     an error that names the column
======================================  ==================================================================
"""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from damier.intake import dates, factorize
from damier.intake.table import (
    CategoricalColumn,
    Column,
    FloatArray,
    NumericColumn,
    NumericKind,
    SparseColumns,
    Table,
)
from damier.lazy import LazyModule

if TYPE_CHECKING:
    import narwhals as nw
else:
    nw = LazyModule("narwhals")  # only for frames: a model scores without any

BACKENDS = ("pandas", "polars", "pyarrow")


def read_table(X: Any) -> Table:
    """Read whatever holds columns.

    Parameters
    ----------
    X : data frame, 2-D array, sparse matrix, dict of columns, list of dicts or dict
        A pandas, polars or pyarrow frame (or any other that narwhals knows), a 2-D NumPy array or nested
        sequence, a sparse matrix, a dict from name to a 1-D column, a list of rows as dicts, or one row as a
        dict from name to value.

    Returns
    -------
    Table
        float64 columns are views of the input where its library allows it; nothing is copied needlessly.

    Raises
    ------
    TypeError, ValueError
        If a name appears twice, a column is nested or complex, or the input is not two-dimensional.

    Examples
    --------
    >>> table = read_table({"size": [1.5, None, 3], "colour": ["red", "blue", None]})
    >>> table["size"].values
    array([1.5, nan, 3. ])
    >>> table["colour"].categories, table["colour"].codes.tolist()
    ((None, 'blue', 'red'), [2, 1, 0])
    """
    if isinstance(X, Table):
        return X
    X = as_columns(X)
    if hasattr(X, "toarray"):  # before Mapping: a sparse dictionary of keys is one
        return _read_sparse(X)
    if isinstance(X, Mapping):
        return _read_dict(dict(X))
    frame = as_frame(X)
    if frame is None:
        return _read_matrix(X)
    if frame.implementation.is_pandas() and _all_sparse(X):
        return replace(_read_sparse(X.sparse.to_coo(), _text_names(list(X.columns))), library="pandas")
    return _read_frame(frame)


def as_columns(X: Any) -> Any:
    """Turn rows given as dicts, or one row, into a dict of columns; return anything else as it is.

    A key that a row does not have is missing there.

    >>> as_columns([{"a": 1}, {"a": 2, "b": "x"}]), as_columns({"a": 2, "b": "x"})
    ({'a': [1, 2], 'b': [None, 'x']}, {'a': [2], 'b': ['x']})
    """
    if is_row(X):
        return {name: [value] for name, value in X.items()}
    if not (isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping)):
        return X
    if not all(isinstance(row, Mapping) for row in X):
        raise ValueError("X is a list of rows of which some are dicts and others are not: make all dicts")
    names = dict.fromkeys(name for row in X for name in row)
    return {name: [row.get(name) for row in X] for name in names}


def is_row(X: Any) -> bool:
    """Return whether X is one row: a dict of single values.

    >>> is_row({"a": 1, "b": "x"}), is_row({"a": [1, 2]}), is_row([{"a": 1}])
    (True, False, False)
    """
    if not isinstance(X, Mapping) or hasattr(X, "toarray"):  # some sparse matrices are dicts
        return False
    return len(X) > 0 and all(map(_single, X.values()))


def row_values(X: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the values of one row, given as a dict or as a list of one dict, under these names.

    None where X is something else, or lacks a name: `read_columns` then says what is wrong, if anything is.

    >>> row_values({"a": 1, "b": "x", "c": []}, ["b", "a"]), row_values({"a": [1]}, ["a"])
    (['x', 1], None)
    """
    if type(X) is list and len(X) == 1:
        X = X[0]
    if not isinstance(X, dict) or hasattr(X, "toarray") or not names:
        return None
    try:
        values = [X[name] for name in names]
    except KeyError:
        return None
    return values if all(map(_single, values)) else None


_PLAIN = frozenset((str, float, int, bool, type(None)))


def _single(value: Any) -> bool:
    """Return whether a value is no column, nor anything else that holds several."""
    return type(value) in _PLAIN or isinstance(value, str) or not hasattr(value, "__len__")


def _all_sparse(frame: Any) -> bool:
    """Return whether all columns of a pandas frame are sparse and zero where nothing is stored."""
    return len(frame.columns) > 0 and all(
        type(dtype).__name__ == "SparseDtype" and dtype.fill_value == 0 and dtype.subtype.kind in "iuf"
        for dtype in frame.dtypes
    )


def _read_sparse(X: Any, names: list[str] | None = None) -> Table:
    """Read a sparse matrix; what is not stored is zero."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse {X.ndim}D array instead: pass a matrix")
    if X.dtype.kind not in "iufb":
        raise ValueError(
            f"Complex data not supported: X is a sparse matrix of {X.dtype}; numbers are required"
        )
    matrix = X.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    made_up = [f"x{j}" for j in range(matrix.shape[1])]
    return Table(SparseColumns(matrix, names or made_up), matrix.shape[0], named=names is not None)


def read_columns(X: Any, names: Sequence[str], n_columns: int | None = None) -> Table:
    """Read the columns that a model uses, under the names it knows them by.

    Parameters
    ----------
    X : Table, or whatever `read_table` reads
        Columns are found by name, in any order; others are not read. Where there are no names, because X is
        an array or because the model was fitted on one (its names are ``x0``, ``x1``, ...), columns are found
        by position.
    names : sequence of str
        The columns.
    n_columns : int, optional
        Number of columns that were fitted, which X must have when they are found by position; by default that
        of ``names``.

    Raises
    ------
    ValueError
        If a column is missing, naming it, or if the number of columns is wrong.

    Examples
    --------
    >>> read_columns({"b": [1, 2], "c": [[], []], "a": [3, 4]}, ["a", "b"]).names
    ('a', 'b')
    """
    values = row_values(X, names)
    if values is not None:
        X = {name: [value] for name, value in zip(names, values, strict=True)}
    X = read_table(X) if hasattr(X, "toarray") else as_columns(X)
    n_columns = len(names) if n_columns is None else n_columns
    frame = None if isinstance(X, (Table, Mapping)) else as_frame(X)
    if isinstance(X, Table) or (frame is None and not isinstance(X, Mapping)):
        table = read_table(X)
        if table.names == tuple(names) and (table.named or table.n_columns == n_columns):
            return table
        held, named, n_rows = list(table.names), table.named, table.n_rows
    else:
        table = None
        held, named = _text_names(list(X if frame is None else frame.columns)), True
        n_rows = len(next(iter(X.values()), ())) if frame is None else len(frame)
    position = {name: j for j, name in enumerate(held)}
    if named and all(name in position for name in names):
        chosen = [position[name] for name in names]
    else:
        chosen = _positions(names, held, named, n_columns)
    if table is not None:
        read = Table(tuple(table.columns[j] for j in chosen), n_rows, library=table.library)
    elif not chosen:
        read = Table((), n_rows)
    elif frame is None:
        keys = list(X)
        read = _read_dict({keys[j]: X[keys[j]] for j in dict.fromkeys(chosen)})
    else:
        read = _read_frame(frame.select([frame.columns[j] for j in chosen]))
    return read.renamed(names)


def _positions(names: Sequence[str], held: list[str], named: bool, n_columns: int) -> list[int]:
    """Find columns by position, for want of names on either side."""
    made_up = [int(name[1:]) if name[:1] == "x" and name[1:].isdecimal() else -1 for name in names]
    numbered = bool(made_up) and all(0 <= j < n_columns for j in made_up)
    if named and not numbered:
        missing = [name for name in names if name not in held]
        names = ", ".join(map(repr, missing[:10]))
        more = f", ... ({len(missing)} in all)" if len(missing) > 10 else ""
        raise ValueError(f"X lacks column{'s' if len(missing) > 1 else ''} {names}{more}")
    if len(held) == n_columns and (numbered or len(names) == n_columns):
        return made_up if numbered else list(range(n_columns))
    if len(held) != n_columns:
        raise ValueError(f"X has {len(held)} columns, but {n_columns} were fitted")
    raise ValueError(
        "X has no column names, and the model finds its columns by name "
        f"({', '.join(map(repr, names[:10]))}): pass a frame or a dict of columns"
    )


def make_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """Build a frame from columns.

    Parameters
    ----------
    columns : mapping from name to values
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        By default the first of pandas, polars and pyarrow that is installed, else a plain dict of lists.

    Examples
    --------
    >>> make_frame({"a": [1, 2]}, backend="dict")
    {'a': [1, 2]}
    """
    if backend is None:
        backend = next((name for name in BACKENDS if importlib.util.find_spec(name)), "dict")
    plain = {name: list(values) for name, values in columns.items()}
    if backend == "dict":
        return plain
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}: choose one of {', '.join(BACKENDS)}, dict")
    library = cast(Literal["pandas", "polars", "pyarrow"], backend)
    try:
        return nw.from_dict(plain, backend=library).to_native()
    except UnicodeEncodeError:  # half a character, which no frame of text can hold
        plain = {_encodable(name): [_encodable(v) for v in values] for name, values in plain.items()}
        return nw.from_dict(plain, backend=library).to_native()


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Wrap a frame, collected if it was lazy, or return None when X is none."""
    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        _text_names(list(X.column_names if hasattr(X, "column_names") else X.columns))
        raise
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def read_column(values: Any, name: str = "x") -> Column:
    """Read one column: a series of any frame library, a 1-D array or a sequence."""
    series = as_series(values)
    if series is not None:
        return _from_series(series, name)
    array = _as_array(values, name)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} must be one-dimensional, got an array of shape {array.shape}")
    return _from_array(array, name)


def as_series(values: Any) -> nw.Series[Any] | None:
    """Wrap a series of a frame library, or return None when it is none."""
    if type(values).__module__.startswith("pyarrow") and hasattr(values, "dictionary_encode"):
        import pyarrow as pa

        values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series if isinstance(series, nw.Series) else None


def as_categorical(column: Column) -> CategoricalColumn:
    """Take the distinct numbers of a column as categories, dates and times as their text, ranks as values.

    A categorical column is returned as it is.
    """
    if isinstance(column, CategoricalColumn):
        return column
    if column.kind == "rank":
        ranks = np.where(np.isnan(column.values), -1, column.values).astype(np.int64)
        return CategoricalColumn(column.name, *factorize.recode(ranks, column.legend))
    codes, categories = column.exact or factorize.factorize_numbers(column.values)
    if column.kind != "number":
        texts = tuple(
            None if c is None else dates.number_text(c, column.kind, column.legend) for c in categories
        )
        codes, categories = factorize.recode(codes, texts)
    return CategoricalColumn(column.name, codes, categories)


def without_order(table: Table) -> Table:
    """Take the values of ordered categories as names."""
    ranks = [column for column in table if isinstance(column, NumericColumn) and column.kind == "rank"]
    if not ranks:
        return table
    names = {column.name: as_categorical(column) for column in ranks}
    return replace(table, columns=tuple(names.get(column.name, column) for column in table))


def as_numeric(column: Column) -> NumericColumn:
    """Take booleans as 0 and 1; a numeric column is returned as it is.

    Raises
    ------
    ValueError
        If the column holds anything else.
    """
    if isinstance(column, NumericColumn):
        return column
    if not set(map(type, column.categories)) <= {bool, type(None)}:
        raise ValueError(f"column {column.name!r} is categorical: it holds {column.categories[-1]!r}")
    worth = [np.nan if c is None else float(c) for c in column.categories]
    return NumericColumn(column.name, np.array(worth, dtype=np.float64)[column.codes])


def _read_dict(columns: dict[Any, Any]) -> Table:
    names = _text_names(list(columns))
    read = tuple(read_column(values, name) for name, values in zip(names, columns.values(), strict=True))
    lengths = {_length(column) for column in read}
    if len(lengths) > 1:
        listed = ", ".join(f"{column.name!r}: {_length(column)}" for column in read[:10])
        raise ValueError(f"columns differ in length ({listed})")
    return Table(read, lengths.pop() if lengths else 0)


def _read_frame(frame: nw.DataFrame[Any]) -> Table:
    names = _text_names(list(frame.columns))
    # column by column through an iterator: to look one up takes time in the number of columns
    read = tuple(_from_series(series, name) for series, name in zip(frame.iter_columns(), names, strict=True))
    library = frame.implementation.name.lower()
    return Table(read, len(frame), library=library if library in BACKENDS else None)


def _read_matrix(X: Any) -> Table:
    array = _as_array(X, None)
    if array.dtype.names is not None:
        raise TypeError("X is a structured array: pass {name: X[name] for name in X.dtype.names} instead")
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: split it into real and imaginary columns")
    if isinstance(X, (str, Path)):
        raise ValueError(
            f"Expected 2D array, got {str(X)!r} instead: read the file into a data frame. Some estimators "
            "are fitted to files; their models are saved, and applied to files by 'damier predict'."
        )
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead (shape {array.shape}). Reshape your data: "
            "array.reshape(-1, 1) if it has one feature, array.reshape(1, -1) if it is one row."
        )
    read = tuple(_from_array(array[:, j], f"x{j}") for j in range(array.shape[1]))
    return Table(read, array.shape[0], named=False)


def _text_names(names: list[Any]) -> list[str]:
    """Names as text, each once."""
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = sorted({text for text in texts if texts.count(text) > 1})
        raise ValueError(f"column name {twice[0]!r} appears more than once: rename the columns of X")
    return texts


def _length(column: Column) -> int:
    return len(column.values if isinstance(column, NumericColumn) else column.codes)


def _as_array(values: Any, name: str | None) -> npt.NDArray[Any]:
    """NumPy array of anything, without ever turning numbers into text."""
    if isinstance(values, np.ma.MaskedArray):
        return plain_array(values)
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # plain ndarray, subclasses such as memmap included
    if hasattr(values, "__array__"):
        return np.asarray(values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "USV":
            # [1.5, "a"] became text: keep the scalars as they are instead.
            array = np.asarray(values, dtype=object)
    except ValueError:
        if name is None:
            raise ValueError("X must be a table: its rows differ in length") from None
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def plain_array(masked: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    """Write what is masked as missing: NaN among numbers, None among anything else."""
    missing = np.ma.getmaskarray(masked)
    if not missing.any():
        return np.asarray(masked.data)
    numbers = masked.dtype.kind in "iuf"
    plain = np.asarray(masked.data).astype(np.float64 if numbers else object)
    plain[missing] = np.nan if numbers else None
    return plain


def nested_error(name: str, held: str) -> TypeError:
    """Say that a column holds what no model can use."""
    if held == "Period" or held.lower().startswith("period["):
        return TypeError(
            f"column {name!r} holds periods: convert it to dates (.dt.to_timestamp()) or to text"
        )
    return TypeError(
        f"column {name!r} holds values of type {held}: each argument must be a string, a number, a boolean "
        "or a date. Convert the column, spread it over several columns, or leave it out."
    )


def _from_series(series: nw.Series[Any], name: str) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        floats = _floats(series, name)
        if dtype.is_integer():
            return _number_column(name, floats, series.to_list)
        return NumericColumn(name, floats)
    if len(series) and not dtype.is_temporal() and series.null_count() == len(series):
        return NumericColumn(name, np.full(len(series), np.nan))
    if isinstance(dtype, nw.Boolean):
        if series.null_count() == 0:
            codes, categories = factorize.factorize_booleans(series.to_numpy().astype(bool, copy=False))
        else:
            values = series.cast(nw.Int8).fill_null(-1).to_numpy()
            codes, categories = factorize.recode(values.astype(np.int8), (False, True), keep_booleans=True)
        return CategoricalColumn(name, codes, categories)
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        try:
            ordered = factorize.ordered_codes(series.to_native())
            if ordered is not None:
                legend = tuple(map(factorize.canonical, ordered[1]))
                ranks = ordered[0].astype(np.float64)
                ranks[ordered[0] < 0] = np.nan
                return NumericColumn(name, ranks, "rank", legend=legend)
            return CategoricalColumn(name, *_factorize_series(series))
        except TypeError as error:
            raise nested_error(name, str(error)) from None
    if dtype.is_temporal():
        return _from_temporal(series, name)
    if isinstance(dtype, (nw.List, nw.Array, nw.Struct, nw.Binary)):
        raise nested_error(name, str(dtype))
    return _from_array(np.asarray(series.to_numpy()), name)


def _number_column(name: str, floats: FloatArray, integers: Callable[[], Sequence[Any]]) -> NumericColumn:
    """Keep whole numbers that float64 would merge apart, for those who take them as names."""
    if max(np.fmax.reduce(floats, initial=0.0), -np.fmin.reduce(floats, initial=0.0)) < 2.0**53:
        return NumericColumn(name, floats)
    codes, found = factorize.first_seen_codes(integers(), len(floats))
    return NumericColumn(name, floats, exact=factorize.recode(codes, found))


def _floats(series: nw.Series[Any], name: str) -> FloatArray:
    if isinstance(series.dtype, (nw.Int128, nw.UInt128)):
        series = series.cast(nw.Float64)  # NumPy has no such integers
    array = series.to_numpy()
    if array.dtype == np.float64:
        return array
    if array.dtype.kind == "O":  # decimals, and nullable columns of some libraries
        return _float_objects(array.tolist(), name)
    return array.astype(np.float64)


def _float_objects(values: Sequence[Any], name: str) -> FloatArray:
    try:
        return np.array([np.nan if factorize.is_missing(v) else float(v) for v in values], dtype=np.float64)
    except OverflowError:
        raise ValueError(
            f"column {name!r} holds a number beyond the range of float64: scale the column, or convert it to "
            "text if its numbers are names"
        ) from None


def _factorize_series(series: nw.Series[Any]) -> factorize.Coding:
    native = series.to_native()
    if series.implementation.is_polars():
        return factorize.factorize_polars(native)
    if series.implementation.is_pyarrow():
        return factorize.factorize_arrow(native)
    if series.implementation.is_pandas():
        return factorize.factorize_pandas(native)
    return factorize.factorize_text(series.to_list())


def _from_temporal(series: nw.Series[Any], name: str) -> NumericColumn:
    dtype = series.dtype
    if isinstance(dtype, nw.Time):
        # Frame libraries differ too much on times of day to ask them; such columns are rare.
        moments = series.to_list()
        values = [np.nan if factorize.is_missing(v) else dates.object_microseconds(v) for v in moments]
        return NumericColumn(name, np.array(values, dtype=np.float64), "time")
    if isinstance(dtype, nw.Duration):
        counted, kind = series.dt.total_microseconds(), "duration"
    else:
        counted, kind = series.dt.timestamp("us"), "date" if isinstance(dtype, nw.Date) else "datetime"
    floats = _floats(counted.fill_null(0), name)
    if counted.null_count():
        floats = np.where(counted.is_null().to_numpy(), np.nan, floats)
    zone = getattr(dtype, "time_zone", None)
    return NumericColumn(name, floats, kind, legend=(zone,) if zone else ())  # type: ignore[arg-type]


def _from_array(array: npt.NDArray[Any], name: str) -> Column:
    kind = array.dtype.kind
    if kind == "b":
        return CategoricalColumn(name, *factorize.factorize_booleans(array))
    if kind in "iu":
        return _number_column(name, array.astype(np.float64), array.tolist)
    if kind == "f":
        return NumericColumn(name, array.astype(np.float64, copy=False))
    if kind == "O":
        return _from_objects(array, name)
    if kind in "UT":
        return CategoricalColumn(name, *factorize.factorize_text(array))
    if kind in "Mm":
        return NumericColumn(name, dates.microseconds(array), "datetime" if kind == "M" else "duration")
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: split column {name!r} into its real and imaginary part"
        )
    raise nested_error(name, str(array.dtype))


def _from_objects(array: npt.NDArray[Any], name: str) -> Column:
    """Read Python scalars of any mixture; the set of their types decides."""
    values = array.tolist()
    types = set(map(type, values))
    if types <= {str, type(None)}:
        if types <= {type(None)}:
            return NumericColumn(name, np.full(len(values), np.nan))
        return CategoricalColumn(name, *factorize.factorize_text(values))
    held = {_family(t) for t in types} - {"missing"}
    if (
        "real" in held
        and len(held) > 1
        and all(factorize.is_missing(v) for v in values if _family(type(v)) == "real")
    ):
        held.discard("real")  # the only floats are NaN
    for t in types:
        if _family(t) == "other":
            raise nested_error(name, t.__name__)
    if held <= {"real"}:
        floats = _float_objects(values, name)
        whole = all(isinstance(v, numbers.Integral) or factorize.is_missing(v) for v in values)
        return _number_column(name, floats, lambda: values) if whole else NumericColumn(name, floats)
    if held == {"datetime"}:
        zones = {str(v.tzinfo) for v in values if getattr(v, "tzinfo", None) is not None}
        legend = (zones.pop() if len(zones) == 1 else "UTC",) if zones else ()
        return NumericColumn(name, _temporal_objects(values), "datetime", legend=legend)
    if len(held) == 1 and (kind := _TEMPORAL.get(next(iter(held)))):
        return NumericColumn(name, _temporal_objects(values), kind)
    if held == {"date", "datetime"}:
        return NumericColumn(name, _temporal_objects(values), "datetime")
    codes, found = factorize.first_seen_codes(values, len(values))
    return CategoricalColumn(name, *factorize.recode(codes, found, keep_booleans=held == {"boolean"}))


_TEMPORAL: dict[str, NumericKind] = {
    "date": "date",
    "datetime": "datetime",
    "time": "time",
    "duration": "duration",
}

_FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((str,), "text"),
    ((bool, np.bool_), "boolean"),
    ((datetime.datetime, np.datetime64), "datetime"),
    ((datetime.date,), "date"),
    ((datetime.time,), "time"),
    ((datetime.timedelta, np.timedelta64), "duration"),
    ((numbers.Real, decimal.Decimal), "real"),
)


def _family(held: type) -> str:
    """Return the kind of column that a Python type makes."""
    if held.__name__ in ("NoneType", "NAType", "NaTType"):
        return "missing"
    for types, family in _FAMILIES:
        if issubclass(held, types):
            return family
    return "other"


def _temporal_objects(values: Sequence[Any]) -> FloatArray:
    def one(value: Any) -> float:
        if factorize.is_missing(value):
            return np.nan
        if isinstance(value, (np.datetime64, np.timedelta64)):
            return float(dates.microseconds(np.asarray([value]))[0])
        return dates.object_microseconds(value)

    return np.array([one(value) for value in values], dtype=np.float64)
