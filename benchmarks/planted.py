"""Tables with known blocks, for the coclustering benchmark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Planted:
    """A 0/1 table and the clusters it was drawn from; every row and column holds something."""

    table: sp.csr_array
    rows: np.ndarray
    columns: np.ndarray


def planted(
    n_rows: int,
    n_columns: int,
    n_ones: int,
    row_blocks: int,
    column_blocks: int,
    *,
    kind: str = "clean",
    seed: int = 0,
) -> Planted:
    """Draw about ``n_ones`` ones, blocks of gamma-distributed densities.

    ``kind`` is ``"clean"``, ``"noisy"`` (three ones in ten fall anywhere) or ``"unequal"`` (cluster sizes
    spread over an order of magnitude).
    """
    random = np.random.default_rng(seed)
    sides = []
    for n_values, n_blocks in ((n_rows, row_blocks), (n_columns, column_blocks)):
        weights = 10 ** random.uniform(0, 1, n_blocks) if kind == "unequal" else np.ones(n_blocks)
        labels = np.sort(random.choice(n_blocks, n_values, p=weights / weights.sum()))
        labels[:n_blocks] = np.arange(n_blocks)
        sides.append(np.sort(labels))
    sizes = [
        np.bincount(labels, minlength=n) for labels, n in zip(sides, (row_blocks, column_blocks), strict=True)
    ]
    starts = [np.concatenate([[0], np.cumsum(s)[:-1]]) for s in sizes]
    areas = np.outer(*sizes)
    weights = random.gamma(0.3, 1.0, areas.shape) * areas
    weights /= weights.sum()
    if kind == "noisy":
        weights = 0.7 * weights + 0.3 * areas / areas.sum()
    block = np.repeat(np.arange(weights.size), random.multinomial(n_ones, weights.ravel()))
    i, j = block // column_blocks, block % column_blocks
    entries = []
    for side, of_block in enumerate((i, j)):
        place = (random.random(len(block)) * sizes[side][of_block]).astype(np.int64)
        entries.append(starts[side][of_block] + place)
    table = sp.csr_array((np.ones(len(block), np.int32), tuple(entries)), shape=(n_rows, n_columns))
    table.sum_duplicates()
    table.data[:] = 1
    # shuffled, so that the order of the values does not inform
    orders = [random.permutation(n) for n in (n_rows, n_columns)]
    table = table[orders[0]][:, orders[1]]
    rows, columns = sides[0][orders[0]], sides[1][orders[1]]
    kept_rows = np.flatnonzero(np.diff(table.indptr))
    kept_columns = np.flatnonzero(np.bincount(table.indices, minlength=n_columns))
    return Planted(sp.csr_array(table[kept_rows][:, kept_columns]), rows[kept_rows], columns[kept_columns])


def noise(n_rows: int, n_columns: int, n_ones: int, seed: int = 0) -> sp.csr_array:
    """Ones that fall anywhere."""
    return planted(n_rows, n_columns, n_ones, 1, 1, seed=seed).table
