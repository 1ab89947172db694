"""Memory experiments on small CSS codes: repeated noisy syndrome rounds, then a readout of all data qubits.

Vectors over two elements are whole numbers; bit q belongs to qubit q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw

SIZES: Mapping[str, tuple[int, int, int]] = {
    "unit": (4, 6, 130),
    "small": (6, 12, 210),
    "full": (9, 22, 380),
}  # codes, experiments, shots
KEPT = 12  # shots at the end of a run that the journal repeats
RATES = (10, 30, 60, 100)  # physical error rates, per thousand


@dataclass(frozen=True)
class Code:
    name: str
    n: int
    hx: tuple[int, ...]
    hz: tuple[int, ...]
    lx: int
    lz: int


@dataclass(frozen=True)
class Run:
    id: str
    code: str
    basis: str  # Z: prepared and read in Z, checks hz; X: the other way round
    permille: int
    prepared: int
    shots: tuple[tuple[tuple[int, ...], int], ...]  # syndrome of each round, data readout


@dataclass(frozen=True)
class World:
    case: str
    codes: tuple[Code, ...]
    runs: tuple[Run, ...]


def syndrome(checks: Sequence[int], error: int) -> int:
    return sum(((row & error).bit_count() & 1) << i for i, row in enumerate(checks))


def product(h: Sequence[Sequence[int]]) -> tuple[int, list[int], list[int]]:
    """(n, hx, hz) of the hypergraph product of h with itself (Tillich and Zemor 2014): planar surface codes from repetition codes."""
    m, n = len(h), len(h[0])
    hx = [
        sum(h[i][a] << (a * n + b) for a in range(n)) | sum(h[j][b] << (n * n + i * m + j) for j in range(m))
        for i in range(m)
        for b in range(n)
    ]
    hz = [
        sum(h[j][b] << (a * n + b) for b in range(n)) | sum(h[i][a] << (n * n + i * m + j) for i in range(m))
        for a in range(n)
        for j in range(m)
    ]
    return n * n + m * m, hx, hz


def _mask(*qubits: int) -> int:
    return sum(1 << q for q in qubits)


def _families() -> list[tuple[str, int, list[int], list[int], int, int]]:
    steane = [_mask(3, 4, 5, 6), _mask(1, 2, 5, 6), _mask(0, 2, 4, 6)]
    shor_z = [_mask(3 * b + i, 3 * b + i + 1) for b in range(3) for i in range(2)]
    rotated_x, rotated_z = (
        [_mask(0, 1, 3, 4), _mask(4, 5, 7, 8), _mask(2, 5), _mask(3, 6)],
        [_mask(1, 2, 4, 5), _mask(3, 4, 6, 7), _mask(0, 1), _mask(7, 8)],
    )
    n, hx, hz = product([[1, 1, 0], [0, 1, 1]])
    out = [
        ("steane", 7, steane, steane, 127, 127),
        ("rotated", 9, rotated_x, rotated_z, _mask(0, 1, 2), _mask(0, 3, 6)),
        ("planar", n, hx, hz, _mask(0, 1, 2), _mask(0, 3, 6)),
        ("shor", 9, [0b111111, 0b111111000], shor_z, _mask(0, 1, 2), _mask(0, 3, 6)),
    ]
    return out + [
        (f"repetition{d}", d, [], [_mask(i, i + 1) for i in range(d - 1)], (1 << d) - 1, 1) for d in (5, 3, 7, 9, 11)
    ]


def _relabelled(draw: Draw, family: tuple[str, int, list[int], list[int], int, int]) -> Code:
    """The code with its qubits and checks in another order."""
    name, n, hx, hz, lx, lz = family
    order = draw.shuffled(range(n))

    def moved(vector: int) -> int:
        return sum((vector >> q & 1) << order[q] for q in range(n))

    return Code(
        f"{name}-{draw.hexadecimal(5)}",
        n,
        tuple(map(moved, draw.shuffled(hx))),
        tuple(map(moved, draw.shuffled(hz))),
        moved(lx),
        moved(lz),
    )


def make(draw: Draw, tier: Tier) -> World:
    count, experiments, shots = SIZES[tier]
    families = _families()
    codes = sorted((_relabelled(draw.fork("code", f[0]), f) for f in families[:count]), key=lambda c: c.name)
    runs = []
    for at in range(experiments):
        one = draw.fork("run", at)
        code = codes[at % count]
        basis = "Z" if not code.hx or at < count else one.choice(["X", "Z"])
        permille, prepared, rounds = RATES[at % len(RATES)], one.integer(0, 1), one.choice([3, 5])
        checks, others, logical = (code.hz, code.hx, code.lx) if basis == "Z" else (code.hx, code.hz, code.lz)
        lines = tuple(
            _shot(one, code.n, checks, others, logical * prepared, permille, rounds)
            for _ in range(shots + one.integer(0, 40))
        )
        runs.append(Run(f"E{one.hexadecimal(7)}", code.name, basis, permille, prepared, lines))
    return World(f"QEC-{draw.hexadecimal(8)}", tuple(codes), tuple(sorted(runs, key=lambda r: r.id)))


def _noise(draw: Draw, bits: int, permille: int) -> int:
    return sum((draw.integer(0, 999) < permille) << i for i in range(bits))


def _shot(
    draw: Draw, n: int, checks: Sequence[int], others: Sequence[int], word: int, permille: int, rounds: int
) -> tuple[tuple[int, ...], int]:
    for row in others:  # any word of the prepared state is as likely
        word ^= row * draw.integer(0, 1)
    error = _noise(draw, n, permille)
    clean = syndrome(checks, error)
    return tuple(clean ^ _noise(draw, len(checks), permille) for _ in range(rounds)), word ^ error


def check(world: World) -> None:
    names = {c.name for c in world.codes}
    if len(names) != len(world.codes) or len({r.id for r in world.runs}) != len(world.runs):
        raise WorldError("codes and runs need different names")
    for code in world.codes:
        crossing = [(a & b).bit_count() % 2 for a in (*code.hx, code.lx) for b in code.hz] + [
            (a & code.lz).bit_count() % 2 for a in code.hx
        ]
        if any(crossing) or (code.lx & code.lz).bit_count() % 2 == 0:
            raise WorldError(f"{code.name} is not a CSS code with these logical operators")
