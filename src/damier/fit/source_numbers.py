"""Columns of a source partitioned together with a numeric target: both are counted, never read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from damier.criteria import log_bell_table, regression_cost
from damier.fit.averaged import Evidence, best_evidence
from damier.fit.naive_bayes_regression import (
    Averaging,
    EvidenceOf,
    elementary_bounds,
    evidence_of_partitions,
    weighted_regression,
)
from damier.fit.numeric_target import order_target
from damier.fit.partitions import Search
from damier.fit.source_target import NumberSource, count_points, distribution_of, sample_numbers
from damier.fit.sources import (
    MAX_VALUES,
    SAMPLE_ROWS,
    ColumnFacts,
    FittedColumn,
    FittedColumns,
    Read,
    chosen_columns,
    fit_each,
    solve,
)
from damier.intake import as_categorical
from damier.intake.engines.cells import Axis
from damier.intake.engines.prebins import ALL, CHANGED
from damier.intake.engines.source import COUNT, MEMORY, MOST_PAIRS, Labels, SourceColumn
from damier.intake.table import FloatArray, IntArray, NumericColumn, Table
from damier.models import (
    Encoding,
    GroupPartition,
    IntervalPartition,
    NaiveBayesRegression,
    Partition,
    TargetEvidence,
    TargetIntervals,
)
from damier.models.bounds import midpoint, shortest
from damier.models.encoding import Encode
from damier.models.target_intervals import interval_labels
from damier.search.run import Run

if TYPE_CHECKING:
    from damier.search.counted import CountedNumber

# Bins that a number is first counted in, by the blocks of the target.
_BINS = 1 << 11
# Numeric columns counted at a time: each takes some megabytes.
_AT_ONCE = 10
# Turns of the target and the columns at full resolution, as long as they gain so many nats.
_TURNS = 3
_LEAST_GAIN = 0.5
# Columns of more values keep the intervals of the target that its blocks gave: values are listed in queries.
_MOST_NAMED = 10_000
# Bytes that a search takes for each pair of a value and a block of the target.
_PAIR_BYTES = 64


def fit_source_numbers(
    number: NumberSource,
    *,
    read: Read = "own",
    search: Search = "auto",
    short_bounds: bool = False,
    max_values: int = MAX_VALUES,
    memory: int = MEMORY,
    run: Run,
) -> FittedColumns:
    """Partition each column of a source together with its target.

    Parameters
    ----------
    number : NumberSource
    read, search, short_bounds, max_values, run
        As in `damier.fit.sources.fit_columns`.
    memory : int
        Bytes that the search of one column of categories may take.
    """
    return fit_each(
        chosen_columns(number.source, number.labels((), np.empty(0, np.int64))),
        lambda numeric: _cut_numbers(number, numeric, short_bounds, run),
        lambda column: _group(number, column, search, short_bounds, max_values, memory, run),
        read=read,
        at_once=_AT_ONCE,
        max_values=max_values,
        run=run,
    )


# ----- numbers


class _Cut(NamedTuple):
    """Intervals of a number and of the target, with the values on both sides of each cut."""

    below: FloatArray
    above: FloatArray
    target_below: FloatArray
    target_above: FloatArray
    counts: IntArray

    @property
    def cost(self) -> float:
        return regression_cost(self.counts)

    @property
    def target_bounds(self) -> list[float]:
        edges = zip(self.target_below.tolist(), self.target_above.tolist(), strict=True)
        return [midpoint(below, above) for below, above in edges]

    def axis(self, name: str) -> Axis:
        """Return the parts of the number."""
        alone = len(self.below) > 0 and bool(np.isnan(self.below[0]))
        edges = zip(self.below[alone:].tolist(), self.above[alone:].tolist(), strict=True)
        return Axis(name, tuple(midpoint(below, above) for below, above in edges), alone)


def _cut_numbers(
    number: NumberSource, columns: Sequence[SourceColumn], short_bounds: bool, run: Run
) -> dict[str, FittedColumn]:
    """Cut numeric columns together with the target: on blocks, then each axis in turn at full resolution."""
    from damier.search.counted import CountedNumber, KernelCounter
    from damier.search.counted_target import begin_together

    source, bins, names = number.source, number.bins, [column.name for column in columns]
    blocks = number.block_labels
    first = {name: CountedNumber(len(bins.blocks), "auto", _BINS, blocks.counts) for name in names}
    counts = source.count(
        dict.fromkeys(names, ALL), blocks, by_class=False, values=True, counter=KernelCounter, watch=run
    )
    for name, state in first.items():
        state.take(counts.pop(name))
    counted = source.count(
        {name: state.binning for name, state in first.items()}, blocks, counter=KernelCounter, watch=run
    )
    states: dict[str, CountedNumber] = {}
    cuts: dict[str, _Cut] = {}
    starts_of: dict[str, IntArray] = {}

    def begin(name: str) -> None:
        held = counted.pop(name)
        first[name].check(held)
        starts, n_parts = begin_together(held)
        if n_parts > 1 and len(starts) > 1:
            state = CountedNumber(len(starts), class_counts=np.add.reduceat(blocks.counts, starts))
            state.begin_with(first[name].binning, first[name].n_missing, first[name].n_distinct)
            state.take(
                held._replace(
                    counts=np.add.reduceat(held.counts, starts, axis=1),
                    missing=np.add.reduceat(held.missing, starts),
                )
            )
            states[name], starts_of[name] = state, starts

    run.map(begin, names)
    labels: dict[str, Labels] = {}
    edges: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name, state in states.items():
        edges[name] = bins.edges(bins.blocks[starts_of[name][1:]])
        bounds = [midpoint(float(b), float(a)) for b, a in zip(*edges[name], strict=True)]
        assert state.class_counts is not None
        labels[name] = number.by_intervals(bounds, state.class_counts)
    solve(number.source, states, labels, run)
    for name, state in states.items():
        solution = state.solution
        assert solution is not None
        if len(solution.counts) > 1:
            cuts[name] = _Cut(solution.below, solution.above, *edges[name], solution.counts)
    # The target against the parts found, the parts against the target, while that gains.
    turning = list(cuts)
    for _ in range(_TURNS):
        before = {name: cuts[name].cost for name in turning}
        _turn_target(number, cuts, turning, run)
        _turn_parts(number, cuts, turning, first, run)
        turning = [name for name in turning if before[name] - cuts[name].cost > _LEAST_GAIN]
        if not turning:
            break
    null_cost = regression_cost([[bins.total]])
    cuts = {name: cut for name, cut in cuts.items() if cut.cost < null_cost and len(cut.counts) > 1}
    by_part = {name: number.by_parts(cut.axis(name), cut.counts.sum(axis=1)) for name, cut in cuts.items()}
    spread = _spread(number, by_part, run)
    found: dict[str, FittedColumn] = {}
    for column in columns:
        state, name = first[column.name], column.name
        found[name] = (
            _intervals(number, column, cuts.get(name), spread.get(name), state.n_missing, short_bounds),
            ColumnFacts(_written(column), state.n_missing, state.n_distinct),
        )
    return found


def _turn_target(number: NumberSource, cuts: dict[str, _Cut], names: Sequence[str], run: Run) -> None:
    """Cut the target anew against the parts of each column."""
    from damier.search.counted_target import CountedTarget

    states, labels = {}, {}
    for name in names:
        sizes = cuts[name].counts.sum(axis=1)
        states[name] = CountedTarget(sizes, number.bins)
        labels[name] = number.by_parts(cuts[name].axis(name), sizes)
    solve(number.source, states, labels, run, of=number.name)
    for name, state in states.items():
        solution = state.solution
        assert solution is not None
        turned = cuts[name]._replace(
            target_below=solution.below, target_above=solution.above, counts=solution.counts.T.copy()
        )
        if turned.cost < cuts[name].cost:
            cuts[name] = turned


def _turn_parts(
    number: NumberSource,
    cuts: dict[str, _Cut],
    names: Sequence[str],
    first: Mapping[str, CountedNumber],
    run: Run,
) -> None:
    """Cut each column anew against the intervals of the target."""
    from damier.search.counted import CountedNumber

    states, labels = {}, {}
    for name in names:
        sizes = cuts[name].counts.sum(axis=0)
        if len(sizes) > 1:
            states[name] = CountedNumber(len(sizes), class_counts=sizes)
            states[name].begin_with(first[name].binning, first[name].n_missing, first[name].n_distinct)
            labels[name] = number.by_intervals(cuts[name].target_bounds, sizes)
    solve(number.source, states, labels, run)
    for name, state in states.items():
        solution = state.solution
        assert solution is not None
        turned = cuts[name]._replace(below=solution.below, above=solution.above, counts=solution.counts)
        if turned.cost < cuts[name].cost:
            cuts[name] = turned


def _spread(
    number: NumberSource, labels: Mapping[str, Labels], run: Run
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Mean and quantiles of the target in the parts of each column: one more scan."""
    from damier.search.counted import KernelCounter

    if not labels:
        return {}
    bins = number.bins
    counts = number.source.count(
        dict.fromkeys(labels, bins.binning), labels, of=number.name, counter=KernelCounter, watch=run
    )
    return {
        name: distribution_of(bins, held.counts[held.counts.any(axis=1)]) for name, held in counts.items()
    }


