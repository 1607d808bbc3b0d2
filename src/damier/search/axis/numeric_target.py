"""Input and numeric target partitioned together: the parts of one variable, the intervals of the target.

Two axes take turns. With the target cut into J intervals, the input is an ordinary one-axis problem against J
classes. With the input cut into I parts, the target's values are elements in order that carry I counts; an
interval of N rows costs log N! less the log factorials of its counts, and dynamic programming is exact for
that. Turns are taken from several numbers of target intervals, on blocks of values where there are many; the
cheapest partitions found are then improved value by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from damier.criteria import log_bell_table, part_costs, regression_cost
from damier.criteria.special import gammaln
from damier.search.axis.costs import RANKS, interval_penalties
from damier.search.axis.exact import search_exact
from damier.search.axis.greedy import improve
from damier.search.axis.ordered import Search
from damier.search.axis.rows import Axis, axis_in_order, axis_of_counts
from damier.search.axis.unordered import search_unordered
from damier.search.axis.values import elements_of_counts, elements_of_rows
from damier.search.kernels import (
    CodeArray,
    FloatArray,
    IntArray,
    allocating_inner,
    factorial_table,
    kernel,
    log_factorial,
)

# Blocks of values that the turns are taken on: of the target, and of an input in order.
_TARGET_BLOCKS = 256
_INPUT_BLOCKS = 256
# Numbers of equal-frequency intervals of the target that the turns begin with.
_STARTS = (2, 4, 8, 16, 32, 64)
# How many of the partitions that the starts end in are improved value by value. Of many rows the best
# alone, in two turns: large blocks leave little to gain.
_MOST_IMPROVED = 4
_MANY_ROWS = 1 << 17
# Most turns of two axes: they gain each time, so that this is never met but for rounding.
_MOST_TURNS = 50
_LEAST_GAIN = 1e-7
# Cost differences below this are rounding.
_RESOLUTION = 1e-9
# Beyond these, improvements do not merge three parts, and move a cut by no more than so many elements.
_MANY_ELEMENTS = 1 << 15
_REACH = 4096
# An input of no more elements is searched exactly.
_MOST_EXACT = 1 << 11
# Never more parts of an axis than this.
_MOST_PARTS = 1 << 12
# All intervals of the target are tried up to this many rows; of more rows, and no more values of both axes,
# if that takes few steps.
_MOST_TRIED = 12
_FEW_STEPS = 1 << 7


@dataclass(frozen=True, slots=True)
class TargetAxis:
    """The rows of a numeric target in order: made once for all columns of a table.

    Attributes
    ----------
    codes : int32 array of shape (N,)
        Place of each row's value among the distinct ones, in their order.
    sizes : int64 array of shape (V,)
        Rows of each distinct value, weights counted.
    order : int64 array of shape (N,)
        The rows, from the least to the greatest value.
    sorted_codes : float64 array of shape (N,)
        ``codes`` in that order.
    weights : int64 array of shape (N,), or None
        How many times each row counts.
    blocks : int64 array
        First distinct value of each block of values.
    row_blocks : int64 array of shape (N,)
        Block of each row.
    """

    codes: CodeArray
    sizes: IntArray
    order: IntArray
    sorted_codes: FloatArray
    weights: IntArray | None
    blocks: IntArray
    row_blocks: IntArray

    @property
    def total(self) -> int:
        """Number of rows, weights counted."""
        return int(self.sizes.sum())

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return int(self.sizes.shape[0])


def target_axis(codes: CodeArray, n_values: int, weights: IntArray | None = None) -> TargetAxis:
    """Put the rows of a numeric target in order.

    Parameters
    ----------
    codes : int32 array of shape (N,)
        Place of each row's value among the distinct ones; each is met in some row that counts.
    n_values : int
        Number of distinct values.
    weights : int64 array of shape (N,), optional
        How many times each row counts, at least once.
    """
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    sizes = _sums(codes, weights, n_values)
    order = _rows_in_order(codes, n_values)
    blocks = value_blocks(sizes, _TARGET_BLOCKS)
    row_blocks = labels_of(blocks, n_values)[codes]
    return TargetAxis(codes, sizes, order, codes[order].astype(np.float64), weights, blocks, row_blocks)


class JointPartition(NamedTuple):
    """Parts of one variable and intervals of the target.

    Attributes
    ----------
    parts : int64 array of shape (n_values,)
        Part of each value of the variable. Intervals are numbered in order, groups from the most to the least
        frequent; a value without rows is in group -1.
    target_starts : int64 array of shape (J,)
        First distinct value of each interval of the target.
    counts : int64 array of shape (I, J)
        Rows of each part and target interval.
    cost, null_cost : float
        The criterion of what was found, and of one part and one interval.
    optimal : bool
        True when all partitions were tried.
    """

    parts: IntArray
    target_starts: IntArray
    counts: IntArray
    cost: float
    null_cost: float
    optimal: bool


class _State(NamedTuple):
    """Labels of the input's elements, first element of each target interval, and what they cost."""

    labels: IntArray
    starts: IntArray
    cost: float


