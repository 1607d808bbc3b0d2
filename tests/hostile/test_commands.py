"""The commands lose nothing, leave nothing behind, and print nothing that a terminal obeys."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.deploy import save
from damier.intake.printable import printable, without_formula
from damier.intake.writing import write_csv

TABLE = "x,y\n" + "".join(f"{i},{'ab'[i > 20]}\n" for i in range(40))
PAIRS = "u,p\n" + "".join(f"u{i % 8},p{i % 6}\n" for i in range(60))
COMMANDS = {
    "report": ("-t", "y", "--no-classifier", "--grid", "0"),
    "cocluster": ("-j", "1"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def table(command, name="d.csv"):
    Path(name).write_text(TABLE if command == "report" else PAIRS)
    return name


OUTPUTS = [
    ("report", "-o"),
    ("report", "--json"),
    *(("cocluster", one) for one in ("-o", "--labels", "--json")),
]


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
@pytest.mark.parametrize("way", ["itself", "detour", "link", "hard link", "linked folder", "absolute"])
def test_no_output_replaces_the_input(here, command, option, way):
    file = table(command)
    (here / "x").mkdir()
    Path("there").symlink_to(here, target_is_directory=True)
    output = {
        "itself": "d.csv",
        "detour": "./x/../d.csv",
        "link": "link.csv",
        "hard link": "hard.csv",
        "linked folder": "there/d.csv",
        "absolute": here / "d.csv",
    }[way]
    Path("link.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    before = sorted(os.listdir()), Path(file).read_bytes()
    result = run(command, file, *COMMANDS[command], option, output)
    assert result.exit_code == 2
    assert "is the input: give the output another name" in result.output
    assert (sorted(os.listdir()), Path(file).read_bytes()) == before


@pytest.mark.parametrize("command", ["report", "fit", "predict"])
def test_no_output_replaces_one_of_several_inputs(here, command):
    table("report", "d1.csv")
    table("report", "d2.csv")
    Path("m.json").symlink_to("d2.csv")
    Path("o.csv").symlink_to("d2.csv")
    save(damier.NaiveBayesClassifier().fit({"x": range(20)}, [0] * 10 + [1] * 10), "model.json")
    words = {
        "report": ("report", "d*.csv", "-t", "y", "--save-model", "m.json", *COMMANDS["report"][2:]),
        "fit": ("fit", "d*.csv", "-t", "y", "-o", "m.json"),
        "predict": ("predict", "model.json", "d*.csv", "-o", "o.csv"),
    }[command]
    result = run(*words)
    assert result.exit_code == 2
    assert "is the input: give the output another name" in result.output
    assert Path("d2.csv").read_text() == TABLE


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_no_table(here):
    """Run in processes of their own: without the check they wait for ever."""
    os.mkfifo("p.csv")
    save(damier.NaiveBayesClassifier().fit({"x": range(20)}, [0] * 10 + [1] * 10), "m.json")
    for words in (
        ("report", "p.csv", "-t", "y"),
        ("fit", "p.csv", "-t", "y", "-o", "o.json"),
        ("fit", "p*.csv", "-t", "y", "-o", "o.json"),
        ("predict", "m.json", "p.csv"),
        ("cocluster", "p.csv"),
    ):
        done = subprocess.run([sys.executable, "-m", "damier", *words], capture_output=True, timeout=120)
        assert done.returncode in (1, 2), words
        assert b"not a regular file" in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("report", ("-o", "r.csv", "--json", "./r.csv")),
        ("report", ("--json", "d-report.html")),  # the page's own name
        ("report", ("-o", "old.csv", "--json", "new.csv")),  # a link to a file that is not there yet
        ("cocluster", ("-o", "r.csv", "--labels", "r.csv")),
        ("cocluster", ("--json", "r.csv", "--labels", "r.csv")),
        ("cocluster", ("--json", "d-coclusters.html")),
    ],
)
def test_no_output_replaces_another(here, command, words):
    file = table(command)
    Path("old.csv").symlink_to("new.csv")
    result = run(command, file, *COMMANDS[command], *words)
    assert result.exit_code == 2
    assert "is another output" in result.output
    assert sorted(os.listdir()) == ["d.csv", "old.csv"]


def test_names_of_columns_with_line_breaks(here):
    written(["a\nb", "y"], [[i, "uv"[i > 20]] for i in range(40)])
    words = ("report", "d.csv", "-t", "y", *COMMANDS["report"][2:])
    assert run(*words, "--drop", '"a\nb"').exit_code == 1  # nothing is left to report on
    assert "no column 'a'" in run(*words, "--drop", "a\nb").output
    assert run(*words, "--encoding", "no such").exit_code == 1


def test_a_query_that_a_terminal_would_obey(here, monkeypatch):
    save(damier.MODLDiscretizer().fit({"a\x1b[2J": range(20)}, [0, 1] * 10), "m.json")
    words = ("sql", "m.json", "-d", "duckdb", "--table", "t")
    assert "\x1b[2J" in run(*words).output  # into a pipe, as it is
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("damier.commands.sql.sys", terminal)
    result = run(*words)
    assert result.exit_code == 1
    assert "write it to a file, with -o" in result.output
    assert run(*words, "-o", "q.sql").exit_code == 0


def test_several_outputs_may_go_to_no_file(here):
    assert (
        run("report", table("report"), *COMMANDS["report"], "-o", os.devnull, "--json", os.devnull).exit_code
        == 0
    )


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit of file sizes")
@pytest.mark.parametrize(
    ("option", "name"), [("-o", "p.html"), ("--labels", "l.csv"), ("--labels", "l.parquet")]
)
def test_a_full_disk_leaves_the_old_file(here, option, name):
    """A limit of file sizes stands in for a full disk."""
    Path("d.csv").write_text("u,p\n" + "".join(f"user {i}{'.' * 40},p{i % 7}\n" for i in range(3000)))
    page = () if option == "-o" else ("-o", os.devnull)
    words = ("cocluster", "d.csv", "--time-limit", "1", *page, option, name)
    assert run(*words).exit_code == 0
    Path(name).write_text("the old one")
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))\n"
        "from damier.__main__ import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"Error: cannot write '{name}': File too large\n"
    assert Path(name).read_text() == "the old one"
    assert sorted(os.listdir()) == sorted(["d.csv", name])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["n" * 300 + ".csv", "a/" * 3000 + "d.csv", "nul\0.csv"])
def test_names_that_the_system_refuses(here, command, name):
    assert run(command, name, *COMMANDS[command]).exit_code == 2
    file = table(command)
    for option in [option for of, option in OUTPUTS if of == command]:
        result = run(command, file, *COMMANDS[command], option, name)
        assert result.exit_code == 2
        assert "cannot use" in result.output or "null" in result.output
    assert os.listdir() == ["d.csv"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_whose_own_name_would_be_too_long(here, command):
    file = table(command, "n" * 245 + ".csv")
    result = run(command, file, *COMMANDS[command])
    assert result.exit_code == 2
    assert "too long" in result.output
    assert os.listdir() == [file]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_are_not_utf8(here, command):
    bad = [os.fsdecode(b"%d\xff.json" % i) for i in range(2)]
    table(command, bad[0])
    result = run(command, bad[0], *COMMANDS[command])
    assert result.exit_code == 1
    assert "rename the file" in result.output
    os.rename(bad[0], "d.csv")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "damier",
            command,
            "d.csv",
            *COMMANDS[command],
            "-o",
            bad[0],
            "--json",
            bad[1],
        ],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert rb"1\udcff.json" in done.stdout
    assert sorted(os.listdir()) == sorted(["d.csv", *bad])
    json.loads(Path(bad[1]).read_text("utf-8"))


def test_an_encoding_that_lacks_the_letters(here):
    done = subprocess.run(
        [sys.executable, "-m", "damier", "report", table("report"), *COMMANDS["report"]],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert b"Page written" in done.stdout


# What a terminal obeys: screen cleared, title set, colours by C1, bell, direction turned, keys asked for.
OBEYED = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x07",
    "\u202egnp",
    "\u2066x",
    "\x7f",
    "\x08\x08",
    "\x1bP+q\x1b\\",
]
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def written(names, rows):
    with Path("d.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])


@pytest.mark.parametrize("payload", OBEYED)
def test_nothing_from_the_data_commands_the_terminal(here, payload):
    first, second, target = f"a{payload}b", f"c{payload}", f"y{payload}"
    rows = [
        [i % 10, f"v{payload}{i // 5 % 2}", f"{'kl'[i % 10 > 4 and i // 5 % 2]}{payload}"] for i in range(80)
    ]
    written([first, second, target], rows)
    shown = [
        run("report", "d.csv", "-t", target, "--grid", "1", "--no-classifier", "-o", f"o{payload[:1]}.html")
    ]
    shown.append(run("report", "d.csv", "-t", target, "--drop", "no such"))
    shown.append(run("report", "d.csv"))
    written([first, second], [[f"u{payload}{i % 8}", f"w{payload}{i % 8 // 2}"] for i in range(80)])
    shown.append(run("cocluster", "d.csv", "--labels", f"l{payload[:1]}.csv"))
    os.rename("d.csv", f"{payload.replace('/', '')}.csv")
    shown.append(run("report", f"{payload}.csv", "-t", first, "--grid", "0", "--no-classifier"))
    assert [result.exit_code for result in shown] == [0, 1, 2, 0, 0], [result.output for result in shown]
    for result in shown:
        assert not UNSAFE.search(result.output), result.output
    assert printable(payload) in shown[0].output


def test_printable_leaves_plain_text_alone():
    for text in ("plain", "é 東京 😀 \u200d", "a\\b", ""):
        assert printable(text) == text
    for text in OBEYED:
        assert not UNSAFE.search(printable(text))


@pytest.mark.parametrize("lead", ["=", "+", "-", "@", "＝"])
def test_formulas_are_quoted_in_labels(here, lead):
    value = f"{lead}cmd|' /C calc'!A1"
    written(["u", "p"], [[value if i % 8 == 0 else f"u{i % 8}", -(i % 4) - 1] for i in range(80)])
    for option, expected in (((), f"'{value}"), (("--raw-labels",), value)):
        assert run("cocluster", "d.csv", "--labels", "l.csv", *option).exit_code == 0
        with Path("l.csv").open(encoding="utf-8", newline="") as file:
            values = {row["value"] for row in csv.DictReader(file)}
        assert expected in values
        assert (value in values) is bool(option)
        assert "-1" in values  # numbers stay numbers


def test_csv_cells(here):
    write_csv("t.csv", {"=name": ["@a", None, "b,c"], "n": [-1.5, 2, 3]})
    assert Path("t.csv").read_bytes() == b"'=name,n\r\n'@a,-1.5\r\n,2\r\n\"b,c\",3\r\n"
    assert [without_formula(cell) for cell in ("-1e5", "+.5", "-1-1", 3, None)] == [
        "-1e5",
        "+.5",
        "'-1-1",
        3,
        None,
    ]


def starting(*words, **options):
    return subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_while_libraries_load(here):
    """An interrupt in the import of any library ends the command, whatever that library makes of it."""
    script = """
import builtins, os, signal, sys
from damier.__main__ import main
plain, library = builtins.__import__, sys.argv.pop(1)
def interrupted(name, *rest):
    if name.startswith(library):
        os.kill(os.getpid(), signal.SIGINT)
    return plain(name, *rest)
builtins.__import__ = interrupted
main()
"""
    for library in ("typer", "rich", "damier.commands"):
        process = starting("-c", script, library, "report", "d.csv", "-t", "y")
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, "", ""), library


def test_a_name_to_keep_with_a_line_break_is_not_an_error_of_a_library(here):
    rows = {"x": list(range(20)), "a\nb": ["k"] * 20}
    save(damier.NaiveBayesClassifier().fit({"x": rows["x"]}, [0] * 10 + [1] * 10), here / "m.json")
    write_csv(here / "d.csv", rows)
    assert run("predict", "m.json", "d.csv", "-o", "p.csv", "--keep", "x\ny").exit_code != 0
    assert run("predict", "m.json", "d.csv", "-o", "p.csv", "--keep", '"a\nb"').exit_code == 0
