"""Recursive partition of a graph's nodes by balls (all nodes within r edges of a centre).

Costs are in bits and follow :mod:`damier.criteria.balls`. For a set S the balls of every centre, grown
inside S, are listed by :mod:`damier.search.balls.waves` with their size, label cost and a 64-bit fingerprint.
Balls are counted as sets: equal fingerprints, equal balls. What is kept for the choice is one line per ball
size: how many distinct balls have it, and the best of them.

The number given to a node decides ties (lower centre, then lower radius), so callers number the nodes in an
order that does not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from damier.criteria.balls import Prior, ball_label_cost, ball_split_cost, ball_unsplit_cost
from damier.criteria.special import gammaln
from damier.search.balls.memory import check_memory
from damier.search.balls.waves import WIDTH, BallList, list_balls
from damier.search.kernels import (
    CodeArray,
    FloatArray,
    IntArray,
    WordArray,
    allocating_inner,
    bare_kernel,
    kernel,
)
from damier.search.run import Run, Stopped

_BATCH = WIDTH
# Closer costs are equal: sums taken in another order (classes renamed) must not change the choice.
_TIE = 1e-9
_ONE = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Graph:
    """Neighbours of node v: ``indices[indptr[v]:indptr[v + 1]]``; symmetric, without loops."""

    indptr: IntArray
    indices: CodeArray


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """One group: its nodes, ascending, and its centre and radius when it is a ball, else -1 and -1."""

    members: IntArray
    centre: int
    radius: int


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """The groups, largest first, and the bits of the description with them and without."""

    groups: list[FoundGroup]
    cost: float
    null_cost: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A set to be split or kept, the bits to keep it, and where it was cut from.

    ``around`` is the graph of the set it was cut from, and ``ranks`` its nodes there: less to read than the
    whole graph.
    """

    group: FoundGroup
    counts: IntArray
    stay: float
    around: Graph
    ranks: IntArray


@dataclass(frozen=True, slots=True)
class _Ball:
    ranks: IntArray
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
    run: Run,
    n_centres: int | None = None,
    seed: int = 0,
) -> FoundPartition:
    """Split the nodes by the best ball, then both sides, for as long as it shortens the description.

    Parameters
    ----------
    graph : Graph
        The graph over all nodes.
    codes : array of int32
        Class of each node; -1 marks one without a label, which belongs to sets but to no class count.
    n_classes : int
        Number of classes.
    local : bool
        Whether balls are grown inside the set being split, or are those of the whole graph that it contains.
    prior : {"even", "paper"}
        The probability of "no split" against that of the balls.
    run : Run
        Its threads share the centres. Once it is stopped, sets not yet split are kept whole.
    n_centres : int or None, default=None
        With a number, each split chooses among the balls of so many centres of the set, drawn at random
        whatever the labels, as if there were no others; with None, among all.
    seed : int, default=0
        Seed of the draws.
    """
    n = codes.shape[0]
    random = np.random.default_rng(seed)
    log2_factorial: FloatArray = gammaln(np.arange(n + n_classes + 1) + 1.0) / np.log(2.0)

    def best_ball(part: _Waiting, inside: Graph) -> _Ball | None:
        members = part.group.members
        limits = _largest_radii(graph.indptr, graph.indices, members, local)
        bits = _bits_of_classes(codes[members], n_classes)
        search = partial(
            list_balls, inside.indptr, inside.indices, bits, part.counts, limits, log2_factorial, run.stop
        )
        centres = np.arange(len(members), dtype=np.int64)
        if n_centres is not None and n_centres < len(members):
            centres = np.sort(random.choice(centres, n_centres, replace=False, shuffle=False))
        return _best_ball(search, centres, inside, run)

    everyone = np.arange(n, dtype=np.int64)
    counts = _class_counts(codes, n_classes)
    null_cost = ball_unsplit_cost(counts, n, prior)
    waiting = [_Waiting(FoundGroup(everyone, -1, -1), counts, null_cost, graph, everyone)]
    groups: list[FoundGroup] = []
    total, so_far, n_settled = 0.0, null_cost, 0
    while waiting:
        part = waiting.pop()
        members, counts = part.group.members, part.counts
        ball = None
        # A pure set never gains by a split.
        if np.count_nonzero(counts) > 1 and not run.stopped:
            inside = induced(part.around, part.ranks)
            with suppress(Stopped):
                ball = best_ball(part, inside)
        if ball is not None:
            ball_counts = _class_counts(codes[members[ball.ranks]], n_classes)
            rest_counts = counts - ball_counts
            cost = ball_split_cost(ball_counts, rest_counts, ball.n_same_size, len(members), prior)
            if cost < part.stay - _TIE:
                naming = cost - ball_label_cost(ball_counts) - ball_label_cost(rest_counts)
                total += naming
                so_far += naming - part.stay
                outside = np.ones(len(members), dtype=bool)
                outside[ball.ranks] = False
                rest = np.flatnonzero(outside)
                for ranks, side_counts, centre, radius in (
                    (rest, rest_counts, -1, -1),
                    (ball.ranks, ball_counts, int(members[ball.centre]), ball.radius),
                ):
                    stay = ball_unsplit_cost(side_counts, len(ranks), prior)
                    so_far += stay
                    side = FoundGroup(members[ranks], centre, radius)
                    waiting.append(_Waiting(side, side_counts, stay, inside, ranks))
                continue
        groups.append(part.group)
        total += part.stay
        n_settled += len(members)
        if n_centres is None:
            level = 1.0 - so_far / null_cost if null_cost > 0.0 else 0.0
            run.report("splitting by balls", cost=so_far, level=level, done=n_settled, total=n)
    groups.sort(key=lambda found: (-len(found.members), int(found.members[0])))
    return FoundPartition(groups, total, null_cost)


