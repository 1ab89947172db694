"""Alternative solver: samples in SQLite, least squares by Cholesky-like fractions, the horizon searched breadth first, level by level."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from math import floor, isqrt
from typing import Any

MEANS = """
SELECT SUBSTR(stamp, 1, 10) AS day, half, SUM(outdoor), SUM(solar), COUNT(*) FROM (
  SELECT stamp, half, outdoor, solar, ROW_NUMBER() OVER (PARTITION BY stamp ORDER BY source) AS nth FROM sample)
WHERE nth = 1 GROUP BY 1, 2 ORDER BY 1, 2
"""
HEAD = "step,zone_mc,level,outdoor_mc,elec_w"
POLICIES = ("energy_saving", "demand_response")


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    building, experiment = json.loads(tree["input/building.json"]), json.loads(tree["input/experiment.json"])
    header, *lines = tree["input/schedule.csv"].decode().split()
    columns = dict(
        zip(header.split(","), map(list, zip(*(map(int, line.split(",")) for line in lines), strict=True)), strict=True)
    )
    weather = _weather(tree)
    steps, start = len(weather), len(weather) - 48
    base = _drive(building, weather, columns["gain_w"], _two_position(columns, experiment))
    excited = _drive(building, weather, columns["gain_w"], lambda zones, levels: experiment["excitation"][len(levels)])
    fit = _fit([(base, weather), (excited, weather)])
    model = [fit[name] for name in ("a1", "a2", "b0", "b1", "c0", "c1", "d")]
    power = {u: building["capacity_w"] * u // 100 // building["cop"] for u in range(101)}
    files = {
        "output/staging/inputs.csv": _csv(
            "step,outdoor_mc,solar_w,gain_w", [[n, *w, columns["gain_w"][n]] for n, w in enumerate(weather)]
        ),
        "output/baseline_trace.csv": _csv(HEAD, _rows(base, weather, power)),
        "output/excitation_trace.csv": _csv(HEAD, _rows(excited, weather, power)),
        "output/model.json": json.dumps(fit).encode(),
    }
    runs, log = {"baseline": base}, {}
    for name in POLICIES:
        controller = _Controller(columns, experiment, weather, model, power, experiment["policies"][name], start)
        runs[name] = _drive(building, weather, columns["gain_w"], controller)
        rows = [[*row, controller.predicted.get(row[0], "")] for row in _rows(runs[name], weather, power)]
        files[f"output/{name}_trace.csv"] = _csv(f"{HEAD},predicted_next_mc", rows)
        taken = runs[name][1][start:]
        log[name] = {
            "objective": controller.total,
            "decisions": len(taken),
            "first_levels": taken,
            "levels": {str(u): taken.count(u) for u in experiment["levels"]},
        }
    figures = {name: _figures(run, weather, columns, building, power, model, start) for name, run in runs.items()}
    first = list(figures)
    summary: dict[str, Any] = {"site": building["site"], "steps": steps, "held_out_rmse_mc": fit["held_out_rmse_mc"]}
    for name, column in (("cheapest", 2), ("calmest", 5), ("flattest", 3)):
        summary[name] = sorted(first, key=lambda run, column=column: figures[run][column])[0]
    for name, column in (("saving_microdollars", 2), ("peak_period_reduction_wh", 4)):
        summary[name] = {p: figures["baseline"][column] - figures[p][column] for p in POLICIES}
    head = "run,cooling_wh,elec_wh,cost_microdollars,peak_load_w,peak_period_wh,discomfort_mc,switches,rmse_mc"
    return files | {
        "output/controller_log.json": json.dumps(log).encode(),
        "output/metrics.csv": _csv(head, [[name, *row] for name, row in figures.items()]),
        "output/summary.json": json.dumps(summary).encode(),
    }


def _weather(tree: Mapping[str, bytes]) -> list[tuple[int, int]]:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE sample (stamp TEXT, half INTEGER, outdoor INTEGER, solar INTEGER, source INTEGER)")
    for path, data in tree.items():
        if not path.startswith("input/weather"):
            continue
        source = int("backup" in path)
        for line in data.decode().splitlines()[1:]:
            time, outdoor, solar = line.split(",")
            value, kelvin, _ = outdoor.partition(" mK")
            half = (60 * int(time[:2]) + int(time[3:5])) // 30
            values = (f"{path[-14:-4]} {time}", half, int(value) - (273150 if kelvin else 0), int(solar), source)
            base.execute("INSERT INTO sample VALUES (?, ?, ?, ?, ?)", values)
    return [(outdoor // count, solar // count) for _, _, outdoor, solar, count in base.execute(MEANS)]


def _drive(building: dict, weather: list, gains: list[int], decide: Any) -> tuple[list[int], list[int]]:
    """(zone temperatures, levels) of a closed loop."""
    k, zones, levels, mass = building["coefficients"], [building["zone_mc"]], [], building["mass_mc"]
    for (outdoor, solar), gain in zip(weather, gains, strict=True):
        zone = zones[-1]
        levels.append(decide(zones, levels))
        heat = gain + k["window_percent"] * solar // 100 - levels[-1] * building["capacity_w"] // 100
        pull = k["zone_outdoor"] * (outdoor - zone) + k["zone_mass"] * (mass - zone) + k["zone_heat"] * heat
        mass += (k["mass_zone"] * (zone - mass) + k["mass_solar"] * solar) // 2**16
        zones.append(zone + pull // 2**16)
    return zones[:-1], levels


def _two_position(columns: dict, experiment: dict) -> Any:
    def decide(zones: list[int], levels: list[int]) -> int:
        error = zones[-1] - columns["setpoint_mc"][len(levels)]
        if abs(error) <= experiment["deadband_mc"]:
            return levels[-1] if levels else 0
        return experiment["on_level"] if error > 0 else 0

    return decide


def _samples(run: tuple[list[int], list[int]], weather: list) -> list[tuple[list[int], int]]:
    zones, levels = run
    return [
        ([zones[t], zones[t - 1], weather[t][0], weather[t - 1][0], levels[t], levels[t - 1], 1], zones[t + 1])
        for t in range(1, len(zones) - 1)
    ]


def _fit(runs: list[tuple]) -> dict[str, int]:
    train, held = [], []
    for run, weather in runs:
        rows = _samples(run, weather)
        train += rows[: 4 * len(rows) // 5]
        held += rows[4 * len(rows) // 5 :]
    gram = [[sum(x[i] * x[j] for x, _ in train) for j in range(7)] for i in range(7)]
    right = [sum(x[i] * y for x, y in train) for i in range(7)]
    model = [floor(value * 1000000 + Fraction(1, 2)) for value in _ldl(gram, right)]
    out = dict(zip(("a1", "a2", "b0", "b1", "c0", "c1", "d"), model, strict=True))
    for name, rows in (("training", train), ("held_out", held)):
        errors = sum(((sum(map(int.__mul__, model, x)) + 500000) // 1000000 - y) ** 2 for x, y in rows)
        out |= {f"{name}_rows": len(rows), f"{name}_rmse_mc": isqrt(errors // len(rows))}
    return out


def _ldl(gram: list[list[int]], right: list[int]) -> list[Fraction]:
    """Solve a positive definite system by its L D L' factors."""
    size = len(right)
    lower = [[Fraction(0)] * size for _ in range(size)]
    diagonal = [Fraction(0)] * size
    for i in range(size):
        for j in range(i + 1):
            value = gram[i][j] - sum(lower[i][k] * lower[j][k] * diagonal[k] for k in range(j))
            if i == j:
                diagonal[i], lower[i][i] = Fraction(value), Fraction(1)
            else:
                lower[i][j] = value / diagonal[j]
    y: list[Fraction] = []
    for i in range(size):
        y.append(right[i] - sum(lower[i][k] * y[k] for k in range(i)))
    x = [Fraction(0)] * size
    for i in reversed(range(size)):
        x[i] = y[i] / diagonal[i] - sum(lower[k][i] * x[k] for k in range(i + 1, size))
    return x


