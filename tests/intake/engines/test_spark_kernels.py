"""What Spark's workers count and add up equals the counts of all rows at once, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from damier.intake.engines.prebins import ALL, MOST_VALUES, count_numbers, no_counts, refined_binning
from damier.intake.engines.spark_kernels import adding, counting, pack_binning, unpack_counts


def _columns(rng, n_rows, n_values):
    few = rng.integers(-n_values, n_values, n_rows) / 4
    few[rng.random(n_rows) < 0.1] = np.nan
    return [few, rng.normal(size=n_rows) * 10.0 ** rng.integers(-9, 9, n_rows)]


def _through_workers(columns, codes, binnings, n_classes, values, n_partitions):
    tasks = [(j, pack_binning(binning), n_classes) for j, binning in enumerate(binnings)]
    coders = [[(len(columns), None, False, n_classes)]]
    rows = pa.RecordBatch.from_arrays([pa.array(c) for c in (*columns, codes)], ["a", "b", "y"])
    step = -(-len(codes) // n_partitions)
    count, add = counting(tasks, coders, None, values), adding([n_classes] * len(tasks))
    blocks = [b for at in range(0, len(codes), step) for b in count(iter([rows.slice(at, step)]))]
    blocks += count(iter([]))  # a partition without rows
    found = {}
    for batch in add(iter(blocks[::-1])):
        assert batch.num_rows == 1
        found[batch.column(0)[0].as_py()] = batch.column(1)[0].as_py()
    return [unpack_counts(found[j], binning, n_classes, values) for j, binning in enumerate(binnings)]


@pytest.mark.parametrize("n_classes", [2, 33, 1500])
@pytest.mark.parametrize("n_partitions", [1, 5])
def test_the_sums_of_blocks_are_the_counts_of_all_rows(n_classes, n_partitions):
    rng = np.random.default_rng(n_classes)
    columns, codes = _columns(rng, 3000, 60), rng.integers(0, n_classes, 3000)
    first = [count_numbers(no_counts(ALL, 1), column) for column in columns]
    binnings = [refined_binning(ALL, counts, n_bins=500) for counts in first]
    found = _through_workers(columns, codes, binnings, n_classes, True, n_partitions)
    for column, binning, counts in zip(columns, binnings, found, strict=True):
        expected = count_numbers(no_counts(binning, n_classes, values=True), column, codes, None, binning)
        for name in expected._fields:
            np.testing.assert_array_equal(getattr(counts, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("n_partitions", [1, 4])
def test_too_many_distinct_values_are_not_listed(n_partitions):
    """Neither where one partition has too many, nor where all of them together do."""
    rng = np.random.default_rng(0)
    n_rows = MOST_VALUES + 1000
    columns, codes = [np.arange(n_rows) % 7.0, rng.permutation(n_rows) / 8], np.zeros(n_rows, np.int64)
    few, many = _through_workers(columns, codes, [ALL, ALL], 1, True, n_partitions)
    assert len(few.values) == 7
    assert many.values is None
    assert many.counts.sum() == n_rows


def test_a_column_without_values_has_no_bins():
    columns, codes = [np.full(50, np.nan), np.arange(50) / 7], np.arange(50) % 2
    none, some = _through_workers(columns, codes, [ALL, ALL], 2, True, 3)
    assert none.missing.tolist() == [25, 25]
    assert none.counts.sum() == len(none.values) == 0
    assert some.counts.sum() == len(some.values) == 50
