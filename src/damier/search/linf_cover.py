"""Rectangles that cover the bins of one class on a square matrix of bins (Wilkinson, "Linf", section 2.4).

Legend: ``own`` and ``other`` count the rows of the current class and of all others in each bin; a bin is
*blocked* when ``other > tolerance * own``, so that with tolerance zero rectangles hold pure and empty bins
only. A rectangle is ``(first, last)`` along x, then along y, both bins included.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def prefix_sums(matrix: IntArray, sums: IntArray) -> None:
    """Fill ``sums`` so that ``sums[i, j]`` adds up the first i rows and j columns of the matrix."""
    n_rows, n_columns = matrix.shape
    sums[0, :] = 0
    for i in range(n_rows):
        along = 0
        sums[i + 1, 0] = 0
        for j in range(n_columns):
            along += matrix[i, j]
            sums[i + 1, j + 1] = sums[i, j + 1] + along


@numba.njit(cache=True, nogil=True)
def inside(sums: IntArray, x0: int, x1: int, y0: int, y1: int) -> int:
    """Add up a rectangle, bins x0 .. x1 by y0 .. y1, from prefix sums."""
    return int(sums[x1 + 1, y1 + 1] - sums[x0, y1 + 1] - sums[x1 + 1, y0] + sums[x0, y0])


@numba.njit(cache=True, nogil=True)
def grow_rectangle(blocked: IntArray, i: int, j: int, first_side: int) -> tuple[int, int, int, int]:
    """Grow a rectangle around one bin, a side at a time in a spiral, until every side is stopped.

    ``blocked`` holds prefix sums of the blocked bins; ``first_side`` is the side the spiral starts with: 0 up
    (y grows), 1 right, 2 down, 3 left. The paper starts upward.
    """
    b = blocked.shape[0] - 1
    x0, x1, y0, y1 = i, i, j, j
    side = first_side
    stopped = 0
    while stopped < 4:
        moved = False
        if side == 0:
            if y1 + 1 < b and inside(blocked, x0, x1, y1 + 1, y1 + 1) == 0:
                y1 += 1
                moved = True
        elif side == 1:
            if x1 + 1 < b and inside(blocked, x1 + 1, x1 + 1, y0, y1) == 0:
                x1 += 1
                moved = True
        elif side == 2:
            if y0 > 0 and inside(blocked, x0, x1, y0 - 1, y0 - 1) == 0:
                y0 -= 1
                moved = True
        elif x0 > 0 and inside(blocked, x0 - 1, x0 - 1, y0, y1) == 0:
            x0 -= 1
            moved = True
        stopped = 0 if moved else stopped + 1
        side = (side + 1) % 4
    return x0, x1, y0, y1


@numba.njit(cache=True, nogil=True)
def cover_bins(
    own: IntArray, other: IntArray, tolerance: float, min_cover: float, first_side: int, rectangles: IntArray
) -> tuple[int, int]:
    """Cover a bin matrix greedily; write the rectangles, return their number and the rows they cover.

    The next rectangle is the one with the most rows of the class not yet covered, less the rows of other
    classes in it and in the bins that border it; it must hold more than ``min_cover`` such rows. What a bin
    grows into does not depend on what is covered, so every bin is grown once.
    """
    b = own.shape[0]
    blocked = np.empty((b, b), np.int64)
    for i in range(b):
        for j in range(b):
            blocked[i, j] = 1 if other[i, j] > tolerance * own[i, j] else 0
    sums = np.empty((b + 1, b + 1), np.int64)
    prefix_sums(blocked, sums)
    others = np.empty((b + 1, b + 1), np.int64)
    prefix_sums(other, others)
    grown = np.empty((b * b, 5), np.int64)
    n_grown = 0
    for i in range(b):
        for j in range(b):
            if own[i, j] == 0 or blocked[i, j] == 1:
                continue
            x0, x1, y0, y1 = grow_rectangle(sums, i, j, first_side)
            last = grown[n_grown - 1]
            if n_grown > 0 and last[0] == x0 and last[1] == x1 and last[2] == y0 and last[3] == y1:
                continue  # neighbours mostly grow into the same rectangle
            grown[n_grown, 0], grown[n_grown, 1], grown[n_grown, 2], grown[n_grown, 3] = x0, x1, y0, y1
            grown[n_grown, 4] = inside(
                others, max(0, x0 - 1), min(b - 1, x1 + 1), max(0, y0 - 1), min(b - 1, y1 + 1)
            )
            n_grown += 1
    left = own.copy()
    n_chosen = 0
    covered = 0
    while n_chosen < rectangles.shape[0]:
        prefix_sums(left, sums)
        best = -1
        best_worth = 0
        best_count = 0
        for r in range(n_grown):
            count = inside(sums, grown[r, 0], grown[r, 1], grown[r, 2], grown[r, 3])
            if count > min_cover and (best < 0 or count - grown[r, 4] > best_worth):
                best, best_worth, best_count = r, count - grown[r, 4], count
        if best < 0:
            break
        rectangles[n_chosen] = grown[best, :4]
        left[grown[best, 0] : grown[best, 1] + 1, grown[best, 2] : grown[best, 3] + 1] = 0
        n_chosen += 1
        covered += best_count
    return n_chosen, covered
