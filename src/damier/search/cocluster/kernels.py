"""Kernels of the coclustering search: profiles, moves of values, splits of clusters.

The criterion is formula 5 of Boullé (2011). Both axes are treated by the same kernels: *this* axis is the
one whose values move, the *other* one is frozen. Symbols: ``T[k, j]`` instances of other cluster ``k`` and
this cluster ``j``; ``N[j]`` instances and ``m[j]`` values of cluster ``j``; ``lf[x]`` the logarithm of
``x!``. With ``log N_j!`` added to ``log C(N_j + m_j - 1, m_j - 1)`` a cluster costs ``lf[N_j + m_j - 1] -
lf[m_j - 1]``, a cell ``-lf[T]``; what depends on the numbers of clusters alone comes in as ``size[J]``.

The *profile* of a value is its row of counts over the other axis' clusters; it does not change while values
of this axis move, so it is counted once per phase (``count_profiles``). The criterion of one axis is that of
the axis engine (`damier.search.axis`); its moves are not used because here millions of entries are shared
among threads, and values move in batches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import (
    CodeArray,
    FlagArray,
    FloatArray,
    IntArray,
    bare_kernel,
    inner,
    kernel,
    log_factorial,
)

SideArray = npt.NDArray[np.int8]
SingleArray = npt.NDArray[np.float32]

# Counts for which `mean_move_costs` keeps what it has summed over the clusters.
_COUNTS_KEPT = 64


class Profiles(NamedTuple):
    """Values of this axis: profiles, instances, clusters.

    The profile of value ``v`` is ``cluster[e]``, ``counts[e]`` for ``e`` from ``start[v]`` on, ``lengths[v]``
    of them; ``totals[v]`` are its instances and ``labels[v]`` is its cluster. ``stop`` is not zero once work
    on them must end.
    """

    start: IntArray
    lengths: IntArray
    cluster: CodeArray
    counts: CodeArray
    totals: IntArray
    labels: CodeArray
    stop: FlagArray


class Clusters(NamedTuple):
    """Clusters of this axis, and the tables that price them: see the symbols above."""

    T: CodeArray
    N: IntArray
    m: IntArray
    size: FloatArray
    lf: FloatArray


@inner
def cluster_cost(lf: FloatArray, instances: int, values: int) -> float:
    """Price one cluster of ``values`` values and ``instances`` instances; an empty one costs nothing."""
    if values == 0:
        return 0.0
    return float(log_factorial(lf, instances + values - 1) - log_factorial(lf, values - 1))


@kernel
def count_profiles(
    first: int,
    last: int,
    start: IntArray,
    entries: CodeArray,
    counts: CodeArray,
    other_labels: CodeArray,
    n_other: int,
    lengths: IntArray,
    profile_cluster: CodeArray,
    profile_count: CodeArray,
) -> None:
    """Count the entries of values ``first`` to ``last`` over the other axis' ``n_other`` clusters.

    Value ``v`` occurs ``counts[e]`` times with value ``entries[e]`` of the other axis, whose cluster is
    ``other_labels[entries[e]]``, for ``e`` from ``start[v]`` to ``start[v + 1]``. Its profile goes to the
    last three arrays (see `Profiles`) and starts where its entries start, so that threads may share them.
    """
    count = np.zeros(n_other, np.int32)
    for v in range(first, last):
        begin = start[v]
        end = begin
        for e in range(begin, start[v + 1]):
            k = other_labels[entries[e]]
            if count[k] == 0:
                profile_cluster[end] = k
                end += 1
            count[k] += counts[e]
        for e in range(begin, end):
            k = profile_cluster[e]
            profile_count[e] = count[k]
            count[k] = 0
        lengths[v] = end - begin


@bare_kernel
def fill_cells(values: Profiles, T: CodeArray) -> None:
    """Add the profiles of each cluster's values to ``T`` (other clusters x clusters)."""
    for v in range(values.labels.shape[0]):
        j = values.labels[v]
        for e in range(values.start[v], values.start[v] + values.lengths[v]):
            T[values.cluster[e], j] += values.counts[e]


@bare_kernel
def fill_steps(first: int, last: int, T: CodeArray, lf: FloatArray, steps: SingleArray) -> None:
    """Tabulate ``lf[T + c] - lf[T]`` in float32 for c = 1 .. C, lines ``first`` to ``last`` of ``T``.

    Adding a value to every cluster at once is then a sum of contiguous vectors.
    """
    for c in range(steps.shape[0]):
        for k in range(first, last):
            for j in range(T.shape[1]):
                t = T[k, j]
                steps[c, k, j] = log_factorial(lf, t + c + 1) - log_factorial(lf, t)


