"""``damier cocluster FILE --rows A --columns B``: clusters of both, as a table, labels and a page."""

from __future__ import annotations

import glob
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from damier.commands.common import (
    WRONG_COMMAND,
    check_outputs,
    column_name,
    data_problems,
    listed,
    read,
    stop,
    typed_command,
    with_reading_options,
    write,
    writing,
)
from damier.commands.tables import check_kind, joined, raw_option, write_table
from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier.intake.engines.source import Source
    from damier.models.coclustering import CoclusteringModel
    from damier.search.run import ProgressCallback

Names = dict[str, str]
# Bytes of a Parquet file from which on DuckDB counts its pairs.
_LARGE = 1 << 26
EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier cocluster sales.csv --rows customer --columns product[/cyan]\n\n"
    "[cyan]damier cocluster visits.parquet -r user -c page --counts clicks[/cyan]   pairs with counts\n\n"
    "[cyan]damier cocluster sales.csv -r id -c product --clusters 10x8 --row-names names.csv[/cyan]\n\n"
    "[cyan]damier cocluster 'visits/*.parquet' -r user -c page[/cyan]   files of any number of rows\n\n"
    "[cyan]damier cocluster words.tsv --labels clusters.csv[/cyan]   the cluster of every value\n\n"
    "[bold]Reading it[/bold]\n\n"
    "One line of FILE is one pair. Rows and columns are clustered together; how many clusters there are is "
    "part of the answer, and one block means that the two do not inform about each other."
)


@with_reading_options
def cocluster(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Pairs: .csv, .tsv or .parquet, or a pattern of several.")
    ],
    rows: Annotated[
        str | None, typer.Option("--rows", "-r", metavar="COLUMN", help="Column whose values are the rows.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", "-c", metavar="COLUMN", help="Column whose values are the columns."),
    ] = None,
    counts: Annotated[
        str | None, typer.Option("--counts", metavar="COLUMN", help="How often each pair occurs.")
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters", metavar="ROWSxCOLUMNS", help="Merge down to at most so many clusters, as in 10x8."
        ),
    ] = None,
    row_names: Annotated[
        Path | None,
        typer.Option(
            "--row-names",
            metavar="FILE",
            help="Names of the rows: two columns, id and name; shown on the page and in --labels.",
        ),
    ] = None,
    column_names: Annotated[
        Path | None,
        typer.Option("--column-names", metavar="FILE", help="Names of the columns, as in --row-names."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PAGE", help="The page; FILE-coclusters.html by default."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", "-l", metavar="PATH", help="Cluster of every value: .csv or .parquet."),
    ] = None,
    raw: Annotated[bool, raw_option("--raw", "--raw-labels")] = False,
    json_output: Annotated[
        Path | None, typer.Option("--json", metavar="PATH", help="Write the whole model as JSON as well.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop the search after so long.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory to use, for files that DuckDB counts.")
    ] = "4GB",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the search.")] = 0,
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for one per core.")] = -1,
    reading: Any = None,
    progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Show what is done.")] = True,
) -> None:
    """Cluster two columns of values together: which go with which, and how surely."""
    started = time.monotonic()
    if n_jobs == 0:
        raise stop("--n-jobs must be at least 1, or -1 for all cores; got 0.", WRONG_COMMAND)
    if time_limit is not None and time_limit < 0:
        raise stop(f"--time-limit must not be negative; got {time_limit:g}.", WRONG_COMMAND)
    check_kind("--labels", labels)
    page = output or Path(f"{re.sub('[*?[]', '', file.stem) or 'pairs'}-coclusters.html")
    check_outputs((file, row_names, column_names), (page, labels, json_output))
    most = _most_clusters(clusters)
    named = [None if path is None else _read_names(path) for path in (row_names, column_names)]
    source = _source(file, reading, memory, n_jobs)
    if source is None:
        table = read(file, **reading)
        names = _names(list(table.names), rows, columns, counts)
        pairs: Any = type(table)(tuple(table[name] for name in names if name is not None), table.n_rows)
    else:
        names, pairs = _names([column.name for column in source.columns], rows, columns, counts), source

    from damier.deploy.json import dumps
    from damier.report import render_coclustering, summarize_coclustering
    from damier.report.made import how_made

    with data_problems(), _shown(progress) as show:
        found, ended = _search(pairs, names, memory, time_limit, seed, n_jobs, show)
    console = Console()
    model = found.simplify(*most)
    if model.cells.shape != found.cells.shape:
        before = " x ".join(map(str, found.cells.shape))
        kept = " x ".join(map(str, model.cells.shape))
        console.print(
            f"{before} clusters merged to {kept}, which keep {model.information:.0%} of the information."
        )
    saved, model = model, _with_names(model, named)
    for axis in ("rows", "columns"):
        console.print(_clusters_table(model, axis))
    if ended != "complete":
        console.print(f"The search ended early ({ended}): this is the best found so far.", style="yellow")
    made = how_made(typed_command(context), time.monotonic() - started)
    write(page, render_coclustering(summarize_coclustering(model, printable(file.name)), made=made))
    written = Text("\nPage written to ").append(printable(page), style="bold")
    if labels is not None:
        with data_problems(), writing(labels):
            _write_labels(labels, saved, named, raw=raw)
        written.append(", labels to ").append(printable(labels), style="bold")
    if json_output is not None:
        write(json_output, dumps(saved))
        written.append(", model to ").append(printable(json_output), style="bold")
    console.print(written, soft_wrap=True)


