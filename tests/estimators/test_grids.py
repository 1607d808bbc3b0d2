import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import DataGridClassifier, DataGridEnsembleClassifier, DataGridRegressor, rank_pairs
from damier.criteria import grid_cost
from damier.deploy.json import dumps, loads


@parametrize_with_checks(
    [DataGridClassifier(effort=0), DataGridEnsembleClassifier(effort=0, n_grids=4, n_jobs=2)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.random(n_rows),
            "colour": rng.choice(["red", "green", "blue", "grey"], n_rows),
            "noise": rng.random(n_rows),
            "weight": rng.normal(size=n_rows),
        }
    )
    warm = frame["colour"].isin(["red", "grey"])
    y = np.where(warm ^ (frame["size"] > 0.37), "yes", "no")
    frame.loc[rng.random(n_rows) < 0.05, "weight"] = np.nan
    return frame, y


def test_mixed_interaction():
    X, y = table()
    classifier = DataGridClassifier().fit(X, y)
    grid = classifier.grid_
    assert set(grid.variables) == {"size", "colour"}
    assert classifier.get_support().tolist() == [True, True, False, False]
    assert classifier.get_feature_names_out().tolist() == ["size", "colour"]
    assert {frozenset(group) for group in grid.partitions["colour"].groups} == {
        frozenset({"red", "grey"}),
        frozenset({"green", "blue"}),
    }
    assert grid.partitions["size"].bounds[0] == pytest.approx(0.37, abs=0.02)
    assert classifier.score(X, y) > 0.99
    assert len(grid.cells) == 4
    assert grid.cells.counts.sum() == len(X)
    # the reported cost is that of the reported counts
    again = grid_cost(grid.cells.counts, 4, [grid.partitions["size"].n_parts], [(4, 2)])
    assert grid.cost == pytest.approx(again, rel=1e-12)
    assert grid.null_cost == pytest.approx(grid_cost([np.bincount(y == "yes")], 4))
    chosen = classifier.set_output(transform="pandas").transform(X)
    assert list(chosen.columns) == ["size", "colour"]


def test_training_rows_get_the_shares_of_their_cells_drawn_to_those_of_all():
    X, y = table(seed=3)
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.2, "maybe", y)
    classifier = DataGridClassifier().fit(X, y)
    grid = classifier.grid_
    cells = grid.find_cells(X)
    assert cells.min() >= 0
    for cell in range(len(grid.cells)):
        inside = cells == cell
        shares = [(y[inside] == c).mean() for c in classifier.classes_]
        assert grid.cells.shares[cell] == pytest.approx(shares)
        # Two more rows, with the class shares of all rows.
        drawn = [
            ((y[inside] == c).sum() + 2 * (y == c).mean()) / (inside.sum() + 2) for c in classifier.classes_
        ]
        assert classifier.predict_proba(X[inside])[0] == pytest.approx(drawn, rel=1e-12)
        assert grid.predict_proba(X[inside].iloc[0].to_dict())[0] == pytest.approx(drawn, rel=1e-12)


def test_libraries_and_threads_change_nothing():
    X, y = table()
    plain = DataGridClassifier(random_state=1).fit(X, y)
    other = DataGridClassifier(random_state=1, n_jobs=2).fit(pl.from_pandas(X), y)
    assert plain.grid_ == other.grid_
    assert plain.predict(X).tolist() == other.predict(pl.from_pandas(X)).tolist()
    rows = np.random.default_rng(0).permutation(len(X))
    assert DataGridClassifier(random_state=1).fit(X.iloc[rows], y[rows]).grid_ == plain.grid_
    stretched = X.assign(size=np.exp(X["size"]))
    squeezed = DataGridClassifier(random_state=1).fit(stretched, y).grid_
    assert squeezed.cost == plain.grid_.cost
    assert np.array_equal(squeezed.cells.counts, plain.grid_.cells.counts)


def test_saved_and_loaded():
    X, y = table()
    for classifier in (DataGridClassifier(), DataGridEnsembleClassifier(n_grids=6)):
        classifier.fit(X, y)
        assert loads(dumps(classifier)).predict_proba(X).tolist() == classifier.predict_proba(X).tolist()


def test_wine_figure_one():
    X, y = load_wine(return_X_y=True, as_frame=True)
    pair = X[["alcohol", "flavanoids"]]
    grid = DataGridClassifier().fit(pair, y).grid_
    parts = {
        "alcohol": (pair["alcohol"] > 12.78).to_numpy() * 1,
        "flavanoids": np.searchsorted([1.235, 2.18], pair["flavanoids"]),
    }
    cells = np.zeros((6, 3), dtype=int)
    np.add.at(cells, (parts["alcohol"] * 3 + parts["flavanoids"], y), 1)
    paper = grid_cost(cells[cells.sum(axis=1) > 0], 2, [2, 3])
    assert grid.cost <= paper + 1e-6


