"""Writes ../environment/trees and expected.json: every unit's fate is drawn, and the truth noted, before any file is written."""

import json
import random
from pathlib import Path

R = random.Random(31)
HERE = Path(__file__).parent
TREES = HERE.parent / "environment" / "trees"
SIDES = ("base", "ours", "theirs")
units = {s: {} for s in SIDES}  # (file, section, key) → value
lists = {s: {} for s in SIDES}  # file → set
merged, conflicts = {}, []


def put(file, section, key, base, ours, theirs, result, rule=None):
    for side, v in zip(SIDES, (base, ours, theirs)):
        if v is not None:
            units[side][file, section, key] = v
    if result is not None:
        merged[file, section, key] = result
    if rule:
        conflicts.append({"file": file, "section": section, "key": key, "base": base, "ours": ours, "theirs": theirs, "rule": rule, "result": result})


FILES = {"main.conf": ["", "core", "security", "log"], "net/proxy.conf": ["", "pool", "security/tls", "securityx"], "net/dns.conf": ["zones", "cache"], "jobs/night.conf": ["", "Jobs", "jobs"]}
WORDS = ["on", "off", "/srv/a = b", "eu-1", "x#y", "10s", "0.5", "Größe", "a;b", "blue"]


def word(*not_):
    return R.choice([w for w in WORDS if w not in not_])


for file, sections in FILES.items():
    for section in sections:
        for i in range(26):
            stem = R.choice(["port", "path", "mode", "time", "host"]) + str(i)
            secure = section == "security" or section.startswith("security/")
            b = word()
            kind = R.choice(["same", "ours", "theirs", "both-same", "del-ours", "del-theirs", "new", "gone", "clash", "security", "changed", "num", "list", "nearly"])
            if kind == "same":
                put(file, section, stem, b, b, b, b)
            elif kind == "ours":
                o = word(b)
                put(file, section, stem, b, o, b, o)
            elif kind == "theirs":
                t = word(b)
                put(file, section, stem, b, b, t, t)
            elif kind == "both-same":
                o = word(b)
                put(file, section, stem, R.choice([b, None]), o, o, o)
            elif kind == "del-ours":
                put(file, section, stem, b, None, b, None)
            elif kind == "del-theirs":
                put(file, section, stem, b, b, None, None)
            elif kind == "gone":
                put(file, section, stem, b, None, None, None)
            elif kind == "new":
                o = word()
                put(file, section, stem, None, *R.choice([(o, None), (None, o)]), o)
            elif kind == "clash":
                o = word(b)
                t = word(b, o)
                base = R.choice([b, None])
                put(file, section, stem, base, o, t, t if secure else o, "security" if secure else "ours")
            elif kind == "security":
                o = word(b)
                t = R.choice([word(b, o), None])
                put(file, section, "security." + stem, b, o, t, t, "security")
            elif kind == "changed":
                n = word(b)
                o, t = R.choice([(n, None), (None, n)])
                put(file, section, stem + R.choice(["", "_max", "_list"]), b, o, t, t if secure else n, "security" if secure else "changed")
            elif kind == "num":
                base, o, t = R.sample(["-12", "3", "40", "200", "1000", "9"], 3)
                if R.random() < 0.3:
                    base = None
                end, pick = R.choice([("_max", max), ("_min", min)])
                put(file, section, stem + end, base, o, t, t if secure else pick(o, t, key=int), "security" if secure else "number")
            elif kind == "nearly":  # ends like a number, but is none
                base, o, t = R.choice([("10", "2.5", "30"), ("many", "4", "5"), ("7", "8", "")])
                put(file, section, stem + "_max", base, o, t, t if secure else o, "security" if secure else "ours")
            else:
                base, o, t, out = R.choice([
                    ("a, b, c", "a,c, d", "b, c, e,d", "c, d, e"), ("x", "x, y", "z,x,,y, z", "x, y, z"), (None, "p, q", "q,r", "p, q, r"),
                    ("m, n", "n, m, k", "m", "m, k"), ("u, v, u", "v", "u, w", "w"),
                ])  # fmt: skip
                put(file, section, stem + "_list", base, o, t, t if secure else out, "security" if secure else "union")

