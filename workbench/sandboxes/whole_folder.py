"""Folders that several processes may make at once: there whole, or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its name when the block ends well. Nothing is left of it when the block
    fails, or when another process was first: then an OSError is no failure."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        yield made
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
