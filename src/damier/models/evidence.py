"""What one variable says about a target, of classes or a number: its partitions, and what they refine to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from damier.intake.table import Column, IntArray, NumericColumn
from damier.models.codec import FieldError, Model
from damier.models.partition import GroupPartition, IntervalPartition, Partition


@dataclass(frozen=True, eq=False, repr=False)
class PartitionEvidence(Model):
    """Base of what one variable says: its best partition, and other optima that are averaged with it.

    Parameters
    ----------
    partitions : tuple of Partition
        The best partition first.
    """

    partitions: tuple[Partition, ...]

    weight: float

    def _check(self) -> None:
        if not self.partitions:
            raise FieldError("partitions", "a variable needs at least one partition")
        first = self.partitions[0]
        for i, other in enumerate(self.partitions[1:], 1):
            if (other.name, type(other)) != (first.name, type(first)) or values_of(other) != values_of(first):
                raise FieldError(f"partitions[{i}]", "the partitions averaged must be of one variable")

    def _described(self) -> str:
        return f"{self.partition._described()}, weight {self.weight:.2f}"

    @property
    def name(self) -> str:
        """Name of the variable."""
        return self.partitions[0].name

    @property
    def partition(self) -> Partition:
        """The best partition: the one to show."""
        return self.partitions[0]

    @property
    def parts(self) -> Partition:
        """What ``apply`` sorts values into: the common refinement of the partitions."""
        return self._refinement[0]

    @property
    def _refined(self) -> tuple[Partition, ...]:
        """What has evidence: the partitions."""
        return self.partitions

    @cached_property
    def _refinement(self) -> tuple[Partition, list[IntArray]]:
        """The common refinement of the partitions, and the part of each of its parts in each of them."""
        held = self._refined
        if len(held) == 1:
            return held[0], [np.arange(held[0].n_parts)]
        refine = _refine_intervals if isinstance(held[0], IntervalPartition) else _refine_groups
        return refine(held)

    def apply(self, column: Column) -> IntArray:
        """Row of ``table`` of each value; -1 for a category never seen."""
        return self.parts.apply(column)

    def part_of(self, value: Any) -> int:
        """Row of ``table`` of one value."""
        return self.parts.part_of(value)


def values_of(partition: Partition) -> Any:
    """Return what partitions of one variable have in common: the values, or what the numbers are."""
    if isinstance(partition, GroupPartition):
        return {value for group in partition.groups for value in group}
    return (partition.kind, partition.legend) if isinstance(partition, IntervalPartition) else None


def _refine_intervals(partitions: tuple[Any, ...]) -> tuple[Partition, list[IntArray]]:
    """Cut wherever one of the partitions cuts; also return the part of each new interval in each."""
    bounds = sorted({bound for p in partitions for bound in p.bounds})
    alone = any(p.missing_alone for p in partitions)
    refined = _bare(partitions[0], len(bounds) + 1 + alone, bounds=tuple(bounds), missing_alone=alone)
    # Every value of an interval stands on the same side of every bound as its right end.
    inside = np.array([np.nan] * alone + bounds + [np.inf])
    representatives = NumericColumn(refined.name, inside, partitions[0].kind, legend=partitions[0].legend)
    return refined, [p.apply(representatives) for p in partitions]


def _refine_groups(partitions: tuple[Any, ...]) -> tuple[Partition, list[IntArray]]:
    """Keep together what all partitions keep together; also return the part of each new group in each."""
    values = [value for group in partitions[0].groups for value in group]
    group_of = [{value: i for i, group in enumerate(p.groups) for value in group} for p in partitions]
    rows = np.array([[known[value] for known in group_of] for value in values])
    atoms, atom_of = np.unique(rows, axis=0, return_inverse=True)
    members: list[list[Any]] = [[] for _ in atoms]
    for value, atom in zip(values, atom_of.ravel().tolist(), strict=True):
        members[atom].append(value)
    refined = _bare(partitions[0], len(atoms), groups=tuple(map(tuple, members)))
    return refined, list(atoms.T)


def _bare(partition: Partition, n_parts: int, **fields: Any) -> Partition:
    """Return a partition that only sorts values into parts: it has no counts and no cost of its own."""
    shared: dict[str, Any] = {
        "name": partition.name,
        "classes": partition.classes,
        "counts": np.zeros((n_parts, len(partition.classes)), np.int64),
        "cost": 0.0,
        "null_cost": 0.0,
        "optimal": False,
    }
    if isinstance(partition, IntervalPartition):
        return IntervalPartition(
            **shared,
            **fields,
            kind=partition.kind,
            legend=partition.legend,
            has_missing=partition.has_missing,
        )
    return GroupPartition(**shared, **fields)
