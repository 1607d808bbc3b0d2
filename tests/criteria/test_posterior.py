import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from damier.criteria import interval_posterior
from damier.models.naive_bayes import posterior_of_elements
from tests import naive

tables = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 6), st.integers(2, 4)),
    elements=st.integers(0, 12),
).filter(lambda table: table.sum() > 0)


@settings(max_examples=25, deadline=None)
@given(tables)
def test_equals_the_sum_over_all_partitions(counts):
    shares, own, cuts = naive.interval_posterior(counts.tolist())
    found = interval_posterior(counts)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.own_shares, own, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.cuts, cuts, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_twelve_elements(n_classes):
    counts = np.random.default_rng(n_classes).integers(0, 9, (12, n_classes))
    counts[7:, 0] += 6
    shares, _, cuts = naive.interval_posterior(counts.tolist(), own=False)
    found = interval_posterior(counts)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.cuts, cuts, rtol=0, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(tables)
def test_shares_are_shares(counts):
    found = interval_posterior(counts)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    assert found.n_parts.sum() == pytest.approx(1.0)
    assert (found.deviations >= 0).all()
    assert (found.cuts > -1e-12).all()
    assert (found.cuts < 1 + 1e-9).all()
    # Expected number of parts, counted in two ways.
    parts = found.n_parts @ np.arange(1, found.n_parts.size + 1)
    assert 1 + found.cuts.sum() == pytest.approx(parts)


@settings(max_examples=15, deadline=None)
@given(tables)
def test_deviations_over_all_partitions(counts):
    expected = naive.interval_posterior_deviations(counts.tolist())
    # A difference of squares: 1e-9 in the variance.
    np.testing.assert_allclose(
        interval_posterior(counts).deviations ** 2, np.square(expected), rtol=0, atol=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(tables)
def test_groups_of_neighbours_at_the_price_of_groups(counts):
    """Values without an order: the sum over all groups of neighbours in the order given."""
    n_values = len(counts)
    shares, own, cuts = naive.interval_posterior(
        counts.tolist(), cost=lambda parts: naive.grouping_cost(parts, n_values)
    )
    found = posterior_of_elements(counts, np.ones(n_values, np.int64), ordered=False)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.own_shares, own, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.cuts, cuts, rtol=0, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(tables)
def test_numbers_taken_to_inform(counts):
    """Two intervals or more, all sets of as many cuts alike."""
    n_values = len(counts)
    shares, own, cuts = naive.interval_posterior(
        counts.tolist(), cost=lambda parts: naive.informing_cost(parts, n_values)
    )
    found = posterior_of_elements(counts, np.ones(n_values, np.int64), ordered=True, informs=True)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.own_shares, own, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.cuts, cuts, rtol=0, atol=1e-9)
    if n_values > 1:
        assert found.n_parts[0] < 1e-6


def test_noise_that_cannot_be_cut_stays_in_one_part():
    """With hundreds of classes a second part may be beyond what floats hold; it is then left out."""
    counts = np.zeros((30, 600), np.int64)
    counts[:, 0] = 1000
    for e in range(30):
        counts[e, 1 + 19 * e : 20 + 19 * e] = 1
    found = posterior_of_elements(counts, np.full(30, 100), ordered=True, informs=True)
    assert np.isfinite(found.shares).all()
    assert np.isfinite(found.own_shares).all()
    assert found.n_parts[0] > 0.99


def test_two_groups_of_thousands_of_values_are_beyond_reach():
    """Of values seen once each, put in the order of their classes, no group is probable."""
    n_values = np.full(200, 40)
    counts = np.zeros((200, 2), np.int64)
    counts[:150, 0] = counts[150:, 1] = 40
    found = posterior_of_elements(counts, n_values, ordered=False)
    assert found.n_parts[0] > 1 - 1e-9
    np.testing.assert_allclose(found.shares, [[6001 / 8002, 2001 / 8002]] * 200, rtol=1e-9)


def test_deviations_of_one_element():
    """One element: the share has a beta distribution, known in closed form."""
    found = interval_posterior([[7, 3]])
    a, b = 8, 4
    assert found.shares[0, 0] == pytest.approx(a / (a + b))
    assert found.deviations[0, 0] == pytest.approx(np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1))))


def test_a_million_rows_and_a_sharp_step():
    counts = np.zeros((200, 2), np.int64)
    counts[:100, 0] = counts[100:, 1] = 5_000
    found = interval_posterior(counts)
    assert found.cuts[99] == pytest.approx(1.0)
    assert found.shares[99, 0] > 0.9999
    assert found.shares[100, 0] < 0.0001


def test_noise_keeps_one_part():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, [0.3, 0.7], size=150)
    assert interval_posterior(counts).n_parts[0] > 0.9


def test_elements_put_together_lose_little():
    """Cuts that stand for several others have their weight: the curve stays where it was."""
    rng = np.random.default_rng(1)
    share = 1 / (1 + np.exp(-np.linspace(-2, 2, 900)))
    yes = rng.random(900) < share
    fine = np.stack([~yes, yes], axis=1).astype(np.int64)
    coarse = fine.reshape(150, 6, 2).sum(axis=1)
    full = interval_posterior(fine).shares.reshape(150, 6, 2).mean(axis=1)

    def lost(stands_for):
        return np.abs(interval_posterior(coarse, stands_for=stands_for).shares - full).mean()

    assert lost(np.full(149, 6.0)) < 0.006
    assert lost(np.full(149, 6.0)) < lost(None)


def test_refuses_what_is_not_counts():
    with pytest.raises(ValueError, match="counts"):
        interval_posterior([[0.5, 1.0]])


@pytest.mark.filterwarnings("error")
def test_hundreds_of_parts_of_ten_million_rows():
    """Where each cut stands for thousands, sums over hundreds of parts stay between the floats."""
    rng = np.random.default_rng(0)
    n_values = np.where(np.arange(400) % 2, 50_000, rng.integers(10, 50_000, 400))
    x = np.cumsum(n_values) / n_values.sum() * 6 - 3
    ones = np.round(n_values / (1 + np.exp(-2 * np.sin(6 * x)))).astype(np.int64)
    counts = np.stack([n_values - ones, ones], axis=1)
    found = posterior_of_elements(counts, n_values, ordered=True, informs=True)
    np.testing.assert_allclose(found.shares[:, 1], ones / n_values, atol=0.02)


@pytest.mark.parametrize("rows", [1, 2])
def test_shares_of_noise_in_two_hundred_elements_add_up_to_one(rows):
    """Where most partitions have nearly as many parts as there are values, no sum falls below the floats."""
    y = np.random.default_rng(30).integers(0, 2, 200 * rows)
    counts = np.stack([1 - y, y], axis=1).reshape(200, rows, 2).sum(axis=1)
    found = posterior_of_elements(counts, np.ones(200, np.int64), ordered=True, informs=True)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0, atol=1e-9)
    # Each element is as probable to be alone, and the cuts as probable, read from the other end.
    other = posterior_of_elements(counts[::-1], np.ones(200, np.int64), ordered=True, informs=True)
    np.testing.assert_allclose(found.shares, other.shares[::-1], atol=1e-9)
    np.testing.assert_allclose(found.cuts, other.cuts[::-1], atol=1e-9)
