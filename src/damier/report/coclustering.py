"""A coclustering as a plain dict, and the dict as one self-contained HTML page.

The page holds the clusters found, their blocks and the merges, so that any branch can be folded in it. What
is drawn and written without scripts is its first view: few enough clusters to be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.criteria import log_bell_table
from damier.intake.table import FloatArray, IntArray
from damier.models.coclustering import CoclusterAxis, CoclusteringModel
from damier.report.made import Made
from damier.report.page import page_environment, verbatim
from damier.report.words import percent, shortened
from damier.version import __version__

CoclusteringSummary = dict[str, Any]

MOST_BLOCKS = 250_000  # the page holds the blocks themselves: about a megabyte
TYPICAL_VALUES = 12
FIRST_CLUSTERS = 60  # rows and columns together, when the page opens
MOST_NAME = 80
VALUES_BUDGET = 200_000  # characters spent on the values of one side that search finds
MOST_WORDS = 24  # blocks in words

# The drawing without scripts, in its own units: what the labels take, the matrix, a shade per step of lift.
_LEFT, _TOP, _WIDTH, _RIGHT, _LINE = 200, 120, 856, 64, 22
_OPACITIES = (0, 0.1, 0.2, 0.3, 0.42, 0.55, 0.7, 0.85, 1)
_SHADES = len(_OPACITIES) - 1


def summarize_coclustering(model: CoclusteringModel, dataset: str) -> CoclusteringSummary:
    """Describe a coclustering in plain types, ready for the page or for JSON.

    A coclustering of more than `MOST_BLOCKS` blocks is simplified along its hierarchy first, and says so.

    Parameters
    ----------
    model : CoclusteringModel
    dataset : str
        Name of the data, for the title.
    """
    found = (model.n_row_clusters, model.n_column_clusters)
    shown = _at_most(model, np.multiply, MOST_BLOCKS)
    first = _at_most(shown, np.add, FIRST_CLUSTERS)
    path = shown.hierarchy(backend="dict")
    sides = (shown.rows, shown.columns)
    return {
        "damier": __version__,
        "dataset": dataset,
        "instances": model.n_instances,
        "cost": model.cost,
        "null_cost": model.null_cost,
        "best_cost": model.best_cost,
        "level": model.level,
        "found": found,
        "rows": _axis(shown, shown.rows, 1, VALUES_BUDGET),
        "columns": _axis(shown, shown.columns, 0, VALUES_BUDGET),
        "cells": shown.cells.tolist(),
        "merges": [
            [int(axis), int(kept), int(gone)]
            for axis, kept, gone in zip(shown.merges.axes, shown.merges.kept, shown.merges.gone, strict=True)
        ],
        "information": path["information"],
        # what so many clusters of a side cost: with the blocks, all it takes to price any fold
        "log_partitions": [
            log_bell_table(int((side.labels >= 0).sum()), side.n_clusters)[1:].tolist() for side in sides
        ],
        "first": {
            "merges": sum(shown.cells.shape) - sum(first.cells.shape),
            "information": first.information,
            "rows": _axis(first, first.rows, 1),
            "columns": _axis(first, first.columns, 0),
            "cells": first.cells.tolist(),
        },
    }


def render_coclustering(summary: CoclusteringSummary, *, made: Made | None = None) -> str:
    """Write the page of a summary: block matrix with its trees, blocks in words, lists of typical values.

    Parameters
    ----------
    summary : dict
        As `summarize_coclustering` makes it.
    made : dict of str, optional
        How the page was made, as `damier.report.made.how_made` says it.
    """
    first = summary["first"]
    data = {
        "rows": _terse(summary["rows"]),
        "columns": _terse(summary["columns"]),
        "cells": _without_zeros([n for line in summary["cells"] for n in line]),
        "merges": summary["merges"],
        "information": [round(share, 5) for share in summary["information"]],
        "bells": [[round(v, 6) for v in side] for side in summary["log_partitions"]],
        "gain": summary["null_cost"] - summary["best_cost"],
        "first": first["merges"],
        "dataset": summary["dataset"],
        "names": {},
    }
    labels = [[_label(cluster) for cluster in first[side]["clusters"]] for side in ("rows", "columns")]
    cells = np.asarray(first["cells"])
    page = (
        page_environment()
        .get_template("coclustering.html")
        .render(
            style=verbatim("page.css", "coclustering.css"),
            script=verbatim("core.js", "coclustering.js"),
            summary=summary,
            made=made or {},
            sentences=_sentences(summary, cells, labels),
            drawing=_drawing(cells, labels),
            words=_blocks_in_words(cells, labels),
            ramp=[
                {"kind": "cw"[k > 0], "opacity": _OPACITIES[abs(k)], "d": f"M{65 + 8 * k - 4} 0h8v10h-8z"}
                for k in range(-_SHADES, _SHADES + 1)
            ],
            lists=[(side, first[side], _by_information(first[side])) for side in ("rows", "columns")],
            data=data,
        )
    )
    return page if page.endswith("\n") else page + "\n"


def block_words(count: int, expected: float) -> str:
    """Say how a block compares with independence.

    >>> block_words(120, 39.2), block_words(10, 40.0), block_words(41, 40.0)
    ('3.1 times as many as expected', '4.0 times fewer than expected', 'about as many as expected')
    """
    if count == 0:
        return "none at all" if expected >= 0.5 else "none, as expected"
    ratio = count / expected
    if 0.95 < ratio < 1.05:
        return "about as many as expected"
    if ratio > 1:
        return f"{_times(ratio)} times as many as expected"
    return f"{_times(1 / ratio)} times fewer than expected"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def _expected_text(expected: float) -> str:
    return f"{expected:.1f}" if expected < 9.95 else f"{expected:,.0f}"


def _at_most(model: CoclusteringModel, size: Any, most: int) -> CoclusteringModel:
    """Merge along the hierarchy until rows and columns are at most so many by `size`, two by two at least."""
    path = model.hierarchy(backend="dict")
    sizes = size(path["n_row_clusters"], path["n_column_clusters"])
    fits = np.flatnonzero(sizes <= most)
    step = int(fits[0]) if len(fits) else len(sizes) - 1
    if step == 0:
        return model
    return model.simplify(path["n_row_clusters"][step], path["n_column_clusters"][step])


def _axis(model: CoclusteringModel, side: CoclusterAxis, along: int, budget: int = 0) -> dict[str, Any]:
    """Clusters of a side with their most typical values, then the others that the budget lets in."""
    totals, worth, sizes = model.cells.sum(axis=along), model.contributions.sum(axis=along), side.sizes()
    held = np.flatnonzero(side.labels >= 0)
    listed = _listed(side, held, budget)
    # members of all clusters at once, the most typical first, as `CoclusterAxis.members` has them
    order = held[np.lexsort((held, -side.totals[held], -side.typicality[held], side.labels[held]))]
    members = np.split(order, np.cumsum(sizes)[:-1])
    clusters: list[dict[str, Any]] = []
    for cluster in range(side.n_clusters):
        typical, others = members[cluster][:TYPICAL_VALUES], members[cluster][TYPICAL_VALUES:]
        clusters.append(
            {
                "values": int(sizes[cluster]),
                "instances": int(totals[cluster]),
                "information": float(worth[cluster]),
                "typical": [
                    [_text(side.value(v)), int(side.totals[v]), round(float(side.typicality[v]), 3)]
                    for v in typical.tolist()
                ],
                "others": [_text(side.value(v)) for v in others[listed[others]].tolist()],
            }
        )
    shown = sum(len(c["typical"]) + len(c["others"]) for c in clusters)
    return {"name": side.name, "values": len(held), "listed": shown, "clusters": clusters}


def _listed(side: CoclusterAxis, held: IntArray, budget: int) -> Any:
    """Mark the most frequent values whose names fit into a budget of characters."""
    listed = np.zeros(len(side.labels), dtype=bool)
    if budget:
        frequent = held[np.argsort(-side.totals[held], kind="stable")][: budget // 4]
        lengths = np.array([3 + len(_text(side.value(v))) for v in frequent.tolist()], dtype=np.int64)
        listed[frequent[np.cumsum(lengths) <= budget]] = True
    return listed


def _terse(axis: dict[str, Any]) -> dict[str, Any]:
    clusters = [[c["values"], c["instances"], c["typical"], c["others"]] for c in axis["clusters"]]
    return {"name": axis["name"], "values": axis["values"], "clusters": clusters}


def _without_zeros(cells: list[int]) -> list[int]:
    """Write each run of zeros as its length, below zero."""
    written: list[int] = []
    for n in cells:
        if n:
            written.append(n)
        elif written and written[-1] < 0:
            written[-1] -= 1
        else:
            written.append(-1)
    return written


def _by_information(axis: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(axis["clusters"], key=lambda cluster: -cluster["information"])


def _label(cluster: dict[str, Any]) -> str:
    """Name a cluster by its most typical values."""
    names = ", ".join(shortened(name, 24) for name, _, _ in cluster["typical"][:3])
    return names + (", …" if cluster["values"] > 3 else "")


def _expected(cells: IntArray) -> FloatArray:
    return np.outer(cells.sum(axis=1), cells.sum(axis=0)) / max(int(cells.sum()), 1)


def _blocks_in_words(cells: IntArray, labels: list[list[str]], keep: Any = True) -> list[dict[str, str]]:
    """Write the blocks, of those kept, that lie furthest from independence, by what that says in nats."""
    expected = _expected(cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(cells > 0, cells * np.log(cells / expected), 0.0) - cells + expected
    if cells.size == 1:
        return []
    # rounded: sums of the page's script may differ in the last digit, and must give the same order
    order = np.argsort(-np.round(np.where(keep, distance, 0.0).ravel(), 6), kind="stable")[:MOST_WORDS]
    return [
        {
            "rows": labels[0][i],
            "columns": labels[1][j],
            "words": block_words(int(cells[i, j]), float(expected[i, j])),
            "count": f"{int(cells[i, j]):,}",
            "expected": _expected_text(float(expected[i, j])),
        }
        for i, j in zip(*np.unravel_index(order, cells.shape), strict=True)
    ]


def _sentences(summary: CoclusteringSummary, cells: IntArray, labels: list[list[str]]) -> list[str]:
    """Say what goes with what: the clusters, what the first view keeps of them, its most telling blocks."""
    sides, found, first = (
        [summary["rows"]["name"], summary["columns"]["name"]],
        summary["found"],
        summary["first"],
    )
    if found[0] * found[1] == 1:
        return [f"One block: {sides[0]} and {sides[1]} do not inform about each other with enough certainty."]
    ones = "cluster" if found[0] == 1 else "clusters"
    said = [f"{found[0]:,} {ones} of {sides[0]} and {found[1]:,} of {sides[1]} say which go together."]
    if found != cells.shape:
        kept = percent(first["information"])
        said.append(f"Folded to {len(cells):,} × {cells.shape[1]:,} they keep {kept} of the information.")
    expected = _expected(cells)
    telling = _blocks_in_words(cells, labels, cells > expected)[:2]
    telling += _blocks_in_words(cells, labels, cells < expected)[:1]
    said += [f"{block['rows']} × {block['columns']}: {block['words']}." for block in telling]
    return said


def _drawing(cells: IntArray, labels: list[list[str]]) -> dict[str, Any]:
    """Measure the block matrix: a path for each shade, labels where there is space for a line."""
    expected = _expected(cells)
    height = min(640, max(220, _LINE * len(cells)))
    across, down = _edges(cells.sum(axis=0), _WIDTH), _edges(cells.sum(axis=1), height)
    shades = np.log2((cells + 0.5) / (expected + 0.5)) / 4 * _SHADES
    steps = np.clip(np.round(shades), -_SHADES, _SHADES).astype(int)
    paths = []
    for step in (*range(-_SHADES, 0), *range(1, _SHADES + 1)):
        drawn = [
            f"M{_LEFT + across[j]:.1f} {_TOP + down[i]:.1f}h{across[j + 1] - across[j] - 0.6:.1f}"
            f"v{down[i + 1] - down[i] - 0.6:.1f}H{_LEFT + across[j]:.1f}z"
            for i, j in np.argwhere(steps == step)
        ]
        if drawn:
            kind = "w" if step > 0 else "c"
            paths.append({"kind": kind, "opacity": _OPACITIES[abs(step)], "d": "".join(drawn)})
    inside = [
        {
            "x": f"{_LEFT + (across[j] + across[j + 1]) / 2:.1f}",
            "y": f"{_TOP + (down[i] + down[i + 1]) / 2 + 4:.1f}",
            "text": f"{_times(cells[i, j] / expected[i, j])}×",
            "kind": "on" if abs(steps[i, j]) > 5 else "",
        }
        for i, j in np.argwhere((cells > 0) & (np.abs(steps) > 0))
        if across[j + 1] - across[j] >= 40 and down[i + 1] - down[i] >= 14
    ]
    sides = []
    for axis, edges in ((0, down), (1, across)):
        written, before = [], -np.inf
        for label, middle in zip(labels[axis], ((edges[1:] + edges[:-1]) / 2).tolist(), strict=True):
            if middle - before >= (12, 16)[axis]:
                written.append((f"{middle + (_TOP, _LEFT)[axis] + 4:.1f}", shortened(label, (27, 20)[axis])))
                before = middle
        sides.append(written)
    return {
        "width": _LEFT + _WIDTH + _RIGHT,
        "height": _TOP + height + 6,
        "left": _LEFT,
        "top": _TOP,
        "paths": paths,
        "inside": inside,
        "rows": sides[0],
        "columns": sides[1],
    }


def _edges(totals: Any, length: float) -> FloatArray:
    """Place clusters side by side, each as long as the square root of its instances."""
    sizes = np.sqrt(totals)
    return np.concatenate([[0.0], np.cumsum(sizes) / max(float(sizes.sum()), 1e-300) * length])


def _text(value: Any) -> str:
    return shortened("(missing)" if value is None else str(value), MOST_NAME)
