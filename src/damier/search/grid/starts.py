"""From one start to one local optimum: the starts, and what is done from each.

No one start wins everywhere, so the search takes them in rotation; each ends in `Climber._settle`: moves
until nothing moves, greedy merges down to the null model, and, where something is left, moves, merges and
cuts over all axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from damier.search.axis.alone import Alone, partition_alone
from damier.search.axis.exact import undivided
from damier.search.grid.axes import polish
from damier.search.grid.merge import greedy_merge
from damier.search.grid.needle import climb, screen
from damier.search.grid.problem import put_aside
from damier.search.grid.state import EPSILON, Problem, Solution, StopFlag, load_parts, new_grid, new_work
from damier.search.kernels import BoolArray, CodeArray, FloatArray, IntArray, WordArray, factorial_table

_JITTER = 0.15
_SCREEN_ROWS = 2048
_SCREEN_WORDS = 12_000_000
_CLIMB_ROWS = 3_000_000
_LARGEST_SUBSET = 6
# So many axes are looked at by one kernel before any is partitioned by itself.
_MANY_AXES = 256


@dataclass(frozen=True)
class Start:
    """A start: its kind and seed, the grid it is to vary, how far it goes (0 to 1), the axes it may use."""

    kind: str
    seed: tuple[int, ...]
    around: Solution
    amount: float
    only: tuple[int, ...] | None = None


class Climber:
    """One thread's memory, and the starts it can be asked for.

    Every start takes its own random generator and returns the grid it ended with. The partition of each axis
    alone, None if it is one part, is kept in ``alone``, which the climbers of one search share: it is the
    same whoever finds it.
    """

    def __init__(
        self, problem: Problem, stop: StopFlag, alone: dict[int, Alone | None] | None = None
    ) -> None:
        self.problem = problem
        self.alone = {} if alone is None else alone
        self.grid = new_grid(problem)
        self.work = new_work(problem, stop)
        self.stop = stop
        self.n_axes, self.n_rows = problem.order.shape
        # A grid costs no less than the prior of any variable in it: one that costs more than the null model
        # just to be cut in two (an identifier, say) is in no grid worth having.
        cut_in_two = problem.axis_prior[problem.prior_row, 2]
        self.axes: IntArray = np.flatnonzero((problem.n_values > 1) & (cut_in_two < self.null().cost))
        self.log2_rows = max(1, int(math.log2(max(2, self.n_rows))))
        self.kinds: dict[str, Callable[[Start, np.random.Generator], Solution]] = {
            "single axes": self._single_axes,
            "forward": self._forward,
            "halves": self._halves,
            "dense": self._dense,
            "few": self._few,
            "rank one": self._rank_one,
            "screen": self._screen,
            "widen": self._widen,
            "drop": self._drop,
            "nudge": self._nudge,
        }

    def null(self) -> Solution:
        """Return the null model."""
        self.grid.n_parts[:] = 1
        load_parts(self.problem, self.grid, self.work)
        return put_aside(self.problem, self.grid)

    def run(self, start: Start) -> Solution:
        """Run one start to the end."""
        usable = self.axes
        try:
            if start.only is not None:
                self.axes = np.intersect1d(usable, start.only)
            if self.axes.size == 0:
                return self.null()
            return self.kinds[start.kind](start, np.random.default_rng(start.seed))
        finally:
            self.axes = usable

    def _load(self, solution: Solution) -> None:
        self.grid.n_parts[:] = solution.n_parts
        self.grid.start[:] = solution.start
        self.grid.group[:] = solution.group
        load_parts(self.problem, self.grid, self.work)

    def _polish(self, rng: np.random.Generator, axes: IntArray, may_resize: bool) -> None:
        polish(self.problem, self.grid, self.work, axes.copy(), may_resize, int(rng.integers(1 << 62)))

    def _settle(self, rng: np.random.Generator) -> Solution:
        """Bring the parts now in the grid to a local optimum."""
        load_parts(self.problem, self.grid, self.work)
        self._polish(rng, np.flatnonzero(self.grid.n_parts > 1), False)
        greedy_merge(self.problem, self.grid, self.work)
        for _ in range(4):
            if self.grid.tally[0] == 0 or self.stop[0]:
                break
            self._polish(rng, self.axes, True)
            before = float(self.grid.cost[0])
            greedy_merge(self.problem, self.grid, self.work)
            if self.grid.cost[0] > before - EPSILON:
                break
        return put_aside(self.problem, self.grid)

    def _penalty(self, axis: int, most: int) -> FloatArray:
        """Return what 1 .. ``most`` parts of an axis cost when it is the only one selected."""
        penalty = self.problem.axis_prior[self.problem.prior_row[axis], 1 : most + 1].copy()
        penalty[0] += self.problem.selection[0]
        penalty[1:] += self.problem.selection[1]
        return penalty

    def _alone(self, axis: int) -> Alone | None:
        """Return the best partition of an axis by itself, None if that is one part."""
        if axis not in self.alone:
            problem, n_values = self.problem, int(self.problem.n_values[axis])
            found = partition_alone(
                self._codes(axis),
                n_values,
                problem.classes[problem.order[axis]],
                problem.n_classes,
                self._penalty(axis, n_values),
                ordered=not problem.categorical[axis],
            )
            self.alone[axis] = found if len(found.counts) > 1 else None
        return self.alone[axis]

    def _codes(self, axis: int) -> CodeArray:
        """Return the value codes of an axis in the order of its rows."""
        if self.problem.categorical[axis]:
            values = self._values(axis)
            sizes = np.diff(self.problem.value_start[values.start : values.stop + 1])
            return np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        return (np.cumsum(self.problem.fresh[axis]) - 1).astype(np.int32)

    def _set_alone(self, axis: int) -> None:
        """Give an axis of the grid the parts it has by itself."""
        alone = self._alone(axis)
        if alone is not None:
            self._set_parts(axis, alone.parts)

    def _set_parts(self, axis: int, parts: IntArray) -> None:
        """Give an axis of the grid the parts of its values."""
        n_parts = int(parts.max()) + 1
        self.grid.n_parts[axis] = n_parts
        if self.problem.categorical[axis]:
            self.grid.group[self._values(axis)] = parts
        else:
            first_rows = np.flatnonzero(self.problem.fresh[axis])
            self.grid.start[axis, :n_parts] = first_rows[np.searchsorted(parts, np.arange(n_parts))]

    def _informative(self) -> list[int]:
        """List the axes that inform alone, the most informative first."""
        self._pass_over_undivided()
        found = []
        for axis in self.axes.tolist():
            if self.stop[0]:
                break
            alone = self._alone(axis)
            if alone is not None:
                found.append((alone.cost, axis))
        return [axis for _, axis in sorted(found)]

    def _pass_over_undivided(self) -> None:
        """Prove of most of many axes at once that one part is best."""
        problem = self.problem
        unknown = [k for k in self.axes.tolist() if k not in self.alone and not problem.categorical[k]]
        if problem.n_classes != 2 or len(unknown) < _MANY_AXES:
            return
        axes = np.array(unknown, dtype=np.int64)
        penalty = self._penalty(unknown[0], problem.axis_prior.shape[1] - 1)
        # No number of parts costs less for each part beyond the first: best at this slope is best at all.
        slope = float(((penalty[1:] - penalty[0]) / np.arange(1, penalty.size)).min())
        table = factorial_table(self.n_rows + problem.n_classes)
        whole = undivided(problem.order, problem.fresh, problem.classes, axes, table, slope)
        self.alone.update(dict.fromkeys(axes[whole].tolist()))

    def _values(self, axis: int) -> slice:
        base = int(self.problem.first_value[axis])
        return slice(base, base + int(self.problem.n_values[axis]))

    def _single_axes(self, _start: Start, rng: np.random.Generator) -> Solution:
        """Cross the partitions the most informative axes have alone."""
        self.grid.n_parts[:] = 1
        for axis in self._informative()[: self.log2_rows]:
            self._set_alone(axis)
        return self._settle(rng)

    def cross(self, parts: Sequence[IntArray], seed: int) -> Solution:
        """Settle from given partitions: the part of each value of each axis."""
        self.grid.n_parts[:] = 1
        for axis, of_values in enumerate(parts):
            self._set_parts(axis, of_values)
        return self._settle(np.random.default_rng(seed))

    def _forward(self, start: Start, rng: np.random.Generator) -> Solution:
        """Add what helps, from the partition of one axis: the best, or later any that informs alone."""
        informative = self._informative()
        if not informative:
            return self.null()
        first = informative[0] if start.amount >= 1 else int(rng.choice(sorted(informative)))
        self.grid.n_parts[:] = 1
        self._set_alone(first)
        load_parts(self.problem, self.grid, self.work)
        self._polish(rng, self.axes, True)
        return self._settle_as_is(rng)

    def _settle_as_is(self, rng: np.random.Generator) -> Solution:
        self._load(put_aside(self.problem, self.grid))
        return self._settle(rng)

    def _cut_near_middle(self, rng: np.random.Generator, axis: int) -> None:
        """Divide an axis in two near the middle of the rows."""
        self.grid.n_parts[axis] = 2
        if self.problem.categorical[axis]:
            values = self._values(axis)
            sizes = np.diff(self.problem.value_start[values.start : values.stop + 1])
            balance = 0
            for value in rng.permutation(sizes.size):
                self.grid.group[values.start + value] = 0 if balance <= 0 else 1
                balance += int(sizes[value]) if balance <= 0 else -int(sizes[value])
            return
        near = int(self.n_rows * (0.5 + _JITTER * (2 * rng.random() - 1)))
        self.grid.start[axis, 1] = self._nearest_bound(axis, near)

    def _nearest_bound(self, axis: int, near: int) -> int:
        fresh = self.problem.fresh[axis]
        near = min(max(near, 1), self.n_rows - 1)
        reach = 1
        while True:
            lo, hi = max(1, near - reach), min(self.n_rows, near + reach + 1)
            found = np.flatnonzero(fresh[lo:hi])
            if found.size:
                return int(lo + found[np.argmin(np.abs(found + lo - near))])
            reach *= 8

    def _random_parts(self, rng: np.random.Generator, axis: int, n_parts: int) -> None:
        """Divide an axis at random into at most n_parts parts."""
        n_values = int(self.problem.n_values[axis])
        n_parts = min(n_parts, n_values, self.grid.start.shape[1])
        if self.problem.categorical[axis]:
            parts = np.concatenate([np.arange(n_parts), rng.integers(n_parts, size=n_values - n_parts)])
            self.grid.group[self._values(axis)] = rng.permutation(parts)
            self.grid.n_parts[axis] = n_parts
            return
        bounds = {self._nearest_bound(axis, int(at)) for at in rng.integers(1, self.n_rows, size=n_parts - 1)}
        self.grid.start[axis, 1 : len(bounds) + 1] = sorted(bounds)
        self.grid.n_parts[axis] = len(bounds) + 1

    def _some_axes(self, rng: np.random.Generator, n: int) -> list[int]:
        return [int(axis) for axis in rng.permutation(self.axes)[:n]]

    def _halves(self, _start: Start, rng: np.random.Generator) -> Solution:
        """Two parts on log2 N axes."""
        self.grid.n_parts[:] = 1
        for axis in self._some_axes(rng, self.log2_rows):
            self._cut_near_middle(rng, axis)
        return self._settle(rng)

    def _dense(self, _start: Start, rng: np.random.Generator) -> Solution:
        """N^(1/s) parts on s axes (Boullé, "Data grid models", section 5.4)."""
        self.grid.n_parts[:] = 1
        n = int(rng.integers(1, min(self.log2_rows, self.axes.size) + 1))
        for axis in self._some_axes(rng, n):
            self._random_parts(rng, axis, max(2, int(self.n_rows ** (1 / n))))
        return self._settle(rng)

    def _few(self, _start: Start, rng: np.random.Generator) -> Solution:
        """Several parts on two to five axes."""
        self.grid.n_parts[:] = 1
        for axis in self._some_axes(rng, int(rng.integers(2, 6))):
            self._random_parts(rng, axis, int(rng.integers(3, 9)))
        return self._settle(rng)

    def _target(self, rng: np.random.Generator) -> FloatArray:
        """Return the centred indicator of a random half of the classes."""
        n_classes = self.problem.n_classes
        half = rng.permutation(n_classes) < max(1, n_classes // 2)
        indicator = half[self.problem.classes].astype(np.float64)
        return np.asarray(indicator - indicator.mean())

    def _climb(self, target: FloatArray, sets: IntArray, others: IntArray, toll: float) -> Any:
        scores = np.zeros(sets.shape[0])
        starts, groups = self.cuts
        climb(self.problem, self.grid, self.work, target, starts, groups, sets, others, toll, scores)
        return scores

    def _draw_cuts(self, rng: np.random.Generator, axes: Any) -> None:
        for axis in axes:
            self._cut_near_middle(rng, int(axis))
        self.cuts = self.grid.start[:, 1].copy(), self.grid.group.copy()

    def _rank_one(self, start: Start, rng: np.random.Generator) -> Solution:
        """Climb the rank-one score from random cuts on up to log2 N axes, several times; settle the best."""
        target = self._target(rng)
        norm = math.sqrt(float(target @ target))
        n = min(self.log2_rows, self.axes.size)
        best: tuple[float, IntArray, Any] | None = None
        best_merit = -math.inf
        for _ in range(max(1, round(12 * start.amount))):
            size = n if rng.random() < 0.5 else int(rng.integers(1, n + 1))
            chosen = np.array(self._some_axes(rng, size), dtype=np.int64)
            self._draw_cuts(rng, chosen)
            score = float(self._climb(target, chosen[None, :], self.axes, 1.5 * norm)[0])
            # many axes fit noise better: weigh the score by what so many cuts would reach on noise
            n_cuts = int((self.grid.n_parts > 1).sum())
            merit = score - norm * math.sqrt(2 * n_cuts * math.log(self.n_rows))
            if best is None or merit > best_merit:
                best_merit = merit
                best = score, self.grid.n_parts.copy(), (self.grid.start[:, 1].copy(), self.grid.group.copy())
            if self.stop[0]:
                break
        assert best is not None
        self.grid.n_parts[:] = best[1]
        self.grid.start[:, 1], self.grid.group[:] = best[2]
        if not self._promising(best[0], int((best[1] > 1).sum()), norm):
            return self.null()
        return self._settle(rng)

    def _promising(self, score: float, n_cuts: int, norm: float) -> bool:
        """Whether a rank-one score may pay for its cuts.

        The two halves it separates shorten the labels by about z^2 / 2, z = score / norm; a third of the
        price is asked for, because cuts still to be moved cost much of the score.
        """
        return 0.5 * (score / norm) ** 2 > 0.3 * n_cuts * 2.0 * math.log(self.n_rows)

    def _screen(self, start: Start, rng: np.random.Generator) -> Solution:
        """Screen all subsets of two to six axes, climb from the best of each size, settle the best."""
        target = self._target(rng)
        norm = math.sqrt(float(target @ target))
        n_used = min(self.n_rows, _SCREEN_ROWS)
        n_words = -(-n_used // 64)
        budget = _SCREEN_WORDS * start.amount
        best = self.null()
        positive = _packed(target[:n_used] > 0)
        share = float((target[:n_used] > 0).mean())
        nothing = np.empty(0, dtype=np.int64)
        sign = np.zeros(self.n_rows, dtype=np.bool_)
        for size in range(2, min(_LARGEST_SUBSET, self.axes.size) + 1):
            n = size
            while n < self.axes.size and math.comb(n + 1, size) * n_words <= budget:
                n += 1
            tried = np.array(self._some_axes(rng, n), dtype=np.int64)
            self._draw_cuts(rng, tried)
            bits = np.empty((n, n_words), dtype=np.uint64)
            for a, axis in enumerate(tried.tolist()):
                sign[:] = False
                if self.problem.categorical[axis]:
                    values = self._values(axis)
                    sizes = np.diff(self.problem.value_start[values.start : values.stop + 1])
                    sign[self.problem.order[axis]] = np.repeat(self.grid.group[values] == 0, sizes)
                else:
                    sign[self.problem.order[axis, : self.grid.start[axis, 1]]] = True
                bits[a] = _packed(sign[:n_used])
            # the true subset need not come first: go further down the list the longer it is, within reason
            n_top = 4 + int(2 * start.amount * math.sqrt(math.comb(n, size)))
            n_top = max(4, min(n_top, int(_CLIMB_ROWS * start.amount) // (size * self.n_rows)))
            top_score = np.empty(n_top)
            top_set = np.zeros((n_top, size), dtype=np.int64)
            prefix = np.zeros((size, n_words), dtype=np.uint64)
            screen(bits, positive, share, top_score, top_set, np.arange(size), prefix)
            sets = tried[top_set[top_score >= 0]]
            if self.stop[0]:
                break
            climbed = self._climb(target, sets, nothing, 0.0)
            for t in np.argsort(-climbed, kind="stable")[:2]:
                if not self._promising(climbed[t], size, norm):
                    break
                self._climb(target, sets[t : t + 1], nothing, 0.0)
                found = self._settle(rng)
                if found.cost < best.cost - EPSILON:
                    best = found
                if self.stop[0]:
                    break
        return best

    def _widen(self, start: Start, rng: np.random.Generator) -> Solution:
        """Cross a grid with random cuts, on new axes and on its own."""
        self.grid.n_parts[:] = start.around.n_parts
        self.grid.start[:] = start.around.start
        self.grid.group[:] = start.around.group
        for axis in self._some_axes(rng, max(1, round(start.amount * self.log2_rows))):
            n_parts = int(self.grid.n_parts[axis])
            if n_parts == 1:
                self._random_parts(rng, axis, int(rng.integers(2, 4)))
                continue
            n_more = min(int(rng.integers(1, 3)), self.grid.start.shape[1] - n_parts)
            if self.problem.categorical[axis]:
                # half of a random group's values to a new group
                groups = self.grid.group[self._values(axis)]
                members = rng.permutation(np.flatnonzero(groups == rng.integers(n_parts)))
                if members.size > 1 and n_more:
                    groups[members[: members.size // 2]] = n_parts
                    self.grid.n_parts[axis] = n_parts + 1
                continue
            bounds = set(self.grid.start[axis, 1:n_parts].tolist())
            bounds |= {self._nearest_bound(axis, int(at)) for at in rng.integers(1, self.n_rows, size=n_more)}
            self.grid.start[axis, 1 : len(bounds) + 1] = sorted(bounds)
            self.grid.n_parts[axis] = len(bounds) + 1
        return self._settle(rng)

    def _drop(self, start: Start, rng: np.random.Generator) -> Solution:
        """Uncut some axes of a grid, and look for better ones."""
        self._load(start.around)
        selected = rng.permutation(np.flatnonzero(start.around.n_parts > 1))
        n_dropped = int(rng.integers(1, max(1, round(start.amount * selected.size)) + 1))
        self.grid.n_parts[selected[:n_dropped]] = 1
        load_parts(self.problem, self.grid, self.work)
        self._polish(rng, self.axes, True)
        return self._settle_as_is(rng)

    def _nudge(self, start: Start, rng: np.random.Generator) -> Solution:
        """Move all bounds of a grid a little at once: what no bound can do alone, two may do together."""
        self._load(start.around)
        reach = 1 + int(0.1 * start.amount * self.n_rows)
        for axis in np.flatnonzero(start.around.n_parts > 1).tolist():
            n_parts = int(start.around.n_parts[axis])
            if self.problem.categorical[axis]:
                groups = self.grid.group[self._values(axis)]
                moved = rng.random(groups.size) < 0.25 * start.amount
                shuffled = np.where(moved, rng.integers(n_parts, size=groups.size), groups)
                if np.unique(shuffled).size == n_parts:
                    groups[:] = shuffled
                continue
            shifts = rng.integers(-reach, reach + 1, size=n_parts - 1)
            bounds = {
                self._nearest_bound(axis, int(at)) for at in start.around.start[axis, 1:n_parts] + shifts
            }
            self.grid.start[axis, 1 : len(bounds) + 1] = sorted(bounds)
            self.grid.n_parts[axis] = len(bounds) + 1
        return self._settle(rng)


def _packed(flags: BoolArray) -> WordArray:
    """Pack flags into 64-bit words, the last one filled up with zeros."""
    n_words = -(-flags.size // 64)
    padded = np.zeros(n_words * 64, dtype=np.bool_)
    padded[: flags.size] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)
