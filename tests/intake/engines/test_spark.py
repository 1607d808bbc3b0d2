"""Spark as a source: the counts of DuckDB and of memory, whatever the partitions; nothing on the workers."""

from __future__ import annotations

import datetime
import decimal
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import damier
from damier.deploy import write_groups
from damier.intake.engines import open_source
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import ALL, Counts, exact_binning, only_binning, refined_binning
from damier.intake.engines.source import Labels, read_labels

from .spark_session import REFUSED, cluster, start

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
N = 4000
NUMBERS = ["x", "single", "whole", "money", "day", "moment", "flag"]


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    day = datetime.date(2020, 1, 1)
    days = rng.integers(0, 300, n).tolist()
    return pa.table(
        {
            "x": pa.array(x, mask=rng.random(n) < 0.1),
            "single": rng.normal(size=n).astype(np.float32),
            "whole": rng.integers(-5, 5, n),
            "money": pa.array(
                [decimal.Decimal(int(v)) / 100 for v in rng.integers(0, 9999, n)], pa.decimal128(9, 2)
            ),
            "day": [day + datetime.timedelta(days=d) for d in days],
            "moment": pa.array(
                [datetime.datetime(2021, 1, 1) + datetime.timedelta(seconds=d * 1.5) for d in days],
                pa.timestamp("us", "UTC"),
            ),
            "flag": pa.array(rng.random(n) < 0.3, mask=rng.random(n) < 0.1),
            "word.s `": pa.array(rng.choice(["a", "b", "ß", "${x}"], n), mask=rng.random(n) < 0.2),
            "label": rng.choice(["yes", "no", "it's"], n),
            "many": [f"c{k}" for k in rng.integers(0, 40, n)],
            "times": rng.integers(0, 4, n),
        }
    )


@pytest.fixture(scope="module")
def spark():
    return start()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "rows.parquet"
    pq.write_table(rows(), path)
    return str(path)


def assert_same(counts, others):
    assert counts.keys() == others.keys()
    for name in counts:
        for field, one, other in zip(Counts._fields, counts[name], others[name], strict=True):
            assert (one is None) == (other is None), (name, field)
            if one is not None:
                np.testing.assert_array_equal(one, other, err_msg=f"{name}: {field}")


