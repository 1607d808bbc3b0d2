"""DuckDB as a source: the counts of the same table in memory."""

import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from damier.intake.engines import is_source, open_source
from damier.intake.engines.duckdb import DuckDBSource
from damier.intake.engines.prebins import ALL, count_numbers, exact_binning, no_counts, refined_binning
from damier.intake.engines.source import read_labels


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 3000
    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "x": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
            "whole": rng.integers(-5, 5, n),
            "day": [day + datetime.timedelta(days=int(d)) for d in rng.integers(0, 300, n)],
            "flag": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.1),
            "word": pa.array(rng.choice(["a", "b", "c"], n), mask=rng.random(n) < 0.2),
            "label": rng.choice(["yes", "no", "it's"], n),
            "times": rng.integers(0, 4, n),
        }
    )


def opened(rows, **options):
    connection = duckdb.connect()
    connection.register("rows", rows)
    return DuckDBSource(connection.sql("SELECT * FROM rows"), **options)


def test_columns_are_of_the_kinds_of_a_table_in_memory(rows):
    source = opened(rows)
    assert source.n_rows == 3000
    assert [column.kind for column in source.columns] == [
        *("number", "number", "date", "boolean", "text", "text", "number")
    ]


@pytest.mark.parametrize("weight", [None, "times"])
@pytest.mark.parametrize("batch", [100, 100_000])
def test_numbers_are_counted_as_in_memory(rows, weight, batch):
    source = opened(rows, batch=batch)
    table = source.collect(["x", "whole", "day", "label", "times"])
    labels = read_labels(source, "label", weight)
    assert labels.classes.tolist() == ["it's", "no", "yes"]
    weights = None if weight is None else table["times"].values.astype(int)
    counted = slice(None) if weights is None else weights > 0
    weights = None if weights is None else weights[counted]
    codes = table["label"].codes[counted]
    assert labels.counts.tolist() == np.bincount(codes, weights).tolist()
    names = ["x", "whole", "day"]
    first = source.count(dict.fromkeys(names, ALL), labels, by_class=False, values=True)
    binnings = {}
    for name in names:
        held = table[name].values[counted]
        expected = count_numbers(no_counts(ALL, 1, values=True), held, None, weights)
        for a, b in zip(first[name], expected, strict=True):
            assert np.array_equal(a, b)
        binnings[name] = (
            exact_binning(first[name].values)
            if name == "day"
            else refined_binning(ALL, first[name], None, 64)
        )
    for name, found in source.count(binnings, labels).items():
        binning = binnings[name]
        held = table[name].values[counted]
        expected = count_numbers(no_counts(binning, 3), held, codes, weights, binning)
        for a, b in zip(found[:4], expected[:4], strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("weight", [None, "times"])
@pytest.mark.parametrize("name", ["word", "flag", "whole", "day", "x"])
@pytest.mark.parametrize("target", ["label", "day_number"])
def test_profiles_are_those_of_the_values(rows, weight, name, target):
    days = pa.array([d.toordinal() for d in rows.column("day").to_pylist()])
    source = opened(rows.append_column("day_number", days))
    labels = read_labels(source, target, weight)
    assert (labels.n_classes > 200) == (target == "day_number")
    listed = source.listed(name, labels, 10_000)
    profiles = source.profiles(name, labels)
    column = rows.column(name).to_pylist()
    if name == "day":
        column = [(v - datetime.date(1970, 1, 1)).days * 86_400_000_000 for v in column]
    classes = rows.column("label").to_pylist() if target == "label" else days.to_pylist()
    weights = [1] * len(column) if weight is None else rows.column(weight).to_pylist()
    position = {value: j for j, value in enumerate(labels.values)}
    expected: dict = {}
    for value, label, w in zip(column, classes, weights, strict=True):
        if w:
            expected.setdefault(value, np.zeros(labels.n_classes, int))[position[label]] += w
    assert set(listed.values) == set(expected)
    for value, counts in zip(listed.values, listed.counts, strict=True):
        assert (counts == expected[value]).all()
    totals = listed.counts.sum(axis=1)
    assert (np.diff(totals) <= 0).all()
    assert listed.values[:3] == source.listed(name, labels, 3).values
    distinct, multiplicity = np.unique(np.array(list(expected.values())), axis=0, return_counts=True)
    order = np.lexsort(profiles.counts.T[::-1])
    assert (profiles.counts[order] == distinct).all()
    assert (profiles.n_values[order] == multiplicity).all()


def test_a_sample_does_not_depend_on_the_order_of_the_rows(rows):
    shuffled = rows.take(np.random.default_rng(1).permutation(rows.num_rows))
    names = ["x", "word", "day"]
    one, other = (opened(table).sample(names, 500, 3) for table in (rows, shuffled))
    assert 400 < one.n_rows < 600
    assert one.n_rows == other.n_rows
    assert np.array_equal(one["x"].values, other["x"].values, equal_nan=True)  # in the same order too
    assert [one["word"].categories[c] for c in one["word"].codes] == [
        other["word"].categories[c] for c in other["word"].codes
    ]
    assert opened(rows).sample(names, 500, 4).n_rows != one.n_rows


@pytest.mark.parametrize("unique", [0, 50_000])
def test_a_sample_has_its_share_of_rows_that_are_met_many_times(unique):
    """Equal rows have one hash: neither all of them nor none may be taken."""
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.choice(4, 60_000, p=[0.7, 0.2, 0.07, 0.03]), 10 + np.arange(unique)])
    table = pa.table({"a": a, "b": np.where(a < 10, 1.0, np.arange(len(a)))})
    shuffled = table.take(rng.permutation(len(a)))
    one, other = (opened(held).sample(["a", "b"], 5000, 1) for held in (table, shuffled))
    assert np.array_equal(one["a"].values, other["a"].values)
    share = 5000 / len(a)
    for value in range(4):
        expected = (a == value).sum() * share
        assert abs((one["a"].values == value).sum() - expected) <= 1
    rare = (one["a"].values >= 10).sum()
    assert abs(rare - unique * share) < 5 * (unique * share) ** 0.5 + 1


