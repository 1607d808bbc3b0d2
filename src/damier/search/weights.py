"""Weights for the variables of a naive Bayes, so that redundant ones stop being counted twice.

A model is a vector of weights between 0 and 1: the evidence of variable k is multiplied by its weight. Its
cost is a prior on the number of variables plus the negative log-likelihood of the classes. Two searches are
run and averaged: selections of whole variables (weights 0 or 1), forward and backward from several random
orders, the models on the way weighted by their compression gain (Boullé's data grids paper, section 7.2.2);
and fractional weights by coordinate steps of 1, 1/2, 1/4, ...

Legend of the kernels: N rows, W classes; ``scores[n, w]`` the log-odds so far, ``chance[n, w]`` the same as
probabilities, ``table[part, w]`` the evidence of a part of the variable tried, ``part[n]`` the row's part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from damier.search.kernels import kernel
from damier.search.run import Run

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


@kernel
def _loss_with(
    chance: FloatArray,
    own: FloatArray,
    ratio: FloatArray,
    own_step: FloatArray,
    part: CodeArray,
    target: CodeArray,
    row_weight: FloatArray,
) -> float:
    """Negative log-likelihood of the classes if a step of one variable's evidence were taken.

    ``own[n]`` is the log-probability of the row's class before the step. Multiplying the probabilities by the
    few distinct ratios of the variable spares an exponential for every row and class.
    """
    n_rows, n_classes = chance.shape
    total = 0.0
    for n in range(n_rows):
        i = part[n]
        y = target[n]
        mine = chance[n, y]
        chance[n, y] = 0.0
        mass = mine * np.exp(own_step[i, y])
        for w in range(n_classes):
            mass += chance[n, w] * ratio[i, w]
        chance[n, y] = mine
        total += row_weight[n] * (np.log(max(mass, 1e-300)) - own[n] - own_step[i, y])
    return total


@kernel
def _add_evidence(
    scores: FloatArray,
    table: FloatArray,
    own_table: FloatArray,
    part: CodeArray,
    target: CodeArray,
    step: float,
) -> None:
    """Add a share of a variable's evidence to the scores, without the row itself for the row's own class."""
    n_rows, n_classes = scores.shape
    for n in range(n_rows):
        i = part[n]
        y = target[n]
        mine = scores[n, y] + step * own_table[i, y]
        for w in range(n_classes):
            scores[n, w] += step * table[i, w]
        scores[n, y] = mine


@kernel
def _normalise(scores: FloatArray, target: CodeArray, chance: FloatArray, own: FloatArray) -> None:
    """Probabilities of the classes, and the log-probability of each row's own class, from the scores."""
    n_rows, n_classes = scores.shape
    for n in range(n_rows):
        top = scores[n, 0]
        for w in range(1, n_classes):
            top = max(top, scores[n, w])
        total = 0.0
        for w in range(n_classes):
            chance[n, w] = np.exp(scores[n, w] - top)
            total += chance[n, w]
        for w in range(n_classes):
            chance[n, w] /= total
        own[n] = scores[n, target[n]] - top - np.log(total)


class _Search:
    """The state of one search: current weights, their scores, and their cost."""

    def __init__(
        self,
        parts: list[CodeArray],
        tables: list[FloatArray],
        own_tables: list[FloatArray],
        target: CodeArray,
        log_prior: FloatArray,
        row_weight: FloatArray,
    ) -> None:
        self.parts, self.tables, self.own_tables, self.target = parts, tables, own_tables, target
        self.n_variables = len(tables)
        self.log_prior, self.row_weight = log_prior, row_weight
        self.chance = np.empty((target.size, log_prior.size))
        self.own = np.empty(target.size)
        self.restart()
        self.null_cost = self.cost

    def restart(self) -> None:
        self.weights = np.zeros(self.n_variables)
        self.scores = np.tile(self.log_prior, (self.target.size, 1))
        _normalise(self.scores, self.target, self.chance, self.own)
        self.cost = self._prior(0.0) - float(self.own @ self.row_weight)

    def _prior(self, n_selected: float) -> float:
        k = self.n_variables
        choice = gammaln(k + n_selected) - gammaln(n_selected + 1) - gammaln(k) if n_selected > 0 else 0.0
        return float(np.log(k + 1) + choice)

    def cost_with(self, k: int, step: float) -> float:
        """Cost of the model after a step of one weight."""
        table, own_table = self.tables[k], self.own_tables[k]
        loss = _loss_with(
            self.chance,
            self.own,
            np.exp(step * table),
            step * own_table,
            self.parts[k],
            self.target,
            self.row_weight,
        )
        return self._prior(max(0.0, float(self.weights.sum()) + step)) + float(loss)

    def accept(self, k: int, step: float) -> None:
        self.weights[k] += step
        _add_evidence(self.scores, self.tables[k], self.own_tables[k], self.parts[k], self.target, step)
        _normalise(self.scores, self.target, self.chance, self.own)
        self.cost = self._prior(float(self.weights.sum())) - float(self.own @ self.row_weight)


