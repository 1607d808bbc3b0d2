"""A cache that cannot be written or read costs a warning and time, never a fit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import damier

SCRIPT = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from damier.search.kernels import factorial_table, log_factorial
    import damier.search.kernels
    assert damier.search.kernels.__file__.startswith(sys.argv[1]), damier.search.kernels.__file__
    assert log_factorial(factorial_table(10), 3) == np.log(6)
for one in caught:
    print(one.category.__name__, one.message)
"""


def fit(source, **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source)],
        env={**environment, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=source,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def source(tmp_path):
    """A copy of the package, so that its cache is this test's own."""
    shutil.copytree(
        Path(damier.__file__).parent, tmp_path / "damier", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_nothing_can_be_written(source):
    # A file where the directory should be: mkdir fails for every user, root too.
    for folder in [source / "damier", *(p for p in (source / "damier").rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("no directory")
    said = fit(source, HOME="/proc/none")
    assert len(said) == 1
    assert said[0].startswith("UserWarning compiled functions could not be kept")
    assert "NUMBA_CACHE_DIR" in said[0]


@pytest.mark.parametrize(("suffix", "left"), [("nbi", 0.5), ("nbc", 0.5), ("nbc", 0.0)])
def test_damaged_cache_files(source, tmp_path, suffix, left):
    cache = tmp_path / "cache"
    assert fit(source, NUMBA_CACHE_DIR=str(cache)) == []
    files = sorted(cache.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        held = file.read_bytes()
        file.write_bytes(held[: int(left * len(held))])
    said = fit(source, NUMBA_CACHE_DIR=str(cache))
    assert len(said) == 1
    assert said[0].startswith("UserWarning compiled functions could not be kept")
    assert fit(source, NUMBA_CACHE_DIR=str(cache)) == []  # written anew


@pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
def test_a_full_disk(source, tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + SCRIPT, str(source)],
        env={**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
