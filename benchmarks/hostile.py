"""Hostile inputs by the thousand: odd tables, damaged files and models, payloads, commands, signals.

    python -m benchmarks.hostile --n 100000

prints the cases tried and the failures, by kind; ``--kinds tables --part 1 4`` tries the first quarter of the
tables, and ``--record`` puts it beside the parts recorded before. The generators are those of
``tests/hostile``; a failure is had again by its kind and seed. A case fails where an error is not a sentence
of ours, where a warning is not ours, where an input is lost or a file is left behind, and where answers
depend on the order of the rows, the number of threads, the library of the frame or the names of the classes.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import os

from benchmarks.records import Record, run
from tests.hostile.generators import KINDS

# Cases of each kind, of a thousand: an interrupted process takes as long as hundreds of the others.
SHARES = {
    "tables": 300,
    "sources": 50,
    "files": 180,
    "models": 320,
    "pages": 40,
    "terminal": 49,
    "commands": 60,
    "signals": 1,
}
TITLE = "Hostile inputs"
COLUMNS = ["kind", "seeds", "cases", "failures", "CPU seconds", "date"]


def attack(kind: str, n: int, first: int) -> dict[str, list[int]]:
    """Try cases of one kind; return what failed, with the seeds."""
    failures: dict[str, list[int]] = collections.defaultdict(list)
    for seed in range(first, first + n):
        try:
            KINDS[kind](seed)
        except Exception as error:
            failures[f"{type(error).__name__}: {str(error)[:160]!r}"].append(seed)
    return failures


def attack_all(record: Record, options: argparse.Namespace) -> None:
    """Try the cases of all kinds, or of those named, or a part of each."""
    part, parts = options.part
    today = datetime.date.today().isoformat()
    tried = {}
    for kind in options.kinds or KINDS:
        n = (options.n // 10 if options.quick else options.n) * SHARES[kind] // 1000
        first, last = n * (part - 1) // parts, n * part // parts
        tried[kind] = (first, last)
        began = processor_seconds()
        failures = attack(kind, last - first, first)
        failed = sum(map(len, failures.values()))
        seconds = round(processor_seconds() - began)
        cells = [kind, f"{first:,} to {last - 1:,}", f"{last - first:,}", f"{failed:,}", seconds, today]
        record.row(TITLE, COLUMNS, cells)
        for what, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
            record.say(f"    {len(seeds):6,}  seeds {seeds[:3]}  {what}")

    def is_other(row: list[str]) -> bool:
        first, last = seeds_of(row)
        began, ended = tried.get(row[0], (0, 0))
        return last < began or first >= ended

    rows = record.merge(TITLE, COLUMNS, is_other, lambda row: (list(KINDS).index(row[0]), seeds_of(row)))
    n_tried, n_failed = (sum(int(row[i].replace(",", "")) for row in rows) for i in (2, 3))
    record.close(TITLE, f"{n_tried:,} cases, {n_failed:,} failures.")


def seeds_of(row: list[str]) -> tuple[int, int]:
    """Return the first and the last seed of a row."""
    first, _, last = row[1].replace(",", "").partition(" to ")
    return int(first), int(last)


def processor_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    run(
        "hostile",
        __doc__,
        {"all": attack_all},
        {
            "--n": {"type": int, "default": 100_000, "help": "cases of all kinds"},
            "--part": {
                "type": int,
                "nargs": 2,
                "default": (1, 1),
                "metavar": ("PART", "PARTS"),
                "help": "try one part of so many; recorded parts add up",
            },
            "--kinds": {"nargs": "+", "choices": list(KINDS), "help": "only these kinds"},
        },
    )
