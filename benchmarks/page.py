"""Pages: size, time to interactive and CPU seconds, other reports beside them; what the browser tests use.

    python -m benchmarks.page                      # everything: some minutes
    python -m benchmarks.page --quick              # 12 and 60 columns, two openings of each page
    python -m benchmarks.page --only reports

Other libraries (skrub, ydata-profiling, sweetviz) run in the interpreter that ``DAMIER_PEER_PYTHON`` or
``--peer-python`` names; what is not installed, ends in an error or takes longer than ``--time-limit`` is
recorded as such. With the default limit all is done in a quarter of an hour. ``--keep FOLDER`` keeps their
pages: a later run opens them again beside Damier's new ones, and does not make them anew. Pages are opened in
Chromium by Playwright: ``pip install damier[browser]`` and ``apt-get install chromium``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import ROOT, DataUnavailableError
from benchmarks.peers import environment
from benchmarks.planted import planted
from benchmarks.records import Record, run

N_ROWS = 5_000
LIBRARIES = ("damier", "skrub", "ydata_profiling", "sweetviz")
MEGABYTE = 1e6
# Seconds for a page of Damier, and to open one.
_LONGEST = 600.0
# The page has loaded, and its thread is idle for the first time: what is pressed is answered at once.
_IDLE = "() => new Promise(done => requestIdleCallback(() => done(performance.now())))"


def generated(n_columns: int, seed: int = 0) -> pd.DataFrame:
    """Make numbers, skewed amounts, categories and dates of a target of two classes; half inform it."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, N_ROWS).astype(bool)
    columns: dict[str, Any] = {}
    for k in range(n_columns):
        pull = y * (2.0 / (1 + k // 8) if k % 2 else 0.0)
        kind = k % 4
        if kind in (0, 1):
            column: Any = random.normal(pull)
            column[random.random(N_ROWS) < 0.05 * (k % 3)] = np.nan
        elif kind == 2:
            column = np.round(random.lognormal(pull + 3.0), 2)
        else:
            column = np.char.add("value ", random.poisson(3 + pull * 2).astype(str))
        columns[f"column {k}"] = column
    return pd.DataFrame({**columns, "target": y})


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise DataUnavailableError("it needs Playwright: pip install 'damier[browser]'") from error
    if program is None:
        raise DataUnavailableError("it needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Any, page: Path, times: int, most: float, fragment: str = "") -> dict[str, Any]:
    """Open a page several times: milliseconds until idle, CPU seconds of its process, requests elsewhere."""
    idle, cpu, elsewhere = [], [], set()
    for _ in range(times):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        tab.set_default_timeout(1000 * most)

        def send(route: Any) -> None:
            if route.request.url.startswith("http"):
                elsewhere.add(route.request.url)
                route.abort()
            else:
                route.continue_()

        tab.route("**/*", send)
        session = browser.new_browser_cdp_session()
        before = _renderers(session)
        tab.goto(page.as_uri() + fragment, wait_until="load")
        idle.append(tab.evaluate(_IDLE))
        cpu.append(sum(t - before.get(p, 0.0) for p, t in _renderers(session).items()))
        session.detach()
        context.close()
    return {"idle": statistics.median(idle), "cpu": statistics.median(cpu), "elsewhere": len(elsewhere)}


def _renderers(session: Any) -> dict[int, float]:
    """CPU seconds of the processes that hold pages."""
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return {one["id"]: one["cpuTime"] for one in processes if one["type"] == "renderer"}


def make(library: str, table: Path, page: Path, options: argparse.Namespace) -> dict[str, Any] | str:
    """Make a page in a process of its own, or take one that was kept; a text says why there is none."""
    known = page.with_suffix(".json")
    if library != "damier" and known.exists():
        kept: dict[str, Any] | str = json.loads(known.read_text())
        return kept
    made = _make(library, table, page, options)
    if options.keep is not None and not str(made).startswith("ended in an error"):
        known.write_text(json.dumps(made))
    return made


def _make(library: str, table: Path, page: Path, options: argparse.Namespace) -> dict[str, Any] | str:
    python = sys.executable if library == "damier" else options.peer_python
    if python is None:
        return "not installed: name an interpreter with --peer-python"
    worker = ROOT / "benchmarks" / "page_worker.py"
    try:
        done = subprocess.run(
            [python, str(worker), library, str(table), str(page)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(python) | {"MPLBACKEND": "agg"},
            timeout=_LONGEST if library == "damier" else options.time_limit,
        )
    except subprocess.TimeoutExpired:
        return f"not ready in {options.time_limit:.0f} s"
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not results:
        return f"ended in an error: {(done.stderr.strip().splitlines() or ['no message'])[-1][:150]}"
    figures: dict[str, Any] = json.loads(results[-1].removeprefix("RESULT "))
    return figures


def _opened_cells(browser: Any, page: Path, made: dict[str, Any], options: argparse.Namespace) -> list[str]:
    size, cpu = f"{made['bytes'] / MEGABYTE:.2f}", f"{made['cpu']:.1f}"
    try:
        seen = opened(browser, page, 2 if options.quick else options.openings, _LONGEST)
    except Exception as error:
        return [size, f"not opened: {str(error).splitlines()[0][:120]}", "", cpu, ""]
    return [size, f"{seen['idle']:,.0f}", f"{seen['cpu']:.2f}", cpu, str(seen["elsewhere"])]


def show_reports(record: Record, options: argparse.Namespace) -> None:
    """Make reports of 12, 300 and 1,500 columns, and open them."""
    header = [
        "columns",
        "report",
        "MB",
        "ms to interactive",
        "CPU s to open",
        "CPU s to make",
        "asked elsewhere",
    ]
    title, sizes = f"Reports of {N_ROWS:,} rows", (12, 60) if options.quick else options.columns
    rows: dict[tuple[int, int], list[Any]] = {}
    versions = {}
    with tempfile.TemporaryDirectory() as passing, chromium() as browser:
        folder = options.keep or passing
        Path(folder).mkdir(exist_ok=True)
        # the slow ones first: Damier is measured as it is when they have ended
        for k in range(len(LIBRARIES))[::-1]:
            library, slowest = LIBRARIES[k], 0.0
            if library not in options.libraries:
                continue
            for n in sizes:
                table, page = Path(folder) / f"{n}.parquet", Path(folder) / f"{library}-{n}.html"
                if not table.exists():
                    generated(n).to_parquet(table)
                # seconds per column so far: a page that cannot be ready in time is not begun
                if library != "damier" and slowest * n > options.time_limit:
                    made: dict[str, Any] | str = f"not tried: {slowest:.2f} s per column or more"
                else:
                    made = make(library, table, page, options)
                if isinstance(made, str):
                    cells = [made, "", "", "", ""]
                    if made.startswith("not ready"):
                        slowest = max(slowest, options.time_limit / n)
                else:
                    # of a few columns, most of the time is spent otherwise
                    slowest = made["seconds"] / n if n >= 100 else 0.0
                    versions[library] = made["version"]
                    cells = _opened_cells(browser, page, made, options)
                    if options.keep is None:
                        page.unlink()
                rows[n, k] = [f"{n:,}", library, *cells]
                record.say(" | ".join(map(str, rows[n, k])))
    named = ", ".join(f"{library} {version}" for library, version in versions.items())
    record.table(
        title,
        header,
        [rows[key] for key in sorted(rows)],
        f"{named}. Numbers, amounts and categories of a target of two classes. Damier as by default: "
        "columns, pairs, grid, cross-validated naive Bayes. skrub with a plot of every column, "
        "ydata-profiling with `minimal=True`, sweetviz with the target and without pairs. Interactive: "
        f"loaded, and idle for the first time; the median of {options.openings} openings in Chromium, on a "
        "machine that does other work as well, so that CPU seconds say more. Asked elsewhere: addresses "
        f"outside the file, which were refused. Other libraries have {options.time_limit:.0f} s for a page."
        + (" Pages of the other libraries were made earlier on the same machine." if options.keep else ""),
    )


def show_coclusters(record: Record, options: argparse.Namespace) -> None:
    """Open pages of coclusterings: as found, and with every cluster unfolded."""
    from damier import Coclustering
    from damier.report import render_coclustering, summarize_coclustering

    header = ["table", "clusters", "MB", "ms to interactive", "ms with all unfolded", "CPU s to make"]
    title = "Pages of coclusterings"
    sizes = [(200, 300, 6_000, 4, 5), (2_000, 5_000, 200_000, 20, 30), (20_000, 20_000, 5_000_000, 50, 60)]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for size in sizes[: 2 if options.quick else 3]:
            known = planted(*size, kind="clean", seed=1)
            model = Coclustering(random_state=0, n_jobs=1).fit(known.table).model_
            start = time.process_time()
            page = Path(folder) / "coclusters.html"
            page.write_text(render_coclustering(summarize_coclustering(model, "planted")), encoding="utf-8")
            cpu = time.process_time() - start
            times = 2 if options.quick else options.openings
            first = opened(browser, page, times, 60)["idle"]
            every = opened(browser, page, times, 60, f"#clusters={sum(model.cells.shape)}")["idle"]
            shape = " x ".join(f"{n:,}" for n in known.table.shape)
            cells = [f"{shape}, {known.table.nnz:,} ones", " x ".join(map(str, model.cells.shape))]
            cells += [f"{page.stat().st_size / MEGABYTE:.2f}", f"{first:,.0f}", f"{every:,.0f}", f"{cpu:.2f}"]
            record.row(title, header, cells)
    record.close(title, "The search is not counted.")


def show_scripts(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Measure the scripts."""
    from damier.report.page import SCRIPTS, verbatim

    rows = [
        ["report", f"{len(verbatim(*SCRIPTS).encode()):,}"],
        ["coclusters", f"{len(verbatim('core.js', 'coclustering.js').encode()):,}"],
    ]
    record.table("Scripts", ["page", "bytes"], rows, note="As they are in a page, not compressed.")


def show_controls(record: Record, options: argparse.Namespace) -> None:
    """Count the controls that the browser tests use."""
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "controls.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.page_controls", "-p", "no:xdist"]
        done = subprocess.run(
            [*command, str(ROOT / "tests" / "browser"), *(["-k", "coclusters"] if options.quick else [])],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "DAMIER_CONTROLS": str(seen)},
        )
        if not seen.exists():
            raise DataUnavailableError(f"the browser tests do not run: {done.stdout[-300:]}")
        kinds = {how: set(held) for how, held in json.loads(seen.read_text()).items()}
    used = kinds["mouse"] | kinds["keyboard"]
    for how in ("mouse", "keyboard"):
        for kind in sorted(kinds["shown"] - kinds[how]):
            record.say(f"  not by {how}: {kind}")
    rows = [
        ["kinds of controls shown", len(kinds["shown"])],
        ["used by mouse or keyboard", len(kinds["shown"] & used)],
        ["used by mouse", len(kinds["shown"] & kinds["mouse"])],
        ["used by keyboard", len(kinds["shown"] & kinds["keyboard"])],
    ]
    last = done.stdout.strip().splitlines()[-1].strip("= ")
    note = "The button that opens a variable is one kind, however many variables there are. "
    record.table("Controls in the browser tests", ["", "number"], rows, note=f"{note}Tests: {last}.")


if __name__ == "__main__":
    run(
        "page",
        __doc__,
        {
            "reports": show_reports,
            "coclusters": show_coclusters,
            "scripts": show_scripts,
            "controls": show_controls,
        },
        {
            "--peer-python": {"default": os.environ.get("DAMIER_PEER_PYTHON"), "metavar": "PROGRAM"},
            "--time-limit": {"type": float, "default": 120.0, "metavar": "SECONDS"},
            "--columns": {"type": int, "nargs": "+", "default": (12, 300, 1500), "metavar": "N"},
            "--libraries": {"nargs": "+", "choices": LIBRARIES, "default": LIBRARIES},
            "--keep": {"metavar": "FOLDER"},
            "--openings": {"type": int, "default": 5, "metavar": "N"},
        },
    )
