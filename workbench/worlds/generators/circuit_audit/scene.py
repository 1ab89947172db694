"""A batch of Clifford circuits, routed onto a device with one-way couplings; some transpilations are wrong.

A circuit is a tuple of gates (name, qubits); the names are those of OpenQASM 2 (qelib1): h s sdg x y z cx cz swap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw

Gate = tuple[str, tuple[int, ...]]
SIZES: Mapping[
    str, tuple[int, int, int, int, int]
] = {  # circuits, smallest and largest width, device qubits, calibrations each
    "unit": (9, 3, 5, 9, 20),
    "small": (15, 4, 6, 13, 40),
    "full": (26, 5, 7, 18, 70),
}
LIMITS: Mapping[str, tuple[int, int]] = {
    "unit": (190, 280),
    "small": (320, 460),
    "full": (450, 640),
}  # thousands of ppm


@dataclass(frozen=True)
class Circuit:
    name: str
    width: int
    source: tuple[Gate, ...]
    routed: tuple[Gate, ...]  # on physical qubits
    initial: tuple[int, ...]  # logical -> physical before the first gate
    measured: tuple[int, ...]  # classical bit -> physical qubit
    counts: tuple[tuple[str, int], ...]  # bit 0 rightmost


@dataclass(frozen=True)
class World:
    case: str
    run_day: int  # days since 1970
    limit_ppm: int
    qubits: int
    edges: tuple[tuple[int, int], ...]  # allowed (control, target)
    calibrations: tuple[tuple[str, str, int, int], ...]  # item, qubits, error in ppm, day
    circuits: tuple[Circuit, ...]


Pauli = tuple[int, int, int]  # bits of X, bits of Z, sign; both bits at a place are Y


def conjugate(pauli: Pauli, gates: Sequence[Gate]) -> Pauli:
    """The Pauli operator behind the gates (Aaronson and Gottesman 2004, the update rules of a tableau)."""
    x, z, sign = pauli
    for name, qubits in gates:
        a, b = qubits[0], qubits[-1]
        xa, za, xb, zb = x >> a & 1, z >> a & 1, x >> b & 1, z >> b & 1
        if name == "swap":
            x ^= (xa ^ xb) << a | (xa ^ xb) << b
            z ^= (za ^ zb) << a | (za ^ zb) << b
        elif name == "cx":
            sign ^= xa & zb & (xb ^ za ^ 1)
            x, z = x ^ xa << b, z ^ zb << a
        elif name == "cz":
            sign ^= xa & xb & (za ^ zb)
            z ^= xb << a | xa << b
        elif name == "h":
            sign ^= xa & za
            x, z = x ^ (xa ^ za) << a, z ^ (xa ^ za) << a
        elif name in ("s", "sdg"):
            sign ^= xa & (za if name == "s" else za ^ 1)
            z ^= xa << a
        else:
            sign ^= {"x": za, "z": xa, "y": xa ^ za}[name]
    return x, z, sign


def equivalent(circuit: Circuit, qubits: int) -> bool:
    """Whether routed does to every input what source does, up to one global phase, idle qubits starting and ending in |0>."""
    spare = sum(1 << q for q in range(qubits) if q not in circuit.measured)
    for idle in (q for q in range(qubits) if q not in circuit.initial):
        x, z, sign = conjugate((0, 1 << idle, 0), circuit.routed)
        if x or sign or z & ~spare:
            return False
    for logical, physical in enumerate(circuit.initial):
        for kind in (0, 1):
            x, z, sign = conjugate((1 << physical, 0, 0) if kind else (0, 1 << physical, 0), circuit.routed)
            wx, wz, wsign = conjugate((1 << logical, 0, 0) if kind else (0, 1 << logical, 0), circuit.source)
            spread = [sum((w >> i & 1) << circuit.measured[i] for i in range(circuit.width)) for w in (wx, wz)]
            if (x, z & ~spare, sign) != (*spread, wsign):
                return False
    return True


def support(source: Sequence[Gate], width: int) -> list[int]:
    """The outcomes of measuring source on |0…0>, all equally likely: bits that satisfy every Z-only stabilizer."""
    rows = [conjugate((0, 1 << q, 0), source) for q in range(width)]
    pure = [
        r for n in range(1, 1 << width) if (r := _product([rows[i] for i in range(width) if n >> i & 1])) and not r[0]
    ]
    return [m for m in range(1 << width) if all((m & z).bit_count() % 2 == sign for _, z, sign in pure)]


def _product(rows: Sequence[Pauli]) -> Pauli:
    """The product of commuting Paulis; the phase counts quarter turns."""
    x = z = quarter = 0
    for rx, rz, sign in rows:
        quarter += 2 * sign + (rx & rz).bit_count() + 2 * (z & rx).bit_count()
        x, z = x ^ rx, z ^ rz
    return x, z, (quarter - (x & z).bit_count()) % 4 // 2


def _source(draw: Draw, width: int) -> tuple[Gate, ...]:
    kind = draw.choice(["random", "random", "graph", "ghz"])
    gates: list[Gate] = []
    if kind == "ghz":
        gates = [("h", (0,)), *(("cx", (q, q + 1)) for q in range(width - 1))]
    if kind == "graph":
        gates = [("h", (q,)) for q in range(width)]
        gates += [("cz", (a, b)) for a in range(width) for b in range(a) if draw.chance(0.6)]
    for _ in range((8 if gates else 16) * width // 2 + draw.integer(0, 9)):
        if draw.chance(0.45):
            gates.append((draw.weighted(["cx", "cz", "swap"], [3, 2, 1]), tuple(draw.sample(range(width), 2))))
        else:
            gates.append((draw.choice(["h", "s", "sdg", "x", "y", "z"]), (draw.integer(0, width - 1),)))
    return tuple(gates)


class _Router:
    """Lays a source circuit onto the device, gate by gate."""

    def __init__(self, qubits: int, edges: Sequence[tuple[int, int]], places: Sequence[int]):
        self.edges, self.places, self.out = set(edges), list(places), []
        self.near = {
            q: sorted({b for a, b in edges if a == q} | {a for a, b in edges if b == q}) for q in range(qubits)
        }

    def cx(self, a: int, b: int) -> None:
        if (a, b) in self.edges:
            self.out.append(("cx", (a, b)))
        else:
            turn: list[Gate] = [("h", (a,)), ("h", (b,))]
            self.out += [*turn, ("cx", (b, a)), *turn]

    def swap(self, a: int, b: int) -> None:
        for pair in ((a, b), (b, a), (a, b)):
            self.cx(*pair)
        self.places = [{a: b, b: a}.get(p, p) for p in self.places]

    def path(self, a: int, b: int) -> list[int]:
        paths = [[a]]
        while paths[0][-1] != b:
            head = paths.pop(0)
            paths += [[*head, n] for n in self.near[head[-1]] if n not in head]
        return paths[0]

    def gate(self, name: str, qubits: Sequence[int]) -> None:
        if len(qubits) == 1:
            at = self.places[qubits[0]]
            self.out += [("x", (at,)), ("z", (at,))] if name == "y" else [(name, (at,))]
            return
        a, b = (self.places[q] for q in qubits)
        for step in self.path(a, b)[1:-1]:
            self.swap(a, step)
            a = step
        a, b = (self.places[q] for q in qubits)
        if name == "swap":
            self.swap(a, b)
            self.places = [
                {a: b, b: a}.get(p, p) for p in self.places
            ]  # the labels stay: only the states change places
        else:
            around: list[Gate] = [("h", (b,))] if name == "cz" else []
            self.out += around
            self.cx(a, b)
            self.out += around


def _spoil(draw: Draw, routed: list[Gate], measured: list[int], used: set[int], qubits: int) -> None:
    """One mistake of a transpiler, or a harmless gate on an idle qubit."""
    kind = draw.choice(["drop", "reverse", "measure", "idle"])
    pairs = [i for i, g in enumerate(routed) if g[0] == "cx"]
    idle = [q for q in range(qubits) if q not in used]
    if kind == "idle" and idle:
        routed.insert(draw.integer(0, len(routed)), (draw.choice(["s", "z", "sdg"]), (draw.choice(idle),)))
    elif kind == "reverse" and pairs:
        at = draw.choice(pairs)
        routed[at] = ("cx", routed[at][1][::-1])
    elif kind == "measure":
        a, b = draw.sample(range(len(measured)), 2)
        measured[a], measured[b] = measured[b], measured[a]
    else:
        del routed[draw.integer(0, len(routed) - 1)]


def make(draw: Draw, tier: Tier) -> World:
    count, low, high, qubits, times = SIZES[tier]
    ring = [(q, (q + 1) % qubits) for q in range(qubits)]
    ring += [(q, q + qubits // 2) for q in range(0, qubits // 2, 3)]
    edges = tuple(sorted({pair if draw.chance(0.5) else pair[::-1] for pair in ring}))
    circuits = []
    for at in range(count):
        one = draw.fork("circuit", at)
        width = one.integer(low, high)
        source = _source(one, width)
        initial = one.sample(range(qubits), width)
        router = _Router(qubits, edges, initial)
        for gate in source:
            router.gate(*gate)
        routed, measured = router.out, list(router.places)
        used = {q for _, qs in routed for q in qs} | set(initial)
        if at == 1 or one.chance(0.4):
            _spoil(one, routed, measured, used, qubits)
        counts = _counts(one, support(source, width), width)
        circuits.append(
            Circuit(f"c{one.hexadecimal(7)}", width, source, tuple(routed), tuple(initial), tuple(measured), counts)
        )
    run_day = 20_500 + draw.integer(0, 300)
    items = [("gate1", str(q), 100) for q in range(qubits)] + [("cx", f"{a}-{b}", 900) for a, b in edges]
    items += [("readout", str(q), 1500) for q in range(qubits)]
    calibrations = [
        (name, where, scale + draw.integer(0, 4 * scale), day)
        for name, where, scale in items
        for day in sorted(
            [*draw.sample(range(run_day - 3 * times, run_day + times), times - 1), run_day - 3 * times - 1]
        )
    ]
    limit = 1000 * draw.integer(*LIMITS[tier])
    return World(
        f"QA-{draw.hexadecimal(8)}",
        run_day,
        limit,
        qubits,
        edges,
        tuple(draw.shuffled(calibrations)),
        tuple(sorted(circuits, key=lambda c: c.name)),
    )


def _counts(draw: Draw, outcomes: list[int], width: int) -> tuple[tuple[str, int], ...]:
    counts = {o: draw.integer(9000, 11_000) * 4 // len(outcomes) + 1000 for o in outcomes}
    for other in draw.sample(range(1 << width), draw.integer(1, 3)):
        counts.setdefault(other, draw.integer(1, 900))
    return tuple(sorted((f"{o:0{width}b}", n) for o, n in counts.items()))


def check(world: World) -> None:
    if len({c.name for c in world.circuits}) != len(world.circuits):
        raise WorldError("two circuits have one name")
    for c in world.circuits:
        if len({*c.initial}) != c.width or len({*c.measured}) != c.width:
            raise WorldError(f"{c.name}: a layout sends two qubits to one place")
