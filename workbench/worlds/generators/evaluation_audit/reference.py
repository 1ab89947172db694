"""Reference solver: dictionaries of predictions, exact fractions, one rounding at the end."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

ANSWER = re.compile(r"answer:", re.IGNORECASE)
Said = dict[str, dict[str, tuple[str, int]]]  # run -> item -> (answer or "", confidence)


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    protocol = json.loads(tree["input/protocol.json"])
    runs = _registry(tree, protocol)
    out: dict[str, bytes] = {}
    yield "register", dict(out)
    said, orphans, recovered = _predictions(tree, protocol, runs)
    names = sorted(runs)
    rows = [[n, runs[n]["model"], runs[n]["task"], runs[n]["seed"], runs[n]["status"], len(said[n])] for n in names]
    out["output/staging/runs.csv"] = _write(["run_id", "model", "task", "seed", "status", "predictions"], rows)
    yield "extract", dict(out)
    before, after, corrections = _gold(tree, protocol)
    scores = {n: _score(after[runs[n]["task"]], protocol["labels"][runs[n]["task"]], said[n]) for n in names}
    counts, means = ["items", "missing", "invalid", "correct"], ["accuracy", "macro_f1", "ece"]
    rows = [[n, *(scores[n][c] for c in counts), *(_round(scores[n][c], 6) for c in means)] for n in names]
    out["output/staging/run_metrics.csv"] = _write(["run_id", *counts, *means], rows)
    yield "score", dict(out)
    board = _rank(protocol, runs, scores)
    out["output/leaderboard.json"] = _json({"benchmark": protocol["benchmark"], "models": board})
    yield "rank", dict(out)
    parity = [_compare(*claim, runs, said, before, after) for claim in sorted(_rows(tree["input/claims.csv"]))]
    columns = ["model", "task", "claimed", "recomputed", "difference", "verdict", "cause"]
    out["output/parity.csv"] = _write(columns, parity)
    yield "compare", dict(out)
    report = {
        "benchmark": protocol["benchmark"],
        "runs": {s: sum(r["status"] == s for r in runs.values()) for s in ("counted", "superseded", "off_protocol")},
        "orphan_runs": sorted(orphans),
        "errata_applied": corrections,
        "recovered_predictions": recovered,
        "mismatches": sorted(f"{row[0]}/{row[1]}" for row in parity if row[5] == "mismatch"),
    }
    out["output/report.json"] = _json(report)
    yield "report", dict(out)


def _rows(data: bytes) -> list[list[str]]:
    """Cells below the header, in whatever encoding and with whatever separator."""
    text = data.decode("utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else data.decode("utf-8-sig")
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=head.count)
    return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), delimiter=delimiter)][1:]


def _registry(tree: Mapping[str, bytes], protocol: dict[str, Any]) -> dict[str, dict[str, str]]:
    """run_id -> its row with the model's own name, a sortable time and its status."""
    columns = ["run_id", "model", "task", "seed", "prompt", "shots", "temperature", "finished"]
    runs, groups = {}, defaultdict(list)
    settings = [str(protocol["settings"][k]) for k in ("prompt", "shots", "temperature")]
    for cells in _rows(tree["input/runs.csv"]):
        run = dict(zip(columns, cells, strict=True))
        run["model"] = protocol["aliases"].get(run["model"], run["model"])
        if found := re.match(r"(\d\d)/(\d\d)/(\d{4}) (.*)", run["finished"]):
            run["finished"] = f"{found[3]}-{found[2]}-{found[1]} {found[4]}"
        runs[run["run_id"]] = run
        run["status"] = "off_protocol"
        if cells[4:7] == settings:
            groups[run["model"], run["task"], run["seed"]].append(run)
    for group in groups.values():
        group.sort(key=lambda run: run["finished"])
        for run in group:
            run["status"] = "counted" if run is group[-1] else "superseded"
    return runs


def _predictions(tree: Mapping[str, bytes], protocol: dict[str, Any], runs: dict) -> tuple[Said, set[str], int]:
    logged: dict[tuple[str, str, int], tuple[str, int]] = {}
    kept: dict[tuple[str, str, int], tuple[str, int]] = {}
    for path, data in tree.items():
        if path.startswith("input/logs/"):
            for line in data.decode().splitlines():
                r = json.loads(line)
                logged[r["run"], r["item"], r["attempt"]] = (r["output"], r["confidence"])
        elif path.startswith("input/archive/"):
            for run, item, attempt, output, confidence in _rows(data):
                kept[run, item, int(attempt)] = (output, int(confidence))
    lines, said = kept | logged, defaultdict(dict)
    for run, item, attempt in sorted(lines):
        if run in runs:
            output, confidence = lines[run, item, attempt]
            said[run][item] = (_answer(output, protocol["labels"][runs[run]["task"]]), confidence)
    orphans = {key[0] for key in lines if key[0] not in runs}
    return said, orphans, sum(1 for key in kept if key not in logged and key[0] in runs)


