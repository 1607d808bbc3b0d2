"""The grids of pairs are those that the levels are of; the matrix and the tables show their numbers."""

import json

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from damier.criteria import part_costs
from damier.fit.grids import find_pairs, fit_pairs
from damier.intake import read_table, read_target
from damier.report import analyze, pairs
from damier.report.classes import shown_classes
from damier.search.run import Run


def columns(n_rows=600, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = {
        "a": rng.random(n_rows).round(3),
        "b": rng.random(n_rows),
        "c": rng.choice(["red", "green", "blue", None], n_rows),
        "noise": rng.integers(0, 5, n_rows).astype(float),
    }
    X["a"][::17] = np.nan
    y = (2 * (np.nan_to_num(X["a"]) > 0.5) + (X["b"] > 0.4) + (X["c"] == "red")) % n_classes
    y = np.where(rng.random(n_rows) < 0.2, rng.integers(n_classes, size=n_rows), y)
    return X, y


def explored(n_rows=600, n_classes=3, **options):
    X, y = columns(n_rows, n_classes)
    return X, y, analyze(read_table(X), read_target(y), target_name="what", **options)


@pytest.mark.parametrize("seed", range(3))
def test_each_grid_has_the_level_of_its_pair(seed):
    X, y = columns(400, 3, seed)
    table, target = read_table(X), read_target(y)
    found = find_pairs(table, target, n_full=2, run=Run())
    assert found.ranked == fit_pairs(table, target, effort=2, n_full=2, run=Run())
    whole = float(part_costs(np.bincount(target.codes)[None]).sum())
    compared = 0
    for i, pair in enumerate(zip(found.ranked["first"], found.ranked["second"], strict=True)):
        partitions, cells, _ = found.grids[pair]
        assert tuple(p.name for p in partitions) == pair
        # Counted anew, row by row.
        parts = [p.apply(table[p.name]) for p in partitions]
        counts = np.zeros((partitions[0].n_parts, partitions[1].n_parts, 3), int)
        np.add.at(counts, (*parts, target.codes), 1)
        assert counts[tuple(cells.parts.T)].tolist() == cells.counts.tolist()
        assert counts.sum() == cells.counts.sum() == 400
        cost = float(part_costs(cells.counts).sum())
        cost += sum(p.cost - float(part_costs(p.counts).sum()) for p in partitions)
        null = sum(p.null_cost for p in partitions) - whole
        level = max(1 - cost / null, found.ranked["first_level"][i], found.ranked["second_level"][i])
        assert found.ranked["level"][i] == pytest.approx(level, abs=1e-9)
        compared += 1 - cost / null == pytest.approx(level, abs=1e-9)
    assert compared >= 3  # not all are of a variable alone


def test_the_summary_keeps_every_pair_and_is_small():
    _, y, summary = explored()
    held = summary["pairs"]
    json.dumps(held, allow_nan=False)
    assert len(held["grids"]) == held["done"] == 6
    gains = [grid["gain"] for grid in held["grids"]]
    assert gains == sorted(gains, reverse=True)
    for grid in held["grids"]:
        cells = np.array([cell[2:] for cell in grid["cells"]])
        assert cells.sum(axis=0).tolist() == np.bincount(y).tolist()
        assert max(cell[0] for cell in grid["cells"]) < len(grid["first_parts"])
        levels = {v["name"]: v["level"] for v in summary["variables"]}
        alone = levels[grid["first"]] + levels[grid["second"]]
        assert grid["level"] == pytest.approx(alone + grid["gain"])


def test_of_many_classes_the_others_are_counted_together():
    _X, y, summary = explored(3000, 25)
    classes = shown_classes(summary)
    assert len(classes.labels) == 10
    (grid, *_) = summary["pairs"]["grids"]
    cells = np.array([cell[2:] for cell in grid["cells"]])
    assert cells.sum(axis=0).tolist() == classes.kept(np.bincount(y).tolist())


def test_a_sample_without_a_class_counts_no_row_of_it(monkeypatch):
    monkeypatch.setattr("damier.report.analysis.PAIRED_ROWS", 300)
    X, y = columns(3000, 2)
    y = y.astype(object)
    y[0] = "rare"
    summary = analyze(read_table(X), read_target(y.astype(str)))
    assert summary["pairs"]["rows"] == 300
    for grid in summary["pairs"]["grids"]:
        assert np.array([cell[2:] for cell in grid["cells"]]).shape[1] == 3
        assert sum(map(sum, (cell[2:] for cell in grid["cells"]))) == 300


def test_the_last_of_very_large_grids_go_without(monkeypatch):
    monkeypatch.setattr("damier.report.pairs._MOST_NUMBERS", 60)
    _, _, summary = explored()
    kept = ["cells" in grid for grid in summary["pairs"]["grids"]]
    assert kept[0]
    assert not kept[-1]
    assert pairs.view(summary)["matrix"]
    assert len(pairs.island(summary)["grids"]) == 6


def test_the_matrix_is_symmetric_with_the_levels_on_its_diagonal():
    _, _, summary = explored()
    lines = pairs.view(summary)["matrix"]
    texts = [[cell["text"] for cell in line["cells"]] for line in lines]
    assert texts == [list(column) for column in zip(*texts, strict=True)]
    levels = {v["name"]: v["level"] for v in summary["variables"]}
    for k, line in enumerate(lines):
        assert line["cells"][k] == {"kind": "own", "text": f"{levels[line['name']]:.4f}"}
    grid = summary["pairs"]["grids"][0]
    names = [line["name"] for line in lines]
    cell = lines[names.index(grid["first"])]["cells"][names.index(grid["second"])]
    assert cell == {"kind": "p4", "text": f"+{grid['gain']:.4f}"}


def test_pairs_that_were_not_done_are_marked_and_named():
    _, _, summary = explored()
    (last,) = summary["pairs"]["grids"][-1:]
    held = summary["pairs"]
    held["grids"] = held["grids"][:-1]
    held["not_done"] = [[last["first"], last["second"]]]
    view = pairs.view(summary)
    assert view["not_done"] == [f"{last['first']} × {last['second']}"]
    assert sum(cell["kind"] == "none" for line in view["matrix"] for cell in line["cells"]) == 2


def test_a_table_of_a_grid_has_the_shares_of_its_class():
    _X, y, summary = explored()
    grid = summary["pairs"]["grids"][0]
    classes = shown_classes(summary)
    table = pairs.grid_table(grid, classes, 1)
    assert table["lines"][-1]["cells"][-1] == {"kind": "z", "text": f"{np.mean(y == 1):.0%}", "rows": 600}
    rows = [[cell["rows"] for cell in line["cells"]] for line in table["lines"]]
    assert [sum(line[:-1]) for line in rows] == [line[-1] for line in rows]
    assert [sum(column[:-1]) for column in zip(*rows, strict=True)] == rows[-1]
    a, b, *held = grid["cells"][0]
    assert table["lines"][a]["cells"][b]["text"] == pairs.percent(held[1] / sum(held))


def test_what_cells_tell_of_classes_sums_to_the_mutual_information():
    """The script's formula, and that the contributions are those of the information of the whole grid."""
    _X, _y, summary = explored()
    grid = summary["pairs"]["grids"][0]
    counts = np.array([cell[2:] for cell in grid["cells"]], float)
    rows, of_class, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.nan_to_num(counts / n * np.log(counts * n / rows[:, None] / of_class))
    cell_of = np.repeat(np.arange(len(counts)), rows.astype(int))
    class_of = np.concatenate([np.repeat(np.arange(3), line.astype(int)) for line in counts])
    assert each.sum() == pytest.approx(mutual_info_score(cell_of, class_of))
