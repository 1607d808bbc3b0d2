"""Coclustering of sparse tables."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, BiclusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from damier.estimators._base import seed_of
from damier.estimators._sklearn import UNUSED, Interval, fit_context
from damier.fit.coclusters import fit_coclustering
from damier.fit.sources import SourceUse
from damier.fit.training import LEAST_ENGINE_MEMORY
from damier.intake import Table, read_table
from damier.intake.counts import check_matrix, count_pairs, read_counts
from damier.intake.engines.source import is_source, memory_bytes, open_source, read_pairs
from damier.intake.frames import as_frame, make_frame
from damier.intake.table import IntArray
from damier.models.coclustering import AxisName, CoclusterAxis, CoclusteringModel
from damier.search.run import ProgressCallback, Run, count_threads


class Coclustering(BiclusterMixin, BaseEstimator):
    """Cluster the rows and the columns of a table of counts together.

    The numbers of clusters are part of the answer: the coclustering is the one of least cost, a trade-off
    between the precision of the blocks and the certainty that they are real. A table without structure gives
    one block.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds for the search, after which the best coclustering so far is kept.
    effort : int, default=None
        How long to search: each step up doubles the search. None is 4.
    counts : str, default=None
        For a frame of pairs, the column that says how often each pair occurs.
    random_state : int, RandomState instance or None, default=None
        Seed of the search. None is one fixed seed: the same data give the same coclustering.
    n_jobs : int, default=None
        Number of threads, -1 for one per core. The result does not depend on it.
    memory_limit : int or str, default=None
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A pair
        of values takes 64 of them, and there are never more than 100,000,000 pairs.

    Attributes
    ----------
    row_labels_ : array of shape (n_rows,)
        Cluster of each row; -1 for rows without an instance. Clusters that resemble each other have
        neighbouring numbers.
    column_labels_ : array of shape (n_columns,)
        Cluster of each column.
    summary_ : frame
        One row per axis: name, values, clusters, empty (values without any instance).
    row_names_, column_names_ : arrays
        What the rows and columns stand for: their positions, or the values of a frame of pairs.
    cost_, null_cost_ : float
        Cost of the coclustering and of one block, in nats.
    level_ : float
        Share of the null cost that the coclustering saves.
    model_, coclustering_ : CoclusteringModel
        The blocks and the hierarchy of merges.
    rows_, columns_ : arrays of shape (n_blocks, n_rows) and (n_blocks, n_columns)
        Whether a row or column belongs to a block, in the order of `blocks`. They are made when asked for:
        with many blocks, use the labels.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, seconds.
    n_features_in_ : int

    Notes
    -----
    ``X`` may be a sparse or dense matrix of whole non-negative counts, or a frame of two columns, one pair
    per row; whole numbers in it are names. Or it is a table of any number of rows that an engine holds: it
    counts the pairs, and the search gets what it would get of the rows. For numbers, dates, or more than two
    variables, see `DataGridClustering`.

    References
    ----------
    M. Boullé (2011), Data grid models for preparation and modeling in supervised learning.

    Examples
    --------
    >>> import numpy as np
    >>> from damier import Coclustering
    >>> table = np.kron([[4, 0, 1], [0, 5, 1]], np.ones((6, 4), dtype=int))
    >>> model = Coclustering().fit(table)
    >>> model.row_labels_
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> model.model_.cells
    array([[ 96,  24,   0],
           [  0,  24, 120]])
    >>> model.get_shape(0)
    (6, 4)
    """

    # A callback for whoever calls fit, not metadata for scikit-learn to route.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"progress": UNUSED}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "effort": [Interval(Integral, 0, None, closed="left"), None],
        "counts": [str, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "memory_limit": [Integral, str, None],
    }

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        effort: int | None = None,
        counts: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.effort = effort
        self.counts = counts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, progress: ProgressCallback | None = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : sparse matrix, array, frame of pairs, or source
            A source is a table that an engine holds: the path or pattern of Parquet or CSV files, a DuckDB
            relation, a Spark DataFrame, an ibis table.
        y : pair of str, optional
            Where X is a source, the columns whose values are clustered; not needed if there are no others,
            but for ``counts``. Ignored otherwise.
        progress : callable, optional
            Called after each round with the state of the search: its ``cost``, ``level``, ``done`` (rounds),
            ``total``, ``seconds`` and ``text``.

        Returns
        -------
        self
        """
        self.source_: SourceUse | None = None
        if is_source(X):
            return self._fit_source(X, y, progress)
        del y
        if _is_frame(X):
            table = self._read_frame(X)
            self._fit_counts(*count_pairs(table, self.counts), progress=progress)
            self.model_.in_library(table.library)
            return self
        if self.counts is not None:
            raise ValueError("counts= names a column of a frame of pairs; X is a matrix.")
        return self._fit_counts(self._read_matrix(X, reset=True), progress=progress)

    def _fit_source(self, X: Any, y: Any, progress: ProgressCallback | None) -> Self:
        """Have the engine count the pairs, then search."""
        memory, began = memory_bytes(self.memory_limit), time.monotonic()
        source = open_source(
            X, memory_limit=max(memory // 2, LEAST_ENGINE_MEMORY), threads=count_threads(self.n_jobs)
        )
        assert source is not None
        names = (
            [column.name for column in source.columns if column.name != self.counts] if y is None else list(y)
        )
        counts, sides = read_pairs(source, names, self.counts, memory)
        self.feature_names_in_ = np.array([*names, *([self.counts] if self.counts else [])], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self._fit_counts(counts, sides, progress)
        self.source_ = SourceUse(source.engine, source.n_rows, source.n_scans, time.monotonic() - began)
        return self

    def _fit_counts(self, counts: Any, sides: Any = None, progress: ProgressCallback | None = None) -> Self:
        """Fit a table of counts that was read already."""
        run = Run(count_threads(self.n_jobs), self.time_limit, progress)
        model = run.call(
            fit_coclustering,
            counts,
            sides,
            self.counts if sides is not None else None,
            seed=seed_of(self.random_state),
            effort=self.effort,
            run=run,
        )
        self.search_ended_ = run.ended
        self._keep(model)
        return self

    def _read_frame(self, X: Any) -> Table:
        """Read the frame of pairs that ``fit`` was given."""
        frame = as_frame(X)
        if frame is not None:
            X = frame.to_native()  # collected, if it was lazy
        table = read_table(X)
        if isinstance(X, (Mapping, Table)):
            self.feature_names_in_ = np.array(table.names, dtype=object)
            self.n_features_in_ = table.n_columns
        else:
            validate_data(self, X, skip_check_array=True)
        if table.n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
        return table

    def _read_matrix(self, X: Any, *, reset: bool) -> Any:
        check_matrix(X)
        with np.errstate(all="ignore"):  # infinities are refused in words
            held = validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset, ensure_min_samples=int(reset)
            )
        return read_counts(held)

    def _keep(self, model: CoclusteringModel) -> None:
        self.model_ = self.coclustering_ = model
        self.row_labels_ = model.rows.labels
        self.column_labels_ = model.columns.labels
        self.row_names_ = _names(model.rows)
        self.column_names_ = _names(model.columns)
        self.cost_ = model.cost
        self.null_cost_ = model.null_cost
        self.level_ = model.level

    # ----- answers

    @property
    def summary_(self) -> Any:
        """Both axes as a frame: name, values, clusters, and values without any instance."""
        check_is_fitted(self)
        sides = (self.model_.rows, self.model_.columns)
        return make_frame(
            {
                "name": [side.name for side in sides],
                "values": [len(side.labels) for side in sides],
                "clusters": [side.n_clusters for side in sides],
                "empty": [int((side.labels < 0).sum()) for side in sides],
            },
            self.model_.library,
        )

    @property
    def rows_(self) -> npt.NDArray[np.bool_]:
        """Whether each row belongs to each block."""
        model = self._fitted()
        by_cluster = model.rows.labels == np.arange(model.n_row_clusters)[:, None]
        return np.repeat(by_cluster, model.n_column_clusters, axis=0)

    @property
    def columns_(self) -> npt.NDArray[np.bool_]:
        """Whether each column belongs to each block."""
        model = self._fitted()
        by_cluster = model.columns.labels == np.arange(model.n_column_clusters)[:, None]
        return np.tile(by_cluster, (model.n_row_clusters, 1))

    def get_indices(self, i: int) -> tuple[IntArray, IntArray]:
        """Return the rows and the columns of a block.

        Parameters
        ----------
        i : int
            Number of the block, in the order of `blocks`.
        """
        model = self._fitted()
        row_cluster, column_cluster = divmod(range(model.cells.size)[i], model.n_column_clusters)
        rows = np.flatnonzero(model.rows.labels == row_cluster)
        return rows, np.flatnonzero(model.columns.labels == column_cluster)

    def blocks(self, backend: str | None = None) -> Any:
        """Return the blocks as a frame: clusters, instances, those expected, part of the information."""
        return self._fitted().blocks(backend)

    def clusters(self, axis: AxisName = "columns", n_typical: int = 5, backend: str | None = None) -> Any:
        """Return the clusters of the rows or columns as a frame, with their most typical values."""
        return self._fitted().clusters(axis, n_typical, backend)

    def typical_values(
        self, cluster: int, axis: AxisName = "columns", n: int | None = None, backend: str | None = None
    ) -> Any:
        """Return the values of a cluster as a frame, the most typical first.

        The typicality of a value is the mean cost of moving it to another cluster.
        """
        return self._fitted().typical_values(cluster, axis, n, backend)

    def hierarchy(self, backend: str | None = None) -> Any:
        """Return the coclusterings along the merges as a frame: clusters, cost, information kept."""
        return self._fitted().hierarchy(backend)

    def simplify(
        self,
        n_row_clusters: int | None = None,
        n_column_clusters: int | None = None,
        min_information: float | None = None,
    ) -> Self:
        """Return a copy with fewer clusters, merged along the hierarchy.

        Parameters
        ----------
        n_row_clusters, n_column_clusters : int, optional
            At most so many clusters.
        min_information : float, optional
            As few clusters as keep this share of the information, between 0 and 1.
        """
        model = self._fitted().simplify(n_row_clusters, n_column_clusters, min_information)
        simpler = copy.copy(self)
        simpler._keep(model)
        return simpler

    def predict(self, X: Any) -> IntArray:
        """Find the row cluster that takes each new row at least cost.

        Parameters
        ----------
        X : matrix over the same columns, or frame of pairs
            In the form that ``fit`` was given. Columns never seen bring no evidence.

        Returns
        -------
        array
            One cluster per row of ``X``: for pairs, the cluster of that pair's row. -1 where nothing is
            known.
        """
        model = self._fitted()
        if _is_frame(X) != (model.columns.values is not None):
            raise ValueError(
                "predict takes the form of input that fit was given: a matrix or a frame of pairs."
            )
        if _is_frame(X):
            return model.predict(X)
        return model.predict(self._read_matrix(X, reset=False))

    def plot_blocks(self, ax: Any = None) -> Any:
        """Draw the block matrix; needs matplotlib."""
        from damier.report.plots import plot_blocks

        return plot_blocks(self._fitted(), ax)

    def plot_hierarchy(self, ax: Any = None) -> Any:
        """Draw the information kept against the number of clusters; needs matplotlib."""
        from damier.report.plots import plot_hierarchy

        return plot_hierarchy(self._fitted(), ax)

    def _fitted(self) -> CoclusteringModel:
        check_is_fitted(self, "model_")
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        return tags


def _names(axis: CoclusterAxis) -> npt.NDArray[Any]:
    if axis.values is None:
        return np.arange(len(axis.labels))
    names = np.empty(len(axis.values), dtype=object)
    names[:] = axis.values
    return names


def _is_frame(X: Any) -> bool:
    if sparse.issparse(X) or isinstance(X, (np.ndarray, list, tuple)):
        return False
    return isinstance(X, (Mapping, Table)) or as_frame(X) is not None
