"""Models as SQL: the rules of the library, for engines where Python may not go."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from damier.deploy.sql.dialects import DIALECTS, Dialect, find_dialect
from damier.models import Model

if TYPE_CHECKING:
    from damier.deploy.sql.plan import Plan

__all__ = ["DIALECTS", "to_sql"]

Output = Literal[
    "proba", "class", "mean", "median", "quantiles", "parts", "onehot", "evidence", "rule", "cell", "cluster"
]
QUANTILES = (0.05, 0.5, 0.95)
_LISTED_COLUMNS = 200
_COMMENT_WIDTH = 110
_COMMENT_LINES = 6


def to_sql(
    model: Any,
    dialect: str,
    table: str | Sequence[str],
    *,
    keep: Sequence[str] = (),
    output: Output | None = None,
    quantiles: Sequence[float] = QUANTILES,
    types: Mapping[str, str] | None = None,
    lookup: Literal["inline", "table"] = "inline",
    lookup_table: str | Sequence[str] = "damier_lookup",
    create: tuple[Literal["view", "table"], str | Sequence[str]] | None = None,
    template: Literal["sql", "dbt"] = "sql",
    note: str | None = None,
) -> str:
    """Write a query that scores a table where it lives.

    Intervals, missing values (NULL and NaN), categories never seen and ties follow the rules of the library;
    results agree with ``predict_proba`` and ``predict`` to 1e-12. Needs ``pip install "damier[sql]"``.

    Parameters
    ----------
    model : model or fitted estimator
        Partitions and encodings, naive Bayes and grids (for classes or for a number), ensembles of grids,
        grids without a target, LINF, coclusterings of pairs. Balls and labeled coclusterings are refused.
    dialect : str
        One of ``damier.deploy.sql.DIALECTS``: "duckdb", "sqlite", "postgres", "mysql", "clickhouse", "spark",
        "datafusion", "polars", and, written but not run in the tests, "databricks", "snowflake", "bigquery",
        "redshift", "tsql", "oracle", "trino".
    table : str or sequence of str
        The table, by its name as stored: ``"visits"``, ``"sales.visits"``, or ``("sales", "my.table")`` where
        a name holds a dot.
    keep : sequence of str
        Columns of the table to return beside the results, such as a key.
    output : str, optional
        "proba", a column ``proba_<class>`` per class (the default of classifiers); "class", the most probable
        one; "mean" of a number (the default of regressors), its "median", or its "quantiles", a column
        ``quantile_<level>`` per level; "parts", the index of each variable's part, -1 for a value never seen;
        "onehot"; "evidence", a column per variable and class; "rule", the rule of a grid's cell and its place
        among ``rules()``, from 1; "cell" of a grid without a target; "cluster" of both values of a
        coclustering. Encodings write what they encode.
    quantiles : sequence of float, default=(0.05, 0.5, 0.95)
        Levels of ``output="quantiles"``, between 0 and 1.
    types : mapping from str to str, optional
        What a column holds in the table where it is not what it held when fitted: "number", "boolean",
        "text", "date", "timestamp", "timestamptz", "time", "interval", or "microseconds" (dates and durations
        as numbers). A time zone is not part of a model: for a column with one, pass "timestamptz".
    lookup : {"inline", "table"}, default="inline"
        "table" writes categories into a table of their own, with statements that make and fill it, and joins
        it; for columns of thousands of values.
    lookup_table : str or sequence of str, default="damier_lookup"
        Name of that table.
    create : tuple, optional
        ``("view", name)`` or ``("table", name)``: make one of the query.
    template : {"sql", "dbt"}, default="sql"
        "dbt" writes a model file that reads ``{{ ref('table') }}``, or ``{{ source('schema', 'table') }}``.
    note : str, optional
        A line for the comment at the head, such as a date; without it the same model gives the same text.

    Returns
    -------
    str
        One query, after the statements of the look-up table if there is one, separated by semicolons.

    Raises
    ------
    ValueError
        If the model or the dialect cannot express it; the message says why and what to do.
    ImportError
        If sqlglot is not installed.

    Examples
    --------
    >>> from damier.models import IntervalPartition
    >>> partition = IntervalPartition(
    ...     name="age", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=True, bounds=(30.5,))
    >>> print(to_sql(partition, "sqlite", "customers", keep=["id"]))
    -- IntervalPartition, by damier, for SQLite: parts of customers.
    -- reads age (number)
    -- age: part 0 ]-inf, 30.5]; 1 ]30.5, +inf[
    -- part -1: a value never seen in training
    WITH "damier_values" AS (
      SELECT
        "id",
        CAST("age" AS REAL) AS "damier_x0"
      FROM "customers"
      LIMIT -1
      OFFSET 0
    )
    SELECT
      "id",
      CASE WHEN "damier_x0" > 30.5e0 THEN 1 ELSE 0 END AS "age"
    FROM "damier_values"
    """
    try:
        import sqlglot  # noqa: F401
    except ImportError:
        raise ImportError('SQL is written by sqlglot: pip install "damier[sql]".') from None
    from damier.deploy.sql import queries
    from damier.deploy.sql.plan import Plan
    from damier.deploy.sql.writer import CannotWriteError, Writer

    held = model if isinstance(model, Model) else getattr(model, "model_", None)
    if not isinstance(held, Model):
        raise TypeError(
            f"{type(model).__name__} has no form in SQL: give a fitted estimator or a model of damier.models."
        )
    if lookup not in ("inline", "table"):
        raise ValueError(f"lookup must be 'inline' or 'table', got {lookup!r}.")
    if template not in ("sql", "dbt"):
        raise ValueError(f"template must be 'sql' or 'dbt', got {template!r}.")
    if isinstance(keep, str):
        raise ValueError(f"keep must be a list of names, got the text {keep!r}.")
    if create is not None and create[0] not in ("view", "table"):
        raise ValueError(f"create must be ('view', name) or ('table', name), got {create[0]!r}.")
    levels = _check_levels(quantiles, output)
    engine = find_dialect(dialect)
    if template == "dbt" and (lookup == "table" or create is not None):
        raise ValueError("a dbt model file is one query: leave lookup='table' and create out.")
    if template == "dbt" and len(_split(table)) > 2:
        raise ValueError(f"dbt finds a table by its name, or by source and name; got {table!r}.")
    if lookup == "table" and not engine.lookup_tables:
        raise CannotWriteError(f"{engine.engine} has no INSERT of several rows: pass lookup='inline'.")
    names = list(dict.fromkeys(p.name for p in queries.variables_of(held)))
    unknown = [name for name in types or {} if name not in names]
    if unknown:
        raise ValueError(
            f"types: the model reads no column {unknown[0]!r}; it reads {', '.join(map(repr, names))}."
        )
    writer = Writer(engine, types)
    source = writer.table(_split(table))
    marker = ""
    if template == "dbt":
        marker = _marker([*names, *keep])
        source = writer.table([marker])
    plan = Plan(
        writer,
        source,
        list(dict.fromkeys(keep)),
        names,
        writer.table(_split(lookup_table)) if lookup == "table" else None,
        levels,
    )
    query = plan.whole_query(queries.write(plan, held, output))
    statements = [*plan.lookup_statements(), writer.created(query, create and (create[0], _split(create[1])))]
    text = ";\n\n".join(writer.sql(statement) for statement in statements)
    called = ".".join(_split(table))
    what = output or queries.default_output(held)
    head = [f"{type(held).__name__}, by damier, for {engine.engine}: {what} of {called}."]
    head += [note] if note else []
    head += _size_notes(engine, len(text.encode("utf-8", "replace")))
    notes = [_columns_read(plan, names), *plan.comments[:_LISTED_COLUMNS]]
    if len(plan.comments) > _LISTED_COLUMNS:
        notes.append(f"... and {len(plan.comments) - _LISTED_COLUMNS} more columns")
    lines = [_comment(line, engine) for line in head]
    lines += [line for text in notes for line in _wrapped(_comment(text, engine))]
    # Spark takes a backslash before the end of a line for a comment that goes on.
    comments = "".join(f"-- {line}{' .' if line.endswith(chr(92)) else ''}\n" for line in lines)
    if template == "dbt":
        text = _as_dbt(text, marker, writer, _split(table))
        comments = _escape_braces(comments)
    return comments + text


def _split(name: str | Sequence[str]) -> list[str]:
    """Split a dotted name; a sequence holds names as they are."""
    pieces = name.split(".") if isinstance(name, str) else list(name)
    if not pieces or not all(isinstance(piece, str) and piece for piece in pieces) or len(pieces) > 3:
        raise ValueError(
            f"not the name of a table: {name!r}; write 'table', 'schema.table' or a tuple of names."
        )
    return pieces


def _check_levels(quantiles: Sequence[float], output: str | None) -> tuple[float, ...]:
    """Return the levels of quantiles, if they are some."""
    try:
        levels = tuple(float(level) for level in quantiles)
    except (TypeError, ValueError):
        levels = ()
    if not levels or not all(0.0 <= level <= 1.0 for level in levels):
        raise ValueError(f"quantiles must be a list of levels between 0 and 1, got {quantiles!r}.")
    if levels != QUANTILES and output != "quantiles":
        raise ValueError(f"quantiles are the levels of output='quantiles', got output={output!r}.")
    return levels


def _comment(text: str, engine: Dialect) -> str:
    """Write a line that no engine takes for anything but a comment."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return plain.replace("${", "$ {") if engine.dollar else plain


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _COMMENT_WIDTH,
        subsequent_indent="    ",
        break_on_hyphens=False,
        max_lines=_COMMENT_LINES,
        placeholder=" ...",
    )


def _columns_read(plan: Plan, names: Sequence[str]) -> str:
    """Say which columns are read, and as what; and which of the model are not."""
    held = [f"{name} ({plan.writer.held(name, kind)})" for name, kind in plan.inputs]
    read = {name for name, _ in plan.inputs}
    rest = [name for name in names if name not in read]
    unread = f"; not read: {', '.join(rest)}" if rest else ""
    return f"reads {', '.join(held) or 'no column'}{unread}"


def _size_notes(engine: Dialect, size: int) -> list[str]:
    if engine.text_limit is None or size <= engine.text_limit:
        return []
    return [f"{size:,} bytes, above {engine.text_limit:,} ({engine.engine}'s default): {engine.text_cure}."]


def _marker(names: Sequence[str]) -> str:
    """Return a name that stands for the table and occurs nowhere else."""
    marker = "damier_ref"
    while any(marker in name for name in names):
        marker += "_"
    return marker


def _as_dbt(text: str, marker: str, writer: Any, names: Sequence[str]) -> str:
    """Put ``ref`` in the place of the table, and keep dbt from reading anything else as a template."""
    written = writer.sql(writer.table([marker]))
    before, _, after = text.partition(f"FROM {written}\n")
    escaped = (name.replace("\\", "\\\\").replace("'", "\\'") for name in names)
    call = "ref" if len(names) == 1 else "source"
    quoted = ", ".join(f"'{name}'" for name in escaped)
    return f"{_escape_braces(before)}FROM {{{{ {call}({quoted}) }}}}\n{_escape_braces(after)}"


def _escape_braces(text: str) -> str:
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)
