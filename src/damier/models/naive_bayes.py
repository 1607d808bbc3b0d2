"""Naive Bayes over partitioned variables: formula 13 of Boullé (2012), in logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from damier.intake.frames import row_values
from damier.intake.table import FloatArray, IntArray, Table
from damier.models.codec import (
    ClassifierModel,
    Counts,
    FieldError,
    Model,
    Values,
    Weight,
    Weights,
    as_array,
    check_shape,
    distinct_names,
    read_used,
)
from damier.models.encoding import check_names
from damier.models.evidence import PartitionEvidence
from damier.models.notebook import bar_table, counted, level_bar
from damier.models.pair_evidence import PairEvidence
from damier.models.partition import IntervalPartition, Partition

if TYPE_CHECKING:
    from damier.criteria import Posterior

# What one part costs more than two where a variable is taken to inform, in nats.
_ONE_PART = 30.0
# Rows times classes scored at once: fits the processor's cache, and bounds the memory of a wide prediction.
_CHUNK_CELLS = 1 << 18
# Scores are logarithms of ratios of shares.
_LARGEST_SCORE = 1e9


def _check_scores(scores: FloatArray, field: str) -> None:
    """Refuse scores that no counts lead to: with weights and added up they would leave the floats."""
    if scores.size and np.abs(scores).max() > _LARGEST_SCORE:
        raise FieldError(field, f"a score must lie between -{_LARGEST_SCORE:g} and {_LARGEST_SCORE:g}")


@dataclass(frozen=True, eq=False, repr=False)
class AveragedEvidence(Model):
    """Evidence of one variable averaged over all its partitions, each by its posterior probability.

    Parameters
    ----------
    elements : Partition
        What partitions are made of: distinct values, or neighbouring ones put together. Groups are in the
        order along which they are joined.
    n_values : array of shape (n_elements,)
        Distinct values of each element.
    evidence : array of shape (n_elements, n_classes)
        Log of the mean share of each class, minus the log of its frequency; of a number, the mean over
        partitions into two intervals or more.
    """

    elements: Partition
    n_values: Counts
    evidence: FloatArray

    def _check(self) -> None:
        check_shape(self, "n_values", self.elements.n_parts)
        check_shape(self, "evidence", self.elements.n_parts, len(self.elements.classes))
        _check_scores(self.evidence, "evidence")

    def _described(self) -> str:
        return f"{self.elements.name}: {counted(self.elements.n_parts, 'element')}"

    def posterior(self) -> Posterior:
        """Average the class shares over all partitions of the elements."""
        return posterior_of_elements(
            self.elements.counts, self.n_values, ordered=isinstance(self.elements, IntervalPartition)
        )

    def curve(self, coverage: float = 0.9, backend: str | None = None) -> Any:
        """Class shares along the variable, as a table.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability that a share lies between ``low`` and ``high``, of a beta distribution with the mean
            and the deviation of the share.
        backend : {"pandas", "polars", "pyarrow", "dict"}, optional
            Library of the table; by default that of the frame that was fitted, else the first installed.

        Returns
        -------
        frame
            One row per element: its label, its rows, mean, low and high share of each class, and the
            probability of a cut behind it.
        """
        from damier.criteria.special import betaincinv

        found = self.posterior()
        mean, variance = found.shares, np.maximum(found.deviations**2, 1e-18)
        both = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
        low, high = (
            betaincinv(both * mean, both * (1 - mean), q) for q in ((1 - coverage) / 2, (1 + coverage) / 2)
        )
        names, columns = (
            ["element", "count"],
            [self.elements.labels, self.elements.counts.sum(axis=1).tolist()],
        )
        for j, c in enumerate(self.elements.classes):
            names += [f"share {c}", f"low {c}", f"high {c}"]
            columns += [mean[:, j].tolist(), low[:, j].tolist(), high[:, j].tolist()]
        columns.append([*found.cuts.tolist(), 0.0])
        return self._frame(dict(zip(distinct_names([*names, "cut"]), columns, strict=True)), backend)


def posterior_of_elements(
    counts: IntArray, n_values: IntArray, *, ordered: bool, informs: bool = False
) -> Posterior:
    """Average the class shares of elements over all partitions.

    Parameters
    ----------
    counts : array of shape (n_elements, n_classes)
        Rows of each element and class, in order.
    n_values : array of shape (n_elements,)
        Distinct values of each element.
    ordered : bool
        True for numbers. Values without an order are joined only with their neighbours, at the price of
        groups.
    informs : bool, default=False
        Average numbers over the partitions into two intervals or more, all sets of as many cuts between
        distinct values equally probable: what a variable says if it says something.
    """
    from damier.criteria import interval_posterior, log_bell_table, log_binomial

    if not ordered:
        n_groups = len(n_values)
        return interval_posterior(
            counts, np.log(n_values.sum()) + log_bell_table(int(n_values.sum()), n_groups)[1:]
        )
    # A cut between two elements stands for those between their values.
    stands_for = (n_values[1:] + n_values[:-1]) / 2 if len(n_values) > 1 else None
    prices = None
    if informs:
        places = int(n_values.sum()) - 1
        prices = np.asarray(log_binomial(places, np.arange(len(n_values))))
        prices[0] = _ONE_PART
    return interval_posterior(counts, prices, stands_for)


@dataclass(frozen=True, eq=False, repr=False)
class Adjustment(Model):
    """What is added to the weighted evidence of a number, so that it goes together with other variables.

    Parameters
    ----------
    firsts : array of shape (n_steps,)
        First element of each step: elements of one step have the same adjustment.
    scores : array of shape (n_steps, n_classes)
        What is added for each class.
    """

    firsts: Counts
    scores: FloatArray

    def _check(self) -> None:
        check_shape(self, "scores", len(self.firsts), self.scores.shape[-1])
        _check_scores(self.scores, "scores")
        if len(self.firsts) == 0 or self.firsts[0] != 0 or np.any(np.diff(self.firsts) < 1):
            raise FieldError("firsts", "begins with 0 and rises")

    def _described(self) -> str:
        return counted(len(self.firsts), "step")

    def of_parts(self, n_parts: int) -> FloatArray:
        """Return what is added for each of the elements."""
        return np.repeat(self.scores, np.diff(self.firsts, append=n_parts), axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class VariableEvidence(PartitionEvidence):
    """What one variable says about the classes.

    Parameters
    ----------
    partitions : tuple of Partition
        The best partition, followed by other optima of the same variable when they are averaged: the mean
        over them of P(part | class) / P(part) is the variable's evidence.
    weight : float
        Zero or more; the evidence is multiplied by it.
    class_weights : array of shape (n_classes,), optional
        Weights of the evidence for each class; ``weight`` is then their mean.
    averaged : AveragedEvidence, optional
        Evidence averaged over all partitions, which then stands in place of that of ``partitions``.
    adjustment : Adjustment, optional
        What is added to the weighted evidence so that it goes together with that of the other variables.
    """

    partitions: tuple[Partition, ...]
    weight: Weight = 1.0
    class_weights: Weights | None = None
    averaged: AveragedEvidence | None = None
    adjustment: Adjustment | None = None

    later_fields = ("class_weights", "averaged", "adjustment")

    def _check(self) -> None:
        super()._check()
        first = self.partitions[0]
        for i, other in enumerate(self.partitions[1:], 1):
            if other.classes != first.classes:
                raise FieldError(f"partitions[{i}]", "the partitions averaged must be over the same classes")
        if not 0.0 <= self.weight < math.inf:
            raise FieldError("weight", f"must be a number that is not negative, got {self.weight}")
        if self.class_weights is not None:
            check_shape(self, "class_weights", len(first.classes))
        if self.averaged is not None:
            elements = self.averaged.elements
            if (elements.name, elements.classes, type(elements)) != (first.name, first.classes, type(first)):
                raise FieldError("averaged", "not of the variable and the classes of the partition")
            object.__setattr__(first, "_averaged", self.averaged)
        if self.adjustment is not None:
            if self.adjustment.scores.shape[1] != len(first.classes):
                raise FieldError("adjustment", "other classes than those of the partition")
            if self.adjustment.firsts[-1] >= self.parts.n_parts:
                raise FieldError("adjustment", "begins behind the last part")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up what was pickled; the best partition knows its averages again."""
        self.__dict__.update(state)
        if self.averaged is not None:
            object.__setattr__(self.partition, "_averaged", self.averaged)

    @property
    def informs(self) -> bool:
        """True if a value of the variable can change a prediction."""
        return bool(np.any(self.multiplier > 0.0)) and self.parts.n_parts > 1

    @property
    def multiplier(self) -> FloatArray:
        """What the evidence is multiplied by: the weight, or one weight per class."""
        return np.array(self.weight) if self.class_weights is None else self.class_weights

    @property
    def parts(self) -> Partition:
        """What ``apply`` sorts values into: all parts that differ in their evidence."""
        return super().parts if self.averaged is None else self.averaged.elements

    @cached_property
    def table(self) -> FloatArray:
        """Evidence of each part of ``apply`` for each class; the last row, for values never seen, is zero."""
        if self.averaged is not None:
            return np.vstack([self.averaged.evidence, np.zeros((1, len(self.partition.classes)))])
        return self._averaged([partition.evidence() for partition in self.partitions])

    @cached_property
    def scores(self) -> FloatArray:
        """What a value adds to the scores of the classes: the table times the weights, adjusted."""
        weighted: FloatArray = self.multiplier * self.table
        if self.adjustment is not None:
            weighted[:-1] += self.adjustment.of_parts(self.parts.n_parts)
        return weighted

    @property
    def table_without_the_row(self) -> FloatArray:
        """The same for a training row's own class, had the row itself not been counted."""
        return self._averaged([partition.evidence(without_the_row=True) for partition in self.partitions])

    def _averaged(self, evidence: list[FloatArray]) -> FloatArray:
        neutral = np.zeros((1, len(self.partition.classes)))
        if len(evidence) == 1:
            return np.vstack([evidence[0], neutral])
        ratios = [np.exp(table)[part] for table, part in zip(evidence, self._refinement[1], strict=True)]
        return np.vstack([np.log(np.mean(ratios, axis=0)), neutral])


