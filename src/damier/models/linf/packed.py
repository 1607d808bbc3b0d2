"""The decision lists of a LINF model end to end in arrays: what scores, with NumPy or compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from damier.intake.table import FloatArray, IntArray

if TYPE_CHECKING:
    from damier.models.linf.model import LinfModel

SingleArray = npt.NDArray[np.float32]


class PackedLists(NamedTuple):
    """All lists of a model end to end. Covers, axes and rectangles are counted over all members.

    Parameters
    ----------
    member_starts : int64 array of shape (n_members + 1,)
        First cover of each member.
    n_bins : int64 array of shape (n_covers,)
        Bins per side.
    origins, scales : float32 arrays of shape (2 * n_covers,)
        Least training value of each axis, and bins per unit of it; x comes before y.
    axis_starts : int64 array of shape (2 * n_covers + 1,)
        First term of each axis.
    axis_columns, axis_weights, axis_shares : arrays of shape (n_terms,)
        Column of each term, its weight, and where the shares of its categories begin, -1 if it is numeric.
    shares : float32 array
        What categories stand for.
    rectangle_starts : int64 array of shape (n_covers + 1,)
        First rectangle of each cover.
    rectangles : float32 array of shape (n_rectangles, 4)
        First and last bin along x, first and last along y.
    sides : float32 array of shape (n_rectangles, 4)
        Least value along x that belongs to the rectangle and least one beyond it, then the same along y.
    votes : float64 array of shape (n_rectangles, n_classes)
        Vote of each rectangle.
    no_cover_vote : float64 array of shape (n_classes,)
        Vote of a member that has no cover.
    swings : float64 array of shape (n_members + 1, n_classes)
        ``swings[m, k]`` is the most that any class can gain on class k in members m, m + 1 and so on.
    open_edges : bool
        Rectangles that touch the edge of their bins go on to infinity.
    outside_vote : float
        Weight of the vote of a member in none of whose rectangles the row lies.
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
        position = {column.name: j for j, column in enumerate(model.columns)}
        terms = [
            (position[name], weight, cover.shares.get(name, ()))
            for cover in covers
            for axis in (cover.x, cover.y)
            for name, weight in axis
        ]
        widths = np.array([len(shares) for _, _, shares in terms], dtype=np.int64)
        n_bins = np.array([cover.n_bins for cover in covers], dtype=np.int64)
        # Least and greatest value of each axis.
        low, high = np.array([c.limits for c in covers], dtype=np.int64).reshape(-1, 2).T
        scales = (np.repeat(n_bins, 2) / (high - low + 1.0)).astype(np.float32)
        sizes = [len(cover.rectangles) for cover in covers]
        rectangles = np.concatenate([np.zeros((0, 4), np.int64), *(cover.rectangles for cover in covers)])
        sides = np.empty(rectangles.shape, dtype=np.float32)
        for side, edge in enumerate(rectangles.T):
            at = np.repeat(np.arange(side // 2, len(low), 2), sizes)
            sides[:, side] = _least_values(
                edge + side % 2,
                low[at].astype(np.float32),
                high[at].astype(np.float32),
                scales[at],
                np.repeat(n_bins, sizes),
                model.open_edges,
            )
        member_starts = _starts([len(member) for member in model.members])
        rectangle_starts = _starts(sizes)
        votes = _votes(model, rectangles.shape[0])
        return cls(
            member_starts=member_starts,
            n_bins=n_bins,
            origins=low.astype(np.float32),
            scales=scales,
            axis_starts=_starts([len(axis) for cover in covers for axis in (cover.x, cover.y)]),
            axis_columns=np.array([j for j, _, _ in terms], dtype=np.int64),
            axis_weights=np.array([weight for _, weight, _ in terms], dtype=np.float32),
            axis_shares=np.where(widths > 0, np.cumsum(widths) - widths, -1),
            shares=np.array([share for _, _, shares in terms for share in shares], dtype=np.float32),
            rectangle_starts=rectangle_starts,
            rectangles=rectangles.astype(np.float32),
            sides=sides,
            votes=votes,
            no_cover_vote=model.no_cover_vote,
            swings=_swings(
                [
                    own if len(own) else model.no_cover_vote[None]
                    for own in np.split(votes, rectangle_starts[member_starts[1:-1]])
                ]
            ),
            open_edges=model.open_edges,
            outside_vote=model.outside_vote,
        )

    def project(self, axis: int, rows: SingleArray) -> SingleArray:
        """Weighted sum of the columns of an axis, exact; ``rows`` is columns by rows."""
        total = np.zeros(rows.shape[1], dtype=np.float32)
        for q in range(self.axis_starts[axis], self.axis_starts[axis + 1]):
            values, weight, place = rows[self.axis_columns[q]], self.axis_weights[q], self.axis_shares[q]
            if place >= 0:
                values = self.shares[place:].take(values.astype(np.intp))
            total += values if weight == 1 else weight * values
        return total

    def decide(self, member: int, rows: SingleArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the rectangle of a member that decides each row, and whether it holds the row.

        ``rows`` is columns by rows; the member must have a cover.
        """
        decided = np.full(rows.shape[1], -1, dtype=np.int64)
        left = np.arange(rows.shape[1])
        for cover in range(self.member_starts[member], self.member_starts[member + 1]):
            x, y = self.project(2 * cover, rows), self.project(2 * cover + 1, rows)
            first, last = self.rectangle_starts[cover : cover + 2]
            hit = np.full(len(left), -1, dtype=np.int64)
            for r in range(last - 1, first - 1, -1):  # the first one that holds a row has the last word
                x0, x1, y0, y1 = self.sides[r]
                hit[(x >= x0) & (x < x1) & (y >= y0) & (y < y1)] = r
            missed = hit < 0
            decided[left] = hit
            left, rows = left[missed], np.compress(missed, rows, axis=1)
            if not len(left):
                break
        inside = decided >= 0
        if len(left):
            decided[left] = self._nearest(member, rows)
        return decided, inside

    def _nearest(self, member: int, rows: SingleArray) -> IntArray:
        """First of the nearest rectangles, by the largest distance along an axis."""
        nearest = np.zeros(rows.shape[1], dtype=np.int64)
        least = np.full(rows.shape[1], np.inf, dtype=np.float32)
        for cover in range(self.member_starts[member], self.member_starts[member + 1]):
            b = np.float32(self.n_bins[cover])
            x, y = (
                (self.project(axis, rows) - self.origins[axis]) * self.scales[axis]
                for axis in (2 * cover, 2 * cover + 1)
            )
            if self.open_edges:
                x, y = np.clip(x, 0, b), np.clip(y, 0, b)
            for r in range(self.rectangle_starts[cover], self.rectangle_starts[cover + 1]):
                x0, x1, y0, y1 = self.rectangles[r]
                along = np.maximum(x0 - x, x - (x1 + np.float32(1)))
                across = np.maximum(y0 - y, y - (y1 + np.float32(1)))
                distance = np.maximum(along, across) / b
                nearest[distance < least] = r
                np.minimum(least, distance, out=least)
        return nearest


def _starts(lengths: Sequence[int]) -> IntArray:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _votes(model: LinfModel, n_rectangles: int) -> FloatArray:
    """Vote of every rectangle: for its class, or by the class shares of its rows, mixed with a prior."""
    sizes = [len(cover.rectangles) for cover in model.covers]
    own = np.zeros((n_rectangles, len(model.classes)))
    classes = np.array([cover.class_index for cover in model.covers], dtype=np.int64)
    own[np.arange(n_rectangles), np.repeat(classes, sizes)] = 1.0
    if not model.shared_votes or not n_rectangles:
        return own
    held = np.array(model.class_counts, dtype=np.float64)
    prior = held / max(held.sum(), 1.0)
    counts = np.concatenate([cover.counts for cover in model.covers])
    votes: FloatArray = np.sqrt(
        (counts + 0.7 * own + 0.3 * prior) / (counts.sum(axis=1, keepdims=True) + 1.0)
    )
    return votes


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
