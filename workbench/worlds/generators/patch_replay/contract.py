"""The public contract of the patch replay, its defect plan and sealed answers."""

from __future__ import annotations

import hashlib
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec
from workbench.worlds.draw import Draw
from workbench.worlds.generators.patch_replay import model

SERIES = ("position", "patch", "revision", "policy", "sha256")
POLICIES = {"skip-hunk": ["skip", "HUNK"], "drop-patch": ["drop", "WHOLE"]}
PATCHES = {
    "position": "integer",
    "patch": "string",
    "status": "string",
    "hunks_applied": "integer",
    "hunks_present": "integer",
    "hunks_rejected": "integer",
}
SPEC = Spec(
    name="patch_replay", revision=1, domain="9.1", title="Replaying a patch series over a new release",
    summary="Replay a downstream series of unified diffs over a newer upstream tree, with declared rules for every hunk that doesn't fit.",
    outputs=(
        Output(
            "output/hunks.jsonl", "jsonl", "one line a hunk, in the order of the series",
            {"patch": "string", "hunk": "integer", "file": "string", "result": "string", "line": "integer", "offset": "integer", "fuzz": "integer"},
        ),
        Output("output/patches.csv", "csv", "what became of every patch, by position", PATCHES),
        Output("output/tree.json", "json", "every file of the final tree: its path in the new release, like src/x.py, and its whole text", {"<path>": "string"}),
        Output(
            "output/report.json", "json", "the final tree against upstream",
            {"files_changed": ["string"], "lines": "integer", "sha256": {"<path>": "string"}, "by_status": {"<status>": "integer"}, "needs_review": ["string"]},
        ),
    ),
    curriculum_layer="mastery", workflow_stages=("restore", "apply", "judge", "build", "report"), tools=("python3",),
    artifact_roles=("source", "patch", "series", "mail-archive", "rename-table"), relation_types=("order", "checksum", "revision", "rename"),
    source_kind="source maintenance",
)  # fmt: skip


