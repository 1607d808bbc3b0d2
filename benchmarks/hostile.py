"""Hostile inputs by the thousand: odd tables, damaged files and models, payloads, escapes, signals.

``python -m benchmarks.hostile --n 100000`` prints the cases tried and the failures, by kind. The generators
are those of ``tests/hostile``; a failure is had again by its kind and seed.
"""

from __future__ import annotations

import argparse
import collections
import time

from tests.hostile.generators import KINDS

# Cases of each kind, of a thousand: an interrupted process takes as long as hundreds of the others.
SHARES = {"tables": 320, "files": 200, "models": 350, "pages": 50, "terminal": 79, "signals": 1}


def main() -> int:
    """Try the cases; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5000, help="cases in all")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case of each kind")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    options = parser.parse_args()
    failed = False
    for kind, attempt in KINDS.items():
        if options.kind not in (None, kind):
            continue
        n = options.n if options.kind else options.n * SHARES[kind] // 1000
        failures: dict[str, list[int]] = collections.defaultdict(list)
        began = time.process_time()
        for seed in range(options.first, options.first + n):
            try:
                attempt(seed)
            except Exception as error:
                failures[f"{type(error).__name__}: {str(error)[:160]!r}"].append(seed)
        spent = time.process_time() - began
        print(
            f"{kind:10} {n:8,} cases  {sum(map(len, failures.values())):6,} failures  {spent:8.1f} CPU s",
            flush=True,
        )
        for what, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
            print(f"    {len(seeds):6,}  seeds {seeds[:3]}  {what}", flush=True)
        failed |= bool(failures)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
