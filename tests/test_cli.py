"""The command line does what its help says, and says what is wrong in one sentence."""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from damier import MODLEncoder, __version__
from damier.cli import COMMANDS, app, load_command
from damier.fit.partitions import partition_column
from damier.report.words import part_labels

HOSTILE = 'a"b<script>'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def frame():
    rows = range(60)
    return pd.DataFrame(
        {
            HOSTILE: [None if i % 10 == 0 else i for i in rows],
            "colour": [("red", "blue", None)[i % 3] for i in rows],
            "Class": ["low" if i < 30 else "high" for i in rows],
        }
    )


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def failed(code, *arguments):
    result = run(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    return result.stderr


def test_sample_needs_no_file(here):
    result = run("report", "--sample", "--no-progress")
    assert result.exit_code == 0
    assert "contract" in result.stdout
    assert "sample-report.html" in result.stdout
    page = (here / "sample-report.html").read_text("utf-8")
    assert "monthly charge, €" in page
    assert len(page) < 200_000


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_report_says_what_the_transformer_finds(here, frame, kind):
    file = here / f"toys.{kind}"
    if kind == "parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="," if kind == "csv" else "\t")
    result = run("report", file, "--target", "Class", "--json", "toys.json", "-j", "2")
    assert result.exit_code == 0
    assert HOSTILE in result.stdout
    page = (here / "toys-report.html").read_text("utf-8")
    assert HOSTILE not in page
    assert "a&#34;b&lt;script&gt;" in page

    summary = json.loads((here / "toys.json").read_text("utf-8"))
    encoder = MODLEncoder(short_bounds=True).fit(frame.drop(columns="Class"), frame["Class"])
    assert [v["name"] for v in summary["variables"]] == [HOSTILE, "colour"]
    assert summary["dataset"]["missing"] == 6 + 20
    for variable in summary["variables"]:
        partition = encoder.partitions_[variable["name"]]
        assert variable["level"] == pytest.approx(partition.level, abs=1e-12)
        assert [part["counts"] for part in variable["table"]] == partition.counts.tolist()
        expected = part_labels(partition, variable["statistics"])
        assert [part["label"] for part in variable["table"]] == expected


def test_the_report_scores_the_columns_together(here, frame):
    frame.to_csv("toys.csv", index=False)
    result = run("report", "toys.csv", "-t", "Class", "--json", "toys.json")
    scores = json.loads((here / "toys.json").read_text("utf-8"))["classifier"]
    assert scores["majority"] == 0.5
    assert scores["accuracy"] > 0.9
    assert scores["log_loss"] < scores["prior_log_loss"]
    assert [w["name"] for w in scores["weights"]] == [HOSTILE]
    assert f"accuracy {scores['accuracy']:.1%}" in result.stdout
    page = (here / "toys-report.html").read_text("utf-8")
    assert "how well they predict Class together" in page
    assert HOSTILE not in page

    without = run("report", "toys.csv", "-t", "Class", "--json", "toys.json", "--no-classifier")
    assert "accuracy" not in without.stdout
    assert "classifier" not in json.loads((here / "toys.json").read_text("utf-8"))
    assert "how well they predict" not in (here / "toys-report.html").read_text("utf-8")


def test_whole_number_targets_are_named_as_in_the_file(here):
    (here / "t.csv").write_text("x,y\n" + "".join(f"{i},{int(i > 20)}\n" for i in range(40)))
    run("report", "t.csv", "-t", "y", "--json", "t.json")
    assert json.loads((here / "t.json").read_text("utf-8"))["target"]["classes"] == ["0", "1"]


def test_a_target_that_looks_like_a_number_is_taken_for_one(here):
    rows = "".join(f"{i % 7},{i * 3}\n" for i in range(300))
    (here / "d.csv").write_text("a,price\n" + rows)
    result = run("report", "d.csv", "-t", "price", "--no-progress")
    assert result.exit_code == 0
    assert "price is taken for a number: 300 values in 300 rows" in result.output
    assert "--target-type classes" in result.output
    result = run("report", "d.csv", "-t", "price", "--target-type", "classes", "--grid", "0")
    assert result.exit_code == 0
    assert "300 classes" in result.output


def test_none_and_null_are_classes_of_a_target(here):
    damage = ["None", "Minor", "null", "N/A"] * 20
    (here / "d.csv").write_text("a,damage\n" + "".join(f"{i},{d}\n" for i, d in enumerate(damage)))
    run("report", "d.csv", "-t", "damage", "--grid", "0", "--json", "d.json", "--no-classifier")
    summary = json.loads((here / "d.json").read_text())
    assert summary["target"]["classes"] == ["Minor", "None", "null"]


def test_targets_beyond_whole_numbers_stay_what_they_are(here):
    (here / "t.csv").write_text("x,y\n" + "1,1e300\n2,2e300\n" * 9)
    run("report", "t.csv", "-t", "y", "--json", "t.json")
    assert json.loads((here / "t.json").read_text())["target"]["classes"] == ["1e+300", "2e+300"]


def test_commas_in_quoted_names_do_not_hide_semicolons(here):
    rows = "".join(f"{i};{'a' if i < 20 else 'b'}\n" for i in range(40))
    (here / "t.csv").write_text('"size, ""net""";class\n' + rows, encoding="utf-8")
    assert 'size, "net"' in run("report", "t.csv", "-t", "class").stdout


def test_unknown_target_names_what_is_near(here, frame):
    frame.to_csv("toys.csv", index=False)
    assert "did you mean 'Class'?" in failed(2, "report", "toys.csv", "--target", "clas")
    told = failed(2, "report", "toys.csv", "--target", "zzz")
    assert "the columns are" in told
    assert "'colour'" in told
    assert "--target" in failed(2, "report", "toys.csv")


def test_missing_files_and_folders(here, frame):
    frame.to_csv("toys.csv", index=False)
    assert "did you mean 'toys.csv'?" in failed(2, "report", "toy.csv", "-t", "Class")
    assert "folder" in failed(2, "report", "nowhere/toys.csv", "-t", "Class")
    assert "is a folder" in failed(2, "report", ".", "-t", "Class")
    assert "no folder" in failed(2, "report", "toys.csv", "-t", "Class", "-o", "nowhere/page.html")
    assert "is a folder" in failed(2, "report", "toys.csv", "-t", "Class", "-o", ".")
    assert "--sample" in failed(2, "report")
    assert "not both" in failed(2, "report", "toys.csv", "--sample")
    assert "--n-jobs" in failed(2, "report", "toys.csv", "-t", "Class", "-j", "0")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.parquet", b"x,y\n1,a\n", "not a Parquet file"),
        ("t.csv", b"PAR1\x00\x00", "not text"),
        ("t.csv", b"x,y\n1,a\n2,a\n", "constant"),
        ("t.csv", b"x,y\n1,\n2,\n", "missing in 2 rows"),
        ("t.csv", b"x,y\n", "no rows"),
        ("t.csv", b"", "empty"),
        ("t.csv", b"y\na\nb\n", "no column beside the target"),
        ("t.csv", b"x,y\n1,0.5\n2,inf\n", "contains infinity"),
        ("t.csv", b"x,y\n1,0.5\n2,0.5\n", "every row holds 0.5\n"),
        ("t.csv", b"x,y\n1,a,3\n", "line 2"),
        ("t.csv", b"\xef\xbb\xbf", "empty"),
        ("t.csv", b"x,y\n1,2020-01-01\n2,2020-01-02\n", "holds dates"),
        ("t.csv", b"x,y\n1,1\n2,1\n", "every row holds 1\n"),
        ("t.pickle", b"PK\x03\x04", "does not give the kind"),
    ],
)
def test_data_that_cannot_be_reported_on(here, name, content, told):
    (here / name).write_bytes(content)
    assert told in failed(1, "report", name, "--target", "y")


