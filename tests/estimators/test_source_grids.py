"""Grids of a table that an engine holds: found on a sample, counted on all rows."""

from __future__ import annotations

import time

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import damier
from damier.criteria import discretization_cost, grid_cost, grouping_cost
from damier.fit import source_grids
from damier.models.partition import GroupPartition
from tests.estimators.test_sources import Changing

N = 20_000


@pytest.fixture(scope="module")
def rows():
    """Classes by an exclusive or of a number and a category of 60 values, five of them rare."""
    rng = np.random.default_rng(0)
    x = rng.random(N)
    share = np.r_[np.ones(55), np.full(5, 0.002)]
    word = rng.choice(60, N, p=share / share.sum())
    y = ((x > 0.37) ^ (word % 2 == 0)) ^ (rng.random(N) < 0.1)
    return pa.table(
        {
            "x": pa.array(x, mask=rng.random(N) < 0.05),
            "word": [f"w{k}" for k in word],
            "noise": rng.normal(size=N),
            "y": np.where(y, "yes", "no"),
            "times": rng.integers(0, 3, N),
        }
    )


def relation(rows, names):
    connection = duckdb.connect()
    connection.register("held", rows.select(names))
    return connection.sql("SELECT * FROM held")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(source_grids.find_source_grids, "__kwdefaults__", {"sample_rows": 2000, "seed": 0})


def check(grid, rows, weights=None):
    """The counts and costs of a grid against those of all rows, read in memory."""
    parts = grid.find_parts(rows)
    y = np.array(rows["y"].to_pylist()) == "yes"
    weights = np.ones(N, int) if weights is None else weights
    assert (parts[weights > 0] >= 0).all()  # values that the sample lacks have a group too
    assert grid.cells.counts.sum() == weights.sum()
    for cell, counts in zip(grid.cells.parts, grid.cells.counts, strict=True):
        inside = (parts == cell).all(axis=1)
        np.testing.assert_array_equal(counts, np.bincount(y[inside], weights[inside], minlength=2))
    groups, intervals = [], []
    for k, partition in enumerate(grid.partitions.values()):
        table = np.array(
            [np.bincount(y[parts[:, k] == p], weights[parts[:, k] == p], 2) for p in range(partition.n_parts)]
        )
        np.testing.assert_array_equal(partition.counts, table)
        if isinstance(partition, GroupPartition):
            n_values = len(set(np.array(rows[partition.name].to_pylist())[weights > 0]))
            assert partition.cost == pytest.approx(grouping_cost(partition.counts, n_values))
            groups.append((n_values, partition.n_parts))
        else:
            assert partition.cost == pytest.approx(discretization_cost(partition.counts))
            intervals.append(partition.n_parts)
    assert grid.cost == pytest.approx(grid_cost(grid.cells.counts, grid.n_variables, intervals, groups))
    assert grid.null_cost == pytest.approx(
        grid_cost(grid.cells.counts.sum(axis=0, keepdims=True), grid.n_variables)
    )


@pytest.mark.parametrize("weight", [None, "times"])
def test_a_grid_has_the_counts_of_all_rows(rows, weight):
    names = ["x", "word", "noise", "y", *([weight] if weight else [])]
    found = damier.DataGridClassifier(memory_limit=0).fit(relation(rows, names), "y", sample_weight=weight)
    assert found.grid_.variables == ("x", "word")
    assert 1000 < found.sample_rows_ < 2500  # those of weight 0 do not count
    assert found.source_.sample_rows == found.sample_rows_
    assert found.source_.rows == N
    assert found.feature_names_in_.tolist() == ["x", "word", "noise"]
    check(found.grid_, rows, None if weight is None else rows["times"].to_numpy())
    X, y = rows.select(["x", "word", "noise"]), rows["y"].to_pylist()
    if weight is None:
        whole = damier.DataGridClassifier().fit(X, y)
        assert found.grid_.level > 0.95 * whole.grid_.level
    assert found.score(X, y) > 0.85


def test_an_ensemble(rows):
    found = damier.DataGridEnsembleClassifier(n_grids=5, effort=1, memory_limit=0).fit(
        relation(rows, ["x", "word", "noise", "y"]), "y"
    )
    for grid in found.grids_:
        check(grid, rows)
    assert found.weights_.sum() == pytest.approx(1.0)
    assert found.score(rows.select(["x", "word", "noise"]), rows["y"].to_pylist()) > 0.8


