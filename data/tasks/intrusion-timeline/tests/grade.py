"""Milestones of the report; each counts only when those that it rests on are right. Reward: share of milestones."""

import json
from pathlib import Path

LOGS = Path("/logs/verifier")
EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))
RESTS_ON = {
    "account": [], "login": ["account"], "session": ["login"], "failed_before": ["login"], "file": ["session"],
    "calls": ["file"], "addresses": ["calls"], "exfiltrated": ["calls"],
}  # fmt: skip


def read():
    try:
        report = json.loads(Path("/app/report.json").read_bytes()[:1_000_000].decode("utf-8"))
    except (OSError, ValueError, RecursionError) as why:
        print(f"/app/report.json: {why}")
        return {}
    return report if isinstance(report, dict) else {}


def main():
    report, right = read(), {}
    for key, needs in RESTS_ON.items():
        right[key] = all(right[n] for n in needs) and type(report.get(key)) is type(EXPECTED[key]) and report[key] == EXPECTED[key]
        print("passed" if right[key] else "failed", key)
    tests = [{"name": k, "status": "passed" if ok else "failed", "duration": 0} for k, ok in right.items()]
    passed = sum(right.values())
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps({"results": {"tool": {"name": "grade.py"}, "summary": summary, "tests": tests}}))
    (LOGS / "reward.txt").write_text(f"{passed / len(tests)}\n")


main()
