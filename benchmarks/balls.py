"""Balls on a graph: published tables and figure, noise, naive Bayes on top, and time.

    python -m benchmarks.balls             # everything; about half an hour of processor time
    python -m benchmarks.balls --quick     # one draw of each, fewer and smaller sets
    python -m benchmarks.balls --only spiral time
    python -m benchmarks.balls --only pictures --folder FOLDER  # the pictures of the guide

The spiral has 1.75 turns; with more turns every method loses. "published" is the method of Ferrandiz and
Boullé (2005): balls of the whole graph, ``prior="paper"``, the class shares of the nearest point's group;
"in print" are their figures. "averaged" is the default with 32 partitions and 5 neighbours averaged, "finer"
the same with ``prior="paper"``. How many to average was chosen on sets that are not among those reported:
the part ``choice``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks.datasets import DataUnavailableError, load
from benchmarks.records import Record, run
from damier import BallPartitionClassifier, NaiveBayesClassifier, gabriel_graph

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

# Test accuracy of the partition and of the nearest neighbour, then robustness of the partition.
PUBLISHED = {
    "iris": (0.92, 0.96, 0.98),
    "wine": (0.69, 0.76, 0.90),
    "heart": (0.62, 0.55, 0.88),
    "bupa": (0.61, 0.61, 0.85),
    "ionosphere": (0.85, 0.87, 0.99),
    "crx": (0.66, 0.64, 0.90),
    "australian": (0.69, 0.68, 0.95),
    "breast": (0.97, 0.96, 1.00),
    "pima": (0.68, 0.68, 0.94),
    "vehicle": (0.54, 0.65, 0.90),
    "german_numeric": (0.70, 0.67, 0.96),
}
SETS = list(PUBLISHED)


def published() -> BallPartitionClassifier:
    """Return the method as printed."""
    return BallPartitionClassifier(setting="paper")


def averaged(**options: str) -> BallPartitionClassifier:
    """Return the best setting: many partitions and some neighbours averaged."""
    return BallPartitionClassifier(n_partitions=32, n_neighbors=5, **options)


def finer() -> BallPartitionClassifier:
    """Return the setting with the most groups."""
    return averaged(prior="paper")


def numeric_set(name: str) -> tuple[pd.DataFrame, Labels, str]:
    """Return the numeric columns of a set, class codes and where it was found."""
    data = load(name)
    X = data.X.select_dtypes("number").drop(columns="Sample_code_number", errors="ignore")
    return X.astype(float), pd.factorize(data.y)[0], data.source


def folds(X: Floats, y: Labels, n_splits: int, seeds: range) -> Iterator[tuple[Labels, Labels]]:
    """Stratified folds, drawn anew for each seed."""
    for seed in seeds:
        yield from StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(X, y)


def scores(make: Callable[[], object], X: Floats, y: Labels, n_splits: int, seeds: range) -> Floats:
    """Mean test accuracy, robustness (test over train) and number of groups."""
    seen = []
    for train, test in folds(X, y, n_splits, seeds):
        fitted = make().fit(X[train], y[train])
        accuracy = fitted.score(X[test], y[test])
        last = fitted[-1] if hasattr(fitted, "steps") else fitted
        n_groups = len(last.groups_) if hasattr(last, "groups_") else np.nan
        seen.append((accuracy, accuracy / fitted.score(X[train], y[train]), n_groups))
    return np.mean(seen, axis=0)


def table2(record: Record, options: argparse.Namespace) -> None:
    """Eleven sets, stratified five-fold: raw as published, then standardised."""
    seeds = range(1 if options.quick else 5)
    settings = {
        "published raw": ("raw", published),
        "1-NN raw": ("raw", lambda: KNeighborsClassifier(1)),
        "published std": ("std", published),
        "default std": ("std", BallPartitionClassifier),
        "averaged std": ("std", averaged),
        "finer std": ("std", finer),
        "1-NN std": ("std", lambda: KNeighborsClassifier(1)),
        "5-NN std": ("std", lambda: KNeighborsClassifier(5)),
    }
    title = "Eleven sets, five-fold: accuracy (test / train)"
    columns = ["set", "published raw", "in print", "1-NN raw", "1-NN in print", *list(settings)[2:]]
    rows = []
    for name in SETS[:5] if options.quick else SETS:
        try:
            frame, y, _ = numeric_set(name)
        except DataUnavailableError as error:
            record.say(f"{name}: {error}")
            continue
        X = frame.to_numpy()
        row = []
        for scale, make in settings.values():
            steps = [SimpleImputer(strategy="median")] + ([StandardScaler()] if scale == "std" else [])
            row.append(scores(lambda steps=steps, make=make: make_pipeline(*steps, make()), X, y, 5, seeds))
        rows.append(row)
        accuracy, nearest, robustness = PUBLISHED[name]
        record.row(title, columns, _beside(name, row, f"{accuracy:.2f} ({robustness:.2f})", f"{nearest:.2f}"))
    if rows:
        mean = np.mean(rows, axis=0)
        record.row(title, columns, _beside(f"mean of {len(rows)}", mean, "0.72 (0.93)", ""))
        groups = ["" if np.isnan(g) else f"{g:.1f}" for _, _, g in mean]
        record.row(title, columns, ["groups", groups[0], "", groups[1], "", *groups[2:]])


def _beside(name: str, row: Any, published: str, nearest: str) -> list[str]:
    cells = [f"{a:.3f} ({r:.2f})" for a, r, _ in row]
    return [name, cells[0], published, cells[1], nearest, *cells[2:]]


def spiral(n: int, seed: int, turns: float = 1.75) -> tuple[Floats, Labels]:
    """Two spiral bands, one per class, that fill a disc."""
    random = np.random.default_rng(seed)
    radius, angle = np.sqrt(random.random(n)), random.random(n)
    y = (np.floor(2 * (angle + turns * radius)) % 2).astype(np.int64)
    angle = 2 * np.pi * angle
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], y


def table3(record: Record, options: argparse.Namespace) -> None:
    """Follow a curved pattern of 2,000 points, two-fold."""
    in_print = {"published": "0.83", "tree": "0.71 (C4.5)", "1-NN": "0.90"}
    settings = {
        "published": published,
        "default": BallPartitionClassifier,
        "averaged": averaged,
        "default, prior=paper": lambda: BallPartitionClassifier(prior="paper"),
        "finer": finer,
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=2, random_state=0),
        "1-NN": lambda: KNeighborsClassifier(1),
        "5-NN": lambda: KNeighborsClassifier(5),
    }
    for name, make in settings.items():
        draws = [scores(make, *spiral(2000, seed), 2, range(1)) for seed in range(1 if options.quick else 5)]
        a, r, g = np.mean(draws, axis=0)
        record.row(
            "Two spiral bands, 2,000 points, two-fold",
            ["method", "accuracy", "test / train", "groups", "in print"],
            [name, f"{a:.3f}", f"{r:.3f}", "" if np.isnan(g) else f"{g:.1f}", in_print.get(name, "")],
        )


def xor(n: int, seed: int, flipped: float) -> tuple[Floats, Labels]:
    """Quadrants of a square, a share of the labels inverted."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    y[random.permutation(n)[: round(flipped * n)]] ^= True
    return X, y.astype(np.int64)


RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
IN_PRINT = {0.0: 0.95, 0.1: 0.85, 0.2: 0.74, 0.3: 0.64}  # accuracy of the method as published


def figure6(record: Record, options: argparse.Namespace) -> None:
    """XOR with labels flipped, and pure noise."""
    n_draws = 2 if options.quick else 10
    settings = {
        "published": published,
        "published, averaged": lambda: averaged(setting="paper"),
        "default": BallPartitionClassifier,
        "averaged": averaged,
        "1-NN": lambda: KNeighborsClassifier(1),
    }
    title = f"XOR, 1,000 points, five-fold, {n_draws} draws: accuracy (standard error), groups"
    for rate in IN_PRINT if options.quick else RATES:
        cells = []
        for name, make in settings.items():
            if name == "published, averaged" and rate not in IN_PRINT:
                cells.append("")
                continue
            draws = [scores(make, *xor(1000, seed, rate), 5, range(1)) for seed in range(n_draws)]
            a, _, g = np.mean(draws, axis=0)
            error = np.std([draw[0] for draw in draws], ddof=1) / np.sqrt(n_draws)
            cells.append(f"{a:.4f} ({error:.4f}) {'' if np.isnan(g) else round(g)}")
        row = [f"{rate:.0%}", f"{1 - rate:.2f}", cells[0], IN_PRINT.get(rate, ""), *cells[1:]]
        record.row(title, ["flipped", "optimum", "published", "in print", *list(settings)[1:]], row)
    n_noise = 20 if options.quick else 100
    n_whole = 0
    for seed in range(n_noise):
        X, _ = xor(1000, seed, 0.0)
        y = np.random.default_rng(1000 + seed).integers(0, 2, 1000)
        n_whole += len(BallPartitionClassifier().fit(X, y).groups_) == 1
    record.figure("Noise", f"1,000 points, {n_noise} draws: one group", n_whole)