def _answer(output: str, labels: list[str]) -> str:
    parts = ANSWER.split(output)
    said = parts[-1].strip(" ().").lower() if len(parts) > 1 else ""
    return next((label for label in labels if label.lower() == said), "")


def _gold(tree: Mapping[str, bytes], protocol: dict[str, Any]) -> tuple[dict, dict, int]:
    before = {task: {r[0]: r[1] for r in _rows(tree[f"input/gold/{task}.csv"])} for task in protocol["labels"]}
    after = {task: dict(items) for task, items in before.items()}
    errata = _rows(tree["input/gold/errata.csv"])
    for task, item, _, new in errata:
        after[task][item] = new
    return before, after, len(errata)


def _score(gold: dict[str, str], labels: list[str], said: dict[str, tuple[str, int]]) -> dict[str, Any]:
    hits, answers, known = Counter(), Counter(answer for answer, _ in said.values()), Counter(gold.values())
    gaps = defaultdict(int)  # thousandths
    for item, label in gold.items():
        answer, confidence = said.get(item, ("", 0))
        hit = answer == label
        hits[label] += hit
        gaps[min(9, confidence // 100)] += 1000 * hit - confidence
    f1 = [Fraction(2 * hits[x], answers[x] + known[x]) if answers[x] + known[x] else Fraction(0) for x in labels]
    right = sum(hits.values())
    return {
        "items": len(gold),
        "missing": len(gold) - len(said),
        "invalid": answers[""],
        "correct": right,
        "accuracy": Fraction(right, len(gold)),
        "macro_f1": sum(f1) / len(labels),
        "ece": Fraction(sum(map(abs, gaps.values())), 1000 * len(gold)),
    }


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _rank(protocol: dict[str, Any], runs: dict, scores: dict) -> list[dict[str, Any]]:
    rows = []
    for model in protocol["models"]:
        tasks, accuracies = {}, []
        for task in protocol["labels"]:
            used = [
                scores[n] for n, r in runs.items() if (r["model"], r["task"], r["status"]) == (model, task, "counted")
            ]
            mean = {c: _mean([s[c] for s in used]) for c in ("accuracy", "macro_f1", "ece")}
            accuracies.append(mean["accuracy"])
            tasks[task] = {c: _round(v, 6) for c, v in mean.items()} | {"runs": len(used)}
        rows.append((-_mean(accuracies), model, tasks))
    rows.sort(key=lambda row: row[:2])
    return [
        {"rank": at + 1, "model": model, "score": _round(-score, 6), "by_task": tasks}
        for at, (score, model, tasks) in enumerate(rows)
    ]


def _compare(model: str, task: str, claimed: str, runs: dict, said: Said, before: dict, after: dict) -> list[str]:
    pair = [r for r in runs.values() if (r["model"], r["task"]) == (model, task)]
    counted = [r["run_id"] for r in pair if r["status"] == "counted"]
    first: dict[str, dict] = {}
    for run in sorted(pair, key=lambda r: r["finished"]):
        if run["status"] != "off_protocol":
            first.setdefault(run["seed"], run)

    def percent(names: list[str], gold: dict) -> str:
        hits = [sum(said[n].get(item, ("",))[0] == label for item, label in gold.items()) for n in names]
        return _round(Fraction(100 * sum(hits), len(gold) * len(names)), 2)

    right = percent(counted, after[task])
    ways = {
        "gold_before_errata": percent(counted, before[task]),
        "superseded_runs": percent([r["run_id"] for r in first.values()], after[task]),
        "off_protocol_runs": percent([r["run_id"] for r in pair], after[task]),
    }
    cause = "" if claimed == right else next((name for name, value in ways.items() if value == claimed), "unexplained")
    verdict = "mismatch" if cause else "match"
    return [model, task, claimed, right, _round(Fraction(claimed) - Fraction(right), 2), verdict, cause]


def _round(value: Fraction, digits: int) -> str:
    """Half up on the magnitude; no negative zero."""
    whole = int(abs(value) * 10**digits + Fraction(1, 2))
    text = f"{whole // 10**digits}.{whole % 10**digits:0{digits}d}"
    return f"-{text}" if value < 0 and whole else text


def _write(header: list[str], rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
