"""The recursive split against the literal one, written with sets and whole numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from damier.search import balls
from damier.search.balls import Graph, partition_by_balls
from damier.search.gabriel import gabriel_graph
from tests import naive


def as_graph(adjacency):
    matrix = sparse.csr_array(adjacency)
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def groups_of(found):
    return {frozenset(group.members.tolist()) for group in found.groups}


def xor(n, seed, flipped=0.0):
    random = np.random.default_rng(seed)
    points = random.uniform(-1, 1, size=(n, 2))
    codes = ((points[:, 0] > 0) ^ (points[:, 1] > 0)) ^ (random.random(n) < flipped)
    return points, codes.astype(np.int32)


@st.composite
def labeled_graphs(draw):
    n = draw(st.integers(1, 18))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 3))
    density = draw(st.sampled_from([0.05, 0.15, 0.5, 0.9]))
    adjacency = np.triu(random.random((n, n)) < density, 1)
    # Classes that follow the node numbers, mostly, so that there is something to find.
    codes = np.arange(n) * n_classes // n
    codes = np.where(random.random(n) < 0.2, random.integers(-1, n_classes, n), codes)
    path = draw(st.booleans())
    if path and n > 1:
        adjacency[np.arange(n - 1), np.arange(1, n)] = True
    return (adjacency | adjacency.T).astype(int), codes.astype(np.int32), n_classes


@given(labeled_graphs(), st.booleans(), st.sampled_from(["even", "paper"]), st.booleans())
def test_as_defined(problem, local, prior, by_bits):
    adjacency, codes, n_classes = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balls, "_MOST_NODES_BY_BITS", 1000 if by_bits else 0)
        found = partition_by_balls(as_graph(adjacency), codes, n_classes, local=local, prior=prior)
    groups, bits = naive.ball_partition(adjacency.tolist(), codes.tolist(), n_classes, local, prior)
    assert groups_of(found) == groups
    assert found.cost == pytest.approx(bits, rel=1e-9)
    for group in found.groups:
        if group.radius >= 0 and not local:
            whole = frozenset(range(len(codes)))
            ball = naive.ball_on_graph(adjacency, group.centre, group.radius, whole)
            assert ball == frozenset(group.members.tolist())


@pytest.mark.parametrize("local", [True, False])
def test_one_or_several_threads_and_small_batches(local, monkeypatch):
    points, codes = xor(600, 0, 0.1)
    graph = as_graph(gabriel_graph(points))
    alone = partition_by_balls(graph, codes, 2, local=local, prior="paper")
    assert len(alone.groups) > 3
    monkeypatch.setattr(balls, "_BATCH", 37)
    for n_threads in (1, 2, 3):
        found = partition_by_balls(graph, codes, 2, local=local, prior="paper", n_threads=n_threads)
        assert [g.members.tolist() for g in found.groups] == [g.members.tolist() for g in alone.groups]
        assert [(g.centre, g.radius) for g in found.groups] == [(g.centre, g.radius) for g in alone.groups]
        assert found.cost == alone.cost


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("kind", ["plane", "dense", "shuffled", "apart"])
def test_by_bits_and_node_by_node_are_the_same(kind, local, monkeypatch):
    points, codes = xor(700, 6, 0.1)
    if kind == "dense":
        points = np.hstack([points, np.random.default_rng(6).uniform(-1, 1, size=(700, 8))])
    if kind != "shuffled":
        order = np.lexsort(points.T)
        points, codes = points[order], codes[order]
    codes[::7] = -1
    graph = gabriel_graph(points)
    if kind == "apart":
        graph = sparse.block_diag([graph[:300, :300], graph[300:, 300:]], format="csr")
    graph = as_graph(graph)
    monkeypatch.setattr(balls, "_WORDS_WORTH_A_NEIGHBOUR", np.inf)
    by_bits = partition_by_balls(graph, codes, 2, local=local, prior="paper")
    monkeypatch.setattr(balls, "_MOST_NODES_BY_BITS", 0)
    by_node = partition_by_balls(graph, codes, 2, local=local, prior="paper")
    assert len(by_node.groups) > 1
    assert [g.members.tolist() for g in by_bits.groups] == [g.members.tolist() for g in by_node.groups]
    assert by_bits.cost == by_node.cost


def test_wide_layers_are_searched_from_the_outside_with_the_same_result(monkeypatch):
    monkeypatch.setattr(balls, "_MOST_NODES_BY_BITS", 0)
    random = np.random.default_rng(1)
    codes = random.integers(0, 2, 40).astype(np.int32)
    codes[:20] = 0
    for density in (0.3, 0.6):
        adjacency = np.triu(random.random((40, 40)) < density, 1)
        adjacency[:20, 20:] = False
        adjacency[0, 20] = True
        adjacency = (adjacency | adjacency.T).astype(int)
        found = partition_by_balls(as_graph(adjacency), codes, 2, local=True, prior="paper")
        expected = naive.ball_partition(adjacency.tolist(), codes.tolist(), 2, True, "paper")
        assert groups_of(found) == expected[0]


def test_xor_is_found_and_noise_is_not():
    points, codes = xor(1000, 2)
    graph = as_graph(gabriel_graph(points))
    found = partition_by_balls(graph, codes, 2, local=True, prior="even")
    majority = sum(np.bincount(codes[group.members]).max() for group in found.groups)
    assert majority > 950
    assert 4 <= len(found.groups) <= 15
    numbers = {"even": [], "paper": []}
    for seed in range(3):
        noise = np.random.default_rng(seed).integers(0, 2, 1000).astype(np.int32)
        for prior, seen in numbers.items():
            seen.append(len(partition_by_balls(graph, noise, 2, local=True, prior=prior).groups))
    assert numbers["even"] == [1, 1, 1]
    assert max(numbers["paper"]) > 1


def test_renaming_classes_changes_nothing():
    random = np.random.default_rng(4)
    points = random.normal(size=(500, 2))
    codes = np.digitize(np.hypot(*points.T), [0.7, 1.2]).astype(np.int32)
    graph = as_graph(gabriel_graph(points))
    for renamed in ([1, 2, 0], [2, 1, 0]):
        other = np.array(renamed, dtype=np.int32)[codes]
        one = partition_by_balls(graph, codes, 3, local=True, prior="paper")
        assert groups_of(partition_by_balls(graph, other, 3, local=True, prior="paper")) == groups_of(one)


def test_no_time_leaves_one_group_and_says_so():
    points, codes = xor(300, 5)
    graph = as_graph(gabriel_graph(points))
    found = partition_by_balls(graph, codes, 2, local=True, prior="even", time_limit=0.0)
    assert len(found.groups) == 1
    assert not found.complete
    assert found.cost == found.null_cost


def test_interrupted_it_returns_what_it_has(monkeypatch):
    points, codes = xor(300, 5)
    graph = as_graph(gabriel_graph(points))
    whole = partition_by_balls(graph, codes, 2, local=True, prior="even")
    search, calls = balls._best_ball, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(*arguments)

    monkeypatch.setattr(balls, "_best_ball", interrupted)
    found = partition_by_balls(graph, codes, 2, local=True, prior="even")
    assert 1 < len(found.groups) < len(whole.groups)
    assert sorted(np.concatenate([group.members for group in found.groups])) == list(range(300))
    assert whole.complete
    assert not found.complete