def _log_shares(scores: FloatArray) -> FloatArray:
    """Turn scores into logarithms of probabilities, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


@dataclass(frozen=True, eq=False, repr=False)
class NaiveBayes(ClassifierModel):
    """Class frequencies and the evidence of each variable; scoring adds logarithms.

    Parameters
    ----------
    classes : tuple
        Classes of the target, as Python scalars.
    class_counts : array of shape (n_classes,)
        Training rows of each class.
    variables : tuple of VariableEvidence
        In column order.
    pairs : tuple of PairEvidence, default=()
        What pairs of the variables say beyond the two.
    """

    classes: Values
    class_counts: Counts
    variables: tuple[VariableEvidence, ...]
    pairs: tuple[PairEvidence, ...] = ()

    model: ClassVar[str] = "naive_bayes"
    later_fields = ("pairs",)

    def _check(self) -> None:
        check_shape(self, "class_counts", len(self.classes))
        if len(self.class_counts) == 0 or self.class_counts.min() < 1:
            raise FieldError("class_counts", "a class holds rows, and there is at least one")
        check_names(self.variables, "variables")
        for i, variable in enumerate(self.variables):
            if variable.partition.classes != self.classes:
                raise FieldError(f"variables[{i}]", "other classes than those of the model")
        names = {variable.name for variable in self.variables}
        for i, pair in enumerate(self.pairs):
            if pair.partitions[0].classes != self.classes:
                raise FieldError(f"pairs[{i}]", "other classes than those of the model")
            if not names.issuperset(pair.names):
                raise FieldError(f"pairs[{i}]", f"not of two variables of the model: {pair.name}")

    def _described(self) -> str:
        used = sum(v.informs for v in self.variables)
        pairs = f" and {counted(len(self._used_pairs), 'pair')}" if self.pairs else ""
        return (
            f"{counted(len(self.classes), 'class')}, "
            f"{used:,} of {counted(len(self.variables), 'column')}{pairs} used"
        )

    def _repr_html_(self) -> str:
        best = sorted(self.variables, key=lambda v: -v.weight * v.partition.level)
        rows = [
            (v.name, v.partition.n_parts, v.partition.level, level_bar(v.partition.level), v.weight)
            for v in best
        ]
        return bar_table(self._described(), ("column", "parts", "level", "", "weight"), rows)

    @cached_property
    def _log_prior(self) -> FloatArray:
        counts = self.class_counts.astype(np.float64)
        prior: FloatArray = np.log(counts) - np.log(counts.sum())
        return prior

    @cached_property
    def _used(self) -> list[int]:
        """Positions of the variables that inform: the others are not looked at."""
        return [k for k, variable in enumerate(self.variables) if variable.informs]

    @cached_property
    def _used_pairs(self) -> list[PairEvidence]:
        return [pair for pair in self.pairs if pair.informs]

    @cached_property
    def used_names(self) -> list[str]:
        """Columns that are looked at, in order: of variables that inform, alone or in a pair."""
        paired = {name for pair in self._used_pairs for name in pair.names}
        return [v.name for v in self.variables if v.informs or v.name in paired]

    def _read(self, X: Any) -> Table:
        return read_used(X, [variable.name for variable in self.variables], self.used_names)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class for each row; each row sums to one."""
        proba: FloatArray = np.exp(self.predict_log_proba(X))
        return proba

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probability of each class for each row; the exponentials of a row sum to one."""
        row = self._row_scores(X)
        if row is not None:
            return _log_shares(row)
        table = self._read(X)
        result = np.empty((table.n_rows, len(self.classes)))
        for rows, scores in self._scored(table):
            result[rows] = _log_shares(scores)
        return result

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row, the first one on a tie."""
        row = self._row_scores(X)
        if row is not None:
            result = row.argmax(axis=1)
        else:
            table = self._read(X)
            result = np.empty(table.n_rows, dtype=np.int64)
            for rows, scores in self._scored(table):
                result[rows] = scores.argmax(axis=1)
        predicted: npt.NDArray[Any] = as_array(self.classes)[result]
        return predicted

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say which variables, and pairs of them, speak most for the predicted class of each row.

        A variable speaks for it by the factor by which its part raises the odds of that class against the
        next most probable one. Only factors above 1 are reasons: there may be fewer than ``n``.
        """
        table = self._read(X)
        active = [self.variables[k].partition for k in self._used]
        if not (active or self._used_pairs) or len(self.classes) < 2:
            return [[] for _ in range(table.n_rows)]
        shown = [partition.apply(table[partition.name]) for partition in active]
        shown += [pair.rows_of(table) for pair in self._used_pairs]
        written = [[p.condition(part) for part in range(p.n_parts)] for p in active]
        written += [[pair.condition(cell) for cell in range(len(pair.counts))] for pair in self._used_pairs]
        rows_of = self._rows_of(table)
        reasons: list[list[str]] = []
        for rows, scores in self._scored(table, rows_of):
            best, second = np.argsort(-scores, axis=1, kind="stable")[:, :2].T
            gains = np.empty((len(scores), len(rows_of)))
            every = np.arange(len(scores))
            for k, (held, weighted) in enumerate(zip(rows_of, self._weighted, strict=True)):
                evidence = weighted[held[rows]]
                gains[:, k] = evidence[every, best] - evidence[every, second]
            strongest = np.argsort(-gains, axis=1, kind="stable")[:, :n]
            for i, chosen in enumerate(strongest.tolist()):
                row, name = rows.start + i, self.classes[best[i]]
                reasons.append(
                    [
                        f"{written[k][shown[k][row]]}: odds of {name} x {np.exp(gains[i, k]):.3g}"
                        for k in chosen
                        if gains[i, k] > 1e-9
                    ]
                )
        return reasons

    def explain(self, X: Any) -> FloatArray:
        """Evidence each variable brings to each class, row by row: rows x (variables, then pairs) x classes.

        The log-frequencies of the classes plus the sum over the variables and pairs are the scores, equal to
        the log-probabilities up to one constant per row.
        """
        table = self._read(X)
        evidence = np.zeros((table.n_rows, len(self.variables) + len(self.pairs), len(self.classes)))
        paired = [len(self.variables) + i for i, pair in enumerate(self.pairs) if pair.informs]
        for k, rows, scores in zip([*self._used, *paired], self._rows_of(table), self._weighted, strict=True):
            evidence[:, k] = scores[rows]
        return evidence

    @cached_property
    def _weighted(self) -> list[FloatArray]:
        """Weighted evidence of each variable that informs, then of each pair."""
        return [self.variables[k].scores for k in self._used] + [pair.scores for pair in self._used_pairs]

    def _rows_of(self, table: Table) -> list[IntArray]:
        """Row of each of the tables of `_weighted` for each row of a table."""
        active = (self.variables[k] for k in self._used)
        rows = [variable.apply(table[variable.name]) for variable in active]
        return rows + [pair.rows_of(table) for pair in self._used_pairs]

    def _row_scores(self, X: Any) -> FloatArray | None:
        """Scores of one row given as a dict, without a table of one row; None where X is something else."""
        values = row_values(X, self.used_names)
        if values is None:
            return None
        of = dict(zip(self.used_names, values, strict=True))
        found = [v.part_of(of[v.name]) for v in (self.variables[k] for k in self._used)]
        found += [pair.row_of(*(of[name] for name in pair.names)) for pair in self._used_pairs]
        scores = self._log_prior.copy()
        for row, evidence in zip(found, self._weighted, strict=True):
            scores += evidence[row]
        return scores[None]

    def _scored(
        self, table: Table, rows_of: list[IntArray] | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Scores of successive slices of the rows."""
        found = self._rows_of(table) if rows_of is None else rows_of
        size = max(1, _CHUNK_CELLS // len(self.classes))
        for start in range(0, table.n_rows, size):
            rows = slice(start, min(start + size, table.n_rows))
            scores = np.tile(self._log_prior, (rows.stop - rows.start, 1))
            for held, evidence in zip(found, self._weighted, strict=True):
                scores += evidence.take(held[rows], axis=0, mode="wrap")
            yield rows, scores
