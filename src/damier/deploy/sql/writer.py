"""Expressions of one dialect: numbers, texts, dates, parts of a partition, look-ups; all as sqlglot trees."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar

from damier.deploy.sql.dialects import Dialect
from damier.deploy.sql.layout import generator_of
from damier.models import GroupPartition, IntervalPartition, Partition

Node = exp.Expression

TYPES = ("number", "boolean", "text", "date", "timestamp", "timestamptz", "time", "interval", "microseconds")
# What a column may hold, by what it held when fitted; the first is the default.
_MAY_HOLD: dict[str, tuple[str, ...]] = {
    "number": ("number", "boolean", "text"),
    "date": ("date", "timestamp", "timestamptz", "microseconds"),
    "datetime": ("timestamp", "date", "timestamptz", "microseconds"),
    "time": ("time", "microseconds"),
    "duration": ("interval", "microseconds"),
    "texts": ("text",),
    "numbers": ("number", "text"),
    "integers": ("number",),
    "booleans": ("boolean", "number"),
}
_UTF8 = "CHAR CHARACTER SET utf8mb4"
_EPOCH = datetime.datetime(1970, 1, 1)
_LARGEST = 1.7976931348623157e308
# More branches than this are found in two steps.
_LONG_CASE = 64
# Oracle takes no more in one list.
_LONG_LIST = 1000
# Fewest arguments that every engine takes.
_MOST_ARGUMENTS = 90


class CannotWriteError(ValueError):
    """A model, or a part of it, that this dialect cannot express."""


def groups_of(partition: Partition) -> list[tuple[Any, ...]] | None:
    """Return the values of each part, None among them for missing; or None for intervals of numbers.

    The intervals of an ordered category are groups: its values have an order in the model only.
    """
    if isinstance(partition, GroupPartition):
        return list(partition.groups)
    if not isinstance(partition, IntervalPartition):
        raise CannotWriteError(f"{type(partition).__name__} has no form in SQL.")
    if partition.kind != "rank":
        return None
    first, *others = partition._ranked
    return [(None,), first, *others] if partition.missing_alone else [(*first, None), *others]


def kind_of(partition: Partition) -> str:
    """Return what the column of a partition held: a key of the table of types."""
    groups = groups_of(partition)
    if groups is None:
        assert isinstance(partition, IntervalPartition)
        return partition.kind
    return kind_of_values([v for group in groups for v in group], partition.name)


def kind_of_values(values: Sequence[Any], name: str) -> str:
    """Return what a column of these categories held."""
    types = {type(v) for v in values} - {type(None)}
    if types <= {str}:
        return "texts"
    if types <= {bool}:
        return "booleans"
    if types <= {int, float}:
        exact = any(isinstance(v, int) and abs(v) > 2**53 for v in values)
        return "integers" if exact else "numbers"
    raise CannotWriteError(
        f"the categories of {name!r} mix {', '.join(sorted(t.__name__ for t in types))}, and no SQL column "
        "holds both: convert the column to text and fit again."
    )


class Writer:
    """Expressions of one dialect.

    Parameters
    ----------
    dialect : Dialect
    types : mapping
        What columns hold in the table, where it is not what they held when fitted.
    """

    def __init__(self, dialect: Dialect, types: Mapping[str, str] | None = None) -> None:
        self.dialect = dialect
        self.types = dict(types or {})
        for name, held in self.types.items():
            if held not in TYPES:
                raise ValueError(
                    f"types: {held!r} of {name!r} is not known: choose one of {', '.join(TYPES)}."
                )

    @cached_property
    def grammar(self) -> Grammar:
        """Return sqlglot's dialect."""
        return Grammar.get_or_raise(self.dialect.writes)

    def sql(self, tree: Node) -> str:
        """Write a tree."""
        return str(generator_of(self.grammar).generate(tree, copy=False))

    # ----- names

    def name(self, name: str) -> exp.Identifier:
        """Return a name of the table's: as it is, quoted, or refused."""
        dialect = self.dialect
        wrong = next((c for c in name if c in dialect.not_in_names), None)
        if name == "" or wrong is not None or (dialect.dollar and "${" in name):
            why = "is empty" if name == "" else f"holds {wrong or '${'!r}"
            raise CannotWriteError(f"the name {name!r} {why}, which {dialect.engine} cannot have: rename it.")
        if dialect.name_length is not None and not dialect.cuts_names and self._too_long(name):
            unit = "bytes" if dialect.name_bytes else "characters"
            raise CannotWriteError(
                f"the name {name!r} is longer than {dialect.name_length} {unit}, the most that "
                f"{dialect.engine} takes."
            )
        return self.identifier(name)

    def identifier(self, name: str) -> exp.Identifier:
        """Return a name, quoted."""
        if self.dialect.backslash_names:
            name = name.replace("\\", "\\\\")
        return exp.Identifier(this=name, quoted=True)

    def _too_long(self, name: str) -> bool:
        length = len(name.encode("utf-8", "replace")) if self.dialect.name_bytes else len(name)
        return self.dialect.name_length is not None and length > self.dialect.name_length

    def same_name(self, name: str) -> str:
        """Return what two names share when the engine takes them for one."""
        if self.dialect.cuts_names and self.dialect.name_length is not None:
            name = name.encode("utf-8", "replace")[: self.dialect.name_length].decode("utf-8", "ignore")
        return name.casefold() if self.dialect.folds_case else name

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse two columns that the engine cannot tell apart."""
        met: dict[str, str] = {}
        for name in names:
            self.name(name)
            other = met.setdefault(self.same_name(name), name)
            if other != name:
                raise CannotWriteError(
                    f"{self.dialect.engine} takes the columns {other!r} and {name!r} for one: rename one of "
                    "them in the table and fit again."
                )

    def aliases(self, names: Sequence[str], taken: Sequence[str]) -> list[str]:
        """Give the results names that the engine takes and that differ from those taken.

        Differences of case do not count, on any engine: one model gives the same names everywhere, as far as
        the engine's length of names allows.
        """
        met = {name.casefold() for name in taken} | {self.same_name(name).casefold() for name in taken}
        chosen = []
        for name in names:
            plain = self._plain_alias(name)
            tried, again = self._cut(plain, ""), 1
            while tried.casefold() in met:
                again += 1
                tried = self._cut(
                    plain, f" ({again})" if "(" not in self.dialect.not_in_names else f"_{again}"
                )
            met.add(tried.casefold())
            chosen.append(tried)
        return chosen

    def _plain_alias(self, name: str) -> str:
        held = "".join("_" if c in self.dialect.not_in_names or c == "\0" else c for c in name)
        held = held.encode("utf-8", "replace").decode("utf-8")
        if self.dialect.name == "mysql":  # no emoji in names; blanks and controls at either end get lost
            held = "".join(c if ord(c) < 0x10000 else "_" for c in held).rstrip()
            while held and (held[0].isspace() or not held[0].isprintable()):
                held = held[1:]
        if self.dialect.dollar:
            held = held.replace("${", "$_")
        return held or "_"

    def _cut(self, name: str, ending: str) -> str:
        most = self.dialect.name_length
        if most is None:
            return name + ending
        if self.dialect.name_bytes:
            return name.encode()[: most - len(ending)].decode("utf-8", "ignore") + ending
        return name[: most - len(ending)] + ending

    def table(self, names: Sequence[str]) -> exp.Table:
        """Return a table by its name, and those of its schema and database before it."""
        held = [self.name(name) for name in names]
        return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(held), strict=False)))

    def column(self, name: str) -> exp.Column:
        """Return a column by its name."""
        return exp.Column(this=self.identifier(name))

    # ----- literals

    def whole(self, value: int) -> exp.Literal:
        """Write a whole number."""
        return exp.Literal(this=str(value), is_string=False)

    def number(self, value: float, *, plain: bool = False) -> Node:
        """Write a number that reads back to the last bit; ``plain`` inside a list that is cast as a whole."""
        value = float(value) + 0.0  # no -0.0, which some engines hold below 0.0
        if self.dialect.numbers == "short":
            return self._short(value)
        if self.dialect.numbers == "cast" and not plain:
            return self.cast(exp.Literal(this=repr(value), is_string=True), self.dialect.double)
        return _literal(repr(value))

    def _short(self, value: float) -> Node:
        """Write a number by literals of 15 digits: the nearest one, and what it lacks."""
        if reads_back(repr(value)):
            return _literal(repr(value))
        near = f"{value:.15g}"
        lacks = value - float(near)
        rest = f"{abs(lacks):.1e}".replace(".0e", "e")
        exact = float(near) + math.copysign(float(rest), lacks) == value
        if lacks == 0.0 or not exact or not reads_back(near):
            return self._dyadic(value)
        kind = exp.Add if lacks > 0.0 else exp.Sub
        return exp.Paren(this=kind(this=_literal(near), expression=_literal(rest)))

    def _dyadic(self, value: float) -> Node:
        """Write m / 2**k with whole numbers that are read exactly."""
        mantissa, exponent = math.frexp(value)
        whole, exponent = int(mantissa * 2**53), exponent - 53
        while whole % 2 == 0:
            whole, exponent = whole // 2, exponent + 1
        tree: Node = exp.Literal(this=f"{whole}.0", is_string=False)
        while exponent:
            step = min(abs(exponent), 53)
            power = exp.Literal(this=f"{2**step}.0", is_string=False)
            tree = exp.Mul(this=tree, expression=power) if exponent > 0 else self.divide(tree, power)
            exponent += -step if exponent > 0 else step
        return exp.Paren(this=tree)

    def text(self, value: str) -> Node | None:
        """Write a text; None where no column of the engine can hold it."""
        dialect = self.dialect
        try:
            data = value.encode("utf-8")
        except UnicodeEncodeError:  # half a character
            return None
        if (dialect.no_nul and "\0" in value) or (dialect.empty_is_null and value == ""):
            return None
        if dialect.bytes == "binary":
            # independent of the connection's character set and of how it takes backslashes
            if value.isascii() and value.isprintable() and "\\" not in value:
                return exp.Literal.string(value)
            return exp.HexString(this=data.hex())
        if dialect.name == "sqlite" and "\0" in value:
            return self.cast(exp.HexString(this=data.hex()), "TEXT")
        if dialect.bytes == "varbinary":
            return self.cast(exp.National(this=value), "VARBINARY(MAX)")
        pieces = self._pieces(value)
        if len(pieces) > 1 or isinstance(pieces[0], exp.Anonymous):
            return exp.Anonymous(this="CONCAT", expressions=[*pieces, exp.Literal.string("")])
        return pieces[0]

    def _pieces(self, value: str) -> list[Node]:
        """Cut a text where the engine would read something else."""
        cut = [f"[{re.escape(self.dialect.by_code)}]"] if self.dialect.by_code else []
        cut += [r"\$(?=\{)"] if self.dialect.dollar else []
        texts = re.split(f"({'|'.join(cut)})", value) if cut else [value]
        return [
            exp.Anonymous(this="CHR", expressions=[self.whole(ord(text))])
            if len(text) == 1 and text in self.dialect.by_code
            else exp.Literal.string(text)
            for text in texts
            if text or len(texts) == 1
        ]

    def scalar(self, value: Any) -> Node:
        """Write a class: text, number or boolean, as a result."""
        if isinstance(value, bool):
            return exp.Boolean(this=value) if self.dialect.booleans else self.whole(int(value))
        if isinstance(value, int):
            return self.whole(value)
        if isinstance(value, float):
            return self.number(value)
        return self.shown(str(value))

    def shown(self, value: str) -> Node:
        """Write a text as a result, to be shown, not compared."""
        dialect = self.dialect
        if dialect.bytes == "varbinary":
            return exp.National(this=value)
        tree = self.text(value)
        if tree is None:
            tree = self.text(value.encode("utf-8", "replace").decode().replace("\0", "") or " ")
        if isinstance(tree, exp.HexString):
            return exp.Cast(this=tree, to=exp.DataType.build(_UTF8, dialect="mysql"))
        assert tree is not None
        return tree

    def cast(self, tree: Node, to: str) -> exp.Cast:
        """Cast to a type of the engine's, by its name."""
        return exp.Cast(this=tree, to=exp.DataType.build(to, dialect=self.grammar))

    def divide(self, a: Node, b: Node) -> Node:
        """Divide numbers as they are."""
        grammar = self.grammar
        return exp.Div(this=a, expression=b, typed=grammar.TYPED_DIVISION, safe=grammar.SAFE_DIVISION)

    # ----- dates and times

    def above(self, column: Node, bound: float, held: str) -> Node | None:
        """Write that a value is above a bound; None where none can be."""
        if held in ("number", "microseconds", "boolean", "text"):
            if bound == math.inf:
                return None
            if bound == -math.inf:
                return exp.GTE(this=column, expression=self.number(-_LARGEST))
            return exp.GT(this=column, expression=self.number(bound))
        if bound == math.inf:
            return None
        first = -math.inf if bound == -math.inf else math.floor(bound) + 1
        moment = self._moment(first, held)
        if moment is None:  # beyond what can be written, at either end
            return None if first > 0 else _not_null(column)
        return exp.GTE(this=column, expression=moment)

    def _moment(self, microseconds: float, held: str) -> Node | None:
        """Write the first moment that is not below a number of microseconds."""
        to = dict(self.dialect.temporal)[held]
        if microseconds == -math.inf:
            return None
        span = datetime.timedelta(microseconds=int(microseconds)) if abs(microseconds) < 8e19 else None
        if span is None:
            return None
        if held == "interval":
            seconds, rest = divmod(int(microseconds), 10**6)
            return self.cast(
                exp.Literal.string(
                    f"{seconds}.{rest:06d} seconds"
                    if seconds >= 0 or not rest
                    else f"{microseconds / 1e6:.6f} seconds"
                ),
                to,
            )
        if held == "time":
            if not 0 <= microseconds < 86_400_000_000:
                return None
            text = (_EPOCH + span).time().isoformat("microseconds")
            return (
                exp.Literal.string(_shortened(text))
                if to == "text"
                else self.cast(exp.Literal.string(text), to)
            )
        try:
            moment = _EPOCH + span
            if held == "date" and moment.time() != datetime.time():
                moment = datetime.datetime.combine(
                    moment.date() + datetime.timedelta(days=1), datetime.time()
                )
        except OverflowError:
            return None
        text = moment.date().isoformat() if held == "date" else moment.isoformat(" ", "microseconds")
        if to == "text":
            return exp.Literal.string(_shortened(text))
        if to == "oracle":
            return _oracle_moment(text, held)
        if held == "timestamptz" and self.dialect.name != "clickhouse":
            text += "+00:00"
        return self.cast(exp.Literal.string(text), to)

    # ----- columns as they are compared

    def held(self, name: str, kind: str) -> str:
        """Return what a column holds in the table."""
        allowed = _MAY_HOLD[kind]
        held = self.types.get(name, allowed[0])
        if held not in allowed:
            raise CannotWriteError(
                f"column {name!r} was fitted as {kind}: in SQL it may be {' or '.join(allowed)}, not {held}."
            )
        if held in ("date", "timestamp", "timestamptz", "time", "interval") and held not in dict(
            self.dialect.temporal
        ):
            raise CannotWriteError(
                f"column {name!r} is a {held}, which {self.dialect.engine} has no type for: write it as a "
                f"number of microseconds and pass types={{{name!r}: 'microseconds'}}."
            )
        return held

    def compared(self, name: str, kind: str) -> Node:
        """Write a column as it is compared: a number as double, a text as bytes, a date as it is.

        Numbers that are categories lose NaN here; `choose_part` finds it among those that are cut.
        """
        held, column = self.held(name, kind), exp.Column(this=self.name(name))
        if kind == "integers":
            return column
        if kind == "booleans":
            return column
        if held == "boolean":
            return exp.Case(
                ifs=[
                    exp.If(this=self._is(column, True), true=self.number(1.0)),
                    exp.If(this=self._is(column.copy(), False), true=self.number(0.0)),
                ]
            )
        if kind == "texts":
            return self._bytes_of(column)
        if held in ("number", "microseconds", "text"):
            number = self.cast(column, self.dialect.double)
            return self._without_nan(number) if kind == "numbers" else number
        if dict(self.dialect.temporal)[held] == "text":
            marks = [exp.Literal.string("T"), exp.Literal.string(" ")]
            return exp.Anonymous(this="REPLACE", expressions=[column, *marks])
        return column

    def _bytes_of(self, column: Node) -> Node:
        dialect = self.dialect
        if dialect.bytes == "binary":
            in_utf8 = exp.Cast(this=column, to=exp.DataType.build(_UTF8, dialect="mysql"))
            return exp.Cast(this=in_utf8, to=exp.DataType.build("BINARY", dialect="mysql"))
        text = self.cast(column, dialect.text)
        if dialect.bytes == "varbinary":
            return self.cast(text, "VARBINARY(MAX)")
        if dialect.bytes == "collate":
            return exp.Collate(this=text, expression=exp.Identifier(this=dialect.collation, quoted=True))
        return text

    def _without_nan(self, number: Node) -> Node:
        test = self._is_nan(number)
        if test is None:
            return number
        return exp.Case(ifs=[exp.If(this=exp.Not(this=test), true=number.copy())])

    def _is_nan(self, number: Node) -> Node | None:
        dialect = self.dialect
        if dialect.nan == "none":
            return None
        if dialect.nan == "function":
            return exp.Anonymous(this=dialect.nan_function, expressions=[number])
        if dialect.nan == "equal":
            return exp.EQ(this=number, expression=self.cast(exp.Literal.string("NaN"), dialect.double))
        if dialect.nan == "nanvl":
            known = exp.Anonymous(this="NANVL", expressions=[number, exp.Null()])
            return exp.Is(this=known, expression=exp.Null())
        infinite = exp.EQ(this=number.copy(), expression=self.cast(exp.Literal.string("inf"), dialect.double))
        beyond = exp.GT(this=number, expression=self.number(_LARGEST))
        return exp.Paren(this=exp.And(this=beyond, expression=exp.Not(this=infinite)))

    def _is(self, column: Node, value: bool) -> Node:
        return exp.EQ(this=column, expression=self._truth(value))

    def _truth(self, value: bool) -> Node:
        plain = self.dialect.booleans and self.dialect.name != "sqlite"
        return exp.Boolean(this=value) if plain else self.whole(int(value))

    def same_values(self, column: Node, values: Sequence[Any], kind: str, held: str) -> Node | None:
        """Write that a column is one of some categories, none missing; None where no value can be held."""
        trees: list[Node] = []
        for value in values:
            tree = self.category(value, kind, held)
            if tree is not None:
                trees.append(tree)
        if not trees:
            return None
        lists: list[Node] = []
        if kind == "numbers" and 0.0 in values:
            # some engines compare or hash values of lists bit by bit, where -0.0 is not 0.0
            zero = trees.pop(list(values).index(0.0))
            lists.append(exp.EQ(this=exp.Abs(this=column.copy()), expression=zero))
        lists += [
            exp.In(this=column.copy(), expressions=trees[i : i + _LONG_LIST])
            if len(trees) > 1
            else exp.EQ(this=column.copy(), expression=trees[i])
            for i in range(0, len(trees), _LONG_LIST)
        ]
        any_of = lists[0]
        for other in lists[1:]:
            any_of = exp.Or(this=any_of, expression=other)
        return any_of

    def category(self, value: Any, kind: str, held: str) -> Node | None:
        """Write a category as it is compared."""
        if kind == "texts":
            return self.text(value)
        if kind == "booleans":
            return self._truth(value) if held == "boolean" else self.whole(int(value))
        if kind == "integers" and isinstance(value, int):
            return self.whole(value)
        return self.number(float(value))

    # ----- parts

    def part(
        self,
        partition: Partition,
        column: Node,
        *,
        first: int = 0,
        unseen: int = -1,
        looked_up: Node | None = None,
    ) -> Node:
        """Write the index of the part of a column that `compared` wrote, from ``first``.

        ``unseen`` is the result for a category never seen; ``looked_up`` finds the parts of texts in a table.
        """
        indices = [self.whole(i + first) for i in range(partition.n_parts)]
        if looked_up is None:
            return self.choose_part(partition, column, indices, self.whole(unseen))
        found = looked_up if first == 0 else exp.Add(this=looked_up, expression=self.whole(first))
        missing = next((i for i, group in enumerate(groups_of(partition) or ()) if None in group), None)
        branches: list[tuple[Node, Node]] = []
        if missing is not None:
            branches.append((exp.Is(this=column.copy(), expression=exp.Null()), indices[missing]))
        return _case(branches, exp.Coalesce(this=found, expressions=[self.whole(unseen)]))

    def choose_part(self, partition: Partition, column: Node, results: Sequence[Node], unseen: Node) -> Node:
        """Choose among results, one per part, by a column that `compared` wrote."""
        kind = kind_of(partition)
        held = self.held(partition.name, kind)
        branches: list[tuple[Node, Node]] = []
        groups = groups_of(partition)
        if groups is None:
            assert isinstance(partition, IntervalPartition)
            lowest = results[int(partition.missing_alone)]
            for bound, result in zip(partition.bounds[::-1], results[::-1], strict=False):
                test = self.above(column.copy(), bound, held)
                if test is not None:
                    branches.append((test, result))
            if partition.missing_alone:
                branches.append((_not_null(column.copy()), lowest))
            branches = _in_blocks(branches)
            # NaN is above all numbers, but on some engines, where no comparison with it is true
            guarded = partition.missing_alone or self.dialect.nan_above
            nan = self._is_nan(column.copy()) if held in ("number", "microseconds", "text") else None
            if branches and nan is not None and guarded:
                branches.insert(0, (nan, results[0].copy()))
            return _case(branches, results[0])
        for group, result in zip(groups, results, strict=True):
            if None in group:
                branches.append((exp.Is(this=column.copy(), expression=exp.Null()), result.copy()))
            test = self.same_values(column, [v for v in group if v is not None], kind, held)
            if test is not None:
                branches.append((test, result))
        return _case(branches, unseen)

    # ----- arithmetic

    def look_up(self, index: Node, values: Sequence[float]) -> Node:
        """Find a number in a list by an index from 1; `as_result` makes a result of it."""
        how = self.dialect.arrays
        if all(value == values[0] for value in values):
            return self.number(values[0])
        if how == "none":
            pairs = [(i, self.number(value)) for i, value in enumerate(values, 1)]
            return self.choose(index, pairs[:-1], pairs[-1][1])
        written = [self.number(value, plain=True) for value in values]
        array: Node = exp.Array(expressions=written, bracket_notation=how == "brackets" or None)
        if how == "cast":
            array = exp.Paren(this=self.cast(array, f"{self.dialect.double}[]"))
        if how == "element_at":
            return exp.Anonymous(this="ELEMENT_AT", expressions=[array, index])
        if how == "elt":
            return exp.Anonymous(this="ELT", expressions=[index, *written])
        if how == "ordinal":
            return exp.Bracket(this=array, expressions=[index], offset=1, safe=False)
        return exp.Bracket(this=array, expressions=[index], offset=self.grammar.INDEX_OFFSET)

    def as_result(self, tree: Node) -> Node:
        """Return a number as a column of a select: ELT by itself would be a text of fewer digits."""
        if isinstance(tree, exp.Anonymous) and tree.name == "ELT":
            return exp.Add(this=tree, expression=self.number(0.0))
        return tree

    def look_up_row(self, index: Node, rows: Sequence[Sequence[float]]) -> Node:
        """Find a row of numbers in a list of rows by an index from 1."""
        written = [exp.Tuple(expressions=[self.number(value) for value in row]) for row in rows]
        array = exp.Array(expressions=written, bracket_notation=True)
        return exp.Bracket(this=array, expressions=[index], offset=self.grammar.INDEX_OFFSET)

    def field(self, row: Node, number: int) -> Node:
        """Return a number of a row, counted from 1."""
        return exp.Bracket(this=row, expressions=[self.whole(number)], offset=self.grammar.INDEX_OFFSET)

    def choose(self, index: Node, pairs: Sequence[tuple[int, Node]], default: Node) -> Node:
        """Choose by a whole number; many branches, ascending, are found in two steps."""
        if not pairs:
            return default
        if len(pairs) <= _LONG_CASE:
            ifs = [exp.If(this=self.whole(key), true=tree) for key, tree in pairs]
            return exp.Case(this=index.copy(), ifs=ifs, default=default)
        size = math.isqrt(len(pairs)) + 1
        blocks = [pairs[i : i + size] for i in range(0, len(pairs), size)]
        branches: list[tuple[Node, Node]] = [
            (
                exp.LTE(this=index.copy(), expression=self.whole(block[-1][0])),
                self._plain_case(index, block, default.copy()),
            )
            for block in blocks
        ]
        return _case(branches, default)

    def _plain_case(self, index: Node, pairs: Sequence[tuple[int, Node]], default: Node) -> Node:
        ifs = [exp.If(this=self.whole(key), true=tree) for key, tree in pairs]
        return exp.Case(this=index.copy(), ifs=ifs, default=default)

    def first_reaching(self, number: Node, limits: Sequence[float], values: Sequence[float]) -> Node:
        """Choose the value of the first limit that is not below a number, or the last; limits ascend."""
        pairs = list(zip(limits, values, strict=True))
        if len(pairs) <= _LONG_CASE:
            branches = [
                (exp.LTE(this=number.copy(), expression=self.number(limit)), self.number(value))
                for limit, value in pairs[:-1]
            ]
            return _case(branches, self.number(values[-1]))
        size = math.isqrt(len(pairs)) + 1
        starts = range(0, len(pairs), size)
        blocks = [self.first_reaching(number, limits[i : i + size], values[i : i + size]) for i in starts]
        ends = [self.number(limits[i + size - 1]) for i in starts[:-1]]
        branches = [
            (exp.LTE(this=number.copy(), expression=end), block)
            for end, block in zip(ends, blocks, strict=False)
        ]
        return _case(branches, blocks[-1])

    def clipped(self, column: Node, low: float, high: float) -> Node:
        """Keep a number between two others."""
        below = exp.LT(this=column.copy(), expression=self.number(low))
        above = exp.GT(this=column.copy(), expression=self.number(high))
        return _case([(below, self.number(low)), (above, self.number(high))], column.copy())

    def total(self, terms: Sequence[Node]) -> Node:
        """Add numbers; long sums in parentheses, for engines recurse on them."""
        if len(terms) > self.dialect.longest_sum:
            size = math.isqrt(len(terms)) + 1
            terms = [exp.Paren(this=self.total(terms[i : i + size])) for i in range(0, len(terms), size)]
        tree = terms[0]
        for term in terms[1:]:
            tree = exp.Add(this=tree, expression=term)
        return tree

    def largest(self, terms: Sequence[Node]) -> Node:
        """Return the largest of some numbers, none NULL."""
        if len(terms) == 1:
            return terms[0]
        if len(terms) > _MOST_ARGUMENTS:
            blocks = [terms[i : i + _MOST_ARGUMENTS] for i in range(0, len(terms), _MOST_ARGUMENTS)]
            return self.largest([self.largest(block) for block in blocks])
        return exp.Anonymous(this=self.dialect.greatest, expressions=list(terms))

    def least(self, terms: Sequence[Node]) -> Node:
        """Return the least of some numbers, none NULL."""
        if len(terms) == 1:
            return terms[0]
        if len(terms) > _MOST_ARGUMENTS:
            blocks = [terms[i : i + _MOST_ARGUMENTS] for i in range(0, len(terms), _MOST_ARGUMENTS)]
            return self.least([self.least(block) for block in blocks])
        return exp.Anonymous(this="LEAST", expressions=list(terms))

    def single(self, tree: Node) -> Node:
        """Round a number to float32."""
        assert self.dialect.single is not None
        return self.cast(self.cast(tree, self.dialect.single), self.dialect.double)

    def or_missing(self, column: Node, missing: Node) -> Node:
        """Replace NULL and NaN."""
        branches: list[tuple[Node, Node]] = [(exp.Is(this=column.copy(), expression=exp.Null()), missing)]
        nan = self._is_nan(column.copy())
        if nan is not None:
            branches.append((nan, missing.copy()))
        return _case(branches, column)

    def exponential(self, tree: Node) -> Node:
        """Exponential of a number that is not positive."""
        if self.dialect.clamp:
            tree = self.largest([tree, self.number(-700.0)])
        return exp.Exp(this=tree)

    # ----- queries

    def created(self, query: Node, create: tuple[str, Sequence[str]] | None) -> Node:
        """Make a view or a table of a query, if asked to."""
        if create is None:
            return query
        kind, names = create
        return exp.Create(this=self.table(names), kind=kind.upper(), expression=query)

    def fenced(self, query: exp.Select) -> exp.Select:
        """Keep the engine from copying the columns of a subquery into its users."""
        fence = self.dialect.fence
        if fence == "offset":
            return query.offset(0, copy=False)
        if fence == "limit":
            return query.limit(-1, copy=False).offset(0, copy=False)
        if fence == "huge":
            return query.limit(18446744073709551615, copy=False)
        return query