def test_values_beyond_the_listed_ones_are_counted_too(rows, monkeypatch):
    monkeypatch.setattr(source_grids, "_MOST_VALUES", 40)
    words = np.array(rows["word"].to_pylist())
    n_values = len(set(words))
    with pytest.warns(UserWarning, match=f"'word' has {n_values - 40} values beyond the 40 most frequent"):
        found = damier.DataGridClassifier(memory_limit=0).fit(relation(rows, ["x", "word", "y"]), "y")
    grid = found.grid_
    assert grid.cells.counts.sum() == N
    listed = {value for group in grid.partitions["word"].groups for value in group}
    assert len(listed) == 40
    assert found.source_.left_out == {"word": (n_values - 40, int((~np.isin(words, list(listed))).sum()))}
    groups = [(n_values, grid.partitions["word"].n_parts)]
    intervals = [grid.partitions["x"].n_parts]
    assert grid.cost == pytest.approx(grid_cost(grid.cells.counts, 2, intervals, groups))
    # All rows of a listed value are where it is: the rest are in one group.
    y = np.array(rows["y"].to_pylist()) == "yes"
    seen = np.isin(words, list(listed))
    parts = grid.partitions["word"].apply(words.tolist())
    tables = np.array(
        [np.bincount(y[parts == g], minlength=2) for g in range(grid.partitions["word"].n_parts)]
    )
    more = grid.partitions["word"].counts - tables
    assert (more.sum(axis=1) > 0).sum() == 1
    np.testing.assert_array_equal(more.sum(axis=0), np.bincount(y[~seen], minlength=2))


@pytest.mark.parametrize("estimator", [damier.DataGridClassifier, damier.DataGridEnsembleClassifier])
def test_a_time_limit_is_for_the_search(rows, estimator, monkeypatch):
    """Neither the sample nor the counts on all rows are cut short; the search is."""
    drawn = source_grids.sample_rows_of

    def slow(*arguments):
        time.sleep(0.6)
        return drawn(*arguments)

    held = relation(rows, ["x", "word", "noise", "y"])
    estimator(memory_limit=0, effort=1).fit(held, "y")  # compiled
    monkeypatch.setattr(source_grids, "sample_rows_of", slow)
    found = estimator(memory_limit=0, time_limit=0.5).fit(held, "y")
    assert found.search_ended_ == "time limit"
    assert found.grid_.variables == ("x", "word")
    assert found.grid_.cells.counts.sum() == N


def test_a_grid_of_a_table_that_changes_is_refused(rows):
    connection = duckdb.connect()
    connection.register("rows", rows.select(["x", "word", "y"]))
    before = connection.sql("SELECT * FROM rows")
    after = connection.sql("SELECT * REPLACE ('new' AS y) FROM rows")
    for n_good in range(1, 5):
        with pytest.raises(ValueError, match="the table changed while it was read"):
            damier.DataGridClassifier(memory_limit=0, effort=0).fit(Changing(before, after, n_good), "y")


def test_noise_gives_no_grid(rows):
    found = damier.DataGridClassifier(memory_limit=0, effort=1).fit(relation(rows, ["noise", "y"]), "y")
    assert found.grid_.variables == ()
    assert found.grid_.cells.counts.sum() == N


def test_a_grid_of_one_number(rows):
    step = rows["noise"].to_numpy() > 0.3
    informed = rows.select(["noise"]).append_column("y", [np.where(step, "yes", "no").tolist()])
    found = damier.DataGridClassifier(memory_limit=0, effort=1).fit(relation(informed, ["noise", "y"]), "y")
    assert found.grid_.variables == ("noise",)
    check(found.grid_, informed)


def test_pairs(rows, monkeypatch):
    held = relation(rows, ["x", "word", "noise", "y"])
    X, y = rows.select(["x", "word", "noise"]), rows["y"].to_pylist()
    pairs = damier.rank_pairs(held, "y", backend="dict")
    expected = damier.rank_pairs(X, y, backend="dict")
    assert pairs == expected  # it fits: all rows are read
    with pytest.raises(ValueError, match="y must be the name of a column"):
        damier.rank_pairs(held, y)
