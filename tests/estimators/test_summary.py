"""Names that other libraries take, sparse columns, and one frame of all columns."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import damier
from damier import MODLEncoder
from damier.intake.frames import read_table

N = 300


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = pd.DataFrame(
        {
            "âge (ans)": rng.integers(20, 60, N) + 15.0 * y,
            "age ans": rng.normal(y),
            "sex": np.where(rng.random(N) < 0.8, np.where(y == 1, "male", "female"), None),
            "city": rng.choice(["Paris", "Lyon", "[x]<y>", "a:b"], N),
        }
    )
    X.loc[:4, "âge (ans)"] = np.nan
    return X, y


@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence"])
def test_plain_names_are_plain_and_distinct(data, encode):
    X, y = data
    encoder = MODLEncoder(encode=encode, feature_names="plain").fit(X, y)
    names = encoder.get_feature_names_out().tolist()
    assert len(names) == len(set(names)) == encoder.transform(X).shape[1]
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names)
    labels = MODLEncoder(encode=encode).fit(X, y).get_feature_names_out()
    assert len(labels) == len(names)
    if encode == "ordinal":
        assert names == ["age_ans", "age_ans_2", "sex", "city"]
    if encode == "evidence":
        assert names[:2] == ["age_ans_for_0", "age_ans_for_1"]
    if encode == "onehot":
        assert {"sex_is_male", "sex_is_female"} <= set(names)
        assert names[0] == "age_ans_0"


def test_plain_names_stay_distinct_however_they_collide():
    X = {"a": ["x", "y"] * 50, "a ": ["x", "y"] * 50, "a_2": ["x", "y"] * 50, "a-": ["x", "y"] * 50}
    y = [0, 1] * 50
    for encode in ("ordinal", "onehot"):
        names = MODLEncoder(encode=encode, feature_names="plain").fit(X, y).get_feature_names_out()
        assert len(set(names)) == len(names)


def test_sparse_columns_are_the_dense_ones(data):
    X, y = data
    dense = MODLEncoder(encode="onehot").fit(X, y)
    thin = MODLEncoder(encode="onehot", sparse_output=True).fit(X, y)
    new = X.assign(city="never seen")
    for table in (X, new, X.iloc[:0]):
        written = thin.transform(table)
        assert sparse.issparse(written)
        assert written.format == "csr"
        np.testing.assert_array_equal(written.toarray(), dense.transform(table))
    with pytest.raises(ValueError, match="sparse_output=True needs encode='onehot'"):
        MODLEncoder(sparse_output=True).fit(X, y)


@pytest.mark.parametrize("encode", ["onehot", "evidence"])
@pytest.mark.filterwarnings("ignore")
def test_lightgbm_takes_the_names(data, encode):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data
    encoder = MODLEncoder(encode=encode, feature_names="plain").set_output(transform="pandas")
    frame = encoder.fit_transform(X, y)
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(frame, y)
    assert model.feature_name_ == encoder.get_feature_names_out().tolist()
    assert model.score(frame, y) > 0.7


@pytest.mark.parametrize("encode", ["onehot", "evidence"])
@pytest.mark.filterwarnings("ignore")
def test_xgboost_takes_the_names(data, encode):
    xgboost = pytest.importorskip("xgboost")
    X, y = data
    encoder = MODLEncoder(encode=encode, feature_names="plain").set_output(transform="pandas")
    frame = encoder.fit_transform(X, y)
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(frame, y)
    assert model.get_booster().feature_names == encoder.get_feature_names_out().tolist()
    thin = MODLEncoder(encode="onehot", sparse_output=True).fit(X, y)
    assert (
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1).fit(thin.transform(X), y).score(thin.transform(X), y)
        > 0.7
    )


@pytest.mark.parametrize("library", [pd.DataFrame, lambda X: pl.from_pandas(X)], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", ["MODLEncoder", "NaiveBayesClassifier"])
def test_one_frame_of_all_columns(data, name, library):
    X, y = data
    fitted = getattr(damier, name)().fit(library(X), y)
    summary = fitted.summary_
    assert type(summary) is type(library(X))
    held = summary.to_dict(as_series=False) if isinstance(summary, pl.DataFrame) else summary.to_dict("list")
    assert held["name"] == list(X)
    assert held["type"] == ["numeric", "numeric", "categorical", "categorical"]
    assert held["parts"] == [fitted.partitions_[c].n_parts for c in X]
    assert held["level"] == list(fitted.levels_.values())
    assert held["missing"] == X.isna().sum().tolist()
    assert held["distinct"] == X.nunique().tolist()
    assert held["optimal"] == [fitted.partitions_[c].optimal for c in X]
    if name == "NaiveBayesClassifier":
        assert held["weight"] == fitted.weights_.tolist()


def test_the_columns_of_grids(data):
    X, y = data
    summary = damier.DataGridClassifier(effort=1).fit(X, y).summary_
    assert summary["selected"].any()
    assert ((summary["parts"] > 1) == summary["selected"]).all()
    many = damier.DataGridEnsembleClassifier(effort=1, n_grids=3).fit(X, y).summary_
    assert many["weight"].between(0, 1 + 1e-9).all()
    cells = damier.DataGridClustering().fit(X).summary_
    assert cells["parts"].min() >= 1


def test_the_axes_of_a_coclustering():
    table = np.random.default_rng(0).poisson(np.kron([[4.0, 0.2], [0.2, 3.0]], np.ones((10, 8))))
    table[:, 3] = 0
    found = damier.Coclustering().fit(table)
    summary = found.summary_
    assert summary["values"].tolist() == [20, 16]
    assert summary["clusters"].tolist() == [
        len(set(found.row_labels_)),
        len(set(found.column_labels_) - {-1}),
    ]
    assert summary["empty"].tolist() == [0, 1]
    i, j = np.nonzero(table)
    pairs = pl.DataFrame({"customer": i, "product": j})
    assert damier.Coclustering().fit(pairs).summary_["name"].to_list() == ["customer", "product"]


def test_missing_values_are_not_distinct_values():
    table = read_table({"n": [1.0, None, 1.0, 2.0], "t": ["a", None, "a", "b"], "e": [None] * 4})
    assert [column.n_distinct for column in table] == [2, 2, 0]
