"""A row tried in a real browser has the probabilities of the library."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

from damier import NaiveBayesClassifier, NaiveBayesRegressor
from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.intake import read_numbers, read_table, read_target
from damier.report import analyze, analyze_number, render_page


def chance(p):
    """Write a probability as the page does."""
    return "<0.1%" if p < 0.0005 else ">99.9%" if p > 0.9995 else f"{100 * p:.1f}%"


def near(text, p):
    """Whether a probability is that of the library, to the digits shown."""
    return text == chance(p) or text in (chance(p - 2e-6), chance(p + 2e-6))


def written(values, by=","):
    line = io.StringIO()
    csv.writer(line, delimiter=by, lineterminator="").writerow(
        ["" if pd.isna(value) else value for value in values]
    )
    return line.getvalue()


def chances(page):
    return dict(
        zip(
            page.locator("#row-chances th").all_text_contents(),
            page.locator("#row-chances td.n").all_text_contents(),
            strict=True,
        )
    )


def paste(page, text):
    page.locator("#row-line").fill(text)
    said = page.locator("#row-said")
    return said.text_content() if said.is_visible() else ""


@pytest.fixture(scope="module")
def customers():
    columns = sample_columns(1500)
    y = columns.pop(SAMPLE_TARGET)
    X = pd.DataFrame(columns)
    return X, y, NaiveBayesClassifier().fit(X, y).predict_proba(X)


def test_a_pasted_line_has_the_probability_of_predict_proba(open_page, sample_page, customers):
    X, _y, proba = customers
    page = open_page(sample_page)
    for row in (0, 1, 5, 17, 333, 1499):
        for by in (",", "\t", ";"):
            assert paste(page, written(X.iloc[row], by)) == ""
            shown = chances(page)
            assert near(shown["no"], proba[row, 0])
            assert near(shown["yes"], proba[row, 1])
    said = page.locator("#row-words").text_content()
    assert said.startswith(f"yes: {shown['yes']} (")
    page.locator("#row").get_by_label("Look at").select_option("no")
    assert page.locator("#row-words").text_content().startswith(f"no: {shown['no']} (")


def test_a_line_with_its_header_or_with_the_target(open_page, sample_page, customers):
    X, y, proba = customers
    page = open_page(sample_page)
    for row in (2, 40, 800):
        order = np.random.default_rng(row).permutation(X.columns).tolist()
        assert paste(page, f"{written(order)}\n{written(X[order].iloc[row])}\n") == ""
        assert near(chances(page)["yes"], proba[row, 1])
        values = X.iloc[row].tolist()
        for at in (0, 4, len(values)):
            assert paste(page, written([*values[:at], y[row], *values[at:]])) == ""
            assert near(chances(page)["yes"], proba[row, 1]), at
    some = order[:5]
    assert paste(page, f"{written(some)}\n{written(X[some].iloc[0])}") == ""


def test_what_is_not_understood_is_said(open_page, sample_page, customers):
    X, _, _ = customers
    page = open_page(sample_page)
    values = dict(X.iloc[0])
    prior = chances(page)
    assert paste(page, "1,2,3").startswith("The line has 3 values, the table 12 columns without the target")
    assert chances(page) == prior
    said = paste(page, written({**values, "tenure (months)": "long", "contract": "weekly"}.values()))
    assert "tenure (months): “long” is not a number" in said
    assert "contract: “weekly” was never seen" in said
    line = written(values.values())
    assert paste(page, f"{line}\n{line}") == "Only the first line was taken"
    assert paste(page, "") == ""
    assert chances(page) == prior
    paste(page, line)
    page.get_by_role("button", name="Clear").click()
    assert chances(page) == prior
    assert page.locator("#row-line").input_value() == ""


def test_parts_by_keyboard_and_evidence_that_adds_up(open_page, sample_page, sample_summary):
    held = sample_summary["scorer"]
    page = open_page(sample_page)
    total = held["log_prior"][1] - held["log_prior"][0]
    for k, variable in enumerate(held["variables"][:3]):
        if len(variable["parts"]) < 2:
            continue
        page.locator("#row-table select").nth(k).focus()
        page.keyboard.press("ArrowDown")
        scores = variable.get("part_scores", variable["scores"])
        total += scores[0][0]
        row = page.locator("#row-table tbody tr").nth(k)
        assert float(row.locator("td.n").text_content()[2:]) == pytest.approx(np.exp(scores[0][0]), rel=5e-3)
        assert ("up" in row.locator("td.n").get_attribute("class")) == (scores[0][0] > 0)
        assert near(chances(page)["yes"], 1 / (1 + np.exp(-total)))
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert chances(again) == chances(page)
    names = [v["name"] for v in held["variables"]] + [" × ".join(pair["names"]) for pair in held["pairs"]]
    assert page.locator("#row-table th[scope=row]").all_text_contents() == names
    with page.expect_download() as found:
        page.locator("#try").get_by_role("button", name="CSV").click()
    lines = list(csv.reader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert lines[0] == ["variable", "part or value", "odds"]
    assert lines[1][:2] == [names[0], held["variables"][0]["parts"][0]]
    page.locator("#row-table select").first.select_option("")
    assert page.locator("#row-table tbody tr").first.locator("svg").count() == 0


@pytest.mark.parametrize("n_classes", [3, 10, 26])
def test_of_several_classes(open_page, n_classes):
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, 1500)
    X = pd.DataFrame(
        {
            "a": (y + rng.normal(0, 1, 1500)).round(3),
            "when": pd.Timestamp("2024-02-27 22:30:00.123456")
            + pd.to_timedelta(y * 7 + rng.integers(0, 9, 1500), unit="h"),
            "flag": (y % 2 == 0) ^ (rng.random(1500) < 0.1),
            "c": np.array(list("xyzw"))[(y + (rng.random(1500) < 0.2)) % 4],
        }
    )
    X.loc[::9, "a"] = np.nan
    names = np.array([f"kind {chr(97 + j)}" for j in range(n_classes)])
    classifier = NaiveBayesClassifier().fit(X, names[y])
    proba = classifier.predict_proba(X)
    page = open_page(render_page(analyze(read_table(X), read_target(names[y]), grid_seconds=0)))
    for row in (0, 9, 700, 1499):
        assert paste(page, written(X.iloc[row])) == ""
        order = np.argsort(-proba[row], kind="stable")
        shown = chances(page)
        assert len(shown) == min(n_classes, 10)
        for j in order[: min(n_classes, 10)]:
            if names[j] in shown:
                assert near(shown[names[j]], proba[row, j])
        words = page.locator("#row-words").text_content()
        assert words.startswith(f"{names[order[0]]}: ")
        assert f"against {names[order[1]]}" in words
        # Evidence and prior of the two add up to the log of their odds.
        odds = [float(text[2:]) for text in page.locator("#row-table td.n").all_text_contents() if text]
        prior = np.log(np.mean(y == order[0]) / np.mean(y == order[1]))
        told = np.log(proba[row, order[0]] / proba[row, order[1]])
        assert np.log(odds).sum() + prior == pytest.approx(told, abs=0.03)
    last = names[-1]
    page.locator("#row").get_by_label("Look at").select_option(last)
    assert page.locator("#row-words").text_content().startswith(f"{last}: ")


def test_of_very_many_classes_those_shown_and_the_others(open_page, monkeypatch):
    monkeypatch.setattr("damier.report.scorer._MOST_NUMBERS", 600)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 100, 4000)
    X = {"a": y + rng.normal(0, 1, 4000), "b": np.array(list("xyzw"))[y % 4]}
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    page = open_page(render_page(summary))
    held = summary["scorer"]
    assert held["merged"]
    variable = held["variables"][0]
    paste(page, f"a,b\n{X['a'][0]},zzz")
    assert "b: “zzz” was never seen" in page.locator("#row-said").text_content()
    (a,) = (v for v in held["variables"] if v["name"] == "a")
    place = int(np.searchsorted(a["bounds"], X["a"][0])) + a["first"]
    scores = np.array(held["log_prior"]) + np.array([0.0, *a["scores"][place]])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    shown = chances(page)
    assert list(shown) == held["classes"]
    for name, share in zip(held["classes"], shares, strict=True):
        assert near(shown[name], share)
    assert variable["name"] in ("a", "b")
    page.locator("#row").get_by_label("Look at").select_option("o")
    assert page.locator("#row-words").text_content().startswith("91 other classes: ")


def test_a_pair_that_acts_together(open_page):
    rng = np.random.default_rng(0)
    names = ["<b>a</b>", "b"]
    X = pd.DataFrame(rng.random((900, 2)).round(4), columns=names)
    X["c"] = rng.choice(list("xyz"), 900)
    y = (X[names[0]] > 0.5) ^ (X["b"] > 0.3) ^ (rng.random(900) < 0.1)
    proba = NaiveBayesClassifier().fit(X, y).predict_proba(X)
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    (pair,) = summary["scorer"]["pairs"]
    page = open_page(render_page(summary))
    last = page.locator("#row-table tbody tr").last
    assert last.locator("th").text_content() == " × ".join(pair["names"])
    for row in (0, 7, 450, 899):
        assert paste(page, written(X.iloc[row])) == ""
        assert near(chances(page)["True"], proba[row, 1])
        assert last.locator("td.n").text_content().startswith("× ")
    # One is not given: the pair says nothing.
    paste(page, f"b\n{X['b'][0]}")
    assert last.locator("td.n").text_content() == ""
    # A part chosen beside a value of a line, then two parts.
    places = [v["name"] for v in summary["scorer"]["variables"]]
    first, second = (page.locator("#row-table select").nth(places.index(name)) for name in pair["names"])
    paste(page, "")
    first.select_option("0")
    second.select_option("1")
    n, m = (side["n_parts"] for side in pair["sides"])
    shown = float(last.locator("td.n").text_content()[2:])
    odds = np.exp(pair["scores"][n][m + 1][0])
    assert shown == pytest.approx(odds, rel=6e-3) or shown == pytest.approx(1 / odds, rel=6e-3)
    with page.expect_download() as found:
        page.locator("#try").get_by_role("button", name="CSV").click()
    lines = list(csv.reader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert lines[-1] == [" × ".join(pair["names"]), "both together", last.locator("td.n").text_content()]


def test_without_scripts_the_factors_read(open_page, sample_page):
    page = open_page(sample_page, java_script_enabled=False)
    assert not page.locator("#try").is_visible()
    assert page.locator("#row .evidence:visible tbody tr").count() > 5


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.random(900).round(3),
            "kind": np.array(["a", "b", "c"], object)[rng.integers(0, 3, 900)],
            "noise": rng.random(900),
        }
    )
    X.loc[::11, "size"] = np.nan
    y = 20 * X["size"].fillna(0.1) + 10 * (X["kind"] == "b") + rng.normal(0, 1, 900)
    y[::3] += 7 * (X["kind"] == "c")[::3]
    return X, y.to_numpy(), analyze_number(read_table(X), read_numbers(y.to_numpy()), grid_seconds=600)


def test_of_a_number_the_mean_is_that_of_predict(open_page, numbers):
    X, y, summary = numbers
    predicted = NaiveBayesRegressor().fit(X, y).predict(X)
    page = open_page(render_page(summary))
    for row in (0, 5, 11, 899):
        assert paste(page, written(X.iloc[row])) == ""
        words = page.locator("#row-words").text_content()
        shown = float(words.split(": ")[1].split()[0].replace("−", "-").replace(",", ""))
        assert shown == pytest.approx(predicted[row], rel=6e-4)
    moved = page.locator("#row-table td.n").all_text_contents()
    assert any(text.startswith(("+", "−")) for text in moved)
    assert 1 < page.locator("#row-chances tr").count() <= 10
    page.locator("#row-table select").first.select_option("0")
    page.get_by_role("button", name="Clear").click()
    mean = float(page.locator("#row-words").text_content().split(": ")[1].split()[0])
    assert mean == pytest.approx(y.mean(), rel=6e-4)
    off = open_page(render_page(summary), java_script_enabled=False)
    assert off.locator("#row .evidence:visible tbody tr").count() > 2


def test_of_a_number_rules_sort_and_are_copied(open_page, numbers):
    X, _, summary = numbers
    rules = summary["grid"]["rules"]
    assert len(rules) > 3
    page = open_page(render_page(summary))
    page.locator("#rules").get_by_role("button", name="median").click()
    order = sorted(range(len(rules)), key=lambda i: -rules[i]["quantiles"][3])
    shown = page.locator("#rules-table tbody tr:not([hidden]) td:nth-child(2)").all_text_contents()
    assert shown == [f"{rules[i]['rows']:,}" for i in order[:20]]
    page.locator("#rules-table .copy", has_text="Python").first.click()
    text = page.get_by_label("Copied text").input_value()
    assert len(eval(text, {"df": X})) == rules[order[0]]["rows"]
