"""Worked by hand: a loop of the machine, the first states of the keystream, one container."""

from __future__ import annotations

import zlib

from workbench.worlds.generators.bytecode_config import alternative, reference, scene

# 0 LDI r1,3; 6 LDI r2,5; 12 ADD r0,r2; 18 SUBI r1,1; 24 JNZ r1,12; 30 ROL r0,4; 36 HLT: ((5 * 3) << 4) = 240 in 2 + 3 * 3 + 2 steps
LOOP = (("LDI", 1, 3), ("LDI", 2, 5), ("ADD", 0, 2), ("SUBI", 1, 1), ("JNZ", 1, 12), ("ROL", 0, 4), ("HLT", 0, 0))
NUMBERS = {name: 10 + at for at, name in enumerate(scene.MNEMONICS)}
SAMPLE = scene.Sample("s0", 1, 0, 36, LOOP, ((7, b"owl".hex()),))


def test_loop_in_all_three_machines():
    assert scene.run(LOOP, 0) == (240, 13)
    data = scene.pack(SAMPLE, NUMBERS)
    program = reference.Program(data, [{"isa_1": str(n), "mnemonic": m} for m, n in NUMBERS.items()])
    assert program.run(0, []) == (240, 13)
    r = alternative.array("Q", [0] * 8)
    steps = alternative._compile(memoryview(data)[16 : 16 + 42], {n: m for m, n in NUMBERS.items()}, r, [])
    assert alternative._execute(steps, 0, r) == (240, 13)


def test_container_and_keystream():
    data = scene.pack(SAMPLE, NUMBERS)
    assert data[:4] == b"KVM1"
    assert int.from_bytes(data[-4:], "little") == zlib.crc32(data[:-4])
    # state 1 = 240 * 1664525 + 1013904223 = 1413390223 = 0x543EA38F, top byte 0x54, and the tag is 7
    assert data[16 + 42] == 7 ^ 0x54
    assert scene.keystream(240, data[16 + 42 : -4]) == b"\x07\x03\x00owl"


def test_top_bits_wrap():
    code = (("LDI", 0, 0xFFFFFFFF), ("LDI", 1, 2), ("MUL", 0, 1), ("ROL", 0, 1), ("HLT", 0, 0))
    assert scene.run(code, 0) == (0xFFFFFFFD, 5)  # 0x1FFFFFFFE -> 0xFFFFFFFE -> 0xFFFFFFFD
