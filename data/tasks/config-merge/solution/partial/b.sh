#!/bin/bash
# Compares numbers as strings, and writes a set of elements in sorted order.
set -euo pipefail
python3 - <<'PY'
import json, re
from pathlib import Path

APP = Path("/app")
SIDES = ("base", "ours", "theirs")


def read_conf(path):
    out, section = {}, ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            section = line[1:-1]
            continue
        key, _, value = line.partition("=")
        out[section, key.strip()] = value.strip()
    return out


def read_list(path):
    return {("", line.strip()): "" for line in path.read_text(encoding="utf-8").split("\n") if line.strip()}


trees = {}
for side in SIDES:
    trees[side] = {}
    for path in (APP / side).rglob("*"):
        if path.is_file():
            trees[side][path.relative_to(APP / side).as_posix()] = (read_conf if path.suffix == ".conf" else read_list)(path)


def whole(v):
    return re.fullmatch(r"-?[0-9]+", v)


def elements(v):
    return list(dict.fromkeys(e.strip() for e in (v or "").split(",") if e.strip()))


def resolve(section, key, b, o, t):
    if key.startswith("security.") or section == "security" or section.startswith("security/"):
        return "security", t
    if o is None or t is None:
        return "changed", t if o is None else o
    if key.endswith(("_max", "_min")) and whole(o) and whole(t) and whole(b if b is not None else "0"):
        return "number", (max if key.endswith("_max") else min)(o, t)
    if key.endswith("_list"):
        eb, eo, et = map(elements, (b, o, t))
        out = [e for e in eb if e in eo and e in et]
        out += [e for e in eo if e not in eb]
        out += [e for e in et if e not in eb and e not in out]
        return "union", ", ".join(sorted(out))
    return "ours", o


conflicts = []
for file in sorted(set().union(*trees.values())):
    base, ours, theirs = (trees[s].get(file, {}) for s in SIDES)
    result = {}
    for unit in sorted({*base, *ours, *theirs}):
        b, o, t = base.get(unit), ours.get(unit), theirs.get(unit)
        if o == t or t == b:
            v = o
        elif o == b:
            v = t
        else:
            rule, v = resolve(*unit, b, o, t)
            conflicts.append({"file": file, "section": unit[0], "key": unit[1], "base": b, "ours": o, "theirs": t, "rule": rule, "result": v})
        if v is not None:
            result[unit] = v
    if not result and not (file in trees["ours"] and file in trees["theirs"]):
        continue
    text, section = "", ""
    for (s, k), v in sorted(result.items()):
        if file.endswith(".list"):
            text += k + "\n"
            continue
        if s != section:
            text += ("\n" if text else "") + f"[{s}]\n"
            section = s
        text += f"{k} = {v}".rstrip() + "\n"
    out = APP / "merged" / file
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
(APP / "conflicts.json").write_text(json.dumps(conflicts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
PY
