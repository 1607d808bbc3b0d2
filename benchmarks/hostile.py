"""Hostile inputs by the thousand: odd tables, damaged files and models, payloads, commands, signals.

    python -m benchmarks.hostile --n 100000

prints the cases tried and the failures, by kind. The generators are those of ``tests/hostile``; a failure is
had again by its kind and seed. A case fails where an error is not a sentence of ours, where a warning is not
ours, where an input is lost or a file is left behind, and where answers depend on the order of the rows, the
number of threads, the library of the frame or the names of the classes.
"""

from __future__ import annotations

import argparse
import collections
import time

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
    """Try the cases of all kinds, or of those named."""
    n_tried = n_failed = 0
    for kind in options.kinds or KINDS:
        n = (options.n // 10 if options.quick else options.n) * SHARES[kind] // 1000
        began = time.process_time()
        failures = attack(kind, n, options.first)
        failed = sum(map(len, failures.values()))
        seconds = round(time.process_time() - began)
        record.row(
            TITLE, ["kind", "cases", "failures", "CPU seconds"], [kind, f"{n:,}", f"{failed:,}", seconds]
        )
        for what, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
            record.say(f"    {len(seeds):6,}  seeds {seeds[:3]}  {what}")
        n_tried, n_failed = n_tried + n, n_failed + failed
    record.close(TITLE, f"{n_tried:,} cases, {n_failed:,} failures.")


if __name__ == "__main__":
    run(
        "hostile",
        __doc__,
        {"all": attack_all},
        {
            "--n": {"type": int, "default": 100_000, "help": "cases of all kinds"},
            "--first": {"type": int, "default": 0, "help": "seed of the first case of each kind"},
            "--kinds": {"nargs": "+", "choices": list(KINDS), "help": "only these kinds"},
        },
    )
