"""What the models of the data ablations are told, and the agent's view of a task as text."""

from __future__ import annotations

from pathlib import Path

SHOWN_FILE, SHOWN = 4_000, 60_000  # characters of one input file, and of all

_FORM = """Answer with files only, each exactly like this:
<file path="{path}">
...
</file>"""
_TESTS = """Checks are pytest functions in tests/test_*.py: deterministic, independent of each other, standard library only, absolute paths.
The reward is the share of checks that pass; the task counts as solved when all do. tests/test.sh is ours, don't write it.
"""

PUBLIC_VIEW = f"""You write the verifier of a task for a terminal agent. You are shown what the agent sees, its instruction and its input files, and
nothing else: there is no answer key. The agent works in /app; the inputs lie in /app/input, its results in /app/output.
Write checks that accept every correct result and refuse every other: recompute from the inputs what you can, check schemas and consistency.
{_TESTS}{_FORM.replace("{path}", "tests/test_outputs.py")}"""

PROMPT_FIRST = f"""You make a training task for a terminal agent in four steps: the prompt, the input files, the verifier, the solution. You will be asked
for one step at a time. The agent works in /app with Python's standard library, bash and coreutils, without network.
{_FORM.replace("{path}", "PATH")}"""

# step -> (question, folders that may be written, what must be there)
STAGES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "prompt": (
        "Step 1, the prompt. Invent a task of the field {domain} that takes several dependent steps over input files below /app/input and ends in "
        "files below /app/output. Say roles of the inputs, names and schemas of the outputs, ordered requirements, and which source wins "
        "where they disagree. Write instruction.md.",
        ("instruction.md",),
        "instruction.md",
    ),
    "inputs": (
        "Step 2, the inputs. Write the files that your prompt names, below environment/files/input/ (they are copied to /app/input).",
        ("environment/files/",),
        "environment/files/",
    ),
    "verifier": (f"Step 3, the verifier.\n{_TESTS}Write tests/test_outputs.py.", ("tests/",), "tests/test_"),
    "solution": (
        "Step 4, the solution: solution/solve.sh is run in /app and leaves outputs with which every check passes.",
        ("solution/",),
        "solution/solve.sh",
    ),
}

EXAMPLE = "\n\nAn earlier prompt, for its form only; yours must be about something else:\n{example}\n"


def public_view(task: Path) -> str:
    """What an agent sees of the task in this folder: the instruction, and every file that its image starts with."""
    parts = [f"The instruction:\n{(task / 'instruction.md').read_text(encoding='utf-8')}\n\nThe files:"]
    root, left = task / "environment", SHOWN
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        name = path.relative_to(root).as_posix()
        if name == "Dockerfile":
            continue
        shown = _shown(path, min(SHOWN_FILE, left))
        left -= len(shown)
        parts.append(
            f"--- /app/{name} ({path.stat().st_size} bytes)\n{shown}" if shown else f"--- /app/{name} (not shown)"
        )
    return "\n".join(parts)


def _shown(path: Path, most: int) -> str:
    with path.open("rb") as file:
        data = file.read(most)
    if not data:
        return ""
    if b"\0" in data[:512]:
        return data[:32].hex(" ")
    return data.decode("utf-8", "replace")
