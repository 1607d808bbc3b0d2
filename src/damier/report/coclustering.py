"""A coclustering as a plain dict, and the dict as one self-contained HTML page."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.models.coclustering import CoclusterAxis, CoclusteringModel
from damier.report.page import page_environment, verbatim
from damier.version import __version__

CoclusteringSummary = dict[str, Any]

MOST_BLOCKS = 250_000  # the page holds the blocks themselves: about a megabyte
TYPICAL_VALUES = 12
FIRST_CLUSTERS = 60  # rows and columns together, when the page opens
MOST_NAME = 80


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
    shown = _small_enough(model)
    path = shown.hierarchy(backend="dict")
    return {
        "damier": __version__,
        "dataset": dataset,
        "instances": model.n_instances,
        "cost": model.cost,
        "null_cost": model.null_cost,
        "level": model.level,
        "found": found,
        "rows": _axis(shown, shown.rows, 1),
        "columns": _axis(shown, shown.columns, 0),
        "cells": shown.cells.tolist(),
        "merges": [
            [int(axis), int(kept), int(gone)]
            for axis, kept, gone in zip(shown.merges.axes, shown.merges.kept, shown.merges.gone, strict=True)
        ],
        "information": path["information"],
    }


def render_coclustering(summary: CoclusteringSummary) -> str:
    """Write the page of a summary: block matrix, slider along the hierarchy, lists of typical values."""
    n_clusters = len(summary["rows"]["clusters"]) + len(summary["columns"]["clusters"])
    first = min(max(0, n_clusters - FIRST_CLUSTERS), len(summary["merges"]))
    data = {
        "rows": _terse(summary["rows"]),
        "columns": _terse(summary["columns"]),
        "cells": [n for line in summary["cells"] for n in line],
        "merges": summary["merges"],
        "information": [round(share, 5) for share in summary["information"]],
        "first": first,
    }
    page = (
        page_environment()
        .get_template("coclustering.html")
        .render(
            style=verbatim("page.css") + "\n" + verbatim("coclustering.css"),
            script=verbatim("coclustering.js"),
            summary=summary,
            data=data,
        )
    )
    return page if page.endswith("\n") else page + "\n"


def _small_enough(model: CoclusteringModel) -> CoclusteringModel:
    if model.cells.size <= MOST_BLOCKS:
        return model
    path = model.hierarchy(backend="dict")
    blocks = np.multiply(path["n_row_clusters"], path["n_column_clusters"])
    step = int(np.flatnonzero(blocks <= MOST_BLOCKS)[0])
    return model.simplify(path["n_row_clusters"][step], path["n_column_clusters"][step])


def _axis(model: CoclusteringModel, side: CoclusterAxis, along: int) -> dict[str, Any]:
    totals, worth, sizes = model.cells.sum(axis=along), model.contributions.sum(axis=along), side.sizes()
    clusters = []
    for cluster in range(side.n_clusters):
        members = side.members(cluster)[:TYPICAL_VALUES].tolist()
        clusters.append(
            {
                "values": int(sizes[cluster]),
                "instances": int(totals[cluster]),
                "information": float(worth[cluster]),
                "typical": [
                    [_text(side.value(v)), int(side.totals[v]), round(float(side.typicality[v]), 3)]
                    for v in members
                ],
            }
        )
    return {"name": side.name, "values": int((side.labels >= 0).sum()), "clusters": clusters}


def _terse(axis: dict[str, Any]) -> dict[str, Any]:
    clusters = [[c["values"], c["instances"], c["typical"]] for c in axis["clusters"]]
    return {"name": axis["name"], "clusters": clusters}


def _text(value: Any) -> str:
    text = "(missing)" if value is None else str(value)
    return text if len(text) <= MOST_NAME else text[: MOST_NAME - 1] + "…"
