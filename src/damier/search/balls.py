"""Recursive partition of a graph's nodes by balls (all nodes within r edges of a centre).

Costs are in bits and follow :mod:`damier.criteria.balls`. For a set S every centre is visited by one
breadth-first search inside S, which yields the size, the class counts and a 64-bit fingerprint of each of its
balls. Balls are counted as sets: equal fingerprints, equal balls. What is kept for the choice is one line a
ball size: how many distinct balls have it, and the best of them.

The number given to a node decides ties (lower centre, then lower radius), so callers number the nodes in an
order that does not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic

import numba
import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from damier.criteria.balls import Prior, ball_label_cost, ball_split_cost, ball_unsplit_cost
from damier.search.ball_bits import balls_by_bits, neighbour_bits

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
HashArray = npt.NDArray[np.uint64]

Lister = Callable[[int, int], tuple[IntArray, FloatArray, HashArray]]

_BATCH = 256
_MOST_NODES_BY_BITS = 32768  # 128 megabytes of bits
_WORDS_WORTH_A_NEIGHBOUR = 8.0
# Closer costs are equal: sums taken in another order (classes renamed) must not change the choice.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Graph:
    """Neighbours of node v: ``indices[indptr[v]:indptr[v + 1]]``; symmetric, without loops."""

    indptr: IntArray
    indices: CodeArray


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """One part: its nodes, ascending, and its centre and radius when it is a ball, else -1 and -1."""

    members: IntArray
    centre: int
    radius: int


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """The parts, largest first, and the bits of the description with them and without.

    ``complete`` is False when the search was cut short.
    """

    groups: list[FoundGroup]
    cost: float
    null_cost: float
    complete: bool


@dataclass(frozen=True, slots=True)
class _Ball:
    members: IntArray
    centre: int
    radius: int
    n_same_size: int


def partition_by_balls(
    graph: Graph,
    codes: CodeArray,
    n_classes: int,
    *,
    local: bool,
    prior: Prior,
    n_threads: int = 1,
    time_limit: float | None = None,
) -> FoundPartition:
    """Split the nodes by the best ball, then both sides, for as long as it shortens the description.

    Parameters
    ----------
    graph : Graph
        The graph over all nodes.
    codes : array of int32
        Class of each node; -1 marks one without a label, which belongs to sets but weighs on no class count.
    n_classes : int
        Number of classes.
    local : bool
        Whether balls are grown inside the set being split, or are those of the whole graph that it contains.
    prior : {"even", "paper"}
        What "no split" weighs against the balls.
    n_threads : int, default=1
        Threads that share the centres; the result does not depend on it.
    time_limit : float or None, default=None
        Seconds after which, as after Ctrl-C, sets not yet looked at are kept whole.
    """
    n = codes.shape[0]
    words = _fingerprints(n)
    log2_factorial = gammaln(np.arange(n + n_classes + 1) + 1.0) / np.log(2.0)
    end = np.inf if time_limit is None else monotonic() + time_limit
    total = 0.0
    complete = True
    groups: list[FoundGroup] = []
    waiting = [FoundGroup(np.arange(n, dtype=np.int64), -1, -1)]
    with ThreadPoolExecutor(max_workers=max(1, n_threads)) as pool:
        while waiting:
            group = waiting.pop()
            members = group.members
            counts = _class_counts(codes[members], n_classes)
            stay = ball_unsplit_cost(counts, len(members), prior)
            ball = None
            complete = complete and monotonic() < end
            # A pure set never gains by a split.
            if complete and np.count_nonzero(counts) > 1:
                try:
                    inside = induced(graph, members)
                    limits = _no_limits(len(members)) if local else _contained(graph, members)
                    search = _lister(inside, codes[members], counts, words[members], limits, log2_factorial)
                    ball = _best_ball(search, inside, members, pool, n_threads)
                except KeyboardInterrupt:
                    complete = False
            if ball is not None:
                ball_counts = _class_counts(codes[ball.members], n_classes)
                rest_counts = counts - ball_counts
                cost = ball_split_cost(ball_counts, rest_counts, ball.n_same_size, len(members), prior)
                if cost < stay - _TIE:
                    total += cost - ball_label_cost(ball_counts) - ball_label_cost(rest_counts)
                    rest = np.setdiff1d(members, ball.members, assume_unique=True)
                    waiting.append(FoundGroup(rest, -1, -1))
                    waiting.append(FoundGroup(ball.members, ball.centre, ball.radius))
                    continue
            groups.append(group)
            total += stay
    groups.sort(key=lambda found: (-len(found.members), int(found.members[0])))
    null_cost = ball_unsplit_cost(_class_counts(codes, n_classes), n, prior)
    return FoundPartition(groups, total, null_cost, complete)


def _lister(
    inside: Graph,
    codes: CodeArray,
    counts: IntArray,
    words: HashArray,
    limits: IntArray,
    log2_factorial: FloatArray,
) -> Lister:
    """Choose how balls are listed: by bits where neighbours stand in few words, else node by node."""
    m = len(codes)
    if m <= _MOST_NODES_BY_BITS:
        bits, spans = neighbour_bits(inside.indptr, inside.indices)
        if np.mean(spans[:, 1] - spans[:, 0]) <= _WORDS_WORTH_A_NEIGHBOUR * (2 + inside.indptr[-1] / m):
            class_bits = _bits_of_classes(codes, len(counts))
            return partial(balls_by_bits, bits, spans, class_bits, counts, limits, log2_factorial)
    return partial(_balls_of, inside.indptr, inside.indices, codes, counts, words, limits, log2_factorial)


def _bits_of_classes(codes: CodeArray, n_classes: int) -> HashArray:
    """One row a class, a bit a node; the first node is the lowest bit of the first word."""
    member = np.zeros((n_classes, -(-len(codes) // 64) * 64), dtype=bool)
    labeled = np.flatnonzero(codes >= 0)
    member[codes[labeled], labeled] = True
    return np.packbits(member, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _best_ball(
    search: Lister,
    inside: Graph,
    members: IntArray,
    pool: ThreadPoolExecutor,
    n_threads: int,
) -> _Ball | None:
    """Return the cheapest ball among those of all centres; larger first, then lower centre, on a tie."""
    m = len(members)
    n_of_size = np.zeros(m + 1, dtype=np.int64)
    best_cost = np.full(m + 1, np.inf)
    best_ball = np.zeros((m + 1, 2), dtype=np.int64)
    table = np.zeros(1024, dtype=np.uint64)
    n_in_table = 0
    firsts = range(0, m, _BATCH)
    for wave in range(0, len(firsts), n_threads):
        batches = [(first, min(m, first + _BATCH)) for first in firsts[wave : wave + n_threads]]
        # One batch runs here: handing a small set over to a thread would cost more than its search.
        found = [search(*batches[0])] if len(batches) == 1 else list(pool.map(lambda b: search(*b), batches))
        for balls, costs, hashes in found:
            while 2 * (n_in_table + len(hashes)) > len(table):
                table = _enlarged(table)
            n_in_table += _tally(balls, costs, hashes, table, n_of_size, best_cost, best_ball)
    sizes = np.flatnonzero(n_of_size)[::-1]
    if len(sizes) == 0:
        return None
    bits = best_cost[sizes] + np.log2(n_of_size[sizes])
    size = sizes[np.argmax(bits <= bits.min() + _TIE)]
    centre, radius = (int(value) for value in best_ball[size])
    within = _ball_members(inside.indptr, inside.indices, centre, radius)
    return _Ball(members[within], int(members[centre]), radius, int(n_of_size[size]))


def _class_counts(codes: CodeArray, n_classes: int) -> IntArray:
    return np.bincount(codes[codes >= 0], minlength=n_classes).astype(np.int64)


def _fingerprints(n: int) -> HashArray:
    """One 64-bit word a node (splitmix64 of its number); a set's fingerprint is the XOR of its words."""
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def induced(graph: Graph, members: IntArray) -> Graph:
    """Keep the edges between ``members`` (ascending), renumbered by rank."""
    if len(members) == len(graph.indptr) - 1:
        return graph
    return Graph(*_induce(graph.indptr, graph.indices, members))


