import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damier.search.linf import cover as linf_cover
from damier.search.linf import project as linf_project
from damier.search.linf.search import PAPER, REFINED, Rows
from damier.search.linf.search import find_covers as find_in_rows
from tests import naive

UNIT = 1 << 17


def find_covers(columns, n_categories, codes, n_classes, seed, settings=REFINED, stop=None):
    rows = Rows.of(columns, n_categories, codes, n_classes, UNIT, settings)
    return find_in_rows(rows, seed, settings, stop)


def entry(kernel):
    """Compile a way into an inner kernel: it has none of its own."""

    @numba.njit
    def call(*arguments):
        return kernel(*arguments)

    return call


cover_bins = entry(linf_cover.cover_bins)
project = entry(linf_project.project)
count_bins = entry(linf_project.count_bins)
draw_axis = entry(linf_project.draw_axis)
uniform = entry(linf_project.uniform)
climb = entry(linf_project.climb)
gather = entry(linf_project.gather)
worth = entry(linf_project.worth)


@st.composite
def bin_matrices(draw):
    b = draw(st.integers(1, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    own = random.poisson(draw(st.sampled_from([0.3, 2.0, 8.0])), (b, b))
    other = random.poisson(draw(st.sampled_from([0.1, 1.0])), (b, b))
    return own.astype(np.int64), other.astype(np.int64)


@given(bin_matrices(), st.sampled_from([0.0, 0.1, 0.8]), st.integers(0, 6))
def test_covers_are_those_of_the_literal_algorithm(matrices, tolerance, min_cover):
    own, other = matrices
    rectangles = np.zeros((256, 4), np.int64)
    b = len(own)
    room = np.pad(own, (0, 2), constant_values=99), np.pad(other, (0, 2), constant_values=99)
    chosen, total = naive.linf_cover(own.tolist(), other.tolist(), tolerance, min_cover)
    for most in range(max(total - 1, 0), -1, -7):  # the cover is the same, whatever it is to exceed
        space = linf_cover.Space.of(b + 1)
        number, covered = cover_bins(*room, b, tolerance, float(min_cover), most, space, rectangles)
        assert [tuple(r) for r in rectangles[:number].tolist()] == chosen
        assert covered == total
    assert cover_bins(*room, b, tolerance, float(min_cover), own.sum(), space, rectangles) == (0, 0)


def table(seed, n_rows, kinds, n_classes):
    random = np.random.default_rng(seed)
    codes = random.integers(0, n_classes, n_rows)
    columns = np.empty((len(kinds), n_rows), np.int32)
    for j, kind in enumerate(kinds):
        if kind == 0:
            columns[j] = np.clip(random.normal(0.5 + 0.1 * (codes % 3), 0.1, n_rows), 0, 1) * UNIT
        else:
            columns[j] = (random.integers(0, kind, n_rows) + codes * random.integers(0, 2, n_rows)) % kind
    return columns, np.array(kinds), codes.astype(np.int32)


def test_a_projection_is_the_signed_sum_and_its_bins_count_every_row():
    random = np.random.default_rng(1)
    columns = random.integers(0, UNIT, (5, 3000)).astype(np.int32)
    shares = random.integers(0, UNIT, (1, 3000)).astype(np.int32)
    place = np.array([-1, -1, 0, -1, -1])
    chosen = np.array([4, 2, 0])
    weights = np.array([1, -1, -2])
    out = np.zeros(3000, np.int32)
    n = 2500
    limits = np.zeros(4, np.int64)
    project(columns, shares, place, n, chosen, weights, limits, 2, out)
    low, high = limits[2:]
    wanted = columns[4, :n] - shares[0, :n] - 2 * columns[0, :n]
    assert (out[:n] == wanted).all()
    assert (low, high) == (wanted.min(), wanted.max())

    codes = random.integers(0, 3, 3000).astype(np.int32)
    limits = np.array([low, high, low, high])
    space = linf_cover.Space.of(8)
    space.counts[:] = 1
    count_bins(out, out, limits, n, codes, linf_project.Aim(1, 7, 0.0, 3.0), space)
    own, other = space.own[:7, :7], space.other[:7, :7]
    place_of = np.minimum((wanted - low) * 7 // (high - low + 1), 6)
    assert (np.diag(own) == np.bincount(place_of[codes[:n] == 1], minlength=7)).all()
    assert (np.diag(other) == np.bincount(place_of[codes[:n] != 1], minlength=7)).all()
    assert own.sum() + other.sum() == n


@pytest.mark.parametrize("n_means", [1, 2, 3, 4, 5, 6, 9, 14])
def test_an_axis_has_the_weights_asked_for_and_favours_its_columns(n_means):
    means = np.random.default_rng(2).random((12, 16))
    odds = np.ones(12)
    odds[3] = 30.0
    weights, state = np.zeros(12, np.int64), np.array([12345, 6789])
    met = np.zeros(12)
    order, room = np.zeros(12, np.int64), np.zeros(16)
    for _ in range(300):
        distance = draw_axis(2, odds, means, n_means, 10, state, order, room, weights)
        assert np.abs(weights).sum() == 2
        projected = weights @ means[:, :n_means]  # those beyond are of classes without rows left
        closest = np.abs(projected[1:] - projected[0]).min(initial=np.inf)
        assert distance == pytest.approx(closest if n_means > 1 else 0.0, abs=1e-12)
        met += weights != 0
    assert met[3] > 250
    assert met.min() > 0


def test_uniform_draws_are_uniform():
    state = np.array([1, 1])
    drawn = np.array([uniform(state) for _ in range(20000)])
    assert 0 < drawn.min() < 1e-3
    assert 1 - 1e-3 < drawn.max() < 1
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(2000, abs=200)


@pytest.mark.parametrize("settings", [PAPER, REFINED], ids=["paper", "refined"])
@pytest.mark.parametrize("kinds", [(0, 0, 0), (0, 4, 30, 0), (3, 5)], ids=str)
def test_a_list_says_what_it_covers(settings, kinds):
    columns, n_categories, codes = table(3, 700, kinds, 4)
    covers = find_covers(columns, n_categories, codes, 4, (3, 4), settings)
    left = np.ones(700, bool)
    for cover in covers:
        shares = iter(cover.shares.tolist())
        numbers = np.empty(columns.shape, np.int64)
        for j, kind in enumerate(kinds):
            if kind:
                held = np.array([next(shares) for _ in range(kind + 1)])
                numbers[j] = held[columns[j]]
                met = np.bincount(columns[j][left], minlength=kind)
                own = np.bincount(columns[j][left & (codes == cover.class_index)], minlength=kind)
                seen = np.flatnonzero(met)
                assert held[seen] == pytest.approx(own[seen] / met[seen] * UNIT, abs=1.001)
                assert held[kind] == pytest.approx(
                    np.mean(codes[left] == cover.class_index) * UNIT, abs=1.001
                )
            else:
                numbers[j] = columns[j]
        bins = []
        for weights, (low, high) in zip(
            (cover.x_weights, cover.y_weights), cover.limits.reshape(2, 2), strict=True
        ):
            values = weights @ numbers[cover.columns]
            assert (low, high) == (values[left].min(), values[left].max())
            scale = np.float32(cover.n_bins / (high - low + 1.0))
            bins.append(np.minimum(((values - low).astype(np.float32) * scale).astype(int), cover.n_bins - 1))
        least, most = (
            int(factor * np.log2(left.sum())) for factor in (settings.least_bins, settings.most_bins)
        )
        assert least <= cover.n_bins <= most
        for (x0, x1, y0, y1), counts in zip(cover.rectangles, cover.counts, strict=True):
            held = left & (bins[0] >= x0) & (bins[0] <= x1) & (bins[1] >= y0) & (bins[1] <= y1)
            assert (np.bincount(codes[held], minlength=4) == counts).all()
            assert counts[cover.class_index] == counts.max() > 0
            if settings is PAPER:
                assert counts.sum() == counts[cover.class_index]
            left &= ~held
    if 0 in kinds:
        assert {cover.class_index for cover in covers} == {0, 1, 2, 3}


def test_the_order_of_rows_changes_nothing():
    columns, n_categories, codes = table(5, 500, (0, 6, 0), 3)
    order = np.random.default_rng(0).permutation(500)
    straight = find_covers(columns, n_categories, codes, 3, (8, 9))
    shuffled = find_covers(columns[:, order], n_categories, codes[order], 3, (8, 9))
    assert len(straight) == len(shuffled) > 3
    for a, b in zip(straight, shuffled, strict=True):
        assert (a.rectangles == b.rectangles).all()
        assert (a.counts == b.counts).all()
        assert (a.x_weights == b.x_weights).all()


@pytest.mark.parametrize("settings", [PAPER, REFINED], ids=["paper", "refined"])
def test_many_columns_keep_to_the_limit_and_small_classes_get_a_cover(settings):
    columns, n_categories, codes = table(6, 300, (0,) * 120, 2)
    codes[:4] = 2
    columns[:, :4] //= 8
    covers = find_covers(columns, n_categories, codes, 3, (1, 2), settings)
    assert {cover.class_index for cover in covers} == {0, 1, 2}
    for cover in covers:
        assert len(set(cover.columns.tolist())) == 50
        assert 1 <= np.count_nonzero(cover.x_weights) <= 38


@pytest.mark.parametrize("settings", [PAPER, REFINED], ids=["paper", "refined"])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 30])
def test_tiny_and_constant_tables_end(settings, n_rows):
    columns = np.zeros((2, n_rows), np.int32)
    codes = (np.arange(n_rows) % 2).astype(np.int32)
    covers = find_covers(columns, np.array([0, 0]), codes, 2, (1, 2), settings)
    assert all(len(cover.rectangles) == 1 for cover in covers)


def test_ranking_on_a_sample_does_not_depend_on_the_order_of_rows():
    settings = REFINED._replace(rows_ranked=200)
    columns, n_categories, codes = table(7, 900, (0, 5, 0, 0), 3)
    order = np.random.default_rng(1).permutation(900)
    straight = find_covers(columns, n_categories, codes, 3, (8, 9), settings)
    shuffled = find_covers(columns[:, order], n_categories, codes[order], 3, (8, 9), settings)
    assert [c.counts.tolist() for c in straight] == [c.counts.tolist() for c in shuffled]
    whole = find_covers(columns, n_categories, codes, 3, (8, 9))
    assert [c.counts.tolist() for c in straight] != [c.counts.tolist() for c in whole]
    left = np.ones(900, bool)
    for cover in straight:  # limits are those of all rows left, not of the sample
        if not np.any(cover.columns[np.flatnonzero(cover.x_weights)] == 1):
            values = cover.x_weights @ columns[cover.columns].astype(np.int64)
            assert tuple(cover.limits[:2]) == (values[left].min(), values[left].max())
        break


@pytest.mark.parametrize("seed", range(5))
def test_climbing_keeps_only_weights_that_cover_more(seed):
    random = np.random.default_rng(seed)
    n, b, p = 600, 12, 6
    codes = random.integers(0, 3, n).astype(np.int32)
    columns = np.clip(random.normal(0.5, 0.1, (p, n)) + 0.1 * codes, 0, 1)
    columns = (columns * UNIT).astype(np.int32)
    place, chosen, odds = np.full(p, -1), np.arange(p), np.ones(p)
    scaled, rectangles = np.zeros((0, n), np.int32), np.zeros((256, 4), np.int64)
    xy, limits = np.zeros((3, n), np.int32), np.zeros(4, np.int64)
    axes = np.eye(2, p, dtype=np.int64)
    view = linf_project.View(columns, scaled, place, codes, chosen, xy, 64, linf_cover.Space.of(b))
    at, aim = linf_project.Projection(axes, limits), linf_project.Aim(2, b, 0.2, 4.0)
    sample = linf_project.Sample.of(view, n)
    n_own = gather(view, n, 2, sample)
    assert n_own == np.count_nonzero(codes == 2)

    def covered(weights):
        values = weights @ columns.astype(np.int64)
        low, high = values.min(axis=1)[:, None], values.max(axis=1)[:, None]
        scale = (b / (high - low + 1.0)).astype(np.float32)
        u, v = np.minimum(((values - low).astype(np.float32) * scale).astype(int), b - 1)
        counts = np.zeros((2, b, b), int)
        np.add.at(counts, ((codes != 2).astype(int), u, v), 1)
        return naive.linf_cover(*counts.tolist(), 0.2, 4)[1]

    before, state = covered(axes), np.array([seed + 1, 7])
    for _ in range(4):
        after = climb(sample, at, n_own, n, aim, 10, odds, state, rectangles)
        assert after == covered(axes)
        assert after >= before
        before = after
        assert np.abs(axes).max() <= 2
        assert (np.abs(axes).sum(axis=1) > 0).all()
    assert after > covered(np.eye(2, p, dtype=np.int64))


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.8])
@pytest.mark.parametrize("n_classes", [1, 2, 9])
def test_the_worth_of_a_projection_is_exact_where_it_is_above_what_is_asked(n_classes, tolerance):
    random = np.random.default_rng(n_classes)
    n, p = 900, 4
    space, limits = linf_cover.Space.of(12), np.zeros(4, np.int64)
    for current, b in ((0, 12), (n_classes - 1, 7), (n_classes, 5)):  # the last one has no rows
        codes = random.integers(0, n_classes, n).astype(np.int32)
        columns = np.clip(random.normal(0.5, 0.1, (p, n)) + 0.1 * (codes % 3), 0, 1)
        columns = (columns * UNIT).astype(np.int32)
        xy, place, chosen = np.zeros((3, n), np.int32), np.full(p, -1), np.array([2, 0, 3])
        view = linf_project.View(columns, columns[:0], place, codes, chosen, xy, 64, space)
        axes = random.integers(-1, 2, (2, 3))
        at, aim = linf_project.Projection(axes, limits), linf_project.Aim(current, b, tolerance, 3.0)
        sample = linf_project.Sample.of(view, n)
        n_own = gather(view, n, current, sample)
        values = axes @ columns[chosen].astype(np.int64)
        low, high = values.min(axis=1)[:, None], values.max(axis=1)[:, None]
        scale = (b / (high - low + 1.0)).astype(np.float32)
        u, v = np.minimum(((values - low).astype(np.float32) * scale).astype(int), b - 1)
        own, other = np.zeros((2, b, b), int)
        np.add.at(own, (u[codes == current], v[codes == current]), 1)
        np.add.at(other, (u[codes != current], v[codes != current]), 1)
        alone = other <= tolerance * own
        wanted = own[alone].sum() - other[alone].sum()
        for enough in (-1, wanted - 1, wanted, wanted + 1, n):
            found = worth(sample, at, n_own, n, aim, float(enough))
            assert found == wanted if wanted > enough else found in (-1, wanted)


