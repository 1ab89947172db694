from __future__ import annotations

import hashlib
import os
import shutil

import pytest

from workbench.tasks.digest import digest, ignored, read_plain, walk


def test_known_value(tmp_path):
    """The same on every machine: a change of this number changes the identity of every task ever recorded."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/é.txt").write_bytes(b"two\n")
    (tmp_path / "a.sh").write_bytes(b"one\n")
    (tmp_path / "a.sh").chmod(0o755)
    (tmp_path / "l").symlink_to("a.sh")
    recipe = hashlib.sha256(b"workbench task 1\n")
    for part in (b"a.sh", b"x", b"one\n", "b/é.txt".encode(), b"-", b"two\n", b"l", b"l", b"a.sh"):
        recipe.update(len(part).to_bytes(8, "big") + part)
    assert digest(tmp_path) == recipe.hexdigest()
    assert digest(tmp_path).startswith("72a074356e16d698")


def test_times_owners_order_and_empty_folders_have_no_part(one, tmp_path):
    before = digest(one)
    copy = tmp_path / "copy"
    copy.mkdir()
    for entry in reversed(list(walk(one))):
        (copy / entry.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one / entry.path, copy / entry.path)
        (copy / entry.path).chmod(0o700 if entry.executable else 0o600)
    os.utime(copy / "task.toml", (1, 1))
    (copy / "empty").mkdir()
    assert digest(copy) == before


@pytest.mark.parametrize(
    "name", ["__pycache__/x.pyc", "tests/.a.swp", "x~", ".DS_Store", ".git/HEAD", "tests/.pytest_cache/v", "#x#"]
)
def test_caches_and_editors_files_have_no_part(one, name):
    before = digest(one)
    (one / name).parent.mkdir(exist_ok=True)
    (one / name).write_text("x")
    assert digest(one) == before
    assert any(map(ignored, name.split("/")))


def test_every_real_change_counts(one):
    seen = {digest(one)}

    def changed(what):
        now = digest(one)
        assert now not in seen, what
        seen.add(now)

    (one / "instruction.md").write_text("x")
    changed("bytes")
    (one / "instruction.md").chmod(0o755)
    changed("x bit")
    (one / "instruction.md").rename(one / "Instruction.md")
    changed("name")
    (one / "link").symlink_to("task.toml")
    changed("link")
    (one / "link").unlink()
    (one / "link").symlink_to("README.md")
    changed("target of a link")
    (one / "link").unlink()
    (one / "link").write_text("README.md")
    changed("file instead of link")


def test_bytes_cannot_move_between_files(tmp_path):
    for folder, files in {"x": {"a": b"12", "b": b""}, "y": {"a": b"1", "b": b"2"}, "z": {"ab": b"12"}}.items():
        (tmp_path / folder).mkdir()
        for name, data in files.items():
            (tmp_path / folder / name).write_bytes(data)
    assert len({digest(tmp_path / folder) for folder in "xyz"}) == 3


def test_special_files_and_links_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe"):
        digest(tmp_path)
    with pytest.raises(ValueError, match="not a regular file"):
        read_plain(tmp_path / "pipe", 10)
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="link"):
        read_plain(tmp_path / "link", 10)
    (tmp_path / "file").write_bytes(b"12345")
    assert read_plain(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_plain(tmp_path / "file", 4)
