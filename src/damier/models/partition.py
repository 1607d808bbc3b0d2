"""Partitions of one variable: intervals of numbers, groups of values.

The interval, missing and unseen rules are those of the architecture page. A partition is applied with NumPy
alone, and turns into a plain dict of JSON types and back without losing a digit.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from damier.intake import CategoricalColumn, Column, NumericColumn, as_categorical, as_numeric, read_column
from damier.intake.dates import number_text, object_microseconds
from damier.intake.printable import printable
from damier.intake.table import FloatArray, IntArray, NumericKind
from damier.models.bounds import midpoint, shortest
from damier.models.codec import Counts, Extended, FieldError, Model, Values, check_shape, distinct_names
from damier.models.notebook import bar_table, class_bar, counted
from damier.models.target_intervals import TargetIntervals

_LISTED_VALUES = 6
_LISTED_CHARACTERS = 60
_LONGEST_VALUE = 120
_EXACT = 2**53  # whole numbers below are exact as floats

# Numbers that measure the same thing in the same unit: a date column may be scored with datetimes.
_COMPARABLE = {
    "number": "number",
    "date": "moment",
    "datetime": "moment",
    "duration": "span",
    "time": "span",
    "rank": "rank",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Partition(Model):
    """What both kinds of partition share.

    Parameters
    ----------
    name : str
        Name of the variable.
    classes : tuple
        Classes of the target, as Python scalars.
    counts : array of shape (n_parts, n_classes)
        Training rows (frequencies) of each part and class.
    cost, null_cost : float
        Criterion of the partition and of the partition into one part, in nats.
    optimal : bool
        True when it is proven that there is no cheaper partition, False when that is not known.
    class_groups : tuple of tuples, optional
        Classes grouped together with the input, when they were.
    target : TargetIntervals, optional
        Where the target is a number: its intervals and its distribution in each part. ``classes`` are then
        the intervals, written for people.
    """

    name: str
    classes: Values
    counts: Counts
    cost: float
    null_cost: float
    optimal: bool
    class_groups: tuple[Values, ...] | None = None
    target: TargetIntervals | None = None

    later_fields = ("target",)

    def _check(self) -> None:
        if self.target is not None:
            if len(self.classes) != len(self.target.bounds) + 1:
                raise FieldError("target.bounds", f"{len(self.classes)} intervals of the target expected")
            check_shape(self.target, "means", self.n_parts)
        check_shape(self, "counts", self.n_parts, len(self.classes))
        grouped = [c for group in self.class_groups or () for c in group]
        if self.class_groups is not None and sorted(map(repr, grouped)) != sorted(map(repr, self.classes)):
            raise FieldError("class_groups", "not a partition of the classes")

    @property
    def n_parts(self) -> int:
        """Number of intervals or groups."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """Parts written for people."""
        raise NotImplementedError

    @property
    def target_bounds(self) -> tuple[float, ...] | None:
        """Inner bounds of the intervals of a numeric target; None where the target is a class."""
        return None if self.target is None else self.target.bounds

    @property
    def gain_per_row(self) -> float:
        """What the partition saves of the null cost, in nats per training row."""
        return max(0.0, self.null_cost - self.cost) / max(int(self.counts.sum()), 1)

    def condition(self, part: int) -> str:
        """Write what a value satisfies by lying in a part."""
        return f"{self.name} in {self.labels[part]}"

    def apply(self, values: Any) -> IntArray:
        """Index of the part of each value, -1 for a category never seen."""
        raise NotImplementedError

    def part_of(self, value: Any) -> int:
        """Index of the part of one value: what ``apply`` gives, without the arrays."""
        return int(self.apply([value])[0])

    def evidence(self, *, without_the_row: bool = False) -> FloatArray:
        """Weight of evidence of each part for each class: log P(part | class) - log P(part).

        P(part | class) is the m-estimate ``(support + m p) / (coverage + m)`` with m = W/N and p = 1/W (N
        rows, W classes), support the rows of the class in the part, coverage the rows of the class, both
        taken over the class's group where classes are grouped. P(part) is the part's share of the rows. A
        single part brings exactly zero.

        Parameters
        ----------
        without_the_row : bool, default=False
            Evidence for a training row of that part and class, had the row itself not been counted: what an
            honest judgement of the training rows needs.

        Returns
        -------
        array of shape (n_parts, n_classes)
        """
        support = self.counts.astype(np.float64)
        if self.class_groups is not None:
            position = {c: j for j, c in enumerate(self.classes)}
            for group in self.class_groups:
                members = [position[c] for c in group]
                support[:, members] = support[:, members].sum(axis=1, keepdims=True)
        rows, parts = self.counts.sum(), self.counts.sum(axis=1, keepdims=True)
        if self.n_parts == 1 or rows == 0:
            return np.zeros(self.counts.shape)
        coverage = support.sum(axis=0)
        m, mp = len(self.classes) / rows, 1.0 / rows
        if without_the_row:
            support, coverage = np.maximum(support - 1, 0), np.maximum(coverage - 1, 0)
            parts, rows = np.where(parts > 0, np.maximum(parts - 1, 1), 0), max(rows - 1, 1)
        smoothed = (support + mp) / (coverage + m)
        # A part without a labeled row (semi-supervision) has no evidence.
        return np.where(parts > 0, np.log(smoothed) - np.log(np.maximum(parts, 1) / rows), 0.0)

    # Set by the naive Bayes that holds the partition, where its evidence is averaged over all partitions.
    _averaged: ClassVar[Any] = None

    def posterior(self, coverage: float = 0.9, backend: str | None = None) -> Any:
        """Class shares along the variable, averaged over all partitions: where there is doubt, and how much.

        Of partitions in a naive Bayes whose evidence is averaged, as it is by default. Where the target is a
        number, its intervals in this partition are the classes, and a partition of one part has no posterior.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability that a share lies between ``low`` and ``high``.
        backend : {"pandas", "polars", "pyarrow", "dict"}, optional
            Library of the table; by default that of the frame that was fitted, else the first installed.

        Returns
        -------
        frame
            One row per element (distinct value, or some neighbouring ones): label, rows, mean, low and high
            share of each class, and the probability of a cut behind it.

        Examples
        --------
        >>> from damier import NaiveBayesClassifier
        >>> classifier = NaiveBayesClassifier().fit({"age": list(range(20))}, [0] * 10 + [1] * 10)
        >>> curve = classifier.partitions_["age"].posterior(backend="dict")
        >>> [round(share, 2) for share in curve["share 1"][7:13]]
        [0.12, 0.13, 0.2, 0.8, 0.87, 0.88]
        >>> round(curve["cut"][9], 2)
        0.78
        """
        if self._averaged is None:
            raise ValueError(
                f"the evidence of {self.name!r} is not averaged over its partitions: fit a "
                "NaiveBayesClassifier or a NaiveBayesRegressor with evidence='posterior'. In the latter a "
                "partition of one part has no posterior."
            )
        return self._averaged.curve(coverage, backend)

    def to_frame(self, backend: str | None = None) -> Any:
        """Parts as a table: label, rows, then rows and share of each class.

        Where the target is a number, its mean and median in each part, then rows and share of its intervals.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "dict"}, optional
            By default that of the frame that was fitted, else the first of pandas, polars and pyarrow that is
            installed, else a dict of lists.
        """
        totals = self.counts.sum(axis=1)
        shares = self.counts / np.maximum(totals, 1)[:, np.newaxis]
        names = ["part", "count"]
        columns = [self.labels, totals.tolist()]
        if self.target is not None:
            names += ["mean", "median"]
            columns += [self.target.means.tolist(), self.target.medians.tolist()]
        names += [f"{what} {c}" for what in ("count", "share") for c in self.classes]
        columns += [*self.counts.T.tolist(), *shares.T.tolist()]
        return self._frame(dict(zip(distinct_names(names), columns, strict=True)), backend)

    # What its parts are called.
    _part_word: ClassVar[str] = "part"

    def _described(self) -> str:
        known = "optimal" if self.optimal else "not proven optimal"
        return f"{self.name}: {counted(self.n_parts, self._part_word)}, level {self.level:.2f}, {known}"

    def _repr_html_(self) -> str:
        rows = [
            (label, int(counts.sum()), *self._averages(part), class_bar(counts, self.classes))
            for part, (label, counts) in enumerate(zip(self.labels, self.counts, strict=True))
        ]
        shown = ("classes",) if self.target is None else ("mean", "median", "target")
        return bar_table(self._described(), (self._part_word, "rows", *shown), rows, classes=self.classes)

    def _averages(self, part: int) -> tuple[float, ...]:
        """Mean and median of a numeric target in a part; nothing for classes."""
        if self.target is None:
            return ()
        return float(self.target.means[part]), float(self.target.medians[part])

    def __str__(self) -> str:
        known = "optimal" if self.optimal else "not proven optimal"
        parts = "; ".join(self.labels)
        return printable(f"{self.name}: {self.n_parts} parts, level {self.level:.4f}, {known}: {parts}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IntervalPartition(Partition):
    """Intervals of a numeric variable.

    Parameters
    ----------
    bounds : tuple of float
        Inner bounds, ascending; a value goes left of a bound it equals.
    missing_alone : bool
        Missing values are part 0 on their own; otherwise they belong to the lowest interval.
    has_missing : bool
        Some training value was missing.
    kind : {"number", "date", "datetime", "duration", "time", "rank"}
        What the numbers stand for. A rank is the place of a value in an ordered category, from 0.
    legend : tuple
        What the numbers are written with: the values of an ordered category in their order, the time zone of
        datetimes that have one.

    Examples
    --------
    >>> partition = IntervalPartition(
    ...     name="age", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=True, bounds=(30.5,))
    >>> partition.labels
    (']-inf, 30.5]', ']30.5, +inf[')
    >>> partition.apply([30.5, 31, None])
    array([0, 1, 0])

    A value of an ordered category is found by its name. One that the order does not have is part -1.

    >>> sizes = IntervalPartition(
    ...     name="size", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=True, bounds=(1.5,), kind="rank", legend=("small", "medium", "large"))
    >>> sizes.labels
    ('{small, medium}', '{large}')
    >>> sizes.apply(["large", "small", "huge", None])
    array([ 1,  0, -1,  0])
    """

    bounds: tuple[Extended, ...]
    missing_alone: bool = False
    has_missing: bool = False
    kind: NumericKind = "number"
    legend: Values = ()

    model: ClassVar[str] = "intervals"
    _part_word = "interval"

    def _check(self) -> None:
        object.__setattr__(self, "bounds", tuple(float(b) for b in self.bounds))
        if any(math.isnan(bound) for bound in self.bounds):
            raise FieldError("bounds", f"a bound of {self.name!r} is not a number")
        if any(not left < right for left, right in zip(self.bounds, self.bounds[1:], strict=False)):
            raise FieldError("bounds", f"the bounds of {self.name!r} must be ascending, got {self.bounds}")
        if self.kind not in _COMPARABLE:
            raise FieldError("kind", f"unknown kind {self.kind!r}")
        if self.kind == "rank" and self.bounds and not -1.0 < self.bounds[-1] < len(self.legend) - 1:
            raise FieldError("legend", f"{len(self.legend)} values for the bounds {self.bounds}")
        super()._check()

    @classmethod
    def from_cuts(
        cls,
        below: npt.NDArray[np.float64],
        above: npt.NDArray[np.float64],
        *,
        short_bounds: bool = False,
        bounds: npt.NDArray[np.float64] | None = None,
        kind: NumericKind = "number",
        **fields: Any,
    ) -> Self:
        """Place the bounds between the training values on both sides of each cut.

        A ``below`` of NaN is the cut that sets missing values apart. ``bounds`` may say where between the two
        values each bound lies, or NaN where it does not.
        """
        alone = len(below) > 0 and bool(np.isnan(below[0]))
        given = np.full(len(below), np.nan) if bounds is None else bounds
        placed = []
        sides = (np.asarray(one, np.float64)[alone:].tolist() for one in (below, above, given))
        for b, a, bound in zip(*sides, strict=True):
            if math.isnan(bound):
                bound = shortest(b, a, kind) if short_bounds else midpoint(b, a)
            placed.append(bound)
        return cls(bounds=tuple(placed), missing_alone=alone, kind=kind, **fields)

    @property
    def n_parts(self) -> int:
        """Number of intervals, the part of the missing values included."""
        return len(self.bounds) + 1 + int(self.missing_alone)

    @cached_property
    def bound_texts(self) -> tuple[str, ...]:
        """Bounds written for people, no two alike."""
        texts = tuple(number_text(bound, self.kind, self.legend) for bound in self.bounds)
        if len(set(texts)) < len(texts):
            return tuple(repr(bound) for bound in self.bounds)  # these bounds differ in later digits only
        return texts

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Intervals written for people, ``missing`` for the part of missing values alone."""
        texts = self.bound_texts
        left = ["-inf", *texts]
        written = [f"]{low}, {high}]" for low, high in zip(left, texts, strict=False)]
        written.append(f"]{left[-1]}, +inf[")
        if self.kind == "rank":
            written = [_listed(values, quoted=False) for values in self._ranked]
        if self.missing_alone:
            written.insert(0, "missing")
        elif self.has_missing:
            written[0] = f"missing or {written[0]}"
        return tuple(written)

    def condition(self, part: int) -> str:
        """Write what a value satisfies by lying in a part.

        >>> partition = IntervalPartition(
        ...     name="age", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
        ...     optimal=True, bounds=(30.5,))
        >>> partition.condition(0)
        'age <= 30.5'
        """
        interval = part - int(self.missing_alone)
        if interval < 0:
            return f"{self.name} is missing"
        bounds = self.bound_texts
        if self.kind == "rank":
            condition = f"{self.name} in {_listed(self._ranked[interval], quoted=False)}"
        elif not bounds:
            condition = f"{self.name} is any number"
        elif interval == len(bounds):
            condition = f"{self.name} > {bounds[-1]}"
        elif interval == 0:
            condition = f"{self.name} <= {bounds[0]}"
        else:
            condition = f"{bounds[interval - 1]} < {self.name} <= {bounds[interval]}"
        if interval == 0 and self.has_missing and not self.missing_alone:
            condition += " or is missing"
        return condition

    @property
    def _ranked(self) -> list[tuple[Any, ...]]:
        """The values of an ordered category, interval by interval."""
        ends = [math.floor(bound) + 1 for bound in self.bounds]
        starts_and_ends = zip([0, *ends], [*ends, len(self.legend)], strict=True)
        return [tuple(self.legend[start:end]) for start, end in starts_and_ends]

    @cached_property
    def _edges(self) -> FloatArray:
        return np.array(self.bounds, dtype=np.float64)

    def apply(self, values: Column | Any) -> IntArray:
        """Index of the interval of each value; missing values belong to part 0.

        Values of an ordered category are found by name; one that is not in the order is part -1.

        Parameters
        ----------
        values : column of a table, array, sequence or series
        """
        column = values if isinstance(values, (NumericColumn, CategoricalColumn)) else self._read(values)
        if self.kind == "rank" and getattr(column, "legend", None) != self.legend:
            read = as_categorical(column)
            rank_of = self._rank_of
            ranks = NumericColumn(
                self.name,
                np.array([np.nan if v is None else rank_of.get(v, -1) for v in read.categories], np.float64),
                "rank",
                legend=self.legend,
            )
            parts = self.apply(ranks)
            parts[ranks.values < 0] = -1
            return parts[read.codes]
        if isinstance(column, CategoricalColumn):
            column = as_numbers(column)
        numbers = column.values
        missing = np.isnan(numbers)
        any_missing = bool(missing.any())
        if _COMPARABLE[column.kind] != _COMPARABLE[self.kind] and not missing.all():
            raise ValueError(
                f"column {column.name!r} was a {self.kind} when fitted and is a {column.kind} now"
            )
        codes = np.searchsorted(self._edges, numbers, side="left").astype(np.int64, copy=False)
        if self.missing_alone:
            codes += 1
        if any_missing:
            codes[missing] = 0
        return codes

    def part_of(self, value: Any) -> int:
        """Index of the interval of one value: what ``apply`` gives, without the arrays."""
        if value is None or (isinstance(value, float) and value != value):
            return 0
        kind = type(value)
        if self.kind == "number":
            known = isinstance(value, float) or (kind is int and -_EXACT < value < _EXACT)
        elif self.kind == "rank":
            known = kind is str
            value = self._rank_of.get(value) if known else value
            if value is None:
                return -1
        else:
            known = _COMPARABLE[self.kind] == "moment" and kind in (datetime.date, datetime.datetime)
            value = object_microseconds(value) if known else value
        return bisect_left(self.bounds, value) + self.missing_alone if known else super().part_of(value)

    @cached_property
    def _rank_of(self) -> dict[Any, int]:
        return {value: rank for rank, value in enumerate(self.legend)}

    def _read(self, values: Any) -> Column:
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and self.kind != "number":
            return NumericColumn(self.name, values, self.kind, legend=self.legend)
        return read_column(values, self.name)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupPartition(Partition):
    """Groups of the values of a categorical variable.

    Parameters
    ----------
    groups : tuple of tuples
        Values of each group; ``None`` is the missing value.

    Examples
    --------
    >>> partition = GroupPartition(
    ...     name="colour", classes=(0, 1), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
    ...     optimal=False, groups=(("red", None), ("blue",)))
    >>> partition.labels
    ('{red, missing}', '{blue}')
    >>> partition.apply(["blue", None, "green"])
    array([ 1,  0, -1])
    """

    groups: tuple[Values, ...]

    model: ClassVar[str] = "groups"
    _part_word = "group"

    def _check(self) -> None:
        object.__setattr__(self, "groups", tuple(tuple(group) for group in self.groups))
        if not self.groups or not all(self.groups):
            raise FieldError("groups", f"a group of {self.name!r} holds no value")
        values = [value for group in self.groups for value in group]
        if len(set(values)) < len(values):
            twice = next(v for v, n in Counter(values).items() if n > 1)
            raise FieldError("groups", f"{twice!r} appears twice")
        super()._check()

    @classmethod
    def from_codes(
        cls, group_of: npt.NDArray[Any], n_groups: int, categories: tuple[Any, ...], **fields: Any
    ) -> Self:
        """Build the groups from the group of each category."""
        order = np.argsort(group_of, kind="stable")
        ends = np.cumsum(np.bincount(group_of, minlength=n_groups))
        members = [categories[i] for i in order.tolist()]
        starts = [0, *ends[:-1].tolist()]
        groups = tuple(tuple(members[a:b]) for a, b in zip(starts, ends.tolist(), strict=True))
        return cls(groups=groups, **fields)

    @property
    def n_parts(self) -> int:
        """Number of groups."""
        return len(self.groups)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Groups written for people, the first values of the long ones."""
        types = {type(v) for group in self.groups for v in group} - {type(None)}
        quoted = str in types and len(types) > 1  # 1 and "1" must not read the same
        return tuple(_listed(group, quoted) for group in self.groups)

    @cached_property
    def _group_of(self) -> dict[Any, int]:
        return with_booleans({value: i for i, group in enumerate(self.groups) for value in group})

    @cached_property
    def _text_only(self) -> bool:
        return {type(value) for group in self.groups for value in group} <= {str, type(None)}

    @property
    def _n_values(self) -> int:
        return sum(map(len, self.groups))

    def apply(self, values: Column | Any) -> IntArray:
        """Index of the group of each value, -1 for a value never seen.

        Parameters
        ----------
        values : column of a table, array, sequence or series
        """
        column = values if isinstance(values, (NumericColumn, CategoricalColumn)) else None
        read = as_categorical(read_column(values, self.name) if column is None else column)
        if not isinstance(column, CategoricalColumn) and self._text_only and self._n_values > 1:
            met = next((v for v in read.categories if not isinstance(v, (str, type(None)))), None)
            if met is not None:
                raise ValueError(
                    f"column {read.name!r} held text when fitted and holds the number {met!r} now: convert "
                    "it to text"
                )
        group_of = self._group_of
        known = map(group_of.get, read.categories, repeat(-1))
        return np.fromiter(known, np.int64, len(read.categories))[read.codes]

    def part_of(self, value: Any) -> int:
        """Index of the group of one value: what ``apply`` gives, without the arrays."""
        if type(value) is str or value is None:
            return self._group_of.get(value, -1)
        return super().part_of(value)


# What a partition is: `isinstance` decides which.
AnyPartition = IntervalPartition | GroupPartition


def with_booleans(code_of: dict[Any, int]) -> dict[Any, int]:
    """Let text stand for the booleans it spells, and the other way round, where only one of them is known.

    A form or a file without types gives ``"true"`` where a frame held True.

    >>> with_booleans({True: 0, False: 1})["true"]
    0
    """
    known = dict(code_of)
    booleans = bool in set(map(type, code_of))  # rarely: the values need not be looked at one by one
    for truth in (True, False):
        spelled = (str(truth), str(truth).lower(), str(truth).upper())
        if booleans and any(type(value) is bool and value == truth for value in code_of):
            for text in spelled:
                known.setdefault(text, code_of[truth])
        else:
            code = next((code_of[text] for text in spelled if text in code_of), None)
            if code is not None:
                known.setdefault(truth, code)
    return known


def as_numbers(column: CategoricalColumn) -> NumericColumn:
    """Booleans as 0 and 1, for what was fitted on numbers; text that spells them too."""
    truth = with_booleans({None: -1, False: 0, True: 1})
    try:
        if all(category in truth for category in column.categories):
            worth = np.array([truth[category] for category in column.categories], dtype=np.float64)
            return NumericColumn(column.name, np.where(worth < 0, np.nan, worth)[column.codes])
        return as_numeric(column)
    except ValueError:
        raise ValueError(
            f"column {column.name!r} held numbers when fitted and holds {column.categories[-1]!r} now: "
            "convert it to numbers"
        ) from None


def _written(value: Any, quoted: bool) -> str:
    """Write one value; text that would not be read as it is, or as text at all, is quoted."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        quoted = quoted or value in ("", "missing") or value != value.strip() or not value.isprintable()
        value = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return repr(value) if quoted else str(value)


def _listed(group: Iterable[Any], quoted: bool) -> str:
    """Write ``{a, b, ...}``, cut where it gets long."""
    texts: list[str] = []
    length = 0
    values = tuple(group)
    for value in values[:_LISTED_VALUES]:
        text = _written(value, quoted)
        if texts and length + len(text) > _LISTED_CHARACTERS:
            break
        texts.append(text)
        length += len(text)
    more = len(values) - len(texts)
    return "{" + ", ".join(texts) + (f", ... {more} more" if more else "") + "}"
