"""Reads the note, cleans each list as its remark says, and writes the three outputs one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping


def _read(tree: Mapping[str, bytes], name: str, remark: str) -> list[str]:
    folder = "input/new" if remark == "stale" else "input"
    lines = tree[f"{folder}/{name}.txt"].decode().splitlines()
    if remark == "double":
        return [line for at, line in enumerate(lines) if at == 0 or line != lines[at - 1]]
    return [line for line in lines if "void" not in line] if remark == "void" else lines


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    words = tree["input/note.txt"].decode().split()
    jobs = {words[at]: (words[at + 1], words[at + 2]) for at in range(0, len(words), 3)}
    out: dict[str, bytes] = {}
    yield "inspect", dict(out)
    out["output/top.txt"] = _text(_read(tree, *jobs["top"])[:3])
    yield "top", dict(out)
    digest = hashlib.md5(_text(_read(tree, *jobs["seal"]))).hexdigest()
    out["output/seal.txt"] = f"{digest}  -\n".encode()
    yield "seal", dict(out)
    out["output/order.txt"] = _text(sorted(_read(tree, *jobs["order"]), key=str.encode, reverse=True))
    yield "order", dict(out)
