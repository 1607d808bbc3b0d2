"""Where two engines search the same space, they must agree, and with all partitions where these are few."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from damier.search.axis.class_groups import partition_with_classes
from damier.search.axis.ordered import discretize
from damier.search.axis.unordered import group_values
from damier.search.cocluster.search import search_coclustering
from damier.search.grid.problem import AxisCodes
from damier.search.grid.search import search_grid
from damier.search.grid.untargeted import GridVariable, search_unsupervised_grid
from damier.search.run import Run
from tests import naive

# ----- a grid with one variable against one variable


def column(seed, n_rows, n_values, n_classes):
    """Rows of one column: every value occurs, some values share their class shares."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.5), 4)[np.sort(rng.integers(0, 4, n_values))]
    codes = np.concatenate([np.arange(n_values), rng.integers(0, n_values, n_rows - n_values)])
    classes = (rng.random(n_rows)[:, None] > np.cumsum(shares[codes], axis=1)).sum(axis=1)
    return codes.astype(np.int32), np.minimum(classes, n_classes - 1).astype(np.int32)


def grid_cost(codes, n_values, classes, n_classes, categorical):
    """Cost of the best grid over one variable, without what the selection of variables costs."""
    found = search_grid([AxisCodes(codes, n_values, categorical)], classes, n_classes)
    return found.best.cost - math.log(2)


@pytest.mark.parametrize(("n_rows", "n_values", "n_classes"), [(60, 12, 2), (300, 60, 3), (1000, 200, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_a_grid_of_one_numeric_variable_is_its_discretization(seed, n_rows, n_values, n_classes):
    codes, classes = column(seed, n_rows, n_values, n_classes)
    alone = discretize(codes.astype(np.float64), classes, n_classes, search="exact")
    assert alone.optimal
    # a grid leaves a variable of one interval out, and does not pay for the number of its intervals
    best = min(alone.cost, alone.null_cost - math.log(n_rows))
    found = grid_cost(codes, n_values, classes, n_classes, categorical=False)
    assert found == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("n_rows", "n_values", "n_classes"), [(60, 6, 2), (300, 9, 3), (1000, 12, 4)])
@pytest.mark.parametrize("seed", range(4))
def test_a_grid_of_one_categorical_variable_is_its_grouping(seed, n_rows, n_values, n_classes):
    codes, classes = column(seed, n_rows, n_values, n_classes)
    alone = group_values(codes, n_values, classes, n_classes, search="exact")
    assert alone.optimal
    best = min(alone.cost, alone.null_cost - math.log(n_values))
    found = grid_cost(codes, n_values, classes, n_classes, categorical=True)
    assert found == pytest.approx(best, abs=1e-6)


# ----- a grid without a target over two categorical variables against coclustering


def pairs(seed, n_rows, shape, n_clusters):
    """Rows of two columns whose values come in clusters; every value occurs."""
    rng = np.random.default_rng(seed)
    density = rng.dirichlet(np.full(n_clusters * n_clusters, 0.4))
    blocks = rng.choice(density.size, n_rows, p=density)
    sides = []
    for block, n_values in zip(divmod(blocks, n_clusters), shape, strict=True):
        values = np.array([rng.choice(np.arange(b % n_values, n_values, n_clusters)) for b in block])
        values[rng.permutation(n_rows)[:n_values]] = np.arange(n_values)
        sides.append(values)
    return sides


def coclustering(sides, shape):
    table = sparse.coo_array((np.ones(len(sides[0]), np.int64), sides), shape=shape).tocsr()
    return table.toarray().tolist(), search_coclustering(table, run=Run()).labels


def untargeted(sides, shape):
    variables = [GridVariable(side, n, False) for side, n in zip(sides, shape, strict=True)]
    return search_unsupervised_grid(variables)


def labels_of(n):
    """Every partition of n values as labels."""
    for partition in naive.set_partitions(n):
        yield [next(g for g, bits in enumerate(partition) if bits >> v & 1) for v in range(n)]


@pytest.mark.parametrize("seed", range(6))
def test_small_tables_of_pairs_are_solved_alike(seed):
    shape = (5, 4)
    sides = pairs(seed, 60, shape, 2)
    table, found = coclustering(sides, shape)
    best = min(
        naive.coclustering_cost(table, rows, columns)
        for rows, columns in itertools.product(labels_of(shape[0]), labels_of(shape[1]))
    )
    assert naive.coclustering_cost(table, *found) == pytest.approx(best)
    assert naive.coclustering_cost(table, *untargeted(sides, shape)) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_coclustering_costs_no_more_than_a_grid(seed):
    shape = (40, 30)
    sides = pairs(seed, 2000, shape, 4)
    table, found = coclustering(sides, shape)
    cost = naive.coclustering_cost(table, *found)
    grid = naive.coclustering_cost(table, *untargeted(sides, shape))
    assert cost <= grid + 1e-6
    assert grid <= cost * (1 + 1e-4)


# ----- groups of classes against all of them


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_classes_are_grouped_at_the_least_cost(seed, ordered):
    rng = np.random.default_rng(seed)
    n_values, n_classes = 4, 6
    shares = rng.dirichlet(np.full(n_classes, 0.4), 2)
    table = np.array([rng.multinomial(40, shares[rng.integers(2)]) for _ in range(n_values)])
    table = table[:, table.sum(axis=0) > 0]
    elements, classes = (np.repeat(side, table[table > 0]) for side in np.nonzero(table))
    found = partition_with_classes(elements, n_values, classes, table.shape[1], ordered=ordered)[0]
    assert found.cost == pytest.approx(naive.best_joint_partition(table.tolist(), ordered))
