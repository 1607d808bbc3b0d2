"""Text from the data, made safe to print and to open in a spreadsheet."""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), which a terminal obeys; what turns the direction of writing or breaks
# lines; what no encoding can write (lone surrogates).
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# What a spreadsheet takes as the beginning of a formula, full-width signs too.
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def printable(text: object) -> str:
    r"""Write what a terminal would obey instead of showing it as an escape.

    Parameters
    ----------
    text : object
        Its ``str`` is taken.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    >>> print(printable("\u202ecba"), printable("two\nlines"))
    \u202ecba two\nlines
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def without_formula(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; leave numbers alone.

    Examples
    --------
    >>> without_formula("=1+2"), without_formula("-5"), without_formula("north")
    ("'=1+2", '-5', 'north')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
