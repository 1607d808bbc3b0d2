"""What the cells of a text file stand for: numbers, dates, marks of a missing value.

A :class:`Reading` turns cells into numbers by an expression of DuckDB. :func:`find_reading` proposes one
from some cells of a column; the caller applies it to all of them, counts, and decides.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from damier.intake.table import NumericKind

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan"})
"""Missing in every column, in any case."""

WEAK = frozenset({"none", "null", "-", "--", "?", ".", "n.d.", "nd"})
"""Missing in columns of numbers or dates, in any case; values elsewhere."""

NEARLY = 0.95
"""Share of the cells that must be numbers (or dates) for the column to be numeric."""

PLAUSIBLE = 0.5
"""Share from which a reading is tried, and named when the column stays text."""

SPACES = " \t\r\n\v\f\u00a0\u202f"
_TRIED = 200


def literal(text: str) -> str:
    """Write a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Write a name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Reading:
    """A way to turn cells into numbers.

    Parameters
    ----------
    kind : str
        What the numbers stand for.
    sql : str
        A DOUBLE, or NULL where the cell is something else; ``{c}`` stands for the cell.
    remark : str
        What a note says when this reading was not the only one possible.
    """

    kind: NumericKind
    sql: str
    remark: str = ""

    def of(self, cell: str) -> str:
        """Write the expression for a column."""
        return self.sql.replace("{c}", cell)


_TRIMMED = f"trim({{c}}, {literal(SPACES)})"
_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_WHOLE = "(?:0|[1-9][0-9]*)"
_MARKS = " '\u00a0\u202f"
_UNITS = "$€£¥%"


def _amount(thousands: str, decimal: str) -> str:
    return (
        f"[+-]? ?[$€£¥]? ?[+-]?(?:[1-9][0-9]{{0,2}}(?:[{thousands}{_MARKS}][0-9]{{3}})+|{_WHOLE})?"
        f"(?:[{decimal}][0-9]*)?{_EXPONENT}[ \u00a0\u202f]?[{_UNITS}]?"
    )


_COMMA, _MONEY = _amount(".", ","), _amount(",", ".")


def _checked(pattern: str, number: str) -> str:
    return (
        f"CASE WHEN regexp_full_match({_TRIMMED}, {literal(pattern)}) THEN TRY_CAST({number} AS DOUBLE) END"
    )


# DuckDB reads 007 and 1_000 as numbers; the first is a code, the second no number of a data file.
PLAIN = Reading(
    "number",
    "CASE WHEN {c} >= '00' AND {c} < '0:' AND NOT contains({c}, '.') OR contains({c}, '_') THEN NULL "
    "ELSE TRY_CAST({c} AS DOUBLE) END",
)
COMMA = Reading(
    "number",
    _checked(_COMMA, f"replace(translate({_TRIMMED}, {literal(_UNITS + '.' + _MARKS)}, ''), ',', '.')"),
    "with decimal commas",
)
MONEY = Reading(
    "number",
    _checked(_MONEY, f"translate({_TRIMMED}, {literal(_UNITS + ',' + _MARKS)}, '')"),
    "without their marks of thousands, currency or percent",
)
ISO = Reading("datetime", "epoch_us(TRY_CAST({c} AS TIMESTAMPTZ))::DOUBLE")
ISO_DAY = Reading("date", ISO.sql)

_ZEROS = re.compile(r"[+-]?0[0-9]+")
_IS_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_IS_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?")
_IS_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)\.?[0-9]*|0[0-9]*\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?",
    re.IGNORECASE,
)
_IS_COMMA, _IS_MONEY = re.compile(_COMMA), re.compile(_MONEY)
_MAY_BE_DATE = re.compile(r"\d+[/.:-]\d|[A-Za-z]{3,9}\.?[ -]\d|\d{1,2}[ -][A-Za-z]{3}")


def is_code(cell: str) -> bool:
    """Return whether a cell is a code with leading zeros, such as a post code."""
    return _ZEROS.fullmatch(cell.strip()) is not None


def is_missing(cell: str, marks: Iterable[str] = ()) -> bool:
    """Return whether a cell is missing in every column."""
    stripped = cell.strip()
    return stripped.lower() in MISSING or stripped in marks


def is_weak(cell: str) -> bool:
    """Return whether a cell is missing among numbers and dates."""
    return cell.strip().lower() in WEAK


