"""Cells of text files turned into columns: by Python where rows are few, by DuckDB elsewhere."""

from __future__ import annotations

import csv
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from damier.intake import cells, factorize
from damier.intake.cells import ISO_DAY, PLAIN, Reading, literal
from damier.intake.reading import OFFLINE, PACKED, Options, check_names, tidy_names, without_globs
from damier.intake.table import CategoricalColumn, CodeArray, Column, FloatArray, NumericColumn, Table

if TYPE_CHECKING:
    import duckdb

    from damier.intake.text import TextFile

_SEPARATORS = (",", ";", "\t", "|")
TRUTH = {"true": True, "false": False}
_SAMPLED_CELLS = 100_000
_DAY = 86_400e6
MANY_COLUMNS = 100
SNIFFED_LINES = 100
_ALL_DISTINCT = 500
# What float() reads and is no number of a data file: codes as 007, 1_000.
_ODD_NUMBER = re.compile(r"\s*[+-]?0[0-9]+\s*$|.*[^\x00-\x7f]|.*_")
_BLOCK = 256


@dataclass
class Reader:
    """Columns of a text file; how its cells are come by is a matter of the classes below."""

    file: TextFile
    path: Path
    options: Options = field(init=False)
    names: list[str] = field(init=False)
    n_rows: int = field(init=False)
    column_notes: dict[int, str] = field(init=False)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection to DuckDB, which lives as long as the reader."""
        import duckdb

        connection = duckdb.connect(config=OFFLINE)
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET TimeZone = 'UTC'")  # what a moment without a zone is taken to be in
        return connection

    def _open(self) -> list[str]:
        """Get ready to read; return the cells of the first line."""
        raise NotImplementedError

    def _read_columns(self, kept: list[int]) -> dict[int, Column]:
        """Read the columns."""
        raise NotImplementedError

    def _coded(self, j: int) -> tuple[CodeArray, list[str | None]]:
        """Codes of the rows into the sorted distinct cells."""
        raise NotImplementedError

    def _numbers(self, j: int, reading: Reading, distinct: list[str | None]) -> FloatArray:
        """Numbers of the sorted distinct cells, NaN where the reading does not fit."""
        raise NotImplementedError

    def table(self) -> Table:
        """Read the table, with notes on what was not plain."""
        self.options = self.file.options
        self.column_notes = {}
        first = self._open()
        names, name_notes = tidy_names(
            first if self.options.header else [""] * len(first), self.options.header
        )
        check_names(names, self.options, str(self.file.path))
        kept = [j for j, name in enumerate(names) if self.options.keeps(name)]
        if not kept:
            raise ValueError(f"{self.file.path}: no column is left to read")
        self.names = names
        columns = self._read_columns(kept)
        nameless = [
            j
            for j in kept
            if not first[j].strip() and columns[j].n_missing == self.n_rows and self.options.header
        ]
        if nameless and len(nameless) < len(kept):
            left_out = {f"column {j + 1} has no name: it is called {names[j]!r}" for j in nameless}
            name_notes = [note for note in name_notes if note not in left_out]
            count = f"{len(nameless)} column" + ("s" if len(nameless) > 1 else "")
            name_notes.append(f"{count} without a name and without a value left out")
            kept = [j for j in kept if j not in nameless]
        if self.options.header and first and all(cells.find_reading([name])[0] is PLAIN for name in first):
            name_notes.append(
                "the first line has numbers where names are due: is there no line of names (no header)?"
            )
        notes = (
            *self.file.notes,
            *name_notes,
            *(self.column_notes[j] for j in kept if j in self.column_notes),
        )
        return Table(tuple(columns[j] for j in kept), self.n_rows, notes=notes)

    def _comma(self) -> bool | None:
        return None if self.options.decimal is None else self.options.decimal == ","

    def _bare(self, distinct: Sequence[str | None]) -> list[str | None]:
        """Cells without the blanks around them, None where they mean missing."""
        marks = self.options.missing
        longest = max(map(len, cells.MISSING.union(marks)))
        return [
            None
            if cell is None or (len(bare := cell.strip()) <= longest and cells.is_missing(bare, marks))
            else bare
            for cell in distinct
        ]

    def _from_text(self, j: int) -> Column:
        """Make a column of cells that were read as text, from its distinct cells."""
        codes, distinct = self._coded(j)
        name, held = self.names[j], self._bare(distinct)
        present = [cell for cell in held if cell is not None]
        if not present:
            return NumericColumn(name, np.full(len(codes), np.nan))
        if name not in self.options.categorical:
            step = max(1, len(present) // 1000)
            reading, _ = cells.find_reading(present[::step], self._comma())
            if name in self.options.numeric and (
                reading is None or reading.kind != "number" or reading is PLAIN
            ):
                reading = Reading("number", "TRY_CAST({c} AS DOUBLE)")
            if reading is not None:
                counts = np.bincount(codes, minlength=len(distinct))
                column = self._nearly(j, reading, self._numbers(j, reading, distinct), codes, held, counts)
                if column is not None:
                    return column
            if all(cell.lower() in TRUTH for cell in present):
                truth = [None if cell is None else TRUTH[cell.lower()] for cell in held]
                return CategoricalColumn(name, *factorize.recode(codes, truth, keep_booleans=True))
        if held == distinct:
            return CategoricalColumn(name, codes, tuple(distinct))
        return CategoricalColumn(name, *factorize.recode(codes, held))

    def _nearly(
        self,
        j: int,
        reading: Reading,
        numbers: FloatArray,
        codes: CodeArray,
        held: list[str | None],
        counts: Any,
    ) -> Column | None:
        """Make a numeric column when nearly all cells are numbers, with a note on the others."""
        name = self.names[j]
        numbers = np.where([cell is None for cell in held], np.nan, numbers)
        # Too large a number is no infinity, unless it says so.
        infinite = np.flatnonzero(np.isinf(numbers)).tolist()
        numbers[[i for i in infinite if any(map(str.isdigit, held[i] or ""))]] = np.nan
        stray = [i for i in np.flatnonzero(np.isnan(numbers)).tolist() if held[i] is not None]
        if not len(stray) < len(held):
            return None
        n_read = int(counts[~np.isnan(numbers)].sum())
        n_other = int(sum(counts[i] for i in stray if not cells.is_weak(held[i] or "")))
        what = "numbers" if reading.kind == "number" else "times" if reading.kind == "time" else "dates"
        forced = name in self.options.numeric
        coded = next((held[i] for i in stray if cells.is_code(held[i] or "")), None)
        if coded is not None and not forced:
            if n_other == sum(counts[i] for i in stray if cells.is_code(held[i] or "")):
                self.column_notes[j] = f"{name}: leading zeros ({coded!r}): taken as text"
            return None
        total = n_read + int(sum(counts[i] for i in stray))
        share = n_read / (n_read + n_other) if n_read else 0.0
        if share < cells.NEARLY and not forced:
            if share >= cells.PLAUSIBLE:
                listed = _examples([held[i] or "" for i in stray if not cells.is_weak(held[i] or "")])
                cure = "; --numeric makes them missing" if what == "numbers" else ""
                self.column_notes[j] = (
                    f"{name}: {n_read:,} of {total:,} cells are {what}, others are not ({listed}): "
                    f"taken as text{cure}"
                )
            return None
        remark = f", {reading.remark}" if reading.remark else ""
        if stray:
            listed = _examples([held[i] or "" for i in stray])
            self.column_notes[j] = (
                f"{name}: {n_read:,} of {total:,} cells are {what}{remark}; {listed} read as missing"
            )
        elif remark:
            self.column_notes[j] = f"{name}: read as {what}{remark}"
        column = _numeric(name, numbers[codes], reading)
        if reading.kind == "number" and (np.abs(numbers) >= 2.0**53).any():
            return _exact(column, codes, held, numbers)
        return column


class _KnownNumbers(dict[str, float]):
    """Numbers of cells that were met before; a cell that is none, or calls for a closer look, is an error."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(dict.fromkeys(missing, np.nan))

    def __missing__(self, cell: str) -> float:
        number = float(cell)
        if abs(number) >= 2.0**53 or _ODD_NUMBER.match(cell):
            raise ValueError(cell)
        self[cell] = number
        return number

    def repeated(self, column: tuple[str, ...]) -> FloatArray:
        """Numbers of cells that are often the same."""
        return np.fromiter(map(self.__getitem__, column), np.float64, len(column))

    def distinct(self, column: tuple[str, ...]) -> FloatArray:
        """Numbers of cells of which few are the same: each is read anew."""
        try:
            found = np.fromiter(map(float, column), np.float64, len(column))
        except ValueError:
            return self.repeated(column)
        if (np.abs(found) >= 2.0**53).any() or any(map(_ODD_NUMBER.match, column)):
            raise ValueError("not plain")
        return found


