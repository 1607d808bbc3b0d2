"""What every estimator does first: read X, y and the weights, and keep the names of the columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from damier.estimators._sklearn import UNUSED
from damier.fit.sources import ColumnFacts, SourceUse
from damier.fit.training import AnyTarget, Opened, Training, open_training, rows_that_count
from damier.intake import (
    NumericTarget,
    Table,
    Target,
    TargetType,
    read_any_target,
    read_table,
    read_target,
    refuse_many_classes,
)
from damier.intake.frames import as_columns, as_frame, make_frame
from damier.intake.table import Column, FloatArray, NumericColumn
from damier.models.partition import AnyPartition, Partition
from damier.search.run import ProgressCallback, Run, count_threads


class TableEstimator(BaseEstimator):
    """Estimator that reads tables of numbers and categories, missing values included."""

    # A callback for whoever calls fit, not metadata for scikit-learn to route.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"progress": UNUSED}

    # Whether columns are used one by one, so that few of them need be dense at a time.
    _accepts_sparse: ClassVar[bool] = False

    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    source_: SourceUse | None
    _names: tuple[str, ...]

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any = None, *, allow_unlabeled: bool = False
    ) -> Training[Target]:
        """Read what ``fit`` was given; rows of weight zero are left out as if never there."""

        def read(y: Any) -> Target:
            target = read_target(y, allow_unlabeled=allow_unlabeled)
            refuse_many_classes(target)
            return target

        return self._read_rows(X, y, sample_weight, read)

    def _read_any_training(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        kind: TargetType,
        *,
        allow_unlabeled: bool = False,
        ask: bool = True,
    ) -> Training[Target | NumericTarget]:
        """Read what ``fit`` was given, where the target may be a number."""

        def read(y: Any) -> Target | NumericTarget:
            target = read_any_target(y, kind, allow_unlabeled=allow_unlabeled, ask=ask)
            if isinstance(target, Target):
                refuse_many_classes(target)
            return target

        return self._read_rows(X, y, sample_weight, read)

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any, read: Callable[[Any], AnyTarget]
    ) -> Training[AnyTarget]:
        self.source_ = None
        opened = self._open_source(X, y, sample_weight)
        if opened is not None:
            X, y, sample_weight = opened.rows(type(self).__name__)
            self.source_ = opened.use(collected=True)
        table = self._read_table(X, reset=True)
        warn_of_column_vector(y)
        target = read(y)
        check_consistent_length(range(table.n_rows), target.codes)
        return rows_that_count(table, target, sample_weight)

    def _open_source(self, X: Any, y: Any, sample_weight: Any = None) -> Opened | None:
        """Open X if an engine holds it."""
        memory_limit = getattr(self, "memory_limit", None)
        return open_training(
            X, y, sample_weight, memory_limit=memory_limit, threads=count_threads(self.n_jobs)
        )

    def _keep_names(self, names: Sequence[str]) -> None:
        """Set what scikit-learn keeps of the columns, where there is no table to read it from."""
        self._names = tuple(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _read_table(self, X: Any, *, reset: bool) -> Table:
        """Read X, and set (in ``fit``) or check (after) the names and number of its columns."""
        if hasattr(X, "toarray") and not self._accepts_sparse:
            raise TypeError("Sparse data was passed for X, but dense data is required: use X.toarray()")
        X = as_columns(X)
        frame = as_frame(X)
        if frame is not None:
            X = frame.to_native()  # collected, if it was lazy
        table = read_table(X)
        if isinstance(X, (Mapping, Table)) and not hasattr(X, "toarray"):  # some sparse matrices are dicts
            _check_names(self, table, reset)
        else:
            validate_data(self, X, skip_check_array=True, reset=reset)
        if reset:
            # The model's names: for a frame that scikit-learn takes for nameless (numbers as names) too.
            self._names = table.names
        if table.n_columns == 0:
            raise ValueError(f"0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required.")
        if reset and table.n_rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {table.n_columns})) while a minimum of 1 is "
                "required: X has no rows."
            )
        return table

    def _read_scored(self, X: Any) -> Table:
        """Read a table to be scored, and give its columns the names that the model knows them by.

        Names are checked by scikit-learn's rules: a frame must have those of ``fit``, in order; where either
        side has none, columns are matched by position.
        """
        check_is_fitted(self)
        return self._read_table(X, reset=False).renamed(self._names)

    def _new_run(self, progress: ProgressCallback | None = None) -> Run:
        """Make the run of a search, as the parameters ask."""
        return Run(count_threads(self.n_jobs), getattr(self, "time_limit", None), progress)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._accepts_sparse
        tags.target_tags.required = True
        return tags


class WithSummary:
    """Estimator with one row to say about each column."""

    _facts: dict[str, list[Any]]
    _library: str | None

    def _keep_facts(self, table: Table) -> None:
        """Keep what a summary says of the training table."""
        self._library = table.library
        self._facts = {
            "name": list(table.names),
            "type": [column_type(column) for column in table],
            "missing": [column.n_missing for column in table],
            "distinct": [column.n_distinct for column in table],
        }

    def _keep_source_facts(self, names: Sequence[str], facts: Sequence[ColumnFacts]) -> None:
        """Keep what a summary says of the columns of a source."""
        self._library = None
        self._facts = {
            "name": list(names),
            "type": [fact.type for fact in facts],
            "missing": [fact.missing for fact in facts],
            "distinct": [fact.distinct for fact in facts],
        }

    def _summary(self) -> dict[str, list[Any]]:
        raise NotImplementedError

    @property
    def summary_(self) -> Any:
        """One row per column, as a frame of the library that was passed in."""
        check_is_fitted(self)
        return make_frame(self._summary(), self._library)


def summary_of(partitions: Mapping[str, Partition], facts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Put together what is known of the columns and of their partitions."""
    held = [partitions[name] for name in facts["name"]]
    return {
        "name": facts["name"],
        "type": facts["type"],
        "parts": [partition.n_parts for partition in held],
        "level": [partition.level for partition in held],
        "missing": facts["missing"],
        "distinct": facts["distinct"],
        "optimal": [partition.optimal for partition in held],
    }


