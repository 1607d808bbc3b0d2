"""Kernels of the search over groups of elements that have no order.

Legend, as in the papers: J classes; an element e (values that share one class profile, or one value) holds
`cnt[i]` rows of class `cls[i]` for i in `ptr[e] .. ptr[e+1] - 1`; group g holds `table[g, j]` rows of class j
and `values[g]` elements; it costs f(N, m) - log n_1! - ... - log n_J!, with f the `Price`; `penalty[I - 1]`
is the price of I groups; `lf` is the table that `log_factorial` reads. Where a kernel speaks of classes, they
are whatever the rows are counted by: input parts when classes are grouped, cells of the other axes in a grid.
"""

import numpy as np

from damier.search.axis.costs import Price, part_cost
from damier.search.kernels import (
    BoolArray,
    FloatArray,
    IntArray,
    allocating_inner,
    inner,
    kernel,
    log_factorial,
)

# Improvements below this are rounding: with them a search could turn in circles.
_LEAST_GAIN = 1e-9
# Moves end when one more round of sweeps over the elements would begin beyond this many look-ups; a round has
# from two sweeps to so many, and room for as many new groups.
_MOVE_LOOKUPS = 1e8
_MOST_SWEEPS = 50
_SPARE_GROUPS = 2


@kernel
def best_of_all_groupings(
    cost: FloatArray, penalty: FloatArray, floor: float, n_elements: int
) -> tuple[IntArray, float]:
    """Find the best grouping of R elements over all there are, in about 3^R steps.

    The bits of S name the elements of a set, `cost[S]` is the cost of the group they make. The group that
    holds the lowest element of a set is tried in every way; the rest of the set is a smaller problem.
    `floor` bounds the sum of part costs from below whatever the grouping, and ends the search once the price
    of one more group cannot be earned back. Returns the groups and their cost.
    """
    n_sets = cost.shape[0]
    # The cheapest way to cut each set into one group less than now tried, and the group of its lowest
    # element.
    fewer = cost.copy()
    fewer[0] = np.inf
    cheapest = np.empty(n_sets, np.float64)
    first = np.zeros((n_elements + 1, n_sets), np.int64)
    labels = np.zeros(n_elements, np.int64)
    everything = n_sets - 1
    best = penalty[0] + cost[everything]
    best_number = 1
    for number in range(2, penalty.shape[0] + 1):
        if penalty[number - 1] + floor >= best - _LEAST_GAIN:
            break
        for members in range(n_sets):
            rest = members & (members - 1)
            least = np.inf
            chosen = 0
            other = rest
            while other > 0:  # the other groups share `other`; the group of the lowest has what is left
                value = cost[members ^ other] + fewer[other]
                if value < least:
                    least = value
                    chosen = members ^ other
                other = (other - 1) & rest
            cheapest[members] = least
            first[number, members] = chosen
        for members in range(n_sets):
            fewer[members] = cheapest[members]
        if penalty[number - 1] + fewer[everything] < best - _LEAST_GAIN:
            best = penalty[number - 1] + fewer[everything]
            best_number = number
    members = everything
    for number in range(best_number, 0, -1):
        chosen = first[number, members] if number > 1 else members
        for e in range(labels.shape[0]):
            if (chosen >> e) & 1:
                labels[e] = number - 1
        members ^= chosen
    return labels, best


@inner
def _shared_among(price: Price, values: int) -> int:
    """Return x of the price log [(N + x)! / x!] of a group of so many values; nothing for an empty group."""
    return max(price.fixed + price.per_value * values, 0)


@inner
def _price_merges(
    table: IntArray,
    values: IntArray,
    a: int,
    stop: int,
    alone: FloatArray,
    alive: BoolArray,
    price: Price,
    lf: FloatArray,
    rise: FloatArray,
) -> None:
    """Write what merging group a with each of those before `stop` adds to the cost."""
    n_classes = table.shape[1]
    for c in range(stop):
        if c == a or not alive[c]:
            continue
        total = _shared_among(price, values[a] + values[c])
        logs = log_factorial(lf, total) + alone[a] + alone[c]
        for j in range(n_classes):
            n = table[a, j] + table[c, j]
            total += n
            logs += log_factorial(lf, n)
        rise[min(a, c), max(a, c)] = log_factorial(lf, total) - logs


@inner
def _best_partner(rise: FloatArray, alive: BoolArray, a: int) -> int:
    """Return the group after a whose merge with a adds least, or a when there is none."""
    partner = a
    for c in range(a + 1, rise.shape[0]):
        if alive[c] and (partner == a or rise[a, c] < rise[a, partner]):
            partner = c
    return partner