def check(frame, path, target, weight):
    source, duck = open_source(frame), open_source(path)
    assert [(c.name, c.kind, c.legend) for c in source.columns] == [
        (c.name, c.kind, c.legend) for c in duck.columns
    ]
    labels, others = read_labels(source, target, weight), read_labels(duck, target, weight)
    assert labels.classes.tolist() == others.classes.tolist()
    assert labels.counts.tolist() == others.counts.tolist()
    scan = dict.fromkeys(NUMBERS, ALL)
    first = source.count(scan, labels, by_class=False, values=True)
    assert_same(first, duck.count(scan, others, by_class=False, values=True))
    exact = {name: exact_binning(first[name].values) for name in NUMBERS}
    assert_same(source.count(exact, labels), duck.count(exact, others))
    bins = {name: refined_binning(ALL, first[name], n_bins=64) for name in NUMBERS}
    second = source.count(bins, labels)
    assert_same(second, duck.count(bins, others))
    kept = {name: np.arange(bins[name].n_bins) // 5 % 3 == 0 for name in bins}
    window = {
        name: only_binning(refined_binning(bins[name], second[name], kept[name]), kept[name])
        for name in NUMBERS
    }
    assert_same(source.count(window, labels), duck.count(window, others))
    for name in ("word.s `", "x", "flag"):
        one, other = source.profiles(name, labels), duck.profiles(name, others)
        order, order_of = np.lexsort(one.counts.T), np.lexsort(other.counts.T)
        np.testing.assert_array_equal(one.counts[order], other.counts[order_of])
        np.testing.assert_array_equal(one.n_values[order], other.n_values[order_of])
    for name in ("word.s `", "day", "money"):
        one, other = source.listed(name, labels, 7), duck.listed(name, others, 7)
        assert one.values == other.values
        np.testing.assert_array_equal(one.counts, other.counts)
    return source


@pytest.mark.parametrize(("target", "weight"), [("label", "times"), ("many", None)])
def test_counts_are_those_of_duckdb(spark, path, target, weight):
    check(spark.read.parquet(path), path, target, weight)


@pytest.mark.parametrize("weight", [None, "times"])
def test_a_number_counted_by_the_parts_of_each_column(spark, path, weight):
    """Labels of its own for each column, groups of categories and intervals: one number is counted by all."""
    axes = {
        "word.s `": Axis("word.s `", groups=(("a", "${x}"), (None,), ("b", "ß"))),
        "flag": Axis("flag", groups=((True, None), (False,))),
        "whole": Axis("whole", (-2.5, 0.5)),
        "x": Axis("x", (-0.25,), True),
    }
    none = np.empty(0, np.int64)
    labels = {name: Labels("single", np.empty(0), [], none, weight, (axis,)) for name, axis in axes.items()}
    source, duck = open_source(spark.read.parquet(path)), open_source(path)
    bins = refined_binning(ALL, duck.count({"single": ALL}, labels["x"], by_class=False)["single"], n_bins=64)
    binnings = dict.fromkeys(axes, bins)
    found = source.count(binnings, labels, of="single")
    assert_same(found, duck.count(binnings, labels, of="single"))
    assert [held.counts.shape[1] for held in found.values()] == [3, 2, 3, 3]
    assert all((held.counts.sum(axis=0) > 0).all() for held in found.values())


def test_partitions_and_order_do_not_matter(spark, path):
    frame = spark.read.parquet(path)
    labels = read_labels(open_source(frame), "many")
    scan = dict.fromkeys(NUMBERS, ALL)
    whole = open_source(frame.coalesce(1)).count(scan, labels, values=True)
    parted = open_source(frame.orderBy("single").repartition(7)).count(scan, labels, values=True)
    assert_same(whole, parted)


def test_too_many_values_are_too_many_whatever_the_partitions(spark, monkeypatch):
    """70,000 distinct values: no partition of seven has more than the limit, all together have."""
    frame = spark.range(70_000).selectExpr("CAST(id AS DOUBLE) AS x", "id % 2 AS y", "id % 60000 AS z")
    for parts in (1, 7):
        source = open_source(frame.repartition(parts))
        found = source.count({"x": ALL, "z": ALL}, read_labels(source, "y"), values=True)
        assert found["x"].values is None
        assert len(found["z"].values) == 60_000


def test_the_sample_has_its_share_of_equal_rows_and_pairs_are_counted(spark, path):
    """A label and a small number make 30 distinct rows."""
    source, duck = open_source(spark.read.parquet(path)), open_source(path)
    names = ["label", "whole"]
    keys = []
    for table in (source.sample(names, 500, seed=3), duck.sample(names, 500, seed=3), duck.collect(names)):
        labels = np.array(table["label"].categories, object)[table["label"].codes]
        keys.append(list(zip(labels.tolist(), table["whole"].values.tolist(), strict=True)))
    for pair in set(keys[2]):
        expected = keys[2].count(pair) * 500 / N
        assert abs(keys[0].count(pair) - expected) <= 1
        assert abs(keys[1].count(pair) - expected) <= 1
    for weight in (None, "times"):
        held = [s.pairs("label", "whole", weight, 10**6) for s in (source, duck)]
        counted = []
        for table in held:
            labels = np.array(table["label"].categories, object)[table["label"].codes]
            counted.append(sorted(zip(labels, *(c.values.tolist() for c in table.columns[1:]), strict=True)))
        assert counted[0] == counted[1]
        assert len(counted[0]) == 30
    assert source.pairs("label", "whole", None, 7).n_rows == 8


def test_the_sample_is_the_same_whatever_the_order(spark, path):
    frame = spark.read.parquet(path)
    names = ["x", "whole", "word.s `", "label"]
    one = open_source(frame).sample(names, 500, seed=3)
    other = open_source(frame.repartition(5).orderBy("money")).sample(names, 500, seed=3)
    assert 400 < one.n_rows == other.n_rows < 600
    for name in names:
        (values, codes), (other_values, other_codes) = one[name].coded(), other[name].coded()
        np.testing.assert_array_equal(values, other_values)
        np.testing.assert_array_equal(codes, other_codes)
    assert open_source(frame).sample(names, 500, seed=4)["x"].values.tolist() != one["x"].values.tolist()


def test_what_fails_on_a_worker_is_one_sentence(spark):
    from pyspark.sql.functions import udf

    broken = udf(lambda x: 1 // 0, "double")
    frame = spark.range(10).withColumn("x", broken("id")).withColumn("y", udf(lambda x: "a", "string")("id"))
    source = open_source(frame)
    with pytest.raises(ValueError, match=r"Spark could not read the table: .*ZeroDivisionError") as error:
        source.count({"x": ALL}, read_labels(source, "y"))
    assert "\n" not in str(error.value)


def test_a_run_that_is_stopped_stops_the_job(spark):
    from pyspark.sql.functions import udf

    from damier.search.run import Run, Stopped

    @udf("double")
    def slow(x):
        import time

        time.sleep(1)
        return float(x)

    # To its end, this would take longer than a test may; a task takes some seconds, and ends before it stops.
    frame = spark.range(0, 4000, 1, 800)
    source = open_source(frame.withColumn("y", frame["id"] % 2).withColumn("x", slow("id")))
    labels = read_labels(open_source(frame.withColumn("y", frame["id"] % 2)), "y")
    run = Run(time_limit=2)
    with pytest.raises(Stopped):
        run.call(source.count, {"x": ALL}, labels, watch=run)
    assert run.ended == "time limit"
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)


def test_predictions_are_those_of_the_model_bit_by_bit(spark, path):
    import damier
    from damier.deploy import spark_predict

    table = pq.read_table(path)
    X, y = table.drop(["label", "many", "times"]), np.where(np.arange(N) % 3, "a", "b")
    X = X.set_column(1, "single", pa.array(np.where(y == "a", 1.0, 0.0) + np.arange(N) % 5))
    pq.write_table(X.append_column("id", pa.array(np.arange(N))), path + "2")
    frame = spark.read.parquet(path + "2").repartition(5)
    for model in (
        damier.NaiveBayesClassifier().fit(X, y),
        damier.DataGridClassifier(effort=1).fit(X, np.arange(N) % 2),
    ):
        scored = spark_predict(frame, model, keep=["id"], explain=True).orderBy("id").toArrow()
        expected = model.model_.predict_proba(X)
        for j, c in enumerate(model.classes_):
            np.testing.assert_array_equal(scored[f"probability {c}"].to_numpy(), expected[:, j])
        assert scored["predicted"].to_pylist() == model.predict(X).tolist()
        reasons = [one[0] if one else None for one in model.model_.reasons(X, 3)]
        assert scored["reason 1"].to_pylist() == reasons
    encoder = damier.MODLEncoder(encode="evidence").fit(X, y)
    scored = spark_predict(frame, encoder.model_, keep=["id"]).orderBy("id").toArrow().drop(["id"])
    np.testing.assert_array_equal(
        np.column_stack([c.to_numpy() for c in scored.columns]), encoder.model_.transform(X)
    )
    with pytest.raises(ValueError, match="lacks column 'single'"):
        spark_predict(frame.drop("single"), encoder)


def test_the_model_is_that_of_the_files(spark, path):
    import damier
    from damier.deploy.json import dumps

    names = ["x", "whole", "day", "word.s `", "flag", "label"]
    pq.write_table(pq.read_table(path, columns=names), path + "3.parquet")
    frame = spark.read.parquet(path + "3.parquet").repartition(3)
    found = damier.MODLEncoder(memory_limit=0).fit(frame, "label")
    assert dumps(found) == dumps(damier.MODLEncoder(memory_limit=0).fit(path + "3.parquet", "label"))
    assert found.source_.engine == "Spark"
    with pytest.raises(ValueError, match="y must be the name of a column"):
        damier.MODLEncoder().fit(frame, pq.read_table(path)["label"].to_pylist())


CLUSTER = """
import sys
import numpy as np
from damier.deploy import load, spark_predict
from damier.intake.engines import open_source
from damier.intake.engines.prebins import ALL, refined_binning
from damier.intake.engines.source import read_labels
from tests.intake.engines.spark_session import start
from tests.intake.engines.test_spark import NUMBERS, assert_same, on_workers

spark = start(sys.argv[1])
frame = spark.read.parquet(sys.argv[2]).repartition(4)
source, duck = open_source(frame), open_source(sys.argv[2])
labels = read_labels(duck, "label", "times")
scan = dict.fromkeys(NUMBERS, ALL)
first = source.count(scan, labels, values=True)
assert_same(first, duck.count(scan, labels, values=True))
bins = {name: refined_binning(ALL, first[name], n_bins=64) for name in NUMBERS}
assert_same(source.count(bins, labels), duck.count(bins, labels))
held = on_workers(spark)
assert len({process for process, _ in held}) == 2, held
assert not set().union(*(names for _, names in held)), held
model = load(sys.argv[3])
found = spark_predict(frame, model).toArrow()
np.testing.assert_array_equal(found["probability no"].to_numpy(), model.predict_proba(found)[:, 1])
print("all the same", flush=True)
spark.stop()
"""


def on_workers(spark):
    """Return the processes that ran Python on the workers, and what they imported of what they must not."""
    refused = REFUSED

    def look(batches):
        import os
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        held = sorted({name.partition(".")[0] for name in sys.modules} & set(refused))
        yield pa.RecordBatch.from_pydict({"process": [os.getppid()], "names": [",".join(held)]})

    found = spark.range(0, 100, 1, 2).mapInArrow(look, "process bigint, names string").collect()
    return [(row.process, set(filter(None, row.names.split(",")))) for row in found]


def test_workers_have_imported_nothing_of_ours(spark, path):
    source = open_source(spark.read.parquet(path).repartition(2))
    source.count(dict.fromkeys(NUMBERS, ALL), read_labels(source, "label"))
    assert all(not names - {"damier", "narwhals"} for _, names in on_workers(spark))


@pytest.mark.cluster
def test_a_real_cluster(path, tmp_path):
    import damier
    from damier.deploy import save

    table = pq.read_table(path)
    y = np.where(table["whole"].to_numpy() > 0, "yes", "no")
    y[::7] = "it's"
    save(damier.NaiveBayesClassifier().fit(table.select(["x", "whole", "day"]), y), tmp_path / "m.json")
    root = Path(__file__).parents[3]
    with cluster() as address:
        done = subprocess.run(
            [sys.executable, "-c", CLUSTER, address, path, tmp_path / "m.json"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])},
            capture_output=True,
            text=True,
            timeout=540,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all the same" in done.stdout


