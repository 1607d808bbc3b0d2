"""Parts of variables in a real browser: classes, measures, values, notes, files, print."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest

from damier.report import render_page
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
    assert page.locator(".tool:visible").count() == 0
    assert page.pdf()[:5] == b"%PDF-"
