"""Rows without a label in the transformers and naive Bayes, and the posterior of a bound."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import MODLDiscretizer, MODLEncoder, NaiveBayesClassifier, bound_posterior
from tests import naive

mpl.use("Agg")


@parametrize_with_checks(
    [
        MODLDiscretizer(semi_supervised="criterion"),
        MODLEncoder(semi_supervised="bounds"),
        NaiveBayesClassifier(semi_supervised="criterion"),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_classifiers_classes": "its target is coded -1 and 1, and -1 says here that there is no label"}
        if isinstance(estimator, NaiveBayesClassifier)
        else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def partly_labeled(n_rows=400, share=0.15, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    number = rng.normal(size=n_rows) + 3 * y
    number[rng.random(n_rows) < 0.05] = np.nan
    word = np.where(rng.random(n_rows) < 0.8, np.where(y == 1, "high", "low"), "other")
    labels = np.where(rng.random(n_rows) < share, y, -1)
    return pd.DataFrame({"number": number, "word": word}), labels, y


@pytest.mark.parametrize("mode", ["criterion", "bounds"])
def test_labels_are_marked_by_minus_one_or_by_nothing(mode):
    X, labels, _ = partly_labeled()
    wanted = MODLEncoder(semi_supervised=mode).fit(X, labels)
    words = pd.Series(np.where(labels < 0, None, np.where(labels == 1, "yes", "no")))
    found = MODLEncoder(semi_supervised=mode).fit(X, words)
    assert wanted.classes_.tolist() == [0, 1]
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.partitions_["number"].bounds == wanted.partitions_["number"].bounds
    np.testing.assert_array_equal(found.transform(X), wanted.transform(X))
    assert wanted.partitions_["number"].counts.sum() == (labels >= 0).sum()


def test_minus_one_is_a_class_where_semi_supervision_was_not_asked_for():
    X, labels, _ = partly_labeled()
    assert MODLEncoder().fit(X, labels).classes_.tolist() == [-1, 0, 1]


def test_bounds_mode_moves_bounds_between_the_same_labels():
    X, labels, _ = partly_labeled()
    known = labels >= 0
    supervised = MODLDiscretizer().fit(X.loc[known, ["number"]], labels[known]).partitions_["number"]
    moved = MODLDiscretizer(semi_supervised="bounds").fit(X[["number"]], labels).partitions_["number"]
    assert moved.n_parts == supervised.n_parts > 1
    assert moved.cost == supervised.cost
    np.testing.assert_array_equal(moved.counts, supervised.counts)
    values = X["number"].to_numpy()
    for old, new in zip(supervised.bounds, moved.bounds, strict=True):
        below = values[known & (values <= old)].max()
        above = values[known & (values > old)].min()
        between = values[~known & (values > below) & (values < above)]
        assert new == pytest.approx(np.median(between))


@pytest.mark.parametrize("mode", ["criterion", "bounds"])
def test_all_labeled_is_the_supervised_result(mode):
    X, _, y = partly_labeled()
    for estimator in (MODLEncoder, NaiveBayesClassifier):
        supervised = estimator().fit(X, y).partitions_
        assert estimator(semi_supervised=mode).fit(X, y).partitions_ == supervised


@pytest.mark.parametrize("mode", ["criterion", "bounds"])
def test_no_label_at_all(mode):
    X, _, _ = partly_labeled()
    encoder = MODLEncoder(semi_supervised=mode).fit(X, np.full(len(X), -1))
    assert [p.n_parts for p in encoder.partitions_.values()] == [1, 1]
    assert encoder.levels_ == {"number": 0.0, "word": 0.0}
    with pytest.raises(ValueError, match="without a label"):
        NaiveBayesClassifier(semi_supervised=mode).fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="constant"):
        MODLEncoder(semi_supervised=mode).fit(X, np.where(np.arange(len(X)) < 9, 1, -1))


def test_categories_of_unlabeled_rows_are_unseen():
    X = {"word": ["a", "b"] * 10 + ["c"]}
    encoder = MODLEncoder(semi_supervised="criterion").fit(X, [0, 1] * 10 + [-1])
    assert encoder.transform({"word": ["a", "c"]}).ravel().tolist()[1] == -1


@pytest.mark.parametrize("averaging", [None, "compression"])
@pytest.mark.parametrize("mode", ["criterion", "bounds"])
def test_naive_bayes_learns_from_few_labels(mode, averaging):
    X, labels, y = partly_labeled(2000, share=0.05)
    classifier = NaiveBayesClassifier(averaging=averaging, semi_supervised=mode).fit(X, labels)
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.score(X, y) > 0.9
    assert classifier.model_.class_counts.tolist() == np.bincount(labels[labels >= 0]).tolist()


def test_grouping_classes_has_no_semi_supervised_criterion():
    X, labels, _ = partly_labeled()
    for estimator in (MODLEncoder, NaiveBayesClassifier):
        with pytest.raises(ValueError, match="cannot be combined"):
            estimator(group_classes=True, semi_supervised="criterion").fit(X, labels)


def toy(n_side=40, n_between=20):
    """Figure 3: class 0 up to 0.4, class 1 from 0.6, no label between."""
    x = np.concatenate(
        [np.linspace(0, 0.4, n_side), np.linspace(0.41, 0.59, n_between), np.linspace(0.6, 1, n_side)]
    )
    return x, np.repeat([0, -1, 1], [n_side, n_between, n_side])


def test_figure_3_is_flat_and_lowest_where_there_is_no_label():
    x, y = toy()
    posterior = bound_posterior(x, y)
    surprise = -np.log(posterior.probability)
    inside = (posterior.bounds > 0.4) & (posterior.bounds < 0.6)
    assert inside.sum() == 21
    assert np.ptp(surprise[inside]) < 1e-9
    assert surprise[~inside].min() > surprise[inside].max() + 1
    assert surprise[0] > 20
    assert posterior.two_intervals > 0.999
    low, high = posterior.interval(0.5)
    assert 0.4 <= low < high <= 0.6
    assert "two intervals rather than one" in posterior.plot().get_title()


def test_the_posterior_is_the_sum_over_all_class_totals():
    """Formula 23 by enumeration of the N_ij: the analytic sum must agree."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.permutation(9).astype(float)
        y = rng.integers(-1, 2, 9)
        y[:2] = [0, 1]
        sums = []
        for cut in range(1, 9):
            total = 1.0
            for side in (x < cut, x >= cut):
                labels = [int(np.sum(y[side] == j)) for j in range(2)]
                n = int(side.sum())
                likelihood = 0.0
                for totals in naive.compositions(n, 2):
                    ways = [math.perm(t, k) for t, k in zip(totals, labels, strict=True)]
                    likelihood += math.prod(ways) / math.perm(n, sum(labels)) / math.comb(n + 1, 1)
                total *= likelihood
            sums.append(total)
        np.testing.assert_allclose(bound_posterior(x, y).probability, np.array(sums) / sum(sums), rtol=1e-9)


