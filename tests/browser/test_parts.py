"""Parts of variables in a real browser: classes, measures, values, notes, files, print."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import numpy as np
import pytest

from damier.intake import read_numbers, read_table
from damier.report import analyze_number, render_page
from damier.report.measures import weight_of_evidence, wilson

from .conftest import made_summary


def texts(page, column=5):
    return page.locator(f".v.open .parts tbody > tr > :nth-child({column})").all_text_contents()


def numbers(text):
    return [float(n) for n in re.findall(r"[+−]?\d+(?:\.\d+)?", text.replace("−", "-").replace(",", ""))]


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_measures_of_a_class_are_the_library_s(open_page, n_classes):
    summary = made_summary(4, n_classes)
    page = open_page(render_page(summary))
    table, j = summary["variables"][0]["table"], 1
    total, n_rows = summary["target"]["counts"][j], summary["dataset"]["rows"]
    counts, rows = [part["counts"][j] for part in table], [part["rows"] for part in table]
    before = texts(page)
    page.get_by_role("combobox", name="Class").select_option(summary["target"]["classes"][j])
    for text, n, size in zip(texts(page), counts, rows, strict=True):
        expected = [100 * share for share in (n / size, *wilson(n, size))]
        assert [float(one) for one in re.findall(r"([\d.]+)%", text)] == pytest.approx(expected, abs=0.051)
    page.get_by_label("Show").select_option("lift")
    for text, n, size in zip(texts(page), counts, rows, strict=True):
        lift = n / size / (total / n_rows)
        assert numbers(text)[0] == pytest.approx(lift, abs=0.0051)
    page.get_by_label("Show").select_option("evidence")
    expected = weight_of_evidence(counts, total, rows)
    for text, weight in zip(texts(page), expected, strict=True):
        assert float(text.split()[0].replace("−", "-")) == pytest.approx(weight, abs=0.00051)
    page.get_by_label("Show").select_option("counts")
    shown = [f"{n:,} of {size:,}" for n, size in zip(counts, rows, strict=True)]
    assert texts(page) == shown
    assert page.get_by_role("img", name=shown[0], exact=True).count() >= 1
    # the link opens the same view; another variable opened later shows the same class
    again = open_page(render_page(summary), "#" + page.url.split("#")[1])
    assert texts(again) == shown
    again.get_by_role("button", name="variable 1", exact=True).click()
    part = summary["variables"][1]["table"][0]
    assert f"{part['counts'][j]:,} of {part['rows']:,}" in texts(again)
    page.get_by_label("Show").select_option("share")
    page.get_by_role("combobox", name="Class").select_option("")
    assert texts(page) == before


def test_lift_needs_a_class_and_takes_the_rarest(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    page.get_by_label("Show").focus()
    page.keyboard.press("ArrowDown")
    assert page.get_by_label("Show").input_value() == "lift"
    counts = sample_summary["target"]["counts"]
    assert page.get_by_role("combobox", name="Class").input_value() == str(counts.index(min(counts)))


def test_counts_of_all_classes_have_bars_of_their_rows(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    page.get_by_label("Show").select_option("counts")
    widths = page.eval_on_selector_all(".v.open .parts svg.bar", "all => all.map(one => one.clientWidth)")
    rows = [part["rows"] for part in sample_summary["variables"][0]["table"]]
    for width, n in zip(widths, rows, strict=True):
        assert width / max(widths) == pytest.approx(n / max(rows), abs=0.01)


def test_values_of_a_long_group_are_found(open_page):
    summary = made_summary(2, 2)
    page = open_page(render_page(summary), '#variable="variable 1"')
    page.get_by_label("Find a value").fill("v0-42")
    assert page.locator(".hit").count() == 1
    assert page.locator("output").text_content() == "in 1 of 5 groups"
    assert page.get_by_text("v0-42").is_visible()
    page.get_by_label("Find a value").fill("nothing")
    assert page.locator("output").text_content() == "in no value listed here"
    page.get_by_label("Find a value").fill("")
    assert page.locator(".miss").count() == 0


def test_notes_are_saved_in_a_copy_and_stay_text(open_page, sample_page, sample_summary, tmp_path):
    name = sample_summary["variables"][0]["name"]
    page = open_page(sample_page)
    save = page.get_by_role("button", name="Save a copy with my notes")
    assert save.is_disabled()
    note = '</script><img src=x onerror="alert(1)"> & "quoted"\nsecond line'
    page.get_by_label(f"Note on {name}").fill(note)
    with page.expect_download() as download:
        save.click()
    copy = tmp_path / "copy.html"
    download.value.save_as(copy)
    html = copy.read_text("utf-8")
    again = open_page(html)
    assert again.get_by_label(f"Note on {name}").input_value() == note
    assert again.locator("img").count() == 0
    assert len(html) < 1.3 * len(sample_page)
    without = open_page(html, java_script_enabled=False)
    assert without.locator(".my-note").all_text_contents() == [note]
    # a copy of the copy, with the note changed, holds the new one only
    again.get_by_label(f"Note on {name}").fill("short")
    with again.expect_download() as download:
        again.get_by_role("button", name="Save a copy with my notes").click()
    download.value.save_as(copy)
    third = open_page(copy.read_text("utf-8"), java_script_enabled=False)
    assert third.locator(".my-note").all_text_contents() == ["short"]


def test_a_panel_is_saved_as_svg_png_and_csv(open_page, sample_page, sample_summary, tmp_path):
    page = open_page(sample_page)
    variable = sample_summary["variables"][0]
    held = {}
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            page.locator(".more").get_by_role("button", name=kind).first.click()
        assert download.value.suggested_filename == f"customers-{variable['name']}.{kind.lower()}"
        held[kind] = tmp_path / kind
        download.value.save_as(held[kind])
    rows = list(csv.reader(io.StringIO(held["CSV"].read_text("utf-8-sig"))))
    assert rows[0] == ["group", "rows", *sample_summary["target"]["classes"]]
    expected = [[p["label"], str(p["rows"]), *map(str, p["counts"])] for p in variable["table"]]
    assert rows[1:] == expected
    assert held["PNG"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    svg = held["SVG"].read_text("utf-8")
    shown = open_page(svg.replace("<svg", "<!doctype html><title>x</title><svg", 1))
    for part in variable["table"]:
        assert part["label"] in shown.locator("svg").first.text_content()
    with page.expect_download() as download:
        page.locator(".tools").get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "all")
    listed = list(csv.reader(io.StringIO((tmp_path / "all").read_text("utf-8-sig"))))
    assert [row[0] for row in listed[1:]] == [v["name"] for v in sample_summary["variables"]]
    assert [float(row[3]) for row in listed[1:]] == [
        round(v["level"], 4) for v in sample_summary["variables"]
    ]


def test_the_classes_are_a_panel_too(open_page, sample_page, sample_summary, tmp_path):
    page = open_page(sample_page)
    with page.expect_download() as download:
        page.locator(".target").get_by_role("button", name="CSV").press("Enter")
    download.value.save_as(tmp_path / "classes.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "classes.csv").read_text("utf-8-sig"))))
    target = sample_summary["target"]
    counts = [[name, str(n)] for name, n in zip(target["classes"], target["counts"], strict=True)]
    assert rows == [["class", "rows"], *counts]
    for kind in ("SVG", "PNG"):
        with page.expect_download() as download:
            page.locator(".target").get_by_role("button", name=kind).click()
        assert download.value.suggested_filename == f"customers-{target['name']}.{kind.lower()}"


def test_the_curve_is_that_of_the_chosen_class(open_page, sample_page, sample_summary):
    variable = next(v for v in sample_summary["variables"] if "curve" in v)
    page = open_page(sample_page, f"#variable={json.dumps(variable['name'])}")
    names = sample_summary["target"]["classes"]
    told = variable["curve"]["places"][0]
    said = page.locator(".v.open figcaption .c:visible")
    assert said.all_text_contents() == [f"share of {names[told]}: 90% certain within the band"]
    drawn = page.locator(".v.open .values .line:visible")
    first = drawn.get_attribute("d")
    page.get_by_role("combobox", name="Class").select_option(names[1 - told])
    assert said.all_text_contents() == [f"share of {names[1 - told]}: 90% certain within the band"]
    assert drawn.count() == 1
    assert drawn.get_attribute("d") != first
    page.get_by_role("combobox", name="Class").select_option("")
    assert drawn.get_attribute("d") == first


def test_a_class_without_a_colour_is_shown_when_it_is_chosen(open_page):
    summary = made_summary(2, 100)
    page = open_page(render_page(summary))
    shown = page.locator(".legend span").all_text_contents()
    j = next(j for j, name in enumerate(summary["target"]["classes"]) if name not in shown)
    page.get_by_role("combobox", name="Class").select_option(summary["target"]["classes"][j])
    for text, part in zip(texts(page), summary["variables"][0]["table"], strict=True):
        share = 100 * part["counts"][j] / part["rows"]
        assert float(text.split("%")[0]) == pytest.approx(share, abs=0.051)
    assert page.locator(".dim").count() == 0


def test_cells_that_a_spreadsheet_would_run_are_marked(open_page, tmp_path):
    summary = made_summary(1, 2)
    summary["variables"][0]["name"] = '=cmd|"/c calc"!A1'
    page = open_page(render_page(summary))
    with page.expect_download() as download:
        page.locator(".tools").get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "all")
    rows = list(csv.reader(io.StringIO((tmp_path / "all").read_text("utf-8-sig"))))
    assert rows[1][0] == '\'=cmd|"/c calc"!A1'


def test_the_strip_of_values_shows_every_cut(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    page.get_by_role("button", name="Open all").click()
    for variable in sample_summary["variables"]:
        strip = variable["statistics"].get("histogram")
        if variable["parts"] < 2 or strip is None:
            continue
        box = page.get_by_role("img", name=f"Rows along the values of {variable['name']}")
        path = box.locator(".cuts").get_attribute("d")
        places = [float(x) for x in re.findall(r"M([\d.]+) ", path)]
        width = (strip["high"] - strip["low"]) / len(strip["counts"])
        bounds = [strip["low"] + x * width for x in places]
        assert bounds == pytest.approx(variable["bounds"], abs=0.02 * width, rel=1e-3)


def test_prices_of_cuts_are_on_the_page(open_page, sample_page, sample_summary):
    variable = next(v for v in sample_summary["variables"] if "cuts" in v)
    page = open_page(sample_page, f"#variable={json.dumps(variable['name'])}")
    shown = [numbers(text)[0] for text in texts(page, 6)[:-1]]
    assert shown == pytest.approx(variable["cuts"], rel=1e-3)
    assert all(math.isfinite(price) for price in shown)


def test_print_opens_the_ten_strongest(open_page):
    page = open_page(render_page(made_summary(14, 3)))
    page.emulate_media(media="print")
    assert page.locator(".parts:visible").count() == 10
    controls = ".tool:visible, nav:visible, input:visible, button:not(th button):visible"
    assert page.locator(controls).count() == 0
    assert page.pdf()[:5] == b"%PDF-"


def test_a_printed_page_is_light_and_cuts_no_variable_in_two(open_page):
    page = open_page(render_page(made_summary(14, 3)), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    look = "one => { const s = getComputedStyle(one); return [s.breakInside, s.color]; }"
    assert page.locator(".v").first.evaluate(look) == ["avoid", "rgb(29, 36, 48)"]


@pytest.fixture(scope="module")
def number_summary():
    random = np.random.default_rng(0)
    area, town = random.lognormal(4, 0.5, 800), random.choice(["Lyon", "Brest", "Paris"], 800)
    price = np.round(area * (1 + (town == "Paris")) * np.exp(0.2 * random.normal(size=800)), 2)
    table = read_table({"area": area, "town": town, "noise": random.random(800)})
    target = read_numbers(price, "price")
    return analyze_number(table, target, dataset="flats", target_name="price", grid_seconds=5)


def test_a_numeric_target_has_strips_files_and_notes(open_page, number_summary, tmp_path):
    page = open_page(render_page(number_summary))
    variable = number_summary["variables"][0]
    medians = [numbers(text)[0] for text in texts(page, 5)]
    assert medians == pytest.approx([part["quantiles"][3] for part in variable["table"]], rel=1e-3)
    assert page.get_by_label("Find a value").count() == 0
    assert page.get_by_role("combobox", name="Class").count() == 0
    with page.expect_download() as download:
        page.locator(".more").get_by_role("button", name="CSV").first.click()
    download.value.save_as(tmp_path / "parts.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "parts.csv").read_text("utf-8-sig"))))
    assert [float(row[1]) for row in rows[1:]] == [part["rows"] for part in variable["table"]]
    page.get_by_label(f"Note on {variable['name']}").fill("dear")
    with page.expect_download():
        page.get_by_role("button", name="Save a copy with my notes").press("Enter")
    page.get_by_role("button", name="Open all").click()
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'damier[browser]'")
    assert axe.Axe().run(page).response["violations"] == []


def written(cells):
    """Text of cells as the page shows it, with what its style adds."""
    return cells.evaluate_all(
        """cells => cells.map(cell => {
            const added = where => getComputedStyle(cell, where).content.replace(/^(none|normal)$/, "");
            return (added("::before") + cell.textContent.trim() + added("::after")).replace(/"/g, "");
        })"""
    )


def test_numbers_are_named_on_a_phone(open_page, number_summary, sample_page):
    phone = {"width": 390, "height": 800}
    page = open_page(render_page(number_summary), viewport=phone)
    rule = written(page.locator(".rules tbody tr").first.locator("td"))
    assert all(v["name"] in rule[0] for v in number_summary["grid"]["variables"])
    assert re.fullmatch(r"[\d,]+ rows", rule[1])
    assert re.fullmatch(r"median: [\d,.]+", rule[3])
    part = written(page.locator(".strips tbody tr").first.locator("td"))
    assert part[3].startswith("median: ")
    assert part[4].startswith("mean: ")
    strip = page.locator(".rules svg.strip").first.bounding_box()
    assert strip["width"] > 300
    page = open_page(sample_page, viewport=phone)
    rule = written(page.locator("#rules-table tbody tr").first.locator("td"))
    assert rule[1].endswith(" rows")
    assert rule[4].startswith("lift: ")
    assert rule[5].startswith("at least: ")
    assert not rule[5].endswith(" rows")


def test_the_keyboard_opens_chooses_and_saves(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    second = sample_summary["variables"][1]
    page.get_by_role("button", name=second["name"], exact=True).press("Enter")
    page.get_by_role("combobox", name="Class").press("ArrowDown")
    page.get_by_role("combobox", name="Class").press("ArrowDown")
    assert page.get_by_role("combobox", name="Class").input_value() == "1"
    n, size = second["table"][0]["counts"][1], second["table"][0]["rows"]
    assert f"{100 * n / size:.1f}%" in page.locator("#v1 .parts").text_content()
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download():
            page.locator("#v1 .more").get_by_role("button", name=kind).press("Enter")
        assert page.locator("#live").text_content() == f"Saved as {kind}"
    page.get_by_label("informative only").press("Space")
    assert page.locator(".v:visible").count() == sample_summary["dataset"]["informative"]
    page.get_by_role("button", name="Open all").press("Space")
    assert page.locator(".v.open").count() == len(sample_summary["variables"])


def test_a_place_on_the_page_leaves_the_view(open_page, sample_page):
    page = open_page(sample_page, "#find=tenure")
    assert page.locator(".v:visible").count() == 1
    page.evaluate("location.hash = '#v1'")
    page.wait_for_timeout(100)
    assert page.locator(".v:visible").count() == 1
    page.evaluate("location.hash = '#find=contract'")
    page.wait_for_function("document.getElementById('find').value === 'contract'")
    assert page.locator(".v:visible th").first.text_content() == "contract"
