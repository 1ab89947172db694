"""A downstream patch series that has to be replayed over a newer upstream release.

The world is the new upstream tree, the renames since the old one, and the series with its patches at their current revision. The patches
were made against the old release: upstream has since moved lines, rewritten contexts, taken some changes over and renamed files. Nobody
runs any code: what is judged is the text of the tree and what became of every hunk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.worlds import Defect, Prompt, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.patch_replay import contract, model
from workbench.worlds.generators.patch_replay.contract import SPEC

__all__ = ["SPEC", "Patch", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]

SIZES = {"unit": (6, 8, 8), "small": (9, 16, 14), "full": (14, 34, 24)}  # files, functions a file, patches
PARTS = "auth billing cache codec config cursor driver events export gateway index journal kernel ledger loader metrics parser planner queue router schema session store sync token worker".split()
VERBS = "apply build check close drain fetch flush merge parse push rank read reset scan seal shift split store track trim".split()
NOUNS = "batch block chunk entry frame grant group lease limit nonce offset page quota range retry scope slot stamp state token".split()
PEOPLE = "Ana Bjarne Chidi Dilek Elif Farid Greta Hana".split()


@dataclass(frozen=True)
class Patch:
    """hunks: (path in the old release, start line on the new side, body lines with their sign), in order."""

    name: str
    revision: int
    policy: str
    author: str
    hunks: tuple[tuple[str, int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class World:
    """files: (path, lines) of the new upstream. renames: (old, new). superseded: earlier revisions, only in the mail archive."""

    files: tuple[tuple[str, tuple[str, ...]], ...]
    renames: tuple[tuple[str, str], ...]
    patches: tuple[Patch, ...]
    superseded: tuple[Patch, ...]


def _statement(draw: Draw) -> str:
    a, b, n = draw.choice(NOUNS), draw.choice(NOUNS), draw.integer(2, 999)
    return draw.choice(
        (
            f"    {a} = {draw.choice(VERBS)}_{b}({a}, {n})",
            f"    if {a} > {n}: return {b}",
            f"    {a}.{draw.choice(VERBS)}({b}, limit={n})",
            f"    log.debug('{a} {n}')",
            "    guard(state)",
        )
    )


def _source(draw: Draw, functions: int) -> list[str]:
    lines = [f"from {draw.choice(PARTS)} import {draw.choice(NOUNS)}", ""]
    for i in range(functions):
        lines += [
            f"def {draw.choice(VERBS)}_{draw.choice(NOUNS)}_{i}(state):",
            *(_statement(draw) for _ in range(draw.integer(4, 8))),
            "    return state",
            "",
        ]
    return lines


def _hunk(draw: Draw, text: list[str], at: int) -> tuple[tuple[str, ...], list[str]]:
    """A change of the lines from index `at`, with three lines of context: (body, text after it)."""
    gone = draw.weighted((0, 1, 2), (3, 4, 2))
    new = [
        _statement(draw) + f"  # {draw.hexadecimal(4)}"
        for _ in range(draw.integer(1, 3) if gone < 2 else draw.integer(0, 2))
    ]
    if gone == 0 and not new:
        new = [_statement(draw)]
    body = (
        [" " + x for x in text[at - 3 : at]]
        + ["-" + x for x in text[at : at + gone]]
        + ["+" + x for x in new]
        + [" " + x for x in text[at + gone : at + gone + 3]]
    )
    return tuple(body), text[:at] + new + text[at + gone :]


def _patch(draw: Draw, tree: dict[str, list[str]], name: str, revision: int) -> Patch:
    """A patch of one to three hunks against the tree, which it changes."""
    hunks = []
    for path in sorted(draw.sample(sorted(tree), draw.weighted((1, 2), (3, 1)))):
        spots, text = (
            sorted(draw.sample(range(4, len(tree[path]) - 14, 12), draw.weighted((1, 2, 3), (3, 3, 1)))),
            tree[path],
        )
        moved = 0
        for spot in spots:
            at = spot + moved
            body, after = _hunk(draw, text, at)
            hunks.append((path, at - 2, body))
            moved += len(after) - len(text)
            text = after
        tree[path] = text
    return Patch(name, revision, draw.weighted(("skip-hunk", "drop-patch"), (3, 2)), draw.choice(PEOPLE), tuple(hunks))


def _upstream(draw: Draw, old: dict[str, list[str]], patches: list[Patch]) -> dict[str, list[str]]:
    """What upstream made of the old release: some of our hunks taken over, contexts rewritten, lines moved."""
    tree = {path: list(text) for path, text in old.items()}
    for patch in draw.sample(patches, max(2, len(patches) // 3)):
        for path, start, body in patch.hunks:
            result, _, line, _ = model.fit(tree[path], start, body, 0)
            if result != "applied":
                continue
            place, kind = line - 1, draw.weighted(("take", "context", "break", "leave"), (4, 4, 3, 2))
            if kind == "take":
                tree[path][place : place + len(model.side(body, " -"))] = model.side(body, " +")
            elif kind == "context":  # the outermost context line only: fuzz can cope
                tree[path][place] = _statement(draw) + "  # upstream"
            elif kind == "break" and (minus := next((i for i, x in enumerate(body) if x[0] != " "), None)):
                tree[path][place + minus] = _statement(draw) + "  # upstream"
    for path in sorted(tree):
        for _ in range(draw.integer(0, 2)):
            at = draw.integer(1, 3) if draw.chance(0.6) else draw.integer(4, len(tree[path]) - 1)
            tree[path][at:at] = [
                f"# {draw.choice(VERBS)} {draw.choice(NOUNS)} {draw.hexadecimal(6)}" for _ in range(draw.integer(1, 5))
            ]
    return tree


def make(draw: Draw, tier: str) -> World:
    count, functions, length = SIZES[tier]
    mark, parts = draw.hexadecimal(4), draw.sample(PARTS, count)
    old = {
        f"src/{part}_{mark if i % 2 else 'core'}.py": _source(draw.fork("file", i), functions)
        for i, part in enumerate(parts)
    }
    for attempt in range(40):
        own, mine = draw.fork("attempt", attempt), {path: list(text) for path, text in old.items()}
        patches, before = [], []
        for i in range(length):
            name, revision = (
                f"{draw.fork('name', i).choice(VERBS)}-{draw.fork('noun', i).choice(NOUNS)}-{mark}{i}",
                own.weighted((1, 2, 3), (5, 2, 1)),
            )
            for earlier in range(1, revision):  # what was sent first, and changed since
                before.append(
                    _patch(own.fork(i, earlier), {path: list(text) for path, text in mine.items()}, name, earlier)
                )
            patches.append(_patch(own.fork(i, revision), mine, name, revision))
        tree = _upstream(own.fork("upstream"), old, patches)
        renames = tuple((p, p.replace("src/", f"src/{own.choice(NOUNS)}/")) for p in sorted(own.sample(sorted(old), 2)))
        files = tuple(sorted((dict(renames).get(path, path), tuple(text)) for path, text in tree.items()))
        world = World(files, renames, tuple(patches), tuple(before))
        if before and len({r["result"] for r in model.replay(world)[1]}) >= 4:
            return world
    raise WorldError("no series of this seed meets enough kinds of conflict")


def check(world: World) -> None:
    """Unique names; every hunk has a change, three lines of context before it, and a file to go to."""
    paths, moved = {path for path, _ in world.files}, dict(world.renames)
    if len(paths) != len(world.files) or len({p.name for p in world.patches}) != len(world.patches):
        raise WorldError("a file or a patch stands twice")
    for patch in (*world.patches, *world.superseded):
        for path, start, body in patch.hunks:
            if (
                moved.get(path, path) not in paths
                or start < 1
                or not model.side(body, "+-")
                or [b[0] for b in body[:3]] != [" "] * 3
            ):
                raise WorldError(f"{patch.name} has a hunk without place or change")


def workflow(world: World) -> Workflow:
    hunks = sum(len(p.hunks) for p in world.patches)
    return Workflow((
        Stage("restore-series", "restore", len(world.patches) + len(world.superseded)),
        Stage("place-hunks", "apply", hunks * 3, ("restore-series",)),
        Stage("settle-patches", "judge", len(world.patches), ("place-hunks",)),
        Stage("write-tree", "build", len(world.files), ("settle-patches",)),
        Stage("report", "report", len(world.files) + len(world.patches), ("write-tree", "settle-patches")),
    ))  # fmt: skip


def diff(patch: Patch) -> str:
    """The patch as text: header, then unified hunks."""
    out = [
        f"From: {patch.author} <{patch.author.lower()}@downstream.example>",
        f"Subject: [PATCH v{patch.revision}] {patch.name}",
        f"Conflict-Policy: {patch.policy}",
        "---",
    ]
    last, moved = "", 0
    for path, start, body in patch.hunks:
        if path != last:
            out += [f"--- a/{path}", f"+++ b/{path}"]
            last, moved = path, 0
        old, new = len(model.side(body, " -")), len(model.side(body, " +"))
        out += [f"@@ -{start - moved},{old} +{start},{new} @@", *body]
        moved += new - old
    return "\n".join(out) + "\n"


def _series(world: World) -> bytes:
    rows = [
        (i, p.name, p.revision, p.policy, hashlib.sha256(diff(p).encode()).hexdigest())
        for i, p in enumerate(world.patches, 1)
    ]
    return csv_table.table(contract.SERIES, rows)


def render(world: World) -> dict[str, bytes]:
    tree = {f"input/upstream/{path}": ("\n".join(lines) + "\n").encode() for path, lines in world.files}
    tree |= {f"input/patches/{p.name}.patch": diff(p).encode() for p in world.patches}
    mails = sorted((*world.superseded, *world.patches), key=lambda p: (p.revision, p.name))
    tree["input/patches/series.csv"] = _series(world)
    tree["input/mail/archive.mbox"] = "".join(f"From series-{i:03d}\n{diff(p)}\n" for i, p in enumerate(mails)).encode()
    tree["input/upstream_renames.csv"] = ("old,new\n" + "".join(f"{a},{b}\n" for a, b in world.renames)).encode()
    return tree


def _parse(text: str) -> Patch:
    head = dict(re.findall(r"^(From|Subject|Conflict-Policy): (.*)$", text, re.M))
    revision, name = re.fullmatch(r"\[PATCH v(\d+)\] (.*)", head["Subject"]).groups()
    hunks, path = [], ""
    for line in text.split("\n---\n", 1)[1].splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif line.startswith("@@ "):
            hunks.append((path, int(re.search(r"\+(\d+)", line)[1]), []))
        elif hunks and line and not line.startswith("--- a/"):
            hunks[-1][2].append(line)
    return Patch(
        name,
        int(revision),
        head["Conflict-Policy"],
        head["From"].split(" ")[0],
        tuple((p, s, tuple(b)) for p, s, b in hunks),
    )


def recover(tree: Mapping[str, bytes]) -> World:
    """The world back from its clean files."""
    files = tuple(
        (p[15:], tuple(tree[p].decode()[:-1].split("\n"))) for p in sorted(tree) if p.startswith("input/upstream/")
    )
    rows = csv_table.rows(tree["input/patches/series.csv"])
    patches = tuple(_parse(tree[f"input/patches/{row[1]}.patch"].decode()) for row in rows)
    current = {(p.name, p.revision) for p in patches}
    mails = [
        _parse(m) for m in re.split(r"^From series-\d+\n", tree["input/mail/archive.mbox"].decode(), flags=re.M)[1:]
    ]
    renames = tuple(tuple(line.split(",")) for line in tree["input/upstream_renames.csv"].decode().splitlines()[1:])
    order = {p.name: i for i, p in enumerate(patches)}
    before = sorted(
        (m for m in mails if (m.name, m.revision) not in current), key=lambda m: (order[m.name], m.revision)
    )
    return World(tuple(sorted(files)), renames, patches, tuple(before))


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return contract.plan(world, draw, render(world))


def truth(world: World, defects: tuple[Defect, ...]) -> dict:
    return contract.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return contract.prompt(world)
