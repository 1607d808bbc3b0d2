"""Kernels of the search over groups of elements that have no order.

Legend, as in the papers: J classes; an element e (values that share one class profile) holds `cnt[i]` rows of
class `cls[i]` for i in `ptr[e] .. ptr[e+1] - 1`; group g holds `table[g, j]` rows of class j and costs
c(n) = log [(n + J - 1)! / ((J - 1)! n_1! ... n_J!)]; `penalty[I - 1]` is the price of I groups; `lf` is the
table that `log_factorial` reads.
"""

from typing import Any

import numpy as np

from damier.search.kernels import kernel, log_factorial

# Improvements below this are rounding: with them a search could turn in circles.
_LEAST_GAIN = 1e-9


@kernel
def best_of_all_groupings(
    cost: Any, penalty: Any, floor: float, fewer: Any, cheapest: Any, first: Any, labels: Any
) -> float:
    """Find the best grouping of R elements over all there are, in about 3^R steps.

    The bits of S name the elements of a set, `cost[S]` is the cost of the group they make. The group that
    holds the lowest element of a set is tried in every way; the rest of the set is a smaller problem.
    `fewer[S]` is the cheapest way to cut S into one group less (at first a copy of `cost`, with infinity for
    the empty set), `first[I, S]` the group of its lowest element. `floor` bounds the sum of part costs from
    below whatever the grouping, and ends the search once the price of one more group cannot be earned back.
    """
    n_sets = cost.shape[0]
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
    return float(best)


@kernel
def _price_merges(table: Any, a: int, stop: int, alone: Any, alive: Any, lf: Any, rise: Any) -> None:
    """Write what merging group a with each of those before `stop` adds to the cost."""
    n_classes = table.shape[1]
    for c in range(stop):
        if c == a or not alive[c]:
            continue
        total = n_classes - 1
        logs = log_factorial(lf, total) + alone[a] + alone[c]
        for j in range(n_classes):
            n = table[a, j] + table[c, j]
            total += n
            logs += log_factorial(lf, n)
        added = log_factorial(lf, total) - logs
        if a < c:
            rise[a, c] = added
        else:
            rise[c, a] = added


@kernel
def _best_partner(rise: Any, alive: Any, a: int) -> int:
    """Return the group after a whose merge with a adds least, or a when there is none."""
    partner = a
    for c in range(a + 1, rise.shape[0]):
        if alive[c] and (partner == a or rise[a, c] < rise[a, partner]):
            partner = c
    return partner


@kernel
def merge_groups(table: Any, alone: Any, lf: Any, alive: Any, rise: Any, partner: Any, merges: Any) -> None:
    """Merge groups two by two, each time the pair that adds least to the cost, until one is left.

    Writes the pairs to `merges`, a row (stays, goes) a merge. `alone` is the cost of each group, `alive` all
    true; both and `table` are used up, and `alone[g]` becomes what the merge that ends group g adds. `rise`
    (groups x groups) and `partner` need no values. Ties go to the pair with the lowest numbers.
    """
    n_groups, n_classes = table.shape
    for a in range(n_groups):
        _price_merges(table, a, a, alone, alive, lf, rise)
    for a in range(n_groups):
        partner[a] = _best_partner(rise, alive, a)
    for step in range(n_groups - 1):
        a = -1
        for c in range(n_groups):
            if alive[c] and partner[c] > c and (a < 0 or rise[c, partner[c]] < rise[a, partner[a]]):
                a = c
        b = partner[a]
        alone[a] += rise[a, b] + alone[b]
        alone[b] = rise[a, b]
        alive[b] = False
        merges[step, 0] = a
        merges[step, 1] = b
        for j in range(n_classes):
            table[a, j] += table[b, j]
        _price_merges(table, a, n_groups, alone, alive, lf, rise)
        for c in range(b):
            if alive[c]:
                if c == a or partner[c] == a or partner[c] == b:
                    partner[c] = _best_partner(rise, alive, c)
                elif c < a and rise[c, a] < rise[c, partner[c]]:
                    partner[c] = a


@kernel
def move_elements(
    ptr: Any,
    cls: Any,
    cnt: Any,
    labels: Any,
    table: Any,
    logs: Any,
    slots: Any,
    penalty: Any,
    lf: Any,
    max_sweeps: int,
) -> float:
    """Move elements one at a time to the group that lowers the cost most, until none does.

    A group of its own is one of the choices, and a group left empty is given back. `table` is classes x slots
    (the slots side by side, so that one element is compared with all groups in one run through memory); slots
    beyond the groups in use are empty. `logs` is room for the log factorials of `table`; `slots` holds the
    rows and the elements of each slot, and room for one number more. Returns the sum of the gains, negative.
    """
    n_classes, n_slots = table.shape
    extra = n_classes - 1
    n_groups = 0
    for g in range(n_slots):
        n_groups += slots[1, g] > 0
        for j in range(n_classes):
            logs[j, g] = log_factorial(lf, table[j, g])
    gain = 0.0
    for _ in range(max_sweeps):
        before = gain
        for e in range(ptr.shape[0] - 1):
            home = labels[e]
            for g in range(n_slots):
                slots[2, g] = 0.0
            n = 0
            for i in range(ptr[e], ptr[e + 1]):
                m = cnt[i]
                n += m
                for g in range(n_slots):
                    # the element leaves its home and joins the others
                    joined = table[cls[i], g] + (-m if g == home else m)
                    slots[2, g] += logs[cls[i], g] - log_factorial(lf, joined)
            step = 0.0  # what the number of groups adds
            single = slots[1, home] == 1
            if single and n_groups > 1:
                step = penalty[n_groups - 2] - penalty[n_groups - 1]
            for g in range(n_slots):
                held = int(slots[0, g])
                joined = held - n if g == home else held + n
                slots[2, g] += log_factorial(lf, joined + extra) - log_factorial(lf, held + extra)
            target = -1
            least = -_LEAST_GAIN
            opened = False
            for g in range(n_slots):
                if g == home:
                    continue
                value = slots[2, home] + slots[2, g] + step
                if slots[1, g] == 0:  # the first empty slot stands for a new group
                    if opened or single or n_groups >= penalty.shape[0]:
                        continue
                    opened = True
                    value += penalty[n_groups] - penalty[n_groups - 1]
                if value < least:
                    least = value
                    target = g
            if target < 0:
                continue
            n_groups += int(slots[1, target] == 0) - int(single)
            labels[e] = target
            slots[0, home] -= n
            slots[1, home] -= 1
            slots[0, target] += n
            slots[1, target] += 1
            for i in range(ptr[e], ptr[e + 1]):
                j = cls[i]
                table[j, home] -= cnt[i]
                table[j, target] += cnt[i]
                logs[j, home] = log_factorial(lf, table[j, home])
                logs[j, target] = log_factorial(lf, table[j, target])
            gain += least
        if gain == before:
            break
    return float(gain)


@kernel
def nearest_groups(ptr: Any, cls: Any, cnt: Any, slopes: Any, score: Any, labels: Any) -> int:
    """Give each element to the group where its rows cost least at the given slopes; return how many moved.

    `slopes[j, g]` is the derivative of the cost of group g in its rows of class j. As the cost is concave,
    the new grouping costs no more than the linear estimate, hence no more than the old one. `score` is room
    for one number a group.
    """
    n_groups = slopes.shape[1]
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