def partition_with_target(
    codes: CodeArray | IntArray, n_values: int, target: TargetAxis, *, ordered: bool, search: Search = "auto"
) -> JointPartition:
    """Partition the values of one variable and the values of a numeric target at the same time.

    Parameters
    ----------
    codes : array of shape (N,)
        Value of each row, 0 .. ``n_values - 1``, in the order of the values when ``ordered``.
    n_values : int
        Number of values.
    target : TargetAxis
        The rows of the target.
    ordered : bool
        True for intervals of the variable, False for groups.
    search : {"auto", "greedy", "exact"}
        How the groups of a variable without order are searched.

    Examples
    --------
    >>> codes = np.arange(40, dtype=np.int32)
    >>> target = target_axis(codes // 20 * 20 + (codes * 7) % 20, 40)
    >>> found = partition_with_target(codes, 40, target, ordered=True)
    >>> found.counts.tolist(), found.target_starts.tolist()
    ([[20, 0], [0, 20]], [0, 20])
    """
    return optima_with_target(codes, n_values, target, ordered=ordered, search=search)[0]


def optima_with_target(
    codes: CodeArray | IntArray, n_values: int, target: TargetAxis, *, ordered: bool, search: Search = "auto"
) -> list[JointPartition]:
    """Return the distinct partitions that the starts end in, from the cheapest on; never an empty list.

    The parameters are those of `partition_with_target`, which returns the first. Only the cheapest are
    improved value by value.
    """
    variable = _Variable(np.ascontiguousarray(codes, dtype=np.int32), n_values, target, ordered, search)
    null = _State(np.zeros(n_values, np.int64), np.zeros(1, np.int64), variable.null_cost)
    if variable.n_present < 2 or target.n_values < 2:
        return [variable.solution(null, optimal=True)]
    if variable.is_small:
        return [variable.best_of_all_intervals(null)]
    states = variable.descents()
    most = _MOST_IMPROVED if len(codes) <= _MANY_ROWS else 1
    states = [variable.improved(state) for state in states[:most]] + states[most:]
    distinct: dict[tuple[bytes, bytes], _State] = {}
    for state in states:
        distinct.setdefault((state.labels.tobytes(), state.starts.tobytes()), state)
    # Sorting is stable: of equal costs the one found first stays first.
    found = sorted(distinct.values(), key=lambda state: state.cost)
    found = [state for state in found if state.cost < null.cost - _LEAST_GAIN]
    return [variable.solution(state, optimal=False) for state in found or [null]]


