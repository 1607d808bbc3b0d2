"""Models as queries: a chain of named selects, from the columns to parts, scores and results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlglot import exp

from damier.deploy.sql.writer import CannotWriteError, Node, Writer, groups_of, kind_of
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
    Partition,
    UnsupervisedGrid,
)
from damier.models.codec import distinct_names
from damier.models.encoding import OF_NUMBERS, Encode, written_parts

# Rows of one INSERT.
_INSERTED = 500
# Combinations of parts, with and without values never seen, that a grid may list.
_MOST_CELLS = 50_000
INSTEAD = "score with damier predict, or with predict_proba in Python"


@dataclass
class Plan:
    """A query as it grows: each step selects the kept columns and its own from the step before.

    Parameters
    ----------
    writer : Writer
    table : exp.Table
        What is read.
    keep : sequence of str
        Columns carried to the result.
    names : sequence of str
        Columns the model reads.
    lookup : exp.Table, optional
        Where the values of texts are looked up; they are written in the query otherwise.
    """

    writer: Writer
    table: exp.Table
    keep: Sequence[str]
    names: Sequence[str]
    lookup: exp.Table | None = None
    prefix: str = "damier_"
    steps: list[tuple[str, exp.Select]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    looked_up: list[tuple[int, str, int]] = field(default_factory=list)
    inputs: dict[tuple[str, str], str] = field(default_factory=dict)
    _joins: list[exp.Join] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [*self.keep, *self.names]
        self.writer.check_names(list(dict.fromkeys(names)))
        while any(name.casefold().startswith(self.prefix) for name in names):
            self.prefix += "_"

    def own(self, name: str) -> str:
        """Name a column or step of the query's own."""
        return self.prefix + name

    def step(self, name: str, items: Sequence[tuple[Node, str]], *, last: bool = False) -> exp.Select:
        """Add a select of the kept columns and of expressions under their names."""
        writer = self.writer
        most = writer.dialect.most_columns
        if most is not None and len(self.keep) + len(items) > most:
            raise CannotWriteError(
                f"the query needs {len(self.keep) + len(items):,} columns; {writer.dialect.engine} takes "
                f"{most:,}: {INSTEAD}."
            )
        source: Node
        if self.steps:
            source = exp.Table(this=exp.Identifier(this=self.steps[-1][0], quoted=True))
        else:
            source = self.table.copy()
        kept = [exp.Column(this=writer.name(name)) for name in self.keep]
        shown = [exp.Alias(this=tree, alias=writer.identifier(alias)) for tree, alias in items]
        query = exp.Select(expressions=[*kept, *shown]).from_(source, copy=False)
        for join in self._joins:
            query.append("joins", join)
        self._joins = []
        if not last:
            self.steps.append((self.own(name), writer.fenced(query)))
        return query

    def use(self, partition: Partition) -> str:
        """Return the name under which the first step gives a column."""
        kind = kind_of(partition)
        return self.inputs.setdefault((partition.name, kind), self.own(f"x{len(self.inputs)}"))

    def read(self) -> None:
        """Add the first step: columns as they are compared."""
        items = [(self.writer.compared(name, kind), alias) for (name, kind), alias in self.inputs.items()]
        self.step("values", items)

    def part(self, partition: Partition, alias: str, *, first: int = 0, unseen: int = -1) -> tuple[Node, str]:
        """Write the part of a column that the first step gave."""
        column = self.writer.column(self.use(partition))
        found = None
        if self.lookup is not None and kind_of(partition) == "texts":
            found = self._join(partition, column)
        return self.writer.part(partition, column, first=first, unseen=unseen, looked_up=found), alias

    def _join(self, partition: Partition, column: Node) -> Node:
        """Join the table of values, and return the column of its parts."""
        assert self.lookup is not None
        number = len({n for n, _, _ in self.looked_up})
        self.looked_up += [
            (number, value, i)
            for i, group in enumerate(groups_of(partition) or ())
            for value in group
            if value is not None
        ]
        alias = exp.Identifier(this=self.own(f"v{number}"), quoted=True)
        value, part = (
            exp.Column(this=exp.Identifier(this=self.own(name), quoted=True)) for name in ("value", "part")
        )
        variable = exp.Column(this=exp.Identifier(this=self.own("variable"), quoted=True))
        one = exp.Select(expressions=[value, part]).from_(self.lookup.copy(), copy=False)
        one.where(exp.EQ(this=variable, expression=self.writer.whole(number)), copy=False)
        held = value.copy()
        held.set("table", alias.copy())
        self._joins.append(
            exp.Join(
                this=exp.Subquery(this=one, alias=exp.TableAlias(this=alias)),
                side="LEFT",
                on=exp.EQ(this=held, expression=column.copy()),
            )
        )
        found = part.copy()
        found.set("table", alias.copy())
        return found

    def whole_query(self, last: exp.Select) -> exp.Select:
        """Return the last select, after the steps it needs."""
        ctes = [
            exp.CTE(this=query, alias=exp.TableAlias(this=exp.Identifier(this=name, quoted=True)))
            for name, query in self.steps
        ]
        last.set("with_" if "with_" in exp.Select.arg_types else "with", exp.With(expressions=ctes))
        return last

    def lookup_statements(self) -> list[Node]:
        """Return the statements that make and fill the table of values."""
        if self.lookup is None or not self.looked_up:
            return []
        writer, dialect = self.writer, self.writer.dialect
        longest = max(len(value.encode("utf-8", "replace")) for _, value, _ in self.looked_up)
        text = {"mysql": f"VARBINARY({longest})", "tsql": "VARBINARY(MAX)"}.get(dialect.name, dialect.text)
        whole = {"clickhouse": "Nullable(Int32)", "bigquery": "INT64"}.get(dialect.name, "INT")
        types = (("variable", whole), ("value", text), ("part", whole))
        columns = [
            exp.ColumnDef(
                this=exp.Identifier(this=self.own(name), quoted=True),
                kind=exp.DataType.build(to, dialect=writer.grammar),
            )
            for name, to in types
        ]
        made = exp.Create(this=exp.Schema(this=self.lookup.copy(), expressions=columns), kind="TABLE")
        if dialect.name == "clickhouse":
            engine = exp.EngineProperty(this=exp.Anonymous(this="MergeTree", expressions=[]))
            order = exp.Order(expressions=[exp.Ordered(this=exp.Anonymous(this="tuple", expressions=[]))])
            made.set("properties", exp.Properties(expressions=[engine, order]))
        statements: list[Node] = [made]
        rows = []
        for number, value, part in self.looked_up:
            tree = writer.text(value)
            if tree is not None:
                rows.append(exp.Tuple(expressions=[writer.whole(number), tree, writer.whole(part)]))
        for i in range(0, len(rows), _INSERTED):
            values = exp.Values(expressions=rows[i : i + _INSERTED])
            statements.append(exp.Insert(this=self.lookup.copy(), expression=values))
        return statements


