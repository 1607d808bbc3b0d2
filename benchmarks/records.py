"""Figures of a benchmark run, printed and kept: a JSON file per run, from which ``docs/results`` is written.

    record = Record("grids")
    record.table("Noise", ["rows", "columns", "grids found"], [[1000, 10, 0]], note="10,000 draws each.")
    record.save()                     # benchmarks/recorded/grids.json

``python -m benchmarks.results`` writes the pages. A table of the same title replaces the one kept before, so
that a benchmark can be run in pieces; every table says when and on what it was measured.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RECORDED = Path(__file__).resolve().parent / "recorded"
_LIBRARIES = (
    "damier",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "duckdb",
    "khiops",
    "optbinning",
    "interpret",
)


class Record:
    """The tables of one benchmark.

    Parameters
    ----------
    benchmark : str
        Name of the module below ``benchmarks``.
    """

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.tables: list[dict[str, Any]] = []
        self._console = Console()

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
    ) -> None:
        """Print a table and keep it."""
        cells = [[_text(cell) for cell in row] for row in rows]
        shown = Table(*columns, title=title, title_justify="left")
        for row in cells:
            shown.add_row(*row)
        self._console.print(shown)
        if note:
            self._console.print(note, highlight=False)
        self.tables.append(
            {"title": title, "columns": list(columns), "rows": cells, "note": note, "run": circumstances()}
        )

    def save(self, folder: Path = RECORDED) -> Path:
        """Write the tables beside those kept of earlier runs; one of the same title is replaced."""
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.benchmark}.json"
        kept = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else []
        new = {table["title"]: table for table in self.tables}
        tables = [new.pop(table["title"], table) for table in kept] + list(new.values())
        text = json.dumps({"benchmark": self.benchmark, "tables": tables}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path


def circumstances() -> dict[str, Any]:
    """Say when and on what a table was measured: date, processor, cores, versions."""
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
