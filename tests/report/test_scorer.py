"""The naive Bayes of the page is that of the library."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from damier import NaiveBayesClassifier
from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.deploy import load, save
from damier.fit.partitions import partition_column
from damier.intake import read_table, read_target
from damier.report import analyze, render_page, scorer, summarize
from damier.report.classes import shown_classes
from damier.report.table import classifier_line
from damier.search.run import Run


def fitted(X, y):
    table, target = read_table(X), read_target(y)
    partitions = {column.name: partition_column(column, target, short_bounds=True) for column in table}
    summary = summarize(partitions)
    classes = shown_classes(summary)
    model = scorer.fit_scorer(partitions, table, target, classes, run=Run())
    return table, summary, classes, model


def test_on_its_rows_it_is_the_classifier_on_the_best_partitions():
    columns = sample_columns(1200)
    y = columns.pop(SAMPLE_TARGET)
    X = pd.DataFrame(columns)
    table, _, _, model = fitted(X, y)
    classifier = NaiveBayesClassifier(evidence="best", pairs=None).fit(X, y)
    assert np.abs(model.predict_proba(table) - classifier.predict_proba(X)).max() < 1e-9


def test_the_summary_scores_as_the_model():
    columns = sample_columns(900)
    y = columns.pop(SAMPLE_TARGET)
    table, _, classes, model = fitted(pd.DataFrame(columns), y)
    held = json.loads(json.dumps(scorer.summarize_scorer(model, classes, table), allow_nan=False))
    assert np.abs(scored(held, model, table) - model.predict_proba(table)).max() < 1e-6
    assert held["columns"] == list(table.names)
    assert not held["averaged"]


def scored(held, model, table):
    """Score rows as the page does."""
    scores = np.tile(np.array(held["log_prior"]), (table.n_rows, 1))
    for variable in held["variables"]:
        (evidence,) = (v for v in model.variables if v.name == variable["name"])
        known = np.vstack([variable["scores"], np.zeros((1, scores.shape[1] - 1))])
        if evidence.informs:
            scores[:, 1:] += known[evidence.apply(table[variable["name"]])]
        else:
            assert not np.any(known)
    for pair in held["pairs"]:
        places = [
            looked_up(side, table[name]) for side, name in zip(pair["sides"], pair["names"], strict=True)
        ]
        for row, (a, b) in enumerate(zip(*places, strict=True)):
            if a >= 0 and b >= 0:
                scores[row, 1:] += pair["scores"][a][b]
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


def looked_up(side, column):
    """Find the parts of the values of a column as the page does."""
    places = []
    coded = hasattr(column, "codes")
    for value in [column.categories[code] for code in column.codes] if coded else column.values.tolist():
        if value is None or value != value:
            places.append(side["missing"])
        elif "bounds" in side:
            places.append(side["first"] + sum(float(bound) < value for bound in side["bounds"]))
        else:
            places.append(next((i for i, group in enumerate(side["groups"]) if str(value) in group), -1))
    return places


@pytest.mark.parametrize("n_classes", [2, 4, 26])
def test_where_there_is_room_it_is_the_default_classifier(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 1300)
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(1300) < 0.1, np.nan, y + rng.normal(0, 1, 1300)),
            "noise": rng.random(1300),
            "c": np.array(list("xyzw"))[(y + (rng.random(1300) < 0.3)) % 4],
            "d": y % 3 + rng.integers(0, 2, 1300),
        }
    )
    table, target = read_table(X), read_target(y)
    models = []
    summary = analyze(table, target, grid_seconds=0, keep_model=models.append)
    held = json.loads(json.dumps(summary["scorer"], allow_nan=False))
    classifier = NaiveBayesClassifier().fit(X, y)
    expected = classifier.predict_proba(X)
    assert held["averaged"]
    assert not held["merged"]
    assert len(held["classes"]) == n_classes
    assert np.abs(scored(held, models[0], table) - expected).max() < 1e-5
    # The same without a model that was fitted before: it is the one that the scores are of.
    assert analyze(table, target, grid_seconds=0)["scorer"] == summary["scorer"]
    # A part has the mean share of each class over its rows, weighted, and the mean of what is added to it.
    (variable,) = (v for v in models[0].variables if v.name == "a")
    shares = np.exp(variable.table[variable.apply(table["a"])])
    added = variable.scores - variable.multiplier * variable.table
    added = added[variable.apply(table["a"])]
    parts = variable.partition.apply(table["a"])
    (told,) = (v for v in held["variables"] if v["name"] == "a")
    for part in range(variable.partition.n_parts):
        scores = variable.multiplier * np.log(shares[parts == part].mean(axis=0))
        scores = scores + added[parts == part].mean(axis=0)
        assert told["part_scores"][part] == pytest.approx((scores[1:] - scores[0]).tolist(), abs=1e-6)


@pytest.fixture(scope="module")
def crossed():
    """Two numbers that act together, one of which is missing at times, and a group that says a little."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(1200), "b": rng.random(1200), "c": rng.choice(list("xyz"), 1200)})
    X.loc[::15, "b"] = np.nan
    y = ((X["a"] > 0.5) ^ (X["b"] > 0.3) ^ (rng.random(1200) < 0.1)).astype(int).to_numpy()
    X["d"] = np.where(rng.random(1200) < 0.3, y, rng.integers(0, 4, 1200)).astype(str)
    models = []
    summary = analyze(read_table(X), read_target(y), grid_seconds=0, keep_model=models.append)
    return X, y, summary, models[0]


