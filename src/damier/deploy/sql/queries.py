"""Models as queries: a chain of named selects, from the columns to parts, scores and results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from damier.deploy.sql.linf import add_votes, columns_of
from damier.deploy.sql.plan import INSTEAD, Plan
from damier.deploy.sql.writer import CannotWriteError, Node, groups_of
from damier.intake.table import FloatArray
from damier.models import (
    BallPartition,
    CoclusteringModel,
    DataGrid,
    Encoding,
    GridEnsemble,
    GroupPartition,
    LabeledCoclustering,
    LinfModel,
    NaiveBayes,
    NaiveBayesRegression,
    PairEvidence,
    Partition,
    RegressionGrid,
    RegressorModel,
    UnsupervisedGrid,
)
from damier.models.codec import distinct_names
from damier.models.encoding import OF_NUMBERS, Encode, written_parts
from damier.models.regressor import ROUNDING

# Parts of a column that a comment lists.
_LISTED_PARTS = 24
# Combinations of parts, with and without values never seen, that a grid may list.
_MOST_CELLS = 50_000


# ----- what each model reads


def variables_of(model: Any) -> list[Partition]:
    """Return the partitions whose columns a model reads, or refuse it by name."""
    if isinstance(model, Partition):
        return [model]
    if isinstance(model, (Encoding, UnsupervisedGrid)):
        return list(model.partitions)
    if isinstance(model, (NaiveBayes, NaiveBayesRegression)):
        return [variable.partition for variable in model.variables]
    if isinstance(model, (DataGrid, RegressionGrid)):
        return list(model.partitions.values())
    if isinstance(model, GridEnsemble):
        return [p for grid in model.grids for p in grid.partitions.values()]
    if isinstance(model, CoclusteringModel):
        return [_clusters(model, "rows"), _clusters(model, "columns")]
    if isinstance(model, LinfModel):
        return columns_of(model)
    reasons = {
        BallPartition: "balls need the distance to every group's points",
        LabeledCoclustering: "its rows are profiles over all columns, not values of one",
    }
    why = next((text for kind, text in reasons.items() if isinstance(model, kind)), None)
    if why is None:
        raise CannotWriteError(
            f"{type(model).__name__} has no form in SQL: it is no model that scores rows by itself."
        )
    raise CannotWriteError(f"{type(model).__name__} has no form in SQL: {why}; {INSTEAD}.")


def _clusters(model: CoclusteringModel, axis: Any) -> Partition:
    """Return the clusters of an axis as groups of its values."""
    side = model.axis(axis)
    if side.values is None:
        raise CannotWriteError(
            "a coclustering of a matrix knows its rows and columns by their position only, and SQL needs "
            "values: fit it on a frame of pairs."
        )
    groups = tuple(
        tuple(side.values[i] for i in np.flatnonzero(side.labels == c)) for c in range(side.n_clusters)
    )
    counts = np.zeros((len(groups), 1), np.int64)
    return GroupPartition(
        name=side.name, classes=(0,), counts=counts, cost=0.0, null_cost=0.0, optimal=False, groups=groups
    )


# ----- the queries


def default_output(model: Any) -> str:
    """Return what is written of a model unless something else is asked for."""
    default = next(default for kind, (default, _) in _OUTPUTS.items() if isinstance(model, kind))
    if isinstance(model, Encoding):
        return "parts" if model.encode == "ordinal" else model.encode
    return default


def write(plan: Plan, model: Any, output: str | None) -> exp.Select:
    """Return the query of a model."""
    outputs = next(outputs for kind, (_, outputs) in _OUTPUTS.items() if isinstance(model, kind))
    chosen = output or default_output(model)
    if chosen not in outputs:
        known = " or ".join(map(repr, outputs))
        raise ValueError(f"output must be {known} for a {type(model).__name__}, got {chosen!r}.")
    return outputs[chosen](plan, model)


def _read_parts(plan: Plan, partitions: Sequence[Partition]) -> None:
    for partition in partitions:
        plan.use(partition)
    plan.read()


def _named(plan: Plan, names: Sequence[str], trees: Sequence[Node]) -> list[tuple[Node, str]]:
    return list(zip(trees, plan.writer.aliases(names, plan.keep), strict=True))


def _describe(plan: Plan, partition: Partition, first: int, what: str = "part") -> None:
    """Add a comment on how to read the parts of a column."""
    plan.comments.append(f"{partition.name}: {what} {_listed(partition, first)}")


def _listed(partition: Partition, first: int | None = None) -> str:
    """List the parts, numbered from the first if there is one; of many, those at both ends."""
    labels = partition.labels
    shown = labels if first is None else [f"{i} {label}" for i, label in enumerate(labels, first)]
    if len(shown) > _LISTED_PARTS:
        shown = [*shown[: _LISTED_PARTS // 2], "...", *shown[-(_LISTED_PARTS // 2) :]]
    return "; ".join(shown)


def _write_parts(plan: Plan, partitions: Sequence[Partition]) -> exp.Select:
    _read_parts(plan, partitions)
    for partition in partitions:
        _describe(plan, partition, 0)
    plan.comments.append("part -1: a value never seen in training")
    trees = [plan.part(partition, "")[0] for partition in partitions]
    return plan.step("", _named(plan, [p.name for p in partitions], trees), last=True)


def _partitions(model: Any) -> list[Partition]:
    return variables_of(model)


def _encoding_parts(plan: Plan, model: Any) -> exp.Select:
    return _write_parts(plan, _partitions(model))


def _encoding_onehot(plan: Plan, model: Any) -> exp.Select:
    partitions, writer = _partitions(model), plan.writer
    names = Encoding(tuple(partitions), "onehot").feature_names_out()
    _read_parts(plan, partitions)
    plan.step("parts", [plan.part(p, plan.own(f"p{i}")) for i, p in enumerate(partitions)])
    trees = []
    for i, partition in enumerate(partitions):
        _describe(plan, partition, 0)
        column = writer.column(plan.own(f"p{i}"))
        for part in range(partition.n_parts):
            yes = exp.If(this=exp.EQ(this=column.copy(), expression=writer.whole(part)), true=writer.whole(1))
            trees.append(exp.Case(ifs=[yes], default=writer.whole(0)))
    return plan.step("", _named(plan, names, trees), last=True)


def _encoding_evidence(plan: Plan, model: Any) -> exp.Select:
    return _write_parts_as(plan, model, "evidence")


def _encoding_mean(plan: Plan, model: Any) -> exp.Select:
    return _write_parts_as(plan, model, "mean")


def _encoding_median(plan: Plan, model: Any) -> exp.Select:
    return _write_parts_as(plan, model, "median")


def _write_parts_as(plan: Plan, model: Any, encode: Encode) -> exp.Select:
    partitions = _partitions(model)
    if encode in OF_NUMBERS and any(p.target is None for p in partitions):
        raise ValueError(f"output={encode!r} needs a target that is a number.")
    names = Encoding(tuple(partitions), encode).feature_names_out()
    return _write_evidence(plan, partitions, [written_parts(p, encode) for p in partitions], names)


def _write_evidence(
    plan: Plan,
    partitions: Sequence[Partition],
    tables: Sequence[Any],
    names: Sequence[str],
    pairs: Sequence[PairEvidence] = (),
) -> exp.Select:
    _score_parts(plan, partitions, pairs)
    reached = [_reached(p, table) for p, table in zip(partitions, tables, strict=True)]
    reached += [_pair_rows(pair, pair.scores) for pair in pairs]
    trees = [
        plan.writer.look_up(plan.writer.column(plan.own(f"p{i}")), column)
        for i, table in enumerate(reached)
        for column in table.T.tolist()
    ]
    return plan.step("", _named(plan, names, trees), last=True)


def _reached(partition: Partition, table: Any) -> Any:
    """Leave out the last row of a table, for values never seen, where there are none: among intervals."""
    return table[:-1] if groups_of(partition) is None else table


def _score_parts(plan: Plan, partitions: Sequence[Partition], pairs: Sequence[PairEvidence] = ()) -> None:
    """Add the steps that find the row of each table, from 1: p0, p1, ..., variables first, then pairs.

    The last row of a variable is for values never seen; `_pair_rows` has the rows of a pair.
    """
    writer = plan.writer
    _read_parts(plan, [*partitions, *(p for pair in pairs for p in pair.partitions)])
    for i, partition in enumerate(partitions):
        _describe(plan, partition, 1, f"{plan.own(f'p{i}')} is")
    names = [plan.own(f"p{i}") for i in range(len(partitions) + len(pairs))]
    items = [
        plan.part(p, name, first=1, unseen=p.n_parts + 1)
        for p, name in zip(partitions, names[: len(partitions)], strict=True)
    ]
    cells: list[tuple[Node, str]] = [(writer.column(name), name) for name in names[: len(partitions)]]
    for i, (pair, name) in enumerate(zip(pairs, names[len(partitions) :], strict=True)):
        plan.comments.append(f"{name}: cell of {pair.name}")
        columns = []
        for k, partition in enumerate(pair.partitions):
            columns.append(plan.own(f"q{i}_{k}"))
            items.append(plan.part(partition, columns[k], first=k, unseen=partition.n_parts + k))
        cells.append((_mixed(plan, columns, [_n_places(p) for p in pair.partitions]), name))
    plan.step("parts", items)
    if pairs:
        plan.step("pairs", cells)


def _n_places(partition: Partition) -> int:
    """Count the parts, and where there are values never seen, one more for them."""
    return partition.n_parts + (groups_of(partition) is not None)


def _pair_rows(pair: PairEvidence, table: FloatArray) -> FloatArray:
    """Return the rows of a pair's table by the places of its two parts; zero for a value never seen."""
    first, second = pair.partitions
    rows = np.zeros((_n_places(first), _n_places(second), table.shape[1]))
    rows[: first.n_parts, : second.n_parts] = table[:-1].reshape(first.n_parts, second.n_parts, -1)
    return rows.reshape(-1, table.shape[1])


