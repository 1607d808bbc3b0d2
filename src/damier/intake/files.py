"""Tables on disk: CSV and its kin, Parquet, Feather, Excel.

Text files are read by DuckDB: commas, semicolons, tabs or bars (the one that splits the first lines evenly),
quotes, ``.gz`` and ``.zst``. Names stand on the first line; empty lines are skipped. UTF-8, UTF-16 with its
mark and, when a file is neither, Windows' Western European are recognised.

What becomes what
-----------------
======================================  ==================================================================
empty, ``NA``, ``N/A``, ``#N/A``, ``NaN``  missing in every column
``None``, ``null``, ``-``, ``?``, ``n.d.``  missing among numbers and dates, values elsewhere
95% of the other cells are numbers       numeric, the rest missing; decimal commas, marks of thousands and
                                         currencies are understood
95% of them are dates or times           dates, datetimes, times
``true`` and ``false``                   boolean
codes with leading zeros, anything else  text
======================================  ==================================================================

Whatever is not plain is written down in ``Table.notes``, one line per column. Parquet keeps its own types.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import importlib.util
import itertools
import mmap
import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from damier.intake import cells, factorize
from damier.intake.cells import ISO_DAY, PLAIN, Reading, literal
from damier.intake.frames import as_categorical, as_numeric, read_table
from damier.intake.table import CategoricalColumn, CodeArray, Column, FloatArray, NumericColumn, Table

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")

# Nothing is fetched or loaded to read a file.
_OFFLINE: Any = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".data": ",", ".dat": "\t"}
_PACKED = (".gz", ".zst")
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow", ".ipc")
_EXCEL = (".xlsx", ".xlsm")
_SEPARATORS = (",", ";", "\t", "|")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
_TRUTH = {"true": True, "false": False}
_SNIFFED_BYTES = 4096
_SAMPLED_CELLS = 100_000
# Python reads small files, and wide ones of few rows, in less time than DuckDB plans its queries.
_SMALL_FILE = 1 << 20
_SMALL_COLUMN = 50_000
_DAY = 86_400e6
_MANY_COLUMNS = 100
_SNIFFED_LINES = 100
_ALL_DISTINCT = 500
# What float() reads and is no number of a data file: codes as 007, 1_000.
_ODD_NUMBER = re.compile(r"\s*[+-]?0[0-9]+\s*$|.*[^\x00-\x7f]|.*_")
_BLOCK = 256


@dataclass(frozen=True)
class _Options:
    missing: tuple[str, ...] = ()
    decimal: str | None = None
    separator: str | None = None
    encoding: str | None = None
    categorical: frozenset[str] = frozenset()
    numeric: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    header: bool = True

    @classmethod
    def checked(
        cls,
        *,
        missing: Collection[str] = (),
        decimal: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        header: bool = True,
        **columns: Collection[str],
    ) -> _Options:
        """Take the arguments of `read_file`."""
        if decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
        separator, encoding = _checked_separator(separator), _checked_encoding(encoding)
        words = tuple(cell for cell in missing if _may_stand_in_text(cell))
        named = {name: frozenset(given) for name, given in columns.items()}
        return cls(words, decimal, separator, encoding, header=header, **named)

    def keeps(self, name: str) -> bool:
        return name not in self.drop and (not self.only or name in self.only)


def read_file(
    path: str | Path,
    *,
    missing: Collection[str] = (),
    decimal: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
    drop: Collection[str] = (),
    only: Collection[str] = (),
    header: bool = True,
) -> Table:
    """Read a table from a file; the end of its name says which kind.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.tab``, ``.txt``, ``.data`` or ``.dat``, also with ``.gz`` or ``.zst`` behind;
        ``.parquet``; ``.feather`` (needs pyarrow or polars); ``.xlsx`` (needs openpyxl).
    missing : collection of str
        Cells that mean "missing" in every column, beside the usual ones.
    decimal : {".", ","}, optional
        The decimal mark; by default commas are tried where points do not fit.
    separator : str, optional
        What stands between the cells; found by default.
    encoding : str, optional
        Name of the encoding; found by default.
    categorical, numeric : collections of column names
        Columns taken as text, and columns taken as numbers, whatever their cells.
    drop, only : collections of column names
        Columns to leave out, or the only ones to read.
    header : bool
        Whether the first line has the names; otherwise they are ``column1``, ``column2``, ...

    Returns
    -------
    Table
        Its ``notes`` say what was not plain.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not what its name says, its kind is not known, or a column named is not there.
    ImportError
        If a library is required for this kind and not installed.
    """
    path = Path(path)
    shown = _check_path(path)
    options = _Options.checked(
        missing=missing,
        decimal=decimal,
        separator=separator,
        encoding=encoding,
        categorical=categorical,
        numeric=numeric,
        drop=drop,
        only=only,
        header=header,
    )
    suffix = _suffix(path)
    if suffix in _PARQUET:
        return _finished(_read_parquet(path), options, shown)
    if suffix in _FEATHER:
        return _finished(_read_feather(path), options, shown)
    if suffix in _EXCEL:
        return _finished(_read_excel(path, header), options, shown)
    if suffix in _TEXT or separator is not None:
        return _TextFile(path, _TEXT.get(suffix, ","), options).read()
    known = ", ".join([*_TEXT, *_PARQUET, *_FEATHER, *_EXCEL])
    raise ValueError(
        f"{shown}: the name does not give the kind of file; it should end in one of {known}, or give the "
        "separator of its cells"
    )


def _suffix(path: Path) -> str:
    """Return the end of a name that says the kind of file, whether it is packed or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else suffixes[-1]


