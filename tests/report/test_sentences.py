"""What a report says in words: the right variable, parts and shares; few and many classes, numbers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from damier.intake import read_numbers, read_table, read_target
from damier.models import GroupPartition, IntervalPartition
from damier.report import analyze, analyze_number, render_page, summarize, word_lines
from damier.report.sentences import sentences, where
from damier.report.words import number


def intervals(name, counts, classes, level, bounds=None):
    counts = np.array(counts)
    bounds = tuple(range(1, len(counts))) if bounds is None else bounds
    return IntervalPartition(
        name=name,
        classes=tuple(classes),
        counts=counts,
        cost=100 * (1 - level),
        null_cost=100.0,
        optimal=True,
        bounds=bounds,
    )


def groups(name, counts, classes, level, held):
    counts = np.array(counts)
    return GroupPartition(
        name=name,
        classes=tuple(classes),
        counts=counts,
        cost=100 * (1 - level),
        null_cost=100.0,
        optimal=True,
        groups=held,
    )


def test_two_classes_speak_of_the_rarer_one():
    classes = ("stays", "leaves")
    contract = groups(
        "contract",
        [[300, 300], [30, 0], [640, 60]],
        classes,
        0.3,
        (("monthly",), ("none",), ("one year", "two years")),
    )
    age = intervals("age", [[500, 100], [470, 260]], classes, 0.1)
    flat = intervals("noise", [[970, 360]], classes, 0.0, ())
    words = summarize({"noise": flat, "age": age, "contract": contract}, target="churn")["words"]
    assert words == [
        "2 of 3 variables inform churn.",
        "contract says most: where contract is monthly, 50% are leaves; where contract is none, 0% are "
        "(all rows: 27%).",
        "Next comes age.",
    ]


def test_a_part_of_few_rows_makes_no_headline():
    contract = groups(
        "contract",
        [[300, 300], [5, 0], [640, 60]],
        ("stays", "leaves"),
        0.3,
        (("monthly",), ("none",), ("yearly",)),
    )
    (said,) = summarize({"contract": contract}, target="churn")["words"][1:]
    assert said == (
        "contract says most: where contract is monthly, 50% are leaves; where contract is yearly, 9% are "
        "(all rows: 28%)."
    )


def test_nothing_informs():
    flat = intervals("a", [[970, 360]], ("x", "y"), 0.0, ())
    assert summarize({"a": flat}, target="t")["words"] == ["The variable does not inform t."]
    both = summarize({"a": flat, "b": flat}, target="t")
    assert both["words"] == ["None of 2 variables informs t by itself."]


@pytest.mark.parametrize("n_classes", [10, 100])
def test_many_classes_speak_of_two_parts_that_lead_to_two(n_classes):
    counts = np.full((3, n_classes), 10)
    counts[0, 3] += 500
    counts[2, 7] += 300
    made = {"size": intervals("size", counts, [f"kind {j}" for j in range(n_classes)], 0.3)}
    summary = summarize(made, target="t")
    total = counts.sum()
    assert summary["words"][1] == (
        f"size says most: where size ≤ 1, {counts[0, 3] / counts[0].sum():.0%} are kind 3 "
        f"(all rows: {counts[:, 3].sum() / total:.0%}); where size > 2, {counts[2, 7] / counts[2].sum():.0%} "
        f"are kind 7 (all rows: {counts[:, 7].sum() / total:.0%})."
    )


def test_a_copy_of_the_target_is_a_leak_and_not_the_headline():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 400)
    X = {"after": np.where(y, "left", "here"), "age": random.normal(size=400) + y}
    summary = analyze(
        read_table(X), read_target(np.where(y, "yes", "no")), target_name="churn", grid_seconds=0
    )
    words = summary["words"]
    assert words[1] == "after all but repeats churn: leave it out if it is known only afterwards."
    assert words[2].startswith("Of the others, age says most: where age ≤ ")
    assert any(word.startswith("Together they predict") for word in words)


def test_a_number_speaks_of_medians():
    random = np.random.default_rng(0)
    size = random.random(600)
    price = np.round(100 * size + random.normal(size=600), 3)
    summary = analyze_number(
        read_table({"size": size}), read_numbers(price, "y"), target_name="price", grid_seconds=0
    )
    table = summary["variables"][0]["table"]
    highest = max(part["quantiles"][3] for part in table)
    assert f"half of the rows have a price above {highest:.4g};" in summary["words"][1]
    assert "of the variance of price" in summary["words"][-2]
    tenth = summary["regressor"]["curves"]["means"][9]
    assert f"predicted highest has a mean of {number(tenth)} (" in summary["words"][-1]


def test_rare_classes_are_a_remark():
    counts = [[300, 300, 2, 3], [640, 60, 1, 1]]
    summary = summarize({"a": intervals("a", counts, ("p", "q", "r", "s"), 0.2)}, target="t")
    assert summary["remarks"] == ["2 classes have fewer than 10 rows, too few to say much of them: r, s"]


def test_intervals_are_written_with_the_name():
    variable = {"name": "age"}
    assert where(variable, {"label": "missing"}) == "age is missing"
    assert where(variable, {"label": "]12, 26]"}) == "age in ]12, 26]"
    assert where(variable, {"label": "1"}) == "age is 1"


def test_words_are_escaped_and_printed_as_they_are():
    name = "<b>[red]x\x1b[2J"
    made = {name: intervals(name, [[300, 300], [640, 60]], ("<i>", "[bold]"), 0.3)}
    summary = summarize(made, target="<s>")
    assert "<b>[red]" not in render_page(summary)
    assert sentences(summary) == summary["words"]
    console = Console(width=300, file=io.StringIO())
    for line in word_lines(summary):
        console.print(line)
    said = console.file.getvalue()
    assert "[red]" in said
    assert "\x1b[2J" not in said
