"""One page, one truth: levels, bounds, limits and odd columns, and the words they are shown in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from damier import DataGridClassifier, MODLEncoder, rank_pairs
from damier.intake import read_table, read_target
from damier.models import IntervalPartition
from damier.report import (
    analysis,
    analyze,
    classifier_line,
    grid_lines,
    remark_lines,
    render_page,
    summarize_grid,
)
from damier.report.words import part_labels


def table(n_rows=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = {
        "flag": rng.integers(2, size=n_rows),
        "count": rng.poisson(4, n_rows),
        "size": rng.normal(100, 30, n_rows),
        "kind": rng.choice(["a", "b", "c", "d"], n_rows),
        "noise": rng.random(n_rows),
    }
    score = (X["flag"] ^ (X["size"] > 110)) + 0.4 * (X["count"] > 5) + 0.3 * (X["kind"] == "a")
    y = score + 0.3 * rng.normal(size=n_rows) > 0.6
    return X, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def summary():
    X, y = table()
    return analyze(read_table(X), read_target(y), grid_seconds=600, classifier=False)


def test_every_level_and_bound_that_appears_twice_is_equal(summary):
    X, _ = table()
    alone = {v["name"]: v for v in summary["variables"]}
    assert len(summary["grid"]["variables"]) > 1
    n_bounds = 0
    for variable in summary["grid"]["variables"]:
        values = X[variable["name"]]
        for ours in variable.get("bounds", ()):
            for theirs in alone[variable["name"]]["bounds"]:
                low, high = sorted((ours, theirs))
                if not ((values > low) & (values <= high)).any():  # the same cut
                    assert ours == theirs
                    n_bounds += 1
    assert n_bounds > 0
    assert summary["pairs"]["gaining"]
    for pair in summary["pairs"]["gaining"]:
        assert pair["first_level"] == alone[pair["first"]]["level"]
        assert pair["second_level"] == alone[pair["second"]]["level"]
        total = pair["first_level"] + pair["second_level"] + pair["gain"]
        assert pair["level"] == pytest.approx(total, abs=1e-12)


def test_figures_of_a_pair_add_up_as_they_are_shown(summary):
    shown = re.findall(
        r"level (0.\d{4}): (0.\d{4}) and (0.\d{4}) alone, (0.\d{4}) more", render_page(summary)
    )
    assert len(shown) == min(8, len(summary["pairs"]["gaining"]))
    for level, first, second, gain in np.array(shown, dtype=float):
        assert level == pytest.approx(first + second + gain, abs=1e-9)


def test_a_grid_over_one_variable_is_its_line_in_the_table():
    rng = np.random.default_rng(1)
    X = {"size": rng.integers(0, 60, 900), "noise": rng.random(900)}
    y = rng.random(900) < np.where(X["size"] > 37, 0.9, np.where(X["size"] > 11, 0.5, 0.1))
    found = analyze(read_table(X), read_target(y), grid_seconds=600, classifier=False)
    size = found["variables"][0]
    (variable,) = found["grid"]["variables"]
    assert variable.pop("conditions")[0]["words"] == f"size ≤ {size['bounds'][0]:g}"
    assert variable == {"name": "size", "parts": size["parts"], "bounds": size["bounds"]}
    assert found["grid"]["level"] == pytest.approx(size["level"], abs=1e-12)
    rules = {rule["parts"][0]: rule["counts"] for rule in found["grid"]["rules"]}
    assert rules == {part["label"]: part["counts"] for part in size["table"]}


def test_a_pair_has_the_level_of_its_grid():
    X, y = table()
    X = {name: X[name] for name in ("flag", "size")}
    pair = rank_pairs(X, y, backend="dict")
    grid = DataGridClassifier(random_state=0).fit(X, y).grid_
    assert len(grid.variables) == 2
    told = summarize_grid(grid)
    assert pair["level"][0] == pytest.approx(told["level"], abs=0.005)
    assert told["level"] > grid.level  # which has paid for choosing
    levels = MODLEncoder().fit(X, y).levels_
    assert (pair["first_level"][0], pair["second_level"][0]) == (levels["flag"], levels["size"])


def test_pairs_of_a_sample_keep_the_levels_of_all_rows(monkeypatch):
    monkeypatch.setattr(analysis, "PAIRED_ROWS", 700)
    X, y = table()
    found = analyze(read_table(X), read_target(y), grid_seconds=600, classifier=False)
    alone = {v["name"]: v["level"] for v in found["variables"]}
    best = found["pairs"]["gaining"][0]
    assert (best["first_level"], best["second_level"]) == (alone[best["first"]], alone[best["second"]])
    assert best["level"] == pytest.approx(best["first_level"] + best["second_level"] + best["gain"])
    for shown in (render_page(found), "\n".join(map(str, grid_lines(found)))):
        assert "(measured on 700 of 1,200 rows)" in shown


def test_a_search_that_time_ended_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.random((5000, 12)), rng.integers(3, size=5000)
    found = analyze(read_table(X), read_target(y), grid_seconds=0.02, classifier=False)
    assert found["ended"]["pairs"] == "time limit"
    assert found["pairs"]["done"] + len(found["pairs"]["not_done"]) == found["pairs"]["pairs"] == 66
    assert json.dumps(found, allow_nan=False)
    page = render_page(found)
    for shown in (page, str(grid_lines(found)[-1])):
        assert f"pairs ({found['pairs']['done']} of 66 done): --grid 20 (grid_seconds=20 in Python)" in shown
    assert f"{len(found['pairs']['not_done'])} pairs not searched" in page
    if not found["pairs"]["done"]:
        assert "explains more together than apart" not in page


def test_copies_identifiers_text_and_constants_are_pointed_out():
    rng = np.random.default_rng(0)
    y = rng.choice(["left", "stayed", "unknown"], 3000)
    X = {
        "colour": np.array(["red", "blue", "green"])[np.unique(y, return_inverse=True)[1]],
        "code": np.where(y == "left", 10, np.where(y == "stayed", 20, 30)),
        "nearly": np.where(np.arange(3000) == np.argmax(y != "left"), "left", y),
        "customer": [f"C{i:04}" for i in range(3000)],
        "row": np.arange(3000),
        "comment": [f"this is what customer {i} wrote to us" for i in range(3000)],
        "empty": ["same"] * 3000,
        "noise": rng.random(3000),
    }
    found = analyze(read_table(X), read_target(y), target_name="churn", grid_seconds=0, classifier=False)
    odd = {v["name"]: v["odd"] for v in found["variables"]}
    assert odd == {
        "colour": "copy",
        "code": "copy",
        "nearly": "near copy",
        "customer": "identifier",
        "row": "identifier",
        "comment": "free text",
        "empty": "constant",
        "noise": None,
    }
    assert "colour repeats churn: every value of it has one class" in found["remarks"]
    assert "code repeats churn: every value of it has one class" in found["remarks"]
    assert "comment: free text, 3,000 values in 3,000 rows, not used" in found["remarks"]
    assert "customer, row: every value is distinct, as in an identifier" in found["remarks"]
    assert "empty: one value only" in found["remarks"]
    page = render_page(found)
    assert all(remark in page for remark in found["remarks"])
    assert len(remark_lines(found)) == len(found["remarks"])


def test_a_model_that_knows_nothing_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 3)), rng.integers(2, size=400)
    found = analyze(read_table(X), read_target(y), grid_seconds=0)
    assert not found["classifier"]["informs"]
    for shown in (str(classifier_line(found)), re.sub("<.*?>", "", render_page(found))):
        assert "no better than the class frequencies" in shown
        assert "AUC" not in shown


def test_sampled_scores_are_named(monkeypatch):
    monkeypatch.setattr("damier.fit.evaluation._MOST_VALUES", 0)
    monkeypatch.setattr("damier.fit.evaluation._LEAST_ROWS", 1000)
    X, y = table()
    found = analyze(read_table(X), read_target(y), grid_seconds=0)
    assert "5-fold on 1,000 of 1,200 rows" in str(classifier_line(found))
    assert "on 1,000 of 1,200 rows" in render_page(found)


def test_intervals_in_plain_words_or_brackets():
    fields = {"name": "x", "classes": (0, 1), "cost": 1.0, "null_cost": 2.0, "optimal": True}
    three = IntervalPartition(counts=np.ones((3, 2), int), bounds=(12.0, 26.5), has_missing=True, **fields)
    assert part_labels(three) == ["missing or x ≤ 12", "12 < x ≤ 26.5", "x > 26.5"]
    assert part_labels(three, style="brackets") == list(three.labels)
    two = IntervalPartition(counts=np.ones((2, 2), int), bounds=(0.0,), **fields)
    assert part_labels(two) == ["x ≤ 0", "x > 0"]
    assert part_labels(two, {"distinct": 2, "minimum": 0, "maximum": 1}) == ["0", "1"]
    known = IntervalPartition(counts=np.ones((2, 2), int), bounds=(), missing_alone=True, **fields)
    assert part_labels(known) == ["missing", "not missing"]


def test_two_values_numbers_as_classes_and_statistics_on_the_page():
    X, _ = table()
    y = np.where((X["flag"] == 1) ^ (X["noise"] < 0.1), 1, -1)
    read = replace(read_table(X), notes=("size: 1,190 of 1,200 cells are numbers <b>",))
    found = analyze(read, read_target(y), grid_seconds=0, classifier=False)
    flag = found["variables"][0]
    assert flag["name"] == "flag"
    assert [part["label"] for part in flag["table"]] == ["0", "1"]
    page = render_page(found)
    assert re.search(r"class -1: \d+%, class 1: \d+%", page)
    assert re.search(r"2 distinct values; minimum 0, median [01], maximum 1\.", page)
    assert re.search(r"4 distinct values; most frequent: [abcd] \(\d+ rows\)", page)
    assert "1,200 distinct values; minimum " in page  # of noise, which does not inform
    assert "size: 1,190 of 1,200 cells are numbers &lt;b&gt;" in page
    assert found["notes"] == list(read.notes)


def test_only_the_script_as_written_may_run(summary):
    page = render_page(summary)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "script-src 'unsafe-inline'" not in page