@dataclass
class ListReader(Reader):
    """Columns of a file whose rows are in memory as lists of cells."""

    rows: list[list[str]]

    def _open(self) -> list[str]:
        first = self.rows[0]
        if self.options.header:
            del self.rows[0]
        self.n_rows = len(self.rows)
        self.known = _KnownNumbers(("", "NA", "na", "N/A", *self.options.missing))
        return first

    def _read_columns(self, kept: list[int]) -> dict[int, Column]:
        numbers: dict[int, list[FloatArray]] = {}
        if self.options.decimal != ",":
            numbers = {j: [] for j in kept if self.names[j] not in self.options.categorical}
        # Row by row the cells lie side by side in memory: a block of rows is soon read column by column.
        for start in range(0, self.n_rows, _BLOCK):
            block = list(zip(*self.rows[start : start + _BLOCK], strict=True))
            if start == 0:
                repeated = {j for j in numbers if 2 * len(set(block[j])) < len(block[j])}
            for j in list(numbers):
                try:
                    read = self.known.repeated if j in repeated else self.known.distinct
                    numbers[j].append(read(block[j]))
                except ValueError:
                    del numbers[j]
        return {
            j: NumericColumn(self.names[j], np.concatenate([np.empty(0), *numbers[j]]))
            if j in numbers
            else self._from_text(j)
            for j in kept
        }

    def _coded(self, j: int) -> tuple[CodeArray, list[str | None]]:
        codes, found = factorize.recode(
            *factorize.first_seen_codes((row[j] for row in self.rows), self.n_rows)
        )
        return codes, list(found)

    def _numbers(self, j: int, reading: Reading, distinct: list[str | None]) -> FloatArray:  # noqa: ARG002
        query = f"SELECT {reading.of('c')} AS v FROM (SELECT unnest($1) AS c)"
        return _filled(self.connection.execute(query, [distinct]).fetchnumpy()["v"])


