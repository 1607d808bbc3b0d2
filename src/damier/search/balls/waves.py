"""The list of all balls of some centres, grown together: waves that run over the edges once per step.

Each node keeps one bit per centre, of up to 256 centres, that says whether the ball of the centre has reached
it; a step joins to the bits of a node those of its neighbours, so that one pass over the edges serves all the
centres. The bits are then turned, 64 by 64, into one row of nodes per centre, and what is new in it is
counted by class.

A list holds one row per ball, centre by centre and by radius within a centre: (size, centre, radius), the
bits of the labels in it and out, and a 64-bit fingerprint of its nodes: equal fingerprints, equal balls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.search.kernels import (
    GOLDEN,
    BoolArray,
    CodeArray,
    FlagArray,
    FloatArray,
    IntArray,
    WordArray,
    allocating_inner,
    count_bits,
    inner,
    kernel,
    mix,
)

BallList = tuple[CodeArray, FloatArray, WordArray]

WIDTH = 256  # centres per wave: four words per node

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_HALF = np.uint64(0x00000000FFFFFFFF)


@inner
def _mixed(word: Any, place: Any) -> Any:
    """Scatter a word of a row by its place. A fingerprint is the sum over the row, empty words aside."""
    return mix(word * (GOLDEN * np.uint64(2 * place + 1)))


@inner
def transpose(block: WordArray) -> None:
    """Swap, in place, bit i of word k with bit k of word i; 64 words."""
    half = 32
    mask = _LOW_HALF
    while half:
        shift = np.uint64(half)
        k = 0
        while k < 64:
            swapped = ((block[k] >> shift) ^ block[k + half]) & mask
            block[k] ^= swapped << shift
            block[k + half] ^= swapped
            k = (k + half + 1) & ~half
        half >>= 1
        mask ^= mask << np.uint64(half)


@inner
def _step(indptr: IntArray, indices: CodeArray, seen: WordArray, after: WordArray) -> None:
    """Join to the bits of each node those of its neighbours."""
    for w in range(indptr.shape[0] - 1):
        a = seen[w, 0]
        b = seen[w, 1]
        c = seen[w, 2]
        d = seen[w, 3]
        e = indptr[w]
        end = indptr[w + 1]
        # Four neighbours at a time, written out: in a loop the compiler would gather words one by one, five
        # times slower. Unsigned, an index is never counted from the end.
        while e + 3 < end and (a & b & c & d) != _ALL:
            p = np.uint64(indices[e])
            q = np.uint64(indices[e + 1])
            r = np.uint64(indices[e + 2])
            s = np.uint64(indices[e + 3])
            a |= seen[p, _NONE] | seen[q, _NONE] | seen[r, _NONE] | seen[s, _NONE]
            b |= seen[p, _ONE] | seen[q, _ONE] | seen[r, _ONE] | seen[s, _ONE]
            c |= seen[p, _TWO] | seen[q, _TWO] | seen[r, _TWO] | seen[s, _TWO]
            d |= seen[p, _THREE] | seen[q, _THREE] | seen[r, _THREE] | seen[s, _THREE]
            e += 4
        while e < end and (a & b & c & d) != _ALL:
            p = np.uint64(indices[e])
            a |= seen[p, _NONE]
            b |= seen[p, _ONE]
            c |= seen[p, _TWO]
            d |= seen[p, _THREE]
            e += 1
        after[w, 0] = a
        after[w, 1] = b
        after[w, 2] = c
        after[w, 3] = d


@allocating_inner
def _count_new(
    seen: WordArray,
    before: WordArray,
    class_bits: WordArray,
    growing: BoolArray,
    rows: WordArray,
    sizes: IntArray,
    in_ball: IntArray,
    fingerprints: WordArray,
) -> None:
    """Add to the growing balls what ``seen`` has and ``before`` had not: 64 nodes of 64 centres at a time."""
    m = seen.shape[0]
    n_centres, n_words = rows.shape
    n_classes = class_bits.shape[1]
    block = np.empty(64, dtype=np.uint64)
    for i in range(n_words):
        n_nodes = min(64, m - 64 * i)
        for q in range((n_centres + 63) // 64):
            changed = _NONE
            for k in range(n_nodes):
                block[k] = seen[64 * i + k, q]
                changed |= block[k] ^ before[64 * i + k, q]
            if changed == _NONE:
                continue
            for k in range(n_nodes, 64):
                block[k] = _NONE
            transpose(block)
            for k in range(min(64, n_centres - 64 * q)):
                c = 64 * q + k
                new = block[k] ^ rows[c, i]
                if new == _NONE or not growing[c]:
                    continue
                sizes[c] += count_bits(new)
                fingerprints[c] += _mixed(block[k], i) - _mixed(rows[c, i], i)
                for j in range(n_classes):
                    in_ball[c, j] += count_bits(new & class_bits[i, j])
                rows[c, i] = block[k]


@inner
def label_bits(in_ball: IntArray, counts: IntArray, log2_factorial: FloatArray) -> float:
    """Bits of the labels inside and outside a ball, less what is the same for every ball of the set."""
    n_classes = counts.shape[0]
    n_in = 0
    n_out = 0
    inside = 0.0
    outside = 0.0
    for j in range(n_classes):
        n_in += in_ball[j]
        n_out += counts[j] - in_ball[j]
        inside += log2_factorial[in_ball[j]]
        outside += log2_factorial[counts[j] - in_ball[j]]
    bits: float = log2_factorial[n_in + n_classes - 1] - inside
    bits += log2_factorial[n_out + n_classes - 1] - outside
    return bits


@allocating_inner
def _copied(balls: CodeArray, costs: FloatArray, hashes: WordArray, order: IntArray, room: int) -> BallList:
    """Copy the balls of a list in this order into one with ``room`` places."""
    # Loops: array expressions, and the messages of their errors, would take seconds to compile.
    new_balls = np.empty((room, 3), dtype=np.int32)
    new_costs = np.empty(room)
    new_hashes = np.empty(room, dtype=np.uint64)
    for i in range(order.shape[0]):
        for k in range(3):
            new_balls[i, k] = balls[order[i], k]
        new_costs[i] = costs[order[i]]
        new_hashes[i] = hashes[order[i]]
    return new_balls, new_costs, new_hashes


@kernel
def list_balls(
    indptr: IntArray,
    indices: CodeArray,
    class_bits: WordArray,
    counts: IntArray,
    limits: IntArray,
    log2_factorial: FloatArray,
    stop: FlagArray,
    centres: IntArray,
) -> BallList:
    """List the balls, smaller than the whole, of at most ``WIDTH`` centres, none beyond its largest radius.

    Parameters
    ----------
    indptr, indices : arrays
        Neighbours of each of the m nodes.
    class_bits : array of shape (n_words, n_classes)
        Nodes of each class, one bit per node; the first node is the lowest bit of the first word.
    counts : array of shape (n_classes,)
        Nodes of each class.
    limits : array of shape (m,)
        The largest radius at each node; -1 where there is no ball.
    log2_factorial : array
        As far as m + n_classes.
    stop : array of one uint8
        Once not zero, the waves stop, and the list is not complete.
    centres : array
        Nodes at the centres of the balls.
    """
    m = indptr.shape[0] - 1
    n_words, n_classes = class_bits.shape
    n_centres = centres.shape[0]
    seen = np.zeros((m, 4), dtype=np.uint64)
    after = np.zeros((m, 4), dtype=np.uint64)
    for q in range(n_centres >> 6, 4):  # places without a centre are full from the start
        full = _ALL << np.uint64(n_centres & 63) if q == n_centres >> 6 else _ALL
        for v in range(m):
            seen[v, q] = full
    growing = np.zeros(n_centres, dtype=np.bool_)
    for c in range(n_centres):
        seen[centres[c], c >> 6] |= _ONE << np.uint64(c & 63)
        growing[c] = limits[centres[c]] >= 0
    rows = np.zeros((n_centres, n_words), dtype=np.uint64)
    sizes = np.zeros(n_centres, dtype=np.int64)
    sizes_before = np.zeros(n_centres, dtype=np.int64)
    in_ball = np.zeros((n_centres, n_classes), dtype=np.int64)
    fingerprints = np.zeros(n_centres, dtype=np.uint64)
    found = np.empty((8 * n_centres, 3), dtype=np.int32)
    costs = np.empty(found.shape[0])
    hashes = np.empty(found.shape[0], dtype=np.uint64)
    n_found = 0
    n_of_centre = np.zeros(n_centres + 1, dtype=np.int64)
    radius = 0
    n_growing = n_centres
    while n_growing > 0 and stop[0] == 0:
        _count_new(seen, after, class_bits, growing, rows, sizes, in_ball, fingerprints)
        n_growing = 0
        for c in range(n_centres):
            growing[c] = growing[c] and sizes_before[c] < sizes[c] < m
            if not growing[c]:
                continue
            sizes_before[c] = sizes[c]
            if n_found == costs.shape[0]:
                found, costs, hashes = _copied(found, costs, hashes, np.arange(n_found), 2 * n_found)
            found[n_found, 0] = sizes[c]
            found[n_found, 1] = c
            found[n_found, 2] = radius
            costs[n_found] = label_bits(in_ball[c], counts, log2_factorial)
            hashes[n_found] = fingerprints[c]
            n_found += 1
            n_of_centre[c + 1] += 1
            growing[c] = radius < limits[centres[c]]
            n_growing += growing[c]
        if n_growing == 0:
            break
        radius += 1
        if radius == 1:
            # From the centres outwards: no need to run over all the edges.
            for v in range(m):
                for q in range(4):
                    after[v, q] = seen[v, q]
            for c in range(n_centres):
                bit = _ONE << np.uint64(c & 63)
                for e in range(indptr[centres[c]], indptr[centres[c] + 1]):
                    after[indices[e], c >> 6] |= bit
        else:
            _step(indptr, indices, seen, after)
        seen, after = after, seen
    # Found by radius; listed centre by centre.
    place = n_of_centre
    for c in range(n_centres):
        place[c + 1] += place[c]
    order = np.empty(n_found, dtype=np.int64)
    for k in range(n_found):
        c = found[k, 1]
        order[place[c]] = k
        place[c] += 1
        found[k, 1] = centres[c]
    listed: BallList = _copied(found, costs, hashes, order, n_found)
    return listed
