"""The sealed answer key: the declared procedure, run once on the tool oracle itself (Tev A.10, Example 2)."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

from workbench.worlds.generators.building_control.plant_tool import Plant

NAMES = ("a1", "a2", "b0", "b1", "c0", "c1", "d")
POLICIES = ("energy_saving", "demand_response")
WINDOW = 48


def inputs(world: Any) -> list[dict[str, int]]:
    rows = [row for _, samples in world.days for row in samples]
    size, out = len(rows) // len(world.schedule), []
    for step, plan in enumerate(world.schedule):
        part = rows[step * size : (step + 1) * size]
        out.append(
            {
                "step": step,
                "outdoor_mc": sum(r[1] for r in part) // size,
                "solar_w": sum(r[2] for r in part) // size,
                "gain_w": plan[4],
            }
        )
    return out


def run(world: Any, series: list[dict[str, int]], decide: Any) -> list[dict[str, Any]]:
    """The trace of a closed loop; decide(trace so far, zone) -> (level, prediction or "")."""
    plant, trace = Plant(world.building, series), []
    for step in series:
        zone = plant.zone_mc
        level, predicted = decide(trace, zone)
        electric = world.building["capacity_w"] * level // 100 // world.building["cop"]
        plant.step(level)
        trace.append(
            {
                "step": step["step"],
                "zone_mc": zone,
                "level": level,
                "outdoor_mc": step["outdoor_mc"],
                "elec_w": electric,
                "predicted_next_mc": predicted,
            }
        )
    return trace


def thermostat(world: Any, trace: list[dict[str, Any]], zone: int) -> tuple[int, str]:
    setpoint, band = world.schedule[len(trace)][1], world.experiment["deadband_mc"]
    if zone > setpoint + band:
        return world.experiment["on_level"], ""
    if zone < setpoint - band or not trace:
        return 0, ""
    return trace[-1]["level"], ""


def regressors(trace: list[dict[str, Any]], t: int) -> tuple[int, ...]:
    now, before = trace[t], trace[t - 1]
    return (
        now["zone_mc"],
        before["zone_mc"],
        now["outdoor_mc"],
        before["outdoor_mc"],
        now["level"],
        before["level"],
        1,
    )


def predict(model: dict[str, int], values: tuple[int, ...]) -> int:
    return (sum(model[name] * value for name, value in zip(NAMES, values, strict=True)) + 500000) // 1000000


def identify(traces: list[list[dict[str, Any]]]) -> dict[str, int]:
    """Exact least squares by the normal equations."""
    training, held = [], []
    for trace in traces:
        rows = [(regressors(trace, t), trace[t + 1]["zone_mc"]) for t in range(1, len(trace) - 1)]
        training += rows[: len(rows) * 4 // 5]
        held += rows[len(rows) * 4 // 5 :]
    table = [
        [Fraction(sum(x[i] * x[j] for x, _ in training)) for j in range(7)]
        + [Fraction(sum(x[i] * y for x, y in training))]
        for i in range(7)
    ]
    for i in range(7):
        pivot = next(j for j in range(i, 7) if table[j][i])
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [value / table[i][i] for value in table[i]]
        for j in range(7):
            if j != i and table[j][i]:
                table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    model = {name: (2000000 * table[i][7] + 1) // 2 for i, name in enumerate(NAMES)}
    errors = [[(predict(model, x) - y) ** 2 for x, y in rows] for rows in (training, held)]
    model |= {"training_rows": len(training), "held_out_rows": len(held)}
    return model | {
        f"{name}_rmse_mc": isqrt(sum(e) // len(e)) for name, e in zip(("training", "held_out"), errors, strict=True)
    }


def outside(world: Any, step: int, zone: int) -> int:
    _, _, low, high, *_ = world.schedule[min(step, len(world.schedule) - 1)]
    return max(low - zone, zone - high, 0)


class Policy:
    """Receding horizon over the declared grid, by depth-first search."""

    def __init__(self, world: Any, series: list[dict[str, int]], model: dict[str, int], weights: dict[str, int]):
        self.world, self.series, self.model, self.weights = world, series, model, weights
        self.objective, self.applied = 0, []
        self.electric = {
            u: world.building["capacity_w"] * u // 100 // world.building["cop"] for u in world.experiment["levels"]
        }

    def __call__(self, trace: list[dict[str, Any]], zone: int) -> tuple[int, Any]:
        t = len(trace)
        if t < len(self.series) - WINDOW:
            return thermostat(self.world, trace, zone)
        best = self._best(0, t, zone, trace[-1]["zone_mc"], trace[-1]["level"])
        self.objective += best[0]
        level = best[1][0]
        self.applied.append(level)
        return level, self._next(t, zone, trace[-1]["zone_mc"], level, trace[-1]["level"])

    def _next(self, t: int, zone: int, before: int, level: int, last: int) -> int:
        values = (zone, before, self.series[t]["outdoor_mc"], self.series[t - 1]["outdoor_mc"], level, last, 1)
        return predict(self.model, values)

    def _best(self, block: int, t: int, zone: int, before: int, last: int) -> tuple[int, tuple[int, ...]]:
        if block == len(self.world.experiment["blocks"]) or t == len(self.series):
            return (0, ())
        found = []
        for level in self.world.experiment["levels"]:
            spent, at, now, past, previous = self.weights["switch"] * abs(level - last), t, zone, before, last
            for _ in range(self.world.experiment["blocks"][block]):
                if at == len(self.series):
                    break
                now, past, previous, at = self._next(at, now, past, level, previous), now, level, at + 1
                spent += self._cost(at - 1, level, now)
            rest = self._best(block + 1, at, now, past, level)
            found.append((spent + rest[0], (level, *rest[1])))
        return min(found)

    def _cost(self, step: int, level: int, after: int) -> int:
        electric, row, w = self.electric[level], self.world.schedule[step], self.weights
        money = w["energy"] * electric + w["price"] * (row[5] * electric // 100000) + w["peak"] * electric * row[6]
        return money + w["comfort"] * outside(self.world, step + 1, after)

    def log(self) -> dict[str, Any]:
        counts = {str(u): self.applied.count(u) for u in self.world.experiment["levels"]}
        return {
            "objective": self.objective,
            "decisions": len(self.applied),
            "first_levels": self.applied,
            "levels": counts,
        }


def metrics(world: Any, trace: list[dict[str, Any]], model: dict[str, int]) -> dict[str, int]:
    n = len(trace)
    last = range(n - WINDOW, n)
    errors = [(predict(model, regressors(trace, t)) - trace[t + 1]["zone_mc"]) ** 2 for t in last[:-1]]
    electric = {t: trace[t]["elec_w"] for t in last}
    return {
        "cooling_wh": sum(world.building["capacity_w"] * trace[t]["level"] // 100 for t in last) // 2,
        "elec_wh": sum(electric.values()) // 2,
        "cost_microdollars": sum(world.schedule[t][5] * electric[t] for t in last) // 2000,
        "peak_load_w": max(electric.values()),
        "peak_period_wh": sum(electric[t] * world.schedule[t][6] for t in last) // 2,
        "discomfort_mc": sum(outside(world, t, trace[t]["zone_mc"]) for t in last),
        "switches": sum(trace[t]["level"] != trace[t - 1]["level"] for t in last),
        "rmse_mc": isqrt(sum(errors) // len(errors)),
    }


def prepare(world: Any) -> tuple[list[dict[str, int]], list[list[dict[str, Any]]]]:
    """(inputs, the two traces that the model is identified on)."""
    series = inputs(world)
    baseline = run(world, series, lambda trace, zone: thermostat(world, trace, zone))
    return series, [baseline, run(world, series, lambda trace, zone: (world.experiment["excitation"][len(trace)], ""))]


def truth(world: Any) -> dict[str, Any]:
    series, (baseline, excited) = prepare(world)
    model = identify([baseline, excited])
    runs, logs = {"baseline": baseline}, {}
    for name in POLICIES:
        policy = Policy(world, series, model, world.experiment["policies"][name])
        runs[name] = run(world, series, policy)
        logs[name] = policy.log()
    figures = {name: metrics(world, trace, model) for name, trace in runs.items()}
    base = figures["baseline"]
    summary = {"site": world.site, "steps": len(series), "held_out_rmse_mc": model["held_out_rmse_mc"]}
    for name, column in (("cheapest", "cost_microdollars"), ("calmest", "discomfort_mc"), ("flattest", "peak_load_w")):
        summary[name] = min(figures, key=lambda run, column=column: figures[run][column])
    for name, column in (("saving_microdollars", "cost_microdollars"), ("peak_period_reduction_wh", "peak_period_wh")):
        summary[name] = {policy: base[column] - figures[policy][column] for policy in POLICIES}
    return {
        "inputs": _text(series, 4),
        "baseline": _text(baseline, 5),
        "excitation": _text(excited, 5),
        "model": model,
        "energy_saving": _text(runs["energy_saving"], 6),
        "demand_response": _text(runs["demand_response"], 6),
        "log": logs,
        "metrics": [[name, *map(str, row.values())] for name, row in figures.items()],
        "summary": summary,
    }


def _text(rows: list[dict[str, Any]], width: int) -> list[list[str]]:
    return [[str(value) for value in row.values()][:width] for row in rows]
