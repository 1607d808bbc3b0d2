"""A row tried on the page: a naive Bayes that is small enough to be held in it.

It is the model that the page scores, ``NaiveBayesClassifier()``, where there is room for it and for its
pairs. Else it is that of ``evidence="best"`` and ``pairs=None`` on the partitions that the page shows, of at
most `MAX_VARIABLES` variables, those of most weight when all were scored together; of very many classes,
those that the page does not show are one class. A variable that is not given brings no evidence, nor does a
pair of which one is not given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from damier.intake import Table, Target
from damier.intake.table import FloatArray
from damier.models import (
    GroupPartition,
    IntervalPartition,
    NaiveBayes,
    NaiveBayesRegression,
    PairEvidence,
    Partition,
    TargetEvidence,
    VariableEvidence,
)
from damier.report.classes import MAX_CLASSES, ShownClasses, shown_classes
from damier.report.pairs import default_class
from damier.report.summary import type_of
from damier.report.words import LabelStyle, number, part_labels, shortened
from damier.search.run import Run

MAX_VARIABLES = 60
# Numbers of evidence, and characters of values, that a page holds.
_MOST_NUMBERS = 40_000
_MOST_NUMBERS_OF_INTERVALS = 100_000
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
    averaged: Sequence[NaiveBayes] = (),
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
    averaged : sequence of NaiveBayes
        The model of all variables, where it is known: it is returned if there is room for it.
    run : Run
        Stops the search of the weights.
    """
    from damier.fit.naive_bayes import weigh_partitions

    for model in averaged:
        parts = [variable.parts for variable in model.variables if variable.informs]
        n_cells = _numbers_of_cells(model)
        if len(model.classes) == target.n_classes and _room_for(parts, target.n_classes, n_cells):
            return model if parts or n_cells else None
    merge = not _room_for(list(partitions.values())[:MAX_VARIABLES], target.n_classes)
    chosen = _chosen(partitions, len(classes.labels) if merge else target.n_classes, weights or {})
    if not chosen:
        return None
    code_of, names = np.arange(target.n_classes, dtype=np.int32), tuple(target.classes.tolist())
    if merge and classes.n_others:
        code_of = np.full(target.n_classes, len(classes.places), np.int32)
        code_of[classes.places] = np.arange(len(classes.places))
        names = tuple(classes.labels)
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


def _room_for(parts: Sequence[Partition], n_classes: int, n_cells: int = 0, most: int | None = None) -> bool:
    n_parts = sum(one.n_parts for one in parts if one.n_parts > 1)
    return (n_parts + n_cells) * (n_classes - 1) <= (most or _MOST_NUMBERS)


def _used_pairs(model: NaiveBayes) -> list[PairEvidence]:
    return [pair for pair in model.pairs if pair.informs]


def _numbers_of_cells(model: NaiveBayes) -> int:
    """Count the cells that pairs have on the page: see `_cell_scores`."""
    shown = _to_choose_from(model)
    return sum(
        math.prod(part.n_parts + shown[part.name].n_parts for part in pair.partitions)
        for pair in _used_pairs(model)
    )


def _to_choose_from(model: NaiveBayes) -> dict[str, Partition]:
    """Return the parts of each variable: the best partition, or that in a pair where this has one part."""
    shown = {variable.name: variable.partition for variable in model.variables}
    for partition in (partition for pair in _used_pairs(model) for partition in pair.partitions):
        if shown[partition.name].n_parts == 1:
            shown[partition.name] = partition
    return shown


