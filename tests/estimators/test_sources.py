"""Estimators fitted to tables that an engine holds: the models of the same rows in memory."""

import _thread
import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import damier
from damier.deploy import write_groups
from damier.deploy.json import dumps
from damier.fit.sources import fit_source_naive_bayes
from damier.intake.engines.duckdb import DuckDBSource

N = 90_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    u = rng.random((N, 4))
    day = datetime.date(2020, 1, 1)
    word = np.array([f"w{i}" for i in range(3000)])[(rng.pareto(1.0, N) * 30).astype(int) % 3000]
    known = {w: rng.normal() for w in np.unique(word)}
    odds = (
        2.0 * (u[:, 0] > 0.31)
        + np.sin(6 * u[:, 1])
        + np.array([known[w] for w in word])
        + 1.5 * (u[:, 2] > 0.5)
        + rng.normal(size=N)
    )
    return pa.table(
        {
            "step": pa.array(u[:, 0] * 100, mask=rng.random(N) < 0.05),
            "wave": u[:, 1],
            "noise": rng.normal(size=N),
            "count": rng.poisson(3, N),
            "day": [day + datetime.timedelta(days=int(d)) for d in u[:, 2] * 1000],
            "flag": pa.array(u[:, 3] < 0.3, mask=rng.random(N) < 0.05),
            "word": pa.array(word, mask=rng.random(N) < 0.01),
            "label": np.array(["low", "middle", "it's high"])[np.digitize(odds, [1.0, 2.5])],
            "times": rng.integers(0, 4, N),
        }
    )


FEATURES = ["step", "wave", "noise", "count", "day", "flag", "word"]


def relation(table, names=None):
    connection = duckdb.connect()
    connection.register("held", table if names is None else table.select(names))
    return connection.sql("SELECT * FROM held")


def in_memory(rows, names=FEATURES):
    return rows.select(names), rows.column("label").to_pylist()


def assert_alike(one, other):
    """The partitions of counts keep the gain of those of rows, and are the same where counts are exact."""
    assert list(one.partitions_) == list(other.partitions_)
    for name, held in one.partitions_.items():
        expected = other.partitions_[name]
        assert type(held) is type(expected)
        gain, most = held.null_cost - held.cost, expected.null_cost - expected.cost
        assert gain >= 0.9999 * most, name
        assert held.n_parts <= expected.n_parts + 1, name
        if name in ("count", "day", "flag", "word"):
            assert dumps(held) == dumps(expected), name


@pytest.mark.parametrize("encode", ["ordinal", "evidence"])
def test_an_encoder_of_a_source_is_that_of_the_rows(rows, encode):
    X, y = in_memory(rows)
    expected = damier.MODLEncoder(encode=encode).fit(X, y)
    found = damier.MODLEncoder(encode=encode, memory_limit=0).fit(
        relation(rows, [*FEATURES, "label"]), "label"
    )
    assert_alike(found, expected)
    assert found.feature_names_in_.tolist() == FEATURES
    assert found.classes_.tolist() == expected.classes_.tolist()
    use = found.source_
    assert (use.engine, use.rows, use.collected, use.left_out) == ("DuckDB", N, False, {})
    summary, of_rows = found._summary(), expected._summary()
    assert summary["missing"] == of_rows["missing"]
    assert summary["type"] == of_rows["type"]
    assert [d for d in summary["distinct"] if d is not None] == [
        d for d, s in zip(of_rows["distinct"], summary["distinct"], strict=True) if s is not None
    ]
    assert np.asarray(found.transform(X)).shape == np.asarray(expected.transform(X)).shape
    assert expected.source_ is None


def test_weights_are_a_column(rows):
    weights = rows.column("times").to_numpy()
    features = ["count", "day", "flag", "word"]
    X, y = in_memory(rows, features)
    expected = damier.MODLEncoder().fit(X, y, sample_weight=weights)
    names = [*features, "label", "times"]
    for limit in (0, None):
        found = damier.MODLEncoder(memory_limit=limit).fit(
            relation(rows, names), "label", sample_weight="times"
        )
        assert dumps(found.model_) == dumps(expected.model_)


