"""Estimators fitted to files and relations."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.base import clone

import damier
from damier.deploy.json import dumps
from tests.hostile.odd import INTS, TEXTS
from tests.hostile.promises import Broken, only_our_warnings, refused
from tests.hostile.tables import ESTIMATORS, FAST, answers, same

# DuckDB has no column without a name.
NAMES = ["x", "count", "it's", 'a"b', "a,b", "two\nlines", "\x1b[2J", "*", "SELECT", "é", "X"]
WRITABLE = [text for text in TEXTS if "\ud800" not in text]


def _column(rng, n, hidden):
    """Values that files hold, some of them missing; the hidden classes show in most."""

    def some(values):
        few = np.array([*values, None], dtype=object)[rng.integers(0, len(values) + 1, rng.integers(2, 6))]
        return few[(hidden + (rng.random(n) < 0.1)) % len(few)].tolist()

    match int(rng.integers(0, 9)):
        case 0 | 1:
            return pa.array(rng.normal(size=n) + 2 * hidden, mask=rng.random(n) < 0.1)
        case 2:
            return pa.array(some([0.5, -0.0, 0.0, 1e308, 5e-324, float("nan"), float("inf"), float("-inf")]))
        case 3:
            return pa.array(some(INTS), type=pa.int64())
        case 4 | 5:
            return pa.array(some(WRITABLE), type=pa.string())
        case 6:
            return pa.array(some([True, False]), type=pa.bool_())
        case 7:
            return pa.array(some(list(range(-3, 4))), type=pa.timestamp("us"))
        case _:
            return pa.array([[1]] * n, type=pa.list_(pa.int64()))


def _held(table, form, folder, rng):
    """Hand the rows to an engine: a file, several files, or a relation."""
    if form == "relation":
        connection = duckdb.connect()
        connection.register("held", table)
        return connection.sql("SELECT * FROM held")
    if form == "csv":
        pyarrow.csv.write_csv(table, folder / "t.csv")
        return folder / "t.csv"
    cut = int(rng.integers(0, table.num_rows + 1))
    for name, part in (("1", table.slice(0, cut)), ("2", table.slice(cut))):
        pyarrow.parquet.write_table(part, folder / f"{name}.parquet")
    return str(folder / "[12].parquet")


def try_source(seed):
    """Fit an estimator to a table in files or in DuckDB: a sentence, or the model of the same rows.

    Rows are counted where they are or collected; neither their order nor the number of threads changes the
    model, and collected rows give the model of the same rows in memory.
    """
    rng = np.random.default_rng(seed)
    name = ESTIMATORS[seed % len(ESTIMATORS)]
    form = ("parquet", "relation", "csv")[seed // len(ESTIMATORS) % 3]
    n = int(rng.choice([0, 1, 2, 20, 60, 200]))
    hidden = rng.integers(0, int(rng.integers(1, 4)), n)
    names = [str(one) for one in rng.permutation(NAMES)[: int(rng.integers(1, 5))]]
    columns = {one: _column(rng, n, hidden) for one in names}
    target = str(rng.choice(["target", *NAMES]))
    if name.endswith("Regressor") or rng.random() < 0.2:
        columns[target] = pa.array(hidden + rng.normal(size=n))
    elif rng.random() < 0.9:
        pool = [["no", "it's"], ["a", "", "1"], [0, 1, 2], [-1, 2**53, 2**53 + 1], [True, False]]
        kinds = pool[int(rng.integers(0, len(pool)))]
        columns[target] = pa.array([kinds[code % len(kinds)] for code in hidden])
    if form == "csv":  # lists are no cells
        columns = {one: held for one, held in columns.items() if not pa.types.is_list(held.type)}
    if form == "relation" and len({one.lower() for one in columns}) < len(columns):
        return  # DuckDB would rename one before we see it
    table = pa.table(columns)
    estimator = getattr(damier, name)(**FAST.get(name, {}))
    if "memory_limit" in estimator.get_params() and rng.random() < 0.6:
        estimator.set_params(memory_limit=0)
    counted = estimator.get_params().get("memory_limit") == 0

    def fitted(rows, **parameters):
        with tempfile.TemporaryDirectory() as folder:
            return clone(estimator).set_params(**parameters).fit(_held(rows, form, Path(folder), rng), target)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = fitted(table)
        except Exception as error:
            refused(error)
            return
        finally:
            only_our_warnings(caught)
        X = table if name == "DataGridClustering" else table.drop_columns([target])
        shuffled = fitted(table.take(rng.permutation(n)))
        if name == "BallPartitionClassifier":  # the model holds points in the order of the rows
            alike = same(answers(shuffled, X), answers(found, X))
        else:
            alike = dumps(shuffled.model_) == dumps(found.model_)
        if not alike:
            raise Broken("row order changes the model")
        threads = fitted(table, n_jobs=3)
        if name != "BallPartitionClassifier" and dumps(threads.model_) != dumps(found.model_):
            raise Broken("threads change the model")
        if hasattr(found, "predict") or hasattr(found, "transform"):
            try:
                scored = answers(found, X)
            except Exception as error:
                if form != "csv":
                    raise
                refused(error)  # a text such as '1.0' is a number once it was written and read
                return
            if len(scored) != n:
                raise Broken(f"{len(scored)} answers for {n} rows")
            if form != "csv" and not counted:
                # clustering takes no target: one that is not there is no error
                y = np.array(table.column(target).to_pylist()) if target in columns else None
                if not same(answers(clone(estimator).fit(X, y), X), scored):
                    raise Broken("rows in memory give other answers")
        only_our_warnings(caught)
