"""`workbench train-plan`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table

GIVEN = ("model", "gpus", "learner_gpus", "gpu_gb", "sharding", "sequence", "token_budget")


def main(arguments: argparse.Namespace) -> int:
    """Print the plan; write the launch files unless it is a dry run. Exit code 1 when it does not fit."""
    from workbench.training.plan import GB, PlanError, load_plan, memory, placement, shape_of

    changes = {name: getattr(arguments, name) for name in GIVEN}
    if changes["token_budget"] is None and changes["sequence"] is not None:
        changes["token_budget"] = changes["sequence"]
    try:
        plan = load_plan(arguments.profile, **changes)
        if not arguments.json:
            message(f"counting the parameters of {plan['model']['value']} (no weights are loaded)")
        shape = shape_of(plan["model"]["value"])
    except PlanError as error:
        raise UsageError(str(error)) from None
    parts = memory(shape, plan)
    total, room = sum(p.bytes for p in parts), plan["gpu_gb"]["value"] * GB
    files = [] if arguments.dry_run else _write(plan, Path(arguments.to))
    if arguments.json:
        _json(plan, shape, parts, total, placement(shape, plan), files)
    else:
        _show(plan, shape, parts, total, placement(shape, plan), files)
    return 0 if total <= room else 1


def _write(plan: dict[str, dict[str, Any]], folder: Path) -> list[Path]:
    from workbench.training.launch import write_launch

    return write_launch({key: entry["value"] for key, entry in plan.items()}, folder)


def _show(plan: Any, shape: Any, parts: Any, total: float, lines: list[str], files: list[Path]) -> None:
    from workbench.training.launch import launch_command
    from workbench.training.plan import GB

    table([("setting", "value", "source"), *((k, e["value"], e["source"]) for k, e in plan.items())])
    print(f"\n{shape.parameters / GB:.2f} billion parameters, {shape.layers} layers, width {shape.hidden}, "
          f"vocabulary {shape.vocabulary:,}\n\nOn each learner GPU (estimate):")  # fmt: skip
    table([(p.what, f"{p.bytes / GB:8.1f} GB", p.formula) for p in parts], indent="  ")
    room = plan["gpu_gb"]["value"]
    verdict = "fits" if total <= room * GB else "does NOT fit: more learner GPUs, or shorter sequences"
    print(f"  total {total / GB:.1f} GB of {room} GB: {verdict}\n\nPlacement:")
    for line in lines:
        print(f"  {line}")
    if files:
        print(f"\nWritten: {', '.join(map(str, files))}\nLaunch:  {launch_command(files[0])}")


def _json(plan: Any, shape: Any, parts: Any, total: float, lines: list[str], files: list[Path]) -> None:
    json_line({
        "plan": plan, "shape": shape.__dict__, "parts": [p.__dict__ for p in parts], "bytes": total,
        "fits": total <= plan["gpu_gb"]["value"] * 1e9, "placement": lines, "files": [str(f) for f in files],
    })  # fmt: skip
