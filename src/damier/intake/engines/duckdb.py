"""Files and relations counted through DuckDB, which streams their rows as Arrow batches."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from damier.intake.cells import MISSING, NEARLY, WEAK, Reading, find_reading, is_code, literal, quoted
from damier.intake.engines.cells import Axis, Cells, label_case, make_cells, part_case
from damier.intake.engines.prebins import CHANGED, Binning, Counts, NumberCounter, parts_of
from damier.intake.engines.source import (
    COUNT,
    SLOTS,
    Kind,
    Labels,
    Listed,
    Profiles,
    SourceColumn,
    Watch,
    crowded_slots,
    few_classes_error,
    need,
    part_name,
)
from damier.intake.files import read_file
from damier.intake.frames import read_table
from damier.intake.packed import check_packed
from damier.intake.reading import check_path, without_globs
from damier.intake.table import Column, NumericColumn, Table

if TYPE_CHECKING:
    import duckdb

BATCH = 1 << 17
"""Rows of a batch, unless said otherwise."""

_NUMBERS = {
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("uhugeint", "float", "double", "decimal", "bignum", "varint"),
}
_WHOLE = _NUMBERS - {"float", "double", "decimal"}
# What a float of 64 bits holds to the last digit.
_FLOATS = {"tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger", "float", "double"}
_MOMENTS = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
_TEXT = {"varchar", "enum", "uuid"}
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(_MOMENTS, "datetime"),
    **dict.fromkeys(_TEXT, "text"),
    "date": "date",
    "time": "time",
    "interval": "duration",
    "boolean": "boolean",
}
_VIEW = "damier_source"
_SNIFFED_ROWS = 10_000
# A text file of up to this size is looked at, whether it holds anything: DuckDB invents a column for nothing.
_BLANK_BYTES = 4096
_BOOLEAN = Reading("number", "TRY_CAST(trim({c}) AS BOOLEAN)")
# Classes up to this many are distinguished by CASE, and counted side by side.
_FEW_CLASSES = 32


def value_literal(value: Any) -> str:
    """Write a scalar in SQL."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value!r}::DOUBLE"
    return str(value)


def open_files(
    path: str | Path, *, memory_limit: int | None = None, threads: int | None = None
) -> DuckDBSource:
    """Open Parquet or CSV files, one or all those of a pattern.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If the end of the name is that of neither kind, or the files cannot be read.
    """
    import duckdb

    pattern = str(path)
    if os.path.isdir(pattern):
        raise ValueError(f"{pattern} is a directory: name its files, for example '{pattern}/*.parquet'")
    several = glob.has_magic(pattern) and not os.path.exists(pattern)
    found = sorted(glob.glob(pattern, recursive=True)) if several else [pattern]
    if not found:
        raise FileNotFoundError(f"{pattern}: no such file")
    for name in found:
        check_path(Path(name))
    kinds = {_kind_of_file(name) for name in found}
    if len(kinds) > 1 or None in kinds:
        raise ValueError(f"{pattern}: all files must end in .parquet, or all in .csv or .tsv")
    for name in found if kinds == {"csv"} else []:
        if os.path.getsize(name) < _BLANK_BYTES and not Path(name).read_bytes().strip():
            raise ValueError(f"{name} is empty: the first line must have the names of the columns")
        check_packed(Path(name))
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "false",
        "temp_directory": tempfile.gettempdir(),
    }
    if memory_limit is not None:
        settings["memory_limit"] = f"{memory_limit // 2**20}MiB"
    if threads is not None:
        settings["threads"] = str(threads)
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    listed = "[" + ", ".join(literal(without_globs(name)) for name in found) + "]"
    folder = None
    try:
        _check_names(connection, found[0], kinds == {"parquet"})
        if kinds == {"parquet"}:
            relation = connection.sql(f"SELECT * FROM read_parquet({listed}, union_by_name=true)")
        else:
            # Each scan would read the text anew, and guess anew what its cells are.
            folder = tempfile.mkdtemp(prefix="damier-")
            copied = str(Path(folder) / "rows.parquet")
            selected = _copy_text(connection, listed, copied)
            relation = connection.sql(f"SELECT {selected} FROM read_parquet({literal(copied)})")
        source = DuckDBSource(relation, pattern, connection)
    except duckdb.Error as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise ValueError(f"{pattern} cannot be read: {_first_line(error)}") from None
    if folder is not None:
        weakref.finalize(source, shutil.rmtree, folder, True)
    if len(found) == 1:
        source.path = Path(found[0])
    return source


