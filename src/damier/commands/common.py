"""What the commands share: reading a table, writing a page, one sentence for what went wrong.

Exit codes: 0 when done, 1 when the data cannot be worked on, 2 when the command asks for something that is
not there, 130 when Ctrl-C left nothing to show. An error is one sentence that says what to do, never a
traceback.
"""

from __future__ import annotations

import csv
import difflib
import functools
import glob
import inspect
import io
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier.intake import Table
    from damier.report.analysis import Show
    from damier.search.run import Progress as SearchProgress
    from damier.search.run import ProgressCallback

WRONG_DATA, WRONG_COMMAND, STOPPED = 1, 2, 130


def _option(kind: Any, flag: str, metavar: str, help_text: str) -> Any:
    option = typer.Option(
        flag, metavar=metavar, help=help_text, rich_help_panel="Reading FILE", show_default=False
    )
    return Annotated[kind, option]


# Options that say how FILE is read, with what they are when not given: see damier.intake.read_file.
_READING: dict[str, tuple[Any, Any]] = {
    "missing": (
        _option(list[str] | None, "--missing", "CELL", "A cell that means missing; may be repeated."),
        None,
    ),
    "decimal": (_option(str | None, "--decimal", "MARK", "Decimal mark: '.' or ','."), None),
    "separator": (
        _option(str | None, "--separator", "MARK", "What stands between cells; 'tab' for tabs."),
        None,
    ),
    "encoding": (_option(str | None, "--encoding", "NAME", "Encoding, such as cp1252."), None),
    "categorical": (
        _option(str | None, "--categorical", "COLUMNS", "Columns taken as text: names with commas between."),
        None,
    ),
    "numeric": (
        _option(str | None, "--numeric", "COLUMNS", "Columns taken as numbers, other cells as missing."),
        None,
    ),
    "drop": (_option(str | None, "--drop", "COLUMNS", "Columns to leave out."), None),
    "only": (_option(str | None, "--only", "COLUMNS", "The only columns to read."), None),
    "no_header": (_option(bool, "--no-header", "", "The first line has no names."), False),
}


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how FILE is read; it gets them as one dict, ``reading``."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        reading = {name: given.pop(name) for name in _READING}
        reading["header"] = not reading.pop("no_header")
        command(**given, reading=reading)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in _READING.items()
    ]
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped


def read(file: Path, *, quiet: bool = False, **options: Any) -> Table:
    """Read a table and print what was not plain in it, or stop and say what is wrong with the file.

    Parameters
    ----------
    file : Path
    quiet : bool, default=False
        Whether to print nothing.
    **options
        Those of :func:`damier.intake.read_file`; the names of columns as one text with commas between.
    """
    held = look_up(file)
    if held is None:
        raise stop(f"no file {str(file)!r}{_meant(file)}", WRONG_COMMAND)
    if stat.S_ISDIR(held.st_mode):
        raise stop(f"{str(file)!r} is a folder: name a .csv, .tsv or .parquet file in it", WRONG_COMMAND)
    options = reading_options(options)
    from damier.intake import read_file

    with data_problems(), Console(stderr=True).status("Reading"):
        table = read_file(file, **options)
    if not quiet:
        note(table.notes)
    return table


def reading_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of reading as the library takes them: names of columns as lists."""
    options = {**given, "missing": given.get("missing") or ()}
    for key in ("categorical", "numeric", "drop", "only"):
        options[key] = split_names(given.get(key), f"--{key}")
    return options


def split_names(given: str | None, option: str) -> list[str]:
    """Split names with commas between; one that holds a comma or a line break stands in quotes."""
    try:
        return [name for row in csv.reader(io.StringIO(given or "", newline="")) for name in row]
    except csv.Error as error:
        raise stop(
            f"{option} must be names with commas between; got {given!r}: {error}", WRONG_COMMAND
        ) from None


def note(notes: Sequence[str], most: int = 20) -> None:
    """Print remarks on the data, the first of many."""
    console = Console(stderr=True)
    for line in notes[:most]:
        console.print(Text(f"Note: {printable(line)}"), style="dim", soft_wrap=True)
    if len(notes) > most:
        console.print(f"... and {len(notes) - most:,} more notes", style="dim")


def note_number(name: str, found: str = "") -> None:
    """Say that a target was taken for a number, and how to have classes."""
    note([f"{name} is taken for a number{found} (--target-type classes takes each value as a class)"])


def _meant(file: Path) -> str:
    """Name the files beside it that look like the one that is not there."""
    folder = file.parent
    if not folder.is_dir():
        return f": there is no folder {str(folder)!r} either"
    try:
        beside = sorted(p.name for p in folder.iterdir())
    except OSError:  # a folder that may not be listed
        beside = []
    near = difflib.get_close_matches(file.name, beside, n=3)
    return f"; did you mean {listed(near)}?" if near else ": check the name"


def column_name(held: Table | Sequence[str], wanted: str) -> str:
    """Find a column by its name, or stop and name those that look like it."""
    names = [str(name) for name in getattr(held, "names", held)]
    if wanted in names:
        return wanted
    lowered = {name.lower().strip(): name for name in names}
    near = [lowered[match] for match in difflib.get_close_matches(wanted.lower().strip(), lowered, n=5)]
    hint = f"did you mean {listed(near)}?" if near else f"the columns are {listed(names)}"
    raise stop(f"no column {wanted!r}; {hint}", WRONG_COMMAND)


def listed(names: list[str] | tuple[str, ...], most: int = 20) -> str:
    """Write names in a row, the first of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} ... ({len(names):,} in all)"


