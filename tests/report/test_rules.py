"""A rule copied as SQL or Python selects the rows of its cell, whatever the names and the values."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot

from damier.fit.grids import fit_grid
from damier.fit.partitions import partition_column
from damier.intake import read_table, read_target
from damier.models import GroupPartition, IntervalPartition
from damier.models.grid import DataGrid, GridCells
from damier.report import rules, summarize_grid
from damier.report.conditions import in_query, part_python, part_sql, part_words, rule_python, rule_sql
from damier.search.run import Run

NASTY = [
    "it's",
    'say "x"',
    "a`b",
    "back\\slash",
    "line\nbreak",
    "#",
    "@x",
    "{y}",
    "%s",
    "'; DROP TABLE t; --",
    "é☺",
    "",
]


def kinds(n_rows=240, seed=0):
    """Columns of every kind, some with missing values, each informing the classes."""
    rng = np.random.default_rng(seed)
    step = rng.integers(0, 3, n_rows)
    start = pd.Timestamp("2024-02-27 22:30:00")
    moments = start + pd.to_timedelta(step * 31 + rng.integers(0, 30, n_rows), unit="h")
    some = rng.random(n_rows) < 0.1
    X = {
        "number": np.where(some, np.nan, step + rng.random(n_rows)),
        "whole number": step * 10 + rng.integers(0, 10, n_rows),
        "text": np.array(NASTY, object)[step * 4 + rng.integers(0, 4, n_rows)],
        "date": moments.normalize(),
        "moment": moments,
        "zoned": moments.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        "duration": pd.to_timedelta(step * 50 + rng.integers(0, 50, n_rows), unit="min"),
        "time": [
            datetime.time(int(s) * 7 + int(m) // 10, int(m))
            for s, m in zip(step, rng.integers(0, 59, n_rows), strict=True)
        ],
        "flag": step > 1,
        "ordered": pd.Categorical(
            np.array(["low", "mid", "high"])[step], ["low", "mid", "high"], ordered=True
        ),
        "few": np.where(step == 0, 1e-9, np.where(step == 1, 1 / 3, 123456.789012345)),
    }
    frame = pd.DataFrame(X)
    for name in ("text", "date", "moment", "zoned", "duration", "time", "ordered"):
        frame.loc[some, name] = None
    return frame, step


@pytest.mark.parametrize("name", list(kinds(5)[0]))
@pytest.mark.parametrize(
    "called", ["name", "two words", 'quote"d', "tick`d", "it's", "class", "index", "new\nline"]
)
def test_a_part_selects_its_rows(name, called):
    frame, y = kinds()
    frame = frame[[name]].rename(columns={name: called})
    (column,) = read_table(frame).columns
    partition = partition_column(column, read_target(y), short_bounds=True)
    assert partition.n_parts > 1
    parts = partition.apply(column)
    query = in_query(partition)
    assert query == (called not in ("tick`d", "new\nline") and name != "text")
    stored = duckdb.connect()
    numbered = frame.assign(row_number_=range(len(frame)))
    stored.register("seen", numbered)
    stored.execute("CREATE TABLE t AS SELECT * FROM seen")
    for part in range(partition.n_parts):
        expected = np.flatnonzero(parts == part).tolist()
        assert expected
        for in_a_query in {query, False}:
            written = rule_python([part_python(partition, part, query=in_a_query)], query=in_a_query)
            assert eval(written, {"df": numbered})["row_number_"].tolist() == expected, written
        written = rule_sql([part_sql(partition, part)])
        found = stored.execute(f"SELECT row_number_ FROM t {written} ORDER BY 1").fetchall()
        assert [n for (n,) in found] == expected, written
        for dialect in ("duckdb", "postgres"):
            (tree,) = sqlglot.parse(f"SELECT 1 FROM t {written}", read=dialect)
            assert {c.name for c in tree.find_all(sqlglot.exp.Column)} == {called}
            assert not list(tree.find_all(sqlglot.exp.Drop))


def test_a_category_never_seen_and_nothing_are_in_no_part_that_does_not_hold_them():
    partition = partition_column(
        read_table({"c": ["a", "b"] * 50}).columns[0], read_target([0, 1] * 50), short_bounds=True
    )
    frame = pd.DataFrame({"c": ["a", "b", "new", None, ""]})
    sizes = [len(frame.query(part_python(partition, part))) for part in range(2)]
    assert sizes == [1, 1]


def test_whole_rules_select_the_rows_of_their_cells():
    frame, y = kinds(600)
    frame = frame.drop(columns=["few", "flag"])
    y = (y + (frame["whole number"].to_numpy() % 2)) % 3
    table, target = read_table(frame), read_target(y)
    parts = {
        name: partition_column(table[name], target, short_bounds=True)
        for name in ("text", "moment", "number")
    }
    applied = np.stack([parts[name].apply(table[name]) for name in parts], axis=1)
    cells, which = np.unique(applied, axis=0, return_inverse=True)
    counts = np.zeros((len(cells), 3), np.int64)
    np.add.at(counts, (which.ravel(), target.codes), 1)
    grid = DataGrid(
        partitions=parts,
        cells=GridCells(cells, counts),
        classes=(0, 1, 2),
        n_variables=3,
        cost=1.0,
        null_cost=2.0,
    )
    told = summarize_grid(grid)
    stored = duckdb.connect()
    stored.register("frame", frame)
    assert not told["query"]  # a value holds a backtick
    for rule in told["rules"]:
        held = [v["conditions"][part] for v, part in zip(told["variables"], rule["cell"], strict=True)]
        written = rule_python([one["python"] for one in held], query=told["query"])
        assert len(eval(written, {"df": frame})) == rule["rows"]
        found = stored.execute(
            f"SELECT count(*) FROM frame {rule_sql([one['sql'] for one in held])}"
        ).fetchone()
        assert found == (rule["rows"],)


def test_bounds_at_infinity_are_never_written():
    fields = {"name": "x", "classes": (0, 1), "cost": 1.0, "null_cost": 2.0, "optimal": True}
    partition = IntervalPartition(**fields, counts=[[1, 0], [0, 1], [1, 0]], bounds=(-np.inf, 5.0))
    frame = pd.DataFrame({"x": [-np.inf, -1e308, 5.0, 5.1, np.inf]})
    found = [frame.query(part_python(partition, part)).index.tolist() for part in range(3)]
    assert found == [[0], [1, 2], [3, 4]]
    stored = duckdb.connect()
    stored.register("frame", frame)
    in_sql = [
        stored.execute(f"SELECT x FROM frame {rule_sql([part_sql(partition, p)])}").fetchall()
        for p in range(3)
    ]
    assert [len(rows) for rows in in_sql] == [1, 2, 2]


def test_many_values_and_several_types_are_not_copied():
    fields = {
        "name": "x",
        "classes": (0, 1),
        "cost": 1.0,
        "null_cost": 2.0,
        "optimal": True,
        "counts": [[1, 0], [0, 1]],
    }
    partition = GroupPartition(**fields, groups=((1, "1"), tuple(range(2, 600))))
    assert part_sql(partition, 0) is None
    assert part_python(partition, 0) == "x.isin([1, '1'])"
    assert part_sql(partition, 1) is None
    assert part_python(partition, 1) is None


def test_conditions_in_words():
    frame, y = kinds()
    table, target = read_table(frame), read_target(y)
    said = {}
    for column in table:
        partition = partition_column(column, target, short_bounds=True)
        said[column.name] = [part_words(partition, part) for part in range(partition.n_parts)]
    assert said["number"][0].startswith("number is missing") or said["number"][0].endswith(
        "number is missing"
    )
    assert said["flag"] == ["flag is False", "flag is True"]
    assert said["moment"][-1].startswith("moment > 2024-")
    assert all(len(words) < 200 for one in said.values() for words in one)
    column = table["whole number"]
    two = partition_column(read_table({"x": [0, 1] * 40}).columns[0], read_target([0, 1] * 40))
    assert [part_words(two, p, {"distinct": 2, "minimum": 0, "maximum": 1}) for p in (0, 1)] == [
        "x is 0",
        "x is 1",
    ]
    assert column.name == "whole number"


def test_rules_of_the_page_are_those_of_the_grid():
    frame, y = kinds(400)
    frame = frame[["number", "flag", "few", "whole number"]]
    table, target = read_table(frame), read_target((y + (frame["whole number"] % 3)) % 3)
    grid = fit_grid(table, target, effort=3, run=Run())
    from damier.report import summarize

    partitions = {c.name: partition_column(c, target) for c in table}
    summary = summarize(partitions, grid=summarize_grid(grid))
    view, island = rules.view(summary), rules.island(summary)
    assert [rule["rows"] for rule in view["shown"]] == sorted(grid.cells.sizes.tolist(), reverse=True)[:20]
    assert sum(rule[1] for rule in island["rules"]) == 400
    of_all = np.bincount(target.codes)
    for rule in view["shown"]:
        shares = np.array(rule["counts"]) / rule["rows"]
        j = int(np.argmax(shares - of_all / 400))
        assert rule["class"].endswith(str(j))
        assert rule["lift"] == pytest.approx(shares[j] / (of_all[j] / 400))
        assert rule["certainty"] <= rule["share"]


@pytest.mark.parametrize(("count", "rows"), [(0, 1), (1, 1), (3, 7), (90, 100), (5, 5000)])
def test_certainty_is_the_lower_end_of_wilsons_interval(count, rows):
    from scipy.stats import binomtest

    interval = binomtest(count, rows).proportion_ci(0.9, method="wilson")
    assert rules.certainty(count, rows) == pytest.approx(max(0.0, interval.low), abs=1e-12)
