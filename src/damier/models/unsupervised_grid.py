"""A grid over several variables without a target: intervals and groups, and the cells they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import xlogy

from damier.intake import Table
from damier.intake.frames_out import make_frame
from damier.intake.table import IntArray
from damier.models.codec import wanted
from damier.models.encoding import partition_from_dict
from damier.models.partition import Partition


@dataclass(frozen=True, eq=False, kw_only=True)
class UnsupervisedGrid:
    """Partitions of variables that go together, and the cells that hold something.

    Parameters
    ----------
    partitions : tuple of Partition
        One a variable; one part where a variable tells nothing of the others. Their single class counts
        instances.
    coordinates : array of shape (n_cells, n_variables)
        Parts of each occupied cell, in lexical order.
    counts : array of shape (n_cells,)
        Instances of each occupied cell.
    cost, null_cost : float
        Criterion of the grid and of the single cell, in nats.
    """

    partitions: tuple[Partition, ...]
    coordinates: IntArray
    counts: IntArray
    cost: float
    null_cost: float

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(partition.name for partition in self.partitions)

    @property
    def level(self) -> float:
        """Share of the null cost that the grid saves."""
        return max(0.0, 1.0 - self.cost / self.null_cost) if self.null_cost > 0 else 0.0

    @cached_property
    def _cell_of(self) -> dict[tuple[int, ...], int]:
        return {tuple(cell): i for i, cell in enumerate(self.coordinates.tolist())}

    def apply(self, table: Table) -> IntArray:
        """Cell of each row; -1 for cells that were empty and for values never seen."""
        columns = [partition.apply(table[partition.name]) for partition in self.partitions]
        found = (self._cell_of.get(cell, -1) for cell in zip(*(c.tolist() for c in columns), strict=True))
        return np.fromiter(found, np.int64, table.n_rows)

    def cells(self, backend: str | None = None) -> Any:
        """Occupied cells as a frame: part of each variable, instances, those expected, information."""
        n = max(int(self.counts.sum()), 1)
        expected = np.full(len(self.counts), float(n))
        columns: dict[str, Any] = {}
        for k, partition in enumerate(self.partitions):
            expected *= partition.counts.sum(axis=1)[self.coordinates[:, k]] / n
            columns[partition.name] = [partition.labels[p] for p in self.coordinates[:, k].tolist()]
        columns["count"] = self.counts.tolist()
        columns["expected"] = expected.tolist()
        columns["information"] = xlogy(self.counts / n, self.counts / expected).tolist()
        return make_frame(columns, backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in JSON types."""
        return {
            "model": "unsupervised grid",
            "partitions": [partition.to_dict() for partition in self.partitions],
            "coordinates": self.coordinates.tolist(),
            "counts": self.counts.tolist(),
            "cost": self.cost,
            "null_cost": self.null_cost,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        if wanted(plain, "model") != "unsupervised grid":
            raise ValueError(f"not a saved grid: it says {plain['model']!r}")
        return cls(
            partitions=tuple(partition_from_dict(p) for p in wanted(plain, "partitions")),
            coordinates=np.asarray(wanted(plain, "coordinates"), dtype=np.int64),
            counts=np.asarray(wanted(plain, "counts"), dtype=np.int64),
            cost=float(wanted(plain, "cost")),
            null_cost=float(wanted(plain, "null_cost")),
        )
