"""The command line: ``damier report``, ``fit``, ``predict``, ``cocluster``, ``sql`` and ``warm``."""

from __future__ import annotations

from typing import Annotated

import typer

from damier.commands import cocluster, fit, predict, report, sql, warm
from damier.version import __version__

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
app.command(epilog=report.EPILOG)(report.report)
app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.EPILOG)(predict.predict)
app.command(epilog=cocluster.EXAMPLES)(cocluster.cocluster)
app.command(epilog=sql.EXAMPLES)(sql.sql)
app.command(epilog=warm.EXAMPLES)(warm.warm)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"damier {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold what all commands share."""
