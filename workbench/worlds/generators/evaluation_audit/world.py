"""A benchmark of classification tasks, the runs of several models on it, and a leaderboard that was not kept up to date.

The world holds every item's label before and after the errata, every raw prediction with the answer that is meant, the registry of
runs, some of which used other settings or were repeated, and the claims.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.evaluation_audit import answers, harm, words

TASK = {"accuracy": "string", "macro_f1": "string", "ece": "string", "runs": "integer"}
SPEC = Spec(
    name="evaluation_audit",
    revision=1,
    domain="9.3",
    title="Audit a leaderboard against raw prediction logs",
    summary="Recompute accuracy, macro F1 and calibration of every run, choose the runs that count, and explain each wrong claim.",
    outputs=(
        Output("output/staging/runs.csv", "csv", "Every registered run and its status", words.STATUS),
        Output("output/staging/run_metrics.csv", "csv", "Metrics of every registered run", words.METRICS),
        Output(
            "output/leaderboard.json",
            "json",
            "Models in order, with their means",
            {
                "benchmark": "string",
                "models": [{"rank": "integer", "model": "string", "score": "string", "by_task": {"<task>": TASK}}],
            },
        ),
        Output("output/parity.csv", "csv", "Claims against recomputed figures", words.PARITY),
        Output(
            "output/report.json",
            "json",
            "Counts and findings",
            {
                "benchmark": "string",
                "runs": dict.fromkeys(("counted", "superseded", "off_protocol"), "integer"),
                "orphan_runs": ["string"],
                "errata_applied": "integer",
                "recovered_predictions": "integer",
                "mismatches": ["string"],
            },
        ),
    ),
    workflow_stages=("register", "extract", "score", "rank", "compare", "report"),
    tools=("python3", "sqlite3"),
    artifact_roles=("registry", "log", "reference-table", "policy", "claim"),
    relation_types=("foreign-key", "precedence", "temporal", "correction"),
    source_kind="evaluation service",
)


@dataclass(frozen=True)
class Task:
    name: str
    labels: tuple[str, ...]
    items: tuple[tuple[str, str], ...]  # item, label as first published


@dataclass(frozen=True)
class Run:
    run_id: str
    model: str
    task: str
    seed: int
    prompt: str
    shots: int
    temperature: str
    finished: str


@dataclass(frozen=True)
class Line:
    """One prediction: what was written and which answer it means ("" when invalid). confidence: thousandths."""

    run: str
    item: str
    attempt: int
    output: str
    confidence: int
    answer: str


@dataclass(frozen=True)
class Log:
    model: str
    task: str
    archived: bool
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        return f"{self.model}__{self.task}"


@dataclass(frozen=True)
class World:
    benchmark: str
    settings: tuple[str, int, str]  # prompt, shots, temperature
    aliases: tuple[tuple[str, str], ...]  # alias, model
    models: tuple[str, ...]
    tasks: tuple[Task, ...]
    errata: tuple[tuple[str, str, str, str], ...]  # task, item, old label, new label
    runs: tuple[Run, ...]
    logs: tuple[Log, ...]
    claims: tuple[tuple[str, str, str], ...]  # model, task, accuracy in percent


# tier -> (models, tasks, seeds, items of a task)
SIZES = {"unit": (3, 3, 2, 20), "small": (3, 4, 2, 44), "full": (4, 5, 2, 80)}


def make(draw: Draw, tier: str) -> World:
    models, tasks, seeds, items = SIZES[tier]
    names = draw.fork("names")
    made = [_task(draw.fork("task", t), t, items) for t in sorted(names.sample(sorted(words.TASKS), tasks))]
    chosen = sorted(names.sample(words.MODELS, models))
    settings = (f"p{names.integer(2, 9)}", names.choice((0, 3, 5)), "0.0")
    errata = []
    for task in made:
        for item, old in draw.fork("errata", task.name).sample(task.items, max(2, items // 12)):
            errata.append((task.name, item, old, names.choice([label for label in task.labels if label != old])))
    runs = _runs(draw.fork("runs"), chosen, made, seeds, settings)
    fixed = {(task, item): new for task, item, _, new in errata}
    logs = []
    for at, (model, task) in enumerate((m, t) for m in chosen for t in made):
        lines: list[Line] = []
        for run in runs:
            if (run.model, run.task) == (model, task.name):
                lines += _lines(draw.fork("log", run.run_id), task, run.run_id, fixed)
        logs.append(Log(model, task.name, at % 3 == 0 or names.chance(0.3), tuple(lines)))
    aliases = tuple((f"{names.choice(('hub', 'internal', 'ckpt'))}/{m.replace('-', '_')}", m) for m in chosen)
    benchmark = f"{names.choice(words.BENCHMARKS)} {names.integer(2023, 2026)}.{names.integer(1, 12)}"
    world = World(benchmark, settings, aliases, tuple(chosen), tuple(made), tuple(errata), tuple(runs), tuple(logs), ())
    return replace(world, claims=_claims(draw.fork("claims"), world))


def _task(draw: Draw, name: str, items: int) -> Task:
    labels, ids = words.TASKS[name], set()
    while len(ids) < items:
        ids.add(f"{name[:3]}-{draw.hexadecimal(4)}")
    return Task(name, labels, tuple((item, draw.choice(labels)) for item in sorted(ids)))


def _runs(draw: Draw, models: list[str], tasks: list[Task], seeds: int, settings: tuple[str, int, str]) -> list[Run]:
    """One run for every model, task and seed, and for a third of the pairs an earlier one, or one with other settings."""
    out, minute = [], draw.integer(0, 500)

    def add(model: str, task: str, seed: int, how: tuple[str, int, str]) -> None:
        nonlocal minute
        minute += draw.integer(7, 49)
        when = f"2025-{4 + minute // 40320:02d}-{1 + minute // 1440 % 28:02d} {minute // 60 % 24:02d}:{minute % 60:02d}:{draw.integer(0, 59):02d}"
        out.append(Run(f"r-{draw.hexadecimal(7)}", model, task, seed, *how, when))

    pairs = [(m, t.name) for m in models for t in tasks]
    repeated, drifted = draw.sample(pairs, len(pairs) // 3), draw.sample(pairs, len(pairs) // 3)
    for pair in repeated:
        add(*pair, draw.integer(1, seeds), settings)
    for model, task in draw.shuffled(pairs):
        for seed in range(1, seeds + 1):
            add(model, task, seed, settings)
    prompt, shots, temperature = settings
    for pair in drifted:
        others = [(f"{prompt}-draft", shots, temperature), (prompt, shots + 1, temperature), (prompt, shots, "0.7")]
        add(*pair, draw.integer(1, seeds), draw.choice(others))
    return draw.shuffled(out)


def _lines(draw: Draw, task: Task, run: str, fixed: dict[tuple[str, str], str]) -> list[Line]:
    """The log of one run: skilled to a drawn degree, sometimes silent, invalid, or answering twice."""
    skill, out = draw.integer(45, 90), []
    for item, old in task.items:
        luck = draw.integer(0, 99)
        if luck < 2:
            continue
        for attempt in range(1, 3 if luck < 6 else 2):
            truth = fixed.get((task.name, item), old)
            answer = truth if draw.integer(0, 99) < skill else draw.choice(task.labels)
            other = draw.choice([label for label in task.labels if label != answer])
            invalid = draw.integer(0, 99) < 5
            text = draw.choice(words.INVALID if invalid else words.PHRASES)
            shown = answer.upper() if draw.chance(0.2) else answer
            confidence = min(1000, 10 * draw.integer(25, 85) + draw.integer(0, 150))
            out.append(Line(run, item, attempt, text.format(x=shown, y=other), confidence, "" if invalid else answer))
    return out


def _claims(draw: Draw, world: World) -> tuple[tuple[str, str, str], ...]:
    """What was published: right in half of the cases, else by one of the wrong ways of counting, or out of thin air."""
    ways, out = answers.claimable(world), []
    for at, (model, task) in enumerate((m, t.name) for m in world.models for t in world.tasks):
        right = ways[""][model, task]
        other = draw.choice(answers.MODES)
        if at % 2 == 0:
            right = ways[other][model, task]
        elif draw.chance(0.2):
            right = f"{draw.integer(4000, 9900) / 100:.2f}"
        out.append((model, task, right))
    if all(claim == ways[""][model, task] for model, task, claim in out):  # rare: no way of counting made a difference
        model, task, right = out[0]
        out[0] = (model, task, f"{float(right) - 1:.2f}")
    return tuple(out)


def check(world: World) -> None:
    ids = [run.run_id for run in world.runs]
    if len(set(ids)) != len(ids) or len({run.finished for run in world.runs}) != len(ids):
        raise WorldError("run ids and times of finishing must be unique")
    if {"counted", "superseded", "off_protocol"} != set(answers.statuses(world).values()):
        raise WorldError("the registry must hold counted, superseded and off-protocol runs")
    if all(row[6] == "" for row in answers.truth(world, ())["parity"]):
        raise WorldError("no claim is wrong")


def workflow(world: World) -> Workflow:
    lines = sum(len(log.lines) for log in world.logs)
    runs, claims = len(world.runs), len(world.claims)
    return Workflow(
        (
            Stage("register", "register", 3 * runs),
            Stage("extract", "extract", lines, ("register",)),
            Stage("score", "score", 3 * runs, ("extract",)),
            Stage("rank", "rank", claims, ("register", "score")),
            Stage("compare", "compare", 4 * claims, ("rank",)),
            Stage("report", "report", runs + claims, ("compare",)),
        )
    )


def render(world: World) -> dict[str, bytes]:
    prompt, shots, temperature = world.settings
    protocol = {
        "benchmark": world.benchmark,
        "settings": {"prompt": prompt, "shots": shots, "temperature": temperature},
        "labels": {task.name: list(task.labels) for task in world.tasks},
        "models": list(world.models),
        "aliases": dict(world.aliases),
    }
    tree = {"input/protocol.json": (json.dumps(protocol, indent=1) + "\n").encode()}
    tree["input/runs.csv"] = csv_table.table(words.RUNS, ([getattr(run, c) for c in words.RUNS] for run in world.runs))
    tree["input/gold/errata.csv"] = csv_table.table(["task", "item", "old_label", "new_label"], world.errata)
    tree["input/claims.csv"] = csv_table.table(["model", "task", "accuracy_percent"], world.claims)
    for task in world.tasks:
        tree[f"input/gold/{task.name}.csv"] = csv_table.table(["item", "label"], task.items)
    for log in world.logs:
        told = [[line.run, line.item, line.attempt, line.output, line.confidence] for line in log.lines]
        keys = ["run", "item", "attempt", "output", "confidence"]
        tree[f"input/logs/{log.name}.jsonl"] = "".join(
            json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in told
        ).encode()
        if log.archived:
            tree[f"input/archive/{log.name}.csv"] = csv_table.table(keys, told)
    return tree


def recover(tree: dict[str, bytes]) -> World:
    protocol = json.loads(tree["input/protocol.json"])
    labels = {task: tuple(names) for task, names in protocol["labels"].items()}
    tasks = tuple(
        Task(task, names, tuple((r[0], r[1]) for r in csv_table.rows(tree[f"input/gold/{task}.csv"])))
        for task, names in labels.items()
    )
    runs = tuple(
        Run(r[0], r[1], r[2], int(r[3]), r[4], int(r[5]), r[6], r[7]) for r in csv_table.rows(tree["input/runs.csv"])
    )
    logs = []
    for model in protocol["models"]:
        for task in labels:
            records = [json.loads(line) for line in tree[f"input/logs/{model}__{task}.jsonl"].splitlines()]
            lines = tuple(Line(**r, answer=harm.meant(r["output"], labels[task])) for r in records)
            logs.append(Log(model, task, f"input/archive/{model}__{task}.csv" in tree, lines))
    errata = tuple((r[0], r[1], r[2], r[3]) for r in csv_table.rows(tree["input/gold/errata.csv"]))
    claims = tuple((r[0], r[1], r[2]) for r in csv_table.rows(tree["input/claims.csv"]))
    aliases, models = tuple(protocol["aliases"].items()), tuple(protocol["models"])
    named = protocol["benchmark"], tuple(protocol["settings"].values())
    return World(*named, aliases, models, tasks, errata, runs, tuple(logs), claims)


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world, defects)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.benchmark)
