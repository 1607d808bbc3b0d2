"""What all benchmarks share: a command line, tables printed as they are measured, and figures kept.

    def noise(record, options):
        record.figure("Noise", "1,000 rows: grids found", "none")
        record.table("Times", ["rows", "seconds"], [[1000, 0.2]], note="CPU seconds.")

    if __name__ == "__main__":
        run("grids", __doc__, {"noise": noise})

``--record`` keeps the tables in ``benchmarks/recorded/NAME.json``, and ``python -m benchmarks.results``
writes ``docs/results`` from these files. A table of the same title replaces the one kept before, so that a
benchmark can be run in pieces; every table says when and on what it was measured. A benchmark that measures
the rows of one table in pieces takes the others in by `Record.merge`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RECORDED = Path(__file__).resolve().parent / "recorded"
FIGURES = ("problem", "Damier", "beside")
_LIBRARIES = (
    "damier",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "duckdb",
    "khiops",
    "optbinning",
    "interpret-core",
)


class DataUnavailableError(RuntimeError):
    """No place that was looked in holds the data set."""


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
        self._open: dict[str, tuple[Sequence[str], list[list[str]]]] = {}
        self._console = Console(width=max(120, Console().width))

    def say(self, text: str) -> None:
        """Print a line that is not kept."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def row(self, title: str, columns: Sequence[str], cells: Sequence[Any]) -> None:
        """Print a row as soon as it is measured; `close` keeps the rows as a table."""
        known, rows = self._open.setdefault(title, (columns, []))
        if not rows:
            self.say(f"\n{title}\n  {' | '.join(known)}")
        rows.append([_text(cell) for cell in cells])
        self.say(f"  {' | '.join(rows[-1])}")

    def figure(self, title: str, problem: str, measured: Any, beside: Any = "") -> None:
        """Print a figure, with the published or a peer's one beside it, as `row` does."""
        self.row(title, FIGURES, [problem, measured, beside])

    def close(self, title: str, note: str = "") -> None:
        """Keep the rows printed under a title as a table, if there are any."""
        if title in self._open:
            self._keep(title, *self._open.pop(title), note)

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
    ) -> None:
        """Print a table and keep it."""
        cells = [[_text(cell) for cell in row] for row in rows]
        shown = Table(*columns, title=title, title_justify="left")
        for row in cells:
            shown.add_row(*row)
        self._console.print(shown)
        self._keep(title, columns, cells, note)

    def _keep(self, title: str, columns: Sequence[str], cells: list[list[str]], note: str) -> None:
        if note:
            self.say(note)
        self.tables.append(
            {"title": title, "columns": list(columns), "rows": cells, "note": note, "run": circumstances()}
        )

    def _kept(self, folder: Path) -> list[dict[str, Any]]:
        path = folder / f"{self.benchmark}.json"
        tables: list[dict[str, Any]] = []
        if path.exists():
            tables = json.loads(path.read_text(encoding="utf-8"))["tables"]
        return tables

    def merge(
        self,
        title: str,
        columns: Sequence[str],
        keep: Callable[[list[str]], bool],
        order: Callable[[list[str]], Any],
    ) -> list[list[str]]:
        """Put rows of earlier runs beside those just printed, in an order, and return all."""
        known = [table for table in self._kept(RECORDED) if table["title"] == title]
        kept = [row for table in known if table["columns"] == list(columns) for row in table["rows"]]
        rows = [*self._open.get(title, (columns, []))[1], *filter(keep, kept)]
        rows.sort(key=order)
        if rows:
            self._open[title] = (columns, rows)
        return rows

    def save(self, folder: Path = RECORDED) -> Path:
        """Write the tables beside those kept of earlier runs; one of the same title is replaced."""
        for title in list(self._open):
            self.close(title)
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.benchmark}.json"
        kept = self._kept(folder)
        new = {table["title"]: table for table in self.tables}
        tables = [new.pop(table["title"], table) for table in kept] + list(new.values())
        text = json.dumps({"benchmark": self.benchmark, "tables": tables}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path


Part = Callable[[Record, argparse.Namespace], None]


def run(
    benchmark: str,
    description: str | None,
    parts: Mapping[str, Part],
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    before: Part | None = None,
) -> None:
    """Run the parts of a benchmark that the command line names, all of them by default.

    Parameters
    ----------
    benchmark : str
        Name of the module below ``benchmarks``.
    description : str
        Shown by ``--help``.
    parts : mapping
        Name of each part -> a function of the record and the options.
    arguments : mapping, optional
        Further arguments: name -> keywords of ``add_argument``.
    before : callable, optional
        Called first, with a record that is not kept: compiles what is timed later.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer draws, smaller tables")
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts), help="some parts")
    parser.add_argument("--record", action="store_true", help="keep the tables for docs/results")
    for name, keywords in (arguments or {}).items():
        parser.add_argument(name, **keywords)
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("--record keeps figures of full runs: leave --quick out.")
    if before is not None:
        before(Record(benchmark), options)
    for name in options.only:
        record = Record(benchmark)
        try:
            parts[name](record, options)
        except DataUnavailableError as error:
            record.say(f"{name}: skipped, {error}")
        for title in list(record._open):
            record.close(title)
        if options.record and record.tables:
            record.save()


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
