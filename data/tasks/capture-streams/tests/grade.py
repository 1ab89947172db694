"""Milestones from packets to files; each counts only when those that it rests on are right. Reward: share of milestones."""

import hashlib
import json
from pathlib import Path

LOGS, OUT = Path("/logs/verifier"), Path("/app/out")
EXPECTED = json.loads(Path("/tests/expected.json").read_text())


def read(name):
    try:
        return json.loads((OUT / name).read_bytes()[:1_000_000].decode())
    except (OSError, ValueError, RecursionError) as why:
        print(f"{OUT / name}: {why}")
        return None


def column(rows, *keys):
    rows = rows if isinstance(rows, list) else []
    return [[r.get(k) for k in keys] for r in rows if isinstance(r, dict)]


def digests():
    try:
        found = [p for p in (OUT / "files").iterdir() if p.is_file() and not p.is_symlink() and p.stat().st_size < 1_000_000]
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in found[:1000]}
    except OSError:
        return {}


def main():
    packets, streams, files = read("packets.json"), read("streams.json"), digests()
    packets = packets if isinstance(packets, dict) else {}
    want, told = EXPECTED["streams"], EXPECTED["packets"]
    right = {
        "packets: truncated and not-tcp": all(packets.get(k) == told[k] for k in ("truncated", "not-tcp")),
        "packets: bad-checksum and used": packets == told,
        "streams: ends and order": column(streams, "client", "server") == column(want, "client", "server"),
    }
    right["streams: sent"] = right["streams: ends and order"] and column(streams, "sent") == column(want, "sent")
    right["streams: received"] = right["streams: ends and order"] and column(streams, "received") == column(want, "received")
    right["streams: complete"] = right["streams: received"] and streams == want
    right["files: names"] = bool(files) and set(files) == set(EXPECTED["files"])
    right["files: contents"] = files == EXPECTED["files"]
    tests = [{"name": k, "status": "passed" if ok else "failed", "duration": 0} for k, ok in right.items()]
    for test in tests:
        print(test["status"], test["name"])
    passed = sum(right.values())
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps({"results": {"tool": {"name": "grade.py"}, "summary": summary, "tests": tests}}))
    (LOGS / "reward.txt").write_text(f"{passed / len(tests)}\n")


main()
