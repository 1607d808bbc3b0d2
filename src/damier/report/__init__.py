"""A model as a page, a plot, a table."""
