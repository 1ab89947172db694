"""Makes docs/reference/ from docstrings: one page a room, with its modules and what is public in them. --check: exit 1 when it is not current.

Read from the source, so nothing is imported and no optional dependency is needed. Public: no leading underscore, with a docstring.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "workbench"
FOLDER = ROOT / "docs" / "reference"
HEAD = """# Reference

Made by `python scripts/make_reference.py` from the docstrings, one page a room; `help(name)` in Python shows each of them whole. What
belongs into which room is told in [architecture](../architecture.md).
"""
SKIPPED = (
    "task_files",
    "proposer/ablation_samples",
    "proposer/skills",
)  # programs that are copied into tasks and sandboxes
BRIEF = ("worlds/generators/",)  # of these, what a module is for, and not what it defines


def main(arguments: list[str]) -> int:
    wanted = pages()
    if "--check" in arguments:
        there = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.md")}
        stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        if stale:
            print(f"{FOLDER}: {', '.join(stale)} not current: run python scripts/make_reference.py", file=sys.stderr)
        return int(bool(stale))
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def pages(package: Path = PACKAGE) -> dict[str, str]:
    """{file name: text}: README.md with the list of rooms, and a page each; "package.md" holds the modules outside of rooms."""
    rooms: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for path in modules(package):
        inside = path.relative_to(package)
        room = inside.parts[0] if len(inside.parts) > 1 else "package"
        name = ".".join([package.name, *inside.with_suffix("").parts]).removesuffix(".__init__")
        rooms.setdefault(room, []).extend(module(path, name, brief=inside.as_posix().startswith(BRIEF)))
        if path.name == "__init__.py" and len(inside.parts) <= 2:
            told[room] = paragraph(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
    kept = {room: lines for room, lines in rooms.items() if lines}
    index = "\n".join(f"- [{room}]({room}.md): {told.get(room, '')}" for room in kept)
    titles = {room: package.name if room == "package" else f"{package.name}.{room}" for room in kept}
    texts = {f"{room}.md": f"# {titles[room]}\n" + "\n".join(lines).rstrip() + "\n" for room, lines in kept.items()}
    return {"README.md": f"{HEAD}\n{index}\n", **texts}


def modules(package: Path) -> list[Path]:
    """Every module with a docstring: those of the package itself, then room by room."""
    found = [p for p in package.rglob("*.py") if not any(skip in p.relative_to(package).as_posix() for skip in SKIPPED)]
    found = [p for p in found if not any(part.startswith(("_", ".")) for part in p.relative_to(package).parts[:-1])]
    found = [p for p in found if p.name == "__init__.py" or not p.name.startswith("_")]
    return sorted(found, key=lambda p: (p.parent != package, p.parent.as_posix(), p.name != "__init__.py", p.name))


def module(path: Path, name: str, *, brief: bool = False) -> list[str]:
    """A module's heading, the first paragraph of its docstring, and a line for each public name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = ast.get_docstring(tree)
    lines = [] if brief else list(entries(tree))
    if not told or (not lines and not brief and path.name != "__init__.py"):
        return []
    return [f"\n## `{name}`\n", paragraph(told), *([""] if lines else []), *lines]


def entries(tree: ast.Module) -> Iterator[str]:
    """ "- `signature`: first sentence" of functions and classes, and of the public methods of classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and public(node):
            yield f"- `{signature(node)}`: {paragraph(ast.get_docstring(node) or '')}"
            for item in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and public(item):
                    yield f"  - `.{signature(item)}`: {paragraph(ast.get_docstring(item) or '')}"


def public(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return not node.name.startswith("_") and bool(ast.get_docstring(node))


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """`name(a, b=1) -> T`; of a class its bases."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(b) for b in node.bases)
        return f"class {node.name}" + (f"({bases})" if bases else "")
    arguments = ast.unparse(node.args)
    arguments = arguments.removeprefix("self, ").removeprefix("cls, ") if arguments not in ("self", "cls") else ""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){result}"


def paragraph(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.strip().split("\n\n")[0].split())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
