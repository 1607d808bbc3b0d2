"""Reports on a numeric target: the summary, and what the page and the terminal show of it.

The summary is laid out as that of classes (see `damier.report.summary`), but for what depends on them::

    "target":    {"name", "type": "number", "distinct", "mean", "quantiles": [7 values]},
    "variables": [{..., "gain_per_row", "target_bounds", "table": [{"label", "rows", "mean", "quantiles"}]}],
    "regressor": {"r2", "mae", "coverage", "width", "plain_mae", "plain_coverage", "plain_width", "folds",
                  "rows", "of_rows", "informs", "weights": [{"name", "weight"}, ...],
                  "curves": see damier.fit.number_evaluation.number_curves},
    "grid":      {"level", "gain_per_row", "choice_level", "cells", "possible_cells", "on_offer",
                  "target_bounds", "query",
                  "variables": [{"name", "parts", "conditions": [{"words", "sql", "python"}, ...]}],
                  "rules": [{"cell": [part, ...], "parts", "rows", "mean", "quantiles"}], "hidden_rules"},
    "pairs":     see damier.report.pairs.summarize_pairs,
    "scorer":    see damier.report.scorer.summarize_number_scorer

Quantiles are the least value, 5%, 25%, 50%, 75%, 95% and the greatest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from damier.criteria import log_binomial
from damier.fit.grids import PairGrid
from damier.intake import Column, NumericTarget, Table
from damier.intake.table import FloatArray, IntArray
from damier.models import NaiveBayesRegression, Partition, RegressionGrid
from damier.report import pairs, scorer, worth
from damier.report.analysis import SEARCHED_PAIRS, Sections, Show, paired, show_nothing
from damier.report.axis import Axis
from damier.report.columns import describe_column, oddity, remarks
from damier.report.conditions import in_query
from damier.report.grid import MAX_RULES, cut_short
from damier.report.measures import merging
from damier.report.rules import conditions
from damier.report.rules import island as rules_island
from damier.report.sentences import sentences
from damier.report.summary import FORMAT, MAX_VALUES, Summary, finite, json_value, type_of, version
from damier.report.variables import MAX_PARTS, column_view, part_view
from damier.report.words import LabelStyle, number, part_labels, typical_first

# The strips' own units; they are stretched to whatever place they are given.
WIDTH, HEIGHT = 600, 60
SHOWN_RULES = 20
# Fewer than of classes: a pair is searched against several cuts of the target.
PAIRED_ROWS = 5_000


def analyze_number(
    table: Table,
    target: NumericTarget,
    *,
    dataset: str = "table",
    target_name: str = "target",
    regressor: bool = True,
    grid_seconds: float = 10.0,
    labels: LabelStyle = "plain",
    n_threads: int = 1,
    keep_model: Callable[[NaiveBayesRegression], None] | None = None,
    keep_columns: Callable[[Summary], None] | None = None,
    partitions_of_all: Mapping[str, Partition] | None = None,
    missing: Mapping[str, int] | None = None,
    distribution: tuple[FloatArray, FloatArray, IntArray] | None = None,
    show: Show = show_nothing,
    say: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Partition every column together with a numeric target, and score all of them together.

    Parameters
    ----------
    table : Table
        The inputs.
    target : NumericTarget
        The numbers of the rows, two distinct ones or more.
    regressor : bool, default=True
        Whether to score a naive Bayes by cross-validation.
    grid_seconds : float, default=10.0
        Time for the grid and the pairs together; 0 leaves both out.
    distribution : tuple, optional
        With ``partitions_of_all``, the target of all rows, as in
        `damier.fit.naive_bayes_regression.weighted_regression`.
    dataset, target_name, labels, n_threads, keep_model, keep_columns, partitions_of_all, missing, show, say
        As in `damier.report.analyze`.

    Returns
    -------
    dict
        As laid out at the top of this module.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C comes before the columns are partitioned, or twice within two seconds.
    """
    from damier.fit.averaged import Evidence
    from damier.fit.naive_bayes_regression import (
        evidence_for_number,
        evidence_of_partitions,
        weighted_regression,
    )
    from damier.fit.number_evaluation import cross_validated_number
    from damier.fit.numeric_target import order_target
    from damier.fit.regression_grids import fit_regression_grid

    sections = Sections(n_threads, show, say)
    ordered = order_target(target)

    def look(column: Column) -> tuple[tuple[Evidence, ...], dict[str, Any]]:
        if partitions_of_all is None:
            evidence = evidence_for_number(column, ordered, short_bounds=True)
        else:
            evidence = evidence_of_partitions([partitions_of_all[column.name]], column, ordered)
        statistics = describe_column(column)
        odd = oddity(column, target, evidence[0].variable.partition, statistics)
        return evidence, {"statistics": statistics, "odd": odd}

    looked = sections.run(
        "variables",
        "Partitioning",
        table.n_columns,
        lambda run: run.map(look, table.columns, text="Partitioning"),
    )
    if looked is None:
        raise KeyboardInterrupt
    found = [evidence for evidence, _ in looked]
    known: dict[str, Any] = {
        "dataset": dataset,
        "target_name": target_name,
        "columns": {column.name: said for column, (_, said) in zip(table, looked, strict=True)},
        "missing": {column.name: column.n_missing for column in table} if missing is None else missing,
        "notes": table.notes,
        "labels": labels,
    }
    partitions = [evidence[0].variable.partition for evidence in found]
    if keep_columns is not None:
        keep_columns(summarize_number(partitions, target, **known))
    model: NaiveBayesRegression | None = None
    if keep_model is not None or regressor:
        model = sections.run(
            "model",
            "Weighting",
            0,
            lambda run: weighted_regression(found, table, ordered, distribution=distribution, run=run),
        )
    if keep_model is not None and model is not None:
        keep_model(model)
    scores = None
    # With fewer rows a fold has hardly any to learn from.
    if regressor and table.n_rows >= 20:
        scores = sections.run(
            "regressor", "Cross-validating", 0, lambda run: cross_validated_number(table, target, run=run)
        )
    if scores is not None:
        held = [] if model is None else model.variables
        scores = {**scores, "weights": {variable.name: variable.weight for variable in held}}
    summary = summarize_number(partitions, target, **known, regressor=scores)
    if regressor and model is not None:
        row = scorer.summarize_number_scorer(model, table, known["columns"], labels)
        if row is not None:
            summary["scorer"] = row
    if grid_seconds > 0 and table.n_columns > 1:
        found_grid = sections.run(
            "grid",
            "Searching for a grid",
            0,
            lambda run: fit_regression_grid(table, target, effort=4, seed=0, short_bounds=True, run=run)[0],
            grid_seconds / 2,
        )
        if found_grid is not None:
            summary["grid"] = summarize_number_grid(found_grid, known["columns"], labels)
        found_pairs = _pairs(
            sections,
            table,
            target,
            {partition.name: partition.level for partition in partitions},
            grid_seconds - sections.seconds["grid"],
            lambda found: pairs.number_pair_grid(found, known["columns"], labels),
        )
        if found_pairs is not None:
            summary["pairs"] = found_pairs
        summary["grid_seconds"] = grid_seconds
    summary["ended"] = sections.ended
    return summary


