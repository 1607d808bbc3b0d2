"""``damier predict MODEL FILE``: a saved model applied to the rows of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from damier.commands.common import (
    WRONG_COMMAND,
    check_outputs,
    column_name,
    data_problems,
    read,
    stop,
    with_reading_options,
    writing,
)
from damier.commands.tables import RawOption, check_kind, joined, write_table
from damier.intake.printable import printable

if TYPE_CHECKING:
    from damier.intake import Column, Table
    from damier.models import Model

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "[cyan]damier report customers.csv -t churn --save-model churn.json[/cyan]   makes a model\n\n"
    "[cyan]damier predict churn.json new.csv -o scored.csv[/cyan]   class and probabilities of each row\n\n"
    "[cyan]damier predict churn.json new.csv --explain --keep id,name[/cyan]   with reasons\n\n"
    "[bold]Columns[/bold]\n\n"
    "Columns of FILE are found by name, in any order; others are ignored, and those that the model does not "
    "use may be absent."
)
N_REASONS = 3


@with_reading_options
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model: .json.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rows: .csv, .tsv or .parquet.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="A .csv or .parquet file; FILE-scored.csv by default."
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
    out = output or Path(f"{file.stem}-scored.csv")
    check_kind("--output", out)
    check_outputs((model, file), (out,))
    loaded = _load(model)
    table = _read(file, loaded, reading)
    columns = _kept(table, keep)
    with data_problems(), writing(out):
        columns += _answers(loaded, table, explain)
        from damier.models.codec import distinct_names

        names = distinct_names([name for name, _ in columns])
        write_table(out, dict(zip(names, (values for _, values in columns), strict=True)), raw=raw)
    rows = f"{table.n_rows:,} row" + ("" if table.n_rows == 1 else "s")
    Console().print(Text(f"{rows} written to ").append(printable(out), style="bold"), soft_wrap=True)


def _load(path: Path) -> Model:
    from damier.deploy import load

    if not path.is_file():
        raise stop(f"no file {str(path)!r}: give a model that was saved.", WRONG_COMMAND)
    with data_problems():
        return load(path)


def _read(file: Path, model: Model, options: dict[str, Any]) -> Table:
    """Read the file; a column that was text when fitted is read as text, one of numbers as numbers."""
    from damier.intake import CategoricalColumn, NumericColumn

    table = read(file, **options)
    wrong: dict[str, list[str]] = {"categorical": [], "numeric": []}
    for name, kind in _column_kinds(model):
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
        named = next(csv.reader([options[key]]), []) if options[key] else []
        options[key] = joined([*named, *names])
    return read(file, quiet=True, **options)


def _column_kinds(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns of a model that were text or plain numbers when it was fitted."""
    from damier.models import GridEnsemble, GroupPartition, IntervalPartition, LinfModel
    from damier.models.linf.columns import CodedColumn

    if isinstance(model, LinfModel):
        for column in model.columns:
            if not isinstance(column, CodedColumn):
                yield column.name, "number"
            elif _all_text(column.categories):
                yield column.name, "text"
        return
    grids = model.grids if isinstance(model, GridEnsemble) else ()
    held = [p for grid in grids for p in grid.partitions.values()]
    partitions = getattr(model, "partitions", ())
    held += list(partitions.values() if hasattr(partitions, "values") else partitions)
    held += [
        variable.partition for variable in getattr(model, "variables", ()) if hasattr(variable, "partition")
    ]
    held += [model] if isinstance(model, (GroupPartition, IntervalPartition)) else []
    for partition in held:
        if isinstance(partition, IntervalPartition) and partition.kind == "number":
            yield partition.name, "number"
        elif isinstance(partition, GroupPartition) and all(map(_all_text, partition.groups)):
            yield partition.name, "text"


def _all_text(values: Any) -> bool:
    return all(isinstance(value, (str, type(None))) for value in values)


def _kept(table: Table, keep: str | None) -> list[tuple[str, list[Any]]]:
    """Return the columns to copy."""
    if keep is None:
        return []
    asked = next(csv.reader([keep]), [])
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


def _answers(model: Any, table: Table, explain: bool) -> list[tuple[str, list[Any]]]:
    """Return what a model says of the rows, as columns."""
    from damier.models import (
        ClassifierModel,
        CoclusteringModel,
        Encoding,
        LabeledCoclustering,
        Partition,
        UnsupervisedGrid,
    )

    counts = model.coclustering if isinstance(model, LabeledCoclustering) else model
    if isinstance(counts, CoclusteringModel) and counts.columns.values is None:
        raise ValueError(
            "the model was fitted on a table of counts without names: apply it in Python, with model.predict"
        )
    if isinstance(model, ClassifierModel):
        proba = model.predict_proba(table)
        best = proba.argmax(axis=1).tolist()
        columns: list[tuple[str, list[Any]]] = [("predicted", [model.classes[j] for j in best])]
        columns += [(f"probability {c}", p) for c, p in zip(model.classes, proba.T.tolist(), strict=True)]
        if explain:
            reasons = model.reasons(table, N_REASONS)
            columns += [
                (f"reason {k + 1}", [one[k] if k < len(one) else None for one in reasons])
                for k in range(N_REASONS)
            ]
        return columns
    if explain:
        raise ValueError(f"--explain needs a model that predicts classes, and this is {_kind(model)}")
    if isinstance(model, Encoding):
        return list(zip(model.feature_names_out(), model.transform(table).T.tolist(), strict=True))
    if isinstance(model, Partition):
        parts = model.apply(_column(table, model.name)).tolist()
        return [(f"{model.name} part", [None if part < 0 else model.labels[part] for part in parts])]
    if isinstance(model, UnsupervisedGrid):
        return [("cell", model.predict(table).tolist())]
    if isinstance(model, CoclusteringModel):
        return [(f"cluster of {model.rows.name}", model.predict(table).tolist())]
    raise ValueError(f"the model is {_kind(model)}, which does not predict: nothing to write")


def _column(table: Table, name: str) -> Column:
    from damier.intake import read_columns

    return read_columns(table, [name])[name]


def _kind(model: Any) -> str:
    name = type(model).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
