"""Supervised grids: patterns, needles, noise, real tables, pairs and growth, beside the paper's figures.

    python -m benchmarks.grids                       # everything at full size: hours
    python -m benchmarks.grids --quick               # a tenth of the draws and sizes: minutes
    python -m benchmarks.grids --only needles pairs  # some sections
    python -m benchmarks.grids --only pairs --peers  # Khiops in the same run (ten minutes of its own)

Each line gives what was wanted, then what was measured. Times are processor seconds of this process unless
a line says otherwise, after a first small fit has compiled the kernels. Patterns have their cuts anywhere
between 0.3 and 0.7.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.datasets import DataUnavailableError, load
from benchmarks.peers import environment
from damier import DataGridClassifier, DataGridEnsembleClassifier, rank_pairs
from damier.criteria import grid_cost
from damier.search.grid_problem import AxisCodes, exact_cost

LOW_OCCUPATIONS = (
    "Craft-repair",
    "Other-service",
    "Machine-op-inspct",
    "Transport-moving",
    "Handlers-cleaners",
    "Farming-fishing",
    "Priv-house-serv",
)


@dataclass(frozen=True)
class Options:
    """How much to do."""

    quick: bool
    peers: bool
    n_jobs: int

    def draws(self, full: int, quick: int) -> int:
        """Draws at full size or in a hurry."""
        return quick if self.quick else full


def say(what: str, wanted: str, measured: str) -> None:
    """Print a line of the table."""
    print(f"{what:<58} | {wanted:<34} | {measured}", flush=True)


# --- planted patterns -----------------------------------------------------------------------------


def planted(
    rng: np.random.Generator, n_rows: int, n_columns: int, n_used: int, n_classes: int = 2, n_cuts: int = 1
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw rows whose class is the sum of the parts modulo the classes; also the cost of the planted grid."""
    X = rng.random((n_rows, n_columns))
    parts = np.zeros((n_rows, n_used), dtype=int)
    for k in range(n_used):
        if n_cuts == 1:
            cuts = rng.uniform(0.3, 0.7, 1)
        else:
            cuts = (np.arange(n_cuts) + rng.uniform(0.7, 1.3, n_cuts)) / (n_cuts + 1)
        parts[:, k] = np.searchsorted(np.sort(cuts), X[:, k])
    y = (parts.sum(axis=1) % n_classes).astype(np.int32)
    _, cell_of = np.unique(parts, axis=0, return_inverse=True)
    cells = np.zeros((cell_of.max() + 1, n_classes), dtype=int)
    np.add.at(cells, (cell_of.reshape(-1), y), 1)
    return X, y, grid_cost(cells, n_columns, [n_cuts + 1] * n_used)


def found_all(
    case: tuple[int, ...], n_draws: int, options: Options, seed: int, **settings: float
) -> tuple[int, list[float], list[float]]:
    """Count the draws whose grid costs no more than the planted one and the null model."""
    found, seconds, wall = 0, [], []
    for draw in range(n_draws):
        X, y, wanted = planted(np.random.default_rng((seed, draw)), *case)
        began, clock = time.process_time(), time.perf_counter()
        grid = DataGridClassifier(random_state=draw, n_jobs=options.n_jobs, **settings).fit(X, y).grid_
        seconds.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
        found += grid.cost <= min(wanted, grid.null_cost) + 1e-6
    return found, seconds, wall


def spread(seconds: list[float]) -> str:
    """Write the median and the largest time."""
    return f"{np.median(seconds):.3f} s (max {max(seconds):.3f} s)"


def noise(options: Options) -> None:
    """Count grids found where there is nothing to find."""
    n_draws = options.draws(10_000, 300)
    for n_rows in (100, 1000):
        for n_columns in (1, 2, 10):
            rng = np.random.default_rng((n_rows, n_columns))
            wrong, began = 0, time.process_time()
            for draw in range(n_draws):
                X, y = rng.random((n_rows, n_columns)), rng.integers(2, size=n_rows)
                wrong += (
                    DataGridClassifier(random_state=draw, n_jobs=options.n_jobs).fit(X, y).grid_.level > 0
                )
            each = (time.process_time() - began) / n_draws
            wanted = "under 0.1%, none more with K" if n_rows == 1000 else "few"
            say(
                f"noise, N = {n_rows}, {n_columns} columns, {n_draws} draws",
                wanted,
                f"{wrong / n_draws:.2%} ({wrong}), {1000 * each:.0f} ms each",
            )


