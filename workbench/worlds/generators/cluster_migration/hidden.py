"""The sealed suite of the migration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.cluster_migration.answers import AUDIT, EFFECTIVE, Migration
from workbench.worlds.generators.cluster_migration.scene import World
from workbench.worlds.trees import edit_json

EFFECT, AUDITED, MANIFESTS, QUOTAS, REPORT = (
    f"output/{n}" for n in ("staging/effective.csv", "audit.csv", "manifests.json", "quotas.json", "report.json")
)


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """A lost service, an unpinned image, a decision without audit, a wrong sum, a wrong count."""
    image = next(i for i in json.loads(tree[MANIFESTS])["items"] if i["kind"] == "Deployment")["spec"]["template"][
        "spec"
    ]["containers"][0]["image"]
    return {
        "effective": {**tree, EFFECT: tree[EFFECT].replace(b".0", b".9", 1).rsplit(b"\n", 2)[0] + b"\n"},
        "manifests": {
            **tree,
            MANIFESTS: tree[MANIFESTS].replace(image.encode(), image.split("@")[0].encode() + b":latest"),
        },
        "audit": {**tree, AUDITED: tree[AUDITED].rsplit(b"\n", 2)[0] + b"\n"},
        "quotas": edit_json(tree, QUOTAS, lambda v: v["namespaces"][0].update(fits=not v["namespaces"][0]["fits"])),
        "report": edit_json(tree, REPORT, lambda v: v.update(workloads=v["workloads"] + 1)),
    }


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _reversed(v) for k, v in reversed(list(value.items()))}
    return [_reversed(v) for v in value] if isinstance(value, list) else value


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Keys in the opposite order; tables with carriage returns."""
    return {
        "keys-reversed": {
            p: json.dumps(_reversed(json.loads(d)), indent=3).encode() if p.endswith(".json") else d
            for p, d in tree.items()
        },
        "carriage-returns": {p: d.replace(b"\n", b"\r\n") for p, d in tree.items()},
    }


def _written(answer: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        EFFECT: csv_table.table(EFFECTIVE, [r.values() for r in answer["effective"]]),
        AUDITED: csv_table.table(AUDIT, [r.values() for r in answer["audit"]]),
        MANIFESTS: json.dumps({"items": answer["manifests"]}).encode(),
        QUOTAS: json.dumps({"namespaces": answer["quotas"]}).encode(),
        REPORT: json.dumps(answer["report"]).encode(),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """Expired hotfixes left in; no overlays; every revoked image taken for approved."""
    trusting = [
        (p, tuple((*r[:4], "approved") for r in rows) if p.endswith("images.csv") else rows) for p, rows in world.tables
    ]
    bare = tuple((p, t) for p, t in world.documents if not p.startswith("overlay/"))
    return {
        "expired-hotfixes": _written(Migration(world, ("expiry",)).answer()),
        "base-only": _written(Migration(replace(world, documents=bare)).answer()),
        "revoked-images": _written(Migration(replace(world, tables=tuple(trusting))).answer()),
    }
