"""What a report found, in a few sentences: for the top of the page, the terminal and the JSON summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from damier.report.words import class_names, number, percent, shortened, some_of

# Parts of fewer rows make no headline, unless there is no other.
_LEAST_SHARE = 0.01
_LONGEST = 60
# Of fewer rows of a class little can be said; a table of few rows is not reproached with it.
_RARE, _FEW_ROWS = 10, 200
_LEAKS = ("copy", "near copy", "same order")


def sentences(summary: Mapping[str, Any]) -> list[str]:
    """Say what informs the target, what the strongest variable says, and what all know together.

    Parameters
    ----------
    summary : mapping
        As `damier.report.summarize` lays it out.

    Returns
    -------
    list of str
        One sentence each, the most important first.

    Examples
    --------
    >>> young = {"label": "x ≤ 12", "rows": 60, "counts": [24, 36]}
    >>> table = [young, {"label": "x > 12", "rows": 40, "counts": [36, 4]}]
    >>> variable = {"name": "age", "type": "numeric", "parts": 2, "level": 0.2, "odd": None, "table": table}
    >>> data = {"rows": 100, "variables": 3, "informative": 1}
    >>> target = {"name": "churn", "classes": ["no", "yes"], "counts": [60, 40]}
    >>> for said in sentences({"dataset": data, "target": target, "variables": [variable]}):
    ...     print(said)
    1 of 3 variables informs churn.
    age says most: where age ≤ 12, 60% are yes; where age > 12, 10% are (all rows: 40%).
    """
    return list(_sentences(summary))


def _sentences(summary: Mapping[str, Any]) -> Iterator[str]:
    target, n_variables = summary["target"]["name"], summary["dataset"]["variables"]
    informing = [v for v in summary["variables"] if v["parts"] > 1]
    if informing:
        verb = "informs" if len(informing) == 1 else "inform"
        yield f"{len(informing):,} of {n_variables:,} variables {verb} {target}."
    elif n_variables > 1:
        yield f"None of {n_variables:,} variables informs {target} by itself."
    else:
        yield f"The variable does not inform {target}."
    leaks = [v["name"] for v in informing if v.get("odd") in _LEAKS]
    if leaks:
        repeat, it, they_are = (
            ("repeats", "it", "it is") if len(leaks) == 1 else ("repeat", "them", "they are")
        )
        yield (
            f"{some_of(leaks)} all but {repeat} {target}: leave {it} out if {they_are} known only afterwards."
        )
    if said := strongest_says(summary):
        yield said
    following = [shortened(v["name"], _LONGEST) for v in informing if v.get("odd") not in _LEAKS][1:4]
    if following:
        yield f"Next {'come' if len(following) > 1 else 'comes'} {_and(following)}."
    yield from _together(summary)
    if said := best_tenth(summary):
        yield said


def strongest_says(summary: Mapping[str, Any]) -> str:
    """Say what the strongest variable says that does not all but repeat the target; "" if there is none."""
    others = ""
    for variable in summary["variables"]:
        if variable["parts"] > 1 and variable.get("odd") not in _LEAKS:
            says = _number_says if summary["target"].get("type") == "number" else _classes_say
            return f"{others}{shortened(variable['name'], _LONGEST)} says most: {says(summary, variable)}."
        others = "Of the others, "
    return ""


def _classes_say(summary: Mapping[str, Any], variable: Mapping[str, Any]) -> str:
    counts, names = summary["target"]["counts"], class_names(summary["target"]["classes"])
    names = [shortened(name.removesuffix(":"), _LONGEST) for name in names]
    rows = sum(counts)
    parts = [p for p in variable["table"] if p["rows"] >= _LEAST_SHARE * rows]
    parts = parts if len(parts) > 1 else variable["table"]
    if len(counts) == 2:
        j = rarer(counts)

        def share(part: Mapping[str, Any]) -> float:
            return float(part["counts"][j] / max(part["rows"], 1))

        parts = sorted(parts, key=share)
        low, high = parts[0], parts[-1]
        return (
            f"where {where(variable, high)}, {percent(share(high))} are {names[j]}; "
            f"where {where(variable, low)}, {percent(share(low))} are "
            f"(all rows: {percent(counts[j] / rows)})"
        )
    # Of several classes, the two parts that lead furthest from all rows, to a class each.
    led = []
    for part in parts:
        beyond = [n - part["rows"] * whole / rows for n, whole in zip(part["counts"], counts, strict=True)]
        j = max(range(len(counts)), key=lambda k: beyond[k])
        led.append((beyond[j], j, part))
    led.sort(key=lambda one: -one[0])
    chosen = [led[0], next((one for one in led[1:] if one[1] != led[0][1]), led[1])]
    return "; ".join(
        f"where {where(variable, part)}, {percent(part['counts'][j] / part['rows'])} are {names[j]} "
        f"(all rows: {percent(counts[j] / rows)})"
        for _, j, part in chosen
    )


def _number_says(summary: Mapping[str, Any], variable: Mapping[str, Any]) -> str:
    target, rows = summary["target"], summary["dataset"]["rows"]
    parts = [p for p in variable["table"] if p["rows"] >= _LEAST_SHARE * rows]
    parts = sorted(parts if len(parts) > 1 else variable["table"], key=lambda p: -p["quantiles"][3])
    high, low = parts[0], parts[-1]
    return (
        f"where {where(variable, high)}, half of the rows have a {target['name']} above "
        f"{number(high['quantiles'][3])}; where {where(variable, low)}, above {number(low['quantiles'][3])} "
        f"(all rows: {number(target['quantiles'][3])})"
    )


def _together(summary: Mapping[str, Any]) -> Iterator[str]:
    target = summary["target"]["name"]
    if scores := summary.get("classifier"):
        if not scores.get("informs", True):
            yield f"Together they predict {target} no better than its frequencies do."
            return
        said = f"Together they predict {percent(scores['accuracy'])} of the rows right"
        said += f" (always the most frequent class: {percent(scores['majority'])})"
        yield said + (f", with an AUC of {scores['auc']:.3f}." if scores["auc"] is not None else ".")
    elif scores := summary.get("regressor"):
        if not scores["informs"]:
            yield f"Together they predict {target} no better than its mean."
            return
        yield (
            f"Together they explain {percent(max(scores['r2'], 0))} of the variance of {target}; they err by "
            f"{number(scores['mae'])} on average, the plain mean by {number(scores['plain_mae'])}."
        )


def best_tenth(summary: Mapping[str, Any]) -> str:
    """Say what the best tenth holds, by scores of rows not seen; "" if not known.

    Of two classes, it is about the rarer one; of several, nothing is said.

    >>> target = {"name": "churn", "classes": ["no", "yes"], "counts": [60, 40]}
    >>> curve = {"place": 1, "captured": [0.025 * percent for percent in range(41)] + [1.0] * 60}
    >>> best_tenth({"target": target, "classifier": {"informs": True, "curves": [curve]}})
    'Of all rows with churn yes, 25% are in the tenth that scores highest: 2.5 times as many as by chance.'
    """
    target, scores = summary["target"], summary.get("classifier", {})
    if "regressor" in summary:
        return _tenth_of_number(target, summary["regressor"])
    if len(target.get("counts", ())) != 2 or not scores.get("informs", True):
        return ""
    j = rarer(target["counts"])
    for curve in scores.get("curves", ()):
        if curve["place"] == j:
            held, name = curve["captured"][10], shortened(target["classes"][j], _LONGEST)
            return (
                f"Of all rows with {target['name']} {name}, {percent(held)} are in the tenth that scores "
                f"highest: {10 * held:.1f} times as many as by chance."
            )
    return ""


def _tenth_of_number(target: Mapping[str, Any], scores: Mapping[str, Any]) -> str:
    curves = scores.get("curves")
    if curves is None or not scores["informs"]:
        return ""
    said = f"The tenth of the rows that is predicted highest has a mean of {number(curves['means'][9])}"
    said += f" (all rows: {number(target['mean'])})"
    if curves["captured"] is None:
        return f"{said}."
    return f"{said} and holds {percent(curves['captured'][10])} of the total {target['name']}."


def rarer(counts: Sequence[int]) -> int:
    """Place of the class that a report speaks of: the rarer one; of equal ones the second.

    >>> rarer([60, 40]), rarer([40, 60]), rarer([50, 50])
    (1, 0, 1)
    """
    return min(reversed(range(len(counts))), key=lambda j: counts[j])


def where(variable: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """Say which rows a part holds.

    >>> age = {"name": "age"}
    >>> where(age, {"label": "12 < x ≤ 26"}), where(age, {"label": "missing or x ≤ 3"})
    ('12 < age ≤ 26', 'age ≤ 3 or missing')
    >>> where({"name": "plan"}, {"label": "a, b", "values": ["a", "b"], "n_values": 2})
    'plan is one of a, b'
    """
    name, label = shortened(variable["name"], _LONGEST), part["label"]
    if "values" in part:
        return f"{name} is {'one of ' if part['n_values'] > 1 else ''}{shortened(label, _LONGEST)}"
    if label.startswith("missing or "):
        return f"{where(variable, {'label': label.removeprefix('missing or ')})} or missing"
    words = label.split(" ")
    if "x" in words:
        return " ".join(name if word == "x" else word for word in words)
    return f"{name} {'in' if label[:1] in '][' else 'is'} {label}"


def rare_classes(target: Mapping[str, Any]) -> list[str]:
    """Warn of classes with so few rows that little can be said of them.

    >>> rare_classes({"name": "kind", "classes": ["a", "b"], "counts": [500, 4]})
    ['b: 4 rows of this class only, too few to say much of it']
    """
    rare = [(name, n) for name, n in zip(target["classes"], target["counts"], strict=True) if n < _RARE]
    if not rare or sum(target["counts"]) < _FEW_ROWS:
        return []
    if len(rare) == 1:
        name, n = rare[0]
        rows = f"{n} row{'' if n == 1 else 's'}"
        return [f"{shortened(name, _LONGEST)}: {rows} of this class only, too few to say much of it"]
    names = some_of([name for name, _ in rare])
    return [f"{len(rare):,} classes have fewer than {_RARE} rows, too few to say much of them: {names}"]


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
