"""Spark DataFrames as sources: workers count by NumPy, Spark adds up, the driver gets a few megabytes.

Nothing but NumPy and pyarrow need be installed on the workers. Nothing here needs a Spark context: a session
of Spark Connect does as well.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from damier.intake.engines import prebins, spark_kernels
from damier.intake.engines.cells import Axis, Cells, make_cells, part_case
from damier.intake.engines.prebins import Binning, Counts, NumberCounter
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
from damier.intake.frames import read_table
from damier.intake.table import Table

Result = TypeVar("Result")

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "varchar", "char"), "text"),
    "timestamp": "datetime",
    "timestamp_ntz": "datetime",
    "date": "date",
    "boolean": "boolean",
}
_EPOCH = "TIMESTAMP '1970-01-01 00:00:00Z'"
# Seconds between two looks at whether the run was stopped.
_GLANCE = 0.25
# Classes up to this many are counted side by side.
_FEW_CLASSES = 32


class SparkSource:
    """A Spark DataFrame as a source.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Of Spark or of Spark Connect.
    """

    engine = "Spark"

    def __init__(self, frame: Any) -> None:
        need("pyarrow", "engines", "counting on Spark")
        self.frame = frame
        self.n_scans = 0
        self._types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        self.columns = tuple(_source_column(name, held) for name, held in self._types.items())
        self.n_rows = int(self._run(frame.count))

    # ----- columns

    def _sql(self, text: str) -> Any:
        return importlib.import_module("pyspark.sql.functions").expr(text)

    def _microseconds(self, name: str) -> str | None:
        """Write a column of moments or spans in microseconds; None for any other."""
        held, column = self._types[name], quoted(name)
        if held == "date":
            return f"unix_date({column}) * 86400000000L"
        if held == "timestamp":
            return f"unix_micros({column})"
        if held == "timestamp_ntz":
            return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {column})"
        if _is_span(held):
            return f"unix_micros({_EPOCH} + {column})"
        return None

    def _number(self, name: str) -> str:
        return f"CAST({self._microseconds(name) or quoted(name)} AS DOUBLE)"

    def _name(self, name: str) -> str:
        """Write a column as what names its values: numbers of one value are one, NaN is missing."""
        held, column = self._types[name], quoted(name)
        if held in ("float", "double"):
            return f"nullif(CAST({column} AS DOUBLE), double('nan')) + 0.0D"
        if held.startswith("decimal"):
            return f"CAST({column} AS DOUBLE)"
        return self._microseconds(name) or column

    def _code(self, labels: Labels) -> Any:
        """Return the class of a row as a number."""
        functions = importlib.import_module("pyspark.sql.functions")
        if labels.axes or not labels.values:
            found = functions.lit(0)
            for axis in labels.axes:
                found = found * axis.n_parts + self._part(axis)
            if labels.values:
                found = found * len(labels.values) + self._code(replace(labels, axes=()))
            return found.cast("int")
        name = self._sql(self._name(labels.name))
        if labels.n_classes > _FEW_CLASSES:
            listed = functions.array(*map(functions.lit, labels.values))
            return (functions.array_position(listed, name) - 1).cast("int")
        chosen = functions
        for j, value in enumerate(labels.values):
            chosen = chosen.when(name == functions.lit(value), j)
        return chosen.cast("int")

    def _part(self, axis: Axis) -> Any:
        """Return the part of a row on an axis."""
        functions = importlib.import_module("pyspark.sql.functions")
        if axis.groups is None:
            number = f"nullif({self._number(axis.name)}, double('nan'))"
            return self._sql(part_case(axis, number, "", lambda value: f"double('{value!r}')"))
        part = functions.lit(axis.other)
        name = self._sql(self._name(axis.name))
        for g, group in enumerate(axis.groups):
            chosen = name.isin([value for value in group if value is not None])
            chosen = chosen | name.isNull() if None in group else chosen
            part = functions.when(chosen, g).otherwise(part)
        return part

    def _counted(self, weight: str | None) -> Any:
        return self.frame if weight is None else self.frame.where(self._sql(f"{quoted(weight)} > 0"))

    # ----- jobs

    def _run(
        self, job: Callable[[], Result], watch: Watch | None = None, task: str = "read the table"
    ) -> Result:
        """Run a job of Spark in a thread, and stop it when the run is stopped."""
        self.n_scans += 1
        outcome: list[Result] = []
        failure: list[BaseException] = []
        session, tag = self.frame.sparkSession, f"damier-{uuid.uuid4().hex}"
        tagged = hasattr(session, "addTag")

        def work() -> None:
            try:
                with contextlib.suppress(Exception):  # the classic session of 3.5 has no tags
                    session.addTag(tag)
                with contextlib.suppress(Exception):  # Spark Connect has no groups
                    session.sparkContext.setJobGroup(tag, "damier", interruptOnCancel=True)
                outcome.append(job())
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="damier spark", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_GLANCE)
                if watch is not None:
                    watch.check()
        except BaseException:
            if tagged:
                with contextlib.suppress(Exception):
                    session.interruptTag(tag)
            with contextlib.suppress(Exception):
                session.sparkContext.cancelJobGroup(tag)
            raise
        if failure:
            raise _explained(failure[0], task) from None
        return outcome[0]

    def _arrow(self, frame: Any) -> Any:
        return self._run(lambda: to_arrow(frame))

    # ----- the protocol

    def classes(self, target: str, weight: str | None) -> tuple[list[Any], list[int]]:
        """Count the values of the target."""
        total = self._sql("count(*)" if weight is None else f"CAST(sum({quoted(weight)}) AS BIGINT)")
        rows = self._counted(weight).groupBy(self._sql(self._name(target)).alias("v")).agg(total.alias("n"))
        found = self._arrow(rows.orderBy("v"))
        return found.column("v").to_pylist(), found.column("n").to_pylist()

    def weight_facts(self, weight: str) -> tuple[float, float, int, int]:
        """Return what is wrong with weights, if anything."""
        w = f"CAST({quoted(weight)} AS DOUBLE)"
        asked = [f"min({w})", f"max({w})", f"count_if({w} IS NULL)", f"count_if({w} <> floor({w}))"]
        found = self._arrow(
            self.frame.select(*(self._sql(text).alias(f"f{i}") for i, text in enumerate(asked)))
        )
        least, greatest, missing, broken = (column[0].as_py() for column in found.columns)
        return least or 0.0, greatest or 0.0, int(missing), int(broken)

    def count(
        self,
        binnings: Mapping[str, Binning],
        labels: Labels | Mapping[str, Labels],
        *,
        of: str | None = None,
        by_class: bool = True,
        values: bool = False,
        counter: type[NumberCounter] = NumberCounter,  # noqa: ARG002 -- the workers have NumPy's own
        watch: Watch | None = None,
    ) -> dict[str, Counts]:
        """Count numeric columns in their bins: all in one job."""
        cloudpickle = importlib.import_module("pyspark.cloudpickle")
        for module in (prebins, spark_kernels):
            cloudpickle.register_pickle_by_value(module)
        names = list(binnings)
        each = [labels if isinstance(labels, Labels) else labels[name] for name in names]
        classes = [held.n_classes if by_class else 1 for held in each]
        selected: list[Any] = []
        known: dict[str, int] = {}

        def numbers(name: str) -> int:
            text = self._number(name)
            if text not in known:
                known[text] = place(self._sql(text))
            return known[text]

        def place(column: Any) -> int:
            selected.append(column.alias(f"c{len(selected)}"))
            return len(selected) - 1

        tasks = [
            (numbers(name if of is None else of), spark_kernels.pack_binning(binnings[name]), n_classes)
            for name, n_classes in zip(names, classes, strict=True)
        ]
        several = each[:1] if isinstance(labels, Labels) else each
        coders = [self._coder(held, numbers, place) for held in several] if by_class else []
        weight, weighted = each[0].weight, None
        if weight is not None:
            weighted = place(self._sql(f"CAST({quoted(weight)} AS BIGINT)"))
        blocks = (
            self._counted(weight)
            .select(*selected)
            .mapInArrow(
                spark_kernels.counting(tasks, coders, weighted, values), "k int, block int, blob binary"
            )
        )
        added = blocks.repartition("k").mapInArrow(spark_kernels.adding(classes), "k int, blob binary")
        blobs = {row[0]: bytes(row[1]) for row in self._run(added.collect, watch)}
        self.bytes_fetched = sum(map(len, blobs.values()))
        if watch is not None:
            watch.report(f"Scan {self.n_scans}", done=self.n_rows, total=self.n_rows)
        return {
            name: spark_kernels.unpack_counts(blobs[j], binnings[name], classes[j], values)
            if j in blobs
            else prebins.no_counts(binnings[name], classes[j], values)  # a frame without rows
            for j, name in enumerate(names)
        }

    def _coder(
        self, labels: Labels, numbers: Callable[[str], int], place: Callable[[Any], int]
    ) -> list[tuple[int, Any, bool, int]]:
        """Say how workers find the class of a row: see `damier.intake.engines.spark_kernels.counting`."""
        steps: list[tuple[int, Any, bool, int]] = []
        for axis in labels.axes:
            if axis.groups is None:
                steps.append((numbers(axis.name), np.array(axis.bounds), axis.alone, axis.n_parts))
            else:
                steps.append((place(self._part(axis)), None, False, axis.n_parts))
        if labels.values or not steps:
            code = self._code(replace(labels, axes=()))
            steps.append((place(code), None, False, max(len(labels.values), 1)))
        return steps

    def profiles(self, column: str, labels: Labels) -> Profiles:
        """Count the values of a column by their class counts."""
        table, columns = self._by_value(column, labels)
        found = self._arrow(table.groupBy(*columns).agg(self._sql("count(*)").alias("m")).orderBy(*columns))
        return Profiles(_table(found, labels, columns), found.column("m").to_numpy())

    def listed(self, column: str, labels: Labels, max_values: int) -> Listed:
        """List the most frequent values of a column."""
        functions = importlib.import_module("pyspark.sql.functions")
        table, columns = self._by_value(column, labels)
        order = [functions.col("t").desc(), functions.col("v").asc_nulls_first()]
        found = self._arrow(table.orderBy(*order).limit(max_values).select("v", *columns))
        return Listed(found.column("v").to_pylist(), _table(found, labels, columns))

    def write_groups(
        self, column: str, labels: Labels, profiles: Profiles, groups: Sequence[int], out: str
    ) -> int:
        """Have the cluster write every value of a column with its group: a folder of Parquet files."""
        functions = importlib.import_module("pyspark.sql.functions")
        table, columns = self._by_value(column, labels)
        if columns == ["n"]:
            raise few_classes_error(labels, _FEW_CLASSES)
        rows = [(*counts, group) for counts, group in zip(profiles.counts.tolist(), groups, strict=True)]
        schema = ", ".join([*(f"{name} bigint" for name in columns), "part int"])
        parts = functions.broadcast(self.frame.sparkSession.createDataFrame(rows, schema))
        chosen = self._sql("v").alias(column), self._sql("part").alias(part_name(column))
        found = table.join(parts, columns).select(*chosen)
        self._run(lambda: found.write.parquet(out), task=f"write the groups to {out}")
        return int(profiles.n_values.sum())

    def _by_value(self, column: str, labels: Labels) -> tuple[Any, list[str]]:
        """Return a frame of values v, their rows t and class counts, and the columns that hold these."""
        weight = "1L" if labels.weight is None else f"CAST({quoted(labels.weight)} AS BIGINT)"
        rows = self._counted(labels.weight).select(
            self._sql(self._name(column)).alias("v"),
            self._code(labels).alias("y"),
            self._sql(weight).alias("w"),
        )
        if labels.n_classes <= _FEW_CLASSES:
            columns = [f"n{j}" for j in range(labels.n_classes)]
            sums = [self._sql(f"sum(if(y = {j}, w, 0L))").alias(f"n{j}") for j in range(labels.n_classes)]
            return rows.groupBy("v").agg(self._sql("sum(w)").alias("t"), *sums), columns
        pairs = rows.groupBy("v", "y").agg(self._sql("sum(w)").alias("n"))
        listed = self._sql("sort_array(collect_list(struct(y, n)))").alias("n")
        return pairs.groupBy("v").agg(self._sql("sum(n)").alias("t"), listed), ["n"]

    def cells(self, axes: Sequence[Axis], labels: Labels) -> Cells:
        """Count the cells of a grid."""
        selected = [self._part(axis).alias(f"p{k}") for k, axis in enumerate(axes)]
        weight = "1L" if labels.weight is None else f"CAST({quoted(labels.weight)} AS BIGINT)"
        parts = [f"p{k}" for k in range(len(axes))]
        found = self._arrow(
            self._counted(labels.weight)
            .select(*selected, self._code(labels).alias("y"), self._sql(weight).alias("w"))
            .groupBy(*parts, "y")
            .agg(self._sql("sum(w)").alias("n"))
        )
        rows = list(zip(*(found.column(name).to_pylist() for name in (*parts, "y", "n")), strict=True))
        return make_cells(rows, [row[-2] for row in rows], len(axes), labels)

    def pairs(self, rows: str, columns: str | Labels, weight: str | None, most: int) -> Table:
        """Count the pairs of values of two columns."""
        total = "count(*)" if weight is None else f"CAST(sum({quoted(weight)}) AS BIGINT)"
        names = [self._sql(self._name(rows)).alias(rows)]
        if isinstance(columns, Labels):
            frame = self._counted(columns.weight)
            names.append(self._code(columns).alias(columns.name))
        else:
            frame = self.frame
            names.append(self._sql(self._name(columns)).alias(columns))
        grouped = frame.groupBy(*names).agg(self._sql(total).alias(COUNT))
        return read_table(self._arrow(grouped.limit(most + 1)))

    def sample(self, columns: Sequence[str], n_rows: int, seed: int = 0) -> Table:
        """Choose rows by a hash of their values."""
        listed = ", ".join(map(quoted, columns))
        share = min(1.0, n_rows / max(self.n_rows, 1))
        rows = self.frame.select(
            *(self._sql(quoted(name)) for name in columns),
            self._sql(f"xxhash64({listed}, {int(seed)}L)").alias("damier_hash"),
        )
        slot = f"shiftright(damier_hash, {65 - SLOTS.bit_length()})"
        place = f"(CAST(damier_hash AS DOUBLE) / {2.0**64!r}D + 0.5D)"
        crowded: list[int] | None = []
        if share < 1.0:
            held = self._arrow(rows.groupBy(self._sql(slot).alias("s")).agg(self._sql("count(*)").alias("n")))
            crowded = crowded_slots(held.column("s").to_pylist(), held.column("n").to_pylist())
        among = f"{slot} IN ({', '.join(map(str, crowded))})" if crowded else str(crowded is None).lower()
        names = ["damier_hash", *map(quoted, columns)]
        once = rows.where(self._sql(f"NOT ({among}) AND {place} <= {share!r}D")).select(
            *names, self._sql("1L").alias("damier_times")
        )
        times = self._sql(f"CAST(floor(count(*) * {share!r}D - {place} + 1) AS BIGINT)")
        several = rows.where(self._sql(among)).groupBy(*names).agg(times.alias("damier_times"))
        both = once if crowded == [] else once.union(several.where(self._sql("damier_times >= 1")))
        found = self._arrow(both.orderBy(*names))
        at = np.repeat(np.arange(found.num_rows), found.column("damier_times").to_numpy())
        return read_table(found.drop_columns(["damier_hash", "damier_times"]).take(at))

    def collect(self, columns: Sequence[str]) -> Table:
        """Read all rows."""
        return read_table(self._arrow(self.frame.select(*(self._sql(quoted(name)) for name in columns))))


def quoted(name: str) -> str:
    """Write a name of a column in Spark's SQL.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def to_arrow(frame: Any) -> Any:
    """Collect a frame as a table of pyarrow."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    import pyarrow as pa  # Spark 3.5

    return pa.Table.from_batches(frame._collect_as_arrow())


def _is_span(held: str) -> bool:
    return held.startswith("interval") and "month" not in held and "year" not in held


def _source_column(name: str, held: str) -> SourceColumn:
    kind: Kind = "duration" if _is_span(held) else _KINDS.get(held.partition("(")[0], "nested")
    return SourceColumn(name, kind, held, ("UTC",) if held == "timestamp" else ())


def _explained(error: BaseException, task: str) -> BaseException:
    """Put what Spark reports into one sentence."""
    module = type(error).__module__.partition(".")[0]
    if module not in ("pyspark", "py4j", "grpc"):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "Error: " in line and "Traceback" not in line), lines[0])
    return ValueError(f"Spark could not {task}: {said[:500]}")


def _table(found: Any, labels: Labels, columns: list[str]) -> Any:
    """Class counts of the rows of an answer."""
    if columns != ["n"] or labels.n_classes == 1:
        return np.column_stack([found.column(name).to_numpy().astype(np.int64) for name in columns])
    counts = np.zeros((found.num_rows, labels.n_classes), np.int64)
    chunks = found.column("n").combine_chunks()
    rows = np.repeat(np.arange(found.num_rows), np.diff(np.asarray(chunks.offsets)))
    entries = chunks.flatten()
    counts[rows, np.asarray(entries.field("y"))] = np.asarray(entries.field("n"))
    return counts
