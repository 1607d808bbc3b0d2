"""The ordered axis engine against a dynamic programme over all values, and its invariances."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from damier.criteria import discretization_cost, log_bell_table
from damier.search.axis import ordered
from damier.search.axis.costs import RANKS
from damier.search.axis.ordered import discretize, merge_and_improve, partition_ordered
from damier.search.axis.rows import axis_of_pairs
from tests import naive


def problem(seed, most_rows=150, most_classes=6):
    """A random column with classes: ties or not, missing or not, signal or noise."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most_rows))
    n_classes = int(rng.integers(2, most_classes))
    x = rng.normal(size=n) * 3
    if rng.random() < 0.5:
        x = np.round(x * rng.choice([0.5, 1.0, 3.0])) / rng.choice([1.0, 2.0])
    kind = rng.integers(4)
    if kind == 0:
        codes = rng.integers(0, n_classes, n)
    elif kind == 1:
        codes = np.floor(x / rng.choice([0.7, 2.0])).astype(int) % n_classes
    elif kind == 2:
        codes = np.digitize(x + rng.normal(size=n), np.linspace(-3, 3, n_classes - 1))
    else:
        codes = (rng.random(n) < 0.1) * rng.integers(0, n_classes, n)
    flipped = rng.random(n) < rng.choice([0.0, 0.1, 0.3])
    codes = np.where(flipped, rng.integers(0, n_classes, n), codes)
    if rng.random() < 0.3:
        x[rng.random(n) < 0.2] = np.nan
    if rng.random() < 0.2:
        x[rng.random(n) < 0.1] = np.inf
        x[rng.random(n) < 0.1] = -np.inf
    return x, codes.astype(np.int32), n_classes


