"""Intervals and groups: speed, memory and quality, beside Khiops, OptBinning and KBinsDiscretizer.

    python -m benchmarks.univariate            # everything; Khiops alone takes minutes
    python -m benchmarks.univariate --quick    # a tenth of the rows
    python -m benchmarks.univariate --only figures,small,quality,large

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.datasets import load
from benchmarks.optima import grouping_problems, interval_problems
from benchmarks.peers import PEERS, Measure, environment, measure

console = Console(width=max(110, Console().width))


@dataclass
class Figures:
    """Rows of what was wanted and what was measured."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, what: str, wanted: str, measured: str, ratio: float | bool | None = None) -> None:
        """Add a row; a ratio is wanted over measured, so 1 or more is reached."""
        if isinstance(ratio, bool):
            verdict = "reached" if ratio else "MISSED"
        elif ratio is None:
            verdict = "-"
        else:
            verdict = f"{ratio:.2f} {'reached' if ratio >= 1 else 'MISSED'}"
        self.rows.append((what, wanted, measured, verdict))
        console.print(f"  {what}: wanted {wanted}; measured {measured}; {verdict}", highlight=False)

    def show(self) -> None:
        """Print them all."""
        table = Table(
            "figure", "wanted", "measured", "wanted / measured", title="Figures", title_justify="left"
        )
        for row in self.rows:
            table.add_row(*row)
        console.print(table)


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
    title: str, X: pd.DataFrame, y: np.ndarray, peer: str | None, libraries: Any
) -> dict[str, Measure]:
    """Fit each library on the same table, and print what each took and found."""
    table = Table(
        "library",
        "seconds",
        "cpu s",
        "peak MB",
        "intervals",
        "criterion, nats",
        "mean level",
        title=title,
        title_justify="left",
    )
    measures: dict[str, Measure] = {}
    for library, options in libraries:
        got = measure(library, X, y, peer_python=peer, **options)
        if isinstance(got, str):
            table.add_row(got)
            continue
        measures[library] = got
        total, level, parts = costs(got, X, y)
        shown = ("-", "-", "-") if library == "sort" else (str(parts), f"{total:,.1f}", f"{level:.4f}")
        table.add_row(library, f"{got.seconds:.3f}", f"{got.cpu:.3f}", f"{got.peak_mb:,.0f}", *shown)
    console.print(table)
    return measures


def large_tables(figures: Figures, quick: bool, peer: str | None) -> None:
    """Fit a million rows of ten columns, two and ten classes, two threads."""
    n_rows = 100_000 if quick else 1_000_000
    for n_classes, faster in ((2, 100), (10, 60)):
        X, y = smooth_and_noise(n_rows, n_classes)
        title = f"{n_rows:,} rows x 10 columns, {n_classes} classes"
        wanted = [("damier", {"n_jobs": 2, "repeats": 3}), ("sort", {"repeats": 3})]
        found = side_by_side(title, X, y, peer, wanted + [(p, {}) for p in PEERS])
        if "damier" not in found:
            continue
        own = found["damier"].seconds
        if "khiops" in found:
            ratio = found["khiops"].seconds / own
            figures.add(f"{title}: times faster than Khiops", f">= {faster}", f"{ratio:.0f}", ratio / faster)
        if n_classes == 2:
            ratio = own / found["sort"].seconds
            figures.add(f"{title}: times np.sort of the columns", "<= 4", f"{ratio:.2f}", 4 / ratio)


def exact_searches(figures: Figures, quick: bool) -> None:
    """Exact search on one column, smooth and noise."""
    cases = [(100_000, 2, "smooth", 0.3), (100_000, 2, "noise", 2.0), (10_000, 10, "noise", 0.5)]
    for n_rows, n_classes, kind, limit in cases:
        rows = n_rows // 10 if quick else n_rows
        X, y = smooth_and_noise(rows, n_classes, 1, 1, seed=1)
        column = X[[f"{kind} 1"]]
        got = measure("damier", column, y, search="exact", repeats=2)
        what = f"exact, {rows:,} rows, {n_classes} classes, {kind}"
        if isinstance(got, str):
            figures.add(what, f"{limit} s", got, False)
        else:
            figures.add(what, f"<= {limit} s", f"{got.seconds:.3f} s", limit / got.seconds)


def memory(figures: Figures, quick: bool) -> None:
    """Peak above the input for one long column."""
    n_rows = 1_000_000 if quick else 10_000_000
    X, y = smooth_and_noise(n_rows, 2, 1, 0, seed=2)
    got = measure("damier", X, y)
    what = f"memory above the input, {n_rows:,} rows x 1 column"
    if isinstance(got, str):
        figures.add(what, "4 columns", got, False)
        return
    columns = got.peak_mb / (8 * n_rows / 2**20)
    figures.add(what, "<= 4 columns", f"{columns:.2f} columns ({got.seconds:.2f} s)", 4 / columns)


