"""Random projections onto two axes of unit weights: bins of what they show (Wilkinson, "Linf", 2.2, 2.3).

Inputs are whole numbers (a scaled column times a unit), so that a projection is the same whatever the order
it is added up in, and fitting and scoring place every row in the same bin.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SmallArray = npt.NDArray[np.int32]

# Rows projected at a time: the sum stays in the fastest cache while columns are added to it.
_BLOCK = 1024


@numba.njit(cache=True, nogil=True)
def uniform(state: IntArray) -> float:
    """Draw from ]0, 1[ and advance the state: two multiplicative generators combined (L'Ecuyer, 1988).

    Kernels carry their own generator so that a member depends on its seed alone, not on a thread.
    """
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    drawn = state[0] - state[1]
    if drawn < 1:
        drawn += 2147483562
    return float(drawn / 2147483563.0)


@numba.njit(cache=True, nogil=True)
def separation(projected: FloatArray, alive: IntArray, current: int) -> float:
    """Distance of the current class's mean to the closest other one (section 2.2.2); 0 if it is alone."""
    closest = np.inf
    for k in range(projected.shape[0]):
        if k != current and alive[k] > 0:
            closest = min(closest, abs(projected[k] - projected[current]))
    return float(closest) if closest < np.inf else 0.0


@numba.njit(cache=True, nogil=True)
def draw_axis(
    n_used: int,
    odds: FloatArray,
    means: FloatArray,
    alive: IntArray,
    current: int,
    n_steps: int,
    state: IntArray,
    weights: IntArray,
) -> float:
    """Draw weights -1, 0, 1 with ``n_used`` of them not 0; anneal the signs; return the separation.

    Columns are drawn without replacement in proportion to their ``odds``. ``means`` is classes x columns.
    """
    n_columns = weights.shape[0]
    order = np.arange(n_columns)
    weights[:] = 0
    total = odds.sum()
    for used in range(n_used):
        target = uniform(state) * total
        k = used
        while k < n_columns - 1 and target >= odds[order[k]]:
            target -= odds[order[k]]
            k += 1
        total -= odds[order[k]]
        order[used], order[k] = order[k], order[used]
        weights[order[used]] = 1 if uniform(state) < 0.5 else -1
    projected = np.zeros(means.shape[0])
    for k in range(means.shape[0]):
        for used in range(n_used):
            projected[k] += weights[order[used]] * means[k, order[used]]
    distance = separation(projected, alive, current)
    for step in range(n_steps):
        j = order[int(uniform(state) * n_used)]
        change = 2.0 * weights[j]
        for k in range(means.shape[0]):
            projected[k] -= change * means[k, j]
        changed = separation(projected, alive, current)
        # A worse sign is kept with a probability that falls to zero.
        if changed > distance or uniform(state) < 0.1 * (1.0 - (step + 1.0) / n_steps):
            distance = changed
            weights[j] = -weights[j]
        else:
            for k in range(means.shape[0]):
                projected[k] += change * means[k, j]
    return float(distance)


@numba.njit(cache=True, nogil=True)
def project(
    columns: SmallArray,
    shares: SmallArray,
    place: IntArray,
    n_rows: int,
    chosen: IntArray,
    weights: IntArray,
    out: SmallArray,
) -> tuple[int, int]:
    """Add up the weighted columns of the first rows; return the least and the greatest sum.

    Column ``j`` is read from ``shares[place[j]]`` when it is categorical (``place[j] >= 0``).
    """
    low, high = 2147483647, -2147483648
    for start in range(0, n_rows, _BLOCK):
        stop = min(n_rows, start + _BLOCK)
        out[start:stop] = 0
        for q in range(chosen.shape[0]):
            if weights[q] == 0:
                continue
            j = chosen[q]
            source = columns[j] if place[j] < 0 else shares[place[j]]
            if weights[q] > 0:
                for i in range(start, stop):
                    out[i] += source[i]
            else:
                for i in range(start, stop):
                    out[i] -= source[i]
        for i in range(start, stop):
            low = min(low, out[i])
            high = max(high, out[i])
    return low, high


@numba.njit(cache=True, nogil=True)
def bin_scale(low: int, high: int, n_bins: int) -> np.float32:
    """Bins per unit of a projection, in the precision that scoring uses too."""
    return np.float32(n_bins / (high - low + 1.0))


@numba.njit(cache=True, nogil=True)
def bin_of(value: int, low: int, scale: np.float32, n_bins: int) -> int:
    """Bin of a projected value that is not below ``low``."""
    return min(int(np.float32(value - low) * scale), n_bins - 1)


@numba.njit(cache=True, nogil=True)
def count_bins(
    x: SmallArray,
    y: SmallArray,
    limits: IntArray,
    n_rows: int,
    codes: SmallArray,
    current: int,
    own: IntArray,
    other: IntArray,
) -> None:
    """Count the rows of the current class and of the others in each bin; limits are x's, then y's."""
    b = own.shape[0]
    x_scale = bin_scale(limits[0], limits[1], b)
    y_scale = bin_scale(limits[2], limits[3], b)
    own[:] = 0
    other[:] = 0
    for i in range(n_rows):
        u = bin_of(x[i], limits[0], x_scale, b)
        v = bin_of(y[i], limits[2], y_scale, b)
        if codes[i] == current:
            own[u, v] += 1
        else:
            other[u, v] += 1
