"""Every estimator fitted on a messy table, on every engine: as in Python, or refused in words."""

from __future__ import annotations

import functools
import inspect
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("sqlglot")

import damier
import damier.models
from damier.deploy import to_sql
from damier.deploy.json import dumps, loads
from damier.deploy.sql.dialects import DIALECTS
from damier.models import Model
from damier.models.codec import KINDS
from tests.deploy import sql_engines
from tests.deploy.test_sql import every_engine, results, storable

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
N_ROWS, SCORED = 600, 30
ESTIMATORS = sorted(name for name in damier.__all__ if inspect.isclass(getattr(damier, name)))
# Ways to fit each estimator; one that is not listed fails the tests.
WAYS: dict[str, dict[str, dict]] = {
    "BallPartitionClassifier": {"": {"n_partitions": 2, "n_neighbors": 2}},
    "Coclustering": {"": {}},
    "CoclusteringClassifier": {"": {}},
    "DataGridClassifier": {"": {"effort": 1}},
    "DataGridClustering": {"": {}},
    "DataGridEnsembleClassifier": {"": {"effort": 1, "n_grids": 4}},
    "DataGridRegressor": {"": {"effort": 1}},
    "LinfClassifier": {"": {"n_estimators": 2}, "paper": {"n_estimators": 2, "setting": "paper"}},
    "MODLDiscretizer": {"": {}, "onehot": {"encode": "onehot"}, "evidence": {"encode": "evidence"}},
    "MODLGrouper": {"": {}, "onehot": {"encode": "onehot"}, "evidence": {"encode": "evidence"}},
    "MODLEncoder": {"": {}, "onehot": {"encode": "onehot"}, "evidence": {"encode": "evidence"}},
    "NaiveBayesClassifier": {
        "": {},
        "compression": {"averaging": "compression"},
        "pairs": {"pairs": 3},
        "class groups": {"group_classes": True},
    },
    "NaiveBayesRegressor": {"": {}},
}
REFUSED = ("BallPartitionClassifier", "CoclusteringClassifier")
# Kinds of models that are part of others, or score nothing.
NOT_SCORED = ("bound_posterior", "coded", "scaled")
NUMBERS = ["a \"b\" 'c'", "Order By", "%s; DROP TABLE t; --"]
TEXTS = ["te`xt", "élève [x]"]


