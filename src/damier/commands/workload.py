"""Small fits that between them call every compiled function, each with the types of arguments it meets.

`damier warm` runs them to compile what is missing, a release wheel is made from what they compile, and a test
checks that no kernel is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_N = 160


def run(names: list[str] | None = None, *, done: Callable[[str], None] = lambda _: None) -> None:
    """Run some jobs, or all.

    Parameters
    ----------
    names : list of str, optional
        Keys of `JOBS`.
    done : callable, optional
        Called with the name of each job when it is done.
    """
    for name in JOBS if names is None else names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            JOBS[name]()
        done(name)


def _table(n: int = _N, n_classes: int = 2, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Draw columns of all types, and classes that they inform about."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    columns: dict[str, Any] = {
        "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(1.5 * y, 1.0)),
        "age": rng.integers(20, 60, n) + 9.0 * y,
        "colour": np.where(rng.random(n) < 0.7, y, rng.integers(0, 9, n)).astype(str).astype(object),
        "noise": rng.normal(size=n),
    }
    return columns, y


def _numbers(n: int = _N, n_classes: int = 2) -> tuple[Any, Any]:
    columns, y = _table(n, n_classes)
    return np.column_stack([columns["age"], columns["noise"]]), y


def _columns() -> None:
    """Intervals and groups: exact and not, weighted, partly labeled, classes grouped, many values."""
    from damier import MODLDiscretizer, MODLEncoder, bound_posterior

    for n_classes in (2, 3):
        X, y = _table(n_classes=n_classes)
        for search in ("auto", "greedy", "exact"):
            MODLEncoder(search=search).fit(X, y)
        MODLEncoder().fit(X, y, sample_weight=1 + y % 2)
        MODLEncoder(group_classes=True).fit(X, y)
        partly = np.where(np.arange(_N) % 3, y, -1)
        for how in ("criterion", "bounds"):
            MODLEncoder(semi_supervised=how).fit(X, partly)
        names = {"name": np.arange(_N) % 60 + 100 * y}
        MODLEncoder().fit({"name": names["name"].astype(str).astype(object)}, y)
    X, y = _numbers()
    bound_posterior(X[:, 0], y)
    rng = np.random.default_rng(0)
    many = rng.integers(0, 30, 3000)
    MODLEncoder(group_classes=True).fit({"x": rng.normal(many, 1.0), "c": (many // 2).astype(str)}, many)
    for n_classes in (2, 3):
        long = rng.normal(size=(1000, 1))
        partly = np.where(rng.random(1000) < 0.5, (long[:, 0] > 0) + (n_classes == 3) * (long[:, 0] > 1), -1)
        MODLDiscretizer(semi_supervised="criterion").fit(long, partly)
        # More distinct values than the exact search takes.
        long = rng.normal(size=(300_000, 1))
        MODLDiscretizer().fit(long, rng.integers(0, n_classes, 300_000))


def _bayes() -> None:
    from damier import NaiveBayesClassifier

    for n_classes in (2, 3):
        X, y = _table(n_classes=n_classes)
        for averaging in (None, "compression", "convex"):
            for average_starts in (False, True):
                NaiveBayesClassifier(averaging=averaging, average_starts=average_starts).fit(X, y)
        NaiveBayesClassifier(group_classes=True).fit(X, y, sample_weight=1 + y % 2)


def _sources() -> None:
    """Fit a table that is scanned, not held: batches of this process, and those of DuckDB."""
    from importlib.util import find_spec

    import duckdb

    from damier import MODLEncoder, NaiveBayesClassifier
    from damier.search.counted import CountedNumber, KernelCounter

    values = np.random.default_rng(0).permutation(20_000).astype(np.float64)
    for n_classes in (2, 3):
        codes = (np.arange(values.size) % n_classes).astype(np.int32)
        state = CountedNumber(n_classes, class_counts=np.bincount(codes))
        while state.solution is None:
            counted = codes if state.by_class else None
            counter = KernelCounter(state.binning, n_classes if state.by_class else 1, state.wants_values)
            counter.add(values, counted)
            state.take(counter.counts())
    if find_spec("pyarrow") is None:  # an extra, which DuckDB's batches take
        return
    for n_classes in (2, 3):
        rows = duckdb.sql(
            f"SELECT (hash(i) % 1_000_003)::DOUBLE AS x, (i % 7)::VARCHAR AS c, (i % {n_classes})::INT AS y, "
            "1 + i % 2 AS w FROM range(200_000) t(i)"
        )
        MODLEncoder(memory_limit="1MB").fit(rows, "y")
        NaiveBayesClassifier(memory_limit="1MB").fit(rows, "y", sample_weight="w")


def _numeric_target() -> None:
    from damier import DataGridRegressor, NaiveBayesRegressor
    from damier.fit.numeric_target import order_target, partition_for_number
    from damier.intake import read_table
    from damier.intake.table import NumericTarget

    X, y = _table(600)  # more distinct values than the search takes apart
    values, codes = np.unique(X["size"] + y, return_inverse=True)
    for weights in (None, 1 + np.arange(600) % 2):
        ordered = order_target(NumericTarget(codes.astype(np.int32), values), weights)
        for column in read_table(X):
            for search in ("auto", "greedy", "exact"):
                partition_for_number(column, ordered, search=search)
    # More values than are searched one by one.
    rng = np.random.default_rng(0)
    long = rng.normal(size=1000)
    ordered = order_target(NumericTarget(np.argsort(np.argsort(long)).astype(np.int32), np.sort(long)))
    partition_for_number(read_table({"x": long + rng.normal(size=1000)})["x"], ordered)
    inputs = {name: column for name, column in X.items() if name != "size"}
    number = np.nan_to_num(X["size"]) + y
    NaiveBayesRegressor().fit(inputs, number)
    DataGridRegressor(effort=1).fit(inputs, number)


def _polish() -> None:
    """Do what `compile_beside` has done in another process."""
    from damier.search.grid.search import polish_tiny_table

    polish_tiny_table()


def _grids() -> None:
    from damier import DataGridClassifier, rank_pairs

    for n_classes in (2, 3):
        X, y = _table(n_classes=n_classes)
        DataGridClassifier(effort=3).fit(X, y)
        DataGridClassifier(effort=1).fit(X, y, sample_weight=1 + y % 2)
    rank_pairs(X, y)
    rng = np.random.default_rng(0)
    DataGridClassifier(effort=0).fit(rng.normal(size=(_N, 300)), rng.integers(0, 2, _N))


def _clusters() -> None:
    from damier import DataGridClustering

    X, y = _table()
    DataGridClustering().fit({**X, "class": y.astype(str).astype(object)})


def _linf() -> None:
    from damier import LinfClassifier

    for setting in ("refined", "paper"):
        for n_classes in (2, 3):
            X, y = _table(n_classes=n_classes)
            fitted = LinfClassifier(n_estimators=3, setting=setting).fit(X, y)
            many = {name: np.tile(column, 400) for name, column in X.items()}
            fitted.predict_proba(many)
            fitted.predict(many)


def _balls() -> None:
    from damier import BallPartitionClassifier, gabriel_graph

    for n_classes in (2, 3):
        X, y = _numbers(n_classes=n_classes)
        partly = np.where(np.arange(_N) % 3, y, -1)
        for setting in ("refined", "paper"):
            BallPartitionClassifier(setting=setting, n_partitions=3).fit(X, y)
        BallPartitionClassifier(semi_supervised="criterion").fit(X, partly)
    rng = np.random.default_rng(0)
    for n, d in ((3000, 2), (400, 6)):
        gabriel_graph(rng.normal(size=(n, d)))


def _coclusters() -> None:
    from damier import Coclustering, CoclusteringClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    counts = rng.poisson(np.where(y[:, None] == np.arange(12) % 2, 3.0, 0.3))
    Coclustering().fit(counts)
    CoclusteringClassifier().fit(counts, np.where(np.arange(120) % 5, -1, y))
    pairs = {"customer": np.repeat(np.arange(120), 3).astype(str), "product": np.arange(360).astype(str)}
    pairs["product"] = (np.arange(360) % 7 + 7 * np.repeat(y, 3)).astype(str)
    Coclustering().fit(pairs)


def _report() -> None:
    """Do what a report does beside the fits."""
    from damier.datasets import SAMPLE_TARGET, sample_columns
    from damier.intake import read_table, read_target
    from damier.report.analysis import analyze

    columns = sample_columns(400)
    target = read_target(columns.pop(SAMPLE_TARGET))
    analyze(read_table(columns), target, grid_seconds=1.0)


# In this order one process warms first what a report needs.
JOBS: dict[str, Callable[[], None]] = {
    "columns": _columns,
    "polish": _polish,
    "grids": _grids,
    "naive Bayes": _bayes,
    "report": _report,
    "numeric target": _numeric_target,
    "sources": _sources,
    "clusters": _clusters,
    "LINF": _linf,
    "balls": _balls,
    "coclusters": _coclusters,
}


# Jobs shared between two processes, so that both have about as much to compile and little in common.
SHARES = (
    ("columns", "naive Bayes", "numeric target", "sources", "balls"),
    ("polish", "grids", "report", "LINF", "clusters", "coclusters"),
)


def compile_beside() -> None:
    """Have the largest kernels of a grid compiled by another process, while this one does the columns.

    Nothing is done where they are on file, or on a single core. Whoever needs one of them waits for it.
    """
    import time

    from damier.search import packaged
    from damier.search.compiling import on_compiling
    from damier.search.grid.axes import polish
    from damier.search.grid.merge import _merge_cells
    from damier.search.grid.state import load_parts
    from damier.search.run import count_threads

    kernels = {packaged.name_of(k.py_func): k._cache for k in (load_parts, polish, _merge_cells)}
    if count_threads(-1) < 2 or all(cache.known for cache in kernels.values()):
        return
    alive = _start_beside("polish")

    def wait(name: str) -> bool:
        while name in kernels and alive() and not kernels[name].known:
            time.sleep(0.02)
        return name in kernels

    on_compiling.append(wait)


def _start_beside(job: str) -> Callable[[], bool]:
    """Start a job in another process, which ends with this one; return a way to ask if it goes on.

    On Linux, as long as there is one thread, it is a copy of this one: what is imported need not be again.
    """
    import subprocess
    import sys
    import threading

    if sys.platform == "linux" and threading.active_count() == 1:
        import multiprocessing

        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()  # what Numba knows of NumPy: for both
        cpu_target.target_context.refresh()
        copy = multiprocessing.get_context("fork").Process(target=_run_silently, args=(job,), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are not Python's
            copy.start()
        return copy.is_alive
    import atexit

    process = subprocess.Popen(
        [sys.executable, "-m", "damier.commands.workload", job],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.kill)
    return lambda: process.poll() is None


def _run_silently(job: str) -> None:
    """Run a job in a copy of a process: what it prints and how it fails is nobody's business."""
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    run([job])


def kernel_names() -> set[str]:
    """Name all kernels that there are, with their modules."""
    import importlib
    import pkgutil

    import damier.search
    from damier.search.kernels import KERNELS

    for module in pkgutil.walk_packages(damier.search.__path__, "damier.search."):
        importlib.import_module(module.name)
    return {f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}" for kernel in KERNELS}


def main(names: list[str]) -> None:
    """Run jobs, write the name of each when it is done, then the number of functions compiled."""
    import gc

    gc.set_threshold(1_000_000, 50, 100)  # as in damier.__main__
    from damier.search.compiling import on_compiling

    compiled: list[str] = []
    on_compiling.append(compiled.append)
    run(names, done=lambda name: print(name, flush=True))  # noqa: T201
    print(len(compiled))  # noqa: T201


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
