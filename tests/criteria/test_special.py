"""Functions of SciPy that are loaded without their packages."""

import subprocess
import sys

import pytest
import scipy
import scipy.special

from damier.criteria import special

NAMES = ("betaincinv", "betaln", "digamma", "entr", "gammaln")

LIGHT = """
import sys
from damier.criteria import special
from damier.search.minimize import _compiled
assert special.gammaln(4.0) > 1.79 and _compiled() is not None
assert not {"scipy.special", "scipy.optimize"} & set(sys.modules), "a package was imported"
import scipy.special, scipy.optimize, scipy.stats
assert all(getattr(scipy.special, name) is getattr(special, name) for name in sys.argv[1:])
with scipy.special.errstate(all="raise"):
    try:
        special.gammaln(-1.0)
    except scipy.special.SpecialFunctionError:
        print("the same")
assert abs(scipy.optimize.minimize(lambda x: (x * x).sum(), [1.0], method="L-BFGS-B").x[0]) < 1e-6
"""


@pytest.mark.skipif(not scipy.__version__.startswith(special._TRIED), reason="not tried with this SciPy")
def test_the_packages_are_not_imported_and_work_when_they_are():
    done = subprocess.run([sys.executable, "-c", LIGHT, *NAMES], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "the same", done.stderr


def test_functions_are_those_of_scipy():
    for name in NAMES:
        assert getattr(special, name) is getattr(scipy.special, name)


def test_modules_that_are_not_there_are_not_loaded(monkeypatch):
    assert special.compiled_modules("special", "_no_such_module") is None
    monkeypatch.setattr(special, "_TRIED", ("0.1.",))
    assert special.compiled_modules("special", "_ufuncs") is None
