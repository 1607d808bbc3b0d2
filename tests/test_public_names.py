"""The public names: listed for type checkers, loaded on first use."""

import subprocess
import sys

import damier


def test_every_name_is_listed_and_loads():
    assert sorted(damier._HOME_OF) == sorted(set(damier.__all__) - {"__version__"})
    for name in damier.__all__:
        assert getattr(damier, name) is not None


def test_importing_damier_imports_neither_scikit_learn_nor_numba():
    program = "import sys, damier; print({'sklearn', 'numba', 'pandas', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
