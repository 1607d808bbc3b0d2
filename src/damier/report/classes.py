"""Classes as a page shows them: which have a colour, their names, and bars of their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from damier.report.words import class_names, percent, shortened

MAX_CLASSES = 10
MAX_LEADING = 5


@dataclass(frozen=True)
class ShownClasses:
    """The classes that have a colour of their own; the others of many are shown together.

    Attributes
    ----------
    places : list of int
        Of the shown classes, in the order of the data.
    names : list of str
        Of all classes, such that a share may follow.
    counts : list of int
        Rows of all classes.

    Examples
    --------
    >>> shown = ShownClasses([0, 1], ["no", "yes"], [60, 40])
    >>> shown.labels, shown.colours, shown.kept([3, 1]), shown.main([3, 1])
    (['no', 'yes'], ['k0', 'k1'], [3, 1], 'no 75%, yes 25%')
    """

    places: list[int]
    names: list[str]
    counts: list[int]

    @property
    def n_others(self) -> int:
        """Number of classes without a colour of their own."""
        return len(self.counts) - len(self.places)

    @property
    def labels(self) -> list[str]:
        """Names of the shown classes, and of the others together."""
        named = [self.names[j].removesuffix(":") for j in self.places]
        return [*named, f"{self.n_others:,} other classes"] if self.n_others else named

    @property
    def colours(self) -> list[str]:
        """Style of each label."""
        return [f"k{j}" for j in range(len(self.places))] + (["ko"] if self.n_others else [])

    @property
    def options(self) -> list[tuple[str, str]]:
        """What a list of the page offers: the place of each shown class, ``o`` for the others, and labels."""
        return list(zip([*map(str, self.places), "o"], self.labels, strict=False))

    def kept(self, counts: Sequence[int]) -> list[int]:
        """Rows of each label, from those of all classes."""
        kept = [counts[j] for j in self.places]
        return [*kept, sum(counts) - sum(kept)] if self.n_others else kept

    def main(self, counts: Sequence[int]) -> str:
        """Name the commonest classes of a part, with their shares; three of many, two of few."""
        total, most = sum(counts), 3 if len(counts) > MAX_CLASSES else 2
        order = sorted(range(len(counts)), key=lambda j: (-counts[j], j))
        named = [j for j in order[:most] if counts[j]]
        return ", ".join(f"{shortened(self.names[j], 40)} {percent(counts[j] / total)}" for j in named)


def shown_classes(summary: dict[str, Any]) -> ShownClasses:
    """Choose the classes with a colour of their own: all when few.

    Of many, those that lead the most rows, in parts of the strongest variables, then the most frequent.
    """
    counts = summary["target"]["counts"]
    names = class_names(summary["target"]["classes"])
    if len(counts) <= MAX_CLASSES:
        return ShownClasses(list(range(len(counts))), names, counts)
    led = [0] * len(counts)
    for part in (part for variable in summary["variables"][:MAX_LEADING] for part in variable["table"]):
        led[part["counts"].index(max(part["counts"]))] += part["rows"]
    order = sorted(range(len(counts)), key=lambda j: (-led[j], -counts[j], j))
    return ShownClasses(sorted(order[: MAX_CLASSES - 1]), names, counts)


def class_bars(counts: Sequence[int]) -> list[tuple[int, str]]:
    """Width, in percent, of the bar of each class that occurs, each laid over the longer ones before it.

    >>> class_bars([30, 10])
    [(1, '100'), (0, '75')]
    """
    total, upto, bars = sum(counts), 0, []
    for j, count in enumerate(counts):
        upto += count
        if count:
            bars.append((j, f"{100 * upto / total:.4g}"))
    return bars[::-1]
