"""The report's figures: against scikit-learn's own cross-validation, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from damier import NaiveBayesClassifier
from damier.estimators import _evaluation
from damier.estimators._evaluation import cross_validated_scores
from damier.intake import read_table, read_target


@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_scores_are_scikit_learns(loader):
    X, y = loader(return_X_y=True, as_frame=True)
    found = cross_validated_scores(read_table(X), read_target(y), n_jobs=2)
    proba = cross_val_predict(
        NaiveBayesClassifier(averaging="compression"),
        X,
        y,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
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


def test_rare_classes_do_not_stop_it():
    rng = np.random.default_rng(0)
    y = np.array([0] * 50 + [1] * 45 + [2, 3, 3])
    table = read_table({"x": y + rng.normal(size=y.size), "noise": rng.normal(size=y.size)})
    found = cross_validated_scores(table, read_target(y))
    assert 0.5 < found["accuracy"] < 1
    assert np.isfinite(found["log_loss"])


def test_of_a_large_table_a_subset_with_every_class(monkeypatch):
    monkeypatch.setattr(_evaluation, "_MOST_VALUES", 2000)
    y = np.array([0, 1] * 4000 + [2, 2])
    table = read_table({"x": np.arange(y.size), "z": np.arange(y.size) % 7})
    found = cross_validated_scores(table, read_target(y), n_folds=2)
    assert found["rows"] == 1000
    assert np.isfinite(found["log_loss"])
