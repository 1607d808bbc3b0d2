"""The command ``damier cocluster``."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from damier import Coclustering
from damier.cli import app
from damier.commands.cocluster import _with_names
from damier.deploy.json import dumps, loads

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
    again = loads(model.read_text("utf-8"))
    assert again.cost == pytest.approx(expected.cost_)
    assert model.read_text("utf-8") == dumps(again)
    pairs = pd.read_csv(file)
    customers = pairs["customer"].str[1:].astype(int)
    np.testing.assert_array_equal(again.predict(pairs), expected.row_labels_[customers])


def test_two_columns_need_no_names(file, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pd.read_csv(file)[["customer", "product"]].to_csv(pairs, index=False)
    done = run(pairs, "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--rows and --columns, from"),
        (("-r", "customr", "-c", "product"), "did you mean 'customer'"),
        (("-r", "customer", "-c", "customer"), "different columns"),
        (("-r", "customer", "-c", "product", "-j", "0"), "at least 1, or -1 for all cores"),
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


@pytest.mark.parametrize(("column", "values"), [("stars", "{}.5"), ("day", "2024-01-1{}")])
def test_numbers_and_dates_are_sent_elsewhere(tmp_path, column, values):
    path = tmp_path / "k.csv"
    lines = [f"u{i % 9}," + values.format(i % 5) for i in range(60)]
    path.write_text("\n".join([f"user,{column}", *lines]))
    done = run(path, "-o", tmp_path / "page.html")
    assert done.exit_code == 1
    assert "DataGridClustering" in " ".join(done.output.split())
    assert f"'{column}'" in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["[/x]", "[bold]who", "[link=http://x]"])
def test_names_from_the_data_are_not_markup(tmp_path, name):
    path = tmp_path / "pairs.csv"
    i, j = np.nonzero(TABLE)
    pd.DataFrame({name: [f"[/red]{v}" for v in i], "what": [f"w{v}" for v in j]}).to_csv(path, index=False)
    done = run(path, "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert f"clusters of {name}" in done.output
    assert "[/red]" in done.output


def test_fewer_clusters_and_names(file, tmp_path):
    names, labels, model = tmp_path / "names.csv", tmp_path / "labels.csv", tmp_path / "model.json"
    page = tmp_path / "page.html"
    rows = [(f"c{v:02d}", "Ann & Co" if v < 2 else f"<b>Customer {v}") for v in range(19)]
    pd.DataFrame(rows, columns=["id", "name"]).to_csv(names, index=False)
    words = (file, "-r", "customer", "-c", "product", "--counts", "times", "-o", page, "-l", labels)
    done = run(*words, "--clusters", "1x2", "--row-names", names, "--json", model)
    assert done.exit_code == 0, done.output
    assert "clusters merged to 1 x 2" in done.output
    assert loads(model.read_text("utf-8")).cells.shape == (1, 2)
    told = pd.read_csv(labels)
    customers = told[told["axis"] == "customer"].set_index("value")
    assert customers["cluster"].tolist() == [0] * 20
    assert told.loc[told["axis"] == "product", "cluster"].max() == 1
    assert customers.loc["c05", "name"] == "<b>Customer 5"
    assert pd.isna(customers.loc["c19", "name"])
    html = page.read_text("utf-8")
    assert len(set(re.findall(r"Customer \d+", html))) >= 3
    assert "<b>Customer" not in html
    shown = _with_names(loads(model.read_text("utf-8")), [dict(rows), None])
    assert shown.rows.values[:3] == ("Ann & Co (c00)", "Ann & Co (c01)", "<b>Customer 2")
    assert shown.rows.values[19] == "c19"
    plain = run(*words)
    assert plain.exit_code == 0
    assert "merged" not in plain.output
    assert list(pd.read_csv(labels)) == ["axis", "value", "cluster", "count", "typicality"]


@pytest.mark.parametrize("clusters", ["10", "0x3", "axb", "3x", "2x3x4"])
def test_a_number_of_clusters_that_cannot_be(file, clusters):
    done = run(file, "-r", "customer", "-c", "product", "--clusters", clusters)
    assert done.exit_code == 2
    assert "two whole numbers with an x between" in done.output.replace("\n", " ")
