"""Grids over any variables without a target: intervals of numbers, groups of values, priced together.

Paper 000, section 4, in the general case of the mathematics page. The search freezes all axes but one and
merges that axis' elements from fine to coarse, the best kept; then bounds and values are moved. It starts
from every pair of variables and lets the others join while the cost falls.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaln

from damier.criteria import log_bell_table, log_factorials, unsupervised_grid_cost
from damier.search.cocluster.kernels import cluster_cost
from damier.search.cocluster.state import CoclusteringSearch, SparseCounts
from damier.search.kernels import kernel, log_factorial

Array = npt.NDArray[Any]

_MOST_LINES = 256  # elements of an axis that are merged one by one
_MOST_CELLS = 20_000_000
_MOST_PAIRS = 28
_START_PARTS = 16


@dataclass(frozen=True, slots=True)
class GridVariable:
    """Element of each row: rank of its value when ``ordered``, code of its category otherwise."""

    elements: Array
    n_elements: int
    ordered: bool


@kernel
def _line_cost(lf: Array, ordered: bool, instances: int, values: int) -> float:
    return float(log_factorial(lf, instances) if ordered else cluster_cost(lf, instances, values))


@kernel
def _pair_change(T: Array, N: Array, m: Array, a: int, b: int, ordered: bool, lf: Array) -> float:
    change = _line_cost(lf, ordered, N[a] + N[b], m[a] + m[b])
    change -= _line_cost(lf, ordered, N[a], m[a]) + _line_cost(lf, ordered, N[b], m[b])
    for s in range(T.shape[1]):
        x = T[a, s]
        y = T[b, s]
        if x > 0 and y > 0:
            change += log_factorial(lf, x) + log_factorial(lf, y) - log_factorial(lf, x + y)
    return float(change)


@kernel
def merge_lines(T: Array, N: Array, m: Array, ordered: bool, size: Array, lf: Array, line_of: Array) -> float:
    """Merge the lines of ``T`` (neighbours when ``ordered``) down to one; keep the best, return its change.

    ``size[J]`` prices J parts. ``line_of`` receives the part of each line, parts numbered in the order of
    lines. ``T``, ``N`` and ``m`` are used up.
    """
    P = T.shape[0]
    D = np.full((P, P), np.inf)
    live = np.ones(P, np.bool_)
    into = np.arange(P)
    for a in range(P - 1):
        last = a + 2 if ordered else P
        for b in range(a + 1, last):
            D[a, b] = _pair_change(T, N, m, a, b, ordered, lf)
    best_into = into.copy()
    total = 0.0
    best = 0.0
    for left in range(P, 1, -1):
        a = -1
        b = -1
        for i in range(P):
            if live[i]:
                for j in range(i + 1, P):
                    if live[j] and D[i, j] < np.inf and (a < 0 or D[i, j] < D[a, b]):
                        a = i
                        b = j
        total += D[a, b] + size[left - 1] - size[left]
        T[a] += T[b]
        N[a] += N[b]
        m[a] += m[b]
        live[b] = False
        for i in range(P):
            if into[i] == b:
                into[i] = a
        for c in range(P):
            if not live[c] or c == a:
                continue
            i, j = min(a, c), max(a, c)
            if ordered:
                between = False
                for h in range(i + 1, j):
                    if live[h]:
                        between = True
                if between:
                    continue
            D[i, j] = _pair_change(T, N, m, i, j, ordered, lf)
        if total <= best:
            best = total
            best_into[:] = into
    number = 0
    for i in range(P):
        if best_into[i] == i:
            line_of[i] = number
            number += 1
    for i in range(P):
        line_of[i] = line_of[best_into[i]]
    return best


@kernel
def best_bound(elements: Array, slots: Array, n_slots: int, cut: int, lf: Array) -> tuple[int, float]:
    """Place the bound between two intervals where it costs least; (rows left of it, cost change).

    The rows of both come sorted by element; ``cut`` of them are left of the bound now.
    """
    n = elements.shape[0]
    left = np.zeros(n_slots, np.int64)
    right = np.zeros(n_slots, np.int64)
    for i in range(n):
        right[slots[i]] += 1
    here = 0.0
    best = cut
    lowest = np.inf
    cost = 0.0
    for i in range(n - 1):
        s = slots[i]
        cost += np.log(right[s]) - np.log(left[s] + 1)
        right[s] -= 1
        left[s] += 1
        if elements[i] == elements[i + 1]:
            continue
        whole = cost + log_factorial(lf, i + 1) + log_factorial(lf, n - i - 1)
        if i + 1 == cut:
            here = whole
        if whole < lowest - 1e-9:
            lowest = whole
            best = i + 1
    return best, lowest - here


class _GridSearch:
    def __init__(
        self, variables: list[GridVariable], rng: np.random.Generator, deadline: float | None
    ) -> None:
        self.variables = variables
        self.n = len(variables[0].elements)
        self.rng = rng
        self.deadline = deadline
        self.lf: Array = log_factorials(2 * self.n + 2)
        self.counts = [np.bincount(v.elements, minlength=v.n_elements) for v in variables]
        self.sorted_rows = [np.argsort(v.elements, kind="stable") if v.ordered else None for v in variables]
        self.parts: list[Array] = [np.zeros(v.n_elements, np.int64) for v in variables]

    def copy_parts(self) -> list[Array]:
        return [p.copy() for p in self.parts]

    def n_parts(self, k: int) -> int:
        return int(self.parts[k].max()) + 1

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def row_parts(self) -> Array:
        columns = [p[v.elements] for p, v in zip(self.parts, self.variables, strict=True)]
        return np.column_stack(columns)

    def cost(self) -> float:
        axes: list[Any] = [
            self.n_parts(k) if v.ordered else (self.parts[k], self.counts[k])
            for k, v in enumerate(self.variables)
        ]
        return unsupervised_grid_cost(self.row_parts(), np.ones(self.n, np.int64), axes)

    def slots(self, k: int) -> tuple[Array, int, int]:
        """Give a number to the combinations of the other axes' parts by row; how many occur, and exist."""
        keys = np.zeros(self.n, np.int64)
        possible = 1
        for i, variable in enumerate(self.variables):
            if i != k and self.n_parts(i) > 1:
                # renumbered at every axis, so that the keys stay below the number of rows times the parts
                keys = keys * self.n_parts(i) + self.parts[i][variable.elements]
                keys = np.unique(keys, return_inverse=True)[1]
                possible *= self.n_parts(i)
        return keys, int(keys.max()) + 1, possible

    def _size(self, k: int, most: int, possible: int) -> Array:
        n_cells = np.maximum(np.arange(most + 1) * float(possible), 1.0)
        size = gammaln(self.n + n_cells) - gammaln(n_cells)
        if not self.variables[k].ordered:
            size[1:] += log_bell_table(self.variables[k].n_elements, most)[1:]
        return np.asarray(size)

    def _fine_lines(self, k: int, n_slots: int) -> Array:
        """Line of each element: its own if there are few, else quantiles or frequent values and the rest."""
        variable = self.variables[k]
        most = max(8, min(_MOST_LINES, _MOST_CELLS // n_slots))
        if variable.n_elements <= most:
            return np.arange(variable.n_elements)
        if variable.ordered:
            upto = np.cumsum(self.counts[k]) - self.counts[k] // 2
            return np.asarray(np.unique(upto * most // self.n, return_inverse=True)[1])
        rank = np.empty(variable.n_elements, np.int64)
        rank[np.argsort(-self.counts[k], kind="stable")] = np.arange(variable.n_elements)
        return np.minimum(rank, most - 1)

    def rebuild(self, k: int) -> None:
        """Partition an axis anew, the others frozen."""
        slots, n_slots, possible = self.slots(k)
        lines = self._fine_lines(k, n_slots)
        n_lines = int(lines.max()) + 1
        flat = np.bincount(lines[self.variables[k].elements] * n_slots + slots, minlength=n_lines * n_slots)
        T = flat.reshape(n_lines, n_slots)
        N, m = T.sum(axis=1), np.bincount(lines)
        line_of = np.zeros(n_lines, np.int64)
        merge_lines(T, N, m, self.variables[k].ordered, self._size(k, n_lines, possible), self.lf, line_of)
        self.parts[k] = line_of[lines]

    def refine(self, k: int) -> None:
        """Move the bounds or the values of an axis."""
        if self.n_parts(k) == 1:
            return
        slots, n_slots, possible = self.slots(k)
        variable, parts = self.variables[k], self.parts[k]
        if not variable.ordered:
            self._move_values(k, slots, n_slots, possible)
            return
        rows = self.sorted_rows[k]
        elements, slots = variable.elements[rows], slots[rows]
        for _ in range(5):
            moved = False
            for p in range(self.n_parts(k) - 1):
                ends = np.searchsorted(parts[elements], [p, p + 1, p + 2])
                first, cut, last = (int(e) for e in ends)
                found, change = best_bound(
                    elements[first:last], slots[first:last], n_slots, cut - first, self.lf
                )
                if change < -1e-9:
                    moved = True
                    parts[elements[first : first + found]] = p
                    parts[elements[first + found : last]] = p + 1
            if not moved:
                break

    def _move_values(self, k: int, slots: Array, n_slots: int, possible: int) -> None:
        """Use the moves of the coclustering: values against slots, the slots frozen."""
        variable = self.variables[k]
        table = sparse.csr_array(
            (np.ones(self.n, np.int32), (variable.elements, slots)), shape=(variable.n_elements, n_slots)
        )
        table.sum_duplicates()
        other = table.tocsc()
        search = CoclusteringSearch(
            SparseCounts(table.indptr, table.indices, table.data, other.indptr, other.indices, other.data),
            self.rng,
            cells_per_row_cluster=possible,
        )
        search.rows.labels = self.parts[k].astype(np.int32)
        search.columns.labels = np.arange(n_slots, dtype=np.int32)
        search.move(0, 20)
        self.parts[k] = search.rows.labels.astype(np.int64)

    def improve(self, axes: Iterable[int]) -> float:
        """Rebuild and refine axes in turn while the cost falls; return the cost."""
        lowest = self.cost()
        axes = list(axes)
        improved = True
        while improved and not self.late():
            improved = False
            for k in axes:
                kept = self.parts[k].copy()
                for step in (self.rebuild, self.refine):
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
        counts = self.counts[k]
        order = np.arange(len(counts)) if self.variables[k].ordered else self.rng.permutation(len(counts))
        upto = np.empty(len(counts), np.int64)
        upto[order] = np.cumsum(counts[order]) - counts[order] // 2 - 1
        self.parts[k] = np.unique(np.maximum(upto, 0) * n_parts // self.n, return_inverse=True)[1]

    def clear(self) -> None:
        for part in self.parts:
            part[:] = 0


def search_unsupervised_grid(
    variables: list[GridVariable], *, seed: int = 0, time_limit: float | None = None
) -> tuple[list[Array], str]:
    """Find the part of each element of each variable; also how the search ended."""
    deadline = None if time_limit is None else time.monotonic() + time_limit
    search = _GridSearch(variables, np.random.default_rng(seed), deadline)
    everything = range(len(variables))
    best, lowest = search.copy_parts(), search.cost()
    ended = "converged"
    try:
        starts: list[tuple[int, ...]] = list(itertools.combinations(everything, 2))
        if len(starts) > _MOST_PAIRS:
            chosen = search.rng.choice(len(starts), _MOST_PAIRS, replace=False)
            starts = [starts[i] for i in sorted(chosen)]
        if len(variables) > 2:
            starts.append(tuple(everything))
        promising = []
        for start in starts:
            search.clear()
            n_parts = _START_PARTS if len(start) == 2 else max(2, round(search.n ** (1 / (len(start) + 2))))
            for k in start[:-1]:
                search.spread(k, n_parts)
            promising.append((search.improve(start[::-1]), search.copy_parts()))
            if search.late():
                break
        promising.sort(key=lambda found: found[0])
        for _, parts in promising[:3]:
            search.parts = [p.copy() for p in parts]
            cost = search.improve(everything)
            if cost < lowest - 1e-9 * abs(lowest):
                lowest, best = cost, search.copy_parts()
    except KeyboardInterrupt:
        ended = "interrupted"
    if search.late():
        ended = "time limit"
    return best, ended