@inner
def _leaving_gain(v: int, values: Profiles, clusters: Clusters, n_live: int) -> float:
    """Return what the rest costs less when value ``v`` leaves its cluster, apart from where it goes."""
    T, N, m, size, lf = clusters
    a = values.labels[v]
    begin = values.start[v]
    gain = cluster_cost(lf, N[a], m[a]) - cluster_cost(lf, N[a] - values.totals[v], m[a] - 1)
    if m[a] == 1:
        gain += size[n_live] - size[n_live - 1]
    for e in range(begin, begin + values.lengths[v]):
        t = T[values.cluster[e], a]
        gain -= log_factorial(lf, t) - log_factorial(lf, t - values.counts[e])
    return float(gain)


@kernel
def propose_moves(
    order: IntArray,
    first: int,
    last: int,
    values: Profiles,
    clusters: Clusters,
    steps: SingleArray,
    open_slot: int,
    n_live: int,
    proposals: CodeArray,
    margins: SingleArray,
) -> None:
    """Find the cluster that would take each of the values ``order[first:last]`` at least cost, -1 to stay.

    The state is only read: scores are summed in single precision, from the table of ``fill_steps``, and the
    choice is checked again in double precision when it is applied. ``open_slot`` is an empty cluster that may
    be opened, or -1; ``n_live`` clusters are not empty. ``proposals[i]`` receives the cluster for value
    ``order[i]`` and ``margins[v]`` what the best move would gain: far below zero, the value is settled.
    """
    T, N, m, size, lf = clusters
    J = T.shape[1]
    C = steps.shape[0]
    score = np.empty(J, np.float32)
    stay = np.empty(J, np.float64)
    for j in range(J):
        stay[j] = cluster_cost(lf, N[j], m[j])
    for i in range(first, last):
        v = order[i]
        a = values.labels[v]
        begin = values.start[v]
        n_v = values.totals[v]
        for j in range(J):
            if m[j] > 0:
                score[j] = stay[j] - cluster_cost(lf, N[j] + n_v, m[j] + 1)
            else:
                score[j] = -np.inf
        if open_slot >= 0 and m[a] > 1:
            score[open_slot] = size[n_live] - size[n_live + 1] - cluster_cost(lf, n_v, 1)
        for e in range(begin, begin + values.lengths[v]):
            k = values.cluster[e]
            c = values.counts[e]
            if c <= C:
                row = steps[c - 1, k]
                for j in range(J):
                    score[j] += row[j]
            else:
                for j in range(J):
                    t = T[k, j]
                    score[j] += np.float32(log_factorial(lf, t + c) - log_factorial(lf, t))
        score[a] = -np.inf
        best = 0
        for j in range(1, J):
            if score[j] > score[best]:
                best = j
        proposals[i] = -1
        margins[v] = -np.inf
        if score[best] == -np.inf:
            continue
        margins[v] = _leaving_gain(v, values, clusters, n_live) + score[best]
        # the single-precision sum is good to about 1e-6 of its size
        if margins[v] > -1e-3 - 2e-6 * abs(score[best]):
            proposals[i] = best


@bare_kernel
def apply_moves(
    order: IntArray,
    first: int,
    last: int,
    proposals: CodeArray,
    values: Profiles,
    clusters: Clusters,
    steps: SingleArray,
    n_live: int,
) -> tuple[float, int, int]:
    """Carry out, in order, the proposals that lower the true cost; (cost change, moves, clusters left).

    Parameters as in ``propose_moves``; the values, the clusters and the table of steps are kept up to date.
    """
    T, N, m, size, lf = clusters
    change = 0.0
    moved = 0
    for i in range(first, last):
        b = proposals[i]
        if b < 0:
            continue
        v = order[i]
        a = values.labels[v]
        begin = values.start[v]
        end = begin + values.lengths[v]
        n_v = values.totals[v]
        if m[b] == 0 and m[a] == 1:
            continue
        gain = _leaving_gain(v, values, clusters, n_live)
        gain += cluster_cost(lf, N[b], m[b]) - cluster_cost(lf, N[b] + n_v, m[b] + 1)
        if m[b] == 0:
            gain -= size[n_live + 1] - size[n_live]
        for e in range(begin, end):
            t = T[values.cluster[e], b]
            gain += log_factorial(lf, t + values.counts[e]) - log_factorial(lf, t)
        if gain <= 1e-6:
            continue
        if m[a] == 1:
            n_live -= 1
        if m[b] == 0:
            n_live += 1
        N[a] -= n_v
        m[a] -= 1
        N[b] += n_v
        m[b] += 1
        values.labels[v] = b
        for e in range(begin, end):
            k = values.cluster[e]
            T[k, a] -= values.counts[e]
            T[k, b] += values.counts[e]
            for j in (a, b):
                t = T[k, j]
                for c in range(steps.shape[0]):
                    steps[c, k, j] = log_factorial(lf, t + c + 1) - log_factorial(lf, t)
        change -= gain
        moved += 1
    return change, moved, n_live


