"""What it is worth, in a real browser: the handle by keyboard, pointer and link; numbers and money."""

from __future__ import annotations

import csv
import io

import pytest

from damier.intake import read_table, read_target
from damier.report import analyze, render_page
from damier.report.worth import SIDE, at_top

from .test_parts import numbers


def words(page):
    return page.locator("#worth-words").text_content()


def of(summary, place, percent, **money):
    top = at_top(summary, place, percent, **money)
    return [percent, round(100 * top["share"]), round(top["captured"]), round(top["rows"]), top["lift"]]


def test_the_handle_says_what_the_library_says(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    assert numbers(words(page)) == pytest.approx(of(sample_summary, 1, 10), abs=0.0051)
    handle = page.get_by_label("The top")
    handle.focus()
    for key, percent in [("ArrowRight", 11), ("PageUp", 21), ("Home", 0), ("End", 100), ("ArrowLeft", 99)]:
        page.keyboard.press(key)
        assert page.locator("#top-at").text_content() == f"{percent}%"
        seen = numbers(words(page).replace(">99%", "100%").replace("<1%", "0%"))
        assert seen == pytest.approx(of(sample_summary, 1, percent), abs=1.0 if percent == 99 else 0.0051)
    handle.fill("35")
    page.locator("#worth").get_by_label("Look at").select_option("no")
    assert numbers(words(page)) == pytest.approx(of(sample_summary, 0, 35), abs=0.0051)
    assert handle.get_attribute("aria-valuetext") == words(page)
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert words(again) == words(page)


def test_the_curves_are_those_of_the_class(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    (curve,) = (one for one in sample_summary["classifier"]["curves"] if one["place"] == 0)
    page.locator("#worth").get_by_label("Look at").select_option("no")
    assert page.locator("#curve-auc").text_content() == f"{curve['auc']:.3f}"
    drawn = page.locator("#curve-gains").get_attribute("d")[1:].split("L")
    assert len(drawn) == 101
    for k, point in enumerate(drawn):
        x, y = map(float, point.split())
        assert (x / SIDE, 1 - y / SIDE) == pytest.approx((k / 100, curve["captured"][k]), abs=1e-4)
    points = page.locator("#curve-points circle")
    assert points.count() == len(curve["calibration"])
    told = points.first.locator("title").text_content()
    first = curve["calibration"][0]
    assert told == f"{100 * first['predicted']:.1f}% predicted, {100 * first['observed']:.1f}% observed"


def test_money(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    money = page.locator("#worth-money")
    assert money.text_content() == ""
    page.get_by_label("A row taken costs").fill("2.5")
    page.get_by_label("One of them brings").fill("7")
    worths = [at_top(sample_summary, 1, percent, cost=2.5, benefit=7)["money"] for percent in range(101)]
    best = max(range(101), key=lambda k: worths[k])
    seen = numbers(money.text_content())
    assert seen[0] == pytest.approx(worths[10], abs=0.51)
    assert seen[1] - seen[2] == pytest.approx(worths[10], abs=1.1)
    assert seen[3] == pytest.approx(worths[best], abs=0.51)
    assert seen[4] == best
    page.get_by_role("button", name=f"Go to {best}%").click()
    assert page.locator("#top-at").text_content() == f"{best}%"
    assert not page.locator("#top-best").is_visible()
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert again.locator("#worth-money").text_content() == money.text_content()
    page.get_by_label("One of them brings").fill("0")
    page.get_by_label("A row taken costs").fill("1")
    assert money.text_content().startswith("They are worth −")


def test_the_curve_of_gains_is_a_handle(open_page, sample_page):
    page = open_page(sample_page)
    chart = page.locator("svg.handle")
    chart.scroll_into_view_if_needed()
    place = page.evaluate("""() => {
        const m = document.getElementById("curve-gains").getScreenCTM();
        return [m.e, m.f, m.a];
    }""")
    at = [(place[0] + SIDE * place[2] * share, place[1] + 50) for share in (0.4, 0.62)]
    page.mouse.move(*at[0])
    page.mouse.down()
    assert page.locator("#top-at").text_content() == "40%"
    page.mouse.move(*at[1])
    page.mouse.up()
    assert page.locator("#top-at").text_content() == "62%"
    page.mouse.move(*at[0])
    assert page.locator("#top-at").text_content() == "62%"


def test_the_curves_as_files(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    panel = page.locator("#worth-panel")
    with page.expect_download() as found:
        panel.get_by_role("button", name="CSV").click()
    lines = list(csv.DictReader(io.StringIO(found.value.path().read_text("utf-8-sig"))))
    assert len(lines) == 101
    expected = at_top(sample_summary, 1, 30)
    assert float(lines[30]["captured"]) == pytest.approx(expected["captured"])
    assert float(lines[30]["lift"]) == pytest.approx(expected["lift"])
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as found:
            panel.get_by_role("button", name=kind).click()
        assert found.value.path().read_bytes().startswith(start)


def test_a_link_that_makes_no_sense_is_the_first_view(open_page, sample_page):
    page = open_page(sample_page, "#top=abc&cost=x&pair=%22a%22&cells=z&rules=none&row=%7B%7D&class=zz")
    assert page.locator("#top-at").text_content() == "10%"
    assert page.locator("#worth-money").text_content() == ""


def test_many_classes_each_have_their_curves(open_page):
    import numpy as np

    rng = np.random.default_rng(0)
    y = rng.integers(0, 25, 4000)
    X = {"a": y + rng.normal(0, 1, 4000), "b": y % 4 + rng.normal(0, 1, 4000)}
    summary = analyze(read_table(X), read_target(y), grid_seconds=0)
    page = open_page(render_page(summary))
    options = page.locator("#worth .look option")
    assert options.count() == len(summary["classifier"]["curves"]) == 9
    place = summary["classifier"]["curves"][4]["place"]
    page.locator("#worth .look").select_option(str(place))
    assert numbers(words(page).replace(f"class {place} ", " ")) == pytest.approx(
        of(summary, place, 10), abs=0.0051
    )
    # A class without curves of its own leaves those that are shown.
    before = words(page)
    missing = next(j for j in range(25) if j not in [c["place"] for c in summary["classifier"]["curves"]])
    page.get_by_role("combobox", name="Class").select_option(str(missing))
    assert words(page) == before
