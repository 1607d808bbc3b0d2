import json
import math

import numpy as np
import pytest

from damier import DataGridClassifier, MODLEncoder, rank_pairs
from damier.report import grid_lines, render_page, summarize, summarize_grid, summarize_pairs

HOSTILE = "<script>alert('x')</script>"


def fitted(n_rows=300, informative=True):
    rng = np.random.default_rng(0)
    X = {
        HOSTILE: rng.random(n_rows),
        "b": rng.choice(["<b>", "&amp;", "c"], n_rows),
        "noise": rng.random(n_rows),
    }
    y = (X[HOSTILE] > 0.4) ^ (X["b"] == "c")
    if not informative:
        y = rng.integers(2, size=n_rows) == 1
    labels = np.where(y, "</td>yes", "no")
    encoder = MODLEncoder().fit(X, labels)
    grid = DataGridClassifier().fit(X, labels).grid_
    pairs = summarize_pairs(rank_pairs(X, labels, backend="dict"), list(X))
    return summarize(encoder.partitions_, target="what", grid=summarize_grid(grid), pairs=pairs), grid


def test_grid_and_pairs_in_the_summary():
    summary, grid = fitted()
    json.dumps(summary, allow_nan=False)
    told = summary["grid"]
    assert [v["name"] for v in told["variables"]] == list(grid.variables)
    assert sum(rule["rows"] for rule in told["rules"]) == 300
    assert [rule["rows"] for rule in told["rules"]] == sorted(grid.cells.sizes.tolist(), reverse=True)
    # The criterion of the grid is that of its variables, and the price of choosing them.
    offered = math.log(grid.n_variables + 1)
    assert told["cost"] + told["choice_cost"] + offered == pytest.approx(grid.cost)
    assert told["level"] == pytest.approx(1 - told["cost"] / told["null_cost"])
    assert 0 < told["level"] - told["choice_level"] < 1
    assert {summary["pairs"]["gaining"][0][k] for k in ("first", "second")} == {HOSTILE, "b"}
    lines = [str(line) for line in grid_lines(summary)]
    assert lines[0].startswith("best grid: ")
    assert lines[1].startswith("strongest interaction: ")


def test_names_from_data_are_escaped():
    page = render_page(fitted()[0])
    assert "what several variables explain of what together" in page
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "</td>yes" not in page.split("<script type")[0]


def test_nothing_found_is_said():
    summary, grid = fitted(informative=False)
    assert grid.variables == ()
    page = render_page(summary)
    assert "No grid over the variables was found" in page
    assert "None of 3 pairs of 3 variables explains more together than apart." in page
    assert str(grid_lines(summary)[0]) == "no grid over several variables informs more than none"


def test_a_report_without_a_grid_stays_as_it_was():
    summary, _ = fitted()
    del summary["grid"], summary["pairs"]
    assert "several variables" not in render_page(summary)
    assert grid_lines(summary) == []
