"""Counts in adaptive bins: those of NumPy, whatever the batches; bins in the order of the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damier.intake.engines.prebins import (
    ALL,
    MOST_VALUES,
    Binning,
    bins_of,
    count_numbers,
    exact_binning,
    joined_counts,
    keys_of,
    merge,
    no_counts,
    numbers_of,
    only_binning,
    refined_binning,
)

floats = st.floats(allow_nan=False, width=64)


@settings(max_examples=200, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60))
def test_keys_sort_as_the_numbers(values):
    array = np.array(values)
    keys = keys_of(array)
    assert (np.argsort(keys, kind="stable") == np.argsort(array, kind="stable")).all()
    assert (numbers_of(keys) == array).all()
    assert len(np.unique(keys)) == len(np.unique(array))


@settings(max_examples=100, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60))
def test_exact_bins_hold_one_value_each(values):
    keys = np.unique(keys_of(np.array(values)))
    binning = exact_binning(keys)
    bins = bins_of(keys, binning)
    assert (np.diff(bins) > 0).all()
    assert bins[0] >= 0
    assert bins[-1] < binning.n_bins <= 64 * len(keys)


def mixture(rng, n):
    values = np.concatenate(
        [rng.normal(size=n), rng.standard_cauchy(n) * 1e9, np.round(rng.normal(size=n), 1), np.zeros(n)]
    )
    values[rng.random(values.size) < 0.05] = np.nan
    return rng.permutation(values)


def test_refined_bins_keep_the_order_and_all_rows():
    rng = np.random.default_rng(0)
    values = mixture(rng, 5000)
    codes = rng.integers(0, 3, values.size)
    binning: Binning = ALL
    for _ in range(3):
        counts = count_numbers(no_counts(binning, 3), values, codes, None, binning)
        present = ~np.isnan(values)
        assert counts.missing.tolist() == np.bincount(codes[~present], minlength=3).tolist()
        keys = keys_of(values[present])
        bins = bins_of(keys, binning)
        order = np.argsort(keys, kind="stable")
        assert (np.diff(bins[order]) >= 0).all()
        expected = np.zeros((binning.n_bins, 3), int)
        np.add.at(expected, (bins, codes[present]), 1)
        assert (counts.counts == expected).all()
        held = counts.counts.sum(axis=1) > 0
        for b in np.flatnonzero(held)[::97]:
            assert counts.low[b] == keys[bins == b].min()
            assert counts.high[b] == keys[bins == b].max()
        binning = refined_binning(binning, counts, n_bins=1000)
        assert binning.n_bins <= 2 * 1000 + held.sum()


def test_rows_of_other_bins_are_dropped():
    rng = np.random.default_rng(1)
    values = rng.normal(size=5000)
    first = count_numbers(no_counts(ALL, 1), values)
    binning = refined_binning(ALL, first)
    counts = count_numbers(no_counts(binning, 1), values, None, None, binning)
    kept = np.zeros(binning.n_bins, bool)
    kept[100:200] = True
    finer = refined_binning(binning, counts, kept, 4096)
    only = only_binning(finer, kept)
    found = count_numbers(no_counts(only, 1), values, None, None, only)
    assert found.counts.sum() == counts.counts[kept].sum()
    assert found.low.min() == counts.low[kept].min()
    whole = count_numbers(no_counts(finer, 1), values, None, None, finer)
    for held, expected in zip(joined_counts(finer, counts, kept, found), whole, strict=True):
        assert np.array_equal(held, expected)


@pytest.mark.parametrize("n_parts", [2, 7])
def test_counts_of_parts_add_up(n_parts):
    rng = np.random.default_rng(2)
    values, codes = mixture(rng, 500), rng.integers(0, 4, 2000)
    weights = rng.integers(1, 5, 2000)
    whole = count_numbers(no_counts(ALL, 4, values=True), values, codes, weights)
    at = rng.integers(0, n_parts, 2000)
    parts = [
        count_numbers(no_counts(ALL, 4, values=True), values[at == p], codes[at == p], weights[at == p])
        for p in range(n_parts)
    ]
    merged = merge(parts)
    for held, expected in zip(merged, whole, strict=True):
        assert (held == expected).all()
    repeated = count_numbers(
        no_counts(ALL, 4, values=True), np.repeat(values, weights), np.repeat(codes, weights)
    )
    for held, expected in zip(repeated, whole, strict=True):
        assert (held == expected).all()


def test_distinct_values_are_given_up_when_they_are_many():
    few = count_numbers(no_counts(ALL, 1, values=True), np.arange(float(MOST_VALUES)))
    assert (numbers_of(few.values) == np.arange(MOST_VALUES)).all()
    assert count_numbers(few, np.array([0.5])).values is None
