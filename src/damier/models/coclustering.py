"""A coclustering: clusters of rows and of columns, their blocks, and the merges down to one block.

The criterion is formula 5 of Boullé (2011). Rows and columns without any instance are in no cluster: their
label is -1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaln, xlogy

from damier.criteria import log_bell_table, unsupervised_grid_cost
from damier.intake import read_columns, read_table
from damier.intake.counts import count_pairs, read_counts
from damier.intake.table import FloatArray, IntArray
from damier.models.codec import (
    ClassifierModel,
    Counts,
    ExtendedArray,
    FieldError,
    Model,
    Shares,
    Values,
    check_indices,
    check_shape,
    check_sums,
    shares_text,
)
from damier.models.notebook import MOST_ROWS, bar_table, block_matrix, class_bar, counted, level_bar

AxisName = Literal["rows", "columns"]
_AXIS_NAMES: tuple[AxisName, AxisName] = ("rows", "columns")
MOST_BLOCKS = 12  # of a side, as a notebook shows them


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoclusterAxis(Model):
    """One side of the table.

    Parameters
    ----------
    name : str
        What the values are: "texts", "words".
    values : tuple, optional
        Names of the values; None when they are known by their position.
    labels : array of shape (n_values,)
        Cluster of each value, -1 where it has no instance.
    totals : array of shape (n_values,)
        Instances of each value.
    typicality : array of shape (n_values,)
        What moving a value to another cluster costs, the mean over the other clusters weighted by their
        instances; in nats, for the clusters that the search found.
    """

    name: str
    values: Values | None
    labels: IntArray
    totals: Counts
    typicality: ExtendedArray

    def _check(self) -> None:
        n = self.totals.size
        check_shape(self, "totals", n)
        check_shape(self, "labels", n)
        check_shape(self, "typicality", n)
        if self.values is not None and len(self.values) != n:
            raise FieldError("values", f"{len(self.values)} names of {n} values")
        check_indices(self.labels, "labels", -1, n, "cluster")
        if (self.sizes() == 0).any():
            raise FieldError("labels", f"cluster {np.argmin(self.sizes())} holds no value")

    def _described(self) -> str:
        return f"{self.name}: {counted(len(self.labels), 'value')}, {counted(self.n_clusters, 'cluster')}"

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1

    def value(self, position: int) -> Any:
        """Name of a value, its position when it has none."""
        return position if self.values is None else self.values[position]

    def sizes(self) -> IntArray:
        """Values of each cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_clusters)

    def members(self, cluster: int) -> IntArray:
        """Positions of the values of a cluster, the most typical first."""
        if not 0 <= cluster < self.n_clusters:
            raise ValueError(f"no cluster {cluster} of {self.name}: there are {self.n_clusters}, from 0")
        members = np.flatnonzero(self.labels == cluster)
        return members[np.lexsort((members, -self.totals[members], -self.typicality[members]))]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Merges(Model):
    """Merges of clusters, in order: ``gone`` went into ``kept``, on the rows (0) or the columns (1).

    ``costs`` are those of the coclusterings after each merge.
    """

    axes: IntArray
    kept: IntArray
    gone: IntArray
    costs: FloatArray

    def _check(self) -> None:
        check_shape(self, "axes", self.axes.size)
        check_indices(self.axes, "axes", 0, 2, "axis")
        for name in ("kept", "gone", "costs"):
            check_shape(self, name, len(self.axes))

    def __len__(self) -> int:
        return len(self.axes)

    def _described(self) -> str:
        return counted(len(self), "merge")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoclusteringModel(Model):
    """Clusters of rows and columns.

    Parameters
    ----------
    rows, columns : CoclusterAxis
    cells : array of shape (n_row_clusters, n_column_clusters)
        Instances of each block.
    cost, null_cost : float
        Formula 5 of this coclustering and of the one block, in nats.
    best_cost : float
        Cost of the coclustering the search found, of which this one may be a simplification.
    merges : Merges
        From this coclustering down to one block.
    counts_name : str, optional
        For a coclustering of pairs, the column that says how often each pair occurs.
    """

    rows: CoclusterAxis
    columns: CoclusterAxis
    cells: Counts
    cost: float
    null_cost: float
    best_cost: float
    merges: Merges
    counts_name: str | None = None

    model: ClassVar[str] = "coclustering"

    def _check(self) -> None:
        check_shape(self, "cells", self.rows.n_clusters, self.columns.n_clusters)
        for axis, side in enumerate((self.rows, self.columns)):
            held = np.bincount(side.labels + 1, weights=side.totals, minlength=side.n_clusters + 1)
            if held[0] or (held[1:] != self.cells.sum(axis=1 - axis)).any():
                raise FieldError(f"{_AXIS_NAMES[axis]}.totals", "they do not add up to the cells")
        if len(self.merges) != sum(self.cells.shape) - 2:
            raise FieldError("merges", f"{len(self.merges)} do not lead from {self.cells.shape} to one block")
        left = [set(range(n)) for n in self.cells.shape]
        for s, merge in enumerate(
            zip(*(getattr(self.merges, name).tolist() for name in ("axes", "kept", "gone")), strict=True)
        ):
            axis, kept, gone = merge
            if kept == gone or not {kept, gone} <= left[axis]:
                raise FieldError("merges", f"step {s} merges a cluster that is not there")
            left[axis].remove(gone)

    def _described(self) -> str:
        sides = f"{self.rows.name} x {self.columns.name}: {self.n_row_clusters} x {self.n_column_clusters}"
        return f"{sides} clusters of {counted(self.n_instances, 'instance')}, level {self.level:.2f}"

    def _repr_html_(self) -> str:
        rows = []
        for axis in _AXIS_NAMES:
            held = self.clusters(axis, backend="dict")
            most = max(held["count"], default=1) or 1
            # those that inform most about the other axis
            for c in sorted(held["cluster"], key=lambda c: -held["information"][c])[: MOST_ROWS // 2]:
                bar = level_bar(held["count"][c] / most)
                shown = (held["values"][c], held["count"][c], bar, held["typical_values"][c])
                rows.append((self.axis(axis).name, c, *shown))
        heads = ("axis", "cluster", "values", "instances", "", "most typical")
        few = self.simplify(*(min(MOST_BLOCKS, n) for n in self.cells.shape))
        return (
            f"<div>{block_matrix(few.cells, few.expected)}{bar_table(self._described(), heads, rows)}</div>"
        )

    # ----- what was found

    @property
    def n_row_clusters(self) -> int:
        """Number of row clusters."""
        return int(self.cells.shape[0])

    @property
    def n_column_clusters(self) -> int:
        """Number of column clusters."""
        return int(self.cells.shape[1])

    @property
    def n_instances(self) -> int:
        """Instances of the table: its non-zeros, or the sum of its counts."""
        return int(self.cells.sum())

    @property
    def information(self) -> float:
        """Share of what the search found that is kept: 1 as found, 0 with one block."""
        return _share(self.cost, self.null_cost, self.best_cost)

    def axis(self, name: AxisName | int) -> CoclusterAxis:
        """Return the rows or the columns."""
        if name not in (*_AXIS_NAMES, 0, 1):
            raise ValueError(f"axis must be 'rows' or 'columns', got {name!r}")
        return self.rows if name in ("rows", 0) else self.columns

    @cached_property
    def expected(self) -> FloatArray:
        """Instances each block would hold if rows and columns were independent."""
        return np.outer(self.cells.sum(axis=1), self.cells.sum(axis=0)) / max(self.n_instances, 1)

    @cached_property
    def contributions(self) -> FloatArray:
        """What each block adds to the mutual information of the clusters, in nats; they sum up to it."""
        share = self.cells / max(self.n_instances, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.cells > 0, self.cells / self.expected, 1.0)
        return np.asarray(xlogy(share, ratio))

    def blocks(self, backend: str | None = None) -> Any:
        """Blocks as a frame: both clusters, instances, those expected, part of the mutual information."""
        i, j = np.indices(self.cells.shape).reshape(2, -1)
        return self._frame(
            {
                "row_cluster": i.tolist(),
                "column_cluster": j.tolist(),
                "count": self.cells.ravel().tolist(),
                "expected": self.expected.ravel().tolist(),
                "information": self.contributions.ravel().tolist(),
            },
            backend,
        )

    def clusters(self, axis: AxisName | int, n_typical: int = 5, backend: str | None = None) -> Any:
        """Clusters of an axis as a frame: values, instances, part of the information, most typical values."""
        side = self.axis(axis)
        along = 1 if side is self.rows else 0
        typical = [
            ", ".join(str(side.value(v)) for v in side.members(c)[:n_typical]) for c in range(side.n_clusters)
        ]
        return self._frame(
            {
                "cluster": list(range(side.n_clusters)),
                "values": side.sizes().tolist(),
                "count": self.cells.sum(axis=along).tolist(),
                "information": self.contributions.sum(axis=along).tolist(),
                "typical_values": typical,
            },
            backend,
        )

    def typical_values(
        self, cluster: int, axis: AxisName | int = "columns", n: int | None = None, backend: str | None = None
    ) -> Any:
        """Values of a cluster as a frame, the most typical first."""
        side = self.axis(axis)
        members = side.members(cluster)[:n]
        return self._frame(
            {
                "value": [side.value(v) for v in members.tolist()],
                "count": side.totals[members].tolist(),
                "typicality": side.typicality[members].tolist(),
            },
            backend,
        )

    # ----- fewer clusters

    def hierarchy(self, backend: str | None = None) -> Any:
        """Coclusterings along the merges as a frame: numbers of clusters, cost, share of information kept."""
        merged = np.concatenate([[-1], self.merges.axes])
        costs = np.concatenate([[self.cost], self.merges.costs])
        return self._frame(
            {
                "n_row_clusters": (self.n_row_clusters - np.cumsum(merged == 0)).tolist(),
                "n_column_clusters": (self.n_column_clusters - np.cumsum(merged == 1)).tolist(),
                "cost": costs.tolist(),
                "information": [_share(c, self.null_cost, self.best_cost) for c in costs.tolist()],
            },
            backend,
        )

    def simplify(
        self,
        n_row_clusters: int | None = None,
        n_column_clusters: int | None = None,
        min_information: float | None = None,
    ) -> CoclusteringModel:
        """Merge clusters along the hierarchy.

        Parameters
        ----------
        n_row_clusters, n_column_clusters : int, optional
            At most this many clusters; the merges of that axis are made in the order of the hierarchy.
        min_information : float, optional
            As few clusters as keep this share of the information, between 0 and 1.
        """
        applied = np.zeros(len(self.merges), dtype=bool)
        if min_information is not None:
            if not 0.0 <= min_information <= 1.0:
                raise ValueError(f"min_information must be between 0 and 1, got {min_information!r}")
            kept = [_share(c, self.null_cost, self.best_cost) for c in self.merges.costs.tolist()]
            enough = np.flatnonzero(np.asarray(kept) >= min_information - 1e-12)
            applied[: enough[-1] + 1 if len(enough) else 0] = True
        for axis, most in ((0, n_row_clusters), (1, n_column_clusters)):
            if most is None:
                continue
            if most < 1:
                raise ValueError(f"at least one cluster of {_AXIS_NAMES[axis]} must be left, got {most!r}")
            steps = np.flatnonzero(self.merges.axes == axis)
            applied[steps[: max(0, self.cells.shape[axis] - most)]] = True
        return self._merged(applied)

    def _merged(self, applied: npt.NDArray[np.bool_]) -> CoclusteringModel:
        """Make some of the merges; on each axis they are its first ones."""
        sides, numbers = [], []
        for axis, side in enumerate((self.rows, self.columns)):
            into = np.arange(side.n_clusters)
            for s in np.flatnonzero(applied & (self.merges.axes == axis))[::-1]:
                into[self.merges.gone[s]] = into[self.merges.kept[s]]
            number = np.unique(into, return_inverse=True)[1]
            numbers.append(number)
            # an empty value stays in no cluster: the last entry serves its label, -1
            sides.append(replace(side, labels=np.append(number, -1)[side.labels]))
        cells = np.zeros([side.n_clusters for side in sides], dtype=np.int64)
        np.add.at(cells, np.ix_(numbers[0], numbers[1]), self.cells)
        rest = ~applied
        axes = self.merges.axes[rest]
        renumbered = [
            np.where(axes == 0, *(n[np.minimum(ends[rest], len(n) - 1)] for n in numbers))
            for ends in (self.merges.kept, self.merges.gone)
        ]
        rows, columns = sides
        cost = cells_cost(cells, rows, columns)
        merges = Merges(axes=axes, kept=renumbered[0], gone=renumbered[1], costs=np.zeros(len(axes)))
        costs = _replay(cells, rows, columns, merges, cost)
        simpler = replace(
            self,
            rows=rows,
            columns=columns,
            cells=cells,
            cost=cost,
            merges=replace(merges, costs=costs),
        )
        return simpler.in_library(self.library)

    # ----- rows never seen

    def predict(self, X: Any) -> IntArray:
        """Find the row cluster that takes each new row at least cost; -1 for rows without a known column.

        Parameters
        ----------
        X : sparse matrix, array, or frame of pairs
            Counts over the columns of the training table, in their order; for a coclustering of pairs, the
            two columns under their names, and the one of counts if there is one. Values of the columns that
            were never seen bring no evidence.

        Returns
        -------
        array
            One cluster per row of ``X``: for pairs, the cluster of that pair's row.
        """
        if self.columns.values is not None:
            return self._predict_pairs(X)
        counts = read_counts(X)
        if counts.shape[1] != len(self.columns.labels):
            raise ValueError(
                f"X has {counts.shape[1]} columns; the coclustering knows {len(self.columns.labels)}."
            )
        return self._predict_counts(counts)

    def _predict_pairs(self, X: Any) -> IntArray:
        if sparse.issparse(X) or isinstance(X, np.ndarray):
            raise ValueError("The coclustering is one of pairs: pass a frame of pairs, as in fit.")
        table = read_table(X)
        counted = self.counts_name if self.counts_name in table.names else None
        names = [self.rows.name, self.columns.name, *([] if counted is None else [counted])]
        counts, (rows, columns) = count_pairs(read_columns(table, names), counted)
        position = {value: j for j, value in enumerate(self.columns.values or ())}
        known = np.array([position.get(value, -1) for value in columns.categories], dtype=np.int64)
        seen = np.flatnonzero(known >= 0)
        to_known = sparse.csr_array(
            (np.ones(len(seen), np.int64), (seen, known[seen])), shape=(len(known), len(position))
        )
        clusters: IntArray = self._predict_counts(counts @ to_known)[rows.codes.astype(np.int64)]
        return clusters

    def _predict_counts(self, table: Any) -> IntArray:
        labels = self.columns.labels
        known = np.flatnonzero(labels >= 0)
        to_cluster = sparse.csr_array(
            (np.ones(len(known), np.int64), (known, labels[known])),
            shape=(len(labels), self.n_column_clusters),
        )
        profiles = sparse.csr_array(table @ to_cluster)
        profiles.sum_duplicates()
        profiles.eliminate_zeros()
        found = np.full(table.shape[0], -1, dtype=np.int64)
        sizes, totals = self.rows.sizes(), self.cells.sum(axis=1)
        block = max(1, 4_000_000 // max(1, self.n_row_clusters))
        for first in range(0, table.shape[0], block):
            part = profiles[first : first + block]
            n_new = np.asarray(part.sum(axis=1)).ravel()
            # what the cluster costs more, less what its blocks cost less
            cost = _cluster_cost(totals + n_new[:, None], sizes + 1) - _cluster_cost(totals, sizes)
            for c in np.unique(part.data).tolist():
                step = (gammaln(self.cells + c + 1.0) - gammaln(self.cells + 1.0)).T
                chosen = part.copy()
                chosen.data = (part.data == c).astype(np.float64)
                chosen.eliminate_zeros()
                cost -= chosen @ step
            best = np.argmin(np.round(cost, 9), axis=1)
            found[first : first + block] = np.where(n_new > 0, best, -1)
        return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabeledCoclustering(ClassifierModel):
    """A coclustering whose row clusters predict classes.

    Parameters
    ----------
    coclustering : CoclusteringModel
    classes : tuple
    label_counts : array of shape (n_row_clusters, n_classes)
        Labeled rows of each cluster.
    probabilities : array of shape (n_row_clusters, n_classes)
        Class probabilities of each cluster; one without a label has those of the clusters nearest to it.
    unknown : array of shape (n_classes,)
        Class probabilities of a row that is in no cluster.
    """

    coclustering: CoclusteringModel
    classes: Values
    label_counts: Counts
    probabilities: Shares
    unknown: Shares

    model: ClassVar[str] = "labeled_coclustering"

    def _check(self) -> None:
        shape = (self.coclustering.n_row_clusters, len(self.classes))
        check_shape(self, "label_counts", *shape)
        check_shape(self, "probabilities", *shape)
        check_shape(self, "unknown", shape[1])
        check_sums(self.probabilities, "probabilities")
        check_sums(self.unknown, "unknown")

    def _described(self) -> str:
        return f"{self.coclustering._described()}, {counted(len(self.classes), 'class')}"

    def _repr_html_(self) -> str:
        rows = [
            (c, int(held.sum()), class_bar(shares, self.classes))
            for c, (held, shares) in enumerate(zip(self.label_counts, self.probabilities, strict=True))
        ]
        return bar_table(
            self._described(), ("cluster", "labeled rows", "classes"), rows, classes=self.classes
        )

    def of_clusters(self, clusters: IntArray) -> FloatArray:
        """Return the class probabilities of clusters, -1 for none."""
        return np.concatenate([self.probabilities, self.unknown[None, :]])[clusters]

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:  # noqa: ARG002
        """Say which cluster takes each row: the one reason there is."""
        texts = [[f"cluster {c}: {shares_text(self.classes, p)}"] for c, p in enumerate(self.probabilities)]
        texts.append(["in no cluster: none of its columns is known"])
        return [texts[c] for c in self.coclustering.predict(X).tolist()]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of the cluster that takes each row at least cost."""
        return self.of_clusters(self.coclustering.predict(X))


def cells_cost(cells: IntArray, rows: CoclusterAxis, columns: CoclusterAxis) -> float:
    """Price a coclustering from its blocks and the totals of its values."""
    coordinates = np.indices(cells.shape).reshape(2, -1).T
    axes = [(side.labels[side.totals > 0], side.totals[side.totals > 0]) for side in (rows, columns)]
    return unsupervised_grid_cost(coordinates, cells.ravel(), axes)


def _share(cost: float, null_cost: float, best_cost: float) -> float:
    """Share of the possible gain that a cost keeps; all of it where there is none to lose."""
    if null_cost <= best_cost:
        return 1.0
    return min(1.0, max(0.0, (null_cost - cost) / (null_cost - best_cost)))


def _cluster_cost(instances: Any, values: Any) -> FloatArray:
    """Log C(N + m - 1, m - 1) + log N! of clusters."""
    return np.asarray(gammaln(instances + values) - gammaln(values))


def row_merge_changes(cells: IntArray, sizes: IntArray, cluster: int) -> FloatArray:
    """Return what merging a row cluster with each other one would change; infinite with itself.

    The term of the number of clusters, the same for all, is left out.
    """
    line, totals = cells[cluster], cells.sum(axis=1)
    changes = _cluster_cost(totals + totals[cluster], sizes + sizes[cluster])
    changes = changes - _cluster_cost(totals, sizes) - _cluster_cost(totals[cluster], sizes[cluster])
    joint = gammaln(cells + line + 1.0) - gammaln(cells + 1.0) - gammaln(line + 1.0)
    changes = changes - joint.sum(axis=1)
    changes[cluster] = np.inf
    return np.asarray(changes)


def _replay(
    cells: IntArray, rows: CoclusterAxis, columns: CoclusterAxis, merges: Merges, cost: float
) -> FloatArray:
    """Costs after each of the merges, from the blocks before them."""
    tables = [cells.copy(), cells.T.copy()]
    sizes = [rows.sizes(), columns.sizes()]
    n_left = [len(s) for s in sizes]
    bells = [
        log_bell_table(int((side.labels >= 0).sum()), n)
        for side, n in zip((rows, columns), n_left, strict=True)
    ]
    n_instances = int(cells.sum())
    costs = np.empty(len(merges))
    for s, (axis, a, b) in enumerate(zip(merges.axes, merges.kept, merges.gone, strict=True)):
        lines, mirror, m = tables[axis], tables[1 - axis], sizes[axis]
        pair, n_pair = lines[[a, b]], lines[[a, b]].sum(axis=1)
        cost += float(_cluster_cost(n_pair.sum(), m[a] + m[b]) - _cluster_cost(n_pair, m[[a, b]]).sum())
        cost += float(gammaln(pair + 1.0).sum() - gammaln(pair.sum(axis=0) + 1.0).sum())
        before = n_left[0] * n_left[1]
        n_left[axis] -= 1
        after = n_left[0] * n_left[1]
        cost += float(bells[axis][n_left[axis]] - bells[axis][n_left[axis] + 1])
        cost += float(gammaln(n_instances + after) - gammaln(after))
        cost -= float(gammaln(n_instances + before) - gammaln(before))
        lines[a] += lines[b]
        mirror[:, a] += mirror[:, b]
        lines[b], mirror[:, b] = 0, 0
        m[a] += m[b]
        m[b] = 0
        costs[s] = cost
    return costs
