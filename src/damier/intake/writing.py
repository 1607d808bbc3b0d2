"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from damier.intake.printable import without_formula


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in UTF-8, as `write_bytes` does.

    Lone surrogates, which UTF-8 cannot hold, are written as escapes: those of JSON.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(pathlib.Path(folder) / "note.txt", "done")
    ...     pathlib.Path(folder, "note.txt").read_text()
    'done'
    """
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_csv(
    path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]], *, raw: bool = False
) -> None:
    """Write columns as CSV in UTF-8, as `write_bytes` does.

    Parameters
    ----------
    path : str or path
    columns : mapping of str to sequence
        Cells by name; None is an empty cell.
    raw : bool, default=False
        Whether texts that a spreadsheet would run as formulas stay as they are; an apostrophe is put before
        them otherwise.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    for row in ([*columns], *zip(*columns.values(), strict=True)):
        writer.writerow(row if raw else map(without_formula, row))
    write_text(path, text.getvalue())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file only once everything is written, as `replacing` does.

    Parameters
    ----------
    path : str or path
    data : bytes

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write, which takes the place of the one that is there once everything is written.

    The bytes go to a new file of a random name in the same directory, which then takes the place of the file:
    whoever reads it sees the old content or the new one; a full disk or an error leaves the old one. A link
    is followed, and the mode of an existing file is kept. What is no regular file (``/dev/stdout``, a pipe)
    is written to as it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(pathlib.Path(folder) / "rows.csv") as file:
    ...         _ = file.write(b"a,b")
    ...     [found.name for found in pathlib.Path(folder).iterdir()]
    ['rows.csv']
    """
    mode = None
    with contextlib.suppress(FileNotFoundError):
        held = Path(path).stat()
        if not stat.S_ISREG(held.st_mode):
            with Path(path).open("wb") as file:
                yield file
            return
        mode = stat.S_IMODE(held.st_mode)
    target = Path(os.path.realpath(path))
    # The name is no longer than that of a file whose own name is as long as the system allows.
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    # Created by this call or not at all; as open() would, where there is no mode to keep.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(partial, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder that is given its name once everything in it is written.

    Raises
    ------
    OSError
        If there is a folder of that name which is not empty.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    partial.mkdir()
    try:
        yield partial
        if target.is_dir():
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
