"""Rectangles that cover the bins of one class on a square matrix of bins (Wilkinson, "Linf", section 2.4).

Legend: ``own`` and ``other`` count the rows of the current class and of all others in each bin; their first
``b`` rows and columns are in use. A bin is *blocked* when ``other > tolerance * own``, so that with tolerance
zero rectangles hold pure and empty bins only. A rectangle is ``(first, last)`` along x, then along y, both
bins included. Loops stand where slices could be assigned: those take seconds to compile.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from damier.search.kernels import CodeArray, IntArray, count_bits, inner

# Rows handled at a time: what is worked out of them stays in the fastest cache.
BLOCK = 1024


class Space(NamedTuple):
    """Where bins are counted and covered: overwritten, and allocated once, as that takes time.

    ``counts`` holds the rows of other classes, then those of the current one, bin by bin; ``other`` and
    ``own`` are the same memory as matrices. ``caps`` are the rows of other classes that a bin may hold before
    it is blocked, ``places`` is for counting. Bits of ``blocked_x`` and ``blocked_y`` are set as
    `grow_rectangle` says, bit y of ``marked[x]`` where a bin is worth growing. ``left`` are the rows not yet
    covered, ``sums`` and ``others`` prefix sums, ``grown`` rectangles.
    """

    counts: CodeArray
    other: CodeArray
    own: CodeArray
    caps: CodeArray
    places: CodeArray
    blocked_x: IntArray
    blocked_y: IntArray
    marked: IntArray
    first: IntArray
    last: IntArray
    left: IntArray
    sums: IntArray
    others: IntArray
    grown: IntArray

    @classmethod
    def of(cls, b: int) -> Self:
        """Allocate for b bins per side at most."""

        def whole(*shape: int) -> IntArray:
            return np.zeros(shape, dtype=np.int64)

        counts = np.zeros(2 * b * b, dtype=np.int32)
        other, own = counts.reshape(2, b, b)
        return cls(
            counts=counts,
            other=other,
            own=own,
            caps=np.zeros(b * b, dtype=np.int32),
            places=np.zeros((2, BLOCK), dtype=np.int32),
            blocked_x=whole(b + 2),
            blocked_y=whole(b + 2),
            marked=whole(b),
            first=whole(b),
            last=whole(b),
            left=whole(b, b),
            sums=whole(b + 1, b + 1),
            others=whole(b + 1, b + 1),
            grown=whole(b * b, 5),
        )


@inner
def prefix_sums(matrix: IntArray, b: int, sums: IntArray) -> None:
    """Fill ``sums`` so that ``sums[i, j]`` adds up the first i rows and j columns of the matrix."""
    for j in range(b + 1):
        sums[0, j] = 0
    for i in range(b):
        along = 0
        sums[i + 1, 0] = 0
        for j in range(b):
            along += matrix[i, j]
            sums[i + 1, j + 1] = sums[i, j + 1] + along


@inner
def inside(sums: IntArray, x0: int, x1: int, y0: int, y1: int) -> int:
    """Add up a rectangle, bins x0 .. x1 by y0 .. y1, from prefix sums."""
    return int(sums[x1 + 1, y1 + 1] - sums[x0, y1 + 1] - sums[x1 + 1, y0] + sums[x0, y0])


@inner
def grow_rectangle(blocked_x: IntArray, blocked_y: IntArray, i: int, j: int) -> tuple[int, int, int, int]:
    """Grow a rectangle around one bin, a side at a time in a spiral, until every side is stopped.

    Bit y of ``blocked_x[x + 1]`` and bit x of ``blocked_y[y + 1]`` are set where a bin is blocked; the first
    and the last entry, beyond the matrix, have all bits set. The spiral goes up (y grows), right, down and
    left. A side that is stopped stays so, as the strip of bins it would take in only becomes longer.
    """
    x0, x1, y0, y1 = i, i, j, j
    width, height = np.int64(1) << i, np.int64(1) << j
    up, right, down, left = True, True, True, True
    while up or right or down or left:
        if up:
            up = blocked_y[y1 + 2] & width == 0
            if up:
                y1 += 1
                height |= np.int64(1) << y1
        if right:
            right = blocked_x[x1 + 2] & height == 0
            if right:
                x1 += 1
                width |= np.int64(1) << x1
        if down:
            down = blocked_y[y0] & width == 0
            if down:
                y0 -= 1
                height |= np.int64(1) << y0
        if left:
            left = blocked_x[x0] & height == 0
            if left:
                x0 -= 1
                width |= np.int64(1) << x0
    return x0, x1, y0, y1


@inner
def _lowest(word: int) -> int:
    """Place of the lowest bit that is set, counted from zero; there must be one."""
    bits = np.uint64(word)
    return count_bits(~bits & (bits - np.uint64(1)))  # type: ignore[no-any-return]


@inner
def _highest(word: int) -> int:
    """Place of the highest bit that is set, counted from one; zero if none is."""
    bits = np.uint64(word)
    bits |= bits >> np.uint64(1)
    bits |= bits >> np.uint64(2)
    bits |= bits >> np.uint64(4)
    bits |= bits >> np.uint64(8)
    bits |= bits >> np.uint64(16)
    bits |= bits >> np.uint64(32)
    return count_bits(bits)  # type: ignore[no-any-return]


@inner
def _mark_coverable(own: CodeArray, b: int, min_cover: float, space: Space) -> int:
    """Keep the bins marked that a rectangle of more than ``min_cover`` rows may hold; return their rows.

    A rectangle around a bin lies between the next blocked bins of its row and of its column: where these
    hold too few rows between them, so does the rectangle.
    """
    blocked_x, blocked_y, marked = space.blocked_x, space.blocked_y, space.marked
    first, last, sums = space.first, space.last, space.sums
    rows = 0
    for j in range(b):
        last[j] = -1
    for i in range(b):
        blocked, open_bins, kept = blocked_x[i + 1], marked[i], marked[i]
        start, end = 0, -1
        while open_bins != 0:
            j = _lowest(open_bins)
            bit = np.int64(1) << j
            open_bins ^= bit
            if j > end:
                start = _highest(blocked & (bit - 1))
                end = j + _lowest(blocked >> j) - 1
            if last[j] < i:
                along = blocked_y[j + 1]
                first[j] = _highest(along & ((np.int64(1) << i) - 1))
                last[j] = i + _lowest(along >> i) - 1
            if inside(sums, first[j], last[j], start, end) > min_cover:
                rows += own[i, j]
            else:
                kept ^= bit
        marked[i] = kept
    return rows


@inner
def cover_bins(
    own: CodeArray,
    other: CodeArray,
    b: int,
    tolerance: float,
    min_cover: float,
    most: int,
    space: Space,
    rectangles: IntArray,
) -> tuple[int, int]:
    """Cover a bin matrix greedily; write the rectangles, return their number and the rows they cover.

    The next rectangle is the one with the most rows of the class not yet covered, less the rows of other
    classes in it and in the bins that border it; it must hold more than ``min_cover`` such rows. What a bin
    grows into does not depend on what is covered, so every bin is grown once. Where no more than ``most``
    rows can be covered both may be zero.
    """
    # One bit per bin: 62 bins per side, 2 log2 n, stand for more rows than there are. Beyond the matrix all
    # is blocked.
    blocked_x, blocked_y, marked = space.blocked_x, space.blocked_y, space.marked
    left, sums, others, grown = space.left, space.sums, space.others, space.grown
    beyond = np.int64(-1) << b
    for k in range(b + 2):
        blocked_y[k] = beyond
    blocked_x[0] = blocked_x[b + 1] = blocked_y[0] = blocked_y[b + 1] = -1
    columns = blocked_y[1:]
    for i in range(b):
        blocked, held = beyond, np.int64(0)
        for j in range(b):
            left[i, j] = own[i, j]
            bit = np.int64(other[i, j] > tolerance * own[i, j])
            blocked |= bit << j
            columns[j] |= bit << i
            held |= np.int64(own[i, j] > 0) << j
        blocked_x[i + 1] = blocked
        marked[i] = held & ~blocked
    prefix_sums(left, b, sums)
    if _mark_coverable(own, b, min_cover, space) <= most:
        return 0, 0
    prefix_sums(other, b, others)
    n_grown = 0
    p0, p1, q0, q1 = -1, -1, -1, -1
    for i in range(b):
        for j in range(b):
            if (marked[i] >> j) & 1 == 0:
                continue
            x0, x1, y0, y1 = grow_rectangle(blocked_x, blocked_y, i, j)
            if x0 == p0 and x1 == p1 and y0 == q0 and y1 == q1:
                continue  # neighbours mostly grow into the same rectangle
            p0, p1, q0, q1 = x0, x1, y0, y1
            if inside(sums, x0, x1, y0, y1) <= min_cover:
                continue
            grown[n_grown, 0], grown[n_grown, 1], grown[n_grown, 2], grown[n_grown, 3] = x0, x1, y0, y1
            grown[n_grown, 4] = inside(
                others, max(0, x0 - 1), min(b - 1, x1 + 1), max(0, y0 - 1), min(b - 1, y1 + 1)
            )
            n_grown += 1
    n_chosen = 0
    covered = 0
    while n_chosen < rectangles.shape[0]:
        best = -1
        best_worth = 0
        best_count = 0
        kept = 0
        for r in range(n_grown):
            count = inside(sums, grown[r, 0], grown[r, 1], grown[r, 2], grown[r, 3])
            if count > min_cover:  # those that hold too few will not hold more
                if best < 0 or count - grown[r, 4] > best_worth:
                    best, best_worth, best_count = kept, count - grown[r, 4], count
                if kept < r:
                    for k in range(5):
                        grown[kept, k] = grown[r, k]
                kept += 1
        n_grown = kept
        if best < 0:
            break
        for side in range(4):
            rectangles[n_chosen, side] = grown[best, side]
        for i in range(grown[best, 0], grown[best, 1] + 1):
            for j in range(grown[best, 2], grown[best, 3] + 1):
                left[i, j] = 0
        prefix_sums(left, b, sums)
        n_chosen += 1
        covered += best_count
    return n_chosen, covered
