"""Rows to learn from, and tables that an engine holds: files, a database, a cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from damier.fit.source_target import is_number, refuse_unclear
from damier.fit.sources import SourceUse
from damier.intake import (
    CategoricalColumn,
    Column,
    NumericTarget,
    Table,
    Target,
    TargetType,
    read_any_target,
    read_numbers,
    read_target,
    read_weights,
    refuse_many_classes,
)
from damier.intake.engines.source import (
    Labels,
    Source,
    check_columns,
    is_source,
    memory_bytes,
    open_source,
    read_labels,
    table_bytes,
)
from damier.intake.table import IntArray
from damier.intake.target import explored_target

if TYPE_CHECKING:
    from damier.search.run import Run

AnyTarget = TypeVar("AnyTarget", Target, NumericTarget, Target | NumericTarget)

LEAST_ENGINE_MEMORY = 256 * 2**20
"""Bytes that an engine is given, however little the fit may take."""


@dataclass(frozen=True, slots=True)
class Training(Generic[AnyTarget]):
    """Rows that count, as read by an estimator's ``fit``; ``weights`` is None when every row counts once."""

    table: Table
    target: AnyTarget
    weights: IntArray | None


def rows_that_count(table: Table, target: AnyTarget, sample_weight: Any) -> Training[AnyTarget]:
    """Leave out rows of weight zero as if never there."""
    weights = read_weights(sample_weight, table.n_rows)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        table, weights = table.take(kept), weights[kept]
        target = target.take(kept) if isinstance(target, NumericTarget) else _only(target, kept)
    return Training(table, target, weights)


def _only(target: Target, kept: IntArray) -> Target:
    """Keep rows of a target, and the classes they hold."""
    codes = target.codes[kept]
    seen = np.zeros(target.n_classes + 1, dtype=bool)  # the extra last place answers to -1
    seen[codes] = True
    position = (np.cumsum(seen) - 1).astype(np.int32)
    position[-1] = -1
    return Target(position[codes], target.classes[seen[:-1]])


@dataclass
class Opened:
    """A source that was given to ``fit``, with the names of its target and weights."""

    source: Source
    target: str
    weight: str | None
    memory: int
    began: float = field(default_factory=time.monotonic)

    @cached_property
    def labels(self) -> Labels:
        """The classes of the target."""
        return read_labels(self.source, self.target, self.weight)

    @property
    def fits(self) -> bool:
        """Whether the rows take at most a quarter of the memory."""
        return table_bytes(self.source) <= self.memory / 4

    def rows(self, estimator: str) -> tuple[Table, Any, Any]:
        """Read all rows, if they fit: the columns, the target and the weights.

        Raises
        ------
        ValueError
            If they do not.
        """
        if not self.fits:
            raise ValueError(
                f"{estimator} needs all rows in memory, and {self.source.n_rows:,} rows of "
                f"{len(self.source.columns)} columns do not fit a quarter of the memory limit "
                f"({self.memory:,} bytes). Pass a sample of the rows (in DuckDB: USING SAMPLE 100000 ROWS; "
                "in Spark: df.sample), or a larger memory_limit."
            )
        kept = [column.name for column in self.source.columns]
        held = self.source.collect(kept)
        y, weights = self._values(held[self.target]), None
        table = held.drop(self.target)
        if self.weight is not None:
            weights = self._values(held[self.weight])
            table = table.drop(self.weight)
        return table, y, weights

    def classes(self) -> Training[Target]:
        """Read all rows, and the target as classes: at least two."""
        table, y, weights = self.rows("A fit")
        target = read_target(y, name=self.target)
        refuse_many_classes(target, self.target)
        training = rows_that_count(table, target, weights)
        require_two_classes(training.target, self.target)
        return training

    def numbers(self) -> Training[NumericTarget]:
        """Read all rows, and the target as numbers: at least two different ones."""
        table, y, weights = self.rows("A fit")
        training = rows_that_count(table, read_numbers(y, self.target), weights)
        require_two_values(training.target, self.target)
        return training

    def sampled(self, n_rows: int, seed: int) -> tuple[Table, Any]:
        """Draw rows by their hash, all if they fit: the columns and the target."""
        if self.fits:
            return self.rows("")[:2]
        held = self.source.sample([column.name for column in self.source.columns], n_rows, seed)
        return held.drop(self.target), self._values(held[self.target])

    def _values(self, column: Column) -> Any:
        """Values of a column that was collected, whole numbers as integers."""
        if isinstance(column, CategoricalColumn):
            held = np.empty(len(column.categories), dtype=object)
            held[:] = column.categories
            booleans = len(held) > 0 and all(type(value) is bool for value in column.categories)
            return held[column.codes].astype(bool) if booleans else held[column.codes]
        if column.exact is not None:  # beyond 2^53 floats merge
            codes, values = column.exact
            return np.array(values)[codes]
        kind = next(c.type for c in self.source.columns if c.name == column.name)
        if "int" in kind.lower() and not np.isnan(column.values).any():
            return column.values.astype(np.int64)
        return column.values

    def is_number(self, kind: TargetType, *, many: bool = False, run: Run | None = None) -> bool:
        """Say whether the target is a number: where ``kind`` is "auto", fractional ones are.

        With ``many``, whole numbers that could be either are a number too.

        Raises
        ------
        ValueError
            If whole numbers could be either, without ``many``.
        """
        if self.fits:
            y = self._values(self.source.collect([self.target])[self.target])
            read = explored_target if many else read_any_target
            return isinstance(read(y, kind, name=self.target), NumericTarget)
        if is_number(self.source, self.target, self.weight, kind, many=many, run=run):
            return True
        if kind == "auto" and not many:
            refuse_unclear(self.labels)
        return False

    def use(self, **more: Any) -> SourceUse:
        """Say what was asked of the source."""
        source = self.source
        seconds = time.monotonic() - self.began
        return SourceUse(source.engine, source.n_rows, source.n_scans, seconds, **more)


