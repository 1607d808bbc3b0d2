"""Fitted models as JSON files: readable, exact to the last digit, and unable to run code."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

FORMAT = 1

# What may be loaded, and from where: a file can only choose among these.
_HOME_OF = {
    "intervals": ("damier.models.partition", "IntervalPartition"),
    "groups": ("damier.models.partition", "GroupPartition"),
    "encoding": ("damier.models.encoding", "Encoding"),
    "grid": ("damier.models.grid", "DataGrid"),
    "grid_ensemble": ("damier.models.grid", "GridEnsemble"),
    "naive_bayes": ("damier.models.naive_bayes", "NaiveBayes"),
}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a JSON file.

    Parameters
    ----------
    model : model or fitted estimator
        Anything of :mod:`damier.models`, or an estimator holding one in ``model_``.
    path : str or path
        The file is replaced only once everything is written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from damier.models import GroupPartition
    >>> partition = GroupPartition(
    ...     name="colour", classes=(0, 1), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=False, groups=(("red", None), ("blue",)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(partition, pathlib.Path(folder) / "colour.json")
    ...     load(pathlib.Path(folder) / "colour.json") == partition
    True
    """
    text = dumps(model)
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a JSON file; it scores with NumPy alone.

    Raises
    ------
    ValueError
        If the file is not a saved model. Nothing in a file is ever run.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a saved model: it is not text") from None
    try:
        return loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def dumps(model: Any) -> str:
    """Write a model as JSON text."""
    held = model if hasattr(model, "to_dict") else getattr(model, "model_", None)
    if held is None:
        raise TypeError(
            f"{type(model).__name__} cannot be saved: give a fitted estimator or a model of damier.models"
        )
    return json.dumps({"damier": FORMAT, **held.to_dict()}, allow_nan=False)


def loads(text: str) -> Any:
    """Read a model from JSON text."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a saved model: not JSON ({error})") from None
    if not isinstance(plain, dict) or not isinstance(plain.get("damier"), int):
        raise ValueError("not a saved model: it does not say 'damier'")
    if plain["damier"] > FORMAT:
        raise ValueError(
            f"saved by a later version (format {plain['damier']}, this one reads {FORMAT}): upgrade"
        )
    chosen = plain.get("model")
    if not isinstance(chosen, str) or chosen not in _HOME_OF:
        raise ValueError(f"not a saved model: unknown kind {chosen!r}")
    module, name = _HOME_OF[chosen]
    kind = getattr(importlib.import_module(module), name)
    try:
        return kind.from_dict(plain)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a saved model: {error}") from error
