"""The report's scores: against scikit-learn's metrics and cross-validation, and at the edges."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from damier import MODLEncoder, NaiveBayesClassifier
from damier.fit import evaluation
from damier.fit.evaluation import area_under_curve, cross_validated_scores, stratified_folds
from damier.intake import read_table, read_target
from damier.search.run import Run


@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_scores_are_scikit_learns(loader):
    X, y = loader(return_X_y=True, as_frame=True)
    progress = []
    run = Run(n_threads=2, progress=progress.append)
    found = run.call(cross_validated_scores, read_table(X), read_target(y), run=run)
    proba = cross_val_predict(
        NaiveBayesClassifier(),
        X,
        y,
        cv=PredefinedSplit(stratified_folds(y.to_numpy(), 5)),
        method="predict_proba",
    )
    assert found["accuracy"] == pytest.approx(accuracy_score(y, proba.argmax(axis=1)))
    assert found["log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-6)
    if proba.shape[1] == 2:
        auc = roc_auc_score(y, proba[:, 1])
    else:
        auc = roc_auc_score(y, proba, multi_class="ovr", average="weighted")
    assert found["auc"] == pytest.approx(auc)
    assert found["majority"] == pytest.approx(y.value_counts(normalize=True).max())
    assert list(found["weights"]) == list(X.columns)
    assert progress[-1].done == progress[-1].total > 0


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_area_under_the_curve_with_ties(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, 200)
    proba = rng.integers(1, 4, (200, n_classes)).astype(float)
    proba /= proba.sum(axis=1, keepdims=True)
    if n_classes == 2:
        expected = roc_auc_score(codes, proba[:, 1])
    else:
        expected = roc_auc_score(codes, proba, multi_class="ovr", average="weighted")
    assert area_under_curve(proba, codes) == pytest.approx(expected)


def test_folds_are_stratified_and_of_one_size():
    rng = np.random.default_rng(0)
    codes = rng.choice(4, 503, p=[0.6, 0.3, 0.09, 0.01])
    folds = stratified_folds(codes, 5)
    assert np.ptp(np.bincount(folds)) <= 1
    for w in range(4):
        assert np.ptp(np.bincount(folds[codes == w], minlength=5)) <= 1
    assert np.corrcoef(folds, np.arange(503))[0, 1] < 0.1


def test_ready_partitions_are_not_searched_again(monkeypatch):
    X, y = load_wine(return_X_y=True, as_frame=True)
    table, target = read_table(X), read_target(y)

    def scores(**ready):
        run = Run()
        return run.call(cross_validated_scores, table, target, run=run, **ready)

    expected = scores()
    searched = []
    partition = evaluation.partition_column

    def counted(column, target, *args, **keywords):
        searched.append(target.codes.size)
        return partition(column, target, *args, **keywords)

    monkeypatch.setattr(evaluation, "partition_column", counted)
    ready = list(MODLEncoder(short_bounds=True).fit(X, y).partitions_.values())
    assert scores(partitions=ready) == expected
    assert len(searched) == 5 * X.shape[1]
    assert max(searched) < len(y)


def test_rare_classes_do_not_stop_it():
    rng = np.random.default_rng(0)
    y = np.array([0] * 50 + [1] * 45 + [2, 3, 3])
    table = read_table({"x": y + rng.normal(size=y.size), "noise": rng.normal(size=y.size)})
    found = cross_validated_scores(table, read_target(y), run=Run())
    assert 0.5 < found["accuracy"] < 1
    assert np.isfinite(found["log_loss"])


def test_a_fold_may_learn_from_one_class_only():
    y = np.array([0] * 9 + [1])
    found = cross_validated_scores(
        read_table({"x": np.arange(10.0), "word": list("aabbccddee")}), read_target(y), run=Run()
    )
    assert found["accuracy"] == 0.9
    assert np.isfinite(found["log_loss"])


def test_a_sample_keeps_rare_classes_and_scores_for_all_rows(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.choice(3, 20_000, p=[0.9, 0.08, 0.02])
    table = read_table({"x": y + 1.2 * rng.normal(size=y.size), "z": rng.normal(size=y.size)})
    target = read_target(y)
    whole = cross_validated_scores(table, target, run=Run())
    assert whole["rows"] == whole["of_rows"] == y.size
    monkeypatch.setattr(evaluation, "_MOST_VALUES", 0)
    monkeypatch.setattr(evaluation, "_LEAST_ROWS", 4000)
    kept = y[evaluation._sample(target, 4000)]
    assert np.bincount(kept)[1:].tolist() == np.bincount(y)[1:].tolist()  # the rare ones are whole
    found = cross_validated_scores(table, target, run=Run())
    assert (found["rows"], found["of_rows"]) == (4000, 20_000)
    assert found["majority"] == whole["majority"]
    assert found["prior_log_loss"] == whole["prior_log_loss"]
    # Unweighted, accuracy would be about 0.65 and the log-loss 0.75.
    for score in ("accuracy", "auc", "log_loss"):
        assert found[score] == pytest.approx(whole[score], abs=0.015)


def test_weighted_area_is_that_of_repeated_rows():
    rng = np.random.default_rng(3)
    codes, times = rng.integers(0, 3, 100), rng.integers(1, 5, 100)
    proba = rng.dirichlet(np.ones(3), 100).round(1) + 0.01
    expected = area_under_curve(np.repeat(proba, times, axis=0), np.repeat(codes, times))
    assert area_under_curve(proba, codes, times.astype(float)) == pytest.approx(expected)


def test_scikit_learn_is_not_imported():
    code = (
        "import sys; from damier.fit.evaluation import cross_validated_scores as scores\n"
        "from damier.intake import read_table, read_target; from damier.search.run import Run\n"
        "scores(read_table({'x': list(range(60))}), read_target([0] * 30 + [1] * 30), run=Run())\n"
        "assert 'sklearn' not in sys.modules and 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
