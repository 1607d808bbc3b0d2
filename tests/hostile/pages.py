"""Pages, notebooks and terminals that show what the data hold."""

from __future__ import annotations

import functools
import html.parser
import io
import json
import random
import warnings

import numpy as np
import pandas as pd
from rich.console import Console

import damier
from damier.deploy.json import dumps, loads
from damier.report import (
    Report,
    classifier_line,
    grid_lines,
    regressor_line,
    remark_lines,
    render_coclustering,
    render_page,
    summarize_coclustering,
    variables_table,
    word_lines,
)
from tests.hostile.promises import OBEYED, Broken

# Stands for every text from the data in what is fitted once; then each payload takes its place.
WORD = "Qzq"
MARKS = [
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
PAYLOADS = [around.replace("{}", mark) for mark in MARKS for around in _AROUND]


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
            if tag == "iframe" and name == "srcdoc":
                self.tags += _Structure(value).tags
            elif name.startswith("on") or (name in ("href", "src") and not (value or "").startswith("#")):
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


@functools.cache
def _shown():
    """What people are shown, fitted once to a table whose texts are all `WORD` with a letter behind it.

    Returns the summaries of two reports and of a coclustering, and saved models of every kind.
    """
    rng = np.random.default_rng(0)
    n = 300
    a, b, c = rng.integers(0, 2, (3, n))

    def words(codes, letters):
        return np.array([WORD + letter for letter in letters], dtype=object)[codes]

    X = pd.DataFrame(
        {
            f"{WORD}a": words(a + 2 * rng.integers(0, 2, n), "klmn"),
            f"{WORD}b": b + 0.1 * rng.normal(size=n),
            f"{WORD}c": words(c, "uv"),
            f"{WORD}d": c + rng.normal(size=n),
        }
    )
    X.loc[:9, f"{WORD}b"] = None
    y, number = words((a ^ b) + c, "xyz"), (a ^ b) + 2 * c + rng.normal(size=n) / 9
    called = {"name": WORD, "target_name": f"{WORD}t", "grid_seconds": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = [
            damier.explore(X, y, **called).to_dict(),
            damier.explore(X, number, target="number", **called).to_dict(),
        ]
        for report in reports:
            report["remarks"] = [*report.get("remarks", []), WORD]
        pairs = damier.Coclustering(effort=1).fit(X[[f"{WORD}a", f"{WORD}c"]])
        table = rng.poisson(np.where(a[:20, None] == b[:12], 3, 0.2))
        fitted = [
            damier.MODLEncoder().fit(X, y),
            damier.MODLEncoder(target="number").fit(X, number),
            damier.NaiveBayesClassifier(pairs=2).fit(X, y),
            damier.NaiveBayesRegressor().fit(X, number),
            damier.DataGridClassifier(effort=1).fit(X, y),
            damier.DataGridEnsembleClassifier(effort=1, n_grids=2).fit(X, y),
            damier.DataGridRegressor(effort=1).fit(X, number),
            damier.DataGridClustering().fit(X),
            damier.LinfClassifier(n_estimators=2).fit(X, y),
            damier.BallPartitionClassifier().fit(X[[f"{WORD}d"]], y),
            damier.CoclusteringClassifier(coclustering=damier.Coclustering(effort=1)).fit(table, y[:20]),
            pairs,
        ]
    models = [one.model_ for one in fitted]
    models += [*fitted[0].partitions_.values(), *fitted[1].partitions_.values()]
    return reports, summarize_coclustering(pairs.model_, WORD), [dumps(model) for model in models]


def _said(held, word):
    """The same with another text for `WORD`."""
    if isinstance(held, str):
        return held.replace(WORD, word)
    if isinstance(held, dict):
        return {_said(key, word): _said(value, word) for key, value in held.items()}
    return [_said(value, word) for value in held] if isinstance(held, list | tuple) else held


def pages(word):
    """Everything that is HTML where every text from the data is the given one, to be called one by one."""
    reports, coclusters, saved = _shown()
    made = {"date": "1970-01-01", "command": f"damier report {word}", "seconds": "1"}
    return [
        *(lambda report=report: render_page(_said(report, word), made=made) for report in reports),
        lambda: Report(_said(reports[0], word), made=made)._repr_html_(),
        lambda: render_coclustering(_said(coclusters, word)),
        *(lambda one=one: model(one, word)._repr_html_() or "" for one in saved),
    ]


def model(saved, word):
    """Load a model whose names are the given one."""
    return loads(saved.replace(WORD, json.dumps(word)[1:-1]))


@functools.lru_cache(maxsize=2000)
def _harmless(length, number):
    return _Structure(pages("x" * length)[number]())


def try_page(seed):
    """Render pages full of a payload: they have the elements, attributes and scripts of a harmless page."""
    payload = PAYLOADS[seed % len(PAYLOADS)]
    if seed >= len(PAYLOADS):
        chance = random.Random(seed)
        payload = "".join(chance.choice(PAYLOADS)[: chance.randint(1, 40)] for _ in range(3))
    rendered = pages(payload)
    # Every payload on every page, then mixtures of them on one page each.
    for number in range(len(rendered)) if seed < len(PAYLOADS) else [seed % len(rendered)]:
        # What is long is folded or cut, so that the harmless text has to be as long.
        found, plain = _Structure(rendered[number]()), _harmless(len(payload), number)
        if found.tags != plain.tags:
            raise Broken(f"elements that should not be: {set(found.tags) - set(plain.tags)}")
        if found.code != plain.code:
            raise Broken("a script or style changed")


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
    out = io.StringIO()
    console = Console(file=out, width=200)
    reports, _, saved = _shown()
    report = _said(reports[seed % 2], word)
    console.print(variables_table(report))
    lines = (*remark_lines(report), *word_lines(report), *grid_lines(report))
    for line in (*lines, classifier_line(report), regressor_line(report)):
        if line is not None:
            console.print(line)
    print(repr(Report(report)), file=out)
    held = model(saved[seed % len(saved)], word)
    print(repr(held), str(held), file=out)
    if found := OBEYED.search(out.getvalue()):
        raise Broken(f"printed {found[0]!r}")