def _search(
    pairs: Any,
    names: Sequence[str | None],
    memory: str,
    time_limit: float | None,
    seed: int,
    n_jobs: int,
    progress: ProgressCallback | None,
) -> tuple[CoclusteringModel, str]:
    """Do what `damier.Coclustering` does, without scikit-learn, and say how the search ended."""
    import numpy as np

    from damier.fit.coclusters import fit_coclustering
    from damier.intake import Table
    from damier.intake.counts import count_pairs
    from damier.intake.engines.source import memory_bytes, read_pairs
    from damier.search.run import Run, count_threads

    if isinstance(pairs, Table):
        if pairs.n_rows == 0:
            raise ValueError("the table has no rows")
        counts, sides = count_pairs(pairs, names[2])
    else:
        counts, sides = read_pairs(pairs, [str(name) for name in names[:2]], names[2], memory_bytes(memory))
    run = Run(count_threads(n_jobs), time_limit, progress)
    # The seed that Coclustering(random_state=seed) searches with.
    drawn = int(np.random.RandomState(seed).randint(2**31 - 1))
    model = run.call(fit_coclustering, counts, sides, names[2], seed=drawn, effort=None, run=run)
    return model, run.ended


def _source(file: Path, reading: Any, memory: str, n_jobs: int) -> Source | None:
    """Open files that DuckDB is to count: those of a pattern, and large Parquet; None for any other."""
    from damier.intake.engines.source import memory_bytes, open_source
    from damier.search.run import count_threads

    several = not file.exists() and bool(glob.glob(str(file), recursive=True))
    large = file.suffix.lower() in (".parquet", ".pq") and file.is_file() and file.stat().st_size > _LARGE
    if not (several or large):
        return None
    given = [name for name, value in reading.items() if value and name != "header"]
    if given or not reading.get("header", True):
        if not several:
            return None
        option = given[0] if given else "no-header"
        raise stop(f"--{option} is for one file: write the columns to be read as one first.", WRONG_COMMAND)
    with data_problems():
        limit = max(memory_bytes(memory) // 2, 1 << 28)
        return open_source(str(file), memory_limit=limit, threads=count_threads(n_jobs))


def _names(
    held: list[str], rows: str | None, columns: str | None, counts: str | None
) -> tuple[str, str, str | None]:
    """Find the columns of rows, columns and counts; a table of two needs no names."""
    counted = None if counts is None else column_name(held, counts)
    left = [name for name in held if name != counted]
    if rows is None and columns is None and len(left) == 2:
        return left[0], left[1], counted
    if rows is None or columns is None:
        raise stop(f"Name the two columns with --rows and --columns, from {listed(left)}.", WRONG_COMMAND)
    first, second = column_name(held, rows), column_name(held, columns)
    if len({first, second, counted}) < 3:
        raise stop("--rows, --columns and --counts must name different columns.", WRONG_COMMAND)
    return first, second, counted


def _clusters_table(model: CoclusteringModel, axis: Any, most: int = 20) -> RichTable:
    """Clusters of an axis for the terminal, those that inform most about the other axis first."""
    side = model.axis(axis)
    clusters = model.clusters(axis, n_typical=8, backend="dict")
    shown = sorted(clusters["cluster"], key=lambda c: -clusters["information"][c])[:most]
    more = f", the {most} that inform most" if side.n_clusters > most else ""
    # Text, for a name from the data is not markup.
    title = Text(f"{side.n_clusters:,} clusters of {printable(side.name)}{more}")
    table = RichTable(title=title, title_justify="left")
    for name in ("cluster", "values", "instances"):
        table.add_column(name, justify="right", min_width=len(name))
    table.add_column("most typical", overflow="ellipsis", no_wrap=True)
    for c in shown:
        numbers = (f"{clusters['values'][c]:,}", f"{clusters['count'][c]:,}")
        table.add_row(str(c), *numbers, Text(printable(clusters["typical_values"][c])))
    return table


def _most_clusters(clusters: str | None) -> tuple[int | None, int | None]:
    """Read how many clusters of rows and columns there may be."""
    if clusters is None:
        return None, None
    numbers = clusters.lower().split("x")
    if len(numbers) != 2 or not all(n.isdecimal() and int(n) > 0 for n in numbers):
        raise stop(
            f"--clusters must be two whole numbers with an x between, as in 10x8; got {clusters!r}.",
            WRONG_COMMAND,
        )
    return int(numbers[0]), int(numbers[1])


def _read_names(path: Path) -> Names:
    """Read a file of two columns, id and name."""
    from damier.intake import as_categorical

    table = read(path, quiet=True)
    if table.n_columns != 2:
        raise stop(
            f"{str(path)!r} must have two columns, id and name; it has {table.n_columns}.", WRONG_COMMAND
        )
    table = read(path, quiet=True, categorical=joined(table.names))
    ids, names = (as_categorical(column) for column in table)
    return {
        str(ids.categories[i]): str(names.categories[n])
        for i, n in zip(ids.codes.tolist(), names.codes.tolist(), strict=True)
        if names.categories[n] is not None
    }


def _with_names(model: CoclusteringModel, named: Sequence[Names | None]) -> CoclusteringModel:
    """Show values under their names; two values of one name keep their ids in brackets."""
    sides = []
    for side, names in zip((model.rows, model.columns), named, strict=True):
        if names is None or side.values is None:
            sides.append(side)
            continue
        shown = [names.get(str(value), value) for value in side.values]
        again = Counter(map(str, shown))
        values = tuple(
            f"{name} ({value})" if again[str(name)] > 1 and name != value else name
            for name, value in zip(shown, side.values, strict=True)
        )
        sides.append(replace(side, values=values))
    return replace(model, rows=sides[0], columns=sides[1])


def _write_labels(path: Path, model: CoclusteringModel, named: Sequence[Names | None], *, raw: bool) -> None:
    """Write one line per value of either axis."""
    columns: dict[str, list[Any]] = {"axis": [], "value": [], "cluster": [], "count": [], "typicality": []}
    if any(names is not None for names in named):
        columns["name"] = [
            (names or {}).get(str(side.value(v)))
            for side, names in zip((model.rows, model.columns), named, strict=True)
            for v in range(len(side.labels))
        ]
    for side in (model.rows, model.columns):
        for v, cluster in enumerate(side.labels.tolist()):
            value = side.value(v)
            columns["axis"].append(side.name)
            columns["value"].append(None if value is None else str(value))
            columns["cluster"].append(cluster)
            columns["count"].append(int(side.totals[v]))
            columns["typicality"].append(float(side.typicality[v]))
    write_table(path, columns, raw=raw)


@contextmanager
def _shown(progress: bool) -> Iterator[ProgressCallback | None]:
    """Show what the search reports, if the terminal is one."""
    console = Console(stderr=True)
    if not (progress and console.is_terminal):
        yield None
        return
    with console.status("Getting ready (some seconds the first time)") as status:
        yield lambda state: status.update(
            Text(f"{printable(state.text)}, cost {state.cost:,.0f} (Ctrl-C keeps the best so far)")
        )
