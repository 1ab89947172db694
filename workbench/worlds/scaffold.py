"""A new generator's folder: the small complete one under another name, to be rewritten piece by piece.

It can be built and graded at once; the similarity gate refuses it for as long as it repeats the scaffold.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from workbench.paths import CHECKOUT
from workbench.worlds import WorldError, catalog

TEMPLATE = Path(__file__).parent / "templates" / "template"


def new_generator(name: str, place: Path | None = None) -> Path:
    """Make `place`/`name` and return it. place: default `default_place()`; of another, $WORKBENCH_GENERATORS must tell.

    WorldError when the name is no lower-case identifier, or is taken.
    """
    if not (name.isidentifier() and name == name.lower() and name.isascii() and name != TEMPLATE.name):
        raise WorldError(f"{name!r} is no generator's name: lower-case words joined with underscores")
    if name in catalog.folders():
        raise WorldError(f"there is a generator {name!r} in {catalog.folder_of(name)}")
    folder = (place or default_place()) / name
    if folder.exists():
        raise WorldError(f"{folder} exists already")
    copy_template(folder)
    return folder


def default_place() -> Path:
    """The first folder of $WORKBENCH_GENERATORS; else the package's own in a checkout; else `generators/` here, because an installed
    package is not a place for one's own code."""
    own, *added = catalog.places()
    return added[0] if added else own if CHECKOUT else Path("generators")


def copy_template(folder: Path) -> None:
    """The scaffold's modules in a new folder, under the folder's name."""
    folder.mkdir(parents=True)
    for file in sorted(TEMPLATE.glob("*.py")):
        shutil.copyfile(file, folder / file.name)
    world = folder / "world.py"
    named = world.read_text(encoding="utf-8").replace('name="template"', f'name="{folder.name}"')
    world.write_text(named, encoding="utf-8")