def _pairs(
    sections: Sections,
    table: Table,
    target: NumericTarget,
    levels: Mapping[str, float],
    seconds: float,
    describe: Callable[[PairGrid], dict[str, Any]],
) -> dict[str, Any] | None:
    """Search the pairs of the columns of highest level; None where the sample holds one value only."""
    from damier.fit.regression_grids import find_number_pairs

    chosen, rows = paired(table, levels, PAIRED_ROWS)
    drawn = target if rows is None else target.take(rows)
    if drawn.n_distinct < 2:
        return None
    found = sections.run(
        "pairs",
        "Pairing",
        math.comb(chosen.n_columns, 2),
        lambda run: find_number_pairs(
            chosen, drawn, effort=2, n_full=SEARCHED_PAIRS, seed=0, short_bounds=True, run=run
        ),
        max(0.0, seconds),
    )
    if found is None:
        return None
    grids = {pair: describe(grid) for pair, grid in found.grids.items()}
    return pairs.summarize_pairs(found.ranked, chosen.names, levels, (chosen.n_rows, table.n_rows), grids)


def summarize_number(
    partitions: Sequence[Partition],
    target: NumericTarget,
    *,
    dataset: str,
    target_name: str,
    columns: Mapping[str, Mapping[str, Any]],
    missing: Mapping[str, int],
    notes: Sequence[str] = (),
    labels: LabelStyle = "plain",
    regressor: Mapping[str, Any] | None = None,
) -> Summary:
    """Describe partitions of one numeric target as a plain dict.

    Parameters
    ----------
    partitions : sequence of Partition
        One per variable, at least one.
    target : NumericTarget
    dataset, target_name, columns, missing, notes, labels
        As in `damier.report.summarize`.
    regressor : mapping, optional
        Cross-validated scores, and the weights of the variables by name.
    """
    if not partitions:
        raise ValueError("there is no variable to report on: the table has no column beside the target")
    variables = [_variable(p, columns[p.name], missing[p.name], labels) for p in partitions]
    variables.sort(key=lambda v: -v["level"])  # stable: ties stay in the order of the data
    whole = partitions[0].target
    assert whole is not None
    n_rows = int(partitions[0].counts.sum())
    summary: Summary = {
        "format": FORMAT,
        "damier": version(),
        "dataset": {
            "name": str(dataset),
            "rows": n_rows,
            "variables": len(variables),
            "numeric": sum(v["type"] != "categorical" for v in variables),
            "categorical": sum(v["type"] == "categorical" for v in variables),
            "informative": sum(v["parts"] > 1 for v in variables),
            "missing": sum(v["missing"] for v in variables),
        },
        "target": {
            "name": str(target_name),
            "type": "number",
            "distinct": target.n_distinct,
            "mean": whole.mean,
            "quantiles": whole.overall.tolist(),
        },
        "notes": [str(note) for note in notes],
        "remarks": remarks(variables, str(target_name), n_rows),
        "variables": variables,
    }
    if regressor is not None:
        weights = sorted(regressor["weights"].items(), key=lambda item: -item[1])
        summary["regressor"] = {
            **{key: value for key, value in regressor.items() if key != "weights"},
            "informs": bool(regressor["r2"] > 0 or regressor["mae"] < regressor["plain_mae"])
            and any(w > 0 for _, w in weights),
            "weights": [{"name": str(name), "weight": round(float(w), 6)} for name, w in weights if w > 0],
        }
    summary["words"] = sentences(summary)
    return summary