def _no_limits(m: int) -> IntArray:
    return np.full(m, m, dtype=np.int64)


def _contained(graph: Graph, members: IntArray) -> IntArray:
    """For each member the largest radius at which its ball in the whole graph stays within the members."""
    n = len(graph.indptr) - 1
    if len(members) == n:
        return _no_limits(n)
    outside = np.setdiff1d(np.arange(n, dtype=np.int64), members, assume_unique=True)
    distances: IntArray = _distances_to(graph.indptr, graph.indices, outside)
    return distances[members] - 1


@numba.njit(cache=True, nogil=True)
def _induce(indptr: IntArray, indices: CodeArray, members: IntArray) -> tuple[IntArray, CodeArray]:
    rank = np.full(indptr.shape[0] - 1, -1, dtype=np.int32)
    n_ends = 0
    for i in range(members.shape[0]):
        rank[members[i]] = i
        n_ends += indptr[members[i] + 1] - indptr[members[i]]
    starts = np.zeros(members.shape[0] + 1, dtype=np.int64)
    kept = np.empty(n_ends, dtype=np.int32)
    at = 0
    for i in range(members.shape[0]):
        for e in range(indptr[members[i]], indptr[members[i] + 1]):
            j = rank[indices[e]]
            if j >= 0:
                kept[at] = j
                at += 1
        starts[i + 1] = at
    return starts, kept[:at].copy()


