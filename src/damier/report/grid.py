"""The best grid and the pairs that interact, as parts of a report's summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from damier.intake.printable import printable
from damier.models.grid import DataGrid

MAX_RULES = 200
MAX_PAIRS = 100


def summarize_grid(grid: DataGrid) -> dict[str, Any]:
    """Describe a grid as a plain dict; its rules come by falling support.

    ``{"level", "cost", "null_cost", "cells", "possible_cells", "variables": [{"name", "parts"}, ...],
    "rules": [{"parts": [label, ...], "rows", "counts": [...]}, ...], "hidden_rules"}``
    """
    labels = [partition.labels for partition in grid.partitions.values()]
    order = np.argsort(-grid.cells.sizes, kind="stable")
    rules = [
        {
            "parts": [str(labels[k][part]) for k, part in enumerate(grid.cells.parts[cell].tolist())],
            "rows": int(grid.cells.sizes[cell]),
            "counts": grid.cells.counts[cell].tolist(),
        }
        for cell in order[:MAX_RULES].tolist()
    ]
    return {
        "level": float(grid.level),
        "cost": float(grid.cost),
        "null_cost": float(grid.null_cost),
        "cells": len(grid.cells),
        "possible_cells": grid.n_cells,
        "variables": [{"name": name, "parts": p.n_parts} for name, p in grid.partitions.items()],
        "rules": rules,
        "hidden_rules": len(grid.cells) - len(rules),
    }


def summarize_pairs(pairs: Mapping[str, Sequence[Any]], tried: Sequence[str]) -> dict[str, Any]:
    """Describe what `damier.rank_pairs` found: the pairs that know more than their parts.

    Parameters
    ----------
    pairs : dict of lists
        As ``rank_pairs(..., backend="dict")`` gives it.
    tried : sequence of str
        Names of the variables whose pairs were looked at.
    """
    rows = zip(*(pairs[key] for key in _PAIR_KEYS), strict=True)
    gaining = [dict(zip(_PAIR_KEYS, row, strict=True)) for row in rows if row[-1] > 1e-9]
    return {"tried": [str(name) for name in tried], "gaining": gaining[:MAX_PAIRS]}


_PAIR_KEYS = ("first", "second", "level", "first_level", "second_level", "gain")


def cut_short(summary: Mapping[str, Any]) -> str:
    """Say which of the searches for a grid and for pairs did not come to their end; nothing if both did."""
    ended = summary.get("ended", {})
    cut = [
        f"the search for {words} was ended by {_ENDS[ended[section]]}"
        for section, words in (("grid", "a grid"), ("pairs", "pairs"))
        if ended.get(section, "complete") != "complete"
    ]
    if not cut:
        return ""
    sentence = " and ".join(cut) + ": more time (--grid SECONDS) may find more."
    return sentence[0].upper() + sentence[1:]


_ENDS = {"time limit": "its time limit", "interrupted": "Ctrl-C"}


def grid_lines(summary: Mapping[str, Any]) -> list[Text]:
    """Say in a line or two what the best grid and the best pair are; nothing when they were not sought."""
    said = []
    grid = summary.get("grid")
    if grid is not None and not grid["variables"]:
        said.append(Text("no grid over several variables informs more than none"))
    elif grid is not None:
        crossed = " x ".join(f"{v['name']} ({v['parts']})" for v in grid["variables"])
        line = Text("best grid: ").append(printable(crossed), style="bold")
        said.append(line.append(f", level {grid['level']:.4f}, {grid['cells']:,} cells"))
    for pair in summary.get("pairs", {"gaining": []})["gaining"][:1]:
        line = Text("strongest interaction: ").append(
            printable(f"{pair['first']} x {pair['second']}"), style="bold"
        )
        said.append(line.append(f", level {pair['level']:.4f}, {pair['gain']:.4f} beyond its parts"))
    if words := cut_short(summary):
        said.append(Text(words, style="dim"))
    return said
