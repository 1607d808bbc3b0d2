"""Tables on disk: CSV, TSV and Parquet.

CSV and TSV are read by Python's own ``csv``, so that they need nothing but the core install and read the
same everywhere: UTF-8 (a byte order mark is allowed), names on the first line, comma for ``.csv``, tab for
``.tsv``, ``.tab`` and ``.txt``; but a ``.csv`` whose first line has semicolons, tabs or bars and, outside
quotes, no comma is read with those. Empty lines are skipped. A cell is missing when it is empty, ``NA``,
``N/A``, ``NaN``, ``null``, ``None`` or ``?`` (whatever the case). A column whose other cells are all numbers
is numeric; all ``true`` and ``false``, boolean; all ISO dates or moments (``2024-01-31``, ``2024-01-31
10:00``), dates; anything else is text.
Parquet keeps its own types and needs pyarrow or polars.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import importlib.util
import itertools
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from damier.intake import dates, factorize
from damier.intake.frames import read_table
from damier.intake.table import (
    CategoricalColumn,
    CodeArray,
    Column,
    FloatArray,
    NumericColumn,
    NumericKind,
    Table,
)

MISSING_CELLS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_PARQUET = (".parquet", ".pq")
_TRUTH = {"true": True, "false": False}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}$")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SNIFFED_BYTES = 4096
_BLOCK_ROWS = 50_000


def read_file(path: str | Path) -> Table:
    """Read a CSV, TSV or Parquet file, told by the end of its name.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not what its name says, or its kind is not known; the message names the file, and the
        line where there is one.
    ImportError
        If a Parquet file is read with neither pyarrow nor polars installed.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise ValueError(f"{path} is a directory: name one CSV, TSV or Parquet file")
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        return _read_parquet(path)
    if suffix in _SEPARATORS:
        return _read_text(path, _SEPARATORS[suffix])
    known = ", ".join([*_SEPARATORS, *_PARQUET])
    raise ValueError(f"{path}: cannot tell the kind of file from its name; it should end in one of {known}")


def _read_parquet(path: Path) -> Table:
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise ValueError(
                f"{path} is not a Parquet file, whatever its name: rename it if it is CSV or TSV"
            )
    try:
        if importlib.util.find_spec("pyarrow"):
            import pyarrow.parquet

            return read_table(pyarrow.parquet.read_table(path))
        if importlib.util.find_spec("polars"):
            import polars

            return read_table(polars.read_parquet(path))
    except (OSError, RuntimeError, MemoryError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
    except Exception as error:
        # Both libraries have exceptions of their own for damaged files; errors of ours name a column already.
        if type(error).__module__.partition(".")[0] in ("pyarrow", "polars"):
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        raise
    raise ImportError(f"{path}: reading Parquet needs pyarrow or polars (pip install pyarrow)")


def _read_text(path: Path, separator: str) -> Table:
    _refuse_binary(path)
    as_text: set[int] = set()
    try:
        while True:
            try:
                with path.open(encoding="utf-8-sig", newline="") as file:
                    names, cells = _read_cells(file, path, separator, as_text)
                break
            except _NotNumbersError as error:
                as_text.add(error.column)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path}: column name {twice!r} appears more than once: rename one")
    columns = tuple(_typed(name, column) for name, column in zip(names, cells, strict=True))
    return Table(columns, sum(map(len, cells[0].blocks)))


