"""From a table of counts, or a frame of pairs, to a coclustering model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from damier.criteria import unsupervised_grid_cost
from damier.intake import CategoricalColumn, Target
from damier.intake.table import FloatArray, IntArray
from damier.models.coclustering import (
    CoclusterAxis,
    CoclusteringModel,
    LabeledCoclustering,
    Merges,
    row_merge_changes,
)

if TYPE_CHECKING:
    from damier.search.run import Run


def fit_coclustering(
    counts: Any,
    sides: tuple[CategoricalColumn, CategoricalColumn] | None = None,
    counts_name: str | None = None,
    *,
    seed: int,
    effort: int | None,
    run: Run,
) -> CoclusteringModel:
    """Search a coclustering of a table of counts.

    Parameters
    ----------
    counts : csr_array of int64
        As `damier.intake.counts` reads them.
    sides : pair of CategoricalColumn, optional
        What the rows and the columns stand for; by default they are known by their positions.
    counts_name : str, optional
        The column of a frame of pairs that says how often each occurs.
    seed, effort, run
        As in `damier.search.cocluster.search.search_coclustering`.
    """
    from damier.search.cocluster.search import search_coclustering

    totals = [np.asarray(counts.sum(axis=axis)).ravel().astype(np.int64) for axis in (1, 0)]
    present = [np.flatnonzero(total) for total in totals]
    if len(present[0]) == 0:
        raise ValueError("The table holds no instance: every count is zero.")
    found = search_coclustering(_without_empty(counts, present), seed=seed, effort=effort, run=run)
    axes = []
    for side in (0, 1):
        labels = np.full(counts.shape[side], -1, dtype=np.int64)
        labels[present[side]] = found.labels[side]
        typicality = np.zeros(counts.shape[side])
        typicality[present[side]] = found.typicality[side]
        axes.append(
            CoclusterAxis(
                name=("rows", "columns")[side] if sides is None else sides[side].name,
                values=None if sides is None else sides[side].categories,
                labels=labels,
                totals=totals[side],
                typicality=typicality,
            )
        )
    sides_held = [total[kept] for total, kept in zip(totals, present, strict=True)]
    cost = _cost(found.cells, found.labels, sides_held)
    one_block = [np.zeros(len(kept), dtype=np.int64) for kept in present]
    return CoclusteringModel(
        rows=axes[0],
        columns=axes[1],
        cells=found.cells,
        cost=cost,
        null_cost=_cost(found.cells.sum(keepdims=True), one_block, sides_held),
        best_cost=cost,
        merges=Merges(
            axes=found.tree.axes.astype(np.int64),
            kept=found.tree.kept,
            gone=found.tree.gone,
            costs=cost + found.tree.costs,
        ),
        counts_name=counts_name,
    )


def _without_empty(counts: Any, present: Sequence[IntArray]) -> Any:
    """Leave out the rows and columns without an instance; in 32 bits, which hold every index and count."""
    rows, columns = present
    places = np.zeros(counts.shape[1], dtype=np.int32)
    places[columns] = np.arange(len(columns))
    start = counts.indptr[np.append(rows, counts.shape[0])]
    shape = len(rows), len(columns)
    return sparse.csr_array((counts.data.astype(np.int32), places[counts.indices], start), shape=shape)


def _cost(cells: IntArray, labels: Sequence[IntArray], totals: Sequence[IntArray]) -> float:
    """Price a coclustering by its blocks: the entries of the table need not be gone through again."""
    held = np.nonzero(cells)
    return unsupervised_grid_cost(np.column_stack(held), cells[held], list(zip(labels, totals, strict=True)))


def label_clusters(model: CoclusteringModel, target: Target, *, balanced: bool) -> LabeledCoclustering:
    """Label the row clusters of a coclustering by the labeled rows they hold.

    Parameters
    ----------
    model : CoclusteringModel
    target : Target
        Classes of the rows, -1 where there is none.
    balanced : bool
        Whether all classes are taken for equally probable a priori.
    """
    rows = model.rows.labels
    labeled = (target.codes >= 0) & (rows >= 0)
    counts = np.zeros((model.n_row_clusters, target.n_classes))
    np.add.at(counts, (rows[labeled], target.codes[labeled]), 1)
    met = np.stack([_labels_met(model, counts, cluster) for cluster in range(model.n_row_clusters)])
    # The last line is for rows in no cluster.
    met = np.concatenate([met, np.zeros((1, target.n_classes))])
    shares = np.bincount(target.codes[target.codes >= 0], minlength=target.n_classes)
    base = shares / shares.sum()
    # One more label, spread as the classes are.
    probabilities = (met + base) / (met.sum(axis=1, keepdims=True) + 1.0)
    if balanced:
        probabilities = probabilities / base
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    return LabeledCoclustering(
        coclustering=model,
        classes=tuple(target.classes.tolist()),
        label_counts=counts.astype(np.int64),
        probabilities=probabilities[:-1],
        unknown=probabilities[-1],
    )


def _labels_met(model: CoclusteringModel, counts: FloatArray, cluster: int) -> FloatArray:
    """Return the labels of a cluster, or of the first labeled one met when it is merged at least cost."""
    labels: FloatArray = counts[cluster]
    if labels.sum() > 0:
        return labels
    cells, sizes = model.cells.copy(), model.rows.sizes()
    merged = np.zeros(len(sizes), dtype=bool)
    while labels.sum() == 0:
        changes = row_merge_changes(cells, sizes, cluster)
        changes[merged] = np.inf
        partner = int(np.argmin(changes))
        if not np.isfinite(changes[partner]):
            break
        cells[cluster] += cells[partner]
        sizes[cluster] += sizes[partner]
        merged[partner] = True
        labels = counts[partner]
    return labels
