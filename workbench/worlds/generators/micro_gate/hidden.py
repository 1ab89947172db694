"""Damage that each component must notice, harmless rewrites, and the reports of a porter who did not look at the slip."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from workbench.worlds import Defect
from workbench.worlds.generators.micro_gate.world import World


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    broken = {}
    for path, content in tree.items():
        report = path.removeprefix("output/").removesuffix(".txt")
        broken[report] = {**tree, path: b"x" + content}
    return broken


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    return {
        "carriage returns": {path: b"\r\n".join(content.split(b"\n")) for path, content in tree.items()},
        "an empty line more": {path: content + b"\n" for path, content in tree.items()},
        "last line not ended": {path: content[:-1] for path, content in tree.items()},
    }


def _reports(earliest: tuple[str, ...], sealed: tuple[str, ...], latest: tuple[str, ...]) -> dict[str, bytes]:
    def text(lines: tuple[str, ...]) -> bytes:
        return "\n".join((*lines, "")).encode()

    return {
        "output/order.txt": text(latest[::-1]),
        "output/seal.txt": md5(text(sealed)).hexdigest().encode() + b"  -\n",
        "output/top.txt": text(earliest[:3]),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    asked = dict(world.asked)
    top, seal, order = (world.book(asked[report]) for report in ("top", "seal", "order"))
    other = next(lines for lane, lines in world.books if lane not in asked.values())
    return {
        "the first arrival overlooked": _reports(top[1:], seal[1:], order[1:]),
        "a lane that nobody asked about": _reports(other, other, other),
    }