@kernel
def merge_groups(
    table: IntArray, values: IntArray, price: Price, lf: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Merge groups two by two, each time the pair that adds least to the cost, until one is left.

    `table` and `values`, the rows by class and the values of the groups, are used up. Returns the pairs
    (stays, goes), and the sum of the costs of the groups before each merge and after the last. Ties go to the
    pair with the lowest numbers.
    """
    n_groups, n_classes = table.shape
    alive = np.ones(n_groups, np.bool_)
    alone = np.empty(n_groups, np.float64)
    rise = np.empty((n_groups, n_groups), np.float64)
    partner = np.empty(n_groups, np.int64)
    pairs = np.empty((n_groups - 1, 2), np.int64)
    costs = np.zeros(n_groups, np.float64)
    for a in range(n_groups):
        alone[a] = part_cost(lf, table[a], _shared_among(price, values[a]))
        costs[0] += alone[a]
        _price_merges(table, values, a, a, alone, alive, price, lf, rise)
    for a in range(n_groups):
        partner[a] = _best_partner(rise, alive, a)
    for step in range(n_groups - 1):
        a = -1
        for c in range(n_groups):
            if alive[c] and partner[c] > c and (a < 0 or rise[c, partner[c]] < rise[a, partner[a]]):
                a = c
        b = partner[a]
        costs[step + 1] = costs[step] + rise[a, b]
        alone[a] += rise[a, b] + alone[b]
        alive[b] = False
        pairs[step, 0] = a
        pairs[step, 1] = b
        values[a] += values[b]
        for j in range(n_classes):
            table[a, j] += table[b, j]
        _price_merges(table, values, a, n_groups, alone, alive, price, lf, rise)
        for c in range(b):
            if alive[c]:
                if c == a or partner[c] == a or partner[c] == b:
                    partner[c] = _best_partner(rise, alive, c)
                elif c < a and rise[c, a] < rise[c, partner[c]]:
                    partner[c] = a
    return pairs, costs


@kernel
def cut_merges(groups: IntArray, pairs: IntArray, n_groups: int) -> IntArray:
    """Return the group of each element when `n_groups` are left of the merges, numbered without gaps."""
    n_before = pairs.shape[0] + 1
    into = np.arange(n_before)
    # Backwards, so that a group merged away later is already renamed when those merged into it follow.
    for step in range(n_before - n_groups - 1, -1, -1):
        into[pairs[step, 1]] = into[pairs[step, 0]]
    cut: IntArray = close_gaps(into[groups])[0]
    return cut


@allocating_inner
def close_gaps(groups: IntArray) -> tuple[IntArray, int]:
    """Return the groups numbered 0, 1, 2, ... in the order they have, without gaps, and their number."""
    number = np.zeros(groups.max() + 1, np.int64)
    for e in range(groups.shape[0]):
        number[groups[e]] = 1
    n_groups = 0
    for g in range(number.shape[0]):
        n_groups += number[g]
        number[g] = n_groups - 1
    return number[groups], n_groups


@kernel
def move_elements(
    ptr: IntArray,
    cls: IntArray,
    cnt: IntArray,
    n_classes: int,
    labels: IntArray,
    n_slots: int,
    penalty: FloatArray,
    price: Price,
    lf: FloatArray,
    max_sweeps: int,
) -> float:
    """Move elements one at a time to the group that lowers the cost most, until none does.

    A group of its own is one of the choices, and a group left empty is given back: `n_slots` says how many
    groups there may be at a time. `labels` is changed in place. Returns the sum of the gains, negative.
    """
    n_elements = ptr.shape[0] - 1
    # The slots side by side, so that one element is compared with all groups in one run through memory.
    table = np.zeros((n_classes, n_slots), np.int64)
    rows = np.zeros(n_slots, np.int64)
    values = np.zeros(n_slots, np.int64)
    for e in range(n_elements):
        values[labels[e]] += 1
        for i in range(ptr[e], ptr[e + 1]):
            table[cls[i], labels[e]] += cnt[i]
            rows[labels[e]] += cnt[i]
    logs = np.empty((n_classes, n_slots), np.float64)
    n_groups = 0
    for g in range(n_slots):
        n_groups += values[g] > 0
        for j in range(n_classes):
            logs[j, g] = log_factorial(lf, table[j, g])
    change = np.empty(n_slots, np.float64)
    gain = 0.0
    for _ in range(max_sweeps):
        before = gain
        for e in range(n_elements):
            home = labels[e]
            n = _price_moves(ptr, cls, cnt, e, home, table, logs, rows, values, price, lf, change)
            alone = values[home] == 1
            shrink = 0.0
            if alone and n_groups > 1:
                shrink = penalty[n_groups - 2] - penalty[n_groups - 1]
            target = -1
            least = -_LEAST_GAIN
            opened = False
            for g in range(n_slots):
                if g == home:
                    continue
                value = change[home] + change[g] + shrink
                if values[g] == 0:  # the first empty slot stands for a new group
                    if opened or alone or n_groups >= penalty.shape[0]:
                        continue
                    opened = True
                    value += penalty[n_groups] - penalty[n_groups - 1]
                if value < least:
                    least = value
                    target = g
            if target < 0:
                continue
            n_groups += int(values[target] == 0) - int(alone)
            labels[e] = target
            rows[home] -= n
            rows[target] += n
            values[home] -= 1
            values[target] += 1
            for i in range(ptr[e], ptr[e + 1]):
                j = cls[i]
                table[j, home] -= cnt[i]
                table[j, target] += cnt[i]
                logs[j, home] = log_factorial(lf, table[j, home])
                logs[j, target] = log_factorial(lf, table[j, target])
            gain += least
        if gain == before:
            break
    return gain


@inner
def _price_moves(
    ptr: IntArray,
    cls: IntArray,
    cnt: IntArray,
    e: int,
    home: int,
    table: IntArray,
    logs: FloatArray,
    rows: IntArray,
    values: IntArray,
    price: Price,
    lf: FloatArray,
    change: FloatArray,
) -> int:
    """Write what each group's cost changes by when element e joins it, and its home's when e leaves.

    Returns the rows of the element. Twelve arguments, for it is the inside of `move_elements`.
    """
    n_slots = change.shape[0]
    change[:] = 0.0
    n = 0
    for i in range(ptr[e], ptr[e + 1]):
        m = cnt[i]
        n += m
        for g in range(n_slots):
            joined = table[cls[i], g] + (-m if g == home else m)
            change[g] += logs[cls[i], g] - log_factorial(lf, joined)
    for g in range(n_slots):
        step = -1 if g == home else 1
        held, joined = rows[g], rows[g] + step * n
        x, y = _shared_among(price, values[g]), _shared_among(price, values[g] + step)
        change[g] += log_factorial(lf, joined + y) - log_factorial(lf, held + x)
        change[g] += log_factorial(lf, x) - log_factorial(lf, y)
    return n


@kernel
def settle_groups(
    ptr: IntArray,
    cls: IntArray,
    cnt: IntArray,
    n_classes: int,
    labels: IntArray,
    penalty: FloatArray,
    price: Price,
    lf: FloatArray,
) -> tuple[IntArray, float]:
    """Alternate moves of elements and greedy merges of groups until neither lowers the cost.

    `labels` is where it starts; returns the labels found, numbered without gaps, and their cost. Every
    element counts as one value.
    """
    best, n_groups = close_gaps(labels)
    least = np.inf
    spent = 0.0
    while spent < _MOVE_LOOKUPS:
        spent += cnt.shape[0] * n_groups
        n_slots = min(n_groups + _SPARE_GROUPS, penalty.shape[0])
        sweeps = min(max(int(_MOVE_LOOKUPS / (cnt.shape[0] * n_slots)), 2), _MOST_SWEEPS)
        moved = best.copy()
        move_elements(ptr, cls, cnt, n_classes, moved, n_slots, penalty, price, lf, sweeps)
        moved, n_groups = close_gaps(moved)
        table = np.zeros((n_groups, n_classes), np.int64)
        values = np.zeros(n_groups, np.int64)
        for e in range(ptr.shape[0] - 1):
            values[moved[e]] += 1
            for i in range(ptr[e], ptr[e + 1]):
                table[moved[e], cls[i]] += cnt[i]
        pairs, costs = merge_groups(table, values, price, lf)
        for step in range(n_groups):
            costs[step] += penalty[n_groups - 1 - step]
        cost = costs.min()
        if cost >= least - _LEAST_GAIN:
            break
        least = cost
        # between equals the fewest groups
        step = n_groups - 1
        while costs[step] > cost + _LEAST_GAIN:
            step -= 1
        n_groups -= step
        best = cut_merges(moved, pairs, n_groups)
    return best, least


@kernel
def nearest_groups(ptr: IntArray, cls: IntArray, cnt: IntArray, slopes: FloatArray, labels: IntArray) -> int:
    """Give each element to the group where its rows cost least at the given slopes; return how many moved.

    `slopes[j, g]` is the derivative of the cost of group g in its rows of class j. As the cost is concave,
    the new grouping costs no more than the linear estimate, hence no more than the old one.
    """
    n_groups = slopes.shape[1]
    score = np.empty(n_groups, np.float64)
    moved = 0
    for e in range(ptr.shape[0] - 1):
        for g in range(n_groups):
            score[g] = 0.0
        for i in range(ptr[e], ptr[e + 1]):
            for g in range(n_groups):
                score[g] += cnt[i] * slopes[cls[i], g]
        nearest = 0
        for g in range(1, n_groups):
            if score[g] < score[nearest]:
                nearest = g
        if labels[e] != nearest:
            labels[e] = nearest
            moved += 1
    return moved
