"""Tables beyond memory: time, memory and quality of a fit to Parquet files, against the same in memory.

python -m benchmarks.engines                              # writes up to 2 GB of Parquet to a temporary folder
python -m benchmarks.engines --rows 100000000             # the part "large" with more rows: 10 GB
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import Record, run

# Fits in a process of its own, compiled on a small part first; prints CPU seconds, peak memory and gains.
PROGRAM = """
import json, resource, sys, time
import duckdb
import damier
from damier.intake import read_table

pattern, small, target, way = sys.argv[1:5]
names = [n for n in duckdb.sql(f"SELECT * FROM '{pattern}' LIMIT 0").columns if n.startswith("x")]
listed = ", ".join(names)
connection = duckdb.connect(config={"threads": "1"})

def relation(files):
    return connection.sql(f"SELECT {listed}, {target} FROM '{files}'")

def fit(files):
    if way == "scan":
        connection.sql(f"SELECT {', '.join(f'sum({n})' for n in names)} FROM '{files}'").fetchall()
    elif way == "streamed":
        return damier.MODLDiscretizer(memory_limit=0).fit(relation(files), target)
    else:
        rows = relation(files).fetchnumpy()
        y = rows.pop(target)
        return damier.MODLDiscretizer().fit(rows, y)

fit(small)
began = time.process_time()
fitted = fit(pattern)
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
found = {"seconds": seconds, "peak": peak}
if fitted is not None:
    parts = fitted.partitions_.values()
    found["gains"] = {p.name: [p.null_cost - p.cost, p.n_parts, p.optimal] for p in parts}
    found["scans"] = 0 if fitted.source_ is None else fitted.source_.scans
print(json.dumps(found))
"""

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


def measure(pattern: str, small: str, target: str, way: str) -> dict[str, Any]:
    """Fit or scan in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, pattern, small, target, way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _folder(options: argparse.Namespace, name: str) -> Path:
    return Path(options.folder) / name


def fits(record: Record, options: argparse.Namespace) -> None:
    """CPU of a fit against a bare scan and against the fit in memory, with what the latter gains."""
    n_rows = 1_000_000 if options.quick else 10_000_000
    small = write_parquet(_folder(options, "small"), 100_000)
    pattern = write_parquet(_folder(options, f"rows{n_rows}"), n_rows)
    title = f"{n_rows // 1_000_000} million rows x 20 columns in Parquet, one thread, CPU seconds"
    columns = ["classes", "bare scan", "fit", "fit / scan", "in memory", "fit / in memory", "peak memory",
               "of the gain in memory, worst column", "most parts beyond"]  # fmt: skip
    for target, n_classes in (("two", 2), ("ten", 10)):
        scan = measure(pattern, small, target, "scan")
        streamed = measure(pattern, small, target, "streamed")
        memory = measure(pattern, small, target, "memory")
        kept, more = 1.0, 0
        for name, (gain, parts, _) in memory["gains"].items():
            found, made, _ = streamed["gains"][name]
            kept = min(kept, found / gain if gain > 0 else 1.0)
            more = max(more, made - parts)
        seconds = streamed["seconds"]
        record.row(title, columns, [
            n_classes, scan["seconds"], seconds, f"{seconds / scan['seconds']:.1f}", memory["seconds"],
            f"{seconds / memory['seconds']:.2f}", f"{streamed['peak'] / 1e9:.2f} GB", f"{kept:.6f}", more,
        ])  # fmt: skip
    record.close(
        title,
        "The bare scan sums the columns in DuckDB. In memory, reading the files into arrays is included. The "
        "memory is that of the whole process, Python, NumPy and compiled code included.",
    )


def growth(record: Record, options: argparse.Namespace) -> None:
    """CPU and memory by rows and by columns."""
    small = write_parquet(_folder(options, "small"), 100_000)
    title = "Growth with rows, 20 columns, 2 classes, one thread"
    before: tuple[int, float] | None = None
    for n_rows in (1_000_000, 3_000_000) if options.quick else (1_000_000, 3_000_000, 10_000_000, 20_000_000):
        pattern = write_parquet(_folder(options, f"rows{n_rows}"), n_rows)
        found = measure(pattern, small, "two", "streamed")
        _grown(record, title, "rows", n_rows, found, before)
        before = n_rows, found["seconds"]
    record.close(title)
    title = "Growth with columns, 1 million rows, 2 classes, one thread"
    before = None
    for n_columns in (5, 20, 80):
        small = write_parquet(_folder(options, f"small{n_columns}"), 100_000, n_columns)
        pattern = write_parquet(_folder(options, f"columns{n_columns}"), 1_000_000, n_columns)
        found = measure(pattern, small, "two", "streamed")
        _grown(record, title, "columns", n_columns, found, before)
        before = n_columns, found["seconds"]
    record.close(title)


def _grown(
    record: Record, title: str, of: str, size: int, found: dict[str, Any], before: tuple[int, float] | None
) -> None:
    exponent = ""
    if before is not None:
        exponent = f"{math.log(found['seconds'] / before[1]) / math.log(size / before[0]):.2f}"
    peak = f"{found['peak'] / 1e9:.2f} GB"
    columns = [of, "CPU seconds", "exponent", "peak memory", "scans"]
    record.row(title, columns, [f"{size:,}", found["seconds"], exponent, peak, found["scans"]])


def large(record: Record, options: argparse.Namespace) -> None:
    """As many rows as asked for."""
    small = write_parquet(_folder(options, "small"), 100_000)
    pattern = write_parquet(_folder(options, f"rows{options.rows}"), options.rows)
    found = measure(pattern, small, "two", "streamed")
    _grown(record, "As many rows as asked for, 20 columns, 2 classes", "rows", options.rows, found, None)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="damier-engines-") as temporary:
        from benchmarks.elsewhere import spark, sql

        parts = {"fits": fits, "growth": growth, "sql": sql, "spark": spark}
        if "--rows" in sys.argv:
            parts = {"large": large}
        run(
            "engines",
            __doc__,
            parts,
            {
                "--rows": {"type": int, "help": "rows of the part 'large'"},
                "--folder": {"default": temporary, "help": "where the files are written, and found again"},
            },
        )
