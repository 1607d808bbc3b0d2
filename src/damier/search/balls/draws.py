"""Class shares averaged over many partitions, each searched among the balls of a few centres drawn at random.

One partition has hard borders, and it is one among many that are nearly as short and cut elsewhere. Here
each split chooses among the balls of a few centres, as if there were no others. Partitions drawn so differ,
and what they agree on is left in the average. They are split by either prior in turn: ``"even"`` finds what
is sure, and is better where many labels are wrong; ``"paper"`` is finer, and what one partition finds by
chance the others do not.
"""

from __future__ import annotations

import numpy as np

from damier.criteria.balls import Prior
from damier.search.balls.partition import Graph, partition_by_balls
from damier.search.kernels import CodeArray, FloatArray
from damier.search.run import Run, Stopped

_CENTRES = 16  # 4 to 32 are equally accurate; no more than one wave, or threads would be shared twice


def shares_over_draws(
    graph: Graph, codes: CodeArray, n_classes: int, *, local: bool, n_partitions: int, seed: int, run: Run
) -> tuple[FloatArray, int]:
    """Draw partitions; return the sum of the class shares they give to each node, and how many there are.

    Parameters
    ----------
    graph, codes, n_classes, local
        As in :func:`damier.search.balls.partition.partition_by_balls`.
    n_partitions : int
        How many to draw. There are fewer if the run is stopped.
    seed : int
        Seed of the draws.
    run : Run
        Its threads share the partitions.
    """
    everywhere = np.bincount(codes[codes >= 0], minlength=n_classes)
    total = np.zeros((len(codes), n_classes))
    done = 0

    def shares(k: int) -> FloatArray:
        prior: Prior = "paper" if k % 2 else "even"
        found = partition_by_balls(
            graph, codes, n_classes, local=local, prior=prior, run=run, n_centres=_CENTRES, seed=seed + k
        )
        run.check()
        of_node = np.empty_like(total)
        for group in found.groups:
            known = codes[group.members]
            counts = np.bincount(known[known >= 0], minlength=n_classes)
            counts = counts if counts.any() else everywhere
            of_node[group.members] = counts / counts.sum()
        return of_node

    while done < n_partitions:
        # As many at a time as there are threads: each takes the memory of all the shares.
        try:
            drawn = run.map(shares, range(done, min(n_partitions, done + run.n_threads)))
        except Stopped:
            break
        for one in drawn:
            total += one
        done += len(drawn)
        run.report("averaging partitions", done=done, total=n_partitions)
    return total, done
