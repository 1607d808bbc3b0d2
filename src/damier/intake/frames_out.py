"""Tables handed back to the user, in a library of theirs."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import narwhals as nw

BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """Build a frame from columns.

    Parameters
    ----------
    columns : mapping from name to values
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        By default the first of pandas, polars and pyarrow that is installed, else a plain dict of lists.

    Examples
    --------
    >>> make_frame({"a": [1, 2]}, backend="dict")
    {'a': [1, 2]}
    """
    if backend is None:
        backend = next((name for name in BACKENDS if importlib.util.find_spec(name)), "dict")
    plain = {name: list(values) for name, values in columns.items()}
    if backend == "dict":
        return plain
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}: choose one of {', '.join(BACKENDS)}, dict")
    return nw.from_dict(plain, backend=cast(Literal["pandas", "polars", "pyarrow"], backend)).to_native()
