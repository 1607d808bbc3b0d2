"""A page for everyone: no violation of axe-core, phones, keyboards, hostile names, many columns."""

from __future__ import annotations

import numpy as np
import pytest

from damier import explore
from damier.report import render_page
from damier.report.words import percent
from tests.hostile.pages import MARKS

from .conftest import made_summary

PHONE = {"width": 390, "height": 800}
HOSTILE = [
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "javascript:alert(1)//{{ 7*7 }}${7*7}`",
    "a&amp;b\u202eevil <!--",
]


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'damier[browser]'")
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]


def number_page():
    random = np.random.default_rng(0)
    X = {f"x{k}": random.random(400) for k in range(4)} | {"kind": random.choice(list("abc"), 400)}
    y = X["x0"] * 10 + X["x1"] + random.normal(size=400)
    return render_page(explore(X, y, target_name="price", grid_seconds=60).to_dict())


def test_axe_sees_what_is_wrong(open_page):
    page = open_page("<!doctype html><title>x</title><main><input><p style='color:#ccc'>pale")
    assert {name for name, _ in violations(page)} >= {"label", "color-contrast", "html-has-lang"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 900}, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_violation(open_page, sample_page, scheme, viewport):
    page = open_page(sample_page, color_scheme=scheme, viewport=viewport)
    page.get_by_role("button", name="Open all").click()
    assert violations(page) == []
    page.get_by_role("combobox", name="Class").select_option("yes")
    assert violations(page) == []


def test_axe_on_a_hundred_classes(open_page):
    page = open_page(render_page(made_summary(3, 100)))
    page.get_by_role("button", name="Open all").click()
    assert violations(page) == []


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_a_phone_needs_no_scrolling_sideways(open_page, n_classes):
    page = open_page(render_page(made_summary(12, n_classes)), viewport=PHONE)
    page.get_by_role("button", name="Open all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_sample_fits_a_phone(open_page, sample_page):
    page = open_page(sample_page, viewport=PHONE)
    page.get_by_role("button", name="Open all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("of_number", [False, True], ids=["classes", "number"])
def test_very_long_names_need_no_scrolling_sideways(open_page, of_number):
    rng = np.random.default_rng(0)
    x = rng.random((2, 400))
    X = {"withoutanyspace" * 15: x[0], "with many words " * 15: np.where(x[1] > 0.5, "v" * 200, "w " * 90)}
    y = (x[0] > 0.5) ^ (x[1] > 0.5)
    if of_number:
        found = explore(X, y + rng.random(400), target_name="target_" * 15, grid_seconds=60)
    else:
        found = explore(X, np.where(y, "n" * 120, "m " * 80), target_name="target_" * 15, grid_seconds=60)
    for viewport in ({"width": 1200, "height": 900}, PHONE):
        page = open_page(render_page(found.to_dict()), viewport=viewport)
        page.get_by_role("button", name="Open all").click()
        assert page.locator("#rules-table").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        # The last column of the rules is within reach as well.
        table, panel = (page.locator(place).bounding_box() for place in ("#rules-table", "#rules-panel"))
        assert table["width"] <= panel["width"] + 1


def test_words_from_right_to_left_leave_numbers_in_place(open_page):
    rng = np.random.default_rng(0)
    x = rng.random(600)
    name, yes, no = "\u05d2\u05d9\u05dc", "\u05db\u05df", "\u05dc\u05d0"
    found = explore({name: x}, np.where((x > 0.4) ^ (rng.random(600) < 0.1), yes, no), grid_seconds=0)
    page = open_page(render_page(found.to_dict()))
    # Name, sign and number stand from left to right.
    places = page.evaluate(
        """(name) => {
            const node = [...document.querySelectorAll(".words p")].map((p) => p.firstChild)
                .find((node) => node.data.includes("\u2264"));
            const at = node.data.indexOf("\u2264"), range = document.createRange();
            return [node.data.lastIndexOf(name, at), at, at + 2].map((k) => {
                range.setStart(node, k); range.setEnd(node, k + 1);
                return range.getBoundingClientRect().left;
            });
        }""",
        name,
    )
    assert places == sorted(places)


def test_rules_of_a_hundred_classes_name_a_class(open_page):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 60, 6000)
    X = {"a": y + rng.normal(0, 1, 6000), "b": y % 7 + rng.normal(0, 1, 6000)}
    found = explore(X, np.char.add("kind ", y.astype(str)), grid_seconds=60, classifier=False).to_dict()
    counts = np.array([rule["counts"] for rule in found["grid"]["rules"]])
    rise = counts - counts.sum(axis=1, keepdims=True) * np.array(found["target"]["counts"]) / 6000
    named = [found["target"]["classes"][j] for j in rise.argmax(axis=1)]
    shares = counts[np.arange(len(counts)), rise.argmax(axis=1)] / counts.sum(axis=1)
    expected = [f"{name} {percent(share)}" for name, share in zip(named, shares, strict=True)]
    for scripts in (False, True):
        page = open_page(render_page(found), java_script_enabled=scripts)
        shown = page.locator("#rules-table tbody td:nth-child(4)").all_text_contents()
        assert shown[:20] == expected[:20]


def test_tab_reaches_every_control(open_page, sample_page):
    page = open_page(sample_page)
    controls = """() => [...document.querySelectorAll("button, input, select, textarea, summary, a[href]")]
        .filter(one => one.offsetParent && !one.disabled && one.tabIndex >= 0).length"""
    n_controls = page.evaluate(controls)
    assert n_controls > 20
    seen = set()
    for _ in range(n_controls):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("""() => { const one = document.activeElement;
            return [...document.querySelectorAll("*")].indexOf(one); }""")
        )
    assert len(seen) == n_controls