class _Variable:
    """The counts of one variable against the target, and the two half-steps that take turns on them."""

    def __init__(
        self, codes: CodeArray, n_values: int, target: TargetAxis, ordered: bool, search: Search
    ) -> None:
        self.codes, self.n_values, self.target = codes, n_values, target
        self.ordered, self.search = ordered, search
        self.sizes = _sums(codes, target.weights, n_values)
        self.n_present = int(np.count_nonzero(self.sizes))
        self.total = target.total
        self.n_priced = None if ordered else self.n_present
        self.null_cost = regression_cost([[self.total]], self.n_priced)
        self.logs = factorial_table(self.total + 1)
        self.in_order: tuple[FloatArray, CodeArray, IntArray | None] | None = None
        blocks = value_blocks(self.sizes, _INPUT_BLOCKS) if ordered else np.arange(n_values)
        self.block_of = labels_of(blocks, n_values)
        self.n_blocks = len(blocks)
        n_columns = len(target.blocks)
        keys = self.block_of[codes] * n_columns + target.row_blocks
        self.table = _sums(keys, target.weights, self.n_blocks * n_columns).reshape(-1, n_columns)

    # ----- all there are

    @property
    def is_small(self) -> bool:
        """Whether all intervals of the target can be tried, with the best parts of the input for each."""
        n_values = max(self.n_present, self.target.n_values)
        if n_values > _MOST_TRIED:
            return False
        # Groups of few elements are all tried, in about 3^V steps.
        steps = 1 if self.ordered else 1 + (3**self.n_present >> 10)
        return self.total <= _MOST_TRIED or steps << self.target.n_values <= _FEW_STEPS

    def best_of_all_intervals(self, best: _State) -> JointPartition:
        """Try all intervals of a target of few values."""
        optimal = True
        for cuts in range(1, 1 << (self.target.n_values - 1)):
            marks = cuts >> np.arange(self.target.n_values - 1) & 1
            starts = np.concatenate(([0], np.flatnonzero(marks) + 1))
            labels, counts, proven = self._parts_for(np.add.reduceat(self.table, starts, axis=1), exact=True)
            optimal = optimal and proven
            cost = regression_cost(counts, self.n_priced)
            if cost < best.cost - _LEAST_GAIN:
                best = _State(labels, starts, cost)
        return self.solution(best, optimal=optimal)

    # ----- on blocks

    def descents(self) -> list[_State]:
        """Take turns from each start, on blocks; return the distinct ends by value, the cheapest first."""
        met: set[bytes] = set()
        ends: dict[bytes, _State] = {}
        of_target, of_input = self.table.sum(axis=0), self.table.sum(axis=1)
        for number in _STARTS:
            self._take_turns(equal_blocks(of_target, number), met, ends)
            if self.ordered:
                parts = equal_blocks(of_input, number)
                self._take_turns(self._intervals_for(np.add.reduceat(self.table, parts, axis=0)), met, ends)
        # From the best again, with half as many intervals of the target and with twice as many.
        best = None
        while ends and (best is None or min(state.cost for state in ends.values()) < best.cost - _LEAST_GAIN):
            best = min(ends.values(), key=lambda state: state.cost)
            for starts in _around(best.starts, of_target):
                self._take_turns(starts, met, ends)
        found = sorted(ends.values(), key=lambda state: state.cost)
        return [
            state._replace(labels=state.labels[self.block_of], starts=self.target.blocks[state.starts])
            for state in found
        ]

    def _take_turns(self, starts: IntArray, met: set[bytes], ends: dict[bytes, _State]) -> None:
        """Partition the input, cut the target, and so on while the cost falls."""
        best: _State | None = None
        for _ in range(_MOST_TURNS):
            if len(starts) == 1 or starts.tobytes() in met:
                break
            met.add(starts.tobytes())
            labels, by_interval, _ = self._parts_for(np.add.reduceat(self.table, starts, axis=1))
            if len(by_interval) == 1:
                break
            by_block = _sums_by_label(self.table, labels, len(by_interval))
            starts = self._intervals_for(by_block)
            cost = regression_cost(np.add.reduceat(by_block, starts, axis=1), self.n_priced)
            if best is not None and cost >= best.cost - _LEAST_GAIN:
                break
            best = _State(labels, starts, cost)
        if best is None or best.cost >= self.null_cost:
            return
        known = ends.get(best.starts.tobytes())
        if known is None or best.cost < known.cost:
            ends[best.starts.tobytes()] = best

    def _parts_for(self, counts: IntArray, *, exact: bool = False) -> tuple[IntArray, IntArray, bool]:
        """Partition the input's blocks against the target's intervals.

        Returns the part of each block, the counts of the parts, and whether no others are proven cheaper.
        """
        if not self.ordered:
            elements = elements_of_counts(counts)
            penalty = np.log(self.n_present) + log_bell_table(self.n_present, len(elements))[1:]
            return search_unordered(elements, penalty, "exact" if exact else "greedy", 0)
        axis, first = axis_of_counts(counts)
        penalty = interval_penalties(self.total, axis.n_elements)
        found = search_exact(axis, penalty, prove=exact)
        starts = first[found.starts]
        starts[0] = 0
        return labels_of(starts, len(counts)), axis.part_counts(found.starts), found.optimal

    def _intervals_for(self, by_block: IntArray) -> IntArray:
        """Cut the target's blocks against the input's parts; return the first block of each interval."""
        axis, first = axis_of_counts(np.ascontiguousarray(by_block.T))
        penalty = _interval_sizes(by_block.sum(axis=1), axis.n_elements)
        starts: IntArray = first[cut_target(axis.cls, axis.cnt, axis.ptr, penalty, self.logs)]
        starts[0] = 0
        return starts

    # ----- by value

    def improved(self, state: _State) -> _State:
        """Move, merge and split value by value, the axes in turn, while the cost falls."""
        if self.n_blocks == self.n_values and len(self.target.blocks) == self.target.n_values:
            return state
        for _ in range(_MOST_TURNS if len(self.codes) <= _MANY_ROWS else 2):
            labels = self._improved_parts(state)
            starts = self._improved_intervals(labels, state.starts)
            turned = _State(labels, starts, self._cost(labels, starts))
            if turned.cost >= state.cost - _LEAST_GAIN:
                break
            state = turned
        return state

    def _improved_parts(self, state: _State) -> IntArray:
        """Improve the input's parts against the target's intervals."""
        target = self.target
        n_classes = len(state.starts)
        interval_of = labels_of(state.starts, target.n_values).astype(np.int32)
        if not self.ordered:
            elements = elements_of_rows(
                self.codes, self.n_values, interval_of[target.codes], n_classes, target.weights
            )
            penalty = np.log(self.n_present) + log_bell_table(self.n_present, len(elements))[1:]
            labels, _, _ = search_unordered(elements, penalty, self.search, 0)
            better = self._cost(labels, state.starts) < state.cost - _LEAST_GAIN
            return labels if better else state.labels
        if self.in_order is None:
            order = _rows_in_order(self.codes, self.n_values)
            weights = None if target.weights is None else target.weights[order]
            self.in_order = self.codes[order].astype(np.float64), target.codes[order], weights
        values, codes, weights = self.in_order
        starts = np.flatnonzero(np.diff(state.labels, prepend=-1))
        axis, first = axis_in_order(values, interval_of[codes], n_classes, weights)
        penalty = interval_penalties(self.total, _MOST_PARTS)
        tried = [_improve(axis, first, n_classes - 1, penalty, starts)]
        if axis.n_elements <= _MOST_EXACT:
            exact = search_exact(axis, penalty[: axis.n_elements], prove=False, guess=len(starts))
            tried.append(first[exact.starts].astype(np.int64))
        labelled = [labels_of(one, self.n_values) for one in tried]
        return min(labelled, key=lambda one: self._cost(one, state.starts))

    def _improved_intervals(self, labels: IntArray, starts: IntArray) -> IntArray:
        """Improve the target's intervals against the input's parts."""
        parts = labels[self.codes]
        return _improve_target(self.target, parts, _sums(parts, self.target.weights, 0), starts)

    def _cost(self, labels: IntArray, starts: IntArray) -> float:
        return regression_cost(self._counts(labels, starts), self.n_priced)

    def _counts(self, labels: IntArray, starts: IntArray) -> IntArray:
        return counts_by_interval(self.target, labels[self.codes], int(labels.max()) + 1, starts)

    def solution(self, state: _State, *, optimal: bool) -> JointPartition:
        """Count the rows again, and price them."""
        counts = self._counts(state.labels, state.starts)
        cost = regression_cost(counts, self.n_priced)
        return JointPartition(state.labels, state.starts, counts, cost, self.null_cost, optimal)


