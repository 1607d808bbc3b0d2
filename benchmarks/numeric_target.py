"""Numeric targets: predicted distributions beside peers, over 22 tables, five folds.

    python -m benchmarks.numeric_target                        # everything that is installed
    python -m benchmarks.numeric_target --quick                # six small tables, two folds, no Khiops
    python -m benchmarks.numeric_target --only predictions --tables bodyfat cpu --methods damier linear

Peers: Khiops' regressor (in the interpreter that ``DAMIER_PEER_PYTHON`` names), gradient boosting of 19
quantiles, a quantile forest (the mean over its trees of the distributions in the leaves; Meinshausen, 2006),
and a linear model with Gaussian errors. CRPS is the continuous ranked probability score. Boosting gives 19
quantiles and not a whole distribution, so that all are compared by twice the mean pinball loss at the levels
0.05, 0.10, ... 0.95, which is the CRPS on that grid; both are divided by the score of the distribution of the
training targets, so that tables of different units have a mean.

The negative log predictive density on the rank is the mean of -log P(rank | x) over the test rows, P being
shared equally among the N training ranks of an elementary interval: the logarithmic score of ranks that Hue
and Boullé (2007) describe. It bounds the score from below by 0; a model that predicts the distribution of
the training targets has log N. The data sets of their tables are not among these, so that no figure stands
beside it.

Design choices were made on tables of `DESIGN`: which optima are averaged, and that weights are convex, on all
but sensory or on all eight; the share that stays the distribution of all rows, and how evidence is averaged,
on the five of `CHOSEN`. Means over the other tables are given apart.

With one thread, boosting takes 10 to 40 s of CPU per table of some hundred rows, and minutes on the largest
ones. ``--keep`` makes a run that can be cut: what a method did on a fold is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmarks.datasets import DataUnavailableError, folders
from benchmarks.peers import environment, interpreter
from benchmarks.records import Record, run

LEVELS = np.arange(1, 20) / 20
TABLES = (
    "abalone_rings",
    "autohorse",
    "autoprice",
    "beijing_pm25",
    "bodyfat",
    "breasttumor",
    "california",
    "cholesterol",
    "cleveland",
    "cpu",
    "diamonds",
    "echomonths",
    "fishcatch",
    "lowbwt",
    "meta",
    "pbc",
    "pwlinear",
    "quake",
    "sensory",
    "servo",
    "veteran",
    "wine_white",
)
QUICK = ("bodyfat", "cleveland", "cpu", "pwlinear", "servo", "sensory")
# The tables that design choices were made on.
DESIGN = ("abalone_rings", "autoprice", "bodyfat", "cleveland", "meta", "pwlinear", "sensory", "wine_white")
# Those that what concerns averaged evidence was chosen on.
CHOSEN = ("autoprice", "bodyfat", "cleveland", "meta", "pwlinear")
METHODS = ("damier", "damier-best", "khiops", "boosting", "forest", "linear")
# Equally spaced ranks at which Khiops is asked for its distribution.
_RANKS = 200


@dataclass
class Scored:
    """What a method says about test rows: quantiles at `LEVELS`, the mean, and whatever else it knows."""

    quantiles: np.ndarray
    mean: np.ndarray
    crps: np.ndarray | None = None
    log_loss: np.ndarray | None = None
    fit_seconds: float = np.nan
    fit_cpu: float = np.nan


# Fold -> name of a score -> its sum over the test rows, and how many they are.
Folds = dict[str, dict[str, list[float]]]
Method = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray], "Scored | None"]


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Read one table: inputs and target."""
    for folder in folders():
        path = folder / "numeric_target" / f"{name}.parquet"
        if path.exists():
            frame = pd.read_parquet(path)
            return frame.drop(columns="target"), frame["target"].to_numpy(float)
    raise DataUnavailableError(f"{name}: no numeric_target/{name}.parquet in {folders()}")


# ----- scores