def _bayes_scores(plan: Plan, model: NaiveBayes) -> list[Node]:
    """Add the steps up to the score of each class less that of the first, and to the largest of them, m."""
    writer = plan.writer
    active = [v for v in model.variables if v.informs]
    refined = [v.parts for v in active]
    pairs = [pair for pair in model.pairs if pair.informs]
    tables = [_reached(p, v.scores) for p, v in zip(refined, active, strict=True)]
    tables += [_pair_rows(pair, pair.scores) for pair in pairs]
    tables = [table[:, 1:] - table[:, :1] for table in tables]
    priors = (model._log_prior[1:] - model._log_prior[0]).tolist()
    names = [plan.own(f"s{j}") for j in range(1, len(model.classes))]
    zero = writer.number(0.0)
    if names:
        found = _evidence_found(plan, refined, tables, len(names), pairs, [v.partition for v in active])
        totals = [writer.total([writer.number(prior), *found[j]]) for j, prior in enumerate(priors)]
        plan.step("scores", list(zip(totals, names, strict=True)))
        of = ", ".join(f"{name} of {c}" for name, c in zip(names, model.classes[1:], strict=True))
        plan.comments.append(f"scores, less that of {model.classes[0]}: {of}")
    scores = [zero, *map(writer.column, names)]
    top = writer.largest(scores)
    plan.step("top", [*((writer.column(name), name) for name in names), (top, plan.own("m"))])
    return [score.copy() for score in scores]


