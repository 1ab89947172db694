"""Writes ../environment/policy and expected.json. Decisions are worked out here on the drawn objects, without parsing."""

import fnmatch
import json
import random
from datetime import datetime, timedelta
from pathlib import Path

R = random.Random(77)
HERE = Path(__file__).parent
POLICY = HERE.parent / "environment" / "policy"
POLICY.mkdir(parents=True, exist_ok=True)
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
USERS = [f"{n}{i}" for n in ("ann", "bob", "cyd", "dee", "eve") for i in range(4)]
GROUPS = {g: set() for g in ("ops", "dev", "web", "audit", "night", "leads", "all-staff", "loop-a", "loop-b", "empty")}
for g in ("ops", "dev", "web", "audit", "night", "leads"):
    GROUPS[g] |= set(R.sample(USERS, 4))
GROUPS["ops"] |= {"@night"}
GROUPS["all-staff"] |= {"@dev", "@ops", "@leads"}
GROUPS["loop-a"] |= {"@loop-b", "ann0"}
GROUPS["loop-b"] |= {"@loop-a", "eve3", "@web"}
GROUPS["audit"] |= {"@ghost"}


def members():
    flat = {g: {m for m in ms if m[0] != "@"} for g, ms in GROUPS.items()} | {"ghost": set()}
    for _ in range(20):
        for g, ms in GROUPS.items():
            for m in ms:
                if m[0] == "@":
                    flat[g] |= flat[m[1:]]
    return flat


FLAT = members()
lines = []
for g, ms in GROUPS.items():
    ms = sorted(ms)
    R.shuffle(ms)
    if len(ms) > 3:
        lines.append(f"{g}: {', '.join(ms[:2])}  # first part")
        lines.append(f"{g} : {ms[2]},\n\t{', '.join(ms[3:])}")
    else:
        lines.append(f"{g}: {', '.join(ms)}")
R.shuffle(lines)
(POLICY / "groups.txt").write_text("# groups of the site\n\n" + "\n".join(lines) + "\n")

SEGS = ["srv", "data", "logs", "app", "etc"]
PATTERNS = [
    "/**", "/srv/**", "/srv/*/logs", "/srv/data/**", "/srv/data/*", "/srv/data/log-*", "/srv/**/logs", "/data/*", "/data/**/app", "/data", "/logs/log-*/app", "/logs/log-1/*", "/*/data",
    "/*/app/**", "/etc/**", "/etc/app", "/srv/data/logs", "/logs/**/log-*", "/app/*/*", "/app/etc/*",
]  # fmt: skip
rules = []
for i in range(46):
    who = R.sample(["@ops", "@dev", "@web", "@audit", "@all-staff", "@loop-a", "*", "*", "ann1", "bob2", "eve3", "@empty"], R.randrange(1, 4))
    if PATTERNS[(i or 7) % len(PATTERNS)] == "/**":  # or one rule would decide half of everything
        who = ["@web", "ann1"]
    if R.random() < 0.35:
        who.append(R.choice(["!@night", "!eve3", "!@leads", "!bob0"]))
    rule = {"id": f"r{i}", "effect": R.choice(["allow", "allow", "deny"]), "who": who, "action": R.choice([["read"], ["write"], ["read", "exec"], ["*"], ["exec"]]), "path": PATTERNS[(i or 7) % len(PATTERNS)]}
    if R.random() < 0.7:
        rule["from"], rule["to"] = R.choice([("08:00", "17:30"), ("22:00", "06:00"), ("18:00", "09:30"), ("17:30", "12:00"), ("09:00", "09:00"), ("17:30", "22:00")])
    if R.random() < 0.6:
        rule["days"] = R.choice(["Mon-Fri", "Sat-Mon", "Sun", "Tue,Thu", "Fri-Sat,Wed"])
    rules.append(rule)
