"""Tables beyond memory: time, memory and quality of a fit to Parquet files, against the same in memory.

python -m benchmarks.engines                              # writes up to 2 GB of Parquet to a temporary folder
python -m benchmarks.engines --rows 100000000             # the part "large" with more rows: 10 GB
"""

from __future__ import annotations

import argparse
import json
import math
import os
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
    for n_rows in (1_000_000, 3_000_000) if options.quick else (1_000_000, 3_000_000, 10_000_000, 30_000_000):
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


# Fits a naive Bayes to rows in another order, batch size, number of threads and of files; prints a digest.
ORDERS = """
import hashlib, sys, warnings
import damier.intake.engines.duckdb as held
from damier import NaiveBayesClassifier
from damier.deploy.json import dumps

pattern, batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held.BATCH = batch
model = NaiveBayesClassifier(memory_limit=0, n_jobs=threads).fit(pattern, "ten").model_
print(hashlib.sha256(dumps(model).encode()).hexdigest()[:16], len(dumps(model)))
"""


def orders(record: Record, options: argparse.Namespace) -> None:
    """Compare the JSON of one table in several orders, batch sizes, threads and files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 30_000 if options.quick else 100_000
    rows = chunk(0, n_rows)
    rows.pop("two")
    words = np.random.default_rng(5).zipf(1.3, n_rows) % 5000
    table = pa.table(
        {**{k: pa.array(v, from_pandas=True) for k, v in rows.items()}, "word": [f"w{k}" for k in words]}
    )
    shuffled = table.take(np.random.default_rng(6).permutation(n_rows))
    folder = _folder(options, f"orders{n_rows}")
    ways = {"one": (table, 1), "shuffled": (shuffled, 1), "parted": (shuffled, 7)}
    for name, (held, n_files) in ways.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        step = -(-n_rows // n_files)
        for part in range(n_files):
            pq.write_table(held.slice(part * step, step), folder / name / f"part{part}.parquet")
    title = f"The same {n_rows:,} rows in other orders: naive Bayes, 20 numbers, 5,000 words, 10 classes"
    columns = ["rows", "batch", "threads", "files", "bytes of JSON", "digest"]
    for name, batch, threads in (
        ("one", 1 << 17, 1),
        ("shuffled", 1 << 17, 2),
        ("one", 4096, 2),
        ("parted", 50_000, 1),
    ):
        command = [sys.executable, "-c", ORDERS, str(folder / name / "*.parquet"), str(batch), str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        digest, size = done.stdout.split()
        said = "as written" if name == "one" else "shuffled"
        record.row(title, columns, [said, f"{batch:,}", threads, ways[name][1], f"{int(size):,}", digest])
    record.close(title)


# Partitions the columns together with a number, streamed and in memory; prints CPU seconds and gains.
NUMBERS = """
import json, sys, time
import duckdb
import damier

pattern, small, way = sys.argv[1:4]
connection = duckdb.connect(config={"threads": "1"})
chosen = "x0, x1, x2, x8, x14, x16, x18"
target = "x3 + 5 * sin(x0 / 150) + 10 * (x14 > 30)::INT + x18 + x8 / 20"

def fit(files):
    held = connection.sql(f"SELECT {chosen}, {target} AS y FROM '{files}'")
    if way == "streamed":
        return damier.MODLDiscretizer(memory_limit=0).fit(held, "y")
    rows = held.fetchnumpy()
    y = rows.pop("y")
    return damier.MODLDiscretizer().fit(rows, y)

