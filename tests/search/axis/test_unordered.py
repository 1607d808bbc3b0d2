import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from damier.criteria import grouping_cost, log_bell_table
from damier.search.axis import unordered
from damier.search.axis.costs import CLUSTERS, RANKS, supervised_price
from damier.search.axis.groups import move_elements
from damier.search.axis.unordered import group_values, partition_unordered
from damier.search.axis.values import elements_of_counts, elements_of_rows
from damier.search.kernels import factorial_table
from tests import naive


def grouping_penalty(n_values):
    return math.log(n_values) + log_bell_table(n_values, n_values)[1:]


def random_counts(rng, n_values, n_classes):
    """Values that share a few class profiles, or have none in common, or all one."""
    kind = rng.integers(3)
    n_profiles = {0: int(rng.integers(2, 5)), 1: n_values, 2: 1}[int(kind)]
    profiles = rng.dirichlet(np.full(n_classes, rng.choice([0.3, 1.0, 3.0])), size=n_profiles)
    rows = 1 + rng.poisson(rng.exponential(rng.choice([2, 10, 40]), n_values))
    chosen = rng.integers(0, n_profiles, n_values)
    return np.array([rng.multinomial(rows[v], profiles[chosen[v]]) for v in range(n_values)])


def rows_of(counts):
    """Return the codes and classes of a table's rows."""
    values, classes = np.nonzero(counts)
    repeats = counts[values, classes]
    return np.repeat(values, repeats).astype(np.int32), np.repeat(classes, repeats).astype(np.int32)


def same_partition(left, right):
    pairs = set(zip(left.tolist(), right.tolist(), strict=True))
    return len(pairs) == len(set(left.tolist())) == len(set(right.tolist()))


def test_equals_brute_force_on_300_problems():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n_values, n_classes = int(rng.integers(2, 10)), int(rng.integers(2, 6))
        counts = random_counts(rng, n_values, n_classes)
        labels, cost, optimal = partition_unordered(counts, grouping_penalty(n_values))
        assert cost == pytest.approx(
            naive.grouping_optimum(counts.tolist(), grouping_penalty(n_values)), abs=1e-8
        )
        assert optimal
        assert cost == pytest.approx(
            grouping_cost(naive.group_counts(counts, labels.tolist()), n_values), rel=1e-12
        )


def test_cheaper_groups_equal_brute_force_too():
    # with a small penalty the best groups are many, which the criterion's own penalty rarely gives
    rng = np.random.default_rng(1)
    for _ in range(60):
        n_values, n_classes = int(rng.integers(2, 9)), int(rng.integers(2, 6))
        counts = random_counts(rng, n_values, n_classes)
        penalty = rng.choice([0.02, 0.2]) * grouping_penalty(n_values)
        _, cost, optimal = partition_unordered(counts, penalty)
        assert cost == pytest.approx(naive.grouping_optimum(counts.tolist(), penalty), abs=1e-8)
        assert optimal


def test_descents_alone_equal_brute_force():
    rng = np.random.default_rng(2)
    short = []
    for _ in range(150):
        n_values, n_classes = int(rng.integers(4, 10)), int(rng.integers(3, 6))
        counts = random_counts(rng, n_values, n_classes)
        elements = elements_of_counts(counts)
        if len(elements) < 3:
            continue
        penalty = grouping_penalty(n_values)
        found = unordered._Descents(elements, penalty[: len(elements)]).run(0, restarts=True)
        excess = found.cost - naive.grouping_optimum(counts.tolist(), penalty)
        assert excess > -1e-8
        short.append(excess > 1e-8)
        assert excess < 0.1
    assert np.mean(short) <= 0.01


def test_greedy_lies_between_the_optimum_and_the_null_model():
    rng = np.random.default_rng(3)
    for _ in range(40):
        n_values, n_classes = int(rng.integers(2, 9)), int(rng.integers(2, 6))
        counts = random_counts(rng, n_values, n_classes)
        penalty = grouping_penalty(n_values)
        _, cost, _ = partition_unordered(counts, penalty, search="greedy")
        assert cost >= naive.grouping_optimum(counts.tolist(), penalty) - 1e-8
        assert cost <= penalty[0] + naive.part_cost(counts.sum(axis=0).tolist()) + 1e-8


