"""What every model shares: JSON types and back exactly, equality, level; and what is read when one scores.

A model is a frozen dataclass. Its fields are what is saved, and their types say how: arrays as nested lists,
other models as objects (with their kind in ``"model"`` where a field may hold several), what JSON cannot
express (infinities) as a small object. Nothing else is ever saved: what a model works out in order to score
is worked out again.
"""

from __future__ import annotations

import importlib
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt

from damier.intake.frames import as_frame, make_frame, read_columns, read_table
from damier.intake.printable import printable
from damier.intake.table import FloatArray, IntArray, Table
from damier.models.notebook import one_line

_SCALARS = (str, bool, int, float, type(None))
_LARGEST_WEIGHT = 1e100
_LARGEST_COUNT = 2**53

M = TypeVar("M", bound="Model")


class FieldError(ValueError):
    """A value that a field of a model cannot have."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.message = field, message


class Model:
    """Base of the models: frozen dataclasses whose fields are all there is to save.

    A class that can be loaded by itself, or that stands in a field together with others, sets ``model``, the
    name of its kind in a file.
    """

    model: ClassVar[str]

    # Fields that files of earlier versions do not have: they take their defaults.
    later_fields: ClassVar[tuple[str, ...]] = ()

    # Library of the frame that was fitted, in which frames are returned: neither saved nor compared.
    library: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "model" in cls.__dict__:
            KINDS[cls.model] = cls

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, dtype in _array_fields(kind).items():
            value = getattr(self, name)
            if value is not None:
                array = np.asarray(value, dtype=dtype)
                if array.flags.writeable:  # the caller's own: what was found does not change with it
                    array = array.copy() if array is value else array
                    array.flags.writeable = False
                object.__setattr__(self, name, array)
        self._check()

    def _check(self) -> None:
        """Raise a `FieldError` where fields do not fit together."""

    def to_dict(self) -> dict[str, Any]:
        """Return the model in JSON types.

        Raises
        ------
        TypeError
            If it holds what cannot be saved, a function for instance.
        """
        plain = {field.name: _encode(getattr(self, field.name), field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"model": self.model, **plain} if hasattr(self, "model") else plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Read back what ``to_dict`` returned.

        Raises
        ------
        ValueError
            If it is not a model of this kind; the message names the field that is wrong.
        """
        return _decode_model(plain, cls, "")

    @property
    def level(self) -> float:
        """Share of the null cost that the model saves: 0 explains nothing, 1 everything.

        Of models with a ``cost`` and a ``null_cost``.
        """
        cost: float = self.cost  # type: ignore[attr-defined]
        null_cost: float = self.null_cost  # type: ignore[attr-defined]
        return max(0.0, 1.0 - cost / null_cost) if null_cost > 0.0 else 0.0

    def __eq__(self, other: object) -> bool:
        return _same(self, other) if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return hash((type(self), *(value for value in values if isinstance(value, _SCALARS))))

    def _described(self) -> str:
        """Say what the model is, for ``repr``."""
        return ", ".join(field.name for field in fields(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(one_line(self._described()))}>"

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows; None for its ``repr``."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle needs: not what was worked out in order to score."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {**state, "library": self.library}

    def in_library(self, library: str | None) -> Self:
        """Return frames in this library from now on; the models within do so too."""
        object.__setattr__(self, "library", library)
        for field in fields(self):  # type: ignore[arg-type]
            _spread_library(getattr(self, field.name), library)
        return self

    def _frame(self, columns: Mapping[str, Any], backend: str | None) -> Any:
        return make_frame(columns, backend or self.library)


class ClassifierModel(Model):
    """Model that predicts classes."""

    classes: tuple[Any, ...]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class for each row; each row sums to one.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
            Columns are found by their names, in any order; others are ignored. Those of an array, and those
            of a frame where the model was fitted on an array, are found by position.
        """
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row, the first one on a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: npt.NDArray[Any] = as_array(self.classes)[best]
        return predicted

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say why each row is predicted as it is, in at most ``n`` sentences, the strongest reason first.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        n : int, default=3
        """
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the probability of each class for each row."""
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(self.predict_proba(X))
        return logs


def shares_text(classes: Sequence[Any], shares: Any, most: int = 4) -> str:
    """Write class shares, the largest first.

    >>> shares_text(["no", "yes"], [0.25, 0.75])
    'yes 75.0%, no 25.0%'
    """
    likely = [j for j in np.argsort(-np.asarray(shares), kind="stable").tolist() if shares[j] > 0]
    text = ", ".join(f"{classes[j]} {shares[j]:.1%}" for j in likely[:most])
    return text + (", ..." if len(likely) > most else "")


# What may be loaded, by the kind a file names: those whose modules are imported.
KINDS: dict[str, type[Model]] = {}

# Modules of the kinds that score, each imported when a file asks for it and no other.
_HOME_OF_KIND = {
    "balls": "damier.models.balls",
    "encoding": "damier.models.encoding",
    "grid": "damier.models.grid",
    "grid_ensemble": "damier.models.grid",
    "groups": "damier.models.partition",
    "intervals": "damier.models.partition",
    "linf": "damier.models.linf",
    "naive_bayes": "damier.models.naive_bayes",
    "naive_bayes_regression": "damier.models.naive_bayes_regression",
    "regression_grid": "damier.models.regression_grid",
}


def find_kinds(kind: Any = None) -> dict[str, type[Model]]:
    """Import the module of a kind, or of all of them, and return what may be loaded by then.

    >>> "naive_bayes" in find_kinds("naive_bayes"), "no such thing" in find_kinds()
    (True, False)
    """
    if isinstance(kind, str) and kind in _HOME_OF_KIND:
        importlib.import_module(_HOME_OF_KIND[kind])
    else:
        from damier.models import HOME_OF

        for module in sorted(set(HOME_OF.values())):
            importlib.import_module(module)
    return KINDS


def as_array(classes: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return classes as an array, of objects where they differ in type."""
    if len({type(c) for c in classes}) == 1:
        return np.array(classes)
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of X, None where it has none, as an array has not."""
    if isinstance(X, Mapping):
        return [str(name) for name in X]
    frame = None if isinstance(X, Table) else as_frame(X)
    if frame is not None:
        return [str(name) for name in frame.columns]
    table = read_table(X)
    return list(table.names) if table.named else None


def read_used(X: Any, names: Sequence[str], used: Sequence[str]) -> Table:
    """Read the columns that a model uses; those that it was fitted on and does not use may be absent.

    Parameters
    ----------
    X : Table, or whatever `read_table` reads
    names : sequence of str
        The columns that the model was fitted on, in order: those of an X without names.
    used : sequence of str
        Those among them to read.

    Examples
    --------
    >>> read_used({"b": [1, 2]}, ["a", "b"], ["b"]).names, read_used([[1, 2]], ["a", "b"], ["b"]).names
    (('b',), ('b',))
    """
    if len(used) < len(names) and column_names(X) is None:
        table = read_columns(X, names)
        return Table(tuple(table[name] for name in used), table.n_rows)
    return read_columns(X, used, len(names))


# ----- what a number may be, beyond its type: a function that returns what is wrong with it, or None


def _count_error(values: Any) -> str | None:
    held = np.asarray(values)
    if held.size and held.min() < 0:
        return f"negative count {held.min()}"
    if held.sum(dtype=np.float64) > _LARGEST_COUNT:
        return "counts that add up to more than 2**53"
    return None


def _share_error(values: Any) -> str | None:
    held = np.asarray(values)
    wrong = held[~((held >= 0.0) & (held <= 1.0))]
    return f"{wrong[0]} is not between 0 and 1" if wrong.size else None


def _weight_error(values: Any) -> str | None:
    held = np.asarray(values)
    wrong = held[~(held >= 0.0)]
    if wrong.size:
        return f"{wrong[0]} is negative or not a number"
    # Evidence, a logarithm of counts, times the weight must stay a number.
    return (
        f"{held.max()} is larger than {_LARGEST_WEIGHT:g}"
        if held.size and held.max() > _LARGEST_WEIGHT
        else None
    )


def _positive_error(value: int) -> str | None:
    return None if 1 <= value <= _LARGEST_COUNT else f"{value} is not a positive count"


def _distinct_error(values: tuple[Any, ...]) -> str | None:
    met: set[Any] = set()
    for value in values:
        if value in met:
            return f"{value!r} appears twice"
        met.add(value)
    return None


def _extended(_: Any) -> None:
    """Mark floats that may be infinite or NaN: others must be finite."""


Count = Annotated[int, _count_error]
Counts = Annotated[IntArray, _count_error]
Positive = Annotated[int, _positive_error]
Share = Annotated[float, _share_error]
Shares = Annotated[FloatArray, _share_error]
Weight = Annotated[float, _weight_error]
Weights = Annotated[FloatArray, _weight_error]
Extended = Annotated[float, _extended]
ExtendedArray = Annotated[FloatArray, _extended]
Values = Annotated[tuple[Any, ...], _distinct_error]
Names = Annotated[tuple[str, ...], _distinct_error]


def check_shape(model: Model, field: str, *shape: int) -> None:
    """Refuse an array whose shape is not this one."""
    held = getattr(model, field).shape
    if held != shape:
        raise FieldError(field, f"shape {held} where {shape} is expected")


def check_indices(values: IntArray, field: str, low: int, high: int, what: str) -> None:
    """Refuse indices that are not from ``low`` to ``high - 1``."""
    wrong = values[(values < low) | (values >= high)]
    if wrong.size:
        raise FieldError(field, f"no {what} {wrong[0]}: there are {high}, from 0")


def check_sums(values: FloatArray, field: str) -> None:
    """Refuse shares whose last axis does not add up to one."""
    sums = np.atleast_1d(values.sum(axis=-1))
    wrong = sums[~(np.abs(sums - 1.0) <= 1e-6)]
    if wrong.size:
        raise FieldError(field, f"shares that add up to {wrong[0]:.6g} instead of 1")


# ----- to JSON types


def _encode(value: Any, path: str) -> Any:
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return _encode_array(value, path)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, tuple):
        return [_encode(one, f"{path}[{i}]") for i, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(key): _encode(one, f"{path}.{key}") for key, one in value.items()}
    what = "function" if callable(value) else f"value of type {type(value).__name__}"
    raise TypeError(f"this model cannot be saved: {path}: a {what} has no form in JSON: {value!r}")


def _encode_array(array: npt.NDArray[Any], path: str) -> Any:
    if array.size == 0 and np.asarray(array.tolist()).shape != array.shape:
        return {"shape": list(array.shape)}  # a list without rows does not say how wide they would be
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        nested = array.astype(object).tolist()
        return [_encode(tuple(one) if isinstance(one, list) else one, path) for one in nested]
    return array.tolist()


# ----- and back


def _refuse(path: str, message: str) -> NoReturn:
    where = f"{path.removeprefix('.')}: " if path else ""
    raise ValueError(f"not a saved model: {where}{message}")


def _shown(plain: Any) -> str:
    """Name what stands in a file where something else is expected."""
    if isinstance(plain, dict):
        return "an object"
    if isinstance(plain, list):
        return "a list"
    text = "null" if plain is None else repr(plain)
    return text if len(text) <= 40 else f"{text[:40]}..."


@cache
def _field_types(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}


@cache
def _array_fields(cls: Any) -> dict[str, Any]:
    """Types of the elements of the fields that are arrays; worked out once, as there may be many models."""
    found = {name: _dtype_of(hint) for name, hint in _field_types(cls).items()}
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def _dtype_of(hint: Any) -> Any:
    """Return the type of the elements of an array field, or None when it is no array."""
    if get_origin(hint) is Annotated:
        return _dtype_of(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return next((d for d in map(_dtype_of, get_args(hint)) if d is not None), None)
    return get_args(get_args(hint)[1])[0] if get_origin(hint) is np.ndarray else None


def _decode_model(plain: Any, cls: type[M], path: str) -> M:
    if not isinstance(plain, dict):
        _refuse(path, f"an object is expected, got {_shown(plain)}")
    held = dict(plain)
    if cls is Model:
        find_kinds(held.get("model"))
    kinds = {name: kind for name, kind in KINDS.items() if issubclass(kind, cls)}
    made: Any = cls
    if kinds:
        if "model" not in held:
            _refuse(path, "'model' is missing")
        kind = held.pop("model")
        if not isinstance(kind, str) or kind not in kinds:
            known = ", ".join(repr(name) for name in kinds)
            _refuse(f"{path}.model", f"unknown kind {_shown(kind)}, expected {known}")
        made = kinds[kind]
    hints = _field_types(made)
    for key in held:
        if key not in hints:
            _refuse(path, f"unknown field {key!r}")
    for key in hints:
        if key not in held and key not in made.later_fields:
            _refuse(path, f"{key!r} is missing")
    values = {key: _decode(held[key], hints[key], f"{path}.{key}") for key in hints if key in held}
    try:
        result: M = made(**values)
    except FieldError as error:
        _refuse(f"{path}.{error.field}", error.message)
    return result


def _decode(plain: Any, hint: Any, path: str, *, extended: bool = False) -> Any:
    """Read what a field, or a part of it, holds."""
    origin, arguments = _taken_apart(hint)
    if origin is Annotated:
        value = _decode(plain, arguments[0], path, extended=_extended in arguments)
        for check in arguments[1:]:
            wrong = check(value)
            if wrong:
                _refuse(path, wrong)
        return value
    if origin in (Union, types.UnionType):
        return _decode_union(plain, arguments, path)
    if origin is Literal:
        if not isinstance(plain, str) or plain not in arguments:
            _refuse(path, f"unknown value {_shown(plain)}, expected one of {', '.join(map(repr, arguments))}")
        return plain
    if origin is tuple:
        return _decode_tuple(plain, arguments, path)
    if origin is np.ndarray:
        return _decode_array(plain, np.dtype(_dtype_of(hint)), path, extended)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(plain, dict):
            _refuse(path, f"an object is expected, got {_shown(plain)}")
        return {key: _decode(one, arguments[1], f"{path}[{key!r}]") for key, one in plain.items()}
    if isinstance(hint, type) and issubclass(hint, Model):
        return _decode_model(plain, hint, path)
    return _decode_scalar(plain, hint, path, extended)


@cache
def _taken_apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(hint), get_args(hint)


def _sound(plain: list[Any], hint: Any) -> bool:
    """Whether all are whole numbers that need not be looked at one by one."""
    base, checks = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    if base is not int or set(map(type, plain)) != {int}:
        return False
    ends = min(plain), max(plain)  # what is checked of a number is its range
    return ends[0] >= -(2**63) and ends[1] < 2**63 and not any(check(end) for check in checks for end in ends)


def _decode_union(plain: Any, options: tuple[Any, ...], path: str) -> Any:
    if plain is None and type(None) in options:
        return None
    options = tuple(o for o in options if o is not type(None) and get_origin(o) is not Callable)
    kinds = [o for o in options if isinstance(o, type) and issubclass(o, Model)]
    if len(kinds) < 2:
        return _decode(plain, options[0], path)
    kind = plain.get("model") if isinstance(plain, dict) else None
    chosen = [o for o in kinds if o.model == kind]
    if not chosen:
        known = ", ".join(repr(o.model) for o in kinds)
        _refuse(f"{path}.model", f"unknown kind {_shown(kind)}, expected {known}")
    return _decode_model(plain, chosen[0], path)


def _decode_tuple(plain: Any, hints: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        _refuse(path, f"a list is expected, got {_shown(plain)}")
    if hints[-1] is Ellipsis:
        if _sound(plain, hints[0]):
            return tuple(plain)
        return tuple(_decode(one, hints[0], f"{path}[{i}]") for i, one in enumerate(plain))
    if len(plain) != len(hints):
        _refuse(path, f"{len(plain)} values where {len(hints)} are expected")
    return tuple(
        _decode(one, hint, f"{path}[{i}]") for i, (one, hint) in enumerate(zip(plain, hints, strict=True))
    )


def _decode_array(plain: Any, dtype: np.dtype[Any], path: str, extended: bool) -> npt.NDArray[Any]:
    numbers = "whole numbers" if dtype.kind == "i" else "numbers"
    if isinstance(plain, dict) and set(plain) == {"shape"}:
        shape = plain["shape"]
        whole = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**31 for n in shape)
        if not whole or 0 not in shape or len(shape) > 8:
            _refuse(path, "a shape without elements is expected")
        return np.zeros(shape, dtype=dtype)
    if not isinstance(plain, list):
        _refuse(path, f"a list of {numbers} is expected, got {_shown(plain)}")
    try:
        array = np.array(plain)
    except ValueError:  # in NumPy's words
        _refuse(path, f"lists of {numbers} of one length are expected")
    if array.dtype.kind == "O" and dtype.kind == "f":
        flat = [_decode_scalar(one, float, path, extended=True) for one in array.ravel().tolist()]
        array = np.array(flat).reshape(array.shape)
    if array.size and (array.dtype.kind != dtype.kind and (dtype.kind, array.dtype.kind) != ("f", "i")):
        _refuse(path, f"{numbers} are expected")
    array = array.astype(dtype)
    if dtype.kind == "f" and not extended and not np.isfinite(array).all():
        _refuse(path, "a number is not finite")
    return array


def _decode_scalar(plain: Any, hint: Any, path: str, extended: bool) -> Any:
    value = plain
    if isinstance(plain, dict) and set(plain) == {"float"} and plain["float"] in ("inf", "-inf", "nan"):
        value = float(plain["float"])
    if hint is Any:
        if not isinstance(value, _SCALARS):
            _refuse(path, f"a text, number, true, false or null is expected, got {_shown(plain)}")
        return value
    if hint is float:
        if type(value) is int and abs(value) < 2**1023:
            value = float(value)
        if type(value) is not float:
            _refuse(path, f"a number is expected, got {_shown(plain)}")
        if not extended and not math.isfinite(value):
            _refuse(path, f"a finite number is expected, got {value}")
        return value
    names = {int: "a whole number", str: "text", bool: "true or false"}
    if type(value) is not hint:
        _refuse(path, f"{names[hint]} is expected, got {_shown(plain)}")
    if hint is int and not -(2**63) <= value < 2**63:
        _refuse(path, "a whole number of at most 64 bits is expected")
    return value


# ----- helpers of the above and of the models


def _same(a: Any, b: Any) -> bool:
    """Compare to the last bit and by type: 1, 1.0 and true differ, NaN is itself."""
    a, b = (one.item() if isinstance(one, np.generic) else one for one in (a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(one, b[key]) for key, one in a.items())
    if type(a) is not type(b):
        return False
    if isinstance(a, Model):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))  # type: ignore[arg-type]
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype) and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return bool(a == b)


def _spread_library(value: Any, library: str | None) -> None:
    if isinstance(value, Model):
        value.in_library(library)
    elif isinstance(value, (tuple, Mapping)):
        held: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
        for one in held:
            _spread_library(one, library)


def distinct_names(names: list[str]) -> list[str]:
    """Add a number to names met before, for frames do not take a name twice.

    >>> distinct_names(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    met: set[str] = set()
    result = []
    for name in names:
        tried, again = name, 1
        while tried in met:
            again += 1
            tried = f"{name} ({again})"
        met.add(tried)
        result.append(tried)
    return result
