"""Naive Bayes fitted to a table: each column partitioned, then weighted together with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from damier.fit.averaged import Evidence, best_evidence, centred, evidence_of_column
from damier.fit.class_groups import joint_partitions, refuse_grouped_semi_supervision
from damier.fit.pairs import fit_pair_evidence
from damier.fit.partitions import Search, SemiSupervised, labeled_rows, partition_column
from damier.intake import Column, Table, Target
from damier.intake.table import IntArray
from damier.models import Adjustment, IntervalPartition, NaiveBayes, PairEvidence, Partition, VariableEvidence
from damier.search.run import Run

Averaging = Literal["convex", "compression"] | None
EvidenceOf = Literal["posterior", "best"]
Pairs = Literal["auto"] | int | None


def fit_naive_bayes(
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    group_classes: bool = False,
    averaging: Averaging = "convex",
    evidence: EvidenceOf = "posterior",
    pairs: Pairs = "auto",
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
    group_classes, averaging, evidence, pairs, semi_supervised, average_starts, search, n_starts
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
    [2.4, 0.0]
    """
    refuse_grouped_semi_supervision(group_classes, semi_supervised)
    pairs = allowed_pairs(pairs, averaging, group_classes=group_classes)
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
    variables, taken = weight_with_pairs(
        found, rows, labeled, labeled_weights, averaging=averaging, pairs=pairs, run=run
    )
    return naive_bayes(variables, labeled, labeled_weights, taken)


def allowed_pairs(pairs: Pairs, averaging: Averaging, *, group_classes: bool = False) -> Pairs:
    """Return the pairs to look for: none with ``"auto"`` where their evidence cannot be weighted.

    >>> allowed_pairs("auto", None)
    >>> allowed_pairs(3, None)
    Traceback (most recent call last):
        ...
    ValueError: pairs are weighted together with the columns: set averaging="convex", or pairs=None.
    """
    if pairs is None or (averaging == "convex" and not group_classes):
        return pairs
    if pairs == "auto":
        return None
    if averaging != "convex":
        raise ValueError(
            'pairs are weighted together with the columns: set averaging="convex", or pairs=None.'
        )
    raise ValueError(
        "a pair's grid has classes one by one, and group_classes=True groups them: set pairs=None."
    )


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
    found: Sequence[Evidence], table: Table, target: Target, weights: IntArray | None = None, *, run: Run
) -> Sequence[VariableEvidence]:
    """Give each variable convex weights, as `weight_with_pairs` does."""
    return weight_with_pairs(found, table, target, weights, run=run)[0]


def weight_with_pairs(
    found: Sequence[Evidence],
    table: Table,
    target: Target,
    weights: IntArray | None = None,
    *,
    averaging: Averaging = "convex",
    pairs: Pairs = None,
    run: Run,
) -> tuple[tuple[VariableEvidence, ...], tuple[PairEvidence, ...]]:
    """Give each variable the weight of its evidence; one that does not inform has the weight zero.

    Pairs of variables are found and weighted in the same problem; those that add nothing are left out.

    Parameters
    ----------
    found : sequence of Evidence
        One per column of the table.
    table, target, weights
        The rows that the variables were fitted to, or some of them; each has a label.
    averaging : {"convex", "compression"} or None
        How they are weighted. None gives each the weight one.
    pairs : "auto", int or None
        Pairs at most, as many as columns with "auto"; only where ``averaging`` is ``"convex"``.
    run : Run
        Stops the search of the weights.
    """
    if averaging != "convex":
        found = [centred(evidence) for evidence in found]
    variables = [evidence.variable for evidence in found]
    if averaging is None:
        return tuple(variables), ()
    from damier.search.adjustments import steps_of
    from damier.search.class_weights import adjusted_weights
    from damier.search.weights import compression_weights

    informing = [k for k, variable in enumerate(variables) if variable.parts.n_parts > 1]
    chosen = [variables[k] for k in informing]
    by_class = np.zeros((len(variables), target.n_classes))
    counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes)
    parts = [v.apply(table.columns[k]).astype(np.int32) for k, v in zip(informing, chosen, strict=True)]
    tables, own = [v.table for v in chosen], [found[k].own for k in informing]
    # In a sample of a larger table a class may have no row.
    log_prior = np.log(np.maximum(counts, 1) / counts.sum())
    price = 0.0
    taken: list[PairEvidence] = []
    adjustments: dict[int, Adjustment] = {}
    if pairs is not None:
        best = [variable.partition for variable in variables]
        taken, price = fit_pair_evidence(
            table, target, best, weights, most=None if pairs == "auto" else pairs, run=run
        )
        parts += [pair.rows_of(table).astype(np.int32) for pair in taken]
        tables += [pair.table for pair in taken]
        own += [pair.table_without_the_row for pair in taken]
    if informing and averaging == "compression":
        one_each = compression_weights(parts, tables, own, target.codes, log_prior, weights, run=run)
        by_class[informing] = one_each[:, np.newaxis]
    elif tables:
        shifts = [found[k].shift for k in informing] + [pair.shift_without_the_row for pair in taken]
        surcharge = np.concatenate([np.zeros(len(chosen)), np.full(len(taken), price)])
        # Of many columns that would not be cut by themselves, some seem to inform by chance.
        alone = [int(v.partition.n_parts == 1) for v in chosen]
        kinds = np.unique([*alone, *[2] * len(taken)], return_inverse=True)[1]
        steps = [
            steps_of(v.parts.counts.sum(axis=1))
            if v.averaged and isinstance(v.parts, IntervalPartition)
            else None
            for v in chosen
        ]
        weighted, added = adjusted_weights(
            parts,
            tables,
            own,
            shifts,
            [*steps, *[None] * len(taken)],
            target.codes,
            log_prior,
            weights,
            surcharge=surcharge,
            kinds=kinds,
            run=run,
        )
        by_class[informing] = weighted[: len(informing)]
        for k, of_parts, scores in zip(informing, steps, added, strict=False):
            if of_parts is not None and scores is not None:
                adjustments[k] = Adjustment(np.unique(of_parts, return_index=True)[1], scores)
        taken = [
            replace(pair, weight=float(w.mean()), class_weights=w)
            for pair, w in zip(taken, weighted[len(informing) :], strict=True)
            if w.any()
        ]
    return tuple(
        replace(
            v,
            weight=float(w.mean()),
            class_weights=w if averaging == "convex" else None,
            adjustment=adjustments.get(k),
        )
        for k, (v, w) in enumerate(zip(variables, by_class, strict=True))
    ), tuple(taken)


def naive_bayes(
    variables: Sequence[VariableEvidence],
    target: Target,
    weights: IntArray | None = None,
    pairs: Sequence[PairEvidence] = (),
) -> NaiveBayes:
    """Return the model of variables and of the classes of the rows they were fitted to."""
    counts = np.bincount(target.codes, weights=weights, minlength=target.n_classes).astype(np.int64)
    return NaiveBayes(tuple(target.classes.tolist()), counts, tuple(variables), tuple(pairs))