def test_a_weight_repeats_a_row(rows):
    weights = rows.column("times").to_numpy()
    names = ["step", "wave", "word", "label"]
    repeated = rows.select(names).take(np.repeat(np.arange(N), weights))
    one = damier.MODLEncoder(memory_limit=0).fit(relation(repeated), "label")
    other = damier.MODLEncoder(memory_limit=0).fit(
        relation(rows, [*names, "times"]), "label", sample_weight="times"
    )
    assert dumps(one.model_) == dumps(other.model_)


def test_a_table_that_fits_is_fitted_in_memory(rows):
    X, y = in_memory(rows)
    expected = damier.MODLEncoder().fit(X, y)
    found = damier.MODLEncoder().fit(relation(rows, [*FEATURES, "label"]), "label")
    assert dumps(found.model_) == dumps(expected.model_)
    assert found.source_.collected


def test_numbers_and_names(rows):
    X, y = in_memory(rows, ["count", "flag", "day", "wave"])
    table = relation(rows, ["count", "flag", "day", "wave", "label"])
    found = damier.MODLDiscretizer(memory_limit=0).fit(table, "label")
    expected = damier.MODLDiscretizer().fit(X, y)
    assert_alike(found, expected)
    names = ["count", "flag", "day", "word"]
    X, y = in_memory(rows, names)
    found = damier.MODLGrouper(memory_limit=0).fit(relation(rows, [*names, "label"]), "label")
    assert dumps(found.model_) == dumps(damier.MODLGrouper().fit(X, y).model_)


