"""Grids against a number."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import DataGridRegressor, MODLEncoder, rank_pairs
from damier.deploy.json import dumps, loads
from damier.models import RegressionGrid
from tests import naive


@parametrize_with_checks([DataGridRegressor(effort=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def crossed():
    """Two variables of which neither informs alone, a category among them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.random(600), "colour": rng.choice(list("abcd"), 600), "noise": rng.random(600)}
    )
    high = (X["size"] > 0.5) ^ X["colour"].isin(["a", "c"])
    return X, pd.Series(10.0 * high + rng.integers(0, 5, 600), name="price")


@pytest.fixture(scope="module")
def fitted(crossed):
    return DataGridRegressor(effort=1).fit(*crossed)


def test_interactions_are_found(crossed, fitted):
    X, y = crossed
    grid = fitted.grid_
    assert grid.variables == ("size", "colour")
    assert sorted(map(sorted, grid.partitions["colour"].groups)) == [["a", "c"], ["b", "d"]]
    assert grid.target_bounds == (7.0,)
    assert fitted.get_support().tolist() == [True, True, False]
    assert list(fitted.transform(X).columns) == ["size", "colour"]
    assert fitted.score(X, y) > 0.9
    assert is_regressor(fitted)


def test_cost_is_that_of_the_formula(crossed, fitted):
    X, y = crossed
    grid = fitted.grid_
    cells = grid.grid.find_cells(X)
    intervals = np.searchsorted(grid.target_bounds, y)
    counts = np.zeros((cells.max() + 1, intervals.max() + 1), int)
    np.add.at(counts, (cells, intervals), 1)
    cost = naive.regression_grid_cost(counts.tolist(), 3, [2], [(4, 2)])
    assert grid.cost == pytest.approx(cost, rel=1e-12)
    assert grid.null_cost == pytest.approx(naive.regression_grid_cost([[600]], 3, [], []), rel=1e-12)
    assert grid.level == pytest.approx(1 - cost / grid.null_cost)
    assert grid.gain_per_row == pytest.approx((grid.null_cost - cost) / 600)


def test_a_grid_costs_no_more_than_its_best_variable_alone():
    rng = np.random.default_rng(1)
    for _ in range(5):
        X = rng.normal(size=(300, 4))
        y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=300)
        alone = min(p.cost for p in MODLEncoder().fit(X, y).partitions_.values())
        grid = DataGridRegressor(effort=1).fit(X, y).grid_
        assert grid.cost <= alone + math.log(5) + math.log(4) + 1e-6


def test_cells_predict_the_distribution_of_their_rows(crossed, fitted):
    X, y = crossed
    grid = fitted.grid_
    cells = grid.grid.find_cells(X)
    shares, bounds = fitted.predict_distribution(X)
    assert bounds.tolist() == list(grid.target_bounds)
    overall = np.array([(y <= 7).mean(), (y > 7).mean()])
    for cell in range(cells.max() + 1):
        held = y[cells == cell]
        expected = (np.array([(held <= 7).sum(), (held > 7).sum()]) + overall) / (len(held) + 1)
        assert shares[cells == cell] == pytest.approx(np.tile(expected, (len(held), 1)))
        assert grid.target.means[cell] == pytest.approx(held.mean())
        assert grid.target.quantiles[cell] == pytest.approx(
            np.quantile(held, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
        )
    inside = fitted.predict_interval(X, 0.9)
    assert ((inside[:, 0] <= y) & (y <= inside[:, 1])).mean() >= 0.9
    assert (fitted.predict_quantile(X, 0.5) == fitted.predict(X, method="median")).all()


def test_rules_in_words(fitted):
    rules = fitted.grid_.rules()
    assert len(rules) == 4
    assert all("THEN price between" in rule and "rows)" in rule for rule in rules)
    frame = fitted.grid_.rules("frame")
    assert list(frame.columns) == ["size", "colour", "support", "mean", "median", "5%", "95%"]
    assert frame["support"].sum() == 600
    assert "median" in fitted.grid_._repr_html_()
    with pytest.raises(ValueError, match="output must be"):
        fitted.grid_.rules("words")


def test_rules_without_a_variable():
    rng = np.random.default_rng(2)
    grid = DataGridRegressor(effort=0).fit(rng.random((200, 2)), rng.random(200) + 1000).grid_
    assert grid.variables == ()
    assert grid.level == 0.0
    assert grid.rules()[0].startswith("ALWAYS target between 1,000.")


def test_saved_and_loaded(crossed, fitted):
    X, _ = crossed
    loaded = loads(dumps(fitted))
    assert isinstance(loaded, RegressionGrid)
    assert loaded == fitted.model_
    assert np.array_equal(loaded.predict_quantile(X, [0.1, 0.9]), fitted.predict_quantile(X, [0.1, 0.9]))
    plain = fitted.model_.to_dict()
    plain["target"]["bounds"] = []
    with pytest.raises(ValueError, match="intervals of the target expected"):
        RegressionGrid.from_dict(plain)


def test_a_category_never_seen(crossed, fitted):
    X, _ = crossed
    new = X.head(2).assign(colour="pink")
    grid = fitted.grid_.grid
    part = grid.partitions["size"].apply(new["size"])
    for row in range(2):
        agree = grid.cells.parts[:, 0] == part[row]
        counts = grid.cells.counts[agree].sum(axis=0)
        assert fitted.predict_distribution(new).shares[row] == pytest.approx(counts / counts.sum())


def test_weights_are_repeated_rows(crossed):
    X, y = crossed
    weights = np.random.default_rng(3).integers(0, 3, 600)
    weighted = DataGridRegressor(effort=0).fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(600), weights)
    assert weighted.model_ == DataGridRegressor(effort=0).fit(X.iloc[rows], y.iloc[rows]).model_