def _check_names(connection: Any, name: str, parquet: bool) -> None:
    """Refuse names that DuckDB does not tell apart, and would change: those that differ by case alone."""
    file = literal(without_globs(name))
    read = f"read_parquet({file})" if parquet else f"read_csv({file}, all_varchar=true)"
    if not any(re.search(r"_\d+$", held) for held in connection.sql(f"SELECT * FROM {read} LIMIT 0").columns):
        return
    if parquet:
        need("pyarrow", "engines", f"reading the names of {name}")
        import pyarrow.parquet

        written = pyarrow.parquet.read_schema(name).names
    else:
        first = f"SELECT * FROM read_csv({file}, all_varchar=true, header=false) LIMIT 1"
        written = [str(cell) for row in connection.sql(first).fetchall() for cell in row]
    seen: dict[str, str] = {}
    for held in written:
        if (other := seen.setdefault(held.lower(), held)) is not held:
            raise ValueError(
                f"{name} has columns {other!r} and {held!r}, which DuckDB does not tell apart: rename one"
            )


def _copy_text(connection: Any, listed: str, copied: str) -> str:
    """Write text files as Parquet, cells read as `damier.intake.read_file` reads them; return what to select.

    A column is numeric, or of dates, if its first cells are so and 95% of all are; the other cells are then
    missing.
    """
    marks = sorted({form for mark in MISSING for form in (mark, mark.upper(), mark.replace("nan", "NaN"))})
    nulls = "[" + ", ".join(map(literal, marks)) + "]"
    text = f"read_csv({listed}, all_varchar=true, nullstr={nulls}, union_by_name=true)"
    names = connection.sql(f"SELECT * FROM {text} LIMIT 0").columns
    first = connection.sql(f"SELECT * FROM {text} LIMIT {_SNIFFED_ROWS}").fetchall()
    readings = {}
    for j, name in enumerate(names):
        held = [row[j] for row in first if row[j] is not None and row[j].strip()]
        reading, share = find_reading(held)
        if held and {cell.strip().lower() for cell in held} <= {"true", "false"}:
            readings[name] = _BOOLEAN
        elif reading is not None and share >= NEARLY and not any(map(is_code, held)):
            readings[name] = reading
    # One pass, as a rule: readings are applied at once, and what they do not read is marked beside.
    short = {name: f"c{j}" for j, name in enumerate(names)}
    while True:
        held = [f"{_read_as(readings.get(name), quoted(name))} AS {c}" for name, c in short.items()]
        held += [f"{quoted(name)} AS t{short[name]}" for name in readings]
        kept = [
            *short.values(),
            *(f"{c} IS NULL AND t{c} IS NOT NULL AS u{c}" for c in map(short.get, readings)),
        ]
        rows = f"SELECT {', '.join(kept)} FROM (SELECT {', '.join(held)} FROM {text})"
        connection.execute(f"COPY ({rows}) TO {literal(copied)} (FORMAT parquet)")
        found = _look_at(connection, copied, {short[name]: reading for name, reading in readings.items()})
        doubtful = {n: found[short[n]].read for n in readings if found[short[n]].is_doubtful}
        if doubtful:
            weak = ", ".join(map(literal, sorted(WEAK)))
            counts = ", ".join(f"count_if(lower(trim({quoted(n)})) NOT IN ({weak}))" for n in doubtful)
            (counted,) = connection.sql(f"SELECT {counts} FROM {text}").fetchall()
            cells = dict(zip(doubtful, counted, strict=True))
            doubtful = {name: read for name, read in doubtful.items() if read < NEARLY * cells[name]}
        if not doubtful:
            # Classes 0 and 1 must not come out as 0.0 and 1.0.
            whole = {c for c, look in found.items() if look.whole}
            selected = {name: f"{c}::BIGINT" if c in whole else c for name, c in short.items()}
            return ", ".join(f"{c} AS {quoted(name)}" for name, c in selected.items())
        readings = {name: reading for name, reading in readings.items() if name not in doubtful}


