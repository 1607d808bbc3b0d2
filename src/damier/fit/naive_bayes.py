"""Naive Bayes fitted to a table: each column partitioned, then weighted together with the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from damier.fit.class_groups import joint_partitions, refuse_grouped_semi_supervision
from damier.fit.partitions import Search, SemiSupervised, labeled_rows, partition_column
from damier.intake import Column, Table, Target
from damier.intake.table import IntArray
from damier.models import NaiveBayes, VariableEvidence
from damier.search.run import Run

Averaging = Literal["compression"] | None


def fit_naive_bayes(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    group_classes: bool = False,
    averaging: Averaging = "compression",
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
    group_classes, averaging, semi_supervised, average_starts, search, n_starts
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
    >>> [variable.weight for variable in model.variables]
    [1.0, 0.0]
    """
    refuse_grouped_semi_supervision(group_classes, semi_supervised)

    def evidence(column: Column) -> VariableEvidence:
        if not group_classes:
            return VariableEvidence(
                (partition_column(column, target, weights, search=search, semi_supervised=semi_supervised),)
            )
        found = joint_partitions(column, target, weights, n_starts=n_starts)
        # An optimum far from the best informs less, and would only blur the evidence of the best.
        kept = [partition for partition in found if partition.level >= 0.9 * found[0].level]
        return VariableEvidence(tuple(kept if average_starts else kept[:1]))

    variables = run.map(evidence, table.columns, text="Partitioning columns")
    known, labeled, labeled_weights = labeled_rows(target, weights)
    if averaging is not None:
        rows = table if known.size == table.n_rows else table.take(known)
        variables = weight_variables(variables, rows, labeled, labeled_weights, run=run)
    return naive_bayes(variables, labeled, labeled_weights)


def weight_variables(
    variables: Sequence[VariableEvidence],
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    run: Run,
) -> list[VariableEvidence]:
    """Give each variable the weight of its evidence; one that does not inform has the weight zero.

    Parameters
    ----------
    variables : sequence of VariableEvidence
        One per column of the table.
    table, target, weights
        The rows that the variables were fitted to, or some of them; each has a label.
    run : Run
        Stops the search between two starts.
    """
    from damier.search.weights import compression_weights

    informing = [k for k, variable in enumerate(variables) if variable.table.shape[0] > 2]
    found = np.zeros(len(variables))
    if informing:
        counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes)
        found[informing] = compression_weights(
            [variables[k].apply(table.columns[k]).astype(np.int32) for k in informing],
            [variables[k].table for k in informing],
            [variables[k].table_without_the_row for k in informing],
            target.codes,
            np.log(counts / counts.sum()),
            weights,
            run=run,
        )
    return [VariableEvidence(v.partitions, float(w)) for v, w in zip(variables, found, strict=True)]


def naive_bayes(
    variables: Sequence[VariableEvidence], target: Target, weights: IntArray | None = None
) -> NaiveBayes:
    """Return the model of variables and of the classes of the rows they were fitted to."""
    counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes).astype(np.int64)
    return NaiveBayes(tuple(target.classes.tolist()), counts, tuple(variables))
