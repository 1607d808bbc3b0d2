"""A table and a target turned into the summary that every report is written from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from damier.fit.grids import PairGrid
from damier.intake import Column, Table, Target
from damier.intake.table import IntArray
from damier.models import NaiveBayes, Partition
from damier.models.grid import DataGrid, GridCells
from damier.report.along import share_curves
from damier.report.classes import shown_classes
from damier.report.columns import describe_column, oddity
from damier.report.pairs import pair_grid, summarize_pairs
from damier.report.rules import summarize_grid
from damier.report.scorer import fit_scorer, summarize_scorer
from damier.report.summary import Summary, summarize
from damier.report.words import LabelStyle
from damier.search.run import ProgressCallback, Run, Stopped

# Enough to show what interacts: pairs of a dozen columns, on a sample of the rows.
PAIRED_COLUMNS = 12
PAIRED_ROWS = 20_000
# Pairs searched; the others have the cross of their partitions.
SEARCHED_PAIRS = 12
# Two interrupts so close ask for the end of all, not of the section at hand.
_AT_ONCE = 2.0

# Sections that a report may go without.
_NAMES = {
    "curves": "the shares along the numbers",
    "model": "a model",
    "classifier": "the scores of a classifier",
    "regressor": "the scores of a regressor",
    "grid": "a grid",
    "pairs": "the pairs",
    "scorer": "the scores of a row",
}

# Opens what shows a section's progress: called with its name and the number of its steps, 0 if not known.
Show = Callable[[str, int], AbstractContextManager[ProgressCallback | None]]


@contextmanager
def show_nothing(text: str, total: int) -> Iterator[None]:  # noqa: ARG001
    """Show no progress."""
    yield None


class Sections:
    """Runs the sections of a report; one that Ctrl-C ends is left out, two interrupts end the report."""

    def __init__(self, n_threads: int, show: Show, say: Callable[[str], None]) -> None:
        self.n_threads = n_threads
        self.show = show
        self.say = say
        self.ended: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._last_interrupt = -_AT_ONCE

    def run(
        self, section: str, text: str, total: int, search: Callable[[Run], Any], seconds: float | None = None
    ) -> Any:
        """Return what the search finds, None where it was stopped with nothing to show."""
        with self.show(text, total) as progress:
            run = Run(self.n_threads, seconds, progress)
            found = None
            try:
                found = run.call(search, run)
            except Stopped:
                pass  # out of time with nothing to show
            except KeyboardInterrupt:
                if run.n_interrupts != 1:
                    raise
        if run.n_interrupts:
            now = time.monotonic()
            if now - self._last_interrupt < _AT_ONCE:
                raise KeyboardInterrupt
            self._last_interrupt = now
            if section in _NAMES:
                how = "goes without" if found is None else "keeps what was found so far of"
                self.say(f"Stopped: the report {how} {_NAMES[section]}. Press Ctrl-C twice to end all.")
        self.ended[section] = run.ended
        self.seconds[section] = run.seconds  # without the compilation, which restarts the clock
        return found


def analyze(
    table: Table,
    target: Target,
    *,
    dataset: str = "table",
    target_name: str = "target",
    classifier: bool = True,
    grid_seconds: float = 10.0,
    labels: LabelStyle = "plain",
    n_threads: int = 1,
    keep_model: Callable[[NaiveBayes], None] | None = None,
    keep_columns: Callable[[Summary], None] | None = None,
    partitions_of_all: Mapping[str, Partition] | None = None,
    missing: Mapping[str, int] | None = None,
    show: Show = show_nothing,
    say: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Partition every column, score all of them together, search for a grid and for pairs that interact.

    Parameters
    ----------
    table : Table
        The inputs.
    target : Target
        The classes of the rows.
    dataset, target_name : str
        What to call the data and the target.
    classifier : bool, default=True
        Whether to score a naive Bayes by cross-validation.
    grid_seconds : float, default=10.0
        Time for the grid and the pairs together; 0 leaves both out.
    labels : {"plain", "brackets"}
        Intervals written ``12 < x ≤ 26`` or ``]12, 26]``.
    n_threads : int, default=1
        Threads; the summary does not depend on them.
    keep_model : callable, optional
        Called with the averaged naive Bayes of all columns, on the partitions that the summary shows.
    keep_columns : callable, optional
        Called with the summary as far as it is known when the columns are partitioned, before the rest.
    partitions_of_all : mapping of str to Partition, optional
        Partitions of the columns on more rows than the table has: the table is a sample then, which
        statistics, scores, grid and pairs are of.
    missing : mapping of str to int, optional
        Missing values of each column; counted in the table by default.
    show : callable, optional
        Opens what shows the progress of a section, as the command line's bar.
    say : callable, optional
        Called with a sentence when Ctrl-C ends a section.

    Returns
    -------
    dict
        As laid out in `damier.report.summary`. ``ended`` says of each section how its search ended.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C comes before the columns are partitioned, or twice within two seconds. Later a single one
        ends the section at hand, and the report goes without it.
    """
    from damier.fit.evaluation import cross_validated_scores
    from damier.fit.grids import fit_grid
    from damier.fit.partitions import partition_column

    sections = Sections(n_threads, show, say)

    def look(column: Column) -> tuple[Partition, dict[str, Any]]:
        if partitions_of_all is None:
            partition = partition_column(column, target, short_bounds=True)
        else:
            partition = partitions_of_all[column.name]
        statistics = describe_column(column)
        odd = oddity(column, target, partition, statistics)
        return partition, {"statistics": statistics, "odd": odd}

    looked = sections.run(
        "variables",
        "Partitioning",
        table.n_columns,
        lambda run: run.map(look, table.columns, text="Partitioning"),
    )
    if looked is None:
        raise KeyboardInterrupt
    partitions: dict[str, Partition] = {partition.name: partition for partition, _ in looked}
    columns = {partition.name: column for partition, column in looked}
    known: dict[str, Any] = {
        "dataset": dataset,
        "target": target_name,
        "missing": {column.name: column.n_missing for column in table} if missing is None else missing,
        "columns": columns,
        "notes": table.notes,
        "labels": labels,
    }
    bare = summarize(partitions, **known)
    classes = shown_classes(bare)
    if keep_columns is not None:
        keep_columns(bare)
    models: list[NaiveBayes] = []  # of all columns: what a row of the page is scored with
    if keep_model is not None:
        model = sections.run(
            "model", "Weighting", 0, lambda run: _averaged(list(partitions.values()), table, target, run)
        )
        if model is not None:
            keep_model(model)
            models.append(model)
    scores, grid, pairs = None, None, None
    # With fewer rows hardly a class has one to learn from and one to be judged by.
    if classifier and table.n_rows >= 2 * target.n_classes:
        scores = sections.run(
            "classifier",
            "Cross-validating",
            0,
            lambda run: cross_validated_scores(
                table,
                target,
                partitions=list(partitions.values()),
                curves_of=classes.places,
                keep_model=models.append,
                run=run,
            ),
        )
    if grid_seconds > 0 and table.n_columns > 1:
        grid = sections.run(
            "grid",
            "Searching for a grid",
            0,
            lambda run: fit_grid(table, target, effort=4, seed=0, short_bounds=True, run=run),
            grid_seconds / 2,
        )
        pairs = _pairs(
            sections,
            table,
            target,
            partitions,
            grid_seconds - sections.seconds["grid"],
            lambda found: pair_grid(found, classes, columns, labels),
        )
    scorer = None
    if classifier:
        weights = {} if scores is None else scores["weights"]
        scorer = sections.run(
            "scorer",
            "Weighting",
            0,
            lambda run: fit_scorer(partitions, table, target, classes, weights, models[:1], run=run),
        )
    curves = sections.run(
        "curves",
        "Averaging",
        0,
        lambda run: share_curves(table, target, partitions, columns, classes, run=run),
    )
    for name, curve in (curves or {}).items():
        columns[name]["curve"] = curve
    summary = summarize(
        partitions,
        **known,
        classifier=scores,
        grid=None if grid is None else summarize_grid(_one_truth(grid, partitions), columns, labels),
        pairs=pairs,
    )
    if scorer is not None:
        summary["scorer"] = summarize_scorer(scorer, classes, table, columns, labels)
    summary["ended"] = sections.ended
    summary["grid_seconds"] = grid_seconds
    return summary


