"""Audits in the other pictures: observables carried backward for equivalence, Gaussian-integer amplitudes for outcomes."""

from __future__ import annotations

import csv
import io
import itertools
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping

Gate = tuple[str, tuple[int, ...]]
UNDO = {"s": "sdg", "sdg": "s"}
# What a gate makes of single-qubit letters when an observable is pulled back through it, with sign.
PULL = {"h": {"X": "+Z", "Y": "-Y", "Z": "+X"}, "s": {"X": "+Y", "Y": "-X", "Z": "+Z"}, "sdg": {"X": "-Y", "Y": "+X", "Z": "+Z"}, "x": {"X": "+X", "Y": "-Y", "Z": "-Z"}, "y": {"X": "-X", "Y": "+Y", "Z": "-Z"}, "z": {"X": "-X", "Y": "-Y", "Z": "+Z"}}  # fmt: skip
CX = {"IX": "+IX", "IY": "+ZY", "IZ": "+ZZ", "XI": "+XX", "XX": "+XI", "XY": "+YZ", "XZ": "-YY", "YI": "+YX", "YX": "+YI", "YY": "-XZ", "YZ": "+XY", "ZI": "+ZI", "ZX": "+ZX", "ZY": "+IY", "ZZ": "+IZ"}  # fmt: skip


def _read(data: bytes) -> tuple[list[Gate], list[int], list[int]]:
    """(gates, initial layout, qubit of each classical bit)."""
    gates: list[Gate] = []
    initial: list[int] = []
    final: dict[int, int] = {}
    for statement in data.decode().replace("\n//", ";//").split(";"):
        head, _, rest = statement.strip().partition(" ")
        where = tuple(int(piece.split("]")[0]) for piece in rest.split("[")[1:])
        if head == "//":
            comment = rest.split("\n")[0]
            initial = [int(word.split("->")[1]) for word in comment.split() if "->" in word]
        elif head == "measure":
            final[where[1]] = where[0]
        elif head in PULL or head in ("cx", "cz", "swap"):
            gates.append((head, where))
    return gates, initial, [final[bit] for bit in range(len(final))]


def _pulled(letters: list[str], gates: list[Gate]) -> tuple[str, str]:
    """The observable before the gates that equals `letters` after them, as (sign, letters)."""
    letters, minus = list(letters), False
    for name, where in reversed(gates):
        if name == "swap":
            a, b = where
            letters[a], letters[b] = letters[b], letters[a]
            continue
        if name == "cz":
            minus ^= _single(letters, "h", where[1])
        if len(where) == 2:
            pair = letters[where[0]] + letters[where[1]]
            if pair != "II":
                minus ^= CX[pair][0] == "-"
                letters[where[0]], letters[where[1]] = CX[pair][1:]
        else:
            minus ^= _single(letters, UNDO.get(name, name), where[0])
        if name == "cz":
            minus ^= _single(letters, "h", where[1])
    return "-" if minus else "+", "".join(letters)


def _single(letters: list[str], name: str, at: int) -> bool:
    if letters[at] == "I":
        return False
    sign, letters[at] = PULL[name][letters[at]]
    return sign == "-"


def _equal(source: list[Gate], routed: list[Gate], initial: list[int], final: list[int], qubits: int) -> bool:
    """Same observables before, for X and Z of every output; idle qubits may show I or Z before, since they start in |0>."""
    idle = [q for q in range(qubits) if q not in initial]
    for letter, logical in itertools.product("XZ", range(len(initial))):
        want = _pulled([letter if i == logical else "I" for i in range(len(initial))], source)
        got = _pulled([letter if q == final[logical] else "I" for q in range(qubits)], routed)
        seen = "".join(got[1][q] for q in initial)
        if (got[0], seen) != want or any(got[1][q] in "XY" for q in idle):
            return False
    for out in (q for q in range(qubits) if q not in final):
        sign, letters = _pulled(["Z" if q == out else "I" for q in range(qubits)], routed)
        if sign == "-" or any(letters[q] != "I" for q in initial) or any(letters[q] in "XY" for q in idle):
            return False
    return True


def _amplitudes(gates: list[Gate], width: int) -> dict[int, complex]:
    """Unnormalised amplitudes: every h leaves a factor of the root of two out, so all stay Gaussian integers (exact in doubles)."""
    state: dict[int, complex] = {0: 1}
    for name, where in gates:
        a, b = 1 << where[0], 1 << where[-1]
        out: dict[int, complex] = {}
        for index, value in state.items():
            terms: list[tuple[int, complex]]
            if name == "h":
                terms = [(index & ~a, value), (index | a, -value if index & a else value)]
            elif name in ("x", "y"):
                turn = 1 if name == "x" else (-1j if index & a else 1j)
                terms = [(index ^ a, value * turn)]
            elif name == "cx":
                terms = [(index ^ b if index & a else index, value)]
            elif name == "swap":
                terms = [(index ^ a ^ b if bool(index & a) != bool(index & b) else index, value)]
            else:
                on = index & a and (name != "cz" or index & b)
                terms = [(index, value * {"s": 1j, "sdg": -1j, "z": -1, "cz": -1}[name] if on else value)]
            for spot, part in terms:
                out[spot] = out.get(spot, 0) + part
        state = {spot: part for spot, part in out.items() if part}
    return state


