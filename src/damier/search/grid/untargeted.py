"""Grids over any variables without a target: intervals of numbers, groups of values, priced together.

Boullé, "Data grid models", section 4, in the general case of the mathematics page. The search freezes all
axes but one: what remains is one axis whose rows are counted by the combination of the other axes' parts, and
the axis engine merges, moves and cuts it with the prices of this criterion. It starts from every pair of
variables and lets the others join while the cost falls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.criteria import log_bell_table, unsupervised_grid_cost
from damier.criteria.special import gammaln
from damier.search.axis.costs import CLUSTERS, RANKS
from damier.search.axis.greedy import improve
from damier.search.axis.ordered import merge_and_improve
from damier.search.axis.rows import axis_of_pairs
from damier.search.axis.unordered import Merges, settled
from damier.search.axis.values import elements_of_pairs
from damier.search.kernels import CodeArray, FloatArray, IntArray, factorial_table
from damier.search.run import Run

PartArray = npt.NDArray[np.integer[Any]]

# Counts that greedy merges may hold, and the most values merged one by one.
_MOST_CELLS = 20_000_000
_MOST_GROUPS = 256
_MOST_BLOCKS = 4096
_MOST_PAIRS = 56
_START_PARTS = 16
# Starts followed to the end over all variables; a pair starts from either of its variables.
_MOST_FOLLOWED = 4


@dataclass(frozen=True, slots=True)
class GridVariable:
    """Element of each row: rank of its value when ``ordered``, code of its category otherwise."""

    elements: CodeArray
    n_elements: int
    ordered: bool

    def counts(self) -> IntArray:
        """Return the number of rows of each element."""
        return np.bincount(self.elements, minlength=self.n_elements)


class _GridSearch:
    def __init__(self, variables: list[GridVariable], rng: np.random.Generator, run: Run) -> None:
        self.variables = variables
        self.n = len(variables[0].elements)
        self.rng = rng
        self.run = run
        self.lf = factorial_table(self.n + max(v.n_elements for v in variables))
        self.parts: list[PartArray] = [np.zeros(v.n_elements, np.uint8) for v in variables]

    def saved(self) -> list[PartArray]:
        """Return what `load` brings back: the first elements of intervals, the groups of values."""
        return [
            np.searchsorted(p, np.arange(int(p[-1]) + 1)) if v.ordered else p.copy()
            for p, v in zip(self.parts, self.variables, strict=True)
        ]

    def load(self, saved: list[PartArray]) -> None:
        for k, variable in enumerate(self.variables):
            self._keep(k, _parts(saved[k], variable.n_elements) if variable.ordered else saved[k])

    def n_parts(self, k: int) -> int:
        return int(self.parts[k].max()) + 1

    def cost(self) -> float:
        return grid_of_parts(self.variables, self.parts)[2]

    def slots(self, k: int) -> tuple[IntArray, int, int]:
        """Give a number to the combinations of the other axes' parts by row; how many occur, and exist."""
        others = [i for i in range(len(self.variables)) if i != k and self.n_parts(i) > 1]
        keys, n_keys = _combined([self.variables[i] for i in others], [self.parts[i] for i in others], self.n)
        return keys, n_keys, math.prod(self.n_parts(i) for i in others)

    def _penalty(self, k: int, most: int, possible: int) -> FloatArray:
        """Price of 1 .. ``most`` parts of an axis, each crossed with so many combinations of the others."""
        n_cells = np.arange(1.0, most + 1.0)
        n_cells *= possible
        penalty: FloatArray = gammaln(self.n + n_cells)
        penalty -= gammaln(n_cells, out=n_cells)
        if not self.variables[k].ordered:
            penalty += log_bell_table(self.variables[k].n_elements, most)[1:]
        return penalty

    def rebuild(self, k: int) -> None:
        """Partition an axis anew, the others frozen."""
        slots, n_slots, possible = self.slots(k)
        variable = self.variables[k]
        n_elements = variable.n_elements
        if variable.ordered:
            axis = axis_of_pairs(variable.elements, n_elements, slots, n_slots)
            del slots
            most = max(8, min(_MOST_BLOCKS, _MOST_CELLS // n_slots))
            penalty = self._penalty(k, n_elements, possible)
            self._keep(k, _parts(merge_and_improve(axis, penalty, RANKS.fixed, most), n_elements))
            return
        elements = elements_of_pairs(variable.elements, n_elements, slots, n_slots)
        most = max(8, min(_MOST_GROUPS, n_elements, _MOST_CELLS // n_slots))
        # the most frequent values each begin a group, all others share one
        groups = np.empty(n_elements, np.int64)
        groups[np.argsort(-variable.counts(), kind="stable")] = np.minimum(np.arange(n_elements), most - 1)
        penalty = self._penalty(k, min(most, n_elements), possible)
        found = Merges(elements, groups, penalty, CLUSTERS, self.lf).best()
        self._keep(k, settled(elements, found.groups, penalty, CLUSTERS, self.lf).groups)

    def refine(self, k: int) -> None:
        """Improve the parts that an axis has."""
        if self.n_parts(k) == 1:
            return
        slots, n_slots, possible = self.slots(k)
        variable, parts = self.variables[k], self.parts[k]
        n_elements = variable.n_elements
        if variable.ordered:
            axis = axis_of_pairs(variable.elements, n_elements, slots, n_slots)
            starts = np.searchsorted(parts, np.arange(self.n_parts(k)))
            penalty = self._penalty(k, n_elements, possible)
            self._keep(k, _parts(improve(axis, RANKS.fixed, self.lf, penalty, starts), n_elements))
            return
        elements = elements_of_pairs(variable.elements, n_elements, slots, n_slots)
        penalty = self._penalty(k, min(n_elements, 2 * self.n_parts(k) + _START_PARTS), possible)
        self._keep(k, settled(elements, parts.astype(np.int64), penalty, CLUSTERS, self.lf).groups)

    def improve(self, axes: Iterable[int]) -> float:
        """Rebuild and refine axes in turn while the cost falls; return the cost."""
        lowest = self.cost()
        axes = list(axes)
        improved = True
        while improved and not self.run.stopped:
            improved = False
            for k in axes:
                kept = self.parts[k].copy()
                for step in (self.rebuild, self.refine):
                    if self.run.stopped:
                        break
                    step(k)
                    cost = self.cost()
                    if cost < lowest - 1e-9:
                        lowest, kept, improved = cost, self.parts[k].copy(), True
                    elif step == self.rebuild:
                        # bounds and values may still move where the old parts are
                        self.parts[k] = kept.copy()
                self.parts[k] = kept
        return lowest

    def spread(self, k: int, n_parts: int) -> None:
        """Cut an axis into parts of about equal frequency, values dealt at random when unordered."""
        counts = self.variables[k].counts()
        order = np.arange(len(counts)) if self.variables[k].ordered else self.rng.permutation(len(counts))
        upto = np.empty(len(counts), np.int64)
        upto[order] = np.cumsum(counts[order]) - counts[order] // 2 - 1
        self._keep(k, np.unique(np.maximum(upto, 0) * n_parts // self.n, return_inverse=True)[1])

    def _keep(self, k: int, parts: PartArray) -> None:
        """Give an axis its parts, in as few bytes as their number needs."""
        self.parts[k] = parts.astype(np.min_scalar_type(parts.max()))

    def clear(self) -> None:
        for part in self.parts:
            part[:] = 0


def grid_of_parts(
    variables: Sequence[GridVariable], parts: Sequence[PartArray]
) -> tuple[IntArray, IntArray, float]:
    """Return the cells that hold rows, in lexical order, how many each holds, and the cost of the grid.

    ``parts`` is the part of each element of each variable.
    """
    keys, n_keys = _combined(variables, parts, len(variables[0].elements))
    held = np.bincount(keys, minlength=n_keys)
    row = np.empty(n_keys, np.int64)
    row[keys] = np.arange(keys.size)  # any row of the cell
    columns = [p[v.elements[row]] for p, v in zip(parts, variables, strict=True)]
    cells = np.column_stack(columns).astype(np.int64)
    axes: list[Any] = [
        int(p.max()) + 1 if v.ordered else (p, v.counts()) for p, v in zip(parts, variables, strict=True)
    ]
    return cells, held, unsupervised_grid_cost(cells, held, axes)


def _combined(
    variables: Sequence[GridVariable], parts: Sequence[PartArray], n_rows: int
) -> tuple[IntArray, int]:
    """Give the combinations of parts that occur numbers in lexical order: by row, and how many."""
    keys, n_keys = np.zeros(n_rows, np.int64), 1
    for variable, of_elements in zip(variables, parts, strict=True):
        n_parts = int(of_elements.max()) + 1
        keys *= n_parts
        keys += of_elements[variable.elements]
        n_keys *= n_parts
        # Numbered anew at every variable: keys stay below the number of rows times that of parts.
        if n_keys <= max(n_rows, 1024):
            seen = np.bincount(keys, minlength=n_keys) > 0
            keys = (np.cumsum(seen) - 1)[keys]
            n_keys = int(np.count_nonzero(seen))
        else:
            distinct, keys = np.unique(keys, return_inverse=True)
            n_keys = distinct.size
    return keys, n_keys


def _parts(starts: PartArray, n_elements: int) -> IntArray:
    """Part of each element, from the first element of each part."""
    return np.searchsorted(starts, np.arange(n_elements), side="right") - 1


def search_unsupervised_grid(
    variables: list[GridVariable], *, seed: int = 0, run: Run | None = None
) -> list[PartArray]:
    """Find the part of each element of each variable.

    Parameters
    ----------
    variables : list of GridVariable
        The coded columns.
    seed : int
        Same data, same seed, same grid, unless the run is stopped.
    run : Run, optional
        When it is stopped, the best grid so far is returned.
    """
    run = Run() if run is None else run
    search = _GridSearch(variables, np.random.default_rng(seed), run)
    everything = range(len(variables))
    best, lowest = search.saved(), search.cost()
    null_cost = lowest
    starts: list[tuple[int, ...]] = list(itertools.permutations(everything, 2))
    if len(starts) > _MOST_PAIRS:
        chosen = search.rng.choice(len(starts), _MOST_PAIRS, replace=False)
        starts = [starts[i] for i in sorted(chosen)]
    if len(variables) > 2:
        starts.append(tuple(everything))
    promising: list[tuple[float, list[PartArray]]] = []
    for done, start in enumerate(starts, 1):
        if run.stopped:
            break
        search.clear()
        n_parts = _START_PARTS if len(start) == 2 else max(2, round(search.n ** (1 / (len(start) + 2))))
        for k in start[:-1]:
            search.spread(k, n_parts)
        promising.append((search.improve(start[::-1]), search.saved()))
        promising = sorted(promising, key=lambda found: found[0])[:_MOST_FOLLOWED]
        lowest_yet = promising[0][0]
        level = 1 - lowest_yet / null_cost if null_cost else math.nan
        run.report("starts", cost=lowest_yet, level=level, done=done, total=len(starts))
    for cost, parts in promising:
        search.load(parts)
        if not run.stopped:
            cost = search.improve(everything)
        if cost < lowest - 1e-9 * abs(lowest):
            lowest, best = cost, search.saved()
    search.load(best)
    return search.parts
