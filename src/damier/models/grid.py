"""Data grids: the cross of several partitions, and the class shares of each of its cells."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from damier.intake.frames import read_columns, row_values
from damier.intake.printable import printable
from damier.intake.table import FloatArray, IntArray, Table
from damier.models.codec import (
    ClassifierModel,
    Count,
    Counts,
    FieldError,
    Model,
    Shares,
    Values,
    Weight,
    check_indices,
    check_shape,
    check_sums,
    shares_text,
)
from damier.models.notebook import bar_table, class_bar, counted, level_bar
from damier.models.partition import IntervalPartition, Partition

# Combinations of parts whose shares an ensemble keeps per grid, when it is asked for single rows.
_MOST_KNOWN = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class GridCells(Model):
    """The non-empty cells of a grid.

    Parameters
    ----------
    parts : array of shape (n_cells, n_variables)
        Part of each selected variable, cells in lexicographic order.
    counts : array of shape (n_cells, n_classes)
        Training rows of each class.
    """

    parts: IntArray
    counts: Counts

    def _check(self) -> None:
        if self.parts.ndim != 2 or self.counts.ndim != 2 or len(self.parts) != len(self.counts):
            raise FieldError("parts", f"shape {self.parts.shape}, counts of shape {self.counts.shape}")

    def __len__(self) -> int:
        return len(self.counts)

    def _described(self) -> str:
        return f"{counted(len(self), 'cell')} of {counted(self.parts.shape[1], 'variable')}"

    @cached_property
    def sizes(self) -> IntArray:
        """Training rows of each cell."""
        sizes: IntArray = self.counts.sum(axis=1)
        return sizes

    @cached_property
    def shares(self) -> FloatArray:
        """Class shares of each cell."""
        shares: FloatArray = self.counts / self.sizes[:, None]
        return shares


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DataGrid(ClassifierModel):
    """A grid over some of the variables on offer.

    Every selected variable is partitioned into two parts or more; a cell is a combination of parts, and
    predicts the class shares of its training rows. A cell without any predicts those of the whole grid. A
    category never seen does not inform: its row gets the shares of all cells that agree with its other parts.
    ``prior_rows`` draw the probabilities of small cells to the shares of the whole grid.

    Parameters
    ----------
    partitions : dict of str to Partition
        The partitions of the selected variables.
    cells : GridCells
        The non-empty cells.
    classes : tuple
        Classes of the target, as Python scalars.
    n_variables : int
        Number of variables on offer, selected or not.
    cost, null_cost : float
        Criterion of the grid and of the grid without a variable, in nats.
    prior_rows : float, default=0.0
        Rows that each cell is taken to hold besides its own when it predicts, with the class shares of the
        whole grid.

    Examples
    --------
    >>> from damier.models import GroupPartition
    >>> colour = GroupPartition(
    ...     name="colour", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=False, groups=(("red", None), ("blue",)))
    >>> grid = DataGrid(
    ...     partitions={"colour": colour}, cells=GridCells([[0], [1]], [[9, 1], [2, 8]]),
    ...     classes=("no", "yes"), n_variables=1, cost=10.0, null_cost=15.0)
    >>> print(grid.rules()[0])
    IF colour in {red, missing} THEN no 90.0%, yes 10.0% (10 rows)
    >>> grid.predict_proba({"colour": ["blue", "green"]}).round(2).tolist()
    [[0.2, 0.8], [0.55, 0.45]]
    """

    partitions: Mapping[str, Partition]
    cells: GridCells
    classes: Values
    n_variables: Count
    cost: float
    null_cost: float
    prior_rows: Weight = 0.0

    model: ClassVar[str] = "grid"
    later_fields = ("prior_rows",)

    def _check(self) -> None:
        parts, counts = self.cells.parts, self.cells.counts
        check_shape(self.cells, "parts", len(counts), len(self.partitions))
        check_shape(self.cells, "counts", len(counts), len(self.classes))
        if len(counts) == 0 or (counts.sum(axis=1) <= 0).any():
            raise FieldError("cells.counts", "a cell holds rows, and there is at least one")
        for name, partition in self.partitions.items():
            if partition.name != name:
                raise FieldError(f"partitions[{name!r}].name", f"{partition.name!r} instead of {name!r}")
        for column, partition in zip(parts.T, self.partitions.values(), strict=True):
            check_indices(column, "cells.parts", 0, partition.n_parts, f"part of {partition.name!r}")
        if self.n_variables < len(self.partitions):
            raise FieldError("n_variables", f"{self.n_variables} for {len(self.partitions)} partitions")
        if not 0.0 <= self.prior_rows < math.inf:
            raise FieldError("prior_rows", f"must be a number that is not negative, got {self.prior_rows}")
        order = np.lexsort(parts.T[::-1]) if parts.shape[1] else np.arange(len(parts))
        if (np.diff(parts[order], axis=0) == 0).all(axis=1).any():
            raise FieldError("cells.parts", "a cell appears twice")
        if not np.array_equal(order, np.arange(len(parts))):
            object.__setattr__(self, "cells", GridCells(parts[order], counts[order]))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the selected variables."""
        return tuple(self.partitions)

    @property
    def n_cells(self) -> int:
        """Number of cells, the empty ones included."""
        total = 1
        for partition in self.partitions.values():
            total *= partition.n_parts
        return total

    @cached_property
    def shares(self) -> FloatArray:
        """Class shares of the whole grid."""
        counts = self.cells.counts.sum(axis=0)
        shares: FloatArray = counts / counts.sum()
        return shares

    @cached_property
    def probabilities(self) -> FloatArray:
        """Class probabilities that each cell predicts: its shares, drawn to those of the grid."""
        return self._drawn(self.cells.counts)

    def _drawn(self, counts: IntArray) -> FloatArray:
        rows = counts + self.prior_rows * self.shares
        drawn: FloatArray = rows / rows.sum(axis=-1, keepdims=True)
        return drawn

    @cached_property
    def _known_prefixes(self) -> list[IntArray]:
        """For each variable, the codes of the cells' prefixes that end with it.

        A prefix is coded by the number of the one before it times the parts, plus the part; numbers stay
        below that of the cells, so that any number of variables fits 64 bits.
        """
        known = []
        number = np.zeros(len(self.cells), dtype=np.int64)
        for column, partition in zip(self.cells.parts.T, self.partitions.values(), strict=True):
            codes, number = np.unique(number * partition.n_parts + column, return_inverse=True)
            known.append(codes)
        return known

    def find_parts(self, X: Any) -> IntArray:
        """Part of each row on each selected variable, -1 where its category was never seen."""
        table = read_columns(X, self.variables, self.n_variables)
        parts = np.empty((table.n_rows, len(self.partitions)), dtype=np.int64)
        for k, (name, partition) in enumerate(self.partitions.items()):
            parts[:, k] = partition.apply(table[name])
        return parts

    def find_cells(self, X: Any) -> IntArray:
        """Index of the cell of each row, -1 where it has no training row."""
        return self.find_cells_of(self.find_parts(X))

    def find_cells_of(self, parts: IntArray) -> IntArray:
        """Index of the cell of each row, given its parts; -1 where it has no training row."""
        number = np.zeros(len(parts), dtype=np.int64)
        inside = (parts >= 0).all(axis=1)
        for known, column, partition in zip(
            self._known_prefixes, parts.T, self.partitions.values(), strict=True
        ):
            codes = number * partition.n_parts + np.maximum(column, 0)
            number = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            inside &= known[number] == codes
        return np.where(inside, number, -1)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the cell of each row, or the shares of the whole grid where it is empty.

        A row with a category never seen gets those of all cells that agree with its other parts.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
            Holding at least the selected variables, under their names; an array, all that were fitted.
        """
        values = row_values(X, self.variables)
        if values is not None:
            return self._row_shares(dict(zip(self.variables, values, strict=True)))[None].copy()
        parts = self.find_parts(X)
        # an index of -1 picks the last row
        rows: FloatArray = np.vstack([self.probabilities, self.shares])
        proba: FloatArray = rows[self.find_cells_of(parts)]
        unseen = np.flatnonzero((parts < 0).any(axis=1))
        if unseen.size:
            known, which = np.unique(parts[unseen], axis=0, return_inverse=True)
            proba[unseen] = np.array([self.shares_given(one) for one in known])[which.reshape(-1)]
        return proba

    @cached_property
    def cell_at(self) -> dict[tuple[int, ...], int]:
        """Number of the cell of each combination of parts that has rows."""
        return {tuple(parts): cell for cell, parts in enumerate(self.cells.parts.tolist())}

    @cached_property
    def row_axes(self) -> list[tuple[str, tuple[float, ...] | None, int, Partition]]:
        """Names and partitions, those of plain numbers with bounds and first part: an ensemble asks many."""
        return [
            (name, p.bounds, int(p.missing_alone), p)
            if isinstance(p, IntervalPartition) and p.kind == "number"
            else (name, None, 0, p)
            for name, p in self.partitions.items()
        ]

    def row_parts(self, row: Mapping[str, Any]) -> tuple[int, ...]:
        """Part of one row on each selected variable."""
        return tuple(
            [
                bisect_left(bounds, value) + first
                if bounds is not None and type(value := row[name]) is float and value == value
                else partition.part_of(row[name])
                for name, bounds, first, partition in self.row_axes
            ]
        )

    def _row_shares(self, row: Mapping[str, Any]) -> FloatArray:
        """Class probabilities of one row."""
        parts = self.row_parts(row)
        cell = self.cell_at.get(parts)
        if cell is not None:
            probabilities: FloatArray = self.probabilities[cell]
            return probabilities
        return self.shares_given(np.array(parts)) if min(parts) < 0 else self.shares

    def shares_given(self, parts: IntArray) -> FloatArray:
        """Class probabilities of the cells that agree with the parts that are known (0 or more)."""
        agree = ((self.cells.parts == parts) | (parts < 0)).all(axis=1)
        return self._drawn(self.cells.counts[agree].sum(axis=0)) if agree.any() else self.shares

    def _by_support(self) -> IntArray:
        return np.argsort(-self.cells.sizes, kind="stable")

    def rules(self, output: Literal["text", "frame"] = "text", backend: str | None = None) -> Any:
        """Cells as rules, the best supported first.

        Parameters
        ----------
        output : {"text", "frame"}, default="text"
            Readable sentences, or a table with a column for each variable's part, the support, and the
            share of each class.
        backend : {"pandas", "polars", "pyarrow", "dict"}, optional
            Library of the table; by default that of the frame that was fitted, else the first installed.
        """
        order = self._by_support()
        labels = [partition.labels for partition in self.partitions.values()]
        if output == "text":
            conditions = self._conditions()
            return [self._sentence(int(cell), conditions) for cell in order]
        if output != "frame":
            raise ValueError(f"output must be 'text' or 'frame', got {output!r}")
        columns: dict[str, Sequence[Any]] = {}
        for k, name in enumerate(self.variables):
            columns[name] = [labels[k][part] for part in self.cells.parts[order, k]]
        columns[unused_name("support", columns)] = self.cells.sizes[order].tolist()
        for j, c in enumerate(self.classes):
            columns[unused_name(f"share {c}", columns)] = self.cells.shares[order, j].tolist()
        return self._frame(columns, backend)

    def _conditions(self) -> list[list[str]]:
        return [[p.condition(part) for part in range(p.n_parts)] for p in self.partitions.values()]

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:  # noqa: ARG002
        """Say which cell predicts each row: the one reason there is."""
        conditions = self._conditions()
        parts = self.find_parts(X)
        unseen = np.asarray((parts < 0).any(axis=1))
        rule = {cell: self._sentence(cell, conditions) for cell in range(len(self.cells))}
        rule[-1] = f"no training row in its cell: {shares_text(self.classes, self.shares)} of all"
        return [
            ["a category never seen: the cells that agree with the other columns"] if new else [rule[cell]]
            for cell, new in zip(self.find_cells_of(parts).tolist(), unseen.tolist(), strict=True)
        ]

    def _sentence(self, cell: int, written: list[list[str]]) -> str:
        parts = self.cells.parts[cell]
        conditions = " AND ".join(of_part[part] for of_part, part in zip(written, parts, strict=True))
        prediction = shares_text(self.classes, self.cells.shares[cell])
        size = int(self.cells.sizes[cell])
        rows = f"{size} row" + ("" if size == 1 else "s")
        return (
            f"IF {conditions} THEN {prediction} ({rows})" if conditions else f"ALWAYS {prediction} ({rows})"
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the cells as a table: the rules, the best supported first."""
        return self.rules("frame", backend)

    def _described(self) -> str:
        crossed = " x ".join(f"{name} ({p.n_parts})" for name, p in self.partitions.items()) or "no variable"
        return f"{crossed}: {len(self.cells):,} of {counted(self.n_cells, 'cell')}, level {self.level:.2f}"

    def _repr_html_(self) -> str:
        labels = [partition.labels for partition in self.partitions.values()]
        rows = []
        for cell in self._by_support().tolist():
            parts = [of_part[p] for of_part, p in zip(labels, self.cells.parts[cell].tolist(), strict=True)]
            bar = class_bar(self.cells.counts[cell], self.classes)
            rows.append((*parts, int(self.cells.sizes[cell]), bar))
        return bar_table(self._described(), (*self.variables, "rows", "classes"), rows, classes=self.classes)

    def __str__(self) -> str:
        crossed = " x ".join(f"{name} ({p.n_parts})" for name, p in self.partitions.items()) or "no variable"
        used = f"{len(self.cells)} of {self.n_cells} cells in use"
        return printable(f"grid of {crossed}: level {self.level:.4f}, {used}")


