import _thread
import json
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import LinfClassifier
from damier.fit.linf import _facts, _heavy_tailed, fit_linf
from damier.intake import read_table, read_target


@parametrize_with_checks([LinfClassifier(n_estimators=3), LinfClassifier(n_estimators=1, setting="paper")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def mixed(n=600, seed=0):
    random = np.random.default_rng(seed)
    group = random.choice(["red", "green", "blue", "grey"], n)
    size = random.exponential(2.0, n)
    noise = random.normal(size=n)
    labels = np.where((size > 1.5) ^ (group == "red"), "yes", "no")
    frame = pd.DataFrame({"group": group, "size": size, "noise": noise})
    frame.loc[random.random(n) < 0.1, "size"] = np.nan
    frame.loc[random.random(n) < 0.1, "group"] = None
    return frame, labels


def test_training_rows_end_where_fitting_put_them():
    X, y = mixed()
    for setting in ("paper", "refined"):
        classifier = LinfClassifier(n_estimators=4, random_state=1, setting=setting).fit(X, y)
        path = classifier.decision_path(X)
        assert path.cover.shape == (600, 4)
        for number, cover in enumerate(classifier.covers_):
            rows = path.inside[:, cover.member] & (path.cover[:, cover.member] == number)
            counts = np.zeros_like(cover.counts)
            np.add.at(counts, (path.rectangle[rows, cover.member], (y[rows] == "yes").astype(int)), 1)
            assert (counts == cover.counts).all()
            assert classifier.classes_[cover.class_index] == cover.label


def test_it_learns_mixed_columns_with_missing_values():
    X, y = mixed(1500)
    fitted = LinfClassifier(random_state=0).fit(X[:1000], y[:1000])
    # A tenth of each column is missing: about one row in ten cannot be predicted.
    assert fitted.score(X[1000:], y[1000:]) > 0.85
    paper = LinfClassifier(n_estimators=5, random_state=0, setting="paper").fit(X[:1000], y[:1000])
    assert paper.score(X[1000:], y[1000:]) > 0.8
    shares = fitted.predict_proba(X[1000:])
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert (fitted.predict(X[1000:]) == fitted.classes_[shares.argmax(axis=1)]).all()


def test_digits_are_told_apart():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    classifier = LinfClassifier(random_state=0, n_jobs=2).fit(X_train, y_train)
    # The paper reports 4 to 6 % for these images with more of them to learn from.
    assert classifier.score(X_test, y_test) > 0.94
    assert {cover.label for cover in classifier.covers_} == set(range(10))


def test_threads_rows_and_frames_change_nothing():
    X, y = mixed(300)
    reference = LinfClassifier(n_estimators=5, random_state=3).fit(X, y).model_
    assert LinfClassifier(n_estimators=5, random_state=3, n_jobs=2).fit(X, y).model_ == reference
    order = np.random.default_rng(0).permutation(300)
    shuffled = LinfClassifier(n_estimators=5, random_state=3).fit(X.iloc[order], y[order]).model_
    assert shuffled == reference
    for frame in (pl.from_pandas(X), pa.Table.from_pandas(X, preserve_index=False)):
        fitted = LinfClassifier(n_estimators=5, random_state=3).fit(frame, y)
        assert fitted.model_ == reference
        assert (fitted.predict_proba(frame) == reference.predict_proba(X)).all()
    renamed = np.where(y == "yes", "b", "a")
    other = LinfClassifier(n_estimators=5, random_state=3).fit(X, renamed)
    assert (other.predict_proba(X) == reference.predict_proba(X)).all()
    fewer = LinfClassifier(n_estimators=2, random_state=3).fit(X, y).model_
    assert len(fewer.covers) > 5
    assert [cover.to_dict() for cover in fewer.covers] == [
        cover.to_dict() for cover in reference.covers[: len(fewer.covers)]
    ]
    other_seed = LinfClassifier(n_estimators=5, random_state=4).fit(X, y).model_
    assert other_seed != reference


def test_no_seed_is_seed_0_and_a_generator_is_drawn_from():
    X, y = mixed(200)
    fixed = LinfClassifier(n_estimators=2, random_state=0).fit(X, y).model_
    np.random.rand()  # noqa: NPY002 -- what NumPy's global generator holds must not matter
    assert LinfClassifier(n_estimators=2).fit(X, y).model_ == fixed
    assert fit_linf(read_table(X), read_target(y), n_estimators=2) == fixed
    random = np.random.RandomState(0)
    assert LinfClassifier(n_estimators=2, random_state=random).fit(X, y).model_ == fixed
    assert LinfClassifier(n_estimators=2, random_state=random).fit(X, y).model_ != fixed


@pytest.mark.parametrize("setting", ["paper", "refined"])
def test_the_order_of_rows_changes_no_bit(setting):
    X, y = mixed(3000)  # more rows than projections are ranked on
    X["zero"] = np.where(np.arange(3000) % 2, 0.0, -0.0) + np.arange(3000) % 3 // 2
    X["far"] = np.random.default_rng(1).standard_cauchy(3000) * 1e200
    one = LinfClassifier(n_estimators=2, setting=setting).fit(X, y)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(3000)
        other = LinfClassifier(n_estimators=2, setting=setting).fit(X.iloc[order], y[order])
        assert json.dumps(other.model_.to_dict()) == json.dumps(one.model_.to_dict())
        assert (other.predict_proba(X.iloc[order]) == one.predict_proba(X)[order]).all()


def test_odd_tables():
    # All distinct categories, a constant column, infinities, a single column, unseen values: nothing crashes.
    n = 60
    y = np.arange(n) % 2
    X = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(n)],
            "same": 1.0,
            "same word": "word",
            "same truth": True,
            "wild": np.where(np.arange(n) % 3, np.inf, -np.inf),
            "<b>é</b>": np.arange(n) % 2 + np.linspace(0, 0.1, n),
        }
    )
    classifier = LinfClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert (classifier.predict(X.assign(name="new", wild=np.nan)) == y).mean() > 0.9
    assert not any(name.startswith("same") for c in classifier.covers_ for name in dict(c.x + c.y))
    constant = LinfClassifier(n_estimators=2).fit(np.ones((10, 2)), [0] * 7 + [1] * 3)
    assert constant.covers_ == ()
    assert constant.predict_proba(np.zeros((1, 2)))[0] == pytest.approx([0.7, 0.3])
    with pytest.raises(ValueError, match="one class only"):
        LinfClassifier().fit(X, np.zeros(n, int))


