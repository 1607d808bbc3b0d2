"""The section of a page on the rules of the best grid."""

from __future__ import annotations

from typing import Any

from damier.report.classes import class_bars, shown_classes
from damier.report.grid import cut_short
from damier.report.summary import Summary

MAX_RULES = 20


def view(summary: Summary) -> dict[str, Any] | None:
    """Cut and measure the rules of the grid; None if it was not sought."""
    grid = summary.get("grid")
    if grid is None:
        return None
    classes, shown = shown_classes(summary), []
    for rule in grid["rules"][:MAX_RULES]:
        counts = classes.kept(rule["counts"])
        shown.append(
            {
                "parts": list(zip((v["name"] for v in grid["variables"]), rule["parts"], strict=True)),
                "rows": rule["rows"],
                "counts": counts,
                "bars": class_bars(counts),
                "main": classes.main(rule["counts"]),
            }
        )
    # Where pairs were sought as well, their section says it of both.
    said = cut_short(summary) if summary.get("pairs") is None else ""
    return {**grid, "shown": shown, "hidden": grid["cells"] - len(shown), "cut_short": said}


def island(summary: Summary) -> Any:  # noqa: ARG001
    """Return what the scripts need of it, in JSON types."""
    return None
