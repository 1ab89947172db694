"""Against dense matrices: outcomes, equivalence and routing of small random circuits; a Bell pair by hand."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.worlds.draw import Draw
from workbench.worlds.generators.circuit_audit import alternative, reference, scene

R = np.sqrt(0.5)
ONE = {
    "h": np.array([[R, R], [R, -R]]),
    "s": np.diag([1, 1j]),
    "sdg": np.diag([1, -1j]),
    "x": np.array([[0, 1], [1, 0]]),
    "y": np.array([[0, -1j], [1j, 0]]),
    "z": np.diag([1, -1]),
}


def _apply(state: np.ndarray, gates: tuple[scene.Gate, ...]) -> np.ndarray:
    """Gates on the first axis of amplitudes, qubit 0 the lowest bit."""
    for name, where in gates:
        out = np.zeros_like(state)
        for index in range(len(state)):
            bits = [index >> q & 1 for q in where]
            if len(where) == 1:
                for to in (0, 1):
                    out[index ^ (bits[0] ^ to) << where[0]] += ONE[name][to, bits[0]] * state[index]
            elif name == "cz":
                out[index] += (-1) ** (bits[0] & bits[1]) * state[index]
            else:
                new = (bits[0], bits[1] ^ bits[0]) if name == "cx" else (bits[1], bits[0])
                moved = sum((b ^ n) << q for b, n, q in zip(bits, new, where, strict=True))
                out[index ^ moved] += state[index]
        state = out
    return state


def _spread(index: int, places: tuple[int, ...]) -> int:
    return sum((index >> i & 1) << p for i, p in enumerate(places))


def _dense(circuit: scene.Circuit, qubits: int) -> bool:
    size = 1 << circuit.width
    start = np.zeros((1 << qubits, size), complex)
    want = np.zeros((1 << qubits, size), complex)
    exact = _apply(np.eye(size, dtype=complex), circuit.source)
    for i in range(size):
        start[_spread(i, circuit.initial), i] = 1
        want[_spread(i, circuit.measured)] = exact[i]
    return bool(np.isclose(abs(np.vdot(want, _apply(start, circuit.routed))), size))


def test_bell_pair():
    gates = (("h", (0,)), ("cx", (0, 1)), ("x", (1,)))
    assert scene.support(gates, 2) == [0b01, 0b10]
    assert sorted(alternative._amplitudes(list(gates), 2)) == [1, 2]


@pytest.mark.parametrize("seed", range(16))
def test_against_dense_matrices(seed):
    draw = Draw("dense", seed)
    edges = ((0, 1), (2, 1), (2, 3))
    source = scene._source(draw, 3)
    initial = tuple(draw.sample(range(4), 3))
    router = scene._Router(4, edges, initial)
    for gate in source:
        router.gate(*gate)
    assert all(where in edges for _, where in router.out if len(where) == 2)
    routed, measured = router.out, list(router.places)
    if seed % 2:
        scene._spoil(draw, routed, measured, {q for _, w in routed for q in w} | set(initial), 4)
    circuit = scene.Circuit("c", 3, source, tuple(routed), initial, tuple(measured), ())
    dense = _dense(circuit, 4)
    assert dense or seed % 2
    assert scene.equivalent(circuit, 4) == dense
    assert alternative._equal(list(source), routed, list(initial), measured, 4) == dense
    outcomes = np.flatnonzero(abs(_apply(np.eye(8, dtype=complex), source)[:, 0]) > 1e-9).tolist()
    assert scene.support(source, 3) == sorted(alternative._amplitudes(list(source), 3)) == outcomes
    one = reference.Circuit("")
    one.gates = [(name, list(where)) for name, where in source]
    assert [int(bits, 2) for bits in reference._distribution(one, 3)] == outcomes
