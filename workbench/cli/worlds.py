"""`workbench worlds`: generators, their gates, export, corpora and their coverage."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.parser import UsageError
from workbench.cli.show import block, json_line, table
from workbench.runs.progress import progress
from workbench.worlds import WorldError


def list_(arguments: argparse.Namespace) -> int:
    """A line for each generator; 1 when one can't be loaded."""
    from workbench.worlds import catalog

    rows, broken = [], []
    for name, folder in catalog.folders().items():
        try:
            rows.append(_row(catalog.get(name)))
        except WorldError as error:
            broken.append(name)
            rows.append({"generator": name, "folder": str(folder), "error": str(error)})
    if arguments.json:
        for row in rows:
            json_line(row)
        return int(bool(broken))
    shown = [("generator", "domain", "tiers", "outputs", "title")]
    shown += [
        (r["generator"], r["domain"], " ".join(r["tiers"]), str(len(r["outputs"])), r["title"])
        for r in rows
        if "error" not in r
    ]
    table(shown)
    for row in rows:
        if "error" in row:
            print(f"{row['generator']}: {row['error']}")
    return int(bool(broken))


def _row(generator) -> dict:
    spec = generator.spec
    return {
        "generator": generator.name,
        "revision": spec.revision,
        "domain": spec.domain,
        "title": spec.title,
        "summary": spec.summary,
        "tiers": list(spec.tiers),
        "outputs": [output.path for output in spec.outputs],
        "components": dict(generator.components),
        "nodes": [node.name for node in generator.nodes],
        "folder": str(generator.folder),
    }


def gates(arguments: argparse.Namespace) -> int:
    """0 when every gate is passed on every seed and tier; 1 otherwise."""
    from workbench.worlds import catalog
    from workbench.worlds.gates import run

    names = arguments.names or list(catalog.folders())
    failed = 0
    for name in names:
        if name not in catalog.folders():
            raise UsageError(str(_key_text(catalog.folder_of, name)))
        results, tiers = [], _tiers(arguments.tier, name)
        for result in progress(run(name, seeds_of(arguments.seeds), tiers), f"gates of {name}"):
            results.append(result)
            if arguments.json:
                json_line(result.to_row())
        failed += sum(not r.passed for r in results)
        if not arguments.json:
            _tell(name, results)
    return int(failed > 0)


def _tiers(asked: list[str] | None, name: str):
    """The asked tiers that the generator has; None for all of its own."""
    from workbench.worlds import catalog

    if not asked:
        return None
    try:
        has = catalog.get(name).spec.tiers
    except WorldError:
        return None  # `run` says what is wrong
    if not (tiers := tuple(t for t in asked if t in has)):
        raise UsageError(f"{name} has no tier {', '.join(asked)}: {', '.join(has)}")
    return tiers


def _key_text(ask, name: str) -> str:
    try:
        ask(name)
    except KeyError as error:
        return str(error.args[0])
    return ""


def seeds_of(text: str) -> list[int]:
    """ "3", "1,4,9" or "1-20" as seeds."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            low, _, high = part.partition("-")
            seeds += range(int(low), int(high or low) + 1)
    except ValueError:
        seeds = []
    if not seeds:
        raise UsageError(f"seeds {text!r}: give 3, 1,4,9 or 1-20")
    return seeds


def _tell(name: str, results: list) -> None:
    """One line a gate, then what is wrong."""
    from workbench.worlds.gates import FAILURE_CLASSES

    print(name)
    rows = []
    for gate, failure_class in FAILURE_CLASSES.items():
        of_gate = [r for r in results if r.gate == gate]
        if of_gate:
            bad = sum(not r.passed for r in of_gate)
            verdict = (
                f"{len(of_gate)} of {len(of_gate)} passed"
                if not bad
                else f"{bad} of {len(of_gate)} FAILED: {failure_class}"
            )
            rows.append((gate, f"{sum(r.seconds for r in of_gate):.2f} s", verdict))
    table(rows, "  ")
    for result in results:
        if not result.passed:
            where = "" if result.seed is None else f" seed {result.seed}"
            print(f"  {result.gate}{where} {result.tier or ''}".rstrip() + ":")
            for message in result.messages:
                print(block(message, "    - "))


def new(arguments: argparse.Namespace) -> int:
    """Make a generator's folder."""
    from workbench.worlds import catalog
    from workbench.worlds.scaffold import new_generator

    try:
        folder = new_generator(arguments.name, Path(arguments.to) if arguments.to else None)
    except (WorldError, OSError) as error:
        raise UsageError(str(error)) from None
    files = sorted(path.name for path in folder.iterdir())
    if arguments.json:
        json_line({"generator": arguments.name, "folder": str(folder), "files": files})
        return 0
    told = "" if folder.parent in catalog.places() else f"export {catalog.GENERATORS_ENV}={folder.parent.resolve()}\n"
    print(f"{folder}: {', '.join(files)}\nNext: {told}rewrite them, then: workbench worlds gates {arguments.name}")
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write one environment as a Harbor task."""
    from workbench.worlds import build
    from workbench.worlds.export import export_environment

    kinds = tuple(arguments.kinds.split(",")) if arguments.kinds else None
    try:
        environment = build(arguments.name, arguments.seed, arguments.tier, kinds)
        target = export_environment(environment, Path(arguments.out))
    except KeyError as error:
        raise UsageError(str(error.args[0])) from None
    except (WorldError, OSError) as error:
        raise UsageError(str(error)) from None
    row = {
        "task": str(target),
        "task_id": environment.task_id,
        "world_id": environment.world_id,
        "input_files": len(environment.public),
        "defects": [d.kind for d in environment.defects],
    }
    if arguments.json:
        json_line(row)
    else:
        print(f"{target}: {row['task_id']}, {row['input_files']} input files, damaged by {', '.join(row['defects'])}")
    return 0
