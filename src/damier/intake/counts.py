"""Tables of counts: sparse or dense matrices, and pairs of names that are counted."""

from __future__ import annotations

import datetime
import decimal
import numbers
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from damier.intake.factorize import is_missing
from damier.intake.frames import as_categorical, as_frame
from damier.intake.table import CategoricalColumn, NumericColumn, Table
from damier.intake.target import read_weights

# Searches count instances in 32 bits.
MOST_INSTANCES = 2**31 - 1
_OTHER = (bytes, list, tuple, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_INSTEAD = "For a grid over numbers, dates or more than two variables use DataGridClustering"


def read_counts(X: Any) -> Any:
    """Read a matrix of whole, non-negative counts as CSR of int64.

    Raises
    ------
    ValueError
        If a count is missing, negative or not whole, or if there are more than 2^31 - 1 instances.

    Examples
    --------
    >>> read_counts([[2, 0], [0, 1.0]]).toarray()
    array([[2, 0],
           [0, 1]])
    """
    check_matrix(X)
    table = sparse.csr_array(X)
    if table.dtype.kind not in "iufb":
        raise ValueError(f"Counts must be numbers, got {table.dtype}. For pairs of names pass a frame.")
    if not table.has_canonical_format:
        table = table.copy()  # what the caller holds stays as it is
        table.sum_duplicates()
    data = table.data
    wrong = ~(data >= 0) | (data != np.floor(data)) if data.dtype.kind == "f" else data < 0
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        what = "Negative values in data" if data[entry] < 0 else "Counts must be whole numbers"
        raise ValueError(
            f"{what}: column {int(table.indices[entry])} holds {data[entry].item()!r}. Round or scale the "
            "values, or pass 0/1 for presence."
        )
    _check_total(data)
    data = data.astype(np.int64, copy=False)
    table = sparse.csr_array((data, table.indices, table.indptr), shape=table.shape)
    if not data.all():
        table = table.copy()
        table.eliminate_zeros()
    return table


def check_matrix(X: Any) -> None:
    """Refuse what cannot be a matrix of counts: masked entries, text, rows of different lengths."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.getmaskarray(X).any():
        raise ValueError(
            "X is a masked array with masked entries, and a count cannot be missing. Fill them: X.filled(0) "
            "where masked means that there is none."
        )
    if sparse.issparse(X):
        return
    frame = as_frame(X)
    if frame is not None:
        for name, dtype in frame.schema.items():
            if not (dtype.is_numeric() or isinstance(dtype, (nw.Boolean, nw.Object, nw.Unknown))):
                raise ValueError(f"Counts must be numbers, column {name!r} holds {dtype}.")
        X = frame.to_native()
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError("X must be a table: its rows differ in length") from None
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array.flat)):
        raise ValueError("Counts must be numbers, X holds text. For pairs of names pass a frame.")
    if array.dtype.kind in "Mm" or (
        array.dtype.kind == "O" and any(isinstance(v, _OTHER) for v in array.flat)
    ):
        raise ValueError("Counts must be numbers, X holds dates, times or lists.")
    for value in array.flat if array.dtype.kind == "O" else ():
        if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
            raise ValueError("Complex data not supported: counts are whole numbers.")
        if is_missing(value):
            raise ValueError("X holds missing values, and a count cannot be missing: fill them with 0.")
        if not isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
            raise TypeError(f"Each argument must be a string or a number, X holds {type(value).__name__}.")


def count_pairs(
    table: Table, counts: str | None = None
) -> tuple[Any, tuple[CategoricalColumn, CategoricalColumn]]:
    """Count the pairs of a table of two columns.

    Parameters
    ----------
    table : Table
        Whole numbers are names. Dates and other numbers have an order, and are refused.
    counts : str, optional
        A third column that says how often each pair occurs.

    Returns
    -------
    counts : csr_array of int64
    sides : pair of CategoricalColumn
        The two columns; their categories are the rows and the columns of the counts.

    Raises
    ------
    ValueError
        If the table is not one of pairs; the message names the column.

    Examples
    --------
    >>> from damier.intake import read_table
    >>> found, (who, what) = count_pairs(read_table({"who": [7, 7, 8], "what": ["a", "a", "b"]}))
    >>> found.toarray().tolist(), who.categories, what.categories
    ([[2, 0], [0, 1]], (7, 8), ('a', 'b'))
    """
    weights = np.ones(table.n_rows, np.int64)
    if counts is not None:
        weights = _read_times(table, counts)
        table = table.drop(counts)
    check_pairs(table)
    _check_total(weights)
    rows, columns = (_names(column) for column in table.columns)
    shape = (len(rows.categories), len(columns.categories))
    found = sparse.coo_array((weights, (rows.codes, columns.codes)), shape=shape).tocsr()
    found.eliminate_zeros()
    return found, (rows, columns)


def _read_times(table: Table, counts: str) -> Any:
    if counts not in table.names:
        raise ValueError(
            f"There is no column {counts!r} of counts; the columns are {', '.join(table.names)}."
        )
    column = table[counts]
    if not isinstance(column, NumericColumn) or column.kind != "number":
        raise ValueError(f"The column of counts {counts!r} does not hold numbers.")
    try:
        return read_weights(column.values, table.n_rows)
    except ValueError as error:
        raise ValueError(str(error).replace("sample_weight", f"The column of counts {counts!r}")) from None


def _names(column: NumericColumn | CategoricalColumn) -> CategoricalColumn:
    """Take the values of a column as names; whole numbers came through as floats: 7.0 is 7."""
    found = as_categorical(column)
    names = tuple(int(c) if isinstance(c, float) and c.is_integer() else c for c in found.categories)
    return CategoricalColumn(found.name, found.codes, names)


def check_pairs(table: Table) -> None:
    """Refuse a table that is not one of pairs of names."""
    if table.n_columns != 2:
        shown = ", ".join(map(repr, table.names[:10])) + (", ..." if table.n_columns > 10 else "")
        raise ValueError(
            "A frame of pairs has two columns (and one of counts, named by counts=), this one has "
            f"{table.n_columns}: {shown}. {_INSTEAD}; for a table of counts pass an array."
        )
    for column in table.columns:
        if not isinstance(column, NumericColumn) or column.kind == "rank":
            continue
        if column.kind != "number":
            raise ValueError(
                f"Column {column.name!r} holds {column.kind}s, which have an order; pairs are of names. "
                f"{_INSTEAD}; if they are names, convert the column to text."
            )
        given = column.values[~np.isnan(column.values)]
        others = given[~np.isfinite(given) | (given != np.floor(given))]
        if len(others):
            raise ValueError(
                f"Column {column.name!r} holds numbers that are not whole, such as {others[0].item()!r}; "
                f"pairs are of names. {_INSTEAD}; if they are names, convert the column to text."
            )


def _check_total(counts: Any) -> None:
    """Refuse more instances than a search can count; a sum of floats cannot overflow into less."""
    with np.errstate(over="ignore"):  # infinity is too large as well
        total = float(counts.sum(dtype=np.float64))
    if total > MOST_INSTANCES:
        raise ValueError(
            f"The table holds {total:.6g} instances; at most {MOST_INSTANCES:,} can be coclustered. Divide "
            "the counts by a common factor."
        )
