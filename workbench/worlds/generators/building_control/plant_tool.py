"""Thermal simulator of one zone: zone air and building mass, in whole milli-degrees, so that every machine gets the same numbers.

Use it as a module, closed loop:     plant = Plant(building, inputs); temperature = plant.step(level)
or over a pipe, one level per line:  python3 simulator.py BUILDING.json INPUTS.csv < levels

building: the object in building.json. inputs: one mapping per step with outdoor_mc, solar_w and gain_w.
plant.zone_mc is the zone's temperature now; step(level) runs one half hour at a cooling level in percent and returns the next one.
"""

import csv
import json
import sys
from pathlib import Path


class Plant:
    def __init__(self, building, inputs):
        self.building, self.inputs = building, inputs
        self.zone_mc, self.mass_mc = building["zone_mc"], building["mass_mc"]
        self.at = 0

    def step(self, level):
        if level not in range(101):
            raise ValueError(f"level {level!r} is no whole percentage")
        if self.at >= len(self.inputs):
            raise ValueError("the inputs end here")
        now, k = self.inputs[self.at], self.building["coefficients"]
        heat = int(now["gain_w"]) + int(now["solar_w"]) * k["window_percent"] // 100
        heat -= self.building["capacity_w"] * level // 100
        zone = (
            (int(now["outdoor_mc"]) - self.zone_mc) * k["zone_outdoor"]
            + (self.mass_mc - self.zone_mc) * k["zone_mass"]
            + heat * k["zone_heat"]
        )
        mass = (self.zone_mc - self.mass_mc) * k["mass_zone"] + int(now["solar_w"]) * k["mass_solar"]
        self.zone_mc += zone // 65536  # rounded down, also below zero
        self.mass_mc += mass // 65536
        self.at += 1
        return self.zone_mc


def main():
    with Path(sys.argv[1]).open() as file:
        building = json.load(file)
    with Path(sys.argv[2]).open() as file:
        plant = Plant(building, list(csv.DictReader(file)))
    print(plant.zone_mc, flush=True)
    for line in sys.stdin:
        print(plant.step(int(line)), flush=True)


if __name__ == "__main__":
    main()
