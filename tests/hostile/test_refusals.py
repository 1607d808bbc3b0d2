"""What is refused is refused in Damier's own words; what is taken is taken as it is."""

from __future__ import annotations

import datetime
import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.base import is_classifier

import damier
from damier.intake import read_file, read_table
from tests.hostile.promises import OBEYED

CLASSIFIERS = sorted(
    name
    for name in damier.__all__
    if inspect.isclass(getattr(damier, name)) and is_classifier(getattr(damier, name)())
)
BIG = 2**53
HALF = "a\ud800"  # half a character: no encoding writes it


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_ragged_tables_and_targets(name):
    with pytest.raises(ValueError, match="one label per row, not lists"):
        getattr(damier, name)().fit(np.eye(3), [[1, 2], [3], [4]])
    with pytest.raises(ValueError, match="its rows differ in length"):
        getattr(damier, name)().fit([[1, 2], [3], [4]], [0, 1, 0])


@pytest.mark.parametrize("name", ["Coclustering", "CoclusteringClassifier"])
def test_tables_that_hold_no_counts(name):
    fit = getattr(damier, name)().fit
    with pytest.raises(ValueError, match="'x' appears more than once"):
        fit(pd.DataFrame([["a", "b"]] * 4, columns=["x", "x"]), [0, 1, 0, 1])
    for text in (np.array([["a", "b"]] * 2), [["a", 1]] * 2):
        with pytest.raises(ValueError, match="X holds text"):
            fit(text, [0, 1])
    day = np.datetime64("2020-01-01", "D")
    for dates in (np.array([[day, day]] * 2), np.array([[day.item(), 1]] * 2, dtype=object)):
        with pytest.raises(ValueError, match="X holds dates"):
            fit(dates, [0, 1])
    with pytest.raises(ValueError, match="infinity"):  # and no warning
        fit(np.array([[np.inf, 1], [1, -np.inf]]), [0, 1])
    for total in (1e300, 2.0**62, 9.007e15):
        with pytest.raises(ValueError, match="can be coclustered"):
            fit(np.full((4, 4), total), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="masked"):
        fit(np.ma.masked_equal(np.arange(4).reshape(2, 2), 3), [0, 1])


def test_graphs_of_what_has_no_distance():
    for X, words in (
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "'b' holds categories"),
        ([["a", "b"], ["c", "d"]], "holds categories"),
        (np.array([[1 + 2j, 3], [2, 4]]), "Complex data not supported"),
        (np.ma.masked_array([[1.0, 2], [3, 4]], mask=[[0, 0], [0, 1]]), "missing"),
    ):
        with pytest.raises(ValueError, match=words):
            damier.gabriel_graph(X)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "dict"])
def test_half_characters_in_frames(backend):
    X, y = {f"x{HALF}": [HALF, "b"] * 20, "z": ["u", "v"] * 20}, [HALF, "y"] * 20
    coclustering = damier.Coclustering().fit(X)
    frames = [
        damier.MODLGrouper().fit(X, y).partitions_["z"].to_frame(backend=backend),
        damier.rank_pairs(X, y, backend=backend),
        damier.DataGridClassifier(effort=1).fit(X, y).model_.to_frame(backend=backend),
        coclustering.clusters("rows", backend=backend),
        coclustering.blocks(backend=backend),
    ]
    assert all(len(frame) > 0 for frame in frames)


@pytest.mark.parametrize(
    "form",
    [
        list,
        np.array,
        lambda v: np.array(v, dtype=np.uint64),
        lambda v: np.array(v, dtype=object),
        pd.Series,
        lambda v: pd.Series(v, dtype="Int64"),
        pl.Series,
        pa.array,
    ],
)
def test_identifiers_beyond_2_to_the_53_stay_apart(form):
    ids, y = [BIG, BIG + 1] * 20, [0, 1] * 20
    grouper = damier.MODLGrouper().fit({"id": form(ids)}, y)
    assert grouper.partitions_["id"].groups == ((BIG,), (BIG + 1,))
    assert np.asarray(grouper.transform({"id": form(ids[:2])})).ravel().tolist() == [0, 1]
    found = damier.Coclustering().fit({"id": form(ids), "what": ["a", "b"] * 20})
    assert found.model_.n_row_clusters == 2


def test_identifiers_with_missing_ones():
    ids = [BIG, BIG + 1, None] * 20
    for column in (pd.Series(ids, dtype="Int64"), pl.Series(ids), pa.array(ids), np.array(ids, dtype=object)):
        groups = damier.MODLGrouper().fit({"id": column}, [0, 1, 2] * 20).partitions_["id"].groups
        assert sorted(groups, key=str) == sorted([(BIG,), (BIG + 1,), (None,)], key=str)


def test_variables_named_as_the_columns_of_frames():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 200)
    X = {"count": a + 0.5, "expected": (a + rng.integers(0, 2, 200)) % 3 + 0.5, "information": a % 2 + 0.5}
    cells = damier.DataGridClustering().fit(X).model_.cells(backend="dict")
    assert len(cells) == len(X) + 3
    balls = damier.BallPartitionClassifier().fit(
        np.arange(10.0)[:, None], np.array([1, "1"] * 5, dtype=object)
    )
    assert len({name for name in balls.model_.to_frame(backend="dict") if name.startswith("share")}) == 2