HOSTS = [f"host-{c}{n}.example" for c in "abcdef" for n in range(10)]
for file in ("net/allow.list", "jobs/skip.list"):
    base = set(R.sample(HOSTS, 25))
    ours = base - set(R.sample(sorted(base), 6)) | set(R.sample(HOSTS, 8))
    theirs = base - set(R.sample(sorted(base), 6)) | set(R.sample(HOSTS, 8))
    lists["base"][file], lists["ours"][file], lists["theirs"][file] = base, ours, theirs
    merged[file] = sorted((base & ours & theirs) | (ours - base) | (theirs - base))
# whole files: new on one side, removed on one side untouched, removed on one side and changed on the other, emptied on both
lists["theirs"]["extra/new.list"] = {"only-theirs"}
merged["extra/new.list"] = ["only-theirs"]
lists["base"]["old/gone.list"] = lists["ours"]["old/gone.list"] = {"one", "two"}
put("old/dead.conf", "s", "k", "1", "1", None, None)
put("old/alive.conf", "s", "k", "1", None, "2", "2", "changed")
put("old/alive.conf", "s", "other", "1", None, "1", None)
lists["base"]["old/empty.list"], lists["ours"]["old/empty.list"], lists["theirs"]["old/empty.list"] = {"a", "b"}, {"a"}, {"b"}
merged["old/empty.list"] = []


def conf(rows):
    """A file with these settings, spoilt: comments, spaces, sections continued, keys that are set twice."""
    blocks = {}
    for (section, key), value in rows.items():
        blocks.setdefault(section, []).append((key, value))
    pieces = []
    for section, items in blocks.items():
        R.shuffle(items)
        cut = R.randrange(len(items) + 1) if section else len(items)
        for part in (items[:cut], items[cut:]):
            lines = [f"[{section}]"] if section else []
            for key, value in part:
                if R.random() < 0.12:
                    lines.append(f"{key} = {R.choice(WORDS)}")
                if R.random() < 0.12:
                    lines.append(R.choice(["", "# was: " + key + " = 1", "  ; [off]"]))
                lines.append(R.choice(["{} = {}", "{}={}", "  {} =  {} "]).format(key, value))
            pieces.append((section != "", R.random(), lines))
    return "\n".join("\n".join(p[2]) for p in sorted(pieces)) + "\n"


for side in SIDES:
    by = {}
    for (file, section, key), value in units[side].items():
        by.setdefault(file, {})[section, key] = value
    for file, rows in by.items():
        path = TREES / side / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(conf(rows), encoding="utf-8")
    for file, entries in sorted(lists[side].items()):
        rows = [*sorted(entries), *R.sample(sorted(entries), len(entries) // 5), *[""] * 2]
        rows = sorted(rows, key=lambda _: R.random())
        path = TREES / side / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(R.choice(["", "  "]) + r + "\n" for r in rows), encoding="utf-8")

files = {}
for key in merged:
    if isinstance(key, str):
        files[key] = "".join(e + "\n" for e in merged[key])
for file in {k[0] for k in merged if not isinstance(k, str)}:
    text, sections = "", sorted({k[1] for k in merged if not isinstance(k, str) and k[0] == file})
    for s in sections:
        text += (("\n" if text else "") + f"[{s}]\n") if s else ""
        text += "".join(f"{k[2]} = {merged[k]}".rstrip(" ") + "\n" if merged[k] == "" else f"{k[2]} = {merged[k]}\n" for k in sorted(k for k in merged if not isinstance(k, str) and k[:2] == (file, s)))
    files[file] = text
conflicts.sort(key=lambda c: (c["file"], c["section"], c["key"]))
(HERE / "expected.json").write_text(json.dumps({"files": files, "conflicts": conflicts}, ensure_ascii=False, indent=0, sort_keys=True) + "\n")
