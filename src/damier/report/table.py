"""The summary as a table for a terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from damier.intake.printable import printable
from damier.report.sentences import best_tenth, strongest_says
from damier.report.summary import Summary
from damier.report.words import number

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def variables_table(summary: Summary, *, limit: int | None = 40) -> Table:
    """Show the variables of a summary by level: type, parts, level, missing.

    Parameters
    ----------
    summary : dict
        As `damier.report.summarize` makes it.
    limit : int or None, default=40
        The most variables shown; None shows all.

    Returns
    -------
    rich.table.Table
        To be printed by a `rich.console.Console`.
    """
    data, target, variables = summary["dataset"], summary["target"], summary["variables"]
    table = Table(
        title=Text(printable(f"{data['name']}: what explains {target['name']}")),
        caption=_caption(summary),
        title_justify="left",
        caption_justify="left",
        header_style="bold",
        pad_edge=False,
        box=None,
    )
    table.add_column("variable", overflow="fold", max_width=40)
    table.add_column("type", no_wrap=True)
    table.add_column("parts", justify="right", no_wrap=True)
    table.add_column("level", no_wrap=True)
    of_number = target.get("type") == "number"
    if of_number:
        table.add_column("median", no_wrap=True)
    table.add_column("missing", justify="right", no_wrap=True)
    most = max((v["level"] for v in variables), default=0.0)
    for variable in variables[:limit]:
        style = "" if variable["parts"] > 1 else "dim"
        table.add_row(
            # Text, not str: a name may hold what rich would read as markup
            Text(printable(variable["name"])),
            variable["type"],
            f"{variable['parts']:,}",
            f"{variable['level']:.4f} {_bar(variable['level'], most, 6 if of_number else 12)}",
            *([_medians(variable)] if of_number else []),
            _missing(variable["missing"], data["rows"]),
            style=style,
        )
    return table


def classifier_line(summary: Summary) -> Text | None:
    """Say in one line how well the variables predict together; None when that was not scored."""
    scores = summary.get("classifier")
    if scores is None:
        return None
    said = Text("averaged naive Bayes, ")
    if n_pairs := len(scores.get("pairs", ())):
        said.append(f"with {n_pairs:,} pair{'s' if n_pairs > 1 else ''} of variables, ")
    said.append(f"{scores['folds']}-fold")
    if scores.get("of_rows", 0) > scores["rows"]:
        said.append(f" on {scores['rows']:,} of {scores['of_rows']:,} rows, rare classes kept")
    said.append(": ")
    if not scores.get("informs", True):
        said.append("predicts no better than the class frequencies", style="bold")
        said.append(f" (log-loss {scores['log_loss']:.3f} against {scores['prior_log_loss']:.3f})")
        return said
    said.append(f"accuracy {scores['accuracy']:.1%}", style="bold")
    said.append(f" (most frequent class {scores['majority']:.1%})")
    if scores["auc"] is not None:
        said.append(", ").append(f"AUC {scores['auc']:.3f}", style="bold")
    said.append(", ").append(f"log-loss {scores['log_loss']:.3f}", style="bold")
    said.append(f" (class frequencies alone {scores['prior_log_loss']:.3f}; lower is better)")
    return said


def regressor_line(summary: Summary) -> Text | None:
    """Say in one line how well the variables predict a number together; None when that was not scored."""
    scores = summary.get("regressor")
    if scores is None:
        return None
    said = Text("averaged naive Bayes, ").append(f"{scores['folds']}-fold")
    if scores["of_rows"] > scores["rows"]:
        said.append(f" on {scores['rows']:,} of {scores['of_rows']:,} rows")
    said.append(": ")
    if not scores["informs"]:
        said.append("predicts no better than the mean", style="bold")
        return said.append(f" (R2 {scores['r2']:.3f})")
    said.append(f"R2 {scores['r2']:.3f}", style="bold").append(" (plain mean 0), ")
    said.append(f"mean absolute error {number(scores['mae'])}", style="bold")
    said.append(f" (plain mean {number(scores['plain_mae'])}), ")
    said.append(f"90% intervals cover {scores['coverage']:.1%}", style="bold")
    said.append(f" at a width of {number(scores['width'])} (one interval for all rows ")
    return said.append(f"{scores['plain_coverage']:.1%} at {number(scores['plain_width'])})")


def _medians(variable: dict[str, Any]) -> str:
    """Write the least and the greatest median of a number in the parts of a variable."""
    medians = [part["quantiles"][3] for part in variable["table"]]
    return f"{number(min(medians))} to {number(max(medians))}" if len(medians) > 1 else "-"


def remark_lines(summary: Summary) -> list[Text]:
    """Say what is odd about the variables, one line each."""
    return [Text("note: ", style="yellow").append(printable(remark)) for remark in summary.get("remarks", ())]


def word_lines(summary: Summary) -> list[Text]:
    """Say what the strongest variable says and what the best tenth holds; the table says the rest."""
    said = (strongest_says(summary), best_tenth(summary))
    return [Text(printable(line)) for line in said if line]


def _caption(summary: Summary) -> Text:
    data, target = summary["dataset"], summary["target"]
    shown = f"{data['rows']:,} rows, "
    if target.get("type") == "number":
        median = number(target["quantiles"][3])
        shown += f"{target['name']} is a number (mean {number(target['mean'])}, median {median}); "
    else:
        shown += f"{len(target['classes']):,} classes; "
    shown += f"{data['informative']:,} of {data['variables']:,} variables inform {target['name']}"
    return Text(printable(shown))


def _missing(count: Any, rows: int) -> str:
    return f"{count:,} ({count / rows:.1%})" if count and rows else "-"


def _bar(value: float, most: float, width: int) -> str:
    eighths = round(8 * width * value / most) if most > 0 else 0
    whole, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
