"""Fit classifiers to rows, and score them on others: what `benchmarks.classifiers` measures by."""

from __future__ import annotations

import json
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.datasets import load

MEASURES = ("accuracy", "AUC", "log-loss", "Brier", "fit s", "predict s", "log-loss, best power in hindsight")
# CPU seconds of a fit at most.
LONGEST_FIT = 180.0
# Splits of a table, and rows held out above which one is enough.
SPLITS, MANY_ROWS = 3, 1000


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


def rows_of(name: str, most: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
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