def find_reading(cells: Iterable[str], comma: bool | None = None) -> tuple[Reading | None, float]:
    """Propose how to read the cells of a column.

    Parameters
    ----------
    cells : iterable of str
        Some cells of the column, none missing.
    comma : bool, optional
        Whether the comma is the decimal mark: True, False, or None when it is not known.

    Returns
    -------
    Reading or None
        The reading most of the cells fit, None when less than half of them fit any.
    float
        The share that fits.

    Examples
    --------
    >>> find_reading(["1", "2.5", "x"])[1]
    0.6666666666666666
    >>> find_reading(["$4,000", "$12.50"])[0] is MONEY, find_reading(["2,6", "3"])[0] is COMMA
    (True, True)
    >>> find_reading(["10/03/2004", "25/12/2004"])[0].kind
    'date'
    """
    stripped = [cell.strip() for cell in cells]
    stripped = [cell for cell in stripped if cell.lower() not in WEAK]
    if not stripped:
        return None, 0.0
    patterns = [(PLAIN, _IS_NUMBER), (MONEY, _IS_MONEY)]
    if comma is not False:
        patterns.insert(0 if comma else len(patterns), (COMMA, _IS_COMMA))
    patterns += [(ISO_DAY, _IS_DAY), (ISO, _IS_MOMENT)]
    best: tuple[Reading | None, float] = (None, 0.0)
    for reading, pattern in patterns:
        share = sum(map(bool, map(pattern.fullmatch, stripped))) / len(stripped)
        if share > best[1]:
            best = reading, share
        if share == 1.0:
            return best
    days = sum(1 for cell in stripped if _IS_DAY.fullmatch(cell) or _IS_MOMENT.fullmatch(cell))
    if days / len(stripped) > best[1]:
        best = ISO, days / len(stripped)
    if best[1] < PLAUSIBLE:
        best = _find_date(stripped)
    return best if best[1] >= PLAUSIBLE else (None, best[1])


_DATES = [
    *(f"{a}{s}{b}{s}{c}" for a, b, c in ("dmY", "mdY", "Ymd", "dmy", "mdy") for s in "/.-"),
    *("b-y", "b y", "b-Y", "b Y", "B Y", "B-Y", "d-b-y", "d-b-Y", "d b y", "d b Y", "d B Y"),
    *("b d, Y", "B d, Y", "b d Y", "B d Y", "d/b/Y"),
]
_TIMES = ["H:M:S", "H:M", "H.M.S", "I:M p", "I:M:S p", "H:M:S.f"]


def _spelled(date: str, time: str) -> str:
    """Write a format for strptime; letters of ``date`` and ``time`` are its directives."""
    return re.sub("([A-Za-z])", r"%\1", " ".join(filter(None, (date, time))))


_SPELLED = {"Y": r"\d{4}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]{3,9}", "f": r"\d{1,6}", "p": "[AaPp][Mm]"}


@cache
def _pattern(spelled: str) -> re.Pattern[str]:
    """Compile what a text in this format looks like: strptime is slow to refuse one that does not."""
    return re.compile(
        re.sub("%(.)", lambda found: _SPELLED.get(found[1], r"\d{1,2}"), spelled.replace(".", r"\."))
    )


def _find_date(cells: list[str]) -> tuple[Reading | None, float]:
    """Find the format most cells follow; day first where both fit equally."""
    tried = [cell for cell in cells if _MAY_BE_DATE.match(cell)][:_TRIED]
    if len(tried) < PLAUSIBLE * min(len(cells), _TRIED):
        return None, 0.0
    best, best_share = ("", ""), 0.0
    shares: dict[tuple[str, str], float] = {}
    for date, time in itertools.product(["", *_DATES], ["", *_TIMES]):
        spelled = _spelled(date, time)
        if not spelled or not any(_follows(cell, spelled) for cell in tried[:3]):
            continue
        shares[date, time] = sum(_follows(cell, spelled) for cell in tried) / len(tried)
        if shares[date, time] > best_share:
            best, best_share = (date, time), shares[date, time]
    if best_share < PLAUSIBLE:
        return None, best_share
    date, time = best
    other = date.replace("d", "#").replace("m", "d").replace("#", "m")
    doubtful = other != date and shares.get((other, time)) == best_share
    remark = _order_of(date)
    if doubtful:
        remark += " (month first would fit as well)"
    return _date_reading(date, time, remark), best_share * len(tried) / min(len(cells), _TRIED)


def _order_of(date: str) -> str:
    if "m" not in date or date.startswith("Y"):
        return ""
    return "day first" if date.startswith("d") else "month first"


def _follows(cell: str, spelled: str) -> bool:
    if not _pattern(spelled).fullmatch(cell):
        return False
    try:
        datetime.datetime.strptime(cell, spelled)
    except ValueError:
        return False
    return True


def _date_reading(date: str, time: str, remark: str) -> Reading:
    moment = f"try_strptime({_TRIMMED}, {literal(_spelled(date, time))})"
    if not date:
        return Reading(
            "time", f"(epoch_us({moment}) - epoch_us(date_trunc('day', {moment})))::DOUBLE", remark
        )
    if "y" in date:  # 30 to 99 are of the twentieth century, as in spreadsheets
        moment = (
            f"({moment} - CASE WHEN year({moment}) >= 2030 THEN INTERVAL 100 YEAR ELSE INTERVAL 0 YEAR END)"
        )
    return Reading("datetime" if time else "date", f"epoch_us({moment})::DOUBLE", remark)
