"""Names and modules that are loaded on first use, so that what is not used costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, home_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package whose names are loaded on first use.

    Parameters
    ----------
    package : str
        The package.
    home_of : mapping from str to str
        The module that holds each name; of a module of the package, the module itself.

    Examples
    --------
    >>> find, listed = lazy_names("damier", {"midpoint": "damier.models.bounds"})
    >>> find("midpoint")(1.0, 2.0)
    1.5
    """

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(home_of[name])
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return find, listed


class LazyModule:
    """A module that is imported when one of its attributes is read.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> LazyModule("math").sqrt(4.0)
    2.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
