"""LINF: columns scaled and coded, decision lists grown and named, rows scored; without scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control, mstats, norm

from damier.intake import CategoricalColumn, Column, NumericColumn, Table, Target
from damier.intake.frames import without_order
from damier.intake.table import FloatArray
from damier.models.linf.columns import UNIT, CodedColumn, LinfColumn, ScaledColumn, signed_root
from damier.models.linf.model import Cover, LinfModel
from damier.search.run import Run, Stopped

if TYPE_CHECKING:
    from damier.search.linf.search import FoundCover

# Categories per column with a share of their own; the rarest beyond share one place.
_MOST_CATEGORIES = 1000
# Rows a category needs for that in the refined setting: the share of fewer rows is their class itself.
_FEWEST_ROWS = 5
# Numbers described at a time.
_BLOCK = 1 << 16
# Rows times covers worth a compiled kernel, a tenth of a second for NumPy; and rows a thread takes at a time.
_MUCH_WORK = 1_000_000
_CHUNK = 1 << 15


def fit_linf(
    table: Table,
    target: Target,
    *,
    n_estimators: int = 25,
    setting: Literal["refined", "paper"] = "refined",
    seed: int | np.random.RandomState = 0,
    run: Run | None = None,
) -> LinfModel:
    """Grow an ensemble of decision lists of rectangles on random projections.

    Parameters
    ----------
    table : Table
    target : Target
        Classes, two at least.
    n_estimators : int, default=25
        Number of decision lists, the members.
    setting : {"refined", "paper"}, default="refined"
    seed : int or RandomState, default=0
        The first members do not depend on how many there are.
    run : Run, optional
        Threads, time limit and progress. Stopped, the members grown so far are used. A time limit too short
        for one member leaves the covers that the first one has so far.

    Returns
    -------
    LinfModel

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> table = read_table({"size": [1.0, 1.1, 1.2, 1.3, 4.0, 4.1, 4.2, 4.3]})
    >>> model = fit_linf(table, read_target(["a"] * 4 + ["b"] * 4), n_estimators=2)
    >>> model.predict_proba({"size": [1.1, 4.2]}).argmax(axis=1)
    array([0, 1])
    """
    refined = setting == "refined"
    table = without_order(table)
    columns = _read_columns(table, _FEWEST_ROWS if refined else 1)
    if not isinstance(seed, np.random.RandomState):
        seed = np.random.RandomState(seed)
    # Columns with a single value are not used.
    used = [
        (column, read)
        for column, read in zip(columns, table.columns, strict=True)
        if (column.low < column.high if isinstance(column, ScaledColumn) else column.n_categories > 0)
    ]
    varying = [column for column, _ in used]
    lists = _grow_lists(used, target, n_estimators, refined, seed, run or Run())
    classes = tuple(target.classes.tolist())
    return LinfModel(
        columns=columns,
        classes=classes,
        class_counts=tuple(np.bincount(target.codes, minlength=len(classes)).tolist()),
        members=tuple(
            tuple(_cover(member, cover, varying, classes) for cover in found)
            for member, found in enumerate(lists)
        ),
        open_edges=refined,
        shared_votes=refined,
        outside_vote=0.25 if refined else 1.0,
    )


def score_linf(model: LinfModel, table: Table, *, n_threads: int = 1, first_only: bool = False) -> FloatArray:
    """Count the votes for each class, with a compiled kernel where that is worth loading.

    Parameters
    ----------
    model : LinfModel
    table : Table
    n_threads : int, default=1
    first_only : bool, default=False
        Stop asking members once they cannot change the first class of a row: only the largest entry of a row
        is then of use.

    Returns
    -------
    array of shape (n_rows, n_classes)
        The same to the last bit as `LinfModel.add_votes` counts, which NumPy does alone.
    """
    run = Run(n_threads)
    encoded = model.encode(table, run.map)
    scores = np.zeros((table.n_rows, len(model.classes)))
    add_votes = _compiled() if table.n_rows * len(model.covers) >= _MUCH_WORK else None
    if add_votes is None:
        model.add_votes(encoded, scores)
        return scores
    packed = model.packed

    def score(start: int) -> None:
        rows = slice(start, start + _CHUNK)
        add_votes(np.ascontiguousarray(encoded[:, rows]), packed, scores[rows], first_only)

    run.map(score, range(0, table.n_rows, _CHUNK))
    return scores


def _compiled() -> Any:
    """Return the compiled scoring kernel, or None where Numba is not installed: NumPy votes the same."""
    try:
        from damier.search.linf.score import add_votes
    except ImportError:
        return None
    return add_votes


def _grow_lists(
    columns: Sequence[tuple[LinfColumn, Column]],
    target: Target,
    n_lists: int,
    refined: bool,
    random: np.random.RandomState,
    run: Run,
) -> list[list[FoundCover]]:
    """Grow the lists, all of them or those that there was time for."""
    from damier.search.linf.search import LARGEST_SEED, PAPER, REFINED, Rows, find_covers

    seeds = random.randint(1, LARGEST_SEED, (n_lists, 2)).tolist()
    if not columns:
        return [[] for _ in seeds]
    settings = REFINED if refined else PAPER
    encoded = np.empty((len(columns), len(target.codes)), dtype=np.int32)
    for row, (column, read) in zip(encoded, columns, strict=True):
        column.write(read, row)
    n_categories = np.array([column.n_categories for column, _ in columns], dtype=np.int64)
    rows = Rows.of(encoded, n_categories, target.codes, target.n_classes, UNIT, settings)
    lists: dict[int, list[FoundCover]] = {}

    def grow(m: int) -> None:
        first, second = seeds[m]
        found = find_covers(rows, (first, second), settings, run.stop)
        # A list cut short is of use where a time limit left no other.
        if run.stopped and (m > 0 or run.ended == "interrupted"):
            raise Stopped
        lists[m] = found

    try:
        run.map(grow, range(n_lists), text="members grown")
    except Stopped:
        if run.ended == "interrupted" and not lists:
            raise
    run.stop_clock()
    return [lists[m] for m in sorted(lists)] or [[]]


class _Facts(NamedTuple):
    """Range and median of the finite values of a column; skewness and kurtosis over their standard errors.

    All is zero in a column without finite values.
    """

    low: float
    high: float
    middle: float
    skewness: float
    kurtosis: float


def _read_columns(table: Table, fewest_rows: int) -> tuple[LinfColumn, ...]:
    """Decide how each column is scaled or coded."""
    numeric = [column for column in table if isinstance(column, NumericColumn)]
    facts = {column.name: known for column, known in zip(numeric, _facts(numeric), strict=True)}
    rooted = _heavy_tailed(facts)
    return tuple(
        _scaled(column.name, facts[column.name], column.name in rooted)
        if isinstance(column, NumericColumn)
        else _coded(column, fewest_rows)
        for column in table
    )


def _facts(columns: Sequence[NumericColumn]) -> list[_Facts]:
    """Describe each column, many short ones at a time."""
    if not columns or not len(columns[0].values):
        return [_Facts(0.0, 0.0, 0.0, 0.0, 0.0)] * len(columns)
    facts: list[_Facts] = []
    step = max(1, _BLOCK // len(columns[0].values))
    for start in range(0, len(columns), step):
        values = np.array([column.values for column in columns[start : start + step]])
        values[~np.isfinite(values)] = np.nan
        values += 0.0  # minus zero is zero, whichever row comes first
        # Sorted, missing values last, so that rounding does not depend on the order of the rows.
        values.sort(axis=1)
        held = np.count_nonzero(~np.isnan(values), axis=1)
        at, last = np.arange(len(values)), np.maximum(held - 1, 0)
        points = [np.nan_to_num(values[at, where]) for where in (0 * last, last, last // 2)]
        largest = np.maximum(np.abs(points[0]), np.abs(points[1]))
        values /= np.where(largest > 0.0, largest, 1.0)[:, None]
        scaled, n = np.ma.masked_invalid(values, copy=False), np.maximum(held, 1)
        skewness = np.ma.filled(mstats.skew(scaled, axis=1), 0.0) / np.sqrt(6 / n)
        kurtosis = np.ma.filled(mstats.kurtosis(scaled, axis=1), 0.0) / np.sqrt(24 / n)
        facts += [_Facts(*row) for row in np.column_stack([*points, skewness, kurtosis]).tolist()]
    return facts


def _heavy_tailed(facts: dict[str, _Facts]) -> set[str]:
    """Names of the columns whose skewness or kurtosis is above chance (Wilkinson, "Linf", 2.1).

    One-sided tests at 1%, the false discovery rate controlled over the columns.
    """
    if not facts:
        return set()
    rejected = np.zeros(len(facts), dtype=bool)
    for statistics in ([f.skewness for f in facts.values()], [f.kurtosis for f in facts.values()]):
        rejected |= false_discovery_control(norm.sf(np.array(statistics))) <= 0.01
    return {name for name, heavy in zip(facts, rejected, strict=True) if heavy}


def _scaled(name: str, facts: _Facts, root: bool) -> ScaledColumn:
    """Scale by the range of the finite training values."""
    low, high = facts.low, facts.high
    if root:
        low, high = signed_root(np.array([low, high])).tolist()
    return ScaledColumn(name, root, low, high, facts.middle)


def _coded(column: CategoricalColumn, fewest_rows: int, most: int = _MOST_CATEGORIES) -> CodedColumn:
    """List the most frequent categories, in their own order; none where all rows hold the same one."""
    held = np.bincount(column.codes, minlength=len(column.categories))
    if np.count_nonzero(held) < 2:
        return CodedColumn(column.name, ())
    order = np.argsort(-held, kind="stable")[:most]
    kept = np.sort(order[held[order] >= fewest_rows])
    return CodedColumn(column.name, tuple(column.categories[i] for i in kept.tolist()))


def _cover(member: int, found: FoundCover, columns: list[LinfColumn], classes: tuple[Any, ...]) -> Cover:
    """Name what a kernel found."""
    axes = []
    for weights in (found.x_weights, found.y_weights):
        at = np.flatnonzero(weights)
        at = at[np.argsort(found.columns[at], kind="stable")]
        axes.append(tuple((columns[found.columns[q]].name, int(weights[q])) for q in at.tolist()))
    used = {name for axis in axes for name, _ in axis}
    shares = {}
    start = 0
    for column in columns:
        if isinstance(column, CodedColumn):
            if column.name in used:
                shares[column.name] = tuple(found.shares[start : start + column.n_categories + 1].tolist())
            start += column.n_categories + 1
    x0, x1, y0, y1 = found.limits.tolist()
    return Cover(
        member=member,
        label=classes[found.class_index],
        class_index=found.class_index,
        x=axes[0],
        y=axes[1],
        limits=(x0, x1, y0, y1),
        n_bins=found.n_bins,
        rectangles=found.rectangles,
        counts=found.counts,
        shares=shares,
    )
