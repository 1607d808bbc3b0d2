"""The section of a page on pairs of variables."""

from __future__ import annotations

from typing import Any

from damier.report.grid import cut_short, pair_text, sampled_text
from damier.report.summary import Summary

MAX_PAIRS = 8


def view(summary: Summary) -> dict[str, Any] | None:
    """Write the pairs of largest gain, and those that the search did not come to; None if not sought."""
    pairs = summary.get("pairs")
    if pairs is None:
        return None
    return {
        **pairs,
        "gaining": [(p["first"], p["second"], pair_text(p)) for p in pairs["gaining"][:MAX_PAIRS]],
        "not_done": [f"{first} × {second}" for first, second in pairs["not_done"]],
        "sampled": sampled_text(pairs),
        "cut_short": cut_short(summary),
    }


def island(summary: Summary) -> Any:  # noqa: ARG001
    """Return what the scripts need of it, in JSON types."""
    return None
