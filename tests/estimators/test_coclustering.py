"""Coclustering and CoclusteringClassifier: inputs, answers, scikit-learn's habits."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import Coclustering, CoclusteringClassifier
from damier.criteria import coclustering_cost
from damier.models.coclustering import CoclusteringModel
from tests import naive

rng = np.random.default_rng(0)
ROWS, COLUMNS = np.repeat([0, 1, 2], 20), np.repeat([0, 1, 2, 3], 15)
TABLE = rng.poisson(np.array([[3, 0.1, 0.5, 1], [0.2, 2, 0.5, 0.1], [0.1, 0.2, 3, 2]])[ROWS][:, COLUMNS])


@pytest.fixture(scope="module")
def fitted():
    return Coclustering(random_state=0).fit(TABLE)


def not_for_us(estimator):
    if isinstance(estimator, CoclusteringClassifier):
        return {
            "check_classifiers_classes": "the check takes -1 for a class; here it marks rows without a label"
        }
    return {}


@parametrize_with_checks([Coclustering(), CoclusteringClassifier()], expected_failed_checks=not_for_us)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_cost_is_formula_5(fitted):
    told = naive.coclustering_cost(
        TABLE.tolist(), fitted.row_labels_.tolist(), fitted.column_labels_.tolist()
    )
    assert fitted.cost_ == pytest.approx(told, rel=1e-9)
    assert fitted.cost_ <= coclustering_cost(TABLE, ROWS, COLUMNS) + 1e-6
    null = naive.coclustering_cost(TABLE.tolist(), [0] * TABLE.shape[0], [0] * TABLE.shape[1])
    assert fitted.null_cost_ == pytest.approx(null, rel=1e-9)
    assert fitted.level_ == pytest.approx(1 - told / null)
    assert fitted.ended_ == "converged"


@pytest.mark.parametrize(
    "form",
    [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, np.asarray, lambda t: t.astype(float), list],
)
def test_every_form_of_matrix_gives_the_same(fitted, form):
    other = Coclustering(random_state=0, n_jobs=2).fit(form(TABLE))
    np.testing.assert_array_equal(other.row_labels_, fitted.row_labels_)
    np.testing.assert_array_equal(other.column_labels_, fitted.column_labels_)
    assert other.cost_ == fitted.cost_


def pairs(table=TABLE, shuffle=None):
    i, j = np.nonzero(table)
    i, j = np.repeat(i, table[i, j]), np.repeat(j, table[i, j])
    order = np.random.default_rng(shuffle).permutation(len(i)) if shuffle is not None else np.arange(len(i))
    return {"text": [f"t{v:02d}" for v in i[order]], "word": [f"w{v:02d}" for v in j[order]]}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_pairs_give_the_same_whatever_their_order_and_library(fitted, library):
    other = Coclustering(random_state=0).fit(library(pairs(shuffle=3)))
    np.testing.assert_array_equal(other.row_labels_, fitted.row_labels_)
    np.testing.assert_array_equal(other.column_labels_, fitted.column_labels_)
    assert other.row_names_[5] == "t05"
    assert other.column_names_[7] == "w07"


def test_pairs_with_counts(fitted):
    i, j = np.nonzero(TABLE)
    frame = pd.DataFrame({"user": i, "item": j, "times": TABLE[i, j]})
    other = Coclustering(random_state=0, counts="times").fit(frame)
    np.testing.assert_array_equal(other.row_labels_, fitted.row_labels_)
    assert other.row_names_[3] == 3
    assert isinstance(other.row_names_[3], int)
    np.testing.assert_array_equal(other.predict(frame), other.row_labels_[i])


def test_empty_rows_and_columns_are_in_no_cluster(fitted):
    wider = np.zeros((TABLE.shape[0] + 2, TABLE.shape[1] + 1), dtype=int)
    wider[1:-1, 1:] = TABLE
    other = Coclustering(random_state=0).fit(wider)
    assert other.row_labels_[0] == other.row_labels_[-1] == other.column_labels_[0] == -1
    np.testing.assert_array_equal(other.row_labels_[1:-1], fitted.row_labels_)
    assert other.cost_ == pytest.approx(fitted.cost_)


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.array([[1.5, 2], [1, 0]]), "column 0 holds .*1.5.*whole numbers|whole numbers.*column 0"),
        (np.array([[1, -2], [1, 0]]), "Negative values in data.*column 1"),
        (np.zeros((3, 3), dtype=int), "every count is zero"),
    ],
)
def test_wrong_input_is_named(X, told):
    with pytest.raises(ValueError, match=told):
        Coclustering().fit(X)


def test_blocks_sum_up(fitted):
    blocks = fitted.blocks()
    cells = fitted.coclustering_.cells
    assert blocks["count"].sum() == TABLE.sum() == cells.sum()
    share = cells / cells.sum()
    independent = np.outer(share.sum(1), share.sum(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        mutual = np.nansum(share * np.log(share / independent))
    assert blocks["information"].sum() == pytest.approx(mutual)
    assert blocks["expected"].sum() == pytest.approx(TABLE.sum())
    first = blocks.iloc[0]
    told = TABLE[fitted.row_labels_ == 0][:, fitted.column_labels_ == 0].sum()
    assert first["count"] == told


def test_typicality_is_the_mean_cost_of_moving(fitted):
    """Against the literal cost, one value tried in every other cluster."""
    model, labels = fitted.coclustering_, fitted.column_labels_
    for v in (0, 17, 40):
        here, weights, changes = fitted.cost_, [], []
        for j in range(model.n_column_clusters):
            if j != labels[v]:
                tried = labels.copy()
                tried[v] = j
                cost = naive.coclustering_cost(TABLE.tolist(), fitted.row_labels_.tolist(), tried.tolist())
                changes.append(cost - here)
                weights.append(model.cells[:, j].sum())
        assert model.columns.typicality[v] == pytest.approx(np.average(changes, weights=weights), rel=1e-6)
    ranked = fitted.typical_values(0, axis="columns")
    assert ranked["typicality"].is_monotonic_decreasing
    assert set(ranked["value"]) == set(np.flatnonzero(labels == 0))
    assert len(fitted.typical_values(0, axis="rows", n=3)) == 3
    with pytest.raises(ValueError, match="no cluster 99"):
        fitted.typical_values(99)
    with pytest.raises(ValueError, match="'rows' or 'columns'"):
        fitted.typical_values(0, axis="words")


def test_simplify_follows_the_hierarchy(fitted):
    path = fitted.hierarchy()
    assert path["information"].iloc[0] == 1.0
    assert path["information"].iloc[-1] == pytest.approx(0.0, abs=1e-9)
    assert (path["n_row_clusters"].iloc[-1], path["n_column_clusters"].iloc[-1]) == (1, 1)
    assert path["cost"].iloc[-1] == pytest.approx(fitted.null_cost_)
    two = fitted.simplify(n_row_clusters=2)
    assert two.coclustering_.n_row_clusters == 2
    assert two.coclustering_.n_column_clusters == fitted.coclustering_.n_column_clusters
    assert fitted.coclustering_.n_row_clusters > 2
    for simpler in (
        two,
        fitted.simplify(n_row_clusters=2, n_column_clusters=2),
        fitted.simplify(min_information=0.5),
        fitted.simplify(min_information=0.0),
    ):
        told = coclustering_cost(TABLE, simpler.row_labels_, simpler.column_labels_)
        assert simpler.cost_ == pytest.approx(told)
        # a cluster of the fine coclustering lies in one cluster of the simple one
        both = set(zip(fitted.row_labels_, simpler.row_labels_, strict=True))
        assert len(both) == fitted.coclustering_.n_row_clusters
        assert simpler.hierarchy()["cost"].iloc[-1] == pytest.approx(fitted.null_cost_)
        np.testing.assert_array_equal(
            simpler.coclustering_.cells.sum(axis=1),
            np.bincount(simpler.row_labels_, weights=TABLE.sum(axis=1)),
        )
    assert fitted.simplify(min_information=0.5).coclustering_.information >= 0.5
    assert fitted.simplify(min_information=1.0).cost_ == pytest.approx(fitted.cost_)
    assert fitted.simplify(n_row_clusters=99).cost_ == pytest.approx(fitted.cost_)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fitted.simplify(min_information=2)
    with pytest.raises(ValueError, match="at least one"):
        fitted.simplify(n_row_clusters=0)


def test_simplify_keeps_the_costs_of_the_path(fitted):
    """Going down the hierarchy step by step or in one go is the same."""
    path = fitted.hierarchy()
    for step in range(len(path)):
        state = path.iloc[step]
        told = fitted.simplify(int(state["n_row_clusters"]), int(state["n_column_clusters"]))
        assert told.cost_ == pytest.approx(state["cost"], rel=1e-9)
        rows, columns = told.row_labels_, told.column_labels_
        cells = [[TABLE[rows == i][:, columns == j].sum() for j in set(columns)] for i in set(rows)]
        assert told.coclustering_.cells.tolist() == cells  # one cluster on one side lost its rows once


def test_predict_is_the_least_cost_increase(fitted):
    new = np.random.default_rng(1).poisson(1.0, (6, TABLE.shape[1]))
    told = fitted.predict(sp.csr_array(new))
    model = fitted.coclustering_
    for row, found in zip(new, told, strict=True):
        grown = np.vstack([TABLE, row]).tolist()
        costs = [
            naive.coclustering_cost(grown, [*fitted.row_labels_.tolist(), j], fitted.column_labels_.tolist())
            for j in range(model.n_row_clusters)
        ]
        assert found == int(np.argmin(costs))
    assert fitted.predict(np.zeros((1, TABLE.shape[1]), dtype=int)).tolist() == [-1]
    np.testing.assert_array_equal(fitted.predict(TABLE), fitted.row_labels_)


def test_predict_pairs():
    frame = pd.DataFrame(pairs())
    model = Coclustering().fit(frame)
    new = pd.DataFrame({"text": ["new", "t05", "new", "odd"], "word": ["w00", "w20", "w01", "never seen"]})
    told = model.predict(new)
    assert told[0] == told[2] == model.row_labels_[0]
    assert told[3] == -1
    with pytest.raises(ValueError, match="form of input"):
        model.predict(TABLE)


def test_the_model_survives_json(fitted):
    plain = json.loads(json.dumps(fitted.coclustering_.to_dict()))
    again = CoclusteringModel.from_dict(plain)
    assert again.to_dict() == fitted.coclustering_.to_dict()
    np.testing.assert_array_equal(again.predict(TABLE), fitted.predict(TABLE))
    with pytest.raises(ValueError, match="missing"):
        CoclusteringModel.from_dict({"model": "coclustering"})
    with pytest.raises(ValueError, match="unknown kind 'grid'"):
        CoclusteringModel.from_dict({**plain, "model": "grid"})


def test_noise_is_one_block_with_level_zero():
    noise = np.random.default_rng(0).poisson(0.5, (50, 60))
    model = Coclustering().fit(noise)
    assert model.coclustering_.cells.shape == (1, 1)
    assert model.level_ == 0.0
    assert model.simplify(min_information=0.9).cost_ == model.cost_
    assert len(model.hierarchy()) == 1


def test_plots(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for drawn in (fitted.plot_blocks(), fitted.plot_hierarchy()):
        drawn.figure.canvas.draw()
        plt.close(drawn.figure)


def test_plots_say_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"damier\[plot\]"):
        fitted.plot_blocks()


def test_the_classifier_labels_clusters_from_few_labels():
    classes = np.array(["a", "b", "c"])[ROWS].astype(object)
    y = np.full(len(ROWS), None, dtype=object)
    y[[0, 25, 45]] = classes[[0, 25, 45]]
    model = CoclusteringClassifier().fit(TABLE, y)
    np.testing.assert_array_equal(model.transduction_, classes)
    np.testing.assert_array_equal(model.predict(TABLE), classes)
    assert model.predict_proba(TABLE).sum(axis=1) == pytest.approx(1.0)


def test_a_cluster_without_label_is_merged_at_least_cost():
    """Clusters of three; the third resembles the second and takes its class."""
    block = np.array([[6, 0, 0, 1], [0, 6, 2, 1], [0, 2, 6, 1]])
    table = np.kron(block, np.ones((8, 5), dtype=int))
    y = np.full(24, -1)
    y[[0, 8]] = 0, 1
    model = CoclusteringClassifier().fit(table, y)
    assert model.n_unlabeled_clusters_ == 1
    np.testing.assert_array_equal(model.transduction_, np.repeat([0, 1, 1], 8))


def test_the_labels_of_a_cluster_decide_alone():
    """Eight clusters along a chain: one odd label among many of the other class around it."""
    centres = np.exp(-((np.arange(8)[:, None] - np.arange(8)) ** 2) / 3)
    table = np.kron(np.round(9 * centres).astype(int), np.ones((10, 4), dtype=int))
    fitted = Coclustering().fit(table)
    assert fitted.coclustering_.n_row_clusters == 8
    y = np.where(np.arange(80) % 10 < 5, 0, -1)
    y[40:50] = -1
    y[40] = 1
    model = CoclusteringClassifier(coclustering=fitted).fit(table, y)
    np.testing.assert_array_equal(model.transduction_, np.arange(80) // 10 == 4)


def test_a_fitted_coclustering_is_reused(fitted):
    y = np.where(np.arange(len(ROWS)) % 3, -1, ROWS)
    model = CoclusteringClassifier(coclustering=fitted).fit(TABLE, y)
    assert model.coclustering_ is fitted
    with pytest.raises(ValueError, match="same rows"):
        CoclusteringClassifier(coclustering=fitted).fit(TABLE[:-1], y[:-1])
    with pytest.raises(ValueError, match="no labeled row"):
        CoclusteringClassifier().fit(TABLE, np.full(len(ROWS), -1))


def test_balanced_and_plain_decisions():
    """One cluster with one positive in five, one in twenty-five overall: balanced calls it positive."""
    y = np.zeros(60, dtype=int)
    y[:4] = 1
    balanced = CoclusteringClassifier(prior="balanced").fit(TABLE, y + 1)
    plain = CoclusteringClassifier(prior="data").fit(TABLE, y + 1)
    assert set(balanced.transduction_[:20]) == {2}
    assert set(plain.transduction_) == {1}


def test_predicting_needs_no_numba(fitted, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(fitted.coclustering_.to_dict()))
    script = (
        "import json, sys, numpy as np\n"
        "from damier.models.coclustering import CoclusteringModel\n"
        f"model = CoclusteringModel.from_dict(json.load(open({str(path)!r})))\n"
        "model.predict(np.ones((2, 60), dtype=int))\n"
        "assert 'numba' not in sys.modules and 'sklearn' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def grid_frame(n=600, seed=0):
    random = np.random.default_rng(seed)
    city = random.integers(0, 12, n)
    warm = np.where(city % 3 == 0, 20.0, 5.0) + random.normal(size=n)
    return pd.DataFrame(
        {
            "city": [f"city {c:02d}" for c in city],
            "warm": warm,
            "noise": random.normal(size=n),
            "rain": 30 - warm,
        }
    )


def test_a_table_of_variables_gets_a_grid():
    frame = grid_frame()
    model = Coclustering().fit(frame)
    parts = {name: partition.n_parts for name, partition in model.partitions_.items()}
    assert parts["noise"] == 1
    assert min(parts["city"], parts["warm"], parts["rain"]) > 1
    groups = {frozenset(group) for group in model.partitions_["city"].groups}
    assert frozenset(f"city {c:02d}" for c in (0, 3, 6, 9)) in groups
    instances = list(
        zip(*(model.partitions_[name].apply(frame[name]).tolist() for name in frame.columns), strict=True)
    )
    values = [frame["city"].tolist(), None, None, None]
    told = naive.unsupervised_grid_cost(instances, [parts[name] for name in frame.columns], values)
    assert model.cost_ == pytest.approx(told, rel=1e-9)
    nothing = naive.unsupervised_grid_cost([(0,) * 4] * len(frame), [1] * 4, values)
    assert model.null_cost_ == pytest.approx(nothing, rel=1e-9)
    np.testing.assert_array_equal(model.predict(frame), model.row_labels_)
    assert model.blocks()["count"].sum() == len(frame)
    assert model.predict(frame.assign(city="elsewhere")).tolist() == [-1] * len(frame)
    with pytest.raises(AttributeError, match="grid_"):
        model.simplify(n_row_clusters=2)
    assert type(model.grid_).from_dict(json.loads(json.dumps(model.grid_.to_dict()))).cost == model.cost_


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, dict])
def test_the_grid_depends_neither_on_rows_nor_on_the_library(library):
    frame = grid_frame()
    first = Coclustering().fit(frame)
    shuffled = frame.sample(frac=1, random_state=1)
    second = Coclustering().fit(library(shuffled.to_dict("list")))
    assert second.cost_ == pytest.approx(first.cost_)
    assert {n: p.labels for n, p in second.partitions_.items()} == {
        n: p.labels for n, p in first.partitions_.items()
    }


def test_two_columns_of_numbers_get_a_grid_and_missing_comes_first():
    random = np.random.default_rng(0)
    x = random.uniform(size=500)
    y = x + random.normal(size=500) * 0.1
    x[:60] = np.nan
    y[:60] = 5.0 + random.uniform(size=60)
    model = Coclustering().fit(pd.DataFrame({"x": x, "y": y}))
    assert model.partitions_["x"].missing_alone
    assert model.partitions_["x"].n_parts > 3
    monotone = Coclustering().fit(pd.DataFrame({"x": np.exp(3 * x), "y": y**3}))
    assert monotone.cost_ == pytest.approx(model.cost_)
    np.testing.assert_array_equal(monotone.row_labels_, model.row_labels_)


def test_noise_and_constants_make_one_cell():
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"a": random.normal(size=300), "b": random.normal(size=300), "c": 1.0, "d": "x"})
    model = Coclustering().fit(frame)
    assert len(model.blocks()) == 1
    assert model.level_ == 0.0