def _variable(
    partition: Partition, column: Mapping[str, Any], missing: int, style: LabelStyle
) -> dict[str, Any]:
    target = partition.target
    assert target is not None
    labels = part_labels(partition, column.get("statistics"), style)
    rows = partition.counts.sum(axis=1).tolist()
    table: list[dict[str, Any]] = [
        {"label": str(label), "rows": int(n), "mean": float(mean), "quantiles": quantiles}
        for label, n, mean, quantiles in zip(
            labels, rows, target.means.tolist(), target.quantiles.tolist(), strict=True
        )
    ]
    groups = typical_first(partition, column.get("statistics")) if hasattr(partition, "groups") else ()
    for part, values in zip(table, groups, strict=False):
        part["values"] = [json_value(value) for value in values[:MAX_VALUES]]
        part["n_values"] = len(values)
    bounds = getattr(partition, "bounds", None)
    return {
        "name": partition.name,
        "type": type_of(partition),
        "parts": partition.n_parts,
        "level": finite(partition.level),
        "gain_per_row": finite(partition.gain_per_row),
        "missing": missing,
        "cost": finite(partition.cost),
        "null_cost": finite(partition.null_cost),
        "optimal": partition.optimal,
        "target_bounds": list(target.bounds),
        **({} if bounds is None else {"bounds": [b if np.isfinite(b) else str(b) for b in bounds]}),
        **merging(partition),
        **column,
        "table": table,
    }


