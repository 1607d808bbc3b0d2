"""Targets and weights."""

from __future__ import annotations

import datetime
import math
import numbers
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from damier.intake import factorize
from damier.intake.frames import as_categorical, as_frame, as_series, plain_array, read_column
from damier.intake.table import CodeArray, FloatArray, IntArray, NumericColumn, NumericTarget, Target

# What a target is: decided by its values, a number, or names of classes.
TargetType = Literal["auto", "number", "classes"]

# Whole numbers of more values than this, each in few rows, are amounts rather than classes.
_MOST_NUMBERED_CLASSES = 100
_ROWS_PER_CLASS = 100
# From here on the tables of the classes do not fit into memory.
_MOST_CLASSES = 1000
_MOST_DISTINCT = 0.1
# Beyond it the squares of differences, which scores are made of, overflow.
_LARGEST_NUMBER = 1e150
# A table of this many places is cheaper than sorting the labels.
_WIDEST_LABEL_RANGE = 1 << 20


def read_target(y: Any, allow_unlabeled: bool = False, name: str = "y") -> Target:
    """Read class labels.

    Parameters
    ----------
    y : 1-D array, sequence or series
        Integers, booleans, text, categoricals, or whole floats.
    allow_unlabeled : bool
        Take ``-1`` (integers) or a missing value (anything else) as a row without a label, code -1. Otherwise
        -1 is a class like any other and a missing target is an error.
    name : str
        What the messages call the target.

    Returns
    -------
    Target
        Codes and the sorted classes. A single class is not an error here: estimators decide.

    Examples
    --------
    >>> target = read_target(["yes", "no", "yes"])
    >>> target.classes, target.codes
    (array(['no', 'yes'], dtype=object), array([1, 0, 1], dtype=int32))
    """
    if isinstance(y, Target):
        return y
    held = _one_column(y, name)
    if isinstance(held, nw.Series):
        return _series_target(held, allow_unlabeled, name)
    return _array_target(_target_array(held, name), allow_unlabeled, name)


def read_numbers(y: Any, name: str = "y") -> NumericTarget:
    """Read a target that is a number.

    Parameters
    ----------
    y : 1-D array, sequence or series
        Whole or fractional numbers.
    name : str
        What the messages call the target.

    Returns
    -------
    NumericTarget

    Raises
    ------
    ValueError
        If a value is missing, infinite, beyond 1e150 or no number. A constant is not an error here:
        estimators decide.

    Examples
    --------
    >>> target = read_numbers([2.5, 1, 2.5])
    >>> target.distinct, target.codes
    (array([1. , 2.5]), array([1, 0, 1], dtype=int32))
    """
    if isinstance(y, NumericTarget):
        return y
    values = _numbers(_one_column(y, name), name)
    if len(values) == 0:
        raise _no_rows(name)
    missing = int(np.count_nonzero(np.isnan(values)))
    if missing:
        raise _missing_target(missing, name, " (Input y contains NaN.)", "remove those rows")
    if np.isinf(values).any():
        raise ValueError(
            f"the target {name} contains infinity: remove those rows (Input y contains infinity)"
        )
    largest = float(np.abs(values).max())
    if largest > _LARGEST_NUMBER:
        raise ValueError(
            f"the target {name} holds {largest:.6g}: squares beyond {_LARGEST_NUMBER:g} overflow, divide it "
            "by a constant"
        )
    # Zero is one value: of minus zero and zero the first row would decide which one is kept.
    distinct, codes = np.unique(values + 0.0, return_inverse=True)
    return NumericTarget(codes.reshape(-1).astype(np.int32), distinct)


def read_any_target(
    y: Any,
    kind: TargetType = "auto",
    *,
    allow_unlabeled: bool = False,
    ask: bool = True,
    name: str = "y",
) -> Target | NumericTarget:
    """Read a target that may be a number or a class.

    Parameters
    ----------
    y : 1-D array, sequence or series
    kind : {"auto", "number", "classes"}
        What it is. "auto" takes fractional numbers for a number, and anything else for classes.
    allow_unlabeled : bool
        As in `read_target`.
    ask : bool
        With "auto", whether to ask which of both whole numbers are, where they could be either. If not, they
        are classes.
    name : str
        What the messages call the target.

    Raises
    ------
    ValueError
        With "auto" and ``ask``, if its whole numbers could be either: more than 100 values, and fewer than
        100 rows per value.

    Examples
    --------
    >>> read_any_target([0.5, 1.0, 2.0]).n_distinct, read_any_target([1, 2, 1]).n_classes
    (3, 2)
    """
    if isinstance(y, (Target, NumericTarget)):
        return y
    if kind == "number" or (kind == "auto" and is_fractional(y)):
        return read_numbers(y, name)
    target = read_target(y, allow_unlabeled, name)
    question = looks_like_number(target, name) if kind == "auto" and ask else None
    if question is not None:
        raise ValueError(f"the target {question}. Say target='number' or target='classes'.")
    return target


