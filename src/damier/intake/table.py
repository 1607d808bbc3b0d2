"""A table as the rest of the library sees it: named columns, each of numbers or of coded values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """Numbers, with NaN where the value is missing; infinities are ordinary values."""

    name: str
    values: FloatArray


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """Codes into ``categories``; a missing value is the category ``None``, like any other.

    ``categories`` are the distinct values as Python scalars (str, bool, int, float or None), sorted with
    ``None`` first when present, so that the coding does not depend on the order of the rows.
    """

    name: str
    codes: CodeArray
    categories: tuple[Any, ...]


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True, slots=True)
class Target:
    """Class codes of the rows, 0 .. J-1, into the sorted ``classes``."""

    codes: CodeArray
    classes: npt.NDArray[Any]
