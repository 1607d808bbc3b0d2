"""Input and classes partitioned together (Boullé, 2012, formulas 8 and 9).

Two axes take turns. With the classes grouped, the input is an ordinary one-axis problem over super-classes;
with the input cut, the classes are values to be grouped, rows counted by input part and groups priced as
clusters of values. Several random starts are kept, because the optima they reach differ and their average
predicts better than the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from damier.criteria import class_grouping_cost, log_bell_table, log_binomial
from damier.search.axis.costs import CLUSTERS
from damier.search.axis.ordered import partition_ordered
from damier.search.axis.unordered import partition_unordered, settled
from damier.search.axis.values import elements_of_table
from damier.search.kernels import FloatArray, IntArray, factorial_table

Search = Literal["auto", "greedy", "exact"]

# Five classes have 52 partitions: few enough to try them all.
_MOST_CLASSES_TRIED = 5


def regroup_classes(
    table: IntArray, labels: IntArray, order: IntArray, log_bell: FloatArray, lf: FloatArray
) -> IntArray:
    """Return better groups of the classes for a fixed partition of the input, from the given ones.

    Parameters
    ----------
    table : int64 array of shape (W, I)
        Rows of each class in each part of the input.
    labels : int64 array of shape (W,)
        Group of each class.
    order : int64 array of shape (W,)
        The order in which classes are moved.
    log_bell : float64 array of shape (W,)
        log B(W, J) for J = 1 .. W groups.
    lf : array
        What `log_factorial` reads.
    """
    # Parts of N_i rows over J groups cost sum_i log C(N_i + J - 1, J - 1).
    penalty = log_bell.copy()
    penalty[1:] += np.cumsum(np.log1p(table.sum(axis=0) / np.arange(1, len(table))[:, None]).sum(axis=1))
    found = settled(elements_of_table(table[order]), labels[order], penalty, CLUSTERS, lf)
    regrouped = np.empty_like(labels)
    regrouped[order] = found.groups
    return regrouped


@dataclass(frozen=True, slots=True)
class JointSolution:
    """Parts of the elements, groups of the classes, and what they cost together."""

    parts: IntArray
    class_groups: IntArray
    counts: IntArray
    cost: float
    null_cost: float


def partition_with_classes(
    elements: IntArray,
    n_elements: int,
    codes: IntArray,
    n_classes: int,
    *,
    ordered: bool,
    weights: IntArray | None = None,
    n_starts: int = 10,
    random_state: int = 0,
) -> list[JointSolution]:
    """Partition the elements of one variable and group the classes at the same time.

    Parameters
    ----------
    elements
        Index of each row's value among the distinct values, in their order when ``ordered``.
    n_elements, n_classes
        Numbers of distinct values and of classes; each occurs at least once.
    codes
        Class of each row.
    ordered
        Whether parts must be runs of neighbouring elements (numbers) or any groups (categories).
    weights
        Whole frequencies of the rows.
    n_starts
        Number of random starts.
    random_state
        Seed of the starts.

    Returns
    -------
    list of JointSolution
        The distinct optima reached, cheapest first; the null model alone when none of them is cheaper.
    """
    problem = _Problem(elements, n_elements, codes, n_classes, ordered, weights)
    solutions: list[JointSolution] = []
    starts = [problem.descend(np.random.default_rng([random_state, start])) for start in range(n_starts)]
    if n_classes <= _MOST_CLASSES_TRIED:
        starts.append(problem.best_of_all_class_groups())
    for solution in starts:
        if solution.cost < problem.null.cost and not any(_same(solution, other) for other in solutions):
            solutions.append(solution)
    solutions.sort(key=lambda s: s.cost)
    return solutions or [problem.null]


def _same(a: JointSolution, b: JointSolution) -> bool:
    return np.array_equal(a.parts, b.parts) and np.array_equal(a.class_groups, b.class_groups)


class _Problem:
    """The counts of one variable, and the two half-steps that take turns on them."""

    # Random starts search blocks of neighbouring values; the optimum is then refined on the values.
    max_blocks = 512
    # Beyond any useful number of groups of values; the table of log B(V, I) stops there.
    max_groups = 1000

    def __init__(
        self,
        elements: IntArray,
        n_elements: int,
        codes: IntArray,
        n_classes: int,
        ordered: bool,
        weights: IntArray | None,
    ) -> None:
        self.elements = np.asarray(elements, np.int64)
        self.codes = np.asarray(codes, np.int64)
        self.weights = None if weights is None else np.asarray(weights, np.float64)
        self.n_elements, self.n_classes, self.ordered = n_elements, n_classes, ordered
        self.n_rows = self.elements.size if weights is None else int(np.sum(weights))
        self.class_counts = self._count(self.codes, n_classes)
        self.log_bell_classes = log_bell_table(n_classes, n_classes)[1:]
        self.lf = factorial_table(self.n_rows + n_classes)
        parts = np.arange(1, n_elements + 1)
        if ordered:
            self.penalty = np.log(self.n_rows) + log_binomial(self.n_rows + parts - 1, parts - 1)
        else:
            most = min(n_elements, self.max_groups)
            self.penalty = np.log(n_elements) + log_bell_table(n_elements, most)[1:]
        self.null = self._solution(np.zeros(n_elements, np.int64), np.zeros(n_classes, np.int64))

    def _count(self, keys: IntArray, size: int) -> IntArray:
        counts = np.bincount(keys, weights=self.weights, minlength=size)
        return counts.astype(np.int64)

    def _cross(self, first: IntArray, n_first: int, second: IntArray, n_second: int) -> IntArray:
        return self._count(first * n_second + second, n_first * n_second).reshape(n_first, n_second)

    def _solution(self, parts: IntArray, class_groups: IntArray) -> JointSolution:
        n_parts, n_groups = int(parts.max()) + 1, int(class_groups.max()) + 1
        counts = self._cross(parts[self.elements], n_parts, class_groups[self.codes], n_groups)
        n_values = None if self.ordered else self.n_elements
        cost = class_grouping_cost(counts, class_groups, self.class_counts, n_values)
        return JointSolution(parts, class_groups, counts, cost, cost if counts.size == 1 else self.null.cost)

    def _regroup_classes(
        self, row_parts: IntArray, labels: IntArray, rng: np.random.Generator | None
    ) -> IntArray:
        n_parts = int(row_parts.max()) + 1
        table = self._cross(self.codes, self.n_classes, row_parts, n_parts)
        order = np.arange(self.n_classes) if rng is None else rng.permutation(self.n_classes)
        return regroup_classes(table, labels, order, self.log_bell_classes, self.lf)

    def _repartition(
        self, row_elements: IntArray, n_elements: int, labels: IntArray, search: Search = "greedy"
    ) -> IntArray:
        counts = self._cross(row_elements, n_elements, labels[self.codes], int(labels.max()) + 1)
        if counts.shape[1] == 1:
            return np.zeros(n_elements, np.int64)
        if not self.ordered:
            groups, _, _ = partition_unordered(counts, self.penalty, search=search)
            return groups
        starts, _, _ = partition_ordered(counts, self.penalty[:n_elements], search=search)
        marks = np.zeros(n_elements, np.int64)
        marks[starts[1:]] = 1
        return np.cumsum(marks)

    def descend(self, rng: np.random.Generator) -> JointSolution:
        """One random start followed down to a joint optimum of the two axes."""
        block_of = self._blocks()
        n_blocks = int(block_of.max()) + 1
        # Well above the final number of groups; with few classes, anything that makes the starts differ.
        most = min(self.n_classes, int(rng.integers(50, 101)))
        n_groups = most if most < self.n_classes else int(rng.integers(2, most + 1))
        labels = rng.permutation(np.arange(self.n_classes) % n_groups)
        parts = self._random_parts(n_blocks, rng)
        best = self._alternate(block_of, parts, labels, rng)
        if n_blocks < self.n_elements:
            best = self._alternate(np.arange(self.n_elements), best.parts, best.class_groups, rng)
        return best

    def best_of_all_class_groups(self) -> JointSolution:
        """Try every partition of the classes, the input repartitioned for each, then follow the best down."""
        block_of = self._blocks()
        row_blocks, n_blocks = block_of[self.elements], int(block_of.max()) + 1
        best = self.null
        for labels in _partitions(self.n_classes):
            parts = self._repartition(row_blocks, n_blocks, labels, search="auto")
            solution = self._solution(parts[block_of], labels)
            if solution.cost < best.cost:
                best = solution
        return self._alternate(np.arange(self.n_elements), best.parts, best.class_groups, None)

    def _blocks(self) -> IntArray:
        if not self.ordered or self.n_elements <= self.max_blocks:
            return np.arange(self.n_elements)
        sizes = self._count(self.elements, self.n_elements)
        before = np.cumsum(sizes) - sizes
        block_of: IntArray = np.unique(before * self.max_blocks // self.n_rows, return_inverse=True)[1]
        return block_of

    def _random_parts(self, n_blocks: int, rng: np.random.Generator) -> IntArray:
        n_parts = min(n_blocks, int(rng.integers(min(n_blocks, 10) // 2 + 1, 31)))
        if not self.ordered:
            return rng.permutation(np.arange(n_blocks) % n_parts)
        marks = np.zeros(n_blocks, np.int64)
        marks[rng.choice(np.arange(1, n_blocks), n_parts - 1, replace=False)] = 1
        return np.cumsum(marks)

    def _alternate(
        self, block_of: IntArray, block_parts: IntArray, labels: IntArray, rng: np.random.Generator | None
    ) -> JointSolution:
        """Regroup the classes, repartition the input, and so on while the cost falls."""
        row_blocks = block_of[self.elements]
        best: JointSolution | None = None
        if rng is None:
            best = self._solution(block_parts[block_of], _numbered(labels))
        while True:
            labels = self._regroup_classes(block_parts[row_blocks], labels, rng)
            block_parts = self._repartition(row_blocks, int(block_of.max()) + 1, labels)
            solution = self._solution(block_parts[block_of], _numbered(labels))
            if best is not None and solution.cost >= best.cost - 1e-9:
                return best
            best = solution


def _partitions(n_items: int) -> Iterator[IntArray]:
    """Every partition of a few items, numbered in order of first appearance."""
    labels = np.zeros(n_items, np.int64)
    while True:
        yield labels.copy()
        for i in range(n_items - 1, 0, -1):
            if labels[i] <= labels[:i].max():
                labels[i] += 1
                labels[i + 1 :] = 0
                break
        else:
            return


def _numbered(labels: IntArray) -> IntArray:
    """Group numbers in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]
