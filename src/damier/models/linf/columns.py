"""Columns as LINF sees them: numbers scaled to the unit interval in fixed point, categories as codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from damier.intake import CategoricalColumn, Column, as_categorical, read_column
from damier.intake.table import FloatArray
from damier.models.codec import FieldError, Model, Values
from damier.models.partition import as_numbers, with_booleans

# The whole number that stands for 1. How far sums are exact in float32 depends on it: the search derives from
# it the largest sum of weights.
UNIT = 1 << 17
# Numbers scaled at a time, few enough to stay in cache from step to step.
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class ScaledColumn(Model):
    """A numeric column: an optional signed square root, then the training range to 0 .. 1.

    Parameters
    ----------
    name : str
    root : bool
        Replace x by ``sgn(x) sqrt|x|`` first.
    low, high : float
        Range of the (transformed) finite training values.
    middle : float
        What a missing value is replaced by: the median of the finite training values, not transformed.
    """

    name: str
    root: bool
    low: float
    high: float
    middle: float

    model: ClassVar[str] = "scaled"
    n_categories: ClassVar[int] = 0

    def _described(self) -> str:
        return f"{self.name}: {'root of ' if self.root else ''}{self.low:.4g} .. {self.high:.4g}"

    def _check(self) -> None:
        if self.low > self.high:
            raise FieldError("low", f"{self.low} is above the high of {self.high}")

    def apply(self, column: Column) -> npt.NDArray[np.float32]:
        """Whole numbers: 0 stands for the least training value and ``UNIT`` for the greatest.

        Values beyond go on outside, at most one range further; infinities go there.
        """
        n_rows = len(column.codes if isinstance(column, CategoricalColumn) else column.values)
        scaled = np.empty(n_rows, dtype=np.float32)
        self.write(column, scaled)
        return scaled

    def write(self, column: Column, out: npt.NDArray[Any]) -> None:
        """Write what ``apply`` gives into an array of any type."""
        numbers = (as_numbers(column) if isinstance(column, CategoricalColumn) else column).values
        for start in range(0, len(numbers), _BLOCK):
            out[start : start + _BLOCK] = self._scale(numbers[start : start + _BLOCK])

    def _scale(self, numbers: FloatArray) -> FloatArray:
        values = np.where(np.isnan(numbers), self.middle, numbers)
        if self.root:
            values = signed_root(values)
        return place(values, self.low, self.high)


@dataclass(frozen=True, eq=False, repr=False)
class CodedColumn(Model):
    """A categorical column: the categories that have a share of their own, all others together.

    Only the most frequent categories of the training data are listed; the code of any other value, seen in
    training or not, is the number of those listed.
    """

    name: str
    categories: Values

    model: ClassVar[str] = "coded"

    def _described(self) -> str:
        return f"{self.name}: {self.n_categories} categories"

    @property
    def n_categories(self) -> int:
        """Number of categories listed."""
        return len(self.categories)

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        return with_booleans({category: code for code, category in enumerate(self.categories)})

    def apply(self, column: Column) -> npt.NDArray[np.float32]:
        """Code of every value."""
        read = as_categorical(column)
        code_of, other = self._code_of, self.n_categories
        known = (code_of.get(value, other) for value in read.categories)
        return np.fromiter(known, np.float32, len(read.categories))[read.codes]

    def write(self, column: Column, out: npt.NDArray[Any]) -> None:
        """Write what ``apply`` gives into an array of any type."""
        out[:] = self.apply(column)

    def code_of(self, value: Any) -> float:
        """Code of one value: what ``apply`` gives, without the arrays."""
        if type(value) is str or value is None:
            return self._code_of.get(value, self.n_categories)
        return float(self.apply(read_column([value], self.name))[0])


LinfColumn = ScaledColumn | CodedColumn


def place(values: FloatArray, low: Any, high: Any) -> FloatArray:
    """Bring values from a range to 0 .. ``UNIT``, in place; ``low`` and ``high`` may be one per value."""
    # Halves, so that the range of the largest doubles does not overflow.
    span = high / 2 - low / 2
    values *= 0.5
    values -= low / 2
    # Far beyond a tiny range is infinitely far; a range without a width is zero below.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        values /= span
    np.clip(values, -1.0, 2.0, out=values)
    values *= UNIT
    np.rint(values, out=values)
    return values if np.all(span > 0.0) else np.where(span > 0.0, values, 0.0)


def signed_root(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Folded square root, ``sgn(x) sqrt|x|``."""
    return np.copysign(np.sqrt(np.abs(values)), values)
