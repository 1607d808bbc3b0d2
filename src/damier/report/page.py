"""The summary as one self-contained HTML page.

This module works out what is shown and where; the markup is in ``templates/`` and every text in it is
escaped. A page stays small whatever the table: many classes are shown as the leading ones and the rest
together, many parts as the first ones, and past `DETAILS_BUDGET` the weaker variables keep their line but not
their parts.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from damier.report.columns import statistics_text
from damier.report.grid import cut_short, pair_text, sampled_text
from damier.report.numbers import number, number_view
from damier.report.summary import Summary
from damier.report.words import class_names, percent, shortened

MAX_CLASSES = 10
MAX_LEADING = 5
MAX_PARTS = 60
MAX_RULES = 20
MAX_PAIRS = 8
DETAILS_BUDGET = 500_000  # characters, about, spent on the parts of all variables

_TEMPLATES = Path(__file__).parent / "templates"
# The mosaic's own units; it is stretched to whatever place it is given.
_WIDTH, _HEIGHT, _GAP = 600, 60, 2


def render_page(summary: Summary) -> str:
    """Write the page of a summary.

    Parameters
    ----------
    summary : dict
        As `damier.report.summarize` makes it.

    Returns
    -------
    str
        The HTML document; it refers to nothing outside itself.
    """
    of_number = summary["target"].get("type") == "number"
    template = page_environment().get_template("number.html" if of_number else "page.html")
    view = number_view(summary, DETAILS_BUDGET) if of_number else _view(summary)
    page = template.render(style=verbatim("page.css"), script=verbatim("page.js"), **view)
    return page if page.endswith("\n") else page + "\n"


@functools.cache
def page_environment() -> Environment:
    """Set up the templates of all pages: everything is escaped, a name that is not there is an error."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = lambda n: f"{n:,}"
    environment.filters["percent"] = percent
    environment.filters["sha256"] = _sha256
    environment.filters["figure"] = number
    return environment


