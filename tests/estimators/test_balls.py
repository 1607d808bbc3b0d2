"""BallPartitionClassifier: groups, scoring, graphs that are passed, invariances, refusals."""

import json
import os
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import BallPartitionClassifier, gabriel_graph
from damier.criteria import ball_label_cost, ball_unsplit_cost
from damier.models import BallPartition
from damier.search.balls import gabriel
from tests import naive

AVERAGED = {"n_partitions": 32, "n_neighbors": 5}


def xor(n=300, seed=0, flipped=0.1):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)) ^ (random.random(n) < flipped)
    return X, np.where(y, "yes", "no")


@parametrize_with_checks([BallPartitionClassifier()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("balls", ["local", "global"])
@pytest.mark.parametrize("prior", ["even", "paper"])
def test_groups_are_those_of_the_definition(balls, prior):
    X, y = xor(40, 1, 0.05)
    fitted = BallPartitionClassifier(balls=balls, prior=prior).fit(X, y)
    order = np.lexsort((y == "yes", X[:, 1], X[:, 0]))
    adjacency = naive.gabriel_adjacency(X[order].tolist())
    codes = (y[order] == "yes").astype(int).tolist()
    groups, bits = naive.ball_partition(adjacency, codes, 2, balls == "local", prior)
    assert {frozenset(np.flatnonzero(fitted.labels_[order] == g)) for g in range(len(groups))} == groups
    assert fitted.cost_ == pytest.approx(bits)
    assert len(fitted.groups_) == len(groups)


def test_groups_have_size_shares_centre_and_radius():
    X, y = xor(500, 2, 0.0)
    fitted = BallPartitionClassifier().fit(X, y)
    sizes = [group.size for group in fitted.groups_]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes == np.bincount(fitted.labels_).tolist()
    assert any(group.centre is not None for group in fitted.groups_)
    for g, group in enumerate(fitted.groups_):
        members = np.flatnonzero(fitted.labels_ == g)
        assert group.counts == tuple(np.sum(y[members] == c) for c in fitted.classes_)
        assert group.shares == pytest.approx(np.array(group.counts) / group.size)
        if group.centre is not None:
            assert group.centre in members
            assert group.point == tuple(X[group.centre])
            inside = fitted.graph_[members][:, members].toarray()
            centre = int(np.flatnonzero(members == group.centre)[0])
            everyone = range(len(members))
            assert naive.ball_on_graph(inside, centre, group.radius, everyone) == set(everyone)


def test_scores_follow_the_nearest_point():
    X, y = xor()
    new = np.random.default_rng(9).uniform(-1, 1, size=(50, 2))
    for metric, order in (("euclidean", 2), ("cityblock", 1)):
        fitted = BallPartitionClassifier(prior="paper", metric=metric).fit(X, y)
        distances = np.linalg.norm(new[:, None] - X[None], ord=order, axis=2)
        nearest = distances.argsort(axis=1)
        shares = np.array([group.shares for group in fitted.groups_])
        np.testing.assert_array_equal(fitted.apply(new), fitted.labels_[nearest[:, 0]])
        np.testing.assert_array_equal(fitted.apply(X), fitted.labels_)
        np.testing.assert_allclose(fitted.predict_proba(new), shares[fitted.labels_[nearest[:, 0]]])
        smooth = clone(fitted).set_params(n_neighbors=4).fit(X, y)
        np.testing.assert_array_equal(smooth.labels_, fitted.labels_)
        expected = shares[fitted.labels_[nearest[:, :4]]].mean(axis=1)
        np.testing.assert_allclose(smooth.predict_proba(new), expected)
        np.testing.assert_array_equal(smooth.predict(new), smooth.classes_[expected.argmax(axis=1)])


def test_probabilities_are_averaged_over_partitions_and_neighbours():
    X, y = xor(400, 10, 0.1)
    new = np.random.default_rng(9).uniform(-1, 1, size=(2000, 2))
    truth = np.where((new[:, 0] > 0) ^ (new[:, 1] > 0), "yes", "no")
    alone = BallPartitionClassifier().fit(X, y)
    fitted = BallPartitionClassifier(**AVERAGED).fit(X, y)
    np.testing.assert_array_equal(fitted.labels_, alone.labels_)
    assert fitted.cost_ == alone.cost_
    assert alone.model_.point_shares is None
    at_points = fitted.model_.point_shares
    np.testing.assert_allclose(at_points.sum(axis=1), 1.0)
    nearest = np.linalg.norm(new[:50, None] - fitted.model_.points[None], axis=2).argsort(axis=1)[:, :5]
    np.testing.assert_allclose(fitted.predict_proba(new[:50]), at_points[nearest].mean(axis=1))
    assert fitted.score(new, truth) > alone.score(new, truth)
    others = [
        BallPartitionClassifier(**AVERAGED, random_state=seed).fit(X, y).predict_proba(new)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(others[0], others[1])
    assert np.abs(others[0] - others[2]).max() > 0
    assert np.abs(others[0] - others[2]).mean() < 0.1


def test_where_there_is_one_group_nothing_is_averaged():
    X, _ = xor(400, 11)
    y = np.random.default_rng(11).integers(0, 2, 400)
    fitted = BallPartitionClassifier(**AVERAGED).fit(X, y)
    assert len(fitted.groups_) == 1
    np.testing.assert_allclose(fitted.predict_proba(X), np.tile(np.bincount(y) / 400, (400, 1)))


def test_row_order_class_names_threads_and_frames_change_nothing():
    X, y = xor(400, 3)
    reference = BallPartitionClassifier(prior="paper", **AVERAGED).fit(X, y)
    assert len(reference.groups_) > 2
    order = np.random.default_rng(4).permutation(len(X))
    shuffled = BallPartitionClassifier(prior="paper", **AVERAGED).fit(X[order], y[order])
    np.testing.assert_array_equal(shuffled.labels_, reference.labels_[order])
    np.testing.assert_array_equal(shuffled.predict_proba(X), reference.predict_proba(X))
    renamed = BallPartitionClassifier(prior="paper", **AVERAGED).fit(X, np.where(y == "no", 7, 3))
    np.testing.assert_array_equal(renamed.labels_, reference.labels_)
    threads = BallPartitionClassifier(prior="paper", **AVERAGED, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.labels_, reference.labels_)
    np.testing.assert_array_equal(threads.predict_proba(X), reference.predict_proba(X))
    frame = {"a": X[:, 0], "b": X[:, 1]}
    for made in (pd.DataFrame(frame), pl.DataFrame(frame)):
        fitted = BallPartitionClassifier(prior="paper").fit(made, y)
        np.testing.assert_array_equal(fitted.apply(made), reference.labels_)
    scaled = BallPartitionClassifier(prior="paper").fit(X * 8.0 + 1.0, y)
    np.testing.assert_array_equal(scaled.labels_, reference.labels_)


def test_cost_is_that_of_the_criteria():
    X, y = xor(300, 5, 0.0)
    one = BallPartitionClassifier(time_limit=0).fit(X, y)
    counts = np.unique(y, return_counts=True)[1]
    assert one.cost_ == one.null_cost_ == ball_unsplit_cost(counts)
    assert one.level_ == 0
    assert one.search_ended_ == "time limit"
    full = BallPartitionClassifier().fit(X, y)
    assert full.search_ended_ == "complete"
    leaves = sum(1 + ball_label_cost(group.counts) for group in full.groups_)
    assert leaves < full.cost_ < full.null_cost_
    assert full.level_ == pytest.approx(1 - full.cost_ / full.null_cost_)


def test_a_graph_of_ones_own():
    # Two rings joined by one edge: the rows carry no coordinate but their number.
    n = 60
    ring = np.arange(n)
    step = np.where(ring < n // 2, (ring + 1) % (n // 2), n // 2 + (ring + 1) % (n // 2))
    graph = sparse.coo_array((np.ones(n + 1), (np.r_[ring, 0], np.r_[step, n - 1])), shape=(n, n))
    y = (ring >= n // 2).astype(int)
    y[[3, 40]] ^= 1
    X = ring.reshape(-1, 1)
    fitted = BallPartitionClassifier(graph=graph).fit(X, y)
    assert len(fitted.groups_) == 2
    second_ring = (ring >= n // 2).astype(int)
    assert np.sum(fitted.labels_ != second_ring) <= 1  # the node at the bridge may go either way
    assert fitted.graph_.nnz == 2 * (n + 1)
    weighted = sparse.csr_matrix(graph * 2.5)
    np.testing.assert_array_equal(BallPartitionClassifier(graph=weighted).fit(X, y).labels_, fitted.labels_)
    dense = BallPartitionClassifier(graph=lambda points: graph.toarray() + np.eye(len(points))).fit(X, y)
    np.testing.assert_array_equal(dense.labels_, fitted.labels_)
    # Transductively: most labels hidden, the graph shows them.
    hidden = np.where(ring % 3 == 0, y, -1)
    hidden[3] = 0
    partly = BallPartitionClassifier(graph=graph, semi_supervised="criterion").fit(X, hidden)
    assert partly.classes_.tolist() == [0, 1]
    assert np.sum(partly.transduction_ != second_ring) <= 1
    known = hidden >= 0
    np.testing.assert_array_equal(partly.transduction_[known], hidden[known])
    assert sum(sum(group.counts) for group in partly.groups_) == (hidden >= 0).sum()
    # Elsewhere -1 is a class.
    assert BallPartitionClassifier(graph=graph).fit(X, hidden).classes_.tolist() == [-1, 0, 1]


def test_pieces_out_of_reach_of_each_other():
    X = np.arange(40.0).reshape(-1, 1)
    y = np.arange(40) < 20
    apart = sparse.csr_array((40, 40))
    assert len(BallPartitionClassifier(graph=apart).fit(X, y).groups_) == 1
    blocks = sparse.block_diag([np.ones((20, 20)), np.ones((20, 20))])
    fitted = BallPartitionClassifier(graph=blocks).fit(X, y)
    assert [group.size for group in fitted.groups_] == [20, 20]
    assert fitted.score(X, y) == 1


def test_as_a_transformer_it_gives_the_index_of_the_group():
    X, y = xor(300, 6, 0.0)
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(300)[::-1])
    fitted = BallPartitionClassifier().fit(frame, y)
    np.testing.assert_array_equal(fitted.transform(frame)[:, 0], fitted.labels_)
    assert fitted.get_feature_names_out().tolist() == ["ball_group"]
    for output, library in (("pandas", pd), ("polars", pl)):
        out = clone(fitted).set_output(transform=output).fit_transform(frame, y)
        assert isinstance(out, library.DataFrame)
        assert list(out.columns) == ["ball_group"]
        assert out["ball_group"].to_list() == fitted.labels_.tolist()
        if output == "pandas":
            assert out.index.equals(frame.index)


def test_saved_and_read_back_it_scores_the_same():
    X, y = xor()
    fitted = BallPartitionClassifier(n_partitions=8, n_neighbors=3).fit(X, y)
    read = BallPartition.from_dict(json.loads(json.dumps(fitted.model_.to_dict())))
    new = np.random.default_rng(1).uniform(-1, 1, size=(40, 2))
    np.testing.assert_array_equal(read.predict_proba(new), fitted.predict_proba(new))
    np.testing.assert_array_equal(read.apply(new), fitted.apply(new))
    assert read.groups == fitted.groups_
    assert read.to_dict() == fitted.model_.to_dict()
    assert fitted.model_.to_frame(backend="pandas")["size"].sum() == 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "intervals"}, "intervals"),
        ({"point_groups": [0]}, "point_groups: shape"),
        ({"point_groups": [99] * 300}, "no group 99"),
        ({"centres": [1]}, "centres"),
        ({"radii": []}, "radii"),
        ({"point_shares": [[1.0, 0.0]]}, "point_shares"),
    ],
)
def test_a_spoilt_file_is_refused(change, message):
    X, y = xor()
    plain = BallPartitionClassifier().fit(X, y).model_.to_dict()
    assert len(plain["counts"]) > 1
    with pytest.raises(ValueError, match=message):
        BallPartition.from_dict(plain | change)
    del plain["points"]
    with pytest.raises(ValueError, match="points"):
        BallPartition.from_dict(plain)


def test_a_metric_that_is_code_is_not_saved():
    X, y = xor(60)
    fitted = BallPartitionClassifier(metric=lambda u, v: float(np.abs(u - v).max())).fit(X, y)
    with pytest.raises(TypeError, match="metric: a function has no form in JSON"):
        fitted.model_.to_dict()
    assert fitted.predict(X).shape == (60,)


def test_duplicates_with_different_labels_share_a_prediction():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], 30, axis=0)
    y = np.r_[np.zeros(30), np.ones(30), np.tile([0, 1], 15)].astype(int)
    fitted = BallPartitionClassifier().fit(X, y)
    assert fitted.predict([[0, 0], [1, 1]]).tolist() == [0, 1]
    assert fitted.apply([[0, 0], [1, 1]])[0] != fitted.apply([[0, 0], [1, 1]])[1]
    assert fitted.graph_.nnz == gabriel_graph(X).nnz


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        (pd.DataFrame({"size": [1.0, np.nan, 3.0]}), {}, "'size'.*missing"),
        (pd.DataFrame({"size": [1.0, np.inf, 3.0]}), {}, "'size'.*infinity"),
        (pd.DataFrame({"colour": ["red", "blue", "red"]}), {}, "'colour'.*categories"),
        (np.eye(3), {"graph": sparse.eye_array(2)}, "graph has shape"),
        (np.eye(3), {"graph": np.ma.masked_less(np.eye(3), 1)}, "masked"),
        (np.eye(3), {"balls": "round"}, "balls"),
        (np.eye(3), {"n_neighbors": 0}, "n_neighbors"),
    ],
)
def test_refusals_name_the_culprit(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        BallPartitionClassifier(**parameters).fit(X, [0, 1, 0])


def test_in_a_pipeline_it_beats_what_sees_one_axis_at_a_time():
    X, y = xor(600, 7, 0.05)
    X = X * [1000.0, 0.001]
    pipeline = make_pipeline(StandardScaler(), BallPartitionClassifier(n_neighbors=5))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85


def test_scoring_needs_no_compiler(monkeypatch):
    X, y = xor(60)
    fitted = BallPartitionClassifier().fit(X, y)
    monkeypatch.setitem(sys.modules, "numba", None)
    read = BallPartition.from_dict(fitted.model_.to_dict())
    assert read.apply(X).tolist() == fitted.labels_.tolist()


def test_plot_of_two_columns_and_of_no_more(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = xor(200, 8, 0.0)
    fitted = BallPartitionClassifier().fit(pd.DataFrame(X, columns=["east", "north"]), y)
    figure, ax = plt.subplots()
    assert fitted.plot(ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")
    assert len(ax.collections[0].get_segments()) == fitted.graph_.nnz // 2
    drawn = np.concatenate([c.get_offsets() for c in ax.collections[1:3]])
    assert len(drawn) == 200
    plt.close(figure)
    with pytest.raises(ValueError, match="3 columns"):
        BallPartitionClassifier().fit(np.c_[X, X[:, 0]], y).plot()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"damier\[plot\]"):
        fitted.plot()


def test_settings_are_shorthands():
    X, y = xor(300, 12)

    def groups(**options):
        return BallPartitionClassifier(**options).fit(X, y).groups_

    refined, paper = groups(setting="refined"), groups(setting="paper")
    assert refined == groups() == groups(balls="local", prior="even") != paper
    assert paper == groups(balls="global", prior="paper")
    assert groups(setting="paper", balls="local") == groups(prior="paper") != paper
    assert groups(setting="paper", prior="even") == groups(balls="global") != refined


def test_far_points_follow_the_nearest_end():
    X = np.arange(10.0)[:, None]
    for scale in (1.0, 1e-300, 1e300):
        fitted = BallPartitionClassifier().fit(X * scale, np.arange(10) > 4)
        assert len(fitted.groups_) == 2
        np.testing.assert_array_equal(fitted.apply(X * scale), fitted.labels_)
        far = fitted.predict([[1e307], [-1e307], [1.7e308], [-1.7e308], [4.4 * scale], [4.6 * scale]])
        assert far.tolist() == [True, False, True, False, False, True]
    # In the plane the nearest point is the one that lies farthest in the direction.
    X, y = xor(300, 13, 0.0)
    fitted = BallPartitionClassifier().fit(X, y)
    directions = np.random.default_rng(14).normal(size=(100, 2))
    expected = fitted.labels_[(directions @ X.T).argmax(axis=1)]
    assert len(set(expected)) > 2
    for far in (1e12, 1e200, 1e306):
        np.testing.assert_array_equal(fitted.apply(directions * far), expected)
    other = BallPartitionClassifier(metric="cityblock").fit(X, y)
    with pytest.raises(ValueError, match="too far"):
        other.predict([[1.7e308, 1.7e308]])


def test_classes_of_one_text_keep_their_columns():
    X = np.arange(40.0)[:, None]
    y = np.array([1] * 20 + ["1"] * 20, dtype=object)
    frame = BallPartitionClassifier().fit(X, y).model_.to_frame(backend="pandas")
    assert list(frame.columns) == ["group", "size", "share of 1", "share of 1 (2)", "centre", "radius"]


def test_a_model_copies_what_it_is_given_and_reads_columns_by_name():
    X, y = xor(100)
    frame = pd.DataFrame(X, columns=["a", "b"])
    fitted = BallPartitionClassifier().fit(frame, y)
    own = {name: np.array(getattr(fitted.model_, name)) for name in ("points", "rows", "counts")}
    made = replace(fitted.model_, **own)
    assert all(array.flags.writeable for array in own.values())
    assert not any(getattr(made, name).flags.writeable for name in own)
    turned = frame.assign(other="x")[["other", "b", "a"]]
    np.testing.assert_array_equal(made.predict_proba(turned), fitted.predict_proba(frame))
    np.testing.assert_array_equal(made.predict(turned), fitted.predict(frame))
    with pytest.raises((KeyError, ValueError), match="'b'"):
        made.predict(frame[["a"]])


def test_ctrl_c_while_points_are_linked_ends_the_fit(monkeypatch):
    X, y = xor(300)
    pairs = gabriel._search_pairs

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
        return pairs(*arguments)

    monkeypatch.setattr(gabriel, "_search_pairs", interrupted)
    monkeypatch.setattr(gabriel, "_CHUNK", 100)
    with pytest.raises(KeyboardInterrupt):
        BallPartitionClassifier().fit(X, y)


def test_a_time_limit_ends_a_long_wave():
    X = np.arange(30_000.0)[:, None]
    began = time.monotonic()
    fitted = BallPartitionClassifier(time_limit=0.5).fit(X, np.arange(30_000) % 2)
    assert fitted.search_ended_ == "time limit"
    assert len(fitted.groups_) == 1
    assert time.monotonic() - began < 10  # a single wave of all the balls of 256 centres takes longer
