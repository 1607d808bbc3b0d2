"""The transformers, over every frame library and all the bad input there is."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from damier import MODLDiscretizer, MODLEncoder, MODLGrouper
from damier.criteria import discretization_cost, grouping_cost
from damier.models import GroupPartition, IntervalPartition

ROWS = 300


def columns(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    day = dt.date(2020, 1, 1)
    X = {
        "signal": [None if rng.random() < 0.1 else v for v in rng.normal(3 * y).tolist()],
        "noise": rng.normal(size=rows).tolist(),
        "whole": rng.poisson(2 + 4 * y).tolist(),
        "colour": [None if rng.random() < 0.1 else "rgbc"[k] for k in rng.integers(0, 2, rows) + 2 * y],
        "flag": (rng.random(rows) < 0.2 + 0.6 * y).tolist(),
        "day": [day + dt.timedelta(days=int(d)) for d in rng.integers(0, 50, rows) + 40 * y],
        'a"b<script>': rng.choice(["é", "日本", "<b>"], rows).tolist(),
    }
    return X, y


LIBRARIES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence"])
def test_every_library_gives_the_same_model(library, encode):
    X, y = columns()
    expected = MODLEncoder(encode=encode).fit(X, y)
    frame = LIBRARIES[library](X)
    labels = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}.get(library, list)(y)
    encoder = MODLEncoder(encode=encode).fit(frame, labels)
    assert encoder.partitions_ == expected.partitions_
    assert list(encoder.partitions_) == list(encoder.levels_) == list(X)
    assert encoder.feature_names_in_.tolist() == list(X)
    assert encoder.n_features_in_ == len(X)
    written = encoder.transform(frame)
    assert isinstance(written, np.ndarray)
    np.testing.assert_array_equal(written, expected.transform(X))
    assert written.shape[1] == len(encoder.get_feature_names_out())
    assert written.dtype == {"ordinal": np.int64, "onehot": np.int8, "evidence": np.float64}[encode]
    # A NumPy table of objects has no names, and the same content.
    array = np.empty((ROWS, len(X)), dtype=object)
    for j, values in enumerate(X.values()):
        array[:, j] = values
    unnamed = MODLEncoder(encode=encode).fit(array, y)
    assert list(unnamed.partitions_) == [f"x{j}" for j in range(len(X))]
    np.testing.assert_array_equal(unnamed.transform(array), written)


def test_what_is_found():
    X, y = columns()
    encoder = MODLEncoder().fit(X, y)
    kinds = {name: type(p) for name, p in encoder.partitions_.items()}
    assert kinds == {
        "signal": IntervalPartition,
        "noise": IntervalPartition,
        "whole": IntervalPartition,
        "colour": GroupPartition,
        "flag": GroupPartition,
        "day": IntervalPartition,
        'a"b<script>': GroupPartition,
    }
    assert encoder.partitions_["noise"].n_parts == 1
    assert encoder.levels_["noise"] == 0.0
    assert encoder.partitions_['a"b<script>'].n_parts == 1
    assert encoder.partitions_["day"].kind == "date"
    assert "2020-" in encoder.partitions_["day"].labels[0]
    for name in ("signal", "whole", "colour", "flag", "day"):
        assert encoder.levels_[name] > 0.05
    assert encoder.classes_.tolist() == [0, 1]
    parts = encoder.transform(X)
    for j, (name, partition) in enumerate(encoder.partitions_.items()):
        # Applying the partition to the training rows gives back the counts, and these the cost.
        counts = np.zeros((partition.n_parts, 2), dtype=np.int64)
        np.add.at(counts, (parts[:, j], y), 1)
        np.testing.assert_array_equal(partition.counts, counts)
        if isinstance(partition, IntervalPartition):
            cost = discretization_cost(counts)
        else:
            cost = grouping_cost(counts, n_values=len(set(X[name])))
        assert partition.cost == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("transformer", [MODLDiscretizer, MODLEncoder])
def test_iris(transformer):
    X, y = load_iris(return_X_y=True, as_frame=True)
    fitted = transformer().fit(X, y)
    assert fitted.partitions_["petal length (cm)"].bounds == pytest.approx((2.45, 4.75))
    assert fitted.partitions_["petal width (cm)"].bounds == pytest.approx((0.8, 1.75))
    assert all(p.optimal for p in fitted.partitions_.values())
    named = transformer().fit(X, y.map({0: "setosa", 1: "versicolor", 2: "virginica"}))
    for name, partition in named.partitions_.items():
        assert partition.bounds == fitted.partitions_[name].bounds
        assert partition.classes == ("setosa", "versicolor", "virginica")


def test_row_order_and_threads_change_nothing():
    X, y = columns()
    frame = pd.DataFrame(X)
    expected = MODLEncoder().fit(frame, y).partitions_
    order = np.random.default_rng(1).permutation(ROWS)
    assert MODLEncoder(n_jobs=2).fit(frame.iloc[order], y[order]).partitions_ == expected


def test_weights_are_frequencies():
    X, y = columns()
    frame = pd.DataFrame(X)
    weights = np.random.default_rng(2).integers(0, 4, ROWS)
    weighted = MODLEncoder().fit(frame, y, sample_weight=weights)
    rows = np.repeat(np.arange(ROWS), weights)
    repeated = MODLEncoder().fit(frame.iloc[rows], y[rows])
    assert list(weighted.partitions_) == list(repeated.partitions_)
    for name, partition in weighted.partitions_.items():
        other = repeated.partitions_[name]
        assert partition.labels == other.labels
        np.testing.assert_array_equal(partition.counts, other.counts)
        assert partition.cost == pytest.approx(other.cost, rel=1e-9)


def test_rows_of_weight_zero_are_never_seen():
    X = {"a": ["x", "y", "z", "x", "y"] * 20, "b": list(range(100))}
    y = ["no", "yes", "rare", "no", "yes"] * 20
    weights = [0 if label == "rare" else 1 for label in y]
    encoder = MODLEncoder().fit(X, y, sample_weight=weights)
    assert encoder.classes_.tolist() == ["no", "yes"]
    assert encoder.transform({"a": ["z"], "b": [3]})[0, 0] == -1
    with pytest.raises(ValueError, match="constant, it holds one class only"):
        MODLEncoder().fit({"a": [1, 2]}, [0, 1], sample_weight=[1, 0])


def test_missing_and_unseen_when_scoring():
    X, y = columns()
    encoder = MODLEncoder(encode="evidence").fit(X, y)
    new = {name: [None] for name in X} | {"colour": ["never"], 'a"b<script>': ["never"]}
    evidence = encoder.transform(new)
    names = encoder.get_feature_names_out().tolist()
    assert not evidence[0, [names.index("colour:0"), names.index("colour:1")]].any()
    ordinal = MODLEncoder().fit(X, y).transform(new)
    assert ordinal[0].tolist() == [0, 0, 0, -1, -1, 0, -1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence"])
def test_set_output(library, encode):
    X, y = columns()
    frame = LIBRARIES[library](X)
    encoder = MODLEncoder(encode=encode).set_output(transform=library)
    written = encoder.fit_transform(frame, y)
    assert type(written) is type(frame)
    assert list(written.columns) == encoder.get_feature_names_out().tolist()


def test_pipelines():
    X, y = columns()
    frame = pd.DataFrame(X)
    pipe = make_pipeline(MODLEncoder(encode="evidence"), LogisticRegression())
    assert pipe.fit(frame, y).score(frame, y) > 0.9
    mixed = make_column_transformer(
        (MODLDiscretizer(encode="onehot"), ["signal", "whole"]), (MODLGrouper(), ["colour"])
    )
    assert mixed.fit_transform(frame, y).shape[0] == ROWS


def test_short_bounds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = (x > 0.3).astype(int)
    long = MODLDiscretizer().fit(x[:, None], y)
    short = MODLDiscretizer(short_bounds=True).fit(x[:, None], y)
    np.testing.assert_array_equal(short.transform(x[:, None]), long.transform(x[:, None]))
    assert len(repr(short.partitions_["x0"].bounds[0])) < len(repr(long.partitions_["x0"].bounds[0]))


def test_discretizer_refuses_categories_and_takes_booleans():
    with pytest.raises(ValueError, match=r"column 'colour' is categorical: it holds 'red'.*MODLEncoder"):
        MODLDiscretizer().fit({"colour": ["blue", "red"]}, [0, 1])
    X, y = columns()
    flags = {"flag": X["flag"]}
    discretizer = MODLDiscretizer().fit(flags, y)
    assert discretizer.partitions_["flag"].bounds == (0.5,)
    assert discretizer.transform(flags).ravel().tolist() == [int(v) for v in X["flag"]]


def test_grouper_takes_numbers_as_names():
    codes = np.array([75, 13, 69, 31] * 30)
    y = np.isin(codes, (75, 69)).astype(int)
    partition = MODLGrouper().fit({"code": codes}, y).partitions_["code"]
    assert sorted(partition.groups) == [(13, 31), (69, 75)]
    dates = MODLGrouper().fit({"day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)] * 30}, [0, 1] * 30)
    assert sorted(dates.partitions_["day"].groups) == [("2020-01-01",), ("2020-01-02",)]
    assert dates.transform({"day": [dt.date(2021, 1, 1)]}).tolist() == [[-1]]


def test_infinities_are_values():
    x = np.array([-np.inf] * 20 + [np.inf] * 20 + [0.0] * 20)
    y = np.repeat([0, 1, 2], 20)
    discretizer = MODLDiscretizer().fit(x[:, None], y)
    assert discretizer.partitions_["x0"].n_parts == 3
    assert discretizer.transform([[-np.inf], [0.0], [np.inf]]).ravel().tolist() == [0, 1, 2]


def test_missing_values_alone():
    x = np.array([np.nan] * 30 + list(range(30)) + list(range(30, 60)))
    y = np.repeat([1, 0, 1], 30)
    partition = MODLDiscretizer().fit(x[:, None], y).partitions_["x0"]
    assert partition.missing_alone
    assert partition.labels == ("missing", "]-inf, 29.5]", "]29.5, +inf[")
    assert partition.apply([None, 0.0, 40.0]).tolist() == [0, 1, 2]


def test_columns_that_tell_nothing():
    y = [0, 1] * 50
    X = {
        "constant": [1.0] * 100,
        "nothing": [None] * 100,
        "one word": ["a"] * 100,
        "all distinct": [f"row {i}" for i in range(100)],
        "distinct numbers": np.random.default_rng(0).normal(size=100),
    }
    encoder = MODLEncoder().fit(X, y)
    assert set(encoder.levels_.values()) == {0.0}
    assert all(p.n_parts == 1 for p in encoder.partitions_.values())
    assert MODLEncoder(encode="evidence").fit(X, y).transform(X).any() is np.False_


@pytest.mark.parametrize("transformer", [MODLDiscretizer, MODLGrouper, MODLEncoder])
@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        ({"a": [1, 2]}, [0, None], None, "target y is missing in 1 row"),
        ({"a": [1, 2]}, ["x", "x"], None, "target y is constant.*'x'"),
        ({"a": [1]}, [0], None, "constant"),
        ({"a": []}, [], None, "no rows"),
        (np.empty((0, 3)), [], None, "no rows"),
        (np.empty((3, 0)), [0, 1, 0], None, "minimum of 1"),
        ({}, [0, 1], None, "minimum of 1"),
        ({"a": [1, 2]}, None, None, "requires y"),
        ({"a": [1, 2]}, [0, 1, 2], None, "inconsistent numbers of samples"),
        ({"a": [1, 2]}, [0.5, 0.5], None, "constant, it is 0.5 in all rows"),
        ({"a": [1, 2]}, [0, 1], [1, -1], "not negative"),
        ({"a": [1, 2]}, [0, 1], [1, 0.5], "whole"),
        ({"a": [1, 2]}, [0, 1], [0, 0], "zero everywhere"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1], None, "'a' appears more than once"),
    ],
)
def test_bad_input(transformer, X, y, weights, message):
    with pytest.raises(ValueError, match=message):
        transformer().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("transformer", [MODLDiscretizer, MODLGrouper, MODLEncoder])
def test_a_column_of_lists_is_refused(transformer, library):
    with pytest.raises(TypeError, match="column 'bad' holds values of type"):
        transformer().fit(LIBRARIES[library]({"bad": [[1], [2, 3]]}), [0, 1])


def test_other_columns_than_those_fitted():
    X, y = columns()
    frame = pd.DataFrame(X)
    encoder = MODLEncoder().fit(frame, y)
    with pytest.raises(ValueError, match="same order"):
        encoder.transform(frame[list(X)[::-1]])
    with pytest.raises(ValueError, match="now missing"):
        encoder.transform(frame.drop(columns="noise"))
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform({"a": [1]})
    unnamed = MODLEncoder().fit(np.eye(3), [0, 1, 0])
    with pytest.raises(ValueError, match="X has 1 features, but MODLEncoder is expecting 3"):
        unnamed.transform({"a": [1]})
    with pytest.raises(ValueError, match="'signal' held numbers when fitted and holds 'x' now"):
        encoder.transform({**{name: values[:1] for name, values in X.items()}, "signal": ["x"]})


@pytest.mark.parametrize(
    "wrong", [{"encode": "binary"}, {"search": "fast"}, {"n_jobs": 1.5}, {"short_bounds": "yes"}]
)
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MODLEncoder(**wrong).fit(np.eye(4), [0, 1, 0, 1])


def test_many_distinct_strings_are_settled():
    n = 100_000
    X = pl.DataFrame({"id": [f"customer {i}" for i in range(n)]})
    y = np.random.default_rng(0).integers(0, 2, n)
    encoder = MODLEncoder().fit(X, y)
    assert encoder.partitions_["id"].n_parts == 1
    assert encoder.levels_["id"] == 0.0
    assert encoder.transform(X[:3]).ravel().tolist() == [0, 0, 0]
    assert encoder.transform({"id": ["customer x"]}).ravel().tolist() == [-1]


def test_columns_named_by_numbers_have_one_name_everywhere():
    X, y = columns()
    frame = pd.DataFrame({0: X["signal"], 7: X["noise"]}).astype(float)
    encoder = MODLEncoder().fit(frame, y)
    assert list(encoder.partitions_) == encoder.get_feature_names_out().tolist() == ["0", "7"]


def test_numbers_in_place_of_text_are_refused_rather_than_unseen():
    grouper = MODLGrouper().fit({"code": ["1", "2"] * 20}, [0, 1] * 20)
    with pytest.raises(ValueError, match="column 'code' held text when fitted"):
        grouper.transform({"code": [1, 2]})
