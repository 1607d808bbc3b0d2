"""Whole, non-negative counts, or an error that says what is wrong."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def whole_counts(values: Any, name: str, *, ndim: int) -> IntArray:
    """Return `values` as int64, refusing what is not a `ndim`-dimensional array of whole counts."""
    array = np.asarray(values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite: it holds NaN or infinity")
        if not (array == np.floor(array)).all():
            raise ValueError(
                f"{name} must hold whole numbers: {array[array != np.floor(array)].flat[0]!r} is not"
            )
    elif array.dtype.kind not in "iub":
        raise ValueError(f"{name} must hold whole numbers, got an array of {array.dtype}")
    if array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    return np.ascontiguousarray(array, dtype=np.int64)


def class_counts_table(counts: Any, name: str = "counts") -> IntArray:
    """Return a parts x classes table holding at least one instance."""
    table = whole_counts(counts, name, ndim=2)
    if table.sum() == 0:
        raise ValueError(f"{name} holds no instance: a cost needs at least one")
    return table


def whole_number(value: Any, name: str, *, at_least: int) -> int:
    """Return `value` as int, refusing fractions and what is below `at_least`."""
    try:
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            raise ValueError(f"{name} must be a whole number, got {value!r}") from None
        number = int(value)
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number
