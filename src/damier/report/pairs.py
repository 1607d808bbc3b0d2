"""Pairs of variables: what two explain beyond each alone, their grids, and their section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from damier.fit.grids import PairGrid
from damier.report.classes import ShownClasses, shown_classes
from damier.report.grid import cut_short, pair_text, sampled_text
from damier.report.words import LabelStyle, part_labels, percent

MAX_PAIRS = 100
# Grids written out on the page for readers without scripts.
SHOWN_GRIDS = 3
# Characters of a part's label in a grid, about.
_LABEL = 60
# Numbers kept of all grids together; those of the pairs of least gain go without theirs.
_MOST_NUMBERS = 100_000
_LEAST_GAIN = 1e-9


def summarize_pairs(
    pairs: Mapping[str, Sequence[Any]],
    tried: Sequence[str],
    levels: Mapping[str, float] | None = None,
    rows: tuple[int, int] | None = None,
    grids: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Describe what `damier.rank_pairs` found: the pairs that explain more together than apart.

    ``{"tried": [name, ...], "rows", "of_rows", "pairs", "done", "not_done": [[name, name], ...],
    "gaining": [{"first", "second", "level", "first_level", "second_level", "gain"}, ...],
    "grids": [{"first", "second", "level", "gain", "first_parts": [label, ...], "second_parts": [...],
    "cells": [[first part, second part, rows of each class, ...], ...]}, ...]}``

    Grids are those of all pairs done, by falling gain; the last of very many are without parts and cells. Of
    more than ten classes, cells count those that the page shows and the others together.

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
    grids : mapping, optional
        By the names of two variables, their grid, as `pair_grid` describes it.
    """
    listed = [dict(zip(pairs, row, strict=True)) for row in zip(*pairs.values(), strict=True)]
    gaining = []
    for pair in [one for one in listed if one["done"] and one["gain"] > _LEAST_GAIN][:MAX_PAIRS]:
        if levels is not None:
            pair["first_level"], pair["second_level"] = levels[pair["first"]], levels[pair["second"]]
            pair["level"] = pair["first_level"] + pair["second_level"] + pair["gain"]
        gaining.append({key: value for key, value in pair.items() if key != "done"})
    kept, numbers = [], 0
    for one in listed if grids is not None else ():
        if not one["done"]:
            continue
        grid = (grids or {}).get((one["first"], one["second"]), {})
        numbers += sum(map(len, grid.get("cells", ())))
        level = one["gain"] + (
            one["first_level"] + one["second_level"]
            if levels is None
            else levels[one["first"]] + levels[one["second"]]
        )
        names = {"first": one["first"], "second": one["second"], "level": level, "gain": one["gain"]}
        kept.append({**names, **(grid if numbers <= _MOST_NUMBERS else {})})
    not_done = [[one["first"], one["second"]] for one in listed if not one["done"]]
    return {
        "tried": [str(name) for name in tried],
        **({} if rows is None else {"rows": rows[0], "of_rows": rows[1]}),
        "pairs": len(listed),
        "done": len(listed) - len(not_done),
        "not_done": not_done,
        "gaining": gaining,
        **({} if grids is None else {"grids": kept}),
    }


