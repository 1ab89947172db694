"""The plant by hand, the shipped tool against the solvers, and a model that is known."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import pytest

from workbench.worlds.draw import Draw
from workbench.worlds.generators.building_control import alternative, reference, world
from workbench.worlds.generators.building_control.plant_tool import Plant

HALF = 32768  # of 65536
BUILDING = {
    "zone_mc": 25000,
    "mass_mc": 24000,
    "capacity_w": 1000,
    "coefficients": {
        "zone_outdoor": HALF,
        "zone_mass": HALF // 2,
        "zone_heat": HALF,
        "window_percent": 50,
        "mass_zone": HALF,
        "mass_solar": 0,
    },
}


def test_two_steps_by_hand():
    plant = Plant(BUILDING, [{"outdoor_mc": 30000, "solar_w": 200, "gain_w": 101}] * 2)
    # heat 101 + 100 - 500 = -299; zone + 2500 - 250 - 149.5, rounded down together; mass + 500
    assert plant.step(50) == 25000 + 2100
    assert plant.mass_mc == 24500
    # outdoor 2900 / 2, mass -2600 / 4, heat 201 / 2: 900.5 rounded down
    assert plant.step(0) == 27100 + 900
    with pytest.raises(ValueError, match="end here"):
        plant.step(0)
    with pytest.raises(ValueError, match="percentage"):
        Plant(BUILDING, []).step(101)


def test_the_shipped_tool_gives_the_reference_trace(tmp_path):
    """What an agent runs agrees with what the solvers restate."""
    tree = world.render(world.make(Draw("tool", 5), "unit"))
    outputs = list(reference.solve(tree))[-1][1]
    for path, data in [*tree.items(), *outputs.items()]:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    trace = list(csv.DictReader(io.StringIO(outputs["output/demand_response_trace.csv"].decode())))
    levels = "".join(f"{row['level']}\n" for row in trace[:-1])
    command = [sys.executable, "input/tools/simulator.py", "input/building.json", "output/staging/inputs.csv"]
    said = subprocess.run(command, cwd=tmp_path, input=levels, capture_output=True, text=True, check=True).stdout
    assert said.split() == [row["zone_mc"] for row in trace]


def test_both_identifications_find_a_known_system():
    rows = [[9, 2, 1], [2, 5, 2], [1, 2, 7]]  # symmetric, positive definite
    solution = (3, -2, 5)
    right = [sum(a * x for a, x in zip(row, solution, strict=True)) for row in rows]
    assert reference._solve([[*row, y] for row, y in zip(rows, right, strict=True)]) == [3000000, -2000000, 5000000]
    padded = [[*row, 0, 0, 0, 0] for row in rows] + [[0] * n + [1] + [0] * (6 - n) for n in range(3, 7)]
    assert alternative._ldl(padded, [*right, 0, 0, 0, 1]) == [3, -2, 5, 0, 0, 0, 1]
