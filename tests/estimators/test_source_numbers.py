"""A numeric target of a table that an engine holds: the models of the same rows in memory."""

import dataclasses

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import damier
from damier.criteria import regression_cost
from damier.deploy.json import dumps, loads
from damier.fit import source_grids, source_numbers
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import ALL, parts_of
from damier.intake.engines.source import open_source, read_labels
from tests.estimators.test_sources import Changing, relation

N = 80_000
FEATURES = ["step", "wave", "noise", "round", "flag", "word"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    u = rng.random((N, 4))
    word = np.array([f"w{i}" for i in range(200)])[(rng.pareto(1.0, N) * 9).astype(int) % 200]
    effect = {w: rng.normal() for w in np.unique(word)}
    flag = rng.random(N) < 0.3
    smooth = np.sin(5 * u[:, 1]) + flag + np.array([effect[w] for w in word]) + 0.4 * rng.normal(size=N)
    return pa.table(
        {
            "step": pa.array(u[:, 0] * 100, mask=rng.random(N) < 0.05),
            "wave": u[:, 1],
            "noise": rng.normal(size=N),
            "round": np.round(u[:, 1] + 0.1 * u[:, 3], 2),
            "flag": flag,
            "word": pa.array(word, mask=rng.random(N) < 0.01),
            "smooth": smooth + 2.0 * (u[:, 0] > 0.37),
            # Sharp on both sides: no bin, however small, may lie across.
            "gaps": np.floor(u[:, 0] * 7) + 0.9 * rng.random(N),
            "whole": np.round(10 * smooth),
            "times": rng.integers(0, 3, N),
        }
    )


def assert_alike(found, expected):
    """Parts and intervals of the target are as good, and means and quantiles near."""
    for name, held in found.partitions_.items():
        other = expected.partitions_[name]
        assert held.counts.sum() == other.counts.sum()
        n_values = sum(map(len, other.groups)) if hasattr(other, "groups") else None
        assert held.cost == pytest.approx(regression_cost(held.counts, n_values))
        gain, most = held.null_cost - held.cost, other.null_cost - other.cost
        assert gain >= 0.9999 * most, name
        assert held.n_parts <= other.n_parts + 1, name
        if held.n_parts == other.n_parts and np.array_equal(
            held.counts.sum(axis=1), other.counts.sum(axis=1)
        ):
            spread = np.ptp(other.target.overall)
            np.testing.assert_allclose(held.target.means, other.target.means, atol=1e-4 * spread)
            inner, others = held.target.quantiles[:, 1:-1], other.target.quantiles[:, 1:-1]
            np.testing.assert_allclose(inner, others, atol=1e-3 * spread)
            # Extremes are those of a bin, and bins are wide where rows are few.
            np.testing.assert_allclose(held.target.quantiles, other.target.quantiles, atol=2e-2 * spread)


@pytest.mark.parametrize("target", ["smooth", "gaps"])
def test_an_encoder_of_a_number_is_that_of_the_rows(rows, target):
    X, y = rows.select(FEATURES), rows[target].to_numpy()
    expected = damier.MODLEncoder(encode="mean").fit(X, y)
    found = damier.MODLEncoder(encode="mean", memory_limit=0).fit(relation(rows, [*FEATURES, target]), target)
    assert_alike(found, expected)
    assert not hasattr(found, "classes_")
    assert (found.source_.rows, found.source_.sample_rows) == (N, None)
    if target == "gaps":
        assert found.partitions_["step"].bounds == expected.partitions_["step"].bounds
        assert found.partitions_["step"].target_bounds == expected.partitions_["step"].target_bounds
    spread = np.ptp(y)
    np.testing.assert_allclose(
        found.transform(X.slice(0, 500)), expected.transform(X.slice(0, 500)), atol=0.1 * spread
    )


@pytest.mark.parametrize("weight", [None, "times"])
def test_where_all_values_are_few_the_model_is_that_of_the_rows(rows, weight):
    names = ["round", "flag", "word"]
    y = rows["whole"].to_numpy()
    expected = damier.MODLEncoder(target="number").fit(
        rows.select(names), y, sample_weight=None if weight is None else rows[weight].to_numpy()
    )
    held = relation(rows, [*names, "whole", *([weight] if weight else [])])
    found = damier.MODLEncoder(target="number", memory_limit=0).fit(held, "whole", sample_weight=weight)
    assert_alike(found, expected)
    assert dumps(found.partitions_["round"]) == dumps(expected.partitions_["round"])
    assert dumps(found.partitions_["flag"]) == dumps(expected.partitions_["flag"])


def test_the_order_of_the_rows_changes_nothing(rows):
    order = np.random.default_rng(3).permutation(N)
    names = ["step", "round", "word", "smooth"]
    one = damier.NaiveBayesRegressor(memory_limit=0).fit(relation(rows, names), "smooth")
    other = damier.NaiveBayesRegressor(memory_limit=0, n_jobs=2).fit(
        relation(rows.take(order), names), "smooth"
    )
    assert dumps(one.model_) == dumps(other.model_)


@pytest.mark.parametrize(("evidence", "room"), [("best", 2e-3), ("posterior", 6e-3)])
def test_naive_bayes_of_a_number(rows, evidence, room):
    X, y = rows.select(FEATURES), rows["smooth"].to_numpy()
    expected = damier.NaiveBayesRegressor(average_starts=False, evidence=evidence).fit(X, y)
    found = damier.NaiveBayesRegressor(memory_limit=0, evidence=evidence).fit(
        relation(rows, [*FEATURES, "smooth"]), "smooth"
    )
    averaged = {v.name for v in found.model_.variables if v.averaged}
    assert averaged == ({"step", "wave", "round", "flag", "word"} if evidence == "posterior" else set())
    assert found.source_.sample_rows == N
    assert np.allclose(found.weights_, expected.weights_, rtol=0.1)
    few = X.slice(0, 3000)
    # Two searches that end at other intervals: with the best parts 0.905 and 0.906 against the truth.
    errors = [np.abs(model.predict(few) - y[:3000]).mean() for model in (found, expected)]
    assert errors[0] < 1.02 * errors[1]
    assert found.score(few, y[:3000]) > expected.score(few, y[:3000]) - room
    covered = []
    for model in (found, expected):
        low, high = model.predict_interval(few, 0.9).T
        covered.append(((low <= y[:3000]) & (y[:3000] <= high)).mean())
    assert abs(covered[0] - covered[1]) < 0.01
    np.testing.assert_array_equal(loads(dumps(found.model_)).predict(few), found.predict(few))
    assert found.model_.counts.sum() == N
    assert found.summary_["gain_per_row"] is not None


@pytest.mark.parametrize("seed", range(3))
def test_target_intervals_that_the_sample_lacks(seed, monkeypatch):
    monkeypatch.setitem(source_numbers.fit_source_regression.__kwdefaults__, "sample_rows", 600)
    rng = np.random.default_rng(seed)
    word = rng.integers(0, 3, 20_000)
    y = rng.normal(size=20_000) + word
    y[:8], word[:40] = 1000.0, 3
    held = pa.table(
        {"word": np.array(["a", "b", "c", "odd"])[word], "x": y + rng.normal(size=20_000), "y": y}
    )
    found = damier.NaiveBayesRegressor(memory_limit=0).fit(relation(held), "y")
    assert found.source_.sample_rows < 800
    predicted = found.predict(held.drop_columns("y"))
    assert predicted[:8].min() > 100 > 10 > predicted[40:].max()


def test_a_grid_against_a_number(rows, monkeypatch):
    monkeypatch.setitem(source_grids.fit_source_regression_grid.__kwdefaults__, "sample_rows", 4000)
    rng = np.random.default_rng(2)
    x, word = rng.random(N), rng.integers(0, 3, N)
    y = 10.0 * ((x > 0.37) ^ (word == 1)) + rng.normal(size=N)
    held = pa.table({"x": x, "word": np.array(["a", "b", "c"])[word], "noise": rng.random(N), "y": y})
    X = held.select(["x", "word", "noise"])
    found = damier.DataGridRegressor(memory_limit=0, effort=1).fit(relation(held), "y")
    expected = damier.DataGridRegressor(effort=1).fit(X, y)
    assert 3500 < found.sample_rows_ < 4500
    assert found.source_.rows == N
    # The cut of the sample was moved to that of all rows.
    assert found.grid_.partitions["x"].bounds == expected.grid_.partitions["x"].bounds
    assert found.grid_.cost == pytest.approx(expected.grid_.cost)
    np.testing.assert_array_equal(found.grid_.grid.cells.counts, expected.grid_.grid.cells.counts)
    np.testing.assert_allclose(found.predict(X.slice(0, 500)), expected.predict(X.slice(0, 500)), atol=1e-3)
    np.testing.assert_array_equal(loads(dumps(found.model_)).predict(X), found.predict(X))
    nothing = damier.DataGridRegressor(memory_limit=0, effort=0).fit(relation(held, ["noise", "y"]), "y")
    assert nothing.grid_.variables == ()
    assert nothing.predict(X.select(["noise"]))[0] == pytest.approx(y.mean(), abs=1e-3)


def test_what_is_no_number_is_said(rows):
    for target, message in [
        ("word", "the target word must be a number"),
        ("step", "the target step is missing in"),
    ]:
        with pytest.raises(ValueError, match=message):
            damier.NaiveBayesRegressor(memory_limit=0).fit(relation(rows), target)
    one = relation(pa.table({"x": [1.0, 2.0], "y": [3.5, 3.5]}))
    with pytest.raises(ValueError, match=r"the target y is constant, it is 3.5"):
        damier.NaiveBayesRegressor(memory_limit=0).fit(one, "y")
    endless = relation(pa.table({"x": [1.0, 2.0], "y": [3.5, np.inf]}))
    with pytest.raises(ValueError, match="contains infinity"):
        damier.MODLEncoder(memory_limit=0).fit(endless, "y")
    many = relation(pa.table({"x": np.arange(900.0), "y": np.arange(900) % 500}))
    with pytest.raises(ValueError, match=r"y looks like a number.*Say target='number' or target='classes'"):
        damier.MODLEncoder(memory_limit=0).fit(many, "y")
    with pytest.raises(ValueError, match="encode='mean' needs a target that is a number"):
        damier.MODLEncoder(memory_limit=0, encode="mean").fit(
            relation(rows, ["wave", "word", "flag"]), "flag"
        )


def test_too_many_values_for_a_number_are_refused(rows, monkeypatch):
    monkeypatch.setattr(source_numbers, "MOST_PAIRS", 50)
    with pytest.raises(ValueError, match=r"column 'word' has too many values for a numeric target"):
        damier.MODLEncoder(memory_limit=0).fit(relation(rows, ["word", "smooth"]), "smooth")


def test_values_beyond_the_listed_ones_are_left_out(rows):
    with pytest.warns(UserWarning, match="values beyond the 20 most frequent"):
        found = damier.MODLEncoder(memory_limit=0, max_values=20).fit(
            relation(rows, ["word", "smooth"]), "smooth"
        )
    listed = [v for group in found.partitions_["word"].groups for v in group]
    words = rows["word"].to_pylist()
    n_values = len(set(words))
    assert 20 <= len(listed) < n_values
    rest = sum(w not in listed for w in words)
    assert found.source_.left_out == {"word": (n_values - len(listed), rest)}


def test_a_table_that_changes_is_refused(rows):
    connection = duckdb.connect()
    connection.register("rows", rows.select(["wave", "word", "smooth"]))
    before = connection.sql("SELECT * FROM rows")
    after = connection.sql("SELECT * REPLACE (smooth + 1 AS smooth) FROM rows")
    whole = Changing(before, after, 100)
    damier.MODLEncoder(memory_limit=0).fit(whole, "smooth")
    # The first query only asks whether the target is a number.
    for n_good in range(2, len(whole.asked), 4):
        with pytest.raises(ValueError, match="the table changed while it was read"):
            damier.MODLEncoder(memory_limit=0).fit(Changing(before, after, n_good), "smooth")


def test_classes_of_a_count_may_be_cells_of_columns(rows):
    source = open_source(relation(rows))
    labels = read_labels(source, "flag")
    axes = (
        Axis("step", (30.0, 60.0), alone=True),
        Axis("word", groups=(("w0", "w1"), ("w2", None)), other=1),
    )
    step, word = rows["step"].to_numpy(), rows["word"].to_pylist()
    parts = parts_of(step, np.array([30.0, 60.0]), alone=True)
    group = np.array([0 if w in ("w0", "w1") else 1 for w in word])
    codes = (parts * 2 + group) * 2 + rows["flag"].to_numpy()
    held = source.count(
        {"wave": ALL, "round": ALL},
        {"wave": labels_with(labels, axes), "round": labels_with(labels, axes[1:])},
    )
    np.testing.assert_array_equal(held["wave"].counts.sum(axis=0), np.bincount(codes, minlength=16))
    np.testing.assert_array_equal(held["round"].counts.sum(axis=0), np.bincount(codes % 4, minlength=4))
    of_wave = source.count({"a": ALL}, labels_with(labels, axes), of="wave")["a"]
    np.testing.assert_array_equal(of_wave.counts, held["wave"].counts)


def labels_with(labels, axes):
    return dataclasses.replace(labels, axes=axes)
