"""Packed files: whether they are whole.

DuckDB reads a zstd file that is cut short as far as it goes, and does not look at the check sum of a gzip
file: rows would be lost, or others read, without a word.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

_ZSTD, _SKIPPED = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
_BYTES_OF_SIZE, _BYTES_OF_DICTIONARY = (0, 2, 4, 8), (0, 1, 2, 4)
_BLOCK = 1 << 20


def check_packed(path: Path) -> None:
    """Refuse a packed file that is not whole.

    Parameters
    ----------
    path : Path
        A file; one whose name does not end in .gz or .zst passes.

    Raises
    ------
    ValueError
        If it is cut short, damaged, or packed in another way.
    """
    kind = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
    if kind is None:
        return
    whole = _is_whole_gzip(path) if kind == "gzip" else _is_whole_zstd(path)
    if not whole:
        raise ValueError(f"{path} is not a {kind} file, whatever its name, or it is damaged or cut short")


def _is_whole_gzip(path: Path) -> bool:
    try:
        with gzip.open(path, "rb") as file:
            while file.read(_BLOCK):
                pass
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return False
    return True


def _is_whole_zstd(path: Path) -> bool:
    """Go from block to block: their sizes must lead to the end of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            while file.tell() < size:
                _skip_frame(file)
        except ValueError:
            return False
        return file.tell() == size


def _skip_frame(file: BinaryIO) -> None:
    magic = _whole_number(file, 4)
    if magic in _SKIPPED:
        file.seek(_whole_number(file, 4), 1)
        return
    if magic != _ZSTD:
        raise ValueError("no frame")
    header = _whole_number(file, 1)
    single, check_sum = header >> 5 & 1, header >> 2 & 1
    # a window, unless all is one segment; then the number of a dictionary and the size, if they are given
    of_size = _BYTES_OF_SIZE[header >> 6] or single
    file.seek((not single) + _BYTES_OF_DICTIONARY[header & 3] + of_size, 1)
    last = 0
    while not last:
        block = _whole_number(file, 3)
        last, kind = block & 1, block >> 1 & 3
        if kind == 3:
            raise ValueError("no block")
        file.seek(1 if kind == 1 else block >> 3, 1)
    file.seek(4 * check_sum, 1)


def _whole_number(file: BinaryIO, n_bytes: int) -> int:
    held = file.read(n_bytes)
    if len(held) < n_bytes:
        raise ValueError("cut short")
    return int.from_bytes(held, "little")
