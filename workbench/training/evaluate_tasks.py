"""The default held-out sets: worlds from seeds that no training sees, and worlds of generators that no training sees, apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from workbench.tasks import Task, load_task
from workbench.training.learning_pool import whole
from workbench.worlds import Tier


def held_out_tasks(
    folder: Path,
    generators: Iterable[str],
    tiers: Sequence[Tier],
    count: int,
    *,
    held_out: Iterable[str] = (),
    salt: str | None = None,
    start: int = 0,
) -> dict[str, list[Task]]:
    """Sets by name: "held-out seeds" of `generators`, "held-out generators" of `held_out` (left out when there is none); `count` tasks each,
    generators and tiers in turn, each world with its whole damage. Exported below `folder` once; the same tasks every time.
    salt: of the partitions (the library's own when None)."""
    from workbench.worlds.partitions import DEFAULT_SALT

    salt, held = salt or DEFAULT_SALT, frozenset(held_out)
    seen = [g for g in generators if g not in held]
    sets = {"held-out seeds": (seen, "held_out_seeds"), "held-out generators": (sorted(held), "held_out_generators")}
    return {
        name: _export(folder / name.replace(" ", "-"), names, tiers, count, partition, salt, held, start)
        for name, (names, partition) in sets.items()
        if names
    }


def _export(folder, names, tiers, count, partition, salt, held, start) -> list[Task]:
    from workbench.worlds.building import build_environment
    from workbench.worlds.catalog import get
    from workbench.worlds.export import export_environment
    from workbench.worlds.partitions import seeds_in

    streams = {name: seeds_in(name, partition, salt, held, start) for name in names}
    rungs = [(n, t) for n in names for t in get(n).spec.tiers if t in tiers]
    if not rungs:
        raise ValueError(f"none of {', '.join(names)} has a tier of {', '.join(tiers)}")
    out = []
    for name, tier in itertools.islice(itertools.cycle(rungs), count):
        seed = next(streams[name])
        target = folder / f"{name}-{tier}-{seed}"
        if not target.exists():
            environment = build_environment(name, seed, tier)
            whole(target, lambda t: export_environment(environment, t))  # noqa: B023
        out.append(load_task(target))
    return out
