"""Saved models of every kind, spoilt at random: each is refused in our words, or scores as a model does."""

import copy
import json
import random
import warnings

import numpy as np
import pytest

from damier import DataGridRegressor, NaiveBayesRegressor
from damier.deploy.json import dumps, loads
from damier.models import (
    BallPartition,
    BoundPosterior,
    CoclusterAxis,
    CoclusteringModel,
    Cover,
    DataGrid,
    Encoding,
    GridCells,
    GridEnsemble,
    GroupPartition,
    IntervalPartition,
    LabeledCoclustering,
    LinfModel,
    Merges,
    Model,
    NaiveBayes,
    UnsupervisedGrid,
    VariableEvidence,
)
from damier.models.codec import find_kinds
from damier.models.linf.columns import UNIT, CodedColumn, ScaledColumn
from damier.models.naive_bayes_regression import NaiveBayesRegression
from damier.models.regression_grid import RegressionGrid
from damier.models.regressor import RegressorModel

N_MUTATIONS = 500
CLASSES = ("no", "yes", "maybe")
COUNTS = [[9, 1, 0], [2, 8, 3]]
ROWS = {
    "age": [20.0, None, 1e300, 31.0],
    "colour": ["red", "new", None, "blue"],
    "size": [0.1, 0.9, 0.5, 7.0],
}


def age(counts=COUNTS, classes=CLASSES, **more):
    costs = {"cost": 10.0, "null_cost": 15.0, "optimal": True}
    return IntervalPartition(name="age", classes=classes, counts=counts, bounds=(30.5,), **costs, **more)


def colour(counts=COUNTS, classes=CLASSES):
    groups = (("red", None), ("blue",))
    costs = {"cost": 10.0, "null_cost": 15.0, "optimal": False}
    return GroupPartition(name="colour", classes=classes, counts=counts, groups=groups, **costs)


def grid():
    return DataGrid(
        partitions={"age": age(), "colour": colour()},
        cells=GridCells([[0, 0], [0, 1], [1, 1]], [[5, 0, 1], [4, 1, 0], [2, 8, 3]]),
        classes=CLASSES,
        n_variables=3,
        cost=9.0,
        null_cost=15.0,
    )


def linf():
    cover = {"n_bins": 4, "limits": (0, UNIT, -UNIT, UNIT), "counts": [[1, 7, 0]], "shares": {}}
    first = Cover(
        member=0,
        label="yes",
        class_index=1,
        x=(("age", 1), ("size", -2)),
        y=(("colour", 1),),
        rectangles=[[0, 2, 1, 3]],
        **{**cover, "shares": {"colour": (0, UNIT, 5)}},
    )
    second = Cover(
        member=1,
        label="no",
        class_index=0,
        x=(("age", 1),),
        y=(("size", 1),),
        rectangles=[[0, 0, 0, 0]],
        **cover,
    )
    return LinfModel(
        columns=(
            ScaledColumn("age", True, 0.0, 9.0, 5.0),
            CodedColumn("colour", ("blue", "red")),
            ScaledColumn("size", False, 0.0, 1.0, 0.5),
        ),
        classes=CLASSES,
        class_counts=(11, 9, 3),
        members=((first,), (second,)),
        open_edges=True,
        shared_votes=True,
        outside_vote=0.25,
    )


def coclustering():
    return CoclusteringModel(
        rows=CoclusterAxis(
            name="texts",
            values=("a", "b", 3, "d"),
            labels=[0, 1, 1, -1],
            totals=[5, 4, 3, 0],
            typicality=[1.5, 0.5, float("inf"), 0.0],
        ),
        columns=CoclusterAxis(
            name="words", values=None, labels=[0, 0, 1], totals=[4, 2, 6], typicality=[1.0, 2.0, 3.0]
        ),
        cells=[[4, 1], [2, 5]],
        cost=20.0,
        null_cost=25.0,
        best_cost=20.0,
        merges=Merges(axes=[1, 0], kept=[0, 1], gone=[1, 0], costs=[22.0, 25.0]),
    )


