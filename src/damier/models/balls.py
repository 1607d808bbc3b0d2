"""Points put into groups by balls on a graph; a new point follows the training points nearest to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from damier.intake import NumericColumn, Table, read_columns
from damier.intake.table import FloatArray, IntArray
from damier.models.codec import (
    ClassifierModel,
    Counts,
    FieldError,
    Names,
    Positive,
    Shares,
    Values,
    check_indices,
    check_shape,
    check_sums,
    distinct_names,
    shares_text,
)
from damier.models.notebook import bar_table, class_bar, counted

Metric = str | Callable[[Any, Any], float]

_CHUNK_CELLS = 1 << 22
_FAR = 1e9  # in ranges of the training points


@dataclass(frozen=True, slots=True)
class BallGroup:
    """One group of training points.

    Parameters
    ----------
    size : int
        Training points in it, labeled or not.
    counts : tuple of int
        Labeled points of each class.
    shares : tuple of float
        Share of each class among them; that of the whole training set when none is labeled.
    centre : int or None
        Training row at the centre of the ball; None for what was left around the balls.
    radius : int or None
        Edges from the centre to the farthest point of the ball; None where there is no centre.
    point : tuple of float or None
        Coordinates of the centre.
    """

    size: int
    counts: tuple[int, ...]
    shares: tuple[float, ...]
    centre: int | None
    radius: int | None
    point: tuple[float, ...] | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BallPartition(ClassifierModel):
    """Training points, the group of each, and the class counts of the groups.

    Parameters
    ----------
    names : tuple of str
        Names of the coordinates.
    classes : tuple
        Classes of the target, as Python scalars.
    points : array of shape (n_points, n_features)
        Training points, in an order that does not depend on that of the training rows.
    rows : array of shape (n_points,)
        Training row of each point.
    point_groups : array of shape (n_points,)
        Group of each point.
    counts : array of shape (n_groups, n_classes)
        Labeled points of each group and class.
    centres, radii : arrays of shape (n_groups,)
        Point at the centre of each group and its radius in edges; -1 for a group that is not a ball.
    cost, null_cost : float
        Bits of the description with these groups, and with one group.
    metric : str or callable
        Distance between a new point and the training points.
    n_neighbors : int
        How many nearest points make the class probabilities.
    point_shares : array of shape (n_points, n_classes) or None
        Class shares at each point, averaged over several partitions; None: those of its group.
    """

    names: Names
    classes: Values
    points: FloatArray
    rows: Counts
    point_groups: IntArray
    counts: Counts
    centres: IntArray
    radii: IntArray
    cost: float
    null_cost: float
    metric: Metric = "euclidean"
    n_neighbors: Positive = 1
    point_shares: Shares | None = None

    model: ClassVar[str] = "balls"

    def _check(self) -> None:
        n, n_groups = len(self.points), len(self.counts)
        if n == 0 or not self.names:
            raise FieldError("points", "there is none")
        check_shape(self, "points", n, len(self.names))
        for field in ("rows", "point_groups"):
            check_shape(self, field, n)
        check_shape(self, "counts", n_groups, len(self.classes))
        if not self.counts.any():
            raise FieldError("counts", "no point has a class")
        check_indices(self.point_groups, "point_groups", 0, n_groups, "group")
        for field in ("centres", "radii"):
            check_shape(self, field, n_groups)
        check_indices(self.centres, "centres", -1, n, "point")
        if self.point_shares is not None:
            check_shape(self, "point_shares", n, len(self.classes))
            check_sums(self.point_shares, "point_shares")
        if isinstance(self.metric, str) and self.metric != "euclidean":
            from scipy.spatial.distance import cdist

            try:
                cdist(np.ones((2, 2)), np.ones((2, 2)), metric=self.metric)  # type: ignore[call-overload]
            except ValueError:
                raise FieldError("metric", f"unknown distance {self.metric!r}") from None

    def _described(self) -> str:
        groups, points = counted(self.n_groups, "group"), counted(len(self.points), "point")
        return f"{groups} of {points}, {counted(len(self.classes), 'class')}, level {self.level:.2f}"

    def _repr_html_(self) -> str:
        rows = [
            (
                g,
                group.size,
                "" if group.radius is None else group.radius,
                class_bar(group.shares, self.classes),
            )
            for g, group in enumerate(self.groups)
        ]
        return bar_table(
            self._described(), ("group", "points", "radius", "classes"), rows, classes=self.classes
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    @cached_property
    def shares(self) -> FloatArray:
        """Class shares of each group (n_groups x n_classes); a group without a label has those of all."""
        counts = np.where(self.counts.any(axis=1, keepdims=True), self.counts, self.counts.sum(axis=0))
        shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def groups(self) -> tuple[BallGroup, ...]:
        """The groups, largest first."""
        sizes = np.bincount(self.point_groups, minlength=self.n_groups)
        return tuple(
            BallGroup(
                int(sizes[g]),
                tuple(self.counts[g].tolist()),
                tuple(self.shares[g].tolist()),
                int(self.rows[self.centres[g]]) if self.centres[g] >= 0 else None,
                int(self.radii[g]) if self.centres[g] >= 0 else None,
                tuple(self.points[self.centres[g]].tolist()) if self.centres[g] >= 0 else None,
            )
            for g in range(self.n_groups)
        )

    def apply(self, X: Any) -> IntArray:
        """Group of the nearest training point of each row."""
        return self.point_groups[self._nearest(self._points(X), 1)[:, 0]]

    def transform(self, X: Any) -> IntArray:
        """Group of each row, one column."""
        return self.apply(X).reshape(-1, 1)

    def _points(self, X: Any) -> FloatArray:
        return coordinates(read_columns(X, self.names))

    def predict_proba(self, X: Any) -> FloatArray:
        """Class shares at the nearest training points, averaged over these points."""
        points = self._points(X)
        nearest = self._nearest(points, self.n_neighbors)
        at_point = self.shares[self.point_groups] if self.point_shares is None else self.point_shares
        total: FloatArray = np.zeros((len(points), len(self.classes)))
        for k in range(nearest.shape[1]):
            total += at_point[nearest[:, k]]
        total /= nearest.shape[1]
        return total

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:  # noqa: ARG002
        """Say which group of training points is nearest to each row: the one reason there is."""
        texts = [
            f"nearest to group {g}: {counted(one.size, 'point')}, {shares_text(self.classes, one.shares)}"
            for g, one in enumerate(self.groups)
        ]
        return [[texts[g]] for g in self.apply(X).tolist()]

    def _nearest(self, points: FloatArray, k: int) -> IntArray:
        """Training points nearest to each point, nearest first."""
        k = min(k, len(self.points))
        if self.metric == "euclidean":
            found = self._tree.query(self._within_reach(points), k=[*range(1, k + 1)])[1]
            return np.asarray(found, dtype=np.int64)
        from scipy.spatial.distance import cdist  # here: most uses of this package never come this way

        nearest = np.empty((len(points), k), dtype=np.int64)
        chunk = max(1, _CHUNK_CELLS // len(self.points))
        for first in range(0, len(points), chunk):
            some = points[first : first + chunk]
            distances = cdist(some, self.points, metric=self.metric)  # type: ignore[arg-type]
            if not np.isfinite(distances).all():
                raise ValueError(
                    f"The metric {self.metric!r} gives distances that are not finite: X holds points too far "
                    "from those of fit."
                )
            nearest[first : first + chunk] = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return nearest

    def _within_reach(self, points: FloatArray) -> FloatArray:
        """Scale points as those of the tree, and pull very far ones nearer, along a line to the middle.

        Beyond a billion times the range of the training points, distances to all of them round to the same
        number, or overflow; which one is nearest depends on the direction alone.
        """
        largest = np.finfo(np.float64).max / 8
        with np.errstate(over="ignore"):
            scaled = np.clip(np.ldexp(points, -self._exponent), -largest, largest)
        middle = self._tree.mins / 2 + self._tree.maxes / 2
        offset = scaled - middle
        reach = np.abs(offset).max(axis=1, initial=0.0)
        far = reach > _FAR
        scaled[far] = middle + offset[far] / reach[far, None] * _FAR
        return scaled

    @cached_property
    def _exponent(self) -> int:
        """Power of two next to the range of the training points."""
        half = (self.points.max(axis=0) / 2 - self.points.min(axis=0) / 2).max()
        return int(np.frexp(half)[1])

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(np.ldexp(self.points, -self._exponent))

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a table with one row per group: size, shares, centre and radius."""
        names = ["group", "size", *(f"share of {c}" for c in self.classes), "centre", "radius"]
        columns: list[list[Any]] = [
            list(range(self.n_groups)),
            [group.size for group in self.groups],
            *self.shares.T.tolist(),
            [group.centre for group in self.groups],
            [group.radius for group in self.groups],
        ]
        return self._frame(dict(zip(distinct_names(names), columns, strict=True)), backend)


def coordinates(table: Table) -> FloatArray:
    """Return the columns of a table as points, and refuse what has no place among them."""
    points = np.empty((table.n_rows, table.n_columns))
    for k, column in enumerate(table):
        if not isinstance(column, NumericColumn) or column.kind == "rank":
            raise ValueError(
                f"column {column.name!r} holds categories, distances need numbers: encode it or leave it out"
            )
        if column.n_missing:
            raise ValueError(
                f"column {column.name!r} has {column.n_missing} missing value(s) (Input X contains NaN): "
                "fill them first, with SimpleImputer for instance"
            )
        if not np.isfinite(column.values).all():
            raise ValueError(
                f"column {column.name!r} holds infinity (Input X contains infinity): replace it first"
            )
        points[:, k] = column.values
    return points