class _Look(NamedTuple):
    """How many cells of a column were not read, how many were, and whether these are whole numbers."""

    unread: int
    read: int
    whole: bool | None

    @property
    def is_doubtful(self) -> bool:
        """Whether less than 95% of the cells were read."""
        return self.read < NEARLY * (self.read + self.unread)


def _look_at(connection: Any, copied: str, readings: Mapping[str, Reading]) -> dict[str, _Look]:
    """Look at the columns that were read as something else than text."""
    if not readings:
        return {}
    selected = [
        f"count_if(u{c}), count({c}), "
        + (f"bool_and({c} = trunc({c}) AND abs({c}) <= {2**53})" if _is_number(reading) else "false")
        for c, reading in readings.items()
    ]
    query = f"SELECT {', '.join(selected)} FROM read_parquet({literal(copied)})"
    (found,) = connection.sql(query).fetchall()
    return {c: _Look(*found[3 * j : 3 * j + 3]) for j, c in enumerate(readings)}


def _is_number(reading: Reading) -> bool:
    return reading.kind == "number" and reading is not _BOOLEAN


def _read_as(reading: Reading | None, column: str) -> str:
    """Write the expression of a column of text as what it holds."""
    if reading is None:
        return f"trim({column})"
    if reading.kind == "number":
        return reading.of(column)
    if reading.kind == "time":
        return f"(TIME '00:00:00' + to_microseconds(({reading.of(column)})::BIGINT))"
    moment = f"make_timestamp(({reading.of(column)})::BIGINT)"
    return f"{moment}::DATE" if reading.kind == "date" else moment


def _kind_of_file(name: str) -> str | None:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in (".parquet", ".pq"):
        return "parquet"
    return "csv" if last in (".csv", ".tsv") else None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