def _evidence_found(
    plan: Plan,
    partitions: Sequence[Partition],
    tables: Sequence[Any],
    n_columns: int,
    pairs: Sequence[PairEvidence] = (),
    best: Sequence[Partition] = (),
) -> list[list[Node]]:
    """Add the steps that find rows of tables, and return the numbers of each column: one per table.

    Tables of pairs follow those of the partitions; comments show the best partitions.
    """
    writer = plan.writer
    if not tables:
        return [[] for _ in range(n_columns)]
    names = [plan.own(f"v{i}") for i in range(len(tables))]
    if n_columns == 1 and plan.lookup is None and not pairs:
        _read_parts(plan, partitions)
        chosen = []
        for name, partition, table, shown in zip(names, partitions, tables, best, strict=True):
            averaged = f" (averaged, in {partition.n_parts} steps)" if shown is not partition else ""
            plan.comments.append(f"{name}: evidence of {partition.name}{averaged}: {_listed(shown)}")
            values = [writer.number(value) for value in table[:, 0].tolist()]
            unseen = values.pop() if len(values) > partition.n_parts else values[0]
            column = writer.column(plan.use(partition))
            chosen.append((writer.choose_part(partition, column, values, unseen), name))
        plan.step("evidence", chosen)
        return [[writer.column(name) for name in names]]
    _score_parts(plan, partitions, pairs)
    parts = [writer.column(plan.own(f"p{i}")) for i in range(len(tables))]
    if n_columns > 1 and writer.dialect.rows:
        rows = [writer.look_up_row(p, table.tolist()) for p, table in zip(parts, tables, strict=True)]
        plan.step("evidence", list(zip(rows, names, strict=True)))
        return [[writer.field(writer.column(name), j) for name in names] for j in range(1, n_columns + 1)]
    return [
        [writer.look_up(p.copy(), t[:, j].tolist()) for p, t in zip(parts, tables, strict=True)]
        for j in range(n_columns)
    ]


def _raise_powers(plan: Plan, scores: Sequence[Node]) -> list[str]:
    """Add the steps to the power of each score less the largest, m, and to their sum, t; return the names."""
    writer = plan.writer
    powers = [plan.own(f"e{j}") for j in range(len(scores))]
    items = []
    for score, power in zip(scores, powers, strict=True):
        less = exp.Sub(this=score, expression=writer.column(plan.own("m")))
        items.append((writer.exponential(less), power))
    plan.step("powers", items)
    total = writer.total([writer.column(power) for power in powers])
    plan.step("total", [*((writer.column(p), p) for p in powers), (total, plan.own("t"))])
    return powers


def _bayes_proba(plan: Plan, model: NaiveBayes) -> exp.Select:
    writer, powers = plan.writer, _raise_powers(plan, _bayes_scores(plan, model))
    trees = [writer.divide(writer.column(power), writer.column(plan.own("t"))) for power in powers]
    return plan.step("", _named(plan, _proba_names(model.classes), trees), last=True)


