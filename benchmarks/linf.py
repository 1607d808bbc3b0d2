"""LINF: errors on the ten published sets beside scikit-learn, speed, growth, and where it fails.

    python -m benchmarks.linf               # everything, ten seeds; about an hour on two cores
    python -m benchmarks.linf --quick       # three seeds, no support vector machine on Adult
    python -m benchmarks.linf --only speed  # one of: errors, speed, fit, growth, weak
    python -m benchmarks.linf --only errors --sets vowel --pieces FILE  # FILE keeps what is done

Errors are in percent on the official test rows; waveform draws 300 rows to learn from and 500 to test for
every seed, NCI60 (in place of the published Cancer set) a third to test. *Standardised* errors are those of
figure 6: within each set, the errors less their mean over the classifiers, divided by their standard
deviation; the median over the sets is what counts. Times are of the same run: seconds of wall clock, two
threads where the classifier has any. ``fit`` measures CPU seconds of one thread, the tables and rows being
those of `benchmarks.classifiers`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.classifiers import TABLES, _prepared, _rows, splits_of
from benchmarks.datasets import DataUnavailableError, load
from benchmarks.records import Record, run
from damier import LinfClassifier

SETS = (
    "adult",
    "nci60",
    "madelon",
    "optdigits",
    "orange10",
    "satimage",
    "shuttle",
    "spect",
    "vowel",
    "waveform",
)
# Section 4.2.2: E[log t] = -10.491 + 0.847 log n + 2.436 log g + 0.816 log p.
PUBLISHED_EXPONENTS = {"n": 0.847, "g": 2.436, "p": 0.816}
STANDARDISED = ("LINF", "forest", "SVM", "naive Bayes", "tree", "boosting")

Rows = tuple[pd.DataFrame, np.ndarray]


def _numbers(scaled: bool, one_hot: bool) -> Any:
    """Columns as the peers need them; LINF takes the table as it is."""
    steps: list[Any] = [SimpleImputer(strategy="median", keep_empty_features=True)]
    if scaled:
        steps.append(StandardScaler())
    coder = (
        OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        if one_hot
        else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    )
    return make_column_transformer(
        (make_pipeline(*steps), make_column_selector(dtype_include="number")),
        (coder, make_column_selector(dtype_exclude="number")),
    )


PEERS: dict[str, Callable[[int], Any]] = {
    "LINF paper 1": lambda seed: LinfClassifier(n_estimators=1, random_state=seed, n_jobs=2, setting="paper"),
    "LINF paper 5": lambda seed: LinfClassifier(n_estimators=5, random_state=seed, n_jobs=2, setting="paper"),
    "LINF": lambda seed: LinfClassifier(random_state=seed, n_jobs=2),
    "LINF 50": lambda seed: LinfClassifier(n_estimators=50, random_state=seed, n_jobs=2),
    "forest": lambda seed: make_pipeline(
        _numbers(False, False), RandomForestClassifier(random_state=seed, n_jobs=2)
    ),
    "SVM": lambda seed: make_pipeline(_numbers(True, True), SVC(random_state=seed)),
    "naive Bayes": lambda _: make_pipeline(_numbers(False, True), GaussianNB()),
    "tree": lambda seed: make_pipeline(_numbers(False, False), DecisionTreeClassifier(random_state=seed)),
    "boosting": lambda seed: make_pipeline(
        _numbers(False, False), HistGradientBoostingClassifier(random_state=seed)
    ),
}
SEEDLESS = ("SVM", "naive Bayes", "boosting")


def splits(name: str, n_seeds: int) -> Iterator[tuple[int, Rows, Rows]]:
    """Training and test rows of each seed."""
    data = load(name)
    X, y = data.X.copy(), data.y.to_numpy()
    for column in X.select_dtypes(exclude="number"):
        X[column] = X[column].astype(object).where(X[column].notna(), None)  # encoders know None, not NA
    if name == "spect":
        X = X.astype(str)
    for seed in range(n_seeds):
        random = np.random.default_rng(seed)
        if name == "waveform":
            drawn = random.permutation(len(y))
            train, test = drawn[:300], drawn[300:800]
        elif data.split is not None:
            learnt = (data.split == "train").to_numpy()
            train, test = np.flatnonzero(learnt), np.flatnonzero(~learnt)
        else:
            drawn = random.permutation(len(y))
            train, test = drawn[len(y) // 3 :], drawn[: len(y) // 3]
        yield seed, (X.iloc[train], y[train]), (X.iloc[test], y[test])


def measure(make: Callable[[int], Any], seed: int, train: Rows, test: Rows) -> tuple[float, float, float]:
    """Error in percent, seconds to fit, seconds to score."""
    classifier = make(seed)
    start = time.perf_counter()
    classifier.fit(*train)
    fitted = time.perf_counter()
    error = 100.0 * float(np.mean(classifier.predict(test[0]) != test[1]))
    return error, fitted - start, time.perf_counter() - fitted


def errors(record: Record, options: argparse.Namespace) -> None:
    """Compare errors and times, then standardised errors.

    What is in the file ``--pieces`` is not measured again, and what is measured is added to it.
    """
    pieces: Path | None = options.pieces
    known = _read_pieces(pieces)
    n_seeds = options.seeds or (3 if options.quick else 10)
    columns = ["classifier", "error %", "standard deviation", "fit s", "score s", "seeds"]
    table: dict[str, dict[str, float]] = {}
    for name in options.sets.split(",") if options.sets else SETS:
        found: dict[str, list[tuple[float, float, float]]] = {peer: [] for peer in PEERS}
        try:
            rounds = list(splits(name, n_seeds))
        except DataUnavailableError as error:
            record.say(f"{name}: skipped, {error}")
            continue
        fixed = name not in ("waveform", "nci60")
        for seed, train, test in rounds:
            for peer, make in PEERS.items():
                if fixed and peer in SEEDLESS and found[peer]:
                    continue
                measured = known.get((name, peer, seed))
                if measured is None:
                    if options.quick and peer == "SVM" and name == "adult":
                        continue
                    measured = measure(make, seed, train, test)
                    if pieces is not None:
                        with pieces.open("a") as file:
                            print(json.dumps([name, peer, seed, *measured]), file=file)
                found[peer].append(measured)
        title = f"{name}: {len(rounds[0][1][1])} rows to learn, {len(rounds[0][2][1])} to test"
        for peer, held in found.items():
            if held:
                error, fit, score = np.mean(held, axis=0)
                spread = np.std([h[0] for h in held])
                cells = [f"{value:.2f}" for value in (error, spread, fit, score)]
                record.row(title, columns, [peer, *cells, len(held)])
                table.setdefault(name, {})[peer] = float(error)
    scores: dict[str, list[float]] = {peer: [] for peer in STANDARDISED}
    for held in table.values():
        values = np.array([held[peer] for peer in STANDARDISED if peer in held])
        for peer in STANDARDISED:
            if peer in held:
                scores[peer].append((held[peer] - values.mean()) / max(values.std(ddof=1), 1e-12))
    record.table(
        "Standardised errors",
        ["classifier", "median", "each set"],
        [[p, f"{np.median(z):+.3f}", " ".join(f"{v:+.2f}" for v in z)] for p, z in scores.items() if z],
    )


def _compile(*_: object) -> None:
    """Compile or load the kernels, so that no time holds it."""
    X, y = np.random.default_rng(0).normal(size=(100_000, 3)), np.arange(100_000) % 2
    LinfClassifier(n_estimators=5).fit(X[:50], y[:50]).predict(X)


def _read_pieces(pieces: Path | None) -> dict[tuple[str, str, int], tuple[float, float, float]]:
    if pieces is None or not pieces.exists():
        return {}
    rows = [json.loads(line) for line in pieces.read_text().splitlines()]
    return {(name, peer, seed): (error, fit, score) for name, peer, seed, error, fit, score in rows}


def speed(record: Record, options: argparse.Namespace) -> None:
    """Time the training on Adult, and the rows scored per second."""
    del options
    random = np.random.default_rng(0)
    _, train, _ = next(splits("orange10", 1))
    easy_y = random.integers(0, 3, 5000)
    easy = random.normal(size=(5000, 10)) + 2.5 * np.eye(3, 10)[easy_y]
    for name, (X, y) in {"orange10": train, "three clouds": (pd.DataFrame(easy), easy_y)}.items():
        rows = pd.DataFrame(random.normal(size=(1_000_000, 10)), columns=X.columns)
        for members in (1, 5, 25):
            classifier = LinfClassifier(n_estimators=members, random_state=0, n_jobs=2).fit(X, y)
            classifier.predict(rows[:100_000])
            start, cpu = time.perf_counter(), time.process_time()
            classifier.predict(rows)
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            record.row(
                "Scoring a million rows of 10 columns, two threads",
                ["trained on", "members", "covers", "rows per second", "rows per CPU second"],
                [name, members, len(classifier.covers_), f"{1e6 / wall:,.0f}", f"{1e6 / cpu:,.0f}"],
            )
    _, train, _ = next(splits("adult", 1))
    for peer in ("LINF", "forest"):
        taken = []
        for _ in range(3):
            classifier = PEERS[peer](0)
            start, cpu = time.perf_counter(), time.process_time()
            classifier.fit(*train)
            taken.append((time.perf_counter() - start, time.process_time() - cpu))
        cells = [f"{value:.2f}" for value in np.min(taken, axis=0)]
        record.row("Training on Adult, two threads", ["classifier", "seconds", "CPU seconds"], [peer, *cells])


def fit(record: Record, options: argparse.Namespace) -> None:
    """Time fits beside those of the forest, in turns; the forest is given numbers made beforehand."""
    title = "Fits of 1,000 rows and fewer beside a forest of 100 trees: CPU seconds"
    columns = ["table", "rows", "columns", "classes", "LINF", "forest", "LINF / forest"]
    found = []
    for name in options.sets.split(",") if options.sets else TABLES:
        X, y = _rows(name, 5000, 0)
        train, _ = splits_of(np.unique(y, return_inverse=True)[1], 1000)[0]
        X, y = X.iloc[train], y[train]
        numbers = _prepared("passthrough", one_hot=False).fit_transform(X, y)
        taken = [
            (
                _cpu_seconds(lambda: LinfClassifier(random_state=0).fit(X, y)),  # noqa: B023
                _cpu_seconds(lambda: RandomForestClassifier(random_state=0).fit(numbers, y)),  # noqa: B023
            )
            for _ in range(3 if options.quick else 5)
        ]
        ours, forest = np.min(taken, axis=0)
        found.append((ours, forest))
        cells = [f"{value:.3f}" for value in (ours, forest)]
        record.row(title, columns, [name, *X.shape, len(set(y)), *cells, f"{ours / forest:.2f}"])
    both = np.array(found)
    ratios, sums = both[:, 0] / both[:, 1], both.sum(axis=0)
    for word, value in (("geometric mean", np.exp(np.log(ratios).mean())), ("mean", ratios.mean())):
        record.row(title, columns, [f"{word} of the ratios", "", "", "", "", "", f"{value:.2f}"])
    cells = [f"{value:.2f}" for value in (*sums, sums[0] / sums[1])]
    record.row(title, columns, ["sums", "", "", "", *cells])
    record.close(
        title,
        "One thread each, least of five fits in turns, kernels loaded. LINF reads the table as it is; the "
        "forest is given numbers, which are not in its time.",
    )


def growth(record: Record, options: argparse.Namespace) -> None:
    """Fit the exponents of section 4.2.2, and time a hundred classes."""
    words = {"n": "rows", "g": "classes", "p": "columns"}
    for setting in ("paper", "refined"):
        logs = []
        for n in (100, 1000, 10000):
            for p in (20, 80) if options.quick else (20, 40, 60, 80):
                for g in (2, 8) if options.quick else (2, 4, 6, 8):
                    X, y = _simplex(n, p, g)
                    rounds = [_fit_seconds(X, y, seed, setting) for seed in range(3)]
                    logs.append((1.0, np.log(n), np.log(g), np.log(p), np.log(np.median(rounds))))
        *design, seconds = np.array(logs).T
        fitted = np.linalg.lstsq(np.column_stack(design), seconds, rcond=None)[0]
        for name, value in zip("ngp", fitted[1:], strict=True):
            record.row(
                "Growth of the CPU time of one member, Gaussians at the corners of a simplex",
                ["setting", "with the", "exponent", "published"],
                [setting, words[name], f"{value:.3f}", PUBLISHED_EXPONENTS[name]],
            )
    X, y = _simplex(10_000, 100, 100)
    train, test = (pd.DataFrame(X[:5000]), y[:5000]), (pd.DataFrame(X[5000:]), y[5000:])
    for peer in ("LINF", "forest"):
        start = time.process_time()
        error, fit, score = measure(PEERS[peer], 0, train, test)
        cpu = time.process_time() - start
        record.row(
            "A hundred classes: 5,000 rows to learn, 5,000 to test, 100 columns, two threads",
            ["classifier", "error %", "fit s", "score s", "CPU s"],
            [peer, f"{error:.2f}", f"{fit:.1f}", f"{score:.2f}", f"{cpu:.1f}"],
        )


def _simplex(n: int, p: int, g: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n + p + g)
    y = np.arange(n) % g
    return random.normal(size=(n, p)) + 7 / np.sqrt(2) * np.eye(g, p)[y], y


def _fit_seconds(X: np.ndarray, y: np.ndarray, seed: int, setting: Any) -> float:
    return _cpu_seconds(lambda: LinfClassifier(n_estimators=1, random_state=seed, setting=setting).fit(X, y))


def _cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def weak(record: Record, options: argparse.Namespace) -> None:
    """Show from the covers why Madelon stays out of reach."""
    del options
    _, train, test = next(splits("madelon", 1))
    forest = RandomForestClassifier(500, random_state=0, n_jobs=2).fit(*train)
    important = set(train[0].columns[np.argsort(-forest.feature_importances_)[:20]].astype(str))
    classifier = LinfClassifier(random_state=0, n_jobs=2).fit(*train)
    path = classifier.decision_path(test[0])
    labels = np.array([cover.label for cover in classifier.covers_], dtype=object)
    right = labels[path.cover] == test[1][:, None]
    used = np.array([sum(name in important for name in dict(c.x + c.y)) for c in classifier.covers_])
    width = np.array([len(dict(c.x + c.y)) for c in classifier.covers_])
    share = used / width
    title = "Madelon: votes by the share of important columns on the axes of a cover"
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.01)):
        chosen = (share[path.cover] >= low) & (share[path.cover] < high)
        if chosen.any():
            record.row(
                title,
                ["share of important columns", "share of the votes", "votes that are right"],
                [f"{low:.0%} to {min(high, 1):.0%}", f"{chosen.mean():.1%}", f"{right[chosen].mean():.1%}"],
            )
    record.close(
        title,
        f"Important are the 20 columns of highest importance in a random forest. A cover has "
        f"{width.mean():.1f} columns on its axes, {used.mean():.1f} of them important.",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    run(
        "linf",
        __doc__,
        {"errors": errors, "speed": speed, "fit": fit, "growth": growth, "weak": weak},
        {
            "--seeds": {"type": int, "help": "number of seeds, instead of ten or three"},
            "--sets": {"help": "names of sets, with commas between them"},
            "--pieces": {"type": Path, "help": "file of errors and times: read first, added to"},
        },
        before=_compile,
    )
