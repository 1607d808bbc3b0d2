"""``damier predict MODEL FILE``: a saved model applied to the rows of a file."""

from __future__ import annotations

import contextlib
import glob
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from damier.commands.common import (
    WRONG_COMMAND,
    WRONG_DATA,
    check_outputs,
    column_name,
    data_problems,
    look_up,
    note,
    read,
    reading_options,
    split_names,
    stop,
    with_reading_options,
    writing,
)
from damier.commands.tables import RawOption, check_kind, joined, write_table
from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier.intake import Column, Table
    from damier.models import Model

# Above this size in bytes a file is scored batch after batch: memory no longer grows with its rows.
_LARGE = 1 << 26

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier report customers.csv -t churn --save-model churn.json[/cyan]   makes a model\n\n"
    "[cyan]damier predict churn.json new.csv -o scored.csv[/cyan]   class and probabilities of each row\n\n"
    "[cyan]damier predict churn.json new.csv --explain --keep id,name[/cyan]   with reasons\n\n"
    "[cyan]damier predict churn.json 'new/*.parquet' -o scored/[/cyan]   many files, into a folder\n\n"
    "[bold]Columns[/bold]\n\n"
    "Columns of FILE are found by name, in any order; others are ignored, and those that the model does not "
    "use may be absent."
)


@with_reading_options
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model: .json.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The rows: .csv, .tsv or .parquet; a pattern in quotes or a folder for many."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A .csv or .parquet file, or a new folder; FILE-scored.csv by default.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the three strongest reasons for each prediction.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="COLUMNS", help="Columns of FILE to copy: names with commas between, or '*'."
        ),
    ] = None,
    raw: RawOption = False,
    reading: Any = None,
) -> None:
    """Apply a saved model to the rows of a file: classes, probabilities, reasons, or encoded columns."""
    path = Path(file)
    many = path.is_dir() or (not _exists(path) and glob.has_magic(file))
    if many and output is None:
        raise stop("several files need --output: a .csv or .parquet file, or a new folder", WRONG_COMMAND)
    out = output or Path(f"{path.stem}-scored.csv")
    if out.suffix:
        check_kind("--output", out)
    if many or not out.suffix or (path.is_file() and path.stat().st_size > _LARGE):
        _stream(model, file, out, explain, keep, raw, reading)
        return
    check_outputs((model, path), (out,))
    loaded = _load(model)
    table = _read(path, loaded, reading)
    columns = _kept(table, keep)
    with data_problems(), writing(out):
        from damier.deploy.scoring import answers

        columns += answers(loaded, table, explain=explain)
        from damier.models.codec import distinct_names

        names = distinct_names([name for name, _ in columns])
        write_table(out, dict(zip(names, (values for _, values in columns), strict=True)), raw=raw)
    _print_rows(table.n_rows, out)


