"""Audits with a stabilizer tableau: columns of bits per qubit, forward in time, Gaussian elimination at the end."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

Gate = tuple[str, list[int]]
STATEMENT = re.compile(r"\s*([a-z]+)\s+([^;]+);")


def _rows(tree: Mapping[str, bytes], path: str) -> list[dict[str, str]]:
    return [
        {k: v.strip() for k, v in row.items()} for row in csv.DictReader(io.StringIO(tree[f"input/{path}"].decode()))
    ]


class Circuit:
    """A file's gates, initial layout (if its comment has one) and measured qubits."""

    def __init__(self, text: str):
        self.gates: list[Gate] = []
        self.measured: dict[int, int] = {}
        layout = re.search(r"// initial layout (.*)", text)
        self.initial = [int(pair.split("->")[1]) for pair in layout[1].split()] if layout else []
        for line in text.splitlines():
            found = STATEMENT.match(line)
            if not found or found[1] in ("include", "qreg", "creg"):
                continue
            numbers = [int(n) for n in re.findall(r"\[(\d+)\]", found[2])]
            if found[1] == "measure":
                self.measured[numbers[1]] = numbers[0]
            else:
                self.gates.append((found[1], numbers))
        self.final = [self.measured[bit] for bit in sorted(self.measured)]

    def depth(self) -> int:
        free: dict[int, int] = {}
        for _, where in self.gates:
            layer = max(free.get(q, 0) for q in where) + 1
            free.update(dict.fromkeys(where, layer))
        return max(free.values(), default=0)


class Tableau:
    """Stabilizers as rows; x[q], z[q] and sign are integers whose bit r belongs to row r."""

    def __init__(self, qubits: int):
        self.x, self.z, self.sign, self.rows = [0] * qubits, [0] * qubits, 0, 0

    def add(self, x: set[int], z: set[int]) -> None:
        for q in x:
            self.x[q] |= 1 << self.rows
        for q in z:
            self.z[q] |= 1 << self.rows
        self.rows += 1

    def apply(self, gates: list[Gate]) -> None:
        x, z = self.x, self.z
        for name, where in gates:
            a, b = where[0], where[-1]
            if name == "h":
                self.sign ^= x[a] & z[a]
                x[a], z[a] = z[a], x[a]
            elif name == "s":
                self.sign ^= x[a] & z[a]
                z[a] ^= x[a]
            elif name == "sdg":
                self.sign ^= x[a] & ~z[a]
                z[a] ^= x[a]
            elif name == "cx":
                self.sign ^= x[a] & z[b] & ~(x[b] ^ z[a])
                x[b] ^= x[a]
                z[a] ^= z[b]
            elif name == "cz":
                self.apply([("h", [b]), ("cx", [a, b]), ("h", [b])])
            elif name == "swap":
                x[a], x[b], z[a], z[b] = x[b], x[a], z[b], z[a]
            else:
                self.sign ^= (z[a] if name in "xy" else 0) ^ (x[a] if name in "zy" else 0)

    def reduced(self) -> list[tuple[int, int, int]]:
        """The group's rows (x, z, sign) in reduced echelon form: equal for equal stabilizer states."""
        width = len(self.x)
        rows = []
        for r in range(self.rows):
            x, z = (sum((column[q] >> r & 1) << q for q in range(width)) for column in (self.x, self.z))
            rows.append((x, z, self.sign >> r & 1))
        done: list[tuple[int, int, int]] = []
        for part, q in [(0, q) for q in range(width)] + [(1, q) for q in range(width)]:
            pivot = next((r for r in rows if r[part] >> q & 1), None)
            if pivot:
                rows.remove(pivot)
                rows = [_times(r, pivot) if r[part] >> q & 1 else r for r in rows]
                done = [_times(r, pivot) if r[part] >> q & 1 else r for r in done] + [pivot]
        return done


