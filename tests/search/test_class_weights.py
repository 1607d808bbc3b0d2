"""Weights per variable and class: the derivatives, the optimum, and what a row counts for in its own case."""

import numpy as np
import pytest
from scipy.special import logsumexp

from damier.search.class_weights import Rows, convex_weights, loss_and_slopes
from damier.search.run import Run


def random_rows(seed, n_rows=60, n_variables=3, n_classes=3, n_parts=4):
    rng = np.random.default_rng(seed)
    shape = (n_variables * n_parts, n_classes)
    return Rows(
        part=(rng.integers(0, n_parts, (n_rows, n_variables)) + np.arange(n_variables) * n_parts).astype(
            np.int32
        ),
        target=rng.integers(0, n_classes, n_rows).astype(np.int32),
        weight=rng.integers(1, 4, n_rows).astype(np.float64),
        table=rng.normal(size=shape),
        own=rng.normal(size=shape),
        shift=rng.normal(size=shape) / 10,
    )


def literal_loss(rows, log_prior, weights):
    loss = 0.0
    for part, y, times in zip(rows.part, rows.target, rows.weight, strict=True):
        scores = log_prior.copy()
        for k, p in enumerate(part):
            evidence = rows.table[p] + rows.shift[p, y]
            evidence[y] = rows.own[p, y]
            scores = scores + weights[k] * evidence
        loss += times * (logsumexp(scores) - scores[y])
    return loss


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_derivatives(seed):
    rows = random_rows(seed)
    rng = np.random.default_rng(seed)
    log_prior = np.log([0.2, 0.3, 0.5])
    weights = rng.uniform(0, 2, (3, 3))

    def computed(at):
        weighted = np.vstack([rows.table * np.repeat(at, 4, axis=0), np.zeros(3)])
        slopes = np.zeros((3, 3))
        return loss_and_slopes(rows, log_prior, at, weighted, slopes), slopes

    loss, slopes = computed(weights)
    assert loss == pytest.approx(literal_loss(rows, log_prior, weights))
    for k in range(3):
        for j in range(3):
            step = np.zeros((3, 3))
            step[k, j] = 1e-6
            rise = literal_loss(rows, log_prior, weights + step) - literal_loss(
                rows, log_prior, weights - step
            )
            assert slopes[k, j] == pytest.approx(rise / 2e-6, rel=1e-5, abs=1e-5)


def test_a_copy_shares_the_weight_and_noise_has_none():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 2000).astype(np.int32)
    signal = np.where(rng.random(2000) < 0.8, target, 1 - target).astype(np.int32)
    noise = rng.integers(0, 2, 2000).astype(np.int32)
    right = np.log([[1.6, 0.4], [0.4, 1.6], [1.0, 1.0]])
    weak = np.log([[1.01, 0.99], [0.99, 1.01], [1.0, 1.0]])
    none = np.zeros((3, 2))

    def weigh(parts, tables):
        return convex_weights(
            parts, tables, tables, [none] * len(parts), target, np.log([0.5, 0.5]), run=Run()
        ).mean(axis=1)

    alone = weigh([signal], [right])
    np.testing.assert_allclose(alone, 1.0, atol=0.1)
    together = weigh([signal, signal, noise], [right, right, weak])
    assert together[:2].sum() == pytest.approx(alone[0], abs=0.02)
    assert together[2] == 0.0
