"""Milestones: the records of each kind, then what follows from all of them. Reward: share of milestones."""

import json
from pathlib import Path

LOGS, OUT = Path("/logs/verifier"), Path("/app/out")
EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))


def read(name, parse):
    try:
        return parse((OUT / name).read_bytes()[:4_000_000].decode("utf-8"))
    except (OSError, ValueError, RecursionError) as why:
        print(f"{OUT / name}: {why}")
        return None


def lines(text):
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    return rows if all(isinstance(r, dict) for r in rows) else []


def main():
    want, told = EXPECTED["records"], EXPECTED["report"]
    rows = read("records.jsonl", lines) or []
    report = read("report.json", json.loads)
    report = report if isinstance(report, dict) else {}
    right = {}
    for kind in ("text", "samples", "packed", "link"):
        right[f"records: {kind}"] = [r for r in rows if r.get("kind") == kind] == [r for r in want if r["kind"] == kind]
    right["records: all in order"] = rows == want
    right["report: recovered and duplicates"] = all(report.get(k) == told[k] for k in ("recovered", "duplicates"))
    right["report: lost and damaged"] = rows == want and all(report.get(k) == told[k] for k in ("lost", "damaged_bytes"))
    right["report: sums"] = report.get("sums") == told["sums"]
    tests = [{"name": k, "status": "passed" if ok else "failed", "duration": 0} for k, ok in right.items()]
    for test in tests:
        print(test["status"], test["name"])
    passed = sum(right.values())
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps({"results": {"tool": {"name": "grade.py"}, "summary": summary, "tests": tests}}))
    (LOGS / "reward.txt").write_text(f"{passed / len(tests)}\n")


main()