def models():
    grids = (grid(), grid())
    one_class = {"classes": ("rows",)}
    yield age(class_groups=(("no", "maybe"), ("yes",)))
    yield colour()
    yield Encoding((age(), colour()), "evidence")
    variables = (VariableEvidence((age(), age(COUNTS[::-1])), 0.5), VariableEvidence((colour(),)))
    yield NaiveBayes(CLASSES, [11, 9, 3], variables)
    yield grid()
    yield GridEnsemble(grids, [0.25, 0.75])
    yield linf()
    yield ScaledColumn("age", True, 0.0, 9.0, 5.0)
    yield CodedColumn("colour", (None, "red"))
    yield coclustering()
    yield LabeledCoclustering(
        coclustering=coclustering(),
        classes=CLASSES,
        label_counts=[[1, 0, 2], [0, 0, 0]],
        probabilities=[[0.25, 0.25, 0.5], [0.5, 0.5, 0.0]],
        unknown=[0.25, 0.5, 0.25],
    )
    yield UnsupervisedGrid(
        partitions=(age([[3], [4]], **one_class), colour([[2], [5]], **one_class)),
        coordinates=[[0, 0], [0, 1], [1, 1]],
        counts=[2, 1, 4],
        cost=9.0,
        null_cost=15.0,
    )
    yield BallPartition(
        names=("age", "size"),
        classes=CLASSES,
        points=[[0.0, 1.0], [2.0, 1.0], [5.0, 5.0], [6.0, 5.0]],
        rows=[2, 0, 1, 3],
        point_groups=[0, 0, 1, 1],
        counts=[[2, 0, 0], [0, 1, 1]],
        centres=[0, -1],
        radii=[1, -1],
        cost=3.0,
        null_cost=4.0,
        n_neighbors=2,
        point_shares=[[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]],
    )
    yield BoundPosterior([1.0, 2.0, 3.0], [0.25, 0.5, 0.25], 0.9)
    yield from of_numbers()


def of_numbers():
    """Small models of a numeric target."""
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(0, 80, 120), "colour": rng.choice(["red", "blue"], 120)}
    y = columns["age"] + 30 * (columns["colour"] == "red") + rng.normal(size=120)
    yield NaiveBayesRegressor().fit(columns, y).model_
    yield DataGridRegressor().fit(columns, y).model_


MODELS = {model.model: model for model in models()}

STRANGE = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        -3,
        2,
        7,
        10**6,
        2**53,
        2**63,
        -(2**70),
        10**400,
        0.0,
        0.5,
        -0.5,
        1e308,
        -1e-9,
    ),
    *(
        "",
        "x",
        "red",
        "no",
        "age",
        "euclidean",
        "cosine",
        "mahalanobis",
        "nan",
        "inf",
        "model",
        "x0",
        "\ud83d",
    ),
    *([], [[]], [[[]]], {}, [1, 2], [[1], [2, 3]], ["a"], [None], {"float": "inf"}, {"float": "nan"}),
    *(
        {"float": "x"},
        {"float": {}},
        {"shape": [0, 2]},
        {"shape": [2, 0]},
        {"shape": [5]},
        {"shape": [[], 0]},
    ),
    {"model": "groups"},
]


def places(plain, path=()):
    """Every place in a JSON document."""
    yield path
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from places(value, (*path, key))
    elif isinstance(plain, list):
        for i, value in enumerate(plain):
            yield from places(value, (*path, i))


