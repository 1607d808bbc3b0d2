"""Hostile inputs by number: each kind is a function of a seed that raises where a promise is broken.

Shared by the tests, which try some thousands, and by ``python -m benchmarks.hostile``, which tries as many as
it is asked to. A case that fails is had again by its kind and its seed: ``KINDS["tables"](17)``.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import fractions
import functools
import html.parser
import inspect
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from rich.console import Console
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import DataConversionWarning
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy.json import dumps, loads
from damier.intake import read_file
from damier.models.codec import find_kinds
from damier.report import (
    classifier_line,
    grid_lines,
    render_coclustering,
    render_page,
    summarize_coclustering,
    summarize_grid,
    summarize_pairs,
    variables_table,
)
from damier.report.summary import summarize
from tests.deploy import test_mutations as spoilt


class Broken(AssertionError):  # noqa: N818
    """A promise that does not hold."""


def refused(error):
    """Accept an error that was raised on purpose: by our code, or by scikit-learn's checks of tables."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename.replace(os.sep, "/")
    ours = "/damier/" in place or place.endswith("sklearn/utils/validation.py")
    if not ours or not isinstance(error, ValueError | TypeError):
        raise Broken(f"{type(error).__name__} from {place.rsplit('/', 2)[-1]}: {error}") from error
    if len(str(error)) < 10:
        raise Broken(f"not a sentence: {error!r}") from error


def only_our_warnings(caught):
    for one in caught:
        ours = "/damier/" in one.filename.replace(os.sep, "/") and one.category is UserWarning
        if not ours and one.category is not DataConversionWarning and "feature names" not in str(one.message):
            raise Broken(f"warning {one.category.__name__}: {one.message}")


# ----- tables

FAST = {
    "BallPartitionClassifier": {"n_partitions": 2},
    "Coclustering": {"effort": 1},
    "CoclusteringClassifier": {"coclustering": damier.Coclustering(effort=1)},
    "DataGridClassifier": {"effort": 0},
    "DataGridEnsembleClassifier": {"effort": 0, "n_grids": 2},
    "LinfClassifier": {"n_estimators": 2},
    "NaiveBayesClassifier": {"averaging": "compression"},
}
ESTIMATORS = sorted(name for name in damier.__all__ if inspect.isclass(getattr(damier, name)))
OF_COUNTS = ("Coclustering", "CoclusteringClassifier")
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


def odd_column(rng, n):
    """Values of one odd kind, and what holds them."""

    def some(values):
        few = [values[i] for i in rng.integers(0, len(values), rng.integers(1, 6))]
        return [few[i] for i in rng.integers(0, len(few), n)]

    kind = int(rng.integers(0, 16))
    match kind:
        case 0 | 1:
            return rng.normal(size=n)
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
            return np.ma.masked_array(rng.normal(size=n), mask=rng.random(n) < 0.3)
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


def labels(rng, n):
    """Draw classes of odd names, and their numbers among those names."""
    k = int(rng.integers(1, 5))
    names = [
        ["no", "yes", "", "a\ud800"],
        [0, 1, 2, -1],
        [True, False],
        [1, "1", None, "x"],
        [0.0, 1.0, np.nan, 2.0],
    ]
    chosen = names[int(rng.integers(0, len(names)))][:k]
    codes = rng.integers(0, len(chosen), n)
    y = np.empty(n, dtype=object)
    y[:] = [chosen[i] for i in codes]
    return y.tolist() if rng.random() < 0.5 else y, codes


def answers(fitted, X):
    order = ("predict", "transform") if is_regressor(fitted) else ("predict_proba", "transform", "predict")
    for what in order:
        if hasattr(fitted, what):
            return np.asarray(getattr(fitted, what)(X))
    raise Broken("answers nothing")


