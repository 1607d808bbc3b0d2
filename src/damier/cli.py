"""The command line: ``damier report``, ``fit``, ``predict``, ``cocluster``, ``sql`` and ``warm``."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from damier.commands.common import announce_compiling
from damier.version import __version__

# What each does, in its first line of help. Its module is loaded when it is called, not to be listed.
COMMANDS = {
    "report": "Show which columns inform a target and how: a table here, and a page that opens anywhere.",
    "fit": "Fit a naive Bayes to files that need not fit into memory, and save it for predict and sql.",
    "predict": "Apply a saved model to the rows of a file: "
    "classes, probabilities, reasons, or encoded columns.",
    "cocluster": "Cluster two columns of values together: which go with which, and how surely.",
    "sql": "Write a saved model as SQL, to score a table where it lives.",
    "warm": "Compile all functions that are not compiled yet, for commands and fits to start at once.",
}
_HELP = {"help_option_names": ["-h", "--help"]}


def load_command(name: str) -> Any:
    """Build a command from its module."""
    module = importlib.import_module(f"damier.commands.{name}")
    alone = typer.Typer(
        add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, context_settings=_HELP
    )
    alone.command(name, epilog=module.EPILOG)(getattr(module, name))
    return typer.main.get_command(alone)


class _Commands(TyperGroup):
    """The commands; what is listed stands for one that is built when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called."""
        name, command, rest = super().resolve_command(ctx, args)
        announce_compiling()
        return name, None if command is None else load_command(str(command.name)), rest


app = typer.Typer(
    name="damier",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=_HELP,
    help="Partitions chosen by a criterion, not by tuning.\n\n"
    "[bold]Try it[/bold], no data needed:   [cyan]damier report --sample[/cyan]\n\n"
    "[bold]Your own table[/bold]:           [cyan]damier report customers.csv --target churn[/cyan]\n\n"
    "[bold]Pairs[/bold]:   [cyan]damier cocluster sales.csv --rows customer --columns product[/cyan]",
)


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
