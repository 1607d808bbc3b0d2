"""One variable alone with a given price: against the oracle, with the prices the grid search has."""

from __future__ import annotations

import numpy as np
import pytest

from damier.search.axis.alone import partition_alone
from damier.search.grid.problem import AxisCodes, build_problem
from tests import naive


def grid_penalty(codes, n_values, classes, n_classes, categorical, n_offered):
    """Price of the parts of one of several variables on offer: free when it is left out of the grid."""
    axes = [AxisCodes(codes, n_values, categorical)]
    axes += [AxisCodes(np.zeros_like(codes), 1, False)] * (n_offered - 1)
    problem = build_problem(axes, classes, n_classes)
    penalty = problem.axis_prior[problem.prior_row[0], 1:] + problem.selection[1]
    penalty[0] = problem.selection[0]
    return penalty


def problem(seed):
    rng = np.random.default_rng(seed)
    n_values, n_classes = int(rng.integers(2, 8)), int(rng.integers(2, 5))
    shares = rng.dirichlet(np.full(n_classes, 0.4), n_values)
    codes = rng.permutation(np.concatenate([np.arange(n_values), rng.integers(0, n_values, 60)]))
    classes = np.array([rng.choice(n_classes, p=shares[code]) for code in codes])
    return codes.astype(np.int32), n_values, classes.astype(np.int32), n_classes


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n_offered", [1, 20])
def test_equals_the_best_of_all_partitions(ordered, n_offered):
    for seed in range(40):
        codes, n_values, classes, n_classes = problem(seed)
        penalty = grid_penalty(codes, n_values, classes, n_classes, not ordered, n_offered)
        assert (np.diff(penalty) >= 0).all()
        assert (np.diff(penalty, 2) <= 1e-9).all()
        found = partition_alone(codes, n_values, classes, n_classes, penalty, ordered=ordered)
        counts = np.zeros((n_values, n_classes), np.int64)
        np.add.at(counts, (codes, classes), 1)
        best = naive.ordered_optimum if ordered else naive.grouping_optimum
        assert found.cost == pytest.approx(best(counts, penalty), abs=1e-8), seed
        assert found.optimal
        by_part = np.zeros_like(found.counts)
        np.add.at(by_part, (found.parts[codes], classes), 1)
        np.testing.assert_array_equal(by_part, found.counts)
        if ordered:
            assert (np.diff(found.parts) >= 0).all()


def test_many_values_in_order():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5000, 20_000).astype(np.int32)
    classes = (rng.random(20_000) < np.where(codes // 700 % 2, 0.9, 0.2)).astype(np.int32)
    penalty = grid_penalty(codes, 5000, classes, 2, False, 3)
    found = partition_alone(codes, 5000, classes, 2, penalty, ordered=True)
    assert len(found.counts) == 8
    assert found.optimal
    quick = partition_alone(codes, 5000, classes, 2, penalty, ordered=True, search="greedy")
    assert quick.cost >= found.cost - 1e-9
