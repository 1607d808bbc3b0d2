"""The section of a page that scores a row."""

from __future__ import annotations

from typing import Any

from damier.report.summary import Summary


def view(summary: Summary) -> dict[str, Any] | None:  # noqa: ARG001
    """Return what the template shows; None if there is no model to score with."""
    return None


def island(summary: Summary) -> Any:  # noqa: ARG001
    """Return what the scripts need of it, in JSON types."""
    return None
