"""What a report says of the best grid and of the pairs in the lines of a terminal, and what it shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from damier.intake.printable import printable

MAX_RULES = 200


def cut_short(summary: Mapping[str, Any]) -> str:
    """Say which of the searches for a grid and for pairs did not come to their end; nothing if both did."""
    ended = summary.get("ended", {})
    sections = [one for one in ("grid", "pairs") if ended.get(one, "complete") != "complete"]
    if not sections:
        return ""
    words = {"grid": "a grid", "pairs": "pairs"}
    if (pairs := summary.get("pairs")) is not None:
        words["pairs"] += f" ({pairs['done']:,} of {pairs['pairs']:,} done)"
    by_hand = any(ended[one] == "interrupted" for one in sections)
    searches = " and for ".join(words[one] for one in sections)
    sentence = f"{'Ctrl-C' if by_hand else 'Time'} ended the search for {searches}"
    if by_hand:
        return sentence + "."
    longer = max(20, round(6 * summary.get("grid_seconds", 10)))
    return f"{sentence}: --grid {longer} (grid_seconds={longer} in Python) gives it more."


def pair_text(pair: Mapping[str, Any]) -> str:
    """Say what a pair explains; the figures add up as they are shown."""
    together, first, second = (round(pair[key], 4) for key in ("level", "first_level", "second_level"))
    gain = together - first - second
    return f"level {together:.4f}: {first:.4f} and {second:.4f} alone, {gain:.4f} more together"


def grid_lines(summary: Mapping[str, Any]) -> list[Text]:
    """Say in a line or two what the best grid and the best pair are; nothing when they were not sought."""
    said = []
    grid = summary.get("grid")
    if grid is not None and not grid["variables"]:
        said.append(Text("no grid over several variables informs more than none"))
    elif grid is not None:
        crossed = " x ".join(f"{v['name']} ({v['parts']:,})" for v in grid["variables"])
        line = Text("best grid: ").append(printable(crossed), style="bold")
        line.append(f", level {grid['level']:.4f}, {grid['cells']:,} cells ")
        line.append(f"(choosing {len(grid['variables'])} ")
        said.append(line.append(f"of {grid['on_offer']:,} variables costs {grid['choice_level']:.4f} of it)"))
    for pair in summary.get("pairs", {"gaining": []})["gaining"][:1]:
        names = printable(f"{pair['first']} x {pair['second']}")
        line = Text("strongest interaction: ").append(names, style="bold")
        said.append(line.append(f", {pair_text(pair)}{sampled_text(summary['pairs'])}"))
    if words := cut_short(summary):
        said.append(Text(words, style="yellow"))
    return said


def sampled_text(section: Mapping[str, Any]) -> str:
    """Say on how many rows something was measured, where not on all.

    >>> sampled_text({"rows": 20_000, "of_rows": 50_000}), sampled_text({"rows": 9, "of_rows": 9})
    (' (measured on 20,000 of 50,000 rows)', '')
    """
    rows, of_rows = section.get("rows", 0), section.get("of_rows", 0)
    return f" (measured on {rows:,} of {of_rows:,} rows)" if rows < of_rows else ""
