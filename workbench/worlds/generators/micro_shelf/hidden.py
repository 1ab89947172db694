"""What must lower each component, what must not, and outputs of a clerk who reads no remarks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from workbench.worlds import Defect
from workbench.worlds.generators.micro_shelf.world import World


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    def cut(name: str) -> dict[str, bytes]:
        path = f"output/{name}.txt"
        return {**tree, path: tree[path].rstrip(b"\n")[:-1] + b"\n"}

    return {name: cut(name) for name in ("top", "seal", "order")}


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    return {
        "line ends of another system": {path: data.replace(b"\n", b"\r\n") for path, data in tree.items()},
        "no line end at the end": {path: data.rstrip(b"\n") for path, data in tree.items()},
        "blanks before line ends": {path: data.replace(b"\n", b" \n") for path, data in tree.items()},
    }


def _outputs(lists: list[list[str]]) -> dict[str, bytes]:
    top, seal, order = lists
    digest = hashlib.md5("".join(f"{line}\n" for line in seal).encode()).hexdigest()
    return {
        "output/top.txt": "".join(f"{line}\n" for line in top[:3]).encode(),
        "output/seal.txt": f"{digest}  -\n".encode(),
        "output/order.txt": "".join(f"{line}\n" for line in sorted(order, reverse=True)).encode(),
    }


def stale(world: World, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    lists = {name: list(lines) for name, lines in world.lists}
    asked = [lists[job.name] for job in world.jobs]
    others = [list(lines) for name, lines in world.lists if name not in {job.name for job in world.jobs}]
    return {
        "last lines forgotten": _outputs([lines[1:-1] for lines in asked]),
        "lists that nobody asked for": _outputs([others[0], others[1], others[0]]),
        "each job with its neighbour's list": _outputs([*asked[1:], asked[0]]),
    }
