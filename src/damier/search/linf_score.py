"""Votes of decision lists of rectangles over many rows, compiled: the same to the last bit as with NumPy.

Rows are taken by blocks. In each member the rows not yet decided are projected, binned and looked up cover
by cover; those decided leave the block once they are many. Legend: b bins along an axis, m rows left in the
block.
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

_BLOCK = 4096


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
        packed.axis_signs,
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


@numba.njit(cache=True, nogil=True)
def _project(
    rows: SingleArray,
    m: int,
    first: int,
    last: int,
    columns: IntArray,
    signs: SingleArray,
    places: IntArray,
    shares: SingleArray,
    out: SingleArray,
) -> None:
    for i in range(m):
        out[i] = np.float32(0)
    for q in range(first, last):
        source = rows[columns[q]]
        place = places[q]
        if place >= 0:
            for i in range(m):
                out[i] += signs[q] * shares[place + np.int64(source[i])]
        elif signs[q] > 0:
            for i in range(m):
                out[i] += source[i]
        else:
            for i in range(m):
                out[i] -= source[i]


@numba.njit(cache=True, nogil=True)
def _bins(
    values: SingleArray, m: int, origin: np.float32, scale: np.float32, b: int, out: SmallArray
) -> None:
    last = np.int32(b - 1)
    for i in range(m):
        place = np.int32((values[i] - origin) * scale)
        place = max(place, np.int32(0))
        out[i] = min(place, last)


@numba.njit(cache=True, nogil=True)
def _settled(row: FloatArray, to_come: int) -> bool:
    """Tell whether the first class stays first: a member changes a difference of votes by one at most."""
    first, second = -1.0, -1.0
    for k in range(row.shape[0]):
        if row[k] > first:
            first, second = row[k], first
        elif row[k] > second:
            second = row[k]
    return first - second > to_come + 1e-6


@numba.njit(cache=True, nogil=True)
def _add_votes(
    encoded: SingleArray,
    member_starts: IntArray,
    n_bins: IntArray,
    origins: SingleArray,
    ends: SingleArray,
    scales: SingleArray,
    axis_starts: IntArray,
    axis_columns: IntArray,
    axis_signs: SingleArray,
    axis_shares: IntArray,
    shares: SingleArray,
    table_starts: IntArray,
    tables: npt.NDArray[np.int16],
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
    g = scores.shape[1]
    rows = np.empty((p, _BLOCK), np.float32)
    x = np.empty(_BLOCK, np.float32)
    y = np.empty(_BLOCK, np.float32)
    u = np.empty(_BLOCK, np.int32)
    v = np.empty(_BLOCK, np.int32)
    at = np.empty(_BLOCK, np.int64)
    undecided = np.empty(_BLOCK, np.bool_)
    least = np.empty(_BLOCK, np.float32)
    nearest = np.empty(_BLOCK, np.int64)
    one = np.float32(1)
    to_come = member_starts.shape[0] - 1
    for start in range(0, n_rows, _BLOCK):
        size = min(_BLOCK, n_rows - start)
        for member in range(to_come):
            if member_starts[member] == member_starts[member + 1]:
                for i in range(start, start + size):
                    for k in range(g):
                        scores[i, k] += no_cover_vote[k]
                continue
            m = size
            if stop_early and member > to_come // 2:
                m = 0
                for i in range(start, start + size):
                    if not _settled(scores[i], to_come - member):
                        at[m] = i
                        m += 1
                for j in range(p):
                    for i in range(m):
                        rows[j, i] = encoded[j, at[i]]
            else:
                for j in range(p):
                    rows[j, :size] = encoded[j, start : start + size]
                for i in range(size):
                    at[i] = start + i
            left = m
            for i in range(m):
                undecided[i] = True
            for cover in range(member_starts[member], member_starts[member + 1]):
                if left == 0:
                    break
                b = n_bins[cover]
                a = 2 * cover
                _project(
                    rows,
                    m,
                    axis_starts[a],
                    axis_starts[a + 1],
                    axis_columns,
                    axis_signs,
                    axis_shares,
                    shares,
                    x,
                )
                _project(
                    rows,
                    m,
                    axis_starts[a + 1],
                    axis_starts[a + 2],
                    axis_columns,
                    axis_signs,
                    axis_shares,
                    shares,
                    y,
                )
                _bins(x, m, origins[a], scales[a], b, u)
                _bins(y, m, origins[a + 1], scales[a + 1], b, v)
                table = tables[table_starts[cover] : table_starts[cover] + b * b]
                for i in range(m):
                    hit = table[u[i] * b + v[i]]
                    if hit < 0 or not undecided[i]:
                        continue
                    if not open_edges and (
                        x[i] < origins[a] or x[i] > ends[a] or y[i] < origins[a + 1] or y[i] > ends[a + 1]
                    ):
                        continue
                    undecided[i] = False
                    left -= 1
                    rectangle = rectangle_starts[cover] + hit
                    for k in range(g):
                        scores[at[i], k] += votes[rectangle, k]
                if 4 * left < 3 * m:
                    kept = 0
                    for i in range(m):
                        if undecided[i]:
                            at[kept] = at[i]
                            u[kept] = i
                            kept += 1
                    for j in range(p):
                        for i in range(kept):
                            rows[j, i] = rows[j, u[i]]
                    for i in range(kept):
                        undecided[i] = True
                    m = kept
            if left == 0:
                continue
            kept = 0
            for i in range(m):
                if undecided[i]:
                    at[kept] = at[i]
                    for j in range(p):
                        rows[j, kept] = rows[j, i]
                    kept += 1
            m = kept
            least[:m] = np.inf
            for cover in range(member_starts[member], member_starts[member + 1]):
                a = 2 * cover
                b32 = np.float32(n_bins[cover])
                _project(
                    rows,
                    m,
                    axis_starts[a],
                    axis_starts[a + 1],
                    axis_columns,
                    axis_signs,
                    axis_shares,
                    shares,
                    x,
                )
                _project(
                    rows,
                    m,
                    axis_starts[a + 1],
                    axis_starts[a + 2],
                    axis_columns,
                    axis_signs,
                    axis_shares,
                    shares,
                    y,
                )
                for i in range(m):
                    x[i] = (x[i] - origins[a]) * scales[a]
                    y[i] = (y[i] - origins[a + 1]) * scales[a + 1]
                    if open_edges:
                        x[i] = min(max(x[i], np.float32(0)), b32)
                        y[i] = min(max(y[i], np.float32(0)), b32)
                for r in range(rectangle_starts[cover], rectangle_starts[cover + 1]):
                    x0, x1 = rectangles[r, 0], rectangles[r, 1] + one
                    y0, y1 = rectangles[r, 2], rectangles[r, 3] + one
                    for i in range(m):
                        along = max(x0 - x[i], x[i] - x1)
                        across = max(y0 - y[i], y[i] - y1)
                        distance = max(along, across) / b32
                        if distance < least[i]:
                            least[i] = distance
                            nearest[i] = r
            for i in range(m):
                for k in range(g):
                    scores[at[i], k] += votes[nearest[i], k] * outside_vote
