"""The semi-supervised classifier built on coclusterings."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from damier.estimators._base import warn_of_column_vector
from damier.estimators._sklearn import StrOptions
from damier.estimators.coclustering import Coclustering
from damier.fit.coclusters import whole_table
from damier.intake import read_target
from damier.intake.table import FloatArray, IntArray
from damier.models.coclustering import CoclusteringModel, row_merge_changes


class CoclusteringClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier: cluster all rows with their columns, then label the clusters.

    Rows without a label (-1 for integers, None or NaN for anything else) help to find the clusters. A cluster
    without a labeled row is merged with the one that costs least, until one is met.

    Parameters
    ----------
    prior : {"balanced", "data"}, default="balanced"
        ``"balanced"`` takes all classes for equally probable beforehand, which minimises the balanced error;
        ``"data"`` takes their shares of the labeled rows.
    coclustering : Coclustering, default=None
        How to cluster. One that is fitted already to the same rows is used as it is.
    random_state, n_jobs : as in `Coclustering`
        Used when ``coclustering`` is None.

    Attributes
    ----------
    classes_ : array
    coclustering_ : Coclustering
        The fitted coclustering.
    transduction_ : array of shape (n_rows,)
        Class of each training row, by its cluster.
    cluster_probabilities_ : array of shape (n_row_clusters, n_classes)
    n_unlabeled_clusters_ : int
        Clusters in which no row has a label.

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

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 -- scikit-learn's form
        "prior": [StrOptions({"balanced", "data"})],
        "coclustering": [Coclustering, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        prior: str = "balanced",
        coclustering: Coclustering | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.coclustering = coclustering
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Cluster all rows, then label the clusters.

        Parameters
        ----------
        X : sparse matrix or array of whole counts, of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Classes; -1 (integers) or None/NaN for rows without a label.
        """
        self._validate_params()
        counts = whole_table(validate_data(self, X, accept_sparse="csr", dtype="numeric"))
        warn_of_column_vector(y)
        target = read_target(y, allow_unlabeled=True)
        check_consistent_length(range(counts.shape[0]), target.codes)
        if target.n_classes < 1:
            raise ValueError("y has no labeled row: mark only some rows with -1, None or NaN")
        clustering = self.coclustering
        if clustering is None:
            clustering = Coclustering(random_state=self.random_state, n_jobs=self.n_jobs)
        if not hasattr(clustering, "coclustering_"):
            clustering = copy.copy(clustering).fit(counts)
        elif clustering.coclustering_.rows.labels.shape != (counts.shape[0],):
            raise ValueError(
                f"the coclustering was fitted to {len(clustering.row_labels_)} rows, X has "
                f"{counts.shape[0]}: fit it to the same rows or leave it unfitted"
            )
        self.coclustering_ = clustering
        self.classes_ = target.classes
        model = clustering.coclustering_
        labeled = (target.codes >= 0) & (model.rows.labels >= 0)
        per_cluster = np.zeros((model.n_row_clusters, target.n_classes))
        np.add.at(per_cluster, (model.rows.labels[labeled], target.codes[labeled]), 1)
        shares = np.bincount(target.codes[target.codes >= 0], minlength=target.n_classes)
        self._base = shares / shares.sum()
        self.n_unlabeled_clusters_ = int((per_cluster.sum(axis=1) == 0).sum())
        self.cluster_probabilities_ = self._probabilities(
            np.stack([_labels_met(model, per_cluster, j) for j in range(model.n_row_clusters)])
        )
        self.transduction_ = self.classes_[np.argmax(self._rows_probabilities(model.rows.labels), axis=1)]
        return self

    def _probabilities(self, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Class probabilities of label counts, one more label spread as the classes are."""
        shares = (counts + self._base) / (counts.sum(axis=1, keepdims=True) + 1.0)
        if self.prior == "balanced":
            shares = shares / self._base
            shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(shares)

    def _rows_probabilities(self, clusters: IntArray) -> npt.NDArray[np.float64]:
        nothing_known = self._probabilities(np.zeros((1, len(self.classes_))))
        return np.concatenate([self.cluster_probabilities_, nothing_known])[clusters]

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of the cluster that takes each row at least cost."""
        check_is_fitted(self, "cluster_probabilities_")
        counts = whole_table(validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False))
        return self._rows_probabilities(self.coclustering_.coclustering_.predict(counts))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row; for the rows of the training table see ``transduction_``."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(probabilities, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # a table of counts is not a cloud of points: scikit-learn's blobs are no fair test of accuracy
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        return tags


def _labels_met(model: CoclusteringModel, per_cluster: FloatArray, cluster: int) -> FloatArray:
    """Labels of a cluster, or of the first labeled one met when it is merged at least cost."""
    labels: FloatArray = per_cluster[cluster]
    if labels.sum() > 0:
        return labels
    cells, sizes = model.cells.copy(), model.rows.sizes()
    merged = np.zeros(len(sizes), dtype=bool)
    while labels.sum() == 0:
        changes = row_merge_changes(cells, sizes, cluster)
        changes[merged] = np.inf
        partner = int(np.argmin(changes))
        if not np.isfinite(changes[partner]):
            break
        cells[cluster] += cells[partner]
        sizes[cluster] += sizes[partner]
        merged[partner] = True
        labels = per_cluster[partner]
    return labels
