"""Grids over any variables, without a target."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableEstimator, WithSummary, by_name, seed_of
from damier.estimators._sklearn import Interval, fit_context
from damier.fit.untargeted import fit_unsupervised_grid
from damier.intake.table import IntArray
from damier.models.unsupervised_grid import UnsupervisedGrid
from damier.search.run import ProgressCallback


class DataGridClustering(ClusterMixin, WithSummary, TableEstimator):
    """Cluster rows by the cells of a grid over the variables.

    Numbers and dates are cut into intervals and categories are put into groups, so that the variables inform
    most about each other. How many parts each variable has is part of the answer: a variable that does not
    inform about the others has one part, and variables that are independent give a single cell.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds for the search, after which the best grid so far is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the search. None is one fixed seed: the same data give the same grid.
    n_jobs : int, default=None
        Number of threads, -1 for one per core. The grid does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        Cell of each training row, a row of `cells`.
    grid_, model_ : UnsupervisedGrid
        The partitions and the cells.
    partitions_ : dict
        Partition of each variable, by name.
    cost_, null_cost_ : float
        Cost of the grid and of the single cell, in nats.
    level_ : float
        Share of the null cost that the grid saves.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    See Also
    --------
    Coclustering : Two sides with many values each, such as texts and words.
    DataGridClassifier : Grids that predict a target.

    References
    ----------
    M. Boullé (2011), Data grid models for preparation and modeling in supervised learning.

    Examples
    --------
    >>> import numpy as np
    >>> from damier import DataGridClustering
    >>> random = np.random.default_rng(0)
    >>> size = np.concatenate([random.normal(0, 1, 100), random.normal(9, 1, 100)])
    >>> X = {"size": size, "kind": ["small"] * 100 + ["large"] * 100, "coin": random.random(200)}
    >>> clustering = DataGridClustering().fit(X)
    >>> {name: partition.n_parts for name, partition in clustering.partitions_.items()}
    {'size': 2, 'kind': 2, 'coin': 1}
    >>> np.bincount(clustering.labels_)
    array([100, 100])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, progress: ProgressCallback | None = None) -> Self:
        """Find the grid.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            Missing values are allowed.
        y : ignored
        progress : callable, optional
            Called with the state of the search: ``cost``, ``level``, ``done``, ``total``, ``seconds`` and
            ``text``.

        Returns
        -------
        self
        """
        del y
        table = self._read_table(X, reset=True)
        run = self._new_run(progress)
        grid = run.call(fit_unsupervised_grid, table, seed=seed_of(self.random_state), run=run)
        self.search_ended_ = run.ended
        self.grid_ = self.model_ = grid.in_library(table.library)
        self.partitions_ = by_name(grid.partitions)
        self._keep_facts(table)
        self.labels_ = grid.apply(table)
        self.cost_, self.null_cost_, self.level_ = grid.cost, grid.null_cost, grid.level
        return self

    def _summary(self) -> dict[str, list[Any]]:
        facts = self._facts
        return {
            "name": facts["name"],
            "type": facts["type"],
            "parts": [self.partitions_[name].n_parts for name in facts["name"]],
            "missing": facts["missing"],
            "distinct": facts["distinct"],
        }

    def predict(self, X: Any) -> IntArray:
        """Return the cell of each row, -1 for cells that no training row is in and for values never seen.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows,)
        """
        table = self._read_scored(X)
        return self._fitted().apply(table)

    def cells(self, backend: str | None = None) -> Any:
        """Return the occupied cells as a frame: parts, instances, those expected, part of the information."""
        return self._fitted().cells(backend)

    def _fitted(self) -> UnsupervisedGrid:
        check_is_fitted(self)
        grid: UnsupervisedGrid = self.grid_
        return grid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