def crps_of_points(values: np.ndarray, shares: np.ndarray, y: np.ndarray) -> np.ndarray:
    """CRPS of distributions on sorted values: rows x values, exactly.

    >>> crps_of_points(np.array([0.0, 1.0]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.25, 1.0]))
    array([0.25, 1.  ])
    """
    below = np.cumsum(shares, axis=1)[:, :-1]
    gaps, result = np.diff(values), np.empty(len(y))
    for i, one in enumerate(y):
        result[i] = gaps @ (below[i] - (one <= values[:-1])) ** 2
    # A target between two values splits their gap: what lies above it counts as reached.
    gap = np.clip(np.searchsorted(values, y) - 1, 0, len(gaps) - 1)
    above = np.clip(values[gap + 1] - y, 0, gaps[gap]) * (y > values[gap])
    result += above * (1 - 2 * below[np.arange(len(y)), gap])
    return result + np.maximum(values[0] - y, 0) + np.maximum(y - values[-1], 0)


def crps_of_sample(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """CRPS of the distribution of one sorted sample, for many targets.

    >>> crps_of_sample(np.array([0.0, 1.0]), np.array([0.0, 1.0, 3.0]))
    array([0.25, 0.25, 2.25])
    """
    n, sums = len(values), np.concatenate([[0.0], np.cumsum(values)])
    below = np.searchsorted(values, y)
    distance = y * (2 * below - n) + sums[-1] - 2 * sums[below]
    spread = (2 * np.arange(1, n + 1) - n - 1) @ values
    return distance / n - spread / n**2


def pinball(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Twice the mean pinball loss at `LEVELS`."""
    error = y[:, np.newaxis] - quantiles
    return 2 * np.maximum(LEVELS * error, (LEVELS - 1) * error).mean(axis=1)


def quantiles_of_points(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Quantiles at `LEVELS`: the least value that has the level below or at it."""
    below = np.cumsum(shares, axis=1)
    found = [np.minimum((below < q - 1e-9).sum(axis=1), len(values) - 1) for q in LEVELS]
    return values[np.stack(found, axis=1)]


def _chunks(n_rows: int, width: int) -> list[slice]:
    step = max(1, 20_000_000 // width)
    return [slice(start, start + step) for start in range(0, n_rows, step)]


# ----- the methods


def fit_damier(
    X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray, **options: Any
) -> Scored:
    """Our own."""
    from damier import NaiveBayesRegressor

    begin, begin_cpu = time.perf_counter(), time.process_time()
    model = NaiveBayesRegressor(**options).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    found = model.model_
    shares, bounds = model.predict_distribution(X_test)
    crps = np.empty(len(y_test))
    for rows in _chunks(len(y_test), len(found.values)):
        points = found.value_shares(shares[rows])
        crps[rows] = crps_of_points(found.values, points, y_test[rows])
    own = np.searchsorted(bounds, y_test, side="left")
    sizes = found.interval_counts
    log_loss = np.log(sizes[own]) - np.log(shares[np.arange(len(y_test)), own])
    quantiles = model.predict_quantile(X_test, LEVELS)
    return Scored(quantiles, model.predict(X_test), crps, log_loss, seconds, cpu)


def fit_khiops(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray) -> Scored | None:
    """Khiops' selective naive Bayes, in a process of its own."""
    python = interpreter("khiops", os.environ.get("DAMIER_PEER_PYTHON", sys.executable))
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("train", X.assign(target=y)), ("test", X_test.assign(target=y_test))):
            columns = {column: rows[column].tolist() for column in rows}
            (Path(folder) / f"{name}.pickle").write_bytes(pickle.dumps(columns))
        worker = Path(__file__).with_name("khiops_regressor_worker.py")
        ran = subprocess.run(
            [python, str(worker), folder, str(_RANKS)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(python),
            timeout=3600,
        )
        lines = [line for line in ran.stdout.splitlines() if line.startswith("RESULT ")]
        if not lines:
            raise RuntimeError(f"Khiops failed: {ran.stderr.strip()[-500:]}")
        took = json.loads(lines[0].removeprefix("RESULT "))
        held = np.load(Path(folder) / "distribution.npz")
        cumulated, means = held["cumulated"], held["means"]
    # Its ranks turned into training values: row i of n covers the ranks (i - 1)/n to i/n.
    values = np.sort(y)
    edges = np.arange(1, len(y) + 1) / len(y)
    knots = np.arange(_RANKS + 1) / _RANKS
    crps, quantiles = np.empty(len(y_test)), np.empty((len(y_test), len(LEVELS)))
    for rows in _chunks(len(y_test), len(values)):
        below = np.stack([np.interp(edges, knots, np.concatenate([[0.0], c])) for c in cumulated[rows]])
        shares = np.diff(below, axis=1, prepend=0.0)
        crps[rows] = crps_of_points(values, shares, y_test[rows])
        quantiles[rows] = quantiles_of_points(values, shares)
    return Scored(quantiles, means, crps, None, took["fit"], took["cpu"])


def _columns(X: pd.DataFrame) -> tuple[list[str], list[str], pd.DataFrame]:
    """Names of the numeric and of the categorical columns; the latter as text, missing ones too."""
    numeric = [name for name in X if pd.api.types.is_numeric_dtype(X[name])]
    others = [name for name in X if name not in numeric]
    X = X.copy()
    for name in others:
        X[name] = X[name].astype(object).where(X[name].notna(), "missing").astype(str)
    return numeric, others, X


def _numbers(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, list[bool]]:
    """Categories coded by place, 254 of them at most; which columns they are."""
    from sklearn.preprocessing import OrdinalEncoder

    numeric, others, X = _columns(X)
    X_test = _columns(X_test)[2]
    coder = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        max_categories=254,
        encoded_missing_value=np.nan,
    )
    arrays = []
    coder.fit(X[others]) if others else None
    for frame in (X, X_test):
        held = [frame[numeric].to_numpy(float)]
        if others:
            held.append(coder.transform(frame[others]))
        arrays.append(np.hstack(held))
    return arrays[0], arrays[1], [False] * len(numeric) + [True] * len(others)


def fit_boosting(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, _: np.ndarray) -> Scored:
    """Histogram gradient boosting, one model per quantile and one for the mean."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    train, test, categorical = _numbers(X, X_test)
    begin = time.perf_counter()
    columns = []
    for level in LEVELS:
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=level, categorical_features=categorical, random_state=0
        )
        columns.append(model.fit(train, y).predict(test))
    model = HistGradientBoostingRegressor(categorical_features=categorical, random_state=0).fit(train, y)
    seconds = time.perf_counter() - begin
    return Scored(np.sort(np.stack(columns, axis=1), axis=1), model.predict(test), fit_seconds=seconds)


def fit_forest(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray) -> Scored:
    """Quantile forest: the mean over the trees of the distributions of the training targets in the leaves."""
    import scipy.sparse as sp
    from sklearn.ensemble import RandomForestRegressor

    train, test, _ = _numbers(X, X_test)
    train, test = np.nan_to_num(train, nan=-1e9), np.nan_to_num(test, nan=-1e9)
    begin = time.perf_counter()
    forest = RandomForestRegressor(100, min_samples_leaf=5, max_features=1 / 3, random_state=0).fit(train, y)
    seconds = time.perf_counter() - begin
    values, place = np.unique(y, return_inverse=True)
    leaves, tested = forest.apply(train), forest.apply(test)
    first = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
    n, trees = leaves.shape
    member = sp.csr_array(
        (np.ones(n * trees), ((leaves + first[:-1]).ravel(), np.repeat(place, trees))),
        shape=(first[-1], len(values)),
    )
    member = sp.diags_array(1 / np.maximum(member.sum(axis=1), 1) / trees) @ member
    reached = sp.csr_array(
        (np.ones(tested.size), (np.repeat(np.arange(len(test)), trees), (tested + first[:-1]).ravel())),
        shape=(len(test), first[-1]),
    )
    crps, quantiles = np.empty(len(test)), np.empty((len(test), len(LEVELS)))
    for rows in _chunks(len(test), len(values)):
        shares = (reached[rows] @ member).toarray()
        crps[rows] = crps_of_points(values, shares, y_test[rows])
        quantiles[rows] = quantiles_of_points(values, shares)
    return Scored(quantiles, forest.predict(test), crps, None, seconds)


def fit_linear(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray) -> Scored:
    """Ridge regression, its penalty chosen by leave-one-out, with Gaussian errors of one variance."""
    from scipy.stats import norm
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric, others, X = _columns(X)
    X_test = _columns(X_test)[2]
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numeric),
            (OneHotEncoder(handle_unknown="ignore"), others),
        ),
        RidgeCV(np.logspace(-3, 3, 13)),
    )
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    # The leave-one-out error, which RidgeCV minimised, is the honest variance.
    spread = np.sqrt(-model[-1].best_score_)
    mean = model.predict(X_test)
    z = (y_test - mean) / spread
    crps = spread * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    return Scored(mean[:, np.newaxis] + spread * norm.ppf(LEVELS), mean, crps, None, seconds)


FITS: dict[str, Method] = {
    "damier": fit_damier,
    "damier-best": partial(fit_damier, evidence="best"),
    "khiops": fit_khiops,
    "boosting": fit_boosting,
    "forest": fit_forest,
    "linear": fit_linear,
}


# ----- the parts


def measure(
    method: str, X: pd.DataFrame, y: np.ndarray, n_folds: int, kept: Folds, save: Callable[[], None]
) -> dict[str, float] | None:
    """Cross-validate one method on one table; the folds are the same for all.

    A fold that ``kept`` holds is not measured again; ``save`` is called after each that is.
    """
    fold_of = np.arange(len(y)) % 5
    np.random.default_rng(0).shuffle(fold_of)
    for fold in range(n_folds):
        if str(fold) in kept:
            continue
        test = fold_of == fold
        scored = FITS[method](X[~test], y[~test], X[test], y[test])
        if scored is None:
            return None
        values = np.sort(y[~test])
        plain = np.quantile(values, LEVELS, method="inverted_cdf")
        columns = {
            "grid": pinball(scored.quantiles, y[test]),
            "plain grid": pinball(np.tile(plain, (test.sum(), 1)), y[test]),
            "crps": scored.crps,
            "plain crps": crps_of_sample(values, y[test]),
            "square": (scored.mean - y[test]) ** 2,
            "absolute": np.abs(scored.quantiles[:, 9] - y[test]),
            "covered": (scored.quantiles[:, 0] <= y[test]) & (y[test] <= scored.quantiles[:, -1]),
            "rank": scored.log_loss,
            "log rows": np.full(test.sum(), np.log(len(values))),
            "seconds": np.array([scored.fit_seconds]),
            "cpu": np.array([scored.fit_cpu]),
        }
        kept[str(fold)] = {
            name: [float(column.sum()), len(column)] for name, column in columns.items() if column is not None
        }
        save()
    return means_of(kept, n_folds)


def means_of(kept: Folds, n_folds: int) -> dict[str, float] | None:
    """Means over the rows of all folds; None if one is not measured."""
    if len(kept) < n_folds:
        return None
    folds = list(kept.values())
    means = {name: sum(f[name][0] for f in folds) / sum(f[name][1] for f in folds) for name in folds[0]}
    return means | {"rmse": means["square"] ** 0.5}


def cross_validated(
    record: Record, options: argparse.Namespace, tables: Sequence[str], methods: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Means of the scores of each method that is installed, on each table."""
    n_folds = 2 if options.quick else 5
    found: dict[str, dict[str, dict[str, float]]] = {}
    for method in methods:
        path = None if options.keep is None else Path(f"{options.keep}_{method}.json")
        held: dict[str, Folds] = json.loads(path.read_text()) if path and path.exists() else {}

        def save(path: Path | None = path, held: dict[str, Folds] = held) -> None:
            if path:
                path.write_text(json.dumps(held))

        of_tables: dict[str, dict[str, float]] = {}
        for table in tables:
            folds = held.setdefault(table, {})
            before, begin = len(folds), time.perf_counter()
            if options.measured:
                means = means_of(folds, n_folds)
            else:
                means = measure(method, *read(table), n_folds, folds, save)
                if means is None:
                    record.say(f"{method}: not installed, left out")
                    break
            if means is None:
                continue
            of_tables[table] = means
            if len(folds) > before:
                record.say(
                    f"{table:14} {method:9} CRPS/19 {means['grid'] / means['plain grid']:.3f} CRPS "
                    f"{means.get('crps', np.nan) / means['plain crps']:.3f} RMSE {means['rmse']:.4g} MAE "
                    f"{means['absolute']:.4g} cover {means['covered']:.3f} fit {means['seconds']:.2f} s "
                    f"(all {time.perf_counter() - begin:.0f} s)"
                )
        if of_tables:
            found[method] = of_tables
    return found


def predictions(record: Record, options: argparse.Namespace) -> None:
    """CRPS, RMSE, MAE and coverage of all methods on all tables."""
    tables = options.tables or (QUICK if options.quick else TABLES)
    methods = options.methods or [m for m in METHODS if not (options.quick and m == "khiops")]
    found = cross_validated(record, options, tables, methods)
    title = "Predicted distributions: CRPS relative to that of the training targets"
    report(record, title, tables, list(found), found, options.note)


def report(
    record: Record,
    title: str,
    tables: Any,
    methods: list[str],
    found: dict[str, dict[str, dict[str, float]]],
    note: str | None = None,
) -> None:
    """Print the tables and the means of what was measured."""
    tables = list(tables)
    common = [t for t in tables if all(t in found[m] for m in methods)]
    of_common = (
        "" if len(common) == len(tables) else f" of the {len(common)} tables that all were measured on"
    )

    def column(method: str, what: str, names: Any = tables) -> np.ndarray:
        return np.array([found[method].get(t, {}).get(what, np.nan) for t in names])

    def relative(method: str, what: str, names: Any = tables) -> np.ndarray:
        return column(method, what, names) / column(method, f"plain {what}", names)

    def rows_of(values: Callable[[str], np.ndarray], form: str) -> list[list[str]]:
        held = {m: values(m) for m in methods}
        rows = [[t, *(_cell(held[m][i], form) for m in methods)] for i, t in enumerate(tables)]
        all_measured = np.stack(list(held.values()), 1)[[tables.index(t) for t in common]]
        ranks = rankdata(all_measured.round(12), axis=1).mean(axis=0)  # equals share their ranks
        rows.append([f"mean{of_common}", *(form.format(mean) for mean in all_measured.mean(axis=0))])
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranks)])
        return rows

    crps = rows_of(lambda m: relative(m, "grid"), "{:.3f}")
    others = [t for t in common if t not in DESIGN]
    if others:
        held_out = [f"{relative(m, 'grid', others).mean():.3f}" for m in methods]
        crps.append([f"mean of the {len(others)} tables outside `DESIGN`", *held_out])
    exact = [_cell(relative(m, "crps", common).mean(), "{:.3f}") for m in methods]
    crps.append([f"mean of the CRPS itself{of_common}", *exact])
    if of_common and "damier" in methods:
        measured = {m: [t for t in found[m] if t in tables and t in found["damier"]] for m in methods}
        for text, of in (("mean of those measured", None), ("Damier on the same tables", "damier")):
            crps.append([text, *(f"{relative(of or m, 'grid', measured[m]).mean():.3f}" for m in methods)])
    record.table(
        title,
        ["table", *methods],
        crps,
        "At 19 levels; lower is better, 1 explains nothing; a dash was not measured. Same folds for all."
        + (f" {note}" if note else ""),
    )
    record.table(
        "Root mean squared error of the mean",
        ["table", *methods],
        rows_of(lambda m: column(m, "rmse"), "{:.4g}"),
        "The mean over the tables has no unit: see the ranks.",
    )
    record.table(
        "Mean absolute error of the median",
        ["table", *methods],
        rows_of(lambda m: column(m, "absolute"), "{:.4g}"),
        "The mean over the tables has no unit: see the ranks.",
    )
    held = {m: column(m, "covered") for m in methods}
    cover = [[t, *(_cell(held[m][i], "{:.3f}") for m in methods)] for i, t in enumerate(tables)]
    cover.append(["mean of those measured", *(f"{np.nanmean(held[m]):.3f}" for m in methods)])
    cover.append(["least", *(f"{np.nanmin(held[m]):.3f}" for m in methods)])
    record.table("Coverage of the 90% intervals", ["table", *methods], cover)
    if "damier" in methods:
        own = [
            [t, _cell(a, "{:.3f}"), _cell(b, "{:.3f}")]
            for t, a, b in zip(tables, column("damier", "rank"), column("damier", "log rows"), strict=True)
        ]
        record.table(
            "Negative log predictive density on the rank",
            ["table", "Damier", "log N"],
            own,
            "In nats; log N is that of the distribution of the training targets.",
        )


