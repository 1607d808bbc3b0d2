"""A report in Python: the same numbers and the same page as ``damier report`` writes."""

from __future__ import annotations

import html
import json
import os
import time
from typing import Any

from damier.intake import NumericTarget, TargetType, read_table
from damier.intake.frames import make_frame
from damier.intake.printable import printable
from damier.intake.target import explored_target
from damier.intake.writing import write_text
from damier.report.analysis import analyze
from damier.report.made import Made, how_made
from damier.report.numbers import analyze_number
from damier.report.page import render_page
from damier.report.summary import Summary
from damier.report.words import LabelStyle
from damier.search.run import count_threads


class Report:
    """What `explore` found; in a notebook it shows itself.

    Parameters
    ----------
    summary : dict
        As `damier.report.summarize` lays it out.
    library : {"pandas", "polars", "pyarrow"}, optional
        Of the frames it returns.
    made : dict, optional
        How it was made, as `damier.report.made.how_made` says it.
    """

    def __init__(self, summary: Summary, library: str | None = None, made: Made | None = None) -> None:
        self._summary = summary
        self._library = library
        self._made = made

    def to_dict(self) -> Summary:
        """Return the numbers, in JSON types."""
        copy: Summary = json.loads(json.dumps(self._summary))
        return copy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; it is one file and opens offline."""
        write_text(path, render_page(self._summary, made=self._made))

    @property
    def variables(self) -> Any:
        """The variables by falling level, a frame of the library of X: name, type, parts, level, missing."""
        rows = self._summary["variables"]
        columns = {key: [row[key] for row in rows] for key in _COLUMNS}
        return make_frame(columns, self._library)

    def __repr__(self) -> str:
        data, target = self._summary["dataset"], self._summary["target"]
        return printable(
            f"<Report on {data['name']}: {data['informative']} of {data['variables']} variables "
            f"inform {target['name']}>"
        )

    def _repr_html_(self) -> str:
        page = html.escape(render_page(self._summary, made=self._made), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0" title="Report"></iframe>'


_COLUMNS = ("name", "type", "parts", "level", "missing")


def explore(
    X: Any,
    y: Any,
    *,
    name: str = "table",
    target_name: str = "target",
    classifier: bool = True,
    grid_seconds: float = 10.0,
    labels: LabelStyle = "plain",
    target: TargetType = "auto",
    n_jobs: int | None = None,
) -> Report:
    """Report which columns inform a target, how much, and how.

    Parameters
    ----------
    X : data frame, 2-D array or dict of columns
        The inputs.
    y : array-like of shape (n_rows,)
        The classes, or numbers.
    name, target_name : str
        What the report calls the data and the target.
    classifier : bool, default=True
        Whether to score a naive Bayes on all columns by cross-validation.
    grid_seconds : float, default=10.0
        Time for the search of a grid and of pairs; 0 leaves them out.
    labels : {"plain", "brackets"}, default="plain"
        Intervals written ``12 < x ≤ 26`` or ``]12, 26]``.
    target : {"auto", "number", "classes"}, default="auto"
        What y is. "auto" takes fractional numbers, and whole numbers of very many values, for a number, and
        anything else for classes.
    n_jobs : int, optional
        Threads; -1 for one per core.

    Returns
    -------
    Report

    Examples
    --------
    >>> from damier import explore
    >>> X = {"size": [1, 2, 3, 4, 5, 6] * 10, "colour": ["red", "blue", "green"] * 20}
    >>> y = ["small", "small", "small", "large", "large", "large"] * 10
    >>> report = explore(X, y, name="toys", target_name="class", grid_seconds=0)
    >>> report
    <Report on toys: 1 of 2 variables inform class>
    """
    started = time.monotonic()
    table, read = read_table(X), explored_target(y, target)
    if table.n_rows != len(read.codes):
        raise ValueError(f"X has {table.n_rows:,} rows and y has {len(read.codes):,}: give as many of each.")
    command = f"damier.explore(X, y, name={name!r}, target_name={target_name!r})"
    if isinstance(read, NumericTarget):
        if read.n_distinct < 2:
            raise ValueError("The target is constant: at least two different numbers are needed.")
        summary = analyze_number(
            table,
            read,
            dataset=name,
            target_name=target_name,
            regressor=classifier,
            grid_seconds=grid_seconds,
            labels=labels,
            n_threads=count_threads(n_jobs),
        )
        return Report(summary, table.library, how_made(command, time.monotonic() - started))
    if read.n_classes < 2:
        raise ValueError("The target is constant: at least two classes are needed.")
    summary = analyze(
        table,
        read,
        dataset=name,
        target_name=target_name,
        classifier=classifier,
        grid_seconds=grid_seconds,
        labels=labels,
        n_threads=count_threads(n_jobs),
    )
    return Report(summary, table.library, how_made(command, time.monotonic() - started))
