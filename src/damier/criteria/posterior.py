"""Sums over all partitions of an ordered variable, each weighted by its posterior probability.

The cost of a partition is minus the logarithm of its probability, and it is a price of the number of parts
plus a sum over the parts. So the sum over all partitions is as cheap as the search for the best one.

In the formulas, ]a, b] is the part of the elements a + 1 .. b, V the number of elements, J that of classes.
"""

from typing import Any, NamedTuple

import numpy as np

from damier.criteria._checks import FloatArray, IntArray, class_counts_table
from damier.criteria.combinatorics import log_factorials
from damier.criteria.special import gammaln

# Numbers of parts whose share of the probability is below exp(-45) are left out.
_NEGLIGIBLE = 45.0
# Above this many rows log-factorials are worked out, not looked up: the table would not fit the cache.
_LARGEST_TABLE = 1 << 21


class Posterior(NamedTuple):
    """What is known of an ordered variable when no single partition is chosen.

    Attributes
    ----------
    shares : array of shape (n_elements, n_classes)
        Mean of the class shares of each element.
    own_shares : array of shape (n_elements, n_classes)
        Mean share of a row's own class, had the row itself not been counted: element and class are those of
        the row. Where an element has no row of a class, the plain mean.
    deviations : array of shape (n_elements, n_classes)
        Standard deviations of the class shares.
    cuts : array of shape (n_elements - 1,)
        Probability of a cut behind each element but the last.
    n_parts : array
        Probability of 1, 2, ... parts; the numbers that are left out have none to speak of.
    """

    shares: FloatArray
    own_shares: FloatArray
    deviations: FloatArray
    cuts: FloatArray
    n_parts: FloatArray


def interval_posterior(counts: Any, prices: Any = None, stands_for: Any = None) -> Posterior:
    """Average the class shares of ordered elements over all partitions into intervals.

    A partition M has the probability exp(-cost(M)) / Z, with the cost of
    :func:`damier.criteria.discretization_cost`. Time grows with the square of the number of elements.

    Parameters
    ----------
    counts : array-like of shape (n_elements, n_classes)
        Whole counts of the elements, in order.
    prices : array-like of shape (n_elements,), optional
        Price of 1, 2, ... parts, in nats; by default that of intervals.
    stands_for : array-like of shape (n_elements - 1,), optional
        Number of possible cuts that each cut stands for, where elements were put together; by default one.

    Returns
    -------
    Posterior

    Examples
    --------
    A step that few rows show is rounded; cuts other than the best one have their share.

    >>> from damier.criteria import interval_posterior
    >>> posterior = interval_posterior([[3, 0], [3, 0], [2, 1], [0, 3], [0, 3]])
    >>> posterior.shares[:, 1].round(2).tolist()
    [0.19, 0.19, 0.32, 0.81, 0.82]
    >>> posterior.cuts.round(2).tolist(), posterior.n_parts.round(2).tolist()[:3]
    ([0.07, 0.26, 0.75, 0.07], [0.06, 0.76, 0.17])
    """
    table = class_counts_table(counts)
    n_elements, n_classes = table.shape
    total = int(table.sum())
    if prices is None:
        steps = np.arange(1, n_elements, dtype=np.float64)
        size = np.log(total) + np.concatenate([[0.0], np.cumsum(np.log1p(total / steps))])
    else:
        size = np.asarray(prices, np.float64)
    # The price of one more part: taken off each part here and given back with the number of parts, it keeps
    # all sums between the smallest and the largest float. The largest of the first two: one part must not
    # vanish where two cost thousands of nats more, nor be all there is where it costs more than two.
    each = float(np.diff(size[:3]).max()) if n_elements > 1 else 0.0
    below = np.zeros((n_elements + 1, n_classes), np.int64)
    np.cumsum(table, axis=0, out=below[1:])
    rows, gain = _gains(below, total)
    if stands_for is not None:
        weight = np.log(np.asarray(stands_for, np.float64))
        gain[:, 1:n_elements] += weight
    kernel = _scaled(gain, each)
    to_end, from_start, chances = _forward_and_backward(kernel, each * np.arange(1, size.size + 1) - size)
    held = kernel * (from_start.T @ to_end)  # the probability that ]a, b] is a part

    shares, own, deviations = (np.empty(table.shape) for _ in range(3))
    one_more, two_more, all_others = rows + n_classes, rows + (n_classes + 1), held * (rows + (n_classes - 1))
    for j in range(n_classes):
        own_rows = _between(below[:, j]).astype(np.float64)  # once, not in each formula
        share = held * ((own_rows + 1) / one_more)
        shares[:, j] = _over_elements(share)
        second = _over_elements(share * (own_rows + 2) / two_more)
        deviations[:, j] = np.sqrt(np.maximum(second - shares[:, j] ** 2, 0.0))
        # Without one of its rows of class j, the part is less probable by the chance it gave that row.
        inverse = np.where(own_rows > 0, all_others / np.maximum(own_rows, 1), 0.0)
        met = table[:, j] > 0
        own[:, j] = np.where(met, 1.0 / np.where(met, _over_elements(inverse), 1.0), shares[:, j])
    return Posterior(shares, own, deviations, held.sum(axis=0)[1:n_elements], chances)


