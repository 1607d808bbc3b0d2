"""DataGridClustering: grids over any variables without a target."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import DataGridClustering
from damier.deploy import load, save
from tests import naive


@parametrize_with_checks([DataGridClustering()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def grid_frame(n=600, seed=0):
    random = np.random.default_rng(seed)
    city = random.integers(0, 12, n)
    warm = np.where(city % 3 == 0, 20.0, 5.0) + random.normal(size=n)
    return pd.DataFrame(
        {
            "city": [f"city {c:02d}" for c in city],
            "warm": warm,
            "noise": random.normal(size=n),
            "rain": 30 - warm,
        }
    )


def test_a_table_of_variables_gets_a_grid():
    frame = grid_frame()
    model = DataGridClustering().fit(frame)
    parts = {name: partition.n_parts for name, partition in model.partitions_.items()}
    assert parts["noise"] == 1
    assert min(parts["city"], parts["warm"], parts["rain"]) > 1
    groups = {frozenset(group) for group in model.partitions_["city"].groups}
    assert frozenset(f"city {c:02d}" for c in (0, 3, 6, 9)) in groups
    instances = list(
        zip(*(model.partitions_[name].apply(frame[name]).tolist() for name in frame.columns), strict=True)
    )
    values = [frame["city"].tolist(), None, None, None]
    told = naive.unsupervised_grid_cost(instances, [parts[name] for name in frame.columns], values)
    assert model.cost_ == pytest.approx(told, rel=1e-9)
    nothing = naive.unsupervised_grid_cost([(0,) * 4] * len(frame), [1] * 4, values)
    assert model.null_cost_ == pytest.approx(nothing, rel=1e-9)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    assert model.cells()["count"].sum() == len(frame)
    assert model.predict(frame.assign(city="elsewhere")).tolist() == [-1] * len(frame)
    assert model.model_ is model.grid_
    assert model.search_ended_ == "complete"
    assert type(model.grid_).from_dict(json.loads(json.dumps(model.grid_.to_dict()))).cost == model.cost_


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, dict])
def test_the_grid_depends_neither_on_rows_nor_on_the_library(library):
    frame = grid_frame()
    first = DataGridClustering().fit(frame)
    shuffled = frame.sample(frac=1, random_state=1)
    second = DataGridClustering().fit(library(shuffled.to_dict("list")))
    assert second.cost_ == pytest.approx(first.cost_)
    assert {n: p.labels for n, p in second.partitions_.items()} == {
        n: p.labels for n, p in first.partitions_.items()
    }


def test_two_columns_of_numbers_get_a_grid_and_missing_comes_first():
    random = np.random.default_rng(0)
    x = random.uniform(size=500)
    y = x + random.normal(size=500) * 0.1
    x[:60] = np.nan
    y[:60] = 5.0 + random.uniform(size=60)
    model = DataGridClustering().fit(pd.DataFrame({"x": x, "y": y}))
    assert model.partitions_["x"].missing_alone
    assert model.partitions_["x"].n_parts > 3
    monotone = DataGridClustering().fit(pd.DataFrame({"x": np.exp(3 * x), "y": y**3}))
    assert monotone.cost_ == pytest.approx(model.cost_)
    np.testing.assert_array_equal(monotone.labels_, model.labels_)


def test_noise_and_constants_make_one_cell():
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"a": random.normal(size=300), "b": random.normal(size=300), "c": 1.0, "d": "x"})
    model = DataGridClustering().fit(frame)
    assert len(model.cells()) == 1
    assert model.level_ == 0.0


def test_variables_named_as_the_cells_columns_do_not_vanish():
    values = np.repeat(["a", "b"], 50)
    frame = {"count": values, "expected": values, "information": values}
    cells = DataGridClustering().fit(frame).cells(backend="dict")
    assert list(cells) == [
        *("count", "expected", "information"),
        *("count (2)", "expected (2)", "information (2)"),
    ]
    assert sum(cells["count (2)"]) == 100


def test_frames_and_arrays_are_scored_alike():
    frame = grid_frame()[["warm", "rain"]]
    model = DataGridClustering().fit(frame)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(frame.to_numpy()), model.labels_)
    assert model.fit_predict(frame.to_numpy()).tolist() == model.labels_.tolist()


def test_a_saved_grid_predicts_alike(tmp_path):
    frame = grid_frame()
    model = DataGridClustering().fit(pl.from_pandas(frame))
    save(model, tmp_path / "grid.json")
    again = load(tmp_path / "grid.json")
    np.testing.assert_array_equal(again.predict(frame[frame.columns[::-1]]), model.labels_)
    assert again.cells(backend="dict") == model.grid_.cells(backend="dict")
    assert isinstance(model.cells(), pl.DataFrame)


def test_time_limit_and_interruption_leave_a_grid():
    frame = grid_frame()
    limited = DataGridClustering(time_limit=0.0).fit(frame)
    assert limited.search_ended_ == "time limit"
    assert len(limited.labels_) == len(frame)
