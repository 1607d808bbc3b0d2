"""The grid without a target against the literal formula, and against every partition of small tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from damier.criteria import log_factorials
from damier.search.grid.untargeted import GridVariable, best_bound, merge_lines, search_unsupervised_grid
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
    found, _ = search_unsupervised_grid(variables, seed=seed)
    every = itertools.product(
        interval_partitions(variables[0].n_elements), set_partitions(variables[1].n_elements)
    )
    assert priced(variables, found) == pytest.approx(min(priced(variables, p) for p in every), abs=1e-6)


@pytest.mark.parametrize("ordered", [True, False])
def test_merges_say_what_they_change(ordered):
    rng = np.random.default_rng(0)
    variables = [variable(rng.integers(0, 7, 60), ordered), variable(rng.integers(0, 3, 60), True)]
    variables[0] = variable(variables[0].elements, ordered)
    elements, slots = variables[0].elements, variables[1].elements
    T = np.zeros((7, 3), np.int64)
    np.add.at(T, (elements, slots), 1)
    n = np.arange(8)
    from scipy.special import gammaln

    from damier.criteria import log_bell_table

    size = gammaln(60 + np.maximum(3 * n, 1)) - gammaln(np.maximum(3 * n, 1))
    if not ordered:
        size[1:] += log_bell_table(7, 7)[1:]
    line_of = np.zeros(7, np.int64)
    change = merge_lines(
        T.copy(), T.sum(1), np.ones(7, np.int64), ordered, size, log_factorials(200), line_of
    )
    before = priced(variables, [np.arange(7), np.arange(3)])
    assert priced(variables, [line_of, np.arange(3)]) - before == pytest.approx(change, abs=1e-8)


def test_the_best_bound_is_the_best_of_all():
    rng = np.random.default_rng(3)
    elements = np.sort(rng.integers(0, 15, 80))
    slots = np.where(elements + rng.integers(-3, 4, 80) > 6, 1, 0) + 2 * rng.integers(0, 2, 80)
    cut = int(np.searchsorted(elements, 3))
    found, change = best_bound(elements, slots, 4, cut, log_factorials(200))
    variables = [GridVariable(elements, 15, True), GridVariable(slots, 4, True)]
    costs = {
        c: priced(variables, [(np.arange(15) >= elements[c]).astype(int), np.arange(4)])
        for c in np.flatnonzero(np.diff(elements)) + 1
    }
    assert costs[found] == pytest.approx(min(costs.values()))
    assert costs[found] - costs[cut] == pytest.approx(change, abs=1e-8)


def test_three_variables_of_which_no_two_go_together():
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, 800))
    variables = [variable(u, True), variable(v, True), variable((u * v > 0).astype(int), False)]
    found, ended = search_unsupervised_grid(variables)
    assert [int(p.max()) + 1 for p in found] == [2, 2, 2]
    assert ended == "converged"


def test_the_time_limit_is_kept():
    rng = np.random.default_rng(0)
    variables = [variable(rng.normal(size=200), True) for _ in range(4)]
    found, ended = search_unsupervised_grid(variables, time_limit=0.0)
    assert ended == "time limit"
    assert [len(p) for p in found] == [200] * 4