@pytest.mark.parametrize("event", ["pointerdown", "keydown"])
@pytest.mark.parametrize("of_number", [False, True])
def test_every_control_is_used_and_nothing_breaks(open_page, sample_page, of_number, event):
    """By mouse or by keyboard: all in turn, whatever those before have changed."""
    html = number_page() if of_number else sample_page
    page = open_page(html)
    page.evaluate(
        """event => { window.used = new Set();
        addEventListener(event, e => used.add(e.target.closest("[data-nth]")?.dataset.nth), true); }""",
        event,
    )
    controls = page.query_selector_all("button, input, select, textarea, summary, a[href], td[tabindex]")
    expected = set()
    for n, control in enumerate(controls):
        if not control.is_visible() or not control.is_enabled():
            continue
        control.evaluate("(one, n) => { one.dataset.nth = n; }", n)
        expected.add(str(n))
        if event == "pointerdown":
            control.click()
            page.keyboard.press("Escape")  # the list of a select
        else:
            control.focus()
            kind = control.evaluate("one => one.tagName")
            page.keyboard.press({"SELECT": "ArrowDown", "INPUT": "1", "TEXTAREA": "1"}.get(kind, "Enter"))
    assert len(expected) > 30
    left = expected - set(page.evaluate("() => [...used]"))
    assert not left, [page.locator(f'[data-nth="{n}"]').evaluate("one => one.outerHTML") for n in left]
    assert page.locator("h1").is_visible()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_stay_text(open_page, hostile):
    summary = made_summary(3, 2)
    summary["dataset"]["name"] = summary["target"]["name"] = hostile
    summary["target"]["classes"] = [hostile, "b" + hostile]
    for variable in summary["variables"]:
        variable["name"] += hostile
        for part in variable["table"]:
            part["label"] = hostile
    page = open_page(render_page(summary))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    page.get_by_role("button", name="Open all").click()
    page.get_by_role("combobox", name="Class").select_option(index=1)
    page.locator("textarea").first.fill(hostile)
    with page.expect_download():
        page.locator(".more").get_by_role("button", name="SVG").first.click()
    assert page.locator("img:not([role]), script").count() == 2
    again = open_page(render_page(summary), "#" + page.url.split("#")[1])
    assert again.locator(".v.open").count() == 3


def test_every_mark_that_could_be_read_as_a_page_stays_text(open_page):
    summary = made_summary(len(MARKS), 10)
    summary["dataset"]["name"] = summary["target"]["name"] = "".join(MARKS)
    summary["target"]["classes"] = MARKS[:10]
    summary["remarks"] = summary["notes"] = summary["words"] = MARKS
    for mark, variable in zip(MARKS, summary["variables"], strict=True):
        variable["name"] = mark
        for part in variable["table"]:
            part["label"] = mark
            if "values" in part:
                part["values"] = MARKS
    page = open_page(render_page(summary, made={"command": "".join(MARKS)}))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    elements = "() => [...new Set([...document.querySelectorAll('*')].map(one => one.localName))].sort()"
    page.get_by_role("button", name="Open all").click()
    page.get_by_label("Show").select_option("lift")
    plain = open_page(render_page(made_summary(4, 10), made={"command": "plain"}))
    plain.get_by_role("button", name="Open all").click()
    plain.get_by_label("Show").select_option("lift")
    assert set(page.evaluate(elements)) - set(plain.evaluate(elements)) <= {"ul", "li"}
    shown = page.eval_on_selector_all(".v > tr:first-child > th", "all => all.map(one => one.textContent)")
    assert shown == [mark.replace("\0", "") for mark in MARKS]


@pytest.mark.parametrize("n_columns", [300, 1500])
def test_many_columns_open_in_two_seconds_of_the_processor(open_page, n_columns):
    html = render_page(made_summary(n_columns, 2))
    assert len(html.encode()) < 2_000_000
    page = open_page(html)
    # Seconds of the processor, not of the clock: other work on the machine does not count.
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    took = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < took["ProcessTime"] < 2 * (1 if n_columns == 300 else 2)
    page.get_by_label("Find").fill("variable 29")
    assert page.locator(".v:visible").count() == sum(
        "variable 29" in f"variable {k}" for k in range(n_columns)
    )
