"""What the first minute costs: CPU seconds of first and second runs, of each kernel, and of one row.

    python -m benchmarks.cold_start                          # compiles a release's kernels first: two minutes
    python -m benchmarks.cold_start --compiled FOLDER        # made by python -m damier.commands.pack FOLDER
    python -m benchmarks.cold_start --only checkout rows
    python -m benchmarks.cold_start --only speed

Every run is a process of its own. ``release`` runs with compiled kernels in a folder and no cache of Numba's,
as an installed release wheel does; ``speed`` compares the run times and models of such kernels with those of
kernels that Numba compiles for this machine, on tables like those of `benchmarks.univariate`, `.grids`,
`.coclustering` and `.linf`; ``checkout`` runs with an empty cache, then with the cache it has filled;
``kernels`` says what each function that Python calls took to compile in a first report. Run it by an
interpreter that has no more than Damier needs: some libraries import others where they are installed.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.records import Record, run
from damier.commands.pack import LEVELS_VARIABLE
from damier.search.packaged import levels

COLUMNS = ("what", "CPU seconds", "by the clock")
REPORT = ["-m", "damier", "report", "--sample", "--no-progress", "-o", os.devnull]
NAMES = (
    "MODLEncoder",
    "MODLEncoder number",
    "MODLDiscretizer",
    "MODLDiscretizer number",
    "MODLGrouper",
    "MODLGrouper number",
    "NaiveBayesClassifier",
    "NaiveBayesRegressor",
    "DataGridClassifier",
    "DataGridEnsembleClassifier",
    "DataGridRegressor",
    "DataGridClustering",
    "Coclustering",
    "CoclusteringClassifier",
    "BallPartitionClassifier",
    "LinfClassifier",
)
WORDS = {"number": ", numeric target", "": ""}

FIRST_FIT = r"""
import sys, time, warnings
import numpy as np
import sklearn.base, sklearn.linear_model, sklearn.model_selection, numba  # not to be counted
import damier
import damier.search.kernels
name, _, how = sys.argv[1].partition(" ")
estimator = getattr(damier, name)()
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 300)
X = {"size": rng.normal(y, 1.0), "age": rng.integers(0, 60, 300) + 9.0 * y, "noise": rng.normal(size=300)}
if name.startswith("Coclustering"):
    X = rng.poisson(np.where(y[:, None] == np.arange(8) % 2, 4.0, 0.3))
    y = np.where(np.arange(300) % 4, -1, y)
