"""The ordered axis engine: time of the exact search, quality of the cheaper ones, sorting, memory.

    python -m benchmarks.ordered_search              # everything, about a minute
    python -m benchmarks.ordered_search quality      # one of: exact, quality, sort, memory, small

Times are processor seconds with warm kernels, except where the clock is what is asked for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from damier.criteria import discretization_cost
from damier.search.axis import ordered
from damier.search.axis.costs import interval_penalties
from damier.search.axis.exact import search_exact
from damier.search.axis.greedy import improve, merge_greedily
from damier.search.axis.ordered import discretize
from damier.search.axis.rows import axis_of_values
from damier.search.kernels import factorial_table
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


def warm() -> None:
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


def exact() -> None:
    """Print the times of the exact search."""
    print("\nexact search            rows  classes  seconds  parts  proven   wanted")
    wanted = {(100_000, 2, "smooth"): "0.3", (100_000, 2, "noise"): "2", (10_000, 10, "noise"): "0.5"}
    for n, n_classes in ((10_000, 2), (100_000, 2), (1_000_000, 2), (10_000, 5), (10_000, 10), (20_000, 10)):
        for kind in ("smooth", "noise"):
            x, codes = column(n, n_classes, kind)
            seconds, found = timed(lambda: discretize(x, codes, n_classes, search="exact"))  # noqa: B023
            goal = wanted.get((n, n_classes, kind), "")
            print(
                f"  {kind:8} {n:18,} {n_classes:8} {seconds:8.3f} {len(found.counts):6}"
                f"  {found.optimal!s:6} {goal:>8}"
            )


def quality(problems: int = 500) -> None:
    """Print how often each search finds what the dynamic programme over all values finds."""
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
    print(f"\nquality over {problems} problems of up to 2,000 rows    optimal   worst miss (nats)")
    for name in names:
        gaps = np.array(missed[name])
        print(f"  {name:42} {np.mean(gaps < 1e-6):9.1%} {gaps.max():19.3f}")


def sort() -> None:
    """Print the time of ten columns of a million rows beside that of sorting them."""
    print("\n1,000,000 rows x 10 columns (5 smooth, 5 noise), auto, 2 threads")
    for n_classes in (2, 10):
        columns = [column(1_000_000, n_classes, ("smooth", "noise")[k % 2], seed=k) for k in range(10)]

        def fit() -> None:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda c: discretize(*c, n_classes), columns))  # noqa: B023

        work, _ = timed(fit)
        sorting_work, _ = timed(lambda: [np.sort(x) for x, _ in columns])  # noqa: B023
        seconds, _ = timed(fit, time.perf_counter)
        sorting, _ = timed(lambda: [np.sort(x) for x, _ in columns], time.perf_counter)  # noqa: B023
        print(
            f"  {n_classes:2} classes: {seconds:.2f} s; np.sort in one thread {sorting:.2f} s;"
            f" ratio {seconds / sorting:.1f}"
            + (" (wanted: 4 at most)" if n_classes == 2 else "")
            + f"; processor time {work:.2f} s and {sorting_work:.2f} s,"
            + f" ratio on two idle cores {work / 2 / sorting_work:.1f}"
        )


def memory(n: int = 10_000_000) -> None:
    """Print the peak memory of one long column above its input, in a process of its own."""
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
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    above, size = json.loads(told)
    print(
        f"\n{n:,} rows, one column of noise: {above / 2**20:.0f} MiB above the input,"
        f" {above / size:.1f} times the column (wanted: 4 at most)"
    )


def small() -> None:
    """Print the time of a table the size of iris."""
    columns = [column(150, 3, "smooth", seed=k) for k in range(4)]
    columns = [(np.round(x, 1), codes) for x, codes in columns]
    seconds, _ = timed(lambda: [discretize(x, codes, 3) for x, codes in columns])
    print(f"\n150 rows x 4 columns, 3 classes: {seconds * 1000:.1f} ms")


if __name__ == "__main__":
    warm()
    tasks = {task.__name__: task for task in (exact, quality, sort, memory, small)}
    for name in sys.argv[1:] or tasks:
        tasks[name]()
