"""Pages in a real browser: Debian's Chromium, driven by Playwright.

Needs ``pip install damier[browser]`` and ``apt-get install chromium``; without them these tests are skipped.
A page fails its test if it logs an error, asks for anything outside itself or breaks its content policy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.intake import read_table, read_target
from damier.models import GroupPartition, IntervalPartition
from damier.report import analyze, render_page, summarize

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOW = "needs Chromium and Playwright: apt-get install chromium; pip install 'damier[browser]'"

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if sync_playwright is None or CHROMIUM is None:
        pytest.skip(HOW)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a document; ``fragment`` follows its address, other options are those of a browser context."""
    contexts, wrong = [], []

    def open_(html: str, fragment: str = "", **options: Any) -> Any:
        context = browser.new_context(
            viewport=options.pop("viewport", {"width": 1200, "height": 900}), **options
        )
        contexts.append(context)
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        page = context.new_page()
        page.set_default_timeout(60_000)  # machines may be busy
        page.on(
            "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        address = file.as_uri()

        def watch(request: Any) -> None:
            if request.url.split("#")[0] != address and not request.url.startswith(("data:", "blob:")):
                wrong.append(f"asked for {request.url}")

        page.on("request", watch)
        page.goto(address + fragment)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not wrong, wrong


@pytest.fixture(scope="session")
def sample_summary() -> dict[str, Any]:
    columns = sample_columns(1500)
    target = read_target(columns.pop(SAMPLE_TARGET))
    return analyze(
        read_table(columns), target, dataset="customers", target_name=SAMPLE_TARGET, grid_seconds=600
    )


@pytest.fixture(scope="session")
def sample_page(sample_summary: dict[str, Any]) -> str:
    return render_page(sample_summary)


def made_summary(
    n_variables: int, n_classes: int, n_parts: int = 5, seed: int = 0, **known: Any
) -> dict[str, Any]:
    """Describe a table of random counts: every other variable is grouped."""
    random = np.random.default_rng(seed)
    classes = tuple(f"class {j}" for j in range(n_classes))
    whole = random.multinomial(4000, random.dirichlet(np.ones(n_classes)))
    made: dict[str, Any] = {}
    for k in range(n_variables):
        weights = random.dirichlet(np.ones(n_parts), n_classes)
        counts = np.array([random.multinomial(n, weights[j]) for j, n in enumerate(whole)]).T
        common = {"classes": classes, "counts": counts, "null_cost": 1000.0, "optimal": True}
        common["cost"] = 1000.0 * (1 - 0.5 / (k + 1))
        name = f"variable {k}"
        if k % 2:
            groups = tuple(tuple(f"v{g}-{i}" for i in range(3 + 40 * (g == 0))) for g in range(n_parts))
            made[name] = GroupPartition(name=name, groups=groups, **common)
        else:
            made[name] = IntervalPartition(name=name, bounds=tuple(range(1, n_parts)), **common)
    return summarize(made, dataset="made", target="kind", **known)
