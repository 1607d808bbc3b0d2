"""Votes of decision lists of rectangles over many rows, compiled: the same to the last bit as with NumPy.

Rows are taken by blocks. In each member the rows are projected and tested against the rectangles cover by
cover; those decided leave the block once they are many. Sides of rectangles are whole numbers on the axis, so
that no row has to be binned. Legend: m rows left in the block, a axis, r rectangle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import CodeArray, FloatArray, IntArray, compiled, inner, kernel
from damier.search.lowering import BARE, LOWERED

SingleArray = npt.NDArray[np.float32]
# `damier.models.linf.packed.PackedLists`, which searches do not import.
PackedLists = Any

# Rows of a block: enough for loops over those left late in a list to be worth starting.
_BLOCK = 8192
# Covers between two counts of the rows left.
_COVERS_COUNTED = 4
# Stands for no rectangle: greater than all, so that the first one wins by being least.
_NONE = np.int32(2**31 - 1)


class _Block(NamedTuple):
    """Rows of a block that a member has not decided, and what decided the others.

    Parameters
    ----------
    rows : float32 array of shape (p, _BLOCK)
        The rows left, once some have left.
    at : int32 array
        Where each of them is in the block.
    decided : int32 array
        Rectangle that decides each of them, `_NONE` before.
    won : int32 array
        Rectangle that decides each row of the block.
    stay, x, y
        Overwritten: rows that stay, sums along both axes.
    """

    rows: SingleArray
    at: CodeArray
    decided: CodeArray
    won: CodeArray
    stay: CodeArray
    x: SingleArray
    y: SingleArray


# Sums are of whole numbers held exactly, so that a fused product changes nothing.
@compiled(fastmath={"contract"}, **LOWERED, **BARE)
def _project(
    rows: SingleArray,
    m: int,
    a: int,
    starts: IntArray,
    columns: IntArray,
    weights: SingleArray,
    places: IntArray,
    shares: SingleArray,
    out: SingleArray,
) -> None:
    """Add up the weighted columns of an axis, numeric ones two at a time."""
    q, last = starts[a], starts[a + 1]
    fresh = True
    while q < last:
        one, weight = rows[columns[q]], weights[q]
        if places[q] >= 0:
            for i in range(m):
                value = weight * shares[places[q] + np.int64(one[i])]
                out[i] = value if fresh else out[i] + value
        else:
            # An odd column is added together with nothing of itself.
            two, other = one, np.float32(0)
            if q + 1 < last and places[q + 1] < 0:
                q += 1
                two, other = rows[columns[q]], weights[q]
            if fresh:
                for i in range(m):
                    out[i] = weight * one[i] + other * two[i]
            else:
                for i in range(m):
                    out[i] += weight * one[i] + other * two[i]
        fresh = False
        q += 1


@inner
def _leave(
    source: SingleArray,
    m: int,
    at: CodeArray,
    decided: CodeArray,
    won: CodeArray,
    stay: CodeArray,
    target: SingleArray,
) -> int:
    """Write down what decided the rows, move those not decided to the front of the target, count them."""
    kept = 0
    for i in range(m):  # no branches: which rows stay cannot be foreseen
        won[at[i]] = decided[i]
        at[kept] = at[i]
        stay[kept] = i
        kept += decided[i] == _NONE
    for i in range(kept):
        decided[i] = _NONE
    for j in range(source.shape[0]):
        before, after = source[j], target[j]
        for i in range(kept):
            after[i] = before[stay[i]]
    return kept


@inner
def _settled(row: FloatArray, swing: FloatArray) -> bool:
    """Whether the first class stays first: ``swing`` is the most that others can gain on each class."""
    first, second, k_first = -1.0, -1.0, 0
    for k in range(row.shape[0]):
        if row[k] > first:
            first, second, k_first = row[k], first, k
        elif row[k] > second:
            second = row[k]
    return bool(first - second > swing[k_first] + 1e-6)


@inner
def _hold(packed: PackedLists, member: int, rows: SingleArray, n: int, block: _Block) -> int:
    """Find the first rectangle of a member that holds each row; those in none are left in the block."""
    at, decided, x, y, sides = block.at, block.decided, block.x, block.y, packed.sides
    starts, columns, weights = packed.axis_starts, packed.axis_columns, packed.axis_weights
    places, shares = packed.axis_shares, packed.shares
    first, last = packed.member_starts[member], packed.member_starts[member + 1]
    m = n
    for i in range(n):
        at[i] = i
        decided[i] = _NONE
    for cover in range(first, last):
        if m == 0:
            break
        _project(rows, m, 2 * cover, starts, columns, weights, places, shares, x)
        _project(rows, m, 2 * cover + 1, starts, columns, weights, places, shares, y)
        for r in range(packed.rectangle_starts[cover], packed.rectangle_starts[cover + 1]):
            x0, x1, y0, y1 = sides[r, 0], sides[r, 1], sides[r, 2], sides[r, 3]
            number = np.int32(r)
            for i in range(m):  # no branches, so that it becomes vector code
                held = (x[i] >= x0) & (x[i] < x1) & (y[i] >= y0) & (y[i] < y1)
                found = number if held else _NONE
                before = decided[i]
                decided[i] = found if found < before else before
        if (cover - first) % _COVERS_COUNTED == _COVERS_COUNTED - 1 or cover == last - 1:
            undecided = np.int32(0)
            for i in range(m):
                undecided += np.int32(decided[i] == _NONE)
            if 2 * undecided < m or cover == last - 1:
                m = _leave(rows, m, at, decided, block.won, block.stay, block.rows)
                rows = block.rows
    return m


@inner
def _nearest(packed: PackedLists, member: int, m: int, block: _Block, least: SingleArray) -> None:
    """Find the nearest rectangle of a member for the rows left in the block, which none holds."""
    starts, columns, weights = packed.axis_starts, packed.axis_columns, packed.axis_weights
    places, shares = packed.axis_shares, packed.shares
    decided, x, y = block.decided, block.x, block.y
    zero, one = np.float32(0), np.float32(1)
    for i in range(m):
        least[i] = np.inf
    for cover in range(packed.member_starts[member], packed.member_starts[member + 1]):
        if m == 0:
            break
        _project(block.rows, m, 2 * cover, starts, columns, weights, places, shares, x)
        _project(block.rows, m, 2 * cover + 1, starts, columns, weights, places, shares, y)
        a, width = 2 * cover, np.float32(packed.n_bins[cover])
        x_low, x_scale = packed.origins[a], packed.scales[a]
        y_low, y_scale = packed.origins[a + 1], packed.scales[a + 1]
        for i in range(m):
            u, v = (x[i] - x_low) * x_scale, (y[i] - y_low) * y_scale
            if packed.open_edges:
                u = zero if u < zero else u
                v = zero if v < zero else v
                u = width if u > width else u
                v = width if v > width else v
            x[i], y[i] = u, v
        for r in range(packed.rectangle_starts[cover], packed.rectangle_starts[cover + 1]):
            x0, x1 = packed.rectangles[r, 0], packed.rectangles[r, 1] + one
            y0, y1 = packed.rectangles[r, 2], packed.rectangles[r, 3] + one
            number = np.int32(r)
            for i in range(m):
                along, across = x0 - x[i], y0 - y[i]
                beyond, above = x[i] - x1, y[i] - y1
                along = beyond if beyond > along else along
                across = above if above > across else across
                distance = (across if across > along else along) / width
                closer = distance < least[i]
                least[i] = distance if closer else least[i]
                decided[i] = number if closer else decided[i]
    for i in range(m):
        block.won[block.at[i]] = decided[i]


@kernel
def add_votes(encoded: SingleArray, packed: PackedLists, scores: FloatArray, stop_early: bool) -> None:
    """Add the votes of every member to ``scores``.

    Parameters
    ----------
    encoded : float32 array of shape (n_columns, n_rows)
    packed : PackedLists
        The lists of a model, as arrays.
    scores : float64 array of shape (n_rows, n_classes)
    stop_early : bool
        Leave a row alone once no member to come can change its first class: ``scores`` is then of use for its
        largest entry only.
    """
    p, n_rows = encoded.shape
    rows = np.empty((p, _BLOCK), np.float32)  # those of the block whose first class is not settled
    numbers = np.empty(_BLOCK, np.int32)
    weight_of = np.empty(_BLOCK, np.float64)
    least = np.empty(_BLOCK, np.float32)
    block = _Block(
        np.empty((p, _BLOCK), np.float32),
        np.empty(_BLOCK, np.int32),
        np.empty(_BLOCK, np.int32),
        np.empty(_BLOCK, np.int32),
        np.empty(_BLOCK, np.int32),
        np.empty(_BLOCK, np.float32),
        np.empty(_BLOCK, np.float32),
    )
    n_members = packed.member_starts.shape[0] - 1
    for start in range(0, n_rows, _BLOCK):
        n = min(n_rows - start, _BLOCK)
        for j in range(p):
            for i in range(n):
                rows[j, i] = encoded[j, start + i]
        for i in range(n):
            numbers[i] = i
        for member in range(n_members):
            if stop_early and 2 * member > n_members:
                left = 0
                for i in range(n):
                    settled = _settled(scores[start + numbers[i]], packed.swings[member])
                    block.decided[i] = 0 if settled else _NONE
                    left += not settled
                if 8 * left < 7 * n:
                    _leave(rows, n, numbers, block.decided, block.won, block.stay, rows)
                    n = left
            if packed.member_starts[member] == packed.member_starts[member + 1]:
                for i in range(n):
                    for k in range(scores.shape[1]):
                        scores[start + numbers[i], k] += packed.no_cover_vote[k]
                continue
            m = _hold(packed, member, rows, n, block)
            _nearest(packed, member, m, block, least)
            for i in range(n):
                weight_of[i] = 1.0
            for i in range(m):
                weight_of[block.at[i]] = packed.outside_vote
            for i in range(n):
                for k in range(scores.shape[1]):
                    scores[start + numbers[i], k] += packed.votes[block.won[i], k] * weight_of[i]
