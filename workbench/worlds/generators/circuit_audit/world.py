"""The public contract of the circuit audit: files, damage, truth, prompt (Tev Table 6, 9.7: circuit construction and structure validity)."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.circuit_audit.scene import Circuit, Gate, World, check, equivalent, make, support

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
METRICS = ("circuit", "qubits", "source_depth", "routed_depth", "one_qubit", "two_qubit", "violations", "error_ppm")
EQUIVALENCE = ("circuit", "initial", "final", "equivalent")
SPEC = Spec(
    name="circuit_audit",
    revision=1,
    domain="9.7",
    title="Audit of transpiled quantum circuits",
    summary="Check routed Clifford circuits against sources, couplings and calibrations; give exact outcome distributions and accept or reject each.",
    outputs=(
        Output("output/staging/metrics.csv", "csv", "size, depth and error budget", dict.fromkeys(METRICS, "string")),
        Output("output/equivalence.csv", "csv", "whether the routed circuit does what the source does", dict.fromkeys(EQUIVALENCE, "string")),
        Output("output/distributions.json", "json", "exact outcomes of the sources", {"circuits": [{"circuit": "string", "probabilities": {"<bits>": "string"}}]}),
        Output("output/verdicts.json", "json", "accept or reject", {"verdicts": [{"circuit": "string", "verdict": "string", "reasons": ["string"], "shots": "integer", "outside": "integer"}]}),
        Output("output/report.json", "json", "summary", {"case": "string", "accepted": ["string"], "reasons": {"<reason>": "integer"}, "worst_item": {"item": "string", "qubits": "string", "error_ppm": "integer"}, "total_shots": "integer"}),
    ),
    workflow_stages=("parse", "simulate", "compare", "budget", "decide"),
    curriculum_layer="mastery",
    artifact_roles=("circuit", "device-description", "calibration", "measurement-counts", "policy"),
    relation_types=("graph-constraint", "temporal", "permutation", "precedence"),
    source_kind="quantum-computing",
)  # fmt: skip
LEAK_PPM = 12_000


def workflow(world: World) -> Workflow:
    gates, count = sum(len(c.routed) for c in world.circuits), len(world.circuits)
    return Workflow((
        Stage("parse-circuits", "parse", gates),
        Stage("choose-calibration", "budget", len(world.calibrations)),
        Stage("measure-size", "budget", gates, ("parse-circuits", "choose-calibration")),
        Stage("check-equivalence", "compare", gates, ("parse-circuits",)),
        Stage("simulate-sources", "simulate", sum(len(c.source) for c in world.circuits), ("parse-circuits",)),
        Stage("judge", "decide", count, ("measure-size", "check-equivalence", "simulate-sources")),
        Stage("report", "decide", 5, ("judge",)),
    ))  # fmt: skip


def day(number: int) -> str:
    return datetime.fromtimestamp(86_400 * number, UTC).strftime("%Y-%m-%d")


def number(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) // 86_400


def qasm(gates: tuple[Gate, ...], qubits: int, measured: tuple[int, ...], comment: str) -> bytes:
    lines = [
        "OPENQASM 2.0;",
        'include "qelib1.inc";',
        f"// {comment}",
        f"qreg q[{qubits}];",
        f"creg c[{len(measured)}];",
    ]
    lines += [f"{name} {','.join(f'q[{q}]' for q in where)};" for name, where in gates]
    lines += [f"measure q[{q}] -> c[{bit}];" for bit, q in enumerate(measured)]
    return ("\n".join(lines) + "\n").encode()


def render(world: World) -> dict[str, bytes]:
    tree, layouts = {}, []
    for c in world.circuits:
        places = " ".join(f"{a}->{b}" for a, b in enumerate(c.initial))
        tree[f"input/source/{c.name}.qasm"] = qasm(c.source, c.width, tuple(range(c.width)), c.name)
        tree[f"input/routed/{c.name}.qasm"] = qasm(c.routed, world.qubits, c.measured, f"initial layout {places}")
        tree[f"input/counts/{c.name}.csv"] = csv_table.table(("bits", "count"), c.counts)
        layouts += [(c.name, a, b) for a, b in enumerate(c.initial)]
    tree["input/layouts.csv"] = csv_table.table(("circuit", "logical", "physical"), layouts)
    tree["input/device/coupling.json"] = json.dumps({"qubits": world.qubits, "edges": world.edges}).encode() + b"\n"
    tree["input/device/calibration.csv"] = csv_table.table(
        ("item", "qubits", "error_ppm", "measured_on"), [(*r[:3], day(r[3])) for r in world.calibrations]
    )
    case = {
        "case": world.case,
        "run_date": day(world.run_day),
        "error_limit_ppm": world.limit_ppm,
        "leak_limit_ppm": LEAK_PPM,
    }
    tree["input/case.json"] = json.dumps(case).encode() + b"\n"
    return tree


def _gates(text: str) -> tuple[Gate, ...]:
    found = re.findall(r"^(h|s|sdg|x|y|z|cx|cz|swap) ([^;]*);$", text, re.MULTILINE)
    return tuple((name, tuple(map(int, re.findall(r"\d+", where)))) for name, where in found)


def recover(tree: Tree) -> World:
    def rows(path: str) -> list[list[str]]:
        return csv_table.rows(tree[path])

    circuits = []
    for path in sorted(p for p in tree if p.startswith("input/source/")):
        name, source, routed = path[13:-5], tree[path].decode(), tree[path.replace("source", "routed")].decode()
        initial = tuple(int(b) for n, _, b in rows("input/layouts.csv") if n == name)
        measured = tuple(map(int, re.findall(r"measure q\[(\d+)\]", routed)))
        counts = tuple((b, int(n)) for b, n in rows(f"input/counts/{name}.csv"))
        circuits.append(Circuit(name, len(initial), _gates(source), _gates(routed), initial, measured, counts))
    case, device = json.loads(tree["input/case.json"]), json.loads(tree["input/device/coupling.json"])
    return World(
        case["case"],
        number(case["run_date"]),
        case["error_limit_ppm"],
        device["qubits"],
        tuple(map(tuple, device["edges"])),
        tuple((i, q, int(e), number(d)) for i, q, e, d in rows("input/device/calibration.csv")),
        tuple(circuits),
    )


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    count = len(world.calibrations)
    first = draw.choice(world.circuits)
    before = sum(c.width for c in world.circuits if c.name < first.name)
    order = [*range(1, first.width), 0]
    some = sorted(draw.sample(range(count), max(3, count // 5)))
    noisy, twice = draw.sample(world.circuits, 2)
    stale = [[i, "error_ppm", str(world.calibrations[i][2] + 7000)] for i in range(0, count, 2)]
    out = [
        Defect("scrambled_index", "input/layouts.csv", {"column": "physical", "rows": [before + i for i in range(first.width)], "order": order}, "the layout table lost the order of one circuit"),
        Defect("date_format_drift", "input/device/calibration.csv", {"column": "measured_on", "rows": some, "from": "%Y-%m-%d", "to": "%d %b %Y"}, "days written by hand"),
        Defect("stale_copy", "input/device/calibration.csv", {"copy": "input/device/calibration.provisional.csv", "edits": stale}, "values before the refit"),
        Defect("numeric_format_drift", f"input/counts/{noisy.name}.csv", {"column": "count", "style": "thousands"}, "counts written for people"),
        Defect("duplicate_records", f"input/counts/{twice.name}.csv", {"rows": list(range(min(2, len(twice.counts))))}, "the tail of a run was sent twice"),
        Defect("whitespace_noise", "input/device/calibration.csv", {"column": "qubits", "rows": some[:4]}, "blanks around qubit names"),
    ]  # fmt: skip
    kept = set(draw.sample(range(len(out)), draw.integer(2, len(out))))
    phase = {"stale_copy": 1}
    return tuple(sorted((d for i, d in enumerate(out) if i in kept), key=lambda d: phase.get(d.kind, 0)))


def depth(gates: tuple[Gate, ...]) -> int:
    level: Counter[int] = Counter()
    for _, where in gates:
        top = 1 + max(level[q] for q in where)
        level.update({q: top - level[q] for q in where})
    return max(level.values(), default=0)


def truth(world: World, defects: tuple[Defect, ...], last: int | None = None) -> dict[str, Any]:
    """The answer key; `last` replaces the day up to which calibrations count (hidden counterfactuals)."""
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for item, where, error, on in world.calibrations:
        if on <= (world.run_day if last is None else last):
            best[item, where] = max(best.get((item, where), (-1, 0)), (on, error))
    metrics, same, distributions, verdicts = [], [], [], []
    for c in world.circuits:
        twos = [where for _, where in c.routed if len(where) == 2]
        violations = sum(where not in world.edges for where in twos)
        budget = sum(best["readout", str(q)][1] for q in c.measured)
        budget += sum(best["gate1", str(where[0])][1] for _, where in c.routed if len(where) == 1)
        budget += sum(best["cx", f"{a}-{b}"][1] for a, b in twos if (a, b) in world.edges)
        values = (c.width, depth(c.source), depth(c.routed), len(c.routed) - len(twos), len(twos), violations, budget)
        metrics.append(dict(zip(METRICS, (c.name, *map(str, values)), strict=True)))
        good = equivalent(c, world.qubits)
        same.append(
            dict(
                zip(
                    EQUIVALENCE,
                    (c.name, "-".join(map(str, c.initial)), "-".join(map(str, c.measured)), "yes" if good else "no"),
                    strict=True,
                )
            )
        )
        outcomes = [f"{o:0{c.width}b}" for o in support(c.source, c.width)]
        weight = "1" if len(outcomes) == 1 else f"1/{len(outcomes)}"
        distributions.append({"circuit": c.name, "probabilities": dict.fromkeys(outcomes, weight)})
        shots, outside = sum(n for _, n in c.counts), sum(n for b, n in c.counts if b not in outcomes)
        holds = {
            "error-budget": budget > world.limit_ppm,
            "leakage": outside * 1_000_000 > LEAK_PPM * shots,
            "not-equivalent": not good,
            "routing": violations > 0,
        }
        reasons = [reason for reason, is_so in holds.items() if is_so]
        verdicts.append(
            {
                "circuit": c.name,
                "verdict": "reject" if reasons else "accept",
                "reasons": reasons,
                "shots": shots,
                "outside": outside,
            }
        )
    worst = max(best.items(), key=lambda kv: (kv[1][1], kv[0]))
    report = {
        "case": world.case,
        "accepted": [v["circuit"] for v in verdicts if not v["reasons"]],
        "reasons": dict(Counter(r for v in verdicts for r in v["reasons"])),
        "worst_item": {"item": worst[0][0], "qubits": worst[0][1], "error_ppm": worst[1][1]},
        "total_shots": sum(v["shots"] for v in verdicts),
    }
    return {
        "metrics": metrics,
        "equivalence": same,
        "distributions": distributions,
        "verdicts": verdicts,
        "report": report,
    }


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="A transpiler laid a batch of Clifford circuits onto a device. Audit its work in exact arithmetic: sizes and error budgets, equivalence with the sources, exact outcome distributions, and a verdict on every circuit.",
        inputs={
            "input/source/*.qasm": "source circuits (OpenQASM 2: h s sdg x y z cx cz swap, measured at the end)",
            "input/routed/*.qasm": "the same circuits on the device's physical qubits",
            "input/layouts.csv": "physical qubit of every logical qubit before the first gate",
            "input/device/": "allowed (control, target) pairs; calibrations over time",
            "input/counts/*.csv": "outcomes measured for each circuit; bits as c[n-1]…c[0]",
            "input/case.json": "the case, the date of the run, limits in parts per million",
        },
        requirements=(
            "Everything is ordered by circuit name. depth: number of layers when every gate starts as soon as its qubits are free; measurements don't count.",
            "metrics.csv: qubits (logical), depths of source and routed circuit, one- and two-qubit gates of the routed circuit, violations (its two-qubit gates whose (first, second) qubit is no allowed pair), error_ppm: the sum over one-qubit gates of `gate1`, over allowed two-qubit gates of `cx` (qubits `a-b`), over measured qubits of `readout`. For each item and qubits the calibration with the latest measured_on not after run_date counts.",
            "equivalence.csv: initial lists the physical qubits of logical 0, 1, … joined with `-`; final the physical qubits measured into c[0], c[1], …. equivalent is `yes` when for every input state of the logical qubits (placed by initial; other physical qubits start in |0>) the routed circuit gives what the source gives (logical i found at the qubit measured into c[i], all others back in |0>), up to one global phase common to all inputs; else `no`.",
            "distributions.json: of each source on |0…0>, all outcomes of non-zero probability, as bits c[n-1]…c[0], with the probability as a reduced fraction such as `1/4` (or `1`).",
            "verdicts.json: shots are all counts, outside those of outcomes with probability zero for the source. reasons, sorted: `error-budget` (error_ppm > error_limit_ppm), `leakage` (outside * 1000000 > leak_limit_ppm * shots), `not-equivalent`, `routing` (violations > 0). verdict `reject` with any, else `accept`.",
            "report.json: accepted circuits; how many circuits have each reason (only those that occur); worst_item, the largest calibration in force (ties: last by item, then qubits, as text); total_shots.",
        ),
        authority=(
            "The layout in the comment of a routed file wins over layouts.csv.",
            "calibration.csv is in force; provisional copies are not. Days may be written `YYYY-MM-DD` or `DD Mon YYYY`; blanks around values mean nothing.",
            "Counts may carry thousands separators; a repeated identical row is one row.",
        ),
    )