def _select(search: _Search, order: IntArray, mean: FloatArray, max_passes: int = 2) -> float:
    """Forward and backward passes over whole variables.

    After each decision the model in hand is added to ``mean``, weighted by its gain; return the total gain.
    Averaging the models in hand rather than all that were tried leaves noise with no weight at all.
    """
    search.restart()
    total = 0.0
    for _ in range(max_passes):
        before = search.cost
        for step in (1.0, -1.0):
            for k in order:
                if (search.weights[k] > 0.5) == (step > 0):
                    continue
                if search.cost_with(k, step) < search.cost - 1e-9:
                    search.accept(k, step)
                gain = 1.0 - search.cost / search.null_cost
                if gain > 0:
                    total += gain
                    mean += gain * search.weights
        if search.cost >= before - 1e-9:
            break
    return total


def _step_weights(search: _Search, order: IntArray, n_halvings: int = 5, max_passes: int = 3) -> FloatArray:
    """Fractional weights: coordinate steps of 1, 1/2, 1/4, ... up or down while the cost falls."""
    search.restart()
    step = 1.0
    for _ in range(n_halvings):
        for _ in range(max_passes):
            moved = False
            for k in order:
                for signed in (step, -step):
                    after = search.weights[k] + signed
                    if -1e-9 <= after <= 1 + 1e-9 and search.cost_with(k, signed) < search.cost - 1e-9:
                        search.accept(k, signed)
                        moved = True
                        break
            if not moved:
                break
        step /= 2
    return search.weights.copy()


def compression_weights(
    parts: list[CodeArray],
    tables: list[FloatArray],
    own_tables: list[FloatArray],
    target: CodeArray,
    log_prior: FloatArray,
    row_weight: npt.NDArray[Any] | None = None,
    *,
    n_starts: int = 8,
    max_cells: int = 2_000_000,
    run: Run,
) -> FloatArray:
    """Weights between 0 and 1 for the variables of a naive Bayes.

    Parameters
    ----------
    parts
        For each variable the part of each row.
    tables
        For each variable the evidence of each part for each class.
    own_tables
        The same evidence without the row itself, used for the row's own class: a row that speaks for itself
        flatters the finest variable.
    target
        Class of each row.
    log_prior
        Log-frequencies of the classes.
    row_weight
        Whole frequencies of the rows.
    n_starts
        Random orders of the variables, for each of the two searches.
    max_cells
        Rows times classes weighed; of a larger table a subset of the rows, chosen by their content and not by
        their order, is weighed in its place.
    run
        Once it is stopped, the weights are the mean over the starts that were finished.

    Returns
    -------
    array of shape (n_variables,)
    """
    n_variables = len(tables)
    weight = np.ones(target.size) if row_weight is None else np.asarray(row_weight, np.float64)
    rows = _subset(parts, target, max(1000, max_cells // log_prior.size))
    order = _canonical_order(tables)
    search = _Search(
        [parts[k][rows] for k in order],
        [tables[k] for k in order],
        [own_tables[k] for k in order],
        target[rows],
        log_prior,
        weight[rows],
    )
    rng = np.random.default_rng(0)
    selected, total_gain = np.zeros(n_variables), 0.0
    stepped = np.zeros(n_variables)
    done = 0
    for _ in range(n_starts):
        if run.stopped and done:
            break
        run.check()
        total_gain += _select(search, rng.permutation(n_variables), selected)
        stepped += _step_weights(search, rng.permutation(n_variables))
        done += 1
    if total_gain > 0:
        selected /= total_gain
    weights = np.empty(n_variables)
    weights[order] = np.clip((selected + stepped / done) / 2, 0.0, 1.0)
    return weights


def _subset(parts: list[CodeArray], target: CodeArray, size: int) -> IntArray:
    """At most ``size`` rows, the same ones whatever the order of the rows."""
    if target.size <= size:
        return np.arange(target.size)
    key = target.astype(np.uint64)
    for part in parts:
        key = (key ^ part.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return np.sort(np.argsort(key, kind="stable")[:size])


def _canonical_order(tables: list[FloatArray]) -> list[int]:
    """Variables in an order that does not depend on the columns' order: by what they say, strongest first."""
    strength = [float(np.abs(table).sum()) for table in tables]
    return sorted(range(len(tables)), key=lambda k: (-strength[k], tables[k].shape[0]))
