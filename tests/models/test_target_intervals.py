import numpy as np
import pytest

from damier.deploy.json import dumps, loads
from damier.fit.numeric_target import order_target, partition_for_number
from damier.intake import read_column, read_numbers
from damier.models import Encoding, IntervalPartition
from damier.models.target_intervals import QUANTILES, distribution_by_part, interval_labels


def fitted(n=400, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[:20] = np.nan
    kind = np.where(x > 0, "high", "low")
    y = np.where(np.isnan(x), 3.0, x) + 0.3 * rng.normal(size=n)
    target = read_numbers(y.round(2))
    ordered = order_target(target, weights)
    numbers = partition_for_number(read_column(x, "x"), ordered)
    groups = partition_for_number(read_column(kind, "kind"), ordered)
    return x, kind, target.values, numbers, groups


def test_distribution_is_that_of_the_rows_of_each_part():
    weights = np.random.default_rng(1).integers(1, 4, 400)
    for w in (None, weights):
        x, kind, y, numbers, groups = fitted(weights=w)
        for column, partition in ((x, numbers), (kind, groups)):
            parts = partition.apply(column)
            assert partition.n_parts > 1
            for part in range(partition.n_parts):
                rows = parts == part
                held = y[rows] if w is None else np.repeat(y[rows], w[rows])
                assert partition.counts[part].sum() == len(held)
                assert partition.target.means[part] == pytest.approx(held.mean())
                assert partition.target.quantiles[part] == pytest.approx(np.quantile(held, QUANTILES))
                intervals = np.searchsorted(partition.target_bounds, held, side="left")
                counts = np.bincount(intervals, minlength=len(partition.classes))
                assert partition.counts[part].tolist() == counts.tolist()
            everything = y if w is None else np.repeat(y, w)
            assert partition.target.overall == pytest.approx(np.quantile(everything, QUANTILES))
            assert partition.target.mean == pytest.approx(everything.mean())


def test_missing_values_are_a_part_of_their_own_where_they_differ():
    _, _, _, numbers, _ = fitted()
    assert numbers.missing_alone
    assert numbers.target.medians[0] == pytest.approx(3.0, abs=0.2)


def test_saved_and_shown():
    _, _, _, numbers, groups = fitted()
    for partition in (numbers, groups):
        assert loads(dumps(partition)) == partition
        assert partition.classes == interval_labels(partition.target_bounds)
        frame = partition.to_frame("dict")
        assert list(frame)[:4] == ["part", "count", "mean", "median"]
        assert len(frame) == 4 + 2 * len(partition.classes)
        assert "median" in partition._repr_html_()
        assert partition.gain_per_row == pytest.approx((partition.null_cost - partition.cost) / 400)


def test_a_file_without_the_field_is_one_of_classes():
    partition = IntervalPartition(
        name="age",
        classes=("no", "yes"),
        counts=[[9, 1], [2, 8]],
        cost=10.0,
        null_cost=15.0,
        optimal=True,
        bounds=(30.5,),
    )
    plain = partition.to_dict()
    assert plain.pop("target") is None
    assert IntervalPartition.from_dict(plain) == partition
    assert partition.target_bounds is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("bounds", [3.0, 2.0], "target.bounds: the bounds of the target must be ascending"),
        ("bounds", [], "intervals of the target expected"),
        ("means", [1.0], "shape"),
        ("mean", "x", "target.mean"),
    ],
)
def test_damaged_files_are_refused(field, value, message):
    _, _, _, numbers, _ = fitted()
    plain = numbers.to_dict()
    plain["target"][field] = value
    with pytest.raises(ValueError, match=message):
        IntervalPartition.from_dict(plain)


def test_means_and_medians_are_written():
    x, kind, _, numbers, groups = fitted()
    table = {"x": x[:50], "kind": np.append(kind[:49], "new")}
    for encode, of_parts in (("mean", "means"), ("median", "medians")):
        encoding = Encoding((numbers, groups), encode)
        written = encoding.transform(table)
        assert encoding.feature_names_out() == ["x", "kind"]
        assert written[:, 0].tolist() == getattr(numbers.target, of_parts)[numbers.apply(x[:50])].tolist()
        assert written[49, 1] == getattr(groups.target, encode)
        assert loads(dumps(encoding)) == encoding


def test_means_need_a_number():
    partition = IntervalPartition(
        name="age", classes=(0, 1), counts=[[9, 1]], cost=10.0, null_cost=15.0, optimal=True, bounds=()
    )
    with pytest.raises(ValueError, match="needs a target that is a number"):
        Encoding((partition,), "mean")


def test_one_part_of_equal_values():
    target = read_numbers([0.1] * 3)
    means, quantiles = distribution_by_part(target, np.zeros(3, int), 1, np.arange(3))
    assert means.tolist() == [0.1]
    assert quantiles.tolist() == [[0.1] * 7]
