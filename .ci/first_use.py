"""Fit every estimator as a newcomer does, and write their models to a file.

``first_use.py FILE`` fails as soon as anything is compiled: a release wheel must bring all of it along.
``first_use.py FILE --compile`` lets Numba compile, for comparison: both files must be the same.
"""

import inspect
import sys
from pathlib import Path

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
    """Yield a name and a fitted estimator for every estimator there is."""
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


def main(path, compiling):
    if not compiling:
        event.register("numba:compile", Refusal())
    models = [f"{name}: {dumps(fitted)}\n" for name, fitted in fits()]
    Path(path).write_text("".join(models), encoding="utf-8")
    print(f"{len(models)} models, {'compiled here' if compiling else 'nothing compiled'}")


main(sys.argv[1], "--compile" in sys.argv)
