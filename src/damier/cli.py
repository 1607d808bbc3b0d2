"""The command line: ``damier report FILE --target COLUMN``."""

from __future__ import annotations

import typer

app = typer.Typer()
