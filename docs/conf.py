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


# Public names by task. A name that cannot be imported, or that no section lists, fails the build.
API: dict[str, tuple[str, str, list[str]]] = {
    "Intervals and groups": (
        "damier",
        "Columns replaced by their best partition against a target.",
        ["MODLDiscretizer", "MODLGrouper", "MODLEncoder", "bound_posterior"],
    ),
    "Classifiers": (
        "damier",
        "",
        [
            "NaiveBayesClassifier",
            "DataGridClassifier",
            "DataGridEnsembleClassifier",
            "DataGridRegressor",
            "LinfClassifier",
            "BallPartitionClassifier",
            "CoclusteringClassifier",
        ],
    ),
    "Regressors": ("damier", "The distribution of a number.", ["NaiveBayesRegressor"]),
    "Reports of a table": ("damier", "", ["explore"]),
    "Several variables at once": ("damier", "", ["rank_pairs", "gabriel_graph"]),
    "Clusters without a target": ("damier", "", ["Coclustering", "DataGridClustering"]),
    "Models": ("damier.models", "What was found: frozen, scored with NumPy alone, saved as JSON.", []),
    "Reports": ("damier.report", "From models to a plain dict, and from that dict to a page or a table.", []),
    "Deployment": ("damier.deploy", "Models that leave Python.", []),
    "Criteria": ("damier.criteria", "What a partition costs: plain functions of counts, in nats.", []),
    "Reading data": ("damier.intake", "Frames, arrays and files turned into columns and codes.", []),
}


def _public(module: str) -> list[str]:
    return [name for name in importlib.import_module(module).__all__ if not name.startswith("_")]


def _write_api_page() -> None:
    listed = {name for module, _, names in API.values() if module == "damier" for name in names}
    forgotten = set(_public("damier")) - listed
    if forgotten:
        raise ValueError(f"public names that no section of docs/conf.py lists: {sorted(forgotten)}")
    lines = ["# API", ""]
    for title, (module, words, names) in API.items():
        home = importlib.import_module(module)
        lines += [f"## {title}", "", *([words, ""] if words else [])]
        lines += ["```{eval-rst}", ".. autosummary::", "   :toctree: generated", ""]
        for name in names or _public(module):
            getattr(home, name)  # an import error stops the build
            lines.append(f"   {module}.{name}")
        lines += ["```", ""]
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
