"""``damier report`` over a folder of files as they come: how each was read, what was said, time, score, page.

    python -m benchmarks.real_files FOLDER
    python -m benchmarks.real_files FOLDER --targets targets.toml   # lines such as "titanic.csv" = "survived"

The target of a file is the one the TOML names, else the first column called target, class, label, y or
outcome, else the last one. A file that is refused shows the sentence it was refused with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.records import Record

SUFFIXES = (".csv", ".tsv", ".gz", ".zst", ".parquet", ".feather", ".xlsx")
USUAL_TARGETS = ("target", "class", "label", "y", "outcome")
# Runs one report and prints its CPU seconds last, those of compiling included in the first.
PROGRAM = """
import sys, time
from damier.cli import app
try:
    app(prog_name="damier", standalone_mode=False, args=sys.argv[1:])
finally:
    print(f"cpu {time.process_time():.2f}", file=sys.stderr)
"""


def guess_target(path: Path) -> str:
    """Name the column that is most likely the target."""
    from damier.intake import read_file

    names = read_file(path).names
    lowered = {name.lower().strip(): name for name in reversed(names)}
    return next((lowered[usual] for usual in USUAL_TARGETS if usual in lowered), names[-1])


def report(path: Path, target: str | None, grid: float) -> list[str]:
    """Report on one file in a process of its own; return the cells of its row."""
    try:
        target = target or guess_target(path)
    except (ValueError, OSError, ImportError) as error:
        return [path.name, "", "refused", str(error), "", "", ""]
    with tempfile.TemporaryDirectory() as folder:
        page, numbers = Path(folder) / "page.html", Path(folder) / "numbers.json"
        asked = ["report", str(path), "-t", target, "-o", str(page), "--json", str(numbers)]
        asked += ["--grid", str(grid), "--no-progress"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *asked], capture_output=True, text=True, check=False
        )
        said = [line for line in done.stderr.splitlines() if line.strip()]
        seconds = next((line.split()[1] for line in reversed(said) if line.startswith("cpu ")), "")
        notes = [line.removeprefix("Note: ") for line in said if line.startswith("Note: ")]
        if not numbers.exists():
            refused = next(
                (line.removeprefix("Error: ") for line in said if line.startswith("Error")), "failed"
            )
            return [path.name, target, "refused", refused, seconds, "", ""]
        summary = json.loads(numbers.read_text(encoding="utf-8"))
        return [
            path.name,
            target,
            _read_as(summary),
            f"{len(notes)}: {notes[0]}" if notes else "",
            seconds,
            _score(summary),
            f"{page.stat().st_size / 1024:.0f} kB",
        ]


def _read_as(summary: dict[str, Any]) -> str:
    data = summary["dataset"]
    return f"{data['rows']:,} rows, {data['numeric']} numeric, {data['categorical']} categorical"


def _score(summary: dict[str, Any]) -> str:
    scores = summary.get("classifier")
    if scores is None:
        return ""
    area = "" if scores["auc"] is None else f"AUC {scores['auc']:.3f}, "
    return f"{area}accuracy {scores['accuracy']:.3f} ({scores['majority']:.3f})"


def main() -> None:
    """Report on every file of the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", type=Path, help="TOML file: name of a file = name of its target")
    parser.add_argument("--grid", type=float, default=3.0, help="seconds for grid and pairs")
    options = parser.parse_args()
    targets = tomllib.loads(options.targets.read_text(encoding="utf-8")) if options.targets else {}
    files = sorted(path for path in options.folder.iterdir() if path.suffix.lower() in SUFFIXES)
    rows = []
    for path in files:
        rows.append(report(path, targets.get(path.name), options.grid))
        print(*rows[-1], sep=" | ", flush=True)
    Record("real_files").table(
        "Reports on files as they come",
        ["file", "target", "read as", "notes", "CPU seconds", "score (most frequent class)", "page"],
        rows,
    )


if __name__ == "__main__":
    main()
