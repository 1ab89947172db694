"""docs/reference, made from docstrings."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
make_reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_reference)

MODULE = '''"""What the module is for.

More of it."""

from dataclasses import dataclass


@dataclass
class Thing(Base):
    """A thing,
    on two lines.

    Not shown."""

    def grow(self, by: int = 1) -> Thing:
        """A greater one."""

    def _inside(self):
        """Not shown."""

    def silent(self):
        pass


def make(a, *, b: str = "x") -> Thing:
    """Makes one."""


def _own():
    """Not shown."""
'''


def test_a_room_has_a_page_with_what_is_public_in_it(tmp_path):
    package = tmp_path / "kit"
    files = {"__init__.py": '"""A kit."""\n', "room/__init__.py": '"""The room."""\n', "room/things.py": MODULE, "room/empty.py": "x = 1\n",
             "room/_own.py": MODULE, "worlds/__init__.py": '"""Worlds."""\n', "worlds/generators/shop.py": '"""A shop."""\n\n\ndef build():\n    """Not shown."""\n'}  # fmt: skip
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    pages = make_reference.pages(package)
    assert set(pages) == {"README.md", "package.md", "room.md", "worlds.md"}
    assert "- [room](room.md): The room." in pages["README.md"]
    lines = pages["room.md"].splitlines()
    assert lines[0] == "# kit.room"
    assert "## `kit.room.things`" in lines
    assert "What the module is for." in lines
    assert "- `class Thing(Base)`: A thing, on two lines." in lines
    assert "  - `.grow(by: int=1) -> Thing`: A greater one." in lines
    assert "- `make(a, *, b: str='x') -> Thing`: Makes one." in lines
    for hidden in ("Not shown", "silent", "_own", "empty"):
        assert hidden not in pages["room.md"]
    assert "A shop." in pages["worlds.md"]
    assert "Not shown" not in pages["worlds.md"]


def test_every_room_has_a_page():
    rooms = {p.parent.name for p in (ROOT / "workbench").glob("*/__init__.py")}
    assert rooms <= {name.removesuffix(".md") for name in make_reference.pages()}


@pytest.mark.slow  # any change of a docstring makes the pages stale: they are made anew before a release
def test_the_pages_are_current(capsys):
    assert make_reference.main(["--check"]) == 0, capsys.readouterr().err
