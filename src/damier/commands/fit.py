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
    show_progress,
    stop,
    writing,
)
from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier import NaiveBayesClassifier, NaiveBayesRegressor

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
        typer.Option(help="What the target is: classes, or a number. auto: fractional numbers are one."),
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
        from damier import NaiveBayesClassifier, NaiveBayesRegressor
        from damier.estimators._sources import open_training
        from damier.search.run import count_threads

        warnings.simplefilter("always", UserWarning)
        opened = open_training(files, target, weights, memory_limit=memory, threads=count_threads(threads))
        assert opened is not None
        kind = NaiveBayesRegressor if opened.is_number(target_type) else NaiveBayesClassifier
        model = kind(memory_limit=memory, n_jobs=threads)
        with show_progress(progress)("Counting", 0) as callback:
            model.fit(opened, target, sample_weight=weights, progress=callback)
    note([str(warning.message) for warning in said if warning.category is UserWarning])
    from damier.deploy import save

    with writing(output):
        save(model.model_, output)
    _print(model, output)


def _print(model: NaiveBayesClassifier | NaiveBayesRegressor, output: Path) -> None:
    """Say what was found, and where it went."""
    console = Console()
    use = model.source_
    assert use is not None
    levels = sorted(model.levels_.items(), key=lambda held: -held[1])
    for name, level in levels[:_SHOWN]:
        parts = model.partitions_[name].n_parts
        console.print(Text(f"  {level:7.4f}  {parts:4d} parts  {printable(name)}"), soft_wrap=True)
    if len(levels) > _SHOWN:
        console.print(f"  ... and {len(levels) - _SHOWN:,} more columns", style="dim")
    how = "read into memory" if use.collected else f"counted by {use.engine} in {use.scans} scans"
    if use.sample_rows is not None and use.sample_rows < use.rows:
        how += f", columns weighted on {use.sample_rows:,} of them"
    console.print(
        Text(f"{use.rows:,} rows {how}, {use.seconds:,.0f} seconds: written to ").append(
            printable(output), style="bold"
        ),
        soft_wrap=True,
    )
