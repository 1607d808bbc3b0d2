"""Log factorials, log binomials and the log number of partitions of a set."""

import math
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from damier.criteria._checks import FloatArray, whole_number
from damier.criteria.special import betaln, gammaln

_lock = threading.Lock()
_factorials: FloatArray = np.zeros(1)
_bell_tables: "OrderedDict[int, FloatArray]" = OrderedDict()
_MAX_BELL_TABLES = 256

# d_j = sum_{i<=j} (-1)^i / i!, the share of derangements among permutations; from 19 on it is 1/e in float64
_DERANGEMENT_SHARES = np.cumsum([(-1.0) ** i / math.factorial(i) for i in range(19)])


def log_factorials(n: int) -> FloatArray:
    """Return the read-only table of log i! for i = 0 .. n.

    The table is shared by all callers and grown when needed.

    Examples
    --------
    >>> from damier.criteria import log_factorials
    >>> log_factorials(4).round(3).tolist()
    [0.0, 0.0, 0.693, 1.792, 3.178]
    """
    global _factorials
    n = whole_number(n, "n", at_least=0)
    table = _factorials
    if n >= table.size:
        with _lock:
            table = _factorials
            if n >= table.size:
                # a little ahead, for callers that ask for N + 1, N + 2, ... in turn
                size = n + 1 + max(1024, n // 16)
                grown = np.empty(size)
                grown[: table.size] = table
                # in blocks: the arguments of ten million log-gammas need not exist at once
                for start in range(table.size, size, 1 << 16):
                    stop = min(start + (1 << 16), size)
                    gammaln(np.arange(start + 1, stop + 1, dtype=np.float64), out=grown[start:stop])
                grown[:2] = 0.0
                grown.flags.writeable = False
                _factorials = table = grown
    return table[: n + 1]


def log_binomial(n: Any, k: Any) -> Any:
    """Return log C(n, k), elementwise; minus infinity where k > n.

    Examples
    --------
    >>> from damier.criteria import log_binomial
    >>> round(log_binomial(5, 2), 6)  # log 10
    2.302585
    """
    n = np.asarray(n, dtype=np.float64)
    k = np.asarray(k, dtype=np.float64)
    if (n < 0).any() or (k < 0).any():
        raise ValueError("log_binomial needs n >= 0 and k >= 0")
    inside = k <= n
    k = np.where(inside, k, 0.0)
    # zero for k = 0 and k = n by name: the general form leaves rounding there
    result = np.where((k == 0) | (k == n), 0.0, -np.log1p(n) - betaln(n - k + 1, k + 1))
    result = np.where(inside, result, -np.inf)
    return float(result) if result.ndim == 0 else result


def log_bell_table(n_values: int, max_groups: int) -> FloatArray:
    r"""Return log B(V, I) for I = 0 .. max_groups.

    B(V, I) is the number of partitions of V values into at most I groups. Entry 0 is minus
    infinity (no partition has no group); entries above V repeat that of V.

    Notes
    -----
    The inclusion-exclusion sums of the Stirling numbers alternate in sign, but their sum over the number of
    groups does not: with :math:`d_j = \sum_{i \le j} (-1)^i / i! \ge 0`,

    .. math:: B(V, I) = \sum_{k=1}^{I} \frac{k^V}{k!}\, d_{I-k},

    every term of which is positive, so the logarithm is exact to rounding for any V. As :math:`d_j` is 1/e in
    double precision from j = 19 on, a table costs 20 additions an entry.

    Examples
    --------
    >>> import numpy as np
    >>> from damier.criteria import log_bell_table
    >>> np.exp(log_bell_table(4, 4)).round().tolist()
    [0.0, 1.0, 8.0, 14.0, 15.0]
    """
    n_values = whole_number(n_values, "n_values", at_least=1)
    max_groups = whole_number(max_groups, "max_groups", at_least=0)
    with _lock:
        table = _bell_tables.get(n_values)
        if table is not None:
            _bell_tables.move_to_end(n_values)
    if table is None or table.size <= min(max_groups, n_values):
        table = _bell_of(n_values, min(n_values, max(2 * max_groups, 64)))
        with _lock:
            known = _bell_tables.get(n_values)
            if known is None or known.size < table.size:
                _bell_tables[n_values] = table
            while len(_bell_tables) > _MAX_BELL_TABLES:
                _bell_tables.popitem(last=False)
    if max_groups < table.size:
        return table[: max_groups + 1]
    padded = np.full(max_groups + 1, table[-1])
    padded[: table.size] = table
    padded.flags.writeable = False
    return padded


def _bell_of(n_values: int, max_groups: int) -> FloatArray:
    """Compute the table of log B(n_values, .) up to `max_groups` <= `n_values`."""
    k = np.arange(1, max_groups + 1, dtype=np.float64)
    terms = n_values * np.log(k) - gammaln(k + 1)
    log_bells = np.full(max_groups, -np.inf)
    for j, share in enumerate(_DERANGEMENT_SHARES):
        if share > 0 and j < max_groups:  # d_1 = 0
            log_bells[j:] = np.logaddexp(log_bells[j:], terms[: max_groups - j] + math.log(share))
    far = _DERANGEMENT_SHARES.size
    if max_groups > far:
        log_bells[far:] = np.logaddexp(log_bells[far:], np.logaddexp.accumulate(terms[:-far]) - 1.0)
    table = np.concatenate([[-np.inf], log_bells])
    table[1] = 0.0
    table.flags.writeable = False
    return table


def log_bell(n_values: int, n_groups: int) -> float:
    """Return log B(V, I), B the number of partitions of V values into at most I groups.

    Examples
    --------
    >>> from damier.criteria import log_bell
    >>> round(log_bell(10, 2), 6)  # log 2**9
    6.238325
    """
    n_values = whole_number(n_values, "n_values", at_least=1)
    n_groups = whole_number(n_groups, "n_groups", at_least=1)
    return float(log_bell_table(n_values, min(n_groups, n_values))[-1])