R.shuffle(rules)
(POLICY / "rules.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rules))


def matches(pat, segs):
    if not pat:
        return not segs
    if pat[0] == "**":
        return any(matches(pat[1:], segs[i:]) for i in range(len(segs) + 1))
    return bool(segs) and (pat[0] == "*" or fnmatch.fnmatchcase(segs[0], pat[0])) and matches(pat[1:], segs[1:])


def day_set(text):
    out = set()
    for part in text.split(","):
        a, _, b = part.partition("-")
        i = DAYS.index(a)
        out.add(i)
        while b and DAYS[i] != b:
            i = (i + 1) % 7
            out.add(i)
    return out


def in_time(rule, t):
    days = day_set(rule.get("days", "Mon-Sun"))
    a, b, now = rule.get("from"), rule.get("to"), t.strftime("%H:%M")
    if a is None or a == b:
        return t.weekday() in days
    if a < b:
        return a <= now < b and t.weekday() in days
    return (now >= a and t.weekday() in days) or (now < b and (t.weekday() - 1) % 7 in days)


def hits(entry, user):
    return entry in ("*", user) or (entry[0] == "@" and user in FLAT[entry[1:]])


def applies(rule, user, action, segs, t):
    yes = any(hits(e, user) for e in rule["who"] if e[0] != "!")
    no = any(hits(e[1:], user) for e in rule["who"] if e[0] == "!")
    acts = set(rule["action"]) | ({"read"} if "write" in rule["action"] and rule["effect"] == "allow" else set())
    return yes and not no and bool({action, "*"} & acts) and matches(rule["path"].strip("/").split("/"), segs) and in_time(rule, t)


def rank(rule):
    """Sorts by specificity: 3 exact, 2 part, 1 *, end between * and **: 0.5, then ** 0."""
    return [0 if s == "**" else 1 if s == "*" else 2 if "*" in s else 3 for s in rule["path"].strip("/").split("/")] + [0.5]


def decide(user, action, segs, t):
    fit = [r for r in rules if applies(r, user, action, segs, t)]
    if not fit:
        return "deny", "default"
    top = max(map(rank, fit))
    fit = [r for r in fit if rank(r) == top]
    fit = [r for r in fit if r["effect"] == "deny"] or fit
    return fit[0]["effect"], fit[0]["id"]


requests, decisions = ["id,user,action,path,time"], []
edges = ["08:00", "17:30", "17:29", "22:00", "06:00", "05:59", "00:00", "12:00", "09:00"]
for i in range(600):
    user, action = R.choice([*USERS, "stranger"]), R.choice(["read", "read", "write", "exec"])
    segs = [R.choice([*SEGS, "log-1", "log-", "log-x.1"]) for _ in range(R.randrange(0, 5))]
    if R.random() < 0.5:
        segs = [{"**": R.choice(SEGS), "*": R.choice(SEGS)}.get(s, s.replace("*", R.choice(["1", ""]))) for s in R.choice(PATTERNS).strip("/").split("/")]
    t = datetime(2031, 5, 5) + timedelta(days=R.randrange(14), minutes=R.randrange(1440))
    if R.random() < 0.3:
        h, m = map(int, R.choice(edges).split(":"))
        t = t.replace(hour=h, minute=m)
    text = "".join(R.choice(["/", "/", "//", "/./"]) + s for s in segs) or "/"
    kind = R.random()
    if kind < 0.12 and segs:
        text += "/tmp/.." + R.choice(["", "/"])
    elif kind < 0.17:
        text = "/x/../.." + text
    invalid = text.startswith("/x/../..")
    requests.append(f"q{i},{user},{action},{text},{t:%Y-%m-%dT%H:%M}")
    decisions.append([f"q{i}", *(("deny", "invalid") if invalid else decide(user, action, segs, t))])
(POLICY / "requests.csv").write_text("\n".join(requests) + "\n")
(HERE / "expected.json").write_text(json.dumps({"members": {g: sorted(m) for g, m in FLAT.items()}, "decisions": decisions}) + "\n")
