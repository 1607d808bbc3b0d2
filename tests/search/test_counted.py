"""Intervals from counts in bins: those of the search on sorted rows."""

import numpy as np
import pytest

from damier.intake.engines.prebins import (
    ALL,
    LEADING,
    NumberCounter,
    exact_binning,
    only_binning,
    refined_binning,
)
from damier.search.axis.ordered import discretize
from damier.search.counted import CountedNumber, KernelCounter


def solved(x, codes, n_classes, weights=None, batch=10_000, counter=KernelCounter):
    column = CountedNumber(n_classes)
    while column.solution is None:
        held = counter(column.binning, n_classes if column.by_class else 1, column.wants_values)
        for begin in range(0, len(x), batch):
            rows = slice(begin, begin + batch)
            held.add(
                x[rows],
                codes[rows] if column.by_class else None,
                None if weights is None else weights[rows],
            )
        column.take(held.counts())
    return column


def mixture(rng, n):
    x = np.concatenate([rng.normal(size=n), rng.standard_cauchy(n) * 1e9, np.round(rng.normal(size=n), 1)])
    x[rng.random(x.size) < 0.05] = np.nan
    x[:4] = [np.inf, -np.inf, 0.0, -0.0]
    return rng.permutation(x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("values", [False, True])
def test_compiled_counts_are_those_of_numpy(values, weighted):
    rng = np.random.default_rng(0)
    x = mixture(rng, 30_000)
    codes = rng.integers(0, 3, x.size).astype(np.int32)
    weights = rng.integers(1, 9, x.size) if weighted else None
    first = KernelCounter(ALL, 1)
    first.add(x)
    few = np.round(x[:500], 1)
    exact = KernelCounter(ALL, 1, values=True)
    exact.add(few)
    for rows, binning in (
        (x, ALL),
        (x, refined_binning(ALL, first.counts(), None, 3000)),
        (few, exact_binning(exact.counts().values)),
    ):
        found = []
        for counter in (NumberCounter(binning, 3, values), KernelCounter(binning, 3, values)):
            for part in np.array_split(np.arange(len(rows)), 7):
                counter.add(rows[part], codes[part], None if weights is None else weights[part])
            found.append(counter.counts())
        for numpy_s, compiled in zip(*found, strict=True):
            assert np.array_equal(numpy_s, compiled)
            assert (numpy_s is None) == (compiled is None)


def columns(n):
    rng = np.random.default_rng(1)
    u = rng.random(n)
    yield "step", u, 1.0 * (u > 0.3)
    yield "needle", rng.permutation(n) * 1e-3, None
    yield "smooth", rng.standard_cauchy(n), None
    yield "atoms", np.where(u < 0.4, 0.0, np.where(u < 0.5, 7.0, rng.normal(size=n))), None
    yield "noise", rng.normal(size=n), 0.0 * u


@pytest.mark.parametrize("n_classes", [2, 4])
def test_intervals_are_those_of_the_sorted_rows(n_classes):
    n = 150_000
    rng = np.random.default_rng(2)
    for name, x, effect in columns(n):
        if effect is None:
            effect = np.where((x > 40) & (x < 41), 2.0, 0.0) if name == "needle" else np.tanh(x)
        odds = effect + rng.normal(size=n)
        codes = np.digitize(odds, np.quantile(odds, np.arange(1, n_classes) / n_classes)).astype(np.int32)
        found = solved(x, codes, n_classes)
        expected = discretize(x, codes, n_classes)
        gain = found.solution.null_cost - found.solution.cost
        most = expected.null_cost - expected.cost
        assert gain >= 0.9999 * most, name
        assert len(found.solution.counts) <= len(expected.counts) + 1
        assert found.solution.null_cost == expected.null_cost
        # What is said of the cuts is true of the rows.
        bounds = (found.solution.below + found.solution.above) / 2
        parts = np.searchsorted(bounds, x)
        counts = np.zeros_like(found.solution.counts)
        np.add.at(counts, (parts, codes), 1)
        assert (counts == found.solution.counts).all()
        assert np.isin(found.solution.below, x).all()
        assert np.isin(found.solution.above, x).all()


@pytest.mark.parametrize("decimals", [0, 2, 4])
def test_few_values_are_counted_one_by_one(decimals):
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(size=100_000) * 3, decimals)
    x[::50] = np.nan
    codes = (np.nan_to_num(x) + rng.normal(size=x.size) > 1).astype(np.int32)
    found = solved(x, codes, 2)
    expected = discretize(x, codes, 2)
    assert found.n_scans == 2
    assert found.n_distinct == len(np.unique(x[~np.isnan(x)]))
    assert found.solution.optimal is expected.optimal is True
    assert found.solution.cost == expected.cost
    assert np.array_equal(found.solution.below, expected.below, equal_nan=True)
    assert np.array_equal(found.solution.above, expected.above)
    assert (found.solution.counts == expected.counts).all()


def test_order_batches_weights_and_loops_do_not_matter():
    rng = np.random.default_rng(4)
    x = rng.normal(size=80_000)
    codes = (x + rng.normal(size=x.size) > 0).astype(np.int32)
    weights = rng.integers(1, 4, x.size)
    reference = solved(x, codes, 2, weights).solution
    order = rng.permutation(x.size)
    again = [
        solved(x[order], codes[order], 2, weights[order], batch=777).solution,
        solved(np.repeat(x, weights), np.repeat(codes, weights), 2).solution,
        solved(x, codes, 2, weights, counter=NumberCounter).solution,
    ]
    for solution in again:
        assert solution.cost == reference.cost
        assert (solution.below == reference.below).all()
        assert (solution.counts == reference.counts).all()


def test_a_column_without_values_is_one_part():
    found = solved(np.full(100, np.nan), np.arange(100, dtype=np.int32) % 2, 2)
    assert found.solution.counts.tolist() == [[50, 50]]
    assert found.n_missing == 100


@pytest.mark.parametrize("kind", [NumberCounter, KernelCounter])
def test_numbers_that_no_scan_met_are_refused(kind):
    """A table that changes between two scans must not be counted beyond its bins."""
    rng = np.random.default_rng(0)
    first = KernelCounter(ALL, 1)
    first.add(rng.uniform(1.5, 1.501, 20_000))
    binning = refined_binning(ALL, first.counts())
    for new in (1.50000000001, 1.5055):  # below and above all others with these leading bits
        with pytest.raises(ValueError, match="the table changed while it was read"):
            kind(binning, 1).add(np.array([1.5005, new]))
    for depth in (binning, only_binning(binning, np.arange(LEADING) < 0)):
        with pytest.raises(ValueError, match="the table changed while it was read"):
            kind(depth, 1).add(np.array([1.5005, -7.0]))  # other leading bits than all before
    kind(only_binning(binning, np.arange(LEADING) < 0), 1).add(np.array([1.5005]))  # dropped, not refused


def test_rows_that_are_not_those_of_the_scan_before_are_refused():
    """All values are known, and still the counts betray another table."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000)
    codes = (x > 0.5).astype(np.int32)

    def scan(column, kept):
        counter = KernelCounter(column.binning, 2 if column.by_class else 1, column.wants_values)
        counter.add(x[kept], codes[kept] if column.by_class else None)
        column.take(counter.counts())

    everything, fewer = slice(None), np.abs(x - 0.5) > 0.001
    for n_good in range(3):
        column = CountedNumber(2, class_counts=np.bincount(codes))
        for _ in range(n_good):
            scan(column, everything)
        with pytest.raises(ValueError, match="the table changed while it was read"):
            scan(column, fewer)