def test_numbers_at_the_end_of_the_range():
    X, y = np.array([[1e308, 1], [1.5e308, 2], [-1e308, 4], [1e308, 1]] * 5), [0, 1, 1, 0] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in CLASSIFIERS:
            if name != "CoclusteringClassifier":
                assert len(getattr(damier, name)().fit(X, y).predict(X)) == 20
    assert damier.LinfClassifier(n_estimators=True).fit(X, y).classes_.tolist() == [0, 1]


def test_counts_that_are_no_numbers():
    for wrong, kind, words in (
        (1 + 2j, ValueError, "Complex data not supported"),
        (pd.NA, ValueError, "a count cannot be missing"),
        (object(), TypeError, "X holds object"),
    ):
        with pytest.raises(kind, match=words):
            damier.Coclustering().fit(np.array([[1, 2], [wrong, 3]], dtype=object))


def test_dates_far_off_with_missing_ones():
    days = [datetime.date(9999, 12, 31), None, datetime.date(1, 1, 1)]
    (column,) = read_table(pa.table({"d": days})).columns
    (expected,) = read_table({"d": days}).columns
    assert np.array_equal(column.values, expected.values, equal_nan=True)
    assert np.isnan(column.values[1])


def test_ways_of_reading_that_there_are_not(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n1,2\n3,4\n")
    for option, value in [
        *(("encoding", name) for name in ("no such", "rot13", "", "\0")),
        *(("separator", mark) for mark in ("", HALF, "ab", '"', "\n", "\r")),
    ]:
        with pytest.raises(ValueError, match=f"{option} must be .* got "):
            read_file(file, **{option: value})
    assert read_file(file, missing=[HALF]).n_rows == 2


def test_targets_of_sources_beyond_2_to_the_53_stay_apart(tmp_path):
    ids = [BIG, BIG + 1] * 30
    pyarrow.parquet.write_table(pa.table({"x": [0.0, 1.0] * 30, "y": ids}), tmp_path / "t.parquet")
    for limit in (0, None):
        encoder = damier.MODLEncoder(memory_limit=limit).fit(tmp_path / "t.parquet", "y")
        assert encoder.classes_.tolist() == [BIG, BIG + 1]


@pytest.mark.parametrize("limit", [0, None])
def test_sources_that_cannot_be_trained_on(tmp_path, limit):
    alone, twice = pa.table({"y": [0, 1] * 20}), pa.table({"x": [1, 2], "X": [3, 4], "y": [0, 1]})
    pyarrow.parquet.write_table(alone, tmp_path / "alone.parquet")
    pyarrow.csv.write_csv(alone, tmp_path / "alone.csv")
    pyarrow.parquet.write_table(twice, tmp_path / "twice.parquet")
    pyarrow.csv.write_csv(twice, tmp_path / "twice.csv")
    for ending in ("parquet", "csv"):
        for estimator in (damier.MODLEncoder, damier.NaiveBayesClassifier, damier.DataGridClassifier):
            fit = estimator(memory_limit=limit).fit
            with pytest.raises(ValueError, match="no column beside the target 'y'"):
                fit(tmp_path / f"alone.{ending}", "y")
            with pytest.raises(ValueError, match="columns 'x' and 'X', which DuckDB does not tell apart"):
                fit(tmp_path / f"twice.{ending}", "y")
            with pytest.raises(ValueError, match="not a name of a file"):
                fit("n" * 300 + f".{ending}", "y")
    pyarrow.parquet.write_table(
        pa.table({"x": [1, 2], "x_1": [3, 4], "y": [0, 1]}), tmp_path / "fine.parquet"
    )
    assert damier.MODLEncoder(memory_limit=limit).fit(tmp_path / "fine.parquet", "y").n_features_in_ == 2


def test_numbers_to_predict_that_cannot_be_squared():
    for name in ("DataGridRegressor", "NaiveBayesRegressor"):
        with pytest.raises(ValueError, match=r"holds 1e.151: squares beyond 1e.150 overflow"):
            getattr(damier, name)().fit(np.arange(20.0)[:, None], np.arange(20) * 1e151 / 19)


def test_models_print_nothing_that_a_terminal_obeys():
    name = "a\x1b[2J\u202e"
    X, y = {name: ["u", "v"] * 30, "z": [0.5, 1.5] * 30}, ["no", name] * 30
    models = [
        damier.MODLGrouper().fit(X, y).partitions_[name],
        damier.DataGridClassifier(effort=1).fit(X, y).model_,
        damier.LinfClassifier(n_estimators=1).fit(X, y).model_.covers[0],
    ]
    for text in [form(model) for model in models for form in (repr, str)]:
        assert not OBEYED.search(text)
        assert "a\\x1b[2J" in text
