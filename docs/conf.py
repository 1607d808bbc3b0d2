"""Sphinx configuration: everything is built offline, from the docstrings and the Markdown files here."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import damier  # noqa: E402

project = "Damier"
author = "The Damier developers"
copyright = author
version = release = damier.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"changelog": [], "architecture": [], "mathematics": []}


def _available(module: str, names: list[str]) -> list[str]:
    """Keep the names that can be imported: one that cannot be has no page."""
    home = importlib.import_module(module)
    found = []
    for name in names:
        try:
            getattr(home, name)
        except (ImportError, AttributeError):
            continue
        found.append(f"{module}.{name}")
    return found


def _public(module: str) -> list[str]:
    home = importlib.import_module(module)
    return _available(module, [n for n in getattr(home, "__all__", []) if not n.startswith("_")])


# One section per module; a name enters the page by entering the module's ``__all__``.
API = {
    "Estimators and functions": ("damier", "The names that `import damier` offers, loaded on first use."),
    "Criteria": ("damier.criteria", "What a partition costs: plain functions of counts, in nats."),
    "Models": ("damier.models", "What was found: frozen, NumPy-only for scoring, saved as JSON."),
    "Reading data": ("damier.intake", "Frames, arrays and files turned into columns and codes."),
    "Reports": (
        "damier.report",
        "From partitions to a plain dict, and from that dict to a page, a table, JSON.",
    ),
    "Deployment": ("damier.deploy", "Models that leave Python."),
}


def _write_api_page() -> None:
    lines = ["# API", ""]
    for title, (module, words) in API.items():
        names = _public(module)
        if names:
            lines += [
                f"## {title}",
                "",
                words,
                "",
                "```{eval-rst}",
                ".. autosummary::",
                "   :toctree: generated",
                "",
            ]
            lines += [f"   {name}" for name in names] + ["```", ""]
    (HERE / "generated").mkdir(exist_ok=True)
    page, text = HERE / "api.md", "\n".join(lines)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _skip_borrowed(app, what, name, obj, skip, options):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Leave out what scikit-learn gives every estimator: it is documented there, all the same for all."""
    borrowed = str(getattr(obj, "__module__", "")).startswith("sklearn")
    return True if borrowed or name == "set_output" or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):  # type: ignore[no-untyped-def]
    """Connect the hooks above."""
    app.connect("autodoc-skip-member", _skip_borrowed)


_write_api_page()
