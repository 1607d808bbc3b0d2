"""Grids on the sets of the Agnostic Learning vs. Prior Knowledge challenge, by balanced error.

Run by ``python -m benchmarks.grids --only ada challenge``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.datasets import load
from benchmarks.grids_common import Options, cost_of, say
from damier import DataGridClassifier, DataGridEnsembleClassifier

LOW_OCCUPATIONS = (
    "Craft-repair",
    "Other-service",
    "Machine-op-inspct",
    "Transport-moving",
    "Handlers-cleaners",
    "Farming-fishing",
    "Priv-house-serv",
)


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
