"""Estimators fitted to odd tables."""

from __future__ import annotations

import decimal
import inspect
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_regressor

import damier
from damier.deploy.json import dumps, loads
from tests.hostile.odd import FLOATS, INTS, container, odd_column, same_in_every_library, take
from tests.hostile.promises import Broken, only_our_warnings, refused

FAST = {
    "BallPartitionClassifier": {"n_partitions": 2},
    "Coclustering": {"effort": 1},
    "CoclusteringClassifier": {"coclustering": damier.Coclustering(effort=1)},
    "DataGridClassifier": {"effort": 0},
    "DataGridEnsembleClassifier": {"effort": 0, "n_grids": 2},
    "LinfClassifier": {"n_estimators": 2},
}
# Settings that change what is fitted, each drawn in a part of the cases.
_TRANSFORMERS = ("MODLDiscretizer", "MODLEncoder", "MODLGrouper")
SETTINGS = {
    "averaging": {
        "NaiveBayesClassifier": ("convex", "compression", None),
        "NaiveBayesRegressor": ("compression", None),
    },
    "balls": {"BallPartitionClassifier": ("local", "global")},
    "encode": dict.fromkeys(_TRANSFORMERS, ("evidence", "onehot", "mean")),
    "evidence": {"NaiveBayesClassifier": ("posterior", "best")},
    "group_classes": dict.fromkeys(("MODLEncoder", "NaiveBayesClassifier"), (True,)),
    "pairs": {"NaiveBayesClassifier": (1, 3, "auto")},
    "search": dict.fromkeys(("MODLEncoder", "NaiveBayesRegressor"), ("greedy", "exact")),
    "semi_supervised": dict.fromkeys(
        ("BallPartitionClassifier", "MODLDiscretizer", "MODLEncoder", "NaiveBayesClassifier"), ("criterion",)
    ),
    "setting": dict.fromkeys(("BallPartitionClassifier", "LinfClassifier"), ("paper",)),
    "target": dict.fromkeys(_TRANSFORMERS, ("number", "classes")),
}
ESTIMATORS = sorted(name for name in damier.__all__ if inspect.isclass(getattr(damier, name)))
OF_COUNTS = ("Coclustering", "CoclusteringClassifier")


def labels(rng, hidden):
    """Odd names for the hidden classes, and the numbers of the classes among those names."""
    k = int(rng.integers(1, 5))
    names = [
        ["no", "yes", "", "a\ud800"],
        [0, 1, 2, -1],
        [True, False],
        [1, "1", None, "x"],
        [0.0, 1.0, np.nan, 2.0],
        [2**53, 2**53 + 1, -1],
    ]
    chosen = names[int(rng.integers(0, len(names)))][:k]
    codes = hidden % len(chosen)
    y = np.empty(len(codes), dtype=object)
    y[:] = [chosen[i] for i in codes]
    return y.tolist() if rng.random() < 0.5 else y, codes


def numbers(rng, hidden):
    """A target that is a number, of some kind."""
    n = len(hidden)
    match int(rng.integers(0, 6)):
        case 0 | 1:
            return hidden + rng.normal(size=n) / 4
        case 2:
            return (hidden * 10 + rng.integers(0, 5, n)).tolist()
        case 3:
            return rng.choice([*FLOATS[: int(rng.integers(1, len(FLOATS)))], 0.25], n)
        case 4:
            return (hidden + rng.integers(0, 3, n)) * 1e307
        case _:
            return [decimal.Decimal(int(h)) / 3 for h in hidden]


def answers(fitted, X):
    order = ("predict", "transform") if is_regressor(fitted) else ("predict_proba", "transform", "predict")
    for what in order:
        if hasattr(fitted, what):
            return np.asarray(getattr(fitted, what)(X))
    raise Broken("answers nothing")


def by_class(fitted):
    """Tell whether answers have a column per class: probabilities, or the evidence of each variable."""
    return hasattr(fitted, "predict_proba") or fitted.get_params().get("encode") == "evidence"


def renamed(fitted, codes, y, turned):
    """The same classes under other names, in the order that they have or in the opposite one."""
    classes = [(type(c), c) for c in fitted.classes_.tolist()]
    ranks = np.empty(codes.max() + 1, dtype=np.int64)
    for code in np.unique(codes):
        value = y[int(np.flatnonzero(codes == code)[0])]
        value = value.item() if isinstance(value, np.generic) else value
        ranks[code] = classes.index((type(value), value)) if (type(value), value) in classes else -1
    if (ranks[np.unique(codes)] < 0).any():
        return None
    return [f"class {len(classes) - r if turned else r}" for r in ranks[codes]]


