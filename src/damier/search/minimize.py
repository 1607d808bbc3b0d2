"""The least value of a smooth function of many variables: L-BFGS-B, as SciPy has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from damier.criteria.special import compiled_modules
from damier.search.kernels import FloatArray
from damier.search.run import Run

Cost = Callable[[FloatArray], tuple[float, FloatArray]]

# As in scipy.optimize: steps remembered, slope at which there is nothing left to gain, trials along a line.
_REMEMBERED, _LEAST_SLOPE, _TRIALS = 10, 1e-5, 20
# What the compiled function asks for next.
_NEW_STEP, _VALUE = 1, 3


@cache
def _compiled() -> Any:
    """SciPy's compiled step, None where it is not the one that `_climb` knows."""
    return getattr(compiled_modules("optimize", "_lbfgsb"), "setulb", None)


def minimize(
    cost: Cost, start: FloatArray, *, most_steps: int, least_gain: float, positive: bool = False, run: Run
) -> FloatArray:
    """Find where a cost is least.

    Parameters
    ----------
    cost : callable
        Returns the cost and its derivatives.
    start : array
        Where to begin.
    most_steps : int
        Steps at most.
    least_gain : float
        Relative gain of a step below which the search ends.
    positive : bool
        Whether no variable may be negative.
    run : Run
        Once it is stopped, the place is that of the last step.

    Examples
    --------
    >>> place = minimize(
    ...     lambda x: (float(((x - [1, -1]) ** 2).sum()), 2 * (x - [1, -1])),
    ...     np.zeros(2), most_steps=10, least_gain=1e-9, positive=True, run=Run(),
    ... )
    >>> place.round(6).tolist()
    [1.0, 0.0]
    """
    if _compiled() is not None:
        return _climb(cost, start, most_steps, least_gain, positive, run)
    from scipy import optimize  # here: it takes a quarter of a second

    def stop_if_asked(_: object) -> None:
        if run.stopped:
            raise StopIteration

    found = optimize.minimize(  # type: ignore[call-overload]
        cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * start.size if positive else None,
        callback=stop_if_asked,
        options={"maxiter": most_steps, "ftol": least_gain},
    )
    result: FloatArray = found.x
    return result


def _climb(
    cost: Cost, start: FloatArray, most_steps: int, least_gain: float, positive: bool, run: Run
) -> FloatArray:
    """Do what `scipy.optimize.minimize` does around SciPy's compiled step."""
    n, m = start.size, _REMEMBERED
    place = np.array(start, np.float64)
    value, slopes = np.zeros(()), np.zeros(n)
    bounds = np.zeros(n), np.zeros(n), np.full(n, int(positive), np.int32)
    settings = least_gain / np.finfo(np.float64).eps, _LEAST_SLOPE
    floats = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m)
    numbers = np.zeros(3 * n, np.int32)
    task, line = np.zeros(2, np.int32), np.zeros(2, np.int32)
    state = np.zeros(4, np.int32), np.zeros(44, np.int32), np.zeros(29)
    step, n_steps = _compiled(), 0
    while True:
        step(m, place, *bounds, value, slopes, *settings, floats, numbers, task, *state, _TRIALS, line)
        if task[0] == _VALUE:
            value[()], slopes[:] = cost(place.copy())
        elif task[0] == _NEW_STEP:
            n_steps += 1
            if run.stopped or n_steps >= most_steps:
                return place
        else:
            return place
