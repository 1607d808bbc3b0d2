import datetime
import math
import re
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import damier
from damier.intake import (
    NumericTarget,
    Target,
    looks_like_number,
    read_any_target,
    read_numbers,
    read_target,
    read_weights,
    refuse_many_classes,
)


@pytest.mark.parametrize(
    "y",
    [
        ["no", "yes", "no"],
        np.array(["no", "yes", "no"]),
        np.array(["no", "yes", "no"], dtype=object),
        pd.Series(["no", "yes", "no"]),
        pd.Series(["no", "yes", "no"], dtype="category"),
        pl.Series(["no", "yes", "no"]),
        pa.array(["no", "yes", "no"]),
        pl.DataFrame({"y": ["no", "yes", "no"]}),
        np.array([["no"], ["yes"], ["no"]]),
    ],
)
def test_text(y):
    target = read_target(y)
    assert target.classes.tolist() == ["no", "yes"]
    assert target.codes.dtype == np.int32
    assert target.codes.tolist() == [0, 1, 0]
    assert target.n_classes == 2


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([3, -1, 3], [-1, 3]),
        (np.array([3, -1, 3], dtype=np.int8), [-1, 3]),
        (np.array([2**63, 5, 2**63], dtype=np.uint64), [5, 2**63]),
        ([10**9, 5, 10**9], [5, 10**9]),
        ([1.0, 0.0, 1.0], [0.0, 1.0]),
        ([True, False, True], [False, True]),
        (pd.Series([True, False, True]), [False, True]),
        (pl.Series([3, 1, 3]), [1, 3]),
        (pd.Series([3, 1, 3], dtype="Int64"), [1, 3]),
        (pd.Series([3, 1, 3], dtype=object), [1, 3]),
        (["a", 1, "a"], [1, "a"]),
    ],
)
def test_other_labels(y, classes):
    target = read_target(y)
    assert target.classes.tolist() == classes
    assert target.codes.tolist() == [1, 0, 1]
    assert read_target(target) is target


def test_classes_keep_their_type():
    assert read_target(np.array([1, 2], dtype=np.int16)).classes.dtype == np.int16
    assert read_target(np.array(["a", "b"])).classes.dtype.kind == "U"
    assert read_target([True, False]).classes.dtype == bool


def test_integer_labels_agree_with_unique():
    rng = np.random.default_rng(0)
    for low, high in [(-5, 5), (0, 1000), (-(10**12), 10**12)]:
        y = rng.integers(low, high, 500)
        classes, codes = np.unique(y, return_inverse=True)
        target = read_target(y)
        np.testing.assert_array_equal(target.classes, classes)
        np.testing.assert_array_equal(target.codes, codes)


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b"],
        [1.0, np.nan, 0.0],
        pd.Series(["a", None, "b"]),
        pl.Series([True, None, False]),
        pl.Series([1, None, 2]),
        pa.array(["a", None, "b"]),
    ],
)
def test_missing_labels(y):
    with pytest.raises(ValueError, match="the target y is missing in 1 row: remove"):
        read_target(y)
    target = read_target(y, allow_unlabeled=True)
    assert target.codes[1] == -1
    assert sorted(target.codes[[0, 2]].tolist()) == [0, 1]
    assert target.n_classes == 2