def same(a, b):
    for name in ("below", "above", "counts"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.cost == pytest.approx(b.cost, rel=1e-12)
    assert a.optimal == b.optimal


def recount(solution, x, codes, n_classes):
    """Class counts of the intervals that the two neighbours of each cut describe."""
    rank = np.where(np.isnan(x), -1, np.searchsorted(np.unique(x[~np.isnan(x)]), x))
    lookup = np.unique(x[~np.isnan(x)])
    upto = [-1 if np.isnan(b) else int(np.searchsorted(lookup, b)) for b in solution.below]
    after = [int(np.searchsorted(lookup, a)) for a in solution.above]
    assert [u + 1 for u in upto] == after
    table = np.zeros((len(upto) + 1, n_classes), int)
    np.add.at(table, (np.searchsorted(np.array([*upto, np.inf]), rank), codes), 1)
    return table


@pytest.mark.parametrize("seed", range(150))
def test_exact_equals_the_oracle(seed):
    x, codes, n_classes = problem(seed)
    counts = naive.ordered_counts(x, codes, n_classes)
    penalty = naive.ordered_interval_penalty(len(x), len(counts))
    least = naive.ordered_optimum(counts, penalty)
    for search in ("auto", "exact"):
        found = discretize(x, codes, n_classes, search=search)
        assert found.optimal
        assert found.cost == pytest.approx(least, rel=1e-10, abs=1e-9)
        np.testing.assert_array_equal(recount(found, x, codes, n_classes), found.counts)
        assert found.cost == pytest.approx(discretization_cost(found.counts), rel=1e-12)
        assert found.null_cost == pytest.approx(discretization_cost(found.counts.sum(0)[None]), rel=1e-12)
    greedy = discretize(x, codes, n_classes, search="greedy")
    np.testing.assert_array_equal(recount(greedy, x, codes, n_classes), greedy.counts)
    assert least - 1e-9 <= greedy.cost <= greedy.null_cost + 1e-9


def long_problem(seed, n_classes, n=20_000):
    """Waves, steps or noise, with a few atoms, long enough for the searches of long axes."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    if seed % 3 == 0:
        odds = np.stack([np.sin((3 + 4 * j) * x + j) for j in range(n_classes)], axis=1)
        codes = (odds * 2 + rng.gumbel(size=odds.shape)).argmax(axis=1)
    elif seed % 3 == 1:
        codes = np.where(rng.random(n) < 0.3, rng.integers(0, n_classes, n), (x * 25).astype(int) % n_classes)
    else:
        codes = rng.integers(0, n_classes, n)
    x[rng.random(n) < 0.02] = 0.5
    return x, codes.astype(np.int32)


@pytest.mark.parametrize("seed", range(9))
def test_long_axes_come_close_to_the_optimum(seed, monkeypatch):
    for n_classes, slack in ((2, 1e-7), (4, 3.0)):
        x, codes = long_problem(seed, n_classes)
        exact = discretize(x, codes, n_classes, search="exact")
        assert exact.optimal
        with monkeypatch.context() as patch:
            patch.setattr(ordered, "_MOST_ELEMENTS_TWO", 100)
            patch.setattr(ordered, "_MOST_ELEMENTS_MANY", 100)
            patch.setattr(ordered, "_MOST_BLOCKS", 2000)
            patch.setattr(ordered, "_LAST_CUTS", 500)
            close = discretize(x, codes, n_classes)
            greedy = discretize(x, codes, n_classes, search="greedy")
        for found in (close, greedy):
            np.testing.assert_array_equal(recount(found, x, codes, n_classes), found.counts)
        assert not close.optimal
        assert exact.cost - 1e-7 <= close.cost <= exact.cost + slack
        assert exact.cost - 1e-7 <= greedy.cost <= greedy.null_cost
        if seed % 3 == 2:
            assert len(exact.counts) == 1


@pytest.mark.parametrize("seed", range(9))
def test_exact_on_a_thousand_rows(seed):
    """Long enough that most starts are dropped by combination and by entropy; of 40 classes most are rare."""
    for n_classes in (2, 3, 40):
        x, codes = long_problem(seed, n_classes, n=1000)
        if seed % 2:
            codes *= np.random.default_rng(seed).random(1000) < 0.1
        counts = naive.ordered_counts(x, codes, n_classes)
        found = discretize(x, codes, n_classes)
        # Twice as many parts as found and some: beyond them the penalty alone is too much.
        penalty = naive.ordered_interval_penalty(1000, 2 * len(found.counts) + 15)
        assert found.optimal
        assert found.cost == pytest.approx(naive.ordered_optimum(counts, penalty), rel=1e-10)


def test_counts_beyond_the_table_of_factorials():
    """Weights push the counts past the table, where Stirling's series continues it."""
    x, codes = long_problem(0, 2, n=60)
    weights = np.full(60, 100_000)
    found = discretize(x, codes, 2, weights=weights)
    counts = naive.ordered_counts(x, codes, 2, weights)
    least = naive.ordered_optimum(counts, naive.ordered_interval_penalty(weights.sum(), len(counts)))
    assert found.cost == pytest.approx(least, rel=1e-9)
    assert found.optimal


def test_greedy_is_seldom_beaten():
    missed = 0
    for seed in range(200):
        x, codes, n_classes = problem(seed)
        exact = discretize(x, codes, n_classes, search="exact")
        missed += discretize(x, codes, n_classes, search="greedy").cost > exact.cost + 1e-7
    assert missed <= 20


@pytest.mark.parametrize("seed", range(40))
def test_partition_with_a_grouping_penalty(seed):
    rng = np.random.default_rng(seed)
    n_values = int(rng.integers(1, 60))
    counts = rng.poisson(rng.choice([0.5, 3.0, 30.0]), size=(n_values, 2))
    counts[:, 1] = rng.binomial(counts[:, 1], np.linspace(0, 1, n_values))
    counts[0, 0] += 1
    penalty = np.log(n_values) + log_bell_table(n_values, n_values)[: n_values + 1][-n_values:]
    for search in ("auto", "greedy"):
        starts, cost, optimal = partition_ordered(counts, penalty, search=search)
        assert starts[0] == 0
        parts = np.add.reduceat(counts, starts, axis=0)
        assert cost == pytest.approx(
            naive.ordered_part_costs(parts).sum() + penalty[len(starts) - 1], rel=1e-9
        )
        least = naive.ordered_optimum(counts, penalty)
        assert cost >= least - 1e-9
        if optimal:
            assert cost == pytest.approx(least, rel=1e-9)
        assert optimal == (search == "auto") or len(starts) == 1


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_row_order_and_monotone_transforms_change_nothing(seed):
    x, codes, n_classes = problem(seed)
    order = np.random.default_rng(seed).permutation(len(x))
    for search in ("auto", "greedy"):
        found = discretize(x, codes, n_classes, search=search)
        same(found, discretize(x[order], codes[order], n_classes, search=search))
        transformed = discretize(np.arctan(x) * 7 + 1, codes, n_classes, search=search)
        np.testing.assert_array_equal(found.counts, transformed.counts)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_weights_are_frequencies(seed):
    x, codes, n_classes = problem(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(x))
    weights[0] = 1
    repeated = discretize(np.repeat(x, weights), np.repeat(codes, weights), n_classes)
    same(discretize(x, codes, n_classes, weights=weights), repeated)


def test_classes_by_another_name():
    for seed in range(20):
        x, codes, n_classes = problem(seed)
        for search in ("auto", "greedy"):
            found = discretize(x, codes, n_classes, search=search)
            turned = discretize(x, (n_classes - 1 - codes).astype(np.int32), n_classes, search=search)
            np.testing.assert_array_equal(found.counts, turned.counts[:, ::-1])


def test_many_classes_take_the_other_path_to_the_same_axis():
    x, codes, _ = problem(5)
    few = discretize(x, codes, 16)
    many = discretize(x, codes, 16, weights=np.ones(len(x), np.int64))
    same(few, many)
    assert discretize(x, codes, 40).counts.shape[1] == 40


def test_whole_numbers_are_counted_to_the_same_end():
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 40, 3000).astype(float)
    codes = ((x > 11) ^ (rng.random(3000) < 0.1)).astype(np.int32)
    x[:20] = np.nan
    found = discretize(x, codes, 2)
    sorted_instead = discretize(x + 0.5, codes, 2)
    np.testing.assert_array_equal(found.counts, sorted_instead.counts)
    np.testing.assert_array_equal(found.below + 0.5, sorted_instead.below)
    np.testing.assert_array_equal(found.above + 0.5, sorted_instead.above)