def verbatim(name: str) -> str:
    """Read a style or script of ours; the templates mark it as safe, all other text is escaped."""
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _sha256(script: str) -> str:
    """Name a script in the content policy of the page: no other runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _view(summary: Summary) -> dict[str, Any]:
    """Everything the templates need, already counted, cut and measured."""
    target, data = summary["target"], summary["dataset"]
    shown = _shown_classes(target["counts"], summary["variables"])
    others = len(target["counts"]) - len(shown)
    names = class_names(target["classes"])
    labels = [names[j].removesuffix(":") for j in shown]
    if others:
        labels.append(f"{others:,} other classes")
    colours = [f"k{j}" for j in range(len(shown))] + (["ko"] if others else [])
    variables, spent, left_out = [], 0, 0
    for variable in summary["variables"]:
        statistics = variable.get("statistics")
        text = "" if statistics is None else statistics_text(statistics)
        view = dict(variable, details=None, mosaic=None, statistics=text)
        if variable["parts"] < 2:
            variables.append(view)
            continue
        spent += 400 + min(variable["parts"], MAX_PARTS) * (150 + 45 * len(labels))
        if spent <= DETAILS_BUDGET:
            view |= _details(variable, shown, bool(others), names, data["rows"])
        else:
            left_out += 1
        variables.append(view)
    class_counts = _kept(target["counts"], shown, bool(others))
    return {
        "summary": summary,
        "data": data,
        "target": target,
        "legend": list(zip(labels, colours, class_counts, strict=True)),
        "colours": colours,
        "whole": {"counts": class_counts, "bars": _bars(class_counts)},
        # With two classes one line says where a part stands against all rows.
        "base": 100 * class_counts[0] / max(data["rows"], 1) if len(class_counts) == 2 else None,
        "variables": variables,
        "top_level": max((v["level"] for v in summary["variables"]), default=0.0),
        "left_out": left_out,
        "grid": _grid(summary.get("grid"), shown, bool(others), names),
        "pairs": _pairs(summary.get("pairs")),
        "sampled": sampled_text(summary.get("classifier", {})),
        "cut_short": cut_short(summary),
        "height": _HEIGHT,
        "width": _WIDTH,
    }


def _shown_classes(counts: list[int], variables: list[dict[str, Any]]) -> list[int]:
    """Classes with a colour of their own, in the order of the data: all when few.

    Of many, those that lead the most rows, in parts of the strongest variables, then the most frequent.
    """
    if len(counts) <= MAX_CLASSES:
        return list(range(len(counts)))
    led = [0] * len(counts)
    for part in (part for variable in variables[:MAX_LEADING] for part in variable["table"]):
        led[part["counts"].index(max(part["counts"]))] += part["rows"]
    order = sorted(range(len(counts)), key=lambda j: (-led[j], -counts[j], j))
    return sorted(order[: MAX_CLASSES - 1])


def _kept(counts: list[int], shown: list[int], others: bool) -> list[int]:
    kept = [counts[j] for j in shown]
    return [*kept, sum(counts) - sum(kept)] if others else kept


def _details(
    variable: dict[str, Any], shown: list[int], others: bool, classes: list[str], rows: int
) -> dict[str, Any]:
    parts = []
    for part in variable["table"]:
        counts = _kept(part["counts"], shown, others)
        parts.append(
            {
                "label": part["label"] if "values" in part else shortened(part["label"]),
                "rows": part["rows"],
                "share": part["rows"] / rows if rows else 0.0,
                "counts": counts,
                "bars": _bars(counts),
                "main": _main_classes(part["counts"], classes),
            }
        )
    return {
        "details": parts[:MAX_PARTS],
        "hidden_parts": max(0, len(parts) - MAX_PARTS),
        "mosaic": _mosaic([p["counts"] for p in parts]),
    }


def _grid(
    grid: dict[str, Any] | None, shown: list[int], others: bool, classes: list[str]
) -> dict[str, Any] | None:
    """Cut and measure the rules of a grid."""
    if grid is None:
        return None
    rules = []
    for rule in grid["rules"][:MAX_RULES]:
        counts = _kept(rule["counts"], shown, others)
        rules.append(
            {
                "parts": list(zip((v["name"] for v in grid["variables"]), rule["parts"], strict=True)),
                "rows": rule["rows"],
                "counts": counts,
                "bars": _bars(counts),
                "main": _main_classes(rule["counts"], classes),
            }
        )
    return {**grid, "shown": rules, "hidden": grid["cells"] - len(rules)}


def _pairs(pairs: dict[str, Any] | None) -> dict[str, Any] | None:
    """Write the pairs of largest gain, and those that the search did not come to."""
    if pairs is None:
        return None
    gaining = [(p["first"], p["second"], pair_text(p)) for p in pairs["gaining"][:MAX_PAIRS]]
    not_done = [f"{first} × {second}" for first, second in pairs["not_done"]]
    return {**pairs, "gaining": gaining, "not_done": not_done, "sampled": sampled_text(pairs)}


def _bars(counts: list[int]) -> list[tuple[int, str]]:
    """Width, in percent, of the bar of each class that occurs, each laid over the longer ones before it."""
    total, upto, bars = sum(counts), 0, []
    for j, count in enumerate(counts):
        upto += count
        if count:
            bars.append((j, f"{100 * upto / total:.4g}"))
    return bars[::-1]


def _mosaic(parts: list[list[int]]) -> list[tuple[int, str]]:
    """Draw one path per class: one column per part, as wide as the part is frequent, filled by class shares.

    Columns, too, are laid over the higher ones before them.
    """
    total, n_classes = sum(map(sum, parts)), len(parts[0])
    paths: list[list[str]] = [[] for _ in range(n_classes)]
    seen = 0
    for counts in parts:
        size = sum(counts)
        left, right = _WIDTH * seen // total, _WIDTH * (seen + size) // total
        seen += size
        if right - left > 3 * _GAP and seen < total:
            right -= _GAP
        upto = 0
        for j, count in enumerate(counts):
            upto += count
            top = _HEIGHT - round(_HEIGHT * upto / max(size, 1))
            if count and right > left:
                paths[j].append(f"M{left} {top}H{right}V{_HEIGHT}H{left}")
    return [(j, "".join(paths[j])) for j in reversed(range(n_classes)) if paths[j]]


def _main_classes(counts: list[int], classes: list[str]) -> str:
    """Name the commonest classes of a part, with their shares; three of many, two of few."""
    total, most = sum(counts), 3 if len(counts) > MAX_CLASSES else 2
    order = sorted(range(len(counts)), key=lambda j: (-counts[j], j))
    named = [j for j in order[:most] if counts[j]]
    return ", ".join(f"{shortened(classes[j], 40)} {percent(counts[j] / total)}" for j in named)