def test_time_limit_and_transformed_target(crossed):
    X, y = crossed
    for limit in (0.0, 0.5):
        limited = DataGridRegressor(time_limit=limit).fit(X, y)
        assert limited.search_ended_ == "time limit"
        assert len(limited.predict(X)) == 600
    model = TransformedTargetRegressor(DataGridRegressor(effort=0), func=np.log1p, inverse_func=np.expm1)
    assert cross_val_score(model, X, y, cv=3).min() > 0.5


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0] * 600, "constant"),
        (["a", "b"] * 300, "must be a number"),
        ([np.nan] + [1.0, 2.0] * 299 + [3.0], "missing in 1 row"),
        ([np.inf] + [1.0, 2.0] * 299 + [3.0], "infinity"),
    ],
)
def test_refused_in_one_sentence(crossed, y, message):
    with pytest.raises(ValueError, match=message):
        DataGridRegressor().fit(crossed[0], y)


def test_pairs_against_a_number(crossed):
    X, y = crossed
    pairs = rank_pairs(X, y + 0.5)
    assert pairs["first"][0] == "size"
    assert pairs["second"][0] == "colour"
    assert pairs["gain"][0] > 0.05
    assert pairs["gain"][1:].abs().max() < 0.01
    again = rank_pairs(X, y + 0.5, n_jobs=2)
    assert again.equals(pairs)
    levels = MODLEncoder().fit(X, y + 0.5).levels_
    assert pairs["first_level"][0] == levels["size"]
    with pytest.raises(ValueError, match="constant"):
        rank_pairs(X, np.full(600, 0.5))


def test_a_time_limit_counts_the_variables_alone(monkeypatch):
    """Compiling starts the clock, and nothing starts it a second time: the limit would be given twice."""
    from damier.fit.regression_grids import fit_regression_grid
    from damier.intake import read_numbers, read_table
    from damier.search.axis import numeric_target
    from damier.search.run import Run

    plain, start, events = numeric_target.partition_with_target, Run.start_clock, []

    def alone(*args, **keywords):
        events.append("alone")
        return plain(*args, **keywords)

    def start_clock(run):
        events.append("clock")
        start(run)

    monkeypatch.setattr(numeric_target, "partition_with_target", alone)
    monkeypatch.setattr(Run, "start_clock", start_clock)
    x = np.arange(60.0)
    run = Run(time_limit=600.0)
    run.call(fit_regression_grid, read_table({"a": x, "b": -x}), read_numbers(x), effort=0, run=run)
    last = len(events) - 1 - events[::-1].index("clock")
    assert last < events.index("alone")