def _cell(value: float, form: str) -> str:
    """Write a figure, or a dash where it was not measured."""
    return "-" if np.isnan(value) else form.format(value)


def averaging(record: Record, options: argparse.Namespace) -> None:
    """Evidence averaged over all partitions of a variable, beside that of the best ones."""
    tables = options.tables or (QUICK if options.quick else TABLES)
    both = ("damier-best", "damier")
    found = cross_validated(record, options, tables, both)
    measured = [t for t in tables if all(t in found.get(m, {}) for m in both)]
    scores: dict[str, tuple[str, Callable[[dict[str, float]], float]]] = {
        "CRPS": ("{:.3f}", lambda means: means["crps"] / means["plain crps"]),
        "RMSE": ("{:.4g}", lambda means: means["rmse"]),
        "log score": ("{:.3f}", lambda means: means["rank"] - means["log rows"]),
        "coverage": ("{:.3f}", lambda means: means["covered"]),
        "fit, CPU s": ("{:.2f}", lambda means: means["cpu"]),
    }
    columns = [f"{name}, {text}" for name in scores for text in ("best", "averaged")]
    values = np.array(
        [[[score(found[m][t]) for m in both] for _, score in scores.values()] for t in measured]
    )
    forms = [form for form, _ in scores.values() for _ in both]
    rows = [
        [t, *(form.format(x) for form, x in zip(forms, held.ravel(), strict=True))]
        for t, held in zip(measured, values, strict=True)
    ]
    values[:, 1] /= values[:, 1, :1].copy()
    forms[2:4] = ["{:.3f}"] * 2
    for text, among in (
        ("mean of the five chosen on", CHOSEN),
        ("mean of the tables outside `DESIGN`", [t for t in TABLES if t not in DESIGN]),
    ):
        chosen = [i for i, t in enumerate(measured) if t in among]
        if chosen:
            mean = values[chosen].mean(axis=0).ravel()
            rows.append([text, *(form.format(x) for form, x in zip(forms, mean, strict=True))])
    record.table(
        "Evidence averaged over all partitions",
        ["table", *columns],
        rows,
        "CRPS is relative to that of the training targets. The log score is the negative log predictive "
        "density on the rank, less log N. Lower is better; 90% intervals should cover 0.9. Means of the RMSE "
        "are relative to that of the best partitions. Older tables on this page are of the best partitions.",
    )


