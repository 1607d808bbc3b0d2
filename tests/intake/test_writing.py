"""Files are replaced whole or left alone."""

import errno
import os
import stat

import pytest

from damier.intake.writing import write_bytes, write_text


def test_text_replaces_a_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "é\n")
    write_text(path, "new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_mode_of_an_existing_file_is_kept(tmp_path, mode):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"


def test_a_new_file_has_the_mode_of_the_process(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_stays_one(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_files_of_the_user_beside_it_are_not_touched(tmp_path):
    other = tmp_path / "elsewhere"
    other.write_text("mine")
    (tmp_path / "model.json.partial").symlink_to(other)
    write_text(tmp_path / "model.json", "new")
    assert other.read_text() == "mine"
    assert (tmp_path / "model.json.partial").is_symlink()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "model.json"
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    write_text(path, "x")
    assert path.read_text() == "x"


def test_what_is_no_regular_file_is_written_to(tmp_path):
    read, write = os.pipe()
    try:
        write_text(f"/dev/fd/{write}", "through")
        assert os.read(read, 100) == b"through"
    finally:
        os.close(read)
        os.close(write)
