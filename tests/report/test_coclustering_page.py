"""The page of a coclustering: whole, small, and safe whatever the names."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from damier import Coclustering
from damier.models.coclustering import CoclusterAxis, CoclusteringModel, Merges
from damier.report import coclustering as report
from damier.report import render_coclustering, summarize_coclustering
from damier.report.coclustering import block_words


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


def cells_of(data):
    """Blocks of the island, zeros filled in."""
    cells = [n for held in data["cells"] for n in ([held] if held > 0 else [0] * -held)]
    return np.reshape(cells, (len(data["rows"]["clusters"]), len(data["columns"]["clusters"])))


def test_the_page_holds_the_coclustering(model):
    summary = summarize_coclustering(model, "sales.csv")
    assert json.loads(json.dumps(summary, allow_nan=False))
    data = data_of(render_coclustering(summary))
    np.testing.assert_array_equal(cells_of(data), model.cells)
    assert len(data["merges"]) == model.n_row_clusters + model.n_column_clusters - 2
    assert data["information"][0] == 1.0
    typical = [name for _, _, values, _ in data["columns"]["clusters"] for name, _, _ in values]
    assert "(missing)" in typical


def test_names_from_the_data_cannot_break_out(model):
    page = render_coclustering(summarize_coclustering(model, "<i>file</i>"))
    assert "<script>alert" not in page
    assert "<b>who</b>" not in page
    assert "<i>file</i>" not in page
    assert page.count("<script") == 2
    assert page.count("</script") == 2


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
    assert "Blocks in words" not in page


def test_without_scripts_the_first_view_is_there(model, monkeypatch):
    monkeypatch.setattr(report, "FIRST_CLUSTERS", 5)
    page = render_coclustering(summarize_coclustering(model, "sales"))
    first = model.simplify(*next((r, c) for r, c in zip(*path_of(model), strict=True) if r + c <= 5))
    shape = " × ".join(map(str, first.cells.shape))
    assert f"{shape} clusters, {100 * first.information:.1f}% of the information kept" in page
    rows = re.findall(
        r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>.*?>([\d,]+)</td>.*?>([\d.,]+)</td>", page
    )
    assert len(rows) == first.cells.size
    observed = sorted(int(count.replace(",", "")) for _, _, _, count, _ in rows)
    assert observed == sorted(first.cells.ravel().tolist())
    for _, _, words, count, expected in rows:
        ratio = int(count.replace(",", "")) / float(expected.replace(",", ""))
        if ratio > 1.1:
            assert float(words.split()[0]) == pytest.approx(ratio, rel=0.02)
            assert words.endswith("times as many as expected")
    # every block that differs from independence is drawn once, and each cluster is listed
    shades = np.round(2 * np.log2((first.cells + 0.5) / (first.expected + 0.5)))
    matrix = page[page.index('<div id="blocks">') : page.index('<div class="scale">')]
    drawn = sum(d.count("M") for d in re.findall(r'<path class="[wc]" fill-opacity="\S+" d="(.*?)"', matrix))
    assert drawn == (shades != 0).sum()
    assert page.count("<li>") == sum(first.cells.shape)
    for cluster in range(first.n_row_clusters):
        most = first.rows.members(cluster)[0]
        assert html.escape(str(first.rows.value(most)), quote=False) in page.replace("&#34;", '"')


def path_of(model):
    path = model.hierarchy(backend="dict")
    return path["n_row_clusters"], path["n_column_clusters"]


def test_blocks_in_words():
    assert block_words(31, 10.0) == "3.1 times as many as expected"
    assert block_words(310, 10.0) == "31 times as many as expected"
    assert block_words(10, 31.0) == "3.1 times fewer than expected"
    assert block_words(100, 99.0) == "about as many as expected"
    assert block_words(0, 99.0) == "none at all"
    assert block_words(0, 0.01) == "none, as expected"


def test_all_values_are_found_while_they_fit(model, monkeypatch):
    def listed(side):
        data = data_of(render_coclustering(summary))[side]
        return sum(len(typical) + len(others) for _, _, typical, others in data["clusters"]), data["values"]

    summary = summarize_coclustering(model, "sales")
    assert listed("rows") == (18, 18)
    monkeypatch.setattr(report, "TYPICAL_VALUES", 2)
    monkeypatch.setattr(report, "VALUES_BUDGET", 0)
    summary = summarize_coclustering(model, "sales")
    assert listed("rows") == (6, 18)
    assert "Search knows the 6 most frequent and most typical of 18 values" in render_coclustering(summary)


def large(n_clusters, n_values, seed=0):
    """Make a coclustering of many clusters and values; its merges pair neighbours."""
    random = np.random.default_rng(seed)
    table = random.poisson(random.gamma(0.3, 30, (n_clusters, n_clusters))) + 1
    sides = []
    for along, name in ((1, "customer"), (0, "product")):
        held = table.sum(axis=along)
        labels = np.sort(random.integers(0, n_clusters, n_values))
        labels[:n_clusters] = np.arange(n_clusters)
        totals = np.ones(n_values, dtype=np.int64)
        members = np.bincount(labels, minlength=n_clusters)
        table_scale = int(np.ceil((members / held).max()))
        sides.append((name, labels, totals, members, held, table_scale))
    scale = max(side[-1] for side in sides)
    cells = table * scale
    axes = []
    for name, labels, totals, members, held, _ in sides:
        first = np.unique(labels, return_index=True)[1]
        totals[first] += held * scale - members
        values = tuple(f"{name} {v:07d}" for v in range(n_values))
        axes.append(
            CoclusterAxis(
                name=name, values=values, labels=labels, totals=totals, typicality=random.random(n_values)
            )
        )
    steps = [(axis, 0, k) for k in range(1, n_clusters) for axis in (0, 1)]
    columns = np.array(steps).T
    costs = np.linspace(1.0, 2.0, len(steps)) * 1e6
    merges = Merges(axes=columns[0], kept=columns[1], gone=columns[2], costs=costs)
    return CoclusteringModel(
        rows=axes[0], columns=axes[1], cells=cells, cost=1e6, null_cost=2e6, best_cost=1e6, merges=merges
    )


def test_hundreds_of_clusters_of_a_million_values_stay_small():
    model = large(400, 500_000)
    page = render_coclustering(summarize_coclustering(model, "large"))
    assert len(page.encode()) < 2_500_000
    assert re.search(
        r"Search knows the [\d,]+ most frequent and most typical of 500,000 values of customer", page
    )
    np.testing.assert_array_equal(cells_of(data_of(page)), model.cells)


def test_a_sparse_table_by_position_has_a_page():
    table = sp.csr_array(np.kron(np.eye(3, dtype=int), np.full((8, 6), 3)))
    data = data_of(render_coclustering(summarize_coclustering(Coclustering().fit(table).model_, "positions")))
    names = {value for cluster in data["columns"]["clusters"] for value, _, _ in cluster[2]}
    assert names == {str(v) for v in range(18)}