def timed(code: str, **variables: str) -> float:
    """Run code in a fresh interpreter; it prints its own seconds, those of its processor last."""
    env = environment(sys.executable) | variables
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    seconds, work = map(float, done.stdout.split()[-2:])
    console.print(f"    {seconds:.4f} s, of which {work:.4f} s of work", style="dim")
    return seconds


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


def starting_up(figures: Figures) -> None:
    """Time what a user waits for before anything is computed."""
    seconds = min(timed(IMPORT) for _ in range(3))
    figures.add("import damier beyond scikit-learn", "<= 0.15 s", f"{seconds:.3f} s", 0.15 / seconds)
    seconds = min(timed(IMPORT_ENCODER) for _ in range(3))
    figures.add("the same, with MODLEncoder", "<= 0.15 s", f"{seconds:.3f} s", 0.15 / seconds)
    with tempfile.TemporaryDirectory() as empty:
        seconds = timed(FIRST_FIT, NUMBA_CACHE_DIR=empty)
    figures.add("first fit, cold cache (iris)", "<= 12 s", f"{seconds:.1f} s", 12 / seconds)
    seconds = timed(FIRST_FIT)
    figures.add("first fit, compiled before (iris)", "-", f"{seconds:.2f} s")
    seconds = timed(WARM_FIT)
    figures.add("iris, whole table, warm", "<= 10 ms", f"{1000 * seconds:.2f} ms", 0.010 / seconds)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-m", "damier", "report", "--sample", "-o", str(page)]
        taken = []
        for _ in range(3):
            start, work = time.perf_counter(), os.times().children_user
            subprocess.run(command, env=environment(sys.executable), capture_output=True, check=True)
            taken.append(time.perf_counter() - start)
            work = os.times().children_user - work
            console.print(f"    {taken[-1]:.2f} s, of which {work:.2f} s of work", style="dim")
    figures.add("damier report on the sample, warm", "<= 4 s", f"{min(taken):.2f} s", 4 / min(taken))


def small_tables(figures: Figures, peer: str | None) -> None:
    """Both partitions and Formula 1 on each, for iris, wine and breast cancer."""
    from damier.criteria import discretization_cost

    higher, agree, n_variables = 0, 0, 0
    for name in ("iris", "wine", "breast_cancer"):
        data = load(name)
        y = data.y.to_numpy()
        found = side_by_side(
            f"{name} ({data.source})", data.X, y, peer, [("damier", {}), *((p, {}) for p in PEERS)]
        )
        if "damier" not in found or "khiops" not in found:
            continue
        table = Table(
            "variable", "Damier's bounds", "cost", "Khiops' bounds", "cost", title=f"{name}: bounds"
        )
        for variable in data.X:
            n_variables += 1
            cells, values = [], []
            for library in ("damier", "khiops"):
                bounds = found[library].found.get(variable, ([], True))[0]
                values.append(
                    discretization_cost(found[library].counts(variable, data.X[variable].to_numpy(), y))
                )
                cells += [", ".join(f"{b:.6g}" for b in bounds) or "-", f"{values[-1]:.3f}"]
            higher += values[0] > values[1] + 1e-9 * abs(values[1])
            agree += abs(values[0] - values[1]) <= 1e-9 * abs(values[1])
            table.add_row(str(variable), *cells)
        console.print(table)
    if n_variables:
        what = f"variables of {n_variables} where Damier's cost is above Khiops'"
        figures.add(what, "0", f"{higher} ({agree} equal)", higher == 0)


def quality(figures: Figures, quick: bool) -> None:
    """How often the search finds what an exhaustive one finds."""
    n_problems = 100 if quick else 500
    optimal, worst = interval_problems(n_problems)
    figures.add(
        f"auto optimal, {n_problems} interval problems",
        "100%",
        f"{optimal:.1%}, worst {worst:.3f}",
        optimal == 1,
    )
    n_problems = 60 if quick else 300
    optimal, worst = grouping_problems(n_problems)
    figures.add(
        f"groups equal to brute force, {n_problems} problems",
        "99%, never 0.1 nat worse",
        f"{optimal:.1%}, worst {worst:.3f}",
        optimal >= 0.99 and worst <= 0.1,
    )


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--only", default="small,quality,figures,large", help="parts to run, by comma")
    parser.add_argument("--peer-python", default=os.environ.get("DAMIER_PEER_PYTHON"), metavar="PATH")
    options = parser.parse_args()
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    console.print(f"{os.cpu_count()} processors{busy}; times are by the clock", highlight=False)
    figures = Figures()
    parts = options.only.split(",")
    if "small" in parts:
        small_tables(figures, options.peer_python)
    if "quality" in parts:
        quality(figures, options.quick)
    if "figures" in parts:
        starting_up(figures)
        exact_searches(figures, options.quick)
        memory(figures, options.quick)
    if "large" in parts:
        large_tables(figures, options.quick, options.peer_python)
    figures.show()


if __name__ == "__main__":
    main()
