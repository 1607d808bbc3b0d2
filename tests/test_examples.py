"""The examples of the docstrings, the README and the guide run, and say what they are said to say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import damier

ROOT = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(m.name for m in pkgutil.walk_packages(damier.__path__, "damier."))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(example: doctest.DocTest) -> None:
    told: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    for example in doctest.DocTestFinder().find(importlib.import_module(name)):
        run(example)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages(page: Path) -> None:
    session = "".join(block for block in FENCE.findall(page.read_text("utf-8")) if ">>>" in block)
    if session:
        run(doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0))
