"""Discretization that uses the rows without a label: the published figures (Bondu, Boullé, Lemaire, 2010).

    python -m benchmarks.semi_supervised                    # everything; about half an hour
    python -m benchmarks.semi_supervised --quick            # few sets, few repeats
    python -m benchmarks.semi_supervised --only naive_bayes --curves FOLDER    # also draws figures 5 and 6

The last table is the AUC of naive Bayes on the test half, from 4 to 256 labels: on the labeled rows alone,
with the bounds moved to the median of the unlabeled values between labels, and with the semi-supervised
criterion. Measured: moving the bounds makes no difference beyond chance, as published. The
criterion asks for more labels before it cuts the more unlabeled rows there are, and is behind till then.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import DataUnavailableError, load
from benchmarks.records import Record, run
from damier import MODLDiscretizer, NaiveBayesClassifier, bound_posterior
from damier.criteria import best_class_totals

SETS = [
    *("adult", "australian", "breast", "crx", "german_numeric", "heart", "hepatitis", "hypothyroid"),
    *("ionosphere", "iris", "pima", "sick_euthyroid", "vehicle", "waveform", "wine"),
]
QUICK = ["breast", "heart", "iris", "pima", "wine"]
LABELS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
METHODS = (None, "bounds", "criterion")
# Of adult, so that all sets take their turn in minutes.
_MOST_ROWS = 6000


def figure_1(record: Record, options: argparse.Namespace) -> None:
    """Find the least number of labels that gives two intervals when the classes lie apart."""
    del options
    published = {10: 6, 20: 8, 50: 10, 100: 12, 200: 14, 500: 16, 1000: 18}
    for n_rows, least in published.items():
        found = []
        for mode in (None, "criterion"):
            for n_labels in range(2, n_rows + 1, 2):
                y = np.full(n_rows, -1)
                y[: n_labels // 2] = 0
                y[n_rows // 2 : n_rows // 2 + n_labels // 2] = 1
                x = np.repeat([0.0, 1.0], n_rows // 2)[:, None]
                known = y >= 0 if mode is None else np.ones(n_rows, bool)
                fitted = MODLDiscretizer(semi_supervised=mode).fit(x[known], y[known])
                if fitted.partitions_["x0"].n_parts == 2:
                    found.append(n_labels)
                    break
        record.row(
            "Least number of labels that gives two intervals",
            ["rows", "supervised", "published", "criterion", "published"],
            [n_rows, found[0], 6, found[1], least],
        )


def figure_3(record: Record, options: argparse.Namespace) -> None:
    """Look at the posterior of the bound over the unlabeled zone and outside."""
    del options
    x = np.linspace(0, 1, 100)
    y = np.where(x < 0.4, 0, np.where(x > 0.6, 1, -1))
    found = bound_posterior(x, y)
    surprise = -np.log(found.probability)
    inside = (found.bounds > x[y == 0].max()) & (found.bounds < x[y == 1].min())
    record.figure(
        "Posterior of the bound, no label in [0.4, 0.6]",
        "-log P(bound | data)",
        f"from {surprise[inside].min():.4f} to {surprise[inside].max():.4f} inside, "
        f"at least {surprise[~inside].min():.2f} outside",
        "flat inside, lower than outside (published)",
    )


def figure_4(record: Record, options: argparse.Namespace) -> None:
    """Compare the likelihood terms at growing N, half of the rows labeled.

    The publication has two pure intervals, for which both terms are zero at the best class totals whatever N
    is; the half-logarithm it speaks of shows where an interval mixes its classes.
    """
    del options
    for n_rows in (50, 500, 5000, 50_000, 500_000):
        labels, total = n_rows // 4, n_rows // 2
        pure = _difference([labels, 0], total) + _difference([0, labels], total)
        mixed = _difference([labels, labels], n_rows)
        record.row(
            "Semi-supervised less supervised likelihood term, half of the rows labeled, nats",
            ["rows", "two pure intervals", "one interval of both classes", "log N"],
            [f"{n_rows:,}", f"{pure:.3f}", f"{mixed:.3f}", f"{math.log(n_rows):.2f}"],
        )


def _difference(labeled: list[int], total: int) -> float:
    """Difference of the likelihood terms of one interval, at its best class totals."""
    known = sum(labeled)
    totals = best_class_totals([labeled], [total])[0].tolist()
    semi = math.lgamma(total + 1) - math.lgamma(total - known + 1)
    semi -= sum(math.lgamma(n + 1) - math.lgamma(n - k + 1) for n, k in zip(totals, labeled, strict=True))
    return semi - (math.lgamma(known + 1) - sum(math.lgamma(k + 1) for k in labeled))


def brute_force(record: Record, options: argparse.Namespace) -> None:
    """Compare with every partition and every class totals of small problems."""
    n_problems = 20 if options.quick else 100
    rng = np.random.default_rng(0)
    equal = 0
    for _ in range(n_problems):
        n_rows, n_classes = int(rng.integers(3, 13)), int(rng.integers(2, 4))
        x = rng.integers(0, n_rows, n_rows).astype(float)
        y = rng.integers(-1, n_classes, n_rows)
        y[:2] = [0, 1]
        fitted = MODLDiscretizer(semi_supervised="criterion").fit(x[:, None], y)
        classes = fitted.classes_.tolist()
        codes = np.array([classes.index(c) if c >= 0 else -1 for c in y.tolist()])
        equal += abs(fitted.partitions_["x0"].cost - _least_cost(x, codes, len(classes))) < 1e-8
    record.figure(
        "Against all partitions and class totals",
        "up to 12 rows and 3 classes: equal cost",
        f"{equal} of {n_problems}",
    )


def _least_cost(x: np.ndarray, codes: np.ndarray, n_classes: int) -> float:
    distinct, of_row = np.unique(x, return_inverse=True)
    least = math.inf
    for cuts in itertools.product([0, 1], repeat=distinct.size - 1):
        part = np.concatenate([[0], np.cumsum(cuts)]).astype(int)[of_row]
        n_parts, n_rows = int(part.max()) + 1, x.size
        cost = math.log(n_rows) + math.log(math.comb(n_rows + n_parts - 1, n_parts - 1))
        for i in range(n_parts):
            own = tuple(int(np.sum((part == i) & (codes == j))) for j in range(n_classes))
            cost += _least_interval(int(np.sum(part == i)), own)
        least = min(least, cost)
    return least


def _least_interval(total: int, own: tuple[int, ...]) -> float:
    """Cost of an interval at the best of all class totals, one by one."""
    n_classes, known = len(own), sum(own)
    least = math.inf
    for first in itertools.product(range(total + 1), repeat=n_classes - 1):
        totals = (*first, total - sum(first))
        if all(n >= k for n, k in zip(totals, own, strict=True)):
            ways = math.prod(math.perm(n, k) for n, k in zip(totals, own, strict=True))
            least = min(least, math.log(math.perm(total, known)) - math.log(ways))
    return math.log(math.comb(total + n_classes - 1, n_classes - 1)) + least


def speed(record: Record, options: argparse.Namespace) -> None:
    """Compare the fit with 1% of labels to the fully supervised fit, one column."""
    n_rows = 100_000 if options.quick else 1_000_000
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 1))
    y = (x[:, 0] + rng.normal(size=n_rows) > 0).astype(int)
    few = np.where(rng.random(n_rows) < 0.01, y, -1)
    seconds = {}
    for mode, target in ((None, y), ("criterion", few), ("bounds", few)):
        took = []
        for _ in range(4):
            begin = time.perf_counter()
            MODLDiscretizer(semi_supervised=mode).fit(x, target)
            took.append(time.perf_counter() - begin)
        seconds[mode] = min(took)
    criterion, bounds = (seconds[mode] / seconds[None] for mode in ("criterion", "bounds"))
    record.row(
        "One column, 1% of the rows labeled",
        ["rows", "supervised on all labels, s", "criterion, times that", "bounds, times that"],
        [f"{n_rows:,}", f"{seconds[None]:.3f}", f"{criterion:.2f}", f"{bounds:.2f}"],
    )


def auc(model: NaiveBayesClassifier, X: pd.DataFrame, y: np.ndarray) -> float:
    """Area under the ROC curve, classes against the rest weighted by frequency, absent classes at chance."""
    proba = model.predict_proba(X)
    classes = model.classes_.tolist()
    areas, weights = [], []
    for c in np.unique(y).tolist():
        own = y == c
        score = proba[:, classes.index(c)] if c in classes else np.zeros(len(y))
        areas.append(roc_auc_score(own, score))
        weights.append(own.sum())
    return float(np.average(areas, weights=weights))


def curves(record: Record, name: str, n_repeats: int) -> pd.DataFrame | None:
    """AUC of each method on both halves, by number of labels."""
    try:
        data = load(name)
    except DataUnavailableError as error:
        record.say(f"{name}: {error}")
        return None
    X = data.X.drop(columns="Sample_code_number", errors="ignore")
    y = np.unique(data.y.to_numpy().astype(str), return_inverse=True)[1]
    if len(y) > _MOST_ROWS:
        kept = np.random.default_rng(0).permutation(len(y))[:_MOST_ROWS]
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    rows = []
    for repeat in range(n_repeats):
        if name == "adult":  # 4,000 rows of it say as much here
            kept = np.random.default_rng(repeat).permutation(len(y))[:4000]
            X, y = (
                data.X.iloc[kept].reset_index(drop=True),
                np.unique(data.y.to_numpy()[kept], return_inverse=True)[1],
            )
        halves = StratifiedKFold(2, shuffle=True, random_state=repeat).split(y, y)
        for fold, (train, test) in enumerate(halves):
            order = np.random.default_rng([repeat, fold]).permutation(train.size)
            for n_labels in LABELS:
                if n_labels > train.size:
                    break
                labels = np.full(train.size, -1)
                labels[order[:n_labels]] = y[train][order[:n_labels]]
                if np.unique(labels[labels >= 0]).size < 2:
                    continue
                known = labels >= 0
                for method in METHODS:
                    make = partial(NaiveBayesClassifier, averaging=None, semi_supervised=method)
                    used = known if method is None else np.ones(train.size, bool)
                    model = make().fit(X.iloc[train[used]], labels[used])
                    areas = (auc(model, X.iloc[train], y[train]), auc(model, X.iloc[test], y[test]))
                    rows.append((name, repeat, fold, n_labels, method or "supervised", *areas))
    return pd.DataFrame(rows, columns=["set", "repeat", "fold", "labels", "method", "train", "test"])


def naive_bayes(record: Record, options: argparse.Namespace) -> None:
    """Compare the AUC of naive Bayes with the three methods; draw the curves when asked."""
    names = options.sets if options.sets is not None else (QUICK if options.quick else SETS)
    n_repeats = options.repeats or (2 if options.quick else 10)
    found = [frame for name in names if (frame := curves(record, name, n_repeats)) is not None]
    if not found:
        return
    areas = pd.concat(found)
    mean = areas.groupby(["set", "labels", "method"], sort=False)["test"].mean().unstack("method")
    counts = [n for n in LABELS if n in set(mean.index.get_level_values("labels"))]
    rows = []
    for name in dict.fromkeys(areas["set"]):
        row = [name]
        for n in counts:
            held = mean.loc[(name, n)] if (name, n) in mean.index else None
            order = ("supervised", "bounds", "criterion")
            row.append("" if held is None else " / ".join(f"{100 * held[m]:.1f}" for m in order))
        rows.append(row)
    differences = []
    for method in ("bounds", "criterion"):
        difference = (mean[method] - mean["supervised"]).dropna()
        by_set = difference.groupby("set", sort=False).mean()
        test = wilcoxon(by_set) if (by_set != 0).any() else None
        differences.append(
            f"{method} less supervised: mean {difference.mean() * 100:+.3f} points of AUC, by set from "
            f"{by_set.min() * 100:+.2f} to {by_set.max() * 100:+.2f}; Wilcoxon over the sets p = "
            f"{1.0 if test is None else test.pvalue:.3f}."
        )
    record.table(
        f"Test AUC by number of labels, {n_repeats} times 2 folds: supervised / bounds / criterion",
        ["set", *map(str, counts)],
        rows,
        note=" ".join(differences),
    )
    if options.curves is not None:
        draw(areas, options.curves)


def draw(areas: pd.DataFrame, folder: Path) -> None:
    """Draw a page of curves for each half of the sets, like the published figures 5 and 6."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(areas["set"]))
    for page, chosen in enumerate((names[:8], names[8:]), start=5):
        if not chosen:
            continue
        figure, axes = plt.subplots(4, 2, figsize=(9, 12), layout="constrained")
        for ax in axes.ravel()[len(chosen) :]:
            ax.set_visible(False)
        for name, ax in zip(chosen, axes.ravel(), strict=False):
            own = areas[areas["set"] == name]
            for method, colour in (
                ("supervised", "black"),
                ("bounds", "tab:blue"),
                ("criterion", "tab:orange"),
            ):
                curve = own[own["method"] == method].groupby("labels")[["train", "test"]].mean()
                ax.plot(curve.index, curve["test"], color=colour, label=f"{method}, test")
                ax.plot(curve.index, curve["train"], color=colour, ls=":", label=f"{method}, train")
            ax.set_xscale("log", base=2)
            ax.set_title(name)
            ax.grid(alpha=0.3)
        axes.ravel()[0].legend(fontsize=7, frameon=False)
        figure.supxlabel("labels")
        figure.supylabel("AUC")
        figure.savefig(folder / f"figure_{page}.png", dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    run(
        "semi_supervised",
        __doc__,
        {
            "labels": figure_1,
            "posterior": figure_3,
            "likelihood": figure_4,
            "brute_force": brute_force,
            "speed": speed,
            "naive_bayes": naive_bayes,
        },
        {
            "--repeats": {"type": int},
            "--sets": {"nargs": "*", "choices": SETS},
            "--curves": {"type": Path, "metavar": "FOLDER"},
        },
    )
