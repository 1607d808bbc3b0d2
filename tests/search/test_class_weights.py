"""Weights per variable and class: the derivatives, the optimum, and what a row counts for in its own case."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from damier.search import class_weights
from damier.search.class_weights import Rows, adjusted_weights, convex_weights, loss_and_slopes
from damier.search.run import Run
from damier.search.sharpness import deal, find_sharpness, find_sharpness_of_kinds
from tests import naive


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


def test_rows_are_dealt_to_folds_however_they_are_repeated():
    rng = np.random.default_rng(0)
    target = np.sort(rng.integers(0, 3, 40)).astype(np.int32)
    times = rng.integers(1, 9, 40).astype(np.float64)
    dealt = deal(target, times, 5)
    np.testing.assert_array_equal(dealt.sum(axis=0), times)
    repeated = np.repeat(np.arange(40), times.astype(int))
    one_by_one = deal(target[repeated], np.ones(repeated.size), 5)
    for f in range(5):
        np.testing.assert_array_equal(np.bincount(repeated, one_by_one[f], minlength=40), dealt[f])
    for j in range(3):
        of_class = dealt[:, target == j].sum(axis=1)
        assert of_class.max() - of_class.min() <= 1


def test_sharpness_is_the_optimum_of_the_literal_problem():
    rng = np.random.default_rng(1)
    terms = rng.normal(size=(2, 80, 3))
    target = np.array([rng.choice(3, p=softmax(2 * row)) for row in terms[0]], np.int32)
    weight = rng.integers(1, 4, 80).astype(np.float64)
    log_prior, usual = np.log([0.2, 0.3, 0.5]), np.array([1.0, 0.5])

    def literal(factors):
        loss = 0.0
        for n, (y, times) in enumerate(zip(target, weight, strict=True)):
            scores = log_prior + factors[0] * terms[0, n] + factors[1] * terms[1, n]
            loss += times * (logsumexp(scores) - scores[y])
        return loss + sum(1.5 * (a - b) ** 2 for a, b in zip(factors, usual, strict=True))

    best = minimize(literal, usual, bounds=[(0, None)] * 2)
    found = find_sharpness(terms, usual, log_prior, target, weight, Run())
    np.testing.assert_allclose(found.factors, best.x, atol=1e-3)
    assert found.loss + 1.5 * ((found.factors - usual) ** 2).sum() == pytest.approx(literal(found.factors))
    # What does not hold has no part: the factor is zero, not below.
    assert find_sharpness(-terms[:1], usual[:1], log_prior, target, weight, Run()).factors[0] == 0.0


@pytest.mark.parametrize("size", [1, 10**6])
def test_a_kind_is_left_out_where_it_does_not_pay_for_its_variables(size):
    """What the second kind gains pays for one variable, not for the choice among a million."""
    rng = np.random.default_rng(3)
    evidence = rng.normal(size=(3, 120, 2))
    steps = 0.3 * rng.normal(size=(3, 120, 2))
    told = softmax(2 * evidence[0] + 0.9 * evidence[1], axis=1)
    target = (rng.random(120) < told[:, 1]).astype(np.int32)
    weight, log_prior = np.ones(120), np.log([0.5, 0.5])
    steps = np.stack([steps, steps + 0.1 * rng.normal(size=(3, 120, 2))])  # of two stiffnesses

    def best(used):
        terms = np.concatenate([evidence[used], steps[:, used].sum(axis=1)])
        usual = np.array([1.0] * len(used) + [0.5, 0.5])
        return find_sharpness(terms, usual, log_prior, target, weight, Run())

    used = [0, 1, 2]
    for kind, variables in ((2, 1), (1, size), (0, 1)):
        others = [i for i in used if i != kind]
        if best(others).loss - best(used).loss <= 0.75 * np.sqrt(variables):
            used = others
    expected = np.zeros(5)
    expected[[*used, 3, 4]] = best(used).factors
    found = find_sharpness_of_kinds(evidence, steps, np.array([1, size, 1]), log_prior, target, weight, Run())
    np.testing.assert_allclose(found, expected)
    assert used == ([0, 1] if size == 1 else [0])


def test_weights_and_steps_are_averaged_over_folds_as_said(monkeypatch):
    """One variable of three parts with a step each; rows are so few that all sums can be done literally."""
    monkeypatch.setattr(class_weights, "_LEAST_FOLD_GAIN", 1e-12)
    rng = np.random.default_rng(4)
    log_prior = np.log([0.5, 0.5])
    table = np.log([[1.6, 0.4], [0.9, 1.1], [0.5, 1.5], [1.0, 1.0]])
    part = rng.integers(0, 3, 40).astype(np.int32)
    target = (rng.random(40) < np.array([0.1, 0.7, 0.8])[part]).astype(np.int32)
    times = rng.integers(1, 4, 40).astype(np.float64)
    rows = Rows(part[:, np.newaxis], target, times, table, 0.9 * table, np.zeros((4, 2)))

    def score(n, held):
        if held.ndim == 1:  # weights
            evidence = table[part[n]].copy()
            evidence[target[n]] *= 0.9
            return held * evidence
        return held[part[n]]

    def find(others):
        total = sum(t for _, _, t in others)
        others = [(n, y, t * times.sum() / total) for n, y, t in others]

        def literal(w):
            loss = w.mean() / 2 + 16 * ((w - w.mean()) ** 2).sum()
            for n, y, t in others:
                scores = log_prior + score(n, w)
                loss += t * (logsumexp(scores) - scores[y])
            return loss

        weights = minimize(literal, [0.5, 0.5], bounds=[(0, None)] * 2).x
        base = [log_prior + score(n, weights) for n, _, _ in others]
        of_rows = [[[part[n]] for n, _, _ in others], *zip(*((y, t) for _, y, t in others), strict=True)]

        def steps(stiffness):
            def literal(flat):
                return naive.adjusted_loss(base, *of_rows, flat.reshape(3, 2), [0, 3], stiffness)

            return minimize(literal, np.zeros(6)).x.reshape(3, 2)

        return weights, [steps(stiffness) for stiffness in (0.1, 1.0, 10.0)]

    folds = [[(n, target[n], inside[n]) for n in np.flatnonzero(inside)] for inside in deal(target, times, 5)]
    weights, steps = naive.averaged_over_folds(
        folds, find, score, log_prior, lambda f, at: minimize(f, at, bounds=[(0, None)] * 4).x
    )
    climb = class_weights._Climb(np.array([0, 4]), log_prior, np.array([0.5]), [np.arange(3)], Run())
    found = climb.sharpened(rows, times, np.full((1, 2), 0.5), np.zeros(1, np.int64))
    np.testing.assert_allclose(found.weights[0], weights, atol=2e-3)
    np.testing.assert_allclose(found.steps[0], steps, atol=2e-3)


def test_what_many_columns_of_noise_say_is_taken_back():
    rng = np.random.default_rng(2)
    target = rng.integers(0, 2, 200).astype(np.int32)
    parts = [rng.integers(0, 3, 200).astype(np.int32) for _ in range(60)]
    tables, none = [], np.zeros((4, 2))
    for part in parts:
        counts = np.stack([np.bincount(part[target == j], minlength=3) for j in range(2)], axis=1) + 1
        shares = counts / counts.sum(axis=1, keepdims=True)
        tables.append(np.vstack([np.log(2 * shares), np.zeros(2)]))

    def weigh(kinds):
        found = adjusted_weights(
            parts,
            tables,
            tables,
            [none] * 60,
            [None] * 60,
            target,
            np.log([0.5, 0.5]),
            kinds=kinds,
            run=Run(),
        )
        return found.weights.mean(axis=1)

    plain, sharp = weigh(None), weigh(np.zeros(60, np.int64))
    assert sharp.sum() < 0.8 * plain.sum()
    # Kinds have factors of their own, and columns in another order the same.
    kinds = np.arange(60) % 2
    order = rng.permutation(60)
    shuffled = adjusted_weights(
        [parts[k] for k in order],
        [tables[k] for k in order],
        [tables[k] for k in order],
        [none] * 60,
        [None] * 60,
        target,
        np.log([0.5, 0.5]),
        kinds=kinds[order],
        run=Run(),
    )
    np.testing.assert_allclose(shuffled.weights.mean(axis=1), weigh(kinds)[order], atol=1e-12)