@kernel
def redraw_labels(
    order: IntArray, values: Profiles, clusters: Clusters, n_live: int, noise: FloatArray
) -> None:
    """Take each value of ``order`` out and put it where cost less ``noise[i]`` is least, worse or not.

    With Gumbel noise times a temperature this draws the cluster with probability exp(-cost / temperature).
    Any empty cluster may be opened. Once ``values.stop`` is set the rest stay where they are.
    """
    T, N, m, size, lf = clusters
    J = T.shape[1]
    score = np.empty(J, np.float64)
    for i in range(order.shape[0]):
        if values.stop[0]:
            return
        v = order[i]
        a = values.labels[v]
        begin = values.start[v]
        end = begin + values.lengths[v]
        n_v = values.totals[v]
        N[a] -= n_v
        m[a] -= 1
        if m[a] == 0:
            n_live -= 1
        for e in range(begin, end):
            T[values.cluster[e], a] -= values.counts[e]
        for j in range(J):
            score[j] = noise[i, j] + cluster_cost(lf, N[j], m[j]) - cluster_cost(lf, N[j] + n_v, m[j] + 1)
            if m[j] == 0:
                score[j] += size[n_live] - size[n_live + 1]
        for e in range(begin, end):
            k = values.cluster[e]
            c = values.counts[e]
            for j in range(J):
                t = T[k, j]
                score[j] += log_factorial(lf, t + c) - log_factorial(lf, t)
        b = 0
        for j in range(1, J):
            if score[j] > score[b]:
                b = j
        if m[b] == 0:
            n_live += 1
        N[b] += n_v
        m[b] += 1
        values.labels[v] = b
        for e in range(begin, end):
            T[values.cluster[e], b] += values.counts[e]


class _Halves(NamedTuple):
    """The two sides of a cluster being split: instances by other cluster, instances, values."""

    cells: CodeArray
    instances: IntArray
    values: IntArray


@inner
def _put(v: int, to: int, sign: int, profiles: Profiles, halves: _Halves) -> None:
    """Count value ``v`` in side ``to`` (``sign`` 1), or no longer (-1)."""
    halves.instances[to] += sign * profiles.totals[v]
    halves.values[to] += sign
    for e in range(profiles.start[v], profiles.start[v] + profiles.lengths[v]):
        halves.cells[to, profiles.cluster[e]] += np.int32(sign) * profiles.counts[e]


@inner
def _cheaper_side(v: int, s: int, profiles: Profiles, halves: _Halves, lf: FloatArray) -> int:
    """Return the side where value ``v``, now in neither, costs less; side ``s`` where there is no telling."""
    cells, instances, values = halves
    o = 1 - s
    n_v = profiles.totals[v]
    d = cluster_cost(lf, instances[o] + n_v, values[o] + 1)
    d -= cluster_cost(lf, instances[o], values[o])
    d -= cluster_cost(lf, instances[s] + n_v, values[s] + 1)
    d += cluster_cost(lf, instances[s], values[s])
    for e in range(profiles.start[v], profiles.start[v] + profiles.lengths[v]):
        k = profiles.cluster[e]
        c = profiles.counts[e]
        low = cells[s, k]
        d += log_factorial(lf, low + c) - log_factorial(lf, low)
        low = cells[o, k]
        d -= log_factorial(lf, low + c) - log_factorial(lf, low)
    return o if d < -1e-9 else s


@inner
def _change_sides(
    order: IntArray, passes: int, profiles: Profiles, halves: _Halves, side: SideArray, lf: FloatArray
) -> None:
    """Let the values change sides while the cost falls, at most ``passes`` times; no side is left empty."""
    for _ in range(passes):
        changed = False
        for i in range(order.shape[0]):
            if profiles.stop[0]:
                return
            s = np.int64(side[i])
            if halves.values[s] == 1:
                continue
            _put(order[i], s, -1, profiles, halves)
            to = _cheaper_side(order[i], s, profiles, halves, lf)
            _put(order[i], to, 1, profiles, halves)
            side[i] = to
            changed |= to != s
        if not changed:
            break


