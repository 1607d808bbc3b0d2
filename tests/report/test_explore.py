"""`damier.explore` and the command line show the same numbers."""

import json

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from damier import explore
from damier.cli import app
from damier.datasets import SAMPLE_TARGET, sample_columns

SECTIONS = ("variables", "classifier", "grid", "pairs", "scorer", "curves")


@pytest.fixture(scope="module")
def sample():
    return pd.DataFrame(sample_columns(600))


def test_the_same_numbers_as_the_command_line(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample.to_parquet("t.parquet")
    asked = ["report", "t.parquet", "-t", SAMPLE_TARGET, "--json", "t.json", "--grid", "600"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "t.json").read_text())
    report = explore(
        sample.drop(columns=SAMPLE_TARGET),
        sample[SAMPLE_TARGET],
        name="t.parquet",
        target_name=SAMPLE_TARGET,
        grid_seconds=600,
    )
    assert report.to_dict() == said
    assert said["ended"] == dict.fromkeys(SECTIONS, "complete")


def test_a_report_is_saved_and_shown(sample, tmp_path):
    X, y = pl.from_pandas(sample.drop(columns=SAMPLE_TARGET)), sample[SAMPLE_TARGET]
    report = explore(X, y, name="<b>", grid_seconds=0, classifier=False)
    report.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<b>: what explains" not in page
    assert "&lt;b&gt;: what explains" in page
    assert 'srcdoc="&lt;!doctype html&gt;' in report._repr_html_()
    assert isinstance(report.variables, pl.DataFrame)
    levels = report.variables["level"].to_list()
    assert levels == sorted(levels, reverse=True)
    assert "inform target" in repr(report)


def test_what_cannot_be_explored_is_refused():
    with pytest.raises(ValueError, match="2 rows and y has 3"):
        explore({"a": [1, 2]}, [0, 1, 1])
    with pytest.raises(ValueError, match="constant"):
        explore({"a": [1, 2]}, [1, 1])