def _bayes_class(plan: Plan, model: NaiveBayes) -> exp.Select:
    return _write_class(plan, _bayes_scores(plan, model), model.classes)


def _write_class(plan: Plan, scores: Sequence[Node], classes: Sequence[Any]) -> exp.Select:
    """Choose the first class whose score is the largest, found as m."""
    writer = plan.writer
    top = writer.column(plan.own("m"))
    if len({type(c) for c in classes}) > 1:
        classes = [str(c) for c in classes]
    ifs = [
        exp.If(this=exp.EQ(this=score, expression=top.copy()), true=writer.scalar(c))
        for score, c in zip(scores[:-1], classes[:-1], strict=True)
    ]
    last = writer.scalar(classes[-1])
    tree = exp.Case(ifs=ifs, default=last) if ifs else last
    return plan.step("", _named(plan, ["class"], [tree]), last=True)


def _bayes_evidence(plan: Plan, model: NaiveBayes) -> exp.Select:
    shown = [v.name for v in model.variables] + [pair.name for pair in model.pairs]
    names = distinct_names([f"{name}:{c}" for name in shown for c in model.classes])
    tables = [v.scores for v in model.variables]
    return _write_evidence(plan, [v.parts for v in model.variables], tables, names, model.pairs)


def _proba_names(classes: Sequence[Any]) -> list[str]:
    return [f"proba_{c}" for c in classes]


# ----- grids


def _grid_rows(
    grid: DataGrid, cell_shares: FloatArray, shown: Callable[[FloatArray], FloatArray]
) -> tuple[list[tuple[int, int]], list[list[float]]]:
    """Return the row of each combination of parts, and what is shown of each row; the last is any other's.

    Combinations are numbered in mixed radix, a group's one more than its last for a value never seen.

    Parameters
    ----------
    grid : DataGrid
    cell_shares : array of shape (n_cells, n_classes)
        Shares of the classes, or intervals of a number, in each cell.
    shown : callable
        From shares, row by row, to the numbers that are written.
    """
    partitions = list(grid.partitions.values())
    radix = _radix(grid)
    rows: list[list[float]] = []
    row_of: dict[tuple[float, ...], int] = {}
    keys: dict[int, int] = {}

    def add(key: int, row: list[float]) -> None:
        number = row_of.setdefault(tuple(row), len(rows) + 1)
        if number > len(rows):
            rows.append(row)
        keys[key] = number

    for parts, held in zip(grid.cells.parts.tolist(), shown(cell_shares).tolist(), strict=True):
        add(_key(parts, radix), held)
    grouped = [k for k, p in enumerate(partitions) if groups_of(p) is not None]
    if len(grid.cells) << len(grouped) > _MOST_CELLS:
        raise CannotWriteError(
            f"the grid has {len(grid.cells):,} cells over {len(grouped)} categorical variables, too many to "
            f"list with all values never seen: {INSTEAD}."
        )
    for n in range(1, len(grouped) + 1):
        for unseen in itertools.combinations(grouped, n):
            known = grid.cells.parts.copy()
            known[:, unseen] = -1
            patterns = np.unique(known, axis=0)
            given = shown(np.array([grid.shares_given(pattern) for pattern in patterns]))
            for pattern, row in zip(patterns.tolist(), given.tolist(), strict=True):
                parts = [partitions[k].n_parts if p < 0 else p for k, p in enumerate(pattern)]
                add(_key(parts, radix), row)
    rows.append(shown(grid.shares[np.newaxis])[0].tolist())
    return sorted(keys.items()), rows


def _radix(grid: Any) -> list[int]:
    radix = [_n_places(p) for p in _grid_partitions(grid)]
    if math.prod(radix) >= 2**62:
        raise CannotWriteError(f"the grid has more cells than 64 bits can number: {INSTEAD}.")
    return radix


def _key(parts: Sequence[int], radix: Sequence[int]) -> int:
    key = 0
    for part, r in zip(parts, radix, strict=True):
        key = key * r + part
    return key


def _find_keys(plan: Plan, grids: Sequence[Any]) -> None:
    """Add the steps up to the number of each row's combination of parts, in each grid."""
    partitions = [_grid_partitions(grid) for grid in grids]
    _read_parts(plan, [p for held in partitions for p in held])
    items = []
    for g, held in enumerate(partitions):
        for k, p in enumerate(held):
            items.append(plan.part(p, plan.own(f"p{g}_{k}"), unseen=p.n_parts))
    for partition in {p.name: p for held in partitions for p in held}.values():
        _describe(plan, partition, 0)
    if items:
        plan.step("parts", items)
    keys = []
    for g, grid in enumerate(grids):
        radix = _radix(grid)
        columns = [plan.own(f"p{g}_{k}") for k in range(len(radix))]
        keys.append((_mixed(plan, columns, radix), plan.own(f"k{g}")))
    plan.step("keys", keys)


