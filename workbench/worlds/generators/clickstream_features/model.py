"""What follows from the world: plan periods, sessions and features."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from typing import Any

DAY = 86_400_000
RANK = {"free": 0, "basic": 1, "pro": 2, "team": 3}


def epoch_ms(text: str) -> int:
    """Milliseconds since 1970 of YYYY-MM-DD HH:MM:SS, in UTC."""
    moment = datetime.datetime.fromisoformat(text + "+00:00")
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


def events(world: Any) -> list[tuple]:
    """All events, by time."""
    return sorted((e[:5] for e in (*world.events, *world.offline)), key=lambda e: (e[2], e[0]))


def plans(world: Any) -> list[tuple[str, str, str, str]]:
    """(user, plan, valid from, valid to or ""), changes to the same plan left out."""
    out: dict[str, list[list[str]]] = {}
    for user, when, plan in sorted(world.changes):
        own = out.setdefault(user, [])
        if not own or own[-1][1] != plan:
            if own:
                own[-1][3] = when
            own.append([user, plan, when, ""])
    return [tuple(row) for user in sorted(out) for row in out[user]]


def _by_user(periods: list[tuple]) -> dict[str, list[tuple[int, str]]]:
    """user -> [(start in ms, plan), …]."""
    out: dict[str, list[tuple[int, str]]] = {}
    for user, plan, start, _ in periods:
        out.setdefault(user, []).append((epoch_ms(start), plan))
    return out


def _plan_at(steps: list[tuple[int, str]], at: int) -> str:
    return [plan for start, plan in steps if start <= at][-1]


def sessions(world: Any) -> list[dict[str, Any]]:
    """By user, then number. A pause longer than the gap starts a new one."""
    own: dict[str, list[list[tuple]]] = {}
    for event in events(world):
        runs = own.setdefault(event[1], [])
        if runs and event[2] - runs[-1][-1][2] <= world.gap_minutes * 60_000:
            runs[-1].append(event)
        else:
            runs.append([event])
    steps = _by_user(plans(world))
    return [
        {
            "session_id": f"{user}-{number + 1}", "user_id": user, "start_ms": run[0][2], "end_ms": run[-1][2], "events": len(run),
            "purchases": sum(e[3] == "purchase" for e in run), "revenue_cents": _revenue(run), "plan": _plan_at(steps[user], run[0][2]),
        }
        for user in sorted(own) for number, run in enumerate(own[user])
    ]  # fmt: skip


def _revenue(rows: list[tuple]) -> int:
    return sum(e[4] * {"purchase": 1, "refund": -1}.get(e[3], 0) for e in rows)


def features(world: Any) -> list[tuple]:
    """One row a user, in the columns of contract.FEATURES, by user_id."""
    stop = epoch_ms(world.days[-1] + " 00:00:00") + DAY
    start = epoch_ms(world.days[0] + " 00:00:00")
    periods, out = _by_user(plans(world)), []
    mine: dict[str, list[dict]] = {}
    theirs: dict[str, list[tuple]] = {}
    for session in sessions(world):
        mine.setdefault(session["user_id"], []).append(session)
    for event in events(world):
        theirs.setdefault(event[1], []).append(event)
    for user, country, _ in sorted(world.users):
        own, runs, steps = theirs.get(user, []), mine.get(user, []), periods[user]
        kinds = Counter(e[3] for e in own)
        ups = sum(RANK[b] > RANK[a] and start <= at < stop for (_, a), (at, b) in itertools.pairwise(steps))
        seconds = sum(s["end_ms"] - s["start_ms"] for s in runs) // (1000 * len(runs)) if runs else 0
        out.append((
            user, country, len(own), len(runs), len({e[2] // DAY for e in own}), kinds["purchase"], _revenue(own), seconds,
            min(kinds, key=lambda k: (-kinds[k], k)) if kinds else "none", _plan_at(steps, stop - 1), ups,
            (stop - own[-1][2]) // 3_600_000 if own else -1,
        ))  # fmt: skip
    return out
