"""Curves of gains and of calibration against scikit-learn and against counting by hand."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from damier.fit.evaluation import class_curves
from damier.report import worth


def scored(n_rows=500, n_classes=3, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n_rows)
    if ties:
        proba = proba.round(1)
    codes = np.array([rng.choice(n_classes, p=p / p.sum()) for p in proba])
    return proba, codes


@pytest.mark.parametrize("ties", [False, True])
def test_captured_is_what_the_most_probable_rows_hold(ties):
    proba, codes = scored(ties=ties)
    for curve in class_curves(proba, codes, np.ones(500), range(3)):
        j = curve["place"]
        assert curve["auc"] == pytest.approx(roc_auc_score(codes == j, proba[:, j]))
        captured = []
        for percent in range(101):
            take, held = percent * 5.0, 0.0
            for score in np.unique(proba[:, j])[::-1]:  # of equal ones as many of the class as of the others
                equal = proba[:, j] == score
                part = min(1.0, take / equal.sum())
                held += part * (codes[equal] == j).sum()
                take -= part * equal.sum()
            captured.append(held / (codes == j).sum())
        assert curve["captured"] == pytest.approx(captured, abs=1e-6)
        assert curve["captured"][0] == 0.0
        assert curve["captured"][-1] == 1.0


def test_weights_are_rows_repeated():
    proba, codes = scored(60)
    weights = np.random.default_rng(1).integers(1, 5, 60)
    (weighted,) = class_curves(proba, codes, weights.astype(float), [1])
    (repeated,) = class_curves(
        np.repeat(proba, weights, axis=0), np.repeat(codes, weights), np.ones(weights.sum()), [1]
    )
    assert weighted["auc"] == pytest.approx(repeated["auc"])
    assert weighted["captured"] == pytest.approx(repeated["captured"], abs=1e-6)
    assert weighted["calibration"] == repeated["calibration"]


def test_calibration_covers_all_rows_and_is_true_of_true_probabilities():
    proba, codes = scored(20_000)
    for curve in class_curves(proba, codes, np.ones(20_000), range(3)):
        bins = curve["calibration"]
        assert len(bins) == 10
        assert sum(one["rows"] for one in bins) == pytest.approx(1, abs=1e-5)
        mean = sum(one["rows"] * one["observed"] for one in bins)
        assert mean == pytest.approx(np.mean(codes == curve["place"]), abs=1e-5)
        assert all(abs(one["observed"] - one["predicted"]) < 0.04 for one in bins)


def test_a_class_without_rows_has_no_curve():
    proba, codes = scored(50)
    assert [c["place"] for c in class_curves(proba, np.minimum(codes, 1), np.ones(50), range(3))] == [0, 1]
    assert class_curves(proba, np.zeros(50, int), np.ones(50), [0]) == []


def summary_of(captured, counts=(900, 100)):
    curve = {
        "place": 1,
        "auc": 0.8,
        "captured": captured,
        "calibration": [{"predicted": 0.1, "observed": 0.1, "rows": 1.0}],
    }
    return {
        "dataset": {"rows": sum(counts)},
        "target": {"classes": ["no", "yes"], "counts": list(counts)},
        "variables": [],
        "classifier": {"curves": [curve], "informs": True},
    }


def test_the_top_in_numbers_and_money():
    captured = [min(1.0, 2 * k / 100) for k in range(101)]
    top = worth.at_top(summary_of(captured), 1, 20, cost=2.0, benefit=30.0)
    assert top == {
        "rows": 200.0,
        "captured": 40.0,
        "share": 0.4,
        "precision": 0.2,
        "lift": 2.0,
        "money": 800.0,
    }
    assert worth.at_top(summary_of(captured), 1, 0)["lift"] == 0.0


def test_the_roc_curve_follows_from_the_gains():
    proba, codes = scored(4000, 2)
    (curve,) = class_curves(proba, codes, np.ones(4000), [1])
    base = np.mean(codes)
    drawn = worth.draw(curve, base)
    points = np.array([point.split() for point in drawn["roc"][1:].split("L")], float)
    x, y = points[:, 0] / worth.SIDE, 1 - points[:, 1] / worth.SIDE
    assert np.trapezoid(y, x) == pytest.approx(curve["auc"], abs=2e-3)