def _mixed(plan: Plan, columns: Sequence[str], radix: Sequence[int]) -> Node:
    """Write the number of a combination of parts: `_key` of columns."""
    writer = plan.writer
    wide = math.prod(radix) >= 2**15  # beyond what an engine may take small whole numbers for
    tree: Node = writer.whole(0)
    for k, (name, r) in enumerate(zip(columns, radix, strict=True)):
        column: Node = writer.column(name)
        if wide:
            column = writer.cast(column, writer.dialect.integer)
        if k == 0:
            tree = column
        else:
            product = exp.Mul(this=exp.Paren(this=tree) if k > 1 else tree, expression=writer.whole(r))
            tree = exp.Add(this=product, expression=column)
    return tree


def _grid_partitions(grid: Any) -> list[Partition]:
    return list(grid.partitions.values() if isinstance(grid, DataGrid) else grid.partitions)


def _grids(model: Any) -> tuple[list[DataGrid], list[float]]:
    if isinstance(model, RegressionGrid):
        return [model.grid], [1.0]
    if isinstance(model, DataGrid):
        return [model], [1.0]
    return list(model.grids), model.weights.tolist()


def _find_rows(plan: Plan, grids: Sequence[DataGrid], rows: Sequence[tuple[Any, Any]]) -> None:
    """Add the steps up to the row of each grid that `_grid_rows` gives a row of the table, from 1."""
    writer = plan.writer
    _find_keys(plan, grids)
    items = []
    for g, (keys, held) in enumerate(rows):
        pairs = [(key, writer.whole(row)) for key, row in keys]
        tree = writer.choose(writer.column(plan.own(f"k{g}")), pairs, writer.whole(len(held)))
        items.append((tree, plan.own(f"r{g}")))
    plan.step("cells", items)


def _grid_shares(plan: Plan, model: Any) -> list[Node]:
    """Add the steps up to the row of each grid's shares, and return the probability of each class."""
    writer = plan.writer
    grids, weights = _grids(model)
    rows = [_grid_rows(grid, grid.probabilities, lambda shares: shares) for grid in grids]
    _find_rows(plan, grids, rows)
    trees = []
    for j in range(len(model.classes)):
        terms = []
        for g, (_, shares) in enumerate(rows):
            values = [weights[g] * row[j] for row in shares]
            terms.append(writer.look_up(writer.column(plan.own(f"r{g}")), values))
        trees.append(writer.total(terms))
    return trees


def _grid_proba(plan: Plan, model: Any) -> exp.Select:
    trees = _grid_shares(plan, model)
    if isinstance(model, GridEnsemble) and model.power != 1.0:
        trees = _sharpened(plan, trees, model.power)
    return plan.step("", _named(plan, _proba_names(model.classes), trees), last=True)


def _sharpened(plan: Plan, trees: list[Node], power: float) -> list[Node]:
    """Raise probabilities to a power, and scale them to sum to one."""
    writer = plan.writer
    names = [plan.own(f"s{j}") for j in range(len(trees))]
    plan.step("mean", list(zip(trees, names, strict=True)))
    columns = [writer.column(name) for name in names]
    top = writer.largest([column.copy() for column in columns])
    plan.step("top", [*zip(columns, names, strict=True), (top, plan.own("m"))])
    items = []
    for name in names:
        ratio = writer.divide(writer.column(name), writer.column(plan.own("m")))
        logarithm = exp.Mul(this=writer.number(power), expression=exp.Ln(this=ratio))
        none = exp.LTE(this=writer.column(name), expression=writer.number(0.0))
        tree = exp.Case(
            ifs=[exp.If(this=none, true=writer.number(0.0))], default=writer.exponential(logarithm)
        )
        items.append((tree, name))
    plan.step("powers", items)
    total = writer.total([writer.column(name) for name in names])
    plan.step("total", [*((writer.column(name), name) for name in names), (total, plan.own("t"))])
    return [writer.divide(writer.column(name), writer.column(plan.own("t"))) for name in names]


def _grid_class(plan: Plan, model: Any) -> exp.Select:
    writer = plan.writer
    names = [plan.own(f"s{j}") for j in range(len(model.classes))]
    plan.step("scores", list(zip(_grid_shares(plan, model), names, strict=True)))
    top = writer.largest([writer.column(name) for name in names])
    plan.step("top", [*((writer.column(name), name) for name in names), (top, plan.own("m"))])
    return _write_class(plan, [writer.column(name) for name in names], model.classes)


