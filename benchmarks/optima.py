"""Random problems whose optimum is known: by exact dynamic programming over all cuts, or over all subsets."""

from __future__ import annotations

import numpy as np
import pandas as pd


def interval_problems(n_problems: int, seed: int = 0) -> tuple[float, float]:
    """Share of problems where ``search="auto"`` is optimal, and the most it costs too much.

    Numbers of rows up to 2,000, 2 to 6 classes, signals from none to strong, values with and without ties.
    """
    from damier import MODLDiscretizer

    random = np.random.default_rng(seed)
    missed, worst, solved = 0, 0.0, 0
    while solved < n_problems:
        n_rows, n_classes = int(np.exp(random.uniform(np.log(10), np.log(2000)))), int(random.integers(2, 7))
        x = random.normal(size=n_rows)
        if random.random() < 0.5:
            x = np.round(x, int(random.integers(0, 3)))
        strength = random.choice([0.0, 0.5, 1.0, 3.0])
        score = strength * np.cos(random.uniform(0.5, 4) * x[:, None] - np.arange(n_classes))
        y = np.argmax(score + random.gumbel(size=score.shape), axis=1)
        if len(np.unique(y)) < 2:
            continue
        model = MODLDiscretizer(search="auto").fit(pd.DataFrame({"x": x}), y)
        excess = model.partitions_["x"].cost - best_intervals(x, y)
        missed += excess > 1e-6
        worst = max(worst, excess)
        solved += 1
    return 1 - missed / solved, worst


def best_intervals(x: np.ndarray, y: np.ndarray) -> float:
    """Cost of the cheapest intervals, by dynamic programming over every cut and number of intervals."""
    from scipy.special import gammaln

    classes, codes = np.unique(y, return_inverse=True)
    values, position = np.unique(x, return_inverse=True)
    n_rows, n_classes = len(x), len(classes)
    table = np.zeros((len(values) + 1, n_classes))
    np.add.at(table, (position + 1, codes), 1)
    upto = np.cumsum(table, axis=0)
    # part[s, t]: cost of the interval that holds the values s .. t-1
    counts = upto[None, :, :] - upto[:, None, :]
    counts = np.maximum(counts, 0)
    sizes = counts.sum(axis=2)
    part = gammaln(sizes + n_classes) - gammaln(n_classes) - gammaln(counts + 1).sum(axis=2)
    part[np.tril_indices(len(values) + 1)] = np.inf
    floor = np.zeros(len(values) + 1)  # the parts alone, in whatever number
    for end in range(1, len(values) + 1):
        floor[end] = (floor[:end] + part[:end, end]).min()
    best, found = np.inf, part[0]
    for n_parts in range(1, len(values) + 1):
        prior = np.log(n_rows) + gammaln(n_rows + n_parts) - gammaln(n_rows + 1) - gammaln(n_parts)
        # The prior grows with the number of parts: with the floor above the best, no more parts can win.
        if prior + floor[-1] >= best:
            break
        best = min(best, prior + found[-1])
        found = (found[:, None] + part).min(axis=0)
    return float(best)


def grouping_problems(n_problems: int, seed: int = 0) -> tuple[float, float]:
    """Share of problems where the grouping equals brute force, and the most it costs too much.

    Up to 9 values, 2 to 5 classes.
    """
    from damier import MODLGrouper
    from damier.criteria import grouping_cost

    random = np.random.default_rng(seed)
    missed, worst, solved = 0, 0.0, 0
    while solved < n_problems:
        n_values, n_classes = int(random.integers(2, 10)), int(random.integers(2, 6))
        kinds = random.dirichlet(np.ones(n_classes), int(random.integers(1, 5)))
        sizes = random.integers(1, 60, n_values)
        counts = np.array([random.multinomial(n, kinds[random.integers(len(kinds))]) for n in sizes])
        counts = counts[:, counts.sum(axis=0) > 0]
        if counts.shape[1] < 2:
            continue
        cells = [(f"v{i}", j) for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
        frame = pd.DataFrame({"v": [value for value, _ in cells]})
        model = MODLGrouper().fit(frame, np.array([j for _, j in cells]))
        excess = model.partitions_["v"].cost - best_groups(counts, grouping_cost)
        missed += excess > 1e-6
        worst = max(worst, excess)
        solved += 1
    return 1 - missed / solved, worst


def best_groups(counts: np.ndarray, cost: object) -> float:
    """Cost of the cheapest groups, by dynamic programming over the subsets of the values."""
    from damier.criteria import part_costs

    n_values = len(counts)
    members = (np.arange(2**n_values)[:, None] >> np.arange(n_values)) & 1
    group = part_costs((members @ counts)[1:])
    group = np.concatenate([[0.0], group])
    # least[s][i]: cheapest way to put subset s into i groups, the prior left out
    least = np.full((2**n_values, n_values + 1), np.inf)
    least[0, 0] = 0.0
    for subset in range(1, 2**n_values):
        lowest = subset & -subset
        rest = subset ^ lowest
        inside = rest
        while True:  # every group that holds the lowest member
            part = inside | lowest
            least[subset, 1:] = np.minimum(least[subset, 1:], least[subset ^ part, :-1] + group[part])
            if inside == 0:
                break
            inside = (inside - 1) & rest
    # A partition's prior is its cost less the cost of its parts, whatever the parts are.
    some = [np.vstack([counts[: i - 1], counts[i - 1 :].sum(axis=0)[None]]) for i in range(1, n_values + 1)]
    prior = [cost(table, n_values) - part_costs(table).sum() for table in some]  # type: ignore[operator]
    return float(min(least[-1, i] + prior[i - 1] for i in range(1, n_values + 1)))
