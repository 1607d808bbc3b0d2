"""Weights of naive Bayes variables: the cost of a step against the literal cost, and what weights must do."""

from __future__ import annotations

import numpy as np
import pytest

from damier.search.run import Run
from damier.search.weights import _Search
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


@pytest.mark.parametrize("seed", range(20))
def test_cost_of_a_step_is_the_cost_of_the_model_after_it(seed):
    parts, tables, own_tables, target, log_prior, row_weight = draw(seed)
    search = _Search(parts, tables, own_tables, target, log_prior, row_weight)
    rng = np.random.default_rng(seed)
    for _ in range(6):
        k = int(rng.integers(len(tables)))
        step = float(rng.choice([1.0, 0.5, -0.25]))
        if not 0 <= search.weights[k] + step <= 1:
            continue
        foreseen = search.cost_with(k, step)
        search.accept(k, step)
        wanted = naive.weighted_naive_bayes_cost(
            parts, tables, own_tables, target, log_prior, list(search.weights), row_weight
        )
        assert foreseen == pytest.approx(wanted, rel=1e-9)
        assert search.cost == pytest.approx(wanted, rel=1e-9)


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


def test_weights_do_not_depend_on_the_order_of_rows_or_variables():
    parts, tables, own_tables, target, log_prior = strong_evidence(n_rows=3000)
    wanted = compression_weights(parts, tables, own_tables, target, log_prior, max_cells=2000)
    shuffle = np.random.default_rng(1).permutation(target.size)
    shuffled = [part[shuffle] for part in parts]
    np.testing.assert_allclose(
        compression_weights(shuffled, tables, own_tables, target[shuffle], log_prior, max_cells=2000),
        wanted,
        atol=1e-9,
    )
    turned = compression_weights(
        [parts[k] for k in (2, 0, 1)],
        [tables[k] for k in (2, 0, 1)],
        [own_tables[k] for k in (2, 0, 1)],
        target,
        log_prior,
    )
    assert turned[0] < 0.1


def test_repeating_rows_is_weighting_them():
    parts, tables, own_tables, target, log_prior = strong_evidence(n_rows=200)
    twice = compression_weights(
        [np.tile(p, 2) for p in parts], tables, own_tables, np.tile(target, 2), log_prior
    )
    weighted = compression_weights(parts, tables, own_tables, target, log_prior, np.full(200, 2.0))
    np.testing.assert_allclose(twice, weighted, atol=1e-9)