def pair_grid(
    grid: PairGrid,
    classes: ShownClasses,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe the grid of a pair: the labels of its parts, and the rows of each class in its cells."""
    first, second = (
        part_labels(p, (columns or {}).get(p.name, {}).get("statistics"), labels, room=_LABEL)
        for p in grid.partitions
    )
    cells = zip(grid.cells.parts.tolist(), grid.cells.counts.tolist(), strict=True)
    return {
        "first_parts": first,
        "second_parts": second,
        "cells": [[*parts, *classes.kept(counts)] for parts, counts in cells],
    }


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Lay out the matrix of the pairs and the grids of largest gain; None if pairs were not sought."""
    pairs = summary.get("pairs")
    if pairs is None:
        return None
    classes = shown_classes(dict(summary))
    grids = pairs.get("grids") or []
    best = [grid for grid in grids if grid["gain"] > _LEAST_GAIN and "cells" in grid][:SHOWN_GRIDS]
    return {
        **pairs,
        "gaining": [(p["first"], p["second"], pair_text(p)) for p in pairs["gaining"][:8]],
        "not_done": [f"{first} × {second}" for first, second in pairs["not_done"]],
        "sampled": sampled_text(pairs),
        "cut_short": cut_short(summary),
        "matrix": _matrix(pairs, grids, summary["variables"]) if "grids" in pairs else None,
        "tables": [grid_table(grid, classes, default_class(classes)) for grid in best],
        "bare": sum("cells" not in grid for grid in grids),
        "look": classes.options,
        "first": default_class(classes),
    }


def default_class(classes: ShownClasses) -> int:
    """Return the class that is looked at first: the rarer of two, else the most frequent of those shown."""
    counts = classes.kept(classes.counts)
    if len(counts) == 2:
        return counts.index(min(counts))
    return counts.index(max(counts[: len(classes.places)]))


def _matrix(
    pairs: Mapping[str, Any], grids: Sequence[Mapping[str, Any]], variables: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Write the matrix of gains: one line per variable, on the diagonal its own level."""
    levels = {v["name"]: v["level"] for v in variables}
    gains = {(g["first"], g["second"]): g["gain"] for g in [*pairs["gaining"], *grids]}
    most = max((abs(gain) for gain in gains.values()), default=0.0)
    lines = []
    for first in pairs["tried"]:
        cells = []
        for second in pairs["tried"]:
            gain = gains.get((first, second), gains.get((second, first)))
            if first == second:
                cells.append({"kind": "own", "text": f"{levels.get(first, 0.0):.4f}"})
            elif gain is None:
                cells.append({"kind": "none", "text": "?"})
            else:
                cells.append({"kind": shade(gain / most if most else 0.0), "text": signed(gain)})
        lines.append({"name": first, "cells": cells})
    return lines


def signed(gain: float) -> str:
    """Write a gain with its sign.

    >>> signed(0.01234), signed(-0.00001), signed(-0.2)
    ('+0.0123', '0.0000', '−0.2000')
    """
    text = f"{abs(gain):.4f}"
    if text == "0.0000":
        return text
    return ("+" if gain > 0 else "−") + text


def shade(value: float) -> str:
    """Name the shade of a value between -1 and 1: ``p4`` to ``p1``, ``z`` about zero, ``m1`` to ``m4``.

    >>> shade(1.0), shade(0.3), shade(0.0), shade(-0.6)
    ('p4', 'p2', 'z', 'm3')
    """
    step = min(4, round(4 * min(1.0, abs(value)) + 0.49) if abs(value) > 1e-3 else 0)
    return "z" if step == 0 else f"{'p' if value > 0 else 'm'}{step}"


def grid_table(grid: Mapping[str, Any], classes: ShownClasses, j: int) -> dict[str, Any]:
    """Lay out a grid for a class: its share in each cell, in each part, and in all."""
    n_first, n_second = len(grid["first_parts"]), len(grid["second_parts"])
    counts = [[[0, 0] for _ in range(n_second + 1)] for _ in range(n_first + 1)]
    for a, b, *held in grid["cells"]:
        for row in (a, n_first):
            for column in (b, n_second):
                counts[row][column][0] += sum(held)
                counts[row][column][1] += held[j]
    rows, own = counts[n_first][n_second]
    base = own / rows if rows else 0.0
    lines = [
        {"label": label, "cells": [_cell(n, of_class, base) for n, of_class in line]}
        for label, line in zip([*grid["first_parts"], "all"], counts, strict=True)
    ]
    return {
        "first": grid["first"],
        "second": grid["second"],
        "text": f"{signed(grid['gain'])} beyond both alone",
        "columns": [*grid["second_parts"], "all"],
        "lines": lines,
        "class": classes.labels[j],
    }


def _cell(rows: int, of_class: int, base: float) -> dict[str, Any]:
    if rows == 0:
        return {"kind": "empty", "share": "", "rows": 0}
    share = of_class / rows
    # As far from the share of all rows as it can be, upwards or downwards, is the darkest.
    room = (1 - base) if share > base else base
    return {"kind": shade((share - base) / room if room else 0.0), "share": percent(share), "rows": rows}


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the grids of all pairs for the script, and the parts that each variable has alone."""
    pairs = summary.get("pairs")
    if pairs is None or not pairs.get("grids"):
        return None
    classes, names = shown_classes(dict(summary)), pairs["tried"]
    place = {name: k for k, name in enumerate(names)}
    by_name = {v["name"]: v for v in summary["variables"]}
    own = []
    for name in names:
        table = by_name[name]["table"]
        own.append([[part["label"] for part in table], [classes.kept(part["counts"]) for part in table]])
    grids = []
    for grid in pairs["grids"]:
        a, b = place[grid["first"]], place[grid["second"]]
        parts = [grid.get("first_parts"), grid.get("second_parts")]
        # Most grids have the parts of a variable alone.
        held = [None if labels == own[k][0] else labels for k, labels in zip((a, b), parts, strict=True)]
        grids.append([a, b, grid["gain"], grid["level"], *held, grid.get("cells")])
    return {
        "names": names,
        "levels": [by_name[name]["level"] for name in names],
        "own": own,
        "grids": grids,
    }
