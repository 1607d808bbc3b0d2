"""Parts as conditions: in words, in SQL, and in pandas; what a rule of the page is copied as.

The SQL is what the standard has, as DuckDB and PostgreSQL read it; a value is missing where it is NULL. The
Python is for a pandas frame called ``df``. Both select the rows that the part holds, missing values included
where the part holds them; a category never seen is in no part.
"""

from __future__ import annotations

import datetime
import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.intake.cells import literal, quoted
from damier.models import GroupPartition, IntervalPartition
from damier.report.words import values_text

# A group of more values is not copied: a look-up table serves better.
MAX_COPIED = 500
_DAY = 86_400_000_000
_LARGEST = 1.7976931348623157e308
# Names that stand for something else in a query of pandas, unless they are quoted.
_TAKEN = {"index", "inf", "Inf", "datetime", "Timestamp", "list", "tuple"}


def part_words(partition: Any, part: int, statistics: Mapping[str, Any] | None = None, room: int = 80) -> str:
    """Write what a value of a part satisfies, as a clause of a sentence.

    >>> partition = IntervalPartition(
    ...     name="age", classes=(), counts=np.zeros((3, 0)), cost=0.0, null_cost=0.0, optimal=True,
    ...     bounds=(30.5, 60.0))
    >>> [part_words(partition, part) for part in range(3)]
    ['age ≤ 30.5', '30.5 < age ≤ 60', 'age > 60']
    """
    name = partition.name
    if isinstance(partition, GroupPartition):
        group = partition.groups[part]
        if group == (None,):
            return f"{name} is missing"
        return f"{name} is {'one of ' if len(group) > 1 else ''}{values_text(group, len(group), room)}"
    if not isinstance(partition, IntervalPartition):
        return f"{name} in {partition.labels[part]}"
    interval, texts = part - int(partition.missing_alone), partition.bound_texts
    if interval < 0:
        return f"{name} is missing"
    if not texts:
        return f"{name} is not missing" if partition.missing_alone else f"{name} is any value"
    two_values = len(texts) == 1 and partition.kind == "number" and (statistics or {}).get("distinct") == 2
    if two_values and statistics is not None:
        words = f"{name} is {statistics['maximum' if interval else 'minimum']}"
    elif interval == 0:
        words = f"{name} ≤ {texts[0]}"
    elif interval == len(texts):
        words = f"{name} > {texts[-1]}"
    else:
        words = f"{texts[interval - 1]} < {name} ≤ {texts[interval]}"
    missing = interval == 0 and partition.has_missing and not partition.missing_alone
    return f"{words} or missing" if missing else words


def part_sql(partition: Any, part: int) -> str | None:
    """Write a part as a condition of SQL; None where there are too many values, or of several types.

    >>> partition = GroupPartition(
    ...     name='a"b', classes=(), counts=np.zeros((1, 0)), cost=0.0, null_cost=0.0, optimal=True,
    ...     groups=(("it's", None),))
    >>> print(part_sql(partition, 0))
    ("a""b" = 'it''s' OR "a""b" IS NULL)
    """
    name = quoted(partition.name)
    listed = _values(partition, part)
    if listed is not None:
        values, missing = listed
        if len(values) > MAX_COPIED or len({type(v) for v in values} - {int, float}) + _numeric(values) > 1:
            return None
        written = [_sql_value(value) for value in values]
        clauses = [f"{name} = {written[0]}" if len(written) == 1 else f"{name} IN ({', '.join(written)})"]
        clauses = clauses if written else []
    else:
        low, high, missing = _ends(partition, part)
        kind, zoned = partition.kind, bool(partition.legend)
        both = [f"{name} {sign} {_sql_bound(bound, kind, zoned)}" for sign, bound in _signs(low, high, kind)]
        clauses = [" AND ".join(both)] if both else [f"{name} IS NOT NULL"] if not missing else []
    clauses += [f"{name} IS NULL"] if missing else []
    return f"({' OR '.join(clauses)})" if len(clauses) > 1 else clauses[0]


def part_python(partition: Any, part: int, *, query: bool = True) -> str | None:
    """Write a part as a condition on a pandas frame; None where there are too many values.

    >>> partition = GroupPartition(
    ...     name="my plan", classes=(), counts=np.zeros((1, 0)), cost=0.0, null_cost=0.0, optimal=True,
    ...     groups=(("it's", None),))
    >>> print(part_python(partition, 0))
    (`my plan`.isin(["it's"]) | `my plan`.isna())
    >>> print(part_python(partition, 0, query=False))
    (df['my plan'].isin(["it's"]) | df['my plan'].isna())
    """
    name = _query_name(partition.name) if query else f"df[{partition.name!r}]"
    listed = _values(partition, part)
    if listed is not None:
        values, missing = listed
        if len(values) > MAX_COPIED:
            return None
        clauses = [f"{name}.isin({list(values)!r})"] if values else []
    else:
        low, high, missing = _ends(partition, part)
        kind, zoned = partition.kind, bool(partition.legend)
        compared = f"{name}.astype('str')" if kind == "time" else name
        both = [
            f"({compared} {sign} {_python_bound(bound, kind, zoned)})"
            for sign, bound in _signs(low, high, kind)
        ]
        both += [f"{name}.notna()"] if (kind == "time" if both else not missing) else []
        clauses = [" & ".join(both)] if both else []
        clauses = [f"({clauses[0]})"] if len(both) > 1 and missing else clauses
    clauses += [f"{name}.isna()"] if missing else []
    return f"({' | '.join(clauses)})" if len(clauses) > 1 else clauses[0]


