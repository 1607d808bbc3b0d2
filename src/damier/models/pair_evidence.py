"""What two variables say about the classes together, beyond what each says alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from damier.intake.table import FloatArray, IntArray, Table
from damier.models.codec import Counts, FieldError, Model, Weight, Weights, check_shape
from damier.models.partition import Partition


@dataclass(frozen=True, eq=False, repr=False)
class PairEvidence(Model):
    """Evidence of the cells of two partitioned variables, beyond that of their parts.

    From the parts of a cell alone, naive Bayes expects the class shares q. The evidence of a cell of n rows,
    n_j of them of class j, is ``log((n_j + J q_j) / ((n + J) q_j))`` with J classes: zero for a cell without
    rows, and near zero for one whose rows are as expected.

    Parameters
    ----------
    partitions : tuple of two Partition
        The parts of the two variables whose cross are the cells.
    counts : array of shape (n_cells, n_classes)
        Training rows of each cell, those of the first part of the first variable first.
    weight : float
        Zero or more; the evidence is multiplied by it.
    class_weights : array of shape (n_classes,), optional
        Weights of the evidence for each class; ``weight`` is then their mean.

    Examples
    --------
    Alone, neither variable informs.

    >>> from damier.models import IntervalPartition
    >>> x, y = (IntervalPartition(
    ...     name=name, classes=("no", "yes"), counts=[[10, 10], [10, 10]], cost=0.0, null_cost=0.0,
    ...     optimal=False, bounds=(0.5,)) for name in "xy")
    >>> pair = PairEvidence((x, y), [[9, 1], [1, 9], [1, 9], [9, 1]])
    >>> pair.names, np.exp(pair.table).round(2).tolist()[:2]
    (('x', 'y'), [[1.67, 0.33], [0.33, 1.67]])
    """

    partitions: tuple[Partition, ...]
    counts: Counts
    weight: Weight = 1.0
    class_weights: Weights | None = None

    def _check(self) -> None:
        if len(self.partitions) != 2:
            raise FieldError("partitions", f"a pair has two partitions, got {len(self.partitions)}")
        first, second = self.partitions
        if first.name == second.name or first.classes != second.classes:
            raise FieldError("partitions", "a pair is of two variables, over the same classes")
        check_shape(self, "counts", first.n_parts * second.n_parts, len(first.classes))
        if self.counts.sum(axis=0).min() < 1:
            raise FieldError("counts", "a class holds rows")
        if not 0.0 <= self.weight < math.inf:
            raise FieldError("weight", f"must be a number that is not negative, got {self.weight}")
        if self.class_weights is not None:
            check_shape(self, "class_weights", len(first.classes))

    def _described(self) -> str:
        return f"{self.name}: {len(self.counts)} cells, weight {self.weight:.2f}"

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two variables."""
        return self.partitions[0].name, self.partitions[1].name

    @property
    def name(self) -> str:
        """Both names, as they are shown."""
        return " x ".join(self.names)

    @property
    def informs(self) -> bool:
        """True if a value of the variables can change a prediction."""
        return bool(np.any(self.multiplier > 0.0))

    @property
    def multiplier(self) -> FloatArray:
        """What the evidence is multiplied by: the weight, or one weight per class."""
        return np.array(self.weight) if self.class_weights is None else self.class_weights

    @cached_property
    def expected(self) -> FloatArray:
        """Class shares of each cell that naive Bayes expects from its two parts."""
        n_classes = self.counts.shape[1]
        cells = self.counts.reshape(self.partitions[0].n_parts, self.partitions[1].n_parts, n_classes)
        frequency = self.counts.sum(axis=0) / self.counts.sum()

        def shares(counts: IntArray) -> FloatArray:
            smoothed: FloatArray = (counts + n_classes * frequency) / (
                counts.sum(axis=-1, keepdims=True) + n_classes
            )
            return smoothed

        product = shares(cells.sum(axis=1))[:, np.newaxis] * shares(cells.sum(axis=0)) / frequency
        product /= product.sum(axis=-1, keepdims=True)
        expected: FloatArray = product.reshape(-1, n_classes)
        return expected

    @cached_property
    def table(self) -> FloatArray:
        """Evidence of each cell for each class; the last row, for values never seen, is zero."""
        return _with_neutral(self._evidence(self.counts, self._rows))

    @property
    def table_without_the_row(self) -> FloatArray:
        """The same for a training row's own class, had its cell not counted the row itself."""
        without = self._evidence(np.maximum(self.counts - 1, 0), np.maximum(self._rows - 1, 0))
        return _with_neutral(np.where(self.counts > 0, without, self.table[:-1]))

    @property
    def shift_without_the_row(self) -> FloatArray:
        """What the evidence for the other classes gains when a row is not counted."""
        n_classes = self.counts.shape[1]
        gain = np.log((self._rows + n_classes) / (np.maximum(self._rows - 1, 0) + n_classes))
        return _with_neutral(np.broadcast_to(gain, self.counts.shape))

    @property
    def _rows(self) -> IntArray:
        rows: IntArray = self.counts.sum(axis=1, keepdims=True)
        return rows

    def _evidence(self, counts: IntArray, rows: IntArray) -> FloatArray:
        n_classes = counts.shape[1]
        found: FloatArray = np.log(counts / self.expected + n_classes) - np.log(rows + n_classes)
        return found

    @cached_property
    def scores(self) -> FloatArray:
        """The table times the weights: what a cell adds to the scores of the classes."""
        return self.multiplier * self.table

    def rows_of(self, table: Table) -> IntArray:
        """Row of ``table`` of each row; -1 where one of the categories was never seen."""
        first, second = (partition.apply(table[partition.name]) for partition in self.partitions)
        cell = first * self.partitions[1].n_parts + second
        return np.where((first < 0) | (second < 0), -1, cell)

    def row_of(self, first: Any, second: Any) -> int:
        """Row of ``table`` of two values."""
        a, b = (p.part_of(value) for p, value in zip(self.partitions, (first, second), strict=True))
        return -1 if a < 0 or b < 0 else a * self.partitions[1].n_parts + b

    def condition(self, cell: int) -> str:
        """Say what a row of the cell fulfils."""
        parts = divmod(cell, self.partitions[1].n_parts)
        return " and ".join(p.condition(part) for p, part in zip(self.partitions, parts, strict=True))


def _with_neutral(evidence: FloatArray) -> FloatArray:
    return np.vstack([evidence, np.zeros((1, evidence.shape[1]))])
