"""Alternative solver: files are one string, a hunk is looked for as a substring between line ends."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

HUNK = re.compile(r"^@@ -\d+,\d+ \+(\d+),\d+ @@\n((?:[ +-].*\n)+?)(?=@@ |--- a/|\Z)", re.M)
FILE = re.compile(r"^--- a/.*\n\+\+\+ b/(.*)\n", re.M)
MAIL = re.compile(r"^From series-\d+\n(From: .*\nSubject: \[PATCH v(\d+)\] (.*)\n(?:.+\n)*)", re.M)


def _parse(source: str) -> list[tuple[str, int, str]]:
    """(path, new start, body) of every hunk."""
    heads = [(m.start(), m[1]) for m in FILE.finditer(source)]
    return [([path for at, path in heads if at < m.start()][-1], int(m[1]), m[2]) for m in HUNK.finditer(source)]


def _side(body: str, sign: str) -> str:
    """The lines of one side, without their signs."""
    return re.sub(r"^[ +-]", "", re.sub(rf"^[{sign}].*\n", "", body, flags=re.M), flags=re.M)


def _lines_at(text: str, part: str) -> list[int]:
    """At which lines, from 1, the part stands; text and part end with line ends."""
    out, at = [], ("\n" + text).find("\n" + part)
    while at >= 0:
        out.append(text.count("\n", 0, at) + 1)
        at = ("\n" + text).find("\n" + part, at + 1)
    return out


def _nearest(places: list[int], expected: int) -> int:
    before = [p for p in places if p <= expected]
    after = [p for p in places if p > expected]
    if before and after:
        return before[-1] if expected - before[-1] <= after[0] - expected else after[0]
    return before[-1] if before else after[0]


def _shorten(body: str, fuzz: int) -> tuple[str, int]:
    head = re.match(rf"(?: .*\n){{0,{fuzz}}}", body)[0]
    rest = body[len(head) :]
    tail = re.search(rf"(?:(?<=\n) .*\n){{0,{fuzz}}}\Z", rest)[0] if fuzz else ""
    return rest[: len(rest) - len(tail)], head.count("\n")


def _replace(text: str, line: int, old: str, new: str) -> str:
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    return text[:at] + new + text[at + len(old) :]


def _one(text: str, start: int, body: str, shift: int) -> tuple[str, dict]:
    """(text afterwards, what happened)."""
    tried = {fuzz: _shorten(body, fuzz) for fuzz in (0, 1, 2)}
    for fuzz, (part, front) in tried.items():
        old, new = _side(part, "+"), _side(part, "-")
        found = _lines_at(text, old)
        if found:
            line = _nearest(found, start + front + shift)
            return _replace(text, line, old, new), {
                "result": "applied" if not fuzz else "fuzzy",
                "line": line,
                "offset": line - start - front,
                "fuzz": fuzz,
            }
        there = _lines_at(text, new) if not fuzz else []
        if there:
            line = _nearest(there, start + shift)
            return text, {"result": "present", "line": line, "offset": line - start, "fuzz": 0}
    return text, {"result": "rejected", "line": 0, "offset": 0, "fuzz": 0}


def _series(tree: Mapping[str, bytes]) -> dict[int, tuple[str, bool, list]]:
    """position -> (patch, whether the whole patch goes, hunks)."""
    archive = {(m[3], m[2]): m[1] for m in MAIL.finditer(tree["input/mail/archive.mbox"].decode())}
    head, *lines = (re.split("[,;]", line) for line in tree["input/patches/series.csv"].decode().splitlines())
    out = {}
    for cells in lines:
        entry = dict(zip(head, (c.strip() for c in cells), strict=True))
        data = tree.get(f"input/patches/{entry['patch']}.patch", b"")
        good = hashlib.sha256(data).hexdigest() == entry["sha256"]
        source = data.decode() if good else archive.get((entry["patch"], entry["revision"]))
        if source is not None:
            out[int(entry["position"])] = (
                entry["patch"],
                entry["policy"] in ("drop-patch", "drop", "WHOLE"),
                _parse(source),
            )
    return out


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """The complete outputs."""
    upstream = {p[15:]: d.decode() for p, d in sorted(tree.items()) if p.startswith("input/upstream/")}
    moved = dict(re.findall(r"^(src/.*),(.*)$", tree["input/upstream_renames.csv"].decode(), re.M))
    files, lines, table, statuses = dict(upstream), [], [], {}
    for place, (_, (name, whole, hunks)) in enumerate(sorted(_series(tree).items()), 1):
        saved, done, shifts, previous = dict(files), [], {}, None
        for number, (path, start, body) in enumerate(hunks, 1):
            target = moved.get(path, path)
            if target != previous:
                shifts, previous = {}, target
            files[target], what = _one(files[target], start, body, shifts.get(target, 0))
            if what["result"] in ("applied", "fuzzy"):
                shifts[target] = what["offset"]
            done.append({"patch": name, "hunk": number, "file": target, **what})
        out = sum(d["result"] == "rejected" for d in done)
        there = sum(d["result"] == "present" for d in done)
        status = ("dropped" if whole else "partial") if out else "already-upstream" if there == len(done) else "applied"
        if status == "dropped":
            files = saved
            done = [{**d, "result": "reverted"} if d["result"] in ("applied", "fuzzy") else d for d in done]
        table.append((place, name, status, len(done) - out - there, there, out))
        statuses[status] = statuses.get(status, 0) + 1
        lines += done
    report = {
        "files_changed": [p for p in files if files[p] != upstream[p]],
        "lines": sum(text.count("\n") for text in files.values()),
        "sha256": {p: hashlib.sha256(text.encode()).hexdigest() for p, text in files.items()},
        "by_status": statuses,
        "needs_review": sorted({d["patch"] for d in lines if d["result"] in ("fuzzy", "rejected")}),
    }
    head = "position,patch,status,hunks_applied,hunks_present,hunks_rejected\n"
    return {
        "output/hunks.jsonl": "".join(json.dumps(d) + "\n" for d in lines).encode(),
        "output/patches.csv": (head + "".join(",".join(map(str, row)) + "\n" for row in table)).encode(),
        "output/tree.json": json.dumps(files).encode(),
        "output/report.json": json.dumps(report).encode(),
    }
