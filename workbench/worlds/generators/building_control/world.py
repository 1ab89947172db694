"""One zone of a building under cooling for some summer days: its physics, the weather, schedules, prices, and two control policies.

Tev A.10 Example 2 takes EnergyPlus 22.1 with cvxpy as the tool oracle. Neither can be had here, so a small second-order simulator of our
own stands in (plant_tool.py, shipped as input/tools/simulator.py), and the policies search a small grid of levels exhaustively instead of
solving a quadratic program. All arithmetic is in whole numbers, so that the oracle gives the same bytes on every machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.building_control import answers, harm, words

SPEC = Spec(
    name="building_control",
    revision=1,
    domain="6",
    title="Closed-loop control of a building's cooling",
    summary="Clean weather samples, run a thermostat and an excitation, identify a thermal model and deploy two predictive policies.",
    outputs=(
        Output("output/staging/inputs.csv", "csv", "The plant's inputs per step", words.INPUTS),
        Output("output/baseline_trace.csv", "csv", "The thermostat's run", words.TRACE),
        Output("output/excitation_trace.csv", "csv", "The excitation's run", words.TRACE),
        Output("output/model.json", "json", "Coefficients times 1,000,000 and fit", words.MODEL),
        Output("output/energy_saving_trace.csv", "csv", "The run of policy energy_saving", words.POLICY),
        Output("output/demand_response_trace.csv", "csv", "The run of policy demand_response", words.POLICY),
        Output(
            "output/controller_log.json",
            "json",
            "What the policies decided",
            {"energy_saving": words.LOG, "demand_response": words.LOG},
        ),
        Output("output/metrics.csv", "csv", "The last 24 hours of the three runs", words.METRICS),
        Output(
            "output/summary.json",
            "json",
            "Comparison of the runs",
            {"site": "string", "steps": "integer", "held_out_rmse_mc": "integer"}
            | dict.fromkeys(("cheapest", "calmest", "flattest"), "string")
            | {
                key: {"energy_saving": "integer", "demand_response": "integer"}
                for key in ("saving_microdollars", "peak_period_reduction_wh")
            },
        ),
    ),
    curriculum_layer="mastery",
    workflow_stages=("clean", "simulate", "identify", "control", "compare"),
    artifact_roles=("simulator", "sensor-log", "schedule", "policy", "configuration"),
    relation_types=("temporal", "precedence", "feedback"),
    source_kind="building automation",
)


@dataclass(frozen=True)
class World:
    site: str
    building: dict[str, Any]
    experiment: dict[str, Any]
    days: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]  # date, samples: minute, outdoor_mc, solar_w
    backups: tuple[str, ...]  # dates
    schedule: tuple[tuple[int, ...], ...]  # per step, in the order of SCHEDULE


SCHEDULE = ("step", "setpoint_mc", "comfort_min_mc", "comfort_max_mc", "gain_w", "price", "peak")
SITES = (
    "Harbour-Annex Mill-Lane-Depot Quarry-House North-Atrium Foundry-Lab Orchard-Library Signal-Hall Weir-Court".split()
)
# tier -> (days, minutes between samples, levels, blocks of the horizon)
SIZES = {
    "unit": (3, 3, (0, 50, 100), (1, 2, 3)),
    "small": (4, 1, (0, 50, 100), (1, 1, 2, 3)),
    "full": (10, 1, (0, 25, 50, 100), (1, 2, 2, 3)),
}


def make(draw: Draw, tier: str) -> World:
    days, minutes, levels, blocks = SIZES[tier]
    plant = draw.fork("plant")
    building = {
        "zone_mc": 1000 * plant.integer(23, 26) + plant.integer(0, 999),
        "mass_mc": 1000 * plant.integer(23, 25) + plant.integer(0, 999),
        "capacity_w": 1200 * plant.integer(3, 5),
        "cop": 3,
        "coefficients": {
            "zone_outdoor": plant.integer(2600, 4200),
            "zone_mass": plant.integer(9000, 15000),
            "zone_heat": plant.integer(30000, 44000),
            "window_percent": plant.integer(55, 90),
            "mass_zone": plant.integer(1800, 3400),
            "mass_solar": plant.integer(300, 900),
        },
    }
    steps, first = 48 * days, plant.integer(1, 20)
    control = draw.fork("control")
    excitation, level = [], 0
    for at in range(steps):
        if at % 3 == 0 or control.chance(0.3):
            level = control.choice((10, 90, 50))
        excitation.append(level)
    experiment = {
        "deadband_mc": 50 * control.integer(6, 12),
        "on_level": control.choice((80, 90, 100)),
        "levels": list(levels),
        "blocks": list(blocks),
        "policies": {
            "energy_saving": {
                "energy": 3,
                "price": control.integer(3, 6),
                "peak": 0,
                "comfort": control.integer(3, 6),
                "switch": control.integer(2, 9),
            },
            "demand_response": {
                "energy": 1,
                "price": control.integer(1, 3),
                "peak": control.integer(4, 8),
                "comfort": control.integer(5, 9),
                "switch": control.integer(2, 9),
            },
        },
        "excitation": excitation,
    }
    dates = [f"2025-07-{first + day:02d}" for day in range(days)]
    made = tuple((date, tuple(_samples(draw.fork("weather", date), minutes))) for date in dates)
    backups = tuple(sorted(plant.sample(dates, 2)))
    return World(
        plant.choice(SITES) + f"-{plant.integer(2, 40)}",
        building,
        experiment,
        made,
        backups,
        tuple(_schedule(draw.fork("schedule"), steps)),
    )


def _samples(draw: Draw, minutes: int) -> list[tuple[int, int, int]]:
    """A warm day: the temperature follows a triangle with its top at 15:00, the sun one with its top at 13:00, both with noise."""
    low, high, sun, cloud = draw.integer(17000, 21000), draw.integer(29000, 36000), draw.integer(500, 1100), 0
    out = []
    for minute in range(0, 1440, minutes):
        away = abs((minute - 900 + 720) % 1440 - 720)
        outdoor = high - (high - low) * away // 720 + draw.integer(-250, 250)
        cloud = max(0, min(60, cloud + draw.integer(-6, 6)))
        out.append((minute, outdoor, max(0, sun - sun * abs(minute - 780) // 420) * (100 - cloud) // 100))
    return out


def _schedule(draw: Draw, steps: int) -> list[tuple[int, ...]]:
    opens, closes, peak = draw.integer(14, 18), draw.integer(36, 42), draw.integer(30, 34)
    setpoint, base = 100 * draw.integer(238, 248), 1000 * draw.integer(55, 95)
    out = []
    for step in range(steps):
        now = step % 48
        occupied = opens <= now < closes
        price = base + (draw.integer(0, 9) * 1000) + (120000 if peak <= now < peak + 6 else 30000 if occupied else 0)
        band = (setpoint - 2500, setpoint + 500) if occupied else (17000, 28000)
        gain = draw.integer(700, 1500) if occupied else draw.integer(60, 160)
        out.append((step, setpoint if occupied else 27500, *band, gain, price, int(peak <= now < peak + 6)))
    return out


def check(world: World) -> None:
    coefficients = answers.identify(answers.prepare(world)[1])
    if coefficients["c0"] + coefficients["c1"] >= 0:
        raise WorldError("cooling must lower the identified temperature")
    if len(world.schedule) != 48 * len(world.days) or set(world.backups) - {date for date, _ in world.days}:
        raise WorldError("schedule, days and backups do not fit")


def workflow(world: World) -> Workflow:
    steps, samples = len(world.schedule), sum(len(rows) for _, rows in world.days)
    search = 48 * len(world.experiment["levels"]) ** len(world.experiment["blocks"])
    return Workflow(
        (
            Stage("weather", "clean", samples),
            Stage("baseline", "simulate", steps, ("weather",)),
            Stage("excite", "simulate", steps, ("weather",)),
            Stage("identify", "identify", 2 * steps, ("baseline", "excite")),
            Stage("energy_saving", "control", search, ("identify",)),
            Stage("demand_response", "control", search, ("identify",)),
            Stage("compare", "compare", 3 * 48, ("energy_saving", "demand_response")),
        )
    )


def render(world: World) -> dict[str, bytes]:
    tree = {
        "input/tools/simulator.py": Path(__file__).with_name("plant_tool.py").read_bytes(),
        "input/building.json": _json({"site": world.site, **world.building}),
        "input/experiment.json": _json(world.experiment),
        "input/schedule.csv": csv_table.table(SCHEDULE, world.schedule),
    }
    for date, samples in world.days:
        data = csv_table.table(
            ("time", "outdoor_mc", "solar_w"), [(f"{m // 60:02d}:{m % 60:02d}", x, s) for m, x, s in samples]
        )
        tree[f"input/weather/{date}.csv"] = data
        if date in world.backups:
            tree[f"input/weather_backup/{date}.csv"] = data
    return tree


def recover(tree: dict[str, bytes]) -> World:
    building = json.loads(tree["input/building.json"])
    days = []
    for path in sorted(path for path in tree if path.startswith("input/weather/")):
        rows = csv_table.rows(tree[path])
        days.append((path[-14:-4], tuple((60 * int(r[0][:2]) + int(r[0][3:]), int(r[1]), int(r[2])) for r in rows)))
    backups = tuple(sorted(path[-14:-4] for path in tree if path.startswith("input/weather_backup/")))
    schedule = tuple(tuple(map(int, row)) for row in csv_table.rows(tree["input/schedule.csv"]))
    return World(
        building.pop("site"), building, json.loads(tree["input/experiment.json"]), tuple(days), backups, schedule
    )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.site)
