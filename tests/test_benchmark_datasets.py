"""The loader says where a data set came from, and never dresses one up as another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks import datasets


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("DAMIER_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "ROOT", tmp_path / "repository")
    return tmp_path


def test_folder_comes_first_and_is_named(nowhere):
    frame = pd.DataFrame({"x": [1.0, None], "class": ["a", "b"], "split": ["train", "test"]})
    frame.to_parquet(nowhere / "iris.parquet")
    data = datasets.load("iris")
    assert list(data.X.columns) == ["x"]
    assert data.y.tolist() == ["a", "b"]
    assert data.source == f"folder {nowhere.name}"
    assert data.part("test").y.tolist() == ["b"]


def test_without_a_folder_iris_is_scikit_learns():
    data = datasets.load("iris")
    assert data.X.shape == (150, 4)
    assert data.y.value_counts().to_dict() == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert "scikit-learn" in data.source


def test_generated_sets_follow_their_definition():
    led = datasets.load("led17")
    assert led.X.shape == (10_000, 24)
    eights = led.X[led.y == "8"].iloc[:, :7]  # all seven segments lit, one in ten inverted
    assert eights.to_numpy().mean() == pytest.approx(0.9, abs=0.01)
    orange = datasets.load("orange10")
    radius = (orange.X.to_numpy()[:, :4] ** 2).sum(axis=1)[orange.y.to_numpy() == "1"]
    assert radius.min() >= 9
    assert radius.max() <= 16
    assert np.isin(orange.split, ["train", "test"]).all()


def test_unknown_names_say_what_to_do():
    with pytest.raises(datasets.DataUnavailableError, match="DAMIER_DATA"):
        datasets.load("no_such_table")
