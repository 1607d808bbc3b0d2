"""Tables beyond memory: time, memory and quality of a fit to Parquet files, against the same in memory.

python -m benchmarks.engines
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

COLUMNS = 20


def _effects(rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
    """Log-odds that steps, waves and slopes of some hidden numbers make."""
    return (
        1.5 * (u[:, 0] > 0.3)
        + 2.0 * ((u[:, 1] > 0.42) & (u[:, 1] < 0.46))
        + np.sin(7 * u[:, 2])
        + 1.2 * u[:, 3]
        - 1.5 * (u[:, 8] < 0.25)
        + 0.8 * u[:, 9]
        + 1.0 * (u[:, 14] > 0.7)
        + 0.4 * u[:, 4] ** 2
        + 0.5 * np.abs(u[:, 6] - 0.5)
        + 0.6 * (u[:, 16] > 0.123)
        + 0.3 * u[:, 17]
        + 0.5 * np.cos(9 * u[:, 18])
        + 0.3 * rng.normal(size=len(u))
    )


def chunk(seed: int, n_rows: int, n_columns: int = COLUMNS) -> dict[str, np.ndarray]:
    """Make rows: per 20 columns 8 of floats, 6 rounded (2 with missing values), 4 of integers, 2 of float32.

    Columns beyond 20 repeat the shapes of the first 20 and are noise.
    """
    rng = np.random.default_rng([7, seed])
    columns: dict[str, np.ndarray] = {}
    first = None
    for block in range(0, n_columns, COLUMNS):
        u = rng.random((n_rows, COLUMNS))
        first = u if first is None else first
        for j in range(min(COLUMNS, n_columns - block)):
            columns[f"x{block + j}"] = _shaped(rng, j, u[:, j])
    assert first is not None
    odds = _effects(rng, first)
    columns["two"] = (rng.random(n_rows) < 1 / (1 + np.exp(-(odds - 2.4)))).astype(np.int32)
    rank = (odds - odds.min()) / 10.0 + 0.2 * rng.normal(size=n_rows)
    columns["ten"] = np.clip((rank * 10).astype(np.int32), 0, 9)
    return columns


def _shaped(rng: np.random.Generator, j: int, u: np.ndarray) -> np.ndarray:
    """Turn uniform numbers into a column of the shape that its place says."""
    if j < 8:
        if j % 4 == 0:
            return u * 1000.0
        if j % 4 == 1:
            return -np.log(1.0 - u)
        if j % 4 == 2:
            return np.tan(np.pi * (u - 0.5))
        return np.exp(3.0 * u) + u**3
    if j < 14:
        digits = (2, 1, 3, 2, 0, 4)[j - 8]
        values = np.round(u * (100.0, 20.0, 50.0, 3000.0, 90.0, 1.0)[j - 8], digits)
        if j in (10, 13):
            values[rng.random(len(u)) < 0.1] = np.nan
        return values
    if j < 18:
        return (u * (50, 5000, 1e6, 1e9)[j - 14]).astype(np.int64)
    return (u * 10.0 if j == 18 else np.sqrt(u)).astype(np.float32)


def write_parquet(folder: Path, n_rows: int, n_columns: int = COLUMNS, n_each: int = 1_000_000) -> str:
    """Write rows as Parquet files, a million each; return their pattern."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for part, begin in enumerate(range(0, n_rows, n_each)):
        path = folder / f"part{part:04d}.parquet"
        if not path.exists():
            rows = chunk(part, min(n_each, n_rows - begin), n_columns)
            pq.write_table(pa.table({k: pa.array(v, from_pandas=True) for k, v in rows.items()}), path)
    return str(folder / "*.parquet")
