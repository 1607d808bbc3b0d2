"""Tables as the commands write them: CSV that a spreadsheet opens safely, or Parquet."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
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


@contextlib.contextmanager
def table_writer(path: Path, *, raw: bool = False) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write a table batch after batch, whole or not at all, as the end of the file's name says.

    Yields a function that takes the columns of the next rows: arrays of pyarrow or NumPy, or lists.
    """
    import pyarrow as pa

    from damier.intake.printable import without_formula
    from damier.intake.writing import replacing

    with replacing(path) as file:
        if path.suffix.lower() == ".csv":
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
            cells = csv.writer(text)
            begun = False

            def add_lines(columns: Mapping[str, Any]) -> None:
                nonlocal begun
                lines = zip(*map(_listed, columns.values()), strict=True)
                for row in itertools.chain(() if begun else (tuple(columns),), lines):
                    cells.writerow(row if raw else map(without_formula, row))
                begun = True

            yield add_lines
            text.flush()
            text.detach()
            return
        import pyarrow.parquet as pq

        writer = None

        def close() -> None:
            if writer is not None:
                writer.close()

        def add_batch(columns: Mapping[str, Any]) -> None:
            nonlocal writer
            batch = pa.table(dict(columns))
            if writer is None:
                # Reasons and labels may all be missing in the first rows.
                fields = [
                    pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type)
                    for f in batch.schema
                ]
                writer = pq.ParquetWriter(file, pa.schema(fields))
            writer.write_table(batch.cast(writer.schema))

        try:
            yield add_batch
        except BaseException:
            with contextlib.suppress(OSError, ValueError):  # what went wrong is said already
                close()
            raise
        close()


def _listed(values: Any) -> list[Any]:
    """Return the cells of a column of any library; moments as their text."""
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_temporal(values.type):
            from damier.intake.dates import number_text
            from damier.intake.frames import read_column

            held: Any = read_column(values)
            return [
                None if value != value else number_text(value, held.kind) for value in held.values.tolist()
            ]
        found: list[Any] = values.to_pylist()
        return found
    return list(values.tolist() if hasattr(values, "tolist") else values)


def joined(names: Sequence[str]) -> str:
    """Write names of columns as the options take them.

    >>> joined(["age", "a, b"])
    'age,"a, b"'
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
