"""Columns of a source partitioned against its target: counts come from the engine, never rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from damier.criteria import discretization_cost, grouping_cost, log_bell_table
from damier.fit.averaged import Evidence, best_evidence, evidence_of_column
from damier.fit.naive_bayes import Averaging, EvidenceOf, Pairs, allowed_pairs, weight_with_pairs
from damier.fit.partitions import Search, all_met
from damier.intake import Target, as_categorical
from damier.intake.engines.prebins import BINS, CHANGED, Counts
from damier.intake.engines.source import (
    Labels,
    Profiles,
    Source,
    SourceColumn,
    categories,
    check_sums,
    open_source,
    read_labels,
)
from damier.intake.factorize import sorted_categories
from damier.intake.frames import nested_error
from damier.intake.table import Column, IntArray, NumericColumn, Table
from damier.models import Encoding, GroupPartition, IntervalPartition, NaiveBayes, Partition
from damier.models.encoding import Encode
from damier.search.run import Run

if TYPE_CHECKING:
    from damier.search.counted import CountedNumber

MAX_VALUES = 1_000_000
"""Values of a column that a model lists, unless said otherwise."""

SAMPLE_ROWS = 1_000_000
"""Rows that the weights of a naive Bayes are searched on, unless there are fewer."""

Read = Literal["own", "numeric", "categorical"]
"""As what a column is read: as its type says, all as numbers, or all as names."""

# Bytes that the tables of the columns counted at a time may take, and that a column takes before any of its
# bins is looked into: rows by leading bits, then the bins of these.
_TABLES = 192 * 2**20
_LEADING_BYTES = 6 << 20


@dataclass(frozen=True)
class SourceUse:
    """What a fit asked of a source.

    Parameters
    ----------
    engine : str
        The engine that counted.
    rows : int
        Rows of the table.
    scans : int
        How many times rows were read, in whole or in part.
    seconds : float
        Seconds of the fit.
    sample_rows : int, optional
        Rows of the sample that was searched on, where a search needed rows; None where all is from counts of
        all the rows.
    collected : bool
        Whether the table was small enough to be read into memory, and fitted there.
    left_out : dict of str to (int, int)
        Of categorical columns with more values than a model lists: how many values are not listed, and in
        how many rows they occur. They score as unseen.
    """

    engine: str
    rows: int
    scans: int
    seconds: float
    sample_rows: int | None = None
    collected: bool = False
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass
class ColumnFacts:
    """What a summary says of a column; None where it is not known."""

    type: str
    missing: int | None
    distinct: int | None


FittedColumn = tuple[Partition, ColumnFacts]
"""The partition of a column, and what was learned on the way."""


@dataclass
class FittedColumns:
    """Partitions of the columns of a source, and what was learned on the way."""

    partitions: list[Partition]
    facts: list[ColumnFacts]
    left_out: dict[str, tuple[int, int]]


def chosen_columns(source: Source, labels: Labels) -> list[SourceColumn]:
    """Return the columns of a source that are neither its target nor its weights."""
    return [c for c in source.columns if c.name not in (labels.name, labels.weight)]


def fit_columns(
    source: Source,
    labels: Labels,
    *,
    read: Read = "own",
    search: Search = "auto",
    short_bounds: bool = False,
    max_values: int = MAX_VALUES,
    run: Run,
) -> FittedColumns:
    """Partition each column of a source.

    Parameters
    ----------
    source : Source
    labels : Labels
        Its target.
    read : {"own", "numeric", "categorical"}
        As what columns are read.
    search, short_bounds
        As in :class:`damier.MODLEncoder`.
    max_values : int
        Values of a categorical column that the model lists; a group lists one at least.
    run : Run

    Raises
    ------
    ValueError
        If a column cannot be read that way.
    Stopped
        If the run is stopped.
    """
    return fit_each(
        chosen_columns(source, labels),
        lambda numeric: _fit_numbers(source, numeric, labels, search, short_bounds, run),
        lambda column: group_source(source, column, labels, search, max_values),
        read=read,
        at_once=max(1, _TABLES // (_LEADING_BYTES + 8 * (labels.n_classes + 2) * 2 * BINS)),
        max_values=max_values,
        run=run,
    )


def fit_each(
    columns: Sequence[SourceColumn],
    cut: Callable[[Sequence[SourceColumn]], dict[str, FittedColumn]],
    group: Callable[[SourceColumn], tuple[Partition, ColumnFacts, tuple[int, int]]],
    *,
    read: Read,
    at_once: int,
    max_values: int,
    run: Run,
) -> FittedColumns:
    """Partition columns: numbers some at a time, categories one by one.

    Parameters
    ----------
    columns : sequence of SourceColumn
    cut : function of numeric columns
        Partitions them.
    group : function of a column
        Partitions it; says of how many values, and how many rows, the model does not list.
    read, max_values, run
        As in `fit_columns`.
    at_once : int
        Numeric columns cut at a time.
    """
    for column in columns:
        refuse_column(column, read)
    numeric = [c for c in columns if read != "categorical" and (c.numeric or read == "numeric")]
    found: dict[str, FittedColumn] = {}
    for begin in range(0, len(numeric), at_once):
        found |= cut(numeric[begin : begin + at_once])
    left_out: dict[str, tuple[int, int]] = {}
    for column in columns:
        if column.name not in found:
            run.check()
            run.report(f"Grouping the values of {column.name}", done=len(found), total=len(columns))
            partition, facts, unlisted = group(column)
            found[column.name] = partition, facts
            if unlisted[0]:
                left_out[column.name] = unlisted
    warn_left_out(left_out, max_values)
    partitions, facts_of = zip(*(found[c.name] for c in columns), strict=True)
    return FittedColumns(list(partitions), list(facts_of), left_out)


def refuse_column(column: SourceColumn, read: Read) -> None:
    """Refuse a column that no model can use, or that cannot be read as asked.

    Raises
    ------
    ValueError
    """
    if column.kind == "nested":
        raise nested_error(column.name, column.type)
    if read == "numeric" and column.kind == "text":
        raise ValueError(
            f"column {column.name!r} is categorical: it holds text. MODLDiscretizer cuts numbers: convert "
            "the column, leave it out, or use MODLEncoder, which groups categories."
        )


def warn_left_out(left_out: dict[str, tuple[int, int]], max_values: int) -> None:
    """Warn of values that a model does not list, and of their rows, by column."""
    for name, (values, rows) in left_out.items():
        warnings.warn(
            f"column {name!r} has {values:,} values beyond the {max_values:,} most frequent that a model "
            f"lists, in {rows:,} rows: they score as unseen. Raise max_values to list more, where there is "
            "such a parameter; or group rare values first.",
            stacklevel=2,
        )


def solve(
    source: Source,
    states: Mapping[str, CountedNumber],
    labels: Labels | Mapping[str, Labels],
    run: Run | None,
    *,
    of: str | None = None,
) -> None:
    """Scan until all states have their solutions: all of them at a time as long as their tables are small.

    Parameters
    ----------
    source, labels, of
        As in `Source.count`.
    states : mapping of str to CountedNumber
        That of each column; all of them had as many scans.
    run : Run or None
    """
    from damier.search.counted import KernelCounter

    while names := [name for name, state in states.items() if state.solution is None]:
        sizes = np.cumsum([states[name].scan_bytes for name in names])
        names = names[: max(1, int(np.searchsorted(sizes, _TABLES, side="right")))]
        first = states[names[0]]
        counts = source.count(
            {name: states[name].binning for name in names},
            labels if isinstance(labels, Labels) else {name: labels[name] for name in names},
            of=of,
            by_class=first.by_class,
            values=first.wants_values,
            counter=KernelCounter,
            watch=run,
        )

        def take(name: str, counts: dict[str, Counts] = counts) -> None:
            states[name].take(counts.pop(name))

        if run is None:
            for name in names:
                take(name)
        else:
            run.map(take, names)


def _fit_numbers(
    source: Source,
    columns: Sequence[SourceColumn],
    labels: Labels,
    search: Search,
    short_bounds: bool,
    run: Run,
) -> dict[str, FittedColumn]:
    """Cut numeric columns, scan after scan until all of them have their intervals."""
    from damier.search.counted import CountedNumber

    states = {
        column.name: CountedNumber(labels.n_classes, search, class_counts=labels.counts) for column in columns
    }
    solve(source, states, labels, run)
    found: dict[str, FittedColumn] = {}
    for column in columns:
        state = states[column.name]
        solution = state.solution
        assert solution is not None
        kind = "number" if column.kind == "boolean" else column.kind
        partition = IntervalPartition.from_cuts(
            solution.below,
            solution.above,
            short_bounds=short_bounds,
            kind=kind,  # type: ignore[arg-type]
            legend=column.legend,
            has_missing=state.n_missing > 0,
            name=column.name,
            classes=tuple(labels.classes.tolist()),
            counts=solution.counts,
            cost=float(solution.cost),
            null_cost=float(solution.null_cost),
            optimal=bool(solution.optimal),
        )
        written = "numeric" if kind == "number" else kind
        found[column.name] = partition, ColumnFacts(written, state.n_missing, state.n_distinct)
    return found


def group_source(
    source: Source, column: SourceColumn, labels: Labels, search: Search, max_values: int
) -> tuple[Partition, ColumnFacts, tuple[int, int]]:
    """Group the values of a column by their class counts; return how many values and rows are not listed."""
    profiles = source.profiles(column.name, labels)
    check_sums(labels, profiles.counts * profiles.n_values[:, None])
    n_values = int(profiles.n_values.sum())
    groups, counts, optimal = _search_profiles(profiles, search)
    group_of = {key.tobytes(): g for key, g in zip(profiles.counts, groups.tolist(), strict=True)}
    asked = max_values
    while True:
        listed = source.listed(column.name, labels, asked)
        of_value = np.array([group_of.get(key.tobytes(), -1) for key in listed.counts], np.int64)
        if (of_value < 0).any():
            raise ValueError(CHANGED)
        if len(listed.values) == n_values or len(np.unique(of_value)) == len(counts):
            break
        asked *= 2  # some group has none of the most frequent values
    kept = np.zeros(len(of_value), bool)
    kept[:max_values] = True
    kept[np.unique(of_value, return_index=True)[1]] = True
    values = categories(column, [v for v, k in zip(listed.values, kept.tolist(), strict=True) if k])
    of_value = of_value[kept]
    n_missing = int(listed.counts[listed.values.index(None)].sum()) if None in listed.values else 0
    left_out = n_values - len(values), int(counts.sum() - listed.counts[kept].sum())
    fields: dict[str, Any] = {"name": column.name, "classes": tuple(labels.classes.tolist())}
    if values == [None]:
        # A column without any value is numeric.
        cost = discretization_cost(counts)
        fields |= {"counts": counts, "cost": cost, "null_cost": cost, "optimal": True}
        empty = IntervalPartition.from_cuts(np.empty(0), np.empty(0), has_missing=True, **fields)
        return empty, ColumnFacts("numeric", n_missing, 0), (0, 0)
    order, ordered = sorted_categories(values)
    of_value = of_value[order]
    # The most frequent group first, equals by their first value.
    first = np.unique(of_value, return_index=True)[1]
    by_size = np.lexsort((first, -counts.sum(axis=1)))
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(len(by_size))
    partition = GroupPartition.from_codes(
        rank[of_value],
        len(counts),
        ordered,
        counts=counts[by_size],
        cost=grouping_cost(counts, n_values),
        null_cost=grouping_cost(counts.sum(axis=0, keepdims=True), n_values),
        optimal=optimal,
        **fields,
    )
    n_distinct = n_values - (None in listed.values)
    return partition, ColumnFacts("categorical", n_missing, n_distinct), left_out


def write_groups(
    X: Any, target: str, partition: GroupPartition, out: str, *, sample_weight: str | None = None
) -> int:
    """Write all values of a column with their groups, those too that a model does not list.

    The engine that holds the table writes them: however many values there are, they never come here.

    Parameters
    ----------
    X : source
        The table that was fitted.
    target : str
        Its target.
    partition : GroupPartition
        The groups, as fitted to X: ``estimator.partitions_[name]``.
    out : str
        Where to: a Parquet file that DuckDB writes, if X is files or a DuckDB relation; a folder of Parquet
        files that the cluster writes, if X is a Spark DataFrame; the name of a table to be made, if X is an
        ibis table in another database. A folder or table of that name must not be there yet. Columns
        ``name`` and ``part`` (``part_`` beside a column ``part``). Dates and times are in microseconds.
    sample_weight : str, optional
        The weights that were used.

    Returns
    -------
    int
        Number of values written.

    Raises
    ------
    ValueError
        If the groups are not those of X, or its engine cannot write them; DuckDB and Spark do so for up to
        32 classes.

    Examples
    --------
    >>> import duckdb, pathlib, tempfile
    >>> from damier import MODLGrouper
    >>> from damier.deploy import write_groups
    >>> rows = duckdb.sql("SELECT i % 4 AS shop, i % 2 = 0 AS y FROM range(400) t(i)")
    >>> grouper = MODLGrouper().fit(rows, "y")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = str(pathlib.Path(folder) / "shops.parquet")
    ...     write_groups(rows, "y", grouper.partitions_["shop"], path)
    ...     sorted(duckdb.sql(f"SELECT * FROM '{path}'").fetchall())
    4
    [(0, 0), (1, 1), (2, 0), (3, 1)]
    """
    source = open_source(X)
    if source is None:
        raise ValueError(
            "groups are written by the engine that holds the table: pass files, a DuckDB relation, a Spark "
            "DataFrame or an ibis table"
        )
    labels = read_labels(source, target, sample_weight)
    profiles = source.profiles(partition.name, labels)
    groups, counts, _ = _search_profiles(profiles, "auto")
    first = {value: g for g, group in enumerate(partition.groups) for value in group}
    column = next(c for c in source.columns if c.name == partition.name)
    listed = source.listed(partition.name, labels, 10 * len(counts) + 1000)
    known = dict(zip(map(bytes, profiles.counts), groups.tolist(), strict=True))
    number: dict[int, int] = {}
    for value, held in zip(categories(column, listed.values), listed.counts, strict=True):
        if value in first:
            number.setdefault(known[bytes(held)], first[value])
    for g in set(range(len(counts))) - set(number):
        same = [k for k in range(partition.n_parts) if (partition.counts[k] == counts[g]).all()]
        number[g] = next((k for k in same if k not in number.values()), -1)
    renumbered = np.array([number[g] for g in range(len(counts))])
    if sorted(number.values()) != list(range(partition.n_parts)) or not np.array_equal(
        partition.counts[renumbered], counts
    ):
        raise ValueError(f"the groups of {partition.name!r} are not those of X: pass what it was fitted to")
    return source.write_groups(partition.name, labels, profiles, renumbered[groups].tolist(), out)


def _search_profiles(profiles: Profiles, search: Search) -> tuple[IntArray, IntArray, bool]:
    """Group profiles; return the group of each, the counts of the groups, and whether that is proven."""
    from damier.search.axis.unordered import search_unordered
    from damier.search.axis.values import elements_of_counts

    elements = elements_of_counts(profiles.counts * profiles.n_values[:, None])
    n_values = int(profiles.n_values.sum())
    penalty = np.log(n_values) + log_bell_table(n_values, len(elements))[1:]
    return search_unordered(elements, penalty, search, 0)


def fit_source_encoding(
    source: Source, labels: Labels, *, encode: Encode, run: Run, **options: Any
) -> tuple[Encoding, FittedColumns]:
    """Find the best partition of each column of a source, as `damier.fit.encoding.fit_encoding` does.

    ``options`` are those of `fit_columns`.
    """
    fitted = fit_columns(source, labels, run=run, **options)
    return Encoding(tuple(fitted.partitions), encode), fitted


def fit_source_naive_bayes(
    source: Source,
    labels: Labels,
    *,
    averaging: Averaging = "convex",
    evidence: EvidenceOf = "posterior",
    pairs: Pairs = "auto",
    search: Search = "auto",
    max_values: int = MAX_VALUES,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    run: Run,
) -> tuple[NaiveBayes, FittedColumns, int | None]:
    """Partition each column of a source, then average and weight the evidence on a sample of its rows.

    A categorical column of which the sample lacks a value keeps the evidence of its best partition. Pairs are
    found and counted on the sample.

    Returns
    -------
    NaiveBayes
    FittedColumns
    int or None
        Rows of the sample; None if neither weights nor averages were asked for.
    """
    pairs = allowed_pairs(pairs, averaging)
    fitted = fit_columns(source, labels, search=search, max_values=max_values, run=run)
    found = [best_evidence((partition,)) for partition in fitted.partitions]
    n_sampled = None
    if averaging is not None or evidence == "posterior":
        run.report("Averaging and weighting the columns on a sample of the rows")
        table, target, weights = sample_rows_of(source, labels, sample_rows, seed)
        n_sampled = table.n_rows
        if evidence == "posterior":

            def averaged(k: int) -> Evidence:
                best = fitted.partitions[k]
                if isinstance(best, GroupPartition) and not all_met(best, table.columns[k]):
                    return found[k]
                return evidence_of_column(table, k, target, best, weights)

            found = run.map(averaged, range(table.n_columns))
        variables, taken = weight_with_pairs(
            found, table, target, weights, averaging=averaging, pairs=pairs, run=run
        )
    else:
        variables, taken = tuple(held.variable for held in found), ()
    classes = tuple(labels.classes.tolist())
    return NaiveBayes(classes, labels.counts, variables, taken), fitted, n_sampled


def sample_rows_of(
    source: Source, labels: Labels, n_rows: int, seed: int
) -> tuple[Table, Target, IntArray | None]:
    """Draw rows by their hash: about ``n_rows``, or all of them if there are no more."""
    names = [c.name for c in chosen_columns(source, labels)]
    extra = [labels.name] if labels.weight is None else [labels.name, labels.weight]
    held = source.sample([*names, *extra], n_rows, seed)
    return split_rows(held, labels)


def split_rows(held: Table, labels: Labels) -> tuple[Table, Target, IntArray | None]:
    """Take apart the columns, the target and the weights of rows; those of weight 0 are left out."""
    weights = None
    if labels.weight is not None:
        numbers = held[labels.weight]
        assert isinstance(numbers, NumericColumn)
        weights = numbers.values.astype(np.int64)
        if not weights.all():
            kept = np.flatnonzero(weights)
            held, weights = held.take(kept), weights[kept]
        held = held.drop(labels.weight)
    codes = class_codes(held[labels.name], labels)
    return held.drop(labels.name), Target(codes, labels.classes), weights


def class_codes(column: Column, labels: Labels) -> Any:
    """Return the class of each row of a column that is the target."""
    read = as_categorical(column)
    position = {value: j for j, value in enumerate(labels.classes.tolist())}
    if not set(read.categories) <= set(position):
        raise ValueError(CHANGED)
    return np.array([position[value] for value in read.categories], np.int32)[read.codes]
