"""Dates, times and durations as numbers of microseconds, and back as text.

A microsecond is fine enough for what people record and exact in a float64 until the year 2255; finer
digits are dropped when a column is read.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from damier.intake.table import FloatArray, NumericKind

_EPOCH = np.datetime64(0, "us")
_DAY = 86_400_000_000


def microseconds(values: npt.NDArray[Any]) -> FloatArray:
    """Microseconds of a datetime64 or timedelta64 array, NaN for NaT.

    >>> microseconds(np.array(["1970-01-02", "NaT"], dtype="M8[D]"))
    array([8.64e+10,      nan])
    """
    unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    exact = values.astype(unit)
    result = exact.view(np.int64).astype(np.float64)
    result[np.isnat(exact)] = np.nan
    return result


def object_microseconds(value: Any) -> float:
    """Microseconds of one Python date, datetime, time or timedelta."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return float((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days * _DAY)
    if isinstance(value, datetime.time):
        return float(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)
    return float(value // datetime.timedelta(microseconds=1))


def _zone(name: str) -> datetime.tzinfo:
    """Find a time zone by its name or offset; UTC when this machine does not know it."""
    if found := re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})", name):
        offset = datetime.timedelta(hours=int(found[2]), minutes=int(found[3]))
        return datetime.timezone(-offset if found[1] == "-" else offset)
    import zoneinfo  # here: few columns have a zone

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.UTC


def number_text(value: float, kind: NumericKind, legend: tuple[Any, ...] = ()) -> str:
    """Write a number of a column for people, as a date when it is one.

    A bound between two dates is written as the last date on its left: what is read is what is applied. So is
    a bound between two ranks. ``legend`` is that of the column: a datetime is written in its time zone.

    >>> number_text(12345678901.5, "number")
    '12345678901.5'
    >>> number_text(2.5, "number"), number_text(1.5 * 86_400e6, "date"), number_text(3.6e9, "duration")
    ('2.5', '1970-01-02', '1:00:00')
    >>> number_text(-3.6e9, "duration"), number_text(0.5, "rank", ("low", "high"))
    ('-1:00:00', 'low')
    >>> number_text(0.0, "datetime", ("Asia/Tokyo",))
    '1970-01-01 09:00:00+09:00'
    """
    if not math.isfinite(value):
        return "-inf" if value < 0 else "+inf"
    if kind == "number":
        # Ten digits do, but a bound between two whole numbers must not be rounded across one of them.
        between_wholes = (2 * value).is_integer() and abs(value) < 2.0**53
        return repr(float(value)).removesuffix(".0") if between_wholes else f"{value:.10g}"
    whole = math.floor(value)
    if kind == "rank":
        return str(legend[whole]) if 0 <= whole < len(legend) else f"{value:.10g}"
    try:
        if kind == "date":
            return str((_EPOCH + np.timedelta64(whole, "us")).astype("datetime64[D]"))
        if kind == "datetime" and legend:
            moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
                microseconds=whole
            )
            return str(moment.astimezone(_zone(str(legend[0]))))
        if kind == "datetime":
            text = str(_EPOCH + np.timedelta64(whole, "us")).replace("T", " ")
            return text.removesuffix(".000000")
        duration = datetime.timedelta(microseconds=whole)
        if kind == "time" and 0 <= whole < _DAY:
            return (datetime.datetime.min + duration).time().isoformat()
        return f"-{-duration}" if whole < 0 else str(duration)
    except OverflowError:
        return f"{value:.10g}"
