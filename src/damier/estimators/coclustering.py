"""Coclustering of sparse tables, and the semi-supervised classifier built on it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from damier.criteria import coclustering_cost
from damier.estimators._base import warn_of_column_vector
from damier.estimators._unsupervised_grid import fit_unsupervised_grid, wants_grid
from damier.intake import NumericColumn, Table, as_categorical, read_table, read_target, read_weights
from damier.intake.table import IntArray
from damier.models.coclustering import AxisName, CoclusterAxis, CoclusteringModel, Merges, row_merge_changes

Progress = Callable[[str, float, int, int], None]


@dataclass(frozen=True, slots=True)
class CountTable:
    """Counts with the names of both sides; ``codes`` gives the row of each pair when the input was pairs."""

    counts: Any
    names: tuple[str, str]
    row_values: tuple[Any, ...] | None
    column_values: tuple[Any, ...] | None
    codes: npt.NDArray[Any] | None = None


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
            seed=_seed(self.random_state),
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
        grid, self.ended_ = fit_unsupervised_grid(
            table, seed=_seed(self.random_state), time_limit=self.time_limit
        )
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
        from damier.estimators._plots import plot_blocks

        return plot_blocks(self._fitted(), ax)

    def plot_hierarchy(self, ax: Any = None) -> Any:
        """Draw the information kept against the number of clusters; needs matplotlib."""
        from damier.estimators._plots import plot_hierarchy

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


class CoclusteringClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier: cluster all rows with their columns, then label the clusters.

    Rows without a label (-1 for integers, None or NaN for anything else) help to find the clusters. A cluster
    without a labeled row is merged with the one that costs least, until one is met.

    Parameters
    ----------
    prior : {"balanced", "data"}, default="balanced"
        ``"balanced"`` takes all classes for equally probable beforehand, which minimises the balanced error;
        ``"data"`` takes their shares of the labeled rows.
    coclustering : Coclustering, default=None
        How to cluster. One that is fitted already to the same rows is used as it is.
    random_state, n_jobs : as in `Coclustering`
        Used when ``coclustering`` is None.

    Attributes
    ----------
    classes_ : array
    coclustering_ : Coclustering
        The fitted coclustering.
    transduction_ : array of shape (n_rows,)
        Class of each training row, by its cluster.
    cluster_probabilities_ : array of shape (n_row_clusters, n_classes)
    n_unlabeled_clusters_ : int
        Clusters in which no row has a label.

    Examples
    --------
    >>> import numpy as np
    >>> from damier import CoclusteringClassifier
    >>> table = np.kron([[4, 0], [0, 5]], np.ones((6, 4), dtype=int))
    >>> y = np.full(12, -1)
    >>> y[[0, 11]] = 0, 1
    >>> CoclusteringClassifier().fit(table, y).transduction_
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 -- scikit-learn's form
        "prior": [StrOptions({"balanced", "data"})],
        "coclustering": [Coclustering, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        prior: str = "balanced",
        coclustering: Coclustering | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.coclustering = coclustering
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Cluster all rows, then label the clusters.

        Parameters
        ----------
        X : sparse matrix or array of whole counts, of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Classes; -1 (integers) or None/NaN for rows without a label.
        """
        self._validate_params()
        counts = whole_table(validate_data(self, X, accept_sparse="csr", dtype="numeric"))
        warn_of_column_vector(y)
        target = read_target(y, allow_unlabeled=True)
        check_consistent_length(range(counts.shape[0]), target.codes)
        if target.n_classes < 1:
            raise ValueError("y has no labeled row: mark only some rows with -1, None or NaN")
        clustering = self.coclustering
        if clustering is None:
            clustering = Coclustering(random_state=self.random_state, n_jobs=self.n_jobs)
        if not hasattr(clustering, "coclustering_"):
            clustering = copy.copy(clustering).fit(counts)
        elif clustering.coclustering_.rows.labels.shape != (counts.shape[0],):
            raise ValueError(
                f"the coclustering was fitted to {len(clustering.row_labels_)} rows, X has "
                f"{counts.shape[0]}: fit it to the same rows or leave it unfitted"
            )
        self.coclustering_ = clustering
        self.classes_ = target.classes
        model = clustering.coclustering_
        labeled = (target.codes >= 0) & (model.rows.labels >= 0)
        per_cluster = np.zeros((model.n_row_clusters, target.n_classes))
        np.add.at(per_cluster, (model.rows.labels[labeled], target.codes[labeled]), 1)
        shares = np.bincount(target.codes[target.codes >= 0], minlength=target.n_classes)
        self._base = shares / shares.sum()
        self.n_unlabeled_clusters_ = int((per_cluster.sum(axis=1) == 0).sum())
        met = np.stack([_labels_met(model, per_cluster, j) for j in range(model.n_row_clusters)])
        self.cluster_probabilities_ = self._probabilities(met)
        self.transduction_ = self.classes_[np.argmax(self._rows_probabilities(model.rows.labels), axis=1)]
        return self

    def _probabilities(self, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Class probabilities of label counts, one more label spread as the classes are."""
        shares = (counts + self._base) / (counts.sum(axis=1, keepdims=True) + 1.0)
        if self.prior == "balanced":
            shares = shares / self._base
            shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(shares)

    def _rows_probabilities(self, clusters: IntArray) -> npt.NDArray[np.float64]:
        nothing_known = self._probabilities(np.zeros((1, len(self.classes_))))
        return np.concatenate([self.cluster_probabilities_, nothing_known])[clusters]

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of the cluster that takes each row at least cost."""
        check_is_fitted(self, "cluster_probabilities_")
        counts = whole_table(validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False))
        return self._rows_probabilities(self.coclustering_.coclustering_.predict(counts))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row; for the rows of the training table see ``transduction_``."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(probabilities, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # a table of counts is not a cloud of points: scikit-learn's blobs are no fair test of accuracy
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        return tags


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
    from damier.search.coclustering import search_coclustering
    from damier.search.coclustering_state import SparseCounts

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


def _labels_met(
    model: CoclusteringModel, per_cluster: npt.NDArray[np.float64], cluster: int
) -> npt.NDArray[np.float64]:
    """Labels of a cluster, or of the first labeled one met when it is merged at least cost."""
    labels: npt.NDArray[np.float64] = per_cluster[cluster]
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
        labels = per_cluster[partner]
    return labels


def _seed(random_state: Any) -> int:
    """Seed of the search: fixed for None, so that the same data give the same model."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


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
