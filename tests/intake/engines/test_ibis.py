"""Tables of ibis counted by SQL: bit by bit the counts of DuckDB's stream, on every engine that runs here."""

from __future__ import annotations

import datetime
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import damier
from damier.deploy import write_groups
from damier.intake.engines import ibis as ibis_source
from damier.intake.engines import open_source
from damier.intake.engines.cells import Axis
from damier.intake.engines.ibis import IbisSource
from damier.intake.engines.prebins import ALL, Counts, only_binning, refined_binning
from damier.intake.engines.source import read_labels
from damier.intake.frames import read_table

if importlib.util.find_spec("ibis") is None:
    pytest.skip("ibis is not installed: pip install 'damier[engines]'", allow_module_level=True)
import ibis

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy"))
import sql_engines

pytestmark = pytest.mark.filterwarnings("ignore")
N = 3000
NUMBERS = ["x", "powers", "cauchy", "tiny", "big", "single", "flag", "day"]


ENGINES = ["duckdb", "sqlite", "postgres", "mysql"]


def rows(n=N, engine=""):
    """Numbers of all sizes, those beside powers of two, infinities; texts that differ by case only."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    x = rng.normal(size=n) + y
    x[:9] = [
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        1.0,
    ]
    if engine == "mysql":  # which holds no infinity
        x[:2] = 3.0, -3.0
    powers = 2.0 ** rng.integers(-1074, 1024, n) * rng.choice([-1, 1], n)
    powers[::2] = np.nextafter(powers[::2], 0)
    days = rng.integers(0, 300, n).tolist()
    return pa.table(
        {
            "x": pa.array(x, mask=rng.random(n) < 0.1),
            "powers": powers,
            "cauchy": rng.standard_cauchy(n) * 1e5,
            "tiny": rng.integers(0, 2**52, n).view(np.float64),
            "big": rng.integers(-(10**9), 10**9, n),
            "few": rng.integers(0, 9, n),
            "single": rng.normal(size=n).astype(np.float32),
            "flag": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.1),
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=d) for d in days],
            "word": pa.array(rng.choice(["a", "A", "ß", "it's"], n), mask=rng.random(n) < 0.2),
            "label": np.array(["no", "No", "it's"])[y],
            "times": rng.integers(0, 4, n),
        }
    )


def connected(engine, table=None):
    """Connect to an engine with the table t in it, or skip."""
    table = rows(engine=engine) if table is None else table
    if engine == "duckdb":
        connection = ibis.duckdb.connect()
        connection.con.register("loaded", table)
        connection.raw_sql("CREATE TABLE t AS SELECT * FROM loaded")
        return connection
    held = sql_engines.engine(engine)
    if engine == "sqlite":
        connection = ibis.sqlite.connect()
        held = sql_engines.SQLite()
        held.connection = connection.con
        held.load(table)
        return connection
    if engine == "mysql":
        pytest.importorskip("MySQLdb", reason="mysqlclient is not installed")
        held.load(table)
        # A host of its own would be asked by TCP.
        socket = held.connection.unix_socket
        return ibis.mysql.connect(
            host="", user="root", unix_socket=socket, database="damier", charset="utf8mb4", autocommit=True
        )
    held.load(table)
    return ibis.postgres.connect(host=held.connection.info.host, user="damier", database="postgres")


@pytest.fixture(scope="module", params=ENGINES)
def table(request):
    connection = connected(request.param)
    yield connection.table("t")
    connection.disconnect()


@pytest.fixture(scope="module")
def streamed(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("ibis") / "t.parquet"
    pq.write_table(rows(engine=table.get_backend().name), path)
    return open_source(path)


def assert_same(counts, others):
    for name in counts:
        for field, one, other in zip(Counts._fields, counts[name], others[name], strict=True):
            if field != "values":
                np.testing.assert_array_equal(one, other, err_msg=f"{name}: {field}")


@pytest.mark.parametrize("most", [50, 1 << 16])
def test_numbers(table, streamed, monkeypatch, most):
    monkeypatch.setattr(ibis_source, "MOST_VALUES", most)  # columns of more values are counted by their bits
    source = IbisSource(table)
    labels, others = read_labels(source, "label"), read_labels(streamed, "label")
    assert labels.classes.tolist() == others.classes.tolist() == ["No", "it's", "no"]
    assert labels.counts.tolist() == others.counts.tolist()
    numbers = [name for name in NUMBERS if name != "day" or table.schema()["day"].is_date()]
    scan = dict.fromkeys(numbers, ALL)
    first = source.count(scan, labels, by_class=False, values=True)
    assert_same(first, streamed.count(scan, others, by_class=False))
    assert (first["x"].values is None) == (most == 50)
    bins = {name: refined_binning(ALL, first[name], n_bins=200) for name in numbers}
    second = source.count(bins, labels)
    assert_same(second, streamed.count(bins, others))
    kept = {name: np.arange(bins[name].n_bins) // 5 % 7 == 0 for name in bins}
    window = {
        name: only_binning(refined_binning(bins[name], second[name], kept[name]), kept[name])
        for name in numbers
    }
    assert_same(source.count(window, labels), streamed.count(window, others))


def test_weights(table, streamed, monkeypatch):
    monkeypatch.setattr(ibis_source, "MOST_VALUES", 50)
    source = IbisSource(table)
    assert source.weight_facts("times") == streamed.weight_facts("times")
    labels, others = read_labels(source, "label", "times"), read_labels(streamed, "label", "times")
    assert labels.counts.tolist() == others.counts.tolist()
    scan = dict.fromkeys(("x", "few", "flag"), ALL)
    assert_same(source.count(scan, labels), streamed.count(scan, others))


@pytest.mark.parametrize("weight", [None, "times"])
def test_categories(table, streamed, weight):
    source = IbisSource(table)
    labels, others = read_labels(source, "label", weight), read_labels(streamed, "label", weight)
    for name in ("word", "few", "single"):
        one, other = source.profiles(name, labels), streamed.profiles(name, others)
        order, order_of = np.lexsort(one.counts.T), np.lexsort(other.counts.T)
        np.testing.assert_array_equal(one.counts[order], other.counts[order_of])
        np.testing.assert_array_equal(one.n_values[order], other.n_values[order_of])
        one, other = source.listed(name, labels, 4), streamed.listed(name, others, 4)
        assert one.values == other.values
        np.testing.assert_array_equal(one.counts, other.counts)


def test_samples_of_rows_that_are_met_many_times(table):
    """A word and a label make 15 distinct rows: a sample has its share of each."""
    found = IbisSource(table).sample(["word", "label"], 600, seed=3)
    held = read_table(rows().select(["word", "label"]))

    def shares(table):
        words, labels = (np.array(table[n].categories, object)[table[n].codes] for n in ("word", "label"))
        pairs = list(zip(words.tolist(), labels.tolist(), strict=True))
        return {pair: pairs.count(pair) / len(pairs) for pair in set(pairs)}

    expected, got = shares(held), shares(found)
    exact = IbisSource(table).dialect in ("postgres", "sqlite")
    for pair, share in expected.items():
        assert abs(got.get(pair, 0) - share) < (0.003 if exact else 0.06)


def test_samples(table):
    one = IbisSource(table).sample(["x", "word", "label"], 600, seed=3)
    other = IbisSource(table.order_by("single")).sample(["x", "word", "label"], 600, seed=3)
    assert 450 < one.n_rows < 750
    assert IbisSource(table).collect(["x", "label"]).n_rows == N
    if table.get_backend().name != "duckdb":  # which is streamed, not queried
        np.testing.assert_array_equal(one["x"].values, other["x"].values)
        assert one["label"].codes.tolist() == other["label"].codes.tolist()


def test_expressions_are_tables_too(table):
    source = IbisSource(table.filter(table.few > 3).mutate(minus=-table.x))
    labels = read_labels(source, "label")
    assert labels.total == int((rows()["few"].to_numpy() > 3).sum())
    assert source.count({"minus": ALL}, labels)["minus"].counts.sum() < labels.total


def test_what_an_engine_refuses_is_one_sentence(table):
    source = IbisSource(table)
    labels = read_labels(source, "label")
    source._text = "SELECT * FROM nowhere"
    with pytest.raises(ValueError, match="cannot count the table: ") as error:
        source.profiles("word", labels)
    assert "\n" not in str(error.value)
    assert error.value.__cause__ is None


def test_duckdb_is_streamed_and_what_has_no_connection_is_refused():
    from damier.intake.engines.duckdb import DuckDBSource

    assert isinstance(open_source(connected("duckdb").table("t")), DuckDBSource)
    with pytest.raises(ValueError, match="no connection"):
        open_source(ibis.table({"x": "float64"}, name="t"))


def test_the_model_is_that_of_the_stream(table, streamed, monkeypatch):
    import damier
    from damier.deploy.json import dumps
    from damier.search import counted

    monkeypatch.setattr(ibis_source, "MOST_VALUES", 1000)
    monkeypatch.setattr(counted, "MOST_VALUES", 1000)
    names = ["x", "cauchy", "big", "few", "single", "word", "label"]
    found = damier.MODLEncoder(memory_limit=0).fit(IbisSource(table.select(*names)), "label")
    expected = damier.MODLEncoder(memory_limit=0).fit(_chosen(streamed, names), "label")
    assert dumps(found) == dumps(expected)
    assert found.source_.engine == f"{table.get_backend().name} through ibis"


def _chosen(streamed, names):
    from damier.intake.engines.duckdb import DuckDBSource

    return DuckDBSource(streamed.relation.project(", ".join(names)), connection=streamed.connection)


@pytest.mark.parametrize("weight", [None, "times"])
def test_cells_of_a_grid(table, streamed, weight):
    """Against the parts that the partitions themselves give, row by row."""
    from damier.models import GroupPartition, IntervalPartition

    held = rows(engine=table.get_backend().name)
    fields = {"classes": (), "cost": 0.0, "null_cost": 0.0, "optimal": False}
    bounds = (-np.inf, -0.1, float(np.nextafter(0.5, 1)), 1.0 / 3 + 1)
    partitions = [
        IntervalPartition(name="x", bounds=bounds, missing_alone=True, counts=np.zeros((6, 0)), **fields),
        IntervalPartition(name="big", bounds=(0.5,), counts=np.zeros((2, 0)), **fields),
        GroupPartition(name="word", groups=(("A", "it's"), (None, "a")), counts=np.zeros((2, 0)), **fields),
    ]
    axes = [Axis("x", bounds, True), Axis("big", (0.5,)), Axis("word", groups=partitions[2].groups)]
    frame = read_table(held)
    parts = np.column_stack([p.apply(frame[p.name]) for p in partitions])
    repeated = np.ones(N, int) if weight is None else held["times"].to_numpy()
    for source in (IbisSource(table), streamed):
        labels = read_labels(source, "label", weight)
        codes = np.array([labels.values.index(v) for v in held["label"].to_pylist()])
        found = source.cells(axes, labels)
        assert found.counts.sum() == repeated.sum()
        for cell, counts in zip(found.parts, found.counts, strict=True):
            inside = (parts == cell).all(axis=1)
            expected = np.bincount(codes[inside], repeated[inside], minlength=3)
            np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_groups_of_all_values_become_a_table(engine, tmp_path):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, N)
    shop = [
        None if k == 7 else f"Shop {k} 'n \"ß" if k % 2 else f"shop {k}"
        for k in (y * 10 + rng.integers(0, 40, N))
    ]
    held = pa.table(
        {"Part": shop, "n0": rng.integers(0, 6, N) + 3 * y, "y": y, "times": rng.integers(0, 3, N)}
    )
    connection = connected(engine, held)
    table, out = connection.table("t"), 'a "map" of it\'s `shops`'
    pq.write_table(held, tmp_path / "t.parquet")
    for name, part, weight in [("Part", "part_", None), ("n0", "part", "times")]:
        chosen = table.select(name, "y", "times")
        grouper = damier.MODLGrouper(memory_limit=0, max_values=2)
        partition = grouper.fit(chosen, "y", sample_weight=weight).partitions_[name]
        n_values = write_groups(chosen, "y", partition, out, sample_weight=weight)
        file = str(tmp_path / "map.parquet")
        whole = str(tmp_path / "t.parquet")
        assert write_groups(whole, "y", partition, file, sample_weight=weight) == n_values
        written = pq.read_table(file).to_pydict()
        found = connection.table(out).to_pyarrow().to_pydict()
        assert list(found) == list(written) == [name, part]
        assert dict(zip(*found.values(), strict=True)) == dict(zip(*written.values(), strict=True))
        assert len(found[part]) == n_values > 2
        with pytest.raises(ValueError, match=r"cannot write the groups to the table .*exists"):
            write_groups(chosen, "y", partition, out, sample_weight=weight)
        connection.drop_table(out)
    other = table.filter(table.n0 > 3)
    with pytest.raises(ValueError, match="are not those of X"):
        write_groups(other, "y", partition, out, sample_weight="times")
    assert out not in connection.list_tables()
    connection.disconnect()