if name == "MODLGrouper":
    X = {key: (column // 1).astype(str) for key, column in X.items()}
if how == "number" or name.endswith("Regressor"):
    y = y + rng.normal(size=300)
warnings.simplefilter("ignore")
begun = time.process_time()
estimator.fit(X, y)
print(time.process_time() - begun)
"""

SECOND_FIT = """
import numpy as np
from damier import MODLEncoder
rng = np.random.default_rng(0)
MODLEncoder().fit(rng.normal(size=(500, 3)), rng.integers(0, 2, 500))
"""

SAVE = r"""
import sys, warnings
import numpy as np
import damier
from damier.deploy import save
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 3000)
X = {f"n{j}": rng.normal(size=3000) + y * (j % 3 == 0) * 0.8 for j in range(10)}
for j in range(4):
    X[f"c{j}"] = np.where(rng.random(3000) < 0.4 + 0.1 * j, y, rng.integers(0, 8, 3000)).astype(str)
name = sys.argv[1]
if name.endswith("Regressor"):
    y = y + rng.normal(size=3000)
save(getattr(damier, name)().fit(X, y), sys.argv[2])
"""

ROWS = r"""
import json, sys, time
begun = time.process_time()
from damier.deploy import load
model = load(sys.argv[1])
loaded = time.process_time() - begun
predict = getattr(model, "predict_proba", None) or model.predict
import numpy as np
rng = np.random.default_rng(1)
names = [f"n{j}" for j in range(10)]
rows = [
    {**dict(zip(names, rng.normal(size=10).tolist())), **{f"c{j}": str(rng.integers(0, 9)) for j in range(4)}}
    for _ in range(500)
]
predict(rows[0])
begun = time.process_time()
for row in rows:
    predict(row)
each = (time.process_time() - begun) / len(rows)
begun = time.process_time()
for row in rows[:50]:
    predict({name: [value] for name, value in row.items()})
print(json.dumps([loaded, each, (time.process_time() - begun) / 50]))
"""


SPEED = r"""
import hashlib, json, sys, time, warnings
import numpy as np
import damier
from damier.deploy.json import dumps
rng = np.random.default_rng(0)
n = 200_000
y = rng.integers(0, 3, n)
columns = {f"n{j}": rng.normal(size=n) + 0.3 * j * (y == 1) for j in range(4)}
columns["few"] = rng.integers(0, 90, n) + 5.0 * y
columns["group"] = np.where(rng.random(n) < 0.3, y, rng.integers(0, 400, n)).astype(str)
rows = rng.random((6_000, 12))
parts = (rows[:, :3] > 0.45).sum(axis=1) % 2
kind = rng.integers(0, 12, 1_500)
counts = rng.poisson(np.where(kind[:, None] == np.arange(700) % 12, 0.9, 0.05))
third = np.arange(3_000) % 3
near = rng.normal(size=(3_000, 8)) + 1.5 * third[:, None] * (np.arange(8) < 3)
work = {
    "univariate: 200,000 rows, 6 columns": lambda: damier.MODLEncoder().fit(columns, y),
    "grids: 6,000 rows, 12 columns": lambda: damier.DataGridClassifier(effort=5).fit(rows, parts),
    "coclustering: 1,500 x 700": lambda: damier.Coclustering().fit(counts),
    "LINF: 3,000 rows, 8 columns": lambda: damier.LinfClassifier(n_estimators=4).fit(near, third),
}
found = {}
warnings.simplefilter("ignore")
for name, fit in work.items():
    fit()
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        model = fit()
        seconds.append(time.process_time() - begun)
    found[name] = min(seconds), hashlib.sha256(dumps(model.model_).encode()).hexdigest()
print(json.dumps(found))
"""

KERNELS = r"""
import json, sys, threading, time
from numba.core import event
entries, local = [], threading.local()
class Listener(event.Listener):
    def on_start(self, event):
        local.open = getattr(local, "open", [])
        local.open.append([time.thread_time(), 0])
    def on_end(self, event):
        begun, inner = local.open.pop()
        if local.open:
            local.open[-1][1] += inner + 1
        else:
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__qualname__}".removeprefix("damier.search.")
            entries.append([name, inner, time.thread_time() - begun])
event.register("numba:compile", Listener())
import damier.commands.workload
damier.commands.workload.compile_beside = lambda: None  # all of them in this process
from damier.__main__ import main
written, sys.argv[1:] = sys.argv[1], ["report", "--sample", "--no-progress", "-o", "/dev/null"]
try:
    main()
finally:
    with open(written, "w") as file:
        json.dump(entries, file)
"""


def spend(arguments: list[str], **variables: str) -> tuple[float, float, str]:
    """Run Python; return CPU seconds, seconds by the clock, and what it printed."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    clock, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr.strip()[-400:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, clock, done.stdout


def compiled_folder(record: Record, options: argparse.Namespace) -> str:
    """Compile all kernels for this kind of processor, once per run; return their folder."""
    if not options.compiled:
        options.compiled = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, options.compiled, ignore_errors=True)
        level = {LEVELS_VARIABLE: levels()[0]}
        cpu, clock, said = spend(["-m", "damier.commands.pack", options.compiled], **level)
        title = "With the compiled kernels of a release wheel"
        record.row(title, COLUMNS, ["to compile all kernels, once per release", cpu, clock])
        record.say(said)
    return str(options.compiled)


def release(record: Record, options: argparse.Namespace) -> None:
    """First runs with the compiled kernels of a release wheel."""
    title = "With the compiled kernels of a release wheel"
    variables = {"DAMIER_COMPILED": compiled_folder(record, options)}
    with tempfile.TemporaryDirectory() as cache:
        variables["NUMBA_CACHE_DIR"] = cache
        cpu, clock, _ = spend(REPORT, **variables)
        record.row(title, COLUMNS, ["first report --sample", cpu, clock])
        for name in NAMES:
            _, _, said = spend(["-c", FIRST_FIT, name], **variables)
            what, _, how = name.partition(" ")
            record.row(title, COLUMNS, [f"first fit of {what}{WORDS[how]}", float(said), ""])
        if any(Path(cache).rglob("*.nbi")):
            record.say("some functions were compiled all the same")
    record.close(title, note="Imports are counted for reports, not for fits.")