def _written(column: SourceColumn) -> str:
    return "numeric" if column.kind in ("number", "boolean") else column.kind


def _target_of(
    number: NumberSource,
    below: FloatArray,
    above: FloatArray,
    spread: tuple[FloatArray, FloatArray] | None,
    short_bounds: bool,
) -> TargetIntervals:
    place = shortest if short_bounds else midpoint
    bounds = [place(b, a) for b, a in zip(below.tolist(), above.tolist(), strict=True)]
    means, quantiles = spread or (np.array([number.mean]), number.overall[None])
    return TargetIntervals(
        bounds=tuple(bounds), mean=number.mean, overall=number.overall, means=means, quantiles=quantiles
    )


def _intervals(
    number: NumberSource,
    column: SourceColumn,
    cut: _Cut | None,
    spread: tuple[FloatArray, FloatArray] | None,
    n_missing: int,
    short_bounds: bool,
) -> Partition:
    """Wrap what was found of a numeric column; without a cut it does not inform."""
    none, null_cost = np.empty(0), regression_cost([[number.bins.total]])
    below, above = (none, none) if cut is None else (cut.target_below, cut.target_above)
    target = _target_of(number, below, above, spread, short_bounds)
    return IntervalPartition.from_cuts(
        none if cut is None else cut.below,
        none if cut is None else cut.above,
        short_bounds=short_bounds,
        kind="number" if column.kind == "boolean" else column.kind,  # type: ignore[arg-type]
        legend=column.legend,
        has_missing=n_missing > 0,
        name=column.name,
        classes=interval_labels(target.bounds),
        counts=np.array([[number.bins.total]]) if cut is None else cut.counts,
        cost=null_cost if cut is None else cut.cost,
        null_cost=null_cost,
        optimal=False,
        target=target,
    )