@numba.njit(cache=True, nogil=True)
def _distances_to(indptr: IntArray, indices: CodeArray, sources: IntArray) -> IntArray:
    """Edges from each node to the nearest source; the number of nodes where no source can be reached."""
    n = indptr.shape[0] - 1
    distance = np.full(n, n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    tail = sources.shape[0]
    for i in range(tail):
        queue[i] = sources[i]
        distance[sources[i]] = 0
    head = 0
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(indptr[v], indptr[v + 1]):
            w = indices[e]
            if distance[w] == n:
                distance[w] = distance[v] + 1
                queue[tail] = w
                tail += 1
    return distance


@numba.njit(cache=True, nogil=True)
def _ball_members(indptr: IntArray, indices: CodeArray, centre: int, radius: int) -> IntArray:
    distance = _distances_to(indptr, indices, np.array([centre]))
    n = distance.shape[0]
    return np.flatnonzero((distance <= radius) & (distance < n))


@numba.njit(cache=True, nogil=True)
def _balls_of(
    indptr: IntArray,
    indices: CodeArray,
    codes: CodeArray,
    counts: IntArray,
    words: HashArray,
    limits: IntArray,
    log2_factorial: FloatArray,
    first: int,
    last: int,
) -> tuple[IntArray, FloatArray, HashArray]:
    """List the balls, smaller than the whole, of centres ``first`` to ``last - 1``.

    Returns, a row a ball: (size, centre, radius), the bits of the labels in it and out, the fingerprint.
    """
    m = indptr.shape[0] - 1
    n_classes = counts.shape[0]
    n_labeled = counts.sum()
    n_edges = indptr[m]
    queue = np.empty(m, dtype=np.int32)
    level = np.full(m, -1, dtype=np.int32)
    in_ball = np.zeros(n_classes, dtype=np.int64)
    capacity = 8 * (last - first)
    balls = np.empty((capacity, 3), dtype=np.int64)
    costs = np.empty(capacity)
    hashes = np.empty(capacity, dtype=np.uint64)
    n_balls = 0
    for centre in range(first, last):
        if limits[centre] < 0:
            continue
        queue[0] = centre
        level[centre] = 0
        tail = 1
        layer = 0  # where the outermost layer starts in the queue
        radius = 0
        in_ball[:] = 0
        fingerprint = words[centre]
        ball_labeled = 0
        if codes[centre] >= 0:
            in_ball[codes[centre]] = 1
            ball_labeled = 1
        while tail < m:
            if n_balls == capacity:
                more_balls = np.empty((2 * capacity, 3), dtype=np.int64)
                more_balls[:capacity] = balls
                balls = more_balls
                more_costs = np.empty(2 * capacity)
                more_costs[:capacity] = costs
                costs = more_costs
                more_hashes = np.empty(2 * capacity, dtype=np.uint64)
                more_hashes[:capacity] = hashes
                hashes = more_hashes
                capacity *= 2
            inner = 0.0
            outer = 0.0
            for j in range(n_classes):
                inner += log2_factorial[in_ball[j]]
                outer += log2_factorial[counts[j] - in_ball[j]]
            bits = log2_factorial[ball_labeled + n_classes - 1] - inner
            bits += log2_factorial[n_labeled - ball_labeled + n_classes - 1] - outer
            balls[n_balls, 0] = tail
            balls[n_balls, 1] = centre
            balls[n_balls, 2] = radius
            costs[n_balls] = bits
            hashes[n_balls] = fingerprint
            n_balls += 1
            if radius == limits[centre]:
                break
            # Next layer. From the frontier outwards, unless the frontier is so wide that looking for one
            # of its nodes from each unreached node is expected to end sooner.
            radius += 1
            frontier_edges = 0
            for q in range(layer, tail):
                frontier_edges += indptr[queue[q] + 1] - indptr[queue[q]]
            next_layer = tail
            if frontier_edges * frontier_edges > (m - tail) * n_edges:
                for w in range(m):
                    if level[w] >= 0:
                        continue
                    for e in range(indptr[w], indptr[w + 1]):
                        reached = level[indices[e]]
                        if reached >= 0 and reached < radius:
                            level[w] = radius
                            queue[tail] = w
                            tail += 1
                            break
            else:
                for q in range(layer, next_layer):
                    v = queue[q]
                    for e in range(indptr[v], indptr[v + 1]):
                        w = indices[e]
                        if level[w] < 0:
                            level[w] = radius
                            queue[tail] = w
                            tail += 1
            if tail == next_layer:
                break  # the rest is out of reach
            for q in range(next_layer, tail):
                w = queue[q]
                fingerprint ^= words[w]
                if codes[w] >= 0:
                    in_ball[codes[w]] += 1
                    ball_labeled += 1
            layer = next_layer
        for q in range(tail):
            level[queue[q]] = -1
    return balls[:n_balls].copy(), costs[:n_balls].copy(), hashes[:n_balls].copy()


@numba.njit(cache=True, nogil=True)
def _tally(
    balls: IntArray,
    costs: FloatArray,
    hashes: HashArray,
    table: HashArray,
    n_of_size: IntArray,
    best_cost: FloatArray,
    best_ball: IntArray,
) -> int:
    """Count the balls not seen before, by size, and keep the first cheapest of each size."""
    mask = np.uint64(table.shape[0] - 1)
    n_new = 0
    for i in range(balls.shape[0]):
        key = hashes[i]
        if key == np.uint64(0):
            key = np.uint64(1)  # zero marks a free place
        at = key & mask
        while table[at] != np.uint64(0) and table[at] != key:
            at = (at + np.uint64(1)) & mask
        if table[at] == key:
            continue
        table[at] = key
        n_new += 1
        size = balls[i, 0]
        n_of_size[size] += 1
        if costs[i] < best_cost[size] - _TIE:
            best_cost[size] = costs[i]
            best_ball[size, 0] = balls[i, 1]
            best_ball[size, 1] = balls[i, 2]
    return n_new


@numba.njit(cache=True, nogil=True)
def _enlarged(table: HashArray) -> HashArray:
    larger = np.zeros(2 * table.shape[0], dtype=np.uint64)
    mask = np.uint64(larger.shape[0] - 1)
    for key in table:
        if key != np.uint64(0):
            at = key & mask
            while larger[at] != np.uint64(0):
                at = (at + np.uint64(1)) & mask
            larger[at] = key
    return larger
