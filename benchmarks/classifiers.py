"""Classifiers side by side, on tables that were not used to choose anything.

    python -m benchmarks.classifiers                    # two hours and more with the peers
    python -m benchmarks.classifiers --tables heart pima --models "naive Bayes" "gradient boosting"
    python -m benchmarks.classifiers --record --partial classifiers-kept.json    # goes on where it ended

``folds`` cross-validates our models in five folds. ``split`` fits ours, those of scikit-learn and explainable
boosting machines to four fifths of each table, 1,000 rows at most: three times where fewer than 1,000 rows
are held out, else once. A fit that takes more than three CPU minutes is ended, and the table left out of
the means. ``prototype`` and ``speed`` measure what has a bound of its own. How naive Bayes averages evidence,
the penalties of its weights and steps, their sharpness, its pairs, and the rows that draw small cells were
chosen on the tables of `CHOSEN_ON`, which are not among those reported.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.datasets import load
from benchmarks.records import Record, run
from damier import DataGridClassifier, DataGridEnsembleClassifier, LinfClassifier, NaiveBayesClassifier
from damier.fit.averaged import averaged_evidence
from damier.fit.naive_bayes import weight_variables
from damier.fit.partitions import partition_column
from damier.intake import read_table, read_target
from damier.search.run import Run

CHOSEN_ON = [
    *("bupa", "crx", "hepatitis", "iris", "breast", "spect"),
    *("phoneme", "vowel", "led", "flag", "german_numeric", "sick_euthyroid"),
]
TABLES = [
    *("ada_agnostic", "adult", "australian", "covertype", "german", "glass", "heart", "hypothyroid"),
    *("ionosphere", "led17", "letter", "mushroom", "optdigits", "pendigits", "pima", "satimage"),
    *("segmentation", "shuttle", "soybean", "sylva_agnostic", "thyroid", "vehicle", "waveform", "wine"),
    "yeast",
]
# Log-loss of a prototype with the same evidence and weights, five folds over all rows.
PROTOTYPE = {
    "satimage": 0.403,
    "waveform": 0.345,
    "segmentation": 0.133,
    "yeast": 1.101,
    "glass": 0.828,
    "vehicle": 0.719,
    "ionosphere": 0.215,
    "australian": 0.343,
    "pima": 0.483,
    "german": 0.524,
    "heart": 0.397,
    "wine": 0.114,
}
MEASURES = ("accuracy", "AUC", "log-loss", "Brier", "fit s", "predict s", "log-loss, best power in hindsight")


# Bags of explainable boosting machines, in place of 14: a fit takes a third of the time.
BAGS = 4
# CPU seconds of a fit at most.
LONGEST_FIT = 180.0
# Splits of a table, and rows held out above which one is enough.
SPLITS, MANY_ROWS = 3, 1000


def _without_missing_words(X: pd.DataFrame) -> pd.DataFrame:
    """Write a missing category as a word: encoders do not take all forms of a missing value."""
    words = X.select_dtypes(exclude="number").astype(object)
    return X.assign(**{name: words[name].where(words[name].notna(), "missing").astype(str) for name in words})


def _prepared(model: Any, *, one_hot: bool) -> Any:
    """Put numbers and categories into the form that a model of scikit-learn takes."""
    encoder = (
        OneHotEncoder(handle_unknown="ignore")
        if one_hot
        else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    )
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()) if one_hot else "passthrough"
    return make_pipeline(
        FunctionTransformer(_without_missing_words),
        make_column_transformer(
            (encoder, make_column_selector(dtype_exclude="number")),
            (numbers, make_column_selector(dtype_include="number")),
        ),
        model,
    )


def _boosting_machine() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0, n_jobs=1, outer_bags=BAGS)


MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": NaiveBayesClassifier,
    "naive Bayes, best partition": lambda: NaiveBayesClassifier(evidence="best", pairs=None),
    "naive Bayes, no pairs": lambda: NaiveBayesClassifier(pairs=None),
    "naive Bayes, compression": lambda: NaiveBayesClassifier(evidence="best", averaging="compression"),
    "grid": DataGridClassifier,
    "grid ensemble": DataGridEnsembleClassifier,
    "LINF": lambda: LinfClassifier(random_state=0),
    "logistic, one-hot": lambda: _prepared(LogisticRegression(max_iter=2000), one_hot=True),
    "gradient boosting": lambda: _prepared(HistGradientBoostingClassifier(random_state=0), one_hot=False),
    "random forest": lambda: _prepared(RandomForestClassifier(random_state=0), one_hot=False),
    "explainable boosting": _boosting_machine,
}


OURS = [name for name in MODELS if name.startswith(("naive Bayes", "grid", "LINF"))]
# Fitted once per table, not in folds: slow, or of others.
ONCE = ("LINF", *(name for name in MODELS if name not in OURS))


class Scores(NamedTuple):
    """What a model reaches on the rows held out, and its CPU seconds; in the order of `MEASURES`."""

    accuracy: float
    auc: float
    log_loss: float
    brier: float
    fit: float
    predict: float
    hindsight: float


Split = tuple[np.ndarray, np.ndarray]


def folds(codes: np.ndarray, seed: int) -> list[Split]:
    """Five folds: rows fitted, rows held out."""
    return list(StratifiedKFold(5, shuffle=True, random_state=seed).split(codes, codes))


def splits_of(codes: np.ndarray, fitted: int) -> list[Split]:
    """Four fifths of the rows to fit, ``fitted`` at most; the others held out. More splits of few rows."""
    share = min(0.8, fitted / len(codes))
    found = []
    for seed in range(SPLITS):
        train, test = train_test_split(
            np.arange(len(codes)), train_size=share, random_state=seed, stratify=codes
        )
        found.append((np.sort(train), np.sort(test)))
    return found[: 1 if len(found[0][1]) >= MANY_ROWS else SPLITS]


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise a `TimeoutError` once the block has used so many CPU seconds."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def judge(make: Callable[[], Any], X: pd.DataFrame, y: np.ndarray, splits: Iterable[Split]) -> Scores:
    """Fit a model to the rows of each split, and score all rows that are held out."""
    classes, codes = np.unique(y, return_inverse=True)
    found, rows, fit, predict = [], [], [], []
    for train, test in splits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            with cpu_limit(LONGEST_FIT):
                model = make().fit(X.iloc[train], y[train])
            fit.append(time.process_time() - start)
            start = time.process_time()
            shares = model.predict_proba(X.iloc[test])
            predict.append(time.process_time() - start)
        proba = np.zeros((len(test), len(classes)))
        proba[:, np.searchsorted(classes, model.classes_)] = shares
        found.append(proba)
        rows.append(test)
    proba, codes = np.vstack(found), codes[np.concatenate(rows)]
    own = proba[np.arange(len(codes)), codes]
    hit = np.zeros(proba.shape)
    hit[np.arange(len(codes)), codes] = 1.0
    met = np.flatnonzero(hit.any(axis=0))
    areas = roc_auc_score(hit[:, met], proba[:, met], average=None)
    return Scores(
        accuracy=float((proba.argmax(axis=1) == codes).mean()),
        auc=float(np.average(areas, weights=hit[:, met].sum(axis=0))),
        # A probability of zero costs as one row in all would: infinity would hide everything else.
        log_loss=float(-np.log(np.maximum(own, 0.5 / len(y))).mean()),
        brier=float(((proba - hit) ** 2).sum(axis=1).mean()),
        fit=float(np.mean(fit)),
        predict=float(np.mean(predict)),
        hindsight=_hindsight(proba, codes),
    )


def _hindsight(proba: np.ndarray, codes: np.ndarray) -> float:
    """Log-loss of the probabilities raised to the power that suits the rows held out best."""
    logs = np.log(np.maximum(proba, 0.5 / len(codes)))
    rows = np.arange(len(codes))

    def loss(power: float) -> float:
        return float((logsumexp(power * logs, axis=1) - power * logs[rows, codes]).mean())

    return float(minimize_scalar(loss, bounds=(0.1, 20.0), method="bounded").fun)


def _rows(name: str, most: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Load a table; of a larger one draw some rows, and leave out classes with fewer than five of them."""
    data = load(name)
    X, y = data.X.reset_index(drop=True), np.asarray(data.y)
    if len(y) > most:
        kept = np.sort(np.random.default_rng(seed).permutation(len(y))[:most])
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    values, which, sizes = np.unique(y.astype(str), return_inverse=True, return_counts=True)
    kept = np.flatnonzero(sizes[which] >= 5)
    return X.iloc[kept].reset_index(drop=True), values[which][kept]