def test_a_hundred_classes():
    random = np.random.default_rng(0)
    centres = random.uniform(-10, 10, (100, 6))
    y = np.repeat(np.arange(100), 12)
    X = centres[y] + random.normal(scale=0.3, size=(1200, 6))
    classifier = LinfClassifier(n_estimators=3, random_state=0, n_jobs=2).fit(X, y)
    assert {cover.label for cover in classifier.covers_} == set(range(100))
    assert classifier.score(X, y) > 0.9


def test_transformed_columns_are_those_with_heavy_tails():
    random = np.random.default_rng(0)
    n = 2000
    X = {
        "normal": random.normal(size=n),
        "income": random.lognormal(size=n),
        "uniform": random.random(n),
        "cauchy": random.standard_cauchy(n),
        "flat": np.zeros(n),
        "left": -random.lognormal(size=n),
    }
    # skewed to the left counts by its kurtosis
    table = read_table(X)
    facts = dict(zip(table.names, _facts(list(table)), strict=True))
    assert _heavy_tailed(facts) == {"income", "cauchy", "left"}


def test_an_interruption_keeps_the_members_grown(monkeypatch):
    import damier.search.linf.search as search

    grow, calls = search.find_covers, []

    def interrupted(rows, seed, settings, stop):
        calls.append(1)
        if len(calls) >= 3:
            _thread.interrupt_main()
            while not stop[0]:
                time.sleep(0.01)
        return grow(rows, seed, settings, stop)

    monkeypatch.setattr(search, "find_covers", interrupted)
    X, y = load_iris(return_X_y=True)
    classifier = LinfClassifier(random_state=0).fit(X, y)
    assert classifier.search_ended_ == "interrupted"
    assert len(classifier.model_.members) == 2
    assert classifier.score(X, y) > 0.9
    calls[:] = [1, 1]
    with pytest.raises(KeyboardInterrupt):
        LinfClassifier(random_state=0).fit(X, y)


