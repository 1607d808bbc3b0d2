"""Rows of files that need not fit into memory, batch after batch, in the order of the rows.

Parquet and text go through DuckDB, which reads what is asked for and no more; a Parquet file with durations
or ordered categories, which DuckDB does not keep, goes through pyarrow. Files of other kinds are read whole.
"""

from __future__ import annotations

import glob
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from damier.intake import cells, factorize
from damier.intake.cells import PLAIN, Reading, literal
from damier.intake.files import read_file
from damier.intake.frames import read_table
from damier.intake.reading import (
    OFFLINE,
    PARQUET,
    TEXT,
    Options,
    check_names,
    check_path,
    kind_of_name,
    tidy_names,
    without_globs,
)
from damier.intake.table import CategoricalColumn, Column, NumericColumn, Table
from damier.intake.text import TextFile
from damier.intake.text_readers import TRUTH, DuckReader

Result = TypeVar("Result")
# Cells read at once: enough to keep vectors busy, little enough for the memory of a wide table.
_BATCH_CELLS = 1 << 21
_MOST_ROWS = 1 << 16
_SAMPLED_ROWS = 1000
_FORCED = Reading("number", "TRY_CAST({c} AS DOUBLE)")


@dataclass(frozen=True)
class Batch:
    """Some rows: the columns to work on, and those to copy as they are in the file (arrays of pyarrow)."""

    table: Table
    kept: Mapping[str, Any]


