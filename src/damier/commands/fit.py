"""``damier fit FILES -t TARGET -o MODEL``: a model of files of any size."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from damier.commands.common import (
    WRONG_COMMAND,
    check_outputs,
    data_problems,
    note,
    note_number,
    show_progress,
    stop,
    writing,
)
from damier.intake.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from damier.fit.sources import SourceUse
    from damier.fit.training import Opened
    from damier.models import NaiveBayes, NaiveBayesRegression
    from damier.search.run import Run

    _FitModel = Callable[[Opened, Run], tuple[NaiveBayes | NaiveBayesRegression, SourceUse]]

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier fit 'visits/*.parquet' -t clicked -o model.json[/cyan]   of files of any size\n\n"
    "[cyan]damier predict model.json 'new/*.parquet' -o scored/[/cyan]   applies it\n\n"
    "[cyan]damier sql model.json -d postgres --table visits --keep id[/cyan]   writes it as SQL"
)

_SHOWN = 10

TargetType = Literal["auto", "classes", "number"]


def fit(
    files: Annotated[
        str,
        typer.Argument(metavar="FILES", help="Parquet or CSV: a file, or a pattern of several in quotes."),
    ],
    target: Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to explain.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Where the model goes: .json.")
    ],
    target_type: Annotated[
        TargetType,
        typer.Option(help="auto takes fractions, and whole numbers of very many values, for a number."),
    ] = "auto",
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="COLUMN", help="The column that says how often each row counts."),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            "--memory", metavar="SIZE", help="Memory to use; a table of up to a quarter of it is read whole."
        ),
    ] = "4GB",
    threads: Annotated[int, typer.Option("--threads", help="Threads; -1 for one per core.")] = -1,
    progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")] = True,
) -> None:
    """Fit a naive Bayes to files that need not fit into memory, and save it for predict and sql."""
    if threads == 0:
        raise stop("--threads must be at least 1, or -1 for all cores; got 0", WRONG_COMMAND)
    if output.suffix.lower() != ".json":
        raise stop(f"--output must end in .json; got {str(output)!r}", WRONG_COMMAND)
    check_outputs((Path(files),), (output,))
    with data_problems(), warnings.catch_warnings(record=True) as said:
        from damier.fit.training import open_training
        from damier.search.run import Run, count_threads

        warnings.simplefilter("always", UserWarning)
        n_threads = count_threads(threads)
        opened = open_training(files, target, weights, memory_limit=memory, threads=n_threads)
        assert opened is not None
        with show_progress(progress)("Counting", 0) as callback:
            run = Run(n_threads, None, callback)
            number = run.call(opened.is_number, target_type, many=True, run=run)
            fit_model: _FitModel = _fit_number if number else _fit_classes
            model, use = run.call(fit_model, opened, run)
    if number and target_type == "auto":
        note_number(target)
    note([str(warning.message) for warning in said if warning.category is UserWarning])
    from damier.deploy import save

    with writing(output):
        save(model, output)
    _print(model, use, output)


def _fit_classes(opened: Opened, run: Run) -> tuple[NaiveBayes, SourceUse]:
    """Fit a naive Bayes to classes: to all rows where they fit into memory, else to counts of them."""
    from damier.fit.naive_bayes import fit_naive_bayes
    from damier.fit.sources import fit_source_naive_bayes
    from damier.fit.training import require_two_classes

    if opened.fits:
        rows = opened.classes()
        model = fit_naive_bayes(rows.table, rows.target, rows.weights, run=run)
        return model, opened.use(collected=True)
    require_two_classes(opened.labels, opened.target)
    model, fitted, sample_rows = fit_source_naive_bayes(opened.source, opened.labels, run=run)
    return model, opened.use(left_out=fitted.left_out, sample_rows=sample_rows)


def _fit_number(opened: Opened, run: Run) -> tuple[NaiveBayesRegression, SourceUse]:
    """Fit a naive Bayes to a number, in the same way."""
    from damier.fit.naive_bayes_regression import fit_naive_bayes_regression
    from damier.fit.source_numbers import fit_source_regression
    from damier.fit.source_target import read_number

    if opened.fits:
        rows = opened.numbers()
        model = fit_naive_bayes_regression(rows.table, rows.target, rows.weights, run=run)
        return model, opened.use(collected=True)
    number = read_number(opened.source, opened.target, opened.weight, run)
    model, fitted, sample_rows = fit_source_regression(number, memory=opened.memory, run=run)
    return model, opened.use(left_out=fitted.left_out, sample_rows=sample_rows)


def _print(model: NaiveBayes | NaiveBayesRegression, use: SourceUse, output: Path) -> None:
    """Say what was found, and where it went."""
    console = Console()
    found = sorted((variable.partition for variable in model.variables), key=lambda held: -held.level)
    for held in found[:_SHOWN]:
        parts = "parts" if held.n_parts > 1 else "part "
        line = f"  {held.level:7.4f}  {held.n_parts:4d} {parts}  {printable(held.name)}"
        console.print(Text(line), soft_wrap=True)
    if len(found) > _SHOWN:
        console.print(f"  ... and {len(found) - _SHOWN:,} more columns", style="dim")
    how = "read into memory" if use.collected else f"counted by {use.engine} in {use.scans} scans"
    if use.sample_rows is not None and use.sample_rows < use.rows:
        how += f", columns weighted on {use.sample_rows:,} of them"
    console.print(
        Text(f"{use.rows:,} rows {how}, {use.seconds:,.0f} seconds: written to ").append(
            printable(output), style="bold"
        ),
        soft_wrap=True,
    )
