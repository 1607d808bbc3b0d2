"""From a table of numbers and a target to a partition by balls on a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from damier.criteria.balls import Prior
from damier.intake import Table, Target, read_table
from damier.intake.table import FloatArray, IntArray
from damier.models.balls import BallPartition, Metric, coordinates
from damier.search.run import Run

Setting = Literal["refined", "paper"]
Balls = Literal["local", "global"]

_BALLS: dict[Setting, Balls] = {"refined": "local", "paper": "global"}
_PRIOR: dict[Setting, Prior] = {"refined": "even", "paper": "paper"}


class FittedBalls(NamedTuple):
    """A partition, the group of each training row, and the graph of the rows."""

    model: BallPartition
    labels: IntArray
    graph: sparse.csr_array


def fit_balls(
    table: Table,
    target: Target,
    *,
    setting: Setting = "refined",
    balls: Balls | None = None,
    prior: Prior | None = None,
    graph: Any = "gabriel",
    metric: Metric = "euclidean",
    n_partitions: int = 1,
    n_neighbors: int = 1,
    seed: int = 0,
    run: Run | None = None,
) -> FittedBalls:
    """Partition the rows of a table by balls on a graph.

    Parameters are those of :class:`damier.BallPartitionClassifier`. The graph is built to its end whatever
    the time limit of the run, which is for the search of balls.

    Examples
    --------
    >>> from damier.fit.balls import fit_balls
    >>> from damier.intake import read_table, read_target
    >>> table = read_table({"x": [float(i) for i in range(40)]})
    >>> fitted = fit_balls(table, read_target([i < 20 for i in range(40)]))
    >>> fitted.model.counts.tolist()
    [[0, 20], [20, 0]]
    """
    from damier.search.balls.draws import shares_over_draws
    from damier.search.balls.partition import Graph, partition_by_balls

    run = Run() if run is None else run
    local = (balls or _BALLS[setting]) == "local"
    points = coordinates(table)
    run.stop_clock()
    adjacency = _adjacency(points, graph, metric, run)
    # Ties are broken by the number of a point: numbers that follow the values, not the rows.
    order = np.lexsort((target.codes, *points.T[::-1])).astype(np.int64)
    renumbered = sparse.csr_array(adjacency[order][:, order])
    nodes = Graph(renumbered.indptr.astype(np.int64), renumbered.indices.astype(np.int32))
    codes = np.ascontiguousarray(target.codes[order], dtype=np.int32)
    run.start_clock()
    found = partition_by_balls(
        nodes, codes, target.n_classes, local=local, prior=prior or _PRIOR[setting], run=run
    )
    group_of = np.empty(len(points), dtype=np.int64)
    for g, group in enumerate(found.groups):
        group_of[group.members] = g
    counts = np.zeros((len(found.groups), target.n_classes), dtype=np.int64)
    labeled = codes >= 0
    np.add.at(counts, (group_of[labeled], codes[labeled]), 1)
    model = BallPartition(
        names=table.names,
        classes=tuple(target.classes.tolist()),
        points=points[order],
        rows=order,
        point_groups=group_of,
        counts=counts,
        centres=np.array([group.centre for group in found.groups], dtype=np.int64),
        radii=np.array([group.radius for group in found.groups], dtype=np.int64),
        cost=found.cost,
        null_cost=found.null_cost,
        metric=metric,
        n_neighbors=n_neighbors,
    )
    # Where one group is best there is nothing to average but chance.
    if n_partitions > 1 and len(found.groups) > 1 and not run.stopped:
        total, n_drawn = shares_over_draws(
            nodes, codes, target.n_classes, local=local, n_partitions=n_partitions - 1, seed=seed, run=run
        )
        model = replace(model, point_shares=(total + model.shares[group_of]) / (1 + n_drawn))
    run.stop_clock()
    labels = np.empty(len(points), dtype=np.int64)
    labels[order] = group_of
    return FittedBalls(model, labels, adjacency)


def gabriel_graph(X: Any, metric: Metric = "euclidean") -> sparse.csr_array:
    """Link the points that have no other point between them.

    Parameters
    ----------
    X : data frame, array or dict of columns
        Points, one per row: finite numbers. Scale the columns first if their units differ.
    metric : str or callable, default="euclidean"
        A metric known to :func:`scipy.spatial.distance.cdist`, by name or as a function of two points.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_points, n_points)
        Symmetric, 1 where two points are neighbours, an empty diagonal, columns sorted in each row.

    Examples
    --------
    >>> from damier import gabriel_graph
    >>> gabriel_graph([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0]]).toarray()
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    from damier.search.balls.gabriel import link_points

    run = Run()
    return run.call(link_points, coordinates(read_table(X)), metric, run)


def _adjacency(
    points: FloatArray, graph: str | Callable[[FloatArray], Any] | Any, metric: Metric, run: Run
) -> sparse.csr_array:
    """Graph of the rows, both directions of each edge, no loops."""
    from damier.search.balls.gabriel import link_points

    if isinstance(graph, str):
        return link_points(points, metric, run)
    given = graph(points) if callable(graph) else graph
    if isinstance(given, np.ma.MaskedArray):
        raise ValueError("graph is a masked array: pass graph.filled(0), or a sparse matrix")
    matrix = sparse.coo_array(given)
    if matrix.shape != (len(points), len(points)):
        raise ValueError(
            f"graph has shape {matrix.shape} for {len(points)} rows: give an adjacency with one row and "
            "one column for each row of X, in the same order"
        )
    kept = (matrix.data != 0) & (matrix.row != matrix.col)
    ends = np.concatenate([matrix.row[kept], matrix.col[kept]])
    other_ends = np.concatenate([matrix.col[kept], matrix.row[kept]])
    edges = np.unique(np.stack([ends, other_ends]), axis=1)
    ones = np.ones(edges.shape[1], dtype=np.int8)
    return sparse.csr_array((ones, (edges[0], edges[1])), shape=matrix.shape)
