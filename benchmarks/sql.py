"""Models as SQL: length and time of the text, speed beside ``predict_proba``, engines, differences.

python -m benchmarks.sql                            # on the engines that are installed, Spark left out
python -m benchmarks.sql --only engines --engines spark polars
python -m benchmarks.sql --only cases --engines spark  # 1,000 drawn models and tables per engine: long
"""

from __future__ import annotations

import argparse
import datetime
import gc
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.records import Record, run
from damier import NaiveBayesClassifier, NaiveBayesRegressor
from damier.deploy import to_sql
from damier.models import IntervalPartition, NaiveBayes, VariableEvidence
from tests.deploy import sql_engines

VARIABLES, PARTS = 100, 10
CASES = 1000


def naive_bayes(n_classes: int, n_variables: int = VARIABLES, seed: int = 0) -> NaiveBayes:
    """Draw a model of numeric variables of ten parts each."""
    rng = np.random.default_rng(seed)
    classes = tuple(f"class {j}" for j in range(n_classes))
    variables = []
    for v in range(n_variables):
        partition = IntervalPartition(
            name=f"variable {v}",
            classes=classes,
            counts=rng.integers(1, 1000, (PARTS, n_classes)),
            bounds=tuple(np.sort(rng.normal(size=PARTS - 1)).tolist()),
            cost=1.0,
            null_cost=2.0,
            optimal=True,
        )
        variables.append(VariableEvidence((partition,), float(rng.random())))
    return NaiveBayes(classes, rng.integers(1, 1000, n_classes), tuple(variables))


def rows(model: NaiveBayes, n_rows: int) -> dict[str, Any]:
    """Draw a table for a model."""
    rng = np.random.default_rng(1)
    return {"id": np.arange(n_rows)} | {v.name: rng.normal(size=n_rows) for v in model.variables}


