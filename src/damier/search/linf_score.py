"""Votes of decision lists of rectangles over many rows, compiled: the same to the last bit as with NumPy.

Rows are taken by blocks. In each member the rows not yet decided are projected, binned and looked up cover
by cover; those decided leave the block once they are many. Legend: b bins along an axis, m rows left in the
block, at their numbers, a axis.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from damier.search.linf_project import SmallArray

SingleArray = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rows of a block: enough for loops over those left late in a list to be worth starting.
_BLOCK = 8192


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
        packed.ends,
        packed.scales,
        packed.axis_starts,
        packed.axis_columns,
        packed.axis_weights,
        packed.axis_shares,
        packed.shares,
        packed.table_starts,
        packed.tables,
        packed.rectangle_starts,
        packed.rectangles,
        packed.votes,
        packed.no_cover_vote,
        packed.open_edges,
        packed.outside_vote,
        stop_early,
        scores,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _project(
    rows: SingleArray,
    m: int,
    cover: int,
    starts: IntArray,
    columns: IntArray,
    weights: SingleArray,
    places: IntArray,
    shares: SingleArray,
    xy: SingleArray,
) -> None:
    """Add up the weighted columns of both axes of a cover, numeric ones two at a time."""
    for a in range(2):
        out = xy[a]
        for i in range(m):
            out[i] = np.float32(0)
        q = starts[2 * cover + a]
        last = starts[2 * cover + a + 1]
        while q < last:
            one, weight = rows[columns[q]], weights[q]
            if places[q] >= 0:
                for i in range(m):
                    out[i] += weight * shares[places[q] + np.int64(one[i])]
            elif q + 1 < last and places[q + 1] < 0:
                two, next_weight = rows[columns[q + 1]], weights[q + 1]
                for i in range(m):
                    out[i] += weight * one[i] + next_weight * two[i]
                q += 1
            else:
                for i in range(m):
                    out[i] += weight * one[i]
            q += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _settled(row: FloatArray, to_come: int) -> bool:
    """Tell whether the first class stays first: a member changes a difference of votes by one at most."""
    first, second = -1.0, -1.0
    for k in range(row.shape[0]):
        if row[k] > first:
            first, second = row[k], first
        elif row[k] > second:
            second = row[k]
    return first - second > to_come + 1e-6


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _leave(
    rows: SingleArray,
    m: int,
    at: IntArray,
    decided: SmallArray,
    stay: SmallArray,
    votes: FloatArray,
    scores: FloatArray,
) -> int:
    """Let the rows decided vote and leave the block; return how many stay."""
    kept = 0
    for i in range(m):
        r = decided[i]
        if r >= 0:
            for k in range(scores.shape[1]):
                scores[at[i], k] += votes[r, k]
        else:
            at[kept] = at[i]
            stay[kept] = i
            kept += 1
    for i in range(kept):
        decided[i] = -1
    for j in range(rows.shape[0]):
        column = rows[j]
        for i in range(kept):
            column[i] = column[stay[i]]
    return kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_votes(
    encoded: SingleArray,
    member_starts: IntArray,
    n_bins: IntArray,
    origins: SingleArray,
    ends: SingleArray,
    scales: SingleArray,
    axis_starts: IntArray,
    axis_columns: IntArray,
    axis_weights: SingleArray,
    axis_shares: IntArray,
    shares: SingleArray,
    table_starts: IntArray,
    tables: SmallArray,
    rectangle_starts: IntArray,
    rectangles: SingleArray,
    votes: FloatArray,
    no_cover_vote: FloatArray,
    open_edges: bool,
    outside_vote: float,
    stop_early: bool,
    scores: FloatArray,
) -> None:
    p, n_rows = encoded.shape
    rows = np.empty((p, _BLOCK), np.float32)
    xy = np.empty((2, _BLOCK), np.float32)
    x, y = xy[0], xy[1]
    spot = np.empty(_BLOCK, np.int32)
    at = np.empty(_BLOCK, np.int64)
    decided = np.empty(_BLOCK, np.int32)
    least = np.empty(_BLOCK, np.float32)
    zero, one = np.float32(0), np.float32(1)
    n_members = member_starts.shape[0] - 1
    for start in range(0, n_rows, _BLOCK):
        stop = min(n_rows, start + _BLOCK)
        for member in range(n_members):
            m = 0
            for i in range(start, stop):
                if not (stop_early and 2 * member > n_members and _settled(scores[i], n_members - member)):
                    at[m] = i
                    decided[m] = -1
                    m += 1
            if member_starts[member] == member_starts[member + 1]:
                for i in range(m):
                    for k in range(scores.shape[1]):
                        scores[at[i], k] += no_cover_vote[k]
                continue
            for j in range(p):
                for i in range(m):
                    rows[j, i] = encoded[j, at[i]]
            for cover in range(member_starts[member], member_starts[member + 1]):
                if m == 0:
                    break
                _project(rows, m, cover, axis_starts, axis_columns, axis_weights, axis_shares, shares, xy)
                a = 2 * cover
                b = np.int32(n_bins[cover])
                x_low, y_low, x_scale, y_scale = origins[a], origins[a + 1], scales[a], scales[a + 1]
                for i in range(m):
                    u = min(max(np.int32((x[i] - x_low) * x_scale), np.int32(0)), b - np.int32(1))
                    v = min(max(np.int32((y[i] - y_low) * y_scale), np.int32(0)), b - np.int32(1))
                    spot[i] = u * b + v
                if not open_edges:
                    for i in range(m):
                        if x[i] < x_low or x[i] > ends[a] or y[i] < y_low or y[i] > ends[a + 1]:
                            spot[i] = b * b  # a place of the table where no rectangle is
                table = tables[table_starts[cover] : table_starts[cover + 1]]
                first = np.int32(rectangle_starts[cover])
                left = np.int32(0)
                for i in range(m):  # no branches, so that it becomes vector code
                    hit = table[spot[i]]
                    before = decided[i]
                    now = first + hit if (before < 0) & (hit >= 0) else before
                    decided[i] = now
                    left += np.int32(now < 0)
                if 4 * left < 3 * m:
                    m = _leave(rows, m, at, decided, spot, votes, scores)
            m = _leave(rows, m, at, decided, spot, votes, scores)
            for i in range(m):
                least[i] = np.inf
            # Rows in no rectangle of this member: the nearest one decides.
            for cover in range(member_starts[member], member_starts[member + 1]):
                if m == 0:
                    break
                _project(rows, m, cover, axis_starts, axis_columns, axis_weights, axis_shares, shares, xy)
                a = 2 * cover
                width = np.float32(n_bins[cover])
                for i in range(m):
                    x[i] = (x[i] - origins[a]) * scales[a]
                    y[i] = (y[i] - origins[a + 1]) * scales[a + 1]
                    if open_edges:
                        x[i] = min(max(x[i], zero), width)
                        y[i] = min(max(y[i], zero), width)
                for r in range(rectangle_starts[cover], rectangle_starts[cover + 1]):
                    x0, x1 = rectangles[r, 0], rectangles[r, 1] + one
                    y0, y1 = rectangles[r, 2], rectangles[r, 3] + one
                    for i in range(m):
                        along = max(x0 - x[i], x[i] - x1)
                        across = max(y0 - y[i], y[i] - y1)
                        distance = max(along, across) / width
                        if distance < least[i]:
                            least[i] = distance
                            decided[i] = r
            for i in range(m):
                for k in range(scores.shape[1]):
                    scores[at[i], k] += votes[decided[i], k] * outside_vote
