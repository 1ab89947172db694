"""Every fate of a hunk on one small file, worked out by hand."""

from __future__ import annotations

import hashlib
import json

import pytest

from workbench.worlds.generators.patch_replay import alternative, reference

# Two lines were put in front upstream; c became C, x stands already.
UPSTREAM = "new1\nnew2\na\nb\nC\nd\ne\nf\ng\nx\nh\ni\nj\n"


def patch(name, *hunks):
    return (
        f"From: Ana <a@b.example>\nSubject: [PATCH v1] {name}\nConflict-Policy: skip-hunk\n---\n--- a/src/m.py\n+++ b/src/m.py\n"
        + "".join(hunks)
    )


PATCHES = {
    "moves": patch("moves", "@@ -3,7 +3,7 @@\n c\n d\n e\n-f\n+F\n g\n x\n h\n"),  # c is gone: fuzz 1, two lines further down
    "there": patch("there", "@@ -5,5 +5,6 @@\n e\n F\n g\n+x\n h\n i\n j\n"),
    "half": patch("half", "@@ -2,6 +2,7 @@\n new2\n a\n b\n+n\n c\n d\n e\n", "@@ -9,2 +10,2 @@\n i\n-j\n+J\n"),  # c is next to the change: no fuzz helps
    "whole": patch("whole", "@@ -8,2 +8,2 @@\n h\n-i\n+I\n", "@@ -2,1 +2,1 @@\n-zzz\n+z\n"),
    "same": patch("same", "@@ -11,3 +11,2 @@\n h\n-i\n J\n"),
}  # fmt: skip
POLICY = {"whole": "drop"}
SERIES = "patch;position;policy;revision;sha256\n" + "".join(
    f"{n};{i}; {POLICY.get(n, 'HUNK')};1;{hashlib.sha256(text.encode()).hexdigest()}\n"
    for i, (n, text) in enumerate(PATCHES.items(), 1)
)
TREE = {
    "input/upstream/src/lib/m.py": UPSTREAM.encode(),
    "input/upstream_renames.csv": b"old,new\nsrc/m.py,src/lib/m.py\n",
    "input/patches/series.csv": (SERIES + SERIES.splitlines()[1] + "\nghost;9;skip;1;00\n").encode(),
    "input/mail/archive.mbox": f"From series-000\n{PATCHES['same']}\n".encode(),
    **{f"input/patches/{n}.patch": text.encode() for n, text in PATCHES.items()},
    "input/patches/same.patch": b"cut off",
}


@pytest.mark.parametrize("solve", [lambda t: list(reference.solve(t))[-1][1], alternative.solve])
def test_every_fate_by_hand(solve):
    out = solve(TREE)
    hunks = [json.loads(line) for line in out["output/hunks.jsonl"].decode().splitlines()]
    assert [tuple(h[k] for k in ("patch", "result", "line", "offset", "fuzz")) for h in hunks] == [
        ("moves", "fuzzy", 6, 2, 1),
        ("there", "present", 7, 2, 0),
        ("half", "rejected", 0, 0, 0),
        ("half", "applied", 12, 2, 0),
        ("whole", "reverted", 11, 3, 0),
        ("whole", "rejected", 0, 0, 0),
        ("same", "applied", 11, 0, 0),
    ]
    assert out["output/patches.csv"].decode().splitlines()[1:] == [
        "1,moves,applied,1,0,0",
        "2,there,already-upstream,0,1,0",
        "3,half,partial,1,0,1",
        "4,whole,dropped,1,0,1",
        "5,same,applied,1,0,0",
    ]
    assert json.loads(out["output/tree.json"]) == {"src/lib/m.py": "new1\nnew2\na\nb\nC\nd\ne\nF\ng\nx\nh\nJ\n"}
    report = json.loads(out["output/report.json"])
    assert (report["lines"], report["needs_review"]) == (12, ["half", "moves", "whole"])
