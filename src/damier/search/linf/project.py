"""Random projections onto two axes of small whole weights, and their bins (Wilkinson, "Linf", 2.2, 2.3).

Inputs are whole numbers (a scaled column times a unit), so that a projection is the same whatever the order
it is added up in, and fitting and scoring place every row in the same bin.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from damier.search.kernels import CodeArray, FloatArray, IntArray, inner
from damier.search.linf.cover import BLOCK, Space, cover_bins

# Rows counted before it is asked whether to go on.
_PART = 256


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
    # Unsigned: a remainder in the sense of Python takes longer.
    state[0] = np.int64(np.uint64(state[0] * 40014) % np.uint64(2147483563))
    state[1] = np.int64(np.uint64(state[1] * 40692) % np.uint64(2147483399))
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


class Aim(NamedTuple):
    """What a pass looks for: the class, bins per side, tolerance, and the rows a rectangle must exceed."""

    current: int
    b: int
    tolerance: float
    least: float


@inner
def write_places(values: CodeArray, low: int, high: int, b: int, step: int, out: CodeArray) -> None:
    """Write the bin of every value times ``step``; as `bin_of`, in vector code of 32 bits."""
    origin, scale = np.float32(low), bin_scale(low, high, b)
    top, times = np.int32(b - 1), np.int32(step)
    for i in range(out.shape[0]):
        out[i] = np.int32(min(np.int32((np.float32(values[i]) - origin) * scale), top) * times)


@inner
def count_bins(
    x: CodeArray, y: CodeArray, limits: IntArray, n_rows: int, codes: CodeArray, aim: Aim, space: Space
) -> None:
    """Count the rows of the current class and of the others in b x b bins; limits are x's, then y's."""
    b, side, area = aim.b, space.own.shape[0], space.caps.shape[0]
    for k in range(b * side):
        space.counts[k] = 0
        space.counts[area + k] = 0
    for start in range(0, n_rows, BLOCK):
        stop = min(n_rows, start + BLOCK)
        across, along = space.places[0, : stop - start], space.places[1, : stop - start]
        write_places(x[start:stop], limits[0], limits[1], b, side, across)
        write_places(y[start:stop], limits[2], limits[3], b, 1, along)
        held = codes[start:stop]
        for i in range(stop - start):
            place = across[i] + along[i] + (area if held[i] == aim.current else 0)
            space.counts[np.uint64(place)] += 1  # unsigned, or it would be tested for counting from the end


@inner
def _rows_alone(space: Space, size: int) -> int:
    """Count the rows of the current class in the bins that are not blocked."""
    others, own, caps = space.counts[:size], space.counts[space.caps.shape[0] :], space.caps
    held = np.int32(0)
    for k in range(size):
        held += own[k] if others[k] <= caps[k] else np.int32(0)
    return int(held)


@inner
def count_apart(
    values: CodeArray,
    low: int,
    high: int,
    step: int,
    fixed: CodeArray,
    n_own: int,
    aim: Aim,
    enough: float,
    space: Space,
) -> int:
    """Count rows in bins, the first ``n_own`` of which are of the current class; return those alone.

    ``fixed`` holds the places of the rows along one axis, ``values`` what they add up to along the other.
    Bins that are blocked by some rows stay blocked: where no more than ``enough`` rows can be alone the
    others are not counted, and the number is too large.
    """
    n, b, area = values.shape[0], aim.b, space.caps.shape[0]
    size = b * space.own.shape[0]
    others, own, caps, places = space.counts[:area], space.counts[area:], space.caps, space.places[0]
    for k in range(size):
        others[k] = 0
        own[k] = 0
    held, start = n_own, 0
    while start < n and held > enough:
        # Own rows first, by themselves.
        stop = min(start + _PART, n_own if start < n_own else n)
        part, moved = fixed[start:stop], places[: stop - start]
        write_places(values[start:stop], low, high, b, step, moved)
        counts = own if start < n_own else others
        for i in range(stop - start):
            counts[np.uint64(moved[i] + part[i])] += 1
        start = stop
        if stop == n_own:
            for k in range(size):
                caps[k] = np.int32(aim.tolerance * own[k])
        elif stop > n_own:
            held = _rows_alone(space, size)
    return held


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


class Sample(NamedTuple):
    """The first rows of a pass, on which projections are ranked and improved; the current class's come first.

    Parameters
    ----------
    seen : View
        The rows, with the chosen columns alone, all of them numbers.
    places : int32 array of shape (2, n_rows)
        Bins along both axes; those along x times the bins of a side.
    tried : int64 array of shape (2, width, 5)
        After how many changes each weight, -2 .. 2, was tried last.
    """

    seen: View
    places: CodeArray
    tried: IntArray

    @classmethod
    def of(cls, view: View, n_rows: int) -> Self:
        """Allocate for so many of the rows that are looked at."""
        width = len(view.chosen)
        return cls(
            seen=view._replace(
                columns=np.zeros((width, n_rows), dtype=np.int32),
                place=np.full(width, -1),
                codes=np.zeros(n_rows, dtype=np.int32),
                chosen=np.arange(width),
                xy=np.zeros((3, n_rows), dtype=np.int32),
            ),
            places=np.zeros((2, n_rows), dtype=np.int32),
            tried=np.zeros((2, width, 5), dtype=np.int64),
        )


@inner
def gather(view: View, n_rows: int, current: int, sample: Sample) -> int:
    """Copy the chosen columns of the first rows, own rows first; return the number of these."""
    order, n_own = sample.seen.codes, 0  # there is no other use for these codes
    for i in range(n_rows):
        n_own += view.codes[i] == current
    first, last = 0, n_own
    for i in range(n_rows):
        own = view.codes[i] == current
        order[first if own else last] = i
        first += own
        last += not own
    for q in range(view.chosen.shape[0]):
        j = view.chosen[q]
        source = view.columns[j] if view.place[j] < 0 else view.shares[view.place[j]]
        target = sample.seen.columns[q]
        for i in range(n_rows):
            target[i] = source[np.uint64(order[i])]
    return n_own


class Projection(NamedTuple):
    """Two axes, the weights of the chosen columns, x before y; the least and greatest sum along x, then y."""

    axes: IntArray
    limits: IntArray


@inner
def project_both(view: View, at: Projection, n_rows: int) -> None:
    """Project the first rows onto both axes."""
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


@inner
def look(view: View, at: Projection, n_rows: int, aim: Aim) -> None:
    """Project the first rows onto both axes and count them in bins."""
    project_both(view, at, n_rows)
    count_bins(view.xy[0], view.xy[1], at.limits, n_rows, view.codes, aim, view.space)


@inner
def look_apart(sample: Sample, at: Projection, n_own: int, n_rows: int, aim: Aim, enough: float) -> int:
    """Project a sample and count it in bins; return the rows alone, too many where not above ``enough``."""
    view, limits = sample.seen, at.limits
    project_both(view, at, n_rows)
    side, x, y = view.space.own.shape[0], view.xy[0, :n_rows], view.xy[1, :n_rows]
    fixed = sample.places[0, :n_rows]
    write_places(x, limits[0], limits[1], aim.b, side, fixed)
    return int(count_apart(y, limits[2], limits[3], 1, fixed, n_own, aim, enough, view.space))


@inner
def worth(sample: Sample, at: Projection, n_own: int, n_rows: int, aim: Aim, enough: float) -> int:
    """Rows of the current class in bins not blocked, less the others there; -1 where not above ``enough``."""
    if look_apart(sample, at, n_own, n_rows, aim, enough) <= enough:
        return -1
    space, total = sample.seen.space, 0
    for u in range(aim.b):
        for v in range(aim.b):
            own, other = space.own[u, v], space.other[u, v]
            total += own - other if other <= aim.tolerance * own else 0
    return total


@inner
def climb(
    sample: Sample,
    at: Projection,
    n_own: int,
    n_rows: int,
    aim: Aim,
    n_steps: int,
    odds: FloatArray,
    state: IntArray,
    rectangles: IntArray,
) -> int:
    """Change one weight at a time, on each axis in turn, and keep what covers more of the sample.

    Columns are drawn in proportion to their ``odds``; a weight goes one up or down, within -2 .. 2.
    ``rectangles`` is overwritten. Return the rows covered.
    """
    axes, limits, xy, b, tried = at.axes, at.limits, sample.seen.xy, aim.b, sample.tried
    space = sample.seen.space
    own, other, side = space.own, space.other, space.own.shape[0]
    most = 0
    # Whatever is covered is more than the least that a rectangle holds, and alone in its bins.
    if look_apart(sample, at, n_own, n_rows, aim, aim.least) > aim.least:
        _, most = cover_bins(own, other, b, aim.tolerance, aim.least, 0, space, rectangles)
    write_places(xy[1, :n_rows], limits[2], limits[3], b, 1, sample.places[1, :n_rows])
    # What was tried since the last change that was kept need not be tried again.
    n_kept = 1
    total = 0.0
    for q in range(odds.shape[0]):
        total += odds[q]
        for k in range(5):
            tried[0, q, k] = tried[1, q, k] = 0
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
        elif total_weight == 0 or total_weight > sample.seen.most_weight:
            after = -before
        if tried[a, q, after + 2] == n_kept:
            continue
        tried[a, q, after + 2] = n_kept
        change = np.int32(after - before)
        now, moved, source = xy[a, :n_rows], xy[2, :n_rows], sample.seen.columns[q, :n_rows]
        first, last = np.int32(2147483647), np.int32(-2147483648)
        for i in range(n_rows):
            value = np.int32(now[i] + change * source[i])
            moved[i] = value
            first = min(first, value)
            last = max(last, value)
        times, fixed = (side if a == 0 else 1), sample.places[1 - a, :n_rows]
        enough = max(float(most), aim.least)
        covered = 0
        if count_apart(moved, first, last, times, fixed, n_own, aim, enough, space) > enough:
            _, covered = cover_bins(own, other, b, aim.tolerance, aim.least, most, space, rectangles)
        if covered > most:
            most = covered
            axes[a, q] = after
            limits[2 * a], limits[2 * a + 1] = first, last
            n_kept += 1
            for i in range(n_rows):
                now[i] = moved[i]
            write_places(now, first, last, b, times, sample.places[a, :n_rows])
    return most
