"""Scripts as a page holds them: without comments, indentation, and spaces that mean nothing.

Texts, templates and regular expressions are kept as they are; lines stay lines, so that nothing
hangs on where a statement ends.
"""

from __future__ import annotations

import re

# A slash after one of these begins a regular expression; after a name, a number or a bracket it divides.
_BEFORE_REGEX = "(,=:[!&|?{};+-*%~^<>"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'")
_REGEX = re.compile(r"/(?![/*])(?:\[(?:[^\]\\]|\\.)*\]|[^/\\\[]|\\.)+/[a-z]*")
_WORD = re.compile(r"[\w$]")


def compact(script: str) -> str:
    """Leave out of a script what a browser does not need.

    Parameters
    ----------
    script : str
        Comments stand on lines of their own or follow a space at the end of a line; no text goes over
        several lines.

    Examples
    --------
    >>> print(compact('''
    ... // a comment
    ... const add = (a, b) => a + b;  // another
    ...   const text = `${add(1, 2)} is  3`, find = /a - b/g, less = 4 / 2 / 1, minus = 1 - -1;
    ... '''))
    const add=(a,b)=>a+b;
    const text=`${add(1,2)} is  3`,find=/a - b/g,less=4/2/1,minus=1- -1;
    """
    lines = (_line(line.strip()) for line in script.splitlines())
    return "\n".join(line for line in lines if line)


def _line(line: str) -> str:
    out: list[str] = []  # characters and whole texts
    templates: list[int] = []  # braces open in the templates that this place is inside of
    at, space = 0, False
    while at < len(line):
        char = line[at]
        if char in " \t":
            space, at = True, at + 1
            continue
        last = out[-1][-1:] if out else ""
        if line.startswith("//", at) and (not out or space):
            break
        # Two words, or two signs that would become another sign, keep their space.
        joins = _WORD.match(last) and _WORD.match(char) if last else False
        if space and (joins or (last == char and char in "+-")):
            out.append(" ")
        space = False
        taken = None
        if char in "\"'":
            taken = _QUOTED.match(line, at)
        elif char == "/" and (not last or last in _BEFORE_REGEX or _after_return(out)):
            taken = _REGEX.match(line, at)
        if taken is not None:
            out.append(taken.group())
            at = taken.end()
        elif char == "`":
            at = _template(line, at + 1, "`", out, templates)
        elif templates and char == "}" and templates[-1] == 0:
            templates.pop()
            at = _template(line, at + 1, "}", out, templates)
        else:
            if templates:
                templates[-1] += (char == "{") - (char == "}")
            out.append(char)
            at += 1
    return "".join(out)


def _after_return(out: list[str]) -> bool:
    return "".join(out[-7:]).rstrip().endswith("return")


def _template(line: str, at: int, opened: str, out: list[str], templates: list[int]) -> int:
    """Take the text of a template up to its end or to code within it; return where to go on."""
    begin = at
    while line[at] != "`":
        if line.startswith("${", at):
            out.append(opened + line[begin : at + 2])
            templates.append(0)
            return at + 2
        at += 2 if line[at] == "\\" else 1
    out.append(opened + line[begin : at + 1])
    return at + 1
