"""Tables that ibis reaches, counted by GROUP BY queries: nothing but counts leaves the engine.

The bin of a number is found by arithmetic that is exact in float64 on every engine. The leading bits of a
number are its exponent and its mantissa times 16. Among numbers with the same leading bits the difference of
two keys is the difference of the numbers, times a power of two. Tables of bins are joined as short lists of
whole numbers. So the counts are those of any other source, bit by bit.

ibis gives the connection and the types; the queries are written by sqlglot, each expression once for all
engines.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from damier.intake.engines.cells import Axis, Cells, label_case, make_cells, part_case
from damier.intake.engines.prebins import (
    CHANGED,
    MOST_VALUES,
    Binning,
    Counts,
    NumberCounter,
    count_numbers,
    keys_of,
    no_counts,
    numbers_of,
)
from damier.intake.engines.source import (
    COUNT,
    SLOTS,
    Kind,
    Labels,
    Listed,
    Profiles,
    Source,
    SourceColumn,
    Watch,
    crowded_slots,
    need,
    part_name,
)
from damier.intake.frames import read_table
from damier.intake.table import FloatArray, IntArray, Table

# Keeps an engine from writing out each expression of a subquery wherever it is used.
_FENCES = {"postgres": " OFFSET 0", "sqlite": " LIMIT -1 OFFSET 0", "mysql": " LIMIT 18446744073709551615"}
# How texts are compared as bytes, where the engine does not anyway.
_BYTES = {
    "sqlite": "{c} COLLATE BINARY",
    "postgres": '{c} COLLATE "C"',
    "mysql": "CAST({c} AS BINARY)",
}
_NAN = {"postgres": "{x} = CAST('NaN' AS DOUBLE PRECISION)", "sqlite": None, "mysql": None}
# Microseconds since 1970-01-01, or since midnight.
_MICROSECONDS = {
    ("postgres", "date"): "({c} - DATE '1970-01-01')::BIGINT * 86400000000",
    ("postgres", "datetime"): "CAST(EXTRACT(EPOCH FROM {c}) * 1000000 AS BIGINT)",
    ("postgres", "time"): "CAST(EXTRACT(EPOCH FROM {c}) * 1000000 AS BIGINT)",
    ("postgres", "duration"): "CAST(EXTRACT(EPOCH FROM {c}) * 1000000 AS BIGINT)",
    ("sqlite", "date"): "CAST(strftime('%s', {c}) AS INTEGER) * 1000000",
    ("duckdb", "date"): "epoch_us({c})",
    ("duckdb", "datetime"): "epoch_us({c})",
    ("duckdb", "time"): "epoch_us({c})",
    ("mysql", "date"): "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {c})",
    ("mysql", "datetime"): "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {c})",
}
# Ranges of numbers that a query lists: each takes two comparisons per row.
_MOST_RANGES = 20
_HIGHEST, _LOWEST = 65520, 15  # leading bits of the infinities
_ZERO = 32768
_KEY = np.uint64(48)


def open_ibis(table: Any) -> Source:
    """Open an ibis table: by streaming where it lies in DuckDB or Spark, by queries elsewhere.

    Raises
    ------
    ValueError
        If the table has no connection.
    """
    connection = _backend(table)
    if connection.name == "duckdb":
        from damier.intake.engines.duckdb import DuckDBSource

        return DuckDBSource(connection.con.sql(connection.compile(table)), "the ibis table")
    if connection.name == "pyspark":
        from damier.intake.engines.spark import SparkSource

        return SparkSource(connection._session.sql(connection.compile(table)))
    return IbisSource(table)


def _for_all_threads(connection: Any) -> Any:
    """Connect again to a database of SQLite, whose connections are each for one thread.

    One that is in memory is copied.
    """
    ibis = importlib.import_module("ibis")
    path = connection.con.execute("PRAGMA database_list").fetchone()[2]
    other = sqlite3.connect(path or ":memory:", check_same_thread=False)
    if not path:
        connection.con.backup(other)
    return ibis.sqlite.from_connection(other)


def _backend(table: Any) -> Any:
    ibis = importlib.import_module("ibis")
    try:
        return table._find_backend()
    except ibis.common.exceptions.IbisError as error:
        raise ValueError(f"the ibis table has no connection of its own: {error}") from None


class IbisSource:
    """An ibis table as a source.

    Parameters
    ----------
    table : ibis.Table
        Of any backend that runs SQL with LN, POWER and FLOOR of float64.
    """

    def __init__(self, table: Any) -> None:
        need("sqlglot", "sql", "counting by SQL")
        self.table = table
        self.connection = _backend(table)
        if self.connection.name == "sqlite":
            self.connection = _for_all_threads(self.connection)
            table = table.unbind()
        self.dialect = str(self.connection.name)
        self.engine = f"{self.dialect} through ibis"
        self.n_scans = 0
        self.columns = tuple(_source_column(name, held) for name, held in table.schema().items())
        self._kinds = {column.name: column.kind for column in self.columns}
        self._text = str(self.connection.compile(table))
        # By column, target, weights and axes.
        self._grouped: dict[tuple[Any, ...], tuple[FloatArray, IntArray, IntArray] | None] = {}
        self._absent: dict[tuple[Any, ...], IntArray] = {}
        version = "VERSION()" if self.dialect == "mysql" else "''"
        ((n_rows, held),) = self._rows(f"SELECT COUNT(*), {version} FROM damier_source")
        self.n_rows = int(n_rows)
        # Before a row of VALUES: MySQL wants the word, MariaDB does not know it.
        self._row = "ROW" if self.dialect == "mysql" and "mariadb" not in held.lower() else ""

    # ----- queries

    def _rows(self, query: str, *lists: str) -> list[tuple[Any, ...]]:
        """Run a query on ``damier_source``, the table, and on lists of whole numbers."""
        rows: list[tuple[Any, ...]] = self._answer(query, lists, "fetchall")
        return rows

    def _columns(self, query: str, *lists: str) -> list[Sequence[Any]]:
        """Run a query as `_rows` does; return its columns, none if it has no rows."""
        if self.dialect != "duckdb":
            return list(zip(*self._rows(query, *lists), strict=True))
        held = self._answer(query, lists, "fetchnumpy").values()
        # Texts, and columns with a NULL, as Python's own values.
        return [
            column if column.dtype.kind in "if" and not np.ma.is_masked(column) else column.tolist()
            for column in held
        ]

    def _answer(self, query: str, lists: Sequence[str], fetch: str) -> Any:
        self.n_scans += 1
        named = ", ".join([f"damier_source AS ({self._text})", *lists])
        try:
            held = self.connection.raw_sql(f"WITH {named} {query}")
            if self.dialect == "duckdb":
                return getattr(held, fetch)()  # the connection itself, which stays open
            with contextlib.closing(held) as cursor:
                return cursor.fetchall()
        except Exception as error:
            raise self._explained(error, "count the table") from None

    def _explained(self, error: Exception, task: str) -> Exception:
        """Put what the engine reports into one sentence."""
        if type(error).__module__.partition(".")[0] in ("damier", "builtins"):
            return error
        said = (str(error).splitlines() or [type(error).__name__])[0]
        return ValueError(f"{self.engine} cannot {task}: {said}")

    def _write(self, expression: str) -> str:
        """Write an expression of DuckDB in the dialect of the engine."""
        return _transpiled(expression, self.dialect)

    def _type(self, name: str) -> str:
        return self._write(f"CAST(x AS {name})").partition(" AS ")[2][:-1]

    def _q(self, name: str) -> str:
        return self._write('"' + name.replace('"', '""') + '"')

    def _literal(self, value: Any) -> str:
        exp = importlib.import_module("sqlglot.expressions")
        return str(exp.convert(value).sql(dialect=self.dialect))

    def _microseconds(self, name: str) -> str:
        kind = self._kinds[name]
        known = _MICROSECONDS.get((self.dialect, kind))
        if known is None:
            raise ValueError(
                f"column {name!r} is a {kind}, which Damier does not count on {self.dialect}: convert it to "
                "a number, or leave it out"
            )
        return known.replace("{c}", self._q(name))

    def _number(self, name: str) -> str:
        """Write a column as float64, NULL where it is missing or NaN."""
        kind, column = self._kinds[name], self._q(name)
        if kind == "boolean":
            return (
                f"CASE WHEN {column} THEN {self._double('1')} WHEN NOT {column} THEN {self._double('0')} END"
            )
        number = self._double(column if kind == "number" else self._microseconds(name))
        test = _NAN.get(self.dialect, "ISNAN({x})") if kind == "number" else None
        if test is None:
            return number
        return f"CASE WHEN {test.replace('{x}', number)} THEN NULL ELSE {number} END"

    def _double(self, expression: str) -> str:
        return f"CAST({expression} AS {self._type('DOUBLE')})"

    def _power(self, exponent: str) -> str:
        return self._write(f"POWER(CAST(2 AS DOUBLE), CAST({exponent} AS DOUBLE))")

    def _name(self, name: str) -> str:
        """Write a column as what names its values: texts as bytes, NaN is missing."""
        kind = self._kinds[name]
        if kind == "text":
            return _BYTES.get(self.dialect, "{c}").replace("{c}", self._q(name))
        if kind == "boolean" or (kind == "number" and self.table.schema()[name].is_integer()):
            return self._q(name)
        return self._number(name) if kind == "number" else self._microseconds(name)

    def _value(self, name: str, value: Any) -> Any:
        """Turn what the engine answers into the value of a column."""
        kind = self._kinds[name]
        if value is None:
            return None
        if kind == "boolean":
            return bool(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value).decode()
        if kind == "text":
            return str(value)
        if kind == "number":
            return float(value) + 0.0 if isinstance(value, float) else int(value)
        return int(value)

    def _inner(self, labels: Labels, numbers: str | None, by_class: bool) -> str:
        """Write the rows that count: the number x, the class y, and the weight w if there are any."""
        selected = [] if numbers is None else [f"{self._number(numbers)} AS x"]
        if by_class:
            selected.append(f"{self._label(labels)} AS y")
        kept = ""
        if labels.weight is not None:
            selected.append(f"{self._q(labels.weight)} AS w")
            kept = f" WHERE {self._q(labels.weight)} > 0"
        return f"SELECT {', '.join(selected)} FROM damier_source{kept}"

    def _total(self, labels: Labels) -> str:
        """Write how many rows there are."""
        if labels.weight is None:
            return "COUNT(*)"
        # A sum of 128 bits would be handed over as a float.
        return "CAST(SUM(w) AS BIGINT)" if self.dialect == "duckdb" else "SUM(w)"

    def _label(self, labels: Labels) -> str:
        """Write the class of a row: the value of the target, or a number where there are axes."""
        if labels.values and not labels.axes:
            return self._name(labels.name)
        chosen = " ".join(f"WHEN {self._literal(value)} THEN {j}" for j, value in enumerate(labels.values))
        code = f"CASE {self._name(labels.name)} {chosen} END" if labels.values else ""
        return label_case(labels, self._part, code)

    def _part(self, axis: Axis) -> str:
        """Write the part of a row on an axis."""
        number, name = ("", self._name(axis.name)) if axis.groups else (self._number(axis.name), "")
        return part_case(axis, number, name, self._exact)

    # ----- the protocol

    def classes(self, target: str, weight: str | None) -> tuple[list[Any], list[int]]:
        """Count the values of the target."""
        w, kept = ("1", "") if weight is None else (self._q(weight), f" WHERE {self._q(weight)} > 0")
        inner = f"SELECT {self._name(target)} AS y, {w} AS w FROM damier_source{kept}"
        rows = self._rows(f"SELECT y, SUM(w) FROM ({inner}) AS s GROUP BY y")
        held = [(self._value(target, value), int(count)) for value, count in rows]
        held.sort(key=lambda pair: (pair[0] is not None, pair[0]))
        return [value for value, _ in held], [count for _, count in held]

    def weight_facts(self, weight: str) -> tuple[float, float, int, int]:
        """Return what is wrong with weights, if anything."""
        rows = self._rows(
            f"SELECT MIN(w), MAX(w), SUM(CASE WHEN w IS NULL THEN 1 ELSE 0 END), "
            f"SUM(CASE WHEN w <> FLOOR(w) THEN 1 ELSE 0 END) "
            f"FROM (SELECT {self._number(weight)} AS w FROM damier_source) AS s"
        )
        least, greatest, missing, broken = rows[0]
        return float(least or 0.0), float(greatest or 0.0), int(missing or 0), int(broken or 0)

    def count(
        self,
        binnings: Mapping[str, Binning],
        labels: Labels | Mapping[str, Labels],
        *,
        of: str | None = None,
        by_class: bool = True,
        values: bool = False,
        counter: type[NumberCounter] = NumberCounter,  # noqa: ARG002 -- the engine counts
        watch: Watch | None = None,
    ) -> dict[str, Counts]:
        """Count numeric columns in their bins: a query or two per column."""
        counts = {}
        for done, (name, binning) in enumerate(binnings.items()):
            if watch is not None:
                watch.check()
                watch.report(f"Counting {name}", done=done, total=len(binnings))
            held = labels if isinstance(labels, Labels) else labels[name]
            counts[name] = self._count(of or name, binning, held, by_class, values)
        return counts

    def _count(self, name: str, binning: Binning, labels: Labels, by_class: bool, values: bool) -> Counts:
        key = (name, labels.name if labels.values else None, labels.weight, labels.axes)
        if key not in self._grouped:
            self._grouped[key] = self._few(name, labels)
        held = self._grouped[key]
        n_classes = labels.n_classes if by_class else 1
        if held is not None:
            numbers, codes, rows = held
            codes = codes if by_class else np.zeros_like(codes)
            return count_numbers(no_counts(binning, n_classes, values), numbers, codes, rows, binning)
        counts = no_counts(binning, n_classes)
        if key not in self._absent:
            self._absent[key] = self._missing(name, labels)
        absent = self._absent[key]
        counts.missing[:] = absent if by_class else absent.sum()
        query, lists = self._binned(name, binning, labels, by_class)
        found = self._columns(query, *lists)
        if found and len(found[0]):
            bins, rows = (np.array(found[k], np.int64) for k in (0, 3))
            low, high = (keys_of(np.array(found[k], np.float64)) for k in (1, 2))
            codes = self._codes(labels, found[4]) if by_class else np.zeros_like(bins)
            counts.counts[bins, codes] = rows
            np.minimum.at(counts.low, bins, low)
            np.maximum.at(counts.high, bins, high)
            if not binning.levels and ((low >> _KEY != bins) | (high >> _KEY != bins)).any():
                raise ValueError(f"{self.engine} does not compute in float64: column {name!r} cannot be cut")
        return counts

    def _codes(self, labels: Labels, values: Sequence[Any]) -> IntArray:
        if labels.axes or not labels.values:
            if any(value is None for value in values):
                raise ValueError(CHANGED)
            return np.array([int(value) for value in values], np.int64)
        position = {value: j for j, value in enumerate(labels.values)}
        code_of = {value: position.get(self._value(labels.name, value), -1) for value in set(values)}
        codes = np.array([code_of[value] for value in values], np.int64)
        if (codes < 0).any():
            raise ValueError(CHANGED)
        return codes

    def _missing(self, name: str, labels: Labels) -> IntArray:
        inner = self._inner(labels, name, True)
        rows = self._rows(f"SELECT y, {self._total(labels)} FROM ({inner}) AS s WHERE x IS NULL GROUP BY y")
        counts = np.zeros(labels.n_classes, np.int64)
        counts[self._codes(labels, [row[0] for row in rows])] = [int(row[1]) for row in rows]
        return counts

    def _few(self, name: str, labels: Labels) -> tuple[FloatArray, IntArray, IntArray] | None:
        """Return numbers, classes and rows of a column of few distinct values; None if there are many."""
        inner = self._inner(labels, name, True)
        distinct = f"SELECT DISTINCT x FROM ({inner}) AS s WHERE x IS NOT NULL LIMIT {MOST_VALUES + 1}"
        if self._rows(f"SELECT COUNT(*) FROM ({distinct}) AS d")[0][0] > MOST_VALUES:
            return None
        rows = self._rows(f"SELECT x, y, {self._total(labels)} FROM ({inner}) AS s GROUP BY x, y")
        numbers = np.array([np.nan if row[0] is None else row[0] for row in rows], np.float64)
        codes = self._codes(labels, [row[1] for row in rows])
        return numbers, codes, np.array([int(row[2]) for row in rows], np.int64)

    def _binned(self, name: str, binning: Binning, labels: Labels, by_class: bool) -> tuple[str, list[str]]:
        """Write the query of bins, extremes, rows and classes, and the lists of bins that it joins."""
        fence, code = _FENCES.get(self.dialect, ""), ", y" if by_class else ""
        more = code if labels.weight is None else f", w{code}"
        write, whole = self._write, self._type("BIGINT")
        # The magnitude a: 1 for zero and the infinities, which get leading bits of their own.
        query = (
            f"SELECT x{more}, "
            f"CASE WHEN x - x = 0 AND x <> 0 THEN ABS(x) ELSE {self._double('1')} END AS a "
            f"FROM ({self._inner(labels, name, by_class)}) AS s0 WHERE x IS NOT NULL{self._near(binning)}"
        )
        # The exponent e, by a logarithm that may be off by one at powers of two, hence p = 2^e is compared.
        query = (
            f"SELECT x{more}, a, CASE WHEN e < -1022 THEN -1022 WHEN e > 1023 THEN 1023 ELSE e END AS e "
            f"FROM (SELECT x{more}, a, {write('FLOOR(LN(a) / CAST(0.6931471805599453 AS DOUBLE))')} AS e "
            f"FROM ({query}) AS s1{fence}) AS s2{fence}"
        )
        query = f"SELECT x{more}, a, e, {self._power('e')} AS p FROM ({query}) AS s3{fence}"
        off = "CASE WHEN a - p >= p THEN {} WHEN a < p AND e > -1022 THEN {} ELSE {} END"
        query = (
            f"SELECT x{more}, a, {off.format('e + 1', 'e - 1', 'e')} AS e, "
            f"{off.format('p * 2', 'p / 2', 'p')} AS p FROM ({query}) AS s4{fence}"
        )
        leading = write("(e + 1022) * 16 + FLOOR(a / p * 16)")
        query = (
            f"SELECT x{more}, CAST(CASE WHEN x = 0 THEN {_ZERO} WHEN x - x = 0 THEN "
            f"CASE WHEN x > 0 THEN {_ZERO} + {leading} ELSE {_ZERO - 1} - ({leading}) END "
            f"WHEN x > 0 THEN {_HIGHEST} ELSE {_LOWEST} END AS {whole}) AS b FROM ({query}) AS s5{fence}"
        )
        lists = []
        for i, rows in enumerate(_level_lists(binning)):
            lists.append(self._list(f"damier_l{i}(b, m, k, s, r, g)", rows))
            two = self._power
            table = (
                f"SELECT b, g, {self._double('m')} * {two('k')} AS low, {two('s')} AS s, "
                f"{two('r')} AS r FROM damier_l{i}{fence}"
            )
            # An infinity is a bin of one value.
            query = (
                f"SELECT x{more}, l.g + CASE WHEN x - x = 0 THEN "
                f"CAST({write('FLOOR((x - low) * s * r)')} AS {whole}) ELSE 0 END AS b "
                f"FROM ({query}) AS t JOIN ({table}) AS l ON t.b = l.b{fence}"
            )
        return (
            f"SELECT b, MIN(x), MAX(x), {self._total(labels)}{code} FROM ({query}) AS q GROUP BY b{code}",
            lists,
        )

    def _list(self, named: str, rows: Iterable[Iterable[int]]) -> str:
        """Write a list of whole numbers as a table of a WITH clause."""
        values = ", ".join(f"{self._row}({', '.join(map(str, cells))})" for cells in rows)
        return f"{named} AS (VALUES {values})"

    def _near(self, binning: Binning) -> str:
        """Write which numbers the bins counted lie among, where these are few: others are not looked at."""
        if not binning.levels:
            return ""
        last = binning.levels[-1]
        met = np.flatnonzero(last.low > 0)
        kept = last.base[met] >= 0
        begins = np.flatnonzero(kept & ~np.append(False, kept[:-1]))
        ends = np.flatnonzero(kept & ~np.append(kept[1:], False)) + 1
        if kept.all() or len(begins) > _MOST_RANGES:
            return ""
        ranges = []
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            lows = numbers_of(last.low[met[[begin, min(end, len(met) - 1)]]]).tolist()
            limits = [f"x >= {self._exact(lows[0])}"] if math.isfinite(lows[0]) else []
            limits += [f"x < {self._exact(lows[1])}"] if end < len(met) and math.isfinite(lows[1]) else []
            ranges.append(" AND ".join(limits) or "1 = 1")
        return f" AND ({' OR '.join(f'({one})' for one in ranges)})" if ranges else " AND 1 = 0"

    def profiles(self, column: str, labels: Labels) -> Profiles:
        """Count the values of a column by their class counts."""
        listed = ", ".join(f"n{j}" for j in range(labels.n_classes))
        rows = self._rows(
            f"SELECT {listed}, COUNT(*) FROM ({self._by_value(column, labels)}) AS s GROUP BY {listed}"
        )
        table = np.array([[int(cell) for cell in row] for row in sorted(rows)], np.int64)
        table = table.reshape(len(rows), labels.n_classes + 1)
        self._check_classes(labels, table[:, :-1] * table[:, -1:])
        return Profiles(np.ascontiguousarray(table[:, :-1]), table[:, -1].copy())

    def _check_classes(self, labels: Labels, counts: IntArray) -> None:
        if not np.array_equal(counts.sum(axis=0), labels.counts):
            raise ValueError(
                f"{self.engine} does not find the classes of {labels.name!r} by their values: make the "
                "target a column of plain text or of whole numbers"
            )

    def listed(self, column: str, labels: Labels, max_values: int) -> Listed:
        """List the most frequent values of a column."""
        listed = ", ".join(f"n{j}" for j in range(labels.n_classes))
        order = "CASE WHEN v IS NULL THEN 0 ELSE 1 END, v"
        rows = self._rows(
            f"SELECT v, {listed} FROM ({self._by_value(column, labels)}) AS s ORDER BY t DESC, {order} "
            f"LIMIT {max_values}"
        )
        counts = np.array([[int(cell) for cell in row[1:]] for row in rows], np.int64)
        return Listed(
            [self._value(column, row[0]) for row in rows], counts.reshape(len(rows), labels.n_classes)
        )

    def write_groups(
        self, column: str, labels: Labels, profiles: Profiles, groups: Sequence[int], out: str
    ) -> int:
        """Have the database make a table of every value of a column with its group."""
        names = ", ".join(f"n{j}" for j in range(labels.n_classes))
        rows = ([*counts, group] for counts, group in zip(profiles.counts.tolist(), groups, strict=True))
        value = "v"
        if self.dialect == "mysql" and self._kinds[column] == "text":
            value = "CONVERT(v USING utf8mb4)"  # grouped as bytes
        query = (
            f"CREATE TABLE {self._q(out)} AS WITH damier_source AS ({self._text}), "
            f"{self._list(f'damier_parts({names}, part)', rows)} "
            f"SELECT {value} AS {self._q(column)}, part AS {self._q(part_name(column))} "
            f"FROM ({self._by_value(column, labels)}) AS s JOIN damier_parts USING ({names})"
        )
        self.n_scans += 1
        connection = _backend(self.table)  # the user's own: what counts may be a copy of a database in memory
        try:
            connection.raw_sql(query).close()
            with contextlib.suppress(AttributeError):
                connection.con.commit()
        except Exception as error:
            raise self._explained(error, f"write the groups to the table {out!r}") from None
        return int(profiles.n_values.sum())

    def _by_value(self, column: str, labels: Labels) -> str:
        weight = "1" if labels.weight is None else self._q(labels.weight)
        kept = "" if labels.weight is None else f" WHERE {self._q(labels.weight)} > 0"
        rows = (
            f"SELECT {self._name(column)} AS v, {self._label(labels)} AS y, {weight} AS w "
            f"FROM damier_source{kept}"
        )
        plain = labels.values and not labels.axes
        classes = map(self._literal, labels.values) if plain else map(str, range(labels.n_classes))
        sums = ", ".join(
            f"SUM(CASE WHEN y = {value} THEN w ELSE 0 END) AS n{j}" for j, value in enumerate(classes)
        )
        return f"SELECT v, SUM(w) AS t, {sums} FROM ({rows}) AS r GROUP BY v"

    def cells(self, axes: Sequence[Axis], labels: Labels) -> Cells:
        """Count the cells of a grid."""
        selected = [f"{self._part(axis)} AS p{k}" for k, axis in enumerate(axes)]
        weight = "1" if labels.weight is None else self._q(labels.weight)
        kept = "" if labels.weight is None else f" WHERE {self._q(labels.weight)} > 0"
        selected += [f"{self._label(labels)} AS y", f"{weight} AS w"]
        listed = ", ".join([*(f"p{k}" for k in range(len(axes))), "y"])
        rows = self._rows(
            f"SELECT {listed}, SUM(w) FROM (SELECT {', '.join(selected)} FROM damier_source{kept}"
            f"{_FENCES.get(self.dialect, '')}) AS s GROUP BY {listed}"
        )
        return make_cells(rows, self._codes(labels, [row[-2] for row in rows]).tolist(), len(axes), labels)

    def _exact(self, value: Any) -> str:
        """Write a scalar, a float as a whole number times a power of two."""
        if not isinstance(value, float):
            return self._literal(value)
        m, k = _whole(value)
        return f"{self._double(str(m))} * {self._power(str(k))}"

    def pairs(self, rows: str, columns: str | Labels, weight: str | None, most: int) -> Table:
        """Count the pairs of values of two columns."""
        total = "COUNT(*)" if weight is None else f"SUM({self._q(weight)})"
        labels, kept = columns if isinstance(columns, Labels) else None, ""
        if isinstance(columns, Labels):
            kept = "" if columns.weight is None else f" WHERE {self._q(columns.weight)} > 0"
            names = f"{self._name(rows)} AS r, {self._label(columns)} AS c"
            columns = columns.name
        else:
            names = f"{self._name(rows)} AS r, {self._name(columns)} AS c"
        more = "" if weight is None else f", {self._q(weight)}"
        held = f"SELECT {names}{more} FROM damier_source{kept}{_FENCES.get(self.dialect, '')}"
        found = self._rows(f"SELECT r, c, {total} FROM ({held}) AS s GROUP BY r, c LIMIT {most + 1}")
        sides = {name: [self._value(name, row[k]) for row in found] for k, name in enumerate((rows, columns))}
        if labels is not None:
            sides[columns] = self._codes(labels, [row[1] for row in found]).tolist()
        return read_table({**sides, COUNT: [int(row[2]) for row in found]})

    def sample(self, columns: Sequence[str], n_rows: int, seed: int = 0) -> Table:
        """Choose rows by a hash of their values where the engine has one, else by its own sample."""
        self.n_scans += 1
        share = min(1.0, n_rows / max(self.n_rows, 1))
        chosen = self.table.select(*columns)
        listed = ", ".join(map(self._q, columns))
        if self.dialect == "postgres":
            hashed = f"hashtextextended(CAST(ROW({listed}) AS TEXT), {int(seed)})"
            kept = self._hashed(hashed, 64, share, listed)
        elif self.dialect == "sqlite":
            with contextlib.suppress(Exception):
                self.connection.con.create_function("damier_hash", -1, _hash, deterministic=True)
            kept = self._hashed(f"damier_hash({int(seed)}, {listed})", 62, share, listed)
        elif self.dialect == "mysql":
            cells = ", ".join(f"COALESCE(HEX(CAST({self._q(name)} AS BINARY)), '-')" for name in columns)
            digits = f"LEFT(MD5(CONCAT_WS('.', {int(seed)}, {cells})), 15)"
            kept = self._hashed(f"CAST(CONV({digits}, 16, 10) AS SIGNED)", 60, share, listed)
        else:
            kept = self.connection.to_pyarrow(chosen.sample(share, method="row", seed=seed))
        return read_table(kept)

    def _hashed(self, hashed: str, bits: int, share: float, listed: str) -> Any:
        """Collect a share of the rows by a hash of so many bits (64: with a sign), in the order of values."""

        def asked(query: str) -> Any:
            return self.connection.sql(query, schema=None).to_pyarrow()

        rows = f"SELECT {listed}, {hashed} AS damier_h FROM ({self._text}) AS damier_source"
        slot = f"damier_h >> {bits + 1 - SLOTS.bit_length()}"
        place = f"({self._double('damier_h')} * {self._power(str(-bits))}{' + 0.5' if bits == 64 else ''})"
        crowded: list[int] | None = []
        if share < 1.0:
            held = asked(f"SELECT {slot} AS s, COUNT(*) AS n FROM ({rows}) AS r GROUP BY {slot}")
            crowded = crowded_slots(held.column("s").to_pylist(), held.column("n").to_pylist())
        among = f"({slot}) IN ({', '.join(map(str, crowded))})" if crowded else f"{int(crowded is None)} = 1"
        found = asked(
            f"SELECT * FROM (SELECT {listed}, damier_h, 1 AS damier_k FROM ({rows}) AS r "
            f"WHERE NOT ({among}) AND {place} <= {self._exact(share)} UNION ALL SELECT {listed}, damier_h, "
            f"FLOOR(COUNT(*) * {self._exact(share)} - {place} + 1) AS damier_k "
            f"FROM ({rows}) AS r WHERE {among} GROUP BY {listed}, damier_h) AS chosen "
            f"WHERE damier_k >= 1 ORDER BY {listed}"
        )
        times = np.array([int(k) for k in found.column("damier_k").to_pylist()], np.int64)
        return found.drop_columns(["damier_h", "damier_k"]).take(np.repeat(np.arange(len(times)), times))

    def collect(self, columns: Sequence[str]) -> Table:
        """Read all rows."""
        self.n_scans += 1
        return read_table(self.connection.to_pyarrow(self.table.select(*columns)))


@functools.cache
def _transpiled(expression: str, dialect: str) -> str:
    sqlglot = importlib.import_module("sqlglot")
    return str(sqlglot.parse_one(expression, dialect="duckdb").sql(dialect=dialect))


def _hash(seed: int, *values: Any) -> int:
    """Hash the values of a row into 0 .. 2**62 - 1."""
    text = repr((seed, values)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 2


def _level_lists(binning: Binning) -> Iterator[list[tuple[int, ...]]]:
    """Yield the bins of each level that rows may fall into, as whole numbers.

    Of each: its number; its lowest number as m 2^k; the scale of its split, 2^s 2^r; its first bin.
    """
    # Bins that no row goes on from need not be looked at before.
    wanted = [level.base >= 0 for level in binning.levels]
    for i in range(len(wanted) - 1, 0, -1):
        level = binning.levels[i - 1]
        live = np.append(0, np.cumsum(wanted[i]))
        starts = level.base[wanted[i - 1]]
        ends = np.append(starts[1:], len(wanted[i]))
        some = live[ends] > live[starts]
        kept = np.flatnonzero(wanted[i - 1])
        wanted[i - 1] = np.zeros(len(level.base), bool)
        wanted[i - 1][kept[some]] = True
    for level, chosen in zip(binning.levels, wanted, strict=True):
        rows: list[tuple[int, ...]] = []
        bins = np.flatnonzero(chosen)
        lows = numbers_of(level.low[bins]).tolist()
        leading = (level.low[bins] >> _KEY).astype(np.int64).tolist()
        for b, low, t, shift, base in zip(
            bins.tolist(), lows, leading, level.shift[bins].tolist(), level.base[bins].tolist(), strict=True
        ):
            if math.isinf(low):
                rows.append((b, 0, 0, 0, 0, base))
                continue
            m, k = _whole(low)
            field = (t - _ZERO if t >= _ZERO else _ZERO - 1 - t) >> 4
            scale = 52 - (max(field, 1) - 1023) - shift
            rows.append((b, m, k, scale // 2, scale - scale // 2, base))
        yield rows or [(-1, 0, 0, 0, 0, 0)]


def _whole(number: float) -> tuple[int, int]:
    """Write a number as m 2^k with whole m and k.

    >>> _whole(0.75), _whole(-5e-324)
    ((3, -2), (-1, -1074))
    """
    if number == 0:
        return 0, 0
    numerator, denominator = number.as_integer_ratio()
    if denominator > 1:
        return numerator, 1 - denominator.bit_length()
    zeros = (numerator & -numerator).bit_length() - 1
    return numerator >> zeros, zeros


def _source_column(name: str, held: Any) -> SourceColumn:
    kind: Kind = "nested"
    if held.is_boolean():
        kind = "boolean"
    elif held.is_numeric():
        kind = "number"
    elif held.is_string() or held.is_uuid():
        kind = "text"
    elif held.is_date():
        kind = "date"
    elif held.is_timestamp():
        kind = "datetime"
    elif held.is_time():
        kind = "time"
    elif held.is_interval():
        kind = "duration"
    zone = getattr(held, "timezone", None) if kind == "datetime" else None
    return SourceColumn(name, kind, str(held), ("UTC",) if zone else ())