class DuckDBSource:
    """A relation of DuckDB as a source.

    Parameters
    ----------
    relation : DuckDBPyRelation
        Read on its own connection, which keeps its settings.
    shown : str
        What messages call it.
    connection : DuckDBPyConnection, optional
        To be kept alive as long as the source, if it is Damier's own.
    batch : int, optional
        Rows of a batch, `BATCH` by default.

    Examples
    --------
    >>> import duckdb
    >>> from damier.intake.engines.source import read_labels
    >>> source = DuckDBSource(duckdb.sql("SELECT i % 7 AS x, i % 2 = 0 AS y FROM range(100) t(i)"))
    >>> labels = read_labels(source, "y")
    >>> labels.classes, labels.counts
    (array([False,  True]), array([50, 50]))
    """

    engine = "DuckDB"

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        shown: str = "the relation",
        connection: duckdb.DuckDBPyConnection | None = None,
        *,
        batch: int | None = None,
    ) -> None:
        self.relation = relation
        self.shown = shown
        self.connection = connection
        self.path: Path | None = None
        self.batch = BATCH if batch is None else batch
        self.n_scans = 0
        self.columns = tuple(
            _source_column(name, kind) for name, kind in zip(relation.columns, relation.types, strict=True)
        )
        self._types = {
            name: str(kind.id) for name, kind in zip(relation.columns, relation.types, strict=True)
        }
        self.n_rows = int(self._fetch(f"SELECT count(*) FROM {_VIEW}")[0][0])

    # ----- queries

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Put what DuckDB reports into one sentence."""
        import duckdb

        try:
            yield
        except (duckdb.Error, OSError) as error:  # while rows are streamed, errors of DuckDB are OSError
            if isinstance(error, duckdb.OutOfMemoryException) or str(error).startswith("Out of Memory Error"):
                raise MemoryError(
                    f"{self.shown}: DuckDB ran out of memory or of disk to spill to ({_first_line(error)}): "
                    "raise memory_limit, or free space"
                ) from None
            raise ValueError(f"{self.shown} cannot be read: {_first_line(error)}") from None

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        with self._errors():
            rows: list[tuple[Any, ...]] = self._query(query).fetchall()
            return rows

    def _query(self, query: str) -> Any:
        return self.relation.query(_VIEW, query)

    @contextlib.contextmanager
    def _reader(self, query: str) -> Iterator[Any]:
        need("pyarrow", "engines", "streaming rows from DuckDB")
        with self._errors(), contextlib.closing(self._query(query).to_arrow_reader(self.batch)) as reader:
            yield reader

    def _arrow(self, query: str) -> Any:
        with self._reader(query) as reader:
            return reader.read_all()

    def batches(self, query: str) -> Generator[Any]:
        """Stream the Arrow batches of a query on the view of the source."""
        self.n_scans += 1
        with self._reader(query) as reader:
            yield from reader

    def _number(self, name: str) -> str:
        """Write a column as DOUBLE."""
        held, column = self._types[name], quoted(name)
        if held in _MOMENTS or held in ("date", "time", "interval"):
            return f"epoch_us({column})::DOUBLE"
        return column if held == "double" else f"{column}::DOUBLE"

    def _name(self, name: str) -> str:
        """Write a column as what names its values: numbers of one value are one, NaN is missing."""
        held, column = self._types[name], quoted(name)
        if held in ("float", "double"):
            number = f"{column}::DOUBLE"
            return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} + 0 END"
        if held in _MOMENTS or held in ("date", "time", "interval"):
            return f"epoch_us({column})"
        if held == "decimal":
            return f"{column}::DOUBLE"
        return f"{column}::VARCHAR" if held in ("enum", "uuid") else column

    def _code(self, labels: Labels) -> str:
        """Write the class of a row as a number."""
        if labels.axes or not labels.values:
            code = self._code(replace(labels, axes=())) if labels.values else ""
            return f"({label_case(labels, self._part, code)})::INTEGER"
        name = self._name(labels.name)
        if self._types[labels.name] == "boolean" and labels.n_classes == 2:
            return f"{name}::INTEGER"
        if labels.n_classes <= _FEW_CLASSES:
            chosen = " ".join(
                f"WHEN {value_literal(value)} THEN {j}" for j, value in enumerate(labels.values)
            )
            return f"CASE {name} {chosen} END::INTEGER"
        pairs = ", ".join(value_literal(value) for value in labels.values)
        return f"(list_position([{pairs}], {name}) - 1)::INTEGER"

    def _part(self, axis: Axis) -> str:
        """Write the part of a row on an axis."""
        number = f"nullif({self._number(axis.name)}, 'nan'::DOUBLE)" if axis.groups is None else ""
        return part_case(axis, number, self._name(axis.name), _exact)

    @staticmethod
    def _counted(labels: Labels) -> str:
        return "" if labels.weight is None else f" WHERE {quoted(labels.weight)} > 0"

    @staticmethod
    def _sum(weight: str | None) -> str:
        return "count(*)" if weight is None else f"sum({quoted(weight)})::BIGINT"

    # ----- the protocol

    def classes(self, target: str, weight: str | None) -> tuple[list[Any], list[int]]:
        """Count the values of the target."""
        self.n_scans += 1
        kept = "" if weight is None else f" WHERE {quoted(weight)} > 0"
        rows = self._fetch(
            f"SELECT {self._name(target)} AS v, {self._sum(weight)} FROM {_VIEW}{kept} GROUP BY v ORDER BY v"
        )
        return [value for value, _ in rows], [int(count) for _, count in rows]

    def weight_facts(self, weight: str) -> tuple[float, float, int, int]:
        """Return what is wrong with weights, if anything."""
        self.n_scans += 1
        w = f"{quoted(weight)}::DOUBLE"
        (facts,) = self._fetch(
            f"SELECT min({w}), max({w}), count(*) - count({w}), count(*) FILTER ({w} <> floor({w})) "
            f"FROM {_VIEW}"
        )
        least, greatest, missing, broken = facts
        return least or 0.0, greatest or 0.0, int(missing), int(broken)

    def count(
        self,
        binnings: Mapping[str, Binning],
        labels: Labels | Mapping[str, Labels],
        *,
        of: str | None = None,
        by_class: bool = True,
        values: bool = False,
        counter: type[NumberCounter] = NumberCounter,
        watch: Watch | None = None,
    ) -> dict[str, Counts]:
        """Count numeric columns in their bins."""
        names = list(binnings)
        each = [labels if isinstance(labels, Labels) else labels[name] for name in names]
        shared = isinstance(labels, Labels)
        counters = [
            counter(binnings[name], held.n_classes if by_class else 1, values)
            for name, held in zip(names, each, strict=True)
        ]
        places: dict[str, int] = {}

        def place(expression: str) -> int:
            return places.setdefault(expression, len(places))

        numbers = [place(self._number(name if of is None else of)) for name in names]
        coders = [self._coder(held, place) for held in (each[:1] if shared else each)] if by_class else []
        weight = each[0].weight
        weighted = None if weight is None else place(f"{quoted(weight)}::BIGINT")
        selected = ", ".join(f"{expression} AS c{k}" for expression, k in places.items())
        query = f"SELECT {selected} FROM {_VIEW}{self._counted(each[0])}"
        done, began = 0, time.monotonic()
        with contextlib.closing(self.batches(query)) as batches:
            for batch in batches:
                weights = None if weighted is None else _integers(batch, weighted, np.int64)
                codes = coders[0](batch) if shared and by_class else None

                def add(j: int, batch: Any = batch, codes: Any = codes, weights: Any = weights) -> None:
                    known = coders[j](batch) if by_class and not shared else codes
                    counters[j].add(_numbers(batch, numbers[j]), known, weights)

                done += batch.num_rows
                if watch is None:
                    for j in range(len(names)):
                        add(j)
                else:
                    watch.check()
                    watch.map(add, range(len(names)))
                    speed = done / max(time.monotonic() - began, 1e-9)
                    text = f"Scan {self.n_scans}, columns: {len(names)}, {speed:,.0f} rows/s"
                    watch.report(text, done=done, total=self.n_rows)
        return {name: counters.pop(0).counts() for name in names}  # one table at a time is there twice

    def _coder(self, labels: Labels, place: Callable[[str], int]) -> Callable[[Any], Any]:
        """Return what finds the classes of a batch; ``place`` gives the column of an expression."""
        steps: list[tuple[int, Axis | None, int]] = []
        for axis in labels.axes:
            # Intervals are found faster here than by the engine.
            numeric = axis.groups is None
            at = place(self._number(axis.name) if numeric else f"({self._part(axis)})::INTEGER")
            steps.append((at, axis if numeric else None, axis.n_parts))
        if labels.values or not steps:
            steps.append((place(self._code(replace(labels, axes=()))), None, max(len(labels.values), 1)))

        def code(batch: Any) -> Any:
            found = None
            for at, axis, size in steps:
                if axis is None:
                    part = _integers(batch, at, np.int32)
                else:
                    part = parts_of(_numbers(batch, at), np.array(axis.bounds), axis.alone)
                found = part if found is None else found * np.int32(size) + part
            return found

        return code

    def profiles(self, column: str, labels: Labels) -> Profiles:
        """Count the values of a column by their class counts."""
        self.n_scans += 1
        table, columns = self._by_value(column, labels)
        listed = ", ".join(columns)
        found = self._arrow(
            f"SELECT {listed}, count(*) AS m FROM ({table}) GROUP BY {listed} ORDER BY {listed}"
        )
        return Profiles(_table(found, labels, columns), found.column("m").to_numpy())

    def listed(self, column: str, labels: Labels, max_values: int) -> Listed:
        """List the most frequent values of a column."""
        self.n_scans += 1
        table, columns = self._by_value(column, labels)
        found = self._arrow(
            f"SELECT v, {', '.join(columns)} FROM ({table}) ORDER BY t DESC, v NULLS FIRST LIMIT {max_values}"
        )
        return Listed(found.column("v").to_pylist(), _table(found, labels, columns))

    def write_groups(
        self, column: str, labels: Labels, profiles: Profiles, groups: Sequence[int], out: str
    ) -> int:
        """Write every value of a column with its group to a Parquet file."""
        table, columns = self._by_value(column, labels)
        if columns == ["n"]:
            raise few_classes_error(labels, _FEW_CLASSES)
        self.n_scans += 1
        rows = ", ".join(
            f"({', '.join(map(str, [*counts, group]))})"
            for counts, group in zip(profiles.counts.tolist(), groups, strict=True)
        )
        names = ", ".join(columns)
        query = (
            f"SELECT v AS {quoted(column)}, part AS {part_name(column)} FROM ({table}) "
            f"JOIN (VALUES {rows}) AS p({names}, part) USING ({names}) ORDER BY part, v NULLS FIRST"
        )
        partial = f"{out}.partial"
        try:
            with self._errors():
                self._query(query).write_parquet(partial)
            Path(partial).replace(out)
        finally:
            Path(partial).unlink(missing_ok=True)
        return int(profiles.n_values.sum())

    def _by_value(self, column: str, labels: Labels) -> tuple[str, list[str]]:
        """Write a query of values v, their rows t and class counts, and the columns that hold these."""
        name, code, kept = self._name(column), self._code(labels), self._counted(labels)
        weight = "" if labels.weight is None else f", {quoted(labels.weight)} AS w"
        rows = f"SELECT {name} AS v, {code} AS y{weight} FROM {_VIEW}{kept}"
        total = "count(*)" if labels.weight is None else "sum(w)"
        if labels.n_classes <= _FEW_CLASSES:
            columns = [f"n{j}" for j in range(labels.n_classes)]
            sums = ", ".join(
                f"coalesce({total} FILTER (y = {j}), 0)::BIGINT AS n{j}" for j in range(labels.n_classes)
            )
            return f"SELECT v, {total} AS t, {sums} FROM ({rows}) GROUP BY v", columns
        # Many classes: only those that a value has.
        pairs = f"SELECT v, y, {total}::BIGINT AS n FROM ({rows}) GROUP BY v, y"
        listed = "list({'y': y, 'n': n} ORDER BY y) AS n"
        return f"SELECT v, sum(n) AS t, {listed} FROM ({pairs}) GROUP BY v", ["n"]

    def cells(self, axes: Sequence[Axis], labels: Labels) -> Cells:
        """Count the cells of a grid."""
        self.n_scans += 1
        selected = [f"{self._part(axis)} AS p{k}" for k, axis in enumerate(axes)]
        weight = "1" if labels.weight is None else f"{quoted(labels.weight)}::BIGINT"
        listed = ", ".join([*(f"p{k}" for k in range(len(axes))), "y"])
        rows = self._fetch(
            f"SELECT {listed}, sum(w) FROM (SELECT {', '.join(selected)}{', ' if selected else ''}"
            f"{self._code(labels)} AS y, {weight} AS w FROM {_VIEW}{self._counted(labels)}) GROUP BY {listed}"
        )
        return make_cells(rows, [row[-2] for row in rows], len(axes), labels)

    def pairs(self, rows: str, columns: str | Labels, weight: str | None, most: int) -> Table:
        """Count the pairs of values of two columns.

        Texts, and numbers that a float does not hold, stay in the engine: it numbers the values of each
        column, and hands them over once.
        """
        self.n_scans += 1
        labels = columns if isinstance(columns, Labels) else None
        sides = [(rows, "r"), (columns.name if isinstance(columns, Labels) else columns, "c")]
        named = [
            (name, short)
            for name, short in sides[: 1 if labels is not None else 2]
            if self._types[name] not in _FLOATS
        ]
        other = self._name(sides[1][0]) if labels is None else self._code(labels)
        kept = "" if labels is None else self._counted(labels)
        held = (
            f"SELECT {self._name(rows)} AS r, {other} AS c, {self._sum(weight)} AS n "
            f"FROM {_VIEW}{kept} GROUP BY ALL LIMIT {most + 1}"
        )
        tables, joins = [f"held AS MATERIALIZED ({held})"], ""
        for _, short in named:
            distinct = f"SELECT DISTINCT {short} AS v FROM held"
            number = f"SELECT v, row_number() OVER (ORDER BY v NULLS FIRST) - 1 AS k FROM ({distinct})"
            tables.append(f"of_{short} AS MATERIALIZED ({number})")
            joins += f" JOIN of_{short} ON {short} IS NOT DISTINCT FROM of_{short}.v"
        selected = [
            f"of_{short}.k::INTEGER AS {short}" if (name, short) in named else f"{short}::DOUBLE AS {short}"
            for name, short in sides
        ]
        found = self._arrow(f"WITH {', '.join(tables)} SELECT {', '.join(selected)}, n FROM held{joins}")
        result: list[Column] = []
        for name, short in sides:
            codes = found.column(short).to_numpy(zero_copy_only=False)
            if (name, short) not in named:
                result.append(NumericColumn(name, np.ascontiguousarray(codes)))
                continue
            values = self._arrow(
                f"SELECT DISTINCT {self._name(name)} AS v FROM {_VIEW} ORDER BY v NULLS FIRST"
            )
            if len(codes) <= most and len(values) != (codes.max() + 1 if len(codes) else 0):
                raise ValueError(CHANGED)
            read = replace(read_table(values).columns[0], name=name)
            result.append(read.take(codes) if len(codes) <= most else read)
        result.append(NumericColumn(COUNT, found.column("n").to_numpy().astype(np.float64)))
        return Table(tuple(result), found.num_rows)

    def sample(self, columns: Sequence[str], n_rows: int, seed: int = 0) -> Table:
        """Choose rows by a hash of their values."""
        self.n_scans += 1
        listed = ", ".join(map(quoted, columns))
        # In an order that is not that of the rows: sums over them must come out the same.
        order = ", ".join(["h", *map(str, range(1, len(columns) + 1))])
        rows = f"SELECT {listed}, hash({listed}, {int(seed)}) AS h FROM {_VIEW}"
        if n_rows >= self.n_rows:
            return read_table(self._arrow(f"{rows} ORDER BY {order}").drop_columns(["h"]))
        share = n_rows / self.n_rows
        slot, place = f"h // {2**64 // SLOTS}::UBIGINT", f"h::DOUBLE / {2.0**64!r}"
        held = self._fetch(f"SELECT {slot} AS s, count(*) FROM ({rows}) GROUP BY s")
        crowded = crowded_slots([row[0] for row in held], [row[1] for row in held])
        chosen = f"{slot} IN ({', '.join(map(str, crowded))})" if crowded else str(crowded is None).lower()
        found = self._arrow(
            f"SELECT {listed}, h, 1 AS k FROM ({rows}) WHERE NOT ({chosen}) AND {place} < {share!r} "
            f"UNION ALL SELECT {listed}, h, floor(count(*) * {share!r} - {place} + 1)::BIGINT AS k "
            f"FROM ({rows}) WHERE {chosen} GROUP BY {listed}, h HAVING k >= 1 ORDER BY {order}"
        )
        times = found.column("k").to_numpy()
        return read_table(found.drop_columns(["h", "k"]).take(np.repeat(np.arange(len(times)), times)))

    def collect(self, columns: Sequence[str]) -> Table:
        """Read all rows."""
        self.n_scans += 1
        if self.path is not None:
            return read_file(self.path, only=columns)
        return read_table(self._arrow(f"SELECT {', '.join(map(quoted, columns))} FROM {_VIEW}"))


def _exact(value: Any) -> str:
    """Write a scalar, a float to its last bit."""
    return f"{value!r}e0" if isinstance(value, float) and "e" not in repr(value) else value_literal(value)


def _source_column(name: str, kind: Any) -> SourceColumn:
    held = str(kind.id)
    zoned = held == "timestamp with time zone"
    return SourceColumn(name, _KINDS.get(held, "nested"), str(kind), ("UTC",) if zoned else ())


def _numbers(batch: Any, at: int) -> Any:
    return batch.column(at).to_numpy(zero_copy_only=False)


def _integers(batch: Any, at: int, dtype: Any) -> Any:
    held = batch.column(at)
    if held.null_count:
        raise ValueError(CHANGED)  # a class that was not there
    return np.ascontiguousarray(held.to_numpy(zero_copy_only=False), dtype=dtype)


def _table(found: Any, labels: Labels, columns: list[str]) -> Any:
    """Class counts of the rows of an answer."""
    if columns != ["n"] or labels.n_classes == 1:
        held = [found.column(name).to_numpy().astype(np.int64, copy=False) for name in columns]
        return np.column_stack(held) if held else np.zeros((0, labels.n_classes), np.int64)
    counts = np.zeros((found.num_rows, labels.n_classes), np.int64)
    chunks = found.column("n").combine_chunks()
    offsets = np.asarray(chunks.offsets)
    rows = np.repeat(np.arange(found.num_rows), np.diff(offsets))
    entries = chunks.flatten()
    counts[rows, np.asarray(entries.field("y"))] = np.asarray(entries.field("n"))
    return counts
