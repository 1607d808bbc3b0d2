"""A table and a target turned into the summary that every report is written from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from damier.intake import Table, Target
from damier.models import NaiveBayes, Partition
from damier.report.grid import summarize_grid, summarize_pairs
from damier.report.summary import Summary, summarize
from damier.search.run import ProgressCallback, Run, Stopped

# Enough to show what interacts: pairs of a dozen columns, on a sample of the rows.
PAIRED_COLUMNS = 12
PAIRED_ROWS = 20_000
# Two interrupts so close ask for the end of all, not of the section at hand.
_AT_ONCE = 2.0

# Sections that a report may go without.
_NAMES = {
    "model": "a model",
    "classifier": "the scores of a classifier",
    "grid": "a grid",
    "pairs": "the pairs",
}

# Opens what shows a section's progress: called with its name and the number of its steps, 0 if not known.
Show = Callable[[str, int], AbstractContextManager[ProgressCallback | None]]


@contextmanager
def _show_nothing(text: str, total: int) -> Iterator[None]:  # noqa: ARG001
    yield None


class _Sections:
    """Runs the sections of a report; one that Ctrl-C ends is left out, two interrupts end the report."""

    def __init__(self, n_threads: int, show: Show, say: Callable[[str], None]) -> None:
        self.n_threads = n_threads
        self.show = show
        self.say = say
        self.ended: dict[str, str] = {}
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
        return found


def analyze(
    table: Table,
    target: Target,
    *,
    dataset: str = "table",
    target_name: str = "target",
    classifier: bool = True,
    grid_seconds: float = 10.0,
    n_threads: int = 1,
    keep_model: Callable[[NaiveBayes], None] | None = None,
    show: Show = _show_nothing,
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
    n_threads : int, default=1
        Threads; the summary does not depend on them.
    keep_model : callable, optional
        Called with the averaged naive Bayes of all columns, on the partitions that the summary shows.
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

    sections = _Sections(n_threads, show, say)
    partition = partial(partition_column, target=target, short_bounds=True)
    found = sections.run(
        "variables",
        "Partitioning",
        table.n_columns,
        lambda run: run.map(partition, table.columns, text="Partitioning"),
    )
    if found is None:
        raise KeyboardInterrupt
    if keep_model is not None:
        model = sections.run("model", "Weighting", 0, lambda run: _averaged(found, table, target, run))
        if model is not None:
            keep_model(model)
    scores, grid, pairs = None, None, None
    # With fewer rows hardly a class has one to learn from and one to be judged by.
    if classifier and table.n_rows >= 2 * target.n_classes:
        scores = sections.run(
            "classifier",
            "Cross-validating",
            0,
            lambda run: cross_validated_scores(table, target, partitions=found, run=run),
        )
    if grid_seconds > 0 and table.n_columns > 1:
        began = time.monotonic()
        grid = sections.run(
            "grid",
            "Searching for a grid",
            0,
            lambda run: fit_grid(table, target, effort=4, seed=0, run=run),
            grid_seconds / 2,
        )
        left = grid_seconds - (time.monotonic() - began)
        levels = {one.name: one.level for one in found}
        pairs = _pairs(sections, table, target, levels, left)
    summary = summarize(
        {one.name: one for one in found},
        dataset=dataset,
        target=target_name,
        missing={column.name: column.n_missing for column in table},
        classifier=scores,
        grid=None if grid is None else summarize_grid(grid),
        pairs=pairs,
    )
    summary["ended"] = sections.ended
    return summary


def _averaged(partitions: Sequence[Partition], table: Table, target: Target, run: Run) -> NaiveBayes:
    """Weight the partitions into a naive Bayes."""
    from damier.fit.naive_bayes import naive_bayes, weight_variables
    from damier.models import VariableEvidence

    variables = [VariableEvidence((partition,)) for partition in partitions]
    return naive_bayes(weight_variables(variables, table, target, run=run), target)


def _pairs(
    sections: _Sections, table: Table, target: Target, levels: dict[str, float], seconds: float
) -> dict[str, Any] | None:
    """Search the pairs of the columns of highest level; None where the sample holds one class only."""
    from damier.fit.grids import fit_pairs

    names = sorted(levels, key=lambda name: -levels[name])[:PAIRED_COLUMNS]
    rows = np.arange(table.n_rows)
    if table.n_rows > PAIRED_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(table.n_rows, PAIRED_ROWS, replace=False))
    present, codes = np.unique(target.codes[rows], return_inverse=True)
    if present.size < 2:
        return None
    sample = Table(tuple(table[name].take(rows) for name in names), rows.size)
    classes = Target(codes.astype(np.int32), target.classes[present])
    found = sections.run(
        "pairs",
        "Pairing",
        len(names) * (len(names) - 1) // 2,
        lambda run: fit_pairs(sample, classes, effort=2, seed=0, run=run),
        max(0.0, seconds),
    )
    return None if found is None else summarize_pairs(found, names)
