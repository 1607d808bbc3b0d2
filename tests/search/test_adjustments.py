"""Steps added to the evidence of numbers: the derivatives, the optimum, and what they are for."""

import numpy as np
import pytest
from scipy.optimize import minimize

from damier.search.adjustments import adjusted_loss, find_steps, steps_of
from damier.search.run import Run
from tests import naive


def random_problem(seed, n_rows=50, n_classes=3):
    rng = np.random.default_rng(seed)
    firsts = np.array([0, 3, 7])
    step = np.stack([rng.integers(0, 3, n_rows), 3 + rng.integers(0, 4, n_rows)], axis=1).astype(np.int32)
    base = rng.normal(size=(n_rows, n_classes))
    target = rng.integers(0, n_classes, n_rows).astype(np.int32)
    weight = rng.integers(1, 4, n_rows).astype(np.float64)
    return base, step, target, weight, firsts


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_derivatives(seed):
    base, step, target, weight, _ = random_problem(seed)
    at = np.random.default_rng(seed).normal(size=(7, 3))

    def literal(steps):
        return naive.adjusted_loss(base, step, target, weight, steps, firsts=None)

    slopes = np.zeros((7, 3))
    loss = adjusted_loss(base, step, target, weight, np.vstack([at, np.zeros(3)]), slopes)
    assert loss == pytest.approx(literal(at))
    for s in range(7):
        for j in range(3):
            move = np.zeros((7, 3))
            move[s, j] = 1e-6
            rise = literal(at + move) - literal(at - move)
            assert slopes[s, j] == pytest.approx(rise / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("seed", "stiffness"), [(0, 0.1), (1, 1.0), (2, 10.0)])
def test_steps_are_the_optimum_of_the_literal_problem(seed, stiffness):
    base, step, target, weight, firsts = random_problem(seed)
    found = find_steps(base, step, target, weight, firsts, 1e-11, Run(), stiffness=stiffness)

    def literal(flat):
        return naive.adjusted_loss(base, step, target, weight, flat.reshape(7, 3), firsts, stiffness)

    best = minimize(literal, np.zeros(21), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found, best.x.reshape(7, 3), atol=5e-3)
    assert literal(found.ravel()) == pytest.approx(best.fun, rel=1e-6)


def test_steps_hold_about_as_many_rows():
    assert steps_of(np.ones(5)).tolist() == [0, 1, 2, 3, 4]
    counts = np.random.default_rng(0).integers(1, 9, 200).astype(np.float64)
    steps = steps_of(counts)
    rows = np.bincount(steps, counts)
    assert len(rows) == 12
    assert (np.diff(steps) >= 0).all()
    assert rows.max() < 1.3 * rows.min()
    # A value that most rows have is a step of its own.
    counts[50] = 10_000
    steps = steps_of(counts)
    assert (steps == steps[50]).sum() == 1
    assert np.array_equal(np.unique(steps), np.arange(steps.max() + 1))
