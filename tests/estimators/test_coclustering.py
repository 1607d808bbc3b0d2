"""Coclustering and CoclusteringClassifier: inputs, answers, scikit-learn's habits."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import consensus_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import Coclustering, CoclusteringClassifier
from damier.criteria import coclustering_cost
from damier.deploy import load, save
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
    assert fitted.search_ended_ == "complete"


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
        (np.full((2, 2), 2**30), "4.29497e.09 instances.*common factor"),
        (np.array([[1e300, 1], [1, 2]]), "1e.300 instances.*common factor"),
        (np.array([[2**62, 1], [2**62, 2**62]]), "common factor"),
        (np.array([[2**63, 2**63]], dtype=np.uint64), "common factor"),
        (np.ma.masked_equal([[1, 2], [3, 99]], 99), "masked array.*filled"),
    ],
)
def test_wrong_input_is_named(X, told):
    for estimator in (Coclustering(), CoclusteringClassifier()):
        with pytest.raises(ValueError, match=told):
            estimator.fit(X, np.arange(1, len(X) + 1))


def test_a_mask_that_masks_nothing_is_no_matter(fitted):
    other = Coclustering(random_state=0).fit(np.ma.masked_equal(TABLE, -1))
    np.testing.assert_array_equal(other.row_labels_, fitted.row_labels_)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"user": ["a", "b"], "stars": [1.5, 2.0]}, "'stars' holds numbers.*1.5.*DataGridClustering"),
        ({"user": ["a", "b"], "stars": [np.inf, 2.0]}, "'stars' holds numbers.*inf.*DataGridClustering"),
        ({"day": pd.to_datetime(["2024-01-05", "2024-01-06"]), "u": ["a", "b"]}, "'day' holds datetimes"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "this one has 3: 'a', 'b', 'c'.*DataGridClustering"),
        ({"a": ["x", "y"]}, "this one has 1: 'a'"),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_a_frame_that_is_not_one_of_pairs_is_refused(columns, told, library):
    with pytest.raises(ValueError, match=told):
        Coclustering().fit(library(columns))


def test_wrong_counts_of_pairs_are_named():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"], "n": [1, -2]})
    with pytest.raises(ValueError, match=r"column of counts .n..*not negative"):
        Coclustering(counts="n").fit(frame)
    with pytest.raises(ValueError, match="no column 'm'"):
        Coclustering(counts="m").fit(frame)
    with pytest.raises(ValueError, match="counts 'b' does not hold numbers"):
        Coclustering(counts="b").fit(frame)
    with pytest.raises(ValueError, match="X is a matrix"):
        Coclustering(counts="n").fit(TABLE)
    with pytest.raises(ValueError, match="common factor"):
        Coclustering(counts="n").fit(frame.assign(n=2**31))


def test_missing_identifiers_are_a_value():
    frame = pd.DataFrame(pairs())
    frame["text"] = [None if t == "t05" else int(t[1:]) for t in frame["text"]]
    model = Coclustering().fit(frame)
    assert None in model.row_names_.tolist()
    assert model.row_labels_[model.row_names_.tolist().index(None)] == model.row_labels_[1]


def test_blocks_are_biclusters(fitted):
    blocks = fitted.blocks()
    rows, columns = fitted.biclusters_
    assert rows.shape == (len(blocks), TABLE.shape[0])
    assert columns.shape == (len(blocks), TABLE.shape[1])
    for i in range(len(blocks)):
        assert fitted.get_submatrix(i, TABLE).sum() == blocks["count"][i]
        np.testing.assert_array_equal(fitted.get_indices(i)[0], np.flatnonzero(rows[i]))
        np.testing.assert_array_equal(fitted.get_indices(i)[1], np.flatnonzero(columns[i]))
        assert fitted.get_shape(i) == (rows[i].sum(), columns[i].sum())
    assert consensus_score(fitted.biclusters_, fitted.biclusters_) == 1.0
    with pytest.raises(NotFittedError):
        _ = Coclustering().rows_


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
    # by name: columns in any order, others ignored
    np.testing.assert_array_equal(model.predict(new[["word", "text"]].assign(more=1.5)), told)
    with pytest.raises(ValueError, match="'word'"):
        model.predict(new[["text"]])


def test_the_model_survives_json(fitted):
    plain = json.loads(json.dumps(fitted.coclustering_.to_dict()))
    again = CoclusteringModel.from_dict(plain)
    assert again.to_dict() == fitted.coclustering_.to_dict()
    np.testing.assert_array_equal(again.predict(TABLE), fitted.predict(TABLE))
    with pytest.raises(ValueError, match="missing"):
        CoclusteringModel.from_dict({"model": "coclustering"})
    with pytest.raises(ValueError, match="unknown kind 'grid'"):
        CoclusteringModel.from_dict({**plain, "model": "grid"})


def test_saved_estimators_predict_alike(tmp_path):
    frame = pd.DataFrame(pairs()).assign(times=2)
    for fitted, X in (
        (Coclustering().fit(TABLE), sp.csr_array(TABLE)),
        (Coclustering(counts="times").fit(frame), frame),
        (CoclusteringClassifier().fit(TABLE, np.where(np.arange(60) % 3, -1, ROWS)), TABLE),
    ):
        save(fitted, tmp_path / "model.json")
        again = load(tmp_path / "model.json")
        assert again == fitted.model_
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_come_back_in_the_library_of_fit(library):
    model = Coclustering().fit(library(pairs()))
    for simpler in (model, model.simplify(n_row_clusters=2)):
        for frame in (simpler.blocks(), simpler.clusters(), simpler.hierarchy(), simpler.typical_values(0)):
            assert type(frame) is type(library({}))


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

    model = fitted.model_
    blocks = fitted.plot_blocks()
    (mesh,) = blocks.collections
    assert mesh.get_array().shape == model.cells.shape
    shown = np.exp2(np.asarray(mesh.get_array()))
    assert np.allclose(shown, (model.cells + 0.5) / (model.expected + 0.5))
    # A block is as high and as wide as its clusters have instances.
    corners = mesh.get_coordinates()
    assert np.array_equal(np.diff(corners[0, :, 0]), model.cells.sum(axis=0))
    assert np.array_equal(np.diff(corners[:, 0, 1]), model.cells.sum(axis=1))
    hierarchy = fitted.plot_hierarchy()
    path = model.hierarchy(backend="dict")
    line = hierarchy.lines[0]
    assert line.get_ydata().tolist() == pytest.approx(path["information"])
    clusters = np.add(path["n_row_clusters"], path["n_column_clusters"])
    assert line.get_xdata().tolist() == clusters.tolist()
    for drawn in (blocks, hierarchy):
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
    model = CoclusteringClassifier(coclustering=FrozenEstimator(fitted)).fit(table, y)
    np.testing.assert_array_equal(model.transduction_, np.arange(80) // 10 == 4)


def test_a_frozen_coclustering_is_used_as_it_is_and_survives_clone(fitted):
    y = np.where(np.arange(len(ROWS)) % 3, -1, ROWS)
    frozen = CoclusteringClassifier(coclustering=FrozenEstimator(fitted))
    assert frozen.fit(TABLE, y).coclustering_ is fitted
    again = clone(frozen).fit(TABLE, y)
    assert again.coclustering_ is fitted
    with pytest.raises(ValueError, match="same rows"):
        frozen.fit(TABLE[:-1], y[:-1])
    with pytest.raises(ValueError, match="frozen KMeans"):
        CoclusteringClassifier(coclustering=FrozenEstimator(KMeans())).fit(TABLE, y)
    with pytest.raises(ValueError, match="no labeled row"):
        CoclusteringClassifier().fit(TABLE, np.full(len(ROWS), -1))


def test_a_coclustering_given_as_a_template_is_cloned(fitted):
    y = np.where(np.arange(len(ROWS)) % 3, -1, ROWS)
    template = Coclustering(random_state=5, effort=3)
    model = clone(CoclusteringClassifier(coclustering=template)).fit(TABLE, y)
    assert not hasattr(template, "model_")
    assert model.coclustering_.get_params() == template.get_params()
    assert model.coclustering_.n_features_in_ == TABLE.shape[1]
    # one that is fitted is a template as well: other rows may follow, as in cross-validation
    part = CoclusteringClassifier(coclustering=fitted).fit(TABLE[:40], y[:40])
    assert part.coclustering_.row_labels_.shape == (40,)
    assert fitted.row_labels_.shape == (60,)
    with pytest.raises(ValueError, match="effort"):
        CoclusteringClassifier(coclustering=Coclustering(effort=-1)).fit(TABLE, y)
    scores = cross_val_score(CoclusteringClassifier(coclustering=template), TABLE, ROWS, cv=3)
    assert scores.mean() > 0.9


def test_the_model_of_the_classifier_predicts_as_the_classifier_does():
    classes = np.array(["a", "b", "c"])[ROWS].astype(object)
    y = np.full(len(ROWS), None, dtype=object)
    y[[0, 25, 45]] = classes[[0, 25, 45]]
    classifier = CoclusteringClassifier(prior="data").fit(TABLE, y)
    new = np.vstack([np.random.default_rng(2).poisson(1.0, (9, TABLE.shape[1])), np.zeros(TABLE.shape[1])])
    np.testing.assert_array_equal(classifier.model_.predict_proba(new), classifier.predict_proba(new))
    np.testing.assert_array_equal(classifier.model_.predict(new), classifier.predict(new))
    # nothing is known of an empty row but the shares of the labels
    np.testing.assert_allclose(classifier.predict_proba(new)[-1], [1 / 3] * 3)
    assert classifier.model_.label_counts.sum() == 3


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("probabilities", np.zeros((1, 1)), "probabilities: shape"),
        ("unknown", np.array([0.5, 0.4, 0.2]), "unknown: shares that add up to 1.1"),
        ("unknown", np.array([1.0]), "unknown: shape"),
    ],
)
def test_the_model_of_the_classifier_is_checked(field, value, told):
    model = CoclusteringClassifier().fit(TABLE, ROWS + 1).model_
    with pytest.raises(ValueError, match=told):
        replace(model, **{field: value})


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
