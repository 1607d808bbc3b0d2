"""The section of a page on how well the variables predict together."""

from __future__ import annotations

from typing import Any

from damier.report.grid import sampled_text
from damier.report.summary import Summary


def view(summary: Summary) -> dict[str, Any] | None:
    """Return the scores; None if the classifier was not scored."""
    scores = summary.get("classifier")
    return None if scores is None else {"scores": scores, "sampled": sampled_text(scores)}


def island(summary: Summary) -> Any:  # noqa: ARG001
    """Return what the scripts need of it, in JSON types."""
    return None
