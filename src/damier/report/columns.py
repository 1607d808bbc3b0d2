"""What a report says of a column beside its parts: statistics, and what is odd about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.intake import Column, NumericColumn, NumericTarget, Target, free_text
from damier.intake.dates import number_text
from damier.intake.table import FloatArray, NumericKind
from damier.models import Partition
from damier.report.words import some_of

# A level above this says that the column all but repeats the target.
_COPY_LEVEL = 0.95
# Fewer rows say little about whether values repeat.
_LEAST_ROWS = 20
_MOST_REMARKS = 5
_MOST_FREQUENT = 50
_BINS = 40
_WHOLE = 10_000
# Ends so many times as far apart as the 1% and 99% quantiles are left out of a histogram.
_FAR = 3.0


def describe_column(column: Column) -> dict[str, Any]:
    """Count the distinct values of a column, and find its middle and ends or its most frequent value.

    Missing values do not count. What is not a plain number is written as text.

    Numbers of three values or more have a `histogram`; of categories, the most ``frequent`` are listed.

    >>> describe_column(NumericColumn("x", np.array([3.0, 1.0, np.nan, 1.0])))
    {'distinct': 2, 'minimum': 1, 'median': 1, 'maximum': 3}
    """
    if isinstance(column, NumericColumn):
        values = np.sort(column.values)
        values = values[: values.size - column.n_missing]
        if not values.size:
            return {"distinct": 0}
        ends_and_middle = values[[0, (values.size - 1) // 2, -1]]
        distinct = 1 + int(np.count_nonzero(values[1:] != values[:-1]))
        shown = (_plain(value, column.kind) for value in ends_and_middle.tolist())
        found = dict(zip(("minimum", "median", "maximum"), shown, strict=True))
        strip = histogram(values) if distinct > 2 else None
        return {"distinct": distinct, **found, **({} if strip is None else {"histogram": strip})}
    counts = np.bincount(column.codes, minlength=len(column.categories))
    first = int(bool(column.categories) and column.categories[0] is None)
    if counts.size == first:
        return {"distinct": 0}
    order = np.argsort(-counts[first:], kind="stable")[:_MOST_FREQUENT] + first
    frequent = [str(column.categories[place]) for place in order.tolist()]
    return {
        "distinct": counts.size - first,
        "most_frequent": frequent[0],
        "most_frequent_rows": int(counts[order[0]]),
        "frequent": frequent,
    }


def histogram(values: FloatArray) -> dict[str, Any] | None:
    """Count sorted numbers on a fine grid of even bins; None where they are not finite.

    Bins hold their upper end, as intervals do. Where a few numbers lie far out, the grid goes from the 1% to
    the 99% quantile, and its outer bins hold all beyond. Bins of whole numbers hold as many of them each.

    >>> histogram(np.array([1.0, 2.0, 2.0, 4.0]))
    {'low': 0.5, 'high': 4.5, 'counts': [1, 2, 0, 1]}
    """
    low, high = float(values[0]), float(values[-1])
    inner_low, inner_high = values[[(values.size - 1) // 100, (values.size - 1) * 99 // 100]].tolist()
    if inner_low < inner_high and high / 2 - low / 2 > _FAR * (inner_high / 2 - inner_low / 2):
        low, high = inner_low, inner_high
    if not (np.isfinite(low) and np.isfinite(high - low) and low < high):
        return None
    n_bins = _BINS
    distinct = values[np.flatnonzero(np.diff(values, prepend=-np.inf))]
    if distinct.size <= _WHOLE and (distinct % 1 == 0).all() and high - low < _WHOLE:
        # Bins of as many whole numbers each: others would hold one more or less by chance.
        width = (int(high - low) + _BINS) // _BINS
        n_bins = (int(high - low) + width) // width
        low, high = low - 0.5, low - 0.5 + width * n_bins
    edges = np.linspace(low, high, n_bins + 1)[1:-1]
    counts = np.diff(np.searchsorted(values, edges, side="right"), prepend=0, append=values.size)
    return {"low": low, "high": high, "counts": counts.tolist()}


def _plain(value: float, kind: NumericKind) -> float | int | str:
    if kind != "number" or not np.isfinite(value):
        return number_text(value, kind)
    return int(value) if value.is_integer() and abs(value) < 2.0**53 else value


def oddity(
    column: Column, target: Target | NumericTarget, partition: Partition, statistics: Mapping[str, Any]
) -> str | None:
    """Name what is odd: "copy" or "near copy" of the target, "identifier", "free text", "constant".

    A column that puts the rows in the same order as a numeric target is "same order".
    """
    n_rows, distinct = len(target.codes), statistics["distinct"]
    if distinct <= 1 and (distinct == 0 or column.n_missing == 0):
        return "constant"
    if isinstance(target, NumericTarget):
        if partition.n_parts > 1 and _same_order(column, target):
            return "same order"
    elif partition.n_parts > 1 and _repeats(column, target, partition, distinct):
        return "copy"
    if partition.level > _COPY_LEVEL:
        return "near copy"
    if n_rows < _LEAST_ROWS:
        return None
    if isinstance(column, NumericColumn):
        whole = column.kind == "number" and distinct == n_rows and bool((column.values % 1 == 0).all())
        return "identifier" if whole else None
    if distinct == n_rows and not any(" " in str(value) for value in column.categories[:1000]):
        return "identifier"
    return None if free_text(column) is None else "free text"


def _repeats(column: Column, target: Target, partition: Partition, distinct: int) -> bool:
    """Whether every value of the column has one class, and that is not for want of rows."""
    if distinct > len(target.codes) / 2:
        return False
    if isinstance(column, NumericColumn):
        return bool((np.count_nonzero(partition.counts, axis=1) == 1).all())
    pairs = np.unique(column.codes.astype(np.int64) * target.n_classes + target.codes)
    return pairs.size == len(column.categories)


def _same_order(column: Column, target: NumericTarget) -> bool:
    """Whether a column grows, or falls, exactly as a numeric target does."""
    if not isinstance(column, NumericColumn) or column.n_missing:
        return False
    values, codes = column.coded()
    if len(values) != target.n_distinct:
        return False
    return bool((codes == target.codes).all() or (len(values) - 1 - codes == target.codes).all())


def remarks(variables: Sequence[Mapping[str, Any]], target: str, n_rows: int) -> list[str]:
    """Say in sentences what is odd about the variables of a summary.

    >>> statistics = {"distinct": 99}
    >>> variable = {"name": "id", "odd": "identifier", "level": 0.0, "parts": 1, "statistics": statistics}
    >>> remarks([variable], "churn", 99)
    ['id: every value is distinct, as in an identifier']
    """
    odd: dict[str, list[Mapping[str, Any]]] = {}
    for variable in variables:
        odd.setdefault(variable.get("odd") or "", []).append(variable)
    said = []
    for v in odd.get("copy", [])[:_MOST_REMARKS]:
        by_value = v["type"] == "categorical" or v["statistics"]["distinct"] == v["parts"]
        each = "value" if by_value else "interval"
        said.append(f"{v['name']} repeats {target}: every {each} of it has one class")
    same = odd.get("same order", [])[:_MOST_REMARKS]
    said += [f"{v['name']} repeats {target}: it puts the rows in the same order" for v in same]
    near = odd.get("near copy", [])[:_MOST_REMARKS]
    said += [f"{v['name']} all but repeats {target}: its level is {v['level']:.4f}" for v in near]
    for v in odd.get("free text", [])[:_MOST_REMARKS]:
        used = "" if v["parts"] > 1 else ", not used"
        distinct = v["statistics"]["distinct"]
        said.append(f"{v['name']}: free text, {distinct:,} values in {n_rows:,} rows{used}")
    if "identifier" in odd:
        names = some_of([v["name"] for v in odd["identifier"]])
        said.append(f"{names}: every value is distinct, as in an identifier")
    if "constant" in odd:
        said.append(f"{some_of([v['name'] for v in odd['constant']])}: one value only")
    return said


def statistics_text(statistics: Mapping[str, Any]) -> str:
    """Write the statistics of a column in a line.

    >>> statistics_text({"distinct": 1200, "minimum": 1, "median": 2.5, "maximum": 9})
    '1,200 distinct values; minimum 1, median 2.5, maximum 9'
    """
    distinct = statistics["distinct"]
    text = f"{distinct:,} distinct value{'' if distinct == 1 else 's'}"
    if "minimum" in statistics:
        text += "; " + ", ".join(
            f"{key} {_number(statistics[key])}" for key in ("minimum", "median", "maximum")
        )
    elif "most_frequent" in statistics:
        value = statistics["most_frequent"]
        text += f"; most frequent: {value if len(value) <= 60 else value[:59] + '…'} "
        text += f"({statistics['most_frequent_rows']:,} rows)"
    return text


def _number(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
