"""Cost of intervals when only some instances carry a label."""

from typing import Any

import numpy as np

from damier.criteria._checks import IntArray, class_counts_table, whole_counts
from damier.criteria.combinatorics import log_binomial
from damier.criteria.special import gammaln

# The best class totals are quotients of products of two counts, which must fit 64 bits.
MOST_ROWS = 1 << 31


def _labeled_and_totals(labeled: Any, totals: Any) -> tuple[IntArray, IntArray]:
    table = whole_counts(labeled, "labeled", ndim=2)
    sizes = whole_counts(totals, "totals", ndim=1)
    if sizes.size != table.shape[0]:
        raise ValueError(f"labeled has {table.shape[0]} intervals and totals {sizes.size}")
    if (table.sum(axis=1) > sizes).any():
        raise ValueError("an interval has more labeled instances than instances: totals counts both kinds")
    class_counts_table(sizes[:, None], "totals")
    check_total(int(sizes.sum()))
    return table, sizes


def check_total(total: int) -> None:
    """Refuse more rows than products of two counts of them can be computed for.

    Raises
    ------
    ValueError
        If there are more than `MOST_ROWS`.
    """
    if total > MOST_ROWS:
        raise ValueError(
            f"partly labeled intervals take up to 2**31 rows, not {total:,}: scale sample_weight down"
        )


def best_class_totals(labeled: Any, totals: Any) -> IntArray:
    """Return the class totals N_ij, labeled and not, that make `semi_supervised_cost` least.

    Each starts from `ceil((N_i+1) N^l_ij / N^l_i - 1)`; missing units then go one at a time to the class
    whose term rises least. The objective is separable and convex, so this is exact.

    Examples
    --------
    >>> from damier.criteria import best_class_totals
    >>> best_class_totals([[3, 1], [0, 0]], [12, 5]).tolist()
    [[9, 3], [5, 0]]
    """
    table, sizes = _labeled_and_totals(labeled, totals)
    known = table.sum(axis=1)
    # whole-number ceilings; the quotient of an interval without a label is never used
    best: IntArray = -(-(sizes + 1)[:, None] * table // np.maximum(known, 1)[:, None]) - 1
    best = np.maximum(best, table).astype(np.int64)
    without = known == 0
    best[without] = 0
    best[without, :1] = sizes[without, None]
    missing = sizes - best.sum(axis=1)
    while (short := np.flatnonzero(missing > 0)).size:
        rise = np.log((best[short] + 1 - table[short]) / (best[short] + 1))
        best[short, np.argmin(rise, axis=1)] += 1
        missing[short] -= 1
    return best


def semi_supervised_cost(labeled: Any, totals: Any) -> float:
    """Return the cost of a partition into intervals when only some instances are labeled.

    `log N + log C(N+I-1, I-1) + sum_i log C(N_i+J-1, J-1) + sum_i log(N_i! / prod_j N_ij!)
    - sum_i log(N^u_i! / prod_j N^u_ij!)`, at the best class totals N_ij.

    Parameters
    ----------
    labeled : array-like of shape (n_intervals, n_classes)
        Whole counts of labeled instances.
    totals : array-like of shape (n_intervals,)
        Instances of each interval, labeled or not.

    Examples
    --------
    Six labels suffice for two intervals of five, not for two of fifty:

    >>> from damier.criteria import semi_supervised_cost
    >>> def gain(half):
    ...     two = semi_supervised_cost([[3, 0], [0, 3]], [half, half])
    ...     return semi_supervised_cost([[3, 3]], [2 * half]) - two
    >>> gain(5) > 0, gain(50) > 0
    (True, False)
    """
    table, sizes = _labeled_and_totals(labeled, totals)
    n_classes = table.shape[1]
    n_instances, n_parts = int(sizes.sum()), sizes.size
    best = best_class_totals(table, sizes)
    cost = float(np.log(n_instances) + log_binomial(n_instances + n_parts - 1, n_parts - 1))
    cost += float(log_binomial(sizes + n_classes - 1, n_classes - 1).sum())
    unlabeled = sizes - table.sum(axis=1)
    cost += float((gammaln(sizes + 1.0) - gammaln(unlabeled + 1.0)).sum())
    return cost - float((gammaln(best + 1.0) - gammaln(best - table + 1.0)).sum())