def is_fractional(y: Any, name: str = "y") -> bool:
    """Say whether a target holds numbers that are not whole: what scikit-learn calls continuous.

    >>> is_fractional([1.0, 2.5]), is_fractional([1.0, 2.0]), is_fractional(["1.5"])
    (True, False, False)
    """
    if isinstance(y, NumericTarget):
        return True
    if isinstance(y, Target):
        return False
    held = _one_column(y, name)
    if isinstance(held, nw.Series):
        if not held.dtype.is_float() and not isinstance(held.dtype, (nw.Decimal, nw.Object)):
            return False
        held = held.to_numpy()
    array = _target_array(held, name)
    if array.dtype.kind == "O":
        values = array.tolist()
        if not all(map(_is_number, values)):
            return False
        array = np.array([float(v) for v in values if not factorize.is_missing(v)])
    if array.dtype.kind != "f":
        return False
    array = array[np.isfinite(array)]
    return bool((array != np.floor(array)).any())


def name_of(y: Any) -> str:
    """Return the name of a target, "target" where it has none.

    >>> name_of([1, 2])
    'target'
    """
    held = _one_column(y, "y")
    name = held.name if isinstance(held, nw.Series) else None
    return "target" if name is None or name == "" else str(name)


def _one_column(y: Any, name: str) -> Any:
    """Return the target as a series, or as it was given when it is none."""
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None")
    frame = as_frame(y)
    if frame is not None:
        if frame.shape[1] != 1:
            raise ValueError(f"the target {name} must be one column, got {frame.shape[1]}: choose one")
        y = frame[:, 0]
    series = as_series(y)
    return y if series is None else series


def _numbers(held: Any, name: str) -> FloatArray:
    """Return the numbers of a target, NaN where one is missing."""
    if isinstance(held, nw.Series):
        if held.dtype.is_temporal():
            raise ValueError(f"the target {name} holds dates or times: convert them to numbers")
        if isinstance(held.dtype, nw.Boolean) or not (
            held.dtype.is_numeric() or isinstance(held.dtype, nw.Object)
        ):
            raise _not_numbers(name, held.dtype)
        if held.dtype.is_numeric():
            return np.asarray(held.cast(nw.Float64).to_numpy(), dtype=np.float64)
        held = held.to_numpy()
    array = _target_array(held, name)
    if array.dtype.kind == "O":
        values = array.tolist()
        wrong = next((v for v in values if not _is_number(v)), None)
        if wrong is not None:
            raise _not_numbers(name, repr(wrong))
        return np.array([math.nan if factorize.is_missing(v) else float(v) for v in values])
    if array.dtype.kind not in "iuf":
        raise _not_numbers(name, "booleans" if array.dtype.kind == "b" else "text")
    return array.astype(np.float64)


def _is_number(value: Any) -> bool:
    if factorize.is_missing(value):
        return True
    return isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _not_numbers(name: str, what: Any) -> ValueError:
    return ValueError(
        f"the target {name} must be a number, it holds {what}: convert it to numbers, or use a classifier"
    )


def looks_like_number(target: Target, name: str = "y") -> str | None:
    """Describe a target whose whole numbers have so many values that they count or measure something.

    Parameters
    ----------
    target : Target
    name : str
        What the sentence calls the target.

    Returns
    -------
    str or None
        The sentence; None when the classes are not numbers, when there are at most 100 of them, or when there
        are 100 rows or more per class.

    Examples
    --------
    >>> looks_like_number(read_target(list(range(2000)) * 2), "price")
    'price looks like a number: 2,000 values in 4,000 rows'
    >>> looks_like_number(read_target([0, 1] * 2000))
    """
    return classes_look_like_number(target.classes, len(target.codes), name)


def classes_look_like_number(classes: npt.NDArray[Any], n_rows: int, name: str = "y") -> str | None:
    """Describe classes as `looks_like_number` does, of so many rows."""
    n_classes = len(classes)
    if classes.dtype.kind not in "iuf" or n_classes <= _MOST_NUMBERED_CLASSES:
        return None
    if n_classes * _ROWS_PER_CLASS <= n_rows:
        return None
    return f"{name} looks like a number: {n_classes:,} values in {n_rows:,} rows"


