from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workbench.tasks.scaffold import scaffold


@pytest.fixture(scope="session")
def pristine(tmp_path_factory) -> Path:
    """A single-step and a multi-step scaffold, made once and never changed."""
    root = tmp_path_factory.mktemp("pristine")
    scaffold(root / "one", "org/one")
    scaffold(root / "two", "org/two", multi_step=True)
    return root


@pytest.fixture
def one(pristine, tmp_path) -> Path:
    """A single-step task to spoil."""
    return Path(shutil.copytree(pristine / "one", tmp_path / "one"))


@pytest.fixture
def two(pristine, tmp_path) -> Path:
    """A multi-step task to spoil."""
    return Path(shutil.copytree(pristine / "two", tmp_path / "two"))
