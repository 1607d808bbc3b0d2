"""Merges of the coclustering search: the cheapest pair of clusters again and again, on either axis.

Symbols as in ``coclustering_kernels``; here ``T[i, j]`` has the row clusters first. ``D[a, b]`` (a < b) is
what merging two clusters of one axis changes, cells and clusters together; the terms of the numbers of
clusters are the same for all pairs of an axis and are added when the two axes are compared. A merge on one
axis changes two lines of ``T``, so the other axis' ``D`` is corrected by the difference instead of being
computed again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.search.cocluster.kernels import cluster_cost
from damier.search.kernels import kernel, log_factorial

Array = npt.NDArray[Any]


@kernel
def fill_pairs(first: int, step: int, T: Array, N: Array, m: Array, lf: Array, D: Array) -> None:
    """``D`` of the first axis of ``T``, lines ``first``, ``first + step``, ..."""
    J = T.shape[0]
    alone, largest = _line_terms(T, lf)
    for a in range(first, J, step):
        for b in range(a + 1, J):
            d = cluster_cost(lf, N[a] + N[b], m[a] + m[b])
            d -= cluster_cost(lf, N[a], m[a]) + cluster_cost(lf, N[b], m[b])
            within = largest[a] + largest[b] < lf.shape[0]
            D[a, b] = d + alone[a] + alone[b] - _joint_term(T[a], T[b], within, lf)


@kernel
def _line_terms(T: Array, lf: Array) -> tuple[Array, Array]:
    """For each line of ``T`` the sum of ``lf`` over its cells, and its largest cell."""
    J, K = T.shape
    alone = np.zeros(J)
    largest = np.zeros(J, np.int64)
    for a in range(J):
        for k in range(K):
            alone[a] += log_factorial(lf, T[a, k])
            largest[a] = max(largest[a], T[a, k])
    return alone, largest


@kernel
def _joint_term(x: Array, y: Array, within: bool, lf: Array) -> float:
    """Sum of ``lf`` over the cells of two lines put together; ``within`` promises that the table reaches."""
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


@kernel
def _log_grid(n_instances: int, cells: int) -> float:
    """Log of C(N + G - 1, G - 1) without the terms that depend on N alone."""
    return math.lgamma(n_instances + cells) - math.lgamma(cells)


@kernel
def _nearest(live: Array, n_live: int, i: int, D: Array) -> int:
    """Position in ``live`` of the cheapest partner after position ``i``; -1 for the last one."""
    best = -1
    a = live[i]
    for h in range(i + 1, n_live):
        if best < 0 or D[a, live[h]] < D[a, live[best]]:
            best = h
    return best


@kernel
def _cheapest(live: Array, n_live: int, nearest: Array, D: Array) -> tuple[int, int]:
    """Find the cheapest pair of an axis, as cluster numbers; (-1, -1) when one cluster is left."""
    best = -1
    for i in range(n_live - 1):
        a = live[i]
        if best < 0 or D[a, nearest[a]] < D[best, nearest[best]]:
            best = a
    if best < 0:
        return -1, -1
    return best, nearest[best]


@kernel
def _merge_lines(
    a: int,
    b: int,
    T: Array,
    transposed: Array,
    N: Array,
    m: Array,
    live: Array,
    n_live: int,
    nearest: Array,
    D: Array,
    other_live: Array,
    n_other: int,
    other_nearest: Array,
    other_D: Array,
    lf: Array,
) -> None:
    """Merge line ``b`` of ``T`` into line ``a`` and bring both axes' tables up to date."""
    used = np.empty(n_other, np.int64)
    of_a = np.empty(n_other, np.int64)
    of_b = np.empty(n_other, np.int64)
    alone = np.empty(n_other, np.float64)
    n_used = 0
    largest = np.int64(0)
    for h in range(n_other):
        k = other_live[h]
        x = np.int64(T[a, k])
        y = np.int64(T[b, k])
        if x > 0 or y > 0:
            used[n_used] = k
            of_a[n_used] = x
            of_b[n_used] = y
            alone[n_used] = log_factorial(lf, x + y) - log_factorial(lf, x) - log_factorial(lf, y)
            n_used += 1
        largest = max(largest, x + y)
    for h in range(n_used):
        line = other_D[used[h]]
        x = of_a[h]
        y = of_b[h]
        if 2 * largest < lf.shape[0]:
            for g in range(h + 1, n_used):
                u = np.uint64(x + of_a[g])
                w = np.uint64(y + of_b[g])
                line[used[g]] += alone[h] + alone[g] - lf[u + w] + lf[u] + lf[w]
        else:
            for g in range(h + 1, n_used):
                xu = x + of_a[g]
                yw = y + of_b[g]
                joint = log_factorial(lf, xu + yw) - log_factorial(lf, xu) - log_factorial(lf, yw)
                line[used[g]] += alone[h] + alone[g] - joint
    for k in used[:n_used]:
        T[a, k] += T[b, k]
        T[b, k] = 0
        transposed[k, a] = T[a, k]
        transposed[k, b] = 0
    N[a] += N[b]
    m[a] += m[b]
    N[b] = 0
    m[b] = 0
    gone = 0
    while live[gone] != b:
        gone += 1
    for h in range(gone, n_live - 1):
        live[h] = live[h + 1]
    n_live -= 1
    alone[0] = 0.0
    for g in range(n_used):
        of_a[g] += of_b[g]
        alone[0] += log_factorial(lf, of_a[g])
    for h in range(n_live):
        c = live[h]
        if c == a:
            continue
        d = cluster_cost(lf, N[a] + N[c], m[a] + m[c]) + alone[0]
        d -= cluster_cost(lf, N[a], m[a]) + cluster_cost(lf, N[c], m[c])
        for g in range(n_used):
            y = np.int64(T[c, used[g]])
            if y > 0:
                d += log_factorial(lf, y) - log_factorial(lf, of_a[g] + y)
            else:
                d -= log_factorial(lf, of_a[g])
        D[min(a, c), max(a, c)] = d
    for h in range(n_live):
        c = live[h]
        if c == a or nearest[c] == a or nearest[c] == b:
            best = _nearest(live, n_live, h, D)
            nearest[c] = live[best] if best >= 0 else -1
        elif c < a and D[c, a] < D[c, nearest[c]]:
            nearest[c] = a
    for h in range(n_other):
        best = _nearest(other_live, n_other, h, other_D)
        other_nearest[other_live[h]] = other_live[best] if best >= 0 else -1


