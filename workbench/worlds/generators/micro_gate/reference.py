"""Corrects the books first, all of them, and reports afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import md5


def _corrected(tree: Mapping[str, bytes], lane: str, state: str) -> bytes:
    if state == "stale":
        return tree["input/new/" + lane + ".txt"]
    kept: list[bytes] = []
    for entry in tree["input/" + lane + ".txt"].split(b"\n")[:-1]:
        struck = state == "void" and entry.startswith(b"void")
        again = state == "double" and kept[-1:] == [entry]
        if not struck and not again:
            kept.append(entry)
    return b"\n".join([*kept, b""])


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    slip = iter(tree["input/note.txt"].split())
    books = {}
    for report in slip:
        lane, state = next(slip).decode(), next(slip).decode()
        books[report.decode()] = _corrected(tree, lane, state)
    yield "note", {}
    reports = {"output/top.txt": b"\n".join([*books["top"].split(b"\n", 3)[:3], b""])}
    yield "top", dict(reports)
    reports["output/seal.txt"] = md5(books["seal"]).hexdigest().encode() + b"  -\n"
    yield "seal", dict(reports)
    entries = books["order"].strip().split(b"\n")
    reports["output/order.txt"] = b"\n".join([*entries[::-1], b""])
    yield "order", reports
