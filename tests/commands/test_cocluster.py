"""The command ``damier cocluster``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from damier import Coclustering
from damier.cli import app
from damier.models.coclustering import CoclusteringModel

rng = np.random.default_rng(0)
TABLE = rng.poisson(np.kron([[4, 0.2, 1], [0.2, 3, 1]], np.ones((10, 8))))


@pytest.fixture
def file(tmp_path):
    i, j = np.nonzero(TABLE)
    path = tmp_path / "sales.csv"
    frame = pd.DataFrame({"customer": [f"c{v:02d}" for v in i], "product": j, "times": TABLE[i, j], "day": 1})
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(app, ["cocluster", *map(str, words)])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_page_labels_and_model(file, tmp_path, kind):
    page, labels, model = tmp_path / "page.html", tmp_path / f"labels.{kind}", tmp_path / "model.json"
    done = run(
        file,
        "-r",
        "customer",
        "-c",
        "product",
        "--counts",
        "times",
        "-o",
        page,
        "-l",
        labels,
        "--json",
        model,
    )
    assert done.exit_code == 0, done.output
    assert "2 clusters of customer" in done.output
    assert "Blocks of" in page.read_text("utf-8")
    told = pd.read_csv(labels) if kind == "csv" else pd.read_parquet(labels)
    expected = Coclustering(random_state=0).fit(TABLE)
    customers = told[told["axis"] == "customer"]
    np.testing.assert_array_equal(customers["cluster"], expected.row_labels_)
    assert customers["value"].iloc[0] == "c00"
    again = CoclusteringModel.from_dict(json.loads(model.read_text("utf-8")))
    assert again.cost == pytest.approx(expected.cost_)


def test_two_columns_need_no_names(file, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pd.read_csv(file)[["customer", "product"]].to_csv(pairs, index=False)
    done = run(pairs, "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "which columns?"),
        (("-r", "customr", "-c", "product"), "did you mean 'customer'"),
        (("-r", "customer", "-c", "customer"), "different columns"),
        (("-r", "customer", "-c", "product", "-j", "0"), "no number of threads"),
        (("-r", "customer", "-c", "product", "-l", "labels.xlsx"), ".csv or .parquet"),
        (("-r", "customer", "-c", "product", "--time-limit", "-1"), "must not be negative"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(file, tmp_path, words, told):
    done = run(file, *words, "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert told in done.output
    assert "Traceback" not in done.output


def test_counts_that_are_no_counts(file, tmp_path):
    done = run(file, "-r", "product", "-c", "day", "--counts", "customer", "-o", tmp_path / "page.html")
    assert done.exit_code == 1
    assert "customer" in done.output
