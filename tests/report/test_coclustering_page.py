"""The page of a coclustering: whole, small, and safe whatever the names."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from damier import Coclustering
from damier.report import coclustering as report
from damier.report import render_coclustering, summarize_coclustering


@pytest.fixture(scope="module")
def model():
    block = np.array([[5, 0, 1], [0, 4, 1], [2, 2, 6]])
    i, j = np.nonzero(np.kron(block, np.ones((6, 5), dtype=int)))
    times = np.kron(block, np.ones((6, 5), dtype=int))[i, j]
    names = pd.DataFrame(
        {
            "<b>who</b>": [f"</script><script>alert({v})</script>" for v in i],
            "what & why": [None if v == 0 else f"it's “{v}”" for v in j],
            "times": times,
        }
    )
    return Coclustering(counts="times").fit(names).coclustering_


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_the_page_holds_the_coclustering(model):
    summary = summarize_coclustering(model, "sales.csv")
    assert json.loads(json.dumps(summary, allow_nan=False))
    data = data_of(render_coclustering(summary))
    assert np.sum(data["cells"]) == model.n_instances
    assert len(data["rows"]["clusters"]) == model.n_row_clusters
    assert len(data["merges"]) == model.n_row_clusters + model.n_column_clusters - 2
    assert data["information"][0] == 1.0
    typical = [name for _, _, values in data["columns"]["clusters"] for name, _, _ in values]
    assert "(missing)" in typical


def test_names_from_the_data_cannot_break_out(model):
    page = render_coclustering(summarize_coclustering(model, "<i>file</i>"))
    assert "<script>alert" not in page
    assert "<b>who</b>" not in page
    assert "<i>file</i>" not in page
    assert page.count("<script") == 2


def test_a_large_coclustering_is_cut_along_its_hierarchy(model, monkeypatch):
    monkeypatch.setattr(report, "MOST_BLOCKS", 4)
    summary = summarize_coclustering(model, "sales")
    assert len(summary["rows"]["clusters"]) * len(summary["columns"]["clusters"]) <= 4
    assert summary["found"] == (3, 3)
    assert "The page shows at most" in render_coclustering(summary)


def test_one_block_is_said():
    noise = np.random.default_rng(0).poisson(0.5, (30, 30))
    page = render_coclustering(summarize_coclustering(Coclustering().fit(noise).coclustering_, "noise"))
    assert "do not inform about each other" in page
