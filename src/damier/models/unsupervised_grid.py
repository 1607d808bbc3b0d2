"""A grid over several variables without a target: intervals and groups, and the cells they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from damier.intake.table import IntArray
from damier.models.codec import Counts, FieldError, Model, check_indices, check_shape, distinct_names
from damier.models.encoding import apply_partitions, check_names
from damier.models.notebook import bar_table, counted, level_bar
from damier.models.partition import Partition


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnsupervisedGrid(Model):
    """Partitions of variables that go together, and the cells that hold something.

    Parameters
    ----------
    partitions : tuple of Partition
        One per variable; one part where a variable does not inform about the others. Their single class
        counts instances.
    coordinates : array of shape (n_cells, n_variables)
        Parts of each occupied cell, in lexical order.
    counts : array of shape (n_cells,)
        Instances of each occupied cell.
    cost, null_cost : float
        Criterion of the grid and of the single cell, in nats.
    """

    partitions: tuple[Partition, ...]
    coordinates: IntArray
    counts: Counts
    cost: float
    null_cost: float

    model: ClassVar[str] = "unsupervised_grid"

    def _check(self) -> None:
        check_names(self.partitions)
        check_shape(self, "coordinates", len(self.coordinates), len(self.partitions))
        check_shape(self, "counts", len(self.coordinates))
        for column, partition in zip(self.coordinates.T, self.partitions, strict=True):
            check_indices(column, "coordinates", 0, partition.n_parts, f"part of {partition.name!r}")
        if len(np.unique(self.coordinates, axis=0)) < len(self.coordinates):
            raise FieldError("coordinates", "a cell appears twice")

    def _described(self) -> str:
        crossed = " x ".join(f"{p.name} ({p.n_parts})" for p in self.partitions if p.n_parts > 1)
        return f"{crossed or 'no variable'}: {counted(len(self.counts), 'cell')}, level {self.level:.2f}"

    def _repr_html_(self) -> str:
        cells, n = self.cells(backend="dict"), max(int(self.counts.sum()), 1)
        largest = np.argsort(-self.counts, kind="stable").tolist()
        labels = [cells[name] for name in self.variables]
        rows = [
            (*(column[i] for column in labels), int(self.counts[i]), level_bar(self.counts[i] / n))
            for i in largest
        ]
        return bar_table(self._described(), (*self.variables, "rows", "share"), rows)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(partition.name for partition in self.partitions)

    @cached_property
    def _cell_of(self) -> dict[tuple[int, ...], int]:
        return {tuple(cell): i for i, cell in enumerate(self.coordinates.tolist())}

    def predict(self, X: Any) -> IntArray:
        """Return the cell of each row; -1 for cells that were empty and for values never seen.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
            Columns are found by their names, in any order; others are ignored.
        """
        parts = apply_partitions(X, self.partitions)
        found = (self._cell_of.get(cell, -1) for cell in map(tuple, parts.tolist()))
        return np.fromiter(found, np.int64, len(parts))

    apply = predict

    def cells(self, backend: str | None = None) -> Any:
        """Return the occupied cells as a frame.

        A column per variable with the part, then ``count`` (instances), ``expected`` (those expected if the
        variables were independent) and ``information`` (what the cell adds to their mutual information, in
        nats). A name that a variable has already gets a number: ``count (2)``.
        """
        n = max(int(self.counts.sum()), 1)
        expected = np.full(len(self.counts), float(n))
        columns = []
        for k, partition in enumerate(self.partitions):
            expected *= partition.counts.sum(axis=1)[self.coordinates[:, k]] / n
            columns.append([partition.labels[p] for p in self.coordinates[:, k].tolist()])
        columns.append(self.counts.tolist())
        columns.append(expected.tolist())
        columns.append(xlogy(self.counts / n, self.counts / expected).tolist())
        names = distinct_names([*self.variables, "count", "expected", "information"])
        return self._frame(dict(zip(names, columns, strict=True)), backend)