def spent(work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """Return the least seconds of three runs, and what the last one gave."""
    best, result = float("inf"), None
    for _ in range(3):
        gc.collect()
        start = clock()
        result = work()
        best = min(best, clock() - start)
    return best, result


def text(record: Record, _: argparse.Namespace) -> None:
    """Measure the text of a large model."""
    title = "Text of a naive Bayes of 100 variables x 10 parts"
    for n_classes in (2, 10):
        model = naive_bayes(n_classes)
        for dialect in sql_engines.NAMES:
            seconds, sql = spent(lambda d=dialect, m=model: to_sql(m, d, "t", keep=["id"]))
            cells = [dialect, n_classes, f"{len(sql.encode()) / 1000:.0f} kB", f"{seconds:.2f} s"]
            record.row(title, ["engine", "classes", "text", "CPU to write it"], cells)
    record.close(title)


def speed(record: Record, options: argparse.Namespace) -> None:
    """Compare DuckDB on one thread with ``predict_proba``, planning left out: 2 n rows less n rows."""
    title = "DuckDB beside predict_proba, CPU per row"
    engine = sql_engines.engine("duckdb")
    n = 20_000 if options.quick else 50_000
    columns = ["classes", "SQL, us per row", "predict_proba, us per row", "ratio", "planning"]
    for n_classes in (2, 10):
        model = naive_bayes(n_classes)
        table = rows(model, 2 * n)
        engine.load(pa.table(table), "t2")
        engine.load(pa.table({name: column[:n] for name, column in table.items()}), "t1")
        work: dict[str, Callable[[], Any]] = {"python": lambda m=model, t=table: m.predict_proba(t)}
        for name in ("t1", "t2"):
            sql = to_sql(model, "duckdb", name)
            work[name] = lambda s=sql: engine.connection.execute(s).fetchnumpy()
        # one after the other, several times: a busy machine slows all of them
        best = dict.fromkeys(work, float("inf"))
        for _ in range(3 if options.quick else 5):
            for name, run_once in work.items():
                gc.collect()
                start = time.process_time()
                run_once()
                best[name] = min(best[name], time.process_time() - start)
        per_row, scored = (best["t2"] - best["t1"]) / n, best["python"] / (2 * n)
        cells = [n_classes, f"{1e6 * per_row:.1f}", f"{1e6 * scored:.1f}", f"{per_row / scored:.2f}"]
        record.row(title, columns, [*cells, f"{2 * best['t1'] - best['t2']:.2f} s"])
    record.close(title, note="100 variables x 10 parts, one thread; the difference of two sizes of table.")


def fitted(record: Record, options: argparse.Namespace) -> None:
    """Measure what default estimators give, fitted on 20 numeric columns; the target depends on 12."""
    title = "Default estimators on 20 numeric columns"
    columns = ["estimator", "output", "text", "CPU to write it", "us per row on DuckDB", "us in Python",
               "planning", "largest difference"]  # fmt: skip
    engine = sql_engines.engine("duckdb")
    n = 4_000 if options.quick else 20_000
    rng = np.random.default_rng(0)
    X = {f"x{i}": rng.normal(size=5 * n) for i in range(20)}
    y = sum(np.sin(X[f"x{i}"] * (1 + i / 5)) * (1 + i % 3) for i in range(12)) + rng.normal(size=5 * n)
    trained = {name: column[:n] for name, column in X.items()}
    tables = {"t1": n, "t2": 5 * n}
    for name, size in tables.items():
        engine.load(pa.table({column: values[:size] for column, values in X.items()}), name)
    classifier = NaiveBayesClassifier().fit(trained, y[:n] > 0).model_
    regressor = NaiveBayesRegressor().fit(trained, y[:n]).model_
    cases: list[tuple[Any, str, Callable[[], Any]]] = [
        (classifier, "proba", lambda: classifier.predict_proba(X)),
        (regressor, "mean", lambda: regressor.predict(X)[:, np.newaxis]),
        (regressor, "quantiles", lambda: regressor.predict_quantile(X, [0.05, 0.5, 0.95])),
    ]
    for model, output, score in cases:
        wrote, _ = spent(lambda m=model, o=output: to_sql(m, "duckdb", "t2", output=o))
        python, expected = spent(score)
        used = dict.fromkeys(tables, float("inf"))
        for _ in range(3):  # one after the other: a busy machine slows both
            for name in tables:
                sql = to_sql(model, "duckdb", name, output=output)
                seconds, found = spent(lambda s=sql: engine.connection.execute(s).fetchnumpy())
                used[name] = min(used[name], seconds)
        worst = abs(np.column_stack(list(found.values())) - expected).max()
        per_row = (used["t2"] - used["t1"]) / (tables["t2"] - tables["t1"])
        cells = [f"{len(sql.encode()) / 1000:.0f} kB", f"{wrote:.2f} s", f"{1e6 * per_row:.1f}"]
        planning = used["t1"] - tables["t1"] * per_row
        cells += [f"{1e6 * python / (5 * n):.1f}", f"{planning:.2f} s", f"{worst:.1e}"]
        record.row(title, columns, [str(model).strip("<>"), output, *cells])
    record.close(title, note=f"Fitted on {n:,} rows, {5 * n:,} scored on one thread; three quantiles.")


def processor_seconds() -> float:
    """Return the processor time of this process and of all it started: servers, Java."""
    ticks, parent, used = os.sysconf("SC_CLK_TCK"), {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parent[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
    total, ours = 0.0, {os.getpid()}
    while ours:
        total += sum(used[pid] for pid in ours)
        ours = {pid for pid, above in parent.items() if above in ours}
    return total


def asked(options: argparse.Namespace) -> list[str]:
    """Return the engines to run."""
    names = options.engines or [name for name in sql_engines.NAMES if name != "spark"]
    sql_engines.ASKED = ",".join(names)
    return names


def keep_others(record: Record, title: str, columns: list[str], names: list[str]) -> None:
    """Keep what was recorded of the engines that are not run now, in the order of the engines."""
    order = sql_engines.NAMES.index
    record.merge(title, columns, lambda row: row[0] not in names, lambda row: order(row[0]))


def engines(record: Record, options: argparse.Namespace) -> None:
    """Measure rows per second and the largest difference on each engine."""
    columns = ["engine", "classes", "rows", "rows per second", "rows per CPU second",
               "CPU per row, predict_proba = 1", "largest difference", "date"]  # fmt: skip
    names = asked(options)
    for name in names:
        try:
            engine = sql_engines.engine(name)
        except pytest.skip.Exception as reason:
            record.say(f"{name}: skipped, {reason}")
            continue
        if name == "clickhouse":
            engine.session.query("SET max_query_size = 10000000, max_ast_elements = 1000000")
        for n_classes in (2, 10):
            n = 2_000 if options.quick else ROWS[name][n_classes == 10]
            model = naive_bayes(n_classes)
            table = rows(model, n)
            engine.load(pa.table(table))
            sql = to_sql(model, name, "t", keep=["id"])
            wall = used = float("inf")
            for _ in range(1 if name == "spark" else 3):
                start = time.perf_counter(), processor_seconds()
                _, found = engine.run(sql)
                wall = min(wall, time.perf_counter() - start[0])
                used = min(used, processor_seconds() - start[1])
            scored = spent(lambda m=model, t=table: m.predict_proba(t))[0]
            proba = np.array([row[1:] for row in sorted(found)], dtype=float)
            worst = float(abs(proba - model.predict_proba(table)).max())
            cells = [name, n_classes, f"{n:,}", f"{n / wall:,.0f}", f"{n / used:,.0f}"]
            today = datetime.date.today().isoformat()
            record.row(TITLE, columns, [*cells, f"{used / scored:.1f}", f"{worst:.1e}", today])
    keep_others(record, TITLE, columns, names)
    record.close(TITLE, note=ENGINES_NOTE)


TITLE = "The same model on each engine"
ENGINES_NOTE = (
    "100 variables x 10 parts; planning and fetching of Python objects included; the best of three runs, "
    "Spark's first one. Processor time counts servers and Java. The machine ran other work: rows per second "
    "of the clock are too low."
)
# Rows scored for 2 and for 10 classes: a few seconds each.
ROWS = {
    "duckdb": (50_000, 100_000),
    "sqlite": (50_000, 10_000),
    "postgres": (20_000, 20_000),
    "mysql": (10_000, 10_000),
    "clickhouse": (50_000, 100_000),
    "datafusion": (50_000, 50_000),
    "polars": (50_000, 10_000),
    "spark": (20_000, 20_000),
}


def cases(record: Record, options: argparse.Namespace) -> None:
    """Run the test that draws models and tables a thousand times per engine; print what fails."""
    title = "Drawn models and tables on each engine"
    columns = ["engine", "models", "seed", "outcome", "seconds", "date"]
    n = 20 if options.quick else CASES
    names = asked(options)
    for name in names:
        settings = {"DAMIER_SQL_CASES": str(n), "DAMIER_SQL_ENGINES": name}
        test = ["tests/deploy/test_sql.py", "-q", "-k", f"drawn_models and {name}"]
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *test, f"--hypothesis-seed={options.seed}"]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
        last = done.stdout.strip().splitlines()[-1]
        cells = [name, f"{n:,}", options.seed, last.partition(",")[0], f"{time.perf_counter() - start:.0f}"]
        record.row(title, columns, [*cells, datetime.date.today().isoformat()])
        if done.returncode:
            failed = Path(tempfile.gettempdir(), f"damier-sql-{name}-{options.seed}.txt")
            failed.write_text(done.stdout + done.stderr, encoding="utf-8")
            record.say(f"{falsifying(done.stdout)}\nAll of it: {failed}\nAgain: {again(settings, command)}")
    keep_others(record, title, columns, names)
    record.close(title, note=CASES_NOTE)


def falsifying(output: str) -> str:
    """Return the example that Hypothesis says fails, and why, from the output of pytest."""
    kept = [line for line in output.splitlines() if line.startswith(("E ", "FAILED", "ERROR"))]
    return "\n".join(kept) or output


def again(settings: dict[str, str], command: list[str]) -> str:
    """Return the line of a shell that runs a failing test again."""
    return shlex.join(["env", *(f"{name}={value}" for name, value in settings.items()), *command])


CASES_NOTE = (
    "Names, classes, texts, numbers and booleans drawn by Hypothesis, five rows near the bounds and values "
    "of each model. Passed: every probability within 1e-12 of `predict_proba`, every class that of `predict` "
    "but at ties."
)


if __name__ == "__main__":
    run(
        "sql",
        __doc__,
        {"text": text, "speed": speed, "fitted": fitted, "engines": engines, "cases": cases},
        {
            "--engines": {"nargs": "+", "choices": sql_engines.NAMES, "help": "some engines"},
            "--seed": {"type": int, "default": 0, "help": "seed of the drawn models and tables"},
        },
    )
