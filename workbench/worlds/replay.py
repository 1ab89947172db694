"""Builds environments again in another process, under another hash seed, time zone and locale: the same bytes must come out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from workbench.worlds import Environment, Tier, WorldError, build
from workbench.worlds.identity import tree_digest

Triple = tuple[str, int, Tier]  # generator, seed, tier

# Two machines that could hardly differ more.
CONDITIONS = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    {
        "PYTHONHASHSEED": "4242",
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
)
_PROGRAM = (
    "import json, sys; from workbench.worlds.replay import digests; print(json.dumps(digests(json.load(sys.stdin))))"
)


def environment_digest(environment: Environment) -> str:
    """sha256 over every byte of an environment: world, files, prompt, truth with its order of keys, defects, all reference outputs."""
    out = hashlib.sha256()
    defects = [asdict(defect) for defect in environment.defects]
    for part in (environment.world_id, environment.task_id, environment.prompt, environment.truth, defects):
        out.update(json.dumps(part).encode() + b"\0")
    for stage, tree in (("public", environment.public), *environment.reference):
        out.update(f"{stage}\0{tree_digest(tree)}\0".encode())
    return out.hexdigest()


def digests(triples: Iterable[Sequence]) -> list[str]:
    """The digest of each (generator, seed, tier), built here and now."""
    return [environment_digest(build(name, seed, tier)) for name, seed, tier in triples]


def start(triples: Sequence[Triple], conditions: dict[str, str]) -> subprocess.Popen[str]:
    """A process that builds the triples under these environment variables; give it to `finish`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_", "LANG", "TZ"))}
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env={**kept, **conditions, "PYTHONPATH": root},
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(list(triples)))
    process.stdin.close()
    process.stdin = None
    return process


def finish(process: subprocess.Popen[str]) -> list[str]:
    """What it built, as digests. WorldError with its last words when it failed."""
    out, err = process.communicate()
    if process.returncode:
        raise WorldError(f"building in another process failed: {err[-1000:]}")
    return json.loads(out)
