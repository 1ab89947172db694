"""A new task directory that already works: Harbor's layout, our fraction verifier, and a small example to replace."""

from __future__ import annotations

import functools
import re
import shutil
import string
from pathlib import Path

from workbench.tasks import Task
from workbench.tasks.load import load
from workbench.tasks.verifier import VERIFIER_TEMPLATE

TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")  # Harbor's rule for [task] name


def scaffold(path: str | Path, name: str | None = None, *, multi_step: bool = False) -> Task:
    """Make a task directory and load it. Its reference solution earns 1.0 and doing nothing 0.0, before any edit.

    path: a folder that is not there yet, or is empty. name: "org/name" (default "local/<folder>"). multi_step: two steps
    in one sandbox instead of one. Raises FileExistsError when the folder has files, ValueError for a name that Harbor
    would not take. Nothing is left behind when it fails.
    """
    path = Path(path)
    name = name if name is not None else f"local/{path.absolute().name}"
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{name!r} is no task name: write org/name with letters, digits, dots, dashes and underscores")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} is not an empty folder; name a new one")
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        _fill(path, name, "multi" if multi_step else "single")
        return load(path)
    except BaseException:
        shutil.rmtree(path) if made else _empty(path)
        raise


def _fill(path: Path, name: str, kind: str) -> None:
    source = TEMPLATES / kind
    for file in sorted(p for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        target = path / file.relative_to(source)
        _write(target, string.Template(file.read_text(encoding="utf-8")).substitute(name=name))
    for tests in sorted(path.rglob("tests")):
        _write(tests / "test.sh", VERIFIER_TEMPLATE)
    readme = (TEMPLATES / "README.md").read_text(encoding="utf-8")
    _write(path / "README.md", string.Template(readme).substitute(name=name))
    _write(path / ".gitignore", (TEMPLATES / "gitignore").read_text(encoding="utf-8"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if path.suffix == ".sh" else 0o644)  # whatever the umask


def _empty(path: Path) -> None:
    for child in path.iterdir():
        shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()


@functools.cache
def scaffold_texts() -> tuple[str, ...]:
    """The instructions that a scaffold starts from. Two tasks that share them have not copied from each other."""
    return tuple(p.read_text(encoding="utf-8") for p in sorted(TEMPLATES.rglob("instruction.md")))
