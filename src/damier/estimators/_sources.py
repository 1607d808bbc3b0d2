"""What ``fit`` does with a table that an engine holds: files, a database, a cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from damier.fit.source_numbers import is_number, refuse_unclear
from damier.fit.sources import SourceUse
from damier.intake import CategoricalColumn, Column, Table
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

LEAST_ENGINE_MEMORY = 256 * 2**20
"""Bytes that an engine is given, however little the fit may take."""


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

    def is_number(self, kind: str) -> bool:
        """Say whether the target is a number: where ``kind`` is "auto", fractional ones are.

        Raises
        ------
        ValueError
            If whole numbers could be either.
        """
        if is_number(self.source, self.target, self.weight, kind):
            return True
        if kind == "auto":
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
