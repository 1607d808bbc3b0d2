"""A row tried on the page: a naive Bayes over the parts that the page shows, small enough to be held in it.

The model is that of ``NaiveBayesClassifier(evidence="best")`` on these partitions. It is fitted to at most
`MAX_VARIABLES` variables, those of most weight when all were scored together, and to the classes that the
page shows; of more than ten, the others are one class. A variable that is not given brings no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from damier.intake import Table, Target
from damier.models import GroupPartition, IntervalPartition, NaiveBayes, Partition
from damier.report.classes import ShownClasses, shown_classes
from damier.report.pairs import default_class
from damier.report.summary import json_value, type_of
from damier.report.words import LabelStyle, part_labels, shortened
from damier.search.run import Run

MAX_VARIABLES = 60
# Numbers of evidence, and characters of values, that a page holds.
_MOST_NUMBERS = 10_000
_MOST_CHARACTERS = 100_000
# Rows that weights are fitted to, at most.
_MOST_ROWS = 200_000
# Variables and parts shown without scripts.
_SHOWN_VARIABLES = 10
_SHOWN_PARTS = 12
_LABEL = 90


def fit_scorer(
    partitions: Mapping[str, Partition],
    table: Table,
    target: Target,
    classes: ShownClasses,
    weights: Mapping[str, float] | None = None,
    *,
    run: Run,
) -> NaiveBayes | None:
    """Fit the naive Bayes of the page; None where no variable informs.

    Parameters
    ----------
    partitions : mapping of str to Partition
        Those that the page shows.
    table, target
        The rows.
    classes : ShownClasses
        Those that the page shows.
    weights : mapping of str to float, optional
        Weights of the variables by which they are chosen; by default their levels.
    run : Run
        Stops the search of the weights.
    """
    from damier.fit.naive_bayes import weigh_partitions

    chosen = _chosen(partitions, len(classes.labels), weights or {})
    if not chosen:
        return None
    code_of = np.full(target.n_classes, len(classes.places), np.int32)
    code_of[classes.places] = np.arange(len(classes.places))
    names = tuple(classes.labels) if classes.n_others else tuple(target.classes.tolist())
    merged = [_merged(partitions[name], code_of, names) for name in chosen]
    rows = _sample(code_of[target.codes])
    if rows is not None:
        table = table.take(rows)
    codes = code_of[target.codes if rows is None else target.codes[rows]]
    held = Table(tuple(table[name] for name in chosen), table.n_rows)
    known = Target(codes, np.array(names, dtype=object))
    model = weigh_partitions(merged, held, known, run=run)
    # The parts were counted on all rows, of which the table may be a sample.
    return replace(model, class_counts=merged[0].counts.sum(axis=0))


def _chosen(partitions: Mapping[str, Partition], n_classes: int, weights: Mapping[str, float]) -> list[str]:
    """Choose the variables of most weight, then of highest level, as long as there is room for them."""
    informing = [name for name, partition in partitions.items() if partition.n_parts > 1]
    order = sorted(informing, key=lambda name: (-weights.get(name, 0.0), -partitions[name].level))
    chosen, numbers = [], 0
    for name in order[:MAX_VARIABLES]:
        numbers += partitions[name].n_parts * n_classes
        if numbers <= _MOST_NUMBERS:
            chosen.append(name)
    return chosen


def _merged(partition: Partition, code_of: Any, names: tuple[Any, ...]) -> Partition:
    """Put the classes that the page does not show together."""
    if len(names) == len(partition.classes):
        return partition
    counts = np.zeros((partition.n_parts, len(names)), np.int64)
    np.add.at(counts.T, code_of, partition.counts.T)
    return replace(partition, classes=names, counts=counts)


def _sample(codes: Any) -> Any:
    """Draw rows, one of each class among them; None where all are few enough."""
    if codes.size <= _MOST_ROWS:
        return None
    drawn = np.random.default_rng(0).choice(codes.size, _MOST_ROWS, replace=False)
    return np.union1d(drawn, np.unique(codes, return_index=True)[1])


def summarize_scorer(
    model: NaiveBayes,
    classes: ShownClasses,
    columns: Sequence[str],
    statistics: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe the naive Bayes of the page as a plain dict.

    ``{"classes": [label, ...], "log_prior": [...], "columns": [name, ...], "tried",
    "variables": [{"name", "type", "weight", "parts": [label, ...], "missing_part", "bounds" or "groups",
    "scores": [[by class], ...]}, ...]}``

    The score of a class is its log-frequency plus the scores of the parts of a row; the exponentials, scaled
    to sum to one, are the probabilities. ``missing_part`` is the part of a missing value, -1 for none.
    ``tried`` variables were weighted; those without weight are not listed. ``groups`` are the values of each
    part, None where there are too many for a page.

    Parameters
    ----------
    model : NaiveBayes
        As `fit_scorer` returns it.
    classes : ShownClasses
        Those that the page shows.
    columns : sequence of str
        All columns of the table, in their order.
    statistics, labels
        As in `damier.report.summarize_grid`.
    """
    counts = model.class_counts.astype(np.float64)
    variables, characters = [], 0
    used = [variable for variable in model.variables if variable.informs]
    strongest = sorted(used, key=lambda v: -float(np.ptp(v.scores[:-1], axis=0).max()))
    for variable in strongest:
        partition = variable.partition
        column = (statistics or {}).get(variable.name, {})
        held: dict[str, Any] = {
            "name": variable.name,
            "type": type_of(partition),
            "weight": round(variable.weight, 6),
            "parts": part_labels(partition, column.get("statistics"), labels, room=_LABEL),
            "missing_part": partition.part_of(None),
            "scores": variable.scores[:-1].round(12).tolist(),
        }
        groups = _groups(partition)
        if groups is not None:
            characters += sum(len(str(value)) + 3 for group in groups for value in group)
            held["groups"] = groups if characters <= _MOST_CHARACTERS else None
        elif isinstance(partition, IntervalPartition):
            held["bounds"] = [b if math.isfinite(b) else str(b) for b in partition.bounds]
            held["first"] = int(partition.missing_alone)
        variables.append(held)
    return {
        "classes": classes.labels,
        "log_prior": (np.log(counts) - np.log(counts.sum())).tolist(),
        "columns": list(columns),
        "tried": len(model.variables),
        "variables": variables,
    }


