"""Classifiers from data grids, and pairs of variables ranked by what they explain together."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import (
    TableClassifier,
    WithSummary,
    seed_of,
)
from damier.estimators._regressor import TableRegressor
from damier.estimators._sklearn import Interval, fit_context
from damier.fit.grids import FoundGrids, find_grids, fit_pairs
from damier.fit.regression_grids import fit_number_pairs, fit_regression_grid
from damier.fit.source_grids import SAMPLE_ROWS, find_source_grids, fit_source_regression_grid
from damier.fit.source_target import read_number
from damier.fit.sources import ColumnFacts
from damier.fit.training import Opened, open_training, require_two_classes, require_two_values
from damier.intake import NumericTarget, Table, TargetType, read_any_target, read_table
from damier.intake.frames import as_frame, make_frame
from damier.intake.target import name_of
from damier.models.grid import DataGrid, GridEnsemble
from damier.models.regression_grid import RegressionGrid
from damier.search.run import ProgressCallback, Run, count_threads


class _GridParameters(WithSummary):
    """What all estimators of one grid share: parameters and summary."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "effort": [Interval(Integral, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "memory_limit": [Integral, str, None],
    }

    grid_: Any
    sample_rows_: int | None

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        effort: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.effort = effort
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    def _keep_source_columns(self, opened: Opened) -> None:
        """Keep what is known of the columns of a source."""
        columns = [c for c in opened.source.columns if c.name not in (opened.target, opened.weight)]
        self._keep_names([column.name for column in columns])  # type: ignore[attr-defined]
        facts = [ColumnFacts("numeric" if c.numeric else "categorical", None, None) for c in columns]
        self._keep_source_facts([column.name for column in columns], facts)

    def _summary(self) -> dict[str, list[Any]]:
        used = self.grid_.partitions
        names = self._facts["name"]
        return {
            "name": names,
            "type": self._facts["type"],
            "selected": [name in used for name in names],
            "parts": [used[name].n_parts if name in used else 1 for name in names],
            "missing": self._facts["missing"],
            "distinct": self._facts["distinct"],
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class _GridEstimator(_GridParameters, TableClassifier):
    """What both classifiers share: the search."""

    def _search(
        self, X: Any, y: Any, sample_weight: Any, progress: ProgressCallback | None, n_diverse: int = 0
    ) -> FoundGrids:
        opened = self._open_source(X, y, sample_weight)
        if opened is not None and not opened.fits:
            return self._search_source(opened, progress, n_diverse)
        training = self._read_training(opened or X, y, sample_weight)
        require_two_classes(training.target)
        run = self._new_run(progress)
        found = run.call(
            find_grids,
            training.table,
            training.target,
            training.weights,
            effort=self.effort,
            seed=seed_of(self.random_state),
            n_diverse=n_diverse,
            run=run,
        )
        self.classes_ = training.target.classes
        self._keep_facts(training.table)
        self.grid_ = found.best.in_library(training.table.library)
        self.n_starts_ = found.n_starts
        self.search_ended_ = run.ended
        self.sample_rows_ = None
        return found

    def _search_source(self, opened: Opened, progress: ProgressCallback | None, n_diverse: int) -> FoundGrids:
        """Search on a sample of rows that an engine holds, and count the cells on all of them."""
        run = self._new_run(progress)

        def search() -> tuple[FoundGrids, int, dict[str, tuple[int, int]]]:
            run.stop_clock()  # a time limit is for the search
            require_two_classes(opened.labels, opened.target)
            return find_source_grids(
                opened.source,
                opened.labels,
                effort=self.effort,
                seed=seed_of(self.random_state),
                n_diverse=n_diverse,
                run=run,
            )

        found, self.sample_rows_, left_out = run.call(search)
        self.classes_ = opened.labels.classes
        self._keep_source_columns(opened)
        self.grid_ = found.best
        self.n_starts_ = found.n_starts
        self.search_ended_ = run.ended
        self.source_ = opened.use(sample_rows=self.sample_rows_, left_out=left_out)
        return found


class _GridSelector(SelectorMixin):
    """Selector of the variables of a grid."""

    grid_: Any
    _names: tuple[str, ...]

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        selected = set(self.grid_.variables)
        return np.array([name in selected for name in self._names], dtype=np.bool_)

    def transform(self, X: Any) -> Any:
        """Return the selected columns as they were given.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        frame, array or dict
            The library that was passed in.
        """
        table = self._read_scored(X)
        kept = np.flatnonzero(self._get_support_mask()).tolist()
        if isinstance(X, Table):
            return Table(tuple(table.columns[k] for k in kept), table.n_rows)
        if isinstance(X, Mapping):
            return {name: X[name] for k, name in enumerate(X) if k in kept}
        frame = as_frame(X)
        if frame is not None:
            # Of pandas a frame without columns still has its rows.
            return frame[:, kept].to_native() if kept or not hasattr(X, "iloc") else X.iloc[:, []]
        return (X if hasattr(X, "shape") else np.asarray(X))[:, kept]


class DataGridClassifier(_GridSelector, _GridEstimator):
    """The most probable grid over the variables, as a classifier and as rules.

    Some of the variables are selected, each is cut into intervals or groups, and the cross of these
    partitions makes cells, each predicting its class shares; two more rows with the shares of the whole table
    keep tiny cells from promising too much. Which variables, how many parts and where they are cut is chosen
    by one criterion that weighs how well the cells explain the target against the complexity of the grid: on
    noise nothing is selected, and interactions of several variables none of which informs alone (XOR) are
    found as readily as others.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for the search; the best grid found so far is kept.
    effort : int, optional
        The search ends after 2^effort starts in a row that did not better the grid: each step up about
        doubles the time. None is 4, or, with a time limit, all the time.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. None is one fixed seed: the same data give the same grid.
    n_jobs : int, optional
        Threads; None for one, -1 for one per core. The grid does not depend on it.
    memory_limit : int or str, optional
        Bytes, or text such as "4GB", for tables that an engine holds; None is 4 GB. A table of at most a
        quarter of it is read whole. Of a larger one the grid is sought on a sample of the rows, and its cells
        are counted on all of them.

    Attributes
    ----------
    grid_ : damier.models.DataGrid
        ``variables``, ``partitions``, ``cells``, ``cost``, ``null_cost``, ``level`` and ``rules()``.
    classes_ : array
        Classes of the target.
    model_ : damier.models.DataGrid
        The grid, under the name by which ``damier.deploy.save`` finds it.
    summary_ : frame
        One row per column: name, type, selected, parts, missing, distinct.
    n_starts_ : int
        Starts the search made.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended.
    sample_rows_ : int or None
        Rows of the sample that the grid was sought on; None if it was sought on all rows.
    source_ : object or None
        What was asked of the engine that holds the table, if one does.
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
    A class that depends on two variables of three, neither of which informs alone:

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
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Search for the grid.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            pandas, polars, pyarrow, NumPy. Missing values and infinities are values like any others. Or a
            table that an engine holds: the name of files, a DuckDB relation, a Spark DataFrame, an ibis
            table.
        y : array-like of shape (n_samples,)
            Classes: integers, booleans or text. Of a table that an engine holds, the name of a column; so are
            the weights.
        sample_weight : array-like of shape (n_samples,), optional
            Frequencies, whole numbers: the grid is that of the rows repeated so often, and the search takes
            as long.
        progress : callable, optional
            Called with a `damier.search.run.Progress` after each round: ``cost`` and ``level`` of the best
            grid, starts ``done``, ``seconds`` and a ``text``.

        Returns
        -------
        self
        """
        self.model_: DataGrid = self._search(X, y, sample_weight, progress).alone()
        self.grid_ = self.model_
        return self


class DataGridEnsembleClassifier(_GridEstimator):
    """Many grids averaged: the optima the search meets, weighted by how much each compresses the target.

    One grid can use about log2 N variables; many grids over different variables use them all. Besides those
    met on the way to the best one, grids are sought on random subsets of the variables: averages gain from
    grids that differ. The mean of many grids hesitates; its probabilities are raised to the power that makes
    the training rows most probable, each judged without itself.

    Parameters
    ----------
    time_limit, effort, random_state, n_jobs, memory_limit
        As in `DataGridClassifier`.
    n_grids : int, default=200
        Starts on random subsets of the variables; about as many grids are averaged.

    Attributes
    ----------
    grids_ : tuple of damier.models.DataGrid
        The grids, the best first.
    weights_ : array
        The weight of each of ``grids_``; they sum to one.
    power_ : float
        What the mean probabilities are raised to; above one makes them sharper.
    grid_ : damier.models.DataGrid
        The best grid of all.
    summary_ : frame
        As in `DataGridClassifier`, with the weight of the grids that use each column; parts are those of
        ``grid_``.
    classes_, model_, n_starts_, search_ended_, sample_rows_, source_, n_features_in_, feature_names_in_
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
        *,
        n_grids: int = 200,
        time_limit: float | None = None,
        effort: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        super().__init__(
            time_limit=time_limit,
            effort=effort,
            random_state=random_state,
            n_jobs=n_jobs,
            memory_limit=memory_limit,
        )
        self.n_grids = n_grids

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Search for grids.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        progress : callable, optional
            As in `DataGridClassifier.fit`.

        Returns
        -------
        self
        """
        found = self._search(X, y, sample_weight, progress, n_diverse=self.n_grids)
        self.model_: GridEnsemble = found.averaged()
        self.model_.in_library(self.grid_.library)
        self.grids_ = self.model_.grids
        self.weights_ = self.model_.weights
        self.power_ = self.model_.power
        return self

    def _summary(self) -> dict[str, list[Any]]:
        pairs = list(zip(self.grids_, self.weights_.tolist(), strict=True))
        weights = [sum(w for grid, w in pairs if name in grid.partitions) for name in self._names]
        return {**super()._summary(), "weight": weights}


class DataGridRegressor(_GridSelector, _GridParameters, TableRegressor):
    """The most probable grid over the variables against a number, as a regressor and as rules.

    Some of the variables are selected, each is cut into intervals or groups, and so is the target; the cross
    of the variables' parts makes cells, each predicting the distribution of the target among its rows. Which
    variables, how many parts, and where the variables and the target are cut, is chosen by one criterion.

    Parameters
    ----------
    time_limit, effort, random_state, n_jobs, memory_limit
        As in `DataGridClassifier`. The search of a grid and the cuts of the target take turns, so that a
        search takes several times as long.

    Attributes
    ----------
    grid_ : damier.models.RegressionGrid
        ``variables``, ``partitions``, ``target_bounds``, ``cost``, ``null_cost``, ``level``, ``gain_per_row``
        and ``rules()``.
    model_ : damier.models.RegressionGrid
        The grid, under the name by which ``damier.deploy.save`` finds it.
    summary_ : frame
        One row per column: name, type, selected, parts, missing, distinct.
    n_starts_ : int
        Starts the search made.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended.
    sample_rows_, source_
        As in `DataGridClassifier`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Ctrl-C during ``fit`` ends the search, and the best grid so far is kept.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((400, 3))
    >>> y = 10 * ((X[:, 0] > 0.4) ^ (X[:, 2] > 0.6)) + rng.integers(0, 5, 400)
    >>> regressor = DataGridRegressor().fit(X, y)
    >>> regressor.grid_.variables
    ('x0', 'x2')
    >>> print(regressor.grid_.rules()[0])
    IF x0 > 0.4014436955 AND x2 <= 0.5950874125 THEN target between 10 and 14 (median 12, 143 rows)
    >>> regressor.predict_interval(X[:1], 0.9)
    array([[10., 14.]])
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Search for the grid.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            pandas, polars, pyarrow, NumPy. Missing values and infinities are values like any others.
        y : array-like of shape (n_samples,)
            Numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Frequencies, whole numbers: the grid is that of the rows repeated so often, and the search takes
            as long.
        progress : callable, optional
            Called with a `damier.search.run.Progress` after each round.

        Returns
        -------
        self
        """
        opened = self._open_source(X, y, sample_weight)
        if opened is not None and not opened.fits:
            return self._fit_source(opened, progress)
        table, target, weights = self._read_numbers(opened or X, y, sample_weight)
        run = self._new_run(progress)
        self.model_, self.n_starts_ = run.call(
            fit_regression_grid,
            table,
            target,
            weights,
            effort=self.effort,
            seed=seed_of(self.random_state),
            target_name=name_of(y) if opened is None else opened.target,
            run=run,
        )
        self._keep_facts(table)
        self.grid_: RegressionGrid = self.model_
        self.search_ended_ = run.ended
        self.sample_rows_ = None
        return self

    def _fit_source(self, opened: Opened, progress: ProgressCallback | None) -> Self:
        """Search on a sample of rows that an engine holds, and count the cells on all of them."""
        run = self._new_run(progress)

        def search() -> tuple[RegressionGrid, int, int, dict[str, tuple[int, int]]]:
            run.stop_clock()  # a time limit is for the search
            number = read_number(opened.source, opened.target, opened.weight, run)
            return fit_source_regression_grid(
                number, effort=self.effort, seed=seed_of(self.random_state), run=run
            )

        self.model_, self.n_starts_, self.sample_rows_, left_out = run.call(search)
        self._keep_source_columns(opened)
        self.grid_ = self.model_
        self.search_ended_ = run.ended
        self.source_ = opened.use(sample_rows=self.sample_rows_, left_out=left_out)
        return self


def rank_pairs(
    X: Any,
    y: Any,
    *,
    target: TargetType = "auto",
    effort: int | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    progress: ProgressCallback | None = None,
) -> Any:
    """Rank all pairs of variables by how much the pair explains beyond its two variables.

    For each pair the best grid over the two variables is sought. Its level, less the levels that the two have
    alone, is the gain of the pair: positive when the two interact, negative when they repeat each other, zero
    when one of them does not inform and the two do not interact.

    The level of a variable alone is that of `MODLDiscretizer` or `MODLGrouper`, and the level of the pair is
    measured in the same way: without the price of choosing variables, which `DataGridClassifier` pays on top.

    Parameters
    ----------
    X : data frame, 2-D array or dict of columns
        Or a table that an engine holds, as in `DataGridClassifier`: of one that takes more than a gigabyte,
        about 200,000 rows are looked at.
    y : array-like of shape (n_samples,)
        Of a table that an engine holds, the name of a column.
        Classes or numbers.
    target : {"auto", "number", "classes"}, default="auto"
        What ``y`` is, as in `MODLEncoder`.
    effort : int, optional
        As in `DataGridClassifier`, for each pair; None is 2.
    time_limit : float, optional
        Seconds; pairs not done by then are listed last, ``done`` false, level and gain NaN.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. None is one fixed seed.
    n_jobs : int, optional
        Threads over the pairs; None for one, -1 for one per core. The result does not depend on it.
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        Library of the frame; by default that of X, or the first that is installed.
    progress : callable, optional
        Called with a `damier.search.run.Progress`: pairs ``done`` of a ``total``.

    Returns
    -------
    frame
        One row per pair, the largest gain first: ``first``, ``second``, ``level``, ``first_level``,
        ``second_level``, ``gain``, ``done``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((400, 3))
    >>> y = (X[:, 0] > 0.4) ^ (X[:, 2] > 0.6)
    >>> pairs = rank_pairs(X, y, backend="dict")
    >>> pairs["first"][0], pairs["second"][0], round(pairs["gain"][0], 1)
    ('x0', 'x2', 0.8)
    """
    seed = seed_of(random_state)
    opened = open_training(X, y, threads=count_threads(n_jobs))
    table, y = (read_table(X), y) if opened is None else opened.sampled(SAMPLE_ROWS, seed)
    read = read_any_target(y, target)
    if table.n_rows != len(read.codes):
        raise ValueError(f"X has {table.n_rows} rows and y has {len(read.codes)}: give one target per row.")
    run = Run(count_threads(n_jobs), time_limit, progress)
    if isinstance(read, NumericTarget):
        require_two_values(read)
        pairs = run.call(fit_number_pairs, table, read, effort=effort, seed=seed, run=run)
    else:
        require_two_classes(read)
        pairs = run.call(fit_pairs, table, read, effort=effort, seed=seed, run=run)
    return make_frame(pairs, backend or table.library)
