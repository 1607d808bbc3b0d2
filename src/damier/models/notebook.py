"""Models as they show in a notebook: a small table with bars, every text from the data escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

# Those of the report's page; classes beyond share the last one.
_COLOURS = ("#2f6db3", "#e58a2e", "#3a9a77", "#c9507c", "#8568c4", "#b8991f", "#45a5c4", "#9a5b3a")
_OTHER = "#a9aeb6"
_FULLER, _EMPTIER = "#d2602c", "#3f7cc4"
_WIDTH, _HEIGHT, _MATRIX = 180, 12, 220
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


def block_matrix(cells: Any, expected: Any) -> Html:
    """Draw blocks as large as the roots of their instances: warm where fuller than expected, else cool.

    >>> "12 instances, 6.0 expected" in block_matrix([[12, 0], [0, 12]], [[6, 6], [6, 6]])
    True
    """
    counts, means = np.asarray(cells, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    down, across = (np.append(0, np.cumsum(np.sqrt(counts.sum(axis=k)))) for k in (1, 0))
    down, across = down / down[-1] * _MATRIX, across / across[-1] * _MATRIX
    shades = np.log2((counts + 0.5) / (means + 0.5)) / 4
    drawn = [
        f'<rect x="{across[j]:.1f}" y="{down[i]:.1f}" width="{across[j + 1] - across[j]:.1f}" '
        f'height="{down[i + 1] - down[i]:.1f}" fill="{_FULLER if shades[i, j] > 0 else _EMPTIER}" '
        f'fill-opacity="{min(1.0, abs(shades[i, j])):.2f}">'
        f"<title>{counts[i, j]:,.0f} instances, {means[i, j]:,.1f} expected</title></rect>"
        for i, j in np.ndindex(counts.shape)
    ]
    return _svg(drawn, _MATRIX, _MATRIX)


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


def _svg(drawn: Sequence[str], width: int = _WIDTH, height: int = _HEIGHT) -> Html:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Html(f'<svg {size} role="img">{"".join(drawn)}</svg>')