def scoring(record: Record, options: argparse.Namespace) -> None:
    """CPU seconds of scoring, beside a naive Bayes classifier with as many classes as there are intervals."""
    from damier import NaiveBayesClassifier, NaiveBayesRegressor

    X, y = read("bodyfat" if options.quick else "california")
    regressor = NaiveBayesRegressor().fit(X, y)
    classes = np.searchsorted(regressor.bounds_, y, side="left")
    classifier = NaiveBayesClassifier(averaging=None).fit(X, classes)

    def least(score: Callable[[pd.DataFrame], Any]) -> float:
        times = []
        for _ in range(5):
            begin = time.process_time()
            score(X)
            times.append(time.process_time() - begin)
        return min(times)

    title = "Scoring, in CPU seconds"
    record.figure(
        title,
        f"{len(X):,} rows, {len(regressor.bounds_) + 1} intervals: distribution",
        least(lambda rows: regressor.predict_distribution(rows)),
        f"{least(classifier.predict_proba):.4g} (`NaiveBayesClassifier`, as many classes)",
    )
    record.figure(title, "mean", least(regressor.predict))
    record.figure(title, "90% interval", least(regressor.predict_interval))
    record.close(title, "Least of five.")


# Levels of a prototype that searched a target coarsened to 400 values.
PROTOTYPE = {
    "bodyfat": {"Density": 0.2845, "Abdomen": 0.0713, "Age": 0, "Height": 0, "Ankle": 0, "Wrist": 0},
    "california": {
        "median_income": 0.0386,
        "longitude": 0.0322,
        "latitude": 0.0274,
        "housing_median_age": 0.0016,
    },
}


