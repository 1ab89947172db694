#!/bin/bash
# The same search, given up after 400 steps.
set -euo pipefail
mkdir -p /app/plans
python3 - <<'PY'
"""Branch and bound. Fixed crews, orders and shifts: every job as early as possible is best, so jobs are placed in order of
their starts, each at the earliest hour of one of the shifts it can still reach."""
import json
from pathlib import Path


def solve(inst):
    jobs = {j["id"]: j for j in inst["jobs"]}
    crews = inst["crews"]
    trip = {}
    for a, b, h in inst["travel"]:
        trip[a, b] = trip[b, a] = h
    topo = []
    while len(topo) < len(jobs):
        topo += [n for n in jobs if n not in topo and all(a in topo for a in jobs[n]["after"])]
    horizon = max(j["due"] for j in jobs.values()) + sum(j["hours"] + 8 for j in jobs.values())
    best = [10**9, None]

    def bound(end, now):
        """Tardiness that is left at least: crews and travel forgotten, nothing starts before `now`."""
        total, soon = 0, dict(end)
        for n in topo:
            if n not in end:
                j = jobs[n]
                soon[n] = max([now, *(soon[a] for a in j["after"])]) + j["hours"]
                total += j["weight"] * max(0, soon[n] - j["due"])
        return total

    steps = [0]

    def place(cost, end, tails, now, plan):
        steps[0] += 1
        if steps[0] > 400 and best[1]:
            return
        if cost + bound(end, now) >= best[0]:
            return
        if len(end) == len(jobs):
            best[:] = cost, dict(plan)
            return
        moves = []
        for n, j in jobs.items():
            if n in end or any(a not in end for a in j["after"]):
                continue
            ready = max([now, *(end[a] for a in j["after"])])
            fresh = set()
            for c, crew in enumerate(crews):
                if j["skill"] not in crew["skills"]:
                    continue
                tail, size = tails[c], crew["shift"]
                if tail is None:  # crews alike that have done nothing yet are one choice
                    key = (size, tuple(sorted(crew["skills"])))
                    if key in fresh:
                        continue
                    fresh.add(key)
                t = max(ready, tail[1] + trip.get((tail[0], n), 0)) if tail else ready
                k = t // size
                late = 0
                while k * size < horizon:
                    s = max(t, k * size)
                    if s + j["hours"] <= (k + 1) * size:
                        late = j["weight"] * max(0, s + j["hours"] - j["due"])
                        extra = late + inst["shift_cost"] * (tail is None or tail[2] != k)
                        if cost + extra >= best[0]:
                            if cost + late >= best[0]:
                                break
                        else:
                            moves.append((extra, s, n, c, k))
                    k += 1
        for extra, s, n, c, k in sorted(moves):
            after = s + jobs[n]["hours"]
            end[n], old, tails[c] = after, tails[c], (n, after, k)
            plan[n] = {"crew": crews[c]["id"], "start": s}
            place(cost + extra, end, tails, s, plan)
            del end[n], plan[n]
            tails[c] = old

    place(0, {}, [None] * len(crews), 0, {})
    return {"cost": best[0], "jobs": best[1]}


for path in sorted(Path("/app/instances").glob("*.json")):
    plan = solve(json.loads(path.read_text()))
    (Path("/app/plans") / path.name).write_text(json.dumps(plan, indent=1) + "\n")
PY
