"""Functions of SciPy without the packages that hold them.

To import `scipy.special` takes a quarter of a second and `scipy.optimize` another one, a sixth of a whole
report, most of it for what is not used here. The compiled modules inside take some milliseconds: with the
versions of SciPy where that was tried they are loaded by themselves, with others through their packages.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import scipy

# Versions of SciPy whose compiled modules were loaded this way, and their functions found to be the same.
_TRIED = ("1.17.",)


def compiled_modules(package: str, *names: str) -> Any:
    """Load compiled modules of a package of SciPy without the package, each for the next ones to find.

    Returns the last one, or None where this was not tried or does not work.
    """
    if not scipy.__version__.startswith(_TRIED):
        return None
    module, added = None, []
    try:
        for name in names:
            whole = f"scipy.{package}.{name}"
            module = sys.modules.get(whole)
            if module is None:
                spec = PathFinder.find_spec(whole, [f"{scipy.__path__[0]}/{package}"])
                module = module_from_spec(spec)  # type: ignore[arg-type]
                added.append(whole)
                spec.loader.exec_module(module)  # type: ignore[union-attr]
                sys.modules[whole] = module
    except (ImportError, AttributeError):
        module = None
    # Once the package is imported after all, it finds the same modules by itself and makes them known.
    for whole in added:
        sys.modules.pop(whole, None)
    return module


_functions = compiled_modules(
    "special", "_ufuncs_cxx", "_ellip_harm_2", "_special_ufuncs", "_gufuncs", "_ufuncs"
)
try:
    betaincinv: Any = _functions.betaincinv
    betaln: Any = _functions.betaln
    digamma: Any = _functions.psi
    entr: Any = _functions.entr
    gammaln: Any = _functions.gammaln
except AttributeError:
    from scipy.special import betaincinv, betaln, digamma, entr, gammaln

__all__ = ["betaincinv", "betaln", "compiled_modules", "digamma", "entr", "gammaln"]