@contextmanager
def data_problems() -> Iterator[None]:
    """Turn what the library says of the data into one sentence."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError) as error:
        raise stop(str(error), WRONG_DATA) from None
    except MemoryError:
        raise stop("the table does not fit into memory", WRONG_DATA) from None
    except (KeyboardInterrupt, RuntimeError) as error:
        # DuckDB, interrupted while it reads, has words of its own.
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":
            raise
        raise stop("stopped before anything was written", STOPPED) from None


def look_up(path: Path) -> os.stat_result | None:
    """Look a file up; None if there is none, and stop at a name that the system refuses."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        name = str(path) if len(str(path)) <= 80 else f"{str(path)[:79]}…"
        why = getattr(error, "strerror", None) or error
        raise stop(f"cannot use {name!r} as a file: {why}", WRONG_COMMAND) from None


def check_outputs(inputs: Sequence[Path | None], outputs: Sequence[Path | None]) -> None:
    """Stop before the work if an output has nowhere to go, or would replace an input or another output.

    Files are compared, not names: a link, a detour through folders or another spelling is the same file.

    Parameters
    ----------
    inputs, outputs : sequences of paths
        None stands for a file that was not asked for.
    """
    seen = [(found, "the input") for path in inputs if path is not None for found in _files(path)]
    for path in outputs:
        if path is None:
            continue
        held = look_up(path)
        if held is not None and stat.S_ISDIR(held.st_mode):
            raise stop(f"{str(path)!r} is a folder: name a file in it", WRONG_COMMAND)
        folder = look_up(path.parent)
        if folder is None or not stat.S_ISDIR(folder.st_mode):
            raise stop(f"there is no folder {str(path.parent)!r} to write {path.name!r} into", WRONG_COMMAND)
        if held is None or stat.S_ISREG(held.st_mode):  # a terminal or a pipe may take several outputs
            for other, what in seen:
                if _same(path, held, other):
                    raise stop(f"{str(path)!r} is {what}: give the output another name", WRONG_COMMAND)
            seen.append((path, "another output"))


def _files(path: Path) -> list[Path]:
    """Return the files that a name or a pattern stands for."""
    pattern = str(path)
    if glob.has_magic(pattern) and not os.path.exists(pattern):
        return [Path(name) for name in glob.glob(pattern, recursive=True)]
    return [path]


def _same(path: Path, held: os.stat_result | None, other: Path) -> bool:
    """Find out whether two paths are one file, or would be once written."""
    found = look_up(other)
    if held is not None and found is not None:
        return os.path.samestat(held, found)
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def write(path: Path, text: str) -> None:
    """Write a text, or stop."""
    from damier.intake.writing import write_text

    with writing(path):
        write_text(path, text)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what keeps a file from being written into one sentence."""
    try:
        yield
    except OSError as error:
        raise stop(f"cannot write {str(path)!r}: {error.strerror or error}", WRONG_COMMAND) from None


def show_progress(enabled: bool) -> Show:
    """Return what shows the progress of a search: a bar, or nothing where the error stream is no terminal."""
    console = Console(stderr=True)

    @contextmanager
    def show(text: str, total: int) -> Iterator[ProgressCallback | None]:
        if not (enabled and console.is_terminal):
            yield None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.description}", markup=False)
        with Progress(
            words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True
        ) as bar:
            task = bar.add_task(f"{text}: getting ready", total=total or None)

            def update(state: SearchProgress) -> None:
                said = state.text or text
                if state.level == state.level:  # not NaN
                    said = f"{said}: level {state.level:.4f}"
                bar.update(task, completed=state.done, total=state.total or None, description=printable(said))

            yield update

    return show


def announce_compiling() -> None:
    """Say what is going on when the first function has to be compiled, and how long that takes."""
    from damier.search.compiling import on_compiling

    said: list[str] = []

    def say(name: str) -> None:
        if not said:
            said.append(name)
            Console(stderr=True).print(
                "Compiling for this machine, once: some 20 seconds. 'damier warm' compiles all there is.",
                style="dim",
                soft_wrap=True,
            )

    on_compiling[:] = [say]


def stop(message: str, code: int) -> typer.Exit:
    """Say what is wrong; the caller raises what is returned."""
    Console(stderr=True).print(
        Text("Error: ", style="bold red").append(printable(message), style="not bold"), soft_wrap=True
    )
    return typer.Exit(code)


def typed_command(context: typer.Context) -> str:
    """Write the command as it was typed, files by their names alone: a page is passed on."""
    words = ["damier", context.command.name or ""]
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        if option.param_type_name == "argument":
            words.append(Path(str(value)).name)
            continue
        long = max((value is False and option.secondary_opts) or option.opts, key=len)
        if isinstance(value, bool):
            words.append(long)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [long, one.name if isinstance(one, Path) else str(one)]
    return shlex.join(words)