# ----- categories


class _Groups(NamedTuple):
    """Groups of the values of a column, and intervals of the target."""

    parts: IntArray
    counts: IntArray
    below: FloatArray
    above: FloatArray


def _group(
    number: NumberSource,
    column: SourceColumn,
    search: Search,
    short_bounds: bool,
    max_values: int,
    memory: int,
    run: Run,
) -> tuple[Partition, ColumnFacts, tuple[int, int]]:
    """Group the values of a column together with the target."""
    from damier.search.counted_target import CountedTarget, partition_cells

    bins, blocks = number.bins, number.block_labels
    values, table = _by_value(number, column, blocks, memory)
    n_values, n_missing = len(values), 0
    if None in values:
        n_missing = int(table.rows[table.values == values.index(None)].sum())
    n_distinct = n_values - int(None in values)
    if not n_distinct:
        empty = replace(column, kind="number")
        return (
            _intervals(number, empty, None, None, n_missing, short_bounds),
            ColumnFacts("numeric", n_missing, 0),
            (0, 0),
        )
    null_cost = regression_cost([[bins.total]], n_values)
    starts, parts = partition_cells(
        table.values, table.classes, table.rows, n_values, blocks.n_classes, ordered=False
    )
    interval_of = np.searchsorted(starts, np.arange(blocks.n_classes), side="right") - 1
    found = _Groups(parts, table.counts(parts, interval_of), *bins.edges(bins.blocks[starts[1:]]))
    spread = None
    if len(found.counts) > 1:
        if n_values <= _MOST_NAMED and column.kind in ("text", "boolean", "number"):
            sizes = found.counts.sum(axis=1)
            by_group = number.by_parts(_group_axis(column.name, values, parts), sizes)
            state = CountedTarget(sizes, bins)
            solve(number.source, {column.name: state}, {column.name: by_group}, run, of=number.name)
            assert state.solution is not None
            turned = found._replace(
                counts=state.solution.counts.T.copy(), below=state.solution.below, above=state.solution.above
            )
            if regression_cost(turned.counts, n_values) < regression_cost(found.counts, n_values):
                found = _regrouped(number, column, values, turned, search, memory)
            by_group = number.by_parts(
                _group_axis(column.name, values, found.parts), found.counts.sum(axis=1)
            )
            spread = _spread(number, {column.name: by_group}, run)[column.name]
        else:
            of_blocks = bins._replace(
                low=bins.low[bins.blocks], high=bins.high[np.append(bins.blocks[1:], len(bins.low)) - 1]
            )
            by_block = table.counts(parts, np.arange(blocks.n_classes)).T
            spread = distribution_of(of_blocks, by_block)
    cost = regression_cost(found.counts, n_values)
    if cost >= null_cost or len(found.counts) == 1:
        nothing = np.empty(0)
        found, cost = (
            _Groups(np.zeros(n_values, np.int64), np.array([[bins.total]]), nothing, nothing),
            null_cost,
        )
        spread = None
    kept = table.most_frequent(n_values, max_values, found.parts)
    left_out = n_values - len(kept), bins.total - int(table.rows[np.isin(table.values, kept)].sum())
    target = _target_of(number, found.below, found.above, spread, short_bounds)
    partition = GroupPartition.from_codes(
        found.parts[kept],
        len(found.counts),
        tuple(values[v] for v in kept.tolist()),
        name=column.name,
        classes=interval_labels(target.bounds),
        counts=found.counts,
        cost=cost,
        null_cost=null_cost,
        optimal=False,
        target=target,
    )
    return partition, ColumnFacts("categorical", n_missing, n_distinct), left_out


