"""The cells of the best grid as rules: their facts, and the section of the page on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.criteria import log_binomial, part_costs
from damier.models.grid import DataGrid
from damier.report.classes import ShownClasses, class_bars, shown_classes
from damier.report.conditions import in_query, part_python, part_sql, part_words
from damier.report.grid import MAX_RULES, cut_short
from damier.report.words import LabelStyle, part_labels

# Rules that the page shows without scripts.
SHOWN_RULES = 20
_RULE_LABEL = 80
# Of the interval whose lower end is the certainty of a rule: 95%, on one side.
_DEVIATIONS = 1.6448536269514722


def summarize_grid(
    grid: DataGrid,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe a grid as a plain dict; its rules come by falling support.

    ``{"level", "cost", "null_cost", "choice_cost", "choice_level", "cells", "possible_cells", "on_offer",
    "variables": [{"name", "parts", "bounds", "conditions": [{"words", "sql", "python"}, ...]}, ...],
    "query", "rules": [{"cell": [part, ...], "parts": [label, ...], "rows", "counts": [...]}, ...],
    "hidden_rules"}``

    Level and costs are those of the variables given: a grid over one variable has the level of its partition.
    The price of choosing the variables among those on offer is apart, in nats and as a share of the null
    cost: ``grid.level`` has paid it. Conditions are those of each part (see `damier.report.conditions`), None
    where there is none; ``query`` says that those of Python go into ``DataFrame.query``.

    Parameters
    ----------
    grid : DataGrid
    columns : mapping, optional
        By variable, its ``statistics``: columns of two values are shown as their values.
    labels : {"plain", "brackets"}
        How intervals are written.
    """
    statistics = {name: (columns or {}).get(name, {}).get("statistics") for name in grid.partitions}
    texts = [
        part_labels(partition, statistics[name], labels, room=_RULE_LABEL)
        for name, partition in grid.partitions.items()
    ]
    order = np.argsort(-grid.cells.sizes, kind="stable")[:MAX_RULES].tolist()
    rules = [
        {
            "cell": parts,
            "parts": [texts[k][part] for k, part in enumerate(parts)],
            "rows": int(grid.cells.sizes[cell]),
            "counts": grid.cells.counts[cell].tolist(),
        }
        for cell, parts in zip(order, grid.cells.parts[order].tolist(), strict=True)
    ]
    whole = float(part_costs(grid.cells.counts.sum(axis=0)[None]).sum())
    cost, null_cost = float(part_costs(grid.cells.counts).sum()), whole
    for partition in grid.partitions.values():
        cost += partition.cost - float(part_costs(partition.counts).sum())
        null_cost += partition.null_cost - whole
    n_chosen = len(grid.partitions)
    choice = float(log_binomial(grid.n_variables + n_chosen - 1, n_chosen)) if n_chosen else 0.0
    query = all(map(in_query, grid.partitions.values()))
    return {
        "level": max(0.0, 1.0 - cost / null_cost) if null_cost > 0 else 0.0,
        "cost": cost,
        "null_cost": null_cost,
        "choice_cost": choice,
        "choice_level": choice / null_cost if null_cost > 0 else 0.0,
        "cells": len(grid.cells),
        "possible_cells": grid.n_cells,
        "on_offer": grid.n_variables,
        "variables": [
            {
                "name": name,
                "parts": p.n_parts,
                **({"bounds": list(p.bounds)} if hasattr(p, "bounds") else {}),
                "conditions": conditions(p, statistics[name], query=query),
            }
            for name, p in grid.partitions.items()
        ],
        "query": query,
        "rules": rules,
        "hidden_rules": len(grid.cells) - len(rules),
    }


def conditions(
    partition: Any, statistics: Mapping[str, Any] | None, *, query: bool
) -> list[dict[str, str | None]]:
    """Write the conditions of all parts of a variable, as a rule has them."""
    return [
        {
            "words": part_words(partition, part, statistics, _RULE_LABEL),
            "sql": part_sql(partition, part),
            "python": part_python(partition, part, query=query),
        }
        for part in range(partition.n_parts)
    ]


