"""Reference solver: lists of lines, every place compared, as a patch tool does it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

POLICY = {"skip": "skip-hunk", "HUNK": "skip-hunk", "drop": "drop-patch", "WHOLE": "drop-patch"}
COLUMNS = ["position", "patch", "status", "hunks_applied", "hunks_present", "hunks_rejected"]


@dataclass
class Hunk:
    path: str
    start: int  # on the new side
    body: list[str]

    def side(self, signs: str, front: int = 0, back: int = 0) -> list[str]:
        return [line[1:] for line in self.body[front : len(self.body) - back] if line[0] in signs]

    def context(self, fuzz: int, reverse: bool) -> int:
        """How many of the first (last) `fuzz` lines are context before anything else comes."""
        count = 0
        for line in list(reversed(self.body) if reverse else self.body)[:fuzz]:
            if line[0] != " ":
                break
            count += 1
        return count


def _hunks(text: str) -> list[Hunk]:
    found: list[Hunk] = []
    path, left = "", [0, 0]
    for line in text.split("\n"):
        if found and (left[0] > 0 or left[1] > 0):
            found[-1].body.append(line)
            left[0] -= line[0] in " -"
            left[1] -= line[0] in " +"
        elif line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            _, old, new, _ = line.split(" ")
            left = [int(old.split(",")[1]), int(new.split(",")[1])]
            found.append(Hunk(path, int(new[1:].split(",")[0]), []))
    return found


def _mails(archive: str) -> dict[tuple[str, int], str]:
    """(patch, revision) -> its text."""
    out, current = {}, []
    for line in [*archive.split("\n"), "From series-"]:
        if line.startswith("From series-"):
            subject = next((x for x in current if x.startswith("Subject: [PATCH v")), None)
            if subject:
                revision, name = subject.removeprefix("Subject: [PATCH v").split("] ")
                while current and current[-1] == "":
                    current.pop()
                out[name, int(revision)] = "\n".join(current) + "\n"
            current = []
        else:
            current.append(line)
    return out


def _series(tree: Mapping[str, bytes]) -> list[tuple[str, str, list[Hunk]]]:
    """(patch, policy, hunks), in order."""
    text = tree["input/patches/series.csv"].decode()
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if ";" in text.split("\n")[0] else ",")
    mails, out = _mails(tree["input/mail/archive.mbox"].decode()), {}
    for row in rows:
        row = {k: v.strip() for k, v in row.items()}
        name, data = row["patch"], tree.get(f"input/patches/{row['patch'].strip()}.patch")
        if data is not None and hashlib.sha256(data).hexdigest() == row["sha256"]:
            source = data.decode()
        elif (name, int(row["revision"])) in mails:
            source = mails[name, int(row["revision"])]
        else:
            continue
        out[int(row["position"])] = (name, POLICY.get(row["policy"], row["policy"]), _hunks(source))
    return [out[position] for position in sorted(out)]


def _find(text: list[str], wanted: list[str], expected: int) -> int | None:
    """The place, from 1, nearest to the expected one."""
    at = [i + 1 for i in range(len(text) - len(wanted) + 1) if text[i : i + len(wanted)] == wanted]
    return min(at, key=lambda place: (abs(place - expected), place), default=None)


def _put(text: list[str], hunk: Hunk, shift: int) -> tuple[str, int, int, int]:
    """Changes the text when the hunk goes in: (result, line, offset, fuzz)."""
    for fuzz in range(3):
        front, back = hunk.context(fuzz, False), hunk.context(fuzz, True)
        old = hunk.side(" -", front, back)
        place = _find(text, old, hunk.start + front + shift)
        if place is not None:
            text[place - 1 : place - 1 + len(old)] = hunk.side(" +", front, back)
            return "fuzzy" if fuzz else "applied", place, place - hunk.start - front, fuzz
        if fuzz == 0:
            place = _find(text, hunk.side(" +"), hunk.start + shift)
            if place is not None:
                return "present", place, place - hunk.start, 0
    return "rejected", 0, 0, 0


def _replay(
    files: dict[str, list[str]], name: str, policy: str, hunks: list[Hunk], moved: dict[str, str]
) -> tuple[dict[str, list[str]], list[dict], str]:
    work, records, shift, last = {p: list(t) for p, t in files.items()}, [], 0, None
    for number, hunk in enumerate(hunks, 1):
        path = moved.get(hunk.path, hunk.path)
        if path != last:
            shift, last = 0, path
        result, line, offset, fuzz = _put(work[path], hunk, shift)
        if result in ("applied", "fuzzy"):
            shift = offset
        records.append(
            {
                "patch": name,
                "hunk": number,
                "file": path,
                "result": result,
                "line": line,
                "offset": offset,
                "fuzz": fuzz,
            }
        )
    results = {r["result"] for r in records}
    if "rejected" not in results:
        return work, records, "already-upstream" if results == {"present"} else "applied"
    if policy == "skip-hunk":
        return work, records, "partial"
    for record in records:
        if record["result"] in ("applied", "fuzzy"):
            record["result"] = "reverted"
    return files, records, "dropped"


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The outputs after every stage."""
    series = _series(tree)
    upstream = {
        p.removeprefix("input/upstream/"): d.decode()
        for p, d in sorted(tree.items())
        if p.startswith("input/upstream/")
    }
    moved = dict(line.split(",") for line in tree["input/upstream_renames.csv"].decode().split("\n")[1:] if line)
    out: dict[str, bytes] = {}
    yield "restore-series", dict(out)
    files, hunks, rows = {p: text.removesuffix("\n").split("\n") for p, text in upstream.items()}, [], []
    for position, (name, policy, parts) in enumerate(series, 1):
        files, records, status = _replay(files, name, policy, parts, moved)
        hunks += records
        count = Counter(
            {"applied": "in", "fuzzy": "in", "reverted": "in"}.get(r["result"], r["result"]) for r in records
        )
        rows.append([position, name, status, count["in"], count["present"], count["rejected"]])
    out["output/hunks.jsonl"] = "".join(json.dumps(h) + "\n" for h in hunks).encode()
    yield "place-hunks", dict(out)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    out["output/patches.csv"] = text.getvalue().encode()
    yield "settle-patches", dict(out)
    final = {path: "\n".join(lines) + "\n" for path, lines in files.items()}
    out["output/tree.json"] = json.dumps(final, indent=0).encode()
    yield "write-tree", dict(out)
    report = {
        "files_changed": sorted(p for p in final if final[p] != upstream[p]),
        "lines": sum(map(len, files.values())),
        "sha256": {p: hashlib.sha256(t.encode()).hexdigest() for p, t in final.items()},
        "by_status": Counter(row[2] for row in rows),
        "needs_review": sorted({h["patch"] for h in hunks if h["result"] in ("rejected", "fuzzy")}),
    }
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
