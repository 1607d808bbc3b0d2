"""Classifiers side by side, on tables that were not used to choose anything.

    python -m benchmarks.classifiers                    # two hours and more with the peers
    python -m benchmarks.classifiers --tables heart pima --models "naive Bayes" "gradient boosting"
    python -m benchmarks.classifiers --record --partial classifiers-kept.json    # goes on where it ended

``folds`` cross-validates our models in five folds. ``split`` fits ours, those of scikit-learn and explainable
boosting machines to four fifths of each table, 1,000 rows at most: three times where fewer than 1,000 rows
are held out, else once. A fit that takes more than three CPU minutes is ended, and the table left out of
the means. ``prototype``, ``speed`` and ``noise`` measure what has a bound of its own. How naive Bayes
averages evidence, the penalties of its weights and steps, their sharpness, its pairs, and the rows that draw
small cells were chosen on the tables of `CHOSEN_ON`, which are not among those reported.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.judging import (
    LONGEST_FIT,
    MANY_ROWS,
    MEASURES,
    SPLITS,
    Partial,
    Scores,
    folds,
    rows_of,
    splits_of,
)
from benchmarks.naive_bayes_bounds import measure_noise, measure_speed
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
# Bags of explainable boosting machines, in place of 14: a fit takes a third of the time.
BAGS = 4


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


def _models(options: argparse.Namespace, left_out: Collection[str] = ()) -> dict[str, Callable[[], Any]]:
    chosen = [n for n in MODELS if n in options.models] if options.models else list(MODELS)
    chosen = [name for name in chosen if name not in left_out]
    # Kernels are loaded before time is measured.
    X, y = rows_of("iris", 150, 0)
    for name in chosen:
        if name in OURS:
            MODELS[name]().fit(X, y)
    return {name: MODELS[name] for name in chosen}


def compare_in_folds(record: Record, options: argparse.Namespace) -> None:
    """Cross-validate the fast models."""
    models, partial = _models(options, left_out=ONCE), Partial(options.partial)
    found: dict[str, dict[str, Scores]] = {}
    for name in options.tables or TABLES:
        X, y = rows_of(name, options.rows, 0)
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
        X, y = rows_of(name, 5 * options.fitted, 0)
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
        X, y = rows_of(name, 10_000, 0)
        splits = folds(np.unique(y, return_inverse=True)[1], 0)
        scores = partial.judge(f"all/{name}", MODELS["naive Bayes"], X, y, splits)
        losses.append(scores.log_loss)
        record.row(
            title, ["table", "naive Bayes", "prototype"], [name, f"{scores.log_loss:.3f}", f"{before:.3f}"]
        )
    means = [f"{np.mean(losses):.3f}", f"{np.mean(list(PROTOTYPE.values())):.3f}"]
    record.row(title, ["table", "naive Bayes", "prototype"], ["mean", *means])
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
            "noise": measure_noise,
        },
        ARGUMENTS,
    )
