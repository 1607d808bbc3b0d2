"""Decision lists of rectangles on random projections: Wilkinson's Linf, as published and refined.

A list is grown by passes, one class at a time in turn. A pass draws projections, bins the rows not yet
covered, covers the most promising bin matrices with rectangles and keeps the cover with the most rows; these
rows leave. Passes go on until every class has failed in a row, then the next *phase* begins with a smaller
least count or a larger tolerance to rows of other classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from damier.search.kernels import IntArray
from damier.search.linf.grow import Rows, Work, grow_list
from damier.search.linf.settings import PAPER, REFINED, LinfSettings

__all__ = ["LARGEST_SEED", "PAPER", "REFINED", "FoundCover", "Rows", "find_covers"]

# The largest seed of the kernels' generator.
LARGEST_SEED = 2147483398


@dataclass(frozen=True, slots=True)
class FoundCover:
    """A cover as found: columns and weights of both axes, limits of the projection, rectangles in bins.

    ``shares`` holds, for the categorical columns one after the other, the share of each category and then
    that of an unseen one, in fixed point.
    """

    class_index: int
    n_bins: int
    limits: IntArray
    columns: IntArray
    x_weights: IntArray
    y_weights: IntArray
    shares: IntArray
    rectangles: IntArray
    counts: IntArray


def find_covers(
    rows: Rows,
    seed: tuple[int, int],
    settings: LinfSettings = REFINED,
    stop: npt.NDArray[np.uint8] | None = None,
) -> list[FoundCover]:
    """Grow one decision list.

    Parameters
    ----------
    rows : Rows
    seed : tuple of two int
        Both in 1 .. `LARGEST_SEED`.
    settings : LinfSettings
    stop : uint8 array of 1, optional
        Not zero once the search must end; the covers found so far are then returned.

    Returns
    -------
    list of FoundCover
        In scoring order.
    """
    width = min(len(rows.columns), settings.most_columns)
    if len(settings.wide_strata) and settings.strata.min() * width >= 1.5:
        settings = settings._replace(strata=settings.wide_strata)
    found = grow_list(
        rows,
        settings,
        np.array(seed, dtype=np.int64),
        np.zeros(1, dtype=np.uint8) if stop is None else stop,
        Work.of(rows, settings),
    )
    categorical = np.repeat(rows.place >= 0, np.diff(rows.slots))
    ends = np.cumsum(found.covers[:, 2])
    return [
        FoundCover(
            class_index=int(cover[0]),
            n_bins=int(cover[1]),
            limits=cover[3:7],
            columns=axis[:width],
            x_weights=axis[width : 2 * width],
            y_weights=axis[2 * width :],
            shares=share[categorical],
            rectangles=found.rectangles[end - cover[2] : end, :4],
            counts=found.rectangles[end - cover[2] : end, 4:],
        )
        for cover, axis, share, end in zip(found.covers, found.axes, found.shares, ends, strict=True)
    ]
