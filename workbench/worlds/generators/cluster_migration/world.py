"""The public contract of the migration: files, damage, truth and prompt (Tev Table 6, 9.6: Kubernetes migration)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table, yaml_subset
from workbench.worlds.generators.cluster_migration.answers import AUDIT, EFFECTIVE, Migration
from workbench.worlds.generators.cluster_migration.scene import TABLES, World, check, make

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
MANIFEST = {
    "apiVersion": "string",
    "kind": "string",
    "metadata": {"name": "string", "namespace": "string"},
    "spec": {"<field>": "as in the manifest"},
}
SPEC = Spec(
    name="cluster_migration",
    revision=1,
    domain="9.6",
    title="Migration of a Kubernetes cluster under policy",
    summary="Merge base, overlay and hotfix manifests, then move every workload: namespaces, image pins, secrets, addresses, quotas; with an audit.",
    outputs=(
        Output("output/staging/effective.csv", "csv", "the old cluster's effective workloads", dict.fromkeys(EFFECTIVE, "string")),
        Output("output/manifests.json", "json", "the new cluster's manifests", {"items": [MANIFEST]}),
        Output("output/audit.csv", "csv", "every decision", dict.fromkeys(AUDIT, "string")),
        Output("output/quotas.json", "json", "what each new namespace requests", {"namespaces": [{"namespace": "string", "cpu_m": "integer", "memory_mi": "integer", "workloads": "integer", "fits": "boolean"}]}),
        Output("output/report.json", "json", "summary", {"case": "string", "workloads": "integer", "blocked": ["string"], "by_namespace": {"<namespace>": "integer"}, "rules": {"<rule>": "integer"}, "over_quota": ["string"]}),
    ),
    workflow_stages=("verify", "merge", "map", "rewrite", "fit", "report"),
    artifact_roles=("manifest", "patch", "policy", "reference-table", "checksum"),
    relation_types=("layering", "precedence", "foreign-key", "temporal"),
    source_kind="infrastructure",
)  # fmt: skip


def workflow(world: World) -> Workflow:
    count = len(world.layer("base"))
    return Workflow((
        Stage("verify-files", "verify", len(world.documents)),
        Stage("merge-layers", "merge", count + len(world.layer("overlay")) + len(world.layer("hotfix")), ("verify-files",)),
        Stage("map-namespaces", "map", count, ("merge-layers",)),
        Stage("rewrite-references", "rewrite", sum(text.count('"env"') for _, text in world.documents), ("map-namespaces",)),
        Stage("fit-quotas", "fit", len(world.table("policy/quotas.csv")), ("rewrite-references",)),
        Stage("write-audit", "report", count, ("fit-quotas",)),
        Stage("report", "report", 5, ("write-audit",)),
    ))  # fmt: skip


def render(world: World) -> dict[str, bytes]:
    tree = {"input/case.json": json.dumps({"case": world.case, "cutover": world.cutover}).encode() + b"\n"}
    sums = []
    for path, text in world.documents:
        data = yaml_subset.dump_all(json.loads(text)).encode()
        tree[f"input/manifests/{path}"] = tree[f"input/backup/{path}"] = data
        sums.append((path, hashlib.sha256(data).hexdigest()))
    tree["input/checksums.csv"] = csv_table.table(("path", "sha256"), sums)
    for path, rows in world.tables:
        tree[f"input/{path}"] = csv_table.table(TABLES[path], rows)
    return tree


def recover(tree: Tree) -> World:
    case = json.loads(tree["input/case.json"])
    paths = sorted(p for p in tree if p.startswith("input/manifests/"))
    documents = tuple((p[16:], json.dumps(yaml_subset.load_all(tree[p].decode()))) for p in paths)
    rows = tuple((p, tuple(map(tuple, csv_table.rows(tree[f"input/{p}"])))) for p in TABLES)
    return World(case["case"], case["cutover"], documents, rows)


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    tree = render(world)
    texts = [p for p, _ in world.documents if not p.startswith("hotfix/")]
    cut, drifted = draw.sample(texts, 2)
    body = tree[f"input/manifests/{drifted}"].decode()
    name = next(d["metadata"]["name"] for d in json.loads(dict(world.documents)[drifted]))
    line = f"kind: Deployment\nmetadata:\n  name: {name}\n"
    edit = [line, line.replace(name, f"{name}-dr")]
    must = [
        Defect(
            "truncated_file",
            f"input/manifests/{cut}",
            {"lines": draw.integer(3, 9)},
            "a manifest file was cut; the backup is whole",
        )
    ]
    images = world.table("policy/images.csv")
    some = sorted(draw.sample(range(len(images)), max(2, len(images) // 4)))
    manual = [i for i, r in enumerate(world.table("cluster/live.csv")) if r["autoscaled"] == "no"]
    more = [
        Defect("category_drift", "input/policy/images.csv", {"column": "status", "rows": some, "mapping": {"approved": ["APPROVED", "Approved "], "revoked": ["Revoked", "REVOKED"]}}, "the status is spelled in several ways"),
        Defect("duplicate_records", "input/policy/images.csv", {"rows": some[:2]}, "decisions filed twice"),
        Defect("stale_copy", "input/policy/secrets.csv", {"copy": "input/policy/secrets.bak.csv", "edits": [[i, "new_secret", f"vault-{draw.hexadecimal(6)}"] for i in range(3)]}, "the secrets before the last rotation"),
        Defect("contradictory_record", "input/cluster/live.csv", {"column": "replicas", "rows": manual[:2], "values": ["19", "23"][: len(manual[:2])]}, "someone scaled by hand"),
        Defect("encoding_drift", "input/policy/priorities.csv", {"encoding": "utf-16"}, "exported by a spreadsheet"),
    ]  # fmt: skip
    if body.count(edit[0]) == 1 and body.count(edit[1]) == 0:
        more.append(
            Defect(
                "config_drift",
                f"input/manifests/{drifted}",
                {"edits": [edit]},
                "a manifest was edited in place; the backup is as released",
            )
        )
    if not manual:
        more.pop(3)
    kept = sorted(draw.sample(range(len(more)), draw.integer(1, len(more))))
    return (*must, *(more[i] for i in kept))


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return Migration(world).answer()


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="The workloads of an old Kubernetes cluster move to a new one. Work out what really runs, apply the migration policy to it, and deliver the new manifests with an audit of every decision.",
        inputs={
            "input/manifests/{base,overlay,hotfix}/*.yaml": "three layers of manifests, several documents a file",
            "input/backup/": "copies of the released manifest files",
            "input/checksums.csv": "SHA-256 of every released manifest file",
            "input/policy/": "namespaces, quotas, image decisions, secrets, priorities",
            "input/cluster/live.csv": "replicas seen in the old cluster",
            "input/case.json": "the case and the time of the cutover",
        },
        requirements=(
            "Layers: base, then overlay, then hotfixes in order of annotation `ops/applied-at`. A hotfix counts only if applied-at <= cutover < expires-at; otherwise audit `hotfix-expired` (before = applied-at, after = expires-at). Only Deployments are patched, by name.",
            "A patch merges mappings key by key (null removes the key); lists whose items have `name` merge by name, new items at the end; anything else is replaced. Drop all annotations from the result. Then, if the service is autoscaled in live.csv and its live replicas differ, they win: audit `autoscaled` (replicas before, after).",
            "effective.csv, sorted by service: old namespace, image, replicas, cpu_m and memory_mi of one replica (numbers only), number of env variables, applied-at of the hotfixes used joined with `;`.",
            "New namespace: the row for (old namespace, label team) of namespaces.csv, else that for team `*`. Image: `repository@digest` of the latest approved decision for exactly this repository and tag; without one the service is blocked: audit `blocked` (before = image, after empty), and neither its Deployment nor its Service moves; no other policy audit (from `namespace` on) is written for it. The status ignores case and blanks.",
            "For each service moved, audit `namespace` (old, new) and `image-pin` (old image, new image). A variable from a secret: status migrated renames the secret (audit `secret-rename`, old and new secret); retired drops the variable (audit `secret-retired`, before = secret, after = variable). In plain variables `<service>.<old namespace>.svc.cluster.local` of a known service (blocked ones too) gets the new namespace; audit `address` (whole old value, whole new value).",
            "Quotas per new namespace: while replicas x request of the moved services exceeds the quota for cpu or memory, take one replica from the service with the smallest priority number that still has more than one. Audit `replica-cut` once per service (replicas before, after). quotas.json: the final sums, workloads (Deployments moved), fits; every namespace of quotas.csv, sorted.",
            "manifests.json: Deployments and Services in their full form, `namespace` replaced, sorted by namespace, kind, name; order of lists as merged. audit.csv sorted by service, rule, before, after (bytes order). report.json: counts of moved workloads, blocked services sorted, moved per namespace and audit rows per rule (only those present), namespaces that don't fit, sorted.",
        ),
        authority=(
            "A manifest file whose SHA-256 is not the one of checksums.csv is replaced by its backup.",
            "The files of policy/ named in this text are in force; other copies are superseded. Repeated identical rows count once. Tables may come in UTF-16 with a byte order mark.",
            "live.csv has no say over services that aren't autoscaled.",
        ),
    )