@dataclass
class Rows:
    """Rows of one file.

    Parameters
    ----------
    path : Path
    used : sequence of str
        The columns to work on; those that the file lacks are left out, and all are taken if it lacks all.
    kinds : mapping of str to {"text", "number"}
        What columns of a text file are taken as; others as their first cells say.
    keep : sequence of str, optional
        Columns to copy; None for all.
    options : mapping
        Those of :func:`damier.intake.read_file`.
    """

    path: Path
    used: Sequence[str]
    kinds: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[str] | None = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not importlib.util.find_spec("pyarrow"):
            raise ImportError("rows are streamed by pyarrow: pip install pyarrow")
        # Here, before anything is written: Ctrl-C while DuckDB is imported ends the process on the spot.
        importlib.import_module("duckdb")
        self._checked = Options.checked(**self.options)

    def read(self, consume: Callable[[Iterator[Batch]], Result]) -> Result:
        """Pass the batches on.

        A text file is read through first: what is wrong with it is said before the first batch.

        Parameters
        ----------
        consume : callable
            Called once with an iterator over the batches; what it returns is returned.

        Raises
        ------
        ValueError
            If the file cannot be read, or lacks a column to copy.
        """
        check_path(self.path)
        suffix = kind_of_name(self.path)
        if suffix in PARQUET:
            return consume(self._parquet())
        if suffix in TEXT or self.options.get("separator") is not None:
            return self._text(TEXT.get(suffix, ","), consume)
        return consume(self._whole())

    def count(self) -> int | None:
        """Return the number of rows if the file says it, else None."""
        if kind_of_name(self.path) not in PARQUET or not self.path.is_file():
            return None
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(self.path).num_rows)
        except (OSError, ValueError):
            return None  # said in words when the rows are read

    def _chosen(self, held: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the columns to work on and those to copy, of those that the file has."""
        check_names(held, self._checked, str(self.path))
        held = [name for name in held if self._checked.keeps(name)]
        keep = list(held) if self.keep is None else list(self.keep)
        for name in keep:
            if name not in held:
                shown = ", ".join(map(repr, held[:10])) + (", ..." if len(held) > 10 else "")
                raise ValueError(f"{self.path} has no column {name!r}; its columns are {shown}")
        used = [name for name in self.used if name in held]
        return (used or list(held)) if self.used else [], keep

    def _parquet(self) -> Iterator[Batch]:
        import duckdb
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            schema = pq.read_schema(self.path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path} is not a readable Parquet file: {error}") from None
        used, keep = self._chosen(schema.names)
        # A model may use no column at all: the rows are still counted.
        names = list(dict.fromkeys([*used, *keep])) or schema.names[:1]
        if not names:
            raise ValueError(f"{self.path} has no columns")
        rows = batch_rows(len(names))
        try:
            if any(_only_arrow(schema.field(name).type) for name in names):
                reader = pq.ParquetFile(self.path)
                for batch in _one_at_least(reader.iter_batches(rows, columns=names), schema):
                    yield _batch(batch.select(names), used, keep)
                return
            with duckdb.connect(config=OFFLINE) as connection:
                connection.execute("SET enable_progress_bar = false")
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("SET enable_external_file_cache = false")  # each file is read once
                listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
                source = f"read_parquet({literal(without_globs(self.path))}, hive_partitioning=false)"
                reader = connection.sql(f"SELECT {listed} FROM {source}").to_arrow_reader(rows)
                for batch in _one_at_least(reader, reader.schema):
                    yield _batch(batch.rename_columns(names), used, keep)
        except (
            duckdb.Error,
            pa.ArrowException,
            OSError,
        ) as error:  # of a stream, errors of DuckDB are OSError
            reason = str(error).partition("\n")[0]
            raise ValueError(f"{self.path} is not a readable Parquet file: {reason}") from None

    def _text(self, usual: str, consume: Callable[[Iterator[Batch]], Result]) -> Result:
        import duckdb

        file = TextFile(self.path, usual, self._checked)

        def once(path: Path) -> Result:
            reader = _TextRows(file, path)
            try:
                try:
                    batches = reader.checked(self._chosen, self.kinds)
                except duckdb.Error as error:
                    raise file._told(str(error)) from None
                result = consume(batches)
            except duckdb.Error as error:
                raise ValueError(f"{self.path} cannot be read: {str(error).splitlines()[0]}") from None
            finally:
                reader.connection.close()
            self.notes = [*file.notes, *reader.remarks()]
            return result

        return file.tried(once)

    def _whole(self) -> Iterator[Batch]:
        table = read_file(self.path, **self.options)
        _, keep = self._chosen(table.names)
        import pyarrow as pa

        yield Batch(table, {name: pa.array(_plain(table[name])) for name in keep})


def find_files(pattern: str) -> list[Path]:
    """Return the files that a name, a folder or a pattern stands for, in the order of their names.

    >>> find_files("no such file.csv")
    []
    """
    path = Path(pattern)
    if path.is_dir():
        found = [p for p in sorted(path.iterdir()) if p.is_file() and not p.name.startswith((".", "_"))]
        return [p for p in found if kind_of_name(p) in (*PARQUET, *TEXT)]
    if path.exists() or not glob.has_magic(pattern):
        return [path] if path.exists() else []
    return [p for p in map(Path, sorted(glob.glob(pattern, recursive=True))) if p.is_file()]


def batch_rows(n_columns: int) -> int:
    """Return how many rows are read at once."""
    return max(1024, min(_MOST_ROWS, _BATCH_CELLS // max(1, n_columns)))


def _one_at_least(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Pass batches on, and one without rows where there is none: its columns count."""
    import pyarrow as pa

    batch = None
    for batch in batches:
        yield batch
    if batch is None:
        yield pa.RecordBatch.from_pylist([], schema)


def _only_arrow(held: Any) -> bool:
    """Return whether DuckDB would read a column of this type as something else."""
    import pyarrow as pa

    return bool(pa.types.is_duration(held) or (pa.types.is_dictionary(held) and held.ordered))


def _batch(batch: Any, used: list[str], keep: list[str]) -> Batch:
    table = read_table(batch.select(used)) if used else Table((), batch.num_rows)
    return Batch(table, {name: batch.column(name) for name in keep})


def _plain(column: Column) -> list[Any]:
    if isinstance(column, CategoricalColumn):
        return [column.categories[code] for code in column.codes.tolist()]
    return [None if np.isnan(value) else value for value in column.values.tolist()]


class _TextRows(DuckReader):
    """Rows of a text file: all cells are text to DuckDB, and become what the columns are taken as."""

    def checked(
        self, chosen: Callable[[Sequence[str]], tuple[list[str], list[str]]], kinds: Mapping[str, str]
    ) -> Iterator[Batch]:
        """Read all cells once, then return the batches."""
        self.options = self.file.options
        self.truth: set[str] = set()
        self.strays: Counter[str] = Counter()
        first = self._open()
        self.names, _ = tidy_names(first if self.options.header else [""] * len(first), self.options.header)
        used, keep = chosen(self.names)
        column_of = {name: f"c{j}" for j, name in enumerate(self.names)}
        sizes = [f"sum(strlen({column_of[name]}))" for name in dict.fromkeys([*used, *keep])]
        self.connection.execute(f"SELECT {', '.join(['count(*)', *sizes])} FROM {self.source}")
        readings = self._readings(used, kinds, column_of)
        selected = [f"{column_of[name]} AS k{i}" for i, name in enumerate(keep)]
        for i, name in enumerate(used):
            reading, cell = readings[name], column_of[name]
            selected.append(f"{cell if reading is None else _number(reading, cell)} AS u{i}")
        return self._batches(f"SELECT {', '.join(selected) or 'c0'} FROM {self.source}", keep, readings)

    def _batches(self, query: str, keep: list[str], readings: dict[str, Reading | None]) -> Iterator[Batch]:
        rows = batch_rows(len(keep) + len(readings))
        reader = self.connection.sql(query).to_arrow_reader(rows)
        for batch in _one_at_least(reader, reader.schema):
            columns = tuple(
                self._column(name, batch.column(len(keep) + i), reading)
                for i, (name, reading) in enumerate(readings.items())
            )
            kept = {name: batch.column(i) for i, name in enumerate(keep)}
            yield Batch(Table(columns, batch.num_rows), kept)

    def remarks(self) -> list[str]:
        """Say which columns had cells that did not fit."""
        return [
            f"{name}: {count:,} cell{'s' if count > 1 else ''} read as missing, for want of a number or date"
            for name, count in self.strays.items()
            if count
        ]

    def _readings(
        self, used: list[str], kinds: Mapping[str, str], column_of: Mapping[str, str]
    ) -> dict[str, Reading | None]:
        """Find how the cells of each column become numbers; None where they stay text."""
        listed = ", ".join(column_of[name] for name in used)
        if not used:
            return {}
        sample = self.connection.execute(f"SELECT {listed} FROM {self.source} LIMIT {_SAMPLED_ROWS}")
        rows = sample.fetchall()
        found: dict[str, Reading | None] = {}
        for i, name in enumerate(used):
            kind = "text" if name in self.options.categorical else kinds.get(name)
            kind = "number" if name in self.options.numeric else kind
            held = [cell for cell in self._bare([row[i] for row in rows]) if cell is not None]
            reading, share = cells.find_reading(held, self._comma())
            found[name] = None
            if kind == "text":
                continue
            if kind == "number":
                plain = reading is None or reading.kind != "number" or reading is PLAIN
                found[name] = _FORCED if plain else reading
            elif share >= cells.NEARLY and not any(map(cells.is_code, held)):
                found[name] = reading
            elif held and all(cell.lower() in TRUTH for cell in held):
                self.truth.add(name)
        return found

    def _column(self, name: str, held: Any, reading: Reading | None) -> Column:
        if reading is not None:
            values = held.fill_null(np.nan).to_numpy(zero_copy_only=False)
            self.strays[name] += int(np.isnan(values).sum()) - held.null_count
            return NumericColumn(name, values, reading.kind)
        codes, distinct = factorize.factorize_arrow(held)
        bare = self._bare(distinct)
        if name in self.truth:
            truth = [None if cell is None else TRUTH.get(cell.lower()) for cell in bare]
            return CategoricalColumn(name, *factorize.recode(codes, truth, keep_booleans=True))
        return CategoricalColumn(name, *factorize.recode(codes, bare))


def _number(reading: Reading, cell: str) -> str:
    """Write the number of a cell: NULL where it is missing, NaN where it does not fit.

    Too large a number is no infinity, unless it says so.
    """
    value = f"coalesce({reading.of(cell)}, strlen({cell}) * 'nan'::DOUBLE)"
    if reading.kind != "number":
        return value
    return f"CASE WHEN isinf({value}) AND regexp_matches({cell}, '[0-9]') THEN 'nan' ELSE {value} END"