def test_naive_bayes_is_weighted_on_a_sample(rows):
    X, y = in_memory(rows)
    expected = damier.NaiveBayesClassifier().fit(X, y)
    found = damier.NaiveBayesClassifier(memory_limit=0).fit(relation(rows, [*FEATURES, "label"]), "label")
    assert_alike(found, expected)
    assert found.source_.sample_rows == N
    assert np.allclose(found.weights_, expected.weights_, atol=0.02)
    assert np.allclose(found.predict_proba(X), expected.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("averaging", ["convex", "compression", None])
def test_a_class_that_the_sample_lacks(averaging, monkeypatch):
    monkeypatch.setitem(fit_source_naive_bayes.__kwdefaults__, "sample_rows", 1000)
    rng = np.random.default_rng(1)
    x, word = rng.random(20_000), rng.integers(0, 3, 20_000)
    y = np.where(x + word > 1.5, "high", "low")
    y[::10_000] = "rare"
    held = pa.table({"x": x, "word": np.array(["a", "b", "c"])[word], "label": y})
    found = damier.NaiveBayesClassifier(memory_limit=0, averaging=averaging).fit(relation(held), "label")
    assert found.source_.sample_rows < 1200
    proba = found.predict_proba(held.drop_columns("label"))
    assert found.classes_[proba.argmax(axis=1)].tolist().count("rare") == 0
    assert proba[np.arange(20_000), np.searchsorted(found.classes_, y)].mean() > 0.7


def test_pairs_are_counted_on_the_sample(rows):
    u, v = (rows.column(name).to_numpy() for name in ("wave", "noise"))
    crossed = rows.select(["wave", "noise", "word"]).append_column("label", pa.array((u > 0.4) ^ (v > 0.2)))
    found = damier.NaiveBayesClassifier(memory_limit=0, pairs="auto").fit(relation(crossed), "label")
    assert [set(pair.names) for pair in found.pairs_] == [{"wave", "noise"}]
    assert found.pairs_[0].counts.sum() == found.source_.sample_rows
    assert found.score(crossed.drop_columns("label"), crossed.column("label").to_numpy()) > 0.99


def test_rows_order_files_threads_and_batches_do_not_matter(rows, tmp_path, monkeypatch):
    names = [*FEATURES, "label"]
    whole = rows.select(names)
    models = []
    settings = [(0, 1, None, 1 << 17), (1, 3, 1, 1000), (2, 7, 2, 12_345)]
    for seed, n_files, n_jobs, batch in settings:
        shuffled = whole.take(np.random.default_rng(seed).permutation(N))
        folder = tmp_path / str(seed)
        folder.mkdir()
        for k, part in enumerate(np.array_split(np.arange(N), n_files)):
            pq.write_table(shuffled.slice(part[0], len(part)), folder / f"{k}.parquet")
        monkeypatch.setattr("damier.intake.engines.duckdb.BATCH", batch)
        bayes = damier.NaiveBayesClassifier(memory_limit=0, n_jobs=n_jobs)
        models.append(dumps(bayes.fit(str(folder / "*.parquet"), "label").model_))
    assert models[0] == models[1] == models[2]


def test_values_beyond_the_listed_ones_score_as_unseen(rows):
    table = relation(rows, ["word", "label"])
    with pytest.warns(UserWarning, match=r"'word' has [\d,]+ values beyond the 100 most frequent"):
        few = damier.MODLEncoder(memory_limit=0, max_values=100).fit(table, "label")
    every = damier.MODLEncoder(memory_limit=0).fit(table, "label")
    one, other = few.partitions_["word"], every.partitions_["word"]
    assert one.cost == other.cost
    assert (one.counts == other.counts).all()
    listed = [v for group in one.groups for v in group]
    assert 100 <= len(listed) <= 100 + one.n_parts
    n_values = sum(map(len, other.groups))
    column = rows.column("word").to_pylist()
    n_rows = sum(v not in set(listed) for v in column)
    assert few.source_.left_out == {"word": (n_values - len(listed), n_rows)}
    part = few.partitions_["word"].apply(column)
    full = other.apply(column)
    assert (part[part >= 0] == full[part >= 0]).all()
    assert (part < 0).sum() == n_rows


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (damier.MODLEncoder, {"y": [0, 1]}, "y must be the name of a column"),
        (damier.MODLEncoder, {"sample_weight": [1, 2]}, "sample_weight must be the name of a column"),
        (damier.MODLEncoder, {"y": "nothing"}, "'nothing' is no column of the table"),
        (damier.MODLEncoder, {"y": "word"}, "the target word is missing in"),
        (damier.MODLDiscretizer, {}, "column 'word' is categorical: it holds text"),
    ],
)
def test_what_cannot_be_fitted_is_said(rows, estimator, arguments, message):
    with pytest.raises(ValueError, match=message):
        estimator(memory_limit=0).fit(relation(rows), **{"y": "label", **arguments})


@pytest.mark.parametrize("options", [{"group_classes": True}, {"semi_supervised": "bounds"}])
def test_settings_that_need_rows_are_refused(rows, options):
    with pytest.raises(ValueError, match="needs all rows in memory"):
        damier.MODLEncoder(memory_limit=0, **options).fit(relation(rows), "label")


@pytest.mark.parametrize("estimator", [damier.BallPartitionClassifier, damier.LinfClassifier])
def test_estimators_that_need_rows_say_so(rows, estimator, monkeypatch):
    monkeypatch.setattr("damier.intake.engines.source.MEMORY", 1000)
    with pytest.raises(ValueError, match=r"needs all rows in memory.*Pass a sample"):
        estimator().fit(relation(rows, ["wave", "noise", "label"]), "label")


