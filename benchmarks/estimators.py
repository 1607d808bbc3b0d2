"""First fit (compiling included), later fits and predictions of every estimator, in CPU seconds.

    python -m benchmarks.estimators                      # this source tree
    python -m benchmarks.estimators --beside OTHER/src   # another source tree too, in the same run
    python -m benchmarks.estimators --only LinfClassifier,Coclustering

Each estimator runs in a process of its own with an empty compilation cache, first here, then in the other
tree. ``cost`` is that of the model found (log-loss on the training rows where a model has none): the same in
both trees, or lower here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.records import Record

SOURCE = Path(__file__).resolve().parent.parent / "src"

# Makes X (mixed: numbers, categories, missing values) and y; fits and scores. Runs in either tree.
PROGRAM = r"""
import json, sys, time, warnings
import numpy as np
name = sys.argv[1]
rng = np.random.default_rng(0)
n = 20_000
numbers = rng.normal(size=(n, 8)); numbers[rng.random((n, 8)) < 0.02] = np.nan
words = np.array(["a", "b", "c", "d", "e", "f", "g", "h"])[rng.integers(0, 8, (n, 4))]
z = np.nan_to_num(numbers)
score = z[:, 0] + (z[:, 1] > 0) * (words[:, 0] < "d") * 2 + rng.normal(size=n)
y = np.digitize(score, [-0.5, 1.0])
X = {f"n{k}": numbers[:, k] for k in range(8)} | {f"c{k}": words[:, k] for k in range(4)}
points = rng.uniform(-1, 1, (1500, 2)); side = (points[:, 0] > 0) ^ (points[:, 1] > 0)
rows, columns = np.repeat(np.arange(6), 100), np.repeat(np.arange(5), 80)
dense = rng.random((6, 5)) * 0.2
table = (rng.random((600, 400)) < dense[rows][:, columns]).astype(int)
import scipy.sparse as sp
import damier
import sklearn.base, sklearn.linear_model, sklearn.model_selection  # not to be counted
def make():
    if name == "Coclustering": return damier.Coclustering(random_state=0), (sp.csr_array(table),)
    if name == "CoclusteringClassifier":
        labels = np.where(rng.random(600) < 0.2, rows, -1)
        return damier.CoclusteringClassifier(), (sp.csr_array(table), labels)
    if name == "BallPartitionClassifier": return damier.BallPartitionClassifier(), (points, side)
    if name == "DataGridClustering":
        small = {k: v[:2000] for k, v in X.items() if k in ("n0", "n1", "c0")} | {"y": y[:2000].astype(str)}
        return getattr(damier, "DataGridClustering", damier.Coclustering)(), (small,)
    if name == "NaiveBayesClassifier": return damier.NaiveBayesClassifier(averaging="compression"), (X, y)
    if name == "MODLDiscretizer": return damier.MODLDiscretizer(), (numbers, y)
    if name == "MODLGrouper": return damier.MODLGrouper(), (words, y)
    if name == "DataGridEnsembleClassifier":
        return damier.DataGridEnsembleClassifier(n_grids=20, effort=1), (numbers[:4000], y[:4000])
    if name == "LinfClassifier": return damier.LinfClassifier(random_state=1), (X, y)
    return getattr(damier, name)(), (X, y)
def spent(work):
    start = time.process_time(); result = work(); return time.process_time() - start, result
warnings.simplefilter("ignore")
estimator, data = make()
first, fitted = spent(lambda: estimator.fit(*data))
second = min(spent(lambda: sklearn.base.clone(estimator).fit(*data))[0] for _ in range(2))
ask = fitted.predict if hasattr(fitted, "predict") else fitted.transform
scored = float("nan")
if name != "DataGridClustering":  # older versions cannot score it
    scored = min(spent(lambda: ask(data[0]))[0] for _ in range(2))
model = getattr(fitted, "model_", None) or getattr(fitted, "coclustering_", None) or fitted
cost = getattr(model, "cost", None) or getattr(fitted, "cost_", None)
if cost is None and hasattr(fitted, "partitions_"): cost = sum(p.cost for p in fitted.partitions_.values())
if cost is None or name in ("NaiveBayesClassifier", "LinfClassifier", "DataGridEnsembleClassifier"):
    from sklearn.metrics import log_loss
    labels = data[1]; known = labels != -1 if labels.dtype != bool else np.ones(len(labels), bool)
    cost = log_loss(labels[known], fitted.predict_proba(data[0])[known], labels=fitted.classes_)
print(json.dumps([first - second, second, scored, float(cost)]))
"""

NAMES = (
    "MODLDiscretizer",
    "MODLGrouper",
    "MODLEncoder",
    "NaiveBayesClassifier",
    "DataGridClassifier",
    "DataGridEnsembleClassifier",
    "DataGridClustering",
    "Coclustering",
    "CoclusteringClassifier",
    "BallPartitionClassifier",
    "LinfClassifier",
)


def measure(name: str, source: Path) -> list[float]:
    """Return CPU seconds of compiling, fitting and scoring, and the cost found."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name],
            env={**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{name} in {source}: {done.stderr.strip().splitlines()[-1]}")
    figures: list[float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure, print, and keep what was measured if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="source folder of another version")
    parser.add_argument("--only", default=",".join(NAMES), help="estimators, by comma")
    parser.add_argument("--record", action="store_true", help="keep the figures for docs/results")
    options = parser.parse_args()
    columns = ["estimator", "compile", "fit", "predict or transform", "cost"]
    if options.beside:
        columns += ["other: compile", "fit", "predict or transform", "cost"]
    rows = []
    for name in options.only.split(","):
        trees = [SOURCE, options.beside] if options.beside else [SOURCE]
        measured = [figure for tree in trees for figure in measure(name, tree)]
        row = [f"{x:.6f}" if i % 4 == 3 else f"{x:.3f}" for i, x in enumerate(measured)]
        print(name, *row, flush=True)
        rows.append([name, *row])
    record = Record("estimators")
    record.table(
        "CPU seconds of each estimator",
        columns,
        rows,
        note="20,000 rows of 12 columns, 3 classes, but 1,500 points for balls, 4,000 rows for the ensemble, "
        "2,000 rows of 4 columns for the grid without a target, a table of 600 x 400 for coclustering.",
    )
    if options.record:
        record.save()


if __name__ == "__main__":
    main()
