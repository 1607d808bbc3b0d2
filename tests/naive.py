"""Slow, literal versions of what Damier computes: every kernel and criterion is compared with these."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.special import gammaln

# --- criteria -------------------------------------------------------------------------------------


def log_int(n):
    """Return the logarithm of a whole number of any size, or of a fraction of such."""
    if isinstance(n, Fraction):
        return log_int(n.numerator) - log_int(n.denominator)
    shift = max(n.bit_length() - 1000, 0)
    return math.log(n >> shift) + shift * math.log(2)


def stirling2_row(n_values):
    """Return S(V, 0), ..., S(V, V) by the recurrence."""
    row = [1]
    for n in range(1, n_values + 1):
        row = [0] + [row[k - 1] + (k * row[k] if k < n else 0) for k in range(1, n + 1)]
    return row


def log_bell(n_values, n_groups):
    return log_int(sum(stirling2_row(n_values)[1 : n_groups + 1]))


def multinomial(counts):
    result = math.factorial(sum(counts))
    for n in counts:
        result //= math.factorial(n)
    return result


def part_cost(counts):
    n, n_classes = sum(counts), len(counts)
    return log_int(math.comb(n + n_classes - 1, n_classes - 1)) + log_int(multinomial(counts))


def discretization_cost(counts):
    n, n_parts = sum(map(sum, counts)), len(counts)
    return math.log(n) + log_int(math.comb(n + n_parts - 1, n_parts - 1)) + sum(map(part_cost, counts))


def grouping_cost(counts, n_values):
    return math.log(n_values) + log_bell(n_values, len(counts)) + sum(map(part_cost, counts))


def grid_cost(cells, n_variables, numeric_parts, categorical_parts):
    n = sum(map(sum, cells))
    n_selected = len(numeric_parts) + len(categorical_parts)
    cost = math.log(n_variables + 1)
    if n_selected:
        cost += log_int(math.comb(n_variables + n_selected - 1, n_selected))
    for parts in numeric_parts:
        cost += math.log(n) + log_int(math.comb(n + parts - 1, parts - 1))
    for values, groups in categorical_parts:
        cost += math.log(values) + log_bell(values, groups)
    return cost + sum(map(part_cost, cells))


def regression_cost(counts, n_values=None):
    """`counts` is parts x intervals of the target; the null model is [[N]]."""
    n = sum(map(sum, counts))
    cost = discretization_cost(counts) if n_values is None else grouping_cost(counts, n_values)
    columns = [sum(column) for column in zip(*counts, strict=True)]
    return cost + math.log(n) + sum(log_int(math.factorial(column)) for column in columns)


def regression_grid_cost(cells, n_variables, numeric_parts, categorical_parts):
    columns = [sum(column) for column in zip(*cells, strict=True)]
    cost = grid_cost(cells, n_variables, numeric_parts, categorical_parts)
    return cost + math.log(sum(columns)) + sum(log_int(math.factorial(column)) for column in columns)


def class_grouping_cost(counts, groups, class_counts, n_values=None):
    """`counts` is parts x classes, `groups` a list of lists of class indices."""
    grouped = [[sum(row[w] for w in group) for group in groups] for row in counts]
    cost = discretization_cost(grouped) if n_values is None else grouping_cost(grouped, n_values)
    cost += math.log(len(class_counts)) + log_bell(len(class_counts), len(groups))
    for group in groups:
        n = sum(class_counts[w] for w in group)
        cost += log_int(math.comb(n + len(group) - 1, len(group) - 1)) + log_int(math.factorial(n))
    return cost - sum(log_int(math.factorial(n)) for n in class_counts)


def coclustering_cost(table, row_labels, column_labels):
    """`table` is a list of rows of counts."""
    n = sum(map(sum, table))
    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    cost = log_int(math.factorial(n))
    numbers = []
    for labels, sizes in ((row_labels, rows), (column_labels, columns)):
        seen = [v for v, size in enumerate(sizes) if size]
        clusters = sorted({labels[v] for v in seen})
        numbers.append(clusters)
        cost += math.log(len(seen)) + log_bell(len(seen), len(clusters))
        for cluster in clusters:
            members = [v for v in seen if labels[v] == cluster]
            size = sum(sizes[v] for v in members)
            cost += log_int(math.comb(size + len(members) - 1, len(members) - 1))
            cost += log_int(math.factorial(size))
        cost -= sum(log_int(math.factorial(sizes[v])) for v in seen)
    n_cells = len(numbers[0]) * len(numbers[1])
    cost += log_int(math.comb(n + n_cells - 1, n_cells - 1))
    for a, b in itertools.product(*numbers):
        cell = sum(
            count
            for i, row in enumerate(table)
            for j, count in enumerate(row)
            if row_labels[i] == a and column_labels[j] == b
        )
        cost -= log_int(math.factorial(cell))
    return cost


def unsupervised_grid_cost(instances, parts, values):
    """Cost of a grid over the rows of `instances`, each a tuple of parts.

    `parts` holds the number of parts of each variable, `values` the value of each row for each categorical
    variable and None for each numeric one.
    """
    n, n_cells = len(instances), math.prod(parts)
    cost = log_int(math.comb(n + n_cells - 1, n_cells - 1)) + log_int(math.factorial(n))
    for cell in set(instances):
        cost -= log_int(math.factorial(instances.count(cell)))
    for k, n_parts in enumerate(parts):
        column = [row[k] for row in instances]
        for part in range(n_parts):
            cost += log_int(math.factorial(column.count(part)))
        if values[k] is None:
            cost += math.log(n)
            continue
        n_values = len(set(values[k]))
        cost += math.log(n_values) + log_bell(n_values, n_parts)
        for part in range(n_parts):
            members = len({v for v, p in zip(values[k], column, strict=True) if p == part})
            cost += log_int(math.comb(column.count(part) + members - 1, members - 1))
        cost -= sum(log_int(math.factorial(values[k].count(v))) for v in set(values[k]))
    return cost


def compositions(total, n_parts):
    """Yield every way to write `total` as `n_parts` ordered non-negative numbers."""
    if n_parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, n_parts - 1):
            yield (first, *rest)


def semi_supervised_cost(labeled, totals):
    """The class totals are found by trying them all."""
    n, n_parts, n_classes = sum(totals), len(totals), len(labeled[0])
    cost = math.log(n) + log_int(math.comb(n + n_parts - 1, n_parts - 1))
    for known, total in zip(labeled, totals, strict=True):
        cost += log_int(math.comb(total + n_classes - 1, n_classes - 1))
        cost += min(
            log_int(
                Fraction(multinomial(all_), multinomial([a - k for a, k in zip(all_, known, strict=True)]))
            )
            for all_ in compositions(total, n_classes)
            if all(a >= k for a, k in zip(all_, known, strict=True))
        )
    return cost


# --- search, one ordered axis ---------------------------------------------------------------------


def ordered_part_costs(counts):
    """Cost of each part: log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)], one row per part."""
    n_classes = counts.shape[1]
    return gammaln(counts.sum(1) + n_classes) - gammaln(n_classes) - gammaln(counts + 1).sum(1)


def ordered_interval_penalty(n, most):
    """log N + log C(N + I - 1, I - 1) for I = 1 .. most."""
    parts = np.arange(1, most + 1)
    return np.log(n) + gammaln(n + parts) - gammaln(parts) - gammaln(n + 1)


def ordered_optimum(counts, penalty):
    """Least cost over all partitions of elements in order, number of parts by number of parts."""
    n_elements, n_classes = counts.shape
    prefix = np.vstack([np.zeros((1, n_classes), int), np.cumsum(counts, axis=0)])
    cost = np.full((n_elements + 1, n_elements + 1), np.inf)
    for start in range(n_elements):
        cost[start, start + 1 :] = ordered_part_costs(prefix[start + 1 :] - prefix[start])
    reach = np.full(n_elements + 1, np.inf)
    reach[0] = 0.0
    best = np.inf
    for parts in range(1, min(n_elements, len(penalty)) + 1):
        reach = np.min(reach[:, None] + cost, axis=0)
        best = min(best, reach[n_elements] + penalty[parts - 1])
    return best


def ordered_counts(values, codes, n_classes, weights=None):
    """Class counts of each distinct value in order, missing first."""
    missing = np.isnan(values)
    distinct = np.unique(values[~missing])
    table = np.zeros((len(distinct) + 1, n_classes), int)
    where = np.where(missing, 0, np.searchsorted(distinct, values) + 1)
    np.add.at(table, (where, codes), 1 if weights is None else weights)
    return table[table.sum(axis=1) > 0]


# --- balls on a graph -----------------------------------------------------------------------------


def gabriel_adjacency(points, distance=math.dist):
    """Return the adjacency of the Gabriel graph as lists, point by point."""
    n = len(points)
    d2 = [[distance(a, b) ** 2 for b in points] for a in points]
    return [
        [
            int(
                a != b
                and not any(d2[a][o] + d2[b][o] < d2[a][b] * (1 - 1e-12) for o in range(n) if o not in (a, b))
            )
            for b in range(n)
        ]
        for a in range(n)
    ]


def ball_on_graph(adjacency, centre, radius, inside):
    ball = {centre}
    for _ in range(radius):
        ball |= {w for v in ball for w in inside if adjacency[v][w]}
    return frozenset(ball)


def label_weight(codes, n_classes):
    """Return two to the power of the bits that write these labels; -1 is no label."""
    counts = [sum(code == j for code in codes) for j in range(n_classes)]
    return math.comb(sum(counts) + n_classes - 1, n_classes - 1) * multinomial(counts)


def ball_partition(adjacency, codes, n_classes, local, prior):
    """Return the set of groups and the bits of the whole description, with exact integers throughout."""
    everything = frozenset(range(len(codes)))

    def labels(nodes):
        return label_weight([codes[v] for v in nodes], n_classes)

    def divide(nodes):
        reach = nodes if local else everything
        balls = {}
        for centre in sorted(nodes):
            radius, ball, smaller = 0, frozenset([centre]), None
            while ball < nodes and ball != smaller:
                balls.setdefault(ball, (centre, radius))
                radius, smaller = radius + 1, ball
                ball = ball_on_graph(adjacency, centre, radius, reach)
        even = 2 if prior == "even" else 1
        stay = 2 if prior == "even" else len(nodes)
        best = None
        for ball, first in balls.items():
            naming = even * len(nodes) * sum(len(other) == len(ball) for other in balls)
            key = (naming * labels(ball) * labels(nodes - ball), -len(ball), first)
            if best is None or key < best[0]:
                best = key, ball, naming
        if best is not None and best[0][0] < stay * labels(nodes):
            one, other = divide(best[1]), divide(nodes - best[1])
            return one[0] | other[0], math.log2(best[2]) + one[1] + other[1]
        return {nodes}, math.log2(stay) + log_int(labels(nodes)) / math.log(2)

    return divide(everything)


# --- search, groups without order -----------------------------------------------------------------


@functools.cache
def set_partitions(n):
    """Return every partition of n elements, each a list of sets of elements given as bits."""
    if n == 0:
        return [[]]
    bit = 1 << (n - 1)
    found = []
    for partition in set_partitions(n - 1):
        found.append([*partition, bit])
        found += [
            [group | bit if k == chosen else group for k, group in enumerate(partition)]
            for chosen in range(len(partition))
        ]
    return found


def grouping_optimum(counts, penalty):
    """Return the least cost over all groupings of the rows of `counts`; `penalty[I - 1]` prices I groups."""
    n, n_classes = len(counts), len(counts[0])
    costs = [
        part_cost([sum(counts[e][j] for e in range(n) if s >> e & 1) for j in range(n_classes)])
        for s in range(1 << n)
    ]
    return min(penalty[len(groups) - 1] + sum(costs[s] for s in groups) for groups in set_partitions(n))


def group_counts(counts, labels):
    """Return the class counts of each group, in the order of the labels."""
    return [
        [
            sum(row[j] for row, label in zip(counts, labels, strict=True) if label == group)
            for j in range(len(counts[0]))
        ]
        for group in sorted({label for label in labels if label >= 0})
    ]


# --- naive Bayes ----------------------------------------------------------------------------------


def best_joint_partition(table, ordered):
    """The least cost over all partitions of the elements (rows) and all groups of the classes (columns)."""
    class_counts = [sum(row[w] for row in table) for w in range(len(table[0]))]
    best = math.inf
    for partition in set_partitions(len(table)):
        parts = [[v for v in range(len(table)) if bits >> v & 1] for bits in partition]
        if ordered and any(part[-1] - part[0] != len(part) - 1 for part in parts):
            continue
        counts = [[sum(table[v][w] for v in part) for w in range(len(class_counts))] for part in parts]
        for grouping in set_partitions(len(class_counts)):
            groups = [[w for w in range(len(class_counts)) if bits >> w & 1] for bits in grouping]
            n_values = None if ordered else len(table)
            best = min(best, class_grouping_cost(counts, groups, class_counts, n_values))
    return best


def weighted_naive_bayes_cost(parts, tables, own_tables, target, log_prior, weights, row_weight):
    """Prior on the sum of the weights plus the negative log-likelihood, row by row."""
    n_variables, selected = len(tables), sum(weights)
    cost = math.log(n_variables + 1)
    if selected > 0:
        cost += math.lgamma(n_variables + selected) - math.lgamma(selected + 1) - math.lgamma(n_variables)
    for n, y in enumerate(target):
        scores = []
        for w in range(len(log_prior)):
            evidence = [(own_tables if w == y else tables)[k][parts[k][n]][w] for k in range(n_variables)]
            scores.append(log_prior[w] + sum(a * e for a, e in zip(weights, evidence, strict=True)))
        cost -= row_weight[n] * (scores[y] - math.log(sum(math.exp(s) for s in scores)))
    return cost


def pair_evidence(cells, n_second):
    """Evidence of the cells of two variables beyond both: of all rows, and by cell and class without a row.

    The second list has, for a row of each cell and class, the evidence of the cell for all classes once the
    row is taken out of the cell; None where there is no such row.
    """
    n_classes = len(cells[0])
    total = [sum(cell[j] for cell in cells) for j in range(n_classes)]
    frequency = [n / sum(total) for n in total]

    def shares(rows):
        counts = [sum(row[j] for row in rows) for j in range(n_classes)]
        return [
            (c + n_classes * p) / (sum(counts) + n_classes) for c, p in zip(counts, frequency, strict=True)
        ]

    def expected(cell):
        first = shares([c for i, c in enumerate(cells) if i // n_second == cell // n_second])
        second = shares([c for i, c in enumerate(cells) if i % n_second == cell % n_second])
        product = [a * b / p for a, b, p in zip(first, second, frequency, strict=True)]
        return [x / sum(product) for x in product]

    def evidence(counts, q):
        return [
            math.log((n + n_classes * share) / (sum(counts) + n_classes) / share)
            for n, share in zip(counts, q, strict=True)
        ]

    table, without = [], []
    for i, cell in enumerate(cells):
        q = expected(i)
        table.append(evidence(cell, q))
        without.append(
            [
                evidence([n - (w == j) for w, n in enumerate(cell)], q) if cell[j] else None
                for j in range(n_classes)
            ]
        )
    return table, without


# --- supervised grids -----------------------------------------------------------------------------


def grid_cells(rows, labels, n_classes):
    """Class counts of the non-empty cells of rows given as tuples of parts."""
    cells = {}
    for row, label in zip(rows, labels, strict=True):
        cells.setdefault(tuple(row), [0] * n_classes)[label] += 1
    return list(cells.values())


def grid_cost_of_parts(columns, labels, n_classes, value_parts, n_values, categorical):
    """Cost of the grid that gives axis k the part ``value_parts[k][code]``."""
    rows = [
        [parts[c] for parts, c in zip(value_parts, row, strict=True)] for row in zip(*columns, strict=True)
    ]
    sizes = [len(set(parts)) for parts in value_parts]
    numeric = [n for n, c in zip(sizes, categorical, strict=True) if n > 1 and not c]
    grouped = [(v, n) for v, n, c in zip(n_values, sizes, categorical, strict=True) if n > 1 and c]
    return grid_cost(grid_cells(rows, labels, n_classes), len(columns), numeric, grouped)


def axis_partitions(n_values, is_categorical):
    """Yield every partition of an axis, as the part of each value."""
    if is_categorical:
        for groups in set_partitions(n_values):
            yield tuple(next(i for i, g in enumerate(groups) if g >> v & 1) for v in range(n_values))
        return
    for cuts in itertools.product((0, 1), repeat=n_values - 1):
        yield tuple(np.cumsum([0, *cuts]).tolist())


def grid_greedy_merge(columns, labels, n_classes, value_parts, n_values, categorical):
    """Merge the cheapest pair of parts again and again, down to one cell; return the least cost met.

    Of merges that cost the same (within 1e-9) the first is made: by axis, then by the numbers of the parts.
    """
    parts = [list(p) for p in value_parts]
    price = functools.partial(
        grid_cost_of_parts, columns, labels, n_classes, n_values=n_values, categorical=categorical
    )
    best = price(value_parts=parts)
    while any(len(set(p)) > 1 for p in parts):
        options = [(math.inf, parts)]
        for k, p in enumerate(parts):
            names = sorted(set(p))
            pairs = itertools.combinations(names, 2) if categorical[k] else itertools.pairwise(names)
            for a, b in pairs:
                merged = [*parts[:k], [a if part == b else part for part in p], *parts[k + 1 :]]
                cost = price(value_parts=merged)
                if cost < options[-1][0] - 1e-9:
                    options.append((cost, merged))
        cost, parts = options[-1]
        best = min(best, cost)
    return best


# --- search, rectangles on projections ----------------------------------------------------------------


def linf_grow(blocked, i, j):
    """Expand each side by one row or column of bins in turn, until a whole turn changes nothing."""
    b = len(blocked)
    x0, x1, y0, y1 = i, i, j, j
    while True:
        before = (x0, x1, y0, y1)
        for side in ("up", "right", "down", "left"):
            if side == "up" and y1 + 1 < b and not any(blocked[u][y1 + 1] for u in range(x0, x1 + 1)):
                y1 += 1
            if side == "right" and x1 + 1 < b and not any(blocked[x1 + 1][v] for v in range(y0, y1 + 1)):
                x1 += 1
            if side == "down" and y0 > 0 and not any(blocked[u][y0 - 1] for u in range(x0, x1 + 1)):
                y0 -= 1
            if side == "left" and x0 > 0 and not any(blocked[x0 - 1][v] for v in range(y0, y1 + 1)):
                x0 -= 1
        if before == (x0, x1, y0, y1):
            return before


def linf_cover(own, other, tolerance, min_cover):
    """Algorithm 6: the best rectangle over all bins not yet covered, again and again."""
    b = len(own)
    blocked = [[other[u][v] > tolerance * own[u][v] for v in range(b)] for u in range(b)]
    covered = [[False] * b for _ in range(b)]
    chosen, total = [], 0
    while True:
        best = None
        for i in range(b):
            for j in range(b):
                if own[i][j] == 0 or blocked[i][j]:
                    continue
                x0, x1, y0, y1 = linf_grow(blocked, i, j)
                bins = [(u, v) for u in range(x0, x1 + 1) for v in range(y0, y1 + 1)]
                count = sum(own[u][v] for u, v in bins if not covered[u][v])
                border = sum(
                    other[u][v]
                    for u in range(max(0, x0 - 1), min(b, x1 + 2))
                    for v in range(max(0, y0 - 1), min(b, y1 + 2))
                )
                if count > min_cover and (best is None or count - border > best[0]):
                    best = (count - border, count, (x0, x1, y0, y1), bins)
        if best is None:
            return chosen, total
        chosen.append(best[2])
        total += best[1]
        for u, v in best[3]:
            covered[u][v] = True


def linf_decide(model, rows):
    """One row, one cover, one rectangle at a time; rows hold scaled numbers (fixed point) or codes."""
    position = {column.name: j for j, column in enumerate(model.columns)}

    def along(cover, axis, row):
        total = 0
        for name, weight in axis:
            held = int(row[position[name]])
            total += weight * (cover.shares[name][held] if name in cover.shares else held)
        return total

    decisions = []
    for row in rows:
        for member in model.members:
            nearest, least = None, np.inf
            for c, cover in enumerate(member):
                (x_low, x_high, y_low, y_high), b = cover.limits, cover.n_bins
                values = along(cover, cover.x, row), along(cover, cover.y, row)
                bins, distances = [], []
                for value, low, high in zip(values, (x_low, y_low), (x_high, y_high), strict=True):
                    scale = np.float32(b / (high - low + 1.0))
                    place = np.float32(value - low) * scale
                    closed_out = not model.open_edges and not low <= value <= high
                    bins.append(-1 if closed_out else int(min(max(place, 0), b - 1)))
                    distances.append(
                        min(max(place, np.float32(0)), np.float32(b)) if model.open_edges else place
                    )
                for r, (x0, x1, y0, y1) in enumerate(cover.rectangles.tolist()):
                    if x0 <= bins[0] <= x1 and y0 <= bins[1] <= y1:
                        nearest, least = (c, r, True), -np.inf
                        break
                    x, y = distances
                    one = np.float32(1)
                    gap = max(x0 - x, x - (x1 + one), y0 - y, y - (y1 + one)) / np.float32(b)
                    if gap < least:
                        nearest, least = (c, r, False), gap
                if least == -np.inf:
                    break
            decisions.append(nearest)
    return decisions


def interval_posterior(counts, own=True, cost=None):
    """Mean of the class shares over all partitions, and the probabilities of cuts, term by term.

    ``cost`` is that of a partition, given the counts of its parts; by default that of intervals.

    Also the mean share of a row's own class with that row taken out of the table: a second sum over all
    partitions, of the table without the row, under the price that the partitions have with it.
    """
    n_elements, n_classes = len(counts), len(counts[0])
    partitions = [
        (0, *cuts, n_elements)
        for size in range(n_elements)
        for cuts in itertools.combinations(range(1, n_elements), size)
    ]

    def parts(bounds, table):
        return [
            [sum(column) for column in zip(*table[a:b], strict=True)] for a, b in itertools.pairwise(bounds)
        ]

    prices = [
        (cost or discretization_cost)(parts(bounds, counts)) - sum(map(part_cost, parts(bounds, counts)))
        for bounds in partitions
    ]

    def weighted(table):
        found = [parts(bounds, table) for bounds in partitions]
        costs = [price + sum(map(part_cost, p)) for price, p in zip(prices, found, strict=True)]
        weights = [math.exp(min(costs) - cost) for cost in costs]
        total = sum(weights)
        return [(w / total, bounds, p) for w, bounds, p in zip(weights, partitions, found, strict=True)]

    def share(among, e, j):
        mean = 0.0
        for weight, bounds, found in among:
            part = found[sum(b <= e for b in bounds[1:])]
            mean += weight * (part[j] + 1) / (sum(part) + n_classes)
        return mean

    among = weighted(counts)
    shares = [[share(among, e, j) for j in range(n_classes)] for e in range(n_elements)]
    own_shares = [list(row) for row in shares]
    for e, row in enumerate(counts if own else ()):
        for j, n in enumerate(row):
            if n:
                without = [list(r) for r in counts]
                without[e][j] -= 1
                own_shares[e][j] = share(weighted(without), e, j)
    cuts = [sum(w for w, bounds, _ in among if b in bounds) for b in range(1, n_elements)]
    return shares, own_shares, cuts


def informing_cost(parts, n_values):
    """Cost of intervals of a number taken to inform: sets of as many cuts alike, one part out of reach."""
    cuts = math.log(math.comb(n_values - 1, len(parts) - 1)) if len(parts) > 1 else 30.0
    return cuts + sum(map(part_cost, parts))


def number_evidence(values, target, cuts, typical, own=True):
    """Evidence of each distinct number for elementary intervals of a target, averaged over all partitions.

    ``cuts`` are bounds of the target, several sets of them: the mean over the sets of the ratio of the mean
    share of an interval to its frequency. ``typical`` is a target in each elementary interval. Also without
    the row itself.
    """
    distinct = sorted(set(values))
    found = []
    for bounds in cuts:

        def interval(y, bounds=bounds):
            return sum(bound < y for bound in bounds)

        counts = [[0] * (len(bounds) + 1) for _ in distinct]
        for x, y in zip(values, target, strict=True):
            counts[distinct.index(x)][interval(y)] += 1
        rows = [sum(column) / len(values) for column in zip(*counts, strict=True)]
        shares, own_shares, _ = interval_posterior(
            counts, own, lambda parts: informing_cost(parts, len(distinct))
        )
        places = [interval(y) for y in typical]
        found.append(
            [[[row[j] / rows[j] for j in places] for row in table] for table in (shares, own_shares)]
        )
    return tuple(
        [
            [math.log(sum(ratios) / len(cuts)) for ratios in zip(*of_value, strict=True)]
            for of_value in zip(*(tables[which] for tables in found), strict=True)
        ]
        for which in (0, 1)
    )


def adjusted_loss(base, step, target, weight, steps, firsts, stiffness=1.0):
    """Minus the log-likelihood of the classes; with the prices of steps, where their variables are said."""
    loss = 0.0
    for scores, held, y, times in zip(base, step, target, weight, strict=True):
        adjusted = [score + sum(steps[s][j] for s in held) for j, score in enumerate(scores)]
        loss += times * (math.log(sum(map(math.exp, adjusted))) - adjusted[y])
    if firsts is None:
        return loss
    price = 0.1 / 2 * sum(x * x for row in steps for x in row)
    for first, end in itertools.pairwise(firsts):
        for s in range(first + 1, end):
            price += 2.0 / 2 * sum((a - b) ** 2 for a, b in zip(steps[s], steps[s - 1], strict=True))
        for s in range(first + 1, end - 1):
            around = zip(steps[s - 1], steps[s], steps[s + 1], strict=True)
            price += 10.0 / 2 * sum((a - 2 * b + c) ** 2 for a, b, c in around)
    return loss + stiffness * price


def averaged_over_folds(folds, find, score, log_prior, minimize):
    """Mean over folds of the weights, and of the steps of each stiffness, each times what holds for the fold.

    ``find(others)`` returns weights, and steps of each stiffness, found on some rows; ``score(n, weights)``
    and ``score(n, steps)`` what each class of row n is given by them. A fold is a list of row, class, times.
    """
    found = [find([row for other in folds if other is not fold for row in other]) for fold in folds]
    usual = [1.0] + [1 / len(found[0][1])] * len(found[0][1])

    def literal(factors):
        loss = sum(1.5 * (a - b) ** 2 for a, b in zip(factors, usual, strict=True))
        for (weights, steps), fold in zip(found, folds, strict=True):
            for n, y, times in fold:
                scores = list(log_prior)
                for factor, held in zip(factors, [weights, *steps], strict=True):
                    scores = [s + factor * x for s, x in zip(scores, score(n, held), strict=True)]
                loss += times * (math.log(sum(map(math.exp, scores))) - scores[y])
        return loss

    factors = minimize(literal, usual)
    weights = sum(factors[0] * weights for weights, _ in found) / len(folds)
    steps = sum(a * held for _, steps in found for a, held in zip(factors[1:], steps, strict=True))
    return weights, steps / len(folds)


def interval_posterior_deviations(counts):
    """Standard deviations of the class shares over all partitions: each part has a Dirichlet of its own."""
    n_elements, n_classes = len(counts), len(counts[0])
    found = []
    for cuts in itertools.chain.from_iterable(
        itertools.combinations(range(1, n_elements), size) for size in range(n_elements)
    ):
        bounds = (0, *cuts, n_elements)
        parts = [[sum(c) for c in zip(*counts[a:b], strict=True)] for a, b in itertools.pairwise(bounds)]
        found.append((discretization_cost(parts), bounds, parts))
    least = min(cost for cost, _, _ in found)
    total = sum(math.exp(least - cost) for cost, _, _ in found)
    deviations = []
    for e in range(n_elements):
        row = []
        for j in range(n_classes):
            first = second = 0.0
            for cost, bounds, parts in found:
                part = parts[sum(b <= e for b in bounds[1:])]
                a, rows = part[j] + 1, sum(part) + n_classes
                weight = math.exp(least - cost) / total
                first += weight * a / rows
                second += weight * ((a / rows) ** 2 + a * (rows - a) / (rows**2 * (rows + 1)))
            row.append(math.sqrt(max(second - first**2, 0.0)))
        deviations.append(row)
    return deviations
