"""Coclusterings of pairs that an engine counts: those of the same rows in memory, byte by byte."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy.json import dumps, loads
from damier.intake.engines import source as sources

N = 20_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    who, what = rng.integers(0, 300, N), rng.integers(0, 80, N)
    kept = rng.random(N) < np.where(who % 3 == what % 3, 0.9, 0.15)
    who, what = who[kept], what[kept]
    return pa.table(
        {
            "who": pa.array([f"it's {k}" for k in who], mask=rng.random(len(who)) < 0.002),
            "what": what,
            "id": what + 2**53,
            "flag": pa.array(what % 2 == 0, mask=what == 7),
            "times": rng.integers(0, 3, len(who)),
            "day": pa.array(what.astype(np.int32)).cast(pa.date32()),
            "share": what / 3,
        }
    )


def relation(rows, names):
    connection = duckdb.connect()
    connection.register("held", rows)
    return connection.sql(f"SELECT {', '.join(names)} FROM held ORDER BY hash(held)")


@pytest.mark.parametrize("counts", [None, "times"])
@pytest.mark.parametrize("names", [["who", "what"], ["what", "who"], ["who", "flag"], ["id", "who"]])
def test_the_model_is_that_of_the_rows(rows, names, counts):
    columns = [*names, *([counts] if counts else [])]
    expected = damier.Coclustering(effort=0, counts=counts).fit(rows.select(columns))
    held = relation(rows, columns)
    for given in (None, names):
        found = damier.Coclustering(effort=0, counts=counts).fit(held, given)
        assert dumps(found.model_) == dumps(expected.model_)
    assert found.feature_names_in_.tolist() == columns
    assert (found.source_.engine, found.source_.rows) == ("DuckDB", rows.num_rows)
    assert expected.source_ is None
    assert found.predict(rows.select(columns)).tolist() == expected.predict(rows.select(columns)).tolist()


def test_sqlite_counts_the_same_pairs(rows):
    ibis = pytest.importorskip("ibis")
    connection = ibis.sqlite.connect()
    held = connection.create_table("pairs", rows.select(["who", "id", "times"]))
    expected = damier.Coclustering(effort=0, counts="times").fit(rows.select(["who", "id", "times"]))
    found = damier.Coclustering(effort=0, counts="times").fit(held)
    assert dumps(found.model_) == dumps(expected.model_)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["who", "day"], "Column 'day' holds dates, which have an order"),
        (["who", "share"], "Column 'share' holds numbers that are not whole"),
        (["who", "nothing"], "'nothing' is no column of the table"),
        (["who"], "A coclustering is of two columns"),
        (["who", "who"], "A coclustering is of two columns"),
        (None, "A coclustering is of two columns"),
    ],
)
def test_what_is_no_pair_is_refused(rows, names, message):
    with pytest.raises(ValueError, match=message):
        damier.Coclustering().fit(relation(rows, rows.column_names), names)


def test_negative_counts_are_refused(rows):
    held = relation(rows, ["who", "what", "times - 1 AS times"])
    with pytest.raises(ValueError, match=r"The column of counts 'times' must be not negative"):
        damier.Coclustering(counts="times").fit(held)


def test_a_classifier_of_matrices_refuses_sources(rows):
    with pytest.raises(ValueError, match="not a table that an engine holds"):
        damier.CoclusteringClassifier().fit(relation(rows, ["who", "what"]), "what")


def test_too_many_pairs_are_refused(rows, monkeypatch):
    held = relation(rows, ["who", "what"])
    n_pairs = len(held.distinct().fetchall())
    found = damier.Coclustering(effort=0, memory_limit=64 * n_pairs).fit(held)
    assert (found.model_.cells.sum(), found.model_.rows.totals.sum()) == (rows.num_rows, rows.num_rows)
    with pytest.raises(ValueError, match=rf"more than {n_pairs - 1:,} distinct pairs.*raise memory_limit"):
        damier.Coclustering(memory_limit=64 * n_pairs - 1).fit(held)
    monkeypatch.setattr(sources, "MOST_PAIRS", 1000)
    with pytest.raises(ValueError, match=r"more than 1,000 distinct pairs.*leave out rare values"):
        damier.Coclustering().fit(held)


def test_the_command_takes_a_pattern(rows, tmp_path):
    pairs = rows.select(["who", "what", "times"])
    for k in range(3):
        pq.write_table(pairs.slice(k * 4000, 4000 if k < 2 else None), tmp_path / f"{k}.parquet")
    model, page = tmp_path / "model.json", tmp_path / "page.html"
    words = ["cocluster", str(tmp_path / "*.parquet"), "-r", "who", "-c", "what", "--counts", "times"]
    done = CliRunner().invoke(app, [*words, "--json", str(model), "-o", str(page)])
    assert done.exit_code == 0, done.output
    expected = damier.Coclustering(counts="times", random_state=0).fit(pairs)
    assert dumps(loads(model.read_text("utf-8"))) == dumps(expected.model_.simplify())
    assert page.exists()
    done = CliRunner().invoke(app, [*words, "--no-header"])
    assert "is for one file" in done.output
