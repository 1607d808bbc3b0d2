"""What the SQL looks like, what is refused, and hostile names and values on every engine."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

pytest.importorskip("sqlglot")

import jinja2
import sqlglot
from sqlglot import exp

from damier.cli import app
from damier.deploy import save, to_sql
from damier.deploy.sql.dialects import DIALECTS
from damier.models import (
    BallPartition,
    CoclusterAxis,
    CoclusteringModel,
    Encoding,
    IntervalPartition,
    LabeledCoclustering,
    Merges,
    NaiveBayes,
    VariableEvidence,
)
from tests.deploy import sql_engines
from tests.deploy.test_sql import bayes, counts, every_engine, grid, groups, intervals

# Spark's client leaves sockets to the collector of garbage.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
QUOTES = ["'", '"', "`", "''", '""', "\\", "\\'", "\\\\", '\\"', "]", "[", "]]"]
ENDINGS = [
    "'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "`; DROP TABLE t; --",
    "]; DROP TABLE t; --",
    "\\'; DROP TABLE t; --",
    "' OR 1=1 --",
    "*/ DROP TABLE t; /*",
    "-- x",
    "/* x */",
    "/*! x */",
    "#x",
    "; SELECT 1",
    "') OR ('1'='1",
    "x'); DELETE FROM t; --",
]
MARKS = [
    "%s",
    "%(x)s",
    "%%",
    "?",
    ":x",
    "$1",
    "${x}",
    "$x",
    "{{ x }}",
    "{% x %}",
    "{# x #}",
    "@x",
    "@@version",
]
BLANKS = [
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\x0b",
    "\x0c",
    "\x1f",
    "\x7f",
    "\x85",
    "\u00a0",
    "\u2028",
    "\ufeff",
]
LETTERS = [
    "é", "e\u0301", "ß", "ss", "SS", "ﬁ", "fi", "İ", "i\u0307", "Å", "A\u030a", "Å", "ﬀ", "ñ", "n\u0303",
    "😀", "👩‍💻", "中文", "א", "مرحبا", "\u202eabc", "a\u200bb", "ａ", "a", "A", "a ", " a",
    "A ", "aa", "NULL",
    "null", "TRUE", "NaN", "0", "00", "0.0", "1e0", "-1", "inf",
]  # fmt: skip
HOSTILE = list(
    dict.fromkeys(
        [*QUOTES, *ENDINGS, *MARKS, *BLANKS, *LETTERS]
        + [a + b for a in QUOTES + BLANKS[:8] for b in ("x", "'", "\\", "\n", "--")]
        + [a + b for a in ("x", "'", "\\", " ") for b in QUOTES + ENDINGS + MARKS]
    )
)


def test_there_are_three_hundred_hostile_texts():
    assert len(HOSTILE) >= 300


@every_engine
def test_hostile_values_match_exactly_once(name):
    engine = sql_engines.engine(name)
    model = groups("x", tuple(HOSTILE[0::3]), tuple(HOSTILE[1::3]), tuple(HOSTILE[2::3]))
    data = [*HOSTILE, *(v + "z" for v in HOSTILE), None]
    expected = model.apply(data).tolist()
    engine.load(pa.table({"id": list(range(len(data))), "x": data}))
    _, rows = engine.run(to_sql(model, name, "t", keep=["id"]))
    assert [part for _, part in sorted(rows)] == expected
    # every value alone, so that none is taken for another
    whole = Encoding((groups("x", *((v,) for v in HOSTILE)),))
    _, rows = engine.run(to_sql(whole, name, "t", keep=["id"]))
    assert [part for _, part in sorted(rows)] == whole.transform({"x": data})[:, 0].tolist()
    assert len(engine.run(f"SELECT * FROM {engine.q('t')}")[1]) == len(data)  # nothing was dropped


@every_engine
def test_hostile_names_are_names(name):
    engine = sql_engines.engine(name)
    met, names = {"id"}, []
    for text in HOSTILE:
        if text and text.casefold() not in met and sql_engines.holds(name, text):
            met.add(text.casefold())
            names.append(text)
    for start in range(0, len(names), 60):
        some = names[start : start + 60]
        model = Encoding(tuple(intervals(column, (float(i),)) for i, column in enumerate(some)))
        data = {"id": [0, 1]} | {column: [float(i), float(i) + 1] for i, column in enumerate(some)}
        engine.load(pa.table(data))
        written, rows = engine.run(to_sql(model, name, "t", keep=["id"]))
        assert sorted(rows) == [(0, *[0] * len(some)), (1, *[1] * len(some))]
        assert len(set(written)) == len(some) + 1
    assert len(names) >= 150


@every_engine
def test_hostile_classes_are_texts(name):
    engine = sql_engines.engine(name)
    engine.load(pa.table({"id": list(range(len(HOSTILE))), "x": [float(i) for i in range(len(HOSTILE))]}))
    some = HOSTILE[:60]
    partition = IntervalPartition(
        name="x", classes=tuple(some), counts=np.eye(len(some), dtype=int) * 500 + 1,
        bounds=tuple(i + 0.5 for i in range(len(some) - 1)), cost=1.0, null_cost=2.0, optimal=True,
    )  # fmt: skip
    model = NaiveBayes(tuple(some), np.full(len(some), 500), (VariableEvidence((partition,)),))
    _, rows = engine.run(to_sql(model, name, "t", keep=["id"], output="class"))
    found = [row[1] for row in sorted(rows)][: len(some)]
    assert found == some
    names, _ = engine.run(to_sql(model, name, "t"))
    assert len({one.casefold() for one in names}) == len(some)


def test_names_of_results_differ_and_fit():
    classes = ("a", "A", "é" * 40, "é" * 40 + "x", "proba_a")
    partition = IntervalPartition(
        name="x",
        classes=classes,
        counts=counts(2, 0, 5),
        cost=1.0,
        null_cost=2.0,
        optimal=True,
        bounds=(1.0,),
    )
    model = NaiveBayes(classes, np.ones(5, int), (VariableEvidence((partition,)),))
    for name in DIALECTS:
        tree = sqlglot.parse_one(to_sql(model, name, "t", keep=["proba_A"]), read=DIALECTS[name].writes)
        aliases = [one.alias_or_name for one in tree.expressions]
        assert aliases[0] == "proba_A"
        assert len({alias.casefold() for alias in aliases}) == 6
        if name == "postgres":
            assert all(len(alias.encode()) <= 63 for alias in aliases)


def test_a_kept_column_does_not_meet_the_query_s_own():
    sql = to_sql(intervals("damier_x0", (1.0,)), "duckdb", "t", keep=["DAMIER_p0"])
    assert '"damier__x0"' in sql


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_parses_back_to_the_same_text(name):
    dialect = DIALECTS[name].writes
    age = intervals("age", (5e-324, 0.1, 1 / 3), missing_alone=True)
    text = groups("text", ("it's", "é"), ("b\\c", None))
    when = intervals("when", (1e15 + 0.5,), kind="datetime")
    day = intervals("day", (1e15,), kind="date")
    for model, outputs in (
        (bayes(age, text, when, day), ("proba", "class", "parts", "evidence")),
        (Encoding((age, text), "onehot"), (None,)),
        (grid(), ("proba", "class", "rule", "parts")),
    ):
        for output in outputs:
            held = {"keep": ["id"], "output": output}
            if isinstance(model, type(grid())) and name in ("bigquery", "oracle"):
                continue  # their names hold no quote
            sql = to_sql(model, name, "t", **held)
            (tree,) = sqlglot.parse(sql, read=dialect)
            options = {"pretty": True, "max_text_width": 280, "identify": True, "comments": False}
            again = sqlglot.parse_one(tree.sql(dialect, **options), read=dialect)
            assert again.sql(dialect, **options) == tree.sql(dialect, **options)
            bare = sqlglot.parse_one(to_sql(model, name, "t", **held, note="x"), read=dialect)
            assert {one.this for one in tree.find_all(exp.Literal)} == {
                one.this for one in bare.find_all(exp.Literal)
            }
            texts = {one.this.lower() for one in tree.find_all(exp.Literal)}
            if "age" in sql and output == "parts" and name != "sqlite" and isinstance(model, NaiveBayes):
                assert {"0.3333333333333333e0", "0.3333333333333333"} & texts
                assert {"5e-324", "0.1e0"} <= texts or {"5e-324", "0.1"} <= texts


def test_the_same_model_gives_the_same_text():
    assert to_sql(grid(), "duckdb", "t") == to_sql(grid(), "duckdb", "t")
    noted = to_sql(grid(), "duckdb", "t", note="2026-11-16\nSELECT 1")
    assert noted.splitlines()[1] == "-- 2026-11-16\\nSELECT 1"


def test_comments_cannot_be_left():
    sql = to_sql(groups("x\nSELECT 1;\r--", ("a\u2028b",), ("\x85",)), "duckdb", "my\ntable")
    head = [line for line in sql.split("\n") if line.startswith("--")]
    assert sql.splitlines()[: len(head)] == head
    assert "\\n" in head[0]


# ----- refusals


@pytest.mark.parametrize(
    ("names", "dialect", "message"),
    [
        (("a", "A"), "duckdb", "takes the columns 'a' and 'A' for one"),
        (("é" * 32, "é" * 33), "postgres", "for one"),
        (("${x}",), "spark", "Spark cannot have"),
        (("a`b",), "bigquery", "BigQuery cannot have"),
        (("x" * 200,), "tsql", "128 characters"),
        (("a\0b",), "sqlite", "cannot have"),
    ],
)
def test_names_an_engine_cannot_have_are_refused(names, dialect, message):
    model = Encoding(tuple(intervals(name, (1.0,)) for name in names))
    with pytest.raises(ValueError, match=message):
        to_sql(model, dialect, "t")


def test_case_matters_where_the_engine_says_so():
    engine = sql_engines.engine("polars")
    model = Encoding((intervals("a", (1.0,)), intervals("A", (2.0,))))
    engine.load(pa.table({"a": [1.5], "A": [1.5]}))
    assert engine.run(to_sql(model, "polars", "t"))[1] == [(1, 0)]


def test_refusals_name_the_model_and_what_to_do():
    for kind in (BallPartition, LabeledCoclustering):
        with pytest.raises(ValueError, match=f"{kind.__name__} has no form in SQL.*damier predict"):
            to_sql(object.__new__(kind), "duckdb", "t")
    nameless = CoclusterAxis(
        name="rows", values=None, labels=np.array([0]), totals=np.array([1]), typicality=np.zeros(1)
    )
    none = np.empty(0, int)
    merges = Merges(axes=none, kept=none, gone=none, costs=np.empty(0))
    model = CoclusteringModel(
        rows=nameless,
        columns=nameless,
        cells=np.array([[1]]),
        cost=1.0,
        null_cost=1.0,
        best_cost=1.0,
        merges=merges,
    )
    with pytest.raises(ValueError, match="frame of pairs"):
        to_sql(model, "duckdb", "t")
    from damier import NaiveBayesClassifier

    with pytest.raises(TypeError, match="fitted estimator"):
        to_sql(NaiveBayesClassifier(), "duckdb", "t")
    with pytest.raises(ValueError, match="mix int, str"):
        to_sql(groups("x", (1,), ("a",)), "duckdb", "t")
    with pytest.raises(ValueError, match="unknown dialect 'access'"):
        to_sql(grid(), "access", "t")
    with pytest.raises(ValueError, match="output must be 'proba' or 'class'"):
        to_sql(grid(), "duckdb", "t", output="evidence")
    with pytest.raises(ValueError, match="microseconds"):
        to_sql(intervals("x", (1.0,), kind="duration"), "sqlite", "t")
    with pytest.raises(ValueError, match="reads no column 'y'"):
        to_sql(intervals("x", (1.0,)), "sqlite", "t", types={"y": "number"})
    with pytest.raises(ValueError, match="not known"):
        to_sql(intervals("x", (1.0,)), "sqlite", "t", types={"x": "decimal"})
    with pytest.raises(ValueError, match="may be number or boolean or text"):
        to_sql(intervals("x", (1.0,)), "sqlite", "t", types={"x": "date"})
    for dialect in ("polars", "oracle"):
        with pytest.raises(ValueError, match="no INSERT of several rows"):
            to_sql(groups("x", ("a",), ("b",)), dialect, "t", lookup="table")
    with pytest.raises(ValueError, match="list of names"):
        to_sql(intervals("x", (1.0,)), "sqlite", "t", keep="id")
    with pytest.raises(ValueError, match="takes 1,000"):
        to_sql(Encoding(tuple(intervals(f"x{i}", (1.0,)) for i in range(1001))), "mysql", "t")


def test_a_missing_sqlglot_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    with pytest.raises(ImportError, match=r"damier\[sql\]"):
        to_sql(intervals("x", (1.0,)), "sqlite", "t")


def test_a_long_text_says_what_to_set():
    partition = groups(
        "x", tuple(f"value number {i} of a column of long values" for i in range(6_000)), ("b",)
    )
    sql = to_sql(partition, "clickhouse", "t")
    assert "max_query_size" in sql.splitlines()[1]
    assert "max_query_size" not in to_sql(partition, "clickhouse", "t", lookup="table").split(";")[-1]


# ----- templates, views, estimators, command


def test_dbt_reads_nothing_but_the_ref():
    hostile = "{{ 1/0 }} {% raw %} {# x #} {{{"
    model = groups(hostile, (hostile, "'"), ("b",))
    text = to_sql(model, "duckdb", "vis'its", template="dbt", keep=["{{"])
    rendered = jinja2.Template(text).render(ref=lambda name: f'"{name}"')
    assert rendered == to_sql(model, "duckdb", ("vis'its",), keep=["{{"])
    assert text.count("ref('vis\\'its')") == 1
    name = "a {{ b }} c"
    for table, ref in (((name,), "ref"), ((name, name), "source")):
        text = to_sql(model, "duckdb", table, template="dbt")
        read = {ref: lambda *names: ".".join(f'"{one}"' for one in names)}
        assert jinja2.Template(text).render(**read) == to_sql(model, "duckdb", table)
    with pytest.raises(ValueError, match="by source and name"):
        to_sql(model, "duckdb", "a.b.c", template="dbt")


@pytest.mark.parametrize("name", ["duckdb", "sqlite", "postgres", "mysql"])
def test_a_view_scores(name):
    engine = sql_engines.engine(name)
    engine.load(pa.table({"x": [1.0, 2.0, None]}))
    view = 'the "scores`'
    engine.run(f"DROP VIEW IF EXISTS {engine.q(view)}")
    engine.run(to_sql(intervals("x", (1.5,)), name, "t", create=("view", (view,))))
    assert sorted(engine.run(f"SELECT * FROM {engine.q(view)}")[1]) == [(0,), (0,), (1,)]
    engine.run(f"DROP VIEW {engine.q(view)}")


def test_fitted_estimators():
    from damier import MODLEncoder, NaiveBayesClassifier

    rng = np.random.default_rng(0)
    n = 600
    X = {"size": rng.normal(size=n), "colour": rng.choice(["red", "green", "blue"], n)}
    X["size"][::10] = np.nan
    y = np.where((np.nan_to_num(X["size"]) > 0.3) ^ (X["colour"] == "red"), "yes", "no")
    engine = sql_engines.engine("duckdb")
    table = {**X, "id": np.arange(n)}
    engine.load(pa.table(table))
    for estimator in (NaiveBayesClassifier(), NaiveBayesClassifier(group_classes=True)):
        fitted = estimator.fit(X, y)
        _, rows = engine.run(to_sql(fitted, "duckdb", "t", keep=["id"]))
        found = np.array([row[1:] for row in sorted(rows)])
        np.testing.assert_allclose(found, fitted.predict_proba(X), rtol=0, atol=1e-12)
    fitted = MODLEncoder(encode="evidence").fit(X, y)
    _, rows = engine.run(to_sql(fitted, "duckdb", "t", keep=["id"]))
    np.testing.assert_array_equal(np.array([row[1:] for row in sorted(rows)]), fitted.transform(X))


def test_the_command(tmp_path):
    path = tmp_path / "model.json"
    save(bayes(intervals("age", (1.5,)), intervals("when", (1e15,), kind="datetime")), path)
    run = CliRunner().invoke
    done = run(app, ["sql", str(path), "-d", "duckdb", "--table", "t", "--keep", "id", "--type", "when=date"])
    assert done.exit_code == 0
    engine = sql_engines.engine("duckdb")
    engine.load(pa.table({"id": [1], "age": [2.0], "when": pa.array([None], pa.date32())}))
    assert len(engine.run(done.stdout)[1][0]) == 4
    out = tmp_path / "scores.sql"
    done = run(app, ["sql", str(path), "-d", "postgres", "--table", "s.t", "--format", "dbt", "-o", str(out)])
    assert done.exit_code == 0
    assert "{{ source('s', 't') }}" in out.read_text()
    assert f"-- Written from model.json on {datetime.date.today()}." in out.read_text().splitlines()
    done = run(app, ["sql", str(path), "-d", "tsql", "--table", "t", "--create", "view", "v"])
    assert "CREATE VIEW [v]" in done.stdout
    for wrong, code, message in (
        (["-d", "access", "--table", "t"], 1, "unknown dialect"),
        (["-d", "duckdb", "--table", "t", "--type", "when"], 2, "COLUMN=TYPE"),
        (["-d", "duckdb", "--table", "t", "--what", "rule"], 1, "output must be"),
    ):
        done = run(app, ["sql", str(path), *wrong])
        assert (done.exit_code, message in done.output) == (code, True), done.output
    assert run(app, ["sql", str(tmp_path / "none.json"), "-d", "duckdb", "--table", "t"]).exit_code == 2
    (tmp_path / "bad.json").write_text(json.dumps({"x": 1}))
    assert run(app, ["sql", str(tmp_path / "bad.json"), "-d", "duckdb", "--table", "t"]).exit_code == 1
