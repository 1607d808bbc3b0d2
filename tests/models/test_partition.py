"""Partitions apply, describe themselves and come back from JSON unchanged."""

import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from damier.intake import read_column, read_table
from damier.models import Encoding, GroupPartition, IntervalPartition, Partition
from damier.models.bounds import midpoint, shortest

FLOATS = st.floats(allow_nan=False)


def intervals(bounds=(1.0, 2.5), counts=None, **fields):
    n_parts = len(bounds) + 1 + fields.get("missing_alone", False)
    counts = counts or [[i + 1, 2 * i + 1] for i in range(n_parts)]
    defaults = {"name": "a", "classes": ("no", "yes"), "cost": 30.0, "null_cost": 40.0, "optimal": True}
    return IntervalPartition(bounds=bounds, counts=counts, **{**defaults, **fields})


def groups(groups=(("a", None), ("b",)), **fields):
    counts = [[i + 1, 2 * i + 1] for i in range(len(groups))]
    defaults = {"name": "a", "classes": (0, 1), "cost": 30.0, "null_cost": 40.0, "optimal": False}
    return GroupPartition(groups=groups, counts=counts, **{**defaults, **fields})


PARTITIONS = [
    intervals(),
    intervals(()),
    intervals((-math.inf, 0.1 + 0.2, 1e308)),
    intervals((1.0,), missing_alone=True, has_missing=True),
    intervals((86_400e6 * 1.5,), kind="date", has_missing=True),
    groups(),
    groups((("é", 'a"b<script>', "\u2028", "\U0001f600"),)),
    groups(((None, 1, 2.5), ("1", 10**20), (math.inf,))),
    groups(((True,), (False, None)), class_groups=((1,), (0,))),
]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.labels[0])
def test_json_round_trip(partition):
    text = json.dumps(partition.to_dict(), allow_nan=False)
    again = Partition.from_dict(json.loads(text))
    assert again == partition
    assert hash(again) == hash(partition)
    assert again.to_dict() == partition.to_dict()
    assert again.labels == partition.labels
    if isinstance(partition, GroupPartition):
        assert [[type(v) for v in g] for g in again.groups] == [
            [type(v) for v in g] for g in partition.groups
        ]


def test_partitions_are_frozen():
    partition = intervals()
    with pytest.raises(AttributeError):
        partition.cost = 0.0
    with pytest.raises(ValueError, match="read-only"):
        partition.counts[0, 0] = 9
    assert partition != groups()
    assert partition != intervals(cost=29.0)


@given(st.lists(FLOATS, max_size=6, unique=True), st.lists(st.floats(), max_size=20), st.booleans())
def test_intervals_apply_the_interval_and_missing_rules(bounds, values, alone):
    bounds = tuple(sorted({b + 0.0 for b in bounds}))
    partition = intervals(bounds, missing_alone=alone)
    found = partition.apply(np.array(values, dtype=np.float64))
    assert found.dtype == np.int64
    for x, part in zip(values, found, strict=True):
        expected = 0 if math.isnan(x) else sum(b < x for b in bounds) + alone
        assert part == expected


def test_groups_apply_the_unseen_rule():
    partition = groups()
    for values in (
        ["b", "a", None, "zebra"],
        np.array(["b", "a", None, "zebra"], dtype=object),
        pd.Series(["b", "a", None, "zebra"]),
        pl.Series(["b", "a", None, "zebra"]),
        pa.array(["b", "a", None, "zebra"]),
        read_column(["b", "a", None, "zebra"]),
    ):
        assert partition.apply(values).tolist() == [1, 0, 0, -1]
    assert partition.apply([None, None]).tolist() == [0, 0]
    assert groups((("a",), ("b",))).apply([None]).tolist() == [-1]
    # Equal values are one category, whatever their type.
    assert groups(((True,), (False,))).apply([0.0, 1.0]).tolist() == [1, 0]
    assert groups(((1, 7), (2,))).apply([2.0, 7, 3]).tolist() == [1, 0, -1]


def test_a_column_that_changed_its_nature_is_refused():
    with pytest.raises(ValueError, match="'a' held numbers when fitted and holds 'y' now"):
        intervals().apply(["x", "y"])
    with pytest.raises(ValueError, match="'a' held text when fitted and holds the number 1 now"):
        groups().apply([1, 2])
    with pytest.raises(ValueError, match="'a' was a number when fitted and is a date now"):
        intervals().apply([dt.date(2020, 1, 1)])
    with pytest.raises(ValueError, match="'a' was a date when fitted and is a number now"):
        intervals(kind="date").apply([1, 2])
    # A batch without any value has no nature, and booleans are numbers where numbers were fitted.
    assert intervals().apply([None, None]).tolist() == [0, 0]
    assert intervals((0.5,)).apply([True, False, None]).tolist() == [1, 0, 0]


