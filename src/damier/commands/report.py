"""``damier report``: which columns inform a target, as a table here and as a page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from damier.commands.common import (
    WRONG_COMMAND,
    check_outputs,
    column_name,
    data_problems,
    listed,
    note,
    note_number,
    read,
    show_progress,
    stop,
    typed_command,
    with_reading_options,
    write,
    writing,
)
from damier.commands.large import LargeTable, large_table
from damier.commands.tables import RawOption, check_kind, write_table
from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier.intake import NumericTarget, Table, Target
    from damier.models import NaiveBayes, NaiveBayesRegression
    from damier.report.summary import Summary

LabelStyle = Literal["plain", "brackets"]
MissingTarget = Literal["drop", "class"]
TargetType = Literal["auto", "classes", "number"]
EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier report --sample[/cyan]   a generated table of customers who leave or stay\n\n"
    "[cyan]damier report customers.csv --target churn[/cyan]   writes customers-report.html\n\n"
    "[cyan]damier report visits.parquet -t clicked -o page.html[/cyan]   names the page\n\n"
    "[cyan]damier report visits.tsv -t clicked --json report.json[/cyan]   the same numbers for a program\n\n"
    "[cyan]damier report visits.csv -t clicked --save-model model.json[/cyan]   for damier predict\n\n"
    "[cyan]damier report diamonds.csv -t price[/cyan]   a target that is a number\n\n"
    "[bold]Reading it[/bold]\n\n"
    "The level of a variable is the share of the cost of describing the target that it saves: 0 is nothing, "
    "1 is all. Parts are intervals of a number or groups of values; one part means that the variable alone "
    "does not inform the target."
)


@with_reading_options
def report(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A table: .csv, .tsv or .parquet; a pattern in quotes for several files.",
            show_default=False,
        ),
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
    save_model: Annotated[
        Path | None,
        typer.Option(
            "--save-model",
            metavar="PATH",
            help="Write the averaged naive Bayes of all columns as JSON, for damier predict.",
        ),
    ] = None,
    parts: Annotated[
        Path | None,
        typer.Option("--parts", metavar="PATH", help="Write all parts of all columns: .csv or .parquet."),
    ] = None,
    raw: RawOption = False,
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
            help="Time for the search of a grid over several columns and of pairs; 0: none.",
        ),
    ] = 10.0,
    labels: Annotated[
        LabelStyle, typer.Option("--labels", help="Intervals as 12 < x ≤ 26, or as ]12, 26].")
    ] = "plain",
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Threads; -1 for one per core.")] = -1,
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory to use: of a table above a quarter of it, rows are counted and a sample is read.",
        ),
    ] = "4GB",
    reading: Any = None,
    missing_target: Annotated[
        MissingTarget,
        typer.Option("--missing-target", help="Rows without a target: leave them out, or make them a class."),
    ] = "drop",
    target_type: Annotated[
        TargetType,
        typer.Option(
            "--target-type",
            help="auto takes fractions, and whole numbers of very many values, for a number.",
        ),
    ] = "auto",
    progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Show a progress bar.")] = True,
) -> None:
    """Show which columns inform a target and how: a table here, and a page that opens anywhere."""
    started = time.monotonic()
    if n_jobs == 0:
        raise stop("--n-jobs must be at least 1, or -1 for all cores; got 0", WRONG_COMMAND)
    check_kind("--parts", parts)
    others = (json_output, save_model, parts)
    large: LargeTable | None = None
    if sample:
        if file is not None:
            raise stop("give a FILE or --sample, not both", WRONG_COMMAND)
        page = output or Path("sample-report.html")
        check_outputs((), (page, *others))
        table, name, target = _sample(target)
    else:
        if file is None:
            raise stop("which table? Give a FILE, or --sample to try without one", WRONG_COMMAND)
        page = output or Path(f"{file.stem.strip('*') or 'table'}-report.html")
        check_outputs((file,), (page, *others))
        name = printable(file.name)
        with data_problems():
            large = large_table(file, target, target_type, memory, n_jobs, show_progress(progress), reading)
        table = read(file, **reading) if large is None else large.table

    from damier.intake import NumericTarget

    if large is None:
        column = _target_name(table, target)
        table = _labeled(table, column, missing_target)
    with data_problems():
        explained: Target | NumericTarget
        if large is None:
            explained, inputs = _target(table, column, target_type), table.drop(column)
        else:
            explained, inputs, column = large.target, table, str(target)
        if inputs.n_columns == 0:
            raise ValueError(f"the table has no column beside the target {column!r}")
    if grid > 0 and not isinstance(explained, NumericTarget):
        from damier.commands.workload import compile_beside

        compile_beside()
    from damier.report import (
        analyze,
        analyze_number,
        classifier_line,
        grid_lines,
        regressor_line,
        remark_lines,
        render_page,
        variables_table,
        word_lines,
    )
    from damier.report.made import how_made
    from damier.search.run import count_threads

    console = Console()
    models: list[NaiveBayes | NaiveBayesRegression] = []

    def show_columns(summary: Summary) -> None:
        """Print the columns as soon as they are partitioned: the rest takes longer."""
        console.print(variables_table(summary))
        hidden = len(summary["variables"]) - 40
        if hidden > 0:
            console.print(f"... and {hidden:,} more on the page", style="dim")

    with data_problems():
        options: dict[str, Any] = {
            "dataset": name,
            "target_name": column,
            "labels": labels,
            "n_threads": count_threads(n_jobs),
            "keep_model": None if save_model is None else models.append,
            "keep_columns": show_columns,
            "show": show_progress(progress),
            "say": lambda text: Console(stderr=True).print(text, style="dim"),
        }
        if large is not None:
            options |= {"partitions_of_all": large.partitions, "missing": large.missing}
        if isinstance(explained, NumericTarget):
            if large is not None:
                options["distribution"] = large.distribution
            summary = analyze_number(inputs, explained, regressor=classifier, grid_seconds=grid, **options)
        else:
            summary = analyze(inputs, explained, classifier=classifier, grid_seconds=grid, **options)

    scores = classifier_line(summary) or regressor_line(summary)
    scored = [] if scores is None else [scores]
    for line in (*remark_lines(summary), *word_lines(summary), *scored, *grid_lines(summary)):
        console.print(line, soft_wrap=True)
    write(page, render_page(summary, made=how_made(typed_command(context), time.monotonic() - started)))
    written = Text("\nPage written to ").append(printable(page), style="bold")
    if json_output is not None:
        write(json_output, json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
        written.append(", numbers to ").append(printable(json_output), style="bold")
    if save_model is not None and models:
        from damier.deploy.json import dumps

        write(save_model, dumps(models[0]))
        written.append(", model to ").append(printable(save_model), style="bold")
    if parts is not None:
        with data_problems(), writing(parts):
            write_table(parts, _parts(summary), raw=raw)
        written.append(", parts to ").append(printable(parts), style="bold")
    console.print(written, soft_wrap=True)


def _parts(summary: Summary) -> dict[str, list[Any]]:
    """Return all parts of all columns as one table, the columns of highest level first."""
    from damier.models.codec import distinct_names

    of_number = summary["target"].get("type") == "number"
    rows = [
        [
            v["name"],
            k,
            part["label"],
            part["rows"],
            *([part["mean"], *part["quantiles"]] if of_number else part["counts"]),
            v["level"],
        ]
        for v in summary["variables"]
        for k, part in enumerate(v["table"])
    ]
    if of_number:
        held = ["mean", "minimum", "5%", "25%", "median", "75%", "95%", "maximum"]
    else:
        held = [f"rows {label}" for label in summary["target"]["classes"]]
    names = distinct_names(["variable", "part", "label", "rows", *held, "level"])
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _sample(target: str | None) -> tuple[Table, str, str]:
    from damier.datasets import SAMPLE_TARGET, sample_columns
    from damier.intake import read_table

    return read_table(sample_columns()), "customers (generated sample)", target or SAMPLE_TARGET


def _target_name(table: Table, target: str | None) -> str:
    if target is None:
        raise stop(
            f"which column is to be explained? Add --target with one of {listed(table.names)}", WRONG_COMMAND
        )
    return column_name(table, target)


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


def _target(table: Table, name: str, target_type: TargetType) -> Target | NumericTarget:
    """Read the target as what it is; where that is decided here for a number, say so."""
    import numpy as np

    from damier.intake import NumericColumn, NumericTarget
    from damier.intake.target import explored_target

    column = table[name]
    if isinstance(column, NumericColumn):
        labels = column.values
        if column.kind != "number":
            raise ValueError(f"the target {name!r} holds dates or times, not classes: write them as text")
        if (np.abs(labels) < 2.0**53).all() and (labels == np.floor(labels)).all():
            labels = labels.astype(np.int64)  # 0 and 1, not 0.0 and 1.0
    else:
        labels = np.array(column.categories, dtype=object)[column.codes]
    target = explored_target(labels, target_type, repr(name))
    if isinstance(target, NumericTarget):
        if target.n_distinct < 2:
            raise ValueError(f"the target {name!r} is constant: every row holds {target.distinct[0]:g}")
        if target_type == "auto":
            note_number(name, f": {target.n_distinct:,} values in {table.n_rows:,} rows")
    elif target.n_classes < 2:
        raise ValueError(f"the target {name!r} is constant: every row holds {target.classes.tolist()[0]!r}")
    return target