def xor(options: Options) -> None:
    """Check XOR from the least number of rows it can be told by, up."""
    n_draws = options.draws(100, 10)
    for dimension, least in ((2, 40), (3, 72), (5, 192)):
        for n_rows in (least, 2 * least, 8 * least):
            found, seconds, _ = found_all((n_rows, dimension, dimension), n_draws, options, 1)
            say(
                f"XOR in {dimension} of {dimension}, N = {n_rows}",
                f"{n_draws} of {n_draws} at most planted or null",
                f"{found} of {n_draws}, {spread(seconds)}",
            )


def checkerboards(options: Options) -> None:
    """Check boards of several parts and three classes."""
    n_draws = options.draws(20, 5)
    for name, case in (
        ("checkerboard 6 x 6, N = 2,000", (2000, 2, 2, 3, 5)),
        ("checkerboard 3 x 3 x 3 in 10, N = 800", (800, 10, 3, 3, 2)),
    ):
        found, seconds, _ = found_all(case, n_draws, options, 2)
        say(name + ", classes mod 3", f"{n_draws} of {n_draws}", f"{found} of {n_draws}, {spread(seconds)}")
    for n_rows in (4000, 1500):
        found, seconds, _ = found_all((n_rows, 10, 10), n_draws, options, 3)
        say(
            f"XOR in 10 of 10, N = {n_rows}",
            f"{n_draws} of {n_draws}, under 3 s each",
            f"{found} of {n_draws}, {spread(seconds)}",
        )
    found, seconds, _ = found_all((2000, 5, 3), n_draws, options, 4)
    X, y, planted_cost = planted(np.random.default_rng((4, 0)), 2000, 5, 3)
    grid = DataGridClassifier(random_state=0).fit(X, y).grid_
    planted_level = 1 - planted_cost / grid.null_cost
    say(
        "XOR in 3 of 5, N = 2,000 (Khiops 16.6 s)",
        f"under 0.3 s, the planted {planted_level:.4f} or more",
        f"{found} of {n_draws}, {spread(seconds)}, level {grid.level:.4f}",
    )


def needles(options: Options) -> None:
    """Check five columns among many."""
    n_draws = options.draws(20, 10)
    for n_columns, n_rows, least in ((10, 256, 20), (20, 256, 19), (50, 300, 15)):
        found, seconds, _ = found_all((n_rows, n_columns, 5), n_draws, options, 5)
        say(
            f"XOR in 5 of {n_columns}, N = {n_rows}, default settings",
            f"{least} of 20",
            f"{found} of {n_draws}, {spread(seconds)}",
        )
    for n_columns, n_rows in ((10, 256), (20, 256), (50, 300)):
        n_limited = options.draws(20, 3)
        # the search would go on for all of the 30 s: an effort ends it sooner where all is found
        found, _, wall = found_all(
            (n_rows, n_columns, 5), n_limited, options, 5, time_limit=30, effort=9 if n_columns == 50 else 6
        )
        say(
            f"XOR in 5 of {n_columns}, N = {n_rows}, time_limit=30",
            f"{n_limited} of {n_limited}",
            f"{found} of {n_limited}, wall {spread(wall)}",
        )


# --- pairs ----------------------------------------------------------------------------------------


def pairs(options: Options) -> None:
    """Time all pairs of ten columns."""
    n_rows = 2000 if options.quick else 10_000
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((n_rows, 10)), columns=[f"v{k}" for k in range(10)])
    y = ((X["v0"] > 0.4) ^ (X["v1"] > 0.6) ^ (rng.random(n_rows) < 0.1)) | (X["v2"] > 0.9)
    rank_pairs(X[:100], y[:100], n_jobs=options.n_jobs)
    began, clock = time.process_time(), time.perf_counter()
    table = rank_pairs(X, y, n_jobs=options.n_jobs, backend="dict")
    cpu, wall = time.process_time() - began, time.perf_counter() - clock
    first = f"{table['first'][0]} x {table['second'][0]}"
    reference = ", Khiops at N = 10,000 once: 480 s wall, 355 s of processor time"
    if options.peers:
        peer = khiops_pairs(X, y)
        reference = (
            ", Khiops not installed"
            if peer is None
            else f", Khiops {peer:.1f} s wall: {peer / wall:.0f} times"
        )
    say(
        f"45 pairs of 10 columns, N = {n_rows}",
        "60 times Khiops' speed",
        f"{wall:.2f} s wall, {cpu:.2f} s cpu, best {first}{reference}",
    )


