"""What the benchmark compares with is itself compared with enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from benchmarks import optima, peers
from damier.criteria import discretization_cost, grouping_cost


def set_partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for i, group in enumerate(partition):
            yield [*partition[:i], [first, *group], *partition[i + 1 :]]


@pytest.mark.parametrize("seed", range(8))
def test_best_intervals_is_the_least_over_all_cuts(seed):
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 7, 30).astype(float), random.integers(0, 3, 30)
    y[x > 3] = 0
    values = np.unique(x)
    costs = []
    for chosen in itertools.product([False, True], repeat=len(values) - 1):
        part = np.searchsorted(values[:-1][list(chosen)], x)
        counts = np.zeros((part.max() + 1, y.max() + 1), int)
        np.add.at(counts, (part, y), 1)
        costs.append(discretization_cost(counts))
    assert optima.best_intervals(x, y) == pytest.approx(min(costs), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_best_groups_is_the_least_over_all_set_partitions(seed):
    counts = np.random.default_rng(seed).integers(0, 12, (6, 3)) + 1
    costs = [grouping_cost([counts[g].sum(axis=0) for g in p], 6) for p in set_partitions(list(range(6)))]
    assert optima.best_groups(counts, grouping_cost) == pytest.approx(min(costs), abs=1e-9)


def test_bounds_are_counted_on_the_side_each_library_puts_them():
    x, y = np.array([1.0, 2.0, 3.0]), np.array(["a", "b", "b"])
    found = {"left": ([2.0], True), "right": ([2.0], False)}
    measure = peers.Measure("some", 0.0, 0.0, 0.0, found)
    assert measure.counts("left", x, y).tolist() == [[1, 1], [0, 1]]
    assert measure.counts("right", x, y).tolist() == [[1, 0], [0, 2]]
    assert measure.counts("not listed", x, y).tolist() == [[1, 2]]


def test_a_library_in_a_process_of_its_own():
    X = pd.DataFrame({"x": np.arange(40.0)})
    got = peers.measure("kbins", X, np.arange(40) > 20)
    assert not isinstance(got, str), got
    assert len(got.found["x"][0]) == 9


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(peers.MODULE_OF, "khiops", "no_such_module")
    got = peers.measure("khiops", pd.DataFrame({"x": [1.0, 2.0]}), [0, 1], peer_python=None)
    assert got == "khiops: not installed"
