"""Grids on the sets of the Agnostic Learning vs. Prior Knowledge challenge, by balanced error.

Run by ``python -m benchmarks.grids --only ada challenge``.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.datasets import load
from benchmarks.grids_common import cost_of, draws
from benchmarks.records import Record
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


def tuned(model, train: tuple, held_out: bool) -> TunedThresholdClassifierCV:
    """Let scikit-learn tune the threshold for balanced error, on the rows fitted or on rows held out.

    A grid has few scores, close to one another: the default of 100 thresholds is too coarse.
    """
    X, y = train
    settings = {} if held_out else {"cv": "prefit", "refit": False}
    return TunedThresholdClassifierCV(
        model if held_out else model.fit(X, y), scoring="balanced_accuracy", thresholds=1000, **settings
    ).fit(X, y)


def balanced_error(model, test: tuple) -> float:
    """Mean of the error rates of the classes."""
    X, y = test
    return float(1.0 - balanced_accuracy_score(y, model.predict(X)))


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
    train = with_nan(ada.X), (ada.y == "1").to_numpy()
    X_adult = with_nan(X_adult)
    return train, (X_adult[outside], positive[outside]), (X_adult[known], positive[known])


def with_nan(X: pd.DataFrame) -> pd.DataFrame:
    """Write missing text as NaN: scikit-learn's encoders do not know pandas' NA."""
    text = {c: X[c].astype(object).where(X[c].notna(), np.nan) for c in X if X[c].dtype.kind not in "ifub"}
    return X.assign(**text)


def ada(record: Record, options: argparse.Namespace) -> None:
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
    record.figure(
        "Ada's grid",
        "grid of least cost",
        f"{crossed}, {len(grid.cells)} cells, {grid.cost:.2f}",
        f"6 of 14 columns, 57 cells, cost {second:.2f} (Boullé)",
    )
    ensemble = DataGridEnsembleClassifier(
        random_state=0, n_jobs=options.n_jobs, n_grids=draws(options, 4000, 200)
    )
    title = "Ada: balanced error outside the rows of the challenge"
    for kind, model, published in (
        ("best grid", single, "0.2058"),
        ("ensemble", ensemble, "0.1756"),
        ("gradient boosting", _boosting(X), ""),
    ):
        for how, held_out in (("rows fitted", False), ("rows held out", True)):
            chosen = tuned(model, train, held_out)
            errors = [balanced_error(chosen, test) for test in tests]
            record.row(
                title,
                ["model", "threshold from", "all rows outside", "rows the challenge kept", "published"],
                [kind, how, f"{errors[0]:.4f}", f"{errors[1]:.4f}", published],
            )
    record.close(
        title,
        f"Trained on the {len(y):,} rows of the challenge; the ensemble has `n_grids={ensemble.n_grids}`. "
        "All rows outside are Adult's other rows; the challenge kept those with an occupation. Thresholds "
        "are scikit-learn's, `thresholds=1000`.",
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
    """Replace each block of 40 binary soil columns by one categorical column, as published."""
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


def challenge(record: Record, options: argparse.Namespace) -> None:
    """Cross-validate the other sets of the challenge."""
    n_folds = 2 if options.quick else 10
    for name, *published in (
        ("ada_agnostic", 0.2068, 0.1761, ""),
        ("sylva_agnostic", 0.0211, 0.0158, ""),
        ("sylva_prior", 0.0099, 0.0228, ""),
        ("hiva_agnostic", 0.3661, 0.3242, ""),
    ):
        data = load(name)
        X, y = soil_as_one(data.X.reset_index(drop=True)), (data.y == "1").to_numpy()
        models = {
            "best grid": DataGridClassifier(random_state=0, n_jobs=options.n_jobs),
            "ensemble": DataGridEnsembleClassifier(
                random_state=0, n_jobs=options.n_jobs, n_grids=draws(options, 300, 60)
            ),
            "gradient boosting": _boosting(X),
        }
        errors: dict[str, list[float]] = {kind: [] for kind in models}
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
            for kind, model in models.items():
                # boosting fits its own rows too well to tune on them
                chosen = tuned(model, (X.iloc[train], y[train]), held_out=kind == "gradient boosting")
                errors[kind].append(balanced_error(chosen, (X.iloc[test], y[test])))
        record.row(
            f"The other sets of the challenge, {n_folds} folds: balanced error",
            ["set", *(part for kind in models for part in (f"{kind} (standard error)", "published"))][:-1],
            [
                name,
                *(
                    part
                    for found, figure in zip(errors.values(), published, strict=True)
                    for part in (f"{np.mean(found):.4f} ({np.std(found) / math.sqrt(n_folds):.4f})", figure)
                ),
            ][:-1],
        )
