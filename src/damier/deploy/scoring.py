"""What a saved model says of rows, as columns: shared by the command line and by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from damier.intake import Column, Table, read_columns
from damier.models.balls import BallPartition
from damier.models.codec import ClassifierModel
from damier.models.encoding import Encoding
from damier.models.grid import GridEnsemble
from damier.models.linf.columns import CodedColumn
from damier.models.linf.model import LinfModel
from damier.models.naive_bayes import NaiveBayes
from damier.models.naive_bayes_regression import NaiveBayesRegression
from damier.models.partition import GroupPartition, IntervalPartition, Partition
from damier.models.regressor import RegressorModel

N_REASONS = 3


def answers(model: Any, table: Table, *, explain: bool = False) -> list[tuple[str, Any]]:
    """Return what a model says of the rows, as columns: arrays of numbers, lists of anything else.

    Each row is scored by itself: rows scored batch after batch get the same answers to the last bit.

    Parameters
    ----------
    model : model of :mod:`damier.models`
    table : Table
        The columns of the model are found by name.
    explain : bool, default=False
        Add the strongest reasons for each prediction.

    Raises
    ------
    ValueError
        If the model has nothing to say of single rows.
    """
    # By their names: the modules of these models need SciPy, which workers of Spark may not have.
    kind = getattr(model, "model", "")
    counts = model.coclustering if kind == "labeled_coclustering" else model
    if "coclustering" in kind and counts.columns.values is None:
        raise ValueError(
            "the model was fitted on a table of counts without names: apply it in Python, with model.predict"
        )
    if isinstance(model, ClassifierModel):
        proba = model.predict_proba(table)
        best = proba.argmax(axis=1).tolist()
        columns: list[tuple[str, Any]] = [("predicted", [model.classes[j] for j in best])]
        columns += [(f"probability {c}", p) for c, p in zip(model.classes, proba.T, strict=True)]
        return columns + (_reasons(model, table) if explain else [])
    if isinstance(model, RegressorModel):
        low, median, high = model.predict_quantile(table, [0.05, 0.5, 0.95]).T
        columns = [("predicted", model.predict(table)), ("median", median)]
        columns += [("lower 90%", low), ("upper 90%", high)]
        return columns + (_reasons(model, table) if explain else [])
    if explain:
        raise ValueError(f"--explain needs a model that predicts classes or a number, not {_kind(model)}")
    if isinstance(model, Encoding):
        return list(zip(model.feature_names_out(), model.transform(table).T, strict=True))
    if isinstance(model, Partition):
        parts = model.apply(_column(table, model.name)).tolist()
        return [(f"{model.name} part", [None if part < 0 else model.labels[part] for part in parts])]
    if kind == "unsupervised_grid":
        return [("cell", model.predict(table))]
    if kind == "coclustering":
        return [(f"cluster of {model.rows.name}", model.predict(table).tolist())]
    raise ValueError(f"the model is {_kind(model)}, which does not predict: nothing to write")


def answer_kinds(model: Any, *, explain: bool = False) -> list[tuple[str, type]]:
    """Return the names of what `answers` returns, and the types of the values."""
    if isinstance(model, ClassifierModel):
        types = {type(c) for c in model.classes}
        kind = types.pop() if len(types) == 1 else float if types <= {int, float} else str
        named: list[tuple[str, type]] = [("predicted", kind)]
        named += [(f"probability {c}", float) for c in model.classes]
        return named + [(f"reason {k + 1}", str) for k in range(N_REASONS if explain else 0)]
    if isinstance(model, RegressorModel):
        named = [(name, float) for name in ("predicted", "median", "lower 90%", "upper 90%")]
        return named + [(f"reason {k + 1}", str) for k in range(N_REASONS if explain else 0)]
    if isinstance(model, Encoding):
        return [(name, float) for name in model.feature_names_out()]
    if isinstance(model, Partition):
        return [(f"{model.name} part", str)]
    return [("cell", int)]


def used_columns(model: Any) -> list[str] | None:
    """Return the columns that a model looks at, or None if it does not score row by row."""
    if isinstance(model, NaiveBayes):
        return model.used_names
    if isinstance(model, NaiveBayesRegression):
        return [variable.name for variable in model.variables if variable.informs]
    if isinstance(model, LinfModel):
        return [column.name for column in model.columns]
    if isinstance(model, BallPartition):
        return list(model.names)
    if isinstance(model, GridEnsemble):
        return list(dict.fromkeys(name for grid in model.grids for name in grid.partitions))
    if isinstance(model, Partition):
        return [model.name]
    if isinstance(model, Encoding) or getattr(model, "model", "") == "unsupervised_grid":
        return [partition.name for partition in model.partitions]
    partitions = getattr(model, "partitions", None)
    return None if partitions is None else list(partitions)


def column_kinds(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns of a model that were text or plain numbers when it was fitted."""
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


def _reasons(model: Any, table: Table) -> list[tuple[str, Any]]:
    reasons = model.reasons(table, N_REASONS)
    return [
        (f"reason {k + 1}", [one[k] if k < len(one) else None for one in reasons]) for k in range(N_REASONS)
    ]


def _column(table: Table, name: str) -> Column:
    return read_columns(table, [name])[name]


def _kind(model: Any) -> str:
    name = type(model).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
