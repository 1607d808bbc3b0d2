"""Compiled templates are kept beside them, and never keep a page from being written."""

from __future__ import annotations

import pytest

from damier.report import page


@pytest.fixture
def templates(tmp_path, monkeypatch):
    (tmp_path / "a.html").write_text("<p>{{ name }}</p>")
    monkeypatch.setattr(page, "_TEMPLATES", tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    return tmp_path


def written() -> str:
    environment = page.page_environment.__wrapped__()
    return environment.get_template("a.html").render(name="<b>")


def test_a_template_is_compiled_once_and_again_when_it_or_its_file_has_changed(templates):
    assert written() == "<p>&lt;b&gt;</p>"
    (kept,) = (templates / "__pycache__").iterdir()
    whole = kept.read_bytes()
    for damaged in (b"", whole[:20], whole[:30], whole[:-9], b"something else"):
        kept.write_bytes(damaged)
        assert written() == "<p>&lt;b&gt;</p>"
        assert kept.read_bytes() == whole
    (templates / "a.html").write_text("<i>{{ name }}</i>")
    assert written() == "<i>&lt;b&gt;</i>"


def test_another_setting_does_not_find_what_was_compiled(templates, monkeypatch):
    written()
    monkeypatch.setitem(page._OPTIONS, "autoescape", False)
    assert written() == "<p><b></p>"


def test_a_folder_that_cannot_be_written_to_is_no_matter(templates):
    (templates / "__pycache__").write_text("a file in its place")
    assert written() == "<p>&lt;b&gt;</p>"
