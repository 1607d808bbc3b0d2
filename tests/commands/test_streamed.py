"""``damier predict`` on files that are scored batch after batch: the same answers, whole or not at all."""

from __future__ import annotations

import _thread
import datetime
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy import load, save, scoring
from damier.intake import read_file, stream

N = 3000


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def visits(seed=0, n=N):
    """Numbers, text that looks like numbers, dates, booleans, ordered categories, durations; some missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    age = rng.normal(40 + 5 * y, 8, n)
    sizes = pa.array(rng.integers(0, 3, n) if seed else np.minimum(rng.integers(0, 3, n) + y, 2), pa.int8())
    start, after = datetime.datetime(2024, 1, 1), (rng.integers(0, 300, n) + 60 * y).tolist()
    return pa.table(
        {
            "id": pa.array([f"{i:05d}" for i in range(n)]),
            "age": pa.array(age, mask=rng.random(n) < 0.1),
            "code": pa.array(np.where(y == 1, rng.choice(["1", "2"], n), rng.choice(["2", "3"], n))),
            "member": pa.array(rng.random(n) < 0.3 + 0.4 * y),
            "day": pa.array([start + datetime.timedelta(days=d) for d in after]),
            "spell": pa.array((rng.gamma(2, 1e6 + 1e6 * y)).astype(np.int64), pa.duration("us")),
            "size": pa.DictionaryArray.from_arrays(sizes, ["small", "medium", "large"], ordered=True),
            "left": pa.array(np.where(y == 1, "yes", "no")),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streamed")
    train = visits()
    model = damier.NaiveBayesClassifier().fit(train.drop(["left", "id"]), train["left"].to_pylist())
    save(model, folder / "model.json")
    assert all(v.informs for v in model.model_.variables)
    plain = damier.NaiveBayesClassifier().fit(
        train.select(["age", "code", "member", "day"]), train["left"].to_pylist()
    )
    save(plain, folder / "plain.json")
    (folder / "new").mkdir()
    for seed in (1, 2, 3):
        pq.write_table(visits(seed), folder / "new" / f"part{seed}.parquet", row_group_size=700)
    return folder


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(stream, "batch_rows", lambda _: 257)


def probabilities(path):
    held = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
    return held[["probability no", "probability yes"]].astype(object).map(float).to_numpy(float)


@pytest.mark.parametrize("name", ["scored.parquet", "scored.csv"])
@pytest.mark.parametrize("model", ["model.json", "plain.json"])  # the first has what DuckDB does not keep
def test_many_files_into_one_bit_by_bit(folder, small_batches, tmp_path, model, name):
    done = run(
        "predict", folder / model, folder / "new" / "*.parquet", "-o", tmp_path / name, "--keep", "id,day,age"
    )
    assert done.exit_code == 0, done.output
    assert "9,000 rows written" in done.output.replace("\n", " ")
    assert "rows per second" in done.output.replace("\n", " ")
    new = pa.concat_tables([visits(seed) for seed in (1, 2, 3)], promote_options="default")
    expected = load(folder / model).predict_proba(new)
    np.testing.assert_array_equal(probabilities(tmp_path / name), expected)
    if name.endswith("parquet"):
        kept = pq.read_table(tmp_path / name, columns=["id", "day", "age"])
        assert kept.equals(new.select(["id", "day", "age"]))
    else:
        kept = pd.read_csv(tmp_path / name, dtype=str)
        assert kept["id"].tolist() == new["id"].to_pylist()
        np.testing.assert_array_equal(
            kept["age"].astype(object).map(float).to_numpy(float), new["age"].to_numpy()
        )
        assert kept["day"][0] == str(new["day"][0].as_py())
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_folder_gets_one_file_per_file(folder, small_batches, tmp_path):
    out = tmp_path / "scored"
    done = run("predict", folder / "model.json", folder / "new", "-o", f"{out}/", "--explain")
    assert done.exit_code == 0, done.output
    model = load(folder / "model.json")
    for seed in (1, 2, 3):
        path = out / f"part{seed}.parquet"
        np.testing.assert_array_equal(probabilities(path), model.predict_proba(visits(seed)))
        said = pq.read_table(path).column("reason 1").to_pylist()
        reasons = model.reasons(visits(seed), 3)
        assert said == [one[0] if one else None for one in reasons]
    again = run("predict", folder / "model.json", folder / "new", "-o", out)
    assert again.exit_code == 2
    assert "is not empty" in again.output


def test_every_kind_of_model_gives_the_same_rows_one_by_one(folder, monkeypatch, tmp_path):
    train, new = visits(), visits(1)
    X, y = train.select(["age", "code", "member"]), train["left"].to_pylist()
    numbers = pa.table({"age": train["age"].fill_null(0.0), "more": pa.array(np.arange(N) % 17)})
    monkeypatch.setattr(stream, "batch_rows", lambda _: 999)
    pq.write_table(
        new.append_column("more", pa.array(np.arange(N) % 17)).set_column(
            1, "age", new["age"].fill_null(0.0)
        ),
        tmp_path / "n.parquet",
    )
    table = read_file(tmp_path / "n.parquet")
    for k, fitted in enumerate(
        (
            damier.DataGridClassifier(effort=1).fit(X, y),
            damier.DataGridEnsembleClassifier(effort=1, n_grids=3).fit(X, y),
            damier.LinfClassifier(n_estimators=3).fit(numbers, y),
            damier.BallPartitionClassifier().fit(numbers.slice(0, 300), y[:300]),
        )
    ):
        save(fitted, tmp_path / "m.json")
        out = tmp_path / f"s{k}"
        done = run("predict", tmp_path / "m.json", tmp_path / "n.parquet", "-o", out)
        assert done.exit_code == 0, done.output
        np.testing.assert_array_equal(probabilities(out / "n.parquet"), fitted.model_.predict_proba(table))
    encoder = damier.MODLEncoder(encode="evidence").fit(X, y)
    save(encoder, tmp_path / "m.json")
    assert run("predict", tmp_path / "m.json", tmp_path / "n.parquet", "-o", tmp_path / "e").exit_code == 0
    np.testing.assert_array_equal(
        pd.read_parquet(tmp_path / "e" / "n.parquet").to_numpy(), encoder.model_.transform(table)
    )


def test_text_is_read_as_the_model_was(folder, small_batches, tmp_path):
    """Decimal commas, marks of missing values, another encoding, cells that are no numbers."""
    new = visits(1).select(["age", "code", "member", "day"]).to_pandas()
    lines = ["age;code;member;day;city"]
    expected = new.copy()
    for i, row in enumerate(new.itertuples(index=False)):
        age = "NA" if np.isnan(row.age) else f"{row.age!r}".replace(".", ",")
        code = " 2 " if i % 7 == 0 else row.code
        expected.loc[i, "code"] = code.strip()
        if i % 500 == 499:
            age = "old"
            expected.loc[i, "age"] = np.nan
        lines.append(f"{age};{code};{str(row.member).lower()};{row.day.date()};Orléans")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.csv").write_text("\n".join(lines), encoding="cp1252")
    (tmp_path / "new" / "b.csv").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "s.parquet"
    done = run("predict", folder / "plain.json", tmp_path / "new" / "*.csv", "-o", out, "--keep", "city")
    assert done.exit_code == 0, done.output
    scored = load(folder / "plain.json").predict_proba(expected)
    np.testing.assert_array_equal(probabilities(out), np.vstack([scored, scored]))
    assert pd.read_parquet(out)["city"].tolist() == ["Orléans"] * (2 * N)
    assert "a.csv: age: 6 cells read as missing" in done.output.replace("\n", " ")
    # the same file, small enough to be read at once
    assert run("predict", folder / "plain.json", tmp_path / "new" / "a.csv", "-o", out).exit_code == 0
    np.testing.assert_array_equal(probabilities(out), scored)


@pytest.mark.parametrize("out", ["s.csv", "s.parquet", "s"])
def test_what_fails_leaves_nothing(folder, small_batches, tmp_path, out):
    (tmp_path / "new").mkdir()
    pq.write_table(visits(1), tmp_path / "new" / "a.parquet")
    data = (tmp_path / "new" / "a.parquet").read_bytes()
    (tmp_path / "new" / "b.parquet").write_bytes(data[: len(data) // 2])
    before = sorted(p.name for p in tmp_path.iterdir())
    done = run("predict", folder / "plain.json", tmp_path / "new" / "*.parquet", "-o", tmp_path / out)
    assert done.exit_code == 1
    assert "b.parquet is not a readable Parquet file" in done.output.replace("\n", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    pq.write_table(visits(2).drop(["age"]), tmp_path / "new" / "b.parquet")
    done = run("predict", folder / "plain.json", tmp_path / "new" / "*.parquet", "-o", tmp_path / out)
    assert done.exit_code == 1
    assert "X lacks column 'age'" in done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("model", ["model.json", "plain.json"])
@pytest.mark.parametrize("out", ["s.csv", "s.parquet", "s"])
def test_a_file_damaged_inside_is_named(folder, small_batches, tmp_path, model, out):
    (tmp_path / "new").mkdir()
    for name in "ab":
        pq.write_table(visits(1), tmp_path / "new" / f"{name}.parquet", row_group_size=500)
    data = (tmp_path / "new" / "b.parquet").read_bytes()
    third = len(data) // 3
    (tmp_path / "new" / "b.parquet").write_bytes(data[:third] + b"\xff" * third + data[2 * third :])
    done = run("predict", folder / model, tmp_path / "new" / "*.parquet", "-o", tmp_path / out)
    assert done.exit_code == 1
    assert "b.parquet is not a readable Parquet file" in done.output.replace("\n", "")
    with pytest.raises(ValueError, match=r"new/\*\.parquet cannot be read: "):
        damier.MODLEncoder(memory_limit=0).fit(str(tmp_path / "new" / "*.parquet"), "left")
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_full_disk_leaves_nothing(folder, tmp_path):
    big = tmp_path / "big"
    big.mkdir()
    pq.write_table(pa.concat_tables([visits(seed) for seed in range(1, 6)]), big / "a.parquet")
    for out in ("s.csv", "s.parquet", "s"):
        words = [sys.executable, "-m", "damier", "predict", folder / "plain.json", big, "-o", tmp_path / out]
        limited = ["bash", "-c", 'ulimit -f 64; exec "$@"', "bash", *map(str, words)]  # 64 KB
        done = subprocess.run(limited, capture_output=True, text=True, timeout=600)
        assert done.returncode == 2, done.stderr
        assert f"cannot write '{tmp_path / out}': File too large" in done.stderr.replace("\n", "")
        assert [p.name for p in tmp_path.iterdir()] == ["big"]


def test_what_is_refused(folder, tmp_path):
    pattern = folder / "new" / "*.parquet"
    for words, said in [
        ((folder / "model.json", pattern), "several files need --output"),
        ((folder / "model.json", folder / "none*.csv", "-o", tmp_path / "s"), "check the name"),
        ((folder / "model.json", pattern, "-o", folder / "new" / "part2.parquet"), "is the input"),
        ((folder / "model.json", pattern, "-o", tmp_path / "x" / "s"), "there is no folder"),
        ((folder / "model.json", pattern, "-o", tmp_path / "s", "--keep", "idd"), "no column 'idd'"),
    ]:
        done = run("predict", *words)
        assert done.exit_code in (1, 2), words
        assert said in done.output.replace("\n", " ")
        assert not list(tmp_path.iterdir())


def test_no_rows_give_no_rows(folder, tmp_path):
    (tmp_path / "new").mkdir()
    pq.write_table(visits(1).slice(0, 0), tmp_path / "new" / "a.parquet")
    (tmp_path / "new" / "b.csv").write_text("age,code,member,day\n")
    done = run("predict", folder / "plain.json", tmp_path / "new", "-o", tmp_path / "s.csv")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "s.csv").read_text().splitlines() == ["predicted,probability no,probability yes"]
    assert run("predict", folder / "plain.json", tmp_path / "new", "-o", tmp_path / "s").exit_code == 0
    assert [len(pd.read_parquet(tmp_path / "s" / f"{name}.parquet")) for name in "ab"] == [0, 0]


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_half_written(folder, tmp_path):
    big = tmp_path / "big"
    big.mkdir()
    for k in range(300):
        os.link(folder / "new" / "part1.parquet", big / f"{k}.parquet")
    words = [sys.executable, "-m", "damier", "predict", folder / "model.json", big, "-o", tmp_path / "s"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not any(p.name.endswith(".partial") for p in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "stopped before anything was written" in said
    assert [p.name for p in tmp_path.iterdir()] == ["big"]


@pytest.mark.parametrize("name", ["out.csv", "out"])
def test_a_second_ctrl_c_leaves_nothing_either(folder, small_batches, tmp_path, monkeypatch, name):
    plain = scoring.answers

    def interrupted(*args, **keywords):
        for _ in range(2):
            _thread.interrupt_main()
            time.sleep(0.5)
        return plain(*args, **keywords)

    monkeypatch.setattr(scoring, "answers", interrupted)
    done = run("predict", folder / "model.json", folder / "new", "-o", tmp_path / name)
    assert (done.exit_code, list(tmp_path.iterdir())) == (130, [])
