"""Naive Bayes on optimal partitions, with classes grouped and variables weighted when asked."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableEstimator, Training, require_two_classes
from damier.estimators._sklearn import Interval, StrOptions, fit_context
from damier.fit.class_groups import joint_partitions, refuse_grouped_semi_supervision
from damier.fit.partitions import SemiSupervised, labeled_rows, partition_column
from damier.intake import Column
from damier.intake.table import FloatArray
from damier.models import NaiveBayes, Partition, VariableEvidence
from damier.search.run import map_in_threads


class NaiveBayesClassifier(ClassifierMixin, TableEstimator):
    """Naive Bayes on variables partitioned by MODL, sound with two classes or hundreds.

    Every column is cut into intervals or groups that minimise one criterion; P(part | class) is read off the
    partition with an m-estimate, and the variables' evidence is added in logarithms. A column that tells
    nothing of the target has one part and no say. Missing values are part of the partition, a category never
    seen in training is neutral.

    Parameters
    ----------
    group_classes : bool, default=False
        Partition each column and group the classes at the same time, each column in its own way. With many
        classes and few rows for each, this is what keeps the estimates reliable.
    averaging : {"compression"}, optional
        ``"compression"`` gives every variable a weight between 0 and 1: redundant variables stop being
        counted twice: probabilities become honest and accuracy usually rises. None weighs all alike.
    semi_supervised : {"criterion", "bounds"}, optional
        Let the rows without a label (-1 for integers, else a missing value) take part in cutting numbers, as
        in :class:`MODLDiscretizer`; all else is estimated on the labeled rows.
    average_starts : bool, default=True
        With ``group_classes``, average the evidence of the distinct optima that the random starts reach for a
        variable, as far as their level is at least nine tenths of the best; False keeps the best alone.
    search : {"auto", "greedy", "exact"}, default="auto"
        As in :class:`MODLEncoder`; unused where classes are grouped.
    n_starts : int, default=10
        With ``group_classes``, random starts of each variable.
    n_jobs : int, optional
        Threads over the columns; -1 for one a core. The result does not depend on it.

    Attributes
    ----------
    classes_ : array
        Classes of the target.
    partitions_ : dict of str to Partition
        The best partition of each column.
    levels_ : dict of str to float
        How much each column tells of the target by itself: 0 nothing, 1 everything.
    weights_ : dict of str to float
        Weight of each column's evidence.
    feature_importances_ : array of shape (n_features,)
        Weight times level, scaled to sum to one (all zero when no column tells anything).
    model_ : damier.models.NaiveBayes
        What predicts, and what ``damier.deploy.save`` writes.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    M. Boullé, Simultaneous partitioning of input and class variables for supervised classification problems
    with many classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> classifier = NaiveBayesClassifier(averaging="compression").fit(X, y)
    >>> classifier.predict(X[:3])
    array([0, 0, 0])
    >>> classifier.weights_["total_phenols"] < 0.5 < classifier.weights_["flavanoids"]
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "group_classes": ["boolean"],
        "averaging": [StrOptions({"compression"}), None],
        "semi_supervised": [StrOptions({"criterion", "bounds"}), None],
        "average_starts": ["boolean"],
        "search": [StrOptions({"auto", "greedy", "exact"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        group_classes: bool = False,
        averaging: Literal["compression"] | None = None,
        *,
        semi_supervised: SemiSupervised = None,
        average_starts: bool = True,
        search: Literal["auto", "greedy", "exact"] = "auto",
        n_starts: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.group_classes = group_classes
        self.averaging = averaging
        self.semi_supervised = semi_supervised
        self.average_starts = average_starts
        self.search = search
        self.n_starts = n_starts
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Partition every column, and weigh them when averaging was asked for.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            pandas, polars, pyarrow, NumPy. Missing values and infinities are welcome.
        y : array-like of shape (n_samples,)
            Classes: integers, booleans or text. With ``semi_supervised``, -1 (integers) or a missing value
            (anything else) is a row without a label.
        sample_weight : array-like of shape (n_samples,), optional
            Frequencies: whole numbers. A row of weight 3 counts as three rows, one of weight 0 not at all.

        Returns
        -------
        self
        """
        refuse_grouped_semi_supervision(self)
        training = self._read_training(X, y, sample_weight, allow_unlabeled=self.semi_supervised is not None)
        if training.target.n_classes == 0:
            raise ValueError(
                "every row of y is without a label (-1 or missing): a classifier learns from the rows that "
                "have one. Label some, or use Coclustering, which needs no target."
            )
        require_two_classes(training.target)
        found = map_in_threads(partial(self._partition, training), training.table.columns, self.n_jobs)
        variables = tuple(VariableEvidence(partitions) for partitions in found)
        known, target, weights = labeled_rows(training.target, training.weights)
        if self.averaging is not None:
            table = training.table if known.size == training.table.n_rows else training.table.take(known)
            variables = _weighed(variables, Training(table, target, weights))
        counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes)
        self.classes_ = target.classes
        self.model_ = NaiveBayes(tuple(target.classes.tolist()), counts.astype(np.int64), variables)
        self.partitions_ = {v.name: v.partition for v in variables}
        self.levels_ = {v.name: v.partition.level for v in variables}
        self.weights_ = {v.name: v.weight for v in variables}
        return self

    def _partition(self, training: Training, column: Column) -> tuple[Partition, ...]:
        if not self.group_classes:
            return (
                partition_column(
                    column,
                    training.target,
                    training.weights,
                    search=self.search,
                    semi_supervised=self.semi_supervised,
                ),
            )
        found = joint_partitions(column, training.target, training.weights, n_starts=self.n_starts)
        if not self.average_starts:
            return found[:1]
        # An optimum far from the best knows less of the classes, and would only blur what the best knows.
        return tuple(partition for partition in found if partition.level >= 0.9 * found[0].level)

    @property
    def feature_importances_(self) -> FloatArray:
        """Weight times level of each column, scaled to sum to one."""
        check_is_fitted(self)
        told = np.array([v.weight * v.partition.level for v in self.model_.variables])
        return told / told.sum() if told.sum() > 0 else told

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most probable class of each row.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.classes_
        return classes[self.model_.best_class(self._read_scored(X))]

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of the classes, columns in the order of ``classes_``.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.model_.log_proba(self._read_scored(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, columns in the order of ``classes_``; each row sums to one.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.model_.predict_proba(self._read_scored(X))

    def explain(self, X: Any) -> FloatArray:
        """Evidence that each variable brings to each class, row by row, in nats.

        Positive evidence speaks for the class, negative against it; zero is neutral. Added to the
        log-frequencies of the classes, the evidence of all variables gives ``predict_log_proba`` up to one
        constant a row.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        array of shape (n_samples, n_features, n_classes)
        """
        check_is_fitted(self)
        return self.model_.explain(self._read_scored(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _weighed(variables: tuple[VariableEvidence, ...], training: Training) -> tuple[VariableEvidence, ...]:
    """Give each variable its weight; one that tells nothing keeps the weight zero."""
    from damier.search.weights import compression_weights

    told = [k for k, variable in enumerate(variables) if variable.table.shape[0] > 2]
    weights = np.zeros(len(variables))
    if told:
        target = training.target
        counts = np.bincount(target.codes, weights=training.weights, minlength=target.n_classes)
        columns = training.table.columns
        weights[told] = compression_weights(
            [variables[k].apply(columns[k]).astype(np.int32) for k in told],
            [variables[k].table for k in told],
            [variables[k].table_without_the_row for k in told],
            target.codes,
            np.log(counts / counts.sum()),
            training.weights,
        )
    return tuple(VariableEvidence(v.partitions, float(w)) for v, w in zip(variables, weights, strict=True))
