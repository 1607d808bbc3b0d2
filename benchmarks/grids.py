"""Supervised grids: patterns, needles, noise, real tables, pairs and growth, beside what others found.

    python -m benchmarks.grids                       # everything at full size: hours
    python -m benchmarks.grids --quick               # a tenth of the draws and sizes: minutes
    python -m benchmarks.grids --only needles pairs  # some sections
    python -m benchmarks.grids --only checkerboards pairs --peers  # Khiops in the same run: ten minutes

Times are CPU seconds of this process unless a line says otherwise, after a first small fit has compiled the
kernels. Patterns have their cuts anywhere between 0.3 and 0.7.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from benchmarks.datasets import load
from benchmarks.grids_challenge import ada, challenge
from benchmarks.grids_common import cost_of, draws
from benchmarks.khiops_grids import khiops_grid, khiops_pairs
from benchmarks.records import Record, run
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
    case: tuple[int, ...], n_draws: int, options: argparse.Namespace, seed: int, **settings: float
) -> tuple[int, list[float], list[float]]:
    """Count the draws whose grid costs no more than the planted one and the null model."""
    found, seconds, wall = 0, [], []
    for draw in range(n_draws):
        X, y, cost = planted(np.random.default_rng((seed, draw)), *case)
        began, clock = time.process_time(), time.perf_counter()
        grid = DataGridClassifier(random_state=draw, n_jobs=options.n_jobs, **settings).fit(X, y).grid_
        seconds.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
        found += grid.cost <= min(cost, grid.null_cost) + 1e-6
    return found, seconds, wall


def planted_row(
    record: Record, title: str, problem: str, found: int, seconds: list[float], beside: str = ""
) -> None:
    """Write how many draws cost no more than the planted grid, and the median and the largest time."""
    times = f"{np.median(seconds):.3f} s (max {max(seconds):.3f} s)"
    record.figure(title, problem, f"{found} of {len(seconds)}, {times}", beside)


def noise(record: Record, options: argparse.Namespace) -> None:
    """Count grids found where there is nothing to find."""
    n_draws = draws(options, 10_000, 300)
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
            record.row(
                "Noise",
                ["rows", "columns", "draws", "grids found", "ms per fit"],
                [n_rows, n_columns, n_draws, f"{wrong} ({wrong / n_draws:.2%})", f"{1000 * each:.0f}"],
            )


def xor(record: Record, options: argparse.Namespace) -> None:
    """Check XOR from the least number of rows that shows it, up."""
    n_draws = draws(options, 100, 10)
    for dimension, least in ((2, 40), (3, 72), (5, 192)):
        for n_rows in (least, 2 * least, 8 * least):
            found, seconds, _ = found_all((n_rows, dimension, dimension), n_draws, options, 1)
            planted_row(
                record,
                "XOR in all columns",
                f"XOR in {dimension} of {dimension}, N = {n_rows}",
                found,
                seconds,
            )


def checkerboards(record: Record, options: argparse.Namespace) -> None:
    """Check boards of several parts and three classes."""
    n_draws = draws(options, 20, 5)
    for name, case in (
        ("checkerboard 6 x 6, N = 2,000", (2000, 2, 2, 3, 5)),
        ("checkerboard 3 x 3 x 3 in 10, N = 800", (800, 10, 3, 3, 2)),
    ):
        found, seconds, _ = found_all(case, n_draws, options, 2)
        planted_row(record, "Boards and XOR of many columns", name + ", classes mod 3", found, seconds)
    for n_rows in (4000, 1500):
        found, seconds, _ = found_all((n_rows, 10, 10), n_draws, options, 3)
        planted_row(
            record, "Boards and XOR of many columns", f"XOR in 10 of 10, N = {n_rows}", found, seconds
        )
    found, seconds, _ = found_all((2000, 5, 3), n_draws, options, 4)
    X, y, planted_cost = planted(np.random.default_rng((4, 0)), 2000, 5, 3)
    grid = DataGridClassifier(random_state=0).fit(X, y).grid_
    beside = f"planted: level {1 - planted_cost / grid.null_cost:.4f}"
    if options.peers and (peer := khiops_grid(X, y)) is not None:
        cut = [(int(name[1:]), bounds) for name, bounds in peer.bounds.items()]
        parts = [np.searchsorted(bounds, X[:, k]) for k, bounds in cut]
        level = 1 - cost_of(parts, y, 5, [len(bounds) + 1 for _, bounds in cut], []) / grid.null_cost
        beside += f"; Khiops on the first draw: {peer.seconds:.1f} s of the clock, level {level:.4f}"
    planted_row(
        record,
        "Boards and XOR of many columns",
        f"XOR in 3 of 5, N = 2,000, level {grid.level:.4f} on the first draw",
        found,
        seconds,
        beside,
    )


def needles(record: Record, options: argparse.Namespace) -> None:
    """Check five columns among many."""
    n_draws = draws(options, 20, 10)
    for n_columns, n_rows in ((10, 256), (20, 256), (50, 300)):
        found, seconds, _ = found_all((n_rows, n_columns, 5), n_draws, options, 5)
        planted_row(
            record, "XOR in five of many columns", f"XOR in 5 of {n_columns}, N = {n_rows}", found, seconds
        )
    for n_columns, n_rows in ((10, 256), (20, 256), (50, 300)):
        n_limited = draws(options, 20, 3)
        # the search would go on for all of the 30 s: an effort ends it sooner where all is found
        found, _, wall = found_all(
            (n_rows, n_columns, 5), n_limited, options, 5, time_limit=30, effort=9 if n_columns == 50 else 6
        )
        planted_row(
            record,
            "XOR in five of many columns",
            f"XOR in 5 of {n_columns}, N = {n_rows}, time_limit=30 (clock)",
            found,
            wall,
        )


# --- pairs ----------------------------------------------------------------------------------------


def pairs(record: Record, options: argparse.Namespace) -> None:
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
    peer = khiops_pairs(X, y) if options.peers else None
    record.figure(
        "Pairs",
        f"45 pairs of 10 columns, N = {n_rows}",
        f"{wall:.2f} s of the clock, {cpu:.2f} s of CPU, best {first}",
        "" if peer is None else f"Khiops: {peer:.1f} s of the clock, {peer / wall:.0f} times as long",
    )


# --- real tables ----------------------------------------------------------------------------------


def levels(record: Record, options: argparse.Namespace) -> None:
    """Levels within 30 s beside the published ones; and the grid of figure 1 (Boullé, 2011)."""
    limit = 8.0 if options.quick else 30.0
    for name, published in (("letter", 0.536), ("waveform", 0.495), ("satimage", 0.703)):
        data = load(name)
        grid = (
            DataGridClassifier(time_limit=limit, random_state=0, n_jobs=options.n_jobs)
            .fit(data.X, data.y)
            .grid_
        )
        record.figure(
            "Real tables",
            f"{name}: level within {limit:.0f} s of the clock",
            f"{grid.level:.4f}: {grid}",
            f"{published} (Boullé)",
        )
    wine = load("wine")
    two = wine.X.iloc[:, [0, 6]]
    grid = DataGridClassifier(random_state=0).fit(two, wine.y).grid_
    codes = np.unique(wine.y, return_inverse=True)[1]
    parts = [np.searchsorted([12.78], two.iloc[:, 0]), np.searchsorted([1.235, 2.18], two.iloc[:, 1])]
    paper = cost_of(parts, codes, 2, [2, 3], [])
    bounds = "; ".join(f"{n} {p.bounds}" for n, p in grid.partitions.items())
    record.figure(
        "Real tables", "wine, V1 x V7", f"cost {grid.cost:.3f}: {bounds}", f"2 x 3, cost {paper:.3f} (Boullé)"
    )


# --- growth ---------------------------------------------------------------------------------------


def growth(record: Record, options: argparse.Namespace) -> None:
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
    record.figure(
        "Growth",
        "one greedy pass, K = 10, N growing",
        f"N^{exponent(sizes, [b for _, b in times]):.2f}; {shown}",
    )
    columns = [2, 10, 30, 100]
    times = [one_pass(10_000, k) for k in columns]
    shown = ", ".join(f"{k}: {a + b:.2f} s" for k, (a, b) in zip(columns, times, strict=True))
    record.figure(
        "Growth",
        "one greedy pass, N = 10,000, K growing",
        f"K^{exponent(columns, [b for _, b in times]):.2f}; {shown}",
    )


def compile_first(record: Record, options: argparse.Namespace) -> None:
    """Fit something small, so that no time below includes compilation."""
    del options
    X, y, _ = planted(np.random.default_rng(0), 100, 3, 2)
    began = time.perf_counter()
    DataGridClassifier(effort=0).fit(X, y)
    record.say(f"first fit: {time.perf_counter() - began:.1f} s, mostly compilation if nothing was cached")


if __name__ == "__main__":
    run(
        "grids",
        __doc__,
        {
            "xor": xor,
            "checkerboards": checkerboards,
            "needles": needles,
            "pairs": pairs,
            "levels": levels,
            "ada": ada,
            "challenge": challenge,
            "growth": growth,
            "noise": noise,
        },
        {
            "--peers": {"action": "store_true", "help": "run Khiops too, where it is installed"},
            "--n-jobs": {"type": int, "default": 1},
        },
        before=compile_first,
    )
