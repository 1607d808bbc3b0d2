"""Directions for the coclustering search: singular vectors of the table.

Moves and splits see a value through the other axis' clusters. Where two clusters of rows and the two
clusters of columns that set them apart are still together on both sides, neither sees anything; the
singular vectors of the table, its counts divided by the square roots of the totals, do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from damier.search.cocluster.kernels import SingleArray
from damier.search.kernels import BoolArray, CodeArray, FlagArray, FloatArray, IntArray, bare_kernel, kernel
from damier.search.run import Run

_VECTORS = 24
# Points worked on at a time: what is worked out in passing stays small beside them.
_BLOCK = 1 << 16


def singular_vectors(
    start: IntArray, entries: CodeArray, counts: CodeArray, n_columns: int, rng: np.random.Generator, run: Run
) -> tuple[SingleArray, SingleArray]:
    """Place rows and columns by the leading singular vectors, by a few rounds of subspace iteration.

    One vector is one line of an array, and is multiplied on its own: a block of them would be held several
    times over. Raises `Stopped` when the run is.
    """
    n_rows = len(start) - 1
    rows = np.add.reduceat(counts, start[:-1], dtype=np.float64)
    columns = np.bincount(entries, weights=counts, minlength=n_columns)
    # rare values are drawn towards the middle: on their own they would make vectors of themselves
    row_scale = 1.0 / np.sqrt(rows + rows.mean())
    column_scale = 1.0 / np.sqrt(columns + columns.mean())
    weights = counts.astype(np.float32)
    weights *= np.repeat(row_scale.astype(np.float32), np.diff(start))
    weights *= column_scale.astype(np.float32)[entries]
    table = sparse.csr_array((weights, entries, start), shape=(n_rows, n_columns))
    n_vectors = min(_VECTORS, n_rows, n_columns)
    right = np.empty((n_vectors, n_columns), np.float32)
    left = np.empty((n_vectors, n_rows), np.float32)
    for first in range(0, n_columns, _BLOCK):
        right.T[first : first + _BLOCK] = rng.standard_normal((min(_BLOCK, n_columns - first), n_vectors))
    for _ in range(8):
        _multiply(table, right, left, run)
        _multiply(table.T, left, right, run)
        orthonormalize(right, run.stop)
    _multiply(table, right, left, run)
    orthonormalize(left, run.stop)
    run.check()
    del table, weights
    # directions alone: the weight of a vector says how many values it concerns, not how well it sets them
    # apart
    rows_placed = _unit(left)
    del left
    return rows_placed, _unit(right)


def _multiply(table: Any, vectors: SingleArray, into: SingleArray, run: Run) -> None:
    for vector, product in zip(vectors, into, strict=True):
        run.check()
        product[:] = table @ vector


@bare_kernel
def orthonormalize(lines: SingleArray, stop: FlagArray) -> None:
    """Make the lines orthonormal in place; one that depends on those before it becomes zero.

    Threads of a linear algebra library would cost more than they give, and might change the last digit. The
    lines are of no use once ``stop`` is set.
    """
    q, n = lines.shape
    for c in range(q):
        before = 0.0
        for i in range(n):
            before += float(lines[c, i]) * float(lines[c, i])
        for _ in range(2):
            for b in range(c):
                if stop[0]:
                    return
                dot = 0.0
                for i in range(n):
                    dot += float(lines[b, i]) * float(lines[c, i])
                part = np.float32(dot)
                for i in range(n):
                    lines[c, i] -= part * lines[b, i]
        length = 0.0
        for i in range(n):
            length += float(lines[c, i]) * float(lines[c, i])
        scale = 1.0 / np.sqrt(length) if length > 1e-10 * before and length > 0 else 0.0
        for i in range(n):
            lines[c, i] *= scale


def _unit(lines: SingleArray) -> SingleArray:
    """Turn vectors in lines into points of length one, one per value."""
    points = np.empty(lines.shape[::-1], np.float32)
    for first in range(0, len(points), _BLOCK):
        block = np.ascontiguousarray(lines[:, first : first + _BLOCK].T)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        points[first : first + _BLOCK] = block / np.maximum(lengths, 1e-12)
    return points


@kernel
def assign_to_centres(points: SingleArray, centres: FloatArray, labels: CodeArray, stop: FlagArray) -> None:
    """Give each point to its nearest centre, then move the centres to the means of their points.

    Once ``stop`` is set the rest is left as it is.
    """
    n, q = points.shape
    k = centres.shape[0]
    sums = np.zeros((k, q))
    sizes = np.zeros(k, np.int64)
    for i in range(n):
        if i % 1024 == 0 and stop[0]:
            return
        nearest = 0
        least = np.inf
        for c in range(k):
            distance = 0.0
            for d in range(q):
                gap = points[i, d] - centres[c, d]
                distance += gap * gap
            if distance < least:
                least = distance
                nearest = c
        labels[i] = nearest
        sizes[nearest] += 1
        for d in range(q):
            sums[nearest, d] += points[i, d]
    for c in range(k):
        if sizes[c] > 0:
            for d in range(q):
                centres[c, d] = sums[c, d] / sizes[c]


def nearest_centres(points: SingleArray, n_centres: int, rng: np.random.Generator, run: Run) -> CodeArray:
    """Cluster points by k-means, centres seeded far apart (k-means++).

    By hand: `scipy.cluster.vq.kmeans2` finds the same sums of squares in three to five times the processor
    time (all distances anew for each centre), and divides by zero where there are fewer distinct points than
    centres, which sparse tables have.
    """
    n_centres = min(n_centres, len(points))
    centres = np.empty((n_centres, points.shape[1]))
    distance = np.full(len(points), np.inf)
    chosen = int(rng.integers(len(points)))
    for c in range(n_centres):
        run.check()
        centres[c] = points[chosen]
        for first in range(0, len(points), _BLOCK):
            block = slice(first, first + _BLOCK)
            squares = ((points[block] - centres[c]) ** 2).sum(axis=1)
            np.minimum(distance[block], squares, out=distance[block])
        total = distance.sum()
        if total <= 0:
            centres = centres[: c + 1].copy()
            break
        chosen = int(np.searchsorted(np.cumsum(distance), rng.random() * total))
        chosen = min(chosen, len(points) - 1)
    labels = np.zeros(len(points), np.int32)
    for _ in range(10):
        assign_to_centres(points, centres, labels, run.stop)
        run.check()
    return labels


def principal_sides(points: SingleArray, labels: CodeArray, rng: np.random.Generator, run: Run) -> BoolArray:
    """Return the side of each point along the principal direction of its cluster."""
    n, q = points.shape
    n_clusters = int(labels.max()) + 1
    sizes = np.maximum(np.bincount(labels, minlength=n_clusters), 1)
    means = np.empty((n_clusters, q))
    for d in range(q):
        means[:, d] = np.bincount(labels, weights=points[:, d], minlength=n_clusters) / sizes
    direction = rng.standard_normal((n_clusters, q))
    along = np.zeros(n)
    for _ in range(12):
        for first in range(0, n, _BLOCK):
            held = labels[first : first + _BLOCK]
            centred = points[first : first + _BLOCK] - means[held]
            along[first : first + _BLOCK] = (centred * direction[held]).sum(axis=1)
        for d in range(q):
            run.check()
            weights = (points[:, d] - means[labels, d]) * along
            direction[:, d] = np.bincount(labels, weights=weights, minlength=n_clusters)
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    return np.asarray(along > 0)
