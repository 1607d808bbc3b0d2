"""What was found: frozen partitions, grids, coclusterings, covers and ball groups."""

from damier.models.balls import BallGroup, BallPartition
from damier.models.encoding import Encoding, partition_from_dict
from damier.models.partition import GroupPartition, IntervalPartition, Partition

__all__ = [
    "BallGroup",
    "BallPartition",
    "Encoding",
    "GroupPartition",
    "IntervalPartition",
    "Partition",
    "partition_from_dict",
]