def summarize_number_grid(
    model: RegressionGrid, columns: Mapping[str, Mapping[str, Any]], labels: LabelStyle = "plain"
) -> dict[str, Any]:
    """Describe a grid with a numeric target as a plain dict; its rules come by falling support."""
    grid = model.grid
    texts = [
        part_labels(partition, columns.get(name, {}).get("statistics"), labels, room=80)
        for name, partition in grid.partitions.items()
    ]
    order = np.argsort(-grid.cells.sizes, kind="stable")
    query = all(map(in_query, grid.partitions.values()))
    rules = [
        {
            "cell": grid.cells.parts[cell].tolist(),
            "parts": [texts[k][part] for k, part in enumerate(grid.cells.parts[cell].tolist())],
            "rows": int(grid.cells.sizes[cell]),
            "mean": float(model.target.means[cell]),
            "quantiles": model.target.quantiles[cell].tolist(),
        }
        for cell in order[:MAX_RULES].tolist()
    ]
    n_chosen = len(grid.partitions)
    choice = float(log_binomial(grid.n_variables + n_chosen - 1, n_chosen)) if n_chosen else 0.0
    return {
        "level": finite(model.level),
        "gain_per_row": finite(model.gain_per_row),
        "choice_level": choice / model.null_cost if model.null_cost > 0 else 0.0,
        "cells": len(grid.cells),
        "possible_cells": grid.n_cells,
        "on_offer": grid.n_variables,
        "target_bounds": list(model.target_bounds),
        "query": query,
        "variables": [
            {
                "name": name,
                "parts": p.n_parts,
                "conditions": conditions(p, columns.get(name, {}).get("statistics"), query=query),
            }
            for name, p in grid.partitions.items()
        ],
        "rules": rules,
        "hidden_rules": len(grid.cells) - len(rules),
    }


# ----- what the page shows


def number_view(summary: Summary, details_budget: int) -> dict[str, Any]:
    """Everything that the templates of a numeric target need, already cut and measured."""
    target, data = summary["target"], summary["dataset"]
    axis = _axis(summary)
    variables, spent, left_out = [], 0, 0
    for variable in summary["variables"]:
        view = {**variable, **column_view(variable), "curves": [], "details": None, "along": None}
        if variable["parts"] > 1:
            spent += 700 + min(variable["parts"], MAX_PARTS) * 450 + sum(map(len, view["values_of"]))
            order = list(range(variable["parts"]))
            parts = variable["table"]
            if variable["type"] == "categorical":  # groups have no order of their own
                order.sort(key=lambda k: (parts[k]["quantiles"][3], parts[k]["mean"]))
            if spent <= details_budget:
                view["details"] = [
                    {
                        **part_view(parts[k], view, k, data["rows"]),
                        "strip": _strip(parts[k]["quantiles"], axis),
                        "mean": number(parts[k]["mean"]),
                        "median": number(parts[k]["quantiles"][3]),
                    }
                    for k in order[:MAX_PARTS]
                ]
                view["hidden_parts"] = max(0, variable["parts"] - MAX_PARTS)
                view["along"] = _along([parts[k] for k in order], axis)
            else:
                left_out += 1
        variables.append(view)
    grid = summary.get("grid")
    if grid is not None:
        rules = [
            {
                **rule,
                "words": " and ".join(_words(grid["variables"], rule)),
                "strip": _strip(rule["quantiles"], axis),
                "median": number(rule["quantiles"][3]),
            }
            for rule in grid["rules"]
        ]
        shown, later = rules[:SHOWN_RULES], rules[SHOWN_RULES:]
        grid = {**grid, "shown": shown, "later": later, "hidden": grid["cells"] - len(shown)}
    sections = {"pairs": pairs, "worth": worth, "row": scorer}
    islands = {name: section.island(summary) for name, section in sections.items()}
    islands["rules"] = rules_island(summary)
    return {
        "summary": summary,
        "data": data,
        "target": target,
        "rules": grid,
        **{name: section.view(summary) for name, section in sections.items()},
        # Where pairs were sought as well, their section says it of both.
        "cut_short": cut_short(summary) if summary.get("pairs") is None else "",
        "whole": _strip(target["quantiles"], axis),
        "ticks": [(f"{axis.place(tick):.4g}", number(tick)) for tick in axis.ticks()],
        "log_axis": axis.is_log,
        "median_at": f"{axis.place(target['quantiles'][3]):.4g}",
        "variables": variables,
        "top_level": max((v["level"] for v in summary["variables"]), default=0.0),
        "left_out": left_out,
        "height": HEIGHT,
        "width": WIDTH,
        "island": {
            "name": data["name"],
            "target": target["name"],
            "classes": [],
            **{name: island for name, island in islands.items() if island is not None},
        },
    }


