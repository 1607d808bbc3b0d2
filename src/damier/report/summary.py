"""Partitions turned into one plain dict, from which every report is written.

The dict holds strings, numbers, booleans, lists and None only, so it is JSON as it stands::

    {"format": "damier-report/1", "damier": version,
     "dataset":   {"name", "rows", "variables", "numeric", "categorical", "informative", "missing"},
     "target":    {"name", "classes": [label, ...], "counts": [rows, ...]},
     "words":     [what was found, a sentence each, ...],
     "notes":     [how the file was read, ...], "remarks": [what is odd about a variable, ...],
     "variables": [{"name", "type", "parts", "level", "missing", "cost", "null_cost", "optimal", "bounds",
                    "statistics": {"distinct", "minimum", "median", "maximum", "histogram"}, "odd",
                    "cuts" or "merges": see damier.report.measures.merging,
                    "curve": see damier.report.along.share_curves,
                    "table": [{"label", "rows", "counts": [rows of each class, ...]}, ...]}, ...],
     "grid", "pairs": see damier.report.grid,
     "ended": {section: "complete" | "time limit" | "interrupted", ...},
     "classifier": {"accuracy", "auc", "log_loss", "majority", "prior_log_loss", "folds", "rows", "of_rows",
                    "informs", "weights": [{"name", "weight"}, ...], "pairs": [[name, name], ...]}}

The classifier is there when it was scored, the grid and the pairs when they were sought, the statistics and
what is odd ("copy", "near copy", "identifier", "free text", "constant") when the columns were given.
Intervals have ``bounds``; the parts of a categorical variable hold their ``values`` (the first `MAX_VALUES`)
and ``n_values``, and its statistics the values that are most ``frequent``. Costs are in nats.
Variables come by falling level, and those of equal level in the order of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from damier.report.columns import remarks
from damier.report.measures import merging
from damier.report.sentences import rare_classes, sentences
from damier.report.words import LabelStyle, part_labels, typical_first

FORMAT = "damier-report/1"
MAX_VALUES = 100
# An AUC this near 0.5, with a log-loss no better than that of the class frequencies, is chance.
_CHANCE = 0.55
Summary = dict[str, Any]


class Partition(Protocol):
    """What a report asks of a partition."""

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    @property
    def counts(self) -> npt.NDArray[Any]:
        """Rows of each class (columns) in each part (rows)."""

    @property
    def classes(self) -> Any:
        """The classes, in the order of the columns of ``counts``."""

    @property
    def labels(self) -> Sequence[str]:
        """The parts in readable words."""

    @property
    def level(self) -> float:
        """Share of the null cost that the partition saves."""

    @property
    def cost(self) -> float:
        """Cost of the partition, in nats."""

    @property
    def null_cost(self) -> float:
        """Cost of a single part, in nats."""

    @property
    def optimal(self) -> bool:
        """Whether the partition is proven to be the cheapest."""


def summarize(
    partitions: Mapping[str, Partition],
    *,
    dataset: str = "table",
    target: str = "target",
    missing: Mapping[str, int] | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    labels: LabelStyle = "plain",
    classifier: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    pairs: Mapping[str, Any] | None = None,
) -> Summary:
    """Describe fitted partitions of one target as a plain dict.

    Parameters
    ----------
    partitions : mapping of str to partition
        The partition of each variable, as in ``MODLEncoder.partitions_``.
    dataset, target : str
        What to call the data and the target.
    missing : mapping of str to int, optional
        Number of rows without a value, by variable; 0 where not given.
    columns : mapping of str to mapping, optional
        By variable, its ``statistics`` and what is ``odd`` about it (see `damier.report.columns`).
    notes : sequence of str
        How the table was read, one sentence each.
    labels : {"plain", "brackets"}
        Intervals written ``12 < x ≤ 26`` or ``]12, 26]``.
    classifier : mapping, optional
        Cross-validated scores of the averaged naive Bayes, and the weights of its variables by name.
    grid, pairs : mapping, optional
        The best grid and the pairs that interact, as `damier.report.summarize_grid` and
        `damier.report.summarize_pairs` describe them.

    Returns
    -------
    dict
        The summary, as laid out at the top of this module.
    """
    if not partitions:
        raise ValueError("there is no variable to report on: the table has no column beside the target")
    missing, columns = missing or {}, columns or {}
    variables = [
        _variable(name, p, int(missing.get(name, 0)), columns.get(name, {}), labels)
        for name, p in partitions.items()
    ]
    variables.sort(key=lambda v: -v["level"])  # stable: ties stay in the order of the data
    any_partition = next(iter(partitions.values()))
    class_counts = np.asarray(any_partition.counts).sum(axis=0)
    summary: Summary = {
        "format": FORMAT,
        "damier": version(),
        "dataset": {
            "name": str(dataset),
            "rows": int(class_counts.sum()),
            "variables": len(variables),
            "numeric": sum(v["type"] != "categorical" for v in variables),
            "categorical": sum(v["type"] == "categorical" for v in variables),
            "informative": sum(v["parts"] > 1 for v in variables),
            "missing": sum(v["missing"] for v in variables),
        },
        "target": {
            "name": str(target),
            "classes": [str(label) for label in any_partition.classes],
            "counts": [int(n) for n in class_counts],
        },
        "notes": [str(note) for note in notes],
        "remarks": remarks(variables, str(target), int(class_counts.sum())),
        "variables": variables,
    }
    if classifier is not None:
        summary["classifier"] = _classifier(classifier)
    if grid is not None:
        summary["grid"] = dict(grid)
    if pairs is not None:
        summary["pairs"] = dict(pairs)
    summary["remarks"] += rare_classes(summary["target"])
    summary["words"] = sentences(summary)
    return summary


def _classifier(scores: Mapping[str, Any]) -> dict[str, Any]:
    weights = sorted(scores["weights"].items(), key=lambda item: -item[1])
    better = scores["log_loss"] < scores["prior_log_loss"] or scores["auc"] > _CHANCE
    return {
        **{key: value for key, value in scores.items() if key != "weights"},
        "informs": bool(better and (scores.get("pairs") or any(w > 0 for _, w in weights))),
        "weights": [{"name": str(name), "weight": round(float(w), 6)} for name, w in weights if w > 0],
    }


def version() -> str:
    """Return the version of this library."""
    from damier.version import __version__

    return __version__


def _variable(
    name: str, partition: Partition, missing: int, column: Mapping[str, Any], style: LabelStyle
) -> dict[str, Any]:
    labels = part_labels(partition, column.get("statistics"), style)
    counts = np.asarray(partition.counts)
    table: list[dict[str, Any]] = [
        {"label": str(label), "rows": int(row.sum()), "counts": [int(n) for n in row]}
        for label, row in zip(labels, counts, strict=True)
    ]
    groups = typical_first(partition, column.get("statistics")) if hasattr(partition, "groups") else ()
    for part, values in zip(table, groups, strict=False):
        part["values"] = [json_value(value) for value in values[:MAX_VALUES]]
        part["n_values"] = len(values)
    return {
        "name": str(name),
        "type": type_of(partition),
        "parts": int(partition.n_parts),
        "level": finite(partition.level),
        "missing": missing,
        "cost": finite(partition.cost),
        "null_cost": finite(partition.null_cost),
        "optimal": bool(partition.optimal),
        **({"bounds": [_bound(b) for b in partition.bounds]} if hasattr(partition, "bounds") else {}),
        **merging(partition),
        **column,
        "table": table,
    }


def _bound(bound: float) -> float | str:
    return float(bound) if math.isfinite(bound) else str(bound)


def type_of(partition: Partition) -> str:
    """Name the type of a partition's variable: categorical, numeric, or what its numbers stand for."""
    if not hasattr(partition, "bounds"):
        return "categorical"
    kind = getattr(partition, "kind", "number")
    return "numeric" if kind == "number" else str(kind)


def json_value(value: Any) -> Any:
    """Take a category as JSON has it."""
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)


def finite(value: float) -> float:
    """Keep JSON strict: it knows no NaN and no infinity."""
    number = float(value)
    return number if math.isfinite(number) else 0.0
