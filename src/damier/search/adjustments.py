"""Steps added to the weighted evidence of numbers, so that all variables together fit the classes.

A weight scales what a variable says alone. Where variables go together, what each adds to the others has
another shape: steps of about as many rows each are added to the scores, all of them found at once. They are
drawn to zero, neighbouring ones to each other, and all of a variable to a straight line, so that few rows
change little; the problem is convex.
"""

from __future__ import annotations

import math

import numpy as np

from damier.search.kernels import CodeArray, FloatArray, IntArray, bare_kernel
from damier.search.minimize import minimize
from damier.search.run import Run

# Steps of a variable at most.
MOST_STEPS = 12
# Prices of the squares of the steps, of the rises from one to the next, and of the change of the rise.
_SIZE = 0.1
_RISE = 2.0
_BEND = 10.0
_MOST_ITERATIONS = 50


@bare_kernel
def adjusted_loss(
    base: FloatArray,
    step: CodeArray,
    target: CodeArray,
    weight: FloatArray,
    steps: FloatArray,
    slopes: FloatArray,
) -> float:
    """Return minus the log-likelihood of the classes, and add its derivatives to ``slopes``.

    Parameters
    ----------
    base
        Scores of each row and class before the steps are added.
    step
        For each row and variable its row of ``steps``.
    target, weight
        Class and weight of each row.
    steps
        What is added, by class; the last row is used for scores.
    slopes
        Derivatives by the steps; zero before.
    """
    n_rows, n_variables = step.shape
    n_classes = base.shape[1]
    scores = steps[-1]
    loss = 0.0
    for n in range(n_rows):
        y = target[n]
        for j in range(n_classes):
            scores[j] = base[n, j]
        for k in range(n_variables):
            s = step[n, k]
            for j in range(n_classes):
                scores[j] += steps[s, j]
        top = scores[0]
        for j in range(1, n_classes):
            top = max(top, scores[j])
        own = scores[y]
        total = 0.0
        for j in range(n_classes):
            scores[j] = math.exp(scores[j] - top)
            total += scores[j]
        loss += weight[n] * (math.log(total) + top - own)
        for j in range(n_classes):
            scores[j] *= weight[n] / total
        scores[y] -= weight[n]
        for k in range(n_variables):
            s = step[n, k]
            for j in range(n_classes):
                slopes[s, j] += scores[j]
    return loss


def steps_of(counts: FloatArray) -> IntArray:
    """Put neighbouring elements into at most `MOST_STEPS` steps of about as many rows each.

    >>> steps_of(np.full(24, 10.0)).tolist()[:6]
    [0, 0, 1, 1, 2, 2]
    """
    if len(counts) <= MOST_STEPS:
        return np.arange(len(counts))
    middle = np.cumsum(counts) - counts / 2
    return np.unique((middle * (MOST_STEPS / counts.sum())).astype(np.int64), return_inverse=True)[1]


def find_steps(
    base: FloatArray,
    step: CodeArray,
    target: CodeArray,
    weight: FloatArray,
    firsts: IntArray,
    least_gain: float,
    run: Run,
    *,
    stiffness: float = 1.0,
) -> FloatArray:
    """Find the steps of all variables at once.

    Parameters
    ----------
    base
        Scores of each row and class, the row judged without itself.
    step
        For each row and variable its step; the steps of all variables are numbered through.
    target, weight
        Class and weight of each row.
    firsts
        First step of each variable, and the number of steps.
    least_gain
        Relative gain of an iteration below which the search ends.
    run
        Once it is stopped, the steps are those of the last iteration.
    stiffness
        Factor of the three prices.

    Returns
    -------
    array of shape (n_steps, n_classes)
    """
    size, rising, bending = (stiffness * price for price in (_SIZE, _RISE, _BEND))
    n_steps, n_classes = int(firsts[-1]), base.shape[1]
    # Two, or three, neighbouring steps of one variable: 1, else 0.
    within = np.ones((n_steps - 1, 1))
    within[firsts[1:-1] - 1] = 0.0
    both = within[1:] * within[:-1]
    scale = 1 / np.sqrt(size + 2 * rising + _curvature(base, step, weight, n_steps))
    steps = np.empty((n_steps + 1, n_classes))

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        at = flat.reshape(n_steps, n_classes) * scale
        steps[:-1] = at
        slopes = np.zeros((n_steps, n_classes))
        loss = adjusted_loss(base, step, target, weight, steps, slopes)
        rise = np.diff(at, axis=0) * within
        bend = np.diff(rise, axis=0) * both
        loss += (
            size / 2 * (at * at).sum() + rising / 2 * (rise * rise).sum() + bending / 2 * (bend * bend).sum()
        )
        # Derivatives by the rises, then by the steps.
        pull = rising * rise
        pull[:-1] -= bending * bend
        pull[1:] += bending * bend
        slopes += size * at
        slopes[:-1] -= pull
        slopes[1:] += pull
        return float(loss), (slopes * scale).ravel()

    found = minimize(
        cost, np.zeros(n_steps * n_classes), most_steps=_MOST_ITERATIONS, least_gain=least_gain, run=run
    )
    return found.reshape(n_steps, n_classes) * scale


def _curvature(base: FloatArray, step: CodeArray, weight: FloatArray, n_steps: int) -> FloatArray:
    """Second derivatives of the loss by each step where all are zero: the climb is short in their scale."""
    shares = np.exp(base - base.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    spread = shares * (1 - shares) * weight[:, np.newaxis]
    found = np.zeros((n_steps, base.shape[1]))
    for of_rows in step.T:
        for j in range(base.shape[1]):
            found[:, j] += np.bincount(of_rows, spread[:, j], minlength=n_steps)
    return found
