"""Tables that are counted where they are: what an engine must be able to do.

A source is a table in files, in a database or on a cluster. Fitting to it never asks for the rows, only for
counts, which the engine adds up whatever the order of the rows, and for a sample where a search needs rows.

Who writes an engine implements `Source`, and has `open_source` recognise its tables by the module of their
type: no engine is imported before one of its tables is met.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from damier.intake.counts import check_pairs, count_pairs
from damier.intake.dates import number_text
from damier.intake.engines.prebins import CHANGED, Binning, Counts, NumberCounter
from damier.intake.factorize import canonical
from damier.intake.frames import nested_error
from damier.intake.table import CategoricalColumn, Column, IntArray, NumericColumn, Table
from damier.intake.target import read_target

if TYPE_CHECKING:
    from damier.intake.engines.cells import Axis, Cells

Kind = Literal["number", "date", "datetime", "duration", "time", "boolean", "text", "nested"]

MEMORY = 4_000_000_000
"""Bytes that a fit to a source may take, unless said otherwise: a table of a quarter of it is collected."""

COUNT = "count of pairs"
"""Name of the column that says how often a pair of values occurs."""

MOST_PAIRS = 100_000_000
"""Pairs of values that are read into memory at most, however much there is."""

# Bytes that a search over pairs takes for each of them, about.
_PAIR_BYTES = 64

SLOTS = 1 << 12
"""Slots that rows are put into by their hash, to find rows that are met many times."""

_MOST_CLASSES = 1000
_MOST_DISTINCT = 0.1


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source.

    Parameters
    ----------
    name : str
    kind : str
        As the table in memory would have it: numbers and what is counted in microseconds are numeric, text
        and booleans are categorical; "nested" is what no model can use.
    type : str
        What the engine calls the type.
    legend : tuple
        The time zone of a datetime that has one.
    """

    name: str
    kind: Kind
    type: str = ""
    legend: tuple[Any, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether the column is numeric; booleans are not."""
        return self.kind not in ("boolean", "text", "nested")


@dataclass(frozen=True, eq=False, slots=True)
class Labels:
    """The target of a source and its weights, both columns of it.

    Parameters
    ----------
    name : str
        The column that is the target.
    classes : array of shape (n_classes,)
        Sorted, as ``classes_`` of an estimator.
    values : list
        The same as the engine has them, in the same order.
    counts : int64 array of shape (n_classes,)
        Rows of each class, or the sums of their weights.
    weight : str, optional
        The column that says how many times each row counts; rows of weight 0 are left out of everything.
    axes : tuple of Axis
        Columns whose parts tell classes apart too: each cell of theirs has the classes of the target, or is
        one class where ``values`` is empty. Cells are numbered with the last axis changing fastest.
    """

    name: str
    classes: npt.NDArray[Any]
    values: list[Any]
    counts: IntArray
    weight: str | None = None
    axes: tuple[Axis, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return math.prod(axis.n_parts for axis in self.axes) * max(len(self.values), 1)

    @property
    def total(self) -> int:
        """Number of rows that count."""
        return int(self.counts.sum())


class Profiles(NamedTuple):
    """Values of a categorical column by their class counts.

    Attributes
    ----------
    counts : int64 array of shape (n_profiles, n_classes)
        Class counts that some value has, each row once.
    n_values : int64 array of shape (n_profiles,)
        How many values have these counts; a missing value is one.
    """

    counts: IntArray
    n_values: IntArray


class Listed(NamedTuple):
    """Values of a categorical column with their class counts, the most frequent first, equals by value.

    Attributes
    ----------
    values : list
        None is missing; whole numbers are int, dates and times microseconds.
    counts : int64 array of shape (n_values, n_classes)
    """

    values: list[Any]
    counts: IntArray


class Watch(Protocol):
    """What a source needs of `damier.search.run.Run`."""

    def check(self) -> None:
        """Raise if the run is stopped: to be called between batches."""

    def report(self, text: str = "", *, done: int = 0, total: int = 0) -> None:
        """Report rows done."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, text: str | None = None) -> Any:
        """Apply a function to items, shared among threads."""


class Source(Protocol):
    """A table that an engine counts.

    Results must not depend on the order of the rows, on batches, threads or partitions.

    Attributes
    ----------
    engine : str
        Its name, for people: "DuckDB".
    columns : tuple of SourceColumn
    n_rows : int
    n_scans : int
        How many times rows were read so far, in whole or in part.
    """

    engine: str
    columns: tuple[SourceColumn, ...]
    n_rows: int
    n_scans: int

    def classes(self, target: str, weight: str | None) -> tuple[list[Any], list[int]]:
        """Return the distinct values of the target (None is missing) and their rows, or sums of weights.

        Whole numbers are int, booleans bool; rows of weight 0 are left out.
        """

    def weight_facts(self, weight: str) -> tuple[float, float, int, int]:
        """Return the least and the greatest weight, rows where it is missing and where it is not whole."""

    def count(
        self,
        binnings: Mapping[str, Binning],
        labels: Labels | Mapping[str, Labels],
        *,
        of: str | None = None,
        by_class: bool = True,
        values: bool = False,
        counter: type[NumberCounter] = NumberCounter,
        watch: Watch | None = None,
    ) -> dict[str, Counts]:
        """Count numeric columns (booleans too, as 0 and 1) in their bins, all of them in one scan.

        Parameters
        ----------
        binnings : mapping of str to Binning
            Bins of each column to count.
        labels : Labels or mapping of str to Labels
            Classes and weights; those of each column where they differ.
        of : str, optional
            The column that all bins are of: each name then only says by which labels it is counted.
        by_class : bool
            Whether to count each class apart; all in one column otherwise.
        values : bool
            Whether to collect the distinct values of columns of few.
        counter : type
            What counts batches where that happens in this process, as `NumberCounter` does; engines that
            count elsewhere ignore it.
        watch : Watch, optional
            To report to, and to be stopped by.
        """

    def profiles(self, column: str, labels: Labels) -> Profiles:
        """Count a column by value and class, then its values by their counts; numbers are names here."""

    def listed(self, column: str, labels: Labels, max_values: int) -> Listed:
        """List the most frequent values of a column; numbers are names here."""

    def write_groups(
        self, column: str, labels: Labels, profiles: Profiles, groups: Sequence[int], out: str
    ) -> int:
        """Have the engine write every value of a column with its group, and return how many there are.

        Parameters
        ----------
        column : str
        labels : Labels
        profiles : Profiles
            Those of the column.
        groups : sequence of int
            Group of each profile.
        out : str
            What is written, see `damier.deploy.write_groups`; it is there when all is written, or not at all.
        """

    def cells(self, axes: Sequence[Axis], labels: Labels) -> Cells:
        """Count the cells of a grid that hold rows."""

    def pairs(self, rows: str, columns: str | Labels, weight: str | None, most: int) -> Table:
        """Count the pairs of values of two columns, or of the values of one and the numbers of classes.

        Returns a table of the two columns, each pair once, and of `COUNT`, their rows or sums of weights; it
        has ``most + 1`` rows where there are more pairs than ``most``.
        """

    def sample(self, columns: Sequence[str], n_rows: int, seed: int = 0) -> Table:
        """Return about ``n_rows`` rows chosen by a hash of their values: the same whatever the row order.

        Equal rows have one hash. Where `crowded_slots` finds many, they are counted, and as many are taken as
        their share of all rows asks for.
        """

    def collect(self, columns: Sequence[str]) -> Table:
        """Return all rows."""


def is_source(X: Any) -> bool:
    """Return whether X is a table that an engine holds, a `Source`, or the name of files; without opening it.

    >>> is_source("visits/*.parquet"), is_source([[1.0]])
    (True, False)
    """
    return _recognised(X) is not None or isinstance(getattr(X, "n_scans", None), int)


def part_name(column: str) -> str:
    """Return the name that groups of values are written under, beside a column.

    >>> part_name("shop"), part_name("Part")
    ('part', 'part_')
    """
    return "part_" if column.lower() == "part" else "part"


def few_classes_error(labels: Labels, most: int) -> ValueError:
    """Return the error of groups to be written of a target with too many classes."""
    return ValueError(f"groups are written for at most {most} classes; {labels.name!r} has more")


def _recognised(X: Any) -> str | None:
    if isinstance(X, (str, Path)):
        return "files"
    for held in type(X).__mro__:
        package, name = held.__module__.partition(".")[0], held.__name__
        if package in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
            return "duckdb"
        if package == "pyspark" and name == "DataFrame" and ".pandas." not in held.__module__:
            return "spark"
        if package == "ibis" and name == "Table":
            return "ibis"
    return None


def open_source(X: Any, *, memory_limit: int | None = None, threads: int | None = None) -> Source | None:
    """Open a table that an engine holds.

    Parameters
    ----------
    X : object
        The path of a Parquet or CSV file, or a pattern of several; a DuckDB relation; a Spark DataFrame; an
        ibis table. A `Source` is returned as it is.
    memory_limit : int, optional
        Bytes that the engine may use, where Damier starts it.
    threads : int, optional
        Threads of the engine, where Damier starts it.

    Returns
    -------
    Source or None
        None if X is anything else.

    Raises
    ------
    ImportError
        If what the engine needs is not installed; the message names it.
    FileNotFoundError, ValueError
        If there is no such file, or it is not what its name says.
    """
    if isinstance(getattr(X, "n_scans", None), int):
        held: Source = X
        return held
    engine = _recognised(X)
    if engine == "files":
        from damier.intake.engines.duckdb import open_files

        return open_files(X, memory_limit=memory_limit, threads=threads)
    if engine == "duckdb":
        from damier.intake.engines.duckdb import DuckDBSource

        return DuckDBSource(X)
    if engine == "spark":
        spark: Source = importlib.import_module("damier.intake.engines.spark").SparkSource(X)
        return spark
    if engine == "ibis":
        ibis: Source = importlib.import_module("damier.intake.engines.ibis").open_ibis(X)
        return ibis
    return None


def memory_bytes(memory_limit: int | str | None) -> int:
    """Read a memory limit, in bytes or as text; None is `MEMORY`.

    >>> memory_bytes("2GB"), memory_bytes("512 MiB"), memory_bytes(None)
    (2000000000, 536870912, 4000000000)
    """
    if memory_limit is None:
        return MEMORY
    if isinstance(memory_limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(i?)B?\s*", memory_limit, re.IGNORECASE)
        if found is None:
            raise ValueError(f"memory_limit must be a size such as '4GB'; got {memory_limit!r}")
        unit = (1024 if found[3] else 1000) ** " KMGT".index(found[2].upper() or " ")
        memory_limit = int(float(found[1]) * unit)
    if memory_limit < 0:
        raise ValueError(f"memory_limit must not be negative; got {memory_limit}")
    return memory_limit


def table_bytes(source: Source) -> int:
    """Return what the rows would take in memory: 8 bytes per value, 40 per text."""
    return source.n_rows * sum(40 if column.kind == "text" else 8 for column in source.columns)


def crowded_slots(slots: Sequence[int], rows: Sequence[int]) -> list[int] | None:
    """Find the slots of the hash that hold many equal rows.

    Parameters
    ----------
    slots, rows : sequences of int
        Slots that hold rows, of `SLOTS`, and how many rows each holds.

    Returns
    -------
    list of int or None
        Slots where equal rows are to be counted; None for all of them.

    Examples
    --------
    >>> crowded_slots(range(SLOTS), [100] * (SLOTS - 1) + [5000])
    [4095]
    >>> crowded_slots([7, 8], [30_000, 40_000]), crowded_slots(range(SLOTS), [50, 150] * (SLOTS // 2))
    ([7, 8], None)
    """
    held = np.asarray(rows, np.float64)
    mean = held.sum() / SLOTS
    # Rows that all differ fill the slots by chance, with a standard deviation of the root of the mean.
    crowded = held > mean + 8.0 * math.sqrt(mean) + 8.0
    rest = held[~crowded]
    if len(rest) and np.square(rest - mean).sum() > 4.0 * mean * len(rest) + 4.0 * len(rest):
        return None
    return [int(slot) for slot, many in zip(slots, crowded.tolist(), strict=True) if many]


def need(package: str, extra: str, what: str) -> None:
    """Refuse to go on without a package.

    Raises
    ------
    ImportError
        If it is not installed; the message names the extra that has it.
    """
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"{what} needs {package}: pip install 'damier[{extra}]'")


def check_columns(source: Source, target: str, weight: str | None = None) -> None:
    """Refuse a target or weights that are no columns, and a table without rows.

    Raises
    ------
    ValueError
    """
    names = [column.name for column in source.columns]
    for name, what in ((target, "the target"), (weight, "sample_weight")):
        if name is not None and name not in names:
            listed = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"{what} {name!r} is no column of the table; its columns are {listed}")
    if source.n_rows == 0:
        raise ValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required: the table has no rows."
        )


