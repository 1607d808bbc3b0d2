"""Khiops beside the grids: all pairs of some columns, and its grid predictor, shown in an expert mode only.

Khiops runs in the interpreter that ``DAMIER_PEER_PYTHON`` names, or in this one; where it is not installed,
the functions return None.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peers import environment, interpreter

_PAIRS = """
import sys, time, pandas as pd
from khiops.sklearn import KhiopsClassifier
data = pd.read_csv(sys.argv[1])
began = time.perf_counter()
KhiopsClassifier(n_trees=0, n_pairs=int(sys.argv[2])).fit(data.drop(columns="y"), data["y"])
print("SECONDS", time.perf_counter() - began)
"""

_GRID = """
ClassManagement.OpenFile
ClassFileName {folder}/data.kdic
OK
TrainDatabase.ClassName data
TrainDatabase.DatabaseSpec.Data.DatabaseFiles.List.Key
TrainDatabase.DatabaseSpec.Data.DatabaseFiles.DataTableName {folder}/data.txt
TrainDatabase.DatabaseSpec.Sampling.SampleNumberPercentage 100
TrainDatabase.TestDatabaseSpecificationMode None
AnalysisSpec.TargetAttributeName y
AnalysisSpec.PredictorsSpec.ConstructionSpec.MaxTreeNumber 0
AnalysisSpec.PredictorsSpec.ConstructionSpec.MaxAttributePairNumber 0
AnalysisSpec.PredictorsSpec.ExpertSpec.DataGridPredictor true
AnalysisResults.ReportFileName {folder}/report.khj
ComputeStats
ClassManagement.Quit
OK
"""


@dataclass(frozen=True)
class KhiopsGrid:
    """The bounds of the columns Khiops cut, its own level, and what it took."""

    bounds: dict[str, list[float]]
    level: float
    seconds: float


def khiops_pairs(X: pd.DataFrame, y: pd.Series) -> float | None:
    """Return the wall seconds Khiops takes for all pairs of the columns."""
    python = _python()
    if python is None:
        return None
    n_pairs = X.shape[1] * (X.shape[1] - 1) // 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        X.assign(y=np.asarray(y).astype(int)).to_csv(path, index=False)
        ran = subprocess.run(
            [python, "-c", _PAIRS, str(path), str(n_pairs)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(python),
        )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("SECONDS")]
    return float(lines[0].split()[1]) if lines else None


def khiops_grid(X: np.ndarray, y: np.ndarray) -> KhiopsGrid | None:
    """Fit Khiops' grid predictor on numeric columns; the time is that of its whole run, reading included."""
    python = _python()
    if python is None or shutil.which("khiops", path=environment(python)["PATH"]) is None:
        return None
    names = [f"v{k}" for k in range(X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        table = pd.DataFrame(X, columns=names).assign(y=[f"c{one}" for one in y])
        table.to_csv(Path(folder) / "data.txt", sep="\t", index=False)
        columns = [f"Numerical {name};" for name in names] + ["Categorical y;"]
        (Path(folder) / "data.kdic").write_text("\n".join(["Dictionary data", "{", *columns, "};", ""]))
        (Path(folder) / "scenario").write_text(_GRID.format(folder=folder))
        began = time.perf_counter()
        subprocess.run(
            ["khiops", "-b", "-i", str(Path(folder) / "scenario"), "-e", str(Path(folder) / "log")],
            capture_output=True,
            check=False,
            env={**environment(python), "KhiopsExpertMode": "true"},
        )
        seconds = time.perf_counter() - began
        report = Path(folder) / "report.khj"
        if not report.exists():
            return None
        predictors = json.loads(report.read_text())["modelingReport"]["trainedPredictorsDetails"]
    found = next(one for one in predictors.values() if "dataGrid" in one)
    bounds = {
        axis["variable"]: [float(interval[1]) for interval in axis["partition"][:-1]]
        for axis in found["dataGrid"]["dimensions"]
        if axis["variable"] in names and len(axis["partition"]) > 1
    }
    return KhiopsGrid(bounds, float(found["level"]), seconds)


def _python() -> str | None:
    return interpreter("khiops", os.environ.get("DAMIER_PEER_PYTHON", sys.executable))
