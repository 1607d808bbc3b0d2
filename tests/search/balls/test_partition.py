"""The recursive split against the literal one, written with sets and whole numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

from damier.criteria.balls import ball_label_cost, ball_split_cost, ball_unsplit_cost
from damier.fit.balls import gabriel_graph
from damier.search.balls import draws, memory
from damier.search.balls import partition as balls
from damier.search.balls.partition import Graph
from damier.search.balls.waves import transpose
from damier.search.run import Run
from tests import naive


def as_graph(adjacency):
    matrix = sparse.csr_array(adjacency)
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def partition_by_balls(*arguments, n_threads=1, **options):
    return balls.partition_by_balls(*arguments, **{"run": Run(n_threads)} | options)


def shares_over_draws(*arguments, n_threads=1, **options):
    return draws.shares_over_draws(*arguments, **{"run": Run(n_threads)} | options)


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


@given(labeled_graphs(), st.booleans(), st.sampled_from(["even", "paper"]))
def test_as_defined(problem, local, prior):
    adjacency, codes, n_classes = problem
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


def partition_from_distances(adjacency, codes, n_classes, local, prior, n_centres=None, seed=0):
    """Split by balls read off the matrix of distances in edges, which holds hundreds of nodes."""
    random = np.random.default_rng(seed)
    whole = csgraph.shortest_path(adjacency, unweighted=True)
    waiting, groups, bits = [np.arange(len(codes))], set(), 0.0

    def counted(nodes):
        return np.bincount(codes[nodes][codes[nodes] >= 0], minlength=n_classes)

    while waiting:
        nodes = waiting.pop()
        outside = np.setdiff1d(np.arange(len(codes)), nodes)
        if local:
            distances = csgraph.shortest_path(adjacency[nodes][:, nodes], unweighted=True)
            limits = np.full(len(nodes), np.inf)
        else:
            distances = whole[np.ix_(nodes, nodes)]
            limits = whole[np.ix_(nodes, outside)].min(axis=1, initial=np.inf)
        sets = {}
        centres = np.arange(len(nodes))
        if n_centres is not None and n_centres < len(nodes) and np.count_nonzero(counted(nodes)) > 1:
            centres = np.sort(random.choice(centres, n_centres, replace=False, shuffle=False))
        for centre in centres:
            for radius in np.unique(distances[centre][np.isfinite(distances[centre])]):
                ball = distances[centre] <= radius
                if radius < limits[centre] and not ball.all():
                    sets.setdefault(ball.tobytes(), (centre, radius))
        sizes = np.array([np.frombuffer(key, dtype=bool).sum() for key in sets], dtype=int)
        n_of_size = np.bincount(sizes, minlength=len(nodes) + 1)
        stay = ball_unsplit_cost(counted(nodes), len(nodes), prior)
        best = None
        for key, size in zip(sets, sizes, strict=True):
            ball = np.frombuffer(key, dtype=bool)
            inside, left = counted(nodes[ball]), counted(nodes[~ball])
            cost = ball_split_cost(inside, left, int(n_of_size[size]), len(nodes), prior)
            order = (round(cost, 6), -size, *sets[key])
            if cost < stay - 1e-9 and (best is None or order < best[0]):
                best = order, ball, cost - ball_label_cost(inside) - ball_label_cost(left)
        if best is None:
            groups.add(frozenset(nodes.tolist()))
            bits += stay
        else:
            waiting += [nodes[~best[1]], nodes[best[1]]]
            bits += best[2]
    return groups, bits


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("kind", ["plane", "dense", "shuffled", "apart"])
def test_more_nodes_than_a_word_and_more_centres_than_a_wave(kind, local):
    points, codes = xor(330, 6, 0.1)
    if kind == "dense":
        points = np.hstack([points, np.random.default_rng(6).uniform(-1, 1, size=(330, 5))])
    if kind != "shuffled":
        order = np.lexsort(points.T)
        points, codes = points[order], codes[order]
    codes[::7] = -1
    adjacency = gabriel_graph(points)
    if kind == "apart":
        adjacency = sparse.block_diag([adjacency[:150, :150], adjacency[150:, 150:]], format="csr")
    found = partition_by_balls(as_graph(adjacency), codes, 2, local=local, prior="paper")
    groups, bits = partition_from_distances(sparse.csr_array(adjacency), codes, 2, local, "paper")
    assert len(groups) > 1
    assert groups_of(found) == groups
    assert found.cost == pytest.approx(bits, rel=1e-9)


def test_many_classes():
    random = np.random.default_rng(7)
    points = random.normal(size=(300, 3))
    codes = (np.floor(points[:, 0] * 3) % 11).astype(np.int32)
    adjacency = gabriel_graph(points)
    found = partition_by_balls(as_graph(adjacency), codes, 11, local=True, prior="even")
    assert groups_of(found) == partition_from_distances(adjacency, codes, 11, True, "even")[0]
    assert len(found.groups) > 3


def test_transposed_bits():
    words = np.random.default_rng(0).integers(0, 2**64, 64, dtype=np.uint64)
    turned = words.copy()
    transpose.py_func(turned)
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    expected = (turned[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    np.testing.assert_array_equal(bits.T, expected)


def test_drawing_all_the_centres_changes_nothing():
    points, codes = xor(280, 8, 0.1)
    graph = as_graph(gabriel_graph(points))
    for local in (True, False):
        one = partition_by_balls(graph, codes, 2, local=local, prior="paper")
        drawn = partition_by_balls(graph, codes, 2, local=local, prior="paper", n_centres=280, seed=3)
        assert [g.members.tolist() for g in drawn.groups] == [g.members.tolist() for g in one.groups]
        few = [
            partition_by_balls(graph, codes, 2, local=local, prior="even", n_centres=8, seed=seed)
            for seed in (3, 3, 4)
        ]
        assert groups_of(few[0]) == groups_of(few[1]) != groups_of(few[2])
        assert all(found.cost < found.null_cost for found in few)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("n_centres", [1, 5, 40])
def test_a_drawn_ball_is_priced_among_the_drawn(n_centres, local):
    points, codes = xor(200, 11, 0.1)
    adjacency = gabriel_graph(points)
    options = {"local": local, "prior": "even", "n_centres": n_centres, "seed": 5}
    found = partition_by_balls(as_graph(adjacency), codes, 2, **options)
    groups, bits = partition_from_distances(adjacency, codes, 2, **options)
    assert len(groups) > 1
    assert groups_of(found) == groups
    assert found.cost == pytest.approx(bits, rel=1e-9)


def test_shares_over_draws_are_a_mean_of_partitions_whatever_the_threads():
    points, codes = xor(300, 9, 0.1)
    codes[::5] = -1
    graph = as_graph(gabriel_graph(points))
    options = {"local": True, "n_partitions": 5, "seed": 11}
    total, n_drawn = shares_over_draws(graph, codes, 2, **options)
    assert n_drawn == 5
    expected = np.zeros((300, 2))
    for k in range(5):
        prior = ("even", "paper")[k % 2]
        found = partition_by_balls(graph, codes, 2, local=True, prior=prior, n_centres=16, seed=11 + k)
        for group in found.groups:
            known = codes[group.members][codes[group.members] >= 0]
            known = known if len(known) else codes[codes >= 0]
            expected[group.members] += np.bincount(known, minlength=2) / len(known)
    np.testing.assert_allclose(total, expected)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(
            shares_over_draws(graph, codes, 2, **options, n_threads=n_threads)[0], total
        )
    none, n_drawn = shares_over_draws(graph, codes, 2, **options, run=Run(time_limit=0.0))
    assert n_drawn == 0
    assert not none.any()


def stopping_at(monkeypatch, run, n_calls):
    """Stop the run within the search of the n-th ball."""
    search, calls = balls._best_ball, []

    def stopping(*arguments):
        calls.append(1)
        if len(calls) == n_calls:
            run.stop[0] = 1
        return search(*arguments)

    monkeypatch.setattr(balls, "_best_ball", stopping)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_interrupted_draws_keep_those_that_are_whole(n_threads, monkeypatch):
    points, codes = xor(200, 10)
    graph = as_graph(gabriel_graph(points))
    run = Run(n_threads)
    stopping_at(monkeypatch, run, 100)
    options = {"local": True, "n_partitions": 100, "seed": 0, "run": run}
    total, n_drawn = shares_over_draws(graph, codes, 2, **options)
    assert 0 < n_drawn < 100
    np.testing.assert_allclose(total.sum(axis=1), n_drawn)
    monkeypatch.undo()
    options = {"local": True, "n_partitions": n_drawn, "seed": 0}
    np.testing.assert_array_equal(shares_over_draws(graph, codes, 2, **options)[0], total)


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
    run = Run(time_limit=0.0)
    found = partition_by_balls(graph, codes, 2, local=True, prior="even", run=run)
    assert len(found.groups) == 1
    assert run.ended == "time limit"
    assert found.cost == found.null_cost


def test_interrupted_it_returns_what_it_has(monkeypatch):
    points, codes = xor(300, 5)
    graph = as_graph(gabriel_graph(points))
    whole = partition_by_balls(graph, codes, 2, local=True, prior="even")
    run = Run()
    stopping_at(monkeypatch, run, 3)
    found = partition_by_balls(graph, codes, 2, local=True, prior="even", run=run)
    assert 1 < len(found.groups) < len(whole.groups)
    assert whole.cost < found.cost < found.null_cost
    assert sorted(np.concatenate([group.members for group in found.groups])) == list(range(300))


def test_progress_ends_at_the_cost_found():
    points, codes = xor(300, 5, 0.1)
    graph = as_graph(gabriel_graph(points))
    seen = []
    run = Run(progress=seen.append)
    found = run.call(partition_by_balls, graph, codes, 2, local=True, prior="even", run=run)
    assert len(seen) == len(found.groups) > 1
    assert seen[-1].cost == pytest.approx(found.cost)
    assert seen[-1].level == pytest.approx(1 - found.cost / found.null_cost)
    assert (seen[-1].done, seen[-1].total) == (300, 300)


def test_a_search_beyond_memory_is_refused(monkeypatch):
    points, codes = xor(300, 5)
    graph = as_graph(gabriel_graph(points))
    monkeypatch.setattr(memory, "memory_size", lambda: 10_000.0)
    with pytest.raises(MemoryError, match=r"distinct balls of 300 points.*sample"):
        partition_by_balls(graph, codes, 2, local=True, prior="even")
