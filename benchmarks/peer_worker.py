"""One library, one fit, one process: seconds, peak memory and the intervals found.

Run by `benchmarks.peers`, in the interpreter that has the library; it needs NumPy and pandas beside it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# bounds of each variable, and whether a value equal to a bound goes left of it
Found = dict[str, tuple[list[float], bool]]


def fit_damier(X: pd.DataFrame, y: pd.Series, options: dict[str, Any]) -> Callable[[], Found]:
    """Fit with everything compiled: a small fit comes first."""
    from damier import MODLDiscretizer

    small = MODLDiscretizer(**options)
    small.fit(X.iloc[:1000], y.iloc[:1000])
    if options.get("search") == "exact":
        MODLDiscretizer().fit(X.iloc[:1000], y.iloc[:1000])
    model = MODLDiscretizer(**options)

    def fit() -> Found:
        model.fit(X, y)
        return {name: (list(p.bounds), True) for name, p in model.partitions_.items()}

    return fit


def fit_khiops(X: pd.DataFrame, y: pd.Series, options: dict[str, Any]) -> Callable[[], Found]:
    """Univariate preparation alone: no trees."""
    from khiops.sklearn import KhiopsEncoder

    model = KhiopsEncoder(n_trees=0, **options)
    labels = y.astype(str)

    def fit() -> Found:
        model.fit(X, labels)
        found: Found = {}
        for statistics in model.model_report_.preparation_report.variables_statistics:
            grid = statistics.data_grid
            parts = [] if grid is None else grid.dimensions[0].partition
            bounds = [p.upper_bound for p in parts if not p.is_missing][:-1]
            found[statistics.name] = (bounds, True)
        return found

    return fit


def fit_optbinning(X: pd.DataFrame, y: pd.Series, options: dict[str, Any]) -> Callable[[], Found]:
    """One optimal binning a column, with the library's own defaults."""
    from optbinning import MulticlassOptimalBinning, OptimalBinning

    kind = OptimalBinning if y.nunique() == 2 else MulticlassOptimalBinning
    labels = y.to_numpy()

    def fit() -> Found:
        found: Found = {}
        for name in X:
            binning = kind(name=name, **options).fit(X[name].to_numpy(), labels)
            found[name] = ([float(b) for b in binning.splits], False)
        return found

    return fit


def fit_kbins(X: pd.DataFrame, y: pd.Series, options: dict[str, Any]) -> Callable[[], Found]:  # noqa: ARG001
    """Ten quantile bins; the target is not looked at."""
    from sklearn.preprocessing import KBinsDiscretizer

    model = KBinsDiscretizer(n_bins=10, encode="ordinal", strategy="quantile", **options)

    def fit() -> Found:
        model.fit(X)
        return {
            name: ([float(b) for b in edges[1:-1]], False)
            for name, edges in zip(X, model.bin_edges_, strict=True)
        }

    return fit


def fit_sort(X: pd.DataFrame, y: pd.Series, options: dict[str, Any]) -> Callable[[], Found]:  # noqa: ARG001
    """Not a library: the time to sort the same columns, one after the other."""
    columns = [X[name].to_numpy() for name in X]

    def fit() -> Found:
        for column in columns:
            np.sort(column)
        return {}

    return fit


PREPARE: dict[str, Callable[..., Callable[[], Found]]] = {
    "damier": fit_damier,
    "khiops": fit_khiops,
    "optbinning": fit_optbinning,
    "kbins": fit_kbins,
    "sort": fit_sort,
}


def reset_peak() -> float:
    """Forget the peak so far where the system can; megabytes held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return peak()


def peak() -> float:
    """Most megabytes held since the last reset, a child process included."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        own = float(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return own


def cpu() -> float:
    """Processor seconds of all threads and finished children: what a busy machine does not change much."""
    own, children = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main(library: str, data: str, options: str, repeats: str) -> None:
    """Fit, and print one line of JSON."""
    warnings.simplefilter("ignore")
    with np.load(data, allow_pickle=False) as arrays:
        X = pd.DataFrame(arrays["X"], columns=arrays["names"].tolist())
        y = pd.Series(arrays["y"])
    fit = PREPARE[library](X, y, json.loads(options))
    before = reset_peak()
    seconds = []
    for _ in range(int(repeats)):
        start, work = time.perf_counter(), cpu()
        found = fit()
        seconds.append((time.perf_counter() - start, cpu() - work))
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    result = {
        "seconds": min(seconds)[0],
        "cpu": min(seconds)[1],
        "peak_mb": peak() - before + children,
        "found": found,
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
