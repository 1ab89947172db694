"""Pages name what there is, and their links lead somewhere."""

from __future__ import annotations

import re

import pytest

from .shown import PAGES, ROOT

ROOMS = sorted(p.parent.name for p in (ROOT / "workbench").glob("*/__init__.py"))


def heading(text: str) -> str:
    """The anchor that a forge gives a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]+)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        there = page.parent / target
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            found = re.findall(r"^#+ (.*)", there.read_text(encoding="utf-8"), re.M)
            assert anchor in map(heading, found), f"{page.name}: {target}#{anchor}"


def test_the_readme_names_every_notebook_and_room():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [p.stem for p in (ROOT / "notebooks").glob("*.ipynb") if p.stem not in text]
    assert not [room for room in ROOMS if f"  {room}/" not in text]
    assert len(re.findall(r"^!\[", text, re.M)) == 1, "one picture"


def test_the_pages_of_notebooks_and_rooms_name_all_of_them():
    rooms = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert not [room for room in ROOMS if f"| `{room}` |" not in rooms and room != "cli"]
    notebooks = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert not [p.stem for p in (ROOT / "notebooks").glob("*.ipynb") if f"| `{p.stem}` |" not in notebooks]
