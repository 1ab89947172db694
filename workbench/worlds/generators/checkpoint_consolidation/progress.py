"""Progress: copies found, judged, pieces placed, tensors assembled, described and summed up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("inventory", 1, ()),
    ("verdicts", 3, ("inventory",)),
    ("names", 1, ("inventory",)),
    ("placement", 4, ("names",)),
    ("model", 6, ("placement", "verdicts")),
    ("index", 3, ("model",)),
    ("report", 2, ("index",)),
)


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    audit = hostile.json_file(tree, "output/staging/shard_audit.json")
    found = hostile.table_file(tree, "output/staging/placement.csv")
    return {
        "inventory": _paths(truth["audit"]["files"], audit),
        "verdicts": leaves.overlap(truth["audit"], audit, ("path",), ("str",)),
        "names": _f1({(r[0], r[8]) for r in truth["placement"]}, {(r[0], r[-1]) for r in _ordered(found)}),
        "placement": _sequence([tuple(r) for r in truth["placement"]], _ordered(found)),
        "model": _tensors(truth["index"]["tensors"], tree.get("output/model.safetensors")),
        "index": leaves.overlap(truth["index"], hostile.json_file(tree, "output/tensor_index.json"), (), ("str",)),
        "report": leaves.overlap(truth["report"], hostile.json_file(tree, "output/report.json"), (), ("str",)),
    }


def _paths(files: list[dict[str, Any]], audit: Any) -> float:
    """Which copies were found and hashed, whatever was thought of them."""
    listed = audit.get("files") if isinstance(audit, dict) else None
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    return _f1(
        {(f["path"], f["sha256"]) for f in files}, {(str(row.get("path")), str(row.get("sha256"))) for row in rows}
    )


def _ordered(found: tuple[list[str], list[list[str]]] | None) -> list[tuple[str, ...]]:
    """Rows with their cells in the order of the contract's columns; none when the header is another one."""
    names = "tensor rank local_name axis local_start local_stop start stop piece_sha256".split()
    if found is None or sorted(found[0]) != sorted(names):
        return []
    places = [found[0].index(name) for name in names]
    return [tuple(row[p] for p in places) for row in found[1]]


MAX_HEADER = 1_000_000  # bytes


def _f1(ours: set, theirs: set) -> float:
    return 1.0 if ours == theirs else min(0.999, 2 * len(ours & theirs) / (len(ours) + len(theirs)))


def _sequence(ours: list, theirs: list) -> float:
    return 1.0 if ours == theirs else min(0.99, _f1(set(ours), set(theirs)))


def _tensors(expected: Mapping[str, Any], data: bytes | None) -> float:
    """Share of tensors whose bytes, type and shape are right, read without the format's own reader."""
    try:
        size = int.from_bytes(data[:8], "little")
        if size > MAX_HEADER:
            return 0.0
        head = json.loads(data[8 : 8 + size])
        body, right, end = data[8 + size :], 0, 0
        for name, entry in head.items():
            begin, stop = entry["data_offsets"]
            if any(type(number) is not int for number in (begin, stop, *entry["shape"])):  # true and 1.0 equal 1
                return 0.0
            end += stop - begin
            want = expected.get(name)
            if want and entry["dtype"] == want["dtype"] and entry["shape"] == want["shape"] and 0 <= begin <= stop:
                right += hashlib.sha256(body[begin:stop]).hexdigest() == want["sha256"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return 0.0
    share = 2 * right / (len(expected) + len(head))
    return share if end == len(body) else min(share, 0.99)
