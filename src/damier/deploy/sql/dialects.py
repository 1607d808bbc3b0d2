"""What the engines differ in, as one table: how each reads numbers, text, dates, names, and what it refuses.

Nothing here is run: :mod:`damier.deploy.sql.writer` reads it. ``run`` says that the tests score models on the
engine itself; the others are written and parsed back only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One engine.

    Parameters
    ----------
    name : str
        What users write.
    engine : str
        Its name for people.
    writes : str
        The dialect of sqlglot that writes it.
    run : bool
        Models are scored on it in the tests.
    double, text, integer : str
        Types of a number, a text and a whole number of 64 bits.
    single : str or None
        Type of a number of 32 bits, if there is one.
    nan : {"none", "function", "equal", "compare", "nanvl"}
        How NaN is found: it cannot be stored; by a function (``nan_function``); as equal to itself; as above
        all numbers but not infinite; by Oracle's NANVL.
    nan_above : bool
        NaN is above all numbers; otherwise no comparison with it is true.
    numbers : {"exponent", "cast", "short"}
        Literals that read back to the last bit: ``0.1e0``; a text cast to a number; a sum of two literals of
        15 digits, or where those are not exact, a whole number divided by powers of two (SQLite before 3.43
        reads one of 20,000 longer literals wrong, and one of 5,000 of 15 digits).
    arrays : {"none", "brackets", "cast", "element_at", "ordinal", "elt"}
        How a list of numbers is indexed, from 1; "none" writes a CASE.
    longest_sum : int
        Terms of a sum without parentheses: engines recurse on it, or plan in the square of its terms.
    rows : bool
        A list of rows of numbers is indexed faster than as many lists of numbers.
    fence : {"none", "offset", "limit", "huge"}
        What keeps the engine from copying each column of a subquery into its users.
    greatest : str
        Function for the largest of several numbers.
    clamp : bool
        EXP of a very negative number is an error.
    bytes : {"plain", "collate", "binary", "varbinary"}
        How texts are compared as bytes whatever the collation.
    booleans : bool
        TRUE and FALSE may be results.
    temporal : tuple of pairs
        Types of literals: "date", "timestamp", "timestamptz", "time", "interval"; what is not listed is
        refused. "text" stands for ISO text, "oracle" for TO_TIMESTAMP.
    folds_case : bool
        Names that differ by case only are one name.
    name_length : int or None
        Longest name; in bytes where ``name_bytes``.
    cuts_names : bool
        Longer names are cut, not refused.
    not_in_names : str
        Characters that no name holds.
    backslash_names : bool
        A backslash in a quoted name escapes what follows it.
    no_nul : bool
        A text cannot hold the character NUL: such a value cannot occur.
    empty_is_null : bool
        An empty text is NULL.
    by_code : str
        Characters of a text that are written by CHR: the engine does not read their escapes.
    dollar : bool
        ``${x}`` is replaced anywhere in a query.
    lookup_tables : bool
        A table of values can be written and joined.
    most_columns : int or None
        Most columns of one select.
    text_limit : int or None
        Longest query, in bytes, by default.
    text_cure : str
        What to set, or do, beyond.
    """

    name: str
    engine: str
    writes: str
    run: bool = False
    double: str = "DOUBLE"
    single: str | None = "REAL"
    text: str = "VARCHAR"
    integer: str = "BIGINT"
    nan: Literal["none", "function", "equal", "compare", "nanvl"] = "function"
    nan_function: str = "ISNAN"
    nan_above: bool = True
    numbers: Literal["exponent", "cast", "short"] = "exponent"
    arrays: Literal["none", "brackets", "cast", "element_at", "ordinal", "elt"] = "none"
    longest_sum: int = 500
    rows: bool = False
    fence: Literal["none", "offset", "limit", "huge"] = "none"
    greatest: str = "GREATEST"
    clamp: bool = False
    bytes: Literal["plain", "collate", "binary", "varbinary"] = "plain"
    collation: str = ""
    booleans: bool = True
    temporal: tuple[tuple[str, str], ...] = (
        ("date", "DATE"),
        ("timestamp", "TIMESTAMP"),
        ("timestamptz", "TIMESTAMPTZ"),
    )
    folds_case: bool = True
    name_length: int | None = None
    name_bytes: bool = False
    cuts_names: bool = False
    not_in_names: str = "\0"
    backslash_names: bool = False
    no_nul: bool = False
    empty_is_null: bool = False
    by_code: str = ""
    dollar: bool = False
    lookup_tables: bool = True
    most_columns: int | None = None
    text_limit: int | None = None
    text_cure: str = ""


