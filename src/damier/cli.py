"""The command line: ``damier report FILE --target COLUMN``.

Exit codes: 0 when done, 1 when the data cannot be reported on, 2 when the command asks for something that is
not there. An error is one sentence that says what to do, never a traceback.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from damier import __version__

if TYPE_CHECKING:
    from damier.intake import Table, Target
    from damier.report.summary import Summary

WRONG_DATA, WRONG_COMMAND = 1, 2

app = typer.Typer(
    name="damier",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Partitions chosen by a criterion, not by tuning.\n\n"
    "[bold]Try it[/bold], no data needed:   [cyan]damier report --sample[/cyan]\n\n"
    "[bold]Your own table[/bold]:           [cyan]damier report customers.csv --target churn[/cyan]",
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
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for one a core.")] = -1,
    progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")] = True,
) -> None:
    """Tell which columns inform a target and how: a table here, and a page that opens anywhere."""
    if n_jobs == 0:
        raise _stop("--n-jobs 0 is no number of threads: give 1 or more, or -1 for one a core", WRONG_COMMAND)
    if sample:
        if file is not None:
            raise _stop("give a FILE or --sample, not both", WRONG_COMMAND)
        table, name, target = _sample(target)
        page = output or Path("sample-report.html")
    else:
        if file is None:
            raise _stop("which table? Give a FILE, or --sample to try without one", WRONG_COMMAND)
        table, name = _read(file), file.name
        page = output or Path(f"{file.stem}-report.html")
    column = _target_name(table, target)
    for path in (page, json_output):
        _check_writable(path)

    summary = _summarize(table, column, name, n_jobs, progress)

    from damier.report import render_page, variables_table

    console = Console()
    console.print(variables_table(summary))
    hidden = len(summary["variables"]) - 40
    if hidden > 0:
        console.print(f"... and {hidden:,} more on the page", style="dim")
    _write(page, render_page(summary))
    told = Text("\nPage written to ").append(str(page), style="bold")
    if json_output is not None:
        _write(json_output, json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
        told.append(", numbers to ").append(str(json_output), style="bold")
    console.print(told, soft_wrap=True)


def _sample(target: str | None) -> tuple[Table, str, str]:
    from damier.intake import read_table
    from damier.intake.sample import SAMPLE_TARGET, sample_columns

    return read_table(sample_columns()), "customers (generated sample)", target or SAMPLE_TARGET


def _read(file: Path) -> Table:
    from damier.intake import read_file

    if not file.exists():
        raise _stop(f"no file {str(file)!r}{_meant(file)}", WRONG_COMMAND)
    if file.is_dir():
        raise _stop(f"{str(file)!r} is a folder: name a .csv, .tsv or .parquet file in it", WRONG_COMMAND)
    with _data_problems(), Console(stderr=True).status("Reading"):
        return read_file(file)


def _meant(file: Path) -> str:
    """Name the files beside it that look like the one that is not there."""
    folder = file.parent
    if not folder.is_dir():
        return f": there is no folder {str(folder)!r} either"
    near = difflib.get_close_matches(file.name, sorted(p.name for p in folder.iterdir()), n=3)
    return f"; did you mean {_listed(near)}?" if near else ": check the name"


def _target_name(table: Table, target: str | None) -> str:
    if target is None:
        raise _stop(
            f"which column is to be explained? Add --target with one of {_listed(table.names)}", WRONG_COMMAND
        )
    if target in table.names:
        return target
    lowered = {name.lower().strip(): name for name in table.names}
    near = [lowered[match] for match in difflib.get_close_matches(target.lower().strip(), lowered, n=5)]
    hint = f"did you mean {_listed(near)}?" if near else f"the columns are {_listed(table.names)}"
    raise _stop(f"no column {target!r}; {hint}", WRONG_COMMAND)


def _listed(names: list[str] | tuple[str, ...], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} ... ({len(names):,} in all)"


def _summarize(table: Table, column: str, name: str, n_jobs: int, progress: bool) -> Summary:
    from damier.report import summarize

    with _data_problems():
        target = _target(table, column)
        inputs = table.drop(column)
        if inputs.n_columns == 0:
            raise ValueError(f"the table has no column beside the target {column!r}")
        with _progress(progress, inputs.n_columns) as advance:
            from damier.estimators._threads import map_in_threads
            from damier.estimators._univariate import partition_column

            search = partial(partition_column, target=target, short_bounds=True)
            found = map_in_threads(search, inputs.columns, n_jobs, advance)
        return summarize(
            {partition.name: partition for partition in found},
            dataset=name,
            target=column,
            missing={c.name: c.n_missing for c in inputs},
        )


def _target(table: Table, name: str) -> Target:
    import numpy as np

    from damier.intake import NumericColumn, read_target

    column = table[name]
    if isinstance(column, NumericColumn):
        labels = column.values
        if column.kind == "number" and np.isfinite(labels).all() and (labels == np.floor(labels)).all():
            labels = labels.astype(np.int64)  # 0 and 1, not 0.0 and 1.0
    else:
        labels = np.array(column.categories, dtype=object)[column.codes]
    target = read_target(labels, name=repr(name))
    if target.n_classes < 2:
        raise ValueError(f"the target {name!r} is constant: every row holds {target.classes[0]!r}")
    return target


@contextmanager
def _progress(wanted: bool, total: int) -> Iterator[Callable[[int, int], None] | None]:
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
        yield lambda done, _: bar.update(task, completed=done, description="Partitioning")


@contextmanager
def _data_problems() -> Iterator[None]:
    """Turn what the library says of the data into one sentence."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise _stop(str(error), WRONG_DATA) from None
    except MemoryError:
        raise _stop("the table does not fit into memory", WRONG_DATA) from None


def _check_writable(path: Path | None) -> None:
    """Tell before the work, not after it, that a page has nowhere to go."""
    if path is None:
        return
    if path.is_dir():
        raise _stop(f"{str(path)!r} is a folder: name a file in it", WRONG_COMMAND)
    if not path.parent.is_dir():
        raise _stop(f"there is no folder {str(path.parent)!r} to write {path.name!r} into", WRONG_COMMAND)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise _stop(f"cannot write {str(path)!r}: {error.strerror}", WRONG_COMMAND) from None


def _stop(message: str, code: int) -> typer.Exit:
    """Say what is wrong; the caller raises what is returned."""
    Console(stderr=True).print(
        Text("Error: ", style="bold red").append(message, style="not bold"), soft_wrap=True
    )
    return typer.Exit(code)
