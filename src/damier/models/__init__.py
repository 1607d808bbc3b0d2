"""What was found: frozen partitions, grids, coclusterings, covers and ball groups."""

from damier.models.balls import BallGroup, BallPartition
from damier.models.encoding import Encoding, partition_from_dict
from damier.models.grid import DataGrid, GridCells, GridEnsemble
from damier.models.linf import Cover, DecisionPath, LinfModel
from damier.models.naive_bayes import NaiveBayes, VariableEvidence
from damier.models.partition import GroupPartition, IntervalPartition, Partition

__all__ = [
    "BallGroup",
    "BallPartition",
    "Cover",
    "DataGrid",
    "DecisionPath",
    "Encoding",
    "GridCells",
    "GridEnsemble",
    "GroupPartition",
    "IntervalPartition",
    "LinfModel",
    "NaiveBayes",
    "Partition",
    "VariableEvidence",
    "partition_from_dict",
]