def test_progress_counts_rows_and_an_exception_of_it_stops(rows, monkeypatch):
    seen = []
    damier.MODLEncoder(memory_limit=0).fit(relation(rows), "label", progress=seen.append)
    assert any(p.total == N and "rows/s" in p.text for p in seen)

    def fail(progress):
        raise RuntimeError("enough")

    monkeypatch.setattr("damier.intake.engines.duckdb.BATCH", 2048)
    connection = duckdb.connect()
    connection.register("held", rows)
    table = connection.sql("SELECT * FROM held")
    for _ in range(5):
        with pytest.raises(RuntimeError, match="enough"):
            damier.MODLEncoder(memory_limit=0).fit(table, "label", progress=fail)
        assert connection.sql("SELECT count(*) FROM held").fetchall() == [(N,)]  # the scan is over


def test_ctrl_c_ends_between_batches_and_leaves_the_connection_usable(rows, monkeypatch):
    monkeypatch.setattr("damier.intake.engines.duckdb.BATCH", 2048)
    connection = duckdb.connect()
    connection.register("held", rows)
    table = connection.sql("SELECT * FROM held")
    presses = iter([_thread.interrupt_main])  # one: a second would not wait for the scan to end
    with pytest.raises(KeyboardInterrupt):
        damier.MODLEncoder(memory_limit=0).fit(
            table, "label", progress=lambda _: next(presses, lambda: None)()
        )
    assert connection.sql("SELECT count(*) FROM held").fetchall() == [(N,)]


class Changing(DuckDBSource):
    """A table that is another one from some query on."""

    def __init__(self, before, after, n_good):
        super().__init__(before)
        self.after, self.n_good, self.asked = after, n_good, []

    def _query(self, query):
        if not hasattr(self, "asked"):
            return super()._query(query)
        self.asked.append(query)
        held = self.relation if len(self.asked) <= self.n_good else self.after
        return held.query("damier_source", query)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("wave", "wave + 1e6"),
        ("wave", "sqrt(wave)"),
        ("word", "CASE WHEN word < 'w2' THEN 'w2' ELSE word END"),
        ("label", "'new'"),
        ("label", "CASE WHEN wave < 0.1 THEN 'low' ELSE label END"),
    ],
)
def test_a_table_that_changes_between_scans_is_refused(rows, name, change):
    connection = duckdb.connect()
    connection.register("rows", rows.select(["wave", "word", "label"]))
    before = connection.sql("SELECT * FROM rows")
    after = connection.sql(f"SELECT * REPLACE ({change} AS {name}) FROM rows")
    encoder, whole = damier.MODLEncoder(memory_limit=0), Changing(before, after, 100)
    encoder.fit(whole, "label")
    scans = [k for k, query in enumerate(whole.asked) if f'"{name}"' in query]
    assert len(scans) > 1
    for n_good in range(scans[0] + 1, scans[-1] + 1):
        with pytest.raises(ValueError, match="the table changed while it was read"):
            encoder.fit(Changing(before, after, n_good), "label")


def test_all_values_are_written_with_their_groups(rows, tmp_path):
    table = relation(rows, ["word", "label"])
    path = str(tmp_path / "words.parquet")
    every = damier.MODLEncoder(memory_limit=0).fit(table, "label").partitions_["word"]
    with pytest.warns(UserWarning, match="most frequent"):
        few = damier.MODLEncoder(memory_limit=0, max_values=50).fit(table, "label").partitions_["word"]
    n_values = write_groups(table, "label", few, path)
    written = pq.read_table(path)
    assert n_values == written.num_rows == sum(map(len, every.groups))
    part_of = dict(zip(written["word"].to_pylist(), written["part"].to_pylist(), strict=True))
    listed = [v for group in few.groups for v in group]
    assert [part_of[v] for v in listed] == few.apply(listed).tolist()
    column = rows.column("word").to_pylist()
    assert [part_of[v] for v in column] == [int(p) for p in every.apply(column)]
    with pytest.raises(ValueError, match="are not those of X"):
        write_groups(relation(rows.slice(0, N // 2), ["word", "label"]), "label", few, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["words.parquet"]
