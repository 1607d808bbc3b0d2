"""Merges of the coclustering search: the cheapest pair of clusters again and again, on either axis.

Symbols as in `damier.search.cocluster.kernels`; here the lines of ``T`` are the clusters of the axis at hand.
``D[a, b]`` (a < b) is what merging two clusters of one axis changes, cells and clusters together; the terms
of the numbers of clusters are the same for all pairs of an axis and are added when the two axes are compared.
A merge on one axis changes two lines of ``T``, so the other axis' ``D`` is corrected by the difference
instead of being computed again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from damier.search.cocluster.kernels import SideArray, cluster_cost
from damier.search.kernels import (
    CodeArray,
    FlagArray,
    FloatArray,
    IntArray,
    allocating_inner,
    inner,
    kernel,
    log_factorial,
)


class Side(NamedTuple):
    """The clusters of one axis while they merge; clusters keep the numbers of the start.

    ``T`` are the cells, a line per cluster of this axis; ``N`` and ``m`` instances and values of the
    clusters; ``D`` what merging a pair changes. The first of ``live`` are the clusters that are left,
    ascending, ``nearest[a]`` is the cheapest partner of ``a`` among those after it (-1 for the last), and
    ``log_bell[J]`` prices J clusters.
    """

    T: CodeArray
    N: IntArray
    m: IntArray
    D: FloatArray
    live: IntArray
    nearest: IntArray
    log_bell: FloatArray


class MergeTree(NamedTuple):
    """Merges, in order.

    Step ``s`` merged cluster ``gone[s]`` of axis ``axes[s]`` (0 rows, 1 columns) into ``kept[s]``;
    ``costs[s]`` is the cost after it, counted from the one before the first step.
    """

    axes: SideArray
    kept: IntArray
    gone: IntArray
    costs: FloatArray


@kernel
def fill_pairs(first: int, step: int, side: Side, lf: FloatArray, stop: FlagArray) -> None:
    """Fill the lines ``first``, ``first + step``, ... of ``side.D``, until ``stop`` is set."""
    T, N, m, D = side.T, side.N, side.m, side.D
    J = T.shape[0]
    alone, largest = _line_terms(T, lf)
    for a in range(first, J, step):
        if stop[0]:
            return
        for b in range(a + 1, J):
            d = cluster_cost(lf, N[a] + N[b], m[a] + m[b])
            d -= cluster_cost(lf, N[a], m[a]) + cluster_cost(lf, N[b], m[b])
            within = largest[a] + largest[b] < lf.shape[0]
            D[a, b] = d + alone[a] + alone[b] - _joint_term(T[a], T[b], within, lf)


@allocating_inner
def _line_terms(T: CodeArray, lf: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return for each line of ``T`` the sum of ``lf`` over its cells, and its largest cell."""
    J, K = T.shape
    alone = np.empty(J, np.float64)
    largest = np.empty(J, np.int64)
    for a in range(J):
        alone[a] = 0.0
        largest[a] = 0
        for k in range(K):
            alone[a] += log_factorial(lf, T[a, k])
            largest[a] = max(largest[a], T[a, k])
    return alone, largest


@inner
def _joint_term(x: CodeArray, y: CodeArray, within: bool, lf: FloatArray) -> float:
    """Sum ``lf`` over the cells of two lines put together; ``within`` promises that the table reaches."""
    total = 0.0
    if within:
        # unsigned indices need no test for negative ones, and four sums need not wait for one another
        s0 = s1 = s2 = s3 = 0.0
        n = x.shape[0]
        whole = n - n % 4
        for k in range(0, whole, 4):
            s0 += lf[np.uint64(x[k] + y[k])]
            s1 += lf[np.uint64(x[k + 1] + y[k + 1])]
            s2 += lf[np.uint64(x[k + 2] + y[k + 2])]
            s3 += lf[np.uint64(x[k + 3] + y[k + 3])]
        total = s0 + s1 + s2 + s3
        for k in range(whole, n):
            total += lf[np.uint64(x[k] + y[k])]
    else:
        for k in range(x.shape[0]):
            total += log_factorial(lf, x[k] + y[k])
    return total


@inner
def _log_grid(n_instances: int, cells: int) -> float:
    """Log of C(N + G - 1, G - 1) without the terms that depend on N alone."""
    return math.lgamma(n_instances + cells) - math.lgamma(cells)


@inner
def _find_nearest(i: int, n_live: int, side: Side) -> None:
    """Find the cheapest partner of cluster ``live[i]`` among those after it."""
    a = side.live[i]
    best = -1
    for h in range(i + 1, n_live):
        b = side.live[h]
        if best < 0 or side.D[a, b] < side.D[a, best]:
            best = b
    side.nearest[a] = best


@inner
def _cheapest(n_live: int, side: Side) -> int:
    """Find the cluster that its nearest one takes at least cost; the only one when one is left."""
    best: int = side.live[0]
    for i in range(1, n_live - 1):
        a = side.live[i]
        if side.D[a, side.nearest[a]] < side.D[best, side.nearest[best]]:
            best = a
    return best


