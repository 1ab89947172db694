"""The sealed answer key, computed on the world's own values."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

from workbench.worlds import Defect

MODES = ("gold_before_errata", "superseded_runs", "off_protocol_runs")


def places(value: Fraction, digits: int) -> str:
    """Decimal text, rounded half up (towards larger magnitude)."""
    scaled = (2 * abs(value.numerator) * 10**digits + value.denominator) // (2 * value.denominator)
    sign = "-" if value < 0 and scaled else ""
    return f"{sign}{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"


def statuses(world: Any) -> dict[str, str]:
    """run_id -> counted, superseded or off_protocol."""
    groups, out = defaultdict(list), {}
    for run in world.runs:
        if (run.prompt, run.shots, run.temperature) == world.settings:
            groups[run.model, run.task, run.seed].append(run)
        else:
            out[run.run_id] = "off_protocol"
    for runs in groups.values():
        *before, last = sorted(runs, key=lambda run: run.finished)
        out |= {run.run_id: "superseded" for run in before} | {last.run_id: "counted"}
    return out


def chosen(world: Any, mode: str) -> dict[tuple[str, str], list[str]]:
    """(model, task) -> the runs that a way of counting uses."""
    state, out = statuses(world), defaultdict(list)
    first: dict[tuple, Any] = {}
    for run in sorted(world.runs, key=lambda run: run.finished):
        if state[run.run_id] != "off_protocol":
            first.setdefault((run.model, run.task, run.seed), run.run_id)
    for run in world.runs:
        if mode == "superseded_runs":
            used = first.get((run.model, run.task, run.seed)) == run.run_id
        else:
            used = mode == "off_protocol_runs" or state[run.run_id] == "counted"
        if used:
            out[run.model, run.task].append(run.run_id)
    return out


def predictions(world: Any) -> dict[str, dict[str, tuple[str, int]]]:
    """run -> item -> (answer or "", confidence) of the highest attempt. The world knows the meant answer of every line."""
    out: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for log in world.logs:
        for line in sorted(log.lines, key=lambda line: line.attempt):
            out[line.run][line.item] = (line.answer, line.confidence)
    return out


def metrics(gold: dict[str, str], labels: tuple[str, ...], said: dict[str, tuple[str, int]]) -> dict[str, Any]:
    """All figures of one run, exact."""
    right = {item for item, label in gold.items() if said.get(item, ("", 0))[0] == label}
    f1, bins = [], [Fraction(0)] * 10
    for label in labels:
        hit = sum(1 for item in right if gold[item] == label)
        total = sum(1 for known in gold.values() if known == label) + sum(
            1 for answer, _ in said.values() if answer == label
        )
        f1.append(Fraction(2 * hit, total) if total else Fraction(0))
    for item in gold:
        confidence = said.get(item, ("", 0))[1]
        bins[min(confidence // 100, 9)] += (item in right) - Fraction(confidence, 1000)
    return {
        "items": len(gold),
        "missing": len(gold) - len(said),
        "invalid": sum(1 for answer, _ in said.values() if not answer),
        "correct": len(right),
        "accuracy": Fraction(len(right), len(gold)),
        "macro_f1": sum(f1) / len(labels),
        "ece": sum(map(abs, bins)) / len(gold),
    }


def golds(world: Any) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """(as first published, after errata): task -> item -> label."""
    before = {task.name: dict(task.items) for task in world.tasks}
    after = {name: dict(items) for name, items in before.items()}
    for task, item, _, new in world.errata:
        after[task][item] = new
    return before, after


def claimable(world: Any) -> dict[str, dict[tuple[str, str], str]]:
    """Way of counting -> (model, task) -> accuracy in percent; "" is the right way."""
    before, after = golds(world)
    said, task_of = predictions(world), {run.run_id: run.task for run in world.runs}
    out = {}
    for mode in ("", *MODES):
        gold = before if mode == "gold_before_errata" else after
        accuracy = {}
        for pair, runs in chosen(world, mode).items():
            key = [gold[task_of[run]] for run in runs]
            hits = sum(
                sum(said[run].get(item, ("",))[0] == label for item, label in g.items())
                for run, g in zip(runs, key, strict=True)
            )
            accuracy[pair] = places(Fraction(100 * hits, len(key[0]) * len(runs)), 2)
        out[mode] = accuracy
    return out


def truth(world: Any, defects: tuple[Defect, ...]) -> dict[str, Any]:
    state, said, (_, after) = statuses(world), predictions(world), golds(world)
    labels = {task.name: task.labels for task in world.tasks}
    figures = {r.run_id: metrics(after[r.task], labels[r.task], said[r.run_id]) for r in world.runs}
    runs = sorted(world.runs, key=lambda run: run.run_id)
    parity = _parity(world)
    shown = [
        [
            k,
            *(str(m[c]) for c in ("items", "missing", "invalid", "correct")),
            *(places(m[c], 6) for c in ("accuracy", "macro_f1", "ece")),
        ]
        for k, m in sorted(figures.items())
    ]
    lost = sum(defect.params["lines"] for defect in defects if defect.kind == "truncated_file")
    orphans = {row["run"] for d in defects if d.kind == "orphan_records" for row in d.params["records"]}
    return {
        "runs": [[r.run_id, r.model, r.task, str(r.seed), state[r.run_id], str(len(said[r.run_id]))] for r in runs],
        "metrics": shown,
        "leaderboard": {"benchmark": world.benchmark, "models": _board(world, figures)},
        "parity": parity,
        "report": {
            "benchmark": world.benchmark,
            "runs": {s: sum(1 for v in state.values() if v == s) for s in ("counted", "superseded", "off_protocol")},
            "orphan_runs": sorted(orphans),
            "errata_applied": len(world.errata),
            "recovered_predictions": lost,
            "mismatches": sorted(f"{row[0]}/{row[1]}" for row in parity if row[5] == "mismatch"),
        },
    }


def _parity(world: Any) -> list[list[str]]:
    ways, rows = claimable(world), []
    for model, task, claimed in sorted(world.claims):
        right = ways[""][model, task]
        cause = "" if claimed == right else next((m for m in MODES if ways[m][model, task] == claimed), "unexplained")
        difference = places(Fraction(claimed) - Fraction(right), 2)
        rows.append([model, task, claimed, right, difference, "match" if claimed == right else "mismatch", cause])
    return rows


def _board(world: Any, figures: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    used, scored = chosen(world, ""), []
    for model in world.models:
        tasks, total = {}, Fraction(0)
        for task in world.tasks:
            runs = used[model, task.name]
            means = {c: sum(figures[r][c] for r in runs) / len(runs) for c in ("accuracy", "macro_f1", "ece")}
            total += means["accuracy"]
            tasks[task.name] = {c: places(v, 6) for c, v in means.items()} | {"runs": len(runs)}
        scored.append((-total / len(world.tasks), model, tasks))
    return [
        {"rank": n, "model": m, "score": places(-s, 6), "by_task": t}
        for n, (s, m, t) in enumerate(sorted(scored, key=lambda x: x[:2]), 1)
    ]
