"""Strict grader: every output against the world's own tensors and verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, records, safetensors

COMPONENTS = {"shard_audit": 2, "placement": 2, "model": 4, "tensor_index": 2, "report": 2}
COLUMNS = ["tensor", "rank", "local_name", "axis", "local_start", "local_stop", "start", "stop", "piece_sha256"]


def verify(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    index = hostile.json_file(tree, "output/tensor_index.json")
    tensors = index.get("tensors") if isinstance(index, dict) and len(index) == 1 else None
    rows = records.table(hostile.table_file(tree, "output/staging/placement.csv"), COLUMNS)
    placement = [dict(zip(COLUMNS, row, strict=True)) for row in truth["placement"]]
    return {
        "shard_audit": _audit(truth["audit"], hostile.json_file(tree, "output/staging/shard_audit.json")),
        "placement": records.share(placement, rows),
        "model": records.share(_model_of(truth), _model(tree.get("output/model.safetensors")), 0.5),
        "tensor_index": records.share(truth["index"]["tensors"], tensors, 0.5),
        "report": _report(truth["report"], hostile.json_file(tree, "output/report.json")),
    }


def _model_of(truth: Mapping[str, Any]) -> dict[str, Any]:
    tensors = truth["index"]["tensors"]
    return {name: {key: entry[key] for key in ("dtype", "shape", "sha256")} for name, entry in tensors.items()}


def _audit(expected: Mapping[str, Any], got: Any) -> float:
    if not isinstance(got, dict) or set(got) != {"iteration", "files"}:
        return 0.0
    part = records.share(expected["files"], got["files"], 0.5)
    return part if hostile.same(expected["iteration"], got["iteration"]) else part * 0.5


def _report(expected: Mapping[str, Any], got: Any) -> float:
    """Nothing without the digest, which no wrong model shares."""
    if not isinstance(got, dict) or got.get("file_sha256") != expected["file_sha256"]:
        return 0.0
    return records.share(expected, got, 0.5)


def _model(data: Any) -> dict[str, Any] | None:
    """name -> what the index says of it, from the file's bytes alone; tensors may stand in any order."""
    if not isinstance(data, bytes) or len(data) > hostile.LIMIT:
        return None
    try:
        extra, (_, tensors) = "__metadata__" in safetensors.header(data), safetensors.read(data)
    except (ValueError, RecursionError, OverflowError):
        return None
    spans = sum(len(blob) for _, _, blob in tensors.values())
    if extra or 8 + int.from_bytes(data[:8], "little") + spans != len(data):
        return None
    return {name: _entry(*tensor) for name, tensor in tensors.items()}


def _entry(dtype: str, shape: tuple[int, ...], blob: bytes) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(blob).hexdigest()}
