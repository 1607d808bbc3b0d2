"""From a table of counts to a coclustering model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from damier.criteria import coclustering_cost
from damier.models.coclustering import CoclusterAxis, CoclusteringModel, Merges

Progress = Callable[[str, float, int, int], None]


@dataclass(frozen=True, slots=True)
class CountTable:
    """Counts with the names of both sides; ``codes`` gives the row of each pair when the input was pairs."""

    counts: Any
    names: tuple[str, str]
    row_values: tuple[Any, ...] | None
    column_values: tuple[Any, ...] | None
    codes: npt.NDArray[Any] | None = None


def fit_coclustering(
    table: CountTable,
    *,
    seed: int,
    n_threads: int = 1,
    time_limit: float | None = None,
    effort: float = 1.0,
    progress: Progress | None = None,
) -> tuple[CoclusteringModel, str]:
    """Search a coclustering of a table and make a model of it; also tell how the search ended."""
    from damier.search.cocluster.search import search_coclustering
    from damier.search.cocluster.state import SparseCounts

    counts = table.counts
    n_rows, n_columns = counts.shape
    totals = [np.asarray(counts.sum(axis=axis)).ravel().astype(np.int64) for axis in (1, 0)]
    present = [np.flatnonzero(total) for total in totals]
    if len(present[0]) == 0:
        raise ValueError("the table holds no instance: every count is zero")
    held = counts
    if len(present[0]) < n_rows or len(present[1]) < n_columns:
        held = counts[present[0]][:, present[1]]
    by_column = held.tocsc()
    found = search_coclustering(
        SparseCounts(
            held.indptr, held.indices, held.data, by_column.indptr, by_column.indices, by_column.data
        ),
        seed=seed,
        n_threads=n_threads,
        time_limit=time_limit,
        effort=effort,
        progress=progress,
    )
    del by_column
    sides = []
    for name, values, total, kept, labels, typicality in (
        (table.names[0], table.row_values, totals[0], present[0], found.row_labels, found.row_typicality),
        (
            table.names[1],
            table.column_values,
            totals[1],
            present[1],
            found.column_labels,
            found.column_typicality,
        ),
    ):
        all_labels = np.full(len(total), -1, dtype=np.int64)
        all_labels[kept] = labels
        all_typicality = np.zeros(len(total))
        all_typicality[kept] = typicality
        sides.append(
            CoclusterAxis(
                name=name, values=values, labels=all_labels, totals=total, typicality=all_typicality
            )
        )
    rows, columns = sides
    coarse = held.tocoo()
    cells = np.zeros((rows.n_clusters, columns.n_clusters), dtype=np.int64)
    np.add.at(cells, (found.row_labels[coarse.coords[0]], found.column_labels[coarse.coords[1]]), coarse.data)
    cost = coclustering_cost(held, found.row_labels, found.column_labels)
    null_cost = coclustering_cost(held, np.zeros(held.shape[0]), np.zeros(held.shape[1]))
    tree = found.tree
    model = CoclusteringModel(
        rows=rows,
        columns=columns,
        cells=cells,
        cost=cost,
        null_cost=null_cost,
        best_cost=cost,
        merges=Merges(
            axes=tree.axes.astype(np.int64),
            kept=tree.kept.astype(np.int64),
            gone=tree.gone.astype(np.int64),
            costs=cost + tree.costs,
        ),
    )
    return model, found.ended


def whole_table(counts: Any) -> Any:
    """Return a table of counts as CSR of int64, refusing what is not a whole, non-negative number."""
    table = sparse.csr_array(counts)
    if table.dtype.kind not in "iufb":
        raise ValueError(f"counts must be numbers, got {table.dtype}; for pairs of names pass a frame")
    table.sum_duplicates()
    data = table.data
    wrong = ~(data >= 0) | (data != np.floor(data)) if data.dtype.kind == "f" else data < 0
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        column = int(table.indices[entry])
        what = "Negative values in data" if data[entry] < 0 else "Counts must be whole numbers"
        raise ValueError(
            f"{what}: column {column} holds {data[entry]!r}. Round or scale the values, or pass 0/1 for "
            "presence"
        )
    table = sparse.csr_array((data.astype(np.int64), table.indices, table.indptr), shape=table.shape)
    table.eliminate_zeros()
    return table
