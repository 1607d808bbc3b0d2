"""Text files: their encoding, the ends of their lines, and which reader they get."""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from damier.intake.packed import check_packed
from damier.intake.reading import PACKED, Options
from damier.intake.table import Table
from damier.intake.text_readers import MANY_COLUMNS, SNIFFED_LINES, DuckReader, ListReader, find_separator

Result = TypeVar("Result")

_SNIFFED_BYTES = 4096
# Python reads small files, and wide ones of few rows, in less time than DuckDB plans its queries.
_SMALL_FILE = 1 << 20
_SMALL_COLUMN = 50_000


class RetryError(Exception):
    """The file cannot be read in this way; ``cure`` says in which it may."""

    def __init__(self, cure: str) -> None:
        self.cure = cure


@dataclass
class TextFile:
    """One reading of a text file."""

    path: Path
    usual: str
    options: Options
    notes: list[str] = field(default_factory=list)
    longest_line: int = 0

    def read(self) -> Table:
        """Read the file whole."""
        return self.tried(self._read)

    def tried(self, read: Callable[[Path], Result]) -> Result:
        """Read the file, again from a copy in UTF-8 where it has another encoding or mixed ends of lines."""
        check_packed(self.path)
        encoding = _mark_of_binary(self.path) or self.options.encoding
        with tempfile.TemporaryDirectory(prefix="damier-") as folder:
            copied = None
            if encoding is not None and codecs.lookup(encoding).name != "utf-8":
                copied = self._copy(Path(folder), [encoding])
            while True:
                try:
                    return read(copied or self.path)
                except RetryError as retry:
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
            return ListReader(self, path, rows).table()
        import duckdb

        reader = DuckReader(self, path)
        try:
            return reader.table()
        except duckdb.Error as error:
            raise self._told(str(error)) from None
        finally:
            reader.connection.close()

    def _rows(self, path: Path) -> list[list[str]] | None:
        """Rows of a file that is small, or wide and of few rows; None when it is not, or in any doubt."""
        size = path.stat().st_size
        if path.suffix.lower() in PACKED:
            return None
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = list(itertools.islice(file, SNIFFED_LINES))
                if not lines or not lines[0].strip():
                    return None
                separator = self.options.separator or find_separator(lines, self.usual)
                n_columns = len(next(csv.reader(lines, delimiter=separator)))
                wide = n_columns > MANY_COLUMNS and size <= n_columns * _SMALL_COLUMN
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
                RetryError("encoding")
                if self.options.encoding is None
                else ValueError(f"{self.path} is not {self.options.encoding} text: give the encoding it has")
            )
        if "invalid state" in message:
            return RetryError("line ends")
        if "aximum line size" in message and not self.longest_line:
            return RetryError("longer lines")
        line = re.search(r"on Line: (\d+)", message)
        where = f"{self.path}, line {line[1]}" if line else str(self.path)
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
            return ValueError(
                f"{where}: {found[2]} cells where the first line has {found[1]}: is it a table, and is the "
                "separator right?"
            )
        if "quote" in message:
            return ValueError(f"{where}: a quote is opened and never closed")
        said = message.splitlines()[0].partition("Error: ")
        return ValueError(f"{where} cannot be read as a table: {said[2] or said[0]}")


def _mark_of_binary(path: Path) -> str | None:
    """Refuse files that are no text; return the encoding when the first bytes say it."""
    packed = path.suffix.lower() == ".gz"
    if path.suffix.lower() == ".zst":
        return None
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
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