fit(small)
began = time.process_time()
fitted = fit(pattern)
found = {"seconds": time.process_time() - began}
found["gains"] = {p.name: [p.null_cost - p.cost, p.n_parts] for p in fitted.partitions_.values()}
print(json.dumps(found))
"""


def numbers(record: Record, options: argparse.Namespace) -> None:
    """CPU and gain of a fit against a number, streamed and in memory."""
    n_rows = 100_000 if options.quick else 1_000_000
    small = write_parquet(_folder(options, "small"), 100_000)
    pattern = write_parquet(_folder(options, f"rows{n_rows}"), n_rows)
    found = {}
    for way in ("streamed", "memory"):
        command = [sys.executable, "-c", NUMBERS, pattern, small, way]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[way] = json.loads(done.stdout.splitlines()[-1])
    title = f"A number as the target, {n_rows:,} rows x 7 columns, one thread"
    columns = ["column", "gain in memory, nats", "parts", "streamed: of this gain", "parts"]
    for name, (gain, parts) in found["memory"]["gains"].items():
        held, made = found["streamed"]["gains"][name]
        share = f"{held / gain:.6f}" if gain > 0 else "-"
        record.row(title, columns, [name, f"{gain:,.1f}", parts, share, made])
    seconds = {way: one["seconds"] for way, one in found.items()}
    record.close(
        title,
        f"CPU seconds: {seconds['streamed']:.1f} streamed, {seconds['memory']:.1f} in memory with reading.",
    )


def khiops(record: Record, options: argparse.Namespace) -> None:
    """Compare with Khiops on the same rows as CSV."""
    import duckdb

    from benchmarks.peers import environment, interpreter

    python = interpreter("khiops", os.environ.get("DAMIER_PEER_PYTHON"))
    if python is None:
        print("Khiops is not installed: name its interpreter in DAMIER_PEER_PYTHON")
        return
    n_rows = 100_000 if options.quick else options.khiops_rows
    pattern = write_parquet(_folder(options, f"rows{n_rows}"), n_rows)
    path, small = _folder(options, f"rows{n_rows}.csv"), _folder(options, "small.csv")
    for made, files in ((path, pattern), (small, write_parquet(_folder(options, "small"), 100_000))):
        if not made.exists():
            listed = ", ".join(f"x{j}" for j in range(COLUMNS))
            duckdb.sql(f"COPY (SELECT {listed}, two FROM '{files}') TO '{made}' (HEADER)")
    title = f"{n_rows:,} rows x 20 columns as CSV, two classes: intervals of each column"
    columns = ["library", "CPU seconds", "of Damier's"]
    program = (
        "import sys, time; import damier; "
        "fit = lambda path: damier.MODLDiscretizer(memory_limit=0).fit(path, 'two'); fit(sys.argv[2]); "
        "began = time.process_time(); fit(sys.argv[1]); print(time.process_time() - began)"
    )
    own = subprocess.run(
        [sys.executable, "-c", program, str(path), str(small)], capture_output=True, text=True, check=True
    )
    seconds = float(own.stdout)
    record.row(title, columns, ["Damier", seconds, "1"])
    with tempfile.TemporaryDirectory(prefix="damier-khiops-") as folder:
        done = subprocess.run(
            [python, "-W", "ignore", "-m", "benchmarks.khiops_large", str(path), "two", folder],
            capture_output=True, text=True, check=True, env=environment(python),
        )  # fmt: skip
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    peer = json.loads(line.removeprefix("RESULT "))
    record.row(title, columns, ["Khiops, its preparation alone", peer["cpu"], f"{peer['cpu'] / seconds:.1f}"])
    record.close(title, "One core. Of Damier, reading the text and writing it as Parquet is included.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="damier-engines-") as temporary:
        from benchmarks.elsewhere import spark, sql

        parts = {
            "fits": fits,
            "growth": growth,
            "orders": orders,
            "numbers": numbers,
            "sql": sql,
            "spark": spark,
            "khiops": khiops,
        }
        if "--rows" in sys.argv:
            parts = {"large": large}
        run(
            "engines",
            __doc__,
            parts,
            {
                "--khiops-rows": {"type": int, "default": 10_000_000, "help": "rows of the part 'khiops'"},
                "--spark-rows": {"type": int, "default": 10_000_000, "help": "rows of the part 'spark'"},
                "--rows": {"type": int, "help": "rows of the part 'large'"},
                "--folder": {"default": temporary, "help": "where the files are written, and found again"},
            },
        )
