"""Folders that are whole or not there: checkpoints survive `kill -9` at any instant. No torch.

Written beside, under a hidden name; each file flushed to the disk; a manifest with every size last; then one rename. The
pointer `latest` is replaced by a rename too. A killed save leaves a hidden folder, which the next save removes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
BLOBS = "blobs"
LATEST = "latest"
HIDDEN = ".saving-"
REPLACED = ".replaced-"


class CheckpointError(RuntimeError):
    """A checkpoint can't be read; the message says which file and what to do."""


def save_folder(
    parent: Path,
    name: str,
    write: Callable[[Path], object],
    *,
    blobs: Mapping[str, Any] | None = None,
    keep: int = 0,
    latest: bool = False,
    alone: bool = True,
    together: Callable[[], None] = lambda: None,
) -> Path:
    """Make `parent/name` with what `write(folder)` puts there. An older folder of that name is replaced.

    blobs: JSON values kept as `blobs/<key>.json`, byte for byte what json.dumps gives. keep: older checkpoints that stay
    besides the newest; 0 = all. alone, together: in a launch of several processes all of them call this; `write` runs on
    each, the rest on the one that has alone=True, and `together` waits for all.
    """
    final, hidden = parent / name, parent / f"{HIDDEN}{name}"
    if alone:
        parent.mkdir(parents=True, exist_ok=True)
        _tidy(parent)
        hidden.mkdir()
    together()
    write(hidden)
    together()
    if alone:
        _write_blobs(hidden, blobs or {})
        _seal(hidden)
        _replace(hidden, final)
        if latest:
            _point(parent, name)
        if keep:
            _forget(parent, keep)
    together()
    return final


def usable(parent: Path) -> Path | None:
    """The newest whole checkpoint: the one `latest` names, else the last by name; None when there is none."""
    pointer = parent / LATEST
    named = [parent / pointer.read_text().strip()] if pointer.is_file() else []
    others = sorted((p for p in parent.glob("step-*") if p.is_dir()), reverse=True)
    return next((p for p in [*named, *others, *parent.glob(f"{REPLACED}step-*")] if whole(p)), None)


def whole(folder: Path) -> bool:
    """Whether every file of the manifest is there in its size."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def read_blobs(folder: Path) -> dict[str, Any]:
    """The JSON values that were saved. Raises CheckpointError."""
    out = {}
    for file in sorted((folder / BLOBS).glob("*.json")):
        try:
            out[file.stem] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{file} is no JSON ({error}): delete {folder} to go on from an older one") from error
    return out


def _write_blobs(folder: Path, blobs: Mapping[str, Any]) -> None:
    (folder / BLOBS).mkdir(exist_ok=True)
    for name, value in blobs.items():
        if "/" in name or name.startswith("."):
            raise CheckpointError(f"a blob needs a plain name, not {name!r}")
        (folder / BLOBS / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")


def _seal(folder: Path) -> None:
    """Flush all files, then write the manifest that makes the folder whole."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    sizes = {p.relative_to(folder).as_posix(): p.stat().st_size for p in files}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps(sizes))
    for path in [*files, manifest, *(p for p in folder.rglob("*") if p.is_dir()), folder]:
        _flush(path)


def _tidy(parent: Path) -> None:
    """Remove what a killed save left; a folder that had stepped aside for one that never came goes back."""
    for left in parent.glob(f"{HIDDEN}*"):
        shutil.rmtree(left)
    for aside in parent.glob(f"{REPLACED}*"):
        home = parent / aside.name.removeprefix(REPLACED)
        if home.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(home)


def _replace(hidden: Path, final: Path) -> None:
    """Rename into place. A folder of that name steps aside first; `usable` still finds it there."""
    aside = final.parent / f"{REPLACED}{final.name}"
    if final.exists():
        final.rename(aside)
    hidden.rename(final)
    _flush(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _point(parent: Path, name: str) -> None:
    beside = parent / f".{LATEST}"
    beside.write_text(name)
    _flush(beside)
    beside.replace(parent / LATEST)
    _flush(parent)


def _forget(parent: Path, keep: int) -> None:
    """Remove all but the newest `keep` + 1; the one that `latest` names stays whatever its number."""
    named = (parent / LATEST).read_text().strip() if (parent / LATEST).is_file() else ""
    old = sorted((p for p in parent.glob("step-*") if p.is_dir()), reverse=True)[keep + 1 :]
    for folder in old:
        if folder.name != named:
            shutil.rmtree(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
