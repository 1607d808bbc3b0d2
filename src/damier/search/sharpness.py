"""How far a model fitted to most rows goes for the others: scores added up are made as sharp as they warrant.

What is found on some rows fits them better than others. Of scores that are sums of a few terms, each found
without the rows that it is judged on, one factor per term says how much of it holds. Terms may be several
answers to one question, which are mixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import CodeArray, FloatArray, IntArray
from damier.search.minimize import minimize
from damier.search.run import Run

# Price of the squared distance of a factor from where it starts: few rows do not move it far.
_DISTANCE = 3.0
# Price of a kind, times the root of the number of its variables: as what they seem to gain by chance varies.
_CHOICE = 0.75
_MOST_STEPS = 50
_LEAST_GAIN = 1e-9


def deal(target: CodeArray, weight: FloatArray, n_folds: int) -> FloatArray:
    """Deal rows in a fixed order out to folds that have about as many rows of each class.

    Parameters
    ----------
    target
        Class of each row.
    weight
        How often each row occurs, a whole number: equal rows go to different folds.
    n_folds
        Number of folds.

    Returns
    -------
    array of shape (n_folds, n_rows)
        How often each row occurs in each fold.

    Examples
    --------
    >>> deal(np.array([0, 1, 0, 1], np.int32), np.array([1.0, 1.0, 3.0, 1.0]), 2).tolist()
    [[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 2.0, 1.0]]
    """
    order = np.argsort(target, kind="stable")
    after = np.cumsum(weight[order])
    before = after - weight[order]
    dealt = np.empty((n_folds, target.size))
    for f in range(n_folds):
        dealt[f, order] = np.ceil((after - f) / n_folds) - np.ceil((before - f) / n_folds)
    return dealt


class Sharpness(NamedTuple):
    """Factors of terms, zero or more, and minus the log-likelihood of the classes with them."""

    factors: FloatArray
    loss: float


def find_sharpness(
    terms: FloatArray,
    usual: FloatArray,
    log_prior: FloatArray,
    target: CodeArray,
    weight: FloatArray,
    run: Run,
) -> Sharpness:
    """Find the factors of terms that make the classes of the rows most probable.

    Parameters
    ----------
    terms
        Scores of each term, row and class, found without the row.
    usual
        Factor of each term where the rows do not say otherwise.
    log_prior
        Log-frequencies of the classes, which are added.
    target, weight
        Class and weight of each row.
    run
        Once it is stopped, the factors are those of the last step.

    Returns
    -------
    Sharpness
    """
    rows = np.arange(target.size)
    own = (terms[:, rows, target] * weight).sum(axis=1)

    def loss_and_slopes(factors: FloatArray) -> tuple[float, FloatArray]:
        scores = log_prior + np.tensordot(factors, terms, axes=1)
        scores -= scores.max(axis=1, keepdims=True)
        of_row = scores[rows, target]
        shares = np.exp(scores)
        total = shares.sum(axis=1, keepdims=True)
        shares *= weight[:, np.newaxis] / total
        loss = float(weight @ (np.log(total[:, 0]) - of_row))
        return loss, np.tensordot(terms, shares, axes=2) - own

    def cost(factors: FloatArray) -> tuple[float, FloatArray]:
        loss, slopes = loss_and_slopes(factors)
        away = factors - usual
        return loss + _DISTANCE / 2 * float(away @ away), slopes + _DISTANCE * away

    factors = minimize(cost, usual, most_steps=_MOST_STEPS, least_gain=_LEAST_GAIN, positive=True, run=run)
    return Sharpness(factors, loss_and_slopes(factors)[0])


def find_sharpness_of_kinds(
    kinds: FloatArray,
    steps: FloatArray,
    sizes: IntArray,
    log_prior: FloatArray,
    target: CodeArray,
    weight: FloatArray,
    run: Run,
) -> FloatArray:
    """Find one factor per kind of variables, and those of their steps; a kind that does not pay has zero.

    A kind of m variables pays if leaving it out, with its steps, loses more than 3/4 of the root of m: of
    many that say nothing, some seem to inform by chance.

    Parameters
    ----------
    kinds
        Scores of the weighted evidence of each kind, by row and class.
    steps
        Scores of the steps of each stiffness and kind, by row and class. The stiffnesses are mixed, at first
        all alike.
    sizes
        Number of variables of each kind. The kinds are tried from the last to the first.
    log_prior, target, weight, run
        As in `find_sharpness`.

    Returns
    -------
    array of shape (n_kinds + n_stiffnesses,)
        The factors of the kinds, then those of the steps.
    """
    n_stiffnesses = len(steps)

    def sharpness(used: npt.NDArray[np.bool_]) -> Sharpness:
        terms = np.concatenate([kinds[used], steps[:, used].sum(axis=1)])
        usual = np.repeat([1.0, 1.0 / n_stiffnesses], [used.sum(), n_stiffnesses])
        return find_sharpness(terms, usual, log_prior, target, weight, run)

    used = np.ones(len(kinds), bool)
    held = sharpness(used)
    for kind in range(len(kinds))[::-1]:
        others = used.copy()
        others[kind] = False
        without = sharpness(others)
        if without.loss - held.loss <= _CHOICE * np.sqrt(sizes[kind]):
            used, held = others, without
    found = np.zeros(len(kinds) + n_stiffnesses)
    found[np.append(used, np.ones(n_stiffnesses, bool))] = held.factors
    return found
