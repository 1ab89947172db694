"""Reference solver: the plant's arithmetic restated, fraction-free elimination, and a recursive search of the horizon."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from math import isqrt
from typing import Any

DAY = 48
Trace = list[list[Any]]  # step, zone, level, outdoor, electric, predicted


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    loop, out = Loop(tree), {}
    out["output/staging/inputs.csv"] = _table("step,outdoor_mc,solar_w,gain_w", loop.inputs)
    yield "weather", dict(out)
    baseline = loop.run(loop.thermostat)
    out["output/baseline_trace.csv"] = _table("step,zone_mc,level,outdoor_mc,elec_w", [row[:5] for row in baseline])
    yield "baseline", dict(out)
    excited = loop.run(lambda trace, zone: (loop.experiment["excitation"][len(trace)], ""))
    out["output/excitation_trace.csv"] = _table("step,zone_mc,level,outdoor_mc,elec_w", [row[:5] for row in excited])
    yield "excite", dict(out)
    loop.model, fit = _identify([baseline, excited])
    out["output/model.json"] = _json(fit)
    yield "identify", dict(out)
    runs, logs = {"baseline": baseline}, {}
    for name in ("energy_saving", "demand_response"):
        runs[name], logs[name] = loop.deploy(name)
        out[f"output/{name}_trace.csv"] = _table("step,zone_mc,level,outdoor_mc,elec_w,predicted_next_mc", runs[name])
        if len(logs) == 2:
            out["output/controller_log.json"] = _json(logs)
        yield name, dict(out)
    figures = {name: loop.measure(trace) for name, trace in runs.items()}
    out["output/metrics.csv"] = _table(
        ",".join(["run", *figures["baseline"]]), [[n, *f.values()] for n, f in figures.items()]
    )
    out["output/summary.json"] = _json(_summary(loop, figures, fit))
    yield "compare", dict(out)


def _summary(loop: Loop, figures: dict[str, dict[str, int]], fit: dict[str, int]) -> dict[str, Any]:
    base = figures["baseline"]
    others = [name for name in figures if name != "baseline"]
    return {
        "site": loop.building["site"],
        "steps": len(loop.inputs),
        "held_out_rmse_mc": fit["held_out_rmse_mc"],
        "cheapest": min(figures, key=lambda name: figures[name]["cost_microdollars"]),
        "calmest": min(figures, key=lambda name: figures[name]["discomfort_mc"]),
        "flattest": min(figures, key=lambda name: figures[name]["peak_load_w"]),
        "saving_microdollars": {n: base["cost_microdollars"] - figures[n]["cost_microdollars"] for n in others},
        "peak_period_reduction_wh": {n: base["peak_period_wh"] - figures[n]["peak_period_wh"] for n in others},
    }


class Loop:
    """One experiment: the plant, its inputs, the controllers."""

    def __init__(self, tree: Mapping[str, bytes]):
        self.building = json.loads(tree["input/building.json"])
        self.experiment = json.loads(tree["input/experiment.json"])
        rows = csv.DictReader(io.StringIO(tree["input/schedule.csv"].decode()))
        self.schedule = [{key: int(value) for key, value in row.items()} for row in rows]
        self.inputs = _inputs(tree, self.schedule)
        self.model: list[int] = []

    def electric(self, level: int) -> int:
        return self.building["capacity_w"] * level // 100 // self.building["cop"]

    def run(self, decide: Callable[[Trace, int], tuple[int, Any]]) -> Trace:
        k, trace = self.building["coefficients"], []
        zone, mass = self.building["zone_mc"], self.building["mass_mc"]
        for step, outdoor, solar, gain in self.inputs:
            level, predicted = decide(trace, zone)
            trace.append([step, zone, level, outdoor, self.electric(level), predicted])
            heat = gain + solar * k["window_percent"] // 100 - self.building["capacity_w"] * level // 100
            flow = (outdoor - zone) * k["zone_outdoor"] + (mass - zone) * k["zone_mass"] + heat * k["zone_heat"]
            stored = (zone - mass) * k["mass_zone"] + solar * k["mass_solar"]
            zone, mass = zone + (flow >> 16), mass + (stored >> 16)
        return trace

    def thermostat(self, trace: Trace, zone: int) -> tuple[int, Any]:
        setpoint, band = self.schedule[len(trace)]["setpoint_mc"], self.experiment["deadband_mc"]
        if zone > setpoint + band:
            return self.experiment["on_level"], ""
        return (0 if zone < setpoint - band or not trace else trace[-1][2]), ""

    def deploy(self, name: str) -> tuple[Trace, dict[str, Any]]:
        weights, costs, chosen = self.experiment["policies"][name], [], []

        def decide(trace: Trace, zone: int) -> tuple[int, Any]:
            t = len(trace)
            if t < len(self.inputs) - DAY:
                return self.thermostat(trace, zone)
            cost, levels = self.search(weights, t, 0, zone, trace[-1][1], trace[-1][2])
            costs.append(cost)
            chosen.append(levels[0])
            return levels[0], self.predict(t, zone, trace[-1][1], levels[0], trace[-1][2])

        trace = self.run(decide)
        counts = {str(level): chosen.count(level) for level in self.experiment["levels"]}
        return trace, {"objective": sum(costs), "decisions": len(costs), "first_levels": chosen, "levels": counts}

    def predict(self, t: int, zone: int, before: int, level: int, last: int) -> int:
        a1, a2, b0, b1, c0, c1, d = self.model
        total = (
            a1 * zone + a2 * before + b0 * self.inputs[t][1] + b1 * self.inputs[t - 1][1] + c0 * level + c1 * last + d
        )
        return (total + 500000) // 1000000

    def search(
        self, weights: dict, t: int, block: int, zone: int, before: int, last: int
    ) -> tuple[int, tuple[int, ...]]:
        """(least cost, levels of the blocks) from here to the end of the horizon."""
        if block == len(self.experiment["blocks"]) or t == len(self.inputs):
            return 0, ()
        options = []
        for level in self.experiment["levels"]:
            cost, now, past, previous = weights["switch"] * abs(level - last), zone, before, last
            end = min(t + self.experiment["blocks"][block], len(self.inputs))
            for at in range(t, end):
                now, past, previous = self.predict(at, now, past, level, previous), now, level
                cost += self.cost(weights, at, level, now)
            ahead, levels = self.search(weights, end, block + 1, now, past, previous)
            options.append((cost + ahead, (level, *levels)))
        return min(options)

    def cost(self, weights: dict, at: int, level: int, after: int) -> int:
        row, electric = self.schedule[at], self.electric(level)
        cost = weights["energy"] * electric + weights["price"] * (row["price"] * electric // 100000)
        return cost + weights["peak"] * electric * row["peak"] + weights["comfort"] * self.outside(at + 1, after)

    def outside(self, step: int, zone: int) -> int:
        row = self.schedule[min(step, len(self.schedule) - 1)]
        return max(0, row["comfort_min_mc"] - zone, zone - row["comfort_max_mc"])

    def measure(self, trace: Trace) -> dict[str, int]:
        last, capacity = trace[-DAY:], self.building["capacity_w"]
        plan, before = self.schedule[-DAY:], [trace[-DAY - 1], *trace[-DAY:]]
        errors = [(_predict(self.model, trace, row[0]) - trace[row[0] + 1][1]) ** 2 for row in last[:-1]]
        return {
            "cooling_wh": sum(capacity * row[2] // 100 for row in last) // 2,
            "elec_wh": sum(row[4] for row in last) // 2,
            "cost_microdollars": sum(row[4] * now["price"] for row, now in zip(last, plan, strict=True)) // 2000,
            "peak_load_w": max(row[4] for row in last),
            "peak_period_wh": sum(row[4] for row, now in zip(last, plan, strict=True) if now["peak"]) // 2,
            "discomfort_mc": sum(self.outside(row[0], row[1]) for row in last),
            "switches": sum(a[2] != b[2] for a, b in zip(before, last, strict=False)),
            "rmse_mc": isqrt(sum(errors) // len(errors)),
        }


def _inputs(tree: Mapping[str, bytes], schedule: list[dict[str, int]]) -> list[list[int]]:
    """[step, outdoor, solar, gain] per half hour; a day's own samples override the backup's."""
    samples: dict[tuple[str, int], tuple[int, int]] = {}
    for folder in ("input/weather_backup/", "input/weather/"):
        for path in sorted(path for path in tree if path.startswith(folder)):
            for row in csv.DictReader(io.StringIO(tree[path].decode())):
                text = row["outdoor_mc"]
                outdoor = int(text[:-2]) - 273150 if text.endswith("mK") else int(text)
                half = int(row["time"][:2]) * 2 + int(row["time"][3:]) // 30
                samples[path[-14:-4] + row["time"], half] = (outdoor, int(row["solar_w"]))
    groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (stamp, half), sample in samples.items():
        groups.setdefault((stamp[:10], half), []).append(sample)
    out = []
    for step, key in enumerate(sorted(groups)):
        part = groups[key]
        means = [sum(sample[i] for sample in part) // len(part) for i in (0, 1)]
        out.append([step, *means, schedule[step]["gain_w"]])
    return out


def _regressors(trace: Trace, t: int) -> list[int]:
    now, before = trace[t], trace[t - 1]
    return [now[1], before[1], now[3], before[3], now[2], before[2], 1]


def _predict(model: list[int], trace: Trace, t: int) -> int:
    return (sum(c * x for c, x in zip(model, _regressors(trace, t), strict=True)) + 500000) // 1000000


def _identify(traces: list[Trace]) -> tuple[list[int], dict[str, int]]:
    train, held = [], []
    for trace in traces:
        rows = [(trace, t) for t in range(1, len(trace) - 1)]
        cut = len(rows) * 4 // 5
        train += rows[:cut]
        held += rows[cut:]
    moments = [[0] * 8 for _ in range(7)]
    for trace, t in train:
        values = [*_regressors(trace, t), trace[t + 1][1]]
        for i in range(7):
            for j in range(8):
                moments[i][j] += values[i] * values[j]
    model = _solve(moments)
    fit = dict(zip(("a1", "a2", "b0", "b1", "c0", "c1", "d"), model, strict=True))
    fit |= {"training_rows": len(train), "held_out_rows": len(held)}
    for name, rows in (("training_rmse_mc", train), ("held_out_rmse_mc", held)):
        fit[name] = isqrt(sum((_predict(model, trace, t) - trace[t + 1][1]) ** 2 for trace, t in rows) // len(rows))
    return model, fit


def _solve(rows: list[list[int]]) -> list[int]:
    """The solution times a million, rounded half up, by fraction-free Gauss-Jordan elimination (Bareiss)."""
    size, last = len(rows), 1
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(size):
            if i != k:
                rows[i] = [(rows[k][k] * a - rows[i][k] * b) // last for a, b in zip(rows[i], rows[k], strict=True)]
        last = rows[k][k]
    return [(2000000 * row[-1] + row[i]) // (2 * row[i]) for i, row in enumerate(rows)]


def _table(header: str, rows: list[list[Any]]) -> bytes:
    return ("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n").encode()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
