"""What a split of a set of nodes into a ball and the rest costs, in bits.

A set of N points is either kept whole or split by a ball, given by its size and its rank among the distinct
balls of that size inside the set. Then come the labels of each part: the class frequencies, then their order.

``prior="paper"`` is the criterion as printed: keeping the set whole is one more size, and costs as much as
naming any one size. ``prior="even"`` gives keeping it whole half of the probability, and the balls the rest.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from damier.criteria._checks import IntArray, whole_counts, whole_number
from damier.criteria.special import gammaln

Prior = Literal["even", "paper"]

__all__ = ["Prior", "ball_label_cost", "ball_split_cost", "ball_unsplit_cost"]


def ball_label_cost(counts: npt.ArrayLike) -> float:
    """Bits to write the labels of a set: its class frequencies, then their order.

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Labeled points of each class.

    Examples
    --------
    >>> from damier.criteria.balls import ball_label_cost
    >>> round(ball_label_cost([1, 1]), 6)  # log2 of 3 frequencies times 2 orders
    2.584963
    """
    n_j = whole_counts(counts, "counts", ndim=1)
    n, n_classes = n_j.sum(), n_j.size
    nats = gammaln(n + n_classes) - gammaln(n_classes) - gammaln(n_j + 1.0).sum()
    return float(nats / np.log(2.0))


def ball_split_cost(
    ball_counts: npt.ArrayLike,
    rest_counts: npt.ArrayLike,
    n_same_size: int,
    n_points: int | None = None,
    prior: Prior = "even",
) -> float:
    """Bits to split a set into a ball and the rest, and to write the labels of both.

    Parameters
    ----------
    ball_counts, rest_counts : array-like of shape (n_classes,)
        Labeled points of each class in the ball and outside it.
    n_same_size : int
        Number of distinct balls inside the set that have as many points as this one, itself included.
    n_points : int or None, default=None
        Points of the set, labeled or not; all are labeled when None.
    prior : {"even", "paper"}, default="even"
        How keeping the set whole is weighed.
    """
    inside = whole_counts(ball_counts, "ball_counts", ndim=1)
    outside = whole_counts(rest_counts, "rest_counts", ndim=1)
    if len(inside) != len(outside):
        raise ValueError(
            f"ball_counts and rest_counts must have the same classes, got {len(inside)} and {len(outside)}"
        )
    n = _number_of_points(inside + outside, n_points)
    n_same_size = whole_number(n_same_size, "n_same_size", at_least=1)
    naming = np.log2(n) + np.log2(n_same_size) + (1.0 if _is_even(prior) else 0.0)
    return float(naming + ball_label_cost(inside) + ball_label_cost(outside))


def ball_unsplit_cost(counts: npt.ArrayLike, n_points: int | None = None, prior: Prior = "even") -> float:
    """Bits to keep a set whole and to write its labels; parameters as in :func:`ball_split_cost`."""
    n = _number_of_points(whole_counts(counts, "counts", ndim=1), n_points)
    return (1.0 if _is_even(prior) else float(np.log2(n))) + ball_label_cost(counts)


def _number_of_points(counts: IntArray, n_points: int | None) -> int:
    n_labeled = int(counts.sum())
    return whole_number(n_labeled if n_points is None else n_points, "n_points", at_least=max(1, n_labeled))


def _is_even(prior: str) -> bool:
    if prior not in ("even", "paper"):
        raise ValueError(f"prior must be 'even' or 'paper', got {prior!r}")
    return prior == "even"
