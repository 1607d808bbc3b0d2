"""Random projections onto two axes of small whole weights, and their bins (Wilkinson, "Linf", 2.2, 2.3).

Inputs are whole numbers (a scaled column times a unit), so that a projection is the same whatever the order
it is added up in, and fitting and scoring place every row in the same bin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from damier.search.kernels import CodeArray, FloatArray, IntArray, inner
from damier.search.linf.cover import BLOCK, Space, cover_bins, rows_alone


def most_weight(unit: int) -> int:
    """Return the largest sum of weights of an axis that is exact in the float32 of scoring.

    Whole numbers up to 2**24 are exact. A column lies within -1 .. 2 units, and the least training value of
    the axis, within -1 .. 1 units per weight, is subtracted from the sum: two units per weight at most.

    >>> most_weight(1 << 17)
    64
    """
    return (1 << 24) // (2 * unit)


@inner
def uniform(state: IntArray) -> float:
    """Draw from ]0, 1[ and advance the state: two multiplicative generators combined (L'Ecuyer, 1988).

    The state of a member is its own, so that the member depends on its seed alone, not on a thread. This is
    not the generator of `damier.search.kernels`: models, and published results, depend on what is drawn.
    """
    state[0] = state[0] * 40014 % 2147483563
    state[1] = state[1] * 40692 % 2147483399
    drawn = state[0] - state[1]
    if drawn < 1:
        drawn += 2147483562
    return float(drawn / 2147483563.0)


@inner
def separation(projected: FloatArray, n: int) -> float:
    """Distance of the first mean to the closest other of n (section 2.2.2); 0 if it is alone."""
    own = projected[0]
    # Four at a time: with many classes most of the time is spent on waiting for the last minimum.
    a, b, c, d = np.inf, np.inf, np.inf, np.inf
    whole = n - (n - 1) % 4
    for k in range(1, whole, 4):
        a = min(a, abs(projected[k] - own))
        b = min(b, abs(projected[k + 1] - own))
        c = min(c, abs(projected[k + 2] - own))
        d = min(d, abs(projected[k + 3] - own))
    for k in range(whole, n):
        a = min(a, abs(projected[k] - own))
    closest = min(min(a, b), min(c, d))
    return float(closest) if closest < np.inf else 0.0


@inner
def draw_axis(
    n_used: int,
    odds: FloatArray,
    means: FloatArray,
    n_means: int,
    n_steps: int,
    state: IntArray,
    order: IntArray,
    projected: FloatArray,
    weights: IntArray,
) -> float:
    """Draw weights -1, 0, 1 with ``n_used`` of them not 0; anneal the signs; return the separation.

    Columns are drawn without replacement in proportion to their ``odds``. ``means`` is columns x classes, the
    current class first, of which there are ``n_means``. ``order`` (as long as ``weights``) and ``projected``
    (as long as there are classes) are overwritten.
    """
    n_columns = weights.shape[0]
    total = 0.0
    for j in range(n_columns):
        order[j] = j
        weights[j] = 0
        total += odds[j]
    for used in range(n_used):
        target = uniform(state) * total
        at = used
        while at < n_columns - 1 and target >= odds[order[at]]:
            target -= odds[order[at]]
            at += 1
        total -= odds[order[at]]
        order[used], order[at] = order[at], order[used]
        weights[order[used]] = 1 if uniform(state) < 0.5 else -1
    for k in range(n_means):
        projected[k] = 0.0
    for used in range(n_used):
        weight, added = float(weights[order[used]]), means[order[used]]
        for k in range(n_means):
            projected[k] += weight * added[k]
    distance = separation(projected, n_means)
    for step in range(n_steps):
        j = order[int(uniform(state) * n_used)]
        change, moved = 2.0 * weights[j], means[j]
        for k in range(n_means):
            projected[k] -= change * moved[k]
        changed = separation(projected, n_means)
        # A worse sign is kept with a probability that falls to zero.
        if changed > distance or uniform(state) < 0.1 * (1.0 - (step + 1.0) / n_steps):
            distance = changed
            weights[j] = -weights[j]
        else:
            for k in range(n_means):
                projected[k] += change * moved[k]
    return float(distance)


@inner
def project(
    columns: CodeArray,
    shares: CodeArray,
    place: IntArray,
    n_rows: int,
    chosen: IntArray,
    weights: IntArray,
    limits: IntArray,
    at: int,
    out: CodeArray,
) -> None:
    """Add up the weighted columns of the first rows; the least and the greatest sum go to ``limits[at:]``.

    Column ``j`` is read from ``shares[place[j]]`` when it is categorical (``place[j] >= 0``).
    """
    low, high = np.int32(2147483647), np.int32(-2147483648)
    for start in range(0, n_rows, BLOCK):
        stop = min(n_rows, start + BLOCK)
        # Loops over slices start at zero: where an index could be negative they do not become vector code.
        part = out[start:stop]
        for i in range(stop - start):
            part[i] = 0
        for q in range(chosen.shape[0]):
            if weights[q] != 0:
                j = chosen[q]
                source = columns[j, start:stop] if place[j] < 0 else shares[place[j], start:stop]
                weight = np.int32(weights[q])
                for i in range(stop - start):
                    part[i] += weight * source[i]
        for i in range(stop - start):
            low = min(low, part[i])
            high = max(high, part[i])
    limits[at], limits[at + 1] = low, high


@inner
def bin_scale(low: int, high: int, n_bins: int) -> np.float32:
    """Bins per unit of a projection, in the precision that scoring uses too."""
    return np.float32(n_bins / (high - low + 1.0))


@inner
def bin_of(value: int, low: int, scale: np.float32, n_bins: int) -> int:
    """Bin of a projected value that is not below ``low``."""
    return min(int(np.float32(value - low) * scale), n_bins - 1)


@inner
def count_bins(
    x: CodeArray,
    y: CodeArray,
    limits: IntArray,
    n_rows: int,
    codes: CodeArray,
    current: int,
    b: int,
    space: Space,
    own: CodeArray,
    other: CodeArray,
) -> None:
    """Count the rows of the current class and of the others in b x b bins; limits are x's, then y's."""
    x_scale = bin_scale(limits[0], limits[1], b)
    y_scale = bin_scale(limits[2], limits[3], b)
    x_low, y_low, top = np.float32(limits[0]), np.float32(limits[2]), np.int32(b - 1)
    side, size, wanted = np.int32(b), np.int32(b * b), np.int32(current)
    counts, places = space.counts, space.places
    for k in range(2 * b * b):  # those of the others, then those of the current class
        counts[k] = 0
    for start in range(0, n_rows, BLOCK):
        stop = min(n_rows, start + BLOCK)
        x_part, y_part, held = x[start:stop], y[start:stop], codes[start:stop]
        for i in range(stop - start):  # as `bin_of`, in vector code of 32 bits
            u = min(np.int32((np.float32(x_part[i]) - x_low) * x_scale), top)
            v = min(np.int32((np.float32(y_part[i]) - y_low) * y_scale), top)
            place = np.int32(np.int32(u * side) + v)
            places[i] = np.int32(place + (size if held[i] == wanted else np.int32(0)))
        for i in range(stop - start):
            counts[places[i]] += 1
    for row in range(b):
        for column in range(b):
            own[row, column] = counts[(b + row) * b + column]
            other[row, column] = counts[row * b + column]


class View(NamedTuple):
    """The rows of a pass, those left first, as numbers.

    Parameters
    ----------
    columns : int32 array of shape (n_columns, n_rows)
        Numbers in fixed point; those of categorical columns are category codes and not read here.
    shares : int32 array of shape (n_categorical, n_rows)
        Categorical columns as shares of the current class, in fixed point.
    place : int64 array of shape (n_columns,)
        Where a column is in ``shares``, -1 for a numeric one.
    codes : int32 array of shape (n_rows,)
        Classes.
    chosen : int64 array of shape (width,)
        Columns that the weights of an axis belong to.
    xy : int32 array of shape (3, n_rows)
        What both axes add up to; the last row is for an axis under trial.
    most_weight : int
        Largest sum of weights of an axis.
    space : Space
        Where bins are counted and covered.
    """

    columns: CodeArray
    shares: CodeArray
    place: IntArray
    codes: CodeArray
    chosen: IntArray
    xy: CodeArray
    most_weight: int
    space: Space


class Projection(NamedTuple):
    """Two axes and the bins of the rows on them.

    ``axes`` holds the weights of the chosen columns, x before y; ``limits`` the least and the greatest sum
    along x, then along y; ``own`` and ``other`` count the rows of the current class and of others per bin.
    """

    axes: IntArray
    limits: IntArray
    own: CodeArray
    other: CodeArray


class Aim(NamedTuple):
    """What a pass looks for: the class, bins per side, tolerance, and the rows a rectangle must exceed."""

    current: int
    b: int
    tolerance: float
    least: float


@inner
def look(view: View, at: Projection, n_rows: int, aim: Aim) -> None:
    """Project the first rows onto both axes and count them in bins."""
    for a in range(2):
        project(
            view.columns,
            view.shares,
            view.place,
            n_rows,
            view.chosen,
            at.axes[a],
            at.limits,
            2 * a,
            view.xy[a],
        )
    count_bins(
        view.xy[0],
        view.xy[1],
        at.limits,
        n_rows,
        view.codes,
        aim.current,
        aim.b,
        view.space,
        at.own,
        at.other,
    )


@inner
def climb(
    view: View,
    at: Projection,
    n_rows: int,
    aim: Aim,
    n_steps: int,
    odds: FloatArray,
    state: IntArray,
    rectangles: IntArray,
) -> None:
    """Change one weight at a time, on each axis in turn, and keep what covers more of the first rows.

    Columns are drawn in proportion to their ``odds``; a weight goes one up or down, within -2 .. 2.
    ``rectangles`` is overwritten.
    """
    axes, limits, own, other, xy, b = at.axes, at.limits, at.own, at.other, view.xy, aim.b
    look(view, at, n_rows, aim)
    _, most = cover_bins(own, other, b, aim.tolerance, aim.least, 0, view.space, rectangles)
    total = 0.0
    for q in range(odds.shape[0]):
        total += odds[q]
    for step in range(n_steps):
        a = step % 2
        target = uniform(state) * total
        q = 0
        while q < odds.shape[0] - 1 and target >= odds[q]:
            target -= odds[q]
            q += 1
        before = axes[a, q]
        after = before + (1 if uniform(state) < 0.5 else -1)
        total_weight = abs(after) - abs(before)
        for k in range(odds.shape[0]):
            total_weight += abs(axes[a, k])
        if abs(after) > 2:
            after = 0
        elif total_weight == 0 or total_weight > view.most_weight:
            after = -before
        change = np.int32(after - before)
        j = view.chosen[q]
        source = view.columns[j] if view.place[j] < 0 else view.shares[view.place[j]]
        low, high = limits[2 * a], limits[2 * a + 1]
        first, last = np.int32(2147483647), np.int32(-2147483648)
        for i in range(n_rows):
            value = np.int32(xy[a, i] + change * source[i])
            xy[2, i] = value
            first = min(first, value)
            last = max(last, value)
        limits[2 * a], limits[2 * a + 1] = first, last
        count_bins(
            xy[2 * (1 - a)], xy[a + 1], limits, n_rows, view.codes, aim.current, b, view.space, own, other
        )
        covered = 0
        # No more can be covered than is alone in its bins.
        if rows_alone(own, other, b, aim.tolerance)[0] > most:
            _, covered = cover_bins(own, other, b, aim.tolerance, aim.least, most, view.space, rectangles)
        if covered > most:
            most = covered
            axes[a, q] = after
            for i in range(n_rows):
                xy[a, i] = xy[2, i]
        else:
            limits[2 * a], limits[2 * a + 1] = low, high
