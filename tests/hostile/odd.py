"""Values, columns and frames of odd kinds."""

from __future__ import annotations

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

TEXTS = [
    "a",
    "b",
    "",
    " ",
    "é",
    "東京",
    "a\ud800",
    "\x1b[2J",
    "nan",
    "None",
    "1",
    "1.0",
    "<b>",
    "=1+1",
    "\u202e",
    "x" * 300,
]
FLOATS = [0.0, -0.0, 1.0, 1.5, -1e308, 1e308, 5e-324, np.nan, np.inf, -np.inf, 2.0**53, 0.1]
INTS = [0, 1, -1, 2, 2**31, -(2**63), 2**63 - 1, 2**53, 2**53 + 1]
DAYS = [datetime.date(2020, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]
TIMES = [datetime.datetime(2020, 1, 1, 3), datetime.datetime(1970, 1, 1), None]
ODD = [
    decimal.Decimal("1.5"),
    decimal.Decimal("NaN"),
    fractions.Fraction(1, 3),
    True,
    None,
    pd.NA,
    pd.NaT,
    10**400,
    datetime.time(3),
    datetime.timedelta(1),
    np.float32(1.5),
    np.datetime64("NaT"),
    pd.Interval(0, 1),
]
WRONG = [b"bytes", [1, 2], {"a": 1}, (1,), 1 + 2j, object()]


def odd_column(rng, n, hidden=None):
    """Values of one odd kind, and what holds them; hidden classes show in most of them."""
    shown = rng.integers(0, 9, n) if hidden is None else hidden + (rng.random(n) < 0.1)

    def some(values):
        few = [values[i] for i in rng.integers(0, len(values), rng.integers(1, 6))]
        return [few[i % len(few)] for i in shown]

    kind = int(rng.integers(0, 16))
    match kind:
        case 0 | 1:
            return rng.normal(size=n) + 2 * shown
        case 2:
            return np.array(some(FLOATS))
        case 3:
            return np.array(some(INTS), dtype=np.int64)
        case 4:
            return np.array(some(TEXTS), dtype=object)
        case 5:
            return pd.Series(some(TEXTS[:6]), dtype="category").cat.add_categories(["unused"])
        case 6:
            return np.array(some([True, False]))
        case 7:
            return np.array(some(DAYS), dtype="datetime64[D]")
        case 8:
            return pd.Series(pd.to_datetime(pd.Series(some(TIMES))).dt.tz_localize("Europe/Paris"))
        case 9:
            return pd.Series(some([1, 2, None, 2**53 + 1]), dtype="Int64")
        case 10:
            return np.array(some([*ODD, *TEXTS[:3], *INTS[:3]]), dtype=object)
        case 11:
            return np.array(some(ODD[:5]), dtype=object)
        case 12:
            return np.array(some([np.timedelta64(1, "D"), np.timedelta64("NaT", "D")]))
        case 13:
            return np.ma.masked_array(rng.normal(size=n) + shown, mask=rng.random(n) < 0.3)
        case 14:
            column = np.empty(n, dtype=object)
            column[:] = some([*WRONG, 1])
            return column
        case _:
            return np.array(some([None]), dtype=object)


def container(rng, columns):
    """Hold columns in a library of the trade, or as they are where it does not take them."""
    form = int(rng.integers(0, 6))
    if form == 3 and any(isinstance(v, np.datetime64) for c in columns.values() for v in list(c)):
        form = 1  # pyarrow 26 crashes on a moment without a unit beside a number
    if form == 0 or any(isinstance(c, np.ma.MaskedArray) for c in columns.values()):
        return columns
    try:
        if form == 1:
            return pd.DataFrame(columns)
        if form == 2:
            return pl.DataFrame(
                {name: pl.Series(name, np.asarray(c).tolist()) for name, c in columns.items()}
            )
        if form == 3:
            return pa.table({name: pa.array(np.asarray(c).tolist()) for name, c in columns.items()})
        if form == 4:
            return np.array([np.asarray(c).tolist() for c in columns.values()], dtype=object).T
    except (Exception, pl.exceptions.PanicException):  # their refusal, not ours
        pass
    return columns


def take(X, order):
    if isinstance(X, dict):
        return {name: c.iloc[order] if isinstance(c, pd.Series) else c[order] for name, c in X.items()}
    if isinstance(X, pd.DataFrame):
        return X.iloc[order].reset_index(drop=True)
    return X.take(order) if isinstance(X, pa.Table) else X[order]


def same_in_every_library(rng, n, hidden):
    """Columns that every frame library holds alike, and the frames; hidden classes show in some."""
    columns = {}
    for name in ("x", "count", "é")[: int(rng.integers(1, 4))]:
        match int(rng.integers(0, 7)):
            case 0:
                columns[name] = rng.choice([0.5, -0.0, 0.0, 1e308, np.nan, np.inf, 3.0], n)
            case 1:
                columns[name] = rng.permutation(np.array(INTS))[hidden]
            case 2:
                texts = rng.permutation(np.array([t for t in TEXTS if t.isprintable()], object))
                columns[name] = texts[hidden + (rng.random(n) < 0.2)]
            case 3:
                columns[name] = rng.random(n) < 0.5
            case 4:
                columns[name] = rng.integers(-(10**15), 10**15, n).astype("datetime64[us]")
            case 5:
                columns[name] = hidden + rng.normal(size=n)
            case _:
                columns[name] = rng.choice(np.array(["a", None, ""], object), n)
    lists = {name: c.tolist() for name, c in columns.items()}
    return columns, [
        pd.DataFrame(columns),
        pl.DataFrame({name: pl.Series(name, c) for name, c in lists.items()}),
        pa.table({name: pa.array(c) for name, c in lists.items()}),
    ]
