"""Pairs in a real browser: the matrix by mouse and keyboard, and numbers that are the library's."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from damier.report import render_page
from damier.report.classes import shown_classes
from damier.report.pairs import signed

from .conftest import made_summary


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def opened(page):
    return page.locator("#pair h3").text_content() if page.locator("#pair").is_visible() else None


def cell_of(page, first, second):
    return page.get_by_role("gridcell", name=re.compile(f"^{re.escape(f'{first} × {second}')}:"))


def counts_of(grid, n_classes):
    table = np.zeros((len(grid["first_parts"]), len(grid["second_parts"]), n_classes), int)
    for a, b, *counts in grid["cells"]:
        table[a, b] = counts
    return table


def test_the_pair_of_most_gain_is_open_and_another_opens_at_a_press(open_page, sample_page, sample_summary):
    grids = sample_summary["pairs"]["grids"]
    page = open_page(sample_page)
    best, other = grids[0], grids[3]
    assert opened(page) == f"{best['first']} × {best['second']}: {signed(best['gain'])} beyond both alone"
    cell_of(page, other["first"], other["second"]).click()
    assert opened(page).startswith(f"{other['first']} × {other['second']}:")
    assert page.locator("#matrix [aria-selected=true]").count() == 1
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert opened(again) == opened(page)
    cell_of(page, other["first"], other["second"]).click()
    assert opened(page) is None
    assert opened(open_page(sample_page, "#" + page.url.split("#")[1])) is None


def test_every_pair_done_can_be_opened(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    assert page.locator("#matrix .pair").count() == 2 * sample_summary["pairs"]["done"]
    for grid in sample_summary["pairs"]["grids"][:5]:
        cell_of(page, grid["second"], grid["first"]).click()
        assert opened(page).startswith(f"{grid['second']} × {grid['first']}:")
        labels = texts(page, "#pair .cells[role=grid] tbody th")
        assert labels == [*grid["second_parts"], "all"]


def test_cells_have_the_numbers_of_the_grid(open_page, sample_page, sample_summary):
    grid = sample_summary["pairs"]["grids"][0]
    classes = shown_classes(sample_summary)
    counts = counts_of(grid, len(classes.labels))
    j = classes.labels.index("yes")
    rows, n = counts.sum(axis=2), counts.sum()
    base = counts[:, :, j].sum() / n
    page = open_page(sample_page)
    shown = page.locator("#pair .cells[role=grid] tbody tr")

    def read(row, column):
        cell = shown.nth(row).locator("td").nth(column)
        if cell.get_attribute("class") == "empty":
            return None
        return cell.locator("b").text_content(), cell.locator("small").text_content()

    def expected(kind, held):
        n_j, size = held[j], held.sum()
        if kind == "lift":
            return f"{n_j / size / base:.2f}"
        if kind == "counts":
            return f"{n_j:,}"
        of_class = counts.sum(axis=(0, 1))
        return f"{sum(c / n * np.log(c * n / size / of_class[k]) for k, c in enumerate(held) if c):.4f}"

    share = page.locator("#pair p").text_content()
    assert share.startswith("Share of yes; below it all rows.")
    for kind in ("lift", "information", "counts"):
        page.get_by_label("In each cell").select_option(kind)
        for a in range(rows.shape[0]):
            for b in range(rows.shape[1]):
                seen = (
                    None
                    if rows[a, b] == 0
                    else (expected(kind, counts[a, b]).replace("-0.0000", "0.0000"), f"{rows[a, b]:,}")
                )
                assert read(a, b) == seen
        assert read(rows.shape[0], rows.shape[1])[1] == f"{n:,}"
    page.get_by_label("In each cell").select_option("share")
    for a in range(rows.shape[0]):
        text, size = read(a, rows.shape[1])
        assert text == f"{counts[a, :, j].sum() / rows[a].sum():.0%}"
        assert size == f"{rows[a].sum():,}"
    which = np.repeat(np.arange(counts[:, :, 0].size), rows.ravel())
    known = np.concatenate([np.repeat([0, 1], cell) for cell in counts.reshape(-1, 2)])
    told = page.locator("#pair p").text_content()
    assert f"{mutual_info_score(which, known):.4f} nats" in told


def test_a_variable_alone_stands_beside_where_its_parts_are_others(open_page, sample_page, sample_summary):
    own = {v["name"]: v for v in sample_summary["variables"]}
    page = open_page(sample_page)
    for grid in sample_summary["pairs"]["grids"][:4]:
        cell_of(page, grid["first"], grid["second"]).click() if not opened(page).startswith(
            f"{grid['first']} × {grid['second']}:"
        ) else None
        differ = [
            grid[end]
            for end in ("first", "second")
            if grid[f"{end}_parts"] != [part["label"] for part in own[grid[end]]["table"]]
        ]
        captions = texts(page, "#pair caption")
        assert captions == [f"{name} alone, level {own[name]['level']:.4f}" for name in differ]
        for k, name in enumerate(differ):
            labels = page.locator("#pair .cells:not([role])").nth(k).locator("th").all_text_contents()
            assert labels == [part["label"] for part in own[name]["table"]]


def test_keys_move_in_both_matrices(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    names = sample_summary["pairs"]["tried"]
    focused = "document.activeElement.getAttribute('aria-label')"
    cell_of(page, names[0], names[1]).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith(f"{names[0]} × {names[2]}:")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused).startswith(f"{names[1]} × {names[2]}:")
    page.keyboard.press("Enter")
    assert opened(page).startswith(f"{names[1]} × {names[2]}:")
    assert page.evaluate(focused).startswith(f"{names[1]} × {names[2]}:")
    page.keyboard.press("ArrowLeft")  # over the diagonal
    assert page.evaluate(focused).startswith(f"{names[1]} × {names[0]}:")
    page.keyboard.press("Space")
    assert opened(page).startswith(f"{names[1]} × {names[0]}:")
    page.locator("#pair td[tabindex='0']").focus()
    tip = page.locator("#tip")
    assert "rows (" in tip.text_content()
    before = page.evaluate("document.activeElement.cellIndex")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.cellIndex") == before + 1
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.textContent").endswith(
        f"{sample_summary['dataset']['rows']:,}"
    )


def test_one_class_is_looked_at_on_the_whole_page(open_page, sample_page):
    page = open_page(sample_page)
    page.locator("#pair").get_by_label("Look at").select_option("no")
    assert page.locator("#pair p").text_content().startswith("Share of no;")
    assert page.locator("#class").input_value() == "0"
    assert page.locator("#worth .look").input_value() == "0"
    assert "most probably no hold" in page.locator("#worth-words").text_content()
    assert page.locator("#row-words").text_content().startswith("no:")
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert again.locator("#pair p").text_content().startswith("Share of no;")
    page.get_by_role("combobox", name="Class").select_option("yes")
    assert page.locator("#pair p").text_content().startswith("Share of yes;")
    page.go_back()


def test_the_panels_are_files(open_page, sample_page, sample_summary):
    grid = sample_summary["pairs"]["grids"][0]
    page = open_page(sample_page)
    with page.expect_download() as found:
        page.locator("#pair").get_by_role("button", name="CSV").click()
    lines = list(csv.reader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert lines[0] == [grid["first"], grid["second"], "rows", "no", "yes"]
    assert [line[3:] for line in lines[1:]] == [list(map(str, cell[2:])) for cell in grid["cells"]]
    with page.expect_download() as found:
        page.locator("#matrix-panel").get_by_role("button", name="CSV").click()
    lines = list(csv.reader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert lines[0][1:] == sample_summary["pairs"]["tried"]
    assert float(lines[1][1]) == pytest.approx(sample_summary["variables"][0]["level"], abs=1e-4)
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as found:
            page.locator("#pair").get_by_role("button", name=kind).click()
        assert found.value.path().read_bytes().startswith(start)


def test_pairs_not_done_are_named_and_cannot_be_opened(open_page, sample_summary):
    held = sample_summary["pairs"]
    last = held["grids"][-1]
    cut = {**sample_summary, "pairs": {**held, "grids": held["grids"][:-1], "done": held["done"] - 1}}
    cut["pairs"]["not_done"] = [[last["first"], last["second"]]]
    page = open_page(render_page(cut))
    assert page.locator("#matrix .none").count() == 2
    page.locator("#matrix .none").first.click()
    assert page.locator("#matrix .pair").count() == 2 * (held["done"] - 1)
    page.get_by_text("1 pairs not searched").click()
    assert page.get_by_text(f"{last['first']} × {last['second']}", exact=True).is_visible()


def test_without_scripts_the_best_grids_are_written_out(open_page, sample_page):
    page = open_page(sample_page, java_script_enabled=False)
    assert page.locator("#pairs .cells:visible").count() == 3
    assert not page.locator("#pair").is_visible()


def test_no_pairs_no_matrix(open_page):
    page = open_page(render_page(made_summary(4, 3)))
    assert page.locator("#matrix").count() == 0
