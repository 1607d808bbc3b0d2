import itertools
import math

import numpy as np
import pytest

from damier.search.axis.numeric_target import (
    JointPartition,
    cut_target,
    equal_blocks,
    labels_of,
    partition_with_target,
    target_axis,
)
from damier.search.axis.rows import axis_of_counts
from damier.search.kernels import factorial_table
from tests import naive


def solve(x, y, weights=None, *, ordered=True, search="auto") -> JointPartition:
    values, codes = np.unique(x, return_inverse=True)
    distinct, target_codes = np.unique(y, return_inverse=True)
    axis = target_axis(target_codes.astype(np.int32), len(distinct), weights)
    return partition_with_target(codes, len(values), axis, ordered=ordered, search=search)


def all_cuts(n):
    for marks in itertools.product((0, 1), repeat=n - 1):
        yield np.concatenate(([0], np.cumsum(marks)))


def all_groups(n):
    def extend(labels):
        if len(labels) == n:
            yield np.array(labels)
            return
        for group in range(max(labels) + 2):
            yield from extend([*labels, group])

    yield from extend([0])


def brute_force(table, ordered):
    """Least cost over all parts of the rows of a table and all intervals of its columns."""
    n, (n_values, n_targets) = int(table.sum()), table.shape
    price = [naive.log_int(math.factorial(k)) for k in range(n + n_targets)]
    best = np.inf
    for parts in all_cuts(n_values) if ordered else all_groups(n_values):
        n_parts = int(parts.max()) + 1
        prior = 2 * math.log(n) + naive.log_int(math.comb(n + n_parts - 1, n_parts - 1))
        if not ordered:
            prior = math.log(n) + math.log(n_values) + naive.log_bell(n_values, n_parts)
        by_part = [table[parts == part].sum(axis=0) for part in range(n_parts)]
        for intervals in all_cuts(n_targets):
            j = int(intervals.max()) + 1
            cost, columns = prior, [0] * j
            for held in by_part:
                counts = [0] * j
                for interval, count in zip(intervals.tolist(), held.tolist(), strict=True):
                    counts[interval] += count
                cost += price[sum(counts) + j - 1] - price[j - 1] - sum(price[c] for c in counts)
                columns = [a + b for a, b in zip(columns, counts, strict=True)]
            best = min(best, cost + sum(price[c] for c in columns))
    return best


def related(rng, n, noise=0.5, step=0.0):
    x = rng.normal(size=n)
    y = x + noise * rng.normal(size=n)
    if step:
        x, y = np.round(x / step) * step, np.round(y / step) * step
    return x, y


def random_table(rng, n_values, n_targets, rows):
    """Counts that gather around a curve, each row and column with some."""
    x, y = rng.integers(0, n_values, rows), rng.normal(0, 0.7, rows)
    y = np.clip(np.round(x * (n_targets - 1) / max(n_values - 1, 1) + y), 0, n_targets - 1).astype(int)
    table = np.zeros((n_values, n_targets), np.int64)
    np.add.at(table, (x, y), 1)
    return table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]


def solve_table(table, ordered=True):
    x, y = np.nonzero(table)
    return solve(x, y, table[x, y], ordered=ordered)


def test_no_partition_of_small_tables_is_cheaper():
    rng = np.random.default_rng(0)
    informed = []
    for _ in range(60):
        table = random_table(rng, rng.integers(2, 7), rng.integers(2, 7), rng.integers(6, 80))
        found = solve_table(table)
        assert found.cost == pytest.approx(brute_force(table, ordered=True), abs=1e-9)
        assert found.optimal
        informed.append(found.counts.shape)
    assert {(1, 1), (2, 2), (3, 3)} <= set(informed)


def test_no_partition_of_twelve_rows_is_cheaper():
    rng = np.random.default_rng(1)
    for _ in range(10):
        table = random_table(rng, 7, 7, 12)
        assert solve_table(table).cost == pytest.approx(brute_force(table, ordered=True), abs=1e-9)
    assert solve(range(12), [3, 1, 5, 2, 4, 0, 8, 6, 11, 7, 10, 9]).counts.tolist() == [[6, 0], [0, 6]]


def test_no_groups_of_small_tables_are_cheaper():
    rng = np.random.default_rng(2)
    informed = []
    for _ in range(40):
        table = random_table(rng, rng.integers(2, 6), rng.integers(2, 6), rng.integers(6, 60))
        found = solve_table(rng.permutation(table), ordered=False)
        assert found.cost == pytest.approx(brute_force(table, ordered=False), abs=1e-9)
        assert found.optimal
        informed.append(found.counts.shape)
    assert len(set(informed)) > 4


def test_turns_are_seldom_dearer_than_all_partitions(monkeypatch):
    """The search of larger tables, on tables that brute force can settle."""
    monkeypatch.setattr("damier.search.axis.numeric_target._MOST_TRIED", 0)
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(100):
        table = random_table(rng, rng.integers(2, 7), rng.integers(2, 7), rng.integers(6, 80))
        found = solve_table(table)
        least = brute_force(table, ordered=True)
        assert found.cost > least - 1e-9
        missed += found.cost > least + 1e-6
    assert missed <= 5


