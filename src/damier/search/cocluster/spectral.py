"""Directions for the coclustering search: singular vectors of the table.

Moves and splits see a value through the other axis' clusters. Where two clusters of rows and the two
clusters of columns that set them apart are still together on both sides, neither sees anything; the
singular vectors of the table, its counts divided by the square roots of the totals, do.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from damier.search.cocluster.kernels import SingleArray
from damier.search.kernels import BoolArray, CodeArray, FloatArray, IntArray, bare_kernel, kernel

_VECTORS = 24


def singular_vectors(
    start: IntArray, entries: CodeArray, counts: CodeArray, n_columns: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Place rows and columns by the leading singular vectors, by a few rounds of subspace iteration."""
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
    right = rng.standard_normal((n_columns, n_vectors)).astype(np.float32)
    for _ in range(8):
        right = _orthonormal(table.T @ (table @ right))
    left = _orthonormal(table @ right)
    # directions alone: the weight of a vector says how many values it concerns, not how well it sets them
    # apart
    return _unit(left), _unit(right)


@bare_kernel
def orthonormalize(lines: SingleArray) -> None:
    """Make the lines orthonormal in place; one that depends on those before it becomes zero.

    Threads of a linear algebra library would cost more than they give, and might change the last digit.
    """
    q, n = lines.shape
    for c in range(q):
        before = 0.0
        for i in range(n):
            before += float(lines[c, i]) * float(lines[c, i])
        for _ in range(2):
            for b in range(c):
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


def _orthonormal(points: SingleArray) -> SingleArray:
    lines = np.ascontiguousarray(points.T)
    orthonormalize(lines)
    return np.ascontiguousarray(lines.T)


@kernel
def assign_to_centres(points: FloatArray, centres: FloatArray, labels: CodeArray) -> None:
    """Give each point to its nearest centre, then move the centres to the means of their points."""
    n, q = points.shape
    k = centres.shape[0]
    sums = np.zeros((k, q))
    sizes = np.zeros(k, np.int64)
    for i in range(n):
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


def _unit(points: SingleArray) -> FloatArray:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.maximum(lengths, 1e-12), dtype=np.float64)


def nearest_centres(points: FloatArray, n_centres: int, rng: np.random.Generator) -> CodeArray:
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
        centres[c] = points[chosen]
        distance = np.minimum(distance, ((points - centres[c]) ** 2).sum(axis=1))
        total = distance.sum()
        if total <= 0:
            centres = centres[: c + 1].copy()
            break
        chosen = int(np.searchsorted(np.cumsum(distance), rng.random() * total))
        chosen = min(chosen, len(points) - 1)
    labels = np.zeros(len(points), np.int32)
    for _ in range(10):
        assign_to_centres(points, centres, labels)
    return labels


def principal_sides(points: FloatArray, labels: CodeArray, rng: np.random.Generator) -> BoolArray:
    """Return the side of each point along the principal direction of its cluster."""
    n_clusters = int(labels.max()) + 1
    sizes = np.maximum(np.bincount(labels, minlength=n_clusters), 1)

    def sums(values: FloatArray) -> FloatArray:
        return np.column_stack([np.bincount(labels, weights=v, minlength=n_clusters) for v in values.T])

    centred = points - (sums(points) / sizes[:, None])[labels]
    direction = rng.standard_normal((n_clusters, points.shape[1]))
    along = np.zeros(len(points))
    for _ in range(12):
        along = (centred * direction[labels]).sum(axis=1)
        direction = sums(centred * along[:, None])
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    return np.asarray(along > 0)
