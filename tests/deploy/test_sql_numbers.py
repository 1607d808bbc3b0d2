"""Models of a numeric target as SQL, run on every engine: means, medians and quantiles as in Python."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

pytest.importorskip("sqlglot")

import sqlglot

from damier.cli import app
from damier.deploy import save, to_sql
from damier.deploy.sql.dialects import DIALECTS
from damier.models import NaiveBayesRegression, RegressionGrid, TargetEvidence, TargetIntervals
from tests.deploy import sql_engines
from tests.deploy.test_sql import (
    INF,
    NAN,
    RULES,
    VARIABLES,
    against_a_number,
    bayes,
    every_engine,
    grid,
    groups,
    intervals,
    load,
    results,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
LEVELS = (0.0, 0.05, 0.123456789, 0.5, 0.95, 1.0)


def cut_at(partition, bounds, seed=0):
    """Give a partition a numeric target that is cut at some bounds."""
    rng = np.random.default_rng(seed)
    n = len(bounds) + 1
    held = against_a_number(partition, seed)
    return dataclasses.replace(
        held,
        classes=tuple(range(n)),
        counts=rng.integers(1, 60, (partition.n_parts, n)),
        target=dataclasses.replace(held.target, bounds=bounds),
    )


def regression(*partitions, n_values=150, reserve=0.1, seed=0, weights=None):
    """Build a naive Bayes of a number from partitions of a numeric target, or tuples of those averaged."""
    rng = np.random.default_rng(seed)
    held = [p if isinstance(p, tuple) else (p,) for p in partitions]
    bounds = sorted({b for several in held for p in several for b in p.target_bounds})
    # values between any two bounds, on both sides of the outer ones
    inside = [(a + b) / 2 for a, b in zip([-4.0, *bounds], [*bounds, 4.0], strict=True)]
    values = np.unique(np.append(rng.uniform(-3.9, 3.9, n_values), inside))
    weights = weights or [0.7] * len(held)
    return NaiveBayesRegression(
        bounds=np.array(bounds),
        values=values,
        counts=rng.integers(1, 9, len(values)),
        variables=tuple(TargetEvidence(p, w) for p, w in zip(held, weights, strict=True)),
        reserve=reserve,
    )


MODEL = regression(
    cut_at(VARIABLES[0], (-1.0, 0.5, 2.0)),
    (cut_at(VARIABLES[1], (-0.25,), 1), cut_at(intervals("al one", (-5.0,)), (0.125, 1.5), 2)),
    cut_at(VARIABLES[2], (-2.0, 0.5), 3),
    cut_at(VARIABLES[3], (0.75,), 4),
    cut_at(VARIABLES[4], (), 5),
    weights=[1.0, 0.9, 0.7, 0.01, 1.0],
)


def check(engine, model, X, levels=LEVELS):
    """Compare means to 1e-12 of the largest value, quantiles exactly."""
    names, found = results(engine, model)
    assert names == ["mean"]
    size = abs(model.values).max()
    np.testing.assert_allclose(np.array(found)[:, 0], model.predict(X), rtol=1e-12, atol=1e-12 * size)
    names, found = results(engine, model, output="median")
    assert names == ["median"]
    np.testing.assert_array_equal(np.array(found)[:, 0], model.predict(X, "median"))
    names, found = results(engine, model, output="quantiles", quantiles=levels)
    assert names == [f"quantile_{level:.12g}" for level in levels]
    np.testing.assert_array_equal(np.array(found), model.predict_quantile(X, levels))


@every_engine
@pytest.mark.parametrize("reserve", [0.0, 0.1])
def test_naive_bayes_of_a_number(name, reserve):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    model = dataclasses.replace(MODEL, reserve=reserve)
    assert len(np.unique(model.predict(X))) > 5  # the rows differ, so that rows mixed up are found
    check(engine, model, X)
    names, found = results(engine, model, output="parts")
    assert names == list(RULES)
    expected = np.column_stack([v.partition.apply(X[v.name]) for v in model.variables])
    np.testing.assert_array_equal(np.array(found), expected)


@every_engine
@pytest.mark.parametrize("n_intervals", [1, 2, 70])
def test_few_and_many_intervals_of_the_target(name, n_intervals):
    engine = sql_engines.engine(name)
    X = load(engine, {"age": RULES["age"]})
    bounds = tuple(np.linspace(-2, 2, n_intervals - 1).tolist())
    model = regression(cut_at(VARIABLES[0], bounds, n_intervals), n_values=3 * n_intervals)
    assert model.n_intervals == n_intervals
    check(engine, model, X)


@every_engine
def test_levels_that_shares_reach_exactly(name):
    engine = sql_engines.engine(name)
    X = load(engine, {"x": [1.0, 3.0, None]})
    flat = cut_at(intervals("x", (2.0,)), (-1.0, 0.0, 1.0))
    flat = dataclasses.replace(flat, counts=np.array([[3, 1, 4, 2], [1, 3, 2, 4]]))
    model = NaiveBayesRegression(
        bounds=np.array([-1.0, 0.0, 1.0]),
        values=np.array([-2.0, -1.5, -0.5, 0.25, 0.5, 3.0]),
        counts=np.array([1, 3, 4, 1, 3, 4]),
        variables=(TargetEvidence((flat,), 1.0),),
    )
    reached = np.cumsum(model.value_shares(model.predict_distribution(X).shares), axis=1)
    levels = tuple(np.unique(np.clip(reached.round(12), 0.0, 1.0)).tolist())
    assert len(levels) >= 10
    found = results(engine, model, output="quantiles", quantiles=levels)[1]
    np.testing.assert_array_equal(np.array(found), model.predict_quantile(X, levels))


@every_engine
def test_a_model_that_reads_nothing(name):
    engine = sql_engines.engine(name)
    load(engine, {"x": [1.0, 2.0]})
    model = regression(cut_at(VARIABLES[0], (0.0, 1.0)))
    none = dataclasses.replace(model, variables=())
    # predicted with a weight of zero: a table without a column has no rows
    zero = dataclasses.replace(model, variables=(TargetEvidence(model.variables[0].partitions, 0.0),))
    expected = zero.predict_quantile({"age": [1.0]}, [0.05, 0.5, 0.95])[0]
    assert results(engine, none, output="quantiles")[1] == [expected.tolist()] * 2
    mean = results(engine, none)[1]
    np.testing.assert_allclose(np.array(mean)[:, 0], zero.predict({"age": [1.0, 1.0]}), rtol=1e-12)


@every_engine
@pytest.mark.parametrize("seed", range(4))
def test_drawn_models_of_a_number(name, seed):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    rng = np.random.default_rng(seed)
    partitions = [
        cut_at(p, tuple(np.sort(rng.uniform(-3, 3, rng.integers(0, 9))).tolist()), seed + i)
        for i, p in enumerate(VARIABLES)
    ]
    reserve = float(rng.choice([0.0, rng.random()]))
    model = regression(*partitions, n_values=int(rng.integers(1, 400)), reserve=reserve, seed=seed)
    check(engine, model, X, tuple(rng.random(3).round(9).tolist()))


# ----- grids


def number_grid():
    cells = grid().cells
    quantiles = np.sort(np.random.default_rng(3).normal(size=(len(cells), 7)), axis=1)
    target = TargetIntervals(
        bounds=(-0.5, 0.75),
        mean=0.1,
        overall=np.arange(7) / 3,
        means=quantiles.mean(axis=1),
        quantiles=quantiles,
    )
    # as many rows in each interval of the target as the cells hold
    sizes = cells.counts.sum(axis=0)
    values = np.array([-2.0, -1.0, -0.25, 0.5, 1.0, 5.0])
    counts = np.column_stack([sizes // 3, sizes - sizes // 3]).reshape(-1)
    held = dataclasses.replace(grid(), classes=(0, 1, 2))
    return RegressionGrid(grid=held, target=target, values=values, counts=counts)


@every_engine
def test_grids_of_a_number(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    model = number_grid()
    assert len(np.unique(model.predict(X))) > 3
    check(engine, model, X)
    np.testing.assert_array_equal(
        np.array(results(engine, model, output="parts")[1]), model.grid.find_parts(X)
    )
    by_support = [None, *model.rules()]
    place = {int(cell): i for i, cell in enumerate(model.grid._by_support(), 1)}
    expected = [place.get(cell, 0) for cell in model.grid.find_cells(X).tolist()]
    names, found = results(engine, model, output="rule")
    assert names == ["rule_number", "rule"]
    assert found == [[number, by_support[number]] for number in expected]


# ----- partitions of many intervals


@every_engine
@pytest.mark.parametrize("alone", [False, True])
def test_many_intervals_are_found_in_two_steps(name, alone):
    engine = sql_engines.engine(name)
    bounds = tuple(float(b) for b in range(-100, 100))
    near = [v for b in (-100.0, -99.0, -85.0, -0.0, 0.0, 13.0, 14.0, 98.0, 99.0) for v in
            (b, np.nextafter(b, INF), np.nextafter(b, -INF))]  # fmt: skip
    X = load(engine, {"x": [NAN, None, INF, -INF, 1e308, -1e308, *map(float, near)]})
    model = intervals("x", bounds, missing_alone=alone)
    assert [row[0] for row in results(engine, model)[1]] == model.apply(X["x"]).tolist()
    proba = results(engine, bayes(model))[1]
    np.testing.assert_allclose(np.array(proba), bayes(model).predict_proba(X), rtol=0, atol=1e-12)


# ----- fitted estimators, refusals, command


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 800
    X = {"size": rng.normal(size=n), "colour": rng.choice(["red", "green", "blue"], n)}
    X["size"][::10] = np.nan
    y = np.round(np.exp(np.nan_to_num(X["size"])) + 3 * (X["colour"] == "red") + rng.normal(size=n), 3)
    return X, y


@pytest.mark.parametrize("name", ["duckdb", "sqlite"])
def test_fitted_estimators(name, rows):
    from damier import DataGridRegressor, MODLEncoder, NaiveBayesRegressor

    X, y = rows
    engine = sql_engines.engine(name)
    load(engine, {column: values.tolist() for column, values in X.items()})
    for estimator in (NaiveBayesRegressor(), DataGridRegressor(effort=1)):
        fitted = estimator.fit(X, y)
        assert len(np.unique(fitted.predict(X))) > 3
        check(engine, fitted.model_, X)
    for encode in ("ordinal", "onehot", "evidence", "mean", "median"):
        fitted = MODLEncoder(encode=encode).fit(X, y)
        found = np.array(results(engine, fitted)[1])
        np.testing.assert_array_equal(found, np.asarray(fitted.transform(X)))
        partition = fitted.model_.partitions[0]
        found = np.array(results(engine, partition, output="mean")[1])[:, 0]
        expected = np.append(partition.target.means, partition.target.mean)[
            partition.apply(X[partition.name])
        ]
        np.testing.assert_array_equal(found, expected)


def test_refusals():
    for wrong in ((), (0.5, 1.5), 0.5, ("a",), (NAN,)):
        with pytest.raises(ValueError, match="levels between 0 and 1"):
            to_sql(MODEL, "duckdb", "t", output="quantiles", quantiles=wrong)
    with pytest.raises(ValueError, match="levels of output='quantiles', got output='mean'"):
        to_sql(MODEL, "duckdb", "t", output="mean", quantiles=(0.5,))
    with pytest.raises(ValueError, match="output must be 'mean' or 'median' or 'quantiles' or 'parts'"):
        to_sql(MODEL, "duckdb", "t", output="proba")
    with pytest.raises(ValueError, match="needs a target that is a number"):
        to_sql(VARIABLES[0], "duckdb", "t", output="mean")
    wide = regression(cut_at(VARIABLES[0], tuple(np.linspace(-3, 3, 600).tolist())), n_values=1)
    with pytest.raises(ValueError, match="takes 1,000: score with damier predict"):
        to_sql(wide, "mysql", "t", output="quantiles")
    assert "damier_s600" in to_sql(wide, "duckdb", "t", output="quantiles")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("output", ["mean", "median", "quantiles"])
def test_every_dialect_parses_back(name, output):
    dialect = DIALECTS[name].writes
    age, text = VARIABLES[0], groups("text", ("it's", "é"), ("b\\c", None))
    model = regression(cut_at(age, (-1.0, 0.5)), cut_at(text, (0.25,)), n_values=9)
    (tree,) = sqlglot.parse(to_sql(model, name, "t", keep=["id"], output=output), read=dialect)
    again = sqlglot.parse_one(tree.sql(dialect), read=dialect)
    assert again.sql(dialect) == tree.sql(dialect)
    written = [one.alias_or_name for one in tree.expressions]
    assert written[0] == "id"
    assert len(written) == (4 if output == "quantiles" else 2)


def test_the_command(tmp_path):
    path = tmp_path / "model.json"
    save(regression(cut_at(VARIABLES[0], (0.0,))), path)
    asked = ["sql", str(path), "-d", "duckdb", "--table", "t"]
    run = CliRunner().invoke
    done = run(app, [*asked, "--what", "quantiles", "--quantiles", "0.1,0.9"])
    assert done.exit_code == 0, done.output
    engine = sql_engines.engine("duckdb")
    engine.load(pa.table({"age": [2.0]}))
    assert engine.run(done.stdout)[0] == ["quantile_0.1", "quantile_0.9"]
    for wrong, code, message in (
        (["--what", "quantiles", "--quantiles", "0.1;0.9"], 2, "such as 0.1,0.9"),
        (["--what", "quantiles", "--quantiles", "2"], 1, "between 0 and 1"),
        (["--quantiles", "0.1"], 1, "levels of output='quantiles'"),
    ):
        done = run(app, [*asked, *wrong])
        assert (done.exit_code, message in done.output) == (code, True), done.output
    assert json.loads(path.read_text())["model"] == "naive_bayes_regression"
