"""Pairs of variables: what two explain beyond each alone, their grids, and their section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.fit.grids import PairGrid
from damier.report.classes import ShownClasses, shown_classes
from damier.report.grid import cut_short, pair_text, sampled_text
from damier.report.words import LabelStyle, number, part_labels, percent

MAX_PAIRS = 100
# Grids written out on the page for readers without scripts.
SHOWN_GRIDS = 3
# Characters of a part's label in a grid, about.
_LABEL = 60
# Numbers kept of all grids together; those of the pairs of least gain go without theirs.
_MOST_NUMBERS = 100_000
_LEAST_GAIN = 1e-9
# What a cell of a numeric target holds, after its two parts.
HELD = ("rows", "mean", "5%", "25%", "median", "75%", "95%")
# Of a number of no more values, means are shown first.
FEW_VALUES = 20


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
    more than ten classes, cells count those that the page shows and the others together. Those of a numeric
    target hold `HELD` in place of classes, and those of its rows and columns and of all follow: the place of
    "all" is the number of parts. ``intervals`` are those of the target, ``information`` what the cells tell
    of them in nats.

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
    cells = zip(grid.cells.parts.tolist(), grid.cells.counts.tolist(), strict=True)
    return {
        **_grid_parts(grid, columns, labels),
        "cells": [[*parts, *classes.kept(counts)] for parts, counts in cells],
    }


def number_pair_grid(
    grid: PairGrid,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    labels: LabelStyle = "plain",
) -> dict[str, Any]:
    """Describe the grid of a pair against a number: its parts, and the target in its cells and parts."""
    target, (first, second) = grid.target, grid.partitions
    assert target is not None
    assert first.target is not None
    assert second.target is not None
    counts = grid.cells.counts
    n_first, n_second = first.n_parts, second.n_parts
    places = [
        *grid.cells.parts.tolist(),
        *([part, n_second] for part in range(n_first)),
        *([n_first, part] for part in range(n_second)),
        [n_first, n_second],
    ]
    rows = [counts.sum(axis=1), first.counts.sum(axis=1), second.counts.sum(axis=1), [counts.sum()]]
    held = zip(
        places,
        np.concatenate(rows).tolist(),
        [*target.means, *first.target.means, *second.target.means, target.mean],
        [*target.quantiles, *first.target.quantiles, *second.target.quantiles, target.overall],
        strict=True,
    )
    return {
        **_grid_parts(grid, columns, labels),
        "intervals": counts.shape[1],
        "information": _information(counts),
        "cells": [[*place, *held_of_number(n, mean, quantiles)] for place, n, mean, quantiles in held],
    }


def held_of_number(rows: int, mean: float, quantiles: Sequence[float]) -> list[float]:
    """Return what a cell of a numeric target holds, as `HELD` names it, in six digits."""
    return [rows, *(float(f"{value:.6g}") for value in (mean, *quantiles[1:6]))]


def _grid_parts(
    grid: PairGrid, columns: Mapping[str, Mapping[str, Any]] | None, labels: LabelStyle
) -> dict[str, list[str]]:
    first, second = (
        part_labels(p, (columns or {}).get(p.name, {}).get("statistics"), labels, room=_LABEL)
        for p in grid.partitions
    )
    return {"first_parts": first, "second_parts": second}


def _information(counts: Any) -> float:
    """Mutual information of the rows and columns of a table, in nats."""
    shares = counts / counts.sum()
    apart = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0)
    held = shares > 0
    return float((shares[held] * np.log(shares[held] / apart[held])).sum())


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Lay out the matrix of the pairs and the grids of largest gain; None if pairs were not sought."""
    pairs = summary.get("pairs")
    if pairs is None:
        return None
    grids = pairs.get("grids") or []
    best = [grid for grid in grids if grid["gain"] > _LEAST_GAIN and "cells" in grid][:SHOWN_GRIDS]
    shown: dict[str, Any] = {
        **pairs,
        "gaining": [(p["first"], p["second"], pair_text(p)) for p in pairs["gaining"][:8]],
        "not_done": [f"{first} × {second}" for first, second in pairs["not_done"]],
        "sampled": sampled_text(pairs),
        "cut_short": cut_short(summary),
        "matrix": _matrix(pairs, grids, summary["variables"]) if "grids" in pairs else None,
        "bare": sum("cells" not in grid for grid in grids),
    }
    if summary["target"].get("type") == "number":
        measure = number_measure(summary["target"])
        return {**shown, "tables": [number_table(grid, measure) for grid in best], "measure": measure}
    classes = shown_classes(dict(summary))
    first = default_class(classes)
    tables = [grid_table(grid, classes, first) for grid in best]
    return {**shown, "tables": tables, "look": classes.options, "first": first}


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
    cells = [[_cell(n, of_class, base) for n, of_class in line] for line in counts]
    return {**_table(grid, cells), "class": classes.labels[j]}


