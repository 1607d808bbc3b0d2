"""Decision lists of rectangles on projections, applied with NumPy alone.

A row is decided by the first rectangle that holds it, member by member; where no rectangle does, by the
nearest one, in units of its projection's range. All arithmetic is on whole numbers held exactly by float32,
so that scoring puts every training row where fitting put it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from damier.intake.frames import row_values
from damier.intake.printable import printable
from damier.intake.table import FloatArray, IntArray
from damier.models.codec import (
    ClassifierModel,
    Count,
    Counts,
    FieldError,
    Model,
    Positive,
    Share,
    Values,
    check_shape,
    read_used,
)
from damier.models.encoding import check_names
from damier.models.linf.columns import UNIT, CodedColumn, LinfColumn
from damier.models.linf.packed import PackedLists
from damier.models.linf.row import RowEncoder, RowVotes
from damier.models.notebook import bar_table, class_bar, counted

SingleArray = npt.NDArray[np.float32]

# Rows scored at a time: few enough to stay in cache, enough to make calls cheap.
_BLOCK = 1 << 15
# Bins along an axis at most, and the largest number in a projection: far beyond what a search finds.
_MOST_BINS = 1 << 11
_LARGEST = 1 << 40


class DecisionPath(NamedTuple):
    """Which rectangle decided each row, in every member; arrays of shape (n_rows, n_members).

    ``cover`` counts in the list of all covers, ``rectangle`` within its cover; ``inside`` is False where the
    row is in no rectangle and the nearest one decided.
    """

    cover: IntArray
    rectangle: IntArray
    inside: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Cover(Model):
    """Rectangles of one class on one projection.

    Parameters
    ----------
    member : int
        Which decision list it belongs to.
    label : object
        The class it covers.
    x, y : tuple of (str, int)
        Columns of the two axes with their weights, whole numbers; an axis adds up weighted columns, each
        scaled to 0 .. 1.
    limits : tuple of int
        Least and greatest training value along x, then along y, in fixed point (``UNIT`` stands for 1).
    n_bins : int
        Bins along each axis, of equal width between the limits.
    rectangles : array of shape (n_rectangles, 4)
        First and last bin along x, first and last along y, in scoring order.
    counts : array of shape (n_rectangles, n_classes)
        Training rows of each class that each rectangle decided.
    shares : dict
        For each categorical column of the axes, the number each category stands for, in fixed point; the last
        one is that of a category never seen.
    """

    member: Count
    label: Any
    class_index: Count
    x: tuple[tuple[str, int], ...]
    y: tuple[tuple[str, int], ...]
    limits: tuple[int, int, int, int]
    n_bins: Positive
    rectangles: IntArray
    counts: Counts
    shares: dict[str, tuple[Count, ...]]

    def _check(self) -> None:
        check_shape(self, "rectangles", len(self.rectangles), 4)
        if self.counts.ndim != 2 or len(self.counts) != len(self.rectangles):
            raise FieldError("counts", f"shape {self.counts.shape} for {len(self.rectangles)} rectangles")
        b = self.n_bins
        if not 1 <= b <= _MOST_BINS:
            raise FieldError("n_bins", f"{b} is not from 1 to {_MOST_BINS}")
        firsts, lasts = self.rectangles[:, [0, 2]], self.rectangles[:, [1, 3]]
        if not len(firsts) or (firsts < 0).any() or (lasts >= b).any() or (firsts > lasts).any():
            raise FieldError("rectangles", "a rectangle lies outside the bins")
        low_x, high_x, low_y, high_y = self.limits
        if low_x > high_x or low_y > high_y or max(map(abs, self.limits)) > _LARGEST:
            raise FieldError("limits", f"{self.limits} are not two ranges")
        for field in ("x", "y"):
            # An axis without columns is a projection to zero: the search meets it when weights cancel out.
            if any(not 0 < abs(weight) < _LARGEST for _, weight in getattr(self, field)):
                raise FieldError(field, "a weight of a column is zero or too large")
        if any(share > UNIT for held in self.shares.values() for share in held):
            raise FieldError("shares", f"a share is above {UNIT}, which stands for 1")

    @property
    def bounds(self) -> FloatArray:
        """Rectangles in units of the projection, one per row: x from, x to, y from, y to."""
        low = np.array([self.limits[0], self.limits[2]]) / UNIT
        high = np.array([self.limits[1] + 1, self.limits[3] + 1]) / UNIT
        edges = self.rectangles + np.array([0, 1, 0, 1])
        origin, width = np.repeat(low, 2), np.repeat(high - low, 2) / self.n_bins
        bounds: FloatArray = origin + edges * width
        return bounds

    @property
    def table(self) -> npt.NDArray[np.int32]:
        """Index of the first rectangle that holds each bin, -1 where none does."""
        owner = np.full((self.n_bins, self.n_bins), -1, dtype=np.int32)
        for r, (x0, x1, y0, y1) in reversed(list(enumerate(self.rectangles.tolist()))):
            owner[x0 : x1 + 1, y0 : y1 + 1] = r
        return owner

    def describe(self) -> str:
        """Write the cover for people.

        >>> cover = Cover(
        ...     member=0, label="yes", class_index=1, x=(("age", 1), ("size", -1)), y=(("age", 1),),
        ...     limits=(0, UNIT - 1, 0, UNIT - 1), n_bins=4, rectangles=[[0, 1, 0, 3]], counts=[[0, 12]],
        ...     shares={})
        >>> print(cover.describe())
        yes when x = age - size, y = age: x in 0 .. 0.5, y in 0 .. 1 (12 rows of 12)
        """
        axes = ", ".join(f"{name} = {axis_text(axis)}" for name, axis in (("x", self.x), ("y", self.y)))
        return f"{self.label} when {axes}: " + " or ".join(self._rectangle_texts)

    @cached_property
    def _rectangle_texts(self) -> list[str]:
        return [
            f"x in {x0:.4g} .. {x1:.4g}, y in {y0:.4g} .. {y1:.4g} "
            f"({held[self.class_index]} rows of {held.sum()})"
            for (x0, x1, y0, y1), held in zip(self.bounds.tolist(), self.counts, strict=True)
        ]

    def describe_rectangle(self, rectangle: int) -> str:
        """Write one rectangle for people."""
        axes = f"x = {axis_text(self.x)}, y = {axis_text(self.y)}"
        return f"{self.label} when {axes}: {self._rectangle_texts[rectangle]}"

    def __str__(self) -> str:
        return printable(self.describe())

    def _described(self) -> str:
        axes = f"x = {axis_text(self.x)}, y = {axis_text(self.y)}"
        return f"{self.label} when {axes}: {counted(len(self.rectangles), 'rectangle')}"

    def _repr_html_(self) -> str:
        ranges = [f"{x0:.4g} .. {x1:.4g}|{y0:.4g} .. {y1:.4g}".split("|") for x0, x1, y0, y1 in self.bounds]
        classes = [self.label if j == self.class_index else f"class {j}" for j in range(self.counts.shape[1])]
        rows = [
            (*sides, int(held.sum()), class_bar(held, classes))
            for sides, held in zip(ranges, self.counts, strict=True)
        ]
        return bar_table(self._described(), ("x", "y", "rows", "classes"), rows, classes=classes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinfModel(ClassifierModel):
    """An ensemble of decision lists of covers.

    Parameters
    ----------
    columns : tuple of ScaledColumn or CodedColumn
        How each column of the table is read.
    classes : tuple
        Classes, as Python scalars.
    class_counts : tuple of int
        Training rows of each class.
    members : tuple of tuples of Cover
        The decision lists, each in scoring order.
    open_edges : bool
        Rectangles that touch the edge of their bins go on to infinity.
    shared_votes : bool
        A rectangle votes with the square roots of the class shares of its training rows, mixed with a prior,
        and sums of votes are squared into probabilities; otherwise with one whole vote for its class.
    outside_vote : float
        Weight of the vote of a member in none of whose rectangles the row lies.
    """

    columns: tuple[LinfColumn, ...]
    classes: Values
    class_counts: tuple[Positive, ...]
    members: tuple[tuple[Cover, ...], ...]
    open_edges: bool
    shared_votes: bool
    outside_vote: Share

    model: ClassVar[str] = "linf"

    def _check(self) -> None:
        check_names(self.columns, "columns")
        if not self.classes or len(self.class_counts) != len(self.classes):
            raise FieldError(
                "class_counts", f"{len(self.class_counts)} counts for {len(self.classes)} classes"
            )
        if not self.members:
            raise FieldError("members", "there is none")
        if self.outside_vote <= 0.0:
            raise FieldError("outside_vote", f"{self.outside_vote} is not above 0")
        for m, member in enumerate(self.members):
            for c, cover in enumerate(member):
                self._check_cover(cover, m, f"members[{m}][{c}]")

    def _check_cover(self, cover: Cover, member: int, path: str) -> None:
        if cover.member != member:
            raise FieldError(f"{path}.member", f"{cover.member} instead of {member}")
        if cover.class_index >= len(self.classes) or cover.label != self.classes[cover.class_index]:
            raise FieldError(f"{path}.label", f"{cover.label!r} is not class {cover.class_index}")
        if cover.counts.shape[1] != len(self.classes):
            raise FieldError(
                f"{path}.counts", f"{cover.counts.shape[1]} counts for {len(self.classes)} classes"
            )
        for name, _ in (*cover.x, *cover.y):
            if name not in self._column_of:
                raise FieldError(path, f"no column {name!r}")
            column = self._column_of[name]
            n_shares = column.n_categories + 1 if isinstance(column, CodedColumn) else 0
            if len(cover.shares.get(name, ())) != n_shares:
                raise FieldError(f"{path}.shares", f"{n_shares} are expected for column {name!r}")

    def _described(self) -> str:
        lists, covers = counted(len(self.members), "decision list"), counted(len(self.covers), "cover")
        return f"{lists}, {covers}, {counted(len(self.classes), 'class')}"

    def _repr_html_(self) -> str:
        largest = sorted(self.covers, key=lambda cover: -int(cover.counts.sum()))
        rows = [
            (
                cover.label,
                axis_text(cover.x),
                axis_text(cover.y),
                int(cover.counts.sum()),
                class_bar(cover.counts.sum(axis=0), self.classes),
            )
            for cover in largest
        ]
        return bar_table(
            self._described(), ("cover of", "x", "y", "rows", "classes"), rows, classes=self.classes
        )

    @cached_property
    def _column_of(self) -> dict[str, LinfColumn]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _used(self) -> list[int]:
        """Positions of the columns on some axis of some cover."""
        names = {name for cover in self.covers for axis in (cover.x, cover.y) for name, _ in axis}
        return [j for j, column in enumerate(self.columns) if column.name in names]

    @cached_property
    def _used_names(self) -> list[str]:
        return [self.columns[j].name for j in self._used]

    @cached_property
    def covers(self) -> tuple[Cover, ...]:
        """All covers in scoring order, those of the first member first."""
        return tuple(cover for member in self.members for cover in member)

    def encode(self, X: Any, spread: Callable[[Callable[[int], None], range], Any] = map) -> SingleArray:
        """Columns by rows, scaled or coded, zero where no cover uses them.

        ``spread`` may share the columns among threads.
        """
        used = self._used
        table = read_used(X, list(self._column_of), self._used_names)
        encoded = np.zeros((len(self.columns), table.n_rows), dtype=np.float32)

        def fill(k: int) -> None:
            self.columns[used[k]].write(table.columns[k], encoded[used[k]])

        list(spread(fill, range(len(used))))
        return encoded

    @cached_property
    def packed(self) -> PackedLists:
        """The lists as arrays, which score."""
        return PackedLists.of(self)

    @property
    def no_cover_vote(self) -> FloatArray:
        """Vote of a member that could cover nothing: by the class shares."""
        held = np.array(self.class_counts, dtype=np.float64)
        shares: FloatArray = held / held.sum()
        return (np.sqrt(shares) if self.shared_votes else shares) * self.outside_vote

    def add_votes(self, encoded: SingleArray, scores: FloatArray) -> None:
        """Add the votes of every member to ``scores``, rows by classes."""
        packed = self.packed
        for start, block in _blocks(encoded):
            part = scores[start : start + block.shape[1]]
            for m, member in enumerate(self.members):
                if not member:
                    part += packed.no_cover_vote
                    continue
                decided, inside = packed.decide(m, block)
                part += packed.votes[decided] * np.where(inside, 1.0, self.outside_vote)[:, None]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes from the votes.

        Parameters
        ----------
        X : Table, data frame, array or dict of columns
            Columns are found by name, in any order, where they have names.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        values = row_values(X, self._used_names)
        if values is not None:
            return self._row_proba(values)
        encoded = self.encode(X)
        scores = np.zeros((encoded.shape[1], len(self.classes)))
        self.add_votes(encoded, scores)
        return self.shares_of(scores)

    @cached_property
    def _row(self) -> tuple[RowEncoder, RowVotes]:
        return RowEncoder(self.columns, self._used), RowVotes(self)

    def _row_proba(self, values: list[Any]) -> FloatArray:
        """Class probabilities of one row, given the values of the columns that are used."""
        encoder, lists = self._row
        # Added up member by member, as for many rows.
        sums = np.add.accumulate(lists.votes(encoder.encode(values)), axis=0)[-1:]
        return self.shares_of(sums)

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say which rectangles decided each row for its class, the purest first."""
        table = read_used(X, list(self._column_of), self._used_names)
        best = self.predict_proba(table).argmax(axis=1).tolist()
        path = self.decision_path(table)
        purity = [
            cover.counts / np.maximum(cover.counts.sum(axis=1, keepdims=True), 1) for cover in self.covers
        ]
        reasons = []
        for i, j in enumerate(best):
            decided = dict.fromkeys(zip(path.cover[i].tolist(), path.rectangle[i].tolist(), strict=True))
            voters = [(c, r) for c, r in decided if c >= 0 and self.covers[c].class_index == j]
            voters.sort(key=lambda at: -float(purity[at[0]][at[1], j]))
            reasons.append([self.covers[c].describe_rectangle(r) for c, r in voters[:n]])
        return reasons

    def shares_of(self, scores: FloatArray) -> FloatArray:
        """Turn sums of votes, rows by classes, into probabilities, in place."""
        if self.shared_votes:
            scores *= scores
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def decision_path(self, X: Any) -> DecisionPath:
        """Return which rectangle decided each row in each member."""
        encoded, packed = self.encode(X), self.packed
        shape = (encoded.shape[1], len(self.members))
        path = DecisionPath(np.full(shape, -1), np.full(shape, -1), np.zeros(shape, dtype=bool))
        for start, block in _blocks(encoded):
            rows = slice(start, start + block.shape[1])
            for m, member in enumerate(self.members):
                if member:
                    decided, path.inside[rows, m] = packed.decide(m, block)
                    cover = np.searchsorted(packed.rectangle_starts, decided, side="right") - 1
                    path.cover[rows, m] = cover
                    path.rectangle[rows, m] = decided - packed.rectangle_starts[cover]
        return path

    def bins(self, X: Any, cover: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Bins of every row along x and y of one cover, and whether the row is within the limits of both."""
        encoded, packed, drawn = self.encode(X), self.packed, self.covers[cover]
        places = np.empty((encoded.shape[1], 2), dtype=np.int64)
        inside = np.ones(encoded.shape[1], dtype=bool)
        for a in range(2):
            axis = 2 * cover + a
            total = packed.project(axis, encoded)
            low, high = drawn.limits[2 * a : 2 * a + 2]
            inside &= (total >= low) & (total <= high)
            places[:, a] = np.clip((total - packed.origins[axis]) * packed.scales[axis], 0, drawn.n_bins - 1)
        return places, inside


def axis_text(axis: tuple[tuple[str, int], ...]) -> str:
    """Write an axis as a weighted sum.

    >>> axis_text((("age", 1), ("size", -2)))
    'age - 2 size'
    """
    text = " ".join(
        f"{'+' if weight > 0 else '-'} {'' if abs(weight) == 1 else f'{abs(weight)} '}{name}"
        for name, weight in axis
    )
    return text.removeprefix("+ ")


def _blocks(encoded: SingleArray) -> Iterator[tuple[int, SingleArray]]:
    for start in range(0, encoded.shape[1], _BLOCK):
        yield start, np.ascontiguousarray(encoded[:, start : start + _BLOCK])