def _best_ball(
    search: Callable[[IntArray], BallList], centres: IntArray, inside: Graph, run: Run
) -> _Ball | None:
    """Return the cheapest ball among those of the centres; larger first, then lower centre, on a tie."""
    m = len(inside.indptr) - 1
    n_of_size = np.zeros(m + 1, dtype=np.int64)
    best_cost = np.full(m + 1, np.inf)
    best_ball = np.zeros((m + 1, 2), dtype=np.int64)
    table = np.zeros(1024, dtype=np.uint64)
    n_in_table = 0
    batches = [centres[first : first + _BATCH] for first in range(0, len(centres), _BATCH)]
    for wave in range(0, len(batches), run.n_threads):
        some = batches[wave : wave + run.n_threads]
        # One batch runs here: handing a small set over to a thread would cost more than its search.
        lists = [search(some[0])] if len(some) == 1 else run.map(search, some)
        run.check()
        for balls, costs, hashes in lists:
            while 2 * (n_in_table + len(hashes)) > len(table):
                check_memory(3.0 * table.nbytes, f"The list of the distinct balls of {m} points")
                table = _enlarged(table)
            n_in_table += _tally(balls, costs, hashes, table, n_of_size, best_cost, best_ball)
    size = _cheapest_size(n_of_size, best_cost)
    if size == 0:
        return None
    centre, radius = (int(value) for value in best_ball[size])
    ranks = _ball_members(inside.indptr, inside.indices, centre, radius)
    return _Ball(ranks, centre, radius, int(n_of_size[size]))


def _class_counts(codes: CodeArray, n_classes: int) -> IntArray:
    return np.bincount(codes[codes >= 0], minlength=n_classes).astype(np.int64)


def induced(graph: Graph, members: IntArray) -> Graph:
    """Keep the edges between ``members`` (ascending), renumbered by rank."""
    if len(members) == len(graph.indptr) - 1:
        return graph
    return Graph(*_induce(graph.indptr, graph.indices, members))


@kernel
def _bits_of_classes(codes: CodeArray, n_classes: int) -> WordArray:
    """Nodes of each class, one column per class, one bit per node; node 0 is the lowest bit of word 0."""
    bits = np.zeros(((codes.shape[0] + 63) // 64, n_classes), dtype=np.uint64)
    for v in range(codes.shape[0]):
        if codes[v] >= 0:
            bits[v >> 6, codes[v]] |= _ONE << np.uint64(v & 63)
    return bits


@kernel
def _largest_radii(indptr: IntArray, indices: CodeArray, members: IntArray, local: bool) -> IntArray:
    """For each member the largest radius at which its ball in the whole graph stays within the members.

    No limit if ``local``, or if everyone is a member.
    """
    n = indptr.shape[0] - 1
    m = members.shape[0]
    radii = np.empty(m, dtype=np.int64)
    for i in range(m):
        radii[i] = m
    if local or m == n:
        return radii
    outside = np.empty(n - m, dtype=np.int64)
    i = 0
    for v in range(n):
        if i < m and members[i] == v:
            i += 1
        else:
            outside[v - i] = v
    distances = _distances_to(indptr, indices, outside)
    for i in range(m):
        radii[i] = distances[members[i]] - 1
    return radii


@kernel
def _induce(indptr: IntArray, indices: CodeArray, members: IntArray) -> tuple[IntArray, CodeArray]:
    """Edges between ``members`` (ascending), which are renumbered by rank."""
    rank = np.empty(indptr.shape[0] - 1, dtype=np.int32)
    for v in range(rank.shape[0]):
        rank[v] = -1
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


@allocating_inner
def _distances_to(indptr: IntArray, indices: CodeArray, sources: IntArray) -> IntArray:
    """Edges from each node to the nearest source; the number of nodes where no source can be reached."""
    n = indptr.shape[0] - 1
    distance = np.empty(n, dtype=np.int64)
    for v in range(n):
        distance[v] = n
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


@kernel
def _ball_members(indptr: IntArray, indices: CodeArray, centre: int, radius: int) -> IntArray:
    """Nodes within ``radius`` edges of the centre, ascending."""
    source = np.empty(1, dtype=np.int64)
    source[0] = centre
    distance = _distances_to(indptr, indices, source)
    n = distance.shape[0]
    members = np.empty(n, dtype=np.int64)
    size = 0
    for v in range(n):
        if distance[v] <= radius and distance[v] < n:
            members[size] = v
            size += 1
    return members[:size].copy()


@bare_kernel
def _tally(
    balls: CodeArray,
    costs: FloatArray,
    hashes: WordArray,
    table: WordArray,
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


@bare_kernel
def _cheapest_size(n_of_size: IntArray, best_cost: FloatArray) -> int:
    """Size of the ball that costs least, rank included; the largest on a tie, 0 where there is no ball."""
    least = np.inf
    for size in range(n_of_size.shape[0]):
        if n_of_size[size] > 0:
            least = min(least, best_cost[size] + np.log2(n_of_size[size]))
    for size in range(n_of_size.shape[0] - 1, 0, -1):
        if n_of_size[size] > 0 and best_cost[size] + np.log2(n_of_size[size]) <= least + _TIE:
            return size
    return 0


@kernel
def _enlarged(table: WordArray) -> WordArray:
    """Copy the fingerprints into a table of twice the places."""
    larger = np.zeros(2 * table.shape[0], dtype=np.uint64)
    mask = np.uint64(larger.shape[0] - 1)
    for key in table:
        if key != np.uint64(0):
            at = key & mask
            while larger[at] != np.uint64(0):
                at = (at + np.uint64(1)) & mask
            larger[at] = key
    return larger
