"""Balls grown with sets of nodes kept as bits, 64 nodes a word.

One breadth-first search a centre, as in :mod:`damier.search.balls`, but a layer is found by joining the
neighbour words of the nodes of the layer before, and counted word by word. Nodes numbered along a coordinate
have their neighbours in a few words, and dense graphs fill the words well: both are faster this way than node
by node, dense graphs several times. It needs a bit for each pair of nodes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_SIX = np.uint64(6)
_LOW_BITS = np.uint64(63)
_EVERY_2ND = np.uint64(0x5555555555555555)
_EVERY_4TH = np.uint64(0x3333333333333333)
_EVERY_8TH = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONE_A_BYTE = np.uint64(0x0101010101010101)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SHIFT_1 = np.uint64(1)
_SHIFT_2 = np.uint64(2)
_SHIFT_4 = np.uint64(4)
_SHIFT_27 = np.uint64(27)
_SHIFT_30 = np.uint64(30)
_SHIFT_31 = np.uint64(31)
_SHIFT_56 = np.uint64(56)
_SHIFT_58 = np.uint64(58)

# In words joined: what asking one node for a neighbour in the layer takes, measured; and how many nodes are
# joined between two looks at what is left.
_ASKING = 120.0
_CHECKED = 64

_PLACE_OF = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _PLACE_OF[((0x03F79D71B4CB0A89 << _bit) & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@numba.njit(cache=True, nogil=True)
def neighbour_bits(indptr: IntArray, indices: CodeArray) -> tuple[Words, IntArray]:
    """Neighbours of each node: as bits, the and the first and last-plus-one word that holds any."""
    m = indptr.shape[0] - 1
    n_words = (m + 63) // 64
    bits = np.zeros((m, n_words), dtype=np.uint64)
    spans = np.zeros((m, 2), dtype=np.int64)
    for v in range(m):
        low = n_words
        high = 0
        for e in range(indptr[v], indptr[v + 1]):
            word = indices[e] >> 6
            bits[v, word] |= _ONE << np.uint64(indices[e] & 63)
            low = min(low, word)
            high = max(high, word + 1)
        spans[v, 0] = min(low, high)
        spans[v, 1] = high
    return bits, spans


@numba.njit(cache=True, nogil=True, inline="always")
def _count(word: Any) -> Any:
    word = word - ((word >> _SHIFT_1) & _EVERY_2ND)
    word = (word & _EVERY_4TH) + ((word >> _SHIFT_2) & _EVERY_4TH)
    word = (word + (word >> _SHIFT_4)) & _EVERY_8TH
    return np.int64((word * _ONE_A_BYTE) >> _SHIFT_56)


@numba.njit(cache=True, nogil=True)
def _coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, a % b
    return a == 1


@numba.njit(cache=True, nogil=True)
def balls_by_bits(
    bits: Words,
    spans: IntArray,
    class_bits: Words,
    counts: IntArray,
    limits: IntArray,
    log2_factorial: FloatArray,
    first: int,
    last: int,
) -> tuple[IntArray, FloatArray, Words]:
    """List the balls, smaller than the whole, of centres ``first`` to ``last - 1``.

    Returns, a row a ball: (size, centre, radius), the bits of the labels in it and out, the fingerprint.
    """
    m, n_words = bits.shape
    n_classes = counts.shape[0]
    n_labeled = counts.sum()
    n_neighbours = 0
    for v in range(m):
        n_neighbours += spans[v, 1] - spans[v, 0]
    joining = 20.0 + n_neighbours / m  # in words: what joining the neighbours of a node takes, on average
    ball = np.zeros(n_words, dtype=np.uint64)
    layer = np.zeros(n_words, dtype=np.uint64)
    reached = np.zeros(n_words, dtype=np.uint64)
    in_ball = np.zeros(n_classes, dtype=np.int64)
    capacity = 8 * (last - first)
    balls = np.empty((capacity, 3), dtype=np.int64)
    costs = np.empty(capacity)
    hashes = np.empty(capacity, dtype=np.uint64)
    n_balls = 0
    for centre in range(first, last):
        if limits[centre] < 0:
            continue
        ball[:] = np.uint64(0)
        layer[:] = np.uint64(0)
        layer[centre >> 6] = _ONE << np.uint64(centre & 63)
        low = centre >> 6  # words that hold the ball, and those that hold the layer
        high = low + 1
        layer_low = low
        layer_high = high
        in_ball[:] = 0
        size = 0
        radius = 0
        while True:
            n_layer = 0
            # Slices, here and below, tell the compiler that no index is negative: it then takes several words
            # at once.
            new = layer[layer_low:layer_high]
            joined = ball[layer_low:layer_high]
            for i in range(new.shape[0]):
                n_layer += _count(new[i])
                joined[i] |= new[i]
            size += n_layer
            if n_layer == 0 or size == m:
                break
            for j in range(n_classes):
                n_j = 0
                of_class = class_bits[j, layer_low:layer_high]
                for i in range(new.shape[0]):
                    n_j += _count(new[i] & of_class[i])
                in_ball[j] += n_j
            fingerprint = np.uint64(0)
            whole = ball[low:high]
            for i in range(whole.shape[0]):
                word = whole[i] * (_SPREAD * np.uint64(2 * (low + i) + 1))
                word = (word ^ (word >> _SHIFT_30)) * _MIX_1
                word = (word ^ (word >> _SHIFT_27)) * _MIX_2
                fingerprint += word ^ (word >> _SHIFT_31)
            ball_labeled = 0
            inner = 0.0
            outer = 0.0
            for j in range(n_classes):
                ball_labeled += in_ball[j]
                inner += log2_factorial[in_ball[j]]
                outer += log2_factorial[counts[j] - in_ball[j]]
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
            balls[n_balls, 0] = size
            balls[n_balls, 1] = centre
            balls[n_balls, 2] = radius
            costs[n_balls] = (log2_factorial[ball_labeled + n_classes - 1] - inner) + (
                log2_factorial[n_labeled - ball_labeled + n_classes - 1] - outer
            )
            hashes[n_balls] = fingerprint
            n_balls += 1
            if radius == limits[centre]:
                break
            radius += 1
            # The next layer: join the neighbours of the last one, until going on reaches so few more nodes
            # that asking each of those left whether it has a neighbour in the layer is shorter.
            new_low = n_words
            new_high = 0
            n_joined = 0
            next_check = 0
            n_far_before = 0
            joined_before = 0
            # Words of a wide layer are taken here and there: neighbours of far nodes overlap less.
            n_layer_words = layer_high - layer_low
            step = 1
            if n_layer > 2 * _CHECKED:
                step = max(1, 618 * n_layer_words // 1000)
                while not _coprime(step, n_layer_words):
                    step += 1
            i = layer_low
            for _ in range(n_layer_words):
                i += step
                if i >= layer_high:
                    i -= n_layer_words
                if n_joined >= next_check:
                    n_far = 0
                    for k in range(n_words):
                        n_far -= _count(ball[k] | reached[k])
                    n_far += m
                    if n_far == 0:
                        break
                    if (
                        n_joined > 0
                        and (n_far_before - n_far) * _ASKING < (n_joined - joined_before) * joining
                        and n_far * _ASKING < (n_layer - n_joined) * joining
                    ):
                        n_joined = -1
                        break
                    n_far_before = n_far
                    joined_before = n_joined
                    next_check = n_joined + _CHECKED
                rest = layer[i]
                while rest != np.uint64(0):
                    bit = rest & (~rest + _ONE)
                    rest ^= bit
                    v = (i << 6) + _PLACE_OF[np.int64((bit * _DE_BRUIJN) >> _SHIFT_58)]
                    n_joined += 1
                    ours = reached[spans[v, 0] : spans[v, 1]]
                    theirs = bits[v, spans[v, 0] : spans[v, 1]]
                    for k in range(theirs.shape[0]):
                        ours[k] |= theirs[k]
                    if spans[v, 0] < spans[v, 1]:
                        new_low = min(new_low, spans[v, 0])
                        new_high = max(new_high, spans[v, 1])
            if n_joined < 0:
                for i in range(n_words):
                    rest = ~(ball[i] | reached[i])
                    if i == n_words - 1 and m & 63:
                        rest &= (_ONE << np.uint64(m & 63)) - _ONE
                    while rest != np.uint64(0):
                        bit = rest & (~rest + _ONE)
                        rest ^= bit
                        w = (i << 6) + _PLACE_OF[np.int64((bit * _DE_BRUIJN) >> _SHIFT_58)]
                        for k in range(max(layer_low, spans[w, 0]), min(layer_high, spans[w, 1])):
                            if bits[w, k] & layer[k]:
                                reached[i] |= bit
                                break
                new_low = 0
                new_high = n_words
            for i in range(layer_low, layer_high):
                layer[i] = np.uint64(0)
            for i in range(new_low, new_high):
                layer[i] = reached[i] & ~ball[i]
                reached[i] = np.uint64(0)
            layer_low = min(new_low, new_high)
            layer_high = new_high
            low = min(low, layer_low) if new_high > 0 else low
            high = max(high, layer_high)
    return balls[:n_balls].copy(), costs[:n_balls].copy(), hashes[:n_balls].copy()
