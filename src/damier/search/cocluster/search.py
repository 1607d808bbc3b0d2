"""The coclustering search: grow from a coarse start, move values, split clusters, merge past local minima.

The cost is formula 5 of Boullé (2011). A round splits every cluster of an axis in two where that costs
little, lets values move, does the same on the other axis, then merges the cheapest pairs of clusters well
past the first minimum and keeps the best. The numbers of clusters find themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from damier.search.cocluster.merge import MergeTree
from damier.search.cocluster.spectral import nearest_centres
from damier.search.cocluster.state import CoclusteringSearch
from damier.search.kernels import FloatArray, IntArray
from damier.search.run import Run, Stopped

# Effort where a round of each kind must gain these shares of the cost for another one; each step doubles.
_USUAL_EFFORT = 4
_SMALL_GAINS = (2e-5, 1e-5, 1e-5)
# Share of the clusters that is split where splitting all of them no longer pays.
_FEW_SPLIT = 0.1
# Clusters of the starts, in turn: few serve the sparsest tables best, many show small blocks.
_SPECTRAL_CENTRES = (48, 12, 24, 6)
_ANNEALED_CLUSTERS = (8, 16, 2, 4, 32, 3)
# Draws of every value while the temperature falls: as many as this makes of entries, within bounds.
_ANNEALED_ENTRIES, _FEWEST_SWEEPS, _MOST_SWEEPS = 2_000_000, 20, 150
# From so many entries on one start must do.
_LARGE = 400_000
# Tables with no more values than this on either side are also searched from single values.
_FEW_VALUES = 128


@dataclass(frozen=True, slots=True)
class FoundCoclustering:
    """Clusters of each row and column, how typical each is of its cluster, the blocks and the merges."""

    labels: tuple[IntArray, IntArray]
    typicality: tuple[FloatArray, FloatArray]
    cells: IntArray
    tree: MergeTree
    n_rounds: int


class _Schedule:
    """The order of the steps of one search, with the best state met so far."""

    def __init__(self, search: CoclusteringSearch, factor: float) -> None:
        self.search = search
        self.factor = factor
        self.n_entries = len(search.rows.entries)
        self.large = self.n_entries > _LARGE
        self.n_rounds = 0
        self.null_cost = self.best_cost = search.cost()
        self.best_labels = search.labels

    def note(self, what: str) -> float:
        """Keep the state if it is the best so far; return its cost."""
        search = self.search
        for axis in search.axes:
            axis.close_gaps()
        cost = search.cost()
        if cost < self.best_cost - 1e-9 * abs(self.best_cost):
            self.best_cost, self.best_labels = cost, search.labels
        level = max(0.0, 1.0 - self.best_cost / self.null_cost) if self.null_cost > 0 else 0.0
        sizes = f"{search.rows.n_clusters:,} x {search.columns.n_clusters:,} clusters"
        search.run.report(f"{what}: {sizes}", cost=self.best_cost, level=level, done=self.n_rounds)
        return cost

    def _move_both(self, passes: int) -> float:
        return self.search.move(0, passes) + self.search.move(1, passes)

    def _polish(self) -> None:
        """Move and merge in turn: each gives the other new chances."""
        for _ in range(2):
            self._move_both(2)
            # Far enough past the first minimum to leave it, and not down to one block every time.
            self.search.merge(max(100, sum(axis.n_clusters for axis in self.search.axes) // 6))
        self._move_both(2)

    def _from_single_values(self) -> None:
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
        most = int(_MOST_SWEEPS * min(1.0, self.factor))
        n_sweeps = max(_FEWEST_SWEEPS, min(most, _ANNEALED_ENTRIES // self.n_entries))
        for temperature in np.linspace(1, 0, n_sweeps):
            for side in (0, 1):
                search.redraw(side, n_clusters, float(temperature))

    def _spectral_start(self, n_centres: int) -> None:
        """Clusters of the singular vectors, then moves."""
        search = self.search
        for axis, points in zip(search.axes, search.vectors(), strict=True):
            axis.labels = nearest_centres(
                points, min(n_centres, max(1, axis.n_values // 4)), search.rng, search.run
            )
            axis.close_gaps()
        for _ in range(3):
            self._move_both(1)

    def _start(self, number: int) -> float:
        """Set up the better of two starts; return its cost."""
        n_centres = _SPECTRAL_CENTRES[number % len(_SPECTRAL_CENTRES)]
        self._spectral_start(n_centres)
        self._polish()
        cost, labels = self.note("spectral start"), self.search.labels
        if self.large and min(axis.n_clusters for axis in self.search.axes) >= n_centres:
            return cost  # every centre is worth its cost: far from noise, and annealing would not go further
        self._annealed_start(_ANNEALED_CLUSTERS[number % len(_ANNEALED_CLUSTERS)])
        self._polish()
        annealed = self.note("annealed start")
        if annealed > cost:
            self.search.labels = labels
        return min(cost, annealed)

    def _grow(self, start: int) -> None:
        """Start, then splits, moves and merges as long as they gain."""
        search = self.search
        cost = self._start(start)
        own_labels, way = search.labels, 0
        for number in range(1000):
            if way == 0:
                # Splits that may cost a little: moves and merges decide.
                for side in (0, 1):
                    search.split(side, 1.0 if number < 3 else 0.3)
                    search.move(side, 3)
            elif way == 1:
                # Twice as many clusters can be too many: a few at a time.
                for side in (0, 1):
                    if side:
                        self._polish()
                    search.split(side, 1.0, share=_FEW_SPLIT)
                    search.move(side, 2)
            else:
                # What splits of one axis at a time do not see.
                for side in (0, 1):
                    search.split_along_vectors(side)
                for _ in range(3):
                    self._move_both(1)
            self._polish()
            self.n_rounds += 1
            after = self.note(f"round {number + 1}")
            if after < cost:
                gain, cost, own_labels = cost - after, after, search.labels
            else:
                gain = 0.0
                search.labels = own_labels
            if gain <= _SMALL_GAINS[way] / self.factor * abs(cost):
                way += 1
                if way > 2:
                    break

    def search_all(self) -> None:
        """Search from as many starts as the table's size and the effort allow."""
        if max(axis.n_values for axis in self.search.axes) <= _FEW_VALUES:
            self._from_single_values()
        n_starts = min(8, 100_000 // self.n_entries) + (not self.large)
        for start in range(max(1, round(self.factor * n_starts))):
            self._grow(start)

    def finish(self) -> MergeTree:
        """From the best state: moves until they gain next to nothing, merges down to one block."""
        self.search.labels = self.best_labels
        try:
            while not self.search.run.stopped and self._move_both(10) < -2e-6 * abs(self.best_cost):
                pass
        except Stopped:
            for axis in self.search.axes:
                axis.close_gaps()
        self.search.end()
        n_kept, tree = self.search.merge()
        while n_kept:
            n_kept, tree = self.search.merge()
        return tree


def search_coclustering(
    table: sparse.csr_array, *, seed: int = 0, effort: int | None = None, run: Run
) -> FoundCoclustering:
    """Find a coclustering of low cost; the numbers of clusters are part of the answer.

    Parameters
    ----------
    table : CSR array of whole counts
        Every row and every column has an entry, and the counts sum to less than 2^31.
    seed : int
    effort : int, optional
        4 by default. With each step up, the gains at which the search ends are halved and small tables are
        searched from twice as many starts.
    run : Run
        When it is stopped, the best state so far is finished and returned.
    """
    search = CoclusteringSearch(table, np.random.default_rng(seed), run)
    # Beyond some effort only the clock ends the search; the power is still to be a number.
    effort = _USUAL_EFFORT if effort is None else min(effort, 100)
    schedule = _Schedule(search, 2.0 ** (effort - _USUAL_EFFORT))
    try:
        schedule.search_all()
    except Stopped:
        search.end()
        if schedule.n_rounds == 0:
            search.merge()  # there may be nothing better yet than what this makes of the start
        schedule.note("stopped")
    tree = schedule.finish()
    typicality = search.typicality(0), search.typicality(1)
    found = search.cells()
    cells = np.empty(found.shape, np.int64)
    kept, gone = tree.kept.copy(), tree.gone.copy()
    labels, order = [], []
    for number, axis in enumerate(search.axes):
        places = _reading_order(tree, number, axis.n_clusters)
        labels.append(places[axis.labels])
        order.append(places)
        of_axis = tree.axes == number
        kept[of_axis], gone[of_axis] = places[kept[of_axis]], places[gone[of_axis]]
    cells[np.ix_(*order)] = found
    return FoundCoclustering(
        (labels[0], labels[1]), typicality, cells, tree._replace(kept=kept, gone=gone), schedule.n_rounds
    )


def _reading_order(tree: MergeTree, axis: int, n_clusters: int) -> IntArray:
    """Return numbers that make clusters which merge early neighbours: places along the tree's leaves."""
    leaves = [[j] for j in range(n_clusters)]
    for s in range(len(tree.axes)):
        if tree.axes[s] == axis:
            leaves[tree.kept[s]] += leaves[tree.gone[s]]
            leaves[tree.gone[s]] = []
    places = np.empty(n_clusters, np.int64)
    places[max(leaves, key=len)] = np.arange(n_clusters)
    return places
