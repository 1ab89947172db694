"""Migrates in SQL: manifests are read line by line into flat paths, layers are upserts, the policy is joins."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

LINE = re.compile(r'^( *)((?:- )*)(?:("[^"]*"|[^\s":]+):(?: |$))?(.*)$')
ROOT = "spec/template/spec/containers/0"
SCHEMA = """
CREATE TABLE fact(service TEXT, path TEXT, value TEXT, nth INTEGER, PRIMARY KEY (service, path));
CREATE TABLE audit(service TEXT, rule TEXT, before TEXT, after TEXT);
CREATE TABLE namespaces(old TEXT, team TEXT, new TEXT); CREATE TABLE quotas(namespace TEXT, cpu INTEGER, memory INTEGER);
CREATE TABLE images(repository TEXT, tag TEXT, digest TEXT, at TEXT, status TEXT); CREATE TABLE secrets(old TEXT, secret TEXT, new TEXT, status TEXT);
CREATE TABLE priorities(service TEXT, priority INTEGER); CREATE TABLE live(service TEXT, replicas INTEGER, autoscaled TEXT);
CREATE VIEW work AS SELECT service,
  max(CASE path WHEN 'metadata/namespace' THEN value END) home, max(CASE path WHEN 'metadata/labels/team' THEN value END) team,
  max(CASE path WHEN 'spec/replicas' THEN CAST(value AS INTEGER) END) replicas, max(CASE path WHEN '{r}/image' THEN value END) image,
  max(CASE path WHEN '{r}/resources/requests/cpu' THEN CAST(value AS INTEGER) END) cpu,
  max(CASE path WHEN '{r}/resources/requests/memory' THEN CAST(value AS INTEGER) END) memory,
  sum(path GLOB '{r}/env/*/name' AND path NOT GLOB '*/secretKeyRef/*') variables FROM fact GROUP BY service;
