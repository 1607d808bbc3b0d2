"""Columns coded for the grid search, and its results wrapped into models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.criteria import discretization_cost, grouping_cost
from damier.fit.partitions import partition_of_parts
from damier.intake import CategoricalColumn, Column, Table, Target
from damier.models import Partition
from damier.models.grid import DataGrid, GridCells


@dataclass(frozen=True)
class CodedColumn:
    """A column for the search: codes of the rows and, for numbers, the distinct values, NaN first."""

    column: Column
    codes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64] | None

    @property
    def n_values(self) -> int:
        """Number of distinct values, missing counted as one."""
        if isinstance(self.column, CategoricalColumn):
            return len(self.column.categories)
        assert self.values is not None
        return len(self.values)

    def axis(self) -> Any:
        """Return the column as the search wants it."""
        from damier.search.grid.problem import AxisCodes

        return AxisCodes(self.codes, self.n_values, isinstance(self.column, CategoricalColumn))


def code_column(column: Column) -> CodedColumn:
    """Code the rows of a column by value; missing numbers come before all others."""
    if isinstance(column, CategoricalColumn):
        return CodedColumn(column, column.codes.astype(np.int32), None)
    values, codes = column.coded()
    return CodedColumn(column, codes.astype(np.int32), values)


def code_table(table: Table) -> list[CodedColumn]:
    """Code every column of a table."""
    return [code_column(column) for column in table.columns]


def _partition(coded: CodedColumn, target: Target, value_parts: npt.NDArray[np.int32]) -> Partition:
    """One axis of a grid as a partition, with the cost it would have alone."""
    n_parts = int(value_parts.max()) + 1
    n_classes = target.n_classes
    flat = value_parts[coded.codes].astype(np.int64) * n_classes + target.codes
    counts = np.bincount(flat, minlength=n_parts * n_classes).reshape(n_parts, n_classes).astype(np.int64)
    whole = counts.sum(axis=0, keepdims=True)
    values: Any = coded.values
    costs = (discretization_cost(counts), discretization_cost(whole))
    if isinstance(coded.column, CategoricalColumn):
        values = coded.column.categories
        costs = grouping_cost(counts, coded.n_values), grouping_cost(whole, coded.n_values)
    return partition_of_parts(
        coded.column,
        value_parts,
        values,
        classes=tuple(target.classes.tolist()),
        counts=counts,
        cost=costs[0],
        null_cost=costs[1],
        optimal=False,
    )


def build_grid(coded: Sequence[CodedColumn], target: Target, found: Any, null_cost: float) -> DataGrid:
    """Wrap a grid the search found."""
    from damier.search.grid.problem import count_cells

    axes = [one.axis() for one in coded]
    parts, counts = count_cells(axes, target.codes, target.n_classes, found.value_parts)
    return DataGrid(
        partitions={
            coded[k].column.name: _partition(coded[k], target, value_parts)
            for k, value_parts in found.value_parts.items()
        },
        cells=GridCells(parts.astype(np.int64), counts),
        classes=tuple(target.classes.tolist()),
        n_variables=len(coded),
        cost=found.cost,
        null_cost=null_cost,
    )