def test_pairs_that_act_together_score_as_in_the_model(crossed):
    X, y, summary, model = crossed
    held = json.loads(json.dumps(summary["scorer"], allow_nan=False))
    assert [pair["names"] for pair in held["pairs"]] == summary["classifier"]["pairs"]
    assert ["a", "b"] in summary["classifier"]["pairs"]
    table = read_table(X)
    assert np.abs(scored(held, model, table) - model.predict_proba(X)).max() < 1e-6
    assert np.abs(model.predict_proba(X) - NaiveBayesClassifier().fit(X, y).predict_proba(X)).max() < 1e-6
    assert "1 pair of variables" in classifier_line(summary).plain
    assert "1 pair of variables acts together in it" in render_page(summary)


def test_coarser_parts_have_the_mean_of_a_pair_over_their_rows(crossed):
    X, _, _, model = crossed
    table, (pair,) = read_table(X), model.pairs
    whole = {
        p.name: replace(p, bounds=(0.2,), counts=p.counts[:2], missing_alone=False) for p in pair.partitions
    }
    found = scorer._cell_scores(pair, whole, table)
    cells = np.exp(pair.table[pair.rows_of(table)])
    chosen = [whole[p.name].apply(table[p.name]) for p in pair.partitions]
    own = [p.apply(table[p.name]) for p in pair.partitions]
    n, m = (p.n_parts for p in pair.partitions)
    for i in range(2):
        for rows, at in (
            ((chosen[0] == i) & (chosen[1] == 1), (n + i, m + 1)),
            ((chosen[0] == i) & (own[1] == 0), (n + i, 0)),
            ((own[0] == 1) & (chosen[1] == i), (1, m + i)),
        ):
            expected = pair.multiplier * np.log(cells[rows].mean(axis=0)) if rows.any() else np.zeros(2)
            assert found[at].tolist() == pytest.approx(expected.tolist())


def test_scores_of_rows_not_seen_are_those_with_pairs(crossed):
    X, y, summary, _ = crossed
    alone = [
        NaiveBayesClassifier(pairs=None)
        .fit(X[k::2], y[k::2])
        .predict_proba(X[1 - k :: 2])[np.arange(len(X[1 - k :: 2])), y[1 - k :: 2]]
        for k in (0, 1)
    ]
    assert summary["classifier"]["informs"]
    assert summary["classifier"]["log_loss"] < -np.log(np.concatenate(alone)).mean() - 0.15


def test_a_saved_model_keeps_its_pairs(crossed, tmp_path):
    X, _, _, model = crossed
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert [pair.names for pair in again.pairs] == [pair.names for pair in model.pairs] == [("a", "b")]
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()


