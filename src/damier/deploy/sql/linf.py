"""Decision lists of LINF as queries: columns in whole numbers, axes, rectangles, the nearest one, votes.

Whole numbers below 2**24 are exact in float32, where Python adds them up, and in float64, where engines do.
What Python rounds to float32 (how far a row is from a rectangle) is cast to it step by step: one operation in
float64, rounded to float32, is that operation in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from damier.deploy.sql.plan import INSTEAD, Plan
from damier.deploy.sql.writer import CannotWriteError, Node
from damier.models import GroupPartition, IntervalPartition, LinfModel, Partition
from damier.models.linf.columns import UNIT, CodedColumn, LinfColumn, ScaledColumn, place

# A number added and taken away again: what is left was rounded to a whole number, halves to even ones.
_ROUNDS = 1.5 * 2**52
_EXACT = 2**24
_LISTED_COVERS = 20


def columns_of(model: LinfModel) -> list[Partition]:
    """Return the columns on some axis: numbers as one interval, categories as groups of one value."""
    return [_partition(model.columns[j]) for j in model._used]


def _partition(column: LinfColumn) -> Partition:
    shared: dict[str, Any] = {
        "name": column.name,
        "classes": (0,),
        "cost": 0.0,
        "null_cost": 0.0,
        "optimal": False,
    }
    if isinstance(column, CodedColumn):
        groups = tuple((value,) for value in column.categories)
        return GroupPartition(counts=np.zeros((len(groups), 1), np.int64), groups=groups, **shared)
    return IntervalPartition(counts=np.zeros((1, 1), np.int64), bounds=(), **shared)


def add_votes(plan: Plan, model: LinfModel) -> list[Node]:
    """Add the steps up to the votes for each class, and return them."""
    if plan.writer.dialect.single is None:
        raise CannotWriteError(
            f"{plan.writer.dialect.engine} has no float32, in which LINF measures how far a row is from a "
            f"rectangle: {INSTEAD}."
        )
    terms = _whole_columns(plan, model)
    axes, axis_of = _add_axes(plan, model, terms)
    members = [m for m, covers in enumerate(model.members) if covers]
    found = [(_rectangle(plan, model, m, axis_of), plan.own(f"r{m}")) for m in members]
    writer = plan.writer
    if found:
        plan.step("lists", [*((writer.column(name), name) for name in axes), *found])
        places = _add_places(plan, model, axis_of, [name for _, name in found])
        _decide(plan, model, members, places)
    return _sum_votes(plan, model, members)


# ----- columns and axes


def _whole_columns(plan: Plan, model: LinfModel) -> dict[str, str]:
    """Add the steps from columns to whole numbers, or codes from 1; return their names."""
    writer = plan.writer
    used = [(_partition(model.columns[j]), model.columns[j]) for j in model._used]
    for partition, _ in used:
        plan.use(partition)
    plan.read()
    names = {column.name: plan.own(f"u{j}") for j, (_, column) in enumerate(used)}
    items: list[tuple[Node, str]] = []
    for partition, column in used:
        if isinstance(column, CodedColumn):
            items.append(plan.part(partition, names[column.name], first=1, unseen=len(column.categories) + 1))
        else:
            missing = writer.number(column.middle)
            items.append((writer.or_missing(writer.column(plan.use(partition)), missing), names[column.name]))
    plan.step("columns", items)
    scaled = [column for _, column in used if isinstance(column, ScaledColumn)]
    for step, change in (("roots", _root), ("ranges", _range), ("whole", _whole)):
        if step == "roots" and not any(column.root for column in scaled):
            continue
        changed = [
            change(plan, column, writer.column(name))
            if isinstance(column, ScaledColumn)
            else writer.column(name)
            for (_, column), name in zip(used, names.values(), strict=True)
        ]
        plan.step(step, list(zip(changed, names.values(), strict=True)))
    return names


def _root(plan: Plan, column: ScaledColumn, x: Node) -> Node:
    """Write the signed root of a column that takes it."""
    if not column.root:
        return x
    negative = exp.LT(this=x.copy(), expression=plan.writer.number(0.0))
    below = exp.Sub(this=plan.writer.number(0.0), expression=exp.Sqrt(this=exp.Neg(this=x.copy())))
    return exp.Case(ifs=[exp.If(this=negative, true=below)], default=exp.Sqrt(this=x.copy()))


def _range(plan: Plan, column: ScaledColumn, x: Node) -> Node:
    """Bring a number from the training range to 0 .. 1; far beyond, where it could overflow, to -1 and 2."""
    writer, low, high = plan.writer, column.low, column.high
    span = high / 2 - low / 2
    if not span > 0.0:
        return writer.number(0.0)
    half = exp.Mul(this=x.copy(), expression=writer.number(0.5))
    moved = exp.Paren(this=exp.Sub(this=half, expression=writer.number(low / 2)))
    branches = []
    for far, end in ((high + 4 * span, 2.0), (low - 4 * span, -1.0)):
        if math.isfinite(far) and place(np.array([far]), low, high)[0] == end * UNIT:
            beyond = exp.GTE if end > 0 else exp.LTE
            test = beyond(this=x.copy(), expression=writer.number(far))
            branches.append(exp.If(this=test, true=writer.number(end)))
    tree = writer.divide(moved, writer.number(span))
    return exp.Case(ifs=branches, default=tree) if branches else tree


def _whole(plan: Plan, column: ScaledColumn, x: Node) -> Node:
    writer = plan.writer
    if not column.high / 2 - column.low / 2 > 0.0:
        return x
    inside = writer.clipped(x, -1.0, 2.0)
    product = exp.Mul(this=inside, expression=writer.number(float(UNIT)))
    raised = exp.Paren(this=exp.Add(this=product, expression=writer.number(_ROUNDS)))
    return exp.Sub(this=raised, expression=writer.number(_ROUNDS))


def _add_axes(plan: Plan, model: LinfModel, names: dict[str, str]) -> tuple[list[str], list[str]]:
    """Add the step of the axes; return their names, and that of each axis of each cover."""
    writer, columns = plan.writer, model._column_of
    known: dict[tuple[object, ...], str] = {}
    items, axis_of = [], []
    for cover in model.covers:
        for axis in (cover.x, cover.y):
            if sum(abs(weight) for _, weight in axis) * 2 * UNIT > _EXACT:
                raise CannotWriteError(
                    f"an axis of {cover.label!r} has weights too large for float32: {INSTEAD}."
                )
            key = tuple((name, weight, cover.shares.get(name)) for name, weight in axis)
            if key not in known:
                known[key] = plan.own(f"a{len(known)}")
                terms: list[Node] = []
                for name, weight in axis:
                    value: Node = writer.column(names[name])
                    if isinstance(columns[name], CodedColumn):
                        value = writer.look_up(value, [float(share) for share in cover.shares[name]])
                    if weight != 1:
                        value = exp.Mul(this=writer.number(float(weight)), expression=value)
                    terms.append(value)
                items.append((writer.total(terms or [writer.number(0.0)]), known[key]))
            axis_of.append(known[key])
    for c, cover in enumerate(model.covers[:_LISTED_COVERS]):
        plan.comments.append(f"list {cover.member + 1}, x {axis_of[2 * c]}, y {axis_of[2 * c + 1]}: {cover}")
    if len(model.covers) > _LISTED_COVERS:
        plan.comments.append(f"... and {len(model.covers) - _LISTED_COVERS:,} more covers")
    if items:
        plan.step("axes", items)
    return [name for _, name in items], axis_of


# ----- rectangles


def _rectangles(model: LinfModel, member: int) -> list[tuple[int, int]]:
    """Return each rectangle of a member, by its number among all, with its cover."""
    packed = model.packed
    covers = range(packed.member_starts[member], packed.member_starts[member + 1])
    return [
        (r, cover)
        for cover in covers
        for r in range(packed.rectangle_starts[cover], packed.rectangle_starts[cover + 1])
    ]


def _rectangle(plan: Plan, model: LinfModel, member: int, axis_of: Sequence[str]) -> Node:
    """Write the first rectangle of a member that holds the row, from 1; 0 if none does."""
    writer = plan.writer
    ifs: list[exp.If] = []
    for k, (r, cover) in enumerate(_rectangles(model, member), 1):
        tests: list[Node] = []
        for side, edge in enumerate(model.packed.sides[r].tolist()):
            if math.isfinite(edge):
                kind = exp.LT if side % 2 else exp.GTE
                axis = writer.column(axis_of[2 * cover + side // 2])
                tests.append(kind(this=axis, expression=writer.number(edge)))
        if not tests:  # it holds every row
            return exp.Case(ifs=ifs, default=writer.whole(k)) if ifs else writer.whole(k)
        test = tests[0]
        for other in tests[1:]:
            test = exp.And(this=test, expression=other)
        ifs.append(exp.If(this=test, true=writer.whole(k)))
    return exp.Case(ifs=ifs, default=writer.whole(0))


def _add_places(plan: Plan, model: LinfModel, axis_of: Sequence[str], carried: Sequence[str]) -> list[str]:
    """Add the step of the place of each axis among the bins of its covers; return the names, axis by axis."""
    writer, packed = plan.writer, model.packed
    known: dict[tuple[str, float, float, int], str] = {}
    placed, place_of = [], []
    for i, axis in enumerate(axis_of):
        origin, scale, bins = float(packed.origins[i]), float(packed.scales[i]), int(packed.n_bins[i // 2])
        key = (axis, origin, scale, bins)
        if key not in known:
            known[key] = plan.own(f"x{len(known)}")
            moved = exp.Sub(this=writer.column(axis), expression=writer.number(origin))
            product = exp.Mul(this=writer.single(moved), expression=writer.number(scale))
            placed.append((writer.single(product), known[key]))
        place_of.append(known[key])
    kept = [(writer.column(name), name) for name in carried]
    plan.step("places", [*kept, *placed])
    if packed.open_edges:
        inside = [
            (writer.clipped(writer.column(name), 0.0, float(bins)), name)
            for (_, _, _, bins), name in known.items()
        ]
        plan.step("inside", [*((tree.copy(), name) for tree, name in kept), *inside])
    return place_of


def _distance(plan: Plan, model: LinfModel, r: int, cover: int, place_of: Sequence[str]) -> Node:
    """Write the largest distance of a row from a rectangle along an axis, in units of the axis."""
    writer, packed = plan.writer, model.packed
    ways: list[Node] = []
    for axis in (0, 1):
        x = writer.column(place_of[2 * cover + axis])
        first, last = packed.rectangles[r].tolist()[2 * axis : 2 * axis + 2]
        ways.append(exp.Sub(this=writer.number(first), expression=x))
        ways.append(exp.Sub(this=x.copy(), expression=writer.number(last + 1.0)))
    farthest = writer.single(writer.largest(ways))
    return writer.single(writer.divide(farthest, writer.number(float(packed.n_bins[cover]))))


def _decide(plan: Plan, model: LinfModel, members: Sequence[int], place_of: Sequence[str]) -> None:
    """Add the steps to the rectangle that decides in each member; beyond their number, the nearest one."""
    writer = plan.writer
    kept = [*(plan.own(f"r{m}") for m in members), *dict.fromkeys(place_of)]
    near = []
    for m in members:
        ways = [_distance(plan, model, r, cover, place_of) for r, cover in _rectangles(model, m)]
        outside = exp.EQ(this=writer.column(plan.own(f"r{m}")), expression=writer.whole(0))
        near.append((exp.Case(ifs=[exp.If(this=outside, true=writer.least(ways))]), plan.own(f"n{m}")))
    plan.step("near", [*((writer.column(name), name) for name in kept), *near])
    decided = []
    for m in members:
        own, least = writer.column(plan.own(f"r{m}")), writer.column(plan.own(f"n{m}"))
        held = _rectangles(model, m)
        ifs = [exp.If(this=exp.GT(this=own, expression=writer.whole(0)), true=own.copy())]
        for k, (r, cover) in enumerate(held[:-1], 1):
            distance = _distance(plan, model, r, cover, place_of)
            same = exp.EQ(this=distance, expression=least.copy())
            ifs.append(exp.If(this=same, true=writer.whole(len(held) + k)))
        decided.append((exp.Case(ifs=ifs, default=writer.whole(2 * len(held))), plan.own(f"d{m}")))
    plan.step("decided", decided)


def _sum_votes(plan: Plan, model: LinfModel, members: Sequence[int]) -> list[Node]:
    writer, packed = plan.writer, model.packed
    names = [plan.own(f"s{j}") for j in range(len(model.classes))]
    items = []
    for j, name in enumerate(names):
        terms: list[Node] = []
        for m in range(len(model.members)):
            if m not in members:
                terms.append(writer.number(float(packed.no_cover_vote[j])))
                continue
            inside = [float(packed.votes[r, j]) for r, _ in _rectangles(model, m)]
            outside = [vote * packed.outside_vote for vote in inside]
            terms.append(writer.look_up(writer.column(plan.own(f"d{m}")), [*inside, *outside]))
        items.append((writer.total(terms), name))
    plan.step("votes", items)
    return [writer.column(name) for name in names]
