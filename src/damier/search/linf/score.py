"""Votes of decision lists of rectangles over many rows, compiled: the same to the last bit as with NumPy.

Rows are taken by blocks. In each member the rows are projected and tested against the rectangles cover by
cover; those decided leave the block once they are many. Sides of rectangles are whole numbers on the axis, so
that no row has to be binned. Legend: m rows left in the block, at their numbers, a axis, r rectangle.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from damier.search.kernels import kernel
from damier.search.linf.project import SmallArray

SingleArray = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rows of a block: enough for loops over those left late in a list to be worth starting.
_BLOCK = 8192
# Covers between two counts of the rows left.
_COVERS_COUNTED = 4
# Stands for no rectangle: greater than all, so that the first one wins by being least.
_NONE = np.int32(2**31 - 1)


def add_votes(encoded: SingleArray, packed: Any, scores: FloatArray, stop_early: bool = False) -> None:
    """Add the votes of every member to ``scores``, rows by classes.

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
    _add_votes(
        encoded,
        packed.member_starts,
        packed.n_bins,
        packed.origins,
        packed.scales,
        packed.axis_starts,
        packed.axis_columns,
        packed.axis_weights,
        packed.axis_shares,
        packed.shares,
        packed.rectangle_starts,
        packed.rectangles,
        packed.sides,
        packed.votes,
        packed.no_cover_vote,
        packed.swings,
        packed.open_edges,
        packed.outside_vote,
        stop_early,
        scores,
    )


# Sums are of whole numbers held exactly, so that a fused product changes nothing.
@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
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


@kernel
def _leave(
    source: SingleArray,
    m: int,
    at: SmallArray,
    decided: SmallArray,
    won: SmallArray,
    stay: SmallArray,
    target: SingleArray,
) -> int:
    """Write down what decided the rows; those not decided move to the front of the target: tell how many."""
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


@kernel
def _settled(row: FloatArray, swing: FloatArray) -> bool:
    """Tell whether the first class stays first: ``swing`` is the most that others can gain on each class."""
    first, second, k_first = -1.0, -1.0, 0
    for k in range(row.shape[0]):
        if row[k] > first:
            first, second, k_first = row[k], first, k
        elif row[k] > second:
            second = row[k]
    return bool(first - second > swing[k_first] + 1e-6)


@kernel
def _add_votes(
    encoded: SingleArray,
    member_starts: IntArray,
    n_bins: IntArray,
    origins: SingleArray,
    scales: SingleArray,
    axis_starts: IntArray,
    axis_columns: IntArray,
    axis_weights: SingleArray,
    axis_shares: IntArray,
    shares: SingleArray,
    rectangle_starts: IntArray,
    rectangles: SingleArray,
    sides: SingleArray,
    votes: FloatArray,
    no_cover_vote: FloatArray,
    swings: FloatArray,
    open_edges: bool,
    outside_vote: float,
    stop_early: bool,
    scores: FloatArray,
) -> None:
    p, n_rows = encoded.shape
    block = np.empty((p, _BLOCK), np.float32)  # rows of the block whose first class is not settled
    rows = np.empty((p, _BLOCK), np.float32)  # those of them that a member has not decided
    numbers = np.empty(_BLOCK, np.int32)
    at = np.empty(_BLOCK, np.int32)
    stay = np.empty(_BLOCK, np.int32)
    decided = np.empty(_BLOCK, np.int32)
    won = np.empty(_BLOCK, np.int32)
    x = np.empty(_BLOCK, np.float32)
    y = np.empty(_BLOCK, np.float32)
    least = np.empty(_BLOCK, np.float32)
    weight_of = np.empty(_BLOCK, np.float64)
    zero, one = np.float32(0), np.float32(1)
    n_members = member_starts.shape[0] - 1
    for start in range(0, n_rows, _BLOCK):
        n = min(n_rows - start, _BLOCK)
        for j in range(p):
            for i in range(n):
                block[j, i] = encoded[j, start + i]
        for i in range(n):
            numbers[i] = i
        for member in range(n_members):
            if stop_early and 2 * member > n_members:
                left = 0
                for i in range(n):
                    settled = _settled(scores[start + numbers[i]], swings[member])
                    decided[i] = 0 if settled else _NONE
                    left += not settled
                if 8 * left < 7 * n:
                    _leave(block, n, numbers, decided, won, stay, block)
                    n = left
            first, last = member_starts[member], member_starts[member + 1]
            if first == last:
                for i in range(n):
                    for k in range(scores.shape[1]):
                        scores[start + numbers[i], k] += no_cover_vote[k]
                continue
            m = n
            now = block
            for i in range(n):
                at[i] = i
                decided[i] = _NONE
                weight_of[i] = 1.0
            for cover in range(first, last):
                if m == 0:
                    break
                _project(now, m, 2 * cover, axis_starts, axis_columns, axis_weights, axis_shares, shares, x)
                _project(
                    now, m, 2 * cover + 1, axis_starts, axis_columns, axis_weights, axis_shares, shares, y
                )
                for r in range(rectangle_starts[cover], rectangle_starts[cover + 1]):
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
                        m = _leave(now, m, at, decided, won, stay, rows)
                        now = rows
            # Rows in no rectangle of this member: the nearest one decides.
            for i in range(m):
                least[i] = np.inf
                weight_of[at[i]] = outside_vote
            for cover in range(first, last):
                if m == 0:
                    break
                a = 2 * cover
                _project(rows, m, a, axis_starts, axis_columns, axis_weights, axis_shares, shares, x)
                _project(rows, m, a + 1, axis_starts, axis_columns, axis_weights, axis_shares, shares, y)
                width = np.float32(n_bins[cover])
                x_low, x_scale, y_low, y_scale = origins[a], scales[a], origins[a + 1], scales[a + 1]
                for i in range(m):
                    u, v = (x[i] - x_low) * x_scale, (y[i] - y_low) * y_scale
                    if open_edges:
                        u = zero if u < zero else u
                        v = zero if v < zero else v
                        u = width if u > width else u
                        v = width if v > width else v
                    x[i], y[i] = u, v
                for r in range(rectangle_starts[cover], rectangle_starts[cover + 1]):
                    x0, x1 = rectangles[r, 0], rectangles[r, 1] + one
                    y0, y1 = rectangles[r, 2], rectangles[r, 3] + one
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
                won[at[i]] = decided[i]
            for i in range(n):
                for k in range(scores.shape[1]):
                    scores[start + numbers[i], k] += votes[won[i], k] * weight_of[i]
