"""The public contract of the memory experiments: files, damage, truth, prompt (Tev Table 6, 9.7: error-correction code analysis)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.code_decoding.answers import SHOTS, TABLE, answer, bits
from workbench.worlds.generators.code_decoding.scene import KEPT, Code, Run, World, check, make

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
SPEC = Spec(
    name="code_decoding",
    revision=1,
    domain="9.7",
    title="Decoding of quantum memory experiments",
    summary="Build minimum-weight decoders for CSS codes from their check matrices, decode logged shots, give exact logical error rates.",
    outputs=(
        Output("output/staging/decoders.csv", "csv", "the decoder of every code and basis", dict.fromkeys(TABLE, "string")),
        Output("output/codes.json", "json", "parameters of the codes", {"codes": [{"code": "string", "n": "integer", "k": "integer", "distance_z": "integer", "distance_x": "integer"}]}),
        Output("output/shots.csv", "csv", "every shot decoded", dict.fromkeys(SHOTS, "string")),
        Output("output/rates.json", "json", "exact rates", {"experiments": [{"experiment": "string", "code": "string", "basis": "string", "permille": "integer", "shots": "integer", "discarded": "integer", "failures": "integer", "rate": "string", "mean_weight": "string"}]}),
        Output("output/report.json", "json", "summary", {"case": "string", "shots": "integer", "discarded": "integer", "failures": "integer", "best": {"<permille>": "string"}}),
    ),
    workflow_stages=("verify", "analyse", "decode", "aggregate", "report"),
    curriculum_layer="mastery",
    artifact_roles=("matrix", "checksum", "log", "reference-table", "journal"),
    relation_types=("linear-algebra", "foreign-key", "precedence", "temporal"),
    source_kind="quantum-computing",
)  # fmt: skip
EXPERIMENTS = ("experiment", "code", "basis", "permille", "prepared")


def workflow(world: World) -> Workflow:
    shots = sum(len(r.shots) for r in world.runs)
    return Workflow((
        Stage("verify-codes", "verify", len(world.codes)),
        Stage("analyse-codes", "analyse", sum(c.n for c in world.codes), ("verify-codes",)),
        Stage("build-decoders", "decode", sum(2 ** len(c.hx) + 2 ** len(c.hz) for c in world.codes), ("verify-codes",)),
        Stage("repair-logs", "verify", shots),
        Stage("decode-shots", "decode", shots, ("build-decoders", "repair-logs")),
        Stage("count-rates", "aggregate", len(world.runs), ("decode-shots",)),
        Stage("report", "report", 5, ("count-rates", "analyse-codes")),
    ))  # fmt: skip


def _matrix(code: Code) -> bytes:
    lines = [f"n {code.n}"]
    for title, rows in (("HX", code.hx), ("HZ", code.hz), ("LX", (code.lx,)), ("LZ", (code.lz,))):
        lines += [f"{title} {bits(row, code.n)}" for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _qubits(vector: int) -> list[int]:
    return [q for q in range(vector.bit_length()) if vector >> q & 1]


def render(world: World) -> dict[str, bytes]:
    tree = {"input/case.json": json.dumps({"case": world.case}).encode() + b"\n"}
    sums = []
    for code in world.codes:
        tree[f"input/codes/{code.name}.txt"] = data = _matrix(code)
        sums.append((f"{code.name}.txt", hashlib.sha256(data).hexdigest()))
        supports = {
            "n": code.n,
            "hx": [_qubits(r) for r in code.hx],
            "hz": [_qubits(r) for r in code.hz],
            "lx": _qubits(code.lx),
            "lz": _qubits(code.lz),
        }
        tree[f"input/archive/{code.name}.json"] = json.dumps(supports).encode() + b"\n"
    tree["input/codes/sha256.csv"] = csv_table.table(("file", "sha256"), sums)
    tree["input/experiments.csv"] = csv_table.table(
        EXPERIMENTS, [(r.id, r.code, r.basis, r.permille, r.prepared) for r in world.runs]
    )
    for run in world.runs:
        code = next(c for c in world.codes if c.name == run.code)
        width = len(code.hz if run.basis == "Z" else code.hx)
        lines = []
        for at, (rounds, data) in enumerate(run.shots):
            lines += [(at, nth, bits(s, width)) for nth, s in enumerate(rounds)] + [(at, "data", bits(data, code.n))]
        tree[f"input/runs/{run.id}.csv"] = csv_table.table(("shot", "round", "bits"), lines)
        tail = [{"shot": a, "round": str(r), "bits": b} for a, r, b in lines if a >= len(run.shots) - KEPT]
        tree[f"input/journal/{run.id}.jsonl"] = "".join(json.dumps(x) + "\n" for x in tail).encode()
    return tree


def _number(text: str) -> int:
    return int(text[::-1], 2)


def recover(tree: Tree) -> World:
    def rows(path: str) -> list[list[str]]:
        return csv_table.rows(tree[path])

    codes, runs = [], []
    for path in sorted(p for p in tree if p.startswith("input/codes/") and p.endswith(".txt")):
        (_, n), *lines = [line.split(" ") for line in tree[path].decode().splitlines()]
        part = {t: tuple(_number(v) for title, v in lines if title == t) for t in ("HX", "HZ", "LX", "LZ")}
        codes.append(Code(path[12:-4], int(n), part["HX"], part["HZ"], part["LX"][0], part["LZ"][0]))
    for name, code, basis, permille, prepared in rows("input/experiments.csv"):
        shots: list[tuple[tuple[int, ...], int]] = []
        rounds: list[int] = []
        for _, nth, text in rows(f"input/runs/{name}.csv"):
            if nth == "data":
                shots.append((tuple(rounds), _number(text)))
                rounds = []
            else:
                rounds.append(_number(text))
        runs.append(Run(name, code, basis, int(permille), int(prepared), tuple(shots)))
    return World(json.loads(tree["input/case.json"])["case"], tuple(codes), tuple(runs))


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    tree = render(world)
    cut, twice, moved = (r.id for r in draw.sample(world.runs, 3))
    rotten = draw.choice(world.codes)
    path = f"input/codes/{rotten.name}.txt"
    places = [i for i, byte in enumerate(tree[path]) if byte in b"01" and i > 6]
    offsets = sorted(draw.sample(places, 2))
    rows = tree[f"input/runs/{twice}.csv"].count(b"\n") - 1
    last = tree[f"input/journal/{moved}.jsonl"].count(b"\n") - 1
    final = json.loads(tree[f"input/journal/{moved}.jsonl"].splitlines()[last])["bits"]
    flipped = final.translate(str.maketrans("01", "10"))
    out = [
        Defect("bit_rot", path, {"offsets": offsets, "masks": [1, 1]}, "two entries of a check matrix flipped"),
        Defect("truncated_file", f"input/runs/{cut}.csv", {"lines": draw.integer(5, 4 * KEPT - 8)}, "a run's log was cut; the journal has the last shots"),
        Defect("duplicate_records", f"input/runs/{twice}.csv", {"rows": sorted(draw.sample(range(rows), 6))}, "lines were sent twice"),
        Defect("contradictory_record", f"input/journal/{moved}.jsonl", {"column": "bits", "rows": [last], "values": [flipped]}, "the journal mangled a readout"),
        Defect("stale_copy", "input/experiments.csv", {"copy": "input/experiments.planned.csv", "edits": [[i, "prepared", str(1 - r.prepared)] for i, r in enumerate(world.runs)]}, "the plan before the states were drawn"),
        Defect("schema_drift", f"input/runs/{moved}.csv", {"order": ["bits", "shot", "round"]}, "another firmware's column order"),
    ]  # fmt: skip
    kept = sorted(draw.sample(range(len(out)), draw.integer(2, len(out))))
    return tuple(out[i] for i in kept)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answer(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="Logs of quantum memory experiments on CSS codes must be decoded. Analyse the codes, build their minimum-weight decoders, decode every shot, and report exact logical error rates.",
        inputs={
            "input/codes/*.txt": "check matrices HX, HZ (a row per line) and logical operators LX, LZ; character i belongs to qubit i",
            "input/codes/sha256.csv": "SHA-256 of each of these files as released",
            "input/archive/*.json": "the same as lists of qubits, in the same order of rows",
            "input/experiments.csv": "code, basis, physical error rate in per mille, prepared logical value",
            "input/runs/*.csv": "per shot: the measured checks of every round (character i is check i), then a row `data` with the readout of all qubits",
            "input/journal/*.jsonl": "the last shots of each run, noted a second time",
            "input/case.json": "the case",
        },
        requirements=(
            "Basis Z uses the checks HZ and the logical operator LZ; basis X uses HX and LX. A check's value is the parity of an error's bits on its qubits.",
            "decoders.csv: for every code and every basis that has checks, each syndrome that some error causes (character i is check i): weight and correction of the error of least weight that causes it; among equals the one whose ascending list of qubits is smallest, compared number by number. correction: the qubits ascending, joined with `-`, empty for none. Order by code, basis, syndrome.",
            "codes.json, by code: n qubits, k = n - rank HX - rank HZ (over two elements), distance_z: the fewest flipped qubits that leave all HZ checks even and overlap LZ in an odd number of qubits; distance_x the same with HX and LX.",
            "A shot's syndrome is the majority of its rounds, check by check. If the readout's own checks differ from it, the outcome is `discarded`. Else flip the correction's qubits in the readout: `ok` if the parity on the logical operator's qubits equals prepared, else `failure`. shots.csv lists every shot with its majority syndrome and the correction for it (discarded ones too), by experiment, then shot number.",
            "rates.json, by experiment: discarded, failures, rate = failures / kept shots, and mean_weight = mean weight of the corrections of kept shots, both as reduced fractions like `3/40` (`0` and `1` without a denominator; `none` if nothing was kept).",
            "report.json: totals of shots, discarded, failures; best: for every per mille rate the experiment with the lowest rate (ties: fewer qubits, then id).",
        ),
        authority=(
            "A code file whose SHA-256 is not the released one is replaced by the archive's version.",
            "A run's own rows win over the journal, which serves only rows that the run lacks. Repeated identical rows count once; columns go by name.",
            "experiments.csv is in force; the planned one is not.",
        ),
    )
