"""A table fitted by a grid over all its columns, without a target."""

from __future__ import annotations

import numpy as np

from damier.fit.partitions import partition_of_parts
from damier.intake import NumericColumn, Table
from damier.models.unsupervised_grid import UnsupervisedGrid
from damier.search.run import Run


def fit_unsupervised_grid(table: Table, *, seed: int, run: Run) -> UnsupervisedGrid:
    """Search a grid and make a model of it."""
    from damier.search.grid.untargeted import GridVariable, grid_of_parts, search_unsupervised_grid

    variables: list[GridVariable] = []
    for column in table.columns:
        values, elements = column.coded()
        ordered = isinstance(column, NumericColumn)
        variables.append(GridVariable(elements.astype(np.int32), len(values), ordered))
        del values, elements
    parts = search_unsupervised_grid(variables, seed=seed, run=run)
    run.stop_clock()
    null_cost = grid_of_parts(variables, [np.zeros_like(p) for p in parts])[2]
    coordinates, counts, cost = grid_of_parts(variables, parts)
    partitions = []
    for k, column in enumerate(table.columns):
        partitions.append(
            partition_of_parts(
                column,
                parts[k].astype(np.int64),
                column.coded()[0],
                classes=("instances",),
                counts=np.bincount(coordinates[:, k], weights=counts).astype(np.int64)[:, None],
                cost=cost,
                null_cost=null_cost,
                optimal=False,
            )
        )
    return UnsupervisedGrid(
        partitions=tuple(partitions),
        coordinates=coordinates,
        counts=counts,
        cost=cost,
        null_cost=null_cost,
    )