def _refuse_binary(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
    if not start.removeprefix(codecs.BOM_UTF8).strip():
        raise ValueError(f"{path} is empty: a line of column names is wanted first")
    kinds = {b"PAR1": "a Parquet", b"PK\x03\x04": "a zip (or Excel)", b"\x1f\x8b": "a gzip"}
    for mark, kind in kinds.items():
        if start.startswith(mark):
            raise ValueError(f"{path} is {kind} file, not text: rename or unpack it")
    if b"\0" in start:
        raise ValueError(f"{path} is not text: it holds zero bytes (UTF-16? save it as UTF-8)")


class _NotNumbersError(Exception):
    """A column began as numbers and does not go on so: the file is read again, this column as text."""

    def __init__(self, column: int) -> None:
        self.column = column


class _Cells:
    """Cells of one column as they come.

    Codes into the distinct ones, to hold each text once; but numbers at once, when the first block is numbers
    and mostly distinct: coding these would take most of the time.
    """

    def __init__(self, as_text: bool) -> None:
        self.index: defaultdict[str, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self.blocks: list[CodeArray | FloatArray] = []
        self.as_text = as_text

    def add(self, cells: tuple[str, ...]) -> None:
        if not self.blocks and not self.as_text:
            self.as_text = 2 * len(set(cells)) < len(cells) or not _are_numbers(cells[:100])
        if self.as_text:
            self.blocks.append(np.fromiter(map(self.index.__getitem__, cells), np.int32, len(cells)))
        else:
            self.blocks.append(_parse_numbers(cells))

    def numbers(self) -> FloatArray | None:
        return None if self.as_text or not self.blocks else np.concatenate(self.blocks)

    def coded(self) -> tuple[CodeArray, list[str]]:
        return np.concatenate([np.empty(0, np.int32), *self.blocks]).astype(np.int32), list(self.index)


def _are_numbers(cells: tuple[str, ...]) -> bool:
    try:
        _parse_numbers(cells)
    except ValueError:
        return False
    return True


def _parse_numbers(cells: tuple[str, ...]) -> FloatArray:
    try:
        if "_" in "".join(cells):
            raise ValueError("underscore")
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return np.array([np.nan if _is_missing(cell) else _number(cell) for cell in cells])


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_CELLS


def _read_cells(file: Any, path: Path, separator: str, as_text: set[int]) -> tuple[list[str], list[_Cells]]:
    first = _QUOTED.sub("", next((line for line in file if line.strip()), ""))
    file.seek(0)
    if separator == "," and "," not in first:
        separator = next((s for s in (";", "\t", "|") if s in first), ",")
    # Strict: quotes left open at the end of the file are an error, not a cell.
    rows = csv.reader(file, delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in next(filter(None, rows))]
        columns = [_Cells(j in as_text) for j in range(len(names))]
        while True:
            before = rows.line_num
            block = list(itertools.islice(rows, _BLOCK_ROWS))
            if not block:
                return names, columns
            if not set(map(len, block)) <= {len(names)}:
                block = _whole(block, names, path, before)
            for j, cells in enumerate(zip(*block, strict=True)):
                try:
                    columns[j].add(cells)
                except ValueError:
                    raise _NotNumbersError(j) from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: {error}") from None


def _whole(block: list[list[str]], names: list[str], path: Path, before: int) -> list[list[str]]:
    """Drop empty lines; refuse a row that does not fit the names."""
    for i, row in enumerate(block):
        if row and len(row) != len(names):
            raise ValueError(
                f"{path}, about line {before + i + 1}: {len(row)} cells where the first line names "
                f"{len(names)} columns: is it a table, and is the separator right?"
            )
    return [row for row in block if row]


def _typed(name: str, cells: _Cells) -> Column:
    """Give a column of text its kind, from its distinct cells."""
    numbers_at_once = cells.numbers()
    if numbers_at_once is not None:
        return NumericColumn(name, numbers_at_once)
    codes, found = cells.coded()
    distinct = [None if _is_missing(cell) else cell.strip() for cell in found]
    held = [cell for cell in distinct if cell is not None]
    for parse, kind in _READINGS:
        try:
            numbers = [np.nan if cell is None else parse(cell) for cell in distinct]
        except ValueError:
            continue
        return NumericColumn(name, np.array(numbers, dtype=np.float64)[codes], kind)
    if all(cell.lower() in _TRUTH for cell in held):
        truth = [None if cell is None else _TRUTH[cell.lower()] for cell in distinct]
        return CategoricalColumn(name, *factorize.recode(codes, truth, keep_booleans=True))
    return CategoricalColumn(name, *factorize.recode(codes, distinct))


def _number(cell: str) -> float:
    if "_" in cell:  # Python reads 1_000, a data file does not mean it
        raise ValueError(cell)
    return float(cell)


def _date(cell: str) -> float:
    if not _DATE.match(cell):
        raise ValueError(cell)
    return dates.object_microseconds(datetime.date.fromisoformat(cell))


def _moment(cell: str) -> float:
    if not (_MOMENT.match(cell) or _DATE.match(cell)):
        raise ValueError(cell)
    return dates.object_microseconds(datetime.datetime.fromisoformat(cell))


_READINGS: tuple[tuple[Callable[[str], float], NumericKind], ...] = (
    (_number, "number"),
    (_date, "date"),
    (_moment, "datetime"),
)
