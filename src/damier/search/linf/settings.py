"""How decision lists are grown: the published setting and the refined one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from damier.search.kernels import FloatArray

_NO_LIMIT = 2**62


class LinfSettings(NamedTuple):
    """How lists are grown. Kernels take it whole.

    Parameters
    ----------
    tolerances, least_shares : float arrays
        One value per phase: rows of other classes allowed per own row in a bin; share of the class's rows
        that a rectangle must exceed (never less than ``min_cover`` rows).
    strata : float array
        Shares of the columns that get a weight other than zero, one column at least.
    wide_strata : float array
        The same where the least of `strata` is more than one column; empty for no difference.
    best_stratum : bool
        Keep, for each projection, the stratum of largest separation; otherwise take the strata in turn.
    n_steps : int
        Annealing steps over the signs of an axis.
    n_rounds : int
        Failures in a row, per class, that end a phase.
    informed : bool
        Draw columns in proportion to what each alone informs about the current class, instead of evenly.
    least_bins, most_bins : float
        Each pass bins with a factor drawn between these, times log2 of the rows left.
    n_climbs : int
        Weights tried, one at a time, to make a projection that is to be covered cover more.
    rows_ranked : int
        Projections are ranked and improved on this many rows at most, the first ones in an order that depends
        on what the rows hold alone; those kept are then binned in full.
    min_cover : int
        Rows of its class that a rectangle must exceed.
    n_projections, n_covered : int
        Projections drawn per pass, and how many of them, the best ones, are covered.
    most_columns : int
        Columns that a projection is drawn from.
    most_retried : int
        With more classes than this, one that could not be covered is not tried again before the next phase:
        trying all of them after each success takes time in the square of their number.
    """

    tolerances: FloatArray
    least_shares: FloatArray
    strata: FloatArray
    wide_strata: FloatArray
    best_stratum: bool
    n_steps: int
    n_rounds: int
    informed: bool
    least_bins: float
    most_bins: float
    n_climbs: int
    rows_ranked: int
    min_cover: int
    n_projections: int
    n_covered: int
    most_columns: int
    most_retried: int


# As published by Wilkinson, Anand and Dang.
PAPER = LinfSettings(
    tolerances=np.array([0.0]),
    least_shares=np.array([0.0]),
    strata=np.array([0.25, 0.5, 0.75]),
    wide_strata=np.array([], dtype=np.float64),
    best_stratum=True,
    n_steps=5,
    n_rounds=2,
    informed=False,
    least_bins=2.0,
    most_bins=2.0,
    n_climbs=0,
    rows_ranked=_NO_LIMIT,
    min_cover=10,
    n_projections=25,
    n_covered=5,
    most_columns=50,
    most_retried=_NO_LIMIT,
)
REFINED = LinfSettings(
    tolerances=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.8]),
    least_shares=np.array([0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01]),
    strata=np.array([0.1, 0.25, 0.5, 0.75]),
    wide_strata=np.array([0.0, 0.1, 0.25, 0.5]),
    best_stratum=False,
    n_steps=20,
    n_rounds=1,
    informed=True,
    least_bins=0.7,
    most_bins=2.0,
    n_climbs=30,
    rows_ranked=2048,
    min_cover=3,
    n_projections=25,
    n_covered=5,
    most_columns=50,
    most_retried=20,
)
