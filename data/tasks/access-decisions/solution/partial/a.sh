#!/bin/bash
# Follows no groups inside groups.
set -euo pipefail
mkdir -p /app/out
python3 - <<'PY'
import csv, json, re
from datetime import datetime

P, OUT = "/app/policy/", "/app/out/"
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

raw, logical = [l.split("#")[0].rstrip() for l in open(P + "groups.txt")], []
for line in raw:
    if line[:1] in (" ", "\t") and logical:
        logical[-1] += " " + line.strip()
    elif line.strip():
        logical.append(line)
direct = {}
for line in logical:
    name, _, rest = line.partition(":")
    own = direct.setdefault(name.strip(), set())
    for m in filter(None, (m.strip() for m in rest.split(","))):
        own.add(m)
        if m.startswith("@"):
            direct.setdefault(m[1:], set())


def users(group):
    seen, todo, out = set(), [group], set()
    while todo:
        g = todo.pop()
        if g in seen:
            continue
        seen.add(g)
        for m in direct.get(g, ()):
            if m.startswith("@"):
                pass
            else:
                out.add(m)
    return out


members = {g: users(g) for g in direct}
rules = [json.loads(l) for l in open(P + "rules.jsonl") if l.strip()]


def pattern(path):
    """A regular expression over "/a/b"; "" is the root."""
    out = ""
    for s in filter(None, path.split("/")):
        out += r"(?:/[^/]+)*" if s == "**" else "/[^/]+" if s == "*" else "/" + "".join("[^/]*" if c == "*" else re.escape(c) for c in s)
    return re.compile(out)


def weight(path):
    # compared as tuples: the end of a pattern (1) lies between ** (0) and * (2)
    return (*(0 if s == "**" else 2 if s == "*" else 3 if "*" in s else 4 for s in filter(None, path.split("/"))), 1)


def day_set(text):
    out = set()
    for part in text.split(","):
        a, _, b = part.strip().partition("-")
        i, j = DAYS.index(a), DAYS.index(b or a)
        out |= {(i + k) % 7 for k in range((j - i) % 7 + 1)}
    return out


for r in rules:
    r["re"], r["weight"], r["on"] = pattern(r["path"]), weight(r["path"]), day_set(r.get("days", "Mon-Sun"))
    r["acts"] = set(r["action"]) | ({"read"} if r["effect"] == "allow" and "write" in r["action"] else set())


def matches(entry, user):
    return entry == "*" or entry == user or (entry.startswith("@") and user in members.get(entry[1:], ()))


def timely(r, t):
    now, a, b = t.strftime("%H:%M"), r.get("from", "00:00"), r.get("to", "00:00")
    today, before = t.weekday() in r["on"], (t.weekday() - 1) % 7 in r["on"]
    if a == b:
        return today
    if a < b:
        return today and a <= now < b
    return (today and now >= a) or (before and now < b)


def normal(path):
    out = []
    for s in path.split("/"):
        if s == "..":
            if not out:
                return None
            out.pop()
        elif s not in ("", "."):
            out.append(s)
    return "".join("/" + s for s in out)


rows = [("id", "decision", "rule")]
for q in csv.DictReader(open(P + "requests.csv")):
    path, t = normal(q["path"]), datetime.fromisoformat(q["time"])
    if path is None:
        rows.append((q["id"], "deny", "invalid"))
        continue
    fit = [
        r for r in rules
        if any(matches(e, q["user"]) for e in r["who"] if e[0] != "!") and not any(matches(e[1:], q["user"]) for e in r["who"] if e[0] == "!")
        and r["acts"] & {q["action"], "*"} and r["re"].fullmatch(path) and timely(r, t)
    ]
    if not fit:
        rows.append((q["id"], "deny", "default"))
        continue
    best = max(r["weight"] for r in fit)
    fit = [r for r in fit if r["weight"] == best]
    pick = next((r for r in fit if r["effect"] == "deny"), fit[0])
    rows.append((q["id"], pick["effect"], pick["id"]))
with open(OUT + "decisions.csv", "w", newline="") as f:
    csv.writer(f, lineterminator="\n").writerows(rows)
with open(OUT + "members.json", "w") as f:
    json.dump({g: sorted(m) for g, m in members.items()}, f, indent=1)
PY
