"""Fit every estimator as a newcomer does, and write their models to a file.

``first_use.py FILE`` fails as soon as anything is compiled: a release wheel must bring all of it along.
``first_use.py FILE --compile`` lets Numba compile, for comparison: both files must be the same.
"""

import inspect
import json
import sys
from pathlib import Path

import duckdb
import numpy as np
from numba.core import event

import damier
from damier.deploy.json import dumps


class Refusal(event.Listener):
    """Refuses to compile."""

    def on_start(self, event):
        """End the run, naming the function."""
        raise SystemExit(f"compiled on first use: {event.data['dispatcher']} {event.data['args']}")

    def on_end(self, event):
        """Do nothing: it never comes to this."""


def columns(n_classes, n=333):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, n)
    X = {
        "weight": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y, 1.0)),
        "rank": rng.integers(0, 9, n) + y,
        "town": np.array([f"town {k}" for k in rng.integers(0, 25, n) * (1 + y)], dtype=object),
        "member": rng.random(n) < 0.3 + 0.2 * y,
    }
    return X, np.array(["no", "yes", "perhaps"])[y]


def counts(n=150):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.poisson(np.where(y[:, None] == np.arange(8) % 2, 4.0, 0.3)), np.where(np.arange(n) % 4, -1, y)


def fits():
    """Yield a name and a fitted estimator, for every estimator there is and what else compiles."""
    for name in sorted(damier.__all__):
        estimator = getattr(damier, name)
        if not inspect.isclass(estimator):
            continue
        if name.startswith("Coclustering"):
            X, y = counts()
            yield name, estimator().fit(X, y) if name.endswith("Classifier") else estimator().fit(X)
            continue
        for n_classes in (2, 3):
            X, y = columns(n_classes)
            if name == "MODLDiscretizer":
                X = {key: X[key] for key in ("weight", "rank")}
            if name == "BallPartitionClassifier":
                X = np.column_stack([np.nan_to_num(X["weight"]), X["rank"]])
            if name.endswith("Regressor"):
                y = np.nan_to_num(X.pop("weight"))
            if name == "DataGridClustering":
                X, y = {**X, "class": y}, None
            yield f"{name}, {n_classes} classes", estimator().fit(X, y)
            if name.startswith("MODL"):
                number = np.arange(333.0) % 71 + 9 * X.get("rank", np.zeros(333))
                yield f"{name}, numeric target", estimator(target="number").fit(X, number)
    yield from settings()


def settings():
    """Yield what takes other kernels than the defaults do."""
    for n_classes in (2, 3):
        X, y = columns(n_classes)
        twice = 1 + np.arange(y.size) % 2
        partly = np.where(np.arange(y.size) % 3, y, None)
        for name in ("MODLEncoder", "NaiveBayesClassifier"):
            estimator = getattr(damier, name)
            yield f"{name}, weights, {n_classes}", estimator().fit(X, y, sample_weight=twice)
            yield f"{name}, class groups, {n_classes}", estimator(group_classes=True).fit(X, y)
            for how in ("criterion", "bounds"):
                yield f"{name}, {how}, {n_classes}", estimator(semi_supervised=how).fit(X, partly)
            table = duckdb.sql(
                f"SELECT (hash(i) % 99991)::DOUBLE AS x, (i % 7)::VARCHAR AS c, (i % {n_classes})::INT AS y "
                "FROM range(150_000) t(i)"
            )
            yield f"{name}, counted, {n_classes}", estimator(memory_limit="1MB").fit(table, "y")
        for given in ({"averaging": "compression"}, {"averaging": None}):
            yield f"{given}, {n_classes}", damier.NaiveBayesClassifier(**given).fit(X, y)
    number = duckdb.sql(
        "SELECT (h % 9973)::DOUBLE AS x, (h % 7)::VARCHAR AS c, 1 + i % 2 AS w, "
        "h % 9973 / 10 + 100 * (h % 7) + hash(i + 1) % 1009 + 0.5 AS y"
        " FROM (SELECT i, hash(i) AS h FROM range(3000) t(i))"
    )
    for weights in (None, "w"):
        encoder = damier.MODLEncoder(target="number", memory_limit="1KB")
        yield f"counted number, {weights}", encoder.fit(number, "y", sample_weight=weights)
        regressor = damier.NaiveBayesRegressor(memory_limit="1KB")
        yield f"counted regression, {weights}", regressor.fit(number, "y", sample_weight=weights)


def reports():
    """Yield the names and figures of reports, of classes and of numbers."""
    for n_classes in (2, 3):
        X, y = columns(n_classes)
        yield f"report, {n_classes} classes", damier.explore(X, y, grid_seconds=60.0).to_dict()
        yield f"pairs, {n_classes} classes", damier.rank_pairs(X, y, backend="dict")
        posterior = damier.bound_posterior(np.nan_to_num(X["weight"]), y == y[0])
        yield f"bounds, {n_classes} classes", posterior.to_dict()
    number = np.nan_to_num(X.pop("weight"))
    yield "report, number", damier.explore(X, number, grid_seconds=60.0).to_dict()


def main(path, compiling):
    if not compiling:
        event.register("numba:compile", Refusal())
    models = [f"{name}: {dumps(fitted)}\n" for name, fitted in fits()]
    models += [f"{name}: {json.dumps(found, default=str)}\n" for name, found in reports()]
    Path(path).write_text("".join(models), encoding="utf-8")
    print(f"{len(models)} models, {'compiled here' if compiling else 'nothing compiled'}")


main(sys.argv[1], "--compile" in sys.argv)
