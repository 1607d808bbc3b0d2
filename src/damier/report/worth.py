"""What a model of all variables is worth: curves by class or of a number, and their section of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from damier.report.axis import Axis, short
from damier.report.classes import shown_classes
from damier.report.grid import sampled_text
from damier.report.pairs import FEW_VALUES, default_class
from damier.report.words import number

# The curves' own units.
SIDE = 240
_TOP = 10
_MOST_TICKS = 6


def at_top(
    summary: Mapping[str, Any], place: int, percent: int, *, cost: float = 0.0, benefit: float = 0.0
) -> dict[str, float]:
    """Say what the rows that are most probably of a class hold of it.

    Parameters
    ----------
    summary : dict
        With the curves of the class.
    place : int
        Of the class among all classes.
    percent : int
        How much of the rows is taken, from 0 to 100.
    cost, benefit : float
        What each row taken costs, and each one of the class brings.

    Returns
    -------
    dict
        ``rows`` taken, ``captured`` of them of the class, ``share`` of the class captured, ``precision``,
        the share of the class among the rows taken, ``lift``, how many times more than in all rows, and
        ``money``. As many rows as the table has are taken to be scored as those of the cross-validation.
    """
    (curve,) = (one for one in summary["classifier"]["curves"] if one["place"] == place)
    n_rows, of_class = summary["dataset"]["rows"], summary["target"]["counts"][place]
    share = curve["captured"][percent]
    rows, captured = percent * n_rows / 100, share * of_class
    return {
        "rows": rows,
        "captured": captured,
        "share": share,
        "precision": captured / rows if rows else 0.0,
        "lift": 100 * share / percent if percent else 0.0,
        "money": benefit * captured - cost * rows,
    }


def view(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Lay out the scores and the curves; None where no model was scored."""
    if "regressor" in summary:
        return _number_view(summary)
    scores = summary.get("classifier")
    if scores is None:
        return None
    classes = shown_classes(dict(summary))
    curves = {one["place"]: one for one in scores.get("curves", ())}
    place = classes.places[default_class(classes)]
    lines = [
        {
            "class": classes.labels[k],
            "of_class": classes.counts[j],
            "auc": curves[j]["auc"],
            **at_top(summary, j, _TOP),
        }
        for k, j in enumerate(classes.places)
        if j in curves
    ]
    drawn = None
    if place in curves and scores.get("informs") is not False:
        drawn = {
            "class": classes.labels[default_class(classes)],
            "auc": curves[place]["auc"],
            **draw(curves[place], classes.counts[place] / max(sum(classes.counts), 1)),
            **at_top(summary, place, _TOP),
        }
    return {
        "scores": scores,
        "sampled": sampled_text(scores),
        "lines": lines,
        "drawn": drawn,
        "look": [option for j, option in zip(classes.places, classes.options, strict=False) if j in curves],
        "first": [j for j in classes.places if j in curves].index(place) if drawn else 0,
        "top": _TOP,
    }


def draw(curve: Mapping[str, Any], base: float) -> dict[str, Any]:
    """Draw the curves of a class: paths of a square of `SIDE` units, its lower left corner at the origin.

    The curve of gains has the shares of the rows and of the class; that of ROC the shares of the other
    classes and of the class; that of calibration the probability and the share observed.
    """
    captured = curve["captured"]
    last = len(captured) - 1
    gains = [(k / last, share) for k, share in enumerate(captured)]
    roc = [((depth - base * share) / (1 - base) if base < 1 else 0.0, share) for depth, share in gains]
    points = [(one["predicted"], one["observed"], one["rows"]) for one in curve["calibration"]]
    return {
        "gains": _path(gains),
        "best": _path([(0.0, 0.0), (base, 1.0), (1.0, 1.0)]),
        "roc": _path(roc),
        "at_roc": f"{SIDE * roc[_TOP * last // 100][0]:.4g}",
        "calibration": _path([(x, y) for x, y, _ in points]),
        "points": [(f"{SIDE * x:.4g}", f"{SIDE * (1 - y):.4g}", x, y) for x, y, _ in points],
    }


def _path(points: list[tuple[float, float]]) -> str:
    held = (f"{SIDE * x:.4g} {SIDE * (1 - y):.4g}" for x, y in points)
    return "M" + "L".join(held)


def island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the curves for the script, by the places of the page's classes, or those of a number."""
    if "regressor" in summary:
        return _number_island(summary)
    scores = summary.get("classifier", {})
    if not scores.get("curves") or scores.get("informs") is False:
        return None
    classes = shown_classes(dict(summary))
    curves = {one["place"]: one for one in scores["curves"]}
    return {
        "rows": summary["dataset"]["rows"],
        "counts": [classes.counts[j] for j in classes.places],
        "curves": [
            None
            if j not in curves
            else [
                curves[j]["auc"],
                curves[j]["captured"],
                [[one["predicted"], one["observed"], one["rows"]] for one in curves[j]["calibration"]],
            ]
            for j in classes.places
        ],
    }


# ----- of a number


def number_at_top(
    summary: Mapping[str, Any], percent: int, *, cost: float = 0.0, benefit: float = 0.0
) -> dict[str, float | None]:
    """Say what the rows that are predicted highest hold of a number.

    Parameters
    ----------
    summary : dict
        With the curves of the number.
    percent : int
        How much of the rows is taken, from 0 to 100.
    cost, benefit : float
        What each row taken costs, and each unit of the number brings.

    Returns
    -------
    dict
        ``rows`` taken, ``mean`` of the number over them, the ``share`` of its total that they hold, ``lift``,
        how many times more than as many of all rows, both None where numbers are negative, and ``money``.
    """
    curves = summary["regressor"]["curves"]
    rows = percent * summary["dataset"]["rows"] / 100
    mean = curves["means"][max(percent, 1) - 1]
    share = None if curves["captured"] is None else curves["captured"][percent]
    return {
        "rows": rows,
        "mean": mean,
        "share": share,
        "lift": None if share is None else (100 * share / percent if percent else 0.0),
        "money": rows * (benefit * mean - cost),
    }