class _Cells(NamedTuple):
    """Values by classes, the cells that hold rows."""

    values: IntArray
    classes: IntArray
    rows: IntArray

    def counts(self, parts: IntArray, interval_of: IntArray) -> IntArray:
        """Count the rows of parts of the values by intervals of the classes."""
        table = np.zeros((int(parts.max()) + 1, int(interval_of[-1]) + 1), np.int64)
        np.add.at(table, (parts[self.values], interval_of[self.classes]), self.rows)
        return table

    def most_frequent(self, n_values: int, most: int, parts: IntArray) -> IntArray:
        """Choose the values that a model lists, in order; each part lists one at least."""
        sizes = np.bincount(self.values, self.rows, minlength=n_values)
        order = np.lexsort((np.arange(n_values), -sizes))
        firsts = order[np.unique(parts[order], return_index=True)[1]]
        return np.union1d(order[:most], firsts)


def _group_axis(name: str, values: Sequence[Any], parts: IntArray) -> Axis:
    groups: list[list[Any]] = [[] for _ in range(int(parts.max()) + 1)]
    for value, part in zip(values, parts.tolist(), strict=True):
        groups[part].append(value)
    return Axis(name, groups=tuple(map(tuple, groups)))


def _by_value(
    number: NumberSource, column: SourceColumn, labels: Labels, memory: int
) -> tuple[tuple[Any, ...], _Cells]:
    """Count the values of a column by classes."""
    most = min(MOST_PAIRS, max(memory // _PAIR_BYTES, 1_000_000))
    held = number.source.pairs(column.name, labels, number.weight, most)
    if held.n_rows > most:
        raise ValueError(
            f"column {column.name!r} has too many values for a numeric target: more than {most:,} pairs of a "
            "value and a block of the target. Put rare values together, leave the column out, or raise "
            "memory_limit."
        )
    named, codes, rows = as_categorical(held.columns[0]), held.columns[1], held[COUNT]
    assert isinstance(codes, NumericColumn)
    assert isinstance(rows, NumericColumn)
    cells = _Cells(named.codes.astype(np.int64), codes.values.astype(np.int64), rows.values.astype(np.int64))
    if not np.array_equal(np.bincount(cells.classes, cells.rows, labels.n_classes), labels.counts):
        raise ValueError(CHANGED)
    order = np.lexsort((cells.classes, cells.values))
    return tuple(named.categories), _Cells(cells.values[order], cells.classes[order], cells.rows[order])


def _regrouped(
    number: NumberSource,
    column: SourceColumn,
    values: Sequence[Any],
    found: _Groups,
    search: Search,
    memory: int,
) -> _Groups:
    """Group the values once more, against the intervals of the target found since."""
    from damier.search.axis.unordered import search_unordered
    from damier.search.axis.values import elements_of_counts

    bounds = [midpoint(b, a) for b, a in zip(found.below.tolist(), found.above.tolist(), strict=True)]
    _, table = _by_value(number, column, number.by_intervals(bounds, found.counts.sum(axis=0)), memory)
    counts = table.counts(np.arange(len(values)), np.arange(len(bounds) + 1))
    elements = elements_of_counts(counts)
    penalty = np.log(len(values)) + log_bell_table(len(values), len(elements))[1:]
    parts, grouped, _ = search_unordered(elements, penalty, search, 0)
    if regression_cost(grouped, len(values)) < regression_cost(found.counts, len(values)):
        return found._replace(parts=parts, counts=grouped)
    return found


# ----- what is made of them


def fit_source_number_encoding(
    number: NumberSource, *, encode: Encode, run: Run, **options: Any
) -> tuple[Encoding, FittedColumns]:
    """Partition each column of a source together with its target, as an encoding.

    ``options`` are those of `fit_source_numbers`.
    """
    fitted = fit_source_numbers(number, run=run, **options)
    return Encoding(tuple(fitted.partitions), encode), fitted


def fit_source_regression(
    number: NumberSource,
    *,
    averaging: Averaging = "convex",
    evidence: EvidenceOf = "posterior",
    search: Search = "auto",
    max_values: int = MAX_VALUES,
    memory: int = MEMORY,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    run: Run,
) -> tuple[NaiveBayesRegression, FittedColumns, int | None]:
    """Partition each column of a source together with its target, then weight them on a sample of the rows.

    The evidence is averaged on the sample too, if weights are asked for; a column of which the sample lacks a
    category, or an interval of the target, keeps the evidence of its best partition.

    Returns
    -------
    NaiveBayesRegression
    FittedColumns
    int or None
        Rows of the sample; None if no weights were asked for.
    """
    fitted = fit_source_numbers(number, search=search, max_values=max_values, memory=memory, run=run)
    found: list[tuple[Evidence, ...]] = [(best_evidence((partition,)),) for partition in fitted.partitions]
    distribution = target_distribution(number, fitted.partitions, run)
    if averaging is None:
        table, ordered, n_sampled = Table((), 0), order_target(number.points, number.bins.rows), None
    else:
        run.report("Averaging and weighting the columns on a sample of the rows")
        table, ordered = sample_numbers(number, sample_rows, seed)
        n_sampled = table.n_rows
        found = run.map(
            lambda k: evidence_of_partitions(
                fitted.partitions[k : k + 1], table.columns[k], ordered, evidence=evidence
            ),
            range(table.n_columns),
        )
    model = weighted_regression(
        found, table, ordered, averaging=averaging, distribution=distribution, run=run
    )
    return model, fitted, n_sampled


def target_distribution(
    number: NumberSource, partitions: Sequence[Partition], run: Run
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return elementary bounds of the target, its values, and their rows, all of all rows."""
    informing = [TargetEvidence((partition,)) for partition in partitions if partition.n_parts > 1]
    bounds = elementary_bounds(informing, number.points, number.bins.rows)
    return bounds, *count_points(number, bounds, run)
