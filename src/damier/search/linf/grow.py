"""Kernels that grow a decision list of covers: passes, phases, and what they keep count of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import inner, kernel
from damier.search.linf.cover import cover_bins, rows_alone
from damier.search.linf.project import View, bin_of, bin_scale, climb, draw_axis, look, uniform

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SmallArray = npt.NDArray[np.int32]

_MOST_RECTANGLES = 256
# Rows counted at a time.
_BLOCK = 1024


class Room(NamedTuple):
    """Arrays the kernel works in, allocated outside it: allocation of every kind takes time to compile."""

    alive: IntArray
    at_start: IntArray
    has_cover: IntArray
    failed_in: IntArray
    sums: IntArray
    counts: IntArray
    totals: IntArray
    share: IntArray
    scaled: SmallArray
    xy: SmallArray
    means: FloatArray
    projected: FloatArray
    odds: FloatArray
    keys: FloatArray
    chosen: IntArray
    chosen_odds: FloatArray
    chosen_means: FloatArray
    order: IntArray
    axes: IntArray
    tried: IntArray
    limits: IntArray
    purity: IntArray
    own: IntArray
    other: IntArray
    rectangles: IntArray
    best_rectangles: IntArray
    owner: IntArray
    covers: IntArray
    cover_axes: IntArray
    cover_shares: IntArray
    cover_rectangles: IntArray

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        g: int,
        n_slots: int,
        n_categorical: int,
        most_columns: int,
        n_projections: int,
    ) -> Room:
        """Allocate for p columns by n rows, g classes."""
        p, n = shape
        width = min(p, most_columns)
        b = max(1, int(2.0 * np.log2(n)))
        t = n_projections
        whole, small, real = np.int64, np.int32, np.float64
        return cls(
            alive=np.zeros(g, whole),
            at_start=np.zeros(g, whole),
            has_cover=np.zeros(g, whole),
            failed_in=np.full(g, -1, whole),
            sums=np.zeros((g, p), whole),
            counts=np.zeros((g, n_slots), whole),
            totals=np.zeros(n_slots, whole),
            share=np.zeros(n_slots, whole),
            scaled=np.zeros((n_categorical, n), small),
            xy=np.zeros((3, n), small),
            means=np.zeros((g, p), real),
            projected=np.zeros(g, real),
            odds=np.ones(p, real),
            keys=np.zeros(p, real),
            chosen=np.arange(width, dtype=whole),
            chosen_odds=np.ones(width, real),
            chosen_means=np.zeros((g, width), real),
            order=np.zeros(width, whole),
            axes=np.zeros((t, 2, width), whole),
            tried=np.zeros((2, width), whole),
            limits=np.zeros((t, 4), whole),
            purity=np.zeros(t, whole),
            own=np.zeros((t, b, b), whole),
            other=np.zeros((t, b, b), whole),
            rectangles=np.zeros((_MOST_RECTANGLES, 4), whole),
            best_rectangles=np.zeros((_MOST_RECTANGLES, 4), whole),
            owner=np.zeros((b, b), whole),
            covers=np.zeros((32, 7), whole),
            cover_axes=np.zeros((32, 3 * width), whole),
            cover_shares=np.zeros((32, n_slots), whole),
            cover_rectangles=np.zeros((64, 4 + g), whole),
        )


@inner
def _with_room(table: IntArray, needed: int) -> IntArray:
    """Return the table itself, or a copy with at least twice its rows when it is too short."""
    if needed <= table.shape[0]:
        return table
    longer = np.empty((max(needed, 2 * table.shape[0]), table.shape[1]), np.int64)
    for i in range(longer.shape[0]):
        for j in range(table.shape[1]):
            longer[i, j] = table[i, j] if i < table.shape[0] else 0
    return longer


@inner
def _count_rows(
    rows: SmallArray,
    numbers: SmallArray,
    codes: SmallArray,
    n: int,
    sign: int,
    place: IntArray,
    slots: IntArray,
    bounds: SmallArray,
    room: Room,
) -> None:
    """Add or take away n rows, of classes ``codes``, in the counts by class, the sums and the counts by slot.

    The slot of a number is how many bounds are below it.
    """
    for i in range(n):
        room.alive[codes[i]] += sign
    values, found = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32)
    for start in range(0, n, _BLOCK):
        size = min(n - start, _BLOCK)
        for j in range(rows.shape[0]):
            for i in range(size):
                values[i] = rows[j, numbers[start + i]]
                found[i] = values[i]
            if place[j] < 0:
                for i in range(size):
                    room.sums[codes[start + i], j] += sign * values[i]
                    found[i] = 0
                for k in range(bounds.shape[1]):  # not by bisection, so that it becomes vector code
                    bound = bounds[j, k]
                    for i in range(size):
                        found[i] += np.int32(bound < values[i])
            for i in range(size):
                room.counts[codes[start + i], slots[j] + found[i]] += sign


@inner
def _scale_for(
    c: int, m: int, rows: SmallArray, place: IntArray, slots: IntArray, unit: int, room: Room
) -> None:
    """Give categories the share of class c among their rows; take the class means of all columns."""
    alive, counts, share = room.alive, room.counts, room.share
    g = alive.shape[0]
    for j in range(rows.shape[0]):
        if place[j] < 0:
            for k in range(g):
                if alive[k] > 0:
                    room.means[k, j] = room.sums[k, j] / alive[k]
            continue
        for s in range(slots[j], slots[j + 1]):
            held = 0
            for k in range(g):
                held += counts[k, s]
            share[s] = int((counts[c, s] / held if held > 0 else alive[c] / m) * unit)
        for k in range(g):
            if alive[k] > 0:
                total = 0
                for s in range(slots[j], slots[j + 1]):
                    total += counts[k, s] * share[s]
                room.means[k, j] = total / alive[k]
        for i in range(m):
            room.scaled[place[j], i] = share[slots[j] + rows[j, i]]


@inner
def _weigh_columns(c: int, m: int, slots: IntArray, room: Room) -> None:
    """Weigh every column by the information its slots carry on the current class, beyond chance.

    Twice the gain in log-likelihood is about as large as the number of free slots when a column says nothing.
    The square root tempers the weights; a part of them is spread evenly, for columns that speak only jointly.
    """
    odds, counts, totals = room.odds, room.counts, room.totals
    for s in range(totals.shape[0]):
        totals[s] = 0
    for k in range(counts.shape[0]):
        for s in range(totals.shape[0]):
            totals[s] += counts[k, s]
    share = room.alive[c] / m
    total = 0.0
    for j in range(odds.shape[0]):
        gain = 0.0
        chance = -1.0
        for s in range(slots[j], slots[j + 1]):
            held = totals[s]
            if held > 0:
                own = counts[c, s]
                chance += 1.0
                if own > 0:
                    gain += own * np.log(own / (held * share))
                if held > own:
                    gain += (held - own) * np.log((held - own) / (held * (1.0 - share)))
        odds[j] = np.sqrt(max(0.0, 2.0 * gain - chance))
        total += odds[j]
    for j in range(odds.shape[0]):
        odds[j] = odds[j] / total + 0.3 / odds.shape[0] if total > 0.0 else 1.0


@inner
def _choose_columns(c: int, informed: bool, state: IntArray, room: Room) -> None:
    """Choose the columns of a pass: drawn by their odds, or those that separate the class's mean most."""
    keys, chosen = room.keys, room.chosen
    p, width = keys.shape[0], chosen.shape[0]
    if p > width:
        for j in range(p):
            if informed:
                keys[j] = -np.log(uniform(state)) / room.odds[j]
            else:
                closest = np.inf
                for k in range(room.alive.shape[0]):
                    if k != c and room.alive[k] > 0:
                        closest = min(closest, abs(room.means[k, j] - room.means[c, j]))
                keys[j] = -closest
        for q in range(width):  # a sort would take longer to compile than this to run
            first = 0
            for j in range(1, p):
                if keys[j] < keys[first]:
                    first = j
            chosen[q] = first
            keys[first] = np.inf
    for q in range(width):
        room.chosen_odds[q] = room.odds[chosen[q]]
        for k in range(room.alive.shape[0]):
            room.chosen_means[k, q] = room.means[k, chosen[q]]