def certainty(count: float, rows: float) -> float:
    """Return the share that a class has at least, 95% sure: the lower end of Wilson's interval.

    >>> round(certainty(9, 10), 3), round(certainty(90, 100), 3), certainty(0, 5)
    (0.652, 0.84, 0.0)
    """
    if rows <= 0:
        return 0.0
    share, z = count / rows, _DEVIATIONS * _DEVIATIONS / rows
    spread = math.sqrt(z * share * (1 - share) + z * z / 4)
    return max(0.0, (share + z / 2 - spread) / (1 + z))


def rule_class(counts: Sequence[int], of_all: Sequence[int]) -> int:
    """Return the class that a rule speaks of: the one whose share rises most above that of all rows.

    >>> rule_class([5, 5], [90, 10])
    1
    """
    rows = sum(counts)
    return max(range(len(counts)), key=lambda j: (counts[j] - rows * of_all[j] / max(sum(of_all), 1), -j))


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Cut and measure the rules of the grid; None if it was not sought."""
    grid = summary.get("grid")
    if grid is None:
        return None
    classes = shown_classes(dict(summary))
    rules = [_rule(rule, grid["variables"], classes) for rule in grid["rules"]]
    shown = rules[:SHOWN_RULES]
    # Where pairs were sought as well, their section says it of both.
    said = cut_short(summary) if summary.get("pairs") is None else ""
    return {
        **grid,
        "shown": shown,
        "later": rules[SHOWN_RULES:],
        "hidden": grid["cells"] - len(shown),
        "cut_short": said,
    }


def _rule(
    rule: Mapping[str, Any],
    variables: Sequence[Mapping[str, Any]],
    classes: ShownClasses,
) -> dict[str, Any]:
    rows, (name, count, of_class) = rule["rows"], _speaks_of(rule, classes)
    counts, share, base = classes.kept(rule["counts"]), count / rows, of_class / max(sum(classes.counts), 1)
    cell = rule.get("cell")
    if cell is None:  # a summary of an older version
        words = [f"{v['name']} in {label}" for v, label in zip(variables, rule["parts"], strict=True)]
    else:
        words = [v["conditions"][part]["words"] for v, part in zip(variables, cell, strict=True)]
    return {
        "words": words,
        "rows": rows,
        "counts": counts,
        "bars": class_bars(counts),
        "main": classes.main(rule["counts"]),
        "class": name,
        "share": share,
        "lift": share / base if base else 0.0,
        "certainty": certainty(count, rows),
    }


def _speaks_of(rule: Mapping[str, Any], classes: ShownClasses) -> tuple[str, int, int]:
    """Name the class that a rule speaks of, also one without a colour; its rows in the cell, and in all."""
    j = rule_class(rule["counts"], classes.counts)
    return classes.names[j].removesuffix(":"), rule["counts"][j], classes.counts[j]


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the rules for the script: parts as conditions in SQL and Python, cells with their counts."""
    grid = summary.get("grid")
    if grid is None or not grid["variables"] or not all("conditions" in v for v in grid["variables"]):
        return None
    held = {
        "conditions": [[[one["sql"], one["python"]] for one in v["conditions"]] for v in grid["variables"]],
        "query": grid["query"],
        "cells": grid["cells"],
    }
    if summary["target"].get("type") == "number":
        medians = [[rule["cell"], rule["rows"], rule["quantiles"][3]] for rule in grid["rules"]]
        return {**held, "rules": medians}
    classes = shown_classes(dict(summary))
    counts = [
        # Where some classes have no colour of their own, the one that a rule speaks of may be one of them.
        [
            rule["cell"],
            rule["rows"],
            classes.kept(rule["counts"]),
            *([_speaks_of(rule, classes)] if classes.n_others else []),
        ]
        for rule in grid["rules"]
    ]
    return {**held, "all": classes.kept(classes.counts), "rules": counts}
