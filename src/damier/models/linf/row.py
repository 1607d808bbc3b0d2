"""One row scored at once: all covers of all decision lists side by side, to the same bits as row by row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from damier.intake import CategoricalColumn, read_column
from damier.intake.table import FloatArray
from damier.models.linf.columns import LinfColumn, ScaledColumn, place, signed_root
from damier.models.partition import as_numbers

if TYPE_CHECKING:
    from damier.models.linf.model import LinfModel
    from damier.models.linf.packed import PackedLists

SingleArray = npt.NDArray[np.float32]
_EXACT = 2**53  # whole numbers below are exact as floats


class RowEncoder:
    """Scaled or coded values of one row.

    Parameters
    ----------
    columns : sequence of ScaledColumn or CodedColumn
        All columns of the model.
    used : sequence of int
        Positions of those whose values are given.
    """

    def __init__(self, columns: Sequence[LinfColumn], used: Sequence[int]) -> None:
        self.n_columns = len(columns)
        held = [(k, j, columns[j]) for k, j in enumerate(used)]
        scaled = [(k, j, column) for k, j, column in held if isinstance(column, ScaledColumn)]
        self.coded = [(k, j, column) for k, j, column in held if not isinstance(column, ScaledColumn)]
        self.scaled = [(k, column.name) for k, _, column in scaled]
        self.at = np.array([j for _, j, _ in scaled], dtype=np.int64)
        self.root = np.array([column.root for _, _, column in scaled], dtype=bool)
        self.low = np.array([column.low for _, _, column in scaled])
        self.high = np.array([column.high for _, _, column in scaled])
        self.middle = np.array([column.middle for _, _, column in scaled])

    def encode(self, values: Sequence[Any]) -> SingleArray:
        """Return what the columns' ``apply`` gives for one row, zero where no cover uses a column."""
        encoded = np.zeros(self.n_columns, dtype=np.float32)
        for k, j, column in self.coded:
            encoded[j] = column.code_of(values[k])
        if self.scaled:
            numbers = np.array([_number(values[k], name) for k, name in self.scaled])
            numbers = np.where(np.isnan(numbers), self.middle, numbers)
            numbers = np.where(self.root, signed_root(numbers), numbers)
            encoded[self.at] = place(numbers, self.low, self.high)
        return encoded


def _number(value: Any, name: str) -> float:
    """Return the number that a value of a numeric column stands for, NaN for a missing one."""
    if isinstance(value, float):
        return value
    if value is None:
        return np.nan
    if type(value) is int and -_EXACT < value < _EXACT:
        return float(value)
    column = read_column([value], name)
    numbers = as_numbers(column) if isinstance(column, CategoricalColumn) else column
    return float(numbers.values[0])


class RowVotes:
    """Votes of every decision list of a model for one row.

    Parameters
    ----------
    model : LinfModel
    """

    def __init__(self, model: LinfModel) -> None:
        packed = model.packed
        self.packed: PackedLists = packed
        self.n_members = len(model.members)
        self.axis_of_term = np.repeat(np.arange(len(packed.origins)), np.diff(packed.axis_starts))
        self.categorical = np.flatnonzero(packed.axis_shares >= 0)
        self.cover_of = np.repeat(np.arange(len(packed.n_bins)), np.diff(packed.rectangle_starts))
        member_of_cover = np.repeat(np.arange(self.n_members), np.diff(packed.member_starts))
        self.member_of = member_of_cover[self.cover_of]
        self.firsts = packed.rectangle_starts[packed.member_starts]
        self.sides = np.ascontiguousarray(packed.sides.T)

    def totals(self, row: SingleArray) -> SingleArray:
        """Weighted sums of the columns along all axes, each added up in the order of its terms."""
        packed = self.packed
        values = row[packed.axis_columns]
        if len(self.categorical):
            codes = values[self.categorical].astype(np.int64)
            values[self.categorical] = packed.shares[packed.axis_shares[self.categorical] + codes]
        totals = np.zeros(len(packed.origins), dtype=np.float32)
        np.add.at(totals, self.axis_of_term, packed.axis_weights * values)
        return totals

    def votes(self, row: SingleArray) -> FloatArray:
        """Vote of each member for each class."""
        packed, totals = self.packed, self.totals(row)
        x, y = totals[0::2][self.cover_of], totals[1::2][self.cover_of]
        x0, x1, y0, y1 = self.sides
        hits = np.flatnonzero((x >= x0) & (x < x1) & (y >= y0) & (y < y1))
        members, first = np.unique(self.member_of[hits], return_index=True)
        votes = np.tile(packed.no_cover_vote, (self.n_members, 1))
        votes[members] = packed.votes[hits[first]]
        missed = np.ones(self.n_members, dtype=bool)
        missed[members] = False
        missed &= np.diff(packed.member_starts) > 0
        if missed.any():
            distances = self._distances(totals)
            for m in np.flatnonzero(missed).tolist():
                start = int(self.firsts[m])
                nearest = start + int(distances[start : self.firsts[m + 1]].argmin())
                votes[m] = packed.votes[nearest] * packed.outside_vote
        return votes

    @cached_property
    def _edges(self) -> tuple[SingleArray, SingleArray, SingleArray, SingleArray, SingleArray]:
        x0, x1, y0, y1 = np.ascontiguousarray(self.packed.rectangles.T)
        bins = self.packed.n_bins.astype(np.float32)
        return x0, x1 + np.float32(1), y0, y1 + np.float32(1), bins

    def _distances(self, totals: SingleArray) -> SingleArray:
        """Largest distance along an axis from each rectangle."""
        packed = self.packed
        x0, x1, y0, y1, bins = self._edges
        placed = (totals - packed.origins) * packed.scales
        if packed.open_edges:
            placed = np.clip(placed, np.float32(0), np.repeat(bins, 2))
        x, y = placed[0::2][self.cover_of], placed[1::2][self.cover_of]
        distances: SingleArray = np.maximum(np.maximum(x0 - x, x - x1), np.maximum(y0 - y, y - y1))
        distances /= bins[self.cover_of]
        return distances
