"""What a model of all variables is worth: curves by class, and the section of the page on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from damier.report.classes import shown_classes
from damier.report.grid import sampled_text
from damier.report.pairs import default_class

# The curves' own units.
SIDE = 240
_TOP = 10


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
    """Lay out the scores and the curves; None where no classifier was scored."""
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
        "side": SIDE,
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
    """Return the curves for the script, by the places of the page's classes."""
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
