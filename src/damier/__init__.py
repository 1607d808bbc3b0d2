"""Partitions chosen by a criterion, not by tuning.

Every public name is loaded on first use, so that ``import damier`` stays light: scikit-learn comes in with
the first estimator, Numba with the first fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from damier.lazy import lazy_names
from damier.version import __version__

_HOME_OF = {
    "BallPartitionClassifier": "damier.estimators.balls",
    "Coclustering": "damier.estimators.coclustering",
    "CoclusteringClassifier": "damier.estimators.coclustering_classifier",
    "DataGridClassifier": "damier.estimators.grids",
    "DataGridClustering": "damier.estimators.grid_clustering",
    "DataGridEnsembleClassifier": "damier.estimators.grids",
    "DataGridRegressor": "damier.estimators.grids",
    "MODLDiscretizer": "damier.estimators.transformers",
    "MODLGrouper": "damier.estimators.transformers",
    "MODLEncoder": "damier.estimators.transformers",
    "LinfClassifier": "damier.estimators.linf",
    "bound_posterior": "damier.estimators.bounds",
    "explore": "damier.report.explore",
    "gabriel_graph": "damier.fit.balls",
    "NaiveBayesClassifier": "damier.estimators.naive_bayes",
    "NaiveBayesRegressor": "damier.estimators.naive_bayes_regressor",
    "rank_pairs": "damier.estimators.grids",
}

# Written out: type checkers read it. A test compares it with the names above.
__all__ = [
    "BallPartitionClassifier",
    "Coclustering",
    "CoclusteringClassifier",
    "DataGridClassifier",
    "DataGridClustering",
    "DataGridEnsembleClassifier",
    "DataGridRegressor",
    "LinfClassifier",
    "MODLDiscretizer",
    "MODLEncoder",
    "MODLGrouper",
    "NaiveBayesClassifier",
    "NaiveBayesRegressor",
    "__version__",
    "bound_posterior",
    "explore",
    "gabriel_graph",
    "rank_pairs",
]

if TYPE_CHECKING:
    from damier.estimators.balls import BallPartitionClassifier
    from damier.estimators.bounds import bound_posterior
    from damier.estimators.coclustering import Coclustering
    from damier.estimators.coclustering_classifier import CoclusteringClassifier
    from damier.estimators.grid_clustering import DataGridClustering
    from damier.estimators.grids import (
        DataGridClassifier,
        DataGridEnsembleClassifier,
        DataGridRegressor,
        rank_pairs,
    )
    from damier.estimators.linf import LinfClassifier
    from damier.estimators.naive_bayes import NaiveBayesClassifier
    from damier.estimators.naive_bayes_regressor import NaiveBayesRegressor
    from damier.estimators.transformers import MODLDiscretizer, MODLEncoder, MODLGrouper
    from damier.fit.balls import gabriel_graph
    from damier.report.explore import explore

_MODULES = {name: f"damier.{name}" for name in ("criteria", "datasets", "deploy", "report")}

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF | _MODULES)