OTHER_SETS = (
    "glass",
    "yeast",
    "phoneme",
    "segmentation",
    "vowel",
    "waveform",
    "satimage",
    "pendigits",
    "hepatitis",
    "letter",
    "abalone",
)


def pattern(name: str, n: int, seed: int) -> tuple[Floats, Labels]:
    """Draw a checkerboard, stripes or rings; a tenth of the labels flipped."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    if name == "board":
        y = np.floor(1.5 * X).sum(axis=1) % 2 == 0
    elif name == "stripes":
        y = np.floor(1.25 * (X[:, 0] + X[:, 1])) % 2 == 0
    else:
        y = np.floor(3 * np.hypot(*X.T)) % 2 == 0
    return X, (y ^ (random.random(n) < 0.1)).astype(np.int64)


def choice(record: Record, options: argparse.Namespace) -> None:
    """Compare numbers of partitions and of neighbours on sets that are reported nowhere else."""
    problems: dict[str, list[tuple[Floats, Labels, Floats, Labels]]] = {"patterns": [], "real sets": []}
    for name in ("board", "stripes", "rings"):
        for seed in range(1 if options.quick else 3):
            problems["patterns"].append((*pattern(name, 600, seed), *pattern(name, 3000, 1000 + seed)))
    for name in OTHER_SETS[:3] if options.quick else OTHER_SETS:
        try:
            frame, y, _ = numeric_set(name)
        except DataUnavailableError as error:
            record.say(f"{name}: {error}")
            continue
        frequent = np.bincount(y)[y] >= 8
        X, y = frame.to_numpy()[frequent], y[frequent]
        n_train = min(600, 7 * len(X) // 10)
        a, b, y_a, y_b = train_test_split(X, y, train_size=n_train, stratify=y, random_state=0)
        scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(a)
        problems["real sets"].append((scale.transform(a), y_a, scale.transform(b[:2000]), y_b[:2000]))
    settings = {f"{k}-NN": lambda k=k: KNeighborsClassifier(k) for k in (1, 5)}
    for prior in ("even", "paper"):
        for n_partitions in (1, 8, 32, 64):
            for n_neighbors in (1, 5, 10):
                options = {"prior": prior, "n_partitions": n_partitions, "n_neighbors": n_neighbors}
                title = f"{prior}, {n_partitions} partitions, {n_neighbors} neighbours"
                settings[title] = lambda options=options: BallPartitionClassifier(**options)
    for title, make in settings.items():
        means = []
        for sets in problems.values():
            accuracies = [make().fit(a, y_a).score(b, y_b) for a, y_a, b, y_b in sets]
            means.append(f"{np.mean(accuracies):.4f}" if accuracies else "")
        record.row(
            "Choice: mean accuracy, 600 training rows", ["setting", "patterns", "real sets"], [title, *means]
        )


def naive_bayes(record: Record, options: argparse.Namespace) -> None:
    """Naive Bayes on the columns, with and without the group as one more."""
    title = "Naive Bayes, five-fold accuracy"
    columns = ["set", "columns", "with group, even", "group, even", "with group, paper", "group, paper"]
    rows = []
    for name in SETS[:5] if options.quick else SETS:
        try:
            frame, y, _ = numeric_set(name)
        except DataUnavailableError as error:
            record.say(f"{name}: {error}")
            continue
        seen = []
        for train, test in folds(frame.to_numpy(), y, 5, range(1 if options.quick else 3)):
            scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
            scale.fit(frame.iloc[train])
            points = [scale.transform(frame.iloc[rows]) for rows in (train, test)]
            row = [
                NaiveBayesClassifier(averaging=None)
                .fit(frame.iloc[train], y[train])
                .score(frame.iloc[test], y[test])
            ]
            for prior in ("even", "paper"):
                balls = BallPartitionClassifier(prior=prior).set_output(transform="pandas")
                balls.fit(points[0], y[train])
                # As text: the groups are categories to naive Bayes, not numbers.
                train_groups, test_groups = (balls.transform(part).astype(str) for part in points)
                both = [
                    frame.iloc[rows].reset_index(drop=True).assign(ball_group=groups["ball_group"].to_numpy())
                    for rows, groups in ((train, train_groups), (test, test_groups))
                ]
                row.append(
                    NaiveBayesClassifier(averaging=None).fit(both[0], y[train]).score(both[1], y[test])
                )
                of_group = NaiveBayesClassifier(averaging=None).fit(train_groups, y[train])
                row.append(of_group.score(test_groups, y[test]))
            seen.append(row)
        rows.append(np.mean(seen, axis=0))
        record.row(title, columns, [name, *(f"{value:.3f}" for value in rows[-1])])
    if rows:
        record.row(title, columns, ["mean", *(f"{value:.4f}" for value in np.mean(rows, axis=0))])


def timing(record: Record, options: argparse.Namespace) -> None:
    """Time against the number of points, and the Gabriel graph alone."""
    title = "CPU seconds of one thread, XOR with 10% flipped"
    columns = ["points", "columns", "default", "averaged", "groups"]
    sizes = (250, 500, 1000, 2000) if options.quick else (250, 500, 1000, 2000, 4000, 8000)
    BallPartitionClassifier().fit(*xor(100, 0, 0.1))  # compiles
    for d in (2, 10):
        averaged().fit(np.random.default_rng(0).random((100, d)), np.arange(100) % 2)
        seconds = []
        for n in sizes:
            X, y = xor(n, n, 0.1)
            X = np.hstack([X, np.random.default_rng(n).uniform(-1, 1, size=(n, d - 2))])
            row = []
            for make in (BallPartitionClassifier, averaged):
                times = []
                for _ in range(3 if n <= 2000 else 1):
                    start = time.process_time()
                    fitted = make().fit(X, y)
                    times.append(time.process_time() - start)
                row.append(min(times))
            seconds.append(row)
            record.row(title, columns, [n, d, f"{row[0]:.3f}", f"{row[1]:.3f}", len(fitted.groups_)])
        logs = np.log(sizes), np.log(np.array(seconds))
        for first in (0, 2):
            exponents = np.polyfit(logs[0][first:], logs[1][first:], 1)[0]
            name = f"exponent, from {sizes[first]} up"
            record.row(title, columns, [name, d, *(f"{e:.2f}" for e in exponents), ""])
    for n, d in ((10_000, 2), (2_000, 20)):
        X = np.random.default_rng(0).normal(size=(n, d))
        gabriel_graph(X[:200])
        start = time.process_time()
        gabriel_graph(X)
        spent = time.process_time() - start
        record.row("Gabriel graph", ["points", "columns", "CPU seconds"], [n, d, f"{spent:.2f}"])


def pictures(record: Record, options: argparse.Namespace) -> None:
    """Draw the pictures of the guide, if a folder is named."""
    folder: Path | None = options.folder
    if folder is None:
        record.say("pictures: name a folder by --folder")
        return
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    drawn = {"xor": xor(1000, 0, 0.1), "spiral": spiral(2000, 0)}
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    side = np.linspace(-1, 1, 300)
    everywhere = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for ax, (name, (X, y)) in zip(axes, drawn.items(), strict=True):
        of_class = averaged().fit(X, y).predict_proba(everywhere)[:, 1].reshape(300, 300)
        shown = ax.imshow(of_class, origin="lower", extent=(-1, 1, -1, 1), cmap="RdYlBu_r", vmin=0, vmax=1)
        ax.contour(side, side, of_class, levels=[0.5], colors="black", linewidths=1)
        ax.set(title=f"{name}: probability of class 1", xlabel="x", ylabel="y")
    figure.colorbar(shown, ax=axes, shrink=0.8)
    figure.savefig(folder / "balls-averaged.png", dpi=80)
    plt.close(figure)
    for name, (X, y) in drawn.items():
        figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained", sharey=True)
        for ax, prior in zip(axes, ("even", "paper"), strict=True):
            fitted = BallPartitionClassifier(prior=prior).fit(pd.DataFrame(X, columns=["x", "y"]), y)
            fitted.plot(ax)
            ax.set_title(f'prior="{prior}": {len(fitted.groups_)} groups')
            ax.set_aspect("equal")
        figure.savefig(folder / f"balls-{name}.png", dpi=80)
        plt.close(figure)


if __name__ == "__main__":
    run(
        "balls",
        __doc__,
        {
            "sets": table2,
            "spiral": table3,
            "xor": figure6,
            "bayes": naive_bayes,
            "time": timing,
            "choice": choice,
            "pictures": pictures,
        },
        {"--folder": {"type": Path, "help": "where pictures go"}},
    )