def _cells(data: bytes) -> Iterator[list[str]]:
    for row in itertools.islice(csv.reader(data.decode().splitlines()), 1, None):
        yield [cell.strip() for cell in row]


def _day(text: str) -> str:
    return text if text[4] == "-" else time.strftime("%Y-%m-%d", time.strptime(text, "%d %b %Y"))


def _depth(gates: list[Gate]) -> int:
    layers: list[set[int]] = []
    for _, where in gates:
        busy = [i for i, layer in enumerate(layers) if layer & set(where)]
        at = busy[-1] + 1 if busy else 0
        if at == len(layers):
            layers.append(set())
        layers[at] |= set(where)
    return len(layers)


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    case, device = json.loads(tree["input/case.json"]), json.loads(tree["input/device/coupling.json"])
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE c(item TEXT, qubits TEXT, error INTEGER, day TEXT)")
    db.executemany(
        "INSERT INTO c VALUES (?,?,?,?)",
        [(i, q, e, _day(d)) for i, q, e, d in _cells(tree["input/device/calibration.csv"])],
    )
    rows = db.execute(
        "SELECT item, qubits, error, max(day) FROM c WHERE day <= ? GROUP BY item, qubits ORDER BY error, item, qubits",
        (case["run_date"],),
    ).fetchall()
    error = {(item, qubits): value for item, qubits, value, _ in rows}
    metrics, same, exact, verdicts = [], [], [], []
    for path in sorted(p for p in tree if p.startswith("input/routed/")):
        name = path.rsplit("/", 1)[1].removesuffix(".qasm")
        source, _, _ = _read(tree[f"input/source/{name}.qasm"])
        gates, initial, final = _read(tree[path])
        keys = [("cx", "-".join(map(str, w))) if len(w) == 2 else ("gate1", str(w[0])) for _, w in gates]
        wrong = sum(key[0] == "cx" and list(map(int, key[1].split("-"))) not in device["edges"] for key in keys)
        budget = sum(error.get(key, 0) for key in [*keys, *(("readout", str(q)) for q in final)])
        double = sum(key[0] == "cx" for key in keys)
        metrics.append((name, len(final), _depth(source), _depth(gates), len(gates) - double, double, wrong, budget))
        good = _equal(source, gates, initial, final, device["qubits"])
        same.append((name, "-".join(map(str, initial)), "-".join(map(str, final)), ("no", "yes")[good]))
        outcomes = sorted(format(i, "b").zfill(len(final)) for i in _amplitudes(source, len(final)))
        chance = "1" if len(outcomes) == 1 else f"1/{len(outcomes)}"
        exact.append({"circuit": name, "probabilities": dict.fromkeys(outcomes, chance)})
        counts = dict(_cells(tree[f"input/counts/{name}.csv"]))
        shots = {bits: int("".join(n.split(","))) for bits, n in counts.items()}
        outside = sum(shots.values()) - sum(shots.get(bits, 0) for bits in outcomes)
        tests = (("error-budget", budget > case["error_limit_ppm"]), ("leakage", 1_000_000 * outside > case["leak_limit_ppm"] * sum(shots.values())), ("not-equivalent", not good), ("routing", wrong))  # fmt: skip
        reasons = [reason for reason, holds in tests if holds]
        verdicts.append(
            {
                "circuit": name,
                "outside": outside,
                "reasons": reasons,
                "shots": sum(shots.values()),
                "verdict": ("accept", "reject")[bool(reasons)],
            }
        )
    listed = sorted(reason for v in verdicts for reason in v["reasons"])
    report = {
        "accepted": [v["circuit"] for v in verdicts if not v["reasons"]], "case": case["case"],
        "reasons": {r: listed.count(r) for r in listed}, "total_shots": sum(v["shots"] for v in verdicts),
        "worst_item": dict(zip(("item", "qubits", "error_ppm"), rows[-1], strict=False)),
    }  # fmt: skip
    tables = {
        "staging/metrics": (
            "circuit qubits source_depth routed_depth one_qubit two_qubit violations error_ppm",
            metrics,
        ),
        "equivalence": ("circuit initial final equivalent", same),
    }
    out = {}
    for name, (header, lines) in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header.split(), *lines])
        out[f"output/{name}.csv"] = text.getvalue().encode()
    for name, value in (
        ("distributions", {"circuits": exact}),
        ("verdicts", {"verdicts": verdicts}),
        ("report", report),
    ):
        out[f"output/{name}.json"] = json.dumps(value).encode()
    return out
