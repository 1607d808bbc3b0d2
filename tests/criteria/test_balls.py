"""Bits of balls against whole-number arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damier.criteria import ball_label_cost, ball_split_cost, ball_unsplit_cost
from tests import naive

counts = st.lists(st.integers(0, 60), min_size=1, max_size=5)


def bits(n):
    return naive.log_int(n) / math.log(2)


def labels(values):
    return naive.label_weight([j for j, n in enumerate(values) for _ in range(n)], len(values))


@given(counts)
def test_labels(values):
    assert ball_label_cost(values) == pytest.approx(bits(labels(values)), rel=1e-9, abs=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=4), st.integers(1, 99)
)
def test_split_and_no_split(pairs, n_same_size):
    ball, rest = (list(side) for side in zip(*pairs, strict=True))
    ball[0] += 1
    n = sum(ball) + sum(rest)
    split = bits(n * n_same_size * labels(ball) * labels(rest))
    assert ball_split_cost(ball, rest, n_same_size, prior="paper") == pytest.approx(split)
    assert ball_split_cost(ball, rest, n_same_size, prior="even") == pytest.approx(split + 1)
    whole = np.add(ball, rest).tolist()
    assert ball_unsplit_cost(whole, prior="paper") == pytest.approx(bits(n * labels(whole)))
    assert ball_unsplit_cost(whole, prior="even") == pytest.approx(1 + bits(labels(whole)))


def test_points_without_a_label_count_as_points():
    assert ball_unsplit_cost([3, 1], 64, prior="paper") == pytest.approx(6 + ball_label_cost([3, 1]))
    assert ball_split_cost([3, 0], [0, 1], 2, 64, prior="paper") == pytest.approx(
        7 + ball_label_cost([3, 0]) + ball_label_cost([0, 1])
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ball_label_cost([-1, 2]), "negative"),
        (lambda: ball_label_cost([0.5, 2]), "whole"),
        (lambda: ball_split_cost([1, 0], [1, 1, 1], 1), "classes"),
        (lambda: ball_split_cost([1, 0], [1, 1], 0), "n_same_size"),
        (lambda: ball_unsplit_cost([1, 0], 0), "n_points"),
        (lambda: ball_unsplit_cost([1, 0], prior="flat"), "prior"),
    ],
)
def test_refusals_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
