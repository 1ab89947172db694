#!/bin/bash
set -euo pipefail
cd /app
python3 - <<'PY'
from pathlib import Path


def edit(name, *pairs):
    path = Path("/app", name)
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, (name, old)
        text = text.replace(old, new)
    path.write_text(text)


edit(
    "warehouse.py",
    ('''    entries = []
''', '''    entries, first = [], {}
    for n, e in enumerate(events):
        first.setdefault(e["id"], n)

    def sound(e):
        return type(e.get("of")) is int and e["of"] in first and e["of"] < e["id"]

    never = set()  # cancelled ids; an event can only be cancelled by a larger id, so the largest are settled first
    for e in sorted((events[n] for n in first.values()), key=lambda e: -e["id"]):
        if e["kind"] == "cancel" and e["id"] not in never and sound(e):
            never.add(e["of"])
'''),
    ('''        yield e, "duplicate" if again else step(e, bins, stock, load_of), stock
''', '''        if again:
            yield e, "duplicate", stock
        elif e["id"] in never:
            continue
        elif e["kind"] == "cancel":
            if not sound(e):
                yield e, "bad-ref", stock
        else:
            yield e, step(e, bins, stock, load_of), stock
'''),
)
edit(
    "stock.py",
    ("            events = [value]\n", "            events.append(value)\n"),
    ('for path in events or ["/app/events.jsonl"] for', "for path in events or FILES for"),
    ("class Usage(", '''FILES = ["/app/events.jsonl"] + [p for p in ["/app/late.jsonl"] if Path(p).exists()]


class Usage('''),
)
PY
python3 - <<'PY'
import csv, subprocess


def stock(*options):
    out = subprocess.run(["python3", "/app/stock.py", *options, "stock"], capture_output=True, text=True, check=True).stdout
    return {tuple(r[:2]): r[2] for r in (line.split("\t") for line in out.splitlines())}


before, after = stock("--events", "/app/events.jsonl"), stock()
with open("/app/corrections.csv", "w", newline="") as f:
    w = csv.writer(f, lineterminator="\n")
    w.writerow(["item", "bin", "before", "after"])
    for key in sorted({*before, *after}):
        old, new = before.get(key, "0"), after.get(key, "0")
        if old != new:
            w.writerow([*key, old, new])
PY