@pytest.mark.parametrize("n_classes", [20, 24])
def test_with_many_classes_one_that_failed_waits_for_the_next_phase(n_classes):
    columns, n_categories, codes = table(5, 1200, (0, 0, 0, 6), n_classes)
    lists = [
        find_covers(columns, n_categories, codes, n_classes, (3, 4), settings)
        for settings in (REFINED, REFINED._replace(most_retried=2**62))
    ]
    waiting, retried = ([(cover.class_index, *cover.limits.tolist()) for cover in one] for one in lists)
    assert (waiting == retried) == (n_classes <= REFINED.most_retried)
    assert {cover[0] for cover in waiting} == set(range(n_classes))


def test_one_column_is_enough_to_begin_with_where_there_are_many():
    random = np.random.default_rng(0)
    codes = (np.arange(1000) % 8).astype(np.int32)
    values = random.normal(size=(60, 1000)) + 5 * np.eye(60)[:, codes]
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    columns = np.rint((values - low) / (high - low) * UNIT).astype(np.int32)
    numeric = np.zeros(60, dtype=np.int64)
    wide = find_covers(columns, numeric, codes, 8, (1, 2))
    assert min(np.count_nonzero(cover.x_weights) for cover in wide) == 1
    assert 2 * len(wide) < len(
        find_covers(columns, numeric, codes, 8, (1, 2), REFINED._replace(wide_strata=np.zeros(0)))
    )
    narrow = columns[:14], numeric[:14], codes, 8, (1, 2)
    same = find_covers(*narrow, REFINED._replace(wide_strata=np.zeros(0)))
    for one, other in zip(find_covers(*narrow), same, strict=True):
        assert (one.rectangles == other.rectangles).all()


