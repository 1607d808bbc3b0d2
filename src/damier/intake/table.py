"""A table as the rest of the library sees it: named columns, each of numbers or of coded values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]

NumericKind = Literal["number", "date", "datetime", "duration", "time", "rank"]


def distinct_values(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values in order, a missing one (NaN) first, and the index of each row's.

    >>> distinct_values(np.array([3.0, np.nan, 1.0, 3.0]))
    (array([nan,  1.,  3.]), array([2, 0, 1, 2]))
    """
    distinct, of_row = np.unique(values, return_inverse=True)
    if distinct.size and np.isnan(distinct[-1]):
        return np.roll(distinct, 1), (of_row + 1) % distinct.size
    return distinct, of_row


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """Numbers, with NaN where the value is missing; infinities are ordinary values.

    ``values`` may be a strided or read-only view of the caller's data: whoever needs contiguous or writable
    memory copies. ``kind`` says what the numbers stand for; whatever is not a plain number is in
    microseconds: since 1970-01-01 (UTC) for dates and datetimes, since midnight for times. ``exact`` holds
    codes and categories of whole numbers beyond 2**53, which float64 would merge: taken as names they stay
    apart.

    The values of an ordered category are of the kind "rank": 0 for the first value of the order, whether any
    row has it or not. ``legend`` is what the numbers are written with: the values of ranks in their order,
    the time zone of datetimes that have one.
    """

    name: str
    values: FloatArray
    kind: NumericKind = "number"
    exact: tuple[CodeArray, tuple[Any, ...]] | None = None
    legend: tuple[Any, ...] = ()

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int(np.count_nonzero(np.isnan(self.values)))

    @property
    def n_distinct(self) -> int:
        """Number of distinct values, a missing one not counted."""
        distinct = np.unique(self.values)
        return int(distinct.size - (distinct.size > 0 and np.isnan(distinct[-1])))

    def coded(self) -> tuple[FloatArray, IntArray]:
        """Return the distinct values in order, a missing one first, and the index of each row's."""
        return distinct_values(self.values)

    def take(self, rows: npt.NDArray[Any]) -> NumericColumn:
        """Keep the rows selected by a mask or by indices."""
        exact = None
        if self.exact is not None:
            kept = CategoricalColumn(self.name, *self.exact).take(rows)
            exact = kept.codes, kept.categories
        return NumericColumn(self.name, self.values[rows], self.kind, exact, self.legend)


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """Codes into ``categories``; a missing value is the category ``None``, like any other.

    ``categories`` are the distinct values as Python scalars (str, bool, int, float or None), each met in at
    least one row, sorted with ``None`` first when present, so that the coding does not depend on the order of
    the rows.
    """

    name: str
    codes: CodeArray
    categories: tuple[Any, ...]

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        if not self.categories or self.categories[0] is not None:
            return 0
        return int(np.count_nonzero(self.codes == 0))

    @property
    def n_distinct(self) -> int:
        """Number of distinct values, a missing one not counted."""
        return len(self.categories) - (None in self.categories[:1])

    def coded(self) -> tuple[tuple[Any, ...], IntArray]:
        """Return the categories, and the index of each row's."""
        return self.categories, self.codes.astype(np.int64)

    def take(self, rows: npt.NDArray[Any]) -> CategoricalColumn:
        """Keep the rows selected by a mask or by indices, and only the categories they still hold."""
        codes = self.codes[rows]
        present = np.zeros(len(self.categories), dtype=bool)
        present[codes] = True
        if present.all():
            return CategoricalColumn(self.name, codes, self.categories)
        recoded = (np.cumsum(present) - 1).astype(np.int32)
        kept = tuple(compress(self.categories, present.tolist()))
        return CategoricalColumn(self.name, recoded[codes], kept)


Column = NumericColumn | CategoricalColumn

# A text that has nearly as many values as rows repeats too little to be informed by.
_FREE_TEXT_SHARE = 0.9
_FREE_TEXT_VALUES = 50


def free_text(column: Column) -> str | None:
    """Describe a column of text whose values are nearly all distinct; None when it is something else.

    Such values are names of single rows: no group of them can inform about other rows.

    >>> column = CategoricalColumn("remark", np.arange(200, dtype=np.int32), tuple(map(str, range(200))))
    >>> free_text(column)
    'free text: 200 values in 200 rows, not used'
    """
    if not isinstance(column, CategoricalColumn):
        return None
    n_rows = len(column.codes) - column.n_missing
    n_values = len(column.categories) - int(bool(column.categories) and column.categories[0] is None)
    if n_values < max(_FREE_TEXT_VALUES, _FREE_TEXT_SHARE * n_rows):
        return None
    return f"free text: {n_values:,} values in {n_rows:,} rows, not used"