def _exists(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return path.exists()
    return True  # a name that the system refuses: said in words when it is read


def _print_rows(n_rows: int, out: Path, more: str = "") -> None:
    rows = f"{n_rows:,} row" + ("" if n_rows == 1 else "s")
    said = Text(f"{rows} written to ").append(printable(out), style="bold").append(more)
    Console().print(said, soft_wrap=True)


def _stream(
    model: Path, file: str, out: Path, explain: bool, keep: str | None, raw: bool, reading: dict[str, Any]
) -> None:
    """Score files batch after batch, into one file or into a folder with one file for each."""
    from damier.commands.tables import table_writer
    from damier.deploy.scoring import answers, column_kinds, used_columns
    from damier.intake.stream import Batch, Rows, find_files
    from damier.intake.writing import replacing_folder
    from damier.models.codec import distinct_names
    from damier.search.run import Run

    files = find_files(file)
    if not files:
        raise stop(f"no file {file!r} to read: check the name", WRONG_COMMAND)
    _check_output(model, files, out)
    loaded = _load(model)
    used = used_columns(loaded)
    if used is None:
        raise stop("the model does not score row by row: give one file that fits into memory", WRONG_DATA)
    kinds, options = dict(column_kinds(loaded)), reading_options(reading)
    copied = None if keep == "*" else split_names(keep, "--keep")
    n_rows, began = 0, time.monotonic()
    run = Run()  # the main thread hears Ctrl-C: libraries written in C may lose it
    cleaned = threading.Event()

    def write(rows: list[Rows], path: Path) -> None:
        with table_writer(path, raw=raw) as add:

            def consume(batches: Iterator[Batch]) -> None:
                nonlocal n_rows
                for batch in batches:
                    run.check()
                    columns = [*batch.kept.items(), *answers(loaded, batch.table, explain=explain)]
                    names = distinct_names([name for name, _ in columns])
                    add(dict(zip(names, (values for _, values in columns), strict=True)))
                    n_rows += batch.table.n_rows
                    update(n_rows)

            for one in rows:
                one.read(consume)
                note([f"{one.path.name}: {line}" for line in one.notes])

    def write_all(rows: list[Rows]) -> None:
        try:
            if out.suffix:
                write(rows, out)
            else:
                with replacing_folder(out) as partial:
                    for name, one in zip(distinct_names([p.stem for p in files]), rows, strict=True):
                        write([one], partial / f"{name}.parquet")
                        run.check()
        finally:
            cleaned.set()

    with data_problems(), writing(out):
        rows = [Rows(path, used, kinds, copied, options) for path in files]
        counts = [one.count() for one in rows]
        with _progress(None if None in counts else sum(filter(None, counts))) as update:
            try:
                run.call(write_all, rows)
            except KeyboardInterrupt:
                cleaned.wait()  # at most a batch long; a third Ctrl-C does not wait
                raise
    _print_rows(n_rows, out, f" ({n_rows / max(time.monotonic() - began, 1e-9):,.0f} rows per second)")


def _check_output(model: Path, files: list[Path], out: Path) -> None:
    """Stop before the work if the output has nowhere to go or would replace something."""
    if out.suffix:
        check_outputs((model, *files), (out,))
        return
    held, above = look_up(out), look_up(out.absolute().parent)
    if held is not None and not stat.S_ISDIR(held.st_mode):
        raise stop(f"{str(out)!r} is a file: name a new folder, or a .csv or .parquet file", WRONG_COMMAND)
    if held is not None and any(out.iterdir()):
        raise stop(f"the folder {str(out)!r} is not empty: name a new one", WRONG_COMMAND)
    if above is None or not stat.S_ISDIR(above.st_mode):
        raise stop(f"there is no folder {str(out.parent)!r} to make {out.name!r} in", WRONG_COMMAND)


@contextlib.contextmanager
def _progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Show rows and rows per second where the error stream is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        task, began = bar.add_task("Scoring", total=total), time.monotonic()

        def update(rows: int) -> None:
            rate = rows / max(time.monotonic() - began, 1e-9)
            bar.update(task, completed=rows, description=f"{rows:,} rows, {rate:,.0f} rows per second")

        yield update


def _load(path: Path) -> Model:
    from damier.deploy import load

    if not path.is_file():
        raise stop(f"no file {str(path)!r}: give a model that was saved.", WRONG_COMMAND)
    with data_problems():
        return load(path)


def _read(file: Path, model: Model, options: dict[str, Any]) -> Table:
    """Read the file; a column that was text when fitted is read as text, one of numbers as numbers."""
    from damier.deploy.scoring import column_kinds
    from damier.intake import CategoricalColumn, NumericColumn

    table = read(file, **options)
    wrong: dict[str, list[str]] = {"categorical": [], "numeric": []}
    for name, kind in column_kinds(model):
        if name in table.names:
            column = table[name]
            texts = isinstance(column, CategoricalColumn) and all(
                isinstance(value, (str, type(None))) for value in column.categories
            )
            if kind == "text" and not texts:
                wrong["categorical"].append(name)
            elif kind == "number" and not isinstance(column, NumericColumn) and texts:
                wrong["numeric"].append(name)
    if not any(wrong.values()):
        return table
    for key, names in wrong.items():
        options[key] = joined([*split_names(options[key], f"--{key}"), *names])
    return read(file, quiet=True, **options)


def _kept(table: Table, keep: str | None) -> list[tuple[str, list[Any]]]:
    """Return the columns to copy."""
    if keep is None:
        return []
    asked = split_names(keep, "--keep")
    names = list(table.names) if asked == ["*"] else [column_name(table, name) for name in asked]
    return [(name, _values(table[name])) for name in dict.fromkeys(names)]


def _values(column: Column) -> list[Any]:
    """Return the values of a column: text, booleans, whole numbers as such, dates as their text."""
    import numpy as np

    from damier.intake import CategoricalColumn
    from damier.intake.dates import number_text

    if isinstance(column, CategoricalColumn):
        return [column.categories[code] for code in column.codes.tolist()]
    held, missing = column.values, np.isnan(column.values)
    if column.exact is not None:
        codes, categories = column.exact
        return [categories[code] for code in codes.tolist()]
    if column.kind != "number":
        return [
            None if m else number_text(v, column.kind) for v, m in zip(held.tolist(), missing, strict=True)
        ]
    whole = bool((missing | ((held == np.floor(held)) & (np.abs(held) < 2.0**53))).all())
    return [None if m else int(v) if whole else v for v, m in zip(held.tolist(), missing, strict=True)]
