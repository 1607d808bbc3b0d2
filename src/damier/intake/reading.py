"""What all readers of files share: their options, the kinds of files, names of columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Nothing is fetched or loaded to read a file.
OFFLINE: Any = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t", ".data": ",", ".dat": "\t"}
PACKED = (".gz", ".zst")
PARQUET = (".parquet", ".pq")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}


@dataclass(frozen=True)
class Options:
    """How a file is to be read, as `damier.intake.read_file` explains it."""

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
    ) -> Options:
        """Take the arguments of `read_file`."""
        if decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
        separator, encoding = _checked_separator(separator), _checked_encoding(encoding)
        words = tuple(cell for cell in missing if _may_stand_in_text(cell))
        named = {name: frozenset(given) for name, given in columns.items()}
        return cls(words, decimal, separator, encoding, header=header, **named)

    def keeps(self, name: str) -> bool:
        """Return whether a column is to be read."""
        return name not in self.drop and (not self.only or name in self.only)


def kind_of_name(path: Path) -> str:
    """Return the end of a name that says the kind of file, whether it is packed or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in PACKED else suffixes[-1]


def check_path(path: Path) -> str:
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
    mark = _NAMED_SEPARATORS.get(separator.lower(), separator)
    if len(mark) != 1 or mark in '"\r\n' or not _may_stand_in_text(mark):
        raise ValueError(
            f"separator must be one character, no quote and no end of line, or 'tab'; got {separator!r}"
        )
    return mark


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


def check_names(names: Sequence[str], options: Options, shown: str) -> None:
    """Refuse options on columns that are not there."""
    for asked in (options.categorical, options.numeric, options.drop, options.only):
        for name in sorted(asked - set(names)):
            listed = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"{shown} has no column {name!r}; its columns are {listed}")


def tidy_names(first: Sequence[str], header: bool = True) -> tuple[list[str], list[str]]:
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


def without_globs(path: Path | str) -> str:
    """Write a path that DuckDB does not take for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))