def read_pairs(source: Source, names: Sequence[str], counts: str | None = None, memory: int = MEMORY) -> Any:
    """Count the pairs of two columns of a source, as `damier.intake.counts.count_pairs` does in memory.

    Parameters
    ----------
    source : Source
    names : pair of str
        The columns whose values are the rows and the columns of the counts.
    counts : str, optional
        A third column that says how often each pair occurs.
    memory : int
        Bytes that the search may take, which limits the number of pairs; it is never above `MOST_PAIRS`.

    Returns
    -------
    tuple
        As `damier.intake.counts.count_pairs`.

    Raises
    ------
    ValueError
        If these are no columns of names, or there are too many pairs.
    """
    if len(names) != 2 or len({*names, counts}) < 3:
        raise ValueError(
            "A coclustering is of two columns, and a third may count its pairs: name the first two, as in "
            f"fit(X, ('customer', 'product')); got {list(names)!r}."
        )
    for name in names:
        check_columns(source, name, counts)
    held = [next(column for column in source.columns if column.name == name) for name in names]
    for column in held:
        if column.kind == "nested":
            raise nested_error(column.name, column.type)
    check_pairs(Table(tuple(_empty(column) for column in held), 0))
    if counts is not None:
        _check_weights(source, counts, f"The column of counts {counts!r}")
    most = max(min(MOST_PAIRS, memory // _PAIR_BYTES), 1)
    found = source.pairs(names[0], names[1], counts, most)
    if found.n_rows > most:
        raise ValueError(
            f"{names[0]!r} and {names[1]!r} have more than {most:,} distinct pairs, and a search holds them "
            "in memory: leave out rare values, put values of one side together, or raise memory_limit (there "
            f"are never more than {MOST_PAIRS:,})."
        )
    return count_pairs(found, COUNT)


def _empty(column: SourceColumn) -> Column:
    """Return a column of the kind of another, without rows."""
    if column.kind in ("text", "boolean"):
        return CategoricalColumn(column.name, np.empty(0, np.int32), ())
    return NumericColumn(column.name, np.empty(0), column.kind)  # type: ignore[arg-type]


def read_labels(source: Source, target: str, weight: str | None = None) -> Labels:
    """Read the classes of a source, with their counts.

    Parameters
    ----------
    source : Source
    target : str
        The column with the classes.
    weight : str, optional
        The column with whole frequencies.

    Raises
    ------
    ValueError
        If there is no such column, the target is missing somewhere or is no set of classes, or a weight is
        not a whole number of at least 0.
    """
    check_columns(source, target, weight)
    if weight is not None:
        _check_weights(source, weight)
    held, counts = source.classes(target, weight)
    for value, count in zip(held, counts, strict=True):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            rows = f"{count:,} row{'s' if count > 1 else ''}"
            raise ValueError(f"the target {target} is missing in {rows}: remove those rows or label them")
    if not held:
        raise ValueError("sample_weight is zero everywhere: at least one row must count")
    total = sum(counts)
    if len(held) > _MOST_CLASSES and len(held) > _MOST_DISTINCT * total:
        raise ValueError(
            f"the target {target} has {len(held):,} classes in {total:,} rows. At most 1,000 classes, or one "
            "per ten rows, can be handled: cut it into bins or group rare classes first."
        )
    array = np.array(held) if {type(v) for v in held} <= {int, bool, float} else np.array(held, dtype=object)
    read = read_target(array, name=target)
    order = np.argsort(read.codes)
    return Labels(
        target,
        read.classes,
        [held[i] for i in order.tolist()],
        np.array(counts, np.int64)[order],
        weight,
    )


def _check_weights(source: Source, weight: str, what: str = "sample_weight") -> None:
    least, greatest, missing, broken = source.weight_facts(weight)
    if missing or not (math.isfinite(least) and math.isfinite(greatest)):
        raise ValueError(f"{what} must be neither missing nor infinite; column {weight!r} is somewhere")
    if least < 0:
        raise ValueError(f"{what} must be not negative; column {weight!r} has {least:g}")
    if broken:
        raise ValueError(
            f"{what} must be whole: weights are frequencies here, as if each row were repeated; "
            f"column {weight!r} is not in {broken:,} row{'s' if broken > 1 else ''}"
        )


def check_sums(labels: Labels, counts: IntArray) -> None:
    """Refuse class counts, one row of them per something, that are not those of all rows.

    Raises
    ------
    ValueError
        If they are not: the table changed.
    """
    if not np.array_equal(counts.sum(axis=0), labels.counts):
        raise ValueError(CHANGED)


def categories(column: SourceColumn, values: Sequence[Any]) -> list[Any]:
    """Write listed values as a table in memory has them: dates and times as text, whole numbers as int.

    >>> categories(SourceColumn("day", "date"), [0, None])
    ['1970-01-01', None]
    >>> categories(SourceColumn("n", "number"), [2.0, 0.5])
    [2, 0.5]
    """
    if column.kind in ("text", "boolean"):
        return list(values)
    if column.kind == "number":
        return [canonical(value) for value in values]
    return [
        None if value is None else number_text(value, column.kind, column.legend)  # type: ignore[arg-type]
        for value in values
    ]
