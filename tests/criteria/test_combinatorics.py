import math
import threading

import numpy as np
import pytest

from damier.criteria import combinatorics, log_bell, log_bell_table, log_binomial, log_factorials
from tests import naive


def test_log_factorials_match_exact_integers():
    table = log_factorials(3000)
    assert table.shape == (3001,)
    exact = [naive.log_int(math.factorial(n)) for n in range(0, 3001, 7)]
    np.testing.assert_allclose(table[::7], exact, rtol=1e-14)
    assert table[0] == table[1] == 0.0


def test_log_factorials_grow_and_are_read_only():
    short = log_factorials(10)
    long = log_factorials(200_000)
    np.testing.assert_array_equal(long[:11], short)
    assert not long.flags.writeable
    assert long.flags.c_contiguous
    assert long[-1] == pytest.approx(math.lgamma(200_001), rel=1e-15)
    assert np.shares_memory(long, log_factorials(150_000))


def test_log_factorials_from_many_threads(monkeypatch):
    monkeypatch.setattr(combinatorics, "_factorials", np.zeros(1))
    wrong = []

    def ask(seed):
        for n in np.random.default_rng(seed).integers(0, 50_000, 20):
            table = log_factorials(int(n))
            if table.size != n + 1 or table[-1] != pytest.approx(math.lgamma(n + 1), rel=1e-14, abs=1e-14):
                wrong.append(n)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_log_binomial():
    for n, k in [(0, 0), (1, 0), (1, 1), (10, 3), (1000, 999), (5000, 2500), (10**9, 5)]:
        assert log_binomial(n, k) == pytest.approx(naive.log_int(math.comb(n, k)), rel=1e-12, abs=1e-15)
    assert log_binomial(3, 4) == -math.inf
    np.testing.assert_allclose(log_binomial([4, 5, 6], 2), np.log([6, 10, 15]))
    with pytest.raises(ValueError, match="n >= 0"):
        log_binomial(-1, 0)


@pytest.mark.parametrize("n_values", [1, 2, 3, 5, 19, 20, 21, 40, 150, 600])
def test_log_bell_matches_exact_integers(n_values):
    sums = np.cumsum(np.array(naive.stirling2_row(n_values)[1:], dtype=object))
    exact = [naive.log_int(int(b)) for b in sums]
    np.testing.assert_allclose(log_bell_table(n_values, n_values)[1:], exact, rtol=1e-12, atol=1e-12)


def exact_log_bell(n_values, n_groups):
    """Sum S(V, i) by inclusion and exclusion in whole numbers: I! B(V, I) is one."""
    total = 0
    for i in range(1, n_groups + 1):
        signed = sum((-1) ** (i - k) * math.comb(i, k) * k**n_values for k in range(1, i + 1))
        total += signed * (math.factorial(n_groups) // math.factorial(i))
    return naive.log_int(total) - naive.log_int(math.factorial(n_groups))


@pytest.mark.parametrize(("n_values", "n_groups"), [(2000, 2), (2000, 60), (10_000, 3), (30_000, 50)])
def test_log_bell_of_many_values(n_values, n_groups):
    assert log_bell(n_values, n_groups) == pytest.approx(exact_log_bell(n_values, n_groups), rel=1e-12)


def test_log_bell_at_the_far_end():
    # with a million values, 2000 groups are so few that nearly every map is onto: B ~ 2000^V / 2000!
    expected = 1_000_000 * math.log(2000) - math.lgamma(2001)
    assert log_bell(1_000_000, 2000) == pytest.approx(expected, rel=1e-9)
    assert log_bell(1_000_000, 2) == pytest.approx(999_999 * math.log(2), rel=1e-12)


def test_log_bell_table_is_kept_and_padded():
    table = log_bell_table(500, 30)
    assert np.shares_memory(table, log_bell_table(500, 20))
    assert log_bell_table(500, 300)[:31].tolist() == table.tolist()
    padded = log_bell_table(3, 6)
    np.testing.assert_allclose(np.exp(padded), [0, 1, 4, 5, 5, 5, 5])
    assert not padded.flags.writeable
    assert log_bell(3, 6) == padded[-1]


def test_the_kept_tables_are_bounded(monkeypatch):
    monkeypatch.setattr(combinatorics, "_MAX_BELL_TABLES", 3)
    for n_values in range(50, 60):
        log_bell_table(n_values, 5)
    assert len(combinatorics._bell_tables) == 3


@pytest.mark.parametrize("bad", [-1, 1.5, "two", None])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        log_factorials(bad)
    with pytest.raises(ValueError, match="n_values must be"):
        log_bell(bad, 1)
    with pytest.raises(ValueError, match="n_groups must be"):
        log_bell(5, bad)
