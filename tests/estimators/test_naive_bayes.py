"""Naive Bayes: the formula by hand, weights, groups of classes, and scikit-learn's conventions."""

from __future__ import annotations

import _thread
import dataclasses
import json
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import MODLDiscretizer, MODLEncoder, MODLGrouper, NaiveBayesClassifier
from damier.deploy import load, save
from damier.intake import read_table
from damier.models import IntervalPartition, NaiveBayes, PairEvidence
from damier.search import class_weights, weights
from tests import naive


@parametrize_with_checks(
    [
        NaiveBayesClassifier(),
        NaiveBayesClassifier(averaging=None),
        NaiveBayesClassifier(group_classes=True, n_starts=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def mixed(n_rows=300, seed=0):
    """Numbers and categories, with missing values, that inform about three classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n_rows)
    number = rng.normal(size=n_rows) + 2.0 * (y == "b")
    number[rng.random(n_rows) < 0.1] = np.nan
    word = np.where(rng.random(n_rows) < 0.7, y, rng.choice(["u", "v"], n_rows)).astype(object)
    word[rng.random(n_rows) < 0.1] = None
    return pd.DataFrame({"number": number, "word": word, "noise": rng.normal(size=n_rows)}), y


def by_hand(model, X):
    """Formula 13 with the m-estimate, one row and one class at a time."""
    n = sum(model.class_counts)
    n_classes = len(model.classes)
    result = np.zeros((len(X), n_classes))
    columns = list(read_table(X))
    for k, variable in enumerate(model.variables):
        partition = variable.partition
        for r, part in enumerate(partition.apply(columns[k])):
            for w in range(n_classes):
                if part < 0 or partition.n_parts == 1:
                    continue
                members = [w]
                if partition.class_groups is not None:
                    group = next(g for g in partition.class_groups if model.classes[w] in g)
                    members = [model.classes.index(c) for c in group]
                support = partition.counts[part, members].sum()
                coverage = partition.counts[:, members].sum()
                m, p = n_classes / n, 1 / n_classes
                result[r, w] += np.log((support + m * p) / (coverage + m))
    result += np.log(model.class_counts / n)
    result = np.exp(result - result.max(axis=1, keepdims=True))
    return result / result.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("group_classes", [False, True])
def test_probabilities_are_the_papers_formula(group_classes):
    X, y = mixed()
    classifier = NaiveBayesClassifier(
        group_classes=group_classes, averaging=None, evidence="best", average_starts=False
    ).fit(X, y)
    new = pd.DataFrame(
        {"number": [0.5, np.nan, 9], "word": ["a", None, "never seen"], "noise": [0, 1, np.inf]}
    )
    np.testing.assert_allclose(classifier.predict_proba(new), by_hand(classifier.model_, new), rtol=1e-9)
    np.testing.assert_allclose(classifier.predict_proba(X), by_hand(classifier.model_, X), rtol=1e-9)


def test_unseen_values_are_neutral():
    X, y = mixed()
    classifier = NaiveBayesClassifier().fit(X[["word"]], y)
    frequency = np.unique(y, return_counts=True)[1] / len(y)
    unseen = pd.DataFrame({"word": ["never seen"]})
    np.testing.assert_allclose(classifier.predict_proba(unseen)[0], frequency)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"averaging": None},
        {"group_classes": True},
        {"group_classes": True, "averaging": None},
    ],
)
def test_explanations_json_and_threads_agree_with_prediction(options):
    X, y = mixed()
    classifier = NaiveBayesClassifier(**options).fit(X, y)
    table = read_table(X)
    scores = classifier.explain(X).sum(axis=1) + np.log(np.unique(y, return_counts=True)[1] / len(y))
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(scores, classifier.predict_log_proba(X), atol=1e-12)
    again = NaiveBayes.from_dict(json.loads(json.dumps(classifier.model_.to_dict())))
    np.testing.assert_array_equal(again.predict_log_proba(table), classifier.predict_log_proba(X))
    threaded = NaiveBayesClassifier(**options, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threaded.predict_proba(X), classifier.predict_proba(X))


@pytest.mark.parametrize("options", [{}, {"group_classes": True}])
def test_order_of_rows_names_of_classes_and_monotone_transforms_change_nothing(options):
    X, y = mixed()
    wanted = NaiveBayesClassifier(**options).fit(X, y).predict_proba(X)
    shuffle = np.random.default_rng(1).permutation(len(y))
    shuffled = NaiveBayesClassifier(**options).fit(X.iloc[shuffle], y[shuffle])
    np.testing.assert_array_equal(shuffled.predict_proba(X), wanted)
    renamed = NaiveBayesClassifier(**options).fit(X, np.char.add("class ", y))
    np.testing.assert_allclose(renamed.predict_proba(X), wanted, rtol=1e-6)
    stretched = X.assign(number=np.exp(X["number"]), noise=X["noise"] ** 3)
    transformed = NaiveBayesClassifier(**options).fit(stretched, y)
    np.testing.assert_allclose(transformed.predict_proba(stretched), wanted, rtol=1e-6)


def test_weights_are_repetitions():
    X, y = mixed(150)
    times = np.random.default_rng(0).integers(0, 3, 150)
    weighted = NaiveBayesClassifier().fit(X, y, sample_weight=times)
    rows = np.repeat(np.arange(150), times)
    repeated = NaiveBayesClassifier().fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_averaging_makes_probabilities_honest_where_variables_repeat_each_other():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = pd.concat([X, X.add_suffix(" again"), X.add_suffix(" and again")], axis=1)
    loss = {}
    for averaging in (None, "compression"):
        proba = cross_val_predict(
            NaiveBayesClassifier(averaging=averaging), X, y, cv=5, method="predict_proba"
        )
        loss[averaging] = log_loss(y, proba)
    assert loss["compression"] < 0.5 * loss[None]


def test_many_classes_and_many_variables_sum_to_one():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(120), 8)
    X = rng.normal(size=(960, 8)) + (y[:, None] % 2) * 8
    X = np.hstack([X] * 20)
    classifier = NaiveBayesClassifier(averaging=None).fit(X, y)
    proba = classifier.predict_proba(X)
    assert np.isfinite(classifier.predict_log_proba(X)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def grid_of_classes(rng, n_rows):
    """Four hundred classes on a 20 x 20 grid, seen through two blurred columns."""
    y = rng.integers(0, 400, n_rows)
    return np.column_stack([y // 20, y % 20]) + rng.normal(scale=0.5, size=(n_rows, 2)), y


def test_grouping_classes_pays_with_many_classes():
    rng = np.random.default_rng(0)
    X, y = grid_of_classes(rng, 3000)
    new_X, new_y = grid_of_classes(rng, 4000)
    plain = NaiveBayesClassifier(averaging=None).fit(X, y).score(new_X, new_y)
    best = NaiveBayesClassifier(group_classes=True, averaging=None, average_starts=False, n_starts=4).fit(
        X, y
    )
    averaged = (
        NaiveBayesClassifier(group_classes=True, averaging=None, n_starts=4).fit(X, y).score(new_X, new_y)
    )
    assert best.score(new_X, new_y) > 1.2 * plain
    assert averaged > best.score(new_X, new_y)
    groups = best.partitions_["x0"].class_groups
    assert sorted(c for group in groups for c in group) == best.classes_.tolist()
    assert 2 < len(groups) < 30


def test_summaries_by_column():
    X, y = load_wine(return_X_y=True, as_frame=True)
    classifier = NaiveBayesClassifier().fit(X.assign(constant=1.0), y)
    assert list(classifier.levels_) == [*X.columns, "constant"]
    assert classifier.weights_.shape == (classifier.n_features_in_,)
    assert classifier.weights_[-1] == classifier.levels_["constant"] == 0.0
    assert (classifier.weights_ >= 0).all()
    np.testing.assert_allclose(classifier.class_weights_.mean(axis=1), classifier.weights_)
    compressed = NaiveBayesClassifier(averaging="compression").fit(X, y).weights_
    assert ((compressed >= 0) & (compressed <= 1)).all()
    assert classifier.feature_importances_.sum() == pytest.approx(1.0)
    assert (NaiveBayesClassifier(averaging=None).fit(X, y).weights_ == 1.0).all()


def test_pipelines_and_polars():
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), NaiveBayesClassifier()).fit(X[:500], y[:500])
    assert pipeline.score(X[500:], y[500:]) > 0.75
    frame, target = mixed()
    words = [None if pd.isna(word) else word for word in frame["word"]]
    told = pl.DataFrame(
        {"number": frame["number"].to_numpy(), "word": words, "noise": frame["noise"].to_numpy()}
    )
    told = told.with_columns(pl.col("number").fill_nan(None))
    a = NaiveBayesClassifier().fit(told, pl.Series(target)).predict_proba(told)
    np.testing.assert_array_equal(a, NaiveBayesClassifier().fit(frame, target).predict_proba(frame))


def test_no_informative_column_predicts_the_frequencies():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    classifier = NaiveBayesClassifier(evidence="best").fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), np.tile(np.bincount(y) / 500, (500, 1)))
    assert (classifier.feature_importances_ == 0).all()


def test_noise_averaged_over_all_partitions_weighs_nothing():
    """Of columns of noise nine in ten have a weight of exactly zero, and no probability moves far."""
    rng = np.random.default_rng(1)
    weights = []
    for _ in range(20):
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
        classifier = NaiveBayesClassifier().fit(X, y)
        weights.append(classifier.weights_)
        assert np.abs(classifier.predict_proba(X)[:, 1] - y.mean()).mean() < 0.1
    assert np.mean(np.array(weights) == 0) > 0.85


@pytest.mark.parametrize("seed", range(8))
def test_many_columns_of_noise_weigh_nothing_beyond_those_that_were_cut(seed):
    """Of 200 columns some have several parts by chance; those of a single part have no weight."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(300, 200)), np.arange(300) % 2
    classifier = NaiveBayesClassifier(pairs=None).fit(X, y)
    cut = [partition.n_parts > 1 for partition in classifier.partitions_.values()]
    assert np.count_nonzero(classifier.weights_) <= sum(cut) <= 2
    X_new, y_new = rng.normal(size=(2000, 200)), np.arange(2000) % 2
    shares = classifier.predict_proba(X_new)[np.arange(2000), y_new]
    assert -np.log(shares).mean() < np.log(2) + 0.03


def test_an_identifier_weighs_nothing():
    """Its values, put in the order of their classes, would say all about the rows that were fitted."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.3).astype(int)
    X = {"id": np.array([f"C{i}" for i in range(4000)]), "size": rng.normal(size=4000) + y}
    weights = NaiveBayesClassifier().fit(X, y).weights_
    assert weights[0] == 0.0
    assert weights[1] > 0.9


def test_a_smooth_trend_is_learned_better_from_all_partitions():
    """Shares that rise slowly: the mean over all partitions is nearer to them than any single one."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 400)
    true = 1 / (1 + np.exp(-x))
    y = rng.random(400) < true
    apart = {
        evidence: np.abs(
            NaiveBayesClassifier(evidence=evidence, averaging=None)
            .fit(x[:, None], y)
            .predict_proba(x[:, None])[:, 1]
            - true
        ).mean()
        for evidence in ("posterior", "best")
    }
    assert apart["posterior"] < 0.75 * apart["best"]


def test_elements_of_several_values_cost_little(monkeypatch):
    """At most 200 elements in place of 1,500 values: what the guide says is lost."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    truth = 1 / (1 + np.exp(-1.5 * np.sin(2 * x)))
    y = rng.random(1500) < truth

    def shares():
        return NaiveBayesClassifier(averaging=None).fit({"x": x}, y).predict_proba({"x": x})[:, 1]

    def loss(share):
        return -(truth * np.log(share) + (1 - truth) * np.log(1 - share)).mean()

    coarse = shares()
    monkeypatch.setattr("damier.fit.averaged._MOST_ELEMENTS", 1500)
    monkeypatch.setattr("damier.fit.averaged._MOST_CELLS", 1500 * 2)
    fine = shares()
    assert 0 < np.abs(coarse - fine).mean() < 0.008
    assert np.abs(coarse - fine).max() < 0.14
    assert loss(coarse) - loss(fine) < 0.002


def test_a_constant_target_is_refused():
    with pytest.raises(ValueError, match="constant"):
        NaiveBayesClassifier().fit([[1.0], [2.0]], ["yes", "yes"])


def test_the_encoder_groups_classes_too():
    rng = np.random.default_rng(0)
    X, y = grid_of_classes(rng, 2000)
    encoder = MODLEncoder(group_classes=True, encode="evidence").fit(X, y)
    partition = encoder.partitions_["x1"]
    assert partition.level > 0
    assert 2 < len(partition.class_groups) < 30
    evidence = encoder.transform(X[:5]).reshape(5, 2, -1)
    group = partition.class_groups[0]
    members = [encoder.classes_.tolist().index(c) for c in group]
    assert np.ptp(evidence[:, 1, members], axis=1).max() == 0.0
    classifier = NaiveBayesClassifier(group_classes=True, averaging=None, average_starts=False).fit(X, y)
    np.testing.assert_allclose(evidence, classifier.explain(X[:5]))


def test_saved_and_loaded(tmp_path):
    X, y = mixed()
    classifier = NaiveBayesClassifier(group_classes=True, averaging="compression").fit(X, y)
    save(classifier, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_log_proba(read_table(X)), classifier.predict_log_proba(X))


def test_an_optimum_far_from_the_best_is_not_averaged(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = grid_of_classes(rng, 2000)
    classifier = NaiveBayesClassifier(group_classes=True).fit(X, y)
    for variable in classifier.model_.variables:
        assert len(variable.partitions) > 1
        levels = [partition.level for partition in variable.partitions]
        assert levels == sorted(levels, reverse=True)
        assert levels[-1] >= 0.9 * levels[0]

    from damier.fit import naive_bayes

    kept = classifier.model_.variables[0].partitions[0]
    poor = dataclasses.replace(kept, cost=kept.null_cost - 0.5 * (kept.null_cost - kept.cost))
    monkeypatch.setattr(naive_bayes, "joint_partitions", lambda *_, **__: (kept, poor))
    again = NaiveBayesClassifier(group_classes=True).fit(X[:, :1], y)
    assert again.model_.variables[0].partitions == (kept,)


def test_ctrl_c_while_weighting_keeps_the_finished_starts(monkeypatch):
    X, y = load_wine(return_X_y=True)
    search, calls = weights.search_weights, []

    def interrupted(problem, state, orders, selected, stepped, stop):
        calls.append(None)
        if len(calls) == first:
            _thread.interrupt_main()
            while not stop[0]:
                time.sleep(0.001)
        return search(problem, state, orders, selected, stepped, stop)

    monkeypatch.setattr(weights, "search_weights", interrupted)
    first = 3
    classifier = NaiveBayesClassifier(averaging="compression").fit(X, y)
    assert classifier.search_ended_ == "interrupted"
    assert len(calls) == 3
    assert 0 < classifier.weights_.max() <= 1
    first = 4  # the first start of a second fit
    with pytest.raises(KeyboardInterrupt):
        NaiveBayesClassifier(averaging="compression").fit(X, y)


def test_ctrl_c_while_climbing_keeps_the_weights_of_the_last_step(monkeypatch):
    X, y = load_wine(return_X_y=True)
    climb, calls = class_weights.loss_and_slopes, []

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 5:
            _thread.interrupt_main()
            time.sleep(0.5)
        return climb(*arguments)

    monkeypatch.setattr(class_weights, "loss_and_slopes", interrupted)
    classifier = NaiveBayesClassifier().fit(X, y)
    assert classifier.search_ended_ == "interrupted"
    assert len(calls) < 10
    assert classifier.score(X, y) > 0.9


def test_ctrl_c_while_partitioning_is_an_interrupt_and_progress_counts_columns(monkeypatch):
    from damier.fit import encoding, naive_bayes

    X, y = load_wine(return_X_y=True)
    for estimator in (NaiveBayesClassifier(pairs=None), MODLEncoder(), MODLDiscretizer(), MODLGrouper()):
        reports = []
        estimator.fit(X, y, progress=reports.append)
        assert estimator.search_ended_ == "complete"
        columns = [report.done for report in reports if report.text == "Partitioning columns"]
        assert columns == list(range(1, X.shape[1] + 1))
        assert {report.total for report in reports} == {X.shape[1]}

    def interrupted(*_, **__):
        _thread.interrupt_main()
        time.sleep(0.5)
        return partition_column(*_, **__)

    partition_column = naive_bayes.partition_column
    for module in (naive_bayes, encoding):
        monkeypatch.setattr(module, "partition_column", interrupted)
    for estimator in (NaiveBayesClassifier(), MODLEncoder()):
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, y)
        assert not hasattr(estimator, "model_")


def test_values_of_very_different_shares_do_not_overflow():
    rng = np.random.default_rng(0)
    word = (rng.pareto(1.0, 90_000) * 30).astype(int) % 3000
    odds = rng.normal(size=3000)[word] + rng.normal(size=90_000)
    bayes = NaiveBayesClassifier().fit({"word": [f"w{i}" for i in word]}, np.digitize(odds, [1.0, 2.5]))
    assert np.isfinite(bayes.model_.variables[0].table).all()


def crossed(n_rows=1200, seed=0):
    """Two classes that two columns decide together and neither alone, a third that one informs about."""
    rng = np.random.default_rng(seed)
    u = rng.random((n_rows, 3))
    word = rng.choice(["u", "v", "w"], n_rows).astype(object)
    word[rng.random(n_rows) < 0.1] = None
    y = np.where((u[:, 0] > 0.5) ^ np.isin(word, ["u", None]), "yes", "no").astype(object)
    other = rng.random(n_rows)
    y = np.where(other < 0.15, rng.permutation(y), y)
    y = np.where(u[:, 1] > 0.8, "other", y)
    return pd.DataFrame({"a": u[:, 0], "b": u[:, 1], "noise": u[:, 2], "word": word}), y


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_evidence_of_a_pair_term_by_term(n_classes, seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 6, (6, n_classes)) * (rng.random((6, n_classes)) < 0.7)
    cells[rng.integers(6)] = 0
    cells[(np.arange(n_classes) * 5) % 6, np.arange(n_classes)] += 1
    fields = {"classes": tuple("abcd"[:n_classes]), "cost": 0.0, "null_cost": 0.0, "optimal": False}
    partitions = tuple(
        IntervalPartition(
            name=name, counts=np.ones((len(bounds) + 1, n_classes), int), bounds=bounds, **fields
        )
        for name, bounds in (("x", (1.0,)), ("y", (1.0, 2.0)))
    )
    pair = PairEvidence(partitions, cells)
    table, without = naive.pair_evidence(cells.tolist(), 3)
    np.testing.assert_allclose(pair.table[:-1], table, atol=1e-12)
    np.testing.assert_array_equal(pair.table[-1], 0.0)
    own, shift = pair.table_without_the_row, pair.shift_without_the_row
    for cell, of_cell in enumerate(without):
        if not cells[cell].any():
            np.testing.assert_allclose(pair.table[cell], 0.0, atol=1e-12)
        for j, evidence in enumerate(of_cell):
            if evidence is None:
                continue
            assert own[cell, j] == pytest.approx(evidence[j], abs=1e-12)
            for w in set(range(n_classes)) - {j}:
                assert pair.table[cell, w] + shift[cell, j] == pytest.approx(evidence[w], abs=1e-12)


def test_a_pair_is_found_weighted_explained_and_saved(tmp_path):
    X, y = crossed()
    held_out, truth = crossed(3000, seed=1)
    alone = NaiveBayesClassifier(pairs=None).fit(X, y)
    classifier = NaiveBayesClassifier().fit(X, y)
    (pair,) = classifier.pairs_
    assert set(pair.names) == {"a", "word"}
    assert classifier.score(held_out, truth) > alone.score(held_out, truth) + 0.2
    assert classifier.model_.used_names == ["a", "b", "word"]

    evidence = classifier.explain(held_out)
    assert evidence.shape == (3000, 5, 3)
    scores = evidence.sum(axis=1) + np.log(np.unique(y, return_counts=True)[1] / len(y))
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(scores, classifier.predict_log_proba(held_out), atol=1e-12)
    reasons = classifier.model_.reasons({"a": [0.9], "b": [0.1], "noise": [0.5], "word": ["v"]})
    assert " and " in reasons[0][0]
    assert "a > " in reasons[0][0]

    save(classifier, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded == classifier.model_
    np.testing.assert_array_equal(loaded.predict_proba(held_out), classifier.predict_proba(held_out))
    for word in ("u", None, "never seen"):
        row = {"a": 0.2, "b": float("nan"), "word": word}
        columns = {name: [value] for name, value in row.items()}
        np.testing.assert_allclose(loaded.predict_proba(row), loaded.predict_proba(columns), rtol=1e-12)
    unseen = loaded.explain({"a": [0.2], "b": [0.5], "noise": [0.1], "word": ["never seen"]})
    np.testing.assert_array_equal(unseen[0, 4], 0.0)


def test_files_without_pairs_are_read():
    X, y = crossed(200)
    model = NaiveBayesClassifier(pairs=None).fit(X, y).model_
    plain = model.to_dict()
    del plain["pairs"]
    assert NaiveBayes.from_dict(plain) == model


def test_pairs_do_not_depend_on_row_order_threads_or_how_rows_are_repeated():
    X, y = crossed(600)
    found = NaiveBayesClassifier().fit(X, y).predict_proba(X)
    shuffle = np.random.default_rng(1).permutation(len(y))
    other = NaiveBayesClassifier(pairs="auto", n_jobs=2).fit(X.iloc[shuffle], y[shuffle])
    np.testing.assert_array_equal(other.predict_proba(X), found)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = NaiveBayesClassifier(pairs=2).fit(X, y, sample_weight=times)
    rows = np.repeat(np.arange(len(y)), times)
    repeated = NaiveBayesClassifier(pairs=2).fit(X.iloc[rows], y[rows])
    assert weighted.pairs_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_pairs_do_not_depend_on_the_order_of_the_columns():
    # Folds are dealt by the cells of the pair: numbered along the other column first, they were others.
    X, y = crossed(600)
    names = ["word", "noise", "b", "a"]
    found, other = NaiveBayesClassifier().fit(X, y), NaiveBayesClassifier().fit(X[names], y)
    assert found.pairs_[0].names == other.pairs_[0].names
    np.testing.assert_allclose(other.predict_proba(X[names]), found.predict_proba(X), rtol=1e-9)


def test_pairs_searched_on_some_of_the_rows_are_counted_on_all(monkeypatch):
    X, y = crossed(900)
    monkeypatch.setattr("damier.fit.pairs.PAIRED_ROWS", 500)
    shuffle = np.random.default_rng(1).permutation(len(y))
    one = NaiveBayesClassifier(pairs=1).fit(X, y)
    other = NaiveBayesClassifier(pairs=1).fit(X.iloc[shuffle], y[shuffle])
    (pair,) = one.pairs_
    assert pair.counts.sum() == 900
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    times = np.full(len(y), 2)
    weighted = NaiveBayesClassifier(pairs=1).fit(X, y, sample_weight=times)
    assert weighted.pairs_[0].counts.sum() == 1800


def test_noise_has_no_pair_and_one_column_neither():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 8)), rng.integers(0, 2, 400)
    assert NaiveBayesClassifier().fit(X, y).pairs_ == ()
    assert NaiveBayesClassifier().fit(X[:, :1], y).pairs_ == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"averaging": None}, 'set averaging="convex", or pairs=None'),
        ({"averaging": "compression"}, 'set averaging="convex", or pairs=None'),
        ({"group_classes": True}, "group_classes=True groups them: set pairs=None"),
    ],
)
def test_pairs_that_cannot_be_weighted_are_refused(options, message):
    X, y = crossed(60)
    with pytest.raises(ValueError, match=message):
        NaiveBayesClassifier(pairs=3, **options).fit(X, y)
    assert NaiveBayesClassifier(**options).fit(X, y).pairs_ == ()


def test_with_weights_of_one_averaged_evidence_does_not_speak_for_rare_classes():
    """Shares are drawn to equal ones: twelve columns that each favour a rare class would decide together."""
    random = np.random.default_rng(0)
    n, n_classes = 1500, 120
    y = random.choice(n_classes, 2 * n, p=random.dirichlet(np.ones(n_classes)))
    X = random.normal(size=(2 * n, 12)) + 2.0 * random.normal(size=(n_classes, 12))[y]
    accuracy = {}
    for evidence in ("posterior", "best"):
        model = NaiveBayesClassifier(averaging=None, evidence=evidence).fit(X[:n], y[:n])
        accuracy[evidence] = np.mean(model.predict(X[n:]) == y[n:])
    assert accuracy["posterior"] > accuracy["best"] > 0.8
    model = NaiveBayesClassifier(averaging=None).fit(X[:n], y[:n]).model_
    for variable in model.variables:  # over the rows fitted, evidence for a class is one on the mean
        counts = variable.parts.counts.sum(axis=1)
        np.testing.assert_allclose(counts @ np.exp(variable.table[:-1]) / counts.sum(), 1.0, rtol=1e-9)
