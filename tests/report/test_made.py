"""How a page was made: stated, and the same bytes for the same data where the date is given."""

from __future__ import annotations

import re

import pandas as pd
from typer.testing import CliRunner

from damier import explore
from damier.cli import app
from damier.datasets import SAMPLE_TARGET, sample_columns


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output


def facts(page):
    listed = re.findall(r"<dt>(\w+)</dt><dd>(?:<code>)?(.*?)(?:</code>)?</dd>", page.split("made-title")[-1])
    return dict(listed)


def test_the_command_is_on_the_page_without_folders(tmp_path):
    folder = tmp_path / "secret place"
    folder.mkdir()
    pd.DataFrame(sample_columns(300)).to_csv(folder / "a b.csv", index=False)
    page = tmp_path / "page.html"
    run("report", folder / "a b.csv", "-t", SAMPLE_TARGET, "-o", page, "--grid", 0, "--no-classifier")
    made = facts(page.read_text("utf-8"))
    assert made["command"] == (
        f"damier report &#39;a b.csv&#39; --target {SAMPLE_TARGET} --output page.html --no-classifier "
        "--grid 0.0"
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made["date"])
    assert float(made["seconds"]) >= 0
    assert "300 rows" in made["data"]
    assert "secret" not in page.read_text("utf-8")


def test_the_same_data_make_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    columns = sample_columns(300)
    labels = columns.pop(SAMPLE_TARGET)
    pages = []
    for k in range(2):
        explore(columns, labels, grid_seconds=0, classifier=False).save(tmp_path / f"{k}.html")
        pages.append((tmp_path / f"{k}.html").read_bytes())
    assert pages[0] == pages[1]
    made = facts(pages[0].decode())
    assert made["date"] == "1970-01-02 00:00 UTC"
    assert "seconds" not in made
