"""A model as a plain dict, then as a page, a table or JSON."""

from damier.report.page import render_page
from damier.report.summary import summarize
from damier.report.table import variables_table

__all__ = ["render_page", "summarize", "variables_table"]
