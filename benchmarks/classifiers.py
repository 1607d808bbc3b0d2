"""Classifiers side by side: five folds, two seeds, on tables that were not used to choose anything.

    python -m benchmarks.classifiers                    # all; hours with the peers
    python -m benchmarks.classifiers --tables heart pima --models "naive Bayes" "gradient boosting"

The penalties of the weights of `NaiveBayesClassifier` were chosen on the tables of `CHOSEN_ON`, which are
not among those reported. Explainable boosting machines take part where `interpret-core` is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.datasets import load
from benchmarks.records import Record, run
from damier import DataGridClassifier, DataGridEnsembleClassifier, LinfClassifier, NaiveBayesClassifier

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
MEASURES = ("accuracy", "AUC", "log-loss", "Brier", "fit s", "predict s")


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

    return ExplainableBoostingClassifier(random_state=0, n_jobs=1)


MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": NaiveBayesClassifier,
    "naive Bayes, best partition": lambda: NaiveBayesClassifier(evidence="best"),
    "naive Bayes, compression": lambda: NaiveBayesClassifier(evidence="best", averaging="compression"),
    "grid": DataGridClassifier,
    "grid ensemble": DataGridEnsembleClassifier,
    "LINF": lambda: LinfClassifier(random_state=0),
    "logistic, one-hot": lambda: _prepared(LogisticRegression(max_iter=2000), one_hot=True),
    "gradient boosting": lambda: _prepared(HistGradientBoostingClassifier(random_state=0), one_hot=False),
    "random forest": lambda: _prepared(RandomForestClassifier(random_state=0), one_hot=False),
    "explainable boosting": _boosting_machine,
}


class Scores(NamedTuple):
    """What a model reaches on the rows held out, and its CPU seconds; in the order of `MEASURES`."""

    accuracy: float
    auc: float
    log_loss: float
    brier: float
    fit: float
    predict: float


def judge(make: Callable[[], Any], X: pd.DataFrame, y: np.ndarray, seed: int) -> Scores:
    """Cross-validate one model in five folds."""
    classes, codes = np.unique(y, return_inverse=True)
    proba = np.zeros((len(y), len(classes)))
    fit = predict = 0.0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            model = make().fit(X.iloc[train], y[train])
            fit += time.process_time() - start
            start = time.process_time()
            found = model.predict_proba(X.iloc[test])
            predict += time.process_time() - start
        proba[np.ix_(test, np.searchsorted(classes, model.classes_))] = found
    own = proba[np.arange(len(y)), codes]
    hit = np.zeros(proba.shape)
    hit[np.arange(len(y)), codes] = 1.0
    areas = roc_auc_score(hit, proba, average=None)
    return Scores(
        accuracy=float((proba.argmax(axis=1) == codes).mean()),
        auc=float(np.average(areas, weights=hit.sum(axis=0))),
        # A probability of zero costs as one row in all would: infinity would hide everything else.
        log_loss=float(-np.log(np.maximum(own, 0.5 / len(y))).mean()),
        brier=float(((proba - hit) ** 2).sum(axis=1).mean()),
        fit=fit / 5,
        predict=predict / 5,
    )


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


def compare(record: Record, options: argparse.Namespace) -> None:
    """Print log-loss and accuracy on each table, then the means."""
    models = {name: make for name, make in MODELS.items() if not options.models or name in options.models}
    try:
        import interpret  # noqa: F401
    except ImportError:
        models.pop("explainable boosting", None)
        record.say("explainable boosting machines are left out: pip install interpret-core")
    found: dict[str, dict[str, Scores]] = {}
    for name in options.tables or TABLES:
        scores: dict[str, Scores] = {}
        for model, make in models.items():
            of_seeds = [judge(make, *_rows(name, options.rows, 0), seed) for seed in range(options.seeds)]
            scores[model] = Scores(*np.mean(of_seeds, axis=0))
        found[name] = scores
        cells = [f"{s.log_loss:.3f} / {s.accuracy:.3f}" for s in scores.values()]
        record.row("Log-loss / accuracy", ["table", *models], [name, *cells])
    record.close(
        "Log-loss / accuracy", f"Five folds, {options.seeds} seed(s), at most {options.rows:,} rows."
    )
    losses = np.array([[s.log_loss for s in scores.values()] for scores in found.values()])
    ranks = losses.argsort(axis=1).argsort(axis=1) + 1
    for k, model in enumerate(models):
        means = np.mean([scores[model] for scores in found.values()], axis=0)
        lower = int((losses[:, 0] < losses[:, k]).sum()) if k else ""
        record.row(
            "Means",
            ["model", *MEASURES, "mean rank by log-loss", f"tables where {next(iter(models))} is lower"],
            [model, *(f"{value:.3f}" for value in means), f"{ranks[:, k].mean():.2f}", lower],
        )
    record.close(
        "Means",
        f"Over {len(found)} tables, CPU seconds per fold. Chosen on other tables: {', '.join(CHOSEN_ON)}.",
    )


ARGUMENTS: dict[str, dict[str, Any]] = {
    "--tables": {"nargs": "+", "help": "names of tables (default: all 25)"},
    "--models": {"nargs": "+", "choices": list(MODELS), "help": "models (default: all)"},
    "--seeds": {"type": int, "default": 2, "help": "seeds of the folds"},
    "--rows": {"type": int, "default": 10_000, "help": "rows at most"},
}

if __name__ == "__main__":
    run("classifiers", __doc__, {"compare": compare}, ARGUMENTS)
