"""One variable alone, for a given price of the number of its parts: what the grid search calls."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from damier.criteria import part_costs
from damier.search.axis.ordered import search_ordered
from damier.search.axis.rows import axis_of_values
from damier.search.axis.unordered import search_unordered
from damier.search.axis.values import elements_of_rows
from damier.search.kernels import CodeArray, FloatArray, IntArray


class Alone(NamedTuple):
    """The parts of one variable.

    Attributes
    ----------
    parts : int64 array of shape (n_values,)
        Part of each value code. Intervals are numbered in their order; groups from the most to the least
        frequent, and a value without rows is in group -1.
    counts : int64 array of shape (I, J)
        Rows of each class in each part.
    cost : float
        ``penalty[I - 1]`` plus, for each part, log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)].
    optimal : bool
        True when proven that no other parts cost less.
    """

    parts: IntArray
    counts: IntArray
    cost: float
    optimal: bool


def partition_alone(
    codes: CodeArray,
    n_values: int,
    classes: CodeArray,
    n_classes: int,
    penalty: FloatArray,
    *,
    ordered: bool,
    search: Literal["auto", "greedy", "exact"] = "auto",
    random_state: int = 0,
) -> Alone:
    """Partition the values of one variable at the least cost, for a given price of the number of parts.

    Parameters
    ----------
    codes : int32 array of shape (N,)
        Value of each row, 0 .. ``n_values - 1``, in the order of the values when ``ordered``.
    n_values : int
        Number of value codes.
    classes : int32 array of shape (N,)
        Class of each row, 0 .. ``n_classes - 1``.
    n_classes : int
        Number of classes J.
    penalty : float64 array of shape (M,)
        ``penalty[I - 1]`` is the cost of having I parts; at most M are made. Proofs need it to grow and to be
        concave in I. The prior of a grid's axis is both, whether the first part is free (the variable left
        out of the grid) or not: it is concave from two parts on, and the step from one part to two, which
        also pays for the selection of the variable, is the largest.
    ordered : bool
        True for intervals, False for groups.
    search : {"auto", "greedy", "exact"}
        "auto" proves the optimum where that is cheap (see `damier.search.axis.ordered.discretize` and
        `damier.search.axis.unordered.group_values`), "greedy" is quick and proves nothing.
    random_state : int
        Seed of the restarts of the search for groups.

    Examples
    --------
    >>> codes = np.arange(20, dtype=np.int32) // 2
    >>> classes = (codes > 5).astype(np.int32)
    >>> penalty = np.array([0.0, 4.0, 6.0, 7.0])
    >>> found = partition_alone(codes, 10, classes, 2, penalty, ordered=True)
    >>> found.parts.tolist(), found.counts.tolist(), found.optimal
    ([0, 0, 0, 0, 0, 0, 1, 1, 1, 1], [[12, 0], [0, 8]], True)
    """
    if ordered:
        axis, spots = axis_of_values(codes.astype(np.float64), classes, n_classes, None)
        found = search_ordered(axis, penalty[: axis.n_elements], search)
        counts = axis.part_counts(found.starts)
        _, above = spots.neighbours(found.starts, counts)
        parts = np.searchsorted(above, np.arange(n_values), side="right")
        optimal = found.optimal
    else:
        elements = elements_of_rows(codes, n_values, classes, n_classes, None)
        parts, counts, optimal = search_unordered(elements, penalty, search, random_state)
    cost = float(penalty[len(counts) - 1] + part_costs(counts).sum())
    return Alone(parts, counts, cost, optimal)
