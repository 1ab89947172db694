"""The plan of defects, and the rule by which an output means an answer."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Defect
from workbench.worlds.draw import Draw


def meant(output: str, labels: tuple[str, ...]) -> str:
    """The label that an output means, or ""."""
    _, found, rest = output.lower().rpartition("answer:")
    said = rest.strip(" ().")
    return next((label for label in labels if found and label.lower() == said), "")


def plan(world: Any, draw: Draw) -> tuple[Defect, ...]:
    archived = [log for log in draw.shuffled(world.logs) if log.archived]
    plain = [log for log in draw.shuffled(world.logs) if not log.archived] or world.logs[-1:]
    cut = archived[0]
    path = f"input/logs/{cut.name}.jsonl"
    lines = draw.integer(4, len(cut.lines) // 3)
    certain = Defect("truncated_file", path, {"lines": lines}, f"{path} lost its tail; the archive has it")
    made = [
        _aliases(world, draw),
        _dates(world, draw),
        _repeats(plain[0], draw),
        _orphans(world, plain[-1], draw),
        _disagree(archived[-1], draw) if len(archived) > 1 else None,
        Defect(
            "delimiter_drift",
            f"input/gold/{draw.choice(world.tasks).name}.csv",
            {"to": ";"},
            "gold labels with semicolons",
        ),
        Defect(
            "encoding_drift",
            "input/claims.csv",
            {"encoding": draw.choice(("utf-16", "utf-8-sig"))},
            "claims in another encoding",
        ),
    ]
    some = [defect for defect in draw.shuffled(made) if defect][: draw.integer(2, 5)]
    return (certain, *some)


def _aliases(world: Any, draw: Draw) -> Defect:
    alias, model = draw.choice(world.aliases)
    rows = [at for at, run in enumerate(world.runs) if run.model == model]
    params = {"column": "model", "mapping": {model: alias}, "rows": sorted(draw.sample(rows, len(rows) // 2))}
    return Defect("category_drift", "input/runs.csv", params, f"{model} registered as {alias}")


def _dates(world: Any, draw: Draw) -> Defect:
    rows = sorted(draw.sample(range(len(world.runs)), len(world.runs) // 3))
    params = {"column": "finished", "from": "%Y-%m-%d %H:%M:%S", "to": "%d/%m/%Y %H:%M:%S", "rows": rows}
    return Defect("date_format_drift", "input/runs.csv", params, "two formats of time")


def _repeats(log: Any, draw: Draw) -> Defect:
    rows = sorted(draw.sample(range(len(log.lines)), 5))
    return Defect("duplicate_records", f"input/logs/{log.name}.jsonl", {"rows": rows}, "lines were flushed twice")


def _orphans(world: Any, log: Any, draw: Draw) -> Defect:
    run = f"r-{draw.hexadecimal(7)}"
    records = [
        {"run": run, "item": line.item, "attempt": 1, "output": line.output, "confidence": line.confidence}
        for line in draw.sample(log.lines, 6)
    ]
    return Defect("orphan_records", f"input/logs/{log.name}.jsonl", {"records": records}, f"{run} is in no registry")


def _disagree(log: Any, draw: Draw) -> Defect:
    rows = sorted(draw.sample(range(len(log.lines)), 4))
    values = ["Answer: withdrawn"] * len(rows)
    params = {"column": "output", "rows": rows, "values": values}
    return Defect("contradictory_record", f"input/archive/{log.name}.csv", params, "the archive disagrees with the log")
