"""The naive Bayes of the page is that of the library."""

import json

import numpy as np
import pandas as pd
import pytest

from damier import NaiveBayesClassifier
from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.fit.partitions import partition_column
from damier.intake import read_table, read_target
from damier.report import analyze, scorer, summarize
from damier.report.classes import shown_classes
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
    classifier = NaiveBayesClassifier(evidence="best").fit(X, y)
    assert np.abs(model.predict_proba(table) - classifier.predict_proba(X)).max() < 1e-9


def test_the_summary_scores_as_the_model():
    columns = sample_columns(900)
    y = columns.pop(SAMPLE_TARGET)
    table, _, classes, model = fitted(pd.DataFrame(columns), y)
    held = json.loads(json.dumps(scorer.summarize_scorer(model, classes, table.names), allow_nan=False))
    scores = np.tile(np.array(held["log_prior"]), (table.n_rows, 1))
    for variable in held["variables"]:
        (evidence,) = (v for v in model.variables if v.name == variable["name"])
        scores += np.vstack([variable["scores"], [[0.0, 0.0]]])[
            evidence.partition.apply(table[variable["name"]])
        ]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert np.abs(proba - model.predict_proba(table)).max() < 1e-10
    assert held["columns"] == list(table.names)


def test_of_many_classes_the_others_are_one():
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


def test_variables_are_limited_and_counted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = {f"x{k}": y + rng.normal(0, 1 + k / 100, 600) for k in range(70)}
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    held = summary["scorer"]
    assert held["tried"] == scorer.MAX_VARIABLES
    assert 0 < len(held["variables"]) <= scorer.MAX_VARIABLES
    assert scorer.view(summary)["cut"]


def test_values_that_are_too_many_are_left_out(monkeypatch):
    monkeypatch.setattr(scorer, "_MOST_CHARACTERS", 40)
    columns = sample_columns(900)
    y = columns.pop(SAMPLE_TARGET)
    table, _, classes, model = fitted(pd.DataFrame(columns), y)
    held = scorer.summarize_scorer(model, classes, table.names)
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
    for part, row in zip(view["variables"][0]["shown"], held["variables"][0]["scores"], strict=True):
        after = prior * np.exp(row)
        after /= after.sum()
        odds = after[j] / (1 - after[j]) / (prior[j] / (1 - prior[j]))
        assert part["factor"] == pytest.approx(odds)