def rule_sql(clauses: Sequence[str]) -> str:
    """Join the conditions of a rule.

    >>> rule_sql(['"a" > 1', '"b" = 2'])
    'WHERE "a" > 1 AND "b" = 2'
    """
    return "WHERE " + " AND ".join(clauses)


def rule_python(clauses: Sequence[str], *, query: bool) -> str:
    """Join the conditions of a rule, as a selection of a frame.

    >>> rule_python(["(a > 1)", "(b <= 2)"], query=True), rule_python(["(df['a`'] > 1)"], query=False)
    ('df.query("(a > 1) & (b <= 2)")', "df[(df['a`'] > 1)]")
    """
    joined = " & ".join(clauses)
    return f"df.query({json.dumps(joined, ensure_ascii=False)})" if query else f"df[{joined}]"


def in_query(partition: Any) -> bool:
    """Whether the parts can be written in a query of pandas: not every name and text can."""
    texts = [partition.name]
    if isinstance(partition, GroupPartition):
        texts += [v for group in partition.groups for v in group if isinstance(v, str)]
    return partition.name.isprintable() and partition.name != "" and not any("`" in t for t in texts)


def _query_name(name: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) and not keyword.iskeyword(name)
    return name if plain and name not in _TAKEN else f"`{name}`"


def _values(partition: Any, part: int) -> tuple[tuple[Any, ...], bool] | None:
    """Return the values of a part and whether it holds missing ones; None for intervals of numbers."""
    if isinstance(partition, GroupPartition):
        group = partition.groups[part]
    elif partition.kind == "rank":
        interval = part - int(partition.missing_alone)
        group = partition._ranked[interval] if interval >= 0 else (None,)
        group += (None,) if interval == 0 and partition.has_missing and not partition.missing_alone else ()
    else:
        return None
    return tuple(value for value in group if value is not None), None in group


def _numeric(values: Sequence[Any]) -> bool:
    return any(type(value) in (int, float) for value in values)


def _ends(partition: IntervalPartition, part: int) -> tuple[float | None, float | None, bool]:
    """Return the bounds of an interval, None where it has none, and whether it holds missing values."""
    interval, bounds = part - int(partition.missing_alone), partition.bounds
    if interval < 0:
        return None, None, True
    low = bounds[interval - 1] if interval > 0 else None
    high = bounds[interval] if interval < len(bounds) else None
    return low, high, interval == 0 and partition.has_missing and not partition.missing_alone


def _signs(low: float | None, high: float | None, kind: str) -> list[tuple[str, float]]:
    """Compare numbers with the bounds, moments with the first one beyond each bound."""
    if kind != "number":
        return [(sign, b) for sign, b in ((">=", low), ("<", high)) if b is not None]
    ends = []
    if low is not None:
        ends.append((">=", -_LARGEST) if low == -math.inf else (">", low))
    if high is not None and high < math.inf:
        ends.append(("<", -_LARGEST) if high == -math.inf else ("<=", high))
    return ends


def _sql_value(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return _sql_number(value)
    return str(value) if isinstance(value, int) else literal(str(value))


def _sql_number(value: float) -> str:
    """Write a number that reads back to the last bit: up to 15 digits as a decimal, else as a double."""
    text = repr(float(value)).removesuffix(".0")
    return text if "e" in text or sum(map(str.isdigit, text)) <= 15 else f"{text}e0"


def _sql_bound(bound: float, kind: str, zoned: bool) -> str:
    if kind == "number":
        return _sql_number(bound)
    if kind == "duration":
        return f"INTERVAL '{math.floor(bound) + 1} microseconds'"
    typed = {"date": "DATE", "time": "TIME", "datetime": "TIMESTAMPTZ" if zoned else "TIMESTAMP"}[kind]
    return f"{typed} '{_moment(bound, kind, zoned)}'"


def _python_bound(bound: float, kind: str, zoned: bool) -> str:
    if kind == "number":
        return repr(float(bound)).removesuffix(".0")
    return repr(_moment(bound, kind, zoned))


def _moment(bound: float, kind: str, zoned: bool) -> str:
    """Write the first moment, day or duration beyond a bound.

    >>> _moment(0.0, "date", False), _moment(1.5, "datetime", True), _moment(3.6e9, "time", False)
    ('1970-01-02', '1970-01-01 00:00:00.000002+00:00', '01:00:00.000001')
    """
    first = math.floor(bound) + 1
    if kind == "date":
        return str(np.datetime64(-(-first // _DAY), "D"))
    if kind == "datetime":
        text = str(np.datetime64(first, "us")).replace("T", " ").removesuffix(".000000")
        return text + ("+00:00" if zoned else "")
    if kind == "time":
        return (datetime.datetime.min + datetime.timedelta(microseconds=first)).time().isoformat()
    return f"{first} us"
