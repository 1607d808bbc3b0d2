"""The summary as one self-contained HTML page.

This module works out what is shown and where; the markup is in ``templates/`` and every text in it is
escaped. A page stays small whatever the table: many classes are shown as the leading ones and the rest
together, many parts as the first ones, and past `DETAILS_BUDGET` the weaker variables keep their line but not
their parts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from damier.report import pairs, rules, scorer, worth
from damier.report.along import curve_view
from damier.report.classes import ShownClasses, class_bars, shown_classes
from damier.report.made import Made
from damier.report.measures import information_value, wilson
from damier.report.numbers import number_view
from damier.report.scripts import compact
from damier.report.sentences import rarer
from damier.report.summary import Summary
from damier.report.variables import MAX_PARTS, column_view, part_view
from damier.report.words import isolated, number, percent

# In the order of the page; each has a view for its template and an island for the scripts, or None.
SECTIONS = {"pairs": pairs, "rules": rules, "worth": worth, "row": scorer}
_NAMES = {
    "all": "Variables",
    "pairs": "Pairs",
    "rules": "Rules",
    "worth": "What it is worth",
    "row": "Try a row",
    "reading": "How to read this",
}
# One script of one hash: what all share, then what enhances each section.
SCRIPTS = ("core.js", "table.js", "parts.js", "matrix.js", "rules.js", "curves.js", "scorer.js")
STYLES = ("page.css", "sections.css")
DETAILS_BUDGET = 500_000  # characters, about, spent on the parts of all variables
COUNTS_BUDGET = 40_000  # numbers spent on classes without a colour

_TEMPLATES = Path(__file__).parent / "templates"
# The mosaic's own units; it is stretched to whatever place it is given.
_WIDTH, _HEIGHT, _GAP = 600, 60, 2


def render_page(summary: Summary, *, made: Made | None = None) -> str:
    """Write the page of a summary.

    Parameters
    ----------
    summary : dict
        As `damier.report.summarize` makes it.
    made : dict of str, optional
        How the page was made, as `damier.report.made.how_made` says it. Without it, the same summary makes
        the same page.

    Returns
    -------
    str
        The HTML document; it refers to nothing outside itself.
    """
    of_number = summary["target"].get("type") == "number"
    view = number_view(summary, DETAILS_BUDGET) if of_number else _view(summary)
    view |= {
        "of_number": of_number,
        "sections": [(place, name) for place, name in _NAMES.items() if view.get(place, True) is not None],
        "made": made or {},
        "style": verbatim(*STYLES),
        "script": verbatim(*SCRIPTS),
    }
    page = page_environment().get_template("page.html").render(view)
    return page if page.endswith("\n") else page + "\n"


# Everything is escaped, a name that is not there is an error.
_OPTIONS: dict[str, Any] = {
    "autoescape": True,
    "undefined": StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
}


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates, kept beside them as Python keeps its modules; not where nothing can be written."""

    def __init__(self) -> None:
        # Jinja looks at the text of a template and at Python's version; the rest goes into the name.
        made_with = hashlib.sha1(repr((jinja2.__version__, _OPTIONS)).encode(), usedforsecurity=False)
        super().__init__(str(_TEMPLATES / "__pycache__"), f"%s-{made_with.hexdigest()[:8]}.cache")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template; one that is damaged is compiled again."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # a damaged pickle raises anything
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that was compiled."""
        with contextlib.suppress(OSError):
            if not sys.dont_write_bytecode:
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


@functools.cache
def page_environment() -> Environment:
    """Set up the templates of all pages."""
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), bytecode_cache=_Compiled(), **_OPTIONS)
    environment.filters["count"] = lambda n: f"{n:,}"
    environment.filters["percent"] = percent
    environment.filters["sha256"] = _sha256
    environment.filters["figure"] = number
    environment.filters["isolated"] = isolated
    return environment


@functools.cache
def verbatim(*names: str) -> str:
    """Read styles or scripts of ours, without comments and indentation; templates mark only them as safe."""
    texts = [(_TEMPLATES / name).read_text(encoding="utf-8") for name in names]
    scripts = names[0].endswith(".js")
    return compact("\n".join(texts)) if scripts else "\n".join(map(_stripped, texts))


def _stripped(style: str) -> str:
    lines = (line.strip() for line in style.splitlines())
    return "\n".join(line for line in lines if line)


def _sha256(script: str) -> str:
    """Name a script in the content policy of the page: no other runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _view(summary: Summary) -> dict[str, Any]:
    """Everything the templates need, already counted, cut and measured."""
    target, data = summary["target"], summary["dataset"]
    classes = shown_classes(summary)
    variables, spent, left_out, n_counts = [], 0, 0, 0
    counts_of_all: dict[int, list[list[int]]] = {}
    for place, variable in enumerate(summary["variables"]):
        view = {**variable, **column_view(variable), "curves": [], "details": None, "mosaic": None}
        if variable["parts"] > 1:
            spent += 700 + min(variable["parts"], MAX_PARTS) * (180 + 45 * len(classes.labels))
            view["curves"] = curve_view(variable, classes)
            spent += sum(map(len, view["values_of"])) + 1100 * len(view["curves"])
            if spent <= DETAILS_BUDGET:
                view |= _details(variable, view, classes, data["rows"])
                # Bars hold the counts of the classes with a colour; those of the rest are for the scripts.
                n_counts += len(view["details"]) * len(target["counts"])
                if classes.n_others and n_counts <= COUNTS_BUDGET:
                    counts_of_all[place] = [part["counts"] for part in variable["table"][:MAX_PARTS]]
            else:
                left_out += 1
        variables.append(view)
    class_counts = classes.kept(target["counts"])
    islands = {name: section.island(summary) for name, section in SECTIONS.items()}
    return {
        "summary": summary,
        "data": data,
        "target": target,
        "legend": list(zip(classes.labels, classes.colours, class_counts, strict=True)),
        "colours": classes.colours,
        "whole": {"counts": class_counts, "bars": class_bars(class_counts)},
        # With two classes one line says where a part stands against all rows.
        "base": 100 * class_counts[0] / max(data["rows"], 1) if len(class_counts) == 2 else None,
        "variables": variables,
        "top_level": max((v["level"] for v in summary["variables"]), default=0.0),
        "left_out": left_out,
        "height": _HEIGHT,
        "width": _WIDTH,
        **{name: section.view(summary) for name, section in SECTIONS.items()},
        "island": {
            "name": data["name"],
            "target": target["name"],
            "classes": classes.labels,
            "shown": classes.places,
            # Where one of two classes is shown, the rarer one.
            "one_shown": classes.colours[rarer(target["counts"])] if len(target["counts"]) == 2 else "",
            "totals": target["counts"],
            "names": target["classes"] if classes.n_others else None,
            "counts": counts_of_all or None,
            **{name: island for name, island in islands.items() if island is not None},
        },
    }


def _details(
    variable: dict[str, Any], column: dict[str, Any], classes: ShownClasses, rows: int
) -> dict[str, Any]:
    parts = []
    for k, part in enumerate(variable["table"]):
        counts = classes.kept(part["counts"])
        parts.append(
            {
                **part_view(part, column, k, rows),
                "counts": counts,
                "bars": class_bars(counts),
                "main": classes.main(part["counts"]),
                "sure": _certainty(counts) if len(counts) == 2 else None,
            }
        )
    found = {
        "details": parts[:MAX_PARTS],
        "hidden_parts": max(0, len(parts) - MAX_PARTS),
        "mosaic": _mosaic([p["counts"] for p in parts]),
    }
    if len(classes.counts) == 2 and min(classes.counts) > 0:
        second = [part["counts"][1] for part in variable["table"]]
        sizes = [part["rows"] for part in variable["table"]]
        found["information_value"] = information_value(second, classes.counts[1], sizes)
    return found


def _certainty(counts: list[int]) -> tuple[str, str]:
    """Where the bar of the first of two classes may end: left end and width, in percent."""
    low, high = wilson(counts[0], sum(counts))
    return f"{100 * low:.4g}", f"{100 * (high - low):.3g}"


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
