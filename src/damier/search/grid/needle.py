"""Needles in haystacks: interactions of several variables none of which shows anything alone.

Two cheap stand-ins for the cost, for a centred target t (a random half of the classes when there are more
than two) and steps f_k of +1 and -1 on the axes:

- `climb` maximises |sum_i t_i prod_k f_k(x_ik)| one axis at a time with prefix sums;
- `screen` computes it for every subset of a given size at once, from one cut per axis and one bit per row: a
  subset costs an exclusive or and two bit counts per 64 rows. Cuts may lie well off the pattern's: moving
  them is the next step.
"""

# Numba infers the types: mypy takes whole numbers of NumPy and of Python for different ones.
# mypy: disable-error-code="assignment, return-value, no-any-return"
from __future__ import annotations

import numpy as np

from damier.search.grid.state import Grid, Problem, Work
from damier.search.kernels import (
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    WordArray,
    bare_kernel,
    count_bits,
    inner,
)

# How often the axes of a set are gone through.
_MOST_SWEEPS = 60


@inner
def _flip(signal: FloatArray, order: CodeArray, lo: int, hi: int) -> None:
    """Change the sign of the rows at positions lo .. hi-1."""
    for i in range(lo, hi):
        signal[order[i]] = -signal[order[i]]


@inner
def _steps(signal: FloatArray, order: CodeArray, fresh: BoolArray, now: int) -> tuple[float, float, float]:
    """Return the sum of the signal less the step it has at `now`, its highest and its lowest prefix sum."""
    total, highest, lowest = 0.0, 0.0, 0.0
    for i in range(order.shape[0]):
        reached = total if fresh[i] else 0.0
        highest = reached if reached > highest else highest
        lowest = reached if reached < lowest else lowest
        weight = signal[order[i]]
        total += -weight if i < now else weight
    return total, highest, lowest


@inner
def _where(signal: FloatArray, order: CodeArray, fresh: BoolArray, now: int, prefix: float) -> int:
    """Return the first place where a value begins and the prefix sum is the one given."""
    total = 0.0
    for i in range(order.shape[0]):
        if fresh[i] and total == prefix:
            return np.int64(i)
        weight = signal[order[i]]
        total += -weight if i < now else weight
    return np.int64(0)


@inner
def _climb_interval(signal: FloatArray, order: CodeArray, fresh: BoolArray, now: int, toll: float) -> int:
    """Return where the best step of a numeric axis lies, 0 for none; `now` is where the present one does."""
    total, highest, lowest = _steps(signal, order, fresh, now)
    best, prefix = abs(total) + toll, 0.0
    if abs(total - 2.0 * highest) > best:
        best, prefix = abs(total - 2.0 * highest), highest
    if abs(total - 2.0 * lowest) > best:
        prefix = lowest
    # Few axes have a step worth its place, which only a second scan finds.
    at = np.int64(0) if prefix == 0.0 else _where(signal, order, fresh, now, prefix)
    if at != now:
        _flip(signal, order, min(at, now), max(at, now))
    return at


@inner
def _climb_groups(
    signal: FloatArray,
    order: CodeArray,
    value_start: CodeArray,
    group: CodeArray,
    base: int,
    n_values: int,
    divided: bool,
    scores: FloatArray,
    toll: float,
) -> tuple[bool, bool]:
    """Give each value of an axis its best sign; returns whether it is divided, and whether it changed."""
    total, strength = 0.0, 0.0
    n_low = 0
    for value in range(n_values):
        score = 0.0
        for i in range(value_start[base + value], value_start[base + value + 1]):
            score += signal[order[i]]
        if divided and group[base + value] == 0:
            score = -score
        scores[value] = score
        total += score
        strength += abs(score)
        n_low += 1 if score < 0.0 else 0
    divide = strength > abs(total) + toll * np.sqrt(n_values - 1.0) and 0 < n_low < n_values
    changed = False
    for value in range(n_values):
        at = base + value
        was = divided and group[at] == 0
        low = divide and scores[value] < 0.0
        group[at] = 1 if divide and not low else 0
        if was != low:
            changed = True
            _flip(signal, order, np.int64(value_start[at]), np.int64(value_start[at + 1]))
    return divide, changed


@inner
def _cut_in_two(
    problem: Problem, grid: Grid, signal: FloatArray, axis: int, start: CodeArray, group: CodeArray
) -> None:
    """Cut an axis in two as `start` or `group` say, and give its rows their signs."""
    if problem.n_values[axis] < 2:
        return
    grid.n_parts[axis] = 2
    order = problem.order[axis]
    if not problem.categorical[axis]:
        grid.start[axis, 1] = start[axis]
        _flip(signal, order, np.int64(0), np.int64(start[axis]))
        return
    base = problem.first_value[axis]
    for at in range(base, base + problem.n_values[axis]):
        grid.group[at] = group[at]
        if group[at] == 0:
            _flip(signal, order, np.int64(problem.value_start[at]), np.int64(problem.value_start[at + 1]))


