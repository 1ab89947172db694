"""Alternative solver: everything is loaded into SQLite and counted there; decimals are rounded with the decimal module."""

from __future__ import annotations

import decimal
import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

SCHEMA = """
CREATE TABLE run (id TEXT PRIMARY KEY, model TEXT, task TEXT, seed INTEGER, conform INTEGER, finished TEXT, status TEXT);
CREATE TABLE line (run TEXT, item TEXT, attempt INTEGER, output TEXT, confidence INTEGER, source INTEGER);
CREATE TABLE gold (task TEXT, item TEXT, old TEXT, label TEXT, PRIMARY KEY (task, item));
CREATE TABLE label (task TEXT, label TEXT);
CREATE TABLE claim (model TEXT, task TEXT, value TEXT);
CREATE TABLE pred (run TEXT, item TEXT, answer TEXT, confidence INTEGER, PRIMARY KEY (run, item));
"""
STATUS = """
UPDATE run SET status = CASE WHEN NOT conform THEN 'off_protocol'
  WHEN EXISTS (SELECT 1 FROM run o WHERE o.conform AND o.model = run.model AND o.task = run.task AND o.seed = run.seed
               AND o.finished > run.finished) THEN 'superseded' ELSE 'counted' END
"""
CHOSEN = """
SELECT run, item, output, confidence, task FROM (
  SELECT line.*, run.task, ROW_NUMBER() OVER (PARTITION BY run, item ORDER BY attempt DESC, source) AS nth
  FROM line JOIN run ON run.id = line.run) WHERE nth = 1
"""
CELLS = """
SELECT run.id, gold.label, pred.answer, COUNT(*), SUM(COALESCE(pred.confidence, 0)), MIN(9, COALESCE(pred.confidence, 0) / 100) AS bin
FROM run JOIN gold ON gold.task = run.task LEFT JOIN pred ON pred.run = run.id AND pred.item = gold.item GROUP BY 1, 2, 3, 6
"""
HITS = """
SELECT COUNT(*), SUM(COALESCE(pred.answer, '') = {label}) FROM run JOIN gold ON gold.task = run.task
LEFT JOIN pred ON pred.run = run.id AND pred.item = gold.item WHERE run.model = ? AND run.task = ? AND {which}
"""
FIRST = """run.conform AND NOT EXISTS (SELECT 1 FROM run o WHERE o.conform AND o.model = run.model AND o.task = run.task
 AND o.seed = run.seed AND o.finished < run.finished)"""
WAYS = (
    ("", "gold.label", "run.status = 'counted'"),
    ("gold_before_errata", "gold.old", "run.status = 'counted'"),
    ("superseded_runs", "gold.label", FIRST),
    ("off_protocol_runs", "gold.label", "1"),
)


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    protocol = json.loads(tree["input/protocol.json"])
    base = sqlite3.connect(":memory:")
    base.executescript(SCHEMA)
    errata = _load(base, tree, protocol)
    base.execute(STATUS)
    for run, item, output, confidence, task in base.execute(CHOSEN).fetchall():
        base.execute(
            "INSERT INTO pred VALUES (?, ?, ?, ?)", (run, item, _meant(output, protocol["labels"][task]), confidence)
        )
    figures = _figures(base, protocol)
    parity = _parity(base)
    listed = base.execute(
        "SELECT id, model, task, seed, status, (SELECT COUNT(*) FROM pred WHERE run = id) FROM run ORDER BY id"
    ).fetchall()
    report = {
        "benchmark": protocol["benchmark"],
        "runs": dict.fromkeys(("counted", "superseded", "off_protocol"), 0)
        | dict(base.execute("SELECT status, COUNT(*) FROM run GROUP BY 1")),
        "orphan_runs": [
            r for (r,) in base.execute("SELECT DISTINCT run FROM line WHERE run NOT IN (SELECT id FROM run) ORDER BY 1")
        ],
        "errata_applied": errata,
        "recovered_predictions": base.execute(
            "SELECT COUNT(*) FROM (SELECT run, item, attempt FROM line WHERE run IN (SELECT id FROM run) GROUP BY 1, 2, 3 HAVING MIN(source) = 1)"
        ).fetchone()[0],
        "mismatches": sorted(f"{row[0]}/{row[1]}" for row in parity if row[-1]),
    }
    counts, means = ("items", "missing", "invalid", "correct"), ("accuracy", "macro_f1", "ece")
    rows = [[n, *(f[c] for c in counts), *(_text(f[c], 6) for c in means)] for n, f in sorted(figures.items())]
    return {
        "output/staging/runs.csv": _lines("run_id,model,task,seed,status,predictions", listed),
        "output/staging/run_metrics.csv": _lines(",".join(("run_id", *counts, *means)), rows),
        "output/leaderboard.json": json.dumps(
            {"models": _board(base, figures), "benchmark": protocol["benchmark"]}
        ).encode(),
        "output/parity.csv": _lines("model,task,claimed,recomputed,difference,verdict,cause", parity),
        "output/report.json": json.dumps(report).encode(),
    }


