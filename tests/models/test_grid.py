import json
from dataclasses import replace

import numpy as np
import pytest

from damier.criteria import grid_cost
from damier.deploy.json import dumps, loads
from damier.models import DataGrid, GridCells, GridEnsemble, GroupPartition, IntervalPartition

CLASSES = ("no", "yes")


def interval(name, bounds, counts, **more):
    return IntervalPartition(
        name=name,
        classes=CLASSES,
        counts=counts,
        cost=1.0,
        null_cost=2.0,
        optimal=False,
        bounds=bounds,
        **more,
    )


def small_grid():
    age = interval("age", (30.0, 50.0), [[5, 0], [3, 4], [0, 8]])
    job = GroupPartition(
        name="job",
        classes=CLASSES,
        counts=[[6, 2], [2, 10]],
        cost=1.0,
        null_cost=2.0,
        optimal=False,
        groups=(("low", None), ("high",)),
    )
    cells = GridCells([[0, 0], [1, 0], [1, 1], [2, 1]], [[5, 0], [1, 2], [2, 2], [0, 8]])
    cost = grid_cost(cells.counts, 4, [3], [(3, 2)])
    return DataGrid(
        partitions={"age": age, "job": job},
        cells=cells,
        classes=CLASSES,
        n_variables=4,
        cost=cost,
        null_cost=grid_cost([[8, 12]], 4),
    )


def test_prediction_by_cell():
    grid = small_grid()
    rows = {
        "age": [20, 40, 40, 60, 20, 60, np.nan],
        "job": ["low", "low", "high", "high", "high", "other", None],
    }
    cells = grid.find_cells(rows)
    assert cells.tolist() == [0, 1, 2, 3, -1, -1, 0]
    proba = grid.predict_proba(rows)
    assert proba[0] == pytest.approx([1, 0])
    assert proba[1] == pytest.approx([1 / 3, 2 / 3])
    # an empty cell gets the shares of the whole grid, an unseen category those of the cells it may be in
    assert proba[4] == pytest.approx([0.4, 0.6])
    assert proba[5] == pytest.approx([0, 1])
    both = grid.predict_proba({"age": [40, 40], "job": ["other", "low"]})
    assert both[0] == pytest.approx([3 / 7, 4 / 7])


def test_prior_rows_draw_small_cells_to_the_whole():
    grid = replace(small_grid(), prior_rows=2.0)
    rows = {"age": [20, 60, 20, 40], "job": ["low", "high", "high", "other"]}
    expected = [
        [(5 + 0.8) / 7, 1.2 / 7],
        [0.8 / 10, (8 + 1.2) / 10],
        [0.4, 0.6],  # an empty cell
        [(3 + 0.8) / 9, (4 + 1.2) / 9],  # both cells of its age
    ]
    np.testing.assert_allclose(grid.predict_proba(rows), expected, rtol=1e-12)
    for i, row in enumerate(expected):
        one = {name: column[i] for name, column in rows.items()}
        np.testing.assert_allclose(grid.predict_proba(one), [row], rtol=1e-12)
    assert grid.rules() == small_grid().rules()
    assert loads(dumps(grid)) == grid != small_grid()
    plain = grid.to_dict()
    del plain["prior_rows"]  # as files of earlier versions
    assert DataGrid.from_dict(plain) == small_grid()
    with pytest.raises(ValueError, match="prior_rows"):
        replace(grid, prior_rows=-1.0)


def test_rules_by_support():
    grid = small_grid()
    assert grid.rules() == [
        "IF age > 50 AND job in {high} THEN yes 100.0% (8 rows)",
        "IF age <= 30 AND job in {low, missing} THEN no 100.0% (5 rows)",
        "IF 30 < age <= 50 AND job in {high} THEN no 50.0%, yes 50.0% (4 rows)",
        "IF 30 < age <= 50 AND job in {low, missing} THEN yes 66.7%, no 33.3% (3 rows)",
    ]
    frame = grid.rules("frame", backend="dict")
    assert list(frame) == ["age", "job", "support", "share no", "share yes"]
    assert frame["support"] == [8, 5, 4, 3]
    assert frame["share yes"][3] == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="output"):
        grid.rules("page")


def test_missing_in_rules():
    alone = interval("age", (30.0,), [[1, 0], [2, 1], [0, 2]], missing_alone=True, has_missing=True)
    grid = DataGrid(
        partitions={"age": alone},
        cells=GridCells([[2], [1], [0]], [[0, 2], [2, 1], [1, 0]]),
        classes=CLASSES,
        n_variables=1,
        cost=1.0,
        null_cost=2.0,
    )
    assert [rule.split(" THEN")[0] for rule in grid.rules()] == [
        "IF age <= 30",
        "IF age > 30",
        "IF age is missing",
    ]
    assert grid.cells.parts.ravel().tolist() == [0, 1, 2]  # put in order
    joined = interval("age", (30.0,), [[1, 0], [2, 1]], has_missing=True)
    joint = DataGrid(
        partitions={"age": joined},
        cells=GridCells([[0], [1]], [[1, 0], [2, 1]]),
        classes=CLASSES,
        n_variables=1,
        cost=1.0,
        null_cost=2.0,
    )
    assert joint.rules()[1] == "IF age <= 30 or is missing THEN no 100.0% (1 row)"