def test_a_sample_does_not_depend_on_threads(rows):
    held = []
    for threads in (1, 4):
        connection = duckdb.connect(config={"threads": threads})
        connection.register("rows", pa.concat_tables([rows] * 40))
        source = DuckDBSource(connection.sql("SELECT * FROM rows"))
        held.append(source.sample(["x", "word", "day"], 20_000, 3)["x"].values)
    assert np.array_equal(held[0], held[1], equal_nan=True)


def test_files_are_opened_by_pattern(rows, tmp_path):
    pa.parquet.write_table(rows.slice(0, 1000), tmp_path / "a.parquet")
    pa.parquet.write_table(rows.slice(1000), tmp_path / "b.parquet")
    source = open_source(str(tmp_path / "*.parquet"), memory_limit=2**30, threads=1)
    assert source is not None
    assert source.n_rows == 3000
    assert source.engine == "DuckDB"


def test_what_is_no_source_is_none():
    assert not is_source({"a": [1]})
    assert open_source({"a": [1]}) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "nothing"}, "is no column of the table"),
        ({"target": "word"}, "missing in"),
        ({"target": "x"}, "missing in"),
        ({"weight": "whole"}, "not negative"),
        ({"weight": "x"}, "neither missing"),
    ],
)
def test_what_is_no_target_is_refused(rows, change, message):
    with pytest.raises(ValueError, match=message):
        read_labels(opened(rows), **{"target": "label", **change})


def test_a_missing_file_and_a_damaged_one_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_source(str(tmp_path / "*.parquet"))
    (tmp_path / "a.parquet").write_text("nothing")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read"):
        open_source(str(tmp_path / "a.parquet"))


def test_files_of_a_pattern_may_have_different_columns(tmp_path):
    pa.parquet.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "one.parquet")
    pa.parquet.write_table(pa.table({"z": [5], "y": ["a"], "x": [3]}), tmp_path / "two.parquet")
    source = open_source(str(tmp_path / "*.parquet"))
    assert [column.name for column in source.columns] == ["x", "y", "z"]
    held = source.collect(["x", "z"])
    assert sorted(held["x"].values.tolist()) == [1.0, 2.0, 3.0]
    assert np.isnan(held["z"].values).sum() == 2


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_text_file_is_named(tmp_path, text):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text(text)
    for pattern in ("b.csv", "*.csv"):
        with pytest.raises(ValueError, match=r"b\.csv is empty: the first line must have the names"):
            open_source(tmp_path / pattern)