def _averaged(partitions: Sequence[Partition], table: Table, target: Target, run: Run) -> NaiveBayes:
    """Weight the partitions, and the pairs that act together, into a naive Bayes."""
    from damier.fit.averaged import evidence_of_column
    from damier.fit.naive_bayes import naive_bayes, weight_with_pairs

    found = [evidence_of_column(table, k, target, best) for k, best in enumerate(partitions)]
    variables, pairs = weight_with_pairs(found, table, target, pairs="auto", run=run)
    return naive_bayes(variables, target, pairs=pairs)


def _one_truth(grid: DataGrid, partitions: Mapping[str, Partition]) -> DataGrid:
    """Give a grid over one variable the partition that this variable has by itself."""
    if len(grid.partitions) != 1:
        return grid
    (name,) = grid.partitions
    own = partitions[name]
    if own.n_parts < 2 or own.cost > grid.partitions[name].cost + 1e-6:
        return grid  # a search that proves nothing may find the better one in the grid
    cells = GridCells(np.arange(own.n_parts)[:, None], own.counts)
    return replace(grid, partitions={name: own}, cells=cells)


def _pairs(
    sections: Sections,
    table: Table,
    target: Target,
    partitions: Mapping[str, Partition],
    seconds: float,
    describe: Callable[[PairGrid], dict[str, Any]],
) -> dict[str, Any] | None:
    """Search the pairs of the columns of highest level; None where the sample holds one class only."""
    from damier.fit.grids import find_pairs

    levels = {name: partition.level for name, partition in partitions.items()}
    chosen, rows = paired(table, levels, PAIRED_ROWS)
    sampled, present = rows is not None, np.arange(target.n_classes)
    n_classes = target.n_classes
    if rows is not None:
        present, codes = np.unique(target.codes[rows], return_inverse=True)
        if present.size < 2:
            return None
        target = Target(codes.astype(np.int32), target.classes[present])
    known = None if sampled else partitions
    found = sections.run(
        "pairs",
        "Pairing",
        math.comb(chosen.n_columns, 2),
        lambda run: find_pairs(
            chosen,
            target,
            partitions=known,
            n_full=SEARCHED_PAIRS,
            seed=0,
            short_bounds=True,
            run=run,
        ),
        max(0.0, seconds),
    )
    if found is None:
        return None
    grids = {}
    for pair, grid in found.grids.items():
        counts = np.zeros((len(grid.cells), n_classes), np.int64)
        counts[:, present] = grid.cells.counts  # classes that the sample does not hold have no row
        grids[pair] = describe(PairGrid(grid.partitions, GridCells(grid.cells.parts, counts)))
    return summarize_pairs(found.ranked, chosen.names, levels, (chosen.n_rows, table.n_rows), grids)


def paired(table: Table, levels: Mapping[str, float], most_rows: int) -> tuple[Table, IntArray | None]:
    """Choose what pairs are searched in: the columns of highest level, and the rows drawn, None for all."""
    names = sorted(levels, key=lambda name: -levels[name])[:PAIRED_COLUMNS]
    chosen = Table(tuple(table[name] for name in names), table.n_rows)
    if table.n_rows <= most_rows:
        return chosen, None
    rows = np.sort(np.random.default_rng(0).choice(table.n_rows, most_rows, replace=False))
    return chosen.take(rows), rows
