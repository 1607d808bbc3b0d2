import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kurtosis, skew

from damier.fit.linf import _coded, _facts, _scaled
from damier.intake import read_column
from damier.models import Cover, LinfModel
from damier.models.linf.columns import UNIT, CodedColumn, ScaledColumn
from tests import naive


def random_model(seed, open_edges, n_members=2):
    random = np.random.default_rng(seed)
    columns = (
        ScaledColumn("a", False, 0.0, 1.0, 0.5),
        ScaledColumn("b", True, 0.0, 3.0, 4.0),
        CodedColumn("c", (None, "u", "v")),
    )

    def cover(member):
        used = [name for name in "abc" if random.random() < 0.7] or ["a"]
        axes = [tuple((name, int(random.choice([-1, 1]))) for name in used) for _ in range(2)]
        if seed % 5 == 0 and member == 1:
            axes[1] = ()  # all weights zero
        limits = []
        for _ in range(2):
            low = int(random.integers(-UNIT, UNIT // 2))
            limits += [low, low + int(random.integers(0, UNIT))]
        b = int(random.integers(1, 9))
        corners = [np.sort(random.integers(0, (b + 1) // 2, (3, 2)), axis=1) for _ in range(2)]
        code = int(random.integers(0, 2))
        return Cover(
            member=member,
            label="xy"[code],
            class_index=code,
            x=axes[0],
            y=axes[1],
            limits=tuple(limits),
            n_bins=b,
            rectangles=np.hstack(corners),
            counts=random.integers(0, 9, (3, 2)),
            shares={"c": tuple(random.integers(0, UNIT, 4).tolist())} if "c" in used else {},
        )

    return LinfModel(
        columns=columns,
        classes=("x", "y"),
        class_counts=(3, 5),
        members=tuple(tuple(cover(m) for _ in range(4)) for m in range(n_members)),
        open_edges=open_edges,
        shared_votes=open_edges,
        outside_vote=0.5,
    )


def rows(seed, n):
    random = np.random.default_rng(seed)
    return {
        "a": random.normal(0.5, 0.7, n),
        "b": random.normal(0, 4, n),
        "c": random.choice(np.array([None, "u", "v", "new"], dtype=object), n),
    }


@pytest.mark.parametrize("open_edges", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_scoring_is_that_of_the_literal_list(seed, open_edges):
    model = random_model(seed, open_edges)
    X = rows(seed, 150)
    path = model.decision_path(X)
    decided = naive.linf_decide(model, model.encode(X).T)
    first = np.cumsum([0, *(len(member) for member in model.members)])
    assert path.inside.any()
    for at, (cover, rectangle, inside) in enumerate(decided):
        row, member = divmod(at, len(model.members))
        assert path.cover[row, member] == cover + first[member]
        assert path.rectangle[row, member] == rectangle
        assert path.inside[row, member] == inside


def test_votes_are_counted_member_by_member():
    model = random_model(1, True)
    X = rows(9, 80)
    path = model.decision_path(X)
    prior = np.array([3, 5]) / 8
    wanted = np.zeros((80, 2))
    for row in range(80):
        for m in range(2):
            cover = model.covers[path.cover[row, m]]
            held = cover.counts[path.rectangle[row, m]].astype(float)
            own = np.eye(2)[cover.class_index]
            vote = (held + 0.7 * own + 0.3 * prior) / (held.sum() + 1)
            wanted[row] += vote**0.5 * (1.0 if path.inside[row, m] else 0.5)
    wanted = wanted**2 / (wanted**2).sum(axis=1, keepdims=True)
    assert model.predict_proba(X) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("open_edges", [True, False])
def test_a_saved_model_scores_the_same(open_edges):
    model = random_model(5, open_edges)
    again = LinfModel.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    assert again == model
    assert hash(again) == hash(model)
    X = rows(6, 100)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()


def test_a_member_without_covers_votes_for_the_class_shares():
    model = random_model(2, True)
    empty = dataclasses.replace(model, members=((), ()))
    assert empty.predict_proba(rows(0, 3)) == pytest.approx(np.tile([3 / 8, 5 / 8], (3, 1)))
    assert (empty.decision_path(rows(0, 3)).cover == -1).all()


def test_frames_are_scored_by_name_in_any_order():
    model = random_model(1, True)
    X = rows(3, 50)
    expected = model.predict_proba(X)
    assert np.ptp(expected[:, 0]) > 0.1
    other_order = {"more": np.zeros(50), "c": X["c"], "b": X["b"], "a": X["a"]}
    assert (model.predict_proba(pd.DataFrame(other_order)) == expected).all()
    assert (model.decision_path(other_order).cover == model.decision_path(X).cover).all()


def scaled_column(values, root):
    return _scaled("a", _facts([read_column(values, "a")])[0], root)


def test_numbers_are_scaled_in_fixed_point():
    column = ScaledColumn("a", False, -1.0, 3.0, 1.0)
    scaled = column.apply(read_column([-1.0, 3.0, 1.0, None, 7.1, 1e300, -np.inf, np.inf], "a"))
    assert scaled.tolist() == [0, UNIT, UNIT // 2, UNIT // 2, 2 * UNIT, 2 * UNIT, -UNIT, 2 * UNIT]
    assert scaled.dtype == np.float32
    root = scaled_column([-4.0, 0.0, 9.0, np.nan, np.inf], True)
    assert (root.low, root.high, root.middle) == (-2.0, 3.0, 0.0)
    assert root.apply(read_column([-4.0, 9.0, 0.25], "a")).tolist() == [0, UNIT, UNIT // 2]
    widest = scaled_column([-1.7e308, 1.7e308], False)
    assert widest.apply(read_column([-1.7e308, 0.0, 1.7e308], "a")).tolist() == [0, UNIT // 2, UNIT]
    # Farther than a double can hold, in units of the range: no warning either.
    narrow = scaled_column([0.0, 1e-300], False)
    assert narrow.apply(read_column([1e-300, 1e30, -1e30], "a")).tolist() == [UNIT, 2 * UNIT, -UNIT]


def test_rare_categories_share_one_place():
    column = read_column(["a"] * 5 + ["b"] * 1 + ["c"] * 3 + [None] * 4, "k")
    coded = _coded(column, 1, 3)
    assert coded.categories == (None, "a", "c")
    assert coded.apply(read_column(["b", "c", "new", None], "k")).tolist() == [3, 2, 3, 0]
    assert _coded(column, 4, 3).categories == (None, "a")
    assert CodedColumn.from_dict(json.loads(json.dumps(coded.to_dict()))) == coded


def test_wrong_input_is_named():
    model = random_model(3, True)
    with pytest.raises(ValueError, match="X lacks columns 'b', 'c'"):
        model.predict_proba({"a": [1.0]})
    with pytest.raises(ValueError, match="column 'b' held numbers when fitted and holds 'z' now"):
        model.predict_proba({"a": [1.0], "b": ["z"], "c": ["u"]})
    with pytest.raises(ValueError, match="model: unknown kind 'other', expected 'linf'"):
        LinfModel.from_dict({"model": "other"})
    with pytest.raises(ValueError, match="'columns' is missing"):
        LinfModel.from_dict({"model": "linf", "classes": []})
    whole = model.to_dict()
    with pytest.raises(
        ValueError, match=r"columns\[1\].model: unknown kind 'strange', expected 'scaled', 'coded'"
    ):
        LinfModel.from_dict({**whole, "columns": [whole["columns"][0], {"model": "strange"}]})
    plain = model.covers[0].to_dict()
    plain["rectangles"][0] = [0, 99, 0, 0]
    with pytest.raises(ValueError, match="outside the bins"):
        Cover.from_dict(plain)


@pytest.mark.parametrize("open_edges", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_sides_of_packed_rectangles_are_where_bins_change(seed, open_edges):
    model = random_model(seed, open_edges)
    if seed % 2:  # as wide as fifty columns make it
        wide = (-(1 << 22) - 12345, (1 << 22) + 6789, -17, (1 << 23) - 3)
        model = dataclasses.replace(
            model,
            members=tuple(tuple(dataclasses.replace(c, limits=wide) for c in m) for m in model.members),
        )
    sides = iter(model.packed.sides)
    for cover in model.covers:
        for x0, x1, y0, y1 in cover.rectangles.tolist():
            drawn = next(sides)
            for low, high, first, last, pair in (
                (*cover.limits[:2], x0, x1, drawn[:2]),
                (*cover.limits[2:], y0, y1, drawn[2:]),
            ):
                scale = np.float32(cover.n_bins / (high - low + 1.0))
                near = [low, high, *(int(side) for side in pair if np.isfinite(side))]
                for value in {at + step for at in near for step in (-2, -1, 0, 1, 2)}:
                    place = int((np.float32(value) - np.float32(low)) * scale)
                    place = min(max(place, 0), cover.n_bins - 1)
                    held = first <= place <= last and (open_edges or low <= value <= high)
                    assert held == (pair[0] <= np.float32(value) < pair[1])


def test_swings_bound_what_members_to_come_can_change():
    model = random_model(3, True, n_members=3)
    votes = np.split(model.packed.votes, 3)
    swings = model.packed.swings
    assert swings.shape == (4, 2)
    assert (swings[3] == 0).all()
    for m in range(3):
        for k in range(2):
            gain = max(0.0, max(vote[1 - k] - vote[k] for vote in votes[m]))
            assert swings[m, k] - swings[m + 1, k] == pytest.approx(gain)
    second = tuple(dataclasses.replace(cover, member=1) for cover in model.members[0])
    empty = dataclasses.replace(model, members=((), second))
    assert empty.packed.swings[0, 0] - empty.packed.swings[1, 0] == pytest.approx(
        0.5 * (5**0.5 - 3**0.5) / 8**0.5
    )


def test_facts_of_columns_are_those_of_their_finite_values():
    random = np.random.default_rng(0)
    columns = [random.normal(size=200), random.exponential(size=200) * 1e200, np.full(200, 7.0)]
    columns += [np.where(random.random(200) < 0.2, np.nan, random.normal(size=200)), np.full(200, np.nan)]
    columns += [random.normal(size=200), np.zeros(200)]
    columns[3][5] = np.inf
    facts = _facts([read_column(values, "a") for values in columns])
    assert len(facts) == len(columns)
    for values, known in zip(columns, facts, strict=True):
        finite = values[np.isfinite(values)]
        if not len(finite):
            assert known == (0.0, 0.0, 0.0, 0.0, 0.0)
            continue
        assert known[:3] == (finite.min(), finite.max(), np.quantile(finite, 0.5, method="lower"))
        if finite.min() == finite.max():
            assert max(known[3:]) <= 0.0
            continue
        scaled = finite / np.abs(finite).max()
        assert known.skewness == pytest.approx(skew(scaled) / np.sqrt(6 / len(finite)))
        assert known.kurtosis == pytest.approx(kurtosis(scaled) / np.sqrt(24 / len(finite)))
