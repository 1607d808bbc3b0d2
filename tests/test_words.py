"""Words that were replaced by plainer ones do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = ("src", "tests", "benchmarks", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
TEXTS = ("docs", "benchmarks", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
NOT_TESTS = ("src", *TEXTS)
# pattern, where it is looked for, what to write instead
WORDS = [
    (r"paper 0\d", EVERYWHERE, "authors and year"),
    (r"\bone a (row|column|class|part|core|value|variable|thread)\b", EVERYWHERE, "one per ..."),
    (r"\b(a|one) (column|row|part) a (class|row|part|value|variable)\b", EVERYWHERE, "one ... per ..."),
    (r"\ba core\b", EVERYWHERE, "per core"),
    (r"\bWhat tells\b", EVERYWHERE, "What explains"),
    (r"\btells\b", NOT_TESTS, "explains, informs, reports, shows"),
    (r"\btold\b", NOT_TESTS, "found, given, shown"),
    (r"\bwanted\b", TEXTS, "published, or the name of a peer"),
    (r"\brooms\b", EVERYWHERE, "packages"),
    (r"\b(deeds?|strangers|guests)\b", EVERYWHERE, "the word for the thing"),
    (r"\b(abroad|are dear)\b", EVERYWHERE, "elsewhere; expensive"),
]


def files(places: tuple[str, ...]) -> list[Path]:
    found = []
    for place in places:
        path = ROOT / place
        inside = path.rglob("*") if path.is_dir() else [path]
        found += [p for p in inside if p.suffix in (".py", ".md", ".html", ".js") and _is_ours(p)]
    assert len(found) > 3
    return found


def _is_ours(path: Path) -> bool:
    return path != Path(__file__) and not {"_build", "generated"} & set(path.parts)


@pytest.mark.parametrize(("pattern", "places", "instead"), WORDS, ids=[word for word, _, _ in WORDS])
def test_words(pattern: str, places: tuple[str, ...], instead: str) -> None:
    seen = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files(places)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not seen, f"write {instead}:\n" + "\n".join(seen)
