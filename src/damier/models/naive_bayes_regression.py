"""Naive Bayes for a number: the evidence of each variable for the elementary intervals of the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from damier.intake.dates import number_text
from damier.intake.frames import row_values
from damier.intake.table import FloatArray, IntArray, Table
from damier.models.codec import Counts, FieldError, Share, Weight, Weights, read_used
from damier.models.encoding import check_names
from damier.models.evidence import PartitionEvidence, values_of
from damier.models.naive_bayes import Adjustment, AveragedEvidence
from damier.models.notebook import bar_table, counted, level_bar
from damier.models.partition import Partition
from damier.models.regressor import RegressorModel

# Rows times intervals scored at once: fits the processor's cache, and bounds the memory of a wide prediction.
_CHUNK_CELLS = 1 << 18
# Steps of the path that `explain` goes from no evidence to all of it.
_STEPS = 16


@dataclass(frozen=True, eq=False, repr=False)
class TargetEvidence(PartitionEvidence):
    """What one variable says about a numeric target.

    Parameters
    ----------
    partitions : tuple of Partition
        The best partition of the variable and the target, followed by other optima when they are averaged:
        the mean over them of P(part | target interval) / P(part) is the variable's evidence.
    weight : float
        Zero or more; the evidence is multiplied by it.
    interval_weights : array of shape (n_intervals,), optional
        Weights of the evidence for each elementary interval; ``weight`` is then their mean.
    averaged : tuple of AveragedEvidence, default=()
        For the target intervals of each partition, evidence averaged over all partitions of the variable; the
        mean of their ratios then stands in place of that of ``partitions``.
    adjustment : Adjustment, optional
        What is added to the weighted evidence for each elementary interval, so that it goes together with
        that of the other variables.
    """

    partitions: tuple[Partition, ...]
    weight: Weight = 1.0
    interval_weights: Weights | None = None
    averaged: tuple[AveragedEvidence, ...] = ()
    adjustment: Adjustment | None = None

    later_fields = ("interval_weights", "averaged", "adjustment")

    def _check(self) -> None:
        super()._check()
        for i, partition in enumerate(self.partitions):
            if partition.target is None:
                raise FieldError(f"partitions[{i}]", "the partition is not one of a numeric target")
        if not 0.0 <= self.weight < math.inf:
            raise FieldError("weight", f"must be a number that is not negative, got {self.weight}")
        if self.averaged:
            given = [(a.elements.name, a.elements.classes, type(a.elements)) for a in self.averaged]
            if given != [(p.name, p.classes, type(p)) for p in self.partitions]:
                raise FieldError("averaged", "not of the variable and the target intervals of the partitions")
            held = [values_of(a.elements) for a in self.averaged]
            if held != held[:1] * len(held):
                raise FieldError("averaged", "the elements of all partitions must hold the same values")
            object.__setattr__(self.partition, "_averaged", self.averaged[0])
        if self.adjustment is not None and self.adjustment.firsts[-1] >= self.parts.n_parts:
            raise FieldError("adjustment", "begins behind the last part")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up what was pickled; the best partition knows its averages again."""
        self.__dict__.update(state)
        if self.averaged:
            object.__setattr__(self.partition, "_averaged", self.averaged[0])

    @property
    def _refined(self) -> tuple[Partition, ...]:
        """What has evidence: the partitions, or the elements that all partitions are made of."""
        return tuple(one.elements for one in self.averaged) or self.partitions

    @property
    def informs(self) -> bool:
        """True if a value of the variable can change a prediction."""
        return bool(np.any(self.multiplier > 0.0)) and self.parts.n_parts > 1

    @property
    def multiplier(self) -> FloatArray:
        """What the evidence is multiplied by: the weight, or one weight per elementary interval."""
        return np.array(self.weight) if self.interval_weights is None else self.interval_weights

    def table(self, typical: FloatArray, evidence: Sequence[FloatArray] | None = None) -> FloatArray:
        """Evidence of each part of ``apply`` for each elementary interval of the target.

        Parameters
        ----------
        typical : array of shape (n_intervals,)
            A training target in each elementary interval.
        evidence : sequence of array of shape (n_parts, n_target_intervals), optional
            Other evidence of the parts of each partition, or of the elements, than that of the model.

        Returns
        -------
        array of shape (n_parts + 1, n_intervals)
            The last row, for values never seen, is zero.
        """
        if evidence is None:
            averaged = [one.evidence for one in self.averaged]
            evidence = averaged or [partition.evidence() for partition in self.partitions]
        ratios = []
        for partition, part, held in zip(self.partitions, self._refinement[1], evidence, strict=True):
            interval = np.searchsorted(partition.target_bounds or (), typical, side="left")
            ratios.append(held[:, interval][part])
        mean = np.logaddexp.reduce(ratios, axis=0) - math.log(len(ratios))
        return np.vstack([mean, np.zeros((1, len(typical)))])

    def scores(self, typical: FloatArray) -> FloatArray:
        """Return what a value adds to the scores of the intervals: the table times the weights, adjusted."""
        weighted: FloatArray = self.multiplier * self.table(typical)
        if self.adjustment is not None:
            weighted[:-1] += self.adjustment.of_parts(self.parts.n_parts)
        return weighted