def _chosen(partitions: Mapping[str, Partition], n_classes: int, weights: Mapping[str, float]) -> list[str]:
    """Choose the variables of most weight, then of highest level, as long as there is room for them."""
    informing = [name for name, partition in partitions.items() if partition.n_parts > 1]
    order = sorted(informing, key=lambda name: (-weights.get(name, 0.0), -partitions[name].level))
    chosen, numbers = [], 0
    for name in order[:MAX_VARIABLES]:
        numbers += partitions[name].n_parts * (n_classes - 1)
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
    table: Table,
    statistics: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe the naive Bayes of the page as a plain dict.

    ``{"classes": [label, ...], "merged", "averaged", "log_prior": [...], "columns": [name, ...], "tried",
    "variables": [{"name", "type", "weight", "parts": [label, ...], "part_scores": [[by class], ...],
    "missing", "bounds" or "groups", "scores": [[by class], ...]}, ...],
    "pairs": [{"names": [first, second], "weight", "sides": [{"type", "missing", "bounds" or "groups",
    "n_parts"}, ...], "scores": [[[by class], ...], ...]}, ...]}``

    The score of a class is its log-frequency plus the scores of the values of a row; the exponentials, scaled
    to sum to one, are the probabilities. The scores of the first class are zero everywhere, and left out.
    Scores are those of the intervals between ``bounds``, after one of missing values where ``first`` is 1, or
    those of ``groups`` of values, None where there are too many for a page; ``missing`` is the one of a
    missing value, -1 for none. Where they are finer than the parts, ``part_scores`` are those of the mean
    share of each class over the rows of a part. ``merged`` says that the classes are those that the page
    shows, the others one; ``averaged`` that evidence is averaged over all partitions. ``tried`` variables
    were weighted; those without weight are not listed, but where they are in a pair.

    The scores of a pair are those of the cell of both values, by the part of the first, then of the second.
    After the ``n_parts`` of a pair's own come those to choose from, ``parts`` of the variable: where one is
    chosen, the scores are those of the mean share of each class over its rows, in the part of the other.

    Parameters
    ----------
    model : NaiveBayes
        As `fit_scorer` returns it.
    classes : ShownClasses
        Those that the page shows.
    table : Table
        The rows, with all columns of the table in their order.
    statistics, labels
        As in `damier.report.summarize_grid`.
    """
    counts = model.class_counts.astype(np.float64)
    shown = _to_choose_from(model)
    variables: list[dict[str, Any]] = []
    used = [variable for variable in model.variables if variable.name in model.used_names]
    for variable in used:
        # In a pair, but without a weight: all that a value of it says is where the cell is.
        parts = variable.parts if variable.informs else shown[variable.name]
        scores = variable.scores[:-1] if variable.informs else np.zeros((parts.n_parts, len(counts)))
        column = (statistics or {}).get(variable.name, {})
        held = _described(parts, scores, variable.weight, shown[variable.name], column, labels)
        if variable.averaged is not None and variable.informs:
            held["part_scores"] = _rounded(
                _part_scores(variable, variable.table, shown[variable.name], table)
            )
        variables.append(held)
    variables.sort(key=lambda held: -float(np.ptp(np.array(held["scores"]), axis=0).max()))
    pairs = [
        {
            "names": list(pair.names),
            "weight": round(pair.weight, 6),
            "sides": [{**_lookup(part), "n_parts": part.n_parts} for part in pair.partitions],
            "scores": [_rounded(row) for row in _cell_scores(pair, shown, table)],
        }
        for pair in _used_pairs(model)
    ]
    _without_very_many_values(variables, pairs)
    merged = len(model.classes) < len(classes.counts)
    return {
        "classes": classes.labels if merged else [name.removesuffix(":") for name in classes.names],
        "merged": merged,
        "averaged": any(variable.averaged is not None for variable in used),
        "log_prior": (np.log(counts) - np.log(counts.sum())).tolist(),
        "columns": list(table.names),
        "tried": len(model.variables),
        "variables": variables,
        "pairs": pairs,
    }


def summarize_number_scorer(
    model: NaiveBayesRegression,
    table: Table,
    statistics: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any] | None:
    """Describe the naive Bayes of a number for the page; None where nothing informs or there is no room.

    As `summarize_scorer`, with intervals of the target in place of classes: their ``means``, and the
    ``reserve``, the share of each distribution that stays that of all rows. ``bins`` are neighbouring
    intervals, about as many rows each, to be shown: ``classes`` are their labels.
    """
    used = [variable for variable in model.variables if variable.informs]
    room = _MOST_NUMBERS_OF_INTERVALS
    if not used or not _room_for([variable.parts for variable in used], model.n_intervals, most=room):
        return None
    counts = model.interval_counts.astype(np.float64)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    _, bins = np.unique((middle * MAX_CLASSES).astype(int), return_inverse=True)
    ends = [number(bound) for bound in model.bounds[np.flatnonzero(np.diff(bins))].tolist()]
    named = [f"{low} to {high}" for low, high in pairwise(ends)]
    variables: list[dict[str, Any]] = []
    for v, scores in zip(used, model.tables, strict=True):
        shown = v.partition if v.averaged else v.parts
        held = _described(v.parts, scores[:-1], v.weight, shown, (statistics or {}).get(v.name, {}), labels)
        if v.averaged:
            held["part_scores"] = _rounded(_part_scores(v, v.table(model.typical), shown, table))
        variables.append(held)
    variables.sort(key=lambda v: -max(np.ptp(np.array(v["scores"]), axis=0), default=0.0))
    _without_very_many_values(variables)
    return {
        "classes": [f"≤ {ends[0]}", *named, f"> {ends[-1]}"] if ends else ["all"],
        "merged": False,
        "averaged": True,
        "log_prior": (np.log(counts) - np.log(counts.sum())).tolist(),
        "means": model.interval_means.tolist(),
        "reserve": model.reserve,
        "bins": bins.tolist(),
        "columns": list(table.names),
        "tried": len(model.variables),
        "variables": variables,
    }


def _described(
    parts: Partition,
    scores: FloatArray,
    weight: float,
    shown: Partition,
    column: Mapping[str, Any],
    labels: LabelStyle,
) -> dict[str, Any]:
    """Describe what a value of a variable is looked up in, and the parts that are chosen from."""
    return {
        "name": parts.name,
        "weight": round(weight, 6),
        "parts": part_labels(shown, column.get("statistics"), labels, room=_LABEL),
        "scores": _rounded(scores),
        **_lookup(parts),
    }


def _lookup(parts: Partition) -> dict[str, Any]:
    """Describe how the part of a value is found."""
    held: dict[str, Any] = {"type": type_of(parts), "missing": parts.part_of(None)}
    groups = _groups(parts)
    if groups is not None:
        held["groups"] = groups
    elif isinstance(parts, IntervalPartition):
        ends = {math.inf: "Infinity", -math.inf: "-Infinity"}  # as JavaScript reads them
        held["bounds"] = [ends.get(bound, bound) for bound in parts.bounds]
        held["first"] = int(parts.missing_alone)
    return held


def _without_very_many_values(
    variables: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]] = ()
) -> None:
    """Leave out the values of groups that a page has no room for: of a variable, and of it in pairs."""
    sides: dict[str, list[dict[str, Any]]] = {held["name"]: [held] for held in variables}
    for pair in pairs:
        for name, side in zip(pair["names"], pair["sides"], strict=True):
            sides[name].append(side)
    characters = 0
    for held in sides.values():
        grouped = [one for one in held if "groups" in one]
        characters += sum(len(value) + 3 for one in grouped for group in one["groups"] for value in group)
        if characters > _MOST_CHARACTERS:
            for one in grouped:
                one["groups"] = None


def _against_first(scores: FloatArray) -> FloatArray:
    """Leave probabilities as they are, and the scores of the first class zero."""
    return scores[:, 1:] - scores[:, :1]


def _rounded(scores: FloatArray) -> list[list[float]]:
    held: list[list[float]] = (_against_first(scores) + 0.0).round(7).tolist()
    return held


def _part_scores(
    variable: VariableEvidence | TargetEvidence, evidence: FloatArray, shown: Partition, table: Table
) -> FloatArray:
    """Score the parts to choose from, by the mean over their rows of the share of each class."""
    column = table[variable.name]
    best, fine = shown.apply(column), variable.apply(column)
    n_fine = variable.parts.n_parts + 1
    known = best >= 0
    rows = np.bincount(best[known] * n_fine + fine[known] % n_fine, minlength=shown.n_parts * n_fine).reshape(
        -1, n_fine
    )
    mean = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    shares = mean @ np.exp(evidence)
    scores: FloatArray = variable.multiplier * np.log(np.maximum(shares, 1e-300))
    if variable.adjustment is not None:
        scores += mean[:, :-1] @ variable.adjustment.of_parts(variable.parts.n_parts)
    return scores


def _cell_scores(pair: PairEvidence, shown: Mapping[str, Partition], table: Table) -> FloatArray:
    """Score the cells of a pair, and what parts to choose from are of them.

    Along each axis the parts of the pair come first, then those to choose from: these have the mean share of
    each class over their rows. No rows bring no evidence.
    """
    both = [(part, shown[part.name]) for part in pair.partitions]
    sizes = [part.n_parts for side in both for part in side]
    found = np.array([part.apply(table[part.name]) for side in both for part in side])
    flat = np.ravel_multi_index(list(found[:, (found >= 0).all(axis=0)]), sizes)
    rows = np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes)
    cells = np.exp(pair.table[:-1]).reshape(sizes[0], sizes[2], -1)

    def mean(axes: str) -> FloatArray:
        n = np.einsum(f"aibj->{axes}", rows)[..., None]
        sums = np.einsum(f"aibj,abk->{axes}k", rows, cells)
        means: FloatArray = np.where(n > 0, sums / np.maximum(n, 1), 1.0)
        return means

    first = np.concatenate([cells, mean("aj")], axis=1)
    shares = np.concatenate([first, np.concatenate([mean("ib"), mean("ij")], axis=1)])
    scores: FloatArray = pair.multiplier * np.log(shares)
    return scores


def _groups(partition: Partition) -> list[list[str]] | None:
    """Return the values of each part as a line of the table may write them; None for intervals of numbers."""
    if isinstance(partition, GroupPartition):
        groups = list(partition.groups)
    elif isinstance(partition, IntervalPartition) and partition.kind == "rank":
        groups = [*([()] if partition.missing_alone else []), *partition._ranked]
    else:
        return None
    return [[text for value in group if value is not None for text in _written(value)] for group in groups]


def _written(value: Any) -> list[str]:
    """Write a value; a truth as files do.

    >>> _written("a"), _written(True)
    (['a'], ['True', 'true', 'TRUE'])
    """
    text = str(value)
    return [text, text.lower(), text.upper()] if isinstance(value, bool) else [text]


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Write what the strongest variables say; None if there is no model to score with."""
    scorer = summary.get("scorer")
    if scorer is None or not scorer["variables"]:
        return None
    if "means" in scorer:
        return _number_view(summary, scorer)
    classes = shown_classes(dict(summary))
    j = default_class(classes)
    j = j if scorer["merged"] else classes.places[j]
    prior = np.exp(scorer["log_prior"])
    shown = []
    weighted = [v for v in scorer["variables"] if v["weight"] > 0]
    for variable in [v for v in weighted if len(v["parts"]) > 1][:_SHOWN_VARIABLES]:
        scores = np.insert(np.array(variable.get("part_scores", variable["scores"])), 0, 0.0, axis=1)
        factors = np.exp(np.clip(scores[:, j] - _log_rest(scores, prior, j), -50, 50))
        parts = [
            {"label": shortened(label, _LABEL), "factor": factor, "text": f"× {factor:.3g}"}
            for label, factor in zip(variable["parts"], factors.tolist(), strict=True)
        ]
        shown.append({**variable, "shown": parts[:_SHOWN_PARTS], "hidden": len(parts) - _SHOWN_PARTS})
    informative = summary["dataset"]["informative"]
    every = [(str(k), label) for k, label in enumerate(scorer["classes"])]
    return {
        "variables": shown,
        "controls": [(v["name"], v["parts"]) for v in scorer["variables"]],
        "pairs": [" × ".join(pair["names"]) for pair in scorer["pairs"]],
        "n_variables": len(weighted),
        "informative": informative,
        "averaged": scorer["averaged"],
        "cut": informative > scorer["tried"],
        "class": scorer["classes"][j],
        "look": classes.options if scorer["merged"] else every,
        "first": j,
        "prior": float(prior[j]),
        "two": len(prior) == 2,
    }