def levels(record: Record, options: argparse.Namespace) -> None:
    """Levels of single columns, beside those of a prototype."""
    from damier import MODLEncoder

    title = "Levels of single columns"
    for table, known in PROTOTYPE.items():
        if options.quick and table == "california":
            continue
        X, y = read(table)
        found = MODLEncoder(target="number").fit(X, y)
        for name, partition in found.partitions_.items():
            size = f"{partition.n_parts} x {len(partition.target_bounds) + 1}"
            before = f"{known[name]:.4f}" if name in known else ""
            record.figure(title, f"{table}, {name}: {size}", f"{partition.level:.4f}", before)
    record.close(title, "Beside: a prototype with a coarser search.")


def noise(record: Record, options: argparse.Namespace) -> None:
    """Draws of noise in which something is found."""
    from damier.fit.numeric_target import order_target, partition_for_number
    from damier.intake import read_table
    from damier.intake.target import read_numbers

    title = "Noise: draws with more than one part"
    n_draws = 100 if options.quick else 1000
    for n_rows in (100, 1000):
        rng = np.random.default_rng(n_rows)
        found = 0
        for _ in range(n_draws):
            column = read_table({"x": rng.normal(size=n_rows)}).columns[0]
            target = order_target(read_numbers(rng.normal(size=n_rows)))
            found += partition_for_number(column, target).n_parts > 1
        record.figure(title, f"{n_rows:,} rows", f"{found} of {n_draws:,}")
    record.close(title)