@inner
def _climb_axes(problem: Problem, grid: Grid, work: Work, axes: IntArray, toll: float) -> None:
    """Give the listed axes their best steps in turn until none changes."""
    n_parts = grid.n_parts
    n = axes.shape[0]
    idle = 0
    for step in range(_MOST_SWEEPS * n):
        axis = axes[step % n]
        changed = False
        if problem.n_values[axis] > 1 and problem.categorical[axis]:
            divide, changed = _climb_groups(
                work.signal, problem.order[axis], problem.value_start, grid.group, problem.first_value[axis],
                problem.n_values[axis], n_parts[axis] == 2, work.scores, toll,
            )  # fmt: skip
            n_parts[axis] = 2 if divide else 1
        elif problem.n_values[axis] > 1:
            now = np.int64(grid.start[axis, 1]) if n_parts[axis] == 2 else np.int64(0)
            at = _climb_interval(work.signal, problem.order[axis], problem.fresh[axis], now, toll)
            changed = at != now
            grid.start[axis, 1] = at
            n_parts[axis] = 2 if at > 0 else 1
        idle = 0 if changed else idle + 1
        if idle >= n or work.stop[0] != 0:
            return


@bare_kernel
def climb(
    problem: Problem, grid: Grid, work: Work, target: FloatArray, start: CodeArray, group: CodeArray,
    sets: IntArray, others: IntArray, toll: float, scores: FloatArray,
) -> None:  # fmt: skip
    """From each row of `sets`, axes cut in two as `start` and `group` say, climb until no axis changes.

    The axes of the set move first, freely; then those of `others` join, a step being made only if it gains
    more than `toll`. ``scores`` receives |sum of the signal|; the grid is left with the parts of the last
    set.
    """
    signal = work.signal
    for t in range(sets.shape[0]):
        for row in range(signal.shape[0]):
            signal[row] = target[row]
        for axis in range(grid.n_parts.shape[0]):
            grid.n_parts[axis] = 1
        for d in range(sets.shape[1]):
            _cut_in_two(problem, grid, signal, sets[t, d], start, group)
        _climb_axes(problem, grid, work, sets[t], 0.0)
        _climb_axes(problem, grid, work, others, toll)
        total = 0.0
        for row in range(signal.shape[0]):
            total += signal[row]
        scores[t] = abs(total)


@bare_kernel
def screen(
    bits: WordArray,
    target: WordArray,
    share: float,
    top_score: FloatArray,
    top_set: IntArray,
    chosen: IntArray,
    prefix: WordArray,
) -> None:
    """Score all subsets of the rows of `bits` of a given size; keep the best in `top_score` and `top_set`.

    `bits` has a row per axis, its signs, and `target` those of the target, of which the share `share` is set.
    `chosen` (0 .. size-1) and `prefix` (zeros, size times the words of a row) are the memory to work in.

    The score is |sum over rows of (target - share) times the product of the subset's signs|, a set bit
    being the sign -1; up to a constant and a factor.
    """
    n, n_words = bits.shape
    n_top = top_score.shape[0]
    size = chosen.shape[0]
    for t in range(n_top):
        top_score[t] = -1.0
    weakest = 0
    depth = 0
    while True:
        # prefix[d] is the exclusive or of the first d chosen rows
        while depth < size - 1:
            for w in range(n_words):
                prefix[depth + 1, w] = prefix[depth, w] ^ bits[chosen[depth], w]
            depth += 1
        for last in range(chosen[size - 2] + 1, n):
            ones, both = np.int64(0), np.int64(0)
            for w in range(n_words):
                word = prefix[size - 1, w] ^ bits[last, w]
                ones += count_bits(word)
                both += count_bits(word & target[w])
            score = abs(both - share * ones)
            if score > top_score[weakest]:
                top_score[weakest] = score
                for d in range(size - 1):
                    top_set[weakest, d] = chosen[d]
                top_set[weakest, size - 1] = last
                for t in range(n_top):
                    if top_score[t] < top_score[weakest]:
                        weakest = t
        depth = size - 2
        while depth >= 0 and chosen[depth] == n - size + depth:
            depth -= 1
        if depth < 0:
            return
        chosen[depth] += 1
        for d in range(depth + 1, size - 1):
            chosen[d] = chosen[d - 1] + 1