class _Controller:
    """All branches of the horizon at once, one step after another."""

    def __init__(
        self, columns: dict, experiment: dict, weather: list, model: list[int], power: dict, weights: dict, start: int
    ):
        self.columns, self.experiment, self.weather, self.model = columns, experiment, weather, model
        self.power, self.weights, self.start = power, weights, start
        self.thermostat, self.total = _two_position(columns, experiment), 0
        self.predicted: dict[int, int] = {}

    def __call__(self, zones: list[int], levels: list[int]) -> int:
        t, n = len(levels), len(self.weather)
        if t < self.start:
            return self.thermostat(zones, levels)
        branches = [(0, (), zones[-1], zones[-2], levels[-1])]
        at = t
        for length in self.experiment["blocks"]:
            if at >= n:
                break
            turn = self.weights["switch"]
            branches = [
                (cost + turn * abs(u - last), (*chosen, u), zone, before, last)
                for cost, chosen, zone, before, last in branches
                for u in self.experiment["levels"]
            ]
            for step in range(at, min(n, at + length)):
                branches = [self._advance(branch, step) for branch in branches]
            at += length
        cost, chosen, *_ = min(branches, key=lambda branch: branch[:2])
        self.total += cost
        self.predicted[t] = self._advance((0, chosen[:1], zones[-1], zones[-2], levels[-1]), t)[2]
        return chosen[0]

    def _advance(self, branch: tuple, step: int) -> tuple:
        cost, chosen, zone, before, last = branch
        level, m = chosen[-1], self.model
        inner = (
            m[0] * zone
            + m[1] * before
            + m[2] * self.weather[step][0]
            + m[3] * self.weather[step - 1][0]
            + m[4] * level
            + m[5] * last
        )
        after = (inner + m[6] + 500000) // 1000000
        c, w, watts = self.columns, self.weights, self.power[level]
        bound = min(step + 1, len(self.weather) - 1)
        beyond = max(c["comfort_min_mc"][bound] - after, after - c["comfort_max_mc"][bound], 0)
        spent = watts * (w["energy"] + w["peak"] * c["peak"][step]) + w["price"] * (c["price"][step] * watts // 100000)
        return (cost + spent + w["comfort"] * beyond, chosen, after, zone, level)


def _figures(
    run: tuple, weather: list, columns: dict, building: dict, power: dict, model: list[int], start: int
) -> list[int]:
    zones, levels = run
    span = range(start, len(zones))
    watts = [power[levels[t]] for t in span]
    errors = [
        ((sum(map(int.__mul__, model, x)) + 500000) // 1000000 - y) ** 2 for x, y in _samples(run, weather)[start - 1 :]
    ]
    low, high = columns["comfort_min_mc"], columns["comfort_max_mc"]
    return [
        sum(levels[t] * building["capacity_w"] // 100 for t in span) // 2,
        sum(watts) // 2,
        sum(columns["price"][t] * w for t, w in zip(span, watts, strict=True)) // 2000,
        max(watts),
        sum(columns["peak"][t] * w for t, w in zip(span, watts, strict=True)) // 2,
        sum(max(0, low[t] - zones[t]) + max(0, zones[t] - high[t]) for t in span),
        len([t for t in span if levels[t] != levels[t - 1]]),
        isqrt(sum(errors) // len(errors)),
    ]


def _rows(run: tuple[list[int], list[int]], weather: list, power: dict[int, int]) -> list[list[Any]]:
    return [[t, zone, level, weather[t][0], power[level]] for t, (zone, level) in enumerate(zip(*run, strict=True))]


def _csv(header: str, rows: list[list[Any]]) -> bytes:
    lines = [header]
    lines += [",".join(str(value) for value in row) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()
