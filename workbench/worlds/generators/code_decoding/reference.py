"""Decodes with sets of qubits: errors are tried by weight, in lexicographic order, until every syndrome is explained."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any


class Code:
    """n, and per basis the checks and the logical operator as sets of qubits."""

    def __init__(self, n: int, hx: list[Any], hz: list[Any], lx: Any, lz: Any):
        self.n = n
        self.checks = {"X": [frozenset(r) for r in hx], "Z": [frozenset(r) for r in hz]}
        self.logical = {"X": frozenset(lx), "Z": frozenset(lz)}

    def syndrome(self, basis: str, error: frozenset[int]) -> str:
        return "".join(str(len(row & error) % 2) for row in self.checks[basis])

    def rank(self, basis: str) -> int:
        rows, rank = [set(r) for r in self.checks[basis]], 0
        for q in range(self.n):
            pivot = next((r for r in rows if q in r), None)
            if pivot is not None:
                rows = [r ^ pivot if q in r else r for r in rows if r is not pivot]
                rank += 1
        return rank

    def decoder(self, basis: str) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        total = 2 ** self.rank(basis)
        for weight in range(self.n + 1):
            for chosen in combinations(range(self.n), weight):
                found.setdefault(self.syndrome(basis, frozenset(chosen)), chosen)
            if len(found) == total:
                break
        return found

    def distance(self, basis: str) -> int:
        for weight in range(1, self.n + 1):
            for chosen in map(frozenset, combinations(range(self.n), weight)):
                if len(chosen & self.logical[basis]) % 2 and "1" not in self.syndrome(basis, chosen):
                    return weight
        raise ValueError("the logical operator is trivial")


def _codes(tree: Mapping[str, bytes]) -> dict[str, Code]:
    out = {}
    for row in csv.DictReader(io.StringIO(tree["input/codes/sha256.csv"].decode())):
        name = row["file"].removesuffix(".txt")
        data = tree[f"input/codes/{row['file']}"]
        if hashlib.sha256(data).hexdigest() == row["sha256"]:
            parts: dict[str, list[list[int]]] = {"HX": [], "HZ": [], "LX": [], "LZ": []}
            first, *lines = data.decode().splitlines()
            for line in lines:
                title, text = line.split()
                parts[title].append([q for q, sign in enumerate(text) if sign == "1"])
            out[name] = Code(int(first.split()[1]), parts["HX"], parts["HZ"], parts["LX"][0], parts["LZ"][0])
        else:
            old = json.loads(tree[f"input/archive/{name}.json"])
            out[name] = Code(old["n"], old["hx"], old["hz"], old["lx"], old["lz"])
    return dict(sorted(out.items()))


def _run(tree: Mapping[str, bytes], name: str) -> dict[int, dict[str, str]]:
    """shot -> round -> bits, the journal below the run's own rows."""
    shots: dict[int, dict[str, str]] = {}
    own = csv.DictReader(io.StringIO(tree[f"input/runs/{name}.csv"].decode()))
    for row in [*map(json.loads, tree[f"input/journal/{name}.jsonl"].splitlines()), *own]:
        shots.setdefault(int(row["shot"]), {})[row["round"]] = row["bits"]
    return dict(sorted(shots.items()))


def _majority(rounds: list[str]) -> str:
    return "".join("1" if 2 * column.count("1") > len(column) else "0" for column in zip(*rounds, strict=True))


def _csv(header: str, rows: list[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *rows])
    return out.getvalue().encode()


def _ratio(top: int, bottom: int) -> str:
    return str(Fraction(top, bottom)) if bottom else "none"


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    codes = _codes(tree)
    yield "verify-codes", dict(out)
    listed = [
        {"code": name, "n": c.n, "k": c.n - c.rank("X") - c.rank("Z"), "distance_z": c.distance("Z"), "distance_x": c.distance("X")}
        for name, c in codes.items()
    ]  # fmt: skip
    out["output/codes.json"] = json.dumps({"codes": listed}, indent=1).encode()
    yield "analyse-codes", dict(out)
    decoders = {(name, basis): c.decoder(basis) for name, c in codes.items() for basis in "XZ" if c.checks[basis]}
    rows = [
        (name, basis, s, len(fix), "-".join(map(str, fix)))
        for (name, basis), found in decoders.items()
        for s, fix in sorted(found.items())
    ]
    out["output/staging/decoders.csv"] = _csv("code,basis,syndrome,weight,correction", rows)
    yield "build-decoders", dict(out)
    experiments = sorted(
        csv.DictReader(io.StringIO(tree["input/experiments.csv"].decode())), key=lambda r: r["experiment"]
    )
    logs = {e["experiment"]: _run(tree, e["experiment"]) for e in experiments}
    yield "repair-logs", dict(out)
    shots, rates = [], []
    for e in experiments:
        code, basis, name = codes[e["code"]], e["basis"], e["experiment"]
        discarded = failures = weight = 0
        for shot, rounds in logs[name].items():
            seen = _majority([text for nth, text in rounds.items() if nth != "data"])
            fix = decoders[e["code"], basis].get(seen, ())
            data = frozenset(q for q, sign in enumerate(rounds["data"]) if sign == "1")
            if code.syndrome(basis, data) != seen:
                outcome = "discarded"
                discarded += 1
            else:
                weight += len(fix)
                flipped = len((data ^ frozenset(fix)) & code.logical[basis]) % 2 != int(e["prepared"])
                outcome = "failure" if flipped else "ok"
                failures += flipped
            shots.append((name, shot, seen, "-".join(map(str, fix)), outcome))
        kept = len(logs[name]) - discarded
        rates.append({
            "experiment": name, "code": e["code"], "basis": basis, "permille": int(e["permille"]), "shots": len(logs[name]),
            "discarded": discarded, "failures": failures, "rate": _ratio(failures, kept), "mean_weight": _ratio(weight, kept),
        })  # fmt: skip
    out["output/shots.csv"] = _csv("experiment,shot,syndrome,correction,outcome", shots)
    yield "decode-shots", dict(out)
    out["output/rates.json"] = json.dumps({"experiments": rates}, indent=1).encode()
    yield "count-rates", dict(out)
    best = {}
    for row in sorted(
        rates, key=lambda r: (Fraction(r["rate"]) if r["rate"] != "none" else 2, codes[r["code"]].n, r["experiment"])
    ):
        best.setdefault(str(row["permille"]), row["experiment"])
    totals = {key: sum(r[key] for r in rates) for key in ("shots", "discarded", "failures")}
    report = {"case": json.loads(tree["input/case.json"])["case"], **totals, "best": best}
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
