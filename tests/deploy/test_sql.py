"""Models as SQL, run on every engine there is: the same parts, probabilities and classes as in Python."""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
import random
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("sqlglot")

from damier.deploy import to_sql
from damier.models import (
    CoclusteringModel,
    DataGrid,
    Encoding,
    GridCells,
    GridEnsemble,
    GroupPartition,
    IntervalPartition,
    NaiveBayes,
    PairEvidence,
    TargetIntervals,
    UnsupervisedGrid,
    VariableEvidence,
)
from tests.deploy import sql_engines

# Spark's client leaves sockets to the collector of garbage.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
NAN, INF = float("nan"), float("inf")
CLASSES = ("no", "yes", "it's")
SHARED = {"classes": CLASSES, "cost": 1.0, "null_cost": 2.0, "optimal": True}
# Tables drawn for each engine; DAMIER_SQL_CASES=1000 for the long run.
CASES = int(os.environ.get("DAMIER_SQL_CASES", "10"))

every_engine = pytest.mark.parametrize("name", sql_engines.NAMES)


def counts(n_parts, seed=0, n_classes=3):
    return np.random.default_rng(seed).integers(1, 60, (n_parts, n_classes))


def intervals(name, bounds, *, seed=0, **fields):
    n_parts = len(bounds) + 1 + fields.get("missing_alone", False)
    return IntervalPartition(name=name, bounds=bounds, counts=counts(n_parts, seed), **SHARED, **fields)


def groups(name, *members, seed=0):
    return GroupPartition(name=name, groups=members, counts=counts(len(members), seed), **SHARED)


def bayes(*partitions, weights=None):
    held = [p if isinstance(p, tuple) else (p,) for p in partitions]
    weights = weights or [0.7] * len(held)
    variables = tuple(VariableEvidence(p, w) for p, w in zip(held, weights, strict=True))
    return NaiveBayes(CLASSES, np.array([5, 60, 7]), variables)


def storable(name, values):
    """Leave out what an engine cannot hold: MariaDB has neither NaN nor infinities, SQLite no NaN."""
    if name != "mysql":
        return values
    held = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
    return [math.copysign(1.7e308, v) if isinstance(v, float) and math.isinf(v) else v for v in held]


def load(engine, data, types=None):
    held = {"id": list(range(len(next(iter(data.values())))))}
    held |= {column: storable(engine.name, values) for column, values in data.items()}
    arrays = {column: pa.array(values, type=(types or {}).get(column)) for column, values in held.items()}
    engine.load(pa.table(arrays))
    return {column: values for column, values in held.items() if column != "id"}


def results(engine, model, **options):
    """Run the query and return the results in the order of the rows."""
    sql = to_sql(model, engine.name, "t", keep=["id"], **options)
    # only a look-up table takes several statements: elsewhere ";" and blank lines are text of the model
    names, rows = engine.script(sql) if options.get("lookup") == "table" else engine.run(sql)
    rows = sorted(rows, key=lambda row: row[0])
    return names[1:], [list(row[1:]) for row in rows]


RULES = {
    "age": [NAN, None, INF, -INF, 0.1, 30.5, math.nextafter(30.5, 31), -1.5, 5e-324, 1.7e308],
    "al one": [NAN, None, INF, -INF, 2.0, math.nextafter(2.0, 3), -5.0, 1e308, 0.0, -0.0],
    'te"xt': ["a", "A", None, "A ", "\\n", "b\nc", "${x}", "é", "é".replace("é", "e\u0301"), "a "],
    "num": [1.0, 2.5, 3.0, NAN, None, 4.0, 1.0, 3.0, -0.0, 0.1],
    "boo": [True, False, None, True, False, True, True, False, None, False],
}
VARIABLES = (
    intervals("age", (-1.5, 0.1, 30.5), has_missing=True),
    intervals("al one", (-INF, 2.0), missing_alone=True, seed=1),
    groups('te"xt', ("a", "é", None), ("A ", "it's", "\\n"), ("b\nc", "${x}"), seed=2),
    groups("num", (1, 2.5, 0.1), (3, None), seed=3),
    groups("boo", (True,), (False,), seed=4),
)


