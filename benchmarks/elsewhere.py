"""Tables counted elsewhere: on Spark, and by plain SQL through ibis. Parts of ``benchmarks.engines``."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engines import COLUMNS, write_parquet
from benchmarks.records import Record
from damier.intake.engines.prebins import ALL, exact_binning, only_binning, refined_binning
from damier.intake.engines.source import open_source, read_labels

ROWS = 1_000_000
# Scans of a column are short: times are the least of several.
_REPEATS = 3
NAMES = [f"x{j}" for j in range(COLUMNS)]


def _seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process, of those it started, and of those that they started."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / ticks
    family = {pid}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(used.get(one, 0.0) for one in family)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = _seconds_of(os.getpid())
    result = work()
    return _seconds_of(os.getpid()) - begun, result


def spark(record: Record, options: argparse.Namespace) -> None:
    """Compare the scans of a Spark DataFrame with Spark's own sum of the same columns."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    n_rows = 100_000 if options.quick else options.spark_rows
    folder = Path(options.folder) / f"rows{n_rows}"
    write_parquet(folder, n_rows)
    try:
        _spark_scans(record, session, str(folder), n_rows)
    finally:
        session.stop()


def _spark_scans(record: Record, session: Any, folder: str, n_rows: int) -> None:
    frame = session.read.parquet(folder)
    sums = [f"sum({name})" for name in NAMES]
    # Spark compiles each query when it first runs.
    frame.selectExpr(*sums).collect()
    few: Any = open_source(session.read.parquet(f"{folder}/part0000.parquet"))
    for target in ("two", "ten"):
        _two_scans(few, read_labels(few, target))
    # Anew: Spark keeps what it shuffled for a frame that was collected before.
    scan, _ = _timed(lambda: session.read.parquet(folder).selectExpr(*sums).collect())
    source: Any = open_source(frame)
    title = f"Spark in one process, {n_rows:,} rows x {COLUMNS} columns"
    columns = ["scan", "CPU s", "of a bare scan", "bytes to the driver"]
    record.row(title, columns, ["sum of all columns", f"{scan:.1f}", "1", "-"])
    for target in ("two", "ten"):
        labels = read_labels(source, target)
        named = ("1: leading bits", f"2: bins by class, {labels.n_classes} classes")
        for name, (spent, fetched) in zip(named, _two_scans(source, labels), strict=True):
            if target == "two" or name != named[0]:
                record.row(title, columns, [name, f"{spent:.1f}", f"{spent / scan:.2f}", f"{fetched:,}"])
    record.close(title, "CPU seconds of Spark's JVM, its Python workers and the driver together.")


def _two_scans(source: Any, labels: Any) -> list[tuple[float, int]]:
    """Return CPU seconds and bytes to the driver of the first scan and of the second."""
    found = []
    spent, first = _timed(
        lambda: source.count(dict.fromkeys(NAMES, ALL), labels, by_class=False, values=True)
    )
    found.append((spent, source.bytes_fetched))
    bins = {name: _binning(first[name]) for name in NAMES}
    spent, _ = _timed(lambda: source.count(bins, labels))
    return [*found, (spent, source.bytes_fetched)]


def _binning(counts: Any) -> Any:
    return refined_binning(ALL, counts) if counts.values is None else exact_binning(counts.values)


def sql(record: Record, options: argparse.Namespace) -> None:
    """Compare GROUP BY queries with the stream of DuckDB, column by column, both on DuckDB."""
    import ibis

    from damier.intake.engines.ibis import IbisSource
    from damier.search.counted import KernelCounter

    n_rows = 100_000 if options.quick else ROWS
    path = write_parquet(Path(options.folder) / f"rows{n_rows}", n_rows)
    connection = ibis.duckdb.connect()
    connection.con.execute("SET threads = 1")
    connection.con.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'")
    streamed = open_source(path, threads=1)
    assert streamed is not None
    labels = read_labels(streamed, "two")
    title = f"SQL on DuckDB against its stream, {n_rows:,} rows, one thread"
    columns = ["column", "distinct values", "SQL: CPU s of three scans", "stream", "ratio"]
    streamed.count({NAMES[0]: ALL}, labels, counter=KernelCounter)  # compiles
    for name in ("x0", "x1", "x2", "x8", "x10", "x16", "x17", "x18"):
        least = [np.inf, np.inf]
        for _ in range(_REPEATS):
            # A table of its own each time: what was counted before is kept.
            for k, source in enumerate((IbisSource(connection.table("t")), streamed)):
                begun = time.process_time()
                values = _three_scans(source, name, labels)
                least[k] = min(least[k], time.process_time() - begun)
        many = "many" if values is None else f"{len(values):,}"
        record.row(title, columns, [name, many, *(f"{s:.2f}" for s in least), f"{least[0] / least[1]:.1f}"])
    record.close(title, f"The least of {_REPEATS} times.")


def _three_scans(source: Any, name: str, labels: Any) -> Any:
    """Count a column by leading bits, in bins, and around cuts; return its values, if they are few."""
    from damier.search.counted import KernelCounter

    first = source.count({name: ALL}, labels, by_class=False, values=True, counter=KernelCounter)
    bins = _binning(first[name])
    second = source.count({name: bins}, labels, counter=KernelCounter)
    # Eight bins around each of ten cuts.
    kept = (np.arange(bins.n_bins) + bins.n_bins // 20) % max(bins.n_bins // 10, 8) < 8
    near = only_binning(refined_binning(bins, second[name], kept), kept)
    source.count({name: near}, labels, counter=KernelCounter)
    return first[name].values
