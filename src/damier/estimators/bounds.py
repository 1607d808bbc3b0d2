"""The posterior of a bound, for one variable whose rows need not all be labeled."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_consistent_length

from damier.criteria import log_binomial, part_costs
from damier.fit.training import require_two_classes
from damier.intake import NumericColumn, as_numeric, read_column, read_target
from damier.models.bound_posterior import BoundPosterior
from damier.models.bounds import midpoints


def bound_posterior(x: Any, y: Any) -> BoundPosterior:
    """Return the probability of each place of the bound between two intervals of a variable.

    The probability of a place is the sum of the posterior probabilities of all models with two intervals and
    the bound at that place, whatever the classes of the rows without a label. The sum is exact: if all class
    distributions of an interval are equally probable, then so are all class distributions of the rows that
    are drawn from it to be labeled. So the probability of a place depends only on the labels on its two
    sides, and is constant where there is no label.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Numbers or dates; missing values are ignored.
    y : array-like of shape (n_samples,)
        Classes; -1 (integers) or a missing value (anything else) is a row without a label.

    Returns
    -------
    BoundPosterior
        ``bounds``, ``probability``, ``two_intervals``, ``interval()`` and ``plot()``.

    References
    ----------
    A. Bondu, M. Boullé, V. Lemaire (2010), A non-parametric semi-supervised discretization method, section
    5.1.3.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 101)
    >>> y = np.where(x < 0.4, 0, np.where(x > 0.6, 1, -1))
    >>> low, high = bound_posterior(x, y).best
    >>> round(low, 3), round(high, 3)
    (0.395, 0.605)
    """
    column = as_numeric(read_column(x, "x"))
    target = read_target(y, allow_unlabeled=True)
    check_consistent_length(column.values, target.codes)
    require_two_classes(target)
    kept = ~np.isnan(column.values)
    return _posterior(NumericColumn("x", column.values[kept]), target.codes[kept], target.n_classes)


def _posterior(column: NumericColumn, codes: Any, n_classes: int) -> BoundPosterior:
    distinct, of_row = np.unique(column.values, return_inverse=True)
    if distinct.size < 2:
        raise ValueError("x has fewer than two distinct values: a bound needs a value on each side.")
    labeled = codes >= 0
    table = np.zeros((distinct.size, n_classes), np.int64)
    np.add.at(table, (of_row[labeled], codes[labeled]), 1)
    left = np.cumsum(table, axis=0)
    cost = _label_costs(left[:-1]) + _label_costs(left[-1] - left[:-1])
    log_sum = float(logsumexp(-cost))
    # One interval or two: both numbers are equally probable, and so are the N + 1 ways to cut N rows in two.
    n_rows = column.values.size
    log_two = log_sum - float(log_binomial(n_rows + 1, 1))
    log_one = -float(_label_costs(left[-1:])[0])
    return BoundPosterior(
        bounds=midpoints(distinct[:-1], distinct[1:]),
        probability=np.exp(-cost - log_sum),
        two_intervals=float(1.0 / (1.0 + np.exp(log_one - log_two))),
    )


def _label_costs(counts: Any) -> Any:
    """Cost of the labels of each interval; an interval without any costs nothing."""
    empty = counts.sum(axis=1) == 0
    costs = np.zeros(len(counts))
    if not empty.all():
        costs[~empty] = part_costs(counts[~empty])
    return costs
