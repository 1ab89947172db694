"""Progress: weather cleaned, runs made, model identified, policies deployed step by step, runs compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.worlds.formats import hostile, leaves

NODES = (
    ("weather", 2, ()),
    ("baseline", 2, ("weather",)),
    ("excitation", 2, ("weather",)),
    ("model", 3, ("baseline", "excitation")),
    ("energy_saving", 4, ("model",)),
    ("demand_response", 4, ("model",)),
    ("log", 1, ("energy_saving", "demand_response")),
    ("metrics", 2, ("energy_saving", "demand_response")),
    ("summary", 1, ("metrics",)),
)
PATHS = {"weather": "staging/inputs", "metrics": "metrics"}
TRUTH = {"weather": "inputs"}
COLUMNS = {
    "weather": "step outdoor_mc solar_w gain_w",
    "metrics": "run cooling_wh elec_wh cost_microdollars peak_load_w peak_period_wh discomfort_mc switches rmse_mc",
}


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    out = {}
    for name in ("weather", "baseline", "excitation", "energy_saving", "demand_response", "metrics"):
        columns = COLUMNS.get(name, "step zone_mc level outdoor_mc elec_w").split()
        if name in ("energy_saving", "demand_response"):
            columns.append("predicted_next_mc")
        found = hostile.table_file(tree, f"output/{PATHS.get(name, f'{name}_trace')}.csv")
        out[name] = _prefix(truth[TRUTH.get(name, name)], found, columns)
    out["model"] = leaves.overlap(truth["model"], hostile.json_file(tree, "output/model.json"), ())
    out["log"] = leaves.overlap(truth["log"], hostile.json_file(tree, "output/controller_log.json"), ())
    out["summary"] = leaves.overlap(truth["summary"], hostile.json_file(tree, "output/summary.json"), (), ("str",))
    return out


def _prefix(ours: list[list[str]], found: tuple[list[str], list[list[str]]] | None, columns: list[str]) -> float:
    """How far a table is right, row after row; in a closed loop all that follows a wrong row is of another run. Half credit for the rest."""
    if found is None or sorted(found[0]) != sorted(columns):
        return 0.0
    order = [found[0].index(name) for name in columns]
    theirs = [[row[place] for place in order] for row in found[1]]
    if theirs == ours:
        return 1.0
    run = 0
    while run < min(len(ours), len(theirs)) and ours[run] == theirs[run]:
        run += 1
    after = sum(a == b for a, b in zip(ours[run:], theirs[run:], strict=False))
    if 20 * (run + after) < len(ours):  # a few rows agree by chance
        return 0.0
    return min(0.99, (run + after / 2) / max(len(ours), len(theirs)))
