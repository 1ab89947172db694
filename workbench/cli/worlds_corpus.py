"""`workbench worlds corpus`, `coverage` and `overlap`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table
from workbench.runs.journal import RunLocked
from workbench.worlds import WorldError


def corpus(arguments: argparse.Namespace) -> int:
    """0 when as many environments are admitted as were asked for."""
    from workbench.worlds.corpus import Plan, build_corpus

    plan = Plan(
        size=arguments.size,
        tiers=tuple(arguments.tier or ("unit", "small", "full")),
        generators=tuple(sorted(arguments.generator)) if arguments.generator else None,
        partition=arguments.partition,
        salt=arguments.salt,
        export=not arguments.no_tasks,
    )
    try:
        built = build_corpus(Path(arguments.out), plan, arguments.jobs)
    except KeyError as error:
        raise UsageError(str(error.args[0])) from None
    except RunLocked as error:
        raise UsageError(str(error)) from None
    except WorldError as error:
        message(str(error))
        return 1
    refused = {name: row["messages"] for name, row in built.generators.items() if row["messages"]}
    found = built.coverage()
    row = {
        "corpus": str(built.folder),
        "environments": len(built.environments),
        "rejected": len(built.rejected),
        "generators_refused": sorted(refused),
        "valid_pairs": found.valid,
        "covered_pairs": found.covered,
    }
    if arguments.json:
        json_line(row)
    else:
        print(
            f"{row['corpus']}: {row['environments']} environments, {row['rejected']} rejected; "
            f"{found.covered} of {found.valid} valid pairs covered ({found.share:.1%})"
        )
        for name, messages in refused.items():
            print(f"  left out: {name}, {messages[0]}")
    return 0


def _open(path: str):
    from workbench.worlds.corpus import Corpus

    try:
        return Corpus(path)
    except FileNotFoundError as error:
        raise UsageError(str(error)) from None


def coverage(arguments: argparse.Namespace) -> int:
    """Values of each axis, uncovered pairs, balance, and the tables of Tev A.4 and A.7."""
    from workbench.worlds.coverage import ROLLOUT_AXES
    from workbench.worlds.tables import balances, horizon_table, scale_table

    built = _open(arguments.corpus)
    found, balance = built.coverage(), balances(built.environments)
    tables = {"horizon": horizon_table(built.environments), "scale": scale_table(built.environments)}
    if arguments.json:
        json_line({**found.to_row(), "balance": balance, **tables})
        return 0
    print(
        f"{len(built.environments)} environments; {found.covered} of {found.valid} valid pairs covered ({found.share:.1%})"
    )
    for pair in found.uncovered[: arguments.uncovered]:
        print("  uncovered: " + " x ".join(f"{axis}={value}" for axis, value in pair))
    if (more := len(found.uncovered) - arguments.uncovered) > 0:
        print(f"  and {more} more: --uncovered {len(found.uncovered)}, or --json")
    print()
    table(
        [
            ("axis", "values", ""),
            *((a, str(len(v)), _short(v)) for a, v in found.values.items() if a not in ROLLOUT_AXES),
        ]
    )
    print(f"{', '.join(ROLLOUT_AXES)}: unobserved, they need rollouts")
    for what, told in balance.items():
        counts = ", ".join(f"{name} {n}" for name, n in told["counts"].items())
        print(f"\nbalance over {what}: {told['balance']:.2f} ({counts})")
    for rows in tables.values():
        print()
        show(rows)
    return 0


def _short(values: Iterable[str], width: int = 90) -> str:
    text = ", ".join(values)
    return text if len(text) <= width else text[: width - 1] + "…"


def show(rows: list[Mapping[str, Any]]) -> None:
    """Rows of equal keys as aligned columns; a dash for what isn't known."""
    if rows:
        table([list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)])


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) and not value.is_integer() else str(value)


def overlap(arguments: argparse.Namespace) -> int:
    """The columns of Tev Table 10, then the same of each held-out set with itself."""
    from workbench.worlds.overlap import overlap_table, read_prompts

    built = _open(arguments.corpus)
    try:
        held_out = {Path(folder).name: read_prompts(folder) for folder in arguments.held_out}
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    rows = overlap_table(built.prompts(), held_out)
    if arguments.json:
        for row in rows:
            json_line(row)
    else:
        show(rows)
    return 0
