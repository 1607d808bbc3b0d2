"""A query as it grows: named selects, each from the one before, and the table of values they may join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from damier.deploy.sql.writer import CannotWriteError, Node, Writer, groups_of, kind_of
from damier.models import Partition

INSTEAD = "score with damier predict, or in Python"
# Rows of one INSERT.
_INSERTED = 500


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
    levels : sequence of float
        Quantiles of a number that are written.
    """

    writer: Writer
    table: exp.Table
    keep: Sequence[str]
    names: Sequence[str]
    lookup: exp.Table | None = None
    levels: Sequence[float] = ()
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
        shown = [
            tree
            if isinstance(tree, exp.Column) and tree.this == writer.identifier(alias)
            else exp.Alias(this=writer.as_result(tree), alias=writer.identifier(alias))
            for tree, alias in items
        ]
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
