"""Classifiers from data grids, and pairs of variables ranked by what they know together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableClassifier, require_two_classes, seed_of
from damier.estimators._sklearn import Interval, fit_context
from damier.fit.grids import CodedColumn, build_grid, code_table
from damier.intake import Target, read_table, read_target
from damier.intake.frames import make_frame
from damier.models.grid import DataGrid, GridEnsemble
from damier.search.run import ProgressCallback, map_in_threads


class _GridEstimator(TableClassifier):
    """What both classifiers share: parameters, the search, prediction by ``model_``."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "effort": [Interval(Integral, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        time_limit: float | None = None,
        effort: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.effort = effort
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _search(self, X: Any, y: Any, progress: Callable[[Any], None] | None, n_diverse: int) -> Any:
        """Read the data, search, and keep what every grid classifier shows."""
        from damier.search.grid.search import search_grid

        training = self._read_training(X, y)
        require_two_classes(training.target)
        coded = code_table(training.table)
        found = search_grid(
            [one.axis() for one in coded],
            training.target.codes,
            training.target.n_classes,
            effort=self.effort,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
            n_threads=effective_n_jobs(self.n_jobs),
            n_diverse=n_diverse,
            progress=progress,
        )
        self.classes_ = training.target.classes
        self.grid_ = build_grid(coded, training.target, found.best, found.null_cost)
        self.n_starts_ = found.n_starts
        self.interrupted_ = found.interrupted
        return coded, training.target, found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class DataGridClassifier(SelectorMixin, _GridEstimator):
    """The most probable grid over the variables, as a classifier and as rules.

    Some of the variables are selected, each is cut into intervals or groups, and the cross of these
    partitions makes cells, each predicting its class shares. Which variables, how many parts and where they
    are cut is chosen by one criterion that weighs what the cells tell of the target against the complexity
    of the grid: on noise nothing is selected, and interactions of several variables none of which tells
    anything alone (XOR) are found as readily as others.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for the search; the best grid found so far is kept. Without an `effort`, all the time is used.
    effort : int, optional
        The search ends after 2^effort starts in a row that did not better the grid. By default 4, or, when
        there is a time limit, as many as that allows. Each step up about doubles the time.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. None is one fixed seed: the same data give the same grid.
    n_jobs : int, optional
        Threads; -1 for one a core. The grid does not depend on it.

    Attributes
    ----------
    grid_ : damier.models.DataGrid
        ``variables``, ``partitions``, ``cells``, ``cost``, ``null_cost``, ``level`` and ``rules()``.
    classes_ : array
        Classes of the target.
    model_ : damier.models.DataGrid
        The grid, under the name by which ``damier.deploy.save`` finds it.
    n_starts_ : int
        Starts the search made.
    interrupted_ : bool
        Whether Ctrl-C ended the search.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Ctrl-C during ``fit`` ends the search, and the best grid so far is kept.

    References
    ----------
    M. Boullé, Data grid models for preparation and modeling in supervised learning.

    Examples
    --------
    A class that depends on two variables of three, neither of which tells anything alone:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((400, 3))
    >>> y = (X[:, 0] > 0.4) ^ (X[:, 2] > 0.6)
    >>> classifier = DataGridClassifier().fit(X, y)
    >>> classifier.grid_.variables
    ('x0', 'x2')
    >>> print(classifier.grid_.rules()[0])
    IF x0 > 0.4014436955 AND x2 <= 0.5950874125 THEN True 100.0% (143 rows)
    >>> classifier.get_support()
    array([ True, False,  True])
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, progress: Callable[[Any], None] | None = None) -> Self:
        """Search for the grid.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            pandas, polars, pyarrow, NumPy. Missing values and infinities are welcome.
        y : array-like of shape (n_samples,)
            Classes: integers, booleans or text.
        progress : callable, optional
            Called after each round of the search with its ``cost``, ``level``, ``axes`` (positions of the
            selected variables), ``n_starts`` and ``seconds``.

        Returns
        -------
        self
        """
        self._search(X, y, progress, n_diverse=0)
        self.model_: DataGrid = self.grid_
        return self

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        selected = set(self.grid_.variables)
        return np.array([str(name) in selected for name in names], dtype=np.bool_)


class DataGridEnsembleClassifier(_GridEstimator):
    """Many grids averaged: the optima the search meets, weighted by how much each compresses the target.

    One grid can use about log2 N variables; many grids over different variables use them all. Besides those
    met on the way to the best one, grids are sought on random subsets of the variables: they differ more,
    and differing is what averaging lives on.

    Parameters
    ----------
    time_limit, effort, random_state, n_jobs
        As in `DataGridClassifier`.
    n_grids : int, default=200
        Starts on random subsets of the variables; about as many grids are averaged.

    Attributes
    ----------
    grids_ : tuple of damier.models.DataGrid
        The grids, the best first.
    weights_ : array
        Their weights, which sum to one.
    grid_ : damier.models.DataGrid
        The best grid of all.
    classes_, model_, n_starts_, interrupted_, n_features_in_, feature_names_in_
        As in `DataGridClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> classifier = DataGridEnsembleClassifier(n_grids=20).fit(X, y)
    >>> classifier.predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_GridEstimator._parameter_constraints,
        "n_grids": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        time_limit: float | None = None,
        effort: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        *,
        n_grids: int = 200,
    ) -> None:
        super().__init__(time_limit, effort, random_state, n_jobs)
        self.n_grids = n_grids

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, progress: Callable[[Any], None] | None = None) -> Self:
        """Search for grids.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
        y : array-like of shape (n_samples,)
        progress : callable, optional
            As in `DataGridClassifier.fit`.

        Returns
        -------
        self
        """
        coded, target, found = self._search(X, y, progress, n_diverse=self.n_grids)
        grids = [build_grid(coded, target, one, found.null_cost) for one in found.others]
        if not grids:
            grids = [self.grid_]
        gains = np.array([grid.level for grid in grids])
        weights = gains / gains.sum() if gains.sum() > 0 else np.ones(len(grids)) / len(grids)
        self.model_ = GridEnsemble(tuple(grids), weights)
        self.grids_ = self.model_.grids
        self.weights_ = self.model_.weights
        return self


def rank_pairs(
    X: Any,
    y: Any,
    *,
    effort: int = 2,
    random_state: Any = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    progress: ProgressCallback | None = None,
) -> Any:
    """Rank all pairs of variables by how much the pair knows beyond its parts.

    For each pair the best grid over the two variables alone is sought. Its level, less the levels that the
    grids of each variable alone have under the same criterion, is the gain of the pair: positive when the
    two interact, negative when they repeat each other, zero when at least one of them tells nothing.

    Parameters
    ----------
    X : data frame, 2-D array or dict of columns
    y : array-like of shape (n_samples,)
    effort : int, default=2
        As in `DataGridClassifier`, for each pair.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, optional
        Threads over the pairs; -1 for one a core. The result does not depend on it.
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        Library of the frame; by default the first that is installed.
    progress : callable, optional
        Called with the number of pairs done and their total.

    Returns
    -------
    frame
        One row a pair, the largest gain first: ``first``, ``second``, ``level``, ``first_level``,
        ``second_level``, ``gain``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((400, 3))
    >>> y = (X[:, 0] > 0.4) ^ (X[:, 2] > 0.6)
    >>> pairs = rank_pairs(X, y, backend="dict")
    >>> pairs["first"][0], pairs["second"][0], round(pairs["gain"][0], 1)
    ('x0', 'x2', 0.8)
    """
    table, target = read_table(X), read_target(y)
    require_two_classes(target)
    if table.n_rows != len(target.codes):
        raise ValueError(f"X has {table.n_rows} rows and y has {len(target.codes)}")
    if table.n_columns < 2:
        raise ValueError(f"a pair takes two columns, X has {table.n_columns}")
    coded = code_table(table)
    pairs = list(itertools.combinations(range(len(coded)), 2))
    seed = seed_of(random_state)
    alone = map_in_threads(partial(_alone, coded, target, seed), range(len(coded)), n_jobs)
    found = map_in_threads(partial(_pair_levels, coded, alone, target, effort, seed), pairs, n_jobs, progress)
    order = sorted(range(len(pairs)), key=lambda i: (-found[i][3], pairs[i]))
    names = table.names
    return make_frame(
        {
            "first": [names[pairs[i][0]] for i in order],
            "second": [names[pairs[i][1]] for i in order],
            "level": [found[i][0] for i in order],
            "first_level": [found[i][1] for i in order],
            "second_level": [found[i][2] for i in order],
            "gain": [found[i][3] for i in order],
        },
        backend,
    )


def _alone(coded: list[CodedColumn], target: Target, seed: int, column: int) -> Any:
    from damier.search.grid.search import search_alone

    return search_alone(coded[column].axis(), target.codes, target.n_classes, seed=seed)


def _pair_levels(
    coded: list[CodedColumn], alone: list[Any], target: Target, effort: int, seed: int, pair: tuple[int, int]
) -> tuple[float, float, float, float]:
    from damier.search.grid.search import search_pair

    axes, parts = [coded[k].axis() for k in pair], [alone[k] for k in pair]
    null, together = search_pair(axes, parts, target.codes, target.n_classes, effort=effort, seed=seed)
    level, level_a, level_b = (max(0.0, 1.0 - cost / null) for cost in (together, *(p.cost for p in parts)))
    return level, level_a, level_b, level - level_a - level_b
