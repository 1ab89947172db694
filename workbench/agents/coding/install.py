"""Coding agents as their users install them: by npm, in a pinned version, once a machine, into the state folder.

`agents/NAME-VERSION` below `sandboxes.state_dir()` is complete or absent. An install that broke off is taken up where it
stopped (npm's own cache has what was fetched). Where npm fetches from is the user's npm configuration; no install script
runs (`--ignore-scripts`): all three bring their program as a package, and nothing of it is ever run on the host.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.runs.progress import Progress
from workbench.sandboxes import SandboxError, state_dir

NODE = "22.23.5"  # Pi 1.6 needs at least 22.19; npm on an older Node would quietly choose an older Pi
_CPU = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_SECONDS = 1800.0


class InstallError(SandboxError):
    """An agent could not be installed; the message says what to do."""


@dataclass(frozen=True)
class Package:
    """One agent's npm packages. programs: name → path below node_modules; {cpu} is npm's word, {arch} the kernel's."""

    name: str
    version: str
    package: str
    programs: tuple[tuple[str, str], ...]
    node: bool = False

    @property
    def folder(self) -> Path:
        return state_dir() / "agents" / f"{self.name}-{self.version}"

    def program(self, name: str, root: str | Path) -> str:
        """Where a program is, below the folder `root` that the package is seen at."""
        path = dict(self.programs)[name].format(cpu=_cpu(), arch=platform.machine())
        return f"{root}/node_modules/{path}"

    def wanted(self) -> list[str]:
        return [f"{self.package}@{self.version}", *([f"node-linux-{_cpu()}@{NODE}"] if self.node else [])]


_CODEX = "@openai/codex-linux-{cpu}/vendor/{arch}-unknown-linux-musl/bin/codex"
_NODE = ("node", "node-linux-{cpu}/bin/node")
PACKAGES = {
    p.name: p
    for p in (
        Package("claude-code", "2.1.332", "@anthropic-ai/claude-code",
                (("claude", "@anthropic-ai/claude-code-linux-{cpu}/claude"),)),
        Package("codex", "0.171.0", "@openai/codex", (("codex", _CODEX),)),
        Package("pi", "1.6.0", "@earendil-works/pi-coding-agent",
                (_NODE, ("pi", "@earendil-works/pi-coding-agent/dist/bundle/cli.js")), node=True),
    )
}  # fmt: skip


def _cpu() -> str:
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in _CPU:
        raise InstallError(f"coding agents run on Linux with x86-64 or ARM64, not on {platform.system()} {machine}")
    return _CPU[machine]


def package(name: str) -> Package:
    """The pinned package of an agent. Raises ValueError."""
    if name not in PACKAGES:
        raise ValueError(f"no coding agent {name!r}: use one of {', '.join(PACKAGES)}")
    return PACKAGES[name]


def is_installed(package: Package) -> bool:
    return package.folder.is_dir()


def install(package: Package) -> Path:
    """The folder of the installed agent; installed first when it is not there (10 to 20 s, 200 to 430 MB; progress is
    shown). One process installs, others wait. Raises InstallError."""
    if is_installed(package):
        return package.folder
    with _locked(package):
        if not is_installed(package):
            _install(package)
    return package.folder


@contextmanager
def _locked(package: Package) -> Iterator[None]:
    folder = package.folder.parent
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        if place.stat().st_uid == os.geteuid():
            place.chmod(0o711)
    with (folder / f".{package.folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(package: Package) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallError(
            f"{package.name} is installed by npm, and there is no npm on PATH: install Node.js (18 or later) with npm, then "
            f"`workbench agents install {package.name}`"
        )
    part = package.folder.with_name(f".{package.folder.name}.part")
    part.mkdir(mode=0o755, exist_ok=True)
    (part / "package.json").write_text('{"private": true}\n')  # or npm would look for a project further up
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--save-exact", "--omit=dev"]
    with Progress(label=f"npm: {package.name} {package.version}", total=1) as progress:
        _run([npm, "install", *options, *package.wanted()], part, package)
        _settle(part, package)
        part.rename(package.folder)
        progress.update()


def _run(command: list[str], folder: Path, package: Package) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InstallError(
            f"npm did not finish installing {package.name} within {_SECONDS:g} s; run it again"
        ) from None
    if done.returncode != 0:
        lines = [
            line for line in done.stderr.splitlines() if " error " in line and not line.startswith("npm error     at ")
        ]
        raise InstallError(
            f"npm could not install {', '.join(package.wanted())} (exit code {done.returncode}):\n"
            + "\n".join(lines[:8] or done.stderr.splitlines()[-8:])
            + "\nCheck the registry and proxy of your npm configuration (`npm config list`), then run it again: it goes on "
            "with what is there"
        )


def _settle(folder: Path, package: Package) -> None:
    """Sandboxes' users are nobody here: they may read all of it. And what is started must be there."""
    for path, folders, files in folder.walk():
        path.chmod(path.stat().st_mode | 0o555)
        for name in files:
            file = path / name
            if not file.is_symlink():
                mode = file.stat().st_mode
                file.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
        folders[:] = [name for name in folders if not (path / name).is_symlink()]
    for name, _ in package.programs:
        program = Path(package.program(name, folder))
        if not program.is_file():
            raise InstallError(f"{package.name} {package.version}: npm installed no {program.relative_to(folder)} (optional "
                               "packages left out, or another platform?)")  # fmt: skip
        program.chmod(0o755)


def size_mb(package: Package) -> float:
    """Disk that an installed agent takes."""
    files = (path / name for path, _, names in package.folder.walk() for name in names)
    return sum(file.lstat().st_blocks * 512 for file in files) / (1 << 20)
