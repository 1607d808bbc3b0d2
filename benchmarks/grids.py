"""Supervised grids: patterns, needles, noise, real tables, pairs and growth, beside the paper's figures.

    python -m benchmarks.grids                       # everything at full size: hours
    python -m benchmarks.grids --quick               # a tenth of the draws and sizes: minutes
    python -m benchmarks.grids --only needles pairs  # some sections
    python -m benchmarks.grids --only checkerboards pairs --peers  # Khiops in the same run: ten minutes

Each line gives what was wanted, then what was measured. Times are processor seconds of this process unless
a line says otherwise, after a first small fit has compiled the kernels. Patterns have their cuts anywhere
between 0.3 and 0.7.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from benchmarks.datasets import DataUnavailableError, load
from benchmarks.grids_challenge import ada, challenge
from benchmarks.grids_common import Options, cost_of, say
from benchmarks.khiops_grids import khiops_grid, khiops_pairs
from damier import DataGridClassifier, rank_pairs
from damier.criteria import grid_cost
from damier.search.grid.problem import AxisCodes, found_grid

# --- planted patterns -----------------------------------------------------------------------------


def planted(
    rng: np.random.Generator, n_rows: int, n_columns: int, n_used: int, n_classes: int = 2, n_cuts: int = 1
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw rows whose class is the sum of the parts modulo the classes; also the cost of the planted grid."""
    X = rng.random((n_rows, n_columns))
    parts = np.zeros((n_rows, n_used), dtype=int)
    for k in range(n_used):
        if n_cuts == 1:
            cuts = rng.uniform(0.3, 0.7, 1)
        else:
            cuts = (np.arange(n_cuts) + rng.uniform(0.7, 1.3, n_cuts)) / (n_cuts + 1)
        parts[:, k] = np.searchsorted(np.sort(cuts), X[:, k])
    y = (parts.sum(axis=1) % n_classes).astype(np.int32)
    _, cell_of = np.unique(parts, axis=0, return_inverse=True)
    cells = np.zeros((cell_of.max() + 1, n_classes), dtype=int)
    np.add.at(cells, (cell_of.reshape(-1), y), 1)
    return X, y, grid_cost(cells, n_columns, [n_cuts + 1] * n_used)


def found_all(
    case: tuple[int, ...], n_draws: int, options: Options, seed: int, **settings: float
) -> tuple[int, list[float], list[float]]:
    """Count the draws whose grid costs no more than the planted one and the null model."""
    found, seconds, wall = 0, [], []
    for draw in range(n_draws):
        X, y, wanted = planted(np.random.default_rng((seed, draw)), *case)
        began, clock = time.process_time(), time.perf_counter()
        grid = DataGridClassifier(random_state=draw, n_jobs=options.n_jobs, **settings).fit(X, y).grid_
        seconds.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
        found += grid.cost <= min(wanted, grid.null_cost) + 1e-6
    return found, seconds, wall


def spread(seconds: list[float]) -> str:
    """Write the median and the largest time."""
    return f"{np.median(seconds):.3f} s (max {max(seconds):.3f} s)"


def noise(options: Options) -> None:
    """Count grids found where there is nothing to find."""
    n_draws = options.draws(10_000, 300)
    for n_rows in (100, 1000):
        for n_columns in (1, 2, 10):
            rng = np.random.default_rng((n_rows, n_columns))
            wrong, began = 0, time.process_time()
            for draw in range(n_draws):
                X, y = rng.random((n_rows, n_columns)), rng.integers(2, size=n_rows)
                wrong += (
                    DataGridClassifier(random_state=draw, n_jobs=options.n_jobs).fit(X, y).grid_.level > 0
                )
            each = (time.process_time() - began) / n_draws
            wanted = "under 0.1%, none more with K" if n_rows == 1000 else "few"
            say(
                f"noise, N = {n_rows}, {n_columns} columns, {n_draws} draws",
                wanted,
                f"{wrong / n_draws:.2%} ({wrong}), {1000 * each:.0f} ms each",
            )


def xor(options: Options) -> None:
    """Check XOR from the least number of rows it can be told by, up."""
    n_draws = options.draws(100, 10)
    for dimension, least in ((2, 40), (3, 72), (5, 192)):
        for n_rows in (least, 2 * least, 8 * least):
            found, seconds, _ = found_all((n_rows, dimension, dimension), n_draws, options, 1)
            say(
                f"XOR in {dimension} of {dimension}, N = {n_rows}",
                f"{n_draws} of {n_draws} at most planted or null",
                f"{found} of {n_draws}, {spread(seconds)}",
            )


