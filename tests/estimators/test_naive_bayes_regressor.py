"""Naive Bayes for a number: the model against formulas written out, and what users are promised."""

import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import NaiveBayesRegressor
from damier.deploy.json import dumps, loads
from damier.fit.naive_bayes_regression import evidence_for_number, weighted_regression
from damier.fit.numeric_target import order_target
from damier.intake import NumericTarget, read_numbers, read_table
from damier.models import NaiveBayesRegression, RegressorModel
from damier.models.regressor import target_points
from damier.search.run import Run
from tests import naive


@parametrize_with_checks([NaiveBayesRegressor(), NaiveBayesRegressor(averaging=None, average_starts=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def houses(n=600, seed=0):
    """Prices with an outlier's tail, explained by a number, a category and a redundant copy."""
    rng = np.random.default_rng(seed)
    area = rng.uniform(20, 200, n)
    town = rng.choice(["north", "south", "west"], n)
    X = pd.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.05, np.nan, area),
            "beds": np.round(area / 25 + rng.normal(0, 0.5, n)),
            "town": np.where(rng.random(n) < 0.05, None, town),
            "noise": rng.normal(size=n),
        }
    )
    y = np.exp(area / 80 + (town == "south") + rng.normal(0, 0.3, n))
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = houses()
    return NaiveBayesRegressor().fit(X, y)


# ----- the model, written out


def by_hand(model, row):
    """Shares of the elementary intervals for one row of values: the formula, value by value."""
    edges = [-math.inf, *model.bounds.tolist(), math.inf]
    rows = [
        sum(int(c) for v, c in zip(model.values, model.counts, strict=True) if low < v <= high)
        for low, high in pairwise(edges)
    ]
    scores = [math.log(n / sum(rows)) for n in rows]
    for variable in model.variables:
        for e, (low, high) in enumerate(pairwise(edges)):
            ratios = []
            for i, partition in enumerate(variable.partitions):
                counts = partition.counts.tolist()
                part = int(partition.apply([row[variable.name]])[0])
                if len(counts) == 1 or part < 0:
                    ratios.append(1.0)
                    continue
                # the target interval that holds the whole elementary interval
                j = sum(bound <= low for bound in partition.target_bounds)
                assert j == sum(bound < high for bound in partition.target_bounds)
                if variable.averaged:
                    held = variable.averaged[i]
                    element = int(held.elements.apply([row[variable.name]])[0])
                    ratios.append(math.exp(held.evidence[element][j]))
                    continue
                n = sum(map(sum, counts))
                w = len(counts[0])
                support, coverage = counts[part][j], sum(row[j] for row in counts)
                ratios.append((support + 1 / n) / (coverage + w / n) / (sum(counts[part]) / n))
            weighted = variable.weight if variable.interval_weights is None else variable.interval_weights[e]
            scores[e] += weighted * math.log(sum(ratios) / len(ratios))
            if variable.adjustment is not None:
                place = variable.part_of(row[variable.name])
                step = sum(first <= place for first in variable.adjustment.firsts.tolist()) - 1
                scores[e] += variable.adjustment.scores[step][e]
    odds = [math.exp(score - max(scores)) for score in scores]
    kept = (0.5 if any(v.averaged for v in model.variables) else 1.0) / math.sqrt(sum(rows))
    return [(1 - kept) * one / sum(odds) + kept * n / sum(rows) for one, n in zip(odds, rows, strict=True)]