@inner
def _draw_axes(
    t: int, c: int, strata: FloatArray, best_stratum: bool, n_steps: int, state: IntArray, room: Room
) -> None:
    """Draw both axes of projection t: the stratum of best separation, or the strata in turn."""
    width = room.chosen.shape[0]
    best = -1.0
    for s in range(strata.shape[0]):
        if not best_stratum and s != t % strata.shape[0]:
            continue
        used = max(1, int(strata[s] * width + 0.5))
        distance = 0.0
        for a in range(2):
            one = draw_axis(
                used,
                room.chosen_odds,
                room.chosen_means,
                room.alive,
                c,
                n_steps,
                state,
                room.order,
                room.projected,
                room.tried[a],
            )
            distance = max(distance, one)
        if distance > best:
            best = distance
            for a in range(2):
                for q in range(width):
                    room.axes[t, a, q] = room.tried[a, q]


@kernel
def grow_list(
    rows: SmallArray,
    place: IntArray,
    slots: IntArray,
    bounds: SmallArray,
    codes: SmallArray,
    unit: int,
    state: IntArray,
    tolerances: FloatArray,
    least_shares: FloatArray,
    strata: FloatArray,
    best_stratum: bool,
    n_steps: int,
    n_rounds: int,
    informed: bool,
    least_bins: float,
    most_bins: float,
    n_climbs: int,
    rows_ranked: int,
    min_cover: int,
    n_covered: int,
    rests: bool,
    room: Room,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Grow a list; legend: g classes, p columns, m rows left, b bins, c current class, t projection.

    ``place[j]`` is the place of column j among the categorical ones, -1 for a numeric one. With `rests` a
    class that could not be covered waits for the next phase.
    """
    p, m = rows.shape
    alive, purity, limits, xy, owner = room.alive, room.purity, room.limits, room.xy, room.owner
    g = alive.shape[0]
    width = room.chosen.shape[0]
    view = View(rows, room.scaled, place, codes, room.chosen, xy)
    out_covers, out_axes, out_shares = room.covers, room.cover_axes, room.cover_shares
    out_rectangles = room.cover_rectangles
    n_out = 0
    n_rectangles = 0
    for i in range(m):
        xy[0, i] = i
    _count_rows(rows, xy[0], codes, m, 1, place, slots, bounds, room)
    for k in range(g):
        room.at_start[k] = alive[k]

    n_phases = tolerances.shape[0]
    phase = 0
    failures = 0
    relaxed = min_cover
    c = g - 1
    while m > 0:
        if phase < n_phases:
            if failures >= n_rounds * g:
                phase += 1
                failures = 0
                continue
        else:
            # Section 2.5: classes without any cover get one, the least count falling step by step.
            if failures >= g:
                failures = 0
                relaxed -= 1
            missing = False
            for k in range(g):
                missing = missing or (alive[k] > 0 and room.has_cover[k] == 0)
            if not missing or relaxed <= 0:
                break
        c = (c + 1) % g
        tolerance = tolerances[min(phase, n_phases - 1)]
        least = relaxed - 1.0
        if phase < n_phases:
            least = max(float(min_cover), least_shares[phase] * room.at_start[c])
        resting = rests and phase < n_phases and room.failed_in[c] == phase
        if resting or alive[c] <= least or (phase == n_phases and room.has_cover[c] == 1):
            failures += 1
            continue

        factor = most_bins
        if least_bins < most_bins:
            factor = least_bins + (most_bins - least_bins) * uniform(state)
        b = max(1, int(factor * np.log2(m)))
        _scale_for(c, m, rows, place, slots, unit, room)
        if informed and alive[c] < m:
            _weigh_columns(c, m, slots, room)
        else:
            for j in range(p):
                room.odds[j] = 1.0
        _choose_columns(c, informed, state, room)
        few = min(m, rows_ranked)
        for t in range(purity.shape[0]):
            _draw_axes(t, c, strata, best_stratum, n_steps, state, room)
            look(view, few, c, b, room.axes[t], limits[t], room.own[t], room.other[t])
            held, strangers = rows_alone(room.own[t], room.other[t], b, tolerance)
            purity[t] = held - strangers

        best = -1
        best_covered = 0
        best_number = 0
        for _ in range(min(n_covered, purity.shape[0])):
            t = 0
            for k in range(1, purity.shape[0]):
                if purity[k] > purity[t]:
                    t = k
            purity[t] = -1
            if n_climbs > 0:
                climb(
                    view,
                    few,
                    c,
                    b,
                    room.axes[t],
                    limits[t],
                    room.own[t],
                    room.other[t],
                    n_climbs,
                    room.chosen_odds,
                    tolerance,
                    max(min(float(min_cover), least), least * few / m),
                    state,
                    room.rectangles,
                )
            if n_climbs > 0 or m > rows_ranked:
                look(view, m, c, b, room.axes[t], limits[t], room.own[t], room.other[t])
            number, covered = cover_bins(room.own[t], room.other[t], b, tolerance, least, room.rectangles)
            if covered > best_covered:
                best, best_covered, best_number = t, covered, number
                for r in range(number):
                    for side in range(4):
                        room.best_rectangles[r, side] = room.rectangles[r, side]
        if best < 0:
            room.failed_in[c] = phase
            failures += 1
            continue
        failures = 0
        room.has_cover[c] = 1

        out_covers = _with_room(out_covers, n_out + 1)
        out_axes = _with_room(out_axes, n_out + 1)
        out_shares = _with_room(out_shares, n_out + 1)
        out_rectangles = _with_room(out_rectangles, n_rectangles + best_number)
        out_covers[n_out, 0], out_covers[n_out, 1], out_covers[n_out, 2] = c, b, best_number
        for k in range(4):
            out_covers[n_out, 3 + k] = limits[best, k]
        for q in range(width):
            out_axes[n_out, q] = room.chosen[q]
            out_axes[n_out, width + q] = room.axes[best, 0, q]
            out_axes[n_out, 2 * width + q] = room.axes[best, 1, q]
        for s in range(slots[p]):
            out_shares[n_out, s] = room.share[s]
        for u in range(b):
            for v in range(b):
                owner[u, v] = -1
        for r in range(best_number):
            for side in range(4):
                out_rectangles[n_rectangles + r, side] = room.best_rectangles[r, side]
            for u in range(room.best_rectangles[r, 0], room.best_rectangles[r, 1] + 1):
                for v in range(room.best_rectangles[r, 2], room.best_rectangles[r, 3] + 1):
                    if owner[u, v] < 0:
                        owner[u, v] = n_rectangles + r

        look(view, m, c, b, room.axes[best], limits[best], room.own[best], room.other[best])
        x_low, x_scale = limits[best, 0], bin_scale(limits[best, 0], limits[best, 1], b)
        y_low, y_scale = limits[best, 2], bin_scale(limits[best, 2], limits[best, 3], b)
        kept, gone = 0, 0
        for i in range(m):
            r = owner[bin_of(xy[0, i], x_low, x_scale, b), bin_of(xy[1, i], y_low, y_scale, b)]
            if r >= 0:
                out_rectangles[r, 4 + codes[i]] += 1
                xy[0, gone], xy[1, gone] = i, codes[i]
                gone += 1
            else:
                xy[2, kept] = i
                codes[kept] = codes[i]
                kept += 1
        _count_rows(rows, xy[0], xy[1], gone, -1, place, slots, bounds, room)
        for j in range(p):
            for i in range(kept):
                rows[j, i] = rows[j, xy[2, i]]
        m = kept
        n_out += 1
        n_rectangles += best_number
    return out_covers[:n_out], out_axes[:n_out], out_shares[:n_out], out_rectangles[:n_rectangles]
