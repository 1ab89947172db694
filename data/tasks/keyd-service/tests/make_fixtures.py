"""Writes ../environment/import and expected.json (and copies keyd.py, so that the grader has one of its own)."""

import csv
import json
import random
import shutil
from pathlib import Path

R = random.Random(7311)
HERE = Path(__file__).parent
IMPORT = HERE.parent / "environment" / "import"
IMPORT.mkdir(parents=True, exist_ok=True)
USERS = ["ingest", "ana-1", "ana-2", "root-op", "guest"]
secrets = {u: "".join(R.choices("abcdefghkmnpqrstuvwxyz23456789-_", k=14)) for u in USERS}
(IMPORT / "secrets.txt").write_text("".join(f"{u} {s}\n" for u, s in secrets.items()))
data = {}
for space, n in (("flags", 14), ("sites", 120)):
    rows, data[space] = [], {}
    for i in range(n):
        key = f"{R.choice(['north', 'south', 'west'])}.{space[:-1]}-{i}"
        stamps = sorted(R.randrange(10**9, 2 * 10**9) for _ in range(R.choice([1, 1, 2, 3])))
        if len(stamps) > 1 and R.random() < 0.3:
            stamps[-2] = stamps[-1]
        value = None
        group = []
        for t in stamps:
            value, gone = f"{R.choice(['on', 'off', 'Tür 3, links', 'x=y', '50 %'])} {R.randrange(99)}", R.random() < 0.25
            dirty = value.replace(" ", "\n", 1) if R.random() < 0.1 else value.replace(" ", "\t", 1) if R.random() < 0.1 else value
            shown = "".join(c.upper() if R.random() < 0.1 else c for c in key)
            group.append((t, [R.choice([shown, f" {shown}"]), R.choice([dirty, f"{dirty} "]), t, int(gone)]))
        data[space][key] = None if gone else value
        rows.append(group)
    flat = []
    while any(rows):  # any order of keys; of equal stamps the later line is the later version
        group = R.choice([g for g in rows if g])
        equal = len(group) > 1 and group[-1][0] == group[-2][0]
        flat.append(group.pop(0 if equal else R.randrange(len(group)))[1])
    with (IMPORT / f"{space}.csv").open("w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([["key", "value", "updated", "deleted"], *flat])
(HERE / "expected.json").write_text(json.dumps({"secrets": secrets, "data": data}, ensure_ascii=False, indent=0) + "\n")
shutil.copy(HERE.parent / "environment" / "keyd" / "keyd.py", HERE / "keyd.py")
