"""Migrates workload by workload, on the documents themselves."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.worlds.formats import yaml_subset

ADDRESS = re.compile(r"(?<![a-z0-9.-])([a-z0-9-]+)\.([a-z0-9-]+)(?=\.svc\.cluster\.local)")
Doc = dict[str, Any]


def _table(tree: Mapping[str, bytes], name: str) -> list[dict[str, str]]:
    data = tree[f"input/{name}.csv"]
    text = data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _layers(tree: Mapping[str, bytes]) -> dict[str, list[Doc]]:
    """The documents of each layer, from intact files."""
    out: dict[str, list[Doc]] = {"base": [], "overlay": [], "hotfix": []}
    for row in _table(tree, "checksums"):
        data = tree.get(f"input/manifests/{row['path']}", b"")
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            data = tree[f"input/backup/{row['path']}"]
        out[row["path"].split("/")[0]] += yaml_subset.load_all(data.decode())
    return out


def _patch(target: Doc, patch: Doc) -> None:
    """Merges patch into target, in place."""
    for key, value in patch.items():
        old = target.get(key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            _patch(old, value)
        elif (
            isinstance(value, list)
            and isinstance(old, list)
            and all("name" in i for i in (*old, *value) if isinstance(i, dict))
        ):
            for item in value:
                same = [o for o in old if o["name"] == item["name"]]
                if same:
                    _patch(same[0], item)
                else:
                    old.append(item)
        else:
            target[key] = value


def _box(doc: Doc) -> Doc:
    return doc["spec"]["template"]["spec"]["containers"][0]


def _number(text: str) -> int:
    return int(re.match(r"\d+", text)[0])


class Move:
    """The state of one migration."""

    def __init__(self, tree: Mapping[str, bytes]):
        self.tree = tree
        self.case = json.loads(tree["input/case.json"])
        self.layers = _layers(tree)
        self.work = {d["metadata"]["name"]: d for d in self.layers["base"] if d["kind"] == "Deployment"}
        self.audit: list[list[str]] = []
        self.used: dict[str, list[str]] = {name: [] for name in self.work}

    def merge(self) -> list[list[Any]]:
        for patch in self.layers["overlay"]:
            _patch(self.work[patch["metadata"]["name"]], patch)
        for fix in sorted(self.layers["hotfix"], key=lambda d: d["metadata"]["annotations"]["ops/applied-at"]):
            name, marks = fix["metadata"]["name"], fix["metadata"]["annotations"]
            start, end = marks["ops/applied-at"], marks["ops/expires-at"]
            if start <= self.case["cutover"] < end:
                _patch(self.work[name], fix)
                self.used[name].append(start)
            else:
                self.audit.append([name, "hotfix-expired", start, end])
        for row in _table(self.tree, "cluster/live"):
            doc, seen = self.work[row["service"]], int(row["replicas"])
            if row["autoscaled"] == "yes" and doc["spec"]["replicas"] != seen:
                self.audit.append([row["service"], "autoscaled", str(doc["spec"]["replicas"]), str(seen)])
                doc["spec"]["replicas"] = seen
        rows = []
        for name, doc in sorted(self.work.items()):
            doc["metadata"].pop("annotations", None)
            asked = _box(doc)["resources"]["requests"]
            sizes = [_number(asked["cpu"]), _number(asked["memory"]), len(_box(doc)["env"])]
            rows.append(
                [
                    name,
                    doc["metadata"]["namespace"],
                    _box(doc)["image"],
                    doc["spec"]["replicas"],
                    *sizes,
                    ";".join(self.used[name]),
                ]
            )
        return rows

    def homes(self) -> None:
        rows = _table(self.tree, "policy/namespaces")
        self.new = {}
        for name, doc in self.work.items():
            fitting = [
                r
                for r in rows
                if r["old_namespace"] == doc["metadata"]["namespace"]
                and r["team"] in ("*", doc["metadata"]["labels"]["team"])
            ]
            self.new[name] = min(fitting, key=lambda r: r["team"] == "*")["new_namespace"]

    def rewrite(self) -> None:
        self.blocked = []
        decided = [r | {"status": r["status"].strip().lower()} for r in _table(self.tree, "policy/images")]
        secrets = {(r["old_namespace"], r["secret"]): r for r in _table(self.tree, "policy/secrets")}
        for name, doc in sorted(self.work.items()):
            box, home = _box(doc), doc["metadata"]["namespace"]
            repository, _, tag = box["image"].rpartition(":")
            good = [
                r for r in decided if r["status"] == "approved" and r["repository"] == repository and r["tag"] == tag
            ]
            if not good:
                self.blocked.append(name)
                self.audit.append([name, "blocked", box["image"], ""])
                continue
            image = repository + "@" + max(good, key=lambda r: (r["decided_at"], r["digest"]))["digest"]
            self.audit += [[name, "namespace", home, self.new[name]], [name, "image-pin", box["image"], image]]
            box["image"], doc["metadata"]["namespace"] = image, self.new[name]
            box["env"] = [item for item in box["env"] if self._variable(name, home, item, secrets)]

    def _variable(self, name: str, home: str, item: Doc, secrets: Mapping[tuple[str, str], dict[str, str]]) -> bool:
        """Rewrites one variable; False when it must go."""
        if "value" in item:
            text = ADDRESS.sub(lambda m: f"{m[1]}.{self.new[m[1]]}" if m[1] in self.new else m[0], item["value"])
            if text != item["value"]:
                self.audit.append([name, "address", item["value"], text])
                item["value"] = text
            return True
        key = item["valueFrom"]["secretKeyRef"]
        row = secrets[home, key["name"]]
        if row["status"] == "retired":
            self.audit.append([name, "secret-retired", key["name"], item["name"]])
            return False
        self.audit.append([name, "secret-rename", key["name"], row["new_secret"]])
        key["name"] = row["new_secret"]
        return True

    def fit(self) -> list[Doc]:
        rank = {r["service"]: int(r["priority"]) for r in _table(self.tree, "policy/priorities")}
        out = []
        for row in sorted(_table(self.tree, "policy/quotas"), key=lambda r: r["namespace"]):
            docs = sorted(
                (d for n, d in self.work.items() if n not in self.blocked and self.new[n] == row["namespace"]),
                key=lambda d: rank[d["metadata"]["name"]],
            )
            asked = [
                (_number(_box(d)["resources"]["requests"]["cpu"]), _number(_box(d)["resources"]["requests"]["memory"]))
                for d in docs
            ]
            count = [d["spec"]["replicas"] for d in docs]
            over = True
            while over:
                cpu = sum(c * a[0] for c, a in zip(count, asked, strict=True))
                memory = sum(c * a[1] for c, a in zip(count, asked, strict=True))
                spare = [i for i, c in enumerate(count) if c > 1]
                over = (cpu > int(row["cpu_m"]) or memory > int(row["memory_mi"])) and bool(spare)
                if over:
                    count[spare[0]] -= 1
            for doc, now in zip(docs, count, strict=True):
                if now != doc["spec"]["replicas"]:
                    self.audit.append([doc["metadata"]["name"], "replica-cut", str(doc["spec"]["replicas"]), str(now)])
                    doc["spec"]["replicas"] = now
            fits = cpu <= int(row["cpu_m"]) and memory <= int(row["memory_mi"])
            out.append(
                {"namespace": row["namespace"], "cpu_m": cpu, "memory_mi": memory, "workloads": len(docs), "fits": fits}
            )
        return out

    def items(self) -> list[Doc]:
        moved = [d for n, d in self.work.items() if n not in self.blocked]
        for doc in self.layers["base"]:
            name = doc["metadata"]["name"]
            if doc["kind"] == "Service" and name not in self.blocked:
                doc["metadata"]["namespace"] = self.new[name]
                moved.append(doc)
        return sorted(moved, key=lambda d: (d["metadata"]["namespace"], d["kind"], d["metadata"]["name"]))


def _csv(header: str, rows: list[list[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *rows])
    return out.getvalue().encode()


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    move = Move(tree)
    yield "verify-files", dict(out)
    out["output/staging/effective.csv"] = _csv(
        "service,namespace,image,replicas,cpu_m,memory_mi,variables,hotfixes", move.merge()
    )
    yield "merge-layers", dict(out)
    move.homes()
    yield "map-namespaces", dict(out)
    move.rewrite()
    yield "rewrite-references", dict(out)
    quotas = move.fit()
    out["output/quotas.json"] = json.dumps({"namespaces": quotas}, indent=1).encode()
    out["output/manifests.json"] = json.dumps({"items": move.items()}, indent=1).encode()
    yield "fit-quotas", dict(out)
    out["output/audit.csv"] = _csv("service,rule,before,after", sorted(move.audit))
    yield "write-audit", dict(out)
    moved = sorted(set(move.work) - set(move.blocked))
    report = {
        "case": move.case["case"], "workloads": len(moved), "blocked": move.blocked, "by_namespace": Counter(move.new[n] for n in moved),
        "rules": Counter(row[1] for row in move.audit), "over_quota": [q["namespace"] for q in quotas if not q["fits"]],
    }  # fmt: skip
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