def test_the_target_is_cut_at_the_least_cost():
    rng = np.random.default_rng(4)
    for _ in range(30):
        counts = rng.integers(0, 6, (rng.integers(2, 9), 3))
        counts[counts.sum(axis=1) == 0, 0] = 1
        axis, first = axis_of_counts(counts)
        penalty = np.cumsum(np.sort(rng.uniform(0.1, 3, len(counts)))[::-1])  # growing and concave
        starts = first[cut_target(axis.cls, axis.cnt, axis.ptr, penalty, factorial_table(200))]

        def cost(labels, counts=counts, penalty=penalty):
            total = penalty[labels.max()]
            for label in range(labels.max() + 1):
                held = counts[labels == label].sum(axis=0).tolist()
                total += naive.log_int(naive.multinomial(held))
            return total

        starts[0] = 0
        assert cost(labels_of(starts, len(counts))) == pytest.approx(min(map(cost, all_cuts(len(counts)))))


def test_more_intervals_of_the_target_are_cut_at_the_least_cost():
    """The same, against a dynamic programme over all numbers of intervals."""
    rng = np.random.default_rng(11)
    numbers = set()
    for trial in range(20):
        n = 30
        rate = 1 + 9 * (np.arange(n)[:, None] * (1, 2, 4)[trial % 3] // 10 % 3 == np.arange(3))
        counts = rng.poisson(rate * (0.3, 2.0)[trial % 2])
        counts[counts.sum(axis=1) == 0, 0] = 1
        parts = counts.sum(axis=0)
        penalty = np.cumsum([0, *(np.log1p(parts / k).sum() for k in range(1, n))])
        table = factorial_table(2000)
        price = {
            (a, b): table[(held := counts[a:b].sum(axis=0)).sum()] - table[held].sum()
            for a in range(n)
            for b in range(a + 1, n + 1)
        }
        least = [0.0] + [np.inf] * n
        best = np.inf
        for k in range(n):
            least = [min((least[a] + price[a, b] for a in range(b)), default=np.inf) for b in range(n + 1)]
            best = min(best, least[n] + penalty[k])
        axis, first = axis_of_counts(counts)
        starts = first[cut_target(axis.cls, axis.cnt, axis.ptr, penalty, table)]
        starts[0] = 0
        found = sum(price[a, b] for a, b in zip(starts, [*starts[1:], n], strict=True))
        assert found + penalty[len(starts) - 1] == pytest.approx(best, abs=1e-9)
        numbers.add(len(starts))
    assert len(numbers) > 3


@pytest.mark.parametrize("ordered", [True, False])
def test_cost_is_that_of_the_formula(ordered):
    rng = np.random.default_rng(5)
    x, y = related(rng, 400, step=0.05)
    found = solve(x, y, ordered=ordered)
    n_values = None if ordered else len(np.unique(x))
    assert found.cost == pytest.approx(naive.regression_cost(found.counts.tolist(), n_values), rel=1e-12)
    assert found.null_cost == pytest.approx(naive.regression_cost([[400]], n_values), rel=1e-12)
    assert found.cost < found.null_cost
    parts = found.parts[np.unique(x, return_inverse=True)[1]]
    intervals = labels_of(found.target_starts, len(np.unique(y)))[np.unique(y, return_inverse=True)[1]]
    counts = np.zeros_like(found.counts)
    np.add.at(counts, (parts, intervals), 1)
    assert np.array_equal(counts, found.counts)


@pytest.mark.parametrize("ordered", [True, False])
def test_weights_are_repeated_rows(ordered):
    rng = np.random.default_rng(6)
    x, y = related(rng, 700, step=0.02 if ordered else 0.3)
    weights = rng.integers(1, 4, 700)
    found = solve(x, y, weights, ordered=ordered)
    repeated = solve(np.repeat(x, weights), np.repeat(y, weights), ordered=ordered)
    assert found.cost == repeated.cost
    assert np.array_equal(found.counts, repeated.counts)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n", [300, 3000])
def test_order_of_rows_does_not_matter(ordered, n):
    rng = np.random.default_rng(7)
    x, y = related(rng, n, step=0.01 if ordered else 0.2)
    again = rng.permutation(n)
    found, shuffled = solve(x, y, ordered=ordered), solve(x[again], y[again], ordered=ordered)
    assert found.cost == shuffled.cost
    assert np.array_equal(found.parts, shuffled.parts)
    assert np.array_equal(found.target_starts, shuffled.target_starts)


def test_only_ranks_matter():
    rng = np.random.default_rng(8)
    x, y = related(rng, 1000)
    found, warped = solve(x, y), solve(np.exp(x), y**3)
    assert np.array_equal(found.counts, warped.counts)


def test_improvement_by_value_gains():
    """Blocks hide where cuts belong: value by value, they are found."""
    rng = np.random.default_rng(9)
    x = rng.uniform(size=5000)
    y = np.where(x < 0.123, 0.0, 1.0) + rng.uniform(size=5000) * 0.9
    found = solve(x, y)
    assert found.counts.shape == (2, 2)
    assert found.counts[0, 1] == found.counts[1, 0] == 0


def test_noise_is_one_part():
    rng = np.random.default_rng(10)
    for n in (100, 1000):
        parts = [len(solve(rng.normal(size=n), rng.normal(size=n)).counts) for _ in range(50)]
        assert parts.count(1) >= 49


def test_blocks_hold_about_the_same_rows():
    sizes = np.ones(1000, np.int64)
    assert np.diff(equal_blocks(sizes, 10)).tolist() == [100] * 9
    assert equal_blocks(np.array([5, 1, 1]), 8).tolist() == [0, 1, 2]
