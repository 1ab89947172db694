"""Finds the generators and loads their six modules.

A generator is a folder with a world.py, in `workbench/worlds/generators/` or in a folder named by $WORKBENCH_GENERATORS (several: as in
$PATH). Its modules are imported as `workbench.worlds.generators.<name>.<role>`, wherever the folder stands.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from workbench.worlds import Node, Spec, WorldError, generators

ROLES = ("world", "reference", "alternative", "verify", "progress", "hidden")
GENERATORS_ENV = "WORKBENCH_GENERATORS"


@dataclass(frozen=True)
class Generator:
    """The six modules of a generator; `folder` is where they stand."""

    name: str
    folder: Path
    world: ModuleType
    reference: ModuleType
    alternative: ModuleType
    verify: ModuleType
    progress: ModuleType
    hidden: ModuleType

    @property
    def spec(self) -> Spec:
        return self.world.SPEC

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The progress contract: (name, weight, prerequisites) in topological order."""
        return tuple(Node(*node[:2], tuple(node[2])) for node in self.progress.NODES)

    @property
    def components(self) -> Mapping[str, int]:
        return self.verify.COMPONENTS


def places() -> list[Path]:
    """The folders that generators are looked for in."""
    own = Path(generators.__file__).parent
    added = [Path(p).expanduser().resolve() for p in os.environ.get(GENERATORS_ENV, "").split(os.pathsep) if p]
    return [own, *added]


def folders() -> dict[str, Path]:
    """Every generator's folder by name, complete or not; the first place wins."""
    found: dict[str, Path] = {}
    for place in places():
        if place.is_dir():
            for folder in sorted(place.iterdir()):
                if folder.name.isidentifier() and (folder / "world.py").is_file():
                    found.setdefault(folder.name, folder)
    return dict(sorted(found.items()))


def missing(folder: Path) -> list[str]:
    """The module files that a generator's folder lacks."""
    return [f"{role}.py" for role in ROLES if not (folder / f"{role}.py").is_file()]


def names() -> tuple[str, ...]:
    """The complete generators, in alphabetical order. Imports none of them."""
    return tuple(name for name, folder in folders().items() if not missing(folder))


def folder_of(name: str) -> Path:
    """KeyError lists the generators that there are."""
    found = folders()
    if name not in found:
        where = ", ".join(map(str, places()))
        raise KeyError(f"there is no generator {name!r} in {where}: there are {', '.join(found) or 'none'}")
    return found[name]


def get(name: str) -> Generator:
    """The generator. KeyError lists those there are; WorldError says which of its modules is missing or can't be imported."""
    return _load(name, folder_of(name))


def at(folder: Path) -> Generator:
    """The generator in a folder that is not registered: the scaffold, or one on trial."""
    return _load(folder.name, folder)


@functools.cache
def _load(name: str, folder: Path) -> Generator:
    if lacking := missing(folder):
        raise WorldError(f"{folder} lacks {', '.join(lacking)}: `workbench worlds new` shows what belongs there")
    _package(name, folder)
    loaded = {role: _module(name, role) for role in ROLES}
    generator = Generator(name, folder, **loaded)
    if generator.spec.name != name:
        raise WorldError(f"{folder}/world.py: SPEC.name is {generator.spec.name!r}, the folder is {name!r}")
    return generator


def _package(name: str, folder: Path) -> None:
    """Make the folder importable as workbench.worlds.generators.<name>; another folder of the name is forgotten."""
    full = f"{generators.__name__}.{name}"
    known = sys.modules.get(full)
    if known is not None and list(known.__path__) == [str(folder)]:
        return
    for module in [m for m in sys.modules if m == full or m.startswith(f"{full}.")]:
        del sys.modules[module]
    package = ModuleType(full, f"The generator in {folder}.")
    package.__path__ = [str(folder)]
    sys.modules[full] = package
    setattr(generators, name, package)


def _module(name: str, role: str) -> ModuleType:
    try:
        return importlib.import_module(f"workbench.worlds.generators.{name}.{role}")
    except Exception as error:  # whatever a module does while it is imported
        raise WorldError(f"generator {name}: {role}.py can't be imported: {type(error).__name__}: {error}") from error


def specs() -> dict[str, Spec]:
    """The Spec of every complete generator."""
    return {name: get(name).spec for name in names()}
