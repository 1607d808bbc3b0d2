"""Commands run on odd tables, and interrupted."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy import save
from damier.deploy.json import dumps
from tests.deploy import test_mutations as spoilt
from tests.hostile.promises import OBEYED, Broken, only_our_warnings

_WORDS = [
    "x",
    "y",
    "count",
    "é",
    "",
    " ",
    "[/red]",
    "[bold]",
    "=1+1",
    "-o",
    "a,b",
    "x\ny",
    '"',
    "\x1b[2J",
    "\u202eb",
]


def _csv(chance):
    """A small table under odd names, as text; the last column has few values."""
    width = chance.randint(1, 4)
    names = [chance.choice(_WORDS) + chance.choice(["", str(j)]) for j in range(width)]
    pools = [[*_WORDS, "1", "2.5"], ["1", "2", "3.5", ""], ["u", "v", "w"], ["2020-01-01", "2021-05-03"]]
    drawn = [chance.choice(pools)[: chance.randint(1, 15)] for _ in range(width)]
    rows = [[chance.choice(pool) for pool in drawn] for _ in range(chance.choice([0, 1, 2, 12, 30]))]
    out = io.StringIO()
    csv.writer(out).writerows([names, *rows])
    return names, out.getvalue()


def try_command(seed):
    """Run a command on an odd table: exit code 0, 1 or 2, a sentence, and nothing lost."""
    chance = random.Random(seed)
    names, text = _csv(chance)
    file = chance.choice(["d.csv", "d.csv", "[b].csv", "\x1b[2J.csv", "é \u202e.csv", "=1.tsv"])
    column = lambda: chance.choice([*names, *names, *_WORDS])  # noqa: E731
    # Some outputs are the input, by its name, a link or a detour; some are no name of a file.
    inputs = [file, "link.csv", "hard.csv", f"./x/../{file}", "model.json"]
    kinds = ["o", "p", "-", file, "o", "\0", "n" * 300, "no folder/o", "x"]
    outputs = [
        chance.choice(inputs) if chance.random() < 0.3 else f"{chance.choice(kinds)}{number}"
        for number in range(3)
    ]
    command = ("report", "cocluster", "predict", "sql", "fit")[seed % 5]
    odd = chance.choice(["*.csv", "[dx].csv", "x", "no such", "pipe.csv", file * 20, "\ud800"])
    several = odd if chance.random() < 0.4 else file
    match command:
        case "report":
            words = [several, "-t", column(), "--grid", chance.choice(["0", "0", "0.05"]), "-j", "1"]
            options = [["--json", outputs[0]], ["-o", outputs[1]], ["--parts", outputs[2] + ".csv"]]
            options += [["--no-classifier"], ["--missing-target", "class"], ["--save-model", outputs[2]]]
            options += [["--target-type", chance.choice(["number", "classes"])], ["--memory", "0MB"]]
        case "cocluster":
            words = [several, "-j", "1", "--time-limit", "0.05"]
            options = [["-r", column()], ["-c", column()], ["--json", outputs[0]], ["-o", outputs[1]]]
            options += [["--labels", outputs[2] + ".csv"], ["--counts", column()], ["--clusters", "2x2"]]
        case "predict":
            words = ["model.json", several]
            options = [["-o", outputs[0] + chance.choice(["", ".csv"])], ["--explain"], ["--keep", column()]]
        case "fit":
            words = [
                several,
                "-t",
                column(),
                "-o",
                outputs[0] + chance.choice(["", ".json"]),
                "--threads",
                "1",
            ]
            options = [["--memory", chance.choice(["0", "4GB", "x"])], ["--weights", column()]]
        case _:
            words = [
                "model.json",
                "--table",
                column(),
                "-d",
                chance.choice(["duckdb", "postgres", "tsql", "x"]),
            ]
            options = [["--keep", column()], ["-o", outputs[0]], ["--note", column()], ["--what", "class"]]
    reading = [["--drop", column()], ["--only", column()], ["--separator", ";"], ["--no-header"]]
    reading += [["--encoding", chance.choice(["cp1252", "no such"])], ["--categorical", column()]]
    options += reading if command in ("report", "cocluster", "predict") else []
    for option in chance.sample(options, chance.randint(0, min(3, len(options)))):
        words += option
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(file).write_text(text, encoding="utf-8")
        model = spoilt.MODELS[chance.choice(sorted(spoilt.MODELS))]
        Path("model.json").write_text(dumps(model), encoding="utf-8")
        Path("link.csv").symlink_to(file)
        os.link(file, "hard.csv")
        os.mkfifo("pipe.csv")
        Path("x").mkdir()
        held = set(os.listdir())
        before = {name: Path(name).read_bytes() for name in held - {"pipe.csv", "x"}}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = CliRunner().invoke(app, [command, *words], env={"COLUMNS": "200"})
        only_our_warnings(caught)
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            raise Broken(f"{type(error).__name__}: {error} of {[command, *words]}") from error
        if result.exit_code not in (0, 1, 2) or "Traceback" in result.output:
            raise Broken(f"exit code {result.exit_code}: {result.output[-300:]}")
        if (
            result.exit_code
            and not (said := result.output.strip()).endswith((".", "?", ")", "'", '"'))
            and not ("╰" in said or len(said) > 20)
        ):
            raise Broken(f"not a sentence: {said!r}")
        # A query is printed as it is: for a file or a pipe, a terminal is refused.
        if (command != "sql" or result.exit_code) and (found := OBEYED.search(result.output)):
            raise Broken(f"printed {found[0]!r}")
        if command == "sql":  # reads the model alone
            before = {"model.json": before["model.json"]}
        elif command != "predict" and "model.json" in words:  # named as an output: no input of the others
            del before["model.json"]
        if any(not Path(name).exists() or Path(name).read_bytes() != text for name, text in before.items()):
            raise Broken(f"an input was changed by {[command, *words]}")
        if result.exit_code and (set(os.listdir()) != held or os.listdir("x")):
            raise Broken(f"left behind: {sorted(set(os.listdir()) - held)}, {os.listdir('x')}")


# ----- signals

_COMMAND = """
import sys
from damier.__main__ import main
print("ready", file=sys.stderr, flush=True)
try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
"""


def try_signal(seed):
    """Press Ctrl-C once or twice at any time: exit 0 or 130, no traceback, whole files or none."""
    chance = random.Random(seed)
    command = ("report", "cocluster", "fit", "predict")[seed % 4]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"{i % 17},{i % 5 * (i % 3)},{'ab'[i % 2]}\n" for i in range(600))
        Path(folder, "d.csv").write_text("x,z,y\n" + lines)
        words = {
            "report": ("-t", "y", "--grid", "2", "--json", "out.json"),
            "cocluster": ("-r", "x", "-c", "y", "--json", "out.json", "--labels", "l.csv"),
            "fit": ("-t", "y", "-o", "out.json", "--memory", "0"),
            "predict": ("-o", "out.csv", "--explain"),
        }[command]
        file = "d.csv"
        if command == "predict":
            rows = {"x": range(40), "z": [1, 2] * 20}
            save(damier.NaiveBayesClassifier().fit(rows, ["a", "b"] * 20), Path(folder, "m.json"))
            words, file = ("d.csv", *words), "m.json"
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, command, file, *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        process.stderr.readline()
        for _ in range(chance.choice([1, 1, 2])):
            time.sleep(chance.choice([0.02, 0.3, 1.0, 4.0]) * chance.random())
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Broken("does not end") from None
        if process.returncode not in (0, 130):
            raise Broken(f"exit code {process.returncode}: {said[-300:]!r}")
        if b"Traceback" in said:
            raise Broken(said[-500:].decode())
        files = sorted(os.listdir(folder))
        if any(name.endswith(".partial") for name in files):
            raise Broken(f"left behind: {files}")
        if "out.json" in files:
            json.loads(Path(folder, "out.json").read_text("utf-8"))
        if "out.csv" in files and len(Path(folder, "out.csv").read_text("utf-8").splitlines()) != 601:
            raise Broken("half a table")
        for page in Path(folder).glob("*.html"):
            if not page.read_text("utf-8").rstrip().endswith("</html>"):
                raise Broken("half a page")
