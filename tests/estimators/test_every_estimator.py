"""What every estimator promises, each promise tested on all of them."""

import _thread
import inspect
import pickle
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score

import damier
from damier import deploy
from damier.deploy.json import dumps, loads
from damier.search.run import Run, Stopped

# Found in the package itself, so that none can be forgotten.
ESTIMATORS = sorted(name for name in damier.__all__ if inspect.isclass(getattr(damier, name)))
FAST = {
    "BallPartitionClassifier": {"n_partitions": 3, "n_neighbors": 2},
    "DataGridClassifier": {"effort": 1},
    "DataGridEnsembleClassifier": {"effort": 1, "n_grids": 5},
    "LinfClassifier": {"n_estimators": 3},
    "NaiveBayesClassifier": {"averaging": "compression"},
}
OF_COUNTS = ("Coclustering", "CoclusteringClassifier")
N_ROWS = 120


def make(name, **parameters):
    return getattr(damier, name)(**{**FAST.get(name, {}), **parameters})


def columns(seed=0, n=N_ROWS):
    """Two classes, and columns that explain them; numbers only, which every estimator takes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = {
        "size": rng.normal(2.0 * y, 1.0),
        "age": rng.integers(20, 60, n) + 15.0 * y,
        "noise": rng.normal(size=n),
    }
    return X, np.array(["no", "yes"])[y]


def numbers(seed=0, n=N_ROWS):
    """The same columns, and a number that they explain."""
    X, y = columns(seed, n)
    return X, np.round(2.0 * X["size"] + np.where(y == "yes", 3.0, 0.0) + X["age"] / 10, 2)


def counts(seed=0, n=N_ROWS):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    rates = np.where(y[:, None] == np.arange(6) % 2, 4.0, 0.3)
    return {f"word {j}": column.astype(float) for j, column in enumerate(rng.poisson(rates).T)}, y


def data(name, seed=0):
    if name in OF_COUNTS:
        return counts(seed)
    return numbers(seed) if name.endswith("Regressor") else columns(seed)


def array(X):
    return np.column_stack(list(X.values()))


def table(name, X):
    """A table in the form that the estimator reads by column."""
    return array(X) if name in OF_COUNTS else pd.DataFrame(X)


def fit(name, **parameters):
    X, y = data(name)
    return make(name, **parameters).fit(table(name, X), y)


def answers(fitted, X):
    """All that a fitted estimator or a loaded model says of new rows."""
    told = [getattr(fitted, what)(X) for what in ("predict_proba", "predict") if hasattr(fitted, what)]
    if hasattr(fitted, "predict_quantile"):
        told += [fitted.predict_quantile(X, [0.1, 0.5]), fitted.predict_interval(X, 0.8)]
    if not told:
        told = [fitted.transform(X)]
    return told


def same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(first, second, strict=True)
    )


def renumbered(labels):
    """Number clusters in the order in which they are met."""
    return [list(dict.fromkeys(labels.tolist())).index(label) for label in labels.tolist()]


def model_of(fitted):
    return fitted.model_


# What is not there yet, by what it is; a mark that is no longer needed fails.
PENDING: dict[str, tuple[str, ...]] = {
    "model": (),
    "ended": (),
    "progress": (),
}


def every(*pending):
    """Run a test on every estimator; those that lack something are expected to fail."""

    def mark(name):
        lacks = [what for what in pending if name in PENDING[what]]
        reason = f"lacks: {', '.join(lacks)}"
        return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True) if lacks else ())

    return pytest.mark.parametrize("name", [mark(name) for name in ESTIMATORS])


def test_the_list_is_complete():
    assert {"BallPartitionClassifier", "Coclustering", "LinfClassifier", "MODLEncoder"} <= set(ESTIMATORS)
    assert len(ESTIMATORS) >= 10


@every("model")
def test_saved_and_loaded_it_answers_to_the_last_bit(name, tmp_path):
    fitted = fit(name)
    deploy.save(fitted, tmp_path / "model.json")
    loaded = deploy.load(tmp_path / "model.json")
    assert loaded == model_of(fitted)
    new = table(name, data(name, 1)[0])
    assert same(answers(loaded, new), answers(fitted, new))


@every()
def test_loaded_it_finds_columns_by_name(name, tmp_path):
    if name in OF_COUNTS:
        pytest.skip("a table of counts has no columns to find by name")
    fitted = fit(name)
    deploy.save(fitted, tmp_path / "model.json")
    loaded = deploy.load(tmp_path / "model.json")
    X = data(name, 1)[0]
    expected = answers(fitted, pd.DataFrame(X))
    shuffled = {"more": [object()] * N_ROWS, **{column: X[column] for column in reversed(X)}}
    for form in (dict, pd.DataFrame):
        assert same(answers(loaded, form(shuffled)), expected)
    assert same(answers(loaded, pl.DataFrame(dict(reversed(X.items())))), expected)
    empty = answers(loaded, pd.DataFrame(X).iloc[:0])
    assert [len(told) for told in empty] == [0] * len(expected)
    assert [told.shape[1:] for told in empty] == [told.shape[1:] for told in expected]
    with pytest.raises(ValueError, match=r"X lacks column.*'(size|age)'"):
        answers(loaded, pd.DataFrame({"noise": X["noise"]}))


@every()
def test_loaded_it_does_not_ask_for_columns_that_it_does_not_use(name, tmp_path):
    if name in OF_COUNTS:
        pytest.skip("a table of counts has no columns to find by name")
    X, y = data(name)
    constant = {"flat": np.ones(N_ROWS), **X}
    fitted = make(name).fit(pd.DataFrame(constant), y)
    deploy.save(fitted, tmp_path / "model.json")
    loaded = deploy.load(tmp_path / "model.json")
    expected = answers(fitted, pd.DataFrame(constant))
    if not name.startswith("DataGrid"):  # a grid knows the names of its own columns only
        assert same(answers(loaded, array(constant)), expected)
    if name == "BallPartitionClassifier":  # distances need every column
        with pytest.raises(ValueError, match="X lacks column 'flat'"):
            answers(loaded, pd.DataFrame(X))
        return
    for form in (dict, pd.DataFrame, pl.DataFrame):
        assert same(answers(loaded, form(X)), expected)
    nothing = answers(loaded, pd.DataFrame(X).iloc[:0])
    assert [len(told) for told in nothing] == [0] * len(expected)


@every()
def test_an_empty_frame_gives_an_empty_answer(name):
    fitted = fit(name)
    new = table(name, data(name, 1)[0])
    full, empty = answers(fitted, new), answers(fitted, new[:0])
    assert [told.shape for told in empty] == [(0, *told.shape[1:]) for told in full]
    assert [told.dtype for told in empty] == [told.dtype for told in full]


@every()
def test_booleans_may_be_given_as_text(name):
    if name in OF_COUNTS:
        pytest.skip("a table of counts holds no booleans")
    X, y = data(name)
    flags = {**X, "flag": (y > y[0] if y.dtype.kind == "f" else y == "yes") ^ (np.arange(N_ROWS) % 9 == 0)}
    try:
        fitted = make(name).fit(pd.DataFrame(flags), y)
    except ValueError as error:
        assert "distances need numbers" in str(error)  # noqa: PT017
        return
    loaded = loads(dumps(fitted))
    expected = answers(fitted, pd.DataFrame(flags))
    for spelled in (str, lambda flag: str(flag).lower(), lambda flag: str(flag).upper()):
        texts = {**flags, "flag": [spelled(flag) for flag in flags["flag"].tolist()]}
        assert same(answers(loaded, texts), expected)
        assert same(answers(fitted, pd.DataFrame(texts)), expected)
    worded = {**flags, "flag": [str(flag) for flag in flags["flag"].tolist()]}
    if name != "MODLDiscretizer":
        fitted = make(name).fit(pd.DataFrame(worded), y)
        assert same(answers(fitted, pd.DataFrame(flags)), answers(fitted, pd.DataFrame(worded)))


@every()
def test_frames_and_arrays_go_together(name):
    """Fitted on one, scored on the other."""
    if name in OF_COUNTS:
        pytest.skip("a frame is a table of pairs to a coclustering")
    X, y = data(name)
    frame = pd.DataFrame(X)
    by_frame, by_array = make(name).fit(frame, y), make(name).fit(array(X), y)
    with pytest.warns(UserWarning, match="feature names"):
        told = answers(by_frame, array(X))
    assert same(told, answers(by_frame, frame))
    with pytest.warns(UserWarning, match="feature names"):
        told = answers(by_array, frame)
    assert same(told, answers(by_array, array(X)))


@every()
@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, dict])
def test_the_library_of_the_frame_does_not_matter(name, library):
    if name in OF_COUNTS:
        pytest.skip("a frame is a table of pairs to a coclustering")
    X, y = data(name)
    assert model_of(make(name).fit(library(X), y)) == model_of(fit(name))


@every()
def test_clone_and_parameters(name):
    estimator = make(name, n_jobs=2)
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert set(estimator.get_params(deep=False)) == set(inspect.signature(type(estimator)).parameters)
    assert again.set_params(n_jobs=None).n_jobs is None
    assert clone(fit(name)).get_params() == make(name).get_params()


@every()
def test_constructors_take_keywords_only(name):
    kinds = {p.kind for p in inspect.signature(getattr(damier, name)).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@every()
def test_pickled_it_answers_the_same(name):
    fitted = fit(name)
    new = table(name, data(name, 1)[0])
    before = answers(fitted, new)
    assert same(answers(pickle.loads(pickle.dumps(fitted)), new), before)


@every()
def test_it_can_be_cross_validated(name):
    if not (is_classifier(make(name)) or is_regressor(make(name))):
        pytest.skip("predicts nothing")
    X, y = data(name)
    scores = cross_val_score(make(name), table(name, X), y, cv=3, error_score="raise")
    assert scores.mean() > (0.75 if is_classifier(make(name)) else 0.4)


@every("model")
def test_threads_do_not_change_the_model(name):
    assert model_of(fit(name, n_jobs=1)) == model_of(fit(name, n_jobs=2))


@every()
def test_row_order_does_not_change_the_answers(name):
    X, y = data(name)
    order = np.random.default_rng(3).permutation(N_ROWS)
    shuffled = {column: values[order] for column, values in X.items()}
    first, second = fit(name), make(name).fit(table(name, shuffled), y[order])
    new = table(name, data(name, 1)[0])
    told = answers(first, new), answers(second, new)
    if name == "Coclustering":  # clusters are numbered from either end of a chain
        told = tuple([renumbered(one) for one in answer] for answer in told)
    assert same(*told)


@every("ended")
def test_the_end_of_the_search_is_stated(name):
    assert fit(name).search_ended_ == "complete"


@every()
@pytest.mark.filterwarnings("ignore:interrupted")
def test_the_interrupt_key_is_heard(name):
    """Ctrl-C during fit ends with a model or a KeyboardInterrupt, soon."""
    X, y = data(name)
    estimator = make(name)
    estimator.fit(table(name, X), y)  # compiled, so that the interrupt meets the search
    for delay in (0.0, 0.003, 0.02):
        timer = threading.Timer(delay, _thread.interrupt_main)
        try:
            timer.start()
            estimator.fit(table(name, X), y)
            timer.join()
            time.sleep(0.01)  # an interrupt that comes too late arrives here
        except KeyboardInterrupt:
            continue
        finally:
            timer.cancel()
        if name not in PENDING["ended"]:
            assert estimator.search_ended_ in ("complete", "interrupted")
        assert len(answers(estimator, table(name, X))[0]) == N_ROWS


@every("progress")
def test_progress_is_reported_in_one_form(name):
    states = []
    X, y = data(name)
    make(name).fit(table(name, X), y, progress=states.append)
    for state in states:
        assert state.seconds >= 0.0
        assert isinstance(state.text, str)


@every()
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_come_out_in_the_library_passed_in(name, library):
    X, y = data(name)
    make_frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    if name in OF_COUNTS:
        pytest.skip("tested with pairs")
    fitted = make(name).fit(make_frame(X), y)
    partitions = getattr(fitted, "partitions_", {})
    makers = [getattr(one, "to_frame", None) for one in (fitted.model_, *partitions.values())]
    for to_frame in filter(None, makers):
        assert type(to_frame()).__module__.startswith(library)
        assert to_frame(backend="dict").keys()


LIMITED = [name for name in ESTIMATORS if "time_limit" in make(name).get_params()]


@pytest.mark.parametrize("name", LIMITED)
def test_once_stopped_a_search_does_hardly_anything_more(name, monkeypatch):
    # Work is counted in looks at the flag, not by the clock: a search that goes on looks again and again.
    # Leaving nested loops takes a few looks, with no work between them.
    looks = []
    stop_at = [0]

    def looked(run):
        looks.append(bool(run.stop[0]))
        if len(looks) == stop_at[0]:
            run._end("time limit")

    def stopped(run):
        looked(run)
        return bool(run.stop[0])

    def check(run):
        looked(run)
        if run.stop[0]:
            raise Stopped

    monkeypatch.setattr(Run, "stopped", property(stopped))
    monkeypatch.setattr(Run, "check", check)
    monkeypatch.setattr(Run, "_wait", lambda run, thread: thread.join())  # its looks are no work
    assert fit(name).search_ended_ == "complete"
    in_all = len(looks)
    for stop_at[0] in (in_all // 4 + 1, in_all // 2 + 1):
        looks.clear()
        fitted = fit(name)
        assert fitted.search_ended_ == "time limit"
        assert looks.count(True) <= max(2, in_all // 10)
