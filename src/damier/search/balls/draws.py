"""Class shares averaged over many partitions, each searched among the balls of a few centres drawn at random.

One partition has hard borders, and it is one among many that are nearly as short and cut elsewhere. Here
each split chooses among the balls of a few centres, as if there were no others. Partitions drawn so differ,
and what they agree on is left in the average. They are split by either prior in turn: ``"even"`` finds what
is sure, and is better where many labels are wrong; ``"paper"`` is finer, and what one partition finds by
chance the others do not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

import numpy as np

from damier.search.balls.partition import Graph, partition_by_balls
from damier.search.balls.waves import CodeArray, FloatArray

_CENTRES = 16  # 4 to 32 are equally accurate


@dataclass(frozen=True, slots=True)
class DrawnShares:
    """Sum over partitions of the class shares of each node's group, and how many partitions there were.

    ``complete`` is False when there was no time for all that were asked for.
    """

    total: FloatArray
    n_partitions: int
    complete: bool


def shares_over_draws(
    graph: Graph,
    codes: CodeArray,
    n_classes: int,
    *,
    local: bool,
    n_partitions: int,
    seed: int,
    n_threads: int = 1,
    time_limit: float | None = None,
) -> DrawnShares:
    """Draw partitions and add up the class shares they give to each node.

    Parameters
    ----------
    graph, codes, n_classes, local
        As in :func:`damier.search.balls.partition.partition_by_balls`.
    n_partitions : int
        How many to draw.
    seed : int
        Where the draws start from.
    n_threads : int, default=1
        Threads that share the partitions; the result does not depend on it.
    time_limit : float or None, default=None
        Seconds after which, as after Ctrl-C, no further partition is begun.
    """
    end = np.inf if time_limit is None else monotonic() + time_limit
    everywhere = np.bincount(codes[codes >= 0], minlength=n_classes)
    total = np.zeros((len(codes), n_classes))
    done = 0

    def shares(k: int) -> FloatArray | None:
        found = partition_by_balls(
            graph,
            codes,
            n_classes,
            local=local,
            prior="paper" if k % 2 else "even",
            n_centres=_CENTRES,
            seed=seed + k,
        )
        if not found.complete:
            return None
        of_node = np.empty_like(total)
        for group in found.groups:
            known = codes[group.members]
            counts = np.bincount(known[known >= 0], minlength=n_classes)
            counts = counts if counts.any() else everywhere
            of_node[group.members] = counts / counts.sum()
        return of_node

    interrupted = False
    with ThreadPoolExecutor(max_workers=max(1, n_threads)) as pool:
        while done < n_partitions and not interrupted and monotonic() < end:
            some = range(done, min(n_partitions, done + n_threads))
            try:
                drawn = [shares(done)] if len(some) == 1 else list(pool.map(shares, some))
            except KeyboardInterrupt:
                break
            for one in drawn:
                if one is None:
                    interrupted = True
                    break
                total += one
                done += 1
    return DrawnShares(total, done, done == n_partitions)