""".replace("{r}", ROOT)


def _leaf(text: str) -> Any:
    return json.loads(text) if re.fullmatch(r'".*"|-?\d+|true|false|null|\{\}|\[\]', text) else text


def _paths(text: str) -> Iterator[dict[str, Any]]:
    """Every document as path -> value; items of lists are numbered."""
    for document in text.split("---\n"):
        flat: dict[str, Any] = {}
        stack: list[tuple[int, str]] = []
        counts: dict[str, int] = {}
        for line in document.splitlines():
            blanks, dashes, key, rest = LINE.match(line).groups()
            depth = len(blanks)
            for _ in range(len(dashes) // 2):
                stack = [s for s in stack if s[0] < depth]
                prefix = "/".join(s[1] for s in stack)
                counts[prefix] = counts.get(prefix, -1) + 1
                stack.append((depth, str(counts[prefix])))
                depth += 2
            stack = [s for s in stack if s[0] < depth]
            if key is not None:
                stack.append((depth, json.loads(key) if key.startswith('"') else key.replace("/", "~")))
            if rest:
                flat["/".join(s[1] for s in stack)] = _leaf(rest)
        yield flat


def _rows(tree: Mapping[str, bytes], path: str) -> list[list[str]]:
    data = tree[f"input/{path}.csv"]
    text = data.decode("utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else data.decode()
    return list(csv.reader(text.splitlines()))[1:]


def _upsert(db: sqlite3.Connection, service: str, flat: Mapping[str, Any]) -> None:
    """One document over what is there: variables meet by name, a null removes."""
    (nth,) = db.execute("SELECT coalesce(max(nth), 0) FROM fact").fetchone()
    known = {
        json.loads(v): p.rsplit("/", 1)[0]
        for p, v in db.execute(
            f"SELECT path, value FROM fact WHERE service = ? AND path GLOB '{ROOT}/env/*/name' AND path NOT GLOB '*/secretKeyRef/*'",
            (service,),
        )
    }
    moved: dict[str, str] = {}
    for path, value in flat.items():
        if re.fullmatch(ROOT + r"/env/\d+/name", path):
            own = path.rsplit("/", 1)[0]
            moved[own] = known.get(value) or f"{ROOT}/env/{1000 + nth + len(moved)}"
    for path, value in flat.items():
        own = next((o for o in moved if path.startswith(o + "/")), None)
        spot = path if own is None else moved[own] + path[len(own) :]
        nth += 1
        if value is None:
            db.execute(
                "DELETE FROM fact WHERE service = ? AND (path = ? OR path GLOB ? || '/*')", (service, spot, spot)
            )
        else:
            db.execute(
                "INSERT INTO fact VALUES (?,?,?,?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (service, spot, json.dumps(value), nth),
            )


def _tree(pairs: list[tuple[str, Any]]) -> Any:
    """Flat paths as a document again; numbered keys become lists."""
    out: dict[str, Any] = {}
    for path, value in pairs:
        *parents, last = path.split("/")
        at = out
        for part in parents:
            at = at.setdefault(part, {})
        at[last] = value
    return _listed(out)


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(k.isdigit() for k in value):
        return [_listed(v) for _, v in sorted(value.items(), key=lambda kv: int(kv[0]))]
    return {k.replace("~", "/"): _listed(v) for k, v in value.items()}


def _load(
    tree: Mapping[str, bytes], db: sqlite3.Connection
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, list[str]]]:
    layers: dict[str, list[dict[str, Any]]] = {"base": [], "overlay": [], "hotfix": []}
    for path, digest in _rows(tree, "checksums"):
        copies = [tree.get(f"input/{place}/{path}", b"") for place in ("manifests", "backup")]
        layers[path.partition("/")[0]] += _paths(
            next(c for c in copies if hashlib.sha256(c).hexdigest() == digest).decode()
        )
    for folder, tables in (
        ("policy", ("namespaces", "quotas", "images", "secrets", "priorities")),
        ("cluster", ("live",)),
    ):
        for name in tables:
            for row in _rows(tree, f"{folder}/{name}"):
                db.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
    case = json.loads(tree["input/case.json"])
    used: dict[str, list[str]] = {}
    for flat in [d for d in layers["base"] if d["kind"] == "Deployment"] + layers["overlay"]:
        _upsert(db, flat["metadata/name"], flat)
    for flat in sorted(layers["hotfix"], key=lambda d: d["metadata/annotations/ops~applied-at"]):
        name, start, end = (
            flat[f"metadata/{k}"] for k in ("name", "annotations/ops~applied-at", "annotations/ops~expires-at")
        )
        if start <= case["cutover"] and case["cutover"] < end:
            _upsert(db, name, flat)
            used.setdefault(name, []).append(start)
        else:
            db.execute("INSERT INTO audit VALUES (?, 'hotfix-expired', ?, ?)", (name, start, end))
    db.execute("DELETE FROM fact WHERE path GLOB 'metadata/annotations/*'")
    db.execute("UPDATE fact SET value = trim(value, '\"') WHERE value GLOB '\"*\"'")
    return [d for d in layers["base"] if d["kind"] == "Service"], case, used


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    services, case, used = _load(tree, db)
    db.execute(
        "INSERT INTO audit SELECT l.service, 'autoscaled', w.replicas, l.replicas FROM live l JOIN work w USING (service) WHERE l.autoscaled = 'yes' AND l.replicas <> w.replicas"
    )
    db.execute(
        "UPDATE fact SET value = (SELECT replicas FROM live l WHERE l.service = fact.service) WHERE path = 'spec/replicas' AND service IN (SELECT service FROM live WHERE autoscaled = 'yes')"
    )
    effective = [
        (*row, ";".join(used.get(row[0], ())))
        for row in db.execute(
            "SELECT service, home, image, replicas, cpu, memory, variables FROM work ORDER BY service"
        )
    ]
    db.executescript("""
      CREATE TABLE target AS SELECT w.service, w.home, coalesce(own.new, other.new) new, w.image, (SELECT i.digest FROM images i
        WHERE i.repository || ':' || i.tag = w.image AND lower(trim(i.status)) = 'approved' ORDER BY i.at DESC, i.digest DESC LIMIT 1) digest
        FROM work w LEFT JOIN namespaces own ON own.old = w.home AND own.team = w.team JOIN namespaces other ON other.old = w.home AND other.team = '*';
      CREATE TABLE moved AS SELECT * FROM target WHERE digest IS NOT NULL;
      INSERT INTO audit SELECT service, 'blocked', image, '' FROM target WHERE digest IS NULL;
      INSERT INTO audit SELECT service, 'namespace', home, new FROM moved;
    """)
    new = dict(db.execute("SELECT service, new FROM target"))
    for name, image, digest in db.execute("SELECT service, image, digest FROM moved").fetchall():
        pinned = image[: image.rindex(":")] + "@" + digest
        db.execute("INSERT INTO audit VALUES (?, 'image-pin', ?, ?)", (name, image, pinned))
        db.execute(f"UPDATE fact SET value = ? WHERE service = ? AND path = '{ROOT}/image'", (pinned, name))
    _references(db, new)
    db.execute(
        "UPDATE fact SET value = (SELECT new FROM moved m WHERE m.service = fact.service) WHERE path = 'metadata/namespace' AND service IN (SELECT service FROM moved)"
    )
    quotas = _quotas(db)
    return _outputs(db, services, case, new, effective, quotas)


def _references(db: sqlite3.Connection, new: Mapping[str, str]) -> None:
    db.executescript(f"""
      CREATE TABLE used AS SELECT f.service, f.path, f.value secret, s.new, s.status, replace(f.path, '/valueFrom/secretKeyRef/name', '') item
        FROM fact f JOIN moved m USING (service) JOIN secrets s ON s.old = m.home AND s.secret = f.value WHERE f.path GLOB '{ROOT}/env/*/secretKeyRef/name';
      INSERT INTO audit SELECT u.service, 'secret-retired', u.secret, f.value FROM used u JOIN fact f ON f.service = u.service AND f.path = u.item || '/name' WHERE u.status = 'retired';
      INSERT INTO audit SELECT service, 'secret-rename', secret, new FROM used WHERE status <> 'retired';
      UPDATE fact SET value = u.new FROM used u WHERE u.service = fact.service AND u.path = fact.path AND u.status <> 'retired';
      DELETE FROM fact WHERE EXISTS (SELECT 1 FROM used u WHERE u.status = 'retired' AND u.service = fact.service AND fact.path GLOB u.item || '/*');
    """)
    query = "SELECT service, path, value FROM fact JOIN moved USING (service) WHERE path GLOB '*/env/*/value' AND value LIKE '%.svc.cluster.local%'"
    for name, path, value in db.execute(query).fetchall():
        parts = re.split(r"([\w-]+\.[\w-]+)(?=\.svc\.cluster\.local)", value)
        parts[1::2] = [f"{p.split('.')[0]}.{new.get(p.split('.')[0], p.split('.')[1])}" for p in parts[1::2]]
        if "".join(parts) != value:
            db.execute("INSERT INTO audit VALUES (?, 'address', ?, ?)", (name, value, "".join(parts)))
            db.execute("UPDATE fact SET value = ? WHERE service = ? AND path = ?", ("".join(parts), name, path))


def _quotas(db: sqlite3.Connection) -> list[dict[str, Any]]:
    out = []
    db.execute("CREATE TABLE had AS SELECT service, replicas FROM work")
    use = "SELECT coalesce(sum(w.replicas * w.cpu), 0), coalesce(sum(w.replicas * w.memory), 0), count(*) FROM work w JOIN moved m USING (service) WHERE m.new = ?"
    spare = "SELECT w.service FROM work w JOIN moved m USING (service) JOIN priorities p USING (service) WHERE m.new = ? AND w.replicas > 1 ORDER BY p.priority LIMIT 1"
    for name, cpu, memory in db.execute("SELECT * FROM quotas ORDER BY namespace").fetchall():
        while True:
            a, b, count = db.execute(use, (name,)).fetchone()
            victim = db.execute(spare, (name,)).fetchone()
            if (a <= cpu and b <= memory) or victim is None:
                break
            db.execute("UPDATE fact SET value = value - 1 WHERE path = 'spec/replicas' AND service = ?", victim)
        out.append(
            {"namespace": name, "cpu_m": a, "memory_mi": b, "workloads": count, "fits": a <= cpu and b <= memory}
        )
    db.execute(
        "INSERT INTO audit SELECT service, 'replica-cut', h.replicas, w.replicas FROM had h JOIN work w USING (service) WHERE h.replicas <> w.replicas"
    )
    return out


def _outputs(
    db: sqlite3.Connection,
    services: list[dict[str, Any]],
    case: dict[str, Any],
    new: Mapping[str, str],
    effective: list[Any],
    quotas: list[Any],
) -> dict[str, bytes]:
    moved = [name for (name,) in db.execute("SELECT service FROM moved ORDER BY service")]
    items = []
    for name in moved:
        pairs = db.execute("SELECT path, value FROM fact WHERE service = ? ORDER BY nth", (name,)).fetchall()
        items.append(_tree([(p, int(v) if p == "spec/replicas" else v) for p, v in pairs]))
    items += [
        _tree(list({**s, "metadata/namespace": new[s["metadata/name"]]}.items()))
        for s in services
        if s["metadata/name"] in moved
    ]
    audit = sorted((s, r, str(b), str(a)) for s, r, b, a in db.execute("SELECT * FROM audit"))
    report = {
        "case": case["case"], "workloads": len(moved), "over_quota": [q["namespace"] for q in quotas if not q["fits"]],
        "blocked": [n for (n,) in db.execute("SELECT service FROM target WHERE digest IS NULL ORDER BY service")],
        "by_namespace": dict(db.execute("SELECT new, count(*) FROM moved GROUP BY new")), "rules": dict(db.execute("SELECT rule, count(*) FROM audit GROUP BY rule")),
    }  # fmt: skip
    tables = {
        "staging/effective": ("service,namespace,image,replicas,cpu_m,memory_mi,variables,hotfixes", effective),
        "audit": ("service,rule,before,after", audit),
    }
    out = {}
    for name, (header, rows) in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header.split(","), *rows])
        out[f"output/{name}.csv"] = text.getvalue().encode()
    order = sorted(items, key=lambda d: (d["metadata"]["namespace"], d["kind"], d["metadata"]["name"]))
    for name, value in (("manifests", {"items": order}), ("quotas", {"namespaces": quotas}), ("report", report)):
        out[f"output/{name}.json"] = json.dumps(value).encode()
    return out
