"""The rules of the warehouse, and random events. Used by the tests of every step (each has a copy)."""

import json
import random
from pathlib import Path

REASONS = ("duplicate", "bad-kind", "bad-ref", "bad-bin", "bad-qty", "same-bin", "short", "full")


def read(*paths):
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines() if line]


def number(x):
    return isinstance(x, int) and not isinstance(x, bool)


class World:
    def __init__(self, events, bins, until=None):
        self.stock, self.refused, self.history = {}, [], []
        first = {}
        for line, e in enumerate(events):
            first.setdefault(e["id"], line)
        gone = set()
        for e in sorted((e for line, e in enumerate(events) if e["kind"] == "cancel" and first[e["id"]] == line), key=lambda e: -e["id"]):
            if e["id"] not in gone and e.get("of") in first and e["of"] < e["id"]:
                gone.add(e["of"])
        for line, e in sorted(enumerate(events), key=lambda p: (p[1]["t"], p[1]["id"], p[0])):
            if until and e["t"] > until or (e["id"] in gone and first[e["id"]] == line):
                continue
            why = "duplicate" if first[e["id"]] != line else self.judge(e, bins, first)
            if why:
                self.refused.append([e["id"], why])
            elif e["kind"] != "cancel":
                self.apply(e)
                self.history.append((e["item"], e["t"], e["id"], sum(n for (i, _), n in self.stock.items() if i == e["item"])))

    def judge(self, e, bins, first):
        kind, q = e["kind"], e.get("qty")
        if kind == "cancel":
            return "" if e.get("of") in first and e["of"] < e["id"] else "bad-ref"
        if kind not in ("receive", "ship", "move", "count"):
            return "bad-kind"
        target = e["to"] if kind == "move" else e["bin"]
        if e["bin"] not in bins or target not in bins:
            return "bad-bin"
        if not number(q) or q < (kind != "count"):
            return "bad-qty"
        if kind == "move" and target == e["bin"]:
            return "same-bin"
        here = self.stock.get((e["item"], e["bin"]), 0)
        if kind in ("ship", "move") and here < q:
            return "short"
        load = sum(n for (_, b), n in self.stock.items() if b == target)
        more = {"receive": q, "ship": 0, "move": q, "count": q - here}[kind]
        return "full" if kind != "ship" and load + more > bins[target] else ""

    def apply(self, e):
        key, q = (e["item"], e["bin"]), e["qty"]
        here = self.stock.get(key, 0)
        self.stock[key] = {"receive": here + q, "ship": here - q, "move": here - q, "count": q}[e["kind"]]
        if e["kind"] == "move":
            self.stock[e["item"], e["to"]] = self.stock.get((e["item"], e["to"]), 0) + q

    def rows(self):
        return sorted([i, b, n] for (i, b), n in self.stock.items() if n)


def draw(seed, n, start=1, cancels=0.0, known=()):
    rng = random.Random(seed)
    items, bins = ["bolt", "nut", "gear", "washer"], ["A1", "A2", "B1", "C9"]
    events, ids = [], list(known)
    for i in range(start, start + n):
        kind = rng.choices(["receive", "ship", "move", "count"], [5, 3, 3, 1])[0]
        t = f"2031-03-{rng.randrange(1, 15):02}T{rng.randrange(8, 18):02}:{rng.choice([0, 30]):02}:00"
        e = {"id": i, "t": t, "kind": kind, "item": rng.choice(items), "bin": rng.choice(bins), "qty": rng.randrange(1, 30)}
        if kind == "move":
            e["to"] = rng.choice(bins)
        if rng.random() < cancels and ids:
            e = {"id": i, "t": t, "kind": "cancel", "of": rng.choice([rng.choice(ids), rng.choice(ids), i - 1, i, i + 1, 99999])}
        elif rng.random() < 0.12:
            e.update(rng.choice([{"kind": "lend"}, {"bin": "Z9"}, {"qty": 0}, {"qty": 2.5}, {"qty": "3"}, {"qty": -1}, {"qty": True}]))
        if rng.random() < 0.05 and ids:
            e["id"] = rng.choice(ids)
        ids.append(e["id"])
        events.append(e)
    rng.shuffle(events)
    return events, {"A1": 90, "A2": 60, "B1": 120, "C9": 40}