@allocating_inner
def _correct_pairs(used: IntArray, x: IntArray, y: IntArray, D: FloatArray, lf: FloatArray) -> None:
    """Correct ``D`` of the other axis before two lines of this one merge.

    ``x`` and ``y`` are the two lines' cells with the clusters ``used`` of the other axis: those where at
    least one is not empty. No other pair is concerned.
    """
    n_used = used.shape[0]
    alone = np.empty(n_used, np.float64)
    largest = np.int64(0)
    for h in range(n_used):
        alone[h] = log_factorial(lf, x[h] + y[h]) - log_factorial(lf, x[h]) - log_factorial(lf, y[h])
        largest = max(largest, x[h] + y[h])
    # The table read directly where it reaches: this loop takes most of the time of all merges.
    within = 2 * largest < lf.shape[0]
    for h in range(n_used):
        line = D[used[h]]
        if within:
            for g in range(h + 1, n_used):
                u = np.uint64(x[h] + x[g])
                w = np.uint64(y[h] + y[g])
                line[used[g]] += alone[h] + alone[g] - lf[u + w] + lf[u] + lf[w]
        else:
            for g in range(h + 1, n_used):
                xu = x[h] + x[g]
                yw = y[h] + y[g]
                joint = log_factorial(lf, xu + yw) - log_factorial(lf, xu) - log_factorial(lf, yw)
                line[used[g]] += alone[h] + alone[g] - joint


@inner
def _price_pairs(a: int, used: IntArray, n_live: int, side: Side, lf: FloatArray) -> None:
    """Compute ``D`` of cluster ``a`` with every other one, its cells empty but for those ``used``."""
    T, N, m, D = side.T, side.N, side.m, side.D
    alone = 0.0
    for k in used:
        alone += log_factorial(lf, T[a, k])
    for h in range(n_live):
        c = side.live[h]
        if c == a:
            continue
        d = cluster_cost(lf, N[a] + N[c], m[a] + m[c]) + alone
        d -= cluster_cost(lf, N[a], m[a]) + cluster_cost(lf, N[c], m[c])
        for k in used:
            if T[c, k] > 0:
                d += log_factorial(lf, T[c, k]) - log_factorial(lf, T[a, k] + T[c, k])
            else:
                d -= log_factorial(lf, T[a, k])
        D[min(a, c), max(a, c)] = d


@allocating_inner
def _merge_lines(a: int, b: int, n_live: int, side: Side, n_other: int, other: Side, lf: FloatArray) -> None:
    """Merge cluster ``b`` of ``side``, one of ``n_live``, into ``a`` and bring both sides up to date."""
    T, N, m, D, live, nearest, _ = side
    used = np.empty(n_other, np.int64)
    n_used = 0
    for k in other.live[:n_other]:
        if T[a, k] > 0 or T[b, k] > 0:
            used[n_used] = k
            n_used += 1
    used = used[:n_used]
    of_a = np.empty(n_used, np.int64)
    of_b = np.empty(n_used, np.int64)
    for h in range(n_used):
        of_a[h] = T[a, used[h]]
        of_b[h] = T[b, used[h]]
    _correct_pairs(used, of_a, of_b, other.D, lf)
    for k in used:
        T[a, k] += T[b, k]
        T[b, k] = 0
        other.T[k, a] = T[a, k]
        other.T[k, b] = 0
    N[a] += N[b]
    m[a] += m[b]
    N[b] = 0
    m[b] = 0
    gone = 0
    while live[gone] != b:
        gone += 1
    n_live -= 1
    for h in range(gone, n_live):
        live[h] = live[h + 1]
    _price_pairs(a, used, n_live, side, lf)
    for h in range(n_live):
        c = live[h]
        if c == a or nearest[c] == a or nearest[c] == b:
            _find_nearest(h, n_live, side)
        elif c < a and D[c, a] < D[c, nearest[c]]:
            nearest[c] = a
    for h in range(n_other):
        _find_nearest(h, n_other, other)


@kernel
def merge_down(
    sides: tuple[Side, Side],
    n_instances: int,
    patience: int,
    lf: FloatArray,
    tree: MergeTree,
    stop: FlagArray,
) -> int:
    """Merge the cheapest pair until one block is left or ``patience`` merges bring no new best; count them.

    ``sides`` are the rows and the columns, all clusters live, ``nearest`` still to be found; they are used
    up. ``tree`` receives the merges, with room for all down to one block. No more are made once
    ``stop`` is set.
    """
    n_live = np.empty(2, np.int64)
    for axis in range(2):
        n_live[axis] = sides[axis].T.shape[0]
        for h in range(n_live[axis]):
            _find_nearest(h, n_live[axis], sides[axis])
    steps = 0
    total = 0.0
    lowest = 0.0
    since = 0
    while n_live[0] * n_live[1] > 1 and since < patience and not stop[0]:
        grid = _log_grid(n_instances, n_live[0] * n_live[1])
        least = np.inf
        chosen = 0
        for axis in range(2):
            J = n_live[axis]
            if J == 1:
                continue
            side = sides[axis]
            a = _cheapest(J, side)
            change = side.D[a, side.nearest[a]] + side.log_bell[J - 1] - side.log_bell[J]
            change += _log_grid(n_instances, (J - 1) * n_live[1 - axis]) - grid
            if change < least:
                least = change
                chosen = axis
        side = sides[chosen]
        a = _cheapest(n_live[chosen], side)
        b = side.nearest[a]
        _merge_lines(a, b, n_live[chosen], side, n_live[1 - chosen], sides[1 - chosen], lf)
        n_live[chosen] -= 1
        total += least
        tree.axes[steps] = chosen
        tree.kept[steps] = a
        tree.gone[steps] = b
        tree.costs[steps] = total
        steps += 1
        since += 1
        if total < lowest - 1e-9:
            lowest = total
            since = 0
    return steps
