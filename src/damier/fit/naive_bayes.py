"""Naive Bayes fitted to a table: each column partitioned, then weighted together with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from damier.fit.averaged import Evidence, best_evidence, evidence_of_column
from damier.fit.class_groups import joint_partitions, refuse_grouped_semi_supervision
from damier.fit.partitions import Search, SemiSupervised, labeled_rows, partition_column
from damier.intake import Column, Table, Target
from damier.intake.table import IntArray
from damier.models import NaiveBayes, Partition, VariableEvidence
from damier.search.run import Run

Averaging = Literal["convex", "compression"] | None
EvidenceOf = Literal["posterior", "best"]


def fit_naive_bayes(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    group_classes: bool = False,
    averaging: Averaging = "convex",
    evidence: EvidenceOf = "posterior",
    semi_supervised: SemiSupervised = None,
    average_starts: bool = True,
    search: Search = "auto",
    n_starts: int = 10,
    run: Run,
) -> NaiveBayes:
    """Partition each column, and weight them if ``averaging`` is set.

    Parameters
    ----------
    table : Table
        The inputs.
    target : Target
        Two classes or more; rows without a label only where ``semi_supervised`` is set.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.
    group_classes, averaging, evidence, semi_supervised, average_starts, search, n_starts
        As in :class:`damier.NaiveBayesClassifier`.
    run : Run
        Columns are shared among its threads. If it is stopped while the columns are weighted, the weights
        are the mean over the starts that were finished.

    Returns
    -------
    NaiveBayes

    Raises
    ------
    Stopped
        If the run is stopped before there is a model.

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> table = read_table({"size": list(range(40)), "colour": ["red", "green"] * 20})
    >>> model = fit_naive_bayes(table, read_target([0] * 20 + [1] * 20), run=Run())
    >>> [round(variable.weight, 1) for variable in model.variables]
    [2.0, 0.0]
    """
    refuse_grouped_semi_supervision(group_classes, semi_supervised)
    known, labeled, labeled_weights = labeled_rows(target, weights)
    rows = table if known.size == table.n_rows else table.take(known)

    def partitions(column: Column) -> tuple[Partition, ...]:
        if not group_classes:
            found = partition_column(column, target, weights, search=search, semi_supervised=semi_supervised)
            return (found,)
        optima = joint_partitions(column, target, weights, n_starts=n_starts)
        # An optimum far from the best informs less, and would only blur the evidence of the best.
        kept = [partition for partition in optima if partition.level >= 0.9 * optima[0].level]
        return tuple(kept if average_starts else kept[:1])

    def evidence_of(k: int) -> Evidence:
        found = partitions(table.columns[k])
        if evidence == "posterior" and not group_classes:
            return evidence_of_column(rows, k, labeled, found[0], labeled_weights)
        return best_evidence(found)

    found = run.map(evidence_of, range(table.n_columns), text="Partitioning columns")
    variables = weight_variables(found, rows, labeled, labeled_weights, averaging=averaging, run=run)
    return naive_bayes(variables, labeled, labeled_weights)


def weigh_partitions(
    partitions: Sequence[Partition], table: Table, target: Target, *, run: Run
) -> NaiveBayes:
    """Weight partitions as they are into a naive Bayes, as ``evidence="best"`` does.

    Parameters
    ----------
    partitions : sequence of Partition
        One per column of the table.
    table, target
        The rows that they were fitted to, or some of them.
    run : Run
        Stops the search of the weights.
    """
    found = [best_evidence((partition,)) for partition in partitions]
    return naive_bayes(weight_variables(found, table, target, run=run), target)


def weight_variables(
    found: Sequence[Evidence],
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    averaging: Averaging = "convex",
    run: Run,
) -> list[VariableEvidence]:
    """Give each variable the weight of its evidence; one that does not inform has the weight zero.

    Parameters
    ----------
    found : sequence of Evidence
        One per column of the table.
    table, target, weights
        The rows that the variables were fitted to, or some of them; each has a label.
    averaging : {"convex", "compression"} or None
        How they are weighted. None gives each the weight one.
    run : Run
        Stops the search of the weights.
    """
    variables = [evidence.variable for evidence in found]
    if averaging is None:
        return variables
    from damier.search.class_weights import convex_weights
    from damier.search.weights import compression_weights

    informing = [k for k, variable in enumerate(variables) if variable.parts.n_parts > 1]
    chosen = [variables[k] for k in informing]
    by_class = np.zeros((len(variables), target.n_classes))
    counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes)
    parts = [v.apply(table.columns[k]).astype(np.int32) for k, v in zip(informing, chosen, strict=True)]
    tables, own = [v.table for v in chosen], [found[k].own for k in informing]
    log_prior = np.log(counts / counts.sum())
    if informing and averaging == "compression":
        one_each = compression_weights(parts, tables, own, target.codes, log_prior, weights, run=run)
        by_class[informing] = one_each[:, np.newaxis]
    elif informing:
        shifts = [found[k].shift for k in informing]
        by_class[informing] = convex_weights(
            parts, tables, own, shifts, target.codes, log_prior, weights, run=run
        )
    return [
        replace(v, weight=float(w.mean()), class_weights=w if averaging == "convex" else None)
        for v, w in zip(variables, by_class, strict=True)
    ]


def naive_bayes(
    variables: Sequence[VariableEvidence], target: Target, weights: IntArray | None = None
) -> NaiveBayes:
    """Return the model of variables and of the classes of the rows they were fitted to."""
    counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes).astype(np.int64)
    return NaiveBayes(tuple(target.classes.tolist()), counts, tuple(variables))
