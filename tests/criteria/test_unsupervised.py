import math

import numpy as np
import pytest
from scipy import sparse

from damier.criteria import coclustering_cost, unsupervised_grid_cost
from tests import naive


def random_table(seed):
    rng = np.random.default_rng(seed)
    table = rng.poisson(rng.uniform(0.2, 3), size=rng.integers(1, 9, 2))
    table[rng.integers(table.shape[0]), rng.integers(table.shape[1])] += 1
    rows = rng.integers(0, 4, table.shape[0])
    columns = rng.integers(0, 4, table.shape[1])
    return table, rows, columns


@pytest.mark.parametrize("seed", range(60))
def test_coclustering_matches_the_formula(seed):
    table, rows, columns = random_table(seed)
    expected = naive.coclustering_cost(table.tolist(), rows.tolist(), columns.tolist())
    for layout in (np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        assert coclustering_cost(layout(table), rows, columns) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_empty_rows_and_columns_are_not_values():
    table, rows, columns = random_table(3)
    wide = np.zeros((table.shape[0] + 2, table.shape[1] + 1), dtype=int)
    wide[2:, :-1] = table
    padded = coclustering_cost(wide, np.append([98, 99], rows), np.append(columns, 77))
    assert padded == coclustering_cost(table, rows, columns)


def test_duplicate_entries_add_up():
    entries = sparse.coo_array(([1, 2, 1], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert coclustering_cost(entries, [0, 1], [0, 1]) == coclustering_cost([[3, 0], [0, 1]], [0, 1], [0, 1])


def test_null_model_of_coclustering():
    table, _, _ = random_table(5)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, (v1, v2) = int(table.sum()), table.shape
    expected = math.log(v1) + math.log(v2) + math.lgamma(n + 1)
    for size, sums in ((v1, table.sum(axis=1)), (v2, table.sum(axis=0))):
        expected += math.log(math.comb(n + size - 1, size - 1)) - sum(math.lgamma(s + 1) for s in sums)
    assert coclustering_cost(table, [0] * v1, [0] * v2) == pytest.approx(
        expected + math.lgamma(n + 1), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(60))
def test_general_grid_matches_the_formula(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    parts, values, columns, axes = [], [], [], []
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            n_parts = int(rng.integers(1, 4))
            columns.append(rng.integers(0, n_parts, n))
            values.append(None)
            axes.append(n_parts)
        else:
            _, codes, value_counts = np.unique(rng.integers(0, 6, n), return_inverse=True, return_counts=True)
            _, groups = np.unique(rng.integers(0, 3, value_counts.size), return_inverse=True)
            n_parts = int(groups.max()) + 1
            columns.append(groups[codes])
            values.append(codes.tolist())
            axes.append((groups, value_counts))
        parts.append(n_parts)
    coordinates = np.column_stack(columns)
    expected = naive.unsupervised_grid_cost([tuple(row) for row in coordinates.tolist()], parts, values)
    assert unsupervised_grid_cost(coordinates, np.ones(n, dtype=int), axes) == pytest.approx(
        expected, rel=1e-12
    )
    cells, sizes = np.unique(coordinates, axis=0, return_counts=True)
    assert unsupervised_grid_cost(cells, sizes, axes) == pytest.approx(expected, rel=1e-12)


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match="negative"):
        coclustering_cost([[1, -1]], [0], [0, 0])
    with pytest.raises(ValueError, match="whole"):
        coclustering_cost([[0.5, 1]], [0], [0, 0])
    with pytest.raises(ValueError, match="no instance"):
        coclustering_cost([[0, 0]], [0], [0, 0])
    with pytest.raises(ValueError, match="row_labels must have shape"):
        coclustering_cost([[1, 1]], [0, 1], [0, 0])
    with pytest.raises(ValueError, match="column_labels must have shape"):
        coclustering_cost([[1, 1]], [0], [0])


def test_bad_axes_are_refused():
    with pytest.raises(ValueError, match="coordinates must have shape"):
        unsupervised_grid_cost([[0, 0]], [3], [1])
    with pytest.raises(ValueError, match="names part 1 of axes"):
        unsupervised_grid_cost([[1]], [3], [1])
    with pytest.raises(ValueError, match="empty group"):
        unsupervised_grid_cost([[1]], [3], [([1, 1], [1, 2])])
    with pytest.raises(ValueError, match="not a value"):
        unsupervised_grid_cost([[0]], [3], [([0, 0], [0, 3])])
    with pytest.raises(ValueError, match="do not add up"):
        unsupervised_grid_cost([[0]], [3], [([0, 0], [1, 3])])
    with pytest.raises(ValueError, match="one group and one count"):
        unsupervised_grid_cost([[0]], [3], [([0, 0], [3])])


def test_more_cells_than_numbers():
    # 2^70 cells cannot be numbered with 64 bits
    rng = np.random.default_rng(0)
    coordinates = np.repeat(rng.integers(0, 2, (5, 70)), 3, axis=0)
    coordinates[:2] = [[0] * 70, [1] * 70]
    expected = naive.unsupervised_grid_cost(
        [tuple(row) for row in coordinates.tolist()], [2] * 70, [None] * 70
    )
    cost = unsupervised_grid_cost(coordinates, np.ones(15, dtype=int), [2] * 70)
    assert cost == pytest.approx(expected, rel=1e-10)
