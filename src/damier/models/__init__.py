"""What was found: frozen partitions, grids, coclusterings, covers and ball groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from damier.lazy import lazy_names

HOME_OF = {
    "read_columns": "damier.intake",
    "BallGroup": "damier.models.balls",
    "BallPartition": "damier.models.balls",
    "BoundPosterior": "damier.models.bound_posterior",
    "CoclusterAxis": "damier.models.coclustering",
    "CoclusteringModel": "damier.models.coclustering",
    "LabeledCoclustering": "damier.models.coclustering",
    "Merges": "damier.models.coclustering",
    "ClassifierModel": "damier.models.codec",
    "Model": "damier.models.codec",
    "Encoding": "damier.models.encoding",
    "DataGrid": "damier.models.grid",
    "GridCells": "damier.models.grid",
    "GridEnsemble": "damier.models.grid",
    "Cover": "damier.models.linf",
    "DecisionPath": "damier.models.linf",
    "LinfModel": "damier.models.linf",
    "Adjustment": "damier.models.naive_bayes",
    "AveragedEvidence": "damier.models.naive_bayes",
    "NaiveBayes": "damier.models.naive_bayes",
    "VariableEvidence": "damier.models.naive_bayes",
    "Explanation": "damier.models.naive_bayes_regression",
    "NaiveBayesRegression": "damier.models.naive_bayes_regression",
    "TargetEvidence": "damier.models.naive_bayes_regression",
    "PairEvidence": "damier.models.pair_evidence",
    "GroupPartition": "damier.models.partition",
    "IntervalPartition": "damier.models.partition",
    "Partition": "damier.models.partition",
    "Distribution": "damier.models.regressor",
    "RegressionGrid": "damier.models.regression_grid",
    "RegressorModel": "damier.models.regressor",
    "TargetIntervals": "damier.models.target_intervals",
    "UnsupervisedGrid": "damier.models.unsupervised_grid",
}

__all__ = [
    "Adjustment",
    "AveragedEvidence",
    "BallGroup",
    "BallPartition",
    "BoundPosterior",
    "ClassifierModel",
    "CoclusterAxis",
    "CoclusteringModel",
    "Cover",
    "DataGrid",
    "DecisionPath",
    "Distribution",
    "Encoding",
    "Explanation",
    "GridCells",
    "GridEnsemble",
    "GroupPartition",
    "IntervalPartition",
    "LabeledCoclustering",
    "LinfModel",
    "Merges",
    "Model",
    "NaiveBayes",
    "NaiveBayesRegression",
    "PairEvidence",
    "Partition",
    "RegressionGrid",
    "RegressorModel",
    "TargetEvidence",
    "TargetIntervals",
    "UnsupervisedGrid",
    "VariableEvidence",
    "read_columns",
]

if TYPE_CHECKING:
    from damier.intake import read_columns
    from damier.models.balls import BallGroup, BallPartition
    from damier.models.bound_posterior import BoundPosterior
    from damier.models.coclustering import CoclusterAxis, CoclusteringModel, LabeledCoclustering, Merges
    from damier.models.codec import ClassifierModel, Model
    from damier.models.encoding import Encoding
    from damier.models.grid import DataGrid, GridCells, GridEnsemble
    from damier.models.linf import Cover, DecisionPath, LinfModel
    from damier.models.naive_bayes import Adjustment, AveragedEvidence, NaiveBayes, VariableEvidence
    from damier.models.naive_bayes_regression import Explanation, NaiveBayesRegression, TargetEvidence
    from damier.models.pair_evidence import PairEvidence
    from damier.models.partition import GroupPartition, IntervalPartition, Partition
    from damier.models.regression_grid import RegressionGrid
    from damier.models.regressor import Distribution, RegressorModel
    from damier.models.target_intervals import TargetIntervals
    from damier.models.unsupervised_grid import UnsupervisedGrid

__getattr__, __dir__ = lazy_names(__name__, HOME_OF)