def checkout(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """First and second runs of a checkout."""
    title = "From a checkout"
    with tempfile.TemporaryDirectory() as cache:
        variables = {"DAMIER_COMPILED": "", "NUMBA_CACHE_DIR": cache}
        for what, arguments in (
            ("first report --sample", REPORT),
            ("second report --sample", REPORT),
            ("damier --help", ["-m", "damier", "--help"]),
        ):
            cpu, clock, _ = spend(arguments, **variables)
            record.row(title, COLUMNS, [what, cpu, clock])
        spend(["-c", SECOND_FIT], **variables)
        cpu, clock, _ = spend(["-c", SECOND_FIT], **variables)
        record.row(title, COLUMNS, ["second process, MODLEncoder().fit of 500 x 3", cpu, clock])
    record.close(title, note="Imports are counted. In the first report a second process compiles as well.")


def speed(record: Record, options: argparse.Namespace) -> None:
    """Fit with the kernels of a release wheel and with those compiled here, in turns."""
    title = "Run times with the kernels of a release wheel"
    columns = ("what", "compiled for this machine", "of a release wheel", "ratio", "models")
    folder = compiled_folder(Record(record.benchmark), options)
    best: dict[str, dict[str, float]] = {}
    models: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as cache:
        for turn in range(4):
            for where in ("", folder):
                threads = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                said = spend(["-c", SPEED], DAMIER_COMPILED=where, NUMBA_CACHE_DIR=cache, **threads)[2]
                for name, (seconds, model) in json.loads(said).items():
                    models.setdefault(name, set()).add(model)
                    if turn > 0:  # the first one compiles
                        known = best.setdefault(name, {})
                        known[where] = min(seconds, known.get(where, seconds))
    for name, known in best.items():
        same = "the same" if len(models[name]) == 1 else "not the same"
        cells = [name, known[""], known[folder], f"{known[folder] / known['']:.3f}", same]
        record.row(title, columns, cells)
    record.close(
        title,
        note="CPU seconds of a fit, the least of three in each of three processes, in turns. Models are "
        "compared to the last digit.",
    )


def kernels(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Compile in a first report, and say what each kernel took."""
    title = "Compiling, in a first report"
    columns = ("kernel", "functions inside", "CPU seconds")
    with tempfile.TemporaryDirectory() as cache:
        written = Path(cache, "entries.json")
        spend(["-c", KERNELS, str(written)], DAMIER_COMPILED="", NUMBA_CACHE_DIR=cache)
        entries = json.loads(written.read_text())
    for name, inner, seconds in sorted(entries, key=lambda entry: -entry[2]):
        record.row(title, columns, [name, inner, seconds])
    record.row(title, columns, ["all", *(sum(entry[k] for entry in entries) for k in (1, 2))])
    record.close(title, note="Functions that Python calls, with those compiled into them.")


def rows(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Score one row with a loaded model."""
    title = "One row given as a dict"
    columns = ("model", "load, imports counted", "microseconds per row", "as a table of one row")
    names = (
        "NaiveBayesClassifier",
        "NaiveBayesRegressor",
        "DataGridClassifier",
        "DataGridEnsembleClassifier",
        "DataGridRegressor",
        "LinfClassifier",
    )
    numpy_alone, _, _ = spend(["-c", "import numpy"])
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = str(Path(folder, f"{name}.json"))
            spend(["-c", SAVE, name, path])
            loaded, each, table = json.loads(spend(["-c", ROWS, path])[2])
            record.row(title, columns, [name, loaded, round(1e6 * each), round(1e6 * table)])
    record.close(
        title,
        note="14 columns, 3 classes, 3,000 training rows. Loading is in CPU seconds; importing NumPy alone "
        f"takes {numpy_alone:.2f} of them in the same run.",
    )


if __name__ == "__main__":
    run(
        "cold_start",
        __doc__,
        {"release": release, "checkout": checkout, "kernels": kernels, "rows": rows, "speed": speed},
        {"--compiled": {"help": "folder of compiled kernels"}},
    )
