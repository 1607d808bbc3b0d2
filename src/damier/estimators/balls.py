"""A classifier, and a transformer, whose groups are balls on a proximity graph."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from time import monotonic
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn import get_config
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableEstimator, require_two_classes, seed_of
from damier.estimators._sklearn import Interval, StrOptions, fit_context
from damier.intake.table import CodeArray, FloatArray, IntArray
from damier.models.balls import BallGroup, BallPartition, coordinates


class BallPartitionClassifier(ClassifierMixin, TransformerMixin, TableEstimator):
    """Groups of points that are balls on a graph, chosen by description length.

    The points are linked by their Gabriel graph, or by a graph of the user's. A ball is all points within so
    many edges of a centre. The set of points is split by the ball that shortens the description of the
    labels most, then both sides are, until no split pays. There is no number of groups to set, and on pure
    noise there is one group. Groups need not be boxes: XOR, spirals and networks are followed.

    ``predict_proba`` gives the class shares of the group of the nearest training point. The borders of
    groups are hard, and other groups would have done nearly as well: ``n_partitions=32, n_neighbors=5``
    averages over several partitions and near points, more accurate and with the same ``groups_``.

    Distances are taken as they come: put a scaler before this estimator when units differ.

    Parameters
    ----------
    balls : {"local", "global"}, default="local"
        Balls grown inside the set being split, or, as in the paper, those of the whole graph that the set
        contains. Local ones never run out, and are more accurate.
    prior : {"even", "paper"}, default="even"
        ``"even"`` gives keeping a set whole half of the probability, so that noise stays one group;
        ``"paper"`` gives it no more than any one ball, which makes more groups: more accurate on clean
        patterns, less robust on noisy ones.
    graph : "gabriel", sparse matrix or callable, default="gabriel"
        A sparse adjacency of the training rows (any non-zero is an edge, directions are ignored), or a
        function that makes one from the array of points.
    metric : str or callable, default="euclidean"
        Distance for the Gabriel graph and for the nearest training point, by its name in SciPy or as a
        function of two points.
    n_partitions : int, default=1
        ``predict_proba`` averages the class shares of this many partitions: that of ``groups_``, and others
        in which each split chooses among the balls of 16 centres drawn at random, by either prior in turn.
        With 1, and where there is one group only, it follows ``groups_`` alone. 32 is a good number where
        accuracy matters most.
    n_neighbors : int, default=1
        ``predict_proba`` averages the class shares at this many nearest training points, which smooths the
        borders between groups; 5 goes well with 32 partitions.
    semi_supervised : bool, default=False
        Take -1 (integers) or a missing value (anything else) in ``y`` as a row without a label: it belongs
        to the graph, to balls and to a group, and gets that group's class in ``transduction_``.
    time_limit : float or None, default=None
        Seconds for the search of balls, after which what was found so far is kept.
    random_state : int, RandomState instance or None, default=None
        Draws the centres; None draws the same ones each time. ``groups_`` does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    groups_ : tuple of BallGroup
        The groups, largest first: ``size``, ``counts``, ``shares``, ``centre`` (a training row), ``radius``
        (in edges), ``point``. What is left around the balls is a group without centre.
    labels_ : array of shape (n_rows,)
        Group of each training row.
    transduction_ : array of shape (n_rows,)
        Class of each training row: its own, or its group's most frequent one where it had none.
    graph_ : scipy.sparse.csr_array of shape (n_rows, n_rows)
        The graph, rows as in training.
    model_ : BallPartition
        The partition, which can be saved.
    cost_, null_cost_, level_ : float
        Bits of the description with these groups and with one, and the part saved.
    complete_ : bool
        False when the time limit, or Ctrl-C, cut the search short.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array
        Their names, when they had some.

    References
    ----------
    S. Ferrandiz and M. Boullé, Multivariate Discretization by Recursive Supervised Bipartition of Graph,
    MLDM 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from damier import BallPartitionClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    >>> y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    >>> balls = BallPartitionClassifier().fit(X, y)
    >>> balls.predict([[0.5, 0.5], [-0.5, 0.5]])
    array([False,  True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "balls": [StrOptions({"local", "global"})],
        "prior": [StrOptions({"even", "paper"})],
        "graph": [StrOptions({"gabriel"}), "sparse matrix", np.ndarray, callable],
        "metric": [str, callable],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "semi_supervised": ["boolean"],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        balls: str = "local",
        prior: str = "even",
        graph: Any = "gabriel",
        metric: Any = "euclidean",
        n_partitions: int = 1,
        n_neighbors: int = 1,
        semi_supervised: bool = False,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.balls = balls
        self.prior = prior
        self.graph = graph
        self.metric = metric
        self.n_partitions = n_partitions
        self.n_neighbors = n_neighbors
        self.semi_supervised = semi_supervised
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Find the groups.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Numbers, none missing.
        y : array of shape (n_rows,)
            Class of each row.
        """
        from damier.search.balls.draws import shares_over_draws
        from damier.search.balls.partition import Graph, partition_by_balls

        training = self._read_training(X, y, allow_unlabeled=self.semi_supervised)
        target = training.target
        require_two_classes(target)
        points = coordinates(training.table)
        adjacency = self._adjacency(points)
        # Ties are broken by the number of a point: numbers that follow the values, not the rows.
        order = _order_of(points, target.codes)
        renumbered = sparse.csr_array(adjacency[order][:, order])
        n_threads = effective_n_jobs(self.n_jobs)
        graph = Graph(renumbered.indptr.astype(np.int64), renumbered.indices.astype(np.int32))
        codes = np.ascontiguousarray(target.codes[order], dtype=np.int32)
        start = monotonic()
        found = partition_by_balls(
            graph,
            codes,
            target.n_classes,
            local=self.balls == "local",
            prior=cast(Any, self.prior),
            n_threads=n_threads,
            time_limit=self.time_limit,
        )
        group_of = np.empty(len(points), dtype=np.int64)
        for g, group in enumerate(found.groups):
            group_of[group.members] = g
        self.labels_ = np.empty(len(points), dtype=np.int64)
        self.labels_[order] = group_of
        counts = np.zeros((len(found.groups), target.n_classes), dtype=np.int64)
        labeled = target.codes >= 0
        np.add.at(counts, (self.labels_[labeled], target.codes[labeled]), 1)
        self.classes_ = target.classes
        self._codes = target.codes
        self.complete_ = found.complete
        model = BallPartition(
            names=training.table.names,
            classes=tuple(target.classes.tolist()),
            points=np.ascontiguousarray(points[order]),
            rows=order,
            point_groups=group_of,
            counts=counts,
            centres=np.array([group.centre for group in found.groups], dtype=np.int64),
            radii=np.array([group.radius for group in found.groups], dtype=np.int64),
            cost=found.cost,
            null_cost=found.null_cost,
            metric=self.metric,
            n_neighbors=int(self.n_neighbors),
        )
        # Where one group is best there is nothing to tell, and chance should not tell it.
        if self.n_partitions > 1 and found.complete and len(found.groups) > 1:
            drawn = shares_over_draws(
                graph,
                codes,
                target.n_classes,
                local=self.balls == "local",
                n_partitions=self.n_partitions - 1,
                seed=seed_of(self.random_state),
                n_threads=n_threads,
                time_limit=None if self.time_limit is None else self.time_limit - (monotonic() - start),
            )
            self.complete_ = drawn.complete
            averaged = (drawn.total + model.shares[group_of]) / (1 + drawn.n_partitions)
            model = replace(model, point_shares=averaged)
        self.model_ = model
        self.groups_: tuple[BallGroup, ...] = self.model_.groups
        of_group = self.model_.shares.argmax(axis=1)[self.labels_]
        self.transduction_ = self.classes_[np.where(labeled, target.codes, of_group)]
        self.graph_ = adjacency
        self.cost_, self.null_cost_, self.level_ = found.cost, found.null_cost, self.model_.level
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row; the first one on a tie."""
        probabilities = self.predict_proba(X)
        classes: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return classes

    def predict_proba(self, X: Any) -> FloatArray:
        """Class shares at the nearest training points, averaged over partitions and over these points."""
        return self._fitted().predict_proba(self._read_scored(X))

    def apply(self, X: Any) -> IntArray:
        """Return the group of the nearest training point, as an index into ``groups_``."""
        return self._fitted().apply(self._read_scored(X))

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Group of each row, one column.

        In a frame (``set_output``) the column is text, ``group 0``, ``group 1``..., a category for whatever
        comes next; in an array it is the index of the group, as from ``apply``.
        """
        groups = self.apply(X)
        asked = (
            getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        )
        if asked == "default":
            return groups.reshape(-1, 1)
        names = np.array([f"group {g}" for g in range(self.model_.n_groups)])
        return names[groups].reshape(-1, 1)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """Name of the one column that ``transform`` returns."""
        check_is_fitted(self)
        return np.array(["ball_group"], dtype=object)

    def plot(self, ax: Any = None) -> Any:
        """Draw a partition of two columns: points by class, graph, and the regions of the groups.

        A region is what is nearest to the points of a group; its tint mixes the colours of its classes. Needs
        matplotlib (``pip install 'damier[plot]'``).

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; a new figure when None.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from damier.report.plots import plot_balls

        model = self._fitted()
        if model.points.shape[1] != 2:
            raise ValueError(
                f"a partition of {model.points.shape[1]} columns cannot be drawn: fit on two of them to plot"
            )
        place = np.empty(len(model.rows), dtype=np.int64)
        place[model.rows] = np.arange(len(model.rows))
        one_way = sparse.coo_array(sparse.triu(self.graph_))
        edges = place[np.stack([one_way.row, one_way.col], axis=1)]
        return plot_balls(model, self._codes[model.rows], edges, ax)

    def _fitted(self) -> BallPartition:
        check_is_fitted(self)
        return self.model_

    def _adjacency(self, points: FloatArray) -> sparse.csr_array:
        """Graph of the rows, both directions of each edge, no loops."""
        from damier.search.balls.gabriel import gabriel_graph

        if isinstance(self.graph, str):
            return gabriel_graph(points, metric=self.metric)
        given = self.graph(points) if callable(self.graph) else self.graph
        matrix = sparse.coo_array(given)
        if matrix.shape != (len(points), len(points)):
            raise ValueError(
                f"graph has shape {matrix.shape} for {len(points)} rows: give an adjacency with one row and "
                "one column for each row of X, in the same order"
            )
        kept = (matrix.data != 0) & (matrix.row != matrix.col)
        ends = np.concatenate([matrix.row[kept], matrix.col[kept]])
        other_ends = np.concatenate([matrix.col[kept], matrix.row[kept]])
        edges = np.unique(np.stack([ends, other_ends]), axis=1)
        ones = np.ones(edges.shape[1], dtype=np.int8)
        return sparse.csr_array((ones, (edges[0], edges[1])), shape=matrix.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _order_of(points: FloatArray, codes: CodeArray) -> IntArray:
    """Rows sorted by their values, first column first; rows of equal values by their class."""
    return np.lexsort((codes, *points.T[::-1])).astype(np.int64)
