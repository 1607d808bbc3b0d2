"""A model as a plain dict, then as a page, a table or JSON."""

from damier.report.analysis import analyze
from damier.report.coclustering import render_coclustering, summarize_coclustering
from damier.report.explore import Report, explore
from damier.report.grid import grid_lines
from damier.report.numbers import analyze_number
from damier.report.page import render_page
from damier.report.pairs import summarize_pairs
from damier.report.plots import plot_cover, plot_posterior
from damier.report.rules import summarize_grid
from damier.report.summary import summarize
from damier.report.table import classifier_line, regressor_line, remark_lines, variables_table, word_lines

__all__ = [
    "Report",
    "analyze",
    "analyze_number",
    "classifier_line",
    "explore",
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
