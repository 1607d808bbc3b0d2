"""Naive Bayes on optimal partitions, with weighted variables and, on request, grouped classes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import (
    TableClassifier,
    WithSummary,
    by_name,
    summary_of,
)
from damier.estimators._sklearn import Interval, StrOptions, fit_context
from damier.fit.naive_bayes import Averaging, EvidenceOf, Pairs, fit_naive_bayes
from damier.fit.partitions import Search, SemiSupervised
from damier.fit.sources import MAX_VALUES, FittedColumns, fit_source_naive_bayes
from damier.fit.training import Opened, refuse_for_sources, require_two_classes
from damier.intake.table import FloatArray
from damier.models import NaiveBayes
from damier.models.partition import AnyPartition
from damier.search.run import ProgressCallback, Run


class NaiveBayesClassifier(WithSummary, TableClassifier):
    """Naive Bayes on variables partitioned by MODL, for two classes or hundreds.

    Each column is cut into intervals or groups that minimise one criterion. P(part | class) is estimated from
    the counts of the partition (m-estimate), and the evidence of the variables is added in logarithms. A
    column that does not inform about the target has one part and no influence. Missing values are part of the
    partition; a category never seen in training is neutral.

    Parameters
    ----------
    group_classes : bool, default=False
        Partition each column and group the classes at the same time, separately for each column. With many
        classes and few rows of each, this makes the estimates reliable.
    averaging : {"convex", "compression"} or None, default="convex"
        How variables are weighted, so that redundant ones are not counted twice. ``"convex"`` gives each
        variable one weight per class, zero or more, that make the classes of the training rows most probable,
        each row judged without itself. ``"compression"`` gives each variable one weight between 0 and 1, the
        mean over searches (Boullé, 2007). None gives each variable the weight 1.
    evidence : {"posterior", "best"}, default="posterior"
        ``"posterior"`` averages the evidence of a variable over all its partitions, each by its posterior
        probability: where rows are few the steps of the best partition are smoothed. With convex weights,
        steps are added to the evidence of numbers so that all go together. ``"best"`` is the evidence of the
        best partition alone. The partition shown is the best one either way. Where classes
        are grouped the evidence is that of the best partitions.
    pairs : "auto", int or None, default="auto"
        Add the evidence of pairs of variables that act together: that of the cells of a grid over the two,
        beyond what both say alone. Pairs whose grid pays for itself are weighted together with the variables;
        ``"auto"`` takes as many as there are columns at most, a number so many, None does without. They are
        found among the 40 columns of highest level, on at most 20,000 rows. Needs ``averaging="convex"`` and
        classes that are not grouped; elsewhere ``"auto"`` takes none.
    semi_supervised : {"criterion", "bounds"} or None, default=None
        Use the rows without a label (-1 for integers, else a missing value) to cut numbers, as in
        :class:`MODLDiscretizer`; all else is estimated on the labeled rows.
    average_starts : bool, default=True
        With ``group_classes``, average the evidence of the distinct optima that the random starts reach for a
        variable, if their level is at least nine tenths of the best; False keeps only the best.
    search : {"auto", "greedy", "exact"}, default="auto"
        As in :class:`MODLEncoder`; not used where classes are grouped.
    n_starts : int, default=10
        With ``group_classes``, number of random starts per variable.
    memory_limit : int or str, optional
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A
        table of up to a quarter of it is read into memory and fitted there. A larger one is partitioned from
        counts of all its rows; its evidence is averaged and weighted, and its pairs are counted, on a sample
        of a million rows.
    max_values : int, default=1_000_000
        Where X is a source: how many values of a column the model lists, the most frequent ones. The others
        take part in the search, and score as unseen.
    n_jobs : int, optional
        Number of threads over the columns; -1 is one per core. The result does not depend on it.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the target.
    partitions_ : dict of str to IntervalPartition or GroupPartition
        The best partition of each column.
    summary_ : frame
        One row per column: name, type, parts, level, missing, distinct, optimal, weight.
    levels_ : dict of str to float
        How much each column explains of the target by itself, from 0 (nothing) to 1 (all).
    weights_ : array of shape (n_features,)
        Weight of each column's evidence, the mean over the classes.
    class_weights_ : array of shape (n_features, n_classes)
        Weight of each column's evidence for each class.
    pairs_ : tuple of damier.models.PairEvidence
        The pairs that have a weight: ``names``, ``weight``, ``class_weights``, ``partitions``, ``counts``.
    feature_importances_ : array of shape (n_features,)
        Weight times level, scaled to sum to one (all zero when no column informs about the target).
    model_ : damier.models.NaiveBayes
        The model that predicts, and that ``damier.deploy.save`` writes.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, rows of the sample, seconds, values left out.
    search_ended_ : {"complete", "interrupted"}
        How the search ended. Ctrl-C while the columns are weighted keeps the weights found so far.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    M. Boullé (2012), Simultaneous partitioning of input and class variables for supervised classification
    problems with many classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> classifier = NaiveBayesClassifier().fit(X, y)
    >>> classifier.predict(X[:3])
    array([0, 0, 0])
    >>> weights = dict(zip(X.columns, classifier.weights_))
    >>> bool(weights["total_phenols"] < 0.5 < weights["flavanoids"])
    True
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "group_classes": ["boolean"],
        "averaging": [StrOptions({"convex", "compression"}), None],
        "evidence": [StrOptions({"posterior", "best"})],
        "pairs": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "semi_supervised": [StrOptions({"criterion", "bounds"}), None],
        "average_starts": ["boolean"],
        "search": [StrOptions({"auto", "greedy", "exact"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "memory_limit": [Integral, str, None],
        "max_values": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    partitions_: dict[str, AnyPartition]
    model_: NaiveBayes

    def __init__(
        self,
        *,
        group_classes: bool = False,
        averaging: Averaging = "convex",
        evidence: EvidenceOf = "posterior",
        pairs: Pairs = "auto",
        semi_supervised: SemiSupervised = None,
        average_starts: bool = True,
        search: Search = "auto",
        n_starts: int = 10,
        memory_limit: int | str | None = None,
        max_values: int = MAX_VALUES,
        n_jobs: int | None = None,
    ) -> None:
        self.group_classes = group_classes
        self.averaging = averaging
        self.evidence = evidence
        self.pairs = pairs
        self.semi_supervised = semi_supervised
        self.average_starts = average_starts
        self.search = search
        self.n_starts = n_starts
        self.memory_limit = memory_limit
        self.max_values = max_values
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Partition each column, and weight them.

        Parameters
        ----------
        X : data frame, 2-D array, dict of columns or source
            pandas, polars, pyarrow, NumPy. Missing values and infinities are allowed. Or a table of any size
            that an engine counts: the path or pattern of Parquet or CSV files, a DuckDB relation, a Spark
            DataFrame, an ibis table.
        y : array-like of shape (n_samples,), or str
            Classes: integers, booleans or text. With ``semi_supervised``, -1 (integers) or a missing value
            (anything else) is a row without a label. The name of a column where X is a source.
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
        training = self._read_training(
            opened or X, y, sample_weight, allow_unlabeled=self.semi_supervised is not None
        )
        if training.target.n_classes == 0:
            raise ValueError(
                "every row of y is without a label (-1 or missing): a classifier learns from the rows that "
                "have one. Label some, or use Coclustering, which needs no target."
            )
        require_two_classes(training.target)
        run = self._new_run(progress)
        self.model_ = run.call(
            fit_naive_bayes,
            training.table,
            training.target,
            training.weights,
            group_classes=self.group_classes,
            averaging=self.averaging,
            evidence=self.evidence,
            pairs=self.pairs,
            semi_supervised=self.semi_supervised,
            average_starts=self.average_starts,
            search=self.search,
            n_starts=self.n_starts,
            run=run,
        )
        self.model_.in_library(training.table.library)
        self._keep_facts(training.table)
        return self._keep_model(run, training.target.classes)

    def _fit_source(self, opened: Opened, progress: ProgressCallback | None) -> Self:
        """Partition each column of a source from counts, and weight them on a sample of the rows."""
        refuse_for_sources(self.group_classes, self.semi_supervised)
        run = self._new_run(progress)

        def fit() -> tuple[NaiveBayes, FittedColumns, int | None]:
            require_two_classes(opened.labels, opened.target)
            return fit_source_naive_bayes(
                opened.source,
                opened.labels,
                averaging=self.averaging,
                evidence=self.evidence,
                pairs=self.pairs,
                search=self.search,
                max_values=self.max_values,
                run=run,
            )

        self.model_, fitted, sample_rows = run.call(fit)
        names = [variable.name for variable in self.model_.variables]
        self._keep_names(names)
        self._keep_source_facts(names, fitted.facts)
        self.source_ = opened.use(left_out=fitted.left_out, sample_rows=sample_rows)
        return self._keep_model(run, opened.labels.classes)

    def _keep_model(self, run: Run, classes: npt.NDArray[Any]) -> Self:
        """Set the attributes that are read off the model."""
        self.search_ended_ = run.ended
        self.classes_ = classes
        variables = self.model_.variables
        self.partitions_ = by_name(v.partition for v in variables)
        self.levels_ = {v.name: v.partition.level for v in variables}
        self.weights_ = np.array([v.weight for v in variables])
        n_classes = len(self.classes_)
        self.pairs_ = self.model_.pairs
        self.class_weights_ = np.array([np.broadcast_to(v.multiplier, n_classes) for v in variables])
        return self

    def _summary(self) -> dict[str, list[Any]]:
        return {**summary_of(self.partitions_, self._facts), "weight": self.weights_.tolist()}

    @property
    def feature_importances_(self) -> FloatArray:
        """Weight times level of each column, scaled to sum to one."""
        check_is_fitted(self)
        shares: FloatArray = self.weights_ * np.array(list(self.levels_.values()))
        return shares / shares.sum() if shares.sum() > 0 else shares

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row, the first one on a tie.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_samples,)
        """
        table = self._read_scored(X)
        predicted: npt.NDArray[Any] = self.model_.predict(table)
        return predicted.astype(self.classes_.dtype, copy=False)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probabilities of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        table = self._read_scored(X)
        proba: FloatArray = self.model_.predict_log_proba(table)
        return proba

    def explain(self, X: Any) -> FloatArray:
        """Return the evidence of each variable for each class, row by row, in nats.

        Positive evidence makes the class more probable, negative less; zero is neutral. Added to the
        log-frequencies of the classes, the evidence of all variables gives ``predict_log_proba`` up to one
        constant per row. Pairs of variables, if there are any, follow the variables.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        array of shape (n_samples, n_features + n_pairs, n_classes)
        """
        table = self._read_scored(X)
        explained: FloatArray = self.model_.explain(table)
        return explained

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
