"""A model as a plain dict, then as a page, a table or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from damier.lazy import lazy_names

HOME_OF = {
    "analyze": "damier.report.analysis",
    "render_coclustering": "damier.report.coclustering",
    "summarize_coclustering": "damier.report.coclustering",
    "Report": "damier.report.explore",
    "grid_lines": "damier.report.grid",
    "analyze_number": "damier.report.numbers",
    "render_page": "damier.report.page",
    "summarize_pairs": "damier.report.pairs",
    "plot_cover": "damier.report.plots",
    "plot_posterior": "damier.report.plots",
    "summarize_grid": "damier.report.rules",
    "summarize": "damier.report.summary",
    "classifier_line": "damier.report.table",
    "regressor_line": "damier.report.table",
    "remark_lines": "damier.report.table",
    "variables_table": "damier.report.table",
    "word_lines": "damier.report.table",
}

__all__ = [
    "Report",
    "analyze",
    "analyze_number",
    "classifier_line",
    "grid_lines",
    "plot_cover",
    "plot_posterior",
    "regressor_line",
    "remark_lines",
    "render_coclustering",
    "render_page",
    "summarize",
    "summarize_coclustering",
    "summarize_grid",
    "summarize_pairs",
    "variables_table",
    "word_lines",
]

if TYPE_CHECKING:
    from damier.report.analysis import analyze
    from damier.report.coclustering import render_coclustering, summarize_coclustering
    from damier.report.explore import Report
    from damier.report.grid import grid_lines
    from damier.report.numbers import analyze_number
    from damier.report.page import render_page
    from damier.report.pairs import summarize_pairs
    from damier.report.plots import plot_cover, plot_posterior
    from damier.report.rules import summarize_grid
    from damier.report.summary import summarize
    from damier.report.table import classifier_line, regressor_line, remark_lines, variables_table, word_lines

__getattr__, __dir__ = lazy_names(__name__, HOME_OF)
