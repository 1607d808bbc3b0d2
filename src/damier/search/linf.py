"""Decision lists of rectangles on random projections: Wilkinson's Linf, as published and refined.

A list is grown by passes, one class at a time in turn. A pass draws projections, bins the rows not yet
covered, covers the most promising bin matrices with rectangles and keeps the cover with the most rows; these
rows leave. Passes go on until every class has failed in a row, then the next *phase* begins with a smaller
least count or a larger tolerance to rows of other classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from damier.search.linf_cover import cover_bins
from damier.search.linf_project import bin_of, bin_scale, count_bins, draw_axis, project, uniform

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SmallArray = npt.NDArray[np.int32]

_MOST_RECTANGLES = 256
_N_SLOTS = 16


@dataclass(frozen=True, slots=True)
class LinfSettings:
    """How lists are grown; `PAPER` is the published algorithm as read in the mathematics page.

    Parameters
    ----------
    tolerances, least_shares : tuple of float
        One value a phase: rows of other classes allowed per own row in a bin; share of the class's rows that
        a rectangle must exceed (never less than ``min_cover`` rows).
    strata : tuple of float
        Shares of the columns that get a weight other than zero.
    best_stratum : bool
        Keep, for each projection, the stratum of largest separation; otherwise take the strata in turn.
    n_steps : int
        Annealing steps over the signs of an axis.
    n_rounds : int
        Failures in a row, per class, that end a phase.
    informed : bool
        Draw columns in proportion to what they alone say of the current class, instead of evenly.
    spin : bool
        Start the growth of rectangles at a side drawn at random, instead of upward.
    least_bins : float
        Each pass bins with a factor drawn between this and 2, times log2 of the rows left.
    smoothing : float
        Rows of average class share added to every category before its own share is taken.
    rows_ranked : int
        Projections are ranked on this many rows at most, the first ones in an order that depends on what the
        rows hold alone; those kept are then binned in full.
    """

    tolerances: tuple[float, ...] = (0.0,)
    least_shares: tuple[float, ...] = (0.0,)
    strata: tuple[float, ...] = (0.25, 0.5, 0.75)
    best_stratum: bool = True
    n_steps: int = 5
    n_rounds: int = 2
    informed: bool = False
    spin: bool = False
    least_bins: float = 2.0
    smoothing: float = 0.0
    rows_ranked: int = 2**62
    min_cover: int = 10
    n_projections: int = 25
    n_covered: int = 5
    most_columns: int = 50


PAPER = LinfSettings()
REFINED = LinfSettings(
    tolerances=(0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8),
    least_shares=(0.2, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01, 0.01, 0.01),
    strata=(0.1, 0.25, 0.5, 0.75),
    best_stratum=False,
    n_steps=20,
    n_rounds=1,
    informed=True,
    least_bins=1.0,
    rows_ranked=4096,
)


@dataclass(frozen=True, slots=True)
class FoundCover:
    """A cover as found: columns and weights of both axes, limits of the projection, rectangles in bins."""

    class_index: int
    n_bins: int
    limits: IntArray
    columns: IntArray
    x_weights: IntArray
    y_weights: IntArray
    shares: SmallArray
    rectangles: IntArray
    counts: IntArray


def find_covers(
    columns: SmallArray,
    n_categories: IntArray,
    codes: SmallArray,
    n_classes: int,
    unit: int,
    seed: tuple[int, int],
    settings: LinfSettings = REFINED,
) -> list[FoundCover]:
    """Grow one decision list.

    Parameters
    ----------
    columns : int32 array of shape (n_columns, n_rows)
        Scaled numbers in fixed point, or category codes.
    n_categories : int64 array of shape (n_columns,)
        Number of categories, 0 for a numeric column.
    codes : int32 array of shape (n_rows,)
        Classes.
    n_classes : int
    unit : int
        The fixed-point number that stands for 1.
    seed : tuple of two int
        Both in 1 .. 2147483398.
    settings : LinfSettings

    Returns
    -------
    list of FoundCover
        In scoring order. ``shares`` holds, for the categorical columns one after the other, the share of each
        category and then that of an unseen one, times ``unit``.
    """
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    columns = np.ascontiguousarray(columns, dtype=np.int32)
    if columns.shape[1] > settings.rows_ranked:
        order = _order_of_content(columns, codes)
        columns, codes = np.ascontiguousarray(columns[:, order]), codes[order]
    categorical = n_categories > 0
    widths = np.where(categorical, n_categories + 1, _N_SLOTS)
    slots = np.zeros(len(widths) + 1, dtype=np.int64)
    np.cumsum(widths, out=slots[1:])
    levels = np.arange(1, _N_SLOTS) / _N_SLOTS
    bounds = np.quantile(columns, levels, axis=1, method="lower").T.astype(np.int32)
    covers, axes, shares, rectangles = _grow_list(
        columns,
        np.asarray(n_categories, dtype=np.int64),
        slots,
        np.ascontiguousarray(bounds),
        codes,
        n_classes,
        unit,
        np.array(seed, dtype=np.int64),
        np.array(settings.tolerances, dtype=np.float64),
        np.array(settings.least_shares, dtype=np.float64),
        np.array(settings.strata, dtype=np.float64),
        settings.best_stratum,
        settings.n_steps,
        settings.n_rounds,
        settings.informed,
        settings.spin,
        settings.least_bins,
        settings.smoothing,
        settings.rows_ranked,
        settings.min_cover,
        settings.n_projections,
        settings.n_covered,
        settings.most_columns,
    )
    kept = np.repeat(categorical, widths)
    width = axes.shape[1] // 3
    ends = np.cumsum(covers[:, 2])
    return [
        FoundCover(
            class_index=int(cover[0]),
            n_bins=int(cover[1]),
            limits=cover[3:7].copy(),
            columns=axis[:width],
            x_weights=axis[width : 2 * width],
            y_weights=axis[2 * width :],
            shares=share[kept].astype(np.int32),
            rectangles=rectangles[end - cover[2] : end, :4],
            counts=rectangles[end - cover[2] : end, 4:],
        )
        for cover, axis, share, end in zip(covers, axes, shares, ends, strict=True)
    ]


def _order_of_content(columns: SmallArray, codes: SmallArray) -> IntArray:
    """Shuffle the rows by a hash of what they hold, so that the first ones are a sample of all."""
    hashed = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for column in columns:
        hashed ^= column.astype(np.uint64)
        hashed *= np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(29)
    return np.argsort(hashed, kind="stable")


@numba.njit(cache=True, nogil=True)
def _slot_of(bounds: SmallArray, value: int) -> int:
    """Count the bounds below the value."""
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _with_room(table: IntArray, needed: int) -> IntArray:
    """Return the table itself, or a copy with at least twice its rows when it is too short."""
    if needed <= table.shape[0]:
        return table
    longer = np.zeros((max(needed, 2 * table.shape[0]), table.shape[1]), np.int64)
    longer[: table.shape[0]] = table
    return longer


@numba.njit(cache=True, nogil=True)
def _odds(
    counts: IntArray, slots: IntArray, alive: IntArray, current: int, n_rows: int, odds: FloatArray
) -> None:
    """Weigh every column by the information its slots carry on the current class, beyond chance.

    Twice the gain in log-likelihood is about as large as the number of free slots when a column says nothing.
    The square root tempers the weights; a part of them is spread evenly, for columns that speak only jointly.
    """
    share = alive[current] / n_rows
    total = 0.0
    for j in range(odds.shape[0]):
        gain = 0.0
        chance = -1.0
        for s in range(slots[j], slots[j + 1]):
            held = 0
            for k in range(alive.shape[0]):
                held += counts[k, s]
            if held > 0:
                own = counts[current, s]
                chance += 1.0
                if own > 0:
                    gain += own * np.log(own / (held * share))
                if held > own:
                    gain += (held - own) * np.log((held - own) / (held * (1.0 - share)))
        odds[j] = np.sqrt(max(0.0, 2.0 * gain - chance))
        total += odds[j]
    for j in range(odds.shape[0]):
        odds[j] = odds[j] / total + 0.3 / odds.shape[0] if total > 0.0 else 1.0


@numba.njit(cache=True, nogil=True)
def _grow_list(
    columns: SmallArray,
    n_categories: IntArray,
    slots: IntArray,
    bounds: SmallArray,
    codes: SmallArray,
    n_classes: int,
    unit: int,
    state: IntArray,
    tolerances: FloatArray,
    least_shares: FloatArray,
    strata: FloatArray,
    best_stratum: bool,
    n_steps: int,
    n_rounds: int,
    informed: bool,
    spin: bool,
    least_bins: float,
    smoothing: float,
    rows_ranked: int,
    min_cover: int,
    n_projections: int,
    n_covered: int,
    most_columns: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Grow a list; legend: g classes, p columns, m rows left, b bins, c current class."""
    p, m = columns.shape
    g = n_classes
    width = min(p, most_columns)
    rows = columns.copy()
    codes = codes.copy()
    # What passes need of the rows is kept up to date as rows leave: counts by class, sums, counts by slot.
    alive = np.zeros(g, np.int64)
    sums = np.zeros((g, p), np.int64)
    counts = np.zeros((g, slots[p]), np.int64)
    for i in range(m):
        alive[codes[i]] += 1
    n_categorical = 0
    place = np.full(p, -1, np.int64)
    for j in range(p):
        if n_categories[j] > 0:
            place[j] = n_categorical
            n_categorical += 1
            for i in range(m):
                counts[codes[i], slots[j] + rows[j, i]] += 1
        else:
            for i in range(m):
                sums[codes[i], j] += rows[j, i]
                counts[codes[i], slots[j] + _slot_of(bounds[j], rows[j, i])] += 1
    at_start = alive.copy()
    has_cover = np.zeros(g, np.bool_)

    out_covers = np.zeros((32, 7), np.int64)
    out_axes = np.zeros((32, 3 * width), np.int64)
    out_shares = np.zeros((32, slots[p]), np.int64)
    out_rectangles = np.zeros((64, 4 + g), np.int64)
    n_out = 0
    n_rectangles = 0

    most_bins = max(1, int(2.0 * np.log2(m)))
    own = np.zeros((n_projections, most_bins, most_bins), np.int64)
    other = np.zeros((n_projections, most_bins, most_bins), np.int64)
    x = np.zeros(m, np.int32)
    y = np.zeros(m, np.int32)
    scaled = np.zeros((n_categorical, m), np.int32)
    share = np.zeros(slots[p], np.int64)
    means = np.zeros((g, p))
    chosen_means = np.zeros((g, width))
    odds = np.ones(p)
    chosen_odds = np.ones(width)
    keys = np.zeros(p)
    chosen = np.arange(width)
    axes = np.zeros((n_projections, 2, width), np.int64)
    tried = np.zeros((2, width), np.int64)
    limits = np.zeros((n_projections, 4), np.int64)
    purity = np.zeros(n_projections, np.int64)
    rectangles = np.zeros((_MOST_RECTANGLES, 4), np.int64)
    best_rectangles = np.zeros((_MOST_RECTANGLES, 4), np.int64)

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
                missing = missing or (alive[k] > 0 and not has_cover[k])
            if not missing or relaxed <= 0:
                break
        c = (c + 1) % g
        if phase < n_phases:
            tolerance = tolerances[phase]
            least = max(float(min_cover), least_shares[phase] * at_start[c])
        else:
            tolerance = tolerances[n_phases - 1]
            least = relaxed - 1.0
        if alive[c] <= least or (phase == n_phases and has_cover[c]):
            failures += 1
            continue

        factor = 2.0 if least_bins == 2.0 else least_bins + (2.0 - least_bins) * uniform(state)
        b = max(1, int(factor * np.log2(m)))
        first_side = int(uniform(state) * 4) if spin else 0
        for j in range(p):
            if n_categories[j] == 0:
                for k in range(g):
                    if alive[k] > 0:
                        means[k, j] = sums[k, j] / alive[k]
                continue
            for s in range(slots[j], slots[j + 1]):
                held = 0
                for k in range(g):
                    held += counts[k, s]
                if held + smoothing > 0.0:
                    mixed = (counts[c, s] + smoothing * alive[c] / m) / (held + smoothing)
                else:
                    mixed = alive[c] / m
                share[s] = int(mixed * unit)
            for k in range(g):
                if alive[k] > 0:
                    total = 0
                    for s in range(slots[j], slots[j + 1]):
                        total += counts[k, s] * share[s]
                    means[k, j] = total / alive[k]
            for i in range(m):
                scaled[place[j], i] = share[slots[j] + rows[j, i]]
        if informed and alive[c] < m:
            _odds(counts, slots, alive, c, m, odds)
        else:
            odds[:] = 1.0
        if p > width:
            for j in range(p):
                if informed:
                    keys[j] = -np.log(uniform(state)) / odds[j]
                else:
                    closest = np.inf
                    for k in range(g):
                        if k != c and alive[k] > 0:
                            closest = min(closest, abs(means[k, j] - means[c, j]))
                    keys[j] = -closest
            for q in range(width):  # a sort would take longer to compile than this to run
                chosen[q] = np.argmin(keys)
                keys[chosen[q]] = np.inf
        for q in range(width):
            chosen_odds[q] = odds[chosen[q]]
            for k in range(g):
                chosen_means[k, q] = means[k, chosen[q]]

        for t in range(n_projections):
            if best_stratum:
                best_distance = -1.0
                for s in range(strata.shape[0]):
                    used = max(1, int(strata[s] * width + 0.5))
                    distance = 0.0
                    for a in range(2):
                        one = draw_axis(used, chosen_odds, chosen_means, alive, c, n_steps, state, tried[a])
                        distance = max(distance, one)
                    if distance > best_distance:
                        best_distance = distance
                        axes[t] = tried
            else:
                used = max(1, int(strata[t % strata.shape[0]] * width + 0.5))
                for a in range(2):
                    draw_axis(used, chosen_odds, chosen_means, alive, c, n_steps, state, axes[t, a])
            few = min(m, rows_ranked)
            limits[t, 0], limits[t, 1] = project(rows, scaled, place, few, chosen, axes[t, 0], x)
            limits[t, 2], limits[t, 3] = project(rows, scaled, place, few, chosen, axes[t, 1], y)
            count_bins(x, y, limits[t], few, codes, c, own[t, :b, :b], other[t, :b, :b])
            held = 0
            for u in range(b):
                for v in range(b):
                    if other[t, u, v] <= tolerance * own[t, u, v]:
                        held += own[t, u, v] - other[t, u, v]
            purity[t] = held

        best = -1
        best_covered = 0
        best_number = 0
        for _ in range(min(n_covered, n_projections)):
            t = int(np.argmax(purity))
            purity[t] = -1
            if m > rows_ranked:
                limits[t, 0], limits[t, 1] = project(rows, scaled, place, m, chosen, axes[t, 0], x)
                limits[t, 2], limits[t, 3] = project(rows, scaled, place, m, chosen, axes[t, 1], y)
                count_bins(x, y, limits[t], m, codes, c, own[t, :b, :b], other[t, :b, :b])
            number, covered = cover_bins(
                own[t, :b, :b], other[t, :b, :b], tolerance, least, first_side, rectangles
            )
            if covered > best_covered:
                best, best_covered, best_number = t, covered, number
                best_rectangles[:number] = rectangles[:number]
        if best < 0:
            failures += 1
            continue
        failures = 0
        has_cover[c] = True

        out_covers = _with_room(out_covers, n_out + 1)
        out_axes = _with_room(out_axes, n_out + 1)
        out_shares = _with_room(out_shares, n_out + 1)
        out_rectangles = _with_room(out_rectangles, n_rectangles + best_number)
        out_covers[n_out, 0], out_covers[n_out, 1], out_covers[n_out, 2] = c, b, best_number
        out_covers[n_out, 3:] = limits[best]
        out_axes[n_out, :width] = chosen
        out_axes[n_out, width : 2 * width] = axes[best, 0]
        out_axes[n_out, 2 * width :] = axes[best, 1]
        out_shares[n_out] = share
        owner = np.full((b, b), -1, np.int64)
        for r in range(best_number):
            out_rectangles[n_rectangles + r, :4] = best_rectangles[r]
            for u in range(best_rectangles[r, 0], best_rectangles[r, 1] + 1):
                for v in range(best_rectangles[r, 2], best_rectangles[r, 3] + 1):
                    if owner[u, v] < 0:
                        owner[u, v] = n_rectangles + r

        project(rows, scaled, place, m, chosen, axes[best, 0], x)
        project(rows, scaled, place, m, chosen, axes[best, 1], y)
        x_scale = bin_scale(limits[best, 0], limits[best, 1], b)
        y_scale = bin_scale(limits[best, 2], limits[best, 3], b)
        for i in range(m):
            r = owner[bin_of(x[i], limits[best, 0], x_scale, b), bin_of(y[i], limits[best, 2], y_scale, b)]
            x[i] = 1 if r < 0 else 0
            if r >= 0:
                k = codes[i]
                out_rectangles[r, 4 + k] += 1
                alive[k] -= 1
                for j in range(p):
                    if n_categories[j] > 0:
                        counts[k, slots[j] + rows[j, i]] -= 1
                    else:
                        sums[k, j] -= rows[j, i]
                        counts[k, slots[j] + _slot_of(bounds[j], rows[j, i])] -= 1
        kept = 0
        for j in range(p):
            kept = 0
            for i in range(m):
                if x[i] == 1:
                    rows[j, kept] = rows[j, i]
                    kept += 1
        kept = 0
        for i in range(m):
            if x[i] == 1:
                codes[kept] = codes[i]
                kept += 1
        m = kept
        n_out += 1
        n_rectangles += best_number
    return out_covers[:n_out], out_axes[:n_out], out_shares[:n_out], out_rectangles[:n_rectangles]
