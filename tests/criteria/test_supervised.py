import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from damier.criteria import (
    class_grouping_cost,
    discretization_cost,
    grid_cost,
    grouping_cost,
    log_bell,
    log_binomial,
    part_costs,
    regression_cost,
    regression_grid_cost,
)
from tests import naive

counts_tables = hnp.arrays(
    np.int64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
    elements=st.integers(0, 40),
).filter(lambda table: table.sum() > 0)


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-10)


@given(counts_tables)
def test_one_variable_costs_match_the_formulas(counts):
    rows = counts.tolist()
    assert discretization_cost(counts) == close(naive.discretization_cost(rows))
    n_values = len(rows) + 3
    assert grouping_cost(counts, n_values) == close(naive.grouping_cost(rows, n_values))
    assert part_costs(counts).tolist() == [close(naive.part_cost(row)) for row in rows]


@given(counts_tables)
def test_costs_of_a_numeric_target_match_the_formulas(counts):
    rows = counts.tolist()
    assert regression_cost(counts) == close(naive.regression_cost(rows))
    n_values = len(rows) + 3
    assert regression_cost(counts, n_values) == close(naive.regression_cost(rows, n_values))
    if len(rows) > 1:
        parts = [2, len(rows)], [(7, 3)]
        cost = regression_grid_cost(counts, 5, *parts)
        assert cost == close(naive.regression_grid_cost(rows, 5, *parts))


def test_null_cost_of_a_numeric_target():
    # 2 log N + log N!, whatever the rows are
    assert regression_cost([[40]]) == close(2 * math.log(40) + math.lgamma(41))


def test_costs_of_large_counts():
    counts = [[400_000, 3, 0], [12, 599_000, 77]]
    assert discretization_cost(counts) == pytest.approx(
        math.log(999_092)
        + math.log(999_093)
        + sum(
            math.lgamma(sum(row) + 3) - math.log(2) - sum(math.lgamma(n + 1) for n in row) for row in counts
        ),
        rel=1e-10,
    )


@given(counts_tables)
def test_order_of_parts_and_classes_does_not_matter(counts):
    flipped = counts[::-1, ::-1]
    assert discretization_cost(counts) == close(discretization_cost(flipped))
    assert grouping_cost(counts, 9) == close(grouping_cost(flipped, 9))


@given(counts_tables)
def test_null_models(counts):
    total = counts.sum(axis=0, keepdims=True)
    n, n_classes = int(total.sum()), total.shape[1]
    labels = log_binomial(n + n_classes - 1, n_classes - 1) + math.lgamma(n + 1)
    labels -= sum(math.lgamma(c + 1) for c in total[0])
    assert discretization_cost(total) == close(math.log(n) + labels)
    assert grouping_cost(total, 7) == close(math.log(7) + labels)
    assert grid_cost(total, 4) == close(math.log(5) + labels)


@given(counts_tables.filter(lambda table: table.shape[0] > 1))
def test_a_grid_over_one_variable_is_that_variable_and_its_selection(counts):
    selection = math.log(2) + log_binomial(1, 1)
    n_parts = counts.shape[0]
    assert grid_cost(counts, 1, [n_parts]) == close(selection + discretization_cost(counts))
    n_values = n_parts + 2
    assert grid_cost(counts, 1, [], [(n_values, n_parts)]) == close(
        selection + grouping_cost(counts, n_values)
    )


@given(counts_tables, st.integers(3, 12))
def test_grid_costs_match_the_formula(cells, n_variables):
    numeric, categorical = [3, 2], [(5, 2)]
    expected = naive.grid_cost(cells.tolist(), n_variables, numeric, categorical)
    assert grid_cost(cells, n_variables, numeric, categorical) == close(expected)


@given(counts_tables, st.data())
def test_class_grouping_matches_the_formula(counts, data):
    n_classes = counts.shape[1]
    labels = data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n_classes, max_size=n_classes))
    groups = [[w for w in range(n_classes) if labels[w] == label] for label in sorted(set(labels))]
    sizes = counts.sum(axis=0)
    grouped = np.column_stack([counts[:, group].sum(axis=1) for group in groups])
    for n_values in (None, counts.shape[0] + 2):
        expected = naive.class_grouping_cost(counts.tolist(), groups, sizes.tolist(), n_values)
        assert class_grouping_cost(counts, labels, sizes, n_values) == close(expected)
        assert class_grouping_cost(counts, groups, sizes, n_values) == close(expected)
        assert class_grouping_cost(grouped, labels, sizes, n_values) == close(expected)


@given(counts_tables)
def test_class_grouping_at_its_two_ends(counts):
    n, n_classes = int(counts.sum()), counts.shape[1]
    sizes = counts.sum(axis=0)
    # every class alone: the plain cost plus the price of the classes' partition
    alone = math.log(n_classes) + log_bell(n_classes, n_classes)
    assert class_grouping_cost(counts, range(n_classes), sizes) == close(discretization_cost(counts) + alone)
    # all in one, one interval: the labels are spelled out by class frequencies
    null = math.log(n) + math.log(n_classes) + naive.part_cost(sizes.tolist())
    assert class_grouping_cost(counts.sum(axis=0, keepdims=True), [0] * n_classes, sizes) == close(null)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, -2]], "negative"),
        ([[1.5, 2]], "whole"),
        ([[np.nan, 2]], "finite"),
        ([["a", "b"]], "whole"),
        ([1, 2], "2 dimension"),
        ([[0, 0]], "no instance"),
        (np.zeros((0, 2)), "no instance"),
    ],
)
def test_bad_counts_are_refused(counts, message):
    for cost in (
        discretization_cost,
        lambda c: grouping_cost(c, 5),
        lambda c: grid_cost(c, 3),
        lambda c: class_grouping_cost(c, [0, 1], [1, 2]),
    ):
        with pytest.raises(ValueError, match=message):
            cost(counts)


def test_bad_sizes_are_refused():
    counts = [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="2 groups need as many values"):
        grouping_cost(counts, 1)
    with pytest.raises(ValueError, match="whole number"):
        grouping_cost(counts, 2.5)
    with pytest.raises(ValueError, match="two parts or more"):
        grid_cost(counts, 3, [1, 2])
    with pytest.raises(ValueError, match="2 variables are selected"):
        grid_cost(counts, 1, [2, 2])
    with pytest.raises(ValueError, match="only make 1"):
        grid_cost(counts, 1)
    with pytest.raises(ValueError, match="3 groups need as many values"):
        grid_cost(counts, 1, [], [(2, 3)])


@pytest.mark.parametrize(
    ("groups", "sizes", "message"),
    [
        ([0], [4, 6], "1 labels for 2 classes"),
        ([[0, 1], [1]], [4, 6], "twice"),
        ([[0], []], [4, 6], "empty group"),
        ([[0]], [4, 6], "class 1 is in no group"),
        ([[0, 2]], [4, 6], "names class 2"),
        ([0, 1], [4, 7], "do not agree"),
        ([0, 0, 1, 2], [1, 2, 3, 4], "neither 4 classes nor 3"),
    ],
)
def test_bad_class_groups_are_refused(groups, sizes, message):
    with pytest.raises(ValueError, match=message):
        class_grouping_cost([[1, 2], [3, 4]], groups, sizes)
