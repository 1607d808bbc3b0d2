"""The ordered axis engine: time of the exact search, quality of the cheaper ones, sorting, memory.

    python -m benchmarks.ordered_search              # everything, about a minute
    python -m benchmarks.ordered_search --only quality

Times are processor seconds with warm kernels, except where the clock is what is asked for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.records import Record, run
from damier.criteria import discretization_cost
from damier.search.axis import ordered
from damier.search.axis.costs import interval_penalties
from damier.search.axis.exact import search_exact
from damier.search.axis.greedy import improve, merge_greedily
from damier.search.axis.ordered import discretize
from damier.search.axis.rows import axis_of_values
from damier.search.kernels import factorial_table
from damier.search.run import Run
from tests import naive


def column(n: int, n_classes: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw a float column and its classes: ``smooth`` depends on the column, ``noise`` does not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    if kind == "noise":
        codes = rng.integers(0, n_classes, n)
    elif n_classes == 2:
        codes = rng.random(n) < 1 / (1 + np.exp(-2 * np.sin(2 * x)))
    else:
        codes = np.digitize(x + rng.normal(size=n) * 0.5, np.linspace(-2, 2, n_classes - 1))
    return x, codes.astype(np.int32)


def timed(call: Callable[[], object], clock: Callable[[], float] = time.process_time) -> tuple[float, object]:
    """Best of two runs: seconds, result."""
    seconds = []
    for _ in range(2):
        begin = clock()
        result = call()
        seconds.append(clock() - begin)
    return min(seconds), result


def warm(*_: object) -> None:
    """Compile every kernel on something small."""
    for n_classes in (2, 3):
        x, codes = column(400, n_classes, "smooth")
        for search in ("exact", "greedy"):
            discretize(x, codes, n_classes, search=search)
    few = ordered._MOST_ELEMENTS_TWO, ordered._MOST_ELEMENTS_MANY
    ordered._MOST_ELEMENTS_TWO = ordered._MOST_ELEMENTS_MANY = 1
    for n_classes in (2, 3):
        discretize(*column(400, n_classes, "smooth"), n_classes)
    ordered._MOST_ELEMENTS_TWO, ordered._MOST_ELEMENTS_MANY = few


def exact(record: Record, options: argparse.Namespace) -> None:
    """Time the exact search."""
    sizes = ((10_000, 2), (100_000, 2), (1_000_000, 2), (10_000, 5), (10_000, 10), (20_000, 10))
    for n, n_classes in sizes[:1] if options.quick else sizes:
        for kind in ("smooth", "noise"):
            x, codes = column(n, n_classes, kind)
            seconds, found = timed(lambda: discretize(x, codes, n_classes, search="exact"))  # noqa: B023
            record.row(
                "Exact search of one column",
                ["column", "rows", "classes", "CPU seconds", "parts", "proven"],
                [kind, f"{n:,}", n_classes, f"{seconds:.3f}", len(found.counts), found.optimal],
            )


def quality(record: Record, options: argparse.Namespace) -> None:
    """Count how often each search finds what the dynamic programme over all values finds."""
    problems = 60 if options.quick else 500
    names = ("greedy alone", "greedy, improved", "last 1,000 cuts, improved", "greedy", "auto")
    missed = {name: [] for name in names}
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 2001) if seed % 5 else rng.integers(20, 400))
        n_classes = int(rng.choice([2, 2, 3, 5, 10]))
        x = rng.random(n)
        if seed % 4 == 1:
            codes = (x * rng.integers(2, 30)).astype(int) % n_classes
            codes = np.where(rng.random(n) < rng.uniform(0, 0.5), rng.integers(0, n_classes, n), codes)
        elif seed % 4 == 2:
            codes = rng.integers(0, n_classes, n)
        else:
            odds = np.sin(np.outer(x, rng.uniform(1, 20, n_classes))) * 2
            codes = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
        if seed % 3 == 0:
            x = np.round(x, 2)
        codes = codes.astype(np.int32)
        counts = naive.ordered_counts(x, codes, n_classes)
        # Three times as many parts as found, and some: far beyond them the penalty alone is too much.
        most = min(len(counts), 3 * len(discretize(x, codes, n_classes).counts) + 20)
        least = naive.ordered_optimum(counts, naive.ordered_interval_penalty(n, most))
        axis, _ = axis_of_values(x, codes, n_classes, None)
        table, penalty = factorial_table(n + n_classes), interval_penalties(n, axis.n_elements)
        cuts, parts = merge_greedily(axis.cls, axis.cnt, axis.ptr, n_classes, n_classes - 1, table, penalty)
        alone = np.r_[0, np.sort(cuts[cuts.size + 1 - parts :])]
        better = improve(axis, n_classes - 1, table, penalty, alone)
        last = np.r_[0, np.sort(cuts[-1000:])]
        hierarchy = last[search_exact(axis.coarsened(last), penalty, prove=False).starts]
        hierarchy = improve(axis, n_classes - 1, table, penalty, hierarchy)
        costs = [discretization_cost(axis.part_counts(s)) for s in (alone, better, hierarchy)]
        costs += [discretize(x, codes, n_classes, search=s).cost for s in ("greedy", "auto")]
        for name, cost in zip(names, costs, strict=True):
            missed[name].append(cost - least)
    gaps = {name: np.array(missed[name]) for name in names}
    record.table(
        f"Quality over {problems} problems of up to 2,000 rows",
        ["search", "optimal", "worst excess, nats"],
        [[name, f"{np.mean(gap < 1e-6):.1%}", f"{gap.max():.3f}"] for name, gap in gaps.items()],
    )


def sort(record: Record, options: argparse.Namespace) -> None:
    """Time ten columns, five smooth and five of noise, beside sorting them."""
    n_rows = 100_000 if options.quick else 1_000_000
    for n_classes in (2, 10):
        columns = [column(n_rows, n_classes, ("smooth", "noise")[k % 2], seed=k) for k in range(10)]

        def fit() -> object:
            return Run(2).map(lambda c: discretize(*c, n_classes), columns)  # noqa: B023

        def sorting() -> object:
            return [np.sort(x) for x, _ in columns]  # noqa: B023

        clocks = (time.perf_counter, time.process_time)
        ours, theirs = ([timed(call, clock)[0] for clock in clocks] for call in (fit, sorting))
        record.row(
            f"{n_rows:,} rows x 10 columns, two threads, beside np.sort in one",
            ["classes", "seconds", "np.sort", "CPU seconds", "np.sort", "ratio of CPU seconds"],
            [n_classes, ours[0], theirs[0], ours[1], theirs[1], ours[1] / theirs[1]],
        )


def memory(record: Record, options: argparse.Namespace) -> None:
    """Measure the peak memory of one long column above its input, in a process of its own."""
    n = 1_000_000 if options.quick else 10_000_000
    script = f"""
import json
from benchmarks.ordered_search import column, warm
from damier.search.axis.ordered import discretize
warm()
x, codes = column({n}, 2, "noise")
def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
before = kilobytes("VmRSS")
discretize(x, codes, 2)
print(json.dumps([(kilobytes("VmHWM") - before) * 1024, x.nbytes]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    above, size = json.loads(done.stdout)
    record.row(
        "Memory above the input",
        ["rows of one column of noise", "MiB", "times the column"],
        [f"{n:,}", f"{above / 2**20:.0f}", f"{above / size:.1f}"],
    )


def small(record: Record, options: argparse.Namespace) -> None:
    """Time a table the size of iris."""
    del options
    columns = [column(150, 3, "smooth", seed=k) for k in range(4)]
    columns = [(np.round(x, 1), codes) for x, codes in columns]
    seconds, _ = timed(lambda: [discretize(x, codes, 3) for x, codes in columns])
    record.row(
        "Small table", ["table", "CPU ms"], ["150 rows x 4 columns, 3 classes", f"{1000 * seconds:.1f}"]
    )


if __name__ == "__main__":
    parts = {"exact": exact, "quality": quality, "sort": sort, "memory": memory, "small": small}
    run("ordered_search", __doc__, parts, before=warm)
