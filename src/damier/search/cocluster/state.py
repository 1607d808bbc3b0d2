"""State and steps of the coclustering search: move values, split clusters, merge clusters.

Proposals are computed against a frozen state in batches of fixed size and carried out in a fixed order with
exact costs, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

from damier.criteria import log_bell_table, log_factorials
from damier.criteria.special import gammaln
from damier.search.cocluster.kernels import (
    Clusters,
    Profiles,
    SingleArray,
    apply_moves,
    count_profiles,
    fill_cells,
    fill_steps,
    mean_move_costs,
    propose_moves,
    redraw_labels,
    split_clusters,
)
from damier.search.cocluster.merge import MergeTree, Side, fill_pairs, merge_down
from damier.search.cocluster.spectral import principal_sides, singular_vectors
from damier.search.kernels import CodeArray, FloatArray, IntArray
from damier.search.run import Run, Stopped

# Log factorials beyond this come from Stirling's series: 32 MB of table are enough.
_TABLE_LIMIT = 1 << 22
# Single-precision increments kept ready for the move kernel: 32 MB.
_STEP_CELLS = 1 << 23


class Axis:
    """One side of the table: its values, their entries, their clusters.

    Parameters
    ----------
    table : CSR (rows) or CSC (columns) of whole counts
        Every value has at least one entry.
    """

    def __init__(self, table: sparse.csr_array | sparse.csc_array) -> None:
        self.start: IntArray = np.ascontiguousarray(table.indptr, dtype=np.int64)
        self.entries: CodeArray = np.ascontiguousarray(table.indices, dtype=np.int32)
        self.counts: CodeArray = np.ascontiguousarray(table.data, dtype=np.int32)
        self.totals: IntArray = np.add.reduceat(self.counts, self.start[:-1], dtype=np.int64)
        self.n_values = len(self.totals)
        self.labels: CodeArray = np.zeros(self.n_values, np.int32)
        self.lengths: IntArray = np.zeros(self.n_values, np.int64)
        n_entries = len(self.entries)
        # More clusters than this do not pay: their pairs alone would fill the memory allowed.
        self.most_clusters = min(self.n_values, max(256, int(2 * np.sqrt(n_entries))))
        self.log_bell: FloatArray = np.ascontiguousarray(
            log_bell_table(self.n_values, min(self.n_values, self.most_clusters + 64))
        )

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones below the last included."""
        return int(self.labels.max()) + 1

    def close_gaps(self) -> None:
        """Renumber the clusters 0, 1, 2, ... in the order they have."""
        used = np.bincount(self.labels) > 0
        if not used.all():
            self.labels = (np.cumsum(used) - 1).astype(np.int32)[self.labels]


