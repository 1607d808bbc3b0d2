"""Other libraries beside Damier, each in a process of its own and in the interpreter that has it.

Name an interpreter that has Khiops and OptBinning in ``DAMIER_PEER_PYTHON`` or with ``--peer-python``; what
is installed nowhere is named and left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import ROOT

MODULE_OF = {
    "damier": "damier",
    "khiops": "khiops",
    "optbinning": "optbinning",
    "kbins": "sklearn",
    "sort": "numpy",
}
PEERS = ("khiops", "optbinning", "kbins")


@dataclass(frozen=True)
class Measure:
    """What one fit took and found."""

    library: str
    seconds: float
    cpu: float
    peak_mb: float
    found: dict[str, tuple[list[float], bool]]

    def counts(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Rows of each interval and class of one variable."""
        bounds, left = self.found.get(name, ([], True))
        classes, codes = np.unique(y, return_inverse=True)
        part = np.searchsorted(np.asarray(bounds, dtype=float), x, side="left" if left else "right")
        table = np.bincount(part * len(classes) + codes, minlength=(len(bounds) + 1) * len(classes))
        table = table.reshape(-1, len(classes))
        return table[table.sum(axis=1) > 0]


@cache
def interpreter(library: str, peer_python: str | None) -> str | None:
    """Find an interpreter that has the library, this one first."""
    own = library in ("damier", "kbins", "sort")
    for python in [sys.executable] if own else [sys.executable, peer_python]:
        if python is None:
            continue
        asked = subprocess.run(
            [python, "-c", f"import importlib.util as u; assert u.find_spec({MODULE_OF[library]!r})"],
            capture_output=True,
            check=False,
            env=environment(python),
        )
        if asked.returncode == 0:
            return python
    return None


def environment(python: str) -> dict[str, str]:
    """Programs that a library starts are found beside its interpreter."""
    env = dict(os.environ)
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env.get('PATH', '')}"
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return env


def measure(
    library: str,
    X: pd.DataFrame,
    y: Any,
    *,
    peer_python: str | None = None,
    repeats: int = 1,
    timeout: float = 1200,
    **options: Any,
) -> Measure | str:
    """Fit one library; a string says why there is no measure."""
    python = interpreter(library, peer_python)
    if python is None:
        return f"{library}: not installed"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        labels = np.unique(np.asarray(y), return_inverse=True)[1]
        np.savez(data, X=X.to_numpy(dtype=float), names=np.asarray(X.columns, dtype=str), y=labels)
        try:
            done = subprocess.run(
                [
                    python,
                    "-m",
                    "benchmarks.peer_worker",
                    library,
                    str(data),
                    json.dumps(options),
                    str(repeats),
                ],
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
                env=environment(python),
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return f"{library}: stopped after {timeout:.0f} s"
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not results:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return f"{library}: failed ({last})"
    return Measure(library, **json.loads(results[-1].removeprefix("RESULT ")))
