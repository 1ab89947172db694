"""Writes ../environment/instances, copies for the grader, and the least costs, found by trying every order (slow, minutes)."""

import json
import random
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
SKILLS = ["weld", "wire", "paint"]


def draw(seed, n, crews):
    R = random.Random(seed)
    jobs = []
    for i in range(n):
        jobs.append({
            "id": f"j{i}", "skill": R.choice(SKILLS[: 2 + (crews > 2)]), "hours": R.randrange(1, 5), "due": R.randrange(4, 8 + 7 * n // (2 * crews)),
            "weight": R.randrange(1, 4), "after": sorted({f"j{R.randrange(i)}" for _ in range(R.choice([0, 0, 1, 2])) if i}),
        })  # fmt: skip
    people = []
    for c in range(crews):
        people.append({"id": "ABC"[c], "skills": sorted(R.sample(SKILLS, 2)), "shift": R.choice([5, 6, 8])})
    for s in {j["skill"] for j in jobs}:
        if not any(s in p["skills"] for p in people):
            R.choice(people)["skills"].append(s)
    travel = [[f"j{a}", f"j{b}", R.randrange(1, 4)] for a in range(n) for b in range(a + 1, n) if R.random() < 0.5]
    R.shuffle(jobs)
    return {"shift_cost": R.randrange(3, 9), "crews": people, "jobs": jobs, "travel": travel}


def least(inst):
    """Exact: over all ways to append the next job to a crew (in order of start times), states shared when nothing later can tell them apart."""
    jobs, crews = {j["id"]: j for j in inst["jobs"]}, inst["crews"]
    names = sorted(jobs)
    index = {n: i for i, n in enumerate(names)}
    trip = {}
    for a, b, h in inst["travel"]:
        trip[a, b] = trip[b, a] = h
    full = (1 << len(names)) - 1

    @lru_cache(maxsize=None)
    def go(done, ends, tails, last_start):
        # ends: end time of every done job that an open job still waits for; tails: (last job, its end, its shift) of each crew
        if done == full:
            return 0
        best = 10**9
        for n in names:
            j = jobs[n]
            if done >> index[n] & 1 or any(not done >> index[a] & 1 for a in j["after"]):
                continue
            ready = max([0, *(dict(ends)[a] for a in j["after"])])
            for c, crew in enumerate(crews):
                if j["skill"] not in crew["skills"] or j["hours"] > crew["shift"]:
                    continue
                tail = tails[c]
                t = max(ready, tail[1] + trip.get((tail[0], n), 0) if tail else 0, last_start)
                # a later start than the earliest can only pay by saving a shift: try the first start in each of the next shifts too
                for t0 in [t, *((t // crew["shift"] + k) * crew["shift"] for k in (1, 2, 3))]:
                    s = t0 if t0 % crew["shift"] + j["hours"] <= crew["shift"] else (t0 // crew["shift"] + 1) * crew["shift"]
                    shift = s // crew["shift"]
                    cost = j["weight"] * max(0, s + j["hours"] - j["due"]) + inst["shift_cost"] * (not tail or tail[2] != shift)
                    now = done | 1 << index[n]
                    e2 = dict(ends) | {n: s + j["hours"]}
                    need = {a for m in names if not now >> index[m] & 1 for a in jobs[m]["after"]}
                    t2 = list(tails)
                    t2[c] = (n, s + j["hours"], shift)
                    best = min(best, cost + go(now, tuple(sorted((k, v) for k, v in e2.items() if k in need)), tuple(t2), s))
        return best

    return go(0, (), (None,) * len(crews), 0)


def main():
    out, best = HERE.parent / "environment" / "instances", {}
    out.mkdir(parents=True, exist_ok=True)
    plan = [(11, 5, 2), (12, 5, 2), (13, 6, 3), (14, 6, 2), (15, 6, 2), (16, 6, 2), (17, 6, 3), (18, 6, 2), (19, 7, 2), (20, 7, 2)]
    instances = {}
    for k, (seed, n, crews) in enumerate(plan, 1):
        name = f"p{k:02}.json"
        instances[name] = draw(seed, n, crews)
        (out / name).write_text(json.dumps(instances[name], indent=1) + "\n")
        best[name] = least(instances[name])
        print(name, best[name], flush=True)
    (HERE / "expected.json").write_text(json.dumps({"instances": instances, "least": best}) + "\n")


if __name__ == "__main__":
    main()
