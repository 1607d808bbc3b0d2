"""The coclustering search against the literal formula 5."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from damier.criteria import coclustering_cost
from damier.search.cocluster import search as cc
from damier.search.cocluster import spectral, state
from damier.search.run import Run, Stopped
from tests import naive


def find(table, seed=0, n_threads=1, **options):
    """Search as an estimator does, in a run."""
    run = Run(n_threads, **options)
    found = run.call(cc.search_coclustering, sp.csr_array(table), seed=seed, run=run)
    return found, run.ended


def random_table(rng, n_rows, n_columns, mean=0.7):
    table = rng.poisson(mean, (n_rows, n_columns))
    table[np.arange(n_rows), rng.integers(0, n_columns, n_rows)] += 1
    table[rng.integers(0, n_rows, n_columns), np.arange(n_columns)] += 1
    return table


def search_of(table, row_labels, column_labels, seed=0, n_threads=1):
    search = state.CoclusteringSearch(sp.csr_array(table), np.random.default_rng(seed), Run(n_threads))
    search.rows.labels = np.unique(row_labels, return_inverse=True)[1].astype(np.int32)
    search.columns.labels = np.unique(column_labels, return_inverse=True)[1].astype(np.int32)
    return search


def naive_cost(table, search):
    return naive.coclustering_cost(
        table.tolist(), search.rows.labels.tolist(), search.columns.labels.tolist()
    )


def planted(rng, sizes, blocks, n_instances, spread=0.3):
    """Rows, columns and blocks of very different densities; binary."""
    rows, columns = (rng.integers(0, b, n) for n, b in zip(sizes, blocks, strict=True))
    weight = rng.gamma(spread, 1, blocks)[rows][:, columns]
    table = (rng.random(sizes) < np.minimum(1, n_instances * weight / weight.sum())).astype(int)
    kept = np.ix_(table.any(1), table.any(0))
    return table[kept], rows[table.any(1)], columns[table.any(0)]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(2, 9), st.integers(1, 5), st.integers(1, 5))
def test_every_step_changes_the_cost_as_it_says(seed, n_rows, n_columns, row_clusters, column_clusters):
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_rows, n_columns, mean=rng.choice([0.2, 2.0, 15.0]))
    search = search_of(
        table, rng.integers(0, row_clusters, n_rows), rng.integers(0, column_clusters, n_columns), seed
    )
    before = naive_cost(table, search)
    assert search.cost() == pytest.approx(before, abs=1e-8)
    for axis in (0, 1):
        change = search.move(axis, 2)
        after = naive_cost(table, search)
        assert change <= 0
        assert after - before == pytest.approx(change, abs=1e-6)
        before = after
    search.split(0, slack=10.0)
    search.split(1, slack=10.0)
    before = naive_cost(table, search)
    labels = search.rows.labels.copy(), search.columns.labels.copy()
    kept, tree = search.merge()
    assert len(tree.axes) == labels[0].max() + labels[1].max()
    for n_steps in range(len(tree.axes) + 1):
        merged = [
            state.merged_labels(tree, axis, n_steps, labels[axis].max() + 1)[labels[axis]] for axis in (0, 1)
        ]
        cost = naive.coclustering_cost(table.tolist(), merged[0].tolist(), merged[1].tolist())
        told = tree.costs[n_steps - 1] if n_steps else 0.0
        assert cost - before == pytest.approx(told, abs=1e-6)
    assert naive_cost(table, search) - before == pytest.approx(min(0.0, *tree.costs, 0.0), abs=1e-6)
    assert kept == 0 or tree.costs[kept - 1] == pytest.approx(min(tree.costs))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 4))
def test_redrawn_labels_follow_the_cost(seed, n_values, most):
    """Cold draws go down only; hot ones keep cells and totals whole."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, n_values, 6, mean=rng.choice([0.2, 2.0, 15.0]))
    search = search_of(table, rng.integers(0, most, n_values), rng.integers(0, 3, 6), seed)
    search.redraw(0, most, 2.0)
    assert search.rows.n_clusters <= most
    for axis in (0, 1, 0, 1):
        before = naive_cost(table, search)
        search.redraw(axis, most, 0.0)
        assert naive_cost(table, search) <= before + 1e-6