def _groups(partition: Partition) -> list[list[Any]] | None:
    """Return the values of each part as JSON has them; None for intervals of numbers."""
    if isinstance(partition, GroupPartition):
        return [[json_value(value) for value in group] for group in partition.groups]
    if isinstance(partition, IntervalPartition) and partition.kind == "rank":
        alone: list[list[Any]] = [[]] if partition.missing_alone else []
        return alone + [[json_value(value) for value in group] for group in partition._ranked]
    return None


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Write what the strongest variables say; None if there is no model to score with."""
    scorer = summary.get("scorer")
    if scorer is None or not scorer["variables"]:
        return None
    j = default_class(shown_classes(dict(summary)))
    prior = np.exp(scorer["log_prior"])
    shown = []
    for variable in scorer["variables"][:_SHOWN_VARIABLES]:
        scores = np.array(variable["scores"])
        factors = np.exp(scores[:, j] - np.log(_rest(scores, prior, j)))
        parts = [
            {"label": shortened(label, _LABEL), "factor": factor, "text": f"× {factor:.3g}"}
            for label, factor in zip(variable["parts"], factors.tolist(), strict=True)
        ]
        shown.append({**variable, "shown": parts[:_SHOWN_PARTS], "hidden": len(parts) - _SHOWN_PARTS})
    informative = summary["dataset"]["informative"]
    return {
        "variables": shown,
        "n_variables": len(scorer["variables"]),
        "informative": informative,
        "cut": informative > scorer["tried"],
        "class": scorer["classes"][j],
        "prior": float(prior[j]),
        "two": len(prior) == 2,
    }


def _rest(scores: Any, prior: Any, j: int) -> Any:
    """Return the mean of the factors of the other classes, by their frequencies."""
    others = np.delete(prior, j)
    return np.exp(np.delete(scores, j, axis=1)) @ others / others.sum()


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the model for the script."""
    scorer = summary.get("scorer")
    if scorer is None or not scorer["variables"]:
        return None
    return {key: scorer[key] for key in ("log_prior", "columns", "variables")}