def checkerboards(options: Options) -> None:
    """Check boards of several parts and three classes."""
    n_draws = options.draws(20, 5)
    for name, case in (
        ("checkerboard 6 x 6, N = 2,000", (2000, 2, 2, 3, 5)),
        ("checkerboard 3 x 3 x 3 in 10, N = 800", (800, 10, 3, 3, 2)),
    ):
        found, seconds, _ = found_all(case, n_draws, options, 2)
        say(name + ", classes mod 3", f"{n_draws} of {n_draws}", f"{found} of {n_draws}, {spread(seconds)}")
    for n_rows in (4000, 1500):
        found, seconds, _ = found_all((n_rows, 10, 10), n_draws, options, 3)
        say(
            f"XOR in 10 of 10, N = {n_rows}",
            f"{n_draws} of {n_draws}, under 3 s each",
            f"{found} of {n_draws}, {spread(seconds)}",
        )
    found, seconds, _ = found_all((2000, 5, 3), n_draws, options, 4)
    X, y, planted_cost = planted(np.random.default_rng((4, 0)), 2000, 5, 3)
    grid = DataGridClassifier(random_state=0).fit(X, y).grid_
    planted_level = 1 - planted_cost / grid.null_cost
    say(
        "XOR in 3 of 5, N = 2,000 (Khiops 16.6 s)",
        f"under 0.3 s, the planted {planted_level:.4f} or more",
        f"{found} of {n_draws}, {spread(seconds)}, level {grid.level:.4f}",
    )
    if options.peers:
        peer = khiops_grid(X, y)
        told = "not installed"
        if peer is not None:
            cut = [(int(name[1:]), bounds) for name, bounds in peer.bounds.items()]
            parts = [np.searchsorted(bounds, X[:, k]) for k, bounds in cut]
            level = 1 - cost_of(parts, y, 5, [len(bounds) + 1 for _, bounds in cut], []) / grid.null_cost
            told = f"{peer.seconds:.1f} s wall, level {level:.4f} (its own measure {peer.level:.4f})"
        say("Khiops' grid predictor on the first of these", "", told)


def needles(options: Options) -> None:
    """Check five columns among many."""
    n_draws = options.draws(20, 10)
    for n_columns, n_rows, least in ((10, 256, 20), (20, 256, 19), (50, 300, 15)):
        found, seconds, _ = found_all((n_rows, n_columns, 5), n_draws, options, 5)
        say(
            f"XOR in 5 of {n_columns}, N = {n_rows}, default settings",
            f"{least} of 20",
            f"{found} of {n_draws}, {spread(seconds)}",
        )
    for n_columns, n_rows in ((10, 256), (20, 256), (50, 300)):
        n_limited = options.draws(20, 3)
        # the search would go on for all of the 30 s: an effort ends it sooner where all is found
        found, _, wall = found_all(
            (n_rows, n_columns, 5), n_limited, options, 5, time_limit=30, effort=9 if n_columns == 50 else 6
        )
        say(
            f"XOR in 5 of {n_columns}, N = {n_rows}, time_limit=30",
            f"{n_limited} of {n_limited}",
            f"{found} of {n_limited}, wall {spread(wall)}",
        )


# --- pairs ----------------------------------------------------------------------------------------


def pairs(options: Options) -> None:
    """Time all pairs of ten columns."""
    n_rows = 2000 if options.quick else 10_000
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((n_rows, 10)), columns=[f"v{k}" for k in range(10)])
    y = ((X["v0"] > 0.4) ^ (X["v1"] > 0.6) ^ (rng.random(n_rows) < 0.1)) | (X["v2"] > 0.9)
    rank_pairs(X[:100], y[:100], n_jobs=options.n_jobs)
    began, clock = time.process_time(), time.perf_counter()
    table = rank_pairs(X, y, n_jobs=options.n_jobs, backend="dict")
    cpu, wall = time.process_time() - began, time.perf_counter() - clock
    first = f"{table['first'][0]} x {table['second'][0]}"
    reference = ", Khiops at N = 10,000 once: 480 s wall, 355 s of processor time"
    if options.peers:
        peer = khiops_pairs(X, y)
        reference = (
            ", Khiops not installed"
            if peer is None
            else f", Khiops {peer:.1f} s wall: {peer / wall:.0f} times"
        )
    say(
        f"45 pairs of 10 columns, N = {n_rows}",
        "60 times Khiops' speed",
        f"{wall:.2f} s wall, {cpu:.2f} s cpu, best {first}{reference}",
    )


# --- real tables ----------------------------------------------------------------------------------


