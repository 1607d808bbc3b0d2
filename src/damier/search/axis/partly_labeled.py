"""Intervals of a numeric column when only some rows carry a label (Bondu, Boullé and Lemaire, formula 17).

The criterion is additive over intervals, like the supervised one; the cost of an interval hides the class
totals N_ij, which are found in closed form (lemma 2). The candidate cuts lie between any two neighbouring
distinct values, labeled or not. Where there are few, a dynamic programme over all of them proves the optimum.
Else the supervised search on the labeled rows, with the penalty that the unlabeled ones add on average,
proposes cuts; a dynamic programme on the true criterion chooses among these and their neighbours, and each
cut is then moved to its best place.

Legend of the kernels: a *place* is a candidate cut; ``left[p]`` rows lie left of it, ``labels[p]`` distinct
labeled values, and ``prefix[labels[p], j]`` labeled rows of class j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from damier.criteria import semi_supervised_cost
from damier.criteria.semi_supervised import check_total
from damier.intake.table import distinct_values
from damier.search.axis.costs import interval_penalties
from damier.search.axis.ordered import OrderedSolution, discretize, partition_ordered
from damier.search.kernels import (
    CodeArray,
    FloatArray,
    IntArray,
    factorial_table,
    inner,
    kernel,
    log_factorial,
)

Search = Literal["auto", "greedy", "exact"]

# Distinct values up to which ``auto`` tries every cut, and up to which ``exact`` is offered at all.
_MOST_PLACES_AUTO = 768
_MOST_PLACES_EXACT = 4096
# Cuts of the labeled rows that the true criterion chooses from, beyond that.
_MOST_PROPOSED = 200


@inner
def _interval_cost(table: FloatArray, prefix: IntArray, a: int, b: int, n: int, best: IntArray) -> float:
    """Cost of an interval of ``n`` rows with the labeled values a .. b-1; ``best`` is room for the N_ij."""
    n_classes = prefix.shape[1]
    known = 0
    for j in range(n_classes):
        known += prefix[b, j] - prefix[a, j]
    cost: float = (
        log_factorial(table, n + n_classes - 1)
        - log_factorial(table, n_classes - 1)
        - log_factorial(table, n)
    )
    if known == 0:
        return cost
    short = n
    for j in range(n_classes):
        labeled = prefix[b, j] - prefix[a, j]
        best[j] = max(labeled, -(-((n + 1) * labeled) // known) - 1)
        short -= best[j]
    for _ in range(short):
        chosen, largest = 0, -1.0
        for j in range(n_classes):
            share = (prefix[b, j] - prefix[a, j]) / (best[j] + 1)
            if share > largest:
                chosen, largest = j, share
        best[chosen] += 1
    cost += log_factorial(table, n) - log_factorial(table, n - known)
    for j in range(n_classes):
        labeled = prefix[b, j] - prefix[a, j]
        cost -= log_factorial(table, best[j]) - log_factorial(table, best[j] - labeled)
    return cost


@kernel
def _best_places(
    table: FloatArray, prefix: IntArray, left: IntArray, labels: IntArray, penalty: FloatArray
) -> IntArray:
    """Choose among the places by dynamic programming; the first and last are the ends of the axis.

    The number of intervals grows until its penalty plus the least sum of interval costs, whatever their
    number, is no better than the best partition met: from there on none can be.
    """
    n_places = left.size
    costs = np.empty((n_places, n_places))
    best = np.empty(prefix.shape[1], np.int64)
    free = np.zeros(n_places)
    for t in range(1, n_places):
        free[t] = np.inf
        for s in range(t):
            costs[s, t] = _interval_cost(table, prefix, labels[s], labels[t], left[t] - left[s], best)
            free[t] = min(free[t], free[s] + costs[s, t])
    last = n_places - 1
    most = min(penalty.size, last)
    before = costs[0].copy()
    back = np.zeros((most + 1, n_places), np.int32)
    least = penalty[0] + before[last]
    n_parts = 1
    for i in range(2, most + 1):
        if penalty[i - 1] + free[last] >= least - 1e-9:
            break
        after = np.full(n_places, np.inf)
        for t in range(i, n_places):
            for s in range(i - 1, t):
                cost = before[s] + costs[s, t]
                if cost < after[t]:
                    after[t] = cost
                    back[i, t] = s
        before = after
        if penalty[i - 1] + before[last] < least - 1e-9:
            least = penalty[i - 1] + before[last]
            n_parts = i
    chosen = np.empty(n_parts + 1, np.int64)
    chosen[n_parts] = last
    chosen[0] = 0
    for i in range(n_parts, 1, -1):
        chosen[i - 1] = back[i, chosen[i]]
    return chosen


@kernel
def _best_between(
    table: FloatArray, prefix: IntArray, left: IntArray, labels: IntArray, tried: IntArray, lo: int, hi: int
) -> int:
    """Give the one of the places ``tried`` that cuts the interval from place ``lo`` to place ``hi`` best."""
    best = np.empty(prefix.shape[1], np.int64)
    least = np.inf
    chosen = -1
    for p in tried:
        cost = _interval_cost(table, prefix, labels[lo], labels[p], left[p] - left[lo], best)
        cost += _interval_cost(table, prefix, labels[p], labels[hi], left[hi] - left[p], best)
        if cost < least - 1e-9:
            least = cost
            chosen = p
    return chosen


@dataclass(frozen=True, slots=True)
class _Places:
    """Every candidate cut of a column, the two ends included, and the labeled rows left of each."""

    values: FloatArray
    left: IntArray
    labels: IntArray
    prefix: IntArray

    @classmethod
    def of(cls, values: FloatArray, codes: CodeArray, n_classes: int, weights: IntArray | None) -> _Places:
        """Sort the column, missing values first."""
        labeled = codes >= 0
        distinct, sizes = _counted(values, weights)
        known, of_row = distinct_values(values[labeled])
        keys = of_row * n_classes + codes[labeled]
        size = known.size * n_classes
        counts = np.bincount(keys, None if weights is None else weights[labeled], size)
        prefix = np.zeros((known.size + 1, n_classes), np.int64)
        prefix[1:] = np.cumsum(counts.reshape(known.size, n_classes), axis=0)
        left = np.concatenate(([0], np.cumsum(sizes)))
        n_missing = int(distinct.size > 0 and np.isnan(distinct[0]))
        known_missing = int(known.size > 0 and np.isnan(known[0]))
        labels = np.zeros(distinct.size + 1, np.int64)
        labels[1 : 1 + n_missing] = known_missing
        labels[1 + n_missing :] = known_missing + np.searchsorted(
            known[known_missing:], distinct[n_missing:], side="right"
        )
        return cls(distinct, left, labels, prefix)

    @property
    def total(self) -> int:
        """Number of rows, labeled or not."""
        return int(self.left[-1])

    def runs(self) -> tuple[IntArray, IntArray]:
        """First and last place of each run of places with the same labeled rows on their left."""
        n_runs = self.prefix.shape[0]
        first = np.searchsorted(self.labels, np.arange(n_runs), side="left")
        last = np.searchsorted(self.labels, np.arange(n_runs), side="right") - 1
        return first, last


def _counted(values: FloatArray, weights: IntArray | None) -> tuple[FloatArray, IntArray]:
    """Distinct values, a missing one before all others, and the rows of each."""
    if weights is not None:
        distinct, of_row = distinct_values(values)
        return distinct, np.bincount(of_row, weights).astype(np.int64)
    ordered = np.sort(values)
    n_missing = int(np.count_nonzero(np.isnan(ordered)))
    ordered = ordered[: ordered.size - n_missing]
    begins = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    first = np.flatnonzero(begins)
    distinct, sizes = ordered[first], np.diff(first, append=ordered.size)
    if n_missing:
        return np.concatenate(([np.nan], distinct)), np.concatenate(([n_missing], sizes))
    return distinct, sizes


def discretize_partly_labeled(
    values: FloatArray,
    codes: CodeArray,
    n_classes: int,
    *,
    weights: IntArray | None = None,
    search: Search = "auto",
) -> OrderedSolution:
    """Cut a numeric column into the intervals that cost least when only some rows are labeled.

    Parameters
    ----------
    values, codes, n_classes, weights
        As in :func:`discretize`, and code -1 where a row has no label.
    search : {"auto", "greedy", "exact"}
        "auto" tries every cut of up to 768 distinct values and proves the optimum; beyond, it chooses among
        cuts that the labeled rows propose. "greedy" always does the latter. "exact" tries every cut of up to
        4,096 distinct values and refuses more.

    Returns
    -------
    OrderedSolution
        Cuts and costs; the counts are those of the labeled rows. With a label in every row this is
        `discretize`'s solution, with none it is one interval.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0)
    >>> y = np.where(x < 5, 0, np.where(x > 14, 1, -1)).astype(np.int32)
    >>> solution = discretize_partly_labeled(x, y, 2)
    >>> solution.counts.tolist(), solution.optimal
    ([[5, 0], [0, 5]], True)
    """
    if search not in ("auto", "greedy", "exact"):
        raise ValueError(f"search must be 'auto', 'greedy' or 'exact', got {search!r}")
    values = np.ascontiguousarray(values, dtype=np.float64)
    if (codes >= 0).all():
        return discretize(values, codes, n_classes, weights=weights, search=search)
    places = _Places.of(values, codes, max(n_classes, 1), weights)
    check_total(places.total)
    table = factorial_table(places.total + places.prefix.shape[1])
    n_distinct = places.values.size
    if search == "exact" and n_distinct > _MOST_PLACES_EXACT:
        raise ValueError(
            f"the exact search with unlabeled rows takes up to {_MOST_PLACES_EXACT:,} distinct values, not "
            f"{n_distinct:,}: use search='auto'"
        )
    if places.prefix.shape[0] == 1 or places.prefix.shape[1] == 1:
        chosen, optimal = np.array([0, n_distinct]), True
    elif search == "exact" or (search == "auto" and n_distinct <= _MOST_PLACES_AUTO):
        penalty = interval_penalties(places.total, n_distinct)
        chosen = _best_places(table, places.prefix, places.left, places.labels, penalty)
        optimal = True
    else:
        chosen, optimal = _search_proposed(places, table), False
    return _solution(places, chosen, optimal, n_classes)


def _solution(places: _Places, chosen: IntArray, optimal: bool, n_classes: int) -> OrderedSolution:
    labeled = np.diff(places.prefix[places.labels[chosen]], axis=0)
    totals = np.diff(places.left[chosen])
    cuts = chosen[1:-1]
    return OrderedSolution(
        below=places.values[cuts - 1].copy(),
        above=places.values[cuts].copy(),
        counts=labeled[:, :n_classes],
        cost=semi_supervised_cost(labeled, totals),
        null_cost=semi_supervised_cost(labeled.sum(axis=0, keepdims=True), totals.sum(keepdims=True)),
        optimal=optimal,
    )


def _search_proposed(places: _Places, table: FloatArray) -> IntArray:
    """Let the labeled rows propose cuts, choose by the true criterion, then move each to its best place."""
    first, last = places.runs()
    ends = np.array([0, places.left.size - 1])
    proposed = [ends]
    for run in _proposed_runs(places):
        middle = (first[run] + last[run]) // 2
        proposed.append(np.array([first[run], middle, last[run]]))
    tried = np.unique(np.concatenate(proposed))
    penalty = interval_penalties(places.total, tried.size)
    inner = _best_places(table, places.prefix, places.left[tried], places.labels[tried], penalty)
    return _settled(places, table, tried[inner], first, last)


def _proposed_runs(places: _Places) -> list[int]:
    """Give the runs of places where the supervised search cuts, for the fair penalty and for less."""
    counts = np.diff(places.prefix, axis=0)
    n_classes, n_labeled = counts.shape[1], int(places.prefix[-1].sum())
    parts = np.arange(1, counts.shape[0] + 1)
    # An interval has N/N^l times as many rows as labels on average, and pays log of that J - 1 times more.
    fair = interval_penalties(places.total, parts.size)
    fair = fair + parts * (n_classes - 1) * np.log(places.total / n_labeled)
    runs: set[int] = set()
    for share in (1.0, 0.75, 0.5, 0.35, 0.25):
        starts, _, _ = partition_ordered(counts, share * fair, search="auto")
        found = {int(start) for start in starts[1:]}
        if len(runs | found) > _MOST_PROPOSED:
            break
        runs |= found
        if not found and share <= 0.5:
            break
    beside = {run + step for run in runs for step in (-1, 1)}
    return sorted(run for run in runs | beside if 0 < run < counts.shape[0])


def _settled(
    places: _Places, table: FloatArray, chosen: IntArray, first: IntArray, last: IntArray
) -> IntArray:
    """Move one cut at a time to its best place between its neighbours until none moves."""
    chosen = chosen.copy()
    for _ in range(20):
        moved = False
        for i in range(1, chosen.size - 1):
            lo, hi = int(chosen[i - 1]), int(chosen[i + 1])
            run = int(places.labels[chosen[i]])
            inside = slice(int(places.labels[lo]) + 1, int(places.labels[hi]))
            own = np.arange(max(first[run], lo + 1), min(last[run], hi - 1) + 1)
            tried = np.unique(np.concatenate((own, first[inside], last[inside], chosen[i : i + 1])))
            tried = tried[(tried > lo) & (tried < hi)]
            # The present place first, so that ties leave it where it is.
            tried = np.concatenate((chosen[i : i + 1], tried))
            best = _best_between(table, places.prefix, places.left, places.labels, tried, lo, hi)
            if best != chosen[i]:
                chosen[i] = best
                moved = True
        if not moved:
            break
    return chosen


def bounds_between_labels(
    values: FloatArray,
    codes: CodeArray,
    below: FloatArray,
    above: FloatArray,
    weights: IntArray | None = None,
) -> FloatArray:
    """Move each bound to the median of the unlabeled values between its two labeled neighbours.

    Parameters
    ----------
    values, codes, weights
        As in :func:`discretize_partly_labeled`.
    below, above : float64 arrays of shape (I - 1,)
        Labeled values on both sides of each cut of the labeled rows; NaN below stands for missing values.

    Returns
    -------
    float64 array of shape (I - 1,)
        The median of the unlabeled values strictly between ``below`` and ``above``, NaN where there is none.
    """
    unlabeled = (codes < 0) & ~np.isnan(values)
    chosen = values[unlabeled]
    order = np.argsort(chosen, kind="stable")
    chosen = chosen[order]
    weight = np.ones(chosen.size, np.int64) if weights is None else weights[unlabeled][order]
    before = np.concatenate(([0], np.cumsum(weight)))
    medians = np.full(below.size, np.nan)
    for i, (low, high) in enumerate(zip(below.tolist(), above.tolist(), strict=True)):
        begin = 0 if np.isnan(low) else int(np.searchsorted(chosen, low, side="right"))
        end = int(np.searchsorted(chosen, high, side="left"))
        if begin < end:
            total = int(before[end] - before[begin])
            left = int(np.searchsorted(before, before[begin] + (total - 1) // 2, side="right")) - 1
            right = int(np.searchsorted(before, before[begin] + total // 2, side="right")) - 1
            medians[i] = chosen[left] / 2 + chosen[right] / 2
    return medians