# ----- what each model reads


def variables_of(model: Any) -> list[Partition]:
    """Return the partitions whose columns a model reads, or refuse it by name."""
    if isinstance(model, Partition):
        return [model]
    if isinstance(model, (Encoding, UnsupervisedGrid)):
        return list(model.partitions)
    if isinstance(model, NaiveBayes):
        return [variable.partition for variable in model.variables]
    if isinstance(model, DataGrid):
        return list(model.partitions.values())
    if isinstance(model, GridEnsemble):
        return [p for grid in model.grids for p in grid.partitions.values()]
    if isinstance(model, CoclusteringModel):
        return [_clusters(model, "rows"), _clusters(model, "columns")]
    reasons = {
        LinfModel: "rows in no rectangle go to the nearest one, by distances in float32 that not all engines "
        "can round alike, and every list of the ensemble would be written out",
        BallPartition: "balls need the distance to every group's points",
        LabeledCoclustering: "its rows are profiles over all columns, not values of one",
    }
    why = next((text for kind, text in reasons.items() if isinstance(model, kind)), None)
    if why is None:
        raise CannotWriteError(
            f"{type(model).__name__} has no form in SQL: score with damier predict, or in Python."
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
    parts = "; ".join(f"{i} {label}" for i, label in enumerate(partition.labels, first))
    plan.comments.append(f"{partition.name}: {what} {parts}")


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
    plan: Plan, partitions: Sequence[Partition], tables: Sequence[Any], names: Sequence[str]
) -> exp.Select:
    _score_parts(plan, partitions)
    trees = [
        plan.writer.look_up(plan.writer.column(plan.own(f"p{i}")), column)
        for i, (partition, table) in enumerate(zip(partitions, tables, strict=True))
        for column in _reached(partition, table).T.tolist()
    ]
    return plan.step("", _named(plan, names, trees), last=True)


