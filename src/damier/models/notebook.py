"""Models as they show in a notebook: a small table with bars, every text from the data escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

# Those of the report's page; classes beyond share the last one.
_COLOURS = ("#2f6db3", "#e58a2e", "#3a9a77", "#c9507c", "#8568c4", "#b8991f", "#45a5c4", "#9a5b3a")
_OTHER = "#a9aeb6"
_WIDTH, _HEIGHT = 180, 12
_LONGEST_TEXT = 160
MOST_ROWS = 20


class Html(str):
    """Text that is HTML already."""


def one_line(text: Any) -> str:
    """Write a text from the data on one line, cut where it gets long.

    >>> one_line("two  words")
    'two words'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"


def counted(n: int, word: str) -> str:
    """Write a number of things.

    >>> counted(1, "group"), counted(1200, "group")
    ('1 group', '1,200 groups')
    """
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}{'es' if word.endswith('s') else 's'}"


def class_bar(shares: Any, classes: Sequence[Any]) -> Html:
    """Draw the shares of the classes as one bar.

    >>> "yes 75%" in class_bar([1, 3], ["no", "yes"])
    True
    """
    held = np.asarray(shares, dtype=np.float64)
    total = held.sum()
    drawn, start = [], 0.0
    for j in np.flatnonzero(held > 0).tolist():
        share = held[j] / total
        title = escape(f"{one_line(classes[j])} {share:.0%}")
        drawn.append(
            f'<rect x="{start * _WIDTH:.1f}" width="{share * _WIDTH:.1f}" height="{_HEIGHT}" '
            f'fill="{_colour(j)}"><title>{title}</title></rect>'
        )
        start += share
    return _svg(drawn)


def level_bar(level: float) -> Html:
    """Draw a share between 0 and 1 as a bar that is as long."""
    width = min(1.0, max(0.0, level)) * _WIDTH
    return _svg([f'<rect width="{width:.1f}" height="{_HEIGHT}" fill="{_COLOURS[0]}"/>'])


def bar_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], *, classes: Sequence[Any] = ()
) -> str:
    """Write a table, the first of many rows, and the colours of the classes if there are any.

    Parameters
    ----------
    title : str
        What the model is, in one line.
    header : sequence of str
    rows : iterable of sequences
        Cells: `Html` as it is, anything else as escaped text.
    classes : sequence, optional
        Classes that the bars of the rows show.
    """
    held = list(rows)
    style = 'style="text-align:left;vertical-align:top;padding:1px 12px 1px 0"'
    written = [f'<div style="font-size:13px"><div>{escape(title)}</div>']
    legend = " ".join(
        f'<span style="white-space:nowrap"><span style="color:{_colour(j)}">&#9632;</span> '
        f"{escape(one_line(c))}</span>"
        for j, c in enumerate(classes[: len(_COLOURS)])
    )
    if legend:
        more = len(classes) - len(_COLOURS)
        legend += f' <span style="color:{_OTHER}">&#9632;</span> {more:,} more' if more > 0 else ""
        written.append(f"<div>{legend}</div>")
    heads = "".join(f"<th {style}>{escape(name)}</th>" for name in header)
    written.append(f"<table><thead><tr>{heads}</tr></thead><tbody>")
    for row in held[:MOST_ROWS]:
        cells = "".join(f"<td {style}>{_cell(cell)}</td>" for cell in row)
        written.append(f"<tr>{cells}</tr>")
    written.append("</tbody></table>")
    if len(held) > MOST_ROWS:
        written.append(f"<div>... and {len(held) - MOST_ROWS:,} more</div>")
    return "".join(written) + "</div>"


def _cell(cell: Any) -> str:
    if isinstance(cell, Html):
        return cell
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return escape(f"{cell:,}" if type(cell) is int else one_line(cell))


def _colour(j: int) -> str:
    return _COLOURS[j] if j < len(_COLOURS) else _OTHER


def _svg(drawn: Sequence[str]) -> Html:
    return Html(
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(drawn)}</svg>'
    )
