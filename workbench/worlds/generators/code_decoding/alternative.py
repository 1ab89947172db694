"""Decodes by dynamic programming over the qubits (a trellis of syndromes), from the last qubit to the first."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import Any

NEVER = 10**6


class Trellis:
    """columns[q] is what an error on qubit q does to the checks, bit i for check i."""

    def __init__(self, columns: list[int]):
        self.columns = columns
        self.weight = cache(self._weight)

    def _weight(self, qubit: int, left: int) -> int:
        """The fewest errors on this and later qubits that cause what is left of the syndrome."""
        if qubit == len(self.columns):
            return NEVER if left else 0
        return min(self.weight(qubit + 1, left), 1 + self.weight(qubit + 1, left ^ self.columns[qubit]))

    def decode(self, wanted: int) -> list[int] | None:
        """An early qubit is taken whenever that costs nothing: this is the lexicographically first of least weight."""
        if self.weight(0, wanted) >= NEVER:
            return None
        fix = []
        for qubit, column in enumerate(self.columns):
            if self.weight(qubit, wanted) == 1 + self.weight(qubit + 1, wanted ^ column):
                fix.append(qubit)
                wanted ^= column
        return fix


def _code(tree: Mapping[str, bytes], name: str, digest: str) -> dict[str, Any]:
    data = tree[f"input/codes/{name}.txt"]
    if hashlib.sha256(data).hexdigest() != digest:
        old = json.loads(tree[f"input/archive/{name}.json"])
        n = old["n"]
        rows = {key: ["".join("01"[q in row] for q in range(n)) for row in old[key]] for key in ("hx", "hz")}
        return {"n": n, **rows, **{key: "".join("01"[q in old[key]] for q in range(n)) for key in ("lx", "lz")}}
    words = data.decode().split()
    pairs = list(zip(words[2::2], words[3::2], strict=True))
    found: dict[str, Any] = {key: [v for t, v in pairs if t == key.upper()] for key in ("hx", "hz", "lx", "lz")}
    return {**found, "n": int(words[1]), "lx": found["lx"][0], "lz": found["lz"][0]}


def _columns(rows: list[str], n: int) -> list[int]:
    return [sum(int(row[q]) << i for i, row in enumerate(rows)) for q in range(n)]


def _rank(rows: list[str]) -> int:
    """Rows as numbers, the highest bit cleared from the others each time."""
    left, rank = [int(r, 2) for r in rows], 0
    while left := [v for v in left if v]:
        top = max(left)
        left.remove(top)
        left = [v ^ top if v.bit_length() == top.bit_length() else v for v in left]
        rank += 1
    return rank


def _log(tree: Mapping[str, bytes], db: sqlite3.Connection, name: str) -> None:
    header, *rows = csv.reader(tree[f"input/runs/{name}.csv"].decode().splitlines())
    order = [header.index(c) for c in ("shot", "round", "bits")]
    lines = [[name, *(row[i] for i in order)] for row in rows]
    lines += [
        [name, r["shot"], r["round"], r["bits"]]
        for r in map(json.loads, tree[f"input/journal/{name}.jsonl"].decode().splitlines())
    ]
    db.executemany("INSERT OR IGNORE INTO log VALUES (?,?,?,?)", lines)


def _vote(rounds: list[str]) -> int:
    return sum((sum(text[i] == "1" for text in rounds) > len(rounds) / 2) << i for i in range(len(rounds[0])))


def _written(value: int, width: int) -> str:
    return format(value, f"0{width}b")[::-1]


def _fraction(top: int, bottom: int) -> str:
    if not bottom:
        return "none"
    shared = math.gcd(top, bottom)
    return str(top // shared) if bottom == shared else f"{top // shared}/{bottom // shared}"


def _table(header: str, rows: list[Any]) -> bytes:
    return "".join(",".join(map(str, row)) + "\n" for row in [header.split(), *rows]).encode()


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    sums = dict(csv.reader(tree["input/codes/sha256.csv"].decode().splitlines()[1:]))
    codes = {file[:-4]: _code(tree, file[:-4], digest) for file, digest in sorted(sums.items())}
    tables, listed, trellises = [], [], {}
    for name, code in codes.items():
        spread = {}
        for basis in "xz":
            checks = code["h" + basis]
            flags = _columns([*checks, code["l" + basis]], code["n"])
            spread[basis] = Trellis(flags).weight(0, 1 << len(checks))
            trellises[name, basis.upper()] = trellis = Trellis(_columns(checks, code["n"]))
            fixes = [(_written(s, len(checks)), trellis.decode(s)) for s in range(1 << len(checks))] if checks else []
            tables += sorted((name, basis.upper(), s, len(f), "-".join(map(str, f))) for s, f in fixes if f is not None)
        k = code["n"] - _rank(code["hx"]) - _rank(code["hz"])
        listed.append({"code": name, "distance_x": spread["x"], "distance_z": spread["z"], "k": k, "n": code["n"]})
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE log(run TEXT, shot INTEGER, round TEXT, bits TEXT, PRIMARY KEY (run, shot, round))")
    shots, rates = [], []
    for name, title, basis, permille, prepared in sorted(
        csv.reader(tree["input/experiments.csv"].decode().splitlines()[1:])
    ):
        _log(tree, db, name)
        code, trellis = codes[title], trellises[title, basis]
        logical, checks = code["l" + basis.lower()], code["h" + basis.lower()]
        tally, total = {"ok": 0, "failure": 0, "discarded": 0}, 0
        grouped: dict[int, list[str]] = {}
        for shot, text in db.execute(
            "SELECT shot, bits FROM log WHERE run = ? AND round <> 'data' ORDER BY shot", (name,)
        ):
            grouped.setdefault(shot, []).append(text)
        readouts = dict(db.execute("SELECT shot, bits FROM log WHERE run = ? AND round = 'data'", (name,)))
        for shot, rounds in grouped.items():
            seen = _vote(rounds)
            fix = trellis.decode(seen) or []
            actual = 0
            for column, sign in zip(trellis.columns, readouts[shot], strict=True):
                actual ^= column * int(sign)
            parity = sum(a == b == "1" for a, b in zip(readouts[shot], logical, strict=True)) + sum(
                logical[q] == "1" for q in fix
            )
            outcome = "discarded" if actual != seen else "ok" if parity % 2 == int(prepared) else "failure"
            tally[outcome] += 1
            total += 0 if outcome == "discarded" else len(fix)
            shots.append((name, shot, _written(seen, len(checks)), "-".join(map(str, fix)), outcome))
        kept = tally["ok"] + tally["failure"]
        rates.append({
            "basis": basis, "code": title, "discarded": tally["discarded"], "experiment": name, "failures": tally["failure"],
            "mean_weight": _fraction(total, kept), "permille": int(permille), "rate": _fraction(tally["failure"], kept), "shots": sum(tally.values()),
        })  # fmt: skip
    return {
        "output/staging/decoders.csv": _table("code basis syndrome weight correction", tables),
        "output/codes.json": json.dumps({"codes": listed}).encode(),
        "output/shots.csv": _table("experiment shot syndrome correction outcome", shots),
        "output/rates.json": json.dumps({"experiments": rates}).encode(),
        "output/report.json": json.dumps(_report(tree, codes, rates)).encode(),
    }


def _report(tree: Mapping[str, bytes], codes: Mapping[str, Any], rates: list[dict[str, Any]]) -> dict[str, Any]:
    best: dict[str, tuple[Any, ...]] = {}
    for row in rates:
        kept = row["shots"] - row["discarded"]
        if kept:
            # Doubles divide correctly rounded: equal fractions compare equal, different ones of such small terms don't.
            key = (row["failures"] / kept, codes[row["code"]]["n"], row["experiment"])
            best[str(row["permille"])] = min(best.get(str(row["permille"]), key), key)
    return {
        "best": {permille: key[2] for permille, key in best.items()},
        "case": json.loads(tree["input/case.json"])["case"],
        **{field: sum(row[field] for row in rates) for field in ("discarded", "failures", "shots")},
    }