class CoclusteringSearch:
    """State and steps of one search; `search_coclustering` is the way in.

    A step looks at `stop`, and raises `Stopped` where it is set. The state is whole then: what a step did by
    that time, or had before.

    Parameters
    ----------
    table : CSR array of whole counts
        Every row and every column has an entry, and the counts sum to less than 2^31.
    rng : numpy.random.Generator
    run : Run

    Attributes
    ----------
    stop : array of one uint8
        That of `run`, until the search is over: what is done after that, is done to the end.
    """

    def __init__(self, table: sparse.csr_array, rng: np.random.Generator, run: Run) -> None:
        self.rows = Axis(table)
        self.columns = Axis(table.tocsc())
        self.axes = (self.rows, self.columns)
        self.n_instances = int(self.rows.totals.sum())
        self.rng = rng
        self.run = run
        self.stop = run.stop
        longest = self.n_instances + max(self.rows.n_values, self.columns.n_values) + 1
        self.lf: FloatArray = log_factorials(min(_TABLE_LIMIT, longest))
        n_entries = len(self.rows.entries)
        # Profiles of the axis at work; one pair of arrays serves both.
        self.profile_cluster: CodeArray = np.empty(n_entries, np.int32)
        self.profile_count: CodeArray = np.empty(n_entries, np.int32)
        fixed = np.log(self.rows.n_values) + np.log(self.columns.n_values)
        fixed -= gammaln(self.rows.totals + 1.0).sum() + gammaln(self.columns.totals + 1.0).sum()
        self._fixed_cost = float(fixed)
        self._vectors: tuple[SingleArray, SingleArray] | None = None

    @property
    def labels(self) -> tuple[CodeArray, CodeArray]:
        """Copies of the clusters of the rows and of the columns."""
        return self.rows.labels.copy(), self.columns.labels.copy()

    @labels.setter
    def labels(self, labels: tuple[CodeArray, CodeArray]) -> None:
        for axis, of_axis in zip(self.axes, labels, strict=True):
            axis.labels = of_axis.copy()

    def end(self) -> None:
        """Say that the search is over: what is done from now on is done to the end."""
        self.run.stop_clock()
        self.stop = np.zeros(1, dtype=np.uint8)

    def _check(self) -> None:
        if self.stop[0]:
            raise Stopped

    # ----- parts of the cost

    def cells(self) -> CodeArray:
        """Return the instances of each block: row clusters x column clusters."""
        n_rows, n_columns = self.rows.n_clusters, self.columns.n_clusters
        self._count_profiles(0)
        T = np.zeros((n_columns, n_rows), np.int32)
        fill_cells(self._profiles(0), T)
        return np.ascontiguousarray(T.T)

    def cost(self) -> float:
        """Price the state by formula 5 of Boullé (2011)."""
        T = self.cells()
        J1, J2 = T.shape
        n = self.n_instances
        cost = self._fixed_cost + self.rows.log_bell[J1] + self.columns.log_bell[J2]
        cost += gammaln(n + J1 * J2) - gammaln(J1 * J2) - gammaln(T + 1.0).sum()
        for axis, instances in ((self.rows, T.sum(1)), (self.columns, T.sum(0))):
            values = np.bincount(axis.labels)
            cost += (gammaln(instances + values) - gammaln(values)).sum()
        return float(cost)

    def _size_costs(self, axis: int, most: int) -> FloatArray:
        """Return the terms of the number of clusters of an axis, 0 .. ``most``, the other axis as it is."""
        n_clusters = np.arange(most + 1)
        per_cluster = self.axes[1 - axis].n_clusters
        n_cells = np.maximum(n_clusters * float(per_cluster), 1.0)
        costs = gammaln(self.n_instances + n_cells) - gammaln(n_cells)
        log_bell = self.axes[axis].log_bell
        costs[: len(log_bell)] += log_bell[: most + 1]
        costs[len(log_bell) :] = np.inf
        costs[0] = 0.0
        return np.asarray(costs)

    # ----- threads

    def _in_parts(self, n: int, work: Callable[[int, int], None], smallest: int = 32) -> None:
        """Do ``work(first, last)`` over 0 .. n, in parts shared among the threads.

        The work must come out the same when it is done twice.
        """
        n_parts = min(4 * self.run.n_threads, n // smallest)
        if self.run.n_threads > 1 and n_parts > 1 and not self.run.stop[0]:
            cuts = [n * i // n_parts for i in range(n_parts + 1)]
            try:
                self.run.map(lambda part: work(*part), list(pairwise(cuts)))
                return
            except Stopped:
                pass  # the step is finished all the same
        work(0, n)

    # ----- steps

    def _count_profiles(self, axis: int) -> None:
        this, other = self.axes[axis], self.axes[1 - axis]
        n_other = other.n_clusters

        def work(first: int, last: int) -> None:
            count_profiles(
                first,
                last,
                this.start,
                this.entries,
                this.counts,
                other.labels,
                n_other,
                this.lengths,
                self.profile_cluster,
                self.profile_count,
            )

        self._in_parts(this.n_values, work, smallest=256)

    def _profiles(self, axis: int) -> Profiles:
        """Return the values of an axis as the kernels take them, their profiles as last counted."""
        this = self.axes[axis]
        return Profiles(
            this.start,
            this.lengths,
            self.profile_cluster,
            self.profile_count,
            this.totals,
            this.labels,
            self.stop,
        )

    def _clusters(self, axis: int, n_slots: int) -> tuple[Profiles, Clusters]:
        """Count profiles and cells of an axis, with space for ``n_slots`` clusters."""
        self._count_profiles(axis)
        values = self._profiles(axis)
        T = np.zeros((self.axes[1 - axis].n_clusters, n_slots), np.int32)
        fill_cells(values, T)
        N = T.sum(axis=0, dtype=np.int64)
        m = np.bincount(values.labels, minlength=n_slots)
        return values, Clusters(T, N, m, self._size_costs(axis, n_slots + 1), self.lf)

    def move(self, axis: int, passes: int, spare: int = 16) -> float:
        """Let the values of an axis move while the cost falls; return the cost change.

        The first pass and the one that ends a converged phase look at every value, those between at the third
        that is nearest to moving. Up to ``spare`` clusters may be opened.
        """
        self._check()
        this = self.axes[axis]
        n_live = this.n_clusters
        n_slots = max(n_live, min(n_live + spare, this.most_clusters))
        values, clusters = self._clusters(axis, n_slots + -n_slots % 8)  # whole vectors
        T, m = clusters.T, clusters.m
        n_steps = max(1, min(8, _STEP_CELLS // T.size))
        steps = np.empty((n_steps, *T.shape), np.float32)
        self._in_parts(len(T), lambda first, last: fill_steps(first, last, T, self.lf, steps))
        proposals = np.empty(this.n_values, np.int32)
        margins = np.full(this.n_values, np.inf, np.float32)
        total = 0.0
        everything = True
        for _ in range(passes):
            order = self.rng.permutation(this.n_values)
            if not everything:
                near = np.quantile(margins, 2 / 3)
                order = order[margins[order] >= near]
            batch = max(128, len(order) // 32)
            n_moved = 0
            for begin in range(0, len(order), batch):
                self._check()
                end = min(len(order), begin + batch)
                empty = np.flatnonzero(m == 0)
                open_slot = int(empty[0]) if len(empty) and n_live < len(this.log_bell) - 1 else -1

                def propose(
                    first: int,
                    last: int,
                    order: IntArray = order,
                    begin: int = begin,
                    slots: tuple[int, int] = (open_slot, n_live),
                ) -> None:
                    first, last = begin + first, begin + last
                    propose_moves(order, first, last, values, clusters, steps, *slots, proposals, margins)

                self._in_parts(end - begin, propose)
                change, moved, n_live = apply_moves(
                    order, begin, end, proposals, values, clusters, steps, n_live
                )
                total += change
                n_moved += moved
            if n_moved == 0:
                if everything:
                    break
                everything = True
            else:
                everything = False
        this.close_gaps()
        return total

    def redraw(self, axis: int, most: int, temperature: float) -> None:
        """Draw the cluster of every value of an axis again, the cheaper the likelier, among ``most``."""
        self._check()
        this = self.axes[axis]
        n_live = this.n_clusters
        values, clusters = self._clusters(axis, max(most, n_live))
        noise = self.rng.gumbel(size=(this.n_values, len(clusters.N)))
        noise *= temperature
        redraw_labels(self.rng.permutation(this.n_values), values, clusters, n_live, noise)
        this.close_gaps()

    def typicality(self, axis: int) -> FloatArray:
        """Return the mean cost of moving each value of an axis to another cluster; 0 if there is none."""
        this = self.axes[axis]
        values, clusters = self._clusters(axis, this.n_clusters)
        found = np.zeros(this.n_values)
        if this.n_clusters > 1:
            mean_move_costs(values, clusters, found)
        return found

    def split(self, axis: int, slack: float, share: float = 1.0, tries: int = 2, passes: int = 4) -> int:
        """Split the clusters of an axis in two where it costs little; return how many were split.

        A split may raise the cost by ``slack`` times the term of one more cluster: moves and merges decide.
        No more than a ``share`` of the clusters are split, those where it costs least.
        """
        this = self.axes[axis]
        self._check()
        J = this.n_clusters
        values, clusters = self._clusters(axis, J)
        orders = np.stack([np.lexsort((self.rng.random(this.n_values), this.labels)) for _ in range(tries)])
        deals = self.rng.integers(0, 2, (tries, this.n_values), np.int8)
        start = np.zeros(J + 1, np.int64)
        np.cumsum(np.bincount(this.labels, minlength=J), out=start[1:])
        sides = np.zeros(this.n_values, np.int8)
        changes = np.full(J, np.inf)

        def work(first: int, last: int) -> None:
            split_clusters(first, last, start, orders, deals, values, clusters, passes, sides, changes)

        self._in_parts(J, work, smallest=1)
        self._check()
        size = self._size_costs(axis, min(2 * J, this.most_clusters))
        n_split = 0
        for j in np.argsort(changes, kind="stable")[: math.ceil(share * J)]:
            if J + n_split + 1 >= len(size):
                break
            dearer = size[J + n_split + 1] - size[J + n_split]
            if not changes[j] + dearer < slack * dearer:
                break
            members = orders[0, start[j] : start[j + 1]]
            this.labels[members[sides[members] == 1]] = J + n_split
            n_split += 1
        return n_split

    def vectors(self) -> tuple[SingleArray, SingleArray]:
        """Return rows and columns placed by the table's singular vectors, worked out once."""
        if self._vectors is None:
            rows = self.rows
            self._vectors = singular_vectors(
                rows.start, rows.entries, rows.counts, self.columns.n_values, self.rng, self.run
            )
        return self._vectors

    def split_along_vectors(self, axis: int) -> None:
        """Split every cluster of an axis along its principal direction, as far as clusters are allowed."""
        this = self.axes[axis]
        n_clusters = this.n_clusters
        sides = principal_sides(self.vectors()[axis], this.labels, self.rng, self.run)
        allowed = this.labels < this.most_clusters - n_clusters
        this.labels = np.where(sides & allowed, this.labels + n_clusters, this.labels).astype(np.int32)
        this.close_gaps()

    def merge(self, patience: int | None = None) -> tuple[int, MergeTree]:
        """Merge the cheapest pairs, keep the best state met; (merges kept, all merges that were tried).

        Without ``patience`` the merges go down to one block; else they end after that many without a new
        best.
        """
        T = self.cells()
        lines = (T, T.T.copy())
        most = sum(T.shape) - 2
        rows, columns = (
            self._merge_side(axis, of_axis) for axis, of_axis in zip(self.axes, lines, strict=True)
        )
        self._check()
        tree = MergeTree(
            np.zeros(most, np.int8), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
        )
        n_steps = merge_down(
            (rows, columns),
            self.n_instances,
            most if patience is None else patience,
            self.lf,
            tree,
            self.stop,
        )
        axes, kept, gone, costs = tree
        tree = MergeTree(axes[:n_steps], kept[:n_steps], gone[:n_steps], costs[:n_steps])
        totals = np.concatenate([[0.0], tree.costs])
        # Of equal costs the one with fewer clusters.
        best = n_steps - int(np.argmin(totals[::-1]))
        for number, axis in enumerate(self.axes):
            axis.labels = merged_labels(tree, number, best, axis.n_clusters)[axis.labels]
            axis.close_gaps()
        return best, tree

    def _merge_side(self, axis: Axis, T: CodeArray) -> Side:
        """Prepare the clusters of an axis, the lines of ``T``, for merging."""
        J = len(T)
        N, m = T.sum(axis=1, dtype=np.int64), np.bincount(axis.labels)
        side = Side(T, N, m, np.empty((J, J)), np.arange(J), np.empty(J, np.int64), axis.log_bell)
        # Lines grow shorter: each part takes every so manieth one.
        step = 4 * self.run.n_threads

        def work(first: int, last: int) -> None:
            for i in range(first, last):
                fill_pairs(i, step, side, self.lf, self.stop)

        self._in_parts(step, work, smallest=1)
        return side


def merged_labels(tree: MergeTree, axis: int, n_steps: int, n_clusters: int) -> CodeArray:
    """Return where each cluster of an axis is after ``n_steps`` merges: the number of the cluster kept."""
    into = np.arange(n_clusters, dtype=np.int32)
    for s in range(n_steps - 1, -1, -1):
        if tree.axes[s] == axis:
            into[tree.gone[s]] = into[tree.kept[s]]
    return into