def test_ensemble():
    X, y = load_wine(return_X_y=True, as_frame=True)
    train, test = np.arange(178) % 2 == 0, np.arange(178) % 2 == 1
    ensemble = DataGridEnsembleClassifier(n_grids=40, random_state=0).fit(X[train], y[train])
    single = DataGridClassifier(random_state=0).fit(X[train], y[train])
    assert ensemble.score(X[test], y[test]) > single.score(X[test], y[test])
    assert ensemble.weights_.sum() == pytest.approx(1)
    levels = np.array([grid.level for grid in ensemble.grids_])
    assert (levels > 0).all()
    assert ensemble.weights_ == pytest.approx(levels / levels.sum())
    assert ensemble.grids_[0].cost == pytest.approx(min(grid.cost for grid in ensemble.grids_))
    assert len({str(grid.to_dict()) for grid in ensemble.grids_}) == len(ensemble.grids_)
    assert ensemble.predict_proba(X).sum(axis=1) == pytest.approx(1)
    threaded = clone(ensemble).set_params(n_jobs=2).fit(X[train], y[train])
    assert threaded.model_ == ensemble.model_


def test_threshold_tuning_serves_balanced_error():
    rng = np.random.default_rng(0)
    X = rng.random((800, 3))
    y = (rng.random(800) < np.where((X[:, 0] > 0.6) ^ (X[:, 1] > 0.4), 0.3, 0.03)).astype(int)
    plain = DataGridClassifier().fit(X, y)
    tuned = TunedThresholdClassifierCV(plain, scoring=make_scorer(balanced_accuracy_score), cv=5).fit(X, y)
    assert balanced_accuracy_score(y, tuned.predict(X)) > balanced_accuracy_score(y, plain.predict(X))


def test_rank_pairs():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((500, 4)), columns=list("abcd"))
    X["e"] = X["d"] * 2
    y = ((X["a"] > 0.4) ^ (X["c"] > 0.6)).astype(int) * 2 + (X["d"] > 0.5)
    pairs = rank_pairs(X, y)
    assert len(pairs) == 10
    assert pairs.iloc[0][["first", "second"]].tolist() == ["a", "c"]
    assert pairs["gain"].is_monotonic_decreasing
    assert pairs["gain"].to_numpy() == pytest.approx(
        (pairs["level"] - pairs["first_level"] - pairs["second_level"]).to_numpy()
    )
    # two copies of one variable know nothing beyond it, and all of it twice
    worst = pairs.iloc[-1]
    assert [worst["first"], worst["second"]] == ["d", "e"]
    assert worst["gain"] == pytest.approx(-worst["first_level"], abs=1e-9)
    assert worst["first_level"] > 0
    assert pairs["done"].all()
    threaded = rank_pairs(pl.from_pandas(X), y, n_jobs=2)
    assert isinstance(threaded, pl.DataFrame)
    assert threaded.to_dict(as_series=False) == pairs.to_dict("list")
    assert isinstance(DataGridClassifier(effort=0).fit(pl.from_pandas(X), y).grid_.to_frame(), pl.DataFrame)
    with pytest.raises(ValueError, match="two columns"):
        rank_pairs(X[["a"]], y)
    with pytest.raises(ValueError, match="rows"):
        rank_pairs(X, y[:10])


def test_noise_selects_nothing():
    rng = np.random.default_rng(2)
    X, y = rng.random((300, 5)), rng.integers(2, size=300)
    classifier = DataGridClassifier().fit(X, y)
    assert classifier.grid_.variables == ()
    assert classifier.grid_.level == 0
    assert not classifier.get_support().any()
    assert classifier.predict_proba(X) == pytest.approx(np.tile(np.bincount(y) / 300, (300, 1)))


