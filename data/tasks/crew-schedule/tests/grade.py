"""One milestone an instance: the plan keeps every rule, states its cost, and the cost is the least. Reward: share of them."""

import json
from pathlib import Path

LOGS = Path("/logs/verifier")
DATA = json.loads(Path("/tests/expected.json").read_text())


def whole(x):
    return type(x) is int and 0 <= x < 10_000


def cost(inst, plan):
    """Cost of a plan; ValueError names the rule that it breaks."""
    jobs, crews = {j["id"]: j for j in inst["jobs"]}, {c["id"]: c for c in inst["crews"]}
    trip = {frozenset(t[:2]): t[2] for t in inst["travel"]}
    if not isinstance(plan, dict) or not isinstance(plan.get("jobs"), dict) or set(plan["jobs"]) != set(jobs):
        raise ValueError("not every job once")
    for n, p in plan["jobs"].items():
        if not isinstance(p, dict) or not isinstance(p.get("crew"), str) or p["crew"] not in crews or not whole(p.get("start")):
            raise ValueError(f"{n}: crew or start")
        if jobs[n]["skill"] not in crews[p["crew"]]["skills"]:
            raise ValueError(f"{n}: skill")
    start = {n: p["start"] for n, p in plan["jobs"].items()}
    end = {n: start[n] + jobs[n]["hours"] for n in jobs}
    if any(start[n] < end[a] for n in jobs for a in jobs[n]["after"]):
        raise ValueError("a job starts before one that it needs")
    total = sum(j["weight"] * max(0, end[n] - j["due"]) for n, j in jobs.items())
    for c, crew in crews.items():
        own = sorted((n for n in jobs if plan["jobs"][n]["crew"] == c), key=lambda n: start[n])
        for x, y in zip(own, own[1:]):
            if start[y] < end[x] + trip.get(frozenset((x, y)), 0):
                raise ValueError(f"{c}: {y} too soon after {x}")
        shifts = {start[n] // crew["shift"] for n in own}
        if any((end[n] - 1) // crew["shift"] != start[n] // crew["shift"] for n in own):
            raise ValueError(f"{c}: a job across the border of a shift")
        total += inst["shift_cost"] * len(shifts)
    return total


def check(name):
    try:
        plan = json.loads((Path("/app/plans") / name).read_bytes()[:100_000].decode())
        got = cost(DATA["instances"][name], plan)
        if plan.get("cost") != got:
            raise ValueError(f"costs {got}, not what it states")
        if got != DATA["least"][name]:
            raise ValueError(f"{got} is not the least cost")
    except (OSError, ValueError, RecursionError) as why:
        return str(why)[:200]
    return ""


def main():
    tests = []
    for name in sorted(DATA["least"]):
        why = check(name)
        tests.append({"name": name, "status": "failed" if why else "passed", "duration": 0, "message": why})
        print(tests[-1]["status"], name, why)
    passed = sum(t["status"] == "passed" for t in tests)
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "skipped": 0, "pending": 0, "other": 0, "start": 0, "stop": 0}
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps({"results": {"tool": {"name": "grade.py"}, "summary": summary, "tests": tests}}))
    (LOGS / "reward.txt").write_text(f"{passed / len(tests)}\n")


main()
