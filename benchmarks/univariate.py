"""Intervals and groups: speed, memory and quality, beside Khiops, OptBinning and KBinsDiscretizer.

    python -m benchmarks.univariate            # everything; Khiops alone takes minutes
    python -m benchmarks.univariate --quick    # a tenth of the rows
    python -m benchmarks.univariate --only start exact

Khiops and OptBinning are looked for here, then in the interpreter that ``--peer-python`` or
``DAMIER_PEER_PYTHON`` names. Every criterion value is Formula 1 (`damier.criteria.discretization_cost`),
evaluated on each library's own intervals: lower is better.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import load
from benchmarks.optima import grouping_problems, interval_problems
from benchmarks.peers import PEERS, Measure, environment, measure
from benchmarks.records import Record, run


def smooth_and_noise(
    n_rows: int, n_classes: int, n_smooth: int = 5, n_noise: int = 5, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw columns that bear on the class through smooth curves, and columns that do not."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(n_rows, n_smooth + n_noise))
    phase = 2 * np.pi * np.arange(n_classes) / n_classes
    score = np.zeros((n_rows, n_classes))
    for k in range(n_smooth):
        score += 0.8 * np.cos((k + 1) * values[:, k, None] - phase)
    weights = np.exp(score)
    upto = np.cumsum(weights, axis=1)
    drawn = (upto < random.random((n_rows, 1)) * upto[:, -1:]).sum(axis=1)
    names = [f"smooth {k + 1}" for k in range(n_smooth)] + [f"noise {k + 1}" for k in range(n_noise)]
    return pd.DataFrame(values, columns=names), drawn


def costs(found: Measure, X: pd.DataFrame, y: np.ndarray) -> tuple[float, float, int]:
    """Sum of Formula 1 over the variables, mean level, number of intervals."""
    from damier.criteria import discretization_cost

    total, levels, parts = 0.0, [], 0
    null = discretization_cost(np.unique(y, return_counts=True)[1][None, :])
    for name in X:
        table = found.counts(name, X[name].to_numpy(), y)
        cost = discretization_cost(table)
        total += cost
        levels.append(max(0.0, 1 - cost / null))
        parts += len(table)
    return total, float(np.mean(levels)), parts


def side_by_side(
    record: Record, title: str, X: pd.DataFrame, y: np.ndarray, options: argparse.Namespace, libraries: Any
) -> dict[str, Measure]:
    """Fit each library on the same table, and print what each took and found."""
    columns = ["library", "seconds", "CPU s", "peak MB", "intervals", "criterion, nats", "mean level"]
    measures: dict[str, Measure] = {}
    rows = []
    for library, settings in libraries:
        got = measure(library, X, y, peer_python=options.peer_python, **settings)
        if isinstance(got, str):
            rows.append([got, *[""] * 6])
            continue
        measures[library] = got
        total, level, parts = costs(got, X, y)
        shown = ("", "", "") if library == "sort" else (str(parts), f"{total:,.1f}", f"{level:.4f}")
        rows.append([library, f"{got.seconds:.3f}", f"{got.cpu:.3f}", f"{got.peak_mb:,.0f}", *shown])
    record.table(title, columns, rows)
    return measures


def large_tables(record: Record, options: argparse.Namespace) -> None:
    """Fit a million rows of ten columns, two and ten classes, two threads; and sort them."""
    n_rows = 100_000 if options.quick else 1_000_000
    for n_classes in (2, 10):
        X, y = smooth_and_noise(n_rows, n_classes)
        own = [("damier", {"n_jobs": 2, "repeats": 3}), ("sort", {"repeats": 3})]
        title = f"{n_rows:,} rows x 10 columns, {n_classes} classes"
        side_by_side(record, title, X, y, options, own + [(peer, {}) for peer in PEERS])


def exact_searches(record: Record, options: argparse.Namespace) -> None:
    """Exact search on one column, smooth and noise."""
    for n_rows, n_classes, kind in ((100_000, 2, "smooth"), (100_000, 2, "noise"), (10_000, 10, "noise")):
        rows = n_rows // 10 if options.quick else n_rows
        X, y = smooth_and_noise(rows, n_classes, 1, 1, seed=1)
        got = measure("damier", X[[f"{kind} 1"]], y, search="exact", repeats=2)
        seconds = got if isinstance(got, str) else f"{got.seconds:.3f}"
        record.row(
            "Exact search, one column",
            ["rows", "classes", "column", "seconds"],
            [f"{rows:,}", n_classes, kind, seconds],
        )


def memory(record: Record, options: argparse.Namespace) -> None:
    """Peak above the input for one long column."""
    n_rows = 1_000_000 if options.quick else 10_000_000
    X, y = smooth_and_noise(n_rows, 2, 1, 0, seed=2)
    got = measure("damier", X, y)
    shown = got
    if not isinstance(got, str):
        shown = f"{got.peak_mb / (8 * n_rows / 2**20):.2f} times the column, {got.seconds:.2f} s"
    record.figure("Memory above the input", f"{n_rows:,} rows x 1 column", shown)


def timed(code: str, **variables: str) -> str:
    """Run code in a fresh interpreter; it prints its seconds, then those of its processor."""
    env = environment(sys.executable) | variables
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    seconds, work = map(float, done.stdout.split()[-2:])
    return f"{seconds:.4f} s, {work:.4f} s of CPU"


# Each prints seconds by the clock and by the processor: they differ on a busy machine.
TIMED = """
import time
{before}
start, work = time.perf_counter(), time.process_time()
{what}
print((time.perf_counter() - start) / {times}, (time.process_time() - work) / {times})
"""
IMPORT = TIMED.format(before="import sklearn", what="import damier", times=1)
IMPORT_ENCODER = TIMED.format(
    before="import sklearn.preprocessing", what="from damier import MODLEncoder", times=1
)
IRIS = """
from sklearn.datasets import load_iris
from damier import MODLEncoder
X, y = load_iris(return_X_y=True, as_frame=True)
"""
FIRST_FIT = TIMED.format(before=IRIS, what="MODLEncoder().fit(X, y)", times=1)
WARM_FIT = TIMED.format(
    before=IRIS + "MODLEncoder().fit(X, y)", what="for _ in range(50): MODLEncoder().fit(X, y)", times=50
)


def starting_up(record: Record, options: argparse.Namespace) -> None:
    """Time what a user waits for before anything is computed."""
    del options
    title = "What a user waits for"
    record.figure(title, "import damier beyond scikit-learn", min(timed(IMPORT) for _ in range(3)))
    record.figure(title, "the same, with MODLEncoder", min(timed(IMPORT_ENCODER) for _ in range(3)))
    with tempfile.TemporaryDirectory() as empty:
        record.figure(title, "first fit, nothing compiled (iris)", timed(FIRST_FIT, NUMBA_CACHE_DIR=empty))
    record.figure(title, "first fit, compiled before (iris)", timed(FIRST_FIT))
    record.figure(title, "later fits (iris, whole table)", timed(WARM_FIT))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-m", "damier", "report", "--sample", "-o", str(page)]
        taken = []
        for _ in range(3):
            start, work = time.perf_counter(), os.times().children_user
            subprocess.run(command, env=environment(sys.executable), capture_output=True, check=True)
            taken.append((time.perf_counter() - start, os.times().children_user - work))
    seconds, work = min(taken)
    record.figure(title, "damier report --sample", f"{seconds:.2f} s, {work:.2f} s of CPU")


def small_tables(record: Record, options: argparse.Namespace) -> None:
    """Both partitions and Formula 1 on each, for iris, wine and breast cancer."""
    from damier.criteria import discretization_cost

    columns = ["variable", "Damier's bounds", "cost", "Khiops' bounds", "cost"]
    for name in ("iris", "wine", "breast_cancer"):
        data = load(name)
        y = data.y.to_numpy()
        libraries = [("damier", {}), *((peer, {}) for peer in PEERS)]
        found = side_by_side(record, f"{name} ({data.source})", data.X, y, options, libraries)
        if "damier" not in found or "khiops" not in found:
            continue
        rows, both = [], []
        for variable in data.X:
            cells, values = [], []
            for library in ("damier", "khiops"):
                bounds = found[library].found.get(variable, ([], True))[0]
                counts = found[library].counts(variable, data.X[variable].to_numpy(), y)
                values.append(discretization_cost(counts))
                cells += [", ".join(f"{b:.6g}" for b in bounds) or "-", f"{values[-1]:.3f}"]
            both.append(values)
            rows.append([str(variable), *cells])
        ours, theirs = np.array(both).T
        near = 1e-9 * np.abs(theirs)
        note = (
            f"Damier's cost is above Khiops' on {(ours > theirs + near).sum()} of {len(rows)} variables, "
            f"equal on {(abs(ours - theirs) <= near).sum()}."
        )
        record.table(f"{name}: bounds", columns, rows, note=note)


def quality(record: Record, options: argparse.Namespace) -> None:
    """How often the search finds what an exhaustive one finds."""
    columns = ["problems", "optimal", "worst excess, nats"]
    for what, problems, n_problems in (
        ("intervals", interval_problems, 100 if options.quick else 500),
        ("groups", grouping_problems, 60 if options.quick else 300),
    ):
        optimal, worst = problems(n_problems)
        record.row(
            "Against all partitions", columns, [f"{n_problems} of {what}", f"{optimal:.1%}", f"{worst:.3f}"]
        )


if __name__ == "__main__":
    run(
        "univariate",
        __doc__,
        {
            "small": small_tables,
            "quality": quality,
            "start": starting_up,
            "exact": exact_searches,
            "memory": memory,
            "large": large_tables,
        },
        {"--peer-python": {"default": os.environ.get("DAMIER_PEER_PYTHON"), "metavar": "PATH"}},
    )