def test_version_and_help(here):
    assert run("--version").stdout == f"damier {__version__}\n"
    assert "damier report" in run("--help").stdout
    told = run("report", "--help").stdout
    assert "damier report customers.csv --target churn" in told


def test_module_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "damier", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"damier {__version__}\n"


def test_grid_within_a_budget(here):
    rng = np.random.default_rng(1)
    a, b = rng.random(300), rng.random(300)
    lines = ["a,b,Class"] + [f"{u},{v},{int((u > 0.4) ^ (v > 0.6))}" for u, v in zip(a, b, strict=True)]
    (here / "xor.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = run("report", "xor.csv", "-t", "Class", "--json", "xor.json", "--grid", "5")
    assert told.exit_code == 0, told.output
    assert "best grid: " in told.output
    summary = json.loads((here / "xor.json").read_text("utf-8"))
    assert {v["name"] for v in summary["grid"]["variables"]} == {"a", "b"}
    without = run("report", "xor.csv", "-t", "Class", "--json", "xor.json", "--grid", "0")
    assert without.exit_code == 0
    assert "grid" not in json.loads((here / "xor.json").read_text("utf-8"))


def wait_for_interrupt(*data, run, **settings):
    _thread.interrupt_main()
    while True:
        run.check()
        time.sleep(0.01)


def test_two_interrupts_end_the_report(here, frame, monkeypatch):
    frame.to_csv("t.csv", index=False)
    monkeypatch.setattr("damier.fit.evaluation.cross_validated_scores", wait_for_interrupt)
    monkeypatch.setattr("damier.fit.grids.fit_grid", wait_for_interrupt)
    result = run("report", "t.csv", "--target", "Class")
    assert result.exit_code == 130
    assert "stopped before anything was written" in result.stderr
    assert not (here / "t-report.html").exists()


def test_an_interrupt_keeps_what_was_found_before_it(here, frame, monkeypatch):
    frame.to_csv("t.csv", index=False)
    monkeypatch.setattr("damier.fit.evaluation.cross_validated_scores", wait_for_interrupt)
    result = run("report", "t.csv", "--target", "Class", "--json", "t.json", "--grid", "0")
    assert "Stopped: the report goes without the scores of a classifier." in result.stderr
    summary = json.loads((here / "t.json").read_text())
    assert summary["variables"]
    assert "classifier" not in summary
    assert "t-report.html" in result.stdout


def test_an_interrupt_of_the_partitions_says_that_nothing_is_written(here, frame, monkeypatch):
    def interrupted(column, target, **settings):
        _thread.interrupt_main()
        time.sleep(0.3)
        return partition_column(column, target, **settings)

    frame.to_csv("t.csv", index=False)
    monkeypatch.setattr("damier.fit.partitions.partition_column", interrupted)
    asked = ("report", "t.csv", "--target", "Class", "-j", "1")
    assert "stopped before anything was written" in failed(130, *asked)
    assert not (here / "t-report.html").exists()


def test_an_interrupt_while_duckdb_reads_is_no_error_of_the_library(here, frame, monkeypatch):
    def interrupted(path, **options):
        raise RuntimeError("Query interrupted")  # what DuckDB makes of Ctrl-C

    frame.to_csv("t.csv", index=False)
    monkeypatch.setattr("damier.intake.read_file", interrupted)
    assert "stopped before anything was written" in failed(130, "report", "t.csv", "--target", "Class")


def test_rows_without_a_target_are_left_out_or_made_a_class(here):
    rows = "".join(f"{i},{'a' if i < 20 else 'b' if i < 40 else ''}\n" for i in range(60))
    (here / "t.csv").write_text("x,y\n" + rows, encoding="utf-8")
    quick = ("--no-classifier", "--grid", "0", "--json", "t.json")
    for options, classes in (((), ["a", "b"]), (("--missing-target", "class"), ["a", "b", "missing"])):
        run("report", "t.csv", "-t", "y", *quick, *options)
        found = json.loads((here / "t.json").read_text(encoding="utf-8"))["target"]["classes"]
        assert sorted(c if isinstance(c, str) else c["name"] for c in found) == classes


def test_reading_options_reach_the_reader(here):
    text = "".join(f"{i};{i % 3},5;{'a' if i < 20 else 'b'}\n" for i in range(40))
    (here / "t.data").write_text(text, encoding="latin-1")
    options = (
        "--no-header",
        "--separator",
        ";",
        "--decimal",
        ",",
        "--missing",
        "0",
        "--categorical",
        "column2",
    )
    run("report", "t.data", "-t", "column3", "--no-classifier", "--grid", "0", "--json", "t.json", *options)
    variables = json.loads((here / "t.json").read_text(encoding="utf-8"))["variables"]
    assert {v["name"]: (v["type"], v["missing"]) for v in variables} == {
        "column1": ("numeric", 1),
        "column2": ("categorical", 0),
    }
    assert "has no column 'z'" in failed(1, "report", "t.data", "-t", "column3", "--drop", "z", "--no-header")


def test_listed_commands_say_what_their_functions_say():
    for name, line in COMMANDS.items():
        assert load_command(name).help.split("\n\n")[0] == line


def test_a_wrong_file_is_answered_without_numpy():
    program = (
        "import sys\nfrom damier.__main__ import main\nsys.argv[1:] = ['report', 'no such file.csv']\n"
        "try:\n    main()\nfinally:\n    print({'numpy', 'scipy', 'numba', 'duckdb'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (2, "set()"), done.stderr
