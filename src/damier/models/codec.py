"""Values in JSON types and back, exactly: what JSON cannot say (infinities) is written as a small dict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

_SCALARS = (str, bool, int, float, type(None))


def encode(values: Iterable[Any]) -> list[Any]:
    """Write values in JSON types.

    >>> encode((1, None, "a", float("-inf")))
    [1, None, 'a', {'float': '-inf'}]
    """
    return [_encode_one(value) for value in values]


def decode(values: Iterable[Any]) -> tuple[Any, ...]:
    """Read back what ``encode`` wrote."""
    return tuple(_decode_one(value) for value in values)


def _encode_one(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if not isinstance(value, _SCALARS):
        raise TypeError(f"a value of type {type(value).__name__} cannot be saved: {value!r}")
    return value


def _decode_one(value: Any) -> Any:
    if isinstance(value, dict):
        return float(wanted(value, "float"))
    if not isinstance(value, _SCALARS):
        raise ValueError(
            f"not a saved model: a value of type {type(value).__name__} where a scalar is wanted"
        )
    return value


def wanted(plain: dict[str, Any], key: str) -> Any:
    """Field of a saved model.

    Raises
    ------
    ValueError
        If it is not there, naming it.
    """
    if not isinstance(plain, dict) or key not in plain:
        raise ValueError(f"not a saved model: {key!r} is missing")
    return plain[key]


def distinct_names(names: list[str]) -> list[str]:
    """Add a number to names met before, for frames do not take a name twice.

    >>> distinct_names(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    met: set[str] = set()
    result = []
    for name in names:
        tried, again = name, 1
        while tried in met:
            again += 1
            tried = f"{name} ({again})"
        met.add(tried)
        result.append(tried)
    return result