def _check_path(path: Path) -> str:
    """Refuse what is not a regular file with a name that can be written; return the name."""
    shown = str(path)
    try:
        shown.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"the file name {shown!r} is not valid UTF-8: rename the file") from None
    try:
        found, regular, folder = path.exists(), path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{shown[:100]!r} is not a name of a file: {reason}") from None
    if not found:
        raise FileNotFoundError(f"{shown}: no such file")
    if folder:
        raise ValueError(f"{shown} is a directory: name one CSV, TSV or Parquet file")
    if not regular:
        raise ValueError(
            f"{shown} is not a regular file (a pipe or a device): write its content to a file first"
        )
    return shown


def _may_stand_in_text(cell: str) -> bool:
    """Whether a text can be written in UTF-8: lone surrogates cannot, and stand in no file."""
    return not any("\ud800" <= letter <= "\udfff" for letter in cell)


def _checked_separator(separator: str | None) -> str | None:
    if separator is None:
        return None
    if not separator or not _may_stand_in_text(separator):
        raise ValueError(f"separator must be a character, or 'tab'; got {separator!r}")
    return _NAMED_SEPARATORS.get(separator.lower(), separator)


def _checked_encoding(encoding: str | None) -> str | None:
    """Refuse the name of an encoding that is not known, or that is not one of text."""
    if encoding is not None:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):  # a name with a null byte is a ValueError
            raise ValueError(
                f"encoding must be the name of one, such as utf-8, cp1252 or latin-1; got {encoding!r}"
            ) from None
    return encoding


def _check_names(names: Sequence[str], options: _Options, shown: str) -> None:
    for asked in (options.categorical, options.numeric, options.drop, options.only):
        for name in sorted(asked - set(names)):
            listed = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"{shown} has no column {name!r}; its columns are {listed}")


def _finished(table: Table, options: _Options, shown: str) -> Table:
    """Apply the options on columns to a table that came with types of its own."""
    _check_names(table.names, options, shown)
    columns = [
        as_categorical(column)
        if column.name in options.categorical
        else as_numeric(column)
        if column.name in options.numeric
        else column
        for column in table
        if options.keeps(column.name)
    ]
    return Table(tuple(columns), table.n_rows, notes=table.notes)


