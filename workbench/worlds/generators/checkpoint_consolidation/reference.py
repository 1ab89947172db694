"""Reference solver: plan the pieces tensor by tensor, then copy slices into preallocated buffers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.worlds.formats import safetensors

COLUMNS = ["tensor", "rank", "local_name", "axis", "local_start", "local_stop", "start", "stop", "piece_sha256"]


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    topology = json.loads(tree["input/topology.json"])
    rules = json.loads(tree["input/tensor_rules.json"])["rules"]
    iteration = _iteration(tree, topology)
    out: dict[str, bytes] = {}
    yield "inventory", dict(out)
    rows, shards = _audit(tree, iteration)
    out["output/staging/shard_audit.json"] = _dump({"iteration": iteration, "files": rows})
    yield "audit", dict(out)
    plan = sorted(_plan(topology, rules, shards))
    out["output/staging/placement.csv"] = _table(plan, shards)
    yield "place", dict(out)
    tensors = _assemble(plan, shards)
    out["output/model.safetensors"] = safetensors.write((n, *tensors[n]) for n in sorted(tensors))
    yield "assemble", dict(out)
    index = {name: _describe(*tensor) for name, tensor in sorted(tensors.items())}
    out["output/tensor_index.json"] = _dump({"tensors": index})
    yield "index", dict(out)
    stages = {str(p): 0 for p in range(topology["pipeline_parallel"])}
    for _, rank, local, axis, a, b, *_ in plan:
        shape = shards[rank][local][1]
        stages[rank.split("-")[0][2:]] += (b - a) * _count(shape) // shape[max(axis, 0)]
    out["output/report.json"] = _dump(
        {
            "model": topology["model"],
            "iteration": iteration,
            "parameters": sum(_count(shape) for _, shape, _ in tensors.values()),
            "tensor_bytes": sum(len(data) for _, _, data in tensors.values()),
            "sum_64": sum(entry["sum_64"] for entry in index.values()),
            "parameters_by_stage": stages,
            "rejected": {v: [r["path"] for r in rows if r["verdict"] == v] for v in ("stale", "truncated", "corrupt")},
            "file_sha256": hashlib.sha256(b"".join(tensors[n][2] for n in sorted(tensors))).hexdigest(),
        }
    )
    yield "report", dict(out)


def _iteration(tree: Mapping[str, bytes], topology: dict[str, Any]) -> int:
    ranks = topology["tensor_parallel"] * topology["pipeline_parallel"] * topology["expert_parallel"]
    saved = defaultdict(set)
    for line in tree["input/save_journal.jsonl"].splitlines():
        record = json.loads(line)
        saved[record["iteration"]].add(record["rank"])
    return max(number for number, names in saved.items() if len(names) == ranks)


def _audit(tree: Mapping[str, bytes], iteration: int) -> tuple[list[dict[str, Any]], dict[str, safetensors.Tensors]]:
    rows, shards = [], {}
    for path in sorted(p for p in tree if p.endswith(".safetensors")):
        data = tree[path]
        said = safetensors.header(data)["__metadata__"]
        manifest = json.loads(tree[f"input/manifests/{said['rank']}.json"])
        digest, verdict = hashlib.sha256(data).hexdigest(), ""
        if int(said["iteration"]) < iteration:
            verdict = "stale"
        elif len(data) < manifest["bytes"]:
            verdict = "truncated"
        elif digest != manifest["sha256"]:
            verdict = "corrupt"
        rows.append(
            {
                "path": path,
                "rank": said["rank"],
                "iteration": int(said["iteration"]),
                "sha256": digest,
                "verdict": verdict,
            }
        )
    for row in sorted(rows, key=lambda row: "input/primary/" not in row["path"]):
        if not row["verdict"]:
            row["verdict"] = "spare" if row["rank"] in shards else "used"
            shards.setdefault(row["rank"], safetensors.read(tree[row["path"]])[1])
    return rows, shards


def _plan(
    topology: dict[str, Any], rules: list[dict[str, str]], shards: dict[str, safetensors.Tensors]
) -> Iterator[tuple]:
    """(tensor, rank, local, axis, local start, local stop, start, stop, block of columns or rows)."""
    first = [*topology["stage_first_layer"], topology["layers"]]
    tp, last = topology["tensor_parallel"], topology["pipeline_parallel"] - 1
    per = topology["experts"] // topology["expert_parallel"]
    for rule in rules:
        local, whole, split = rule["local"], rule["global"], rule["split"]
        if "{layer}" in local:
            layers = [(p, n, n - first[p]) for p in range(last + 1) for n in range(first[p], first[p + 1])]
        else:
            layers = [(0 if split == "vocabulary_rows" and "embed" in local else last, 0, 0)]
        experts = [(e, e // per, e % per) for e in range(topology["experts"])] if "{expert}" in local else [(0, 0, 0)]
        for p, n, near in layers:
            for e, held, inside in experts:
                name, key = whole.format(layer=n, expert=e), local.format(layer=near, expert=inside)
                for t in range(tp):
                    rank = f"pp{p}-tp{t}-ep{held}"
                    for axis, a, b, start in _spans(split, shards[rank][key][1], t, tp, topology):
                        yield name, rank, key, axis, a, b, start, start + b - a


def _spans(
    split: str, shape: tuple[int, ...], t: int, tp: int, topology: dict[str, Any]
) -> Iterator[tuple[int, int, int, int]]:
    """(axis, local start, local stop, start) of the pieces that rank t of a tensor holds."""
    if split == "replicated":
        if t == 0:
            yield -1, 0, shape[0], 0
    elif split == "fused_qkv_rows":
        part = shape[0] // 3
        for block in range(3):
            yield 0, block * part, (block + 1) * part, block * part * tp + t * part
    elif split == "columns":
        yield 1, 0, shape[1], t * shape[1]
    else:
        stop = shape[0]
        if split == "vocabulary_rows":
            stop = min(stop, topology["vocabulary"] - t * shape[0])
        if stop > 0:
            yield 0, 0, stop, t * shape[0]


def _slice(tensor: tuple[str, tuple[int, ...], bytes], axis: int, a: int, b: int) -> bytes:
    dtype, shape, data = tensor
    width = safetensors.WIDTH[dtype]
    row = width * (shape[1] if len(shape) == 2 else 1)
    if axis < 1:
        return data[a * row : b * row]
    return b"".join(data[at + a * width : at + b * width] for at in range(0, len(data), row))


def _table(plan: list[tuple], shards: dict[str, safetensors.Tensors]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(plan, key=lambda r: (r[0], r[6])):
        piece = _slice(shards[row[1]][row[2]], row[3], row[4], row[5])
        writer.writerow([*row, hashlib.sha256(piece).hexdigest()[:16]])
    return text.getvalue().encode()


def _assemble(plan: list[tuple], shards: dict[str, safetensors.Tensors]) -> safetensors.Tensors:
    groups = defaultdict(list)
    for row in plan:
        groups[row[0]].append(row)
    out = {}
    for name, rows in groups.items():
        dtype, shape, _ = shards[rows[0][1]][rows[0][2]]
        axis, length = max(rows[0][3], 0), max(row[7] for row in rows)
        whole = tuple(length if at == axis else n for at, n in enumerate(shape))
        width = safetensors.WIDTH[dtype]
        buffer = bytearray(_count(whole) * width)
        for _, rank, local, _, a, b, start, stop in rows:
            piece = _slice(shards[rank][local], axis, a, b)
            if axis == 0:
                row = len(piece) // (b - a)
                buffer[start * row : stop * row] = piece
                continue
            line, part = whole[1] * width, (b - a) * width
            for at in range(whole[0]):
                buffer[at * line + start * width : at * line + stop * width] = piece[at * part : (at + 1) * part]
        out[name] = (dtype, whole, bytes(buffer))
    return out


def _describe(dtype: str, shape: tuple[int, ...], data: bytes) -> dict[str, Any]:
    wide = data
    if dtype == "BF16":  # the upper half of a float32
        wide = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
    values = struct.unpack(f"<{len(wide) // 4}f", wide)
    return {
        "dtype": dtype,
        "shape": list(shape),
        "sha256": hashlib.sha256(data).hexdigest(),
        "sum_64": int(sum(values) * 64),
    }


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) == 2 else 1)


def _dump(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