def _split(data: bytes) -> list[list[str]]:
    """A table by hand: quoted cells, four separators, two encodings."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-16")
    lines = text.splitlines()
    mark = next((sign for sign in ";\t|" if sign in lines[0]), ",")
    out = []
    for line in lines[1:]:
        cells = [""]
        for at, part in enumerate(line.split('"')):
            if at % 2:  # inside quotes; a doubled quote leaves an empty part outside
                cells[-1] += part
            elif not part and 0 < at < line.count('"'):
                cells[-1] += '"'
            else:
                first, *rest = part.split(mark)
                cells[-1] += first
                cells += rest
        out.append([cell.strip() for cell in cells])
    return out


def _load(base: sqlite3.Connection, tree: Mapping[str, bytes], protocol: dict[str, Any]) -> int:
    wanted = protocol["settings"]
    for run, model, task, seed, prompt, shots, temperature, when in _split(tree["input/runs.csv"]):
        conform = prompt == wanted["prompt"] and int(shots) == wanted["shots"] and temperature == wanted["temperature"]
        if when[2] == "/":
            when = f"{when[6:10]}-{when[3:5]}-{when[:2]}{when[10:]}"
        name = protocol["aliases"].get(model, model)
        base.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, '')", (run, name, task, int(seed), conform, when))
    for task, labels in protocol["labels"].items():
        base.executemany("INSERT INTO label VALUES (?, ?)", [(task, label) for label in labels])
        rows = _split(tree[f"input/gold/{task}.csv"])
        base.executemany("INSERT INTO gold VALUES (?, ?, ?, ?)", [(task, item, label, label) for item, label in rows])
    errata = _split(tree["input/gold/errata.csv"])
    base.executemany("UPDATE gold SET label = ? WHERE task = ? AND item = ?", [(r[3], r[0], r[1]) for r in errata])
    base.executemany("INSERT INTO claim VALUES (?, ?, ?)", _split(tree["input/claims.csv"]))
    for path, data in tree.items():
        if path.startswith("input/logs/"):
            lines = [(*json.loads(line).values(), 0) for line in data.splitlines()]
        elif path.startswith("input/archive/"):
            lines = [(run, item, int(n), output, int(c), 1) for run, item, n, output, c in _split(data)]
        else:
            continue
        base.executemany("INSERT INTO line VALUES (?, ?, ?, ?, ?, ?)", lines)
    return len(errata)


def _meant(output: str, labels: list[str]) -> str:
    at = output.lower().rfind("answer:")
    if at < 0:
        return ""
    known = {label.casefold(): label for label in labels}
    return known.get(output[at + 7 :].strip(" ().").casefold(), "")


def _figures(base: sqlite3.Connection, protocol: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Metrics of every run from the cells of its confusion table."""
    task_of = dict(base.execute("SELECT id, task FROM run"))
    cells: dict[str, list[tuple]] = {run: [] for run in task_of}
    for run, *cell in base.execute(CELLS):
        cells[run].append(tuple(cell))
    out = {}
    for run, rows in cells.items():
        labels = protocol["labels"][task_of[run]]
        items = sum(r[2] for r in rows)
        hit = {x: sum(r[2] for r in rows if r[0] == r[1] == x) for x in labels}
        either = {x: sum(r[2] * ((r[0] == x) + (r[1] == x)) for r in rows) for x in labels}
        gap = sum(abs(sum((1000 * r[2] if r[0] == r[1] else 0) - r[3] for r in rows if r[4] == n)) for n in range(10))
        out[run] = {
            "items": items,
            "missing": sum(r[2] for r in rows if r[1] is None),
            "invalid": sum(r[2] for r in rows if r[1] == ""),
            "correct": sum(hit.values()),
            "accuracy": Fraction(sum(hit.values()), items),
            "macro_f1": sum((Fraction(2 * hit[x], either[x]) for x in labels if either[x]), Fraction(0)) / len(labels),
            "ece": Fraction(gap, 1000 * items),
        }
    return out


def _board(base: sqlite3.Connection, figures: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    totals: dict[str, dict[str, list]] = {}
    for run, model, task in base.execute("SELECT id, model, task FROM run WHERE status = 'counted'"):
        totals.setdefault(model, {}).setdefault(task, []).append(figures[run])
    scores, tables = {}, {}
    for model, tasks in totals.items():
        tables[model], scores[model] = {}, Fraction(0)
        for task, runs in tasks.items():
            means = {c: sum(r[c] for r in runs) / Fraction(len(runs)) for c in ("accuracy", "macro_f1", "ece")}
            scores[model] += means["accuracy"] / len(tasks)
            tables[model][task] = {"runs": len(runs), **{c: _text(v, 6) for c, v in means.items()}}
    order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
    return [{"rank": n, "model": m, "score": _text(scores[m], 6), "by_task": tables[m]} for n, m in enumerate(order, 1)]


def _parity(base: sqlite3.Connection) -> list[list[str]]:
    out = []
    for model, task, claimed in base.execute("SELECT * FROM claim ORDER BY 1, 2").fetchall():
        found = {}
        for name, label, which in WAYS:
            of, hits = base.execute(HITS.format(label=label, which=which), (model, task)).fetchone()
            found[name] = _text(Fraction(100 * hits, of), 2)
        cause = next((name for name, value in found.items() if value == claimed), "unexplained")
        gap = _text(Fraction(claimed) - Fraction(found[""]), 2)
        out.append([model, task, claimed, found[""], gap, "mismatch" if cause else "match", cause])
    return out


def _text(value: Fraction, digits: int) -> str:
    with decimal.localcontext(prec=60):
        exact = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        rounded = exact.quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP)
    return f"{rounded + 0:.{digits}f}" if rounded else f"{0:.{digits}f}"


def _lines(header: str, rows: Any) -> bytes:
    return ("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n").encode()
