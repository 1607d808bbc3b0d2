"""Pairs ranked in two stages: a glance at all, a full search of the best."""

import numpy as np
import pytest

from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.fit.grids import fit_pairs
from damier.intake import read_table, read_target
from damier.search.grid.problem import AxisCodes
from damier.search.grid.search import interaction
from damier.search.run import Run

N_COLUMNS = 12


def ranked(table, target, n_full):
    found = fit_pairs(table, target, effort=2, n_full=n_full, run=Run())
    assert all(found["done"])
    pairs = zip(found["first"], found["second"], strict=True)
    return dict(zip(pairs, zip(found["level"], found["gain"], strict=True), strict=True))


def field(x, n_fields):
    return np.floor(x * n_fields).astype(int)


# Neither column informs alone; each by the number of fields of a chessboard and the share of labels that lie.
BOARDS = [(500, 2, 0.2), (500, 3, 0.2), (500, 4, 0.2), (2000, 4, 0.3), (2000, 6, 0.2)]


@pytest.mark.parametrize(("n_rows", "n_fields", "noise"), BOARDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_chessboard_among_noise_is_found_as_by_the_full_search(n_rows, n_fields, noise, seed):
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.random(n_rows) for j in range(N_COLUMNS)}
    a, b = sorted(rng.choice(N_COLUMNS, 2, replace=False).tolist())
    y = (field(columns[f"x{a}"], n_fields) + field(columns[f"x{b}"], n_fields)) % 2 == 1
    y ^= rng.random(n_rows) < noise
    table, target = read_table(columns), read_target(y)
    planted = f"x{a}", f"x{b}"
    found = ranked(table, target, N_COLUMNS)
    full = fit_pairs(
        read_table({name: columns[name] for name in planted}), read_target(y), effort=2, run=Run()
    )
    assert next(iter(found)) == planted
    assert found[planted] == (full["level"][0], full["gain"][0])


def test_two_stages_rank_the_sample_as_the_full_search():
    columns = sample_columns(2000)
    target = read_target(columns.pop(SAMPLE_TARGET))
    table = read_table(columns)
    full, found = ranked(table, target, None), ranked(table, target, 12)
    assert list(found)[:5] == list(full)[:5]
    for pair, (level, _) in found.items():
        assert level <= full[pair][0] + 1e-12  # never more than is there
    best = sorted(full, key=lambda pair: -full[pair][0])[:5]
    assert [found[pair] for pair in best] == [full[pair] for pair in best]


def test_all_pairs_are_searched_in_full_where_they_are_few():
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.random(300) for j in range(4)}
    table, target = read_table(columns), read_target((columns["x0"] > 0.5) ^ (columns["x1"] > 0.5))
    assert ranked(table, target, 12) == ranked(table, target, None)


def coded(values):
    distinct, codes = np.unique(values, return_inverse=True)
    return AxisCodes(codes.astype(np.int32), len(distinct), False)


def test_the_interaction_is_large_for_a_chessboard_and_small_for_what_adds_up():
    rng = np.random.default_rng(0)
    x, y = rng.random(3000), rng.random(3000)
    board = (field(x, 4) + field(y, 4)) % 2 == 1
    added = rng.random(3000) < 0.2 + 0.3 * (x > 0.5) + 0.3 * (y > 0.5)
    noise = [interaction(coded(x), coded(y), rng.integers(0, 2, 3000), 2) for _ in range(20)]
    assert interaction(coded(x), coded(y), board.astype(int), 2) > 100
    assert max(noise) < 5
    assert interaction(coded(x), coded(y), added.astype(int), 2) < 8
    assert interaction(coded(np.zeros(9)), coded(np.arange(9)), np.arange(9) % 2, 2) == -np.inf