def test_scoring_needs_no_numba(tmp_path):
    X, y = load_iris(return_X_y=True)
    plain = LinfClassifier(n_estimators=2, random_state=0).fit(X, y).model_.to_dict()
    (tmp_path / "model.json").write_text(json.dumps(plain))
    code = (
        "import json, sys; from damier.models import LinfModel; "
        f"model = LinfModel.from_dict(json.load(open({str(tmp_path / 'model.json')!r}))); "
        "print(model.predict_proba([[5.1, 3.5, 1.4, 0.2]]).argmax(), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]


@pytest.mark.parametrize("setting", ["paper", "refined"])
def test_many_rows_are_scored_by_a_kernel_that_agrees_to_the_last_bit(monkeypatch, setting):
    import damier.fit.linf as home

    X, y = mixed(500)
    rows = pd.concat([mixed(2500, 1)[0], X.assign(size=X["size"] * 9, group="new")])
    classifier = LinfClassifier(n_estimators=5, random_state=0, setting=setting, n_jobs=2).fit(X, y)
    plain = classifier.predict_proba(rows)
    assert not classifier.decision_path(rows).inside.all()
    used = []
    monkeypatch.setattr(home, "_compiled", lambda compiled=home._compiled: used.append(1) or compiled())
    assert (classifier.predict_proba(rows) == plain).all()
    assert not used  # too little work to load a kernel for
    monkeypatch.setattr(home, "_MUCH_WORK", 0)
    monkeypatch.setattr(home, "_CHUNK", 1100)
    assert (classifier.predict_proba(rows) == plain).all()
    assert (classifier.predict(rows) == classifier.classes_[plain.argmax(axis=1)]).all()
    digits, labels = load_digits(return_X_y=True)
    classifier.fit(digits[:900], labels[:900])
    assert (classifier.predict_proba(digits) == classifier.model_.predict_proba(digits)).all()
    assert (classifier.predict(digits) == classifier.predict_proba(digits).argmax(axis=1)).all()
    constant = LinfClassifier(n_estimators=2).fit(np.ones((10, 2)), [0] * 7 + [1] * 3)
    assert constant.predict_proba(np.zeros((3, 2))) == pytest.approx(np.tile([0.7, 0.3], (3, 1)))
    assert len(used) == 6
    monkeypatch.setitem(sys.modules, "damier.search.linf.score", None)  # as if Numba were not installed
    assert (classifier.predict_proba(digits) == classifier.model_.predict_proba(digits)).all()


def test_a_pickle_does_not_grow_with_scoring(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    classifier = LinfClassifier(n_estimators=2, random_state=0).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    before = pickle.dumps(classifier)
    expected = classifier.predict_proba(X)
    monkeypatch.setattr("damier.fit.linf._MUCH_WORK", 0)
    classifier.predict(X)
    assert len(pickle.dumps(classifier)) == len(before)
    again = pickle.loads(pickle.dumps(classifier))
    assert again.model_ == classifier.model_
    assert (again.predict_proba(X) == expected).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_ctrl_c_within_a_kernel_keeps_the_members_grown(n_jobs):
    X = np.random.default_rng(0).normal(size=(3000, 6))
    y = (X[:, 0] * X[:, 1] > X[:, 2]).astype(int)
    LinfClassifier(n_estimators=1).fit(X, y)  # compiled or loaded
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    try:
        classifier = LinfClassifier(n_estimators=2000, random_state=0, n_jobs=n_jobs).fit(X, y)
    finally:
        timer.cancel()
    assert classifier.search_ended_ == "interrupted"
    assert 0 < len(classifier.model_.members) < 2000
    assert [cover.member for cover in classifier.covers_] == sorted(
        cover.member for cover in classifier.covers_
    )
    assert {cover.member for cover in classifier.covers_} == set(range(len(classifier.model_.members)))
    assert classifier.score(X, y) > 0.8


def test_a_time_limit_keeps_the_members_grown():
    X = np.random.default_rng(0).normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] > X[:, 2]).astype(int)
    seen = []
    classifier = LinfClassifier(n_estimators=2000, random_state=0, time_limit=1.5, n_jobs=2)
    classifier.fit(X, y, progress=seen.append)
    members = classifier.model_.members
    assert classifier.search_ended_ == "time limit"
    assert 1 < len(members) < 2000
    assert classifier.score(X, y) > 0.8
    assert seen
    assert [state.done for state in seen] == list(range(1, len(seen) + 1))
    assert {state.total for state in seen} == {2000}
    whole = LinfClassifier(n_estimators=1, random_state=0).fit(X, y)
    assert whole.search_ended_ == "complete"
    assert [c.to_dict() for c in members[0]] == [c.to_dict() for c in whole.covers_]


def test_with_no_time_the_first_member_is_cut_short_and_still_votes():
    X, y = mixed(3000)
    classifier = LinfClassifier(n_estimators=3, time_limit=0).fit(X, y)
    assert classifier.search_ended_ == "time limit"
    assert len(classifier.model_.members) == 1
    assert len(classifier.covers_) < len(LinfClassifier(n_estimators=1).fit(X, y).covers_)
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_fitting_needs_no_scikit_learn():
    code = (
        "import sys, numpy as np; from damier.fit.linf import fit_linf; "
        "from damier.intake import read_table, read_target; "
        "model = fit_linf(read_table(np.arange(40.0).reshape(20, 2)), read_target([0, 1] * 10)); "
        "print(len(model.members), 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["25", "False"]


def test_columns_of_the_largest_numbers_are_read_without_a_warning():
    X = {"huge": np.full(60, 1e308), "wide": np.where(np.arange(60) % 2, 1.7e308, -1.7e308)}
    fitted = LinfClassifier(n_estimators=2).fit(X, np.arange(60) % 2)
    assert (fitted.predict(X) == np.arange(60) % 2).all()


def test_an_axis_whose_weights_are_all_zero():
    random = np.random.default_rng(54)
    X = random.normal(size=(1000, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * random.normal(size=1000) > 0
    fitted = LinfClassifier(n_estimators=3, random_state=54).fit(X, y)
    assert any(not cover.x or not cover.y for cover in fitted.covers_)
    assert fitted.score(X, y) > 0.85
