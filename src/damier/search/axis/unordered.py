"""The axis engine without order: values of a categorical variable put into groups.

Two classes: some best grouping has its groups consecutive in class share, so the ordered search finds it, and
proves it wherever it proves its own answer. More classes: all groupings are tried when the values have few
distinct class profiles; else greedy merges, moves of single profiles, and restarts. The mathematics are in
"Grouping values" of the documentation.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from damier.criteria import grouping_cost, log_bell_table, part_costs
from damier.criteria.special import digamma, entr
from damier.search.axis.costs import Price, supervised_price
from damier.search.axis.groups import (
    best_of_all_groupings,
    cut_merges,
    merge_groups,
    nearest_groups,
    settle_groups,
)
from damier.search.axis.ordered import partition_ordered
from damier.search.axis.values import Elements, elements_of_counts, elements_of_rows
from damier.search.kernels import factorial_table

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Search = Literal["auto", "greedy", "exact"]

# All groupings are tried up to this many elements (3^12 steps a number of groups is milliseconds).
_MOST_ELEMENTS_AUTO = 12
_MOST_ELEMENTS_EXACT = 16
# Greedy merges start from at most sqrt(N) groups, and from no more than these many table look-ups allow.
_MERGE_LOOKUPS = 2e7
_MOST_START_GROUPS = 1000
# Restarts end when about this many look-ups, and from one to so many restarts, gained nothing.
_RESTART_LOOKUPS = 1e8
_MOST_PATIENCE = 15
_MOST_RESTARTS = 100
# Elements are gathered anew between merges down to this many groups, or to two when they are many: moves, one
# element at a time, repair a few of them cheaply, not thousands.
_FEWEST_GATHERED = 12
_MANY_ELEMENTS = 200
_LEAST_GAIN = 1e-9


@dataclass(frozen=True, slots=True)
class UnorderedSolution:
    """Groups of values.

    Attributes
    ----------
    groups : int64 array of shape (n_values,)
        Group of each value code, -1 for a code without any row. Groups are numbered from the most to the
        least frequent, equals by their smallest code.
    counts : int64 array of shape (n_groups, n_classes)
        Class counts of the groups.
    cost, null_cost : float
        Cost of these groups and of a single one.
    optimal : bool
        True when proven that no other groups cost less.
    """

    groups: IntArray
    counts: IntArray
    cost: float
    null_cost: float
    optimal: bool


def group_values(
    codes: npt.NDArray[np.int32],
    n_values: int,
    classes: npt.NDArray[np.int32],
    n_classes: int,
    *,
    weights: IntArray | None = None,
    search: Search = "auto",
    random_state: int = 0,
) -> UnorderedSolution:
    """Group the values of a categorical column so that they explain the classes at the least cost.

    Parameters
    ----------
    codes : int32 array of shape (n_rows,)
        Value of each row, below `n_values`. Codes may go unused: V counts those with rows.
    n_values : int
        Number of codes.
    classes : int32 array of shape (n_rows,)
        Class of each row, below `n_classes`.
    n_classes : int
        Number of classes J.
    weights : int64 array of shape (n_rows,), optional
        Frequency of each row, one by default.
    search : {"auto", "greedy", "exact"}
        "greedy" is one descent. "auto" is exact where that is cheap (two classes: as the ordered search
        decides; more: up to 12 distinct class profiles), else several descents. "exact" proves its answer
        with two classes, and with more up to 16 distinct profiles; beyond, it does as "auto".
    random_state : int
        Seed of the restarts.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.repeat(np.arange(4, dtype=np.int32), 30)
    >>> classes = np.repeat(np.array([0, 1, 0, 1], dtype=np.int32), 30)
    >>> solution = group_values(codes, 4, classes, 2)
    >>> solution.groups.tolist(), solution.counts.tolist(), solution.optimal
    ([0, 1, 0, 1], [[60, 0], [0, 60]], True)
    """
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    classes = np.ascontiguousarray(classes, dtype=np.int32)
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.int64)
    if codes.size == 0 or (weights is not None and weights.max() == 0):
        raise ValueError("nothing to group: no rows")
    elements = elements_of_rows(codes, n_values, classes, n_classes, weights)
    n_seen = elements.n_values
    penalty = np.log(n_seen) + log_bell_table(n_seen, len(elements))[1:]
    groups, counts, optimal = search_unordered(elements, penalty, search, random_state)
    null_cost = grouping_cost(counts.sum(axis=0, keepdims=True), n_seen)
    return UnorderedSolution(groups, counts, grouping_cost(counts, n_seen), null_cost, optimal)


def partition_unordered(
    counts: IntArray, penalty: FloatArray, *, search: Search = "auto", random_state: int = 0
) -> tuple[IntArray, float, bool]:
    """Put elements without order into the groups that cost least.

    Parameters
    ----------
    counts : int64 array of shape (V, J)
        Class counts of each element.
    penalty : float64 array of shape (M,)
        ``penalty[I - 1]`` is the cost of having I groups, growing and concave in I; at most M groups.
    search : {"auto", "greedy", "exact"}
        As in :func:`group_values`.
    random_state : int
        Seed of the restarts.

    Returns
    -------
    labels : int64 array of shape (V,)
        Group of each element, -1 for one without rows; numbered as in :class:`UnorderedSolution`.
    cost : float
        ``penalty[I - 1]`` plus the sum of the costs of the groups,
        log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)].
    optimal : bool
        True when proven that no other groups cost less.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[9, 1, 0], [0, 7, 0], [8, 0, 0], [1, 9, 1]])
    >>> labels, cost, optimal = partition_unordered(counts, np.array([0.0, 2.0, 3.0, 3.5]))
    >>> labels.tolist(), round(cost, 3), optimal
    ([0, 1, 0, 1], 21.108, True)
    """
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    penalty = np.ascontiguousarray(penalty, dtype=np.float64)
    if penalty.size == 0 or counts.size == 0 or counts.max() == 0:
        raise ValueError("nothing to group: no rows, or no number of groups allowed")
    elements = elements_of_counts(counts)
    groups, sums, optimal = search_unordered(elements, penalty, search, random_state)
    cost = float(penalty[sums.shape[0] - 1] + part_costs(sums).sum())
    return groups, cost, optimal


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of elements, their cost, and whether it is proven the least."""

    groups: IntArray
    cost: float
    optimal: bool = False