def test_draws_are_as_frequent_as_their_costs_say():
    """One value between two clusters: the odds are those of the literal costs."""
    table = np.array([[3, 0], [0, 3], [2, 1]])
    costs = [naive.coclustering_cost(table.tolist(), [0, 1, side], [0, 1]) for side in (0, 1, 2)]
    temperature = 1.5
    odds = np.exp(-np.array(costs) / temperature)
    search = search_of(table, [0, 1, 0], [0, 1])
    drawn = np.zeros(3)
    for _ in range(3000):
        values, clusters = search._clusters(0, 3)
        noise = temperature * search.rng.gumbel(size=(1, 3))
        state.redraw_labels(np.array([2]), values, clusters, search.rows.n_clusters, noise)
        drawn[search.rows.labels[2]] += 1
        search.rows.labels[2] = 0
    np.testing.assert_allclose(drawn / 3000, odds / odds.sum(), atol=0.04)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_each_merge_is_the_cheapest_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 6, 5, mean=1.5)
    search = search_of(table, np.arange(6), np.arange(5))
    labels = [np.arange(6), np.arange(5)]
    before = naive.coclustering_cost(table.tolist(), labels[0].tolist(), labels[1].tolist())
    _, tree = search.merge()
    cost = before
    for s in range(len(tree.axes)):
        options = []
        for axis in (0, 1):
            for a, b in itertools.combinations(np.unique(labels[axis]), 2):
                tried = [labels[0].copy(), labels[1].copy()]
                tried[axis][tried[axis] == b] = a
                options.append(naive.coclustering_cost(table.tolist(), tried[0].tolist(), tried[1].tolist()))
        cost = before + tree.costs[s]
        assert cost == pytest.approx(min(options), abs=1e-6)
        axis = tree.axes[s]
        labels[axis] = np.where(labels[axis] == tree.gone[s], tree.kept[s], labels[axis])


@pytest.mark.parametrize("axis", [0, 1])
def test_splits_are_priced_by_the_criterion(axis):
    rng = np.random.default_rng(5)
    table, *labels = planted(rng, (60, 50), (4, 4), 1500)
    labels[axis] = np.zeros_like(labels[axis])
    search = search_of(table, *labels)
    before = naive_cost(table, search)
    assert search.split(axis, slack=0.0) == 1
    assert search.axes[axis].n_clusters == 2
    assert naive_cost(table, search) < before


def test_local_moves_agree_with_trying_every_cluster():
    """After moves have converged, no single move to any cluster lowers the literal cost."""
    rng = np.random.default_rng(3)
    table = random_table(rng, 12, 10, mean=1.2)
    search = search_of(table, rng.integers(0, 3, 12), rng.integers(0, 3, 10))
    while search.move(0, 50) + search.move(1, 50) < 0:
        pass
    lowest = naive_cost(table, search)
    for axis in search.axes:
        for v, b in itertools.product(range(axis.n_values), range(axis.n_clusters + 1)):
            kept = axis.labels.copy()
            axis.labels[v] = b
            axis.close_gaps()
            assert naive_cost(table, search) >= lowest - 1e-6
            axis.labels = kept


def partitions_of(n):
    def grow(labels, most):
        if len(labels) == n:
            yield labels
            return
        for label in range(most + 1):
            yield from grow([*labels, label], max(most, label + 1))

    return list(grow([], 0))