def _reached(partition: Partition, table: Any) -> Any:
    """Leave out the last row of a table, for values never seen, where there are none: among intervals."""
    return table[:-1] if groups_of(partition) is None else table


def _score_parts(plan: Plan, partitions: Sequence[Partition]) -> None:
    """Add the steps that find the row of each variable's table, from 1; the last is for values never seen."""
    _read_parts(plan, partitions)
    for i, partition in enumerate(partitions):
        _describe(plan, partition, 1, f"{plan.own(f'p{i}')} is")
    items = [plan.part(p, plan.own(f"p{i}"), first=1, unseen=p.n_parts + 1) for i, p in enumerate(partitions)]
    plan.step("parts", items)


def _bayes_scores(plan: Plan, model: NaiveBayes) -> list[Node]:
    """Add the steps up to the score of each class less that of the first, and to the largest of them, m."""
    writer = plan.writer
    active = [v for v in model.variables if v.informs]
    refined = [v.parts for v in active]
    tables = [_reached(p, v.scores) for p, v in zip(refined, active, strict=True)]
    tables = [table[:, 1:] - table[:, :1] for table in tables]
    priors = (model._log_prior[1:] - model._log_prior[0]).tolist()
    names = [plan.own(f"s{j}") for j in range(1, len(model.classes))]
    zero = writer.number(0.0)
    if names:
        found = _evidence_found(plan, refined, tables, len(names))
        totals = [writer.total([writer.number(prior), *found[j]]) for j, prior in enumerate(priors)]
        plan.step("scores", list(zip(totals, names, strict=True)))
        of = ", ".join(f"{name} of {c}" for name, c in zip(names, model.classes[1:], strict=True))
        plan.comments.append(f"scores, less that of {model.classes[0]}: {of}")
    scores = [zero, *map(writer.column, names)]
    top = writer.largest(scores)
    plan.step("top", [*((writer.column(name), name) for name in names), (top, plan.own("m"))])
    return [score.copy() for score in scores]


def _evidence_found(
    plan: Plan, partitions: Sequence[Partition], tables: Sequence[Any], n_columns: int
) -> list[list[Node]]:
    """Add the steps that find rows of tables, and return the numbers of each column: one per table."""
    writer = plan.writer
    if not tables:
        return [[] for _ in range(n_columns)]
    names = [plan.own(f"v{i}") for i in range(len(tables))]
    if n_columns == 1 and plan.lookup is None:
        _read_parts(plan, partitions)
        chosen = []
        for name, partition, table in zip(names, partitions, tables, strict=True):
            plan.comments.append(f"{name}, by {partition.name}: {'; '.join(partition.labels)}")
            values = [writer.number(value) for value in table[:, 0].tolist()]
            unseen = values.pop() if len(values) > partition.n_parts else values[0]
            column = writer.column(plan.use(partition))
            chosen.append((writer.choose_part(partition, column, values, unseen), name))
        plan.step("evidence", chosen)
        return [[writer.column(name) for name in names]]
    _score_parts(plan, partitions)
    parts = [writer.column(plan.own(f"p{i}")) for i in range(len(tables))]
    if n_columns > 1 and writer.dialect.rows:
        rows = [writer.look_up_row(p, table.tolist()) for p, table in zip(parts, tables, strict=True)]
        plan.step("evidence", list(zip(rows, names, strict=True)))
        return [[writer.field(writer.column(name), j) for name in names] for j in range(1, n_columns + 1)]
    return [
        [writer.look_up(p.copy(), t[:, j].tolist()) for p, t in zip(parts, tables, strict=True)]
        for j in range(n_columns)
    ]


