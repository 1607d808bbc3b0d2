"""Write ``docs/results`` from the recorded runs of the benchmarks.

python -m benchmarks.results
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.records import RECORDED

PAGES = Path(__file__).resolve().parent.parent / "docs" / "results"
TITLES = {
    "univariate": "Intervals and groups",
    "many_classes": "Naive Bayes and many classes",
    "classifiers": "Classifiers",
    "grids": "Grids",
    "semi_supervised": "Rows without a label",
    "coclustering": "Coclustering",
    "balls": "Balls on a graph",
    "linf": "LINF",
    "sql": "Models as SQL",
    "engines": "Tables beyond memory",
    "estimators": "Time of each estimator",
    "cold_start": "The first minute",
    "hostile": "Hostile inputs",
    "numeric_target": "Numeric targets",
    "growth": "Growth",
    "page": "Pages",
}


def page(record: dict[str, Any]) -> str:
    """Write the tables of one benchmark as Markdown."""
    name = record["benchmark"]
    lines = [f"# {TITLES.get(name, name)}", "", f"`python -m benchmarks.{name}` prints these.", ""]
    for table in record["tables"]:
        lines += [f"## {table['title']}", ""]
        lines += [_row(table["columns"]), _row(["---"] * len(table["columns"]))]
        lines += [_row(row) for row in table["rows"]]
        lines += ["", *([table["note"], ""] if table["note"] else []), _said(table["run"]), ""]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _said(run: dict[str, Any]) -> str:
    if "processor" not in run:
        return f"*{run['date']}; measured before processor and versions were recorded.*"
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return f"*{run['date']}; {run['processor']}, {run['cores']} cores; {versions}.*"


def pages() -> dict[str, str]:
    """Write a page per record, and their index: file name -> text."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDED.glob("*.json"))]
    order = {name: place for place, name in enumerate(TITLES)}
    records.sort(key=lambda record: order.get(record["benchmark"], len(order)))
    written = {f"{record['benchmark']}.md": page(record) for record in records}
    names = [record["benchmark"] for record in records]
    lines = ["# Results", "", "Figures of recorded runs, peers beside them, what was missed included.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", "", *names, "```", ""]
    return written | {"index.md": "\n".join(lines)}


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
