"""A prebuilt image that a task names in place of a Dockerfile (Harbor's `docker_image`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, Image


def build_named(backend: Backend, name: str, *, verifier: bool = False, timeout: float = 600.0) -> Image:
    """The image `name`, built as a Dockerfile of one line. verifier, timeout, errors: as for Backend.build."""
    with TemporaryDirectory(prefix=prefix("from")) as folder:
        (Path(folder) / "Dockerfile").write_text(f"FROM {name}\n")
        return backend.build(Path(folder), verifier=verifier, timeout=timeout)
