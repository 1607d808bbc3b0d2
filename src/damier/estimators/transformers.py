"""Transformers that replace each column by its best partition against the target."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import (
    TableEstimator,
    WithSummary,
    by_name,
    summary_of,
)
from damier.estimators._sklearn import Interval, StrOptions, check_feature_names_in, fit_context
from damier.fit.encoding import fit_encoding
from damier.fit.partitions import Search, SemiSupervised
from damier.fit.source_numbers import fit_source_number_encoding
from damier.fit.source_target import read_number
from damier.fit.sources import MAX_VALUES, FittedColumns, Read, fit_source_encoding
from damier.fit.training import Opened, refuse_for_sources, require_two_classes, require_two_values
from damier.intake import Column, NumericTarget, Table, Target, TargetType, as_categorical, as_numeric
from damier.models.encoding import ENCODINGS, OF_NUMBERS, Encode, Encoding, FeatureNames
from damier.models.partition import AnyPartition, GroupPartition, IntervalPartition
from damier.search.run import ProgressCallback


class _PartitionTransformer(TransformerMixin, WithSummary, TableEstimator):
    """What the three transformers share: fit a partition to each column, and apply them."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "encode": [StrOptions(set(ENCODINGS))],
        "target": [StrOptions({"auto", "number", "classes"})],
        "search": [StrOptions({"auto", "greedy", "exact"})],
        "feature_names": [StrOptions({"label", "plain"})],
        "sparse_output": ["boolean"],
        "memory_limit": [Integral, str, None],
        "n_jobs": [Integral, None],
    }

    encode: Encode
    target: TargetType
    search: Search
    feature_names: FeatureNames
    sparse_output: bool
    partitions_: Any
    levels_: dict[str, float]
    model_: Encoding
    # What a transformer that has no such parameter does.
    semi_supervised: SemiSupervised = None
    group_classes: bool = False
    short_bounds: bool = False
    memory_limit: int | str | None = None
    max_values: int = MAX_VALUES

    # As what the columns of a source are read.
    _read: Read = "own"
    _accepts_sparse = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: ProgressCallback | None = None
    ) -> Self:
        """Find the best partition of each column.

        Parameters
        ----------
        X : data frame, 2-D array, dict of columns or source
            pandas, polars, pyarrow, NumPy. Missing values and infinities are allowed. Or a table of any size
            that an engine counts: the path or pattern of Parquet or CSV files, a DuckDB relation, a Spark
            DataFrame, an ibis table.
        y : array-like of shape (n_samples,), or str
            Classes: integers, booleans or text. With ``semi_supervised``, -1 (integers) or a missing value
            (anything else) is a row without a label. Or numbers: see ``target``. The name of a column where X
            is a source.
        sample_weight : array-like of shape (n_samples,), or str, optional
            Frequencies: whole numbers. A row of weight 3 counts as three rows, one of weight 0 not at all.
            The name of a column where X is a source.
        progress : callable, optional
            Called with a :class:`damier.search.run.Progress` as columns are partitioned.

        Returns
        -------
        self
        """
        if self.sparse_output and self.encode != "onehot":
            raise ValueError(f"sparse_output=True needs encode='onehot'; got encode={self.encode!r}.")
        opened = self._open_source(X, y, sample_weight)
        if opened is not None and not opened.fits:
            return self._fit_source(opened, progress)
        semi_supervised = self.semi_supervised is not None
        training = self._read_any_training(
            opened or X,
            y,
            sample_weight,
            self.target,
            allow_unlabeled=semi_supervised,
            ask=not self.group_classes,  # only classes can be grouped
        )
        target, table = training.target, training.table
        if isinstance(target, NumericTarget):
            require_two_values(target)
        else:
            self._refuse_classes()
            if target.n_classes > 0 or not semi_supervised:
                require_two_classes(target)
        if type(self)._prepare is not _PartitionTransformer._prepare:
            table = Table(tuple(self._prepare(column) for column in table), table.n_rows, table.named)
        run = self._new_run(progress)
        self.model_ = run.call(
            fit_encoding,
            table,
            target,
            training.weights,
            encode=self.encode,
            group_classes=self.group_classes,
            search=self.search,
            short_bounds=self.short_bounds,
            semi_supervised=self.semi_supervised,
            run=run,
        )
        self.search_ended_ = run.ended
        self.model_.in_library(training.table.library)
        if isinstance(target, Target):
            self.classes_ = target.classes
        elif hasattr(self, "classes_"):
            del self.classes_  # of an earlier fit
        self.partitions_ = by_name(self.model_.partitions)
        self._keep_facts(table)
        self.levels_ = {partition.name: partition.level for partition in self.model_.partitions}
        return self

    def _fit_source(self, opened: Opened, progress: ProgressCallback | None) -> Self:
        """Find the best partition of each column of a source, from counts."""
        refuse_for_sources(self.group_classes, self.semi_supervised)
        run = self._new_run(progress)
        options: dict[str, Any] = {
            "encode": self.encode,
            "read": self._read,
            "search": self.search,
            "short_bounds": self.short_bounds,
            "max_values": self.max_values,
            "run": run,
        }

        def fit() -> tuple[bool, tuple[Encoding, FittedColumns]]:
            if opened.is_number(self.target):
                number = read_number(opened.source, opened.target, opened.weight, run)
                return True, fit_source_number_encoding(number, memory=opened.memory, **options)
            self._refuse_classes()
            require_two_classes(opened.labels, opened.target)
            return False, fit_source_encoding(opened.source, opened.labels, **options)

        is_number, (self.model_, fitted) = run.call(fit)
        self.search_ended_ = run.ended
        if not is_number:
            self.classes_ = opened.labels.classes
        elif hasattr(self, "classes_"):
            del self.classes_  # of an earlier fit
        self.partitions_ = by_name(self.model_.partitions)
        names = [partition.name for partition in self.model_.partitions]
        self._keep_names(names)
        self._keep_source_facts(names, fitted.facts)
        self.levels_ = {partition.name: partition.level for partition in self.model_.partitions}
        self.source_ = opened.use(left_out=fitted.left_out)
        return self

    def _refuse_classes(self) -> None:
        """Refuse encodings that need a number as the target."""
        if self.encode in OF_NUMBERS:
            raise ValueError(
                f"encode={self.encode!r} needs a target that is a number: say target='number' if it is one."
            )

    def _prepare(self, column: Column) -> Column:
        """Turn a column into the kind that is partitioned, or refuse it."""
        return column

    def _summary(self) -> dict[str, list[Any]]:
        return summary_of(self.partitions_, self._facts)

    def transform(self, X: Any) -> Any:
        """Replace each value by its part.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_samples, n_features_out)
            Encoded by ``encode``; a sparse matrix with ``sparse_output``, a frame after ``set_output``.
        """
        table = self._read_scored(X)
        if self.sparse_output:
            return self.model_.transform_sparse(table)
        return self.model_.transform(table)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns of ``transform``.

        The variable's own name (ordinal), followed by ``=`` and the part's label (one-hot) or by ``:`` and
        the class (evidence). With ``feature_names="plain"``, in letters, digits and ``_`` alone.
        """
        check_is_fitted(self)
        names = None
        if input_features is not None:
            check_feature_names_in(self, input_features)
            names = tuple(map(str, input_features))
        return np.array(self.model_.feature_names_out(names, kind=self.feature_names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class MODLDiscretizer(_PartitionTransformer):
    """Cut each numeric column into the intervals that best explain the target.

    The number of intervals and their bounds minimise one criterion, which balances how well the intervals
    explain the classes against the cost of describing them. There is nothing to tune, and a column that does
    not inform about the target becomes one interval.

    Parameters
    ----------
    semi_supervised : {"criterion", "bounds"} or None, default=None
        Use the rows without a label too. ``"criterion"`` counts them in the criterion itself; ``"bounds"``
        cuts the labeled rows, then moves each bound to the median of the unlabeled values between its two
        labeled neighbours. None means that each row has a label.
    encode : {"ordinal", "onehot", "evidence", "mean", "median"}, default="ordinal"
        The index of the interval; one 0/1 column per interval; one column per class (or interval of a numeric
        target) with log P(interval | class) - log P(interval); or the mean or median of a numeric target in
        the interval.
    target : {"auto", "number", "classes"}, default="auto"
        What ``y`` is. ``"auto"`` takes fractional numbers for a number and anything else for classes; whole
        numbers of very many values are refused until this says what they are. A number is cut into intervals
        together with each column.
    search : {"auto", "greedy", "exact"}, default="auto"
        ``"auto"`` searches exactly where that is cheap. ``partitions_[name].optimal`` is True if the
        result is proven optimal.
    short_bounds : bool, default=False
        Place bounds at the number of fewest digits between two neighbouring training values, rather than in
        the middle.
    feature_names : {"label", "plain"}, default="label"
        How ``get_feature_names_out`` names the columns: by the labels of the parts (``age=]30.5, +inf[``), or
        in letters, digits and ``_`` alone (``age_1``, ``sex_is_male``), as LightGBM and XGBoost ask for.
    sparse_output : bool, default=False
        Return one-hot columns as a sparse matrix.
    memory_limit : int or str, optional
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A
        table of up to a quarter of it is read into memory and fitted there.
    n_jobs : int, optional
        Number of threads over the columns; -1 is one per core. The result does not depend on it.

    Attributes
    ----------
    partitions_ : dict of str to IntervalPartition
        The partitions, by feature name.
    summary_ : frame
        One row per column: name, type, parts, level, missing, distinct, optimal.
    levels_ : dict of str to float
        How much each column explains of the target, from 0 (nothing) to 1 (all).
    classes_ : array of shape (n_classes,)
        Classes of the target; a numeric target has none.
    model_ : damier.models.Encoding
        The model that ``transform`` applies, and that ``damier.deploy.save`` writes.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, seconds, values left out.
    search_ended_ : {"complete"}
        How the search ended; Ctrl-C raises KeyboardInterrupt, as without all partitions there is no model.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Booleans are numbers here (0 and 1), dates are numbers everywhere. Missing values sort before all numbers:
    they stand alone in the first part or belong to the lowest interval. A categorical column is an error: use
    :class:`MODLEncoder`, which groups its values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> discretizer = MODLDiscretizer().fit(X, y)
    >>> discretizer.partitions_["petal length (cm)"].labels
    (']-inf, 2.45]', ']2.45, 4.75]', ']4.75, +inf[')
    >>> discretizer.transform(X)[[0, 60, 149], 2]
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_PartitionTransformer._parameter_constraints,
        "short_bounds": ["boolean"],
        "semi_supervised": [StrOptions({"criterion", "bounds"}), None],
    }

    partitions_: dict[str, IntervalPartition]
    _read = "numeric"

    def __init__(
        self,
        *,
        semi_supervised: SemiSupervised = None,
        encode: Encode = "ordinal",
        target: TargetType = "auto",
        search: Search = "auto",
        short_bounds: bool = False,
        feature_names: FeatureNames = "label",
        sparse_output: bool = False,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.semi_supervised = semi_supervised
        self.encode = encode
        self.target = target
        self.search = search
        self.short_bounds = short_bounds
        self.feature_names = feature_names
        self.sparse_output = sparse_output
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _prepare(self, column: Column) -> Column:
        try:
            return as_numeric(column)
        except ValueError as error:
            raise ValueError(
                f"{error}. MODLDiscretizer cuts numbers: convert the column, leave it out, or use "
                "MODLEncoder, which groups categories."
            ) from None


class MODLGrouper(_PartitionTransformer):
    """Group the values of each column into the groups that best explain the target.

    Parameters
    ----------
    encode : {"ordinal", "onehot", "evidence", "mean", "median"}, default="ordinal"
        The index of the group; one 0/1 column per group; one column per class (or interval of a numeric
        target) with log P(group | class) - log P(group); or the mean or median of a numeric target in the
        group. A value never seen in training has index -1, zeros, or the mean or median of all rows.
    target : {"auto", "number", "classes"}, default="auto"
        What ``y`` is. ``"auto"`` takes fractional numbers for a number and anything else for classes; whole
        numbers of very many values are refused until this says what they are. A number is cut into intervals
        together with each column.
    search : {"auto", "greedy", "exact"}, default="auto"
        ``"auto"`` searches exactly where that is cheap.
    feature_names : {"label", "plain"}, default="label"
        How ``get_feature_names_out`` names the columns: by the labels of the parts (``age=]30.5, +inf[``), or
        in letters, digits and ``_`` alone (``age_1``, ``sex_is_male``), as LightGBM and XGBoost ask for.
    sparse_output : bool, default=False
        Return one-hot columns as a sparse matrix.
    memory_limit : int or str, optional
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A
        table of up to a quarter of it is read into memory and fitted there.
    max_values : int, default=1_000_000
        Where X is a source: how many values of a column the model lists, the most frequent ones. The others
        take part in the search, and score as unseen.
    n_jobs : int, optional
        Number of threads over the columns; -1 is one per core. The result does not depend on it.

    Attributes
    ----------
    partitions_ : dict of str to GroupPartition
        The partitions, by feature name.
    summary_ : frame
        One row per column: name, type, parts, level, missing, distinct, optimal.
    levels_ : dict of str to float
        How much each column explains of the target, from 0 (nothing) to 1 (all).
    classes_ : array of shape (n_classes,)
        Classes of the target; a numeric target has none.
    model_ : damier.models.Encoding
        The model that ``transform`` applies, and that ``damier.deploy.save`` writes.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, seconds, values left out.
    search_ended_ : {"complete"}
        How the search ended; Ctrl-C raises KeyboardInterrupt, as without all partitions there is no model.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Numbers are names here (postcodes, product numbers): their order is not used. Missing is a
    value like any other.

    Examples
    --------
    >>> X = {"colour": ["red", "green", "blue", "black"] * 25}
    >>> y = [1, 0, 1, 0] * 25
    >>> grouper = MODLGrouper().fit(X, y)
    >>> sorted(grouper.partitions_["colour"].groups)
    [('black', 'green'), ('blue', 'red')]
    >>> (grouper.transform({"colour": ["red", "blue", "pink"]}) >= 0).ravel()
    array([ True,  True, False])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_PartitionTransformer._parameter_constraints,
        "max_values": [Interval(Integral, 1, None, closed="left")],
    }

    partitions_: dict[str, GroupPartition]
    _read = "categorical"

    def __init__(
        self,
        *,
        encode: Encode = "ordinal",
        target: TargetType = "auto",
        search: Search = "auto",
        feature_names: FeatureNames = "label",
        sparse_output: bool = False,
        memory_limit: int | str | None = None,
        max_values: int = MAX_VALUES,
        n_jobs: int | None = None,
    ) -> None:
        self.encode = encode
        self.target = target
        self.search = search
        self.feature_names = feature_names
        self.sparse_output = sparse_output
        self.memory_limit = memory_limit
        self.max_values = max_values
        self.n_jobs = n_jobs

    def _prepare(self, column: Column) -> Column:
        return as_categorical(column)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class MODLEncoder(_PartitionTransformer):
    """Partition each column: numbers are cut into intervals, categories are grouped.

    Parameters
    ----------
    semi_supervised : {"criterion", "bounds"} or None, default=None
        Use the rows without a label too. ``"criterion"`` counts them in the criterion itself; ``"bounds"``
        cuts the labeled rows, then moves each bound to the median of the unlabeled values between its two
        labeled neighbours. Groups of categories are found on the labeled rows. None means that each row has
        a label.
    encode : {"ordinal", "onehot", "evidence", "mean", "median"}, default="ordinal"
        The index of the part (-1 for a category never seen in training); one 0/1 column per part; one column
        per class (or interval of a numeric target) with log P(part | class) - log P(part); or the mean or
        median of a numeric target in the part (of all rows for a category never seen).
    target : {"auto", "number", "classes"}, default="auto"
        What ``y`` is. ``"auto"`` takes fractional numbers for a number and anything else for classes; whole
        numbers of very many values are refused until this says what they are. A number is cut into intervals
        together with each column.
    group_classes : bool, default=False
        Group the classes together with the values, separately for each column. With many classes, this makes
        the estimates reliable. ``partitions_[name].class_groups`` holds the groups.
    search : {"auto", "greedy", "exact"}, default="auto"
        ``"auto"`` searches exactly where that is cheap. ``partitions_[name].optimal`` is True if the
        result is proven optimal. Not used where classes are grouped.
    short_bounds : bool, default=False
        Place bounds at the number of fewest digits between two neighbouring training values, rather than in
        the middle.
    feature_names : {"label", "plain"}, default="label"
        How ``get_feature_names_out`` names the columns: by the labels of the parts (``age=]30.5, +inf[``), or
        in letters, digits and ``_`` alone (``age_1``, ``sex_is_male``), as LightGBM and XGBoost ask for.
    sparse_output : bool, default=False
        Return one-hot columns as a sparse matrix.
    memory_limit : int or str, optional
        Where X is a source: bytes that the fit may take, or a size such as ``"8GB"``; 4 GB by default. A
        table of up to a quarter of it is read into memory and fitted there.
    max_values : int, default=1_000_000
        Where X is a source: how many values of a column the model lists, the most frequent ones. The others
        take part in the search, and score as unseen.
    n_jobs : int, optional
        Number of threads over the columns; -1 is one per core. The result does not depend on it.

    Attributes
    ----------
    partitions_ : dict of str to IntervalPartition or GroupPartition
        The partitions, by feature name.
    summary_ : frame
        One row per column: name, type, parts, level, missing, distinct, optimal.
    levels_ : dict of str to float
        How much each column explains of the target, from 0 (nothing) to 1 (all).
    classes_ : array of shape (n_classes,)
        Classes of the target; a numeric target has none.
    model_ : damier.models.Encoding
        The model that ``transform`` applies, and that ``damier.deploy.save`` writes.
    source_ : damier.fit.sources.SourceUse or None
        Where X was a source: engine, rows, scans, seconds, values left out.
    search_ended_ : {"complete"}
        How the search ended; Ctrl-C raises KeyboardInterrupt, as without all partitions there is no model.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Numbers, dates, times and durations are numeric; booleans, text, categoricals and mixtures
    are categorical.

    Examples
    --------
    >>> X = {"size": list(range(40)), "colour": ["red", "green"] * 20}
    >>> y = ["small"] * 20 + ["large"] * 20
    >>> encoder = MODLEncoder(encode="evidence").fit(X, y)
    >>> encoder.get_feature_names_out().tolist()
    ['size:large', 'size:small', 'colour:large', 'colour:small']
    >>> encoder.transform({"size": [3], "colour": ["red"]}).round(2).tolist()
    [[-5.99, 0.69, 0.0, 0.0]]

    Against a number, each part has the mean and the median of the target:

    >>> encoder = MODLEncoder(encode="median").fit(X, [0.5 * size for size in range(40)])
    >>> encoder.partitions_["size"].target_bounds
    (6.25, 12.75)
    >>> encoder.transform({"size": [3], "colour": ["red"]}).tolist()
    [[3.0, 9.75]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MODLDiscretizer._parameter_constraints,
        "group_classes": ["boolean"],
        "max_values": [Interval(Integral, 1, None, closed="left")],
    }

    partitions_: dict[str, AnyPartition]

    def __init__(
        self,
        *,
        semi_supervised: SemiSupervised = None,
        encode: Encode = "ordinal",
        target: TargetType = "auto",
        group_classes: bool = False,
        search: Search = "auto",
        short_bounds: bool = False,
        feature_names: FeatureNames = "label",
        sparse_output: bool = False,
        memory_limit: int | str | None = None,
        max_values: int = MAX_VALUES,
        n_jobs: int | None = None,
    ) -> None:
        self.semi_supervised = semi_supervised
        self.encode = encode
        self.target = target
        self.group_classes = group_classes
        self.search = search
        self.short_bounds = short_bounds
        self.feature_names = feature_names
        self.sparse_output = sparse_output
        self.memory_limit = memory_limit
        self.max_values = max_values
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
