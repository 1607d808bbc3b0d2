"""Class shares along a number, averaged over all its partitions: the curve behind the bars of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.intake import Table, Target
from damier.models import IntervalPartition, Partition
from damier.report.classes import ShownClasses
from damier.report.sentences import rarer
from damier.search.run import Run

# Variables that have a curve, the strongest ones: each takes some hundredths of a second.
MAX_CURVES = 100
_HEIGHT = 60
_TOPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def share_curves(
    table: Table,
    target: Target,
    partitions: Mapping[str, Partition],
    columns: Mapping[str, Mapping[str, Any]],
    classes: ShownClasses,
    *,
    run: Run,
) -> dict[str, dict[str, Any]]:
    """Average the class shares of the strongest numeric variables over all their partitions.

    Parameters
    ----------
    table, target
        The rows.
    partitions : mapping of str to Partition
        The best partition of each column.
    columns : mapping of str to mapping
        What `damier.report.columns.describe_column` says of each, below ``statistics``.
    classes : ShownClasses
        Those that the page shows.
    run : Run
        Columns are shared among its threads.

    Returns
    -------
    dict
        Name -> ``{"places": [class, ...], "shares": [[share, ...], ...]}``: shares of each class in the
        middle of each bin of the histogram. Of two classes the rarer one is there alone, with the limits
        ``low`` and ``high`` of 90% certainty.
    """
    from damier.fit.averaged import averaged_evidence

    drawn = [
        name
        for name, partition in partitions.items()
        if partition.n_parts > 1
        and isinstance(partition, IntervalPartition)
        and "histogram" in columns[name]["statistics"]
    ]
    drawn = sorted(drawn, key=lambda name: -partitions[name].level)[:MAX_CURVES]
    places = [rarer(classes.counts)] if len(classes.counts) == 2 else classes.places

    def curve(name: str) -> dict[str, Any]:
        strip = columns[name]["statistics"]["histogram"]
        averaged = averaged_evidence(table[name], target, partitions[name]).variable.averaged
        assert averaged is not None
        elements = averaged.elements
        assert isinstance(elements, IntervalPartition)
        bounds = np.array(elements.bounds)
        edges = np.linspace(strip["low"], strip["high"], len(strip["counts"]) + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        # Missing values are an element before all others.
        first = elements.n_parts - bounds.size - 1
        at = first + np.searchsorted(bounds, middles, side="left")
        known = list(averaged.curve(0.9, "dict").values())

        def of(kind: int, j: int) -> list[float]:
            return [round(share, 4) for share in np.asarray(known[2 + 3 * j + kind])[at].tolist()]

        found: dict[str, Any] = {"places": places, "shares": [of(0, j) for j in places]}
        return found if len(places) > 1 else {**found, "low": of(1, places[0]), "high": of(2, places[0])}

    return dict(zip(drawn, run.map(curve, drawn, text="Averaging"), strict=True))


def curve_view(variable: Mapping[str, Any], classes: ShownClasses) -> list[dict[str, Any]]:
    """Draw the curve of a variable: a line per class, of two classes each with its band and its own scale."""
    curve = variable.get("curve")
    if curve is None:
        return []
    if "low" not in curve:
        top = _top(max(map(max, curve["shares"])))
        plain = {"name": None, "off": False, "top": top, "band": None}
        return [
            {**plain, "colour": classes.colours[classes.places.index(j)], "line": _line(shares, top)}
            for j, shares in zip(curve["places"], curve["shares"], strict=True)
        ]
    place, (shares,), low, high = curve["places"][0], curve["shares"], curve["low"], curve["high"]
    views = []
    for j in (place, 1 - place):
        if j != place:
            shares, low, high = ([1 - share for share in those] for those in (shares, high, low))
        top = _top(max(high))
        views.append(
            {
                "colour": classes.colours[j],
                "name": classes.labels[j],
                "off": j != place,
                "top": top,
                "line": _line(shares, top),
                "band": _band(low, high, top),
            }
        )
    return views


def _top(share: float) -> float:
    """Choose where the scale ends."""
    return next(top for top in _TOPS if share <= top or top == 1.0)


def _points(shares: Sequence[float], top: float) -> list[str]:
    """Place a curve: it goes through the middles of the bins, and on to both ends."""
    places = [0.0, *(k + 0.5 for k in range(len(shares))), float(len(shares))]
    ends = [shares[0], *shares, shares[-1]]
    return [f"{x:g} {_HEIGHT * (1 - y / top):.3g}" for x, y in zip(places, ends, strict=True)]


def _line(shares: Sequence[float], top: float) -> str:
    return "M" + "L".join(_points(shares, top))


def _band(low: Sequence[float], high: Sequence[float], top: float) -> str:
    return "M" + "L".join(_points(high, top) + _points(low, top)[::-1]) + "z"
