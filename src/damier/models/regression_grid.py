"""Data grids for a number: the distribution of a numeric target in each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from damier.intake.dates import number_text
from damier.intake.frames import read_columns, row_values
from damier.intake.table import FloatArray, Table
from damier.models.codec import Counts, FieldError, check_shape
from damier.models.grid import DataGrid, unused_name
from damier.models.notebook import bar_table, class_bar, counted
from damier.models.partition import Partition
from damier.models.regressor import RegressorModel
from damier.models.target_intervals import QUANTILES, TargetIntervals

# Rows times intervals scored at once.
_CHUNK_CELLS = 1 << 20
# A rule names the interval between these quantiles.
_LOW, _HIGH = QUANTILES.index(0.05), QUANTILES.index(0.95)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegressionGrid(RegressorModel):
    """A grid over some of the variables on offer, and intervals of a numeric target.

    A cell predicts the shares of the target's intervals among its training rows, drawn towards those of all
    rows as if it held one row more. A cell without any predicts those of all rows. A category
    never seen does not inform: its row gets the shares of all cells that agree with its other parts.

    Parameters
    ----------
    grid : DataGrid
        The cells, the target's intervals as classes.
    target : TargetIntervals
        Bounds of the target's intervals; mean and quantiles of the target in each cell.
    values, counts : arrays of shape (n_values,)
        Training targets, or means of neighbouring ones, in ascending order; and their rows.
    target_name : str
        What rules call the target.
    """

    grid: DataGrid
    target: TargetIntervals
    values: FloatArray
    counts: Counts
    target_name: str = "target"

    model: ClassVar[str] = "regression_grid"

    def _check(self) -> None:
        if len(self.grid.classes) != len(self.target.bounds) + 1:
            raise FieldError("target.bounds", f"{len(self.grid.classes)} intervals of the target expected")
        check_shape(self.target, "means", len(self.grid.cells))
        super()._check()

    @cached_property
    def bounds(self) -> FloatArray:  # type: ignore[override]
        """Inner bounds of the target's intervals."""
        return np.array(self.target.bounds, dtype=np.float64)

    @property
    def target_bounds(self) -> tuple[float, ...]:
        """Inner bounds of the target's intervals."""
        return self.target.bounds

    @property
    def partitions(self) -> Mapping[str, Partition]:
        """Partitions of the selected variables."""
        return self.grid.partitions

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the selected variables."""
        return self.grid.variables

    @property
    def cost(self) -> float:
        """Criterion of the grid, in nats."""
        return self.grid.cost

    @property
    def null_cost(self) -> float:
        """Criterion of the grid without a variable and of one interval of the target, in nats."""
        return self.grid.null_cost

    @property
    def gain_per_row(self) -> float:
        """What the grid saves of the null cost, in nats per training row."""
        return max(0.0, self.null_cost - self.cost) / int(self.counts.sum())

    @cached_property
    def cell_shares(self) -> FloatArray:
        """Shares of the target's intervals in each cell, and those of all rows last."""
        overall = self.grid.shares
        drawn = self.grid.cells.counts + overall
        return np.vstack([drawn / drawn.sum(axis=1, keepdims=True), overall])

    def _read(self, X: Any) -> Table:
        return read_columns(X, self.variables, self.grid.n_variables)

    def _row_shares(self, X: Any) -> FloatArray | None:
        values = row_values(X, self.variables)
        if values is None:
            return None
        axes = zip(self.partitions.values(), values, strict=True)
        parts = np.array([[partition.part_of(value) for partition, value in axes]])
        if (parts < 0).any():
            return self.grid.shares_given(parts[0])
        shares: FloatArray = self.cell_shares[self.grid.find_cells_of(parts)[0]]
        return shares

    def _scored(self, table: Table) -> Iterator[tuple[slice, FloatArray]]:
        parts = self.grid.find_parts(table)
        cells = self.grid.find_cells_of(parts)
        step = max(1, _CHUNK_CELLS // self.n_intervals)
        for start in range(0, max(len(cells), 1), step):
            rows = slice(start, min(start + step, len(cells)))
            shares = self.cell_shares[cells[rows]]
            unseen = np.flatnonzero((parts[rows] < 0).any(axis=1))
            if unseen.size:
                known, which = np.unique(parts[rows][unseen], axis=0, return_inverse=True)
                given = np.array([self.grid.shares_given(one) for one in known])
                shares[unseen] = given[which.reshape(-1)]
            yield rows, shares

    # ----- in words

    def rules(self, output: Literal["text", "frame"] = "text", backend: str | None = None) -> Any:
        """Cells as rules, the best supported first.

        Parameters
        ----------
        output : {"text", "frame"}, default="text"
            Readable sentences: between which values 90% of the rows lie, their median, and how many they are.
            Or a table with a column for each variable's part, the support, mean, median and both ends.
        backend : {"pandas", "polars", "pyarrow", "dict"}, optional
            Library of the table; by default that of the frame that was fitted, else the first installed.
        """
        order = np.argsort(-self.grid.cells.sizes, kind="stable").tolist()
        if output == "text":
            return [self._sentence(cell) for cell in order]
        if output != "frame":
            raise ValueError(f"output must be 'text' or 'frame', got {output!r}")
        columns: dict[str, Sequence[Any]] = {}
        for k, (name, partition) in enumerate(self.partitions.items()):
            columns[name] = [partition.labels[part] for part in self.grid.cells.parts[order, k]]
        quantiles = self.target.quantiles[order]
        columns[unused_name("support", columns)] = self.grid.cells.sizes[order].tolist()
        columns[unused_name("mean", columns)] = self.target.means[order].tolist()
        columns[unused_name("median", columns)] = self.target.medians[order].tolist()
        columns[unused_name("5%", columns)] = quantiles[:, _LOW].tolist()
        columns[unused_name("95%", columns)] = quantiles[:, _HIGH].tolist()
        return self._frame(columns, backend)

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say which rule predicts each row; a cell without training rows has none.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        n : int, default=3
            Most reasons: there is one at most.
        """
        parts = self.grid.find_parts(self._read(X))
        cells = np.where((parts < 0).any(axis=1), -1, self.grid.find_cells_of(parts))
        known = cells >= 0
        said = {
            cell: self._sentence(cell) for cell in set(cells[known].tolist()) if cell < len(self.grid.cells)
        }
        return [[said[cell]][:n] if cell in said else [] for cell in cells.tolist()]

    def _sentence(self, cell: int) -> str:
        parts = zip(self.partitions.values(), self.grid.cells.parts[cell].tolist(), strict=True)
        conditions = " AND ".join(partition.condition(part) for partition, part in parts)
        quantiles = self.target.quantiles[cell]
        low, middle, high = (_short(quantiles[i]) for i in (_LOW, QUANTILES.index(0.5), _HIGH))
        said = f"between {low} and {high}" if low != high else f"{low}"
        rows = counted(int(self.grid.cells.sizes[cell]), "row")
        said = f"{self.target_name} {said} (median {middle}, {rows})"
        return f"IF {conditions} THEN {said}" if conditions else f"ALWAYS {said}"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the cells as a table: the rules, the best supported first."""
        return self.rules("frame", backend)

    def _described(self) -> str:
        return f"{self.grid._described()}, {counted(self.n_intervals, 'target interval')}"

    def _repr_html_(self) -> str:
        rows = []
        for cell in np.argsort(-self.grid.cells.sizes, kind="stable").tolist():
            parts = zip(self.partitions.values(), self.grid.cells.parts[cell].tolist(), strict=True)
            labels = [partition.labels[part] for partition, part in parts]
            bar = class_bar(self.grid.cells.counts[cell], self.grid.classes)
            size, median = int(self.grid.cells.sizes[cell]), float(self.target.medians[cell])
            rows.append((*labels, size, median, bar))
        header = (*self.variables, "rows", "median", "target")
        return bar_table(self._described(), header, rows, classes=self.grid.classes)

    def __str__(self) -> str:
        return f"{self.grid}, {counted(self.n_intervals, 'target interval')}"


def _short(value: float) -> str:
    """Write a number of the target: whole with commas, others with four digits.

    >>> _short(1150.0), _short(0.123456)
    ('1,150', '0.1235')
    """
    if float(value).is_integer() and abs(value) < 2.0**53:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else number_text(float(f"{value:.4g}"), "number")
