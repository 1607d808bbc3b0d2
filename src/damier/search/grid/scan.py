"""The scan every search on a grid rests on: the best cut of a run of rows, the other axes frozen."""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

import numpy as np

from damier.search.grid.state import TIE
from damier.search.kernels import BoolArray, CodeArray, FloatArray, inner


@inner
def best_cut(
    slots: CodeArray,
    classes: CodeArray,
    fresh: BoolArray,
    lo: int,
    hi: int,
    current: int,
    counts: CodeArray,
    sizes: CodeArray,
    logs: FloatArray,
    n_classes: int,
) -> tuple[float, int, float]:
    """Find the cheapest cut of the rows at positions lo .. hi-1 into a left and a right part.

    Returns the change of the cells' cost the best cut brings to the uncut part, its position (-1: no two
    values), and the change a cut at `current` brings. Row 0 of `counts` and `sizes` is the left part, row 1
    the right one; both are zero before and after.
    """
    for i in range(lo, hi):
        slot = np.int64(slots[i])
        sizes[1, slot] += 1
        counts[1, slot * n_classes + classes[i]] += 1
    change = 0.0
    best = np.inf
    best_at = np.int64(-1)
    at_current = 0.0
    for i in range(lo, hi):
        if fresh[i] and i > lo:
            if i == current:
                at_current = change
            if change < best - TIE:
                best = change
                best_at = np.int64(i)
        slot = np.int64(slots[i])
        cell = slot * n_classes + classes[i]
        n_left, n_right, c_left, c_right = sizes[0, slot], sizes[1, slot], counts[0, cell], counts[1, cell]
        change += logs[n_left + n_classes] - logs[n_right + n_classes - 1] + logs[c_right] - logs[c_left + 1]
        sizes[0, slot] = n_left + 1
        sizes[1, slot] = n_right - 1
        counts[0, cell] = c_left + 1
        counts[1, cell] = c_right - 1
    for i in range(lo, hi):
        slot = np.int64(slots[i])
        sizes[0, slot] = 0
        counts[0, slot * n_classes + classes[i]] = 0
    return best, best_at, at_current