def _number_view(summary: Mapping[str, Any]) -> dict[str, Any]:
    scores = summary["regressor"]
    drawn = None
    if scores["informs"] and "curves" in scores:
        drawn = {**draw_number(scores["curves"]), **number_at_top(summary, _TOP)}
        # Very many rows equal a quantile then, and no share of them lies below it.
        drawn["continuous"] = summary["target"]["distinct"] > FEW_VALUES
    return {"scores": scores, "sampled": sampled_text(scores), "drawn": drawn, "top": _TOP}


def draw_number(curves: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the curves of a number, each in a square of `SIDE` units, with the ticks of its axes.

    The curve of gains has the shares of the rows and of the total, or the means where there is none; that of
    predictions the means of tenths of the rows, and the quantiles observed in them; that of errors the errors
    and the shares of the rows that err less; that of calibration the shares asked for and observed.
    """
    captured, bins = curves["captured"], curves["calibration"]
    means = _means_axis(curves)
    if captured is None:
        gains = [(k / 100, means.place(mean) / 100) for k, mean in enumerate(curves["means"], 1)]
    else:
        gains = [(k / 100, share) for k, share in enumerate(captured)]
    ends = [value for one in bins for value in (one["predicted"], one["quantiles"][0], one["quantiles"][-1])]
    least = min(observed for _, observed in curves["drawn"])
    both = _spread_axis(min(ends), max(ends), min(least, *ends))

    def place(value: float) -> float:
        return both.place(value) / 100

    def bars(low: int, high: int) -> str:
        return "".join(
            _path([(place(one["predicted"]), place(one["quantiles"][k])) for k in (low, high)])
            for one in bins
        )

    seen = [
        (place(x), place(y))
        for x, y in curves["drawn"]
        if both.low <= x <= both.high and both.low <= y <= both.high
    ]
    furthest = max(curves["plain_errors"][-4], curves["errors"][-4])
    errors = _spread_axis(0.0, furthest, 0.0)

    def erring(quantiles: Sequence[float]) -> str:
        at = np.linspace(0.0, 1.0, len(quantiles))
        shares = np.interp(at * errors.high, quantiles, at)
        return _path(list(zip(at.tolist(), shares.tolist(), strict=True)))

    return {
        "gains": _path(gains),
        "best": None if captured is None else _path([(k / 100, y) for k, y in enumerate(curves["best"])]),
        "gain_ticks": None if captured is not None else _ticks(means),
        "dot": f"{SIDE * (1 - gains[_TOP if captured is not None else _TOP - 1][1]):.4g}",
        "seen": "".join(f"M{SIDE * x:.3g} {SIDE * (1 - y):.3g}h0" for x, y in seen),
        "outer": bars(0, 4),
        "inner": bars(1, 3),
        "predicted": _path([(place(one["predicted"]), place(one["observed"])) for one in bins]),
        "points": [
            (
                f"{SIDE * place(one['predicted']):.4g}",
                f"{SIDE * (1 - place(one['observed'])):.4g}",
                f"{number(one['predicted'])} predicted, {number(one['observed'])} observed on average, nine "
                f"tenths {number(one['quantiles'][0])} to {number(one['quantiles'][-1])}",
            )
            for one in bins
        ],
        "ticks": _ticks(both),
        "log": both.is_log,
        "errors": erring(curves["errors"]),
        "plain_errors": erring(curves["plain_errors"]),
        "error_ticks": _ticks(errors),
        "calibration": _path([(0.0, 0.0), *map(tuple, curves["below"]), (1.0, 1.0)]),
        "below": [
            (f"{SIDE * asked:.4g}", f"{SIDE * (1 - found):.4g}", asked, found)
            for asked, found in curves["below"]
        ],
    }


def _means_axis(curves: Mapping[str, Any]) -> Axis:
    """Return the axis of the means of the rows predicted highest; it is not logarithmic."""
    low, high = min(curves["means"]), max(curves["means"])
    return _spread_axis(low, high, -math.inf)


def _spread_axis(low: float, high: float, least: float) -> Axis:
    """Make an axis, also where there is a single value."""
    if low < high:
        return Axis(low, high, least)
    apart = max(abs(low) / 10, 1e-9)
    return Axis(low - apart, low + apart, -math.inf)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Place ticks, no more than there is room for."""
    ticks = axis.ticks()
    if len(ticks) > _MOST_TICKS:
        ticks = ticks[:: -(-len(ticks) // _MOST_TICKS)]
    return [(round(SIDE * axis.place(tick) / 100, 2), short(tick)) for tick in ticks]


def _number_island(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    scores = summary["regressor"]
    if not scores["informs"] or "curves" not in scores:
        return None
    curves = scores["curves"]
    axis = _means_axis(curves)
    return {
        "rows": summary["dataset"]["rows"],
        "mean": summary["target"]["mean"],
        "means": [float(f"{mean:.6g}") for mean in curves["means"]],
        **(
            {"axis": [axis.low, axis.high]}
            if curves["captured"] is None
            else {"captured": curves["captured"]}
        ),
    }
