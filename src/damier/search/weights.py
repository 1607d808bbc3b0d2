"""Weights of the variables of a naive Bayes, so that redundant ones are not counted twice.

A model is a vector of weights between 0 and 1: the evidence of variable k is multiplied by its weight. Its
cost is a prior on the sum of the weights plus the negative log-likelihood of the classes. Two searches are
averaged: selections of whole variables (weights 0 or 1), forward and backward from several random orders,
where the models on the way are weighted by their compression gain (Boullé, 2007); and fractional weights,
found by coordinate steps of 1, 1/2, 1/4, ...

Rows that agree in all their parts and in their class are counted once, with their total weight, and the rows
are sorted by weight and content: sums do not depend on the order of the rows, to the last bit.

In the kernels, N is the number of distinct rows and W the number of classes. A step multiplies the
probabilities of the classes by the few distinct factors ``exp(step * evidence)`` of one variable. The sum of
the probabilities after it, the mass of the row, gives the new likelihood without an exponential per row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from damier.search.kernels import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    allocating_inner,
    bare_kernel,
    inner,
    scatter,
)
from damier.search.run import Run, Stopped

# A cost must fall by more than rounding errors.
_LEAST_GAIN = 1e-9
# Products of masses are kept in a range where one more mass cannot overflow.
_LARGE = 1e150
# Below, a probability is worked out anew from the scores: products would lose it for good.
_SMALL = 1e-250


class Problem(NamedTuple):
    """What the search is given.

    ``part[k, n]`` is the row of the tables that holds the part of row n; the parts of variable k have the
    rows ``first[k]`` to ``first[k + 1]``.
    """

    part: CodeArray  # (K, N)
    target: CodeArray  # (N,)
    weight: FloatArray  # (N,)
    first: IntArray  # (K + 1,)
    table: FloatArray  # (parts, W): evidence of each part for each class
    own_table: FloatArray  # (parts, W): the same for a row's own class, without the row
    own_sum: FloatArray  # (K,): sum over the rows of their own evidence
    log_prior: FloatArray  # (W,)


class State(NamedTuple):
    """The model at hand, and what is known of each row under it."""

    weights: FloatArray  # (K,)
    sums: FloatArray  # sum of the weights, negative log-likelihood, cost, cost without any variable
    scores: FloatArray  # (N, W): logarithms of the probabilities, up to a constant per row
    others: FloatArray  # (N, W): probabilities of the classes, zero for the row's own
    mine: FloatArray  # (N,): probability of the row's own class
    ratio: FloatArray  # (largest number of parts, W): factors of the step at hand
    own_ratio: FloatArray  # the same for the row's own class


@inner
def _prior(n_variables: int, selected: float) -> float:
    """Cost of the number of variables and of their choice."""
    cost = math.log(n_variables + 1.0)
    if selected > 0:
        cost += math.lgamma(n_variables + selected) - math.lgamma(selected + 1) - math.lgamma(n_variables)
    return cost


@allocating_inner
def _normalise(scores: FloatArray, y: int, others: FloatArray) -> float:
    """Set the probabilities of the other classes of one row; return that of its own."""
    top = scores.max()
    total = 0.0
    for w in range(scores.size):
        others[w] = math.exp(scores[w] - top)
        total += others[w]
    for w in range(scores.size):
        others[w] /= total
    mine = others[y]
    others[y] = 0.0
    return mine  # type: ignore[no-any-return]


@allocating_inner
def _restart(problem: Problem, state: State) -> None:
    """Set all weights to zero."""
    n_rows, n_variables = problem.target.size, state.weights.size
    state.weights[:] = 0.0
    loss = 0.0
    for n in range(n_rows):
        y = problem.target[n]
        state.scores[n] = problem.log_prior
        state.mine[n] = _normalise(state.scores[n], y, state.others[n])
        loss -= problem.weight[n] * problem.log_prior[y]
    state.sums[0], state.sums[1] = 0.0, loss
    state.sums[2] = state.sums[3] = _prior(n_variables, 0.0) + loss


@inner
def _log_masses(
    part: CodeArray,
    target: CodeArray,
    weight: FloatArray,
    others: FloatArray,
    mine: FloatArray,
    ratio: FloatArray,
    own_ratio: FloatArray,
    first: int,
) -> float:
    """Sum over the rows of weight times log mass after a step: one logarithm for a product of many masses."""
    n_rows, n_classes = others.shape
    total, product, shared = 0.0, 1.0, 1.0
    for n in range(n_rows):
        i = part[n] - first
        mass = mine[n] * own_ratio[i, target[n]]
        for w in range(n_classes):
            mass += others[n, w] * ratio[i, w]
        if weight[n] != shared or product > _LARGE or product < 1.0 / _LARGE:
            total += shared * math.log(product)
            product, shared = 1.0, weight[n]
        if 1.0 / _LARGE < mass < _LARGE:
            product *= mass
        else:
            total += weight[n] * math.log(max(mass, 1e-300))
    return total + shared * math.log(product)


@inner
def _loss_with(problem: Problem, state: State, k: int, step: float) -> float:
    """Negative log-likelihood after a step of one weight; the factors of the step are left in the state."""
    first, after = problem.first[k], problem.first[k + 1]
    for i in range(first, after):
        for w in range(problem.table.shape[1]):
            state.ratio[i - first, w] = math.exp(step * problem.table[i, w])
            state.own_ratio[i - first, w] = math.exp(step * problem.own_table[i, w])
    masses = _log_masses(
        problem.part[k],
        problem.target,
        problem.weight,
        state.others,
        state.mine,
        state.ratio,
        state.own_ratio,
        first,
    )
    return state.sums[1] + masses - step * problem.own_sum[k]  # type: ignore[no-any-return]


@inner
def _take(
    part: CodeArray,
    target: CodeArray,
    table: FloatArray,
    own_table: FloatArray,
    scores: FloatArray,
    others: FloatArray,
    mine: FloatArray,
    ratio: FloatArray,
    own_ratio: FloatArray,
    first: int,
    step: float,
) -> None:
    """Take a step of one weight, whose factors are known.

    Its arguments are the arrays of the problem and of the state that it reads and writes, not the tuples:
    these would be compiled into it once more.
    """
    n_rows, n_classes = others.shape
    for n in range(n_rows):
        p, y = part[n], target[n]
        i = p - first
        own_score = scores[n, y] + step * own_table[p, y]
        mine[n] *= own_ratio[i, y]
        mass = mine[n]
        for w in range(n_classes):
            scores[n, w] += step * table[p, w]
            others[n, w] *= ratio[i, w]
            mass += others[n, w]
        scores[n, y] = own_score
        least = mine[n]
        for w in range(n_classes):
            others[n, w] /= mass
            if w != y:
                least = min(least, others[n, w])
        mine[n] /= mass
        if not (least > _SMALL and mass < _LARGE):
            mine[n] = _normalise(scores[n], y, others[n])


@inner
def _try_step(problem: Problem, state: State, k: int, step: float) -> bool:
    """Take a step of one weight if the cost falls."""
    loss = _loss_with(problem, state, k, step)
    selected = max(0.0, state.sums[0] + step)
    cost = _prior(state.weights.size, selected) + loss
    if not cost < state.sums[2] - _LEAST_GAIN:
        return False
    _take(
        problem.part[k],
        problem.target,
        problem.table,
        problem.own_table,
        state.scores,
        state.others,
        state.mine,
        state.ratio,
        state.own_ratio,
        problem.first[k],
        step,
    )
    state.weights[k] += step
    state.sums[0], state.sums[1], state.sums[2] = selected, loss, cost
    return True


@allocating_inner
def _select(problem: Problem, state: State, order: IntArray, mean: FloatArray, stop: Any) -> float:
    """Select whole variables, in forward and backward passes.

    After each decision the model at hand is added to ``mean``, weighted by its compression gain. Averaging
    the models at hand rather than all that were tried leaves noise without any weight.

    Parameters
    ----------
    problem, state
        What is given, and the model at hand.
    order
        In which the variables are tried.
    mean
        Sum of the weights times the gains; added to.
    stop
        Not zero once the search is to end.

    Returns
    -------
    float
        The sum of the gains.
    """
    _restart(problem, state)
    total = 0.0
    since = np.zeros(order.size)  # the sum of the gains when a variable was selected
    for _ in range(2):
        before = state.sums[2]
        for step in (1.0, -1.0):
            for k in order:
                if (state.weights[k] > 0.5) == (step > 0) or stop[0]:
                    continue
                if _try_step(problem, state, k, step):
                    if step > 0:
                        since[k] = total
                    else:
                        mean[k] += total - since[k]
                total += max(0.0, 1.0 - state.sums[2] / state.sums[3])
        if state.sums[2] >= before - _LEAST_GAIN:
            break
    for k in order:
        if state.weights[k] > 0.5:
            mean[k] += total - since[k]
    return total


@inner
def _step_weights(problem: Problem, state: State, order: IntArray, stop: Any) -> None:
    """Find fractional weights: coordinate steps of 1, 1/2, ... 1/16, up or down while the cost falls."""
    _restart(problem, state)
    step = 1.0
    for _ in range(5):
        for _ in range(3):
            moved = False
            for k in order:
                for signed in (step, -step):
                    if not 0.0 <= state.weights[k] + signed <= 1.0 or stop[0]:
                        continue
                    if _try_step(problem, state, k, signed):
                        moved = True
                        break
            if not moved:
                break
        step /= 2


@bare_kernel
def search_weights(
    problem: Problem,
    state: State,
    orders: IntArray,
    selected: FloatArray,
    stepped: FloatArray,
    stop: Any,
) -> float:
    """Run both searches from one pair of random orders.

    Parameters
    ----------
    problem, state
        What is given, and room for the model at hand.
    orders
        The orders in which the variables are tried, one per search.
    selected
        Sum of the weights of the selections times their compression gains; added to.
    stepped
        Sum of the fractional weights; added to.
    stop
        Not zero once the search is to end; what it leaves then is of no use.

    Returns
    -------
    float
        The sum of the compression gains of the selections.
    """
    total: float = _select(problem, state, orders[0], selected, stop)
    _step_weights(problem, state, orders[1], stop)
    stepped += state.weights
    return total


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
    """Find weights between 0 and 1 for the variables of a naive Bayes.

    Parameters
    ----------
    parts
        For each variable the part of each row.
    tables
        For each variable the evidence of each part for each class.
    own_tables
        The same evidence without the row itself, used for the row's own class: a row counted in its own
        evidence would favour the finest variable.
    target
        Class of each row.
    log_prior
        Log-frequencies of the classes.
    row_weight
        Whole frequencies of the rows.
    n_starts
        Random orders of the variables, for each of the two searches.
    max_cells
        Distinct rows times classes at most; of a larger table a subset of the rows, chosen by their content
        and not by their order, is searched instead.
    run
        Once it is stopped, the weights are the mean over the starts that were finished.

    Returns
    -------
    array of shape (n_variables,)

    Raises
    ------
    Stopped
        If the run is stopped before the first start is finished.
    """
    n_variables = len(tables)
    order = canonical_order(tables)
    problem = build_problem(
        [parts[k] for k in order],
        [tables[k] for k in order],
        [own_tables[k] for k in order],
        target,
        log_prior,
        row_weight,
        max_rows=max(1000, max_cells // log_prior.size),
    )
    state = empty_state(problem)
    rng = np.random.default_rng(0)
    selected, stepped = np.zeros(n_variables), np.zeros(n_variables)
    gains, done = 0.0, 0
    for _ in range(n_starts):
        orders = np.stack([rng.permutation(n_variables), rng.permutation(n_variables)])
        before = selected.copy(), stepped.copy()
        gain = search_weights(problem, state, orders, selected, stepped, run.stop)
        if run.stopped:
            selected, stepped = before
            break
        gains, done = gains + gain, done + 1
    if done == 0:
        raise Stopped
    if gains > 0:
        selected /= gains
    weights = np.empty(n_variables)
    weights[order] = np.clip((selected + stepped / done) / 2, 0.0, 1.0)
    return weights


def build_problem(
    parts: list[CodeArray],
    tables: list[FloatArray],
    own_tables: list[FloatArray],
    target: CodeArray,
    log_prior: FloatArray,
    row_weight: npt.NDArray[Any] | None,
    *,
    max_rows: int,
) -> Problem:
    """Merge equal rows, and sort them by weight and content; keep at most ``max_rows`` of them."""
    # Equal keys mean equal rows: of a million rows, two different ones share a key once in 10^7 tables.
    key = scatter(target)
    for part in parts:
        key = scatter(key ^ part.astype(np.uint64))
    rows = np.argsort(key, kind="stable")
    new: BoolArray = np.ones(rows.size, np.bool_)
    new[1:] = key[rows[1:]] != key[rows[:-1]]
    weight = np.ones(target.size) if row_weight is None else np.asarray(row_weight, np.float64)
    weight = np.add.reduceat(weight[rows], np.flatnonzero(new))[:max_rows]
    rows = rows[new][:max_rows]
    by_weight = np.argsort(weight, kind="stable")
    rows, weight = rows[by_weight], weight[by_weight]
    first = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
    # Part -1, a value without a part, is the last row of its table.
    part = np.stack(
        [start + p[rows] % len(table) for start, p, table in zip(first[:-1], parts, tables, strict=True)]
    ).astype(np.int32)
    own_table = np.concatenate(own_tables)
    codes = target[rows].astype(np.int32)
    return Problem(
        part=part,
        target=codes,
        weight=weight,
        first=first.astype(np.int64),
        table=np.concatenate(tables),
        own_table=own_table,
        own_sum=np.array([weight @ own_table[p, codes] for p in part]),
        log_prior=np.ascontiguousarray(log_prior, np.float64),
    )


def empty_state(problem: Problem) -> State:
    """Return room for the model at hand."""
    (n_variables, n_rows), n_classes = problem.part.shape, problem.log_prior.size
    largest = int(np.diff(problem.first).max())
    return State(
        weights=np.zeros(n_variables),
        sums=np.zeros(4),
        scores=np.empty((n_rows, n_classes)),
        others=np.empty((n_rows, n_classes)),
        mine=np.empty(n_rows),
        ratio=np.empty((largest, n_classes)),
        own_ratio=np.empty((largest, n_classes)),
    )


def canonical_order(tables: list[FloatArray]) -> list[int]:
    """Variables in an order that does not depend on that of the columns: the strongest evidence first."""
    strength = [float(np.abs(table).sum()) for table in tables]
    return sorted(range(len(tables)), key=lambda k: (-strength[k], tables[k].shape[0]))
