"""Engines that run the SQL in tests: each loads a pyarrow table and returns what a query gives.

Servers (PostgreSQL, MariaDB) are started on a socket in a temporary folder, as a user without rights, and
stopped at the end. What is not installed is skipped with its reason. ``DAMIER_SQL_ENGINES`` names those to
run ("duckdb,sqlite"), or ``all``; by default all but Spark, which takes longer to start than all
others to run.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

NAMES = ("duckdb", "sqlite", "postgres", "mysql", "clickhouse", "datafusion", "polars", "spark")
ASKED = os.environ.get("DAMIER_SQL_ENGINES", ",".join(NAMES[:-1]))


class Engine:
    """One engine: `load` replaces a table, `run` returns names and rows."""

    name = ""
    quote = '"'
    types: ClassVar[dict[str, str]] = {}

    def q(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def load(self, data: pa.Table, name: str = "t") -> None:
        raise NotImplementedError

    def run(self, sql: str) -> tuple[list[str], list[tuple]]:
        raise NotImplementedError

    def script(self, sql: str) -> tuple[list[str], list[tuple]]:
        """Run statements separated by ';' and blank lines, and return what the last one gives."""
        *before, last = sql.split(";\n\n")
        for statement in before:
            self.run(statement)
        return self.run(last)


class DuckDB(Engine):
    name = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})

    def load(self, data, name="t"):
        self.connection.register("loaded", data)
        self.connection.execute(f"CREATE OR REPLACE TABLE {self.q(name)} AS SELECT * FROM loaded")
        self.connection.unregister("loaded")

    def run(self, sql):
        cursor = self.connection.execute(sql)
        return [d[0] for d in cursor.description or ()], cursor.fetchall()


class _Cursor(Engine):
    """Engines behind a connection of Python's database interface."""

    mark = "?"

    def load(self, data, name="t"):
        self.run(f"DROP TABLE IF EXISTS {self.q(name)}")
        kinds = [self.types[_kind(f.type)] for f in data.schema]
        columns = ", ".join(
            f"{self.q(field.name)} {kind}" for field, kind in zip(data.schema, kinds, strict=True)
        )
        self.run(f"CREATE TABLE {self.q(name)} ({columns})")
        rows = list(zip(*(self.values(column) for column in data.columns), strict=True))
        if rows:
            cursor = self.connection.cursor()
            marks = ", ".join([self.mark] * len(kinds))
            cursor.executemany(f"INSERT INTO {self.q(name)} VALUES ({marks})", rows)

    def values(self, column):
        return column.to_pylist()

    def run(self, sql):
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return [d[0] for d in cursor.description or ()], list(cursor.fetchall()) if cursor.description else []


def _kind(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_floating(type_):
        return "float"
    if pa.types.is_integer(type_):
        return "integer"
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    if pa.types.is_time(type_):
        return "time"
    if pa.types.is_duration(type_):
        return "interval"
    return "text"


class SQLite(_Cursor):
    name = "sqlite"
    types: ClassVar[dict[str, str]] = {
        "boolean": "INTEGER",
        "float": "REAL",
        "integer": "INTEGER",
        "text": "TEXT COLLATE NOCASE",
        "date": "TEXT",
        "timestamp": "TEXT",
        "timestamptz": "TEXT",
        "time": "TEXT",
    }

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)

    def values(self, column):
        kind = _kind(column.type)
        if kind in ("date", "timestamp", "time"):
            return [None if v is None else v.isoformat() for v in column.to_pylist()]
        if kind == "timestamptz":
            import datetime

            naive = (None if v is None else v.astimezone(datetime.UTC) for v in column.to_pylist())
            return [None if v is None else v.replace(tzinfo=None).isoformat(" ") for v in naive]
        return column.to_pylist()