def _grid_rule(plan: Plan, model: Any) -> exp.Select:
    """Write the rule of each row's cell and its place among `rules`, from 1; NULL and 0 where it has none."""
    writer = plan.writer
    grids, _ = _grids(model)
    _find_keys(plan, grids)
    plan.step("cells", [_cell_number(plan, g, grid) for g, grid in enumerate(grids)])
    trees: list[Node] = []
    names = []
    ruled: Sequence[Any] = [model] if isinstance(model, RegressionGrid) else grids
    for g, grid in enumerate(ruled):
        column = writer.column(plan.own(f"r{g}"))
        ending = "" if len(grids) == 1 else f"_{g + 1}"
        rules = [(i, writer.shown(text)) for i, text in enumerate(grid.rules(), 1)]
        trees += [column.copy(), writer.choose(column, rules, exp.Null())]
        names += [f"rule_number{ending}", f"rule{ending}"]
    return plan.step("", _named(plan, names, trees), last=True)


def _cell_number(plan: Plan, g: int, grid: DataGrid) -> tuple[Node, str]:
    radix, writer = _radix(grid), plan.writer
    place = np.empty(len(grid.cells), dtype=np.int64)
    place[grid._by_support()] = np.arange(1, len(grid.cells) + 1)
    pairs = sorted(
        (_key(parts, radix), number)
        for parts, number in zip(grid.cells.parts.tolist(), place.tolist(), strict=True)
    )
    trees = [(key, writer.whole(number)) for key, number in pairs]
    return writer.choose(writer.column(plan.own(f"k{g}")), trees, writer.whole(0)), plan.own(f"r{g}")


def _grid_parts(plan: Plan, model: Any) -> exp.Select:
    held: dict[str, Partition] = {}
    for partition in variables_of(model):
        if held.setdefault(partition.name, partition) is not partition:
            raise CannotWriteError(
                f"the grids of the ensemble partition {partition.name!r} in several ways: write the parts of "
                "one grid."
            )
    return _write_parts(plan, list(held.values()))


def _cells_of(plan: Plan, model: UnsupervisedGrid) -> exp.Select:
    writer, radix = plan.writer, _radix(model)
    _find_keys(plan, [model])
    pairs = sorted((_key(parts, radix), i) for i, parts in enumerate(model.coordinates.tolist()))
    trees = [(key, writer.whole(i)) for key, i in pairs]
    tree = writer.choose(writer.column(plan.own("k0")), trees, writer.whole(-1))
    return plan.step("", _named(plan, ["cell"], [tree]), last=True)


def _write_clusters(plan: Plan, model: CoclusteringModel) -> exp.Select:
    partitions = variables_of(model)
    _read_parts(plan, partitions)
    plan.comments.append("cluster -1: a value that is in no cluster, or was never seen")
    trees = [plan.part(partition, "")[0] for partition in partitions]
    return plan.step("", _named(plan, ["row_cluster", "column_cluster"], trees), last=True)


# ----- decision lists


def _linf_proba(plan: Plan, model: LinfModel) -> exp.Select:
    """Write the shares of the votes, or of their squares."""
    writer, votes = plan.writer, add_votes(plan, model)
    names = [plan.own(f"e{j}") for j in range(len(votes))]
    items = [
        (exp.Mul(this=vote, expression=vote.copy()) if model.shared_votes else vote, name)
        for vote, name in zip(votes, names, strict=True)
    ]
    plan.step("squares", items)
    total = writer.total([writer.column(name) for name in names])
    plan.step("total", [*((writer.column(name), name) for name in names), (total, plan.own("t"))])
    trees = [writer.divide(writer.column(name), writer.column(plan.own("t"))) for name in names]
    return plan.step("", _named(plan, _proba_names(model.classes), trees), last=True)


def _linf_class(plan: Plan, model: LinfModel) -> exp.Select:
    writer, votes = plan.writer, add_votes(plan, model)
    top = writer.largest([vote.copy() for vote in votes])
    plan.step("top", [*((vote, vote.name) for vote in votes), (top, plan.own("m"))])
    return _write_class(plan, [vote.copy() for vote in votes], model.classes)


# ----- numbers


def _predicted(model: RegressorModel, shares: FloatArray, levels: Sequence[float] | None) -> FloatArray:
    """Return the mean of distributions, or their quantiles, row by row."""
    if levels is None:
        return model.means(shares)[:, np.newaxis]
    return model.quantiles(shares, np.broadcast_to(np.array(levels), (len(shares), len(levels))))


def _level_names(plan: Plan) -> list[str]:
    return [f"quantile_{level:g}" if float(f"{level:g}") == level else f"quantile_{level!r}"
            for level in map(float, plan.levels)]  # fmt: skip


def _grid_numbers(
    plan: Plan, model: RegressionGrid, levels: Sequence[float] | None, names: Sequence[str]
) -> exp.Select:
    """Write the mean of each row's cell, or its quantiles: they are known when the query is written."""
    writer = plan.writer
    cells = model.cell_shares[:-1]
    rows = _grid_rows(model.grid, cells, lambda shares: _predicted(model, shares, levels))
    _find_rows(plan, [model.grid], [rows])
    trees = [
        writer.look_up(writer.column(plan.own("r0")), list(column)) for column in zip(*rows[1], strict=True)
    ]
    return plan.step("", _named(plan, names, trees), last=True)


