"""Role independence (Tev A.6): reference, alternative, verifier and progress scorer share no code but a stated allowlist.

From the source: every import of a role is followed, and a role may reach only the standard library and `workbench.worlds.formats`.
Ways of reaching code without an import are refused. At run time: each role is run in a process of its own that reports what modules of
this package came in and what files, processes and connections were opened.
"""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from pathlib import Path

from workbench.worlds import Environment, WorldError
from workbench.worlds.catalog import Generator
from workbench.worlds.gate_runtime import PROGRAM

JUDGED = ("reference", "alternative", "verify", "progress")
SHARED = "workbench.worlds.formats"  # the stated allowlist, besides the standard library
# Standard library that runs or fetches other code, or leaves the process.
FORBIDDEN = frozenset(
    "importlib imp runpy pkgutil zipimport code codeop inspect gc ctypes cffi subprocess multiprocessing concurrent socket ssl http "
    "urllib ftplib smtplib asyncio builtins pty os.system pickle shelve shutil tempfile threading random secrets".split()
)
GRADERS_TOO = frozenset(("marshal",))
BUILTINS = frozenset(
    "exec eval compile __import__ open input breakpoint globals vars __builtins__ __loader__ __spec__".split()
)
ATTRIBUTES = frozenset(
    "__globals__ __code__ __subclasses__ __builtins__ __loader__ __import__ f_globals f_back modules meta_path _getframe system popen "
    "fork execv execve spawnv open_code read_bytes read_text".split()
)
SAME_CODE = 5  # statements of a function that two roles hold word for word


def role_independence(generator: Generator, environment: Environment | None = None) -> list[str]:
    """What is wrong with the roles' closures; with an environment also what they did at run time. Remembered per generator."""
    wrong = list(_static(generator.name, generator.folder))
    if environment is not None and not wrong:
        wrong += _running(generator, environment)
    return wrong


@functools.cache
def _static(name: str, folder: Path) -> tuple[str, ...]:
    wrong: list[str] = []
    trees = {}
    for role in JUDGED:
        source = (folder / f"{role}.py").read_text(encoding="utf-8")
        trees[role] = ast.parse(source)
        wrong += _reaches(role, trees[role], name)
        wrong += _tricks(role, trees[role])
    wrong += _pasted(trees)
    outside = ast.parse((folder / "world.py").read_text(encoding="utf-8"))
    wrong += [
        f"world.py line {line} imports {module}: the world must not depend on those who solve or grade it"
        for module, line in _imports(outside)
        if any(module.startswith(f"workbench.worlds.generators.{name}.{role}") for role in (*JUDGED, "hidden"))
    ]
    return tuple(wrong)


def _imports(tree: ast.AST) -> list[tuple[str, int]]:
    """(module, line) of every import, lazy ones too; `from package import module` counts as both."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found += [(f"{base}.{alias.name}", node.lineno) for alias in node.names]
    return found


def _reaches(role: str, tree: ast.AST, name: str) -> list[str]:
    """Imports outside of the allowlist. The formats' own imports are followed."""
    wrong = []
    for module, line in _imports(tree):
        top = module.split(".")[0]
        if module == SHARED or module.startswith(f"{SHARED}."):
            wrong += [f"{role}.py line {line}: {text}" for text in _formats()]
        elif module.startswith("."):
            wrong.append(f"{role}.py line {line}: a relative import of {module}: roles share nothing but {SHARED}")
        elif f"generators.{name}." in module:
            other = module.split(f"generators.{name}.")[1].split(".")[0]
            wrong.append(f"{role}.py line {line} imports {other}: the code closures of the roles must be disjoint")
        elif top not in sys.stdlib_module_names:
            wrong.append(f"{role}.py line {line} imports {module}: only the standard library and {SHARED} are allowed")
        elif top in FORBIDDEN or (top in GRADERS_TOO and role in ("verify", "progress")):
            wrong.append(
                f"{role}.py line {line} imports {top}, which runs other code or leaves the process: do without it"
            )
    return wrong


@functools.cache
def _formats() -> tuple[str, ...]:
    """What in workbench.worlds.formats reaches beyond the standard library and itself."""
    import workbench.worlds.formats as shared

    wrong = []
    for file in sorted(Path(shared.__file__).parent.glob("*.py")):
        for module, line in _imports(ast.parse(file.read_text(encoding="utf-8"))):
            known = module.split(".")[0] in sys.stdlib_module_names or module.startswith(SHARED)
            if not known:
                wrong.append(f"{SHARED}.{file.stem} line {line} imports {module}: shared formats know no world")
    return tuple(wrong)


def _tricks(role: str, tree: ast.AST) -> list[str]:
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            wrong.append(f"{role}.py line {node.lineno} uses {node.id}: roles read only the tree that they are given")
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            wrong.append(
                f"{role}.py line {node.lineno} uses .{node.attr}: roles reach no code and no file by the back door"
            )
    return wrong


def _pasted(trees: dict[str, ast.Module]) -> list[str]:
    """Functions that two roles hold word for word: a mistake in one is inherited by the other, as by an import."""
    seen: dict[str, tuple[str, str]] = {}
    wrong = []
    for role, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if sum(isinstance(part, ast.stmt) for line in body for part in ast.walk(line)) < SAME_CODE:
                continue
            text = ast.dump(ast.Module(body, []))
            other, function = seen.setdefault(text, (role, node.name))
            if other != role:
                wrong.append(
                    f"{role}.py's {node.name}() is {other}.py's {function}() word for word: "
                    f"write it another way, or move what knows no world to {SHARED}"
                )
    return wrong


_RAN: dict[tuple[str, Path], tuple[str, ...]] = {}


def _running(generator: Generator, environment: Environment) -> tuple[str, ...]:
    key = (generator.name, generator.folder)
    if key not in _RAN:
        _RAN[key] = _observe(generator, environment)
    return _RAN[key]


def _observe(generator: Generator, environment: Environment) -> tuple[str, ...]:
    """Run the four roles, each in its own process, and judge what they report."""
    package = Path(sys.modules["workbench"].__file__ or "").parent.parent
    question = {
        "name": generator.name,
        "place": str(generator.folder.parent),
        "public": _hex(environment.public),
        "output": _hex(environment.output),
        "truth": environment.truth,
        "roles": JUDGED,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", PROGRAM, str(package)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise WorldError(f"the run-time check of role independence failed: {done.stderr[-500:]}")
    wrong = []
    for role, report in json.loads(done.stdout).items():
        own = f"workbench.worlds.generators.{generator.name}.{role}"
        strange = [m for m in report["modules"] if m != own and m != SHARED and not m.startswith(f"{SHARED}.")]
        if strange:
            wrong.append(f"{role}.py brought in {', '.join(strange)} while it ran: closures must be disjoint")
        wrong += [
            f"{role}.py did {event} while it ran: roles read only the tree that they are given"
            for event in report["events"]
        ]
        if report["error"]:
            wrong.append(f"{role}.py run alone raised {report['error']}: it must work without the other roles")
    return tuple(wrong)


def _hex(tree: object) -> dict[str, str]:
    return {path: data.hex() for path, data in tree.items()}  # type: ignore[attr-defined]