def _words(variables: Sequence[Mapping[str, Any]], rule: Mapping[str, Any]) -> list[str]:
    if "cell" not in rule:  # a summary of an older version
        return [f"{v['name']} in {label}" for v, label in zip(variables, rule["parts"], strict=True)]
    return [v["conditions"][part]["words"] for v, part in zip(variables, rule["cell"], strict=True)]


def _axis(summary: Summary) -> Axis:
    """Make the axis that all strips share, from the lowest 5% quantile to the highest 95% one of any part."""
    whole = summary["target"]["quantiles"]
    parts = [part for v in summary["variables"] if v["parts"] > 1 for part in v["table"]]
    parts += summary.get("grid", {"rules": []})["rules"][:SHOWN_RULES]
    quantiles = [whole, *(part["quantiles"] for part in parts)]
    low, high = min(q[1] for q in quantiles), max(q[5] for q in quantiles)
    return Axis(*((low, high) if low < high else (whole[0], whole[6])), least=whole[0])


def _strip(quantiles: Sequence[float], axis: Axis) -> dict[str, str]:
    """Measure a strip: 5% to 95% pale, 25% to 75% dark, a line at the median; in percent of the axis."""
    places = [axis.place(value) for value in quantiles]
    ends = {"outer": (places[1], places[5]), "inner": (places[2], places[4])}
    strip = {"median": f"{places[3]:.4g}"}
    for name, (left, right) in ends.items():
        # Equal quantiles leave a mark, not nothing.
        left, right = (left, right) if right - left > 0.6 else (max(0.0, left - 0.3), min(100.0, right + 0.3))
        strip |= {f"{name}_left": f"{left:.4g}", f"{name}_width": f"{right - left:.4g}"}
    texts = [number(value) for value in quantiles]
    strip["text"] = f"5% {texts[1]}, 25% {texts[2]}, median {texts[3]}, 75% {texts[4]}, 95% {texts[5]}"
    return strip


def _along(parts: Sequence[Mapping[str, Any]], axis: Axis) -> dict[str, str]:
    """Draw the target along a variable: one column per part, as wide as it is frequent, from 5% to 95%."""
    total, seen = sum(part["rows"] for part in parts), 0
    paths: dict[str, list[str]] = {"outer": [], "inner": [], "median": []}
    for part in parts:
        left = round(WIDTH * seen / total)
        seen += part["rows"]
        right = round(WIDTH * seen / total)
        if right - left > 6 and seen < total:
            right -= 2
        if right <= left:
            continue
        tops = [HEIGHT - HEIGHT * axis.place(value) / 100 for value in part["quantiles"]]
        for name, lower, upper, least in (
            ("outer", tops[1], tops[5], 2.0),
            ("inner", tops[2], tops[4], 2.0),
            ("median", tops[3], tops[3], 3.0),
        ):
            if lower - upper < least:
                upper = min(max(0.0, (lower + upper - least) / 2), HEIGHT - least)
                lower = upper + least
            paths[name].append(f"M{left} {upper:.4g}H{right}V{lower:.4g}H{left}z")
    return {name: "".join(held) for name, held in paths.items()}
