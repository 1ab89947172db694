#!/bin/bash
set -euo pipefail
cat > /app/warehouse.py <<'PY'
"""Replays events: `replay(events, bins)` yields (event, reason or "", stock) in the order of effect."""
import json


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def replay(events, bins):
    stock, load_of, seen = {}, dict.fromkeys(bins, 0), set()
    entries = []
    for n, e in enumerate(events):
        entries.append((e["t"], e["id"], n, e, e["id"] in seen))
        seen.add(e["id"])
    entries.sort(key=lambda x: x[:3])
    for *_, e, again in entries:
        yield e, "duplicate" if again else step(e, bins, stock, load_of), stock


def step(e, bins, stock, load_of):
    """Applies an event, or says why not."""
    kind, q = e["kind"], e.get("qty")
    if kind not in ("receive", "ship", "move", "count"):
        return "bad-kind"
    if e["bin"] not in bins or (kind == "move" and e["to"] not in bins):
        return "bad-bin"
    if type(q) is not int or q < (0 if kind == "count" else 1):
        return "bad-qty"
    if kind == "move" and e["to"] == e["bin"]:
        return "same-bin"
    item, here = e["item"], stock.get((e["item"], e["bin"]), 0)
    if kind in ("ship", "move") and here < q:
        return "short"
    changes = {"receive": [(e["bin"], q)], "ship": [(e["bin"], -q)], "count": [(e["bin"], q - here)], "move": [(e["bin"], -q), (e.get("to"), q)]}[kind]
    b, d = changes[-1]
    if kind != "ship" and load_of[b] + d > bins[b]:
        return "full"
    for b, d in changes:
        load_of[b] += d
        stock[item, b] = stock.get((item, b), 0) + d
    return ""
PY
cd /app
python3 - <<'PY'
import json
from warehouse import load, replay

refused, stock = [], {}
for e, why, stock in replay(load("events.jsonl"), json.load(open("bins.json"))):
    if why:
        refused.append([e["id"], why])
out = {}
for (item, b), n in sorted(stock.items()):
    if n:
        out.setdefault(item, {})[b] = n
json.dump(out, open("stock.json", "w"), indent=1)
json.dump(refused, open("refused.json", "w"))
PY
