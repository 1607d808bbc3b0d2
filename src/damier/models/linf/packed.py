"""The decision lists of a LINF model end to end in arrays, as a compiled kernel wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from damier.intake.table import FloatArray, IntArray

if TYPE_CHECKING:
    from damier.models.linf.model import LinfModel

SingleArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PackedLists:
    """All lists of a model end to end; axes are counted two a cover, x before y.

    ``sides`` holds, for each rectangle, the least value that belongs to it and the least one beyond,
    along x, then along y. ``swings[m, k]`` is the most that any class can gain on class k in members m, m + 1
    and so on.
    """

    member_starts: IntArray
    n_bins: IntArray
    origins: SingleArray
    scales: SingleArray
    axis_starts: IntArray
    axis_columns: IntArray
    axis_weights: SingleArray
    axis_shares: IntArray
    shares: SingleArray
    rectangle_starts: IntArray
    rectangles: SingleArray
    sides: SingleArray
    votes: FloatArray
    no_cover_vote: FloatArray
    swings: FloatArray
    open_edges: bool
    outside_vote: float

    @classmethod
    def of(cls, model: LinfModel) -> Self:
        """Lay out the lists of a model."""
        covers = model.covers
        axes = [axis for one in model._lists for pair in one.axes for axis in pair]
        places: list[int] = []
        shares: list[SingleArray] = []
        n_shares = 0
        for axis in axes:
            for held in axis.shares:
                places.append(-1 if held is None else n_shares)
                if held is not None:
                    shares.append(held)
                    n_shares += len(held)

        votes = model.votes()

        def starts(lengths: list[int]) -> IntArray:
            return np.cumsum([0, *lengths], dtype=np.int64)

        none = np.zeros((0, len(model.classes)))
        sizes = [len(cover.rectangles) for cover in covers]
        rectangles = np.concatenate([np.zeros((0, 4), np.int64), *(cover.rectangles for cover in covers)])
        x_axes, y_axes = (np.repeat(np.arange(a, len(axes), 2), sizes) for a in (0, 1))
        origins = np.array([axis.low for axis in axes], dtype=np.float32)
        ends = np.array([axis.high for axis in axes], dtype=np.float32)
        scales = np.array([axis.scale for axis in axes], dtype=np.float32)
        n_bins = np.array([cover.n_bins for cover in covers], dtype=np.int64)

        def side(at: IntArray, bins: IntArray) -> SingleArray:
            return _least_values(
                bins, origins[at], ends[at], scales[at], np.repeat(n_bins, sizes), model.open_edges
            )

        return cls(
            member_starts=starts([len(member) for member in model.members]),
            n_bins=n_bins,
            origins=origins,
            scales=scales,
            axis_starts=starts([len(axis.columns) for axis in axes]),
            axis_columns=np.array([j for axis in axes for j in axis.columns], dtype=np.int64),
            axis_weights=np.array([w for axis in axes for w in axis.weights], dtype=np.float32),
            axis_shares=np.array(places, dtype=np.int64),
            shares=np.concatenate([np.zeros(0, np.float32), *shares]),
            rectangle_starts=starts(sizes),
            rectangles=rectangles.astype(np.float32),
            sides=np.column_stack(
                [
                    side(x_axes, rectangles[:, 0]),
                    side(x_axes, rectangles[:, 1] + 1),
                    side(y_axes, rectangles[:, 2]),
                    side(y_axes, rectangles[:, 3] + 1),
                ]
            ),
            votes=np.concatenate([none, *votes]),
            no_cover_vote=model.no_cover_vote,
            swings=_swings([own if len(own) else model.no_cover_vote[None] for own in votes]),
            open_edges=model.open_edges,
            outside_vote=model.outside_vote,
        )


def _least_values(
    bins: IntArray,
    low: SingleArray,
    high: SingleArray,
    scale: SingleArray,
    n_bins: IntArray,
    open_edges: bool,
) -> SingleArray:
    """Least whole number of an axis in each bin or beyond it, by bisection on how scoring bins."""
    first, beyond = low.astype(np.int64), high.astype(np.int64) + 1
    while (first < beyond).any():
        middle = (first + beyond) // 2
        reached = np.clip((middle.astype(np.float32) - low) * scale, 0, n_bins - 1).astype(np.int32) >= bins
        beyond = np.where(reached, middle, beyond)
        first = np.where(reached, first, np.minimum(middle + 1, beyond))
    values = first.astype(np.float32)
    edges = (np.float32(-np.inf), np.float32(np.inf)) if open_edges else (low, high + np.float32(1))
    return np.where(bins == 0, edges[0], np.where(bins == n_bins, edges[1], values)).astype(np.float32)


def _swings(votes: list[FloatArray]) -> FloatArray:
    """Most that any class can gain on each class from a member on, and after the last one."""
    gains = np.zeros((len(votes) + 1, votes[0].shape[1]))
    for m in range(len(votes) - 1, -1, -1):
        own = votes[m]
        rows, best = np.arange(len(own)), own.argmax(axis=1)
        rest = own.copy()
        rest[rows, best] = -np.inf
        others = np.repeat(own[rows, best][:, None], own.shape[1], axis=1)
        others[rows, best] = rest.max(axis=1)
        gains[m] = gains[m + 1] + np.maximum(others - own, 0.0).max(axis=0)
    return gains