def test_dates():
    day = 86_400e6
    first, last = dt.date(2020, 1, 31), dt.date(2020, 2, 3)
    below, above = read_column([first, last]).values
    partition = IntervalPartition.from_cuts(
        np.array([below]), np.array([above]), kind="date", **shared([[1, 0], [0, 1]])
    )
    assert partition.bounds == ((18292 + 1.5) * day,)
    assert partition.labels == ("]-inf, 2020-02-01]", "]2020-02-01, +inf[")
    days = [first, dt.date(2020, 2, 1), dt.date(2020, 2, 2), None]
    assert partition.apply(days).tolist() == [0, 0, 1, 0]
    moments = [dt.datetime(2020, 2, 1, 11), dt.datetime(2020, 2, 1, 13)]
    assert partition.apply(pd.Series(moments)).tolist() == [0, 1]
    assert intervals((-1.0,), kind="datetime").labels[0] == "]-inf, 1969-12-31 23:59:59.999999]"
    assert intervals((3.6e9,), kind="time").labels[0] == "]-inf, 01:00:00]"
    assert intervals((-3.6e9,), kind="duration").labels[0] == "]-inf, -1:00:00]"


def shared(counts):
    return {
        "name": "a",
        "classes": (0, 1),
        "counts": counts,
        "cost": 1.0,
        "null_cost": 2.0,
        "optimal": True,
    }


def test_cuts_with_missing_values_alone():
    partition = IntervalPartition.from_cuts(
        np.array([np.nan, 1.0]),
        np.array([-np.inf, 2.0]),
        has_missing=True,
        **shared([[1, 0], [3, 0], [0, 4]]),
    )
    assert partition.missing_alone
    assert partition.bounds == (1.5,)
    assert partition.n_parts == 3
    assert partition.labels == ("missing", "]-inf, 1.5]", "]1.5, +inf[")
    assert partition.apply([None, -np.inf, 1.5, np.inf]).tolist() == [0, 1, 1, 2]


def test_labels():
    assert intervals(()).labels == ("]-inf, +inf[",)
    assert intervals((2.45,), has_missing=True).labels == ("missing or ]-inf, 2.45]", "]2.45, +inf[")
    assert intervals(((2.4 + 2.5) / 2,)).labels[0] == "]-inf, 2.45]"
    close = intervals((1.0, 1.0 + 1e-15)).labels
    assert len(set(close)) == 3
    many = groups((tuple("abcdefgh"), ("i",))).labels
    assert many == ("{a, b, c, d, e, f, ... 2 more}", "{i}")
    assert groups((("x" * 80, "y"),)).labels == ("{" + "x" * 80 + ", ... 1 more}",)
    assert groups(((1,), ("1",))).labels == ("{1}", "{'1'}")


def test_level():
    assert intervals().level == 0.25
    assert intervals(cost=41.0).level == 0.0
    assert intervals((), null_cost=0.0, cost=0.0).level == 0.0


def test_evidence_is_the_stated_m_estimate():
    partition = intervals((1.0,), [[9, 1], [0, 10]])
    n, m, p = 20, 2 / 20, 1 / 2
    expected = [
        [math.log((9 + m * p) / (9 + m) / (10 / n)), math.log((1 + m * p) / (11 + m) / (10 / n))],
        [math.log((0 + m * p) / (9 + m) / (10 / n)), math.log((10 + m * p) / (11 + m) / (10 / n))],
    ]
    np.testing.assert_allclose(partition.evidence(), expected, rtol=1e-14)
    assert not intervals(()).evidence().any()


def test_evidence_with_grouped_classes():
    counts = [[3, 1, 0], [1, 1, 8]]
    partition = intervals((1.0,), counts, classes=("a", "b", "c"), class_groups=(("c",), ("b", "a")))
    n, m = 14, 3 / 14
    evidence = partition.evidence()
    np.testing.assert_array_equal(evidence[:, 0], evidence[:, 1])
    assert evidence[0, 0] == pytest.approx(math.log((4 + m / 3) / (6 + m) / (4 / n)))
    assert evidence[1, 2] == pytest.approx(math.log((8 + m / 3) / (8 + m) / (10 / n)))


def test_frames():
    for partition in (intervals((1.0,), [[3, 1], [0, 4]]), groups()):
        frame = partition.to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert frame["part"].tolist() == list(partition.labels)
        plain = partition.to_frame("dict")
        for backend, kind in (("polars", pl.DataFrame), ("pyarrow", pa.Table)):
            native = partition.to_frame(backend)
            assert isinstance(native, kind)
            assert read_table(native).names == tuple(plain)
    assert plain["count"] == [2, 5]
    assert plain["share 1"] == [0.5, 3 / 5]
    with pytest.raises(ValueError, match="unknown backend 'excel'"):
        groups().to_frame("excel")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.pop("bounds"),
        lambda plain: plain.update(model="exec"),
        lambda plain: plain.update(bounds=[2.0, 1.0]),
        lambda plain: plain.update(bounds=[{"float": "nan"}, 1.0]),
        lambda plain: plain.update(bounds=[[1.0], 1.0]),
        lambda plain: plain.update(counts=[[1, 2]]),
        lambda plain: plain.update(class_groups=[["no"]]),
        lambda plain: plain.update(kind="system"),
    ],
)
def test_spoiled_dicts_are_refused(spoil):
    plain = intervals().to_dict()
    spoil(plain)
    with pytest.raises(ValueError, match=r"partition|saved"):
        Partition.from_dict(plain)


