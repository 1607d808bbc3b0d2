"""The grid without a target against the literal formula, and against every partition of small tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from damier.search.grid.untargeted import GridVariable, search_unsupervised_grid
from damier.search.run import Run
from tests import naive


def priced(variables, parts):
    instances = list(
        zip(*(p[v.elements].tolist() for p, v in zip(parts, variables, strict=True)), strict=True)
    )
    values = [None if v.ordered else v.elements.tolist() for v in variables]
    return naive.unsupervised_grid_cost(instances, [int(p.max()) + 1 for p in parts], values)


def variable(values, ordered):
    distinct, elements = np.unique(values, return_inverse=True)
    return GridVariable(elements, len(distinct), ordered)


def interval_partitions(n):
    for cuts in itertools.product([0, 1], repeat=n - 1):
        yield np.concatenate([[0], np.cumsum(cuts)])


def set_partitions(n):
    def grow(labels, most):
        if len(labels) == n:
            yield np.array(labels)
            return
        for label in range(most + 1):
            yield from grow([*labels, label], max(most, label + 1))

    yield from grow([], 0)


@pytest.mark.parametrize("seed", range(4))
def test_small_tables_are_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 6, 40)
    value = (
        np.where(rng.random(40) < 0.8, number // 2, rng.integers(0, 3, 40)) + 3 * rng.integers(0, 2, 40) % 5
    )
    variables = [variable(number, True), variable(value, False)]
    found = search_unsupervised_grid(variables, seed=seed)
    every = itertools.product(
        interval_partitions(variables[0].n_elements), set_partitions(variables[1].n_elements)
    )
    assert priced(variables, found) == pytest.approx(min(priced(variables, p) for p in every), abs=1e-6)


def test_three_variables_of_which_no_two_go_together():
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, 800))
    variables = [variable(u, True), variable(v, True), variable((u * v > 0).astype(int), False)]
    found = search_unsupervised_grid(variables)
    assert [int(p.max()) + 1 for p in found] == [2, 2, 2]


def test_the_time_limit_is_kept():
    rng = np.random.default_rng(0)
    variables = [variable(rng.normal(size=200), True) for _ in range(4)]
    run = Run(time_limit=0.0)
    found = run.call(search_unsupervised_grid, variables, run=run)
    assert run.ended == "time limit"
    assert [len(p) for p in found] == [200] * 4
