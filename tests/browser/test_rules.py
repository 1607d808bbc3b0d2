"""Rules in a real browser: sorted, of a class, and copied into code that selects their rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.intake import read_table, read_target
from damier.report import analyze, render_page
from damier.report.rules import certainty

from .test_everyone import HOSTILE


def column(page, k):
    lines = page.locator("#rules-table tbody tr:not([hidden])")
    return [line.locator("td").nth(k).inner_text() for line in lines.all()]


@pytest.fixture(scope="module")
def table():
    columns = sample_columns(1500)
    return pd.DataFrame({name: values for name, values in columns.items() if name != SAMPLE_TARGET})


def test_sorted_by_support_lift_and_certainty(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    rules = sample_summary["grid"]["rules"]
    rows = [f"{rule['rows']:,}" for rule in rules]
    assert column(page, 1) == rows[:20]
    of_all = np.array(sample_summary["target"]["counts"]) / sample_summary["dataset"]["rows"]
    page.get_by_role("combobox", name="Class").select_option("yes")
    lifts = [rule["counts"][1] / rule["rows"] / of_all[1] for rule in rules]
    sure = [certainty(rule["counts"][1], rule["rows"]) for rule in rules]
    page.locator("#rules").get_by_role("button", name="lift").click()
    assert column(page, 4) == [f"{lift:.2f}" for lift in sorted(lifts, reverse=True)[:20]]
    assert page.locator("#rules [aria-sort=descending]").inner_text().startswith("lift")
    button = page.locator("#rules").get_by_role("button", name="at least")
    button.focus()
    page.keyboard.press("Enter")
    best = sorted(range(len(rules)), key=lambda i: -sure[i])
    assert column(page, 1)[:5] == [f"{rules[i]['rows']:,}" for i in best[:5]]
    assert {text.split()[0] for text in column(page, 3)} == {"yes"}
    page.keyboard.press("Enter")
    least = min(sure)
    assert column(page, 5)[0] == ("0%" if least == 0 else column(page, 5)[0])
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert column(again, 1) == column(page, 1)
    page.get_by_role("combobox", name="Class").select_option("")
    assert {text.split()[0] for text in column(page, 3)} == {"no", "yes"}


def test_all_rules_or_the_first(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    n_rules = len(sample_summary["grid"]["rules"])
    if n_rules <= 20:
        assert not page.locator("#rules-every").is_visible()
        return
    page.get_by_role("button", name=f"All {n_rules} rules").click()
    assert len(column(page, 1)) == n_rules
    assert len(column(open_page(sample_page, "#" + page.url.split("#")[1]), 1)) == n_rules
    page.get_by_role("button", name="The first 20").click()
    assert len(column(page, 1)) == 20


def select(text, frame):
    """Return how many rows a copied rule selects."""
    if text.startswith("WHERE "):
        stored = duckdb.connect()
        stored.register("seen", frame)
        stored.execute("CREATE TABLE t AS SELECT * FROM seen")
        return stored.execute(f"SELECT count(*) FROM t {text}").fetchone()[0]
    return len(eval(text, {"df": frame}))


@pytest.mark.parametrize("what", ["SQL", "Python"])
def test_what_is_copied_selects_the_rows(open_page, sample_page, sample_summary, table, what):
    page = open_page(sample_page, permissions=["clipboard-read", "clipboard-write"])
    rules = sample_summary["grid"]["rules"]
    buttons = page.locator("#rules-table .copy", has_text=what)
    for k in (0, 3, len(rules[:20]) - 1):
        buttons.nth(k).click()
        text = page.evaluate("navigator.clipboard.readText()")
        assert select(text, table) == rules[k]["rows"]
        assert page.get_by_label("Copied text").input_value() == text
        assert page.locator("#live").text_content() == f"Copied as {what}"


@pytest.mark.parametrize("can", [True, False])
def test_without_a_clipboard_the_text_is_there_to_take(open_page, sample_page, sample_summary, table, can):
    page = open_page(sample_page)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate(f"document.execCommand = () => {str(can).lower()}")
    first = page.locator("#rules-table .copy").first
    first.focus()
    page.keyboard.press("Enter")
    said = page.locator("#live")
    if can:
        assert said.text_content() == "Copied as SQL"
        assert page.evaluate("document.activeElement.className") == "copy"
    else:
        assert said.text_content() == "Press Ctrl and C to copy the text"
        assert page.evaluate("getSelection().toString() || document.activeElement.value").startswith("WHERE")
    text = page.get_by_label("Copied text").input_value()
    assert select(text, table) == sample_summary["grid"]["rules"][0]["rows"]


def test_a_copy_that_takes_time_leaves_the_focus_where_the_reader_is(open_page, sample_page):
    page = open_page(sample_page)
    page.evaluate("""() => {
        Object.defineProperty(navigator, "clipboard", { value: {
            writeText: () => new Promise((done, fail) => { window.refuse = fail; }) } });
        document.execCommand = () => true;
    }""")
    buttons = page.locator("#rules-table .copy")
    buttons.first.focus()
    page.keyboard.press("Enter")
    buttons.nth(1).focus()
    page.evaluate("refuse()")
    page.wait_for_function("() => document.getElementById('live').textContent === 'Copied as SQL'")
    assert buttons.nth(1).evaluate("one => one === document.activeElement")


def test_arrow_keys_move_among_the_copy_buttons(open_page, sample_page):
    page = open_page(sample_page)
    first = page.locator("#rules-table .copy").first
    first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "Python"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 2


def test_rules_as_a_file(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    with page.expect_download() as found:
        page.locator("#rules-panel").get_by_role("button", name="CSV").click()
    lines = found.value.path().read_text("utf-8-sig").splitlines()
    assert lines[0] == "rule,rows,no,yes,lift,certainty"
    assert len(lines) == 1 + len(sample_summary["grid"]["rules"])


def test_hostile_names_and_values_are_quoted(open_page):
    rng = np.random.default_rng(0)
    names = [HOSTILE[0], "a\"b`c'; DROP TABLE t; --"]
    frame = pd.DataFrame(
        {
            names[0]: np.array([HOSTILE[1], "it's", 'x"y'], object)[rng.integers(0, 3, 900)],
            names[1]: rng.normal(size=900),
        }
    )
    y = (frame[names[0]] == "it's") ^ (frame[names[1]] > 0)
    page = open_page(
        render_page(analyze(read_table(frame), read_target(y.to_numpy()), grid_seconds=600)),
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    sizes = [int(text.replace(",", "")) for text in column(page, 1)]
    assert len(sizes) >= 4
    for k, rows in enumerate(sizes):
        for what in ("SQL", "Python"):
            page.locator("#rules-table tbody tr").nth(k).locator(".copy", has_text=what).click()
            text = page.evaluate("navigator.clipboard.readText()")
            assert select(text, frame) == rows
    assert page.locator("#rules-table script, #rules-table img").count() == 0


def test_without_scripts_the_rules_read(open_page, sample_page, sample_summary):
    page = open_page(sample_page, java_script_enabled=False)
    assert page.locator("#rules-table tbody tr:visible").count() == min(
        20, len(sample_summary["grid"]["rules"])
    )
    assert page.locator("#rules button:visible").count() == 0
