"""Discretization that uses the rows without a label: the figures of its paper.

    python -m benchmarks.semi_supervised                    # everything; about half an hour
    python -m benchmarks.semi_supervised --quick            # few sets, few repeats
    python -m benchmarks.semi_supervised --curves FOLDER    # also draws figures 5 and 6

The last table is the AUC of naive Bayes on the test half, from 4 to 256 labels: on the labeled rows alone,
with the bounds moved to the median of the unlabeled values between labels, and with the semi-supervised
criterion. Measured: moving the bounds changes nothing that can be told from chance, as the paper found. The
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
from rich.console import Console
from rich.table import Table
from scipy.stats import wilcoxon
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import DataUnavailableError, load
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
console = Console(width=200)


def figure_1() -> None:
    """Print the least number of labels that gives two intervals when the classes lie apart."""
    wanted = {10: 6, 20: 8, 50: 10, 100: 12, 200: 14, 500: 16, 1000: 18}
    for n_rows, paper in wanted.items():
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
        told = "as in the paper" if found == [6, paper] else "NOT as in the paper"
        console.print(
            f"figure 1, N = {n_rows:5d}: supervised {found[0]}, criterion {found[1]} (6, {paper}): {told}"
        )


def figure_3() -> None:
    """Print the posterior of the bound over the unlabeled zone and outside."""
    x = np.linspace(0, 1, 100)
    y = np.where(x < 0.4, 0, np.where(x > 0.6, 1, -1))
    found = bound_posterior(x, y)
    surprise = -np.log(found.probability)
    inside = (found.bounds > x[y == 0].max()) & (found.bounds < x[y == 1].min())
    console.print(
        f"figure 3: -log P(bound | data) over [0.4, 0.6] from {surprise[inside].min():.4f} to "
        f"{surprise[inside].max():.4f} (flat), at least {surprise[~inside].min():.2f} outside (lowest inside)"
    )


def figure_4() -> None:
    """Print the difference of the likelihood terms at growing N, half of the rows labeled.

    The paper's text has two pure intervals, for which both terms are zero at the best class totals whatever N
    is; the half-logarithm it speaks of shows where an interval mixes its classes.
    """
    console.print("figure 4: semi-supervised less supervised likelihood term, half of the rows labeled")
    for n_rows in (50, 500, 5000, 50_000, 500_000):
        labels, total = n_rows // 4, n_rows // 2
        pure = _difference([labels, 0], total) + _difference([0, labels], total)
        mixed = _difference([labels, labels], n_rows)
        console.print(
            f"  N = {n_rows:7,d}: two pure intervals {pure:.3f}; one interval of both classes {mixed:.3f} "
            f"nats, {mixed / math.log(2):.2f} bits; log N = {math.log(n_rows):.2f}"
        )


def _difference(labeled: list[int], total: int) -> float:
    """Difference of the likelihood terms of one interval, at its best class totals."""
    known = sum(labeled)
    totals = best_class_totals([labeled], [total])[0].tolist()
    semi = math.lgamma(total + 1) - math.lgamma(total - known + 1)
    semi -= sum(math.lgamma(n + 1) - math.lgamma(n - k + 1) for n, k in zip(totals, labeled, strict=True))
    return semi - (math.lgamma(known + 1) - sum(math.lgamma(k + 1) for k in labeled))


def brute_force(n_problems: int) -> None:
    """Compare with every partition and every class totals of small problems."""
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
    console.print(
        f"brute force over all partitions and class totals, N <= 12, J <= 3: {equal} of {n_problems} equal"
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


def speed(n_rows: int) -> None:
    """Compare the fit with 1% of labels to the fully supervised fit, one column."""
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
    console.print(
        f"{n_rows:,} rows, 1% labeled, one column: supervised on all labels {seconds[None]:.3f} s, criterion "
        f"{criterion:.2f} times that, bounds {bounds:.2f} times (wanted: at most 3)"
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


def curves(name: str, n_repeats: int) -> pd.DataFrame | None:
    """AUC of each method on both halves, by number of labels."""
    try:
        data = load(name)
    except DataUnavailableError as error:
        console.print(f"{name}: {error}")
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
                    make = partial(NaiveBayesClassifier, semi_supervised=method)
                    used = known if method is None else np.ones(train.size, bool)
                    model = make().fit(X.iloc[train[used]], labels[used])
                    told = (auc(model, X.iloc[train], y[train]), auc(model, X.iloc[test], y[test]))
                    rows.append((name, repeat, fold, n_labels, method or "supervised", *told))
    return pd.DataFrame(rows, columns=["set", "repeat", "fold", "labels", "method", "train", "test"])


def section_6(names: list[str], n_repeats: int, folder: Path | None) -> None:
    """Print the table of AUC and what it says; draw the curves when asked."""
    found = [frame for name in names if (frame := curves(name, n_repeats)) is not None]
    if not found:
        return
    told = pd.concat(found)
    mean = told.groupby(["set", "labels", "method"], sort=False)["test"].mean().unstack("method")
    shown = Table(title=f"Test AUC, {n_repeats} times 2 folds: supervised, below it bounds, then criterion")
    counts = [n for n in LABELS if n in set(mean.index.get_level_values("labels"))]
    shown.add_column("set")
    for n in counts:
        shown.add_column(str(n), justify="right")
    for name in dict.fromkeys(told["set"]):
        cells = []
        for n in counts:
            row = mean.loc[(name, n)] if (name, n) in mean.index else None
            cells.append(
                ""
                if row is None
                else "\n".join(f"{row[m] * 100:.1f}" for m in ("supervised", "bounds", "criterion"))
            )
        shown.add_row(name, *cells)
    console.print(shown)
    for method in ("bounds", "criterion"):
        difference = (mean[method] - mean["supervised"]).dropna()
        by_set = difference.groupby("set", sort=False).mean()
        test = wilcoxon(by_set) if (by_set != 0).any() else None
        console.print(
            f"{method} less supervised: mean {difference.mean() * 100:+.3f} points of AUC, by set from "
            f"{by_set.min() * 100:+.2f} to {by_set.max() * 100:+.2f}; Wilcoxon over the sets p = "
            f"{1.0 if test is None else test.pvalue:.3f}"
        )
    if folder is not None:
        draw(told, folder)


def draw(told: pd.DataFrame, folder: Path) -> None:
    """Draw a page of curves for each half of the sets, like figures 5 and 6 of the paper."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(told["set"]))
    for page, chosen in enumerate((names[:8], names[8:]), start=5):
        if not chosen:
            continue
        figure, axes = plt.subplots(4, 2, figsize=(9, 12), layout="constrained")
        for ax in axes.ravel()[len(chosen) :]:
            ax.set_visible(False)
        for name, ax in zip(chosen, axes.ravel(), strict=False):
            own = told[told["set"] == name]
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
        console.print(f"drawn: {folder / f'figure_{page}.png'}")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=None)
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--curves", type=Path, default=None, metavar="FOLDER")
    asked = parser.parse_args()
    figure_1()
    figure_3()
    figure_4()
    brute_force(20 if asked.quick else 100)
    speed(100_000 if asked.quick else 1_000_000)
    names = asked.sets if asked.sets is not None else (QUICK if asked.quick else SETS)
    section_6(names, asked.repeats or (2 if asked.quick else 10), asked.curves)


if __name__ == "__main__":
    main()