def test_missing_values_stand_alone_or_join():
    x = np.r_[np.full(20, np.nan), np.arange(20.0), [-np.inf] * 5]
    alone = discretize(x, np.r_[np.ones(20), np.zeros(25)].astype(np.int32), 2)
    assert np.isnan(alone.below).all()
    assert alone.above.tolist() == [-np.inf]
    joined = discretize(x, np.r_[np.ones(20), np.arange(20) < 10, np.ones(5)].astype(np.int32), 2)
    assert joined.below.tolist() == [9.0]
    assert joined.above.tolist() == [10.0]


@pytest.mark.parametrize("search", ["auto", "greedy", "exact"])
def test_degenerate_columns_have_one_interval(search):
    codes = np.array([0, 1, 1], np.int32)
    for x in ([1.0, 1.0, 1.0], [np.nan] * 3, [np.inf] * 3, [0.0, -0.0, 0.0]):
        found = discretize(np.array(x), codes, 2, search=search)
        assert found.counts.tolist() == [[1, 2]]
        assert found.optimal
    one_class = discretize(np.array([1.0, 2.0]), np.zeros(2, np.int32), 1, search=search)
    assert one_class.counts.tolist() == [[2]]
    one_row = discretize(np.array([1.5]), np.zeros(1, np.int32), 2, search=search)
    assert one_row.counts.tolist() == [[1, 0]]


def test_nothing_to_search_is_an_error():
    with pytest.raises(ValueError, match="no rows"):
        discretize(np.empty(0), np.empty(0, np.int32), 2)
    with pytest.raises(ValueError, match="no rows"):
        discretize(np.ones(3), np.zeros(3, np.int32), 2, weights=np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="search must be"):
        discretize(np.ones(3), np.zeros(3, np.int32), 2, search="fast")  # type: ignore[arg-type]


def test_read_only_input_and_threads():
    problems = [problem(seed) for seed in range(16)]
    for x, codes, _ in problems:
        x.flags.writeable = codes.flags.writeable = False
    alone = [discretize(*p) for p in problems]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda p: discretize(*p), problems))
    for a, b in zip(alone, together, strict=True):
        same(a, b)


def ranks_optimum(counts, penalty):
    """Least cost over all intervals priced log N! less the log factorials of their cells, and its size."""
    n_elements = len(counts)
    best = math.inf
    for cuts in itertools.product([False, True], repeat=n_elements - 1):
        edges = [0, *(np.flatnonzero(cuts) + 1).tolist(), n_elements]
        cost = penalty[len(edges) - 2]
        for a, b in itertools.pairwise(edges):
            part = counts[a:b].sum(axis=0).tolist()
            cost += naive.log_int(math.factorial(sum(part)))
            cost -= sum(naive.log_int(math.factorial(c)) for c in part)
        best = min(best, cost)
    return best


def test_intervals_priced_by_ranks():
    """The price of a numeric target's own intervals: greedy merges and improvements, without a proof."""
    reached = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_elements, n_slots = int(rng.integers(2, 10)), int(rng.integers(2, 6))
        shares = rng.dirichlet(np.full(n_slots, 0.5), n_elements)
        counts = np.array([rng.multinomial(rng.integers(1, 30), s) for s in shares])
        elements, slots = (np.repeat(side, counts[counts > 0]) for side in np.nonzero(counts))
        axis = axis_of_pairs(elements, n_elements, slots, n_slots)
        assert axis.n_elements == n_elements
        sizes = counts.sum(axis=0)
        parts = np.arange(1, n_elements + 1)
        penalty = np.array([sum(math.lgamma(n + j) - math.lgamma(j) for n in sizes) for j in parts])
        starts = merge_and_improve(axis, penalty, RANKS.fixed)
        part_of = axis.part_counts(starts)
        cost = penalty[len(starts) - 1]
        cost += gammaln(part_of.sum(axis=1) + 1).sum() - gammaln(part_of + 1).sum()
        best = ranks_optimum(counts, penalty)
        assert cost >= best - 1e-7
        reached += cost < best + 1e-7
    assert reached >= 57


@pytest.mark.parametrize("weight", [1, 10**9, 10**12])
@pytest.mark.parametrize("search", ["greedy", "auto"])
def test_weights_of_any_size_come_to_an_end(search, weight):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200).astype(np.int32)
    values = rng.normal(size=200) + codes
    found = discretize(values, codes, 3, weights=np.full(200, weight), search=search)
    assert found.counts.sum() == 200 * weight
    assert found.cost <= found.null_cost
