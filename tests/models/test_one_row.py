"""One row given as a dict: the same bits as in a table, and nothing but NumPy to load and score it."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import damier
from damier.deploy import save
from damier.deploy.json import dumps, loads
from damier.models import GroupPartition, IntervalPartition
from damier.models.partition import Partition

BIG = 2**60 + 1
VALUES = [
    *(0, 1, -3, 2.5, 30.5, 1e300, -np.inf, np.inf, np.nan, None, True, False, BIG, -BIG, 10**400),
    *(np.float64(2.5), np.float32(2.5), np.int64(7), np.bool_(True), np.float64("nan")),
    *("red", "blue", "", "true", "TRUE", "small", "huge", "nan", "1", np.str_("red")),
    *(datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 12), datetime.time(3), datetime.timedelta(1)),
    datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    *(np.datetime64("2024-05-01"), pd.Timestamp("2024-05-01"), pd.NaT, pd.NA, decimal.Decimal("2.5")),
]
MOMENT = 1714500000000000.0
COMMON = {"classes": ("no", "yes"), "cost": 1.0, "null_cost": 2.0, "optimal": False, "name": "x"}


def intervals(*bounds, **fields):
    parts = len(bounds) + 1 + fields.get("missing_alone", False)
    return IntervalPartition(bounds=bounds, counts=np.ones((parts, 2), int), **COMMON, **fields)


def groups(*held):
    return GroupPartition(groups=held, counts=np.ones((len(held), 2), int), **COMMON)


PARTITIONS = {
    "numbers": intervals(0.5, 30.5),
    "missing alone": intervals(-np.inf, 0.5, 30.5, float(2**60), missing_alone=True),
    "one interval": intervals(),
    "dates": intervals(MOMENT, kind="date"),
    "datetimes": intervals(MOMENT - 1.0, MOMENT, kind="datetime", missing_alone=True),
    "times": intervals(3600e6, kind="time"),
    "durations": intervals(3600e6, kind="duration"),
    "ranks": intervals(0.5, kind="rank", legend=("small", "medium", "red")),
    "numbered ranks": intervals(0.5, kind="rank", legend=(1, 2, 7)),
    "text": groups(("red", None), ("blue", "true"), ("1",)),
    "one text": groups(("red",)),
    "booleans": groups((True,), (False, None)),
    "numbers as names": groups((1, 2.5), (7, BIG), (None, 0)),
    "mixed": groups((1, "1"), ("red",)),
}


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_part_of_a_value_is_that_of_a_column_of_one(name, value):
    partition = PARTITIONS[name]
    column = outcome(lambda: int(partition.apply([value])[0]))
    assert outcome(partition.part_of, value) == column
    assert type(outcome(partition.part_of, value)) is type(column)


def training(seed=0, n=400):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    size = np.where(rng.random(n) < 0.1, np.nan, rng.normal(1.5 * y, 1.0))
    colours = np.where(rng.random(n) < 0.6, np.array(["red", "blue", "green"])[y], "grey").astype(object)
    colours[rng.random(n) < 0.05] = None
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 50, n) + 30 * (y == 1), unit="D")
    grades = pd.Categorical.from_codes(np.minimum(y + rng.integers(0, 2, n), 2), ["low", "mid", "high"], True)
    frame = pd.DataFrame(
        {
            "size": size,
            "age": rng.integers(20, 60, n) + 9 * y,
            "colour": colours,
            "day": days,
            "grade": grades,
            "member": rng.random(n) < 0.3 + 0.2 * y,
            "noise": rng.normal(size=n),
            "constant": 1.0,
        }
    )
    return frame, np.array(["no", "perhaps", "yes"])[y]


ODD = [
    {},
    {"size": None},
    {"size": 10**20, "age": 2.5},
    {"size": float("-inf"), "age": float("inf")},
    {"colour": "never seen"},
    {"colour": None, "member": None},
    {"member": "true", "grade": None},
    {"grade": "low", "day": datetime.date(2024, 2, 3)},
    {"day": datetime.datetime(2024, 2, 3, 4, 5)},
    {"day": None, "age": np.int64(30), "size": np.float64(1.0)},
    {"size": True},
]
COLUMNS = {"BallPartitionClassifier": ["age", "noise"], "MODLDiscretizer": ["size", "age", "day", "noise"]}
FITTED = {
    "NaiveBayesClassifier": {},
    "NaiveBayesClassifier averaged": {"averaging": "compression", "n_optima": 3},
    "DataGridClassifier": {"effort": 1},
    "DataGridEnsembleClassifier": {"effort": 1, "n_grids": 7},
    "LinfClassifier": {"n_estimators": 4},
    "LinfClassifier paper": {"setting": "paper", "n_estimators": 3},
    "MODLEncoder": {"encode": "evidence"},
    "MODLDiscretizer": {},
    "MODLGrouper": {"encode": "onehot"},
    "DataGridClustering": {"effort": 1},
    "BallPartitionClassifier": {},
    "NaiveBayesClassifier pairs": {"pairs": "auto"},
    "NaiveBayesRegressor": {},
    "DataGridRegressor": {"effort": 1},
}


def numbers(X, y):
    """Return a number that several columns inform."""
    return X["size"].fillna(0.0).to_numpy() + 2.0 * np.unique(y, return_inverse=True)[1]


@pytest.fixture(scope="module")
def models():
    made = {}
    X, y = training()
    for case, parameters in FITTED.items():
        name = case.partition(" ")[0]
        estimator = getattr(damier, name)()
        known = {key: value for key, value in parameters.items() if key in estimator.get_params()}
        names = COLUMNS.get(name, list(X.columns))
        target = numbers(X, y) if "Regressor" in name else y
        fitted = estimator.set_params(**known).fit(X[names], target)
        made[case] = loads(dumps(fitted)), names
    return made


@pytest.mark.parametrize("case", FITTED)
def test_a_row_scores_as_a_table_of_one_row_to_the_last_bit(models, case):
    model, names = models[case]
    X, _ = training(1, 60)
    rows = [{name: value for name, value in row.items() if name in names} for row in X.to_dict("records")]
    rows += [
        {**rows[k], **{key: value for key, value in odd.items() if key in names}} for k, odd in enumerate(ODD)
    ]
    asked = [
        w
        for w in ("predict_proba", "predict_log_proba", "predict", "predict_interval", "transform", "apply")
        if hasattr(model, w)
    ]
    assert asked
    for what in asked:
        answer = getattr(model, what)
        for row in rows:
            expected = outcome(answer, {name: [value] for name, value in row.items()})
            for given in (row, [row], {**row, "other": [1, 2]}):
                found = outcome(answer, given)
                if isinstance(expected, tuple):
                    assert found == expected  # an error
                    continue
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("case", FITTED)
def test_many_rows_score_as_one_by_one(models, case):
    model, names = models[case]
    X, _ = training(2, 50)
    rows = [{name: value for name, value in row.items() if name in names} for row in X.to_dict("records")]
    what = next(w for w in ("predict_proba", "predict", "transform") if hasattr(model, w))
    together = getattr(model, what)(X[names])
    alone = np.concatenate([getattr(model, what)(row) for row in rows])
    assert np.array_equal(together, alone)


def test_a_row_that_lacks_a_column_is_refused_as_a_table_is(models):
    model, _ = models["NaiveBayesClassifier"]
    with pytest.raises(ValueError, match="lacks column"):
        model.predict_proba({"size": 1.0})


def test_the_scores_of_a_row_are_the_callers(models):
    model, _ = models["DataGridClassifier"]
    X, _ = training(3, 1)
    row = X.to_dict("records")[0]
    first = model.predict_proba(row)
    kept = first.copy()
    first[:] = 7.0
    assert np.array_equal(model.predict_proba(row), kept)


def test_estimators_take_a_row_too():
    X, y = training()
    fitted = damier.NaiveBayesClassifier().fit(X, y)
    row = X.to_dict("records")[0]
    assert np.array_equal(fitted.predict_proba(row), fitted.model_.predict_proba(row))


@pytest.mark.parametrize(
    ("case", "asked", "shape"),
    [
        ("NaiveBayesClassifier", "predict_proba", (1, 3)),
        ("DataGridEnsembleClassifier", "predict_proba", (1, 3)),
        ("LinfClassifier", "predict_proba", (1, 3)),
        ("NaiveBayesRegressor", "predict_interval", (1, 2)),
        ("DataGridRegressor", "predict_interval", (1, 2)),
    ],
)
def test_loading_and_scoring_a_row_imports_numpy_alone(models, case, asked, shape, tmp_path):
    model, _ = models[case]
    save(model, tmp_path / "model.json")
    program = (
        "import sys; from damier.deploy import load; "
        f"model = load({str(tmp_path / 'model.json')!r}); "
        "row = dict(size=1.0, age=30, colour='red', day=None, grade='low', member=None, noise=0.1); "
        f"assert model.{asked}(row).shape == {shape}; "
        "print({'scipy', 'narwhals', 'duckdb', 'sklearn', 'numba', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_kind_of_partition_is_tested():
    kinds = {partition.kind for partition in PARTITIONS.values() if isinstance(partition, IntervalPartition)}
    assert kinds == {"number", "date", "datetime", "time", "duration", "rank"}
    assert {type(partition) for partition in PARTITIONS.values()} == set(Partition.__subclasses__())
