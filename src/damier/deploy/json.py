"""Fitted models as JSON files: readable, exact to the last digit, and unable to run code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn, TypeVar, overload

from damier.models import Model

FORMAT = 1
M = TypeVar("M", bound=Model)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a JSON file.

    Parameters
    ----------
    model : model or fitted estimator
        Any model of :mod:`damier.models`, or any fitted estimator.
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
    from damier.intake.writing import write_text  # not needed to load

    write_text(path, dumps(model))


@overload
def load(path: str | os.PathLike[str]) -> Model: ...


@overload
def load(path: str | os.PathLike[str], kind: type[M]) -> M: ...


def load(path: str | os.PathLike[str], kind: type[Model] = Model) -> Model:
    """Read a model from a JSON file; it scores with NumPy alone.

    Parameters
    ----------
    path : str or path
    kind : class, default=Model
        The class of :mod:`damier.models` that the file must hold, :class:`damier.models.NaiveBayes` for
        instance; a type checker then knows what is returned.

    Returns
    -------
    model

    Raises
    ------
    ValueError
        If the file is not a saved model; the message names what is wrong in which field. Nothing in a file is
        ever run.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a saved model: it is not text") from None
    try:
        loaded = loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(loaded, kind):
        raise ValueError(f"{path} holds a {type(loaded).__name__}, not a {kind.__name__}")
    return loaded


def dumps(model: Any) -> str:
    """Write a model as JSON text."""
    held = model if isinstance(model, Model) else getattr(model, "model_", None)
    if not isinstance(held, Model) or not hasattr(held, "model"):
        raise TypeError(
            f"{type(model).__name__} cannot be saved: give a fitted estimator or a model of damier.models"
        )
    return json.dumps({"damier": FORMAT, **held.to_dict()}, allow_nan=False)


def loads(text: str) -> Model:
    """Read a model from JSON text."""
    try:
        plain = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a saved model: not JSON ({error})") from None
    if not isinstance(plain, dict) or type(plain.get("damier")) is not int:
        raise ValueError("not a saved model: it does not say 'damier'")
    version = plain.pop("damier")
    if version > FORMAT:
        raise ValueError(f"saved by a later version (format {version}, this one reads {FORMAT}): upgrade")
    if version < 1:
        raise ValueError(f"not a saved model: damier: there is no format {version}")
    return Model.from_dict(plain)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