def _between(below: IntArray) -> IntArray:
    """Rows of each part ]a, b]; zero where b <= a."""
    difference: IntArray = np.triu(below[np.newaxis, :] - below[:, np.newaxis])
    return difference


def _gains(below: IntArray, total: int) -> tuple[FloatArray, FloatArray]:
    """Rows of each part, and minus its cost; below the diagonal they are of no use."""
    n_classes = below.shape[1]
    table = log_factorials(total + n_classes) if total < _LARGEST_TABLE else None

    def log_factorial(counts: IntArray) -> FloatArray:
        logs: FloatArray = gammaln(counts + 1.0) if table is None else table[counts]
        return logs

    rows = _between(below.sum(axis=1))
    gain = log_factorial(np.array(n_classes - 1)) - log_factorial(rows + (n_classes - 1))
    for j in range(n_classes):
        gain += log_factorial(_between(below[:, j]))
    return rows.astype(np.float64), gain


def _scaled(gain: FloatArray, each: float) -> FloatArray:
    """Probabilities of parts up to factors that cancel in every partition; none exceeds one.

    The factors come from the best partition of the elements up to a and up to b, at the price ``each`` per
    part: ``gain(a, b) - each <= best(b) - best(a)`` whatever the part.
    """
    size = gain.shape[0]
    best = np.zeros(size)
    behind = np.ascontiguousarray(gain.T)
    for b in range(1, size):
        best[b] = (best[:b] + behind[b, :b]).max() - each
    exponents = gain - each - best[np.newaxis, :] + best[:, np.newaxis]
    scaled: FloatArray = np.where(np.tri(size, k=0, dtype=bool), 0.0, np.exp(np.minimum(exponents, 0.0)))
    return scaled


def _forward_and_backward(
    kernel: FloatArray, log_price: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum over all partitions before and behind each place.

    Returns
    -------
    to_end : array of shape (n, n_elements + 1)
        Sums over the partitions behind each place, by the number of parts before it, divided by Z.
    from_start : array of shape (n, n_elements + 1)
        Sums over the partitions before each place into 0, 1, ... parts, up to a factor per number.
    chances : array of shape (n,)
        Probability of 1, 2, ... parts.
    """
    last = kernel.shape[0] - 1
    before, behind = [np.zeros(last + 1)], [np.zeros(last + 1)]
    before[0][0] = behind[0][last] = 1.0
    # Sums over hundreds of parts may lie below the smallest float: the logarithm of a factor is kept apart.
    factors = [0.0]
    logs: list[float] = []
    for parts in range(1, last + 1):
        before.append(before[-1] @ kernel)
        behind.append(kernel @ behind[-1])
        largest = max(before[-1].max(), behind[-1].max()) or 1.0
        before[-1] /= largest
        behind[-1] /= largest
        factors.append(factors[-1] + float(np.log(largest)))
        with np.errstate(divide="ignore"):
            logs.append(float(np.log(before[-1][last]) + factors[-1] + log_price[parts - 1]))
        if parts > 3 and logs[-1] < max(logs) - _NEGLIGIBLE:
            break
    n = len(logs)
    top = max(logs)
    chances = np.exp(np.array(logs) - top)
    total = chances.sum()
    behind_of = np.zeros((n, n))  # price of i parts before, one at hand, and k behind
    for i in range(n):
        price = log_price[i:n] + factors[i] + np.array(factors[: n - i]) - top
        # Where the best partition has hundreds of parts the price of few would overflow: their sums are zero.
        behind_of[i, : n - i] = np.exp(np.minimum(price, 700.0)) / total
    return behind_of @ np.array(behind[:n]), np.array(before[:n]), chances / total


def _over_elements(held: FloatArray) -> FloatArray:
    """Sum over the parts that hold each element."""
    sums: FloatArray = np.cumsum(held.sum(axis=1) - held.sum(axis=0))[:-1]
    return sums