def _interval_powers(plan: Plan, model: NaiveBayesRegression) -> list[str]:
    """Add the steps up to the power of each elementary interval's score, and to their sum, t.

    Intervals that a variable does not tell apart share a column of its evidence.
    """
    writer = plan.writer
    terms: list[list[Node]] = [[writer.number(prior)] for prior in model._log_prior.tolist()]
    active = [model.variables[k].parts for k in model._used]
    if active:
        _score_parts(plan, active)
    items = []
    for i, (partition, table) in enumerate(zip(active, model.tables, strict=True)):
        columns, which = np.unique(_reached(partition, table), axis=1, return_inverse=True)
        part = writer.column(plan.own(f"p{i}"))
        if columns.shape[1] == 1:  # for all intervals alike
            continue
        if writer.dialect.rows:
            name = plan.own(f"v{i}")
            items.append((writer.look_up_row(part, columns.tolist()), name))
            found = [writer.field(writer.column(name), j + 1) for j in range(columns.shape[1])]
        else:
            names = [plan.own(f"v{i}_{j}") for j in range(columns.shape[1])]
            items += [
                (writer.look_up(part.copy(), column), name)
                for column, name in zip(columns.T.tolist(), names, strict=True)
            ]
            found = [writer.column(name) for name in names]
        for sums, j in zip(terms, which.reshape(-1).tolist(), strict=True):
            sums.append(found[j].copy())
    if items:
        plan.step("evidence", items)
    scores = [plan.own(f"s{k}") for k in range(len(terms))]
    plan.step("scores", [(writer.total(sums), name) for sums, name in zip(terms, scores, strict=True)])
    plan.comments.append(f"{scores[0]} to {scores[-1]}: scores of the target's intervals, ascending")
    top = writer.largest([writer.column(name) for name in scores])
    plan.step("top", [*((writer.column(name), name) for name in scores), (top, plan.own("m"))])
    return _raise_powers(plan, [writer.column(name) for name in scores])


def _bayes_mean(plan: Plan, model: NaiveBayesRegression) -> exp.Select:
    writer, powers = plan.writer, _interval_powers(plan, model)
    products = [
        exp.Mul(this=writer.number(mean), expression=writer.column(power))
        for mean, power in zip(model.interval_means.tolist(), powers, strict=True)
    ]
    tree = writer.divide(exp.Paren(this=writer.total(products)), writer.column(plan.own("t")))
    if model.reserve > 0.0:
        overall = float(np.exp(model._log_prior) @ model.interval_means)
        rest = exp.Mul(this=writer.number(1.0 - model.reserve), expression=exp.Paren(this=tree))
        tree = exp.Add(this=rest, expression=writer.number(model.reserve * overall))
    plan.step("mean", [(tree, plan.own("y"))])
    least, most = float(model.values[0]), float(model.values[-1])
    tree = writer.clipped(writer.column(plan.own("y")), least, most)
    return plan.step("", _named(plan, ["mean"], [tree]), last=True)


def _bayes_numbers(
    plan: Plan, model: NaiveBayesRegression, levels: Sequence[float], names: Sequence[str]
) -> exp.Select:
    """Write quantiles: the interval where the shares reach each level, the place in it, the value there."""
    writer, n = plan.writer, model.n_intervals
    shares, reached = _cumulated(plan, model)
    found = range(len(levels))
    column = {(what, q): writer.column(plan.own(f"{what}{q}")) for what in "irgfx" for q in found}
    items: list[tuple[Node, str]] = []
    for q, level in enumerate(levels):
        least = writer.number(level - ROUNDING)
        ifs = [
            exp.If(this=exp.GTE(this=writer.column(c), expression=least.copy()), true=writer.whole(k))
            for k, c in enumerate(reached[:-1])
        ]
        tree = exp.Case(ifs=ifs, default=writer.whole(n - 1)) if ifs else writer.whole(0)
        items.append((tree, plan.own(f"i{q}")))
    plan.step("intervals", [*((writer.column(name), name) for name in (*shares, *reached)), *items])
    items = []
    for q, level in enumerate(levels):
        below: list[Node] = [
            exp.Sub(this=writer.column(c), expression=writer.column(s))
            for s, c in zip(shares, reached, strict=True)
        ]
        mine: list[Node] = [writer.column(s) for s in shares]
        before, own = (
            writer.choose(column["i", q], list(enumerate(held[:-1])), held[-1]) for held in (below, mine)
        )
        rest = exp.Sub(this=writer.number(level), expression=exp.Paren(this=before))
        items += [(column["i", q], plan.own(f"i{q}")), (rest, plan.own(f"r{q}")), (own, plan.own(f"g{q}"))]
    plan.step("rests", items)
    items = []
    for q in found:
        some = exp.If(this=exp.GT(this=column["g", q], expression=writer.number(0.0)),
                      true=writer.divide(column["r", q], column["g", q].copy()))  # fmt: skip
        tree = exp.Case(ifs=[some], default=column["r", q].copy())
        items += [(column["i", q].copy(), plan.own(f"i{q}")), (tree, plan.own(f"f{q}"))]
    plan.step("inside", items)
    items = []
    for q in found:
        inside = writer.clipped(column["f", q], ROUNDING, 1.0)
        place = exp.Add(this=column["i", q].copy(), expression=inside)
        items.append((exp.Sub(this=place, expression=writer.number(ROUNDING)), plan.own(f"x{q}")))
    plan.step("places", items)
    trees = [
        writer.first_reaching(column["x", q], model.places.tolist(), model.values.tolist()) for q in found
    ]
    return plan.step("", _named(plan, names, trees), last=True)