def _read_parquet(path: Path) -> Table:
    """Read Parquet by the frame library at hand, which keeps time zones and durations, else by DuckDB."""
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
        import duckdb

        with duckdb.connect(config=_OFFLINE) as connection:
            query = f"SELECT * FROM read_parquet({literal(_without_globs(path))})"
            return read_table(dict(connection.execute(query).fetchnumpy()))
    except (OSError, RuntimeError, MemoryError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
    except Exception as error:
        # The libraries have exceptions of their own for damaged files; errors of ours name a column already.
        if type(error).__module__.partition(".")[0] in ("pyarrow", "polars", "duckdb", "_duckdb"):
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        raise


def _read_feather(path: Path) -> Table:
    try:
        if importlib.util.find_spec("pyarrow"):
            import pyarrow.feather

            return read_table(pyarrow.feather.read_table(path))
        if importlib.util.find_spec("polars"):
            import polars

            return read_table(polars.read_ipc(path, memory_map=False))
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("pyarrow", "polars"):
            raise ValueError(f"{path} is not a readable Feather file: {error}") from error
        raise
    raise ImportError(f"{path}: reading Feather needs pyarrow or polars (pip install pyarrow)")


def _read_excel(path: Path, header: bool) -> Table:
    """Read the first sheet."""
    if not importlib.util.find_spec("openpyxl"):
        raise ImportError(f"{path}: reading Excel needs openpyxl (pip install openpyxl); or save it as CSV")
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # whatever a damaged archive makes it raise
        raise ValueError(f"{path} is not a readable Excel file: {error}") from error
    try:
        rows = [row for row in book.worksheets[0].values if any(cell is not None for cell in row)]
    finally:
        book.close()
    if not rows:
        raise ValueError(f"{path} is empty: its first sheet has no cells")
    first = ["" if cell is None else str(cell) for cell in rows[0]]
    names, notes = _tidy_names(first if header else [""] * len(first), header)
    body = rows[1:] if header else rows
    # A formula that failed leaves its error as text.
    columns = {
        name: [None if isinstance(row[j], str) and cells.is_missing(row[j]) else row[j] for row in body]
        for j, name in enumerate(names)
    }
    return replace(read_table(columns), notes=tuple(notes))


def _tidy_names(first: Sequence[str], header: bool = True) -> tuple[list[str], list[str]]:
    """Give blank names a number and repeated ones another, and say so."""
    names: list[str] = []
    notes: list[str] = []
    given: set[str] = set()
    taken = {name.strip() for name in first}
    for j, raw in enumerate(first):
        name = raw.strip()
        if not name:
            name = f"column{j + 1}"
            if header:
                notes.append(f"column {j + 1} has no name: it is called {name!r}")
        stem, number = name, 2
        while name in given or (name in taken and name != raw.strip()):
            name = f"{stem}_{number}"
            number += 1
        if name != stem and raw.strip():
            notes.append(f"the name {stem!r} appears again in column {j + 1}: it is called {name!r} there")
        names.append(name)
        given.add(name)
    return names, notes


def _without_globs(path: Path) -> str:
    """Write a path that DuckDB does not take for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


class _RetryError(Exception):
    """The file cannot be read in this way; ``cure`` says in which it may."""

    def __init__(self, cure: str) -> None:
        self.cure = cure


@dataclass
class _TextFile:
    """One reading of a text file."""

    path: Path
    usual: str
    options: _Options
    notes: list[str] = field(default_factory=list)
    longest_line: int = 0

    def read(self) -> Table:
        """Read the file whole."""
        return self.tried(self._read)

    def tried(self, read: Callable[[Path], Result]) -> Result:
        """Read the file, again from a copy in UTF-8 where it has another encoding or mixed ends of lines."""
        encoding = _mark_of_binary(self.path) or self.options.encoding
        with tempfile.TemporaryDirectory(prefix="damier-") as folder:
            copied = None
            if encoding is not None and codecs.lookup(encoding).name != "utf-8":
                copied = self._copy(Path(folder), [encoding])
            while True:
                try:
                    return read(copied or self.path)
                except _RetryError as retry:
                    if retry.cure == "longer lines" and not self.longest_line:
                        self.longest_line = max(1 << 24, 2 * self.path.stat().st_size)
                    elif copied is None:
                        tried = ["utf-8"] if retry.cure == "line ends" else ["cp1252", "latin-1"]
                        copied = self._copy(Path(folder), tried)
                    else:
                        raise ValueError(f"{self.path} is not readable as a table of text") from None

    def _copy(self, folder: Path, encodings: list[str]) -> Path:
        """Write a copy in UTF-8 with ends of lines of one kind."""
        copied = folder / "table.csv"
        opened = gzip.open if self.path.suffix.lower() == ".gz" else open
        if self.path.suffix.lower() == ".zst":
            raise ValueError(f"{self.path} is not UTF-8 text: unpack it first")
        for encoding in encodings:
            try:
                with (
                    opened(self.path, "rt", encoding=encoding) as source,
                    copied.open("w", encoding="utf-8", newline="\n") as target,
                ):
                    while block := source.read(1 << 22):
                        target.write(block)
            except UnicodeError:
                continue
            if encoding != "utf-8" and self.options.encoding is None:
                self.notes.append(f"the file is not UTF-8: read as {encoding}")
            return copied
        raise ValueError(f"{self.path} is not text in {encodings[0]}: give the encoding it has")

    def _read(self, path: Path) -> Table:
        rows = self._rows(path)
        if rows is not None:
            return _ListReader(self, path, rows).table()
        import duckdb

        reader = _DuckReader(self, path)
        try:
            return reader.table()
        except duckdb.Error as error:
            raise self._told(str(error)) from None
        finally:
            reader.connection.close()

    def _rows(self, path: Path) -> list[list[str]] | None:
        """Rows of a file that is small, or wide and of few rows; None when it is not, or in any doubt."""
        size = path.stat().st_size
        if path.suffix.lower() in _PACKED:
            return None
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = list(itertools.islice(file, _SNIFFED_LINES))
                if not lines or not lines[0].strip():
                    return None
                separator = self.options.separator or _find_separator(lines, self.usual)
                n_columns = len(next(csv.reader(lines, delimiter=separator)))
                wide = n_columns > _MANY_COLUMNS and size <= n_columns * _SMALL_COLUMN
                if n_columns == 1 or not (wide or size <= _SMALL_FILE):
                    return None
                file.seek(0)
                rows = [row for row in csv.reader(file, delimiter=separator, strict=True) if row]
        except (UnicodeError, csv.Error, TypeError):
            return None
        return rows if all(len(row) == n_columns for row in rows) else None

    def _told(self, message: str) -> Exception:
        """Put an error of DuckDB into a sentence, or say how to try again."""
        if "unicode" in message.lower() or "utf-8 encoded" in message:
            return (
                _RetryError("encoding")
                if self.options.encoding is None
                else ValueError(f"{self.path} is not {self.options.encoding} text: give the encoding it has")
            )
        if "invalid state" in message:
            return _RetryError("line ends")
        if "aximum line size" in message and not self.longest_line:
            return _RetryError("longer lines")
        line = re.search(r"on Line: (\d+)", message)
        where = f"{self.path}, line {line[1]}" if line else str(self.path)
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
            return ValueError(
                f"{where}: {found[2]} cells where the first line has {found[1]}: is it a table, and is the "
                "separator right?"
            )
        if "quote" in message:
            return ValueError(f"{where}: a quote is opened and never closed")
        return ValueError(f"{where} cannot be read: {message.splitlines()[0]}")


def _mark_of_binary(path: Path) -> str | None:
    """Refuse files that are no text; return the encoding when the first bytes say it."""
    packed = path.suffix.lower() == ".gz"
    if path.suffix.lower() == ".zst":
        return None
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            start = file.read(_SNIFFED_BYTES)
    except (gzip.BadGzipFile, EOFError):
        raise ValueError(f"{path} is not a gzip file, whatever its name") from None
    if not start.removeprefix(codecs.BOM_UTF8).strip():
        raise ValueError(f"{path} is empty: the first line must have the names of the columns")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    kinds = {b"PAR1": "a Parquet", b"PK\x03\x04": "a zip (or Excel)", b"\x1f\x8b": "a gzip"}
    for mark, kind in kinds.items():
        if start.startswith(mark):
            raise ValueError(f"{path} is {kind} file, not text: rename or unpack it")
    if b"\0" in start:
        # Text in UTF-16 without its mark: every other byte of Western text is zero.
        for encoding, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
            if zeros.count(0) > 0.4 * len(zeros) and start.count(0) < 1.2 * zeros.count(0):
                return encoding
        raise ValueError(f"{path} is not text: it holds zero bytes")
    return None


@dataclass
class _Reader:
    """Columns of a text file; how its cells are come by is a matter of the classes below."""

    file: _TextFile
    path: Path
    options: _Options = field(init=False)
    names: list[str] = field(init=False)
    n_rows: int = field(init=False)
    column_notes: dict[int, str] = field(init=False)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection to DuckDB, which lives as long as the reader."""
        import duckdb

        connection = duckdb.connect(config=_OFFLINE)
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
        self.options = self.file.options
        self.column_notes = {}
        first = self._open()
        names, name_notes = _tidy_names(
            first if self.options.header else [""] * len(first), self.options.header
        )
        _check_names(names, self.options, str(self.file.path))
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
            if all(cell.lower() in _TRUTH for cell in present):
                truth = [None if cell is None else _TRUTH[cell.lower()] for cell in held]
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
class _ListReader(_Reader):
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
class _DuckReader(_Reader):
    """Columns of a text file by way of DuckDB.

    The file is read once, columns of plain numbers and dates as such and the others as text. Where the first
    rows promised numbers and others were met, all such columns are read again together, as text.
    """

    def _open(self) -> list[str]:
        lines, skip = self._first_lines()
        self.separator = self.options.separator or _find_separator(lines, self.file.usual)
        first = next(csv.reader(lines, delimiter=self.separator), [])
        self.source = self._source(len(first), skip)
        self.table_of: dict[int, str] = {}
        self.distinct: set[int] = set()
        return first

    def _first_lines(self) -> tuple[list[str], int]:
        """First lines of the file, and how many empty ones stand before them."""
        query = (
            f"SELECT line FROM read_csv({literal(_without_globs(self.path))}, auto_detect=false, "
            f"delim='\x01', quote='', escape='', header=false, "
            f"columns={{'line': 'VARCHAR'}}{self._line_size()}) LIMIT {_SNIFFED_LINES}"
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
            f"read_csv({literal(_without_globs(self.path))}, auto_detect=false, "
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
        self.connection.execute("PRAGMA disable_optimizer" if len(kept) > _MANY_COLUMNS else "SELECT 1")
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


def _find_separator(lines: list[str], usual: str) -> str:
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
    if path.suffix.lower() in _PACKED:
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