def test_bad_input_of_the_posterior():
    with pytest.raises(ValueError, match="fewer than two distinct values"):
        bound_posterior([1.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="constant"):
        bound_posterior([1.0, 2.0], [0, -1])
    with pytest.raises(ValueError, match="inconsistent"):
        bound_posterior([1.0, 2.0], [0, 1, 1])


def test_places_of_a_bound_follow_the_interval_rule():
    found = bound_posterior([-np.inf, 0.0, 5e-324, 1.0, np.inf], [0, 0, 0, 1, 1])
    assert found.bounds.tolist() == [-np.inf, 0.0, 0.5, 1.0]
    assert bound_posterior([-np.inf, np.inf], [0, 1]).bounds.tolist() == [-np.inf]
    with pytest.raises(ValueError, match="fewer than two distinct values"):
        bound_posterior([np.nan, np.nan], [0, 1])


def test_rows_of_weight_zero_where_no_row_is_labeled():
    found = MODLDiscretizer(semi_supervised="criterion").fit([[1.0], [2.0]], [-1, -1], sample_weight=[1, 0])
    assert found.partitions_["x0"].n_parts == 1


def test_weights_too_large_for_the_criterion_are_refused():
    discretizer = MODLDiscretizer(semi_supervised="criterion")
    with pytest.raises(ValueError, match="scale sample_weight down"):
        discretizer.fit([[1.0], [2.0], [3.0]], [0, 1, -1], sample_weight=[2**30, 2**30, 2**30])