def _improve(axis: Axis, first: FloatArray, extra: int, penalty: FloatArray, starts: IntArray) -> IntArray:
    """Improve parts of rows in order; ``first`` is the first value of each element, starts are values too."""
    # A cut inside a run of one class costs no less than one at the end of the run.
    begins = np.unique(np.minimum(np.searchsorted(first, starts), axis.n_elements - 1))
    begins[0] = 0
    many = axis.n_elements > _MANY_ELEMENTS
    table = factorial_table(axis.total + max(axis.n_classes, extra))
    reach = _REACH if many else None
    begins = improve(axis, extra, table, penalty, begins, widest=2 if many else 3, reach=reach)
    return first[begins].astype(np.int64)


def _improve_target(target: TargetAxis, parts: IntArray, sizes: IntArray, starts: IntArray) -> IntArray:
    """Improve the target's intervals, value by value, against parts of the rows of these sizes."""
    weights = None if target.weights is None else target.weights[target.order]
    in_order = parts[target.order].astype(np.int32)
    axis, first = axis_in_order(target.sorted_codes, in_order, len(sizes), weights)
    penalty = _interval_sizes(sizes, min(axis.n_elements, _MOST_PARTS))
    return _improve(axis, first, RANKS.fixed, penalty, starts)


def intervals_for_parts(target: TargetAxis, parts: IntArray, n_parts: int, starts: IntArray) -> IntArray:
    """Cut a numeric target against parts of the rows, cells of a grid for instance.

    Parameters
    ----------
    target : TargetAxis
    parts : int64 array of shape (N,)
        Part of each row, 0 .. ``n_parts - 1``; each has rows.
    n_parts : int
        Number of parts.
    starts : int64 array
        First distinct value of each interval, to begin with.

    Returns
    -------
    array
        First distinct value of each interval: the cheapest of blocks of values or, if that is cheaper, of the
        given intervals, improved value by value.

    Examples
    --------
    >>> codes = np.arange(40, dtype=np.int32)
    >>> intervals_for_parts(target_axis(codes, 40), codes // 20 + 0, 2, np.array([0, 7, 9]))
    array([ 0, 20])
    """
    sizes = _sums(parts, target.weights, n_parts)
    n_blocks = len(target.blocks)
    by_block = _sums(parts * n_blocks + target.row_blocks, target.weights, n_parts * n_blocks)
    axis, first = axis_of_counts(np.ascontiguousarray(by_block.reshape(n_parts, n_blocks).T))
    penalty = _interval_sizes(sizes, axis.n_elements)
    cut = first[cut_target(axis.cls, axis.cnt, axis.ptr, penalty, factorial_table(target.total + 1))]
    cut[0] = 0
    tried = [_improve_target(target, parts, sizes, one) for one in (target.blocks[cut], starts)]

    def cost(starts: IntArray) -> float:
        counts = counts_by_interval(target, parts, n_parts, starts)
        return float(part_costs(counts).sum() + gammaln(counts.sum(axis=0) + 1.0).sum())

    return min(tried, key=cost)