def same_in_every_library(rng, n):
    """Columns that every frame library holds alike, and the frames."""
    columns = {}
    for name in ("x", "count", "é")[: int(rng.integers(1, 4))]:
        match int(rng.integers(0, 6)):
            case 0:
                columns[name] = rng.choice([0.5, -0.0, 0.0, 1e308, np.nan, np.inf, 3.0], n)
            case 1:
                columns[name] = rng.choice(np.array(INTS), n)
            case 2:
                columns[name] = rng.choice(np.array([t for t in TEXTS if t.isprintable()], object), n)
            case 3:
                columns[name] = rng.random(n) < 0.5
            case 4:
                columns[name] = rng.integers(-(10**15), 10**15, n).astype("datetime64[us]")
            case _:
                columns[name] = rng.choice(np.array(["a", None, ""], object), n)
    lists = {name: c.tolist() for name, c in columns.items()}
    return columns, [
        pd.DataFrame(columns),
        pl.DataFrame({name: pl.Series(name, c) for name, c in lists.items()}),
        pa.table({name: pa.array(c) for name, c in lists.items()}),
    ]


def renamed(fitted, codes, y, turned):
    """The same classes under other names, in the order that they have or in the opposite one."""
    classes = [(type(c), c) for c in fitted.classes_.tolist()]
    ranks = np.empty(codes.max() + 1, dtype=np.int64)
    for code in np.unique(codes):
        value = y[int(np.flatnonzero(codes == code)[0])]
        value = value.item() if isinstance(value, np.generic) else value
        ranks[code] = classes.index((type(value), value)) if (type(value), value) in classes else -1
    if (ranks[np.unique(codes)] < 0).any():
        return None
    return [f"class {len(classes) - r if turned else r}" for r in ranks[codes]]


