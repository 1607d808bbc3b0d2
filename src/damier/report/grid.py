"""The best grid and the pairs that interact, as parts of a report's summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from damier.criteria import log_binomial, part_costs
from damier.intake.printable import printable
from damier.models.grid import DataGrid
from damier.report.words import LabelStyle, part_labels

MAX_RULES = 200
MAX_PAIRS = 100
_RULE_LABEL = 80
_LEAST_GAIN = 1e-9


def summarize_grid(
    grid: DataGrid,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe a grid as a plain dict; its rules come by falling support.

    ``{"level", "cost", "null_cost", "choice_cost", "choice_level", "cells", "possible_cells", "on_offer",
    "variables": [{"name", "parts", "bounds"}, ...],
    "rules": [{"parts": [label, ...], "rows", "counts": [...]}, ...], "hidden_rules"}``

    Level and costs are those of the variables given: a grid over one variable has the level of its partition.
    The price of choosing the variables among those on offer is apart, in nats and as a share of the null
    cost: ``grid.level`` has paid it.

    Parameters
    ----------
    grid : DataGrid
    columns : mapping, optional
        By variable, its ``statistics``: columns of two values are shown as their values.
    labels : {"plain", "brackets"}
        How intervals are written.
    """
    columns = columns or {}
    texts = [
        part_labels(partition, columns.get(name, {}).get("statistics"), labels, room=_RULE_LABEL)
        for name, partition in grid.partitions.items()
    ]
    order = np.argsort(-grid.cells.sizes, kind="stable")
    rules = [
        {
            "parts": [texts[k][part] for k, part in enumerate(grid.cells.parts[cell].tolist())],
            "rows": int(grid.cells.sizes[cell]),
            "counts": grid.cells.counts[cell].tolist(),
        }
        for cell in order[:MAX_RULES].tolist()
    ]
    whole = float(part_costs(grid.cells.counts.sum(axis=0)[None]).sum())
    cost, null_cost = float(part_costs(grid.cells.counts).sum()), whole
    for partition in grid.partitions.values():
        cost += partition.cost - float(part_costs(partition.counts).sum())
        null_cost += partition.null_cost - whole
    n_chosen = len(grid.partitions)
    choice = float(log_binomial(grid.n_variables + n_chosen - 1, n_chosen)) if n_chosen else 0.0
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
            {"name": name, "parts": p.n_parts, **({"bounds": list(p.bounds)} if hasattr(p, "bounds") else {})}
            for name, p in grid.partitions.items()
        ],
        "rules": rules,
        "hidden_rules": len(grid.cells) - len(rules),
    }


def summarize_pairs(
    pairs: Mapping[str, Sequence[Any]],
    tried: Sequence[str],
    levels: Mapping[str, float] | None = None,
    rows: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Describe what `damier.rank_pairs` found: the pairs that explain more together than apart.

    ``{"tried": [name, ...], "rows", "of_rows", "pairs", "done", "not_done": [[name, name], ...],
    "gaining": [{"first", "second", "level", "first_level", "second_level", "gain"}, ...]}``

    Parameters
    ----------
    pairs : dict of lists
        As ``rank_pairs(..., backend="dict")`` gives it.
    tried : sequence of str
        Names of the variables whose pairs were looked at.
    levels : mapping of str to float, optional
        The levels of the variables on all rows, where the gains were measured on a sample: the level of a
        pair is then an estimate, the sum of the two and the gain.
    rows : tuple of int, optional
        Rows that the gains were measured on, and rows in all.
    """
    listed = [dict(zip(pairs, row, strict=True)) for row in zip(*pairs.values(), strict=True)]
    gaining = []
    for pair in [one for one in listed if one["done"] and one["gain"] > _LEAST_GAIN][:MAX_PAIRS]:
        if levels is not None:
            pair["first_level"], pair["second_level"] = levels[pair["first"]], levels[pair["second"]]
            pair["level"] = pair["first_level"] + pair["second_level"] + pair["gain"]
        gaining.append({key: value for key, value in pair.items() if key != "done"})
    not_done = [[one["first"], one["second"]] for one in listed if not one["done"]]
    return {
        "tried": [str(name) for name in tried],
        **({} if rows is None else {"rows": rows[0], "of_rows": rows[1]}),
        "pairs": len(listed),
        "done": len(listed) - len(not_done),
        "not_done": not_done,
        "gaining": gaining,
    }


def cut_short(summary: Mapping[str, Any]) -> str:
    """Say which of the searches for a grid and for pairs did not come to their end; nothing if both did."""
    ended = summary.get("ended", {})
    sections = [one for one in ("grid", "pairs") if ended.get(one, "complete") != "complete"]
    if not sections:
        return ""
    words = {"grid": "a grid", "pairs": "pairs"}
    if (pairs := summary.get("pairs")) is not None:
        words["pairs"] += f" ({pairs['done']:,} of {pairs['pairs']:,} done)"
    by_hand = any(ended[one] == "interrupted" for one in sections)
    searches = " and for ".join(words[one] for one in sections)
    sentence = f"{'Ctrl-C' if by_hand else 'Time'} ended the search for {searches}"
    if by_hand:
        return sentence + "."
    longer = max(20, round(6 * summary.get("grid_seconds", 10)))
    return f"{sentence}: --grid {longer} (grid_seconds={longer} in Python) gives it more."


def pair_text(pair: Mapping[str, Any]) -> str:
    """Say what a pair explains; the figures add up as they are shown."""
    together, first, second = (round(pair[key], 4) for key in ("level", "first_level", "second_level"))
    gain = together - first - second
    return f"level {together:.4f}: {first:.4f} and {second:.4f} alone, {gain:.4f} more together"


def grid_lines(summary: Mapping[str, Any]) -> list[Text]:
    """Say in a line or two what the best grid and the best pair are; nothing when they were not sought."""
    said = []
    grid = summary.get("grid")
    if grid is not None and not grid["variables"]:
        said.append(Text("no grid over several variables informs more than none"))
    elif grid is not None:
        crossed = " x ".join(f"{v['name']} ({v['parts']:,})" for v in grid["variables"])
        line = Text("best grid: ").append(printable(crossed), style="bold")
        line.append(f", level {grid['level']:.4f}, {grid['cells']:,} cells ")
        line.append(f"(choosing {len(grid['variables'])} ")
        said.append(line.append(f"of {grid['on_offer']:,} variables costs {grid['choice_level']:.4f} of it)"))
    for pair in summary.get("pairs", {"gaining": []})["gaining"][:1]:
        names = printable(f"{pair['first']} x {pair['second']}")
        line = Text("strongest interaction: ").append(names, style="bold")
        said.append(line.append(f", {pair_text(pair)}{sampled_text(summary['pairs'])}"))
    if words := cut_short(summary):
        said.append(Text(words, style="yellow"))
    return said


def sampled_text(section: Mapping[str, Any]) -> str:
    """Say on how many rows something was measured, where not on all.

    >>> sampled_text({"rows": 20_000, "of_rows": 50_000}), sampled_text({"rows": 9, "of_rows": 9})
    (' (measured on 20,000 of 50,000 rows)', '')
    """
    rows, of_rows = section.get("rows", 0), section.get("of_rows", 0)
    return f" (measured on {rows:,} of {of_rows:,} rows)" if rows < of_rows else ""
