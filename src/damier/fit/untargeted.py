"""A table fitted by a grid over all its columns, without a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.criteria import unsupervised_grid_cost
from damier.fit.partitions import partition_of_parts
from damier.intake import NumericColumn, Table
from damier.models.unsupervised_grid import UnsupervisedGrid
from damier.search.run import Run


def fit_unsupervised_grid(table: Table, *, seed: int, run: Run) -> UnsupervisedGrid:
    """Search a grid and make a model of it."""
    from damier.search.grid.untargeted import GridVariable, search_unsupervised_grid

    variables: list[GridVariable] = []
    distinct: list[Any] = []
    for column in table.columns:
        values, elements = column.coded()
        variables.append(GridVariable(elements, len(values), isinstance(column, NumericColumn)))
        distinct.append(values)
    parts = search_unsupervised_grid(variables, seed=seed, run=run)
    run.stop_clock()
    rows = np.column_stack([p[v.elements] for p, v in zip(parts, variables, strict=True)])
    coordinates, counts = np.unique(rows, axis=0, return_counts=True)
    costs = []
    for of_elements in (parts, [np.zeros_like(p) for p in parts]):
        axes: list[Any] = []
        for p, v in zip(of_elements, variables, strict=True):
            n_parts = int(p.max()) + 1
            axes.append(n_parts if v.ordered else (p, np.bincount(v.elements, minlength=v.n_elements)))
        cells = np.column_stack([p[v.elements] for p, v in zip(of_elements, variables, strict=True)])
        costs.append(unsupervised_grid_cost(cells, np.ones(len(cells), np.int64), axes))
    partitions = []
    for k, column in enumerate(table.columns):
        partitions.append(
            partition_of_parts(
                column,
                parts[k],
                distinct[k],
                classes=("instances",),
                counts=np.bincount(rows[:, k])[:, None],
                cost=costs[0],
                null_cost=costs[1],
                optimal=False,
            )
        )
    return UnsupervisedGrid(
        partitions=tuple(partitions),
        coordinates=coordinates,
        counts=counts,
        cost=costs[0],
        null_cost=costs[1],
    )