def number_measure(target: Mapping[str, Any]) -> str:
    """Say what is shown first of a number: its median, or its mean where medians are all alike."""
    return "mean" if target["distinct"] <= FEW_VALUES else "median"


def number_table(grid: Mapping[str, Any], measure: str = "median") -> dict[str, Any]:
    """Lay out a grid for a number: its mean or median in each cell, in each part, and in all."""
    n_first, n_second = len(grid["first_parts"]), len(grid["second_parts"])
    empty = {"kind": "empty", "text": "", "rows": 0}
    cells = [[empty] * (n_second + 1) for _ in range(n_first + 1)]
    whole, k = grid["cells"][-1][2:], HELD.index(measure)
    for a, b, *held in grid["cells"]:
        kind = shade(far_from_all(held[k], whole, k))
        cells[a][b] = {"kind": kind, "text": number(held[k]), "rows": held[0]}
    return _table(grid, cells)


def far_from_all(value: float, whole: Sequence[float], k: int) -> float:
    """Say how far a value is from that of all rows: 1 at their 95% quantile, -1 at their 5% quantile."""
    away = value - whole[k]
    room = whole[HELD.index("95%" if away > 0 else "5%")] - whole[k]
    return float(np.sign(away)) * (abs(away / room) if room else 1.0)


def _table(grid: Mapping[str, Any], cells: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    lines = zip([*grid["first_parts"], "all"], cells, strict=True)
    return {
        "first": grid["first"],
        "second": grid["second"],
        "text": f"{signed(grid['gain'])} beyond both alone",
        "columns": [*grid["second_parts"], "all"],
        "lines": [{"label": label, "cells": line} for label, line in lines],
    }


def _cell(rows: int, of_class: int, base: float) -> dict[str, Any]:
    if rows == 0:
        return {"kind": "empty", "text": "", "rows": 0}
    share = of_class / rows
    # As far from the share of all rows as it can be, upwards or downwards, is the darkest.
    room = (1 - base) if share > base else base
    return {"kind": shade((share - base) / room if room else 0.0), "text": percent(share), "rows": rows}


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the grids of all pairs for the script, and the parts that each variable has alone."""
    pairs = summary.get("pairs")
    if pairs is None or not pairs.get("grids"):
        return None
    names, target = pairs["tried"], summary["target"]
    of_number = target.get("type") == "number"
    classes = None if of_number else shown_classes(dict(summary))
    place = {name: k for k, name in enumerate(names)}
    by_name = {v["name"]: v for v in summary["variables"]}

    def held(part: Mapping[str, Any]) -> list[float]:
        if classes is None:
            return held_of_number(part["rows"], part["mean"], part["quantiles"])
        return list(classes.kept(part["counts"]))

    own = []
    for name in names:
        table = by_name[name]["table"]
        own.append([[part["label"] for part in table], [held(part) for part in table]])
    grids = []
    for grid in pairs["grids"]:
        a, b = place[grid["first"]], place[grid["second"]]
        parts = [grid.get("first_parts"), grid.get("second_parts")]
        # Most grids have the parts of a variable alone.
        others = [None if labels == own[k][0] else labels for k, labels in zip((a, b), parts, strict=True)]
        known = [[grid.get("information"), grid.get("intervals")]] if of_number else []
        grids.append([a, b, grid["gain"], grid["level"], *others, grid.get("cells"), *known])
    return {
        "names": names,
        "levels": [by_name[name]["level"] for name in names],
        "own": own,
        "grids": grids,
        **({"all": held({"rows": summary["dataset"]["rows"], **target})} if of_number else {}),
    }