def _numbered_by_size(elements: Elements, groups: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of each value and the class counts of the groups, both in their final numbers."""
    counts = elements.table(groups, int(groups.max()) + 1)
    of_value = np.where(elements.of_value >= 0, groups[elements.of_value], -1)
    first = np.empty(counts.shape[0], dtype=np.int64)
    backwards = np.flatnonzero(of_value >= 0)[::-1]
    first[of_value[backwards]] = backwards  # of repeated indices the last one stays: the smallest code
    order = np.lexsort((first, -counts.sum(axis=1)))
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return np.where(of_value >= 0, rank[of_value], -1), counts[order][:, elements.class_rank]


def search_unordered(
    elements: Elements, penalty: FloatArray, search: Search, random_state: int
) -> tuple[IntArray, IntArray, bool]:
    """Return the group of each value, the class counts of the groups, and whether no others cost less."""
    found = _search(elements, penalty[: len(elements)], search, random_state)
    groups, counts = _numbered_by_size(elements, found.groups)
    return groups, counts, found.optimal


def _search(elements: Elements, penalty: FloatArray, search: Search, random_state: int) -> Grouping:
    """Choose and run the searches."""
    if search not in ("auto", "greedy", "exact"):
        raise ValueError(f"search must be 'auto', 'greedy' or 'exact', got {search!r}")
    if len(elements) == 1 or penalty.size == 1:
        return Grouping(np.zeros(len(elements), dtype=np.int64), 0.0, True)
    if elements.n_classes == 2:
        return _search_two_classes(elements, penalty, search)
    most = {"greedy": 0, "auto": _MOST_ELEMENTS_AUTO, "exact": _MOST_ELEMENTS_EXACT}[search]
    if len(elements) <= most:
        return _search_all(elements, penalty)
    return _Descents(elements, penalty).run(random_state, restarts=search != "greedy")


def _search_two_classes(elements: Elements, penalty: FloatArray, search: Search) -> Grouping:
    """Order the elements by class share and cut them where the ordered search says."""
    counts = elements.table(np.arange(len(elements)), len(elements))
    order = np.argsort(counts[:, 0] / counts.sum(axis=1), kind="stable")
    starts, cost, optimal = partition_ordered(counts[order], penalty, search=search)
    groups = np.empty(len(elements), dtype=np.int64)
    groups[order] = np.searchsorted(starts, np.arange(len(elements)), side="right") - 1
    return Grouping(groups, cost, optimal)


def _search_all(elements: Elements, penalty: FloatArray) -> Grouping:
    """Try all groupings of few elements."""
    n_elements = len(elements)
    counts = elements.table(np.arange(n_elements), n_elements)
    shares = counts / counts.sum(axis=1, keepdims=True)
    floor = float(entr(shares).sum(axis=1) @ counts.sum(axis=1))
    held = (np.arange(1 << n_elements)[:, None] >> np.arange(n_elements)) & 1
    costs = part_costs(held @ counts)
    groups, cost = best_of_all_groupings(costs, penalty, floor, n_elements)
    return Grouping(groups, cost, True)


class Merges:
    """Groups of elements and the greedy merges that lead from them to a single group.

    ``price`` is that of a group (see `damier.search.axis.costs`), ``penalty[I - 1]`` that of I groups.
    """

    def __init__(
        self, elements: Elements, groups: IntArray, penalty: FloatArray, price: Price, logs: FloatArray
    ) -> None:
        self.groups, n_groups = _compact(groups)
        self.n_groups = n_groups
        table = elements.table(self.groups, n_groups)
        self.pairs, costs = merge_groups(table, np.bincount(self.groups), price, logs)
        self.costs = costs[::-1] + penalty[:n_groups]  # by number of groups, from one

    def cut(self, n_groups: int) -> IntArray:
        """Return the groups when `n_groups` are left."""
        cut: IntArray = cut_merges(self.groups, self.pairs, n_groups)
        return cut

    def best(self) -> Grouping:
        """Return the cheapest grouping met, between equals the one with fewer groups."""
        least = int(np.argmax(self.costs <= self.costs.min() + _LEAST_GAIN))
        return Grouping(self.cut(least + 1), float(self.costs[least]))


def settled(
    elements: Elements, groups: IntArray, penalty: FloatArray, price: Price, logs: FloatArray
) -> Grouping:
    """Alternate moves of single elements and merges, from the given groups, until neither gains."""
    groups, cost = settle_groups(
        elements.ptr, elements.cls, elements.cnt, elements.n_classes, groups, penalty, price, logs
    )
    return Grouping(groups, cost)


class _Descents:
    """Greedy merges, moves and restarts over many elements of more than two classes.

    Gathering the elements around the groups needs costs that are concave in the class counts, as those of
    groups against a target are.
    """

    def __init__(self, elements: Elements, penalty: FloatArray) -> None:
        self.elements = elements
        self.price = supervised_price(elements.n_classes)
        self.penalty = penalty
        self.n_rows = int(elements.cnt.sum())
        self.logs = factorial_table(self.n_rows + elements.n_classes)

    def run(self, random_state: int, *, restarts: bool) -> Grouping:
        """Return the best grouping of one descent, or of as many as the size of the problem allows."""
        best = self._descend(self._start())
        if not restarts:
            return best
        rng = np.random.default_rng(random_state)
        in_vain = 0
        for turn in range(_MOST_RESTARTS):
            if in_vain >= self._patience(best):
                break
            found = self._descend(self._perturbed(best.groups, turn, rng))
            in_vain += 1
            if found.cost < best.cost - _LEAST_GAIN:
                best = found
                in_vain = 0
        return best

    def _patience(self, best: Grouping) -> int:
        """Return how many restarts in a row may gain nothing: more when they are cheap."""
        n_groups = 2 * (int(best.groups.max()) + 1)
        lookups = 20 * self.elements.cnt.size * n_groups + n_groups**2 * self.elements.n_classes
        return int(min(max(_RESTART_LOOKUPS / lookups, 1.0), _MOST_PATIENCE))

    def _start(self) -> IntArray:
        """Return the elements alone or, when they are many, gathered around the most frequent ones."""
        n_elements = len(self.elements)
        most = min(
            self.penalty.size,
            int(max(np.sqrt(self.n_rows), 16.0)),
            int(np.sqrt(_MERGE_LOOKUPS / self.elements.n_classes)),
            _MOST_START_GROUPS,
        )
        groups = np.arange(n_elements)
        if n_elements <= most:
            return groups
        groups[most:] = -1
        return self._gathered(groups, most, 3)

    def _gathered(self, groups: IntArray, n_groups: int, rounds: int) -> IntArray:
        """Give all elements to the nearest group, some rounds; those with group -1 are not in any yet."""
        elements = self.elements
        for _ in range(rounds):
            table = elements.table(groups, n_groups)
            slopes = digamma(table.sum(axis=1) + elements.n_classes) - digamma(table.T + 1.0)
            moved = nearest_groups(
                elements.ptr,
                elements.cls,
                elements.cnt,
                np.ascontiguousarray(slopes),
                groups,
            )
            groups, n_groups = _compact(groups)
            if not moved:
                break
        return groups

    def _descend(self, groups: IntArray) -> Grouping:
        """Merge step by step with the elements gathered anew in between, then alternate moves and merges."""
        merges = Merges(self.elements, groups, self.penalty, self.price, self.logs)
        best = merges.best()
        fewest = 2 if len(self.elements) > _MANY_ELEMENTS else _FEWEST_GATHERED
        while merges.n_groups > fewest:
            # the fewer the groups, the more each merge changes them
            n_groups = merges.n_groups // 3 if merges.n_groups > 24 else 2 * merges.n_groups // 3
            groups = self._gathered(merges.cut(n_groups), n_groups, 4)
            merges = Merges(self.elements, groups, self.penalty, self.price, self.logs)
            if merges.costs.min() < best.cost - _LEAST_GAIN:
                best = merges.best()
        return settled(self.elements, best.groups, self.penalty, self.price, self.logs)

    def _perturbed(self, groups: IntArray, turn: int, rng: np.random.Generator) -> IntArray:
        """Return a new start: groups split at random, elements shuffled, or all forgotten, in turn."""
        n_elements, n_groups = groups.size, int(groups.max()) + 1
        kind = turn % 3
        if kind == 0:
            groups = 2 * groups + rng.integers(0, 2, n_elements)
        elif kind == 1:
            groups = rng.integers(0, min(n_elements, 2 * n_groups + 6), n_elements)
        else:
            shuffled = rng.random(n_elements) < 0.3
            groups = np.where(shuffled, rng.integers(0, n_groups + 2, n_elements), groups)
        groups, n_groups = _compact(groups)
        while n_groups > self.penalty.size:
            groups, n_groups = _compact(groups // 2)
        return self._gathered(groups, n_groups, 5)


def _compact(groups: IntArray) -> tuple[IntArray, int]:
    """Return the groups numbered 0, 1, 2, ... without gaps, and how many there are."""
    used, groups = np.unique(groups, return_inverse=True)
    return groups.astype(np.int64), used.size
