"""How good and how fast the grouping of values is: ``python -m benchmarks.grouping_search [--quick]``.

Quality: 300 random problems of up to 9 values and 2 to 5 classes, against all groupings there are; the same
with the descents alone, which serve larger problems. Time: processor seconds of a column, warm, by number of
values and of classes, for values that share six class profiles, have one each, or have all the same (noise).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import numpy.typing as npt

from benchmarks.records import Record, run
from damier.criteria import grouping_cost, log_bell_table, part_costs
from damier.search.axis.unordered import _Descents, group_values, partition_unordered
from damier.search.axis.values import elements_of_counts

IntArray = npt.NDArray[np.int64]


def all_groupings(n: int) -> IntArray:
    """Return every partition of n elements, one per row: its groups as bits, padded with empty ones."""
    rows = [[0] * n]
    for e in range(n):
        rows = [
            [*row[:group], row[group] | 1 << e, *row[group + 1 :]]
            for row in rows
            for group in range(row.index(0) + 1)  # any group in use, or the first that is not
        ]
    return np.array(rows)


def random_counts(rng: np.random.Generator, n_values: int, n_classes: int) -> IntArray:
    """Return a small table of values x classes with some structure, or none."""
    n_profiles = int(rng.choice([1, 2, 3, 4, n_values]))
    profiles = rng.dirichlet(np.full(n_classes, rng.choice([0.3, 1.0, 3.0])), size=n_profiles)
    rows = 1 + rng.poisson(rng.exponential(rng.choice([2, 10, 40]), n_values))
    return np.array([rng.multinomial(n, profiles[rng.integers(n_profiles)]) for n in rows])


def quality(record: Record, options: argparse.Namespace) -> None:
    """Count how often the optimum is reached, and the worst excess."""
    n_problems = 60 if options.quick else 300
    rng = np.random.default_rng(0)
    partitions = {n: all_groupings(n) for n in range(2, 10)}
    excess: dict[str, list[float]] = {"auto": [], "greedy": [], "descents alone, 3 classes and more": []}
    proven = 0
    for _ in range(n_problems):
        n_values, n_classes = int(rng.integers(2, 10)), int(rng.integers(2, 6))
        counts = random_counts(rng, n_values, n_classes)
        penalty = np.log(n_values) + log_bell_table(n_values, n_values)[1:]
        held = (np.arange(1 << n_values)[:, None] >> np.arange(n_values)) & 1
        groups = partitions[n_values]
        costs = part_costs(held @ counts)[groups].sum(axis=1) + penalty[(groups > 0).sum(axis=1) - 1]
        best = float(costs.min())
        _, cost, optimal = partition_unordered(counts, penalty)
        proven += optimal
        excess["auto"].append(cost - best)
        excess["greedy"].append(partition_unordered(counts, penalty, search="greedy")[1] - best)
        elements = elements_of_counts(counts)
        if n_classes > 2 and len(elements) > 1:
            found = _Descents(elements, penalty[: len(elements)]).run(0, restarts=True)
            excess["descents alone, 3 classes and more"].append(found.cost - best)
    record.table(
        f"{n_problems} problems of 2 to 9 values, 2 to 5 classes, against all groupings",
        ["search", "optimal", "worst excess, nats"],
        [[name, f"{np.mean(np.array(e) < 1e-7):.1%}", f"{max(e):.3f}"] for name, e in excess.items()],
        note=f"auto is proven optimal in {proven / n_problems:.1%}.",
    )


def column(
    rng: np.random.Generator, kind: str, n_values: int, n_rows: int, n_classes: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Draw a column of codes and its classes."""
    shares = rng.dirichlet(np.full(n_values, 0.5))
    codes = rng.choice(n_values, size=n_rows, p=shares).astype(np.int32)
    if kind == "six profiles":
        profiles = rng.dirichlet(np.ones(n_classes), size=6)[rng.integers(0, 6, n_values)]
    elif kind == "one each":
        profiles = rng.dirichlet(np.full(n_classes, 2.0), size=n_values)
    else:
        profiles = np.tile(rng.dirichlet(np.full(n_classes, 5.0)), (n_values, 1))
    limits = np.cumsum(profiles, axis=1)
    classes = np.empty(n_rows, dtype=np.int32)
    for start in range(0, n_rows, 100_000):
        rows = slice(start, start + 100_000)
        classes[rows] = (rng.random((codes[rows].size, 1)) > limits[codes[rows], :-1]).sum(axis=1)
    return codes, classes


COLUMNS = ["values", "rows", "classes", "kind", *("groups", "level", "CPU s") * 2, "proven"]


def timed(
    record: Record,
    kind: str,
    codes: npt.NDArray[np.int32],
    n_values: int,
    classes: npt.NDArray[np.int32],
    n_classes: int,
) -> None:
    """Run both searches on a column."""
    row: list[object] = [f"{n_values:,}", f"{len(codes):,}", n_classes, kind]
    for search in ("greedy", "auto"):
        start = time.process_time()
        found = group_values(codes, n_values, classes, n_classes, search=search)
        spent = time.process_time() - start
        level = max(0.0, 1 - found.cost / found.null_cost)
        row += [found.counts.shape[0], f"{level:.4f}", f"{spent:.3f}"]
        assert abs(found.cost - grouping_cost(found.counts, np.unique(codes).size)) < 1e-6 * found.cost
    record.row("Time of a column: greedy, then auto", COLUMNS, [*row, found.optimal])


def times(record: Record, options: argparse.Namespace) -> None:
    """Time columns of 10 to 100,000 values, and of values that are all distinct."""
    rng = np.random.default_rng(1)
    for n_classes in (2, 5, 10, 100):
        group_values(*_tiny(n_classes))  # compile before the clock starts
        for n_values in (10, 100, 1_000) if options.quick else (10, 100, 1_000, 10_000, 100_000):
            n_rows = int(np.clip(100 * n_values, 10_000, 1_000_000))
            for kind in ("six profiles", "one each", "noise"):
                codes, classes = column(rng, kind, n_values, n_rows, n_classes)
                timed(record, kind, codes, n_values, classes, n_classes)
    n_rows = 100_000 if options.quick else 10_000_000
    for n_classes in (2, 5, 100):
        codes = rng.permutation(n_rows).astype(np.int32)
        classes = rng.integers(0, n_classes, n_rows).astype(np.int32)
        timed(record, "all distinct", codes, n_rows, classes, n_classes)


def _tiny(n_classes: int) -> tuple[npt.NDArray[np.int32], int, npt.NDArray[np.int32], int]:
    codes = np.repeat(np.arange(40, dtype=np.int32), 20)
    return codes, 40, (np.arange(800) * codes % n_classes).astype(np.int32), n_classes


if __name__ == "__main__":
    run("grouping_search", __doc__, {"quality": quality, "times": times})
