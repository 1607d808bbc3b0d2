import itertools
import signal
import threading
import time

import numpy as np
import pytest

from damier.search.axis.alone import partition_alone
from damier.search.grid import starts
from damier.search.grid.axes import polish
from damier.search.grid.merge import greedy_merge
from damier.search.grid.needle import climb, screen
from damier.search.grid.problem import (
    AxisCodes,
    alone_penalty,
    build_problem,
    count_cells,
    found_grid,
    in_codes,
    put_aside,
)
from damier.search.grid.search import search_alone, search_grid, search_pair
from damier.search.grid.starts import Climber
from damier.search.grid.state import Solution, load_parts, new_grid, new_work
from damier.search.run import Run
from tests import naive


def coded(values, categorical=False):
    found, codes = np.unique(values, return_inverse=True)
    return AxisCodes(codes.astype(np.int32), len(found), categorical)


def random_problem(rng, n_rows, categorical, n_classes, n_values=8):
    axes = [coded(rng.integers(n_values, size=n_rows), c) for c in categorical]
    classes = rng.integers(n_classes, size=n_rows)
    classes[:n_classes] = np.arange(n_classes)  # every class occurs
    return axes, classes.astype(np.int32)


def naive_cost(axes, classes, n_classes, value_parts):
    every = [value_parts.get(k, np.zeros(axis.n_values, dtype=int)) for k, axis in enumerate(axes)]
    return naive.grid_cost_of_parts(
        [axis.codes.tolist() for axis in axes],
        classes.tolist(),
        n_classes,
        [parts.tolist() for parts in every],
        [axis.n_values for axis in axes],
        [axis.categorical for axis in axes],
    )


def scatter_parts(rng, problem, grid, axes):
    """Fill a grid with random parts."""
    for k, axis in enumerate(axes):
        n_parts = int(rng.integers(1, min(4, axis.n_values) + 1))
        if axis.categorical:
            base = problem.first_value[k]
            parts = np.concatenate([np.arange(n_parts), rng.integers(n_parts, size=axis.n_values - n_parts)])
            grid.group[base : base + axis.n_values] = rng.permutation(parts)
        else:
            starts = np.flatnonzero(problem.fresh[k])[1:]
            grid.start[k, 1:n_parts] = np.sort(rng.choice(starts, n_parts - 1, replace=False))
        grid.n_parts[k] = n_parts


KINDS_OF_AXES = [(False, False, False), (True, True), (False, True, False, True)]


