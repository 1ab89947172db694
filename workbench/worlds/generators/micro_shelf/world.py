"""A clerk's note asks for three lists, each with a remark: the smallest world, for models of a few million weights.

The note is one short line with closed words in fixed places, so that a tiny policy has only to copy a name and to choose a
filter by a remark; the rest is left to the shell. Still a world like all: drawn, corrupted by declared operators, exactly
graded, with a potential. The `micro` tier is ours, Tev's ladder starts at `unit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow, WorldError
from workbench.worlds.draw import Draw

NAMES = ("amber", "birch", "cedar", "dune", "elm", "fir", "grove", "hazel", "iris", "jade", "kelp", "lime",
         "maple", "nut", "oak", "pine", "quartz", "reed", "sage", "thyme", "umber", "vine", "willow", "yew")  # fmt: skip
JOBS = ("top", "seal", "order")
REMARKS = ("clean", "stale", "double", "void")
KIND = {"stale": "stale_copy", "double": "duplicate_records", "void": "orphan_records"}
STOCK = (
    "bolt",
    "cork",
    "drum",
    "felt",
    "glue",
    "hook",
    "ink",
    "jar",
    "knob",
    "lamp",
    "mug",
    "nail",
    "oar",
    "pin",
    "rope",
    "sack",
)

_TEXT = {"description": "plain text, a line end after each line"}
SPEC = Spec(
    name="micro_shelf",
    revision=1,
    domain="9.2",
    title="shelf",
    summary="Three lists of a small stock, each with a declared flaw, filtered and written as a note asks",
    outputs=(
        Output("output/top.txt", "text", "the first three lines of its list", _TEXT),
        Output("output/seal.txt", "text", "what md5sum prints for its list read from standard input", _TEXT),
        Output("output/order.txt", "text", "its list in descending byte order", _TEXT),
    ),
    tiers=("micro",),
    curriculum_layer="foundation",
    workflow_stages=("inspect", "filter", "digest"),
    tools=("bash", "coreutils", "python3"),
    artifact_roles=("records", "note"),
    relation_types=("precedence",),
    source_kind="stock lists",
)


@dataclass(frozen=True)
class Job:
    name: str  # of the list
    remark: str


@dataclass(frozen=True)
class World:
    """jobs: one for each of JOBS, in order. lists: name -> lines; those of the jobs and some that nobody asks for."""

    jobs: tuple[Job, ...]
    lists: tuple[tuple[str, tuple[str, ...]], ...]


def make(draw: Draw, tier: str) -> World:
    names = draw.sample(NAMES, 5)
    remarks = [draw.choice(REMARKS) for _ in JOBS]
    if all(remark == "clean" for remark in remarks):  # a world without any flaw asks for nothing that is its own
        remarks[draw.integer(0, len(JOBS) - 1)] = draw.choice(REMARKS[1:])
    jobs = tuple(Job(name, remark) for name, remark in zip(names, remarks, strict=False))
    return World(jobs, tuple((name, _lines(draw.fork("list", name))) for name in sorted(names)))


def _lines(draw: Draw) -> tuple[str, ...]:
    lines = [f"{draw.choice(STOCK)} {draw.hexadecimal(6)}" for _ in range(draw.integer(6, 12))]
    return tuple(dict.fromkeys(lines))


def check(world: World) -> None:
    lists = dict(world.lists)
    if [job.name in lists and job.remark in REMARKS for job in world.jobs] != [True] * len(JOBS):
        raise WorldError(f"every job needs a list and a known remark: {world.jobs}")
    for name, lines in world.lists:
        if len(lines) < 4 or len(set(lines)) != len(lines) or any("void" in line for line in lines):
            raise WorldError(f"list {name} needs four different lines or more, none of them void")


def workflow(world: World) -> Workflow:
    lines = {name: len(found) for name, found in world.lists}
    work = [lines[job.name] for job in world.jobs]
    stages = [Stage("inspect", "inspect", len(JOBS))]
    kinds = {"seal": "digest"}
    stages += [Stage(job, kinds.get(job, "filter"), n, ("inspect",)) for job, n in zip(JOBS, work, strict=True)]
    return Workflow(tuple(stages))


def _place(world: World, name: str) -> str:
    stale = any(job.name == name and job.remark == "stale" for job in world.jobs)
    return f"input/new/{name}.txt" if stale else f"input/{name}.txt"


def render(world: World) -> dict[str, bytes]:
    note = " ".join(f"{what} {job.name} {job.remark}" for what, job in zip(JOBS, world.jobs, strict=True))
    lists = {_place(world, name): "".join(f"{line}\n" for line in lines).encode() for name, lines in world.lists}
    return {"input/note.txt": f"{note}\n".encode(), **lists}


def recover(tree: Tree) -> World:
    words = tree["input/note.txt"].decode().split()
    jobs = tuple(Job(words[at + 1], words[at + 2]) for at in range(0, len(words), 3))
    lists = {path.rsplit("/", 1)[1].removesuffix(".txt"): tuple(data.decode().splitlines())
             for path, data in tree.items() if path != "input/note.txt"}  # fmt: skip
    return World(jobs, tuple(sorted(lists.items())))


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    """One defect for each job whose remark names one, on its own list."""
    lists = dict(world.lists)
    return tuple(
        _defect(world, job, lists[job.name], draw.fork(job.name)) for job in world.jobs if job.remark != "clean"
    )


def _defect(world: World, job: Job, lines: tuple[str, ...], draw: Draw) -> Defect:
    path, rows = _place(world, job.name), len(lines) - 1  # operators count from the second line
    some = sorted(draw.sample(range(rows), 2))
    if job.remark == "stale":
        params: dict[str, object] = {"copy": f"input/{job.name}.txt", "drop": some}
    elif job.remark == "double":
        params = {"rows": some, "places": [row + 1 for row in some]}
    else:
        params = {"records": [{lines[0]: f"void {draw.hexadecimal(6)}"} for _ in some], "places": [0, *some[1:]]}
    return Defect(KIND[job.remark], path, params, f"remark {job.remark}")


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, object]:
    import hashlib

    lists = dict(world.lists)
    top, seal, order = (lists[job.name] for job in world.jobs)
    digest = hashlib.md5("".join(f"{line}\n" for line in seal).encode()).hexdigest()
    return {"top": list(top[:3]), "seal": [f"{digest}  -"], "order": sorted(order, reverse=True)}


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    inputs: Mapping[str, str] = {
        "input/note.txt": "one line: for each of top, seal and order the name of its list and a remark",
        "input/": "the lists, one NAME.txt each; a renewed list stands in input/new/ instead",
    }
    return Prompt(
        goal="A clerk's note asks for three things from a small stock. Each comes from the list that the note names, read as its remark says.",
        inputs=inputs,
        requirements=(
            "top.txt: the first three lines of the list that the note names after top.",
            "seal.txt: the line that `md5sum` prints when it reads that list from standard input.",
            "order.txt: the lines of that list, sorted in descending byte order.",
        ),
        authority=(
            "Remark clean: the list is right as it is.",
            "Remark stale: the list in input/ is out of date; take the one of the same name in input/new/.",
            "Remark double: lines that repeat the line before them do not count.",
            "Remark void: lines that hold the word void do not count.",
        ),
    )
