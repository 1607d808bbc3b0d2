"""Plots of fitted models; matplotlib is asked for only here."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.intake import read_columns, read_target
from damier.intake.table import CodeArray, IntArray
from damier.models.balls import BallPartition
from damier.models.coclustering import CoclusteringModel
from damier.models.linf.columns import UNIT
from damier.models.linf.model import LinfModel, axis_text
from damier.models.partition import IntervalPartition, Partition

_COVERED, _MISSED, _MIXED = "#1f6fb4", "#e0a100", "#b5b5b5"


def _axes(ax: Any, figsize: tuple[float, float] = (8, 6)) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'damier[plot]'") from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def plot_blocks(model: CoclusteringModel, ax: Any = None) -> Any:
    """Draw the blocks: height and width are instances, colour is density against independence.

    Clusters come in the order of the hierarchy, so that those which resemble each other are neighbours.
    """
    ax = _axes(ax)
    edges = [np.concatenate([[0], np.cumsum(model.cells.sum(axis=axis))]) for axis in (0, 1)]
    ratio = np.log2((model.cells + 0.5) / (model.expected + 0.5))
    mesh = ax.pcolormesh(*edges, ratio, cmap="RdBu_r", vmin=-4, vmax=4, rasterized=True)
    ax.invert_yaxis()
    ax.set_xlabel(f"{model.n_column_clusters} clusters of {model.columns.name} (by instances)")
    ax.set_ylabel(f"{model.n_row_clusters} clusters of {model.rows.name} (by instances)")
    ax.set_title("Instances against independence")
    bar = ax.figure.colorbar(mesh, ax=ax, extend="both", ticks=[-4, -2, 0, 2, 4])
    bar.ax.set_yticklabels(["1/16", "1/4", "as expected", "4 times", "16 times"])
    return ax


def plot_hierarchy(model: CoclusteringModel, ax: Any = None) -> Any:
    """Draw the share of information kept against the number of clusters."""
    ax = _axes(ax)
    path = model.hierarchy(backend="dict")
    n_clusters = np.add(path["n_row_clusters"], path["n_column_clusters"])
    ax.plot(n_clusters, path["information"], color="tab:blue")
    ax.plot(n_clusters[0], path["information"][0], "o", color="tab:blue")
    ax.annotate(
        f"{model.n_row_clusters} x {model.n_column_clusters}",
        (n_clusters[0], path["information"][0]),
        xytext=(-6, -12),
        textcoords="offset points",
        ha="right",
    )
    ax.set_xlabel("clusters of rows and columns")
    ax.set_ylabel("information kept")
    ax.set_ylim(0, 1.05)
    ax.grid(alpha=0.3)
    ax.set_title("What fewer clusters keep")
    return ax


def plot_balls(model: BallPartition, classes: CodeArray, edges: IntArray, ax: Any = None) -> Any:
    """Draw points of two dimensions by class, their graph, and the regions of the groups.

    ``classes`` holds the class of each point of the model, -1 without a label, and ``edges`` pairs of points.
    """
    ax = _axes(ax)
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(f"C{j % 10}") for j in range(len(model.classes))])
    low, high = model.points.min(axis=0), model.points.max(axis=0)
    margin = 0.03 * np.where(high > low, high - low, 1.0)
    across = [np.linspace(a - m, b + m, 400) for a, b, m in zip(low, high, margin, strict=True)]
    grid = np.stack(np.meshgrid(*across), axis=-1)
    regions = model.apply(dict(zip(model.names, grid.reshape(-1, 2).T, strict=True))).reshape(grid.shape[:2])
    # A region has the colour of its classes, mixed by their shares and paled.
    tints = 1.0 - 0.3 * (1.0 - model.shares @ colours)
    extent = (across[0][0], across[0][-1], across[1][0], across[1][-1])
    ax.imshow(tints[regions], origin="lower", extent=extent, aspect="auto", interpolation="nearest", zorder=0)
    borders = np.zeros(regions.shape, dtype=bool)
    borders[:, 1:] |= regions[:, 1:] != regions[:, :-1]
    borders[1:] |= regions[1:] != regions[:-1]
    lines = np.zeros((*borders.shape, 4))
    lines[borders] = (0.15, 0.15, 0.15, 0.8)
    ax.imshow(lines, origin="lower", extent=extent, aspect="auto", interpolation="nearest", zorder=1)
    ax.add_collection(
        LineCollection(list(model.points[edges]), colors="0.45", linewidths=0.4, alpha=0.5, zorder=2)
    )
    for j in range(-1, len(model.classes)):
        here = model.points[classes == j]
        if len(here):
            name = "no label" if j < 0 else str(model.classes[j])
            colour = "0.5" if j < 0 else colours[j]
            ax.scatter(*here.T, s=7, color=colour, label=name, zorder=3, linewidths=0)
    centres = model.points[model.centres[model.centres >= 0]]
    ax.scatter(*centres.T, s=45, marker="x", color="black", linewidths=1.3, label="centre", zorder=4)
    ax.set_xlabel(model.names[0])
    ax.set_ylabel(model.names[1])
    ax.set_title(f"{model.n_groups} group{'s' if model.n_groups > 1 else ''}")
    ax.legend(loc="upper right", fontsize="small", markerscale=1.3)
    return ax


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
    fitted: LinfModel = model if isinstance(model, LinfModel) else model.model_
    if not 0 <= cover < len(fitted.covers):
        raise IndexError(f"cover must be between 0 and {len(fitted.covers) - 1}; got {cover}.")
    ax = _axes(ax, (6, 6))
    from matplotlib.patches import Rectangle

    drawn = fitted.covers[cover]
    own, other = cover_bins(fitted, cover, X, y)
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


def cover_bins(model: LinfModel, cover: int, X: Any, y: Any) -> tuple[IntArray, IntArray]:
    """Count the rows that reach a cover, bin by bin: those of its class, and those of the others."""
    drawn = model.covers[cover]
    table = read_columns(X, [column.name for column in model.columns])
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


def plot_posterior(partition: Partition, of: Any = None, ax: Any = None) -> Any:
    """Draw the share of a class along a variable: averaged over all partitions, and in the best one.

    Parameters
    ----------
    partition : IntervalPartition or GroupPartition
        Of a naive Bayes with averaged evidence.
    of : a class, optional
        By default the last one.
    ax : matplotlib axes, optional
    """
    ax = _axes(ax)
    classes = [str(c) for c in partition.classes]
    name = classes[-1] if of is None else str(of)
    if name not in classes:
        raise ValueError(f"no class {name!r}; the classes are {', '.join(classes)}")
    curve = partition.posterior(backend="dict")
    rows = np.cumsum([0, *curve["count"]])
    best = partition.counts[:, classes.index(name)] / np.maximum(partition.counts.sum(axis=1), 1)
    low, mean, high = (
        np.append(curve[f"{what} {name}"], curve[f"{what} {name}"][-1]) for what in ("low", "share", "high")
    )
    ax.fill_between(rows, low, high, step="post", color=_COVERED, alpha=0.25, linewidth=0, label="90%")
    ax.step(rows, mean, where="post", color=_COVERED, label="all partitions")
    if isinstance(partition, IntervalPartition):
        ends = np.cumsum([0, *partition.counts.sum(axis=1)])
        ax.step(ends, np.append(best, best[-1]), where="post", color=_MISSED, label="best partition")
    ax.set_xlabel(f"{partition.name}: rows in order")
    ax.set_ylabel(f"share of {name}")
    ax.set_ylim(0, 1)
    ax.legend()
    return ax