def _bayes_proba(plan: Plan, model: NaiveBayes) -> exp.Select:
    writer, scores = plan.writer, _bayes_scores(plan, model)
    powers = [plan.own(f"e{j}") for j in range(len(scores))]
    items = []
    for score, power in zip(scores, powers, strict=True):
        less = exp.Sub(this=score, expression=writer.column(plan.own("m")))
        items.append((writer.exponential(less), power))
    plan.step("powers", items)
    total = writer.total([writer.column(power) for power in powers])
    plan.step("total", [*((writer.column(p), p) for p in powers), (total, plan.own("t"))])
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
    names = distinct_names([f"{v.name}:{c}" for v in model.variables for c in model.classes])
    tables = [v.scores for v in model.variables]
    return _write_evidence(plan, [v.parts for v in model.variables], tables, names)


def _proba_names(classes: Sequence[Any]) -> list[str]:
    return [f"proba_{c}" for c in classes]


# ----- grids


def _grid_rows(grid: DataGrid) -> tuple[list[tuple[int, int]], list[list[float]]]:
    """Return the row of each combination of parts, and the class shares of each row; the last is any other's.

    Combinations are numbered in mixed radix, a group's one more than its last for a value never seen.
    """
    partitions = list(grid.partitions.values())
    radix = _radix(grid)
    rows: list[list[float]] = []
    row_of: dict[tuple[float, ...], int] = {}
    keys: dict[int, int] = {}

    def add(key: int, shares: list[float]) -> None:
        number = row_of.setdefault(tuple(shares), len(rows) + 1)
        if number > len(rows):
            rows.append(shares)
        keys[key] = number

    for parts, shares in zip(grid.cells.parts.tolist(), grid.cells.shares.tolist(), strict=True):
        add(_key(parts, radix), shares)
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
            for pattern in np.unique(known, axis=0):
                parts = [partitions[k].n_parts if p < 0 else p for k, p in enumerate(pattern.tolist())]
                add(_key(parts, radix), grid.shares_given(pattern).tolist())
    rows.append(grid.shares.tolist())
    return sorted(keys.items()), rows


def _radix(grid: Any) -> list[int]:
    partitions = grid.partitions.values() if isinstance(grid, DataGrid) else grid.partitions
    radix = [p.n_parts + (groups_of(p) is not None) for p in partitions]
    product = 1
    for r in radix:
        product *= r
    if product >= 2**62:
        raise CannotWriteError(f"the grid has more cells than 64 bits can number: {INSTEAD}.")
    return radix


def _key(parts: Sequence[int], radix: Sequence[int]) -> int:
    key = 0
    for part, r in zip(parts, radix, strict=True):
        key = key * r + part
    return key


def _find_keys(plan: Plan, grids: Sequence[Any]) -> None:
    """Add the steps up to the number of each row's combination of parts, in each grid."""
    writer = plan.writer
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
        tree: Node = writer.whole(0)
        for k, r in enumerate(radix):
            column: Node = writer.column(plan.own(f"p{g}_{k}"))
            if np.prod([float(one) for one in radix]) >= 2**15:
                column = writer.cast(column, writer.dialect.integer)
            if k == 0:
                tree = column
            else:
                tree = exp.Add(
                    this=exp.Mul(this=exp.Paren(this=tree) if k > 1 else tree, expression=writer.whole(r)),
                    expression=column,
                )
        keys.append((tree, plan.own(f"k{g}")))
    plan.step("keys", keys)


def _grid_partitions(grid: Any) -> list[Partition]:
    return list(grid.partitions.values() if isinstance(grid, DataGrid) else grid.partitions)


def _grids(model: Any) -> tuple[list[DataGrid], list[float]]:
    if isinstance(model, DataGrid):
        return [model], [1.0]
    return list(model.grids), model.weights.tolist()


def _grid_shares(plan: Plan, model: Any) -> list[Node]:
    """Add the steps up to the row of each grid's shares, and return the probability of each class."""
    writer = plan.writer
    grids, weights = _grids(model)
    rows = [_grid_rows(grid) for grid in grids]
    _find_keys(plan, grids)
    items = []
    for g, (keys, shares) in enumerate(rows):
        pairs = [(key, writer.whole(row)) for key, row in keys]
        tree = writer.choose(writer.column(plan.own(f"k{g}")), pairs, writer.whole(len(shares)))
        items.append((tree, plan.own(f"r{g}")))
    plan.step("cells", items)
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
    for g, grid in enumerate(grids):
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
    UnsupervisedGrid: ("cell", {"cell": _cells_of, "parts": _encoding_parts}),
    CoclusteringModel: ("cluster", {"cluster": _write_clusters}),
}
