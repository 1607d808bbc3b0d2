"""Tables on disk: CSV and its kin, Parquet, Feather, Excel.

Text files are read by DuckDB: commas, semicolons, tabs or bars (the one that splits the first lines evenly),
quotes, ``.gz`` and ``.zst``. Names stand on the first line; empty lines are skipped. UTF-8, UTF-16 with its
mark and, when a file is neither, Windows' Western European are recognised.

What becomes what
-----------------
======================================  ==================================================================
empty, ``NA``, ``N/A``, ``#N/A``, ``NaN``  missing in every column
``None``, ``null``, ``-``, ``?``, ``n.d.``  missing among numbers and dates, values elsewhere
95% of the other cells are numbers       numeric, the rest missing; decimal commas, marks of thousands and
                                         currencies are understood
95% of them are dates or times           dates, datetimes, times
``true`` and ``false``                   boolean
codes with leading zeros, anything else  text
======================================  ==================================================================

Whatever is not plain is written down in ``Table.notes``, one line per column. Parquet keeps its own types.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from damier.intake import cells
from damier.intake.cells import literal
from damier.intake.frames import as_categorical, as_numeric, read_table
from damier.intake.reading import (
    OFFLINE,
    PARQUET,
    TEXT,
    Options,
    check_names,
    check_path,
    kind_of_name,
    tidy_names,
    without_globs,
)
from damier.intake.table import Table
from damier.intake.text import TextFile

_FEATHER = (".feather", ".arrow", ".ipc")
_EXCEL = (".xlsx", ".xlsm")


def read_file(
    path: str | Path,
    *,
    missing: Collection[str] = (),
    decimal: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
    drop: Collection[str] = (),
    only: Collection[str] = (),
    header: bool = True,
) -> Table:
    """Read a table from a file; the end of its name says which kind.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.tab``, ``.txt``, ``.data`` or ``.dat``, also with ``.gz`` or ``.zst`` behind;
        ``.parquet``; ``.feather`` (needs pyarrow or polars); ``.xlsx`` (needs openpyxl).
    missing : collection of str
        Cells that mean "missing" in every column, beside the usual ones.
    decimal : {".", ","}, optional
        The decimal mark; by default commas are tried where points do not fit.
    separator : str, optional
        What stands between the cells; found by default.
    encoding : str, optional
        Name of the encoding; found by default.
    categorical, numeric : collections of column names
        Columns taken as text, and columns taken as numbers, whatever their cells.
    drop, only : collections of column names
        Columns to leave out, or the only ones to read.
    header : bool
        Whether the first line has the names; otherwise they are ``column1``, ``column2``, ...

    Returns
    -------
    Table
        Its ``notes`` say what was not plain.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not what its name says, its kind is not known, or a column named is not there.
    ImportError
        If a library is required for this kind and not installed.
    """
    path = Path(path)
    shown = check_path(path)
    options = Options.checked(
        missing=missing,
        decimal=decimal,
        separator=separator,
        encoding=encoding,
        categorical=categorical,
        numeric=numeric,
        drop=drop,
        only=only,
        header=header,
    )
    suffix = kind_of_name(path)
    if suffix in PARQUET:
        return _finished(_read_parquet(path), options, shown)
    if suffix in _FEATHER:
        return _finished(_read_feather(path), options, shown)
    if suffix in _EXCEL:
        return _finished(_read_excel(path, header), options, shown)
    if suffix in TEXT or separator is not None:
        return TextFile(path, TEXT.get(suffix, ","), options).read()
    known = ", ".join([*TEXT, *PARQUET, *_FEATHER, *_EXCEL])
    raise ValueError(
        f"{shown}: the name does not give the kind of file; it should end in one of {known}, or give the "
        "separator of its cells"
    )


def _finished(table: Table, options: Options, shown: str) -> Table:
    """Apply the options on columns to a table that came with types of its own."""
    check_names(table.names, options, shown)
    columns = [
        as_categorical(column)
        if column.name in options.categorical
        else as_numeric(column)
        if column.name in options.numeric
        else column
        for column in table
        if options.keeps(column.name)
    ]
    return Table(tuple(columns), table.n_rows, notes=table.notes)


def _read_parquet(path: Path) -> Table:
    """Read Parquet by the frame library at hand, which keeps time zones and durations, else by DuckDB."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise ValueError(
                f"{path} is not a Parquet file, whatever its name: rename it if it is CSV or TSV"
            )
    try:
        if importlib.util.find_spec("pyarrow"):
            import pyarrow.parquet

            return read_table(pyarrow.parquet.read_table(path))
        if importlib.util.find_spec("polars"):
            import polars

            return read_table(polars.read_parquet(path))
        import duckdb

        with duckdb.connect(config=OFFLINE) as connection:
            query = f"SELECT * FROM read_parquet({literal(without_globs(path))})"
            return read_table(dict(connection.execute(query).fetchnumpy()))
    except (OSError, RuntimeError, MemoryError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
    except Exception as error:
        # The libraries have exceptions of their own for damaged files; errors of ours name a column already.
        if type(error).__module__.partition(".")[0] in ("pyarrow", "polars", "duckdb", "_duckdb"):
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        raise


def _read_feather(path: Path) -> Table:
    try:
        if importlib.util.find_spec("pyarrow"):
            import pyarrow.feather

            return read_table(pyarrow.feather.read_table(path))
        if importlib.util.find_spec("polars"):
            import polars

            return read_table(polars.read_ipc(path, memory_map=False))
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("pyarrow", "polars"):
            raise ValueError(f"{path} is not a readable Feather file: {error}") from error
        raise
    raise ImportError(f"{path}: reading Feather needs pyarrow or polars (pip install pyarrow)")


def _read_excel(path: Path, header: bool) -> Table:
    """Read the first sheet."""
    if not importlib.util.find_spec("openpyxl"):
        raise ImportError(f"{path}: reading Excel needs openpyxl (pip install openpyxl); or save it as CSV")
    import openpyxl

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # whatever a damaged archive makes it raise
        raise ValueError(f"{path} is not a readable Excel file: {error}") from error
    try:
        rows = [row for row in book.worksheets[0].values if any(cell is not None for cell in row)]
    finally:
        book.close()
    if not rows:
        raise ValueError(f"{path} is empty: its first sheet has no cells")
    first = ["" if cell is None else str(cell) for cell in rows[0]]
    names, notes = tidy_names(first if header else [""] * len(first), header)
    body = rows[1:] if header else rows
    # A formula that failed leaves its error as text.
    columns = {
        name: [None if isinstance(row[j], str) and cells.is_missing(row[j]) else row[j] for row in body]
        for j, name in enumerate(names)
    }
    return replace(read_table(columns), notes=tuple(notes))
