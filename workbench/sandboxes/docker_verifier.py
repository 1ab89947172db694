"""The layer of verifier-only packages: pytest and its plug-in, mounted read-only at /opt/verifier in graders.

It is laid out as a virtual environment on top of the image's own Python, so that `/opt/verifier/bin/python -I` finds
pytest although an isolated interpreter reads no variable. The packages are pure Python and are copied from where the
workbench itself is installed; nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import os
import re
import shutil
from pathlib import Path

from workbench.sandboxes import SandboxError, state_dir
from workbench.sandboxes.whole_folder import whole_folder

TARGET = "/opt/verifier"
START = Path(__file__).with_name("verifier_start.py")
PACKAGES = ("pytest", "pytest-json-ctrf")
# Asked of the pristine image: where its Python is and which one it is.
PROBE = (
    "for p in python3 python; do p=$(command -v $p) && exec $p -I -c "
    '\'import os, sys; print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable), '
    '"%d.%d" % sys.version_info[:2])\'; done; echo none'
)


def distributions() -> list[metadata.Distribution]:
    """PACKAGES and what they need, as installed here. SandboxError names what is missing."""
    found: dict[str, metadata.Distribution] = {}
    queue = list(PACKAGES)
    while queue:
        name = re.sub(r"[-_.]+", "-", queue.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in PACKAGES:
                raise SandboxError(
                    f"graders need the package {name}, which is not installed beside the workbench"
                ) from None
            continue  # asked for on other Python versions or platforms only
        for requirement in found[name].requires or []:
            if "extra ==" not in requirement:
                queue.append(re.split(r"[ ;<>=!~\[(]", requirement, maxsplit=1)[0])
    return list(found.values())


def layer(python: str, version: str) -> Path:
    """The host folder for an image whose interpreter is `python` (a path inside) of `version` ("3.13")."""
    parts = distributions()
    named = [f"{d.metadata['Name']}=={d.version}" for d in parts]
    key = hashlib.sha256("\n".join([python, version, START.read_text(), *sorted(named)]).encode()).hexdigest()[:20]
    folder = state_dir() / "docker" / "verifier" / key
    if folder.is_dir():
        return folder
    with whole_folder(folder) as made:
        _fill(made, parts, python, version)
    return folder


def _fill(made: Path, parts: list[metadata.Distribution], python: str, version: str) -> None:
    site = made / "lib" / f"python{version}" / "site-packages"
    (made / "bin").mkdir()
    for name in ("python", "python3"):
        (made / "bin" / name).symlink_to(python)
    script = made / "bin" / "pytest"
    script.write_text('#!/bin/sh\nexec /opt/verifier/bin/python -m pytest "$@"\n')
    script.chmod(0o755)
    (made / "pyvenv.cfg").write_text(f"home = {os.path.dirname(python)}\ninclude-system-site-packages = true\n")  # noqa: PTH120
    for part in parts:
        for file in part.files or []:
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            target = site.joinpath(*file.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(part.locate_file(file), target)
    shutil.copyfile(START, site / "workbench_verifier_start.py")
    (site / "zzz_start.pth").write_text("import workbench_verifier_start\n")
    made.chmod(0o755)