class Explanation(NamedTuple):
    """Why a number is predicted, row by row.

    Attributes
    ----------
    moves : array of shape (n_rows, n_variables)
        How far each variable moves the predicted mean away from the mean of the training targets; the moves
        of a row add up to the whole distance.
    evidence : array of shape (n_rows, n_variables, n_intervals)
        Evidence of each variable for each elementary interval of the target, in nats, weighted.
    """

    moves: FloatArray
    evidence: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class NaiveBayesRegression(RegressorModel):
    """Shares of the target's elementary intervals and the evidence of each variable; scoring adds logarithms.

    Parameters
    ----------
    bounds : array of shape (n_intervals - 1,)
        Inner bounds of the elementary intervals: those of all variables' target intervals.
    values, counts : arrays of shape (n_values,)
        Training targets, or means of neighbouring ones, in ascending order; and their rows.
    variables : tuple of TargetEvidence
        In column order.
    reserve : float
        Share of each predicted distribution that stays that of all training rows: parts and bounds that were
        chosen on few rows promise more than they keep.
    """

    bounds: FloatArray
    values: FloatArray
    counts: Counts
    variables: tuple[TargetEvidence, ...]
    reserve: Share = 0.0

    model: ClassVar[str] = "naive_bayes_regression"

    def _check(self) -> None:
        super()._check()
        check_names(self.variables, "variables")
        for i, variable in enumerate(self.variables):
            adjustment = variable.adjustment
            for name, held in (
                ("interval_weights", variable.interval_weights),
                ("adjustment", None if adjustment is None else adjustment.scores[0]),
            ):
                if held is not None and len(held) != self.n_intervals:
                    raise FieldError(
                        f"variables[{i}].{name}",
                        f"{self.n_intervals} {'weights' if name != 'adjustment' else 'scores'} expected, "
                        f"got {len(held)}",
                    )

    def _described(self) -> str:
        used = sum(v.informs for v in self.variables)
        return (
            f"{counted(self.n_intervals, 'target interval')}, "
            f"{used:,} of {counted(len(self.variables), 'column')} used"
        )

    def _repr_html_(self) -> str:
        best = sorted(self.variables, key=lambda v: -v.weight * v.partition.level)
        most = max((v.partition.level for v in best), default=0.0)
        rows = [
            (
                v.name,
                v.partition.n_parts,
                v.partition.level,
                level_bar(v.partition.level / most if most > 0 else 0.0),
                v.weight,
            )
            for v in best
        ]
        return bar_table(self._described(), ("column", "parts", "level", "", "weight"), rows)

    @cached_property
    def _log_prior(self) -> FloatArray:
        counts = self.interval_counts.astype(np.float64)
        prior: FloatArray = np.log(counts) - np.log(counts.sum())
        return prior

    @cached_property
    def _used(self) -> list[int]:
        """Positions of the variables that inform: the others are not looked at."""
        return [k for k, variable in enumerate(self.variables) if variable.informs]

    @cached_property
    def typical(self) -> FloatArray:
        """A training target in each elementary interval, in the middle of its rows."""
        return typical_targets(self.values, self.counts, self.bounds)

    @cached_property
    def tables(self) -> list[FloatArray]:
        """Weighted evidence of each part and elementary interval, of the variables that inform."""
        return [self.variables[k].scores(self.typical) for k in self._used]

    def _read(self, X: Any) -> Table:
        names = [variable.name for variable in self.variables]
        return read_used(X, names, [names[k] for k in self._used])

    def _row_shares(self, X: Any) -> FloatArray | None:
        active = [self.variables[k] for k in self._used]
        values = row_values(X, [variable.name for variable in active])
        if values is None:
            return None
        scores = self._log_prior.copy()
        for variable, value, evidence in zip(active, values, self.tables, strict=True):
            scores += evidence[variable.part_of(value)]
        shares: FloatArray = self._with_reserve(_normalised(scores[np.newaxis]))[0]
        return shares

    def _scored(self, table: Table) -> Iterator[tuple[slice, FloatArray]]:
        active = [self.variables[k] for k in self._used]
        parts = [variable.apply(column) for variable, column in zip(active, table, strict=True)]
        size = max(1, _CHUNK_CELLS // self.n_intervals)
        for start in range(0, table.n_rows, size):
            rows = slice(start, min(start + size, table.n_rows))
            scores = np.tile(self._log_prior, (rows.stop - rows.start, 1))
            for part, evidence in zip(parts, self.tables, strict=True):
                scores += evidence.take(part[rows], axis=0, mode="wrap")
            yield rows, self._with_reserve(_normalised(scores))

    def _with_reserve(self, shares: FloatArray) -> FloatArray:
        shares *= 1.0 - self.reserve
        shares += self.reserve * np.exp(self._log_prior)
        return shares

    def explain(self, X: Any) -> Explanation:
        """Say how far each variable moves the predicted mean, and what it speaks for.

        All evidence is turned up together from none to its full weight. A variable moves the mean by the
        covariance of its evidence with the target, summed along the way (Aumann and Shapley, 1974), so that
        the moves add up.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        """
        table = self._read(X)
        evidence = np.zeros((table.n_rows, len(self.variables), self.n_intervals))
        moves = np.zeros((table.n_rows, len(self.variables)))
        for k, column, held in zip(self._used, table, self.tables, strict=True):
            evidence[:, k] = held[self.variables[k].apply(column)]
        size = max(1, _CHUNK_CELLS // (self.n_intervals * max(len(self.variables), 1)))
        for start in range(0, table.n_rows, size):
            rows = slice(start, start + size)
            moves[rows] = self._moves(evidence[rows])
        return Explanation(moves, evidence)

    def _moves(self, evidence: FloatArray) -> FloatArray:
        scores = evidence.sum(axis=1)
        means = self.interval_means
        overall = float(np.exp(self._log_prior) @ means)
        full = _normalised(self._log_prior + scores) @ means
        moves = np.zeros(evidence.shape[:2])
        steps, widths = np.polynomial.legendre.leggauss(_STEPS)
        for step, width in zip((steps + 1) / 2, widths / 2, strict=True):
            shares = _normalised(self._log_prior + step * scores)
            around = shares * (means - (shares @ means)[:, np.newaxis])
            moves += width * np.einsum("nke,ne->nk", evidence, around)
        # What the steps leave over, where evidence is steep, goes to the variables by their part in it.
        rest = full - overall - moves.sum(axis=1)
        size = np.abs(moves)
        total = size.sum(axis=1)
        size[total > 0] /= total[total > 0, np.newaxis]
        moves += rest[:, np.newaxis] * size
        moves *= 1.0 - self.reserve
        return moves

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say which variables move the predicted mean of each row most, the strongest first.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        n : int, default=3
        """
        table = self._read(X)
        reasons: list[list[str]] = [[] for _ in range(table.n_rows)]
        if not self._used:
            return reasons
        active = [self.variables[k].partition for k in self._used]
        shown = [partition.apply(column) for partition, column in zip(active, table, strict=True)]
        written = [[p.condition(part) for part in range(p.n_parts)] for p in active]
        moves = self.explain(table).moves[:, self._used]
        strongest = np.argsort(-np.abs(moves), axis=1, kind="stable")[:, :n]
        for row, chosen in enumerate(strongest.tolist()):
            for k in chosen:
                if shown[k][row] >= 0 and moves[row, k] != 0.0:
                    text = number_text(float(f"{abs(moves[row, k]):.3g}"), "number")
                    reasons[row].append(
                        f"{written[k][shown[k][row]]}: {'+' if moves[row, k] > 0 else '-'}{text}"
                    )
        return reasons


def typical_targets(values: FloatArray, counts: IntArray, bounds: FloatArray) -> FloatArray:
    """Return a value in each interval, the one in the middle of its rows; each interval has rows.

    >>> typical_targets(np.array([1.0, 2.0, 3.0, 9.0]), np.array([1, 1, 1, 5]), np.array([5.0]))
    array([2., 9.])
    """
    ends = np.searchsorted(values, bounds, side="right")
    reached = np.cumsum(counts)
    after = np.append(reached[ends - 1], reached[-1])
    before = np.append(0, after[:-1])
    typical: FloatArray = values[np.searchsorted(reached, (before + after) / 2, side="left")]
    return typical


def _normalised(scores: FloatArray) -> FloatArray:
    """Turn scores into shares, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