class SparseColumns(Sequence[Column]):
    """Numeric columns of a sparse matrix, each made dense when it is asked for and not kept.

    Parameters
    ----------
    matrix : sparse matrix in CSC
        What is not stored is zero, a value like any other.
    names : sequence of str
    """

    def __init__(self, matrix: Any, names: Sequence[str]) -> None:
        self.matrix = matrix
        self.names = tuple(names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, j: Any) -> Any:
        if isinstance(j, slice):
            return SparseColumns(self.matrix[:, j], self.names[j])
        j = range(len(self))[j]
        start, end = self.matrix.indptr[j : j + 2]
        values = np.zeros(self.matrix.shape[0])
        values[self.matrix.indices[start:end]] = self.matrix.data[start:end]
        return NumericColumn(self.names[j], values)

    def take(self, rows: npt.NDArray[Any]) -> SparseColumns:
        """Keep the rows selected by a mask or by indices."""
        return SparseColumns(self.matrix[rows], self.names)


@dataclass(frozen=True)
class Table:
    """Columns of one length under distinct names.

    ``named`` is False when the names were made up (``x0``, ``x1``, ...) because the input had none.
    ``library`` is that of the frame the table was read from ("pandas", "polars", "pyarrow"), if any.
    ``notes`` says what was not plain when a file was read, one sentence each.
    """

    columns: Sequence[Column]
    n_rows: int
    named: bool = True
    library: str | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        if isinstance(self.columns, SparseColumns):
            return self.columns.names
        return tuple(column.name for column in self.columns)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[self._position[name]]
        except KeyError:
            raise KeyError(f"no column {name!r}; the columns are {_shown(self.names)}") from None

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Keep the rows selected by a mask or by indices."""
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows)
        if isinstance(self.columns, SparseColumns):
            return replace(self, columns=self.columns.take(rows), n_rows=n_rows)
        return replace(self, columns=tuple(column.take(rows) for column in self.columns), n_rows=n_rows)

    def renamed(self, names: Sequence[str]) -> Table:
        """Give the columns other names, in order."""
        if self.named and self.names == tuple(names):
            return self
        if isinstance(self.columns, SparseColumns):
            return Table(SparseColumns(self.columns.matrix, names), self.n_rows, library=self.library)
        columns = tuple(replace(c, name=name) for c, name in zip(self.columns, names, strict=True))
        return Table(columns, self.n_rows, library=self.library)

    def drop(self, name: str) -> Table:
        """Leave one column out."""
        self[name]
        return replace(self, columns=tuple(c for c in self.columns if c.name != name))


@dataclass(frozen=True, slots=True)
class Target:
    """Class codes of the rows, 0 .. J-1, into the sorted ``classes``; -1 marks a row without a label.

    Rows without a label occur only where the caller allows them.
    """

    codes: CodeArray
    classes: npt.NDArray[Any]

    @property
    def n_classes(self) -> int:
        """Number of classes met."""
        return len(self.classes)


@dataclass(frozen=True, slots=True)
class NumericTarget:
    """A target that is a number: its distinct values in order, and the place of each row's among them.

    No value is missing or infinite, and each distinct value is met in some row.
    """

    codes: CodeArray
    distinct: FloatArray

    @property
    def values(self) -> FloatArray:
        """The number of each row."""
        return self.distinct[self.codes]

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return len(self.distinct)

    def take(self, rows: npt.NDArray[Any]) -> NumericTarget:
        """Keep the rows selected by a mask or by indices, and only the values they still hold.

        >>> NumericTarget(np.array([0, 2, 1], np.int32), np.array([1.0, 2.5, 4.0])).take(np.array([0, 1]))
        NumericTarget(codes=array([0, 1], dtype=int32), distinct=array([1., 4.]))
        """
        codes = self.codes[rows]
        present = np.zeros(len(self.distinct), dtype=bool)
        present[codes] = True
        recoded = (np.cumsum(present) - 1).astype(np.int32)
        return NumericTarget(recoded[codes], self.distinct[present])


def _shown(names: tuple[str, ...], limit: int = 10) -> str:
    """List names in a message, not all of them when there are many."""
    listed = ", ".join(repr(name) for name in names[:limit])
    return listed if len(names) <= limit else f"{listed}, ... ({len(names)} in all)"