def test_progress_and_limits():
    X, y = table()
    reports = []
    classifier = DataGridClassifier(effort=1).fit(X, y, progress=reports.append)
    assert reports[-1].level > 0
    assert reports[-1].text == "2 variables in the grid"
    assert reports[-1].done == classifier.n_starts_
    assert classifier.search_ended_ == "complete"
    limited = DataGridClassifier(time_limit=0.1).fit(X, y)
    assert limited.search_ended_ == "time limit"
    assert limited.grid_.level >= 0
    for wrong in ({"effort": -1}, {"time_limit": "long"}, {"n_jobs": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DataGridClassifier(**wrong).fit(X, y)


def test_pairs_not_done_are_said_not_to_be():
    rng = np.random.default_rng(0)
    X, y = rng.random((20_000, 12)), rng.integers(2, size=20_000)
    pairs = rank_pairs(X, y, time_limit=0.5, backend="dict")
    assert len(pairs["done"]) == 66
    assert not all(pairs["done"])
    n_done = sum(pairs["done"])
    assert pairs["done"] == [True] * n_done + [False] * (66 - n_done)
    assert np.isnan(pairs["level"]).tolist() == np.isnan(pairs["gain"]).tolist()
    assert np.isnan(pairs["level"]).sum() == 66 - n_done


@pytest.mark.parametrize(
    "classifier", [DataGridClassifier(effort=1), DataGridEnsembleClassifier(effort=1, n_grids=4)]
)
def test_weights_are_frequencies(classifier):
    X, y = table(200)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    weighted = clone(classifier).fit(X, y, sample_weight=weights)
    repeated = clone(classifier).fit(X.iloc[rows], y[rows])
    assert weighted.model_ == repeated.model_
    with pytest.raises(ValueError, match="whole"):
        clone(classifier).fit(X, y, sample_weight=weights + 0.5)
    with pytest.raises(ValueError, match="scale the weights down"):
        clone(classifier).fit(X, y, sample_weight=np.full(len(y), 10**9))


def test_transform_reads_what_fit_reads():
    X, y = table()
    X["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(len(X)), "D")
    classifier = DataGridClassifier().fit(X, y)
    chosen = classifier.transform(X)
    pd.testing.assert_frame_equal(chosen, X[["size", "colour"]])
    frame = pl.from_pandas(X)
    assert classifier.transform(frame).equals(frame[["size", "colour"]])
    columns = {name: X[name].tolist() for name in X}
    from_dict = DataGridClassifier().fit(columns, y).transform(columns)
    assert from_dict == {name: columns[name] for name in ("size", "colour")}
    numbers = np.random.default_rng(0).random((300, 3))
    label = (numbers[:, 0] > 0.4) ^ (numbers[:, 2] > 0.5)
    assert np.array_equal(DataGridClassifier().fit_transform(numbers, label), numbers[:, [0, 2]])
    nothing = DataGridClassifier(effort=0).fit(numbers, np.arange(300) % 2)
    assert nothing.transform(numbers).shape == (300, 0)
    with pytest.raises(ValueError, match="feature names"):
        classifier.transform(X[["colour", "size", "noise", "weight", "day"]])


def test_constructors_take_keywords_only():
    with pytest.raises(TypeError):
        DataGridClassifier(10)
    with pytest.raises(TypeError):
        DataGridEnsembleClassifier(10)


def test_an_ensemble_is_as_sharp_as_rows_judged_without_themselves_say():
    """The power is the best among others, by a literal count of each row's cells without the row."""
    X, y = load_wine(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.15, (y + 1) % 3, y)
    model = DataGridEnsembleClassifier(n_grids=15).fit(X, y).model_
    log_proba = np.zeros((len(y), 3))
    cells = [grid.find_cells(X) for grid in model.grids]
    for n in range(len(y)):
        proba = np.zeros(3)
        for grid, weight, cell in zip(model.grids, model.weights, cells, strict=True):
            same = np.flatnonzero((cell == cell[n]) & (np.arange(len(y)) != n))
            shares = np.bincount(y[same], minlength=3) / len(same) if len(same) else grid.shares
            proba += weight * shares
        log_proba[n] = np.log(np.maximum(proba, 0.5 / len(y)))

    def loss(power):
        scores = power * log_proba
        return (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]).sum()

    others = np.linspace(0.6, 6, 100)
    assert loss(model.power) <= min(map(loss, others)) + 1e-3
    assert model.power > 1.2
    mean = sum(w * grid.predict_proba(X) for grid, w in zip(model.grids, model.weights, strict=True))
    np.testing.assert_allclose(
        model.predict_proba(X), mean**model.power / (mean**model.power).sum(axis=1, keepdims=True)
    )


@pytest.mark.parametrize("kind", [DataGridClassifier, DataGridRegressor])
def test_transform_keeps_the_rows_where_nothing_is_selected(kind):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=[7, 8, 9, 10])
    kept = kind().fit(X, [0.5, 1.5, 0.5, 1.5] if kind is DataGridRegressor else [0, 1, 0, 1]).transform(X)
    assert kept.shape == (4, 0)
    assert list(kept.index) == [7, 8, 9, 10]
