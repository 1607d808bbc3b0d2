"""Tables as the commands write them: CSV that a spreadsheet opens safely, or Parquet."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from damier.commands.common import WRONG_COMMAND, stop

KINDS = (".csv", ".parquet", ".pq")


def raw_option(*flags: str) -> Any:
    """Return the option that leaves text in CSV files as it is."""
    what = "by default a ' goes before what a spreadsheet would run as a formula"
    return typer.Option(*flags, help=f"Write text as it is; {what}.")


RawOption = Annotated[bool, raw_option("--raw")]


def check_kind(option: str, path: Path | None) -> None:
    """Stop if a table is to be written in a format that is not known."""
    if path is not None and path.suffix.lower() not in KINDS:
        raise stop(f"{option} must be a .csv or .parquet file; got {path.name!r}.", WRONG_COMMAND)


def write_table(path: Path, columns: Mapping[str, Sequence[Any]], *, raw: bool = False) -> None:
    """Write a table whole or not at all, as the end of the file's name says.

    Parameters
    ----------
    path : Path
        ``.csv`` (numbers in full, read back they are the same; missing values as empty cells) or ``.parquet``
        (needs pyarrow or polars).
    columns : mapping of str to sequence
        Text, numbers, booleans and None.
    raw : bool, default=False
        In CSV, write text as it is even if a spreadsheet would take it for a formula.

    Raises
    ------
    ImportError
        If there is no library that writes Parquet.
    """
    from damier.intake.writing import write_bytes, write_csv

    if path.suffix.lower() == ".csv":
        write_csv(path, columns, raw=raw)
        return
    held = io.BytesIO()
    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(columns)), held)
    elif importlib.util.find_spec("polars"):
        import polars as pl

        pl.DataFrame(dict(columns)).write_parquet(held)
    else:
        raise ImportError("Parquet needs pyarrow or polars: pip install pyarrow, or choose .csv")
    write_bytes(path, held.getvalue())


def joined(names: Sequence[str]) -> str:
    """Write names of columns as the options take them.

    >>> joined(["age", "a, b"])
    'age,"a, b"'
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
