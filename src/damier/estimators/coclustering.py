"""Coclustering of sparse tables."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from damier.estimators._base import seed_of
from damier.estimators._sklearn import Interval
from damier.fit.coclusters import CountTable, Progress, fit_coclustering, whole_table
from damier.fit.untargeted import fit_unsupervised_grid, wants_grid
from damier.intake import NumericColumn, Table, as_categorical, read_table, read_weights
from damier.intake.table import IntArray
from damier.models.coclustering import AxisName, CoclusterAxis, CoclusteringModel
from damier.search.run import Run


class Coclustering(BaseEstimator):
    """Cluster the rows and the columns of a table of counts together.

    The numbers of clusters are part of the answer: the coclustering is the one of least cost (formula 5 of
    the paper), a trade-off between the precision of the blocks and the certainty that they are real. A table
    without structure gives one block.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds after which the best coclustering so far is returned.
    effort : float, default=1.0
        More effort goes on for smaller gains; small tables are searched from more starts.
    counts : str, default=None
        For a frame of pairs, the column that says how often each pair occurs.
    random_state : int, RandomState instance or None, default=None
        Seed of the search; the default is a fixed seed.
    n_jobs : int, default=None
        Number of threads; changes the time, not the result.

    Attributes
    ----------
    row_labels_ : array of shape (n_rows,)
        Cluster of each row; -1 for rows without an instance. Clusters that resemble each other have
        neighbouring numbers.
    column_labels_ : array of shape (n_columns,)
        Cluster of each column.
    row_names_, column_names_ : arrays
        What the rows and columns stand for: their positions, or the values of a frame of pairs.
    cost_, null_cost_ : float
        Cost of the coclustering and of one block, in nats.
    level_ : float
        Share of the null cost that the coclustering saves.
    coclustering_ : CoclusteringModel
        The blocks and the hierarchy of merges.
    ended_ : str
        ``"converged"``, ``"time limit"`` or ``"interrupted"``.

    Notes
    -----
    ``X`` may be a sparse or dense matrix of whole non-negative counts, or a frame of two columns, one row a
    pair; whole numbers in it are identifiers. A frame of more columns, or of two with a truly numeric one,
    is a table of variables: it gets a grid (``grid_``, ``partitions_``), numbers cut into intervals and
    values grouped so that they tell most about each other, and ``row_labels_`` is the cell of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from damier import Coclustering
    >>> table = np.kron([[4, 0, 1], [0, 5, 1]], np.ones((6, 4), dtype=int))
    >>> model = Coclustering().fit(table)
    >>> model.row_labels_
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> model.coclustering_.cells
    array([[ 96,  24,   0],
           [  0,  24, 120]])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 -- scikit-learn's form
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "effort": [Interval(Real, 0, None, closed="neither")],
        "counts": [str, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        effort: float = 1.0,
        counts: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.effort = effort
        self.counts = counts
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, progress: Progress | None = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : sparse matrix, array or frame
        y : ignored
        progress : callable, optional
            Called after each round with what was done, its cost and the numbers of clusters.
        """
        del y
        self._validate_params()
        # what another kind of input left behind
        for name in (
            "grid_",
            "partitions_",
            "coclustering_",
            "row_names_",
            "column_names_",
            "column_labels_",
        ):
            self.__dict__.pop(name, None)
        if _is_frame(X):
            variables = self._read_variables(X)
            if wants_grid(variables):
                return self._fit_grid(variables)
        model, ended = fit_coclustering(
            self._read(X, reset=True),
            seed=seed_of(self.random_state),
            n_threads=effective_n_jobs(self.n_jobs),
            time_limit=self.time_limit,
            effort=float(self.effort),
            progress=progress,
        )
        self.ended_ = ended
        self._keep(model)
        return self

    def _fit_grid(self, table: Table) -> Self:
        if self.counts is not None:
            raise ValueError("counts= goes with pairs; a grid over variables takes each row once")
        run = Run(time_limit=self.time_limit)
        grid = run.call(fit_unsupervised_grid, table, seed=seed_of(self.random_state), run=run)
        self.ended_ = "converged" if run.ended == "complete" else run.ended
        self.grid_ = grid
        self.partitions_ = {partition.name: partition for partition in grid.partitions}
        self.row_labels_ = grid.apply(table)
        self.cost_, self.null_cost_, self.level_ = grid.cost, grid.null_cost, grid.level
        return self

    def _read_variables(self, X: Any) -> Table:
        """Read a frame that ``fit`` was given; the column of counts is left out."""
        table = read_table(X)
        if isinstance(X, Mapping | Table):
            self.n_features_in_ = table.n_columns
        else:
            validate_data(self, X, skip_check_array=True)
        if table.n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows")
        return table if self.counts is None else table.drop(self.counts)

    def _keep(self, model: CoclusteringModel) -> None:
        self.coclustering_ = model
        self.row_labels_ = model.rows.labels
        self.column_labels_ = model.columns.labels
        self.row_names_ = _names(model.rows)
        self.column_names_ = _names(model.columns)
        self.cost_ = model.cost
        self.null_cost_ = model.null_cost
        self.level_ = model.level

    def _read(self, X: Any, *, reset: bool) -> CountTable:
        if _is_frame(X):
            return self._read_pairs(X, reset=reset)
        counts = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=reset)
        return CountTable(whole_table(counts), ("rows", "columns"), None, None)

    def _read_pairs(self, X: Any, *, reset: bool) -> CountTable:
        table = read_table(X)
        weights = None
        if self.counts is not None and (reset or self.counts in table.names):
            given = table[self.counts]
            if not isinstance(given, NumericColumn):
                raise ValueError(f"the column of counts {self.counts!r} does not hold numbers")
            weights = read_weights(given.values, table.n_rows)
            table = table.drop(self.counts)
        if table.n_columns != 2:
            raise ValueError(
                f"a frame of pairs has two columns (and one of counts, named by counts=), this one has "
                f"{table.n_columns}: {', '.join(map(repr, table.names[:10]))}"
            )
        if weights is None:
            weights = np.ones(table.n_rows, np.int64)
        rows, columns = (as_categorical(column) for column in table.columns)
        shape = (len(rows.categories), len(columns.categories))
        counts = sparse.coo_array((weights, (rows.codes, columns.codes)), shape=shape).tocsr()
        counts.eliminate_zeros()
        values = [tuple(_whole(v) for v in side.categories) for side in (rows, columns)]
        return CountTable(counts, (rows.name, columns.name), values[0], values[1], rows.codes)

    # ----- answers

    def blocks(self) -> Any:
        """Blocks as a frame: both clusters, instances, those expected, part of the mutual information.

        For a grid over variables: its occupied cells.
        """
        return self.grid_.cells() if hasattr(self, "grid_") else self._fitted().blocks()

    def clusters(self, axis: AxisName = "columns", n_typical: int = 5) -> Any:
        """Clusters of the rows or columns as a frame, with their most typical values."""
        return self._fitted().clusters(axis, n_typical)

    def typical_values(self, cluster: int, axis: AxisName = "columns", n: int | None = None) -> Any:
        """Values of a cluster as a frame, the most typical first.

        The typicality of a value is the mean cost of moving it to another cluster.
        """
        return self._fitted().typical_values(cluster, axis, n)

    def hierarchy(self) -> Any:
        """Coclusterings along the merges as a frame: numbers of clusters, cost, information kept."""
        return self._fitted().hierarchy()

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
            Columns never seen bring no evidence.

        Returns
        -------
        array
            One cluster a row of ``X``: for pairs, the cluster of that pair's row. -1 where nothing is known.
        """
        if hasattr(self, "grid_"):
            if not isinstance(X, Mapping | Table):
                validate_data(self, X, skip_check_array=True, reset=False)
            return self.grid_.apply(read_table(X))
        model = self._fitted()
        if _is_frame(X) != (model.columns.values is not None):
            raise ValueError("predict wants the form of input that fit was given: matrix or frame of pairs")
        held = self._read(X, reset=False)
        if held.codes is None:
            return model.predict(held.counts)
        position = {value: j for j, value in enumerate(model.columns.values or ())}
        known = np.array([position.get(value, -1) for value in held.column_values or ()])
        seen = np.flatnonzero(known >= 0)
        columns = sparse.coo_array(
            (np.ones(len(seen), np.int64), (seen, known[seen])), shape=(len(known), len(position))
        ).tocsr()
        clusters = model.predict(held.counts @ columns)
        return clusters[held.codes.astype(np.int64)]

    def plot_blocks(self, ax: Any = None) -> Any:
        """Draw the block matrix; needs matplotlib."""
        from damier.report.plots import plot_blocks

        return plot_blocks(self._fitted(), ax)

    def plot_hierarchy(self, ax: Any = None) -> Any:
        """Draw the information kept against the number of clusters; needs matplotlib."""
        from damier.report.plots import plot_hierarchy

        return plot_hierarchy(self._fitted(), ax)

    def _fitted(self) -> CoclusteringModel:
        if hasattr(self, "grid_"):
            raise AttributeError("a grid over variables has no clusters of rows and columns: see grid_")
        check_is_fitted(self, "coclustering_")
        return self.coclustering_

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
    if sparse.issparse(X) or isinstance(X, np.ndarray | list | tuple):
        return False
    return isinstance(X, Mapping | Table) or isinstance(
        nw.from_native(X, pass_through=True), nw.DataFrame | nw.LazyFrame
    )


def _whole(value: Any) -> Any:
    """Whole identifiers came through as floats: 7.0 is 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
