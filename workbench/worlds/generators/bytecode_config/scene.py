"""A family of implants for a small register machine: their programs, their sealed configurations, the serial numbers they accept.

The machine: eight 32-bit registers, six-byte instructions, opcode numbers that differ between two instruction sets and from seed to seed.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw

Instruction = tuple[str, int, int]  # mnemonic, register a, operand
MNEMONICS = ("LDI", "MOV", "ADD", "XOR", "MUL", "ROL", "SUBI", "JNZ", "IN", "CEQ", "HLT")
FIELDS = (("campaign", "ascii", "no"), ("c2", "ascii", "yes"), ("interval", "u32", "no"), ("kill_date", "date", "no"), ("relay", "ipv4", "no"), ("mutex", "hex", "no"))  # fmt: skip
SIZES: Mapping[str, tuple[int, int, int]] = {
    "unit": (7, 8, 3),
    "small": (12, 14, 10),
    "full": (20, 30, 26),
}  # samples, serials each, filler fields
MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Sample:
    name: str
    isa: int  # 1 or 2
    init: int  # byte offset of the key routine
    check: int  # byte offset of the serial number routine
    code: tuple[Instruction, ...]
    tlv: tuple[tuple[int, str], ...]  # tag, value in hexadecimal


@dataclass(frozen=True)
class World:
    case: str
    opcodes: tuple[tuple[str, int, int], ...]  # mnemonic, number in set 1, in set 2
    fields: tuple[tuple[int, str, str, str], ...]  # tag, name, type, repeatable
    samples: tuple[Sample, ...]
    mirrored: tuple[str, ...]
    serials: tuple[tuple[str, str, str], ...]  # id, sample, serial number


def run(code: Sequence[Instruction], entry: int, words: Sequence[int] = ()) -> tuple[int, int]:
    """(r0, executed instructions) when it halts."""
    r, at, steps = [0] * 8, entry // 6, 0
    while steps < 100_000:
        name, a, x = code[at]
        at, steps = at + 1, steps + 1
        if name == "HLT":
            return r[0], steps
        if name == "JNZ":
            at = x // 6 if r[a] else at
        elif name == "ROL":
            r[a] = (r[a] << x | r[a] >> (32 - x)) & MASK
        elif name in ("LDI", "IN"):
            r[a] = x if name == "LDI" else words[x]
        else:
            r[a] = {"MOV": r[x % 8], "ADD": r[a] + r[x % 8], "XOR": r[a] ^ r[x % 8], "MUL": r[a] * r[x % 8], "SUBI": r[a] - x, "CEQ": int(r[a] == r[x % 8])}[name] & MASK  # fmt: skip
    raise WorldError("a program of the world does not halt")


def keystream(key: int, data: bytes) -> bytes:
    out = bytearray()
    for byte in data:
        key = (key * 1664525 + 1013904223) & MASK
        out.append(byte ^ key >> 24)
    return bytes(out)


def key_of(sample: Sample) -> int:
    return run(sample.code, sample.init)[0]


def pack(sample: Sample, numbers: Mapping[str, int]) -> bytes:
    """The container: header, code, sealed data, CRC-32."""
    code = b"".join(struct.pack("<BBI", numbers[name], a, x) for name, a, x in sample.code)
    plain = b"".join(struct.pack("<BH", tag, len(value) // 2) + bytes.fromhex(value) for tag, value in sample.tlv)
    data = keystream(key_of(sample), plain)
    body = struct.pack("<4sHHHHI", b"KVM1", sample.isa, sample.init, sample.check, len(code), len(data)) + code + data
    return body + struct.pack("<I", zlib.crc32(body))


def _mixing(draw: Draw, count: int) -> list[Instruction]:
    """Instructions that stir r1 with r2 and r4."""
    ops = [("MUL", 1, 2), ("ROL", 1, 0), ("XOR", 1, 4), ("ADD", 1, 3)]
    return [(n, a, draw.integer(3, 29) if n == "ROL" else x) for n, a, x in (draw.choice(ops) for _ in range(count))]


def _loop(draw: Draw, base: int, head: list[Instruction]) -> list[Instruction]:
    """head, then r3 rounds of mixing; the jump goes back behind the head."""
    body = [("MUL", 1, 2), *_mixing(draw, draw.integer(2, 5)), ("SUBI", 3, 1)]
    return [*head, *body, ("JNZ", 3, base + 6 * len(head))]


def _junk(draw: Draw) -> list[Instruction]:
    return [("HLT", 0, 0), *[(draw.choice(["ADD", "XOR", "MOV"]), draw.integer(0, 7), draw.integer(0, 7)) for _ in range(draw.integer(2, 9))]]  # fmt: skip


def _program(draw: Draw) -> tuple[tuple[Instruction, ...], int, int]:
    def seeds() -> list[Instruction]:
        return [
            ("LDI", 2, draw.integer(1 << 20, MASK) | 1),
            ("LDI", 4, draw.integer(0, MASK)),
            ("LDI", 3, draw.integer(4, 30)),
        ]

    code: list[Instruction] = _junk(draw)[1:]
    entries = {}
    for name in draw.shuffled(["init", "check"]):
        entries[name] = at = 6 * len(code)
        if name == "init":
            code += _loop(draw, at, [("LDI", 1, draw.integer(0, MASK)), *seeds()])
            code.append(("MOV", 0, 1))
        else:
            code += _loop(draw, at, [("IN", 1, 0), *seeds(), ("IN", 5, 1)])
            code += [("XOR", 1, 5), ("IN", 6, 2), ("CEQ", 6, 1), ("MOV", 0, 6)]
        code += _junk(draw)
    return tuple(code), entries["init"], entries["check"]


def _config(
    draw: Draw, tags: Mapping[str, int], campaigns: list[str], hosts: list[str], filler: int
) -> tuple[tuple[int, str], ...]:
    out = [(tags["campaign"], draw.choice(campaigns).encode().hex())]
    out += [(tags["c2"], h.encode().hex()) for h in draw.sample(hosts, draw.integer(1, 3))]
    out.append((tags["interval"], struct.pack("<I", 60 * draw.integer(1, 240)).hex()))
    out.append((tags["kill_date"], struct.pack("<I", 86_400 * draw.integer(20_000, 21_500)).hex()))
    out.append((tags["mutex"], draw.hexadecimal(16)))
    if draw.chance(0.6):
        out.append((tags["relay"], draw.hexadecimal(8)))
    unknown = [t for t in range(1, 256) if t not in tags.values()]
    out += [(draw.choice(unknown), draw.hexadecimal(2 * draw.integer(300, 1100))) for _ in range(filler)]
    return tuple(draw.shuffled(out))


def make(draw: Draw, tier: Tier) -> World:
    count, serials, filler = SIZES[tier]
    numbers = [draw.sample(range(1, 200), len(MNEMONICS)) for _ in range(2)]
    tags = dict(zip([f[0] for f in FIELDS], draw.sample(range(1, 250), len(FIELDS)), strict=True))
    campaigns = [f"{draw.choice(['owl', 'fox', 'elk', 'lynx', 'wren'])}-{draw.hexadecimal(4)}" for _ in range(3)]
    hosts = [f"n{draw.hexadecimal(6)}.example:{draw.integer(1024, 60000)}" for _ in range(6)]
    samples = []
    for at in range(count):
        one = draw.fork("sample", at)
        code, init, check_at = _program(one)
        tlv = _config(one, tags, campaigns, hosts, filler)
        samples.append(Sample(f"s{one.hexadecimal(8)}", one.integer(1, 2), init, check_at, code, tlv))
    samples.sort(key=lambda s: s.name)
    mirrored = sorted(draw.sample([s.name for s in samples], count // 2 + 1))
    rows = [(s.name, _serial(draw, s)) for s in samples for _ in range(serials)]
    ids = list(itertools.accumulate(draw.integer(1, 900) for _ in rows))
    listed = tuple((f"K{100_000 + i}", *row) for i, row in zip(ids, draw.shuffled(rows), strict=True))
    opcodes = tuple(sorted(zip(MNEMONICS, *numbers, strict=True)))
    fields = tuple(sorted((tags[name], name, kind, many) for name, kind, many in FIELDS))
    return World(f"RE-{draw.hexadecimal(8)}", opcodes, fields, tuple(samples), tuple(mirrored), listed)


def _serial(draw: Draw, sample: Sample) -> str:
    """Half of them good: the third word is what the routine compares with."""
    words = [draw.integer(0, MASK), draw.integer(0, MASK), 0]
    compare = next(i for i, c in enumerate(sample.code) if c[0] == "CEQ")
    probe = [*sample.code[:compare], ("MOV", 0, 1), ("HLT", 0, 0), *sample.code[compare:]] if compare else []
    moved = [(n, a, x + 12 if n == "JNZ" and x >= 6 * compare else x) for n, a, x in probe]
    entry = sample.check + (12 if sample.check >= 6 * compare else 0)
    words[2] = run(moved, entry, words)[0] ^ (0 if draw.chance(0.5) else 1 << draw.integer(0, 31))
    return "-".join(f"{w:08X}" for w in words)


def check(world: World) -> None:
    for column in (1, 2):
        if len({row[column] for row in world.opcodes}) != len(MNEMONICS):
            raise WorldError("opcode numbers of one instruction set must differ")
    if len({s.name for s in world.samples}) != len(world.samples) or not set(world.mirrored) <= {
        s.name for s in world.samples
    }:
        raise WorldError("samples need different names, and only samples are mirrored")
    for sample in world.samples:
        key_of(sample)  # raises when it does not halt
