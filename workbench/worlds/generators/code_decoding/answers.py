"""Decoder tables, shot by shot outcomes and exact rates, computed from the world itself."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from workbench.worlds.generators.code_decoding.scene import Code, World, syndrome

TABLE = ("code", "basis", "syndrome", "weight", "correction")
SHOTS = ("experiment", "shot", "syndrome", "correction", "outcome")


def bits(value: int, width: int) -> str:
    """Bit 0 first."""
    return "".join(str(value >> i & 1) for i in range(width))


def rank(rows: Sequence[int]) -> int:
    found: list[int] = []
    for row in rows:
        for one in found:
            row = min(row, row ^ one)
        if row:
            found.append(row)
    return len(found)


def decoder(checks: Sequence[int], n: int) -> dict[int, tuple[int, ...]]:
    """syndrome -> the first qubits in (weight, lexicographic) order that cause it."""
    out: dict[int, tuple[int, ...]] = {}
    for weight in range(n + 1):
        for chosen in itertools.combinations(range(n), weight):
            out.setdefault(syndrome(checks, sum(1 << q for q in chosen)), chosen)
        if len(out) == 1 << rank(checks):
            return out
    raise AssertionError("unreachable")


def distance(checks: Sequence[int], logical: int, n: int) -> int:
    """Fewest errors that no check sees and that flip the logical value."""
    return next(
        w for w in range(1, n + 1) for chosen in itertools.combinations(range(n), w)
        if (e := sum(1 << q for q in chosen)) and not syndrome(checks, e) and (e & logical).bit_count() % 2
    )  # fmt: skip


def majority(rounds: Sequence[int], width: int) -> int:
    return sum((2 * sum(r >> i & 1 for r in rounds) > len(rounds)) << i for i in range(width))


def sides(code: Code, basis: str) -> tuple[tuple[int, ...], int]:
    return (code.hz, code.lz) if basis == "Z" else (code.hx, code.lx)


def answer(world: World, last_round: bool = False, decode: bool = True) -> dict[str, Any]:
    """The answer key; the options serve counterfactuals: the last round instead of the majority, no decoding."""
    codes = {c.name: c for c in world.codes}
    tables = {(c.name, b): decoder(sides(c, b)[0], c.n) for c in world.codes for b in "XZ" if sides(c, b)[0]}
    shown, shots, rates = [], [], []
    for (name, basis), found in sorted(tables.items()):
        width = len(sides(codes[name], basis)[0])
        rows = sorted((bits(s, width), fix) for s, fix in found.items())
        shown += [dict(zip(TABLE, (name, basis, s, str(len(f)), "-".join(map(str, f))), strict=True)) for s, f in rows]
    for run in world.runs:
        checks, logical = sides(codes[run.code], run.basis)
        tally: Counter[str] = Counter()
        weight = 0
        for at, (rounds, data) in enumerate(run.shots):
            seen = rounds[-1] if last_round else majority(rounds, len(checks))
            fix = tables[run.code, run.basis][seen] if decode and seen in tables[run.code, run.basis] else ()
            repaired = data ^ sum(1 << q for q in fix)
            failed = (repaired & logical).bit_count() % 2 != run.prepared
            outcome = "discarded" if syndrome(checks, data) != seen else "failure" if failed else "ok"
            tally[outcome] += 1
            weight += len(fix) if outcome != "discarded" else 0
            shots.append(
                dict(
                    zip(
                        SHOTS, (run.id, str(at), bits(seen, len(checks)), "-".join(map(str, fix)), outcome), strict=True
                    )
                )
            )
        kept = tally["ok"] + tally["failure"]
        rates.append({
            "experiment": run.id, "code": run.code, "basis": run.basis, "permille": run.permille, "shots": len(run.shots),
            "discarded": tally["discarded"], "failures": tally["failure"],
            "rate": str(Fraction(tally["failure"], kept)) if kept else "none", "mean_weight": str(Fraction(weight, kept)) if kept else "none",
        })  # fmt: skip
    listed = [
        {"code": c.name, "n": c.n, "k": c.n - rank(c.hx) - rank(c.hz), "distance_z": distance(c.hz, c.lz, c.n), "distance_x": distance(c.hx, c.lx, c.n)}
        for c in world.codes
    ]  # fmt: skip
    best: dict[str, str] = {}
    for rate in sorted({r["permille"] for r in rates}):
        fitting = [r for r in rates if r["permille"] == rate and r["rate"] != "none"]
        best[str(rate)] = min(fitting, key=lambda r: (Fraction(r["rate"]), codes[r["code"]].n, r["experiment"]))[
            "experiment"
        ]
    report = {
        "case": world.case,
        "shots": sum(r["shots"] for r in rates),
        "discarded": sum(r["discarded"] for r in rates),
        "failures": sum(r["failures"] for r in rates),
        "best": best,
    }
    return {"tables": shown, "codes": listed, "shots": shots, "rates": rates, "report": report}