def spoil(plain, chance):
    """Change, remove, repeat, or swap something somewhere."""
    plain = copy.deepcopy(plain)
    for _ in range(chance.choice([1, 1, 1, 2])):
        all_places = [path for path in places(plain) if path]
        if not all_places:
            return plain
        *way, last = chance.choice(all_places)
        holder = plain
        for step in way:
            holder = holder[step]
        action = chance.choice(["strange", "strange", "nudge", "remove", "repeat", "swap", "rename"])
        value = holder[last]
        if action == "strange":
            holder[last] = copy.deepcopy(chance.choice(STRANGE))
        elif action == "nudge":
            numeric = isinstance(value, int | float) and abs(value) < 1e300
            holder[last] = value + chance.choice([-1, 1, 0.25, -0.25, 100, -1000]) if numeric else [value]
        elif action == "remove":
            del holder[last]
        elif action == "repeat" and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(value))
        elif action == "swap" and isinstance(holder, list):
            holder.reverse()
        elif action == "rename" and isinstance(holder, dict):
            holder[last + "_"] = holder.pop(last)
    return plain


def check_scores(model):
    """What was loaded behaves as a model: probabilities, parts, cells and clusters within bounds."""
    n = len(ROWS["age"])
    rows = dict(ROWS)
    if isinstance(model, BallPartition):
        rows["age"] = [20.0, 1.0, 2.0, 31.0]
    if isinstance(model, LabeledCoclustering):
        rows = np.ones((n, len(model.coclustering.columns.labels)), dtype=int)
    elif not isinstance(model, CoclusteringModel | BoundPosterior):
        names = names_of(model)
        if not names <= set(rows):
            with pytest.raises(ValueError, match="X lacks column"):
                score(model, rows)
        rows = {name: rows.get(name, [1.0] * n) for name in names}
    try:
        told = score(model, rows)
    except ValueError as error:  # a variable that became of another kind, or that now lacks values
        assert str(error).startswith(("column ", "a distance of")), error  # noqa: PT017
        return
    if hasattr(model, "classes") and hasattr(model, "predict_proba"):
        assert told.shape == (n, len(model.classes))
        assert (told >= 0).all()
        np.testing.assert_allclose(told.sum(axis=1), 1.0, atol=1e-5)
        assert len(model.predict(rows)) == n
    else:
        assert np.isfinite(told).all()


def names_of(model):
    if hasattr(model, "columns") and not isinstance(model, CoclusteringModel):
        return {column.name for column in model.columns}
    if isinstance(model, GridEnsemble):
        return {name for one in model.grids for name in one.variables}
    if isinstance(model, DataGrid | UnsupervisedGrid):
        return set(model.variables)
    if isinstance(model, NaiveBayes | NaiveBayesRegression):
        return {variable.name for variable in model.variables}
    if isinstance(model, RegressionGrid):
        return set(model.variables)
    if isinstance(model, BallPartition):
        return set(model.names)
    return {partition.name for partition in model.partitions} if isinstance(model, Encoding) else set()


def score(model, rows):
    if isinstance(model, RegressorModel):
        low, high = model.predict_interval(rows, 0.5).T
        assert (low <= high).all()
        return model.predict(rows)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    if hasattr(model, "transform"):
        return model.transform(rows)
    if isinstance(model, UnsupervisedGrid):
        return model.predict(rows)
    if isinstance(model, CoclusteringModel):
        model.simplify(min_information=0.5)
        return model.predict(np.ones((2, len(model.columns.labels)), dtype=int))
    if isinstance(model, BoundPosterior):
        return np.array(model.interval())
    assert isinstance(model, IntervalPartition | GroupPartition | ScaledColumn | CodedColumn)
    if isinstance(model, ScaledColumn | CodedColumn):
        return np.zeros(1)
    return model.evidence()