def _times(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int, int]:
    """The product of two commuting rows; the powers of i are counted with Y = iXZ."""
    x, z = left[0] ^ right[0], left[1] ^ right[1]
    power = (
        (left[0] & left[1]).bit_count()
        + (right[0] & right[1]).bit_count()
        - (x & z).bit_count()
        + 2 * (left[1] & right[0]).bit_count()
    )
    return x, z, left[2] ^ right[2] ^ (power % 4 // 2)


def _choi(
    circuit: Circuit, initial: list[int], final: list[int], width: int, qubits: int, routed: bool
) -> list[tuple[int, int, int]]:
    """The state that stands for the operation: each input is one half of a Bell pair with a reference qubit."""
    state = Tableau(width + qubits)
    at = initial if routed else final
    for logical in range(width):
        pair = {qubits + logical, at[logical]}
        state.add(pair, set())
        state.add(set(), pair)
    for q in set(range(qubits)) - set(at):
        state.add(set(), {q})
    state.apply(circuit.gates if routed else [(name, [final[q] for q in where]) for name, where in circuit.gates])
    return state.reduced()


def _distribution(circuit: Circuit, width: int) -> dict[str, str]:
    state = Tableau(width)
    for q in range(width):
        state.add(set(), {q})
    state.apply(circuit.gates)
    checks = [(z, sign) for x, z, sign in state.reduced() if not x]
    fits = [m for m in range(2**width) if all((m & z).bit_count() & 1 == sign for z, sign in checks)]
    return {format(m, f"0{width}b"): str(Fraction(1, len(fits))) for m in fits}


def _calibration(tree: Mapping[str, bytes], run_date: str) -> dict[tuple[str, str], int]:
    newest: dict[tuple[str, str], tuple[str, int]] = {}
    for row in _rows(tree, "device/calibration.csv"):
        on = row["measured_on"]
        if " " in on:
            on = datetime.strptime(on, "%d %b %Y").strftime("%Y-%m-%d")
        key = row["item"], row["qubits"]
        if on <= run_date and on > newest.get(key, ("", 0))[0]:
            newest[key] = on, int(row["error_ppm"])
    return {key: error for key, (_, error) in newest.items()}


def _csv(header: str, rows: list[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *rows])
    return out.getvalue().encode()


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    names = sorted(p[13:-5] for p in tree if p.startswith("input/source/"))
    sources, routed = (
        {n: Circuit(tree[f"input/{folder}/{n}.qasm"].decode()) for n in names} for folder in ("source", "routed")
    )
    yield "parse-circuits", dict(out)
    case, device = (json.loads(tree[f"input/{name}.json"]) for name in ("case", "device/coupling"))
    errors = _calibration(tree, case["run_date"])
    yield "choose-calibration", dict(out)
    budgets, violations, rows = {}, {}, []
    for name in names:
        circuit = routed[name]
        pairs = [where for _, where in circuit.gates if len(where) == 2]
        singles = [where[0] for _, where in circuit.gates if len(where) == 1]
        allowed = [pair for pair in pairs if pair in device["edges"]]
        violations[name] = len(pairs) - len(allowed)
        terms = [errors["gate1", str(q)] for q in singles] + [errors["cx", f"{a}-{b}"] for a, b in allowed]
        budgets[name] = sum(terms) + sum(errors["readout", str(q)] for q in circuit.final)
        rows.append(
            [
                name,
                len(circuit.final),
                sources[name].depth(),
                circuit.depth(),
                len(singles),
                len(pairs),
                violations[name],
                budgets[name],
            ]
        )
    out["output/staging/metrics.csv"] = _csv(
        "circuit,qubits,source_depth,routed_depth,one_qubit,two_qubit,violations,error_ppm", rows
    )
    yield "measure-size", dict(out)
    same, rows = {}, []
    for name in names:
        width, circuit = len(routed[name].final), routed[name]
        ends = (circuit.initial, circuit.final, width, device["qubits"])
        same[name] = sorted(_choi(circuit, *ends, True)) == sorted(_choi(sources[name], *ends, False))
        rows.append(
            [
                name,
                "-".join(map(str, circuit.initial)),
                "-".join(map(str, circuit.final)),
                "yes" if same[name] else "no",
            ]
        )
    out["output/equivalence.csv"] = _csv("circuit,initial,final,equivalent", rows)
    yield "check-equivalence", dict(out)
    exact = {name: _distribution(sources[name], len(routed[name].final)) for name in names}
    shown = [{"circuit": n, "probabilities": p} for n, p in exact.items()]
    out["output/distributions.json"] = json.dumps({"circuits": shown}, indent=1).encode()
    yield "simulate-sources", dict(out)
    verdicts = []
    for name in names:
        counts = {row["bits"]: int(row["count"].replace(",", "")) for row in _rows(tree, f"counts/{name}.csv")}
        shots, outside = sum(counts.values()), sum(n for bits, n in counts.items() if bits not in exact[name])
        reasons = ["error-budget"] if budgets[name] > case["error_limit_ppm"] else []
        reasons += ["leakage"] if outside * 10**6 > case["leak_limit_ppm"] * shots else []
        reasons += ([] if same[name] else ["not-equivalent"]) + (["routing"] if violations[name] else [])
        verdicts.append(
            {
                "circuit": name,
                "verdict": "reject" if reasons else "accept",
                "reasons": reasons,
                "shots": shots,
                "outside": outside,
            }
        )
    out["output/verdicts.json"] = json.dumps({"verdicts": verdicts}, indent=1).encode()
    yield "judge", dict(out)
    worst = max(errors, key=lambda key: (errors[key], key))
    report = {
        "case": case["case"], "accepted": [v["circuit"] for v in verdicts if v["verdict"] == "accept"],
        "reasons": Counter(r for v in verdicts for r in v["reasons"]),
        "worst_item": {"item": worst[0], "qubits": worst[1], "error_ppm": errors[worst]}, "total_shots": sum(v["shots"] for v in verdicts),
    }  # fmt: skip
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
