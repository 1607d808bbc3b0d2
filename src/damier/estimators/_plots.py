"""Plots of fitted models; matplotlib is asked for only here."""

from __future__ import annotations

from typing import Any

import numpy as np

from damier.models.coclustering import CoclusteringModel


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'damier[plot]'") from error
    return plt.subplots(figsize=(8, 6), layout="constrained")[1]


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
