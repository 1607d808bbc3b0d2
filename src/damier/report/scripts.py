"""Scripts as a page holds them: without what means nothing, and with short names of variables.

Texts, templates and regular expressions are kept as they are. Lines are joined only behind a sign after which
a statement cannot end, or has ended. A variable has a short name where its word is a variable everywhere:
never a property, a key, or a name of the browser's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from string import ascii_lowercase

# A slash after one of these begins a regular expression; after a name, a number or a bracket it divides.
_BEFORE_REGEX = "(,=:[!&|?{};+-*%~^<>"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'")
_REGEX = re.compile(r"/(?![/*])(?:\[(?:[^\]\\]|\\.)*\]|[^/\\\[]|\\.)+/[a-z]*")
_WORD = re.compile(r"[\w$]+")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
# What stands before the brace of a block; before other braces an object begins, or its pattern.
_BEFORE_BLOCK = {")", ">", "else", "try", "catch", "finally", ";", "{", "}", "\n", ""}
# Words that are also names of the browser's.
_TAKEN = {"event", "find", "focus", "name", "open", "parent", "print", "scroll", "status", "stop", "top"}
_SIGN = re.compile(r"\+\+|--|[^\w\s]")


def compact(script: str) -> str:
    """Leave out of a script what a browser does not need.

    Parameters
    ----------
    script : str
        Comments stand on lines of their own or follow a space at the end of a line, every statement ends with
        a semicolon or a brace and none is empty, and no text goes over several lines.

    Examples
    --------
    >>> print(compact('''
    ... // a comment
    ... const add = (a, b) => a + b;  // another
    ... const text = `${add(1, 2)} is  3`, find = /a - b/g;
    ... if (text) {
    ...   const half = (x) => x / 2;
    ...   half(- -1);
    ... }
    ... add();
    ... '''))
    const aa=(a,b)=>a+b,ac=`${aa(1,2)} is  3`,find=/a - b/g;if(ac){const ab=x=>x/2;ab(- -1)}
    aa();
    """
    return _joined(_shorter(_fewer(_lines(script)))).rstrip("\n")


def _lines(script: str) -> list[str]:
    tokens: list[str] = []
    for line in script.splitlines():
        found = list(_tokens(line.strip()))
        if not found:
            continue
        if tokens and tokens[-1] not in "{;,([" and found[0] not in "})],":
            tokens.append("\n")
        tokens += found
    return tokens


def _tokens(line: str) -> Iterator[str]:
    """Cut a line into words, signs, and texts; the texts of a template end where code within it begins."""
    inside: list[int] = []  # braces open in the code within each template that this place is in
    at, last = 0, ""
    while at < len(line):
        char = line[at]
        if char in " \t":
            at += 1
            continue
        if line.startswith("//", at) and (at == 0 or line[at - 1] == " "):
            return
        taken = None
        if char in "\"'":
            taken = _QUOTED.match(line, at)
        elif char == "/" and (not last or last[-1] in _BEFORE_REGEX or last == "return"):
            taken = _REGEX.match(line, at)
        elif char == "`" or (char == "}" and inside and inside[-1] == 0):
            if char == "}":
                inside.pop()
            last, at = _template(line, at)
            if last.endswith("${"):
                inside.append(0)
            yield last
            continue
        else:
            taken = _WORD.match(line, at) or _SIGN.match(line, at)
        if inside and char in "{}":
            inside[-1] += 1 if char == "{" else -1
        last = char if taken is None else taken.group()
        at += len(last)
        yield last


def _template(line: str, begin: int) -> tuple[str, int]:
    """Take the text of a template up to its end or to code within it; say where to go on."""
    at = begin + 1
    while line[at] != "`" and not line.startswith("${", at):
        at += 2 if line[at] == "\\" else 1
    at += 1 if line[at] == "`" else 2
    return line[begin:at], at


def _fewer(tokens: list[str]) -> list[str]:
    """Leave out brackets of a single parameter, semicolons before a brace, every ``const`` but one."""
    kept: list[str] = []
    begins = [""]  # by open bracket, the word that the statement at hand begins with
    fresh = True  # whether a statement begins here
    at = 0
    while at < len(tokens):
        token = tokens[at]
        single = tokens[at + 2 : at + 5] == [")", "=", ">"] and _WORD.fullmatch(tokens[at + 1])
        if token == "(" and single and not (kept and _WORD.fullmatch(kept[-1])):
            kept.append(tokens[at + 1])
            at += 3
            continue
        if fresh:
            begins[-1] = token
        fresh = False
        if token in ("(", "[", "{") or token.endswith("${"):
            begins.append("")
            fresh = token == "{"
        elif token in (")", "]", "}") or (token[0] == "}" and len(begins) > 1):
            begins.pop()
            if token[0] == "}" and token.endswith("${"):
                begins.append("")
        elif token == "\n":
            fresh = True
        elif token == ";":
            follows = tokens[at + 1] if at + 1 < len(tokens) else ""
            if follows == "}":
                at += 1
                continue
            if follows == "const" and begins[-1] == "const":
                kept.append(",")
                at += 2
                continue
            fresh = True
        kept.append(token)
        at += 1
    return kept


def variables(tokens: list[str]) -> set[str]:
    """Find the words that are names of variables wherever they stand."""
    declared, others = set(), set()
    brackets = [""]  # those open: "(", "[", "${", "{" of a block, "{}" of an object
    for at, token in enumerate(tokens):
        last = tokens[at - 1] if at else ""
        follows = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token[0] in ")]}" and len(brackets) > 1:
            brackets.pop()
        if token in ("(", "[") or token.endswith("${"):
            brackets.append(token[-1])
        elif token == "{":
            brackets.append("{" if last in _BEFORE_BLOCK else "{}")
        if not _NAME.fullmatch(token):
            continue
        spread = tokens[max(0, at - 3) : at] == [".", ".", "."]
        key = brackets[-1] == "{}" and last in ("{", ",") and follows in (",", "}", "=", "(")
        if (last == "." and not spread) or follows == ":" or key:
            others.add(token)
        listed = last == "," and follows == "=" and brackets[-1] in ("{", "")
        if last in ("const", "let") or listed or tokens[at + 1 : at + 3] == ["=", ">"]:
            declared.add(token)
    return declared - others - _TAKEN


def _shorter(tokens: list[str]) -> list[str]:
    """Give variables names of two letters that occur nowhere else, the most frequent first."""
    words = Counter(token for token in tokens if _NAME.fullmatch(token))
    free = (name for pair in product(ascii_lowercase, repeat=2) if (name := "".join(pair)) not in words)
    found = sorted((word for word in variables(tokens) if len(word) > 2), key=lambda w: (-words[w], w))
    short = {
        word: name for word, name in zip(found, free, strict=False) if name not in ("do", "if", "in", "of")
    }
    return [short.get(token, token) for token in tokens]


def _joined(tokens: list[str]) -> str:
    out: list[str] = []
    for token in tokens:
        last = out[-1] if out else ""
        # Two words, or two signs that would become another sign, keep a space.
        words = last and _WORD.match(last[-1]) and _WORD.match(token[0])
        if words or (last[-1:] == token[0] and token[0] in "+-"):
            out.append(" ")
        out.append(token)
    return "".join(out)