def open_training(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    memory_limit: int | str | None = None,
    threads: int | None = None,
) -> Opened | None:
    """Open what ``fit`` was given if an engine holds it; None if it is in memory.

    Raises
    ------
    ValueError
        If the target or the weights are not names of columns.
    """
    if isinstance(X, Opened):
        return X
    if not is_source(X):
        return None
    for given, name in ((y, "y"), (sample_weight, "sample_weight")):
        if not isinstance(given, str) and not (given is None and name == "sample_weight"):
            raise ValueError(
                f"{name} must be the name of a column of X: rows that an engine holds come in no promised "
                "order, so that an array cannot be matched with them."
            )
    memory = memory_bytes(memory_limit)
    source = open_source(X, memory_limit=max(memory // 2, LEAST_ENGINE_MEMORY), threads=threads)
    assert source is not None
    check_columns(source, y, sample_weight)
    if all(column.name in (y, sample_weight) for column in source.columns):
        raise ValueError(f"the table has no column beside the target {y!r}: at least one is needed")
    return Opened(source, y, sample_weight, memory)


def refuse_for_sources(group_classes: bool, semi_supervised: str | None) -> None:
    """Refuse settings that need rows.

    Raises
    ------
    ValueError
        If one of them is set.
    """
    if group_classes:
        raise ValueError(
            "group_classes=True needs all rows in memory, and X does not fit the memory limit: set it to "
            "False, pass a sample of the rows, or a larger memory_limit."
        )
    if semi_supervised is not None:
        raise ValueError(
            "semi_supervised needs all rows in memory, and X does not fit the memory limit: leave out the "
            "rows without a label and set it to None, pass a sample of the rows, or a larger memory_limit."
        )


def require_two_classes(target: Target | Labels, name: str = "y") -> None:
    """Refuse a target that says nothing.

    Raises
    ------
    ValueError
        If there are fewer than two classes.
    """
    if target.n_classes == 0:
        raise ValueError(f"the target {name} has no labeled row")
    if target.n_classes == 1:
        only = target.classes.tolist()[0]
        raise ValueError(
            f"the target {name} is constant, it holds one class only ({only!r}): at least two are needed"
        )


def require_two_values(target: NumericTarget, name: str = "y") -> None:
    """Refuse a number that does not vary.

    Raises
    ------
    ValueError
        If there are fewer than two distinct values.
    """
    if target.n_distinct < 2:
        n_rows = len(target.codes)
        raise ValueError(
            f"the target {name} is constant, it is {target.distinct[0]:g} in all rows ({n_rows} sample(s)): "
            "at least two different numbers are needed"
        )
