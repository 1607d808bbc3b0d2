"""Khiops' coclustering of a table, stopped after some seconds: what it had found by then.

The parent side runs here; `main` runs in the interpreter that has Khiops (see `benchmarks.peers`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import ROOT


@dataclass(frozen=True)
class KhiopsClusters:
    """Labels of rows and columns, None where Khiops reported none in time."""

    labels: tuple[np.ndarray, np.ndarray] | None
    seconds: float
    finished: bool


def khiops_clusters(table: Any, python: str, env: dict[str, str], limit: float) -> KhiopsClusters:
    """Give Khiops the ones of a table as pairs and read the last report it wrote within ``limit`` seconds."""
    entries = table.tocoo()
    rows, columns = entries.coords
    with tempfile.TemporaryDirectory() as folder:
        pairs = pd.DataFrame({"row": [f"r{i}" for i in rows], "column": [f"c{j}" for j in columns]})
        pairs.to_csv(Path(folder) / "pairs.txt", sep="\t", index=False)
        begin = time.perf_counter()
        # a session of its own: Khiops starts programs that must end with it
        process = subprocess.Popen(
            [python, "-m", "benchmarks.khiops_coclustering", folder],
            cwd=ROOT,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(limit)
            finished = True
        except subprocess.TimeoutExpired:
            finished = False
        finally:
            _end_session(process)
        seconds = time.perf_counter() - begin
        reports = sorted(Path(folder).rglob("*.khcj"), key=lambda path: path.stat().st_mtime)
        labels = None
        for path in reversed(reports):
            labels = _labels(path, table.shape)
            if labels is not None:
                break
    return KhiopsClusters(labels, seconds, finished)


def _end_session(leader: subprocess.Popen[bytes]) -> None:
    """End the worker and what it started: Khiops' launcher puts programs into process groups of their own."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
    leader.wait()


def _labels(report: Path, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Clusters by row and column from a report; values it does not list share the last cluster."""
    try:
        partitions = json.loads(report.read_text())["coclusteringReport"]["dimensionPartitions"]
    except (json.JSONDecodeError, KeyError):
        return None
    found = {}
    for axis in partitions:
        groups = axis.get("valueGroups", [])
        labels = np.full(shape[0 if axis["name"] == "row" else 1], max(len(groups) - 1, 0))
        for number, group in enumerate(groups):
            for value in group["values"]:
                if value[1:].isdigit():
                    labels[int(value[1:])] = number
        found[axis["name"]] = labels
    return (found["row"], found["column"]) if {"row", "column"} <= found.keys() else None


def main(folder: str) -> None:
    """Run Khiops on the pairs of a folder."""
    from khiops import core

    domain = core.DictionaryDomain()
    dictionary = core.Dictionary()
    dictionary.name = "pairs"
    for name in ("row", "column"):
        variable = core.Variable()
        variable.name, variable.type = name, "Categorical"
        dictionary.add_variable(variable)
    domain.add_dictionary(dictionary)
    core.train_coclustering(
        domain,
        "pairs",
        str(Path(folder) / "pairs.txt"),
        ["row", "column"],
        str(Path(folder) / "report.khcj"),
        field_separator="\t",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