@kernel
def split_clusters(
    first: int,
    last: int,
    member_start: IntArray,
    orders: IntArray,
    deals: SideArray,
    profiles: Profiles,
    clusters: Clusters,
    passes: int,
    sides: SideArray,
    changes: FloatArray,
) -> None:
    """Cut each of the clusters ``first`` to ``last`` in two, as well as a few local passes find.

    Try ``t`` takes the values of cluster ``j`` in the order ``orders[t, member_start[j]:member_start[j +
    1]]`` and deals them to two sides, on even tries as ``deals[t]`` says, on odd ones to the side where each
    costs less; then values change sides, ``passes`` times at most. ``changes`` receives the best cost change
    (cells and clusters; the term of the numbers of clusters left out), ``sides`` the side of each value, 0
    or 1. Both are of no use once ``profiles.stop`` is set.
    """
    T, N, _, _, lf = clusters
    K = T.shape[0]
    halves = _Halves(np.empty((2, K), np.int32), np.empty(2, np.int64), np.empty(2, np.int64))
    cells, instances, values = halves
    for j in range(first, last):
        start, stop = member_start[j], member_start[j + 1]
        n_members = stop - start
        changes[j] = np.inf
        if n_members < 2:
            continue
        before = cluster_cost(lf, N[j], n_members)
        for k in range(K):
            before -= log_factorial(lf, T[k, j])
        side = np.empty(n_members, np.int8)
        for t in range(orders.shape[0]):
            if profiles.stop[0]:
                return
            order = orders[t, start:stop]
            for s in range(2):
                instances[s] = 0
                values[s] = 0
                for k in range(K):
                    cells[s, k] = 0
            for i in range(n_members):
                if i < 2:
                    side[i] = i  # the first two values go apart
                elif t % 2 == 0:
                    side[i] = deals[t, order[i]]
                else:
                    side[i] = _cheaper_side(order[i], 0, profiles, halves, lf)
                _put(order[i], side[i], 1, profiles, halves)
            _change_sides(order, passes, profiles, halves, side, lf)
            after = cluster_cost(lf, instances[0], values[0]) + cluster_cost(lf, instances[1], values[1])
            for k in range(K):
                after -= log_factorial(lf, cells[0, k]) + log_factorial(lf, cells[1, k])
            if after - before < changes[j]:
                changes[j] = after - before
                for i in range(n_members):
                    sides[order[i]] = side[i]


@kernel
def mean_move_costs(values: Profiles, clusters: Clusters, typicality: FloatArray) -> None:
    """Write the mean cost of moving each value to another cluster, weighted by the clusters' instances.

    The number of clusters is taken to stay as it is, also for a value alone in its cluster.
    """
    T, N, m, _, lf = clusters
    K, J = T.shape
    everything = 0
    for j in range(J):
        everything += N[j]
    # what c instances in other cluster k gain, summed over all clusters of this axis: the same for all values
    gains = np.full((_COUNTS_KEPT, K), -1.0)
    for v in range(values.labels.shape[0]):
        a = values.labels[v]
        n_v = values.totals[v]
        leaving = cluster_cost(lf, N[a], m[a]) - cluster_cost(lf, N[a] - n_v, m[a] - 1)
        total = 0.0
        for j in range(J):
            if j != a:
                total += N[j] * (cluster_cost(lf, N[j] + n_v, m[j] + 1) - cluster_cost(lf, N[j], m[j]))
        for e in range(values.start[v], values.start[v] + values.lengths[v]):
            k = values.cluster[e]
            c = values.counts[e]
            t = T[k, a]
            leaving -= log_factorial(lf, t) - log_factorial(lf, t - c)
            gain = gains[c, k] if c < _COUNTS_KEPT else -1.0
            if gain < 0:
                gain = 0.0
                for j in range(J):
                    t = T[k, j]
                    gain += N[j] * (log_factorial(lf, t + c) - log_factorial(lf, t))
                if c < _COUNTS_KEPT:
                    gains[c, k] = gain
            t = T[k, a]
            total -= gain - N[a] * (log_factorial(lf, t + c) - log_factorial(lf, t))
        others = everything - N[a]
        typicality[v] = total / max(1, others) - leaving * (others > 0)
