"""Decision lists of rectangles on random projections: Wilkinson's Linf, as published and refined.

A list is grown by passes, one class at a time in turn. A pass draws projections, bins the rows not yet
covered, covers the most promising bin matrices with rectangles and keeps the cover with the most rows; these
rows leave. Passes go on until every class has failed in a row, then the next *phase* begins with a smaller
least count or a larger tolerance to rows of other classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from damier.search.linf.grow import Room, grow_list

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SmallArray = npt.NDArray[np.int32]

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
        Shares of the columns that get a weight other than zero, one column at least.
    wide_strata : tuple of float
        The same where the least of `strata` is more than one column; empty for no difference.
    best_stratum : bool
        Keep, for each projection, the stratum of largest separation; otherwise take the strata in turn.
    n_steps : int
        Annealing steps over the signs of an axis.
    n_rounds : int
        Failures in a row, per class, that end a phase.
    informed : bool
        Draw columns in proportion to what they alone say of the current class, instead of evenly.
    bins : tuple of two float
        Each pass bins with a factor drawn between these, times log2 of the rows left.
    n_climbs : int
        Weights tried, one at a time, to make a projection that is to be covered cover more.
    rows_ranked : int
        Projections are ranked and improved on this many rows at most, the first ones in an order that depends
        on what the rows hold alone; those kept are then binned in full.
    most_retried : int
        With more classes than this, one that could not be covered is not tried again before the next phase:
        trying all of them after each success takes time in the square of their number.
    """

    tolerances: tuple[float, ...] = (0.0,)
    least_shares: tuple[float, ...] = (0.0,)
    strata: tuple[float, ...] = (0.25, 0.5, 0.75)
    wide_strata: tuple[float, ...] = ()
    best_stratum: bool = True
    n_steps: int = 5
    n_rounds: int = 2
    informed: bool = False
    bins: tuple[float, float] = (2.0, 2.0)
    n_climbs: int = 0
    rows_ranked: int = 2**62
    min_cover: int = 10
    n_projections: int = 25
    n_covered: int = 5
    most_columns: int = 50
    most_retried: int = 2**62


PAPER = LinfSettings()
REFINED = LinfSettings(
    tolerances=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8),
    least_shares=(0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01),
    strata=(0.1, 0.25, 0.5, 0.75),
    wide_strata=(0.0, 0.1, 0.25, 0.5),
    best_stratum=False,
    n_steps=20,
    n_rounds=1,
    informed=True,
    bins=(0.7, 2.0),
    n_climbs=30,
    rows_ranked=2048,
    min_cover=3,
    most_retried=20,
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


@dataclass(frozen=True, slots=True)
class Arranged:
    """Rows in the order they are looked at, and the bounds of 16 slots of about as many rows, a column."""

    columns: SmallArray
    codes: SmallArray
    bounds: SmallArray

    @classmethod
    def of(cls, columns: SmallArray, codes: SmallArray, settings: LinfSettings) -> Self:
        """Arrange the rows: the same for all lists grown from them."""
        n_rows = columns.shape[1]
        if n_rows > settings.rows_ranked:
            order = _order_of_content(columns, codes)
            columns, codes = columns[:, order], codes[order]
        at = np.arange(1, _N_SLOTS) * (n_rows - 1) // _N_SLOTS
        return cls(
            columns=np.ascontiguousarray(columns, dtype=np.int32),
            codes=np.ascontiguousarray(codes, dtype=np.int32),
            bounds=np.ascontiguousarray(np.sort(columns, axis=1)[:, at], dtype=np.int32),
        )


def find_covers(
    columns: SmallArray,
    n_categories: IntArray,
    codes: SmallArray,
    n_classes: int,
    unit: int,
    seed: tuple[int, int],
    settings: LinfSettings = REFINED,
    arranged: Arranged | None = None,
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
    arranged : Arranged, optional
        The rows arranged, where several lists are grown from them.

    Returns
    -------
    list of FoundCover
        In scoring order. ``shares`` holds, for the categorical columns one after the other, the share of each
        category and then that of an unseen one, times ``unit``.
    """
    if arranged is None:
        arranged = Arranged.of(columns, codes, settings)
    # Copies, which the kernel empties as rows are covered.
    rows, left = arranged.columns.copy(), arranged.codes.copy()
    strata = settings.strata
    if settings.wide_strata and min(strata) * min(len(rows), settings.most_columns) >= 1.5:
        strata = settings.wide_strata
    categorical = n_categories > 0
    widths = np.where(categorical, n_categories + 1, _N_SLOTS)
    slots = np.zeros(len(widths) + 1, dtype=np.int64)
    np.cumsum(widths, out=slots[1:])
    covers, axes, shares, rectangles = grow_list(
        rows,
        np.where(categorical, np.cumsum(categorical) - 1, -1),
        slots,
        arranged.bounds,
        left,
        unit,
        np.array(seed, dtype=np.int64),
        np.array(settings.tolerances, dtype=np.float64),
        np.array(settings.least_shares, dtype=np.float64),
        np.array(strata, dtype=np.float64),
        settings.best_stratum,
        settings.n_steps,
        settings.n_rounds,
        settings.informed,
        *settings.bins,
        settings.n_climbs,
        settings.rows_ranked,
        settings.min_cover,
        settings.n_covered,
        n_classes > settings.most_retried,
        Room.of(
            rows.shape,
            n_classes,
            int(slots[-1]),
            int(categorical.sum()),
            settings.most_columns,
            settings.n_projections,
        ),
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
