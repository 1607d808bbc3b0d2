"""Compiled functions from a file: found, the same, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import damier

# Calls one kernel; compiling ends the process if the last argument says so.
CALL = """
import sys
import numpy as np
from numba.core import event
from damier.search.kernels import factorial_table, log_factorial

class Refusal(event.Listener):
    def on_start(self, event):
        raise SystemExit("compiled")
    def on_end(self, event):
        pass

if sys.argv[1] == "refuse":
    event.register("numba:compile", Refusal())
assert log_factorial(factorial_table(10), 3) == np.log(6)
"""
PACK = """
import sys
from pathlib import Path
from numba.core.serialize import dumps
from damier.search import packaged
from damier.search.kernels import factorial_table, log_factorial
log_factorial(factorial_table(10), 3)
results = {
    packaged.key_of(log_factorial.py_func, signature): dumps(compiled._reduce())
    for signature, compiled in log_factorial.overloads.items()
}
packaged.write(Path(sys.argv[1]) / packaged.file_name(packaged.levels()[-1]), results)
"""


def run(program, source, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=source,
    )
    return done.returncode, done.stderr.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A copy of the package, with a file of one compiled kernel in it."""
    source = tmp_path_factory.mktemp("installed")
    shutil.copytree(
        Path(damier.__file__).parent,
        source / "damier",
        ignore=shutil.ignore_patterns("__pycache__", "compiled"),
    )
    folder = source / "damier" / "search" / "compiled"
    folder.mkdir()
    code, said = run(PACK, source, folder, NUMBA_CACHE_DIR=str(source / "cache"))
    assert (code, said) == (0, "")
    shutil.rmtree(source / "cache")
    return source


def copied(installed, tmp_path):
    shutil.copytree(installed, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_nothing_is_compiled_even_where_nothing_can_be_written(installed, tmp_path):
    source = copied(installed, tmp_path)
    for folder in [source / "damier", *(p for p in (source / "damier").rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("no directory")
    assert run(CALL, source, "refuse", HOME="/proc/none", NUMBA_CACHE_DIR="") == (0, "")


def test_it_can_be_switched_off(installed, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path), "DAMIER_COMPILED": ""}
    assert run(CALL, installed, "refuse", **cache) == (1, "compiled")
    assert run(CALL, installed, "compile", **cache) == (0, "")
    assert run(CALL, installed, "refuse", **cache) == (0, "")  # kept by Numba


def test_another_folder_can_be_named(installed, tmp_path):
    source = copied(installed, tmp_path / "copy")
    folder = shutil.move(source / "damier" / "search" / "compiled", tmp_path / "elsewhere")
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(CALL, source, "refuse", **cache) == (1, "compiled")
    assert run(CALL, source, "refuse", DAMIER_COMPILED=str(folder), **cache) == (0, "")


@pytest.mark.parametrize("left", [0.0, 0.01, 0.5, 0.99])
def test_a_damaged_file_is_as_good_as_none(installed, tmp_path, left):
    source = copied(installed, tmp_path)
    for path in (source / "damier" / "search" / "compiled").iterdir():
        held = path.read_bytes()
        path.write_bytes(held[: int(left * len(held))])
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(CALL, source, "refuse", **cache) == (1, "compiled")
    assert run(CALL, source, "compile", **cache) == (0, "")


def test_a_changed_comment_in_any_kernel_makes_it_void(installed, tmp_path):
    source = copied(installed, tmp_path)
    with (source / "damier" / "search" / "grid" / "axes.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert run(CALL, source, "refuse", NUMBA_CACHE_DIR=str(tmp_path / "cache")) == (1, "compiled")


def test_touched_files_are_still_the_same(installed, tmp_path):
    source = copied(installed, tmp_path)
    for path in source.rglob("*.py"):
        path.touch()
    assert run(CALL, source, "refuse", NUMBA_CACHE_DIR=str(tmp_path / "cache")) == (0, "")
