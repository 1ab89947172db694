"""The migrated cluster and its audit, computed from the world itself."""

from __future__ import annotations

import copy
import re
from collections import Counter
from typing import Any

from workbench.worlds.generators.cluster_migration.scene import World

HOST = re.compile(r"\b([a-z0-9-]+)\.([a-z0-9-]+)\.svc\.cluster\.local\b")
EFFECTIVE = ("service", "namespace", "image", "replicas", "cpu_m", "memory_mi", "variables", "hotfixes")
AUDIT = ("service", "rule", "before", "after")


def merged(base: Any, patch: Any) -> Any:
    """A strategic merge: mappings key by key, null removes; lists of named items by name; all else is replaced."""
    if isinstance(base, dict) and isinstance(patch, dict):
        out = {k: merged(v, patch[k]) if k in patch else v for k, v in base.items() if patch.get(k, 0) is not None}
        return out | {k: v for k, v in patch.items() if k not in base and v is not None}
    if (
        isinstance(base, list)
        and isinstance(patch, list)
        and all(isinstance(i, dict) and "name" in i for i in base + patch)
    ):
        changes = {i["name"]: i for i in patch}
        known = {i["name"] for i in base}
        return [merged(i, changes.get(i["name"], {})) for i in base] + [i for i in patch if i["name"] not in known]
    return patch


def container(doc: dict[str, Any]) -> dict[str, Any]:
    return doc["spec"]["template"]["spec"]["containers"][0]


def amounts(doc: dict[str, Any]) -> tuple[int, int]:
    requests = container(doc)["resources"]["requests"]
    return int(requests["cpu"][:-1]), int(requests["memory"][:-2])