@given(FLOATS, FLOATS, st.sampled_from(["number", "date"]))
def test_bounds_separate(one, other, kind):
    below, above = sorted((one, other))
    if below == above:
        return
    assert below <= midpoint(below, above) < above
    assert below <= shortest(below, above, kind) < above


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(0, 6))
def test_shortest_bound_has_the_fewest_digits(start, width, decimals):
    below, above = start / 10**decimals, (start + width) / 10**decimals
    found = shortest(below, above)

    def digits(x):
        mantissa = f"{abs(x):.17g}" if x != float(repr(x)) else repr(abs(x))
        return len(mantissa.split("e")[0].replace(".", "").strip("0"))

    # No number with fewer significant digits lies in between: search them all.
    for fewer in range(1, digits(found)):
        low, high = (float(f"{x:.{fewer - 1}e}") for x in (below, above))
        step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high), 1e-300))) - fewer + 1)
        for k in range(-2, 3):
            for near in (low, high):
                tried = float(f"{near + k * step:.{fewer - 1}e}")
                assert not (below <= tried < above and digits(tried) < digits(found))


def test_shortest_bounds_by_hand():
    assert shortest(0.123456, 0.123987) == 0.1237
    assert shortest(99.0, 101.0) == 100.0
    assert shortest(-2.4519, -2.4437) == -2.45
    assert shortest(5.0, 6.0) == 5.0
    assert shortest(1.0, math.nextafter(1.0, 2.0)) == 1.0
    day = 86_400e6
    assert shortest(10.2 * day, 11.9 * day, "datetime") == 11 * day


def test_encoding():
    encoding = Encoding((intervals(name="a"), groups(name="b")), "onehot")
    X = {"a": [0.0, 2.0, None], "b": ["b", "new", None]}
    assert encoding.parts(X).tolist() == [[0, 1], [1, -1], [0, 0]]
    assert encoding.transform(X).tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 0, 0, 1, 0]]
    evidence = Encoding(encoding.partitions, "evidence")
    assert evidence.transform(X)[1, 2:].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(evidence.transform(X)[0, :2], encoding.partitions[0].evidence()[0])
    for each in (encoding, evidence, Encoding(encoding.partitions)):
        again = Encoding.from_dict(json.loads(json.dumps(each.to_dict())))
        assert again == each
        np.testing.assert_array_equal(again.transform(X), each.transform(X))
        assert len(set(each.feature_names_out())) == each.transform(X).shape[1] == sum(each.widths)
    shuffled = {"b": X["b"], "more": [{}, {}, {}], "a": X["a"]}
    np.testing.assert_array_equal(encoding.transform(shuffled), encoding.transform(X))
    with pytest.raises(ValueError, match="X lacks column 'b'"):
        encoding.transform({"a": [0.0]})
    with pytest.raises(ValueError, match="1 columns, but 2"):
        encoding.transform([[0.0]])
    with pytest.raises(ValueError, match="unknown encoding"):
        Encoding((), "hot")


def test_names_that_meet_are_told_apart():
    first = groups(name="a", classes=("b:c", "d"))
    second = groups(name="a:b", classes=("c", "d"))
    names = Encoding((first, second), "evidence").feature_names_out()
    assert names == ["a:b:c", "a:d", "a:b:c (2)", "a:b:d"]


def test_classes_that_read_the_same_keep_their_columns():
    partition = IntervalPartition(
        name="a", classes=(1, "1"), counts=[[3, 1]], cost=1.0, null_cost=1.0, optimal=True, bounds=()
    )
    frame = partition.to_frame("dict")
    assert (frame["count 1"], frame["count 1 (2)"]) == ([3], [1])
    assert (frame["share 1"], frame["share 1 (2)"]) == ([0.75], [0.25])


def test_labels_do_not_round_a_bound_across_a_whole_number():
    partition = IntervalPartition(
        name="id",
        classes=(0,),
        counts=[[1], [1]],
        cost=1.0,
        null_cost=1.0,
        optimal=True,
        bounds=(1234567891.5,),
    )
    assert partition.labels == ("]-inf, 1234567891.5]", "]1234567891.5, +inf[")


def test_labels_tell_odd_text_from_what_it_looks_like():
    groups = ((None,), ("missing",), ("", " a"), ("two\nlines",), ("x" * 10_000,))
    partition = GroupPartition(
        name="g", classes=(0,), counts=[[1]] * 5, cost=1.0, null_cost=1.0, optimal=True, groups=groups
    )
    labels = ("{missing}", "{'missing'}", "{'', ' a'}", "{'two\\nlines'}", "{" + "x" * 119 + "…}")
    assert partition.labels == labels