def messy(seed=0, n=N_ROWS):
    """Numbers with infinities, texts, booleans, moments, numbers and identifiers as categories, sizes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.normal(size=n) for name in NUMBERS})
    X[NUMBERS[0]] = X[NUMBERS[0]].round(1)
    X.loc[rng.random(n) < 0.1, NUMBERS[0]] = np.nan
    X.loc[rng.random(n) < 0.02, NUMBERS[1]] = np.inf
    X.loc[rng.random(n) < 0.02, NUMBERS[1]] = -np.inf
    X[TEXTS[0]] = rng.choice(["a", "A", "a ", "it's", "\\", "${x}"], n)
    X[TEXTS[1]] = rng.choice(np.array(["été", "e\u0301te\u0301", "", None], dtype=object), n)
    X[NUMBERS[2]] += 3.0 * X[TEXTS[0]].isin(["a", "it's"])
    X["yes?"] = rng.random(n) < 0.4
    moments = pd.Timestamp("2021-03-28 01:59:59.999990") + pd.to_timedelta(rng.integers(0, 20, n), unit="us")
    X["when"] = moments.astype("datetime64[us]")
    X["code"] = pd.Categorical(rng.choice([1.0, 2.5, -3.0], n))
    X["key"] = pd.Categorical(rng.choice([2**60, 2**60 + 1, 7], n))
    X["size"] = pd.Categorical(rng.choice(["small", "medium", "large"], n), ["small", "medium", "large"],
                               ordered=True)  # fmt: skip
    return X


def target(X, *, number):
    """A target that every column explains somewhat."""
    rng = np.random.default_rng(9)
    late = X["when"] > pd.Timestamp("2021-03-28 02:00:00")
    score = (
        np.nan_to_num(X[NUMBERS[0]], nan=1.0, posinf=3.0, neginf=-3.0)
        + np.nan_to_num(X[NUMBERS[1]], posinf=3.0, neginf=-3.0)
        + 1.5 * X[TEXTS[0]].isin(["a", "it's"])
        - 1.5 * X[TEXTS[1]].isna()
        + 1.2 * X["yes?"]
        + 1.2 * late
        + 1.5 * (X["code"].astype(float) == 2.5)
        - 1.5 * (X["key"].astype(object) == 2**60)
        + (X["size"].cat.codes == 2)
        + rng.normal(0, 0.3, len(X))
    ).to_numpy(dtype=float)
    if number:
        return np.round(score, 2)
    return np.array(["low", "mid'dle", "high"])[np.digitize(score, np.quantile(score, [0.4, 0.7]))]


def scored_rows():
    """Rows of the training table, then such that nobody has seen: missing, unknown, beyond."""
    X = messy(1, SCORED)
    plain = X.astype({"code": object, "key": object, "size": object})
    for row, (column, value) in enumerate(
        [(NUMBERS[0], np.inf), (NUMBERS[0], np.nan), (NUMBERS[1], np.nan), (TEXTS[0], "A "), (TEXTS[0], None),
         (TEXTS[1], "E\u0301te\u0301"), ("code", 4.0), ("code", None), ("key", 2**60 + 2), ("key", None),
         ("size", "huge"), ("size", None), ("when", pd.NaT), ("yes?", None)]
    ):  # fmt: skip
        if column == "yes?":
            plain[column] = plain[column].astype(object)
        plain.loc[row, column] = value
    return plain


@functools.cache
def fitted(name, way):
    """Fit an estimator on the messy table, and load its model as if from a file."""
    estimator = getattr(damier, name)(**WAYS[name][way])
    X = messy()
    if name == "Coclustering":
        estimator.fit(X[TEXTS])
    elif name in ("CoclusteringClassifier", "BallPartitionClassifier"):
        rng = np.random.default_rng(0)
        estimator.fit(rng.poisson(2.0, (60, 5)).astype(float), rng.integers(0, 2, 60))
    elif name == "DataGridClustering":
        estimator.fit(X[[NUMBERS[0], NUMBERS[2], TEXTS[0]]])
    else:
        columns = {"MODLDiscretizer": NUMBERS, "MODLGrouper": TEXTS}.get(name, list(X))
        if name == "LinfClassifier":  # its models do not know moments from numbers
            columns = [*NUMBERS, TEXTS[0], "yes?", "code", "size"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            estimator.fit(X[columns], target(X, number=name.endswith("Regressor")))
    return loads(dumps(estimator))


def storable_table(engine, X):
    """The rows as an engine can hold them, and the same for Python."""
    arrays, held = {"id": pa.array(range(len(X)))}, {}
    for column in X:
        kind = {"when": pa.timestamp("us"), "code": pa.float64(), "key": pa.int64(), "yes?": pa.bool_()}
        values = [None if pd.isna(v) and column not in NUMBERS else v for v in X[column].tolist()]
        values = storable(engine.name, values)
        if column == "when":
            values = [None if v is None else v.to_pydatetime() for v in values]
        arrays[column] = pa.array(values, type=kind.get(column), from_pandas=column in ("code", "key"))
        held[column] = values
    return pa.table(arrays), held


def expected(model, output, X):
    """What Python gives for an output, by row."""
    if output == "proba":
        return model.predict_proba(X)
    if output == "class":
        return model.predict(X)[:, np.newaxis]
    if output == "quantiles":
        return model.predict_quantile(X, [0.05, 0.5, 0.95])
    if output in ("mean", "median"):
        return model.predict(X, output)[:, np.newaxis]
    if output == "cell":
        return model.predict(X)[:, np.newaxis]
    return None


def outputs_of(model):
    from damier.deploy.sql import queries

    return next(list(held) for kind, (_, held) in queries._OUTPUTS.items() if isinstance(model, kind))


WRITTEN = [(name, way) for name in ESTIMATORS for way in WAYS.get(name, {"": {}}) if name not in REFUSED]


@every_engine
@pytest.mark.parametrize(("estimator", "way"), WRITTEN)
def test_sql_of_every_estimator(name, estimator, way):
    engine = sql_engines.engine(name)
    model = fitted(estimator, way)
    X = scored_rows()
    data, held = storable_table(engine, X)
    engine.load(data)
    if name == "clickhouse":  # what the comment at the head of a long text says
        engine.session.query(DIALECTS["clickhouse"].text_cure)
    compared = 0
    if estimator == "LinfClassifier" and name == "sqlite":
        with pytest.raises(ValueError, match=r"SQLite has no float32.*damier predict"):
            to_sql(model, name, "t")
        return
    if estimator == "Coclustering":
        found = results(engine, model)[1]
        for k, axis in enumerate((model.rows, model.columns)):
            cluster = dict(zip(axis.values, axis.labels.tolist(), strict=True))
            assert [row[k] for row in found] == [cluster.get(value, -1) for value in held[axis.name]]
        return
    if estimator.startswith("MODL"):
        np.testing.assert_array_equal(np.array(results(engine, model)[1]), model.transform(held))
        assert len(np.unique(model.transform(held), axis=0)) > 3
        return
    for output in outputs_of(model):
        try:
            found = results(engine, model, output=output)[1]
        except ValueError as refused:
            # an ensemble may partition a column in several ways
            assert (estimator, output) == ("DataGridEnsembleClassifier", "parts"), refused  # noqa: PT017
            continue
        wanted = expected(model, output, held)
        assert len(found) == SCORED
        if wanted is None:
            continue
        compared += 1
        if output in ("proba", "mean"):
            size = max(1.0, np.abs(wanted).max())
            np.testing.assert_allclose(np.array(found), wanted, rtol=0, atol=1e-12 * size)
            assert len(np.unique(wanted.round(9), axis=0)) > 3  # rows differ, so that mixed up ones are found
        else:
            assert found == wanted.tolist()
    assert compared


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_estimator_is_forgotten(estimator):
    assert estimator in WAYS, f"say how {estimator} is fitted here: it needs SQL, or a refusal in words"
    model = fitted(estimator, "")
    assert isinstance(model, Model)
    if estimator in REFUSED:
        with pytest.raises(ValueError, match=r"has no form in SQL: .{20,}; score with damier predict"):
            to_sql(model, "duckdb", "t")
    else:
        assert "SELECT" in to_sql(model, "duckdb", "t")


def test_no_kind_of_model_is_forgotten():
    for name in damier.models.__all__:
        getattr(damier.models, name)
    written = {type(fitted(*one)).model for one in WRITTEN}
    refused = {type(fitted(one, "")).model for one in REFUSED}
    partitions = {"intervals", "groups"}
    assert written | refused | partitions | set(NOT_SCORED) == set(KINDS)
    for kind in NOT_SCORED:
        with pytest.raises(ValueError, match=r"has no form in SQL: .{20,}"):
            to_sql(object.__new__(KINDS[kind]), "duckdb", "t")


@pytest.mark.parametrize("name", ["duckdb", "sqlite", "postgres", "clickhouse", "spark"])
def test_a_fitted_time_zone(name):
    engine = sql_engines.engine(name)
    moments = messy()["when"].dt.tz_localize("Europe/Paris", ambiguous=True, nonexistent="shift_forward")
    y = (moments.dt.microsecond % 7 > 2).to_numpy()
    model = damier.NaiveBayesClassifier().fit(pd.DataFrame({"when": moments}), y).model_
    some = moments[:50]
    arrays = {
        "id": pa.array(range(50)),
        "when": pa.array(some.dt.tz_convert("UTC"), pa.timestamp("us", "UTC")),
    }
    engine.load(pa.table(arrays))
    found = results(engine, model, types={"when": "timestamptz"})[1]
    wanted = model.predict_proba(pd.DataFrame({"when": some}))
    assert len(np.unique(wanted[:, 0].round(6))) > 2
    np.testing.assert_allclose(np.array(found), wanted, rtol=0, atol=1e-12)
