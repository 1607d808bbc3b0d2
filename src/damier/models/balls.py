"""Points put into groups by balls on a graph; a new point follows the training points nearest to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from damier.intake.frames_out import make_frame
from damier.intake.table import FloatArray, IntArray
from damier.models.codec import decode, encode, wanted

Metric = str | Callable[[Any, Any], float]

_CHUNK_CELLS = 1 << 22


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


@dataclass(frozen=True, eq=False, kw_only=True)
class BallPartition:
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

    names: tuple[str, ...]
    classes: tuple[Any, ...]
    points: FloatArray
    rows: IntArray
    point_groups: IntArray
    counts: IntArray
    centres: IntArray
    radii: IntArray
    cost: float
    null_cost: float
    metric: Metric = "euclidean"
    n_neighbors: int = 1
    point_shares: FloatArray | None = None

    model: ClassVar[str] = "balls"

    def __post_init__(self) -> None:
        for array in (self.points, self.rows, self.point_groups, self.counts, self.centres, self.radii):
            array.flags.writeable = False
        if self.point_shares is not None:
            self.point_shares.flags.writeable = False

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    @property
    def level(self) -> float:
        """Part of the description saved by the groups: 0 says no information."""
        return max(0.0, 1.0 - self.cost / self.null_cost)

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

    def apply(self, points: FloatArray) -> IntArray:
        """Group of the nearest training point of each point."""
        return self.point_groups[self._nearest(points, 1)[:, 0]]

    def probabilities(self, points: FloatArray) -> FloatArray:
        """Class shares at the nearest training points, averaged over these points."""
        nearest = self._nearest(points, self.n_neighbors)
        at_point = self.shares[self.point_groups] if self.point_shares is None else self.point_shares
        total: FloatArray = np.zeros((len(points), len(self.classes)))
        for k in range(nearest.shape[1]):
            total += at_point[nearest[:, k]]
        total /= nearest.shape[1]
        return total

    def _nearest(self, points: FloatArray, k: int) -> IntArray:
        """Training points nearest to each point, nearest first."""
        k = min(k, len(self.points))
        if self.metric == "euclidean":
            found = self._tree.query(points, k=[*range(1, k + 1)])[1]
            return np.asarray(found, dtype=np.int64)
        from scipy.spatial.distance import cdist  # here: most uses of this package never come this way

        nearest = np.empty((len(points), k), dtype=np.int64)
        chunk = max(1, _CHUNK_CELLS // len(self.points))
        for first in range(0, len(points), chunk):
            some = points[first : first + chunk]
            distances = cdist(some, self.points, metric=self.metric)  # type: ignore[arg-type]
            nearest[first : first + chunk] = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return nearest

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.points)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a table with one row a group: size, shares, centre and radius."""
        columns: dict[str, list[Any]] = {
            "group": list(range(self.n_groups)),
            "size": [group.size for group in self.groups],
        }
        for j, name in enumerate(self.classes):
            columns[f"share of {name}"] = [group.shares[j] for group in self.groups]
        columns["centre"] = [group.centre for group in self.groups]
        columns["radius"] = [group.radius for group in self.groups]
        return make_frame(columns, backend)

    def to_dict(self) -> dict[str, Any]:
        """Write the model in JSON types.

        Raises
        ------
        TypeError
            If the metric is a function: a saved model carries no code.
        """
        if not isinstance(self.metric, str):
            raise TypeError("a partition whose metric is a function cannot be saved: use a metric by name")
        return {
            "model": self.model,
            "names": list(self.names),
            "classes": encode(self.classes),
            "points": self.points.tolist(),
            "rows": self.rows.tolist(),
            "point_groups": self.point_groups.tolist(),
            "counts": self.counts.tolist(),
            "centres": self.centres.tolist(),
            "radii": self.radii.tolist(),
            "cost": self.cost,
            "null_cost": self.null_cost,
            "metric": self.metric,
            "n_neighbors": self.n_neighbors,
            "point_shares": None if self.point_shares is None else self.point_shares.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote."""
        if wanted(plain, "model") != cls.model:
            raise ValueError(f"not a saved partition by balls: its model is {plain['model']!r}")
        names = tuple(str(name) for name in wanted(plain, "names"))
        whole = {
            key: np.array(wanted(plain, key), dtype=np.int64)
            for key in ("rows", "point_groups", "counts", "centres", "radii")
        }
        points = np.array(wanted(plain, "points"), dtype=np.float64).reshape(-1, len(names))
        n, n_groups = len(points), len(whole["counts"])
        if not (len(whole["rows"]) == len(whole["point_groups"]) == n > 0):
            raise ValueError("not a saved model: points, rows and point_groups differ in length")
        if whole["point_groups"].min() < 0 or whole["point_groups"].max() >= n_groups:
            raise ValueError("not a saved model: point_groups names a group that is not there")
        if len(whole["centres"]) != n_groups or whole["centres"].max(initial=-1) >= n:
            raise ValueError("not a saved model: centres must name one point, or -1, a group")
        if len(whole["radii"]) != n_groups:
            raise ValueError("not a saved model: radii must hold one number a group")
        classes = decode(wanted(plain, "classes"))
        shares = plain.get("point_shares")  # not in what earlier versions wrote
        shares = None if shares is None else np.array(shares, dtype=np.float64)
        if shares is not None and shares.shape != (n, len(classes)):
            raise ValueError("not a saved model: point_shares must hold one share a point and a class")
        return cls(
            names=names,
            classes=classes,
            points=points,
            **whole,
            cost=float(wanted(plain, "cost")),
            null_cost=float(wanted(plain, "null_cost")),
            metric=str(wanted(plain, "metric")),
            n_neighbors=int(wanted(plain, "n_neighbors")),
            point_shares=shares,
        )