class Migration:
    """Runs the policy once; rules may be switched off by name for counterfactuals."""

    def __init__(self, world: World, off: tuple[str, ...] = ()):
        self.world, self.off = world, off
        self.audit: list[tuple[str, ...]] = []
        self.docs = {d["metadata"]["name"]: copy.deepcopy(d) for d in world.layer("base") if d["kind"] == "Deployment"}
        self.services = [copy.deepcopy(d) for d in world.layer("base") if d["kind"] == "Service"]
        self.fixes: dict[str, list[str]] = {name: [] for name in self.docs}
        self.layers()
        self.effective = [self.row(name) for name in sorted(self.docs)]
        self.names = {n: self.target(d) for n, d in self.docs.items()}
        self.blocked: list[str] = []
        for name in sorted(self.docs):
            self.move(name)
        self.cuts = self.fit()

    def layers(self) -> None:
        for patch in self.world.layer("overlay"):
            name = patch["metadata"]["name"]
            self.docs[name] = merged(self.docs[name], patch)
        live = {r["service"]: r for r in self.world.table("cluster/live.csv")}
        for patch in sorted(self.world.layer("hotfix"), key=lambda d: d["metadata"]["annotations"]["ops/applied-at"]):
            name, marks = patch["metadata"]["name"], patch["metadata"]["annotations"]
            if not marks["ops/applied-at"] <= self.world.cutover < marks["ops/expires-at"] and "expiry" not in self.off:
                self.audit.append((name, "hotfix-expired", marks["ops/applied-at"], marks["ops/expires-at"]))
                continue
            self.docs[name] = merged(self.docs[name], patch)
            self.fixes[name].append(marks["ops/applied-at"])
        for name, doc in self.docs.items():
            doc["metadata"].pop("annotations", None)
            if live[name]["autoscaled"] == "yes" and int(live[name]["replicas"]) != doc["spec"]["replicas"]:
                self.audit.append((name, "autoscaled", str(doc["spec"]["replicas"]), live[name]["replicas"]))
                doc["spec"]["replicas"] = int(live[name]["replicas"])

    def row(self, name: str) -> dict[str, str]:
        doc, (cpu, memory) = self.docs[name], amounts(self.docs[name])
        values = (
            name,
            doc["metadata"]["namespace"],
            container(doc)["image"],
            doc["spec"]["replicas"],
            cpu,
            memory,
            len(container(doc)["env"]),
            ";".join(self.fixes[name]),
        )
        return dict(zip(EFFECTIVE, map(str, values), strict=True))

    def target(self, doc: dict[str, Any]) -> str:
        rows = {(r["old_namespace"], r["team"]): r["new_namespace"] for r in self.world.table("policy/namespaces.csv")}
        home, team = doc["metadata"]["namespace"], doc["metadata"]["labels"]["team"]
        return rows.get((home, team)) or rows[home, "*"]

    def move(self, name: str) -> None:
        doc, box = self.docs[name], container(self.docs[name])
        home = doc["metadata"]["namespace"]
        repository, tag = box["image"].rsplit(":", 1)
        good = [
            r
            for r in self.world.table("policy/images.csv")
            if (r["repository"], r["tag"], r["status"]) == (repository, tag, "approved")
        ]
        if not good:
            self.blocked.append(name)
            self.audit.append((name, "blocked", box["image"], ""))
            return
        pinned = f"{repository}@{max((r['decided_at'], r['digest']) for r in good)[1]}"
        self.audit += [(name, "namespace", home, self.names[name]), (name, "image-pin", box["image"], pinned)]
        doc["metadata"]["namespace"], box["image"] = self.names[name], pinned
        secrets = {(r["old_namespace"], r["secret"]): r for r in self.world.table("policy/secrets.csv")}
        kept = []
        for item in box["env"]:
            if "valueFrom" in item:
                reference = item["valueFrom"]["secretKeyRef"]
                row = secrets[home, reference["name"]]
                if row["status"] == "retired":
                    self.audit.append((name, "secret-retired", reference["name"], item["name"]))
                    continue
                self.audit.append((name, "secret-rename", reference["name"], row["new_secret"]))
                reference["name"] = row["new_secret"]
            elif (
                new := HOST.sub(lambda m: f"{m[1]}.{self.names.get(m[1], m[2])}.svc.cluster.local", item["value"])
            ) != item["value"]:
                self.audit.append((name, "address", item["value"], new))
                item["value"] = new
            kept.append(item)
        box["env"] = kept

    def fit(self) -> list[dict[str, Any]]:
        ranks = {r["service"]: int(r["priority"]) for r in self.world.table("policy/priorities.csv")}
        out = []
        for quota in sorted(self.world.table("policy/quotas.csv"), key=lambda r: r["namespace"]):
            inside = sorted(
                (n for n in self.docs if n not in self.blocked and self.names[n] == quota["namespace"]),
                key=ranks.__getitem__,
            )
            before = {n: self.docs[n]["spec"]["replicas"] for n in inside}
            limits = (int(quota["cpu_m"]), int(quota["memory_mi"]))

            def used(inside: list[str] = inside) -> list[int]:
                return [
                    sum(self.docs[n]["spec"]["replicas"] * amounts(self.docs[n])[i] for n in inside) for i in (0, 1)
                ]

            while any(u > q for u, q in zip(used(), limits, strict=True)) and "quota" not in self.off:
                spare = next((n for n in inside if self.docs[n]["spec"]["replicas"] > 1), None)
                if spare is None:
                    break
                self.docs[spare]["spec"]["replicas"] -= 1
            for n in inside:
                if self.docs[n]["spec"]["replicas"] != before[n]:
                    self.audit.append((n, "replica-cut", str(before[n]), str(self.docs[n]["spec"]["replicas"])))
            cpu, memory = used()
            fits = cpu <= limits[0] and memory <= limits[1]
            out.append(
                {
                    "namespace": quota["namespace"],
                    "cpu_m": cpu,
                    "memory_mi": memory,
                    "workloads": len(inside),
                    "fits": fits,
                }
            )
        return out

    def answer(self) -> dict[str, Any]:
        items = [d for n, d in self.docs.items() if n not in self.blocked]
        for service in self.services:
            name = service["metadata"]["name"]
            if name not in self.blocked:
                items.append({**service, "metadata": {**service["metadata"], "namespace": self.names[name]}})
        items.sort(key=lambda d: (d["metadata"]["namespace"], d["kind"], d["metadata"]["name"]))
        audit = [dict(zip(AUDIT, row, strict=True)) for row in sorted(self.audit)]
        report = {
            "case": self.world.case,
            "workloads": len(self.docs) - len(self.blocked),
            "blocked": self.blocked,
            "by_namespace": dict(Counter(self.names[n] for n in sorted(self.docs) if n not in self.blocked)),
            "rules": dict(Counter(r["rule"] for r in audit)),
            "over_quota": [q["namespace"] for q in self.cuts if not q["fits"]],
        }
        return {"effective": self.effective, "manifests": items, "audit": audit, "quotas": self.cuts, "report": report}