def column_type(column: Column) -> str:
    """Name the type of a column: categorical, numeric, or what its numbers stand for."""
    if not isinstance(column, NumericColumn):
        return "categorical"
    return "numeric" if column.kind == "number" else column.kind


def by_name(partitions: Iterable[Partition]) -> dict[str, AnyPartition]:
    """Return partitions by the names of their variables."""
    return {partition.name: cast(AnyPartition, partition) for partition in partitions}


class TableClassifier(ClassifierMixin, TableEstimator):
    """Classifier that predicts by its ``model_``."""

    classes_: npt.NDArray[Any]
    model_: Any

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        table = self._read_scored(X)
        proba: FloatArray = self.model_.predict_proba(table)
        return proba

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row, the first one on a tie.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        classes: npt.NDArray[Any] = self.classes_[best]
        return classes


def warn_of_column_vector(y: Any) -> None:
    """Warn of a target given as one column, as scikit-learn does."""
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=5,
        )


def _check_names(estimator: Any, table: Table, reset: bool) -> None:
    """Keep and check the names for dicts of columns, which scikit-learn does not know."""
    if reset:
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
        estimator.n_features_in_ = table.n_columns
        return
    fitted = tuple(getattr(estimator, "feature_names_in_", table.names))
    if fitted != table.names:
        raise ValueError(
            "The feature names should match those that were passed during fit.\n"
            f"fitted: {list(fitted)}\npassed: {list(table.names)}"
        )
    if table.n_columns != estimator.n_features_in_:
        raise ValueError(
            f"X has {table.n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def seed_of(random_state: Any) -> int:
    """Return a seed for the kernels; none given means always the same."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))
