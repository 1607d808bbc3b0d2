"""The dict is JSON, the page is well formed and safe, the numbers in them are those of the partitions."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from damier.report import page, render_page, summarize, variables_table

HOSTILE = 'a"b<script>alert(1)</script>{{ 7*7 }}[bold]'


@dataclass(frozen=True)
class FakePartition:
    counts: np.ndarray
    classes: np.ndarray
    labels: list[str]
    level: float
    cost: float = 75.0
    null_cost: float = 100.0
    optimal: bool = True

    @property
    def n_parts(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class FakeIntervals(FakePartition):
    bounds: np.ndarray = field(default_factory=lambda: np.zeros(0))


def partitions(n_variables=3, n_classes=2, n_parts=3, seed=0):
    random = np.random.default_rng(seed)
    classes = np.array([f"class {j}" for j in range(n_classes)])
    made = {}
    for k in range(n_variables):
        counts = random.integers(0, 50, (n_parts, n_classes))
        labels = [f"]{i}; {i + 1}]" for i in range(n_parts)]
        made[f"x{k}"] = FakeIntervals(counts, classes, labels, level=0.9 / (k + 1))
    return made


class Reader(HTMLParser):
    """Collect what a browser would show and run."""

    def __init__(self):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text: list[str] = []
        self.in_script = False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.in_script = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if not self.in_script:
            self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def test_summary_is_strict_json_and_ordered_by_level():
    made = partitions()
    made = {name: made[name] for name in reversed(made)}
    summary = summarize(made, dataset="d", target="t", missing={"x1": 4})
    again = json.loads(json.dumps(summary, allow_nan=False))
    assert again == summary
    assert [v["name"] for v in summary["variables"]] == ["x0", "x1", "x2"]
    assert summary["dataset"]["missing"] == 4
    assert summary["target"]["counts"] == made["x2"].counts.sum(axis=0).tolist()
    for variable in summary["variables"]:
        counts = [part["counts"] for part in variable["table"]]
        assert np.array_equal(counts, made[variable["name"]].counts)


def test_types_follow_the_kind_of_partition():
    made = partitions(1)
    groups = FakePartition(made["x0"].counts, made["x0"].classes, made["x0"].labels, 0.1)
    summary = summarize({"x0": made["x0"], "g": groups})
    assert [v["type"] for v in summary["variables"]] == ["numeric", "categorical"]


def test_groups_tell_their_values_and_long_ones_are_cut():
    @dataclass(frozen=True)
    class FakeGroups(FakePartition):
        groups: tuple = ()

    groups = (("red", None, True), tuple(f"value {i}" for i in range(1000)))
    counts = np.array([[5, 1], [1, 5]])
    made = {"c": FakeGroups(counts, np.array(["a", "b"]), ["{red, ...}", "{...}"], 0.3, groups=groups)}
    summary = summarize(made)
    table = summary["variables"][0]["table"]
    assert table[0]["values"] == ["red", None, True]
    assert table[1]["n_values"] == 1000
    assert len(table[1]["values"]) == 100
    html = render_page(summary)
    assert "red, missing, True<td " in html
    assert re.search(r"value 0, value 1, .* … and 9\d\d more<details class=every><summary>100 values<", html)


def test_nothing_to_report_is_said():
    with pytest.raises(ValueError, match="no variable"):
        summarize({})


def test_hostile_names_reach_the_page_as_text_only():
    made = partitions(1)
    nasty = FakePartition(made["x0"].counts, np.array([HOSTILE, "b"]), [HOSTILE] * 3, 0.5)
    html = render_page(summarize({HOSTILE: nasty}, dataset=HOSTILE, target=HOSTILE))
    reader = read(html)
    assert sum(tag == "script" for tag, _ in reader.tags) == 2
    assert "".join(reader.text).count(HOSTILE) >= 5
    assert "alert(1)</script>" not in html
    # every attribute stayed in its quotes
    assert not any('script>"' in name for _, attributes in reader.tags for name in attributes)


def test_page_refers_to_nothing_outside_itself():
    html = render_page(summarize(partitions()))
    assert not re.search(r"https?://|src=|@import|url\(", html)
    assert "default-src 'none'" in html


def test_bars_show_the_class_shares():
    counts = np.array([[30, 10], [0, 60]])
    made = {"x": FakeIntervals(counts, np.array(["a", "b"]), ["]-inf; 1]", "]1; +inf["], 0.4)}
    html = render_page(summarize(made))
    rows = [line for line in html.splitlines() if 'class=bar data-n="' in line]
    assert len(rows) == 2
    assert '<rect class=k1 width="100%"/><rect class=k0 width="75%"/>' in rows[0]
    assert '<rect class=k1 width="100%"/><rect class=sure x="0%" width="6.02%"/></svg>' in rows[1]
    assert "k0" not in rows[1]
    assert "a 75%, b 25%" in rows[0]


def test_mosaic_covers_every_part_from_edge_to_edge():
    paths = dict(page._mosaic([[1, 3], [2, 0], [0, 4]]))
    left_edges = sorted({int(x) for d in paths.values() for x in re.findall(r"M(\d+) ", d)})
    assert left_edges == [0, 240, 360]
    assert paths[1].endswith("H600V60H360")


def test_page_stays_small_with_many_variables_and_classes():
    html = render_page(summarize(partitions(1000, 200, 6)))
    assert len(html) < 1_000_000
    assert "190 other classes" not in html
    assert "191 other classes" in html
    assert "weakest informative variables are left out" in html
    assert html.count("<tbody id=v") == 1000


def test_many_parts_are_cut_and_said_so():
    html = render_page(summarize(partitions(1, 2, 100)))
    assert "and 40 more" in html


def test_terminal_table_shows_names_as_they_are():
    made = partitions(3)
    made[HOSTILE] = made.pop("x1")
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(variables_table(summarize(made, dataset="d", target="t", missing={"x0": 5})))
    text = console.export_text()
    assert "alert(1)</script>" in text
    assert "[bold]" in text  # shown, not obeyed
    assert text.index("x0") < text.index('a"b') < text.index("x2")
    assert "0.9000" in text


def test_of_many_classes_the_leaders_of_parts_have_a_colour():
    counts = np.zeros((4, 30), dtype=int)
    counts[0] = 100 - np.arange(30)  # the most frequent classes are the first ones
    for part, leader in enumerate((29, 28, 27), start=1):
        counts[part, leader] = 30
    classes = np.array([f"c{j}" for j in range(30)])
    made = {"x": FakeIntervals(counts, classes, list("abcd"), 0.4)}
    legend = page._view(summarize(made))["legend"]
    assert [label for label, *_ in legend] == [
        *(f"c{j}" for j in (0, 1, 2, 3, 4, 5, 27, 28, 29)),
        "21 other classes",
    ]