def test_exact_goes_further_than_auto():
    counts = np.array([[i, 15 - i, 3 + (i * 7) % 5] for i in range(1, 15)])
    penalty = grouping_penalty(14)
    _, cost, optimal = partition_unordered(counts, penalty, search="exact")
    assert optimal
    _, other, unproven = partition_unordered(counts, penalty)
    assert not unproven
    assert other == pytest.approx(cost, abs=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_names_and_row_order_change_nothing(n_classes):
    rng = np.random.default_rng(n_classes)
    for n_values in (8, 40, 200):
        codes, classes = rows_of(random_counts(rng, n_values, n_classes))
        first = group_values(codes, n_values, classes, n_classes)
        values, names = (
            rng.permutation(n_values).astype(np.int32),
            rng.permutation(n_classes).astype(np.int32),
        )
        order = rng.permutation(codes.size)
        second = group_values(values[codes][order], n_values, names[classes][order], n_classes)
        assert second.cost == pytest.approx(first.cost, rel=1e-12)
        assert same_partition(first.groups, second.groups[values])
        assert sorted(map(sorted, first.counts.tolist())) == sorted(map(sorted, second.counts.tolist()))


def test_solution_is_consistent():
    rng = np.random.default_rng(4)
    for n_values, n_classes in ((30, 2), (30, 4), (6, 3)):
        counts = random_counts(rng, n_values, n_classes)
        codes, classes = rows_of(counts)
        solution = group_values(codes, n_values, classes, n_classes)
        assert solution.counts.tolist() == naive.group_counts(counts.tolist(), solution.groups.tolist())
        assert solution.cost == pytest.approx(grouping_cost(solution.counts, n_values), rel=1e-12)
        assert solution.null_cost == pytest.approx(
            grouping_cost(counts.sum(axis=0)[None], n_values), rel=1e-12
        )
        assert solution.cost <= solution.null_cost + 1e-9
        sizes = solution.counts.sum(axis=1)
        assert (np.diff(sizes) <= 0).all()


def test_equal_groups_are_numbered_by_their_smallest_code():
    codes = np.repeat(np.arange(6, dtype=np.int32), 20)
    classes = np.repeat(np.array([2, 1, 0, 2, 1, 0], dtype=np.int32), 20)
    assert group_values(codes, 6, classes, 3).groups.tolist() == [0, 1, 2, 0, 1, 2]


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(5)
    for n_classes in (2, 4):
        codes = rng.integers(0, 15, 300).astype(np.int32)
        classes = ((codes + rng.integers(0, 3, 300)) % n_classes).astype(np.int32)
        weights = rng.integers(0, 4, 300)
        weighted = group_values(codes, 15, classes, n_classes, weights=weights)
        repeated = group_values(np.repeat(codes, weights), 15, np.repeat(classes, weights), n_classes)
        assert weighted.groups.tolist() == repeated.groups.tolist()
        assert weighted.cost == repeated.cost


def test_huge_weights():
    codes = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)
    classes = np.array([0, 1, 0, 1, 2, 1], dtype=np.int32)
    weights = np.array([3 * 10**9, 10**9, 10**9, 3 * 10**9, 10**9, 5])
    solution = group_values(codes, 3, classes, 3, weights=weights)
    assert solution.counts.shape == (3, 3)
    assert solution.cost == pytest.approx(grouping_cost(solution.counts, 3), rel=1e-12)


def test_codes_without_rows_are_no_values():
    codes = np.repeat(np.array([1, 4, 6], dtype=np.int32), 30)
    classes = np.repeat(np.array([0, 1, 0], dtype=np.int32), 30)
    weights = np.ones(90, dtype=np.int64)
    weights[60:] = 0
    solution = group_values(codes, 9, classes, 2)
    assert solution.groups.tolist() == [-1, 0, -1, -1, 1, -1, 0, -1, -1]
    assert solution.cost == pytest.approx(grouping_cost([[60, 0], [0, 30]], 3))
    without = group_values(codes, 9, classes, 2, weights=weights)
    assert without.groups.tolist() == [-1, 0, -1, -1, 1, -1, -1, -1, -1]
    assert without.cost == pytest.approx(grouping_cost([[30, 0], [0, 30]], 2))


