"""What a page shows of a variable beside the classes: its values, their strip, the prices of its cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from damier.report.columns import statistics_text
from damier.report.words import MAX_LABEL, number, shortened, values_text

MAX_PARTS = 60
# Characters for the values of a group that are listed on request.
_MOST_VALUES = 1500
_HEIGHT = 60


def column_view(variable: Mapping[str, Any]) -> dict[str, Any]:
    """Write the statistics of a variable, draw its values, list the values of its groups and its prices."""
    statistics = variable.get("statistics")
    merges, cuts = variable.get("merges"), variable.get("cuts")
    if merges is not None:
        labels = [shortened(part["label"], 30) for part in variable["table"]]
        prices = [f"{number(price)} nats, with {labels[nearest]}" for price, nearest in merges]
    elif cuts is not None:
        prices = [f"{number(price)} nats" for price in cuts] + [""]
    else:
        prices = []
    return {
        "statistics": "" if statistics is None else statistics_text(statistics),
        "rows_along": _values_strip(variable, statistics or {}),
        "values_of": [_values_of(part) for part in variable["table"][:MAX_PARTS]],
        "prices": prices,
        "priced": bool(prices),
    }


def part_view(part: Mapping[str, Any], column: Mapping[str, Any], place: int, rows: int) -> dict[str, Any]:
    """Write what a part holds: its label, its values, its rows, the price of doing without it."""
    values = part.get("values", ())
    listed = column["values_of"][place] if place < MAX_PARTS else ""
    return {
        "label": part["label"] if values else shortened(part["label"]),
        "all": listed,
        "n_all": listed.count("\n") + 1,
        "n_values": part.get("n_values", 0),
        "rows": part["rows"],
        "share": part["rows"] / rows if rows else 0.0,
        "price": column["prices"][place] if column["priced"] else "",
    }


def _values_of(part: Mapping[str, Any]) -> str:
    """List the values of a group, one per line, where its label does not hold them all."""
    values = part.get("values", ())
    if values_text(values, part.get("n_values", 0), MAX_LABEL) == ", ".join(map(_value, values)):
        return ""
    listed: list[str] = []
    room = _MOST_VALUES
    for value in values:
        text = _value(value)
        room -= len(text) + 1
        if listed and room < 0:
            break
        listed.append(text)
    return "\n".join(listed)


def _value(value: Any) -> str:
    return "missing" if value is None else str(value) or "(empty)"


def _values_strip(variable: Mapping[str, Any], statistics: Mapping[str, Any]) -> dict[str, Any] | None:
    """Draw the rows along the values of a variable, one step per bin, and its cuts."""
    strip = statistics.get("histogram")
    if strip is None:
        return None
    counts, low, high = strip["counts"], strip["low"], strip["high"]
    most = max(counts)
    path = "".join(f"V{_HEIGHT - round(_HEIGHT * n / most, 1):g}h1" for n in counts)
    bounds = [b for b in variable.get("bounds", ()) if isinstance(b, float) and low <= b <= high]
    places = [f"{len(counts) * (b - low) / (high - low):.4g}" for b in bounds]
    # Ends that the strip does not reach are said to lie beyond.
    minimum, maximum = statistics["minimum"], statistics["maximum"]
    far_left = isinstance(minimum, (int, float)) and minimum < low
    far_right = isinstance(maximum, (int, float)) and maximum > high
    return {
        "bins": len(counts),
        "rows": f"M0 {_HEIGHT}{path}V{_HEIGHT}z",
        "cuts": "".join(f"M{x} 0V{_HEIGHT}" for x in places),
        "n_cuts": len(places),
        "low": f"{number(low)} and less" if far_left else _end(minimum),
        "high": f"{number(high)} and more" if far_right else _end(maximum),
    }


def _end(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