@dataclass
class DuckReader(Reader):
    """Columns of a text file by way of DuckDB.

    The file is read once, columns of plain numbers and dates as such and the others as text. Where the first
    rows promised numbers and others were met, all such columns are read again together, as text.
    """

    def _open(self) -> list[str]:
        lines, skip = self._first_lines()
        self.separator = self.options.separator or find_separator(lines, self.file.usual)
        first = next(csv.reader(lines, delimiter=self.separator), [])
        self.source = self._source(len(first), skip)
        self.table_of: dict[int, str] = {}
        self.distinct: set[int] = set()
        return first

    def _first_lines(self) -> tuple[list[str], int]:
        """First lines of the file, and how many empty ones stand before them."""
        query = (
            f"SELECT line FROM read_csv({literal(without_globs(self.path))}, auto_detect=false, "
            f"delim='\x01', quote='', escape='', header=false, "
            f"columns={{'line': 'VARCHAR'}}{self._line_size()}) LIMIT {SNIFFED_LINES}"
        )
        lines = [line or "" for (line,) in self.connection.execute(query).fetchall()]
        skip = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
        if skip == len(lines):
            raise ValueError(f"{self.file.path} is empty: the first line must have the names of the columns")
        return [f"{line}\n" for line in lines[skip:]], skip

    def _line_size(self) -> str:
        return f", max_line_size={self.file.longest_line}" if self.file.longest_line else ""

    def _source(self, n_columns: int, skip: int) -> str:
        named = ", ".join(f"'c{j}': 'VARCHAR'" for j in range(n_columns))
        marks = {"", *self.options.missing}
        for mark in cells.MISSING:
            marks |= {mark, mark.upper(), mark.replace("nan", "NaN")}
        # An empty line of a table of one column is no cell; a pair of quotes is.
        single = n_columns == 1
        quoted = ", allow_quoted_nulls=false" if single else ""
        nulls = "''" if single else ", ".join(map(literal, sorted(marks)))
        header = str(self.options.header).lower()
        source = (
            f"read_csv({literal(without_globs(self.path))}, auto_detect=false, "
            f"delim={literal(self.separator)}, quote='\"', escape='\"', header={header}, "
            f"skip={skip}, columns={{{named}}}, nullstr=[{nulls}]"
            f"{quoted}{self._line_size()})"
        )
        return f"(SELECT * FROM {source} WHERE c0 IS NOT NULL)" if single else source

    def _first_readings(self, kept: list[int]) -> dict[int, Reading]:
        """Find the columns that the first rows show to be plain numbers or dates."""
        rows = max(50, min(1000, _SAMPLED_CELLS // len(kept)))
        listed = ", ".join(f"c{j}" for j in kept)
        sample = self.connection.execute(f"SELECT {listed} FROM {self.source} LIMIT {rows}").fetchall()
        readings: dict[int, Reading] = {}
        for j, column in zip(kept, zip(*sample, strict=True), strict=False):
            if len(set(column)) == len(column) >= _ALL_DISTINCT:
                self.distinct.add(j)
            if self.names[j] in self.options.categorical:
                continue
            held = [cell for cell in column if cell is not None and not cells.is_missing(cell)]
            reading, share = cells.find_reading(held, self._comma())
            if not held or (share == 1.0 and reading is not None and not reading.remark):
                readings[j] = reading or PLAIN
        return readings

    def _read_columns(self, kept: list[int]) -> dict[int, Column]:
        readings = self._first_readings(kept)
        underscores = _may_hold_underscores(self.path)
        expressions = [
            f"{_or_nan(readings[j], f'c{j}', underscores)} AS c{j}" if j in readings else f"c{j}"
            for j in kept
        ]
        # The optimizer has nothing to gain here, and its time grows with the square of the columns.
        self.connection.execute("PRAGMA disable_optimizer" if len(kept) > MANY_COLUMNS else "SELECT 1")
        self.connection.execute(
            f"CREATE TEMP TABLE cells AS SELECT {', '.join(expressions)} FROM {self.source}"
        )
        self.connection.execute("PRAGMA enable_optimizer")
        columns: dict[int, Column] = {}
        self.n_rows = int(self.connection.execute("SELECT count(*) FROM cells").fetchall()[0][0])
        found: dict[str, Any] = {}
        if readings:
            listed = ", ".join(f"c{j}" for j in readings)
            found = self.connection.execute(f"SELECT {listed} FROM cells").fetchnumpy()
        for j, reading in readings.items():
            values = _plain_numbers(found.pop(f"c{j}"), reading)
            if values is not None:
                columns[j] = _numeric(self.names[j], values, reading)
        again = [j for j in readings if j not in columns]
        if again:
            listed = ", ".join(f"c{j}" for j in again)
            self.connection.execute(f"CREATE TEMP TABLE again AS SELECT {listed} FROM {self.source}")
        self.table_of = dict.fromkeys(again, "again")
        for j in kept:
            if j not in columns:
                columns[j] = self._from_text(j)
        return columns

    def _coded(self, j: int) -> tuple[CodeArray, list[str | None]]:
        column, table = f"c{j}", self.table_of.get(j, "cells")
        if j in self.distinct:  # sorting all the rows is then no more than sorting the distinct ones
            query = f"SELECT {column} AS v, rowid AS r FROM {table} ORDER BY {column} NULLS FIRST"
            found = self.connection.execute(query).fetchnumpy()
            values = np.ma.filled(found["v"], None)
            new = np.ones(len(values), dtype=bool)
            new[1:] = values[1:] != values[:-1]
            codes = np.empty(len(values), dtype=np.int32)
            codes[found["r"]] = np.cumsum(new) - 1
            return codes, values[new].tolist()
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE sorted AS SELECT v, (row_number() OVER () - 1)::INTEGER AS k "
            f"FROM (SELECT DISTINCT {column} AS v FROM {table} ORDER BY v NULLS FIRST)"
        )
        distinct: Any = self.connection.execute("SELECT v FROM sorted ORDER BY k").fetchnumpy()["v"]
        found = self.connection.execute(
            f"SELECT k, t.rowid AS r FROM {table} AS t JOIN sorted ON t.{column} IS NOT DISTINCT FROM v"
        ).fetchnumpy()
        codes = np.empty(len(found["r"]), dtype=np.int32)
        codes[found["r"]] = found["k"]
        return codes, distinct.tolist()

    def _numbers(self, j: int, reading: Reading, distinct: list[str | None]) -> FloatArray:  # noqa: ARG002
        column, table = f"c{j}", self.table_of.get(j, "cells")
        query = (
            f"SELECT {reading.of(column)} AS v FROM (SELECT DISTINCT {column} FROM {table}) "
            f"ORDER BY {column} NULLS FIRST"
        )
        return _filled(self.connection.execute(query).fetchnumpy()["v"])


def _exact(
    column: NumericColumn, codes: CodeArray, held: list[str | None], numbers: FloatArray
) -> NumericColumn:
    """Keep integers that float64 would merge apart, for those who take them as names."""
    try:
        integers = [
            None if np.isnan(number) else int(cell or "") for cell, number in zip(held, numbers, strict=True)
        ]
    except ValueError:
        return column
    return replace(column, exact=factorize.recode(codes, integers))


def _examples(found: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(repr(cell if len(cell) <= 30 else cell[:29] + "…") for cell in found[:most])
    return shown if len(found) <= most else f"{shown} and {len(found) - most:,} other values"


def find_separator(lines: list[str], usual: str) -> str:
    """Take the separator that splits the first lines into the same number of cells, more than one."""
    for separator in dict.fromkeys((usual, *_SEPARATORS)):
        try:
            widths = {
                len(row) for row in csv.reader(lines[:-1] or lines, delimiter=separator, strict=True) if row
            }
        except csv.Error:
            continue
        if len(widths) == 1 and widths.pop() > 1:
            return separator
    bare = re.sub(r'"(?:[^"]|"")*"', "", lines[0])
    return next((s for s in (usual, *_SEPARATORS) if s in bare), usual)


def _or_nan(reading: Reading, cell: str, underscores: bool) -> str:
    """Write an expression: NULL where the cell is missing, no finite number where it does not fit."""
    if reading is PLAIN:
        # Dividing by zero marks codes as 007, and 1_000, in less time than CASE.
        plain = f"{cell} NOT BETWEEN '00' AND '0:'" + (
            f" AND NOT contains({cell}, '_')" if underscores else ""
        )
        number = f"TRY_CAST({cell} AS DOUBLE) / ({plain})::DOUBLE"
    else:
        number = reading.of(cell)
    return f"coalesce({number}, strlen({cell}) * 'nan'::DOUBLE)"


def _may_hold_underscores(path: Path) -> bool:
    """Return whether there is an underscore behind the first line; always so in a packed file."""
    if path.suffix.lower() in PACKED:
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        return held.find(b"_", max(held.find(b"\n"), 0)) >= 0


def _filled(found: Any) -> FloatArray:
    """NaN where DuckDB's column is NULL."""
    if isinstance(found, np.ma.MaskedArray):
        return np.asarray(found.filled(np.nan), dtype=np.float64)
    return np.asarray(found, dtype=np.float64)


def _plain_numbers(found: Any, reading: Reading) -> FloatArray | None:
    """Numbers of a column, or None when some cells were something else or call for a closer look."""
    values = np.asarray(np.ma.getdata(found), dtype=np.float64)
    absent = np.ma.getmask(found)
    present = values if absent is np.ma.nomask else values[~absent]
    if np.isnan(present).any():
        return None
    if reading.kind == "number" and len(present) and np.abs(present).max() >= 2.0**53:
        return None
    return _filled(found)


def _numeric(name: str, values: FloatArray, reading: Reading) -> NumericColumn:
    kind = reading.kind
    if reading is ISO_DAY and (np.nan_to_num(values) % _DAY).any():
        kind = "datetime"  # the first rows had no hours, others have
    return NumericColumn(name, values, kind)