def test_every_kind_is_here():
    assert set(MODELS) == set(find_kinds())


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_what_is_saved_comes_back_to_the_last_bit(kind):
    model = MODELS[kind]
    again = loads(dumps(model))
    assert again == model
    assert dumps(again) == dumps(model)
    assert hash(again) == hash(model)
    check_scores(again)


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_spoilt_models_are_refused_in_our_words_or_score(kind):
    plain = json.loads(dumps(MODELS[kind]))
    chance = random.Random(f"{kind} 0")
    refused = 0
    for _ in range(N_MUTATIONS):
        spoilt = spoil(plain, chance)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                model = loads(json.dumps(spoilt))
            except ValueError as error:
                assert str(error).startswith(("not a saved model", "saved by a later version")), error  # noqa: PT017
                refused += 1
                continue
            assert isinstance(model, Model)
            check_scores(model)
    assert refused > N_MUTATIONS // 5


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("encoding", ["partitions", 1, "counts", 0, 0, -3], r"partitions\[1\].counts: negative count -3"),
        ("intervals", ["counts", 0, 0, 0.5], "counts: whole numbers are expected"),
        ("intervals", ["counts", [[1, 2]]], r"counts: shape \(1, 2\) where \(2, 3\) is expected"),
        ("intervals", ["counts", [[1, 2], [3]]], "counts: lists of whole numbers of one length are expected"),
        ("intervals", ["bounds", [2.0, 1.0]], "bounds: the bounds of 'age' must be ascending"),
        ("intervals", ["cost", {"float": "inf"}], "cost: a finite number is expected, got inf"),
        ("intervals", ["optimal", 1], "optimal: true or false is expected, got 1"),
        ("groups", ["groups", 1, 0, "red"], "groups: 'red' appears twice"),
        ("grid_ensemble", ["weights", [0.5, 0.25]], "weights: shares that add up to 0.75 instead of 1"),
        ("grid_ensemble", ["weights", [1.5, -0.5]], "weights: 1.5 is not between 0 and 1"),
        (
            "naive_bayes",
            ["variables", 0, "weight", -2.0],
            r"variables\[0\].weight: -2.0 is negative or not a number",
        ),
        (
            "naive_bayes",
            ["variables", 0, "weight", 1e300],
            r"variables\[0\].weight: 1e\+300 is larger than 1e\+100",
        ),
        ("naive_bayes", ["class_counts", 0, 0], "class_counts: a class holds rows"),
        ("balls", ["metric", "miles"], "metric: unknown distance 'miles'"),
        ("balls", ["points", 0, 0, None], "points: a number is expected, got null"),
        ("linf", ["members", 0, 0, "n_bins", 10**6], r"members\[0\]\[0\].n_bins: 1000000 is not from 1"),
        ("coclustering", ["rows", "totals", 0, 6], "rows.totals: they do not add up to the cells"),
        ("coclustering", ["merges", "gone", 0, 5], "merges: step 0 merges a cluster that is not there"),
        ("encoding", ["damier", True], "does not say 'damier'"),
        ("encoding", ["damier", 0], "there is no format 0"),
        ("encoding", ["partitions", 0, "extra", 1], r"partitions\[0\]: unknown field 'extra'"),
    ],
)
def test_messages_name_the_field(kind, change, message):
    plain = json.loads(dumps(MODELS[kind]))
    *way, last, value = change
    holder = plain
    for step in way:
        holder = holder[step]
    holder[last] = value
    with pytest.raises(ValueError, match=message):
        loads(json.dumps(plain))


def test_values_of_different_types_stay_apart():
    text = dumps(GroupPartition(
        name="mixed", classes=(True, "1", 1.5), counts=[[1, 2, 3]], cost=1.0, null_cost=1.0, optimal=False,
        groups=((1, "1", None, float("inf"), 2.5),),
    ))  # fmt: skip
    again = loads(text)
    assert [type(c) for c in again.classes] == [bool, str, float]
    assert again.groups == ((1, "1", None, float("inf"), 2.5),)
    assert again != loads(text.replace('"classes": [true,', '"classes": [1,'))


def test_empty_arrays_keep_their_width():
    empty = GridCells(np.zeros((0, 3), np.int64), np.zeros((0, 2), np.int64))
    assert GridCells.from_dict(empty.to_dict()) == empty
