"""Reports on a numeric target: what they say is what the data say, on the page, in the terminal, in JSON."""

import html
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from typer.testing import CliRunner

from damier import DataGridRegressor, NaiveBayesRegressor, explore, rank_pairs
from damier.cli import app
from damier.criteria import part_costs
from damier.deploy import load, save
from damier.fit.number_evaluation import number_curves
from damier.fit.regression_grids import find_number_pairs, fit_number_pairs
from damier.intake import read_numbers, read_table
from damier.report import analyze_number, grid_lines, regressor_line, render_page, variables_table
from damier.report.axis import Axis
from damier.report.words import number
from damier.report.worth import number_at_top
from damier.search.run import Run


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


def target_price(counts):
    """Price of the intervals of the target: their number, and the order of the rows inside each."""
    return math.log(counts.sum()) + gammaln(counts.sum(axis=0) + 1.0).sum()


@pytest.mark.parametrize("seed", range(3))
def test_each_grid_of_a_pair_has_the_level_of_its_pair(seed):
    X, y = flats(300, seed)
    X["floor"] = np.random.default_rng(seed).integers(0, 9, 300)
    y = y * np.where((X["floor"] > 4) ^ (X["town"] == "west"), 3.0, 1.0)
    table, target = read_table(X), read_numbers(y)
    found = find_number_pairs(table, target, n_full=2, run=Run())
    assert fit_number_pairs(table, target, run=Run())["gain"][0] >= found.ranked["gain"][0] - 1e-9
    compared = 0
    for i, pair in enumerate(zip(found.ranked["first"], found.ranked["second"], strict=True)):
        partitions, cells, held = found.grids[pair]
        assert tuple(p.name for p in partitions) == pair
        parts = [p.apply(table[p.name]) for p in partitions]
        interval = np.searchsorted(held.bounds, y)
        counts = np.zeros((partitions[0].n_parts, partitions[1].n_parts, len(held.bounds) + 1), int)
        np.add.at(counts, (*parts, interval), 1)
        assert counts[tuple(cells.parts.T)].tolist() == cells.counts.tolist()
        assert counts.sum() == cells.counts.sum() == 300
        for k, (a, b) in enumerate(cells.parts.tolist()):
            inside = y[(parts[0] == a) & (parts[1] == b)]
            assert held.means[k] == pytest.approx(inside.mean())
            np.testing.assert_allclose(
                held.quantiles[k], np.quantile(inside, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
            )
        cost = target_price(cells.counts) + part_costs(cells.counts).sum()
        cost += sum(p.cost - target_price(p.counts) - part_costs(p.counts).sum() for p in partitions)
        null = sum(p.null_cost for p in partitions) - target_price(np.array([[300]]))
        level = max(1 - cost / null, found.ranked["first_level"][i], found.ranked["second_level"][i])
        assert found.ranked["level"][i] == pytest.approx(level, abs=1e-9)
        compared += 1 - cost / null == pytest.approx(level, abs=1e-9)
    assert compared >= 3


def test_pairs_are_those_of_rank_pairs(summary):
    X, y = flats()
    ranked = rank_pairs(X, y, backend="dict")
    held = summary["pairs"]
    assert held["done"] == len(held["grids"]) == 3
    for one in held["gaining"]:
        place = list(zip(ranked["first"], ranked["second"], strict=True)).index((one["first"], one["second"]))
        assert one["gain"] == pytest.approx(ranked["gain"][place])
    own = {v["name"]: v for v in summary["variables"]}
    for grid in held["grids"]:
        *inside, whole = grid["cells"]
        assert whole[:3] == [len(grid["first_parts"]), len(grid["second_parts"]), 400]
        assert whole[3] == pytest.approx(y.mean(), rel=1e-5)
        assert sum(cell[2] for cell in inside) == 3 * 400  # in cells, rows and columns
        if grid["first_parts"] == [part["label"] for part in own[grid["first"]]["table"]]:
            rows = [cell[2] for cell in inside if cell[1] == len(grid["second_parts"])]
            assert rows == [part["rows"] for part in own[grid["first"]]["table"]]
    page = html.unescape(render_page(summary))
    assert "Pairs: what two variables explain together" in page
    said = " ".join(map(str, grid_lines(summary)))
    assert ("strongest interaction" in said) == bool(held["gaining"])


def test_a_sample_is_named(monkeypatch):
    monkeypatch.setattr("damier.report.numbers.PAIRED_ROWS", 100)
    X, y = flats()
    found = analyze_number(read_table(X), read_numbers(y), regressor=False)
    assert found["pairs"]["rows"] == 100
    assert all(grid["cells"][-1][2] == 100 for grid in found["pairs"]["grids"])
    assert "measured on 100 of 400 rows" in render_page(found)


@pytest.mark.parametrize("least", [0.0, -3.0])
def test_curves_of_a_number_row_by_row(least):
    rng = np.random.default_rng(0)
    y = rng.exponential(2.0, 1000) + least
    predicted = (y + rng.normal(0, 1, 1000)).round(1)
    errors, plain = np.abs(predicted - y), np.abs(y - y.mean())
    curves = number_curves(y, predicted, errors, plain)
    distinct = predicted + 1e-9 * np.arange(1000)  # rows of one prediction in an order of their own
    for percent in (1, 10, 37, 100):
        taken = np.argsort(-distinct)[: 10 * percent]
        edge = predicted == predicted[taken[-1]]
        above = predicted > predicted[taken[-1]]
        total = y[above].sum() + (10 * percent - above.sum()) * y[edge].mean()
        assert curves["means"][percent - 1] == pytest.approx(total / (10 * percent))
        if least:
            assert curves["captured"] is None
        else:
            assert curves["captured"][percent] == pytest.approx(total / y.sum(), abs=1e-6)
            best = np.sort(y)[::-1][: 10 * percent].sum()
            assert curves["best"][percent] == pytest.approx(best / y.sum(), abs=1e-6)
    assert sum(one["rows"] * one["observed"] for one in curves["calibration"]) == pytest.approx(y.mean())
    assert sum(one["rows"] * one["predicted"] for one in curves["calibration"]) == pytest.approx(
        predicted.mean()
    )
    assert curves["errors"][25] == pytest.approx(np.median(errors))
    pairs = set(zip(predicted.tolist(), y.tolist(), strict=True))
    assert all(tuple(pair) in pairs for pair in curves["drawn"])


def test_quantiles_predicted_hold_the_rows_they_say(summary):
    for share, observed in summary["regressor"]["curves"]["below"]:
        assert observed == pytest.approx(share, abs=0.1)
    low, high = (summary["regressor"]["curves"]["below"][k][1] for k in (0, -1))
    assert high - low == pytest.approx(summary["regressor"]["coverage"], abs=0.02)


def test_the_top_in_numbers_and_money():
    curves = {"means": [10.0] * 100, "captured": [k / 100 for k in range(101)]}
    held = {"dataset": {"rows": 500}, "regressor": {"curves": curves}}
    assert number_at_top(held, 20, cost=2.0, benefit=3.0) == {
        "rows": 100.0,
        "mean": 10.0,
        "share": 0.2,
        "lift": 1.0,
        "money": 2800.0,
    }
    curves["captured"] = None
    assert number_at_top(held, 20)["share"] is None


def test_numbers_of_any_size_are_drawn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    for scale, add in [(1e149, 0.0), (1e-300, 0.0), (1.0, 1e15), (1e9, -5e9)]:
        found = analyze_number(read_table({"x": x, "z": x**2}), read_numbers(scale * x.round(2) + add))
        page = render_page(found)
        assert "nan" not in re.sub(r"<script.*", "", page, flags=re.S).lower()
        json.dumps(found, allow_nan=False)


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
    axis = Axis(low, high, least=low)
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
