"""Pairs and worth of a numeric target in a real browser: numbers of the library, keys, links, files."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from damier.intake import read_numbers, read_table
from damier.report import analyze_number, render_page
from damier.report.pairs import HELD, number_table, signed
from damier.report.words import number
from damier.report.worth import SIDE, number_at_top

from .test_everyone import PHONE, violations
from .test_pairs import cell_of, opened, texts
from .test_parts import numbers


def flats(n_rows=900, seed=0, least=0.0):
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(20, 200, n_rows).round(1), rng.integers(0, 90, n_rows).astype(float)
    town = rng.choice(["north", "south", "west"], n_rows)
    old = (age > 40) ^ (town == "south")
    y = np.exp(area / 60 + 1.5 * old + rng.normal(0, 0.2, n_rows)).round(3) + least
    area[::11] = np.nan
    return {"area": area, "age": age, "town": town, "noise": rng.normal(size=n_rows).round(2)}, y


@pytest.fixture(scope="module")
def summary():
    X, y = flats()
    return analyze_number(
        read_table(X), read_numbers(y), dataset="flats", target_name="price", grid_seconds=600
    )


@pytest.fixture(scope="module")
def page_of(summary):
    return render_page(summary)


def open_grid(page, grid):
    name = f"{grid['first']} × {grid['second']}:"
    if not (opened(page) or "").startswith(name):
        cell_of(page, grid["first"], grid["second"]).click()
    assert opened(page) == f"{name} {signed(grid['gain'])} beyond both alone"


def written(value):
    return number(value).replace("-", "−")


def test_cells_have_the_numbers_of_the_grid(open_page, page_of, summary):
    page = open_page(page_of)
    whole = summary["pairs"]["grids"][0]["cells"][-1][2:]
    assert whole[0] == 900
    texts_of = {
        "median": lambda held: written(held[4]),
        "mean": lambda held: written(held[1]),
        "half": lambda held: f"{written(held[3])} to {written(held[5])}",
        "most": lambda held: f"{written(held[2])} to {written(held[6])}",
        "rows": lambda held: f"{held[0]:,}",
    }
    for grid in summary["pairs"]["grids"][:3]:
        open_grid(page, grid)
        shown = page.locator("#pair .cells[role=grid] tbody tr")
        assert texts(page, "#pair .cells[role=grid] tbody th") == [*grid["first_parts"], "all"]
        by_place = {(a, b): held for a, b, *held in grid["cells"]}
        for kind, text_of in texts_of.items():
            page.get_by_label("In each cell").select_option(kind)
            for a in range(len(grid["first_parts"]) + 1):
                cells = shown.nth(a).locator("td")
                for b in range(len(grid["second_parts"]) + 1):
                    held = by_place.get((a, b))
                    if held is None:
                        assert cells.nth(b).get_attribute("class") == "empty"
                    else:
                        expected = [text_of(held), f"{held[0]:,}"]
                        assert cells.nth(b).locator("b, small").all_text_contents() == expected
        page.get_by_label("In each cell").select_option("median")
        # Shades are those that a reader without scripts sees.
        drawn = page.eval_on_selector_all(
            "#pair .cells[role=grid] tbody td", "all => all.map(one => one.className)"
        )
        table = number_table(grid)
        assert drawn == [cell["kind"] for line in table["lines"] for cell in line["cells"]]
        told = page.locator("#pair p").text_content()
        assert told.startswith("Median of price; below it all rows.")
        assert f"{grid['intervals']} intervals of price: {grid['information']:.4f} nats" in told


def test_a_variable_alone_stands_beside_where_its_parts_are_others(open_page, page_of, summary):
    own = {v["name"]: v for v in summary["variables"]}
    page, n_others = open_page(page_of), 0
    for grid in summary["pairs"]["grids"]:
        open_grid(page, grid)
        differ = [
            grid[end]
            for end in ("first", "second")
            if grid[f"{end}_parts"] != [part["label"] for part in own[grid[end]]["table"]]
        ]
        assert texts(page, "#pair caption") == [
            f"{name} alone, level {own[name]['level']:.4f}" for name in differ
        ]
        for k, name in enumerate(differ):
            table = page.locator("#pair .cells:not([role])").nth(k)
            assert table.locator("th").all_text_contents() == [part["label"] for part in own[name]["table"]]
            medians = [written(part["quantiles"][3]) for part in own[name]["table"]]
            assert table.locator("b").all_text_contents() == medians
            n_others += 1
    assert n_others


def test_keys_links_and_files_of_the_matrix(open_page, page_of, summary):
    page = open_page(page_of)
    names = summary["pairs"]["tried"]
    cell_of(page, names[0], names[1]).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert opened(page).startswith(f"{names[0]} × {names[2]}:")
    page.get_by_label("In each cell").select_option("half")
    again = open_page(page_of, "#" + page.url.split("#")[1])
    assert opened(again) == opened(page)
    assert again.get_by_label("In each cell").input_value() == "half"
    page.locator("#pair td[tabindex='0']").focus()
    assert "median" in page.locator("#tip").text_content()
    grid = next(
        one for one in summary["pairs"]["grids"] if {one["first"], one["second"]} == {names[0], names[2]}
    )
    with page.expect_download() as found:
        page.locator("#pair").get_by_role("button", name="CSV").click()
    lines = list(csv.DictReader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    inside = [
        cell
        for cell in grid["cells"]
        if cell[0] < len(grid["first_parts"]) and cell[1] < len(grid["second_parts"])
    ]
    assert [[float(line[key]) for key in HELD] for line in lines] == [cell[2:] for cell in inside]
    assert sum(int(line["rows"]) for line in lines) == 900
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as found:
            page.locator("#pair").get_by_role("button", name=kind).click()
        assert found.value.path().read_bytes().startswith(start)


def words_of(summary, percent):
    top = number_at_top(summary, percent)
    held = [percent]
    if top["share"] is not None:
        held += [round(100 * top["share"]), top["lift"]]
    return [*held, top["mean"], summary["target"]["mean"]]


@pytest.mark.parametrize("least", [0.0, -5.0])
def test_the_handle_says_what_the_library_says(open_page, summary, least):
    if least:
        X, y = flats(least=least)
        summary = analyze_number(read_table(X), read_numbers(y), target_name="price", grid_seconds=0)
    html = render_page(summary)
    page = open_page(html)

    def seen():
        text = page.locator("#worth-words").text_content()
        return numbers(text.replace(">99%", "100%").replace("<1%", "0%"))

    assert seen() == pytest.approx(words_of(summary, 10), rel=1e-3, abs=0.0051)
    page.get_by_label("The top").focus()
    for key, percent in [("ArrowRight", 11), ("PageUp", 21), ("Home", 0), ("End", 100)]:
        page.keyboard.press(key)
        assert page.locator("#top-at").text_content() == f"{percent}%"
        assert seen() == pytest.approx(words_of(summary, percent), rel=1e-3, abs=0.0051)
        dot = page.locator("#curve-dot")
        at = float(dot.get_attribute("cx")) / SIDE, 1 - float(dot.get_attribute("cy")) / SIDE
        curves = summary["regressor"]["curves"]
        if least:
            mean, ends = curves["means"][max(percent, 1) - 1], (min(curves["means"]), max(curves["means"]))
            height = (mean - ends[0]) / (ends[1] - ends[0])
        else:
            height = curves["captured"][percent]
        assert at == pytest.approx((percent / 100, height), abs=1e-4)
    page.get_by_label("The top").fill("30")
    page.get_by_label("A row taken costs").fill("4")
    page.get_by_label("A unit of price brings").fill("0.5")
    worths = [number_at_top(summary, k, cost=4, benefit=0.5)["money"] for k in range(101)]
    best = max(range(101), key=lambda k: worths[k])
    money = numbers(page.locator("#worth-money").text_content())
    assert money[0] == pytest.approx(worths[30], rel=1e-3, abs=0.51)
    assert money[3:] == pytest.approx([worths[best], best], rel=1e-3, abs=0.51)
    page.get_by_role("button", name=f"Go to {best}%").click()
    again = open_page(html, "#" + page.url.split("#")[1])
    for place in ("#worth-words", "#worth-money"):
        assert again.locator(place).text_content() == page.locator(place).text_content()
    with page.expect_download() as found:
        page.locator("#worth-panel").get_by_role("button", name="CSV").click()
    lines = list(csv.DictReader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert len(lines) == 101
    assert float(lines[30]["mean"]) == pytest.approx(curves["means"][29], rel=1e-5)
    assert lines[30]["share of the total"] == ("" if least else str(curves["captured"][30]))


def test_the_curve_of_gains_is_a_handle(open_page, page_of):
    page = open_page(page_of)
    page.locator("svg.handle").scroll_into_view_if_needed()
    left, top, scale = page.evaluate("""() => {
        const m = document.getElementById("curve-gains").getScreenCTM();
        return [m.e, m.f, m.a];
    }""")
    page.mouse.move(left + SIDE * scale * 0.4, top + 50)
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#top-at").text_content() == "40%"


def test_without_scripts_and_in_print(open_page, page_of, summary):
    page = open_page(page_of, java_script_enabled=False)
    assert page.locator("#pairs .cells:visible").count() == sum(
        grid["gain"] > 1e-9 for grid in summary["pairs"]["grids"][:3]
    )
    assert page.locator("#worth .curve:visible").count() == 4
    seen = numbers(page.locator("#worth-words").text_content())
    assert seen == pytest.approx(words_of(summary, 10), rel=1e-3, abs=0.0051)
    assert open_page(page_of).pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 900}, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_violation(open_page, page_of, scheme, viewport):
    page = open_page(page_of, color_scheme=scheme, viewport=viewport)
    page.get_by_role("button", name="Open all").click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
