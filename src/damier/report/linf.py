"""A cover drawn like the paper's figure 1: bins as dots, the rectangles over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from damier.intake import read_table, read_target
from damier.models.linf.columns import UNIT
from damier.models.linf.model import LinfModel, axis_text

_COVERED, _MISSED, _MIXED = "#1f6fb4", "#e0a100", "#b5b5b5"


def plot_cover(model: Any, cover: int, X: Any, y: Any, ax: Any = None) -> Any:
    """Draw one cover over the rows that reach it.

    Parameters
    ----------
    model : LinfModel or fitted LinfClassifier
    cover : int
        Index in the covers.
    X, y : table and classes
        Rows to show, usually the training ones. Rows that an earlier cover of the same member decided are
        left out, as they were when the cover was made.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        Each bin with rows of the class is a dot, larger with more rows: blue where the class is alone and
        covered, yellow where it is alone and not covered, grey with a yellow centre where it is mixed.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.patches import Rectangle
    except ImportError:
        raise ImportError("drawing a cover needs matplotlib: pip install 'damier[plot]'") from None
    fitted: LinfModel = model if isinstance(model, LinfModel) else model.model_
    if not 0 <= cover < len(fitted.covers):
        raise IndexError(f"no cover {cover}: there are {len(fitted.covers)}, counted from 0")
    drawn = fitted.covers[cover]
    own, other = cover_bins(fitted, cover, X, y)
    if ax is None:
        ax = plt.figure(figsize=(6, 6)).add_subplot()
    b = drawn.n_bins
    low = np.array([drawn.limits[0], drawn.limits[2]]) / UNIT
    step = (np.array([drawn.limits[1] + 1, drawn.limits[3] + 1]) / UNIT - low) / b
    for x0, x1, y0, y1 in drawn.bounds.tolist():
        ax.add_patch(
            Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=_COVERED, alpha=0.12, edgecolor=_COVERED, lw=1.2)
        )
    covered = drawn.table >= 0
    largest = max(int((own + other).max()), 1)
    for held, chosen, colour in (
        (own + other, (own > 0) & (other > 0), _MIXED),
        (own, (own > 0) & (other > 0), _MISSED),
        (own, (own > 0) & (other == 0) & ~covered, _MISSED),
        (own, (own > 0) & (other == 0) & covered, _COVERED),
    ):
        u, v = np.nonzero(chosen)
        centres = low + (np.column_stack([u, v]) + 0.5) * step
        sizes = 6 + 140 * held[chosen] / largest
        ax.scatter(centres[:, 0], centres[:, 1], s=sizes, color=colour, linewidths=0)
    ax.set_xlim(low[0], low[0] + b * step[0])
    ax.set_ylim(low[1], low[1] + b * step[1])
    # Names come from data: a dollar sign in one must not be read as mathematics.
    ax.set_xlabel(_short(axis_text(drawn.x)), parse_math=False)
    ax.set_ylabel(_short(axis_text(drawn.y)), parse_math=False)
    ax.set_title(f"{drawn.label}: {int(drawn.counts.sum())} rows covered", parse_math=False)
    return ax


def cover_bins(
    model: LinfModel, cover: int, X: Any, y: Any
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count the rows that reach a cover, bin by bin: those of its class, and those of the others."""
    drawn = model.covers[cover]
    table = read_table(X)
    target = read_target(y)
    path = model.decision_path(table)
    earlier = path.inside[:, drawn.member] & (path.cover[:, drawn.member] < cover)
    bins, inside = model.bins(table, cover)
    shown = inside & ~earlier
    is_own = np.array([label == drawn.label for label in target.classes.tolist()])[target.codes]
    b = drawn.n_bins
    place = bins[:, 0] * b + bins[:, 1]
    own = np.bincount(place[shown & is_own], minlength=b * b).reshape(b, b)
    other = np.bincount(place[shown & ~is_own], minlength=b * b).reshape(b, b)
    return own, other


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 4].rstrip() + " ..."