@kernel
def merge_down(
    T: Array,
    N1: Array,
    m1: Array,
    N2: Array,
    m2: Array,
    D1: Array,
    D2: Array,
    n_instances: int,
    log_bell1: Array,
    log_bell2: Array,
    lf: Array,
    patience: int,
    axes: Array,
    kept: Array,
    gone: Array,
    changes: Array,
) -> int:
    """Merge the cheapest pair until one block is left or ``patience`` merges bring no new best; count them.

    Step ``s`` merged cluster ``gone[s]`` of axis ``axes[s]`` into ``kept[s]``, ``changes[s]`` the cost
    change of that step. Clusters keep the numbers of the start. All arguments but ``lf`` and the Bell tables
    are used up.
    """
    J1, J2 = T.shape
    transposed = T.T.copy()
    live1 = np.arange(J1)
    live2 = np.arange(J2)
    nearest1 = np.full(J1, -1, np.int64)
    nearest2 = np.full(J2, -1, np.int64)
    for h in range(J1 - 1):
        nearest1[h] = _nearest(live1, J1, h, D1)
    for h in range(J2 - 1):
        nearest2[h] = _nearest(live2, J2, h, D2)
    steps = 0
    total = 0.0
    lowest = 0.0
    since = 0
    while J1 > 1 or J2 > 1:
        a1, b1 = _cheapest(live1, J1, nearest1, D1)
        a2, b2 = _cheapest(live2, J2, nearest2, D2)
        grid = _log_grid(n_instances, J1 * J2)
        d1 = np.inf
        d2 = np.inf
        if a1 >= 0:
            d1 = D1[a1, b1] + log_bell1[J1 - 1] - log_bell1[J1]
            d1 += _log_grid(n_instances, (J1 - 1) * J2) - grid
        if a2 >= 0:
            d2 = D2[a2, b2] + log_bell2[J2 - 1] - log_bell2[J2]
            d2 += _log_grid(n_instances, J1 * (J2 - 1)) - grid
        if d1 <= d2:
            _merge_lines(a1, b1, T, transposed, N1, m1, live1, J1, nearest1, D1, live2, J2, nearest2, D2, lf)
            J1 -= 1
            axes[steps] = 0
            kept[steps] = a1
            gone[steps] = b1
            changes[steps] = d1
        else:
            _merge_lines(a2, b2, transposed, T, N2, m2, live2, J2, nearest2, D2, live1, J1, nearest1, D1, lf)
            J2 -= 1
            axes[steps] = 1
            kept[steps] = a2
            gone[steps] = b2
            changes[steps] = d2
        total += changes[steps]
        steps += 1
        if total < lowest - 1e-9:
            lowest = total
            since = 0
        else:
            since += 1
            if since >= patience:
                break
    return steps