_CONTROLS = "\a\v\f"
_TIME = (("time", "TIME"),)
_MOMENTS = (("date", "DATE"), ("timestamp", "TIMESTAMP"), ("timestamptz", "TIMESTAMPTZ"))
_SPARK = (("date", "DATE"), ("timestamp", "TIMESTAMP"), ("timestamptz", "TIMESTAMP"))

_ALL = (
    Dialect(
        name="duckdb",
        engine="DuckDB",
        writes="duckdb",
        run=True,
        arrays="brackets",
        rows=True,
        bytes="collate",
        collation="C",
        temporal=(*_MOMENTS, *_TIME, ("interval", "INTERVAL")),
    ),
    Dialect(
        name="sqlite",
        engine="SQLite",
        writes="sqlite",
        run=True,
        double="REAL",
        single=None,
        text="TEXT",
        nan="none",
        numbers="short",
        fence="limit",
        greatest="MAX",
        bytes="collate",
        collation="BINARY",
        temporal=(("date", "text"), ("timestamp", "text"), ("timestamptz", "text"), ("time", "text")),
        most_columns=2000,
        text_limit=1_000_000,
        text_cure="raise the limit SQLITE_LIMIT_SQL_LENGTH",
    ),
    Dialect(
        name="postgres",
        engine="PostgreSQL",
        writes="postgres",
        run=True,
        double="DOUBLE PRECISION",
        text="TEXT",
        nan="equal",
        numbers="cast",
        arrays="cast",
        fence="offset",
        clamp=True,
        bytes="collate",
        collation="C",
        temporal=(*_MOMENTS, *_TIME, ("interval", "INTERVAL")),
        folds_case=False,
        name_length=63,
        name_bytes=True,
        cuts_names=True,
        no_nul=True,
        most_columns=1600,
        text_limit=100_000,
        text_cure="turn compilation off for the session, which takes longer than the query: SET jit = off",
    ),
    Dialect(
        name="mysql",
        engine="MySQL, MariaDB",
        writes="mysql",
        run=True,
        text="CHAR",
        integer="SIGNED",
        nan="none",
        arrays="elt",
        fence="huge",
        bytes="binary",
        temporal=(("date", "DATE"), ("timestamp", "DATETIME(6)"), ("time", "TIME(6)")),
        name_length=64,
        most_columns=1000,
        text_limit=16_000_000,
        text_cure="raise max_allowed_packet",
    ),
    Dialect(
        name="clickhouse",
        engine="ClickHouse",
        backslash_names=True,
        writes="clickhouse",
        run=True,
        double="Nullable(Float64)",
        single="Nullable(Float32)",
        text="Nullable(String)",
        integer="Int64",
        nan_function="isNaN",
        nan_above=False,
        arrays="brackets",
        temporal=(
            ("date", "Date32"),
            ("timestamp", "DateTime64(6)"),
            ("timestamptz", "DateTime64(6, 'UTC')"),
        ),
        folds_case=False,
        text_limit=262_144,
        text_cure="SET max_query_size = 10000000, max_ast_elements = 1000000, "
        "max_expanded_ast_elements = 10000000",
    ),
    Dialect(
        name="spark",
        engine="Spark",
        by_code=_CONTROLS,
        writes="spark",
        run=True,
        text="STRING",
        arrays="element_at",
        temporal=_SPARK,
        dollar=True,
    ),
    Dialect(
        name="datafusion",
        engine="DataFusion",
        writes="duckdb",
        run=True,
        longest_sum=10,
        temporal=(("date", "DATE"), ("timestamp", "TIMESTAMP")),
        folds_case=False,
    ),
    Dialect(
        name="polars",
        engine="Polars SQL",
        lookup_tables=False,
        writes="",
        run=True,
        nan="compare",
        longest_sum=10,
        temporal=(("date", "DATE"), ("timestamp", "TIMESTAMP")),
        folds_case=False,
    ),
    Dialect(
        name="databricks",
        engine="Databricks",
        by_code=_CONTROLS,
        writes="databricks",
        text="STRING",
        arrays="element_at",
        temporal=_SPARK,
        dollar=True,
    ),
    Dialect(
        name="snowflake",
        engine="Snowflake",
        by_code=_CONTROLS,
        writes="snowflake",
        single=None,
        nan="equal",
        temporal=(
            ("date", "DATE"),
            ("timestamp", "TIMESTAMP_NTZ"),
            ("timestamptz", "TIMESTAMP_TZ"),
            *_TIME,
        ),
        folds_case=False,
        name_length=255,
        text_limit=1_000_000,
        text_cure='pass lookup="table", or score with damier predict',
    ),
    Dialect(
        name="bigquery",
        engine="BigQuery",
        writes="bigquery",
        double="FLOAT64",
        single=None,
        text="STRING",
        integer="INT64",
        nan_function="IS_NAN",
        arrays="ordinal",
        temporal=(("date", "DATE"), ("timestamp", "DATETIME"), ("timestamptz", "TIMESTAMP"), *_TIME),
        name_length=300,
        not_in_names='\0!"$()*,./;?@[\\]^`{}~',
        text_limit=1_000_000,
        text_cure='pass lookup="table", or score with damier predict',
    ),
    Dialect(
        name="redshift",
        engine="Redshift",
        by_code=_CONTROLS,
        writes="redshift",
        double="DOUBLE PRECISION",
        text="VARCHAR(65535)",
        nan="equal",
        numbers="cast",
        fence="offset",
        clamp=True,
        temporal=(*_MOMENTS, *_TIME),
        name_length=127,
        name_bytes=True,
        no_nul=True,
        most_columns=1600,
        text_limit=16_000_000,
        text_cure='pass lookup="table", or score with damier predict',
    ),
    Dialect(
        name="tsql",
        engine="SQL Server",
        writes="tsql",
        double="FLOAT(53)",
        text="NVARCHAR(MAX)",
        nan="none",
        bytes="varbinary",
        booleans=False,
        temporal=(
            ("date", "DATE"),
            ("timestamp", "DATETIME2(6)"),
            ("timestamptz", "DATETIMEOFFSET(6)"),
            ("time", "TIME(6)"),
        ),
        name_length=128,
        most_columns=1024,
        text_limit=256_000_000,
        text_cure='pass lookup="table", or score with damier predict',
    ),
    Dialect(
        name="oracle",
        engine="Oracle",
        lookup_tables=False,
        writes="oracle",
        double="BINARY_DOUBLE",
        single="BINARY_FLOAT",
        text="VARCHAR2(4000)",
        integer="NUMBER(19)",
        nan="nanvl",
        booleans=False,
        temporal=(("date", "oracle"), ("timestamp", "oracle"), ("timestamptz", "oracle")),
        folds_case=False,
        name_length=128,
        name_bytes=True,
        not_in_names='\0"',
        empty_is_null=True,
        most_columns=1000,
    ),
    Dialect(
        name="trino",
        engine="Trino",
        writes="trino",
        nan_function="IS_NAN",
        arrays="element_at",
        temporal=(
            ("date", "DATE"),
            ("timestamp", "TIMESTAMP(6)"),
            ("timestamptz", "TIMESTAMP(6) WITH TIME ZONE"),
            ("time", "TIME(6)"),
        ),
        text_limit=1_000_000,
        text_cure="raise query.max-length",
    ),
)

DIALECTS = {dialect.name: dialect for dialect in _ALL}
ALIASES = {"postgresql": "postgres", "mariadb": "mysql", "sqlserver": "tsql", "mssql": "tsql"}


def find_dialect(name: str) -> Dialect:
    """Find a dialect by its name.

    >>> find_dialect("PostgreSQL").name
    'postgres'
    """
    key = str(name).lower()
    key = ALIASES.get(key, key)
    if key not in DIALECTS:
        raise ValueError(f"unknown dialect {name!r}: choose one of {', '.join(DIALECTS)}.")
    return DIALECTS[key]
