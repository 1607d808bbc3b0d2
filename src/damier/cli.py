"""The command line: ``damier report FILE --target COLUMN``, ``damier cocluster FILE``.

Exit codes: 0 when done, 1 when the data cannot be reported on, 2 when the command asks for something that is
not there, 130 when Ctrl-C left nothing to show. An error is one sentence that says what to do, never a
traceback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from damier.commands.cocluster import EXAMPLES as COCLUSTER_EXAMPLES
from damier.commands.cocluster import cocluster
from damier.commands.common import (
    WRONG_COMMAND,
    CategoricalOption,
    DecimalOption,
    DropOption,
    EncodingOption,
    MissingOption,
    NoHeaderOption,
    NumericOption,
    OnlyOption,
    SeparatorOption,
    check_writable,
    column_name,
    data_problems,
    listed,
    note,
    read,
    stop,
    write,
)
from damier.version import __version__

if TYPE_CHECKING:
    from damier.intake import Table, Target
    from damier.models import Partition
    from damier.report.summary import Summary

MissingTarget = Literal["drop", "class"]
PAIRED_COLUMNS = 12
PAIRED_ROWS = 20_000

app = typer.Typer(
    name="damier",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Partitions chosen by a criterion, not by tuning.\n\n"
    "[bold]Try it[/bold], no data needed:   [cyan]damier report --sample[/cyan]\n\n"
    "[bold]Your own table[/bold]:           [cyan]damier report customers.csv --target churn[/cyan]\n\n"
    "[bold]Pairs[/bold]:   [cyan]damier cocluster sales.csv --rows customer --columns product[/cyan]",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"damier {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Hold what all commands share."""


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "[cyan]damier report --sample[/cyan]   a generated table of customers who leave or stay\n\n"
    "[cyan]damier report customers.csv --target churn[/cyan]   writes customers-report.html\n\n"
    "[cyan]damier report visits.parquet -t clicked -o page.html[/cyan]   names the page\n\n"
    "[cyan]damier report visits.tsv -t clicked --json report.json[/cyan]   the same numbers for a program\n\n"
    "[bold]Reading it[/bold]\n\n"
    "The level of a variable is the share of the cost of describing the target that it saves: 0 tells "
    "nothing, 1 tells all. Parts are intervals of a number or groups of values; one part means that the "
    "variable alone tells nothing."
)
def report(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A table: .csv, .tsv or .parquet.", show_default=False),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to explain.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PAGE", help="Where the page goes; FILE-report.html by default."
        ),
    ] = None,
    json_output: Annotated[
        Path | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON as well.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Report on a generated sample in place of a FILE.")
    ] = False,
    classifier: Annotated[
        bool, typer.Option("--classifier/--no-classifier", help="Score a naive Bayes on all the columns.")
    ] = True,
    grid: Annotated[
        float,
        typer.Option(
            "--grid",
            metavar="SECONDS",
            min=0,
            help="Time for the search of a grid over several columns; 0: none.",
        ),
    ] = 10.0,
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for one a core.")] = -1,
    missing: MissingOption = None,
    decimal: DecimalOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    categorical: CategoricalOption = None,
    numeric: NumericOption = None,
    drop: DropOption = None,
    only: OnlyOption = None,
    no_header: NoHeaderOption = False,
    missing_target: Annotated[
        MissingTarget,
        typer.Option("--missing-target", help="Rows without a target: leave them out, or make them a class."),
    ] = "drop",
    progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")] = True,
) -> None:
    """Tell which columns inform a target and how: a table here, and a page that opens anywhere."""
    if n_jobs == 0:
        raise stop("--n-jobs 0 is no number of threads: give 1 or more, or -1 for one a core", WRONG_COMMAND)
    if sample:
        if file is not None:
            raise stop("give a FILE or --sample, not both", WRONG_COMMAND)
        table, name, target = _sample(target)
        page = output or Path("sample-report.html")
    else:
        if file is None:
            raise stop("which table? Give a FILE, or --sample to try without one", WRONG_COMMAND)
        table = read(
            file,
            missing=missing,
            decimal=decimal,
            separator=separator,
            encoding=encoding,
            categorical=categorical,
            numeric=numeric,
            drop=drop,
            only=only,
            header=not no_header,
        )
        name = file.name
        page = output or Path(f"{file.stem}-report.html")
    column = _target_name(table, target)
    table = _labeled(table, column, missing_target)
    for path in (page, json_output):
        check_writable(path)

    summary = _summarize(table, column, name, n_jobs, progress, classifier, grid)

    from damier.report import classifier_line, grid_lines, render_page, variables_table

    console = Console()
    console.print(variables_table(summary))
    hidden = len(summary["variables"]) - 40
    if hidden > 0:
        console.print(f"... and {hidden:,} more on the page", style="dim")
    if (line := classifier_line(summary)) is not None:
        console.print(line, soft_wrap=True)
    for line in grid_lines(summary):
        console.print(line, soft_wrap=True)
    write(page, render_page(summary))
    told = Text("\nPage written to ").append(str(page), style="bold")
    if json_output is not None:
        write(json_output, json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
        told.append(", numbers to ").append(str(json_output), style="bold")
    console.print(told, soft_wrap=True)


def _sample(target: str | None) -> tuple[Table, str, str]:
    from damier.datasets import SAMPLE_TARGET, sample_columns
    from damier.intake import read_table

    return read_table(sample_columns()), "customers (generated sample)", target or SAMPLE_TARGET


@contextmanager
def _left_out_on_interrupt(what: str) -> Iterator[None]:
    """Let Ctrl-C end one part of the work and keep what was found before it."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"Stopped: the report goes without {what}.", style="dim")


def _target_name(table: Table, target: str | None) -> str:
    if target is None:
        raise stop(
            f"which column is to be explained? Add --target with one of {listed(table.names)}", WRONG_COMMAND
        )
    return column_name(table, target)


def _summarize(
    table: Table, column: str, name: str, n_jobs: int, progress: bool, classifier: bool, grid_seconds: float
) -> Summary:
    from damier.report import summarize

    with data_problems():
        target = _target(table, column)
        inputs = table.drop(column)
        if inputs.n_columns == 0:
            raise ValueError(f"the table has no column beside the target {column!r}")
        with _progress(progress, inputs.n_columns) as advance:
            from damier.fit.partitions import partition_column
            from damier.search.run import map_in_threads

            search = partial(partition_column, target=target, short_bounds=True)
            found = map_in_threads(search, inputs.columns, n_jobs, advance)
        levels = {partition.name: partition.level for partition in found}
        scores, grid, pairs = None, None, None
        if classifier:
            with _left_out_on_interrupt("the scores of a classifier"):
                scores = _classifier_scores(inputs, target, found, n_jobs, progress)
        if grid_seconds > 0 and inputs.n_columns > 1:
            with _left_out_on_interrupt("a grid and pairs"):
                grid, pairs = _grid_and_pairs(inputs, target, levels, n_jobs, progress, grid_seconds)
        return summarize(
            {partition.name: partition for partition in found},
            dataset=name,
            target=column,
            missing={c.name: c.n_missing for c in inputs},
            classifier=scores,
            grid=grid,
            pairs=pairs,
        )


def _grid_and_pairs(
    inputs: Table, target: Target, levels: dict[str, float], n_jobs: int, progress: bool, seconds: float
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Search for a grid over all columns, and for pairs among the columns of highest level."""
    import numpy as np

    from damier.fit.grids import fit_grid, fit_pairs
    from damier.intake import Table as Columns
    from damier.intake import Target as Classes
    from damier.report import summarize_grid, summarize_pairs
    from damier.search.run import Run, count_threads

    n_threads = count_threads(n_jobs)
    console = Console(stderr=True)
    with (
        console.status("Searching for a grid")
        if progress and console.is_terminal
        else nullcontext() as status
    ):

        def tell(state: Any) -> None:
            if status is not None:
                status.update(
                    f"Searching for a grid: cost {state.cost:.1f}, level {state.level:.4f}, "
                    f"{state.text}, {state.done} starts"
                )

        run = Run(n_threads, seconds, tell)
        grid = run.call(fit_grid, inputs, target, effort=4, run=run)
    # enough to show what interacts: pairs of a dozen columns, on a sample of the rows
    names = sorted(levels, key=lambda name: -levels[name])[:PAIRED_COLUMNS]
    rows = np.arange(inputs.n_rows)
    if inputs.n_rows > PAIRED_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(inputs.n_rows, PAIRED_ROWS, replace=False))
    if len(set(target.codes[rows].tolist())) < 2:
        return summarize_grid(grid), None  # so rare a class that the sample has none of it
    sample = Columns(tuple(inputs[name].take(rows) for name in names), len(rows))
    with _progress(progress, len(names) * (len(names) - 1) // 2, "Pairing") as advance:
        classes, codes = np.unique(target.codes[rows], return_inverse=True)
        sampled = Classes(codes.astype(np.int32), target.classes[classes])
        run = Run(n_threads, progress=advance)
        pairs = run.call(fit_pairs, sample, sampled, run=run)
    return summarize_grid(grid), summarize_pairs(pairs, names)


def _classifier_scores(
    inputs: Table, target: Target, partitions: list[Partition], n_jobs: int, progress: bool
) -> dict[str, Any] | None:
    from damier.fit.evaluation import cross_validated_scores
    from damier.search.run import Run, count_threads

    if inputs.n_rows < 2 * target.n_classes:
        return None  # hardly a class has a row to learn from and one to be judged by
    with _progress(progress, 5, "Cross-validating") as advance:
        run = Run(count_threads(n_jobs), progress=advance)
        return run.call(cross_validated_scores, inputs, target, partitions=partitions, run=run)


def _labeled(table: Table, name: str, missing_target: MissingTarget) -> Table:
    """Leave out the rows whose target is missing and say how many, or make them a class."""
    from dataclasses import replace

    import numpy as np

    from damier.intake import NumericColumn, as_categorical

    column = table[name]
    if not 0 < column.n_missing < table.n_rows:
        return table
    if missing_target == "class":
        coded = as_categorical(column)
        named = replace(coded, categories=("missing", *map(str, coded.categories[1:])))
        return replace(table, columns=tuple(named if c.name == name else c for c in table.columns))
    held = ~np.isnan(column.values) if isinstance(column, NumericColumn) else column.codes > 0
    count = f"{column.n_missing:,} of {table.n_rows:,} rows have no {name!r}"
    note([f"{count}: left out (--missing-target class keeps them)"])
    return table.take(held)


def _target(table: Table, name: str) -> Target:
    import numpy as np

    from damier.intake import NumericColumn, read_target

    column = table[name]
    if isinstance(column, NumericColumn):
        labels = column.values
        if column.kind != "number":
            raise ValueError(
                f"the target {name!r} holds dates or times: classes are wanted, write them as text"
            )
        if (np.abs(labels) < 2.0**53).all() and (labels == np.floor(labels)).all():
            labels = labels.astype(np.int64)  # 0 and 1, not 0.0 and 1.0
    else:
        labels = np.array(column.categories, dtype=object)[column.codes]
    target = read_target(labels, name=repr(name))
    if target.n_classes < 2:
        raise ValueError(f"the target {name!r} is constant: every row holds {target.classes.tolist()[0]!r}")
    return target


@contextmanager
def _progress(
    wanted: bool, total: int, doing: str = "Partitioning"
) -> Iterator[Callable[[Any], None] | None]:
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    said = TextColumn("{task.description}")
    with Progress(
        said, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        # Until the first variable is done, what takes the time is compiling.
        task = bar.add_task("Getting ready (some seconds the first time)", total=total)
        yield lambda state: bar.update(
            task, completed=state.done, total=state.total or None, description=doing
        )


app.command(epilog=COCLUSTER_EXAMPLES)(cocluster)
