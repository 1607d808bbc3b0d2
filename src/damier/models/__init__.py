"""What was found: frozen partitions, grids, coclusterings, covers and ball groups."""

from damier.intake import read_columns
from damier.models.balls import BallGroup, BallPartition
from damier.models.bound_posterior import BoundPosterior
from damier.models.coclustering import CoclusterAxis, CoclusteringModel, LabeledCoclustering, Merges
from damier.models.codec import ClassifierModel, Model
from damier.models.encoding import Encoding
from damier.models.grid import DataGrid, GridCells, GridEnsemble
from damier.models.linf import Cover, DecisionPath, LinfModel
from damier.models.naive_bayes import NaiveBayes, VariableEvidence
from damier.models.partition import GroupPartition, IntervalPartition, Partition
from damier.models.unsupervised_grid import UnsupervisedGrid

__all__ = [
    "BallGroup",
    "BallPartition",
    "BoundPosterior",
    "ClassifierModel",
    "CoclusterAxis",
    "CoclusteringModel",
    "Cover",
    "DataGrid",
    "DecisionPath",
    "Encoding",
    "GridCells",
    "GridEnsemble",
    "GroupPartition",
    "IntervalPartition",
    "LabeledCoclustering",
    "LinfModel",
    "Merges",
    "Model",
    "NaiveBayes",
    "Partition",
    "UnsupervisedGrid",
    "VariableEvidence",
    "read_columns",
]
