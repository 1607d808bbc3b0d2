"""L-BFGS-B around SciPy's compiled step, against `scipy.optimize.minimize`."""

import numpy as np
import pytest

from damier.search import minimize as module
from damier.search.minimize import minimize
from damier.search.run import Run


def _problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    table, aim = rng.normal(size=(n + 3, n)), 3 * rng.normal(size=n + 3)

    def cost(place):
        off = table @ place - aim
        value = np.logaddexp(off, -off).sum() + 0.05 * (place**4).sum()
        return float(value), table.T @ np.tanh(off) + 0.2 * place**3

    return cost, np.full(n, 0.5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_same_place_as_scipy_to_the_last_digit(seed, positive, monkeypatch):
    cost, start = _problem(seed)
    options = {"most_steps": 3 + 5 * seed, "least_gain": 10.0 ** -(2 + seed % 9), "positive": positive}
    found = minimize(cost, start, **options, run=Run())
    monkeypatch.setattr(module, "_compiled", lambda: None)
    np.testing.assert_array_equal(found, minimize(cost, start, **options, run=Run()))
    assert cost(found)[0] < cost(start)[0]
    assert not positive or (found >= 0).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_stopped_run_ends_after_a_step(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(module, "_compiled", lambda: None)
    cost, start = _problem(3)
    run, values = Run(), []

    def watched(place):
        values.append(cost(place)[0])
        return cost(place)

    run.stop[0] = 1
    found = minimize(watched, start, most_steps=100, least_gain=1e-12, run=run)
    assert cost(found)[0] < cost(start)[0]
    assert len(values) < 10
