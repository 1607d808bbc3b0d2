"""Parts, classes and counts in the words of a page or a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

LabelStyle = Literal["plain", "brackets"]
MAX_LABEL = 180
_LONGEST_VALUE = 60


def part_labels(
    partition: Any,
    statistics: Mapping[str, Any] | None = None,
    style: LabelStyle = "plain",
    room: int = MAX_LABEL,
) -> list[str]:
    """Write each part of a partition.

    Parameters
    ----------
    partition : partition
        Intervals or groups.
    statistics : mapping, optional
        Of its column, as `damier.report.columns.describe_column` gives them: a column of two values is then
        shown as its values, and the frequent values of a group come first.
    style : {"plain", "brackets"}
        ``12 < x ≤ 26`` and the values of a group one after the other, or the partition's own labels.
    room : int
        Characters for a label, about.

    Examples
    --------
    >>> from damier.models import IntervalPartition
    >>> partition = IntervalPartition(
    ...     name="age", classes=("no", "yes"), counts=[[9, 1], [2, 8], [1, 1]], cost=10.0, null_cost=15.0,
    ...     optimal=True, bounds=(12.0, 26.0))
    >>> part_labels(partition)
    ['x ≤ 12', '12 < x ≤ 26', 'x > 26']
    """
    if style == "brackets":
        return [str(label) for label in partition.labels]
    if hasattr(partition, "groups"):
        return [values_text(group, len(group), room) for group in typical_first(partition, statistics)]
    if not hasattr(partition, "bound_texts"):
        return [str(label) for label in partition.labels]
    written = _intervals(partition.bound_texts, partition.kind, statistics or {})
    if partition.missing_alone:
        return ["missing", *(written if len(written) > 1 else ["not missing"])]
    if partition.has_missing and len(written) > 1:
        written[0] = f"missing or {written[0]}"
    return written


def typical_first(partition: Any, statistics: Mapping[str, Any] | None = None) -> list[list[Any]]:
    """List the values of each group, the frequent ones first where the statistics of the column name them."""
    place = {value: k for k, value in enumerate((statistics or {}).get("frequent", ()))}
    last = len(place)
    return [
        sorted(group, key=lambda value: last if value is None else place.get(str(value), last))
        for group in partition.groups
    ]


def _intervals(texts: Sequence[str], kind: str, statistics: Mapping[str, Any]) -> list[str]:
    if not texts:
        return ["all values"]
    if len(texts) == 1 and kind == "number" and statistics.get("distinct") == 2:
        return [str(statistics["minimum"]), str(statistics["maximum"])]
    between = [f"{low} < x ≤ {high}" for low, high in pairwise(texts)]
    return [f"x ≤ {texts[0]}", *between, f"x > {texts[-1]}"]


def values_text(values: Sequence[Any], n_values: int, room: int = MAX_LABEL) -> str:
    """List the values of a group, as many as there is room for.

    >>> values_text(["red", None, "blue"], 10)
    'red, missing, blue … and 7 more'
    """
    texts: list[str] = []
    for value in values:
        text = "missing" if value is None else shortened(str(value) or "(empty)", _LONGEST_VALUE)
        room -= len(text) + 2
        if texts and room < 0:
            break
        texts.append(text)
    more = n_values - len(texts)
    return ", ".join(texts) + (f" … and {more:,} more" if more else "")


def class_names(classes: Sequence[str]) -> list[str]:
    """Name the classes such that a share may follow: numbers are called ``class 1:``.

    >>> class_names(["no", "yes"]), class_names(["-1", "1"])
    (['no', 'yes'], ['class -1:', 'class 1:'])
    """
    try:
        [float(label) for label in classes]
    except ValueError:
        return list(classes)
    return [f"class {label}:" for label in classes]


def percent(share: float) -> str:
    """Write a share.

    >>> percent(0.256), percent(0.001), percent(0.9999)
    ('26%', '<1%', '>99%')
    """
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share:.0%}"


def shortened(text: str, limit: int = MAX_LABEL) -> str:
    """Cut a text that is longer than the limit.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def some_of(names: Sequence[str], most: int = 5) -> str:
    """List names, not all of them when there are many.

    >>> some_of(["a", "b"]), some_of(["a", "b", "c"], 1)
    ('a, b', 'a and 2 more')
    """
    listed = ", ".join(shortened(name, 60) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


# Letters that are written from right to left, and words of them.
_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_RIGHT_TO_LEFT = re.compile(f"{_LETTER}+(?:[ _.'-]{{1,3}}{_LETTER}+)*")


def isolated(text: str) -> str:
    """Keep words that are written from right to left from turning the numbers and signs beside them.

    >>> isolated("age ≤ 3"), [hex(ord(c)) for c in isolated("\u05d0 \u05d1 ≤ 3")[:5]]
    ('age ≤ 3', ['0x2068', '0x5d0', '0x20', '0x5d1', '0x2069'])
    """
    return _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", text)


def number(value: float) -> str:
    """Write a number for people: about four digits, thousands apart.

    >>> number(12345.678), number(0.0123456), number(3.0), number(1.5e12), number(-0.5)
    ('12,346', '0.01235', '3', '1.5e+12', '-0.5')
    """
    size = abs(value)
    if size >= 1e10 or 0 < size < 1e-4:
        return f"{value:.4g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
