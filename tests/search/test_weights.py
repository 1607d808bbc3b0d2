"""Weights of naive Bayes variables: the cost of a step against the literal cost, and what weights must do."""

from __future__ import annotations

import numpy as np
import pytest

from damier.search import weights
from damier.search.kernels import kernel
from damier.search.run import Run, Stopped
from damier.search.weights import _loss_with, _prior, _restart, _try_step, build_problem, empty_state
from damier.search.weights import compression_weights as weights_of
from tests import naive


def compression_weights(*args, **keywords):
    return weights_of(*args, run=Run(), **keywords)


def draw(seed, n_rows=40, n_variables=4, n_classes=3):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 3, n_rows).astype(np.int32) for _ in range(n_variables)]
    tables = [rng.normal(size=(3, n_classes)) for _ in range(n_variables)]
    own_tables = [table - rng.random(table.shape) for table in tables]
    target = rng.integers(0, n_classes, n_rows).astype(np.int32)
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    row_weight = rng.integers(1, 4, n_rows).astype(float)
    return parts, tables, own_tables, target, log_prior, row_weight


@kernel
def restart(problem, state):
    _restart(problem, state)


@kernel
def step_costs(problem, state, k, step):
    """Cost foreseen for a step, and whether it was taken."""
    foreseen = _prior(state.weights.size, state.sums[0] + step) + _loss_with(problem, state, k, step)
    return foreseen, _try_step(problem, state, k, step)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_cost_of_a_step_is_the_cost_of_the_model_after_it(seed, wide):
    """Wide: variables so many and strong that probabilities vanish, and come back as weights fall."""
    parts, tables, own_tables, target, log_prior, row_weight = draw(seed, n_variables=150 if wide else 4)
    tables, own_tables = ([10 * table if wide else table for table in of] for of in (tables, own_tables))
    given = parts, tables, own_tables, target, log_prior
    problem = build_problem(*given, row_weight, max_rows=1000)
    state = empty_state(problem)
    restart(problem, state)
    rng = np.random.default_rng(seed)
    steps = [(k, 1.0) for k in range(len(tables))] if wide else []
    steps += [(int(rng.integers(4)), float(rng.choice([1.0, 0.5, -0.25, -1.0]))) for _ in range(40)]
    steps += [(k, -1.0) for k in range(len(tables))] if wide else []
    taken, least = 0, 1.0
    for i, (k, step) in enumerate(steps):
        after = state.weights.copy()
        after[k] += step
        if not 0 <= after[k] <= 1:
            continue
        if wide or rng.random() < 0.5:
            state.sums[2] = np.inf  # so that a costly step is taken too
        before = state.sums[2]
        foreseen, took = step_costs(problem, state, k, step)
        if not wide or i % 20 == 0:
            expected = naive.weighted_naive_bayes_cost(*given, list(after), row_weight)
            assert foreseen == pytest.approx(expected, rel=1e-9)
        assert took == (foreseen < before - 1e-9)
        if took:
            taken += 1
            assert state.sums[2] == foreseen
            np.testing.assert_array_equal(state.weights, after)
        least = min(least, state.mine.min())
    assert taken > 3
    assert (least < 1e-100) == wide


def strong_evidence(seed=0, n_rows=400):
    """One informative variable, its copy, and noise, with the evidence naive Bayes would give them."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, n_rows).astype(np.int32)
    signal = np.where(rng.random(n_rows) < 0.85, target, 1 - target).astype(np.int32)
    noise = rng.integers(0, 2, n_rows).astype(np.int32)
    parts = [signal, signal.copy(), noise]
    tables, own_tables = [], []
    for part in parts:
        counts = np.zeros((2, 2))
        np.add.at(counts, (part, target), 1)
        tables.append(np.log((counts + 0.1) / counts.sum(0)) - np.log(counts.sum(1, keepdims=True) / n_rows))
        own = np.log((counts - 0.9) / (counts.sum(0) - 1)) - np.log(counts.sum(1, keepdims=True) / n_rows)
        own_tables.append(own)
    return parts, tables, own_tables, target, np.log(np.bincount(target) / n_rows)


def test_a_copy_shares_the_weight_of_its_original_and_noise_gets_none():
    weights = compression_weights(*strong_evidence())
    assert 0.8 < weights[0] + weights[1] < 1.3
    assert weights[2] < 0.1


def shuffled(given, order):
    parts, tables, own_tables, target, log_prior = given
    return [part[order] for part in parts], tables, own_tables, target[order], log_prior


@pytest.mark.parametrize("max_cells", [2000, 2_000_000])
def test_weights_do_not_depend_on_the_order_of_rows(max_cells):
    rng = np.random.default_rng(1)
    parts, tables, own_tables, target, log_prior, row_weight = draw(0, n_rows=3000, n_variables=9)
    given = parts, tables, own_tables, target, log_prior
    expected = compression_weights(*given, row_weight, max_cells=max_cells)
    assert expected.max() > 0
    for _ in range(5):
        order = rng.permutation(target.size)
        again = compression_weights(*shuffled(given, order), row_weight[order], max_cells=max_cells)
        np.testing.assert_array_equal(again, expected)


def test_weights_follow_the_variables():
    parts, tables, own_tables, target, log_prior = strong_evidence(n_rows=3000)
    expected = compression_weights(parts, tables, own_tables, target, log_prior)
    turned = compression_weights(
        [parts[k] for k in (2, 0, 1)],
        [tables[k] for k in (2, 0, 1)],
        [own_tables[k] for k in (2, 0, 1)],
        target,
        log_prior,
    )
    np.testing.assert_array_equal(turned, expected[[2, 0, 1]])


def test_repeating_rows_is_weighting_them():
    given = strong_evidence(n_rows=200)
    twice = compression_weights(*shuffled(given, np.arange(400) % 200))
    weighted = compression_weights(*given, np.full(200, 2.0))
    np.testing.assert_array_equal(twice, weighted)


def test_of_a_stopped_search_the_finished_starts_remain(monkeypatch):
    given = strong_evidence()
    run = Run()
    searched = []

    def stop_in_the_third(*args):
        searched.append(None)
        if len(searched) == 3:
            run.stop[0] = 1
        return search(*args)

    search = weights.search_weights
    expected = compression_weights(*given, n_starts=2)
    monkeypatch.setattr(weights, "search_weights", stop_in_the_third)
    np.testing.assert_array_equal(weights_of(*given, run=run), expected)
    assert len(searched) == 3
    with pytest.raises(Stopped):
        weights_of(*given, run=run)
