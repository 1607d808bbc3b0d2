"""The transformers against a target that is a number."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from damier import DataGridRegressor, MODLDiscretizer, MODLEncoder, MODLGrouper, NaiveBayesRegressor
from damier.deploy.json import dumps, loads


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 600
    size = rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue", "grey"], n)
    noise = rng.normal(size=n)
    y = 2 * size + 3 * np.isin(colour, ["red", "blue"]) + 0.3 * rng.normal(size=n)
    size[:40] = np.nan
    return pd.DataFrame({"size": size, "colour": colour, "noise": noise}), y


def test_parts_of_columns_and_of_the_target(data):
    X, y = data
    encoder = MODLEncoder(encode="mean").fit(X, y)
    size, colour, noise = encoder.partitions_.values()
    assert size.n_parts > 2
    assert sorted(map(sorted, colour.groups)) == [["blue", "red"], ["green", "grey"]]
    assert noise.n_parts == 1
    assert noise.target_bounds == ()
    assert encoder.levels_["noise"] == 0.0
    assert not hasattr(encoder, "classes_")
    assert size.counts.shape == (size.n_parts, len(size.target_bounds) + 1)
    assert size.gain_per_row == pytest.approx((size.null_cost - size.cost) / len(y))
    written = encoder.transform(X)
    for j, partition in enumerate(encoder.partitions_.values()):
        parts = partition.apply(X.iloc[:, j])
        means = np.array([y[parts == part].mean() for part in range(partition.n_parts)])
        assert written[:, j] == pytest.approx(means[parts])


@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence", "mean", "median"])
def test_saved_and_loaded(data, encode):
    X, y = data
    encoder = MODLEncoder(encode=encode).fit(X, y)
    loaded = loads(dumps(encoder))
    assert np.array_equal(loaded.transform(X), encoder.transform(X))
    assert encoder.transform(X).shape[1] == len(encoder.get_feature_names_out())
    plain = MODLEncoder(encode=encode, feature_names="plain").fit(X, y)
    assert len(set(plain.get_feature_names_out())) == encoder.transform(X).shape[1]


def test_a_category_never_seen_has_the_mean_of_all_rows(data):
    X, y = data
    grouper = MODLGrouper(encode="mean").fit(X[["colour"]], y)
    assert grouper.transform(pd.DataFrame({"colour": ["pink"]}))[0, 0] == pytest.approx(y.mean())
    grouper = MODLGrouper(encode="median").fit(X[["colour"]], y)
    assert grouper.transform(pd.DataFrame({"colour": ["pink"]}))[0, 0] == pytest.approx(np.median(y))


def test_neither_row_order_nor_threads_nor_library_nor_weights_change_the_result(data):
    X, y = data
    first = dumps(MODLEncoder().fit(X, y))
    again = np.random.default_rng(1).permutation(len(y))
    assert dumps(MODLEncoder(n_jobs=2).fit(X.iloc[again], y[again])) == first
    assert dumps(MODLEncoder().fit(pl.from_pandas(X), pl.Series(y))) == first
    twice = dumps(MODLEncoder().fit(X, y, sample_weight=np.full(len(y), 2)))
    assert twice == dumps(MODLEncoder().fit(pd.concat([X, X]), np.concatenate([y, y])))
    kept = np.arange(len(y)) % 3 > 0
    assert dumps(MODLEncoder().fit(X, y, sample_weight=kept.astype(int))) == dumps(
        MODLEncoder().fit(X[kept], y[kept])
    )


def test_whole_numbers_are_asked_about(data):
    X, _ = data
    y = np.arange(len(X)) % 300
    with pytest.raises(
        ValueError, match=r"looks like a number: 300 values in 600 rows\. Say target='number'"
    ):
        MODLEncoder().fit(X, y)
    assert MODLEncoder(target="number").fit(X, y).partitions_["noise"].target is not None
    assert MODLEncoder(target="classes").fit(X, y).partitions_["noise"].target is None
    few = MODLEncoder(target="number", encode="mean").fit(X, y % 7)
    assert few.partitions_["noise"].target.mean == pytest.approx((y % 7).mean())


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0.5] * 599 + [np.nan], {}, "the target y is missing in 1 row"),
        ([0.5] * 599 + [np.inf], {}, "the target y contains infinity"),
        ([0.5] * 600, {}, "the target y is constant, it is 0.5 in all rows"),
        (["a", "b"] * 300, {"target": "number"}, "the target y must be a number, it holds 'a'"),
        ([0, 1] * 300, {"encode": "mean"}, "encode='mean' needs a target that is a number"),
        ([0.5, 1] * 300, {"target": "classes"}, "fractional numbers, not classes"),
        ([0.5, 1] * 300, {"group_classes": True}, "group_classes=True needs a target of classes"),
        ([0.5, 1] * 300, {"semi_supervised": "bounds"}, "semi_supervised='bounds' needs a target of classes"),
    ],
)
def test_refused_in_one_sentence(data, y, options, message):
    with pytest.raises(ValueError, match=message):
        MODLEncoder(**options).fit(data[0], y)


def test_in_a_pipeline(data):
    X, y = data
    model = make_pipeline(MODLEncoder(encode="median"), LinearRegression())
    assert cross_val_score(model, X, y, cv=3).min() > 0.6
    frame = MODLEncoder(encode="mean").set_output(transform="pandas").fit_transform(X, y)
    assert list(frame.columns) == ["size", "colour", "noise"]


def test_sparse_columns_and_dates():
    from scipy import sparse

    rng = np.random.default_rng(2)
    X = sparse.random(300, 3, 0.3, format="csr", random_state=0)
    y = X.toarray()[:, 0] + 0.01 * rng.normal(size=300)
    assert MODLDiscretizer().fit(X, y).partitions_["x0"].n_parts > 1
    days = pd.Series(pd.date_range("2020-01-01", periods=300))
    found = MODLDiscretizer(short_bounds=True).fit(pd.DataFrame({"day": days}), np.arange(300) + 0.5)
    assert found.partitions_["day"].kind == "datetime"
    assert "2020" in found.partitions_["day"].labels[0]


def test_summary(data):
    X, y = data
    summary = MODLEncoder().fit(X, y).summary_
    assert summary["parts"].tolist()[2] == 1


@pytest.mark.parametrize("kind", [NaiveBayesRegressor, DataGridRegressor])
def test_regressors_read_tables_of_engines_that_fit(kind, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "word": rng.choice(["a", "b"], 200)})
    frame["y"] = frame["x"] ** 2 + (frame["word"] == "a") + rng.normal(scale=0.1, size=200)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fitted = kind().fit(frame[["x", "word"]], frame["y"])
    for source in (duckdb.from_df(frame), str(tmp_path / "t.csv")):
        found = kind().fit(source, "y")
        assert found.source_.collected
        np.testing.assert_allclose(found.predict(frame[["x", "word"]]), fitted.predict(frame[["x", "word"]]))
    with pytest.raises(ValueError, match="y must be the name of a column of X"):
        kind().fit(duckdb.from_df(frame), frame["y"])