def test_without_room_for_the_pairs_it_is_the_simpler_model(crossed, monkeypatch):
    X, y, _, model = crossed
    room = sum(v.parts.n_parts for v in model.variables if v.informs)
    monkeypatch.setattr(scorer, "_MOST_NUMBERS", room)
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    assert summary["classifier"]["pairs"]
    held = summary["scorer"]
    assert held["pairs"] == []
    assert not held["averaged"]
    assert "has pairs of variables that act together" in render_page(summary)


def test_a_large_table_is_scored_by_the_model_of_a_sample(monkeypatch):
    monkeypatch.setattr("damier.fit.evaluation._MOST_VALUES", 3000)
    monkeypatch.setattr("damier.fit.evaluation._LEAST_ROWS", 1000)
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    table, target = read_table({"a": y + rng.normal(0, 1, 4000), "b": rng.random(4000)}), read_target(y)
    held = analyze(table, target, grid_seconds=0)["scorer"]
    assert np.exp(held["log_prior"]).tolist() == pytest.approx((np.bincount(y) / 4000).tolist())


def test_of_many_classes_the_others_are_one(monkeypatch):
    monkeypatch.setattr(scorer, "_MOST_NUMBERS", 200)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 4000)
    X = {"a": y + rng.normal(0, 2, 4000), "b": rng.permutation(y), "c": np.array(list("xyzw"))[y % 4]}
    table, summary, classes, model = fitted(X, y)
    assert len(model.classes) == 10
    assert model.classes[-1] == "31 other classes"
    assert model.class_counts.tolist() == classes.kept(summary["target"]["counts"])
    merged = np.array(["other", *map(str, classes.places)])[
        [classes.places.index(j) + 1 if j in classes.places else 0 for j in y]
    ]
    table, target = read_table(X), read_target(merged)
    # The parts are those of all classes; their evidence is that of the merged ones.
    (a,) = (v for v in model.variables if v.name == "a")
    parts = a.partition.apply(table["a"])
    counts = np.zeros((a.partition.n_parts, 10), int)
    order = [target.classes.tolist().index(str(j)) for j in classes.places] + [
        target.classes.tolist().index("other")
    ]
    np.add.at(counts, (parts, np.argsort(order)[target.codes]), 1)
    assert a.partition.counts.tolist() == counts.tolist()


def test_variables_are_limited_and_counted(monkeypatch):
    monkeypatch.setattr(scorer, "_MOST_NUMBERS", 1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = {f"x{k}": y + rng.normal(0, 1 + k / 100, 600) for k in range(70)}
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    held = summary["scorer"]
    assert held["tried"] == scorer.MAX_VARIABLES
    assert 0 < len(held["variables"]) <= scorer.MAX_VARIABLES
    assert not held["averaged"]
    assert scorer.view(summary)["cut"]


def test_values_that_are_too_many_are_left_out(monkeypatch):
    monkeypatch.setattr(scorer, "_MOST_CHARACTERS", 40)
    columns = sample_columns(900)
    y = columns.pop(SAMPLE_TARGET)
    table, _, classes, model = fitted(pd.DataFrame(columns), y)
    held = scorer.summarize_scorer(model, classes, table)
    grouped = [v for v in held["variables"] if "groups" in v]
    assert any(v["groups"] is None for v in grouped)


def test_nothing_informative_has_no_scorer():
    rng = np.random.default_rng(0)
    summary = analyze(
        read_table({"x": rng.random(300)}), read_target(rng.integers(0, 2, 300)), grid_seconds=0
    )
    assert "scorer" not in summary
    assert scorer.view(summary) is None
    assert scorer.island(summary) is None


@pytest.mark.parametrize("n_classes", [2, 5])
def test_factors_without_scripts_are_odds(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 1500)
    summary = analyze(read_table({"a": y + rng.normal(0, 1, 1500)}), read_target(y), grid_seconds=0)
    view = scorer.view(summary)
    held, j = summary["scorer"], summary["scorer"]["classes"].index(view["class"])
    prior = np.exp(held["log_prior"])
    for part, row in zip(view["variables"][0]["shown"], held["variables"][0]["part_scores"], strict=True):
        after = prior * np.exp([0.0, *row])
        after /= after.sum()
        odds = after[j] / (1 - after[j]) / (prior[j] / (1 - prior[j]))
        assert part["factor"] == pytest.approx(odds)
