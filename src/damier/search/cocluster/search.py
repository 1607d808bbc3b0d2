"""The coclustering search: grow from a coarse start, move values, split clusters, merge past local minima.

Paper 000, sections 4 and 5; formula 5 is the cost. A round splits every cluster of an axis in two where that
costs little, lets values move, does the same on the other axis, then merges the cheapest pairs of clusters
well past the first minimum and keeps the best. The numbers of clusters find themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from damier.search.cocluster.spectral import nearest_centres
from damier.search.cocluster.state import Array, CoclusteringSearch, MergeTree, SparseCounts, TimeUp

Progress = Callable[[str, float, int, int], None]

# share of the cost that a round of each kind must gain for another one, at effort 1
_SMALL_GAINS = (2e-5, 1e-5, 1e-5)
# share of the clusters that is split where splitting all of them no longer pays
_FEW_SPLIT = 0.1
# clusters of the starts, in turn: few serve the sparsest tables best, many show small blocks
_SPECTRAL_CENTRES = (48, 12, 24, 6)
_ANNEALED_CLUSTERS = (8, 16, 2, 4, 32, 3)
# draws of every value while the temperature falls: as many as this makes of entries, within bounds
_ANNEALED_ENTRIES, _FEWEST_SWEEPS, _MOST_SWEEPS = 2_000_000, 20, 150
# from so many entries on one start must do
_LARGE = 400_000
# tables with no more values than this on either side are also searched from single values
_FEW_VALUES = 128


@dataclass(frozen=True, slots=True)
class FoundCoclustering:
    """What the search found; ``ended`` is ``"converged"``, ``"time limit"`` or ``"interrupted"``."""

    row_labels: Array
    column_labels: Array
    row_typicality: Array
    column_typicality: Array
    tree: MergeTree
    n_rounds: int
    ended: str


class _Run:
    """The schedule of one search, with the best state met so far."""

    def __init__(self, search: CoclusteringSearch, effort: float, progress: Progress | None) -> None:
        self.search = search
        self.effort = effort
        self.progress = progress
        self.large = len(search.rows.entries) > _LARGE
        self.n_rounds = 0
        self.best_cost = search.cost()
        self.best_labels = self._labels()

    def _labels(self) -> tuple[Array, Array]:
        return self.search.rows.labels.copy(), self.search.columns.labels.copy()

    def note(self, what: str) -> float:
        """Keep the state if it is the best so far; return its cost."""
        search = self.search
        for axis in search.axes:
            axis.close_gaps()
        cost = search.cost()
        if cost < self.best_cost - 1e-9 * abs(self.best_cost):
            self.best_cost, self.best_labels = cost, self._labels()
        if self.progress is not None:
            self.progress(what, cost, search.rows.n_clusters, search.columns.n_clusters)
        return cost

    def restore(self) -> None:
        """Go back to the best state."""
        self.search.rows.labels, self.search.columns.labels = (labels.copy() for labels in self.best_labels)

    def _move_both(self, passes: int) -> float:
        return self.search.move(0, passes) + self.search.move(1, passes)

    def _polish(self) -> None:
        """Move and merge in turn: each gives the other new chances."""
        for _ in range(2):
            self._move_both(2)
            # far enough past the first minimum to leave it, and not down to one block every time
            self.search.merge(max(100, sum(axis.n_clusters for axis in self.search.axes) // 6))
        self._move_both(2)

    def from_single_values(self) -> None:
        """Start with every value alone and merge."""
        for axis in self.search.axes:
            axis.labels = np.arange(axis.n_values, dtype=np.int32)
        self.search.merge()
        self._polish()
        self.note("merged from single values")

    def _annealed_start(self, n_clusters: int) -> None:
        """Few clusters at random, values drawn again and again while the temperature falls.

        Where the table holds little more than noise, moves that only go down end at once; this finds blocks
        that are barely worth their cost.
        """
        search = self.search
        n_clusters = min(n_clusters, *(max(1, axis.n_values // 2) for axis in search.axes))
        for axis in search.axes:
            axis.labels = search.rng.integers(0, n_clusters, axis.n_values, np.int32)
            axis.close_gaps()
        most = int(_MOST_SWEEPS * min(1.0, self.effort))
        n_sweeps = max(_FEWEST_SWEEPS, min(most, _ANNEALED_ENTRIES // len(search.rows.entries)))
        for temperature in np.linspace(1, 0, n_sweeps):
            for side in (0, 1):
                search.redraw(side, n_clusters, float(temperature))

    def _spectral_start(self, n_centres: int) -> None:
        """Clusters of the singular vectors, then moves."""
        search = self.search
        for axis, points in zip(search.axes, search.vectors(), strict=True):
            axis.labels = nearest_centres(points, min(n_centres, max(1, axis.n_values // 4)), search.rng)
            axis.close_gaps()
        for _ in range(3):
            self._move_both(1)

    def _start(self, number: int) -> float:
        """Set up the better of two starts; return its cost."""
        n_centres = _SPECTRAL_CENTRES[number % len(_SPECTRAL_CENTRES)]
        self._spectral_start(n_centres)
        self._polish()
        cost, labels = self.note("spectral start"), self._labels()
        if self.large and min(axis.n_clusters for axis in self.search.axes) >= n_centres:
            return cost  # every centre is worth its cost: far from noise, and annealing would not go further
        self._annealed_start(_ANNEALED_CLUSTERS[number % len(_ANNEALED_CLUSTERS)])
        self._polish()
        annealed = self.note("annealed start")
        if annealed > cost:
            self.search.rows.labels, self.search.columns.labels = labels
        return min(cost, annealed)

    def grow(self, start: int) -> None:
        """Start, then splits, moves and merges as long as they gain."""
        search = self.search
        cost = self._start(start)
        own_labels, way = self._labels(), 0
        for number in range(1000):
            if way == 0:
                # splits that may cost a little: moves and merges decide
                for side in (0, 1):
                    search.split(side, 1.0 if number < 3 else 0.3)
                    search.move(side, 3)
            elif way == 1:
                # twice as many clusters can be too many: a few at a time
                for side in (0, 1):
                    if side:
                        self._polish()
                    search.split(side, 1.0, share=_FEW_SPLIT)
                    search.move(side, 2)
            else:
                # what splits of one axis at a time do not see
                for side in (0, 1):
                    search.split_along_vectors(side)
                for _ in range(3):
                    self._move_both(1)
            self._polish()
            self.n_rounds += 1
            after = self.note(f"round {number + 1}")
            if after < cost:
                gain, cost, own_labels = cost - after, after, self._labels()
            else:
                gain = 0.0
                search.rows.labels, search.columns.labels = (labels.copy() for labels in own_labels)
            if gain <= _SMALL_GAINS[way] / self.effort * abs(cost):
                way += 1
                if way > 2:
                    break

    def finish(self) -> MergeTree:
        """From the best state: moves until they gain next to nothing, merges down to one block."""
        self.restore()
        try:
            while self._move_both(10) < -2e-6 * abs(self.best_cost):
                pass
        except (TimeUp, KeyboardInterrupt):
            for axis in self.search.axes:
                axis.close_gaps()
        n_kept, tree = self.search.merge()
        while n_kept:
            n_kept, tree = self.search.merge()
        return tree


def search_coclustering(
    table: SparseCounts,
    *,
    seed: int = 0,
    n_threads: int = 1,
    time_limit: float | None = None,
    effort: float = 1.0,
    progress: Progress | None = None,
) -> FoundCoclustering:
    """Find a coclustering of low cost; the numbers of clusters are part of the answer.

    Parameters
    ----------
    table : SparseCounts
    seed : int
    n_threads : int
        Changes the time, not the result.
    time_limit : float, optional
        Seconds after which the best state so far is finished and returned.
    effort : float
        The last rounds must gain less than 1e-5 / effort of the cost for the search to end; more restarts on
        small tables.
    progress : callable, optional
        Called with what was done, its cost and both numbers of clusters.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    search = CoclusteringSearch(table, np.random.default_rng(seed), n_threads, deadline)
    run = _Run(search, effort, progress)
    ended = "converged"
    try:
        try:
            if max(axis.n_values for axis in search.axes) <= _FEW_VALUES:
                run.from_single_values()
            n_entries = len(search.rows.entries)
            n_starts = max(1, round(effort * (min(8, 100_000 // n_entries) + (not run.large))))
            for start in range(n_starts):
                run.grow(start)
        except TimeUp:
            ended = "time limit"
        except KeyboardInterrupt:
            ended = "interrupted"
        if ended != "converged":
            if run.n_rounds == 0:
                search.merge()  # there may be nothing better yet than what this makes of the start
            run.note(ended)
        tree = run.finish()
        row_typicality, column_typicality = search.typicality(0), search.typicality(1)
    finally:
        search.close()
    rows, columns = search.rows.n_clusters, search.columns.n_clusters
    numbers = [_reading_order(tree, 0, rows), _reading_order(tree, 1, columns)]
    kept, gone = tree.kept.copy(), tree.gone.copy()
    for axis, number in enumerate(numbers):
        of_axis = tree.axes == axis
        kept[of_axis], gone[of_axis] = number[kept[of_axis]], number[gone[of_axis]]
    return FoundCoclustering(
        numbers[0][search.rows.labels],
        numbers[1][search.columns.labels],
        row_typicality,
        column_typicality,
        MergeTree(tree.axes, kept, gone, tree.costs),
        run.n_rounds,
        ended,
    )


def _reading_order(tree: MergeTree, axis: int, n_clusters: int) -> Array:
    """Numbers that put clusters which merge early side by side: their places along the tree's leaves."""
    leaves = [[j] for j in range(n_clusters)]
    for s in range(len(tree.axes)):
        if tree.axes[s] == axis:
            leaves[tree.kept[s]] += leaves[tree.gone[s]]
            leaves[tree.gone[s]] = []
    number = np.empty(n_clusters, np.int64)
    number[max(leaves, key=len)] = np.arange(n_clusters)
    return number