@pytest.mark.parametrize("categorical", KINDS_OF_AXES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_costs_of_kernels_are_the_formula(categorical, n_classes):
    rng = np.random.default_rng(7)
    for _ in range(8):
        axes, classes = random_problem(rng, int(rng.integers(6, 60)), categorical, n_classes)
        problem = build_problem(axes, classes, n_classes)
        grid, work = new_grid(problem), new_work(problem, np.zeros(1, np.uint8))
        scatter_parts(rng, problem, grid, axes)
        load_parts(problem, grid, work)

        def check(now, before=np.inf, problem=problem, grid=grid, work=work, axes=axes, classes=classes):
            parts = in_codes(problem, axes, put_aside(problem, grid))
            assert grid.cost[0] == pytest.approx(naive_cost(axes, classes, n_classes, parts), abs=1e-8), now
            assert grid.cost[0] <= before + 1e-8
            assert grid.tally[0] == len(parts)
            assert not work.counts.any()
            assert not work.sizes.any()
            return grid.cost[0]

        cost = check("loaded")
        selected = np.flatnonzero(grid.n_parts > 1)
        polish(problem, grid, work, selected.copy(), False, 1)
        cost = check("moved", cost)
        assert np.array_equal(np.flatnonzero(grid.n_parts > 1), selected)
        greedy_merge(problem, grid, work)
        cost = check("merged", cost)
        polish(problem, grid, work, np.arange(len(axes)), True, 2)
        check("polished", cost)


@pytest.mark.parametrize("categorical", KINDS_OF_AXES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_greedy_merge_is_the_literal_one(categorical, n_classes):
    rng = np.random.default_rng(3)
    for _ in range(10):
        axes, classes = random_problem(rng, 25, categorical, n_classes, n_values=5)
        problem = build_problem(axes, classes, n_classes)
        grid, work = new_grid(problem), new_work(problem, np.zeros(1, np.uint8))
        scatter_parts(rng, problem, grid, axes)
        load_parts(problem, grid, work)
        # with the numbers the groups have in the grid: of merges that cost the same the first is made
        start = in_codes(problem, axes, Solution(grid.n_parts, grid.start, grid.group, 0.0))
        start = [start.get(k, np.zeros(axis.n_values, dtype=int)).tolist() for k, axis in enumerate(axes)]
        greedy_merge(problem, grid, work)
        literal = naive.grid_greedy_merge(
            [axis.codes.tolist() for axis in axes],
            classes.tolist(),
            n_classes,
            start,
            [axis.n_values for axis in axes],
            [axis.categorical for axis in axes],
        )
        assert grid.cost[0] == pytest.approx(literal, abs=1e-9)


def test_moving_one_bound_finds_its_best_place():
    rng = np.random.default_rng(11)
    for _ in range(20):
        axes, classes = random_problem(rng, 40, (False, False), 3, n_values=12)
        problem = build_problem(axes, classes, 3)
        grid, work = new_grid(problem), new_work(problem, np.zeros(1, np.uint8))
        grid.n_parts[:] = 2
        for k in range(2):
            grid.start[k, 1] = rng.choice(np.flatnonzero(problem.fresh[k])[1:])
        load_parts(problem, grid, work)
        other = in_codes(problem, axes, put_aside(problem, grid))[1]
        polish(problem, grid, work, np.array([0]), False, 0)
        best = min(
            naive_cost(axes, classes, 3, {0: (np.arange(axes[0].n_values) >= cut).astype(int), 1: other})
            for cut in range(1, axes[0].n_values)
        )
        assert grid.cost[0] == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("categorical", [(False, False), (True, False), (True, True)])
def test_search_reaches_the_best_of_all_grids(categorical):
    rng = np.random.default_rng(5)
    for draw in range(4):
        axes = [coded(rng.integers(5, size=40), c) for c in categorical]
        tilt = (axes[0].codes > 2) ^ (axes[1].codes % 2 == 0)
        classes = np.where(rng.random(40) < 0.1, ~tilt, tilt).astype(np.int32)
        every = itertools.product(*(naive.axis_partitions(a.n_values, a.categorical) for a in axes))
        best = min(
            naive_cost(axes, classes, 2, {k: np.array(p) for k, p in enumerate(parts)}) for parts in every
        )
        found = search_grid(axes, classes, 2, seed=draw)
        assert found.best.cost == pytest.approx(best, abs=1e-7)


def parity(rng, n_rows, n_axes, n_used, n_classes=2, cuts_per_axis=1):
    """Draw rows whose class is the sum of the parts modulo n_classes, cuts well off the quantiles."""
    X = rng.random((n_rows, n_axes))
    total = np.zeros(n_rows, dtype=int)
    cuts = np.sort(rng.uniform(0.3, 0.7, (n_used, cuts_per_axis)), axis=1)
    if cuts_per_axis > 1:
        cuts = np.sort((np.arange(cuts_per_axis) + rng.uniform(0.8, 1.2, cuts.shape)) / (cuts_per_axis + 1))
    for k in range(n_used):
        total += np.searchsorted(cuts[k], X[:, k])
    axes = [coded(column) for column in X.T]
    classes = (total % n_classes).astype(np.int32)
    planted = {k: np.searchsorted(cuts[k], np.sort(X[:, k])).astype(np.int32) for k in range(n_used)}
    return axes, classes, found_grid(axes, classes, n_classes, planted).cost


@pytest.mark.parametrize(
    ("n_rows", "n_axes", "n_used", "n_classes", "n_cuts"),
    [
        (60, 2, 2, 2, 1),
        (220, 5, 5, 2, 1),
        (256, 10, 5, 2, 1),
        (256, 20, 5, 2, 1),
        (1500, 10, 10, 2, 1),
        (800, 10, 3, 3, 2),
        (2000, 2, 2, 3, 5),
    ],
)
def test_planted_patterns_are_found(n_rows, n_axes, n_used, n_classes, n_cuts):
    axes, classes, planted = parity(np.random.default_rng(1), n_rows, n_axes, n_used, n_classes, n_cuts)
    found = search_grid(axes, classes, n_classes, seed=0)
    assert planted < found.null_cost
    assert found.best.cost <= planted + 1e-6


def test_needle_among_fifty():
    axes, classes, planted = parity(np.random.default_rng(4), 300, 50, 5)
    assert search_grid(axes, classes, 2, effort=6).best.cost <= planted + 1e-6


def test_noise_gives_the_null_model():
    rng = np.random.default_rng(0)
    for draw in range(10):
        axes = [coded(rng.random(300)) for _ in range(4)] + [coded(rng.integers(9, size=300), True)]
        found = search_grid(axes, rng.integers(2, size=300).astype(np.int32), 2, seed=draw)
        assert found.best.value_parts == {}
        assert found.best.cost == found.null_cost


def same(one, other):
    assert one.best.cost == other.best.cost
    assert one.best.value_parts.keys() == other.best.value_parts.keys()
    for k, parts in one.best.value_parts.items():
        assert np.array_equal(parts, other.best.value_parts[k])


def mixed_data(rng, n_rows=400):
    axes = [coded(rng.random(n_rows)), coded(rng.integers(7, size=n_rows), True), coded(rng.random(n_rows))]
    classes = (axes[0].codes > 150) + (axes[1].codes % 2) * (axes[2].codes > 220)
    noisy = np.where(rng.random(n_rows) < 0.2, rng.integers(3, size=n_rows), classes)
    return axes, noisy.astype(np.int32)


def test_threads_rows_and_class_names_change_nothing():
    axes, classes = mixed_data(np.random.default_rng(2))
    plain = search_grid(axes, classes, 3, seed=3, n_diverse=12)
    assert plain.best.value_parts
    threaded = search_grid(axes, classes, 3, seed=3, n_diverse=12, run=Run(2))
    same(plain, threaded)
    assert [one.cost for one in plain.others] == [one.cost for one in threaded.others]
    rows = np.random.default_rng(9).permutation(classes.size)
    moved = [AxisCodes(axis.codes[rows], axis.n_values, axis.categorical) for axis in axes]
    same(plain, search_grid(moved, classes[rows], 3, seed=3))
    renamed = np.array([2, 0, 1], dtype=np.int32)[classes]
    other = search_grid(axes, renamed, 3, seed=3)
    assert other.best.cost == pytest.approx(plain.best.cost, abs=1e-9)
    assert {k: p.tolist() for k, p in other.best.value_parts.items()} == {
        k: p.tolist() for k, p in plain.best.value_parts.items()
    }


def test_collected_grids_are_distinct_and_informative():
    rng = np.random.default_rng(2)
    axes = [coded(rng.random(300)) for _ in range(6)]
    classes = (sum(axis.codes for axis in axes) + rng.normal(0, 60, 300) > 900).astype(np.int32)
    found = search_grid(axes, classes, 2, seed=1, n_diverse=12)
    assert len(found.others) > 1
    written = {str({k: p.tolist() for k, p in one.value_parts.items()}) for one in found.others}
    assert len(written) == len(found.others)
    assert all(one.cost < found.null_cost for one in found.others)
    assert found.others[0].cost == pytest.approx(found.best.cost)


def test_degenerate_inputs():
    constant = coded(np.zeros(5))
    assert search_grid([constant], np.array([0, 1, 0, 1, 1], np.int32), 2).best.value_parts == {}
    one_class = search_grid([coded(np.arange(5))], np.zeros(5, np.int32), 1)
    assert one_class.best.cost == one_class.null_cost
    one_row = search_grid([coded(np.zeros(1))], np.zeros(1, np.int32), 1)
    assert one_row.best.value_parts == {}


def test_time_limit_and_effort():
    axes, classes = mixed_data(np.random.default_rng(2))
    reports = []
    run = Run(progress=reports.append)
    quick = run.call(search_grid, axes, classes, 3, effort=0, run=run)
    assert quick.n_starts == reports[-1].done
    assert reports[-1].cost == pytest.approx(quick.best.cost)
    assert run.ended == "complete"
    began = time.monotonic()
    run = Run(time_limit=0.3)
    limited = run.call(search_grid, axes, classes, 3, run=run)
    assert limited.best.cost <= limited.null_cost
    assert run.ended == "time limit"
    assert time.monotonic() - began >= 0.3  # without an effort, the time given is used
    run = Run(time_limit=0.0)
    none = run.call(search_grid, axes, classes, 3, run=run)
    assert none.best.cost <= none.null_cost
    # an effort beyond all bounds is no end, not an overflow
    run = Run(time_limit=0.3)
    assert run.call(search_grid, axes, classes, 3, effort=10**9, run=run).n_starts > 0


def test_interruption_returns_the_best_so_far():
    axes, classes = mixed_data(np.random.default_rng(2))
    heard = threading.Event()

    def after_a_round(progress):
        if not heard.is_set():
            heard.set()
            signal.raise_signal(signal.SIGINT)

    # A process started in the background by a shell ignores Ctrl-C, and so would this test.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = Run(progress=after_a_round)
        found = run.call(search_grid, axes, classes, 3, effort=40, run=run)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.ended == "interrupted"
    assert found.best.cost < found.null_cost


def test_screen_scores_every_subset():
    rng = np.random.default_rng(8)
    signs = rng.choice([-1, 1], size=(6, 64))
    target = rng.random(64) < 0.4
    bits = np.packbits(signs < 0, axis=1, bitorder="little").view(np.uint64)
    packed = np.packbits(target, bitorder="little").view(np.uint64)
    for size in (2, 3, 4):
        top_score, top_set = np.empty(5), np.zeros((5, size), dtype=np.int64)
        prefix = np.zeros((size, bits.shape[1]), dtype=np.uint64)
        screen(bits, packed, float(target.mean()), top_score, top_set, np.arange(size), prefix)
        literal = {
            subset: abs(((target - target.mean()) * signs[list(subset)].prod(axis=0)).sum()) / 2
            for subset in itertools.combinations(range(6), size)
        }
        best = sorted(literal.values())[-5:]
        assert np.sort(top_score) == pytest.approx(best)
        for score, subset in zip(top_score, top_set, strict=True):
            assert literal[tuple(subset)] == pytest.approx(score)


def test_an_axis_is_partitioned_alone_once_for_all_climbers(monkeypatch):
    axes, classes = random_problem(np.random.default_rng(7), 200, (False, True, False), 2)
    classes = ((axes[0].codes * 2 > axes[0].n_values) ^ (classes > 1)).astype(np.int32)
    problem = build_problem(axes, classes, 2)
    first = Climber(problem, np.zeros(1, np.uint8))
    assert first._informative()[0] == 0  # so that there is something to hand over
    second = Climber(problem, np.zeros(1, np.uint8), first.alone)
    monkeypatch.setattr(starts, "partition_alone", None)
    assert second._informative() == first._informative()


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_axis_alone_is_the_best_of_all_its_partitions(categorical, n_classes):
    rng = np.random.default_rng(4)
    for _ in range(5):
        axes, classes = random_problem(rng, 60, (categorical, False), n_classes, n_values=6)
        classes = np.where(rng.random(60) < 0.6, axes[0].codes % n_classes, classes).astype(np.int32)
        problem = build_problem(axes, classes, n_classes)
        alone = Climber(problem, np.zeros(1, np.uint8))._alone(0)
        every = naive.axis_partitions(axes[0].n_values, categorical)
        best = min(naive_cost(axes, classes, n_classes, {0: np.array(parts)}) for parts in every)
        cost = naive_cost(axes, classes, n_classes, {}) if alone is None else alone.cost
        assert alone is None or alone.optimal
        assert cost == pytest.approx(best, abs=1e-9)
        assert cost == pytest.approx(search_alone(axes[0], classes, n_classes).cost, abs=1e-9)


@pytest.mark.parametrize("n_values", [3, 12, 10_000])
def test_many_axes_are_passed_over_only_where_one_part_is_best(n_values, monkeypatch):
    """One kernel leaves but few of many axes of noise to the search proper, and none that informs."""
    rng = np.random.default_rng(n_values)
    n_rows, n_axes = 150, 300
    classes = rng.integers(2, size=n_rows).astype(np.int32)
    axes = [coded(rng.integers(n_values, size=n_rows)) for _ in range(n_axes)]
    for k in range(0, 60, 3):  # from plain to drowned in noise; every other one in four parts
        copied = rng.random(n_rows) < 1 - k / 60
        x = np.where(copied, classes, rng.integers(2, size=n_rows)) + k % 2 * 2 * rng.integers(2, size=n_rows)
        axes[k] = coded(x + 0.9 * rng.integers(n_values, size=n_rows) / n_values)
    asked = []

    def partition(*arguments, **options):
        asked.append(1)
        return partition_alone(*arguments, **options)

    monkeypatch.setattr(starts, "partition_alone", partition)
    climber = Climber(build_problem(axes, classes, 2), np.zeros(1, np.uint8))
    informative = climber._informative()
    assert len(informative) <= len(asked) < 100
    monkeypatch.setattr(starts, "_MANY_AXES", n_axes + 1)
    one_by_one = Climber(climber.problem, np.zeros(1, np.uint8))
    assert informative == one_by_one._informative()
    assert len(informative) > 5
    assert len(asked) > n_axes  # by then each was asked for


def test_the_price_of_an_axis_alone_is_that_of_the_grid():
    axes, classes = random_problem(np.random.default_rng(1), 80, (False, True), 2, n_values=9)
    problem = build_problem(axes, classes, 2)
    for k, axis in enumerate(axes):
        price = problem.axis_prior[problem.prior_row[k], 1 : axis.n_values + 1] + problem.selection[1]
        price[0] = problem.selection[0]
        assert alone_penalty(axis, 80, 2) == pytest.approx(price)


@pytest.mark.parametrize("seed", range(6))
def test_climb_leaves_no_better_step(seed):
    rng = np.random.default_rng(seed)
    axes, classes = random_problem(rng, 50, (False, True, False), 2)
    problem = build_problem(axes, classes, 2)
    climber = Climber(problem, np.zeros(1, np.uint8))
    target = problem.classes - problem.classes.mean()
    scores = np.zeros(1)
    every = np.arange(3)
    climber._draw_cuts(rng, every)
    start, group = climber.cuts
    climb(problem, climber.grid, climber.work, target, start, group, every[None, :], every[:0], 0.0, scores)
    parts = in_codes(problem, axes, Solution(*climber.grid[:2], climber.grid.group, 0.0))

    def score(parts):
        signal_ = problem.classes - problem.classes.mean()
        for k, of_value in parts.items():
            codes = np.empty(50, dtype=int)
            codes[problem.order[k]] = np.cumsum(problem.fresh[k]) - 1
            signal_ = signal_ * np.where(of_value[codes] == 0, -1, 1)
        return abs(signal_.sum())

    assert score(parts) == pytest.approx(scores[0])
    for k in (0, 2):
        for cut in range(1, axes[k].n_values):
            assert score({**parts, k: (np.arange(axes[k].n_values) >= cut) * 1}) <= scores[0] + 1e-9
    for signs in itertools.product((0, 1), repeat=axes[1].n_values):
        assert score({**parts, 1: np.array(signs)}) <= scores[0] + 1e-9


def test_cells_of_many_axes_are_counted_by_keys_of_any_length():
    rng = np.random.default_rng(0)
    axes = [coded(rng.integers(4, size=200)) for _ in range(70)]
    classes = rng.integers(3, size=200).astype(np.int32)
    parts = {k: np.arange(4, dtype=np.int32) for k in range(70)}  # 4^70 cells
    few = {k: np.array([0, 0, 1, 1], np.int32) for k in (3, 5)}
    for value_parts in (parts, few, {}):
        cells, counts = count_cells(axes, classes, 3, value_parts)
        rows = [tuple(int(p[axes[k].codes[i]]) for k, p in value_parts.items()) for i in range(200)]
        literal = {}
        for row, label in zip(rows, classes, strict=True):
            literal.setdefault(row, [0, 0, 0])[label] += 1
        assert [tuple(cell) for cell in cells.tolist()] == sorted(literal)
        assert counts.tolist() == [literal[row] for row in sorted(literal)]


def test_an_identifier_is_left_out_and_nothing_else_changes():
    axes, classes = mixed_data(np.random.default_rng(2))
    classes = np.minimum(classes, 1)  # of two classes it is proven, of more only where one prevails
    n_rows = classes.shape[0]
    identifier = AxisCodes(np.arange(n_rows, dtype=np.int32), n_rows, True)
    problem = build_problem([*axes, identifier], classes, 2)
    climber = Climber(problem, np.zeros(1, np.uint8))
    assert len(axes) not in climber.axes
    assert climber.axes.size == sum(axis.n_values > 1 for axis in axes)
    # proven: cutting it in two alone costs more than the null model
    assert problem.axis_prior[problem.prior_row[-1], 2] >= climber.null().cost
    assert len(axes) not in search_grid([*axes, identifier], classes, 2, effort=2).best.value_parts


@pytest.mark.parametrize("categorical", [(False, False), (False, True), (True, True)])
def test_variables_of_a_pair_start_from_their_partitions_alone(categorical):
    """Alone, a variable is priced as one of two; crossed, their partitions are where the pair starts."""
    rng = np.random.default_rng(12)
    axes, _ = random_problem(rng, 400, categorical, 2)
    classes = ((axes[0].codes > 3).astype(int) + (axes[1].codes % 4 > 1) > 0).astype(np.int32)
    alone = [search_alone(axis, classes, 2) for axis in axes]
    for k, one in enumerate(alone):
        assert len(one.counts) > 1
        assert one.cost == pytest.approx(naive_cost(axes, classes, 2, {k: one.parts}), abs=1e-8)
    crossed = Climber(build_problem(axes, classes, 2), np.zeros(1, np.uint8)).cross(
        [o.parts for o in alone], 0
    )
    both = naive_cost(axes, classes, 2, {k: one.parts for k, one in enumerate(alone)})
    assert crossed.cost <= both + 1e-8
    null, together, parts, *_ = search_pair(axes, alone, classes, 2)
    assert parts is not None
    assert together == pytest.approx(naive_cost(axes, classes, 2, dict(enumerate(parts))), abs=1e-8)
    assert null == pytest.approx(naive_cost(axes, classes, 2, {}), abs=1e-8)
    assert together <= min(crossed.cost, *(one.cost for one in alone)) + 1e-8
