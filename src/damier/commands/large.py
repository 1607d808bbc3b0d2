"""Tables that do not fit into memory, for ``damier report``: partitions from counts, and a sample of rows."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from damier.commands.common import note_number

if TYPE_CHECKING:
    from damier.fit.sources import FittedColumns
    from damier.intake import NumericTarget, Table, Target, TargetType
    from damier.intake.engines.source import Source
    from damier.models import Partition
    from damier.report.analysis import Show
    from damier.search.run import Run

    _Found = tuple[FittedColumns, Table, Target | NumericTarget, tuple[Any, Any, Any] | None]

# Compressed columns take several times their bytes in memory: smaller files need not be looked at.
_PACKED = 16
_SAMPLE_ROWS = 200_000


@dataclass(frozen=True)
class LargeTable:
    """A sample of the rows of a table, and partitions of its columns on all of them."""

    table: Table
    target: Target | NumericTarget
    partitions: Mapping[str, Partition]
    missing: Mapping[str, int]
    distribution: tuple[Any, Any, Any] | None = None


def large_table(
    file: Path,
    target: str | None,
    kind: TargetType,
    memory: str,
    n_jobs: int,
    show: Show,
    reading: Mapping[str, Any],
) -> LargeTable | None:
    """Count a table that does not fit a quarter of the memory; None if it does, or cannot be counted.

    Raises
    ------
    ValueError
        If the target is no column or no set of classes, or if options say how to read the table.
    """
    files = [str(file)] if file.is_file() else glob.glob(str(file), recursive=True)
    several = len(files) > 1 or (bool(files) and not file.is_file())
    kinds = {"".join(Path(name).suffixes[-1:]).lower() for name in files}
    if not files or not kinds <= {".parquet", ".pq", ".csv", ".tsv"}:
        return None
    from damier.intake.engines.source import memory_bytes

    limit = memory_bytes(memory)
    if not several and Path(files[0]).stat().st_size <= limit / 4 / _PACKED:
        return None
    from damier.fit.source_target import is_number
    from damier.intake.engines.source import check_columns, open_source, table_bytes
    from damier.search.run import Run, count_threads

    threads = count_threads(n_jobs)
    source = open_source(str(file), memory_limit=max(limit // 2, 1 << 28), threads=threads)
    assert source is not None
    if table_bytes(source) <= limit / 4 and not several:
        return None
    if target is None:
        return None
    given = [name for name, value in reading.items() if value and name != "header"]
    if given or not reading.get("header", True):
        raise ValueError(
            f"--{given[0] if given else 'no-header'} is for tables that fit a quarter of the memory: give a "
            "larger --memory, or write the columns to be read as Parquet first"
        )
    check_columns(source, target)
    with show("Counting", 0) as progress:
        run = Run(threads, None, progress)
        numeric = run.call(is_number, source, target, None, kind, many=True, run=run)
        found = run.call(_numbers if numeric else _classes, source, target, run)
    if numeric and kind == "auto":
        note_number(target)
    fitted, table, explained, distribution = found
    said = (
        f"{source.n_rows:,} rows: levels and parts are of all of them, counted by {source.engine} in "
        f"{source.n_scans} scans"
    )
    if table.n_rows < source.n_rows:
        said += f"; statistics, scores, grid and pairs are of a sample of {table.n_rows:,} rows"
    partitions = {partition.name: partition for partition in fitted.partitions}
    missing = {name: fact.missing or 0 for name, fact in zip(partitions, fitted.facts, strict=True)}
    return LargeTable(replace(table, notes=(said,)), explained, partitions, missing, distribution)


def _classes(source: Source, target: str, run: Run) -> _Found:
    """Partition the columns against classes, and draw a sample."""
    from damier.fit.sources import fit_columns, sample_rows_of
    from damier.intake.engines.source import read_labels

    labels = read_labels(source, target)
    if labels.n_classes < 2:
        raise ValueError(f"the target {target!r} is constant: every row holds {labels.values[0]!r}")
    fitted = fit_columns(source, labels, short_bounds=True, run=run)
    table, classes, _ = sample_rows_of(source, labels, _SAMPLE_ROWS, 0)
    return fitted, table, classes, None


def _numbers(source: Source, target: str, run: Run) -> _Found:
    """Partition the columns together with a numeric target, and draw a sample."""
    from damier.fit.source_numbers import fit_source_numbers, target_distribution
    from damier.fit.source_target import read_number, sample_numbers

    number = read_number(source, target, None, run)
    fitted = fit_source_numbers(number, short_bounds=True, run=run)
    table, ordered = sample_numbers(number, _SAMPLE_ROWS, 0)
    return fitted, table, ordered.target, target_distribution(number, fitted.partitions, run)