def refuse_many_classes(target: Target, name: str = "y") -> None:
    """Refuse a target of so many classes that memory would not hold their tables.

    Raises
    ------
    ValueError
        If there are more than 1,000 classes and more than one per ten rows.
    """
    n_classes, n_rows = target.n_classes, len(target.codes)
    if n_classes <= _MOST_CLASSES or n_classes <= _MOST_DISTINCT * n_rows:
        return
    found = looks_like_number(target, f"the target {name}")
    found = found or f"the target {name} has {n_classes:,} classes in {n_rows:,} rows"
    raise ValueError(
        f"{found}. At most 1,000 classes, or one per ten rows, can be handled: cut it into bins or group "
        "rare classes first."
    )


def read_weights(sample_weight: Any, n_rows: int) -> IntArray | None:
    """Read weights as frequencies: whole numbers, zero or more, one per row; a zero drops the row.

    Examples
    --------
    >>> read_weights([1.0, 3.0, 0.0], 3)
    array([1, 3, 0])
    """
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        weights = np.full(n_rows, sample_weight, dtype=np.float64)
    else:
        series = as_series(sample_weight)
        held = sample_weight if series is None else series.to_numpy()
        held = plain_array(held) if isinstance(held, np.ma.MaskedArray) else held
        try:
            weights = np.asarray(held, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("sample_weight must hold numbers") from None
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight has {len(weights)} values for {n_rows} rows: give one per row")
    _refuse_weight(~np.isfinite(weights), weights, "neither missing nor infinite")
    _refuse_weight(weights < 0, weights, "not negative")
    _refuse_weight(
        weights != np.floor(weights),
        weights,
        "whole: weights are frequencies here, as if each row were repeated",
    )
    if weights.sum() >= 2.0**53:
        raise ValueError("sample_weight adds up to more than 2**53: scale the weights down")
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: at least one row must count")
    return weights.astype(np.int64)


def _refuse_weight(wrong: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64], rule: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_weight must be {rule}; row {row} has {weights[row]:g}")


def _target_array(y: Any, name: str) -> npt.NDArray[Any]:
    """1-D NumPy array of the labels; one column of a matrix is taken too."""
    if isinstance(y, str):
        raise ValueError(
            f"the target {name} should be a 1d array, got {y!r} instead: of a table in memory, pass the "
            f"column, X[{y!r}], and X without it"
        )
    if isinstance(y, np.ma.MaskedArray):
        array = plain_array(y)
    elif isinstance(y, np.ndarray):
        array = y
    else:
        try:
            array = np.asarray(y, dtype=object)  # so that [1, "a"] keeps its number
        except ValueError:
            raise ValueError(f"the target {name} must hold one label per row, not lists") from None
        if array.ndim == 1 and any(isinstance(label, (list, tuple)) for label in array):
            raise ValueError(f"the target {name} must hold one label per row, not lists")
        plain = np.asarray(y) if array.ndim == 1 else array
        array = plain if plain.dtype.kind in "iubf" else array
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"the target {name} should be a 1d array, got an array of shape {array.shape} instead."
        )
    if array.dtype.kind in "cmMV":
        raise ValueError(
            f"Unknown label type: the target {name} has dtype {array.dtype}; use integers, booleans or text"
        )
    return array


def _series_target(series: nw.Series[Any], allow_unlabeled: bool, name: str) -> Target:
    dtype = series.dtype
    if dtype.is_numeric():
        array = series.to_numpy()
        array = array if array.dtype.kind in "iuf" else array.astype(np.float64)
        return _array_target(array, allow_unlabeled, name)
    if dtype.is_temporal():
        raise ValueError(f"Unknown label type: the target {name} holds dates; use integers, booleans or text")
    if isinstance(dtype, nw.Object):
        return _array_target(np.asarray(series.to_numpy()), allow_unlabeled, name)
    column = read_column(series, name)
    if isinstance(column, NumericColumn) and column.kind == "rank":
        column = as_categorical(column)
    if isinstance(column, NumericColumn):
        return _array_target(column.values, allow_unlabeled, name)
    return _coded_target(column.codes, column.categories, allow_unlabeled, name)


def _array_target(array: npt.NDArray[Any], allow_unlabeled: bool, name: str) -> Target:
    if len(array) == 0:
        raise _no_rows(name)
    kind = array.dtype.kind
    if kind in "iub":
        codes, classes = _integer_classes(array)
        return _without_minus_one(codes, classes, name) if allow_unlabeled else Target(codes, classes)
    if kind == "f":
        return _float_target(array, allow_unlabeled, name)
    codes, categories = _object_labels(array, name)
    return _coded_target(codes, categories, allow_unlabeled, name, array.dtype)


def _without_minus_one(codes: CodeArray, classes: npt.NDArray[Any], name: str) -> Target:
    """Take -1 among sorted integer classes for the mark of rows without a label."""
    if classes.dtype.kind != "i" or -1 not in classes:
        return Target(codes, classes)
    if classes[0] != -1:
        raise ValueError(f"the target {name} has labels below -1: -1 marks rows without a label")
    return Target(codes - np.int32(1), classes[1:])


