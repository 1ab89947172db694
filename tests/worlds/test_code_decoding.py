"""Worked by hand: the three-qubit repetition code, tie-breaks, and both decoders against each other."""

from __future__ import annotations

import pytest

from workbench.worlds.generators.code_decoding import alternative, answers, reference, scene

CODE = scene.Code("rep", 3, (), (0b011, 0b110), 0b111, 0b001)  # checks 0+1 and 1+2; bit q is qubit q


def test_repetition_code_by_hand():
    assert answers.decoder(CODE.hz, 3) == {0b00: (), 0b01: (0,), 0b11: (1,), 0b10: (2,)}
    assert answers.distance(CODE.hz, CODE.lz, 3) == 3
    assert answers.distance(CODE.hx, CODE.lx, 3) == 1  # no check sees a phase flip
    # Shot 0: rounds 01, 00, 01 vote for 01; the readout 100 (qubit 0 first) agrees and is repaired to 000.
    # Shot 1: two errors, 110, look like one on qubit 2: repaired to 111, a failure. Shot 2: the vote is 00, the readout says 01.
    shots = (((1, 0, 1), 0b001), ((2, 2, 0), 0b011), ((0, 0, 1), 0b001))
    world = scene.World("QEC-hand", (CODE,), (scene.Run("E1", "rep", "Z", 10, 0, shots),))
    found = answers.answer(world)
    assert [(s["syndrome"], s["correction"], s["outcome"]) for s in found["shots"]] == [("10", "0", "ok"), ("01", "2", "failure"), ("00", "", "discarded")]  # fmt: skip
    assert (found["rates"][0]["rate"], found["rates"][0]["mean_weight"]) == ("1/2", "1")


def test_ties_go_to_the_smaller_list():
    # One check over all four qubits: any single error explains it, qubit 0 comes first.
    assert answers.decoder((0b1111,), 4)[1] == (0,)
    assert alternative.Trellis([1, 1, 1, 1]).decode(1) == [0]
    # Checks 0+3 and 1+2: of the four pairs that cause both, (0, 1) is the smallest.
    assert answers.decoder((0b1001, 0b0110), 4)[3] == (0, 1)
    assert alternative.Trellis([1, 2, 2, 1]).decode(3) == [0, 1]


@pytest.mark.parametrize("family", scene._families()[:6], ids=lambda f: f[0])
def test_both_decoders_and_known_parameters(family):
    name, n, hx, hz, lx, lz = family
    code = scene.Code(name, n, tuple(hx), tuple(hz), lx, lz)
    scene.check(scene.World("QEC-x", (code,), ()))
    sets = reference.Code(n, *([[q for q in range(n) if r >> q & 1] for r in rows] for rows in (hx, hz)), *([q for q in range(n) if v >> q & 1] for v in (lx, lz)))  # fmt: skip
    trellis = alternative.Trellis([sum((row >> q & 1) << i for i, row in enumerate(hz)) for q in range(n)])
    found = answers.decoder(hz, n)
    assert sets.decoder("Z") == {answers.bits(seen, len(hz)): fix for seen, fix in found.items()}
    assert all(trellis.decode(seen) == list(fix) for seen, fix in found.items())
    assert n - answers.rank(hx) - answers.rank(hz) == 1  # each of these encodes one qubit
    assert answers.distance(hz, lz, n) == sets.distance("Z") == (5 if name == "repetition5" else 3)
