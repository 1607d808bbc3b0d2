"""Input and classes partitioned together: against all partitions on small tables, and on Letter-like data."""

from __future__ import annotations

import numpy as np
import pytest

from damier.criteria import class_grouping_cost, log_bell_table, log_factorials
from damier.search.axis.class_groups import partition_with_classes, regroup_classes
from tests import naive


def rows_of(table):
    """Rows (element, class) of a table of counts."""
    elements, classes = np.nonzero(table)
    times = table[elements, classes]
    return np.repeat(elements, times), np.repeat(classes, times)


def small_table(seed):
    rng = np.random.default_rng(seed)
    n_elements, n_classes = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    shares = rng.dirichlet(np.full(n_classes, 0.3), int(rng.integers(1, 4)))
    table = np.array(
        [rng.multinomial(rng.integers(1, 25), shares[rng.integers(len(shares))]) for _ in range(n_elements)]
    )
    return table[:, table.sum(0) > 0]


@pytest.mark.parametrize("ordered", [True, False])
def test_equals_the_best_of_all_joint_partitions(ordered):
    for seed in range(25):
        table = small_table(seed)
        if table.shape[1] < 2:
            continue
        elements, codes = rows_of(table)
        found = partition_with_classes(elements, table.shape[0], codes, table.shape[1], ordered=ordered)[0]
        wanted = naive.best_joint_partition(table.tolist(), ordered)
        assert found.cost == pytest.approx(wanted, abs=1e-6), seed


@pytest.mark.parametrize("ordered", [True, False])
def test_reported_cost_and_counts_are_those_of_the_parts_and_groups(ordered):
    rng = np.random.default_rng(5)
    elements = rng.integers(0, 30, 800)
    codes = (elements // 5 * 3 + rng.integers(0, 5, 800)) % 20
    codes = np.unique(codes, return_inverse=True)[1]
    for found in partition_with_classes(elements, 30, codes, codes.max() + 1, ordered=ordered, n_starts=3):
        counts = np.zeros_like(found.counts)
        np.add.at(counts, (found.parts[elements], found.class_groups[codes]), 1)
        np.testing.assert_array_equal(counts, found.counts)
        n_values = None if ordered else 30
        cost = class_grouping_cost(counts, found.class_groups, np.bincount(codes), n_values)
        assert found.cost == pytest.approx(cost, rel=1e-9)
        if ordered:
            assert (np.diff(found.parts) >= 0).all()


def test_the_kernel_never_raises_the_cost():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n_classes, n_parts = int(rng.integers(2, 15)), int(rng.integers(2, 6))
        table = rng.poisson(rng.gamma(0.5, 5, (n_classes, n_parts))) + np.eye(n_classes, n_parts, dtype=int)
        table[table.sum(1) == 0, 0] = 1
        labels = rng.integers(0, n_classes, n_classes)
        labels = np.unique(labels, return_inverse=True)[1]
        counts, before = table.T.astype(np.int64), labels.copy()
        n_rows = int(table.sum())
        labels = regroup_classes(
            np.ascontiguousarray(table, np.int64),
            labels,
            rng.permutation(n_classes),
            log_bell_table(n_classes, n_classes)[1:],
            log_factorials(n_rows + n_classes),
        )
        sizes = table.sum(1)
        assert len(np.unique(labels)) == labels.max() + 1
        assert class_grouping_cost(counts, labels, sizes) <= class_grouping_cost(counts, before, sizes) + 1e-9


def test_weights_are_repetitions():
    rng = np.random.default_rng(2)
    elements = np.concatenate([np.arange(12), rng.integers(0, 12, 100)])
    codes = np.concatenate([np.arange(12) % 6, elements[12:] // 2])
    weights = rng.integers(1, 4, elements.size)
    a = partition_with_classes(elements, 12, codes, 6, ordered=True, weights=weights)
    b = partition_with_classes(np.repeat(elements, weights), 12, np.repeat(codes, weights), 6, ordered=True)
    assert [s.cost for s in a] == pytest.approx([s.cost for s in b])
    np.testing.assert_array_equal(a[0].counts, b[0].counts)


def test_noise_comes_out_as_one_cell():
    rng = np.random.default_rng(3)
    found = partition_with_classes(np.arange(2000), 2000, rng.integers(0, 30, 2000), 30, ordered=True)[0]
    assert found.counts.shape == (1, 1)
    assert found.cost == pytest.approx(found.null_cost)


def test_weights_of_any_size():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 60)
    elements = codes % 3
    heavy = partition_with_classes(elements, 3, codes, 6, ordered=True, weights=np.full(60, 10**11))[0]
    repeated = partition_with_classes(elements, 3, codes, 6, ordered=True, weights=np.full(60, 10))[0]
    np.testing.assert_array_equal(heavy.class_groups, repeated.class_groups)
    np.testing.assert_array_equal(heavy.parts, repeated.parts)
