"""Naive Bayes that predicts the distribution of a number."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import WithSummary, by_name, summary_of
from damier.estimators._regressor import TableRegressor
from damier.estimators._sklearn import Interval, StrOptions, fit_context
from damier.fit.naive_bayes_regression import Averaging, EvidenceOf, fit_naive_bayes_regression
from damier.fit.partitions import Search
from damier.fit.source_numbers import fit_source_regression
from damier.fit.source_target import read_number
from damier.fit.sources import MAX_VALUES, FittedColumns
from damier.fit.training import Opened
from damier.intake.table import FloatArray
from damier.models import Explanation, NaiveBayesRegression
from damier.models.partition import AnyPartition
from damier.search.run import ProgressCallback, Run


class NaiveBayesRegressor(WithSummary, TableRegressor):
    """Naive Bayes that predicts the distribution of a number: mean, median, quantiles, intervals.

    Each column and the target are cut together: the column into parts, the target into intervals, as many as
    one criterion finds worth their price. The target intervals of all columns give elementary intervals, and
    the evidence of the columns for each of them is added in logarithms. Within an elementary interval the
    target is distributed as in training. A small share of each predicted distribution, which falls with the
    number of training rows, stays that of all training rows: no evidence of few rows is certain.

    Only the order of the target's values matters to the search, so that outliers and skewed targets need no
    transform. A column that does not inform about the target has one part and no influence. Missing values
    are part of the partition; a category never seen in training is neutral.

    Parameters
    ----------
    averaging : {"convex", "compression"} or None, default="convex"
        How variables are weighted, so that redundant ones are not counted twice. ``"convex"`` gives each
        variable one weight per elementary interval, zero or more, that make the targets of the training rows
        most probable, each row judged without itself. ``"compression"`` gives each variable one weight
        between 0 and 1, the mean over searches (Boullé, 2007). None gives each variable the weight 1: the
        distributions are then too narrow as soon as variables say the same.
    evidence : {"posterior", "best"}, default="posterior"
        ``"posterior"`` keeps the intervals into which a variable cuts the target, and averages its evidence
        for them over all partitions of the variable, each by its posterior probability: where rows are few
        the steps of the best partition are smoothed. With convex weights, steps are added to the evidence of
        numbers so that all go together. ``"best"`` is the evidence of the best partition. The partition shown
        is the best one either way.
    average_starts : bool, default=True
        Average the evidence of the distinct optima that the starts of the search reach for a variable, if
        they save at least seven tenths of what the best saves; False keeps only the best. Each optimum has
        its own intervals of the target.
    search : {"auto", "greedy", "exact"}, default="auto"
        How groups of categories are searched, as in :class:`MODLEncoder`.
    memory_limit : int or str, optional
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A
        table of up to a quarter of it is read into memory and fitted there. A larger one is partitioned from
        counts of all its rows, one optimum per variable; its evidence is averaged and weighted on a sample of
        a million rows.
    max_values : int, default=1_000_000
        Where X is a source: how many values of a column the model lists, the most frequent ones.
    n_jobs : int, optional
        Number of threads over the columns; -1 is one per core. The result does not depend on it.

    Attributes
    ----------
    partitions_ : dict of str to IntervalPartition or GroupPartition
        The best partition of each column, with the intervals of the target in ``target_bounds``.
    bounds_ : array of shape (n_intervals - 1,)
        Inner bounds of the elementary intervals of the target.
    summary_ : frame
        One row per column: name, type, parts, level, missing, distinct, optimal, gain_per_row, weight.
    levels_ : dict of str to float
        How much each column explains of the target by itself, from 0 (nothing) to 1 (all).
    weights_ : array of shape (n_features,)
        Weight of each column's evidence, the mean over the elementary intervals.
    interval_weights_ : array of shape (n_features, n_intervals)
        Weight of each column's evidence for each elementary interval.
    feature_importances_ : array of shape (n_features,)
        Weight times level, scaled to sum to one (all zero when no column informs about the target).
    model_ : damier.models.NaiveBayesRegression
        The model that predicts, and that ``damier.deploy.save`` writes.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, rows of the sample, seconds, values left out.
    search_ended_ : {"complete", "interrupted"}
        How the search ended. Ctrl-C while the columns are weighted keeps the weights found so far.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    C. Hue and M. Boullé (2007), A new probabilistic approach in rank regression with optimal Bayesian
    partitioning, Journal of Machine Learning Research 8.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> regressor = NaiveBayesRegressor().fit(X, y)
    >>> low, high = regressor.predict_interval(X, coverage=0.9).T
    >>> bool(0.85 < ((low <= y) & (y <= high)).mean() < 0.97)
    True
    >>> max(regressor.levels_, key=regressor.levels_.get)
    's5'

    The chance of a high target rises along a column, steeply where a cut is certain.

    >>> partition = regressor.partitions_["s5"]
    >>> high = partition.posterior(backend="dict")[f"share {partition.classes[-1]}"]
    >>> round(high[0], 2), round(high[-1], 2)
    (0.02, 0.64)
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "averaging": [StrOptions({"convex", "compression"}), None],
        "evidence": [StrOptions({"posterior", "best"})],
        "average_starts": ["boolean"],
        "search": [StrOptions({"auto", "greedy", "exact"})],
        "memory_limit": [Integral, str, None],
        "max_values": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    partitions_: dict[str, AnyPartition]
    model_: NaiveBayesRegression

    def __init__(
        self,
        *,
        averaging: Averaging = "convex",
        evidence: EvidenceOf = "posterior",
        average_starts: bool = True,
        search: Search = "auto",
        memory_limit: int | str | None = None,
        max_values: int = MAX_VALUES,
        n_jobs: int | None = None,
    ) -> None:
        self.averaging = averaging
        self.evidence = evidence
        self.average_starts = average_starts
        self.search = search
        self.memory_limit = memory_limit
        self.max_values = max_values
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Partition each column together with the target, and weight them.

        Parameters
        ----------
        X : data frame, 2-D array, dict of columns or source
            pandas, polars, pyarrow, NumPy. Missing values and infinities are allowed. Or a table of any size
            that an engine counts: the path or pattern of Parquet or CSV files, a DuckDB relation, a Spark
            DataFrame, an ibis table.
        y : array-like of shape (n_samples,), or str
            Numbers, neither missing nor infinite. The name of a column where X is a source.
        sample_weight : array-like of shape (n_samples,), or str, optional
            Frequencies: whole numbers. A row of weight 3 counts as three rows, one of weight 0 not at all.
            The name of a column where X is a source.
        progress : callable, optional
            Called with a :class:`damier.search.run.Progress` as columns are partitioned.

        Returns
        -------
        self
        """
        opened = self._open_source(X, y, sample_weight)
        if opened is not None and not opened.fits:
            return self._fit_source(opened, progress)
        table, target, weights = self._read_numbers(opened or X, y, sample_weight)
        run = self._new_run(progress)
        self.model_ = run.call(
            fit_naive_bayes_regression,
            table,
            target,
            weights,
            averaging=self.averaging,
            evidence=self.evidence,
            average_starts=self.average_starts,
            search=self.search,
            run=run,
        )
        self.model_.in_library(table.library)
        self._keep_facts(table)
        return self._keep_model(run)

    def _fit_source(self, opened: Opened, progress: ProgressCallback | None) -> Self:
        """Partition each column of a source from counts, and weight them on a sample of the rows."""
        run = self._new_run(progress)

        def fit() -> tuple[NaiveBayesRegression, FittedColumns, int | None]:
            number = read_number(opened.source, opened.target, opened.weight, run)
            return fit_source_regression(
                number,
                averaging=self.averaging,
                evidence=self.evidence,
                search=self.search,
                max_values=self.max_values,
                memory=opened.memory,
                run=run,
            )

        self.model_, fitted, sample_rows = run.call(fit)
        names = [variable.name for variable in self.model_.variables]
        self._keep_names(names)
        self._keep_source_facts(names, fitted.facts)
        self.source_ = opened.use(left_out=fitted.left_out, sample_rows=sample_rows)
        return self._keep_model(run)

    def _keep_model(self, run: Run) -> Self:
        """Set the attributes that are read off the model."""
        self.search_ended_ = run.ended
        variables = self.model_.variables
        self.partitions_ = by_name(v.partition for v in variables)
        self.bounds_ = self.model_.bounds
        self.levels_ = {v.name: v.partition.level for v in variables}
        self.weights_ = np.array([v.weight for v in variables])
        self.interval_weights_ = np.array(
            [np.broadcast_to(v.multiplier, self.model_.n_intervals) for v in variables]
        )
        return self

    def _summary(self) -> dict[str, list[Any]]:
        gains = [partition.gain_per_row for partition in self.partitions_.values()]
        return {
            **summary_of(self.partitions_, self._facts),
            "gain_per_row": gains,
            "weight": self.weights_.tolist(),
        }

    @property
    def feature_importances_(self) -> FloatArray:
        """Weight times level of each column, scaled to sum to one."""
        check_is_fitted(self)
        shares: FloatArray = self.weights_ * np.array(list(self.levels_.values()))
        return shares / shares.sum() if shares.sum() > 0 else shares

    def explain(self, X: Any) -> Explanation:
        """Say how far each variable moves the predicted mean of each row, and what it speaks for.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        damier.models.Explanation
            ``moves``, an array of shape (n_samples, n_features), adds up to the distance of the prediction
            from the mean of the training targets. ``evidence``, of shape (n_samples, n_features,
            n_intervals), is the evidence for each elementary interval, in nats.
        """
        table = self._read_scored(X)
        return self.model_.explain(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