def test_the_cluster_writes_the_groups_of_all_values(spark, path, tmp_path):
    frame, out, file = spark.read.parquet(path), tmp_path / "a map", str(tmp_path / "map.parquet")
    chosen = frame.select("`word.s ```", "label", "times")
    grouper = damier.MODLGrouper(memory_limit=0, max_values=2)
    partition = grouper.fit(chosen, "label", sample_weight="times").partitions_["word.s `"]
    n_values = write_groups(chosen, "label", partition, str(out), sample_weight="times")
    assert write_groups(path, "label", partition, file, sample_weight="times") == n_values == 5
    written, found = pq.read_table(file).to_pydict(), pq.read_table(out).to_pydict()
    assert list(found) == list(written) == ["word.s `", "part"]
    assert dict(zip(*found.values(), strict=True)) == dict(zip(*written.values(), strict=True))
    before = sorted(p.name for p in out.iterdir())
    with pytest.raises(ValueError, match=r"Spark could not write the groups to .*already exists"):
        write_groups(chosen, "label", partition, str(out), sample_weight="times")
    assert sorted(p.name for p in out.iterdir()) == before
    grouper.fit(frame.select("whole", "many"), "many")
    with pytest.raises(ValueError, match="at most 32 classes; 'many' has more"):
        write_groups(frame, "many", grouper.partitions_["whole"], str(tmp_path / "many"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a map", "map.parquet"]