def _no_rows(name: str) -> ValueError:
    return ValueError(f"the target {name} has no rows (0 samples): at least one is required")


def _integer_classes(array: npt.NDArray[Any]) -> tuple[CodeArray, npt.NDArray[Any]]:
    if array.dtype.kind == "b":
        seen = np.array([not array.all(), array.any()])
        codes = array.astype(np.int32) if seen.all() else np.zeros(len(array), np.int32)
        return codes, np.array([False, True])[seen]
    low, high = int(array.min()), int(array.max())
    if high - low < _WIDEST_LABEL_RANGE and abs(low) < 2**62 and high < 2**62:
        shifted = array if low == 0 else np.subtract(array, low, dtype=np.int64, casting="unsafe")
        seen = np.bincount(shifted, minlength=high - low + 1) > 0
        position = (np.cumsum(seen) - 1).astype(np.int32)
        return position[shifted], (np.flatnonzero(seen) + low).astype(array.dtype)
    classes, inverse = np.unique(array, return_inverse=True)
    return inverse.reshape(-1).astype(np.int32), classes


def _float_target(array: npt.NDArray[Any], allow_unlabeled: bool, name: str) -> Target:
    missing = np.isnan(array)
    if missing.any() and not allow_unlabeled:
        raise _missing_target(int(missing.sum()), name, " (Input y contains NaN.)")
    labeled = array[~missing]
    if np.isinf(labeled).any():
        raise ValueError(f"the target {name} contains infinity: Input y contains infinity")
    if (labeled != np.floor(labeled)).any():
        raise ValueError(
            f"Unknown label type: continuous. The target {name} holds fractional numbers, not classes:"
            " use a regressor, or convert it to text if its values are names."
        )
    classes, inverse = np.unique(labeled, return_inverse=True)
    codes = np.full(len(array), -1, dtype=np.int32)
    codes[~missing] = inverse.reshape(-1)
    return Target(codes, classes)


def _missing_target(
    count: int, name: str, more: str = "", cure: str = "remove those rows or label them"
) -> ValueError:
    return ValueError(f"the target {name} is missing in {count} row{'s' if count > 1 else ''}: {cure}{more}")


def _coded_target(
    codes: CodeArray,
    categories: tuple[Any, ...],
    allow_unlabeled: bool,
    name: str,
    dtype: np.dtype[Any] | None = None,
) -> Target:
    if len(codes) == 0:
        raise _no_rows(name)
    if categories and categories[0] is None:
        if not allow_unlabeled:
            raise _missing_target(int(np.count_nonzero(codes == 0)), name)
        return Target(codes - np.int32(1), _class_array(categories[1:], dtype))
    classes = _class_array(categories, dtype)
    # Integers may come as objects or as categories: they mark rows as any integers do.
    return _without_minus_one(codes, classes, name) if allow_unlabeled else Target(codes, classes)


def _object_labels(array: npt.NDArray[Any], name: str) -> factorize.Coding:
    values = array.tolist()
    try:
        codes, found = factorize.first_seen_codes(values, len(values))
        if any(isinstance(v, (datetime.date, datetime.time, datetime.timedelta)) for v in found):
            raise TypeError("dates or times")
        booleans = {type(v) for v in found if not factorize.is_missing(v)} <= {bool, np.bool_}
        return factorize.recode(codes, found, keep_booleans=booleans)
    except TypeError as error:
        raise ValueError(
            f"Unknown label type: the target {name} holds values that are not labels ({error}); use integers,"
            " booleans or text"
        ) from None


def _class_array(categories: tuple[Any, ...], dtype: np.dtype[Any] | None) -> npt.NDArray[Any]:
    if dtype is not None and dtype.kind in "UT":
        return np.array(categories, dtype=dtype)
    kinds = set(map(type, categories))
    if kinds == {int} or kinds == {bool}:
        return np.array(categories)
    classes = np.empty(len(categories), dtype=object)
    classes[:] = categories
    return classes


def explored_target(y: Any, kind: TargetType = "auto", name: str = "y") -> Target | NumericTarget:
    """Read a target and decide what it is: a number, or classes.

    >>> from damier.intake.target import explored_target
    >>> explored_target([0.5, 1.5, 0.5]).n_distinct, explored_target([1, 2, 1]).n_classes
    (2, 2)
    """
    if kind == "number" or (kind == "auto" and is_fractional(y)):
        return read_numbers(y, name)
    target = read_target(y, name=name)
    if kind == "auto" and looks_like_number(target) is not None:
        return read_numbers(y, name)
    return target