def _literal(written: str) -> exp.Literal:
    """Write what Python writes of a number so that no engine takes it for a decimal."""
    if "e" not in written:
        written = written.removesuffix(".0") + "e0"
    return exp.Literal(this=written, is_string=False)


def reads_back(written: str) -> bool:
    """Tell whether SQLite before 3.43 reads a literal as the nearest double, on any processor.

    It divides a whole number by a power of ten, in 64 bits on some processors, and rounds the result once
    more: wrong where the first rounding ends halfway between two doubles.

    >>> reads_back("0.1"), reads_back("0.30000000000000004"), reads_back("1e-30")
    (True, False, False)
    """
    _, digits, exponent = Decimal(written).as_tuple()
    if not isinstance(exponent, int) or len(digits) > 15 or not -22 <= exponent <= 3:
        return False
    if exponent >= 0:
        return True
    found = abs(float(written))
    whole, power = int("".join(map(str, digits))), 10**-exponent
    (n, of), (step, parts) = found.as_integer_ratio(), math.ulp(found).as_integer_ratio()
    off = abs(whole * of - n * power) * parts / (power * of * step)  # in units of the last place
    return all(abs(off - half) > 1 / 1024 for half in (0.5, 0.25))


def _case(branches: Sequence[tuple[Node, Node]], default: Node) -> Node:
    if not branches:
        return default
    return exp.Case(ifs=[exp.If(this=test, true=then) for test, then in branches], default=default)