def levels(options: Options) -> None:
    """Compare levels within 30 s with those of a prototype; and figure 1 of the paper."""
    limit = 8.0 if options.quick else 30.0
    for name, wanted in (("letter", 0.536), ("waveform", 0.495), ("satimage", 0.703)):
        data = load(name)
        grid = (
            DataGridClassifier(time_limit=limit, random_state=0, n_jobs=options.n_jobs)
            .fit(data.X, data.y)
            .grid_
        )
        say(
            f"{name}: level within {limit:.0f} s of the clock",
            f"{wanted} or more",
            f"{grid.level:.4f}: {grid}",
        )
    wine = load("wine")
    two = wine.X.iloc[:, [0, 6]]
    grid = DataGridClassifier(random_state=0).fit(two, wine.y).grid_
    codes = np.unique(wine.y, return_inverse=True)[1]
    parts = [np.searchsorted([12.78], two.iloc[:, 0]), np.searchsorted([1.235, 2.18], two.iloc[:, 1])]
    paper = cost_of(parts, codes, 2, [2, 3], [])
    bounds = "; ".join(f"{n} {p.bounds}" for n, p in grid.partitions.items())
    say("wine, V1 x V7 (figure 1)", f"2 x 3, cost {paper:.3f} or less", f"cost {grid.cost:.3f}: {bounds}")


# --- growth ---------------------------------------------------------------------------------------


def growth(options: Options) -> None:
    """Time one start on as many columns as the search ever cuts at once, as rows and columns grow."""
    from damier.search.grid.problem import build_problem
    from damier.search.grid.starts import Climber, Start

    def one_pass(n_rows: int, n_columns: int) -> tuple[float, float]:
        X, y, _ = planted(np.random.default_rng(0), n_rows, n_columns, 2)
        axes = [AxisCodes(np.argsort(np.argsort(c)).astype(np.int32), n_rows, False) for c in X.T]
        began = time.process_time()
        climber = Climber(build_problem(axes, y, 2), np.zeros(1, dtype=np.uint8))
        built = time.process_time()
        assert climber.null().cost == np.float64(climber.grid.cost[0])
        climber.run(Start("halves", (0,), climber.null(), 1.0))
        assert abs(found_grid(axes, y, 2, {}).cost - climber.null().cost) < 1e-6 * n_rows
        return built - began, time.process_time() - built

    def exponent(sizes: list[int], seconds: list[float]) -> float:
        return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])

    one_pass(1000, 2)
    sizes = [1000, 10_000, 100_000] + ([] if options.quick else [1_000_000])
    times = [one_pass(n, 10) for n in sizes]
    shown = ", ".join(f"{n:,}: {a + b:.2f} s" for n, (a, b) in zip(sizes, times, strict=True))
    say(
        "one greedy pass, K = 10, N growing",
        "1e6 x 10 under 60 s",
        f"N^{exponent(sizes, [b for _, b in times]):.2f}; {shown}",
    )
    columns = [2, 10, 30, 100]
    times = [one_pass(10_000, k) for k in columns]
    shown = ", ".join(f"{k}: {a + b:.2f} s" for k, (a, b) in zip(columns, times, strict=True))
    say(
        "one greedy pass, N = 10,000, K growing",
        "O(K^2 N log N)",
        f"K^{exponent(columns, [b for _, b in times]):.2f}; {shown}",
    )


SECTIONS: dict[str, Callable[[Options], None]] = {
    "xor": xor,
    "checkerboards": checkerboards,
    "needles": needles,
    "pairs": pairs,
    "levels": levels,
    "ada": ada,
    "challenge": challenge,
    "growth": growth,
    "noise": noise,
}


def chosen(names: list[str]) -> Iterator[tuple[str, Callable[[Options], None]]]:
    """Yield the sections asked for, all by default."""
    for name, section in SECTIONS.items():
        if not names or name in names:
            yield name, section


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws, smaller sizes")
    parser.add_argument("--peers", action="store_true", help="run Khiops too, where it is installed")
    parser.add_argument("--only", nargs="*", default=[], choices=list(SECTIONS), help="sections to run")
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args()
    options = Options(given.quick, given.peers, given.n_jobs)
    X, y, _ = planted(np.random.default_rng(0), 100, 3, 2)
    began = time.perf_counter()
    DataGridClassifier(effort=0).fit(X, y)
    print(f"first fit: {time.perf_counter() - began:.1f} s, most of it compilation where nothing was cached")
    print(f"{'':<58} | {'wanted':<34} | measured")
    for name, section in chosen(given.only):
        try:
            section(options)
        except DataUnavailableError as error:
            say(name, "", f"skipped: {error}")


if __name__ == "__main__":
    main()