class Partial:
    """Scores measured already, in a file: a run that was ended goes on where it was."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        exists = self._path is not None and self._path.exists()
        self._held = json.loads(self._path.read_text(encoding="utf-8")) if exists and self._path else {}

    def judge(
        self, key: str, make: Callable[[], Any], X: pd.DataFrame, y: np.ndarray, splits: Iterable[Split]
    ) -> Scores | None:
        """Return the scores kept under a key, or measure and keep them; None of a fit that took too long."""
        if key not in self._held:
            try:
                self._held[key] = judge(make, X, y, splits)
            except TimeoutError:
                self._held[key] = None
            if self._path is not None:
                self._path.write_text(json.dumps(self._held, indent=1), encoding="utf-8")
        kept = self._held[key]
        return None if kept is None else Scores(*kept)


def _models(options: argparse.Namespace, left_out: Collection[str] = ()) -> dict[str, Callable[[], Any]]:
    chosen = [n for n in MODELS if n in options.models] if options.models else list(MODELS)
    chosen = [name for name in chosen if name not in left_out]
    # Kernels are loaded before time is measured.
    X, y = _rows("iris", 150, 0)
    for name in chosen:
        if name in OURS:
            MODELS[name]().fit(X, y)
    return {name: MODELS[name] for name in chosen}


def compare_in_folds(record: Record, options: argparse.Namespace) -> None:
    """Cross-validate the fast models."""
    models, partial = _models(options, left_out=ONCE), Partial(options.partial)
    found: dict[str, dict[str, Scores]] = {}
    for name in options.tables or TABLES:
        X, y = _rows(name, options.rows, 0)
        codes = np.unique(y, return_inverse=True)[1]
        for model, make in models.items():
            of_seeds = [
                partial.judge(f"folds/{name}/{options.rows}/{seed}/{model}", make, X, y, folds(codes, seed))
                for seed in range(options.seeds)
            ]
            found.setdefault(name, {})[model] = Scores(*np.mean(of_seeds, axis=0))
        _say_table(record, "Five folds", name, found[name])
    record.close(
        "Five folds: log-loss / accuracy",
        f"{options.seeds} seed(s), at most {options.rows:,} rows of each table.",
    )
    _say_means(record, "Five folds: means", found, "per fold.")
    if {"grid", "grid ensemble"} <= set(models):
        _say_sharpness(record, found)


def compare_on_splits(record: Record, options: argparse.Namespace) -> None:
    """Fit ours and the peers to a few splits of each table."""
    models, partial = _models(options), Partial(options.partial)
    if "explainable boosting" in models and importlib.util.find_spec("interpret") is None:
        record.say("explainable boosting machines are left out: pip install interpret-core")
        del models["explainable boosting"]
    found: dict[str, dict[str, Scores | None]] = {}
    for name in options.tables or TABLES:
        X, y = _rows(name, 5 * options.fitted, 0)
        splits = splits_of(np.unique(y, return_inverse=True)[1], options.fitted)
        found[name] = dict.fromkeys(models)
        for model, make in models.items():
            of_splits: list[Scores] = []
            for seed, split in enumerate(splits):
                key = f"split/{name}/{options.fitted}/{seed}/{model}"
                scores = partial.judge(key, make, X, y, [split])
                if scores is None:
                    break
                of_splits.append(scores)
            else:
                found[name][model] = Scores(*np.mean(of_splits, axis=0))
        _say_table(record, "Splits", name, found[name])
    record.close(
        "Splits: log-loss / accuracy",
        f"Four fifths of the rows of each table fitted, {options.fitted:,} at most; all others held out, "
        f"{4 * options.fitted:,} at most. Means over {SPLITS} splits where fewer than {MANY_ROWS:,} rows are "
        "held out, else one split.",
    )
    all_fitted = {name: scores for name, scores in found.items() if None not in scores.values()}
    if all_fitted:
        note = f"per fit; explainable boosting has {BAGS} bags in place of 14."
        _say_means(record, "Splits: means", all_fitted, note)  # type: ignore[arg-type]


def compare_with_prototype(record: Record, options: argparse.Namespace) -> None:
    """Cross-validate naive Bayes on all rows of the tables that its prototype was measured on."""
    title = "Naive Bayes on all rows, five folds: log-loss"
    _models(argparse.Namespace(models=["naive Bayes"]))
    partial, losses = Partial(options.partial), []
    for name, before in PROTOTYPE.items():
        X, y = _rows(name, 10_000, 0)
        splits = folds(np.unique(y, return_inverse=True)[1], 0)
        scores = partial.judge(f"all/{name}", MODELS["naive Bayes"], X, y, splits)
        losses.append(scores.log_loss)
        record.row(
            title, ["table", "naive Bayes", "prototype"], [name, f"{scores.log_loss:.3f}", f"{before:.3f}"]
        )
    means = [f"{np.mean(losses):.3f}", f"{np.mean(list(PROTOTYPE.values())):.3f}"]
    record.row(title, ["table", "naive Bayes", "prototype"], ["mean", *means])
    record.close(title)


def measure_speed(record: Record, options: argparse.Namespace) -> None:  # noqa: ARG001
    """Measure the averages of one long column, and the weights of many classes."""
    title = "Speed: CPU seconds"
    rng = np.random.default_rng(0)

    def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
        start = time.process_time()
        result = call()
        return time.process_time() - start, result

    for n_rows in (1_000, 1_000_000):  # the first one loads the kernels
        x = rng.normal(size=n_rows)
        target = read_target(rng.random(n_rows) < 1 / (1 + np.exp(-2 * np.sin(3 * x))))
        column = read_table({"x": x}).columns[0]
        search, best = cpu(lambda c=column, t=target: partition_column(c, t))  # type: ignore[misc]
        curve, _ = cpu(lambda c=column, t=target, b=best: averaged_evidence(c, t, b))  # type: ignore[misc]
    record.figure(
        title,
        "1,000,000 rows, one column: averaged curve",
        f"{curve:.2f}",
        f"{search:.2f}, its best intervals",
    )
    for n_rows in (500, 80_000):
        y = rng.integers(0, 24, n_rows)
        X = rng.normal(size=(n_rows, 16)) + rng.normal(size=(24, 16))[y]
        table, target = read_table(X), read_target(y)
        found = [averaged_evidence(c, target, partition_column(c, target)) for c in table.columns]
        seconds, _ = cpu(lambda f=found, t=table, y=target: weight_variables(f, t, y, run=Run()))  # type: ignore[misc]
    record.figure(title, "80,000 rows, 16 columns, 24 classes: weights", f"{seconds:.2f}")
    record.close(title)


def _say_table(record: Record, title: str, name: str, scores: dict[str, Scores | None]) -> None:
    cells = [
        f"more than {LONGEST_FIT:.0f} CPU s" if s is None else f"{s.log_loss:.3f} / {s.accuracy:.3f}"
        for s in scores.values()
    ]
    record.row(f"{title}: log-loss / accuracy", ["table", *scores], [name, *cells])


def _say_means(record: Record, title: str, found: dict[str, dict[str, Scores]], note: str) -> None:
    models = list(next(iter(found.values())))
    losses = np.array([[scores[m].log_loss for m in models] for scores in found.values()])
    ranks = losses.argsort(axis=1).argsort(axis=1) + 1
    for k, model in enumerate(models):
        means = np.mean([scores[model] for scores in found.values()], axis=0)
        lower = int((losses[:, 0] < losses[:, k]).sum()) if k else ""
        record.row(
            title,
            ["model", *MEASURES, "mean rank by log-loss", f"tables where {models[0]} has lower log-loss"],
            [model, *(f"{value:.3f}" for value in means), f"{ranks[:, k].mean():.2f}", lower],
        )
    record.close(
        title, f"Over {len(found)} tables; CPU seconds {note} Chosen on other tables: {', '.join(CHOSEN_ON)}."
    )


def _say_sharpness(record: Record, found: dict[str, dict[str, Scores]]) -> None:
    """Compare the ensemble with the single grid, and with the power that hindsight would choose."""
    pairs = [(scores["grid"], scores["grid ensemble"]) for scores in found.values()]
    means = np.mean([(a.log_loss, b.log_loss, b.hindsight, a.auc, b.auc) for a, b in pairs], axis=0)
    lower = sum(b.log_loss < a.log_loss for a, b in pairs)
    title = "Five folds: the grid ensemble"
    record.figure(title, "tables where its log-loss is below the single grid's", f"{lower} of {len(pairs)}")
    record.figure(title, "mean log-loss", f"{means[1]:.3f}", f"{means[0]:.3f}, the single grid")
    record.figure(title, "the same, power chosen in hindsight on the rows held out", f"{means[2]:.3f}")
    record.figure(title, "mean AUC", f"{means[4]:.3f}", f"{means[3]:.3f}, the single grid")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "--tables": {"nargs": "+", "help": "names of tables (default: all 25)"},
    "--models": {"nargs": "+", "choices": list(MODELS), "help": "models (default: all)"},
    "--seeds": {"type": int, "default": 1, "help": "seeds of the folds"},
    "--rows": {"type": int, "default": 1000, "help": "rows of a table at most, in folds"},
    "--fitted": {"type": int, "default": 1000, "help": "rows fitted at most, of the split"},
    "--partial": {"help": "a file that keeps what was measured, to go on with after an end"},
}

if __name__ == "__main__":
    run(
        "classifiers",
        __doc__,
        {
            "folds": compare_in_folds,
            "split": compare_on_splits,
            "prototype": compare_with_prototype,
            "speed": measure_speed,
        },
        ARGUMENTS,
    )