@dataclass(frozen=True, eq=False, repr=False)
class GridEnsemble(ClassifierModel):
    """Several grids that predict together: the mean of their class probabilities, by weight.

    Parameters
    ----------
    grids : tuple of DataGrid
        Distinct grids over the same classes.
    weights : array
        Weight of each, summing to one.
    power : float, default=1.0
        The mean probabilities are raised to this power and scaled to sum to one: the mean of many grids is
        more hesitant than the rows warrant.
    """

    grids: tuple[DataGrid, ...]
    weights: Shares
    power: Weight = 1.0

    later_fields = ("power",)

    model: ClassVar[str] = "grid_ensemble"

    def _check(self) -> None:
        object.__setattr__(self, "grids", tuple(self.grids))
        if not self.grids:
            raise FieldError("grids", "an ensemble needs at least one grid")
        for i, grid in enumerate(self.grids):
            if grid.classes != self.grids[0].classes or grid.n_variables != self.grids[0].n_variables:
                raise FieldError(f"grids[{i}]", "other classes or variables than those of the first grid")
        check_shape(self, "weights", len(self.grids))
        check_sums(self.weights, "weights")
        if not 0.0 < self.power < math.inf:
            raise FieldError("power", f"must be a number above zero, got {self.power}")

    @property
    def classes(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Classes of the target."""
        return self.grids[0].classes

    def _described(self) -> str:
        return f"{counted(len(self.grids), 'grid')}, {counted(len(self.classes), 'class')}"

    def _repr_html_(self) -> str:
        order = np.argsort(-self.weights, kind="stable").tolist()
        rows = [
            (self.grids[i]._described(), float(self.weights[i]), level_bar(self.weights[i])) for i in order
        ]
        return bar_table(self._described(), ("grid", "weight", ""), rows)

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say what the grids of most weight say of each row."""
        heaviest = np.argsort(-self.weights, kind="stable")[:n].tolist()
        table = self._read(X)
        said = [self.grids[i].reasons(table) for i in heaviest]
        return [[one for (one,) in of_row] for of_row in zip(*said, strict=True)]

    def _read(self, X: Any) -> Table:
        return read_columns(X, self._names, self.grids[0].n_variables)

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for grid in self.grids for name in grid.variables))

    def predict_proba(self, X: Any) -> FloatArray:
        """Weighted mean of the grids' class probabilities, to the power of the ensemble."""
        values = row_values(X, self._names)
        if values is not None:
            return self._row_mean(dict(zip(self._names, values, strict=True)))
        table = self._read(X)
        proba = np.zeros((table.n_rows, len(self.classes)))
        for grid, weight in zip(self.grids, self.weights, strict=True):
            proba += weight * grid.predict_proba(table)
        return self._sharpened(proba)

    def _sharpened(self, proba: FloatArray) -> FloatArray:
        if self.power == 1.0:
            return proba
        sharp = (proba / proba.max(axis=1, keepdims=True)) ** self.power
        scaled: FloatArray = sharp / sharp.sum(axis=1, keepdims=True)
        return scaled

    @cached_property
    def _row_plan(self) -> list[tuple[DataGrid, float, dict[tuple[int, ...], list[float]], list[float]]]:
        """Grids with their weights, and their weighted shares: of each cell, and of an empty one."""
        plan = []
        for grid, weight in zip(self.grids, self.weights.tolist(), strict=True):
            if weight > 0.0:
                held = (weight * grid.probabilities).tolist()
                known = {parts: held[cell] for parts, cell in grid.cell_at.items()}
                plan.append((grid, weight, known, (weight * grid.shares).tolist()))
        return plan

    def _row_mean(self, row: Mapping[str, Any]) -> FloatArray:
        # Numbers of Python: the same sums as in a table, without hundreds of arrays of a few of them.
        sums = [0.0] * len(self.classes)
        for grid, weight, known, empty in self._row_plan:
            parts = grid.row_parts(row)
            shares = known.get(parts, empty)
            if shares is empty and min(parts, default=0) < 0:  # a category never seen
                shares = (weight * grid.shares_given(np.array(parts))).tolist()
                if len(known) < _MOST_KNOWN:
                    known[parts] = shares
            sums = [total + share for total, share in zip(sums, shares, strict=True)]
        return self._sharpened(np.array([sums]))


def unused_name(name: str, columns: Mapping[str, Any]) -> str:
    """Give a column a name that no variable has."""
    while name in columns:
        name += "_"
    return name