def test_null_grid():
    grid = DataGrid(
        partitions={},
        cells=GridCells(np.zeros((1, 0)), [[3, 1]]),
        classes=CLASSES,
        n_variables=2,
        cost=4.0,
        null_cost=4.0,
    )
    assert grid.level == 0
    assert grid.n_cells == 1
    assert grid.rules() == ["ALWAYS no 75.0%, yes 25.0% (4 rows)"]
    assert grid.predict_proba({"any": [1.0, 2.0]}) == pytest.approx(np.array([[0.75, 0.25]] * 2))
    assert DataGrid.from_dict(grid.to_dict()) == grid


def test_dict_and_json_round_trip():
    grid = small_grid()
    plain = json.loads(json.dumps(grid.to_dict()))
    assert DataGrid.from_dict(plain) == grid
    assert loads(dumps(grid)) == grid
    ensemble = GridEnsemble((grid, grid), np.array([0.25, 0.75]))
    assert loads(dumps(ensemble)) == ensemble
    rows = {"age": [20.0, 99.0], "job": ["low", "high"]}
    assert loads(dumps(ensemble)).predict_proba(rows).tolist() == ensemble.predict_proba(rows).tolist()


def test_ensemble_is_the_weighted_mean():
    grid = small_grid()
    null = DataGrid(
        partitions={},
        cells=GridCells(np.zeros((1, 0)), [[8, 12]]),
        classes=CLASSES,
        n_variables=4,
        cost=4.0,
        null_cost=4.0,
    )
    rows = {"age": [20.0], "job": ["low"]}
    mean = GridEnsemble((grid, null), np.array([0.5, 0.5])).predict_proba(rows)
    assert mean == pytest.approx(np.array([[0.7, 0.3]]))


@pytest.mark.parametrize(
    ("parts", "counts", "message"),
    [
        ([[0]], [[1, 2]], "shape"),
        ([[0, 0]], [[1, 2, 3]], "shape"),
        ([[3, 0]], [[1, 2]], "no part of 'age' 3"),
        ([[0, 0]], [[0, 0]], "holds rows"),
    ],
)
def test_wrong_cells_are_refused(parts, counts, message):
    grid = small_grid()
    with pytest.raises(ValueError, match=message):
        DataGrid(
            partitions=grid.partitions,
            cells=GridCells(parts, counts),
            classes=CLASSES,
            n_variables=4,
            cost=1.0,
            null_cost=1.0,
        )


def test_any_number_of_variables_fits():
    names = [f"v{k}" for k in range(80)]
    rng = np.random.default_rng(0)
    parts = np.unique(rng.integers(2, size=(30, 80)), axis=0)
    grid = DataGrid(
        partitions={name: interval(name, (0.5,), [[1, 1], [1, 1]]) for name in names},
        cells=GridCells(parts, np.ones((len(parts), 2), dtype=int)),
        classes=CLASSES,
        n_variables=80,
        cost=1.0,
        null_cost=2.0,
    )
    rows = dict(zip(names, parts.T.astype(float), strict=True))
    assert grid.find_cells(rows).tolist() == list(range(len(parts)))
    flipped = {**rows, "v79": 1.0 - rows["v79"]}
    assert (grid.find_cells(flipped) == -1).all()


def test_rules_are_written_from_the_bounds():
    """Labels that hold the characters intervals are written with do not disturb the rules."""
    close = interval("age", (1.00000000001, 1.00000000002), [[1, 0], [2, 1], [0, 2]])
    day = interval("day", (86_400e6 * 1.5,), [[3, 1], [0, 2]], kind="date")
    grid = DataGrid(
        partitions={"age": close, "day": day},
        cells=GridCells([[0, 0], [1, 0], [2, 1]], [[1, 0], [2, 1], [0, 2]]),
        classes=CLASSES,
        n_variables=2,
        cost=1.0,
        null_cost=2.0,
    )
    assert {rule.split(" THEN")[0] for rule in grid.rules()} == {
        "IF age <= 1.00000000001 AND day <= 1970-01-02",
        "IF 1.00000000001 < age <= 1.00000000002 AND day <= 1970-01-02",
        "IF age > 1.00000000002 AND day > 1970-01-02",
    }
