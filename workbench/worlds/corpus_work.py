"""What a corpus' worker process does: one sketch, one generator's gates, or one environment. Takes and gives plain data."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from workbench.worlds import Environment, Tier
from workbench.worlds.building import build_environment, clean_tree
from workbench.worlds.catalog import Generator, get
from workbench.worlds.coverage import labels, sketch
from workbench.worlds.gates import environment_gates, generator_gates
from workbench.worlds.identity import tree_digest

Key = tuple[str, int, Tier]


def sketch_row(key: Key) -> dict[str, Any]:
    found = sketch(*key)
    return {"generator": found.generator, "seed": found.seed, "tier": found.tier, "labels": found.labels}


def gate_generator(asked: tuple[str, tuple[Tier, ...]]) -> dict[str, Any]:
    """The gates that look at the generator, in those of the tiers that it has. messages: empty when it passes."""
    generator = get(asked[0])
    tiers = tuple(tier for tier in asked[1] if tier in generator.spec.tiers)
    results = generator_gates(generator, tiers)
    return {"gates": [r.to_row() for r in results], "messages": [m for r in results for m in r.messages]}


def admit(key: Key, partial: str | None) -> dict[str, Any]:
    """Build, gate and export one environment. messages: why it is refused. partial: the folder of the written task, or None."""
    started = time.process_time()
    generator = get(key[0])
    try:
        environment = build_environment(generator, key[1], key[2])
    except Exception as error:  # whatever a generator's code raises refuses this environment only
        from workbench.worlds.building import task_id

        return {"id": task_id(generator.spec, key[1], key[2]), "messages": [f"construction: {error}"], "partial": None}
    results = environment_gates(generator, environment)
    row = environment_row(generator, environment)
    row["messages"] = [f"{r.gate}: {message}" for r in results for message in r.messages]
    row["gates"] = {r.gate: r.passed for r in results}
    row["partial"] = None
    if partial and not row["messages"]:
        row["partial"] = str(_export(environment, Path(partial)))
    row["seconds"] = time.process_time() - started
    return row


def environment_row(generator: Generator, environment: Environment) -> dict[str, Any]:
    """What the journal keeps of an environment: identity, horizon, formats, labels, prompt."""
    clean_bytes = sum(map(len, clean_tree(environment).values()))
    return {
        "id": environment.task_id,
        "generator": environment.spec.name,
        "revision": environment.spec.revision,
        "seed": environment.seed,
        "tier": environment.tier,
        "domain": environment.spec.domain,
        "world_id": environment.world_id,
        "public_digest": tree_digest(environment.public),
        "stages": len(environment.workflow.stages),
        "critical_path": list(environment.workflow.critical_path()),
        "work": sum(stage.work for stage in environment.workflow.stages),
        "input_files": len(environment.public),
        "input_bytes": sum(map(len, environment.public.values())),
        "corruptions": [defect.kind for defect in environment.defects],
        "formats": sorted({_format(path) for path in environment.public}),
        "nodes": [node.name for node in generator.nodes],
        "components": list(generator.components),
        "prompt": environment.prompt,
        "prompt_words": len(environment.prompt.split()),
        "labels": labels(generator, environment.tier, environment.workflow, environment.defects, clean_bytes),
    }


def _format(path: str) -> str:
    """A file's wire format by the end of its name; the whole name when it has none."""
    name = path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[-1].lower() if "." in name else name


def _export(environment: Environment, partial: Path) -> Path:
    from workbench.worlds.export import export_environment

    target = partial / f"{environment.task_id}.{os.getpid()}"
    shutil.rmtree(target, ignore_errors=True)
    partial.mkdir(parents=True, exist_ok=True)
    return export_environment(environment, target)