def test_minus_one_marks_unlabeled_rows_only_when_asked():
    assert read_target([-1, 1]).classes.tolist() == [-1, 1]
    target = read_target([1, -1, 0], allow_unlabeled=True)
    assert target.codes.tolist() == [1, -1, 0]
    assert target.classes.tolist() == [0, 1]
    with pytest.raises(ValueError, match="below -1"):
        read_target([-2, -1, 0], allow_unlabeled=True)
    assert read_target([-1, -1], allow_unlabeled=True).n_classes == 0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        ([], "no rows"),
        (pl.Series([], dtype=pl.String), "no rows"),
        ([0.5, 1.5], "continuous"),
        ([np.inf, 1.0], "infinity"),
        ([[1, 2], [3, 4]], "1d array"),
        ("churn", r"pass the column, X\['churn'\]"),
        (pl.DataFrame({"a": [1], "b": [2]}), "one column, got 2"),
        ([{"a": 1}, {"b": 2}], "Unknown label type"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "Unknown label type"),
        (np.array([1j, 2]), "Unknown label type"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        read_target(y)


def test_weights():
    assert read_weights(None, 3) is None
    assert read_weights(2, 3).tolist() == [2, 2, 2]
    for weights in ([1, 0, 3], np.array([1.0, 0.0, 3.0]), pd.Series([1, 0, 3]), pl.Series([1, 0, 3])):
        read = read_weights(weights, 3)
        assert read.dtype == np.int64
        assert read.tolist() == [1, 0, 3]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -2, 1], "not negative; row 1 has -2"),
        ([1, 1, 0.5], "whole: .*row 2 has 0.5"),
        ([1, np.nan, 1], "row 1 has nan"),
        ([np.inf, 1, 1], "row 0 has inf"),
        ([1, 1], "2 values for 3 rows"),
        ([[1], [1], [1]], "1D"),
        ([0, 0, 0], "zero everywhere"),
        (["a", "b", "c"], "numbers"),
        ([2.0**52, 2.0**52, 1], "scale"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        read_weights(weights, 3)


@pytest.mark.parametrize(
    "y",
    [
        [0, -1, 1],
        np.array([0, -1, 1], dtype=object),
        pd.Series([0, -1, 1], dtype="category"),
        pd.Series([0, -1, 1], dtype=object),
        pd.Series([0, -1, 1], dtype="Int64"),
        pl.Series([0, -1, 1]),
    ],
)
def test_minus_one_marks_a_row_however_integers_are_held(y):
    target = read_target(y, allow_unlabeled=True)
    assert target.codes.tolist() == [0, -1, 1]
    assert target.classes.tolist() == [0, 1]
    assert read_target(y).classes.tolist() == [-1, 0, 1]


def test_masked_labels_are_missing():
    y = np.ma.masked_array([0, 1, 1], mask=[False, False, True])
    with pytest.raises(ValueError, match="missing in 1 row"):
        read_target(y)
    assert read_target(y, allow_unlabeled=True).codes.tolist() == [0, 1, -1]


@pytest.mark.parametrize("held", [list, np.array, pd.Series, pl.Series])
def test_dates_are_no_classes(held):
    day = datetime.date(2020, 1, 1)
    with pytest.raises(ValueError, match="Unknown label type"):
        read_target(held([day, day + datetime.timedelta(days=1)]))


def test_whole_numbers_of_very_many_values_look_like_a_number():
    price = read_target(np.arange(11602).repeat(5)[:53940])
    values = price.n_classes
    assert looks_like_number(price, "price") == f"price looks like a number: {values:,} values in 53,940 rows"
    assert looks_like_number(read_target(np.arange(101).repeat(100))) is None  # 100 rows per class
    assert looks_like_number(read_target(np.arange(101).repeat(99))) is not None
    assert looks_like_number(read_target(np.arange(100))) is None  # few values
    assert looks_like_number(read_target([str(i) for i in range(5000)])) is None  # names


def test_too_many_classes_are_refused_by_estimators():
    X = np.arange(5000.0)[:, None]
    with pytest.raises(
        ValueError, match=r"y looks like a number: 5,000 values in 5,000 rows\. At most 1,000"
    ):
        damier.MODLEncoder(target="classes").fit(X, np.arange(5000))
    with pytest.raises(ValueError, match="5,000 classes in 5,000 rows"):
        damier.NaiveBayesClassifier().fit(X, [f"c{i}" for i in range(5000)])
    assert refuse_many_classes(read_target(np.arange(1001).repeat(10))) is None
    assert refuse_many_classes(read_target(np.arange(1000))) is None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, math.nan], "the target y is missing in 1 row: remove those rows"),
        ([1.0, math.inf], "the target y contains infinity"),
        (["a", "b"], "the target y must be a number, it holds 'a'"),
        (np.array(["1", "2"]), "the target y must be a number, it holds text"),
        ([True, False], "the target y must be a number, it holds booleans"),
        ([1.0, None], "the target y is missing in 1 row"),
        ([], "has no rows"),
        (None, "requires y to be passed"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
    ],
)
def test_a_number_is_refused_in_one_sentence(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_numbers(y)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_numbers_of_any_library_are_the_same(library):
    frame = nw.from_dict({"y": [2.5, 1.0, 2.5]}, backend=library).to_native()
    for y in (frame, nw.from_native(frame)["y"].to_native()):
        target = read_numbers(y)
        assert target.distinct.tolist() == [1.0, 2.5]
        assert target.codes.tolist() == [1, 0, 1]
        assert target.values.tolist() == [2.5, 1.0, 2.5]


def test_whole_numbers_of_any_type_are_numbers():
    for y in ([3, 1, 3], np.array([3, 1, 3], np.uint8), [3, 1.0, Decimal(3)], np.array([3, 1, 3], object)):
        assert read_numbers(y).distinct.tolist() == [1.0, 3.0]


def test_what_a_target_is():
    assert isinstance(read_any_target([0.5, 1.0]), NumericTarget)
    assert isinstance(read_any_target([0.0, 1.0]), Target)
    assert isinstance(read_any_target([0, 1], "number"), NumericTarget)
    assert isinstance(read_any_target(["a", "b"]), Target)
    many = list(range(500)) * 2
    question = "the target y looks like a number: 500 values in 1,000 rows. Say target='number' or"
    with pytest.raises(ValueError, match=question):
        read_any_target(many)
    assert isinstance(read_any_target(many, "number"), NumericTarget)
    assert isinstance(read_any_target(many, "classes"), Target)
    with pytest.raises(ValueError, match="fractional"):
        read_any_target([0.5, 1.0], "classes")


def test_zero_is_one_value_whatever_its_sign_and_the_order_of_the_rows():
    for values in ([-0.0, 0.0, 1.0], [0.0, -0.0, 1.0], [-0.0, 1.0, 2.0]):
        assert not np.signbit(read_numbers(np.array(values)).distinct).any()
