"""Cells of a grid counted by an engine: the part of a row on each axis as a CASE, then one GROUP BY."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from damier.intake.engines.prebins import CHANGED
from damier.intake.engines.source import Labels, check_sums
from damier.intake.table import IntArray


class Axis(NamedTuple):
    """How the values of one column fall into parts.

    Attributes
    ----------
    name : str
    bounds : tuple of float
        Inner bounds of intervals, ascending; a number goes left of a bound it equals.
    alone : bool
        Missing numbers are part 0 by themselves; otherwise they are in the lowest interval.
    groups : tuple of tuples, or None
        Values of each group, where the column is one of names; None among them is missing.
    other : int
        Part of the values of no group.
    """

    name: str
    bounds: tuple[float, ...] = ()
    alone: bool = False
    groups: tuple[tuple[Any, ...], ...] | None = None
    other: int = -1

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.bounds) + 1 + int(self.alone) if self.groups is None else len(self.groups)

    @property
    def n_values(self) -> int:
        """Number of values of groups that are listed."""
        return sum(map(len, self.groups or ()))


class Cells(NamedTuple):
    """Cells that hold rows.

    Attributes
    ----------
    parts : int64 array of shape (n_cells, n_axes)
    counts : int64 array of shape (n_cells, n_classes)
    """

    parts: IntArray
    counts: IntArray


def label_case(labels: Labels, part: Callable[[Axis], str], code: str) -> str:
    """Write the class of a row as a number, of labels with axes.

    Parameters
    ----------
    labels : Labels
    part : callable
        Writes the part of a row on an axis.
    code : str
        The class of the target as a number, where ``labels`` has values.
    """
    written = ""
    for axis in labels.axes:
        written = f"({written}) * {axis.n_parts} + {part(axis)}" if written else part(axis)
    if not labels.values:
        return written or "0"
    return f"({written}) * {len(labels.values)} + {code}" if written else code


def part_case(axis: Axis, number: str, name: str, write: Callable[[Any], str]) -> str:
    """Write the part of a row on an axis.

    Parameters
    ----------
    axis : Axis
    number, name : str
        The column as a number that is NULL where it is missing, and as a name.
    write : callable
        Writes a scalar in SQL, a float to its last bit.

    Examples
    --------
    >>> part_case(Axis("age", (30.5,)), "age", "age", repr)
    'CASE WHEN age > 30.5 THEN 1 ELSE 0 END'
    >>> part_case(Axis("plan", groups=(("a", None), ("b",))), "", "plan", repr)
    "CASE WHEN plan IS NULL THEN 0 WHEN plan IN ('a') THEN 0 WHEN plan IN ('b') THEN 1 ELSE -1 END"
    """
    if axis.groups is not None:
        chosen = [f"WHEN {name} IS NULL THEN {g}" for g, group in enumerate(axis.groups) if None in group]
        for g, group in enumerate(axis.groups):
            listed = ", ".join(write(value) for value in group if value is not None)
            chosen += [f"WHEN {name} IN ({listed}) THEN {g}"] if listed else []
        return f"CASE {' '.join(chosen)} ELSE {axis.other} END"
    first = int(axis.alone)
    if len(axis.bounds) > _MANY:
        # Half of the bounds at a time: engines look at one after the other.
        middle = len(axis.bounds) // 2
        low, high = (
            axis._replace(bounds=axis.bounds[:middle]),
            axis._replace(bounds=axis.bounds[middle + 1 :]),
        )
        above = part_case(high._replace(alone=False), number, name, write)
        return (
            f"CASE WHEN {_above(number, axis.bounds[middle], write)} THEN {middle + 1 + first} + {above} "
            f"ELSE {part_case(low, number, name, write)} END"
        )
    chosen = [
        f"WHEN {_above(number, bound, write)} THEN {k + 1 + first}"
        for k, bound in reversed(list(enumerate(axis.bounds)))
    ]
    if axis.alone:
        chosen.append(f"WHEN {number} IS NOT NULL THEN 1")
    return f"CASE {' '.join(chosen)} ELSE 0 END" if chosen else "0"


def _above(number: str, bound: float, write: Callable[[Any], str]) -> str:
    # No engine needs to read an infinity: above minus infinity is from the least number on.
    return f"{number} >= {write(-_LARGEST)}" if bound == -math.inf else f"{number} > {write(bound)}"


# Bounds that are compared one after the other.
_MANY = 16
_LARGEST = float(np.finfo(np.float64).max)


def make_cells(rows: Sequence[Sequence[Any]], codes: Sequence[Any], n_axes: int, labels: Labels) -> Cells:
    """Put rows of parts, class and count together, one per cell.

    Parameters
    ----------
    rows : sequence
        Of each the parts, something, and the count last.
    codes : sequence of int
        Class of each of them; None is one that was not there before.
    n_axes : int
    labels : Labels
    """
    if any(code is None for code in codes):
        raise ValueError(CHANGED)
    held = np.array([[int(part) for part in row[:n_axes]] for row in rows], np.int64).reshape(-1, n_axes)
    parts, of_row = np.unique(held, axis=0, return_inverse=True)
    counts = np.zeros((len(parts), labels.n_classes), np.int64)
    np.add.at(counts, (of_row.ravel(), np.asarray(codes, np.int64)), [int(row[-1]) for row in rows])
    check_sums(labels, counts)
    return Cells(parts, counts)
