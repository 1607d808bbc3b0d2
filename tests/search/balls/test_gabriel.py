"""The Gabriel graph against the literal definition, a Delaunay triangulation, and shapes known by heart."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import Delaunay

import damier
from damier.fit.balls import gabriel_graph
from damier.search.balls import gabriel, memory
from damier.search.run import Run
from tests import naive


@given(
    arrays(np.float64, st.tuples(st.integers(1, 25), st.integers(1, 4)), elements=st.integers(0, 3)),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
)
def test_as_defined_with_and_without_ties_by_either_search(grid, seed, on_grid, tree):
    points = grid if on_grid else np.random.default_rng(seed).normal(size=grid.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gabriel, "_TREE_DIMENSIONS", 9 if tree else 0)
        # Several chunks, bands and blocks, even with few points.
        patch.setattr(gabriel, "_CHUNK", 7)
        patch.setattr(gabriel, "_BAND_CELLS", 100)
        patch.setattr(gabriel, "_BLOCK", 3)
        graph = gabriel_graph(points)
    np.testing.assert_array_equal(graph.toarray(), naive.gabriel_adjacency(points.tolist()))


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", lambda u, v: float(np.abs(u - v).sum())])
def test_other_metrics(metric):
    points = np.random.default_rng(0).normal(size=(40, 3))
    distance = {"chebyshev": lambda u, v: max(abs(a - b) for a, b in zip(u, v, strict=True))}.get(
        metric, lambda u, v: sum(abs(a - b) for a, b in zip(u, v, strict=True))
    )
    expected = naive.gabriel_adjacency(points.tolist(), distance)
    np.testing.assert_array_equal(gabriel_graph(points, metric=metric).toarray(), expected)


def test_in_general_position_it_is_what_delaunay_leaves():
    points = np.random.default_rng(1).normal(size=(1500, 2))
    edges = {
        tuple(sorted(pair))
        for simplex in Delaunay(points).simplices
        for pair in itertools.combinations(simplex.tolist(), 2)
    }
    kept = set()
    for a, b in edges:
        middle, radius2 = (points[a] + points[b]) / 2, ((points[a] - points[b]) ** 2).sum() / 4
        d2 = ((points - middle) ** 2).sum(axis=1)
        d2[[a, b]] = np.inf
        if d2.min() >= radius2:
            kept.add((a, b))
    graph = gabriel_graph(points).tocoo()
    assert {(a, b) for a, b in zip(*graph.coords, strict=True) if a < b} == kept


def test_both_searches_agree_where_the_choice_is_made():
    points = np.random.default_rng(2).normal(size=(400, 5))
    by_tree = gabriel._pairs_by_tree(points, Run())
    by_rows = gabriel._pairs_by_distance(points, "euclidean", Run())
    assert set(map(tuple, by_tree.tolist())) == set(map(tuple, by_rows.tolist()))


def test_a_square_keeps_both_diagonals_and_copies_share_their_edges():
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    np.testing.assert_array_equal(gabriel_graph(square).toarray(), 1 - np.eye(4))
    with_copy = gabriel_graph([[0, 0], [0, 0], [1, 0], [3, 0]]).toarray()
    np.testing.assert_array_equal(with_copy, [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])


def test_row_order_and_scale_change_nothing():
    points = np.random.default_rng(3).normal(size=(200, 3))
    order = np.random.default_rng(4).permutation(200)
    graph = gabriel_graph(points).toarray()
    np.testing.assert_array_equal(gabriel_graph(points[order]).toarray(), graph[np.ix_(order, order)])
    np.testing.assert_array_equal(gabriel_graph(points * 1e-150).toarray(), graph)
    np.testing.assert_array_equal(gabriel_graph(points * 1e150).toarray(), graph)


def test_small_and_read_only_input():
    assert gabriel_graph(np.zeros((0, 2))).shape == (0, 0)
    assert gabriel_graph([[1.0]]).nnz == 0
    assert gabriel_graph(np.zeros((3, 0))).nnz == 6  # points without a coordinate are copies of one another
    points = np.random.default_rng(5).normal(size=(30, 2))
    points.flags.writeable = False
    assert gabriel_graph(np.asfortranarray(points)).nnz == gabriel_graph(points).nnz > 0
    assert damier.gabriel_graph is gabriel_graph
    frame = pd.DataFrame(points, columns=["a", "b"])
    assert (gabriel_graph(frame) != gabriel_graph(points)).nnz == 0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], "Expected 2D"),
        ([[np.nan, 1.0]], "missing"),
        ([[np.inf, 1.0]], "infinity"),
        (np.ma.array([[1.0], [2.0]], mask=[[False], [True]]), "missing"),
        ([[1 + 2j, 3.0]], "Complex"),
        ([["a", 1.0]], "categories"),
    ],
)
def test_refusals_say_what_to_do(points, message):
    with pytest.raises(ValueError, match=message):
        gabriel_graph(points)


@pytest.mark.parametrize("d", [1, 3, 7])
@pytest.mark.parametrize("scale", [2.0**-1060, 2.0**-600, 2.0**600, 2.0**1021])
def test_numbers_of_any_size(d, scale):
    points = np.round(np.random.default_rng(6).uniform(-1, 1, size=(60, d)), 3)
    points = np.ldexp(np.rint(np.ldexp(points, 12)), -12)  # exact even where few bits are left
    scaled = points * scale
    np.testing.assert_array_equal(gabriel_graph(scaled).toarray(), gabriel_graph(points).toarray())


def test_distances_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match=r"'cityblock'.*overflow"):
        gabriel_graph([[1e200], [-1e200], [0.0]], metric="cityblock")
    with pytest.raises(ValueError, match=r"'cosine'.*NaN"):
        gabriel_graph([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], metric="cosine")


def test_a_graph_beyond_memory_is_refused(monkeypatch):
    points = np.repeat([[0.0], [1.0]], 500, axis=0)
    monkeypatch.setattr(memory, "memory_size", lambda: 1e6)
    with pytest.raises(MemoryError, match=r"Gabriel graph, with 1e\+06 edges.*fewer edges"):
        gabriel_graph(points)
    with pytest.raises(MemoryError, match="band of the distances between 2000 points"):
        gabriel_graph(np.random.default_rng(0).normal(size=(2000, 8)))


def test_a_band_of_distances_is_all_that_is_held():
    points = np.random.default_rng(0).normal(size=(1500, 8))
    gabriel_graph(points[:50])
    tracemalloc.start()
    gabriel_graph(points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1500**2 * 0.6