def same(first, second):
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def try_table(seed):
    """Fit an estimator to an odd table: it refuses in a sentence, or answers as it should.

    What it answers does not depend on the order of the rows, the number of threads, the library of the
    frame or the names of the classes; one of the four is looked at per case, in turn.
    """
    rng = np.random.default_rng(seed)
    name = ESTIMATORS[seed % len(ESTIMATORS)]
    question = ("order", "threads", "library", "names")[seed // len(ESTIMATORS) % 4]
    n = int(rng.choice([0, 1, 2, 3, 20, 40]))
    y, codes = labels(rng, n)
    of_counts = name in OF_COUNTS and rng.random() < 0.7
    frames = []
    if of_counts:
        X = rng.choice(
            [rng.poisson(2, (n, 4)), rng.choice(FLOATS, (n, 4)), rng.choice(INTS, (n, 4))][
                : 1 + 2 * (seed % 3 == 0)
            ]
        )
        X = sparse.csr_array(X) if rng.random() < 0.3 else X
    elif question == "library":
        X, frames = same_in_every_library(rng, n)
        if name == "CoclusteringClassifier":  # takes frames of counts, and no dict
            X = frames[0]
    else:
        names = rng.permutation(["x", "count", "a\ud800", "", "[/b]", "class", "x (2)"])
        X = container(rng, {str(m): odd_column(rng, n) for m in names[: int(rng.integers(1, 4))]})
    estimator = getattr(damier, name)(**FAST.get(name, {}))
    if rng.random() < 0.2 and "semi_supervised" in estimator.get_params():
        estimator.set_params(semi_supervised="criterion")
    weighed = {}
    if rng.random() < 0.2 and "sample_weight" in inspect.signature(estimator.fit).parameters:
        weighed = {
            "sample_weight": rng.choice([0, 1, 3, 0.5, -1, np.nan, 1e300, 2.0**53][: rng.integers(1, 9)], n)
        }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = clone(estimator).fit(X, y, **weighed)
        except Exception as error:
            refused(error)
            for frame in frames:
                try:
                    clone(estimator).fit(frame, y, **weighed)
                except Exception as another:
                    refused(another)
                    if str(another) != str(error) and name != "CoclusteringClassifier":
                        raise Broken(f"{type(frame)} is refused otherwise: {another}, {error}") from None
                else:
                    raise Broken(f"{type(frame)} is not refused: {error}") from None
            return
        finally:
            only_our_warnings(caught)
        found = answers(fitted, X)
        if len(found) != n:
            raise Broken(f"{len(found)} answers for {n} rows")
        if hasattr(fitted, "predict_proba") and not (
            (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0)
        ):
            raise Broken("probabilities do not add up to one")
        if loads(dumps(fitted)) != fitted.model_:
            raise Broken("saved and loaded, the model differs")
        if question == "order" and name != "Coclustering" and not sparse.issparse(X):
            order = rng.permutation(n)
            turned = {what: weights[order] for what, weights in weighed.items()}
            shuffled = clone(estimator).fit(take(X, order), [y[i] for i in order], **turned)
            if not same(answers(shuffled, X), found):
                raise Broken("row order changes the answers")
        elif question == "threads" and "n_jobs" in estimator.get_params():
            if clone(estimator).set_params(n_jobs=3).fit(X, y, **weighed).model_ != fitted.model_:
                raise Broken("threads change the model")
        elif question == "library":
            for frame in frames:
                other = clone(estimator).fit(frame, y, **weighed)
                if not same(answers(other, frame), found) or not same(answers(fitted, frame), found):
                    raise Broken(f"{type(frame)} changes the answers")
        elif question == "names" and hasattr(fitted, "classes_"):
            # LINF draws for one class after the other: their order is part of the seed.
            turned = rng.random() < 0.5 and name != "LinfClassifier"
            others = renamed(fitted, codes, y, turned)
            if others is not None:
                again = answers(clone(estimator).fit(X, others, **weighed), X)
                again = again[:, ::-1] if turned and hasattr(fitted, "predict_proba") else again
                if not (
                    np.allclose(again, found, rtol=1e-9, equal_nan=True) if turned else same(again, found)
                ):
                    raise Broken(f"names of classes change the answers{' (opposite order)' * turned}")
        if hasattr(fitted.model_, "to_frame"):
            fitted.model_.to_frame()
        if isinstance(X, dict):  # scored on columns of any other kind
            columns = {column: odd_column(rng, 7) for column in X if rng.random() < 0.9}
            others = container(rng, columns)
            try:
                scored = answers(fitted, others)
            except Exception as error:
                refused(error)
            else:
                if columns and len(scored) != 7:
                    raise Broken(f"{len(scored)} answers for 7 rows")
        only_our_warnings(caught)


# ----- files


_READING = {
    "separator": [",", ";", "tab", "", "ab", "\0", "é", '"', "\n", "\ud800"],
    "encoding": ["utf-8", "cp1252", "utf-16", "rot13", "no such", "", "\0"],
    "decimal": [".", ",", "", "x"],
    "missing": [["1"], ["", "x"], ["\ud800"]],
    "categorical": [["x0"], ["no such"]],
    "numeric": [["x0"], ["y1"]],
    "drop": [["x0"], ["x0", "y1"]],
    "only": [["x0"], ["no such"]],
    "header": [True, False],
}


def _reading(chance):
    """Options of `read_file`, in half of the cases none."""
    named = chance.sample(sorted(_READING), chance.choice([0, 0, 1, 3]))
    return {name: chance.choice(_READING[name]) for name in named}


def try_file(seed):
    """Read a file of any bytes: a table, or one sentence."""
    chance = random.Random(seed)
    separator = chance.choice([",", ";", "\t", "|", ",", " "])
    cells = [
        *TEXTS[:6],
        *map(str, FLOATS),
        *map(str, INTS),
        "1,5",
        "2020-01-01",
        "€ 3",
        "n.d.",
        '"q"',
        "a\nb",
        "-",
        "1e999",
    ]
    width = chance.randint(1, 5)
    rows = [[chance.choice(["x", "y", "", "count", "é"]) + str(j) for j in range(width)]]
    rows += [[chance.choice(cells) for _ in range(width)] for _ in range(chance.choice([0, 1, 3, 30]))]
    quote = chance.random() < 0.5
    text = chance.choice(["\n", "\r\n", "\r"]).join(
        separator.join(f'"{c}"' if quote and chance.random() < 0.5 else c for c in row) for row in rows
    )
    data = bytearray(
        text.encode(chance.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32"]), errors="replace")
    )
    for _ in range(chance.choice([0, 0, 1, 3, 20])):
        at = chance.randint(0, len(data))
        action = chance.randint(0, 3)
        if action == 0:
            data[at : at + 1] = bytes([chance.randint(0, 255)])
        elif action == 1:
            data[at:at] = chance.choice([b'"', b"\0", b"\xff\xfe", b"\n", b"\r", b",,,", b"\x1a", b"'"])
        elif action == 2:
            del data[at:]
        else:
            data += data[: chance.randint(0, 200)]
    ending = chance.choice(
        [".csv", ".csv", ".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet", ".xlsx", ".feather"]
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = Path(folder, f"t{ending}")
        file.write_bytes(data)
        try:
            table = read_file(file, **_reading(chance))
        except ImportError as error:  # a library for this kind is not installed
            if "install" not in str(error):
                raise Broken(str(error)) from error
        except Exception as error:
            refused(error)
        else:
            if any(len(c.coded()[1]) != table.n_rows for c in table):
                raise Broken("columns of different lengths")
        only_our_warnings(caught)


# ----- models


def try_model(seed):
    """Load a spoilt model: refused in our words, or it scores as a model does."""
    chance = random.Random(seed)
    kinds = sorted(find_kinds())
    kind = kinds[seed % len(kinds)]
    plain = spoilt.spoil(json.loads(dumps(spoilt.MODELS[kind])), chance)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = loads(json.dumps(plain))
        except ValueError as error:
            if not str(error).startswith(("not a saved model", "saved by a later version")):
                raise Broken(str(error)) from error
            return
        spoilt.check_scores(model)


# ----- pages

_MARKS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '"><b>',
    "'><i>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "</title><h1>",
    "</style><h1>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "${alert(1)}",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "\\u003cb\\u003e",
    "<iframe srcdoc='<b>'>",
    "<a href=javascript:alert(1)>",
    "<base href=//x>",
    "<meta http-equiv=refresh content=0>",
    "</textarea><b>",
    "<math><mtext></mtext></math>",
    "\u2028</script>",
    "<\0script>",
    "＜script＞",
]
_AROUND = ["{}", "a{}", "{}b", '"{}"', "'{}'", "\\{}", "\n{}", "{}{}", " {} ", "\x1b{}", "{}\ud800", "/*{}*/"]
PAYLOADS = [around.replace("{}", mark) for mark in _MARKS for around in _AROUND]


class _Structure(html.parser.HTMLParser):
    """Elements and names of attributes in order, and the text of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.code, self._within = [], [], None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *sorted(name for name, _ in attrs)))
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src") and not (value or "").startswith("#")):
                raise Broken(f"<{tag} {name}={value!r}>")
        self._within = tag if tag in ("script", "style") else None
        self._data = any(name == "type" for name, _ in attrs)

    def handle_data(self, data):
        if self._within and not self._data:
            self.code.append(data)
        elif self._within:
            json.loads(data)

    def handle_endtag(self, tag):
        self._within = None

    def handle_comment(self, data):
        self.tags.append(("comment", data))


def report_summary(word):
    """A report in which every text is the given one, with a number."""
    classes = tuple(f"{word}{i}" for i in range(3))
    groups = damier_groups(word, classes)
    grid = summarize_grid(spoilt.grid())
    for rule in grid["rules"]:
        rule["parts"] = [f"{word}{i}" for i, _ in enumerate(rule["parts"])]
    for i, variable in enumerate(grid["variables"]):
        variable["name"] = f"{word}{i}"
    pairs = {
        "first": [word, f"{word}0"],
        "second": [f"{word}2", f"{word}1"],
        **{key: [0.2, 0.1] for key in ("level", "first_level", "second_level", "gain")},
        "done": [True, False],
    }
    return summarize(
        {one.name: one for one in groups},
        dataset=word,
        target=f"{word} target",
        missing={one.name: 1 for one in groups},
        grid=grid,
        pairs=summarize_pairs(pairs, [f"{word}0", f"{word}1"]),
        notes=[word],
    )


def damier_groups(word, classes):
    from damier.models import GroupPartition, IntervalPartition

    costs = {"cost": 10.0, "null_cost": 15.0, "optimal": False, "classes": classes, "counts": spoilt.COUNTS}
    return (
        GroupPartition(name=f"{word}0", groups=((f"{word}", None), (f"{word}2",)), **costs),
        IntervalPartition(name=f"{word}1", bounds=(30.5,), **costs),
    )


def coclustering_summary(word):
    summary = summarize_coclustering(spoilt.coclustering(), word)
    for axis in ("rows", "columns"):
        summary[axis]["name"] = f"{word}{axis}"
        for cluster in summary[axis]["clusters"]:
            cluster["typical"] = [[f"{word}{i}", *rest] for i, (_, *rest) in enumerate(cluster["typical"])]
    return summary


@functools.cache
def _harmless(summarized, render):
    return _Structure(render(summarized("plain")))


def try_page(seed):
    """Render pages full of a payload: they have the elements, attributes and scripts of a harmless page."""
    payload = PAYLOADS[seed % len(PAYLOADS)]
    if seed >= len(PAYLOADS):
        chance = random.Random(seed)
        payload = "".join(chance.choice(PAYLOADS)[: chance.randint(1, 40)] for _ in range(3))
    for summarized, render in ((report_summary, render_page), (coclustering_summary, render_coclustering)):
        plain, found = _harmless(summarized, render), _Structure(render(summarized(payload)))
        if found.tags != plain.tags:
            raise Broken(f"elements that should not be: {set(found.tags) - set(plain.tags)}")
        if found.code != plain.code:
            raise Broken("a script or style changed")


# ----- terminal

_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def try_terminal(seed):
    """Print text of control characters: none arrives."""
    chance = random.Random(seed)
    pool = [
        *map(chr, range(32)),
        *map(chr, range(127, 160)),
        "\x1b[2J",
        "\x1b]8;;http://x\x07",
        "\u202e",
        "\u2066",
        "\ud800",
    ]
    word = "".join(chance.choice([*pool, "a", "é", "[bold]", "[/x]"]) for _ in range(chance.randint(1, 12)))
    summary = report_summary(word)
    out = io.StringIO()
    console = Console(file=out, width=200)
    console.print(variables_table(summary))
    for line in (classifier_line(summary), *grid_lines(summary)):
        if line is not None:
            console.print(line)
    if found := _OBEYED.search(out.getvalue()):
        raise Broken(f"printed {found[0]!r}")


# ----- commands

_WORDS = [
    "x",
    "y",
    "count",
    "é",
    "",
    " ",
    "[/red]",
    "[bold]",
    "=1+1",
    "-o",
    "a,b",
    "x\ny",
    '"',
    "\x1b[2J",
    "\u202eb",
]


def _csv(chance):
    """A small table under odd names, as text; the last column has few values."""
    width = chance.randint(1, 4)
    names = [chance.choice(_WORDS) + chance.choice(["", str(j)]) for j in range(width)]
    pools = [[*_WORDS, "1", "2.5"], ["1", "2", "3.5", ""], ["u", "v", "w"], ["2020-01-01", "2021-05-03"]]
    drawn = [chance.choice(pools)[: chance.randint(1, 15)] for _ in range(width)]
    rows = [[chance.choice(pool) for pool in drawn] for _ in range(chance.choice([0, 1, 2, 12, 30]))]
    out = io.StringIO()
    csv.writer(out).writerows([names, *rows])
    return names, out.getvalue()


def try_command(seed):
    """Run a command on an odd table: exit code 0, 1 or 2, a sentence, and nothing lost."""
    chance = random.Random(seed)
    names, text = _csv(chance)
    file = chance.choice(["d.csv", "d.csv", "[b].csv", "\x1b[2J.csv", "é \u202e.csv", "=1.tsv"])
    column = lambda: chance.choice([*names, *names, *_WORDS])  # noqa: E731
    outputs = [
        f"{kind}{number}" for number, kind in enumerate(chance.choices(["o", "p", "-", file, "o"], k=3))
    ]
    command = ("report", "cocluster", "predict", "sql")[seed % 4]
    match command:
        case "report":
            words = [file, "-t", column(), "--grid", "0", "-j", "1"]
            options = [["--json", outputs[0]], ["-o", outputs[1]], ["--parts", outputs[2] + ".csv"]]
            options += [["--no-classifier"], ["--missing-target", "class"], ["--save-model", outputs[2]]]
        case "cocluster":
            words = [file, "-j", "1", "--time-limit", "0.05"]
            options = [["-r", column()], ["-c", column()], ["--json", outputs[0]], ["-o", outputs[1]]]
            options += [["--labels", outputs[2] + ".csv"], ["--counts", column()], ["--clusters", "2x2"]]
        case "predict":
            words = ["model.json", file]
            options = [["-o", outputs[0] + ".csv"], ["--explain"], ["--keep", column()]]
        case _:
            words = [
                "model.json",
                "--table",
                column(),
                "-d",
                chance.choice(["duckdb", "postgres", "tsql", "x"]),
            ]
            options = [["--keep", column()], ["-o", outputs[0]], ["--note", column()], ["--what", "class"]]
    options += [["--drop", column()], ["--only", column()], ["--separator", ";"], ["--no-header"]]
    options += [["--encoding", chance.choice(["cp1252", "no such"])], ["--categorical", column()]]
    for option in chance.sample(options, chance.randint(0, 3)):
        words += option
    if command == "sql":
        words = [word for word in words if word != "--no-header"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(file).write_text(text, encoding="utf-8")
        model = spoilt.MODELS[chance.choice(sorted(spoilt.MODELS))]
        Path("model.json").write_text(dumps(model), encoding="utf-8")
        before = {name: Path(name).read_bytes() for name in os.listdir()}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = CliRunner().invoke(app, [command, *words], env={"COLUMNS": "200"})
        only_our_warnings(caught)
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            raise Broken(f"{type(error).__name__}: {error} of {[command, *words]}") from error
        if result.exit_code not in (0, 1, 2) or "Traceback" in result.output:
            raise Broken(f"exit code {result.exit_code}: {result.output[-300:]}")
        if (
            result.exit_code
            and not (said := result.output.strip()).endswith((".", "?", ")", "'", '"'))
            and not ("╰" in said or len(said) > 20)
        ):
            raise Broken(f"not a sentence: {said!r}")
        # A query is printed as it is: for a file or a pipe, a terminal is refused.
        if (command != "sql" or result.exit_code) and (found := _OBEYED.search(result.output)):
            raise Broken(f"printed {found[0]!r}")
        if any(not Path(name).exists() or Path(name).read_bytes() != held for name, held in before.items()):
            raise Broken(f"an input was changed by {[command, *words]}")
        if result.exit_code and set(os.listdir()) != set(before):
            raise Broken(f"left behind: {sorted(set(os.listdir()) - set(before))}")


# ----- signals

_COMMAND = """
import sys
from damier.__main__ import main
print("ready", file=sys.stderr, flush=True)
try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
"""


def try_signal(seed):
    """Press Ctrl-C once or twice at any time: exit 0 or 130, no traceback, whole files or none."""
    chance = random.Random(seed)
    command = ("report", "cocluster")[seed % 2]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"{i % 17},{i % 5 * (i % 3)},{'ab'[i % 2]}\n" for i in range(600))
        Path(folder, "d.csv").write_text("x,z,y\n" + lines)
        words = {
            "report": ("-t", "y", "--grid", "2", "--json", "out.json"),
            "cocluster": ("-r", "x", "-c", "y", "--json", "out.json", "--labels", "l.csv"),
        }[command]
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, command, "d.csv", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        process.stderr.readline()
        for _ in range(chance.choice([1, 1, 2])):
            time.sleep(chance.choice([0.02, 0.3, 1.0, 4.0]) * chance.random())
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Broken("does not end") from None
        if process.returncode not in (0, 130):
            raise Broken(f"exit code {process.returncode}: {said[-300:]!r}")
        if b"Traceback" in said:
            raise Broken(said[-500:].decode())
        files = sorted(os.listdir(folder))
        if any(name.endswith(".partial") for name in files):
            raise Broken(f"left behind: {files}")
        if "out.json" in files:
            json.loads(Path(folder, "out.json").read_text("utf-8"))
        for page in Path(folder).glob("*.html"):
            if not page.read_text("utf-8").rstrip().endswith("</html>"):
                raise Broken("half a page")


KINDS = {
    "tables": try_table,
    "files": try_file,
    "models": try_model,
    "pages": try_page,
    "terminal": try_terminal,
    "commands": try_command,
    "signals": try_signal,
}
