"""Alternative solver: parse the shards by hand, read every tensor as rows of raw cells, and glue matrices by stacking rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

SIZE = {"F32": 4, "BF16": 2}
HEAD = "tensor,rank,local_name,axis,local_start,local_stop,start,stop,piece_sha256"
Rows = list[list[bytes]]


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    grid = json.loads(tree["input/topology.json"])
    names = [
        f"pp{p}-tp{t}-ep{e}"
        for p in range(grid["pipeline_parallel"])
        for t in range(grid["tensor_parallel"])
        for e in range(grid["expert_parallel"])
    ]
    journal = {
        tuple(json.loads(line)[k] for k in ("iteration", "rank"))
        for line in tree["input/save_journal.jsonl"].splitlines()
    }
    complete = [n for n in {n for n, _ in journal} if all((n, name) in journal for name in names)]
    iteration = max(complete)
    files, sound = _judge(tree, iteration)
    pieces: dict[str, list[tuple]] = {}
    for rank in names:
        for local, (dtype, rows) in _tensors(tree[sound[rank]]).items():
            _place(grid, tree, rank, local, dtype, rows, pieces)
    whole, lines = {}, [HEAD]
    for name in sorted(pieces):
        parts = sorted(pieces[name], key=lambda part: part[0][5])
        for (rank, local, axis, a, b, start, stop), _, rows in parts:
            digest = hashlib.sha256(b"".join(map(b"".join, rows))).hexdigest()[:16]
            lines.append(f"{name},{rank},{local},{axis},{a},{b},{start},{stop},{digest}")
        if parts[0][0][2] == 1:
            joined = [
                [c for row in across for c in row] for across in zip(*(rows for _, _, rows in parts), strict=True)
            ]
        else:
            joined = [row for _, _, rows in parts for row in rows]
        whole[name] = (parts[0][1], joined, parts[0][0][2] == -1)
    return _write(grid, iteration, files, lines, whole, pieces)


def _judge(tree: Mapping[str, bytes], iteration: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    copies: dict[str, list[dict[str, Any]]] = {}
    for path, data in tree.items():
        if path.startswith(("input/primary/", "input/mirror/")):
            said = _head(data)[0]["__metadata__"]
            row = {"path": path, "rank": said["rank"], "iteration": int(said["iteration"])}
            row["sha256"] = hashlib.sha256(data).hexdigest()
            copies.setdefault(said["rank"], []).append(row)
    sound = {}
    for rank, rows in copies.items():
        manifest = json.loads(tree[f"input/manifests/{rank}.json"])
        rows.sort(key=lambda row: row["path"], reverse=True)  # "primary" before "mirror"
        for row in rows:
            if row["iteration"] != iteration:
                row["verdict"] = "stale"
            elif row["sha256"] == manifest["sha256"]:
                row["verdict"] = "spare" if rank in sound else "used"
                sound.setdefault(rank, row["path"])
            else:
                row["verdict"] = "corrupt" if len(tree[row["path"]]) >= manifest["bytes"] else "truncated"
    return sorted((row for rows in copies.values() for row in rows), key=lambda row: row["path"]), sound


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), 8 + size


def _tensors(data: bytes) -> dict[str, tuple[str, Rows]]:
    head, base = _head(data)
    out = {}
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        begin, end = (base + n for n in entry["data_offsets"])
        width = SIZE[entry["dtype"]]
        cells = [data[at : at + width] for at in range(begin, end, width)]
        across = entry["shape"][1] if len(entry["shape"]) == 2 else 1
        out[name] = (entry["dtype"], [cells[at : at + across] for at in range(0, len(cells), across)])
    return out


def _place(
    grid: dict[str, Any],
    tree: Mapping[str, bytes],
    rank: str,
    local: str,
    dtype: str,
    rows: Rows,
    pieces: dict[str, list],
) -> None:
    """Add what a rank holds of a global tensor to pieces."""
    p, t, e = map(int, re.findall(r"\d+", rank))
    for rule in json.loads(tree["input/tensor_rules.json"])["rules"]:
        pattern = (
            re.escape(rule["local"]).replace(r"\{layer\}", r"(?P<layer>\d+)").replace(r"\{expert\}", r"(?P<expert>\d+)")
        )
        if found := re.fullmatch(pattern, local):
            break
    else:
        raise ValueError(f"no rule for {local}")
    near = {key: int(value) for key, value in found.groupdict().items()}
    layer = near.get("layer", 0) + grid["stage_first_layer"][p]
    expert = near.get("expert", 0) + e * (grid["experts"] // grid["expert_parallel"])
    name, split, count = rule["global"].format(layer=layer, expert=expert), rule["split"], len(rows)
    target = pieces.setdefault(name, [])
    if split == "replicated":
        if t == 0:
            target.append(((rank, local, -1, 0, count, 0, count), dtype, rows))
    elif split == "columns":
        across = len(rows[0])
        target.append(((rank, local, 1, 0, across, t * across, (t + 1) * across), dtype, rows))
    elif split == "fused_qkv_rows":
        third = count // 3
        for block in range(3):
            start = (block * grid["tensor_parallel"] + t) * third
            a, b = block * third, block * third + third
            target.append(((rank, local, 0, a, b, start, start + third), dtype, rows[a:b]))
    else:
        limit = grid["vocabulary"] if split == "vocabulary_rows" else (t + 1) * count
        keep = rows[: max(0, limit - t * count)]
        if keep:
            target.append(((rank, local, 0, 0, len(keep), t * count, t * count + len(keep)), dtype, keep))


def _write(grid: dict, iteration: int, files: list, lines: list[str], whole: dict, pieces: dict) -> dict[str, bytes]:
    head, index, blobs, at = {}, {}, [], 0
    for name, (dtype, rows, flat) in whole.items():
        blob = b"".join(map(b"".join, rows))
        shape = [len(rows)] if flat else [len(rows), len(rows[0])]
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(blob)]}
        total = sum(_value(cell) * n for cell, n in _tally(rows).items())
        index[name] = {
            "dtype": dtype,
            "shape": shape,
            "sha256": hashlib.sha256(blob).hexdigest(),
            "sum_64": int(total * 64),
        }
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(head, separators=(",", ":")).encode()
    text = text.ljust((len(text) + 7) // 8 * 8)
    stages = {str(p): 0 for p in range(grid["pipeline_parallel"])}
    for parts in pieces.values():
        for spot, _, rows in parts:
            stages[re.findall(r"\d+", spot[0])[0]] += sum(map(len, rows))
    report = {
        "model": grid["model"],
        "iteration": iteration,
        "parameters": sum(sum(map(len, rows)) for _, rows, _ in whole.values()),
        "tensor_bytes": at,
        "sum_64": sum(entry["sum_64"] for entry in index.values()),
        "parameters_by_stage": stages,
        "rejected": {
            kind: [f["path"] for f in files if f["verdict"] == kind] for kind in ("corrupt", "stale", "truncated")
        },
        "file_sha256": hashlib.sha256(b"".join(blobs)).hexdigest(),
    }
    return {
        "output/staging/shard_audit.json": json.dumps({"files": files, "iteration": iteration}).encode(),
        "output/staging/placement.csv": ("\n".join(lines) + "\n").encode(),
        "output/model.safetensors": len(text).to_bytes(8, "little") + text + b"".join(blobs),
        "output/tensor_index.json": json.dumps({"tensors": index}).encode(),
        "output/report.json": json.dumps(report).encode(),
    }


def _tally(rows: Rows) -> dict[bytes, int]:
    out: dict[bytes, int] = {}
    for row in rows:
        for cell in row:
            out[cell] = out.get(cell, 0) + 1
    return out


def _value(cell: bytes) -> Fraction:
    """The exact value of a float by its bits; the upper half of a float32 is a bfloat16."""
    bits = int.from_bytes(cell.rjust(4, b"\0"), "little")
    exponent, mantissa = (bits >> 23) & 255, bits & 0x7FFFFF
    size = Fraction(mantissa | 0x800000, 1 << 23) * Fraction(2) ** (exponent - 127) if exponent else Fraction(0)
    return -size if bits >> 31 else size
