"""How time and memory grow: each case in a process of its own, at sizes that double.

    python -m benchmarks.growth
    python -m benchmarks.growth --only encoder_classes grid_columns --quick
    python -m benchmarks.growth --only time_limit

``memory`` is the most that a fit held beyond what the process held before (Linux only), and ``of table`` what
multiple that is of the table's own size. ``exponent`` is that of the CPU seconds from one size to the next.
``time_limit`` fits every estimator that has a limit on more than it can search within it: seconds by the
clock before the search (compiling, the graph of balls), of the search, and after it; ``time_limit_large``
does so on a table of a million rows and columns.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import damier
from benchmarks.records import Record, run

# A case makes X, y (None without a target) and an estimator for a size; a tiny fit loads the kernels first.
PROGRAM = r"""
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
import damier
warnings.simplefilter("ignore")
case, size = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
def make(case, size):
    if case == "encoder_classes":
        n = 100_000 if size > 50 else 2_000
        X = rng.normal(size=(n, 3)); y = (rng.integers(0, size, n) + (X[:, 0] > 0) * (size // 2)) % size
        return X, y, damier.MODLEncoder(target="classes")
    if case == "balls_rows":
        y = rng.integers(0, 3, size); X = rng.normal(size=(size, 10)) + y[:, None]
        return X, y, damier.BallPartitionClassifier()
    if case == "untargeted_rows":
        X = rng.normal(size=(size, 4)); X[:, 1] += X[:, 0]
        return X, None, damier.DataGridClustering()
    if case == "grid_columns":
        X = rng.normal(size=(200, size)); y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
        return X, y, damier.DataGridClassifier()
    if case == "linf_classes":
        n = 100_000 if size > 5 else 2_000
        y = rng.integers(0, size, n); X = rng.normal(size=(n, 10)) + rng.normal(size=(size, 10))[y]
        return X, y, damier.LinfClassifier(n_estimators=2)
    if case == "cocluster_ones":
        side = max(40, int((size * 4) ** 0.5)); k = side // 20
        rows, columns = rng.integers(0, side, size), rng.integers(0, side // 20 * 20, size)
        near = rng.random(size) < 0.5
        columns[near] = (rows[near] // k * k + rng.integers(0, k, near.sum())) % side
        table = sp.csr_array((np.ones(size, np.int64), (rows, columns)), shape=(side, side))
        table.sum_duplicates(); table.data[:] = 1
        return table, None, damier.Coclustering(random_state=0)
def held(what):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))
tiny = dict(balls_rows=200, encoder_classes=20, untargeted_rows=6000, grid_columns=4, linf_classes=3,
            cocluster_ones=800)
X, y, estimator = make(case, tiny[case]); estimator.fit(X) if y is None else estimator.fit(X, y)
X, y, estimator = make(case, size)
table = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
before = held("VmRSS:")
with open("/proc/self/clear_refs", "w") as file: file.write("5")  # the highest mark begins anew
start = time.process_time()
estimator.fit(X) if y is None else estimator.fit(X, y)
print(json.dumps([time.process_time() - start, held("VmHWM:") - before, table]))
"""

# A tiny fit loads the kernels, then one with a limit on a table that would take longer.
LIMITED_PROGRAM = r"""
import json, sys, warnings
import numpy as np, scipy.sparse as sp
import damier
from damier.estimators import _base
warnings.simplefilter("ignore")
name, limit, large = sys.argv[1], float(sys.argv[2]), "large" in sys.argv[3:]
more = dict(LinfClassifier=dict(n_estimators=10_000), BallPartitionClassifier=dict(n_partitions=1000),
            DataGridClassifier=dict(effort=20), DataGridEnsembleClassifier=dict(effort=20)).get(name, {})
def fit(n, **parameters):
    rng = np.random.default_rng(0)
    estimator = getattr(damier, name)(**parameters)
    if name.startswith("Coclustering"):
        side, ones = (1_000_000, 5_000_000) if n > 1000 and large else (max(40, n // 20), 10 * n)
        places = np.unique(rng.integers(0, side**2, ones))
        X = sp.csr_array((np.ones(len(places)), divmod(places, side)), shape=(side, side))
        return estimator.fit(X, rng.integers(0, 2, side))
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 10)) + y[:, None]
    return estimator.fit(X, X[:, 0] if name.endswith("Regressor") else y)
fit(200)
runs = []
make_run = damier.search.run.Run.__init__
def remember(run, *args, **keywords):
    make_run(run, *args, **keywords)
    if run.time_limit is not None: runs.append(run)
damier.search.run.Run.__init__ = remember
n = dict(BallPartitionClassifier=8_000, LinfClassifier=100_000).get(name, 200_000)
ended = fit(n, time_limit=limit, **more).search_ended_
run = runs[0]
print(json.dumps([ended, run.prepare_seconds, run.search_seconds, run.finish_seconds]))
"""
LIMIT = 5.0


class Case(NamedTuple):
    """What grows, the sizes measured, and the memory that the last of them may take."""

    title: str
    sizes: tuple[int, ...]
    megabytes: float | None = None


CASES = {
    "balls_rows": Case("BallPartitionClassifier, 10 columns, by rows", (750, 1500, 3000), megabytes=40),
    "encoder_classes": Case("MODLEncoder, 100,000 rows x 3, by classes", (1250, 2500, 5000), megabytes=100),
    "untargeted_rows": Case("DataGridClustering, 4 columns, by rows", (25_000, 50_000, 100_000)),
    "grid_columns": Case("DataGridClassifier, 200 rows, by columns", (5_000, 10_000, 20_000)),
    "linf_classes": Case("LinfClassifier, 2 members, 100,000 rows x 10, by classes", (25, 50, 100)),
    "cocluster_ones": Case("Coclustering, a sparse table, by ones", (1_250_000, 2_500_000, 5_000_000)),
}


def measure(case: str, size: int) -> tuple[float, float, float]:
    """Fit a case in a process of its own: CPU seconds, bytes held beyond those before, bytes of the table."""
    seconds, memory, table = _result(PROGRAM, case, str(size))
    return seconds, memory, table


def _result(program: str, *arguments: str) -> list[Any]:
    """Run a program in a process of its own; read the line it ends with."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' at '.join(arguments)}: {done.stderr.strip().splitlines()[-1]}")
    result: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def limited() -> list[str]:
    """Names of the estimators that have a time limit."""
    return [
        name
        for name in sorted(damier.__all__)
        if isinstance(getattr(damier, name), type) and "time_limit" in getattr(damier, name)().get_params()
    ]


def limit_time(record: Record, options: argparse.Namespace) -> None:
    """Measure what a time limit limits, estimator by estimator."""
    limit = 1.0 if options.quick else LIMIT
    title = f"time_limit={limit:g}: seconds by the clock"
    columns = ["estimator", "search ended", "before", "search", "after"]
    for name in limited():
        ended, *seconds = _result(LIMITED_PROGRAM, name, str(limit))
        record.row(title, columns, [name, ended, *seconds])
    record.close(title)


def limit_large(record: Record, options: argparse.Namespace) -> None:
    """Measure what a time limit leaves of a coclustering of 1,000,000 x 1,000,000 with 5,000,000 ones."""
    limit = 20.0 if options.quick else 60.0
    title = f"time_limit={limit:g}, Coclustering of 1,000,000 x 1,000,000 with 5,000,000 ones: seconds"
    ended, *seconds = _result(LIMITED_PROGRAM, "Coclustering", str(limit), "large")
    columns = ["search ended", "before", "search", "after"]
    record.row(title, columns, [ended, *seconds])
    record.close(title)


def grow(case: str, record: Record, options: argparse.Namespace) -> None:
    """Measure one case at each of its sizes."""
    title, sizes = CASES[case][:2]
    columns = ["size", "CPU seconds", "exponent", "memory", "of table"]
    previous = None
    for size in sizes[:-1] if options.quick else sizes:
        seconds, memory, table = measure(case, size)
        exponent = "" if previous is None else f"{math.log2(seconds / previous):.2f}"
        previous = seconds
        cells = [size, seconds, exponent, f"{memory / 1e6:.0f} MB", f"{memory / table:.1f}"]
        record.row(title, columns, cells)
    record.close(title)


PARTS: dict[str, Callable[[Record, argparse.Namespace], None]] = {
    **{case: partial(grow, case) for case in CASES},
    "time_limit": limit_time,
    "time_limit_large": limit_large,
}

if __name__ == "__main__":
    run("growth", __doc__, PARTS)