def same(first, second):
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def try_table(seed):
    """Fit an estimator to an odd table: it refuses in a sentence, or answers as it should.

    What it answers does not depend on the order of the rows, the number of threads, the library of the
    frame or the names of the classes; one of the four is looked at per case, in turn.
    """
    rng = np.random.default_rng(seed)
    name = ESTIMATORS[seed % len(ESTIMATORS)]
    question = ("order", "threads", "library", "names")[seed // len(ESTIMATORS) % 4]
    n = int(rng.choice([0, 1, 2, 3, 20, 40, 150]))
    first, second = rng.integers(0, int(rng.integers(1, 5)), (2, n))
    hidden = (first + second) % 4 if rng.random() < 0.5 else first  # in half of the cases two columns decide
    y, codes = labels(rng, hidden)
    estimator = getattr(damier, name)(**FAST.get(name, {}))
    for setting, held in SETTINGS.items():
        if name in held and rng.random() < 0.4:
            estimator.set_params(**{setting: held[name][int(rng.integers(0, len(held[name])))]})
    of_number = is_regressor(estimator) or estimator.get_params().get("target") == "number"
    if rng.random() < (0.9 if of_number else 0.1):
        y, codes = numbers(rng, hidden), None
    of_counts = name in OF_COUNTS and rng.random() < 0.7
    frames = []
    if of_counts:
        X = rng.choice(
            [rng.poisson(2, (n, 4)), rng.choice(FLOATS, (n, 4)), rng.choice(INTS, (n, 4))][
                : 1 + 2 * (seed % 3 == 0)
            ]
        )
        X = sparse.csr_array(X) if rng.random() < 0.3 else X
    elif question == "library":
        X, frames = same_in_every_library(rng, n, first)
        if name == "CoclusteringClassifier":  # takes frames of counts, and no dict
            X = frames[0]
    else:
        names = rng.permutation(["x", "count", "a\ud800", "", "[/b]", "class", "x (2)"])
        decide = (first, second, hidden, None)
        X = container(
            rng,
            {
                str(m): odd_column(rng, n, decide[int(rng.integers(0, 4))])
                for m in names[: int(rng.integers(1, 4))]
            },
        )
    weighed = {}
    if rng.random() < 0.2 and "sample_weight" in inspect.signature(estimator.fit).parameters:
        weighed = {
            "sample_weight": rng.choice([0, 1, 3, 0.5, -1, np.nan, 1e300, 2.0**53][: rng.integers(1, 9)], n)
        }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = clone(estimator).fit(X, y, **weighed)
        except Exception as error:
            refused(error)
            for frame in frames:
                try:
                    clone(estimator).fit(frame, y, **weighed)
                except Exception as another:
                    refused(another)
                    if str(another) != str(error) and name != "CoclusteringClassifier":
                        raise Broken(f"{type(frame)} is refused otherwise: {another}, {error}") from None
                else:
                    raise Broken(f"{type(frame)} is not refused: {error}") from None
            return
        finally:
            only_our_warnings(caught)
        found = answers(fitted, X)
        if len(found) != n:
            raise Broken(f"{len(found)} answers for {n} rows")
        if hasattr(fitted, "predict_proba") and not (
            (found >= 0).all() and np.allclose(found.sum(axis=1), 1.0)
        ):
            raise Broken("probabilities do not add up to one")
        if loads(dumps(fitted)) != fitted.model_:
            raise Broken("saved and loaded, the model differs")
        # The rows of a matrix are the values that are clustered: another order is another table.
        if question == "order" and not sparse.issparse(X) and not (name == "Coclustering" and of_counts):
            order = rng.permutation(n)
            turned = {what: weights[order] for what, weights in weighed.items()}
            shuffled = clone(estimator).fit(take(X, order), [y[i] for i in order], **turned)
            if name == "Coclustering":
                alike = shuffled.model_ == fitted.model_
            else:
                alike = same(answers(shuffled, X), found)
            if not alike:
                raise Broken("row order changes the answers")
        elif question == "threads" and "n_jobs" in estimator.get_params():
            if clone(estimator).set_params(n_jobs=3).fit(X, y, **weighed).model_ != fitted.model_:
                raise Broken("threads change the model")
        elif question == "library":
            for frame in frames:
                other = clone(estimator).fit(frame, y, **weighed)
                if not same(answers(other, frame), found) or not same(answers(fitted, frame), found):
                    raise Broken(f"{type(frame)} changes the answers")
        elif question == "names" and codes is not None and hasattr(fitted, "classes_"):
            # LINF draws for one class after the other: their order is part of the seed.
            turned = rng.random() < 0.5 and name != "LinfClassifier"
            others = renamed(fitted, codes, y, turned)
            if others is not None:
                again = answers(clone(estimator).fit(X, others, **weighed), X)
                if turned and by_class(fitted):
                    each = (-1, again.shape[1] // len(fitted.classes_), len(fitted.classes_))
                    again = again.reshape(each)[:, :, ::-1].reshape(again.shape)
                if not (
                    np.allclose(again, found, rtol=1e-9, equal_nan=True) if turned else same(again, found)
                ):
                    raise Broken(f"names of classes change the answers{' (opposite order)' * turned}")
        if hasattr(fitted.model_, "to_frame"):
            fitted.model_.to_frame()
        if isinstance(X, dict):  # scored on columns of any other kind
            columns = {column: odd_column(rng, 7) for column in X if rng.random() < 0.9}
            others = container(rng, columns)
            try:
                scored = answers(fitted, others)
            except Exception as error:
                refused(error)
            else:
                if columns and len(scored) != 7:
                    raise Broken(f"{len(scored)} answers for 7 rows")
        only_our_warnings(caught)