def counts_by_interval(target: TargetAxis, parts: IntArray, n_parts: int, starts: IntArray) -> IntArray:
    """Count the rows of each part and interval of the target."""
    n_intervals = len(starts)
    keys = parts * n_intervals + labels_of(starts, target.n_values)[target.codes]
    return _sums(keys, target.weights, n_parts * n_intervals).reshape(n_parts, n_intervals)


def _sums_by_label(table: IntArray, labels: IntArray, n_labels: int) -> IntArray:
    """Add up the rows of a table that have one label; a label of -1 has nothing to add."""
    order = np.argsort(labels, kind="stable")
    sums: IntArray = np.add.reduceat(
        table[order], np.searchsorted(labels[order], np.arange(n_labels)), axis=0
    )
    return sums


def _interval_sizes(rows: IntArray, most: int) -> FloatArray:
    """Price of J = 1 .. ``most`` intervals of the target: how the rows of each part lie over them."""
    penalty = np.zeros(most)
    np.cumsum(np.log1p(rows / np.arange(1, most)[:, None]).sum(axis=1), out=penalty[1:])
    return penalty


@kernel
def cut_target(cls: CodeArray, cnt: IntArray, ptr: IntArray, penalty: FloatArray, lf: FloatArray) -> IntArray:
    """Cut the elements of a target into the intervals that cost least: all partitions are compared.

    Parameters
    ----------
    cls, cnt, ptr
        Elements of an `Axis`, whose classes are parts of the input.
    penalty
        ``penalty[J - 1]`` is the price of J intervals, growing and concave in J.
    lf
        What `log_factorial` reads.

    Returns
    -------
    array
        First element of each interval.
    """
    n = ptr.shape[0] - 1
    n_classes = 0
    for i in range(cls.shape[0]):
        n_classes = max(n_classes, cls[i] + 1)
    # cost[b, a]: one interval of the elements a .. b - 1
    cost = np.empty((n + 1, n), np.float64)
    counts = np.zeros(n_classes, np.int64)
    floor = 0.0
    for a in range(n):
        counts[:] = 0
        rows = 0
        inside = 0.0
        for b in range(a, n):
            for i in range(ptr[b], ptr[b + 1]):
                held = counts[cls[i]]
                counts[cls[i]] = held + cnt[i]
                rows += cnt[i]
                inside += log_factorial(lf, held + cnt[i]) - log_factorial(lf, held)
            cost[b + 1, a] = log_factorial(lf, rows) - inside
        floor += cost[a + 1, a]
    # Joining intervals never lowers their cost: ``floor`` is the least there is without a price of J. The
    # price is concave in J, so its tangent at J lies above it: what is cheapest under the tangent costs no
    # more than the least that J intervals can, and J itself need not be looked at any more.
    most = min(penalty.shape[0], n)
    lower = penalty[:most] + floor
    best = lower[0] = penalty[0] + cost[n, 0]
    parent = np.zeros(n + 1, np.int64)
    starts = np.zeros(1, np.int64)
    while True:
        at = np.argmin(lower)
        if lower[at] >= best - _RESOLUTION:
            return starts
        slope = penalty[at] - penalty[at - 1]
        value, n_parts = _solve(cost, slope, parent)
        for k in range(1, most):
            lower[k] = max(lower[k], penalty[k] + value - slope * (k + 1))
        lower[at] = np.inf
        if n_parts <= most:
            total = value - slope * n_parts + penalty[n_parts - 1]
            if total < best - _RESOLUTION:
                best = total
                starts = np.zeros(n_parts, np.int64)
                end = n
                for k in range(n_parts - 1, -1, -1):
                    end = parent[end]
                    starts[k] = end


