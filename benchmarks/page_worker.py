"""One library, one page, one process: CPU seconds to make it and its size.

Run by `benchmarks.page`, in the interpreter that has the library; it needs pandas and pyarrow beside it.

    python page_worker.py LIBRARY TABLE.parquet PAGE.html
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd

TARGET = "target"


def damier(table: pd.DataFrame, page: Path) -> None:
    """Columns, pairs, grid and classifier, as by default."""
    from damier import explore

    explore(table.drop(columns=TARGET), table[TARGET], name="generated", target_name=TARGET).save(page)


def skrub(table: pd.DataFrame, page: Path) -> None:
    """All columns with their plot: by default those beyond 30 have none."""
    from skrub import TableReport

    TableReport(table, verbose=0, plot_distributions=True).write_html(page)


def ydata_profiling(table: pd.DataFrame, page: Path) -> None:
    """Without what grows with the square of the columns."""
    from ydata_profiling import ProfileReport

    ProfileReport(table, minimal=True, progress_bar=False).to_file(page)


def sweetviz(table: pd.DataFrame, page: Path) -> None:
    """With a target, without pairs of columns."""
    from sweetviz import analyze

    report = analyze([table, "generated"], target_feat=TARGET, pairwise_analysis="off")
    report.show_html(str(page), open_browser=False)


LIBRARIES: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "damier": damier,
    "skrub": skrub,
    "ydata_profiling": ydata_profiling,
    "sweetviz": sweetviz,
}


def main() -> None:
    """Make the page of a few rows first, so that nothing is compiled or imported, then that of all."""
    library, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    warnings.simplefilter("ignore")
    table, make = pd.read_parquet(source), LIBRARIES[library]
    importlib.import_module(library)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        make(table.iloc[:500, -8:], target)
        before, wall = _cpu(), time.perf_counter()
        make(table, target)
    figures = {
        "cpu": _cpu() - before,
        "seconds": time.perf_counter() - wall,
        "bytes": target.stat().st_size,
        "version": importlib.metadata.version(library.replace("_", "-")),
    }
    print("RESULT " + json.dumps(figures))


def _cpu() -> float:
    """Return processor seconds of this process and of those it started."""
    return sum(
        resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


if __name__ == "__main__":
    main()
