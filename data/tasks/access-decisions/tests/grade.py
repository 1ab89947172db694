"""Milestones: the groups; then decisions of harder and harder kinds, each resting on the one before. Reward: share of milestones.

A decision counts with the rule that it names, so that guessing allow or deny earns nothing.
"""

import json
from pathlib import Path

LOGS, OUT = Path("/logs/verifier"), Path("/app/out")
EXPECTED = json.loads(Path("/tests/expected.json").read_text())


def read(name):
    try:
        return (OUT / name).read_bytes()[:1_000_000].decode()
    except (OSError, ValueError) as why:
        print(f"{OUT / name}: {why}")
        return ""


def parsed(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def main():
    want = EXPECTED["decisions"]
    rows = [line.split(",") for line in read("decisions.csv").splitlines()]
    whole = rows[:1] == [["id", "decision", "rule"]] and [r[0] for r in rows[1:]] == [w[0] for w in want]
    got = {r[0]: r for r in rows[1:]} if whole else {}
    invalid = [w for w in want if w[2] == "invalid"]
    ruled = [w for w in want if w[2] not in ("invalid", "default")]
    share = sum(got.get(w[0]) == w for w in want) / len(want)
    right = {
        "members of every group": parsed(read("members.json")) == EXPECTED["members"],
        "invalid requests": whole and [r for r in rows[1:] if r[-1] == "invalid"] == invalid,
        "most decisions (9 of 10)": share >= 0.9,
        "every decision by a rule": bool(got) and all(got[w[0]] == w for w in ruled),
        "every decision": share == 1,
    }
    tests = [{"name": k, "status": "passed" if ok else "failed", "duration": 0} for k, ok in right.items()]
    for test in tests:
        print(test["status"], test["name"])
    print(f"{share:.1%} of {len(want)} decisions right")
    passed = sum(right.values())
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps({"results": {"tool": {"name": "grade.py"}, "summary": summary, "tests": tests}}))
    (LOGS / "reward.txt").write_text(f"{passed / len(tests)}\n")


main()
