"""The semi-supervised classifier built on coclusterings."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from damier.estimators._base import warn_of_column_vector
from damier.estimators._sklearn import UNUSED, StrOptions, fit_context
from damier.estimators.coclustering import Coclustering
from damier.fit.coclusters import label_clusters
from damier.intake import read_target
from damier.intake.counts import check_matrix, read_counts
from damier.intake.engines.source import is_source
from damier.intake.table import FloatArray
from damier.search.run import ProgressCallback


class CoclusteringClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier: cluster all rows with their columns, then label the clusters.

    Rows without a label (-1 for integers, None or NaN for anything else) help to find the clusters. A cluster
    without a labeled row is merged with the one that costs least, until one with a label is met.

    Parameters
    ----------
    prior : {"balanced", "data"}, default="balanced"
        ``"balanced"`` takes all classes for equally probable a priori, which minimises the balanced error;
        ``"data"`` takes their shares of the labeled rows.
    coclustering : Coclustering or FrozenEstimator, default=None
        How to cluster. A `Coclustering` is cloned and fitted. One that is fitted already to the same rows is
        used as it is when wrapped in :class:`sklearn.frozen.FrozenEstimator`.
    random_state, n_jobs : as in `Coclustering`
        Used when ``coclustering`` is None.

    Attributes
    ----------
    classes_ : array
    coclustering_ : Coclustering
        The fitted coclustering.
    model_ : LabeledCoclustering
        The coclustering and the class probabilities of its clusters.
    transduction_ : array of shape (n_rows,)
        Class of each training row, by its cluster.
    cluster_probabilities_ : array of shape (n_row_clusters, n_classes)
    n_unlabeled_clusters_ : int
        Clusters in which no row has a label.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search for the coclustering ended.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from damier import CoclusteringClassifier
    >>> table = np.kron([[4, 0], [0, 5]], np.ones((6, 4), dtype=int))
    >>> y = np.full(12, -1)
    >>> y[[0, 11]] = 0, 1
    >>> CoclusteringClassifier().fit(table, y).transduction_
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """

    # A callback for whoever calls fit, not metadata for scikit-learn to route.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"progress": UNUSED}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "prior": [StrOptions({"balanced", "data"})],
        "coclustering": [Coclustering, FrozenEstimator, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        prior: str = "balanced",
        coclustering: Coclustering | FrozenEstimator | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.coclustering = coclustering
        self.random_state = random_state
        self.n_jobs = n_jobs

    # A Coclustering given by the caller validates its own parameters.
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, progress: ProgressCallback | None = None) -> Self:
        """Cluster all rows, then label the clusters.

        Parameters
        ----------
        X : sparse matrix or array of whole counts, of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Classes; -1 (integers) or None/NaN for rows without a label.
        progress : callable, optional
            As in `Coclustering.fit`.

        Returns
        -------
        self
        """
        if is_source(X):
            raise ValueError(
                "CoclusteringClassifier takes a matrix of counts and one label per row of it, not a table "
                "that an engine holds: have the engine count its pairs, and make a sparse matrix of them."
            )
        counts = self._read(X, reset=True)
        warn_of_column_vector(y)
        target = read_target(y, allow_unlabeled=True)
        check_consistent_length(range(counts.shape[0]), target.codes)
        if target.n_classes < 1:
            raise ValueError("y has no labeled row: mark only some rows with -1, None or NaN.")
        clustering = self._cluster(counts, progress)
        self.coclustering_ = clustering
        self.search_ended_ = clustering.search_ended_
        self.classes_ = target.classes
        self.model_ = label_clusters(clustering.model_, target, balanced=self.prior == "balanced")
        self.cluster_probabilities_ = self.model_.probabilities
        self.n_unlabeled_clusters_ = int((self.model_.label_counts.sum(axis=1) == 0).sum())
        of_rows = self.model_.of_clusters(clustering.row_labels_)
        self.transduction_ = self.classes_[of_rows.argmax(axis=1)]
        return self

    def _cluster(self, counts: Any, progress: ProgressCallback | None) -> Coclustering:
        """Fit the coclustering, or take the frozen one."""
        if isinstance(self.coclustering, FrozenEstimator):
            fitted = self.coclustering.estimator
            if not isinstance(fitted, Coclustering):
                raise ValueError(
                    f"coclustering must be a Coclustering, got a frozen {type(fitted).__name__}."
                )
            check_is_fitted(fitted)
            shape = (len(fitted.row_labels_), len(fitted.column_labels_))
            if shape != counts.shape:
                raise ValueError(
                    f"The frozen coclustering was fitted to a table of {shape[0]} x {shape[1]}, X is "
                    f"{counts.shape[0]} x {counts.shape[1]}: fit it to the same rows and columns, or leave "
                    "it unfitted."
                )
            return fitted
        if self.coclustering is None:
            template = Coclustering(random_state=self.random_state, n_jobs=self.n_jobs)
        else:
            template = clone(self.coclustering)
            template._validate_params()
        template.n_features_in_ = counts.shape[1]
        return template._fit_counts(counts, progress=progress)

    def _read(self, X: Any, *, reset: bool) -> Any:
        check_matrix(X)
        with np.errstate(all="ignore"):  # infinities are refused in words
            held = validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset, ensure_min_samples=int(reset)
            )
        return read_counts(held)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of the cluster that takes each row at least cost.

        Parameters
        ----------
        X : sparse matrix or array of whole counts, of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        return self.model_.predict_proba(self._read(X, reset=False))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row; for the rows of the training table see ``transduction_``.

        Parameters
        ----------
        X : sparse matrix or array of whole counts, of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        classes: npt.NDArray[Any] = self.classes_[best]
        return classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A table of counts is not a cloud of points: scikit-learn's blobs are no fair test of accuracy.
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        return tags