@pytest.mark.parametrize("seed", range(6))
def test_small_tables_are_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 2, 5), rng.integers(0, 2, 4)
    table = rng.poisson(np.where(rows[:, None] == columns, 8.0, 1.0)) + 1
    found, _ = find(table, seed)
    reached = coclustering_cost(table, *found.labels)
    lowest = min(
        coclustering_cost(table, a, b) for a, b in itertools.product(partitions_of(5), partitions_of(4))
    )
    assert reached == pytest.approx(lowest, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_planted_blocks_are_found(seed):
    rng = np.random.default_rng(seed)
    table, rows, columns = planted(rng, (300, 400), (5, 6), 30_000)
    found, _ = find(table, seed)
    cost = coclustering_cost(table, *found.labels)
    assert cost <= coclustering_cost(table, rows, columns) + 1e-6
    assert len(set(zip(found.labels[0], rows, strict=True))) == len(set(rows))


@pytest.mark.parametrize("seed", [0, 6, 9])
def test_blocks_hardly_worth_their_cost_are_found(seed):
    """Eight ones per value: moves that only go down end in one block."""
    table, rows, columns = planted(np.random.default_rng(seed), (280, 250), (6, 6), 2100, spread=0.6)
    null = coclustering_cost(table, np.zeros(len(rows)), np.zeros(len(columns)))
    cost = coclustering_cost(table, rows, columns)
    found, _ = find(table)
    assert coclustering_cost(table, *found.labels) < min(cost, null)


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_one_block(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 60, 80, mean=0.3)
    found, _ = find(table, seed)
    assert found.labels[0].max() == 0
    assert found.labels[1].max() == 0
    assert len(found.tree.axes) == 0


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    table, _, _ = planted(rng, (900, 700), (6, 7), 20_000)
    one, two, three = (find(table, 1, n)[0] for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.labels[0], other.labels[0])
        np.testing.assert_array_equal(one.labels[1], other.labels[1])
        np.testing.assert_array_equal(one.tree.costs, other.tree.costs)


def test_short_table_of_log_factorials_changes_nothing(monkeypatch):
    """Beyond the table Stirling's series takes over: the same clusters, the same costs."""
    rng = np.random.default_rng(0)
    table = random_table(rng, 30, 20, mean=300.0) * (1 + 3 * (np.arange(20) > 9))
    table[:15, :10] *= 2
    whole, _ = find(table)
    monkeypatch.setattr(state, "_TABLE_LIMIT", 5000)
    short, _ = find(table)
    np.testing.assert_array_equal(whole.labels[0], short.labels[0])
    np.testing.assert_array_equal(whole.labels[1], short.labels[1])
    np.testing.assert_allclose(whole.tree.costs, short.tree.costs, rtol=1e-9, atol=1e-5)
    assert whole.labels[0].max() > 0


def test_time_limit_and_interruption_leave_a_whole_answer():
    rng = np.random.default_rng(0)
    table, _, _ = planted(rng, (300, 400), (5, 6), 20_000)
    at_once, ended = find(table, time_limit=0.0)
    assert ended == "time limit"
    assert at_once.labels[0].shape == (table.shape[0],)

    def interrupt(progress):
        if progress.text.startswith("round 1:"):
            raise KeyboardInterrupt

    null = coclustering_cost(table, np.zeros(table.shape[0]), np.zeros(table.shape[1]))
    for n_threads in (1, 2):
        stopped, ended = find(table, n_threads=n_threads, progress=interrupt)
        assert ended == "interrupted"
        assert coclustering_cost(table, *stopped.labels) < null
        assert len(stopped.tree.axes) == stopped.labels[0].max() + stopped.labels[1].max()


def test_progress_reports_the_best_cost_and_level():
    rng = np.random.default_rng(0)
    table, _, _ = planted(rng, (300, 400), (5, 6), 20_000)
    seen = []
    found, _ = find(table, progress=seen.append)
    null = coclustering_cost(table, np.zeros(table.shape[0]), np.zeros(table.shape[1]))
    costs = [progress.cost for progress in seen]
    assert costs == sorted(costs, reverse=True)
    assert all(p.level == pytest.approx(1 - p.cost / null) for p in seen)
    assert coclustering_cost(table, *found.labels) <= costs[-1] + 1e-6
    assert seen[-1].done == found.n_rounds
    assert "clusters" in seen[-1].text


def test_each_step_of_effort_searches_longer():
    rng = np.random.default_rng(4)
    table, _, _ = planted(rng, (150, 120), (5, 6), 3_000)
    runs = []
    for effort in (0, None, 4, 5):
        run = Run()
        runs.append(run.call(cc.search_coclustering, sp.csr_array(table), effort=effort, run=run))
    little, default, usual, more = runs
    np.testing.assert_array_equal(default.labels[0], usual.labels[0])
    assert little.n_rounds < usual.n_rounds == default.n_rounds < more.n_rounds
    costs = [coclustering_cost(table, *found.labels) for found in (little, usual, more)]
    assert costs[2] <= costs[1] <= costs[0] + 1e-6


def test_blocks_that_no_split_of_one_axis_shows():
    """Many blocks on the diagonal: two that are together on both axes look alike from either one."""
    rng = np.random.default_rng(50)
    rows, columns = rng.integers(0, 16, 500), rng.integers(0, 16, 500)
    density = np.where(rows[:, None] == columns, 0.4, 0.02)
    table = (rng.random((500, 500)) < density).astype(int)
    found, _ = find(table)
    cost = coclustering_cost(table, *found.labels)
    assert cost <= coclustering_cost(table, rows, columns) + 1e-6


def test_vectors_are_orthonormal_and_dependent_ones_vanish():
    rng = np.random.default_rng(0)
    lines = rng.normal(size=(4, 40)).astype(np.float32)
    lines[2] = lines[0] - lines[1]
    spectral.orthonormalize(lines, np.zeros(1, np.uint8))
    np.testing.assert_allclose(lines @ lines.T, np.diag([1, 1, 0, 1]), atol=1e-5)


def test_every_step_looks_at_the_flag():
    """Set, no step does anything; nor does a kernel that runs when it is set."""
    rng = np.random.default_rng(0)
    search = state.CoclusteringSearch(sp.csr_array(rng.poisson(0.5, (60, 50)) + 1), rng, Run())
    search.labels = rng.integers(0, 4, 60).astype(np.int32), rng.integers(0, 4, 50).astype(np.int32)
    before = search.labels
    values, clusters = search._clusters(0, 4)
    search.run.stop[0] = 1
    steps = [
        lambda: search.move(0, 3),
        lambda: search.redraw(0, 4, 1.0),
        lambda: search.split(0, 1.0),
        lambda: search.split_along_vectors(0),
        search.vectors,
        search.merge,
        lambda: spectral.nearest_centres(np.ones((9, 2), np.float32), 3, rng, search.run),
    ]
    for step in steps:
        with pytest.raises(Stopped):
            step()
    state.redraw_labels(np.arange(60), values, clusters, 4, rng.gumbel(size=(60, 4)))
    changes = np.full(4, np.inf)
    orders, deals, sides = np.argsort(before[0])[None], np.zeros((1, 60), np.int8), np.zeros(60, np.int8)
    start = np.cumsum([0, *np.bincount(before[0])])
    state.split_clusters(0, 4, start, orders, deals, values, clusters, 4, sides, changes)
    assert np.isinf(changes).all()
    assert all(np.array_equal(now, then) for now, then in zip(search.labels, before, strict=True))
    search.end()  # what comes after the search is done to the end
    _, tree = search.merge()
    assert len(tree.axes) == 6
