"""Generators made for a test: the scaffold in a folder of the test's own, with changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from workbench.worlds import catalog
from workbench.worlds.catalog import Generator
from workbench.worlds.scaffold import copy_template

from .broken import Patch

MakeGenerator = Callable[..., Generator]


@pytest.fixture
def make_generator(tmp_path: Path) -> MakeGenerator:
    """make_generator(name, patches): a copy of the scaffold, each patch's text replaced where it stands, exactly once."""

    def make(name: str, patches: Iterable[Patch] = ()) -> Generator:
        folder = tmp_path / name
        copy_template(folder)
        for file, old, new in patches:
            path = folder / file
            source = path.read_text()
            assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
            path.write_text(source.replace(old, new))
        return catalog.at(folder)

    return make
