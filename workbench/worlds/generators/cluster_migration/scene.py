"""A platform team's old cluster: manifests in three layers, and the policy under which each workload moves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw

SIZES: Mapping[str, tuple[int, int, int, int]] = {
    "unit": (3, 3, 5, 4),
    "small": (4, 5, 12, 7),
    "full": (6, 8, 24, 14),
}  # namespaces, services each, variables, hotfixes
NOUNS = "ledger parcel invoice beacon harbor quarry meadow lantern cobalt saffron orchid timber glacier copper falcon prairie".split()
SETTINGS = "LOG_LEVEL REGION CACHE_TTL POOL_SIZE TIMEOUT_MS FEATURE_SET RETRIES SHARD BATCH QUEUE TRACE_RATE LOCALE THEME BUCKET STREAM WINDOW DEPTH LIMIT QUOTA MODE PORT_ALT EDGE ZONE TIER".split()
TABLES: Mapping[str, tuple[str, ...]] = {
    "policy/namespaces.csv": ("old_namespace", "team", "new_namespace"),
    "policy/quotas.csv": ("namespace", "cpu_m", "memory_mi"),
    "policy/images.csv": ("repository", "tag", "digest", "decided_at", "status"),
    "policy/secrets.csv": ("old_namespace", "secret", "new_secret", "status"),
    "policy/priorities.csv": ("service", "priority"),
    "cluster/live.csv": ("service", "replicas", "autoscaled"),
}


@dataclass(frozen=True)
class World:
    case: str
    cutover: str
    documents: tuple[tuple[str, str], ...]  # path below input/, its documents as JSON
    tables: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]

    def table(self, path: str) -> list[dict[str, str]]:
        return [dict(zip(TABLES[path], row, strict=True)) for row in dict(self.tables)[path]]

    def layer(self, name: str) -> list[dict[str, Any]]:
        """All documents of a layer, by path."""
        return [d for path, text in sorted(self.documents) if path.startswith(name + "/") for d in json.loads(text)]


def _deployment(
    name: str, namespace: str, spec: dict[str, Any], metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": spec,
    }


def _containers(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [{"name": name, **fields}]}}}


def _resources(cpu: int, memory: int) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}


def _base(
    draw: Draw, name: str, namespace: str, team: str, image: str, peers: list[tuple[str, str]], secret: str, count: int
) -> list[dict[str, Any]]:
    env: list[dict[str, Any]] = [
        {"name": n, "value": f"{draw.choice(NOUNS)}-{draw.hexadecimal(10)}"} for n in draw.sample(SETTINGS, count)
    ]
    for peer, home in peers:
        env.append(
            {
                "name": f"{peer.split('-')[0].upper()}_URL",
                "value": f"http://{peer}.{home}.svc.cluster.local:8080/{draw.hexadecimal(4)}",
            }
        )
    env.append({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}})
    fields = {
        "image": image,
        **_resources(50 * draw.integer(2, 10), 64 * draw.integer(2, 12)),
        "env": draw.shuffled(env),
    }
    spec = {"replicas": draw.integer(2, 5), **_containers(name, fields)}
    labels = {"labels": {"app": name, "team": team, "legacy": f"r{draw.integer(1, 9)}"}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"app": name},
            "ports": [{"name": "http", "port": 8080, "targetPort": draw.integer(3000, 9000)}],
        },
    }
    return [_deployment(name, namespace, spec, labels), service]


def _stamp(draw: Draw, first: int, last: int) -> str:
    return f"2026-{draw.integer(first, last):02d}-{draw.integer(1, 28):02d}T{draw.integer(0, 23):02d}:{draw.integer(0, 59):02d}:00Z"


def make(draw: Draw, tier: Tier) -> World:
    spaces, each, variables, fixes = SIZES[tier]
    homes = [f"{n}-old" for n in draw.sample(NOUNS, spaces)]
    teams = [f"team-{draw.hexadecimal(4)}" for _ in range(spaces + 1)]
    names = [(f"{draw.choice(NOUNS)}-{draw.hexadecimal(5)}", home) for home in homes for _ in range(each)]
    cutover = f"2026-07-{draw.integer(1, 28):02d}T06:00:00Z"
    documents: dict[str, list[Any]] = {}
    images, secrets, live = [], [], []
    for at, (name, home) in enumerate(names):
        one = draw.fork("service", name)
        tags = [f"{one.integer(1, 4)}.{one.integer(0, 9)}.{i}" for i in range(2)]
        repository, secret = f"registry.local/{name}", f"{name}-db"
        base = _base(
            one, name, home, one.choice(teams), f"{repository}:{tags[0]}", draw.sample(names, 2), secret, variables
        )
        documents.setdefault(f"base/{home}.yaml", []).extend(base)
        patch: dict[str, Any] = {"replicas": one.integer(1, 6)} if one.chance(0.6) else {}
        if one.chance(0.6):
            patch |= _containers(
                name,
                {
                    **({"image": f"{repository}:{tags[1]}"} if one.chance(0.5) else {}),
                    "env": [{"name": "OVERLAY", "value": one.hexadecimal(6)}],
                },
            )
        if patch:
            extra = {"labels": {"legacy": None, "stage": "prod"}} if one.chance(0.5) else None
            documents.setdefault(f"overlay/{home}.yaml", []).append(_deployment(name, home, patch, extra))
        blocked = at == 1 or one.chance(0.08)
        for tag in tags:
            for _ in range(one.integer(1, 2)):
                images.append(
                    (
                        repository,
                        tag,
                        f"sha256:{one.hexadecimal(64)}",
                        _stamp(one, 1, 5),
                        "revoked" if blocked else one.weighted(["approved", "revoked"], [4, 1]),
                    )
                )
            if not blocked:
                images.append((repository, tag, f"sha256:{one.hexadecimal(64)}", _stamp(one, 1, 5), "approved"))
        secrets.append(
            (home, secret, f"vault-{one.hexadecimal(6)}", "retired" if at == 2 or one.chance(0.15) else "migrated")
        )
        live.append((name, str(one.integer(2, 7)), "yes" if one.chance(0.35) else "no"))
    for nth in range(fixes):
        name, home = names[0] if nth < 2 else draw.choice(names)
        marks = {"ops/applied-at": f"2026-0{draw.integer(4, 6)}-{draw.integer(1, 28):02d}T{nth:02d}:15:00Z"}
        marks["ops/expires-at"] = f"2026-0{draw.integer(8, 9)}-01T00:00:00Z" if nth % 3 else "2026-06-30T00:00:00Z"
        spec = {
            "replicas": draw.integer(1, 8),
            **_containers(
                name,
                {
                    **_resources(50 * draw.integer(2, 10), 64 * draw.integer(2, 12)),
                    "env": [{"name": "HOTFIX", "value": draw.hexadecimal(8)}],
                },
            ),
        }
        documents[f"hotfix/hf-{draw.hexadecimal(6)}.yaml"] = [_deployment(name, home, spec, {"annotations": marks})]
    spaces_rows = [(home, "*", home.replace("old", draw.hexadecimal(4))) for home in homes]
    spaces_rows += [(home, draw.choice(teams), f"shared-{draw.hexadecimal(4)}") for home in homes[:2]]
    quotas = [
        (new, str(250 * draw.integer(5 * each // 2, 5 * each)), str(256 * draw.integer(4 * each, 9 * each)))
        for _, _, new in spaces_rows
    ]
    ranks = draw.sample(range(1, 10 * len(names)), len(names))
    rows = {
        "policy/namespaces.csv": spaces_rows,
        "policy/quotas.csv": quotas,
        "policy/images.csv": draw.shuffled(images),
        "policy/secrets.csv": draw.shuffled(secrets),
        "policy/priorities.csv": [(n, str(r)) for (n, _), r in zip(names, ranks, strict=True)],
        "cluster/live.csv": draw.shuffled(live),
    }
    kept = tuple((path, json.dumps(docs)) for path, docs in sorted(documents.items()))
    return World(f"MIG-{draw.hexadecimal(8)}", cutover, kept, tuple((p, tuple(rows[p])) for p in TABLES))


def check(world: World) -> None:
    names = [d["metadata"]["name"] for d in world.layer("base") if d["kind"] == "Deployment"]
    if len(set(names)) != len(names):
        raise WorldError("two deployments have one name")
    stamps = [(r["repository"], r["tag"], r["decided_at"]) for r in world.table("policy/images.csv")]
    applied = [d["metadata"]["annotations"]["ops/applied-at"] for d in world.layer("hotfix")]
    if len(set(applied)) != len(applied):
        raise WorldError("two hotfixes were applied at one time")
    if not stamps:
        raise WorldError("no image was ever decided on")