def test_one_class_one_value_one_row():
    for codes, classes, n_classes in (([0, 1, 2], [0, 0, 0], 1), ([0, 0], [0, 1], 2), ([0], [2], 3)):
        solution = group_values(np.array(codes, np.int32), 3, np.array(classes, np.int32), n_classes)
        assert solution.counts.shape == (1, n_classes)
        assert solution.optimal
        assert solution.cost == solution.null_cost


def test_proportional_values_are_one_element():
    counts = np.array([[1, 2, 0], [3, 6, 0], [0, 4, 0], [2, 1, 0], [0, 9, 0], [10, 20, 0], [0, 0, 0]])
    elements = elements_of_counts(counts)
    assert len(elements) == 3
    assert elements.n_values == 6
    of_value = elements.of_value
    assert of_value[0] == of_value[1] == of_value[5]
    assert of_value[2] == of_value[4]
    assert of_value[6] == -1
    table = elements.table(np.arange(3), 3)[:, elements.class_rank]
    assert sorted(table.tolist()) == [[0, 13, 0], [2, 1, 0], [14, 28, 0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_counting_gives_the_same_elements(weighted):
    rng = np.random.default_rng(6)
    codes = (rng.zipf(1.5, 2000) % 3000).astype(np.int32)
    classes = rng.integers(0, 40, 2000).astype(np.int32)
    classes[codes % 3 == 0] = codes[codes % 3 == 0] % 40
    weights = rng.integers(0, 4, 2000) if weighted else None
    sparse = elements_of_rows(codes, 3000, classes, 40, weights)
    keys = codes.astype(np.int64) * 40 + classes
    dense = elements_of_counts(
        np.bincount(keys, weights, minlength=120_000).astype(np.int64).reshape(3000, 40)
    )
    assert len(dense) > 60
    for name in ("ptr", "cls", "cnt", "of_value", "class_rank"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))
    assert sparse.n_values == dense.n_values


@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_nearly_distinct_values_carry_no_information(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = np.arange(30_000, dtype=np.int32)
    codes[::50] = 7
    solution = group_values(codes, 30_000, rng.integers(0, n_classes, 30_000).astype(np.int32), n_classes)
    assert solution.counts.shape == (1, n_classes)
    if n_classes == 2:
        assert solution.optimal


@pytest.mark.parametrize("n_classes", [2, 5])
def test_planted_groups_are_found(n_classes):
    rng = np.random.default_rng(n_classes)
    profiles = np.full((3, n_classes), 0.1 / (n_classes - 1))
    for g, j in enumerate((0, 1, n_classes // 2)):
        profiles[g, j] += 0.85
        profiles[g] /= profiles[g].sum()
    n_groups = 2 if n_classes == 2 else 3
    planted = rng.integers(0, n_groups, 600)
    counts = np.array([rng.multinomial(60, profiles[g]) for g in planted])
    codes, classes = rows_of(counts)
    solution = group_values(codes, 600, classes, n_classes)
    assert same_partition(solution.groups, planted)


def test_merges_price_every_number_of_groups():
    rng = np.random.default_rng(7)
    counts = random_counts(rng, 14, 4)
    elements = elements_of_counts(counts)
    n = len(elements)
    penalty = grouping_penalty(14)[:n]
    merges = unordered.Merges(
        elements, np.arange(n), penalty, supervised_price(4), factorial_table(int(counts.sum()) + 4)
    )
    table = elements.table(np.arange(n), n).tolist()
    groups = [[e] for e in range(n)]
    for n_groups in range(n, 0, -1):
        labels = merges.cut(n_groups)
        parts = naive.group_counts(table, labels.tolist())
        assert merges.costs[n_groups - 1] == pytest.approx(
            penalty[n_groups - 1] + sum(map(naive.part_cost, parts)), rel=1e-12
        )
        assert sorted(map(sorted, groups)) == sorted(
            np.flatnonzero(labels == g).tolist() for g in range(n_groups)
        )
        # the next state merges the pair that adds least, found by trying all
        trials = []
        for a in range(n_groups):
            for b in range(a + 1, n_groups):
                joined = [*groups[:a], groups[a] + groups[b], *groups[a + 1 : b], *groups[b + 1 :]]
                held = [[sum(table[e][j] for e in group) for j in range(4)] for group in joined]
                trials.append((sum(map(naive.part_cost, held)), joined))
        if trials:
            groups = min(trials)[1]


@pytest.mark.parametrize("price", [supervised_price(4), CLUSTERS, RANKS])
def test_moves_and_merges_cost_what_they_say(price):
    rng = np.random.default_rng(8)
    for _ in range(20):
        counts = random_counts(rng, 25, 4)
        elements = elements_of_counts(counts)
        n = len(elements)
        penalty = 0.3 * grouping_penalty(25)
        labels = rng.integers(0, 4, n)
        n_slots = 8

        def cost(labels, elements=elements, penalty=penalty, n=n):
            used = np.unique(labels)
            parts = naive.group_counts(elements.table(np.arange(n), n).tolist(), labels.tolist())
            total = penalty[len(parts) - 1]
            for label, part in zip(used, parts, strict=True):
                x = price.fixed + price.per_value * int(np.sum(labels == label))
                total += naive.log_int(math.factorial(sum(part) + x) // math.factorial(x))
                total -= sum(naive.log_int(math.factorial(c)) for c in part)
            return total

        before = cost(labels)
        logs = factorial_table(int(counts.sum()) + 25)
        ptr, cls, cnt = elements.ptr, elements.cls, elements.cnt
        gain = move_elements(ptr, cls, cnt, 4, labels, n_slots, penalty, price, logs, 50)
        assert cost(labels) == pytest.approx(before + gain, rel=1e-10)
        # no single move gains any more, a group of its own included
        for e in range(n):
            for g in range(n_slots):
                moved = labels.copy()
                moved[e] = g
                assert cost(moved) >= cost(labels) - 1e-7
        merges = unordered.Merges(elements, np.arange(n), penalty, price, logs)
        for n_groups in range(1, n + 1):
            assert merges.costs[n_groups - 1] == pytest.approx(cost(merges.cut(n_groups)), rel=1e-10)
        found = unordered.settled(elements, np.arange(n), penalty, price, logs)
        assert found.cost == pytest.approx(cost(found.groups), rel=1e-10)


def test_gathering_never_costs_more():
    rng = np.random.default_rng(9)
    for _ in range(20):
        counts = random_counts(rng, 60, 5)
        elements = elements_of_counts(counts)
        n = len(elements)
        descents = unordered._Descents(elements, grouping_penalty(60)[:n])
        labels = np.arange(n) % 6
        table = elements.table(np.arange(n), n).tolist()
        gathered = descents._gathered(labels.copy(), min(n, 6), 1)
        costs = [sum(map(naive.part_cost, naive.group_counts(table, g.tolist()))) for g in (labels, gathered)]
        assert costs[1] <= costs[0] + 1e-9


def test_threads_and_repetition_change_nothing():
    rng = np.random.default_rng(10)
    problems = [rows_of(random_counts(rng, 80, 5)) for _ in range(6)]

    def solve(problem):
        return group_values(problem[0], 80, problem[1], 5, random_state=3)

    alone = [solve(problem) for problem in problems]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(solve, problems))
    for first, second in zip(alone, together, strict=True):
        assert first.cost == second.cost
        assert first.groups.tolist() == second.groups.tolist()


def test_a_short_penalty_limits_the_number_of_groups():
    rng = np.random.default_rng(11)
    counts = np.array([rng.multinomial(50, rng.dirichlet(np.full(4, 0.3))) for _ in range(40)])
    labels, _, _ = partition_unordered(counts, np.array([0.0, 0.1, 0.2]))
    assert labels.max() == 2


def test_bad_input_is_refused():
    none = np.empty(0, dtype=np.int32)
    with pytest.raises(ValueError, match="no rows"):
        group_values(none, 3, none, 2)
    one = np.zeros(1, dtype=np.int32)
    with pytest.raises(ValueError, match="no rows"):
        group_values(one, 1, one, 1, weights=np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="search must be"):
        group_values(one, 1, one, 1, search="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nothing to group"):
        partition_unordered(np.zeros((3, 2), dtype=np.int64), np.zeros(3))


def test_read_only_input_is_accepted():
    codes, classes = rows_of(np.array([[20, 1, 0], [0, 20, 1], [1, 0, 20]]))
    weights = np.ones(codes.size, dtype=np.int64)
    for array in (codes, classes, weights):
        array.flags.writeable = False
    assert group_values(codes, 3, classes, 3, weights=weights).counts.shape == (3, 3)