def _in_blocks(branches: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """Put many branches, each of whose tests holds where one before does, into blocks: found in two steps."""
    if len(branches) <= _LONG_CASE:
        return branches
    size = math.isqrt(len(branches)) + 1
    blocks = [branches[i : i + size] for i in range(0, len(branches), size)]
    return [(block[-1][0].copy(), _case(block[:-1], block[-1][1])) for block in blocks]


def _not_null(column: Node) -> Node:
    return exp.Not(this=exp.Is(this=column, expression=exp.Null()))


def _shortened(text: str) -> str:
    """Drop what is zero at the end of an ISO text, so that texts compare as the moments do.

    >>> _shortened("2020-01-02 00:00:00.000000"), _shortened("2020-01-02 10:30:00.500000")
    ('2020-01-02', '2020-01-02 10:30:00.5')
    """
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    if text.count(":") == 2:
        text = text.removesuffix(":00")
    return text.removesuffix(" 00:00")


def _oracle_moment(text: str, held: str) -> Node:
    """Write a moment that does not depend on the session's formats."""
    if held == "date":
        return exp.Anonymous(
            this="TO_DATE", expressions=[exp.Literal.string(text), exp.Literal.string("YYYY-MM-DD")]
        )
    zone = held == "timestamptz"
    form = "YYYY-MM-DD HH24:MI:SS.FF6" + (" TZH:TZM" if zone else "")
    return exp.Anonymous(
        this="TO_TIMESTAMP_TZ" if zone else "TO_TIMESTAMP",
        expressions=[exp.Literal.string(text + (" +00:00" if zone else "")), exp.Literal.string(form)],
    )