@pytest.mark.parametrize("evidence", ["posterior", "best"])
@pytest.mark.parametrize("averaging", ["convex", "compression", None])
def test_shares_are_those_of_the_formula(averaging, evidence):
    fitted = NaiveBayesRegressor(averaging=averaging, evidence=evidence).fit(*houses())
    assert any(v.averaged for v in fitted.model_.variables) == (evidence == "posterior")
    if averaging == "convex" and evidence == "posterior":
        assert any(v.adjustment for v in fitted.model_.variables)
    new = houses(20, seed=1)[0]
    new.loc[3, "town"] = "east"  # never seen
    shares, bounds = fitted.predict_distribution(new)
    np.testing.assert_array_equal(bounds, fitted.bounds_)
    for row, held in zip(new.to_dict("records"), shares, strict=True):
        missing = {name: None if value != value else value for name, value in row.items()}
        np.testing.assert_allclose(held, by_hand(fitted.model_, missing), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_averaged_evidence_is_the_sum_over_all_partitions(seed):
    """Every partition of the values, for the target intervals of each optimum, with a row and without it."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, 90)
    y = np.round(x + rng.normal(0, 1.5, 90), 1)
    column, ordered = read_table({"x": x}).columns[0], order_target(read_numbers(y))
    found = evidence_for_number(column, ordered)
    model = weighted_regression([found], read_table({"x": x}), ordered, run=Run())
    (variable,) = model.variables
    cuts = [partition.target_bounds for partition in variable.partitions]
    expected, own = naive.number_evidence(x.tolist(), y.tolist(), cuts, model.typical.tolist())
    table = variable.table(model.typical)
    np.testing.assert_allclose(table[:-1], expected, rtol=0, atol=1e-9)
    assert not table[-1].any()
    without = variable.table(model.typical, [one.own[:-1] for one in found])
    np.testing.assert_allclose(without[:-1], own, rtol=0, atol=1e-9)


def test_weights_are_repeated_rows_for_averaged_evidence():
    X, y = houses(300)
    times = np.random.default_rng(5).integers(1, 4, len(y))
    weighted = NaiveBayesRegressor().fit(X, y, sample_weight=times)
    repeated = NaiveBayesRegressor().fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_a_partition_has_a_posterior_of_its_target_intervals(fitted):
    partition = fitted.partitions_["area"]
    curve = partition.posterior(backend="dict")
    shares = np.array([curve[f"share {name}"] for name in partition.classes])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert sum(curve["count"]) == 600
    best = NaiveBayesRegressor(evidence="best").fit(*houses()).partitions_["area"]
    with pytest.raises(ValueError, match="NaiveBayesRegressor with evidence='posterior'"):
        best.posterior()


def test_elementary_intervals_have_the_bounds_of_all_partitions(fitted):
    held = {b for v in fitted.model_.variables for p in v.partitions for b in p.target_bounds}
    assert fitted.bounds_.tolist() == sorted(held)
    assert len({len(v.partitions) for v in fitted.model_.variables}) > 1  # some are averaged


def test_mean_and_quantiles_are_those_of_the_distribution(fitted):
    new = houses(50, seed=2)[0]
    model = fitted.model_
    shares = model.value_shares(fitted.predict_distribution(new).shares)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(fitted.predict(new), shares @ model.values)
    reached = np.cumsum(shares, axis=1)
    for q in (0.0, 0.05, 0.31, 0.5, 0.95, 1.0):
        found = fitted.predict_quantile(new, q)
        at = np.searchsorted(model.values, found)
        assert (model.values[at] == found).all()
        assert (reached[np.arange(50), at] >= q - 1e-8).all()  # enough lies at or below it
        before = np.where(at > 0, reached[np.arange(50), at - 1], 0.0)
        assert (before <= q + 1e-8).all()  # and no smaller value would do
    levels = [0.2, 0.9]
    both = fitted.predict_quantile(new, levels)
    np.testing.assert_array_equal(both[:, 1], fitted.predict_quantile(new, 0.9))
    np.testing.assert_array_equal(fitted.predict(new, method="median"), fitted.predict_quantile(new, 0.5))
    np.testing.assert_array_equal(fitted.predict_interval(new, 0.6), fitted.predict_quantile(new, [0.2, 0.8]))


def test_samples_follow_the_distribution(fitted):
    new = houses(5, seed=3)[0]
    drawn = fitted.sample(new, 20_000, random_state=1)
    assert drawn.shape == (5, 20_000)
    spread = np.sqrt(drawn.var(axis=1) / 20_000)
    assert (np.abs(drawn.mean(axis=1) - fitted.predict(new)) < 5 * spread).all()
    low, high = fitted.predict_interval(new).T[..., np.newaxis]
    assert (np.mean((drawn >= low) & (drawn <= high), axis=1) >= 0.89).all()
    np.testing.assert_array_equal(drawn, fitted.sample(new, 20_000, random_state=1))
    np.testing.assert_array_equal(fitted.sample(new), fitted.sample(new))
    assert (drawn != fitted.sample(new, 20_000, random_state=2)).any()


def test_moves_add_up_to_the_prediction(fitted):
    X, y = houses()
    moves, evidence = fitted.explain(X[:80])
    np.testing.assert_allclose(moves.sum(axis=1), fitted.predict(X[:80]) - y.mean(), atol=1e-9)
    scores = np.log(fitted.model_.interval_counts / len(y)) + evidence.sum(axis=1)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    kept = 0.5 / np.sqrt(len(y))
    shares = (1 - kept) * shares + kept * fitted.model_.interval_counts / len(y)
    np.testing.assert_allclose(shares, fitted.predict_distribution(X[:80]).shares)
    noise = list(X.columns).index("noise")
    assert not moves[:, noise].any()
    assert not evidence[:, noise].any()


def test_one_variable_alone_moves_the_mean_all_the_way():
    x = np.repeat([0.0, 1.0], 100)
    y = x * 10 + np.arange(200) % 10
    fitted = NaiveBayesRegressor(averaging=None).fit(x[:, None], y)
    np.testing.assert_allclose(
        fitted.explain([[1.0]]).moves[0, 0], fitted.predict([[1.0]])[0] - y.mean(), rtol=1e-9
    )
    assert fitted.model_.reasons([[1.0]])[0][0].startswith("x0 > 0.5: +")


def test_reasons_name_the_part_and_the_move(fitted):
    X, _ = houses()
    reasons = fitted.model_.reasons(X[:30], 2)
    moves = fitted.explain(X[:30]).moves
    for row, told in enumerate(reasons):
        assert len(told) <= 2
        strongest = X.columns[np.abs(moves[row]).argmax()]
        if moves[row].any() and told:
            assert strongest in told[0] or strongest == "town"
            assert told[0].split(": ")[-1][0] in "+-"


# ----- what is learned


def test_redundant_variables_are_not_counted_twice():
    X, y = houses(1500)
    copies = pd.DataFrame({f"area {k}": X["area"] for k in range(5)})
    one = NaiveBayesRegressor().fit(copies[["area 0"]], y)
    five = NaiveBayesRegressor().fit(copies, y)
    naive = NaiveBayesRegressor(averaging=None).fit(copies, y)
    assert five.weights_.sum() < 2.0
    low, high = five.predict_interval(copies).T
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.95
    low, high = naive.predict_interval(copies).T
    assert np.mean((low <= y) & (y <= high)) < 0.8
    np.testing.assert_allclose(five.predict(copies), one.predict(copies[["area 0"]]), rtol=0.5)


@pytest.mark.parametrize("evidence", ["posterior", "best"])
def test_convex_weights_are_the_best_for_rows_judged_without_themselves(evidence):
    X, y = houses(300)
    fitted = NaiveBayesRegressor(evidence=evidence).fit(X, y)
    ordered = order_target(read_numbers(y))
    own_evidence = [
        [one.own[:-1] for one in evidence_for_number(column, ordered, evidence=evidence)]
        for column in read_table(X)
    ]
    model, weights = fitted.model_, fitted.interval_weights_
    target = np.searchsorted(model.bounds, y)
    prior = np.log(model.interval_counts / 300)
    typical = model.typical

    def cost(weights):
        """The penalised loss, row by row: the evidence for its own interval is that without the row."""
        table = {name: X[name].where(X[name].notna(), None).tolist() for name in X}
        scores = np.tile(prior, (300, 1))
        for variable, without, w in zip(model.variables, own_evidence, weights, strict=True):
            parts = np.array([variable.part_of(value) for value in table[variable.name]])
            evidence = variable.table(typical)[parts]
            own = variable.table(typical, without)[parts, target]
            evidence[np.arange(300), target] = own
            scores += w * evidence
        loss = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(300), target]).sum()
        mean = weights.mean(axis=1, keepdims=True)
        return loss + 0.5 * mean.sum() + 16.0 * ((weights - mean) ** 2).sum()

    least = cost(weights)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.05, 0.2):
        for _ in range(10):
            moved = np.maximum(weights + scale * rng.normal(size=weights.shape) * (weights > 0), 0.0)
            assert cost(moved) > least


def test_intervals_cover_rows_that_were_not_seen():
    X, y = houses(3000)
    fitted = NaiveBayesRegressor().fit(X[:1500], y[:1500])
    for coverage, most in ((0.5, 0.62), (0.8, 0.87), (0.9, 0.94)):
        low, high = fitted.predict_interval(X[1500:], coverage).T
        assert coverage - 0.03 < np.mean((low <= y[1500:]) & (y[1500:] <= high)) < most
    assert fitted.score(X[1500:], y[1500:]) > 0.6


def test_nothing_is_learned_from_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 4)), rng.normal(size=500)
    fitted = NaiveBayesRegressor().fit(X, y)
    assert not fitted.weights_.any()
    assert not fitted.feature_importances_.any()
    np.testing.assert_allclose(fitted.predict(X[:3]), y.mean())
    np.testing.assert_array_equal(
        fitted.predict_quantile(X[:1], [0.25, 0.75])[0],
        np.quantile(y, [0.25, 0.75], method="inverted_cdf"),
    )
    assert fitted.predict_distribution(X[:2]).shares.tolist() == [[1.0], [1.0]]


def test_only_the_order_of_the_target_matters():
    X, y = houses()
    plain, stretched = NaiveBayesRegressor().fit(X, y), NaiveBayesRegressor().fit(X, np.log(y))
    np.testing.assert_allclose(
        plain.predict_distribution(X).shares, stretched.predict_distribution(X).shares, atol=1e-12
    )
    np.testing.assert_allclose(
        np.log(plain.predict_quantile(X, 0.3)), stretched.predict_quantile(X, 0.3), rtol=1e-9
    )


def test_weights_are_frequencies():
    X, y = houses(200)
    times = np.random.default_rng(1).integers(0, 4, 200)
    repeated = np.repeat(np.arange(200), times)
    weighted = NaiveBayesRegressor().fit(X, y, sample_weight=times)
    written_out = NaiveBayesRegressor().fit(X.iloc[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict(X), written_out.predict(X))
    np.testing.assert_array_equal(weighted.model_.counts, written_out.model_.counts)


def test_a_large_target_is_kept_in_a_thousand_points():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=20_000)
    y = x + rng.normal(0, 0.1, 20_000)
    fitted = NaiveBayesRegressor().fit(x[:, None], y)
    model = fitted.model_
    assert 1000 <= len(model.values) <= 1000 + model.n_intervals
    assert model.counts.sum() == 20_000
    assert model.counts @ model.values / 20_000 == pytest.approx(y.mean(), abs=1e-12)
    low, high = fitted.predict_interval(x[:, None]).T
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.02)


def test_points_keep_the_rows_and_means_of_intervals():
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(1e9, 1.0, 5000))
    target = NumericTarget(np.arange(5000, dtype=np.int32), values)
    times = rng.integers(1, 5, 5000)
    bounds = np.sort(rng.choice(values, 20, replace=False))
    points, counts = target_points(target, bounds, times, most=100)
    assert len(points) <= 100 + 21
    own, whole = np.searchsorted(bounds, points), np.searchsorted(bounds, values)
    np.testing.assert_array_equal(np.bincount(own, counts), np.bincount(whole, times))
    np.testing.assert_allclose(
        np.bincount(own, counts * (points - 1e9)), np.bincount(whole, times * (values - 1e9)), atol=1e-2
    )


# ----- refusals, each in one sentence


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0], "the target y is missing in 1 row: remove those rows"),
        ([1.0, np.inf, 2.0], "the target y contains infinity"),
        ([2.5, 2.5, 2.5], "the target y is constant, it is 2.5 in all of its 3 rows"),
        (["a", "b", "c"], "the target y must be a number, it holds"),
        ([True, False, True], "the target y must be a number, it holds booleans"),
        ([1.0, 2.0], "inconsistent numbers of samples"),
    ],
)
def test_targets_that_cannot_be_predicted(y, message):
    with pytest.raises(ValueError, match=message):
        NaiveBayesRegressor().fit([[1.0], [2.0], [3.0]], np.array(y))


def test_arguments_out_of_range(fitted):
    X = houses(5)[0]
    with pytest.raises(ValueError, match="method must be 'mean' or 'median'; got 'mode'"):
        fitted.predict(X, method="mode")
    with pytest.raises(ValueError, match=r"q must be between 0 and 1; got 1\.5"):
        fitted.predict_quantile(X, 1.5)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1; got 90"):
        fitted.predict_interval(X, 90)
    with pytest.raises(ValueError, match="n_samples must be at least 1; got 0"):
        fitted.sample(X, 0)


# ----- scikit-learn and files


def test_scikit_learn_composes_it():
    X, y = houses(400)
    assert cross_val_score(NaiveBayesRegressor(), X, y, cv=3).mean() > 0.4
    logs = TransformedTargetRegressor(NaiveBayesRegressor(), func=np.log, inverse_func=np.exp)
    assert cross_val_predict(logs, X, y, cv=3).min() > 0
    pipeline = make_pipeline(StandardScaler(), NaiveBayesRegressor())
    numbers = X[["beds", "noise"]]
    assert pipeline.fit(numbers, y).score(numbers, y) > 0.3
    search = GridSearchCV(NaiveBayesRegressor(), {"averaging": ["convex", None]}, cv=3).fit(X, y)
    assert search.best_params_["averaging"] == "convex"
    assert clone(NaiveBayesRegressor(average_starts=False)).average_starts is False


def test_saved_it_predicts_the_same(fitted):
    X, _ = houses(40, seed=5)
    loaded = loads(dumps(fitted))
    assert isinstance(loaded, NaiveBayesRegression)
    assert isinstance(loaded, RegressorModel)
    assert loaded == fitted.model_
    np.testing.assert_array_equal(loaded.predict(X[X.columns[::-1]]), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict_interval(X), fitted.predict_interval(X))
    np.testing.assert_array_equal(loaded.explain(X).moves, fitted.explain(X).moves)
    np.testing.assert_array_equal(loaded.sample(X, 3, seed=4), fitted.model_.sample(X, 3, seed=4))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("values", [3.0, 1.0], "values: the values of the target must be ascending|shape"),
        ("bounds", [1e9], "bounds: an interval of the target holds no row"),
        ("bounds", [2.0, 2.0], "bounds: the bounds of the target must be ascending"),
    ],
)
def test_a_broken_file_is_refused(fitted, field, value, message):
    plain = json.loads(dumps(fitted))
    plain[field] = value
    if field == "values":
        plain["counts"] = [1, 1]
    with pytest.raises(ValueError, match=message):
        loads(json.dumps(plain))


def test_a_file_of_one_weight_per_variable_is_read():
    X, y = houses()
    fitted = NaiveBayesRegressor(averaging="compression").fit(X, y)
    plain = json.loads(dumps(fitted))
    for variable in plain["variables"]:
        variable.pop("interval_weights", None)
    np.testing.assert_array_equal(loads(json.dumps(plain)).predict(X), fitted.predict(X))
    assert fitted.interval_weights_.shape == (4, len(fitted.bounds_) + 1)
    assert (fitted.interval_weights_ == fitted.weights_[:, np.newaxis]).all()


def test_weights_of_another_number_of_intervals_are_refused(fitted):
    plain = json.loads(dumps(fitted))
    plain["variables"][0]["interval_weights"] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"interval_weights: \d+ weights expected, got 2"):
        loads(json.dumps(plain))


def test_averages_over_elements_of_other_values_are_refused(fitted):
    plain = json.loads(dumps(fitted))
    held = plain["variables"][2]
    for name in ("partitions", "averaged"):
        held[name] = [held[name][0], json.loads(json.dumps(held[name][0]))]
    assert loads(json.dumps(plain)).variables[2].name == "town"
    held["averaged"][1]["elements"]["groups"][0] = ["east"]
    with pytest.raises(ValueError, match=r"variables\[2\]\.averaged: the elements .* same values"):
        loads(json.dumps(plain))


def test_a_partition_without_a_posterior_says_why(fitted):
    assert fitted.partitions_["noise"].n_parts == 1
    with pytest.raises(ValueError, match=r"evidence of 'noise' is not averaged .* one part has no posterior"):
        fitted.partitions_["noise"].posterior()


def test_summary_and_importances():
    X, y = houses()
    fitted = NaiveBayesRegressor().fit(pl.from_pandas(X), y)
    assert isinstance(fitted.summary_, pl.DataFrame)
    held = dict(zip(fitted.summary_["name"], fitted.summary_["gain_per_row"], strict=True))
    area = fitted.partitions_["area"]
    assert held["area"] == pytest.approx((area.null_cost - area.cost) / 600)
    assert held["noise"] == 0.0
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    assert X.columns[fitted.feature_importances_.argmax()] in ("area", "beds")
    assert "target interval" in repr(fitted.model_)
    assert "area" in fitted.model_._repr_html_()
