"""Runs the benchmarks by name (all of them without one) and prints a row a measurement; --json for machines."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

NAMES = (
    "agents",
    "contamination",
    "engines",
    "labelling",
    "live",
    "proposer",
    "rollouts",
    "sandboxes",
    "traces",
    "training",
    "trials",
    "validation",
    "worlds",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    for name in options.names or NAMES:
        print(f"== {name}", file=sys.stderr, flush=True)
        for row in importlib.import_module(f"benchmarks.{name}").run():
            print(json.dumps(row) if options.json else line(row), flush=True)
    return 0


def line(row: dict[str, object]) -> str:
    return "  " + "  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items())


if __name__ == "__main__":
    sys.exit(main())
