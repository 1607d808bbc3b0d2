"""The posterior of a bound, for one variable whose rows need not all be labeled."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_consistent_length

from damier.criteria import log_binomial, part_costs
from damier.estimators._base import require_two_classes
from damier.intake import NumericColumn, as_numeric, read_column, read_target
from damier.models.bound_posterior import BoundPosterior
from damier.models.bounds import midpoints


def bound_posterior(x: Any, y: Any) -> BoundPosterior:
    """Tell where the bound between two intervals of a variable may lie, and how sure that is.

    Of all models of two intervals, each place of the bound is given the sum of the posterior probabilities of
    the class totals it allows. The sum is exact: with every class distribution of an interval equally
    probable, drawing some of its rows to be labeled makes every class distribution of the labels equally
    probable, whatever the number of unlabeled rows. So the probability of a place depends on the labels on
    its two sides alone, and is flat where there is no label.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        Numbers or dates; missing values are left out.
    y : array-like of shape (n_samples,)
        Classes; -1 (integers) or a missing value (anything else) is a row without a label.

    Returns
    -------
    BoundPosterior
        ``bounds``, ``probability``, ``two_intervals``, ``interval()`` and ``plot()``.

    References
    ----------
    A. Bondu, M. Boullé, V. Lemaire, A non-parametric semi-supervised discretization method, section 5.1.3.

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
        raise ValueError("x holds fewer than two distinct values: there is no place for a bound")
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