def khiops_pairs(X: pd.DataFrame, y: pd.Series) -> float | None:
    """Return the wall seconds Khiops takes for the same pairs in this run, None where it is not installed."""
    code = (
        "import sys, time, pandas as pd\n"
        "from khiops.sklearn import KhiopsClassifier\n"
        "data = pd.read_csv(sys.argv[1])\n"
        "began = time.perf_counter()\n"
        "KhiopsClassifier(n_trees=0, n_pairs=45).fit(data.drop(columns='y'), data['y'])\n"
        "print('SECONDS', time.perf_counter() - began)\n"
    )
    python = os.environ.get("DAMIER_PEER_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        X.assign(y=y.astype(int)).to_csv(path, index=False)
        ran = subprocess.run(
            [python, "-c", code, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(python),
        )
    told = [line for line in ran.stdout.splitlines() if line.startswith("SECONDS")]
    return float(told[0].split()[1]) if told else None


# --- real tables ----------------------------------------------------------------------------------


def levels(options: Options) -> None:
    """Compare levels within 30 s with those of a prototype; and figure 1 of the paper."""
    limit = 8.0 if options.quick else 30.0
    for name, wanted in (("letter", 0.536), ("waveform", 0.495), ("satimage", 0.703)):
        data = load(name)
        grid = (
            DataGridClassifier(time_limit=limit, random_state=0, n_jobs=options.n_jobs)
            .fit(data.X, data.y)
            .grid_
        )
        say(
            f"{name}: level within {limit:.0f} s of the clock",
            f"{wanted} or more",
            f"{grid.level:.4f}: {grid}",
        )
    wine = load("wine")
    two = wine.X.iloc[:, [0, 6]]
    grid = DataGridClassifier(random_state=0).fit(two, wine.y).grid_
    codes = np.unique(wine.y, return_inverse=True)[1]
    parts = [np.searchsorted([12.78], two.iloc[:, 0]), np.searchsorted([1.235, 2.18], two.iloc[:, 1])]
    paper = cost_of(parts, codes, 2, [2, 3], [])
    bounds = "; ".join(f"{n} {p.bounds}" for n, p in grid.partitions.items())
    say("wine, V1 x V7 (figure 1)", f"2 x 3, cost {paper:.3f} or less", f"cost {grid.cost:.3f}: {bounds}")


def cost_of(
    parts: list[np.ndarray],
    codes: np.ndarray,
    n_variables: int,
    numeric: list[int],
    grouped: list[tuple[int, int]],
) -> float:
    """Cost of a grid given as the parts of the rows."""
    _, cell_of = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
    cells = np.zeros((cell_of.max() + 1, codes.max() + 1), dtype=int)
    np.add.at(cells, (cell_of.reshape(-1), codes), 1)
    return grid_cost(cells, n_variables, numeric, grouped)


def balanced_error(scores: np.ndarray, positive: np.ndarray, threshold: float) -> float:
    """Mean of the two classes' error rates when scores above the threshold are taken as positive."""
    told = scores > threshold
    return float(((~told[positive]).mean() + told[~positive].mean()) / 2)


def tuned_threshold(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the threshold of least balanced error on these rows, half-way between two scores."""
    found = np.unique(scores)
    candidates = np.concatenate([[found[0] - 1], (found[1:] + found[:-1]) / 2])
    return float(min(candidates, key=lambda t: balanced_error(scores, positive, t)))


def tuned_error(model, train: tuple, test: tuple) -> float:
    """Balanced error on test rows with the threshold of least error on the training rows, as in the paper."""
    (X, y), (X_test, y_test) = train, test
    model.fit(X, y)
    threshold = tuned_threshold(model.predict_proba(X)[:, 1], y)
    return balanced_error(model.predict_proba(X_test)[:, 1], y_test, threshold)


def cross_tuned_error(model, train: tuple, test: tuple) -> float:
    """Balanced error with scikit-learn's tuning: the threshold comes from training rows held out in turn."""
    (X, y), (X_test, y_test) = train, test
    # a grid has few scores, close to one another: the default of 100 thresholds is too coarse
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", thresholds=1000).fit(X, y)
    return balanced_error(tuned.predict(X_test).astype(float), y_test, 0.5)


def ada_outside() -> tuple[tuple, tuple, tuple]:
    """Load Ada's rows to train on, Adult's rows outside them, and of these the challenge's own."""
    ada, adult = load("ada_prior"), load("adult")
    X_adult = adult.X.set_axis(ada.X.columns, axis=1)
    # the three columns with missing values are written differently in the two files
    compared = [c for c in ada.X.columns if c not in ("workclass", "occupation", "nativeCountry")]

    def rows(X: pd.DataFrame) -> np.ndarray:
        return pd.util.hash_pandas_object(X[compared].astype(str), index=False).to_numpy()

    outside = ~np.isin(rows(X_adult), rows(ada.X))
    positive = (adult.y == ">50K").to_numpy()
    # The challenge left out Adult's rows without an occupation: 48,842 less 2,809 are its 46,033.
    known = outside & adult.X["occupation"].notna().to_numpy()
    train = ada.X, (ada.y == "1").to_numpy()
    return train, (X_adult[outside], positive[outside]), (X_adult[known], positive[known])


def ada(options: Options) -> None:
    """Compare Ada with the challenge's result and with the grid of table 4."""
    train, *tests = ada_outside()
    X, y = train
    single = DataGridClassifier(random_state=0, n_jobs=options.n_jobs)
    grid = single.fit(X, y).grid_
    parts = {
        "relationship": X["relationship"].isin(["Husband", "Wife"]).to_numpy(),
        "occupation": X["occupation"].isin(LOW_OCCUPATIONS).to_numpy(),
    }
    numbers = [("educationNum", [12.5]), ("age", [27.5]), ("capitalGain", [4668.5, 5095.5])]
    rows = [*parts.values(), *(np.searchsorted(b, X[name]) for name, b in numbers)]
    groups = [(X[name].nunique(dropna=False), 2) for name in parts]
    second = min(
        cost_of(
            [*rows, np.searchsorted([1805.5, b], X["capitalLoss"])],
            y.astype(int),
            14,
            [2, 2, 3, 3],
            groups,
        )
        for b in np.unique(X["capitalLoss"]) + 0.5
        if b > 1806 and b < X["capitalLoss"].max()
    )
    crossed = " x ".join(f"{name} {p.n_parts}" for name, p in grid.partitions.items())
    say(
        "Ada, table 4",
        f"6 of 14, 57 cells, cost {second:.2f}",
        f"{crossed}, {len(grid.cells)} cells, {grid.cost:.2f}",
    )
    ensemble = DataGridEnsembleClassifier(
        random_state=0, n_jobs=options.n_jobs, n_grids=options.draws(1200, 200)
    )
    for kind, model, paper, wanted in (
        ("best grid", single, 0.2058, 0.205),
        ("ensemble", ensemble, 0.1756, 0.175),
        ("gradient boosting", _boosting(X), None, None),
    ):
        for how, tune in (("rows fitted", tuned_error), ("rows held out", cross_tuned_error)):
            errors = [tune(model, train, test) for test in tests]
            say(
                f"Ada prior, {kind}, threshold from {how}",
                "" if wanted is None else f"{wanted} or less (paper {paper})",
                f"{errors[0]:.4f} on all rows outside, {errors[1]:.4f} on the challenge's",
            )


def _boosting(X: pd.DataFrame):
    """Return scikit-learn's gradient boosting for mixed columns, a yardstick of how hard the rows are."""
    text = [k for k, column in enumerate(X.columns) if X[column].dtype.kind not in "ifub"]
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    coded = ColumnTransformer([("text", ordinal, text)], remainder="passthrough")
    return make_pipeline(coded, HistGradientBoostingClassifier(max_iter=60, random_state=0))


def soil_as_one(X: pd.DataFrame) -> pd.DataFrame:
    """Replace each block of 40 binary soil columns by one categorical column, as the paper does."""
    columns = list(X.columns)
    if len(columns) != 108:
        return X
    kept: dict[str, pd.Series] = {}
    binary = [set(X[c].unique()) <= {0, 1} for c in columns]
    k = 0
    while k < len(columns):
        block = columns[k : k + 40]
        if len(block) == 40 and all(binary[k : k + 40]) and (X[block].sum(axis=1) <= 1).all():
            kept[f"soil{k}"] = pd.Series(X[block].to_numpy().argmax(axis=1)).astype(str)
            k += 40
        else:
            kept[columns[k]] = X[columns[k]].reset_index(drop=True)
            k += 1
    return pd.DataFrame(kept)


def challenge(options: Options) -> None:
    """Cross-validate the other sets of the challenge."""
    n_folds = 2 if options.quick else 10
    for name, *wanted in (
        ("ada_agnostic", 0.2068, 0.1761, None),
        ("sylva_agnostic", 0.0211, 0.0158, None),
        ("sylva_prior", 0.0099, 0.0228, None),
        ("hiva_agnostic", 0.3661, 0.3242, None),
    ):
        data = load(name)
        X, y = soil_as_one(data.X.reset_index(drop=True)), (data.y == "1").to_numpy()
        models = {
            "best grid": DataGridClassifier(random_state=0, n_jobs=options.n_jobs),
            "ensemble": DataGridEnsembleClassifier(
                random_state=0, n_jobs=options.n_jobs, n_grids=options.draws(300, 60)
            ),
            "gradient boosting": _boosting(X),
        }
        errors: dict[str, list[float]] = {kind: [] for kind in models}
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
            rows = (X.iloc[train], y[train]), (X.iloc[test], y[test])
            for kind, model in models.items():
                tune = cross_tuned_error if kind == "gradient boosting" else tuned_error
                errors[kind].append(tune(model, *rows))
        for (kind, found), figure in zip(errors.items(), wanted, strict=True):
            say(
                f"{name}, {kind}, {n_folds}-fold balanced error",
                "" if figure is None else f"{figure}",
                f"{np.mean(found):.4f} +- {np.std(found) / math.sqrt(n_folds):.4f}",
            )


# --- growth ---------------------------------------------------------------------------------------


def growth(options: Options) -> None:
    """Time one start on as many columns as the search ever cuts at once, as rows and columns grow."""
    from damier.search.grid_problem import build_problem
    from damier.search.grid_starts import Climber, Start

    def one_pass(n_rows: int, n_columns: int) -> tuple[float, float]:
        X, y, _ = planted(np.random.default_rng(0), n_rows, n_columns, 2)
        axes = [AxisCodes(np.argsort(np.argsort(c)).astype(np.int32), n_rows, False) for c in X.T]
        began = time.process_time()
        climber = Climber(build_problem(axes, y, 2), np.zeros(1, dtype=np.uint8))
        built = time.process_time()
        assert climber.null().cost == np.float64(climber.grid.cost[0])
        climber.run(Start("halves", (0,), climber.null(), 1.0))
        assert abs(exact_cost(axes, y, 2, {}) - climber.null().cost) < 1e-6 * n_rows
        return built - began, time.process_time() - built

    def exponent(sizes: list[int], seconds: list[float]) -> float:
        return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])

    one_pass(1000, 2)
    sizes = [1000, 10_000, 100_000] + ([] if options.quick else [1_000_000])
    times = [one_pass(n, 10) for n in sizes]
    shown = ", ".join(f"{n:,}: {a + b:.2f} s" for n, (a, b) in zip(sizes, times, strict=True))
    say(
        "one greedy pass, K = 10, N growing",
        "1e6 x 10 under 60 s",
        f"N^{exponent(sizes, [b for _, b in times]):.2f}; {shown}",
    )
    columns = [2, 10, 30, 100]
    times = [one_pass(10_000, k) for k in columns]
    shown = ", ".join(f"{k}: {a + b:.2f} s" for k, (a, b) in zip(columns, times, strict=True))
    say(
        "one greedy pass, N = 10,000, K growing",
        "O(K^2 N log N)",
        f"K^{exponent(columns, [b for _, b in times]):.2f}; {shown}",
    )


SECTIONS: dict[str, Callable[[Options], None]] = {
    "xor": xor,
    "checkerboards": checkerboards,
    "needles": needles,
    "pairs": pairs,
    "levels": levels,
    "ada": ada,
    "challenge": challenge,
    "growth": growth,
    "noise": noise,
}


def chosen(names: list[str]) -> Iterator[tuple[str, Callable[[Options], None]]]:
    """Yield the sections asked for, all by default."""
    for name, section in SECTIONS.items():
        if not names or name in names:
            yield name, section


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws, smaller sizes")
    parser.add_argument("--peers", action="store_true", help="run Khiops too, where it is installed")
    parser.add_argument("--only", nargs="*", default=[], choices=list(SECTIONS), help="sections to run")
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args()
    options = Options(given.quick, given.peers, given.n_jobs)
    X, y, _ = planted(np.random.default_rng(0), 100, 3, 2)
    began = time.perf_counter()
    DataGridClassifier(effort=0).fit(X, y)
    print(f"first fit: {time.perf_counter() - began:.1f} s, most of it compilation where nothing was cached")
    print(f"{'':<58} | {'wanted':<34} | measured")
    for name, section in chosen(given.only):
        try:
            section(options)
        except DataUnavailableError as error:
            say(name, "", f"skipped: {error}")


if __name__ == "__main__":
    main()
