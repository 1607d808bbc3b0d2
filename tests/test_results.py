"""The pages of ``docs/results`` are what the recorded runs say, and records keep what they are given."""

from __future__ import annotations

import json

import pytest

from benchmarks import records, results


def test_pages_are_those_of_the_recorded_runs() -> None:
    written = results.pages()
    assert sorted(path.name for path in results.PAGES.glob("*.md")) == sorted(written)
    for name, text in written.items():
        message = f"{name} differs: run python -m benchmarks.results"
        assert (results.PAGES / name).read_text(encoding="utf-8") == text, message


def test_a_table_of_the_same_title_is_replaced_and_others_stay(tmp_path, capsys):
    for value in (1, 2):
        record = records.Record("some")
        record.table("once" if value == 1 else "other", ["a"], [[0.123456]])
        record.figure("Figures", f"problem {value}", value, "3 (Khiops)")
        path = record.save(tmp_path)
    assert "problem 2 | 2 | 3 (Khiops)" in capsys.readouterr().out
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["benchmark"] == "some"
    assert [table["title"] for table in kept["tables"]] == ["once", "Figures", "other"]
    assert kept["tables"][0]["rows"] == [["0.1235"]]
    assert kept["tables"][1]["rows"] == [["problem 2", "2", "3 (Khiops)"]]
    assert {"date", "processor", "cores", "versions"} <= set(kept["tables"][1]["run"])
    page = results.page(kept)
    assert "| problem 2 | 2 | 3 (Khiops) |" in page
    assert "## once" in page


def test_a_table_is_recorded_in_pieces(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    for name, value in [("b", 1), ("a", 2), ("b", 3)]:
        record = records.Record("some")
        record.row("Pieces", ["name", "value"], [name, value])
        record.merge("Pieces", ["name", "value"], lambda row, n=name: row[0] != n, lambda row: row[0])
        record.save(tmp_path)
    assert "b | 3" in capsys.readouterr().out
    (table,) = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))["tables"]
    assert table["rows"] == [["a", "2"], ["b", "3"]]
    assert not records.Record("some").merge("Pieces", ["name"], bool, len)  # other columns: another table


def test_quick_runs_are_not_recorded(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["some", "--quick", "--record"])
    with pytest.raises(SystemExit):
        records.run("some", "", {"part": lambda record, options: None})
    assert "--record keeps figures of full runs" in capsys.readouterr().err


def test_only_the_named_parts_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.argv", ["some", "--only", "second", "--size", "7"])
    seen = []
    parts = {
        "first": lambda record, options: seen.append(1),
        "second": lambda record, options: seen.append(options.size),
    }
    records.run("some", "", parts, {"--size": {"type": int}})
    assert seen == [7]
