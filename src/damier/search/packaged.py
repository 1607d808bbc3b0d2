"""Compiled functions that a release wheel brings along, so that nothing is compiled on first use.

A file holds what Numba made of each kernel for one level of processors, under the kernel's name and the types
of its arguments. It is used where Python, Numba and llvmlite are of the versions it was made with and no
source of a kernel has changed since; elsewhere kernels are compiled and kept by Numba as in a checkout.
`damier.commands.pack` writes such files.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba

FOLDER_VARIABLE = "DAMIER_COMPILED"
"""Environment variable that names another folder of such files; an empty one does without them."""

# What a processor of the level x86-64-v3 has: those of the last ten years, but for some small ones.
_V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_X86 = ("x86_64", "amd64")

Index = Mapping[tuple[str, str], tuple[int, int]]


def levels() -> tuple[str, ...]:
    """Return the levels of processors that files are made for on this kind of machine, the best one first."""
    return ("x86-64-v3", "x86-64") if platform.machine().lower() in _X86 else ("generic",)


def _supported(level: str) -> bool:
    if level != "x86-64-v3":
        return True
    from llvmlite.binding import get_host_cpu_features

    held = get_host_cpu_features()
    return all(held.get(feature) for feature in _V3)


def file_name(level: str) -> str:
    """Name the file of a level: after all that its contents depend on, but for the sources."""
    versions = f"numba{numba.__version__}-llvmlite{llvmlite.__version__}"
    machine = f"{sys.platform}-{platform.machine().lower()}"
    return f"{sys.implementation.cache_tag}-{versions}-{machine}-{level}.kernels"


@cache
def stamp() -> str:
    """Digest of the sources of all kernels: a change in any of them, a comment even, gives another one."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def name_of(function: Callable[..., Any]) -> str:
    """Name a kernel."""
    return f"{function.__module__}.{function.__qualname__}"


def key_of(function: Callable[..., Any], signature: Any) -> tuple[str, str]:
    """Name a kernel and the types of its arguments."""
    return name_of(function), str(signature)


def write(path: Path, results: Mapping[tuple[str, str], bytes]) -> None:
    """Write compiled functions, pickled, to a file."""
    index, first = {}, 0
    for key, held in sorted(results.items()):
        index[key] = first, len(held)
        first += len(held)
    header = pickle.dumps((stamp(), index))
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for _, held in sorted(results.items()):
            file.write(held)


@cache
def _opened() -> tuple[Index, Any, int] | None:
    """Open the file for this processor: where each result lies, all of them, and where the first one begins.

    None where there is no such file, or it was made from other sources.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "":
        return None
    folder = Path(__file__).parent / "compiled" if named is None else Path(named)
    for level in levels():
        try:
            path = folder / file_name(level)
            if not path.is_file() or not _supported(level):
                continue
            with path.open("rb") as file:
                held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            start = 8 + int.from_bytes(held[:8], "little")
            made_from, index = pickle.loads(held[8:start])
        except Exception:  # a damaged file raises anything: kernels are compiled instead
            continue
        if made_from == stamp():
            return index, held, start
    return None


def find(function: Callable[..., Any], signature: Any) -> Any:
    """Return what Numba made of a kernel for such arguments, for it to rebuild; None if it is not there."""
    opened = _opened()
    if opened is None:
        return None
    index, held, start = opened
    place = index.get(key_of(function, signature))
    if place is None:
        return None
    first, size = start + place[0], place[1]
    return pickle.loads(held[first : first + size])


def holds(function: Callable[..., Any]) -> bool:
    """Whether the file of this machine has a kernel, for arguments of some types."""
    opened = _opened()
    return opened is not None and any(name == name_of(function) for name, _ in opened[0])
