"""The public names: listed for type checkers, loaded on first use."""

import subprocess
import sys

import pytest

import damier
import damier.deploy
import damier.intake
import damier.models


def test_every_name_is_listed_and_loads():
    assert sorted(damier._HOME_OF) == sorted(set(damier.__all__) - {"__version__"})
    for name in damier.__all__:
        assert getattr(damier, name) is not None


@pytest.mark.parametrize("package", [damier.deploy, damier.intake, damier.models])
def test_names_of_packages_are_listed_and_load(package):
    assert sorted(package.HOME_OF) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_modules_that_the_guide_names_need_no_import_of_their_own():
    program = "import damier as d; d.criteria, d.datasets, d.deploy.save, d.report.plot_cover"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_command_line_starts_without_numpy():
    program = "import sys, damier.cli; print({'numpy', 'scipy', 'narwhals', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_importing_damier_imports_neither_scikit_learn_nor_numba():
    program = "import sys, damier; print({'sklearn', 'numba', 'pandas', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