def times(record: Record, options: argparse.Namespace) -> None:
    """Time of a fit beside Khiops'."""
    from damier import NaiveBayesRegressor

    title = "Time of a fit beside Khiops"
    X, y = read("bodyfat" if options.quick else "california")
    NaiveBayesRegressor().fit(X, y)  # compiles
    begin, clock = time.process_time(), time.perf_counter()
    NaiveBayesRegressor().fit(X, y)
    ours, by_clock = time.process_time() - begin, time.perf_counter() - clock
    khiops = None if options.quick else fit_khiops(X, y, X[:100], y[:100])
    beside = "not installed"
    if khiops is not None:
        beside = (
            f"{khiops.fit_cpu:.1f}, {khiops.fit_seconds:.1f} (Khiops): {khiops.fit_cpu / ours:.1f} times "
            f"the CPU, {khiops.fit_seconds / by_clock:.1f} times by the clock"
        )
    problem = f"{len(X):,} x {X.shape[1]}: CPU s, s by the clock"
    record.figure(title, problem, f"{ours:.2f}, {by_clock:.2f}", beside)
    record.close(title)


def million(record: Record, options: argparse.Namespace) -> None:
    """Time of the encoder on a million rows, beside that of ten classes."""
    from damier import MODLEncoder

    title = "Time of the encoder beside ten classes"
    rng = np.random.default_rng(0)
    n_rows = 50_000 if options.quick else 1_000_000
    inputs = rng.normal(size=(n_rows, 10))
    target = inputs[:, :4].sum(axis=1) + rng.normal(size=n_rows)
    classes = np.digitize(target, np.quantile(target, np.arange(1, 10) / 10))
    seconds = []
    for values, kind in ((target, "number"), (classes, "classes")):
        MODLEncoder(target=kind).fit(inputs[:2000], values[:2000])  # compiles
        begin = time.process_time()
        MODLEncoder(target=kind).fit(inputs, values)
        seconds.append(time.process_time() - begin)
    record.figure(
        title,
        f"{n_rows:,} x 10 numbers: CPU s",
        f"{seconds[0]:.1f}",
        f"{seconds[1]:.1f} (ten classes): {seconds[0] / seconds[1]:.1f} times",
    )
    record.close(title)


if __name__ == "__main__":
    run(
        "numeric_target",
        __doc__,
        {
            "levels": levels,
            "noise": noise,
            "times": times,
            "million": million,
            "predictions": predictions,
            "averaging": averaging,
            "scoring": scoring,
        },
        {
            "--tables": {"nargs": "+", "choices": TABLES},
            "--methods": {"nargs": "+", "choices": METHODS},
            "--measured": {"action": "store_true", "help": "measure nothing: print what --keep holds"},
            "--note": {"help": "what is to be said of figures that were kept from another run"},
            "--keep": {"help": "start of names of files, one per method: a run that was cut goes on"},
        },
    )