def _number_view(summary: Mapping[str, Any], scorer: Mapping[str, Any]) -> dict[str, Any]:
    prior, means = np.exp(scorer["log_prior"]), np.array(scorer["means"])
    shown = []
    for variable in scorer["variables"][:_SHOWN_VARIABLES]:
        scores = np.array(variable.get("part_scores", variable["scores"]))
        shares = np.exp(np.insert(scores, 0, 0.0, axis=1)) * prior
        shares /= shares.sum(axis=1, keepdims=True)
        moves = (1 - scorer["reserve"]) * (shares @ means - prior @ means)
        parts = [
            {
                "label": shortened(label, _LABEL),
                "factor": 1 + move,
                "text": ("+" if move > 0 else "") + number(move),
            }
            for label, move in zip(variable["parts"], moves.tolist(), strict=True)
        ]
        shown.append({**variable, "shown": parts[:_SHOWN_PARTS], "hidden": len(parts) - _SHOWN_PARTS})
    return {
        "variables": shown,
        "controls": [(v["name"], v["parts"]) for v in scorer["variables"]],
        "pairs": [],
        "n_variables": len(scorer["variables"]),
        "averaged": True,
        "finer": any("part_scores" in v for v in scorer["variables"]),
        "look": [],
        "first": 0,
        "class": summary["target"]["name"],
        "mean": number(float(prior @ means)),
        "two": True,
    }


def _log_rest(scores: Any, prior: Any, j: int) -> Any:
    """Return the log of the mean of the factors of the other classes, by their frequencies."""
    others = np.delete(prior, j)
    return np.logaddexp.reduce(np.delete(scores, j, axis=1) + np.log(others / others.sum()), axis=1)


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the model for the script."""
    scorer = summary.get("scorer")
    if scorer is None or not scorer["variables"]:
        return None
    kept = ("type", "missing", "bounds", "first", "groups", "scores", "part_scores")
    return {
        "prior": scorer["log_prior"],
        "columns": scorer["columns"],
        # The page's own, where they are the same.
        "classes": scorer["classes"] if "means" in scorer or len(scorer["classes"]) > MAX_CLASSES else None,
        "merged": scorer["merged"],
        **{key: scorer[key] for key in ("means", "reserve", "bins") if key in scorer},
        "variables": [
            {"name": v["name"], **{key: v[key] for key in kept if key in v}} for v in scorer["variables"]
        ],
        "pairs": [
            {key: pair[key] for key in ("names", "sides", "scores")} for pair in scorer.get("pairs", ())
        ],
    }