@allocating_inner
def _solve(cost: FloatArray, slope: float, parent: IntArray) -> tuple[float, int]:
    """Find the intervals of least cost at ``slope`` each; return their cost and number.

    ``cost[b, a]`` is that of the interval a .. b - 1; ``parent[b]`` is set to where the last interval up to b
    begins.
    """
    n = parent.shape[0] - 1
    least = np.empty(n + 1, np.float64)
    number = np.zeros(n + 1, np.int64)
    least[0] = 0.0
    for b in range(1, n + 1):
        value = np.inf
        found = 0
        for a in range(b):
            tried = least[a] + cost[b, a]
            if tried < value:
                value = tried
                found = a
        least[b] = value + slope
        number[b] = number[found] + 1
        parent[b] = found
    return least[n], number[n]


@kernel
def _rows_in_order(codes: CodeArray, n_values: int) -> IntArray:
    """Return the rows in the order of their codes, those of one code in the order they came."""
    place = np.zeros(n_values + 1, np.int64)
    for row in range(codes.shape[0]):
        place[codes[row] + 1] += 1
    for value in range(n_values):
        place[value + 1] += place[value]
    order = np.empty(codes.shape[0], np.int64)
    for row in range(codes.shape[0]):
        order[place[codes[row]]] = row
        place[codes[row]] += 1
    return order