class _Server(_Cursor):
    mark = "%s"

    def start(self, command, folder, user, ready) -> None:
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **_as_user(user))
        atexit.register(self.stop, folder)
        limit = time.monotonic() + 60
        while True:
            try:
                self.connection = ready()
                return
            except Exception as error:
                if time.monotonic() > limit or self.process.poll() is not None:
                    raise RuntimeError((folder / "log").read_text(errors="replace")[-2000:]) from error
                time.sleep(0.1)

    def stop(self, folder) -> None:
        # a server waits for its clients; one that does not stop must not keep the tests from ending
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(path: Path) -> bool:
    """Tell whether a server listens: a client that finds none leaves its socket open."""
    with socket.socket(socket.AF_UNIX) as tried:
        tried.connect(str(path))
    return True


def _as_user(user: str | None) -> dict:
    if user is None or os.getuid() != 0:
        return {}
    held = pwd.getpwnam(user)
    return {"user": held.pw_uid, "group": held.pw_gid, "extra_groups": []}


def _folder(user: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="damier-"))
    if os.getuid() == 0:
        held = pwd.getpwnam(user)
        os.chown(folder, held.pw_uid, held.pw_gid)
    folder.chmod(0o755)
    return folder


def _user(*names: str) -> str:
    """Return the first user that exists: servers refuse to run as root."""
    for name in (*names, "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise LookupError("no user to run the server as")


def _program(*names: str) -> str | None:
    for name in names:
        found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
        if found:
            return found
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        if beside:
            return str(beside[-1])
    return None


class PostgreSQL(_Server):
    name = "postgres"
    types: ClassVar[dict[str, str]] = {
        "boolean": "BOOLEAN",
        "float": "DOUBLE PRECISION",
        "integer": "BIGINT",
        "text": "TEXT",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMPTZ",
        "time": "TIME",
        "interval": "INTERVAL",
    }

    def __init__(self) -> None:
        import psycopg

        user = _user("postgres")
        folder = _folder(user)
        data = folder / "data"
        subprocess.run(
            [_program("initdb"), "-D", data, "-U", "damier", "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True,
            capture_output=True,
            **_as_user(user),
        )
        server = [
            _program("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=",
            "-c", "fsync=off", "-c", "jit=off",
        ]  # fmt: skip
        self.start(
            server,
            folder,
            user,
            lambda: psycopg.connect(
                f"host={folder} user=damier dbname=postgres", autocommit=True, prepare_threshold=None
            ),
        )


class MariaDB(_Server):
    name = "mysql"
    quote = "`"
    types: ClassVar[dict[str, str]] = {
        "boolean": "TINYINT(1)",
        "float": "DOUBLE",
        "integer": "BIGINT",
        "text": "TEXT",
        "date": "DATE",
        "timestamp": "DATETIME(6)",
        "time": "TIME(6)",
    }

    def __init__(self) -> None:
        import pymysql

        user = _user("mysql")
        folder = _folder(user)
        subprocess.run(
            [
                _program("mariadb-install-db"), "--no-defaults", f"--datadir={folder / 'data'}",
                "--auth-root-authentication-method=normal", "--skip-test-db",
            ],
            check=True,
            capture_output=True,
            **_as_user(user),
        )  # fmt: skip
        server = [
            _program("mariadbd", "mysqld"), "--no-defaults", f"--datadir={folder / 'data'}",
            f"--socket={folder / 's'}", "--skip-networking", f"--pid-file={folder / 'pid'}",
            "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M",
            "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
        ]  # fmt: skip
        self.start(
            server,
            folder,
            user,
            lambda: (
                _answers(folder / "s")
                and pymysql.connect(
                    unix_socket=str(folder / "s"), user="root", charset="utf8mb4", autocommit=True
                )
            ),
        )
        self.run("CREATE DATABASE damier")
        self.run("USE damier")

    def values(self, column):
        import math

        kept = column.to_pylist()
        # MariaDB holds neither NaN nor infinity
        return [None if isinstance(v, float) and math.isnan(v) else v for v in kept]


class ClickHouse(Engine):
    name = "clickhouse"

    def __init__(self) -> None:
        from chdb.session import Session

        self.folder = Path(tempfile.mkdtemp(prefix="damier-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.session = Session()

    def q(self, name):
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def load(self, data, name="t"):
        import pyarrow.parquet as pq

        path = self.folder / "t.parquet"
        pq.write_table(data, path)
        self.session.query(f"DROP TABLE IF EXISTS {self.q(name)}")
        self.session.query(
            f"CREATE TABLE {self.q(name)} ENGINE = Memory AS SELECT * FROM file('{path}', Parquet)"
        )

    def run(self, sql):
        data = self.session.query(sql, "Arrow").bytes()
        if not data:
            return [], []
        read = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        columns = [c.cast(pa.string()) if pa.types.is_binary(c.type) else c for c in read.columns]
        return read.column_names, list(zip(*(c.to_pylist() for c in columns), strict=True))


class DataFusion(Engine):
    name = "datafusion"

    def __init__(self) -> None:
        from datafusion import SessionContext

        self.context = SessionContext()

    def load(self, data, name="t"):
        if name in self.context.catalog().schema().names():
            self.context.deregister_table(self.q(name))
        self.context.register_record_batches(self.q(name), [data.combine_chunks().to_batches()])

    def run(self, sql):
        batches = self.context.sql(sql).collect()
        if not batches:
            return [], []
        read = pa.Table.from_batches(batches)
        return read.column_names, list(zip(*(c.to_pylist() for c in read.columns), strict=True))


class Polars(Engine):
    name = "polars"

    def __init__(self) -> None:
        self.tables = {}

    def load(self, data, name="t"):
        import polars as pl

        self.tables[name] = pl.from_arrow(data)

    def run(self, sql):
        import polars as pl

        read = pl.SQLContext(self.tables).execute(sql, eager=True)
        return read.columns, read.rows()


class Spark(Engine):
    name = "spark"
    quote = "`"

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        self.folder = Path(tempfile.mkdtemp(prefix="damier-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.session = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", str(self.folder / "warehouse"))
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={self.folder}")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")
        atexit.register(self.session.stop)
        self.count = 0

    def load(self, data, name="t"):
        import pyarrow.parquet as pq

        if data.num_rows < 64:  # a relation in the driver: ten times as fast, and any name is a column's
            self.session.createDataFrame(data).createOrReplaceTempView(name)
            return
        self.count += 1
        path = self.folder / f"t{self.count}.parquet"
        pq.write_table(data, path, coerce_timestamps="us")
        self.session.read.parquet(str(path)).createOrReplaceTempView(name)

    def run(self, sql):
        frame = self.session.sql(sql)
        return frame.columns, [tuple(row) for row in frame.collect()]


_CLASSES = {c.name: c for c in (DuckDB, SQLite, PostgreSQL, MariaDB, ClickHouse, DataFusion, Polars, Spark)}
_NEEDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "postgres": (("psycopg",), ("initdb", "postgres")),
    "mysql": (("pymysql",), ("mariadb-install-db", "mariadbd")),
    "clickhouse": (("chdb",), ()),
    "datafusion": (("datafusion",), ()),
    "polars": (("polars",), ()),
    "spark": (("pyspark",), ("java",)),
}


def holds(name: str, column: str) -> bool:
    """Return whether an engine takes a text as the name of a column at all."""
    if name == "mysql":
        return column == column.rstrip() and len(column) <= 64 and all(ord(c) < 0x10000 for c in column)
    if name == "spark":
        return "${" not in column
    if name == "clickhouse":
        return column.isprintable()
    return True


@functools.cache
def engine(name: str) -> Engine:
    """Start an engine, once per process, or skip the test and say what is missing."""
    if ASKED != "all" and name not in ASKED.split(","):
        pytest.skip(f"{name} is not among DAMIER_SQL_ENGINES (set it to 'all')")
    modules, programs = _NEEDS.get(name, ((), ()))
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{name} needs the Python package {module}")
    for program in programs:
        if _program(program) is None:
            pytest.skip(f"{name} needs the program {program}")
    return _CLASSES[name]()
