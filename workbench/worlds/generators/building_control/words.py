"""The public contract."""

from __future__ import annotations

from workbench.worlds import Prompt

INPUTS = dict.fromkeys(("step", "outdoor_mc", "solar_w", "gain_w"), "integer")
TRACE = dict.fromkeys(("step", "zone_mc", "level", "outdoor_mc", "elec_w"), "integer")
POLICY = TRACE | {"predicted_next_mc": "integer"}
METRICS = {"run": "string"} | dict.fromkeys(
    (
        "cooling_wh",
        "elec_wh",
        "cost_microdollars",
        "peak_load_w",
        "peak_period_wh",
        "discomfort_mc",
        "switches",
        "rmse_mc",
    ),
    "integer",
)
MODEL = dict.fromkeys(
    ("a1", "a2", "b0", "b1", "c0", "c1", "d", "training_rows", "held_out_rows", "training_rmse_mc", "held_out_rmse_mc"),
    "integer",
)
LOG = dict.fromkeys(("objective", "decisions"), "integer") | {
    "first_levels": ["integer"],
    "levels": {"<level>": "integer"},
}


def prompt(site: str) -> Prompt:
    return Prompt(
        goal=f"Control the cooling of {site} in closed loop. Clean the weather, run a thermostat and an excitation on the simulator, identify "
        "a second-order model, and let two receding-horizon policies drive the simulator for the last 24 hours. Everything is in whole numbers (milli-degrees Celsius, "
        "watts, percent); // below is division rounded down.",
        inputs={
            "input/tools/simulator.py": "the plant; drive it step by step, its docstring says how",
            "input/building.json": "the plant's parameters, capacity and cop",
            "input/weather/<day>.csv": "samples: time HH:MM, outdoor_mc, solar_w",
            "input/weather_backup/<day>.csv": "a second station, for some days",
            "input/schedule.csv": "per half-hour step: setpoint, comfort band, gain_w, price (microdollars per kWh), peak (1 or 0)",
            "input/experiment.json": "deadband, excitation, levels, horizon blocks, policy weights",
        },
        requirements=(
            "inputs.csv: per half-hour step of all days the samples' sum // count of outdoor_mc and of solar_w, and the schedule's gain_w. Steps count from 0.",
            "A trace row is a step's zone temperature before it, the level during it, outdoor_mc, and elec_w = (capacity_w * level // 100) // cop.",
            "baseline_trace.csv: level on_level when zone > setpoint + deadband, 0 when zone < setpoint - deadband, else as before; 0 before the start. "
            "excitation_trace.csv: the levels of `excitation`, the plant from its initial state.",
            "model.json: T[t+1] = a1 T[t] + a2 T[t-1] + b0 X[t] + b1 X[t-1] + c0 u[t] + c1 u[t-1] + d, X outdoor_mc, u level; least squares over the rows t = 1 … steps-2 of both traces, "
            "the first 80 % (rows * 4 // 5) of each for training, the rest held out. Solve exactly; write each coefficient times 1,000,000, rounded to the nearest "
            "whole number (halves up). A prediction is (sum of coefficient * value + 500000) // 1000000. rmse: isqrt(sum of squared errors // rows).",
            "Policies: the plant runs under the baseline until the last 48 steps. From then on, at every step, consider all choices of one level for each of the "
            "horizon's blocks (lengths in steps; cut off at the end of the simulation); predict; the cost is the sum over steps k of energy*e + price*(price[k]*e // 100000) + peak*e*peak[k] + "
            "comfort*v, plus switch*|change of level| at the start of each block, where e is elec_w and v how far the predicted T[k+1] is outside the comfort band of step k+1 (of "
            "the last step beyond the end). Take the least cost, on ties the list of levels that comes first; apply its first level to the plant, then decide anew.",
            "<policy>_trace.csv: all steps; predicted_next_mc is the model's T[k+1] for the level applied, empty before the last 48 steps. controller_log.json: per policy objective (sum of the least costs), decisions, "
            "first_levels applied, levels (how often each was, all levels as keys).",
            "metrics.csv, rows baseline, energy_saving, demand_response, over the last 48 steps: cooling_wh and elec_wh (half hours; // once, at the end); cost_microdollars (sum of price*elec_w // 2000); "
            "peak_load_w; peak_period_wh; discomfort_mc (sum of distances of the zone from its step's comfort band); switches (changes of level, from the step before on); rmse_mc of one-step predictions "
            "for the steps but the last.",
            "summary.json: site; steps; held_out_rmse_mc; cheapest, calmest (least discomfort) and flattest (least peak_load_w) run, on ties the first row; saving_microdollars and peak_period_reduction_wh of each policy against the baseline.",
        ),
        authority=(
            "A sample that stands twice counts once. A sample missing from a day is taken from the backup; where both have it, the day's own file counts. Every day has all its samples in one or the other.",
            "Temperatures that end in mK are milli-kelvin: subtract 273150. building.json is the building as it is; a file ending in .old.json is out of date.",
        ),
    )