def test_the_largest_weight_keeps_sums_exact_and_is_kept_to():
    # The farthest a row can be from the least training value of an axis: two units per weight.
    most = linf_project.most_weight(UNIT)
    farthest = 2 * most * UNIT
    assert np.float32(farthest - 1) == farthest - 1 < farthest == 2**24
    assert linf_project.most_weight(4 * UNIT) == most // 4
    random = np.random.default_rng(0)
    n, b, p = 300, 8, 6
    codes = random.integers(0, 2, n).astype(np.int32)
    columns = (np.clip(random.normal(0.5, 0.1, (p, n)) + 0.1 * codes, 0, 1) * UNIT).astype(np.int32)
    heaviest = []
    for limit in (1, 12):
        axes = np.eye(2, p, dtype=np.int64)
        view = linf_project.View(
            columns,
            np.zeros((0, n), np.int32),
            np.full(p, -1),
            codes,
            np.arange(p),
            np.zeros((3, n), np.int32),
            limit,
            linf_cover.Space.of(b),
        )
        at, sample = linf_project.Projection(axes, np.zeros(4, np.int64)), linf_project.Sample.of(view, n)
        aim, state = linf_project.Aim(1, b, 0.2, 4.0), np.array([5, 7])
        n_own = gather(view, n, 1, sample)
        climb(sample, at, n_own, n, aim, 400, np.ones(p), state, np.zeros((256, 4), np.int64))
        heaviest.append(np.abs(axes).sum(axis=1).max())
    assert heaviest[0] == 1 < heaviest[1] <= 12


def test_a_list_stopped_at_once_has_no_covers():
    columns, n_categories, codes = table(5, 500, (0, 6, 0), 3)
    assert find_covers(columns, n_categories, codes, 3, (8, 9), REFINED, np.ones(1, np.uint8)) == []
