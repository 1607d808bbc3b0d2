"""Reports on a numeric target: what they say is what the data say, on the page, in the terminal, in JSON."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from damier import DataGridRegressor, NaiveBayesRegressor, explore
from damier.cli import app
from damier.deploy import load, save
from damier.intake import read_numbers, read_table
from damier.report import analyze_number, grid_lines, regressor_line, render_page, variables_table
from damier.report.numbers import _Axis
from damier.report.words import number


def flats(n=400, seed=0):
    rng = np.random.default_rng(seed)
    area = rng.uniform(20, 200, n).round(1)
    town = rng.choice(["north", "south", "west"], n)
    price = np.round(np.exp(area / 60 + (town == "south") + rng.normal(0, 0.2, n)), 2)
    frame = pd.DataFrame({"area": area, "town": town, "noise": rng.normal(size=n).round(3)})
    frame.loc[::10, "area"] = np.nan
    return frame, price


@pytest.fixture(scope="module")
def summary():
    X, y = flats()
    return analyze_number(read_table(X), read_numbers(y), dataset="flats", target_name="price")


def test_parts_hold_the_distribution_of_the_target(summary):
    X, y = flats()
    area = summary["variables"][0]
    assert area["name"] == "area"
    assert area["missing"] == 40
    assert sum(part["rows"] for part in area["table"]) == 400
    towns = next(v for v in summary["variables"] if v["name"] == "town")
    for part in towns["table"]:
        held = y[X["town"].isin(part["values"])]
        assert part["rows"] == len(held)
        assert part["mean"] == pytest.approx(held.mean())
        np.testing.assert_allclose(
            part["quantiles"], np.quantile(held, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]), rtol=1e-12
        )
    assert summary["target"]["mean"] == pytest.approx(y.mean())
    assert summary["target"]["quantiles"][3] == pytest.approx(np.median(y))
    noise = next(v for v in summary["variables"] if v["name"] == "noise")
    assert (noise["parts"], noise["level"]) == (1, 0.0)
    json.dumps(summary, allow_nan=False)


def test_scores_are_those_of_rows_not_seen(summary):
    scores = summary["regressor"]
    X, y = flats()
    assert 0.6 < scores["r2"] < 1.0
    assert scores["mae"] < 0.6 * scores["plain_mae"]
    assert scores["plain_mae"] == pytest.approx(np.abs(y - y.mean()).mean(), rel=0.05)
    assert 0.85 < scores["coverage"] < 0.97
    assert scores["width"] < 0.7 * scores["plain_width"]
    weights = NaiveBayesRegressor().fit(X, y).weights_
    shown = {one["name"]: one["weight"] for one in scores["weights"]}
    assert shown["area"] == pytest.approx(weights[0], abs=0.05)
    assert "noise" not in shown


def test_the_page_shows_what_the_summary_holds(summary):
    page = html.unescape(render_page(summary))
    assert "What explains <em>price</em>" in page
    shown = sum(v["parts"] for v in summary["variables"] if v["parts"] > 1)
    shown += min(20, summary["grid"]["cells"])
    assert page.count("<svg class=strip>") == 1 + shown
    for part in summary["variables"][0]["table"]:
        assert f"median {number(part['quantiles'][3])}" in page
    assert f"{100 * summary['regressor']['coverage']:.1f}%" in page
    assert "logarithmic axis" in page
    outer = [float(w) for w in re.findall(r'class=outer x="([\d.]+)%"', page)]
    assert all(0 <= place <= 100 for place in outer)


def test_the_grid_has_rules(summary):
    _, y = flats()
    grid = summary["grid"]
    assert {v["name"] for v in grid["variables"]} == {"area", "town"}
    assert sum(rule["rows"] for rule in grid["rules"]) == 400
    means = [rule["rows"] * rule["mean"] for rule in grid["rules"]]
    assert sum(means) / 400 == pytest.approx(y.mean())
    page = html.unescape(render_page(summary))
    assert "The best grid found crosses" in page
    assert "best grid: " in str(grid_lines(summary)[0])
    assert "several variables" not in render_page({k: v for k, v in summary.items() if k != "grid"})


def test_hostile_names_are_escaped():
    X, y = flats(100)
    X = X.rename(columns={"town": "<script>alert(1)</script>"})
    page = render_page(
        analyze_number(read_table(X), read_numbers(y), target_name="<b>&", regressor=False, grid_seconds=0)
    )
    assert "<script>alert" not in page
    assert "<b>&" not in page


def test_the_terminal_says_it_in_a_line(summary):
    from rich.console import Console

    console = Console(width=200, record=True)
    console.print(variables_table(summary))
    console.print(regressor_line(summary))
    text = console.export_text()
    assert "price is a number (mean" in text
    assert "90% intervals cover" in text
    assert re.search(r"area +numeric +\d+ +0\.\d{4} \S+ +[\d.,]+ to [\d.,]+ +40", text)


def test_noise_predicts_nothing():
    rng = np.random.default_rng(0)
    found = analyze_number(read_table({"x": rng.normal(size=200)}), read_numbers(rng.normal(size=200)))
    assert found["regressor"]["informs"] is False
    assert "no better than the mean" in str(regressor_line(found))
    assert "no better than its mean" in render_page(found)


def test_a_column_in_the_order_of_the_target_is_named():
    X, y = flats(100)
    X["log"] = -np.log(y)
    found = analyze_number(
        read_table(X), read_numbers(y), target_name="price", regressor=False, grid_seconds=0
    )
    assert "log repeats price: it puts the rows in the same order" in found["remarks"]


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-5.0, 3.0), (1e-9, 2e-9), (-1e308, 1e308), (5, 500.0)]
)
def test_the_axis_holds_its_ticks(low, high):
    axis = _Axis(low, high, least=low)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(low <= tick <= high for tick in ticks)
    places = [axis.place(tick) for tick in (low, *ticks, high)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 100.0)


# ----- what a target is


def test_explore_decides_what_the_target_is():
    X, y = flats(150)
    found = explore(X, y, target_name="price", classifier=False, grid_seconds=0)
    assert found.to_dict()["target"]["type"] == "number"
    assert "2 of 3 variables inform price" in repr(found)
    assert "iframe" in found._repr_html_()
    whole = np.arange(150) % 5
    assert "classes" in explore(X, whole, classifier=False, grid_seconds=0).to_dict()["target"]
    as_number = explore(X, whole, classifier=False, grid_seconds=0, target="number").to_dict()["target"]
    assert as_number["distinct"] == 5
    many = explore(X, np.arange(150), classifier=False, grid_seconds=0).to_dict()["target"]
    assert many["type"] == "number"
    with pytest.raises(ValueError, match="constant: at least two different numbers"):
        explore(X, np.full(150, 0.5))


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_decides_and_says_so(tmp_path):
    X, y = flats()
    X.assign(price=np.round(1000 * y).astype(int)).to_csv(tmp_path / "flats.csv", index=False)
    page, numbers, model, parts = (tmp_path / name for name in ("p.html", "p.json", "m.json", "parts.csv"))
    arguments = ["report", tmp_path / "flats.csv", "-t", "price", "-o", page, "--no-progress"]
    done = run(*arguments, "--json", numbers, "--save-model", model, "--parts", parts)
    assert done.exit_code == 0, done.output
    assert "price is taken for a number: " in done.output
    assert "R2 0." in done.output
    assert json.loads(numbers.read_text())["target"]["type"] == "number"
    assert "What explains" in page.read_text()
    assert list(pd.read_csv(parts).columns[4:7]) == ["mean", "minimum", "5%"]

    scored = tmp_path / "scored.csv"
    done = run("predict", model, tmp_path / "flats.csv", "-o", scored, "--explain")
    assert done.exit_code == 0, done.output
    held = pd.read_csv(scored)
    loaded = load(model)
    np.testing.assert_allclose(held["predicted"], loaded.predict(X))
    np.testing.assert_allclose(held[["lower 90%", "upper 90%"]], loaded.predict_interval(X))
    np.testing.assert_allclose(held["median"], loaded.predict(X, method="median"))
    assert held["reason 1"].str.contains(r"area|town").all()
    save(DataGridRegressor(effort=1).fit(X, y), model)
    done = run("predict", model, tmp_path / "flats.csv", "-o", scored, "--explain")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(scored)["reason 1"].dropna().str.startswith("IF ").all()


def test_the_type_of_the_target_can_be_stated(tmp_path):
    X, y = flats(120)
    X.assign(score=np.arange(120) % 4).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["report", tmp_path / "t.csv", "-t", "score", "-o", tmp_path / "p.html", "--no-progress"]
    arguments += ["--no-classifier", "--grid", 0]
    assert "4 classes" in run(*arguments).output
    done = run(*arguments, "--target-type", "number")
    assert "score is a number (mean" in done.output
    X.assign(score=y).to_csv(tmp_path / "t.csv", index=False)
    done = run(*arguments, "--target-type", "classes")
    assert done.exit_code == 1
    assert "fractional numbers, not classes" in " ".join(done.output.split())
