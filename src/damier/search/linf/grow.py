"""Kernels that grow a decision list of covers: phases, passes, and what they count.

Legend: g classes, p columns, width columns that a pass chooses, n rows, m rows left, b bins per side, c the
current class, t projection, s slot. A *slot* is a category of a categorical column (the last one for those
never seen) or one of 16 intervals of a numeric one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from damier.search.kernels import CodeArray, FloatArray, IntArray, allocating_inner, inner, kernel
from damier.search.linf.cover import BLOCK, Space, cover_bins
from damier.search.linf.project import (
    Aim,
    Projection,
    Sample,
    View,
    bin_of,
    bin_scale,
    climb,
    draw_axis,
    gather,
    look,
    most_weight,
    uniform,
    worth,
)
from damier.search.linf.settings import LinfSettings

_MOST_RECTANGLES = 256
_N_SLOTS = 16


class Rows(NamedTuple):
    """Rows in the order they are looked at; the same for all lists grown from them.

    Parameters
    ----------
    columns : int32 array of shape (p, n)
        Numbers in fixed point, or category codes.
    codes : int32 array of shape (n,)
        Classes.
    place : int64 array of shape (p,)
        Place of a column among the categorical ones, -1 for a numeric one.
    slots : int64 array of shape (p + 1,)
        Column j has the slots ``slots[j]`` up to ``slots[j + 1]``.
    bounds : int32 array of shape (p, 15)
        Upper bounds of the slots of a numeric column, each of about as many rows.
    n_classes : int
    unit : int
        The fixed-point number that stands for 1.
    """

    columns: CodeArray
    codes: CodeArray
    place: IntArray
    slots: IntArray
    bounds: CodeArray
    n_classes: int
    unit: int

    @classmethod
    def of(
        cls,
        columns: CodeArray,
        n_categories: IntArray,
        codes: CodeArray,
        n_classes: int,
        unit: int,
        settings: LinfSettings,
    ) -> Self:
        """Arrange the rows of a table; ``n_categories`` is 0 for a numeric column."""
        n_rows = columns.shape[1]
        if n_rows > settings.rows_ranked:
            order = _order_of_content(columns, codes)
            columns, codes = columns[:, order], codes[order]
        categorical = n_categories > 0
        at = np.arange(1, _N_SLOTS) * (n_rows - 1) // _N_SLOTS
        return cls(
            columns=np.ascontiguousarray(columns, dtype=np.int32),
            codes=np.ascontiguousarray(codes, dtype=np.int32),
            place=np.where(categorical, np.cumsum(categorical) - 1, -1),
            slots=np.cumsum([0, *np.where(categorical, n_categories + 1, _N_SLOTS)], dtype=np.int64),
            bounds=np.ascontiguousarray(np.sort(columns, axis=1)[:, at], dtype=np.int32),
            n_classes=n_classes,
            unit=unit,
        )


class Tally(NamedTuple):
    """Rows left, counted, and what follows from the counts for the current class.

    Parameters
    ----------
    alive : int64 array of shape (g,)
        Rows left per class.
    sums : int64 array of shape (g, p)
        Sums of the numeric columns.
    counts : int64 array of shape (g, n_slots)
        Rows per slot.
    held : int64 array of shape (n_slots,)
        Rows per slot, of all classes.
    share : int64 array of shape (n_slots,)
        What each category stands for: the share of the current class among its rows, in fixed point.
    means : float64 array of shape (g, p)
        Class means of all columns, categories taken as shares.
    """

    alive: IntArray
    sums: IntArray
    counts: IntArray
    held: IntArray
    share: IntArray
    means: FloatArray


class Draw(NamedTuple):
    """Columns of a pass, and space to draw axes in.

    Parameters
    ----------
    odds : float64 array of shape (p,)
        Chances of the columns.
    keys : float64 array of shape (p,)
        The columns of least key are chosen.
    chosen : int64 array of shape (width,)
        The columns chosen; then their odds.
    chosen_means : float64 array of shape (width, g)
        Their class means: the current class's, then those of the others that have rows left.
    order, projected, tried
        Overwritten by `draw_axis`.
    """

    odds: FloatArray
    keys: FloatArray
    chosen: IntArray
    chosen_odds: FloatArray
    chosen_means: FloatArray
    order: IntArray
    projected: FloatArray
    tried: IntArray


class Found(NamedTuple):
    """Covers found, one per row of the arrays, which are lengthened when they are full.

    Parameters
    ----------
    covers : int64 array of shape (..., 7)
        Class, bins per side, number of rectangles, limits along x and y.
    axes : int64 array of shape (..., 3 * width)
        Columns chosen, their weights along x, their weights along y.
    shares : int64 array of shape (..., n_slots)
        What each category stood for.
    rectangles : int64 array of shape (..., 4 + g)
        First and last bin along x, first and last along y, rows of each class. Those of the first cover
        come first.
    """

    covers: IntArray
    axes: IntArray
    shares: IntArray
    rectangles: IntArray


class Work(NamedTuple):
    """All that a list is grown in, allocated in Python: in kernels allocations take time to compile."""

    seen: View
    sample: Sample
    tally: Tally
    draw: Draw
    # As `Projection`, with one more dimension in front: the projections of a pass.
    axes: IntArray
    limits: IntArray
    found: Found

    @classmethod
    def of(cls, rows: Rows, settings: LinfSettings) -> Self:
        """Allocate; the rows are copied, as those covered are overwritten."""
        p, n = rows.columns.shape
        g, t, n_slots = rows.n_classes, settings.n_projections, int(rows.slots[-1])
        width = min(p, settings.most_columns)
        b = max(1, int(settings.most_bins * np.log2(n)))
        chosen = np.arange(width)

        def whole(*shape: int) -> IntArray:
            return np.zeros(shape, dtype=np.int64)

        def real(*shape: int) -> FloatArray:
            return np.zeros(shape)

        seen = View(
            columns=rows.columns.copy(),
            shares=np.zeros((np.count_nonzero(rows.place >= 0), n), dtype=np.int32),
            place=rows.place,
            codes=rows.codes.copy(),
            chosen=chosen,
            xy=np.zeros((3, n), dtype=np.int32),
            most_weight=most_weight(rows.unit),
            space=Space.of(b),
        )
        return cls(
            seen=seen,
            sample=Sample.of(seen, min(n, settings.rows_ranked)),
            tally=Tally(whole(g), whole(g, p), whole(g, n_slots), whole(n_slots), whole(n_slots), real(g, p)),
            draw=Draw(
                odds=real(p),
                keys=real(p),
                chosen=chosen,
                chosen_odds=real(width),
                chosen_means=real(width, g),
                order=whole(width),
                projected=real(g),
                tried=whole(2, width),
            ),
            axes=whole(t, 2, width),
            limits=whole(t, 4),
            found=Found(whole(32, 7), whole(32, 3 * width), whole(32, n_slots), whole(64, 4 + g)),
        )


@allocating_inner
def _count_rows(
    rows: Rows, view: View, numbers: CodeArray, codes: CodeArray, sign: int, tally: Tally
) -> None:
    """Add the rows of these numbers, of classes ``codes``, to the tally, or take them away (sign -1).

    The slot of a number is how many bounds are below it.
    """
    place, slots, bounds, n = rows.place, rows.slots, rows.bounds, numbers.shape[0]
    for i in range(n):
        tally.alive[codes[i]] += sign
    values, found = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for start in range(0, n, BLOCK):
        size = min(n - start, BLOCK)
        for j in range(place.shape[0]):
            for i in range(size):
                values[i] = view.columns[j, numbers[start + i]]
                found[i] = values[i]
            if place[j] < 0:
                for i in range(size):
                    tally.sums[codes[start + i], j] += sign * values[i]
                    found[i] = 0
                for k in range(bounds.shape[1]):  # not by bisection, so that it becomes vector code
                    bound = bounds[j, k]
                    for i in range(size):
                        found[i] += np.int32(bound < values[i])
            for i in range(size):
                tally.counts[codes[start + i], slots[j] + found[i]] += sign
                tally.held[slots[j] + found[i]] += sign


@inner
def _scale_for(c: int, m: int, rows: Rows, view: View, tally: Tally) -> None:
    """Give categories the share of class c among their rows; take the class means of all columns."""
    alive, counts, share, slots, place = tally.alive, tally.counts, tally.share, rows.slots, rows.place
    g = alive.shape[0]
    for j in range(place.shape[0]):
        if place[j] < 0:
            for k in range(g):
                if alive[k] > 0:
                    tally.means[k, j] = tally.sums[k, j] / alive[k]
            continue
        for s in range(slots[j], slots[j + 1]):
            held = tally.held[s]
            share[s] = int((counts[c, s] / held if held > 0 else alive[c] / m) * rows.unit)
        for k in range(g):
            if alive[k] > 0:
                total = 0
                for s in range(slots[j], slots[j + 1]):
                    total += counts[k, s] * share[s]
                tally.means[k, j] = total / alive[k]
        for i in range(m):
            view.shares[place[j], i] = share[slots[j] + view.columns[j, i]]


@inner
def _weigh_columns(c: int, m: int, slots: IntArray, tally: Tally, odds: FloatArray) -> None:
    """Weigh every column by the information its slots carry on the current class, beyond chance.

    Twice the gain in log-likelihood is about as large as the number of free slots when a column says nothing.
    The square root tempers the weights; a part of them is spread evenly, for what informs only jointly.
    """
    counts = tally.counts
    share = tally.alive[c] / m
    total = 0.0
    for j in range(odds.shape[0]):
        gain = 0.0
        chance = -1.0
        for s in range(slots[j], slots[j + 1]):
            held = tally.held[s]
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
def _choose_columns(c: int, informed: bool, state: IntArray, tally: Tally, draw: Draw) -> int:
    """Choose the columns of a pass: drawn by their odds, or those that separate the class's mean most.

    Return the number of classes that have rows left, those of ``draw.chosen_means``.
    """
    keys, chosen, alive, means = draw.keys, draw.chosen, tally.alive, tally.means
    p, width = keys.shape[0], chosen.shape[0]
    if p > width:
        for j in range(p):
            if informed:
                keys[j] = -np.log(uniform(state)) / draw.odds[j]
            else:
                closest = np.inf
                for k in range(alive.shape[0]):
                    if k != c and alive[k] > 0:
                        closest = min(closest, abs(means[k, j] - means[c, j]))
                keys[j] = -closest
        for q in range(width):  # a sort would take longer to compile than this to run
            first = 0
            for j in range(1, p):
                if keys[j] < keys[first]:
                    first = j
            chosen[q] = first
            keys[first] = np.inf
    n_means = 1
    for q in range(width):
        draw.chosen_odds[q] = draw.odds[chosen[q]]
        draw.chosen_means[q, 0] = means[c, chosen[q]]
        n_means = 1
        for k in range(alive.shape[0]):
            if k != c and alive[k] > 0:
                draw.chosen_means[q, n_means] = means[k, chosen[q]]
                n_means += 1
    return n_means


@inner
def _draw_axes(
    t: int,
    n_means: int,
    strata: FloatArray,
    best_stratum: bool,
    n_steps: int,
    state: IntArray,
    draw: Draw,
    axes: IntArray,
) -> None:
    """Draw both axes of projection t: the stratum of best separation, or the strata in turn."""
    width = draw.chosen.shape[0]
    best = -1.0
    for s in range(strata.shape[0]):
        if not best_stratum and s != t % strata.shape[0]:
            continue
        used = max(1, int(strata[s] * width + 0.5))
        distance = 0.0
        for a in range(2):
            one = draw_axis(
                used,
                draw.chosen_odds,
                draw.chosen_means,
                n_means,
                n_steps,
                state,
                draw.order,
                draw.projected,
                draw.tried[a],
            )
            distance = max(distance, one)
        if distance > best:
            best = distance
            for a in range(2):
                for q in range(width):
                    axes[a, q] = draw.tried[a, q]


@allocating_inner
def _best_cover(
    work: Work,
    m: int,
    n_means: int,
    aim: Aim,
    settings: LinfSettings,
    state: IntArray,
    rectangles: IntArray,
) -> tuple[int, int]:
    """Draw the projections of a pass and cover the most promising ones.

    Return the projection that covers most rows, -1 where none covers any, and the number of its rectangles,
    which are left in ``rectangles``.
    """
    view, sample = work.seen, work.sample
    few = min(m, settings.rows_ranked)
    n_own = gather(view, few, aim.current, sample)
    purity = np.empty(work.axes.shape[0], np.int64)
    highest = np.full(min(settings.n_covered, purity.shape[0]), -1)  # those to be covered so far, best first
    for t in range(purity.shape[0]):
        _draw_axes(
            t,
            n_means,
            settings.strata,
            settings.best_stratum,
            settings.n_steps,
            state,
            work.draw,
            work.axes[t],
        )
        at = Projection(work.axes[t], work.limits[t])
        purity[t] = held = worth(sample, at, n_own, few, aim, float(highest[-1]))
        for k in range(highest.shape[0]):
            if held > highest[k]:
                highest[k], held = held, highest[k]
    # Of a sample a rectangle must exceed as large a share, but no fewer rows than it ever must.
    least = max(min(float(settings.min_cover), aim.least), aim.least * few / m)
    sampled = Aim(aim.current, aim.b, aim.tolerance, least)
    tried = np.empty_like(rectangles)
    best, best_covered, best_number = -1, 0, 0
    for _ in range(highest.shape[0]):
        t = 0
        for k in range(1, purity.shape[0]):
            if purity[k] > purity[t]:
                t = k
        purity[t] = -1
        at = Projection(work.axes[t], work.limits[t])
        if settings.n_climbs > 0:
            covered = climb(
                sample, at, n_own, few, sampled, settings.n_climbs, work.draw.chosen_odds, state, tried
            )
            if few == m and least == aim.least and covered <= best_covered:
                continue  # these were all rows
        look(view, at, m, aim)
        number, covered = cover_bins(
            view.space.own, view.space.other, aim.b, aim.tolerance, aim.least, best_covered, view.space, tried
        )
        if covered > best_covered:
            best, best_covered, best_number = t, covered, number
            for r in range(number):
                for side in range(4):
                    rectangles[r, side] = tried[r, side]
    return best, best_number


@allocating_inner
def _lengthened(table: IntArray, needed: int) -> IntArray:
    """Return the table itself, or a copy with at least twice its rows when it is too short."""
    if needed <= table.shape[0]:
        return table
    longer = np.empty((max(needed, 2 * table.shape[0]), table.shape[1]), np.int64)
    for i in range(longer.shape[0]):
        for j in range(table.shape[1]):
            longer[i, j] = table[i, j] if i < table.shape[0] else 0
    return longer


@inner
def _write_cover(
    found: Found, row: int, aim: Aim, n_rectangles: int, at: Projection, chosen: IntArray, share: IntArray
) -> None:
    """Write a cover down in one row of what was found, all but its rectangles."""
    width = chosen.shape[0]
    found.covers[row, 0], found.covers[row, 1], found.covers[row, 2] = aim.current, aim.b, n_rectangles
    for k in range(4):
        found.covers[row, 3 + k] = at.limits[k]
    for q in range(width):
        found.axes[row, q] = chosen[q]
        found.axes[row, width + q] = at.axes[0, q]
        found.axes[row, 2 * width + q] = at.axes[1, q]
    for s in range(share.shape[0]):
        found.shares[row, s] = share[s]


@allocating_inner
def _take_covered(
    rows: Rows, view: View, tally: Tally, at: Projection, m: int, b: int, rectangles: IntArray
) -> int:
    """Count the rows that each rectangle holds behind its sides, take them away, return how many are left.

    A row belongs to the first rectangle that holds its bin. ``view.xy`` must hold the projection.
    """
    xy, codes, columns = view.xy, view.codes, view.columns
    owner = np.empty((b, b), np.int64)
    for u in range(b):
        for v in range(b):
            owner[u, v] = -1
    for r in range(rectangles.shape[0]):
        for u in range(rectangles[r, 0], rectangles[r, 1] + 1):
            for v in range(rectangles[r, 2], rectangles[r, 3] + 1):
                if owner[u, v] < 0:
                    owner[u, v] = r
    x_low, x_scale = at.limits[0], bin_scale(at.limits[0], at.limits[1], b)
    y_low, y_scale = at.limits[2], bin_scale(at.limits[2], at.limits[3], b)
    kept, gone = 0, 0
    for i in range(m):
        r = owner[bin_of(xy[0, i], x_low, x_scale, b), bin_of(xy[1, i], y_low, y_scale, b)]
        if r >= 0:
            rectangles[r, 4 + codes[i]] += 1
            xy[0, gone], xy[1, gone] = i, codes[i]
            gone += 1
        else:
            xy[2, kept] = i
            codes[kept] = codes[i]
            kept += 1
    _count_rows(rows, view, xy[0, :gone], xy[1, :gone], -1, tally)
    for j in range(columns.shape[0]):
        for i in range(kept):
            columns[j, i] = columns[j, xy[2, i]]
    return kept


@kernel
def grow_list(
    rows: Rows, settings: LinfSettings, state: IntArray, stop: npt.NDArray[np.uint8], work: Work
) -> Found:
    """Grow a list.

    Classes have their turns one after the other. After the phases of the settings come those of section 2.5:
    classes without any cover get one, while the rows that a rectangle must exceed fall step by step.

    Parameters
    ----------
    rows : Rows
    settings : LinfSettings
    state : int64 array of 2
        State of the generator, both at least 1.
    stop : uint8 array of 1
        Not zero once the search must end: the covers found so far are returned.
    work : Work
        Overwritten.
    """
    view, tally, draw, found = work.seen, work.tally, work.draw, work.found
    m, g = rows.codes.shape[0], rows.n_classes
    for i in range(m):
        view.xy[0, i] = i
    _count_rows(rows, view, view.xy[0, :m], view.codes, 1, tally)
    at_start, has_cover, failed_in = np.empty(g, np.int64), np.zeros(g, np.int64), np.empty(g, np.int64)
    for k in range(g):
        at_start[k] = tally.alive[k]
        failed_in[k] = -1
    rectangles = np.empty((_MOST_RECTANGLES, 4), np.int64)
    n_covers, n_rectangles = 0, 0
    n_phases = settings.tolerances.shape[0]
    # With many classes, one that could not be covered waits for the next phase.
    waits = g > settings.most_retried
    c = g - 1
    for phase in range(n_phases + settings.min_cover):
        late = phase >= n_phases
        tolerance = settings.tolerances[min(phase, n_phases - 1)]
        failures = 0
        while m > 0 and failures < (g if late else settings.n_rounds * g) and stop[0] == 0:
            c = (c + 1) % g
            if late:
                least = float(settings.min_cover - (phase - n_phases) - 1)
                skipped = has_cover[c] == 1
            else:
                least = max(float(settings.min_cover), settings.least_shares[phase] * at_start[c])
                skipped = waits and failed_in[c] == phase
            if skipped or tally.alive[c] <= least:
                failures += 1
                continue
            factor = settings.most_bins
            if settings.least_bins < settings.most_bins:
                factor = settings.least_bins + (settings.most_bins - settings.least_bins) * uniform(state)
            aim = Aim(c, max(1, int(factor * np.log2(m))), tolerance, least)
            _scale_for(c, m, rows, view, tally)
            if settings.informed and tally.alive[c] < m:
                _weigh_columns(c, m, rows.slots, tally, draw.odds)
            else:
                for j in range(draw.odds.shape[0]):
                    draw.odds[j] = 1.0
            n_means = _choose_columns(c, settings.informed, state, tally, draw)
            best, number = _best_cover(work, m, n_means, aim, settings, state, rectangles)
            if best < 0:
                failed_in[c] = phase
                failures += 1
                continue
            failures = 0
            has_cover[c] = 1
            found = Found(
                _lengthened(found.covers, n_covers + 1),
                _lengthened(found.axes, n_covers + 1),
                _lengthened(found.shares, n_covers + 1),
                _lengthened(found.rectangles, n_rectangles + number),
            )
            at = Projection(work.axes[best], work.limits[best])
            _write_cover(found, n_covers, aim, number, at, draw.chosen, tally.share)
            written = found.rectangles[n_rectangles : n_rectangles + number]
            for r in range(number):
                for side in range(4):
                    written[r, side] = rectangles[r, side]
            look(view, at, m, aim)
            m = _take_covered(rows, view, tally, at, m, aim.b, written)
            n_covers += 1
            n_rectangles += number
    return Found(
        found.covers[:n_covers],
        found.axes[:n_covers],
        found.shares[:n_covers],
        found.rectangles[:n_rectangles],
    )


def _order_of_content(columns: CodeArray, codes: CodeArray) -> npt.NDArray[Any]:
    """Shuffle the rows by a hash of what they hold, so that the first ones are a sample of all."""
    hashed = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for column in columns:
        hashed ^= column.astype(np.uint64)
        hashed *= np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(29)
    return np.argsort(hashed, kind="stable")
