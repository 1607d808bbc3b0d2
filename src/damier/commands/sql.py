"""``damier sql MODEL -d DIALECT --table TABLE``: a saved model as a query."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from damier.commands.common import WRONG_COMMAND, WRONG_DATA, check_outputs, data_problems, note, stop, write
from damier.intake.printable import printable

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier sql model.json -d postgres --table visits --keep id[/cyan]   probabilities of each row\n\n"
    "[cyan]damier sql model.json -d duckdb --table visits --what class -o score.sql[/cyan]\n\n"
    "[cyan]damier sql prices.json -d duckdb --table houses --what quantiles --quantiles 0.1,0.9[/cyan]\n\n"
    "[cyan]damier sql model.json -d snowflake --table visits --create view SCORES[/cyan]\n\n"
    "[cyan]damier sql model.json -d bigquery --table visits --format dbt -o models/scores.sql[/cyan]\n\n"
    "Needs [cyan]pip install 'damier\\[sql]'[/cyan]. Names are written as stored, quoted."
)


def sql(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved as JSON.")],
    dialect: Annotated[
        str, typer.Option("--dialect", "-d", metavar="NAME", help="duckdb, postgres, snowflake, ...")
    ],
    table: Annotated[
        str, typer.Option("--table", metavar="TABLE", help="Table to score: name, schema.name.")
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="A column to return as it is; may be repeated."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--what",
            metavar="WHAT",
            help="proba, class, mean, median, quantiles, parts, onehot, evidence, rule, cell, cluster; "
            "default: what the model gives.",
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option("--quantiles", metavar="LEVELS", help="Of --what quantiles; default: 0.05,0.5,0.95."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="COLUMN=TYPE", help="What a column holds, such as when=timestamptz."),
    ] = None,
    lookup: Annotated[
        str, typer.Option("--lookup", metavar="HOW", help="Values of categories: inline, or in a table.")
    ] = "inline",
    create: Annotated[
        tuple[str, str] | None,
        typer.Option("--create", metavar="KIND NAME", help="view NAME or table NAME: make one of the query."),
    ] = None,
    template: Annotated[
        str,
        typer.Option("--format", metavar="FORM", help="sql, or dbt for a model file with ref() or source()."),
    ] = "sql",
    line: Annotated[
        str | None,
        typer.Option("--note", metavar="TEXT", help="A line for the comment; default: file and date."),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of the screen."),
    ] = None,
) -> None:
    """Write a saved model as SQL, to score a table where it lives."""
    check_outputs((model,), (path,))
    if not model.is_file():
        raise stop(f"no file {str(model)!r}: name a model saved by damier.deploy.save", WRONG_COMMAND)
    held = dict(_typed(one) for one in types or ())

    from damier.deploy import load, to_sql

    with data_problems():
        loaded = load(model)
    options: dict[str, Any] = {"output": output, "lookup": lookup, "create": create, "template": template}
    if quantiles is not None:
        options["quantiles"] = _levels(quantiles)
    if line is None:
        line = f"Written from {model.name} on {datetime.date.today().isoformat()}."
    try:
        text = to_sql(loaded, dialect, table, keep=keep or (), types=held, note=line, **options)
    except (ValueError, TypeError, ImportError) as error:
        raise stop(str(error), WRONG_DATA) from None
    note([said.removeprefix("-- ") for said in text.splitlines()[:4] if " bytes, above " in said])
    if path is None:
        if sys.stdout.isatty() and any(printable(one) != one for one in text.splitlines()):
            raise stop(
                "the query holds characters that a terminal obeys: write it to a file, with -o", WRONG_DATA
            )
        typer.echo(text, color=True)  # as it is: names may hold what looks like a colour
    else:
        write(path, text + "\n")


def _levels(text: str) -> list[float]:
    try:
        return [float(level) for level in text.split(",")]
    except ValueError:
        raise stop(f"--quantiles must be numbers, such as 0.1,0.9; got {text!r}.", WRONG_COMMAND) from None


def _typed(text: str) -> tuple[str, str]:
    name, equal, held = text.rpartition("=")
    if not equal or not name:
        raise stop(f"--type must be COLUMN=TYPE, such as when=timestamptz; got {text!r}.", WRONG_COMMAND)
    return name, held
