"""The page of a coclustering in a real browser: every control by mouse and by keyboard."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from damier import Coclustering
from damier.criteria import coclustering_cost
from damier.report import coclustering as report
from damier.report import render_coclustering, summarize_coclustering
from damier.report.coclustering import block_words
from damier.report.page import verbatim

HOSTILE = "</script><img src=x onerror=alert(1)>\"&'=1+1"


@pytest.fixture(scope="module")
def table():
    """Counts of 60 rows and 48 columns in 6 x 5 planted blocks."""
    random = np.random.default_rng(3)
    means = random.gamma(0.5, 3.0, (6, 5))
    return random.poisson(np.kron(means, np.ones((10, 10)))[:, :48])


@pytest.fixture(scope="module")
def model(table):
    i, j = np.nonzero(table)
    rows = np.array([f"row {v}" for v in range(60)], dtype=object)
    rows[7] = HOSTILE
    columns = np.array([f"column {v}" for v in range(48)], dtype=object)
    pairs = pd.DataFrame({"who <b>": rows[i], "what": columns[j], "times": table[i, j]})
    found = Coclustering(counts="times").fit(pairs).model_
    assert min(found.cells.shape) >= 4
    return found


@pytest.fixture(scope="module")
def first_clusters():
    return 8


@pytest.fixture(scope="module")
def page_text(model, first_clusters):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "FIRST_CLUSTERS", first_clusters)
        return render_coclustering(summarize_coclustering(model, "sales.csv"))


@pytest.fixture
def page(open_page, page_text):
    return open_page(page_text)


def folded(model, step, turned):
    """Cluster of each cluster found once branches are folded, as a tree read from the merges has it."""
    trees = [{k: [k] for k in range(n)} for n in model.cells.shape]
    shut = [[] for _ in trees]  # leaves of every branch that is folded
    for s, (axis, kept, gone) in enumerate(
        zip(*(a.tolist() for a in (model.merges.axes, model.merges.kept, model.merges.gone)), strict=True)
    ):
        trees[axis][kept] = trees[axis][kept] + trees[axis].pop(gone)
        if (s < step) != (s in turned):
            shut[axis].append(trees[axis][kept])
    labels = []
    for axis, n in enumerate(model.cells.shape):
        label = np.arange(n)
        for branch in shut[axis]:  # the larger ones come later and cover those within
            label[branch] = min(branch)
        labels.append(np.unique(label, return_inverse=True)[1])
    return labels


def information_of(model, table, labels):
    """Share of the gain that a fold keeps, by the criterion on the whole table."""
    to_value = [
        dict(zip(side.values, side.labels.tolist(), strict=True)) for side in (model.rows, model.columns)
    ]
    rows = [HOSTILE if v == 7 else f"row {v}" for v in range(60)]
    columns = [f"column {v}" for v in range(48)]
    by_value = [
        np.array([labels[axis][to_value[axis][name]] if name in to_value[axis] else 0 for name in names])
        for axis, names in enumerate((rows, columns))
    ]
    cost = coclustering_cost(table, *by_value)
    return min(1.0, max(0.0, (model.null_cost - cost) / (model.null_cost - model.best_cost)))


def shown(page):
    """Numbers of clusters, and the share of the information kept."""
    text = page.locator("#shown").text_content()
    rows, columns = re.match(r"([\d,]+) × ([\d,]+) clusters", text).groups()
    return (int(rows), int(columns)), float(page.locator("#shown").get_attribute("data-information"))


def until(page, shape):
    """Wait for so many clusters: the slider draws at the next frame."""
    page.locator("#shown", has_text=re.compile(rf"^{shape[0]} × {shape[1]} clusters")).wait_for()


def unfold_all(page, model):
    page.get_by_label("Fewer or more clusters").press("End")
    until(page, model.cells.shape)


def clusters(page, side):
    return page.eval_on_selector_all(f"#{side} button", "all => all.map(one => one.dataset.cluster)")


def test_the_script_is_small():
    assert len(verbatim("core.js", "coclustering.js").encode()) <= 40_000


def test_information_of_any_fold_is_that_of_the_criterion(open_page, page_text, model, table):
    random = np.random.default_rng(0)
    n = len(model.merges)
    page = open_page(page_text)
    for _ in range(12):
        step = int(random.integers(0, n + 1))
        turned = set(random.choice(n, size=int(random.integers(0, n // 2)), replace=False).tolist())
        page.evaluate(f"location.hash = 'clusters={n - step + 2}&turned={'.'.join(map(str, turned))}'")
        labels = folded(model, step, turned)
        shape = tuple(int(each.max()) + 1 for each in labels)
        until(page, shape)
        assert shown(page)[1] == pytest.approx(information_of(model, table, labels), abs=1e-9)


def test_information_of_a_simpler_coclustering(open_page, model, table):
    simple = model.simplify(4, 3)
    page = open_page(render_coclustering(summarize_coclustering(simple, "sales")))
    assert shown(page) == ((4, 3), pytest.approx(simple.information, abs=1e-9))
    assert simple.information < 1


def test_the_slider_goes_along_the_hierarchy(page, model, first_clusters):
    path = model.hierarchy(backend="dict")
    slider = page.get_by_label("Fewer or more clusters")
    assert sum(shown(page)[0]) == first_clusters
    slider.press("End")
    until(page, model.cells.shape)
    assert shown(page)[1] == pytest.approx(1.0, abs=1e-9)
    for step in range(1, len(model.merges) + 1):
        slider.press("ArrowLeft")
        shape = path["n_row_clusters"][step], path["n_column_clusters"][step]
        until(page, shape)
        assert shown(page)[1] == pytest.approx(path["information"][step], abs=1e-9)
    assert slider.get_attribute("aria-valuetext").startswith("1 × 1 clusters")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    until(page, model.cells.shape)


@pytest.mark.parametrize("axis", [0, 1])
def test_branches_fold_one_by_one(page, model, table, axis):
    name = (model.rows.name, model.columns.name)[axis]
    unfold_all(page, model)
    tree = page.get_by_role("tree", name=f"Tree of {name}")
    items = tree.get_by_role("treeitem")
    whole = model.cells.shape[axis]
    assert items.count() == whole - 1  # each node has two parts, all are unfolded
    # by mouse: the last node folds into one cluster, and unfolds again
    last = items.last
    merge = int(last.get_attribute("data-node")[1:])
    last.click()
    labels = folded(model, 0, {merge})
    assert shown(page)[0] == tuple(int(each.max()) + 1 for each in labels)
    assert shown(page)[1] == pytest.approx(information_of(model, table, labels), abs=1e-9)
    node = page.locator(f'[data-node="m{merge}"]')
    assert node.get_attribute("aria-expanded") == "false"
    node.click()
    assert shown(page)[0] == model.cells.shape
    # by keys: Home is the root, Enter folds it, an arrow unfolds it
    items.first.focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert shown(page)[0][axis] == 1
    assert items.count() == 1
    unfold, fold, onwards, back = (
        ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"),
        ("ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"),
    )[axis]
    page.keyboard.press(unfold)
    assert shown(page)[0][axis] == whole
    page.keyboard.press(onwards)
    focused = "document.activeElement.dataset.node"
    second = items.nth(1).get_attribute("data-node")
    assert page.evaluate(focused) == second
    page.keyboard.press(fold)  # folds what is open
    assert page.locator(f'[data-node="{second}"]').get_attribute("aria-expanded") == "false"
    page.keyboard.press(fold)  # then goes to the branch it is on
    assert page.evaluate(focused) == items.first.get_attribute("data-node")
    page.keyboard.press(onwards)
    page.keyboard.press(back)
    assert page.evaluate(focused) == items.first.get_attribute("data-node")
    page.keyboard.press(" ")
    assert shown(page)[0][axis] == 1
    assert "folded" in page.locator("#live").text_content()


def test_search_says_the_cluster_and_unfolds_to_it(page, model):
    page.get_by_label("Fewer or more clusters").press("Home")
    until(page, (1, 1))
    seek = page.get_by_label("Find a value")
    seek.fill("COLUMN 11")
    page.keyboard.press("Enter")
    cluster = model.columns.labels[model.columns.values.index("column 11")]
    size = model.columns.sizes()[cluster]
    said = page.locator("#found").text_content()
    assert said.startswith("“column 11” is in the cluster of what with ")
    assert f": {size} values, " in said
    assert page.locator(f'#columns [data-cluster="c{cluster}"][aria-pressed=true]').count() == 1
    assert page.locator("#chosen mark").text_content() == "column 11"
    page.locator("#chosen .values").first.click()
    page.keyboard.press("ArrowDown")  # long lists scroll
    assert page.locator("#blocks .mark").count() >= 1
    # by mouse, from the list
    seek.fill("onerror")
    page.locator("#hits button").click()
    cluster = model.rows.labels[model.rows.values.index(HOSTILE)]
    assert page.locator(f'#rows [data-cluster="r{cluster}"][aria-pressed=true]').count() == 1
    # arrow keys go into the list and back, Escape closes it
    seek.click()
    seek.fill("row 1")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").startswith("row 1 ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "seek"
    page.keyboard.press("Escape")
    assert page.locator("#hits li").count() == 0
    seek.fill("row 2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#chosen mark").text_content() == "row 2"
    seek.fill("nowhere")
    assert page.locator("#hits").text_content() == "no such value in this page"


def test_blocks_by_mouse_and_arrow_keys(page, model):
    unfold_all(page, model)
    matrix = page.get_by_role("application")
    matrix.click(position={"x": 3, "y": 3})
    assert "block=r0.c0" in page.url

    def said(i, j):
        count, expected = int(model.cells[i, j]), float(model.expected[i, j])
        text = f"{expected:.1f}" if expected < 9.95 else f"{expected:,.0f}"
        return f"{block_words(count, expected)} ({count:,} observed, {text} expected)"

    assert page.locator("#pointed").text_content().endswith(said(0, 0))
    assert page.locator("#chosen .says").text_content().endswith(said(0, 0))
    matrix.focus()
    for key, (i, j) in (
        ("ArrowDown", (1, 0)),
        ("ArrowRight", (1, 1)),
        ("ArrowUp", (0, 1)),
        ("ArrowLeft", (0, 0)),
    ):
        page.keyboard.press(key)
        assert page.locator("#pointed").text_content().endswith(said(i, j))
    page.keyboard.press("ArrowUp")  # there is nothing above
    assert page.locator("#pointed").text_content().endswith(said(0, 0))
    box = matrix.bounding_box()
    matrix.hover(position={"x": box["width"] - 6, "y": box["height"] - 6})
    assert page.locator("#pointed").text_content().endswith(said(-1, -1))
    page.mouse.move(5, 5)
    assert page.locator("#pointed").text_content().endswith(said(0, 0))
    page.locator('#blocks text.row[data-cluster="r1"]').click()
    assert page.locator("#pointed").text_content().endswith(said(1, 0))
    page.locator('#blocks text.column[data-cluster="c2"]').click()
    assert page.locator("#pointed").text_content().endswith(said(1, 2))


def test_clusters_are_chosen_in_the_lists(page):
    button = page.locator("#rows button").nth(1)
    cluster = button.get_attribute("data-cluster")
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert f"block={cluster}" in page.url
    button.click()  # let go
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#name-0").count() == 0
    page.locator("#columns button").first.click()
    assert page.locator("#columns [aria-pressed=true]").count() == 1


def test_blocks_in_words_can_be_chosen(page, model):
    unfold_all(page, model)
    select = page.get_by_label("Blocks to write")

    def rows():
        cells = "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
        return page.eval_on_selector_all("#words tr", cells)

    def figures():
        return [(int(row[3].replace(",", "")), row[2]) for row in rows()]

    distance = np.where(model.cells > 0, model.cells * np.log(np.maximum(model.cells, 1) / model.expected), 0)
    distance = (distance - model.cells + model.expected).ravel()
    best = np.argsort(-distance)[:24]
    flat, expected = model.cells.ravel(), model.expected.ravel()
    assert figures() == [(flat[k], block_words(int(flat[k]), float(expected[k]))) for k in best]
    select.click()
    page.keyboard.press("Escape")
    select.press("ArrowDown")  # the next one: fuller
    assert select.input_value() == "fuller"
    assert rows()
    assert all("as many as" in row[2] for row in rows())
    select.select_option("emptier")
    assert all("fewer" in row[2] or "none" in row[2] or "about" in row[2] for row in rows())
    page.locator("#words button").nth(1).click()
    page.locator("#words button").first.press("Enter")
    assert (
        page.locator("#pointed").text_content().startswith(f"{rows()[0][0]} × {rows()[0][1]}: {rows()[0][2]}")
    )
    select.select_option("chosen")
    assert len(rows()) == min(24, sum(model.cells.shape) - 1)
    assert "words=chosen" in page.url


def test_names_are_kept_in_the_link_and_in_a_copy(open_page, page_text, page, model):
    unfold_all(page, model)
    page.get_by_role("application").click(position={"x": 3, "y": 3})
    name = 'Best </script><b> "customers" ~ a:b & c'
    page.get_by_label("Name of this cluster of who <b>").fill(name)
    page.get_by_label("Name of this cluster of what").click()
    page.keyboard.type("Toys")
    assert page.locator("#pointed").text_content().startswith(f"{name} × Toys: ")
    assert page.locator("#rows li i").text_content() == name
    assert page.locator("#words").text_content().count("Toys") >= 1
    link = page.url.split("#")[1]
    again = open_page(page_text, "#" + link)
    assert again.locator("#rows li i").text_content() == name
    save = page.get_by_role("button", name="Save a copy with my names")
    with page.expect_download():
        save.press("Enter")
    with page.expect_download() as download:
        save.click()
    assert download.value.suggested_filename == "sales-named.html"
    copy = download.value.path().read_text(encoding="utf-8")
    saved = open_page(copy)
    unfold_all(saved, model)
    assert saved.locator("#rows li i").text_content() == name
    assert saved.locator("#columns li i").text_content() == "Toys"
    assert saved.locator("#named").is_hidden()
    off = open_page(copy, java_script_enabled=False)
    named = off.locator("#named li").all_text_contents()
    assert [text.split(": ")[0] for text in named] == [name.split(": ")[0], "Toys"]
    assert off.locator("#blocks svg").count() == 1
    assert off.locator("#explore").is_hidden()
    # an empty name gives the typical values back
    saved.get_by_role("application").click(position={"x": 3, "y": 3})
    saved.get_by_label("Name of this cluster of what").fill("")
    assert saved.locator("#columns li i").count() == 0


def test_links_keep_the_view(open_page, page_text, page):
    page.get_by_role("treeitem").first.click()
    page.get_by_label("Find a value").fill("row 3")
    page.keyboard.press("Enter")
    page.get_by_label("Blocks to write").select_option("emptier")
    again = open_page(page_text, "#" + page.url.split("#")[1])
    assert shown(again) == shown(page)
    assert clusters(again, "rows") == clusters(page, "rows")
    for seen in ("#chosen", "#words"):
        assert again.locator(seen).text_content() == page.locator(seen).text_content()
    assert again.get_by_label("Find a value").input_value() == "row 3"
    assert again.locator("#chosen mark").text_content() == "row 3"


@pytest.mark.parametrize(
    "fragment",
    [
        "#clusters=x&turned=-1.999.a&block=zz.9&names=q",
        "#clusters=9999&names=%7B%22r0%22%3A1%2C%22q%22%3A[]&turned=..",
        "#step",
    ],
)
def test_links_that_make_no_sense_open_the_page(open_page, page_text, fragment):
    page = open_page(page_text, fragment)
    assert shown(page)[1] > 0
    assert page.locator("#rows button").count() > 0


def test_exports(page, model):
    unfold_all(page, model)

    def saved(kind):
        button = page.get_by_role("button", name=kind, exact=True)
        with page.expect_download():
            button.press("Enter")
        with page.expect_download() as download:
            button.click()
        assert download.value.suggested_filename == f"sales.csv-blocks.{kind.lower()}"
        return download.value.path().read_bytes()

    lines = list(csv.reader(io.StringIO(saved("CSV").decode("utf-8-sig"))))
    assert lines[0][1:] == ["what", "count", "expected", "ratio"]
    figures = np.array([[float(cell) for cell in line[2:]] for line in lines[1:]])
    np.testing.assert_array_equal(figures[:, 0], model.cells.ravel())
    np.testing.assert_allclose(figures[:, 1], model.expected.ravel())
    picture = ElementTree.fromstring(saved("SVG"))
    assert len(picture.findall(".//{*}path[@fill-opacity]")) > 3
    texts = "".join(picture.itertext())
    assert "of the information kept" in texts
    assert saved("PNG").startswith(b"\x89PNG")


def test_scripts_off_shows_the_first_view(open_page, page_text):
    off, on = open_page(page_text, java_script_enabled=False), open_page(page_text)
    assert off.locator("#explore").is_hidden()
    assert off.locator(".with-script").is_hidden()
    for seen in ("#shown", "#words"):
        text = [re.sub(r"\s+", "", page.locator(seen).text_content()) for page in (off, on)]
        assert text[0] == text[1]
    for side in ("rows", "columns"):
        text = [
            sorted(re.sub(r"\s+", "", t) for t in page.locator(f"#{side} li").all_text_contents())
            for page in (off, on)
        ]
        assert text[0] == text[1]
    drawn = (
        "all => all.map(one => one.getAttribute('fill-opacity') + one.getAttribute('d').replace(/[^M]/g, ''))"
    )
    paths = [page.eval_on_selector_all("#blocks path[fill-opacity]", drawn) for page in (off, on)]
    assert paths[0] == paths[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_bars_the_way(open_page, page_text, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'damier[browser]'")
    page = open_page(page_text, color_scheme=scheme, viewport={"width": width, "height": 900})
    found = axe.Axe().run(page).response["violations"]
    assert not found, json.dumps(
        [(rule["id"], [node["html"] for node in rule["nodes"][:3]]) for rule in found], indent=1
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_print(page):
    page.emulate_media(media="print")
    for control in ("#explore", "#exports", "#words-tools"):
        assert page.locator(control).is_hidden()
    assert page.locator("#blocks svg").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_one_block(open_page):
    noise = np.random.default_rng(0).poisson(0.5, (30, 30))
    page = open_page(render_coclustering(summarize_coclustering(Coclustering().fit(noise).model_, "noise")))
    assert shown(page) == ((1, 1), 1.0)
    page.get_by_role("application").click(position={"x": 3, "y": 3})
    assert "about as many as expected" in page.locator("#pointed").text_content()
