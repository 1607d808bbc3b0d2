"""Weights of the variables of a naive Bayes, one per variable and class, by a convex problem.

The score of class j is its log-frequency plus the sum over the variables k of w_kj e_kj, the evidence of the
row's part times a weight that is not negative. The likelihood of the classes has no other maximum than the
best one, so there is no search: the penalised likelihood is climbed with first derivatives.

Each row is judged without itself: the evidence for its own class is that of its part without the row, and
what this class loses, the others gain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.adjustments import find_steps
from damier.search.kernels import CodeArray, FloatArray, IntArray, bare_kernel
from damier.search.minimize import minimize
from damier.search.run import Run
from damier.search.sharpness import deal, find_sharpness_of_kinds
from damier.search.weights import build_problem, canonical_order

# Price of the mean weight of a variable, in nats: a variable must be worth it, or its weight is zero.
_PRICE = 0.5
# Price of the squared distances between the weights of a variable and their mean.
_SPREAD = 32.0
_MOST_STEPS = 200
_ROWS_PER_CLASS = 16
# Relative gain of a step below which the weights do not change any more to speak of.
_LEAST_GAIN = 1e-7
# Weights are found on all rows but a fold, from those of all rows on, and judged on the fold: a factor needs
# fewer digits than the weights.
_LEAST_FOLD_GAIN = 1e-5
_FOLDS = 5
# Steps are found at several prices, those of `find_steps` times these.
_STIFFNESSES = (0.1, 1.0, 10.0)
# Distinct rows times variables times classes above which weights hold for other rows as they are.
_MOST_SHARPENED = 2_000_000


class Rows(NamedTuple):
    """Rows to be predicted, and the evidence that their parts bring.

    The parts of all variables are numbered through: ``part[n, k]`` is a row of the three tables.
    """

    part: CodeArray  # (N, K)
    target: CodeArray  # (N,)
    weight: FloatArray  # (N,)
    table: FloatArray  # (parts, J): evidence of each part for each class
    own: FloatArray  # (parts, J): the same for a row's own class, without the row
    shift: FloatArray  # (parts, J): what the other classes gain when the row is left out, by its class

    def take(self, weight: FloatArray) -> Rows:
        """Return the rows that have a weight, with other weights."""
        chosen = np.flatnonzero(weight > 0)
        return self._replace(part=self.part[chosen], target=self.target[chosen], weight=weight[chosen])


@bare_kernel
def loss_and_slopes(
    rows: Rows, log_prior: FloatArray, weights: FloatArray, weighted: FloatArray, slopes: FloatArray
) -> float:
    """Return minus the log-likelihood of the classes, and add its derivatives to ``slopes``.

    Parameters
    ----------
    rows
        What is to be predicted.
    log_prior
        Log-frequencies of the classes.
    weights
        One per variable and class.
    weighted
        Each row of the table times the weights of its variable; the last row is used for scores.
    slopes
        Derivatives by the weights; zero before.
    """
    n_rows, n_variables = rows.part.shape
    n_classes = log_prior.size
    scores = weighted[-1]
    loss = 0.0
    for n in range(n_rows):
        y = rows.target[n]
        for j in range(n_classes):
            scores[j] = log_prior[j]
        own = log_prior[y]
        for k in range(n_variables):
            p = rows.part[n, k]
            shift = rows.shift[p, y]
            own += weights[k, y] * rows.own[p, y]
            for j in range(n_classes):
                scores[j] += weighted[p, j] + weights[k, j] * shift
        scores[y] = own
        top = scores[0]
        for j in range(1, n_classes):
            top = max(top, scores[j])
        total = 0.0
        for j in range(n_classes):
            scores[j] = math.exp(scores[j] - top)
            total += scores[j]
        loss += rows.weight[n] * (math.log(total) + top - own)
        for j in range(n_classes):
            scores[j] *= rows.weight[n] / total
        mine = scores[y] - rows.weight[n]
        scores[y] = 0.0
        for k in range(n_variables):
            p = rows.part[n, k]
            shift = rows.shift[p, y]
            for j in range(n_classes):
                slopes[k, j] += scores[j] * (rows.table[p, j] + shift)
            slopes[k, y] += mine * rows.own[p, y]
    return loss


class Weighted(NamedTuple):
    """Weights of the evidence, and steps that are added to that of some variables."""

    weights: FloatArray  # (n_variables, n_classes)
    steps: list[FloatArray | None]  # of each variable: (n_steps, n_classes)


def convex_weights(
    parts: list[CodeArray],
    tables: list[FloatArray],
    own_tables: list[FloatArray],
    shifts: list[FloatArray],
    target: CodeArray,
    log_prior: FloatArray,
    row_weight: npt.NDArray[np.integer] | None = None,
    *,
    surcharge: FloatArray | None = None,
    max_cells: int = 1_000_000,
    run: Run,
) -> FloatArray:
    """Find the weights of the evidence of each variable for each class, as `adjusted_weights` does."""
    no_steps: list[IntArray | None] = [None] * len(tables)
    return adjusted_weights(
        parts,
        tables,
        own_tables,
        shifts,
        no_steps,
        target,
        log_prior,
        row_weight,
        surcharge=surcharge,
        max_cells=max_cells,
        run=run,
    ).weights


def adjusted_weights(
    parts: list[CodeArray],
    tables: list[FloatArray],
    own_tables: list[FloatArray],
    shifts: list[FloatArray],
    steps: list[IntArray | None],
    target: CodeArray,
    log_prior: FloatArray,
    row_weight: npt.NDArray[np.integer] | None = None,
    *,
    surcharge: FloatArray | None = None,
    kinds: IntArray | None = None,
    max_cells: int = 600_000,
    run: Run,
) -> Weighted:
    """Find the weights of the evidence of each variable for each class, then steps that are added to it.

    Parameters
    ----------
    parts
        For each variable the part of each row.
    tables
        For each variable the evidence of each part for each class; the last row is for values never seen.
    own_tables
        The same evidence without the row itself, used for the row's own class.
    shifts
        For each part and class of the row, what the evidence for the other classes gains without the row.
    steps
        For each variable the step of each part, or None if nothing is to be added to its evidence. A variable
        whose weights are zero has none either.
    target
        Class of each row.
    log_prior
        Log-frequencies of the classes.
    row_weight
        Whole frequencies of the rows.
    surcharge
        Price of the mean weight of each variable beyond that of all, in nats.
    kinds
        Kind of each variable: 0, 1, .... Weights and steps are means over five times four fifths of the rows,
        each judged on the others: the weights of each kind, and the steps of each of three stiffnesses, have
        a factor, how much of them holds. A kind that adds nothing there has none.
        Where there are very many rows, and without kinds, all rows are used once.
    max_cells
        Distinct rows times classes at most, but for sixteen rows per class, without which weights per class
        are noise; of a larger table a subset of the rows, chosen by their content and not by their order, is
        used instead.
    run
        Once it is stopped, the weights are those of the last step, perhaps without steps.

    Returns
    -------
    Weighted
    """
    n_variables, n_classes = len(tables), log_prior.size
    order = canonical_order(tables)
    problem = build_problem(
        [parts[k] for k in order],
        [tables[k] for k in order],
        [own_tables[k] for k in order],
        target,
        log_prior,
        row_weight,
        max_rows=max(1000, max_cells // n_classes, _ROWS_PER_CLASS * n_classes),
    )
    rows = Rows(
        part=np.ascontiguousarray(problem.part.T),
        target=problem.target,
        weight=problem.weight * (_total(row_weight, target) / problem.weight.sum()),
        table=problem.table,
        own=problem.own_table,
        shift=np.concatenate([shifts[k] for k in order]),
    )
    price = np.full(n_variables, _PRICE) if surcharge is None else _PRICE + surcharge[order]
    climb = _Climb(problem.first, problem.log_prior, price, [steps[k] for k in order], run)
    found = climb.weights(rows)
    if kinds is not None and not run.stopped and problem.part.size * n_classes <= _MOST_SHARPENED:
        found, added = climb.sharpened(rows, problem.weight, found, kinds[order])
    else:
        (added,) = climb.adjusted(rows, found)
    weights = np.empty((n_variables, n_classes))
    weights[order] = found
    in_place: list[FloatArray | None] = [None] * n_variables
    for k, held in zip(order, added, strict=True):
        in_place[k] = held
    return Weighted(weights, in_place)


class _Climb(NamedTuple):
    """The convex problems of the weights and of the steps, whatever the rows."""

    first: IntArray  # (K + 1,): first part of each variable
    log_prior: FloatArray
    price: FloatArray  # (K,): of the mean weight of each variable
    steps: list[IntArray | None]
    run: Run

    def sharpened(self, rows: Rows, weight: FloatArray, start: FloatArray, kinds: IntArray) -> Weighted:
        """Average over folds what is found without each, as much of it as holds for the fold.

        The weights of each kind have a factor, and the steps of each stiffness. A kind that adds nothing has
        the weight zero.
        """
        n_kinds, scale = int(kinds.max()) + 1, rows.weight.sum() / weight.sum()
        of_kinds = [kinds == kind for kind in range(n_kinds)]
        found, added, evidence, added_up, outside = [], [], [], [], []
        for inside in deal(rows.target, weight, _FOLDS):
            # Counted as if they were all rows: prices are what they are for these.
            outside_it = weight - inside
            others = rows.take(outside_it * (rows.weight.sum() / outside_it.sum()))
            held_out = rows.take(inside * scale)
            weights = self.weights(others, start, _LEAST_FOLD_GAIN)
            steps = self.adjusted(others, weights, _LEAST_FOLD_GAIN, _STIFFNESSES)
            if self.run.stopped:
                return Weighted(start, [None] * len(kinds))
            of_kind = [np.where(chosen[:, np.newaxis], weights, 0.0) for chosen in of_kinds]
            evidence.append([_judged(held_out, self.log_prior, held) - self.log_prior for held in of_kind])
            added_up.append([[self._added(held_out, held, c) for c in of_kinds] for held in steps])
            found.append(weights)
            added.append(steps)
            outside.append(held_out)
        factors = find_sharpness_of_kinds(
            np.concatenate(evidence, axis=1),
            np.concatenate(added_up, axis=2),
            np.bincount(kinds),
            self.log_prior,
            np.concatenate([held.target for held in outside]),
            np.concatenate([held.weight for held in outside]),
            self.run,
        )
        sharp = np.mean(found, axis=0) * factors[kinds, np.newaxis]
        mixed: list[FloatArray | None] = [None] * len(kinds)
        for k in np.flatnonzero(sharp.any(axis=1)):
            # A fold where the variable has no weight adds nothing to the mean.
            held = [
                factor * of_fold[k]
                for of_folds in added
                for factor, of_fold in zip(factors[n_kinds:], of_folds, strict=True)
                if of_fold[k] is not None
            ]
            if held:
                mixed[k] = np.sum(held, axis=0) / _FOLDS
        return Weighted(sharp, mixed)

    def weights(
        self, rows: Rows, start: FloatArray | float = 0.5, least_gain: float = _LEAST_GAIN
    ) -> FloatArray:
        """Find the weights, from some on."""
        n_variables, n_classes = len(self.price), len(self.log_prior)
        variable_of = np.repeat(np.arange(n_variables), np.diff(self.first))
        weighted = np.empty((len(rows.table) + 1, n_classes))
        price = self.price[:, np.newaxis]

        def cost(flat: FloatArray) -> tuple[float, FloatArray]:
            weights = flat.reshape(n_variables, n_classes)
            np.multiply(rows.table, weights[variable_of], out=weighted[:-1])
            slopes = np.zeros((n_variables, n_classes))
            loss = loss_and_slopes(rows, self.log_prior, weights, weighted, slopes)
            mean = weights.mean(axis=1, keepdims=True)
            apart = weights - mean
            loss += (price * mean).sum() + _SPREAD / 2 * (apart * apart).sum()
            slopes += price / n_classes + _SPREAD * apart
            return float(loss), slopes.ravel()

        found = minimize(
            cost,
            np.broadcast_to(start, (n_variables, n_classes)).ravel(),
            most_steps=_MOST_STEPS,
            least_gain=least_gain,
            positive=True,
            run=self.run,
        )
        return found.reshape(n_variables, n_classes)

    def adjusted(
        self,
        rows: Rows,
        weights: FloatArray,
        least_gain: float = _LEAST_GAIN,
        stiffnesses: tuple[float, ...] = (1.0,),
    ) -> list[list[FloatArray | None]]:
        """Find what is added to the weighted evidence of variables that have steps and a weight."""
        found: list[list[FloatArray | None]] = [[None] * len(self.steps) for _ in stiffnesses]
        chosen = [k for k, of_parts in enumerate(self.steps) if of_parts is not None and weights[k].any()]
        if not chosen or self.run.stopped:
            return found
        numbers, firsts = [], [0]
        for k in chosen:
            of_parts = np.asarray(self.steps[k])
            numbers.append(firsts[-1] + self._step_of(rows, k))
            firsts.append(firsts[-1] + int(of_parts[-1]) + 1)
        base = _judged(rows, self.log_prior, weights)
        step = np.ascontiguousarray(np.stack(numbers, axis=1), np.int32)
        for held, stiffness in zip(found, stiffnesses, strict=True):
            at = find_steps(
                base,
                step,
                rows.target,
                rows.weight,
                np.array(firsts),
                least_gain / 10,
                self.run,
                stiffness=stiffness,
            )
            for i, k in enumerate(chosen):
                held[k] = at[firsts[i] : firsts[i + 1]]
        return found

    def _step_of(self, rows: Rows, k: int) -> IntArray:
        of_parts = np.asarray(self.steps[k])
        # A value never seen has no step; of numbers there is none.
        found: IntArray = np.append(of_parts, of_parts[-1])[rows.part[:, k] - self.first[k]]
        return found

    def _added(self, rows: Rows, steps: list[FloatArray | None], chosen: npt.NDArray[np.bool_]) -> FloatArray:
        """Sum of the steps of each row, of some of the variables."""
        total = np.zeros((len(rows.target), len(self.log_prior)))
        for k, held in enumerate(steps):
            if held is not None and chosen[k]:
                total += held[self._step_of(rows, k)]
        return total


def _judged(rows: Rows, log_prior: FloatArray, weights: FloatArray) -> FloatArray:
    """Scores of each row and class, the row judged without itself."""
    n_rows = len(rows.target)
    scores = np.tile(log_prior, (n_rows, 1))
    own = log_prior[rows.target]
    for part, of_classes in zip(rows.part.T, weights, strict=True):
        if not of_classes.any():
            continue
        evidence = rows.table[part]
        evidence += rows.shift[part, rows.target][:, np.newaxis]
        evidence *= of_classes
        scores += evidence
        own = own + of_classes[rows.target] * rows.own[part, rows.target]
    scores[np.arange(n_rows), rows.target] = own
    return scores


def _total(row_weight: npt.NDArray[np.integer] | None, target: CodeArray) -> float:
    return float(target.size if row_weight is None else row_weight.sum())