def plan(world: Any, draw: Draw, tree: dict[str, bytes]) -> tuple[Defect, ...]:
    """A damaged patch always; up to five more defects of patches and the series table."""
    series, count = "input/patches/series.csv", len(world.patches)
    rotten, cut, other = (f"input/patches/{p.name}.patch" for p in draw.sample(world.patches, 3))
    # Only digits and letters of the last line flip, to other ones: the file stays text.
    at = next(i for i in range(len(tree[rotten]) - 1, 0, -1) if tree[rotten][i : i + 1].isalnum())
    ghost = {
        "position": str(count + draw.integer(1, 9)),
        "patch": f"lost-{draw.choice(('fix', 'idea', 'hack'))}-{draw.hexadecimal(4)}",
        "revision": "1",
        "policy": "skip-hunk",
        "sha256": draw.hexadecimal(64),
    }
    older = world.superseded
    offered = {
        "policy": Defect("category_drift", series, {"column": "policy", "rows": sorted(draw.sample(range(count), count // 2)), "mapping": POLICIES}, "policies spelled otherwise"),
        "blank": Defect("whitespace_noise", series, {"column": "patch", "rows": sorted(draw.sample(range(count), count // 3))}, "blanks round names"),
        "twice": Defect("duplicate_records", series, {"rows": sorted(draw.sample(range(count), 2))}, "entries listed twice"),
        "ghost": Defect("orphan_records", series, {"records": [ghost], "places": [draw.integer(0, count // 2)]}, "an entry of a patch that never was"),
        "old": Defect("stale_copy", other, {"copy": other.replace(".patch", "-rediff.patch"), "text": tree[other].decode().replace("+    ", "+    # old: ", 2).replace("v1]", "v0]")}, "a leftover beside the patches"),
        "order": Defect("schema_drift", series, {"order": draw.shuffled(list(SERIES))}, "columns in another order"),
        "sign": Defect("delimiter_drift", series, {"to": ";"}),
        "rot": Defect("bit_rot", rotten, {"offsets": [at], "masks": [1]}, "a patch with a flipped bit"),
        "cut": Defect("truncated_file", cut, {"lines": draw.integer(2, 5)}, "a patch that ends too early"),
    }  # fmt: skip
    if not older:
        del offered["old"]
    first = draw.sample(("rot", "cut"), draw.integer(1, 2))
    others = draw.sample([k for k in offered if k not in ("rot", "cut")], draw.integer(0, 7 - len(first) - 1))
    return tuple(d for name, d in offered.items() if name in {*first, *others})


def truth(world: Any) -> dict[str, Any]:
    tree, hunks, rows = model.replay(world)
    texts = {path: "".join(line + "\n" for line in lines) for path, lines in sorted(tree.items())}
    before = {path: "".join(line + "\n" for line in lines) for path, lines in world.files}
    statuses = sorted({row[2] for row in rows})
    report = {
        "files_changed": [path for path in texts if texts[path] != before[path]],
        "lines": sum(len(lines) for lines in tree.values()),
        "sha256": {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()},
        "by_status": {status: sum(row[2] == status for row in rows) for status in statuses},
        "needs_review": sorted({h["patch"] for h in hunks if h["result"] in ("rejected", "fuzzy")}),
    }
    return {
        "hunks": hunks,
        "header": list(PATCHES),
        "patches": rows,
        "tree": texts,
        "report": report,
        "upstream": before,
    }


def prompt(world: Any) -> Prompt:
    return Prompt(
        goal="Replay our downstream patch series over the new upstream release, hunk by hunk and by the rules below, and report what became of each hunk, patch and file.",
        inputs={
            "input/upstream/": "the new release's tree",
            "input/upstream_renames.csv": "files that it renamed; patches still use the old paths",
            "input/patches/series.csv": "the series: position, patch, revision, policy, checksum of the patch file",
            "input/patches/": "the patches as unified diffs, one .patch file each",
            "input/mail/archive.mbox": "all patches as they were mailed, superseded revisions too; a message starts with a line From series-NNN, its text ends before the empty line that ends the message",
        },
        requirements=(
            "Take patches by position, their hunks in order. A hunk's old side are its context and - lines, its new side its context and + lines. Each hunk meets the file as the hunks before left it.",
            "Places: a hunk may go wherever its old side stands as consecutive lines. Of several places the one nearest to the expected line counts, the earlier on a tie. The expected line is the start on the new side (the + number of the @@ line), plus the context lines dropped in front, plus the offset of the last hunk of the same patch that was put into the same file (0 if the hunk before this one was for another file, or there was none).",
            "Try in turn: the whole hunk (result applied); else, if its whole new side stands anywhere in the file, it is there already (present, the line nearest to the expected one, nothing changes); else without up to 1, then up to 2 context lines at either end (fuzzy); else rejected. Only context lines at the very ends are dropped; fuzz is that 1 or 2, otherwise 0.",
            "A rejected hunk, under policy skip-hunk, is left out, the rest of its patch stays. Under drop-patch the whole patch is taken back: its applied and fuzzy hunks become reverted and keep their line, offset and fuzz.",
            "hunks.jsonl: hunk counts from 1 within the patch; file is the path in the new release, like src/x.py; line, from 1, where the (shortened) hunk was put or found; offset = line - new-side start - dropped context lines in front; both 0 when rejected.",
            "patches.csv: status dropped; or partial if a hunk was rejected; or already-upstream if all are present; else applied. hunks_applied counts applied, fuzzy and reverted ones.",
            "report.json: files_changed against upstream, sorted; lines: how many all final files have together; sha256 of every file; by_status counts of patches, statuses that occur; needs_review: patches with a rejected or fuzzy hunk, sorted. Every file ends with a line end.",
        ),
        authority=(
            "A patch file whose sha256 differs from series.csv is damaged: take the mail of this patch with the revision in series.csv.",
            "series.csv decides what belongs to the series; entries listed twice count once; an entry that neither a file nor a mail has is to be ignored; files it doesn't name are left over.",
            "The policy of series.csv counts; skip and HUNK mean skip-hunk, drop and WHOLE mean drop-patch. Its columns may stand in any order, separated by comma or semicolon, with blanks around values.",
        ),
    )  # fmt: skip