def _around(starts: IntArray, sizes: IntArray) -> list[IntArray]:
    """Drop every other start, in both ways; and cut each part in two of about the same size."""
    stops = [*starts[1:].tolist(), len(sizes)]
    middles = [
        first + int(equal_blocks(sizes[first:stop], 2)[-1])
        for first, stop in zip(starts.tolist(), stops, strict=True)
    ]
    return [starts[::2], np.concatenate((starts[:1], starts[1::2])), np.union1d(starts, middles)]


def labels_of(starts: IntArray, n_elements: int) -> IntArray:
    """Return the part of each element, from the first element of each part.

    >>> labels_of(np.array([0, 2]), 5)
    array([0, 0, 1, 1, 1])
    """
    marks = np.zeros(n_elements, np.int64)
    marks[starts[1:]] = 1
    return np.cumsum(marks)


def equal_blocks(sizes: IntArray, most: int) -> IntArray:
    """Return where blocks of about the same size begin; no more of them than there are elements.

    >>> equal_blocks(np.array([1, 1, 5, 1, 1, 1]), 3)
    array([0, 2, 3])
    """
    if len(sizes) <= most:
        return np.arange(len(sizes))
    before = np.cumsum(sizes) - sizes
    middle = before + sizes // 2
    return np.unique(np.minimum(middle * most // sizes.sum(), most - 1), return_index=True)[1]


def value_blocks(sizes: IntArray, most: int) -> IntArray:
    """Return where blocks of values begin: about ``most``, and a frequent value is a block of its own.

    >>> value_blocks(np.array([1, 1, 1, 9, 1, 1, 1, 1, 1]), 3)
    array([0, 3, 4])
    """
    if len(sizes) <= most:
        return np.arange(len(sizes))
    total = int(sizes.sum())
    rows = -(-total // most)
    frequent = max(rows // 4, 2 * total // len(sizes) + 1)
    starts: IntArray = _block_starts(np.ascontiguousarray(sizes), rows, frequent)
    return starts


@kernel
def _block_starts(sizes: IntArray, rows: int, frequent: int) -> IntArray:
    """Close a block at ``rows`` rows; a value of at least ``frequent`` rows is a block of its own."""
    starts = np.empty(sizes.shape[0], np.int64)
    n_blocks = 0
    held = rows
    for value in range(sizes.shape[0]):
        own = sizes[value] >= frequent
        if held >= rows or own:
            starts[n_blocks] = value
            n_blocks += 1
            held = 0
        held = rows if own else held + sizes[value]
    return starts[:n_blocks].copy()


def _sums(keys: IntArray | CodeArray, weights: IntArray | None, size: int) -> IntArray:
    # float64 sums of whole numbers are exact up to 2^53 rows
    return np.bincount(keys, weights=weights, minlength=size).astype(np.int64)
