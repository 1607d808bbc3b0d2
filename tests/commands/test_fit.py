"""The command ``damier fit``: models of files of any size."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy import load
from damier.deploy.json import dumps
from damier.intake import read_file

N = 2000


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    frame = pd.DataFrame(
        {
            "code": [f"{i % 40:05d}" for i in range(N)],
            "age": np.where(rng.random(N) < 0.05, "NA", (rng.integers(20, 50, N) + 12 * y).astype(str)),
            "spent": [f"${v:,.2f}" for v in rng.gamma(2.0, 300.0 + 900.0 * y)],
            "day": np.datetime64("2024-01-01") + (rng.integers(0, 200, N) + 90 * y).astype("m8[D]"),
            "plan": rng.choice(["basic", "gold", "it's"], N),
            "ok": np.where(rng.random(N) < 0.3 + 0.3 * y, "true", "false"),
            "left": np.where(y == 1, "yes", "no"),
            "times": rng.integers(0, 3, N),
        }
    )
    frame.to_csv(folder / "train.csv", index=False)
    (folder / "many").mkdir()
    for k in range(3):
        frame[k::3].to_csv(folder / "many" / f"{k}.csv", index=False)
    return folder


@pytest.mark.parametrize("memory", ["0GB", "4GB"])
@pytest.mark.parametrize("files", ["train.csv", "many/*.csv"])
def test_the_model_is_that_of_the_rows(folder, files, memory):
    out = folder / "model.json"
    done = run("fit", folder / files, "-t", "left", "-o", out, "--memory", memory, "--weights", "times")
    assert done.exit_code == 0, done.output
    assert "2,000 rows" in done.output.replace("\n", " ")
    assert ("counted by DuckDB" in done.output) == (memory == "0GB")
    table = read_file(folder / "train.csv", drop=["times"])
    weights = read_file(folder / "train.csv", only=["times"])["times"].values
    left = table["left"]
    y = [left.categories[code] for code in left.codes]
    expected = damier.NaiveBayesClassifier().fit(table.drop("left"), y, sample_weight=weights)
    found = load(out)
    for held, of_rows in zip(found.variables, expected.model_.variables, strict=True):
        assert dumps(held.partition) == dumps(of_rows.partition)
    assert np.allclose([v.weight for v in found.variables], expected.weights_, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing.parquet", "-t", "left"], 1, "no such file"),
        (["train.csv", "-t", "gone"], 1, "'gone' is no column"),
        (["train.csv", "-t", "left", "--threads", "0"], 2, "--threads must be at least 1"),
        (["train.csv", "-t", "left", "--memory", "much"], 1, "memory_limit must be a size"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder, words, code, message):
    out = folder / "none.json"
    done = run("fit", folder / words[0], *words[1:], "-o", out)
    assert done.exit_code == code
    assert message in " ".join(done.output.split())
    assert not out.exists()


def test_a_report_on_a_large_file_counts_all_rows(folder):
    out = folder / "report.json"
    words = ["report", folder / "many" / "*.csv", "-t", "left", "--memory", "0GB", "--grid", "1"]
    done = run(*words, "--json", out, "-o", folder / "page.html", "--save-model", folder / "averaged.json")
    assert done.exit_code == 0, done.output
    summary = json.loads(out.read_text())
    assert summary["dataset"]["rows"] == N
    assert "counted by DuckDB" in " ".join(summary["notes"])
    plain = folder / "plain.json"
    done = run(
        "report", folder / "train.csv", "-t", "left", "--grid", "0", "--json", plain, "-o", folder / "p.html"
    )
    assert done.exit_code == 0, done.output
    expected = json.loads(plain.read_text())
    for held, of_rows in zip(summary["variables"], expected["variables"], strict=True):
        assert held["name"] == of_rows["name"]
        assert held["level"] == of_rows["level"]
        assert held["missing"] == of_rows["missing"]
        assert held["table"] == of_rows["table"]
    assert load(folder / "averaged.json").variables


def test_options_of_reading_are_refused_for_large_files(folder):
    done = run("report", folder / "train.csv", "-t", "left", "--memory", "0GB", "--drop", "code")
    assert done.exit_code == 1
    assert "--drop is for tables that fit" in " ".join(done.output.split())


@pytest.mark.parametrize("memory", ["0GB", "4GB"])
def test_whole_numbers_of_very_many_values_are_a_number_as_in_report(tmp_path, memory):
    rng = np.random.default_rng(1)
    size = rng.random(600)
    price = np.round(1000 + 5000 * size + 300 * rng.random(600))
    pd.DataFrame({"size": size, "price": price}).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "model.json"
    done = run("fit", tmp_path / "t.csv", "-t", "price", "-o", out, "--memory", memory)
    assert done.exit_code == 0, done.output
    assert "price is taken for a number (--target-type classes" in done.output.replace("\n", " ")
    assert load(out).predict({"size": [0.1]})[0] < load(out).predict({"size": [0.9]})[0]
    assert "taken for" in run("report", tmp_path / "t.csv", "-t", "price", "--memory", memory).output


@pytest.mark.parametrize("target", ["times", "spent", "left"])
def test_a_table_that_fits_needs_no_pyarrow(folder, monkeypatch, target):
    """Neither do the targets that may be a number."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("fit", folder / "train.csv", "-t", target, "-o", folder / "without.json")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("memory", ["2GB", "0"])
def test_classes_of_a_text_file_keep_the_form_of_its_cells(tmp_path, memory):
    """Whole numbers are not written with a decimal point, whether the rows are collected or streamed."""
    rng = np.random.default_rng(3)
    bought = rng.integers(0, 2, 400)
    pd.DataFrame({"size": bought + rng.random(400), "bought": bought}).to_csv(tmp_path / "t.csv", index=False)
    out, scored = tmp_path / "m.json", tmp_path / "scored.csv"
    done = run("fit", tmp_path / "t.csv", "-t", "bought", "-o", out, "--memory", memory)
    assert done.exit_code == 0, done.output
    assert load(out).classes == (0, 1)
    assert run("predict", out, tmp_path / "t.csv", "-o", scored).exit_code == 0
    held = pd.read_csv(scored, dtype=str)
    assert list(held.columns) == ["predicted", "probability 0", "probability 1"]
    assert set(held["predicted"]) == {"0", "1"}


def test_nothing_is_written_behind_the_last_line(tmp_path):
    """Libraries in C write what is left when the process ends."""
    pd.DataFrame({"x": range(60), "y": [0, 1] * 30}).to_csv(tmp_path / "t.csv", index=False)
    command = [sys.executable, "-m", "damier", "fit", str(tmp_path / "t.csv"), "-t", "y", "-o"]
    done = subprocess.run(
        [*command, str(tmp_path / "m.json")],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert "leaked" not in done.stderr
    assert "written to" in (done.stdout + done.stderr).splitlines()[-1]
