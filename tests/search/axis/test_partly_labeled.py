"""Partly labeled columns: against all partitions and class totals, a published figure, and both limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from damier.criteria import semi_supervised_cost
from damier.search.axis.ordered import discretize
from damier.search.axis.partly_labeled import bounds_between_labels, discretize_partly_labeled
from tests import naive


def best_of_all(values, codes, n_classes):
    """Least cost over every partition; the naive cost tries every N_ij."""
    keys = np.where(np.isnan(values), -np.inf, values)
    distinct, of_row = np.unique(keys, return_inverse=True)
    least = np.inf
    for cuts in itertools.product([0, 1], repeat=distinct.size - 1):
        part = np.concatenate([[0], np.cumsum(cuts)]).astype(int)[of_row]
        labeled = np.zeros((part.max() + 1, n_classes), int)
        np.add.at(labeled, (part[codes >= 0], codes[codes >= 0]), 1)
        least = min(least, naive.semi_supervised_cost(labeled.tolist(), np.bincount(part).tolist()))
    return least


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equals_brute_force_over_partitions_and_class_totals(n_classes):
    rng = np.random.default_rng(n_classes)
    for trial in range(60):
        n_rows = int(rng.integers(2, 13 if trial < 4 else 9))
        values = rng.integers(0, n_rows, n_rows).astype(float)
        if trial % 4 == 0:
            values[rng.random(n_rows) < 0.2] = np.nan
        codes = rng.integers(-1, n_classes, n_rows).astype(np.int32)
        found = discretize_partly_labeled(values, codes, n_classes)
        assert found.cost == pytest.approx(best_of_all(values, codes, n_classes), abs=1e-9)
        assert found.optimal


def least_labels(n_rows, semi_supervised):
    """Least number of labels that gives two intervals when the classes lie apart."""
    x = np.repeat([0.0, 1.0], n_rows // 2)
    for n_labels in range(2, n_rows + 1, 2):
        codes = np.full(n_rows, -1, np.int32)
        codes[: n_labels // 2] = 0
        codes[n_rows // 2 : n_rows // 2 + n_labels // 2] = 1
        known = codes >= 0
        if semi_supervised:
            found = discretize_partly_labeled(x, codes, 2)
        else:
            found = discretize(x[known], codes[known], 2)
        if len(found.counts) == 2:
            return n_labels
    return None


@pytest.mark.parametrize(
    ("n_rows", "wanted"), [(10, 6), (20, 8), (50, 10), (100, 12), (200, 14), (500, 16), (1000, 18)]
)
def test_figure_1(n_rows, wanted):
    assert least_labels(n_rows, semi_supervised=False) == 6
    assert least_labels(n_rows, semi_supervised=True) == wanted


def drawn(seed, most=700):
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(100, most)), int(rng.integers(2, 5))
    x = rng.random(n_rows)
    y = (
        (x * rng.integers(1, 5)).astype(int) + (rng.random(n_rows) < 0.2) * rng.integers(0, n_classes, n_rows)
    ) % 4
    y %= n_classes
    return x, np.where(rng.random(n_rows) < rng.choice([0.05, 0.2, 0.6]), y, -1).astype(np.int32), n_classes


def test_the_search_for_long_columns_finds_the_optimum_of_short_ones():
    for seed in range(40):
        x, codes, n_classes = drawn(seed)
        exact = discretize_partly_labeled(x, codes, n_classes, search="exact")
        proposed = discretize_partly_labeled(x, codes, n_classes, search="greedy")
        assert not proposed.optimal
        assert proposed.cost == pytest.approx(exact.cost, abs=1e-6), seed


def test_cost_and_counts_are_those_of_the_cuts():
    x, codes, n_classes = drawn(3)
    found = discretize_partly_labeled(x, codes, n_classes)
    part = np.searchsorted((found.below + found.above) / 2, x)
    labeled = np.zeros_like(found.counts)
    np.add.at(labeled, (part[codes >= 0], codes[codes >= 0]), 1)
    np.testing.assert_array_equal(labeled, found.counts)
    assert found.cost == pytest.approx(semi_supervised_cost(labeled, np.bincount(part)))


@pytest.mark.parametrize("search", ["auto", "greedy"])
def test_all_labels_is_supervised_and_no_label_is_one_interval(search):
    x, codes, n_classes = drawn(5)
    codes = np.maximum(codes, 0)
    supervised = discretize(x, codes, n_classes, search=search)
    found = discretize_partly_labeled(x, codes, n_classes, search=search)
    np.testing.assert_array_equal(found.below, supervised.below)
    assert found.cost == supervised.cost
    assert len(discretize_partly_labeled(x, np.full(x.size, -1, np.int32), 2).counts) == 1
    assert len(discretize_partly_labeled(x, np.full(x.size, -1, np.int32), 0).counts) == 1


@pytest.mark.parametrize("search", ["auto", "greedy"])
def test_order_of_rows_and_monotone_transforms_change_nothing_and_weights_repeat(search):
    x, codes, n_classes = drawn(7)
    wanted = discretize_partly_labeled(x, codes, n_classes, search=search)
    shuffle = np.random.default_rng(0).permutation(x.size)
    again = discretize_partly_labeled(x[shuffle], codes[shuffle], n_classes, search=search)
    np.testing.assert_array_equal(again.below, wanted.below)
    stretched = discretize_partly_labeled(np.exp(5 * x), codes, n_classes, search=search)
    np.testing.assert_array_equal(stretched.counts, wanted.counts)
    weights = np.random.default_rng(1).integers(1, 4, x.size)
    weighted = discretize_partly_labeled(x, codes, n_classes, weights=weights, search=search)
    repeated = discretize_partly_labeled(
        np.repeat(x, weights), np.repeat(codes, weights), n_classes, search=search
    )
    np.testing.assert_array_equal(weighted.counts, repeated.counts)
    assert weighted.cost == pytest.approx(repeated.cost)


def test_exact_search_refuses_long_columns():
    x = np.arange(5000.0)
    with pytest.raises(ValueError, match="search='auto'"):
        discretize_partly_labeled(x, np.where(x < 10, 0, -1).astype(np.int32), 2, search="exact")


def test_bounds_move_to_the_median_of_the_unlabeled_values_between_labels():
    values = np.array([0.0, 1.0, 5.0, 2.0, 2.5, 4.5, np.nan, 9.0])
    codes = np.array([0, 0, 1, -1, -1, -1, -1, -1], np.int32)
    found = bounds_between_labels(values, codes, np.array([1.0]), np.array([5.0]))
    np.testing.assert_array_equal(found, [2.5])
    even = bounds_between_labels(values, codes, np.array([2.2]), np.array([5.0]))
    np.testing.assert_array_equal(even, [3.5])
    weights = np.array([1, 1, 1, 1, 1, 5, 1, 1])
    heavy = bounds_between_labels(values, codes, np.array([1.0]), np.array([5.0]), weights)
    np.testing.assert_array_equal(heavy, [4.5])
    assert np.isnan(bounds_between_labels(values, codes, np.array([5.0]), np.array([9.0])))[0]