def _cumulated(plan: Plan, model: NaiveBayesRegression) -> tuple[list[str], list[str]]:
    """Add the steps to the intervals' shares and to their running sums, in blocks; return the names."""
    writer, powers = plan.writer, _interval_powers(plan, model)
    n, size = len(powers), math.isqrt(len(powers)) + 1
    shares, within, reached = ([plan.own(f"{what}{k}") for k in range(n)] for what in "hwc")
    items: list[tuple[Node, str]] = []
    for power, share, prior in zip(powers, shares, np.exp(model._log_prior).tolist(), strict=True):
        tree = writer.divide(writer.column(power), writer.column(plan.own("t")))
        if model.reserve > 0.0:
            rest = exp.Mul(this=exp.Paren(this=tree), expression=writer.number(1.0 - model.reserve))
            tree = exp.Add(this=rest, expression=writer.number(model.reserve * prior))
        items.append((tree, share))
    plan.step("shares", items)
    kept = [(writer.column(share), share) for share in shares]
    sums = [writer.total([writer.column(s) for s in shares[k - k % size : k + 1]]) for k in range(n)]
    plan.step("blocks", [*kept, *zip(sums, within, strict=True)])
    ends = within[size - 1 :: size]
    sums = [writer.total([writer.column(w) for w in (*ends[: k // size], within[k])]) for k in range(n)]
    plan.step("sums", [*((tree.copy(), name) for tree, name in kept), *zip(sums, reached, strict=True)])
    return shares, reached


def _mean(plan: Plan, model: RegressorModel) -> exp.Select:
    if isinstance(model, RegressionGrid):
        return _grid_numbers(plan, model, None, ["mean"])
    assert isinstance(model, NaiveBayesRegression)
    return _bayes_mean(plan, model)


def _write_quantiles(
    plan: Plan, model: RegressorModel, levels: Sequence[float], names: Sequence[str]
) -> exp.Select:
    if isinstance(model, RegressionGrid):
        return _grid_numbers(plan, model, levels, names)
    assert isinstance(model, NaiveBayesRegression)
    return _bayes_numbers(plan, model, levels, names)


def _median(plan: Plan, model: RegressorModel) -> exp.Select:
    return _write_quantiles(plan, model, [0.5], ["median"])


def _quantiles(plan: Plan, model: RegressorModel) -> exp.Select:
    return _write_quantiles(plan, model, plan.levels, _level_names(plan))


_Output = Callable[[Plan, Any], exp.Select]
_ENCODED: dict[str, _Output] = {
    "parts": _encoding_parts,
    "onehot": _encoding_onehot,
    "evidence": _encoding_evidence,
    "mean": _encoding_mean,
    "median": _encoding_median,
}
_GRID: dict[str, _Output] = {
    "proba": _grid_proba,
    "class": _grid_class,
    "parts": _grid_parts,
    "rule": _grid_rule,
}
_NUMBER: dict[str, _Output] = {"mean": _mean, "median": _median, "quantiles": _quantiles}
# By kind of model: what is written by default, and what may be.
_OUTPUTS: dict[type, tuple[str, dict[str, _Output]]] = {
    Partition: ("parts", _ENCODED),
    Encoding: ("parts", _ENCODED),
    NaiveBayes: (
        "proba",
        {
            "proba": _bayes_proba,
            "class": _bayes_class,
            "parts": _encoding_parts,
            "evidence": _bayes_evidence,
        },
    ),
    DataGrid: ("proba", _GRID),
    GridEnsemble: ("proba", _GRID),
    NaiveBayesRegression: ("mean", {**_NUMBER, "parts": _encoding_parts}),
    RegressionGrid: ("mean", {**_NUMBER, "parts": _encoding_parts, "rule": _grid_rule}),
    LinfModel: ("proba", {"proba": _linf_proba, "class": _linf_class}),
    UnsupervisedGrid: ("cell", {"cell": _cells_of, "parts": _encoding_parts}),
    CoclusteringModel: ("cluster", {"cluster": _write_clusters}),
}
