import numpy as np
import pytest

from damier.criteria import best_class_totals, discretization_cost, semi_supervised_cost
from tests import naive


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
def test_cost_equals_the_best_over_all_class_totals(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(60):
        labeled = rng.integers(0, rng.integers(1, 6), size=(rng.integers(1, 4), n_classes))
        totals = labeled.sum(axis=1) + rng.integers(0, 10, labeled.shape[0])
        if totals.sum() == 0:
            continue
        expected = naive.semi_supervised_cost(labeled.tolist(), totals.tolist())
        assert semi_supervised_cost(labeled, totals) == pytest.approx(expected, rel=1e-11, abs=1e-9)
        best = best_class_totals(labeled, totals)
        assert (best >= labeled).all()
        assert best.sum(axis=1).tolist() == totals.tolist()


def test_all_labeled_is_discretization():
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 30, size=(rng.integers(1, 5), rng.integers(1, 5)))
        counts[0, 0] += 1
        expected = discretization_cost(counts)
        assert semi_supervised_cost(counts, counts.sum(axis=1)) == pytest.approx(expected, rel=1e-12)


def test_without_labels_one_interval_is_best():
    one = semi_supervised_cost([[0, 0]], [20])
    assert all(semi_supervised_cost([[0, 0], [0, 0]], [left, 20 - left]) > one for left in range(1, 20))


@pytest.mark.parametrize(
    ("n_instances", "labels"), [(10, 6), (20, 8), (50, 10), (100, 12), (200, 14), (500, 16), (1000, 18)]
)
def test_least_number_of_labels_for_two_intervals(n_instances, labels):
    def splits(n_labels):
        half, known = n_instances // 2, n_labels // 2
        two = semi_supervised_cost([[known, 0], [0, known]], [half, half])
        return two < semi_supervised_cost([[known, known]], [n_instances])

    assert [n for n in range(2, labels + 1, 2) if splits(n)] == [labels]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="more labeled instances"):
        semi_supervised_cost([[3, 1]], [3])
    with pytest.raises(ValueError, match="1 intervals and totals 2"):
        semi_supervised_cost([[3, 1]], [4, 4])
    with pytest.raises(ValueError, match="negative"):
        semi_supervised_cost([[3, -1]], [4])
    with pytest.raises(ValueError, match="no instance"):
        semi_supervised_cost([[0, 0]], [0])