@every_engine
def test_the_rules_of_the_library_hold(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    model = bayes(*VARIABLES, weights=[1.0, 0.3, 0.7, 0.01, 1.0])
    names, proba = results(engine, model)
    assert names == ["proba_no", "proba_yes", "proba_it's"]
    np.testing.assert_allclose(np.array(proba), model.predict_proba(X), rtol=0, atol=1e-12)
    assert [row[0] for row in results(engine, model, output="class")[1]] == model.predict(X).tolist()
    parts = np.column_stack([v.partition.apply(X[v.name]) for v in model.variables])
    names, found = results(engine, model, output="parts")
    assert names == list(RULES)
    np.testing.assert_array_equal(np.array(found), parts)
    names, evidence = results(engine, model, output="evidence")
    assert names[:2] == ["age:no", "age:yes"]
    np.testing.assert_array_equal(np.array(evidence), model.explain(X).reshape(len(parts), -1))


def against_a_number(partition, seed):
    """Give a partition of three classes a target that is a number."""
    quantiles = np.sort(np.random.default_rng(seed).normal(size=(partition.n_parts, 7)), axis=1)
    target = TargetIntervals(
        bounds=(-0.5, 0.5),
        mean=0.1,
        overall=np.arange(7) / 3,
        means=quantiles.mean(axis=1),
        quantiles=quantiles,
    )
    return dataclasses.replace(partition, target=target)


@every_engine
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence", "mean", "median"])
def test_encodings(name, encode):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    variables = VARIABLES
    if encode in ("mean", "median"):
        variables = tuple(against_a_number(variable, seed) for seed, variable in enumerate(VARIABLES))
    model = Encoding(variables, encode)
    names, written = results(engine, model)
    np.testing.assert_array_equal(np.array(written), model.transform(X))
    if name != "spark":
        assert names == model.feature_names_out()


@every_engine
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs(name, n_classes):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    kept = {"classes": CLASSES[:n_classes]}

    def over(partition, seed):
        return dataclasses.replace(partition, **kept, counts=counts(partition.n_parts, seed, n_classes))

    variables = [over(p, k) for k, p in enumerate(VARIABLES)]
    # One variable informs only in a pair; text and numbers never seen are neutral.
    held = tuple(VariableEvidence((p,), w) for p, w in zip(variables, [1.0, 0.0, 0.7, 0.2, 0.5], strict=True))
    pairs = []
    for i, (a, b) in enumerate([(0, 1), (2, 3), (1, 4), (2, 0)]):
        both = (variables[a], variables[b])
        n_cells = both[0].n_parts * both[1].n_parts
        rows = np.random.default_rng(i).integers(0, 9, (n_cells, n_classes))
        rows[0] = 1
        weights = np.random.default_rng(i).uniform(0, 2, n_classes)
        pairs.append(PairEvidence(both, rows, float(weights.mean()), weights))
    pairs.append(dataclasses.replace(pairs[0], partitions=(variables[3], variables[4]), weight=0.0,
                                     class_weights=None, counts=np.ones((4, n_classes), int)))  # fmt: skip
    model = NaiveBayes(CLASSES[:n_classes], np.array([5, 60, 7])[:n_classes], held, tuple(pairs))
    proba = model.predict_proba(X)
    assert np.abs(proba - dataclasses.replace(model, pairs=()).predict_proba(X)).max() > 0.1
    np.testing.assert_allclose(np.array(results(engine, model)[1]), proba, rtol=0, atol=1e-12)
    assert [row[0] for row in results(engine, model, output="class")[1]] == model.predict(X).tolist()
    names, found = results(engine, model, output="evidence")
    assert names[-n_classes:] == [f"num x boo:{c}" for c in CLASSES[:n_classes]]
    np.testing.assert_allclose(np.array(found), model.explain(X).reshape(len(found), -1), rtol=0, atol=1e-12)


@every_engine
def test_averaged_partitions(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    several = (
        intervals("age", (-1.5, 0.1, 30.5)),
        intervals("age", (-1.5, 2.0), missing_alone=True, seed=5),
        intervals("age", (0.1,), seed=6),
    )
    texts = (
        groups("num", (1, 2.5), (3, 0, None), seed=3),
        groups("num", (1, 0), (2.5, 3, None), seed=7),
    )
    model = bayes(several, texts)
    proba = results(engine, model)[1]
    np.testing.assert_allclose(np.array(proba), model.predict_proba(X), rtol=0, atol=1e-12)


@every_engine
def test_semicolons_are_text(name):
    engine = sql_engines.engine(name)
    ends = ";\n\n"  # what separates the statements of a look-up table
    X = load(engine, {"a;b": [ends, ";", f"{ends}DROP TABLE t{ends}", None, "--;"]})
    shared = {**SHARED, "classes": ("", ends)}
    partition = GroupPartition(name="a;b", groups=((ends, "--;"), (";",)), counts=counts(2, 0, 2), **shared)
    model = NaiveBayes(("", ends), np.array([1, 2]), (VariableEvidence((partition,), 1.0),))
    names, proba = results(engine, model)
    assert len(names) == 2
    np.testing.assert_allclose(np.array(proba), model.predict_proba(X), rtol=0, atol=1e-12)
    assert [row[0] for row in results(engine, model, output="class")[1]] == model.predict(X).tolist()


@every_engine
def test_a_comment_that_ends_in_a_backslash_ends(name):
    engine = sql_engines.engine(name)
    X = load(engine, {"a": ["x", "y"]})
    shared = {**SHARED, "classes": ("", "\\")}
    partition = GroupPartition(name="a", groups=(("x",), ("y",)), counts=counts(2, 0, 2), **shared)
    model = NaiveBayes(("", "\\"), np.array([1, 2]), (VariableEvidence((partition,), 1.0),))
    proba = np.array(results(engine, model)[1])
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)


@every_engine
def test_negative_nan_is_missing(name):
    engine = sql_engines.engine(name)
    values = [math.copysign(NAN, -1.0), math.copysign(NAN, 1.0), None, -INF, 3.0]
    if name != "mysql":
        load(engine, {"x": values}, {"x": pa.float64()})
        for alone in (False, True):
            model = intervals("x", (1.0, 2.0), missing_alone=alone)
            assert [row[0] for row in results(engine, model)[1]] == model.apply(values).tolist()


@every_engine
@pytest.mark.parametrize("n_values", [3, 40])
def test_negative_zero_is_zero(name, n_values):
    engine = sql_engines.engine(name)
    values = [0.0, -0.0, 1.0, 2.0, 5e-324]
    load(engine, {"x": values}, {"x": pa.float64()})
    model = groups("x", (1.0,), tuple(v for v in map(float, range(n_values)) if v != 1.0))
    assert [row[0] for row in results(engine, model)[1]] == [1, 1, 0, 1, -1]
    for bound in (0.0, -0.0):
        model = intervals("x", (bound,))
        assert [row[0] for row in results(engine, model)[1]] == [0, 0, 1, 1, 1]


@every_engine
@pytest.mark.parametrize("alone", [False, True])
def test_ordered_categories(name, alone):
    engine = sql_engines.engine(name)
    values = ["small", "medium", "large", "huge", None, "Small", ""]
    load(engine, {"size": values})
    legend = ("small", "medium", "large", "vast")
    # a bound between two values that no row lies between: averaged partitions have such
    several = tuple(
        intervals("size", bounds, kind="rank", legend=legend, missing_alone=alone, seed=len(bounds))
        for bounds in ((0.5, 2.0), (1.5, 2.5))
    )
    for partition in several:
        found = [row[0] for row in results(engine, partition)[1]]
        assert found == partition.apply(values).tolist()
    model = bayes(several, intervals("none", ()))
    proba = results(engine, model)[1]
    np.testing.assert_allclose(np.array(proba), model.predict_proba({"size": values, "none": [1.0] * 7}),
                               rtol=0, atol=1e-12)  # fmt: skip


@every_engine
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_models_that_read_nothing_or_know_one_class(name, n_classes):
    engine = sql_engines.engine(name)
    X = load(engine, {"x": [1.0, None, 3.0]})
    classes = CLASSES[:n_classes]
    shared = {**SHARED, "classes": classes}
    partition = IntervalPartition(name="x", bounds=(2.0,), counts=counts(2, 0, n_classes), **shared)
    for variables in ((), (VariableEvidence((partition,), 0.0),), (VariableEvidence((partition,), 0.5),)):
        model = NaiveBayes(classes, np.arange(1, n_classes + 1), variables)
        table = X if variables else {"x": [1.0, None, 3.0]}
        if variables:
            expected = model.predict_proba(table)
        else:
            expected = np.tile(np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(), (3, 1))
        np.testing.assert_allclose(np.array(results(engine, model)[1]), expected, rtol=0, atol=1e-12)
        found = [row[0] for row in results(engine, model, output="class")[1]]
        assert found == [classes[j] for j in expected.argmax(axis=1)]


def moments():
    base = datetime.datetime(2021, 3, 28, 1, 59, 59, 999_998)
    step = datetime.timedelta(microseconds=1)
    return [None, *(base + k * step for k in range(7)), datetime.datetime(1900, 1, 1)]


@every_engine
@pytest.mark.parametrize("column", ["datetime", "date", "zone"])
def test_dates_to_the_microsecond(name, column):
    engine = sql_engines.engine(name)
    if column == "zone" and name in ("mysql", "datafusion", "polars"):
        pytest.skip("no type with a time zone")
    values = moments()
    if column == "date":
        values = [None if v is None else v.date() + datetime.timedelta(days=i) for i, v in enumerate(values)]
        bound = datetime.datetime(2021, 3, 31, 12)
        type_ = pa.date32()
    else:
        bound = datetime.datetime(2021, 3, 28, 2)
        type_ = pa.timestamp("us", tz="UTC" if column == "zone" else None)
    microseconds = (bound - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    kind = "date" if column == "date" else "datetime"
    types = {"when": "timestamptz"} if column == "zone" else None
    for shift in (0.0, 0.5, 1.0):
        model = intervals("when", (microseconds + shift,), kind=kind)
        load(engine, {"when": values}, {"when": type_})
        found = [row[0] for row in results(engine, model, types=types)[1]]
        assert found == model.apply(values).tolist()


@pytest.mark.parametrize("name", ["duckdb", "sqlite", "postgres", "mysql"])
def test_times_of_day(name):
    engine = sql_engines.engine(name)
    values = [
        None,
        datetime.time(12),
        datetime.time(12, 0, 0, 1),
        datetime.time(0),
        datetime.time(23, 59, 59),
    ]
    if name == "mysql":
        values = [None, *values[1:]]
    model = intervals("at", (12 * 3600e6,), kind="time")
    load(engine, {"at": values})
    assert [row[0] for row in results(engine, model)[1]] == model.apply(values).tolist()


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_durations(name):
    engine = sql_engines.engine(name)
    values = [None, *(datetime.timedelta(seconds=s, microseconds=1) for s in (-2, -1, 0, 1, 90_000))]
    for bound in (-1_000_001.0, -1.0, 1.0, 1_000_000.5):
        model = intervals("took", (bound,), kind="duration")
        load(engine, {"took": values}, {"took": pa.duration("us")})
        assert [row[0] for row in results(engine, model)[1]] == model.apply(values).tolist()


@every_engine
def test_durations_as_microseconds(name):
    engine = sql_engines.engine(name)
    model = intervals("took", (1_000_000.5,), kind="duration")
    load(engine, {"took": [1_000_000, 1_000_001, None]})
    assert results(engine, model, types={"took": "microseconds"})[1] == [[0], [1], [0]]


@every_engine
def test_integers_beyond_float64_stay_apart(name):
    engine = sql_engines.engine(name)
    model = groups("key", (2**60, 7), (2**60 + 1,))
    load(engine, {"key": [2**60, 2**60 + 1, 2**60 + 2, 7, None]}, {"key": pa.int64()})
    assert results(engine, model)[1] == [[0], [1], [-1], [0], [-1]]


@every_engine
def test_booleans_where_numbers_were_fitted(name):
    engine = sql_engines.engine(name)
    load(engine, {"x": [True, False, None]})
    model = intervals("x", (0.5,), missing_alone=True)
    assert results(engine, model, types={"x": "boolean"})[1] == [[2], [1], [0]]


# ----- grids, coclusterings


def grid(seed=0, classes=CLASSES):
    age = intervals("age", (0.1, 30.5))
    text = groups('te"xt', ("a", "é", None), ("A ", "\\n"), seed=2)
    number = groups("num", (1, 2.5), (3, None), seed=3)
    parts = [[i, j, k] for i in range(3) for j in range(2) for k in range(2) if (i, j, k) != (1, 1, 0)]
    rng = np.random.default_rng(seed)
    cells = GridCells(np.array(parts), rng.integers(0, 30, (len(parts), 3)) + np.array([1, 0, 0]))
    return DataGrid(
        partitions={"age": age, 'te"xt': text, "num": number},
        cells=cells,
        classes=classes,
        n_variables=5,
        cost=10.0,
        null_cost=20.0,
    )


@every_engine
def test_grids(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    model = grid()
    np.testing.assert_array_equal(np.array(results(engine, model)[1]), model.predict_proba(X))
    assert [row[0] for row in results(engine, model, output="class")[1]] == model.predict(X).tolist()
    np.testing.assert_array_equal(np.array(results(engine, model, output="parts")[1]), model.find_parts(X))
    rules = model.rules()
    by_support = [None, *rules]
    place = {int(cell): i for i, cell in enumerate(model._by_support(), 1)}
    names, found = results(engine, model, output="rule")
    expected = [place.get(cell, 0) for cell in model.find_cells(X).tolist()]
    assert names == ["rule_number", "rule"]
    assert found == [[number, by_support[number]] for number in expected]


@every_engine
def test_ensembles_of_grids(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    model = GridEnsemble((grid(), grid(1)), np.array([0.3, 0.7]))
    proba = np.array(results(engine, model)[1])
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-15)
    assert [row[0] for row in results(engine, model, output="class")[1]] == model.predict(X).tolist()
    assert results(engine, model, output="rule")[0] == ["rule_number_1", "rule_1", "rule_number_2", "rule_2"]


@every_engine
def test_grids_without_a_target(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    shared = {"classes": (0,), "cost": 1.0, "null_cost": 2.0, "optimal": True}
    partitions = (
        IntervalPartition(name="age", bounds=(0.1, 30.5), counts=counts(3, 0, 1), **shared),
        GroupPartition(
            name='te"xt', groups=(("a", "é", None), ("A ", "\\n")), counts=counts(2, 0, 1), **shared
        ),
    )
    model = UnsupervisedGrid(
        partitions=partitions,
        coordinates=np.array([[0, 0], [0, 1], [2, 0]]),
        counts=np.array([5, 6, 7]),
        cost=1.0,
        null_cost=2.0,
    )
    assert [row[0] for row in results(engine, model)[1]] == model.predict(X).tolist()


@pytest.fixture(scope="module")
def coclustering() -> CoclusteringModel:
    from damier import Coclustering

    rng = np.random.default_rng(0)
    who = rng.integers(0, 40, 4000)
    what = (who % 2) * 20 + rng.integers(0, 20, 4000)
    return Coclustering().fit({"who": [f"Client {w}" for w in who], "what": what}).model_


@pytest.mark.parametrize("lookup", ["inline", "table"])
@every_engine
def test_clusters_of_known_values(name, lookup, coclustering):
    engine = sql_engines.engine(name)
    if lookup == "table" and name == "polars":
        pytest.skip("no INSERT of several rows: refused, as test_sql_text says")
    who = [*coclustering.rows.values, "client 3", None]
    what = [*coclustering.columns.values, *[None] * (len(who) - len(coclustering.columns.values))]
    load(engine, {"who": who, "what": what}, {"what": pa.int64()})
    options = {}
    if lookup == "table":
        options = {"lookup": "table", "lookup_table": "damier_test"}
        engine.run(f"DROP TABLE IF EXISTS {engine.q('damier_test')}")
    names, found = results(engine, coclustering, **options)
    assert names == ["row_cluster", "column_cluster"]
    assert [row[0] for row in found] == [*coclustering.rows.labels.tolist(), -1, -1]
    known = coclustering.columns.labels.tolist()
    assert [row[1] for row in found] == [*known, *[-1] * (len(who) - len(known))]


@pytest.mark.parametrize("name", [name for name in sql_engines.NAMES if name != "polars"])
def test_values_in_a_table_of_their_own(name):
    engine = sql_engines.engine(name)
    X = load(engine, RULES)
    engine.run(f"DROP TABLE IF EXISTS {engine.q('damier_test')}")
    model = bayes(*VARIABLES)
    proba = results(engine, model, lookup="table", lookup_table="damier_test")[1]
    np.testing.assert_allclose(np.array(proba), model.predict_proba(X), rtol=0, atol=1e-12)


# ----- drawn tables


def floats_near(bounds):
    near = [b for bound in bounds for b in (bound, math.nextafter(bound, INF), math.nextafter(bound, -INF))]
    return st.one_of(
        st.sampled_from([*near, NAN, INF, -INF, 0.0, -0.0]), st.floats(allow_nan=True), st.none()
    )


CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=6)
# Columns drawn: what they are, and how they are stored.
KINDS = {"intervals": pa.float64(), "texts": pa.string(), "numbers": pa.float64(), "booleans": pa.bool_()}


def draw_partition(draw, kind, **fields):
    """Draw a partition and what rows near its bounds and values hold."""
    finite = st.floats(allow_nan=False, allow_infinity=False)
    if kind == "intervals":
        bounds = tuple(sorted(draw(st.lists(finite, min_size=1, max_size=4, unique=True))))
        alone = draw(st.booleans())
        held = IntervalPartition(
            bounds=bounds, missing_alone=alone, counts=fields.pop("counts")(len(bounds) + 1 + alone), **fields
        )
        return held, floats_near(bounds)
    drawn = {"texts": TEXTS, "numbers": finite, "booleans": st.booleans()}[kind]
    values = draw(st.lists(drawn, min_size=2, max_size=6, unique=True))
    if kind == "numbers":
        values = [0.0 if v == 0 else v for v in values]
    cut = draw(st.integers(1, len(values) - 1))
    first = [*values[:cut], None] if draw(st.booleans()) else values[:cut]
    held = GroupPartition(
        groups=(tuple(first), tuple(values[cut:])), counts=fields.pop("counts")(2), **fields
    )
    near = [*values, None]
    if kind == "texts":
        near += [v.swapcase() for v in values] + [v + " " for v in values]
    if kind == "numbers":
        near += [NAN, *(math.nextafter(v, INF) for v in values if abs(v) < 1e308)]
    return held, st.one_of(st.sampled_from(near), drawn)


def draw_case(draw, name):
    """Draw a naive Bayes model, names and classes included, and rows near its bounds and values."""
    # some values of an engine's tables cannot be names of its columns
    called = st.text(CHARACTERS, min_size=1, max_size=8).filter(lambda text: sql_engines.holds(name, text))
    names = draw(st.lists(called, min_size=1, max_size=3, unique_by=str.casefold))
    names = [column for column in names if column.casefold() != "id"] or ["x"]
    classes = tuple(draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True)))
    variables, data, types = [], {}, {}
    for column in names:
        kind = draw(st.sampled_from(list(KINDS)))
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        partition, rows = draw_partition(
            draw,
            kind,
            name=column,
            classes=classes,
            counts=lambda n, rng=rng: rng.integers(1, 60, (n, len(classes))),
            cost=1.0,
            null_cost=2.0,
            optimal=True,
        )
        variables.append(VariableEvidence((partition,), draw(st.floats(0.01, 1.0))))
        data[column] = draw(st.lists(rows, min_size=5, max_size=5))
        types[column] = KINDS[kind]
    return NaiveBayes(classes, np.arange(1, len(classes) + 1), tuple(variables)), data, types


@every_engine
@pytest.mark.timeout(max(600, 20 * CASES))
def test_drawn_models_and_tables(name):
    engine = sql_engines.engine(name)

    @settings(max_examples=CASES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        model, columns, types = draw_case(data.draw, name)
        X = load(engine, columns, types)
        table = {
            c: np.array([NAN if v is None else v for v in values]) if types[c] == pa.float64() else values
            for c, values in X.items()
        }
        expected = model.predict_proba(table)
        np.testing.assert_allclose(np.array(results(engine, model)[1]), expected, rtol=0, atol=1e-12)
        found = [row[0] for row in results(engine, model, output="class")[1]]
        ties = np.sort(expected, axis=1)
        for i, (one, other) in enumerate(zip(found, model.predict(table).tolist(), strict=True)):
            assert one == other or ties[i, -1] - ties[i, -2] < 1e-12

    check()


def halfway(written):
    exact = Fraction(written)
    off = abs(exact - Fraction(float(written))) / Fraction(math.ulp(float(written)))
    return abs(off - Fraction(1, 2)) < Fraction(1, 2000)


@every_engine
def test_literals_read_back_to_the_last_bit(name):
    engine = sql_engines.engine(name)
    rng = random.Random(0)
    numbers = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(400)]
    numbers += [math.ldexp(rng.randrange(2**52, 2**53), rng.randint(-60, -50)) for _ in range(400)]
    # 15 digits, halfway between two doubles but for less than a processor of 80 bits tells apart
    numbers += [
        v for v in (rng.randrange(10**14, 10**15) / 10**15 for _ in range(60_000)) if halfway(repr(v))
    ]
    numbers += [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2, 1e22, 1e23]
    from damier.deploy.sql.dialects import DIALECTS
    from damier.deploy.sql.writer import Writer

    writer = Writer(DIALECTS[name])
    bounds = sorted(set(numbers))
    for start in range(0, len(bounds), 250):
        some = bounds[start : start + 250]
        load(engine, {"x": some}, {"x": pa.float64()})
        cases = ", ".join(
            f"SUM(CASE WHEN {writer.sql(test)} THEN 1 ELSE 0 END) AS c{i}"
            for i, test in enumerate(writer.above(writer.column("x"), b, "number") for b in some)
        )
        counted = engine.run(f"SELECT {cases} FROM {engine.q('t')}")[1][0]
        assert [int(c) for c in counted] == list(range(len(some) - 1, -1, -1))
