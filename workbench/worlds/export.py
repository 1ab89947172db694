"""An environment as a Harbor task directory, so that admission, calibration and training see no difference.

instruction.md            the prompt
task.toml                 schema 1.4; [metadata.workbench.world] names generator, revision, seed, tier, kinds
environment/              Dockerfile and the corrupted input tree at /app/input
solution/                 solve.sh runs reference.py on what an agent sees; lib/ holds the shared formats
tests/                    test.sh runs grade.py; verify.py, progress.py, progress.json, truth.json, hidden_suite.json, lib/
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.tasks.limits import LIMITS_TOML
from workbench.tasks.progress import Contract, Node
from workbench.worlds import Environment, GeneratorModules, Tree, WorldError
from workbench.worlds.task_files.grade import digest

FILES = Path(__file__).with_name("task_files")
FORMATS = Path(__file__).with_name("formats")
_SHARED = "workbench.worlds.formats"
_PYTHON = '"$([ -x /opt/verifier/bin/python ] && echo /opt/verifier/bin/python || echo python3)"'
TEST_SH = f"#!/bin/bash\n# Grades /app/output: reward.json, ctrf.json. Plain Python, so that a grade costs milliseconds.\nexec {_PYTHON} -I -S /tests/grade.py\n"
SOLVE_SH = (
    "#!/bin/bash\n# The reference solution: input/ -> output/.\nset -eu\ncd /app\npython3 -I -S /solution/solve.py\n"
)


def export_environment(environment: Environment, target: str | Path, *, name: str | None = None) -> Path:
    """Write the task to `target`, a folder that is not there yet or is empty. Returns it.

    name: Harbor's "org/name"; default "worlds/<task id>". The same environment always gives the same bytes. Raises FileExistsError.
    """
    from workbench.worlds.catalog import get

    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} is not an empty folder; name a new one")
    modules = get(environment.spec.name)
    target.mkdir(parents=True, exist_ok=True)
    _write(target / "instruction.md", environment.prompt)
    _write(target / "task.toml", _toml(environment, name or f"worlds/{environment.task_id}"))
    _write_environment(environment, target / "environment")
    _write_solution(environment, modules, target / "solution")
    _write_tests(environment, modules, target / "tests")
    return target


def contract(modules: GeneratorModules) -> Contract:
    """The progress contract of a generator's tasks."""
    nodes = tuple(Node(name, weight, tuple(requires)) for name, weight, requires in modules.progress.NODES)
    return Contract(nodes, truth="truth.json")


def hidden_suite(environment: Environment, modules: GeneratorModules) -> dict[str, Any]:
    """What the gates ran at generation and a grader keeps: digests of the stale outputs (they must fail), names of the
    meaning-preserving rewrites (they must not change a grade); Tev §2.1, stage 6."""
    stale = modules.hidden.stale(environment.world, environment.defects)
    rewrites = modules.hidden.rewrites(environment.output)
    return {"stale": {name: digest(dict(tree)) for name, tree in sorted(stale.items())}, "rewrites": sorted(rewrites)}


def _write_environment(environment: Environment, folder: Path) -> None:
    spec = environment.spec
    lines = ["FROM python:3.13-slim", "WORKDIR /app"]
    if spec.python_packages:
        lines.append(f"RUN pip install --no-cache-dir {' '.join(spec.python_packages)}")
    _write(folder / "Dockerfile", "\n".join([*lines, "COPY input/ /app/input/"]) + "\n")
    _write_tree(environment.public, folder)


def _write_solution(environment: Environment, modules: GeneratorModules, folder: Path) -> None:
    _write(folder / "solve.sh", SOLVE_SH)
    source = _source(modules.reference)
    shutil.copyfile(FILES / "solve.py", _ready(folder / "solve.py"))
    _write(folder / "reference.py", source)
    _write_lib([source], folder / "lib", {data: path for path, data in environment.public.items()})


def _write_tests(environment: Environment, modules: GeneratorModules, folder: Path) -> None:
    _write(folder / "test.sh", TEST_SH)
    shutil.copyfile(FILES / "grade.py", _ready(folder / "grade.py"))
    sources = [_source(modules.verify), _source(modules.progress)]
    _write(folder / "verify.py", sources[0])
    _write(folder / "progress.py", sources[1])
    _write_json(folder / "truth.json", environment.truth)
    _write_json(folder / "hidden_suite.json", hidden_suite(environment, modules))
    _write_json(folder / "progress.json", contract(modules).to_json())
    _write_lib(sources, folder / "lib")


def _source(module: Any) -> str:
    return Path(module.__file__).read_text(encoding="utf-8")


_SHIPPED = (
    '"""This environment ships the module as {path}."""\n\nimport runpy\n\nglobals().update(runpy.run_path("{path}"))\n'
)


def _write_lib(sources: list[str], lib: Path, shipped: Mapping[bytes, str] = MappingProxyType({})) -> None:
    """The shared formats that these sources import, and what those import, below empty packages of the same names.

    shipped: bytes -> path of what the agent has too: the solution reads it there, or it would stand in the image as a piece of it."""
    todo, done = set().union(*map(_formats_used, sources)), set()
    while todo:
        name = todo.pop()
        done.add(name)
        text = (FORMATS / f"{name}.py").read_text(encoding="utf-8")
        place = shipped.get(text.encode())
        own = text if place is None else _SHIPPED.format(path=place)
        _write(lib / "workbench" / "worlds" / "formats" / f"{name}.py", own)
        todo |= _formats_used(text) - done
    if done:
        for package in ("workbench", "workbench/worlds", "workbench/worlds/formats"):
            _write(lib / package / "__init__.py", "")


def _formats_used(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == _SHARED:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_SHARED}."):
            found.add(str(node.module).removeprefix(f"{_SHARED}."))
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix(f"{_SHARED}.") for a in node.names if a.name.startswith(f"{_SHARED}.")}
    if missing := [name for name in found if not (FORMATS / f"{name}.py").is_file()]:
        raise WorldError(f"imports {missing} from {_SHARED}, which holds no such module")
    return found


def _toml(environment: Environment, name: str) -> str:
    """Values are JSON strings, which are TOML strings too."""
    spec = environment.spec
    kinds = "" if environment.kinds is None else f"kinds = {json.dumps(list(environment.kinds))}\n"
    return f"""schema_version = "1.4"

[task]
name = {json.dumps(name)}
version = "1.0.{spec.revision}"
description = {json.dumps(f"{spec.title} ({environment.tier} tier)")}
keywords = ["latent-world", {json.dumps(spec.domain)}]

[metadata]
difficulty = {json.dumps({"micro": "easy", "unit": "medium"}.get(environment.tier, "hard"))}

[metadata.workbench.world]
generator = {json.dumps(spec.name)}
revision = {spec.revision}
seed = {environment.seed}
tier = {json.dumps(environment.tier)}
{kinds}
{LIMITS_TOML}"""


def _write_tree(tree: Tree, folder: Path) -> None:
    for name, data in tree.items():
        if name.startswith("/") or ".." in name.split("/"):
            raise WorldError(f"the public tree names {name!r}, which leads out of it")
        _ready(folder / name).write_bytes(data)


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    _write(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def _write(path: Path, text: str) -> None:
    _ready(path).write_bytes(text.encode())
    path.chmod(0o755 if path.suffix == ".sh" else 0o644)  # whatever the umask


def _ready(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
