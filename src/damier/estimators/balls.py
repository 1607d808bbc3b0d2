"""A classifier, and a transformer, whose groups are balls on a proximity graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableClassifier, seed_of
from damier.estimators._sklearn import Interval, StrOptions, fit_context
from damier.fit.balls import fit_balls
from damier.fit.training import require_two_classes
from damier.intake.table import IntArray
from damier.models.balls import BallGroup, BallPartition
from damier.search.run import ProgressCallback


class BallPartitionClassifier(TransformerMixin, TableClassifier):
    """Groups of points that are balls on a graph, chosen by description length.

    The points are linked by their Gabriel graph, or by a graph that you pass. A ball is all points within a
    number of edges of a centre. The set of points is split by the ball that shortens the description of the
    labels most, then both sides are, until no split pays. There is no number of groups to set, and on pure
    noise there is one group. Groups need not be boxes: XOR, spirals and networks are followed.

    ``predict_proba`` gives the class shares of the group of the nearest training point. The borders of
    groups are hard, and other groups would have done nearly as well: ``n_partitions=32, n_neighbors=5``
    averages over several partitions and near points, more accurate and with the same ``groups_``.

    Distances are taken as they come: put a scaler before this estimator when units differ.

    Parameters
    ----------
    setting : {"refined", "paper"}, default="refined"
        The method as refined here, or as published: what ``balls`` and ``prior`` mean where they are None.
    balls : {"local", "global"}, optional
        Balls grown inside the set being split (refined), or those of the whole graph that the set contains
        (as published). Local ones never run out, and are more accurate.
    prior : {"even", "paper"}, optional
        ``"even"`` (refined) gives keeping a set whole half of the probability, so that noise stays one group;
        ``"paper"`` (as published) gives it no more than any one ball, which makes more groups: more accurate
        on clean patterns, less robust on noisy ones.
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
    semi_supervised : {"criterion"}, optional
        ``"criterion"``: -1 (integers) or a missing value (anything else) in ``y`` marks a row without a
        label: it belongs to the graph, to balls and to a group, counts in the criterion, and gets that
        group's class in ``transduction_``.
    time_limit : float, optional
        Seconds for the search of balls, after which what was found so far is kept. The graph, built first, is
        not limited.
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
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended.
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
        "setting": [StrOptions({"refined", "paper"})],
        "balls": [StrOptions({"local", "global"}), None],
        "prior": [StrOptions({"even", "paper"}), None],
        "graph": [StrOptions({"gabriel"}), "sparse matrix", np.ndarray, callable],
        "metric": [str, callable],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "semi_supervised": [StrOptions({"criterion"}), None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        setting: str = "refined",
        balls: str | None = None,
        prior: str | None = None,
        graph: Any = "gabriel",
        metric: Any = "euclidean",
        n_partitions: int = 1,
        n_neighbors: int = 1,
        semi_supervised: str | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.setting = setting
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
    def fit(self, X: Any, y: Any, progress: ProgressCallback | None = None) -> Self:
        """Find the groups.

        Parameters
        ----------
        X : data frame, array or dict of columns
            Numbers, none missing.
        y : array of shape (n_rows,)
            Class of each row.
        progress : callable, optional
            Called with a ``Progress``: ``cost``, ``level``, ``done``, ``total``, ``seconds``, ``text``.

        Returns
        -------
        self
        """
        training = self._read_training(X, y, allow_unlabeled=self.semi_supervised is not None)
        target = training.target
        require_two_classes(target)
        run = self._new_run(progress)
        found = run.call(
            fit_balls,
            training.table,
            target,
            setting=self.setting,
            balls=self.balls,
            prior=self.prior,
            graph=self.graph,
            metric=self.metric,
            n_partitions=int(self.n_partitions),
            n_neighbors=int(self.n_neighbors),
            seed=seed_of(self.random_state),
            run=run,
        )
        self.search_ended_ = run.ended
        self.model_: BallPartition = found.model.in_library(training.table.library)
        self.labels_ = found.labels
        self.graph_ = found.graph
        self.classes_ = target.classes
        self.groups_: tuple[BallGroup, ...] = self.model_.groups
        self._codes = target.codes
        of_group = self.model_.shares.argmax(axis=1)[self.labels_]
        self.transduction_ = self.classes_[np.where(target.codes >= 0, target.codes, of_group)]
        self.cost_, self.null_cost_, self.level_ = found.model.cost, found.model.null_cost, found.model.level
        return self

    def apply(self, X: Any) -> IntArray:
        """Return the group of the nearest training point, as an index into ``groups_``."""
        table = self._read_scored(X)
        groups: IntArray = self.model_.apply(table)
        return groups

    def transform(self, X: Any) -> IntArray:
        """Return the index of the group of each row, as from ``apply``, in one column.

        The indices are names of groups, not amounts: give them to whatever comes next as a category.
        """
        return self.apply(X).reshape(-1, 1)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:  # noqa: ARG002
        """Name of the one column that ``transform`` returns: ``ball_group``."""
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

        check_is_fitted(self)
        model = self.model_
        if model.points.shape[1] != 2:
            raise ValueError(
                f"a partition of {model.points.shape[1]} columns cannot be drawn: fit on two of them to plot"
            )
        place = np.empty(len(model.rows), dtype=np.int64)
        place[model.rows] = np.arange(len(model.rows))
        one_way = sparse.coo_array(sparse.triu(self.graph_))
        edges = place[np.stack([one_way.row, one_way.col], axis=1)]
        return plot_balls(model, self._codes[model.rows], edges, ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = []
        return tags
