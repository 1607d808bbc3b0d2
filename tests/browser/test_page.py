"""The page of a report in a real browser: every control by mouse and by keyboard."""

from __future__ import annotations

from html import escape

import pytest

from damier.report import render_page
from damier.report.page import _TEMPLATES, SCRIPTS, verbatim
from damier.report.scripts import _fewer, _lines, variables

from .conftest import made_summary


def opened(page):
    return page.eval_on_selector_all(
        ".v.open > tr:first-child > th", "all => all.map(one => one.textContent)"
    )


def names(page):
    shown = "all => all.filter(one => one.offsetParent).map(one => one.textContent)"
    return page.eval_on_selector_all(".v > tr:first-child > th", shown)


def test_scripts_together_are_small():
    assert len(verbatim(*SCRIPTS).encode()) <= 40_000


def test_no_variable_has_a_name_of_the_browser(open_page):
    page = open_page("<!doctype html><title>empty</title>")
    for names in (SCRIPTS, ("core.js", "coclustering.js")):
        texts = [(_TEMPLATES / name).read_text("utf-8") for name in names]
        renamed = sorted(variables(_fewer(_lines("\n".join(texts)))))
        assert len(renamed) > 50
        assert page.evaluate("names => names.filter(name => name in window)", renamed) == []


def test_the_sample_opens_and_reads(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    listed = [v["name"] for v in sample_summary["variables"]]
    assert names(page) == listed
    assert opened(page) == listed[:1]
    page.get_by_role("button", name=listed[1], exact=True).click()
    assert opened(page) == listed[:2]
    page.keyboard.press("Enter")
    assert opened(page) == listed[:1]


def test_the_table_sorts_and_finds_and_links_keep_it(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    listed = [v["name"] for v in sample_summary["variables"]]
    page.get_by_role("button", name="parts", exact=True).focus()
    page.keyboard.press("Enter")
    by_parts = [v["name"] for v in sorted(sample_summary["variables"], key=lambda v: -v["parts"])]
    assert names(page) == by_parts
    page.get_by_label("Find").fill(listed[2][:4].upper())
    found = [name for name in by_parts if listed[2][:4] in name.lower()]
    assert names(page) == found
    assert page.locator("#live").text_content() == f"{len(found)} of {len(listed)} variables"
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert names(again) == found
    page.get_by_label("Find").fill("")
    page.get_by_label("Type").select_option("categorical")
    kinds = {v["name"] for v in sample_summary["variables"] if v["type"] == "categorical"}
    assert set(names(page)) == kinds
    page.get_by_label("Type").select_option("")
    page.get_by_label("informative only").check()
    assert len(names(page)) == sample_summary["dataset"]["informative"]
    page.get_by_role("button", name="Open all").click()
    assert len(opened(page)) == len(listed)
    page.get_by_role("button", name="Close all").click()
    assert opened(page) == []


def test_a_link_opens_a_variable_by_its_name(open_page, sample_page, sample_summary):
    second = sample_summary["variables"][1]["name"]
    page = open_page(sample_page)
    page.get_by_role("button", name=second, exact=True).click()
    page.get_by_role("button", name=sample_summary["variables"][0]["name"], exact=True).click()
    again = open_page(sample_page, "#" + page.url.split("#")[1])
    assert opened(again) == [second]
    assert opened(open_page(sample_page, "#v1")) == [second]


def test_a_bar_names_its_class_at_the_pointer(open_page, sample_page, sample_summary):
    page = open_page(sample_page)
    part = sample_summary["variables"][0]["table"][0]
    page.locator(".v.open svg.bar").first.hover(position={"x": 2, "y": 5})
    first = f"{part['counts'][0]:,} of {part['rows']:,}"
    assert first in page.locator("#tip").text_content()


def framed(html: str, style: str = "") -> str:
    frame = f'<iframe srcdoc="{escape(html)}" style="width:1000px;height:800px"></iframe>'
    return f'<!doctype html><html lang="en"><title>notebook</title><body style="{style}">{frame}'


def test_in_the_frame_of_a_notebook(open_page, sample_page):
    page = open_page(framed(sample_page))
    frame = page.frame_locator("iframe")
    frame.get_by_label("Find").fill("tenure")
    frame.get_by_role("button", name="parts", exact=True).click()
    assert frame.locator(".v:not([hidden])").count() < frame.locator(".v").count()
    frame.get_by_role("link", name="Rules").click()
    assert frame.get_by_role("heading", name="Rules").evaluate("one => one.getBoundingClientRect().top") < 200
    assert frame.get_by_label("Find").input_value() == "tenure"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_frame_has_the_colours_of_the_notebook_around_it(open_page, sample_page, scheme):
    page = open_page(framed(sample_page, "background: #111"), color_scheme=scheme)
    root = page.frame_locator("iframe").locator(":root")
    assert root.get_attribute("data-theme") == "dark"
    page.evaluate("document.body.style.background = 'white'")
    page.wait_for_timeout(100)
    assert root.get_attribute("data-theme") == "light"


def paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_light_and_dark_follow_the_system_until_one_is_asked_for(open_page, sample_page):
    page = open_page(sample_page, color_scheme="dark")
    dark = paper(page)
    page.emulate_media(color_scheme="light")
    light = paper(page)
    assert dark != light
    page.get_by_role("button", name="Dark").click()
    assert paper(page) == dark
    assert paper(open_page(sample_page, "#" + page.url.split("#")[1])) == dark
    page.get_by_role("button", name="Light").press("Enter")
    assert paper(page) == light
    page.get_by_role("button", name="Dark").press("Space")
    page.emulate_media(media="print")
    assert paper(page) == "rgb(255, 255, 255)"


def test_links_lead_to_every_section_and_keep_the_view(open_page, sample_page):
    page = open_page(sample_page, "#find=tenure")
    for link in page.get_by_role("navigation").get_by_role("link").all():
        place = link.get_attribute("href")
        link.press("Enter")
        section = page.locator(place)
        assert section.count() == 1
        page.wait_for_function(
            "one => one.getBoundingClientRect().top < innerHeight", arg=section.element_handle()
        )
        assert page.url.endswith("#find=tenure")
    assert page.get_by_label("Find").input_value() == "tenure"
    without = open_page(sample_page, java_script_enabled=False)
    without.get_by_role("link", name="Try a row").click()
    assert without.url.endswith("#row")


def test_scripts_off_shows_all(open_page, sample_page, sample_summary):
    page = open_page(sample_page, java_script_enabled=False)
    parts = sum(v["parts"] for v in sample_summary["variables"] if v["parts"] > 1)
    assert page.locator(".parts tbody tr:visible").count() == parts


def test_of_many_columns(open_page):
    page = open_page(render_page(made_summary(1500, 3)))
    assert len(names(page)) == 1500
